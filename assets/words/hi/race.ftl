# “रेस” पेज: बार, backward pass, लंबाइयाँ, रूफ़लाइन, कौन डिज़ाइन लेता है, सेटिंग, अब तक की रेस।

## एक आँकड़े में लागत
card-costs-faster = { $time }  ·  { $ratio } गुना तेज़
card-costs-than = { $base } से; { $rest }
card-costs-forward = { $backend }: { $words }, forward pass
card-costs-less = हर सेल की गणना से { $ratio } गुना कम; समय अभी नहीं मापा गया
card-costs-same = बिना मास्क जितनी ही गणना; समय अभी नहीं मापा गया
card-costs-nothing = कोई सेल नहीं रखा गया: कुछ गणना नहीं होती
card-costs-arithmetic = गणना किए जाने वाले ब्लॉक का काम। समय रेस दिखाती है।
card-costs-arithmetic-is = गणना किए जाने वाले ब्लॉक का काम: { $flop }।
card-costs-about = { $card }: लगभग { $time }, { $basis }
card-costs-estimates = Flex, forward pass। रिकॉर्ड किए डिज़ाइनों में आधे का अनुमान 15% के भीतर है, पाँच में से चार का 1.6 गुना के भीतर; मेमोरी से बहुत पढ़ने वाले score mod को कई गुना समय लग सकता है। समय रेस दिखाती है।

## रेस
race-recorded-cards = जाने-माने कार्ड पर रिकॉर्ड
race-who = रेस में कौन: { $names }
race-inputs = इनपुट
race-copy-picture = छोटी प्रति का चित्र
race-copy-shares = अपनी { $kept } सेल रखती है; पूरा डिज़ाइन { $whole } रखता है
race-copy-shares-then = अपनी { $kept } सेल रखती थी; रेस के समय पूरा डिज़ाइन { $whole } रखता था
race-whole-takes = पूरे डिज़ाइन में लगभग { $time } लगते हैं (अनुमान: 20 GFLOP/s वाले { $n ->
    [one] { $n } थ्रेड
   *[other] { $n } थ्रेड
})।
race-starts = रेस शुरू हो रही है…
race-other-document = किसी दूसरे दस्तावेज़ की रेस चल रही है।
race-backends = बैकएंड की रेस कराएँ
race-names-on = { $names }, { $device } पर
race-smaller-races = CPU पर उसी मास्क की छोटी प्रति कुछ सेकंड में दौड़ती है।
race-checked-first = हर बैकएंड पहले { $reference } से जाँचा जाता है, फिर बारी-बारी से उसका समय मापा जाता है।
race-cannot-run = नहीं चल सकता: { $why }
race-forward-only = { $from }, केवल forward
race-stale = पुराना
    .tip = उसके बाद दस्तावेज़ बदल चुका है: ये आँकड़े पिछले मास्क के हैं।
race-again = फिर चलाएँ
race-raced-copy = रेस हुई: { $whole } में से { $copy }, वही मास्क, छोटी विंडो और लंबाइयों के साथ। GPU पर, या “पूरा चलाएँ” से, पूरे डिज़ाइन की रेस होती है।
race-smaller-copy = छोटी प्रति
race-copy-not = { $copy }, { $whole } नहीं
race-recorded = रिकॉर्ड किया हुआ
race-of-cells = { $share } सेल, { $flop }
race-stopped = बीच में रोक दी गई
race-environment = परिवेश
race-before-timing = समय मापने से पहले: { $card }
race-after-timing = समय मापने के बाद: { $card }

## एक बार
race-samples = { $n } मापों का माध्यक और चतुर्थक-अंतर का आधा।
race-samples-calls = { $n } मापों का माध्यक और चतुर्थक-अंतर का आधा। GPU का हिस्सा, { $clock } से मापा गया। पूरी कॉल में { $call } लगते हैं।
race-untimed = जाँचा गया, समय नहीं मापा गया
race-launch-bound = ये कॉल करने वाला प्रोग्राम अपने होस्ट की प्रतीक्षा करता है। बार और अनुपात GPU पर लगे समय के हैं।
race-holds = { $bytes } घेरता है
race-memory = मेमोरी: { $how }।
race-why = कारण: { $why }।
race-limits-tip = { $what }। क्लिक दिखाता है कि उसे क्या सीमित करता है, और दूसरे कार्ड पर वह कितना होगा।
race-limits = { $name } को क्या सीमित करता है
race-wrong = ग़लत नतीजा
    .tip = इसका समय नहीं मापा जाता।
race-rate = रखी गई सेल का { $rate }
race-baseline = आधार  { $rate }
race-baseline-tip = बाक़ी पंक्तियों का आधार: { $ran }।
race-no-difference = कोई अंतर नहीं दिखा
race-no-difference-of = कोई अंतर नहीं दिखा ({ $ratio }x { $base })
race-against = { $base } की तुलना में { $ran }: { $words }।
race-refused = अस्वीकृत
race-failed = विफल
race-refused-by = अस्वीकृत: { $names }
race-failed-by = विफल: { $names }
race-nan-rows = { $all } में से { $n } पंक्तियों में NaN
race-error-ok = त्रुटि { $error } ठीक
race-wrong-nan = { $n } ग़लत NaN
race-error-wrong = त्रुटि { $error }: ग़लत
race-rows-of = { $all } में से { $n } पंक्तियाँ
race-check-fault = ग़लत: { $fault }।
race-check-error = { $reference } की तुलना में सबसे बड़ी त्रुटि: { $error }; सापेक्ष rms { $rms }{ $more }।
race-check-limit = हर पंक्ति की अपनी सीमा है, सबसे बड़ी { $limit } है: { $from }।
race-check-rows = तुलना की गई: { $rows }।

## Backward pass
backward-title = Backward pass
backward-column = backward
backward-both = दोनों
backward-memory = मेमोरी
backward-worst = सबसे ख़राब ग्रेडिएंट
backward-refused = { $backend }: backward अस्वीकृत: { $why }
backward-failed = { $backend }: backward विफल: { $why }
backward-order = जोड़ के तय क्रम में; किसी भी क्रम में backward pass { $time } लेता है ({ $more }%)।
backward-held = Forward और backward मिलाकर, { $how }।
backward-ok = { $name } { $error } ठीक
backward-allowed = { $limit } तक मान्य
backward-wrong = ग़लत: { $words }

## लंबाइयों पर
lengths-title = लंबाइयों पर
lengths-question = किस लंबाई से मास्क समय बचाता है?
lengths-before = पिछले बदलाव से पहले के डिज़ाइन का
lengths-refused = { $tokens } टोकन: { $why }
lengths-progress = { $all } में से { $over } लंबाइयाँ
lengths-progress-left = { $all } में से { $over } लंबाइयाँ, यह वाली { $left }
lengths-tokens = टोकन
lengths-time = एक पास का समय
lengths-name = लंबाई के साथ समय
lengths-kept = रखा
lengths-fastest = सबसे तेज़
lengths-against = तुलना में
lengths-nothing = कुछ भी नहीं मापा गया

## रूफ़लाइन
roof-words = { $device } की डेटा शीट के अनुसार: 16 बिट में { $flop }, मेमोरी से { $bytes }। गणना और बाइट वह न्यूनतम हैं जो { $backend } अपने हिसाब से करता है; समय मापा हुआ है।
roof-unknown = { $device } की डेटा शीट यहाँ ज्ञात नहीं है (या टेंसर 16 बिट के नहीं हैं), इसलिए नहीं कहा जा सकता कि उसे क्या सीमित करता है। जिन सेल को वह छूता है, उन सबको गिनकर गति { $flop } है; पंक्ति की दर केवल रखी गई सेल गिनती है।
roof-others = दूसरे कार्ड पर
roof-others-words = flex के forward का अनुमान, रिकॉर्ड किए रन और डेटा शीट से; मापा हुआ नहीं।
roof-title = रूफ़लाइन: { $from }
roof-dot = { $backend }: गणना की गई सेल का { $flop }
roof-dot-share = { $backend }: गणना की गई सेल का { $flop }, छत का { $share }
roof-about = गणना की गई सेल का काम, ले जाए गए बाइट से भाग देकर; दोनों कर्नल के अपने हिसाब से न्यूनतम। छत कार्ड की डेटा शीट है। ऊपर किसी पंक्ति के नाम पर क्लिक बताता है कि उसे क्या सीमित करता है।
roof-none = इस डिवाइस की डेटा शीट ज्ञात नहीं है, इसलिए छत नहीं है।
roof-y = गणना की गई सेल का FLOP/s
roof-x = प्रति बाइट FLOP
roof-name = रूफ़लाइन
roof-name-of = { $backend } की रूफ़लाइन
roof-memory = मेमोरी
roof-arithmetic = गणना

## कौन लेता है
verdicts-title = कौन इसे लेता है, forward और backward
verdicts-on = कहाँ
verdicts-others = बाक़ी { $day } तक के
verdicts-cpu = CPU
verdicts-who = कौन
verdicts-forward = forward
verdicts-backward = backward
verdicts-how = कैसे, या क्यों नहीं
verdicts-takes = लेता है
verdicts-dense = घना
verdicts-refuses = मना करता है
verdicts-back = backward: { $words }

## रेस में कौन, किन इनपुट पर
racers-rounds = समय मापने के दौर
racers-only = केवल सही-ग़लत
racers-fixed = निश्चित (deterministic) ग्रेडिएंट
    .tip = हर रन में ग्रेडिएंट के बिट एक जैसे रहते हैं: जोड़ तय क्रम में होता है। रेस दूसरे रन से यह जाँचती है और तय क्रम की लागत दिखाती है।
racers-own = मेरे PyTorch के ग्रेडिएंट जाँचें
    .tip = केवल आपके अपने PyTorch को इस डिज़ाइन पर उसके dtype और stride के साथ forward और backward चलाता है, और हर ग्रेडिएंट की float64 से तुलना करता है। ग़लत ग्रेडिएंट PyTorch की मिलती हुई ज्ञात समस्या के साथ दिखते हैं। CPU पर बड़ा डिज़ाइन छोटी प्रति के रूप में जाँचा जाता है; `maskloom conform --grad` पूरा जाँचता है।
racers-backward = backward pass भी
    .tip = q, k, v और कैप्चर किए टेंसर के ग्रेडिएंट, float64 से तुलना और समय के साथ।
racer-eager = Maskloom का: स्कोर मेमोरी में लिखता है और वापस पढ़ता है।
racer-sdpa = GPU पर cuDNN का fused कर्नल, अगर वह मास्क लेता है, वरना घने मास्क वाला Maskloom का अपना; कभी block-sparse नहीं।
racer-flash = Maskloom का, FlashAttention-2 के एल्गोरिद्म से: पूरा या causal; दूसरे मास्क नहीं लेता।
racer-flex = Maskloom का: block-sparse, mod भीतर कंपाइल किए हुए।
racer-torch-eager = आपके अपने PyTorch में बिना fuse किया अटेंशन।
racer-torch-sdpa = आपके अपने PyTorch का scaled_dot_product_attention।
racer-torch-flex = आपके अपने PyTorch का flex_attention, कंपाइल किया हुआ।
racer-torch-flex-flash = आपके अपने PyTorch का flex_attention, flash बैकएंड के साथ।
racer-cudnn-flex = आपके अपने Python का cudnn.flex_attention: मास्क key की श्रेणियों के रूप में।
inputs-random = यादृच्छिक
    .tip = एक seed से मानक सामान्य मान।
inputs-file = safetensors फ़ाइल
    .tip = रिकॉर्ड किए q, k और v।
inputs-where = वर्कर की मशीन पर
inputs-path = इनपुट फ़ाइल
inputs-tensor = { $letter } का टेंसर
inputs-layout = फ़ाइल में
inputs-seed = seed

## अब तक की रेस
past-title = अब तक की रेस ({ $n })
past-of = किसकी
past-fastest = सबसे तेज़
past-when = कब, कहाँ
past-all = सभी
past-as = रेस { $id }, { $letter } के रूप में
past-compares = इसकी तुलना करता है।
past-forward = { $when }, { $where }, forward
past-both = { $when }, { $where }, forward और backward
past-choose = दो रेस की तुलना के लिए A और B चुनें।
past-over = B की तुलना में A
past-keeps = रखता है
past-work = काम
past-places = A { $a } पर चली, B { $b } पर।
