#line 1 "mods"
struct alignas(8) Mods {
    int ui[1];
    float uf[2];
};
#define ML_MODS_PARAMETER const __grid_constant__ Mods mods_value
#define ML_MODS mods_value
// mod_source_0 is patterns/causal.py
// mod_source_1 is patterns/alibi.py
constexpr int MASK_PASS = 64, SCORE_PASS = 64;
constexpr bool LIGHT_SCORE = true;
#line 1 "mods"
// computed once a batch entry and head
struct HeadValues {
    float v14;
};
#line 1 "mods"
__device__ __forceinline__ HeadValues head_values(const Mods &m, int b, int h) {
#line 17 "mod_source_1"
    const int v8 = h + m.ui[0];
    const float v9 = float(v8);
    const float v11 = v9 * m.uf[0];
    const float v13 = v11 / m.uf[1];
    const float v14 = exp2f(v13);
    return HeadValues{v14};
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
#line 17 "mod_source_0"
    const bool v2 = q_idx >= kv_idx;
    return v2;
}
#line 1 "mods"
__device__ __forceinline__ float score_mod(const Mods &m, int way, float raw, float scale, const HeadValues head, const RowValues row, const ColumnValues column, int b, int h, int q_idx, int kv_idx) {
    const float score = raw * scale;
#line 18 "mod_source_1"
    const int v4 = kv_idx - q_idx;
    const float v5 = float(v4);
    const float v15 = v5 * fresh(head.v14);
    const float v16 = score + v15;
    return v16;
}
