"""Functions of tensors whose values are known: what factories compute before the mod is traced.

Sums run in double precision and are rounded once. A first parameter called `input` makes a method too.
"""
import itertools
import math

import torch


def _wide(x):
    return x.double() if x.is_floating_point() else x


def combinations(input, r=2, with_replacement=False):
    if input.dim() != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    picked = list(choose(range(len(input)), r))
    return input[torch.tensor(picked, dtype=torch.int64).reshape(-1, r)] if picked else input[:0].reshape(0, r)


def kron(input, other):
    n = max(input.dim(), other.dim())
    a = input.reshape((1,) * (n - input.dim()) + tuple(input.shape))
    b = other.reshape((1,) * (n - other.dim()) + tuple(other.shape))
    shape = [i * j for i, j in zip(a.shape, b.shape)]
    for d in range(n):
        a, b = a.unsqueeze(2 * d + 1), b.unsqueeze(2 * d)
    return (a * b).reshape(shape)


def vander(x, N=None, increasing=False):
    N = len(x) if N is None else N
    if N == 0:
        return x[:0].reshape(len(x), 0)
    columns = [torch.ones_like(x)]
    for _ in range(N - 1):
        columns.append(columns[-1] * x)
    return torch.stack(columns if increasing else columns[::-1], -1)


def kthvalue(input, k, dim=-1, keepdim=False):
    if input.dim() == 0:
        return input, torch.zeros_like(input, dtype=torch.int64)
    values, places = torch.sort(input, dim=dim, stable=True)
    d = dim % input.dim()
    if not 1 <= k <= input.shape[d]:
        raise RuntimeError("kthvalue(): selected number k out of range for dimension %d" % d)
    pick = (slice(None),) * d + ((slice(k - 1, k) if keepdim else k - 1),)
    twice = values[(slice(None),) * d + (slice(1, None),)] == values[(slice(None),) * d + (slice(None, -1),)]
    return values[pick], unknown("kthvalue() leaves the places of equal elements open: use the values alone") if twice.any() else places[pick]


def mode(input, dim=-1, keepdim=False):
    x = torch.movedim(input, dim, -1)
    rows = x.reshape(-1, x.shape[-1])
    found = []
    for row in rows:
        values, counts = torch.unique(row, return_counts=True)
        found.append(values[counts.argmax()])
    out = torch.stack(found).reshape(x.shape[:-1])
    out = out.unsqueeze(dim) if keepdim else out
    return out, unknown("mode() leaves open which of the equal elements it names: use the values alone")


def quantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    return _quantile(input, q, dim, keepdim, interpolation, False)


def nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    return _quantile(input, q, dim, keepdim, interpolation, True)


def _quantile(x, q, dim, keepdim, interpolation, ignore_nan):
    if x.dtype not in (torch.float32, torch.float64):
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    q = q if isinstance(q, torch.Tensor) else torch.tensor(q, dtype=x.dtype)
    if q.min() < 0 or q.max() > 1:
        raise RuntimeError("quantile() q values must be in the range [0, 1]")
    shape = [1] * x.dim() if dim is None else list(x.shape)
    rows = x.reshape(1, -1) if dim is None else torch.movedim(x, dim, -1)
    if dim is not None:
        shape[dim % x.dim()] = 1
    ordered = torch.sort(rows, dim=-1, stable=True).values
    if ignore_nan:
        last = (~torch.isnan(rows)).sum(-1, True).sub(1).clamp_min(0).to(x.dtype)
    else:
        last = torch.full_like(rows[..., :1], rows.shape[-1] - 1)
        last = torch.where(torch.isnan(rows).any(-1, True), math.nan, last)
    results = []
    for level in q.reshape(-1):
        rank = torch.nan_to_num(level.double() * last.double(), nan=0.0)
        rank = {"lower": torch.floor, "higher": torch.ceil, "nearest": torch.round}.get(interpolation, lambda r: r)(rank)
        below = rank.to(torch.int64)
        value = ordered.gather(-1, below)
        if interpolation in ("linear", "midpoint"):
            above = ordered.gather(-1, torch.ceil(rank).to(torch.int64))
            share = torch.full_like(rank, 0.5) if interpolation == "midpoint" else rank - below
            share = share.to(x.dtype)
            # PyTorch's lerp starts from the nearer end, and rounds once
            apart, near = (above - value).double(), share < 0.5
            start, share = torch.where(near, value, above), torch.where(near, share, share - 1)
            value = (share.double() * apart + start.double()).to(x.dtype)
        value = torch.where(torch.isnan(last), math.nan, value)
        flat = value.squeeze(-1)
        results.append(flat.reshape(shape) if keepdim else flat.reshape(()) if dim is None else flat)
    return results[0] if q.dim() == 0 else torch.stack(results)


def cdist(x1, x2, p=2.0, compute_mode=None):
    if not (x1.is_floating_point() and x2.is_floating_point()):
        raise RuntimeError(f"cdist only supports floating-point dtypes, X1 got: {x1.dtype}: write `.float()` first")
    apart = (_wide(x1).unsqueeze(-2) - _wide(x2).unsqueeze(-3)).abs()
    if p == 0:
        out = (apart != 0).sum(-1)
    elif p == math.inf:
        out = apart.amax(-1)
    elif p == 2:
        out = (apart * apart).sum(-1).sqrt()
    else:
        out = (apart**p).sum(-1) ** (1 / p)
    return out.to(x1.dtype)


def pdist(input, p=2.0):
    n = len(input)
    i, j = torch.triu_indices(n, n, 1)
    return cdist(input, input, p)[i, j]


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05):
    dims = list(range(input.dim() - len(normalized_shape), input.dim()))
    x = input.double()
    x = x - x.mean(dims, True)
    out = x / ((x * x).mean(dims, True) + eps).sqrt()
    return _scaled(out, weight, bias).to(input.dtype)


def rms_norm(input, normalized_shape, weight=None, eps=None):
    dims = list(range(input.dim() - len(normalized_shape), input.dim()))
    x = input.double()
    eps = torch.finfo(input.dtype).eps if eps is None else eps
    return _scaled(x / ((x * x).mean(dims, True) + eps).sqrt(), weight, None).to(input.dtype)


def _scaled(x, weight, bias):
    x = x if weight is None else x * weight.double()
    return x if bias is None else x + bias.double()


def linear(input, weight, bias=None):
    out = input.double() @ weight.double().t() if weight.dim() == 2 else input.double() @ weight.double()
    return _scaled(out, None, bias).to(input.dtype)


def _each(value, n):
    return (value,) * n if isinstance(value, int) else tuple(value) * (n if len(value) == 1 else 1)


def _windows(x, size, stride, dilation=None):
    """The windows of the last len(size) dimensions: [..., places..., elements...]."""
    n = len(size)
    dilation = dilation or (1,) * n
    first = x.dim() - n
    for d in range(n):
        axis = first + d
        span = dilation[d] * (size[d] - 1) + 1
        x = x.unfold(axis, span, stride[d])[..., :: dilation[d]]
    return x


def _pooled(input, n, kernel_size, stride, padding, fill, ceil_mode, dilation, reduce):
    if ceil_mode:
        raise NotImplementedError("pooling with ceil_mode=True is not computed here: pad the tensor first")
    size, padding, dilation = _each(kernel_size, n), _each(padding, n), _each(dilation, n)
    stride = size if stride is None or stride == [] else _each(stride, n)
    pads = [p for d in reversed(padding) for p in (d, d)]
    x = torch.nn.functional.pad(input, pads, value=fill) if any(padding) else input
    windows = _windows(x, size, stride, dilation)
    return reduce(windows, list(range(windows.dim() - n, windows.dim())))


def _max_pool(input, n, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    if return_indices:
        raise NotImplementedError("pooling with return_indices=True is not computed here")
    least = -math.inf if input.is_floating_point() else torch.iinfo(input.dtype).min
    return _pooled(input, n, kernel_size, stride, padding, least, ceil_mode, dilation, lambda w, dims: w.amax(dims))


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    return _max_pool(input, 1, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    return _max_pool(input, 2, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    return _max_pool(input, 3, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def _avg_pool(input, n, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override=None):
    if any(_each(padding, n)) and not count_include_pad:
        raise NotImplementedError("average pooling with count_include_pad=False is not computed here")
    if not input.is_floating_point():
        raise RuntimeError(f"average pooling wants floats, not {input.dtype}: write `.float()` first")

    def mean(windows, dims):
        count = divisor_override or math.prod([windows.shape[d] for d in dims])
        return windows.sum(dims) / count

    return _pooled(input.double(), n, kernel_size, stride, padding, 0, ceil_mode, 1, mean).to(input.dtype)


def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    return _avg_pool(input, 1, kernel_size, stride, padding, ceil_mode, count_include_pad)


def avg_pool2d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    return _avg_pool(input, 2, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    return _avg_pool(input, 3, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def _adaptive(input, output_size, n, reduce):
    size = _each(output_size, n)
    x = input
    for d in range(n):
        axis = x.dim() - n + d
        length, wanted = x.shape[axis], size[d]
        if wanted is None or wanted == length:
            continue
        parts = [x.narrow(axis, at * length // wanted, -(-(at + 1) * length // wanted) - at * length // wanted) for at in range(wanted)]
        x = torch.stack([reduce(p, axis) for p in parts], axis)
    return x


def adaptive_max_pool1d(input, output_size):
    return _adaptive(input, output_size, 1, lambda x, d: x.amax(d))


def adaptive_max_pool2d(input, output_size):
    return _adaptive(input, output_size, 2, lambda x, d: x.amax(d))


def adaptive_avg_pool1d(input, output_size):
    return _adaptive(input.double(), output_size, 1, lambda x, d: x.mean(d)).to(input.dtype)


def adaptive_avg_pool2d(input, output_size):
    return _adaptive(input.double(), output_size, 2, lambda x, d: x.mean(d)).to(input.dtype)


def _conv(input, weight, bias, stride, padding, dilation, groups, n):
    if input.dtype != weight.dtype:
        raise RuntimeError(f"Input type ({input.dtype}) and weight type ({weight.dtype}) should be the same")
    x = input if input.dim() == n + 2 else input.unsqueeze(0)
    size, stride, dilation = tuple(weight.shape[2:]), _each(stride, n), _each(dilation, n)
    if padding == "same":
        total = [d * (k - 1) for d, k in zip(dilation, size)]
        pads = [p for t in reversed(total) for p in (t // 2, t - t // 2)]
    else:
        padding = (0,) * n if padding == "valid" else _each(padding, n)
        pads = [p for d in reversed(padding) for p in (d, d)]
    x = torch.nn.functional.pad(x, pads) if any(pads) else x
    if x.shape[1] != weight.shape[1] * groups:
        raise RuntimeError(f"expected input to have {weight.shape[1] * groups} channels, but got {x.shape[1]} channels instead")
    windows = _windows(_wide(x), size, stride, dilation)
    batch, places = windows.shape[0], windows.shape[2 : 2 + n]
    outs = []
    for part, kernel in zip(windows.chunk(groups, 1), _wide(weight).chunk(groups, 0)):
        rows = torch.movedim(part, 1, n + 1).reshape(batch, math.prod(places), -1)
        outs.append(rows @ kernel.reshape(kernel.shape[0], -1).t())
    out = torch.cat(outs, -1).transpose(1, 2).reshape(batch, weight.shape[0], *places)
    out = out if bias is None else out + _wide(bias).reshape(-1, *(1,) * n)
    out = out.to(input.dtype)
    return out if input.dim() == n + 2 else out.squeeze(0)


def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    return _conv(input, weight, bias, stride, padding, dilation, groups, 1)


def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    return _conv(input, weight, bias, stride, padding, dilation, groups, 2)


def conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    return _conv(input, weight, bias, stride, padding, dilation, groups, 3)


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None, antialias=False):
    n = input.dim() - 2
    if mode not in ("nearest", "nearest-exact"):
        raise NotImplementedError(f"interpolate(mode={mode!r}) is not computed here: only nearest and nearest-exact are")
    if size is None:
        factors = _each(scale_factor, n) if isinstance(scale_factor, (int, tuple, list)) else (scale_factor,) * n
        size = [math.floor(length * f) for length, f in zip(input.shape[2:], factors)]
        if any(f != int(f) for f in factors):
            raise NotImplementedError("interpolate() by a factor that is no int is not computed here: give size=")
    for d, wanted in enumerate(_each(size, n)):
        length = input.shape[2 + d]
        at = torch.arange(wanted)
        # in whole numbers: floor(at * length / wanted), or of the pixel's middle
        places = at * length // wanted if mode == "nearest" else (2 * at + 1) * length // (2 * wanted)
        input = input.index_select(2 + d, places.clamp(max=length - 1))
    return input


def _window(n, periodic, dtype, formula):
    if n == 0:
        return torch.empty(0, dtype=dtype)
    if n == 1:
        return torch.ones(1, dtype=dtype)
    n = n + 1 if periodic else n
    out = formula(torch.arange(n, dtype=dtype), n)
    return out[:-1] if periodic else out


def hann_window(window_length, periodic=True, *, dtype=torch.float32, device=None, requires_grad=False, layout=None):
    return hamming_window(window_length, periodic, 0.5, 0.5, dtype=dtype)


def hamming_window(window_length, periodic=True, alpha=0.54, beta=0.46, *, dtype=torch.float32, device=None, requires_grad=False, layout=None):
    return _window(window_length, periodic, dtype, lambda at, n: torch.cos(at * (math.pi * 2 / (n - 1))) * -beta + alpha)


def bartlett_window(window_length, periodic=True, *, dtype=torch.float32, device=None, requires_grad=False, layout=None):
    def formula(at, n):
        rising = at * (2 / (n - 1))
        return torch.where(at <= (n - 1) // 2, rising, rising * -1 + 2)

    return _window(window_length, periodic, dtype, formula)


def blackman_window(window_length, periodic=True, *, dtype=torch.float32, device=None, requires_grad=False, layout=None):
    def formula(at, n):
        at = at * (math.pi / (n - 1))
        return torch.cos(at * 4) * 0.08 - torch.cos(at * 2) * 0.5 + 0.42

    return _window(window_length, periodic, dtype, formula)


def logcumsumexp(input, dim):
    x = torch.movedim(input.double(), dim, 0) if input.dim() else input
    rows = []
    for row in x:
        rows.append(row if not rows else torch.logaddexp(rows[-1], row))
    return torch.movedim(torch.stack(rows), 0, dim).to(input.dtype)


def trapezoid(y, x=None, *, dx=1, dim=-1):
    y = torch.movedim(y, dim, -1)
    steps = dx if x is None else x[..., 1:] - x[..., :-1]
    return ((y[..., 1:] + y[..., :-1]) * steps / 2).sum(-1)


def cov(input, *, correction=1, fweights=None, aweights=None):
    if fweights is not None or aweights is not None:
        raise NotImplementedError("cov() with weights is not computed here")
    x = input.double().reshape(1, -1) if input.dim() < 2 else input.double()
    x = x - x.mean(1, True)
    out = (x @ x.t() / (x.shape[1] - correction)).to(input.dtype)
    return out.reshape(()) if input.dim() < 2 else out


def corrcoef(input):
    c = cov(input.double())
    if c.dim() == 0:
        return (c / c).to(input.dtype)
    size = c.diagonal().sqrt()
    return (c / size.unsqueeze(0) / size.unsqueeze(1)).clamp(-1, 1).to(input.dtype)


def multi_dot(tensors):
    out = tensors[0]
    for t in tensors[1:]:
        out = out @ t
    return out


def linalg__multi_dot(tensors):
    return multi_dot(tensors)


def chain_matmul(*matrices):
    return multi_dot(matrices)


def matrix_power(input, n):
    if n < 0:
        raise NotImplementedError("matrix_power() with a negative exponent needs an inverse, which is not computed here")
    out = torch.eye(input.shape[-1], dtype=input.dtype)
    for _ in range(n):
        out = out @ input
    return out


def linalg__matrix_power(input, n):
    return matrix_power(input, n)


def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    return beta * input + alpha * (mat1 @ mat2)


def baddbmm(input, batch1, batch2, *, beta=1, alpha=1):
    return beta * input + alpha * torch.bmm(batch1, batch2)


def dstack(tensors):
    wide = [t.reshape(1, -1, 1) if t.dim() < 2 else t.unsqueeze(-1) if t.dim() == 2 else t for t in tensors]
    return torch.cat(wide, 2)


def row_stack(tensors):
    return torch.vstack(tensors)


def hsplit(input, indices_or_sections):
    return torch.tensor_split(input, indices_or_sections, dim=0 if input.dim() == 1 else 1)


def vsplit(input, indices_or_sections):
    return torch.tensor_split(input, indices_or_sections, dim=0)


def diagflat(input, offset=0):
    return torch.diag(input.reshape(-1), offset)


def atleast_1d(*tensors):
    out = [t.reshape(1) if t.dim() == 0 else t for t in tensors]
    return out[0] if len(out) == 1 else tuple(out)


def atleast_2d(*tensors):
    out = [t.reshape(1, -1) if t.dim() < 2 else t for t in tensors]
    return out[0] if len(out) == 1 else tuple(out)


def pad_by_place(input, pad, mode):
    """F.pad with mode reflect, replicate or circular: every place of the result is a place of the input."""
    if len(pad) % 2 or len(pad) // 2 > input.dim():
        raise RuntimeError("Padding length must be divisible by 2 and at most twice the number of dimensions")
    for at in range(len(pad) // 2):
        dim, (before, after) = input.dim() - 1 - at, (pad[2 * at], pad[2 * at + 1])
        n = input.shape[dim]
        places = torch.arange(-before, n + after)
        if mode == "reflect":
            if before >= n or after >= n:
                raise RuntimeError("Argument #4: Padding size should be less than the corresponding input dimension")
            places = places.abs()
            places = torch.where(places >= n, 2 * (n - 1) - places, places)
        elif mode == "replicate":
            places = places.clamp(0, n - 1)
        elif mode == "circular":
            if before > n or after > n:
                raise RuntimeError("Padding value causes wrapping around more than once.")
            places = places % n
        else:
            raise NotImplementedError(f"Unrecognised padding mode {mode}")
        input = input.index_select(dim, places)
    return input


def nn__functional__group_norm(input, num_groups, weight=None, bias=None, eps=1e-05):
    grouped = input.reshape(input.shape[0], num_groups, -1)
    out = layer_norm(grouped, (grouped.shape[-1],), eps=eps).reshape(input.shape)
    shape = [1, -1] + [1] * (input.dim() - 2)
    out = out if weight is None else out * weight.reshape(shape)
    return out if bias is None else out + bias.reshape(shape)


def nn__functional__upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    return interpolate(input, size, scale_factor, mode, align_corners)


def can_cast(from_, to):
    def kind(dtype):
        if dtype == torch.bool:
            return 0
        return 2 if dtype.is_floating_point else 1

    return kind(from_) <= kind(to)


def put_added(input, index, source, accumulate=False):
    """Tensor.put: places of the flattened tensor."""
    flat = input.reshape(-1)
    at = torch.where(index < 0, index + flat.numel(), index).reshape(-1)
    source = source.reshape(-1)
    out = flat.scatter_add(0, at, source) if accumulate else flat.scatter(0, at, source)
    return out.reshape(input.shape)


def put(input, index, source, accumulate=False):
    return put_added(input, index, source, accumulate)


def bitwise_count(input):
    raise NotImplementedError("bitwise_count is not computed here")


def nn__utils__rnn__pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    length = max(len(s) for s in sequences)
    rows = []
    for s in sequences:
        rest = torch.full((length - len(s),) + tuple(s.shape[1:]), padding_value, dtype=s.dtype)
        rows.append(torch.cat([s, rest] if padding_side == "right" else [rest, s]))
    return torch.stack(rows, 0 if batch_first else 1)


def nn__utils__rnn__unpad_sequence(padded_sequences, lengths, batch_first=False):
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[:n] for row, n in zip(rows, lengths.tolist())]


def nn__utils__parameters_to_vector(parameters):
    return torch.cat([p.reshape(-1) for p in parameters])


def index_put_added(input, indices, values):
    """input with values added at indices, those of one place one after the other."""
    places = []
    for index in indices:
        places += list(torch.nonzero(index, as_tuple=True)) if index.dtype == torch.bool else [index]
    places = torch.broadcast_tensors(*places)
    shape, flat = list(input.shape), torch.zeros_like(places[0])
    for place, n in zip(places, shape):
        flat = flat * n + torch.where(place < 0, place + n, place)
    inner = math.prod(shape[len(places) :])
    at = (flat.reshape(-1, 1) * inner + torch.arange(inner)).reshape(-1)
    values = values.expand(list(places[0].shape) + shape[len(places) :]).reshape(-1).to(input.dtype)
    return input.reshape(-1).scatter_add(0, at, values).reshape(shape)


def unique_rows(input, dim, sorted_, return_inverse, return_counts):
    """torch.unique and torch.unique_consecutive (not sorted) along a dimension."""
    x = torch.movedim(input, dim, 0)
    if x.is_floating_point() and torch.isnan(x).any():
        raise NotImplementedError("unique along a dimension with NaN is not computed here")
    rows = x.reshape(len(x), -1).tolist()
    order = sorted(range(len(rows)), key=lambda i: rows[i]) if sorted_ else range(len(rows))
    firsts, counts, inverse = [], [], [0] * len(rows)
    for i in order:
        if not firsts or rows[firsts[-1]] != rows[i]:
            firsts.append(i)
            counts.append(0)
        counts[-1] += 1
        inverse[i] = len(firsts) - 1
    out = [torch.movedim(x[torch.tensor(firsts, dtype=torch.int64)], 0, dim)]
    if return_inverse:
        out.append(torch.tensor(inverse, dtype=torch.int64))
    if return_counts:
        out.append(torch.tensor(counts, dtype=torch.int64))
    return out[0] if len(out) == 1 else tuple(out)


def _written(input, made, inplace):
    return input.copy_(made) if inplace else made


def nn__functional__relu6(input, inplace=False):
    return _written(input, input.clamp(0, 6), inplace)


def nn__functional__hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    return _written(input, input.clamp(min_val, max_val), inplace)


def nn__functional__elu(input, alpha=1.0, inplace=False):
    if not input.is_floating_point():
        raise RuntimeError(f"\"elu_cpu\" not implemented for {input.dtype}")
    x = input.double() if input.dtype == torch.float64 else input.float()
    made = torch.where(x <= 0, torch.expm1(x) * alpha, x).to(input.dtype)
    return _written(input, made, inplace)
