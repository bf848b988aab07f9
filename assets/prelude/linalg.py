"""Linear algebra, Fourier transforms and complex, nested and sparse tensors: what is computed, and what is refused with the reason.

`solved` and `determinant` are the host's. What follows LAPACK's rounding is refused, because another last bit is another mask.
"""
import torch


def _refused(name, why):
    raise NotImplementedError(f"{name} is not computed here: {why}. Compute it in PyTorch and capture the result")


def linalg__inv(input):
    return solved(input, torch.eye(input.shape[-1], dtype=input.dtype))


def inverse(input):
    return linalg__inv(input)


def linalg__pinv(input):
    _refused("linalg.pinv", "its rounding follows LAPACK's")


def linalg__solve(A, B, *, left=True):
    return solved(A, B) if left else solved(A.t(), B.t()).t()


def linalg__svd(input, full_matrices=True):
    _refused("linalg.svd", "its rounding and signs follow LAPACK's")


def svd(input, some=True, compute_uv=True):
    _refused("svd", "its rounding and signs follow LAPACK's")


def linalg__svdvals(input):
    _refused("linalg.svdvals", "its rounding follows LAPACK's")


def linalg__eigh(input):
    _refused("linalg.eigh", "its rounding and signs follow LAPACK's")


def linalg__eigvalsh(input):
    _refused("linalg.eigvalsh", "its rounding follows LAPACK's")


def linalg__eig(input):
    _refused("linalg.eig", "its rounding follows LAPACK's")


def linalg__qr(input, mode="reduced"):
    _refused("linalg.qr", "its rounding and signs follow LAPACK's")


def linalg__cholesky(input):
    _refused("linalg.cholesky", "its rounding follows LAPACK's")


def linalg__det(A):
    return determinant(A)


def det(input):
    return determinant(input)


def fft__fft(input, n=None, dim=-1):
    _refused("fft.fft", "tensors of complex numbers are not known")


def fft__rfft(input, n=None, dim=-1):
    _refused("fft.rfft", "tensors of complex numbers are not known")


def fft__fftfreq(n, d=1.0):
    half = (n - 1) // 2 + 1
    return torch.cat([torch.arange(half), torch.arange(-(n // 2), 0)]).to(torch.float32) * (1.0 / (n * d))


def complex(real, imag):
    _refused("complex", "tensors of complex numbers are not known")


def polar(abs, angle):
    _refused("polar", "tensors of complex numbers are not known")


def view_as_complex(input):
    _refused("view_as_complex", "tensors of complex numbers are not known")


def view_as_real(input):
    _refused("view_as_real", "tensors of complex numbers are not known")


def nested__nested_tensor(*args, **kwargs):
    _refused("nested tensors", "a mask reads one tensor with fixed lengths")


def nested__as_nested_tensor(*args, **kwargs):
    _refused("nested tensors", "a mask reads one tensor with fixed lengths")


def sparse_coo_tensor(*args, **kwargs):
    _refused("sparse_coo_tensor", "sparse tensors are not known")
