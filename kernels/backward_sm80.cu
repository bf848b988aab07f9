// Block-sparse attention backward for Ampere and anything newer: mma.sync, ldmatrix, cp.async. A block takes an item: 16 keys a warp stay
// with it while it walks the query tiles of the transposed lists. Scores and dP are computed transposed, so that P and dS are operands of
// dv and dk as they stand; dS goes to shared memory for dq, of which each warp multiplies 16 rows by a share of the columns.
// With ML_SPLIT, where dk and dv of a key do not both fit a thread's registers or shared memory takes only few keys, two warps share 16
// keys: one makes P and keeps dv, the other takes P through shared memory, makes dS and keeps dk.
// The host defines besides what backward.cuh and words.cuh want: ML_WARPS, ML_SPLIT, ML_STAGES (1 or 2 tiles of queries in shared memory),
// ML_MIN_BLOCKS, ML_QK_WIDTH and ML_V_WIDTH (head dims padded to 32). Launch: a block an item, 32 ML_WARPS threads.

constexpr int QK = ML_QK_WIDTH, VW = ML_V_WIDTH, WARPS = ML_WARPS, THREADS = 32 * WARPS, STAGES = ML_STAGES;
constexpr int KEY_WARPS = ML_SPLIT ? WARPS / 2 : WARPS, ROW_WARPS = M / 16, COLUMN_WARPS = WARPS / ROW_WARPS;
constexpr int PART_WIDTH = QK / COLUMN_WARPS;  // columns of dq that a warp multiplies
static_assert(N == 16 * KEY_WARPS && WARPS % ROW_WARPS == 0 && PART_WIDTH % 16 == 0 && M <= 64, "whole fragments");
// With ML_SPLIT the warps that make dS multiply the scores again where captured tensors get gradients behind a derivative: these want them.
constexpr bool SCORES_TWICE = ML_SPLIT && ML_GRAD && ML_CAPTURES;
static_assert(!ML_SPLIT || ML_GRAD < 2, "the scores are not where dS is made");
constexpr int pitch_of(int width) { return (width / 8 + 1) * 16; }
constexpr int QK_PITCH = pitch_of(QK), V_PITCH = pitch_of(VW), DS_PITCH = pitch_of(M);
constexpr int K_BYTES = N * QK_PITCH, V_BYTES = N * V_PITCH, Q_BYTES = M * QK_PITCH, DO_BYTES = M * V_PITCH, ROWS_BYTES = M * 8;
constexpr int DS_BYTES = N * DS_PITCH, P_BYTES = ML_SPLIT ? N * M * 2 : 0;

// Copies ROWS rows, of which `rows` exist and CHUNKS of 16 bytes are not padding; zeros for the others.
template <int ROWS, int WIDTH, int CHUNKS>
__device__ __forceinline__ void copy_rows(u32 to, const u16 *from, i64 stride, int rows) {
#pragma unroll
    for (int first = 0; first < ROWS * (WIDTH / 8); first += THREADS) {
        int index = first + int(threadIdx.x), row = index / (WIDTH / 8), chunk = index % (WIDTH / 8);
        if (ROWS * (WIDTH / 8) % THREADS == 0 || index < ROWS * (WIDTH / 8))
            copy_async(to + row * pitch_of(WIDTH) + chunk * 16, from + (row * stride + chunk * 8), row < rows && chunk < CHUNKS);
    }
}
constexpr int QK_CHUNKS = (ML_HEAD_DIM + 7) / 8, V_CHUNKS = (ML_HEAD_DIM_V + 7) / 8;

// A tile of queries, and all that goes with it.
struct Step {
    u32 tile;  // as in the runs, with Cursor::FULL; or Cursor::NONE
    int head;
    u32 bitmap, turn;  // indices: of a partial tile's bits, of its turn
};

// The query tiles of an item, over the heads of its group.
struct Walk {
    const Params &p;
    const Item &item;
    int head, past;
    Cursor cursor;
    u32 bitmap, turn;
    Step last = {Cursor::NONE, 0, 0, 0};
    __device__ __forceinline__ Walk(const Params &p, const Item &item)
        : p(p), item(item), head(item.kv_head * p.group), past(head + p.group), cursor(p, list_row(p, item.b, head, item.tile)) {
        begin();
    }
    __device__ __forceinline__ void begin() {
        int row = list_row(p, item.b, head, item.tile);
        if (ML_MASK == 4) bitmap = __ldg(p.bitmap_start + row);
        if (ML_DETERMINISTIC) turn = __ldg(p.order_start + row);
    }
    __device__ __forceinline__ Step next() {
        if (ML_DETERMINISTIC && last.tile != Cursor::NONE && ++last.head < head + heads_together(p)) return last;
        for (;;) {
            u32 tile = cursor.next(p);
            if (tile != Cursor::NONE) {
                Step step = {tile, head, bitmap, turn};
                if (!(tile & Cursor::FULL)) ++bitmap;
                ++turn;
                if (ML_DETERMINISTIC) last = step;
                return step;
            }
            head += heads_together(p);
            if (head == past) return {Cursor::NONE, head, 0, 0};
            cursor = Cursor(p, list_row(p, item.b, head, item.tile));
            begin();
        }
    }
};

struct Shared {
    u32 k, v, q, d_o, ds, weights, rows;
    __device__ __forceinline__ explicit Shared(u32 start) {
        k = start;
        v = k + K_BYTES;
        q = v + V_BYTES;
        d_o = q + STAGES * Q_BYTES;
        ds = d_o + STAGES * DO_BYTES;
        weights = ds + DS_BYTES;
        rows = weights + P_BYTES;
    }
};

__device__ __forceinline__ void load_queries(const Params &p, const Shared &s, int b, const Step &step, int stage) {
    int tile = int(step.tile & ~Cursor::FULL), first = tile * M, rows = p.q_len - first;
    copy_rows<M, QK, QK_CHUNKS>(s.q + stage * Q_BYTES, p.q + b * p.q_b + step.head * p.q_h + first * p.q_s, p.q_s, rows);
    copy_rows<M, VW, V_CHUNKS>(s.d_o + stage * DO_BYTES, p.d_o + b * p.d_o_b + step.head * p.d_o_h + first * p.d_o_s, p.d_o_s, rows);
    const float *from = p.rows + i64(query_tile(p, b, step.head, tile)) * (2 * M);
    if (threadIdx.x < M / 2) copy_async(s.rows + stage * ROWS_BYTES + threadIdx.x * 16, from + threadIdx.x * 4, true);
    copy_commit();
}

// acc[16 keys x M queries] = keys queriesᵀ over WIDTH.
template <int WIDTH> __device__ __forceinline__ void multiply_across(float (&acc)[M / 2], u32 keys, u32 queries, int lane) {
    constexpr int PITCH = pitch_of(WIDTH);
    auto &cell = reinterpret_cast<float (&)[M / 8][4]>(acc);
    keys += a_lane<PITCH>(lane), queries += b_lane<PITCH>(lane);
#pragma unroll
    for (int i = 0; i < M / 2; ++i) acc[i] = 0.0f;
#pragma unroll
    for (int step = 0; step < WIDTH / 16; ++step) {
        u32 a[4];
        ldmatrix(a, keys + step * 32);
#pragma unroll
        for (int n = 0; n < M / 16; ++n) {
            u32 b[4];
            ldmatrix(b, queries + n * 16 * PITCH + step * 32);
            mma(cell[2 * n], a, b[0], b[1]);
            mma(cell[2 * n + 1], a, b[2], b[3]);
        }
    }
}

// acc[16 rows x WIDTH] += a[16 x 16] b[16 x WIDTH].
template <int WIDTH, int PITCH> __device__ __forceinline__ void multiply_along(float (&acc)[WIDTH / 2], const u32 (&a)[4], u32 b_at) {
    auto &cell = reinterpret_cast<float (&)[WIDTH / 8][4]>(acc);
#pragma unroll
    for (int n = 0; n < WIDTH / 16; ++n) {
        u32 b[4];
        ldmatrix_transposed(b, b_at + n * 32);
        mma(cell[2 * n], a, b[0], b[1]);
        mma(cell[2 * n + 1], a, b[2], b[3]);
    }
}
template <int WIDTH> __device__ __forceinline__ void multiply_weights(float (&acc)[WIDTH / 2], const u32 (&weight)[M / 4], u32 b, int lane) {
    constexpr int PITCH = pitch_of(WIDTH);
    b += b_transposed_lane<PITCH>(lane);
#pragma unroll
    for (int m = 0; m < M / 16; ++m) {
        const u32 a[4] = {weight[4 * m], weight[4 * m + 1], weight[4 * m + 2], weight[4 * m + 3]};
        multiply_along<WIDTH, PITCH>(acc, a, b + m * 16 * PITCH);
    }
}

// A warp's 16 rows by PART_WIDTH columns of dS K, added to the sums.
__device__ __forceinline__ void multiply_queries(const Shared &s, float *sums, int warp, int lane) {
    const int row = warp % ROW_WARPS, part = warp / ROW_WARPS;
    float dq[PART_WIDTH / 2];
#pragma unroll
    for (int i = 0; i < PART_WIDTH / 2; ++i) dq[i] = 0.0f;
    // dS stands as rows of keys: transposed on its way to an operand of 16 queries by 16 keys
    u32 from = s.ds + (lane / 16 * 8 + lane % 8) * DS_PITCH + (lane / 8 % 2) * 16 + row * 32;
    u32 keys = s.k + b_transposed_lane<QK_PITCH>(lane) + part * PART_WIDTH * 2;
#pragma unroll
    for (int step = 0; step < N / 16; ++step) {
        u32 a[4];
        ldmatrix_transposed(a, from + step * 16 * DS_PITCH);
        multiply_along<PART_WIDTH, QK_PITCH>(dq, a, keys + step * 16 * QK_PITCH);
    }
    constexpr int PART_THREADS = 32 * ROW_WARPS;
    float *to = sums + part * (M * PART_WIDTH);
#pragma unroll
    for (int i = 0; i < PART_WIDTH / 8; ++i)
        add_to_global<PART_THREADS>(to + i * (PART_THREADS * 4), row * 32 + lane, dq[4 * i], dq[4 * i + 1], dq[4 * i + 2], dq[4 * i + 3]);
}

// A warp's 16 rows of dk or dv, in 16 bits, into its rows of a buffer that has been read for the last time.
template <int WIDTH> __device__ __forceinline__ void leave_keys(const float (&sum)[WIDTH / 2], float factor, u32 to, int lane) {
#pragma unroll
    for (int j = 0; j < WIDTH / 8; ++j)
#pragma unroll
        for (int r = 0; r < 2; ++r)
            store_word(to + (lane / 4 + 8 * r) * pitch_of(WIDTH) + j * 16 + lane % 4 * 4,
                       pack16(sum[4 * j + 2 * r] * factor, sum[4 * j + 2 * r + 1] * factor));
}
template <int WIDTH, int CHUNKS> __device__ __forceinline__ void store_keys(u32 from, u16 *to, i64 stride, int rows, bool zeros) {
#pragma unroll 1
    for (int i = threadIdx.x; i < min(N, rows) * CHUNKS; i += THREADS) {
        int row = i / CHUNKS, chunk = i % CHUNKS;
        u32 word[4] = {0, 0, 0, 0};
        if (!zeros) load_words(word, from + row * pitch_of(WIDTH) + chunk * 16);
        const Chunk value = {word[0], word[1], word[2], word[3]};
        *reinterpret_cast<Chunk *>(to + row * stride + chunk * 8) = value;
    }
}

// This thread's bits of a partial tile.
struct BitsPlace {
    const Params &p;
    u32 bitmap;
    int thread;  // of those that hold the tile
    __device__ __forceinline__ void operator()(u32 (&kept)[BIT_WORDS]) const {
        kept[0] = __ldg(p.bitmaps + i64(__ldg(p.bitmap_ids + bitmap)) * (2 * N) + thread);
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, ML_MIN_BLOCKS)
    backward_ampere(const __grid_constant__ Params p, ML_MODS_PARAMETER) {
    extern __shared__ __align__(128) u8 raw[];
    const Mods &all_mods = ML_MODS;
    const Shared s(shared_address(raw));
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int key_warp = warp % KEY_WARPS;
    const bool weighs = !ML_SPLIT || warp < KEY_WARPS, derives = !ML_SPLIT || !weighs;
    u32 unit = blockIdx.x;
#if ML_DETERMINISTIC
    // blocks wait for such as were taken before them, so taking is in order
    if (threadIdx.x == 0) store_word(s.rows, atomicAdd(p.counter, 1u));
    __syncthreads();
    unit = load_word(s.rows);
    __syncthreads();
#endif
    const Item item = p.items[unit];
    const int first_key = item.tile * N, keys = p.kv_len - first_key;
    u16 *dk = p.dk + item.b * p.dk_b + item.kv_head * p.dk_h + first_key * p.dk_s;
    u16 *dv = p.dv + item.b * p.dv_b + item.kv_head * p.dv_h + first_key * p.dv_s;
    if (item.count == 0) {
        store_keys<QK, QK_CHUNKS>(s.k, dk, p.dk_s, keys, true);
        store_keys<VW, V_CHUNKS>(s.v, dv, p.dv_s, keys, true);
        return;
    }
    const float to_log2 = ML_SCORE == 0 ? p.scale * 1.4426950408889634f : 1.4426950408889634f;
    Walk walk(p, item);
    Step now = walk.next();
    copy_rows<N, QK, QK_CHUNKS>(s.k, p.k + item.b * p.k_b + item.kv_head * p.k_h + first_key * p.k_s, p.k_s, keys);
    copy_rows<N, VW, V_CHUNKS>(s.v, p.v + item.b * p.v_b + item.kv_head * p.v_h + first_key * p.v_s, p.v_s, keys);
    load_queries(p, s, item.b, now, 0);
    // with ML_SPLIT a thread has but one of them
    constexpr int SUMS = ML_SPLIT ? (QK > VW ? QK : VW) / 2 : 1;
    float sum_k[ML_SPLIT ? 1 : QK / 2], sum_v[ML_SPLIT ? 1 : VW / 2], sum_one[SUMS];
    auto &sums_k = reinterpret_cast<float (&)[QK / 2]>(*(ML_SPLIT ? sum_one : sum_k));
    auto &sums_v = reinterpret_cast<float (&)[VW / 2]>(*(ML_SPLIT ? sum_one : sum_v));
#pragma unroll
    for (int i = 0; i < QK / 2; ++i) sums_k[i] = 0.0f;
#pragma unroll
    for (int i = 0; i < VW / 2; ++i) sums_v[i] = 0.0f;
    Cells cells;
    cells.b = item.b;
    cells.kv_idx = first_key + 16 * key_warp + lane / 4;
    CaptureSums captures;
    int before = -1, stage = 0;  // the head of the tile before
    while (now.tile != Cursor::NONE) {
        const Step next = walk.next();
        const int q_tile = int(now.tile & ~Cursor::FULL), line = query_tile(p, item.b, now.head, q_tile);
        copy_wait_all();
        __syncthreads();  // this tile has arrived, and every warp has left the buffers that the next copies fill
        if (STAGES == 2 && next.tile != Cursor::NONE) load_queries(p, s, item.b, next, stage ^ 1);
        if (ML_CAPTURES && derives && before >= 0 && now.head != before) {
            captures.end_head(all_mods, item.b, before, cells.kv_idx, p.kv_len);
            captures = CaptureSums();
        }
        before = now.head;
        cells.head = now.head;
        cells.q_idx = q_tile * M + 2 * (lane % 4);
        cells.rows = s.rows + stage * ROWS_BYTES + lane % 4 * 16;
        const u32 q = s.q + stage * Q_BYTES, d_o = s.d_o + stage * DO_BYTES;
        const u32 ds = s.ds + (16 * key_warp + lane / 4) * DS_PITCH + lane % 4 * 4;
        auto leave = [&](int m, const u32 (&word)[4]) {
#pragma unroll
            for (int n = 0; n < 4; ++n) store_word(ds + n % 2 * 8 * DS_PITCH + m * 32 + n / 2 * 16, word[n]);
            if (ML_SPLIT) return;
            multiply_along<QK, QK_PITCH>(sums_k, word, q + m * 16 * QK_PITCH + b_transposed_lane<QK_PITCH>(lane));
        };
        float score[M / 2], d_weight[M / 2];
        u32 weight[M / 4];
        if (weighs) {
            multiply_across<QK>(score, s.k + 16 * key_warp * QK_PITCH, q, lane);
            weigh_tile<HOLD>(p, all_mods, cells, now.tile & Cursor::FULL, BitsPlace{p, now.bitmap, key_warp * 32 + lane}, LseThen{}, score,
                             weight, to_log2);
        }
#if ML_SPLIT
        const u32 weights = s.weights + (key_warp * 32 + lane) * 16;
        if (weighs) {
            leave_weights<KEY_WARPS * 32>(weight, score, weights);
        } else {
            multiply_across<VW>(d_weight, s.v + 16 * key_warp * V_PITCH, d_o, lane);
            if (SCORES_TWICE) multiply_across<QK>(score, s.k + 16 * key_warp * QK_PITCH, q, lane);
        }
        __syncthreads();
        if (derives) {
            take_weights<KEY_WARPS * 32>(weight, weights);
            derive<SCORES_TWICE ? Hold::SCORES : Hold::NOTHING>(p, all_mods, cells, Deltas<1>(cells.rows), d_weight, score, weight, captures, leave);
        }
        __syncthreads();
        if (weighs) {
            multiply_weights<VW>(sums_v, weight, d_o, lane);
        } else {
            const u32 own = s.ds + (16 * key_warp + lane % 16) * DS_PITCH + lane / 16 * 16;
#pragma unroll
            for (int m = 0; m < M / 16; ++m) {
                u32 a[4];
                ldmatrix(a, own + m * 32);
                multiply_along<QK, QK_PITCH>(sums_k, a, q + m * 16 * QK_PITCH + b_transposed_lane<QK_PITCH>(lane));
            }
        }
#else
        multiply_across<VW>(d_weight, s.v + 16 * key_warp * V_PITCH, d_o, lane);
        multiply_weights<VW>(sums_v, weight, d_o, lane);
        derive<HOLD>(p, all_mods, cells, Deltas<1>(cells.rows), d_weight, score, weight, captures, leave);
        __syncthreads();
#endif
        u32 *turn = p.turns + 2 * i64(line);
#if ML_DETERMINISTIC
        if (threadIdx.x == 0) wait_for_word(turn, __ldg(p.order + now.turn));
        __syncthreads();
#endif
        multiply_queries(s, p.dq_sum + i64(line) * (M * QK), warp, lane);
        if (ML_DETERMINISTIC) __threadfence();
        if (ML_DETERMINISTIC || STAGES == 1) __syncthreads();
        if (ML_DETERMINISTIC && threadIdx.x == 0) add_release(turn, 1);
        if (STAGES == 1 && next.tile != Cursor::NONE) load_queries(p, s, item.b, next, 0);
        if (STAGES == 2) stage ^= 1;
        now = next;
    }
    if (ML_CAPTURES && derives) captures.end_head(all_mods, item.b, before, cells.kv_idx, p.kv_len);
    __syncthreads();
    if (derives) leave_keys<QK>(sums_k, p.scale, s.k + 16 * key_warp * QK_PITCH, lane);
    if (weighs) leave_keys<VW>(sums_v, 1.0f, s.v + 16 * key_warp * V_PITCH, lane);
    __syncthreads();
    store_keys<QK, QK_CHUNKS>(s.k, dk, p.dk_s, keys, false);
    store_keys<VW, V_CHUNKS>(s.v, dv, p.dv_s, keys, false);
}
