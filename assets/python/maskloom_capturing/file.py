# SPDX-License-Identifier: MIT
"""A safetensors file that grows while a model runs: tensors are written at once, the header last.

Invariant: PATH is complete or does not exist; during a run, and after a killed run, PATH.part exists. Must not know what the
tensors mean.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

DTYPES = {
    torch.bool: "BOOL", torch.uint8: "U8", torch.int8: "I8", torch.int16: "I16", torch.int32: "I32",
    torch.int64: "I64", torch.float16: "F16", torch.bfloat16: "BF16", torch.float32: "F32", torch.float64: "F64",
}  # fmt: skip
# space for the header at the front of PATH.part
ROOM = 16 << 20
# a file with less data than this is copied, so that no space is wasted in it
COPIED = 1 << 30
# seconds between headers of an unfinished file
BETWEEN = 30.0


def raw(tensor: Tensor) -> memoryview:
    """The bytes of a contiguous tensor on the cpu, not copied."""
    array: Any = tensor.reshape(-1).view(torch.uint8).numpy()
    return memoryview(array)


class Growing:
    """The file: `add` tensors, now and then `checkpoint`, then `finish` or `drop`."""

    def __init__(self, path: str, room: int = ROOM, copied: int = COPIED) -> None:
        self.path, self.part = path, path + ".part"
        self.room, self.copied = room, copied
        self.header: dict[str, dict[str, object]] = {}
        self.at, self.pads, self.last = 0, 0, time.monotonic()
        self.file = open(self.part, "wb+")  # noqa: SIM115
        self.file.truncate(room)
        self.file.seek(room)

    def add(self, name: str, tensor: Tensor) -> None:
        """Writes a tensor without keeping it in memory."""
        tensor = tensor.detach().cpu().contiguous()
        self._write(name, DTYPES[tensor.dtype], list(tensor.shape), tensor)
        if self.at % 8:
            # readers need every tensor at a multiple of its element's size, without gaps
            self.pads += 1
            missing = -self.at % 8
            self._write(f"pad.{self.pads}", "U8", [missing], torch.zeros(missing, dtype=torch.uint8))

    def _write(self, name: str, dtype: str, shape: list[int], tensor: Tensor) -> None:
        size = tensor.numel() * tensor.element_size()
        if size:
            self.file.write(raw(tensor))
        self.header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [self.at, self.at + size]}
        self.at += size

    def _text(self, metadata: Mapping[str, str]) -> bytes:
        text = json.dumps({"__metadata__": dict(metadata), **self.header}).encode()
        return text + b" " * (-len(text) % 8)

    def due(self) -> bool:
        """Whether a checkpoint is due."""
        return time.monotonic() - self.last > BETWEEN

    def checkpoint(self, metadata: Mapping[str, str]) -> bool:
        """Writes the header of the present tensors, so that a killed run leaves them readable; False if it does not fit."""
        self.last = time.monotonic()
        text = self._text(metadata)
        if len(text) + 8 > self.room:
            return False
        text += b" " * (self.room - 8 - len(text))
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.seek(0)
        self.file.write(len(text).to_bytes(8, "little") + text)
        self.file.seek(self.room + self.at)
        return True

    def finish(self, metadata: Mapping[str, str]) -> None:
        """Completes PATH and removes PATH.part."""
        if self.at >= self.copied and self.checkpoint(metadata):
            self.file.close()
        else:
            self._copy(self._text(metadata))
        os.replace(self.part, self.path)

    def _copy(self, text: bytes) -> None:
        whole = self.part + "2"
        try:
            with open(whole, "wb") as out:
                out.write(len(text).to_bytes(8, "little") + text)
                self.file.seek(self.room)
                shutil.copyfileobj(self.file, out, 16 << 20)
            self.file.close()
            os.replace(whole, self.part)
        except BaseException:
            if os.path.exists(whole):
                os.unlink(whole)
            raise

    def drop(self) -> None:
        """Removes the file."""
        self.file.close()
        os.unlink(self.part)
