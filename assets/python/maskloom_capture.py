"""Dumps q, k and v of chosen layers, steps and heads from a running PyTorch model into a safetensors file for Maskloom.

In a program:

    from maskloom_capture import capture
    with capture("qkv.safetensors", layers=[0, 3], steps=[0]):
        pipe(prompt)                     # or model(**inputs), model.generate(...)

From a shell, around a script that stays as it is (options stand before the script):

    python maskloom_capture.py --out qkv.safetensors --layers 0,3 --steps 0 script.py its arguments

Then:

    maskloom run PRESET --inputs qkv.safetensors --names blocks.3.attn.step0.q,blocks.3.attn.step0.k,blocks.3.attn.step0.v

Tensors are named MODULE.stepN.q, .k, .v and stored as [batch, heads, tokens, head_dim]. A layer is an attention call:
a number counts the calls of one forward pass, a text is a part of the module's name. A step is a forward pass of the
outermost module, counted from 0 for each model (a pipeline with guidance may make two passes a denoising step).

Sees scaled_dot_product_attention, flex_attention, transformers' attention functions and diffusers' dispatcher; not
attention inside a model that was compiled as a whole (run it without torch.compile), and not kernels called directly.
Needs torch; transformers and diffusers only if the model does.
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


def capture(path, layers=None, steps=(0,), heads=None, dtype=None, only=None):
    """A context manager that writes `path` when it ends.

    layers: numbers and parts of module names, None for all. steps: numbers, None for all. heads: query heads, None for
    all. dtype: "bfloat16", "float16", "float32" or None to keep the model's. only: class name of the outermost module,
    where a pipeline runs several models.
    """
    return Capture(path, layers, steps, heads, dtype, only)


class Pass:
    """One forward pass of an outermost module."""

    def __init__(self, root, step):
        self.root, self.step, self.calls = root, step, 0
        self.names = {id(module): name for name, module in root.named_modules()}


class Capture:
    """What `capture` returns; afterwards `tensors` and `details` hold what was seen."""

    def __init__(self, path, layers=None, steps=(0,), heads=None, dtype=None, only=None):
        self.path = os.fspath(path)
        self.layers = None if layers is None else list(layers)
        self.steps = None if steps is None else set(steps)
        self.heads = None if heads is None else list(heads)
        self.dtype = getattr(torch, dtype) if isinstance(dtype, str) else dtype
        self.only = only
        self.tensors, self.details, self.skipped = {}, {}, 0
        self._undo, self._stack, self._pass, self._steps, self._inside = [], [], None, {}, False

    def __enter__(self):
        try:
            self._patch_modules()
            self._patch_functions()
            self._patch_transformers()
        except BaseException:
            self._restore()
            raise
        return self

    def __exit__(self, kind, error, trace):
        self._restore()
        if self.tensors:
            write(self.path, self.tensors, {"layout": "bhsd", "maskloom": json.dumps(self.details)})
            print(f"captured {len(self.tensors) // 3} attention calls to {self.path}", file=sys.stderr)
            first = next(iter(self.tensors))[: -len(".q")]
            names = ",".join(f"{first}.{n}" for n in "qkv")
            print(f"try: maskloom run PRESET --inputs {self.path} --names {names}", file=sys.stderr)
        elif kind is None:
            raise RuntimeError(self._nothing())
        return False

    def _nothing(self):
        if self.skipped:
            return f"{self.skipped} attention calls were seen, none of them chosen by layers, steps, heads and only"
        return "no attention call was seen: is the model compiled as a whole, or does it call its own kernels?"

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
            self._wrap(dispatcher.dispatch_attention_fn, "diffusers", tokens_first=True)

    def _wrap(self, original, source, tokens_first=False):
        @functools.wraps(original)
        def attention(query, key, value, *args, **kwargs):
            if tokens_first:
                seen = [t.transpose(1, 2) for t in (query, key, value)]
            else:
                seen = [query, key, value]
            return self._around(seen, source, kwargs, lambda: original(query, key, value, *args, **kwargs))

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
        self.details[key] = info
        for letter, tensor in zip("qkv", (q, k, v)):
            tensor = tensor.detach().to(dtype=self.dtype or tensor.dtype, copy=True)
            self.tensors[f"{key}.{letter}"] = tensor.cpu().contiguous()

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
        if f"{key}.q" in self.tensors and root:
            key = key if self.details[key]["model"] == root else f"{root}.{key}"
        free, n = key, 1
        while f"{free}.q" in self.tensors:
            n += 1
            free = f"{key}.call{n}"
        return free


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
    parser.add_argument("--only", help="class name of the model, where a pipeline runs several")
    parser.add_argument("script", help="the Python script to run")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="its arguments")
    given = parser.parse_args()
    sys.argv = [given.script, *given.args]
    sys.path[0] = os.path.dirname(os.path.abspath(given.script))
    # what the script will import must be there before it can be wrapped
    for package in ("transformers.modeling_utils", "diffusers.models.attention_dispatch"):
        try:
            __import__(package)
        except Exception:
            pass
    __import__("torch.nn.attention.flex_attention")
    with capture(given.out, given.layers, given.steps, given.heads, given.dtype, given.only):
        runpy.run_path(given.script, run_name="__main__")


if __name__ == "__main__":
    main()
