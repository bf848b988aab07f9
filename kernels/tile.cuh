// Tiles of rows in shared memory, and the fragments that mma.sync eats.
// A row takes an odd number of 16-byte chunks, so that eight rows at one column lie in eight different bank groups:
// ldmatrix and the copies are free of conflicts without any swizzle arithmetic (offsets are all immediates).

__host__ __device__ constexpr int round_up(int n, int to) { return (n + to - 1) / to * to; }
__host__ __device__ constexpr int pitch_bytes(int width) { return (round_up(width, 16) / 8 + 1) * 16; }

// Copies ROWS rows of WIDTH elements (padded with zeros in shared memory) by THREADS threads. Rows from `rows` on are
// zeros: such a copy has size 0 and does not read its address. One running pointer instead of an address for every
// copy, because the registers of the main loop are all taken.
template <int ROWS, int WIDTH, int THREADS>
__device__ __forceinline__ void load_tile(u32 shared, const u16 *global, int stride, int rows, int thread) {
    constexpr int CHUNKS = round_up(WIDTH, 16) / 8;
    constexpr int VALID = (WIDTH + 7) / 8;
    constexpr int PITCH = pitch_bytes(WIDTH);
    constexpr int COUNT = ROWS * CHUNKS;
    if constexpr (THREADS % CHUNKS == 0 && COUNT % THREADS == 0) {
        constexpr int STEP = THREADS / CHUNKS;
        int row = thread / CHUNKS, chunk = thread % CHUNKS;
        const u16 *from = global + (row * stride + chunk * 8);
        u32 to = shared + row * PITCH + chunk * 16;
#pragma unroll
        for (int at = 0; at < ROWS; at += STEP) {
            copy_async(to + at * PITCH, from, row + at < rows && (VALID == CHUNKS || chunk < VALID));
            from += STEP * stride;
        }
    } else {
#pragma unroll
        for (int at = 0; at < COUNT; at += THREADS) {
            int index = at + thread;
            int row = index / CHUNKS, chunk = index % CHUNKS;
            if (COUNT % THREADS == 0 || index < COUNT) {
                bool valid = row < rows && (VALID == CHUNKS || chunk < VALID);
                copy_async(shared + row * PITCH + chunk * 16, global + (row * stride + chunk * 8), valid);
            }
        }
    }
}

// Lane offsets into a tile for the three kinds of fragment.
template <int PITCH> __device__ __forceinline__ u32 a_lane(int lane) {  // 16 rows x 16 columns, row-major
    return (lane % 16) * PITCH + (lane / 16) * 16;
}
template <int PITCH> __device__ __forceinline__ u32 b_lane(int lane) {  // two 8-row tiles, columns along k
    return (lane % 8 + lane / 16 * 8) * PITCH + (lane / 8 % 2) * 16;
}
template <int PITCH> __device__ __forceinline__ u32 b_transposed_lane(int lane) {  // rows along k, two 8-column tiles
    return (lane % 16) * PITCH + (lane / 16) * 16;
}
