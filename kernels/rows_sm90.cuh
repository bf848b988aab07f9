// Online softmax of flex_sm90: a consumer thread's two rows, their bases, sums and exponentials. Whatever the base of a row's
// exponentials is, its output and its sum carry the same factor. Must not know where scores come from.

// Without a score mod the exponentials of a row start from the maximum of its first tile, and no later tile looks for its own: a
// row's sum tells whether they grew so large that the base must be raised after all (`RISEN`, `raise`).
constexpr bool ANCHORED = ML_SCORE == 0 && ML_MASK != 1 && !ML_MAX_SCORES && VW <= 128;
// Sum of a thread's exponentials of a row and tile from which on the base is raised: in float16 they must not overflow, and in both
// the output keeps its distance from the ends of float.
constexpr float RISEN = ML_BF16 ? 1073741824.0f : 32768.0f;
// And from which on the tile is computed again: its inverse must be far from the smallest float, and the sum itself is none.
constexpr float BEYOND = 1e30f;
// A row's base is that of the first tile in which it keeps something.
constexpr bool FIXED = ML_BOUNDED || ANCHORED;
// Exponentials (by 8-column groups) that are computed while the last tile's products with v still run; those after them share
// their issue slots with the output's rescaling, where there is one. A score mod is long enough by itself.
constexpr int EARLY = ML_SCORE == 2 || ANCHORED ? N / 8 : N / 16;

// Running maximum and sum of a thread's two rows. With ML_LAG the maximum may lag by a factor 2^8 of the exponentials,
// so that most tiles rescale nothing; sum and output carry the same factor, hence the result is the same. With ML_BOUNDED
// scores lie so near to each other that the first tile in which a row keeps something decides its base: that tile's maximum,
// raised by whole powers of two where it is below p.lowest, so that the weight of the largest stays exact in 16 bits. With ANCHORED
// it is that maximum as it stands, until `raise`. With either (FIXED) `maximum` is the base, in powers of two, and later tiles
// neither look for theirs nor rescale. With ML_MAX_SCORES, where the maximum is an
// output, it follows every tile; ML_LAG then only skips the rescaling of tiles that raise no row of a warp.
struct RowState {
    float maximum[2], sum[2], factor[2];
    float base[2], added[2];  // of this tile
    bool open;                // with FIXED, for a whole warp: some row has kept nothing yet
    // of a row that has kept nothing yet; with FIXED a number, so that -inf minus it is -inf
    __device__ __forceinline__ static float unset() { return FIXED ? -1e30f : negative_infinity(); }

    __device__ __forceinline__ RowState() {
        maximum[0] = maximum[1] = unset();
        sum[0] = sum[1] = 0.0f;
        open = true;
    }
    // The row's largest score in this tile, in all four threads that share the row.
    __device__ __forceinline__ static float largest(const float (&score)[N / 2], int r) {
        // four chains: one would wait for itself at every step
        float tops[4] = {score[2 * r], score[2 * r + 1], score[4 + 2 * r], score[4 + 2 * r + 1]};
#pragma unroll
        for (int j = 2; j < N / 8; ++j)
#pragma unroll
            for (int e = 0; e < 2; ++e) tops[j % 2 * 2 + e] = larger(tops[j % 2 * 2 + e], score[4 * j + 2 * r + e]);
        float top = larger(larger(tops[0], tops[1]), larger(tops[2], tops[3]));
        top = larger(top, __shfl_xor_sync(0xffffffff, top, 1));
        return larger(top, __shfl_xor_sync(0xffffffff, top, 2));
    }
    // With FIXED: the base of rows that have none yet and keep something here.
    __device__ __forceinline__ void begin(const float (&score)[N / 2], float to_log2, float lowest) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            float top = largest(score, r) * to_log2;
            float above = ML_BOUNDED ? fmaxf(ceilf(lowest - top), 0.0f) : 0.0f;
            if (maximum[r] == unset() && top != negative_infinity()) maximum[r] = top + above;
        }
        open = __any_sync(0xffffffff, maximum[0] == unset() || maximum[1] == unset());
    }
    // What a row's exponentials start from in this tile; `factor` is what the output so far must be multiplied with.
    __device__ __forceinline__ void follow(const float (&score)[N / 2], int r, float to_log2) {
        if (FIXED) {
            base[r] = maximum[r];
            factor[r] = 1.0f;
            return;
        }
        float top = largest(score, r);
#if ML_LAG && !ML_MAX_SCORES
        float raised = (top - maximum[r]) * to_log2 > 8.0f ? top : maximum[r];
#else
        float raised = larger(maximum[r], top);
#endif
        // a row that has kept nothing yet has maximum -inf and counts from 0
        bool nothing = (ML_MASK != 0 || ML_SCORE == 2) && raised == negative_infinity();
        base[r] = nothing ? 0.0f : __fmul_rn(raised, to_log2);
        // rounded as the base was: exact, it would be a little off 1 for the same maximum, and lse would drift with every tile
        factor[r] = nothing ? 1.0f : exp2_fast(__fmul_rn(maximum[r], to_log2) - base[r]);
        if (ML_LAG && raised == maximum[r]) factor[r] = 1.0f;
        maximum[r] = raised;
    }
    __device__ __forceinline__ float exponential(float score, int r, float to_log2) const {
        return exp2_fast(fmaf(score, to_log2, -base[r]));
    }
    __device__ __forceinline__ void count(int r, int j, float sum) { added[r] = j == 0 ? sum : added[r] + sum; }
    // A row's scores of the 8-column groups FROM..TO become exponentials.
    template <int FROM, int TO> __device__ __forceinline__ void weigh(float (&score)[N / 2], int r, float to_log2) {
#pragma unroll
        for (int j = FROM; j < TO; ++j) {
            float &left = score[4 * j + 2 * r], &right = score[4 * j + 2 * r + 1];
            left = exponential(left, r, to_log2);
            right = exponential(right, r, to_log2);
            count(r, j, left + right);
        }
    }
    // The first groups of both rows, up to TO, from bases that stand.
    template <int TO> __device__ __forceinline__ void weigh_both(float (&score)[N / 2], float to_log2) {
#pragma unroll
        for (int r = 0; r < 2; ++r) follow(score, r, to_log2);
#pragma unroll
        for (int r = 0; r < 2; ++r) weigh<0, TO>(score, r, to_log2);
    }
    // The same for a partial tile, all groups. Chosen after the exponential: the first of them then waits for no bit. Seven bits of
    // a byte become predicates in one instruction: every byte's eighth waits for the others', with which it then is a byte.
    __device__ __forceinline__ void weigh_bits(float (&score)[N / 2], const Words &word, float to_log2) {
        u32 eighth = eighth_bits(word);
        auto choose = [&](int r, int bit, u32 kept) {
            float &cell = score[bit / 2 * 4 + 2 * r + bit % 2];
            float value = exponential(cell, r, to_log2);
            return cell = value_where(kept, value);
        };
#pragma unroll
        for (int r = 0; r < 2; ++r) follow(score, r, to_log2);
#pragma unroll
        for (int r = 0; r < 2; ++r)
#pragma unroll
            for (int j = 0; j < N / 8; ++j) {
                float sum = choose(r, 2 * j, word[r] & 1u << (2 * j));
                if (j % 4 != 3) sum += choose(r, 2 * j + 1, word[r] & 2u << (2 * j));
                count(r, j, sum);
            }
#pragma unroll
        for (int i = 0; i < N / 32; ++i)
#pragma unroll
            for (int r = 0; r < 2; ++r) added[r] += choose(r, 8 * i + 7, eighth & 1u << eighth_of(r, i));
    }
    // The same where a row may have none yet. FIRST: of a row's first tile.
    template <int TO, bool FIRST = false>
    __device__ __forceinline__ void step(float (&score)[N / 2], float to_log2, float lowest) {
        // without a mask every row keeps something in its first tile
        if (FIXED && (FIRST || ((ML_MASK != 0 || ML_BOUNDED) && open))) begin(score, to_log2, lowest);
        weigh_both<TO>(score, to_log2);
    }
    // The groups after those, and the sums; with ANCHORED these wait until it is known whether a row has risen.
    template <int FROM> __device__ __forceinline__ void close(float (&score)[N / 2], float to_log2) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            weigh<FROM, N / 8>(score, r, to_log2);
            if (!ANCHORED) sum[r] = fmaf(sum[r], factor[r], added[r]);
        }
    }
    __device__ __forceinline__ void add() {
#pragma unroll
        for (int r = 0; r < 2; ++r) sum[r] += added[r];
    }
    __device__ __forceinline__ void rescale(float (&out)[VW / 2]) const {
        if (FIXED) return;
        if (ML_LAG && !__any_sync(0xffffffff, factor[0] != 1.0f || factor[1] != 1.0f)) return;
#pragma unroll
        for (int i = 0; i < VW / 2; ++i) out[i] *= factor[(i >> 1) & 1];
    }
    // Whether the base of a row of this warp is too low for this tile. A row with NaN is as good as any.
    __device__ __forceinline__ bool risen() const {
        return __any_sync(0xffffffff, fmaxf(added[0], added[1]) >= RISEN);
    }
    // Raises bases to the largest of this tile, whose exponentials are in `score`; `again` makes the scores anew, for rows whose
    // exponentials are beyond the range of float. Everything summed so far follows.
    template <class Again>
    __device__ __forceinline__ void raise(float (&score)[N / 2], float (&out)[VW / 2], float to_log2, Again again) {
        float top[2] = {largest(score, 0), largest(score, 1)};
        bool beyond = __any_sync(0xffffffff, fmaxf(added[0], added[1]) >= BEYOND);
        if (beyond) again(score);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            float next = beyond ? largest(score, r) * to_log2 : maximum[r] + log2_fast(top[r]);
            next = fmaxf(maximum[r], next);
            factor[r] = exp2_fast(maximum[r] - next);
            maximum[r] = base[r] = next;
            if (beyond) {
                weigh<0, N / 8>(score, r, to_log2);
            } else {
                added[r] *= factor[r];
#pragma unroll
                for (int j = 0; j < N / 8; ++j) score[4 * j + 2 * r] *= factor[r], score[4 * j + 2 * r + 1] *= factor[r];
            }
            sum[r] *= factor[r];
        }
#pragma unroll
        for (int i = 0; i < VW / 2; ++i) out[i] *= factor[(i >> 1) & 1];
    }
};
