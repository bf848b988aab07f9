// What the backward kernels' texts want besides hopper.h: reduce_sm90.cuh, words.cuh and what backward_sm80.cu wants of
// ptx.cuh. Sums reach global memory some time after they were asked for, or when a thread waits or fences. Must not know attention.

// Which call of those that wait, arrive, fence or commit is left out, -1: none; and which of them a run came to.
static int left_out = -1;
static bool reached[256];
static bool is_out(int call) { return reached[call] = true, left_out == call; }

// --- words of shared memory ---
inline void load_floats(float &left, float &right, u32 from) { memcpy(&left, cells(from), 4), memcpy(&right, cells(from + 4), 4); }
inline u32 load_word(u32 from) { u32 value; memcpy(&value, cells(from), 4); return value; }
inline void load_words(u32 (&value)[4], u32 from) { cells(from + 15), memcpy(value, cells(from), 16); }
inline void store_word(u32 to, u32 value) { store(to, &value, 4); }
inline void store_words(u32 to, u32 a, u32 b, u32 c, u32 d) {
    u32 value[4] = {a, b, c, d};
    store(to, value, 16);
}
inline float machine_kept_value(u32 kept, float value) { return kept ? value : 0.0f; }

// --- sums in global memory ---
static void add_late(float *to, float by) {
    shared_ptr<Adds> &own = self().adds;
    if (!own) {
        own = make_shared<Adds>();
        int thread = current;
        here->sums.push_back({some_rounds(), current, true, [adds = own, thread] {
            for (auto &[to, by] : adds->all) *to += by;
            here->threads[thread].adds.reset();
        }});
    }
    own->all.push_back({to, by});
}
template <int THREADS> void add_to_global(float *to, int thread, float a, float b, float c, float d) {
    const float all[4] = {a, b, c, d};
    for (int i = 0; i < 4; ++i) add_late(ML_DQ_ORDER == 0 ? to + 4 * thread + i : to + i * THREADS + thread, all[i]);
}
inline void load_left(float (&value)[4], const float *from) { memcpy(value, from, 16); }
inline void add_release(u32 *to, u32 by) { doze(), finish(here->sums, current), *to += by; }
inline void wait_for_word(const u32 *from, u32 value) { wait_until([=] { return *(const volatile u32 *)from == value; }); }
inline void tma_add(const TensorMap *map, u32 from, int c0, int c1, int c2, int c3) {
    box_to_memory(map, from, 2 * c0, c1, c2, c3, [](u16 *to, const u16 *line, int count) {
        for (int i = 0; i < count / 2; ++i) {
            float sum, by;
            memcpy(&sum, to + 2 * i, 4), memcpy(&by, line + 2 * i, 4);
            sum += by;
            memcpy(to + 2 * i, &sum, 4);
        }
    });
}
inline u32 count_blocks() { return gridDim.x; }
inline void tma_wait_all() { finish(here->stores, current), finish(here->writes, current); }

inline u32 atomicMax(u32 *to, u32 by) { u32 old = *to; *to = old > by ? old : by; return old; }

// --- fragments ---
inline void stmatrix_x4_transposed(u32 address, u32 a, u32 b, u32 c, u32 d) {
    const u64 *rows = exchange(address);
    u32 words[4] = {a, b, c, d}, lane = current % 32;
    for (u32 i = 0; i < 4; ++i)
        for (u32 e = 0; e < 2; ++e) {
            u16 value = u16(words[i] >> (16 * e));
            store(u32(rows[8 * i + lane % 4 * 2 + e]) + 2 * (lane / 4), &value, 2);
        }
    exchange(0);
}
template <int SIZE> void wgmma_transposed(float (&d)[SIZE], u64 a, u64 b) { issue({d, SIZE, a, b, nullptr, true, true, true}); }
template <int TB, int SIZE> void wgmma_anew(float (&d)[SIZE], u64 a, u64 b) { issue({d, SIZE, a, b, nullptr, false, TB == 1, false}); }
inline void ldmatrix(u32 (&words)[4], u32 address) {
    const u64 *rows = exchange(address);
    u32 lane = current % 32;
    for (u32 i = 0; i < 4; ++i) words[i] = load_word(u32(rows[8 * i + lane / 4]) + 4 * (lane % 4));
    exchange(0);
}
inline void ldmatrix_transposed(u32 (&words)[4], u32 address) {
    const u64 *rows = exchange(address);
    u32 lane = current % 32;
    for (u32 i = 0; i < 4; ++i) {
        u16 pair[2];
        for (u32 e = 0; e < 2; ++e) memcpy(&pair[e], cells(u32(rows[8 * i + lane % 4 * 2 + e]) + 2 * (lane / 4)), 2);
        memcpy(&words[i], pair, 4);
    }
    exchange(0);
}

// --- copies of a thread ---
inline void copy_async(u32 to, const void *from, bool valid) {
    memset(cells(to), 0xff, 16), cells(to + 15);
    ask(here->copies, false, [=] {
        if (valid) memcpy(cells(to), from, 16);
        else memset(cells(to), 0, 16);
    });
}
inline void copy_commit() {
    for (auto &late : here->copies)
        if (late.thread == current) late.committed = true;
}
inline void copy_wait_all() { finish(here->copies, current); }

// --- what a main is made of ---
// An array between two walls, which no one may touch.
template <class T> struct Walled {
    static constexpr size_t WALL = 4096 / sizeof(T);
    vector<T> all;
    explicit Walled(size_t count) : all(count + 2 * WALL) { poison(); }
    Walled(const vector<T> &values) : Walled(values.size()) { copy(values.begin(), values.end(), data()); }
    void poison() { memset(all.data(), 0xff, all.size() * sizeof(T)); }
    T *data() { return all.data() + WALL; }
    size_t size() const { return all.size() - 2 * WALL; }
    bool stands() const {
        const u8 *first = (const u8 *)all.data(), *last = (const u8 *)(all.data() + all.size());
        for (size_t i = 0; i < 4096 / sizeof(T) * sizeof(T); ++i)
            if (first[i] != 0xff || last[-1 - i] != 0xff) return false;
        return true;
    }
};

// Seeds of one thread order each; from the second on every warp is slow in one of thirteen.
static void decide(u32 seed) {
    chance = seed * 2654435761u + 1;
    how = {int(seed % 3), int(seed / 2 % 3), seed % 2 ? 30u : 0u, int(seed % 13) - 1, seed / 13};
}
