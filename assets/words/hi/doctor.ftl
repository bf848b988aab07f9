# doctor की व्याख्याएँ: हर कोड के लिए कारण और (.fix) क्या करें। प्रोग्राम, विकल्प, कोड और संस्करण जैसे के तैसे।

explain-means = मतलब:
explain-do = करें:
explain-as-of = आधार:
explain-here = यहाँ:
explain-lost = { $sum } = { $factor }: इतनी लंबाई का एक अक्ष, जैसे हेड, खो गया
explain-uneven = { $sum } = { $factor }, पूर्ण संख्या नहीं: लंबाइयाँ अलग हैं
explain-unknown = यह संदेश अज्ञात है, और कोई मिलता-जुलता ज्ञात संदेश नहीं है।
explain-unknown-do = `maskloom doctor` चलाएँ, जो ड्राइवर, NVRTC, Python और डिस्प्ले जाँचता है
explain-own = यह Maskloom का अपना संदेश है: कोड के पीछे का पाठ बताता है कि क्या ग़लत है।
explain-own-do = संदेश के नीचे की पंक्ति `help:` जो कहती है
explain-similar = यह संदेश अज्ञात है। सबसे मिलते-जुलते ज्ञात संदेश:

doctor-diffusers-flex-missing = diffusers के flex बैकएंड को CUDA के साथ torch 2.5 या नया चाहिए।
    .fix = नया CUDA wheel इंस्टॉल करें: pip install -U torch --index-url https://download.pytorch.org/whl/cu128
doctor-flex-compile = किसी ट्रेनर की गाइड toolkit को दोष देती है, पर Triton अपने कंपाइलर से FlexAttention कंपाइल करता है और उसे nvcc नहीं चाहिए। यह संदेश न PyTorch में है, न diffusers में।
    .fix = उसके ऊपर की पंक्तियाँ पढ़ें: वे Triton का विफल चरण बताती हैं (Python.h या gcc नहीं, shared memory, पुराना ड्राइवर); `maskloom doctor --explain` उन्हें जानता है
doctor-flex-helper-missing = इस torch में ऐसा कोई helper नहीं है, भले ही ट्रेनर की गाइडें उसका नाम लेती हैं: Triton पहली कॉल पर FlexAttention कंपाइल करता है।
    .fix = helper हटाएँ; कॉल को लपेटें: torch.compile(flex_attention)। गाइड कहे तो torch अपग्रेड करें
doctor-cuda-tensors = चुना गया अटेंशन बैकएंड केवल CUDA पर चलता है; यह रन Apple silicon, ROCm या CPU पर है।
    .fix = इस रन के लिए अटेंशन बैकएंड की सेटिंग (`attention_mechanism`) हटाएँ
doctor-dtype = fused कर्नल को 16-बिट इनपुट चाहिए; ये float32 या float8 हैं।
    .fix = mixed_precision को bf16 या fp16 करें (Maskloom में: dtype bfloat16; float32 CPU पर चलता है)
doctor-backend-never-switches = मॉडल का परिवार diffusers के dispatcher की जगह ख़ुद PyTorch का SDPA बुलाता है, इसलिए केवल dispatcher को सेट करने वाले मान (flex, flash-attn) उस तक नहीं पहुँचते: sd1x, sd2x, sdxl, sd3, flux, lumina2, omnigen आदि। जो मान SDPA को बदलते हैं (sageattention, sla, kohaku-fa) या सीमित करते हैं (SimpleTuner 4.10 से cudnn और native-*), वे पहुँचते हैं।
    .fix = `maskloom advise config.json` आपके परिवार और मान के लिए बताता है; dispatch करने वाला परिवार लें (wan, ltxvideo, qwen_image, flux2, hunyuanvideo, z_image, chroma), या निर्यात किया sidecar, जो हर परिवार पर मास्क लगाता है
doctor-cuda-home = कोई पैकेज toolkit से CUDA कोड कंपाइल करता है, और वह इंस्टॉल नहीं है। Maskloom के अपने कर्नल को न nvcc चाहिए, न CUDA_HOME।
    .fix = torch.version.cuda से मेल खाता CUDA toolkit इंस्टॉल करें, या export CUDA_HOME=/usr/local/cuda
doctor-cuda-mismatch = torch इंस्टॉल किए toolkit या ड्राइवर से अलग CUDA संस्करण के लिए बना है।
    .fix = torch.version.cuda की तुलना `nvcc --version` और `nvidia-smi` से करें; उस CUDA का torch इंस्टॉल करें; extension pip install --no-build-isolation से बनाएँ
doctor-nvcc-too-old = कंपाइलर (nvcc, ptxas या NVRTC) कार्ड से पुराना है।
    .fix = नया toolkit इंस्टॉल करके CUDA_HOME उस पर करें, या पुराने आर्किटेक्चर के लिए कंपाइल करें (TORCH_CUDA_ARCH_LIST="8.0")
doctor-driver-too-old = ड्राइवर उस toolkit से पुराना है जिसने कर्नल कंपाइल किया।
    .fix = ड्राइवर अपडेट करें, या पुराना कंपाइलर लें: ड्राइवर 525 से 579 के लिए NVRTC 12.x (pip install nvidia-cuda-nvrtc-cu12)
doctor-flash-attn-abi = flash-attn का wheel दूसरे torch के लिए बना है।
    .fix = pip uninstall flash-attn, फिर ऐसा wheel इंस्टॉल करें जिसके torch, CUDA, Python और C++ ABI टैग आपके से मिलते हों
doctor-flash-attn-ampere = कार्ड की compute capability 8.0 से कम है।
    .fix = इस कार्ड पर sdpa इस्तेमाल करें
doctor-flash-attn-3-hopper = FlashAttention-3 केवल Hopper पर चलता है।
    .fix = इस कार्ड पर flash_attention_2 या sdpa इस्तेमाल करें
doctor-flash-attn-head-dim = FlashAttention-2 ऐसे head dim लेता है जो 8 के गुणज हों, 256 तक।
    .fix = head_dim को अगले 8 के गुणज तक pad करें, या flex या sdpa लें (Maskloom के अपने कर्नल ख़ुद pad करते हैं)
doctor-flash-attn-mask = FlashAttention-2 केवल पूरे या causal अटेंशन की गणना करता है, दूसरे मास्क नहीं लेता।
    .fix = block-sparse मास्क के लिए flex, या घने मास्क के साथ sdpa लें
doctor-flash-attn-build-slow = बिल्ड 10 से 30 मिनट लेता है और 8 GB से ज़्यादा मेमोरी ले सकता है; वह अटका नहीं है।
    .fix = रुकें, या पहले से बना wheel लें जिसके torch, CUDA, Python और ABI टैग मिलते हों
doctor-flash-attn-build-memory = flash-attn के समानांतर बिल्ड को 8 GB से ज़्यादा मेमोरी चाहिए।
    .fix = MAX_JOBS=2 pip install flash-attn --no-build-isolation, या पहले से बना wheel लें
doctor-flash-attn-broke-environment = flash-attn नहीं है, या उसके इंस्टॉल ने torch बदल दिया।
    .fix = flash-attn के बिना नया virtual environment बनाएँ और sdpa रखें; जाँच: python -c "import flash_attn; print(flash_attn.__version__)"
doctor-flex-uncompiled = बिना कंपाइल FlexAttention सारे स्कोर बना डालता है: धीमा है और चेतावनी नहीं देता।
    .fix = मॉड्यूल स्तर पर एक बार flex_attention = torch.compile(flex_attention); diffusers में मॉडल कंपाइल करें
doctor-recompile-limit = torch.compile ने बहुत-से अलग mod या आकार देखे और धीमे रास्ते पर लौट गया।
    .fix = mask_mod एक बार बनाकर दोबारा इस्तेमाल करें, आकार स्थिर रखें, या torch._dynamo.config.recompile_limit बढ़ाएँ
doctor-block-mask-length = BlockMask q और k से अलग लंबाइयों के लिए बना है।
    .fix = सही लंबाइयों के लिए बनाएँ: create_block_mask(mask_mod, B, H, q_len, kv_len)
doctor-triton-shared-memory = Triton कर्नल की टाइल कार्ड की shared memory में नहीं समातीं।
    .fix = छोटी टाइल दें: kernel_options={"{"}"BLOCK_M": 64, "BLOCK_N": 32, "num_stages": 1{"}"}
doctor-sdpa-no-kernel = जिस SDPA बैकएंड को ज़बरन चुना गया, वह ये इनपुट नहीं लेता (मास्क, dtype, head_dim या layout)।
    .fix = दूसरे की अनुमति दें (torch.nn.attention.sdpa_kernel में कई बैकएंड); त्रुटि के ऊपर की चेतावनियाँ कारण बताती हैं
doctor-block-mask-memory = कंपाइल न हो तो create_block_mask एक साथ B x H x Q x KV बूलियन की गणना करता है।
    .fix = create_block_mask(..., _compile=True); मास्क B और H न पढ़े तो None दें; या Maskloom से ब्लॉक सूचियाँ निर्यात करें, जो घना मास्क कभी नहीं बनाता
doctor-cuda-out-of-memory = कार्ड की मेमोरी भर गई है। बनाए गए स्कोर (eager, बिना कंपाइल flex) को हर हेड के लिए q_len x kv_len मान चाहिए।
    .fix = eager की जगह flex या sdpa लें, अनुक्रम छोटा या बैच कम करें; देखें कि flex_attention कंपाइल है
doctor-host-out-of-memory = कंप्यूटर की मेमोरी (कार्ड की नहीं) भर गई है: एक टेंसर को बची हुई से ज़्यादा चाहिए।
    .fix = संदेश के बाइट से टेंसर पहचानें: q_len x kv_len मान घना मास्क या सारे स्कोर हैं; BlockMask और कंपाइल किया flex लें, या छोटे अनुक्रम
doctor-illegal-address = कर्नल ने अपने टेंसर के बाहर पढ़ा। FlexAttention में आम कारण: कैप्चर किए टेंसर को उसके अंत से आगे पढ़ना, क्योंकि score_mod मास्क की गई जगहों पर भी चलता है।
    .fix = कैप्चर किए टेंसर pad की गई लंबाई जितने बनाएँ या इंडेक्स सीमित करें; `maskloom check FILE.py` सीमा से बाहर जा सकने वाले पठन दिखाता है
doctor-device-assert = कंपाइल किए कर्नल में इंडेक्स सीमा से बाहर है। आम कारण: कैप्चर किया टेंसर अनुक्रम से छोटा है।
    .fix = कैप्चर किए टेंसर pad की गई लंबाई जितने बनाएँ, या इंडेक्स सीमित करें
doctor-not-4d = FlexAttention q, k और v को [batch, heads, tokens, head_dim] रूप में लेता है।
    .fix = unsqueeze से छूटा आयाम जोड़ें, या [batch, tokens, heads, head_dim] वाले टेंसर पर transpose(1, 2) करें
doctor-head-dim-differs = query और key के आख़िरी आयाम अलग हैं।
    .fix = दोनों को एक ही head_dim पर लाएँ (केवल v का अलग हो सकता है)
doctor-heads-differ = key हेड query हेड से कम हैं।
    .fix = grouped query के लिए enable_gqa=True दें
doctor-gqa-heads = grouped query में हर kv हेड के लिए query हेड की पूरी संख्या चाहिए।
    .fix = ऐसे kv हेड चुनें जो query हेड को पूरा भाग दें
doctor-mods-callable = and_masks और or_masks फ़ंक्शन लेते हैं, टेंसर या BlockMask नहीं।
    .fix = mask_mod ही दें, और नतीजे से BlockMask बनाएँ
doctor-zero-length = कोई अनुक्रम खाली है। (CPU के लिए कंपाइल किया FlexAttention तब floating point exception से प्रक्रिया बंद कर देता है।)
    .fix = खाली अनुक्रम छोड़ें, या कम से कम एक टोकन के अक्ष लें
doctor-diffusers-flash-missing = diffusers को flash-attn नहीं मिला, या 2.6.3 से पुराना मिला।
    .fix = maskloom doctor --guide flash-attn; या वापस attention_mechanism "diffusers" पर जाएँ, जो SDPA है
doctor-diffusers-flash-3-missing = diffusers को FlashAttention-3 नहीं मिला। वह स्रोत से बनता है और केवल Hopper पर चलता है।
    .fix = flash-attn-3-hub लें, जो बना-बनाया डाउनलोड करता है, या attention_mechanism "diffusers"
doctor-diffusers-backend-missing = diffusers को माँगे गए अटेंशन बैकएंड का पैकेज नहीं मिला, या वह बहुत पुराना है।
    .fix = संदेश में लिखा पैकेज इंस्टॉल करें (sageattention का backward pass नहीं है: उससे प्रशिक्षण न करें), या वापस attention_mechanism "diffusers" पर जाएँ
doctor-transformers-flash-missing = attn_implementation flash-attn माँगता है। इस परिवेश में वह नहीं है या चल नहीं सकता (संदेश का अंत बताता है कौन-सा)।
    .fix = वापस attn_implementation="sdpa" पर जाएँ, जो अक्सर उतना ही तेज़ है; या maskloom doctor --guide flash-attn
doctor-transformers-unknown-setting = transformers इस attn_implementation को नहीं जानता; वह पंजीकृत नहीं है, या किसी ट्रेनर या diffusers का नाम है।
    .fix = eager, sdpa, flash_attention_2, flash_attention_3 या flex_attention लें; निर्यात किया adapter अपना नाम use(model) में पंजीकृत करता है
doctor-diffusers-unknown-backend = diffusers का set_attention_backend यह नाम नहीं जानता; ट्रेनर और transformers के नाम उसके अपने से अलग हैं।
    .fix = flash-attn है "flash", cudnn है "_native_cudnn", sdpa है "native", flex है "flex"
doctor-diffusers-kernels-missing = -hub बैकएंड अपने कर्नल `kernels` पैकेज से डाउनलोड करते हैं। वह नहीं है या बहुत पुराना है।
    .fix = pip install -U kernels
doctor-diffusers-capability = चुने गए बैकएंड को इससे नया कार्ड चाहिए।
    .fix = इस कार्ड पर attention_mechanism "diffusers" या "flex" लें
doctor-diffusers-mask-refused = चुना गया घना बैकएंड मास्क नहीं लेता, पर मॉडल एक देता है।
    .fix = attention_mechanism "diffusers" (घने मास्क के साथ SDPA) या "flex" लें
doctor-diffusers-mask-shape = बैकएंड मास्क के आकार को बैच, हेड, query और key पर broadcast नहीं कर सकता।
    .fix = उसे [batch, 1, 1 या q_len, kv_len] रूप में दें; BlockMask को बदलना नहीं पड़ता
doctor-block-mask-sliced = BlockMask को slice करने पर उसका mask_mod खो जाता है।
    .fix = मूल मास्क से फिर सेट करें: part.mask_mod = block_mask.mask_mod, slice की पहली query जितना खिसकाकर
doctor-block-mask-batch = q का बैच आकार k, v या ब्लॉक मास्क से अलग है।
    .fix = k और v को q के बैच तक expand करें, या ब्लॉक मास्क B=None से बनाएँ
doctor-block-mask-device = ब्लॉक मास्क q, k और v से अलग डिवाइस पर है।
    .fix = create_block_mask(..., device=query.device), या block_mask.to(query.device)
doctor-block-mask-no-mod = create_block_mask का आर्ग्युमेंट (b, h, q_idx, kv_idx) का फ़ंक्शन नहीं है।
    .fix = mask_mod ही दें; factory को पहले call करें: create_block_mask(sliding_window(1024), ...)
doctor-flex-cpu-backward = FlexAttention का CPU कर्नल केवल forward है।
    .fix = GPU पर प्रशिक्षण करें, या CPU पर sdpa लें
doctor-flex-device = FlexAttention का इस डिवाइस के लिए कर्नल नहीं है। Apple के mps के लिए PyTorch 2.15 में inference का कर्नल है, पुराने संस्करणों में नहीं।
    .fix = वहाँ sdpa लें: attention_mechanism "diffusers", attn_implementation "sdpa"
doctor-flex-backend-option = kernel_options ऐसा बैकएंड लिखता है जो इस torch में नहीं, या एक साथ दो।
    .fix = kernel_options से BACKEND हटाएँ, या उसे अकेले AUTO, TRITON, FLASH या TRITON_DECODE करें
doctor-branch-on-index = mod इंडेक्स या टेंसर पर शाखा बनाता है (`if`, `and`, `or`, `not`)।
    .fix = तुलनाओं के बीच & | ~ लिखें, और if की जगह torch.where(condition, a, b)
doctor-padding-mask-2d = diffusers का flex बैकएंड 2-D (batch, tokens) मास्क को query पर लगाता है, उसका native बैकएंड key पर।
    .fix = 4-D मास्क [batch, 1, 1, tokens] दें, या BlockMask
doctor-nvrtc-missing = कंपाइलर लाइब्रेरी NVRTC नहीं मिली।
    .fix = maskloom doctor --fix उसे pip से Maskloom के अपने फ़ोल्डर में इंस्टॉल करता है; या pip install nvidia-cuda-nvrtc-cu12; या MASKLOOM_NVRTC में उसका पथ दें
doctor-driver-missing = NVIDIA ड्राइवर नहीं है, या इस कंटेनर को कार्ड नहीं मिलता।
    .fix = ड्राइवर इंस्टॉल करें; कंटेनर --gpus all के साथ शुरू करें। उसके बिना Maskloom CPU पर चलता है
doctor-winit-library = विंडो के लिए ज़रूरी लाइब्रेरी या सर्वर नहीं है।
    .fix = sudo apt-get install -y libx11-6 libx11-xcb1 libxcursor1 libxi6 libxkbcommon0 libxkbcommon-x11-0 libgl1; `maskloom doctor` बताता है कौन-सी
doctor-devices-differ = एक क्रिया के दो टेंसर अलग डिवाइस पर हैं, अक्सर CPU पर बना मास्क या तालिका।
    .fix = मास्क query के डिवाइस पर बनाएँ: make_block_mask(query.device); डिज़ाइन लगाने से पहले मॉडल ले जाएँ
doctor-index-out-of-bounds = mod कैप्चर किए टेंसर को उसके अंत से आगे पढ़ता है: अनुक्रम तालिका से लंबा है।
    .fix = डिज़ाइन को मॉडल की लंबाई के लिए निर्यात करें; निर्यात किए मॉड्यूल दूसरी लंबाइयाँ संदेश के साथ नहीं लेते
doctor-mask-dtype = मास्क में पूर्णांक हैं; PyTorch bool (रखना) या float (जोड़ना) लेता है।
    .fix = mask.bool() दें, या query के dtype में additive मास्क
doctor-vmap-item = mod इंडेक्स पर शाखा बनाता है या टेंसर से संख्या पढ़ता है; mod सभी सेल पर एक साथ चलता है।
    .fix = `if` और `and` की जगह torch.where(condition, a, b) और `&` लिखें; `maskloom check FILE.py` बदला हुआ रूप दिखाता है
doctor-mod-arity = mask_mod (b, h, q_idx, kv_idx) लेता है, score_mod (score, b, h, q_idx, kv_idx), हर एक नाम वाला पैरामीटर; *args नहीं गिना जाता।
    .fix = सभी पैरामीटर के नाम लिखें; अगर trace maskloom_sidecar में है तो फिर निर्यात करें: पुराने sidecar मास्क वाले मॉडलों पर ऐसा करते थे
doctor-diffusers-mask-unsupported = चुना गया diffusers बैकएंड मास्क नहीं लेता, पर मॉडल एक देता है। (`_native_flash` ग़लती से aiter का नाम छापता है: context parallel में diffusers उसी पर जाता है, क्योंकि native-efficient और flex वह नहीं कर सकते।)
    .fix = `native` या `cudnn` चुनें (वे context parallel में भी चलते हैं, `flex` नहीं); निर्यात किए adapter या sidecar के साथ कोई भी बैकएंड चलता है
doctor-backend-not-registered = यह diffusers उस बैकएंड को नहीं जानता, या उसका पैकेज इंस्टॉल नहीं है।
    .fix = सूची देखें: python -c "from diffusers.models.attention_dispatch import AttentionBackendName as A; print(*A)"
doctor-kernels-version = बैकएंड को Hugging Face का `kernels` पैकेज चाहिए। वह नहीं है या बहुत पुराना है।
    .fix = pip install -U kernels; या `native` चुनें, जिसे कोई नहीं चाहिए
doctor-no-kernel-image = PyTorch के इस बिल्ड में, या trace वाली extension में, कार्ड के आर्किटेक्चर का कोड नहीं है।
    .fix = कार्ड के लिए बना बिल्ड इंस्टॉल करें: नए कार्ड को नए CUDA wheel चाहिए; Maskloom का bundle: --kernels sm_N के साथ निर्यात करें
doctor-build-hangs = flash-attn का बिल्ड 10 से 30 मिनट और 8 GB से ज़्यादा मेमोरी लेता है, बिना कोई आउटपुट दिए।
    .fix = रुकें, या MAX_JOBS=4 रखें; या पहले से बना wheel लें जिसके torch, CUDA, Python और ABI टैग मिलते हों
doctor-environment-broken = flash-attn के इंस्टॉल ने torch या दूसरे पैकेज बदल दिए।
    .fix = flash-attn के बिना नया virtual environment बनाएँ और sdpa रखें; फिर जाँचें: python -c "import torch; print(torch.__version__)"
doctor-sidecar-left = निगरानी वाली लेयर की कॉल के टोकन, या उनका ग्रिड, डिज़ाइन से अलग है, इसलिए वह मास्क के बिना चलती है।
    .fix = डिज़ाइन को उस रिज़ॉल्यूशन के लिए भी निर्यात करें और MASKLOOM_SIDECAR में दोनों फ़ोल्डर लिखें; MASKLOOM_SIDECAR_STRICT=1 इसे त्रुटि बनाता है
doctor-sidecar-unwatched = sidecar लोड है, पर इस प्रक्रिया के किसी मॉडल में निगरानी वाली लेयर नहीं है, या कोई चली नहीं।
    .fix = मॉडल की class को MASKLOOM_SIDECAR_MODELS में और उसकी लेयर को MASKLOOM_SIDECAR_LAYERS में लिखें; diffusers import करने वाली प्रक्रिया में transformers के मॉडल का नाम देना ज़रूरी है
doctor-sidecar-unknown-argument = मॉडल अपने अटेंशन को ऐसा आर्ग्युमेंट देता है जिसे runtime डिज़ाइन के साथ जोड़ नहीं सकता, इसलिए कॉल मास्क के बिना चलती है।
    .fix = ऐसी लेयर चुनें जिन्हें वह न चाहिए (layers=, MASKLOOM_SIDECAR_LAYERS), और उसका नाम Maskloom के डेवलपर को बताएँ
doctor-sidecar-beside-pattern = मॉडल पैटर्न से ज़्यादा लाता है, जैसे दोनों ओर ध्यान देने वाले टोकन के चित्र (PaliGemma, Gemma-3), इसलिए उसकी कॉल डिज़ाइन के बिना चलती हैं, और बाद में बने टोकन भी।
    .fix = जहाँ केवल डिज़ाइन माना जाए वहाँ MASKLOOM_SIDECAR_REPLACE=1 रखें, चित्र उसमें बनाकर; MASKLOOM_SIDECAR_STRICT=1 ऐसी कॉल को त्रुटि बनाता है
doctor-sidecar-grid-unknown = डिज़ाइन को टोकन का ग्रिड चाहिए, और मॉडल के आर्ग्युमेंट में वह नहीं है।
    .fix = अगर ग्रिड डिज़ाइन वाला ही है: MASKLOOM_SIDECAR_GRID=assume, या use(model, grid="assume")
doctor-mod-arguments = mod के आर्ग्युमेंट FlexAttention के दिए हुए से अलग हैं: mask_mod को (b, h, q_idx, kv_idx), score_mod को (score, b, h, q_idx, kv_idx)।
    .fix = यही पैरामीटर नाम लें; factory को पहले call करें और उसका लौटाया mod दें
doctor-hub-kernels-version = -hub पर ख़त्म होने वाले बैकएंड `kernels` पैकेज से कर्नल डाउनलोड करते हैं। वह नहीं है या बहुत पुराना है।
    .fix = pip install -U kernels; या ऐसा बैकएंड चुनें जिसे डाउनलोड न चाहिए (`diffusers`, जो SDPA है)
doctor-no-valid-choices = इस head_dim और BLOCK_SIZE के लिए FlexAttention का कोई कर्नल कार्ड की मेमोरी में नहीं समाता, आम तौर पर BLOCK_SIZE 64 वाले backward pass में या autocast में।
    .fix = BlockMask BLOCK_SIZE 128 से बनाएँ; कॉल से पहले q, k और v को एक ही 16-बिट dtype में लाएँ; kernel_options={"{"}"BLOCK_M": 64, "BLOCK_N": 64{"}"} दें
doctor-cudnn-refused = cuDNN का fused attention यह मास्क, head_dim, dtype या layout नहीं लेता।
    .fix = वापस `diffusers` या `native` पर जाएँ, जो कर्नल PyTorch को चुनने देते हैं
doctor-mask-shape = घना मास्क इस कॉल से अलग टोकन संख्या के लिए बना: दूसरा रिज़ॉल्यूशन, दूसरे टेक्स्ट की लंबाई, या cache।
    .fix = उसे कॉल के अपने q_len और kv_len के लिए बनाएँ, [batch या 1, heads या 1, q_len, kv_len] रूप में; निर्यात किए मॉड्यूल में make_mask(device, q_len, kv_len) है
doctor-checkpoint-metadata = gradient checkpointing ने backward pass में लेयर दोबारा चलाई और नतीजा अलग आया: दूसरा मास्क, दूसरा बैकएंड, या पहली बार इस्तेमाल कंपाइल फ़ंक्शन।
    .fix = अटेंशन कॉल की लंबाइयों से चुनें, counter या global से नहीं; लेयर का नाम देखने के लिए एक क़दम बिना कंपाइल चलाएँ
doctor-graph-twice = ग्रेडिएंट वाले टेंसर की गणना एक बार हुई और वह दो क़दमों में इस्तेमाल हुआ, जैसे mod का कैप्चर किया सीखा हुआ बायस।
    .fix = हर क़दम में उसकी गणना फिर करें, score_mod बनाने वाले फ़ंक्शन के अंदर
doctor-flash-attn-dtype = flash-attn float16 और bfloat16 लेता है, पर मॉडल float32 में है।
    .fix = मॉडल dtype=torch.bfloat16 से लोड करें या mixed_precision bf16 से प्रशिक्षण करें
doctor-triton-missing = कंपाइल किए FlexAttention को Triton चाहिए, जिसे Linux के PyTorch CUDA wheel इंस्टॉल करते हैं; दूसरे बिल्ड में वह नहीं होता।
    .fix = PyTorch का CUDA wheel इंस्टॉल करें; Windows पर pip install triton-windows
doctor-python-headers = Triton अपना launcher C कंपाइलर से बनाता है और इस Python के header नहीं मिलते।
    .fix = उन्हें इंस्टॉल करें: apt install python3-dev, या अपने Python संस्करण के header
doctor-c-compiler-missing = Triton और Inductor C कंपाइलर से छोटे प्रोग्राम बनाते हैं, और वह इंस्टॉल नहीं है।
    .fix = apt install build-essential, या एक बताएँ: CC=clang
doctor-setting-unknown = ट्रेनर इस attention_mechanism को नहीं जानता: वह केवल अपने नाम लेता है।
    .fix = diffusers, native, flash-attn, flash-attn-3-hub, flex, cudnn या sageattention लें; `maskloom export --backend` नाम लिख देता है
doctor-flag-unknown = इस प्रोग्राम में ऐसी सेटिंग नहीं है: attention_mechanism SimpleTuner की है, attn_implementation transformers की।
    .fix = उसका अपना --help देखें; निर्यात किया sidecar बिना सेटिंग मास्क लगाता है
doctor-loss-nan = जिस पंक्ति में कोई key नहीं, वह ऐसे अटेंशन में NaN देती है जिसमें इसका नियम नहीं: पूरी पंक्ति हटाने वाले घने मास्क का SDPA, या -inf का additive मास्क।
    .fix = `maskloom check` और ब्लॉक के आँकड़े खाली पंक्तियाँ गिनते हैं; कम से कम टोकन ख़ुद रखें (0 से 0 की पट्टी)। FlexAttention ऐसी पंक्तियों में 0 देता है
doctor-fullgraph-break = मॉडल fullgraph=True से कंपाइल है और ऐसा कोड बुलाता है जो trace नहीं होता। sidecar ऐसा तब करता है जब टेंसर के मानों (img_ids) से ग्रिड पढ़ता है।
    .fix = fullgraph के बिना कंपाइल करें; ग्रिड डिज़ाइन वाला हो तो MASKLOOM_SIDECAR_GRID=assume या use(model, grid="assume") कोई टेंसर नहीं पढ़ता
doctor-flex-cpu-training = FlexAttention CPU पर ग्रेडिएंट नहीं निकालता।
    .fix = GPU पर प्रशिक्षण करें; CPU पर जाँच के लिए निर्यात किया adapter या sidecar लें, जो वहाँ सारे स्कोर बनाता है
doctor-safetensors-header = फ़ाइल safetensors नहीं है या कटी हुई है। अक्सर वह कुछ सौ बाइट का Git LFS pointer होती है।
    .fix = उसका आकार देखें; फिर डाउनलोड करें (git lfs pull, huggingface-cli download)
doctor-dropout-refused = मॉडल attention dropout के साथ प्रशिक्षित होता है, जिसे FlexAttention नहीं लेता।
    .fix = उसे 0 करें: मॉडल की config में attention_dropout, लेयर में dropout
doctor-two-designs = दो निर्यात किए डिज़ाइन एक ही टोकन, ग्रिड और लेयर के लिए हैं, इसलिए कोई इस्तेमाल नहीं होता।
    .fix = MASKLOOM_SIDECAR में केवल एक लिखें, या हर एक की sidecar.json में "layers" लिखें
doctor-not-proved = verify ने मॉडल को डिज़ाइन के साथ और हाथ से दिए उसके मास्क के साथ चलाया। नतीजे अलग हैं, या कुछ कॉल डिज़ाइन के बिना चलीं।
    .fix = पंक्ति बिना मास्क की कॉल और कारण बताती है; अगर सब पर मास्क था, तो पंक्ति और मॉडल की config Maskloom के डेवलपर को भेजें
doctor-capture-read-twice = FlexAttention का backward pass ग्रेडिएंट वाले कैप्चर टेंसर को एक ही बार पढ़ने देता है, पर score_mod दो बार पढ़ता है।
    .fix = दूसरी बार clone पढ़ें: mod से पहले `other = bias.clone()`; autograd दोनों ग्रेडिएंट जोड़ता है
doctor-flash-backend-refused = kernel_options FlexAttention का FLASH बैकएंड चुनता है। उसमें कैप्चर टेंसर के ग्रेडिएंट नहीं हैं, और कुछ कार्ड पर logsumexp से भी नहीं। संदेश का अंत कारण बताता है।
    .fix = BACKEND हटाएँ, या kernel_options={"{"}"BACKEND": "TRITON"{"}"} रखें; `maskloom verdict` रन से पहले वे बैकएंड बताता है जो डिज़ाइन को forward और backward लेते हैं
doctor-kernel-folder = ट्रेनर की गाइडें बने हुए flex कर्नल के लिए इस फ़ोल्डर का नाम लेती हैं। PyTorch में ऐसा फ़ोल्डर नहीं है: torch.compile और Triton TORCHINDUCTOR_CACHE_DIR और ~/.triton/cache में लिखते हैं।
    .fix = सेटिंग हटाएँ; फिर से कंपाइल करने के लिए वे दोनों फ़ोल्डर मिटाएँ
doctor-flex-prototype = FlexAttention का इंटरफ़ेस PyTorch के संस्करणों के बीच बदल सकता है। उसके कर्नल पहली कॉल पर कंपाइल होते हैं और PyTorch, Triton व ड्राइवर के उन संस्करणों के लिए cache होते हैं।
    .fix = हाथ से फिर बनाने की ज़रूरत नहीं: अपडेट के बाद पहला क़दम फिर कंपाइल करता है, जिसमें एक-दो मिनट लगते हैं
doctor-ragged-masks = BlockMask में पूरे बैच के लिए एक ही q_len और kv_len होता है। अलग लंबाई के नमूनों को एक अनुक्रम के दस्तावेज़ बनाना होता है, या padding।
    .fix = उन्हें pack करें और दस्तावेज़ के अनुसार मास्क लगाएँ: प्रीसेट `packed_documents`, या `doc[q_idx] == doc[kv_idx]` वाला mask_mod; मॉडल की अपनी padding डिज़ाइन से जुड़ जाती है
doctor-card-too-old = tensor core पर bfloat16 और flash-attn के fused कर्नल को compute capability 8.0 चाहिए (A100, RTX 30 और नए)।
    .fix = `maskloom doctor` कार्ड और उसकी capability बताता है; पुराने कार्ड पर fp16 के साथ sdpa लें
doctor-sidecar-not-loaded = परिवेश Maskloom का sidecar लोड करता है, पर एक सेटिंग ग़लत है: स्क्रिप्ट मास्क के बिना चलती है।
    .fix = पंक्ति का अंत सेटिंग बताता है; ठीक करके फिर शुरू करें। MASKLOOM_SIDECAR निर्यात किए फ़ोल्डर का नाम होता है
doctor-fa4-block-size = FlashAttention-4 ऐसा BlockMask चाहता है जिसके query ब्लॉक उसकी अपनी टाइल जितने हों: Blackwell (sm_100) पर 256, Hopper पर 128। context parallel में 2.15 से पहले का PyTorch हर rank का मास्क 128 x 128 से फिर बनाता था और आपका BLOCK_SIZE भूल जाता था।
    .fix = PyTorch 2.15 पर जाएँ, या shard करने के बाद मास्क BLOCK_SIZE=(256, 128) से फिर बनाएँ; kernel_options={"{"}"BACKEND": "TRITON"{"}"} कोई भी लेता है। balancer PTRR को बराबर query और key ब्लॉक चाहिए, इसलिए (256, 128) संतुलित नहीं होता; Hopper पर 128 सही है
doctor-hub-kernel-no-variant = hub कर्नल में torch और CUDA की इस जोड़ी का बिल्ड नहीं है। kernels-community/flash-attn2 का संस्करण 1 torch 2.12 पर ख़त्म होता है।
    .fix = स्थिर ABI वाला बिल्ड माँगें: attn_implementation="kernels-community/flash-attn2@v3" (torch 2.9 या नया), या नया transformers, या sdpa
doctor-hub-kernel-stale = hub कर्नल का cache किया snapshot उसके पेज पर दिए बिल्ड से पुराना है।
    .fix = ~/.cache/huggingface/hub से वह snapshot मिटाएँ, या pip install -U kernels, और नेटवर्क के साथ फिर चलाएँ
doctor-hub-kernel-not-loaded = hub बैकएंड (`sage_hub`, `flash_hub`) एक ही अटेंशन मॉड्यूल पर रखा गया। मॉड्यूल का setter कर्नल डाउनलोड नहीं करता, केवल मॉडल का करता है। diffusers के dispatcher के बाहर संदेश बस कहता है कि None को call किया गया।
    .fix = पहले मॉडल पर set_attention_backend बुलाएँ (pipe.transformer.set_attention_backend("sage_hub")), फिर अलग-अलग ब्लॉक पर, या सभी ब्लॉक पर
doctor-flash-mask-refused-since-037 = diffusers 0.37 से flash बैकएंड मास्क नहीं लेते। पहले वे उसे अनदेखा करते थे और pad किए prompt ग़लत चित्र देते थे: downgrade से ग़लत चित्र लौट आते हैं।
    .fix = native, cudnn या flash_varlen (flash_varlen_hub) लें, जो padding लेते हैं; या बिना padding बैच 1
doctor-aiter-mask = NVIDIA पर यह टेक्स्ट भ्रामक है: `_native_flash` मास्क नहीं लेता और aiter का नाम छापता है। diffusers उसे context parallel में चुनता है क्योंकि `native-efficient` और `flex` वहाँ नहीं चलते।
    .fix = `cudnn` या `native` चुनें, जो context parallel में चलते और मास्क लेते हैं; `flex` context parallel में नहीं चलता
doctor-block-mask-arithmetic = मॉडल अपने मास्क से टेंसर की तरह गणना करता है, और FlexAttention उसे BlockMask देता है। ऐसा परिवार flex_attention नहीं लेता।
    .fix = इस परिवार के लिए attn_implementation="sdpa" या "eager"; निर्यात किया adapter या sidecar मॉडल में BlockMask के बिना मास्क लगाता है
doctor-block-mask-device-default = PyTorch 2.10 तक create_block_mask device= न देने पर मास्क cuda पर बनाता था, इसलिए CPU के टेंसर GPU के मास्क से मिलते थे।
    .fix = create_block_mask(..., device=query.device), या block_mask.to("cpu")। वैसे भी FlexAttention का CPU पर backward pass नहीं है
doctor-vmap-index = mod Python list को index करता है, int() या .item() बुलाता है, या इंडेक्स पर `if` लगाता है। mod सभी सेल पर एक साथ चलता है, जहाँ इंडेक्स एक मान वाला नहीं, टेंसर है।
    .fix = list को कैप्चर टेंसर बनाएँ (doc = torch.tensor(list)) और उसे index करें; & | ~ और torch.where लें; `maskloom check FILE.py` पंक्ति बताता है और बदला रूप दिखाता है
doctor-reshape-lost-heads = टेंसर को उसके तत्वों से कम तत्वों में reshape किया गया। variable-length अटेंशन में हेड का अक्ष अक्सर खो जाता है, जब बैच में अलग लंबाई के caption हों।
    .fix = बैच 1 लें, या ट्रेनर का split attention (--split_attn); भागफल हेड की संख्या हो तो आउटपुट हेड के अक्ष के बिना reshape हुआ
doctor-cuda-runtime-library = extension का wheel torch से अलग CUDA के लिए बना है। `.so.` के पीछे की संख्या wheel की है (libcudart.so.12: CUDA 12, libcudart.so.13: CUDA 13), torch के version में `+cu` के पीछे की संख्या torch की है (+cu126: CUDA 12, +cu130: CUDA 13)।
    .fix = torch के CUDA के लिए बना wheel (python -c "import torch; print(torch.version.cuda)"), hub कर्नल (flash-attn-hub), या दूसरे CUDA का torch इंस्टॉल करें
doctor-wheel-not-found = flash-attn के इस संस्करण में आपके torch और Python की जोड़ी का wheel नहीं; 2.8.3 में torch 2.9.1+cu130 और Python 3.13 का नहीं है।
    .fix = FLASH_ATTENTION_FORCE_BUILD=TRUE TORCH_CUDA_ARCH_LIST="9.0" pip install flash-attn --no-build-isolation, या hub कर्नल, या sdpa
doctor-xformers-flash-version = शिकायत xformers की है, जिसे diffusers import करता है: वह flash-attn के संस्करणों की एक सीमा लेता है, और उससे नया इंस्टॉल है।
    .fix = xformers अपग्रेड करें, या pip uninstall xformers, या XFORMERS_IGNORE_FLASH_VERSION_CHECK=1 रखें
doctor-sage-head-dim = SageAttention head dim 64, 96 और 128 लेता है। उसे सभी SDPA कॉल की जगह रखा गया, VAE (512) या UNet के ControlNet (40, 80, 160) वाली भी।
    .fix = उसे केवल transformer की लेयर में लें और बाक़ी जगह SDPA; वह attn_mask भी नहीं लेता और उसका backward pass नहीं है
doctor-nested-tensor = jagged nested tensor पर FlexAttention वहाँ विफल होता है जहाँ head_dim बैच से अलग हो, और PyTorch 2.15 nested tensor नहीं लेता।
    .fix = नमूनों को दस्तावेज़ मास्क के साथ एक अनुक्रम में pack करें: प्रीसेट `packed_documents`, doc[q_idx] == doc[kv_idx]
doctor-flash-3-unpack = FlashAttention-3 अब logsumexp माँगने पर ही लौटाता है, और यह diffusers अब भी दो मान खोलता है।
    .fix = diffusers अपग्रेड करें, या `_flash_3_hub` (flash-attn-3-hub) लें, जिसके कर्नल का संस्करण तय है
doctor-flash-backward-tiles = Hopper पर FlashAttention-4 का backward pass अपनी टाइल ख़ुद चुनता है (head_dim 192 पर 96 चौड़ी), और 128 का BlockMask उस पर नहीं बैठता।
    .fix = मास्क BLOCK_SIZE=(128, 96) से बनाएँ, या kernel_options={"{"}"BACKEND": "TRITON"{"}"}, या Maskloom के निर्यात किए कर्नल
doctor-deterministic-flash = FlashAttention-4 में ब्लॉक मास्क के साथ deterministic backward pass केवल Blackwell पर है। Hopper पर एक प्रस्तावित रूप 16k टोकन पर 5.33x लेता है।
    .fix = Hopper पर PyTorch के संदेश के अनुसार kernel_options={"{"}"BACKEND": "TRITON"{"}"} लें, या Maskloom के कर्नल के साथ --deterministic (`maskloom run --pass both --deterministic` क़ीमत दिखाता है), या उसके बिना चलें
doctor-negative-sparsity = 2.15 से पहले का PyTorch पूरे ब्लॉक की सेल को अनुक्रम की सेल से भाग देता है, इसलिए अपने ब्लॉक से छोटा अनुक्रम ऋणात्मक sparsity छापता है। 2.15 ब्लॉक गिनता है।
    .fix = मास्क में कोई ग़लती नहीं; `maskloom blocks` सेल का हिस्सा और दोनों संस्करणों की संख्याएँ छापता है
doctor-causal-flag-and-mask = कॉल मास्क और is_causal=True दोनों देती है। PyTorch का SDPA दोनों नहीं लेता। diffusers का flex बैकएंड बिना मास्क is_causal=True पर पूरे अटेंशन की गणना करता है, और उसके साथ आया घना मास्क चुपचाप हटा देता है।
    .fix = causal को मास्क में मिलाएँ: `(q_idx >= kv_idx) & mask` का BlockMask; is_causal=True देने वाले परिवार (cosmos3) में diffusers, native या cudnn चुनें
doctor-gpu-out-of-memory = कार्ड की मेमोरी भर गई है। बनाए गए स्कोर (eager, बिना कंपाइल flex) को हर हेड के लिए q_len x kv_len मान चाहिए।
    .fix = eager की जगह कंपाइल किया flex या sdpa लें, अनुक्रम छोटा या बैच कम करें; `maskloom verdict` स्कोर के बाइट बताता है
doctor-allocator-setting = खाली मेमोरी बहुत छोटे टुकड़ों में बँटी है। सेटिंग का नाम बदला: PYTORCH_ALLOC_CONF ही 2.9 से पहले के PyTorch का PYTORCH_CUDA_ALLOC_CONF है।
    .fix = export PYTORCH_ALLOC_CONF=expandable_segments:True (2.9 से पहले PYTORCH_CUDA_ALLOC_CONF); जहाँ एक टेंसर ही बहुत बड़ा हो वहाँ मदद नहीं करता
doctor-tensor-memory = Triton कर्नल को Blackwell की tensor memory उपलब्ध से ज़्यादा चाहिए: इस head_dim के लिए टाइल बहुत बड़ी हैं।
    .fix = छोटी टाइल दें: kernel_options={"{"}"BLOCK_M": 64, "BLOCK_N": 64{"}"}, या BLOCK_SIZE 64
doctor-mod-argument-missing = mod को उसके पैरामीटर से कम आर्ग्युमेंट मिले: score_mod को mask_mod की जगह दिया गया, factory को उसके लौटाए mod की जगह, या create_mask ने mod को चार इंडेक्स से बुलाया।
    .fix = mask_mod(b, h, q_idx, kv_idx), score_mod(score, b, h, q_idx, kv_idx); factory को पहले call करें
doctor-mod-is-method = PyTorch के लिए bound method mask_mod नहीं है: वह `self` को पैरामीटर गिनता है।
    .fix = उसे लपेटें: lambda b, h, q_idx, kv_idx: self.mask(b, h, q_idx, kv_idx); या mod को method के अंदर परिभाषित करके लौटाएँ
doctor-driver-old-for-torch = ड्राइवर इस torch के CUDA से पुराना है।
    .fix = ड्राइवर अपडेट करें, या पुराने CUDA के लिए बना torch इंस्टॉल करें: pip install torch --index-url https://download.pytorch.org/whl/cu126
doctor-link-libcuda = Triton अपना launcher libcuda से जोड़ता है, और linker को केवल libcuda.so.1 मिलता है: कंटेनर में ड्राइवर है पर उसका development link नहीं।
    .fix = उसके पास ln -s libcuda.so.1 libcuda.so, या export LIBRARY_PATH=/usr/local/cuda/lib64/stubs, या ldconfig
doctor-dtypes-differ = q, k और v के format अलग हैं, अक्सर इसलिए कि norm या rotary embedding ने autocast में float32 लौटाया।
    .fix = कॉल से पहले बदलें: k = k.to(q.dtype), v = v.to(q.dtype)
doctor-mask-format = मास्क न bool है, न query के format का।
    .fix = mask.bool() दें (True रखता है) या query के dtype में additive मास्क: mask.to(query.dtype)
doctor-cudnn-status = cuDNN का fused attention यह मास्क, head_dim, format या layout नहीं लेता, या कार्ड के लिए बहुत पुराना है।
    .fix = PyTorch को चुनने दें: torch.backends.cuda.enable_cudnn_sdp(False), या attention_mechanism `diffusers` या `native`
doctor-kernel-image-invalid = ड्राइवर यह मशीन कोड लोड नहीं कर सकता: दूसरे आर्किटेक्चर का है, ख़राब है, या ड्राइवर से नया है।
    .fix = ड्राइवर अपडेट करें; कर्नल cache मिटाएँ (~/.triton/cache, `maskloom kernels clear`); इस कार्ड का बिल्ड इंस्टॉल करें
doctor-flex-not-supported-by-model = transformers का यह परिवार BlockMask नहीं लेता।
    .fix = attn_implementation="sdpa"; निर्यात किया adapter या sidecar फिर भी उस पर डिज़ाइन लगाता है
doctor-flex-multiple-of-128 = PyTorch 2.5 का FlexAttention केवल 128 के गुणज लंबाई लेता है।
    .fix = PyTorch 2.6 या नए पर जाएँ, या अनुक्रम pad करके padding पर मास्क लगाएँ
doctor-kohaku = SimpleTuner के `kohaku-fa` कर्नल fp16 या bf16 और बिना is_causal के बूलियन मास्क लेते हैं, dropout और context parallel नहीं, sm_89, sm_90, sm_100, sm_103 और sm_120 पर। 4.10 से डिफ़ॉल्ट `kohaku-fa-auto` ख़ुद PyTorch के SDPA पर लौटता है।
    .fix = `kohaku-fa-auto` के साथ कुछ नहीं करना; `kohaku-fa` के साथ उस पर या `diffusers` पर लौटें। निर्यात किया sidecar दोनों में अपना मास्क रखता है
doctor-sage-in-training = SageAttention केवल forward है: प्रशिक्षण में अटेंशन लेयर को ग्रेडिएंट नहीं मिलता। वह मास्क भी अनदेखा करता है। डिफ़ॉल्ट में (sageattention_usage inference) वह केवल validation में काम करता है, इसलिए प्रशिक्षण तेज़ नहीं होता।
    .fix = attention_mechanism `diffusers`, `cudnn` या `flash-attn` से प्रशिक्षण करें; sageattention को validation के लिए रखें
doctor-prototype-in-words = FlexAttention का इंटरफ़ेस PyTorch के संस्करणों के बीच बदल सकता है। उसके कर्नल पहली कॉल पर कंपाइल होते हैं और PyTorch, Triton व ड्राइवर के उन संस्करणों के लिए cache होते हैं।
    .fix = हाथ से फिर बनाने की ज़रूरत नहीं: अपडेट के बाद पहला क़दम फिर कंपाइल करता है, जिसमें एक-दो मिनट लगते हैं
doctor-ragged-in-words = BlockMask में पूरे बैच के लिए एक ही q_len और kv_len होता है। अलग लंबाई के नमूनों को एक अनुक्रम के दस्तावेज़ बनाना होता है, या padding।
    .fix = उन्हें pack करें और दस्तावेज़ के अनुसार मास्क लगाएँ: प्रीसेट `packed_documents`, या `doc[q_idx] == doc[kv_idx]` वाला mask_mod
doctor-wheel-not-supported = wheel के टैग (Python, ABI, सिस्टम) इस interpreter के नहीं हैं।
    .fix = वह फ़ाइल चुनें जिसका cpXY टैग python -c "import sys; print(sys.version_info[:2])" हो और torch व CUDA आपके हों; maskloom doctor --guide flash-attn उन्हें भर देता है
doctor-context-parallel-mask = context parallel में ज़्यादातर रास्ते मास्क नहीं लेते: ring attention केवल causal या पूरा है, TransformerEngine THD में padding के साथ causal या विंडो लेता है, और accelerate मना करने से पहले हर लेयर का मास्क फेंककर पूरे causal अटेंशन का प्रशिक्षण करता था।
    .fix = all-gather और BlockMask के साथ PyTorch का context parallel लें, या MagiAttention के slice; `maskloom verdict` बताता है कि मास्क के कौन-से रूप हैं
doctor-killed = सिस्टम ने प्रक्रिया बंद की क्योंकि कंप्यूटर की मेमोरी (कार्ड की नहीं) भर गई थी।
    .fix = बिल्ड में MAX_JOBS कम करें; वज़न low_cpu_mem_usage से लोड करें; dataloader के worker कम करें; swap बढ़ाएँ
doctor-flex-eager-memory = बिना कंपाइल FlexAttention सारे स्कोर float32 में बनाता है: हर लेयर के लिए batch x heads x q_len x kv_len x 4 बाइट, और softmax के लिए उतने ही और।
    .fix = मॉड्यूल स्तर पर एक बार flex_attention = torch.compile(flex_attention); `maskloom verdict` रन से पहले डिज़ाइन के बाइट छापता है
doctor-block-mask-slow = create_block_mask B x H मास्क की हर सेल की गणना करता है। `b` या `h` न पढ़ने वाला mod वही सूचियाँ B x H बार देता है।
    .fix = mod न पढ़े तो B=None और H=None दें (`maskloom check FILE.py` बताता है वह क्या पढ़ता है), एक लंबाई की सभी लेयर और क़दमों के लिए मास्क एक बार बनाएँ, या maskloom.create_block_mask लें
doctor-sdpa-keyword = यह PyTorch उस आर्ग्युमेंट से पुराना है: scale 2.1 के साथ आया, enable_gqa 2.5 के साथ।
    .fix = pip install -U torch; enable_gqa के बिना key दोहराएँ: k.repeat_interleave(groups, 1)
doctor-flex-head-dim-small = FlexAttention 16 और ज़्यादा के head dim लेता है; PyTorch 2.5 को 2 की घात भी चाहिए थी।
    .fix = q, k और v को शून्य के 16 स्तंभों तक pad करें और scale=1/sqrt(head_dim) दें; 96 जैसे आयाम के लिए PyTorch 2.6 पर जाएँ
doctor-flex-block-divides-tile = कर्नल की टाइल मास्क के ब्लॉक को पूरा भाग नहीं देती: kernel_options के BLOCK_M और BLOCK_N, या autotuning की चुनी टाइल, मास्क के BLOCK_SIZE के सामने।
    .fix = मास्क BLOCK_SIZE=128 से बनाएँ, या BLOCK_M और BLOCK_N को उसके BLOCK_SIZE के भाजक रखें
doctor-flex-decode-groups = FlexAttention का decoding कर्नल, जो कम query पर चलता है, हर key हेड के लिए 1, 2, 4, 8 ... query हेड चाहता है।
    .fix = kernel_options={"{"}"FORCE_USE_FLEX_ATTENTION": True{"}"} (2.15: {"{"}"BACKEND": "TRITON"{"}"}), या query हेड pad करें
doctor-flex-decode-unavailable = decoding कर्नल कम query (128 से कम) और कंपाइल के समय ज्ञात आकारों के लिए है।
    .fix = BACKEND को AUTO रहने दें
doctor-block-mask-smaller = BlockMask की लंबाइयाँ q और k से अलग हैं। हर लंबाई के लिए मास्क बनाना या बदलना होता है।
    .fix = इस कॉल के लिए create_block_mask(mask_mod, B, H, q.size(-2), k.size(-2)); केवल लंबाई अलग हो तो एक ही लंबाई तक pad करें
doctor-block-mask-broadcast = q का बैच आकार k और v से अलग है। FlexAttention केवल बैच 1 को broadcast करता है।
    .fix = k और v को expand करें: k.expand(q.size(0), -1, -1, -1)
doctor-block-mask-built-by-hand = हाथ से बने BlockMask में सूचियाँ कम हैं: पूरे ब्लॉक को गिनती और इंडेक्स साथ चाहिए, और backward pass को key ब्लॉक की सूचियाँ (q_num_blocks, q_indices)।
    .fix = BlockMask.from_kv_blocks(kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, BLOCK_SIZE=..., mask_mod=..., seq_lengths=(q_len, kv_len)) सब बनाता है; निर्यात की गई ब्लॉक सूचियों में भी सब हैं
doctor-block-mask-is-no-tensor = जहाँ घना मास्क चाहिए वहाँ BlockMask आया: SDPA और अपने मास्क को किसी में जोड़ने वाले मॉडल टेंसर लेते हैं।
    .fix = SDPA को घना मास्क दें: create_mask(mask_mod, B, H, q_len, kv_len, device), या निर्यात किए मॉड्यूल का make_mask; या flex_attention बुलाएँ
doctor-deterministic-metadata = FlexAttention का FLASH बैकएंड ग्रेडिएंट को तय क्रम में तभी जोड़ता है जब मास्क की और सूचियाँ हों।
    .fix = create_block_mask(..., compute_dq_write_order=True), या TRITON बैकएंड, या --deterministic के साथ Maskloom के कर्नल
doctor-flex-mixed-dtypes = q, k और v के format अलग हैं, अक्सर इसलिए कि norm या rotary embedding ने autocast में float32 लौटाया।
    .fix = कॉल से पहले बदलें: k = k.to(q.dtype), v = v.to(q.dtype)
doctor-flex-lse-options = FlexAttention अपना logsumexp कैसे लौटाता है, यह PyTorch के संस्करण पर निर्भर है: 2.8 तक return_lse=True, 2.9 से return_aux=AuxRequest(lse=True)। CPU पर कंपाइल होकर वह नहीं लौटाता; FLASH अधिकतम स्कोर नहीं लौटाता।
    .fix = अपने संस्करण का रूप लें, और दोनों में से केवल एक
doctor-score-mod-without-score = score_mod को `score` से निकला टेंसर लौटाना चाहिए, कुछ भी in place बदले बिना; mask_mod सीखने वाला टेंसर कैप्चर नहीं कर सकता।
    .fix = स्थिरांक की जगह torch.where(keep, score, -inf) लौटाएँ; सीखी हुई तालिका score_mod में ले जाएँ, या mask_mod में tensor.detach() लें
doctor-higher-order-op-rule = कोई mode या टेंसर subclass (FlopCounterMode, DTensor, selective checkpointing) flex_attention से मिला, जिसका उसके पास नियम नहीं।
    .fix = अटेंशन को उस mode से बाहर रखें: FLOP `maskloom verdict` से गिनें, पूरी लेयर checkpoint करें, local टेंसर दें (to_local())
doctor-ddp-optimizer = DistributedDataParallel कंपाइल किए graph को बाँटता है, और FlexAttention का graph नहीं बँट सकता।
    .fix = कंपाइल से पहले torch._dynamo.config.optimize_ddp = False; या मॉडल की जगह केवल flex_attention कंपाइल करें
doctor-fx-on-compiled = कंपाइल किया फ़ंक्शन (torch.compile(flex_attention)) ऐसे कोड में बुलाया गया जिसे दूसरा tracer रिकॉर्ड कर रहा है: checkpointing, make_fx, torch.func या export।
    .fix = वहाँ सादा flex_attention बुलाएँ और बाहरी फ़ंक्शन कंपाइल करें; जहाँ नतीजों की तुलना हो वहाँ torch._dynamo.config.error_on_nested_fx_trace = False
doctor-vmap-in-place = mod टेंसर को in place बदलता है (`m |= ...`, `m[q_idx] = ...`)। mod सभी सेल पर एक साथ चलता है।
    .fix = m = m | other लिखें, और तत्व को मान देने की जगह torch.where
doctor-vmap-random = mod यादृच्छिक संख्या निकालता है। mod सभी सेल पर एक साथ और कई बार चलता है: संख्या पहले निकालनी होगी।
    .fix = बाहर तालिका निकालकर कैप्चर करें: keep = torch.rand(B, kv_len) > 0.15, फिर keep[b, kv_idx]
doctor-vmap-dynamic-shape = mod ऐसा कुछ बुलाता है जिसके नतीजे का आकार हर सेल में अलग है (nonzero, boolean indexing, unique), मान छापता है, या ऐसा operator जो vmap नहीं जानता।
    .fix = ऐसी तालिकाएँ mod के बाहर निकालकर कैप्चर करें; `maskloom check FILE.py` पंक्ति बताता है
doctor-flash-not-compiled-in = PyTorch के इस बिल्ड (Windows wheel भी) में FlashAttention नहीं है; SDPA दूसरा कर्नल लेता है। यह चेतावनी है: नतीजे सही हैं।
    .fix = कुछ नहीं करना; Windows पर गति के लिए नया wheel या cuDNN का कर्नल लें, या triton-windows के साथ FlexAttention
doctor-sdpa-why-not = SDPA को एक ही कर्नल लेने को कहा गया (sdpa_kernel, set_attention_backend), और वह छापता है कि हर कर्नल ये इनपुट क्यों नहीं लेता; `runtime disabled` आपकी अपनी पसंद है। FlashAttention कोई मास्क नहीं लेता।
    .fix = जो कर्नल चाहिए उसकी पंक्ति पढ़ें; मास्क के साथ SDPBackend.EFFICIENT_ATTENTION या CUDNN_ATTENTION की अनुमति दें, या flex के साथ BlockMask लें
doctor-attn-bias-aligned = memory-efficient कर्नल ऐसा घना मास्क चाहता है जिसकी पंक्तियाँ 8 तत्वों के गुणज पर शुरू हों, और key की संख्या वैसी नहीं।
    .fix = मास्क को 8 के गुणज तक बढ़ाए kv_len से बनाकर slice करें: mask[..., :kv_len]; या BlockMask लें
doctor-cutlass-no-kernel = memory-efficient कर्नल का इस कार्ड, format या head_dim के लिए रूप नहीं है; अक्सर Ampere से पहले के कार्ड पर bfloat16, या जहाँ केवल 16 बिट हो वहाँ float32।
    .fix = ऐसे कार्ड पर fp16 लें; या torch.backends.cuda.enable_mem_efficient_sdp(False), जिससे PyTorch का math कर्नल बचता है
doctor-xformers-no-operator = xformers में इन इनपुट के लिए कर्नल नहीं; संदेश के नीचे हर कर्नल कारण बताता है: dtype, head_dim, मास्क का प्रकार, या इस torch के लिए बिना CUDA का बिल्ड।
    .fix = अपने torch का xformers इंस्टॉल करें (python -m xformers.info); bf16 में बदलें; या PyTorch का SDPA लें, जो आज उतना ही तेज़ है
doctor-grid-limit = कर्नल को कार्ड की सीमा से बड़े grid से चलाया गया: batch x heads 65,535 से ऊपर, या कोई टोकन नहीं।
    .fix = अटेंशन को कई बैच में बुलाएँ; खाली अनुक्रम छोड़ें
doctor-stride-changed = कंपाइल किया कर्नल मेमोरी के एक layout के लिए बना और दूसरा मिला, अक्सर q, k या v एक कॉल में transpose और अगली में नहीं, या torch.compile ने layout ग़लत पढ़ा।
    .fix = अटेंशन से पहले q, k और v पर .contiguous() बुलाएँ; अपग्रेड के बाद compile cache मिटाएँ (~/.cache/torch, /tmp/torchinductor_*)
doctor-varlen-offsets = variable-length अटेंशन नमूनों के offset int32 में लेता है, नमूनों से एक ज़्यादा, query के डिवाइस पर, 0 से शुरू और टोकन की संख्या पर ख़त्म।
    .fix = cu_seqlens = F.pad(lengths.cumsum(0), (1, 0)).to(torch.int32); max_seqlen = int(lengths.max())
doctor-query-has-wrong-axes = q, k और v के अक्ष अटेंशन की ज़रूरत से अलग हैं: diffusers [batch, tokens, heads, head_dim], PyTorch [batch, heads, tokens, head_dim]।
    .fix = कॉल से पहले reshape करें: x.unflatten(-1, (heads, -1)), और PyTorch के लिए transpose(1, 2)
doctor-diffusers-gqa = diffusers का यह बैकएंड उतने ही key हेड लेता है जितने query हेड।
    .fix = कॉल से पहले k.repeat_interleave(groups, 2) और v भी वैसे ही, या बैकएंड `native`
doctor-diffusers-no-backward = diffusers का यह बैकएंड केवल inference के लिए है: उससे प्रशिक्षण में ग्रेडिएंट नहीं मिलता।
    .fix = `native`, `_native_cudnn`, `flash` या `flex` से प्रशिक्षण करें
doctor-diffusers-import-failed = diffusers को पैकेज मिला, उसका import विफल हुआ, और उसकी जगह SDPA चलता है। बीच का टेक्स्ट कारण बताता है: आम तौर पर दूसरे torch या CUDA का wheel।
    .fix = python -c "import flash_attn" केवल कारण छापता है; `maskloom doctor --explain` वह संदेश लेता है
doctor-diffusers-arguments-removed = मॉडल ऐसा आर्ग्युमेंट देता है जो चुने गए बैकएंड में नहीं, और diffusers उसे हटा देता है: अगर वह attn_mask है तो मास्क अनदेखा होता है।
    .fix = देखें कि सूची में attn_mask है या नहीं; हो तो उसे लेने वाला बैकएंड चुनें: native, _native_cudnn, flex
doctor-diffusers-lse = बैकएंड logsumexp नहीं लौटाता, जो context parallel को मिलाने के लिए चाहिए।
    .fix = context parallel में `_native_cudnn`, `_native_flash`, `flash` या `sage` चुनें
doctor-cp-degrees = context parallel के degree प्रक्रियाओं से मेल नहीं खाते: उनका गुणनफल rank की संख्या होना चाहिए, और कुछ मेल बने ही नहीं।
    .fix = ring_degree x ulysses_degree = GPU की संख्या, हर एक कम से कम 1 और एक 1 से ऊपर; Ulysses को degree से विभाज्य हेड भी चाहिए
doctor-cp-length = context parallel टोकन को बराबर हिस्सों में बाँटता है, और लंबाई नहीं बँटती। जहाँ ब्लॉक संतुलित होते हैं, हिस्सा पूरे ब्लॉक का होना चाहिए।
    .fix = अनुक्रम को ranks x BLOCK_SIZE टोकन तक pad करें (head-and-tail संतुलन में 2 x ranks) और padding पर मास्क लगाएँ; `maskloom parallel` किसी भी लंबाई की योजना बनाता है
doctor-cp-what-it-takes = PyTorch का context parallel बिना मास्क या causal SDPA लेता है, FlashAttention या memory-efficient कर्नल के साथ; BlockMask को all-gather वाला flex रास्ता चाहिए, और उसके balancer को बराबर query और key ब्लॉक।
    .fix = all-gather तरीके से flex_attention और BLOCK_SIZE=128 लें, या Maskloom की distributed योजनाएँ (docs: कई GPU)
doctor-output-attentions = fused attention के पास प्रायिकताएँ कभी नहीं होतीं, इसलिए वह उन्हें लौटा नहीं सकता।
    .fix = उस रन के लिए attn_implementation="eager"; `maskloom run PRESET --out` और विंडो की प्रायिकताएँ उन्हें डिज़ाइन के लिए दिखाती हैं
doctor-window-not-applied = मॉडल की config में विंडो (या chunk) है जिसे यह अटेंशन लागू नहीं करता, या config में उसका आकार नहीं: मॉडल प्रशिक्षण से ज़्यादा key देखता है।
    .fix = flex_attention, या flash_attention_2 जहाँ window_size हो; दोनों मास्क की तुलना `maskloom compare` से करें
doctor-flash-lacks-feature = लोड किए flash-attn में मॉडल की ज़रूरत की चीज़ नहीं: softcap, chunk, sinks, या variable-length के साथ सादा प्रवेश।
    .fix = attn_implementation="flex_attention" या "eager", जिनमें वे हैं; softcap के लिए flash-attn अपग्रेड करें (2.6)
doctor-padding-side = generation में सबसे नया टोकन हर पंक्ति के अंत में होना चाहिए; दाईं padding पर मॉडल padding से आगे बढ़ता है।
    .fix = tokenizer.padding_side = "left", और attention_mask दें
doctor-packed-without-varlen = pack किए नमूने दस्तावेज़ की सीमाओं से अलग रहते हैं: उनके बिना हर नमूना पहले वालों को देखता है।
    .fix = फिर से शुरू होने वाले position_ids दें और 2-D attention_mask नहीं (तब transformers सीमाएँ पा लेता है), variable लंबाई वाला flash_attention_2, या BlockMask के रूप में प्रीसेट `packed_documents`
doctor-card-newer-than-torch = PyTorch के इस बिल्ड में कार्ड का कोड नहीं है: Blackwell (sm_100, sm_120) को CUDA 12.8 और PyTorch 2.7 या नया चाहिए।
    .fix = pip install -U torch --index-url https://download.pytorch.org/whl/cu128 (या नया)
doctor-torch-without-cuda = इंस्टॉल किया PyTorch CPU का बिल्ड है; pip ने Windows पर उसे PyPI से लिया, या resolver ने CUDA बिल्ड बदल दिया।
    .fix = pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cu128
doctor-no-gpu-visible = प्रक्रिया को कोई कार्ड नहीं दिखता, या माँगे से कम: CUDA_VISIBLE_DEVICES उसे छिपाता है, कंटेनर उसके बिना शुरू हुआ, या कार्ड से ज़्यादा प्रक्रियाएँ चलीं।
    .fix = nvidia-smi और echo $CUDA_VISIBLE_DEVICES देखें; docker run --gpus all; --nproc_per_node = कार्ड की संख्या
doctor-build-without-isolation = pip extension को अपने अलग परिवेश में बनाता है, जहाँ torch इंस्टॉल नहीं है।
    .fix = पहले pip install torch packaging ninja psutil wheel, फिर pip install flash-attn --no-build-isolation
doctor-flash-build-failed = extension का बिल्ड कंपाइलर में विफल हुआ; कारण ऊपर पहले `error:` पर है। सबसे आम: CUDA toolkit नहीं या दूसरा, कम मेमोरी (Killed), या ऐसा कंपाइलर जिसे nvcc नहीं मानता।
    .fix = बना-बनाया wheel या hub कर्नल बिल्ड बचाता है; नहीं तो MAX_JOBS=2, torch के CUDA वाला CUDA_HOME, और nvcc की सीमा में gcc
doctor-glibc-too-old = wheel इससे नए Linux पर बना: यहाँ की C लाइब्रेरी wheel की ज़रूरत से पुरानी है।
    .fix = यहीं बनाएँ (FLASH_ATTENTION_FORCE_BUILD=TRUE), नए सिस्टम वाला कंटेनर लें, या GLIBCXX के लिए conda का libstdcxx-ng
doctor-dll-load-failed = Windows पर extension दूसरे torch, Python या CUDA के लिए बनी, या CUDA की कोई लाइब्रेरी नहीं है।
    .fix = ठीक इसी torch, CUDA और Python का wheel; या SDPA, जिसे कोई नहीं चाहिए; FlexAttention के लिए triton-windows
doctor-extension-of-another-torch = कंपाइल की extension दूसरे PyTorch के लिए बनी: वहाँ उसके फ़ंक्शन के नाम अलग हैं।
    .fix = इस torch के लिए extension फिर इंस्टॉल करें (उसे pip uninstall, फिर मेल खाता wheel या --no-build-isolation), या SDPA लें
doctor-flash-import-name = flash-attn नहीं है, टूटा है, या दूसरी पीढ़ी का है: flash_attn (2), flash_attn_interface (3), flash_attn.cute (4) अलग पैकेज हैं। `unknown location` का मतलब है कि पहले flash_attn नाम का खाली फ़ोल्डर मिलता है।
    .fix = pip show -f flash-attn; बचा हुआ फ़ोल्डर हटाएँ; attn_implementation="sdpa" को यह नहीं चाहिए; maskloom doctor --guide flash-attn
doctor-flex-import-name = इस PyTorch में FlexAttention नहीं (2.5 से पुराना), या बाद में आया नाम नहीं (AuxRequest 2.9 के साथ)।
    .fix = pip install -U torch; उसी परिवेश में python -c "import torch; print(torch.__version__)"
doctor-flex-keyword = इस PyTorch के FlexAttention में यह आर्ग्युमेंट नहीं: signature 2.5 और 2.15 के बीच बदले (return_aux 2.9 के साथ आया), और नाम दूसरे फ़ंक्शन का हो सकता है (attn_mask SDPA का है)।
    .fix = python -c "import inspect, torch.nn.attention.flex_attention as f; print(inspect.signature(f.flex_attention))"
doctor-sage-build = SageAttention इस कार्ड के लिए नहीं बना, या उसे GPU पर 16 बिट के सिवा इनपुट मिले।
    .fix = कार्ड के TORCH_CUDA_ARCH_LIST से SageAttention 2 बनाएँ; bf16 में बदलें; या `diffusers` चुनें। उसका backward pass नहीं है
doctor-triton-failed = Triton कर्नल कंपाइल या शुरू नहीं कर सका; ऊपर की पंक्तियाँ क्रिया बताती हैं। अक्सर Triton और torch की बेमेल जोड़ी, या mod का ऐसा सूत्र जिसका अनुवाद उसका कंपाइलर नहीं कर पाता।
    .fix = torch का बताया triton pip install करें (pip show torch); ~/.triton/cache मिटाएँ; kernel_options={"{"}"num_stages": 1{"}"}; mod का आख़िरी जोड़ा सूत्र कैप्चर तालिका से बदलें
doctor-inductor-lowering = torch.compile Inductor के अंदर विफल हुआ; कोलन के बाद का exception कारण बताता है, और `maskloom doctor --explain` शायद वह हिस्सा जानता हो।
    .fix = पूरा टेक्स्ट चिपकाएँ; mod को एक बार बिना कंपाइल चलाएँ: mod की ग़लती वहाँ पंक्ति के साथ दिखती है। TORCHDYNAMO_VERBOSE=1 और दिखाता है
doctor-higher-order-capture = mod, या उसके आसपास का कोड, ऐसा कुछ करता है जिसे torch.compile रिकॉर्ड नहीं कर सकता: बाहरी variable बदलता है, अज्ञात फ़ंक्शन बुलाता है, या ख़ुद vmap के अंदर है।
    .fix = mod केवल अपने आर्ग्युमेंट और कैप्चर टेंसर से गणना करता है; बाक़ी सब बाहर ले जाएँ, और मास्क कंपाइल किए फ़ंक्शन के बाहर बनाएँ
doctor-launch-failure = कर्नल कार्ड पर crash हुआ। बताई गई पंक्ति अक्सर बाद की होती है, क्योंकि कर्नल प्रोग्राम के पीछे चलते हैं।
    .fix = CUDA_LAUNCH_BLOCKING=1 कर्नल दिखाता है; compute-sanitizer पहुँच दिखाता है; कैप्चर टेंसर के आकार `maskloom check` से जाँचें; ड्राइवर अपडेट करें
doctor-device-lost = ड्राइवर ने कार्ड खो दिया, या कोई दूसरी प्रक्रिया उसे अकेले रखे है। प्रोग्राम इसे ठीक नहीं कर सकते।
    .fix = nvidia-smi; dmesg | grep -i xid ख़राबी बताता है; मशीन reset या reboot करें; किराए के कार्ड पर प्रदाता से दूसरा माँगें
doctor-nccl = collective विफल हुआ या एक rank नहीं पहुँचा: वह crash हुआ, दूसरी शाखा पर गया, या उसके टेंसर अलग हैं। context parallel में तब भी जब rank के टोकन की संख्या अलग हो।
    .fix = सबसे पहले बंद हुआ rank देखें; NCCL_DEBUG=INFO; TORCH_NCCL_TRACE_BUFFER_SIZE बताता है हर rank किसका इंतज़ार कर रहा था; सभी rank पर वही लंबाइयाँ रखें
doctor-shared-memory-worker = कंटेनर का /dev/shm data loader के worker के लिए बहुत छोटा है।
    .fix = docker run --shm-size=16g (या --ipc=host), या num_workers=0
doctor-compiled-cpu = Inductor CPU के लिए C++ कंपाइल करता है, और कंपाइलर या OpenMP नहीं है।
    .fix = apt install build-essential (macOS: brew install libomp; Windows: Visual Studio के C++ tools)
doctor-read-only-cache = कंपाइल किए कर्नल ~/.triton और /tmp/torchinductor_USER में लिखे जाते हैं, और वह डिस्क भरी है या read-only।
    .fix = TRITON_CACHE_DIR और TORCHINDUCTOR_CACHE_DIR को जगह वाले फ़ोल्डर पर करें; df -h; Maskloom का अपना cache: MASKLOOM_CACHE
doctor-flex-same-buffer = CPU के लिए कंपाइल किया FlexAttention ऐसे q, k, v अस्वीकार करता था जो एक ही buffer के view हैं, जैसे एक projection के chunk। PyTorch 2.15 उनकी प्रति बनाता है।
    .fix = PyTorch 2.15 पर जाएँ, या कॉल से पहले key = key.clone() और value = value.clone()
doctor-flex-symbolic-length = बदलती लंबाइयों के लिए कंपाइल होने पर शुरुआती PyTorch 2.5 का FlexAttention प्रतीकात्मक लंबाई का नाम (s0, s1) अपने कर्नल के विकल्पों में लिख देता था।
    .fix = torch.compile(flex_attention, dynamic=False), या नया PyTorch
doctor-captured-gradients-refused = PyTorch 2.5 mod के कैप्चर किए टेंसर, जैसे सीखे गए बायस, का ग्रेडिएंट नहीं निकालता। बाद के संस्करण score_mod के लिए निकालते हैं; mask_mod का किसी में नहीं।
    .fix = score_mod की तालिका के लिए PyTorch अपडेट करें; mask_mod में tensor.detach()
doctor-flex-on-mps = Apple के GPU पर PyTorch 2.15 का FlexAttention केवल inference के लिए है: वहाँ backward pass नहीं, और वह float32, float16 और bfloat16 लेता है।
    .fix = वहाँ sdpa से ट्रेन करें; inference के लिए torch.no_grad()
doctor-flex-cpu-dtype = CPU के लिए कंपाइल किया FlexAttention केवल float32, float16 और bfloat16 लेता है।
    .fix = query.float(), key.float(), value.float(); float64 बिना कंपाइल चलता है
doctor-dtensor-mixed = tensor parallel या FSDP2 में क्रिया का एक टेंसर DTensor है और दूसरा साधारण, अक्सर mod की कैप्चर तालिका, position तालिका या मास्क।
    .fix = स्थानीय टेंसर पर अटेंशन करें: q.to_local(), केवल इसी rank के हेड के साथ; तालिकाएँ और BlockMask उसी कॉल के अंदर साधारण टेंसर बनाएँ
doctor-mod-not-pickled = BlockMask अपने mask_mod के साथ दूसरी प्रक्रिया को भेजा जाता है (DataLoader के worker, multiprocessing, torch.save), और फ़ंक्शन के अंदर का फ़ंक्शन भेजा नहीं जा सकता।
    .fix = तालिका भेजें, जैसे दस्तावेज़ संख्याएँ, और BlockMask उसी प्रक्रिया में बनाएँ जो उसे काम में लेती है; या mod को मॉड्यूल के ऊपर परिभाषित करें
doctor-compile-flag-notice = यह सूचना है: create_block_mask(..., _compile=True) PyTorch 2.15 में अब भी चलता है और बाद में हटेगा।
    .fix = torch.compile(create_block_mask)(mask_mod, B, H, q_len, kv_len)
doctor-flash-4-too-old = FlexAttention का FLASH बैकएंड flash-attn 4 का कर्नल बनाता है: वह पैकेज mod की कैप्चर की संख्या के लिए बहुत पुराना है, या उसका template यह mod नहीं लेता।
    .fix = pip install --pre -U flash-attn-4 (CUDA 13 के साथ "flash-attn-4[cu13]"), या kernel_options={"{"}"BACKEND": "TRITON"{"}"}
doctor-flash-impl-activated = activate_flash_attention_impl ने SDPA के flash कर्नल की जगह FlashAttention-3 या -4 रख दिया। संदेश का अंत बताता है कि वह क्या नहीं लेता (dropout, कार्ड, layout), या कि नाम अज्ञात है।
    .fix = torch.nn.attention.restore_flash_attention_impl() PyTorch का अपना कर्नल लौटाता है; list_flash_attention_impls() मौजूद नाम बताता है
doctor-varlen-cudnn = sdpa_kernel केवल cuDNN की अनुमति देता है, और cuDNN varlen_attn की यह कॉल नहीं लेता। संदेश के नीचे की पंक्तियाँ टूटी शर्तें बताती हैं।
    .fix = SDPBackend.FLASH_ATTENTION की भी अनुमति दें, या sdpa_kernel हटा दें
doctor-gradient-nan = detect_anomaly को ग्रेडिएंट में NaN मिला: अटेंशन में अक्सर ऐसी पंक्ति जिसकी सारी key -inf से छिपी हैं, या float16 का overflow।
    .fix = `maskloom check` खाली पंक्तियाँ गिनता है: हर पंक्ति ख़ुद को रखे; bfloat16 लें; स्कोर सीमित करें (soft cap)
doctor-mask-is-float = `&`, `|` और `~` bool या पूर्णांक जोड़ते हैं, और एक ओर float है: additive मास्क, या False और True की जगह 0.0 और 1.0।
    .fix = जहाँ 1 रखता है वहाँ mask.bool(); additive मास्क: (mask == 0); mod में पहले तुलना करें: (t[q_idx] > 0) & (q_idx >= kv_idx)
doctor-linear-dtype = linear लेयर के weight एक format में हैं और इनपुट दूसरे में: अक्सर पहले के अटेंशन ने float32 लौटाया, या यह हिस्सा autocast के बाहर चलता है।
    .fix = अटेंशन का आउटपुट बदलें: out.to(weight.dtype); या कॉल को torch.autocast में रखें
doctor-model-without-flash = transformers की यह class flash-attn के लिए नहीं लिखी: हर class का अपना flag है।
    .fix = attn_implementation="sdpa" या "eager"; नए transformers में हो सकता है
doctor-model-without-sdpa = transformers की इस class में SDPA का रास्ता नहीं, क्योंकि SDPA उसकी ज़रूरत पूरी नहीं कर सकता: gpt-oss में sinks हैं।
    .fix = attn_implementation="eager" या "flex_attention"; निर्यात के adapter और `maskloom.integrations` में भी sinks हैं
doctor-model-names-flash-kernels = यह चेतावनी है: यह मॉडल केवल संदेश में गिनाए flash कर्नल से चलता है (gpt-oss: sinks वाले), और transformers ने आपके चुने की जगह उनमें से एक लिया।
    .fix = कुछ करना नहीं है; attn_implementation में सूची का एक नाम दें तो चेतावनी नहीं आती
doctor-flash-model-on-cpu = मॉडल पहले कंप्यूटर की मेमोरी में लोड हुआ, जहाँ flash-attn नहीं चलता। कार्ड हो तो यह चेतावनी है, न हो तो त्रुटि।
    .fix = device_map="cuda" या model.to("cuda"); कार्ड न हो तो attn_implementation="sdpa"
doctor-flash-casts-notice = यह सूचना है: float32 में रखी norm लेयर (peft ऐसा करता है) ने q, k, v को float32 बनाया, और transformers उन्हें हर लेयर में flash-attn के लिए बदलता है। परिणाम सही हैं; थोड़ा समय लगता है।
    .fix = norm लेयर भी bfloat16 में लोड करें, या रहने दें
doctor-attention-not-exchangeable = यह class transformers की अटेंशन तालिका से पहले लिखी गई (अक्सर remote code), इसलिए set_attn_implementation और पंजीकृत अटेंशन उस तक नहीं पहुँचते।
    .fix = attn_implementation from_pretrained को दें, या transformers की अपनी class लें (trust_remote_code=False); निर्यात का adapter ऐसे मॉडल में SDPA की कॉल देखता है, और उसकी रिपोर्ट बताती है कि किन लेयर पर मास्क लगा
doctor-patch-of-another-transformers = ट्रेनर या plug-in transformers की class और फ़ंक्शन नाम से बदलता है, और इस संस्करण में नाम अलग हैं: 4.43 ने _flash_attention_forward को class से बाहर किया, 4.48 ने ...FlashAttention2 class हटाईं।
    .fix = ट्रेनर की requirements में लिखा transformers इंस्टॉल करें, या नया ट्रेनर
doctor-attention-class-of-another-diffusers = diffusers की साझा class Attention के लिए लिखा कोड ऐसे संस्करण से मिला जिसके मॉडल की अपनी class हैं (FluxAttention, WanAttention): उनमें `scale` जैसे attribute नहीं। 0.33 का कोड 0.35 में ऐसे ही विफल होता है।
    .fix = उस कोड के लिए pip install diffusers==0.33.1, या `scale` की जगह attn.head_dim ** -0.5 लें; निर्यात का adapter दोनों के साथ चलता है
doctor-processors-count = set_attn_processor को ऐसा dict मिला जिसकी प्रविष्टियाँ मॉडल की अटेंशन लेयर जितनी नहीं; cross-attention लेयर भी गिनी जाती हैं।
    .fix = उसे model.attn_processors.keys() से बनाएँ, या सब लेयर के लिए एक processor दें
doctor-torch-libraries-not-loaded = extension torch से पहले import हुई, जबकि उसे torch की लाइब्रेरी चाहिए। पहले torch import करने पर अक्सर दूसरी त्रुटि आती है, वही असली है।
    .fix = python -c "import torch, flash_attn" उसे दिखाता है; `maskloom doctor --explain` वह संदेश लेता है
doctor-flash-heads-divide = query के हेड key के हेड के गुणज नहीं, या हेड अक्ष वहाँ नहीं जहाँ कर्नल चाहता है: तब संदेश टोकन की तुलना करता है। diffusers 0.39 तक `_native_flash` context parallel के backward pass में k और v को दो बार transpose करता था।
    .fix = flash-attn को [batch, tokens, heads, head_dim] चाहिए, SDPA को [batch, heads, tokens, head_dim]; diffusers अपडेट करें, या Ulysses के साथ `flash` या `native` लें
doctor-flash-backward-head-dim = head_dim 192 से ऊपर इस flash-attn का backward pass उपभोक्ता कार्ड की shared memory में नहीं आता। flash-attn 2.5.5 से बिना dropout के आता है।
    .fix = flash-attn अपडेट करें और dropout 0 करें; या sdpa या flex लें
doctor-packed-model-without-flex = जहाँ FlexAttention है वहाँ torchtune BlockMask से पैक करता है, और इस मॉडल (Gemma 2) का अटेंशन केवल घना मास्क लेता है।
    .fix = dataset की config में packed=False, या दूसरा मॉडल
doctor-selective-checkpointing = 2025 का torchtitan FlexAttention को selective activation checkpointing के साथ अस्वीकार करता है, जिसके लिए PyTorch में नियम नहीं था (pytorch#147879)।
    .fix = activation_checkpoint.mode = "full", या नया torchtitan अपने PyTorch के साथ
doctor-transformer-engine-no-backend = TransformerEngine ने इन इनपुट के लिए अपने सारे कर्नल बंद किए: पैक `thd` layout या context parallel में sinks (learnable softmax), मास्क या बायस, fp8 attention, या उसकी संस्करण सीमा से बाहर का flash-attn।
    .fix = NVTE_DEBUG=1 NVTE_DEBUG_LEVEL=2 हर कर्नल का कारण छापता है; sinks के लिए बिना पैकिंग `bshd` लें
doctor-video-without-attention-package = FramePack और musubi-tuner के अटेंशन को अलग लंबाई के caption के बैच के लिए flash-attn, SageAttention या xformers चाहिए, और कोई नहीं है।
    .fix = batch 1; या musubi-tuner में --sdpa --split_attn; या flash-attn इंस्टॉल करें
doctor-image-black = चित्र में NaN है। अक्सर SageAttention के 8-bit स्कोर इस मॉडल या उसके fp8 weight के लिए नहीं चलते, या VAE float16 में overflow करता है।
    .fix = एक बार बिना SageAttention चलाएँ (प्रोग्राम की सेटिंग या node); VAE bfloat16 या float32 में
doctor-xfuser-processor = xDiT अटेंशन processor को उनकी class के नाम से बदलता है और इसे नहीं जानता: उसका संस्करण दूसरे diffusers के लिए है।
    .fix = xDiT की requirements में लिखा diffusers इंस्टॉल करें, या नया xDiT
doctor-diffusers-cp-takes = diffusers का context parallel is_causal और समूहित हेड अस्वीकार करता है; ring_anything और 1 से बड़े ring_degree वाले variable-length बैकएंड मास्क नहीं लेते; hub कर्नल में वे entry होनी चाहिए जिन्हें वह बुलाता है।
    .fix = मास्क के लिए ring_degree की जगह ulysses_degree, `native` या `_native_cudnn` के साथ; hub कर्नल के लिए pip install -U kernels और उसका snapshot मिटाएँ
doctor-accelerate-parallel = accelerate का context parallel (cp_size) FSDP2 के अंदर dp_shard_size 1 से ऊपर या अकेले आयाम के रूप में चलता है; उसका sequence parallel (sp_size, DeepSpeed) sdpa और flash-attn लेता है, eager और flex नहीं, इसलिए कोई BlockMask नहीं पहुँचता।
    .fix = accelerate config में FSDP version 2; dp_replicate_size=1; अपने मास्क के लिए PyTorch का context parallel या Maskloom की योजनाएँ
doctor-rocm-experimental = इस AMD कार्ड पर PyTorch का fused attention माँगे बिना बंद है, और SDPA स्कोर को पूरा बनाता है।
    .fix = Python शुरू होने से पहले export TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=1; एक क़दम की तुलना उसके साथ और उसके बिना करें
doctor-model-takes-no-block-mask = मॉडल के forward में यह पैरामीटर नहीं: transformers और diffusers के मॉडल attention_mask लेते हैं, और BlockMask तभी आगे देते हैं जब flex_attention बुलाएँ।
    .fix = attn_implementation="flex_attention" के साथ attention_mask=block_mask (transformers); या निर्यात के adapter का use(model)
doctor-torch-missing = जो Python चल रहा है उसमें PyTorch नहीं है: वह दूसरे environment में इंस्टॉल हुआ, या कहीं नहीं। अगर `torch` के बाद बिंदु और दूसरा नाम है, तो PyTorch है और उसमें वह हिस्सा नहीं: वह कोड से अलग release है।
    .fix = कोड चलाने वाले Python से python -m pip install torch; Maskloom के `torch:*` बैकएंड का Python `maskloom doctor` बताता है, और दूसरा MASKLOOM_PYTHON या --python से दें
doctor-maskloom-missing = जो Python चल रहा है उसे Maskloom का एक मॉड्यूल नहीं मिलता। अकेला प्रोग्राम मॉड्यूल `maskloom` नहीं लाता। `maskloom._native` तब नहीं मिलता जब Python checkout के फ़ोल्डर `python` में चले, जिसके source वह import करता है; `maskloom_sidecar` निर्यात के फ़ोल्डर `sidecar` में है।
    .fix = Maskloom के checkout में कोड चलाने वाले Python से python -m pip install . करें, और कोड दूसरे फ़ोल्डर में चलाएँ; sidecar के लिए PYTHONPATH=EXPORT/sidecar
doctor-packed-beside-mask = transformers फिर से शुरू होने वाले position_ids में pack किए नमूने केवल तब खोजता है जब attention_mask None हो और cache न हो। साथ में 2-D मास्क हो, चाहे सब 1 हों, तो मास्क सिर्फ़ causal है, और हर नमूना पहले वालों को देखता है।
    .fix = attention_mask न दें, या 4-D मास्क या दस्तावेज़ों का BlockMask दें, जो जैसा है वैसा लिया जाता है: प्रीसेट `packed_documents`; `maskloom compare` अलग खानों को गिनता है
doctor-flex-cuda-graphs = CUDA graphs (mode="reduce-overhead") में कंपाइल किया function जो लौटाता है उस पर उसका अगला रन लिख देता है: कंपाइल किए create_block_mask का BlockMask अगले चरण तक नहीं टिकता। जो graph आप ख़ुद capture करते हैं वह capture के समय का मास्क पढ़ता रहता है: किसी call के लिए नया बना ब्लॉक मास्क graph में नहीं है।
    .fix = मास्क कंपाइल किए function के बाहर बनाएँ, mode="reduce-overhead" के बिना, और उसके टेंसर हर चरण में एक ही जगह रखें; हर चरण से पहले torch.compiler.cudagraph_mark_step_begin(); या mode="default" (SimpleTuner: "dynamo_mode": "default")
