// Attention of few query rows over many keys: decoding. The rows of all query heads that share a kv head are packed into
// one tile, so that keys and values are read once; the keys are split over blocks, and a second kernel joins the parts by
// their log-sum-exp. mma.sync and cp.async: works from sm_80 on; the limit is memory. kernels/README.md draws it.
// The host defines ML_HEAD_DIM, ML_HEAD_DIM_V, ML_TILE_Q (16 rows a row warp), ML_TILE_KV, ML_WARPS, ML_STAGES,
// ML_MIN_BLOCKS, ML_MASK (0 none, 1 mask_mod, 4 bitmap) and ML_SCORE (as in attend.cuh).

constexpr int HEAD_DIM = ML_HEAD_DIM, HEAD_DIM_V = ML_HEAD_DIM_V, TILE_Q = ML_TILE_Q, TILE_KV = ML_TILE_KV;
constexpr int WARPS = ML_WARPS, STAGES = ML_STAGES, THREADS = WARPS * 32;
// a warp owns 16 rows and KEYS of a tile's keys; each group of ROW_WARPS warps makes a part of its own
constexpr int ROW_WARPS = TILE_Q / 16, KEY_WARPS = WARPS / ROW_WARPS, KEYS = TILE_KV / KEY_WARPS;
constexpr int K_STEPS = round_up(HEAD_DIM, 16) / 16, OUT_PAIRS = round_up(HEAD_DIM_V, 16) / 16, PAIRS = KEYS / 16;
constexpr int QK_PITCH = pitch_bytes(HEAD_DIM), V_PITCH = pitch_bytes(HEAD_DIM_V);
constexpr int Q_BYTES = TILE_Q * QK_PITCH, K_BYTES = TILE_KV * QK_PITCH, V_BYTES = TILE_KV * V_PITCH;
constexpr int PART_WIDTH = OUT_PAIRS * 16;  // floats of a part's row
static_assert(ROW_WARPS * KEY_WARPS == WARPS && PAIRS * 16 * KEY_WARPS == TILE_KV && STAGES >= 2, "whole fragments");

// What a launch passes besides Params. Mirrored byte for byte by the host. Rows of the block lists are pieces, list after
// list; a bitmap has row_tiles * TILE_Q rows.
struct Decode {
    float *parts;             // [batch * kv_heads][rows][splits * KEY_WARPS][PART_WIDTH], each row normalised
    float *part_lse;          // [batch * kv_heads][rows][splits * KEY_WARPS], in powers of two
    int kv_heads, rows;       // rows: group * q_len; row g * q_len + q is query q of the group's head g
    int row_tiles, splits;
#if ML_MAX_SCORES
    float *part_max;          // as part_lse: the largest score of each row
#endif
};

struct Place {
    int b, kv_head, split, first_row, piece;
};

// Row tiles of one piece stand next to each other, so that the keys come out of the cache.
__device__ __forceinline__ Place place_of(const Params &p, const Decode &x, u32 index) {
    Place place;
    place.first_row = int(index % x.row_tiles) * TILE_Q, index /= x.row_tiles;
    place.split = index % x.splits, index /= x.splits;
    place.kv_head = index % x.kv_heads;
    place.b = index / x.kv_heads;
    int list = (p.mask_batch == 1 ? 0 : place.b) * p.mask_heads + (p.mask_heads == 1 ? 0 : place.kv_head);
    place.piece = list * x.splits + place.split;
    return place;
}

// The tile's query rows, gathered from their heads; rows beyond the last are zeros.
__device__ __forceinline__ void load_q(const Params &p, const Decode &x, const Place &place, u32 shared, int thread) {
    constexpr int CHUNKS = round_up(HEAD_DIM, 16) / 8, VALID = (HEAD_DIM + 7) / 8;
    for (int index = thread; index < TILE_Q * CHUNKS; index += THREADS) {
        int line = index / CHUNKS, chunk = index % CHUNKS, row = place.first_row + line;
        bool valid = row < x.rows && chunk < VALID;
        int head = place.kv_head * p.group + (valid ? row / p.q_len : 0), q_idx = valid ? row % p.q_len : 0;
        copy_async(shared + line * QK_PITCH + chunk * 16,
                   p.q + (place.b * p.q_b + head * p.q_h + q_idx * p.q_s + (valid ? chunk * 8 : 0)), valid);
    }
}

// s = q k^T for this warp's rows and keys.
__device__ __forceinline__ void scores(u32 q_at, u32 k_at, float (&s)[1][2 * PAIRS][4]) {
#pragma unroll
    for (int n = 0; n < 2 * PAIRS; ++n)
#pragma unroll
        for (int c = 0; c < 4; ++c) s[0][n][c] = 0.0f;
#pragma unroll
    for (int step = 0; step < K_STEPS; ++step) {
        u32 a[4];
        ldmatrix(a, q_at + step * 32);
#pragma unroll
        for (int n = 0; n < PAIRS; ++n) {
            u32 b[4];
            ldmatrix(b, k_at + n * 16 * QK_PITCH + step * 32);
            mma(s[0][2 * n], a, b[0], b[1]);
            mma(s[0][2 * n + 1], a, b[2], b[3]);
        }
    }
}

// out += p v for this warp's rows and keys; p is rounded to 16 bits here.
__device__ __forceinline__ void values(u32 v_at, const float (&s)[1][2 * PAIRS][4], float (&out)[1][2 * OUT_PAIRS][4]) {
#pragma unroll
    for (int step = 0; step < PAIRS; ++step) {
        u32 a[4] = {pack16(s[0][2 * step][0], s[0][2 * step][1]), pack16(s[0][2 * step][2], s[0][2 * step][3]),
                    pack16(s[0][2 * step + 1][0], s[0][2 * step + 1][1]),
                    pack16(s[0][2 * step + 1][2], s[0][2 * step + 1][3])};
#pragma unroll
        for (int n = 0; n < OUT_PAIRS; ++n) {
            u32 b[4];
            ldmatrix_transposed(b, v_at + step * 16 * V_PITCH + n * 32);
            mma(out[0][2 * n], a, b[0], b[1]);
            mma(out[0][2 * n + 1], a, b[2], b[3]);
        }
    }
}

// The two rows of a thread: which head and query they are. Rows beyond the last are another's, and never stored.
struct Rows {
    int index[2], h[2], q_idx[2];
    HeadValues head[2];
    RowValues row[2];
};

// Score mod and mask of one tile's share; `column` is the first key of this warp in its tile, `partial` counts the
// partial tiles of the piece.
__device__ __forceinline__ void apply_mods(const Params &p, const Decode &x, const Mods &mods, const Place &place,
                                           const Rows &rows, u32 at, int column, u32 &partial, int lane4,
                                           float (&s)[1][2 * PAIRS][4]) {
    int first = int(at & ~Cursor::FULL) * TILE_KV + column + 2 * lane4;
#if ML_SCORE == 1
#pragma unroll
    for (int n = 0; n < 2 * PAIRS; ++n)
#pragma unroll
        for (int c = 0; c < 4; ++c) s[0][n][c] *= p.scale;
#elif ML_SCORE == 2
    by_columns<SCORE_PASS>(s, 0, first, [&](int, int kv_idx, int n) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            float &score = s[0][n / 2][2 * r + n % 2];
            ColumnValues values = column_values(mods, rows.head[r], place.b, rows.h[r], kv_idx);
            score = score_mod(mods, 0, score, p.scale, rows.head[r], rows.row[r], values, place.b, rows.h[r], rows.q_idx[r],
                              kv_idx);
        }
    });
#endif
    if (at & Cursor::FULL) return;
#if ML_MASK == 4
    u64 bitmap = u64(__ldg(p.bitmap_ids + partial++)) * (x.row_tiles * TILE_Q);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        u32 word = __ldg(p.bitmaps + (bitmap + rows.index[r]) * 4 + lane4) >> (column / 4);
#pragma unroll
        for (int n = 0; n < 2 * PAIRS; ++n)
#pragma unroll
            for (int e = 0; e < 2; ++e)
                if (!(word >> (2 * n + e) & 1)) s[0][n][2 * r + e] = negative_infinity();
    }
#else
    by_columns<MASK_PASS>(s, 0, first, [&](int, int kv_idx, int n) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            bool keep = kv_idx < p.kv_len;
#if ML_MASK == 1
            ColumnValues values = column_values(mods, rows.head[r], place.b, rows.h[r], kv_idx);
            keep = keep && mask_mod(mods, rows.head[r], rows.row[r], values, place.b, rows.h[r], rows.q_idx[r], kv_idx);
#endif
            if (!keep) s[0][n / 2][2 * r + n % 2] = negative_infinity();
        }
    });
#endif
}

// Where part `part` of row `row` lies, counted in parts.
__device__ __forceinline__ i64 part_of(const Params &p, const Decode &x, const Place &place, int row, int part) {
    return ((i64(place.b) * x.kv_heads + place.kv_head) * x.rows + row) * (x.splits * KEY_WARPS) + part;
}

extern "C" __global__ void __launch_bounds__(THREADS, ML_MIN_BLOCKS)
    decode_forward(const __grid_constant__ Params p, const __grid_constant__ Decode x, ML_MODS_PARAMETER) {
    extern __shared__ __align__(128) u8 smem[];
    const Mods &mods = ML_MODS;
    Place place = place_of(p, x, blockIdx.x);
    int thread = threadIdx.x, lane = thread % 32, row_warp = thread / 32 % ROW_WARPS, key_warp = thread / 32 / ROW_WARPS;
    u32 q_smem = shared_address(smem), k_smem = q_smem + Q_BYTES, v_smem = k_smem + STAGES * K_BYTES;
    const u16 *k = p.k + (place.b * p.k_b + place.kv_head * p.k_h), *v = p.v + (place.b * p.v_b + place.kv_head * p.v_h);
    float to_log2 = ML_SCORE ? 1.4426950408889634f : p.scale * 1.4426950408889634f;
    Rows rows;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        rows.index[r] = place.first_row + row_warp * 16 + lane / 4 + r * 8;
        int row = min(rows.index[r], x.rows - 1);
        rows.h[r] = place.kv_head * p.group + row / p.q_len;
        rows.q_idx[r] = row % p.q_len;
        rows.head[r] = head_values(mods, place.b, rows.h[r]);
        rows.row[r] = row_values(mods, rows.head[r], place.b, rows.h[r], rows.q_idx[r]);
    }
    Cursor cursor(p, place.piece);
    u32 partial = ML_MASK == 4 ? __ldg(p.bitmap_start + place.piece) : 0;
    u32 ahead[STAGES];  // this tile and those whose copies are on their way
    auto ask = [&](u32 at, int stage) {
        if (at != Cursor::NONE) {
            int first = int(at & ~Cursor::FULL) * TILE_KV, left = p.kv_len - first;
            load_tile<TILE_KV, HEAD_DIM, THREADS>(k_smem + stage * K_BYTES, k + first * p.k_s, int(p.k_s), left, thread);
            load_tile<TILE_KV, HEAD_DIM_V, THREADS>(v_smem + stage * V_BYTES, v + first * p.v_s, int(p.v_s), left, thread);
        }
        copy_commit();  // a group for every tile, an empty one behind the last
    };
    load_q(p, x, place, q_smem, thread);
#pragma unroll
    for (int i = 0; i < STAGES - 1; ++i) ask(ahead[i] = cursor.next(p), i);

    float out[1][2 * OUT_PAIRS][4] = {};
    Softmax<1> softmax;
    u32 q_at = q_smem + row_warp * 16 * QK_PITCH + a_lane<QK_PITCH>(lane);
    u32 k_at = k_smem + key_warp * KEYS * QK_PITCH + b_lane<QK_PITCH>(lane);
    u32 v_at = v_smem + key_warp * KEYS * V_PITCH + b_transposed_lane<V_PITCH>(lane);
    int stage = 0;
    while (ahead[0] != Cursor::NONE) {
        copy_wait<STAGES - 2>();
        __syncthreads();  // this tile has arrived, and every warp has left the buffers that the next copies fill
        ask(ahead[STAGES - 1] = cursor.next(p), stage == 0 ? STAGES - 1 : stage - 1);
        float s[1][2 * PAIRS][4];
        scores(q_at, k_at + stage * K_BYTES, s);
        apply_mods(p, x, mods, place, rows, ahead[0], key_warp * KEYS, partial, lane % 4, s);
        softmax.step(s, out, to_log2);
        values(v_at + stage * V_BYTES, s, out);
        if (++stage == STAGES) stage = 0;
#pragma unroll
        for (int i = 0; i < STAGES - 1; ++i) ahead[i] = ahead[i + 1];
    }
    copy_wait_all();
    softmax.finish();
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        if (rows.index[r] >= x.rows) continue;
        i64 part = part_of(p, x, place, rows.index[r], place.split * KEY_WARPS + key_warp);
        float sum = softmax.sum[0][r], inverse = softmax.inverse(0, r);
        if (lane % 4 == 0)
            x.part_lse[part] = sum == 0.0f ? negative_infinity() : softmax.maximum[0][r] * to_log2 + log2f(sum);
#if ML_MAX_SCORES
        if (lane % 4 == 0) x.part_max[part] = softmax.largest(0, r, p.scale);
#endif
        float2 *to = reinterpret_cast<float2 *>(x.parts + part * PART_WIDTH + lane % 4 * 2);
#pragma unroll
        for (int n = 0; n < 2 * OUT_PAIRS; ++n)
            to[n * 4] = make_float2(out[0][n][2 * r] * inverse, out[0][n][2 * r + 1] * inverse);
    }
}

// Joins the parts of a row of the output: a block for each, whose warps share the parts.
constexpr int JOIN_WARPS = 8;

extern "C" __global__ void __launch_bounds__(32 * JOIN_WARPS)
    decode_join(const __grid_constant__ Params p, const __grid_constant__ Decode x) {
    constexpr int WIDTH = (PART_WIDTH + 63) / 64;  // pairs of floats of a lane
    constexpr int STORED = round_up(HEAD_DIM_V, 8);  // the output's rows are padded to whole chunks
    __shared__ float2 joined[JOIN_WARPS][WIDTH][32];
    __shared__ float sums[JOIN_WARPS];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, index = blockIdx.x;
    int q_idx = index % p.q_len, h = index / p.q_len % p.heads, b = index / p.q_len / p.heads;
    int count = x.splits * KEY_WARPS;
    i64 first = ((i64(b) * x.kv_heads + h / p.group) * x.rows + h % p.group * p.q_len + q_idx) * count;
    float top = negative_infinity();
    for (int part = lane; part < count; part += 32) top = fmaxf(top, x.part_lse[first + part]);
#pragma unroll
    for (int step = 16; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, step));
    // nothing kept anywhere: every part is zero, and so is their sum
    float base = top == negative_infinity() ? 0.0f : top, sum = 0.0f;
    float2 own[WIDTH] = {};
#pragma unroll 4
    for (int part = warp; part < count; part += JOIN_WARPS) {
        float weight = exp2_fast(x.part_lse[first + part] - base);
        sum += weight;
        const float2 *from = reinterpret_cast<const float2 *>(x.parts + (first + part) * PART_WIDTH);
#pragma unroll
        for (int i = 0; i < WIDTH; ++i) {
            if (i * 64 + lane * 2 >= PART_WIDTH) continue;
            float2 value = from[i * 32 + lane];
            own[i].x = fmaf(weight, value.x, own[i].x);
            own[i].y = fmaf(weight, value.y, own[i].y);
        }
    }
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) joined[warp][i][lane] = own[i];
    if (lane == 0) sums[warp] = sum;
    __syncthreads();
    if (warp != 0) return;
    sum = 0.0f;
#pragma unroll
    for (int w = 0; w < JOIN_WARPS; ++w) sum += sums[w];
    float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
    u16 *o = p.o + (b * p.o_b + h * p.o_h + q_idx * p.o_s);
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
        float left = 0.0f, right = 0.0f;
#pragma unroll
        for (int w = 0; w < JOIN_WARPS; ++w) left += joined[w][i][lane].x, right += joined[w][i][lane].y;
        int column = i * 64 + lane * 2;
        if (column < STORED) *reinterpret_cast<u32 *>(o + column) = pack16(left * inverse, right * inverse);
    }
    if (lane == 0) p.lse[index] = sum == 0.0f ? negative_infinity() : (base + log2f(sum)) * 0.6931471805599453f;
#if ML_MAX_SCORES
    float largest = negative_infinity();
    for (int part = lane; part < count; part += 32) largest = larger(largest, x.part_max[first + part]);
#pragma unroll
    for (int step = 16; step > 0; step /= 2) largest = larger(largest, __shfl_xor_sync(0xffffffff, largest, step));
    if (lane == 0) p.max_scores[index] = largest;
#endif
}
