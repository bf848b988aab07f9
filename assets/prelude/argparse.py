"""Python's argparse for texts that run without a command line: every option has its default."""

from types import SimpleNamespace


class ArgumentParser:
    def __init__(self, *args, **kwargs):
        self._options = []
        self._set = {}

    def add_argument(
        self,
        *names,
        action="store",
        nargs=None,
        const=None,
        default=None,
        type=None,
        choices=None,
        required=False,
        help=None,
        metavar=None,
        dest=None,
        version=None,
    ):
        if dest is None:
            long = [name for name in names if name.startswith("--")]
            dest = (long or list(names))[0].lstrip("-").replace("-", "_")
        positional = not names[0].startswith("-")
        if action == "store_true" and default is None:
            default = False
        if action == "store_false" and default is None:
            default = True
        self._options.append((names, dest, action, nargs, const, default, type, required or positional))

    def add_argument_group(self, *args, **kwargs):
        return self

    def add_mutually_exclusive_group(self, required=False):
        return self

    def set_defaults(self, **kwargs):
        self._set.update(kwargs)

    def get_default(self, dest):
        return getattr(self.parse_args([]), dest)

    def parse_args(self, args=None, namespace=None):
        values = SimpleNamespace() if namespace is None else namespace
        for names, dest, action, nargs, const, default, type, required in self._options:
            default = self._set.get(dest, default)
            if isinstance(default, str) and type is not None:
                default = type(default)
            # what the command line must give is not there: its reader is told its name
            if not (required and default is None) and not hasattr(values, dest) and action not in ("help", "version"):
                setattr(values, dest, default)
        for dest, value in self._set.items():
            if not hasattr(values, dest):
                setattr(values, dest, value)
        self._read(values, [] if args is None else list(args))
        return values

    def parse_known_args(self, args=None, namespace=None):
        return self.parse_args(args, namespace), []

    def parse_intermixed_args(self, args=None, namespace=None):
        return self.parse_args(args, namespace)

    def _read(self, values, words):
        places = [option for option in self._options if not option[0][0].startswith("-")]
        while words:
            word = words.pop(0)
            inline = None
            if word.startswith("--") and "=" in word:
                word, inline = word.split("=", 1)
            found = [option for option in self._options if word in option[0]]
            if not found and not word.startswith("-") and places:
                found = [places.pop(0)]
                words.insert(0, word)
            if not found:
                raise ValueError(f"unrecognized arguments: {word}")
            names, dest, action, nargs, const, default, type, required = found[0]
            convert = (lambda x: x) if type is None else type
            if action in ("store_true", "store_false"):
                setattr(values, dest, action == "store_true")
            elif action == "store_const":
                setattr(values, dest, const)
            elif inline is not None:
                setattr(values, dest, convert(inline))
            elif nargs is None:
                setattr(values, dest, convert(words.pop(0)))
            else:
                most = nargs if isinstance(nargs, int) else 1 if nargs == "?" else len(words)
                taken = []
                while words and len(taken) < most and not words[0].startswith("--"):
                    taken.append(convert(words.pop(0)))
                setattr(values, dest, (taken[0] if taken else const) if nargs == "?" else taken)
