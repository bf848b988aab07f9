# विंडो के ऊपर के डायलॉग।
cancel = रद्द करें
open = खोलें
save = सहेजें
there-are-none = कोई नहीं है।

## वर्कर कहाँ चलता है
connect-this = यह मशीन
connect-ssh = ssh से सर्वर
connect-slurm = Slurm जॉब
connect-container = कंटेनर
connect-title = GPU जोड़ें
connect-words = डिवाइस पर सारा काम वर्कर करता है। लक्ष्य का नाम लिखें, या वर्कर शुरू करने वाला कमांड; खाली का मतलब यह मशीन।
connect-command = लॉन्च कमांड
    .hint = यह मशीन
connect-such = जैसे:
connect-no-command = कोई कमांड नहीं
connect-python = वहाँ का PyTorch वाला Python
    .hint = वर्कर ख़ुद खोजता है
connect-give-up = इतने समय बाद छोड़ें:
connect-seconds = प्रतीक्षा के सेकंड
    .tip = कतार में रुके जॉब के लिए ज़्यादा सेकंड रखें।
connect-without = जवाब न मिलने पर
connect-go = जोड़ें
connect-before = पहले जुड़ चुका है। फ़ील्ड भर देता है।
connect-forget = इसे सूची से हटाता है।
connect-forget-name = { $title } को भूलें
connect-targets = लक्ष्य:
connect-by-ssh = ssh से:
connect-ssh-tip = ~/.ssh/config का { $name }, जहाँ maskloom इंस्टॉल होना चाहिए।
connect-waiting = { $target } पर वर्कर की प्रतीक्षा: { $limit } s में से { $waited } s
connect-still = अब भी जुड़ा है: { $target }।
connect-starting = { $target } पर वर्कर शुरू हो रहा है
connect-connected = { $host } से जुड़ा (Maskloom { $version })

## वह फ़ाइल जिसे दूसरे प्रोग्राम ने बदला
difference-title = फ़ाइल और यह दस्तावेज़
difference-words = - वाली पंक्तियाँ केवल फ़ाइल में हैं, + वाली केवल इस दस्तावेज़ में।
difference-later = बाद में तय करें
outside-reload = फिर पढ़ें
    .tip = फ़ाइल पढ़ता है; “पूर्ववत् करें” यह दस्तावेज़ लौटाता है।
outside-keep = मेरा रखें
    .tip = अगली बार सहेजने पर फ़ाइल बदल दी जाएगी।
outside-show = अंतर दिखाएँ
    .tip = अलग पंक्तियाँ दिखाता है।
typed-not-taken = { $name }: `{ $text }` नहीं लिया गया। इसे ठीक करें, या इसके बिना आगे बढ़ने के लिए आदेश फिर से दें।
outside-changed = { $name } को किसी दूसरे प्रोग्राम ने बदल दिया।
outside-gone = { $name } अब वहाँ नहीं है: उसे हटाया या कहीं और ले जाया गया, या उसकी डिस्क निकाल दी गई।
outside-again = फिर से सहेजें
    .tip = यह दस्तावेज़ उसी जगह लिखता है।
outside-unsaved = बिना सहेजे रखें
    .tip = दस्तावेज़ खुला रहता है, और सहेजे जाने तक बिना सहेजा माना जाता है।

## जब बिना सहेजे दस्तावेज़ रखे नहीं जा सकते, तब बंद करना
leave-title = बिना सहेजे दस्तावेज़ खो जाएँगे
leave-words = ये दस्तावेज़ सहेजे नहीं गए हैं, अगली शुरुआत के लिए रखे नहीं जा सकते, और खो जाएँगे: { $names }।
leave-save = खुले दस्तावेज़ को फ़ाइल में सहेजता है; फिर विंडो दोबारा बंद करें।
leave-anyway = फिर भी बंद करें
    .tip = बंद करता है; जो सहेजा नहीं गया, वह खो जाता है।
leave-tab = यह दस्तावेज़ सहेजा नहीं गया है, बिना सहेजे दस्तावेज़ों में रखा नहीं जा सकता, और अपने टैब के साथ खो जाएगा: { $names }।
    .save = दस्तावेज़ को फ़ाइल में सहेजता है; फिर टैब दोबारा बंद करें।
    .anyway = फिर भी बंद करें

## NVRTC इंस्टॉल करना
fetch-title = NVRTC लाएँ?
fetch-words = NVRTC GPU कर्नल कंपाइल करता है। यह कमांड उसे Maskloom के अपने फ़ोल्डर में इंस्टॉल करेगा:
fetch-outside = { $folder } के बाहर वह कुछ नहीं बदलता।
fetch-yes = लाएँ

## गैलरी
gallery-title = गैलरी
gallery-hint = नाम, मॉडल और विवरण खोजें; Enter पहला खोलता है
gallery-filter = फ़िल्टर
gallery-own = आपके सहेजे या खोले दस्तावेज़ यहाँ दिखते हैं।
gallery-folder = आपके अपने प्रीसेट: { $folder } की .json फ़ाइलें
gallery-none = इन शब्दों से कोई दस्तावेज़ नहीं मिलता।
gallery-all = सभी
gallery-recorded = { $from }: flex { $ms } ms
gallery-recorded-than = { $from }: flex { $ms } ms, { $words }
gallery-no-picture = चित्र नहीं: { $why }
gallery-language = भाषा मॉडल
gallery-images = चित्र
gallery-video = वीडियो
gallery-encoders = एनकोडर
gallery-patterns = पैटर्न
gallery-yours = आपके

## जॉब
jobs-title = जॉब
jobs-words = विंडो बंद होने या लाइन कटने पर भी ये चलते रहते हैं।
jobs-connected = { $target } ({ $host }), जुड़ा हुआ
jobs-remove = ख़त्म हुए हटाएँ
    .tip = ख़त्म हुए जॉब उनके नतीजों समेत हटाता है।
jobs-connect-tip = इसे वर्कर की मशीन बनाता है; जवाब आने तक मौजूदा बनी रहती है।
jobs-connect-name = { $title } जोड़ें
jobs-silent = पहुँच नहीं: { $why }
jobs-asking = दूसरे लक्ष्यों से पूछा जा रहा है
jobs-open-name = { $title } खोलें
jobs-end = समाप्त करें
jobs-end-name = { $title } समाप्त करें
jobs-of = { $state }, { $steps } में से { $done }
jobs-left = { $state }, { $left }
jobs-seconds = { $state }, { $seconds } s
jobs-another = { $state }, किसी दूसरे उपयोगकर्ता का
job-running = चल रहा है
job-ended = समाप्त
job-cancelled = रद्द
job-lost = बिना बताए समाप्त (बंद किया गया, या मशीन फिर शुरू हुई)
job-elsewhere = दूसरी मशीन पर

## सूचियाँ
lists-unchanged = दस्तावेज़ नहीं बदला।
lists-no-messages = अभी कोई संदेश नहीं है।
lists-seconds = { $n } सेकंड पहले
lists-minutes = { $n } मिनट पहले
lists-message = { $word }, { $ago }: { $message }

## पैलेट
palette-preset = प्रीसेट { $name } खोलें
palette-pattern = पैटर्न { $name } जोड़ें
palette-cell = सेल q { $q }, kv { $kv } पर जाएँ
palette-layer = { $name } चुनें
palette-parameter = { $layer } का पैरामीटर { $name }
palette-setting = सेटिंग { $name }
palette-open = { $name } खोलें
palette-token = “{ $said }”, टोकन { $token }
palette-query = “{ $said }”, query { $token }
palette-key = “{ $said }”, key { $token }
palette-axes = अक्ष और लंबाइयाँ
palette-batch = बैच
palette-heads = हेड
palette-scale = स्केल
palette-fast = fast math, लगभग tanh
palette-backends = रेस के बैकएंड
palette-rounds = समय मापने के दौर
palette-inputs = रेस के इनपुट, seed
palette-capture = कैप्चर, मास्क की हानि, सुझाए मास्क
palette-parallel = context parallel, कई GPU, rank, all-gather
palette-trainer = ट्रेनर की अटेंशन सेटिंग
palette-hint = कमांड, प्रीसेट, लेयर, पैरामीटर, फ़ाइल, टोकन, या q, kv के रूप में सेल
palette-name = कमांड
palette-none = कोई कमांड नहीं मिलता।
palette-preset-tip = प्रीसेट खोलता है; “पूर्ववत् करें” दस्तावेज़ लौटाता है।
palette-cell-tip = उसे बीच में लाकर चुनता है।
palette-layer-tip = उसे इंस्पेक्टर में दिखाता है।
palette-setting-tip = सेटिंग की जगह दिखाता है।

## चिपकाना
paste-title = FlexAttention कोड चिपकाएँ
paste-words = mask_mod, score_mod, lambda, या उन्हें लौटाने वाले फ़ंक्शन, उनके इस्तेमाल के स्थिरांक और टेंसर समेत।
paste-name = FlexAttention कोड
paste-new = नए दस्तावेज़ के रूप में
paste-layers = { $name } की लेयर के रूप में
paste-use = यह कोड लें
paste-nothing = अभी कुछ नहीं चिपकाया गया।
paste-no-mod = अभी कोई mod नहीं मिला; कोड अपनी त्रुटियों समेत लेयर के रूप में जुड़ेगा।
paste-wrong = अभी ठीक नहीं, पंक्ति { $line }:
paste-a-mask = एक मास्क
paste-a-score = एक score mod
paste-the-mask = मास्क { $name }
paste-the-score = score mod { $name }
paste-with = { $what }, { $args } के साथ
paste-and = { $what } और { $more }
paste-adds = { $what } जोड़ता है।
paste-tokens-line = { $q } x { $kv } टोकन, पंक्ति { $line } से।
paste-no-numbers = पंक्ति { $line } के आकार साधारण संख्याएँ नहीं हैं: अक्ष बाद में तय करें।
paste-tokens-of = { $n } टोकन, { $name } की लंबाई।

## पथ
path-exists = यह फ़ाइल पहले से है। बदलने के लिए फिर सहेजें।
path-on = कहाँ
path-on-name = { $name } पर
path-stays = कैप्चर वहीं रहता है: चित्र और आँकड़े आते हैं। दूसरी फ़ाइलें यहाँ खुलती हैं।
path-path = पथ
path-browse-tip = सिस्टम का फ़ाइल डायलॉग खोलता है, अगर हो।
path-hidden = छिपी फ़ाइलें
path-above = ऊपर का फ़ोल्डर
path-none = यहाँ ऐसी फ़ाइलें नहीं हैं।
path-more = और { $n } अन्य, जिनके नाम लिखे जा सकते हैं
path-kinds = दस्तावेज़, कोड, टेंसर
path-open = दस्तावेज़, कोड, रन या टेंसर खोलें
path-config = ट्रेनर की config.json खोलें
path-save = दस्तावेज़ सहेजें
path-save-run = रन सहेजें
path-save-script = कैप्चर स्क्रिप्ट सहेजें
path-save-html = डिज़ाइन को एक HTML फ़ाइल में सहेजें
path-link = FlexAttention कोड वाली Python फ़ाइल जोड़ें
path-link-yes = जोड़ें

## नई लंबाइयाँ
resize-title = लंबाइयाँ बदलती हैं
resize-question = { $old } से { $new } टोकन। बनाई गई लेयर का क्या किया जाए?
resize-keep = वैसे ही रखें
    .tip = हर सेल, आयत और पट्टी अपने टोकन पर रहती है।
resize-scale = स्केल करें
    .tip = पेंट की सेल, आयत, पट्टियाँ और दूरी के वक्र नई लंबाइयों के अनुसार स्केल होते हैं।
resize-repeat = दोहराएँ
    .tip = पेंट की सेल दोनों अक्षों पर दोहराई जाती हैं; बाक़ी सब अपने टोकन पर रहता है।

## ट्रेनर की कॉन्फ़िगरेशन
trainer-title = ट्रेनर की कॉन्फ़िगरेशन
trainer-unset = तय नहीं
trainer-today = अभी: { $words }
trainer-first = पहले, बिना मास्क वाले विकल्प
trainer-shape = { $axis } = { $tokens } टोकन, { $heads } हेड, { $kv } kv हेड, head_dim { $dim }
trainer-race = जिन विकल्पों को मास्क नहीं चाहिए, उनकी रेस कराएँ
trainer-race-tip = मॉडल के असली आकार पर { $names }। सबसे तेज़ ही शायद काफ़ी हो।
trainer-unknown = इस मॉडल परिवार का आकार ज्ञात नहीं: किसी प्रीसेट से शुरू करें।
trainer-or-preset = या इस मॉडल के प्रीसेट से शुरू करें
trainer-preset = प्रीसेट से शुरू करें
trainer-export = “निर्यात” लिखने से पहले दिखाता है कि इस फ़ाइल में क्या बदलेगा, और एक प्रति रखता है।

## बिना सहेजे दस्तावेज़
unsaved-title = जो दस्तावेज़ सहेजे नहीं गए
unsaved-words = ये दस्तावेज़ सहेजे जाने से पहले बदल दिए गए। सबसे नए पहले हैं।
unsaved-nothing = यह विंडो दो शुरुआतों के बीच कुछ नहीं रखती।
unsaved-most = सबसे नए { $n } तब तक रखे जाते हैं जब तक आप उन्हें न छोड़ें।
unsaved-open-name = { $name } खोलें
unsaved-discard = छोड़ें
unsaved-discard-name = { $name } छोड़ें
unsaved-for-good = हमेशा के लिए छोड़ें
unsaved-for-good-name = { $name } हमेशा के लिए छोड़ें
unsaved-last = आख़िरी: { $step }, { $ago }
unsaved-older = पुरानी स्थिति { $path } में है
unsaved-moment = अभी-अभी
unsaved-minutes = { $n } मिनट पहले
unsaved-hours = { $n } घंटे पहले
unsaved-days = { $n } दिन पहले
