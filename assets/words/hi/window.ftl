# विंडो का ढाँचा: मेन्यू, ऊपर की पट्टी, पहले क़दम, कार्ड, औज़ार, किनारे वाला पेज, सेटअप।

## मेन्यू
menu = मेन्यू
    .tip = हर कमांड, समूह के अनुसार।
menu-file = फ़ाइल
menu-edit = संपादन
menu-view = दृश्य
menu-run = चलाएँ
menu-help = सहायता
menu-recent = हाल के
menu-go-to = यहाँ जाएँ
menu-dock = डॉक करें
    .tip = इस पेज और लेयर को कैनवास के बाएँ, दाएँ या नीचे रखता है।
menu-looks = अक्षर और थीम
menu-language = भाषा
    .tip = मेन्यू, व्याख्याओं और संदेशों की भाषा; कोड, फ़ाइलें और लॉग अंग्रेज़ी में रहते हैं।
menu-share = साझा करें
    .tip = चित्र या कोड कॉपी करता है, या सब कुछ एक HTML फ़ाइल में सहेजता है।

## शॉर्टकट सूची में कमांड के समूह
group-file = फ़ाइल
group-edit = संपादन
group-run = चलाना, खोलना और खोजना
group-workspaces = कार्यक्षेत्र
group-tools = औज़ार और लेयर
group-view = दृश्य

## ऊपर की पट्टी
top-workspace = कार्यक्षेत्र
top-name = दस्तावेज़ का नाम
top-no-file = अभी कोई फ़ाइल नहीं
top-changed = बदला हुआ
    .tip = कुछ बदलाव सहेजे नहीं गए हैं। अगली शुरुआत उन्हें लौटा देगी।
top-run = चलाएँ
top-racing = रेस चल रही है।
top-device = डिवाइस
top-device-where = { $device }, { $target } पर
top-device-best = उपलब्ध में सबसे अच्छा
top-starting = शुरू हो रहा है…

## पहले क़दम
start-words = Maskloom दिखाता है कि कौन-से टोकन किन टोकन पर ध्यान दे सकते हैं, उसे बदलने देता है और बचा हुआ समय मापता है।
start-hide = पहले क़दम छिपाएँ
    .tip = ये पहले क़दम छिपाता है; “दृश्य” मेन्यू इन्हें फिर दिखाता है।
start-gallery = गैलरी
    .words = चित्रों के साथ तैयार मास्क
start-paste = FlexAttention कोड चिपकाएँ या खोलें
    .words = mask_mod, score_mod, पूरी फ़ाइलें
start-config = ट्रेनर की config.json खोलें
    .words = मास्क को उसके मॉडल पर बैठाएँ, वापस निर्यात करें
start-connect = GPU जोड़ें
    .words = ssh, Slurm, कंटेनर
start-tour = टूर देखें
    .words = 90 सेकंड, अपने-आप चलता है
start-learn = पाठ, क़दम दर क़दम
    .words = ब्लॉक क्या है, यह तेज़ क्यों है

## किनारे वाले पेज
page-design = इंस्पेक्टर
page-race = रेस
page-quality = मास्क की गुणवत्ता
page-code = टेक्स्ट
page-export = आपका प्रोग्राम
page-learn = पाठ
page-parallel = कई GPU
page-field = पेज
page-hide = किनारे वाला पेज छिपाएँ

## पट्टी के नीचे के कार्ड
card-kept = रखी गईं
card-kept-of = { $share } सेल
card-kept-none = – सेल
card-kept-full = { $size } का हर ब्लॉक पूरा है
card-kept-nothing = कुछ भी नहीं
card-kept-blocks = ब्लॉक: { $full } पूरे, { $partial } आंशिक, { $empty } छोड़े गए
card-kept-uncounted = गिना नहीं गया
card-kept-stopped = गिनती रोक दी गई; चित्र बना रहता है
card-kept-counting = गिनती चल रही है…
card-kept-broken = चित्र नहीं: { $layers } में त्रुटि
card-kept-before = { $layers } की त्रुटि से पहले की स्थिति
card-kept-errors = गिना नहीं गया: दस्तावेज़ में त्रुटियाँ हैं।
card-costs = लागत
card-costs-racing = रेस चल रही है…
card-costs-errors = दस्तावेज़ में त्रुटियाँ हैं
card-costs-untimed = समय नहीं मापा गया
card-costs-smaller = केवल छोटी प्रति की रेस हुई
card-costs-race = बैकएंड की रेस कराएँ
card-loses = खोता है
card-loses-unknown = मापा नहीं गया
card-loses-needs = मॉडल के q और k चाहिए
card-loses-why = softmax का कितना हिस्सा बचता है, यह असली query और key पर निर्भर है।
card-problems = समस्याएँ
card-problems-compiling = कंपाइल हो रहा है…
card-problems-none = कोई नहीं
card-problems-fine = कंपाइल होता है और चल सकता है
card-problems-warnings = { $n ->
    [one] { $n } चेतावनी
   *[other] { $n } चेतावनियाँ
}
card-problems-errors = { $n ->
    [one] { $n } त्रुटि
   *[other] { $n } त्रुटियाँ
}
card-problems-both = { $errors ->
    [one] { $errors } त्रुटि
   *[other] { $errors } त्रुटियाँ
}, { $warnings } चेतावनियाँ

## गंभीरता
severity-error = त्रुटि
severity-warning = चेतावनी
severity-note = सूचना

## कैनवास के ऊपर के औज़ार और चित्र
title-folder = { $name } ({ $folder })
title-number = { $name } ({ $all } में से { $n })
title-other = { $name } (दूसरा दस्तावेज़)
tools-layers = लेयर
picture-blocks = ब्लॉक
    .tip = BLOCK_SIZE के पूरे, आंशिक और खाली ब्लॉक।
picture-mask = मास्क
    .tip = हर पिक्सेल में रखा गया हिस्सा।
picture-bias = बायस
    .tip = शून्य स्कोर में score mod क्या जोड़ते हैं।
picture-scores = स्कोर
    .tip = पिछली रेस के इनपुट का q·k, स्केल और score mod के बाद।
picture-probabilities = प्रायिकताएँ
    .tip = पिछली रेस के इनपुट, softmax के बाद।
picture-loss = हानि
    .tip = “गुणवत्ता” में खुले कैप्चर के लिए मास्क से बाहर का अटेंशन, और हर पंक्ति में बचा हिस्सा।
picture-difference = अंतर
picture-difference-tip = जो सेल अब रखी गई हैं पर { $name } में नहीं, और इसका उलटा।
picture-patches-tip = { $tip } क्या दिखे, यह “ब्लॉक”, “मास्क”, “स्कोर” और बाक़ी विकल्प तय करते हैं।
picture-drawn = क्या दिखाया जाए
picture-log = log
    .tip = लघुगणक के अनुसार रंग।
tools-choose = औज़ार: { $tool }
    .tip = सभी औज़ार दिखाता है।
tools-more = और नियंत्रण
    .tip = जिसके लिए विंडो में जगह नहीं: हेड, आँकड़े, चल रहा काम।
tools-batch = बैच
tools-head = हेड
tools-all-heads = सभी हेड के लिए
tools-one-head = हेड { $heads } के लिए
tools-some-heads = हेड { $heads } के लिए
tools-heads-title = पेंट करने और नई लेयर के हेड
    .tip = वे हेड जिन पर औज़ार और नई लेयर लागू होती हैं।
tools-stop-counting = गिनती रोकें
    .tip = गिनती रोकता है; चित्र बना रहता है।
tools-count = गिनें
    .tip = ब्लॉक और सेल गिनता है।
tools-empty-rows = { $n } पंक्तियाँ कोई key नहीं रखतीं
tools-empty-rows-tip = उनका आउटपुट 0 और lse -inf है।

## नीचे की पट्टी में: माउस क्या करता है
mouse-pan = खींचने से चित्र खिसकता है, पहिए से ज़ूम होता है, क्लिक “सेल” पेज के लिए एक सेल चुनता है।
mouse-handles = आयत बदलने के लिए हैंडल खींचें, हिलाने के लिए उसका बीच; Shift से एक-एक टोकन खिसकता है।
mouse-rectangle = नई लेयर के रूप में सेल का एक आयत रखता है।
mouse-rectangle-first = पहला आयत खाली मास्क से शुरू होता है: केवल बनाई गई सेल रखी जाती हैं।
mouse-band = नई लेयर के रूप में सेल की तिरछी पट्टी रखता है।
mouse-band-first = पहली पट्टी खाली मास्क से शुरू होती है: केवल बनाई गई सेल रखी जाती हैं।
mouse-area = किसी क्षेत्र पर खींचें: उसकी रखी सेल, ब्लॉक, बर्बादी और बाइट बताए जाते हैं। { $borders }
mouse-polygon = क्षेत्र के चारों ओर कोनों पर क्लिक करें; Enter या डबल क्लिक उसे बंद करता है। { $borders }
mouse-lasso = किसी क्षेत्र के चारों ओर घेरा बनाएँ। { $borders }
mouse-borders = किनारे फ़्रेम और खंडों से जुड़ते हैं (Alt के साथ नहीं); Shift से अकेले टोकन चुने जाते हैं।
mouse-patches = किसी key पर क्लिक करने से वही query बन जाती है; तीर उसे खिसकाते हैं, पेज कुंजियाँ एक फ़्रेम से। G से मैट्रिक्स पर वापसी।

## चुने गए क्षेत्र के आँकड़े
area-within = { $place } के भीतर
area-forget = क्षेत्र छोड़ें
    .tip = चुना गया क्षेत्र छोड़ता है।
area-keep = इन्हें रखें
area-drop = इन्हें हटाएँ
area-kept = अपनी { $share } सेल रखता है
area-mass = अपनी query के अटेंशन का { $share } इसमें है, जिसका { $dropped } छूट जाता है
area-mass-tip = मास्क के बिना की प्रायिकता, { $source } के अनुसार; क्षेत्र की query का औसत।
area-too-many = इतने ब्लॉक एक-एक करके नहीं गिने जाते: छोटा क्षेत्र चुनें।
area-blocks = { $size } के ब्लॉक: { $full } पूरे, { $partial } आंशिक, { $empty } छोड़े गए
area-waste = बर्बादी: गणना की गई { $share } सेल फेंक दी जाती हैं
area-bytes = पढ़े गए key और value: प्रति हेड { $bytes }
area-bytes-tip = गणना किया गया हर ब्लॉक अपने key और value एक बार पढ़ता है; कर्नल को उनमें से कुछ अपने कैश में मिल सकते हैं।

## नीचे की पट्टी
status-compiling = कंपाइल हो रहा है…
status-cancel = रद्द करें
status-cancel-name = काम रद्द करें
status-no-worker = { $target } पर वर्कर नहीं है
status-worker = वर्कर { $target } पर चल रहा है।
status-waiting = वर्कर ने अभी जवाब नहीं दिया है।
status-internal = { $n ->
    [one] { $n } आंतरिक त्रुटि
   *[other] { $n } आंतरिक त्रुटियाँ
}
status-internal-tip = Maskloom की अपनी ग़लतियाँ; “संदेश” देखें।

## लेयर
layers-mask = मास्क लेयर
layers-mask-none = कोई नहीं: हर सेल रखी जाती है।
layers-score = Score mod
layers-score-none = कोई नहीं: स्कोर वैसे ही रहते हैं।
layers-add = जोड़ें
layers-add-mask = मास्क लेयर जोड़ें
layers-add-score = score mod जोड़ें
layers-select = पैरामीटर देखने के लिए कोई लेयर चुनें।
layers-down = नीचे
layers-up = ऊपर
layers-duplicate = प्रति बनाएँ
layers-delete = मिटाएँ
design-axes = अक्ष
design-shape = आकार
design-about = इस दस्तावेज़ के बारे में
design-more = और
design-queries = Query
design-tokens = टोकन
design-keys = Key

## संदेश
toast-dismiss = संदेश हटाएँ
    .tip = यह संदेश हटाता है; “संदेश” में वह बना रहता है।
problems-none = कोई समस्या नहीं: दस्तावेज़ कंपाइल होता है और चल सकता है।
problems-copy = कॉपी
    .tip = पूरा संदेश कॉपी करता है।
problems-apply = लागू करें
    .tip = सुझाव को कोड में लिखता है।
problems-layer = लेयर चुनता है।
close = बंद करें
done = हो गया
copy = कॉपी
    .tip = इसे कॉपी करता है।

## सेटअप
setup-on = { $target } पर
setup-empty = ड्राइवर, NVRTC, cuDNN, PyTorch, डिस्प्ले: हर एक उसे ठीक करने वाले कमांड के साथ।
setup-ok = ठीक
setup-missing = नहीं है
setup-broken = ख़राब
setup-copy-fix = { $name } का हल कॉपी करें
setup-versions = संस्करण
setup-guide = FlashAttention गाइड
    .tip = उसका लाभ, इंस्टॉल करना और हटाना।
setup-explain = त्रुटि संदेश समझें
    .hint = त्रुटि संदेश समझें: यहाँ चिपकाएँ
setup-language-system = सिस्टम जैसी ({ $name })
setup-language-fonts = इस सिस्टम के किसी फ़ॉन्ट में { $name } के अक्षर नहीं हैं, इसलिए विंडो अंग्रेज़ी में रहती है
setup-language-fonts-hint = कोई फ़ॉन्ट इंस्टॉल करें, जैसे Noto: sudo apt-get install -y { $package }

## सूची में एक लेयर
layer-pattern = पैटर्न
layer-rectangle = आयत
layer-band = पट्टी
layer-painted = पेंट
layer-code = कोड
layer-linked = जुड़ी फ़ाइल
layer-curve = वक्र
layer-picture = { $name } का चित्र
layer-picture-tip = वे सेल जो यह लेयर अकेली रखती है। सूची में दूसरी जगह खींच सकते हैं।
layer-enable = { $name } चालू करें
layer-enable-tip = लेयर चालू या बंद करता है।
layer-keep = रखें
layer-not = नहीं
layer-and = और
layer-or = या
layer-and-not = और नहीं
layer-joins = { $name } कैसे जुड़ती है
layer-joins-tip = नीचे की लेयर से कैसे जुड़ती है।
layer-all-heads = सभी हेड
layer-one-head = हेड { $heads }
layer-some-heads = हेड { $heads }
layer-heads-tip = वे हेड जिन पर यह लेयर लागू होती है।
layer-select = इसे चुनता है।
status-shape = { $queries } x { $keys } टोकन, { $dim } के { $heads } हेड, { $dtype }
status-shape-batch = { $queries } x { $keys } टोकन, बैच { $batch }, { $dim } के { $heads } हेड, { $dtype }

## शॉर्टकट सूची में कैनवास पर माउस और कुंजियाँ
keys-title = कीबोर्ड और माउस
keys-canvas = कैनवास पर
keys-zoom = पहिया, या प्लस और माइनस
    .does = पॉइंटर के आसपास ज़ूम; दो उँगलियाँ खिसकाती हैं
keys-move = खींचना, किसी भी औज़ार के साथ Space दबाकर
    .does = चित्र खिसकाता है; बीच का बटन और तीर भी
keys-click = क्लिक
    .does = सेल को “सेल” पेज के लिए चुनता है; Escape उसे छोड़ता है
keys-menu = दायाँ क्लिक
    .does = सेल के कमांड दिखाता है
keys-home = Home
    .does = पूरा मास्क
keys-arrow = Shift और तीर
    .does = लगभग एक स्क्रीन जितना खिसकाता है
keys-enter = Enter
    .does = बीच के क्रॉस पर औज़ार शुरू और ख़त्म करता है
keys-width = Alt और पहिया
    .does = ब्रश, इरेज़र या रेखा की चौड़ाई बदलता है
keys-brackets = [ और ]
    .does = ब्रश की चौड़ाई बदलता है; दूसरे औज़ार के साथ पिछला या अगला हेड दिखाता है
keys-escape = Escape
    .does = चल रहा स्ट्रोक रद्द करता है
keys-small = छोटे चित्र में खींचना
    .does = दृश्य खिसकाता है

## विंडो के ऊपर कोई फ़ाइल
drop-title = खोलने के लिए छोड़ें
drop-words = दस्तावेज़, FlexAttention कोड, रन, config.json, या q, k और v की safetensors फ़ाइल।
