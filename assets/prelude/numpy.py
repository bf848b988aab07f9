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
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])
