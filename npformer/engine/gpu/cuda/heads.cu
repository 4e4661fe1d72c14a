// Between rows of tokens and matrices of heads.
//
// CuPy's product of stacks of matrices takes no transposed operand: it copies what is not C-contiguous.
// So each operand is written once, in the order in which its product reads it:
//
//     rows     (batch, length, parts, heads, d_head)     what linear maps return and take
//     plain    (heads, batch, length, d_head)            for each part
//     turned   (heads, batch, d_head, length)            its transpose
//
// A block moves a square of 32 x 32 through shared memory, so that neighbouring threads read and write
// neighbouring entries on both sides. Heads are the first axis, so that the same kernels also treat the
// whole batch as one sequence, for products whose other factor all samples share.

#define TILE 32

struct Square {
    index_t slab;               // head * batch + sample
    index_t part, head, sample;
    index_t token, feature;     // of its first entry
};

__device__ Square square_of_block(index_t batch, index_t heads, index_t length, index_t d_head) {
    const index_t wide = (d_head + TILE - 1) / TILE, high = (length + TILE - 1) / TILE;
    index_t block = blockIdx.x;
    Square s;
    s.feature = block % wide * TILE;
    block /= wide;
    s.token = block % high * TILE;
    block /= high;
    s.slab = block % (heads * batch);
    s.part = block / (heads * batch);
    s.sample = s.slab % batch;
    s.head = s.slab / batch;
    return s;
}

// Replaces functional.split_heads.
// Each part is written plain, turned, both, or not at all: a null pointer leaves an order out. First its
// bias is added. Part 0 is then multiplied by `scale`, and if `relu` its negative entries become 0. The
// other parts become 0 at padding, which may hold anything: 0 * NaN would reach other tokens.
extern "C" __global__ void rows_to_heads(
    const real* rows, const real* bias0, const real* bias1, const real* bias2, real scale, index_t relu,
    const bool* mask, real* plain0, real* plain1, real* plain2, real* turned0, real* turned1,
    real* turned2, index_t parts, index_t batch, index_t heads, index_t length, index_t d_head) {
    __shared__ real square[TILE][TILE + 1];  // + 1: a column then lies in 32 different banks
    const Square s = square_of_block(batch, heads, length, d_head);
    real* plain = s.part == 0 ? plain0 : s.part == 1 ? plain1 : plain2;
    real* turned = s.part == 0 ? turned0 : s.part == 1 ? turned1 : turned2;
    const real* bias = s.part == 0 ? bias0 : s.part == 1 ? bias1 : bias2;
    if (!plain && !turned) return;
    const int x = threadIdx.x % TILE, y = threadIdx.x / TILE, step = blockDim.x / TILE;
    const index_t feature = s.feature + x;
    for (int j = y; j < TILE; j += step) {
        const index_t token = s.token + j;
        if (token >= length || feature >= d_head) continue;
        const index_t row = s.sample * length + token;
        real value = rows[((row * parts + s.part) * heads + s.head) * d_head + feature];
        if (bias) value += bias[s.head * d_head + feature];
        if (s.part == 0) {
            value *= scale;
            if (relu && value < real(0)) value = 0;
        } else if (mask && !mask[row]) {
            value = 0;
        }
        square[j][x] = value;
        if (plain) plain[(s.slab * length + token) * d_head + feature] = value;
    }
    if (!turned) return;
    __syncthreads();
    const index_t token = s.token + x;
    for (int j = y; j < TILE; j += step) {
        const index_t row = s.feature + j;
        if (token >= length || row >= d_head) continue;
        turned[(s.slab * d_head + row) * length + token] = square[x][j];
    }
}

// Replaces functional.merge_heads.
// Undoes rows_to_heads. Bit p of `turned` says that part p is turned. Part 0 is multiplied by `scale`.
extern "C" __global__ void heads_to_rows(
    const real* from0, const real* from1, const real* from2, index_t turned, real scale, real* rows,
    index_t parts, index_t batch, index_t heads, index_t length, index_t d_head) {
    __shared__ real square[TILE][TILE + 1];
    const Square s = square_of_block(batch, heads, length, d_head);
    const real* from = s.part == 0 ? from0 : s.part == 1 ? from1 : from2;
    const bool is_turned = turned >> s.part & 1;
    const int x = threadIdx.x % TILE, y = threadIdx.x / TILE, step = blockDim.x / TILE;
    if (is_turned) {
        const index_t token = s.token + x;
        for (int j = y; j < TILE; j += step) {
            const index_t row = s.feature + j;
            if (token >= length || row >= d_head) continue;
            square[x][j] = from[(s.slab * d_head + row) * length + token];
        }
        __syncthreads();
    }
    const index_t feature = s.feature + x;
    for (int j = y; j < TILE; j += step) {
        const index_t token = s.token + j;
        if (token >= length || feature >= d_head) continue;
        real value = is_turned ? square[j][x] : from[(s.slab * length + token) * d_head + feature];
        if (s.part == 0) value *= scale;
        const index_t row = s.sample * length + token;
        rows[((row * parts + s.part) * heads + s.head) * d_head + feature] = value;
    }
}
