"""Functions of single elements, as compositions of what a mod may compute.

Every function gives PyTorch's values and dtypes. Its first parameter is `input` where PyTorch has the method too.
"""
import math

import torch


def _floating(x):
    return x if x.is_floating_point() else x.to(torch.get_default_dtype())


def _tensor(x):
    return x if isinstance(x, torch.Tensor) else torch.tensor(x)


def sgn(input):
    return torch.sign(input)


def signbit(input):
    if not input.is_floating_point():
        return torch.zeros_like(input, dtype=torch.bool) if input.dtype == torch.bool else input < 0
    return (input < 0) | ((input == 0) & (1 / input < 0))


def copysign(input, other):
    x, sign = _floating(_tensor(input)), _tensor(other)
    # the derivative is result / input: NaN at infinities, as of this root
    held = torch.where(torch.isfinite(x), 1.0, x)
    size = torch.where(torch.isfinite(x), x.abs(), torch.sqrt(held * held))
    return torch.where(signbit(sign), -size, size).to(torch.result_type(x, other) if sign.is_floating_point() else x.dtype)


def heaviside(input, values):
    if input.dtype != values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    return torch.where(input == 0, values, (input > 0).to(input.dtype))


def gcd(input, other):
    a, b = input.abs(), other.abs()
    # Euclid's steps for two numbers below 2 ** 31 are at most 45
    for _ in range(46):
        rest = a % torch.where(b == 0, 1, b)
        a, b = torch.where(b == 0, a, b), torch.where(b == 0, 0, rest)
    return a


def lcm(input, other):
    divisor = gcd(input, other)
    return (input // torch.where(divisor == 0, 1, divisor) * other).abs()


def addcmul(input, tensor1, tensor2, *, value=1):
    out = input + value * tensor1 * tensor2
    if not out.is_floating_point():
        return out
    # a fused multiply-add: only value * tensor1 is rounded before the sum; halves are float32 until the end
    x, scaled = _single(input), value * _single(tensor1)
    # a number with float64 is float64, and stays the tensor that was given: its gradient is found
    factor = tensor2 if tensor2.dim() == 0 else tensor2.double()
    return (x.double() + scaled.double() * factor).to(x.dtype).to(out.dtype)


def lerp(input, end, weight):
    x, y = _single(input), _single(end)
    apart, near = (y - x).double(), abs(weight) < 0.5
    if isinstance(weight, torch.Tensor):
        weight = _single(weight)
        start, share = torch.where(near, x, y), torch.where(near, weight, weight - 1)
    else:
        weight = torch.tensor(weight, dtype=x.dtype)
        start, share = (x, weight) if near else (y, weight - 1)
    return (share.double() * apart + start.double()).to(x.dtype).to(input.dtype)


def addcdiv(input, tensor1, tensor2, *, value=1):
    whole = input + value * tensor1 / tensor2
    return (_single(input) + value * _single(tensor1) / _single(tensor2)).to(whole.dtype)


def xlogy(input, other):
    x, y = _tensor(input), _tensor(other)
    product = x * torch.log(y)
    return torch.where(torch.isnan(_floating(y)), math.nan, torch.where(x == 0, 0.0, product))


def nan_to_num(input, nan=0.0, posinf=None, neginf=None):
    if not input.is_floating_point():
        return input
    limits = torch.finfo(input.dtype)
    posinf = limits.max if posinf is None else posinf
    neginf = limits.min if neginf is None else neginf
    nan = 0.0 if nan is None else nan
    x = torch.where(torch.isnan(input), nan, input)
    x = torch.where(input == math.inf, posinf, x)
    return torch.where(input == -math.inf, neginf, x)


def isposinf(input):
    return input == math.inf


def isneginf(input):
    return input == -math.inf


def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    if input.dtype != other.dtype:
        raise RuntimeError(f"{input.dtype} did not match {other.dtype}")
    close = input == other
    if input.is_floating_point() and equal_nan:
        close = close | (torch.isnan(input) & torch.isnan(other))
    if rtol == 0 and atol == 0:
        return close
    x, y = (input.float(), other.float()) if input.dtype == torch.bool else (input, other)
    apart = (x - y).abs()
    return close | (torch.isfinite(apart) & (apart <= atol + (rtol * y).abs()))


def atanh(input):
    x = wide(input)
    return _rounded(0.5 * (torch.log1p(x) - torch.log1p(-x)), input)


def arctanh(input):
    return atanh(input)


def atan(input):
    x = wide(input)
    return _rounded(torch.atan2(x, torch.ones_like(x)), input)


def arctan(input):
    return atan(input)


def hypot(input, other):
    if not (input.is_floating_point() and other.is_floating_point()):
        raise RuntimeError("hypot is not implemented for ints: write `.float()` first")
    x, y = input.double(), other.double()
    out = torch.sqrt(x * x + y * y).to(torch.result_type(input, other))
    return torch.where(torch.isinf(x) | torch.isinf(y), math.inf, out)


def deg2rad(input):
    return _floating(input) * (math.pi / 180)


def rad2deg(input):
    return _floating(input) * (180 / math.pi)


def logit(input, eps=None):
    x = _floating(input)
    if eps is not None:
        x = torch.where((x < eps) | (x > 1 - eps), x.clamp(eps, 1 - eps).detach(), x)
    # each branch has a finite derivative where it is not taken
    inner = torch.where((x <= 0) | (x >= 1), 0.5, x)
    y = torch.where(x == 0, torch.log(x), torch.log(inner / (1 - inner)))
    y = torch.where(x == 1, -torch.log(1 - x), y)
    outside = (x < 0) | (x > 1)
    return torch.where(outside, torch.where(outside, x, 1.0) * math.nan, y)


def sinc(input):
    x = _single(_floating(input)) * math.pi
    held = torch.where(x == 0, 1.0, x)
    return _rounded(torch.where(x == 0, 1.0, torch.sin(held) / held), input)


def dist(input, other, p=2):
    return torch.norm(input - other, p)


def softsign(input):
    return input / (input.abs() + 1)


def tanhshrink(input):
    return input - torch.tanh(input)


def threshold(input, threshold, value, inplace=False):
    return torch.where(input <= threshold, value, input)


def mish(input, inplace=False):
    x = _single(input)
    return _rounded(x * torch.tanh(torch.nn.functional.softplus(x)), input)


def hardsigmoid(input, inplace=False):
    return _rounded((_single(input) + 3).clamp(0, 6) / 6, input)


def hardswish(input, inplace=False):
    x = _single(input)
    held = torch.where((x > -3) & (x < 3), x, 0.0)
    y = torch.where(x <= -3, x * 0, torch.where(x < 3, held * (held + 3) / 6, x * 6 / 6))
    return _rounded(y, input)


def hardshrink(input, lambd=0.5):
    return torch.where((input >= -lambd) & (input <= lambd), 0.0, input)


def softshrink(input, lambd=0.5):
    far = torch.where(input > lambd, input - lambd, input + lambd)
    return torch.where((input >= -lambd) & (input <= lambd), input * 0, far)


def _expm1_below(x):
    """expm1(x) where x <= 0, else 0; PyTorch's derivative of elu and its like is exp(x), not expm1(x) + 1."""
    held = torch.where(x <= 0, x, 0.0)
    slope = torch.exp(held)
    return torch.expm1(held).detach() + (slope - slope.detach())


def celu(input, alpha=1.0, inplace=False):
    x = _single(input)
    return _rounded(torch.where(x <= 0, alpha * _expm1_below(x / alpha), x), input)


def selu(input, inplace=False):
    scale, alpha = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
    x = _single(input)
    return _rounded(scale * torch.where(x <= 0, alpha * _expm1_below(x), x), input)


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    if max_norm is not None:
        raise NotImplementedError("F.embedding with max_norm changes its table, which a mask cannot: scale the table before")
    return weight[input]


def one_hot(tensor, num_classes=-1):
    if num_classes < 0:
        raise RuntimeError("one_hot() of an index needs num_classes: its largest value is not known here")
    return (tensor.unsqueeze(-1) == torch.arange(num_classes)).to(torch.int64)


def result_type(tensor1, tensor2):
    def rank(dtype):
        return 2 if dtype.is_floating_point else int(dtype != torch.bool)

    def kind(x):
        if isinstance(x, torch.Tensor):
            return x.dtype, 2 if x.dim() else 1
        return torch.bool if isinstance(x, bool) else torch.int64 if isinstance(x, int) else torch.get_default_dtype(), 0

    (a, dims_a), (b, dims_b) = kind(tensor1), kind(tensor2)
    if dims_a == dims_b:
        return torch.promote_types(a, b)
    strong, weak = (a, b) if dims_a > dims_b else (b, a)
    # without dimensions only a higher kind of number counts
    return strong if rank(weak) <= rank(strong) else torch.promote_types(strong, weak)


def _rounded(x, input):
    return x.to(_floating(input).dtype)


def _single(input):
    # what PyTorch computes halves in before it rounds once
    return input.float() if input.dtype in (torch.float16, torch.bfloat16) else input


def lgamma(input):
    x = wide(input)
    reflected = x < 0.5
    y = torch.where(reflected, 1 - x, x)
    # up by the recurrence, then Stirling's series
    product = torch.ones_like(y)
    for _ in range(8):
        low = y < 8
        product = torch.where(low, product * y, product)
        y = torch.where(low, y + 1, y)
    r = 1 / (y * y)
    tail = (1 / 12 - r * (1 / 360 - r * (1 / 1260 - r * (1 / 1680 - r * (1 / 1188 - r * (691 / 360360 - r / 156)))))) / y
    out = (y - 0.5) * torch.log(y) - y + 0.5 * math.log(2 * math.pi) + tail - torch.log(product)
    part = torch.sin(math.pi * (x - torch.floor(x))).abs()
    out = torch.where(reflected, torch.log(math.pi / part) - out, out)
    return _rounded(torch.where(torch.isinf(x), math.inf, out), input)


def special__gammaln(input):
    return lgamma(input)


def mvlgamma(input, p):
    _refused("mvlgamma")


def digamma(input):
    x = wide(input)
    reflected = x < 0
    y = torch.where(reflected, 1 - x, x)
    below = torch.zeros_like(y)
    for _ in range(9):
        low = y < 9
        below = torch.where(low, below + 1 / y, below)
        y = torch.where(low, y + 1, y)
    r = 1 / (y * y)
    tail = r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r * (1 / 132 - r * (691 / 32760 - r / 12))))))
    out = torch.log(y) - 0.5 / y - tail - below
    part = x - torch.trunc(x)
    turned = torch.where(part == 0, math.nan, out - math.pi / torch.tan(math.pi * part))
    return _rounded(torch.where(reflected, turned, out), input)


def special__psi(input):
    return digamma(input)


def polygamma(n, input):
    if n == 0:
        return digamma(input)
    _refused("polygamma of an order above 0")


def erfinv(input):
    x = _floating(input).double()
    size = x.abs()
    # a start within 0.2 %, then Halley's steps
    log, a = torch.log1p(-x * x), 0.147
    half = 2 / (math.pi * a) + log / 2
    y = torch.sqrt(torch.sqrt(half * half - log / a) - half)
    for _ in range(3):
        step = (torch.erf(y) - size) * (math.sqrt(math.pi) / 2) * torch.exp(y * y)
        y = y - step / (1 + y * step)
    y = torch.where(size == 0, size, torch.where(size < 1, y, torch.where(size == 1, math.inf, math.nan)))
    return _rounded(torch.where(x < 0, -y, torch.where(x == 0, x, y)), input)


def special__ndtr(input):
    x = _floating(input).double()
    return _rounded(0.5 * torch.erfc(-x * math.sqrt(0.5)), input)


def special__log_ndtr(input):
    x = _floating(input).double()
    t = x * math.sqrt(0.5)
    far = torch.log(torch.special.erfcx(-t) / 2) - t * t
    return _rounded(torch.where(x < -1, far, torch.log1p(-torch.erfc(t) / 2)), input)


def special__entr(input):
    x = _floating(input)
    y = torch.where(x > 0, -x * torch.log(x), torch.where(x == 0, 0.0, -math.inf))
    return torch.where(torch.isnan(x), x, y)


def _bessel(x, order):
    """exp(-x) times the modified Bessel function of an order, for x >= 0."""
    # each series has a finite derivative where it is not taken
    low, high = torch.where(x < 20, x, 1.0), torch.where(x < 20, 20.0, x)
    quarter = low * low / 4
    near = torch.ones_like(x)
    for n in range(46, 0, -1):
        near = near * (quarter * (1 / (n * (n + order)))) + 1
    if order == 1:
        near = near * low / 2
    near = near * torch.exp(-low)
    small, far = 1 / (8 * high), torch.ones_like(x)
    for n in range(24, 0, -1):
        far = far * (small * (((2 * n - 1) ** 2 - 4 * order * order) / n)) + 1
    return torch.where(x < 20, near, far / torch.sqrt(2 * math.pi * high))


def special__i0e(input):
    x = wide(input)
    return _rounded(torch.where(torch.isinf(x), 0.0, _bessel(x.abs(), 0)), input)


def special__i1e(input):
    x = wide(input)
    y = torch.where(torch.isinf(x), 0.0, _bessel(torch.where(x < 0, -x, x), 1))
    return _rounded(torch.where(x < 0, -y, y), input)


def i0(input):
    x = wide(input).abs()
    half = torch.exp(x / 2)
    return _rounded(torch.where(torch.isinf(x), math.nan, _bessel(x, 0) * half * half), input)


def special__i0(input):
    return i0(input)


def special__i1(input):
    x = wide(input)
    # unlike abs(), it has a derivative at zero
    size = torch.where(x < 0, -x, x)
    half = torch.exp(size / 2)
    y = torch.where(torch.isinf(x), math.nan, _bessel(size, 1) * half * half)
    return _rounded(torch.where(x < 0, -y, y), input)


def logaddexp2(input, other):
    x, y = wide(input), wide(other)
    most = torch.maximum(x, y)
    out = most + torch.log1p(torch.exp2(-(x - y).abs())) / math.log(2)
    return torch.where((x == y) & torch.isinf(x), x, out).to(torch.result_type(input, other))


def _refused(name):
    raise NotImplementedError(
        f"{name} is not computed here: no formula gives PyTorch's very numbers. Compute a table of it in PyTorch and capture it"
    )


def nextafter(input, other):
    _refused("nextafter")


def special__xlog1py(input, other):
    x, y = wide(input), wide(other)
    out = torch.where(torch.isnan(y), math.nan, torch.where(x == 0, 0.0, x * torch.log1p(y)))
    return out.to(torch.result_type(_floating(_tensor(input)), _floating(_tensor(other))))


def ldexp(input, other):
    # PyTorch multiplies by 2 ** other in float32
    return input * torch.pow(2.0, other)


def nn__functional__dropout(input, p=0.5, training=True, inplace=False):
    if p < 0 or p > 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if training and p > 0:
        raise NotImplementedError(
            "dropout draws random numbers that are not proven equal to PyTorch's, so it is not evaluated: draw a table with torch.rand and a seeded generator in the factory"
        )
    return input
