# 窗口说明做了什么，以及失败之事的标题。

## 文档和图层
done-order = 以不同方式结合的图层，其顺序会改变掩码保留的内容；撤销可恢复。
done-length = { $n } 个 token，即 { $name } 的长度。
done-lengths = { $q } x { $kv } 个 token，来自代码第 { $line } 行。
done-added = { $path } 已作为图层添加到 { $name }；撤销可移除。
done-stays = { $path } 保持原样，直到您保存。
failed-read = 无法读取 { $path }
done-read-again = 已重新读取 { $path }。撤销可恢复之前的内容。
done-connected = 已连接到 { $host }。
done-cancelled = 运行已取消。
done-begins-painted = 掩码现在只保留画出的内容；撤销可恢复所有单元格。
done-begins-drawn = 掩码现在只保留绘出的内容；撤销可恢复所有单元格。
failed-save = 无法保存文档
done-saved = 已保存 { $path }
done-saved-run = 已保存运行 { $path }
failed-save-run = 无法保存这次运行
done-saved-script = 已保存 { $path }，旁边是 maskloom_capturing。
failed-save-script = 无法保存捕获脚本
done-saved-html = 已保存 { $path }。Maskloom 可以再打开它。
failed-save-html = 无法保存页面
failed-document = 无法读取文档
done-restored = { $name } 已恢复；仍未保存。
failed-open = 无法打开 { $path }
done-opened = 已打开 { $path }。{ $before }
done-imported = 已导入 { $path }。{ $before }
done-inputs = 运行使用 { $path } 中的 q、k 和 v：{ $names }。
done-run = 已打开运行 { $path } 及其文档 { $name }（{ $what }）。撤销可恢复之前的文档。
done-run-copy = 缩小副本的，{ $sizes }
failed-export = 导出中止
done-exported = 已导出 { $files } 到 { $folder }
done-changed = 已修改 { $path }；旧文件作为 { $name } 保留在旁边。已写出 { $files } 到 { $folder }
done-had-setting = { $path } 已有这个设置，未作更改。已写出 { $files } 到 { $folder }
done-read = 已读取 { $path }
done-installing = 正在安装 NVRTC；大约需要一分钟。
done-new = 新文档。撤销可恢复之前的文档。
done-compared = 与现在的 { $name } 比较。请更改它、撤销，或打开另一个文档。
done-linked = 已重新读取链接的文件。
done-presentation = 演示：按 F11 恢复窗口。
done-nvrtc = NVRTC 已安装在 { $folder } 中。
done-undo-restores = 撤销可恢复之前的文档。
done-keeps-tab = 之前的文档保留在它的标签页中。
done-unsaved = { $name } 未保存；“文件 > { $command }”会列出它。
done-undone = 已撤销：{ $step }
done-again = 已重做：{ $step }
done-detached = 竞速作为作业 { $id } 继续，关掉窗口也不会停。“作业”会列出它。
done-job = 作业 { $id }：{ $state }；保留 { $steps } 个结果中的 { $done } 个。
done-jobs-removed = 已移除 { $jobs } 个作业。
failed-open-there = 无法打开 { $target } 上的 { $path }
done-opened-there = 已打开 { $path }；它在这里还没有文件。{ $before }
mending-again = 窗口的会话已重新开始
done-code = 代码已复制。
done-picture = 图像已复制。
done-page = 页面的图像已复制。
sweep-plain = 窗口之类的值保持不变
sweep-grids = 网格与沿其计数的值一起缩小

## 步骤
step-open = 打开 { $name }
step-rename = 重命名文档
step-about = 编辑说明
step-axes = 更改轴
step-settings = 更改设置
step-add = 添加 { $name }
step-remove = 移除一个图层
step-move = 调整图层顺序
step-name = 重命名一个图层
step-enable = 启用一个图层
step-disable = 停用一个图层
step-combine = 更改图层的结合方式
step-heads = 更改图层的头
step-layer = 更改一个图层
step-change = 更改 { $name }
step-code = 编辑代码
step-paint = 绘制
step-erase = 擦除
step-nothing = 无

## 按长度竞速
sweep-heads = { $n } 个头；{ $moves }
sweep-some-heads = { $all } 个头中的 { $n } 个；{ $moves }

## 工作进程说它在做什么
work-backends = 正在查找后端
work-inputs = 正在生成输入
work-blocks = 正在统计掩码的块
work-mods = 正在用解释器核对各个 mod
work-reference = 正在计算 float64 参考结果
work-rounding = 正在测量舍入的影响
work-warming = 正在预热
work-gradients = 正在计算梯度
work-python = 正在等待 Python，它还没有应答
work-round = 计时第 { $n } 轮，共 { $all } 轮
work-timed = 已计时 { $n } / { $all } 轮
work-preparing = 正在准备 { $name }
work-compiling = 正在编译 { $name }
work-done = { $name } 已完成

## 后端为何更快
why-short = { $why }；时间短到启动开销也有影响
why-skips-dense = 它{ $share }；另一个把掩码当作稠密张量读取，什么也不跳过
why-skips-scores = 它{ $share }；另一个把每个分数写入内存
why-skips-plain = 它{ $share }；另一个全部计算
why-computes = 计算 { $share }% 的 tile
why-skips = 跳过空块
why-both-skip = 两者都跳过空块：差异来自内核本身
why-both-masked = 两者都跳过被遮蔽的部分：差异来自内核本身
why-both-dense = 两者都把掩码当作稠密张量读取：差异来自内核本身
why-dense-skips = 它把掩码当作稠密张量读取，什么也不跳过；另一个跳过空块
why-scores = 它把每个分数写入内存再读回
why-dense-scores = 它读取稠密掩码，但不写分数；另一个把每个分数写入内存
why-other-scores = 另一个把每个分数写入内存再读回
why-same = 计算量相同：差异来自内核本身
why-nothing-masked = 没有任何遮蔽：差异来自内核本身
why-other-dense = 另一个把掩码当作稠密张量读取，什么也不跳过
why-dense = 它把掩码当作稠密张量读取，什么也不跳过
why-launch = 受限于启动：每次调用 { $call }，GPU 上 { $own }
