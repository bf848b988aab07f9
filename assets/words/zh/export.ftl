# “导出”页面：使用的程序、要写出的文件、接下来的步骤。
export-creating = 正在生成文件
export-changes = 文件如何变化
export-files = { $n } 个文件
export-files-per-head = { $files }，{ $heads } 个头各有一个掩码
export-question = 您使用什么？
export-where = 写到哪里
export-folder = 文件夹
export-config = 训练器的 config.json
export-config-none = 没有：新建一个
export-browse = 浏览…
export-browse-name = 浏览：{ $name }
export-in-place-tip = { $file } 得到这个值；旧文件作为 { $name }.bak 保留在旁边。
export-in-place = 修改这个文件
export-copy = 写出修改后的副本：{ $path }
export-copy-tip = 文件本身不变。
export-no-mask = 没有掩码的选项
export-setting = 注意力设置
    .tip = 训练器的配置得到的值。只有您选择时才设为 flex。
export-to-write = 要写出的文件
export-write = 写出 { $name }
export-shows = 显示其内容。
export-replaced = { $n } 个已存在，将被替换：{ $names }。
export-replaced-more = { $n } 个已存在，将被替换：{ $names } 以及另外 { $more } 个。
export-written = 已写出
export-open-folder = 打开文件夹
    .tip = 在系统的文件管理器中。
export-count-in = { $files }，位于
export-has-value = 有新的值：
export-old-file = 旧文件：
export-had-value = 原来就有这个值：
export-next = 下一步
export-copy-lines = 复制 { $kind } 行
export-file-tip = { $what }（{ $bytes } 字节）
export-has-setting = 文件已有这个设置，不作更改。
export-binary = 机器码或其他二进制数据

## 回答
use-simpletuner = SimpleTuner
    .words = 训练器的 config.json 和一个 sidecar；训练器本身不变
use-diffusers = diffusers
    .words = 一个调用把掩码应用到 pipeline 的 transformer
use-transformers = transformers
    .words = 一个调用把掩码应用到已加载的模型
use-pytorch = 我自己的 PyTorch
    .words = 包含 mask_mod、score_mod 和 block mask 的模块
use-kernels = CUDA 内核
    .words = 为 sm_80 和 sm_90a 编译，作为 PyTorch 算子；这里需要 NVRTC，不需要 GPU
use-mask = 只要掩码
    .words = 设计、它的块列表、一张图和一份报告
use-everything = 全部
    .words = 除内核之外的所有文件

## 按钮
export-replace-them = 替换它们
export-write-files = 写出文件
