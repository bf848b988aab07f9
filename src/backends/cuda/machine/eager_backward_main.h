// Eager's backward pass on the machine: reads what `eager_backward_tests.rs` wrote, runs its launches unit by unit, and writes the gradients.
// Outputs and scratch are poison before; of sums and captured tensors' gradients the host makes zeros.
using namespace text;

int main(int count, char **names) {
    FILE *file = fopen(names[1], "rb");
    if (!file) stop("no file");
    decide(u32(atoi(names[3])));
    auto params = read_array<u8>(file), mods = read_array<u8>(file);
    auto numbers = read_array<int>(file), steps = read_array<int>(file);
    Walled<u16> q(read_array<u16>(file)), k(read_array<u16>(file)), v(read_array<u16>(file)), d_o(read_array<u16>(file));
    Walled<float> lse(read_array<float>(file)), d_lse(read_array<float>(file));
    Walled<u8> dense(read_array<u8>(file));
    Walled<u32> places(read_array<u32>(file));
    vector<vector<u8>> captured;
    for (int i = 0; i < numbers[1]; ++i) captured.push_back(read_array<u8>(file));
    Params p;
    memcpy(&p, params.data(), sizeof p);
    const int units = p.batch * p.heads / p.group, at_once = numbers[0];
    const size_t rows = size_t(at_once) * p.group * p.q_len, cells = rows * pitch(p), elements = places.data()[places.size() - 1];
    Walled<u16> dq(q.size()), dk(k.size()), dv(v.size()), weights(cells), d_scores(cells);
    Walled<float> scores(cells), d_weights(cells), deltas(rows), gradients(vector<float>(elements, 0.0f));
    Walled<u32> largest(places.size() - 1);
    Walled<u64> sums(vector<u64>(2 * elements, 0));
    p.q = q.data(), p.k = k.data(), p.v = v.data(), p.lse = lse.data(), p.dense = dense.data();
    Eager e = {d_o.data(), d_lse.data(), dq.data(), dk.data(), dv.data(), scores.data(), d_weights.data(), weights.data(),
               d_scores.data(), deltas.data(), largest.data(), sums.data(), places.data(), gradients.data()};
    Mods given;
    memcpy(&given, mods.data(), sizeof given);
    vector<const u8 *> from;
    for (auto &tensor : captured) from.push_back(tensor.data());
    point(given, from.data());
    for (p.first = 0; p.first < units; p.first += at_once) {
        p.section = min(at_once, units - p.first);
        for (size_t i = 0; i < largest.size(); ++i) largest.data()[i] = 0;
        for (size_t at = 0; at < steps.size(); at += 6) {
            const int *step = &steps[at];
            Index grid = {unsigned(step[1]), unsigned(step[2]), unsigned(step[3])};
            run_grid(grid, step[4], u32(max(step[5], 16)), 1, [&] {
                switch (step[0]) {
                case 0: return eager_products(p, e);
                case 1: return eager_rows(p, e, given);
#if ML_CAPTURES
                case 2: return eager_captures(p, e, given);
                case 3: return eager_captured(p, e);
#endif
                case 4: return eager_queries(p, e);
                case 5: return eager_keys(p, e);
                default: stop("no such launch");
                }
            });
        }
    }
    here = nullptr;
    for (auto *w : {&q, &k, &v, &d_o, &dq, &dk, &dv, &weights, &d_scores}) if (!w->stands()) stop("a write beside a tensor");
    for (auto *w : {&scores, &d_weights, &deltas, &gradients, &lse, &d_lse}) if (!w->stands()) stop("a write beside a tensor");
    for (auto *w : {&largest, &places}) if (!w->stands()) stop("a write beside a tensor");
    if (!sums.stands()) stop("a write beside a tensor");
    for (size_t i = 0; i < sums.size(); ++i) if (sums.data()[i]) stop("sums that are not left at 0");
    FILE *to = fopen(names[2], "wb");
    fwrite(dq.data(), 2, dq.size(), to), fwrite(dk.data(), 2, dk.size(), to), fwrite(dv.data(), 2, dv.size(), to);
    fwrite(gradients.data(), 4, elements, to);
    return fclose(to);
}
