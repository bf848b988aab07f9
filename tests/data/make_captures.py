"""Trains three tiny transformers for some minutes on a cpu and writes what they attend with into captures/*.safetensors.

    python make_captures.py [lm] [video] [encoder] [--minutes N]

lm: a causal language model on the bytes of Python's standard library. video: a diffusion transformer over frames x rows x
columns with 8 tokens of text before them, on scikit-learn's digits that move. encoder: bytes of the library's docstrings, a
part of which is hidden. Needs torch; `video` needs scikit-learn. Numbers differ from machine to machine, as training does.
"""

import argparse
import ast
import os
import random
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "assets" / "python"))
from maskloom_capture import capture  # noqa: E402

WIDTH, HEADS = 64, 4
LIBRARY = Path(os.__file__).parent


def turned(x, at):
    """Rotary embedding of x [B, H, N, D] by coordinates [N, axes]: an equal part of the channels for each axis."""
    part = x.shape[-1] // 2 // at.shape[1]
    angles = [at[:, i, None].float() * 0.7 ** torch.arange(0, 8 * part, 8)[None] for i in range(at.shape[1])]
    angle = F.pad(torch.cat(angles, 1), (0, x.shape[-1] // 2 - part * at.shape[1]))
    a, b = x.chunk(2, -1)
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


class Attention(nn.Module):
    def __init__(self, causal):
        super().__init__()
        self.causal = causal
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x, at):
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        made = F.scaled_dot_product_attention(turned(q, at), turned(k, at), v, is_causal=self.causal)
        return self.out(made.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, causal):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.attn = Attention(causal)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, at):
        x = x + self.attn(self.norms[0](x), at)
        return x + self.mlp(self.norms[1](x))


class Text(nn.Module):
    """Bytes (256 is a hidden one) to logits of bytes."""

    def __init__(self, layers, causal):
        super().__init__()
        self.embed, self.blocks = nn.Embedding(257, WIDTH), nn.ModuleList(Block(causal) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 256)

    def forward(self, ids):
        x, at = self.embed(ids), torch.arange(ids.shape[1])[:, None]
        for block in self.blocks:
            x = block(x, at)
        return self.head(self.norm(x))


class Video(nn.Module):
    """The velocity of pixels [B, T, H, W] at a time, for a digit that 8 tokens of text name."""

    TEXT = 8

    def __init__(self, layers, grid):
        super().__init__()
        self.pixel, self.when, self.digit = nn.Linear(1, WIDTH), nn.Linear(1, WIDTH), nn.Embedding(10 * self.TEXT, WIDTH)
        self.blocks = nn.ModuleList(Block(False) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 1)
        at = torch.stack(torch.meshgrid(*(torch.arange(n) for n in grid), indexing="ij"), -1).reshape(-1, 3)
        self.register_buffer("at", torch.cat([torch.zeros(self.TEXT, 3), at + 1.0]))
        self.place = nn.Parameter(torch.randn(len(self.at), WIDTH) * 0.02)

    def forward(self, pixels, when, digit):
        text = self.digit(digit[:, None] * self.TEXT + torch.arange(self.TEXT))
        x = torch.cat([text, self.pixel(pixels.flatten(1)[..., None])], 1) + self.place + self.when(when[:, None, None] - 0.5)
        for block in self.blocks:
            x = block(x, self.at)
        return self.head(self.norm(x[:, self.TEXT :])).view_as(pixels)


def trained(model, loss, minutes):
    """Adam until the time is over; prints the loss now and then."""
    best, end, step = torch.optim.AdamW(model.parameters(), 3e-3), time.monotonic() + 60 * minutes, 0
    while time.monotonic() < end:
        left = (end - time.monotonic()) / (60 * minutes)
        best.param_groups[0]["lr"] = 3e-3 * min(1, (step + 1) / 50, left * 4)
        best.zero_grad()
        value = loss()
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        best.step()
        if step % 100 == 0:
            print(f"  step {step}: loss {value.item():.3f}", flush=True)
        step += 1
    print(f"  {step} steps, loss {value.item():.3f}", flush=True)
    return model.eval().requires_grad_(False)


def windows(data, count, length):
    starts = torch.randint(0, len(data) - length, (count,))
    return torch.stack([data[s : s + length] for s in starts]).long()


def of_text(text):
    return torch.frombuffer(bytearray(text), dtype=torch.uint8)


def lm(out, minutes):
    length, apart = 512, {"bisect.py", "heapq.py"}
    text = b"".join(path.read_bytes() for path in sorted(LIBRARY.glob("*.py")) if path.name not in apart)
    data, model = of_text(text), Text(3, True)

    def loss():
        ids = windows(data, 4, length)
        return F.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten())

    trained(model, loss, minutes)
    seen = of_text((LIBRARY / "heapq.py").read_bytes()[3000 : 3000 + length])[None].long()
    with capture(out, layers=[1, 2], heads=[0, 2], dtype="float16", block_size=32) as kept:
        kept.next_prompt("heapq.py")
        logits = model(seen)
    print(f"  heapq.py: {F.cross_entropy(logits[0, :-1], seen[0, 1:]).item():.3f} nats a byte")


def moving(count, grid, images, labels):
    """Digits of 8x8 that wander over the frames, and their labels."""
    frames, height, width = grid
    chosen = torch.randint(0, len(images), (count,))
    start, speed = torch.randint(-2, 3, (count, 2)), torch.randint(-1, 2, (count, 2))
    made = torch.full((count, frames, height, width), -1.0)
    for n in range(count):
        for t in range(frames):
            dy, dx = (start[n] + speed[n] * t).tolist()
            made[n, t] = torch.roll(images[chosen[n]], (dy, dx), (0, 1))
    return made, labels[chosen]


def video(out, minutes):
    from sklearn.datasets import load_digits

    digits, grid = load_digits(), (6, 8, 8)
    images, labels = torch.tensor(digits.images).float() / 8 - 1, torch.tensor(digits.target)
    model = Video(3, grid)

    def loss():
        clean, digit = moving(4, grid, images, labels)
        noise, when = torch.randn_like(clean), torch.rand(len(clean))
        mixed = clean + when[:, None, None, None] * (noise - clean)
        return F.mse_loss(model(mixed, when, digit), noise - clean)

    trained(model, loss, minutes)
    pixels, steps = torch.randn(1, *grid), 16
    axes = {"t": grid[0], "h": grid[1], "w": grid[2], "start": Video.TEXT}
    with capture(out, layers=[1], heads=[0, 2], steps=[1, 12], dtype="float16", block_size=(32, 32), axes=axes) as kept:
        kept.next_prompt("a three that moves")
        for step in range(steps):
            pixels = pixels - model(pixels, torch.tensor([1 - step / steps]), torch.tensor([3])) / steps
    for row in pixels[0, 2]:
        print("  " + "".join(" .:-=+*#%@"[int((x.clamp(-1, 1) + 1) * 4.99)] * 2 for x in row))


def docstrings():
    for path in sorted(LIBRARY.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)) and (text := ast.get_docstring(node)):
                yield text.encode() + b"\n"


def encoder(out, minutes):
    length, texts = 256, list(docstrings())
    data, model = of_text(b"".join(texts[:-200])), Text(2, False)
    last = of_text(b"".join(texts[-200:]))

    def hidden(ids):
        away = torch.rand(ids.shape) < 0.15
        return torch.where(away, 256, ids), away

    def loss():
        ids = windows(data, 8, length)
        given, away = hidden(ids)
        return F.cross_entropy(model(given)[away], ids[away])

    trained(model, loss, minutes)
    with capture(out, heads=[1, 3], prompts=None, dtype="float16", block_size=32) as kept:
        for name in ("a docstring", "another"):
            kept.next_prompt(name)
            model(hidden(windows(last, 1, length))[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=["lm", "video", "encoder"])
    parser.add_argument("--minutes", type=float, default=4.0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    (HERE / "captures").mkdir(exist_ok=True)
    for name in given.models:
        torch.manual_seed(1)
        random.seed(1)
        print(name, flush=True)
        globals()[name](HERE / "captures" / f"{name}.safetensors", given.minutes)


if __name__ == "__main__":
    main()
