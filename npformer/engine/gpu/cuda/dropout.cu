// Dropout, and random numbers from a counter: Philox4x32-10 (Salmon et al., 2011, "Parallel random
// numbers: as easy as 1, 2, 3").
//
// Ten rounds of multiplication scramble a counter of 128 bits with a key of 64 bits. Entry i of draw
// number `draw` is word i % 4 of counter (i / 4, draw) with key `seed`. It depends on nothing else, not
// even on the number of threads.

typedef unsigned int word;

struct Words {
    word of[4];
};

__device__ Words philox(unsigned long long position, unsigned long long draw, unsigned long long seed) {
    Words c = {{word(position), word(position >> 32), word(draw), word(draw >> 32)}};
    word key0 = word(seed), key1 = word(seed >> 32);
    for (int round = 0; round < 10; round++) {
        const unsigned long long even = 0xD2511F53ull * c.of[0], odd = 0xCD9E8D57ull * c.of[2];
        c = Words{{word(odd >> 32) ^ c.of[1] ^ key0, word(odd), word(even >> 32) ^ c.of[3] ^ key1,
                   word(even)}};
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return c;
}

// Replaces the draw in functional.dropout.
// Entry i of a part that begins with entry `first` of the whole mask is kept if the word of entry
// first + i is at least `threshold`, which is rate * 2^32. A thread has four entries of the whole.
extern "C" __global__ void draw_kept(
    bool* kept, index_t n, index_t threshold, index_t first, index_t draw, index_t seed) {
    const index_t thread = first / 4 + index_t(blockIdx.x) * blockDim.x + threadIdx.x;
    const index_t begin = 4 * thread - first;
    if (begin >= n) return;
    const Words w = philox(thread, draw, seed);
    for (int j = 0; j < 4; j++)
        if (begin + j >= 0 && begin + j < n) kept[begin + j] = w.of[j] >= threshold;
}

// Replaces `random` of NumPy's generators, from which functional.dropout may draw.
// Uniform numbers in [0, 1): the upper 24 bits of a word, which float32 holds exactly.
extern "C" __global__ void draw_uniform(
    real* uniform, index_t n, index_t first, index_t draw, index_t seed) {
    const index_t thread = first / 4 + index_t(blockIdx.x) * blockDim.x + threadIdx.x;
    const index_t begin = 4 * thread - first;
    if (begin >= n) return;
    const Words w = philox(thread, draw, seed);
    for (int j = 0; j < 4; j++)
        if (begin + j >= 0 && begin + j < n)
            uniform[begin + j] = real(w.of[j] >> 8) * real(5.9604644775390625e-08);  // 2^-24
}

// Replaces functional.dropout and functional.dropout_backward, after the draw.
extern "C" __global__ void dropout(const real* x, const bool* kept, real scale, real* y, index_t n) {
    const index_t i = index_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) y[i] = kept[i] ? x[i] * scale : real(0);
}
