"""What goes wrong in use: every way in which a mask could be missing from a model, or another one in it, without a word.

    python behaviour.py MASKLOOM WORK [MODULE...] [-MODULE...] [NAME...] [-NAME...]

MASKLOOM is the program; designs are exported into WORK. Each check compares with the mask given by hand. A check is a
function without parameters, of two words or more, of one of the modules below. NAMEs, and the checks of MODULEs, are the only ones that
run; -NAMEs and those of -MODULEs do not run. Exit status 77: the libraries are not installed.
"""

import importlib
import importlib.util
import os
import sys
import time
import traceback

MODULES = ("in_adapters", "in_axes", "in_transformers", "in_calls", "in_sidecar", "in_trainers", "in_processes", "in_training", "in_difference", "in_proof")


def checks():
    """The checks of all modules, in their order."""
    for name in MODULES:
        module = importlib.import_module(name)
        for one, function in list(vars(module).items()):
            own = callable(function) and getattr(function, "__module__", None) == name and "_" in one.strip("_")
            if own and not one.startswith("_") and function.__code__.co_argcount == 0:
                yield function


def main():
    asked, bad = sys.argv[3:], 0
    modules = [name for name in MODULES if name in asked] or [name for name in MODULES if f"-{name}" not in asked]
    wanted = [name for name in asked if name.removeprefix("-") not in MODULES]
    if not all(importlib.util.find_spec(name) for name in ("diffusers", "transformers")):
        print("skipped: no diffusers and transformers")
        sys.exit(77)
    os.makedirs(sys.argv[2], exist_ok=True)
    every = {check.__name__: check for check in checks()}
    known = [name for name, check in every.items() if check.__module__ in modules]
    unknown = [name for name in wanted if name.removeprefix("-") not in every]
    if unknown:
        sys.exit(f"no such check: {', '.join(unknown)}")
    named = [name for name in wanted if not name.startswith("-")] or [name for name in known if f"-{name}" not in wanted]
    for name in known:
        if f"-{name}" in wanted:
            print(f"left out {name}")
    for check in (every[name] for name in named):
        begun = time.monotonic()
        try:
            check()
            print(f"ok {check.__name__} ({time.monotonic() - begun:.1f} s)", flush=True)
        except Exception:
            bad += 1
            print(f"FAILED {check.__name__}\n{traceback.format_exc()}", flush=True)
    print(f"{bad} failed" if bad else "all behave")
    sys.exit(bad > 0)


main()
