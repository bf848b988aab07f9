"""The text of a wheel's modules. Owns: opening wheels and finding a module by its name. Nothing is imported or run."""

import ast
import zipfile
from functools import cache


class Wheel:
    """A wheel as a mapping of module names to parsed texts."""

    def __init__(self, path):
        self.archive = zipfile.ZipFile(path)
        self.names = set(self.archive.namelist())
        stem = path.replace("\\", "/").rsplit("/", 1)[-1].split("-")
        self.project, self.version = stem[0], stem[1]
        # the newest file in a wheel was written when it was built
        self.built = "%04d-%02d-%02d" % max(entry.date_time for entry in self.archive.infolist())[:3]

    def path(self, module):
        base = module.replace(".", "/")
        for name in (f"{base}.py", f"{base}/__init__.py"):
            if name in self.names:
                return name
        return None

    @cache
    def text(self, module):
        path = self.path(module)
        return self.archive.read(path).decode("utf-8") if path else None

    @cache
    def tree(self, module):
        """The parsed module. None: there is none, or this Python cannot parse it."""
        text = self.text(module)
        try:
            return ast.parse(text) if text is not None else None
        except SyntaxError:
            return None

    def is_package(self, module):
        return (self.path(module) or "").endswith("__init__.py")

    def modules(self, under):
        """Names of the modules in a package, sorted."""
        prefix = under.replace(".", "/") + "/"
        found = [n[:-3].replace("/", ".") for n in self.names if n.startswith(prefix) and n.endswith(".py")]
        return sorted(n.removesuffix(".__init__") for n in found)

    def absolute(self, module, level, name):
        """The module that `from ..name import` in `module` names."""
        if level == 0:
            return name
        parts = module.split(".")
        parts = parts if self.is_package(module) else parts[:-1]
        parts = parts[: len(parts) - (level - 1)] if level > 1 else parts
        return ".".join([*parts, name] if name else parts)
