def sta_3d(
    canvas_t: int = 24,
    canvas_h: int = 32,
    canvas_w: int = 48,
    kernel_t: int = 12,
    kernel_h: int = 24,
    kernel_w: int = 24,
    tile_t: int = 4,
    tile_h: int = 8,
    tile_w: int = 8,
    text: int = 0,
):
    """Sliding tile attention on a video: whole tiles see a box of whole tiles, so that no block is partial.

    Tokens are ordered tile by tile, the video first, then `text` tokens that see all and are seen by all.

    Source: Zhang et al., Sliding Tile Attention, arXiv:2502.04507; attention-gym's sta.

    Args:
        canvas_t: frames [1..256] follows video.t
        canvas_h: rows [1..512] follows video.h
        canvas_w: columns [1..512] follows video.w
        kernel_t: frames of the box; a multiple of tile_t [1..canvas_t]
        kernel_h: rows of the box; a multiple of tile_h [1..canvas_h]
        kernel_w: columns of the box; a multiple of tile_w [1..canvas_w]
        tile_t: frames of a tile; divides canvas_t [1..16]
        tile_h: rows of a tile; divides canvas_h [1..64]
        tile_w: columns of a tile; divides canvas_w [1..64]
        text: text tokens after the video [0..4096] follows text.len
    """
    assert canvas_t % tile_t == 0 and canvas_h % tile_h == 0 and canvas_w % tile_w == 0, "the tile must divide the canvas"
    assert kernel_t % tile_t == 0 and kernel_h % tile_h == 0 and kernel_w % tile_w == 0, "the tile must divide the kernel"
    down = canvas_h // tile_h
    across = canvas_w // tile_w
    video = canvas_t * canvas_h * canvas_w
    tile_tokens = tile_t * tile_h * tile_w

    def near(q, k, tiles, kernel):
        left = kernel // 2
        right = (kernel - 1) // 2
        centre = q.clamp(left, tiles - 1 - right)
        return (k >= centre - left) & (k <= centre + right)

    def mask_mod(b, h, q_idx, kv_idx):
        q = q_idx // tile_tokens
        k = kv_idx // tile_tokens
        frames = near(q // (down * across), k // (down * across), canvas_t // tile_t, kernel_t // tile_t)
        rows = near(q // across % down, k // across % down, down, kernel_h // tile_h)
        columns = near(q % across, k % across, across, kernel_w // tile_w)
        seen = kv_idx < video + text
        outside = (q_idx >= video) | (kv_idx >= video)
        return seen & (outside | (frames & rows & columns))

    return mask_mod
