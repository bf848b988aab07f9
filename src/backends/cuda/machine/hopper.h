// A multiprocessor for this processor: what the kernels' texts want of ptx.cuh and hopper.cuh, for several blocks at a time.
// Every thread of a block runs by itself until it must wait. Whatever the GPU may do late is done as late as it may or at once, as `how`
// says: products read what they multiply when they are asked for or when they are waited for, copies land at once or some
// rounds later; threads go on in an order that changes, and some warps doze. What is asked for is poison until it is there. So
// what is read too early is poison, and what is given back too early is overwritten.
// What threads store themselves, copies and products see only behind a fence. Must not know attention. The text before it defines ML_BF16.
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <ucontext.h>
#include <vector>
typedef unsigned short u16;
typedef unsigned long long u64;

#define __global__
#define __host__
#define __shared__ static
#define __align__(n)
#define __launch_bounds__(...)
#define machine_asm(...)

constexpr u32 MACHINE_START = 1024, MOST_SHARED = 227 * 1024;
constexpr int MOST_WARPS = 16, STACK = 128 << 10;

struct Index { unsigned x, y, z; };
struct Product {
    float *d;
    int size;
    u64 a, b;
    const u32 *fragment;
    bool a_turned, b_turned, accumulate;
    vector<float> sum;
};
struct Late { int rounds, thread; bool committed; function<void()> run; };
struct Adds { vector<pair<float *, float>> all; };
struct Thread {
    ucontext_t context;
    unique_ptr<char[]> stack;
    bool done, fenced;
    bool (*ready)(const void *);
    const void *waits;
    u32 commits;
    vector<Product> open;
    deque<vector<Product>> groups;
    vector<u32> stored;     // places whose contents copies and products do not see yet
    shared_ptr<Adds> adds;  // sums on their way to global memory
};
struct Posted { float *acc; const u32 *a; u32 b[2]; };
struct Warp { u64 in[32], out[2][32]; Posted posted[32]; int arrived, dozes; u32 generation; };
struct Named { int arrived, count; u32 generation; bool came[32 * MOST_WARPS]; };
struct Barrier { u8 count, pending, phase, unfenced; int bytes; };
struct Block {
    Index index;
    int threads_left;
    u8 *raw;
    Thread threads[32 * MOST_WARPS];
    Warp warps[MOST_WARPS];
    Named named[16];
    vector<Late> copies, stores, writes, sums;
    vector<u16> unseen;  // of two bytes: who stored them without a fence, or 0
    vector<u32> barriers;
};

static Index gridDim;
static int block_threads;
static u32 shared_bytes;
static Block *here;
static ucontext_t scheduler;
static int current;
static u64 progress;
static u32 chance = 1;
static struct {
    int early;     // products read when they are asked for: 0 never, 1 always, 2 some
    int landing;   // copies land 0 some time, 1 at once, 2 when nobody can go on
    u32 doze;      // a warp dozes at one wait in so many; 0: never
    int slow;      // the warp that dozes at every other wait, in one of the blocks, or -1
    u32 block;
} how = {0, 0, 0, -1, 0};
static bool quietly;
#define threadIdx (Index{unsigned(current), 0, 0})
#define blockIdx (here->index)

[[noreturn]] static void stop(const char *why) {
    if (!quietly) fprintf(stderr, "block %u thread %d: %s\n", here ? here->index.x : 0, current, why);
    _Exit(1);
}
[[noreturn]] static void __trap() { stop("a trap"); }
static u32 random_below(u32 n) {
    chance = chance * 1664525u + 1013904223u;
    return (chance >> 8) % n;
}
// Rounds after which something late happens: soon, or after much else.
static int some_rounds() {
    if (how.landing == 1) return 0;
    if (how.landing == 2) return (1 << 19) + int(random_below(1 << 18));
    return int(random_below(4) ? random_below(8) : random_below(4000));
}
static Thread &self() { return here->threads[current]; }
static Warp &own_warp() { return here->warps[current / 32]; }
static bool always(const void *) { return true; }
static void pause_thread() { swapcontext(&self().context, &scheduler), self().ready = nullptr; }
// Whoever comes to a wait may find that much time has passed.
static void doze() {
    bool slow = current / 32 == how.slow && blockIdx.x == how.block % gridDim.x;
    u32 one_in = slow ? 2 : how.doze;
    if (one_in == 0 || random_below(one_in)) return;
    own_warp().dozes = int(slow ? random_below(1000) : random_below(4) ? random_below(20) : random_below(1000));
    self().ready = always;
    pause_thread();
}
template <class Ready> void wait_until(const Ready &ready) {
    doze();
    if (!ready()) {
        self().waits = &ready;
        self().ready = [](const void *it) -> bool { return (*(const Ready *)it)(); };
        pause_thread();
    }
    ++progress;
}
static u8 *cells(u32 shared) {
    if (shared < MACHINE_START || shared - MACHINE_START >= shared_bytes) stop("an address outside of shared memory");
    return here->raw + (shared - MACHINE_START);
}
static void finish(vector<Late> &all, int thread) {
    vector<Late> left, due;
    for (auto &late : all) (late.thread == thread && late.committed ? due : left).push_back(move(late));
    all = move(left);
    for (auto &late : due) late.run();
}
static void ask(vector<Late> &all, bool committed, function<void()> run) {
    if (how.landing == 1) run();
    else all.push_back({some_rounds(), current, committed, run});
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
inline float value_where(u32 kept, float value) { return kept ? value : 0.0f; }

// --- a warp ---
// The last of a warp to come does something for all.
template <class Last> void meet(const Last &last) {
    Warp &warp = own_warp();
    u32 generation = warp.generation;
    if (++warp.arrived < 32) return wait_until([&warp, generation] { return warp.generation != generation; });
    warp.arrived = 0;
    last();
    ++warp.generation, ++progress;
}
static const u64 *exchange(u64 value) {
    Warp &warp = own_warp();
    u32 generation = warp.generation;
    warp.in[current % 32] = value;
    meet([&warp, generation] { memcpy(warp.out[generation % 2], warp.in, sizeof warp.in); });
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
inline u32 shared_address(const void *pointer) { return MACHINE_START + u32((const u8 *)pointer - here->raw); }
inline void prefetch(const void *) {}
template <class T, class By> T atomicAdd(T *to, By by) { T old = *to; *to += by; return old; }
inline void __threadfence() { finish(here->sums, current); }
inline void load_pair(u32 &left, u32 &right, u32 from) { memcpy(&left, cells(from), 4), memcpy(&right, cells(from + 4), 4); }
// A thread's own store; and what copies and products read.
static void store(u32 to, const void *from, u32 bytes) {
    memcpy(cells(to), from, bytes);
    for (u32 at = (to - MACHINE_START) / 2; at < (to - MACHINE_START + bytes) / 2; ++at)
        here->unseen[at] = u16(current + 1), self().stored.push_back(at);
}
static const u8 *seen(u32 from, u32 bytes) {
    const u16 *unseen = &here->unseen[(from - MACHINE_START) / 2];
    u16 any = 0;
    for (u32 i = 0; i < bytes / 2; ++i) any |= unseen[i];
    if (any) stop("copies or products read what was stored without a fence");
    return cells(from);
}
inline void fence_async_proxy() {
    for (u32 at : self().stored)
        if (here->unseen[at] == current + 1) here->unseen[at] = 0;
    self().stored.clear();
}

// --- barriers ---
static void arrive_named(int id, int count) {
    Named &it = here->named[id];
    if (it.arrived && it.count != count) stop("a named barrier of two counts");
    if (it.arrived == 0) memset(it.came, 0, sizeof it.came);
    if (it.came[current]) stop("a thread comes twice to a named barrier");
    it.came[current] = true, it.count = count;
    if (++it.arrived == count) it.arrived = 0, ++it.generation, ++progress;
}
inline void bar_arrive(int id, int count) { doze(), arrive_named(id, count); }
inline void bar_sync(int id, int count) {
    Named &it = here->named[id];
    doze();
    u32 generation = it.generation;
    arrive_named(id, count);
    wait_until([&it, generation] { return it.generation != generation; });
}
inline void __syncthreads() { bar_sync(0, block_threads); }
static Barrier &barrier(u32 bar) { return *(Barrier *)cells(bar); }
static void settle(Barrier &bar) {
    if (bar.pending == 0 && bar.bytes == 0) bar.phase ^= 1, bar.pending = bar.count, ++progress;
}
inline void mbarrier_init(u32 bar, u32 count) {
    barrier(bar) = {u8(count), u8(count), 0, 1, 0};
    here->barriers.push_back(bar);
}
inline void fence_barrier_init() { for (u32 bar : here->barriers) barrier(bar).unfenced = 0; }
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

// --- tensor copies: boxes of 64 elements by `rows`, 128-byte swizzle; or plain ones of whole lines ---
struct TensorMap { u16 *base; i64 strides[3]; int dim, tokens, rows, columns = 64; bool plain = false; };
static u32 swizzled(u32 address) { return address ^ ((address >> 3) & 0x70); }
static u32 place_in_box(const TensorMap *map, u32 box, int r, int c) {
    u32 at = box + u32(r * map->columns + c) * 2;
    return map->plain ? at : swizzled(at);
}
static void check_box(const TensorMap *map, u32 box) {
    if (box % (map->plain ? 128 : 1024)) stop("a box that starts elsewhere than boxes may");
}
inline void tma_load(u32 to, const TensorMap *map, u32 bar, int c0, int c1, int c2, int c3) {
    check_box(map, to);
    if (barrier(bar).unfenced) stop("a barrier that copies may not see");
    memset(cells(to), 0xff, map->rows * map->columns * 2);
    cells(to + map->rows * map->columns * 2 - 1);
    memset(&here->unseen[(to - MACHINE_START) / 2], 0, map->rows * map->columns * 2);
    ask(here->copies, false, [=] {
        const u16 *from = map->base + c3 * map->strides[2] + c2 * map->strides[1];
        for (int r = 0; r < map->rows; ++r)
            for (int c = 0; c < map->columns; ++c) {
                bool inside = c1 + r < map->tokens && c0 + c < map->dim;
                u16 value = inside ? from[(c1 + r) * map->strides[0] + c0 + c] : 0;
                memcpy(cells(place_in_box(map, to, r, c)), &value, 2);
            }
        barrier(bar).bytes -= map->rows * map->columns * 2;
        settle(barrier(bar));
    });
}
// Reads a box, and some time later does `write` with each of its elements and the place that it belongs to.
template <class Write> void box_to_memory(const TensorMap *map, u32 from, int c0, int c1, int c2, int c3, Write write) {
    check_box(map, from);
    int thread = current;
    ask(here->stores, false, [=] {
        vector<u16> box(map->rows * map->columns);
        for (int r = 0; r < map->rows; ++r)
            for (int c = 0; c < map->columns; ++c)
                memcpy(&box[r * map->columns + c], seen(place_in_box(map, from, r, c), 2), 2);
        auto arrive = [=] {
            u16 *to = map->base + c3 * map->strides[2] + c2 * map->strides[1];
            for (int r = 0; r < map->rows && c1 + r < map->tokens; ++r)
                write(to + (c1 + r) * map->strides[0] + c0, &box[r * map->columns], min(map->columns, map->dim - c0));
        };
        here->writes.push_back({some_rounds(), thread, true, arrive});
    });
}
inline void tma_store(const TensorMap *map, u32 from, int c0, int c1, int c2, int c3) {
    box_to_memory(map, from, c0, c1, c2, c3, [](u16 *to, const u16 *line, int count) { if (count > 0) memcpy(to, line, 2 * count); });
}
inline void tma_store_commit() {
    for (auto &late : here->stores)
        if (late.thread == current) late.committed = true;
}
inline void tma_store_wait_read() { finish(here->stores, current); }
inline void stmatrix_x4(u32 address, u32 a, u32 b, u32 c, u32 d) {
    const u64 *rows = exchange(address);
    u32 words[4] = {a, b, c, d}, lane = current % 32;
    for (u32 i = 0; i < 4; ++i) store(u32(rows[8 * i + lane / 4]) + 4 * (lane % 4), &words[i], 4);
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
// Eight elements that lie together.
static void elements(u32 address, float (&to)[8]) {
    u16 bits[8];
    memcpy(bits, seen(swizzled(address), 16), 16);
    for (int i = 0; i < 8; ++i) to[i] = machine_unpack16(bits[i]);
}
static u32 start_of(u64 descriptor) {
    if (descriptor >> 32 != 0x40000040u) stop("rows that are not 128 bytes, swizzled");
    return u32(descriptor & 0x3fff) << 4;
}
static void rows_of_fragment(const u32 *words, int lane, float (&a)[16][16]) {
    for (int i = 0; i < 4; ++i)
        for (int e = 0; e < 2; ++e) a[lane / 4 + i % 2 * 8][lane % 4 * 2 + e + i / 2 * 8] = machine_unpack16(u16(words[i] >> (16 * e)));
}
static int row_of(int lane, int i) { return lane / 4 + i % 4 / 2 * 8; }
static int column_of(int lane, int i) { return i / 4 * 8 + 2 * (lane % 4) + i % 2; }
// A product of the warp whose threads are these, as sums beside their accumulators.
static void multiply(const vector<Product *> &lanes, int warp) {
    static float a[16][16], b[16][256], c[16][256];
    const Product &p = *lanes[0];
    int width = p.size * 2;
    for (int lane = 0; lane < 32; ++lane) {
        if (lanes[lane]->a != p.a || lanes[lane]->b != p.b) stop("a warp that multiplies different things");
        if (p.fragment) rows_of_fragment(lanes[lane]->fragment, lane, a);
    }
    u32 left = p.fragment ? 0 : start_of(p.a), right = start_of(p.b), columns = u32(p.b >> 16 & 0x3fff) << 4;
    float eight[8];
    int row = warp % 4 * 16;
    for (int at = 0; at < 32 && !p.fragment; ++at) {
        int k = p.a_turned ? at / 2 : at % 2 * 8, r = p.a_turned ? at % 2 * 8 : at / 2;
        elements(p.a_turned ? left + k * 128 + (row + r) * 2 : left + (row + r) * 128 + k * 2, eight);
        for (int i = 0; i < 8; ++i) (p.a_turned ? a[r + i][k] : a[r][k + i]) = eight[i];
    }
    for (int at = 0; at < 2 * width; ++at) {
        int k = p.b_turned ? at % 16 : at % 2 * 8, n = p.b_turned ? at / 16 * 8 : at / 2;
        elements(p.b_turned ? right + n / 64 * columns + k * 128 + n % 64 * 2 : right + n * 128 + k * 2, eight);
        for (int i = 0; i < 8; ++i) (p.b_turned ? b[k][n + i] : b[k + i][n]) = eight[i];
    }
    for (int r = 0; r < 16; ++r) {
        float *sum = c[r];
        for (int n = 0; n < width; ++n) sum[n] = 0.0f;
        for (int k = 0; k < 16; ++k) {
            float by = a[r][k];
            for (int n = 0; n < width; ++n) sum[n] += by * b[k][n];
        }
    }
    for (int lane = 0; lane < 32; ++lane) {
        lanes[lane]->sum.resize(p.size);
        for (int i = 0; i < p.size; ++i) lanes[lane]->sum[i] = c[row_of(lane, i)][column_of(lane, i)];
    }
}
static void multiply_group(size_t at) {
    int warp = current / 32;
    Thread *own = &here->threads[32 * warp];
    for (size_t i = 0; i < own->groups[at].size(); ++i) {
        vector<Product *> lanes(32);
        for (int lane = 0; lane < 32; ++lane) lanes[lane] = &own[lane].groups[at][i];
        if (lanes[0]->sum.empty()) multiply(lanes, warp);
    }
}
static void issue(Product product) {
    if (!self().fenced) stop("a product before its fence");
    if (!product.accumulate)
        for (int i = 0; i < product.size; ++i) product.d[i] = NAN;
    self().open.push_back(move(product));
}
template <int TB, int SIZE> void wgmma_ss(float (&d)[SIZE], u64 a, u64 b, int accumulate) {
    issue({d, SIZE, a, b, nullptr, false, TB == 1, accumulate != 0});
}
template <int TB, int SIZE> void wgmma_rs(float (&d)[SIZE], const u32 *a, u64 b, int accumulate) {
    issue({d, SIZE, 0, b, a, false, TB == 1, accumulate != 0});
}
inline void wgmma_fence() { self().fenced = true; }
inline void wgmma_commit() {
    Thread &own = self();
    own.groups.push_back(move(own.open));
    own.open.clear();
    bool now = how.early == 1 || (how.early == 2 && (++own.commits * 2654435761u >> 31));
    if (now) meet([&own] { multiply_group(own.groups.size() - 1); });
}
static void finish_group() {
    multiply_group(0);
    for (int lane = 0; lane < 32; ++lane) {
        Thread &own = here->threads[current / 32 * 32 + lane];
        for (const Product &p : own.groups.front())
            for (int i = 0; i < p.size; ++i) p.d[i] = p.accumulate ? p.d[i] + p.sum[i] : p.sum[i];
        own.groups.pop_front();
    }
}
// Behind it a thread may touch its registers, so that the next product wants a fence.
template <int PENDING> void wgmma_wait() {
    Thread &own = self();
    own.fenced = false;
    if (own.groups.size() > PENDING) meet([&own] { while (own.groups.size() > PENDING) finish_group(); });
}
inline void mma(float (&acc)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    Warp &warp = own_warp();
    warp.posted[current % 32] = {acc, a, {b0, b1}};
    meet([&warp] {
        static float a[16][16], b[16][8];
        for (int lane = 0; lane < 32; ++lane) {
            rows_of_fragment(warp.posted[lane].a, lane, a);
            for (int i = 0; i < 4; ++i)
                b[lane % 4 * 2 + i % 2 + i / 2 * 8][lane / 4] = machine_unpack16(u16(warp.posted[lane].b[i / 2] >> (16 * (i % 2))));
        }
        for (int lane = 0; lane < 32; ++lane)
            for (int i = 0; i < 4; ++i)
                for (int k = 0; k < 16; ++k) warp.posted[lane].acc[i] += a[row_of(lane, i)][k] * b[k][column_of(lane, i)];
    });
}

// --- blocks ---
static function<void()> kernel;
static void begin_thread() {
    kernel();
    if (!self().groups.empty() || !self().open.empty()) stop("products that nobody waits for");
    self().done = true;
    --here->threads_left, ++progress;
    swapcontext(&self().context, &scheduler);
}
static void begin_block(Block &block, Index index) {
    block.index = index, block.threads_left = block_threads;
    block.unseen.assign(MOST_SHARED / 2, 0), block.barriers.clear();
    memset(block.raw, 0xff, MOST_SHARED);
    memset(block.named, 0, sizeof block.named);
    memset(block.warps, 0, sizeof block.warps);
    for (int i = 0; i < block_threads; ++i) {
        Thread &thread = block.threads[i];
        thread.done = thread.fenced = false, thread.ready = nullptr, thread.commits = 0;
        thread.open.clear(), thread.groups.clear(), thread.stored.clear(), thread.adds.reset();
        if (!thread.stack) thread.stack.reset(new char[STACK]);
        getcontext(&thread.context);
        thread.context.uc_stack.ss_sp = thread.stack.get();
        thread.context.uc_stack.ss_size = STACK;
        makecontext(&thread.context, begin_thread, 0);
    }
}
static void run_late(vector<Late> &all, int passed) {
    vector<Late> left, due;
    for (auto &late : all) ((late.rounds -= passed) <= 0 ? due : left).push_back(move(late));
    all = move(left);
    for (auto &late : due) late.run(), ++progress;
}
static void run_threads(Block &block) {
    here = &block;
    int warps = block_threads / 32, first = int(random_below(warps)), lane = int(random_below(32));
    for (int w = 0; w < warps; ++w) {
        Warp &warp = block.warps[(first + w) % warps];
        if (warp.dozes > 0) { --warp.dozes; continue; }
        for (int i = 0; i < 32 && warp.dozes == 0; ++i) {
            current = (first + w) % warps * 32 + (lane + i) % 32;
            if (!self().done && (!self().ready || self().ready(self().waits))) swapcontext(&scheduler, &self().context);
        }
    }
}
static void end_block(Block &block) {
    here = &block, current = 0;
    if (!block.copies.empty()) stop("tiles that nobody waits for");
    if (!block.stores.empty()) stop("a copy that reads shared memory when its block has ended");
    run_late(block.writes, 1 << 20), run_late(block.sums, 1 << 20);
}
// All blocks, so many at a time.
static void run_grid(Index grid, int threads, u32 bytes, size_t at_once, function<void()> body) {
    gridDim = grid, block_threads = threads, shared_bytes = bytes, kernel = body;
    static vector<unique_ptr<Block>> resting;
    vector<unique_ptr<Block>> live;
    u32 begun = 0, all = grid.x * grid.y * grid.z;
    int idle = 0;
    for (u64 rounds = 0; begun < all || !live.empty(); ++rounds) {
        for (; live.size() < at_once && begun < all; ++begun) {
            if (resting.empty()) resting.emplace_back(new Block()), resting.back()->raw = (u8 *)aligned_alloc(1024, MOST_SHARED);
            live.push_back(move(resting.back())), resting.pop_back();
            begin_block(*live.back(), {begun % grid.x, begun / grid.x % grid.y, begun / grid.x / grid.y});
        }
        u64 before = progress;
        size_t first = random_below(u32(live.size()));
        for (size_t i = 0; i < live.size(); ++i) run_threads(*live[(first + i) % live.size()]);
        // where nobody can go on, time passes until something late happens
        bool still = progress == before, waits = false;
        int passed = 1 << 20;
        for (auto &block : live) {
            for (auto *late : {&block->copies, &block->stores, &block->writes, &block->sums})
                for (const Late &one : *late) passed = min(passed, max(one.rounds, 1)), waits = true;
            for (const Warp &warp : block->warps)
                if (warp.dozes) passed = min(passed, warp.dozes), waits = true;
        }
        if (!still) passed = 1;
        for (auto &block : live) {
            here = block.get();
            for (auto *late : {&block->copies, &block->stores, &block->writes, &block->sums}) run_late(*late, passed);
            if (still) for (Warp &warp : block->warps) warp.dozes = max(0, warp.dozes - passed);
        }
        idle = still && !waits ? idle + 1 : 0;
        if (idle > 3) stop("all threads wait for each other");
        if (rounds > 3000000) stop("no end");
        for (size_t i = 0; i < live.size();) {
            if (live[i]->threads_left) { ++i; continue; }
            end_block(*live[i]);
            resting.push_back(move(live[i])), live.erase(live.begin() + i);
        }
    }
}

// --- files: arrays one after the other, each after its number of bytes ---
template <class T> vector<T> read_array(FILE *file) {
    u64 bytes;
    if (fread(&bytes, 8, 1, file) != 1) stop("a file that is too short");
    vector<T> values(bytes / sizeof(T));
    if (bytes && fread(values.data(), 1, bytes, file) != bytes) stop("a file that is too short");
    return values;
}
