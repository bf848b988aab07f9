"""maskloom.show, explain, share and the program's answers, beside PyTorch and the program itself.

    python package_notebook.py MASKLOOM CAPTURE

MASKLOOM is the program, CAPTURE a capture of 512 tokens.
"""

import base64
import html
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

import numpy
import package
from package import refused

maskloom = package.found()

import torch  # noqa: E402

PROGRAM, CAPTURE = sys.argv[1:3]


def near(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & (q_idx - kv_idx < 16)


def cells(mod, q_len, kv_len, b=0, h=0):
    at = (torch.tensor(b), torch.tensor(h), torch.arange(q_len)[:, None], torch.arange(kv_len)[None])
    return mod(*at).expand(q_len, kv_len)


def shares(kept, height, width):
    """The bytes of a picture by their definition: pixel i has the tokens from i * n // pixels on."""
    out = []
    for row in range(height):
        for col in range(width):
            q0, q1 = (i * kept.shape[0] // height for i in (row, row + 1))
            k0, k1 = (i * kept.shape[1] // width for i in (col, col + 1))
            share = kept[q0:q1, k0:k1].float().mean().item()
            out.append(0 if share == 0 else 255 if share == 1 else min(max(round(1 + share * 253), 1), 254))
    return bytes(out)


def unpacked(png):
    """The pixels of a PNG with a palette."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, found = 8, {}
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at : at + 8])
        body = png[at + 8 : at + 8 + size]
        assert struct.unpack(">I", png[at + 8 + size : at + 12 + size])[0] == zlib.crc32(kind + body)
        found[kind], at = body, at + 12 + size
    width, height = struct.unpack(">II", found[b"IHDR"][:8])
    raw = zlib.decompress(found[b"IDAT"])
    rows = [raw[i * (width + 1) + 1 : (i + 1) * (width + 1)] for i in range(height)]
    return b"".join(rows), width, height


def pictures():
    document = torch.arange(300) // 70
    lean = lambda b, h, q_idx, kv_idx: (document[q_idx] == document[kv_idx]) & (q_idx - kv_idx < 20 + 30 * h)
    for mod, lengths, more in (
        (near, (64, 64), {}),
        (near, (100, 40), {}),
        (lean, (300, 300), dict(h=1, heads=2, size=128)),
        (lean, (300, 300), dict(rows=(50, 90), cols=(30, 130), size=50)),
    ):
        shown = maskloom.show(mod, lengths, **more)
        kept = cells(mod, *lengths, h=more.get("h", 0))
        (q0, q1), (k0, k1) = more.get("rows", (0, lengths[0])), more.get("cols", (0, lengths[1]))
        assert shown.exact and shown.pixels == shares(kept[q0:q1, k0:k1], shown.height, shown.width), (lengths, more)
        assert unpacked(shown.png()) == (shown.pixels, shown.width, shown.height)
    both = maskloom.show(lean, 300, heads=2).numbers
    kept = sum(int(cells(lean, 300, 300, h=h).sum()) for h in range(2))
    assert (both["kept"], both["cells"]) == (kept, 2 * 300 * 300), both
    blocks = maskloom.create_block_mask(near, None, None, 256, 256, device="cpu", BLOCK_SIZE=64)
    shown = maskloom.show(blocks)
    counts = [shown.numbers[f"{kind}_blocks"] for kind in ("full", "partial", "empty")]
    assert counts == [0, 7, 9] and shown.numbers["block_size"] == "64 x 64", shown.numbers
    # every form of a mask, and what is none
    design = maskloom.from_design("sliding_window", lengths=512)
    names = [maskloom.show(form, n).to_dict()["name"] for form, n in ((design, None), ("sliding_window", 512))]
    assert names[0] == names[1] and maskloom.show("causal", 128).numbers["kept"] == 128 * 129 // 2
    # lengths as they are typed, and as libraries hold them
    for written in (512, "512", "0_512", [512, 512], (512, "512"), torch.tensor(512), numpy.int64(512)):
        of = maskloom.from_design("sliding_window", lengths=written)
        assert (of.q_len, of.kv_len) == (512, 512), written
    assert maskloom.from_design("sliding_window", lengths=("1k", 2048)).q_len == 1024
    # of too many the process would end for want of memory
    for written in (2**40, (64, 2**31), "1099511627776"):
        refused(lambda lengths=written: maskloom.show(near, lengths), "lengths is", "above 2^30")
    refused(lambda: maskloom.show(lean, 300, heads=2**40), "heads is")
    for written in (True, 512.0, "8kb", "", "-1", 0, [1, 2, 3], {512}, (512, None)):
        refused(lambda lengths=written: maskloom.from_design("sliding_window", lengths=lengths), "lengths is")
        refused(lambda lengths=written: maskloom.explain(near, lengths=lengths), "lengths is")
    for wrong, words in (
        (lambda: maskloom.show(near), ["no lengths"]),
        (lambda: maskloom.show(3, 64), ["no mask"]),
        (lambda: maskloom.show("no_such", 64), ["no preset"]),
        (lambda: maskloom.show(near, 64, rows=(60, 80)), ["rows"]),
        (lambda: maskloom.show(near, 64, size=1), ["size"]),
        (lambda: maskloom.show(near, (64, 0)), ["lengths"]),
        (lambda: maskloom.show(blocks, h=-1), ["h is -1"]),
    ):
        refused(wrong, *words)


def one_file():
    name = 'a <script> & "mask"'
    space = {}
    exec("def mask_mod(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n", space)
    space["mask_mod"].__name__ = name
    with tempfile.TemporaryDirectory() as folder:
        path = maskloom.share(space["mask_mod"], os.path.join(folder, "x.html"), 96)
        page = path.read_text(encoding="utf-8")
        assert os.listdir(folder) == ["x.html"]
    assert (
        html.escape(name) in page
        and "<script> &" not in page
        and "@" not in re.sub(r"@media", "", page.split("<script>")[0])
    )
    # nothing of it is from anywhere
    assert all(where.startswith("data:") for where in re.findall(r'\bsrc="([^"]*)"', page))
    assert not re.search(r"\bhref|url\(|https?:|@import|fetch\(", page) and "default-src 'none'" in page
    picture = base64.b64decode(re.search(r"data:image/png;base64,([^\"]+)", page).group(1))
    assert unpacked(picture)[0] == shares(cells(space["mask_mod"], 96, 96), 96, 96)
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL).group(1))
    assert data["numbers"]["kept"] == 96 * 97 // 2 and "def mask_mod" in data["code"] and data["exact"]
    assert set(data["provenance"]) == {"made by", "python", "torch", "at", "method"}
    # the program opens what Python shared
    lean = lambda b, h, q_idx, kv_idx: (q_idx >= kv_idx) & (q_idx - kv_idx < 20 + 30 * h)
    with tempfile.TemporaryDirectory() as folder:
        path = maskloom.share(lean, os.path.join(folder, "lean.html"), (300, 200), heads=2)
        ran = subprocess.run([PROGRAM, "blocks", str(path), "--json"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    kept = sum(int(cells(lean, 300, 200, h=h).sum()) for h in range(2))
    assert abs(json.loads(ran.stdout)["density"] * 2 * 300 * 200 - kept) < 0.5, ran.stdout
    shown = maskloom.show(near, 64)
    frame = shown._repr_html_()
    assert frame.startswith("<iframe") and html.unescape(re.search(r'srcdoc="([^"]*)"', frame).group(1)).startswith(
        "<!doctype"
    )
    assert shown._repr_png_() == shown.png()
    # a sandboxed frame runs the script before it has a size: what was fitted into nothing is fitted again
    page = shown.html()
    fits, again = (
        page.index("zoom = Math.min(view.clientWidth"),
        page.index("new ResizeObserver(() => { if (whole) { all(); }"),
    )
    assert "whole = true; draw();" in page[fits:again] and page.rindex("  all();") > again

    refused(lambda: maskloom.share(near, "", 64), "path is ''")
    refused(lambda: maskloom.share(shown, "x.html", 128, h=1), "lengths, h")


def cells_step_by_step():
    found = maskloom.explain(near, q=20, k=3)
    assert found.value is False and [step[:2] for step in found.steps][-1] == (
        "(q_idx >= kv_idx) & (q_idx - kv_idx < 16)",
        "False",
    )
    assert ("q_idx - kv_idx", "17") in [step[:2] for step in found.steps]
    assert "q_idx 20" in repr(found) and "&gt;=" in found._repr_html_()
    assert found.to_dict()["place"] == {"b": 0, "h": 0, "q_idx": 20, "kv_idx": 3}
    table = torch.linspace(-1, 1, 9)
    score = lambda score, b, h, q_idx, kv_idx: score * 2 + table[(q_idx - kv_idx).clamp(0, 8)] + h
    want = score(torch.tensor(0.5), *map(torch.tensor, (0, 3, 7, 2)))
    assert abs(maskloom.explain(score, h=3, q=7, k=2, score=0.5).value - want.item()) < 1e-6
    outside = maskloom.explain(lambda b, h, q_idx, kv_idx: table[q_idx] > 0, q=20)
    assert any(step[3] for step in outside.steps) and "outside its tensor" in repr(outside)
    for q in range(0, 64, 7):
        for k in range(0, 64, 5):
            assert maskloom.explain(near, q=q, k=k).value == bool(near(0, 0, torch.tensor(q), torch.tensor(k)))
    assert maskloom.explain("causal", q=1, k=2).value is False
    refused(lambda: maskloom.explain(near, q=-1), "q is -1")
    refused(lambda: maskloom.explain("causal", score=0.0), "no score mod")
    refused(lambda: maskloom.explain(near, q=2**70), "q is 1180591620717411303424")


def answers_of_the_program():
    table = (torch.arange(256) // 40).to(torch.int32)
    mod = lambda b, h, q_idx, kv_idx: (table[q_idx] == table[kv_idx]) & (q_idx >= kv_idx)
    small = dict(program=PROGRAM, heads=2, head_dim=16, dtype="f32", device="cpu")
    race = maskloom.race(mod, 256, backend=["flex", "sdpa"], rounds=1, **small)
    assert [row["backend"] for row in race.rows] == ["flex", "sdpa"] and all(
        row["outcome"] == "done" for row in race.rows
    )
    assert all(row["error of allowed"] < 1 for row in race.rows) and race.to_dict()["backends"], race
    assert "<table>" in race._repr_html_() and race.version in race._repr_html_()
    small.pop("device")
    who = {row["who"]: row["forward"] for row in maskloom.verdict(mod, 256, **small).rows}
    assert who["flex"].startswith("takes") and who["flash_attention_2"].startswith("refuses"), who
    # both mods have a first tensor
    slopes = torch.linspace(-1, 1, 256)
    bent = maskloom.show(mod, 256, score_mod=lambda score, b, h, q_idx, kv_idx: score + slopes[q_idx] * slopes[kv_idx])
    space = {**bent.of.texts()[1]}
    exec(bent.to_dict()["code"], space)
    at = [torch.tensor(n) for n in (0, 0, 90, 85)]
    assert space["score_mod"](torch.tensor(0.5), *at) == 0.5 + slopes[90] * slopes[85]
    assert torch.equal(cells(space["mask_mod"], 256, 256), cells(mod, 256, 256))
    both = dict(score_mod=bent.of.score_mod, backend="flex", device="cpu", rounds=1)
    assert maskloom.race(mod, 256, **both, **small).rows[0]["error of allowed"] < 1
    soft = maskloom.race(
        near,
        64,
        score_mod=lambda score, b, h, q_idx, kv_idx: score * 0.5,
        backend="flex",
        device="cpu",
        rounds=1,
        **small,
    )
    assert soft.rows[0]["outcome"] == "done" and soft.rows[0]["error of allowed"] < 1
    # the program's own numbers for the same mask
    found = maskloom.quality(near, CAPTURE, 512, program=PROGRAM)
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "m.py")
        with open(file, "w") as out:
            out.write("def near(b, h, q_idx, kv_idx):\n    return (q_idx >= kv_idx) & (q_idx - kv_idx < 16)\n")
        command = [PROGRAM, "quality", f"{file}:near", CAPTURE, "--seq", "512", "--json"]
        want = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    masses = [head["measures"]["mass"]["mean"] for call in want["calls"] for head in call["heads"]]
    assert [row["mass"] for row in found.rows] == masses and len(masses) > 0
    proposals = maskloom.suggest(CAPTURE, program=PROGRAM, mass=0.8).rows
    assert proposals and all(row["mass"] >= 0.8 for row in proposals)
    why = refused(lambda: maskloom.quality(near, CAPTURE, 64, program=PROGRAM), "64 x 64")
    assert why.code == "capture-length"
    refused(lambda: maskloom.verdict(near, 64, program="/no/such/program"), "cannot be started")
    refused(lambda: maskloom.verdict(near, 64, program="/bin/true"), "did not answer")
    refused(lambda: maskloom.verdict(near, 64, program=3), "program is an int")
    # options are the command line's, also those that say lengths
    assert maskloom.verdict("sliding_window", seq="1k", **small).rows
    assert len(maskloom.race(near, 64, seq="1_28", kv_seq=96, backend="flex", rounds=1, **small).rows) == 1


def the_window_opens_on_it():
    """A program in the window's place writes down what it was given."""
    with tempfile.TemporaryDirectory() as folder:
        other = os.path.join(folder, "other")
        with open(other, "w") as out:
            out.write(f'#!/bin/sh\n[ "$1" = import ] && exec "{PROGRAM}" "$@"\nprintf %s "$1" > "{folder}/opened"\n')
        os.chmod(other, 0o755)
        displays = {name: os.environ.pop(name, None) for name in ("DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET")}
        if sys.platform == "linux":
            before = set(os.listdir(tempfile.gettempdir()))
            assert refused(lambda: maskloom.open(near, 128, program=other), "no window").code == "no-display"
            assert not Path(folder, "opened").exists()
            left = set(os.listdir(tempfile.gettempdir())) - before
            assert not any(name.startswith("maskloom-") for name in left), left
        os.environ["DISPLAY"] = displays["DISPLAY"] or ":77"
        document = maskloom.open(near, 128, program=other)
        opened = Path(folder, "opened")
        for _ in range(200):
            if opened.exists() and opened.read_text():
                break
            time.sleep(0.05)
        assert opened.read_text() == str(document)
        again = maskloom.from_design(document)
        assert torch.equal(cells(again.mask_mod, 128, 128), cells(near, 128, 128))


def main():
    for check in (pictures, one_file, cells_step_by_step, answers_of_the_program, the_window_opens_on_it):
        check()
        print(f"ok {check.__name__}", flush=True)
    print("notebooks show what masks are")


main()
