// Walks the runs of one row of tiles. The next run is only asked into the cache ahead of time: registers are scarce.
struct Cursor {
    u32 ahead, stop;  // indices into the runs
    u32 index, end;
    static constexpr u32 NONE = 0xffffffff, FULL = 0x80000000;

    __device__ __forceinline__ Cursor(const Params &p, int row) {
        ahead = __ldg(p.row_start + row);
        stop = __ldg(p.row_start + row + 1);
        index = end = 0;
    }
    // The same where someone has read the row's start, its end and its first run: of a row that is not empty.
    __device__ __forceinline__ Cursor(u32 first, u32 past, u64 run) {
        ahead = first + 1;
        stop = past;
        end = u32(run >> 32);
        index = u32(run) | (end & FULL);
    }
    // The next kv tile, with the top bit set where all its cells are kept; or NONE.
    __device__ __forceinline__ u32 next(const Params &p) {
        if (index == end) {
            if (ahead == stop) {
                index = end = NONE + 1;
                return NONE;
            }
            u64 run = __ldg(reinterpret_cast<const u64 *>(p.runs + ahead));
            end = u32(run >> 32);
            index = u32(run) | (end & FULL);
            if (++ahead != stop) prefetch(p.runs + ahead);
        }
        return index++;
    }
    // What `next` gave last, as the compiler does not see it: otherwise it would keep both in registers.
    __device__ __forceinline__ u32 last() const { return u32(forget(int(index))) - 1; }
};
