// Block-sparse attention forward for Ampere and newer: mma.sync, ldmatrix, cp.async. A block owns TILE_Q query rows of
// one head and walks its kv tiles; the mods are compiled in; full tiles skip the mask. kernels/README.md draws it.
// The host defines ML_MIN_BLOCKS besides what attend.cuh needs.

// Rows are normalised; one thread of the four that share a row writes its lse, and its largest score where that is asked for.
__device__ __forceinline__ void finish(const Block &block, const Softmax<M_TILES> &softmax, float to_log2,
                                       float (&out)[M_TILES][2 * OUT_PAIRS][4]) {
    const Params &p = block.p;
#pragma unroll
    for (int m = 0; m < M_TILES; ++m)
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            float inverse = softmax.inverse(m, r);
            int q_idx = block.row_of(m) + r * 8;
            if (block.lane % 4 == 0 && q_idx < p.q_len)
                p.lse[(i64(block.place.b) * p.heads + block.place.h) * p.q_len + q_idx] = softmax.lse(m, r, to_log2);
#if ML_MAX_SCORES
            if (block.lane % 4 == 0 && q_idx < p.q_len)
                p.max_scores[(i64(block.place.b) * p.heads + block.place.h) * p.q_len + q_idx] = softmax.largest(m, r, p.scale);
#endif
#pragma unroll
            for (int n = 0; n < 2 * OUT_PAIRS; ++n) out[m][n][2 * r] *= inverse, out[m][n][2 * r + 1] *= inverse;
        }
}

extern "C" __global__ void __launch_bounds__(THREADS, ML_MIN_BLOCKS)
    flex_forward(const __grid_constant__ Params p, ML_MODS_PARAMETER) {
    extern __shared__ __align__(128) u8 smem[];
    Place place = place_of(p, blockIdx.x);
    u32 base = shared_address(smem);
    int kv_head = place.h / p.group, thread = threadIdx.x;
    Block block{p, ML_MODS, place, kv_head, base, base + Q_BYTES, base + Q_BYTES + STAGES * K_BYTES,
                thread, thread % 32, thread / 32};
#if ML_SCORE
    float to_log2 = 1.4426950408889634f;
#else
    float to_log2 = p.scale * 1.4426950408889634f;
#endif

    Ahead ahead(block);
    float out[M_TILES][2 * OUT_PAIRS][4] = {};
    Softmax<M_TILES> softmax;
    Cursor cursor(p, place.row);
    u32 partial = ML_MASK >= 4 ? __ldg(p.bitmap_start + place.row) : 0;
    u32 now = cursor.next(p);
    if (now != Cursor::NONE) {
        int tile = now & ~Cursor::FULL;
        int first = place.tile * TILE_Q;
        load_tile<TILE_Q, HEAD_DIM, THREADS>(block.q_smem, p.q + place.b * p.q_b + place.h * p.q_h + i64(first) * p.q_s,
                                             int(p.q_s), p.q_len - first, thread);
        block.load_k(tile, 0);
        if (STAGES == 2) block.load_v(tile, 0);
        copy_commit();
    }
    int stage = 0;
    while (now != Cursor::NONE) {
        cursor.next(p);
        int tile = now & ~Cursor::FULL;
        float s[M_TILES][2 * KV_PAIRS][4];
        copy_wait_all();
        __syncthreads();  // this tile has arrived, and every warp has left the buffers that the next copies fill
        if (STAGES == 2) {
            u32 next = cursor.last();
            if (next != Cursor::NONE) {
                block.load_k(next & ~Cursor::FULL, stage ^ 1);
                block.load_v(next & ~Cursor::FULL, stage ^ 1);
                copy_commit();
            }
            scores(block, stage, s);
        } else {
            block.load_v(tile, 0);
            copy_commit();
            scores(block, 0, s);
            copy_wait_all();
            __syncthreads();  // v has arrived, and every warp has read k
            u32 next = cursor.last();
            if (next != Cursor::NONE) block.load_k(next & ~Cursor::FULL, 0);
            copy_commit();
        }
        apply_mods(block, ahead, tile, now & Cursor::FULL, partial, s);
        softmax.step(s, out, to_log2);
        values(block, stage, s, out);
        if (STAGES == 2) stage ^= 1;
        now = cursor.last();
    }
    softmax.finish();
    finish(block, softmax, to_log2, out);
    store(block, out);
}
