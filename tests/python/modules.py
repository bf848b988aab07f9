"""Runs exported modules with PyTorch: every folder of the one given holds NAME.py, NAME_case.safetensors, NAME_blocks.safetensors.

The case has q, k and v, and some rows (b, h, q) with the output and lse that they must have. The module's own block mask must
be the exported one.
"""

import importlib.util
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch.nn.attention.flex_attention import flex_attention


def blocks(mask):
    """Block numbers of each row, partial and full apart: what stands behind the counts means nothing."""
    found = []
    for counts, indices in ((mask.kv_num_blocks, mask.kv_indices), (mask.full_kv_num_blocks, mask.full_kv_indices)):
        if counts is None:
            found.append(None)
            continue
        rows = zip(counts.flatten().tolist(), indices.flatten(0, -2).tolist())
        found.append([sorted(row[:n]) for n, row in rows])
    return found


failed = 0
for folder in sorted(Path(sys.argv[1]).iterdir()):
    name = folder.name
    try:
        spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        # as an import would: PyTorch's compiler looks modules up by name
        sys.modules[name] = module
        spec.loader.exec_module(module)
        case = load_file(folder / f"{name}_case.safetensors")
        q, k, v = case["q"], case["k"], case["v"]
        with torch.no_grad():
            out = module.attend(q, k, v, compiled=False)
        b, h, row = case["rows"].unbind(1)
        off = (out[b, h, row] - case["out"]).abs().max().item()
        assert off < 1e-4, f"the output is off by {off}"
        lists = folder / f"{name}_blocks.safetensors"
        same = "no mask"
        if lists.exists():
            made = module.make_block_mask("cpu")
            assert blocks(made) == blocks(module.load_block_mask(lists, "cpu")), "block lists differ"
            same = f"sparsity {made.sparsity():.1f}%"
        print(f"{name}: {tuple(q.shape)} x {k.shape[2]}, off by {off:.1e}, {same}", flush=True)
    except Exception as error:
        failed += 1
        print(f"FAILED {name}: {type(error).__name__}: {error}", flush=True)
sys.exit(failed > 0)
