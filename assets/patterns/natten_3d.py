def natten_3d(
    canvas_t: int = 21,
    canvas_h: int = 30,
    canvas_w: int = 52,
    kernel_t: int = 7,
    kernel_h: int = 11,
    kernel_w: int = 11,
    start: int = 0,
):
    """Neighbourhood attention on a video: a box of frames, rows and columns around each query that stays inside.

    On each axis `abs(clamp(q, K // 2, C - 1 - K // 2) - k) <= K // 2`. Tokens outside the video see and are seen by all.

    Source: Hassani et al., Neighborhood Attention, arXiv:2204.07143, in three dimensions.

    Args:
        canvas_t: frames [1..256] follows video.t
        canvas_h: rows [1..512] follows video.h
        canvas_w: columns [1..512] follows video.w
        kernel_t: frames of the box, odd [1..canvas_t]
        kernel_h: rows of the box, odd [1..canvas_h]
        kernel_w: columns of the box, odd [1..canvas_w]
        start: first video token [0..q_len] follows video.start
    """
    frame = canvas_h * canvas_w
    count = canvas_t * frame

    def near(q, k, canvas, kernel):
        half = kernel // 2
        centre = q.clamp(half, canvas - 1 - half)
        return (centre - k <= half) & (k - centre <= half)

    def mask_mod(b, h, q_idx, kv_idx):
        q = q_idx - start
        k = kv_idx - start
        frames = near(q // frame, k // frame, canvas_t, kernel_t)
        rows = near(q % frame // canvas_w, k % frame // canvas_w, canvas_h, kernel_h)
        columns = near(q % canvas_w, k % canvas_w, canvas_w, kernel_w)
        outside = (q < 0) | (q >= count) | (k < 0) | (k >= count)
        return outside | (frames & rows & columns)

    return mask_mod
