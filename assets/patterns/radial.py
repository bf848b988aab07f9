import torch


def radial(frames: int = 21, frame: int = 1560, start: int = 0):
    """Radial attention on a video: the further two frames are apart, the narrower the stripe they see of each other.

    Frames 0 or 1 apart see each other whole. Beyond that the stripe halves with every doubling of the distance, and once
    it is narrower than 1 token only every so many frames are kept. Tokens outside the video see and are seen by all, and
    so does the first frame.

    Source: Li et al., Radial Attention, arXiv:2506.19852.

    Args:
        frames: frames of the video [1..256] follows video.t
        frame: tokens of a frame [1..65536]
        start: first video token [0..q_len] follows video.start
    """
    count = frames * frame

    def mask_mod(b, h, q_idx, kv_idx):
        q = q_idx - start
        k = kv_idx - start
        apart = torch.abs(q // frame - k // frame)
        shift = torch.abs(q % frame - k % frame)
        keep = apart <= 1
        for step in range(1, 9):
            far = 2**step  # this ring: frames far .. 2 * far - 1 apart
            ring = (apart >= far) & (apart < 2 * far)
            if frame >= far:
                keep = keep | (ring & (shift < frame // far))
            else:
                keep = keep | (ring & (shift < 1) & (apart % (far // frame) == 0))
        outside = (q < 0) | (q >= count) | (k < 0) | (k >= count)
        return outside | (k < frame) | keep

    return mask_mod
