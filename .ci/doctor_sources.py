"""Where the messages that `doctor --explain` knows stand in the packages of this Python.

    python .ci/doctor_sources.py > assets/trainers/messages.json

For each entry without a source of its own: the packages whose text (or compiled library) contains the first piece of one of its
patterns, with their versions. Entries in users' own words are in none."""

import importlib.metadata
import json
import pathlib
import re
import sysconfig

TREE = pathlib.Path(__file__).parents[1]
PACKAGES = ("torch", "diffusers", "transformers", "accelerate", "safetensors", "triton", "attn-gym", "peft", "huggingface-hub")
ENTRY = re.compile(r'\bentry\(\s*"([a-z0-9-]+)",\s*&\[(.*?)\],', re.S)
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


def patterns():
    """(code, patterns) of every entry without a source."""
    for name in ("messages.rs", "training.rs"):
        text = (TREE / "src/tasks/doctor" / name).read_text()
        for code, listed in ENTRY.findall(text):
            yield code, [p.replace('\\"', '"') for p in TEXT.findall(listed)]


def longest(pattern):
    """The longest piece of a pattern as bytes, in lower case; None where it is too short to prove anything."""
    piece = max(re.split(r"\.\.| & |#|['`]", pattern), key=len).strip().lower()
    return piece.encode() if len(piece) >= 20 else None


def main():
    site = pathlib.Path(sysconfig.get_path("purelib"))
    wanted = {code: [p for p in map(longest, listed) if p] for code, listed in patterns()}
    found: dict = {code: [] for code in wanted}
    for package in PACKAGES:
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
        folder = site / package.replace("-", "_").replace("attn_gym", "attn_gym")
        left = {code: pieces for code, pieces in wanted.items() if pieces}
        for path in sorted(folder.rglob("*")):
            if path.suffix not in (".py", ".so") or not path.is_file():
                continue
            # the quotes around a word of a message differ from those in its text
            text = re.sub(rb"""['"`]\s*\n\s*f?['"]""", b"", path.read_bytes().lower()) if path.suffix == ".py" else path.read_bytes().lower()
            for code in list(left):
                if any(piece in text for piece in left[code]):
                    found[code].append(f"{package} {version.split('+')[0]}")
                    del left[code]
    print(json.dumps({code: f"{', '.join(where)}; found in its text" for code, where in sorted(found.items()) if where}, indent=1))


if __name__ == "__main__":
    main()
