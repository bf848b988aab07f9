"""Order, running totals and picks along a dimension, as compositions of what a mod may compute.

Every function gives PyTorch's values and dtypes. Its first parameter is `input` where PyTorch has the method too.
"""
import torch

# Elements that an unrolled sort takes at most; PyTorch's own order of equal elements is that of a stable sort up to 16.
_MOST = 32
_STABLE = 16


def _axis(x, dim):
    n = max(x.dim(), 1)
    if not -n <= dim < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    return dim % n


def _slices(x, dim):
    """What lies along a dimension: tensors without it."""
    d = _axis(x, dim)
    if x.dim() == 0:
        return [x]
    return [x[(slice(None),) * d + (i,)] for i in range(x.shape[d])]


def _joined(slices, x, dim):
    """Slices along a dimension of x put together again."""
    return slices[0] if x.dim() == 0 else torch.stack(slices, _axis(x, dim))


def _kept(x, like, dim, keepdim):
    return x.unsqueeze(_axis(like, dim)) if keepdim and like.dim() > 0 else x


def _above(a, b):
    """Whether a comes after b in ascending order: NaN is the largest."""
    after = a > b
    return after | (torch.isnan(a) & ~torch.isnan(b)) if a.is_floating_point() else after


def _best(slices, largest):
    """The first of the largest (smallest) slices, and its place; NaN wins."""
    best, at = slices[0], torch.zeros_like(slices[0], dtype=torch.int64)
    for i in range(1, len(slices)):
        x = slices[i]
        better = x > best if largest else x < best
        if x.is_floating_point():
            better = (better | torch.isnan(x)) & ~torch.isnan(best)
        best, at = torch.where(better, x, best), torch.where(better, i, at)
    return best, at


def _arg(name, x, dim, keepdim, largest):
    if x.dtype == torch.bool:
        raise RuntimeError(f"{name} is not implemented for bool: write `.int()` first")
    if dim is None:
        places = _best(_slices(x.reshape(-1), 0), largest)[1]
        return places.reshape([1] * x.dim()) if keepdim else places
    return _kept(_best(_slices(x, dim), largest)[1], x, dim, keepdim)


def argmax(input, dim=None, keepdim=False):
    return _arg("argmax", input, dim, keepdim, True)


def argmin(input, dim=None, keepdim=False):
    return _arg("argmin", input, dim, keepdim, False)


def max_along(input, dim, keepdim=False):
    best, at = _best(_slices(input, dim), True)
    return _kept(best, input, dim, keepdim), _kept(at, input, dim, keepdim)


def min_along(input, dim, keepdim=False):
    best, at = _best(_slices(input, dim), False)
    return _kept(best, input, dim, keepdim), _kept(at, input, dim, keepdim)


def aminmax(input, *, dim=None, keepdim=False):
    if dim is None:
        return input.amin(), input.amax()
    return input.amin(dim, keepdim), input.amax(dim, keepdim)


def _ordered(x, dim, descending):
    """Slices along a dimension in order, equal ones in their old order, and their places."""
    slices = _slices(x, dim)
    n = len(slices)
    if n > _MOST:
        raise NotImplementedError(f"a mod orders at most {_MOST} elements, and these are {n}: order the tensor outside the mod")
    places = [torch.full_like(slices[0], i, dtype=torch.int64) for i in range(n)]
    for done in range(n):
        for i in range(n - 1 - done):
            a, b, p, r = slices[i], slices[i + 1], places[i], places[i + 1]
            swap = _above(b, a) if descending else _above(a, b)
            slices[i], slices[i + 1] = torch.where(swap, b, a), torch.where(swap, a, b)
            places[i], places[i + 1] = torch.where(swap, r, p), torch.where(swap, p, r)
    return slices, places


def _unsure(name):
    return unknown(f"{name}() leaves the places of equal elements open: write torch.sort(x, stable=True), or use the values alone")


def sort(input, dim=-1, descending=False, stable=False):
    slices, places = _ordered(input, dim, descending)
    sure = stable or len(slices) <= _STABLE
    return _joined(slices, input, dim), _joined(places, input, dim) if sure else _unsure("sort")


def argsort(input, dim=-1, descending=False, stable=False):
    return sort(input, dim, descending, stable)[1]


def msort(input):
    return sort(input, 0)[0]


def topk(input, k, dim=None, largest=True, sorted=True):
    if input.dtype == torch.bool:
        raise RuntimeError("topk does not support bool dtypes on CPU")
    dim = -1 if dim is None else dim
    slices, places = _ordered(input, dim, largest)
    if k > len(slices):
        raise RuntimeError("selected index k out of range")
    if input.dim() == 0:
        return slices[0], places[0]
    return torch.stack(slices[:k], _axis(input, dim)), places[0].unsqueeze(_axis(input, dim)) if k == 1 == len(slices) else _unsure("topk")


def kthvalue(input, k, dim=-1, keepdim=False):
    slices, places = _ordered(input, dim, False)
    if not 1 <= k <= len(slices):
        raise RuntimeError("kthvalue(): selected number k out of range for dimension")
    return _kept(slices[k - 1], input, dim, keepdim), places[0] if len(slices) == 1 else _unsure("kthvalue")


def median(input, dim=None, keepdim=False):
    if input.dtype == torch.bool:
        raise RuntimeError("median is not implemented for bool: write `.int()` first")
    if dim is None:
        return _middle(input.reshape(-1), 0)
    return _kept(_middle(input, dim), input, dim, keepdim), _unsure("median")


def _middle(x, dim):
    slices, places = _ordered(x, dim, False)
    middle = slices[(len(slices) - 1) // 2]
    # NaN comes last
    return torch.where(torch.isnan(slices[-1]), slices[-1], middle) if x.is_floating_point() else middle


def nanmedian(input, dim=None, keepdim=False):
    if input.is_floating_point():
        raise NotImplementedError("nanmedian is not computed inside a mod: use torch.where and median")
    return median(input, dim, keepdim)


def _running(x, dim, step):
    slices, out = _slices(x, dim), []
    for x_i in slices:
        out.append(x_i if not out else step(out[-1], x_i))
    return _joined(out, x, dim)


def _counted(x, dtype):
    if dtype is not None:
        return x.to(dtype)
    return x if x.is_floating_point() else x.to(torch.int64)


def _wide(x):
    """Floats in double precision, which PyTorch's running totals have until they are stored."""
    return x.double() if x.is_floating_point() else x


def cumsum(input, dim, *, dtype=None):
    x = _counted(input, dtype)
    return _running(_wide(x), dim, lambda a, b: a + b).to(x.dtype)


def cumprod(input, dim, *, dtype=None):
    x = _counted(input, dtype)
    return _running(_wide(x), dim, lambda a, b: a * b).to(x.dtype)


def logcumsumexp(input, dim):
    if not input.is_floating_point():
        raise RuntimeError(f"logcumsumexp is not implemented for {input.dtype}: write `.float()` first")
    return _running(input, dim, torch.logaddexp)


def _running_best(x, dim, largest):
    slices = _slices(x, dim)
    best, at = slices[0], torch.zeros_like(slices[0], dtype=torch.int64)
    bests, places = [best], [at]
    for i in range(1, len(slices)):
        x_i = slices[i]
        better = x_i >= best if largest else x_i <= best
        if x_i.is_floating_point():
            better = torch.isnan(x_i) | (better & ~torch.isnan(best))
        best, at = torch.where(better, x_i, best), torch.where(better, i, at)
        bests.append(best)
        places.append(at)
    return _joined(bests, x, dim), _joined(places, x, dim)


def cummax(input, dim):
    return _running_best(input, dim, True)


def cummin(input, dim):
    return _running_best(input, dim, False)


def diff(input, n=1, dim=-1, prepend=None, append=None):
    parts = [p for p in (prepend, input, append) if p is not None]
    x = torch.cat(parts, dim) if len(parts) > 1 else input
    for _ in range(n):
        slices = _slices(x, dim)
        if len(slices) < 2:
            return narrow(x, dim, 0, 0)
        pairs = zip(slices[1:], slices[:-1])
        x = torch.stack([a ^ b if x.dtype == torch.bool else a - b for a, b in pairs], _axis(x, dim))
    return x


def count_nonzero(input, dim=None):
    return (input != 0).sum() if dim is None else (input != 0).sum(dim)


def nansum(input, dim=None, keepdim=False, *, dtype=None):
    x = torch.where(torch.isnan(input), 0, input) if input.is_floating_point() else input
    x = x if dtype is None else x.to(dtype)
    return x.sum() if dim is None else x.sum(dim, keepdim)


def nanmean(input, dim=None, keepdim=False, *, dtype=None):
    count = (~torch.isnan(input)).sum() if dim is None else (~torch.isnan(input)).sum(dim, keepdim)
    return nansum(input, dim, keepdim, dtype=dtype) / count


def gather(input, dim, index, *, sparse_grad=False):
    if input.dim() == 0:
        return input.expand(index.shape) if index.dim() else input
    d = _axis(input, dim)
    if index.dim() != input.dim():
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    return _picked(input, d, index)


def _picked(x, d, index):
    """x at `index` along dimension d, and at its own place along the others."""
    places = []
    for i, n in enumerate(index.shape):
        shape = [1] * index.dim()
        shape[i] = n
        places.append(index if i == d else torch.arange(n).reshape(shape))
    return x[tuple(places)]


def take_along_dim(input, indices, dim=None):
    if dim is None:
        return input.reshape(-1)[indices.reshape(-1)]
    d = _axis(input, dim)
    own, wanted = list(input.shape), list(indices.shape)
    rows, picks = own[d], wanted[d]
    own[d] = wanted[d] = 1
    common = list(torch.broadcast_shapes(tuple(own), tuple(wanted)))
    common[d] = picks
    indices = indices if list(indices.shape) == common else indices.expand(common)
    common[d] = rows
    return _picked(input if list(input.shape) == common else input.expand(common), d, indices)


def take(input, index):
    return input.reshape(-1)[index]


def narrow(input, dim, start, length):
    d = _axis(input, dim)
    n = input.shape[d]
    start = start + n if start < 0 else start
    if length < 0 or start < 0 or start + length > n:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    return input[(slice(None),) * d + (slice(start, start + length),)]


def select(input, dim, index):
    return input[(slice(None),) * _axis(input, dim) + (index,)]


def unbind(input, dim=0):
    if input.dim() == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return tuple(_slices(input, dim))


def split(input, split_size_or_sections, dim=0):
    d = _axis(input, dim)
    n = input.shape[d]
    sizes = split_size_or_sections
    if isinstance(sizes, int):
        size = sizes
        sizes = [min(size, n - at) for at in range(0, n, size)] if n else [0]
    if sum(sizes) != n:
        raise RuntimeError(f"split_with_sizes expects split_sizes to sum exactly to {n}, but got split_sizes={list(sizes)}")
    out, at = [], 0
    for size in sizes:
        out.append(narrow(input, d, at, size))
        at += size
    return tuple(out)


def chunk(input, chunks, dim=0):
    n = input.shape[_axis(input, dim)]
    return split(input, max(-(-n // chunks), 1), dim)


def tensor_split(input, indices_or_sections, dim=0):
    n = input.shape[_axis(input, dim)]
    if isinstance(indices_or_sections, int):
        parts = indices_or_sections
        return split(input, [n // parts + (i < n % parts) for i in range(parts)], dim)
    cuts = [min(max(c + n if c < 0 else c, 0), n) for c in indices_or_sections]
    starts, ends = [0] + cuts, cuts + [n]
    return tuple(narrow(input, dim, min(a, n), max(b - a, 0)) for a, b in zip(starts, ends))


def roll(input, shifts, dims=None):
    if dims is None:
        return roll(input.reshape(-1), shifts, 0).reshape(input.shape)
    shifts = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    dims = (dims,) if isinstance(dims, int) else tuple(dims)
    if len(shifts) != len(dims):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    if input.dim() == 0:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    for shift, dim in zip(shifts, dims):
        slices = _slices(input, dim)
        n = len(slices)
        input = _joined([slices[(i - shift) % n] for i in range(n)], input, dim)
    return input


def flip(input, *dims):
    dims = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    for dim in dims:
        input = _joined(_slices(input, dim)[::-1], input, dim)
    return input


def fliplr(input):
    return flip(input, 1)


def flipud(input):
    return flip(input, 0)


def repeat(input, *sizes):
    sizes = tuple(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    if len(sizes) < input.dim():
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    for _ in range(len(sizes) - input.dim()):
        input = input.unsqueeze(0)
    for dim, n in enumerate(sizes):
        if n != 1:
            input = torch.cat([input] * n, dim)
    return input


def tile(input, *dims):
    dims = tuple(dims[0]) if len(dims) == 1 and not isinstance(dims[0], int) else dims
    return repeat(input, (1,) * (input.dim() - len(dims)) + dims)


def repeat_interleave(input, repeats, dim=None, *, output_size=None):
    if dim is None:
        input, dim = input.reshape(-1), 0
    slices = _slices(input, dim)
    if isinstance(repeats, torch.Tensor):
        repeats = repeats.tolist()
    counts = [repeats] * len(slices) if isinstance(repeats, int) else list(repeats)
    counts = counts * len(slices) if len(counts) == 1 else counts
    return _joined([s for s, n in zip(slices, counts) for _ in range(n)], input, dim)


def hstack(tensors):
    tensors = [t.reshape(1) if t.dim() == 0 else t for t in tensors]
    return torch.cat(tensors, 0 if tensors[0].dim() == 1 else 1)


def vstack(tensors):
    return torch.cat([t.reshape(1, -1) if t.dim() < 2 else t for t in tensors], 0)


def column_stack(tensors):
    return torch.cat([t.reshape(-1, 1) if t.dim() < 2 else t for t in tensors], 1)


def ravel(input):
    return input.reshape(-1)


def view_as(input, other):
    return input.reshape(other.shape)


def reshape_as(input, other):
    return input.reshape(other.shape)


def unflatten(input, dim, sizes):
    d = _axis(input, dim)
    shape = list(input.shape)
    return input.reshape(shape[:d] + list(sizes) + shape[d + 1 :]) if -1 not in sizes else _unflattened(input, d, list(sizes))


def _unflattened(input, d, sizes):
    known = 1
    for n in sizes:
        known *= n if n != -1 else 1
    sizes[sizes.index(-1)] = input.shape[d] // known
    return unflatten(input, d, sizes)


def broadcast_tensors(*tensors):
    shape = torch.broadcast_shapes(*[t.shape for t in tensors])
    return tuple(t.expand(shape) if shape else t for t in tensors)


def unravel_index(indices, shape):
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    out = []
    for n in reversed(shape):
        out.append(indices % n)
        indices = indices // n
    return tuple(out[::-1])
