# SPDX-License-Identifier: MIT
"""Run by Python at its start when this folder is on PYTHONPATH: loads Maskloom's sidecar if MASKLOOM_SIDECAR is set.

Another sitecustomize later on the path still runs.
"""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

_HERE = os.path.dirname(os.path.realpath(__file__))


def _next_one() -> None:
    others = [entry for entry in sys.path if os.path.realpath(entry or ".") != _HERE]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_next_one()

if os.environ.get("MASKLOOM_SIDECAR"):
    try:
        import maskloom_sidecar

        maskloom_sidecar.install()
    except Exception as error:  # noqa: BLE001, a broken setting must not stop every Python that starts
        print(f"maskloom: the sidecar is not loaded: {error}", file=sys.stderr)
        if os.environ.get("MASKLOOM_SIDECAR_STRICT", "0") not in ("", "0"):
            # strict: no program runs without the design
            sys.stderr.flush()
            os._exit(1)
