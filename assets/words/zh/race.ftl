# “竞速”页面：条形、反向计算、各种长度、屋顶线、谁接受这个设计、设置、以往的竞速。

## 一个数字的开销
card-costs-faster = { $time }  ·  快 { $ratio } 倍
card-costs-than = 比 { $base }；{ $rest }
card-costs-forward = { $backend }：{ $words }，前向计算
card-costs-less = 是所有单元格的 { $ratio } 分之一；尚未计时
card-costs-same = 与没有掩码时的计算量相同；尚未计时
card-costs-nothing = 没有保留任何单元格：无需计算
card-costs-arithmetic = 要计算的块的运算量。竞速会显示时间。
card-costs-arithmetic-is = 要计算的块的运算量：{ $flop }。
card-costs-about = { $card }：约 { $time }，{ $basis }
card-costs-estimates = Flex，前向计算。在有记录的设计中，一半的估计误差在 15% 以内，五分之四在 1.6 倍以内；大量读取内存的 score mod 可能慢很多倍。竞速会显示时间。

## 竞速
race-recorded-cards = 在已知显卡上的记录
race-who = 参加竞速的：{ $names }
race-inputs = 输入
race-copy-picture = 缩小副本的图像
race-copy-shares = 保留其单元格的 { $kept }；整个设计保留 { $whole }
race-copy-shares-then = 竞速时保留其单元格的 { $kept }；当时整个设计保留 { $whole }
race-whole-takes = 整个设计大约需要 { $time }（估计：{ $n } 个线程，每个 20 GFLOP/s）。
race-starts = 竞速即将开始…
race-other-document = 另一个文档正在竞速。
race-backends = 让各后端竞速
race-names-on = { $names }，在 { $device } 上
race-smaller-races = 在 CPU 上用同一掩码的缩小副本竞速，只需几秒。
race-checked-first = 每个后端先与{ $reference }核对，再逐轮计时。
race-cannot-run = 无法运行：{ $why }
race-forward-only = { $from }，仅前向
race-stale = 已过时
    .tip = 文档此后已更改：这些数字属于之前的掩码。
race-again = 重新运行
race-raced-copy = 竞速的是：{ $whole } 中的 { $copy }，同一掩码，窗口和长度更短。在 GPU 上，或用“完整运行”，整个设计都会参加竞速。
race-smaller-copy = 缩小的副本
race-copy-not = { $copy }，不是 { $whole }
race-recorded = 已有记录
race-of-cells = { $share } 的单元格，{ $flop }
race-stopped = 中途停止
race-environment = 环境
race-before-timing = 计时之前：{ $card }
race-after-timing = 计时之后：{ $card }

## 一个条形
race-samples = { $n } 个样本的中位数和四分位距的一半。
race-samples-calls = { $n } 个样本的中位数和四分位距的一半。GPU 部分，由 { $clock } 计时。整个调用需要 { $call }。
race-untimed = 已核对，未计时
race-launch-bound = 发出这些调用的程序在等待它的主机。条形和比值用的是 GPU 上的时间。
race-holds = 占用 { $bytes }
race-memory = 内存：{ $how }。
race-why = 原因：{ $why }。
race-limits-tip = { $what }。单击可查看限制它的因素，以及在另一块显卡上会怎样。
race-limits = 什么限制 { $name }
race-wrong = 结果错误
    .tip = 不计时。
race-rate = { $rate }（只计保留的单元格）
race-baseline = 基准  { $rate }
race-baseline-tip = 其他各行的基准：{ $ran }。
race-no-difference = 未显示出差异
race-no-difference-of = 未显示出差异（{ $ratio }x { $base }）
race-against = { $ran } 对 { $base }：{ $words }。
race-refused = 已拒绝
race-failed = 失败
race-refused-by = 已拒绝：{ $names }
race-failed-by = 失败：{ $names }
race-nan-rows = { $all } 行中有 { $n } 行出现 NaN
race-error-ok = 误差 { $error } 正常
race-wrong-nan = { $n } 个错误的 NaN
race-error-wrong = 误差 { $error }：错误
race-rows-of = { $all } 行中的 { $n } 行
race-check-fault = 错误：{ $fault }。
race-check-error = 与{ $reference }的最大误差：{ $error }；相对 rms { $rms }{ $more }。
race-check-limit = 每行有自己的限度，最大的是 { $limit }：{ $from }。
race-check-rows = 比较了：{ $rows }。

## 反向计算
backward-title = 反向计算
backward-column = 反向
backward-both = 合计
backward-memory = 内存
backward-worst = 最差的梯度
backward-refused = { $backend }：反向计算被拒绝：{ $why }
backward-failed = { $backend }：反向计算失败：{ $why }
backward-order = 按固定的相加顺序；不限顺序时反向计算需要 { $time }（{ $more }%）。
backward-held = 前向与反向合计，{ $how }。
backward-ok = { $name } { $error } 正常
backward-allowed = 允许 { $limit }
backward-wrong = 错误：{ $words }

## 各种长度
lengths-title = 各种长度
lengths-question = 从多长开始掩码能节省时间？
lengths-before = 属于上次更改之前的设计
lengths-refused = { $tokens } 个 token：{ $why }
lengths-progress = { $all } 个长度中的 { $over } 个
lengths-progress-left = { $all } 个长度中的 { $over } 个，当前这个 { $left }
lengths-tokens = token
lengths-time = 一次计算的时间
lengths-name = 时间随长度的变化
lengths-kept = 保留
lengths-fastest = 最快
lengths-against = 对比
lengths-nothing = 没有计时

## 屋顶线
roof-words = { $device } 的数据手册：16 位 { $flop }，内存 { $bytes }。运算量和字节数是 { $backend } 自己报告的最小值；时间是测量的。
roof-unknown = 这里不知道 { $device } 的数据手册（或张量不是 16 位），因此说不出什么限制它。按它处理的所有单元格计算，速度是 { $flop }；行中的速度只计保留的单元格。
roof-others = 在另一块显卡上
roof-others-words = 根据记录的运行和数据手册对 flex 前向计算的估计；未测量。
roof-title = 屋顶线：{ $from }
roof-dot = { $backend }：{ $flop }（按计算的单元格）
roof-dot-share = { $backend }：{ $flop }（按计算的单元格），达到屋顶的 { $share }
roof-about = 要计算的单元格的运算量除以搬运的字节数，两者都是内核自己报告的最小值。屋顶来自显卡的数据手册。单击上方某行的名称可查看限制它的因素。
roof-none = 不知道这个设备的数据手册，因此没有屋顶。
roof-y = FLOP/s（按计算的单元格）
roof-x = 每字节的 FLOP
roof-name = 屋顶线
roof-name-of = { $backend } 的屋顶线
roof-memory = 内存
roof-arithmetic = 运算

## 谁接受
verdicts-title = 谁接受它（前向和反向）
verdicts-on = 在
verdicts-others = 其他库截至 { $day }
verdicts-cpu = CPU
verdicts-who = 谁
verdicts-forward = 前向
verdicts-backward = 反向
verdicts-how = 如何，或为何不行
verdicts-takes = 接受
verdicts-dense = 稠密
verdicts-refuses = 拒绝
verdicts-back = 反向：{ $words }

## 谁参加竞速，用什么输入
racers-rounds = 计时轮数
racers-only = 只核对正确性
racers-fixed = 确定性梯度
    .tip = 梯度在每次运行中逐位相同：求和按固定顺序进行。竞速会再运行一次加以核对，并显示固定顺序的代价。
racers-own = 核对我的 PyTorch 的梯度
    .tip = 只用您自己的 PyTorch，以这个设计的 dtype 和步长做前向和反向计算，并把每个梯度与 float64 比较。错误的梯度会列出，并附上对应的 PyTorch 已知问题。在 CPU 上，大的设计以缩小的副本核对；`maskloom conform --grad` 核对全部。
racers-backward = 也做反向计算
    .tip = q、k、v 和被捕获张量的梯度，与 float64 比较并计时。
racer-eager = Maskloom 的：把分数写入内存再读回。
racer-sdpa = 在 GPU 上若支持该掩码则用 cuDNN 的融合内核，否则用 Maskloom 自己的稠密掩码内核；从不是块稀疏。
racer-flash = Maskloom 的，按 FlashAttention-2 的算法：完整或因果；拒绝其他掩码。
racer-flex = Maskloom 的：块稀疏，mod 编译在内。
racer-torch-eager = 您自己的 PyTorch 中未融合的注意力。
racer-torch-sdpa = 您自己的 PyTorch 的 scaled_dot_product_attention。
racer-torch-flex = 您自己的 PyTorch 的 flex_attention，已编译。
racer-torch-flex-flash = 您自己的 PyTorch 的 flex_attention，使用 flash 后端。
racer-cudnn-flex = 您自己的 Python 的 cudnn.flex_attention：掩码表示为键的区间。
inputs-random = 随机
    .tip = 由种子产生的标准正态值。
inputs-file = safetensors 文件
    .tip = 记录下来的 q、k 和 v。
inputs-where = 在工作进程所在的机器上
inputs-path = 输入文件
inputs-tensor = { $letter } 的张量
inputs-layout = 文件中
inputs-seed = 种子

## 以往的竞速
past-title = 以往的竞速（{ $n }）
past-of = 设计
past-fastest = 最快
past-when = 何时何地
past-all = 全部
past-as = 竞速 { $id } 作为 { $letter }
past-compares = 参加比较。
past-forward = { $when }，{ $where }，前向
past-both = { $when }，{ $where }，前向和反向
past-choose = 选择 A 和 B 来比较两次竞速。
past-over = A 对 B
past-keeps = 保留
past-work = 计算量
past-places = A 在 { $a } 上运行，B 在 { $b } 上运行。
