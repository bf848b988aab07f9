"""torch.nn: modules that factories compute with before the mod is traced. Weights are drawn as PyTorch draws them."""
import math

import torch

# What torch.nn.Parameter made: a tensor is a parameter if it is in this list.
_parameters = []


def Parameter(data=None, requires_grad=True):
    data = torch.empty(0) if data is None else data
    _parameters.append(data)
    return data


def Buffer(data=None, *, persistent=True):
    return data


def _is_parameter(x):
    return isinstance(x, torch.Tensor) and any(x is p for p in _parameters)


class Module:
    training = True

    def __init__(self, *args, **kwargs):
        pass

    def register_buffer(self, name, tensor, persistent=True):
        setattr(self, name, tensor)

    def register_parameter(self, name, param):
        if param is not None:
            _parameters.append(param)
        setattr(self, name, param)

    def add_module(self, name, module):
        setattr(self, name, module)

    def register_module(self, name, module):
        setattr(self, name, module)

    def named_children(self):
        return [(n, m) for n, m in members(self).items() if isinstance(m, Module)]

    def children(self):
        return [m for _, m in self.named_children()]

    def named_modules(self, prefix=""):
        out = [(prefix, self)]
        for name, child in self.named_children():
            out += child.named_modules(f"{prefix}.{name}" if prefix else name)
        return out

    def modules(self):
        return [m for _, m in self.named_modules()]

    def named_parameters(self, prefix="", recurse=True):
        dot = prefix + "." if prefix else ""
        out = [(dot + n, p) for n, p in members(self).items() if _is_parameter(p)]
        for name, child in self.named_children() if recurse else []:
            out += child.named_parameters(dot + name)
        return out

    def parameters(self, recurse=True):
        return iter([p for _, p in self.named_parameters("", recurse)])

    def named_buffers(self, prefix="", recurse=True):
        dot = prefix + "." if prefix else ""
        out = [(dot + n, p) for n, p in members(self).items() if isinstance(p, torch.Tensor) and not _is_parameter(p)]
        for name, child in self.named_children() if recurse else []:
            out += child.named_buffers(dot + name)
        return out

    def buffers(self, recurse=True):
        return iter([p for _, p in self.named_buffers("", recurse)])

    def state_dict(self):
        own = dict(self.named_parameters("", False))
        own.update(dict(self.named_buffers("", False)))
        for name, child in self.named_children():
            own.update({f"{name}.{n}": p for n, p in child.state_dict().items()})
        return own

    def load_state_dict(self, state_dict, strict=True, assign=False):
        own = self.state_dict()
        unexpected = [n for n in state_dict if n not in own]
        missing = [n for n in own if n not in state_dict]
        if strict and (missing or unexpected):
            raise RuntimeError(f"Error(s) in loading state_dict: missing {missing}, unexpected {unexpected}")
        for name, value in state_dict.items():
            if name in own:
                own[name].copy_(value)

    def get_parameter(self, target):
        return dict(self.named_parameters())[target]

    def apply(self, fn):
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def train(self, mode=True):
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self):
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        return self

    def zero_grad(self, set_to_none=True):
        return None

    def cpu(self):
        return self

    def cuda(self, device=None):
        return self

    def compile(self, *args, **kwargs):
        return None

    def extra_repr(self):
        return ""

    def to(self, *args, **kwargs):
        given = list(args) + [kwargs.get("dtype")]
        for dtype in given:
            if isinstance(dtype, torch.dtype):
                return self._cast(dtype)
        return self

    def float(self):
        return self._cast(torch.float32)

    def double(self):
        return self._cast(torch.float64)

    def half(self):
        return self._cast(torch.float16)

    def bfloat16(self):
        return self._cast(torch.bfloat16)

    def _cast(self, dtype):
        for name, value in list(members(self).items()):
            if isinstance(value, torch.Tensor) and value.is_floating_point() and value.dtype != dtype:
                was = _is_parameter(value)
                value = value.to(dtype)
                if was:
                    _parameters.append(value)
                setattr(self, name, value)
        for child in self.children():
            child._cast(dtype)
        return self


class Identity(Module):
    def forward(self, input):
        return input


class Linear(Module):
    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        dtype = torch.float32 if dtype is None else dtype
        self.weight = Parameter(torch.empty(out_features, in_features, dtype=dtype))
        self.bias = Parameter(torch.empty(out_features, dtype=dtype)) if bias else None
        self.reset_parameters()

    def reset_parameters(self):
        init__kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init__uniform_(self.bias, -bound, bound)

    def forward(self, input):
        if input.dim() == 1:
            # (weight * input).sum(-1), as a mod computes it
            out = (self.weight @ input)
            return out if self.bias is None else out + self.bias
        return torch.nn.functional.linear(input, self.weight, self.bias)


class Embedding(Module):
    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False, _weight=None, _freeze=False, device=None, dtype=None):
        super().__init__()
        if max_norm is not None:
            raise NotImplementedError("nn.Embedding with max_norm changes its table, which a mask cannot: scale the table before")
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        if _weight is None:
            _weight = torch.empty(num_embeddings, embedding_dim, dtype=torch.float32 if dtype is None else dtype)
            init__normal_(_weight)
            if padding_idx is not None:
                _weight[padding_idx] = 0
        self.weight = Parameter(_weight)

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True, padding_idx=None, **kwargs):
        return cls(embeddings.shape[0], embeddings.shape[1], padding_idx, _weight=embeddings)

    def forward(self, input):
        return self.weight[input]


class Sequential(Module):
    def __init__(self, *args):
        super().__init__()
        pairs = args[0].items() if len(args) == 1 and isinstance(args[0], dict) else [(str(i), m) for i, m in enumerate(args)]
        for name, module in pairs:
            setattr(self, name, module)

    def __iter__(self):
        return iter(self.children())

    def __len__(self):
        return len(self.children())

    def __getitem__(self, at):
        return self.children()[at]

    def append(self, module):
        setattr(self, str(len(self.children())), module)
        return self

    def forward(self, input):
        for module in self.children():
            input = module(input)
        return input


class ModuleList(Module):
    def __init__(self, modules=None):
        super().__init__()
        for i, module in enumerate(modules or []):
            setattr(self, str(i), module)

    def __iter__(self):
        return iter(self.children())

    def __len__(self):
        return len(self.children())

    def __getitem__(self, at):
        return self.children()[at]

    def append(self, module):
        setattr(self, str(len(self.children())), module)
        return self

    def extend(self, modules):
        for module in modules:
            self.append(module)
        return self


class ModuleDict(Module):
    def __init__(self, modules=None):
        super().__init__()
        for name, module in (modules or {}).items():
            setattr(self, name, module)

    def __getitem__(self, key):
        return getattr(self, key)

    def __setitem__(self, key, module):
        setattr(self, key, module)

    def __contains__(self, key):
        return key in self.keys()

    def __len__(self):
        return len(self.children())

    def keys(self):
        return [n for n, _ in self.named_children()]

    def values(self):
        return self.children()

    def items(self):
        return self.named_children()


class ParameterList(Module):
    def __init__(self, values=None):
        super().__init__()
        for i, value in enumerate(values or []):
            setattr(self, str(i), value if _is_parameter(value) else Parameter(value))

    def _all(self):
        return [v for n, v in members(self).items() if n.isdigit()]

    def __iter__(self):
        return iter(self._all())

    def __len__(self):
        return len(self._all())

    def __getitem__(self, at):
        return self._all()[at]

    def append(self, value):
        setattr(self, str(len(self)), value if _is_parameter(value) else Parameter(value))
        return self


class LayerNorm(Module):
    def __init__(self, normalized_shape, eps=1e-05, elementwise_affine=True, bias=True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, dtype = eps, torch.float32 if dtype is None else dtype
        self.weight = Parameter(torch.ones(self.normalized_shape, dtype=dtype)) if elementwise_affine else None
        self.bias = Parameter(torch.zeros(self.normalized_shape, dtype=dtype)) if elementwise_affine and bias else None

    def forward(self, input):
        return torch.nn.functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(Module):
    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, dtype = eps, torch.float32 if dtype is None else dtype
        self.weight = Parameter(torch.ones(self.normalized_shape, dtype=dtype)) if elementwise_affine else None

    def forward(self, input):
        return torch.nn.functional.rms_norm(input, self.normalized_shape, self.weight, self.eps)


class Dropout(Module):
    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        self.p = p

    def forward(self, input):
        if self.p == 0 or not self.training:
            return input
        raise NotImplementedError("nn.Dropout draws random numbers while a mask is made: call .eval() on the module first")


class Flatten(Module):
    def __init__(self, start_dim=1, end_dim=-1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input):
        return input.flatten(self.start_dim, self.end_dim)


class Softmax(Module):
    def __init__(self, dim=None):
        super().__init__()
        self.dim = dim

    def forward(self, input):
        return torch.softmax(input, self.dim)


class ReLU(Module):
    def __init__(self, inplace=False):
        super().__init__()

    def forward(self, input):
        return torch.relu(input)


class GELU(Module):
    def __init__(self, approximate="none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input):
        return torch.nn.functional.gelu(input, approximate=self.approximate)


class SiLU(Module):
    def __init__(self, inplace=False):
        super().__init__()

    def forward(self, input):
        return torch.nn.functional.silu(input)


class Mish(Module):
    def __init__(self, inplace=False):
        super().__init__()

    def forward(self, input):
        return torch.nn.functional.mish(input)


class Tanh(Module):
    def forward(self, input):
        return torch.tanh(input)


class Sigmoid(Module):
    def forward(self, input):
        return torch.sigmoid(input)


class Softplus(Module):
    def forward(self, input):
        return torch.nn.functional.softplus(input)


class LeakyReLU(Module):
    def __init__(self, negative_slope=0.01, inplace=False):
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, input):
        return torch.nn.functional.leaky_relu(input, self.negative_slope)


class ELU(Module):
    def __init__(self, alpha=1.0, inplace=False):
        super().__init__()
        self.alpha = alpha

    def forward(self, input):
        return torch.nn.functional.elu(input, self.alpha)


def _fans(tensor):
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = 1
    for n in tensor.shape[2:]:
        field *= n
    return tensor.shape[1] * field, tensor.shape[0] * field


def init__calculate_gain(nonlinearity, param=None):
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity == "selu":
        return 3.0 / 4
    return 1


def init__uniform_(tensor, a=0.0, b=1.0, generator=None):
    return tensor.uniform_(a, b, generator=generator)


def init__normal_(tensor, mean=0.0, std=1.0, generator=None):
    return tensor.normal_(mean, std, generator=generator)


def init__constant_(tensor, val):
    return tensor.fill_(val)


def init__ones_(tensor):
    return tensor.fill_(1.0)


def init__zeros_(tensor):
    return tensor.zero_()


def init__eye_(tensor):
    tensor.copy_(torch.eye(tensor.shape[0], tensor.shape[1], dtype=tensor.dtype))
    return tensor


def init__kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    fan = _fans(tensor)[0 if mode == "fan_in" else 1]
    bound = math.sqrt(3.0) * (init__calculate_gain(nonlinearity, a) / math.sqrt(fan))
    return tensor.uniform_(-bound, bound, generator=generator)


def init__kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    fan = _fans(tensor)[0 if mode == "fan_in" else 1]
    return tensor.normal_(0, init__calculate_gain(nonlinearity, a) / math.sqrt(fan), generator=generator)


def init__xavier_uniform_(tensor, gain=1.0, generator=None):
    fan_in, fan_out = _fans(tensor)
    bound = math.sqrt(3.0) * (gain * math.sqrt(2.0 / (fan_in + fan_out)))
    return tensor.uniform_(-bound, bound, generator=generator)


def init__xavier_normal_(tensor, gain=1.0, generator=None):
    fan_in, fan_out = _fans(tensor)
    return tensor.normal_(0.0, gain * math.sqrt(2.0 / (fan_in + fan_out)), generator=generator)


def init__trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    raise NotImplementedError("nn.init.trunc_normal_ is not computed here: its numbers are not proven equal to PyTorch's. Draw with normal_ and clamp_")
