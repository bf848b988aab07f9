# 画布：控件、读数、图例、图块、数字。
canvas-name = 掩码画布
canvas-no-score = 没有 score mod：分数没有加上任何值。
canvas-not-compared = 被比较的掩码长度不同。
canvas-kept-now = { $words }，现在保留 { $share }
canvas-incomplete = 图像不完整：{ $why }
canvas-overview = 掩码概览
canvas-computing = 正在计算…
canvas-head = 头 { $n }
canvas-batch = 批 { $n }
canvas-heads-tip = 单击显示这个头。Ctrl+单击选择它，Shift+单击选择到它为止的所有头。之后绘制和新图层作用于所选的头。

## 控件
canvas-fit = 适应
    .tip = 显示整个掩码（Home）。
canvas-zoom-in = 放大
    .tip = 放大（加号或滚轮）。
canvas-zoom-out = 缩小
    .tip = 缩小（减号或滚轮）。
canvas-size = 一个 token 画出的大小。
canvas-cell-size = 单元格 { $n } px
canvas-pixel-size = 1 px = { $n } 个 token
canvas-go = 转到
    .tip = 按 q_idx 和 kv_idx 转到单元格（Ctrl+L）。
canvas-go-name = 转到单元格
canvas-fit-whole = 显示整个掩码
canvas-go-cell = 转到单元格…
canvas-steps = 显示它的步骤
    .tip = 在“单元格”页面显示各个 mod 在这个单元格上的求值。
canvas-near = 靠近它
canvas-block = 放大到它的块
canvas-select = 选择决定这个单元格的 { $name }
canvas-copy = 复制 q_idx, kv_idx

## 指针下的单元格
cell-block = 块 ({ $row }, { $col }) { $kind }
cell-block-unknown = 未知：分析失败
cell-block-empty = 空
cell-block-beyond = 部分（超出末尾），全部保留
cell-block-full = 满
cell-block-partial = 部分，保留 { $share }
cell-kept = 保留
cell-masked = 被遮蔽
cell-kept-by = 由 { $layer } 保留
cell-masked-by = 由 { $layer } 遮蔽
cell-as-in = { $words }，与 { $name } 相同
cell-kept-in = { $words }；在 { $name } 中保留
cell-masked-in = { $words }；在 { $name } 中被遮蔽
cell-number = { $quantity } { $value }，{ $source }，{ $words }
cell-bias = 偏置 { $bias }，{ $words }
cell-bias-is = 偏置 { $bias }
cell-dropped = 丢弃

## 颜色的含义
legend-of = 所示为{ $before }
legend-numbers = { $title }：{ $ends }
legend-masked = 被遮蔽
legend-full = 满块
legend-partial = 部分块
legend-empty = 空块
legend-both = 两者都有
legend-only = 仅在 { $name } 中保留
legend-now = 仅现在保留
legend-there = 仅在那里保留
legend-rows = 行保留全部到零
legend-share = 保留的份额
legend-dropped = 丢弃
legend-kept = 保留
legend-kept-partial = 保留，在部分块中
legend-kept-full = 保留，在满块中
legend-in-empty = 在空块中
legend-bias = 偏置 { $lo } 到 { $hi }
legend-bias-heads = 偏置 { $lo } 到 { $hi }，所有头
legend-means = { $bias }，每像素几个单元格的平均
legend-stretched = { $side } 放大 { $times } 倍绘制
legend-sampled = ≈ 部分份额是抽样的

## 数字
heat-of = { $quantity }，{ $source }
heat-file = { $quantity }，{ $file }
heat-empty = 矩阵为空。
heat-name = 热图：{ $title }
heat-ends = { $lo } 到 { $hi }
heat-ends-more = { $lo } 到 { $hi } 及以上
heat-log = 对数
heat-hint = 拖动可移动，滚轮可缩放，双击显示全部
heat-masked = { $words }（被遮蔽）

## 正在画的形状
tool-corners = 至少 3 个角点，已有 { $n } 个；Escape 结束，Backspace 收回最后一个角点
tool-closes = { $n } 个角点；Enter、双击或单击第一个角点可闭合，Backspace 收回最后一个
tool-around = 圈出一个区域；Escape 结束
tool-line = 从 { $from } 到 { $to }
tool-rectangle = { $place }：{ $rows } × { $cols } 个 token

## 图块
patches-query = 查询 { $q } = { $place }
patches-head = { $query }，头 { $h }
patches-keeps = { $query } 保留 { $all } 个键中的 { $n } 个
patches-no-grid = 这些键没有网格：文档没有说明哪些 token 是图像的图块。
patches-grid-tip = 轴变为 { $axis }。撤销可恢复。
patches-grid-hint = 行 x 列
patches-grid-name = 键的网格
patches-capture = 采用捕获的网格
patches-no-keys = 没有键
patches-write = 请写 行 x 列，或 帧 x 行 x 列
patches-differ = { $text } 是 { $n } 个图块，`{ $name }` 有 { $len } 个 token
patches-frames-of = { $name } 的帧
patches-frames-tip = 每一帧保留的键，与最多的一帧对比；单击可显示该帧。
patches-frame-of = { $name } 的帧
patches-query-frame = 查询所在的帧
    .tip = 显示查询所在的帧。
patches-queries = 查询：{ $segment }
patches-kept-frame = { $segment }：这一帧保留 { $all } 个中的 { $n } 个，共 { $whole } 个
patches-kept = { $segment }：保留 { $all } 个中的 { $n } 个
patches-queries-of = { $name } 的查询
patches-keys-in = { $name } 中的键
