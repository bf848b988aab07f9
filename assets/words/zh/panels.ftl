# 检查器、图层参数、轴、曲线、比较、头。

## 参数
args-file = { $name } 的文件
args-about = 关于这个模式
args-file-hint = file.safetensors[:name] 或 .npy
args-capture = 来自捕获
    .tip = 打开的捕获中形状与这个参数或文档相符的张量。
args-fit = 其中 { $count } 个张量合适，{ $others } 个形状不同
args-capture-name = { $name }，来自捕获
args-default = 默认
args-follow = 跟随 { $name }
args-resets = 把值重设为默认值。
args-range = {"["}{ $min } 到 { $max }]
args-reset = 重设 { $name }
args-needed = 必需
args-follows = 跟随 { $name }
args-choose = 选择一个模式
args-tensor = { $shape } 的 { $dtype } 张量

## 轴
axes-query = 查询轴
axes-key = 键轴
axes-cross-tip = 键和值有单独的轴。
axes-cross = cross-attention
axes-text = 添加一段 token。
axes-image = 添加 高 x 宽 的 token。
axes-video = 添加 帧 x 高 x 宽 的 token。
axes-add-text = + 文本
axes-add-image = + 图像
axes-add-video = + 视频
axes-add = { $axis }：{ $text }
axes-part = { $axis }：第 { $n } 部分的名称
axes-part-tip = 这一部分的名称，如标尺所示。
axes-extent = { $axis }：{ $name } 的第 { $n } 个大小
axes-up = 上移
axes-up-tip = 把它移到上一部分之前。
axes-up-name = { $axis }：上移 { $name }
axes-remove-tip = 移除这一部分。
axes-remove-name = { $axis }：移除 { $name }

## 文档编号
make-menu = 生成
make-words = { $n } 个数，即每个 token 所属的文档
make-mean = 每个文档的 token 数
make-mean-name = 每个文档的 token 数
make-seed = 种子
make-seed-name = 长度的种子
make-packed = 平均长度如此的打包文档
    .tip = 随机长度，如打包的批；最后一个文档被截断。
make-equal = 等长文档
    .tip = 每个文档这么多 token；最后一个被截断。
make-count = 每个 token 一个数
    .tip = 0、1、2，依此类推。
make-fills = 用文档编号填充。
make-name = 生成 { $name }

## 被比较的掩码
differ-counting = 正在计数，{ $share }
differ-same = 保留的单元格与 { $name } 相同
differ-cells = { $n } 个单元格不同（{ $share }）
differ-planes = 属于 { $batch } 个批条目和 { $heads } 个头
differ-more = 以及另外 { $n } 个
differ-queries = 查询
differ-keys = 键
differ-now = 仅现在
differ-then = 仅当时
differ-tip = 现在：这个设计；当时：{ $name }
differ-regions = 另外 { $n } 个区域
differ-place = q { $q }, kv { $kv }
differ-batch = 批 { $b }，{ $place }
differ-head = 头 { $h }，{ $place }
differ-shows = 显示这个单元格。

## 曲线
curve-distance = 距离
curve-bias = 偏置
curve-name = 距离曲线
curve-at = 距离 { $x }，偏置 { $y }
curve-drag = 拖动可绘制或移动一个点。
curve-drag-tip = 拖动可绘制或移动一个点；双击一个点可移除它。
curve-points = { $n } 个点
curve-distance-of = 第 { $n } 个点的距离
curve-bias-of = 第 { $n } 个点的偏置
curve-remove = 移除
curve-remove-name = 移除第 { $n } 个点
curve-add = 添加一个点

## 图层的内容
detail-line = 第 { $line } 行，第 { $column } 列
detail-rectangle = 矩形，以 token 计
detail-band = 带：保留的距离 q_idx - kv_idx
detail-bias = 按距离 q_idx - kv_idx 的偏置
detail-learns-not = 无法学习：{ $why }
detail-learns-none = 无法学习：它不读取任何浮点张量
detail-learns = 可以学习：{ $tensors }
detail-learns-tip = 被捕获的浮点张量在训练导出的模块时，以及竞速计算梯度时，会得到梯度。
detail-rows = 行，从
detail-columns = 列，从
detail-rows-first = 第一行
detail-rows-end = 行的末尾
detail-columns-first = 第一列
detail-columns-end = 列的末尾
detail-up-to = 到
detail-from = 从
detail-to = 到
detail-distance-from = 起始距离
detail-distance-to = 结束距离
detail-painted = 手绘的单元格
detail-cell = 每个单元格的 token 数
detail-cell-rows = 单元格的行数
detail-cell-columns = 单元格的列数
detail-cell-tip = 请在第一笔之前选择单元格的大小。
detail-strokes = { $strokes }，{ $rectangles }
detail-n-strokes = { $n } 笔
detail-n-rectangles = { $n ->
    [one] { $shown } 个矩形
   *[other] { $shown } 个矩形
}
detail-brush = 画笔（B）保留单元格，橡皮（E）移除它们。
detail-found = 找到的函数
detail-found-name = 找到的函数
detail-entry = 入口
detail-entry-name = 入口
detail-entry-tip = 要使用的函数；留空：唯一的或最后一个合适的函数。
detail-tensors = 被捕获的张量（{ $n }）
detail-tensors-file = 被捕获张量的文件
detail-linked = 链接的文件
detail-linked-path = 链接的路径
detail-linked-words = 每次更改后重新读取（F5：立即）。

## 文档的形状
problem-name = 名称
problem-about-hint = 所建模的注意力及其出处。
problem-about = 关于
problem-batch = 批
problem-heads = 头
problem-scale = 缩放
problem-scale-is = 缩放 { $scale }
problem-fast = fast math
problem-own-dim = 自己的 head_dim_v
problem-as-dim = 同 head_dim
problem-cpu-only = 仅在 CPU 上。
problem-sums = 输入和输出；求和用 float32。
problem-layout = 布局
problem-square = BLOCK_SIZE，方形
    .tip = 方形块；PyTorch 的默认值是 128x128。
problem-tanh = 近似 tanh
    .tip = GPU 上的 score mod 使用其近似 tanh：一条指令代替两条，相对误差最多 2^-11。50 的软上限最多使分数 5 变动 0.0025。

## 卡片的其他行
kept-against = 与 { $name } 比较：保留 { $kept }，计算 { $computed }
kept-then-now = 当时 { $then }，现在 { $now }
kept-cells = 保留 { $n } 个单元格
kept-blocks = { $size } 的满块 { $full } 个：不用 mask_mod 计算；部分块 { $partial } 个：由 mask_mod 决定每个单元格；空块 { $empty } 个：跳过
kept-computed = 计算所有单元格的 { $computed }，其中 { $vain } 是白费
kept-sparsity = 按 PyTorch 计算的稀疏度：{ $words }
kept-row = 每行的块：{ $min } 到 { $max }，平均 { $mean }
kept-empty = { $rows } 行没有保留任何键：它们的输出是 0，lse 是 -inf
kept-finding = 正在寻找块
kept-partial = 正在统计部分块的单元格
kept-counted = 已计数 { $n }%
kept-one-by-one = 区间分析无法判定这个掩码，因此逐个计算它的单元格。图像不必等待。

## 工具和头
tools-width = { $words }[ 和 ]，或 Alt 加滚轮，可改变宽度。
tools-shown-batch = 显示的批条目
tools-shown-head = 显示的头
tools-work-heads = 要处理的头
heads-all = 所有头
heads-shown = 头 { $h }，即显示的头
heads-first-half = 前一半，0-{ $last }
heads-second-half = 后一半，{ $first }-{ $last }
heads-selected = 所选的头，{ $heads }
heads-or = 或
heads-such = 例如 0-3, 7；或在头的条带中 Ctrl+单击
layer-heads-of = { $name } 的头
layer-name-of = 图层 { $id } 的名称
tabs-close = 关闭这个文档
tabs-new = 在标签页中新建文档
tabs-no-file = 还不在文件中

## 一笔的作用
paint-one-head = 仅头 { $heads }：{ $words }
paint-some-heads = 仅头 { $heads }：{ $words }
paint-first = 第一笔从空掩码开始：只保留画出的单元格。
paint-new = 在新的手绘图层中保留单元格。
paint-in = 在 { $name } 中保留单元格。
paint-restores = 恢复 { $name } 移除的单元格，并保留单元格。
paint-removes-new = 从 { $name } 中移除单元格，并用上方的一个图层从其他图层中移除。
paint-removes = 在 { $name } 中移除单元格。
paint-removes-above = 在其他图层之上的新图层中移除单元格。

## ssh 的提问
question-title = Maskloom：ssh 的提问
question-answer = 回答
question-send = 回答 ssh
