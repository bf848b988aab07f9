// The emitted mods as a part that any kernel can be linked with: one copy of each, in loops that are not unrolled, so that
// it compiles in a tenth of a second. The host defines ML_M_TILES, ML_COLUMNS (of a thread in a tile), ML_HAS_SCORE,
// ML_HAS_MASK and ML_BITMAP (1: the kernel masks by bits, the end of the keys included).

extern "C" __device__ void linked_cells(const Mods *mods, float scale, int b, int h, int first_row, int first_column,
                                        int keys, bool full, float *scores) {
    const Mods &m = *mods;
    const HeadValues head = head_values(m, b, h);
#pragma unroll 1
    for (int line = 0; line < 2 * ML_M_TILES; ++line) {
        int q_idx = first_row + line / 2 * 16 + line % 2 * 8;
        const RowValues row = row_values(m, head, b, h, q_idx);
#pragma unroll 1
        for (int index = 0; index < ML_COLUMNS; ++index) {
            int kv_idx = first_column + index / 2 * 8 + index % 2;
            float &score = scores[(line / 2 * (ML_COLUMNS / 2) + index / 2) * 4 + line % 2 * 2 + index % 2];
            const ColumnValues column = column_values(m, head, b, h, kv_idx);
#if ML_HAS_SCORE
            score = score_mod(m, 0, score, scale, head, row, column, b, h, q_idx, kv_idx);
#else
            score *= scale;
#endif
            if (ML_BITMAP || full) continue;
            bool keep = kv_idx < keys;
#if ML_HAS_MASK
            keep = keep && mask_mod(m, head, row, column, b, h, q_idx, kv_idx);
#endif
            if (!keep) score = negative_infinity();
        }
    }
}
