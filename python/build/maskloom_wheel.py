"""Builds the wheel: the program with cargo, then the package with maturin, which puts both into one file.

Invariant: the command `maskloom` of a wheel is the program itself, so that it starts without Python. Nothing but the
standard library and maturin is imported.

MASKLOOM_WHEEL=terminal builds the program without its window; =none leaves the program out; =PATH takes a program that
is built already. MASKLOOM_WHEEL_MODULE=PATH takes a compiled module that is built already: the tests' own build has
one, and a second build with other features would take minutes.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import maturin

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "target" / "wheel" / "scripts"
NAME = "maskloom.exe" if os.name == "nt" else "maskloom"


def _program() -> None:
    """Builds the program into the folder whose content pip puts beside `python`."""
    shutil.rmtree(SCRIPTS, ignore_errors=True)
    SCRIPTS.mkdir(parents=True)
    asked = os.environ.get("MASKLOOM_WHEEL", "window")
    if asked == "none":
        return
    if Path(asked).is_file():
        shutil.copy2(asked, SCRIPTS / NAME)
        return
    if asked not in ("window", "terminal"):
        raise SystemExit(f"MASKLOOM_WHEEL is {asked!r}; it is window, terminal, none or the path of a program")
    features = ["--no-default-features"] if asked == "terminal" else []
    command = ["cargo", "build", "--release", "--locked", "--package", "maskloom", "--bin", "maskloom", *features]
    subprocess.run(command, cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    shutil.copy2(target / "release" / NAME, SCRIPTS / NAME)


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """PEP 517."""
    _program()
    module = os.environ.get("MASKLOOM_WHEEL_MODULE")
    if module:
        return _assembled(Path(module), Path(wheel_directory))
    return str(maturin.build_wheel(wheel_directory, config_settings, metadata_directory))


def _assembled(module: Path, directory: Path) -> str:
    """The wheel of a module that is built already, with maturin's metadata. Errors: the module is no file."""
    with tempfile.TemporaryDirectory() as folder:
        info = Path(folder) / prepare_metadata_for_build_wheel(folder)
        stem = info.name.removesuffix(".dist-info")
        tag = next(line for line in (info / "WHEEL").read_text().splitlines() if line.startswith("Tag: "))[5:]
        package = (
            file for file in (ROOT / "python" / "maskloom").rglob("*") if file.suffix in (".py", ".pyi", ".typed")
        )
        files = {file.relative_to(ROOT / "python").as_posix(): file for file in package}
        files["maskloom/_native.abi3.so"] = module
        files |= {f"{stem}.data/scripts/{file.name}": file for file in SCRIPTS.iterdir()}
        files |= {
            f"{info.name}/{file.relative_to(info).as_posix()}": file for file in info.rglob("*") if file.is_file()
        }
        files.pop(f"{info.name}/RECORD", None)
        name = f"{stem}-{tag}.whl"
        with zipfile.ZipFile(directory / name, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            record = []
            for place, file in sorted(files.items()):
                digest = base64.urlsafe_b64encode(hashlib.sha256(file.read_bytes()).digest()).rstrip(b"=").decode()
                record.append(f"{place},sha256={digest},{file.stat().st_size}\n")
                archive.write(file, place)
            archive.writestr(f"{info.name}/RECORD", "".join([*record, f"{info.name}/RECORD,,\n"]))
    return name


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """PEP 660."""
    _program()
    return str(maturin.build_editable(wheel_directory, config_settings, metadata_directory))


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    """PEP 517. All of the tree: maturin would leave out the crates of the program."""
    manifest = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    version = manifest.split("[workspace.package]")[1].split('version = "')[1].split('"')[0]
    name = f"maskloom-{version}"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(Path(sdist_directory) / f"{name}.tar.gz", "w:gz") as archive:
        for file in sorted(filter(None, listed.decode().split("\0"))):
            if (ROOT / file).is_file():
                archive.add(ROOT / file, f"{name}/{file}", recursive=False)
        content = f"Metadata-Version: 2.1\nName: maskloom\nVersion: {version}\n".encode()
        info = tarfile.TarInfo(f"{name}/PKG-INFO")
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return f"{name}.tar.gz"


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """maturin is named in pyproject.toml."""
    return []


get_requires_for_build_editable = get_requires_for_build_sdist = get_requires_for_build_wheel


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Any = None) -> str:
    """PEP 517."""
    SCRIPTS.mkdir(parents=True, exist_ok=True)  # maturin reads the folder
    return str(maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings))


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel
