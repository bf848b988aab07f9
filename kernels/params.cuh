// What a launch passes besides the mods' own struct. Mirrored byte for byte by `params.rs` on the host.
// Strides count elements; rows of q, k, v and o start on 16 bytes and are padded to whole 16-byte chunks.
struct Params {
    const u16 *q;             // [batch, heads, q_len, head_dim]
    const u16 *k;             // [batch, heads / group, kv_len, head_dim]
    const u16 *v;             // [batch, heads / group, kv_len, head_dim_v]
    u16 *o;                   // [batch, heads, q_len, head_dim_v]
    float *lse;               // [batch, heads, q_len], natural log
    const u32 *tile_order;    // [mask_batch, mask_heads, q_tiles]: heaviest first
    const u32 *row_start;     // [mask_batch * mask_heads * q_tiles + 1] into runs
    const Run *runs;          // ascending runs of kv tiles
    const u8 *dense;          // [.., q_len, dense_q] of 0 or 1, only for the dense mask
    const u32 *bitmap_start;  // [rows of the lists]: where a row's partial tiles begin in bitmap_ids
    const u32 *bitmap_ids;    // one for every partial tile, in the order of the lists
    const u32 *bitmaps;       // [n][tile_q][4] words; bit 2j+e of word t is column 8j + 2t + e
    void *scratch;            // eager: scores or probabilities
    i64 q_b, q_h, q_s;
    i64 k_b, k_h, k_s;
    i64 v_b, v_h, v_s;
    i64 o_b, o_h, o_s;
    i64 dense_b, dense_h, dense_q;
    int batch, heads, group;
    int q_len, kv_len, q_tiles;
    int mask_batch, mask_heads;  // 1 where the mask is the same for all
    int section;                 // heads whose k and v share the L2 cache
    int first;                   // eager: first (batch, head) of this chunk
    float scale;
    float lowest;                // with ML_BOUNDED: the lowest base of a row's exponentials, in powers of two
    // last, and only where asked for: a kernel without it has its other parameters where they were. A launch may pass more
    // bytes than a kernel takes.
#if ML_MAX_SCORES
    float *max_scores;           // [batch, heads, q_len]: a row's largest score, -inf where it keeps nothing
#endif
};
