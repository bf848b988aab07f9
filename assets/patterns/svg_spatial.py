def svg_spatial(text: int = 0, frame: int = 1560, width: float = 2.0, round: int = 128, sink: bool = False):
    """The spatial heads of Sparse VideoGen: tokens within about `width` frames of each other; text sees and is seen.

    `abs(q_idx - kv_idx) < floor(width * frame / round) * round`, text first. With `sink` the first frame is seen by all.

    Source: Xi et al., Sparse VideoGen, arXiv:2502.01776; attention-gym's svg.

    Args:
        text: text tokens before the video [0..4096] follows video.start
        frame: tokens of a frame [1..65536]
        width: frames to either side [0..16 step 0.5]
        round: the width is rounded down to a multiple of this [1..1024]
        sink: whether the first frame is seen by all
    """
    reach = int(width * frame / round) * round
    seen = text + frame if sink else text

    def mask_mod(b, h, q_idx, kv_idx):
        near = (q_idx - kv_idx < reach) & (kv_idx - q_idx < reach)
        return near | (kv_idx < seen) | (q_idx < text)

    return mask_mod
