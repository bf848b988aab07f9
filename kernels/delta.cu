// What the backward kernels want made ready, and what is left to do after them.
// `backward_rows`: of every query row lse in powers of two and delta = sum(o * d_o) - d_lse; zeros in dq_sum, turns and the
// counter, if there is one.
// `backward_queries`: dq in 16 bits, from dq_sum in the order of the kernel's fragments. Both run a block of 256 threads a query tile and
// head: grid (q_tiles, heads, batch).
// The host defines besides what backward.cuh wants: ML_QK_WIDTH (the width of dq_sum), ML_DQ_PART_WIDTH and ML_DQ_ORDER
// (`place_of_sum`).

constexpr int QK = ML_QK_WIDTH, CHUNKS_V = (ML_HEAD_DIM_V + 7) / 8, CHUNKS = (ML_HEAD_DIM + 7) / 8;

__device__ __forceinline__ float dot_of_chunks(Chunk a, Chunk b) {
    const u32 left[4] = {a.x, a.y, a.z, a.w}, right[4] = {b.x, b.y, b.z, b.w};
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        float x, y, u, v;
        unpack_pair(left[i], x, y);
        unpack_pair(right[i], u, v);
        sum = fmaf(x, u, fmaf(y, v, sum));
    }
    return sum;
}

extern "C" __global__ void __launch_bounds__(256) backward_rows(const __grid_constant__ Params p) {
    int tile = blockIdx.x, head = blockIdx.y, b = blockIdx.z, lane = threadIdx.x % 8;
    const i64 at = query_tile(p, b, head, tile);
    if (threadIdx.x == 0) {
        p.turns[2 * at] = p.turns[2 * at + 1] = 0;
        if (at == 0 && (!ML_DETERMINISTIC || p.counter)) *p.counter = 0;
    }
    float4 *sums = reinterpret_cast<float4 *>(p.dq_sum + at * (M * QK));
#pragma unroll 4
    for (int i = threadIdx.x; i < M * QK / 4; i += 256) sums[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    // eight lanes a row
    for (int row = threadIdx.x / 8; row < M; row += 32) {
        int q_idx = tile * M + row;
        bool inside = q_idx < p.q_len;
        float delta = 0.0f;
        if (inside) {
            const u16 *o = p.o + b * p.o_b + head * p.o_h + q_idx * p.o_s;
            const u16 *d_o = p.d_o + b * p.d_o_b + head * p.d_o_h + q_idx * p.d_o_s;
#pragma unroll
            for (int c = lane; c < CHUNKS_V; c += 8)
                delta += dot_of_chunks(reinterpret_cast<const Chunk *>(o)[c], reinterpret_cast<const Chunk *>(d_o)[c]);
        }
#pragma unroll
        for (int by = 1; by < 8; by *= 2) delta += __shfl_xor_sync(0xffffffff, delta, by);
        if (lane != 0) continue;
        i64 index = (i64(b) * p.heads + head) * p.q_len + q_idx;
        float lse = inside ? p.lse[index] : negative_infinity();
#if ML_DLSE
        if (inside) delta -= p.d_lse[index];
#endif
        bool nothing = lse == negative_infinity();
        float *to = p.rows + (at * (M / 2) + row / 2) * 4 + row % 2;
        to[0] = nothing ? -negative_infinity() : lse * 1.4426950408889634f;
        to[2] = nothing ? 0.0f : delta;
    }
}

// dq_sum is, with ML_DQ_ORDER 0, [part][group of 8 columns][thread][4], else [..][4][thread], as the threads of a part hold a tile of up to 64
// rows by ML_DQ_PART_WIDTH columns: 16 rows a warp, after wgmma and after mma.sync alike. With M = 128 parts are rows. It is read as it
// lies and turned into rows in shared memory.
extern "C" __global__ void __launch_bounds__(256) backward_queries(const __grid_constant__ Params p) {
    constexpr int ROWS = M < 64 ? M : 64, WIDTH = ML_DQ_PART_WIDTH, THREADS = ROWS * 2, GROUPS = WIDTH / 8, PITCH = QK * 2 + 16;
    __shared__ __align__(16) u8 turned[M * PITCH];
    const int tile = blockIdx.x, head = blockIdx.y, b = blockIdx.z;
    const float *sums = p.dq_sum + i64(query_tile(p, b, head, tile)) * (M * QK);
#pragma unroll 4
    for (int i = threadIdx.x; i < M * QK / 4; i += 256) {
        const int thread = i % THREADS, group = i / THREADS, part = group / GROUPS;
        const int row = part % (M / ROWS) * ROWS + thread / 32 * 16 + thread % 32 / 4;
        const int column = part / (M / ROWS) * WIDTH + group % GROUPS * 8 + thread % 4 * 2;
        float value[4];
#if ML_DQ_ORDER == 0
        const float4 four = reinterpret_cast<const float4 *>(sums)[i];
        value[0] = four.x, value[1] = four.y, value[2] = four.z, value[3] = four.w;
#else
#pragma unroll
        for (int v = 0; v < 4; ++v) value[v] = sums[(group * 4 + v) * THREADS + thread];
#endif
        u32 *to = reinterpret_cast<u32 *>(turned + row * PITCH + column * 2);
        to[0] = pack16(value[0] * p.scale, value[1] * p.scale);
        to[8 * PITCH / 4] = pack16(value[2] * p.scale, value[3] * p.scale);
    }
    __syncthreads();
    u16 *dq = p.dq + b * p.dq_b + head * p.dq_h + i64(tile) * M * p.dq_s;
    const int rows = min(M, p.q_len - tile * M);
    for (int i = threadIdx.x; i < rows * CHUNKS; i += 256)
        *reinterpret_cast<Chunk *>(dq + i / CHUNKS * p.dq_s + i % CHUNKS * 8) =
            *reinterpret_cast<const Chunk *>(turned + i / CHUNKS * PITCH + i % CHUNKS * 16);
}
