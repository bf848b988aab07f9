def sta_2d(
    canvas_h: int = 64,
    canvas_w: int = 64,
    kernel_h: int = 24,
    kernel_w: int = 24,
    tile_h: int = 8,
    tile_w: int = 8,
    text: int = 0,
):
    """Sliding tile attention on an image: whole tiles see a window of whole tiles, so that no block is partial.

    Tokens are ordered tile by tile, the image first, then `text` tokens that see all and are seen by all. A window of an
    even number of tiles reaches one tile further to the left than to the right.

    Source: Zhang et al., Sliding Tile Attention, arXiv:2502.04507; attention-gym's sta.

    Args:
        canvas_h: rows of the image [1..512] follows image.h
        canvas_w: columns of the image [1..512] follows image.w
        kernel_h: rows of the window; a multiple of tile_h [1..canvas_h]
        kernel_w: columns of the window; a multiple of tile_w [1..canvas_w]
        tile_h: rows of a tile; divides canvas_h [1..64]
        tile_w: columns of a tile; divides canvas_w [1..64]
        text: text tokens after the image [0..4096] follows text.len
    """
    assert canvas_h % tile_h == 0 and canvas_w % tile_w == 0, "the tile must divide the canvas"
    assert kernel_h % tile_h == 0 and kernel_w % tile_w == 0, "the tile must divide the kernel"
    across = canvas_w // tile_w
    image = canvas_h * canvas_w
    tile_tokens = tile_h * tile_w

    def near(q, k, tiles, kernel):
        left = kernel // 2
        right = (kernel - 1) // 2
        centre = q.clamp(left, tiles - 1 - right)
        return (k >= centre - left) & (k <= centre + right)

    def mask_mod(b, h, q_idx, kv_idx):
        q = q_idx // tile_tokens
        k = kv_idx // tile_tokens
        rows = near(q // across, k // across, canvas_h // tile_h, kernel_h // tile_h)
        columns = near(q % across, k % across, across, kernel_w // tile_w)
        seen = kv_idx < image + text
        outside = (q_idx >= image) | (kv_idx >= image)
        return seen & (outside | (rows & columns))

    return mask_mod
