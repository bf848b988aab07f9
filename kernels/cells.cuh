// What becomes of a tile's products in the backward kernels, cell by cell: P of the scores, dS of P and dP. A thread of a warp w holds keys
// 16 w + i and + 8 and queries 8 j + 2 t + e, as value 4 j + 2 r + e. Must not know barriers or products.

constexpr int BIT_WORDS = M == 128 ? 2 : 1;  // of a thread, of a partial tile

// `value` where a bit, of which nothing else is left in `kept`, is set, else 0.
__device__ __forceinline__ float kept_value(u32 kept, float value) {
    float result;
    asm("{.reg .pred p; setp.ne.b32 p, %1, 0; selp.f32 %0, %2, 0f00000000, p;}" : "=f"(result) : "r"(kept), "f"(value));
    return result;
}

// `value` times a derivative. Where nothing came, as of a cell that the mask drops, nothing goes on, even if the derivative is infinite
// or NaN there.
__device__ __forceinline__ float times_derivative(float value, float by) { return value == 0.0f ? 0.0f : value * by; }

// What score mods need to know of a tile, and its cells of a partial one.
struct Cells {
    int b, head, q_idx, kv_idx;  // the thread's first query and first key
    u32 rows;                    // lse and delta of the tile's rows, from the thread's first pair on
    u32 kept[BIT_WORDS];         // bits as backward.cuh lays them out
};

// What the registers of a tile's scores hold from P to dS: nothing; the score mod's derivative; the scores as they came; or P before it
// is rounded. Gradients of captured tensors are sums of many cells that nearly cancel: they are made of P in f32.
enum class Hold { NOTHING, DERIVATIVES, SCORES, WEIGHTS };
constexpr Hold HOLD = ML_CAPTURES ? (ML_GRAD ? Hold::SCORES : Hold::WEIGHTS)
                      : ML_GRAD == 1 ? Hold::DERIVATIVES
                      : ML_GRAD == 2 ? Hold::SCORES
                                     : Hold::NOTHING;

// Bit of the cell (r, n = 2 j + e) and the word that it is in.
__device__ __forceinline__ constexpr int word_of(int r) { return BIT_WORDS == 1 ? 0 : r; }
__device__ __forceinline__ constexpr u32 bit_of(int r, int n) { return 1u << ((BIT_WORDS == 1 ? M / 4 * r : 0) + n); }

// Which cells of a tile that is not full are kept; `take_bits` fetches this thread's words.
template <class Bits>
__device__ __forceinline__ void find_kept(const Params &p, const Mods &mods, Cells &cells, Bits take_bits) {
#if ML_MASK == 4
    take_bits(cells.kept);
#else
#pragma unroll
    for (int i = 0; i < BIT_WORDS; ++i) cells.kept[i] = 0;
#if ML_MASK == 1
    const HeadValues head = head_values(mods, cells.b, cells.head);
#endif
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        int kv_idx = cells.kv_idx + 8 * r;
        if (kv_idx >= p.kv_len) continue;
#if ML_MASK == 0
        cells.kept[word_of(r)] |= BIT_WORDS == 2 ? 0xffffffffu : ((1u << M / 4) - 1) << (M / 4 * r);
#else
#if ML_MASK == 1
        const ColumnValues column = column_values(mods, head, cells.b, cells.head, kv_idx);
#endif
#pragma unroll 1
        for (int n = 0; n < M / 4; ++n) {
            int q_idx = cells.q_idx + n / 2 * 8 + n % 2;
#if ML_MASK == 1
            const RowValues row = row_values(mods, head, cells.b, cells.head, q_idx);
            bool keep = mask_mod(mods, head, row, column, cells.b, cells.head, q_idx, kv_idx);
#else
            bool keep = in_range(p, cells.b, cells.head, q_idx, kv_idx);
#endif
            if (keep) cells.kept[word_of(r)] |= bit_of(r, n);
        }
#endif
    }
#endif
}

// lse of a thread's queries, asked for before the product that they meet where there are 16 registers for it.
struct LseAhead {
    static constexpr bool AHEAD = M == 64 && ML_SCORE == 0;
    float value[M / 8][2];
    __device__ __forceinline__ explicit LseAhead(u32 rows) {
        if (!AHEAD) return;
#pragma unroll
        for (int j = 0; j < M / 8; ++j) load_floats(value[j][0], value[j][1], rows + j * 64);
    }
};
// Or when it is wanted.
struct LseThen {
    static constexpr bool AHEAD = false;
    float value[1][2];
};

// P, rounded to 16 bits, of scores, which become what HELD says.
template <bool FULL, Hold HELD, class Lse>
__device__ __forceinline__ void weigh(const Params &p, const Mods &mods, const Cells &cells, const Lse &ahead, float (&score)[M / 2],
                                      u32 (&weight)[M / 4], float to_log2) {
#if ML_SCORE == 2
    const HeadValues head = head_values(mods, cells.b, cells.head);
    const ColumnValues column[2] = {column_values(mods, head, cells.b, cells.head, cells.kv_idx),
                                    column_values(mods, head, cells.b, cells.head, cells.kv_idx + 8)};
#endif
#pragma unroll
    for (int j = 0; j < M / 8; ++j) {
        float lse[2], value[2][2];
        if constexpr (Lse::AHEAD) lse[0] = ahead.value[j][0], lse[1] = ahead.value[j][1];
        else load_floats(lse[0], lse[1], cells.rows + j * 64);
#pragma unroll
        for (int e = 0; e < 2; ++e) {
#if ML_SCORE == 2
            int q_idx = cells.q_idx + 8 * j + e;
            const RowValues row = row_values(mods, head, cells.b, cells.head, q_idx);
#endif
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                float &cell = score[4 * j + 2 * r + e];
                float modified = cell;
#if ML_SCORE == 2
                modified = score_mod(mods, r, cell, p.scale, head, row, column[r], cells.b, cells.head, q_idx, cells.kv_idx + 8 * r);
#if ML_GRAD == 1 && !ML_CAPTURES
                static_assert(HELD == Hold::DERIVATIVES, "what derive wants");
                cell = score_grad(mods, r, cell, p.scale, head, row, column[r], cells.b, cells.head, q_idx, cells.kv_idx + 8 * r);
#endif
#endif
                value[r][e] = exp2_fast(fmaf(modified, to_log2, -lse[e]));
                if (!FULL) value[r][e] = kept_value(cells.kept[word_of(r)] & bit_of(r, 2 * j + e), value[r][e]);
                if (HELD == Hold::WEIGHTS) cell = value[r][e];
            }
        }
#pragma unroll
        for (int r = 0; r < 2; ++r) weight[2 * j + r] = pack16(value[r][0], value[r][1]);
    }
}

// With a score mod full tiles take the way of partial ones, so that its text stands there once.
constexpr bool ONE_WAY = ML_SCORE == 2;

// P of a tile, full or not.
template <Hold HELD, class Bits, class Lse>
__device__ __forceinline__ void weigh_tile(const Params &p, const Mods &mods, Cells &cells, bool full, Bits take_bits, const Lse &ahead,
                                           float (&score)[M / 2], u32 (&weight)[M / 4], float to_log2) {
    if (!full) {
        find_kept(p, mods, cells, take_bits);
    } else if (ONE_WAY) {
#pragma unroll
        for (int i = 0; i < BIT_WORDS; ++i) cells.kept[i] = 0xffffffffu;
    }
    if (ONE_WAY || !full) weigh<false, HELD>(p, mods, cells, ahead, score, weight, to_log2);
    else weigh<true, HELD>(p, mods, cells, ahead, score, weight, to_log2);
}

// delta of a thread's queries, 16 at a time, of which SLOTS have registers: all M / 16 are asked for at once, or those that come next while these
// are read, or (1) each when it is wanted. A store of dS between two loads keeps the compiler from asking earlier by itself.
template <int SLOTS> struct Deltas {
    static constexpr bool ALL = SLOTS == M / 16;
    u32 rows;
    float value[SLOTS][4];
    __device__ __forceinline__ explicit Deltas(u32 rows) : rows(rows) {
#pragma unroll
        for (int m = 0; m < (ALL ? SLOTS : SLOTS - 1); ++m) load(m);
    }
    __device__ __forceinline__ void load(int m) {
        float(&to)[4] = value[m % SLOTS];
        load_floats(to[0], to[1], rows + m * 128 + 8);
        load_floats(to[2], to[3], rows + m * 128 + 64 + 8);
    }
    // Queries m are next.
    __device__ __forceinline__ void come_to(int m) {
        if (!ALL && m + SLOTS - 1 < M / 16) load(m + SLOTS - 1);
    }
};

// dS of P and dP, rounded, 16 queries at a time: `leave(m, words)` gets four words as an operand of 16 keys by 16 queries wants them.
// Captured tensors get theirs.
template <Hold HELD, int SLOTS, class Leave>
__device__ __forceinline__ void derive(const Params &p, const Mods &mods, const Cells &cells, Deltas<SLOTS> deltas,
                                       const float (&d_weight)[M / 2], const float (&score)[M / 2], const u32 (&weight)[M / 4],
                                       CaptureSums &sums, Leave leave) {
#if ML_CAPTURES || ML_GRAD == 2
    const HeadValues head = head_values(mods, cells.b, cells.head);
    const ColumnValues column[2] = {column_values(mods, head, cells.b, cells.head, cells.kv_idx),
                                    column_values(mods, head, cells.b, cells.head, cells.kv_idx + 8)};
#endif
#if ML_FAMILIES
    float d_modified[M / 2];
#endif
#pragma unroll
    for (int m = 0; m < M / 16; ++m) {
        u32 d_score[4];
        deltas.come_to(m);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int j = 2 * m + half;
            // what was computed of these queries for P is computed again, not kept
            const int first = (ML_CAPTURES ? forget(cells.q_idx) : cells.q_idx) + 8 * j;
            const float *delta = deltas.value[m % SLOTS] + 2 * half;
            float value[2][2];
#if ML_CAPTURES && ML_GRAD
            float lse[2];
            load_floats(lse[0], lse[1], cells.rows + j * 64);
#endif
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                unpack_pair(weight[2 * j + r], value[r][0], value[r][1]);
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    const float held = score[4 * j + 2 * r + e];
                    if (HELD == Hold::WEIGHTS) value[r][e] = held;
#if ML_CAPTURES && ML_GRAD
                    const int q_idx = first + e, kv_idx = cells.kv_idx + 8 * r;
                    const RowValues row = row_values(mods, head, cells.b, cells.head, q_idx);
                    const float modified = score_mod(mods, r, held, p.scale, head, row, column[r], cells.b, cells.head, q_idx, kv_idx);
                    // where the mask drops the cell its rounded weight is 0
                    if (value[r][e] != 0.0f) value[r][e] = exp2_fast(fmaf(modified, 1.4426950408889634f, -lse[e]));
#endif
                    value[r][e] *= d_weight[4 * j + 2 * r + e] - delta[e];
                    if (HELD == Hold::DERIVATIVES) value[r][e] = times_derivative(value[r][e], held);
                }
            }
#if ML_CAPTURES || ML_GRAD == 2
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const int q_idx = first + e;
                const RowValues row = row_values(mods, head, cells.b, cells.head, q_idx);
#pragma unroll
                for (int r = 0; r < 2; ++r) {
                    const int kv_idx = cells.kv_idx + 8 * r;
                    const float raw = HELD == Hold::SCORES ? score[4 * j + 2 * r + e] : 0.0f;
#if ML_CAPTURES
#if ML_FAMILIES
                    d_modified[4 * j + 2 * r + e] = value[r][e];
#endif
                    sums.cell(mods, value[r][e], raw, p.scale, head, row, column[r], cells.b, cells.head, q_idx, kv_idx, r, e);
#endif
#if ML_GRAD
                    const float by = score_grad(mods, r, raw, p.scale, head, row, column[r], cells.b, cells.head, q_idx, kv_idx);
                    value[r][e] = times_derivative(value[r][e], by);
#endif
                }
            }
#endif
#if ML_CAPTURES
            sums.end_queries(mods, head, cells.b, cells.head, first, j, p.q_len);
#endif
#pragma unroll
            for (int r = 0; r < 2; ++r) d_score[2 * half + r] = pack16(value[r][0], value[r][1]);
        }
        leave(m, d_score);
    }
#if ML_FAMILIES
    sums.tile(mods, d_modified, cells.b, cells.head, cells.q_idx, cells.kv_idx, p.q_len, p.kv_len);
#endif
#if ML_CAPTURES
    sums.end_tile(mods, head, cells.b, cells.head, cells.q_idx, cells.kv_idx, p.q_len, p.kv_len);
#endif
}

// P as its threads hold it, for the same of THREADS other threads, which make dS; times the score mod's derivative if that is held. `to` and `from`
// are a thread's.
template <int THREADS>
__device__ __forceinline__ void leave_weights(const u32 (&weight)[M / 4], const float (&score)[M / 2], u32 to) {
#pragma unroll
    for (int i = 0; i < M / 16; ++i) {
        u32 word[4];
#pragma unroll
        for (int n = 0; n < 4; ++n) {
            word[n] = weight[4 * i + n];
            if (HOLD == Hold::DERIVATIVES) {
                float low, high;
                unpack_pair(word[n], low, high);
                const float by_low = score[8 * i + 2 * n], by_high = score[8 * i + 2 * n + 1];
                word[n] = pack16(times_derivative(low, by_low), times_derivative(high, by_high));
            }
        }
        store_words(to + i * THREADS * 16, word[0], word[1], word[2], word[3]);
    }
}
template <int THREADS> __device__ __forceinline__ void take_weights(u32 (&weight)[M / 4], u32 from) {
#pragma unroll
    for (int i = 0; i < M / 16; ++i) {
        u32 word[4];
        load_words(word, from + i * THREADS * 16);
#pragma unroll
        for (int n = 0; n < 4; ++n) weight[4 * i + n] = word[n];
    }
}
