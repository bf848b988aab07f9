# 医生的解释：每条一个代码，原因和（.fix）该做什么。程序名、选项、代码和版本保持原样。

explain-means = 含义：
explain-do = 做法：
explain-as-of = 依据：
explain-here = 这里：
explain-lost = { $sum } = { $factor }：丢掉了一个这么长的轴，例如头
explain-uneven = { $sum } = { $factor }，不是整数：长度不同
explain-unknown = 不认识这条消息，也没有相近的已知消息。
explain-unknown-do = 运行 `maskloom doctor`，它检查驱动、NVRTC、Python 和显示
explain-own = 这是 Maskloom 自己的消息：代码后面的文字说明哪里不对。
explain-own-do = 按消息下面 `help:` 那一行说的做
explain-similar = 不认识这条消息。最相近的已知消息：

doctor-diffusers-flex-missing = diffusers 的 flex 后端需要 torch 2.5 或更新版本，并带 CUDA。
    .fix = 安装更新的 CUDA wheel：pip install -U torch --index-url https://download.pytorch.org/whl/cu128
doctor-flex-compile = 某训练器的指南归咎于工具包，但 Triton 用自己的编译器编译 FlexAttention，不需要 nvcc。PyTorch 和 diffusers 都没有这条消息。
    .fix = 请读它上方的行：那里写明 Triton 中失败的步骤（缺少 Python.h 或 gcc、共享内存、旧驱动）；`maskloom doctor --explain` 认识这些消息
doctor-flex-helper-missing = 这个 torch 没有这样的辅助函数，尽管训练器的指南提到它：Triton 在第一次调用时编译 FlexAttention。
    .fix = 去掉这个辅助函数；包装调用：torch.compile(flex_attention)。如果指南要求，请升级 torch
doctor-cuda-tensors = 所选的注意力后端只能在 CUDA 上运行；这次运行在 Apple 芯片、ROCm 或 CPU 上。
    .fix = 为这次运行去掉注意力后端设置（`attention_mechanism`）
doctor-dtype = 融合内核需要 16 位输入；这里是 float32 或 float8。
    .fix = 把 mixed_precision 设为 bf16 或 fp16（在 Maskloom 中：dtype bfloat16；float32 在 CPU 上运行）
doctor-backend-never-switches = 这类模型直接调用 PyTorch 的 SDPA，而不经过 diffusers 的分派器，因此只设置分派器的值（flex、flash-attn）传不到它：sd1x、sd2x、sdxl、sd3、flux、lumina2、omnigen 等。替换 SDPA 的值（sageattention、sla、kohaku-fa）或限制它的值（SimpleTuner 4.10 起的 cudnn 和 native-*）可以传到。
    .fix = `maskloom advise config.json` 会针对您的模型和值说明；使用会分派的模型（wan、ltxvideo、qwen_image、flux2、hunyuanvideo、z_image、chroma），或使用导出的 sidecar，它能给每类模型加掩码
doctor-cuda-home = 某个包用工具包编译 CUDA 代码，而没有安装工具包。Maskloom 自己的内核既不需要 nvcc 也不需要 CUDA_HOME。
    .fix = 安装与 torch.version.cuda 相符的 CUDA 工具包，或 export CUDA_HOME=/usr/local/cuda
doctor-cuda-mismatch = torch 所用的 CUDA 版本与已安装的工具包或驱动的不同。
    .fix = 比较 torch.version.cuda 与 `nvcc --version` 和 `nvidia-smi`；安装对应那个 CUDA 的 torch；用 pip install --no-build-isolation 构建扩展
doctor-nvcc-too-old = 编译器（nvcc、ptxas 或 NVRTC）比显卡旧。
    .fix = 安装更新的工具包并把 CUDA_HOME 指向它，或为较旧的架构编译（TORCH_CUDA_ARCH_LIST="8.0"）
doctor-driver-too-old = 驱动比编译内核的工具包旧。
    .fix = 更新驱动，或使用较旧的编译器：驱动 525 到 579 用 NVRTC 12.x（pip install nvidia-cuda-nvrtc-cu12）
doctor-flash-attn-abi = flash-attn 的 wheel 是为另一个 torch 构建的。
    .fix = pip uninstall flash-attn，然后安装 torch、CUDA、Python 和 C++ ABI 标签都与您的相符的 wheel
doctor-flash-attn-ampere = 显卡的计算能力低于 8.0。
    .fix = 在这块显卡上使用 sdpa
doctor-flash-attn-3-hopper = FlashAttention-3 只能在 Hopper 上运行。
    .fix = 在这块显卡上使用 flash_attention_2 或 sdpa
doctor-flash-attn-head-dim = FlashAttention-2 的 head dim 必须是 8 的倍数，且不超过 256。
    .fix = 把 head_dim 填充到下一个 8 的倍数，或使用 flex 或 sdpa（Maskloom 自己的内核会自动填充）
doctor-flash-attn-mask = FlashAttention-2 只计算完整或因果注意力，拒绝其他掩码。
    .fix = 块稀疏掩码用 flex，稠密掩码用 sdpa
doctor-flash-attn-build-slow = 构建需要 10 到 30 分钟，可能用掉超过 8 GB 内存；它没有卡住。
    .fix = 等待，或使用 torch、CUDA、Python 和 ABI 标签都相符的预编译 wheel
doctor-flash-attn-build-memory = flash-attn 的并行构建需要超过 8 GB 内存。
    .fix = MAX_JOBS=2 pip install flash-attn --no-build-isolation，或使用预编译的 wheel
doctor-flash-attn-broke-environment = 缺少 flash-attn，或者安装它时替换了 torch。
    .fix = 新建一个不含 flash-attn 的虚拟环境并继续用 sdpa；验证一个环境：python -c "import flash_attn; print(flash_attn.__version__)"
doctor-flex-uncompiled = 未编译的 FlexAttention 会生成所有分数，很慢，而且不给警告。
    .fix = 在模块级执行一次 flex_attention = torch.compile(flex_attention)；用 diffusers 时编译模型
doctor-recompile-limit = torch.compile 遇到太多不同的 mod 或形状，退回到慢速路径。
    .fix = 只创建一次 mask_mod 并重复使用，保持形状不变，或提高 torch._dynamo.config.recompile_limit
doctor-block-mask-length = BlockMask 是为不同于 q 和 k 的长度创建的。
    .fix = 按确切长度创建：create_block_mask(mask_mod, B, H, q_len, kv_len)
doctor-triton-shared-memory = Triton 内核的 tile 放不进显卡的共享内存。
    .fix = 传入更小的 tile：kernel_options={"{"}"BLOCK_M": 64, "BLOCK_N": 32, "num_stages": 1{"}"}
doctor-sdpa-no-kernel = 被强制使用的 SDPA 后端拒绝这些输入（掩码、dtype、head_dim 或布局）。
    .fix = 允许另一个后端（torch.nn.attention.sdpa_kernel 给出几个后端）；错误上方的警告写明原因
doctor-block-mask-memory = create_block_mask 若不编译，会一次计算 B x H x Q x KV 个布尔值。
    .fix = create_block_mask(..., _compile=True)；掩码不读取 B 和 H 时给它们传 None；或从 Maskloom 导出块列表，它从不生成稠密掩码
doctor-cuda-out-of-memory = 显卡内存已满。生成的分数（eager、未编译的 flex）每个头需要 q_len x kv_len 个值。
    .fix = 用 flex 或 sdpa 代替 eager，缩短序列或减小批；检查 flex_attention 是否已编译
doctor-host-out-of-memory = 计算机（不是显卡）的内存已满：一个张量需要的比剩余的多。
    .fix = 消息中的字节数可以认出这个张量：q_len x kv_len 个值是稠密掩码或全部分数；请用 BlockMask 和编译后的 flex，或更短的序列
doctor-illegal-address = 内核读到了张量之外。用 FlexAttention 时，常见原因是捕获的张量被索引到末尾之外，因为 score_mod 在被遮蔽的位置也会运行。
    .fix = 让捕获的张量与填充后的长度一样长，或限制索引；`maskloom check FILE.py` 列出可能越界的读取
doctor-device-assert = 编译后的内核中有索引越界。常见原因是捕获的张量比序列短。
    .fix = 让捕获的张量与填充后的长度一样长，或限制索引
doctor-not-4d = FlexAttention 的 q、k 和 v 是 [batch, heads, tokens, head_dim]。
    .fix = 用 unsqueeze 加上缺少的维度，或对 [batch, tokens, heads, head_dim] 的张量做 transpose(1, 2)
doctor-head-dim-differs = query 和 key 的最后一维不同。
    .fix = 把两者投影到同一个 head_dim（只有 v 可以不同）
doctor-heads-differ = key 的头数少于 query 的头数。
    .fix = 分组查询请传入 enable_gqa=True
doctor-gqa-heads = 分组查询要求每个 kv 头对应整数个查询头。
    .fix = 选择能整除查询头数的 kv 头数
doctor-mods-callable = and_masks 和 or_masks 接受函数，而不是张量或 BlockMask。
    .fix = 传入 mask_mod 本身，再用结果创建 BlockMask
doctor-zero-length = 序列为空。（为 CPU 编译的 FlexAttention 会因浮点异常结束进程。）
    .fix = 跳过空序列，或使用至少一个 token 的轴
doctor-diffusers-flash-missing = diffusers 没有找到 flash-attn，或找到的早于 2.6.3。
    .fix = maskloom doctor --guide flash-attn；或改回 attention_mechanism "diffusers"，也就是 SDPA
doctor-diffusers-flash-3-missing = diffusers 没有找到 FlashAttention-3。它要从源码构建，只能在 Hopper 上运行。
    .fix = 使用 flash-attn-3-hub，它会下载预编译版本；或使用 attention_mechanism "diffusers"
doctor-diffusers-backend-missing = diffusers 没有找到所请求的注意力后端的包，或者它太旧。
    .fix = 安装消息中写明的包（sageattention 没有反向计算：不要用它训练），或改回 attention_mechanism "diffusers"
doctor-transformers-flash-missing = attn_implementation 请求 flash-attn。这个环境里没有，或无法使用（消息的末尾写明是哪一种）。
    .fix = 改回 attn_implementation="sdpa"，它往往一样快；或 maskloom doctor --guide flash-attn
doctor-transformers-unknown-setting = transformers 不认识这个 attn_implementation；它没有注册，或者是某个训练器或 diffusers 的名称。
    .fix = 使用 eager、sdpa、flash_attention_2、flash_attention_3 或 flex_attention；导出的适配器会在 use(model) 中注册自己的名称
doctor-diffusers-unknown-backend = diffusers 的 set_attention_backend 不认识这个名称；训练器和 transformers 的名称与它的不同。
    .fix = flash-attn 是 "flash"，cudnn 是 "_native_cudnn"，sdpa 是 "native"，flex 是 "flex"
doctor-diffusers-kernels-missing = 名称以 -hub 结尾的后端用 `kernels` 包下载内核。它缺少或太旧。
    .fix = pip install -U kernels
doctor-diffusers-capability = 所选的后端需要比这块更新的显卡。
    .fix = 在这块显卡上使用 attention_mechanism "diffusers" 或 "flex"
doctor-diffusers-mask-refused = 所选的稠密后端不支持掩码，而模型传入了一个。
    .fix = 使用 attention_mechanism "diffusers"（带稠密掩码的 SDPA）或 "flex"
doctor-diffusers-mask-shape = 后端无法把掩码的形状广播到批、头、查询和键。
    .fix = 传入 [batch, 1, 1 或 q_len, kv_len]；BlockMask 不需要改变
doctor-block-mask-sliced = 对 BlockMask 切片会丢失它的 mask_mod。
    .fix = 从原来的掩码重新设置：part.mask_mod = block_mask.mask_mod，并按切片的第一个查询平移
doctor-block-mask-batch = q 的批大小与 k、v 或块掩码的不同。
    .fix = 把 k 和 v 扩展到 q 的批大小，或用 B=None 创建块掩码
doctor-block-mask-device = 块掩码与 q、k 和 v 在不同的设备上。
    .fix = create_block_mask(..., device=query.device)，或 block_mask.to(query.device)
doctor-block-mask-no-mod = create_block_mask 的参数不是 (b, h, q_idx, kv_idx) 的函数。
    .fix = 传入 mask_mod 本身；先调用工厂函数：create_block_mask(sliding_window(1024), ...)
doctor-flex-cpu-backward = FlexAttention 的 CPU 内核只有前向。
    .fix = 在 GPU 上训练，或在 CPU 上用 sdpa
doctor-flex-device = FlexAttention 没有用于这种设备的内核。Apple 的 mps 在 PyTorch 2.15 中有用于推理的内核，更早的版本没有。
    .fix = 在那里使用 sdpa：attention_mechanism "diffusers"，attn_implementation "sdpa"
doctor-flex-backend-option = kernel_options 写了这个 torch 没有的后端，或同时写了两个。
    .fix = 从 kernel_options 去掉 BACKEND，或只把它设为 AUTO、TRITON、FLASH 或 TRITON_DECODE
doctor-branch-on-index = mod 按索引或张量分支（`if`、`and`、`or`、`not`）。
    .fix = 比较之间用 & | ~，并用 torch.where(condition, a, b) 代替 if
doctor-padding-mask-2d = diffusers 的 flex 后端把 2 维 (batch, tokens) 掩码用于查询，它的 native 后端把它用于键。
    .fix = 传入 4 维掩码 [batch, 1, 1, tokens]，或 BlockMask
doctor-nvrtc-missing = 没有找到编译库 NVRTC。
    .fix = maskloom doctor --fix 用 pip 把它安装到 Maskloom 自己的文件夹；或 pip install nvidia-cuda-nvrtc-cu12；或把 MASKLOOM_NVRTC 设为它的路径
doctor-driver-missing = 没有 NVIDIA 驱动，或这个容器无法访问显卡。
    .fix = 安装驱动；启动容器时加上 --gpus all。没有驱动时 Maskloom 在 CPU 上运行
doctor-winit-library = 窗口需要的库或服务器缺失。
    .fix = sudo apt-get install -y libx11-6 libx11-xcb1 libxcursor1 libxi6 libxkbcommon0 libxkbcommon-x11-0 libgl1；`maskloom doctor` 显示缺哪些
doctor-devices-differ = 一次运算的两个张量在不同的设备上，常常是在 CPU 上创建的掩码或表。
    .fix = 在查询所在的设备上创建掩码：make_block_mask(query.device)；在应用设计之前移动模型
doctor-index-out-of-bounds = mod 读取了捕获张量末尾之外的元素：序列比表长。
    .fix = 按模型使用的长度导出设计；导出的模块会用消息拒绝其他长度
doctor-mask-dtype = 掩码是整数；PyTorch 接受 bool（保留）或 float（相加）。
    .fix = 传入 mask.bool()，或与查询 dtype 相同的加性掩码
doctor-vmap-item = mod 按索引分支，或从张量中读出一个数；mod 一次作用于所有单元格。
    .fix = 用 torch.where(condition, a, b) 和 `&` 代替 `if` 和 `and`；`maskloom check FILE.py` 显示改写
doctor-mod-arity = mask_mod 接受 (b, h, q_idx, kv_idx)，score_mod 接受 (score, b, h, q_idx, kv_idx)，每个都是有名称的参数；*args 不算。
    .fix = 写出所有参数的名称；如果跟踪在 maskloom_sidecar 里，请重新导出：较旧的 sidecar 在带掩码的模型上会这样
doctor-diffusers-mask-unsupported = 所选的 diffusers 后端不支持掩码，而模型传入了一个。（`_native_flash` 误印了 aiter 的名称：在 context parallel 下 diffusers 会退到它，因为 native-efficient 和 flex 在那里不能运行。）
    .fix = 选择 `native` 或 `cudnn`（它们在 context parallel 下也能运行，`flex` 不行）；用导出的适配器或 sidecar 时任何后端都可以
doctor-backend-not-registered = 这个 diffusers 不认识该后端，或没有安装它的包。
    .fix = 列出它们：python -c "from diffusers.models.attention_dispatch import AttentionBackendName as A; print(*A)"
doctor-kernels-version = 该后端需要 Hugging Face 的 `kernels` 包。它缺少或太旧。
    .fix = pip install -U kernels；或选择 `native`，它不需要任何包
doctor-no-kernel-image = 这个 PyTorch 或跟踪中的扩展没有这块显卡架构的代码。
    .fix = 安装适合这块显卡的构建：更新的显卡需要更新的 CUDA wheel；Maskloom 的内核包：导出时加 --kernels sm_N
doctor-build-hangs = flash-attn 的构建需要 10 到 30 分钟和超过 8 GB 内存，期间没有任何输出。
    .fix = 等待，或设置 MAX_JOBS=4；或使用 torch、CUDA、Python 和 ABI 标签都相符的预编译 wheel
doctor-environment-broken = 安装 flash-attn 时替换了 torch 或其他包。
    .fix = 新建一个不含 flash-attn 的虚拟环境并继续用 sdpa；然后验证：python -c "import torch; print(torch.__version__)"
doctor-sidecar-left = 被监视的层的一次调用的 token 或网格与设计不同，因此不带掩码运行。
    .fix = 也为那个分辨率导出设计，并在 MASKLOOM_SIDECAR 中写上两个文件夹；MASKLOOM_SIDECAR_STRICT=1 使它成为错误
doctor-sidecar-unwatched = sidecar 已加载，但这个进程中没有模型带被监视的层，或这些层都没有运行。
    .fix = 在 MASKLOOM_SIDECAR_MODELS 中写出模型的类，在 MASKLOOM_SIDECAR_LAYERS 中写出它的层；在导入 diffusers 的进程里，transformers 的模型必须写出名称
doctor-sidecar-unknown-argument = 模型向注意力传入一个运行时无法与设计结合的参数，因此这次调用不带掩码运行。
    .fix = 选择不需要它的层（layers=、MASKLOOM_SIDECAR_LAYERS），并把参数名告诉 Maskloom 的开发者
doctor-sidecar-beside-pattern = 模型带来的不止一个模式，例如其 token 双向关注的图像（PaliGemma、Gemma-3），因此它的调用不带设计运行，之后生成的 token 也是如此。
    .fix = 如果只应以设计为准，请把图像画进设计并设置 MASKLOOM_SIDECAR_REPLACE=1；MASKLOOM_SIDECAR_STRICT=1 使这样的调用成为错误
doctor-sidecar-grid-unknown = 设计需要 token 的网格，而模型的参数中没有。
    .fix = 如果网格就是设计的网格：MASKLOOM_SIDECAR_GRID=assume，或 use(model, grid="assume")
doctor-mod-arguments = mod 的参数与 FlexAttention 传入的不同：mask_mod 得到 (b, h, q_idx, kv_idx)，score_mod 得到 (score, b, h, q_idx, kv_idx)。
    .fix = 使用这些参数名；先调用工厂函数，再传入它返回的 mod
doctor-hub-kernels-version = 名称以 -hub 结尾的后端通过 `kernels` 包下载内核。它缺少或太旧。
    .fix = pip install -U kernels；或选择不需要下载的后端（`diffusers`，也就是 SDPA）
doctor-no-valid-choices = 对这个 head_dim 和 BLOCK_SIZE，FlexAttention 的内核配置都放不进显卡的内存，通常是在 BLOCK_SIZE 64 的反向计算或 autocast 下。
    .fix = 用 BLOCK_SIZE 128 创建 BlockMask；调用前把 q、k 和 v 转成同一种 16 位 dtype；传入 kernel_options={"{"}"BLOCK_M": 64, "BLOCK_N": 64{"}"}
doctor-cudnn-refused = cuDNN 的融合注意力不支持这种掩码、head_dim、dtype 或布局。
    .fix = 改回 `diffusers` 或 `native`，由 PyTorch 选择内核
doctor-mask-shape = 稠密掩码是为不同于这次调用的 token 数创建的：另一种分辨率、另一种文本长度，或缓存。
    .fix = 按这次调用自己的 q_len 和 kv_len 创建，形状为 [batch 或 1, heads 或 1, q_len, kv_len]；导出的模块有 make_mask(device, q_len, kv_len)
doctor-checkpoint-metadata = 梯度检查点在反向计算时重新运行了一层，结果却不同：另一个掩码、另一个后端，或首次使用的编译函数。
    .fix = 按调用的长度而不是计数器或全局变量来选择注意力；不编译地运行一步，以看到层的名称
doctor-graph-twice = 一个需要梯度的张量只计算了一次，却用在两个训练步中，例如 mod 捕获的可学习偏置。
    .fix = 在每一步中重新计算它，放在创建 score_mod 的函数里
doctor-flash-attn-dtype = flash-attn 支持 float16 和 bfloat16，而模型是 float32。
    .fix = 用 dtype=torch.bfloat16 加载模型，或用 mixed_precision bf16 训练
doctor-triton-missing = 编译的 FlexAttention 需要 Triton；PyTorch 的 Linux CUDA wheel 会安装它，其他构建没有。
    .fix = 安装 PyTorch 的 CUDA wheel；在 Windows 上 pip install triton-windows
doctor-python-headers = Triton 用 C 编译器构建它的启动器，却找不到这个 Python 的头文件。
    .fix = 安装它们：apt install python3-dev，或您所用 Python 版本的头文件
doctor-c-compiler-missing = Triton 和 Inductor 用 C 编译器构建小程序，而没有安装编译器。
    .fix = apt install build-essential，或指定一个：CC=clang
doctor-setting-unknown = 训练器不认识这个 attention_mechanism：它只接受自己的名称。
    .fix = 使用 diffusers、native、flash-attn、flash-attn-3-hub、flex、cudnn 或 sageattention；`maskloom export --backend` 会写出名称
doctor-flag-unknown = 这个程序没有这样的设置：attention_mechanism 属于 SimpleTuner，attn_implementation 属于 transformers。
    .fix = 看它自己的 --help；导出的 sidecar 不用设置就能应用掩码
doctor-loss-nan = 没有任何键的行，在对此没有规定的注意力中会得到 NaN：丢弃整行的稠密掩码 SDPA，或 -inf 的加性掩码。
    .fix = `maskloom check` 和块统计会统计空行；至少保留 token 自己（从 0 到 0 的带）。FlexAttention 对这样的行返回 0
doctor-fullgraph-break = 模型用 fullgraph=True 编译，却调用了无法跟踪的代码。sidecar 从张量的值（img_ids）读取网格时会这样。
    .fix = 不用 fullgraph 编译；如果网格就是设计的，MASKLOOM_SIDECAR_GRID=assume 或 use(model, grid="assume") 不读取任何张量
doctor-flex-cpu-training = FlexAttention 在 CPU 上不计算梯度。
    .fix = 在 GPU 上训练；在 CPU 上测试时用导出的适配器或 sidecar，它们在那里生成所有分数
doctor-safetensors-header = 文件不是 safetensors 文件，或被截断。它常常是几百字节的 Git LFS 指针。
    .fix = 检查它的大小；重新下载（git lfs pull、huggingface-cli download）
doctor-dropout-refused = 模型用注意力 dropout 训练，而 FlexAttention 不支持它。
    .fix = 设为 0：模型配置中的 attention_dropout，层中的 dropout
doctor-two-designs = 两个导出的设计针对相同的 token、网格和层，因此都不使用。
    .fix = 在 MASKLOOM_SIDECAR 中只写一个，或在每个的 sidecar.json 中写上 "layers"
doctor-not-proved = verify 用设计和手工传入的同一掩码运行了模型。结果不同，或有些调用没有带设计。
    .fix = 那一行写出没有掩码的调用及原因；如果全都有掩码，请把这一行和模型的配置发给 Maskloom 的开发者
doctor-capture-read-twice = FlexAttention 的反向计算只支持对需要梯度的捕获张量读取一次，而 score_mod 读取了两次。
    .fix = 第二次读取一个副本：在 mod 之前 `other = bias.clone()`；autograd 会把两个梯度相加
doctor-flash-backend-refused = kernel_options 选择了 FlexAttention 的 FLASH 后端。它没有捕获张量的梯度，在某些显卡上也没有经过 logsumexp 的梯度。消息的末尾写明原因。
    .fix = 去掉 BACKEND，或设置 kernel_options={"{"}"BACKEND": "TRITON"{"}"}；`maskloom verdict` 在运行之前列出前向和反向都支持该设计的后端
doctor-kernel-folder = 训练器的指南把这个文件夹说成已构建 flex 内核的位置。PyTorch 没有这样的文件夹：torch.compile 和 Triton 写入 TORCHINDUCTOR_CACHE_DIR 和 ~/.triton/cache。
    .fix = 去掉这个设置；要重新编译，请删除那两个文件夹
doctor-flex-prototype = FlexAttention 的接口可能随 PyTorch 版本变化。它的内核在第一次调用时编译，并按当时的 PyTorch、Triton 和驱动版本缓存。
    .fix = 不需要手工重建：更新之后第一步会重新编译，需要一两分钟
doctor-ragged-masks = 一个 BlockMask 对整个批只有一个 q_len 和 kv_len。长度不同的样本需要在一个序列里作为文档，或填充。
    .fix = 把它们打包并按文档加掩码：预设 `packed_documents`，或带 `doc[q_idx] == doc[kv_idx]` 的 mask_mod；模型自己传入的填充会与设计结合
doctor-card-too-old = tensor core 上的 bfloat16 和 flash-attn 的融合内核需要计算能力 8.0（A100、RTX 30 及更新）。
    .fix = `maskloom doctor` 写出显卡及其计算能力；较旧的显卡用 sdpa 和 fp16
doctor-sidecar-not-loaded = 环境会加载 Maskloom 的 sidecar，但有一个设置不对：脚本不带掩码运行。
    .fix = 行末写出这个设置；改正后重新启动。MASKLOOM_SIDECAR 指向一个导出的文件夹
doctor-fa4-block-size = FlashAttention-4 要求 BlockMask 的查询块与它自己的 tile 一样大：Blackwell（sm_100）上是 256，Hopper 上是 128。在 context parallel 下，2.15 之前的 PyTorch 会用 128 x 128 重建每个 rank 的掩码，丢掉您选择的 BLOCK_SIZE。
    .fix = 升级到 PyTorch 2.15，或在分片之后用 BLOCK_SIZE=(256, 128) 重新创建掩码；kernel_options={"{"}"BACKEND": "TRITON"{"}"} 接受任何大小。均衡器 PTRR 要求查询块和键块相等，所以 (256, 128) 无法均衡；Hopper 上 128 是对的
doctor-hub-kernel-no-variant = hub 内核没有这一对 torch 和 CUDA 的构建。kernels-community/flash-attn2 的版本 1 止于 torch 2.12。
    .fix = 请求带稳定 ABI 的构建：attn_implementation="kernels-community/flash-attn2@v3"（torch 2.9 或更新），或更新的 transformers，或 sdpa
doctor-hub-kernel-stale = 缓存的 hub 内核快照比它的页面列出的构建旧。
    .fix = 删除 ~/.cache/huggingface/hub 里的那个快照，或 pip install -U kernels，然后联网重新运行
doctor-hub-kernel-not-loaded = hub 后端（`sage_hub`、`flash_hub`）只设在一个注意力模块上。模块的设置函数不会下载内核，只有模型的会。在 diffusers 的分派器之外，消息只说调用了 None。
    .fix = 先在模型上调用 set_attention_backend（pipe.transformer.set_attention_backend("sage_hub")），再设置单个块，或设置所有块
doctor-flash-mask-refused-since-037 = 从 diffusers 0.37 起 flash 后端拒绝掩码。之前它们忽略掩码，填充的提示词会得到错误的图片：降级会让错误的图片回来。
    .fix = 使用 native、cudnn 或 flash_varlen（flash_varlen_hub），它们接受填充；或不填充的批 1
doctor-aiter-mask = 在 NVIDIA 上这段文字有误导：`_native_flash` 拒绝掩码，却印出 aiter 的名称。diffusers 在 context parallel 下选择它，因为 `native-efficient` 和 `flex` 在那里不能运行。
    .fix = 选择 `cudnn` 或 `native`，它们在 context parallel 下能运行并接受掩码；`flex` 在 context parallel 下不能运行
doctor-block-mask-arithmetic = 模型把掩码当作张量来运算，而 FlexAttention 给它的是 BlockMask。这类模型不支持 flex_attention。
    .fix = 对这类模型用 attn_implementation="sdpa" 或 "eager"；导出的适配器或 sidecar 可以给它加掩码，而模型里没有 BlockMask
doctor-block-mask-device-default = 到 PyTorch 2.10 为止，create_block_mask 不给 device= 就在 cuda 上创建掩码，于是 CPU 的张量遇到 GPU 的掩码。
    .fix = create_block_mask(..., device=query.device)，或 block_mask.to("cpu")。FlexAttention 在 CPU 上本来也没有反向计算
doctor-vmap-index = mod 索引 Python 列表、调用 int() 或 .item()，或对索引使用 `if`。mod 一次作用于所有单元格，那里索引是没有唯一值的张量。
    .fix = 把列表变成捕获的张量（doc = torch.tensor(list)）再索引它；使用 & | ~ 和 torch.where；`maskloom check FILE.py` 写出行号并显示改写
doctor-reshape-lost-heads = 张量被重塑成比它的元素更少的形状。在变长注意力中，当一个批里的描述长度不同时，常常丢掉头这个轴。
    .fix = 使用批 1，或训练器的拆分注意力（--split_attn）；如果商等于头数，就是输出重塑时少了头这个轴
doctor-cuda-runtime-library = 扩展的 wheel 所用的 CUDA 与 torch 的不同。`.so.` 后面的数字是 wheel 的（libcudart.so.12：CUDA 12，libcudart.so.13：CUDA 13），torch 版本里 `+cu` 后面的数字是 torch 的（+cu126：CUDA 12，+cu130：CUDA 13）。
    .fix = 安装为 torch 的 CUDA 构建的 wheel（python -c "import torch; print(torch.version.cuda)"）、hub 内核（flash-attn-hub），或使用另一个 CUDA 的 torch
doctor-wheel-not-found = 这个版本的 flash-attn 没有适合您的 torch 和 Python 的 wheel；2.8.3 没有 torch 2.9.1+cu130 与 Python 3.13 的。
    .fix = FLASH_ATTENTION_FORCE_BUILD=TRUE TORCH_CUDA_ARCH_LIST="9.0" pip install flash-attn --no-build-isolation，或 hub 内核，或 sdpa
doctor-xformers-flash-version = 这条抱怨来自 diffusers 导入的 xformers：它接受一段范围内的 flash-attn 版本，而装的是更新的。
    .fix = 升级 xformers，或 pip uninstall xformers，或设置 XFORMERS_IGNORE_FLASH_VERSION_CHECK=1
doctor-sage-head-dim = SageAttention 的 head dim 只能是 64、96 和 128。它替换了所有 SDPA 调用，也包括 VAE（512）或 UNet 的 ControlNet（40、80、160）里的。
    .fix = 只在 transformer 的层里用它，其他地方用 SDPA；它也不接受 attn_mask，并且没有反向计算
doctor-nested-tensor = 在 jagged 嵌套张量上，head_dim 与批不同时 FlexAttention 会失败，而 PyTorch 2.15 拒绝嵌套张量。
    .fix = 把样本打包到一个序列里并加文档掩码：预设 `packed_documents`，doc[q_idx] == doc[kv_idx]
doctor-flash-3-unpack = FlashAttention-3 只有在要求时才返回 logsumexp，而这个 diffusers 仍然解包两个值。
    .fix = 升级 diffusers，或使用 `_flash_3_hub`（flash-attn-3-hub），它的内核版本是固定的
doctor-flash-backward-tiles = FlashAttention-4 在 Hopper 上的反向计算自己选择 tile（head_dim 192 时宽 96），128 的 BlockMask 与它不合。
    .fix = 用 BLOCK_SIZE=(128, 96) 创建掩码，或 kernel_options={"{"}"BACKEND": "TRITON"{"}"}，或 Maskloom 导出的内核
doctor-deterministic-flash = 在 FlashAttention-4 里，带块掩码的确定性反向计算只在 Blackwell 上有。在 Hopper 上，一个提议中的版本在 16k token 时耗时为 5.33x。
    .fix = 在 Hopper 上按 PyTorch 的消息用 kernel_options={"{"}"BACKEND": "TRITON"{"}"}，或用 --deterministic 和 Maskloom 的内核（`maskloom run --pass both --deterministic` 显示代价），或者不用
doctor-negative-sparsity = 2.15 之前的 PyTorch 用整块的单元格数除以序列的单元格数，因此比块还短的序列会印出负的稀疏度。2.15 数的是块。
    .fix = 掩码没有问题；`maskloom blocks` 印出单元格的份额和两个版本的数字
doctor-causal-flag-and-mask = 一次调用同时传入掩码和 is_causal=True。PyTorch 的 SDPA 拒绝两者并用。diffusers 的 flex 后端对不带掩码的 is_causal=True 计算完整注意力，并且不声不响地丢弃随它而来的稠密掩码。
    .fix = 把因果性并入掩码：`(q_idx >= kv_idx) & mask` 的 BlockMask；对传入 is_causal=True 的模型（cosmos3）选择 diffusers、native 或 cudnn
doctor-gpu-out-of-memory = 显卡内存已满。生成的分数（eager、未编译的 flex）每个头需要 q_len x kv_len 个值。
    .fix = 用编译的 flex 或 sdpa 代替 eager，缩短序列或减小批；`maskloom verdict` 写出分数的字节数
doctor-allocator-setting = 空闲内存被分成太小的碎片。这个设置改过名：PYTORCH_ALLOC_CONF 就是 2.9 之前 PyTorch 的 PYTORCH_CUDA_ALLOC_CONF。
    .fix = export PYTORCH_ALLOC_CONF=expandable_segments:True（2.9 之前用 PYTORCH_CUDA_ALLOC_CONF）；如果单个张量就太大，它没有用
doctor-tensor-memory = Triton 内核需要的 Blackwell 张量内存超过所有：对这个 head_dim，tile 太大。
    .fix = 传入更小的 tile：kernel_options={"{"}"BLOCK_M": 64, "BLOCK_N": 64{"}"}，或 BLOCK_SIZE 64
doctor-mod-argument-missing = mod 得到的参数比它需要的少：score_mod 被当作 mask_mod 传入，传入了工厂函数而不是它返回的 mod，或者 create_mask 用四个索引调用了 mod。
    .fix = mask_mod(b, h, q_idx, kv_idx)，score_mod(score, b, h, q_idx, kv_idx)；先调用工厂函数
doctor-mod-is-method = 对 PyTorch 来说绑定方法不是 mask_mod：它把 `self` 也算作参数。
    .fix = 包装它：lambda b, h, q_idx, kv_idx: self.mask(b, h, q_idx, kv_idx)；或在方法里定义 mod 并返回它
doctor-driver-old-for-torch = 驱动比这个 torch 的 CUDA 旧。
    .fix = 更新驱动，或安装为较旧 CUDA 构建的 torch：pip install torch --index-url https://download.pytorch.org/whl/cu126
doctor-link-libcuda = Triton 把它的启动器与 libcuda 链接，而链接器只找到 libcuda.so.1：容器里有驱动，但没有开发用的链接。
    .fix = 在它旁边 ln -s libcuda.so.1 libcuda.so，或 export LIBRARY_PATH=/usr/local/cuda/lib64/stubs，或 ldconfig
doctor-dtypes-differ = q、k 和 v 的格式不同，常常是因为 norm 或旋转嵌入在 autocast 下返回 float32。
    .fix = 调用前转换：k = k.to(q.dtype)，v = v.to(q.dtype)
doctor-mask-format = 掩码既不是 bool，也不是查询的格式。
    .fix = 传入 mask.bool()（True 表示保留），或与查询 dtype 相同的加性掩码：mask.to(query.dtype)
doctor-cudnn-status = cuDNN 的融合注意力不支持这种掩码、head_dim、格式或布局，或者它对这块显卡太旧。
    .fix = 让 PyTorch 选择：torch.backends.cuda.enable_cudnn_sdp(False)，或 attention_mechanism `diffusers` 或 `native`
doctor-kernel-image-invalid = 驱动无法加载这段机器码：它属于另一种架构、已损坏，或比驱动新。
    .fix = 更新驱动；删除内核缓存（~/.triton/cache、`maskloom kernels clear`）；安装适合这块显卡的构建
doctor-flex-not-supported-by-model = transformers 的这类模型不接受 BlockMask。
    .fix = attn_implementation="sdpa"；导出的适配器或 sidecar 照样能把设计应用到它
doctor-flex-multiple-of-128 = PyTorch 2.5 的 FlexAttention 只接受 128 的倍数的长度。
    .fix = 升级到 PyTorch 2.6 或更新，或填充序列并遮蔽填充部分
doctor-kohaku = SimpleTuner 的 `kohaku-fa` 内核接受 fp16 或 bf16 以及不带 is_causal 的布尔掩码，不支持 dropout 和 context parallel，运行于 sm_89、sm_90、sm_100、sm_103 和 sm_120。4.10 起的默认值 `kohaku-fa-auto` 会自动退回 PyTorch 的 SDPA。
    .fix = 用 `kohaku-fa-auto` 时不用做什么；用 `kohaku-fa` 时改回它或 `diffusers`。导出的 sidecar 在两者下都保持掩码
doctor-sage-in-training = SageAttention 只有前向：训练时注意力层得不到梯度。它还会忽略掩码。默认（sageattention_usage inference）它只在验证时起作用，所以训练不会变快。
    .fix = 训练用 attention_mechanism `diffusers`、`cudnn` 或 `flash-attn`；把 sageattention 留给验证
doctor-prototype-in-words = FlexAttention 的接口可能随 PyTorch 版本变化。它的内核在第一次调用时编译，并按当时的 PyTorch、Triton 和驱动版本缓存。
    .fix = 不需要手工重建：更新之后第一步会重新编译，需要一两分钟
doctor-ragged-in-words = 一个 BlockMask 对整个批只有一个 q_len 和 kv_len。长度不同的样本需要在一个序列里作为文档，或填充。
    .fix = 把它们打包并按文档加掩码：预设 `packed_documents`，或带 `doc[q_idx] == doc[kv_idx]` 的 mask_mod
doctor-wheel-not-supported = wheel 的标签（Python、ABI、系统）与这个解释器不符。
    .fix = 选择 cpXY 标签等于 python -c "import sys; print(sys.version_info[:2])" 且 torch 和 CUDA 与您相同的文件；maskloom doctor --guide flash-attn 会替您填好
doctor-context-parallel-mask = 在 context parallel 下，多数路径不接受掩码：ring attention 只能因果或完整，TransformerEngine 接受 THD 中的填充加因果或窗口，而 accelerate 在改为拒绝之前会丢掉每层的掩码，训练的是完整的因果注意力。
    .fix = 使用 PyTorch 带 all-gather 和 BlockMask 的 context parallel，或 MagiAttention 的切片；`maskloom verdict` 说明掩码有哪些形式
doctor-killed = 系统结束了进程，因为计算机的内存（不是显卡的）满了。
    .fix = 构建时减小 MAX_JOBS；加载权重时用 low_cpu_mem_usage；减少 dataloader 的工作进程；增加交换空间
doctor-flex-eager-memory = 未编译的 FlexAttention 以 float32 生成所有分数：每层 batch x heads x q_len x kv_len x 4 字节，softmax 还要同样多。
    .fix = 在模块级执行一次 flex_attention = torch.compile(flex_attention)；`maskloom verdict` 在运行之前印出设计的字节数
doctor-block-mask-slow = create_block_mask 计算 B x H 个掩码的每个单元格。不读取 `b` 或 `h` 的 mod 会得到 B x H 份相同的列表。
    .fix = mod 不读取 B 和 H 时传 B=None 和 H=None（`maskloom check FILE.py` 说明它读取哪些）；同一长度的所有层和训练步只创建一次掩码；或使用 maskloom.create_block_mask
doctor-sdpa-keyword = 这个 PyTorch 比该参数旧：scale 随 2.1 而来，enable_gqa 随 2.5 而来。
    .fix = pip install -U torch；没有 enable_gqa 时重复键：k.repeat_interleave(groups, 1)
doctor-flex-head-dim-small = FlexAttention 接受 16 及以上的 head dim；PyTorch 2.5 还要求是 2 的幂。
    .fix = 把 q、k 和 v 用零补到 16 列并传入 scale=1/sqrt(head_dim)；像 96 这样的维度请升级到 PyTorch 2.6
doctor-flex-block-divides-tile = 内核的 tile 不能整除掩码的块：kernel_options 的 BLOCK_M 和 BLOCK_N，或自动调优所选的 tile，与掩码的 BLOCK_SIZE 不合。
    .fix = 用 BLOCK_SIZE=128 创建掩码，或把 BLOCK_M 和 BLOCK_N 设为其 BLOCK_SIZE 的约数
doctor-flex-decode-groups = FlexAttention 的解码内核（查询很少时运行）要求每个键头有 1、2、4、8 …… 个查询头。
    .fix = kernel_options={"{"}"FORCE_USE_FLEX_ATTENTION": True{"}"}（2.15：{"{"}"BACKEND": "TRITON"{"}"}），或填充查询头
doctor-flex-decode-unavailable = 解码内核用于少量查询（少于 128）以及编译时已知的大小。
    .fix = 让 BACKEND 保持 AUTO
doctor-block-mask-smaller = BlockMask 的长度与 q 和 k 的不同。每种长度都要创建或调整一个掩码。
    .fix = 为这次调用 create_block_mask(mask_mod, B, H, q.size(-2), k.size(-2))；如果只是长度不同，填充到同一长度
doctor-block-mask-broadcast = q 的批大小与 k 和 v 的不同。FlexAttention 只广播批 1。
    .fix = 扩展 k 和 v：k.expand(q.size(0), -1, -1, -1)
doctor-block-mask-built-by-hand = 手工构建的 BlockMask 缺少列表：满块需要计数和索引同时给出，反向计算需要按键块的列表（q_num_blocks、q_indices）。
    .fix = BlockMask.from_kv_blocks(kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, BLOCK_SIZE=..., mask_mod=..., seq_lengths=(q_len, kv_len)) 会生成全部；导出的块列表也都有
doctor-block-mask-is-no-tensor = 需要稠密掩码的地方得到了 BlockMask：SDPA 和会把掩码加到别的东西上的模型需要张量。
    .fix = 给 SDPA 稠密掩码：create_mask(mask_mod, B, H, q_len, kv_len, device)，或导出模块的 make_mask；或调用 flex_attention
doctor-deterministic-metadata = FlexAttention 的 FLASH 后端要有掩码的更多列表，才能按固定顺序累加梯度。
    .fix = create_block_mask(..., compute_dq_write_order=True)，或 TRITON 后端，或用 --deterministic 的 Maskloom 内核
doctor-flex-mixed-dtypes = q、k 和 v 的格式不同，常常是因为 norm 或旋转嵌入在 autocast 下返回 float32。
    .fix = 调用前转换：k = k.to(q.dtype)，v = v.to(q.dtype)
doctor-flex-lse-options = FlexAttention 如何返回 logsumexp 取决于 PyTorch 版本：到 2.8 用 return_lse=True，从 2.9 起用 return_aux=AuxRequest(lse=True)。在 CPU 上编译时它不返回；FLASH 不返回最大分数。
    .fix = 使用您的版本的形式，并且只用其中一个
doctor-score-mod-without-score = score_mod 必须返回由 `score` 算出的张量，并且不能就地修改任何东西；mask_mod 不能捕获要学习的张量。
    .fix = 返回 torch.where(keep, score, -inf) 而不是常数；把可学习的表移到 score_mod 里，或在 mask_mod 里用 tensor.detach()
doctor-higher-order-op-rule = 某种模式或张量子类（FlopCounterMode、DTensor、选择性检查点）遇到了它没有规则的 flex_attention。
    .fix = 让注意力不在那种模式里：用 `maskloom verdict` 统计 FLOP，对整层做检查点，传入本地张量（to_local()）
doctor-ddp-optimizer = DistributedDataParallel 会切分编译图，而 FlexAttention 的图不能切分。
    .fix = 编译之前设 torch._dynamo.config.optimize_ddp = False；或只编译 flex_attention 而不是模型
doctor-fx-on-compiled = 编译过的函数（torch.compile(flex_attention)）在另一个跟踪器正在记录的代码里被调用：检查点、make_fx、torch.func 或导出。
    .fix = 在那里调用普通的 flex_attention 并编译外层函数；核对结果时设 torch._dynamo.config.error_on_nested_fx_trace = False
doctor-vmap-in-place = mod 就地修改张量（`m |= ...`、`m[q_idx] = ...`）。mod 一次作用于所有单元格。
    .fix = 写成 m = m | other，并用 torch.where 代替对元素的赋值
doctor-vmap-random = mod 抽取随机数。mod 一次作用于所有单元格，而且会运行多次：必须事先抽取。
    .fix = 在外面抽出一张表再捕获它：keep = torch.rand(B, kv_len) > 0.15，然后 keep[b, kv_idx]
doctor-vmap-dynamic-shape = mod 调用了结果大小随单元格变化的东西（nonzero、布尔索引、unique），或打印了值，或调用了 vmap 不认识的算子。
    .fix = 在 mod 外面算好这样的表并捕获；`maskloom check FILE.py` 写出行号
doctor-flash-not-compiled-in = 这个 PyTorch 构建（包括 Windows wheel）内部没有 FlashAttention；SDPA 使用另一个内核。这是警告：结果是对的。
    .fix = 不用做什么；要在 Windows 上更快，请用更新的 wheel 或 cuDNN 的内核，或用 triton-windows 的 FlexAttention
doctor-sdpa-why-not = SDPA 被要求只用一个内核（sdpa_kernel、set_attention_backend），并印出每个内核拒绝这些输入的原因；`runtime disabled` 是您自己的选择。FlashAttention 完全不接受掩码。
    .fix = 读您想用的内核那一行；带掩码时允许 SDPBackend.EFFICIENT_ATTENTION 或 CUDNN_ATTENTION，或用 flex 和 BlockMask
doctor-attn-bias-aligned = memory-efficient 内核要求稠密掩码的每行从 8 个元素的倍数处开始，而键的数量不是这样的倍数。
    .fix = 按填充到 8 的倍数的 kv_len 分配掩码再切片：mask[..., :kv_len]；或使用 BlockMask
doctor-cutlass-no-kernel = memory-efficient 内核没有适合这块显卡、格式或 head_dim 的变体；常常是 Ampere 之前的显卡上的 bfloat16，或只有 16 位变体时的 float32。
    .fix = 在这样的显卡上用 fp16；或 torch.backends.cuda.enable_mem_efficient_sdp(False)，剩下 PyTorch 的 math 内核
doctor-xformers-no-operator = xformers 没有适合这些输入的内核；消息下方每个内核都写明原因：dtype、head_dim、掩码类型，或没有为这个 torch 构建 CUDA。
    .fix = 安装与您的 torch 相配的 xformers（python -m xformers.info）；转成 bf16；或使用 PyTorch 的 SDPA，它如今一样快
doctor-grid-limit = 内核启动的网格超过显卡的上限：batch x heads 大于 65,535，或者没有任何 token。
    .fix = 把批分成几次调用注意力；跳过空序列
doctor-stride-changed = 编译的内核按一种内存布局生成，却得到另一种，常常是 q、k 或 v 在一次调用里转置而下一次没有，或 torch.compile 读错了内核的布局。
    .fix = 在注意力之前对 q、k 和 v 调用 .contiguous()；升级之后删除编译缓存（~/.cache/torch、/tmp/torchinductor_*）
doctor-varlen-offsets = 变长注意力的样本偏移必须是 int32，比样本多一个，在查询所在的设备上，从 0 开始，以 token 总数结束。
    .fix = cu_seqlens = F.pad(lengths.cumsum(0), (1, 0)).to(torch.int32)；max_seqlen = int(lengths.max())
doctor-query-has-wrong-axes = q、k 和 v 的轴数与注意力要求的不同：diffusers 是 [batch, tokens, heads, head_dim]，PyTorch 是 [batch, heads, tokens, head_dim]。
    .fix = 调用之前重塑：x.unflatten(-1, (heads, -1))，PyTorch 还要 transpose(1, 2)
doctor-diffusers-gqa = diffusers 的这个后端要求键头数与查询头数相同。
    .fix = 调用之前 k.repeat_interleave(groups, 2)，v 也一样；或使用后端 `native`
doctor-diffusers-no-backward = diffusers 的这个后端只用于推理：用它训练得不到梯度。
    .fix = 用 `native`、`_native_cudnn`、`flash` 或 `flex` 训练
doctor-diffusers-import-failed = diffusers 找到了包，但导入失败，于是改用 SDPA。中间的文字说明原因：通常是另一个 torch 或 CUDA 的 wheel。
    .fix = python -c "import flash_attn" 单独印出原因；`maskloom doctor --explain` 可以解释那条消息
doctor-diffusers-arguments-removed = 模型传入了所选后端没有的参数，diffusers 把它去掉：如果是 attn_mask，掩码就被忽略了。
    .fix = 看列表里有没有 attn_mask；如果有，选择接受它的后端：native、_native_cudnn、flex
doctor-diffusers-lse = 这个后端不返回 logsumexp，而 context parallel 合并时需要它。
    .fix = 在 context parallel 下选择 `_native_cudnn`、`_native_flash`、`flash` 或 `sage`
doctor-cp-degrees = context parallel 的各个度数与进程数不符：它们的乘积必须等于 rank 数，而有些组合没有实现。
    .fix = ring_degree x ulysses_degree = GPU 数，每个至少为 1，其中一个大于 1；Ulysses 还要求头数能被度数整除
doctor-cp-length = context parallel 把 token 平均分配，而这个长度不能整除。均衡块时，每份必须是整数个块。
    .fix = 把序列填充到 ranks x BLOCK_SIZE 个 token（首尾均衡时 2 x ranks），并遮蔽填充部分；`maskloom parallel` 可以规划任何长度
doctor-cp-what-it-takes = PyTorch 的 context parallel 接受不带掩码或因果的 SDPA，用 FlashAttention 或 memory-efficient 内核；BlockMask 需要它的 flex 路径和 all-gather，它的均衡器要求查询块和键块相等。
    .fix = 用 all-gather 方法的 flex_attention 和 BLOCK_SIZE=128，或 Maskloom 的分布式计划（文档：多块 GPU）
doctor-output-attentions = 融合注意力从不持有概率，因此无法返回它们。
    .fix = 那次运行用 attn_implementation="eager"；`maskloom run PRESET --out` 和窗口的概率图可以显示某个设计的概率
doctor-window-not-applied = 模型的配置有窗口（或分块），而这种注意力没有应用它，或者配置缺少它的大小：模型看到的键比训练时多。
    .fix = 使用 flex_attention，或带 window_size 的 flash_attention_2；用 `maskloom compare` 比较两个掩码
doctor-flash-lacks-feature = 加载的 flash-attn 缺少模型需要的功能：softcap、分块、sinks，或变长入口之外的普通入口。
    .fix = attn_implementation="flex_attention" 或 "eager"，它们都有；softcap 需要升级 flash-attn（2.6）
doctor-padding-side = 生成时，最新的 token 必须在每行的最后；填充在右边时，模型会从填充处继续。
    .fix = tokenizer.padding_side = "left"，并传入 attention_mask
doctor-packed-without-varlen = 打包的样本靠文档边界分开：没有边界，每个样本都会看到前面的样本。
    .fix = 传入重新从头计数的 position_ids 且不传 2 维 attention_mask（transformers 就会找到边界），或用变长的 flash_attention_2，或用预设 `packed_documents` 作为 BlockMask
doctor-card-newer-than-torch = 这个 PyTorch 构建没有这块显卡的代码：Blackwell（sm_100、sm_120）需要 CUDA 12.8 和 PyTorch 2.7 或更新。
    .fix = pip install -U torch --index-url https://download.pytorch.org/whl/cu128（或更新）
doctor-torch-without-cuda = 安装的 PyTorch 是 CPU 构建；pip 在 Windows 上从 PyPI 取了它，或依赖解析替换了 CUDA 构建。
    .fix = pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cu128
doctor-no-gpu-visible = 进程看不到显卡，或看到的比要求的少：CUDA_VISIBLE_DEVICES 隐藏了它，容器启动时没有带上它，或启动的进程比显卡多。
    .fix = 看 nvidia-smi 和 echo $CUDA_VISIBLE_DEVICES；docker run --gpus all；--nproc_per_node = 显卡数
doctor-build-without-isolation = pip 在自己的环境里构建扩展，那里没有安装 torch。
    .fix = 先 pip install torch packaging ninja psutil wheel，再 pip install flash-attn --no-build-isolation
doctor-flash-build-failed = 扩展的构建在编译器里失败；原因在上方第一个 `error:` 处。最常见的是：没有 CUDA 工具包或版本不同、内存太少（Killed），或 nvcc 不接受的编译器。
    .fix = 预编译的 wheel 或 hub 内核可以省去构建；否则用 MAX_JOBS=2、与 torch 的 CUDA 相同的 CUDA_HOME，以及 nvcc 允许范围内的 gcc
doctor-glibc-too-old = wheel 是在比这里更新的 Linux 上构建的：这里的 C 库比 wheel 需要的旧。
    .fix = 在这里构建（FLASH_ATTENTION_FORCE_BUILD=TRUE），使用系统更新的容器，或者为 GLIBCXX 用 conda 的 libstdcxx-ng
doctor-dll-load-failed = 在 Windows 上，扩展是为另一个 torch、Python 或 CUDA 构建的，或缺少 CUDA 的库。
    .fix = 安装恰好对应这个 torch、CUDA 和 Python 的 wheel；或用不需要它的 SDPA；FlexAttention 用 triton-windows
doctor-extension-of-another-torch = 编译的扩展是为另一个 PyTorch 构建的：它的函数在那里名称不同。
    .fix = 为这个 torch 重新安装扩展（pip uninstall 它，再装相配的 wheel 或 --no-build-isolation），或使用 SDPA
doctor-flash-import-name = flash-attn 缺少、损坏，或是另一代：flash_attn（2）、flash_attn_interface（3）、flash_attn.cute（4）是不同的包。`unknown location` 表示先找到了一个空的 flash_attn 文件夹。
    .fix = pip show -f flash-attn；删除残留的文件夹；attn_implementation="sdpa" 不需要它；maskloom doctor --guide flash-attn
doctor-flex-import-name = 这个 PyTorch 没有 FlexAttention（早于 2.5），或缺少后来才有的名称（AuxRequest 随 2.9 而来）。
    .fix = pip install -U torch；在同一环境里 python -c "import torch; print(torch.__version__)"
doctor-flex-keyword = 这个 PyTorch 的 FlexAttention 没有这个参数：签名在 2.5 到 2.15 之间变过（return_aux 随 2.9 而来），而且这个名称可能属于别的函数（attn_mask 属于 SDPA）。
    .fix = python -c "import inspect, torch.nn.attention.flex_attention as f; print(inspect.signature(f.flex_attention))"
doctor-sage-build = SageAttention 没有为这块显卡构建，或得到的输入不是 GPU 上的 16 位。
    .fix = 用这块显卡的 TORCH_CUDA_ARCH_LIST 构建 SageAttention 2；转成 bf16；或选择 `diffusers`。它没有反向计算
doctor-triton-failed = Triton 无法编译或启动内核；上方的行写出了操作。常常是不相配的 Triton 和 torch，或 mod 里有它的编译器无法编译（lower）的公式。
    .fix = 安装 torch 要求的 triton（pip show torch）；删除 ~/.triton/cache；kernel_options={"{"}"num_stages": 1{"}"}；把 mod 最后加上的公式换成捕获的表
doctor-inductor-lowering = torch.compile 在 Inductor 内部失败；冒号后面的异常说明原因，`maskloom doctor --explain` 可能认识那一部分。
    .fix = 粘贴全部文字；先不编译地运行一次 mod：mod 的错误会连同行号显示。TORCHDYNAMO_VERBOSE=1 显示更多
doctor-higher-order-capture = mod 或其周围做了 torch.compile 无法记录的事：修改外部变量、调用未知函数，或自己就在 vmap 里。
    .fix = mod 只能由其参数和捕获的张量计算；把其余的移到外面，并在编译的函数之外创建掩码
doctor-launch-failure = 内核在显卡上崩溃。写出的行常常是后面的行，因为内核的执行滞后于程序。
    .fix = CUDA_LAUNCH_BLOCKING=1 显示是哪个内核；compute-sanitizer 显示出错的访问；用 `maskloom check` 检查捕获张量的大小；更新驱动
doctor-device-lost = 驱动丢失了显卡，或另一个进程独占了它。程序无法修复。
    .fix = nvidia-smi；dmesg | grep -i xid 写出故障；重置或重启机器；租用的显卡请向提供方换一块
doctor-nccl = 一次集合通信失败，或有一个 rank 没有到达：它崩溃了、走了另一条分支，或张量不同。在 context parallel 下，各 rank 的 token 数不同时也会这样。
    .fix = 看最先结束的 rank；NCCL_DEBUG=INFO；TORCH_NCCL_TRACE_BUFFER_SIZE 显示每个 rank 在等什么；让所有 rank 的长度相同
doctor-shared-memory-worker = 容器的 /dev/shm 对 data loader 的工作进程来说太小。
    .fix = docker run --shm-size=16g（或 --ipc=host），或 num_workers=0
doctor-compiled-cpu = Inductor 为 CPU 编译 C++，而缺少编译器或 OpenMP。
    .fix = apt install build-essential（macOS：brew install libomp；Windows：Visual Studio 的 C++ 工具）
doctor-read-only-cache = 编译好的内核写入 ~/.triton 和 /tmp/torchinductor_USER，而那个磁盘已满或只读。
    .fix = 把 TRITON_CACHE_DIR 和 TORCHINDUCTOR_CACHE_DIR 设为有空间的文件夹；df -h；Maskloom 自己的缓存：MASKLOOM_CACHE
doctor-flex-same-buffer = 为 CPU 编译的 FlexAttention 拒绝作为同一缓冲区视图的 q、k、v，例如一次投影的各个 chunk。PyTorch 2.15 会复制它们。
    .fix = 升级到 PyTorch 2.15，或在调用前 key = key.clone() 和 value = value.clone()
doctor-flex-symbolic-length = 为可变长度编译时，早期 PyTorch 2.5 的 FlexAttention 把符号长度的名字（s0、s1）写进了内核的选项。
    .fix = torch.compile(flex_attention, dynamic=False)，或更新的 PyTorch
doctor-captured-gradients-refused = PyTorch 2.5 不计算 mod 捕获的张量（例如学习的偏置）的梯度。后来的版本对 score_mod 会计算；mask_mod 在任何版本中都没有。
    .fix = score_mod 的表：升级 PyTorch；mask_mod 中：tensor.detach()
doctor-flex-on-mps = 在 Apple 的 GPU 上，PyTorch 2.15 的 FlexAttention 只用于推理：那里没有反向计算，并且只接受 float32、float16 和 bfloat16。
    .fix = 在那里用 sdpa 训练；推理时用 torch.no_grad()
doctor-flex-cpu-dtype = 为 CPU 编译的 FlexAttention 只接受 float32、float16 和 bfloat16。
    .fix = query.float()、key.float()、value.float()；float64 不编译可以运行
doctor-dtensor-mixed = 在张量并行或 FSDP2 下，运算中一个张量是 DTensor，另一个是普通张量，常见的是 mod 捕获的表、位置表或掩码。
    .fix = 在本地张量上计算注意力：q.to_local()，只含本 rank 的头；在该调用内把表和 BlockMask 建成普通张量
doctor-mod-not-pickled = BlockMask 连同它的 mask_mod 被送到另一个进程（DataLoader 的工作进程、multiprocessing、torch.save），而函数内部的函数不能被送出。
    .fix = 送出表（例如文档编号），在使用它的进程里创建 BlockMask；或把 mod 定义在模块顶层
doctor-compile-flag-notice = 这是提示：create_block_mask(..., _compile=True) 在 PyTorch 2.15 中仍然有效，以后会被移除。
    .fix = torch.compile(create_block_mask)(mask_mod, B, H, q_len, kv_len)
doctor-flash-4-too-old = FlexAttention 的 FLASH 后端生成 flash-attn 4 的内核：该包太旧，不支持 mod 捕获的数，或其模板不接受这个 mod。
    .fix = pip install --pre -U flash-attn-4（CUDA 13 用 "flash-attn-4[cu13]"），或 kernel_options={"{"}"BACKEND": "TRITON"{"}"}
doctor-flash-impl-activated = activate_flash_attention_impl 用 FlashAttention-3 或 -4 取代了 SDPA 的 flash 内核。消息末尾写出它不接受什么（dropout、显卡、布局），或名字未知。
    .fix = torch.nn.attention.restore_flash_attention_impl() 恢复 PyTorch 自己的内核；list_flash_attention_impls() 列出已有的
doctor-varlen-cudnn = sdpa_kernel 只允许 cuDNN，而 cuDNN 不接受这次 varlen_attn 调用。消息下面的行列出未满足的条件。
    .fix = 也允许 SDPBackend.FLASH_ATTENTION，或不用 sdpa_kernel
doctor-gradient-nan = detect_anomaly 在梯度中发现 NaN：在注意力中通常是一行的所有键都被 -inf 隐藏，或 float16 溢出。
    .fix = `maskloom check` 统计空行：让每行至少保留自己；使用 bfloat16；限制分数（soft cap）
doctor-mask-is-float = `&`、`|` 和 `~` 组合布尔值或整数，而其中一边是浮点数：加性掩码，或用 0.0 和 1.0 代替 False 和 True。
    .fix = 1 表示保留时用 mask.bool()；加性掩码用 (mask == 0)；在 mod 中先比较：(t[q_idx] > 0) & (q_idx >= kv_idx)
doctor-linear-dtype = 线性层的权重与输入格式不同：常见原因是前面的注意力返回了 float32，或这部分在 autocast 之外运行。
    .fix = 转换注意力的输出：out.to(weight.dtype)；或把调用放进 torch.autocast
doctor-model-without-flash = transformers 的这个类没有为 flash-attn 编写：每个类有自己的标志。
    .fix = attn_implementation="sdpa" 或 "eager"；更新的 transformers 可能支持
doctor-model-without-sdpa = transformers 的这个类没有 SDPA 路径，因为 SDPA 做不到它需要的：gpt-oss 有 sinks。
    .fix = attn_implementation="eager" 或 "flex_attention"；导出的适配器和 `maskloom.integrations` 也支持 sinks
doctor-model-names-flash-kernels = 这是警告：该模型只能用消息列出的 flash 内核（gpt-oss：带 sinks 的），transformers 用其中之一代替了您选的。
    .fix = 无需处理；在 attn_implementation 中写出列表里的一个，警告就消失
doctor-flash-model-on-cpu = 模型先被加载到主机内存，flash-attn 无法在那里运行。有显卡时这是警告，没有显卡时是错误。
    .fix = device_map="cuda" 或 model.to("cuda")；没有显卡时 attn_implementation="sdpa"
doctor-flash-casts-notice = 这是提示：保持 float32 的归一化层（peft 会这样做）使 q、k、v 成为 float32，transformers 在每层为 flash-attn 转换它们。结果正确；多花一些时间。
    .fix = 把归一化层也以 bfloat16 加载，或不处理
doctor-attention-not-exchangeable = 这个类写于 transformers 的注意力表之前（常为远程代码），因此 set_attn_implementation 和注册的注意力到不了它。
    .fix = 把 attn_implementation 传给 from_pretrained，或使用 transformers 自己的类（trust_remote_code=False）；导出的适配器会在此类模型中监视 SDPA 调用，其报告写出哪些层被加了掩码
doctor-patch-of-another-transformers = 训练器或插件按名字修改 transformers 的类和函数，而这个版本的名字不同：4.43 把 _flash_attention_forward 移出类，4.48 去掉了 ...FlashAttention2 类。
    .fix = 安装训练器的 requirements 写明的 transformers，或更新的训练器
doctor-attention-class-of-another-diffusers = 为 diffusers 的公共类 Attention 写的代码遇到了模型自带类（FluxAttention、WanAttention）的版本：它们缺少 `scale` 等属性。为 0.33 写的代码在 0.35 中会这样失败。
    .fix = 为该代码 pip install diffusers==0.33.1，或用 attn.head_dim ** -0.5 代替 `scale`；导出的适配器两者都支持
doctor-processors-count = set_attn_processor 得到的字典条目数与模型的注意力层数不同；交叉注意力层也计算在内。
    .fix = 用 model.attn_processors.keys() 构建，或为所有层传一个处理器
doctor-torch-libraries-not-loaded = 扩展在 torch 之前被导入，而它需要 torch 的库。先导入 torch 后常会出现另一个错误，那才是真正的错误。
    .fix = python -c "import torch, flash_attn" 会显示它；`maskloom doctor --explain` 接受那条消息
doctor-flash-heads-divide = 查询头数不是键头数的整数倍，或头轴不在内核要求的位置：那时消息比较的是 token 数。diffusers 0.39 及以前，`_native_flash` 在 context parallel 的反向计算中把 k 和 v 转置了两次。
    .fix = flash-attn 要 [batch, tokens, heads, head_dim]，SDPA 要 [batch, heads, tokens, head_dim]；升级 diffusers，或用 Ulysses 配 `flash` 或 `native`
doctor-flash-backward-head-dim = 这个 flash-attn 的反向计算在 head_dim 超过 192 时放不进消费级显卡的共享内存。自 flash-attn 2.5.5 起，没有 dropout 时可以。
    .fix = 升级 flash-attn 并把 dropout 设为 0；或用 sdpa 或 flex
doctor-packed-model-without-flex = 只要装有 FlexAttention，torchtune 就用 BlockMask 打包，而这个模型的注意力（Gemma 2）只接受稠密掩码。
    .fix = 在数据集配置中设 packed=False，或换一个模型
doctor-selective-checkpointing = 2025 年的 torchtitan 拒绝 FlexAttention 与选择性激活检查点同时使用，PyTorch 当时没有相应规则（pytorch#147879）。
    .fix = activation_checkpoint.mode = "full"，或更新的 torchtitan 及其 PyTorch
doctor-transformer-engine-no-backend = TransformerEngine 对这些输入禁用了它的所有内核：`thd` 打包布局或 context parallel 下的 sinks（learnable softmax）、掩码或偏置、fp8 注意力，或 flash-attn 不在它的版本范围内。
    .fix = NVTE_DEBUG=1 NVTE_DEBUG_LEVEL=2 打印每个内核的原因；有 sinks 时用 `bshd` 且不打包
doctor-video-without-attention-package = FramePack 和 musubi-tuner 的注意力在一个批的描述文本长度不同时需要 flash-attn、SageAttention 或 xformers，而一个都没有。
    .fix = 批 1；或在 musubi-tuner 中用 --sdpa --split_attn；或安装 flash-attn
doctor-image-black = 图像含有 NaN。常见原因是 SageAttention 的 8 位分数不适合该模型或其 fp8 权重，或 VAE 在 float16 中溢出。
    .fix = 不用 SageAttention 运行一次（程序的设置或节点）；VAE 用 bfloat16 或 float32
doctor-xfuser-processor = xDiT 按类名替换注意力处理器，而不认识这个：它的版本对应另一个 diffusers。
    .fix = 安装 xDiT 的 requirements 写明的 diffusers，或更新的 xDiT
doctor-diffusers-cp-takes = diffusers 的 context parallel 拒绝 is_causal 和分组头；ring_anything 以及 ring_degree 大于 1 的变长后端不接受掩码；hub 内核必须有它调用的入口。
    .fix = 需要掩码时用 ulysses_degree 代替 ring_degree，配 `native` 或 `_native_cudnn`；hub 内核：pip install -U kernels 并删除它的快照
doctor-accelerate-parallel = accelerate 的 context parallel（cp_size）在 FSDP2 内运行，dp_shard_size 大于 1 或作为唯一的维度；它的 sequence parallel（sp_size，DeepSpeed）只接受 sdpa 和 flash-attn，不接受 eager 和 flex，因此 BlockMask 过不去。
    .fix = accelerate config 选 FSDP 版本 2；dp_replicate_size=1；自己的掩码用 PyTorch 的 context parallel 或 Maskloom 的计划
doctor-rocm-experimental = 在这块 AMD 显卡上，PyTorch 的融合注意力默认关闭，SDPA 会生成所有分数。
    .fix = 在 Python 启动前 export TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=1；比较有无它的一步
doctor-model-takes-no-block-mask = 模型的 forward 没有这个参数：transformers 和 diffusers 的模型接受 attention_mask，只有调用 flex_attention 时才传递 BlockMask。
    .fix = attention_mask=block_mask 配 attn_implementation="flex_attention"（transformers）；或导出的适配器的 use(model)
doctor-torch-missing = 正在运行的 Python 里没有 PyTorch：它装在另一个环境里，或者根本没装。如果 `torch` 后面还有点和别的名字，那么 PyTorch 在，但缺这一部分：它的版本与代码所用的不同。
    .fix = 用运行代码的那个 Python 执行 python -m pip install torch；Maskloom 的 `torch:*` 后端用哪个 Python，`maskloom doctor` 会写明，MASKLOOM_PYTHON 或 --python 指定另一个
doctor-maskloom-missing = 正在运行的 Python 找不到 Maskloom 的一个模块。单有程序并不带来模块 `maskloom`。在检出的文件夹 `python` 里运行 Python 时会缺 `maskloom._native`，因为它导入的是那里的源码；`maskloom_sidecar` 在导出的文件夹 `sidecar` 里。
    .fix = 在 Maskloom 的检出里用运行代码的那个 Python 执行 python -m pip install .，然后在别的文件夹里运行；sidecar 则设 PYTHONPATH=EXPORT/sidecar
doctor-packed-beside-mask = 只有 attention_mask 为 None 且没有缓存时，transformers 才会在重新从头计数的 position_ids 里寻找打包的样本。旁边有 2 维掩码时，哪怕全是 1，掩码也只是普通的因果掩码，每个样本都会看到前面的样本。
    .fix = 不传 attention_mask，或传 4 维掩码或文档的 BlockMask，它们会被原样采用：预设 `packed_documents`；`maskloom compare` 数出不同的单元格
doctor-flex-cuda-graphs = 在 CUDA graphs（mode="reduce-overhead"）下，编译的函数返回的东西会被它的下一次运行覆盖：编译的 create_block_mask 给出的 BlockMask 留不到下一步。您自己捕获的图一直读捕获时的掩码：为某次调用新建的块掩码不在图里。
    .fix = 在编译的函数之外创建掩码，不用 mode="reduce-overhead"，并让它的张量在所有步骤中留在原处；在每步之前调用 torch.compiler.cudagraph_mark_step_begin()；或用 mode="default"（SimpleTuner："dynamo_mode": "default"）
