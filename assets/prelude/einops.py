"""einops' rearrange, repeat, reduce, einsum and pack, as reshapes, permutations and reductions of PyTorch."""
import torch


class EinopsError(RuntimeError):
    pass


def _axes(side, pattern):
    """The groups of one side of a pattern: names in parentheses together, `1` an empty group."""
    groups, inside = [], None
    for word in side.replace("(", " ( ").replace(")", " ) ").split():
        if word == "(":
            if inside is not None:
                raise EinopsError(f"brackets nest in `{pattern}`")
            inside = []
        elif word == ")":
            if inside is None:
                raise EinopsError(f"brackets do not match in `{pattern}`")
            groups.append(inside)
            inside = None
        elif inside is not None:
            inside.append(word)
        else:
            groups.append("..." if word == "..." else [] if word == "1" else [word])
    if inside is not None:
        raise EinopsError(f"brackets do not match in `{pattern}`")
    return groups


def _plan(tensor, pattern, lengths):
    """Groups of both sides with `...` spelled out, the lengths of all names, and the tensor with a dimension a name."""
    left, arrow, right = pattern.partition("->")
    if not arrow:
        raise EinopsError(f"`{pattern}` has no `->`")
    left, right = _axes(left, pattern), _axes(right, pattern)
    lengths = dict(lengths)
    if "..." in left:
        free = tensor.dim() - len(left) + 1
        if free < 0:
            raise EinopsError(f"`{pattern}` names more dimensions than the tensor of shape {list(tensor.shape)} has")
        names = [f"...{i}" for i in range(free)]
        spelled = []
        for g in left:
            spelled += [[n] for n in names] if g == "..." else [g]
        left = spelled
        out = []
        for g in right:
            if g == "...":
                out += [[n] for n in names]
            else:
                out.append([m for n in g for m in (names if n == "..." else [n])])
        right = out
    if len(left) != tensor.dim():
        raise EinopsError(f"`{pattern}` names {len(left)} dimensions, and the tensor of shape {list(tensor.shape)} has {tensor.dim()}")
    names = []
    for group, length in zip(left, tensor.shape):
        open_, known = [], 1
        for name in group:
            if name == "1":
                lengths[name] = 1
            elif name.isdigit():
                raise EinopsError(f"a number other than 1 on the left of `{pattern}`")
            if name in lengths:
                known *= lengths[name]
            else:
                open_.append(name)
        if len(open_) > 1:
            raise EinopsError(f"could not infer the sizes for {sorted(open_)} in `{pattern}`")
        if open_:
            if length % known:
                raise EinopsError(f"can't divide axis of length {length} in chunks of {known} in `{pattern}`")
            lengths[open_[0]] = length // known
        elif known != length:
            raise EinopsError(f"shape mismatch in `{pattern}`: {length} != {known}")
        names += [n for n in group if n != "1"]
    if len(set(names)) != len(names):
        raise EinopsError(f"an axis stands twice on the left of `{pattern}`")
    return right, names, lengths, tensor.reshape([lengths[n] for n in names])


def _arranged(tensor, names, right, lengths):
    """The tensor, a dimension a name, as the right side has it."""
    wanted = [n for g in right for n in g if n != "1"]
    order = [names.index(n) for n in wanted]
    tensor = tensor.permute(order) if order else tensor
    shape = []
    for group in right:
        length = 1
        for name in group:
            length *= lengths.get(name, 1)
        shape.append(length)
    return tensor.reshape(shape)


def _stacked(tensor):
    return torch.stack(list(tensor)) if isinstance(tensor, (list, tuple)) else tensor


def rearrange(tensor, pattern, **axes_lengths):
    right, names, lengths, tensor = _plan(_stacked(tensor), pattern, axes_lengths)
    wanted = [n for g in right for n in g if n != "1"]
    if sorted(wanted) != sorted(names):
        raise EinopsError(f"identifiers only on one side of `{pattern}`: {sorted(set(wanted) ^ set(names))}")
    return _arranged(tensor, names, right, lengths)


def repeat(tensor, pattern, **axes_lengths):
    right, names, lengths, tensor = _plan(_stacked(tensor), pattern, axes_lengths)
    numbered = []
    for group in right:
        out = []
        for name in group:
            if name.isdigit() and name != "1":
                lengths[name + f"#{len(numbered)}"] = int(name)
                name = name + f"#{len(numbered)}"
            out.append(name)
        numbered.append(out)
    for name in [n for g in numbered for n in g if n != "1" and n not in names]:
        if name not in lengths:
            raise EinopsError(f"specify sizes for new axes in repeat: `{name}`")
        tensor = tensor.unsqueeze(-1).expand(list(tensor.shape) + [lengths[name]])
        names = names + [name]
    if any(n not in [m for g in numbered for m in g] for n in names):
        raise EinopsError(f"unexpected identifiers on the left side of repeat: `{pattern}`")
    return _arranged(tensor, names, numbered, lengths)


def reduce(tensor, pattern, reduction, **axes_lengths):
    right, names, lengths, tensor = _plan(_stacked(tensor), pattern, axes_lengths)
    kept = [n for g in right for n in g if n != "1"]
    unknown_ = [n for n in kept if n not in names]
    if unknown_:
        raise EinopsError(f"unexpected identifiers on the right side of reduce: {unknown_}")
    dims = [d for d, n in enumerate(names) if n not in kept]
    if dims:
        if callable(reduction):
            tensor = reduction(tensor, tuple(dims))
        elif reduction in ("max", "min"):
            tensor = tensor.amax(dims) if reduction == "max" else tensor.amin(dims)
        elif reduction in ("any", "all", "prod"):
            for d in reversed(dims):
                tensor = tensor.any(d) if reduction == "any" else tensor.all(d) if reduction == "all" else tensor.prod(d)
        elif reduction in ("sum", "mean"):
            tensor = tensor.sum(dims) if reduction == "sum" else tensor.mean(dims)
        else:
            raise EinopsError(f"unknown reduction {reduction!r}")
    return _arranged(tensor, [n for n in names if n in kept], right, lengths)


def einsum(*operands):
    tensors, pattern = operands[:-1], operands[-1]
    letters = {}
    out = ""
    for word in pattern.replace(",", " , ").replace("->", " -> ").split():
        if word in (",", "->", "..."):
            out += word
        else:
            letters[word] = letters.get(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[len(letters)])
            out += letters[word]
    return torch.einsum(out, *tensors)


def parse_shape(tensor, pattern):
    names = pattern.split()
    if len(names) != len(tensor.shape):
        raise EinopsError(f"can't parse shape with different number of dimensions: `{pattern}`, {list(tensor.shape)}")
    return {n: length for n, length in zip(names, tensor.shape) if n != "_"}


def pack(tensors, pattern):
    names = pattern.split()
    before, after = names.index("*"), len(names) - names.index("*") - 1
    rows, shapes = [], []
    for t in tensors:
        shape = list(t.shape)
        middle = shape[before : len(shape) - after]
        shapes.append(tuple(middle))
        rows.append(t.reshape(shape[:before] + [-1] + shape[len(shape) - after :]))
    return torch.cat(rows, before), shapes


def unpack(tensor, packed_shapes, pattern):
    before = pattern.split().index("*")
    sizes = []
    for shape in packed_shapes:
        n = 1
        for length in shape:
            n *= length
        sizes.append(n)
    parts = torch.split(tensor, sizes, before)
    lead, rest = list(tensor.shape[:before]), list(tensor.shape[before + 1 :])
    return [p.reshape(lead + list(shape) + rest) for p, shape in zip(parts, packed_shapes)]
