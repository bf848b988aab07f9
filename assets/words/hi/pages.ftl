# “सेल”, “कोड”, “समस्याएँ” और “कई GPU” पेज, और जॉब क्या करते हैं।

## सेल
cell-errors = दस्तावेज़ में त्रुटियाँ हैं।
cell-before = { $layers } की त्रुटि से पहले की स्थिति।
cell-no-lengths = अक्षों की लंबाइयाँ मान्य नहीं हैं।
cell-b = सेल का b
cell-h = सेल का h
cell-q = सेल का q_idx
cell-kv = सेल का kv_idx
cell-to = { $q } से { $kv }
cell-unpin = छोड़ें
    .tip = फिर पॉइंटर के साथ चलता है (Escape)।
cell-every = हर सेल रखी जाती है।
cell-score-of = score_mod, 1 के स्कोर का
cell-scores-stay = स्कोर वैसे ही रहते हैं।
cell-is-kept = रखी गई
cell-is-dropped = छोड़ी गई
cell-more = और { $n } अन्य
cell-patches = { $place } जिन पैच पर ध्यान देता है
cell-on-canvas = कैनवास पर
cell-makes-query = पैच पर क्लिक उसे query बनाता है।
cell-makes-key = पैच पर क्लिक उसे key बनाता है।
cell-patches-seen = { $name }: { $all } में से { $seen } पैच
cell-patches-of = { $name } के पैच

## कोड
code-linked = { $name } का कोड { $path } है: फ़ाइल बदलें; हर बार सहेजने पर वह फिर पढ़ी जाती है।
code-none = इस दस्तावेज़ की कोई लेयर संपादन योग्य कोड नहीं है।
code-mods = CUDA: mod
code-kernel = CUDA: कर्नल
code-compiler = कंपाइलर
code-steps = क़दम-दर-क़दम
code-no-kernel = अभी कर्नल नहीं: GPU पर चलाएँ, या यहाँ कंपाइल करें (NVRTC चाहिए, GPU नहीं)।
code-copy-tip = पूरा टेक्स्ट कॉपी करता है।
code-stale-tip = कंपाइल होने के बाद दस्तावेज़ बदल चुका है।
code-smaller-tip = उस छोटी प्रति के लिए कंपाइल किया गया जिसकी रेस हुई।
code-for = इसके लिए…
code-registers = { $n } रजिस्टर
code-shared = { $kb } KB shared memory
code-spilled = { $n } बाइट spill
code-spilled-tip = कुछ रजिस्टर local memory में spill होते हैं।
code-stack = { $n } बाइट स्टैक
code-blocks = प्रति मल्टीप्रोसेसर { $n } ब्लॉक
code-cached = कैश से
code-compiled = { $ms } ms में कंपाइल
code-silent = कंपाइलर ने कुछ नहीं छापा।
code-key = कैश कुंजी { $key }
code-field = कोड
code-apply = सुझाव लागू करें

## समस्याएँ
problems-the-code = कोड
problems-made-for = { $name } { $sizes } के लिए बना है।
problems-table = `{ $name }` में { $n } प्रविष्टियाँ हैं।
problems-call = यह उसका create_block_mask बताता है।
problems-sizes = कोड के आकार लें
    .tip = दस्तावेज़ की लंबाइयाँ, हेड और बैच वही रखता है जिनके लिए कोड बना है।

## कई GPU
gpus-predicted = एक लेयर का अनुमानित समय, forward और backward
gpus-imbalance = असंतुलन
gpus-received = मिली key
gpus-exposed = जो छिपा नहीं
gpus-plan = यह योजना
    .tip = Maskloom की योजना
gpus-imbalance-tip = सबसे धीमी GPU का काम, सबके औसत की तुलना में।
gpus-all-gather = हर key हर GPU को भेजी जाती है।
gpus-needed = GPU को केवल वही key ब्लॉक भेजे जाते हैं जो उसकी query सूचीबद्ध करती हैं।
gpus-heads = query, key, value और आउटपुट हेड के बदले भेजे जाते हैं, key के all-gather की इकाई में।
gpus-exposed-tip = आदान-प्रदान का वह समय जो किसी गणना में नहीं छिपता।
gpus-others = दूसरे तरीक़े इन मास्क के साथ क्या करते हैं
gpus-read-in = { $release } में पढ़ा गया
gpus-each = हर GPU का अटेंशन
gpus-tokens = { $n } टोकन
gpus-receives = { $bytes } पाती है
gpus-sent = एक forward pass में भेजे key और value, पंक्ति से स्तंभ तक { $unit }
gpus-bytes = GPU के बीच बाइट
gpus-errors = त्रुटियों वाले दस्तावेज़ की योजना नहीं बनती।
gpus-planning = योजना बन रही है
gpus-below = नीचे: { $before }
gpus-by-rank = rank के अनुसार मास्क
gpus-in-order = rank के क्रम में
gpus-figures = आँकड़े:
gpus-layers = इस मास्क की लेयर
gpus-leave-out = { $name } छोड़ें
gpus-add = एक प्रकार की लेयर जोड़ें
gpus-count = GPU
gpus-bandwidth = GB/s प्राप्त
    .tip = एक GPU को बाक़ी से जितना मिलता है: एक होस्ट के भीतर NVLink से लगभग 214, 400 Gbit/s नेटवर्क पर 45।
gpus-this-mask = यह मास्क

## वर्कर क्या कर रहा है
doing-hello = वर्कर शुरू हो रहा है
doing-run = चल रहा है
doing-map = अटेंशन मैप की गणना हो रही है
doing-compile = कर्नल कंपाइल हो रहा है
doing-doctor = सेटअप की जाँच हो रही है
doing-detached = जॉब पूछे जा रहे हैं
doing-files = वहाँ की फ़ाइलें पढ़ी जा रही हैं
doing-desk = जहाँ कैप्चर है वहाँ मापा जा रहा है

## चित्र की स्थिति
frame-no-picture = अभी चित्र नहीं: { $layers } में त्रुटियाँ हैं।
frame-before = { $layers } की त्रुटि से पहले की स्थिति

## बचा समय
left-almost = लगभग पूरा
left-seconds = लगभग { $n } सेकंड बाक़ी
left-minutes = लगभग { $n } मिनट बाक़ी
left-hours = लगभग { $n } घंटे बाक़ी
left-step = { $step }, { $left }

## कर्नल के बिना कोड
code-errors = दस्तावेज़ में त्रुटियाँ हैं: “समस्याएँ” देखें
