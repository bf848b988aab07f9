"""`python -m maskloom`: the program of the same name, which the wheel brings along."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig

from .errors import MaskloomError


def program() -> str:
    """The path of the program. Errors: MaskloomError where it was not installed."""
    name = "maskloom.exe" if os.name == "nt" else "maskloom"
    folders = [sysconfig.get_path("scripts"), os.path.dirname(sys.executable)]
    scheme = {"nt": "nt_user", "posix": "posix_user"}.get(os.name)
    if scheme is not None:
        folders.append(sysconfig.get_path("scripts", scheme=scheme))
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    found = shutil.which(name)
    if found is not None:
        return found
    raise MaskloomError(
        "no-program",
        "the program maskloom was not installed with this package",
        "pip install . in its source builds it",
    )


def main() -> int:
    """Runs the program with this process's arguments."""
    try:
        path = program()
    except MaskloomError as why:
        print(f"error: {why}", file=sys.stderr)
        return 1
    command = [path, *sys.argv[1:]]
    if os.name == "nt":
        return subprocess.run(command).returncode
    os.execv(path, command)
    raise AssertionError("unreachable")


if __name__ == "__main__":
    sys.exit(main())
