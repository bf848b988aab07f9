"""A factory of sixty lines: frames of a video, text, globals, a window and documents."""

import math

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import and_masks, or_masks


def frame_of(token: Tensor, text: int, per_frame: int) -> Tensor:
    return (token - text) // per_frame


def generate_video_mask(
    frames: int = 16,
    height: int = 16,
    width: int = 16,
    text: int = 256,
    window: int = 3,
    radius: float = 4.5,
    sinks: int = 4,
    lengths: tuple = (1200, 1500, 1652),
):
    """Attention of a video model: near frames, near pixels, text always, documents apart."""
    assert frames > 0 and height > 0 and width > 0, f"an empty video: {frames}x{height}x{width}"
    per_frame = height * width
    total = text + frames * per_frame
    documents = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
    if documents.numel() < total:
        documents = torch.nn.functional.pad(documents, (0, total - documents.numel()), value=len(lengths))
    rows = torch.arange(per_frame) // width
    columns = torch.arange(per_frame) % width
    reach = int(math.ceil(radius))
    is_global = torch.zeros(total, dtype=torch.bool)
    is_global[:text] = True
    for frame in range(0, frames, 4):
        start = text + frame * per_frame
        is_global[start : start + sinks] = True

    def near_frames(b, h, q_idx, kv_idx):
        distance = frame_of(q_idx, text, per_frame) - frame_of(kv_idx, text, per_frame)
        return distance.abs() <= window

    def near_pixels(b, h, q_idx, kv_idx):
        q, kv = (q_idx - text) % per_frame, (kv_idx - text) % per_frame
        dy, dx = rows[q] - rows[kv], columns[q] - columns[kv]
        inside = dy * dy + dx * dx <= radius**2
        return inside & (dy.abs() <= reach) & (dx.abs() <= reach)

    def globals_too(b, h, q_idx, kv_idx):
        return is_global[q_idx] | is_global[kv_idx]

    def same_document(b, h, q_idx, kv_idx):
        return documents[q_idx] == documents[kv_idx]

    local = and_masks(near_frames, near_pixels)
    video_mask = and_masks(or_masks(local, globals_too), same_document)
    video_mask.__name__ = f"video_{frames}x{height}x{width}_text{text}"
    return video_mask
