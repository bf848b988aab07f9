"""Gradients of tensors from which a factory computes what its score_mod reads: `python make_torch_factories.py OUT.json`.

Every case is the body of `def make(table, slopes, wide):`, which gives a score_mod. Recorded is the gradient of each parameter:
that of the sum of the modified scores over some cells, each times a weight of its own, by PyTorch's autograd in float32. A case
for which autograd gives a parameter nothing at all has no entry for it.
"""
import json, sys
import torch
import torch.nn.functional as F

READ = "return lambda score, b, h, q_idx, kv_idx: "
# what is computed from the parameters, as `t` of 4 x 6 elements
TABLES = """table * 2
table * 2 + slopes[:, None]
slopes[:, None] * torch.arange(6)
slopes.exp()[:, None] - table
-table
2 - table
1 / (table * table + 1)
table / 3
table @ torch.eye(6)
wide[1:5]
wide[::2].contiguous()[:4]
wide.T.reshape(6, 8)[:, :6].T[:4].clone() * 1.5
wide.view(2, 4, 6)[1]
wide[[0, 0, 3, 7]]
wide[torch.tensor([1, 1, 1, 2])] + table
F.pad(table[:, :4], (1, 1))
F.pad(table[:, 1:-1], (1, 1), value=0.5)
table.to(torch.bfloat16)
table.to(torch.float64) * 0.1
table.float()
torch.stack([slopes, slopes * 2, slopes, slopes, slopes, slopes.exp()], dim=1)
torch.cat([table[:, :3], table[:, :3] * -1], dim=1)
torch.cat([wide[:2], table[2:]], 0)
table.clamp(min=0)
table.clamp(-0.5, 0.5)
torch.relu(table)
F.softplus(table)
F.gelu(table)
F.silu(table)
torch.sigmoid(table)
table.softmax(-1)
torch.log_softmax(table, dim=1)
table.cumsum(-1)
table.sum(0, keepdim=True).expand(4, 6)
table.mean(1)[:, None].repeat(1, 6)
table.amax(1, keepdim=True).expand(4, 6)
table.flip(1)
torch.roll(table, 1, 1)
table.t()[:, [3, 2, 1, 0]].t()
torch.where(table > 0, table, 0.1 * table)
torch.where(torch.arange(6) < 3, table, slopes[:, None])
torch.maximum(table, slopes[:, None])
torch.outer(slopes, torch.arange(6).float())
torch.einsum("i,j->ij", slopes, slopes.repeat(2)[:6])
table.abs()
table.square()
table ** 3
table.masked_fill(torch.eye(4, 6, dtype=torch.bool), -1.0)
table.tril()
table.index_select(0, torch.tensor([3, 3, 0, 1]))
table.gather(1, torch.zeros(4, 6, dtype=torch.int64) + 2)
table.repeat_interleave(2, dim=1)[:, ::2]
table.unsqueeze(0).permute(0, 2, 1).squeeze(0).t()
table - table.mean()
table * table.detach()
table.data * slopes[:, None]
table.round() + slopes[:, None]
torch.tanh(table / 20) * 20
torch.linspace(0, 1, 6) * slopes[:, None]
torch.nn.functional.normalize(table, dim=1)
""".strip().splitlines()

BODIES = [f"t = {text}\n    {READ}score + t[h, kv_idx % 6]" for text in TABLES]
BODIES += [f"t = {text}\n    {READ}score * t[h, kv_idx % 6] + table[h, q_idx % 6] * slopes[h]" for text in TABLES]
BODIES += [
    f"{READ}score + table[1, 2] * slopes[h]",
    f"{READ}score * slopes[2]",
    f"a, b_ = slopes[0], slopes[1]\n    {READ}score * a + b_",
    f"t = table.sum()\n    {READ}score * t",
    f"t = slopes.clone()\n    t *= 2\n    {READ}score + t[h]",
    f"t = slopes * 1\n    t += slopes\n    {READ}score + t[h] * slopes[h]",
    f"with torch.no_grad():\n        t = slopes * 2\n    {READ}score + t[h] * slopes[h]",
    f"t = float(slopes[1])\n    {READ}score + t * slopes[h]",
    f"t = slopes.detach() * 2\n    {READ}score + t[h] * slopes[h]",
    f"rows = [table[i] * i for i in range(4)]\n    t = torch.stack(rows)\n    {READ}score + t[h, kv_idx % 6]",
    f"t = slopes * 2\n    {READ}score + (t * torch.tensor([1.0, 0.0, 2.0, 3.0])).sum()",
    f"def twice(x):\n        return x + x\n    t = twice(twice(slopes))\n    {READ}score + t[h]",
    f"{READ}score + torch.stack([slopes[h], slopes[0], slopes[0] * 1.0]).amax()",
    f"{READ}score + torch.stack([slopes[0], slopes[0] * 1.0, slopes[0] * 1.0, score * 0 - 9]).amax()",
    f"{READ}score + torch.stack([slopes[0], slopes[1], slopes[0] * 1.0, slopes[2]]).amin()",
]


def parameters():
    g = torch.Generator().manual_seed(5)
    made = {"table": torch.randn(4, 6, generator=g), "slopes": torch.rand(4, generator=g) + 0.25}
    made["wide"] = torch.randn(8, 6, generator=g)
    # rows that end in ties
    made["table"][0, 4] = made["table"][0].max()
    made["table"][1, :3] = 2.5
    return made


CELLS = [(h, q, kv) for h in range(4) for q in range(0, 9, 4) for kv in range(9)]


def case(body):
    given = {name: t.clone().requires_grad_() for name, t in parameters().items()}
    names = {"torch": torch, "F": F}
    exec(f"def make(table, slopes, wide):\n    {body}", names)
    mod = names["make"](**given)
    total = torch.zeros((), dtype=torch.float64)
    at = [torch.tensor(i) for i in range(10)]
    for n, (h, q, kv) in enumerate(CELLS):
        score = torch.tensor(0.25 * n - 3.0)
        total = total + mod(score, at[0], at[h], at[q], at[kv]).double() * (1 + n % 5)
    grads = torch.autograd.grad(total, list(given.values()), allow_unused=True)
    found = {name: g.flatten().tolist() for name, g in zip(given, grads) if g is not None}
    return {"text": body, "gradients": found}


shown = {name: {"shape": list(t.shape), "values": t.flatten().tolist()} for name, t in parameters().items()}
with open(sys.argv[1], "w") as f:
    json.dump({"tensors": shown, "cells": CELLS, "cases": [case(body) for body in BODIES]}, f, separators=(",", ":"))
    f.write("\n")
