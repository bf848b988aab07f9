// One warp's share of attention over one tile: s = q k^T, the mods, out += p v, and the way out of the registers.
// The host defines ML_HEAD_DIM, ML_HEAD_DIM_V, ML_TILE_Q, ML_TILE_KV, ML_WARPS, ML_STAGES,
// ML_MASK (0 none, 1 mask_mod, 2 dense, 3 causal, 4 bitmap, 5 interval) and ML_SCORE (0 scale folded into the softmax, 1 scale, 2 score_mod,
// 3 a linked part does scale, score_mod, mask_mod and the end of the keys).

constexpr int HEAD_DIM = ML_HEAD_DIM, HEAD_DIM_V = ML_HEAD_DIM_V, TILE_Q = ML_TILE_Q, TILE_KV = ML_TILE_KV;
constexpr int WARPS = ML_WARPS, STAGES = ML_STAGES, THREADS = WARPS * 32, M_TILES = TILE_Q / (16 * WARPS);
constexpr int K_STEPS = round_up(HEAD_DIM, 16) / 16, OUT_PAIRS = round_up(HEAD_DIM_V, 16) / 16;
constexpr int KV_PAIRS = TILE_KV / 16;
constexpr int QK_PITCH = pitch_bytes(HEAD_DIM), V_PITCH = pitch_bytes(HEAD_DIM_V);
constexpr int Q_BYTES = TILE_Q * (QK_PITCH > V_PITCH ? QK_PITCH : V_PITCH);  // the output leaves through it too
constexpr int K_BYTES = TILE_KV * QK_PITCH, V_BYTES = TILE_KV * V_PITCH;
static_assert(TILE_Q % (16 * WARPS) == 0 && TILE_KV % 16 == 0, "whole fragments");

struct Block {
    const Params &p;
    const Mods &mods;
    Place place;
    int kv_head;
    u32 q_smem, k_smem, v_smem;
    int thread, lane, warp;

    __device__ __forceinline__ void load_k(int tile, int stage) const {
        int first = tile * TILE_KV, head = forget(kv_head);
        const u16 *k = p.k + (place.b * p.k_b + head * p.k_h + first * p.k_s);
        load_tile<TILE_KV, HEAD_DIM, THREADS>(k_smem + stage * K_BYTES, k, int(p.k_s), p.kv_len - first, forget(thread));
    }
    __device__ __forceinline__ void load_v(int tile, int stage) const {
        int first = tile * TILE_KV, head = forget(kv_head);
        const u16 *v = p.v + (place.b * p.v_b + head * p.v_h + first * p.v_s);
        load_tile<TILE_KV, HEAD_DIM_V, THREADS>(v_smem + stage * V_BYTES, v, int(p.v_s), p.kv_len - first, forget(thread));
    }
    // First row of this thread in 16-row tile m; the other is 8 below.
    __device__ __forceinline__ int row_of(int m) const {
        return place.tile * TILE_Q + (warp * M_TILES + m) * 16 + lane / 4;
    }
};

// s = q k^T for this warp's rows.
__device__ __forceinline__ void scores(const Block &block, int stage, float (&s)[M_TILES][2 * KV_PAIRS][4]) {
    u32 q_at = block.q_smem + block.warp * M_TILES * 16 * QK_PITCH + a_lane<QK_PITCH>(block.lane);
    u32 k_at = block.k_smem + stage * K_BYTES + b_lane<QK_PITCH>(block.lane);
#pragma unroll
    for (int m = 0; m < M_TILES; ++m)
#pragma unroll
        for (int n = 0; n < 2 * KV_PAIRS; ++n)
#pragma unroll
            for (int c = 0; c < 4; ++c) s[m][n][c] = 0.0f;
#pragma unroll
    for (int step = 0; step < K_STEPS; ++step) {
        u32 a[M_TILES][4];
#pragma unroll
        for (int m = 0; m < M_TILES; ++m) ldmatrix(a[m], q_at + m * 16 * QK_PITCH + step * 32);
#pragma unroll
        for (int n = 0; n < KV_PAIRS; ++n) {
            u32 b[4];
            ldmatrix(b, k_at + n * 16 * QK_PITCH + step * 32);
#pragma unroll
            for (int m = 0; m < M_TILES; ++m) {
                mma(s[m][2 * n], a[m], b[0], b[1]);
                mma(s[m][2 * n + 1], a[m], b[2], b[3]);
            }
        }
    }
}

// out += p v for this warp's rows; p is rounded to 16 bits here.
__device__ __forceinline__ void values(const Block &block, int stage, const float (&s)[M_TILES][2 * KV_PAIRS][4],
                                       float (&out)[M_TILES][2 * OUT_PAIRS][4]) {
    // with a score mod registers are so short that the offset is made again for every tile
    int lane = ML_SCORE == 2 ? forget(block.thread) % 32 : block.lane;
    u32 v_at = block.v_smem + stage * V_BYTES + b_transposed_lane<V_PITCH>(lane);
#pragma unroll
    for (int step = 0; step < KV_PAIRS; ++step) {
        u32 a[M_TILES][4];
#pragma unroll
        for (int m = 0; m < M_TILES; ++m) {
            a[m][0] = pack16(s[m][2 * step][0], s[m][2 * step][1]);
            a[m][1] = pack16(s[m][2 * step][2], s[m][2 * step][3]);
            a[m][2] = pack16(s[m][2 * step + 1][0], s[m][2 * step + 1][1]);
            a[m][3] = pack16(s[m][2 * step + 1][2], s[m][2 * step + 1][3]);
        }
#pragma unroll
        for (int n = 0; n < OUT_PAIRS; ++n) {
            u32 b[4];
            ldmatrix_transposed(b, v_at + step * 16 * V_PITCH + n * 32);
#pragma unroll
            for (int m = 0; m < M_TILES; ++m) {
                mma(out[m][2 * n], a[m], b[0], b[1]);
                mma(out[m][2 * n + 1], a[m], b[2], b[3]);
            }
        }
    }
}

// What the mods need of a thread's head and of its rows.
struct Ahead {
    HeadValues head;
    RowValues row[M_TILES][2];

    __device__ __forceinline__ explicit Ahead(const Block &block) {
        const Place &place = block.place;
        head = head_values(block.mods, place.b, place.h);
#pragma unroll
        for (int m = 0; m < M_TILES; ++m)
#pragma unroll
            for (int r = 0; r < 2; ++r)
                row[m][r] = row_values(block.mods, head, place.b, place.h, block.row_of(m) + r * 8);
    }
};

// score_mod on every cell, then -inf where the mask (or the end of the keys) says so, unless the tile is full.
// `partial` counts the partial tiles of the row of tiles.
__device__ __forceinline__ void apply_mods(const Block &block, const Ahead &ahead, int tile, bool full, u32 &partial,
                                           float (&s)[M_TILES][2 * KV_PAIRS][4]) {
    const Params &p = block.p;
    int b = block.place.b, h = block.place.h, thread = forget(block.thread), lane = thread % 32;
    int first_row = block.place.tile * TILE_Q + thread / 32 * M_TILES * 16 + lane / 4;
    int first_column = tile * TILE_KV + lane % 4 * 2;
#if ML_SCORE == 1
#pragma unroll
    for (int m = 0; m < M_TILES; ++m)
#pragma unroll
        for (int n = 0; n < 2 * KV_PAIRS; ++n)
#pragma unroll
            for (int c = 0; c < 4; ++c) s[m][n][c] *= p.scale;
#elif ML_SCORE == 2
    // columns come outside rows, so that what a column needs is computed once for all of them
    if constexpr (SCORE_PASS == 1) {
        auto values_of = [&](int kv_idx) { return column_values(block.mods, ahead.head, b, h, kv_idx); };
        by_cells(s, first_column, values_of, [&](float score, int row, int kv_idx, const ColumnValues &column) {
            return score_mod(block.mods, 0, score, p.scale, ahead.head, of_row(ahead.row, row), column, b, h, first_row + 8 * row,
                             kv_idx);
        });
    } else by_columns<SCORE_PASS>(s, first_row, first_column, [&](int q_idx, int kv_idx, int n) {
        ColumnValues column = column_values(block.mods, ahead.head, b, h, kv_idx);
#pragma unroll
        for (int m = 0; m < M_TILES; ++m)
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                float &score = s[m][n / 2][2 * r + n % 2];
                score = score_mod(block.mods, 0, score, p.scale, ahead.head, ahead.row[m][r], column, b, h,
                                  q_idx + m * 16 + r * 8, kv_idx);
            }
    });
#elif ML_SCORE == 3
    linked_cells(&block.mods, p.scale, b, h, first_row, first_column, p.kv_len, full, &s[0][0][0]);
#endif
    if (full) return;
#if ML_MASK == 2 || ML_MASK >= 4
#if ML_MASK >= 4
    int line = thread / 32 * M_TILES * 16 + lane / 4;
#endif
#if ML_MASK == 4
    const u32 *words = p.bitmaps + (u64(__ldg(p.bitmap_ids + partial++)) * TILE_Q + line) * 4 + lane % 4;
#elif ML_MASK == 5
    const u32 *ranges = p.bitmaps + (u64(partial) * TILE_Q + forget(line)) * 2;
#endif
#pragma unroll
    for (int m = 0; m < M_TILES; ++m)
#pragma unroll
        for (int r = 0; r < 2; ++r) {
#if ML_MASK == 4
            u32 word = __ldg(words + (m * 16 + r * 8) * 4);
#elif ML_MASK == 5
            u32 word = bits_of_range(ranges + (m * 16 + r * 8) * 2, first_column);
#else
            int q_idx = min(first_row + m * 16 + r * 8, p.q_len - 1);
            const u8 *dense = p.dense + b * p.dense_b + h * p.dense_h + i64(q_idx) * p.dense_q;
#endif
#pragma unroll
            for (int n = 0; n < 2 * KV_PAIRS; ++n) {
#if ML_MASK == 2
                // rows are padded to whole tiles with zeros, so a pair never straddles the end
                u32 pair = __ldg(reinterpret_cast<const u16 *>(dense + first_column + n * 8));
#endif
#pragma unroll
                for (int c = 0; c < 2; ++c) {
#if ML_MASK == 2
                    bool keep = pair >> (8 * c) & 1;
#else
                    bool keep = word & ((1u + c) << (2 * n));
#endif
                    if (!keep) s[m][n][2 * r + c] = negative_infinity();
                }
            }
        }
#elif ML_SCORE != 3
    by_columns<MASK_PASS>(s, first_row, first_column, [&](int row, int kv_idx, int n) {
#if ML_MASK == 1
        ColumnValues column = column_values(block.mods, ahead.head, b, h, kv_idx);
#endif
#pragma unroll
        for (int m = 0; m < M_TILES; ++m)
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                int q_idx = row + m * 16 + r * 8;
                bool keep = kv_idx < p.kv_len;
#if ML_MASK == 1
                keep = keep && mask_mod(block.mods, ahead.head, ahead.row[m][r], column, b, h, q_idx, kv_idx);
#elif ML_MASK == 3
                keep = keep && kv_idx <= q_idx;
#endif
                if (!keep) s[m][n / 2][2 * r + n % 2] = negative_infinity();
            }
    });
#endif
}

// The output leaves through shared memory in 16-byte stores.
__device__ __forceinline__ void store(const Block &block, const float (&out)[M_TILES][2 * OUT_PAIRS][4]) {
    const Params &p = block.p;
    int lane = block.lane;
    __syncthreads();
#pragma unroll
    for (int m = 0; m < M_TILES; ++m)
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            u32 at = block.q_smem + (block.row_of(m) + r * 8 - block.place.tile * TILE_Q) * V_PITCH + lane % 4 * 4;
#pragma unroll
            for (int n = 0; n < 2 * OUT_PAIRS; ++n) {
                u32 packed = pack16(out[m][n][2 * r], out[m][n][2 * r + 1]);
                asm volatile("st.shared.u32 [%0], %1;" ::"r"(at + n * 16), "r"(packed) : "memory");
            }
        }
    __syncthreads();
    constexpr int CHUNKS = (HEAD_DIM_V + 7) / 8;
    u16 *o = p.o + block.place.b * p.o_b + block.place.h * p.o_h + i64(block.place.tile) * TILE_Q * p.o_s;
    int rows = min(TILE_Q, p.q_len - block.place.tile * TILE_Q);
    for (int index = block.thread; index < rows * CHUNKS; index += THREADS) {
        int row = index / CHUNKS, chunk = index % CHUNKS;
        Chunk value;
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                     : "r"(block.q_smem + row * V_PITCH + chunk * 16));
        *reinterpret_cast<Chunk *>(o + i64(row) * p.o_s + chunk * 8) = value;
    }
}
