"""The measures of `maskloom quality --json` against PyTorch in float64, under the mask of an exported module.

    python lab.py EXPORTED.py JUDGED.json CAPTURE.safetensors
"""

import importlib.util
import json
import struct
import sys
from pathlib import Path

import torch

KINDS = {"F16": torch.float16, "BF16": torch.bfloat16, "F32": torch.float32}


def tensors(path):
    """All tensors of a safetensors file that have float elements, and its metadata."""
    data = Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    metadata = header.pop("__metadata__")
    found = {}
    for name, about in header.items():
        if about["dtype"] in KINDS:
            first, last = about["data_offsets"]
            raw = torch.frombuffer(bytearray(data[8 + size + first : 8 + size + last]), dtype=KINDS[about["dtype"]])
            found[name] = raw.reshape(about["shape"]).double()
    return found, metadata


def measures(p, mask, v):
    """Mass kept and the output's error of one head: p [q_len, kv_len] of full attention, mask likewise."""
    mass = (p * mask).sum(-1)
    kept = p * mask
    full, masked = p @ v, (kept / kept.sum(-1, keepdim=True).clamp_min(1e-300)) @ v
    apart = (full - masked).norm(dim=-1) / full.norm(dim=-1)
    rank = lambda share, n: max(-int(-share * n // 1), 1) - 1
    n = len(mass)
    return {
        "mean": mass.mean(),
        "p5": mass.sort().values[rank(0.05, n)],
        "min": mass.min(),
        "relative_l1": (full - masked).abs().sum() / full.abs().sum(),
        "rmse": (full - masked).square().mean().sqrt(),
        "cosine": (full * masked).sum() / (full.norm() * masked.norm()),
        "row_p99": apart.sort().values[rank(0.99, n)],
        "dropped": (full - mass[:, None] * masked).abs().sum() / full.abs().sum(),
        "renormalised": ((1 - mass)[:, None] * masked).abs().sum() / full.abs().sum(),
    }


def main(exported, judged, capture):
    spec = importlib.util.spec_from_file_location("lab", exported)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    mask = module.make_mask("cpu")
    call = json.loads(Path(judged).read_text())["calls"][0]
    found, metadata = tensors(capture)
    about = json.loads(metadata["maskloom"])[call["call"]]
    assert about["is_causal"] and about["captured_heads"], about
    checked = 0
    for head in call["heads"]:
        at = about["captured_heads"].index(head["head"])
        q, k, v = (found[f"{call['call']}.{letter}"][0, at] for letter in "qkv")
        scores = q @ k.T / about["head_dim"] ** 0.5
        future = torch.ones_like(scores, dtype=torch.bool).triu(1)
        p = scores.masked_fill(future, -torch.inf).softmax(-1)
        reported = head["measures"]["mass"] | head["measures"]["error"]
        for name, wanted in measures(p, mask[0, head["head"] % mask.shape[1]], v).items():
            assert abs(reported[name] - wanted) < 2e-5, (head["head"], name, reported[name], float(wanted))
            checked += 1
    assert checked == 9 * len(call["heads"]) > 0
    print("all measures agree")


if __name__ == "__main__":
    main(*sys.argv[1:])
