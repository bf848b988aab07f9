"""Derivatives of score mods by PyTorch's autograd: `python make_torch_grads.py OUT.json`.

Every case is one expression over score, b, h, q_idx, kv_idx and the captured tensors below, evaluated on single cells: the
score is float64, captured tensors keep their dtype. Recorded are the value, the derivative by the score and the derivative by
every captured element that is not zero; for what autograd refuses, that it does.
"""
import json, math, sys
import torch
import torch.nn.functional as F

INF = math.inf
SCORES = [-1000.0, -2.5, -1.0, -0.5, 0.0, 0.3, 1.0, 1.7, 6.0, 20.0, 95.0, 1000.0, INF, -INF, math.nan]


def captures():
    g = torch.Generator().manual_seed(3)
    w = torch.randn(4, generator=g)
    w[0], w[1] = 1.0, -0.5
    return {
        "w": w,
        "m": torch.randn(4, 6, generator=g),
        "s0": torch.tensor(0.75),
        "half": torch.randn(6, generator=g).to(torch.bfloat16),
        "wide": torch.randn(6, generator=g, dtype=torch.float64),
        "ids": torch.tensor([3, 1, 4, 1, 5, 0]),
    }


ONE = """abs exp exp2 log log2 log10 log1p expm1 sqrt rsqrt reciprocal sin cos tan tanh sigmoid erf floor ceil round trunc frac
sign square relu neg positive asinh""".split()
# compositions of those, in our prelude
COMPOSED = """sinh cosh atan sinc deg2rad erfc logit acosh atanh asin acos""".split()
ACTIVATIONS = "mish hardsigmoid hardswish softsign tanhshrink hardshrink softshrink celu selu".split()
NN = "relu6 silu gelu softplus logsigmoid elu leaky_relu hardtanh".split()
TWO = "maximum minimum fmax fmin atan2 fmod remainder pow mul sub div logaddexp".split()

TEXTS = [f"torch.{name}(score)" for name in ONE + COMPOSED]
TEXTS += [f"F.{name}(score)" for name in ACTIVATIONS]
TEXTS += [f"torch.{name}(score * w[h] + s0)" for name in ONE]
TEXTS += [f"F.{name}(score)" for name in NN]
TEXTS += [f"F.{name}(score - m[h, kv_idx])" for name in NN]
TEXTS += [f"torch.{name}(score, w[h])" for name in TWO]
TEXTS += [f"torch.{name}(w[h], score)" for name in TWO]
TEXTS += [f"torch.{name}(score, score)" for name in TWO]
TEXTS += """score
score + 1.0
2.0
score * 0.5 - 0.01 * (q_idx - kv_idx).abs()
score - w[h] * (q_idx - kv_idx)
score * s0
score + s0
torch.where(q_idx - kv_idx < 3, score + s0, score)
score + m[h, (q_idx - kv_idx).clamp(0, 5)]
score + m[h, kv_idx] * m[h, q_idx]
score * torch.sigmoid(m[h, q_idx])
score * torch.exp(m[h, q_idx])
score + half[kv_idx]
score * half[kv_idx] * half[q_idx]
score + (half[kv_idx] * 3.0).float()
score + wide[kv_idx] * w[h]
score * wide[kv_idx].float()
score + m[h, ids[kv_idx]]
score + w[ids[q_idx] % 4]
score + m[h].mean()
score + m[h].max()
score + torch.dot(m[h], m[q_idx % 4])
score + m[h, kv_idx].detach()
score.detach() * w[h]
(score * w[h]).detach() + score
score - score.detach()
score + score.detach() * score
score.data * s0 + score
torch.tanh(score / 20.0) * 20.0
20.0 * torch.tanh(score / 20.0) + w[h]
score ** 2
score ** 3
score ** 5
score ** 0.5
score ** -0.5
score ** -1
score ** -2
score ** 0
score ** 1.5
score ** 9
2.0 ** score
w[h] ** score
3.0 ** (score * 0.01)
score // 2.0
score * 0.0 + w[h] // 2.0
torch.div(score, 2.0, rounding_mode="floor") + score
torch.div(score, w[h], rounding_mode="trunc") + score
score % 2.0
score % w[h]
torch.fmod(score, 2.5)
score.clamp(0, 1)
score.clamp(min=1.0)
score.clamp(max=1.0)
score.clamp(-0.5, 6.0)
score.clamp(1.0, 1.0)
score.clamp(2.0, 1.0)
torch.clamp(score, min=w[h])
torch.clamp(score, max=w[h])
torch.clamp(w[h] * score, -20.0, 20.0)
score.clamp_min(1.0)
score.clamp_max(1.0)
w[h].clamp(-0.5, 1.0) * score
w[h].relu() + score
torch.maximum(w[h], s0) + score
torch.maximum(score, torch.zeros_like(score))
torch.minimum(score, torch.ones_like(score))
torch.where(score > 0, score.log(), score)
torch.where(score > 0, torch.sqrt(score), 0.0)
torch.where(score > 1, score, score * w[h])
torch.where(w[h] > 0, score, -score)
torch.where(score == 0, 1.0, torch.sin(score) / score)
score.masked_fill(score < 0, -5.0)
score.log().masked_fill(score <= 0, 0.0) + score
torch.floor(score) + score
torch.floor(score.log()) + score
torch.round(score, decimals=1) + score
score.int() * 2.0 + score
score.long().float() * w[h] + score
(score > 0).float() * w[h] + score
score.to(torch.float32) * 2.0
torch.abs(score) * torch.sign(score)
F.gelu(score, approximate="tanh")
F.elu(score, 0.5)
F.leaky_relu(score, 0.2)
F.hardtanh(score, -2.5, 2.5)
torch.sigmoid(score) * torch.log1p(torch.exp(-score))
torch.logsumexp(torch.stack([score, score * w[h]]), 0)
torch.stack([score, w[h], s0]).sum()
torch.stack([score, w[h]]).amax()
torch.stack([score, s0]).prod()
score / (1.0 + score.abs())
1.0 / score
w[h] / score
s0 / (score * score + 1.0)
-score
score * score * score
torch.exp(-score * score)
torch.rsqrt(score * score + s0)
torch.cos(score * q_idx + kv_idx)
score + torch.sin(w[h] * (q_idx - kv_idx))
score + torch.log(m[h, kv_idx].abs() + 1.0)
score * w[h].exp() + s0
score + w[h].tanh() * m[h, kv_idx].sigmoid()
score + (q_idx * w[h] - kv_idx * s0).relu()
score * (1.0 if True else s0)
torch.special.expit(score)
torch.hypot(score, w[h])
torch.lerp(score.float(), w[h], 0.3)
torch.addcmul(score, m[h, kv_idx], s0, value=0.3)
torch.addcmul(w[h], score, s0)
torch.addcdiv(score, m[h, kv_idx], s0, value=0.5)
torch.xlogy(w[h], score)
torch.copysign(score, w[h].double())
torch.logaddexp2(score, w[h])
torch.nan_to_num(score, 0.5, 1e30, -1e30) * s0
torch.i0(score)
torch.special.i1(score)
torch.logit(score, 0.2)
torch.copysign(score * w[h], s0)
F.celu(score, 0.5)
torch.stack([score, w[h], s0]).std()
torch.stack([score, w[h], s0]).norm()
torch.softmax(torch.stack([score, w[h], s0]), 0)[1]
torch.cumsum(torch.stack([score, w[h], s0]), 0)[1]
torch.stack([score, w[h], s0]).sort().values[0]
F.threshold(score, 0.1, -0.5) * s0
score + torch.erf(wide[kv_idx]) * w[h]
torch.where((q_idx >= kv_idx) & (w[h] > 0), score * w[h], score + s0)""".splitlines()


def evaluate(text, given, score, h, q, k):
    """The value, and the derivative by the score and each captured tensor; None for what autograd refuses."""
    learn = {n: t.clone().requires_grad_(t.is_floating_point()) for n, t in given.items()}
    x = torch.tensor(score, dtype=torch.float64, requires_grad=True)
    index = dict(b=torch.tensor(0), h=torch.tensor(h), q_idx=torch.tensor(q), kv_idx=torch.tensor(k))
    y = eval(text, {"torch": torch, "F": F, **learn, **index, "score": x})
    y = y if isinstance(y, torch.Tensor) else torch.tensor(y, dtype=torch.float64)
    names = [n for n, t in learn.items() if t.requires_grad]
    if not y.requires_grad:
        return y.item(), 0.0, {}
    found = torch.autograd.grad(y, [x] + [learn[n] for n in names], allow_unused=True)
    taken = {}
    for name, gradient in zip(names, found[1:]):
        if gradient is not None:
            flat = gradient.double().flatten().tolist()
            taken[name] = {str(i): number(v) for i, v in enumerate(flat) if v != 0.0}
    return y.item(), 0.0 if found[0] is None else found[0].item(), {n: t for n, t in taken.items() if t}


def number(x):
    return x if math.isfinite(x) else str(x)


def main():
    given, cases = captures(), []
    for text in TEXTS:
        cells, refused = [], False
        for at, score in enumerate(SCORES):
            h, q, k = at % 4, (at * 5 + 2) % 6, (at * 7) % 6
            try:
                value, by_score, taken = evaluate(text, given, score, h, q, k)
            except (RuntimeError, NotImplementedError) as why:
                assert "derivative" in str(why), (text, why)
                refused = True
                break
            cells.append([number(score), h, q, k, number(value), number(by_score), taken])
        # a tie of score and element
        for h in range(4) if not refused else []:
            score = given["w"][h].item()
            value, by_score, taken = evaluate(text, given, score, h, 4, 2)
            cells.append([number(score), h, 4, 2, number(value), number(by_score), taken])
        cases.append({"text": text, "refused": True} if refused else {"text": text, "cells": cells})
    tensors = {
        n: {"dtype": str(t.dtype).removeprefix("torch."), "shape": list(t.shape), "values": t.double().flatten().tolist()}
        for n, t in given.items()
    }
    with open(sys.argv[1], "w") as f:
        json.dump({"torch": torch.__version__, "tensors": tensors, "cases": cases}, f, separators=(",", ":"))
    print(len(cases), "cases", sum(len(c.get("cells", [])) for c in cases), "cells")


main()
