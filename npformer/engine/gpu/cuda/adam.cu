// Adam over a flat buffer, and clipping, in one pass over memory each.

// Replaces optim.adam_update.
extern "C" __global__ void adam_update(
    real* theta, const real* g, real* m, real* v, real step_size, real beta1, real one_minus_beta1,
    real beta2, real root_of_one_minus_beta2, real eps, real shrink, index_t n) {
    const index_t i = index_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const real gradient = g[i];
    const real mean = m[i] * beta1 + one_minus_beta1 * gradient;
    const real scaled = root_of_one_minus_beta2 * gradient;
    const real square = v[i] * beta2 + scaled * scaled;
    m[i] = mean;
    v[i] = square;
    // Infinity would freeze the parameter for good, and nobody would notice.
    const real root = square - square == real(0) ? sqrt(square) : not_a_number();
    theta[i] = theta[i] * shrink - step_size * (mean / (root + eps));
}

// Two sums per block: of squares, and of squares of small multiples, which do not overflow in float.
#define SMALL real(8.470329472543003e-22)  // 2^-70
#define LARGE real(1180591620717411303424.0)  // 2^70

// Replaces the norm in optim.clip_by_global_norm: a first pass.
extern "C" __global__ void sums_of_squares(const real* g, real* sums, index_t n) {
    const index_t step = index_t(gridDim.x) * blockDim.x;
    real sum = 0, of_small = 0;
    for (index_t i = index_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
        const real small = SMALL * g[i];
        sum += g[i] * g[i];
        of_small += small * small;
    }
    block_sums(sum, of_small);
    if (threadIdx.x != 0) return;
    sums[blockIdx.x] = sum;
    sums[gridDim.x + blockIdx.x] = of_small;
}

// Replaces the norm and its factor in optim.clip_by_global_norm: the second pass.
// One block: the norm, and the factor for every entry. If the norm is not finite, the factor is NaN.
extern "C" __global__ void clipping_factor(
    const real* sums, real max_norm, real* norm, real* factor, index_t n) {
    real sum = 0, of_small = 0;
    for (index_t i = threadIdx.x; i < n; i += blockDim.x) {
        sum += sums[i];
        of_small += sums[n + i];
    }
    block_sums(sum, of_small);
    if (threadIdx.x != 0) return;
    *norm = sum - sum == real(0) ? sqrt(sum) : LARGE * sqrt(of_small);
    const real wanted = max_norm / (*norm + real(1e-6));
    if (*norm - *norm != real(0)) *factor = not_a_number();
    else *factor = wanted > real(1) ? real(1) : wanted;
}

// Replaces the product in optim.clip_by_global_norm.
extern "C" __global__ void multiply_by_factor(real* g, const real* factor, index_t n) {
    const index_t i = index_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) g[i] *= *factor;
}
