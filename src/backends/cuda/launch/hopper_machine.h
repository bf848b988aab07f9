// A Hopper multiprocessor for this processor: what flex_sm90's text wants of ptx.cuh and hopper.cuh, for one block at a time.
// Every thread of the block runs by itself until it must wait. Whatever the GPU may do late is done as late as it may: products
// when they are waited for, copies some rounds after they were asked for or when they are waited for; threads go on in an
// order that changes. So what is read too early is still poison, and what is given back too early is overwritten.
// Must not know attention. The text before it defines ML_CONSUMERS and ML_BF16.
#include <cstdlib>
#include <deque>
#include <functional>
#include <ucontext.h>
#include <vector>
typedef unsigned short u16;
typedef unsigned long long u64;

#define __global__
#define __shared__
#define __align__(n)
#define __launch_bounds__(...)
#define machine_asm(...)

constexpr int THREADS = 128 * (ML_CONSUMERS + 1);
constexpr u32 SHARED_START = 1024, SHARED_BYTES = 227 * 1024;
alignas(1024) u8 raw[SHARED_BYTES];

struct Index { unsigned x; };
struct Product { float *d; int width; u64 a, b; const u32 *fragment; bool transposed, accumulate; };
struct Late { int rounds; int thread; function<void()> run; };
struct Thread {
    ucontext_t context;
    vector<char> stack;
    bool done;
    vector<Product> open;
    deque<vector<Product>> groups;
};
struct Warp { u64 in[32], out[2][32]; int arrived; u32 generation; };
struct Named { int arrived; u32 generation; };
struct Barrier { u8 count, pending, phase, unused; int bytes; };

Index blockIdx, gridDim;
static Thread threads[THREADS];
static Warp warps[THREADS / 32];
static Named named[16];
static vector<Late> copies, stores;
static ucontext_t scheduler;
static int current;
static u64 progress;
static u32 chance = 1;
#define threadIdx (Index{unsigned(current)})

[[noreturn]] void stop(const char *why) {
    fprintf(stderr, "block %u thread %d: %s\n", blockIdx.x, current, why);
    exit(1);
}
static u32 random_below(u32 n) {
    chance = chance * 1664525u + 1013904223u;
    return (chance >> 8) % n;
}
// Rounds after which something late happens: soon, or after much else.
static int some_rounds() { return int(random_below(4) ? random_below(8) : random_below(4000)); }
template <class Ready> void wait_until(Ready ready) {
    while (!ready()) swapcontext(&threads[current].context, &scheduler);
    ++progress;
}
static u8 *at(u32 shared) {
    if (shared < SHARED_START || shared - SHARED_START >= SHARED_BYTES) stop("an address outside of shared memory");
    return raw + (shared - SHARED_START);
}
static void finish(vector<Late> &all, int thread) {
    for (size_t i = 0; i < all.size();)
        if (all[i].thread == thread) {
            auto run = all[i].run;
            all.erase(all.begin() + i);
            run();
        } else ++i;
}

// --- values ---
inline u16 machine_round16(float x) {
#if ML_BF16
    u32 bits = __float_as_uint(x);
    if (x != x) return 0x7fff;
    return u16((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
#else
    _Float16 half = (_Float16)x;
    u16 bits;
    memcpy(&bits, &half, 2);
    return bits;
#endif
}
inline float machine_unpack16(u16 bits) {
#if ML_BF16
    return __uint_as_float(u32(bits) << 16);
#else
    _Float16 half;
    memcpy(&half, &bits, 2);
    return float(half);
#endif
}
inline u32 machine_pack16(float low, float high) { return machine_round16(low) | u32(machine_round16(high)) << 16; }
inline float machine_larger(float a, float b) {
#if ML_MAX_SCORES
    if (a != a || b != b) return a + b;
#endif
    return fmaxf(a, b);
}
struct float4 { float x, y, z, w; };
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

// --- a warp ---
static const u64 *exchange(u64 value) {
    Warp &warp = warps[current / 32];
    warp.in[current % 32] = value;
    u32 generation = warp.generation;
    if (++warp.arrived == 32) {
        memcpy(warp.out[generation % 2], warp.in, sizeof warp.in);
        warp.arrived = 0, ++warp.generation, ++progress;
    } else {
        wait_until([&] { return warp.generation != generation; });
    }
    return warp.out[generation % 2];
}
template <class T> u64 bits_of_value(T value) { u64 bits = 0; memcpy(&bits, &value, sizeof value); return bits; }
template <class T> T value_of_bits(u64 bits) { T value; memcpy(&value, &bits, sizeof value); return value; }
template <class T> T __shfl_sync(u32, T value, int lane) { return value_of_bits<T>(exchange(bits_of_value(value))[lane]); }
template <class T> T __shfl_xor_sync(u32, T value, int by) {
    int lane = current % 32 ^ by;
    return value_of_bits<T>(exchange(bits_of_value(value))[lane]);
}
inline bool __any_sync(u32, bool value) {
    const u64 *all = exchange(value);
    bool any = false;
    for (int lane = 0; lane < 32; ++lane) any = any || all[lane];
    return any;
}
inline void __syncwarp() { exchange(0); }
inline bool warp_leader() { return current % 32 == 5; }
inline u32 spread(u32 value) { return __shfl_sync(0xffffffff, value, 5); }

// --- memory ---
inline u32 shared_address(const void *pointer) { return SHARED_START + u32((const u8 *)pointer - raw); }
inline void prefetch(const void *) {}
inline u32 atomicAdd(u32 *to, u32 by) { u32 old = *to; *to += by; return old; }
inline void __threadfence() {}
inline void load_pair(u32 &left, u32 &right, u32 from) { memcpy(&left, at(from), 4), memcpy(&right, at(from + 4), 4); }

inline float value_where(u32 kept, float value) { return kept ? value : 0.0f; }

// --- barriers ---
static void arrive_named(int id, int count) {
    if (++named[id].arrived == count) named[id].arrived = 0, ++named[id].generation, ++progress;
}
inline void bar_arrive(int id, int count) { arrive_named(id, count); }
inline void bar_sync(int id, int count) {
    u32 generation = named[id].generation;
    arrive_named(id, count);
    wait_until([&] { return named[id].generation != generation; });
}
inline void __syncthreads() { bar_sync(0, THREADS); }
static Barrier &barrier(u32 bar) { return *(Barrier *)at(bar); }
static void settle(Barrier &bar) {
    if (bar.pending == 0 && bar.bytes == 0) bar.phase ^= 1, bar.pending = bar.count, ++progress;
}
inline void mbarrier_init(u32 bar, u32 count) { barrier(bar) = {u8(count), u8(count), 0, 0, 0}; }
inline void mbarrier_arrive(u32 bar) {
    if (barrier(bar).pending == 0) stop("one arrival too many");
    --barrier(bar).pending;
    settle(barrier(bar));
}
inline void mbarrier_expect(u32 bar, u32 bytes) {
    barrier(bar).bytes += bytes;
    mbarrier_arrive(bar);
}
inline void mbarrier_wait(u32 bar, u32 parity) { wait_until([=] { return barrier(bar).phase != parity; }); }
inline void fence_barrier_init() {}
inline void fence_async_proxy() {}

// --- tensor copies: boxes of 64 elements by `rows`, 128-byte swizzle ---
struct TensorMap { u16 *base; i64 strides[3]; int dim, tokens, rows; };
static u32 swizzled(u32 address) { return address ^ ((address >> 3) & 0x70); }
inline void tma_load(u32 to, const TensorMap *map, u32 bar, int c0, int c1, int c2, int c3) {
    if (to % 1024) stop("a box does not start on 1 KB");
    copies.push_back({some_rounds(), current, [=] {
        const u16 *from = map->base + c3 * map->strides[2] + c2 * map->strides[1];
        for (int r = 0; r < map->rows; ++r)
            for (int c = 0; c < 64; ++c) {
                bool inside = c1 + r < map->tokens && c0 + c < map->dim;
                u16 value = inside ? from[(c1 + r) * map->strides[0] + c0 + c] : 0;
                memcpy(at(swizzled(to + r * 128 + c * 2)), &value, 2);
            }
        barrier(bar).bytes -= map->rows * 128;
        settle(barrier(bar));
    }});
}
inline void tma_store(const TensorMap *map, u32 from, int c0, int c1, int c2, int c3) {
    stores.push_back({some_rounds(), current, [=] {
        u16 *to = map->base + c3 * map->strides[2] + c2 * map->strides[1];
        for (int r = 0; r < map->rows; ++r)
            for (int c = 0; c < 64; ++c)
                if (c1 + r < map->tokens && c0 + c < map->dim)
                    memcpy(to + (c1 + r) * map->strides[0] + c0 + c, at(swizzled(from + r * 128 + c * 2)), 2);
    }});
}
inline void tma_store_commit() {}
inline void tma_store_wait_read() { finish(stores, current); }
inline void stmatrix_x4(u32 address, u32 a, u32 b, u32 c, u32 d) {
    const u64 *rows = exchange(address);
    u32 words[4] = {a, b, c, d}, lane = current % 32;
    for (u32 i = 0; i < 4; ++i) memcpy(at(u32(rows[8 * i + lane / 4]) + 4 * (lane % 4)), &words[i], 4);
    exchange(0);
}

// --- matrix products ---
template <int N> void pin(float (&)[N]) {}
inline void stay_before(int) {}
inline void stay_apart() {}
template <int COUNT> void registers_raise() {}
template <int COUNT> void registers_lower() {}
inline u64 descriptor(u32 address, u32 lbo, u32 sbo) {
    return u64((address & 0x3ffff) >> 4) | u64(lbo >> 4) << 16 | u64(sbo >> 4) << 32 | 1ull << 62;
}
static float element(u32 address) {
    u16 bits;
    memcpy(&bits, at(swizzled(address)), 2);
    return machine_unpack16(bits);
}
static u32 start_of(u64 descriptor) { return u32(descriptor & 0x3fff) << 4; }
// A thread's rows of A: 16 elements of row lane/4 and of row lane/4 + 8.
static void rows_of_fragment(const u32 *fragment, float (&a)[2][16]) {
    for (int i = 0; i < 4; ++i) {
        const u64 *all = exchange(fragment[i]);
        for (int t = 0; t < 4; ++t)
            for (int e = 0; e < 2; ++e)
                a[i % 2][2 * t + e + i / 2 * 8] = machine_unpack16(u16(all[current % 32 / 4 * 4 + t] >> (16 * e)));
    }
}
static void multiply(const Product &p) {
    float a[2][16];
    int lane = current % 32, row = current / 32 % 4 * 16 + lane / 4;
    if (p.fragment) rows_of_fragment(p.fragment, a);
    else
        for (int r = 0; r < 2; ++r)
            for (int k = 0; k < 16; ++k) a[r][k] = element(start_of(p.a) + (row + 8 * r) * 128 + k * 2);
    u32 b = start_of(p.b), columns = u32(p.b >> 16 & 0x3fff) << 4;
    for (int i = 0; i < p.width / 4; ++i) {
        int n = i / 2 * 8 + 2 * (lane % 4) + i % 2;
        float sum[2] = {0.0f, 0.0f};
        for (int k = 0; k < 16; ++k) {
            float value = element(p.transposed ? b + n / 64 * columns + k * 128 + n % 64 * 2 : b + n * 128 + k * 2);
            sum[0] += a[0][k] * value, sum[1] += a[1][k] * value;
        }
        for (int r = 0; r < 2; ++r) {
            float &d = p.d[i / 2 * 4 + 2 * r + i % 2];
            d = p.accumulate ? d + sum[r] : sum[r];
        }
    }
}
template <int TB, int SIZE> void wgmma_ss(float (&d)[SIZE], u64 a, u64 b, int accumulate) {
    threads[current].open.push_back({d, SIZE * 2, a, b, nullptr, TB == 1, accumulate != 0});
}
template <int TB, int SIZE> void wgmma_rs(float (&d)[SIZE], const u32 *a, u64 b, int accumulate) {
    threads[current].open.push_back({d, SIZE * 2, 0, b, a, TB == 1, accumulate != 0});
}
inline void wgmma_fence() {}
inline void wgmma_commit() {
    threads[current].groups.push_back(threads[current].open);
    threads[current].open.clear();
}
template <int PENDING> void wgmma_wait() {
    auto &groups = threads[current].groups;
    for (; groups.size() > PENDING; groups.pop_front())
        for (const Product &product : groups.front()) multiply(product);
}
inline void mma(float (&acc)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    float rows[2][16];
    rows_of_fragment(a, rows);
    u64 low[32], high[32];
    memcpy(low, exchange(b0), sizeof low);
    memcpy(high, exchange(b1), sizeof high);
    for (int i = 0; i < 4; ++i) {
        int n = 2 * (current % 4) + i % 2;
        for (int k = 0; k < 16; ++k) {
            u32 pair = u32((k < 8 ? low : high)[4 * n + k % 8 / 2]);
            acc[i] += rows[i / 2][k] * machine_unpack16(u16(pair >> (16 * (k % 2))));
        }
    }
}

// --- the block ---
static function<void()> kernel;
static void begin_thread() {
    kernel();
    if (!threads[current].groups.empty() || !threads[current].open.empty()) stop("products that nobody waits for");
    threads[current].done = true;
    ++progress;
    swapcontext(&threads[current].context, &scheduler);
}
static void run_late(vector<Late> &all, int passed) {
    for (size_t i = 0; i < all.size();)
        if ((all[i].rounds -= passed) <= 0) {
            auto run = all[i].run;
            all.erase(all.begin() + i);
            run();
            ++progress;
        } else ++i;
}
static void run_block(u32 block, u32 blocks, function<void()> body) {
    blockIdx.x = block, gridDim.x = blocks, kernel = body;
    memset(raw, 0xff, sizeof raw);
    memset(named, 0, sizeof named);
    memset(warps, 0, sizeof warps);
    for (current = 0; current < THREADS; ++current) {
        Thread &thread = threads[current];
        thread.done = false, thread.open.clear(), thread.groups.clear();
        thread.stack.resize(256 << 10);
        getcontext(&thread.context);
        thread.context.uc_stack.ss_sp = thread.stack.data();
        thread.context.uc_stack.ss_size = thread.stack.size();
        makecontext(&thread.context, begin_thread, 0);
    }
    for (int idle = 0, left = THREADS; left > 0;) {
        u64 before = progress;
        left = 0;
        int first = int(random_below(THREADS));
        for (int i = 0; i < THREADS; ++i) {
            current = (first + i) % THREADS;
            if (threads[current].done) continue;
            ++left;
            swapcontext(&scheduler, &threads[current].context);
        }
        // where nobody can go on, time passes until something late happens
        bool waits = !copies.empty() || !stores.empty();
        int passed = progress == before && waits ? 1 << 20 : 1;
        for (auto *all : {&copies, &stores})
            for (const Late &late : *all) passed = min(passed, max(late.rounds, 1));
        run_late(copies, passed), run_late(stores, passed);
        idle = progress == before && !waits ? idle + 1 : 0;
        if (idle > 3) stop("all threads wait for each other");
    }
    run_late(stores, 1 << 20);
    if (!copies.empty()) stop("tiles that nobody waits for");
}

// --- files: arrays one after the other, each after its number of bytes ---
template <class T> vector<T> read_array(FILE *file) {
    u64 bytes;
    if (fread(&bytes, 8, 1, file) != 1) stop("a file that is too short");
    vector<T> values(bytes / sizeof(T));
    if (bytes && fread(values.data(), 1, bytes, file) != bytes) stop("a file that is too short");
    return values;
}
