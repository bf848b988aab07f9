// Stands where a variant's own mods would: here they are a part of their own, linked to this kernel when it is loaded.
// The kernel never looks into Mods; a thread gives all its cells of a tile away in one call (linked_mods.cuh).
struct Mods;
#define ML_MODS_PARAMETER const Mods *mods_pointer
#define ML_MODS *mods_pointer

struct HeadValues {};
struct RowValues {};
__device__ __forceinline__ HeadValues head_values(const Mods &, int, int) { return {}; }
__device__ __forceinline__ RowValues row_values(const Mods &, HeadValues, int, int, int) { return {}; }

// Scores of a thread, [16-row tile][8-column tile][4], become score_mod(score * scale); cells from `keys` on, and those
// that a mask among the mods drops, become -inf unless the tile is `full`.
extern "C" __device__ void linked_cells(const Mods *mods, float scale, int b, int h, int first_row, int first_column,
                                        int keys, bool full, float *scores);
