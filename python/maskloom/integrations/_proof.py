"""Whether a mask is in a model: one token is changed, and the rows of the output that change are compared with the
mask.

Invariant: rows that the masks of all calls together cannot reach, and that changed, are an error; a model none of
whose calls
went through Maskloom is one as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from .. import _divided
from ..errors import ArgumentError
from ._calls import PLANNED, MaskLost, Seen, recorded

__all__ = ["Proof", "proof"]


class Proof:
    """What `proof` found. `calls`: attention calls with Maskloom. `token`: the one that was changed.

    `changed` and `expected` are rows of the output, as lists; `ok` says that they are equal."""

    def __init__(self, calls: int, token: int, changed: list[int], expected: list[int], tokens: int) -> None:
        self.calls, self.token, self.tokens = calls, token, tokens
        self.changed, self.expected = changed, expected

    @property
    def ok(self) -> bool:
        return self.changed == self.expected

    def __repr__(self) -> str:
        rows = f"{len(self.changed)} of {self.tokens} rows changed with token {self.token}"
        verdict = "as the masks say" if self.ok else f"the masks say {len(self.expected)}"
        return f"Proof({self.calls} calls, {rows}, {verdict})"


def proof(
    model: Callable[..., Any],
    inputs: Mapping[str, Any],
    *,
    token: int | None = None,
    mask: torch.Tensor | Sequence[torch.Tensor] | None = None,
    change: Callable[[dict[str, Any], int], dict[str, Any]] | None = None,
    offset: int = 0,
    exact: bool = True,
) -> Proof:
    """Changes one token of the first sample, counts the rows of the output that change, and compares them with the
    masks.

    A row changes if the masks of the model's layers, one after another, let it see the token.

    Args:
        model: called as `model(**inputs)`, without gradients, twice. Dropout must be off: `model.eval()`.
        inputs: its arguments. The first of `input_ids` [B, S], `inputs_embeds` and `hidden_states` [B, S, E] is
            changed.
        token: which token; None takes the one that reaches neither all rows nor only itself, if there is one.
        mask: what the mask is to be, bool [Q, KV], or one for each layer, if not what the calls were given.
        change: `(inputs, token) -> inputs`, for models whose tokens are none of the three.
        offset: position, in the attention, of the changed tensor's first token, and of the output's first row.
        exact: rows that the masks let see the token must change, too. False: they may stay, as where a layer mixes
            nothing.

    Returns:
        A Proof.

    Raises:
        MaskLost: no call went through Maskloom, or rows changed that the mask hides the token from, or stayed that
            see it.
        ArgumentError: the inputs have no tokens that are known.
    """
    with torch.no_grad(), recorded() as seen:
        before = _rows(model(**inputs))
    if not seen:
        hint = 'attn_implementation="maskloom", or set_attention_backend("maskloom")'
        why = _divided.of_model(model) if hasattr(model, "modules") else None
        message = "no attention call of the model went through Maskloom"
        raise MaskLost("mask-lost", message if why is None else f"{message}: {why}", hint if why is None else PLANNED)
    reached = _reach(_masks(mask, seen))
    tokens = reached.size(0)
    if token is None:
        token = _telling(reached[offset : offset + before.size(1), offset:])
    changed_inputs = (change or _changed)(dict(inputs), token)
    with torch.no_grad():
        after = _rows(model(**changed_inputs))
    differs = (before[0] != after[0]).flatten(1).any(-1) & ~(before[0].isnan() & after[0].isnan()).flatten(1).all(-1)
    expected = reached[offset : offset + before.size(1), offset + token]
    rows = differs.nonzero().flatten().tolist()
    found = Proof(len(seen), token, rows, expected.nonzero().flatten().tolist(), tokens)
    leaked = sorted(set(found.changed) - set(found.expected))
    if leaked:
        text = f"{len(leaked)} rows changed with token {token} from which the mask hides it"
        message = f"{text}, the first is {leaked[0]}: {found!r}"
        raise MaskLost(
            "mask-lost", message, "another attention function took a call, or the mask given is not the model's"
        )
    missing = sorted(set(found.expected) - set(found.changed))
    if missing and exact:
        message = f"{len(missing)} rows that see token {token} did not change, the first is {missing[0]}: {found!r}"
        raise MaskLost(
            "mask-narrow", message, "another mask hides the token; exact=False accepts rows that do not change"
        )
    return found


def _masks(mask: torch.Tensor | Sequence[torch.Tensor] | None, seen: list[Seen]) -> list[torch.Tensor]:
    square = [one for one in seen if one.lengths[0] == one.lengths[1]]
    longest = max((one.lengths for one in square), default=(0, 0))
    square = [one for one in square if one.lengths == longest]
    if mask is None:
        return [one.dense() for one in square]
    if isinstance(mask, torch.Tensor):
        return [mask.cpu()] * len(square)
    if len(mask) != len(square):
        message = f"mask has {len(mask)} masks, the model made {len(square)} calls over {longest[0]} tokens"
        raise ArgumentError("mask", message, "pass one for each layer, or one for all")
    return [one.cpu() for one in mask]


def _reach(masks: list[torch.Tensor]) -> torch.Tensor:
    """Which rows see which tokens after all layers: each layer adds the keys that its mask keeps."""
    if not masks:
        raise ArgumentError("calls", "no call of the model is over one sequence", "pass inputs over whole sequences")
    reached = torch.eye(masks[0].size(0), dtype=torch.bool)
    for mask in masks:
        # a residual path: a row keeps what it saw
        reached = reached | ((mask.flatten(0, -3).any(0) if mask.dim() > 2 else mask).float() @ reached.float() > 0)
    return reached


def _telling(reached: torch.Tensor) -> int:
    """A token that says most: as many rows see it as do not."""
    rows = reached.sum(0)
    return int((rows - reached.size(0) / 2).abs().argmin())


def _changed(inputs: dict[str, Any], token: int) -> dict[str, Any]:
    for name in ("input_ids", "inputs_embeds", "hidden_states"):
        given = inputs.get(name)
        if isinstance(given, torch.Tensor) and given.dim() == (2 if name == "input_ids" else 3):
            given = given.clone()
            if name == "input_ids":
                other = given[0][given[0] != given[0, token]]
                given[0, token] = other[0] if other.numel() else given[0, token] + 1
            else:
                given[0, token] = given[0, token] * -1.5 + 1.0
            return {**inputs, name: given}
    raise ArgumentError(
        "inputs", "none of input_ids, inputs_embeds and hidden_states is a tensor of tokens", "pass change="
    )


def _rows(output: Any) -> torch.Tensor:
    """The first float tensor [B, S, ..] of an output."""
    if isinstance(output, torch.Tensor):
        return output
    parts = output.values() if hasattr(output, "values") else output if isinstance(output, (tuple, list)) else ()
    for part in parts:
        if isinstance(part, torch.Tensor) and part.is_floating_point() and part.dim() > 2:
            return part
    raise ArgumentError("output", "the model's output has no tensor [B, S, ..]", "wrap the model")
