# कैनवास: नियंत्रण, सेल की जानकारी, रंगों का अर्थ, पैच, आँकड़े।
canvas-name = मास्क का कैनवास
canvas-no-score = कोई score mod नहीं: स्कोर में कुछ नहीं जुड़ता।
canvas-not-compared = तुलना वाले मास्क की लंबाइयाँ अलग हैं।
canvas-kept-now = { $words }, अभी { $share } रखा गया
canvas-incomplete = चित्र अधूरा है: { $why }
canvas-overview = मास्क का सारांश
canvas-computing = गणना हो रही है…
canvas-head = हेड { $n }
canvas-batch = बैच { $n }
canvas-heads-tip = क्लिक यह हेड दिखाता है। Ctrl+क्लिक उसे चुनता है, Shift+क्लिक उस तक के सभी हेड चुनता है। फिर पेंट और नई लेयर चुने हुए हेड पर लागू होती हैं।

## नियंत्रण
canvas-fit = पूरा
    .tip = पूरा मास्क दिखाता है (Home)।
canvas-zoom-in = ज़ूम इन
    .tip = ज़ूम इन (प्लस, या पहिया)।
canvas-zoom-out = ज़ूम आउट
    .tip = ज़ूम आउट (माइनस, या पहिया)।
canvas-size = एक टोकन का चित्र में आकार।
canvas-cell-size = सेल { $n } px
canvas-pixel-size = 1 px = { $n } टोकन
canvas-go = यहाँ जाएँ
    .tip = q_idx और kv_idx से सेल पर जाता है (Ctrl+L)।
canvas-go-name = सेल पर जाएँ
canvas-fit-whole = पूरा मास्क दिखाएँ
canvas-go-cell = किसी सेल पर जाएँ…
canvas-steps = उसके क़दम दिखाएँ
    .tip = इस सेल पर mod का मूल्यांकन, “सेल” पेज पर।
canvas-near = उसके पास जाएँ
canvas-block = उसके ब्लॉक तक ज़ूम करें
canvas-select = { $name } चुनें, जो यह सेल तय करती है
canvas-copy = q_idx, kv_idx कॉपी करें

## पॉइंटर के नीचे की सेल
cell-block = ब्लॉक ({ $row }, { $col }) { $kind }
cell-block-unknown = अज्ञात: विश्लेषण विफल हुआ
cell-block-empty = खाली
cell-block-beyond = आंशिक (अंत से आगे), सब रखा गया
cell-block-full = पूरा
cell-block-partial = आंशिक, { $share } रखा गया
cell-kept = रखी गई
cell-masked = मास्क की गई
cell-kept-by = { $layer } ने रखी
cell-masked-by = { $layer } ने मास्क की
cell-as-in = { $words }, { $name } जैसी
cell-kept-in = { $words }; { $name } में रखी गई
cell-masked-in = { $words }; { $name } में मास्क की गई
cell-number = { $quantity } { $value }, { $source }, { $words }
cell-bias = बायस { $bias }, { $words }
cell-bias-is = बायस { $bias }
cell-dropped = छोड़ी गई

## रंगों का अर्थ
legend-of = { $before } का
legend-numbers = { $title }: { $ends }
legend-masked = मास्क किया
legend-full = पूरा
legend-partial = आंशिक
legend-empty = खाली
legend-both = दोनों में
legend-only = केवल { $name } में रखा
legend-now = केवल अभी रखा
legend-there = केवल वहाँ रखा
legend-rows = पंक्ति सब से शून्य तक रखती है
legend-share = रखा गया हिस्सा
legend-dropped = छोड़ा गया
legend-kept = रखा गया
legend-kept-partial = रखा, आंशिक ब्लॉक में
legend-kept-full = रखा, पूरे ब्लॉक में
legend-in-empty = खाली ब्लॉक में
legend-bias = बायस { $lo } से { $hi }
legend-bias-heads = बायस { $lo } से { $hi }, सभी हेड पर
legend-means = { $bias }, प्रति पिक्सेल कुछ सेल का औसत
legend-stretched = { $side } { $times } गुना बड़ा बनाया
legend-sampled = ≈ कुछ हिस्से नमूने से हैं

## आँकड़े
heat-of = { $quantity }, { $source }
heat-file = { $quantity }, { $file }
heat-empty = मैट्रिक्स खाली है।
heat-name = हीट मैप: { $title }
heat-ends = { $lo } से { $hi }
heat-ends-more = { $lo } से { $hi } और अधिक
heat-log = लघुगणकीय
heat-hint = खींचने से खिसकता है, पहिए से ज़ूम, डबल क्लिक सब दिखाता है
heat-masked = { $words } (मास्क की गई)

## बन रहे आकार
tool-corners = कम-से-कम 3 में से { $n } कोने; Escape समाप्त करता है, Backspace आख़िरी कोना हटाता है
tool-closes = { $n } कोने; Enter, डबल क्लिक या पहले कोने पर क्लिक बंद करता है, Backspace आख़िरी हटाता है
tool-around = क्षेत्र के चारों ओर; Escape समाप्त करता है
tool-line = { $from } से { $to }
tool-rectangle = { $place }: { $rows } × { $cols } टोकन

## पैच
patches-query = Query { $q } = { $place }
patches-head = { $query }, हेड { $h }
patches-keeps = { $query }: { $all } में से { $n } key रखती है
patches-no-grid = इन key का ग्रिड नहीं है: दस्तावेज़ नहीं बताता कि कौन-से टोकन चित्र के पैच हैं।
patches-grid-tip = अक्ष { $axis } हो जाता है। “पूर्ववत् करें” वापस लेता है।
patches-grid-hint = पंक्तियाँ x स्तंभ
patches-grid-name = key का ग्रिड
patches-capture = कैप्चर का ग्रिड लें
patches-no-keys = कोई key नहीं है
patches-write = पंक्तियाँ x स्तंभ, या फ़्रेम x पंक्तियाँ x स्तंभ लिखें
patches-differ = { $text } में { $n } पैच हैं, `{ $name }` में { $len } टोकन
patches-frames-of = { $name } के फ़्रेम
patches-frames-tip = हर फ़्रेम की रखी key, सबसे अधिक वाले फ़्रेम के मुक़ाबले; क्लिक उसे दिखाता है।
patches-frame-of = { $name } का फ़्रेम
patches-query-frame = query का फ़्रेम
    .tip = query का फ़्रेम दिखाता है।
patches-queries = Query: { $segment }
patches-kept-frame = { $segment }: इस फ़्रेम में { $all } में से { $n } रखी गईं, कुल { $whole }
patches-kept = { $segment }: { $all } में से { $n } रखी गईं
patches-queries-of = { $name } की query
patches-keys-in = { $name } में key
