# विंडो क्या बताती है कि हुआ, और जो विफल हुआ उसके शीर्षक।

## दस्तावेज़ और लेयर
done-order = अलग-अलग तरीक़ों से जुड़ने वाली लेयर का क्रम बदलने से मास्क की रखी सेल बदलती हैं; “पूर्ववत् करें” लौटाता है।
done-length = { $n } टोकन, { $name } की लंबाई।
done-lengths = { $q } x { $kv } टोकन, कोड की पंक्ति { $line } से।
done-added = { $path } को { $name } में लेयर के रूप में जोड़ा गया; “पूर्ववत् करें” हटाता है।
done-stays = जब तक आप न सहेजें, { $path } वैसी ही रहेगी।
failed-read = { $path } पढ़ी नहीं जा सकी
done-read-again = { $path } फिर पढ़ी गई। “पूर्ववत् करें” पहले का लौटाता है।
done-connected = { $host } से जुड़ा।
done-cancelled = रन रद्द किया गया।
done-begins-painted = मास्क अब केवल पेंट किया हुआ रखता है; “पूर्ववत् करें” सभी सेल लौटाता है।
done-begins-drawn = मास्क अब केवल बनाया हुआ रखता है; “पूर्ववत् करें” सभी सेल लौटाता है।
failed-save = दस्तावेज़ सहेजा नहीं जा सका
done-saved = { $path } सहेजा गया
done-saved-run = रन { $path } सहेजा गया
failed-save-run = रन सहेजा नहीं जा सका
done-saved-script = { $path } सहेजी गई, उसके पास maskloom_capturing।
failed-save-script = कैप्चर स्क्रिप्ट सहेजी नहीं जा सकी
done-saved-html = { $path } सहेजी गई। Maskloom उसे फिर खोलता है।
failed-save-html = पेज सहेजा नहीं जा सका
failed-document = दस्तावेज़ पढ़ा नहीं जा सका
done-restored = { $name } लौटाया गया; वह अब भी सहेजा नहीं है।
failed-open = { $path } खोली नहीं जा सकी
done-opened = { $path } खोली गई। { $before }
done-imported = { $path } आयात की गई। { $before }
done-inputs = रन { $path } के q, k और v लेते हैं: { $names }।
done-run = रन { $path } उसके दस्तावेज़ { $name } ({ $what }) के साथ खोला गया। “पूर्ववत् करें” पिछला दस्तावेज़ लौटाता है।
done-run-copy = छोटी प्रति का, { $sizes }
failed-export = निर्यात रुक गया
done-exported = { $files } को { $folder } में निर्यात किया गया
done-changed = { $path } बदली गई; पुरानी फ़ाइल उसके पास { $name } के रूप में है। { $files } { $folder } में लिखी गईं
done-had-setting = { $path } में यह सेटिंग पहले से थी, वह नहीं बदली। { $files } { $folder } में लिखी गईं
done-read = { $path } पढ़ी गई
done-installing = NVRTC इंस्टॉल हो रहा है; लगभग एक मिनट लगेगा।
done-new = नया दस्तावेज़। “पूर्ववत् करें” पिछला लौटाता है।
done-compared = अभी के { $name } से तुलना। उसे बदलें, पूर्ववत् करें, या दूसरा दस्तावेज़ खोलें।
done-linked = जुड़ी फ़ाइलें फिर पढ़ी गईं।
done-presentation = प्रस्तुति: F11 विंडो लौटाता है।
done-nvrtc = NVRTC { $folder } में इंस्टॉल हो गया।
done-undo-restores = “पूर्ववत् करें” पिछला दस्तावेज़ लौटाता है।
done-keeps-tab = पिछला दस्तावेज़ अपने टैब में रहता है।
done-unsaved = { $name } सहेजा नहीं गया; फ़ाइल > { $command } में वह है।
done-undone = पूर्ववत् किया: { $step }
done-again = फिर से किया: { $step }
done-detached = रेस जॉब { $id } के रूप में चलती है, इस विंडो के बिना भी। “जॉब” में वह है।
done-job = जॉब { $id }: { $state }; { $steps } में से { $done } नतीजे रखे गए।
done-jobs-removed = { $jobs } जॉब हटाए गए।
failed-open-there = { $target } पर { $path } खोली नहीं जा सकी
done-opened-there = { $path } खोली गई; यहाँ उसकी कोई फ़ाइल अभी नहीं है। { $before }
mending-again = विंडो का सत्र फिर शुरू हुआ
done-code = कोड कॉपी हो गया।
done-picture = चित्र कॉपी हो गया।
done-page = पेज का चित्र कॉपी हो गया।
sweep-plain = विंडो जैसे मान वैसे ही रहते हैं
sweep-grids = ग्रिड उन पर गिने जाने वाले मानों के साथ सिकुड़ते हैं

## क़दम
step-open = { $name } खोलना
step-rename = दस्तावेज़ का नाम बदलना
step-about = विवरण बदलना
step-axes = अक्ष बदलना
step-settings = सेटिंग बदलना
step-add = { $name } जोड़ना
step-remove = एक लेयर हटाना
step-move = लेयर का क्रम बदलना
step-name = लेयर का नाम बदलना
step-enable = लेयर चालू करना
step-disable = लेयर बंद करना
step-combine = लेयर के जुड़ने का तरीक़ा बदलना
step-heads = लेयर के हेड बदलना
step-layer = लेयर बदलना
step-change = { $name } बदलना
step-code = कोड बदलना
step-paint = पेंट करना
step-erase = मिटाना
step-nothing = कुछ नहीं

## लंबाइयों पर रेस
sweep-heads = { $n } हेड; { $moves }
sweep-some-heads = { $all } में से { $n } हेड; { $moves }

## वर्कर क्या करना बताता है
work-backends = बैकएंड खोजे जा रहे हैं
work-inputs = इनपुट बन रहे हैं
work-blocks = मास्क के ब्लॉक गिने जा रहे हैं
work-mods = इंटरप्रेटर से mod जाँचे जा रहे हैं
work-reference = float64 संदर्भ की गणना हो रही है
work-rounding = पूर्णांकन का असर मापा जा रहा है
work-warming = वार्म-अप
work-gradients = ग्रेडिएंट की गणना हो रही है
work-python = Python की प्रतीक्षा, जिसने अभी कुछ नहीं कहा
work-round = समय मापने का दौर { $n }, कुल { $all }
work-timed = { $all } में से { $n } दौर मापे गए
work-preparing = { $name } तैयार हो रहा है
work-compiling = { $name } कंपाइल हो रहा है
work-done = { $name } हो गया

## बैकएंड तेज़ क्यों है
why-short = { $why }; इतना छोटा कि लॉन्च का समय भी मायने रखता है
why-skips-dense = यह { $share }; दूसरा मास्क को घने टेंसर के रूप में पढ़ता है और कुछ नहीं छोड़ता
why-skips-scores = यह { $share }; दूसरा हर स्कोर मेमोरी में लिखता है
why-skips-plain = यह { $share }; दूसरा सबकी गणना करता है
why-computes = { $share }% टाइल की गणना करता है
why-skips = खाली ब्लॉक छोड़ता है
why-both-skip = दोनों खाली ब्लॉक छोड़ते हैं: अंतर कर्नल का अपना है
why-both-masked = दोनों मास्क किया हुआ छोड़ते हैं: अंतर कर्नल का अपना है
why-both-dense = दोनों मास्क को घने टेंसर के रूप में पढ़ते हैं: अंतर कर्नल का अपना है
why-dense-skips = यह मास्क को घने टेंसर के रूप में पढ़ता है और कुछ नहीं छोड़ता; दूसरा खाली ब्लॉक छोड़ता है
why-scores = यह हर स्कोर मेमोरी में लिखता है और फिर पढ़ता है
why-dense-scores = यह घना मास्क पढ़ता है पर स्कोर नहीं लिखता; दूसरा हर स्कोर मेमोरी में लिखता है
why-other-scores = दूसरा हर स्कोर मेमोरी में लिखता है और फिर पढ़ता है
why-same = गणना वही है: अंतर कर्नल का अपना है
why-nothing-masked = कुछ भी मास्क नहीं है: अंतर कर्नल का अपना है
why-other-dense = दूसरा मास्क को घने टेंसर के रूप में पढ़ता है और कुछ नहीं छोड़ता
why-dense = यह मास्क को घने टेंसर के रूप में पढ़ता है और कुछ नहीं छोड़ता
why-launch = लॉन्च से सीमित: प्रति कॉल { $call }, GPU पर { $own }
