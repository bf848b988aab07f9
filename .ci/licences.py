"""Writes assets/licences.txt.gz: every package of Cargo.lock and every font, with the texts of their licences.

    python .ci/licences.py

It reads what cargo has already fetched. Equal texts are written once. A package without a text of its own gets the text
of its licence's name from another package, or is listed by its name alone.
"""

import gzip
import hashlib
import json
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "assets" / "licences.txt.gz"
NAMED = re.compile(
    r"^(licen[cs]e|copying|copyright|notice|unlicense|ofl|ufl)([-_.].*)?$|.*[-_.]licen[cs]e(\.txt|\.md)?$", re.I
)


def texts(folder):
    found = []
    for path in sorted(folder.iterdir()) + sorted((folder / "fonts").iterdir() if (folder / "fonts").is_dir() else []):
        fonts = path.parent.name == "fonts" and path.suffix == ".txt"
        if path.is_file() and (NAMED.match(path.name) or fonts) and path.stat().st_size < 200_000:
            text = path.read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n").strip()
            if text:
                found.append((path.name, text))
    return found


def main():
    asked = ["cargo", "metadata", "--format-version", "1", "--locked", "--all-features"]
    packages = json.loads(subprocess.run(asked, cwd=ROOT, check=True, capture_output=True).stdout)["packages"]
    others = sorted((p for p in packages if p["source"]), key=lambda p: (p["name"], p["version"]))
    numbers, kept, heads, borrowed = {}, [], [], {}
    rows = []
    for package in others:
        own = texts(pathlib.Path(package["manifest_path"]).parent)
        rows.append((package, own))
        if own:
            borrowed.setdefault(package["license"], own)
    for package, own in rows:
        cited = []
        for _, text in own or borrowed.get(package["license"], []):
            key = hashlib.sha256(re.sub(r"\s+", " ", text).encode()).hexdigest()
            if key not in numbers:
                numbers[key] = len(kept) + 1
                kept.append(text)
            cited.append(numbers[key])
        from_others = "" if own or not cited else ", the text of its licence's name"
        where = f"texts {', '.join(map(str, dict.fromkeys(cited)))}{from_others}" if cited else "no text comes with it"
        home = package["repository"] or package["homepage"] or "https://crates.io/crates/" + package["name"]
        heads.append(f"{package['name']} {package['version']}\n  {package['license']}; {where}\n  {home}\n")
    words = (
        "Maskloom is under the MIT licence. It holds or is built with the following packages of Rust; the "
        "program for one system links a\npart of them. The fonts Ubuntu Light, Hack, Noto Emoji and emoji-icon-font "
        "come with epaint_default_fonts, whose texts name\n"
        "their licences.\n"
    )
    body = "".join(f"\n===== text {at} =====\n\n{text}\n" for at, text in enumerate(kept, 1))
    own = (ROOT / "LICENSE").read_text(encoding="utf-8").strip()
    whole = f"{words}\n===== Maskloom =====\n\n{own}\n\n===== packages =====\n\n" + "\n".join(heads) + body
    with (
        OUT.open("wb") as file,
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=9) as packed,
    ):
        packed.write(whole.encode("utf-8"))
    missing = [p["name"] for p, own in rows if not own and p["license"] not in borrowed]
    print(f"{len(others)} packages, {len(kept)} texts, {OUT.stat().st_size} bytes; without a text: {missing}")


if __name__ == "__main__":
    main()
