"""Writes torch_prelude.json: what PyTorch makes of the functions that ship as Python, at setup and inside mods.

    python tests/data/make_torch_prelude.py

`setup` holds statements as torch_ops.json has them. `mods` holds texts with a mod: a mask's cells as create_mask gives
them (rows of 0 and 1 over b, h and q), or a score's values in double precision at scores that the test makes the same way.
"""

import base64
import itertools
import json
import math
import pathlib
import warnings

import torch
from torch.nn.attention.flex_attention import create_mask

import make_torch_ops as ops

warnings.filterwarnings("ignore")
torch.set_num_threads(1)

B, H, Q, K = 2, 2, 13, 11
# of scores fewer: b, h, q, k
SCORED = 1, 2, 7, 5

HEAD = """import torch
import torch.nn as nn
import torch.nn.functional as F
import math
e = torch.tensor([3, 1, 7, 7, -2, 0])
w = torch.tensor([0.5, -1.25, 3.0, 0.75, -0.5])
x = (torch.arange(13 * 5) * 37 % 23).reshape(13, 5) - 7
y = ((torch.arange(13 * 5) * 29 % 31).reshape(13, 5) - 11) / 4
m = (torch.arange(13 * 11) * 7 % 10).reshape(13, 11)
f = torch.arange(13) % 3 == 1
p = torch.tensor([[1, 0], [4, 2], [3, 3]])
n = torch.tensor([1.0, float('nan'), -float('inf'), 2.0, float('inf')])
"""

MASKS = """
torch.isin(q % 7, torch.tensor([1, 3]), invert=True)
torch.isin(elements=k, test_elements=e, assume_unique=False)
m[q].sum(dtype=torch.int8) * 20 > 100
torch.sum(m[q], 0, dtype=torch.int16) * 900 > 0
m[q].mean(dtype=torch.float32) > m[k].mean(0, dtype=torch.float64)
m[q].prod(axis=0, dtype=torch.uint8) > 100
torch.amax(m[q], axis=0, keepdims=True)[0] > k
torch.bucketize(q, e.sort().values, out_int32=True) * 2**30 > 0
torch.cat([q[None, None], k[None, None]], axis=1)[0, 1] > q
torch.special.xlog1py(y[q, 0], y[k, 0].abs()) > 0.3
torch.ldexp(y[q, 0], k % 5) > 1
F.dropout(y[q, 0], 0.5, training=False) > 0.3
F.softplus(y[q, 0], beta=2, threshold=3) > 0.4
F.softplus(y[q, 0], 0.5) > 0.9
(e - q).abs().argmin() == (e - k).abs().argmin()
torch.argmax(x[q]) == k % 5
x[q].argmin() > x[k].argmin(0)
torch.stack([q, k, q - k]).argmax(keepdim=True)[0] == 1
torch.argmax(x[q].reshape(5, 1) - x[k].reshape(1, 5), dim=1)[2] > 1
n.argmin() == q
torch.stack([q, k, q // 2]).median() > 3
torch.stack([q, k, 5 + 0 * q]).median(0).values > 4
x[q].median(dim=-1)[0] > x[k].median()
x[q].max(dim=0).values > x[k].max(dim=0)[0]
x[q].min(dim=0).indices == x[k].min(0)[1]
torch.max(x[q].reshape(5, 1) * x[k].reshape(1, 5), dim=1, keepdim=True).values.sum() > 3
torch.sort(x[q]).values[1] > x[k].sort(descending=True).values[1]
torch.sort(torch.stack([q, k, q]), stable=True).indices[0] == 0
torch.argsort(torch.stack([q, k, q % 3]), stable=True)[2] == 1
torch.topk((e - q).abs(), 2, largest=False).values.sum() > k
x[q].topk(2)[0].sum() > x[k].topk(3).values[2]
torch.cumsum(e, 0)[q % 6] > k
torch.fmin(n[q % 5], n[k % 5]) < 1.5
torch.fmax(n[q % 5], n[k % 5]) > 1.5
torch.minimum(n[q % 5], n[k % 5]) < 1.5
torch.maximum(n[q % 5], n[k % 5]) > 1.5
torch.logaddexp(n[q % 5], n[k % 5]) > 1.5
torch.logaddexp(n[q % 5], n[k % 5]) == n[q % 5]
torch.sign(n[q % 5]) == torch.sign(n[k % 5])
torch.sign(n[k % 5]) < 0.5
torch.isnan(torch.sign(n[k % 5]))
torch.lgamma(x[q, k % 5] + 0.5) > 1
torch.digamma(y[q, k % 5]) > 0
torch.erfc(y[q, k % 5]) < 0.3
torch.special.i0(y[q, k % 5]) < 2.5
x[q].cumsum(0)[k % 5] > 4
torch.cumsum((e > q).int(), 0)[5] > k % 4
x[q].cumprod(dim=-1)[2] > 5 * k
x[q].cummax(0).values[k % 5] > 4
torch.cummin(x[q], 0)[1][4] == k % 5
x[q].diff()[k % 4] > 0
torch.diff(torch.stack([q, k]), prepend=torch.tensor([4]))[0] > 2
torch.stack([q > 3, k > 2, q > k]).diff().any()
torch.gather(x[q], 0, torch.stack([k % 5, q % 5])).sum() > 3
torch.gather(p, 1, (k % 2).view(1, 1))[0, 0] > q % 4
torch.take_along_dim(x[q], torch.stack([k % 5]))[0] > 3
m.take(q * 11 + k) > 4
torch.take(m, q * 11 + k) > 4
x[q].roll(1)[k % 5] > 3
torch.roll(x[q], shifts=-2, dims=0)[k % 5] > 3
x[q].flip(0)[k % 5] > 3
torch.flip(p, (0, 1))[k % 3, q % 2] > 1
x[q].softmax(0)[1] > x[k].float().softmax(-1)[1]
y[q].softmax(0)[1] > y[k].softmax(-1)[1]
y[q].logsumexp(0) > y[k].logsumexp(0)
F.log_softmax(y[q], dim=0)[2] > -1.7
y[q].var() > y[k].var(unbiased=False)
y[q].std(0) > 2.1
torch.var_mean(y[q])[1] > y[k].mean()
a, c = y[q].chunk(2); return a.sum() > c.sum() + k
a, c = torch.split(x[q], [2, 3]); return a.sum() > c.sum() + k
x[q].tensor_split(2)[1].sum() > k
x[q].unbind()[k % 5] > 3 if False else x[q].unbind()[2] > k
torch.einsum('d,d->', x[q], x[k]) > 9
torch.einsum('i,j->ij', x[q], x[k]).sum() > 9
torch.einsum('ij,j->i', p, torch.stack([q, k]))[1] > 20
torch.outer(x[q], x[k])[1, 2] > 3
torch.count_nonzero(x[q]) > 4
(x[q] > 2).count_nonzero(dim=0) == k % 4
torch.nan_to_num(n, nan=2.0)[k % 5] > 1 + 0 * q
torch.nan_to_num(n[k % 5] * q, 0.5, posinf=7.0, neginf=-7.0) > 0.25
torch.copysign(w[k % 5], q - 5) > 0.4
torch.copysign(q.float(), w[k % 5]) < -3
torch.hypot((q - 6).float(), (k - 5).float()) < 4
torch.hypot(q - 6, k - 5) < 4
torch.heaviside((q - k).float(), torch.tensor(0.5)) > 0.4
torch.heaviside(q - k, torch.tensor(1)) > 0
torch.gcd(q, k) == 1
torch.lcm(q, k) < 20
torch.gcd(q - 6, k - 5) > 1
torch.sgn(q - k) == -1
torch.signbit(q - k)
torch.signbit(w[k % 5] * 0) | (q > 9)
torch.addcmul(q, k, k, value=2) > 40
torch.addcmul(w[k % 5], q.float(), w[k % 5], value=0.3) > 0.9
torch.addcdiv(w[k % 5], q.float(), w[k % 5]) > 0.9
torch.lerp(w[k % 5], w[q % 5], 0.3) > 0.1
torch.lerp(q.float(), k.float(), w[k % 5]) > 5
torch.asinh(q - 6.5) > k - 3
torch.acosh(q + 1.0) > k / 4
torch.atanh(q / 14) > k / 8
torch.xlogy(q, k + 1) > 9
F.embedding(q, x)[k % 5] > 3
F.embedding(q, y).sum() > k
F.softsign(q - k + 0.5) > 0.7
F.tanhshrink(q - k + 0.5) > 0.7
F.threshold(q - k, 2, -1) > 2
F.mish(q - k + 0.5) > 2.2
F.hardsigmoid(q - k + 0.0) > 0.6
F.hardswish(q - k + 0.0) > 0.6
F.hardshrink(q - k + 0.5, 2.0) != 0
F.softshrink(q - k + 0.5) > 2
F.selu(q - k + 0.5) > -1.2
F.celu(q - k + 0.5) > -0.7
F.one_hot(k % 4, 4)[q % 4] == 1
F.normalize(y[q], dim=0)[1] > 0.2
torch.linalg.vector_norm(y[q] - y[k]) < 4
torch.linalg.vector_norm(y[q] - y[k], ord=1) < 7
torch.norm(y[q] - y[k], p=float('inf')) < 3
torch.linalg.norm(y[q] - y[k]) < 4
(y[q] - y[k]).norm() < 4
(y[q] - y[k]).norm(1) < 7
torch.norm(x[q] - x[k]) < 4
torch.dist(y[q], y[k]) < 4
torch.linalg.cross(y[q, :3], y[k, :3])[0] > 0
torch.cross(y[q, :3], y[k, :3], dim=0)[1] > 0
F.cosine_similarity(y[q], y[k], dim=0) > 0.3
F.pairwise_distance(y[q][None], y[k][None])[0] < 4
torch.isclose(q.float(), k + 1e-9)
torch.isclose(q, k, rtol=0.3)
torch.isclose(q, k.float())
torch.result_type(q, 1.5) == torch.float32 if q is None else (q > k) & (torch.result_type(q, w) == torch.float32)
m.T[k, q] > 5
m.mT[k][q] > 5
m.movedim(0, 1)[k, q] > 5
m.select(0, 3)[k] > q % 6
m.flatten()[q * 11 + k] > 5
x[q].reshape(5, 1).T[0, k % 5] > 3
(x[q].unsqueeze(1) > x[k].unsqueeze(0)).sum() > 9
(x[q].unsqueeze(1) - x[k]).transpose(0, 1)[1, k % 5] > 4
(x[q].unsqueeze(1) - x[k]).permute(1, 0)[1, k % 5] > 4
(x[q].unsqueeze(1) - x[k]).flatten(0)[7] > k
(x[q].unsqueeze(1) - x[k]).flatten(0, 1)[7] > k
(x[q].unsqueeze(1) - x[k]).flatten(1)[3, k % 5] > 2
torch.cat([q[None], k[None]]).argmax() == 0
torch.cat([x[q].reshape(1, 5), x[k].reshape(1, 5)], dim=0).sum(0)[k % 5] > 4
torch.cat([x[q].reshape(1, 5), x[k].reshape(1, 5)], 1)[0, q % 10] > 4
torch.hstack([x[q], x[k]])[q % 10] > 4
torch.vstack([x[q], x[k]])[1, q % 5] > 4
x[q].repeat(2)[k % 10] > 4
x[q].repeat(2, 2)[1, k % 10] > 4
x[q].repeat_interleave(2)[k % 10] > 4
x[q].narrow(0, 1, 3)[k % 3] > 4
(x[q] @ p.repeat(1, 1).new_ones(5, 2))[1] > k
torch.matmul(x[q].reshape(1, 5), x[k].reshape(5, 1))[0, 0] > 9
r, c = torch.unravel_index(q, (3, 5)); return (r == 1) & (c > k % 4)
torch.stack(torch.unravel_index(q, (3, 5)))[1] > k % 4
torch.broadcast_tensors(q, x[k])[0][2] > k
x[q].aminmax()[1] > k
x[q].aminmax().max > k
x[q].kthvalue(2).values > k - 3
torch.nansum(n[k % 5] * q) > 4
torch.logit(torch.sigmoid((q - k).float())) > 1.5
torch.deg2rad(q * 30.0) > k / 2
torch.argmax(f)
x[q].argmax(1) > 3
torch.topk(x[q], 9).values[0] > 1
d = q - k; d.abs_(); return d < 4
(x[q].unsqueeze(1) - x[k])[k % 5, q % 5] > 2
(x[q].unsqueeze(1) - x[k])[torch.stack([k % 5, q % 5])].sum() > 9
(x[q] * 2)[-1 - k % 5] > 2
(x[q] * 2)[torch.tensor([3, 1])].sum() > k
(x[q].unsqueeze(1) - x[k])[:, torch.stack([k % 5, q % 5])].sum() > 9
(k - q).abs_().clamp_(max=5).add_(1) < 4
d = k - q; d.abs_(); d.mul_(2); return (d > 4) | (k == 0)
d = (q - k).float(); d.div_(4); return d > 1.3
d = q - k; d.mul_(0.5); return d > 1
d = q - k; d.fill_(3); return d > k
d = torch.zeros_like(q); d.add_(q).sub_(k); return d > 2
d = q - k; d.clamp_(-2, 2); d += 1; return d > 1
"""

SCORES = """
torch.asinh(score)
torch.sinh(score / 4)
torch.cosh(score / 4)
torch.acosh(score.abs() + 1)
torch.atanh(score / 40)
torch.asin(score / 40)
torch.acos(score / 40)
torch.atan(score)
torch.hypot(score, w[k % 5].double())
torch.copysign(score, w[k % 5])
torch.xlogy(score.abs(), torch.tensor(3.))
F.mish(score)
F.softsign(score)
F.tanhshrink(score)
F.threshold(score, 0.1, -2)
F.hardswish(score)
F.hardsigmoid(score)
F.softshrink(score)
F.hardshrink(score)
F.celu(score, 1.5)
F.selu(score)
torch.sinc(score)
torch.logit(torch.sigmoid(score), eps=0.001)
torch.nan_to_num(score)
torch.stack([score, score * 2, score - 1]).softmax(0)[1]
torch.stack([score, score * 2, score - 1]).logsumexp(0)
torch.stack([score, score * 2, score - 1]).std()
torch.stack([score, score * 2, score - 1]).sort().values[1]
torch.stack([score, score * 2, score - 1]).median()
torch.stack([score, -score]).max(0).values
torch.lerp(score, score * 2, 0.25)
torch.addcmul(score, score, score, value=0.1)
torch.addcdiv(score, score, score + 50)
torch.where(torch.isclose(score, score.round(), atol=0.2), score, 0.0)
torch.einsum('i,i->', torch.stack([score, score]), w[:2].double())
F.normalize(torch.stack([score, score + 1]), dim=0)[0]
torch.linalg.vector_norm(torch.stack([score, score + 1]))
torch.rad2deg(score)
s = score * 2; s.add_(q - k).relu_(); return s
torch.lgamma(score)
torch.lgamma(score * 7 + 0.01)
torch.digamma(score)
torch.digamma(score.abs() * 7 + 0.01)
torch.special.i0(score)
torch.special.i0e(score * 9)
torch.special.i1(score)
torch.special.i1e(score * 9)
torch.erfc(score)
torch.erfinv(score / 5.01)
torch.special.ndtr(score)
torch.special.entr(score)
torch.logaddexp2(score, w[k % 5].double())
torch.logaddexp2(n[q % 5], n[k % 5]).double()
torch.fmin(score, n[k % 5].double())
torch.fmax(n[k % 5].double(), score)
torch.logaddexp(score, n[k % 5].double())
torch.logaddexp(n[q % 5], n[k % 5]).double()
torch.sign(n[k % 5]).double() * score
torch.lgamma(n[k % 5]).double()
torch.digamma(n[k % 5]).double()
torch.special.i0(n[k % 5]).double()
torch.special.i0e(n[k % 5]).double()
torch.erfc(n[k % 5]).double()
torch.erfinv(n[k % 5]).double()
score.clone().masked_fill_(q < k, -5.0)
"""

# one setup, then the mod's result: functions of layers and packages
WHOLE = [
    ("mask", "from einops import rearrange, repeat, reduce\nt = rearrange(m[:12], '(a c) k -> a c k', c=4)\nr = repeat(torch.arange(4), 'n -> (n r)', r=3)\nd = reduce(m.float(), 'q k -> q', 'mean')\ndef mod(b, h, q, k):\n    return (t[q // 4 % 3, q % 4, k] > 4) | (r[q % 12] == r[k]) & (d[q] > 4.4)\n"),
    ("mask", "from einops import rearrange, einsum\ndef mod(b, h, q, k):\n    a = rearrange(x[q, :4], '(i j) -> j i', j=2)\n    return (a[0, 1] > x[k, 0]) | (einsum(x[q], x[k], 'd, d ->') > 20)\n"),
    ("mask", "torch.manual_seed(3)\nl = nn.Linear(5, 3)\nz = l(y).detach()\ndef mod(b, h, q, k):\n    return z[q, k % 3] > 0.2\n"),
    ("mask", "torch.manual_seed(3)\nclass Gate(nn.Module):\n    def __init__(self, dim):\n        super().__init__()\n        self.proj = nn.Sequential(nn.Linear(dim, 8), nn.ReLU(), nn.Linear(8, 2, bias=False))\n        self.norm = nn.LayerNorm(dim)\n        self.register_buffer('steps', torch.arange(4))\n    def forward(self, x):\n        return self.proj(self.norm(x))\ngate = Gate(5).eval()\nwith torch.no_grad():\n    z = gate(y)\ncount = sum(p.numel() for p in gate.parameters())\nnames = list(gate.state_dict())\ndef mod(b, h, q, k):\n    return (z[q, 0] > z[k, 1]) & (q != len(names)) | (k == count % 11) | (gate.steps[k % 4] == 3)\n"),
    ("mask", "torch.manual_seed(5)\nemb = nn.Embedding(13, 4)\nlayers = nn.ModuleList([nn.Identity(), nn.Tanh()])\nz = emb.weight\nfor l in layers:\n    z = l(z)\ndef mod(b, h, q, k):\n    return (z[q] - z[k]).sum() > 0.4\n"),
    ("score", "torch.manual_seed(7)\nlin = nn.Linear(2, 2, bias=True)\ndef mod(score, b, h, q, k):\n    return score + lin(torch.stack([(q - k).float(), q * 0.1]))[h]\n"),
    ("mask", "keep = torch.empty(13)\nnn.init.constant_(keep, 1.0)\nnn.init.uniform_(w, 0, 0) if False else None\ndef mod(b, h, q, k):\n    return (keep[q] > 0) & (q >= k)\n"),
    ("mask", "import numpy as np\na = np.tri(13, 11, -1, dtype=bool)\na[np.ix_([0, 5], [9, 10])] = True\nnp.fill_diagonal(a, True)\nc = np.pad(np.array([1, 2]), (2, 9))\nt = torch.from_numpy(a)\nv = torch.tensor(c)\nu = w.numpy()\nu[0] = 9\ndef mod(b, h, q, k):\n    return t[q, k] | (v[q] == 2) | (w[k % 5] > 8)\n"),
    ("mask", "import heapq, bisect, statistics\nd = [5, 3, 8]\nheapq.heapify(d)\nheapq.heappush(d, 1)\nlow = heapq.heappop(d)\nbisect.insort(d, 4)\nmid = statistics.median(d)\ndef mod(b, h, q, k):\n    return (q - k < d[0]) & (q >= k) | (k == low) | (q == mid)\n"),
    ("blocks", "from torch.nn.attention.flex_attention import BlockMask\nnum = torch.tensor([[[1, 2, 2, 1]]], dtype=torch.int32)\nidx = torch.tensor([[[[0, 1, 2], [1, 0, 2], [2, 0, 1], [1, 2, 0]]]], dtype=torch.int32)\nfull = torch.tensor([[[0, 1, 1, 1]]], dtype=torch.int32)\nfull_idx = torch.tensor([[[[0, 1, 2], [2, 0, 1], [1, 2, 0], [0, 1, 2]]]], dtype=torch.int32)\ndef near(b, h, q, k):\n    return (q - k).abs() < 3\nmod = BlockMask.from_kv_blocks(num, idx, full, full_idx, BLOCK_SIZE=4, mask_mod=near)\n"),
    ("blocks", "from torch.nn.attention.flex_attention import BlockMask\nnum = torch.tensor([[[1, 2, 2, 1]]], dtype=torch.int32)\nidx = torch.tensor([[[[0, 1, 2], [1, 0, 2], [2, 0, 1], [1, 2, 0]]]], dtype=torch.int32)\nfull = torch.tensor([[[0, 1, 1, 1]]], dtype=torch.int32)\nfull_idx = torch.tensor([[[[0, 1, 2], [2, 0, 1], [1, 2, 0], [0, 1, 2]]]], dtype=torch.int32)\nmod = BlockMask.from_kv_blocks(num, idx, BLOCK_SIZE=(4, 4), mask_mod=None)\n"),
    ("blocks", "from torch.nn.attention.flex_attention import BlockMask\nnum = torch.tensor([[[1, 2, 2, 1]]], dtype=torch.int32)\nidx = torch.tensor([[[[0, 1, 2], [1, 0, 2], [2, 0, 1], [1, 2, 0]]]], dtype=torch.int32)\nfull = torch.tensor([[[0, 1, 1, 1]]], dtype=torch.int32)\nfull_idx = torch.tensor([[[[0, 1, 2], [2, 0, 1], [1, 2, 0], [0, 1, 2]]]], dtype=torch.int32)\ndef make(w):\n    both = [torch.cat([t, t.flip(2)], 1) for t in (num, idx, full, full_idx)]\n    return BlockMask.from_kv_blocks(*both, BLOCK_SIZE=4, mask_mod=lambda b, h, q, k: q - k < w + h)\nmod = make(2)\n"),
    ("mask", "t = torch.Tensor([[1, 2], [3, 4]])\nu = torch.LongTensor(3).fill_(2)\ndef mod(b, h, q, k):\n    return (t[q % 2, k % 2] > 2) & (u[q % 3] == 2)\n"),
]

SETUP = """
torch.tensor([250, 3, 17], dtype=torch.uint8).clamp(-5, 100)
torch.tensor([250, 3, 17], dtype=torch.uint8).clamp(5, 300)
torch.tensor([-128, 100], dtype=torch.int8).clamp(max=300)
torch.tensor([250, 3, 17], dtype=torch.uint8).clamp(max=-5)
torch.tensor([100], dtype=torch.int8).clamp(min=200)
F.pad(torch.arange(6.).view(1, 2, 3), (2, 1), mode="reflect")
F.pad(torch.arange(6.).view(1, 2, 3), (2, 1), mode="replicate")
F.pad(torch.arange(6.).view(1, 2, 3), (2, 1), mode="circular")
F.pad(torch.arange(24.).view(1, 2, 3, 4), (1, 2, 2, 1), mode="reflect")
F.group_norm(torch.arange(24.).view(2, 4, 3), 2)
torch.arange(6).put(torch.tensor([1, -1]), torch.tensor([9, 8]))
torch.can_cast(torch.float32, torch.int8)
torch.can_cast(torch.int8, torch.float16)
torch.combinations(torch.arange(5))
torch.combinations(torch.arange(4), 3, with_replacement=True)
torch.kron(torch.eye(3), torch.ones(2, 4))
torch.kron(torch.arange(3), torch.tensor([[1, 2]]))
torch.vander(torch.tensor([1, 2, 3]), 4)
torch.hann_window(8)
torch.hann_window(9, periodic=False)
torch.hamming_window(10)
torch.blackman_window(7)
torch.bartlett_window(6)
torch.logcumsumexp(torch.tensor([0.5, 1.5, -2.0]), 0)
torch.var_mean(torch.tensor([[1.0, 2, 4], [3, 3, 9]]), dim=1)
torch.std_mean(torch.tensor([[1.0, 2, 4], [3, 3, 9]]), 0)
torch.quantile(torch.tensor([[1.0, 2, 4], [3, 3, 9]]), 0.3, dim=1)
torch.quantile(torch.tensor([3.0, 1, 2, 5]), torch.tensor([0.1, 0.5]))
torch.quantile(torch.tensor([3.0, 1, 2, 5]), 0.4, interpolation='nearest')
torch.nanquantile(torch.tensor([3.0, float('nan'), 2, 5]), 0.5)
torch.kthvalue(torch.tensor([4.0, 2.0, 9.0]), 2)
torch.mode(torch.tensor([[1, 2, 2], [3, 3, 1]])).values
torch.unique(torch.tensor([[2, 1], [1, 3], [2, 1]]), dim=0)
torch.unique(torch.tensor([[2, 1], [1, 3], [2, 1]]), dim=0, return_inverse=True, return_counts=True)
torch.unique(torch.tensor([[2, 1, 2], [1, 3, 1]]), dim=1)
torch.unique_consecutive(torch.tensor([[2, 1], [2, 1], [1, 3], [2, 1]]), dim=0)
torch.cdist(torch.tensor([[0.0, 0], [3, 4]]), torch.tensor([[1.0, 1], [0, 5], [2, 2]]))
torch.cdist(torch.tensor([[[0.0, 0], [3, 4]]]), torch.tensor([[[1.0, 1], [0, 5]]]), p=1)
torch.zeros(4).scatter_reduce(0, torch.tensor([0, 1, 1, 3]), torch.tensor([1.0, 2, 3, 4]), 'sum')
torch.ones(4).scatter_reduce(0, torch.tensor([0, 1, 1, 3]), torch.tensor([1.0, 2, 3, 4]), 'prod')
torch.zeros(4).scatter_reduce(0, torch.tensor([0, 1, 1, 3]), torch.tensor([1.0, 2, 3, 4]), 'mean', include_self=False)
torch.zeros(4).scatter_reduce(0, torch.tensor([0, 1, 1, 3]), torch.tensor([1.0, 2, 3, 4]), 'amax')
torch.zeros(4).scatter_reduce(0, torch.tensor([0, 1, 1, 3]), torch.tensor([1.0, 2, 3, 4]), 'amin', include_self=False)
torch.tensor([5, 5, 5, 5]).scatter_reduce(0, torch.tensor([0, 1, 1, 3]), torch.tensor([1, 2, 4, 4]), 'mean')
r = torch.zeros(3, 2); r.scatter_reduce_(0, torch.tensor([[0, 1], [2, 1]]), torch.tensor([[1.0, 2], [3, 4]]), reduce='sum')
torch.zeros(3).scatter(0, torch.tensor([0, 0, 2]), 2.0, reduce='add')
torch.arange(12).as_strided((3, 2), (1, 4))
torch.arange(12).as_strided((2, 2), (3, 1), 5)
torch.arange(12).as_strided((4, 4), (3, 1), 5)
r = torch.zeros(3, 2); r.index_put_((torch.tensor([0, 0, 2]), torch.tensor([1, 1, 0])), torch.tensor([1.0, 2.0, 3.0]), accumulate=True)
r = torch.zeros(3, 2); r.index_put_((torch.tensor([0, 0, 2]),), torch.tensor(1.0), accumulate=True)
F.max_pool1d(torch.arange(10.0)[None], 3, stride=2, padding=1)
F.max_pool2d(torch.arange(36.0).reshape(1, 6, 6) % 7, 2)
F.avg_pool1d(torch.arange(10.0)[None], 4)
F.avg_pool2d(torch.arange(36.0).reshape(1, 6, 6) % 7, 3, 1, 1)
F.adaptive_avg_pool1d(torch.arange(10.0)[None], 3)
F.adaptive_max_pool1d(torch.arange(10.0)[None], 4)
F.conv1d(torch.arange(10.0).reshape(1, 1, 10), torch.tensor([[[1.0, 2.0, -1.0]]]), padding=1)
F.conv1d(torch.arange(10).reshape(1, 1, 10), torch.ones(1, 1, 3, dtype=torch.int64))
F.conv2d(torch.arange(25.0).reshape(1, 1, 5, 5), torch.ones(2, 1, 3, 3), stride=2)
F.layer_norm(torch.arange(8.0).reshape(2, 4) ** 2, (4,))
F.linear(torch.arange(4.0), torch.arange(8.0).reshape(2, 4), torch.tensor([1.0, 2.0]))
F.interpolate(torch.arange(4.0).reshape(1, 1, 4), size=6)
F.interpolate(torch.arange(9.0).reshape(1, 1, 3, 3), scale_factor=2, mode='nearest-exact')
F.cosine_similarity(torch.tensor([[1.0, 2, 3]]), torch.tensor([[2.0, 0, 1]]))
F.pairwise_distance(torch.tensor([[1.0, 2, 3]]), torch.tensor([[2.0, 0, 1]]))
F.softsign(torch.tensor([-2.0, 0.5]))
F.threshold(torch.tensor([-2, 5]), 0, 7)
F.embedding(torch.tensor([[1, 0]]), torch.arange(6.0).reshape(2, 3))
torch.nn.utils.rnn.pad_sequence([torch.ones(2), torch.ones(4)], batch_first=True, padding_value=-1.0)
torch.isclose(torch.tensor([1.0, float('inf'), float('nan')]), torch.tensor([1.0 + 1e-6, float('inf'), float('nan')]), equal_nan=True)
torch.allclose(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.00001]))
torch.lerp(torch.tensor([1.0, 2.0]), torch.tensor([4.0, -2.5]), 0.3)
torch.lerp(torch.tensor([1.0, 2.0]), torch.tensor([4.0, -2.5]), torch.tensor([0.7, 0.2]))
torch.addcmul(torch.tensor([1.0, 2.0]), torch.tensor([0.3, 0.7]), torch.tensor([0.9, -0.1]), value=0.3)
torch.addcdiv(torch.tensor([1.0, 2.0]), torch.tensor([0.3, 0.7]), torch.tensor([0.9, -0.1]))
torch.tensordot(torch.arange(6).reshape(2, 3), torch.arange(6).reshape(3, 2), 1)
torch.trapezoid(torch.tensor([1.0, 2.0, 4.0]))
torch.cov(torch.tensor([[1.0, 2.0, 4.0], [3.0, 1.0, 0.5]]))
torch.linalg.matrix_power(torch.tensor([[1.0, 1.0], [1.0, 0.0]]), 5)
torch.dstack([torch.tensor([1, 2]), torch.tensor([3, 4])])
torch.hsplit(torch.arange(6).reshape(2, 3), [1])
torch.atleast_2d(torch.tensor([1, 2]))
torch.diagflat(torch.tensor([1, 2]), 1)
torch.fft.fftfreq(5, 0.5)
torch.Tensor([1, 2, 3])
torch.Tensor([[1, 2], [3, 4.5]])
torch.DoubleTensor([1, 2])
torch.ByteTensor([1, 255])
torch.Tensor(2, 3).shape
torch.LongTensor(4).shape
int(torch.arange(3).numpy().sum())
torch.nansum(torch.tensor([1.0, float('nan')]))
torch.cross(torch.tensor([[1.0, 2, 3]]), torch.tensor([[0.5, -1, 2]]), dim=1)
"""

# Python itself: statements that bind `r`
PYTHON = [
    "d = {1: 2}; d.clear(); d[3] = 4; r = list(d.items())",
    "r = dict.fromkeys('abc', 0)['b'] + len(dict.fromkeys([1, 2]))",
    "d = {'a': 1, 'b': 2}; k, v = d.popitem(); r = [k, v, len(d)]",
    "x = list(range(8)); del x[-2:]; del x[::3]; r = x",
    "x = list(range(8)); del x[5:2:-1]; r = x",
    "r = [{1, 2} <= {1, 2, 3}, {1, 2} < {1, 2}, {1, 2, 3} >= {2}, {1} > {1}, frozenset([1]) <= {1}]",
    "d = {frozenset([1, 2]): 5}; r = d[frozenset([2, 1])]",
    "s = {3}; s.clear(); s.add(4); r = sorted(s)",
    "from dataclasses import dataclass, replace, fields, asdict, astuple\n@dataclass\nclass C:\n    w: int = 3\n    n: str = 'x'\nc = replace(C(), w=9)\nr = [c.w, c.n, [f.name for f in fields(C)], asdict(c)['w'], list(astuple(c))]",
    "from collections import namedtuple\nP = namedtuple('P', 'x y')\np = P(1, 2)._replace(y=7)\nr = [p.x, p.y, p._asdict()['y'], p.index(7), list(p)]",
    "from typing import NamedTuple\nclass P(NamedTuple):\n    x: int\n    y: int = 4\nr = [P(1)._replace(x=5).x, P(2)._asdict()['y']]",
    "from enum import Enum, IntEnum\nclass K(Enum):\n    A = 'a'\n    B = 'b'\nclass N(IntEnum):\n    X = 3\n    Y = 5\nr = [K['B'].value, int(N.Y), N.X + 1, [0, 1, 2, 3, 4, 5][N.Y], len(K), float(N.X), N['X'] == 3, [m.name for m in K]]",
    "from functools import cached_property\nclass C:\n    n = 0\n    @cached_property\n    def w(self):\n        C.n += 1\n        return [C.n]\nc = C()\nc.w.append(4)\nr = [c.w, c.w, C.n]",
    "import copy\na = {'x': [1, 2], 'y': (3, [4])}\nb = copy.deepcopy(a)\nc = copy.copy(a)\nb['x'].append(9)\nb['y'][1].append(8)\nc['x'].append(7)\nc['z'] = 1\nr = [a['x'], b['x'], list(b['y']), len(a)]",
    "import copy\nx = [1]\ny = copy.deepcopy([x, x])\ny[0].append(2)\nr = [x, y]",
    "import copy\nclass C:\n    def __init__(self): self.v = [1]\nc = C(); d = copy.deepcopy(c); e = copy.copy(c); d.v.append(2); e.v.append(3); e.v = 5\nr = [c.v, d.v, e.v]",
    "import copy; t = torch.zeros(3); u = copy.deepcopy(t); u[0] = 5; r = t.sum() + u.sum()",
    "r = ['abcabc'.index('b'), 'abcabc'.rindex('b'), 'abcabc'.find('c', 3), 'äbc'.find('c'), 'abc'.rfind('x')]",
    "'abc'.index('x')",
    "r = ['Ab'.swapcase(), 'A1'.isalnum(), 'AB'.isupper(), 'a b'.isspace(), 'x_1'.isidentifier(), 'ab'.startswith(('x', 'a'))]",
    "r = 'abca'.translate(str.maketrans('ab', 'xy', 'c'))",
    "r = ['%d' % 3, '%5.2f|' % 2.5, '%s=%r' % ('a', 'b'), '%-5d|' % 4, '%05d' % 42, '%x' % 255, '%%', '%d%%' % 5, '%(w)d' % {'w': 3}, '%e' % 12345.678, '%5s|' % 'ab']",
    "'%d %d' % (1,)",
    "'%d' % (1, 2)",
    "r = list(map(str.upper, ['a', 'b'])) + list(map(str.strip, [' c ']))",
    "import json; d = json.loads('{\"b\": [1, 2.5, null, true], \"a\": {\"x\": \"y\"}}'); r = [list(d), d['b'][0], d['b'][1], d['b'][2], d['b'][3], d['a']['x'], json.dumps(d)]",
    "import json; r = json.loads('{x}')",
    "import os; r = [os.environ.get('NO_SUCH_NAME_AT_ALL', '7'), os.getenv('NO_SUCH_NAME_AT_ALL')]",
    "r = [math.dist([0, 0], [3, 4]), math.fsum([0.1] * 10), math.perm(5, 2), math.ldexp(0.5, 3), math.prod(x for x in [2, 3, 4])]",
    "r = [math.fsum([1e16, 1.0, -1e16]), math.fsum([1e100, 1.0, -1e100]), math.fsum([0.1, 0.2, 0.3])]",
    "import statistics; r = [statistics.median([3, 1, 2]), statistics.median([4, 1, 2, 3]), statistics.mean([1, 2, 6]), statistics.fmean([0.5, 1.5]), statistics.mode([1, 2, 2]), statistics.pvariance([1, 3])]",
    "import heapq; h = [5, 1, 8, 3]; heapq.heapify(h); heapq.heappush(h, 2); r = [heapq.heappop(h) for _ in range(3)] + h + heapq.nlargest(2, [4, 9, 1]) + heapq.nsmallest(2, [4, 9, 1], key=lambda x: -x) + [heapq.heappushpop(h, 0), heapq.heapreplace(h, 99)] + h",
    "import bisect; x = [1, 3, 3, 7]; bisect.insort(x, 4); r = [bisect.bisect(x, 3), bisect.bisect_left(x, 3), bisect.bisect_right([5, 3, 1], -3, key=lambda v: -v)] + x",
    "from collections import deque; d = deque([1, 2, 3], maxlen=2); d.append(9); d.appendleft(5); d.rotate(1); r = [list(d), len(d), d[0], d[-1], 5 in d]",
    "import string; r = dict(zip(string.ascii_lowercase, [10, 20]))['b']",
    "r = {'w': 3}.w",
    "r = [1, 2].shape",
    "r = (3).window",
    "r = [hasattr({}, 'w'), hasattr([], 'append'), getattr(3, 'w', 8)]",
    "import numpy as np; r = int((np.arange(4) >= np.array([3, 2, 1, 0])).astype(int).sum()) + int((~(np.arange(3) > 1)).astype(np.int64).sum())",
]


def body(line):
    lines = [part.strip() for part in line.split(";")]
    if not lines[-1].startswith("return"):
        lines[-1] = "return " + lines[-1]
    return "".join(f"    {part}\n" for part in lines)


def score_at(b, h, q, k):
    """The score that a cell is given: the test makes the same."""
    return ((b * 7 + h * 5 + q * 3 + k * 11) % 41) / 4 - 5


def computed(kind, text):
    scope = {}
    try:
        exec(text, scope)
        mod = scope["mod"]
        if kind == "blocks":
            # attention computes the listed blocks alone: the full ones without the mask_mod
            size, given = mod.BLOCK_SIZE, mod.mask_mod
            heads = mod.kv_num_blocks.shape[1]
            cells = torch.zeros(B, H, Q, K, dtype=torch.bool)
            lists = [(mod.kv_num_blocks, mod.kv_indices, True), (mod.full_kv_num_blocks, mod.full_kv_indices, False)]
            for num, indices, masked in lists:
                for b, h, q, k in itertools.product(range(B), range(H), range(Q), range(K)) if num is not None else []:
                    row = indices[0, h % heads, q // size[0], : num[0, h % heads, q // size[0]]]
                    if k // size[1] in row.tolist():
                        cells[b, h, q, k] |= not masked or bool(given(*map(torch.tensor, (b, h, q, k))))
            return {"rows": ["".join("01"[int(c)] for c in row) for row in cells.reshape(-1, K)]}
        if kind == "mask":
            cells = create_mask(mod, B, H, Q, K, device="cpu")
            return {"rows": ["".join("01"[int(c)] for c in row) for row in cells.reshape(-1, K)]}
        b, h, q, k = (torch.arange(n) for n in SCORED)
        score = score_at(b[:, None, None, None], h[:, None, None], q[:, None], k).double()
        for dims in [(0, None, None, None, 0), (0, None, None, 0, None), (0, None, 0, None, None), (0, 0, None, None, None)]:
            mod = torch.vmap(mod, in_dims=dims, out_dims=0)
        out = mod(score, b, h, q, k).double().contiguous()
        return {"score": base64.b64encode(bytes(out.view(torch.uint8).flatten().tolist())).decode()}
    except Exception as error:
        return {"error": type(error).__name__}


# halves: a function is computed in float32 and rounded once; the cells show the bits of its result
SHORT = """
torch.asin(v[q])
torch.acos(v[q])
torch.atan(v[q] * 3)
torch.sinh(v[q])
torch.cosh(v[q])
torch.atanh(v[q])
torch.asinh(v[q] * 9)
torch.acosh(v[q] + 2)
torch.sinc(v[q])
torch.hypot(v[q], v[k])
torch.lerp(v[q], v[k], 0.3)
torch.lerp(v[q], v[k], 0.8)
torch.addcmul(v[q], v[k], v[(q + k) % 13], value=0.3)
torch.addcdiv(v[q], v[k], v[(q + k) % 13] + 2, value=0.3)
F.mish(v[q])
F.hardsigmoid(v[q])
F.hardswish(v[q])
F.celu(v[q])
F.selu(v[q])
F.softsign(v[q])
F.tanhshrink(v[q])
F.gelu(v[q])
F.silu(v[q])
F.softplus(v[q])
F.logsigmoid(v[q])
torch.logit(v[q] / 4 + 0.5)
v[:5].norm() * v[q]
(v[:5] * v[q]).norm()
torch.logaddexp(v[q], v[k])
"""

mods = []
for line in SHORT.strip().splitlines():
    for dtype in ("float16", "bfloat16"):
        made = f"v = (torch.arange(13) * 0.147 - 0.93).to(torch.{dtype}); x = {line}.float()"
        bits = "x * torch.tensor([2.0**n for n in range(2, 13)])[k] % 2 < 1"
        mods.append(("mask", HEAD + "def mod(b, h, q, k):\n" + body(f"{made}; {bits}")))
for line in MASKS.strip().splitlines():
    mods.append(("mask", HEAD + "def mod(b, h, q, k):\n" + body(line)))
for line in SCORES.strip().splitlines():
    mods.append(("score", HEAD + "def mod(score, b, h, q, k):\n" + body(line)))
mods += [(kind, HEAD + text) for kind, text in WHOLE]
mods = [{"kind": kind, "text": text[len(HEAD) :], "want": computed(kind, text)} for kind, text in mods]

ops.CASES.clear()
ops.cases(SETUP)
for code in PYTHON:
    ops.case(code)
out = {"cells": [B, H, Q, K], "scored": SCORED, "head": HEAD, "mods": mods, "setup": list(ops.CASES)}
path = pathlib.Path(__file__).with_name("torch_prelude.json")
path.write_text(json.dumps(out, indent=1) + "\n")
failed = [m["text"].strip().splitlines()[-1] for m in mods if "error" in m["want"]]
print(f"{len(mods)} mods, {len(ops.CASES)} statements, {path.stat().st_size} bytes; PyTorch refuses: {failed}")
