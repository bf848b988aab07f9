# इंस्पेक्टर, लेयर के पैरामीटर, अक्ष, वक्र, तुलना, हेड।

## पैरामीटर
args-file = { $name } के लिए फ़ाइल
args-about = इस पैटर्न के बारे में
args-file-hint = file.safetensors[:name] या .npy
args-capture = कैप्चर से
    .tip = खुले कैप्चर का टेंसर, इस पैरामीटर या दस्तावेज़ के आकार का।
args-fit = उसके { $count } टेंसर बैठते हैं, { $others } के आकार अलग हैं
args-capture-name = { $name }, कैप्चर से
args-default = डिफ़ॉल्ट
args-follow = { $name } के साथ रखें
args-resets = मान को डिफ़ॉल्ट पर लौटाता है।
args-range = {"["}{ $min } से { $max }]
args-reset = { $name } रीसेट करें
args-needed = ज़रूरी
args-follows = { $name } के साथ
args-choose = पैटर्न चुनें
args-tensor = { $dtype } का { $shape } टेंसर

## अक्ष
axes-query = Query अक्ष
axes-key = Key अक्ष
axes-cross-tip = key और value का अलग अक्ष है।
axes-cross = cross-attention
axes-text = टोकन की एक कड़ी जोड़ता है।
axes-image = ऊँचाई x चौड़ाई के टोकन जोड़ता है।
axes-video = फ़्रेम x ऊँचाई x चौड़ाई के टोकन जोड़ता है।
axes-add-text = + टेक्स्ट
axes-add-image = + चित्र
axes-add-video = + वीडियो
axes-add = { $axis }: { $text }
axes-part = { $axis }: भाग { $n } का नाम
axes-part-tip = भाग का नाम, जैसा रूलर दिखाते हैं।
axes-extent = { $axis }: { $name } का विस्तार { $n }
axes-up = ऊपर
axes-up-tip = इसे ऊपर वाले भाग से पहले ले जाता है।
axes-up-name = { $axis }: { $name } ऊपर
axes-remove-tip = यह भाग हटाता है।
axes-remove-name = { $axis }: { $name } हटाएँ

## दस्तावेज़ की संख्याएँ
make-menu = बनाएँ
make-words = { $n } संख्याएँ, हर टोकन का दस्तावेज़
make-mean = एक दस्तावेज़ के टोकन
make-mean-name = एक दस्तावेज़ के टोकन
make-seed = seed
make-seed-name = लंबाइयों का seed
make-packed = इस औसत के पैक किए दस्तावेज़
    .tip = यादृच्छिक लंबाइयाँ, जैसे पैक किए बैच में; आख़िरी दस्तावेज़ कटता है।
make-equal = बराबर दस्तावेज़
    .tip = इतने टोकन के दस्तावेज़; आख़िरी कटता है।
make-count = हर टोकन के लिए एक संख्या
    .tip = 0, 1, 2 और आगे।
make-fills = इसे दस्तावेज़ की संख्याओं से भरता है।
make-name = { $name } बनाएँ

## तुलना वाला मास्क
differ-counting = गिनती चल रही है, { $share }
differ-same = { $name } जैसी ही सेल रखता है
differ-cells = { $n } सेल अलग हैं ({ $share })
differ-planes = { $batch } बैच और { $heads } हेड में से
differ-more = और { $n } अन्य
differ-queries = query
differ-keys = key
differ-now = केवल अभी
differ-then = केवल तब
differ-tip = अभी: यह डिज़ाइन; तब: { $name }
differ-regions = { $n } और क्षेत्र
differ-place = q { $q }, kv { $kv }
differ-batch = बैच { $b }, { $place }
differ-head = हेड { $h }, { $place }
differ-shows = सेल दिखाता है।

## वक्र
curve-distance = दूरी
curve-bias = बायस
curve-name = दूरी का वक्र
curve-at = दूरी { $x }, बायस { $y }
curve-drag = बनाने या बिंदु खिसकाने के लिए खींचें।
curve-drag-tip = बनाने या बिंदु खिसकाने के लिए खींचें; हटाने के लिए बिंदु पर डबल क्लिक करें।
curve-points = { $n } बिंदु
curve-distance-of = बिंदु { $n } की दूरी
curve-bias-of = बिंदु { $n } का बायस
curve-remove = हटाएँ
curve-remove-name = बिंदु { $n } हटाएँ
curve-add = बिंदु जोड़ें

## लेयर की सामग्री
detail-line = पंक्ति { $line }, स्तंभ { $column }
detail-rectangle = आयत, टोकन में
detail-band = पट्टी: रखी गई दूरियाँ q_idx - kv_idx
detail-bias = दूरी q_idx - kv_idx के अनुसार बायस
detail-learns-not = कुछ नहीं सीख सकता: { $why }
detail-learns-none = कुछ नहीं सीख सकता: वह कोई float टेंसर नहीं पढ़ता
detail-learns = सीख सकता है: { $tensors }
detail-learns-tip = कैप्चर किए float टेंसर को ग्रेडिएंट मिलता है, जब निर्यात किया मॉड्यूल प्रशिक्षित होता है और जब रेस ग्रेडिएंट निकालती है।
detail-rows = पंक्तियाँ, यहाँ से
detail-columns = स्तंभ, यहाँ से
detail-rows-first = पहली पंक्ति
detail-rows-end = पंक्तियों का अंत
detail-columns-first = पहला स्तंभ
detail-columns-end = स्तंभों का अंत
detail-up-to = यहाँ तक
detail-from = से
detail-to = तक
detail-distance-from = दूरी से
detail-distance-to = दूरी तक
detail-painted = पेंट की सेल
detail-cell = प्रति सेल टोकन
detail-cell-rows = सेल की पंक्तियाँ
detail-cell-columns = सेल के स्तंभ
detail-cell-tip = पहले स्ट्रोक से पहले सेल का आकार चुनें।
detail-strokes = { $strokes }, { $rectangles }
detail-n-strokes = { $n ->
    [one] { $n } स्ट्रोक
   *[other] { $n } स्ट्रोक
}
detail-n-rectangles = { $n ->
    [one] { $shown } आयत
   *[other] { $shown } आयत
}
detail-brush = ब्रश (B) सेल रखता है, इरेज़र (E) उन्हें हटाता है।
detail-found = मिले फ़ंक्शन
detail-found-name = मिले फ़ंक्शन
detail-entry = प्रवेश
detail-entry-name = प्रवेश
detail-entry-tip = इस्तेमाल का फ़ंक्शन; खाली: सही प्रकार का एकमात्र या आख़िरी।
detail-tensors = कैप्चर किए टेंसर ({ $n })
detail-tensors-file = कैप्चर किए टेंसर की फ़ाइल
detail-linked = जुड़ी फ़ाइल
detail-linked-path = जुड़ा पथ
detail-linked-words = हर बदलाव के बाद फिर पढ़ी जाती है (F5: तुरंत)।

## दस्तावेज़ का आकार
problem-name = नाम
problem-about-hint = जिस अटेंशन का मॉडल है, और उसका स्रोत।
problem-about = परिचय
problem-batch = बैच
problem-heads = हेड
problem-scale = स्केल
problem-scale-is = स्केल { $scale }
problem-fast = fast math
problem-own-dim = अपना head_dim_v
problem-as-dim = head_dim जैसा
problem-cpu-only = केवल CPU पर।
problem-sums = इनपुट और आउटपुट; जोड़ float32 में।
problem-layout = लेआउट
problem-square = BLOCK_SIZE, वर्ग
    .tip = वर्गाकार ब्लॉक; PyTorch का डिफ़ॉल्ट 128x128 है।
problem-tanh = लगभग tanh
    .tip = GPU पर score mod उसका लगभग tanh लेते हैं: दो के बजाय एक निर्देश, 2^-11 तक की सापेक्ष त्रुटि के साथ। 50 का soft cap 5 के स्कोर को अधिकतम 0.0025 खिसकाता है।

## कार्ड की और पंक्तियाँ
kept-against = { $name } की तुलना में: रखा { $kept }, गणना { $computed }
kept-then-now = तब { $then }, अब { $now }
kept-cells = { $n } सेल रखी गईं
kept-blocks = { $size } के { $full } पूरे ब्लॉक: गणना बिना mask_mod के; { $partial } आंशिक: हर सेल mask_mod तय करता है; { $empty } खाली: छोड़े गए
kept-computed = सभी सेल में से { $computed } की गणना होती है, उसमें से { $vain } व्यर्थ
kept-sparsity = PyTorch की गिनती से sparsity: { $words }
kept-row = प्रति पंक्ति ब्लॉक: { $min } से { $max }, औसत { $mean }
kept-empty = { $rows } पंक्तियाँ कोई key नहीं रखतीं: उनका आउटपुट 0 और lse -inf है
kept-finding = ब्लॉक खोजे जा रहे हैं
kept-partial = आंशिक ब्लॉक की सेल गिनी जा रही हैं
kept-counted = { $n }% गिना गया
kept-one-by-one = अंतराल विश्लेषण यह मास्क तय नहीं कर पाता, इसलिए उसकी सेल एक-एक करके जाँची जाती हैं। चित्र प्रतीक्षा नहीं करता।

## औज़ार और हेड
tools-width = { $words } [ और ], या Alt और पहिया, चौड़ाई बदलते हैं।
tools-shown-batch = दिखाया गया बैच
tools-shown-head = दिखाया गया हेड
tools-work-heads = काम के हेड
heads-all = सभी हेड
heads-shown = हेड { $h }, जो दिख रहा है
heads-first-half = पहला आधा, 0-{ $last }
heads-second-half = दूसरा आधा, { $first }-{ $last }
heads-selected = चुने हुए, { $heads }
heads-or = या
heads-such = जैसे 0-3, 7; या हेड की पट्टी में Ctrl+क्लिक
layer-heads-of = { $name } के हेड
layer-name-of = लेयर { $id } का नाम
tabs-close = यह दस्तावेज़ बंद करें
tabs-new = टैब में नया दस्तावेज़
tabs-no-file = अभी किसी फ़ाइल में नहीं

## स्ट्रोक क्या करता है
paint-one-head = केवल हेड { $heads }: { $words }
paint-some-heads = केवल हेड { $heads }: { $words }
paint-first = पहला स्ट्रोक खाली मास्क से शुरू होता है: केवल पेंट की सेल रखी जाती हैं।
paint-new = नई पेंट लेयर में सेल रखता है।
paint-in = { $name } में सेल रखता है।
paint-restores = { $name } की हटाई सेल लौटाता है, और सेल रखता है।
paint-removes-new = { $name } से सेल हटाता है, और ऊपर की एक लेयर से बाक़ी लेयर से।
paint-removes = { $name } में सेल हटाता है।
paint-removes-above = बाक़ी के ऊपर की नई लेयर में सेल हटाता है।

## ssh का सवाल
question-title = Maskloom: ssh का सवाल
question-answer = उत्तर
question-send = ssh को उत्तर दें
