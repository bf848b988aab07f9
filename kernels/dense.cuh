// Writes the mask as bytes, [mask_batch * mask_heads, q_len, dense_q] with zeros from kv_len on: what SDPA is given.
extern "C" __global__ void fill_dense(const __grid_constant__ Params p, ML_MODS_PARAMETER) {
    i64 rows = i64(p.mask_batch) * p.mask_heads * p.q_len;
    u8 *out = static_cast<u8 *>(p.scratch);
    for (i64 row = blockIdx.x; row < rows; row += gridDim.x) {
        int q_idx = int(row % p.q_len), list = int(row / p.q_len);
        for (int kv_idx = threadIdx.x; kv_idx < p.dense_q; kv_idx += blockDim.x) {
            bool keep = kv_idx < p.kv_len && mask_mod(ML_MODS, list / p.mask_heads, list % p.mask_heads, q_idx, kv_idx);
            out[row * p.dense_q + kv_idx] = keep;
        }
    }
}
