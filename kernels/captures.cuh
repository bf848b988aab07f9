// The seam for gradients of captured tensors, where no captured tensor wants one. With ML_CAPTURES 1 the emitted text stands here
// instead and defines the same struct. A thread holds the cells of two keys, kv_idx (r = 0) and kv_idx + 8 (r = 1), and in turn the
// queries of every tile of a head; by the class of a read its sums are
//   by (b, h): one float a thread, summed over the warp at a head's end;
//   by kv: two floats a thread, summed over the four threads that share a key at a head's end;
//   by q: two floats a thread, of its queries q_idx (e = 0) and q_idx + 1 of eight, summed over a warp's keys when `cell` has seen these;
//   by q - kv: sums along a warp's diagonals (`DiagonalSums`), added at a tile's end when the element is another;
//   by all of b, h, q, kv as they are: written where `cell` stands, because no other cell has the element;
//   anything else: added where `cell` stands.
//   by q or by kv, of more than 32 reads: added at a tile's end, read by read, by `tile` (families.cuh).
// `d_score` is the gradient of the score mod's result, 0 where the mask drops the cell. `first`: the thread's first query of the eight of a
// step, and in `end_tile` of the tile.
struct CaptureSums {
    __device__ __forceinline__ void cell(const Mods &, float, float, float, const HeadValues &, const RowValues &,
                                         const ColumnValues &, int, int, int, int, int, int) {}
    __device__ __forceinline__ void end_queries(const Mods &, const HeadValues &, int, int, int, int, int) {}
    __device__ __forceinline__ void end_tile(const Mods &, const HeadValues &, int, int, int, int, int, int) {}
    __device__ __forceinline__ void end_head(const Mods &, int, int, int, int) {}
};
