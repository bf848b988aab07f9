// What becomes of a product in flex_sm90 before the softmax: score mod and mask, and how a warp makes a tile's scores once more.
// Must not know rows' maxima or sums.

// What the mods need of a thread's head and of its two rows.
struct Ahead {
    HeadValues head;
    RowValues row[2];

    __device__ __forceinline__ Ahead(const Mods &mods, const Place &place, int q_idx) {
        head = head_values(mods, place.b, place.h);
#pragma unroll
        for (int r = 0; r < 2; ++r) row[r] = row_values(mods, head, place.b, place.h, q_idx + 8 * r);
    }
};

// The first key of a thread in a tile of keys.
__device__ __forceinline__ int first_key(const Step &step, int thread) { return step.tile() * N + 2 * (thread % 4); }

// What a partial tile keeps of a thread's two rows are two words: bit 2j + e is column 8j + e, right of the thread's first.
using Words = u32[2];
// They come to shared memory, a tile's at a time. A consumer waits for them between its products, where the compiler sees that the
// whole warp does: after a wait of which it does not, it would take every address for a thread's own.
__device__ __forceinline__ void wait_for_bits(const Stage &s, const Step &step, int group) {
    if (ML_MASK == 4 && !step.full()) mbarrier_wait(s.bits_full(group), step.parity());
}
__device__ __forceinline__ void take_bits(const Stage &s, Words &word, int group) {
    // a warpgroup's threads are numbered on from those of the producers; the copy has undone the order in global memory
    load_pair(word[0], word[1], s.bits(-1) + threadIdx.x * 8);
    give_back(s.bits_empty(group));
}
// Where rows keep one range of keys, each thread makes its words itself.
__device__ __forceinline__ void bits_of_rows(const Params &p, const Stage &s, u32 tile, Words &word, int row, int first_key) {
    const u32 *ranges = p.bitmaps + (u64(s.word(tile, ticket::PARTIAL)) * M + row) * 2;
    word[0] = bits_of_range(ranges, first_key), word[1] = bits_of_range(ranges + 16, first_key);
}
__device__ __forceinline__ void bits_of_tile(const Params &p, const Stage &s, u32 tile, const Step &step, Words &word, int row,
                                             int thread) {
    if (ML_MASK == 4) take_bits(s, word, row / 64);
    if (ML_MASK == 5) bits_of_rows(p, s, tile, word, row, first_key(step, thread));
}

// The eighth bits of the words' bytes; `eighth_of` says where that of a row's byte is.
__device__ __forceinline__ u32 eighth_bits(const Words &word) {
    u32 pairs = (word[0] & 0x80808080u) | (word[1] >> 1 & 0x40404040u);
    // byte i's two, at 8i + 6, come to 24 + 2i; no other sum of two places lies there, and none carries
    return pairs * (1u << 18 | 1u << 12 | 1u << 6 | 1u);
}
__device__ __forceinline__ int eighth_of(int r, int byte) { return 24 + 2 * byte + 1 - r; }

__device__ __forceinline__ void apply_bits(float (&score)[N / 2], const Words &word) {
#pragma unroll
    for (int r = 0; r < 2; ++r)
#pragma unroll
        for (int j = 0; j < N / 8; ++j) {
            if (!(word[r] & (1u << (2 * j)))) score[4 * j + 2 * r] = negative_infinity();
            if (!(word[r] & (2u << (2 * j)))) score[4 * j + 2 * r + 1] = negative_infinity();
        }
}

// -inf where the mask is false in a partial tile with these bits. Value 4j + 2r + e of a thread lies 8r below its first row and
// 8j + e right of its first column, kv_idx; columns come outside rows, so that what a column needs is computed once for both.
__device__ __forceinline__ void apply_mask(const Params &p, const Mods &mods, const Place &place, const Ahead &ahead,
                                           float (&score)[N / 2], const Words &word, int kv_idx, int row) {
#if ML_MASK >= 4
    apply_bits(score, word);
#else
    auto &cells = reinterpret_cast<float (&)[1][N / 8][4]>(score);
    by_columns<MASK_PASS>(cells, place.tile * M + row, kv_idx, [&](int first, int column, int n) {
#if ML_MASK == 1
        ColumnValues values = column_values(mods, ahead.head, place.b, place.h, column);
#endif
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            bool keep = column < p.kv_len;
#if ML_MASK == 1
            keep = keep && mask_mod(mods, ahead.head, ahead.row[r], values, place.b, place.h, first + 8 * r, column);
#endif
            if (!keep) cells[0][n / 2][2 * r + n % 2] = negative_infinity();
        }
    });
#endif
}

// Scores of one tile: the score mod everywhere, then the mask. The K buffer, whose product has been waited for, is given back.
__device__ __forceinline__ void apply_mods(const Params &p, const Mods &mods, const Place &kept, const Stage &s, u32 tile,
                                           int k_stage, const Ahead &ahead, float (&score)[N / 2], Step step, int row,
                                           int thread) {
    // a called score mod leaves no registers to keep a place or a step in, and wide heads none for a step
    constexpr bool CALLED = ML_SCORE == 2 && SCORE_PASS == 1, AGAIN = CALLED || VW > 128;
    if (!AGAIN) give_back(s.k_empty(k_stage));
    const Place place = CALLED ? s.place(tile) : kept;
    int kv_idx = first_key(step, thread);
#if ML_SCORE == 1
#pragma unroll
    for (int i = 0; i < N / 2; ++i) score[i] *= p.scale;
#elif ML_SCORE == 2
    auto &cells = reinterpret_cast<float (&)[1][N / 8][4]>(score);
    if constexpr (CALLED) {
        auto values_of = [&](int column) { return column_values(mods, ahead.head, place.b, place.h, column); };
        by_cells(cells, kv_idx, values_of, [&](float cell, int r, int column, const ColumnValues &values) {
            auto &rows = reinterpret_cast<const RowValues (&)[1][2]>(ahead.row);
            return score_mod(mods, 0, cell, p.scale, ahead.head, of_row(rows, r), values, place.b, place.h,
                             place.tile * M + row + 8 * r, column);
        });
    } else by_columns<SCORE_PASS>(cells, place.tile * M + row, kv_idx, [&](int first, int column, int n) {
        ColumnValues values = column_values(mods, ahead.head, place.b, place.h, column);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            float &cell = cells[0][n / 2][2 * r + n % 2];
            // cells take different ways, so that the special-function unit does one's share and the multipliers the
            // other's; one call for both rows keeps what cells of a diagonal have in common
            int way = ML_BOUNDED ? r | (n & 1) : r;
            cell = score_mod(mods, way, cell, p.scale, ahead.head, ahead.row[r], values, place.b, place.h, first + 8 * r, column);
        }
    });
#endif
    if (AGAIN) {
        step.word = spread(s.step(k_stage).word);
        give_back(s.k_empty(k_stage));
    }
    if (!step.full()) {
        Words word = {0, 0};
        bits_of_tile(p, s, tile, step, word, row, thread);
        apply_mask(p, mods, place, ahead, score, word, kv_idx, row);
    }
}

// --- the scores of a tile once more, which a warp makes by itself: with mma.sync, from global memory ---

// The tile of keys with `left` of them still to come, this one included, and of a partial one its bits.
__device__ __forceinline__ Step step_again(const Params &p, const Stage &s, u32 tile, u32 left, const u32 *&bits) {
    u32 n = s.word(tile, ticket::KV_NUM_TILES) - left, partial = ML_MASK == 4 ? s.word(tile, ticket::PARTIAL) : 0;
#pragma unroll 1
    for (u32 i = s.word(tile, ticket::FIRST);; ++i) {
        Run run = p.runs[i];
        u32 full = run.end & Cursor::FULL, tiles = (run.end ^ full) - run.start;
        if (n < tiles) {
            if (ML_MASK == 4 && !full) bits = p.bitmaps + __ldg(p.bitmap_ids + partial + n) * (4 * M);
            return {(run.start + n) | full};
        }
        n -= tiles;
        if (!full) partial += tiles;
    }
}

// Two elements of a row of q or k; zeros outside of it.
__device__ __forceinline__ u32 pair_of(const u16 *from, i64 stride, int token, int end, int column) {
    constexpr int WIDTH = (ML_HEAD_DIM + 7) / 8 * 8;
    return token < end && column < WIDTH ? __ldg(reinterpret_cast<const u32 *>(from + token * stride + column)) : 0;
}

// q kᵀ of a tile of keys, -inf where the mask is false: what `apply_mods` had made without a score mod.
__device__ __forceinline__ void score_again(const Params &p, const Mods &mods, const Stage &s, u32 tile, u32 left,
                                            float (&score)[N / 2], int row, int thread) {
    const Place place = s.place(tile);
    const u32 *bits = nullptr;
    const Step step = step_again(p, s, tile, left, bits);
    int lane4 = thread % 4, q_idx = place.tile * M + row, kv_idx = step.tile() * N + thread % 32 / 4;
    const u16 *q = p.q + place.b * p.q_b + place.h * p.q_h, *k = p.k + place.b * p.k_b + place.h / p.group * p.k_h;
    auto &cells = reinterpret_cast<float (&)[1][N / 8][4]>(score);
#pragma unroll
    for (int i = 0; i < N / 2; ++i) score[i] = 0.0f;
#pragma unroll 1
    for (int d = 0; d < QK / 16; ++d) {
        int column = 16 * d + 2 * lane4;
        u32 a[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) a[i] = pair_of(q, p.q_s, q_idx + i % 2 * 8, p.q_len, column + i / 2 * 8);
#pragma unroll
        for (int j = 0; j < N / 8; ++j)
            mma(cells[0][j], a, pair_of(k, p.k_s, kv_idx + 8 * j, p.kv_len, column),
                pair_of(k, p.k_s, kv_idx + 8 * j, p.kv_len, column + 8));
    }
    if (step.full()) return;
    Words word = {0, 0};
    if (ML_MASK == 4) {
        // as the host lays them out for the copy, which this is not
        const u32 *own = bits + row / 64 * (BITS_BYTES / 4) + 2 * (thread ^ thread / 16 * 2);
        word[0] = __ldg(own), word[1] = __ldg(own + 1);
    }
    if (ML_MASK == 5) bits_of_rows(p, s, tile, word, row, first_key(step, thread));
    apply_mask(p, mods, place, Ahead(mods, place, q_idx), score, word, first_key(step, thread), row);
}
