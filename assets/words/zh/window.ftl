# 窗口的框架：菜单、顶栏、第一步、卡片、工具、侧边页面、设置。

## 菜单
menu = 菜单
    .tip = 按组列出所有命令。
menu-file = 文件
menu-edit = 编辑
menu-view = 视图
menu-run = 运行
menu-help = 帮助
menu-recent = 最近打开
menu-go-to = 转到
menu-dock = 停靠
    .tip = 把这个页面和图层放在画布的左侧、右侧或下方。
menu-looks = 文字与主题
menu-language = 语言
    .tip = 菜单、解释和消息使用的语言；代码、文件和日志保持英文。
menu-share = 分享
    .tip = 复制图像或代码，或把一切保存为一个 HTML 文件。

## 快捷键列表中的命令分组
group-file = 文件
group-edit = 编辑
group-run = 运行、打开和查找
group-workspaces = 工作区
group-tools = 工具和图层
group-view = 视图

## 顶栏
top-workspace = 工作区
top-name = 文档名称
top-no-file = 还没有文件
top-changed = 已更改
    .tip = 有未保存的更改。下次启动会恢复它们。
top-run = 运行
top-racing = 正在竞速。
top-device = 设备
top-device-where = { $device }，位于 { $target }
top-device-best = 最好的可用设备
top-starting = 正在启动…

## 第一步
start-words = Maskloom 显示哪些 token 可以关注哪些 token，让您修改它，并测量节省的时间。
start-hide = 隐藏第一步
    .tip = 隐藏这些入门步骤；“视图”菜单可以再次显示它们。
start-gallery = 图库
    .words = 带图片的现成掩码
start-paste = 粘贴或打开 FlexAttention 代码
    .words = mask_mod、score_mod、整个文件
start-config = 打开训练器的 config.json
    .words = 让掩码适配它的模型，再导出回去
start-connect = 连接 GPU
    .words = ssh、Slurm、容器
start-tour = 观看导览
    .words = 90 秒，自动播放
start-learn = 逐步课程
    .words = 什么是块，为什么快

## 侧边页面
page-design = 检查器
page-race = 竞速
page-quality = 掩码质量
page-code = 文本
page-export = 您使用的程序
page-learn = 课程
page-parallel = 多块 GPU
page-field = 页面
page-hide = 隐藏侧边页面

## 顶栏下方的卡片
card-kept = 保留
card-kept-of = { $share } 的单元格
card-kept-none = – 的单元格
card-kept-full = 每个 { $size } 的块都是满块
card-kept-nothing = 什么也没有保留
card-kept-blocks = 块：满块 { $full }，部分块 { $partial }，跳过 { $empty }
card-kept-uncounted = 未计数
card-kept-stopped = 计数已停止；图像保留
card-kept-counting = 正在计数…
card-kept-broken = 没有图像：{ $layers } 有错误
card-kept-before = { $layers } 出错之前的状态
card-kept-errors = 未计数：文档有错误。
card-costs = 开销
card-costs-racing = 正在竞速…
card-costs-errors = 文档有错误
card-costs-untimed = 未计时
card-costs-smaller = 只竞速了缩小的副本
card-costs-race = 让各后端竞速
card-loses = 损失
card-loses-unknown = 未测量
card-loses-needs = 需要模型的 q 和 k
card-loses-why = softmax 中保留的份额取决于真实的查询和键。
card-problems = 问题
card-problems-compiling = 正在编译…
card-problems-none = 没有
card-problems-fine = 可以编译并运行
card-problems-warnings = { $n } 个警告
card-problems-errors = { $n } 个错误
card-problems-both = { $errors } 个错误，{ $warnings } 个警告

## 严重程度
severity-error = 错误
severity-warning = 警告
severity-note = 提示

## 画布上方的工具和图像
title-folder = { $name }（{ $folder }）
title-number = { $name }（第 { $n } 个，共 { $all } 个）
title-other = { $name }（另一个文档）
tools-layers = 图层
picture-blocks = 块
    .tip = BLOCK_SIZE 大小的满块、部分块和空块。
picture-mask = 掩码
    .tip = 每个像素中保留的份额。
picture-bias = 偏置
    .tip = 各个 score mod 给分数 0 加上的值。
picture-scores = 分数
    .tip = 最近一次竞速的输入经过缩放和 score mod 之后的 q·k。
picture-probabilities = 概率
    .tip = 最近一次竞速的输入经过 softmax 之后的值。
picture-loss = 损失
    .tip = 对“质量”中打开的捕获，掩码之外的注意力质量，以及每一行保留的质量。
picture-difference = 差异
picture-difference-tip = 现在保留而 { $name } 中不保留的单元格，以及反过来的单元格。
picture-patches-tip = { $tip }显示什么由“块”“掩码”“分数”等选项决定。
picture-drawn = 画什么
picture-log = 对数
    .tip = 按对数着色。
tools-choose = 工具：{ $tool }
    .tip = 显示所有工具。
tools-more = 更多控件
    .tip = 窗口放不下的内容：头、数字、正在进行的工作。
tools-batch = 批
tools-head = 头
tools-all-heads = 用于所有头
tools-one-head = 用于头 { $heads }
tools-some-heads = 用于头 { $heads }
tools-heads-title = 绘制和新图层所用的头
    .tip = 工具和新图层所作用的头。
tools-stop-counting = 停止计数
    .tip = 停止计数；图像保留。
tools-count = 计数
    .tip = 统计块和单元格。
tools-empty-rows = { $n } 行没有保留任何键
tools-empty-rows-tip = 它们的输出是 0，lse 是 -inf。

## 底栏中鼠标的作用
mouse-pan = 拖动可移动图像，滚轮可缩放，单击可为“单元格”页面固定一个单元格。
mouse-handles = 拖动手柄可改变矩形的形状，拖动中间可移动它；按住 Shift 时逐个 token 移动。
mouse-rectangle = 保留一个矩形内的单元格，作为新图层。
mouse-rectangle-first = 第一个矩形从空掩码开始：只保留画出的单元格。
mouse-band = 保留一条对角带内的单元格，作为新图层。
mouse-band-first = 第一条带从空掩码开始：只保留画出的单元格。
mouse-area = 拖选一个区域：显示其中保留的单元格、块、浪费和字节数。{ $borders }
mouse-polygon = 围绕一个区域依次单击角点；按 Enter 或双击即可闭合。{ $borders }
mouse-lasso = 用指针圈出一个区域。{ $borders }
mouse-borders = 边缘会对齐到帧和段（按住 Alt 则不对齐）；按住 Shift 可选到单个 token。
mouse-patches = 单击一个键，它就成为查询；方向键移动它，翻页键移动一帧。按 G 返回矩阵。

## 所选区域的数据
area-within = 位于 { $place } 之内
area-forget = 取消选区
    .tip = 取消这个选区。
area-keep = 保留这些
area-drop = 移除这些
area-kept = 保留其中 { $share } 的单元格
area-mass = 占其查询的注意力的 { $share }，其中 { $dropped } 被丢弃
area-mass-tip = 没有掩码时的概率，来自 { $source }；对该区域的查询取平均。
area-too-many = 块太多，无法逐个计数：请选小一些。
area-blocks = { $size } 的块：满块 { $full }，部分块 { $partial }，跳过 { $empty }
area-waste = 浪费：计算的单元格中有 { $share } 被丢弃
area-bytes = 读取的键和值：每个头 { $bytes }
area-bytes-tip = 每个要计算的块读取一次它的键和值；内核可能在缓存中找到其中一部分。

## 底栏
status-compiling = 正在编译…
status-cancel = 取消
status-cancel-name = 取消这项工作
status-no-worker = { $target } 上没有工作进程
status-worker = 工作进程在 { $target } 上运行。
status-waiting = 工作进程还没有应答。
status-internal = { $n } 个内部错误
status-internal-tip = Maskloom 自身的错误；见“消息”。

## 图层
layers-mask = 掩码图层
layers-mask-none = 没有：保留每个单元格。
layers-score = Score mod
layers-score-none = 没有：分数不变。
layers-add = 添加
layers-add-mask = 添加掩码图层
layers-add-score = 添加 score mod
layers-select = 选择一个图层以查看其参数。
layers-down = 下移
layers-up = 上移
layers-duplicate = 复制
layers-delete = 删除
design-axes = 轴
design-shape = 形状
design-about = 关于这个文档
design-more = 更多
design-queries = 查询
design-tokens = Token
design-keys = 键

## 消息
toast-dismiss = 关闭这条消息
    .tip = 关闭这条消息；它仍留在“消息”中。
problems-none = 没有问题：文档可以编译并运行。
problems-copy = 复制
    .tip = 复制整条消息。
problems-apply = 应用
    .tip = 把建议写入代码。
problems-layer = 选择这个图层。
close = 关闭
done = 完成
copy = 复制
    .tip = 复制它。

## 设置
setup-on = 位于 { $target }
setup-empty = 驱动、NVRTC、cuDNN、PyTorch、显示：每一项都附有修复命令。
setup-ok = 正常
setup-missing = 缺少
setup-broken = 损坏
setup-copy-fix = 复制 { $name } 的修复命令
setup-versions = 版本
setup-guide = FlashAttention 指南
    .tip = 它的好处、安装和卸载。
setup-explain = 解释错误消息
    .hint = 解释错误消息：粘贴到这里
setup-language-system = 跟随系统（{ $name }）
setup-language-fonts = 本系统没有包含 { $name } 文字的字体，因此窗口保持英文
setup-language-fonts-hint = 请安装一种，例如 Noto：sudo apt-get install -y { $package }

## 列表中的一个图层
layer-pattern = 模式
layer-rectangle = 矩形
layer-band = 带
layer-painted = 手绘
layer-code = 代码
layer-linked = 链接的文件
layer-curve = 曲线
layer-picture = { $name } 的图像
layer-picture-tip = 这个图层单独保留的单元格。可拖到列表中的其他位置。
layer-enable = 启用 { $name }
layer-enable-tip = 启用或停用这个图层。
layer-keep = 保留
layer-not = 非
layer-and = 且
layer-or = 或
layer-and-not = 且非
layer-joins = { $name } 如何结合
layer-joins-tip = 它如何与下方的图层结合。
layer-all-heads = 所有头
layer-one-head = 头 { $heads }
layer-some-heads = 头 { $heads }
layer-heads-tip = 这个图层所作用的头。
layer-select = 选择它。
status-shape = { $queries } x { $keys } 个 token，{ $heads } 个头，每个 { $dim }，{ $dtype }
status-shape-batch = { $queries } x { $keys } 个 token，批 { $batch }，{ $heads } 个头，每个 { $dim }，{ $dtype }

## 快捷键列表中画布上的鼠标和按键
keys-title = 键盘和鼠标
keys-canvas = 在画布上
keys-zoom = 滚轮，或加号和减号
    .does = 以指针为中心缩放；两指移动
keys-move = 拖动；用任何工具时按住空格
    .does = 移动图像；鼠标中键和方向键也可以
keys-click = 单击
    .does = 为“单元格”页面固定这个单元格；Escape 松开它
keys-menu = 右键单击
    .does = 显示这个单元格的命令
keys-home = Home
    .does = 整个掩码
keys-arrow = Shift 加方向键
    .does = 移动大半个屏幕
keys-enter = Enter
    .does = 在中央的十字处开始和结束工具
keys-width = Alt 加滚轮
    .does = 改变画笔、橡皮或直线的宽度
keys-brackets = [ 和 ]
    .does = 改变画笔的宽度；用其他工具时显示上一个或下一个头
keys-escape = Escape
    .does = 取消正在画的笔画
keys-small = 在小图中拖动
    .does = 移动视图

## 窗口上方的文件
drop-title = 松开以打开
drop-words = 文档、FlexAttention 代码、运行、config.json，或含有 q、k 和 v 的 safetensors 文件。
