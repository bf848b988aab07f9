"""What diffusers' attention backends do with a mask and with `is_causal`, read from its dispatcher.

Owns: one row per registered backend. Invariant: a backend whose function cannot be read is `unknown`. Must not know trainers."""

import ast

from controller import reader_of
from paths import Mark, marks

MODULE = "diffusers.models.attention_dispatch"


def registered(wheel):
    """(member's name, function, takes context parallel) of each backend."""
    for node in wheel.tree(MODULE).body:
        if not isinstance(node, ast.FunctionDef):
            continue
        for call in node.decorator_list:
            if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "register":
                parallel = any(k.arg == "supports_context_parallel" and k.value.value for k in call.keywords)
                yield call.args[0].attr, node, parallel


def backends(wheel):
    """A row per backend: what becomes of a mask, of `is_causal`, and of both; whether context parallel is supported."""
    rows = {}
    for name, function, parallel in registered(wheel):
        reader = reader_of(wheel, MODULE)
        reader.follow = None
        value = reader.members("AttentionBackendName")[name].value
        takes = {a.arg for a in function.args.args}
        rows[value] = {
            "mask": _fate(reader, function, {"attn_mask": Mark("mask"), "is_causal": False}, "mask") if "attn_mask" in takes else "no argument",
            "causal": _fate(reader, function, {"attn_mask": None, "is_causal": Mark("causal")}, "causal") if "is_causal" in takes else "no argument",
            "mask_with_causal": _fate(reader, function, {"attn_mask": Mark("mask"), "is_causal": Mark("causal")}, "mask"),
            "context_parallel": parallel,
        }
        padding = [p for n in ast.walk(function) if isinstance(n, ast.Call) for p in [getattr(n.func, "id", "")] if "normalize_attn_mask" in p]
        if padding and rows[value]["mask"] == "keeps":
            rows[value]["mask"] = "padding only"
    return rows


def _fate(reader, function, given, mark):
    """keeps, drops, drops some, refuses or unknown: whether the result depends on the marked argument."""
    try:
        ends = reader.run(function, {**given, "_parallel_config": None, "return_lse": False}, {}, None)
    except (ValueError, RecursionError):
        return "unknown"
    answers = {any(m.name == mark for m in marks(e.value)) for e in ends if e.done == "return"}
    refused = any(e.done == "raise" for e in ends)
    if not answers:
        return "refuses" if refused else "unknown"
    return "drops some" if answers == {True, False} else "keeps" if answers == {True} else "drops"
