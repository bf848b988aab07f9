"""Which of SimpleTuner's model families dispatch their attention through diffusers, and which call PyTorch's SDPA themselves.

Owns: following each family's MODEL_CLASS through the definitions that it names, in the trainer's wheel and in diffusers'.
Invariant: a family whose class is not found is `unknown`. Must not know what the setting's values do."""

import ast

CALLS = {"dispatch_attention_fn": "dispatches", "scaled_dot_product_attention": "sdpa"}
# packages whose definitions can be a model's attention; what is beside it there
PLACES = ("simpletuner.helpers.models.", "diffusers.models.", "diffusers")
ASIDE = ("diffusers.models.modeling_", "diffusers.models.autoencoders", "diffusers.models.cache_utils", "diffusers.models.attention_dispatch")
UNDER = "simpletuner.helpers.models"


def families(trainer, diffusers):
    """A row per registered family: what its attention calls, whether it reads the setting itself, where it sets is_causal."""
    rows = {}
    for module in trainer.modules(UNDER):
        tree = trainer.tree(module)
        named = list(_registered(tree)) if tree else []
        if not named and module.endswith(".model"):
            # a family that is registered elsewhere has the name of its folder
            named = [(module.split(".")[-2], n.name) for n in tree.body if isinstance(n, ast.ClassDef) and _has_model(n)]
        for name, owner in named:
            rows[name] = _row(trainer, diffusers, module, tree, owner)
    return rows


def _has_model(node):
    return any(isinstance(n, ast.Assign) and getattr(n.targets[0], "id", "") == "MODEL_CLASS" for n in node.body)


def _registered(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "register" and len(node.args) == 2:
            if getattr(node.func.value, "id", "") == "ModelRegistry" and isinstance(node.args[0], ast.Constant):
                yield node.args[0].value, getattr(node.args[1], "id", "")


def _row(trainer, diffusers, module, tree, owner):
    reads = any(isinstance(n, ast.Attribute) and n.attr == "attention_mechanism" for n in ast.walk(tree)) or any(
        isinstance(n, ast.Constant) and n.value == "attention_mechanism" for n in ast.walk(tree)
    )
    found, causal = set(), False
    for name in _model_classes(trainer, module, tree, owner):
        at, name = name if isinstance(name, tuple) else (module, name)
        calls, is_causal = _closure([trainer, diffusers], at, name)
        found |= calls
        causal = causal or is_causal
    if not found:
        # a model that is made of parts names no one class: the definitions of its folder stand for it
        folder = module.rsplit(".", 1)[0]
        for other in trainer.modules(folder):
            for node in (trainer.tree(other) or ast.Module([], [])).body:
                if isinstance(node, ast.ClassDef) and "Attention" in node.name:
                    found |= _closure([trainer, diffusers], other, node.name)[0]
    row = {"calls": sorted(found) or ["unknown"]}
    if causal:
        row["is_causal"] = True
    if reads:
        row["reads_setting"] = True
    return row


def _model_classes(trainer, module, tree, owner, depth=0):
    """Names of the classes that the family trains, in its own class or the one that it inherits from."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == owner:
            found = []
            for part in ast.walk(node):
                if isinstance(part, ast.Assign):
                    target = part.targets[0]
                    name = getattr(target, "id", getattr(target, "attr", ""))
                    if name == "MODEL_CLASS" and isinstance(part.value, ast.Name):
                        found.append(part.value.id)
            if found:
                return found
            for base in node.bases:
                if isinstance(base, ast.Name) and (inherited := _model_classes(trainer, module, tree, base.id, depth + 1)):
                    return inherited
    place = _imports(module, tree, trainer).get(owner)
    other = trainer.tree(place[0]) if place and depth < 4 else None
    return [(place[0], n) for n in _model_classes(trainer, place[0], other, place[1], depth + 1)] if other else []


_CACHE: dict = {}


def _imports(module, tree, wheel):
    """name -> (module, name there) of each `from ... import` outside functions: inside one it is no default."""
    if (wheel, module) in _CACHE:
        return _CACHE[(wheel, module)]
    found = _CACHE[(wheel, module)] = {}
    for node in _outside(tree.body):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                # of a `try` and its `except`, the first is what a working installation has
                found.setdefault(alias.asname or alias.name, (wheel.absolute(module, node.level, node.module or ""), alias.name))
    return found


def _outside(body):
    """Statements that run when the module is imported."""
    for node in body:
        yield node
        if isinstance(node, (ast.If, ast.Try)):
            yield from _outside([*node.body, *node.orelse, *[s for h in getattr(node, "handlers", []) for s in h.body]])


# processors that diffusers' attention classes have until a model sets its own
DEFAULTS = "diffusers.models.attention_processor"


def _closure(wheels, module, name):
    """(what is called, whether is_causal=True is passed) in every definition that this one names."""
    seen, open_, own, defaults, causal = set(), [(module, name)], set(), set(), False
    while open_:
        place = open_.pop()
        if place in seen or not place[0].startswith(PLACES) or place[0].startswith(ASIDE):
            continue
        seen.add(place)
        at, node, tree, wheel = _definition(wheels, *place)
        if node is None or at.startswith(ASIDE):
            continue
        imports = _imports(at, tree, wheel)
        calls = defaults if at == DEFAULTS else own
        top = {n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
        for part in _without_types(node):
            if isinstance(part, ast.Call):
                called = getattr(part.func, "attr", getattr(part.func, "id", ""))
                if called in CALLS:
                    calls.add(CALLS[called])
                    causal = causal or any(k.arg == "is_causal" and getattr(k.value, "value", False) is True for k in part.keywords)
                elif "flash_attn" in called and "func" in called:
                    calls.add("flash_attn")
            if isinstance(part, ast.Attribute) and part.attr in CALLS:
                calls.add(CALLS[part.attr])
            named = part.id if isinstance(part, ast.Name) else None
            if named in top:
                open_.append((at, named))
            elif named in imports and named not in CALLS:
                open_.append(imports[named])
    return own or defaults, causal


def _definition(wheels, module, name, depth=0):
    """(module, node, tree, wheel) of a definition, through packages that hand a name on."""
    none = (module, None, None, None)
    wheel = next((w for w in wheels if w.path(module)), None)
    tree = wheel.tree(module) if wheel else None
    if tree is None or depth > 6:
        return none
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
            return module, node, tree, wheel
    place = _imports(module, tree, wheel).get(name)
    for star in _outside(tree.body):
        if place is None and isinstance(star, ast.ImportFrom) and star.names[0].name == "*":
            found = _definition(wheels, wheel.absolute(module, star.level, star.module or ""), name, depth + 1)
            if found[1] is not None:
                return found
    if place:
        return _definition(wheels, *place, depth + 1)
    for other in _lazy(tree, name):
        found = _definition(wheels, f"{module}.{other}", name, depth + 1)
        if found[1] is not None:
            return found
    return none


def _without_types(node):
    """The nodes below one, without annotations: a type names many classes that are not used."""
    open_ = [node]
    while open_:
        part = open_.pop()
        yield part
        if isinstance(part, ast.AnnAssign):
            open_ += [part.value] if part.value else []
        elif isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
            open_ += [*part.body, *part.args.defaults, *part.decorator_list]
        else:
            open_ += ast.iter_child_nodes(part)


def _lazy(tree, name):
    """Submodules that a package's table of lazy imports gives for a name."""
    for node in ast.walk(tree):
        pairs = []
        if isinstance(node, ast.Dict):
            pairs = [(k, v) for k, v in zip(node.keys, node.values)]
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            pairs = [(node.targets[0].slice, node.value)]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "extend" and isinstance(node.func.value, ast.Subscript):
            pairs = [(node.func.value.slice, node.args[0])]
        for key, value in pairs:
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and isinstance(value, (ast.List, ast.Tuple)):
                if any(isinstance(i, ast.Constant) and i.value == name for i in value.elts):
                    yield key.value
