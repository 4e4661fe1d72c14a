// z = layer_norm(x + dropout(y)), forward and backward, one block per row.
//
// y is null if there is nothing to add, kept is null if nothing is dropped.

// Replaces functional.dropout of y, x + y, and functional.layer_norm of the sum.
// normalised may be z if no backward pass follows.
extern "C" __global__ void residual_norm(
    const real* x, const real* y, const bool* kept, real scale, const real* gamma, const real* beta,
    real eps, real* normalised, real* inverse_std, real* z, index_t width) {
    const index_t row = index_t(blockIdx.x) * width;
    real sum = 0;
    for (index_t i = threadIdx.x; i < width; i += blockDim.x) {
        real value = x[row + i];
        if (y) {
            value += kept ? (kept[row + i] ? y[row + i] * scale : real(0)) : y[row + i];
            normalised[row + i] = value;
        }
        sum += value;
    }
    const real* values = y ? normalised : x;
    const real mean = block_sum(sum) / real(width);
    real left = 0;  // what the rounding of a large mean leaves
    for (index_t i = threadIdx.x; i < width; i += blockDim.x) left += values[row + i] - mean;
    left = block_sum(left) / real(width);
    real squares = 0;  // in another pass: E[x^2] - E[x]^2 loses every digit once the mean is large
    for (index_t i = threadIdx.x; i < width; i += blockDim.x) {
        const real centred = (values[row + i] - mean) - left;
        squares += centred * centred;
    }
    const real inverse = real(1) / sqrt(block_sum(squares) / real(width) + eps);
    for (index_t i = threadIdx.x; i < width; i += blockDim.x) {
        const real n = ((values[row + i] - mean) - left) * inverse;
        normalised[row + i] = n;  // first, because both may be one array, which is to hold z
        z[row + i] = gamma[i] * n + beta[i];
    }
    if (threadIdx.x == 0) inverse_std[blockIdx.x] = inverse;
}

// Replaces functional.layer_norm_backward, for dx, then functional.dropout_backward.
// With g = dz gamma: dsum = (g - mean(g) - n mean(g n)) inverse_std, and dy = dsum where y was kept.
extern "C" __global__ void residual_norm_backward(
    const real* dz, const real* normalised, const real* inverse_std, const real* gamma,
    const bool* kept, real scale, real* dsum, real* dy, index_t width) {
    const index_t row = index_t(blockIdx.x) * width;
    real along_constant = 0, along_normalised = 0;
    for (index_t i = threadIdx.x; i < width; i += blockDim.x) {
        const real g = dz[row + i] * gamma[i];
        along_constant += g;
        along_normalised += g * normalised[row + i];
    }
    block_sums(along_constant, along_normalised);
    along_constant /= real(width);
    along_normalised /= real(width);
    const real inverse = inverse_std[blockIdx.x];
    for (index_t i = threadIdx.x; i < width; i += blockDim.x) {
        const real g = dz[row + i] * gamma[i];
        const real d = (g - along_constant - normalised[row + i] * along_normalised) * inverse;
        dsum[row + i] = d;
        if (kept) dy[row + i] = kept[row + i] ? d * scale : real(0);
    }
}

// Replaces functional.layer_norm_backward, for dgamma and dbeta.
// Sums over the rows of a group, (groups, 2, width): for the gradient of gamma, then for that of beta.
extern "C" __global__ void residual_norm_backward_of_parameters(
    const real* dz, const real* normalised, real* sums, index_t rows, index_t width,
    index_t rows_of_group) {
    const index_t tiles = (width + blockDim.x - 1) / blockDim.x;
    const index_t column = blockIdx.x % tiles * blockDim.x + threadIdx.x;
    if (column >= width) return;
    const index_t group = blockIdx.x / tiles;
    const index_t first = group * rows_of_group;
    const index_t last = min(first + rows_of_group, rows);
    real dgamma = 0, dbeta = 0;
    #pragma unroll 8
    for (index_t i = first * width + column; i < last * width; i += width) {
        dgamma += dz[i] * normalised[i];
        dbeta += dz[i];
    }
    sums[2 * group * width + column] = dgamma;
    sums[(2 * group + 1) * width + column] = dbeta;
}
