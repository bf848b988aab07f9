"""The paths through a function of another program, found by reading its text with `ast`. Nothing of it is imported or run.

Owns: which states a function can leave behind (`Reader.run`), where a condition that the text alone does not decide is
taken both ways. Invariant: what cannot be read is `UNKNOWN`, never guessed. Must not know trainers."""

import ast
from dataclasses import dataclass, field, replace
from typing import Any


class _Unknown:
    def __repr__(self):
        return "unknown"


UNKNOWN = _Unknown()
NOT_SIMPLE = object()


@dataclass(frozen=True)
class Mark:
    """A value that is followed: the mask of a call, or is_causal. `via` names what it went through."""

    name: str
    via: frozenset = frozenset()


@dataclass(frozen=True)
class Carried:
    """An unknown value that was computed from marks."""

    marks: frozenset


@dataclass(frozen=True)
class Member:
    """A member of an enum of the text."""

    owner: str
    name: str
    value: Any


@dataclass(frozen=True)
class Named:
    """A function or class of the text, or something that it imports.

    `bound` are the arguments of a `partial`; `where` is the definition inside a function, or the import there."""

    name: str
    bound: tuple = ()
    where: Any = None
    holds: frozenset = frozenset()  # marks that a function inside a function reads


@dataclass
class State:
    """What one path has done so far."""

    names: dict
    facts: dict  # what the caller's hook noted
    done: str = ""  # "return" or "raise"
    value: Any = None

    def copy(self):
        return replace(self, names=dict(self.names), facts=dict(self.facts))


def marks(value) -> frozenset:
    """The names of the marks in a value."""
    if isinstance(value, Mark):
        return frozenset([value])
    if isinstance(value, Carried):
        return value.marks
    if isinstance(value, Named):
        return value.holds
    if isinstance(value, (tuple, list)):
        return frozenset(m for item in value for m in marks(item))
    return frozenset()


def truth(value):
    """True, False, or None where the text does not decide."""
    if isinstance(value, (_Unknown, Carried)):
        return None
    if isinstance(value, Named):
        # an attribute of another package may be anything, unless it is written as a constant
        last = value.name.rsplit(".", 1)
        return True if len(last) == 1 or last[1].isupper() else None
    if isinstance(value, (Mark, Member)):
        return True
    return bool(value)


LIMIT = 400  # paths through one function; beyond it the result is unknown


@dataclass
class Reader:
    """Reads one module. `on_call` and `on_assign` see each call and each assignment to an attribute; `follow` opens imports."""

    tree: ast.Module
    on_call: Any = None
    on_assign: Any = None
    follow: Any = None
    depth: int = 0
    known: dict = field(default_factory=dict)
    functions: dict = field(default_factory=dict)
    classes: dict = field(default_factory=dict)
    imports: dict = field(default_factory=dict)
    enums: dict = field(default_factory=dict)  # members of enums that the text imports

    def __post_init__(self):
        for node in self.tree.body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.functions[node.name] = node
            elif isinstance(node, ast.ClassDef):
                self.classes[node.name] = node
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                self.imports.update({a.asname or a.name.split(".")[0]: None for a in node.names})
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    self.imports[alias.asname or alias.name] = (node.level, node.module or "", alias.name)
        for node in self.tree.body:
            self._module_level(node)

    def _module_level(self, node):
        """Constants of the module, also those that a loop fills. An import in a `try` and what is no constant stay unknown."""
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.For, ast.If)):
            state = State(names=self.known, facts={})
            try:
                after = self.block([node], [state], {})
            except (RecursionError, TypeError, ValueError):
                return
            if len(after) == 1 and not after[0].done:
                self.known.update(after[0].names)

    # --- classes ---
    def method(self, owner, name):
        node = self.classes.get(owner)
        found = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == name] if node else []
        return found[0] if found else None

    def members(self, owner):
        if owner in self.enums:
            return self.enums[owner]
        node = self.classes.get(owner)
        if node is None or not any("Enum" in ast.dump(base) for base in node.bases):
            return {}
        pairs = [n for n in node.body if isinstance(n, ast.Assign) and isinstance(n.value, ast.Constant)]
        return {n.targets[0].id: Member(owner, n.targets[0].id, n.value.value) for n in pairs}

    # --- statements ---
    def run(self, function, arguments, facts=None, owner=None):
        """Every state that the function can end in."""
        names = dict(arguments)
        every = function.args.posonlyargs + function.args.args
        for arg, default in zip(reversed(every), reversed(function.args.defaults)):
            names.setdefault(arg.arg, self.value(default, State({}, {}), {}))
        for arg, default in zip(function.args.kwonlyargs, function.args.kw_defaults):
            if default is not None:
                names.setdefault(arg.arg, self.value(default, State({}, {}), {}))
        for arg in every + function.args.kwonlyargs:
            names.setdefault(arg.arg, UNKNOWN)
        if owner and every and every[0].arg in ("cls", "self"):
            names[every[0].arg] = arguments.get(every[0].arg, Named(owner))
        return self.block(function.body, [State(names, dict(facts or {}))], {"owner": owner})

    def block(self, body, states, at):
        for statement in body:
            going = [s for s in states if not s.done]
            if not going:
                break
            states = [s for s in states if s.done]
            for state in going:
                states += self.step(statement, state, at)
            states = _merged(states)
            if len(states) > LIMIT:
                raise ValueError("too many paths")
        return states

    def step(self, node, state, at):
        if isinstance(node, ast.If):
            taken = []
            for value, after in self.every(node.test, state, at):
                answer = truth(value)
                if answer is not False:
                    taken += self.block(node.body, [after.copy()], at)
                if answer is not True:
                    taken += self.block(node.orelse, [after.copy()], at)
            return taken
        if isinstance(node, ast.Return):
            if node.value is None:
                return [_ended(state, "return", None)]
            return [_ended(after, "return", value) for value, after in self.every(node.value, state, at)]
        if isinstance(node, ast.Raise):
            return [_ended(state.copy(), "raise", None)]
        if isinstance(node, ast.Try):
            # the way without an exception, and one through each handler that goes on
            went = self.block(node.body + node.orelse, [state.copy()], at)
            for handler in node.handlers:
                caught = self.block(handler.body, [state.copy()], at)
                went += [s for s in caught if s.done == "return"]
            return [t for s in went for t in (self.block(node.finalbody, [s], at) if not s.done else [s])]
        if isinstance(node, ast.With):
            after = [state]
            for item in node.items:
                after = [s for one in after for _, s in self.every(item.context_expr, one, at)]
            return self.block(node.body, after, at)
        if isinstance(node, ast.FunctionDef):
            read = [state.names[n.id] for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in state.names]
            state.names[node.name] = Named(node.name, (), node, marks(read))
            return [state]
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.split(".")[0]
                state.names[name] = Named(name)
            return [state]
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                name = alias.asname or alias.name
                state.names[name] = Named(name, (), (node.level, node.module or "", alias.name))
            return [state]
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            if node.value is None:
                return [state]
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            out = []
            for value, after in self.every(node.value, state, at):
                after = after.copy()
                for target in targets:
                    self.assign(target, value, after, at, node)
                out.append(after)
            return out
        if isinstance(node, ast.For):
            items = self.value(node.iter, state, at)
            if not isinstance(items, (list, tuple)):
                # zero or one turn stand for all
                return [state.copy(), *self.block(node.body, [state.copy()], at)]
            states = [state]
            for item in items:
                turned = []
                for one in states:
                    self.assign(node.target, item, one, at, node)
                    turned += self.block(node.body, [one], at)
                states = [s for s in turned]
            for one in states:
                one.done = one.done if one.done in ("return", "raise") else ""
            return states
        if isinstance(node, (ast.Continue, ast.Break)):
            return [state]
        if isinstance(node, ast.Expr):
            return [after for _, after in self.every(node.value, state, at)]
        return [state]

    def assign(self, target, value, state, at, node):
        if isinstance(target, ast.Name):
            state.names[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            same = isinstance(value, (tuple, list)) and len(value) == len(target.elts)
            for index, part in enumerate(target.elts):
                inner = part.value if isinstance(part, ast.Starred) else part
                self.assign(inner, value[index] if same else _spread(value), state, at, node)
        elif isinstance(target, ast.Subscript):
            owner = self.value(target.value, state, at)
            key = self.value(target.slice, state, at)
            if isinstance(owner, dict) and not isinstance(key, _Unknown):
                owner[key] = value
        elif isinstance(target, ast.Attribute) and self.on_assign:
            self.on_assign(self, target, value, state, at)

    # --- expressions ---
    def value(self, node, state, at):
        """The value if all paths agree, else unknown."""
        ways = self.every(node, state.copy(), at)
        if len(ways) == 1:
            # what a call inside the expression did is done
            state.facts = ways[0][1].facts
        found = [v for v, _ in ways]
        same = found and all(type(v) is type(found[0]) and _equal(v, found[0]) for v in found)
        return found[0] if same else UNKNOWN

    def every(self, node, state, at):
        """(value, state) for each way through an expression; ways differ where an inlined function has several returns."""
        if isinstance(node, ast.Call):
            return self.call(node, state, at)
        return [(self.plain(node, state, at), state)]

    def plain(self, node, state, at):
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            if node.id in state.names:
                return state.names[node.id]
            if node.id in self.known:
                return self.known[node.id]
            if node.id in self.functions or node.id in self.classes or node.id in self.imports:
                return Named(node.id)
            return UNKNOWN
        if isinstance(node, ast.Attribute):
            return self.attribute(node, state, at)
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            return tuple(self.value(item, state, at) for item in node.elts)
        if isinstance(node, ast.Dict):
            keys = [self.value(k, state, at) if k else UNKNOWN for k in node.keys]
            return {k: self.value(v, state, at) for k, v in zip(keys, node.values) if not isinstance(k, _Unknown)}
        if isinstance(node, ast.BoolOp):
            return self.boolean(node, state, at)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            answer = truth(self.value(node.operand, state, at))
            return UNKNOWN if answer is None else not answer
        if isinstance(node, ast.Compare):
            return self.compare(node, state, at)
        if isinstance(node, ast.IfExp):
            answer = truth(self.value(node.test, state, at))
            if answer is None:
                both = [self.value(node.body, state, at), self.value(node.orelse, state, at)]
                return Carried(marks(both)) if marks(both) else UNKNOWN
            return self.value(node.body if answer else node.orelse, state, at)
        if isinstance(node, ast.Subscript):
            owner, key = self.value(node.value, state, at), self.value(node.slice, state, at)
            if isinstance(owner, dict) and not isinstance(key, _Unknown):
                return owner.get(key, UNKNOWN)
            return _carried([owner])
        inner = [self.value(n, state, at) for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]
        return _carried(inner)

    def boolean(self, node, state, at):
        stops = isinstance(node.op, ast.Or)
        last: Any = UNKNOWN
        undecided = False
        for item in node.values:
            last = self.value(item, state, at)
            answer = truth(last)
            if answer is stops:
                return True if undecided and stops else (False if undecided else last)
            undecided = undecided or answer is None
        return UNKNOWN if undecided else last

    def compare(self, node, state, at):
        if len(node.ops) != 1:
            return UNKNOWN
        left, right = self.value(node.left, state, at), self.value(node.comparators[0], state, at)
        operator = node.ops[0]
        if isinstance(operator, (ast.Is, ast.IsNot)) and right is None and truth(left) is None and isinstance(left, Named):
            return UNKNOWN
        if isinstance(operator, (ast.Is, ast.IsNot)) and right is None and not isinstance(left, _Unknown):
            # a value computed from the mask is something
            answer = left is None
            return answer if isinstance(operator, ast.Is) else not answer
        dotted = [isinstance(v, Named) and "." in v.name for v in (left, right)]
        if any(dotted) or any(isinstance(v, (_Unknown, Carried, Mark)) for v in (left, right)):
            return UNKNOWN
        if isinstance(operator, (ast.In, ast.NotIn)):
            if not isinstance(right, (tuple, list, dict, str)) or UNKNOWN in _items(right):
                return UNKNOWN
            return (left in right) == isinstance(operator, ast.In)
        if isinstance(operator, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
            return (left == right) == isinstance(operator, (ast.Eq, ast.Is))
        if isinstance(operator, (ast.Gt, ast.Lt, ast.GtE, ast.LtE)) and all(isinstance(v, (int, float)) for v in (left, right)):
            return {ast.Gt: left > right, ast.Lt: left < right, ast.GtE: left >= right, ast.LtE: left <= right}[type(operator)]
        return UNKNOWN

    def attribute(self, node, state, at):
        owner = self.value(node.value, state, at)
        if isinstance(owner, Named):
            members = self.members(owner.name)
            if node.attr in members:
                return members[node.attr]
            if owner.name == at.get("owner"):
                return state.facts.get(("class", node.attr), self.class_value(owner.name, node.attr))
            # a constant of another package is something
            return Named(f"{owner.name}.{node.attr}") if owner.name not in self.classes else UNKNOWN
        if isinstance(owner, Member):
            if node.attr in ("value", "name"):
                return getattr(owner, node.attr)
            getter = self.method(owner.owner, node.attr)
            if getter is not None:
                ends = [s.value for s in self.run(getter, {"self": owner}) if s.done == "return"]
                return ends[0] if len(ends) == 1 else UNKNOWN
        return _carried([owner])

    def class_value(self, owner, name):
        for node in self.classes[owner].body if owner in self.classes else []:
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0] if isinstance(node, ast.Assign) else None
            if isinstance(target, ast.Name) and target.id == name and node.value is not None:
                return self.value(node.value, State({}, {}), {})
        return UNKNOWN

    def call(self, node, state, at):
        arguments = [self.value(a.value if isinstance(a, ast.Starred) else a, state, at) for a in node.args]
        keywords = {k.arg or "**": self.value(k.value, state, at) for k in node.keywords}
        if self.on_call:
            answer = self.on_call(self, node, arguments, keywords, state, at)
            if answer is not None:
                return [(answer, state)]
        simple = self.simple(node, arguments, state, at)
        if simple is not NOT_SIMPLE:
            return [(simple, state)]
        target = self.target(node.func, state, at)
        if target is not None and self.depth < 6:
            return self.inlined(target, node, arguments, keywords, state, at)
        of = [self.value(node.func.value, state, at)] if isinstance(node.func, ast.Attribute) else []
        return [(_carried([*of, *arguments, *keywords.values()], _name(node.func)), state)]

    def simple(self, node, arguments, state, at):
        """Functions of Python itself. NOT_SIMPLE: no such function, or its arguments are not known."""
        name = _name(node.func)
        if isinstance(node.func, ast.Name):
            if name == "getattr" and len(arguments) >= 2 and isinstance(arguments[1], str):
                owner = arguments[0]
                if isinstance(owner, dict):
                    return owner.get(arguments[1], arguments[2] if len(arguments) > 2 else UNKNOWN)
                return NOT_SIMPLE
            if name == "isinstance" and len(node.args) == 2 and isinstance(node.args[1], ast.Name):
                kinds = {"str": str, "bool": bool, "dict": dict}
                asked = arguments[1].name if isinstance(arguments[1], Named) else node.args[1].id
                if isinstance(arguments[0], (_Unknown, Carried, Mark)):
                    return NOT_SIMPLE
                if isinstance(arguments[0], Member):
                    return asked == arguments[0].owner
                return isinstance(arguments[0], kinds[asked]) if asked in kinds else False if asked in self.classes else NOT_SIMPLE
            if name in ("str", "int", "bool", "set", "list", "tuple", "sorted") and len(arguments) == 1:
                value = arguments[0]
                if isinstance(value, (_Unknown, Carried, Mark, Member)):
                    return NOT_SIMPLE
                if name in ("str", "int", "bool"):
                    return {"str": str, "int": int, "bool": bool}[name](value)
                return tuple(value)
            if name == "partial" and arguments and isinstance(arguments[0], Named):
                return Named(arguments[0].name, tuple(arguments[1:]), arguments[0].where)
            made = state.names.get(name)
            owner = made.name if isinstance(made, Named) else name
            members = self.members(owner)
            if members and len(arguments) == 1:
                return next((m for m in members.values() if m.value == arguments[0]), UNKNOWN)
            return NOT_SIMPLE
        if isinstance(node.func, ast.Attribute):
            owner = self.value(node.func.value, state, at)
            plain = all(isinstance(a, (str, int, type(None), tuple)) for a in arguments)
            if isinstance(owner, str) and plain and name in ("strip", "lower", "replace", "startswith", "endswith", "split"):
                return getattr(owner, name)(*arguments)
            if isinstance(owner, dict) and name == "get" and arguments and not isinstance(arguments[0], _Unknown):
                return owner.get(arguments[0], arguments[1] if len(arguments) > 1 else None)
            if isinstance(owner, dict) and name in ("items", "keys", "values"):
                return tuple(getattr(owner, name)())
        return NOT_SIMPLE

    def target(self, node, state, at):
        """(reader, function, owner, bound arguments) of a call into the text."""
        if isinstance(node, ast.Attribute):
            owner = self.value(node.value, state, at)
            if isinstance(owner, Named) and (found := self.method(owner.name, node.attr)):
                return self, found, owner.name, ()
            return None
        named = self.value(node, state, at)
        if not isinstance(named, Named):
            return None
        if isinstance(named.where, ast.FunctionDef):
            return self, named.where, None, named.bound
        if named.name in self.functions:
            return self, self.functions[named.name], None, named.bound
        place = named.where or self.imports.get(named.name)
        if place and self.follow:
            level, module, name = place
            other = self.follow(level, module)
            seen = 0
            while other is not None and name not in other.functions and other.imports.get(name) and seen < 4:
                level, module, name = other.imports[name]
                other, seen = other.follow(level, module) if other.follow else None, seen + 1
            if other is not None and name in other.functions:
                other.on_call, other.on_assign, other.depth = self.on_call, self.on_assign, self.depth + 1
                return other, other.functions[name], None, named.bound
        return None

    def inlined(self, target, node, arguments, keywords, state, at):
        reader, function, owner, bound = target
        every = [a.arg for a in function.args.posonlyargs + function.args.args]
        decorated = {_name(d) for d in function.decorator_list}
        given: dict = {}
        if owner and "staticmethod" not in decorated:
            given[every[0]], every = Named(owner), every[1:]
        given.update(zip(every, [*bound, *arguments]))
        given.update({k: v for k, v in keywords.items() if k != "**"})
        self.depth += 1
        try:
            ends = reader.run(function, given, state.facts, owner)
        except (ValueError, RecursionError):
            return [(_carried([*arguments, *keywords.values()], function.name), state)]
        finally:
            self.depth -= 1
        out = []
        for end in _merged(ends):
            after = state.copy()
            after.facts = dict(end.facts)
            if end.done == "raise":
                continue
            out.append((end.value if end.done == "return" else None, after))
        if not out:
            state = state.copy()
            state.done = "raise"
            return [(UNKNOWN, state)]
        return out


def _ended(state, how, value):
    state = state.copy()
    state.done, state.value = how, value
    return state


def _merged(states):
    """The states without those that differ in nothing."""
    kept: list = []
    for state in states:
        if not any(s.done == state.done and _equal(s.value, state.value) and s.facts == state.facts and s.names == state.names for s in kept):
            kept.append(state)
    return kept


def _equal(a, b):
    try:
        return type(a) is type(b) and bool(a == b)
    except RecursionError:
        return False


def _items(value):
    return [] if isinstance(value, str) else list(value)


def _spread(value):
    return Carried(marks(value)) if marks(value) else UNKNOWN


def _carried(values, through=None):
    found = frozenset(Mark(m.name, m.via | ({through} if through else frozenset())) for v in values for m in marks(v))
    return Carried(found) if found else UNKNOWN


def _name(node):
    while isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
