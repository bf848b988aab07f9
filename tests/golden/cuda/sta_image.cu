#line 1 "mods"
struct alignas(8) Mods {
    int ui[11];
};
#define ML_MODS_PARAMETER const __grid_constant__ Mods mods_value
#define ML_MODS mods_value
// mod_source_0 is patterns/sta_2d.py
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
#line 44 "mod_source_0"
    const bool v5 = q_idx >= m.ui[1];
#line 41 "mod_source_0"
    const int v10 = q_idx >> 9;
#line 35 "mod_source_0"
    const int v12 = max(v10, m.ui[3]);
    const int v14 = min(v12, m.ui[4]);
#line 36 "mod_source_0"
    const int v16 = v14 + m.ui[5];
    const int v20 = v14 + m.ui[6];
#line 39 "mod_source_0"
    const int v24 = q_idx >> 6;
#line 42 "mod_source_0"
    const int v26 = v24 & 7;
#line 35 "mod_source_0"
    const int v28 = max(v26, m.ui[7]);
    const int v30 = min(v28, m.ui[8]);
#line 36 "mod_source_0"
    const int v32 = v30 + m.ui[9];
    const int v37 = v30 + m.ui[10];
#line 43 "mod_source_0"
    const bool v2 = kv_idx < m.ui[0];
#line 44 "mod_source_0"
    const bool v7 = kv_idx >= m.ui[2];
#line 41 "mod_source_0"
    const int v17 = kv_idx >> 9;
#line 40 "mod_source_0"
    const int v33 = kv_idx >> 6;
#line 42 "mod_source_0"
    const int v34 = v33 & 7;
#line 44 "mod_source_0"
    const bool v8 = v5 || v7;
#line 36 "mod_source_0"
    const bool v18 = v16 <= v17;
    const bool v21 = v20 >= v17;
    const bool v22 = v18 && v21;
    const bool v35 = v32 <= v34;
    const bool v38 = v37 >= v34;
    const bool v39 = v35 && v38;
#line 45 "mod_source_0"
    const bool v40 = v22 && v39;
    const bool v41 = v8 || v40;
    const bool v42 = v2 && v41;
    return v42;
}
