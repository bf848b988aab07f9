"""Norms, products, means and their kin, as compositions of what a mod may compute.

Every function gives PyTorch's values and dtypes. Its first parameter is `input` where PyTorch has the method too.
"""
import math

import torch


def _dims(x, dim):
    if dim is None:
        return list(range(x.dim()))
    return [d % max(x.dim(), 1) for d in ([dim] if isinstance(dim, int) else list(dim))]


def _summed(x, dim, keepdim=False):
    if x.dim() == 0:
        return x
    if dim is None and not keepdim:
        return x.sum()
    return x.sum(_dims(x, dim), keepdim)


def _wide(x):
    """Floats in double precision: what PyTorch fuses or adds up there is rounded once."""
    return x.double() if x.is_floating_point() else x


def _floats(name, x):
    if not x.is_floating_point():
        raise RuntimeError(f"{name} wants floats, not {x.dtype}: write `.float()` first")
    return x


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    x = _floats("softmax", input if dtype is None else input.to(dtype))
    if x.dim() == 0:
        return torch.exp(x - x)
    power = torch.exp(x - x.amax(dim, True))
    return power / power.sum(dim, True)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    x = _floats("log_softmax", input if dtype is None else input.to(dtype))
    if x.dim() == 0:
        return x - x
    x = x - x.amax(dim, True)
    return x - torch.log(torch.exp(x).sum(dim, True))


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    return softmax(-input, dim, dtype=dtype)


def logsumexp(input, dim, keepdim=False):
    x = input if input.is_floating_point() else input.to(torch.get_default_dtype())
    if x.dim() == 0:
        return x
    dims = _dims(x, dim)
    largest = x.amax(dims, True)
    finite = torch.where(torch.isinf(largest), 0.0, largest)
    out = torch.log(torch.exp(x - finite).sum(dims, True)) + finite
    return out if keepdim else _without(out, dims)


def _without(x, dims):
    for d in sorted(dims, reverse=True):
        x = x.squeeze(d)
    return x


def var_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    x = _floats("var and std", input)
    correction = (1 if unbiased is None or unbiased else 0) if correction is None else correction
    dims = _dims(x, dim)
    count = 1
    for d in dims:
        count *= x.shape[d] if x.dim() else 1
    wide = _wide(x)
    mean = _summed(wide, dims, True) / count
    apart = wide - mean
    var = _summed(apart * apart, dims, True) / max(count - correction, 0) if count > correction else _summed(apart, dims, True) * math.nan
    mean = torch.where(torch.isinf(mean), math.nan, mean)
    var, mean = var.to(x.dtype), mean.to(x.dtype)
    return (var, mean) if keepdim else (_without(var, dims), _without(mean, dims))


def var(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    return var_mean(input, dim, unbiased, keepdim, correction=correction)[0]


def std_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    var_, mean = var_mean(_floats("std", input).double(), dim, unbiased, keepdim, correction=correction)
    return torch.sqrt(var_).to(input.dtype), mean.to(input.dtype)


def std(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    return std_mean(input, dim, unbiased, keepdim, correction=correction)[0]


def _norm(x, p, dim, keepdim):
    # halves are float32 until the end
    short = x.dtype in (torch.float16, torch.bfloat16)
    return _norm_of(x.float(), p, dim, keepdim).to(x.dtype) if short else _norm_of(x, p, dim, keepdim)


def _norm_of(x, p, dim, keepdim):
    size = x.abs()
    if p == math.inf or p == -math.inf:
        if x.dim() == 0:
            return size
        pick = size.amax if p > 0 else size.amin
        return pick(_dims(x, dim), keepdim)
    if p == 0:
        return _summed((x != 0).to(x.dtype), dim, keepdim)
    if p == 1:
        return _summed(size, dim, keepdim)
    if p == 2:
        return torch.sqrt(_summed(x * x, dim, keepdim))
    return torch.pow(_summed(torch.pow(size, p), dim, keepdim), 1 / p)


def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    x = _floats("norm", input if dtype is None else input.to(dtype))
    if p == "nuc":
        raise NotImplementedError("the nuclear norm is not computed here")
    return _norm(x, 2 if p in ("fro", None) else p, dim, keepdim)


def linalg__vector_norm(input, ord=2, dim=None, keepdim=False, *, dtype=None):
    return _norm(_floats("linalg.vector_norm", input if dtype is None else input.to(dtype)), ord, dim, keepdim)


def linalg__norm(input, ord=None, dim=None, keepdim=False, *, dtype=None):
    x = _floats("linalg.norm", input if dtype is None else input.to(dtype))
    dims = x.dim() if dim is None else 1 if isinstance(dim, int) else len(dim)
    if dims == 2 and ord not in (None, "fro"):
        raise NotImplementedError("norms of matrices are not computed here, but for the Frobenius norm")
    return _norm(x, 2 if ord in (None, "fro") else ord, dim, keepdim)


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    return input / _norm(input, p, dim, True).clamp_min(eps)


def cosine_similarity(x1, x2, dim=1, eps=1e-08):
    x1, x2 = torch.broadcast_tensors(x1, x2)
    size1, size2 = _norm(x1, 2, dim, True).clamp_min(eps), _norm(x2, 2, dim, True).clamp_min(eps)
    return ((x1 / size1) * (x2 / size2)).sum(dim)


def pairwise_distance(x1, x2, p=2.0, eps=1e-06, keepdim=False):
    return _norm(x1 - x2 + eps, p, -1, keepdim)


def linalg__cross(input, other, *, dim=-1):
    a, b = torch.broadcast_tensors(input, other)
    if a.shape[dim] != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3.")
    a, b = a.unbind(dim), b.unbind(dim)

    def apart(i, j):
        # a fused multiply-add: the second product is rounded, the first is not
        return (_wide(a[i]) * _wide(b[j]) - _wide(a[j] * b[i])).to((a[i] * b[j]).dtype)

    return torch.stack([apart(1, 2), apart(2, 0), apart(0, 1)], dim)


def cross(input, other, dim=None):
    if dim is None:
        dim = [d for d, n in enumerate(input.shape) if n == 3][0]
    return linalg__cross(input, other, dim=dim)


def outer(input, vec2):
    if input.dim() != 1 or vec2.dim() != 1:
        raise RuntimeError("outer: Expected 1-D arguments")
    return input.unsqueeze(1) * vec2.unsqueeze(0)


def ger(input, vec2):
    return outer(input, vec2)


def matmul(input, other):
    a, b = input, other
    if a.dim() == 0 or b.dim() == 0:
        raise RuntimeError("both arguments to matmul need to be at least 1D")
    if b.dim() == 1:
        return (a * b).sum(-1)
    if a.dim() == 1:
        return (a.unsqueeze(-1) * b).sum(-2)
    if a.shape[-1] != b.shape[-2]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({list(a.shape)} and {list(b.shape)})")
    return (a.unsqueeze(-1) * b.unsqueeze(-3)).sum(-2)


def mm(input, mat2):
    return matmul(input, mat2)


def bmm(input, mat2):
    return matmul(input, mat2)


def linalg__vecdot(x, y, *, dim=-1):
    return (x * y).sum(dim)


def linalg__matmul(input, other):
    return matmul(input, other)


def einsum(equation, *operands):
    operands = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else list(operands)
    equation = equation.replace(" ", "")
    if "..." in equation:
        raise NotImplementedError("einsum with `...` is not computed inside a mod: name the dimensions")
    left, arrow, right = equation.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(operands):
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    if not arrow:
        right = "".join(sorted(c for c in set(left.replace(",", "")) if left.count(c) == 1))
    labels = right + "".join(sorted(set(left.replace(",", "")) - set(right)))
    product = None
    for names, x in zip(inputs, operands):
        if len(names) != x.dim():
            raise RuntimeError(f"einsum(): the number of subscripts in the equation ({len(names)}) does not match the number of dimensions ({x.dim()})")
        while len(set(names)) < len(names):
            i, j = [(i, j) for i, a in enumerate(names) for j, b in enumerate(names) if i < j and a == b][0]
            at = torch.arange(x.shape[i])
            order = [d for d in range(x.dim()) if d not in (i, j)]
            x = x.permute([i, j] + order)[at, at] if order else x[at, at]
            names = names[i] + "".join(names[d] for d in order)
        order = [names.index(c) for c in labels if c in names]
        x = x.permute(order) if order else x
        for d, c in enumerate(labels):
            x = x if c in names else x.unsqueeze(d)
        product = x if product is None else product * x
    for d in range(len(labels) - 1, len(right) - 1, -1):
        product = product.sum(d)
    return product


def tensordot(a, b, dims=2, out=None):
    if isinstance(dims, int):
        dims = (list(range(a.dim() - dims, a.dim())), list(range(dims)))
    gone_a, gone_b = [[d % x.dim() for d in ds] for x, ds in ((a, dims[0]), (b, dims[1]))]
    letters = "abcdefghijklmnopqrstuvwxyz"
    names_a = list(letters[: a.dim()])
    names_b = list(letters[a.dim() : a.dim() + b.dim()])
    for i, j in zip(gone_a, gone_b):
        names_b[j] = names_a[i]
    kept = [c for d, c in enumerate(names_a) if d not in gone_a] + [c for d, c in enumerate(names_b) if d not in gone_b]
    return einsum("".join(names_a) + "," + "".join(names_b) + "->" + "".join(kept), a, b)
