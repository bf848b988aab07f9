"""What each value of SimpleTuner's `attention_mechanism` does, read from its controller.

Owns: following `AttentionBackendController.apply` for one value and phase. Invariant: a value whose paths cannot be read is
`unknown`. Must not know model families."""

import ast

from paths import UNKNOWN, Mark, Member, Named, Reader, State, marks

MODULE = "simpletuner.helpers.training.attention_backend"
SETTING = "simpletuner.simpletuner_sdk.server.services.field_registry.sections.advanced"
KEPT = ("scaled_dot_product_attention", "scaled_dot_product_attention_sdpa")
OWNER = "AttentionBackendController"


def choices(wheel):
    """(values, default) of the setting."""
    tree = wheel.tree(SETTING)
    values = default = None
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "attention_mechanisms":
            values = ast.literal_eval(node.value)
        if isinstance(node, ast.Call):
            given = {k.arg: k.value for k in node.keywords}
            if isinstance(given.get("name"), ast.Constant) and given["name"].value == "attention_mechanism":
                default = ast.literal_eval(given["default_value"])
    return values, default


def reader_of(wheel, module, **hooks):
    """A reader whose imports of the same wheel can be followed."""
    tree = wheel.tree(module)
    if tree is None:
        return None
    reader = Reader(tree, **hooks)
    reader.follow = lambda level, name: reader_of(wheel, wheel.absolute(module, level, name)) if wheel.path(
        wheel.absolute(module, level, name)
    ) else None
    return reader


def _on_assign(reader, target, value, state, at):
    if target.attr == "scaled_dot_product_attention":
        # PyTorch's own, or what the controller put aside of it
        own = not isinstance(value, Named) or value.name.rsplit(".", 1)[-1] in KEPT
        state.facts["sdpa"] = "original" if own else value
    elif isinstance(target.value, ast.Name) and target.value.id == "cls":
        state.facts[("class", target.attr)] = value


def _on_call(targets):
    def on_call(reader, node, arguments, keywords, state, at):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name == "AttentionBackendName" and arguments and isinstance(arguments[0], str):
            return next((m for m in targets.values() if m.value == arguments[0]), UNKNOWN)
        if name == "diffusers_attention_backend" and arguments:
            backend = arguments[0]
            state.facts["dispatcher"] = backend.value if isinstance(backend, Member) else "unknown"
        if name == "sdpa_kernel" and arguments:
            state.facts["steered"] = True
        if name in ("warning", "info", "error") and any(isinstance(a, str) and "will not be trained" in a for a in arguments):
            state.facts["untrained"] = True
        return None

    return on_call


def effects(wheel, value, phase, usage, targets):
    """The states in which the controller can leave PyTorch and diffusers: dicts, or None where its text cannot be read."""
    reader = reader_of(wheel, MODULE, on_call=_on_call(targets), on_assign=_on_assign, enums={"AttentionBackendName": targets})
    apply = reader.method(OWNER, "apply")
    config = {"attention_mechanism": value}
    if usage is not None:
        config["sageattention_usage"] = usage
    phases = reader.members("AttentionPhase")
    try:
        ends = reader.run(apply, {"config": config, "phase": phases[phase]}, {"sdpa": "original"}, OWNER)
    except (ValueError, RecursionError):
        return None
    found = []
    for end in ends:
        if end.done == "raise":
            continue
        replaced = end.facts.get("sdpa", "original")
        effect = {
            "replaces": isinstance(replaced, Named),
            "steers": bool(end.facts.get("steered")),
            "dispatcher": end.facts.get("dispatcher"),
            "untrained": bool(end.facts.get("untrained")),
            "mask": _mask_of(reader, replaced, end) if isinstance(replaced, Named) else None,
        }
        if effect not in found:
            found.append(effect)
    return found


def _mask_of(reader, named, end):
    """What the replacement does with `attn_mask`: keeps, drops, unknown."""
    state = State({**end.names, "replacement": named}, dict(end.facts))
    target = reader.target(ast.Name(id="replacement", ctx=ast.Load()), state, {"owner": OWNER})
    if target is None:
        return "unknown"
    owner, function, _, bound = target
    names = [a.arg for a in function.args.args]
    given = dict(zip(names, bound))
    given["attn_mask"] = Mark("mask")
    # what another module does with a mask that it gets is its own affair
    followed, owner.follow = owner.follow, None
    try:
        ends = owner.run(function, {"cls": Named(OWNER), **given}, {}, OWNER)
    except (ValueError, RecursionError):
        return "unknown"
    finally:
        owner.follow = followed
    answers = {bool(marks(e.value)) for e in ends if e.done == "return"}
    # a way on which the mask is kept after an exception does not help the calls without one
    return "drops" if False in answers else "keeps" if answers else "refuses"


def usages(wheel):
    """Values of `sageattention_usage`."""
    reader = reader_of(wheel, MODULE)
    return [m.value for m in reader.members("AttentionBackendMode").values()]


def switched(wheel, value):
    """Whether the trainer turns a kernel of this name on in models that have a switch for it (UNets)."""
    tree = wheel.tree("simpletuner.helpers.training.trainer")
    for node in ast.walk(tree) if tree else []:
        if not (isinstance(node, ast.If) and isinstance(node.test, ast.Compare)):
            continue
        names = [n.attr for n in ast.walk(node.test) if isinstance(n, ast.Attribute)]
        asked = [n.value for n in ast.walk(node.test) if isinstance(n, ast.Constant)]
        called = [n.func.attr for n in ast.walk(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
        if "attention_mechanism" in names and value in asked and any(value in c and "enable" in c for c in called):
            return True
    return False


def row(wheel, value, targets):
    """What a value does, by `sageattention_usage` where that counts, in training and in validation."""
    found = {}
    for usage in usages(wheel) if value.startswith("sage") else [None]:
        phases = (("TRAIN", "training"), ("EVAL", "validation"))
        found[usage or "always"] = {name: _words(effects(wheel, value, phase, usage, targets)) for phase, name in phases}
    if switched(wheel, value):
        found["switches_unets"] = True
    return found


def default_usage(wheel):
    """The value of `sageattention_usage` in a config without one."""
    reader = reader_of(wheel, MODULE)
    return {m.name: m.value for m in reader.members("AttentionBackendMode").values()}.get("INFERENCE")


def _words(found):
    if not found:
        return {"effect": "unknown"}
    kinds = {("replaces" if e["replaces"] else "steers" if e["steers"] else "none") for e in found}
    row = {"effect": kinds.pop() if len(kinds) == 1 else "may replace" if "replaces" in kinds else "unknown"}
    dispatched = {e["dispatcher"] for e in found} - {None}
    if dispatched:
        row["dispatcher"] = dispatched.pop() if len(dispatched) == 1 else "unknown"
    masks = {e["mask"] for e in found if e["mask"]}
    if masks:
        row["mask"] = masks.pop() if len(masks) == 1 else "unknown"
    if any(e["untrained"] for e in found):
        row["untrained"] = True
    return row
