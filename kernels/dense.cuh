// Writes the mask as bytes, [mask_batch * mask_heads, q_len, dense_q] with zeros from kv_len on: what SDPA is given.
extern "C" __global__ void fill_dense(const __grid_constant__ Params p, ML_MODS_PARAMETER) {
    i64 rows = i64(p.mask_batch) * p.mask_heads * p.q_len;
    u8 *out = static_cast<u8 *>(p.scratch);
    for (i64 row = blockIdx.x; row < rows; row += gridDim.x) {
        int q_idx = int(row % p.q_len), list = int(row / p.q_len), b = list / p.mask_heads, h = list % p.mask_heads;
        HeadValues head = head_values(ML_MODS, b, h);
        RowValues ahead = row_values(ML_MODS, head, b, h, q_idx);
        for (int kv_idx = threadIdx.x; kv_idx < p.dense_q; kv_idx += blockDim.x) {
            ColumnValues column = column_values(ML_MODS, head, b, h, kv_idx);
            bool keep = kv_idx < p.kv_len && mask_mod(ML_MODS, head, ahead, column, b, h, q_idx, kv_idx);
            out[row * p.dense_q + kv_idx] = keep;
        }
    }
}
