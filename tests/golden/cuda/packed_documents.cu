#line 1 "mods"
struct alignas(8) Mods {
    const int *c0;
    int d0_0;
};
#define ML_MODS_PARAMETER const __grid_constant__ Mods mods_value
#define ML_MODS mods_value
// mod_source_0 is patterns/packed_documents.py
constexpr int MASK_PASS = 64, SCORE_PASS = 64;
constexpr bool LIGHT_SCORE = true;
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
    int v3;
};
#line 1 "mods"
__device__ __forceinline__ RowValues row_values(const Mods &m, const HeadValues head, int b, int h, int q_idx) {
#line 26 "mod_source_0"
    const int v3 = load(m.c0 + (inside(q_idx, m.d0_0)));
    return RowValues{v3};
}
#line 1 "mods"
// computed once a column: kv_idx
struct ColumnValues {
    int v4;
};
#line 1 "mods"
__device__ __forceinline__ ColumnValues column_values(const Mods &m, const HeadValues head, int b, int h, int kv_idx) {
#line 26 "mod_source_0"
    const int v4 = load(m.c0 + (inside(kv_idx, m.d0_0)));
    return ColumnValues{v4};
}
#line 1 "mods"
__device__ __forceinline__ bool mask_mod(const Mods &m, const HeadValues head, const RowValues row, const ColumnValues column, int b, int h, int q_idx, int kv_idx) {
#line 26 "mod_source_0"
    const bool v2 = q_idx >= kv_idx;
    const bool v5 = row.v3 == column.v4;
    const bool v6 = v2 && v5;
    return v6;
}
