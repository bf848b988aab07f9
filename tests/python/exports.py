"""Designs over 80 tokens, exported where they are needed, and what checks of them share.

The program is the script's first argument, the folder to work in its second.
"""

import contextlib
import importlib
import io
import logging
import os
import subprocess
import sys

import masks
from matrix import sdpa_by_hand, step

MASKLOOM, WORK = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
CLOSE = 2e-5
SHAPE = ["--heads", "2", "--kv-heads", "2"]
WINDOW = "def mask_mod(b, h, q_idx, kv_idx):\n    return (q_idx - kv_idx < {0}) & (kv_idx - q_idx < {0})\n"
GRID = "def mask_mod(b, h, q_idx, kv_idx):\n    return abs(q_idx // {0} % {1} - kv_idx // {0} % {1}) < 1\n"
CODE = {
    "near": WINDOW.format(6),
    "far": "def mask_mod(b, h, q_idx, kv_idx):\n    return abs(q_idx - kv_idx) > 20\n",
    "wide": GRID.format(8, 2),
    "tall": GRID.format(2, 8),
    "rows": "W = 10\ndef mask_mod(b, h, q_idx, kv_idx):\n    return abs(q_idx // W - kv_idx // W) < 2\n",
    "heads": "def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx - kv_idx < 8 + 30 * h\n",
    "each": "def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx - kv_idx < 8 + 30 * b\n",
    "leaning": "def score_mod(score, b, h, q_idx, kv_idx):\n    return score - 0.1 * abs(q_idx - kv_idx)\n",
    "sinks": "def mask_mod(b, h, q_idx, kv_idx):\n    return (q_idx >= kv_idx) & ((q_idx - kv_idx < 12) | (kv_idx < 4))\n",
    "table": (
        "import torch\ndoc = torch.arange(80) // 11\n"
        "def mask_mod(b, h, q_idx, kv_idx):\n    return (doc[q_idx] == doc[kv_idx]) & (q_idx >= kv_idx)\n"
    ),
    "behind": "def mask_mod(b, h, q_idx, kv_idx):\n    return (kv_idx + 8 <= q_idx) & (q_idx < kv_idx + 30)\n",
    "biased": (
        "import torch\nbias = torch.linspace(-2, 1, 80)\ndef mask_mod(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n"
        "def score_mod(score, b, h, q_idx, kv_idx):\n    return score + bias[abs(q_idx - kv_idx)]\n"
    ),
    "cross": "def mask_mod(b, h, q_idx, kv_idx):\n    return (q_idx + kv_idx) % 3 > 0\n",
}
AXES = {"wide": "video 5x2x8", "tall": "video 5x8x2"}
MORE = {"cross": ["--kv-seq", "12"], "each": ["--batch", "2"]}
_made = {}


def export(name):
    """(folder, module) of a design over 80 tokens."""
    if name not in _made:
        folder = os.path.join(WORK, name)
        if not os.path.isdir(folder):
            os.makedirs(WORK, exist_ok=True)
            file = os.path.join(WORK, f"{name}.py")
            with open(file, "w") as out:
                out.write(CODE[name])
            size = ["--axes", AXES[name]] if name in AXES else ["--seq", "80"]
            size += [*SHAPE, "--head-dim", "64", *MORE.get(name, [])]
            command = [MASKLOOM, "export", file, *size, "--name", f"d_{name}", "--to", folder]
            ran = subprocess.run(command, capture_output=True, text=True)
            assert ran.returncode == 0, ran.stderr
        sys.path.insert(0, folder)
        _made[name] = folder, importlib.import_module(f"d_{name}")
    return _made[name]


def preset(name, *args):
    """(folder, module) of a preset, exported under a name with these arguments."""
    if name not in _made:
        folder = os.path.join(WORK, name)
        if not os.path.isdir(folder):
            os.makedirs(WORK, exist_ok=True)
            ran = subprocess.run(
                [MASKLOOM, "export", *args, *SHAPE, "--name", f"d_{name}", "--to", folder], capture_output=True, text=True
            )
            assert ran.returncode == 0, ran.stderr
        sys.path.insert(0, folder)
        _made[name] = folder, importlib.import_module(f"d_{name}")
    return _made[name]


def adapter(name, library="diffusers"):
    if name not in _made:
        export(name)
    return importlib.import_module(f"d_{name}_{library}")


def mask(name):
    """The mask of the user's own text, which no export made."""
    batch, heads = (2 if word in CODE[name].split("return")[1] else 1 for word in ("* b", "* h"))
    return masks.of_text(CODE[name], (80, int(MORE[name][1]) if name == "cross" else 80), batch, heads)


def by_hand(model, inputs, chosen, name):
    with sdpa_by_hand(model, chosen, mask(name)):
        return step(model, inputs)[0]


@contextlib.contextmanager
def lines():
    """What is said meanwhile."""
    out, log = io.StringIO(), logging.getLogger("maskloom")
    handler = logging.StreamHandler(out)
    log.addHandler(handler)
    try:
        yield out
    finally:
        log.removeHandler(handler)


def refused(call, word):
    try:
        call()
    except (RuntimeError, ValueError) as error:
        assert word in str(error), error
        return
    raise AssertionError(f"not refused: {word}")
