#line 1 "mods"
struct alignas(8) Mods {
    int ui[1];
    float uf[2];
};
#define ML_MODS_PARAMETER const __grid_constant__ Mods mods_value
#define ML_MODS mods_value
// mod_source_0 is patterns/sliding_window.py
// mod_source_1 is patterns/soft_cap.py
constexpr int MASK_PASS = 64, SCORE_PASS = 64;
constexpr bool LIGHT_SCORE = false;
#line 1 "mods"
// computed once a batch entry and head
struct HeadValues {
};
#line 1 "mods"
__device__ __forceinline__ HeadValues head_values(const Mods &m, int b, int h) {
    return HeadValues{};
}
#line 1 "mods"
// computed once a row: q_idx
struct RowValues {
};
#line 1 "mods"
__device__ __forceinline__ RowValues row_values(const Mods &m, const HeadValues head, int b, int h, int q_idx) {
    return RowValues{};
}
#line 1 "mods"
// computed once a column: kv_idx
struct ColumnValues {
};
#line 1 "mods"
__device__ __forceinline__ ColumnValues column_values(const Mods &m, const HeadValues head, int b, int h, int kv_idx) {
    return ColumnValues{};
}
#line 1 "mods"
__device__ __forceinline__ bool mask_mod(const Mods &m, const HeadValues head, const RowValues row, const ColumnValues column, int b, int h, int q_idx, int kv_idx) {
#line 14 "mod_source_0"
    const bool v2 = q_idx >= kv_idx;
    const int v3 = q_idx - kv_idx;
    const bool v5 = v3 < m.ui[0];
    const bool v6 = v2 && v5;
    return v6;
}
#line 1 "mods"
__device__ __forceinline__ float score_mod(const Mods &m, int way, float raw, float scale, const HeadValues head, const RowValues row, const ColumnValues column, int b, int h, int q_idx, int kv_idx) {
    const float score = raw * scale;
#line 14 "mod_source_1"
    const float v9 = raw * (scale * reciprocal_fast(m.uf[0]));
    const float v10 = fast_tanh(way, raw, scale * reciprocal_fast(m.uf[0]), 1.0f);
    const float v12 = fast_tanh(way, raw, scale * reciprocal_fast(m.uf[0]), m.uf[1]);
    return v12;
}
