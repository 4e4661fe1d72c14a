// Adam over a flat buffer, and clipping, in one pass over memory each.

extern "C" __global__ void adam_update(
    real* theta, const real* g, real* m, real* v, real step_size, real beta1, real one_minus_beta1,
    real beta2, real one_minus_beta2, real eps, real shrink, index_t n) {
    const index_t i = index_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const real gradient = g[i];
    const real mean = m[i] * beta1 + one_minus_beta1 * gradient;
    const real square = v[i] * beta2 + one_minus_beta2 * (gradient * gradient);
    m[i] = mean;
    v[i] = square;
    theta[i] = theta[i] * shrink - step_size * mean / (sqrt(square) + eps);
}

// Sums of squares, one per block.
extern "C" __global__ void sums_of_squares(const real* g, real* sums, index_t n) {
    const index_t step = index_t(gridDim.x) * blockDim.x;
    real sum = 0;
    for (index_t i = index_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
        sum += g[i] * g[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// One block: the norm, and the factor for every entry. If the norm is NaN, so is the factor.
extern "C" __global__ void clipping_factor(
    const real* sums, real max_norm, real* norm, real* factor, index_t n) {
    real sum = 0;
    for (index_t i = threadIdx.x; i < n; i += blockDim.x) sum += sums[i];
    sum = block_sum(sum);
    if (threadIdx.x != 0) return;
    *norm = sqrt(sum);
    const real wanted = max_norm / (*norm + real(1e-6));
    *factor = wanted > real(1) ? real(1) : wanted;
}

extern "C" __global__ void multiply(real* g, const real* factor, index_t n) {
    const index_t i = index_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) g[i] *= *factor;
}
