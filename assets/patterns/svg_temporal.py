def svg_temporal(text: int = 0, frames: int = 21, frame: int = 1560, width: int = 2):
    """The temporal heads of Sparse VideoGen: about the same place in every frame; text sees and is seen by all.

    `abs((q_idx - text) % frame - (kv_idx - text) % frame) < width * frame // frames`.

    Source: Xi et al., Sparse VideoGen, arXiv:2502.01776; attention-gym's svg.

    Args:
        text: text tokens before the video [0..4096] follows video.start
        frames: frames of the video [1..256] follows video.t
        frame: tokens of a frame [1..65536]
        width: how wide the stripe is, in frames' worth of tokens [0..16]
    """
    reach = width * frame // frames

    def mask_mod(b, h, q_idx, kv_idx):
        distance = (q_idx - text) % frame - (kv_idx - text) % frame
        near = (distance < reach) & (-distance < reach)
        return near | (kv_idx < text) | (q_idx < text)

    return mask_mod
