"""PNG files of kept shares, with nothing but the standard library.

Invariant: a pixel's byte is its share: 0 nothing, 255 everything, 1 to 254 a part; the colours are a palette.
"""

from __future__ import annotations

import struct
import zlib

EMPTY, FULL = (247, 247, 244), (18, 92, 122)


def palette() -> bytes:
    """The colours of the shares, RGB each: a part is between nothing and everything, and unlike both."""
    out = bytearray()
    for share in range(256):
        at = 0.0 if share == 0 else 1.0 if share == 255 else 0.15 + 0.7 * share / 255
        out += bytes(round(a + (b - a) * at) for a, b in zip(EMPTY, FULL))
    return bytes(out)


def png(pixels: bytes, width: int, height: int) -> bytes:
    """A PNG of width x height bytes."""
    rows = b"".join(b"\0" + pixels[row * width : (row + 1) * width] for row in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"PLTE", palette()), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
