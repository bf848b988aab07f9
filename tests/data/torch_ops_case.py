"""A case of torch_ops.json: statements, run by PyTorch, and what their `r` is in JSON."""

import base64
import json
import math
import pathlib

import torch

CASES = []


def encode(value):
    if isinstance(value, torch.Tensor):
        # empty results of views have strides that no other type can look through
        t = value.contiguous() if value.numel() else torch.empty(value.shape, dtype=value.dtype)
        raw = t.view(torch.uint8) if t.dim() else t.reshape(1).view(torch.uint8)
        data = bytes(raw.flatten().tolist())
        out = {"dtype": str(t.dtype)[6:], "shape": list(t.shape)}
        if len(data) > 1200:
            digest = 0xCBF29CE484222325
            for byte in data:
                digest = ((digest ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
            return {**out, "fnv": f"{digest:016x}"}
        return {**out, "data": base64.b64encode(data).decode()}
    if isinstance(value, torch.dtype):
        return {"text": str(value)}
    if isinstance(value, float):
        return {"float": value if math.isfinite(value) else str(value)}
    if isinstance(value, (bool, int, str)) or value is None:
        return {"value": value}
    return {"items": [encode(item) for item in value]}


def case(code, exact=False):
    scope = {"torch": torch, "math": math, "F": torch.nn.functional}
    try:
        exec(code if "r =" in code else "r = " + code, scope)
        want = encode(scope["r"])
    except Exception as error:
        want = {"error": type(error).__name__}
    CASES.append({"code": code, **({"exact": True} if exact else {}), "want": want})


def cases(text):
    for line in text.strip().splitlines():
        if line.strip():
            case(line.strip())


DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
MANY = "torch.tensor([-3, -1, 0, 2, 5])"
A = "a = torch.arange(24).view(2, 3, 4); "
M = "m = torch.tensor([[3, -1, 4], [1, 5, -9]]); "
X = "x = torch.tensor([[0.5, -1.25, 3.0], [2.0, float('nan'), -0.0]]); "
