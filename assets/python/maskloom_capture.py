"""Dumps q, k and v of chosen layers, steps and heads from a running PyTorch model into a safetensors file for Maskloom.

In a program:

    from maskloom_capture import capture
    with capture("qkv.safetensors", layers=[0, 3], steps=[0]):
        pipe(prompt)                     # or model(**inputs), model.generate(...)

From a shell, around a script that stays as it is (options stand before the script):

    python maskloom_capture.py --out qkv.safetensors --layers 0,3 --steps 0 script.py its arguments

Then:

    maskloom run PRESET --inputs qkv.safetensors --names blocks.3.attn.step0.q,blocks.3.attn.step0.k,blocks.3.attn.step0.v

Tensors are named MODULE.stepN.q, .k, .v and stored as [batch, heads, tokens, head_dim]; .mask is the model's own mask as
[batch or 1, heads or 1, q_len, kv_len] (bool keeps, a float is added), .sinks its sinks. A layer is an attention call:
a number counts the calls of one forward pass, a text is a part of the module's name. A step is a forward pass of the
outermost module, counted from 0 for each model (a pipeline with guidance may make two passes a denoising step).

Sees scaled_dot_product_attention, flex_attention, transformers' attention functions, diffusers' dispatcher, and the
functions of flash-attn, xFormers and SageAttention. Compiled models run uncompiled meanwhile (PyTorch 2.6 and newer). A
layer that gradient checkpointing runs again is captured once. `--preview` lists what would be captured, with its size, and
keeps nothing; what is beyond `--limit` is left out and told. Needs torch; other packages only if the model does.
"""

import argparse
import functools
import json
import os
import runpy
import sys
import tempfile

import torch

__all__ = ["capture", "Capture"]

DTYPES = {
    torch.bool: "BOOL", torch.uint8: "U8", torch.int8: "I8", torch.int16: "I16", torch.int32: "I32",
    torch.int64: "I64", torch.float16: "F16", torch.bfloat16: "BF16", torch.float32: "F32", torch.float64: "F64",
}  # fmt: skip


# attention functions of other packages: module, name, layout of query, key and value
PACKAGES = (
    ("flash_attn", "flash_attn_func", "bshd"),
    ("flash_attn", "flash_attn_qkvpacked_func", "packed"),
    ("flash_attn_interface", "flash_attn_func", "bshd"),
    ("xformers.ops", "memory_efficient_attention", "bshd"),
    ("sageattention", "sageattn", "sage"),
)
LIMIT = 16.0


def capture(path, layers=None, steps=(0,), heads=None, dtype=None, only=None, limit=LIMIT, preview=False):
    """A context manager that writes `path` when it ends.

    layers: numbers and parts of module names, None for all. steps: numbers, None for all. heads: query heads, None for
    all. dtype: "bfloat16", "float16", "float32" or None to keep the model's. only: class name of the outermost module,
    where a pipeline runs several models. limit: most GiB kept in memory; later calls are left out and told. preview: only
    list what would be captured.
    """
    return Capture(path, layers, steps, heads, dtype, only, limit, preview)


class NothingCaptured(RuntimeError):
    """No attention call was seen, or none was chosen."""


class Pass:
    """One forward pass of an outermost module."""

    def __init__(self, root, step):
        self.root, self.step, self.calls = root, step, 0
        self.names = {id(module): name for name, module in root.named_modules()}


class Capture:
    """What `capture` returns; afterwards `tensors` and `details` hold what was seen."""

    def __init__(self, path, layers=None, steps=(0,), heads=None, dtype=None, only=None, limit=LIMIT, preview=False):
        self.path = os.fspath(path)
        self.layers = None if layers is None else list(layers)
        self.steps = None if steps is None else set(steps)
        self.heads = None if heads is None else list(heads)
        self.dtype = getattr(torch, dtype) if isinstance(dtype, str) else dtype
        self.only = only
        self.limit, self.preview = limit, preview
        self.tensors, self.details, self.skipped = {}, {}, 0
        self.bytes, self.left_out, self._masks = 0, 0, {}
        self._undo, self._stack, self._pass, self._steps, self._inside = [], [], None, {}, False
        self._stance = None

    def __enter__(self):
        try:
            self._patch_modules()
            self._patch_functions()
            self._patch_packages()
            self._patch_transformers()
            self._run_uncompiled()
        except BaseException:
            self._restore()
            raise
        return self

    def __exit__(self, kind, error, trace):
        self._restore()
        if self.preview and self.details:
            self._list()
        elif self.tensors:
            write(self.path, self.tensors, {"layout": "bhsd", "maskloom": json.dumps(self.details)})
            calls = sum(f"{key}.q" in self.tensors for key in self.details)
            print(f"captured {calls} attention calls to {self.path}, {self.bytes / 2**30:.2f} GiB", file=sys.stderr)
            if self.left_out:
                print(
                    f"left out {self.left_out} calls beyond the limit of {self.limit:g} GiB: choose layers, steps or heads, or a "
                    "larger limit",
                    file=sys.stderr,
                )
            first = next(iter(self.details))
            names = ",".join(f"{first}.{n}" for n in "qkv")
            print(f"try: maskloom run PRESET --inputs {self.path} --names {names}", file=sys.stderr)
        elif kind is None:
            raise NothingCaptured(self._nothing())
        return False

    def _list(self):
        """One line for each call that would be captured."""
        for key, info in self.details.items():
            shape = f"{info['heads']} heads, {info['q_len']} x {info['kv_len']} tokens of {info['head_dim']}"
            print(f"{key}: layer {info['layer']} of {info['model']}, {shape}, mask {info['mask']}, {info['bytes'] / 2**20:.1f} MiB")
        print(f"{len(self.details)} calls, {self.bytes / 2**30:.2f} GiB: nothing was written")

    def _nothing(self):
        if self.left_out:
            return f"the first call is beyond the limit of {self.limit:g} GiB: choose heads, or a larger limit"
        if self.skipped:
            return f"{self.skipped} attention calls were seen, none of them chosen by layers, steps, heads and only"
        return "no attention call was seen: does the model call kernels of its own?"

    # ---- patches, all undone at the end

    def _set(self, owner, name, value):
        self._undo.append((owner, name, owner.__dict__.get(name, self)))
        setattr(owner, name, value)

    def _restore(self):
        for owner, name, before in reversed(self._undo):
            if before is self:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
        self._undo = []
        if self._stance is not None:
            self._stance.__exit__(None, None, None)
            self._stance = None

    def _replace_everywhere(self, original, wrapped):
        """Wherever a module holds the function under some name, it holds the wrapped one until the end."""
        for module in list(sys.modules.values()):
            names = getattr(module, "__dict__", None)
            if not isinstance(names, dict) or module is sys.modules[__name__]:
                continue
            for name in [n for n, value in list(names.items()) if value is original]:
                self._set(module, name, wrapped)

    def _patch_modules(self):
        original = torch.nn.Module.__call__

        @functools.wraps(original)
        def call(module, *args, **kwargs):
            outermost = not self._stack
            if outermost:
                step = self._steps.get(id(module), 0)
                self._steps[id(module)] = step + 1
                self._pass = Pass(module, step)
            self._stack.append(module)
            try:
                return original(module, *args, **kwargs)
            finally:
                self._stack.pop()
                if outermost:
                    self._pass = None

        self._set(torch.nn.Module, "__call__", call)

    def _patch_functions(self):
        self._wrap(torch.nn.functional.scaled_dot_product_attention, "scaled_dot_product_attention")
        flex = sys.modules.get("torch.nn.attention.flex_attention")
        if flex is not None:
            self._wrap(flex.flex_attention, "flex_attention")
        dispatcher = sys.modules.get("diffusers.models.attention_dispatch")
        if dispatcher is not None:
            self._wrap(dispatcher.dispatch_attention_fn, "diffusers", "bshd")

    def _patch_packages(self):
        for module, name, layout in PACKAGES:
            original = getattr(sys.modules.get(module), name, None)
            if callable(original):
                self._wrap(original, module.split(".")[0], layout)

    def _run_uncompiled(self):
        """Compiled code runs without us: until the end its Python runs instead."""
        stance = getattr(torch.compiler, "set_stance", None)
        if stance is not None:
            self._stance = stance("force_eager")
            self._stance.__enter__()

    def _wrap(self, original, source, layout="bhsd"):
        @functools.wraps(original)
        def attention(*args, **kwargs):
            seen, details = arguments(layout, args, kwargs)
            return self._around(seen, source, details, lambda: original(*args, **kwargs))

        self._replace_everywhere(original, attention)

    def _patch_transformers(self):
        utils = sys.modules.get("transformers.modeling_utils")
        table = getattr(utils, "ALL_ATTENTION_FUNCTIONS", None)
        if table is None:
            return
        wrapped = {}

        def wrap(original):
            def attention(module, query, key, value, *args, **kwargs):
                mask = args[0] if args else kwargs.get("attention_mask")
                causal = kwargs.get("is_causal")
                if causal is None:
                    # as transformers decides it
                    causal = getattr(module, "is_causal", False) and mask is None and query.shape[2] > 1
                details = {"scale": kwargs.get("scaling"), "is_causal": causal, "attn_mask": mask}
                details |= {"sinks": kwargs.get("s_aux"), "softcap": kwargs.get("softcap")}
                call = lambda: original(module, query, key, value, *args, **kwargs)
                return self._around([query, key, value], "transformers", details, call)

            return wrapped.setdefault(original, functools.wraps(original)(attention))

        kind = type(table)
        for name in ("get_interface", "__getitem__"):
            lookup = getattr(kind, name, None)
            if lookup is not None:
                self._set(kind, name, lambda *args, _lookup=lookup, **kw: self._once(wrap, _lookup(*args, **kw)))

    @staticmethod
    def _once(wrap, function):
        return function if getattr(function, "__wrapped__", None) is not None else wrap(function)

    # ---- what is seen

    def _around(self, qkv, source, details, call):
        """Keeps q, k, v of the outermost of nested attention functions, then makes the call."""
        if self._inside:
            return call()
        self._inside = True
        try:
            self._see(qkv, source, details)
            return call()
        finally:
            self._inside = False

    def _see(self, qkv, source, details):
        if torch._C._current_graph_task_id() != -1:
            # gradient checkpointing runs a layer again in the backward pass
            return
        number, step, name, root = self._place()
        if not self._chosen(number, step, name, root) or any(not isinstance(t, torch.Tensor) for t in qkv):
            self.skipped += 1
            return
        q, k, v = (t.unsqueeze(0) if t.dim() == 3 else t for t in qkv)
        if q.dim() != 4:
            self.skipped += 1
            return
        key = self._free_name(f"{name}.step{step}", root)
        info = {"source": source, "layer": number, "model": root, "heads": q.shape[1], "kv_heads": k.shape[1],
                "q_len": q.shape[2], "kv_len": k.shape[2], "head_dim": q.shape[3], "scale": details.get("scale"),
                "is_causal": bool(details.get("is_causal")), "mask": mask_words(details)}  # fmt: skip
        group = max(1, q.shape[1] // k.shape[1])
        if self.heads is not None:
            chosen = [h for h in self.heads if h < q.shape[1]]
            if not chosen:
                self.skipped += 1
                return
            q, k, v = q[:, chosen], k[:, [h // group for h in chosen]], v[:, [h // group for h in chosen]]
            info["captured_heads"] = chosen
        if isinstance(details.get("softcap"), float):
            info["softcap"] = details["softcap"]
        self._keep(key, info, self._parts(key, info, details, (q, k, v)))

    def _parts(self, key, info, details, qkv):
        """(name, tensor, dtype) of what is kept of a call."""
        parts = [(f"{key}.{letter}", tensor, self.dtype) for letter, tensor in zip("qkv", qkv, strict=True)]
        heads, chosen = info["heads"], info.get("captured_heads")
        mask = own_mask(details, info["q_len"], info["kv_len"])
        if mask is not None:
            # one mask serves many layers of a pass
            same = self._masks.get(id(mask[0]))
            info["mask_tensor"] = same[1] if same else f"{key}.mask"
            if same is None:
                table = mask[1]
                picked = table if chosen is None or table.shape[1] == 1 else table[:, chosen]
                parts.append((f"{key}.mask", picked, None))
                self._masks[id(mask[0])] = (mask[0], f"{key}.mask")
        sinks = details.get("sinks")
        if isinstance(sinks, torch.Tensor) and sinks.numel() == heads:
            parts.append((f"{key}.sinks", sinks if chosen is None else sinks[chosen], None))
        return parts

    def _keep(self, key, info, parts):
        size = sum(tensor.numel() * (dtype or tensor.dtype).itemsize for _, tensor, dtype in parts)
        info["bytes"] = size
        if not self.preview and self.bytes + size > self.limit * 2**30:
            self.left_out += 1
            return
        self.bytes += size
        self.details[key] = info
        for name, tensor, dtype in [] if self.preview else parts:
            tensor = tensor.detach().to(dtype=dtype or tensor.dtype, copy=True)
            self.tensors[name] = tensor.cpu().contiguous()

    def _place(self):
        if self._pass is None:
            number = self._steps.get(None, 0)
            self._steps[None] = number + 1
            return number, 0, f"attention.{number}", ""
        number, self._pass.calls = self._pass.calls, self._pass.calls + 1
        named = (self._pass.names.get(id(module)) for module in reversed(self._stack))
        name = next((n for n in named if n), None) or f"attention.{number}"
        return number, self._pass.step, name, type(self._pass.root).__name__

    def _chosen(self, number, step, name, root):
        layer = self.layers is None or any(number == x if isinstance(x, int) else x in name for x in self.layers)
        return layer and (self.steps is None or step in self.steps) and (self.only is None or root == self.only)

    def _free_name(self, key, root):
        """A module may attend twice in a pass, and two models may use the same names."""
        if key in self.details and root:
            key = key if self.details[key]["model"] == root else f"{root}.{key}"
        free, n = key, 1
        while free in self.details:
            n += 1
            free = f"{key}.call{n}"
        return free


def arguments(layout, args, kwargs):
    """([query, key, value] as [B, H, S, D], what else matters) of a call of an attention function."""
    details = dict(kwargs)
    if layout == "packed":
        packed = kwargs["qkv"] if "qkv" in kwargs else args[0]
        details["is_causal"] = kwargs.get("causal", args[3] if len(args) > 3 else False)
        return [t.transpose(1, 2) for t in packed.unbind(2)], details
    names = {"q": "query", "k": "key", "v": "value"}
    given = {names.get(name, name): value for name, value in kwargs.items()}
    given |= dict(zip(("query", "key", "value"), args, strict=False))
    seen = [given.get(name) for name in ("query", "key", "value")]
    if layout == "sage":
        layout = "bhsd" if kwargs.get("tensor_layout", "HND") == "HND" else "bshd"
    if layout == "bshd":
        seen = [t.transpose(1, 2) if isinstance(t, torch.Tensor) and t.dim() == 4 else t for t in seen]
    for ours, theirs in (("is_causal", "causal"), ("scale", "softmax_scale"), ("attn_mask", "attn_bias")):
        if details.get(ours) is None and kwargs.get(theirs) is not None:
            details[ours] = kwargs[theirs]
    if len(args) > 3 and "attn_mask" not in details and isinstance(args[3], torch.Tensor):
        details["attn_mask"] = args[3]
    return seen, details


def own_mask(details, q_len, kv_len):
    """(the model's mask as it is, the same as [B or 1, H or 1, Q, KV]); None where it has none or one of another kind."""
    mask = details.get("attn_mask")
    if isinstance(mask, torch.Tensor):
        table = mask[:, None, None, :] if mask.dim() == 2 and mask.shape != (q_len, kv_len) else mask
        while table.dim() < 4:
            table = table[None]
        fits = table.shape[-1] >= kv_len and table.shape[-2] in (1, q_len)
        return (mask, table[..., :kv_len].expand(-1, -1, q_len, -1)) if fits else None
    block_mask = details.get("block_mask")
    if block_mask is None or getattr(block_mask, "mask_mod", None) is None or q_len * kv_len > 2**26:
        return None
    from torch.nn.attention.flex_attention import create_mask

    extents = block_mask.kv_num_blocks.shape[:2]
    device = block_mask.kv_num_blocks.device
    return block_mask, create_mask(block_mask.mask_mod, *extents, q_len, kv_len, device=str(device))


def mask_words(details):
    mask = details.get("attn_mask")
    if isinstance(mask, torch.Tensor):
        return f"{str(mask.dtype).removeprefix('torch.')} {list(mask.shape)}"
    block_mask = details.get("block_mask")
    return "none" if mask is None and block_mask is None else "block mask"


def write(path, tensors, metadata):
    """A safetensors file, written beside and renamed."""
    header, at = {"__metadata__": {k: str(v) for k, v in metadata.items()}}, 0
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    folder = os.path.dirname(os.path.abspath(path))
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".maskloom-", delete=False) as file:
        try:
            file.write(len(text).to_bytes(8, "little") + text)
            for tensor in tensors.values():
                file.write(memoryview(tensor.reshape(-1).view(torch.uint8).numpy()))
            file.close()
            os.replace(file.name, path)
        except BaseException:
            file.close()
            os.unlink(file.name)
            raise


def numbers(text):
    return None if text == "all" else [int(part) for part in text.split(",")]


def layers(text):
    return None if text == "all" else [int(p) if p.lstrip("-").isdigit() else p for p in text.split(",")]


def main():
    parser = argparse.ArgumentParser(prog="maskloom_capture.py", description=__doc__.splitlines()[0],
                                     epilog="Options of ours stand before the script.")  # fmt: skip
    parser.add_argument("--out", default="qkv.safetensors", help="the file to write (qkv.safetensors)")
    parser.add_argument("--layers", type=layers, help="numbers or parts of module names: 0,3 or blocks.3; all")
    parser.add_argument("--steps", type=numbers, default=[0], help="forward passes: 0,10 or all (0)")
    parser.add_argument("--heads", type=numbers, help="query heads: 0,1 or all")
    parser.add_argument("--dtype", choices=["bfloat16", "float16", "float32"], help="convert to this")
    parser.add_argument("--limit", type=float, default=LIMIT, help=f"most GiB kept in memory ({LIMIT:g})")
    parser.add_argument("--preview", action="store_true", help="list what would be captured and its size; write nothing")
    parser.add_argument("--only", help="class name of the model, where a pipeline runs several")
    parser.add_argument("script", help="the Python script to run")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="its arguments")
    given = parser.parse_args()
    sys.argv = [given.script, *given.args]
    sys.path[0] = os.path.dirname(os.path.abspath(given.script))
    # what the script will import must be there before it can be wrapped
    packages = ("transformers.modeling_utils", "diffusers.models.attention_dispatch", *dict.fromkeys(p[0] for p in PACKAGES))
    for package in packages:
        try:
            __import__(package)
        except Exception:
            pass
    __import__("torch.nn.attention.flex_attention")
    kept = capture(given.out, given.layers, given.steps, given.heads, given.dtype, given.only, given.limit, given.preview)
    try:
        with kept:
            runpy.run_path(given.script, run_name="__main__")
    except NothingCaptured as why:
        sys.exit(f"maskloom_capture: {why}")


if __name__ == "__main__":
    main()
