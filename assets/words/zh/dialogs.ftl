# 窗口上的对话框。
cancel = 取消
open = 打开
save = 保存
there-are-none = 没有。

## 工作进程在哪里运行
connect-this = 这台机器
connect-ssh = 通过 ssh 的服务器
connect-slurm = Slurm 作业
connect-container = 容器
connect-title = 连接 GPU
connect-words = 工作进程完成设备上的所有工作。请输入目标的名称，或启动工作进程的命令；留空表示这台机器。
connect-command = 启动命令
    .hint = 这台机器
connect-such = 例如：
connect-no-command = 没有命令
connect-python = 那里的带 PyTorch 的 Python
    .hint = 由工作进程查找
connect-give-up = 等待
connect-seconds = 等待的秒数
    .tip = 对在队列中等待的作业请用更多秒数。
connect-without = 仍无应答则放弃
connect-go = 连接
connect-before = 以前连接过。会填入各字段。
connect-forget = 从这个列表中移除。
connect-forget-name = 忘记 { $title }
connect-targets = 目标：
connect-by-ssh = 通过 ssh：
connect-ssh-tip = ~/.ssh/config 中的 { $name }，那里必须装有 maskloom。
connect-waiting = 正在等待 { $target } 上的工作进程：已等 { $waited } s，最多 { $limit } s
connect-still = 仍然连接着：{ $target }。
connect-starting = 正在 { $target } 上启动工作进程
connect-connected = 已连接到 { $host }（Maskloom { $version }）

## 被其他程序更改的文件
difference-title = 文件与这个文档
difference-words = 带 - 的行只在文件中，带 + 的行只在这个文档中。
difference-later = 以后再决定
outside-reload = 重新读取
    .tip = 读取文件；撤销可恢复这个文档。
outside-keep = 保留我的
    .tip = 下次保存会覆盖文件。
outside-show = 显示差异
    .tip = 显示不同的行。
typed-not-taken = { $name }：`{ $text }` 没有生效。请更正，或再次执行命令以忽略它。
outside-changed = { $name } 被其他程序更改。
outside-gone = { $name } 已不在原处：它被删除或移动，或者所在磁盘被移除。
outside-again = 重新保存
    .tip = 把这个文档写回原来的位置。
outside-unsaved = 保持未保存
    .tip = 文档保持打开，并在您保存之前算作未保存。

## 未保存的文档无法保留时关闭窗口
leave-title = 未保存的文档将会丢失
leave-words = 这些文档没有保存，也无法为下次启动保留，将会丢失：{ $names }。
leave-save = 把打开的文档保存到文件；然后再次关闭窗口。
leave-anyway = 仍然退出
    .tip = 关闭；没有保存的内容会丢失。
leave-tab = 这个文档没有保存，也无法保留在未保存的文档中，关闭标签页后将会丢失：{ $names }。
    .save = 把文档保存到文件；然后再次关闭标签页。
    .anyway = 仍然关闭

## 安装 NVRTC
fetch-title = 获取 NVRTC？
fetch-words = NVRTC 编译 GPU 内核。这个命令会把它安装到 Maskloom 自己的文件夹：
fetch-outside = 它不更改 { $folder } 之外的任何东西。
fetch-yes = 获取

## 图库
gallery-title = 图库
gallery-hint = 搜索名称、模型和说明；按 Enter 打开第一个
gallery-filter = 筛选
gallery-own = 您保存或打开的文档列在这里。
gallery-folder = 您自己的预设：{ $folder } 中的 .json 文件
gallery-none = 没有文档与这些词匹配。
gallery-all = 全部
gallery-recorded = { $from }：flex { $ms } ms
gallery-recorded-than = { $from }：flex { $ms } ms，{ $words }
gallery-no-picture = 没有图像：{ $why }
gallery-language = 语言模型
gallery-images = 图像
gallery-video = 视频
gallery-encoders = 编码器
gallery-patterns = 模式
gallery-yours = 您的

## 作业
jobs-title = 作业
jobs-words = 窗口关闭或线路中断后它们仍会继续。
jobs-connected = { $target }（{ $host }），已连接
jobs-remove = 移除已结束的
    .tip = 移除已结束的作业及其结果。
jobs-connect-tip = 把它作为工作进程的机器；在它应答之前保留当前的机器。
jobs-connect-name = 连接 { $title }
jobs-silent = 无法访问：{ $why }
jobs-asking = 正在询问其他目标
jobs-open-name = 打开 { $title }
jobs-end = 结束
jobs-end-name = 结束 { $title }
jobs-of = { $state }，{ $steps } 中的 { $done }
jobs-left = { $state }，{ $left }
jobs-seconds = { $state }，{ $seconds } s
jobs-another = { $state }，属于另一个用户
job-running = 正在运行
job-ended = 已结束
job-cancelled = 已取消
job-lost = 无声结束（被终止，或机器重新启动过）
job-elsewhere = 在另一台机器上

## 列表
lists-unchanged = 文档没有变化。
lists-no-messages = 还没有消息。
lists-seconds = { $n } 秒前
lists-minutes = { $n } 分钟前
lists-message = { $word }，{ $ago }：{ $message }

## 命令面板
palette-preset = 打开预设 { $name }
palette-pattern = 添加模式 { $name }
palette-cell = 转到单元格 q { $q }，kv { $kv }
palette-layer = 选择 { $name }
palette-parameter = { $layer } 的参数 { $name }
palette-setting = 设置 { $name }
palette-open = 打开 { $name }
palette-token = “{ $said }”，token { $token }
palette-query = “{ $said }”，查询 { $token }
palette-key = “{ $said }”，键 { $token }
palette-axes = 轴和长度
palette-batch = 批
palette-heads = 头
palette-scale = 缩放
palette-fast = fast math，近似 tanh
palette-backends = 参加竞速的后端
palette-rounds = 计时轮数
palette-inputs = 竞速的输入、种子
palette-capture = 捕获、掩码损失、建议的掩码
palette-parallel = context parallel、多块 GPU、rank、all-gather
palette-trainer = 训练器的注意力设置
palette-hint = 命令、预设、图层、参数、文件、token，或写成 q, kv 的单元格
palette-name = 命令
palette-none = 没有匹配的命令。
palette-preset-tip = 打开预设；撤销可恢复文档。
palette-cell-tip = 居中并固定它。
palette-layer-tip = 在检查器中显示它。
palette-setting-tip = 显示这个设置的位置。

## 粘贴
paste-title = 粘贴 FlexAttention 代码
paste-words = 一个 mask_mod、score_mod、lambda，或返回它们的函数，连同它们使用的常量和张量。
paste-name = FlexAttention 代码
paste-new = 作为新文档
paste-layers = 作为 { $name } 的图层
paste-use = 使用这段代码
paste-nothing = 还没有粘贴任何内容。
paste-no-mod = 还没有找到 mod；代码会连同其错误作为图层添加。
paste-wrong = 第 { $line } 行还不对：
paste-a-mask = 一个掩码
paste-a-score = 一个 score mod
paste-the-mask = 掩码 { $name }
paste-the-score = score mod { $name }
paste-with = { $what }，参数 { $args }
paste-and = { $what }和{ $more }
paste-adds = 添加{ $what }。
paste-tokens-line = { $q } x { $kv } 个 token，来自第 { $line } 行。
paste-no-numbers = 第 { $line } 行的大小不是普通数字：请之后设置轴。
paste-tokens-of = { $n } 个 token，即 { $name } 的长度。

## 路径
path-exists = 这个文件已存在。再次保存会替换它。
path-on = 位于
path-on-name = 位于 { $name }
path-stays = 捕获留在那里：传来的是图像和统计。其他文件在这里打开。
path-path = 路径
path-browse-tip = 打开系统的文件对话框（如果有）。
path-hidden = 隐藏文件
path-above = 上级文件夹
path-none = 这里没有这类文件。
path-more = 以及另外 { $n } 个，可以输入其名称
path-kinds = 文档、代码、张量
path-open = 打开文档、代码、运行或张量
path-config = 打开训练器的 config.json
path-save = 保存文档
path-save-run = 保存这次运行
path-save-script = 保存捕获脚本
path-save-html = 把设计保存为一个 HTML 文件
path-link = 链接含有 FlexAttention 代码的 Python 文件
path-link-yes = 链接

## 新的长度
resize-title = 长度改变
resize-question = 从 { $old } 到 { $new } 个 token。手绘的图层应如何处理？
resize-keep = 保持
    .tip = 每个单元格、矩形和带都留在原来的 token 上。
resize-scale = 缩放
    .tip = 手绘的单元格、矩形、带和距离曲线按新的长度缩放。
resize-repeat = 重复
    .tip = 手绘的单元格沿两个轴重复；其余都留在原来的 token 上。

## 训练器的配置
trainer-title = 训练器的配置
trainer-unset = 未设置
trainer-today = 现状：{ $words }
trainer-first = 首先是没有掩码的选项
trainer-shape = { $axis } = { $tokens } 个 token，{ $heads } 个头，{ $kv } 个 kv 头，head_dim { $dim }
trainer-race = 让不需要掩码的选项竞速
trainer-race-tip = 按模型的真实形状运行 { $names }。最快的可能已经足够。
trainer-unknown = 不知道这个模型系列的形状：请从预设开始。
trainer-or-preset = 或从这个模型的预设开始
trainer-preset = 从预设开始
trainer-export = “导出”在写入之前显示它会更改这个文件的哪些地方，并保留一份副本。

## 未保存的文档
unsaved-title = 没有保存的文档
unsaved-words = 这些文档在保存之前就被替换了。最新的在最前。
unsaved-nothing = 这个窗口在两次启动之间不保留任何内容。
unsaved-most = 最新的 { $n } 个会保留，直到您丢弃它们。
unsaved-open-name = 打开 { $name }
unsaved-discard = 丢弃
unsaved-discard-name = 丢弃 { $name }
unsaved-for-good = 永久丢弃
unsaved-for-good-name = 永久丢弃 { $name }
unsaved-last = 最后一步：{ $step }，{ $ago }
unsaved-older = 较早的状态在 { $path } 中
unsaved-moment = 刚才
unsaved-minutes = { $n } 分钟前
unsaved-hours = { $n } 小时前
unsaved-days = { $n } 天前
