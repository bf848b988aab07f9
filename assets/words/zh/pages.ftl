# “单元格”“代码”“问题”“多 GPU”页面，以及作业的内容。

## 单元格
cell-errors = 文档有错误。
cell-before = { $layers } 出错之前的状态。
cell-no-lengths = 轴没有有效的长度。
cell-b = 单元格的 b
cell-h = 单元格的 h
cell-q = 单元格的 q_idx
cell-kv = 单元格的 kv_idx
cell-to = { $q } 到 { $kv }
cell-unpin = 取消固定
    .tip = 重新跟随指针（Escape）。
cell-every = 保留每个单元格。
cell-score-of = score_mod，分数为 1
cell-scores-stay = 分数不变。
cell-is-kept = 保留
cell-is-dropped = 丢弃
cell-more = 以及另外 { $n } 个
cell-patches = { $place } 所关注的图块
cell-on-canvas = 在画布上
cell-makes-query = 单击一个图块使它成为查询。
cell-makes-key = 单击一个图块使它成为键。
cell-patches-seen = { $name }：{ $all } 个图块中的 { $seen } 个
cell-patches-of = { $name } 的图块

## 代码
code-linked = { $name } 的代码是 { $path }：请编辑该文件；每次保存后会重新读取。
code-none = 这个文档没有可编辑的代码图层。
code-mods = CUDA：mod
code-kernel = CUDA：内核
code-compiler = 编译器
code-steps = 逐步
code-no-kernel = 还没有内核：请在 GPU 上运行，或在这里编译（需要 NVRTC，不需要 GPU）。
code-copy-tip = 复制整个文本。
code-stale-tip = 编译之后文档已更改。
code-smaller-tip = 为参加竞速的缩小副本编译。
code-for = 用于…
code-registers = { $n } 个寄存器
code-shared = { $kb } KB 共享内存
code-spilled = 溢出 { $n } 字节
code-spilled-tip = 部分寄存器溢出到本地内存。
code-stack = { $n } 字节栈
code-blocks = 每个多处理器 { $n } 个块
code-cached = 来自缓存
code-compiled = 编译用时 { $ms } ms
code-silent = 编译器没有输出。
code-key = 缓存键 { $key }
code-field = 代码
code-apply = 应用建议

## 问题
problems-the-code = 代码
problems-made-for = { $name } 是为 { $sizes } 编写的。
problems-table = `{ $name }` 有 { $n } 项。
problems-call = 这是它的 create_block_mask 给出的。
problems-sizes = 使用代码中的大小
    .tip = 把文档的长度、头数和批设为代码所针对的值。

## 多块 GPU
gpus-predicted = 一个层的预测时间，前向和反向
gpus-imbalance = 不均衡
gpus-received = 接收的键
gpus-exposed = 未掩盖
gpus-plan = 这个方案
    .tip = Maskloom 的规划
gpus-imbalance-tip = 最慢的 GPU 的工作量与平均值之比。
gpus-all-gather = 每个键都发送到每块 GPU。
gpus-needed = 只把一块 GPU 的查询所列出的键块发送给它。
gpus-heads = 按头交换查询、键、值和输出，以键的一次 all-gather 为单位。
gpus-exposed-tip = 没有被计算掩盖的交换时间。
gpus-others = 其他方法如何处理这些掩码
gpus-read-in = 读自 { $release }
gpus-each = 每块 GPU 的注意力
gpus-tokens = { $n } 个 token
gpus-receives = 接收 { $bytes }
gpus-sent = 一次前向计算中发送的键和值，从行到列的 { $unit }
gpus-bytes = GPU 之间的字节数
gpus-errors = 有错误的文档没有方案。
gpus-planning = 正在规划
gpus-below = 下方：{ $before }
gpus-by-rank = 按 rank 的掩码
gpus-in-order = 按 rank 的顺序
gpus-figures = 数据：
gpus-layers = 这个掩码的层数
gpus-leave-out = 去掉 { $name }
gpus-add = 添加一种层
gpus-count = GPU
gpus-bandwidth = 接收 GB/s
    .tip = 一块 GPU 从其他 GPU 接收的速率：同一主机内用 NVLink 约 214，经 400 Gbit/s 网络约 45。
gpus-this-mask = 这个掩码

## 工作进程在做什么
doing-hello = 正在启动工作进程
doing-run = 正在运行
doing-map = 正在计算注意力图
doing-compile = 正在编译内核
doing-doctor = 正在检查设置
doing-detached = 正在询问作业
doing-files = 正在那里读取文件
doing-desk = 正在捕获所在的机器上测量

## 图像的状态
frame-no-picture = 还没有图像：{ $layers } 中有错误。
frame-before = { $layers } 出错之前的状态

## 剩余时间
left-almost = 即将完成
left-seconds = 约剩 { $n } 秒
left-minutes = 约剩 { $n } 分钟
left-hours = 约剩 { $n } 小时
left-step = { $step }，{ $left }

## 没有内核的代码
code-errors = 文档有错误：见“问题”
