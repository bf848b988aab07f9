"""NumPy's functions that its arrays' methods do not have."""
import numpy as np


def tri(N, M=None, k=0, dtype=float):
    M = N if M is None else M
    return (np.arange(N).reshape(-1, 1) >= np.arange(M).reshape(1, -1) - k).astype(np.float64 if dtype is float else dtype)


def ix_(*args):
    out = []
    for at, given in enumerate(args):
        shape = [1] * len(args)
        shape[at] = -1
        given = np.asarray(given)
        given = np.nonzero(given)[0] if given.dtype == bool else given
        out.append(given.reshape(*shape))
    return tuple(out)


def fill_diagonal(a, val, wrap=False):
    if a.ndim != 2 or wrap:
        raise NotImplementedError("np.fill_diagonal is computed here for matrices without wrap")
    n = min(a.shape[0], a.shape[1])
    a[np.arange(n), np.arange(n)] = val


def diag_indices(n, ndim=2):
    return (np.arange(n),) * ndim


def tril_indices(n, k=0, m=None):
    return tuple(np.nonzero(tri(n, m, k, bool)))


def triu_indices(n, k=0, m=None):
    return tuple(np.nonzero(tri(n, m, k - 1, bool) == False))


def pad(array, pad_width, mode="constant", constant_values=0):
    if mode != "constant":
        raise NotImplementedError("np.pad is computed here with mode='constant' alone")
    array = np.asarray(array)
    widths = [pad_width] * array.ndim if isinstance(pad_width, int) else list(pad_width)
    widths = [tuple(widths)] * array.ndim if isinstance(widths[0], int) and not isinstance(pad_width, int) else widths
    widths = [(w, w) if isinstance(w, int) else tuple(w) for w in widths]
    out = np.full([b + n + e for (b, e), n in zip(widths, array.shape)], constant_values, dtype=array.dtype)
    out[tuple(slice(b, b + n) for (b, e), n in zip(widths, array.shape))] = array
    return out


def digitize(x, bins, right=False):
    return np.searchsorted(bins, x, side="left" if right else "right")


def cross(a, b):
    a, b = np.asarray(a), np.asarray(b)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise NotImplementedError("np.cross is computed here for vectors of 3")
    return np.stack([a[..., (i + 1) % 3] * b[..., (i + 2) % 3] - a[..., (i + 2) % 3] * b[..., (i + 1) % 3] for i in range(3)], axis=-1)


def _axis(axis, ndim):
    return axis + ndim if axis < 0 else axis


def median(a, axis=None, keepdims=False):
    a = np.asarray(a)
    if keepdims or isinstance(axis, (tuple, list)):
        raise NotImplementedError("np.median is computed here along one axis or none, without keepdims")
    a = a if a.dtype in (np.float32, np.float64) else a.astype(np.float64)
    a = a.reshape(-1) if axis is None else np.moveaxis(a, axis, -1)
    n = a.shape[-1]
    a = np.sort(a)
    middle = a[..., n // 2] if n % 2 else (a[..., n // 2 - 1] + a[..., n // 2]) / 2
    return np.where(np.isnan(a[..., -1]), a[..., -1], middle)


def split(ary, indices_or_sections, axis=0):
    ary = np.asarray(ary)
    if isinstance(indices_or_sections, int) and ary.shape[_axis(axis, ary.ndim)] % indices_or_sections:
        raise ValueError("array split does not result in an equal division")
    return array_split(ary, indices_or_sections, axis)


def array_split(ary, indices_or_sections, axis=0):
    ary = np.asarray(ary)
    axis = _axis(axis, ary.ndim)
    length = ary.shape[axis]
    if isinstance(indices_or_sections, int):
        size, more = divmod(length, indices_or_sections)
        cuts, at = [], 0
        for i in range(indices_or_sections - 1):
            at += size + (1 if i < more else 0)
            cuts.append(at)
    else:
        cuts = [int(i) for i in indices_or_sections]
    whole = (slice(None),) * axis
    return [ary[whole + (slice(b, e),)] for b, e in zip([0] + cuts, cuts + [length])]


def flip(m, axis=None):
    m = np.asarray(m)
    axes = range(m.ndim) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    for d in [_axis(a, m.ndim) for a in axes]:
        m = np.take_along_axis(m, np.arange(m.shape[d] - 1, -1, -1).reshape([-1 if i == d else 1 for i in range(m.ndim)]) + np.zeros(m.shape, dtype=np.int64), d)
    return m


def take_along_axis(arr, indices, axis):
    import torch

    return torch.take_along_dim(torch.as_tensor(arr), torch.as_tensor(indices), axis).numpy()


def ptp(a, axis=None):
    a = np.asarray(a)
    return a.max(axis) - a.min(axis) if axis is not None else a.max() - a.min()
