# “निर्यात” पेज: इस्तेमाल का प्रोग्राम, लिखी जाने वाली फ़ाइलें, अगले क़दम।
export-creating = फ़ाइलें बन रही हैं
export-changes = फ़ाइल कैसे बदलती है
export-files = { $n ->
    [one] { $n } फ़ाइल
   *[other] { $n } फ़ाइलें
}
export-files-per-head = { $files }, { $heads } हेड में से हर एक के लिए एक मास्क
export-question = आप क्या इस्तेमाल करते हैं?
export-where = कहाँ
export-folder = फ़ोल्डर
export-config = ट्रेनर की config.json
export-config-none = कोई नहीं: नई बनेगी
export-browse = ब्राउज़…
export-browse-name = ब्राउज़: { $name }
export-in-place-tip = { $file } को मान मिलता है; पुरानी फ़ाइल उसके पास { $name }.bak के रूप में रखी जाती है।
export-in-place = इस फ़ाइल को बदलें
export-copy = बदली हुई प्रति लिखें: { $path }
export-copy-tip = मूल फ़ाइल नहीं बदलती।
export-no-mask = बिना मास्क वाले विकल्प
export-setting = अटेंशन सेटिंग
    .tip = ट्रेनर की कॉन्फ़िगरेशन को मिलने वाला मान। flex तभी रखा जाता है जब आप उसे चुनें।
export-to-write = लिखी जाने वाली फ़ाइलें
export-write = { $name } लिखें
export-shows = उसकी सामग्री दिखाता है।
export-replaced = { $n } पहले से हैं और बदल दी जाएँगी: { $names }।
export-replaced-more = { $n } पहले से हैं और बदल दी जाएँगी: { $names } और { $more } अन्य।
export-written = लिखा गया
export-open-folder = फ़ोल्डर खोलें
    .tip = सिस्टम के फ़ाइल मैनेजर में।
export-count-in = { $files } यहाँ:
export-has-value = नए मान वाली:
export-old-file = पुरानी फ़ाइल:
export-had-value = यह मान पहले से था:
export-next = आगे
export-copy-lines = { $kind } की पंक्तियाँ कॉपी करें
export-file-tip = { $what } ({ $bytes } बाइट)
export-has-setting = फ़ाइल में यह सेटिंग पहले से है और वह नहीं बदलती।
export-binary = मशीन कोड या दूसरा बाइनरी डेटा

## उत्तर
use-simpletuner = SimpleTuner
    .words = ट्रेनर की config.json और एक sidecar; ट्रेनर ख़ुद नहीं बदलता
use-diffusers = diffusers
    .words = एक कॉल मास्क को pipeline के transformer पर लगाती है
use-transformers = transformers
    .words = एक कॉल मास्क को लोड किए मॉडल पर लगाती है
use-pytorch = मेरा अपना PyTorch
    .words = mask_mod, score_mod और block mask वाला मॉड्यूल
use-kernels = CUDA कर्नल
    .words = sm_80 और sm_90a के लिए कंपाइल, PyTorch ऑपरेटर के रूप में; यहाँ NVRTC चाहिए, GPU नहीं
use-mask = केवल मास्क
    .words = डिज़ाइन, उसकी ब्लॉक-सूचियाँ, एक चित्र और एक रिपोर्ट
use-everything = सब कुछ
    .words = कर्नल को छोड़कर सभी फ़ाइलें

## बटन
export-replace-them = उन्हें बदलें
export-write-files = फ़ाइलें लिखें
