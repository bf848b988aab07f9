// Which blocks of a mask are empty, partial and full, and PyTorch's lists of them, found where the mask's tensors lie. Behind wide.cuh and the
// emitted mask, whose ints have 64 bits.
// Invariant: the lists are those of `torch.nn.attention.flex_attention.create_block_mask`, each entry behind the counts included.
// Launches: `span_lines` with a block of threads for each row and column of blocks, `mark_blocks` with a block of threads for each block of the mask; `list_blocks` with one for each line of a list.

struct Blocks {
    u8 *classes;    // [entries, rows, columns]: 0 no cell is kept, 1 some, 2 every cell of a whole block
    i64 *spans;     // [entries, rows + columns, SPANS, 2]: the least and the greatest of what a line of blocks holds of its tokens
    // counts [pairs, rows or columns] and indices [pairs, rows, columns] or the other way round; 0: there is no such list
    int *kv_counts, *kv_indices, *full_kv_counts, *full_kv_indices;
    int *q_counts, *q_indices, *full_q_counts, *full_q_indices;
    i64 q_len, kv_len;
    int block_q, block_kv, rows, columns;
    int heads;                      // of the lists
    int entry_batch, entry_heads;   // for which the mask differs: 1 where it is the same for all
    int nothing;
};

constexpr int MARKING = 256, SIDE = 128, LINES = 32, LISTING = 128;
constexpr int SPANS = ROW_SPANS > COLUMN_SPANS ? ROW_SPANS : COLUMN_SPANS;

// A thread joins the tokens of its number, then the threads join theirs.
extern "C" __global__ void __launch_bounds__(LISTING) span_lines(const __grid_constant__ Blocks p, ML_MODS_PARAMETER) {
    __shared__ i64 low[LISTING], high[LISTING];
    const bool by_column = int(blockIdx.x) >= p.rows;
    const i64 b = blockIdx.y / p.entry_heads, h = blockIdx.y % p.entry_heads;
    const i64 size = by_column ? p.block_kv : p.block_q;
    const i64 from = (by_column ? i64(blockIdx.x) - p.rows : i64(blockIdx.x)) * size;
    const i64 to = least(from + size, by_column ? p.kv_len : p.q_len);
    const HeadValues head = head_values(ML_MODS, b, h);
    i64 values[SPANS + 1], lo[SPANS + 1], hi[SPANS + 1];
    for (int i = 0; i < SPANS; ++i) lo[i] = GREATEST, hi[i] = LEAST;
    for (i64 at = from + threadIdx.x; at < to; at += LISTING) {
        if (by_column) put_column(column_values(ML_MODS, head, b, h, at), values);
        else put_row(row_values(ML_MODS, head, b, h, at), values);
        for (int i = 0; i < (by_column ? COLUMN_SPANS : ROW_SPANS); ++i)
            lo[i] = least(lo[i], values[i]), hi[i] = greatest(hi[i], values[i]);
    }
    i64 *spans = p.spans + (i64(blockIdx.y) * (p.rows + p.columns) + blockIdx.x) * SPANS * 2;
    for (int i = 0; i < SPANS; ++i) {
        low[threadIdx.x] = lo[i], high[threadIdx.x] = hi[i];
        for (int reach = LISTING / 2; reach > 0; reach /= 2) {
            __syncthreads();
            if (int(threadIdx.x) < reach) {
                low[threadIdx.x] = least(low[threadIdx.x], low[threadIdx.x + reach]);
                high[threadIdx.x] = greatest(high[threadIdx.x], high[threadIdx.x + reach]);
            }
        }
        if (threadIdx.x == 0) spans[2 * i] = low[0], spans[2 * i + 1] = high[0];
        __syncthreads();
    }
}

// What the mask is in the whole block, if its spans tell. Else SIDE columns by MARKING / SIDE rows at a time; it ends when a kept and a dropped cell were seen.
extern "C" __global__ void __launch_bounds__(MARKING) mark_blocks(const __grid_constant__ Blocks p, ML_MODS_PARAMETER) {
    __shared__ RowValues lines[LINES];
    __shared__ int some, none;
    const i64 b = blockIdx.z / p.entry_heads, h = blockIdx.z % p.entry_heads;
    const i64 q_from = i64(blockIdx.y) * p.block_q, kv_from = i64(blockIdx.x) * p.block_kv;
    const i64 q_to = least(q_from + p.block_q, p.q_len), kv_to = least(kv_from + p.block_kv, p.kv_len);
    const HeadValues head = head_values(ML_MODS, b, h);
    const bool whole = q_to - q_from == p.block_q && kv_to - kv_from == p.block_kv;
    u8 *const found = p.classes + (i64(blockIdx.z) * p.rows + blockIdx.y) * p.columns + blockIdx.x;
    const i64 *spans = p.spans + i64(blockIdx.z) * (p.rows + p.columns) * SPANS * 2;
    const Span all = mask_span(ML_MODS, head, row_spans(spans + i64(blockIdx.y) * SPANS * 2),
                               column_spans(spans + i64(p.rows + blockIdx.x) * SPANS * 2), b, h, {q_from, q_to - 1},
                               {kv_from, kv_to - 1});
    if (is_one(all)) {
        if (threadIdx.x == 0) *found = all.lo == 0 ? 0 : whole ? 2 : 1;
        return;
    }
    if (threadIdx.x == 0) some = none = 0;
    bool mixed = false;
    for (i64 first = kv_from; first < kv_to && !mixed; first += SIDE) {
        const i64 kv_idx = first + threadIdx.x % SIDE;
        const bool inside_kv = kv_idx < kv_to;
        const ColumnValues column = column_values(ML_MODS, head, b, h, inside_kv ? kv_idx : kv_from);
        for (i64 line = q_from; line < q_to; line += LINES) {
            __syncthreads();
            mixed = some && none;
            if (mixed) break;
            const int count = int(least(q_to - line, LINES));
            if (int(threadIdx.x) < count) lines[threadIdx.x] = row_values(ML_MODS, head, b, h, line + threadIdx.x);
            __syncthreads();
            bool kept = false, dropped = false;
            for (int at = threadIdx.x / SIDE; at < count; at += MARKING / SIDE) {
                const bool keep = mask_mod(ML_MODS, head, lines[at], column, b, h, line + at, kv_idx);
                kept |= keep, dropped |= !keep;
            }
            if (inside_kv && kept) some = 1;
            if (inside_kv && dropped) none = 1;
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) *found = !some ? 0 : !none && whole ? 2 : 1;
}

// The blocks of a line that are listed, ascending, then the others, ascending.
__device__ __forceinline__ void put_line(int *counts, int *indices, i64 line, int length, int from, int to, int before, int all,
                                         const u8 *classes, i64 step, int wanted) {
    if (threadIdx.x == 0) counts[line] = all;
    for (int at = from; at < to; ++at) {
        const int own = classes[at * step];
        const bool listed = wanted == 0 ? own != 0 : own == wanted;
        indices[line * length + (listed ? before : all + at - before)] = at;
        before += int(listed);
    }
}

// A thread has a stretch of the line; what is listed before it is summed over the threads.
extern "C" __global__ void __launch_bounds__(LISTING) list_blocks(const __grid_constant__ Blocks p) {
    __shared__ int partial[LISTING], full[LISTING];
    const bool by_column = int(blockIdx.x) >= p.rows;
    const int own = by_column ? blockIdx.x - p.rows : blockIdx.x, length = by_column ? p.rows : p.columns;
    const int b = blockIdx.y / p.heads, h = blockIdx.y % p.heads;
    const i64 entry = i64(p.entry_batch == 1 ? 0 : b) * p.entry_heads + (p.entry_heads == 1 ? 0 : h);
    const u8 *classes = p.classes + entry * p.rows * p.columns + (by_column ? own : i64(own) * p.columns);
    const i64 step = by_column ? p.columns : 1;
    const int stretch = (length + LISTING - 1) / LISTING;
    const int from = min(int(threadIdx.x) * stretch, length), to = min(from + stretch, length);
    int some = 0, whole = 0;
    for (int at = from; at < to; ++at) {
        const int found = classes[at * step];
        some += found == 1, whole += found == 2;
    }
    partial[threadIdx.x] = some, full[threadIdx.x] = whole;
    for (int reach = 1; reach < LISTING; reach *= 2) {
        __syncthreads();
        const bool more = int(threadIdx.x) >= reach;
        const int a = more ? partial[threadIdx.x - reach] : 0, c = more ? full[threadIdx.x - reach] : 0;
        __syncthreads();
        partial[threadIdx.x] += a, full[threadIdx.x] += c;
    }
    __syncthreads();
    const int partials = partial[LISTING - 1], fulls = full[LISTING - 1];
    const int partial_before = partial[threadIdx.x] - some, full_before = full[threadIdx.x] - whole;
    const i64 line = i64(blockIdx.y) * (by_column ? p.columns : p.rows) + own;
    int *counts = by_column ? p.q_counts : p.kv_counts, *indices = by_column ? p.q_indices : p.kv_indices;
    int *full_counts = by_column ? p.full_q_counts : p.full_kv_counts;
    int *full_indices = by_column ? p.full_q_indices : p.full_kv_indices;
    if (!full_counts) {
        const int before = partial_before + full_before;
        put_line(counts, indices, line, length, from, to, before, partials + fulls, classes, step, 0);
        return;
    }
    put_line(counts, indices, line, length, from, to, partial_before, partials, classes, step, 1);
    put_line(full_counts, full_indices, line, length, from, to, full_before, fulls, classes, step, 2);
}
