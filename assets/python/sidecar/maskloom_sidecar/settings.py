"""What the environment and the exported sidecar.json ask for."""

import fnmatch
import json
import logging
import os
import re
from pathlib import Path

log = logging.getLogger("maskloom")
# trainers set their loggers up anew and mute all that are there already: this one has its own way to stderr
log.propagate = False
log.addHandler(logging.StreamHandler())
_said = set()


def say(text):
    """Logs a text once, in the first process of each machine."""
    if text in _said:
        return
    _said.add(text)
    if os.environ.get("LOCAL_RANK", "0") == "0":
        log.disabled = False
        log.warning("maskloom: %s", text)


def designs():
    """(folder, settings) of every folder that MASKLOOM_SIDECAR names."""
    found = []
    for entry in os.environ["MASKLOOM_SIDECAR"].split(os.pathsep):
        if not entry:
            continue
        for file in (Path(entry, "sidecar", "sidecar.json"), Path(entry, "sidecar.json")):
            if file.is_file():
                found.append((file.parent, json.loads(file.read_text(encoding="utf-8"))))
                break
        else:
            raise FileNotFoundError(f"MASKLOOM_SIDECAR: there is no sidecar.json in {entry} or {entry}/sidecar")
    return found


def model_patterns():
    """Class names asked for, or None."""
    text = os.environ.get("MASKLOOM_SIDECAR_MODELS", "")
    return [p.strip() for p in text.split(",") if p.strip()] or None


def wants_model(name):
    """Whether a model of this class was asked for by name; None where nothing was asked for."""
    patterns = model_patterns()
    return None if patterns is None else any(fnmatch.fnmatchcase(name, p) for p in patterns)


def layer_pattern():
    """The regular expression of the layers' names, or None."""
    text = os.environ.get("MASKLOOM_SIDECAR_LAYERS", "")
    return re.compile(text) if text else None
