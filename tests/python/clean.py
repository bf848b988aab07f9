"""Whether exported Python is clean: `ruff check` and `mypy --strict` over an export's folder, with the tools of this Python.

    python clean.py EXPORT...

Exit status 77: a tool is not installed, and what was run is clean.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile

# line length of the library, and what ruff checks beyond its own rules
RUFF = ("check", "--no-cache", "--isolated", "--line-length", "130", "--select", "E,W,F,I,UP,B,SIM")
MYPY = ("--strict", "--no-error-summary")


def ran(tool, *args, cwd):
    found = subprocess.run([sys.executable, "-m", tool, *args], cwd=cwd, capture_output=True, text=True)
    assert found.returncode == 0, f"{tool} in {cwd}:\n{found.stdout[-4000:]}{found.stderr[-2000:]}"
    print(f"{tool}: clean", flush=True)


def main():
    missing = [tool for tool in ("ruff", "mypy") if not importlib.util.find_spec(tool)]
    for folder in sys.argv[1:]:
        modules = sorted(name for name in os.listdir(folder) if name.endswith(".py") and not name.endswith("_kernel.py"))
        assert modules, f"{folder} holds no module"
        if "ruff" not in missing:
            ran("ruff", *RUFF, ".", cwd=folder)
        if "mypy" not in missing:
            with tempfile.TemporaryDirectory() as cache:
                # what mypy reads of torch is read once
                kept = (f"--cache-dir={os.environ.get('MYPY_CACHE_DIR') or cache}", *MYPY)
                ran("mypy", *kept, *modules, cwd=folder)
                ran("mypy", *kept, "maskloom_sidecar", "sitecustomize.py", cwd=os.path.join(folder, "sidecar"))
    if missing:
        print(f"skipped: no {' and no '.join(missing)}")
        sys.exit(77)


main()
