# “学习”工作区的课程：标题、简介和步骤，有些步骤带按钮。

lesson-two-minutes = 两分钟了解 Maskloom
    .about = 从掩码到竞速再到导出。
lesson-two-minutes-1 = 一行是一个查询，一列是一个键。有颜色的像素表示这个查询可以关注这个键。打开一个滑动窗口：每个 token 关注最近的 1024 个 token。
    .button = 打开滑动窗口
lesson-two-minutes-2 = 上方的卡片显示掩码保留的单元格、开销、损失和错误。每张卡片都通向它的工作区。在“设计”工作区移动滑块 `window`，观察第一张卡片。
    .button = 转到滑块
lesson-two-minutes-3 = 蓝色块全部保留，橙色块部分保留，深色块完全不保留。深色块从不计算，时间就是这样节省下来的。
    .button = 画出块
lesson-two-minutes-4 = 让各后端竞速：每个结果先与 float64 参考结果核对，时间才算数。没有 GPU 时，同一掩码的缩小副本会在 CPU 上竞速。
    .button = 竞速
lesson-two-minutes-5 = “导出”先问您使用哪个程序，然后在写入之前显示每个文件和每一行改动。
    .button = 转到“导出”

lesson-block = 什么是块
    .about = 内核按 tile 处理掩码。tile 的大小决定哪些单元格被跳过。
lesson-block-1 = 内核不从单个单元格出发。它把掩码划分为 BLOCK_SIZE 大小的块，共三种：满块、部分块、空块。
    .button = 打开滑动窗口
lesson-block-2 = 块大小为 1024 时，窗口里几乎每个块都是部分块：许多单元格算了又丢弃。请看第一张卡片的条形如何变成橙色。
    .button = 1024 的块
lesson-block-3 = 块大小为 128（PyTorch 的默认值）时，边界很薄。满块完全不需要掩码，只有部分块要对每个单元格求 mask_mod。
    .button = 128 的块
lesson-block-4 = 16 的块紧贴边界。但 tensor core 按 tile 工作，小于 64 时硬件会空闲，所以最小的块并不是最快的。
    .button = 16 的块

lesson-partial = 部分块为什么有代价
    .about = 只要有一个单元格被保留，整个块就会完整计算。
lesson-partial-1 = 因果掩码保留全部单元格的一半。只有对角线上的块是部分块：每个都完整计算，其中一半的工作被丢弃。
    .button = 打开因果掩码
lesson-partial-2 = 膨胀窗口每两个键保留一个，或每四个保留一个。这些少量的单元格分散在带内的每个块里：几乎所有块都是部分块，所以能跳过的很少。
    .button = 打开膨胀窗口
lesson-partial-3 = 比较第一张卡片的两组数字：单元格的保留份额，以及满块和部分块的份额。决定内核时间的是块。在部分块里，亮的单元格被保留，暗的单元格算了又丢弃。
    .button = 画出块
lesson-partial-4 = 由整块组成的掩码没有部分块：它恰好只计算保留的单元格。
    .button = 打开手绘的块

lesson-speed-up = 从掩码到加速
    .about = 只有内核真正跳过，被跳过的块才能节省时间。
lesson-speed-up-1 = 这个窗口保留 12% 的单元格。带掩码的 `sdpa` 计算每个单元格，再丢弃其中的 88%；`flex` 从不加载空块。
    .button = 打开滑动窗口
lesson-speed-up-2 = 竞速把最快的列在最前，每一项都有相对 float64 的误差，以及与稠密掩码的比较。如果这个设计在某块 GPU 上有记录，运行之前就会显示记录的时间。
    .button = 转到“竞速”
lesson-speed-up-3 = 短序列可跳过的块很少。在几个长度上竞速这个设计：曲线分开的长度，就是掩码开始节省时间的长度。
    .button = 按长度竞速
lesson-speed-up-4 = 屋顶线（roofline）把保留单元格的运算量与显卡的上限作比较。远低于屋顶线时，时间不是掩码造成的。
    .button = 转到“竞速”

lesson-score-mods = 画出 score mod
    .about = 掩码保留或丢弃一个分数，score mod 改变它的值。
lesson-score-mods-1 = ALiBi 给每个分数加上随距离下降的偏置，每个头的斜率不同。
    .button = 打开 ALiBi
lesson-score-mods-2 = 图像显示分数为 0 时 score mod 的结果。条纹单元格被掩码丢弃：没有可以改变的分数。
    .button = 画出偏置
lesson-score-mods-3 = 图像下方的长条用同一色标显示所有头：前面的头偏置下降很快，后面的头几乎不下降。
    .button = 转到头 7

## 课程的框架
learn-title = 边做边学
learn-words = 每节课都直接操作这个窗口。“撤销”可以恢复您的文档。
learn-start = 开始
learn-start-name = 开始：{ $title }
learn-all = 所有课程
lesson-step = 第 { $n } 步，共 { $all } 步
learn-done = 完成
learn-next = 下一步
learn-back = 上一步
learn-is-done = 已完成
learn-is-open = 已打开
learn-return = 返回课程

## 导览
tour-preset = 一行是一个查询，一列是一个键。有颜色的像素让这个查询可以关注这个键。这是一个滑动窗口：每个 token 看到最近的 1024 个。
tour-stroke = 画笔会保留更多单元格，这里是远处的一片区域。一笔就是文档的一个图层；“撤销”可以收回。
tour-blocks = 内核按块工作。选中一个区域，就会显示它的满块、部分块和跳过的块，其中的浪费，以及它们读取的字节数。
tour-slider = 窗口变大又变小。上方的卡片随之变化：保留的单元格，以及时间；竞速测量之前，时间是估计值。
tour-race = “竞速”比较各个内核，每个都先与 float64 核对。运行之前，它就说明哪些库支持这个掩码。
tour-export = “导出”为训练器、模型或程序写出掩码，并在写入之前显示每个文件和每一行改动。
tour-end = 导览结束。您的文档保持原样。“图库”里有现成的掩码，“学习”里有课程，按 F1 可查看所有按键。
tour-step = { $n } / { $all }
tour-go-on = 继续
tour-pause = 暂停
tour-stop = 停止
    .tip = 结束导览；按 Escape 或单击别处也一样。
tour-stop-name = 停止导览

## 打开的掩码的 tile
tiles-title = 逐个 tile 看 FlashAttention
    .about = 打开的掩码的 tile，以及内核中不断更新的值。
tiles-words = 一块查询留在芯片上。内核访问这一行保留的 kv tile，跳过空的 tile，并更新三个值：最大分数 m、和 l 以及输出。
tiles-none = 块还没有计数，或者文档有错误。
tiles-query = 查询
tiles-query-name = 跟踪的查询
tiles-row = 位于查询块第 { $row } 行；单击画布可选择另一个
tiles-play = 播放
tiles-pause = 暂停
tiles-step = 前进一步
tiles-stepped = 已走过的 tile
tiles-not-yet = 还没有访问任何 tile。
tiles-full = kv tile { $tile }，满块：不对掩码求值
tiles-partial = kv tile { $tile }，部分块：由 mask_mod 决定每个单元格
tiles-visited = 已访问 { $step } / { $kept } 个 tile；{ $all } 个中有 { $skipped } 个为空并被跳过
tiles-bytes = { $name }：{ $bytes } 字节
tiles-bytes-words = 一个头的一个查询块所读取的每个 tile 的 K 和 V。Eager 还要写出再读回 float32 分数，并写出再读回概率。
tiles-heads = { $heads } 个头都是这样。
tiles-too-many = 这一行的键太多，无法显示数值；较短的文档可以显示。
tiles-before = 之前
tiles-after = 这个 tile 之后
tiles-m = 目前为止的最大分数。
tiles-l = exp(score - m) 之和；m 上升时按比例缩小。
tiles-o = 输出当前的第一个分量。
tiles-increased = m 上升了：l 和 o 先乘以 exp({ $before } - { $now })。
tiles-kept = 这个 tile 中为查询 { $query } 保留 { $kept } 个键。
tiles-scores = 分数来自 { $source }，是正态分布的随机数；mask_mod 和 score_mod 是文档自己的。
