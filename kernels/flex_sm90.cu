// Flex attention forward for Hopper: one producer warp copies tiles with TMA, CONSUMERS warpgroups of 64 query rows each
// multiply with wgmma, and take turns so that one's exponentials run under the other's products.
// Owns the pipeline and its barriers. Mods arrive as mask_mod and score_mod; the tile list, longest first, from the host.
// Compile-time: ELEM, DQ and DV (head dims padded to 64), TILE_N, STAGES, Q_STAGES, CONSUMERS, MASK (0 none, 1 formula,
// 2 bitmap), SCORE (0 or 1).

#ifndef NO_PINGPONG
#define PINGPONG (CONSUMERS > 1)
#else
#define PINGPONG 0
#endif
#define TILE_M (64 * CONSUMERS)
#define Q_BYTES (TILE_M * DQ * 2)
#define K_BYTES (TILE_N * DQ * 2)
#define V_BYTES (TILE_N * DV * 2)
#define NEG_INF __int_as_float(0xff800000)

struct Params {
  float* lse;                    // [B, H, q_len]
  const unsigned* tiles;         // tile order: ((b * H + h) * q_tiles + q_tile)
  const unsigned* row_offsets;   // [mask_b * mask_h * q_tiles + 1]
  const uint2_* entries;         // x: kv block; y: FULL, or the bitmap's number
  const unsigned* bitmaps;       // [n][TILE_M][4] words, bit 2j+e is column 8j + 2*(lane%4) + e
  unsigned* counter;             // [2]: next tile, finished blocks
  int tile_count, heads, group, q_len, kv_len, q_tiles, kv_blocks;
  int mask_stride_b, mask_stride_h;  // in rows of the list; 0 where the mask broadcasts
  float scale, c;                // c = factor of the exponent: scale*log2e, or log2e with a score mod
};
#define FULL 0xffffffffu

struct Tile {
  int b, h, q_tile;
  unsigned begin, end;
};

static __device__ __forceinline__ Tile tile_at(const Params& p, unsigned index) {
  unsigned packed = p.tiles[index];
  Tile t;
  t.q_tile = packed % p.q_tiles;
  unsigned bh = packed / p.q_tiles;
  t.h = bh % p.heads;
  t.b = bh / p.heads;
#if MASK
  unsigned row = t.b * p.mask_stride_b + t.h * p.mask_stride_h + t.q_tile;
  t.begin = p.row_offsets[row];
  t.end = p.row_offsets[row + 1];
#else
  t.begin = 0;
  t.end = p.kv_blocks;
#endif
  return t;
}

static __device__ __forceinline__ uint2_ entry_at(const Params& p, unsigned i) {
#if MASK
  return p.entries[i];
#else
  uint2_ e;
  e.x = i;
  e.y = (i + 1) * TILE_N <= p.kv_len ? FULL : 0;
  return e;
#endif
}

// Position in a ring of buffers and the parity that its barriers wait for.
template <int COUNT> struct Ring {
  int at = 0;
  unsigned phase = 0;
  __device__ __forceinline__ void next() {
    if (++at == COUNT) {
      at = 0;
      phase ^= 1;
    }
  }
};

struct Shared {  // byte addresses in shared memory
  unsigned q, k, v, bars;
  volatile int* slot;  // [Q_STAGES] tile numbers, -1: no more
  __device__ __forceinline__ unsigned q_full(int i) const { return bars + 8 * i; }
  __device__ __forceinline__ unsigned q_empty(int i) const { return bars + 8 * (Q_STAGES + i); }
  __device__ __forceinline__ unsigned k_full(int i) const { return bars + 8 * (2 * Q_STAGES + i); }
  __device__ __forceinline__ unsigned k_empty(int i) const { return bars + 8 * (2 * Q_STAGES + STAGES + i); }
  __device__ __forceinline__ unsigned v_full(int i) const { return bars + 8 * (2 * Q_STAGES + 2 * STAGES + i); }
  __device__ __forceinline__ unsigned v_empty(int i) const { return bars + 8 * (2 * Q_STAGES + 3 * STAGES + i); }
};

static __device__ __forceinline__ void produce(const Params& p, const Shared& s, const TensorMap* tq, const TensorMap* tk, const TensorMap* tv) {
  Ring<Q_STAGES> qr;
  Ring<STAGES> r;
  for (unsigned next = blockIdx.x;; next = gridDim.x + atomicAdd(p.counter, 1)) {
    mbarrier_wait(s.q_empty(qr.at), qr.phase ^ 1);
    if (next >= p.tile_count) {
      s.slot[qr.at] = -1;
      mbarrier_arrive(s.q_full(qr.at));
      break;
    }
    Tile t = tile_at(p, next);
    s.slot[qr.at] = next;
    mbarrier_expect(s.q_full(qr.at), Q_BYTES);
#pragma unroll
    for (int d = 0; d < DQ / 64; ++d)
      tma_load(s.q + qr.at * Q_BYTES + d * TILE_M * 128, tq, s.q_full(qr.at), d * 64, t.q_tile * TILE_M, t.h, t.b);
    int kv_head = t.h / p.group;
    for (unsigned i = t.begin; i < t.end; ++i) {
      int kv0 = entry_at(p, i).x * TILE_N;
      mbarrier_wait(s.k_empty(r.at), r.phase ^ 1);
      mbarrier_expect(s.k_full(r.at), K_BYTES);
#pragma unroll
      for (int d = 0; d < DQ / 64; ++d) tma_load(s.k + r.at * K_BYTES + d * TILE_N * 128, tk, s.k_full(r.at), d * 64, kv0, kv_head, t.b);
      mbarrier_wait(s.v_empty(r.at), r.phase ^ 1);
      mbarrier_expect(s.v_full(r.at), V_BYTES);
#pragma unroll
      for (int d = 0; d < DV / 64; ++d) tma_load(s.v + r.at * V_BYTES + d * TILE_N * 128, tv, s.v_full(r.at), d * 64, kv0, kv_head, t.b);
      r.next();
    }
    qr.next();
  }
  // the last block to finish leaves the counters ready for the next launch
  if (atomicAdd(p.counter + 1, 1) == gridDim.x - 1) {
    p.counter[0] = 0;
    p.counter[1] = 0;
  }
}

static __device__ __forceinline__ void issue_qk(float (&s_reg)[TILE_N / 2], unsigned q, unsigned k) {
#pragma unroll
  for (int d = 0; d < DQ / 16; ++d)
    wgmma_ss<0>(s_reg, descriptor(q + (d / 4) * TILE_M * 128 + (d % 4) * 32, 1, 1024), descriptor(k + (d / 4) * TILE_N * 128 + (d % 4) * 32, 1, 1024),
                d != 0);
}
static __device__ __forceinline__ void issue_pv(float (&o_reg)[DV / 2], const unsigned* p_reg, unsigned v, int accumulate) {
#pragma unroll
  for (int k = 0; k < TILE_N / 16; ++k) wgmma_rs<1>(o_reg, p_reg + 4 * k, descriptor(v + k * 2048, TILE_N * 128, 1024), accumulate || k != 0);
}

// Scores of one block: score_mod, then -inf where masked. q_row: this thread's first row; rows are q_row and q_row + 8.
static __device__ __forceinline__ void apply_mods(float (&s)[TILE_N / 2], const Params& p, const Tile& t, uint2_ e, int row_in_tile, int lane4) {
  int q_row = t.q_tile * TILE_M + row_in_tile;
  int kv0 = e.x * TILE_N + 2 * lane4;
#if SCORE
#pragma unroll
  for (int i = 0; i < TILE_N / 2; ++i) s[i] = score_mod(s[i] * p.scale, t.b, t.h, q_row + (i & 2) * 4, kv0 + (i / 4) * 8 + (i & 1));
#endif
  if (e.y != FULL) {
#if MASK == 2
    const unsigned* words = p.bitmaps + ((unsigned long long)e.y * TILE_M + row_in_tile) * 4 + lane4;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      unsigned w = words[r * 32];
#pragma unroll
      for (int j = 0; j < TILE_N / 8; ++j) {
        if (!(w & (1u << (2 * j)))) s[4 * j + 2 * r] = NEG_INF;
        if (!(w & (2u << (2 * j)))) s[4 * j + 2 * r + 1] = NEG_INF;
      }
    }
#else
#pragma unroll
    for (int i = 0; i < TILE_N / 2; ++i) {
      int kv = kv0 + (i / 4) * 8 + (i & 1);
      bool keep = kv < p.kv_len;
#if MASK == 1
      keep = keep && mask_mod(t.b, t.h, q_row + (i & 2) * 4, kv);
#endif
      if (!keep) s[i] = NEG_INF;
    }
#endif
  }
}

// One online-softmax step on the block's scores: leaves probabilities in s, updates maxima and sums, gives O's factors.
static __device__ __forceinline__ void softmax_step(float (&s)[TILE_N / 2], float (&m)[2], float (&l)[2], float (&alpha)[2], float c) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float top = s[2 * r];
#pragma unroll
    for (int j = 0; j < TILE_N / 8; ++j) top = fmaxf(fmaxf(top, s[4 * j + 2 * r]), s[4 * j + 2 * r + 1]);
    top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
    top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
#ifdef LAZY
    // A maximum that grew by less than 2^8 stays: probabilities up to 256 lose nothing in 16-bit floats, and O need not
    // be rescaled (the idea is FlashAttention-4's).
    float m_new = (top - m[r]) * c > 8.f ? top : m[r];
#else
    float m_new = fmaxf(m[r], top);
#endif
    float base = (MASK || SCORE) && m_new == NEG_INF ? 0.f : m_new * c;
    alpha[r] = exp2_approx(m[r] * c - base);
#ifdef LAZY
    if (m[r] == m_new) alpha[r] = 1.f;
#endif
    m[r] = m_new;
    float sum = 0.f;
#pragma unroll
    for (int j = 0; j < TILE_N / 8; ++j) {
      s[4 * j + 2 * r] = exp2_approx(s[4 * j + 2 * r] * c - base);
      s[4 * j + 2 * r + 1] = exp2_approx(s[4 * j + 2 * r + 1] * c - base);
      sum += s[4 * j + 2 * r] + s[4 * j + 2 * r + 1];
    }
    l[r] = l[r] * alpha[r] + sum;
  }
}

static __device__ __forceinline__ void to_operand(unsigned (&p_reg)[TILE_N / 4], const float (&s)[TILE_N / 2]) {
#pragma unroll
  for (int i = 0; i < TILE_N / 4; ++i) p_reg[i] = pack2(s[2 * i], s[2 * i + 1]);
}

static __device__ __forceinline__ void store_tile(float (&o)[DV / 2], float (&m)[2], float (&l)[2], const Params& p, const Tile& t, const Shared& s,
                                                  int q_stage, const TensorMap* to, int wg, int thread) {
  int warp = thread / 32, lane = thread % 32;
  int row = 64 * wg + 16 * warp + lane / 4;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    l[r] += __shfl_xor_sync(0xffffffffu, l[r], 1);
    l[r] += __shfl_xor_sync(0xffffffffu, l[r], 2);
    int q = t.q_tile * TILE_M + row + 8 * r;
    if (lane % 4 == 0 && q < p.q_len)
      p.lse[(t.b * p.heads + t.h) * (unsigned long long)p.q_len + q] = l[r] > 0.f ? (m[r] * p.c + log2_approx(l[r])) * 0.69314718056f : NEG_INF;
    float inverse = l[r] > 0.f ? 1.f / l[r] : 0.f;
#pragma unroll
    for (int j = 0; j < DV / 8; ++j) {
      o[4 * j + 2 * r] *= inverse;
      o[4 * j + 2 * r + 1] *= inverse;
    }
  }
  // O takes the place of this warpgroup's rows of Q, which it has read for the last time
  unsigned base = s.q + q_stage * Q_BYTES;
  int line = 64 * wg + 16 * warp + ((lane / 8) & 1) * 8 + lane % 8;
#pragma unroll
  for (int j = 0; j < DV / 8; j += 2) {
    int block = j + lane / 16;
    unsigned address = base + (block / 8) * TILE_M * 128 + line * 128 + (((block % 8) ^ (line % 8)) * 16);
    stmatrix_x4(address, pack2(o[4 * j], o[4 * j + 1]), pack2(o[4 * j + 2], o[4 * j + 3]), pack2(o[4 * j + 4], o[4 * j + 5]),
                pack2(o[4 * j + 6], o[4 * j + 7]));
  }
  fence_async_proxy();
  bar_sync(8 + wg, 128);
  if (thread == 0) {
    if (t.q_tile * TILE_M + 64 * wg < p.q_len) {
#pragma unroll
      for (int d = 0; d < DV / 64; ++d) tma_store(to, base + d * TILE_M * 128 + 64 * wg * 128, d * 64, t.q_tile * TILE_M + 64 * wg, t.h, t.b);
      tma_store_commit();
      tma_store_wait_read();
    }
    mbarrier_arrive(s.q_empty(q_stage));
  }
}

static __device__ __forceinline__ void consume(const Params& p, const Shared& s, const TensorMap* to, int wg, int thread) {
  Ring<Q_STAGES> qr;
  Ring<STAGES> kr, vr;
  int lane4 = thread % 4, row = 64 * wg + 16 * (thread / 32) + (thread % 32) / 4;
  int turn = 1 + wg, next_turn = 1 + (wg + 1) % CONSUMERS;
  if (PINGPONG && wg == CONSUMERS - 1) bar_arrive(1, 256);  // the first warpgroup goes first
  for (;;) {
    mbarrier_wait(s.q_full(qr.at), qr.phase);
    int number = s.slot[qr.at];
    if (number < 0) break;
    Tile t = tile_at(p, number);
    unsigned q = s.q + qr.at * Q_BYTES + 64 * wg * 128;
    float s_reg[TILE_N / 2], o_reg[DV / 2], m[2] = {NEG_INF, NEG_INF}, l[2] = {0.f, 0.f}, alpha[2];
    unsigned p_reg[TILE_N / 4];
#pragma unroll
    for (int i = 0; i < DV / 2; ++i) o_reg[i] = 0.f;
    if (t.begin < t.end) {
      uint2_ e = entry_at(p, t.begin);
      mbarrier_wait(s.k_full(kr.at), kr.phase);
      if (PINGPONG) bar_sync(turn, 256);
      pin(s_reg);
      wgmma_fence();
      issue_qk(s_reg, q, s.k + kr.at * K_BYTES);
      wgmma_commit();
      if (PINGPONG) bar_arrive(next_turn, 256);
      wgmma_wait<0>();
      pin(s_reg);
      if (thread == 0) mbarrier_arrive(s.k_empty(kr.at));
      kr.next();
      apply_mods(s_reg, p, t, e, row, lane4);
      softmax_step(s_reg, m, l, alpha, p.c);
      to_operand(p_reg, s_reg);
      for (unsigned i = t.begin + 1; i < t.end; ++i) {
        e = entry_at(p, i);
        mbarrier_wait(s.k_full(kr.at), kr.phase);
        if (PINGPONG) bar_sync(turn, 256);
        pin(s_reg);
        pin(o_reg);
        wgmma_fence();
        issue_qk(s_reg, q, s.k + kr.at * K_BYTES);
        wgmma_commit();
        mbarrier_wait(s.v_full(vr.at), vr.phase);
        issue_pv(o_reg, p_reg, s.v + vr.at * V_BYTES, 1);
        wgmma_commit();
        if (PINGPONG) bar_arrive(next_turn, 256);
        wgmma_wait<1>();
        pin(s_reg);
        if (thread == 0) mbarrier_arrive(s.k_empty(kr.at));
        kr.next();
        apply_mods(s_reg, p, t, e, row, lane4);
        softmax_step(s_reg, m, l, alpha, p.c);
        wgmma_wait<0>();
        pin(o_reg);
        if (thread == 0) mbarrier_arrive(s.v_empty(vr.at));
        vr.next();
#ifdef LAZY
        if (__any_sync(0xffffffffu, alpha[0] != 1.f || alpha[1] != 1.f))
#endif
#pragma unroll
          for (int j = 0; j < DV / 2; ++j) o_reg[j] *= alpha[(j >> 1) & 1];
        to_operand(p_reg, s_reg);
      }
      mbarrier_wait(s.v_full(vr.at), vr.phase);
      pin(o_reg);
      wgmma_fence();
      issue_pv(o_reg, p_reg, s.v + vr.at * V_BYTES, 1);
      wgmma_commit();
      wgmma_wait<0>();
      pin(o_reg);
      if (thread == 0) mbarrier_arrive(s.v_empty(vr.at));
      vr.next();
    }
    store_tile(o_reg, m, l, p, t, s, qr.at, to, wg, thread);
    qr.next();
  }
}

extern "C" __global__ void __launch_bounds__(128 * (CONSUMERS + 1), 1)
    flex_sm90(const __grid_constant__ TensorMap tq, const __grid_constant__ TensorMap tk, const __grid_constant__ TensorMap tv,
              const __grid_constant__ TensorMap to, const __grid_constant__ Params p) {
  extern __shared__ unsigned char raw[];
  unsigned base = (smem_address(raw) + 1023) & ~1023u;
  Shared s;
  s.q = base;
  s.k = s.q + Q_STAGES * Q_BYTES;
  s.v = s.k + STAGES * K_BYTES;
  s.bars = s.v + STAGES * V_BYTES;
  s.slot = (volatile int*)(raw + (s.bars - smem_address(raw)) + 8 * (2 * Q_STAGES + 4 * STAGES));
  if (threadIdx.x == 0) {
    for (int i = 0; i < Q_STAGES; ++i) {
      mbarrier_init(s.q_full(i), 1);
      mbarrier_init(s.q_empty(i), CONSUMERS);
    }
    for (int i = 0; i < STAGES; ++i) {
      mbarrier_init(s.k_full(i), 1);
      mbarrier_init(s.v_full(i), 1);
      mbarrier_init(s.k_empty(i), CONSUMERS);
      mbarrier_init(s.v_empty(i), CONSUMERS);
    }
    fence_barrier_init();
  }
  __syncthreads();
  int warpgroup = threadIdx.x / 128;
  if (warpgroup == 0) {
    registers_lower<CONSUMERS == 3 ? 32 : 40>();
    if (threadIdx.x == 0) produce(p, s, &tq, &tk, &tv);
  } else {
    registers_raise<CONSUMERS == 3 ? 160 : 232>();
    consume(p, s, &to, warpgroup - 1, threadIdx.x % 128);
  }
}
