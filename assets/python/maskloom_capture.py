# SPDX-License-Identifier: MIT
"""Captures attention from a running PyTorch model into a safetensors file for Maskloom: q, k, v of chosen layers,
steps and heads, and exact statistics of all heads, which fit on a disk even if q, k, v do not.

In a program:

    from maskloom_capture import capture
    with capture("qkv.safetensors", layers=[0, 3], steps=[0], block_size=128) as kept:
        pipe(prompt)                     # or model(**inputs), model.generate(...)
        kept.tokens(tokenizer.convert_ids_to_tokens(ids))    # texts for Maskloom's rulers; start= is the first index
        kept.next_prompt("another")      # further passes belong to another prompt
        pipe(another)

From a shell, with an unchanged script (options precede the script):

    python maskloom_capture.py --out qkv.safetensors --layers 0,3 --steps 0 --block-size 128 script.py its arguments

Then:

    maskloom run PRESET --inputs qkv.safetensors --names blocks.3.attn.step0.q,blocks.3.attn.step0.k,blocks.3.attn.step0.v

A call of attention is named MODULE.stepN, or MODULE.stepN.promptP beyond the first prompt. Its tensors are .q, .k, .v as
[batch, heads, tokens, head_dim], .mask (the model's own, [batch or 1, heads or 1, q_len, kv_len]; bool keeps, float is
added), and .sinks. A layer is an attention call: a number is its index in a forward pass, a text is a part of the
module's name. A step is a forward pass of the outermost module, counted from 0 per model and prompt (a pipeline with
guidance may run two passes per denoising step). Each call of a diffusers pipeline or of `generate` starts a prompt.

`--block-size` adds exact statistics of every head of a call, under the model's own mask, in strips of rows:
.mass, the mean over a query block's rows of the attention mass in each key block, 8 bits on a log scale; .lse, .max and
.entropy of each row; .columns, the mass at each key; .distance, the mass by q_idx - kv_idx; with `--axes` .offsets, the mass
by offset along each axis. `--heads none` keeps only these statistics. The file's metadata describes the tensors.

It captures scaled_dot_product_attention, flex_attention, transformers' attention functions, diffusers' dispatcher, and the
functions of flash-attn, xFormers and SageAttention, also if the program imports them later. During a capture compiled models
run uncompiled (PyTorch 2.6 and newer). A layer that gradient checkpointing runs again is captured once. Tensors are written at
once. `--preview` lists the calls with their sizes and captures nothing. Calls beyond `--limit`, or beyond the free disk space,
are skipped with a message. Of several processes the first captures; with `--all-ranks` all do, each into its own file. Only
torch is required; others only if the model needs them. The folder maskloom_capturing must be next to this file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import runpy
import shutil
import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from maskloom_capturing import statistics as exact
from maskloom_capturing.calls import Scores, Seen, mask_table, mask_words
from maskloom_capturing.file import Growing, raw
from maskloom_capturing.hooks import Hooks
from torch import Tensor

__all__ = ["Capture", "capture"]

Info = dict[str, Any]
# the name, the tensor, and the dtype to store it in or None
Part = tuple[str, Tensor, torch.dtype | None]

VERSION = 2
LIMIT = 16.0
# bytes of the disk that must stay free
SPARE = 1 << 30
# the prefixes that wrappers add to modules' names
WRAPPERS = ("_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.")


def capture(path: str | os.PathLike[str], **options: Any) -> Capture:
    """A context manager that captures into `path` until it exits. The options are those of `Capture`."""
    return Capture(path, **options)


class NothingCaptured(RuntimeError):
    """No attention call was captured: none ran, or none was chosen."""


class Pass:
    """One forward pass of an outermost module."""

    def __init__(self, root: torch.nn.Module, step: int) -> None:
        self.root, self.step, self.calls, self.kept, self.bytes = root, step, 0, 0, 0
        self.names = {id(module): name for name, module in root.named_modules()}


def unwrapped(module: torch.nn.Module) -> torch.nn.Module:
    """The model inside torch.compile's and data parallel's wrappers."""
    kinds = ("OptimizedModule", "DistributedDataParallel", "DataParallel", "FullyShardedDataParallel")
    while type(module).__name__ in kinds:
        inner = getattr(module, "_orig_mod", None) or getattr(module, "module", None)
        if not isinstance(inner, torch.nn.Module):
            break
        module = inner
    return module


class Capture:
    """The result of `capture`; afterwards `details` describes each call and `tensors` lists the names in the file."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        layers: Iterable[int | str] | None = None,
        steps: Iterable[int] | None = (0,),
        heads: Iterable[int] | None = None,
        dtype: str | torch.dtype | None = None,
        only: str | None = None,
        limit: float = LIMIT,
        preview: bool = False,
        prompts: Iterable[int] | None = (0,),
        block_size: int | tuple[int, int] | None = None,
        axes: exact.Axes | dict[str, int] | None = None,
        mass: str = "uint8",
        all_ranks: bool = False,
    ) -> None:
        """layers: numbers and parts of module names, None for all. steps, prompts: numbers, None for all. heads: query heads
        whose q, k, v are kept, None for all, () for none. dtype: "bfloat16", "float16", "float32" or None for the model's. only:
        class name of the outermost module, if a pipeline runs several models. limit: largest GiB of the file; later calls are
        skipped with a message. preview: only list the calls. block_size: BLOCK_SIZE of the statistics, one number or
        (q, kv); None: no statistics. axes: the grid of the tokens, as {"t": 5, "h": 8, "w": 8, "start": 16}. mass: "uint8" or
        "float32". all_ranks: every process of a group captures, into its own file.
        """
        self.path = os.fspath(path)
        self.layers = None if layers is None else list(layers)
        self.steps, self.prompts = (None if chosen is None else set(chosen) for chosen in (steps, prompts))
        self.heads = None if heads is None else list(heads)
        self.dtype = getattr(torch, dtype) if isinstance(dtype, str) else dtype
        self.only, self.limit, self.preview, self.all_ranks = only, limit, preview, all_ranks
        self.block = (block_size, block_size) if isinstance(block_size, int) else block_size
        self.axes = grid(axes) if isinstance(axes, dict) else axes
        self.mass = mass
        self.details: dict[str, dict[str, Any]] = {}
        self.tensors: dict[str, tuple[str, list[int]]] = {}
        self.bytes, self.skipped, self.left_out, self.room = 0, 0, 0, math.inf
        self.names, self.prompt, self.bad_rows = ["0"], 0, 0
        self.texts: list[dict[str, Any]] = []
        self._file: Growing | None = None
        # the tensors with masks, by their contents, and by the mask objects of a pass
        self._masks: dict[str, str] = {}
        self._seen: dict[int, tuple[weakref.ref[Any], str]] = {}
        self._stack: list[torch.nn.Module] = []
        self._pass: Pass | None = None
        self._steps: dict[int | None, int] = {}
        self._inside, self._told = False, False
        self._hooks = Hooks(self._around, self._module, self._begins_prompt)

    def __enter__(self) -> Capture:
        self._hooks.put()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._hooks.remove()
        if self.preview and self.details:
            self._list()
        elif self._file is not None:
            self._file.finish(self._metadata(None if kind is None or kind is SystemExit else f"{kind.__name__}: {error}"))
            self.path = self._file.path
            self._tell()
        elif kind is None and not self._silent():
            raise NothingCaptured(self._nothing())

    def next_prompt(self, name: str | None = None) -> None:
        """Starts another prompt: the steps of later passes count from 0 again."""
        if self._steps:
            self.prompt += 1
            self.names.append(str(self.prompt))
            self._steps = {}
        if name is not None:
            self.names[-1] = name

    def tokens(self, texts: Iterable[str], start: int = 0, side: str | None = None) -> None:
        """Texts of the present prompt's tokens, from index `start`. side: "q" or "kv" if they belong to only one of both."""
        if side not in (None, "q", "kv"):
            raise ValueError(f"side {side!r}: queries are 'q', keys 'kv', and both None")
        self.texts.append({"prompt": self.prompt, "start": start, "side": side, "text": [str(text) for text in texts]})

    # ---- messages

    def _tell(self) -> None:
        stored = sum(info["qkv"] for info in self.details.values())
        what = f"{len(self.details)} attention calls" + (f", {stored} of them with q, k, v," if self.block else "")
        print(f"captured {what} to {self.path}, {self.bytes / 2**30:.2f} GiB", file=sys.stderr)
        if self.left_out:
            why = "room on the disk" if self.room < math.inf else f"limit of {self.limit:g} GiB"
            hint = "choose layers, steps or heads, or a larger limit"
            print(f"left out {self.left_out} calls beyond the {why}: {hint}", file=sys.stderr)
        if self.bad_rows:
            print(f"{self.bad_rows} rows have scores of NaN or infinity; their mass counts as 0", file=sys.stderr)
        first = next((key for key, info in self.details.items() if info["qkv"]), None)
        if first is not None:
            names = ",".join(f"{first}.{n}" for n in "qkv")
            print(f"try: maskloom run PRESET --inputs {self.path} --names {names}", file=sys.stderr)

    def _list(self) -> None:
        """One line for each call to capture."""
        for key, info in self.details.items():
            shape = f"{info['heads']} heads, {info['q_len']} x {info['kv_len']} tokens of {info['head_dim']}"
            where = f"layer {info['layer']} of {info['model']}"
            print(f"{key}: {where}, {shape}, mask {info['mask']}, {info['bytes'] / 2**20:.1f} MiB")
        print(f"{len(self.details)} calls, {self.bytes / 2**30:.2f} GiB: nothing was written")

    def _tell_size(self, done: Pass) -> None:
        """After the first pass with chosen calls: the size of each pass, and of all chosen passes."""
        self._told = True
        passes = [None if chosen is None else len(chosen) for chosen in (self.steps, self.prompts)]
        size = f"{done.bytes / 2**20:.1f} MiB a pass ({done.kept} calls)"
        if None not in passes and math.prod(n for n in passes if n) > 1:
            total = done.bytes * math.prod(n for n in passes if n)
            size += f", {passes[0]} steps of {passes[1]} prompts: {total / 2**30:.2f} GiB"
        free = shutil.disk_usage(os.path.dirname(os.path.abspath(self.path))).free
        print(f"capture: {size}; limit {self.limit:g} GiB, {free / 2**30:.0f} GiB of the disk are free", file=sys.stderr)

    def _nothing(self) -> str:
        if self.left_out:
            why = "the room on the disk" if self.room < math.inf else f"the limit of {self.limit:g} GiB"
            return f"the first call is beyond {why}: choose heads, or a larger limit"
        if self.skipped:
            return f"{self.skipped} attention calls ran, and layers, steps, prompts, heads and only chose none of them"
        return "no attention call was captured: does the model call its own kernels?"

    # ---- passes

    def _module(self, call: Callable[[], Any], module: torch.nn.Module) -> Any:
        """A module's call: the outermost one is a pass."""
        outermost = not self._stack
        if outermost:
            model = unwrapped(module)
            step = self._steps.get(id(model), 0)
            self._steps[id(model)] = step + 1
            self._pass = Pass(model, step)
        self._stack.append(module)
        try:
            return call()
        finally:
            self._stack.pop()
            if outermost:
                self._end_pass()

    def _end_pass(self) -> None:
        done, self._pass = self._pass, None
        if done is not None and done.kept and not self._told and not self.preview:
            self._tell_size(done)
        # the next pass makes its own
        self._seen = {}
        if self._file is not None and self._file.due():
            self._file.checkpoint(self._metadata("it still runs"))

    def _begins_prompt(self) -> None:
        if not self._stack:
            self.next_prompt()

    # ---- captured calls

    def _around(self, read: Callable[[], Seen], source: str, call: Callable[[], Any]) -> Any:
        """Captures the arguments of the outermost of nested attention functions, then makes the call."""
        if self._inside:
            return call()
        self._inside = True
        try:
            qkv, details = read()
            self._see(qkv, details, source)
            return call()
        finally:
            self._inside = False

    def _see(self, qkv: list[Any], details: Info, source: str) -> None:
        if torch._C._current_graph_task_id() != -1 or self._silent():
            # gradient checkpointing runs a layer again in the backward pass
            return
        number, step, name, root = self._place()
        tensors = all(isinstance(t, Tensor) and t.dim() in (3, 4) for t in qkv)
        if not tensors or not self._chosen(number, step, name, root):
            self.skipped += 1
            return
        q, k, v = (t.detach().unsqueeze(0) if t.dim() == 3 else t.detach() for t in qkv)
        chosen = None if self.heads is None else [h for h in self.heads if h < q.shape[1]]
        if chosen == [] and self.block is None:
            self.skipped += 1
            return
        later = f".prompt{self.prompt}" if self.prompt else ""
        key = self._free_name(f"{name}.step{step}{later}", root)
        info = {"source": source, "layer": number, "model": root, "name": name, "step": step, "prompt": self.prompt,
                "batch": q.shape[0], "heads": q.shape[1], "kv_heads": k.shape[1], "q_len": q.shape[2], "kv_len": k.shape[2],
                "head_dim": q.shape[3], "dtype": str(q.dtype).removeprefix("torch."), "scale": details.get("scale"),
                "is_causal": bool(details.get("is_causal")), "mask": mask_words(details), "qkv": chosen != [],
                "mod": details.get("score_mod") is not None, "statistics": None}  # fmt: skip
        if isinstance(details.get("softcap"), float):
            info["softcap"] = details["softcap"]
        if chosen:
            info["captured_heads"] = chosen
        self._keep(key, info, self._parts(key, info, details, (q, k, v)), Scores.of(q, k, details) if self.block else None)

    def _parts(self, key: str, info: Info, details: Info, qkv: Sequence[Tensor]) -> list[Part]:
        """(name, tensor, dtype) of a call's tensors other than statistics."""
        heads, chosen = info["heads"], info.get("captured_heads")
        parts: list[Part] = []
        if info["qkv"]:
            group = max(1, heads // info["kv_heads"])
            of = [chosen, [h // group for h in chosen], [h // group for h in chosen]] if chosen else [slice(None)] * 3
            parts = [(f"{key}.{x}", t[:, h], self.dtype) for x, t, h in zip("qkv", qkv, of, strict=True)]
            mask = mask_table(details, info["q_len"], info["kv_len"])
            if mask is not None:
                table = mask[1] if chosen is None or mask[1].shape[1] == 1 else mask[1][:, chosen]
                info["mask_tensor"] = self._same_mask(mask[0], table, f"{key}.mask")
                if info["mask_tensor"] == f"{key}.mask":
                    parts.append((f"{key}.mask", table, None))
        sinks = details.get("sinks")
        if isinstance(sinks, Tensor) and sinks.numel() == heads:
            parts.append((f"{key}.sinks", sinks if chosen is None else sinks[chosen], None))
        return parts

    def _same_mask(self, mask: Any, table: Tensor, name: str) -> str:
        """The name of the tensor with this mask; layers of a pass, and steps with an equal mask, share one tensor."""
        seen, found = self._seen.get(id(mask), (None, None))
        # a model that makes each layer's mask anew gives another one the number of one that is gone
        if found is None or seen is None or seen() is not mask:
            small = table.detach().cpu().contiguous()
            text = f"{small.dtype}{list(small.shape)}".encode()
            digest = hashlib.blake2b(raw(small), key=text[:64]).hexdigest()
            found = self._masks.setdefault(digest, name)
            self._seen[id(mask)] = (weakref.ref(mask), found)
        return found

    def _keep(self, key: str, info: Info, parts: list[Part], scores: Scores | None) -> None:
        size = sum(tensor.numel() * (dtype or tensor.dtype).itemsize for _, tensor, dtype in parts)
        if scores is not None and self.block is not None:
            size += exact.sizes(scores.q.shape, info["kv_len"], self.block, self.axes, 4 if self.mass == "float32" else 1)
        info["bytes"] = size
        if not self.preview and (self.bytes + size > self.limit * 2**30 or not self._disk_has(size)):
            self.left_out += 1
            self._masks = {k: name for k, name in self._masks.items() if not name.startswith(f"{key}.")}
            self._seen = {k: seen for k, seen in self._seen.items() if not seen[1].startswith(f"{key}.")}
            return
        self.bytes += size
        self.details[key] = info
        if self._pass is not None:
            self._pass.kept += 1
            self._pass.bytes += size
        if self.preview:
            return
        for name, tensor, dtype in parts:
            self._add(name, tensor.detach().to(dtype=dtype or tensor.dtype))
        if scores is not None:
            self._statistics(key, info, scores)

    def _statistics(self, key: str, info: Info, scores: Scores) -> None:
        assert self.block is not None
        made, bad = exact.statistics(scores, self.block, self.axes)
        self.bad_rows += bad
        if self.mass == "uint8":
            made["mass"] = exact.encoded(made["mass"])
        shared = f"edges.{info['q_len']}x{info['kv_len']}"
        if shared not in self.tensors:
            self._add(shared, torch.tensor(exact.edges(info["q_len"], info["kv_len"]), dtype=torch.int32))
        for name, tensor in made.items():
            self._add(f"{key}.{name}", tensor)
        info["statistics"] = {name: f"{key}.{name}" for name in made} | {"distance_edges": shared, "own_mask": scores.own_mask}
        info["statistics"]["bad_rows"] = bad
        info["statistics"].setdefault("offsets", None)
        if self.axes is not None and "offsets" in made:
            info["statistics"]["offsets_signed"] = self.axes.signed()

    def _add(self, name: str, tensor: Tensor) -> None:
        if self._file is None:
            rank, _ = group()
            stem, ending = os.path.splitext(self.path)
            self._file = Growing(f"{stem}.rank{rank}{ending}" if rank else self.path)
        self._file.add(name, tensor)
        self.tensors[name] = (str(tensor.dtype).removeprefix("torch."), list(tensor.shape))

    def _disk_has(self, size: int) -> bool:
        free = shutil.disk_usage(os.path.dirname(os.path.abspath(self.path))).free
        if free - size >= SPARE:
            return True
        self.room = free
        return False

    def _metadata(self, stopped: str | None) -> dict[str, str]:
        rank, world = group()
        axes = self.axes and {"names": self.axes.names, "extents": self.axes.extents, "start": self.axes.start}
        whole = {"version": VERSION, "complete": stopped is None, "stopped": stopped, "calls": len(self.details),
                 "tensors": len(self.tensors), "block_size": self.block, "mass_log2_step": exact.STEP, "axes": axes,
                 "prompts": self.names, "tokens": self.texts, "left_out": self.left_out, "rank": rank, "world_size": world,
                 "torch": torch.__version__}  # fmt: skip
        return {"layout": "bhsd", "maskloom": json.dumps(self.details), "maskloom_capture": json.dumps(whole)}

    def _silent(self) -> bool:
        return group()[0] > 0 and not self.all_ranks

    def _place(self) -> tuple[int, int, str, str]:
        """(number of the call, step, module's name, model's class)."""
        if self._pass is None:
            number = self._steps.get(None, 0)
            self._steps[None] = number + 1
            return number, 0, f"attention.{number}", ""
        number, self._pass.calls = self._pass.calls, self._pass.calls + 1
        named = (self._pass.names.get(id(module)) for module in reversed(self._stack))
        name = next((n for n in named if n), None) or f"attention.{number}"
        for wrapper in WRAPPERS:
            name = name.replace(wrapper, "")
        return number, self._pass.step, name, type(self._pass.root).__name__

    def _chosen(self, number: int, step: int, name: str, root: str) -> bool:
        layer = self.layers is None or any(number == x if isinstance(x, int) else x in name for x in self.layers)
        when = (self.steps is None or step in self.steps) and (self.prompts is None or self.prompt in self.prompts)
        return layer and when and (self.only is None or root == self.only)

    def _free_name(self, key: str, root: str) -> str:
        """A free name: a module may call attention twice in a pass, and two models may have the same names."""
        if key in self.details and root:
            key = key if self.details[key]["model"] == root else f"{root}.{key}"
        free, n = key, 1
        while free in self.details:
            n += 1
            free = f"{key}.call{n}"
        return free


def group() -> tuple[int, int]:
    """(this process, processes) of a distributed run."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


def grid(given: dict[str, int]) -> exact.Axes:
    """{"t": 5, "h": 8, "w": 8, "start": 16}, where start is the index of the grid's first token."""
    extents = {name: extent for name, extent in given.items() if name != "start"}
    if not extents or min(extents.values()) < 1:
        raise ValueError(f"axes {given}: every axis needs an extent of 1 or more, as t=5,h=8,w=8,start=16")
    return exact.Axes(tuple(extents), tuple(extents.values()), given.get("start", 0))


def numbers(text: str) -> list[int] | None:
    if text == "none":
        return []
    return None if text == "all" else [int(part) for part in text.split(",")]


def layers(text: str) -> list[int | str] | None:
    return None if text == "all" else [int(p) if p.lstrip("-").isdigit() else p for p in text.split(",")]


def block(text: str) -> tuple[int, int]:
    q, _, kv = text.partition("x")
    sizes = int(q), int(kv or q)
    if min(sizes) < 1:
        raise ValueError(text)
    return sizes


def axes(text: str) -> exact.Axes:
    return grid({name: int(extent) for name, extent in (part.split("=") for part in text.split(","))})


def parser() -> argparse.ArgumentParser:
    assert __doc__
    made = argparse.ArgumentParser(prog="maskloom_capture.py", description=" ".join(__doc__.split("\n\n")[0].split()),
                                   epilog="The options of maskloom_capture.py precede the script.")  # fmt: skip
    made.add_argument("--out", default="qkv.safetensors", help="the file to write (qkv.safetensors)")
    made.add_argument("--layers", type=layers, help="numbers or parts of module names: 0,3 or blocks.3; all")
    made.add_argument("--steps", type=numbers, default=[0], help="forward passes: 0,10 or all (0)")
    made.add_argument("--prompts", type=numbers, default=[0], help="prompts: 0,1 or all (0)")
    made.add_argument("--heads", type=numbers, help="query heads whose q, k, v are kept: 0,1 or all or none")
    made.add_argument("--dtype", choices=["bfloat16", "float16", "float32"], help="convert q, k, v to this")
    made.add_argument("--block-size", type=block, help="compute statistics at this BLOCK_SIZE: 128 or 128x64")
    made.add_argument("--axes", type=axes, help="the grid of the tokens: t=5,h=8,w=8,start=16")
    made.add_argument("--mass", choices=["uint8", "float32"], default="uint8", help="how block masses are stored (uint8)")
    made.add_argument("--limit", type=float, default=LIMIT, help=f"largest GiB of the file ({LIMIT:g})")
    made.add_argument("--preview", action="store_true", help="list the calls and their sizes; write nothing")
    made.add_argument("--only", help="class name of the model, if a pipeline runs several")
    made.add_argument("--all-ranks", action="store_true", help="every process of a group captures, into its own file")
    made.add_argument("script", help="the Python script to run")
    made.add_argument("args", nargs=argparse.REMAINDER, help="its arguments")
    return made


def main() -> None:
    given = vars(parser().parse_args())
    script = given.pop("script")
    sys.argv = [script, *given.pop("args")]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    try:
        with capture(given.pop("out"), **given):
            runpy.run_path(script, run_name="__main__")
    except NothingCaptured as why:
        sys.exit(f"maskloom_capture: {why}")


if __name__ == "__main__":
    main()
