#line 1 "mods"
struct alignas(8) Mods {
    const float *c0;
    const float *c1;
    int d0_0;
    int d0_1;
    int d1_0;
    int d1_1;
    int d1_2;
    int ui[24];
};
#define ML_MODS_PARAMETER const __grid_constant__ Mods mods_value
#define ML_MODS mods_value
// mod_source_0 is patterns/graphormer_spatial.py
// mod_source_1 is patterns/graphormer_edge.py
constexpr int MASK_PASS = 64, SCORE_PASS = 4;
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
__device__ __forceinline__ float score_mod(const Mods &m, int way, float raw, float scale, const HeadValues head, const RowValues row, const ColumnValues column, int b, int h, int q_idx, int kv_idx) {
    const float score = raw * scale;
#line 49 "mod_source_1"
    const int v27 = q_idx & 255;
    const int v29 = q_idx + m.ui[6];
    const int v30 = v29 & 255;
    const int v41 = q_idx + m.ui[8];
    const int v42 = v41 & 255;
    const int v44 = q_idx + m.ui[9];
    const int v45 = v44 & 255;
    const int v55 = q_idx + m.ui[12];
    const int v56 = v55 & 255;
    const int v58 = q_idx + m.ui[13];
    const int v59 = v58 & 255;
    const int v69 = q_idx + m.ui[16];
    const int v70 = v69 & 255;
    const int v72 = q_idx + m.ui[17];
    const int v73 = v72 & 255;
    const int v83 = q_idx + m.ui[20];
    const int v84 = v83 & 255;
    const int v86 = q_idx + m.ui[21];
    const int v87 = v86 & 255;
#line 29 "mod_source_0"
    const int v4 = q_idx - kv_idx;
    const int v6 = v4 & 255;
#line 30 "mod_source_0"
    const int v8 = m.ui[0] - v6;
    const int v9 = min(v6, v8);
    const int v11 = min(v9, m.ui[1]);
#line 33 "mod_source_0"
    const float v12 = load(m.c0 + ((inside(h, m.d0_0)) * m.d0_1 + wrap(v11, m.d0_1)));
#line 42 "mod_source_1"
    const int v14 = kv_idx - q_idx;
    const int v15 = v14 & 255;
#line 43 "mod_source_1"
    const int v17 = m.ui[2] - v15;
    const int v18 = min(v15, v17);
    const int v20 = min(v18, m.ui[3]);
#line 55 "mod_source_1"
    const bool v22 = v20 > 0;
#line 48 "mod_source_1"
    const int v24 = v15 * m.ui[4];
    const bool v26 = v24 <= m.ui[5];
#line 49 "mod_source_1"
    const int v31 = v26 ? v27 : v30;
    const int v33 = v31 & 3;
#line 55 "mod_source_1"
    const float v34 = load(m.c1 + (((inside(h, m.d1_0)) * m.d1_1 + wrap(0, m.d1_1)) * m.d1_2 + wrap(v33, m.d1_2)));
    const float v36 = v22 ? v34 : 0.0f;
    const float v37 = v36 + 0.0f;
    const bool v39 = v20 > m.ui[7];
#line 49 "mod_source_1"
    const int v46 = v26 ? v42 : v45;
    const int v47 = v46 & 3;
#line 55 "mod_source_1"
    const float v49 = load(m.c1 + (((inside(h, m.d1_0)) * m.d1_1 + wrap(m.ui[10], m.d1_1)) * m.d1_2 + wrap(v47, m.d1_2)));
    const float v50 = v39 ? v49 : 0.0f;
    const float v51 = v37 + v50;
    const bool v53 = v20 > m.ui[11];
#line 49 "mod_source_1"
    const int v60 = v26 ? v56 : v59;
    const int v61 = v60 & 3;
#line 55 "mod_source_1"
    const float v63 = load(m.c1 + (((inside(h, m.d1_0)) * m.d1_1 + wrap(m.ui[14], m.d1_1)) * m.d1_2 + wrap(v61, m.d1_2)));
    const float v64 = v53 ? v63 : 0.0f;
    const float v65 = v51 + v64;
    const bool v67 = v20 > m.ui[15];
#line 49 "mod_source_1"
    const int v74 = v26 ? v70 : v73;
    const int v75 = v74 & 3;
#line 55 "mod_source_1"
    const float v77 = load(m.c1 + (((inside(h, m.d1_0)) * m.d1_1 + wrap(m.ui[18], m.d1_1)) * m.d1_2 + wrap(v75, m.d1_2)));
    const float v78 = v67 ? v77 : 0.0f;
    const float v79 = v65 + v78;
    const bool v81 = v20 > m.ui[19];
#line 49 "mod_source_1"
    const int v88 = v26 ? v84 : v87;
    const int v89 = v88 & 3;
#line 55 "mod_source_1"
    const float v91 = load(m.c1 + (((inside(h, m.d1_0)) * m.d1_1 + wrap(m.ui[22], m.d1_1)) * m.d1_2 + wrap(v89, m.d1_2)));
    const float v92 = v81 ? v91 : 0.0f;
    const float v93 = v79 + v92;
#line 56 "mod_source_1"
    const int v95 = max(v20, m.ui[23]);
    const float v96 = float(v95);
    const float v97 = __fdividef(v93, v96);
#line 33 "mod_source_0"
    const float v13 = score + v12;
#line 56 "mod_source_1"
    const float v98 = v13 + v97;
    return v98;
}
