# SPDX-License-Identifier: MIT
"""The effect of a design: a model's outputs without it and with it, in numbers. Must not know layers, designs or files."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from torch import Tensor

# The number of values recorded per output: evenly spaced rows of a larger one.
HELD = 2**24
# the compared output, by name; otherwise the first
_NAMES = ("logits", "sample", "last_hidden_state")


class Seen:
    """The record of one forward pass.

    output: [rows, width] on the cpu, without padding rows. loss: the model's own (from labels), otherwise for a language model
    the mean over the next tokens. of_tokens: the loss is a mean over tokens. inputs: a hash of the inputs.
    """

    def __init__(
        self, model: str, name: str, output: Tensor, rows: int, loss: float | None, of_tokens: bool, inputs: float
    ) -> None:
        self.model = model
        self.name = name
        self.output = output
        self.rows = rows
        self.loss = loss
        self.of_tokens = of_tokens
        self.inputs = inputs

    def state(self) -> dict[str, Any]:
        """The form that is written into a file."""
        return self.__dict__


class Difference:
    """One forward pass without the design and with it.

    relative: L2 of the difference over L2 of the output without it. cosine: of the two outputs. largest: of one value.
    kl: for logits, the mean over tokens of KL(without || with) in nats. top1: share of equal most likely tokens.
    losses and perplexities: (without, with), None if the call has no loss. same_inputs: the inputs were equal.
    """

    def __init__(self, dense: Seen, mask: Seen) -> None:
        if (dense.model, dense.name, dense.output.shape) != (mask.model, mask.name, mask.output.shape):
            raise ValueError(
                f"maskloom: {dense.model} returned {dense.name} {tuple(dense.output.shape)} without the design, and {mask.model} "
                f"{mask.name} {tuple(mask.output.shape)} with it: these are not the same call"
            )
        a, b = dense.output.double(), mask.output.double()
        self.model = dense.model
        self.name = dense.name
        self.relative = _ratio((b - a).norm().item(), a.norm().item())
        self.cosine = _ratio((a * b).sum().item(), a.norm().item() * b.norm().item())
        self.largest = (b - a).abs().max().item() if a.numel() else 0.0
        self.kl: float | None = None
        self.top1: float | None = None
        if dense.name == "logits" and a.numel():
            log_a, log_b = a.log_softmax(-1), b.log_softmax(-1)
            # a token that is impossible without the design counts 0, because -inf - -inf is NaN
            self.kl = (log_a.exp() * (log_a - log_b)).nansum(-1).mean().item()
            self.top1 = (a.argmax(-1) == b.argmax(-1)).double().mean().item()
        self.losses = None if dense.loss is None or mask.loss is None else (dense.loss, mask.loss)
        perplexities = self.losses is not None and dense.of_tokens
        self.perplexities = (_exp(dense.loss), _exp(mask.loss)) if perplexities else None
        self.same_inputs = dense.inputs == mask.inputs
        self.rows = (a.shape[0], dense.rows)

    def state(self) -> dict[str, Any]:
        """For JSON."""
        return self.__dict__

    def __str__(self) -> str:
        text = f"{self.name} of {self.model}: {self.relative:.3g} of the output's size, cosine {self.cosine:.5f}, "
        text += f"at most {self.largest:.3g}"
        if self.kl is not None and self.top1 is not None:
            text += f"; KL {self.kl:.4g} nats a token, the same most likely token in {100 * self.top1:.1f} %"
        if self.losses is not None:
            text += f"; loss {self.losses[0]:.4f} without the design, {self.losses[1]:.4f} with it"
        if self.perplexities is not None:
            text += f"; perplexity {self.perplexities[0]:.4g}, {self.perplexities[1]:.4g}"
        if self.rows[0] < self.rows[1]:
            text += f" (the output's numbers are of {self.rows[0]} of {self.rows[1]} rows)"
        return text


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else math.nan if part else 0.0


def _exp(loss: float | None) -> float:
    return math.inf if loss is None or loss > 700 else math.exp(loss)


def seen(model: Any, args: Sequence[Any], kwargs: Mapping[str, Any], output: Any) -> Seen | None:
    """The record of a forward pass; None if the output contains no float tensor."""
    name, tensor = _chosen(output)
    if tensor is None:
        return None
    tensor = tensor.detach()
    given = dict(kwargs)
    if args and isinstance(args[0], torch.Tensor) and not args[0].is_floating_point():
        given.setdefault("input_ids", args[0])
    own = _entry(output, "loss")
    loss = None if own is None or own.numel() != 1 else float(own.detach())
    of_tokens = loss is not None and name == "logits" and tensor.dim() == 3 and _generates(model)
    if loss is None and name == "logits" and _generates(model):
        loss = next_token_loss(tensor, given.get("input_ids"), given.get("attention_mask"))
        of_tokens = loss is not None
    rows = tensor.reshape(-1, tensor.shape[-1]) if tensor.dim() else tensor.reshape(1, 1)
    real = given.get("attention_mask")
    if isinstance(real, torch.Tensor) and tensor.dim() == 3 and real.shape == tensor.shape[:2]:
        # padding rows have no meaning
        rows = rows[real.reshape(-1).to(rows.device) > 0]
    count = rows.shape[0]
    kept = max(1, HELD // max(rows.shape[1], 1))
    if kept < count:
        rows = rows[torch.linspace(0, count - 1, kept, device=rows.device).round().long()]
    number = sum(_number(t) for t in _tensors((args, given)))
    return Seen(type(model).__name__, name, rows.float().cpu().clone(), count, loss, of_tokens, number)


def next_token_loss(logits: Tensor, ids: Any, real: Any = None) -> float | None:
    """Mean cross-entropy in nats of each next token. logits [B, S, V], ids [B, S], real [B, S]: 0 is padding. None without."""
    if not isinstance(ids, torch.Tensor) or ids.shape != logits.shape[:2] or ids.shape[1] < 2:
        return None
    total, count = 0.0, 0
    known = torch.ones_like(ids, dtype=torch.bool)
    if isinstance(real, torch.Tensor) and real.shape == ids.shape:
        known = real.to(ids.device) > 0
    for row in range(ids.shape[0]):
        at = (known[row, 1:] & known[row, :-1]).nonzero().flatten()
        for start in range(0, at.numel(), 1024):
            part = at[start : start + 1024]
            guess = logits[row, part.to(logits.device)].float()
            want = ids[row, part + 1].to(logits.device)
            total += torch.nn.functional.cross_entropy(guess, want, reduction="sum").item()
            count += part.numel()
    return total / count if count else None


def _generates(model: Any) -> bool:
    able = getattr(model, "can_generate", None)
    return "CausalLM" in type(model).__name__ or (callable(able) and bool(able()))


def _entry(output: Any, name: str) -> Tensor | None:
    found = output.get(name) if isinstance(output, Mapping) else getattr(output, name, None)
    return found if isinstance(found, torch.Tensor) else None


def _chosen(output: Any) -> tuple[str, Tensor | None]:
    for name in _NAMES:
        found = _entry(output, name)
        if found is not None and found.is_floating_point():
            return name, found
    # a scalar loss before the other outputs is not the output
    floats = [t for t in _tensors(output) if t.is_floating_point()]
    return "output", next((t for t in floats if t.dim() > 0), floats[0] if floats else None)


def _tensors(found: Any) -> Iterable[Tensor]:
    if isinstance(found, torch.Tensor):
        yield found
        return
    parts = found.values() if isinstance(found, Mapping) else found if isinstance(found, (tuple, list)) else ()
    for part in parts:
        yield from _tensors(part)


def _number(tensor: Tensor) -> float:
    """A sum that usually differs for other values or another order."""
    flat = tensor.detach().reshape(-1)
    if flat.is_complex() or flat.numel() == 0:
        return float(flat.numel())
    flat = flat[: 2**20].double().cpu()
    return float((flat * torch.arange(1, flat.numel() + 1, dtype=torch.float64)).sum())


def compared(run: Callable[[str], Any], model: Any, inputs: Mapping[str, Any] | Sequence[Any]) -> Difference:
    """`run("plain")` and `run("design")` return the model's output. Errors: ValueError if it contains no tensor."""
    args: Sequence[Any] = () if isinstance(inputs, Mapping) else inputs
    kwargs = inputs if isinstance(inputs, Mapping) else {}
    # the design first, so that the messages of the first call describe it
    mask, dense = (seen(model, args, kwargs, run(mode)) for mode in ("design", "plain"))
    if dense is None or mask is None:
        raise ValueError("maskloom: the model's output contains no tensor to compare")
    return Difference(dense, mask)
