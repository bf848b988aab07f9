def shifted_windows(canvas_h: int = 64, canvas_w: int = 64, window: int = 8, shift: int = 0, start: int = 0):
    """Swin's windows on an image: a pixel sees the pixels of its own square window, the grid of windows shifted.

    `(y + shift) // window` and `(x + shift) // window` agree. Tokens outside the image see and are seen by all.

    Source: Liu et al., Swin Transformer, arXiv:2103.14030.

    Args:
        canvas_h: rows of the image [1..512] follows image.h
        canvas_w: columns of the image [1..512] follows image.w
        window: rows and columns of a window [1..128]
        shift: rows and columns by which the windows are shifted [0..128]
        start: first image token [0..q_len] follows image.start
    """
    pixels = canvas_h * canvas_w

    def mask_mod(b, h, q_idx, kv_idx):
        q = q_idx - start
        k = kv_idx - start
        rows = (q // canvas_w + shift) // window == (k // canvas_w + shift) // window
        columns = (q % canvas_w + shift) // window == (k % canvas_w + shift) // window
        outside = (q < 0) | (q >= pixels) | (k < 0) | (k >= pixels)
        return outside | (rows & columns)

    return mask_mod
