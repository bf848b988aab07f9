def natten_tiled(
    canvas_h: int = 64,
    canvas_w: int = 64,
    kernel_h: int = 13,
    kernel_w: int = 13,
    tile_h: int = 8,
    tile_w: int = 8,
):
    """Neighbourhood attention whose tokens are ordered tile by tile, so that neighbours share blocks.

    The cells of natten_2d after reordering tokens into tiles of tile_h x tile_w pixels: far fewer partial blocks.

    Source: attention-gym's tiled_natten; Hassani et al., Generalized Neighborhood Attention, arXiv:2504.16922.

    Args:
        canvas_h: rows of the image [1..512] follows image.h
        canvas_w: columns of the image [1..512] follows image.w
        kernel_h: rows of the window, odd [1..canvas_h]
        kernel_w: columns of the window, odd [1..canvas_w]
        tile_h: rows of a tile; divides canvas_h [1..64]
        tile_w: columns of a tile; divides canvas_w [1..64]
    """
    assert canvas_h % tile_h == 0, f"{canvas_h} rows are not a whole number of tiles of {tile_h}"
    assert canvas_w % tile_w == 0, f"{canvas_w} columns are not a whole number of tiles of {tile_w}"
    across = canvas_w // tile_w
    pixels = tile_h * tile_w

    def place(index):
        tile = index // pixels
        inside = index % pixels
        return tile // across * tile_h + inside // tile_w, tile % across * tile_w + inside % tile_w

    def near(q, k, canvas, kernel):
        half = kernel // 2
        centre = q.clamp(half, canvas - 1 - half)
        return (centre - k <= half) & (k - centre <= half)

    def mask_mod(b, h, q_idx, kv_idx):
        q_y, q_x = place(q_idx)
        k_y, k_x = place(kv_idx)
        return near(q_y, k_y, canvas_h, kernel_h) & near(q_x, k_x, canvas_w, kernel_w)

    return mask_mod
