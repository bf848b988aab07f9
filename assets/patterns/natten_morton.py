def natten_morton(canvas: int = 64, kernel_h: int = 13, kernel_w: int = 13):
    """Neighbourhood attention on a square image whose tokens follow the Z-order curve.

    Even bits of the index are the column, odd bits the row.

    Source: attention-gym's morton_natten.

    Args:
        canvas: rows and columns; a power of two [1..1024] follows image.h
        kernel_h: rows of the window, odd [1..canvas]
        kernel_w: columns of the window, odd [1..canvas]
    """
    assert canvas & (canvas - 1) == 0, f"a Z-order curve needs a power of two, not {canvas}"

    def gather(code):
        code = code & 0x55555555
        code = (code ^ (code >> 1)) & 0x33333333
        code = (code ^ (code >> 2)) & 0x0F0F0F0F
        code = (code ^ (code >> 4)) & 0x00FF00FF
        return (code ^ (code >> 8)) & 0x0000FFFF

    def near(q, k, kernel):
        half = kernel // 2
        centre = q.clamp(half, canvas - 1 - half)
        return (centre - k <= half) & (k - centre <= half)

    def mask_mod(b, h, q_idx, kv_idx):
        columns = near(gather(q_idx), gather(kv_idx), kernel_w)
        rows = near(gather(q_idx >> 1), gather(kv_idx >> 1), kernel_h)
        return rows & columns

    return mask_mod
