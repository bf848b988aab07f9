// The products of Hopper's backward kernels, and the ways out of their registers: dq into its f32 sums, dk and dv in 16 bits. Must not know
// lists, masks or mods.

// A warpgroup's part of dq: half of the columns (of 192 the first has 128), with 128 queries half of the rows, with OWN_KEYS what its keys
// give to all of it. PART_WIDTH is the first one's.
constexpr int PART_WIDTH = M == 128 || OWN_KEYS ? QK : QK == 192 ? 128 : QK / 2, PART = 64 * PART_WIDTH, PARTS = M * QK / PART;
static_assert(PART_WIDTH % 64 == 0, "a part has whole boxes");
static_assert(ML_DQ_ORDER == 0, "sums lie as boxes are copied");
// Named barriers, a warpgroup's is the constant + group: of its own; its part of dq has been taken; has been left.
constexpr int OWN = 8, TAKEN = 10, LEFT = 12;

// This thread's bits of a partial tile, where they lie in shared memory.
struct BitsPlace {
    u32 from;
    __device__ __forceinline__ void operator()(u32 (&kept)[BIT_WORDS]) const {
        if constexpr (BIT_WORDS == 1) kept[0] = load_word(from);
        else load_pair(kept[0], kept[1], from);
    }
};

// dSᵀ of 64 keys goes to shared memory as rows of queries: [keys / 64][M rows][128 bytes], swizzled; `to` is where those of these keys lie.
// `words`, where there is such, keeps it as an operand besides.
struct QueryRows {
    u32 own, *words;
    __device__ __forceinline__ QueryRows(u32 to, int warp, int lane, u32 *words = nullptr) : words(words) {
        const int line = lane / 16 * 8 + lane % 8, chunk = 2 * warp + lane / 8 % 2;
        own = to + line * 128 + (chunk ^ (lane % 8)) * 16;
    }
    __device__ __forceinline__ void operator()(int m, const u32 (&word)[4]) const {
        stmatrix_x4_transposed(own + m * 16 * 128, word[0], word[1], word[2], word[3]);
        if (words == nullptr) return;
#pragma unroll
        for (int i = 0; i < 4; ++i) words[4 * m + i] = word[i];
    }
};

// A descriptor of 128-byte rows, swizzled, whose upper half (stride 1024 bytes, the swizzle) is the same for all. Steps are added to the
// lower half, which they cannot overflow; where addresses are constants nothing is left to compute.
__device__ __forceinline__ u64 described(u32 low) { return (u64(0x40000040u) << 32) | low; }
__device__ __forceinline__ constexpr u32 place(u32 address, u32 leading) { return (address & 0x3FFFF) >> 4 | (leading >> 4) << 16; }

// acc[64 keys x M queries] = keys queriesᵀ, both from shared memory.
template <int WIDTH> __device__ __forceinline__ void issue_across(float (&acc)[M / 2], u32 keys, u32 queries) {
    const u32 left = place(keys, 16), right = place(queries, 16);
    wgmma_fence();
#pragma unroll
    for (int d = 0; d < WIDTH / 16; ++d) {
        const u64 a = described(left + ((d / 4) * N * 8 + (d % 4) * 2)), b = described(right + ((d / 4) * M * 8 + (d % 4) * 2));
        if (d == 0) wgmma_anew<0>(acc, a, b);
        else wgmma_ss<0>(acc, a, b, 1);
    }
    wgmma_commit();
}

// acc[64 keys x WIDTH] += weight[64 x M] b[M x WIDTH], weight (P or dSᵀ) from registers.
template <int WIDTH> __device__ __forceinline__ void issue_along(float (&acc)[WIDTH / 2], const u32 *weight, u32 b) {
    const u32 right = place(b, M * 128);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < M / 16; ++step) wgmma_rs<1>(acc, weight + 4 * step, described(right + step * 128), 1);
    wgmma_commit();
}

// acc[64 keys x WIDTH] += dSᵀ[64 x M] b[M x WIDTH], both from shared memory.
template <int WIDTH> __device__ __forceinline__ void issue_keys(float (&acc)[WIDTH / 2], u32 ds, u32 b) {
    const u32 left = place(ds, 16), right = place(b, M * 128);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < M / 16; ++step) wgmma_transposed(acc, described(left + step * 128), described(right + step * 128));
    wgmma_commit();
}

// This warpgroup's part of dS K.
template <int COUNT> __device__ __forceinline__ void issue_queries(float (&dq)[COUNT], u32 ds, u32 k, int group) {
    const u32 left = place(M == 128 || OWN_KEYS ? ds + group * 64 * 128 : ds, 16);
    const u32 right = place(M == 128 ? k : OWN_KEYS ? k + group * 64 * 128 : k + group * (PART_WIDTH / 64) * N * 128, N * 128);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < (OWN_KEYS ? 64 : N) / 16; ++step) {
        const u64 a = described(left + ((step / 4) * M * 8 + (step % 4) * 2)), b = described(right + step * 128);
        if (step == 0) wgmma_anew<1>(dq, a, b);
        else wgmma_ss<1>(dq, a, b, 1);
    }
    wgmma_commit();
}

// A part of a tile's dq leaves through shared memory, and a warp of its own a part (`add_parts`) has the copy engine add
// it: 32 KB a tile keep the way to memory busy for a thousand clocks, for which registers would be held.
struct Handoff {
    static constexpr u32 LINE = 0, TURN = 4, BYTES = 8, STOP = 0xffffffff;
};

__device__ __forceinline__ void post_part(u32 line, u32 turn, int group, int thread) {
    if (thread == 0) {
        store_word(Stage::handoff + group * Handoff::BYTES + Handoff::LINE, line);
        if (ML_DETERMINISTIC) store_word(Stage::handoff + group * Handoff::BYTES + Handoff::TURN, turn);
    }
    fence_async_proxy();
    bar_arrive(LEFT + group, 160);
}

// `q`: the buffer of the tile's queries, which is given back later: its words say the line with LINE_TOLD.
__device__ __forceinline__ void leave_part(const float (&dq)[PART_WIDTH / 2], u32 line, u32 turn, int q, int group, int thread) {
    const u32 to = Stage::sums + group * PART * 4 + thread * 16;
    bar_sync(TAKEN + group, 160);
#pragma unroll
    for (int i = 0; i < PART_WIDTH / 8; ++i)
        store_words(to + i * 128 * 16, __float_as_uint(dq[4 * i]), __float_as_uint(dq[4 * i + 1]), __float_as_uint(dq[4 * i + 2]),
                    __float_as_uint(dq[4 * i + 3]));
    if (LINE_TOLD && thread == 0) line = load_word(Stage::step_place(q, step::LINE));
    post_part(line, turn, group, thread);
}

// The warp that adds a warpgroup's parts, until the handoff says that there are no more. Key tiles add to a tile's dq in the order in which they
// were taken, if they are to: a block waits only for such as were taken before its own.
__device__ __forceinline__ void add_parts(const Params &p, const TensorMap *sum_map, int group) {
    const u32 from = Stage::sums + group * PART * 4;
    bar_arrive(TAKEN + group, 160);
#pragma unroll 1
    for (;;) {
        bar_sync(LEFT + group, 160);
        const u32 line = load_word(Stage::handoff + group * Handoff::BYTES + Handoff::LINE);
        if (line == Handoff::STOP) break;
        u32 *turn = p.turns + 2 * i64(line) + group;
        if (warp_leader()) {
            if (ML_DETERMINISTIC) wait_for_word(turn, load_word(Stage::handoff + group * Handoff::BYTES + Handoff::TURN));
            tma_add(sum_map, from, 0, (int(line) * PARTS + (PARTS == 2 ? group : 0)) * (PART / 256), 0, 0);
            tma_store_commit();
            tma_store_wait_read();
        }
        __syncwarp();
        bar_arrive(TAKEN + group, 160);
        // the warpgroup writes its next part meanwhile
        if (ML_DETERMINISTIC) {
            if (warp_leader()) {
                tma_wait_all();
                add_release(turn, 1);
            }
            __syncwarp();
        }
    }
    tma_wait_all();
}

// Adds a part of a tile's dq to its sums straight from registers; `to` is the part's.
template <int COUNT> __device__ __forceinline__ void add_queries(const float (&dq)[COUNT], float *to, i64 at, int thread) {
#pragma unroll
    for (int i = 0; i < COUNT / 4; ++i)
        add_to_global<128>(to + at + i * 512, thread, dq[4 * i], dq[4 * i + 1], dq[4 * i + 2], dq[4 * i + 3]);
}
__device__ __forceinline__ void await_turn(u32 *turn, u32 before, int group, int thread) {
    if (thread == 0) wait_for_word(turn, before);
    bar_sync(OWN + group, 128);
}

// 64 rows of dk or dv, in 16 bits, into the rows from `first` on of a buffer that has been read for the last time.
template <int WIDTH>
__device__ __forceinline__ void leave_keys(const float (&sum)[WIDTH / 2], float factor, u32 base, int first, int thread) {
    int warp = thread / 32, lane = thread % 32, line = first + 16 * warp + (lane / 8 & 1) * 8 + lane % 8;
#pragma unroll
    for (int j = 0; j < WIDTH / 8; j += 2) {
        int chunk = j + lane / 16;
        u32 word[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) word[i] = pack16(sum[4 * j + 2 * i] * factor, sum[4 * j + 2 * i + 1] * factor);
        stmatrix_x4(base + (chunk / 8) * N * 128 + line * 128 + ((chunk % 8) ^ (line % 8)) * 16, word[0], word[1], word[2], word[3]);
    }
}
template <int WIDTH>
__device__ __forceinline__ void store_keys(const TensorMap *map, u32 base, int first, int token, int head, int batch) {
#pragma unroll
    for (int d = 0; d < WIDTH / 64; ++d) tma_store(map, base + d * N * 128 + first * 128, d * 64, token, head, batch);
}

// Keys that no query attends to. The threads of so many share the work.
__device__ __forceinline__ void store_zeros(const Params &p, int b, int head, int tile, int thread, int threads) {
    constexpr int K_CHUNKS = (ML_HEAD_DIM + 7) / 8, V_CHUNKS = (ML_HEAD_DIM_V + 7) / 8;
    int first = tile * N, rows = min(N, p.kv_len - first);
    u16 *dk = p.dk + b * p.dk_b + head * p.dk_h + first * p.dk_s, *dv = p.dv + b * p.dv_b + head * p.dv_h + first * p.dv_s;
    const Chunk zero = {0, 0, 0, 0};
#pragma unroll 1
    for (int i = thread; i < rows * K_CHUNKS; i += threads)
        *reinterpret_cast<Chunk *>(dk + i / K_CHUNKS * p.dk_s + i % K_CHUNKS * 8) = zero;
#pragma unroll 1
    for (int i = thread; i < rows * V_CHUNKS; i += threads)
        *reinterpret_cast<Chunk *>(dv + i / V_CHUNKS * p.dv_s + i % V_CHUNKS * 8) = zero;
}

struct Out {
    const TensorMap *dk, *dv, *sums;
};

