def natten_2d(canvas_h: int = 64, canvas_w: int = 64, kernel_h: int = 13, kernel_w: int = 13, start: int = 0):
    """Neighbourhood attention on an image: a window of kernel_h x kernel_w pixels that stays inside the image.

    On each axis `abs(clamp(q, K // 2, C - 1 - K // 2) - k) <= K // 2`, pixels in rows. Tokens outside the image (text)
    see all and are seen by all.

    Source: Hassani et al., Neighborhood Attention, arXiv:2204.07143; attention-gym's natten.

    Args:
        canvas_h: rows of the image [1..512] follows image.h
        canvas_w: columns of the image [1..512] follows image.w
        kernel_h: rows of the window, odd [1..canvas_h]
        kernel_w: columns of the window, odd [1..canvas_w]
        start: first image token [0..q_len] follows image.start
    """
    pixels = canvas_h * canvas_w
    half_h = kernel_h // 2
    half_w = kernel_w // 2

    def mask_mod(b, h, q_idx, kv_idx):
        q = q_idx - start
        k = kv_idx - start
        centre_y = (q // canvas_w).clamp(half_h, canvas_h - 1 - half_h)
        centre_x = (q % canvas_w).clamp(half_w, canvas_w - 1 - half_w)
        y = k // canvas_w
        x = k % canvas_w
        rows = (centre_y - y <= half_h) & (y - centre_y <= half_h)
        columns = (centre_x - x <= half_w) & (x - centre_x <= half_w)
        q_outside = (q < 0) | (q >= pixels)
        k_outside = (k < 0) | (k >= pixels)
        return q_outside | k_outside | (rows & columns)

    return mask_mod
