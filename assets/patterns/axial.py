def axial(canvas_h: int = 64, canvas_w: int = 64, rows: bool = True, columns: bool = True, start: int = 0):
    """A pixel sees its own row, its own column, or both. Tokens outside the image see and are seen by all.

    Source: Ho et al., Axial Attention, arXiv:1912.12180.

    Args:
        canvas_h: rows of the image [1..512] follows image.h
        canvas_w: columns of the image [1..512] follows image.w
        rows: whether pixels of the same row are seen
        columns: whether pixels of the same column are seen
        start: first image token [0..q_len] follows image.start
    """
    pixels = canvas_h * canvas_w

    def mask_mod(b, h, q_idx, kv_idx):
        q = q_idx - start
        k = kv_idx - start
        keep = (q < 0) | (q >= pixels) | (k < 0) | (k >= pixels)
        if rows:
            keep = keep | (q // canvas_w == k // canvas_w)
        if columns:
            keep = keep | (q % canvas_w == k % canvas_w)
        return keep

    return mask_mod
