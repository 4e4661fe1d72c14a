// Turns scores into weights in place: bias, mask, causal order and softmax, one block per row.
//
// Rows are numbered as (heads, batch, queries); `first` is the number of this launch's first row.
// mask is (batch, keys), bias is (heads, bias_width) of which the first `keys` columns are used; both
// may be null. A row that sees no key becomes 0.

// Replaces functional.softmax.
extern "C" __global__ void masked_softmax(
    real* scores, const real* bias, index_t bias_width, const bool* mask, index_t batch,
    index_t queries, index_t keys, index_t first, index_t causal) {
    const index_t number = first + blockIdx.x;
    const index_t query = number % queries, slab = number / queries;
    const index_t until = causal ? min(query + 1, keys) : keys;
    real* row = scores + index_t(blockIdx.x) * keys;
    if (mask) mask += slab % batch * keys;
    if (bias) bias += slab / batch * bias_width;

    real top = minus_infinity();
    for (index_t i = threadIdx.x; i < until; i += blockDim.x) {
        if (mask && !mask[i]) continue;
        const real s = bias ? row[i] + bias[i] : row[i];
        top = fmax(top, s);
    }
    top = block_max(top);
    if (top == minus_infinity()) top = 0;  // no visible key: exp(-inf - 0) = 0, never NaN

    // The second and the third reading of the row come from a cache.
    real total = 0;
    for (index_t i = threadIdx.x; i < until; i += blockDim.x) {
        if (mask && !mask[i]) continue;
        total += exp((bias ? row[i] + bias[i] : row[i]) - top);
    }
    total = block_sum(total);
    const real inverse = total == real(0) ? real(0) : real(1) / total;
    for (index_t i = threadIdx.x; i < keys; i += blockDim.x) {
        const bool seen = i < until && (!mask || mask[i]);
        row[i] = seen ? exp((bias ? row[i] + bias[i] : row[i]) - top) * inverse : real(0);
    }
}

// Replaces functional.softmax_backward.
// dscores = p (dp - sum(dp p)), written over dp.
extern "C" __global__ void softmax_backward(const real* weights, real* dweights, index_t keys) {
    const real* p = weights + index_t(blockIdx.x) * keys;
    real* dp = dweights + index_t(blockIdx.x) * keys;
    real along = 0;
    for (index_t i = threadIdx.x; i < keys; i += blockDim.x) along += p[i] * dp[i];
    along = block_sum(along);
    for (index_t i = threadIdx.x; i < keys; i += blockDim.x) dp[i] = p[i] * (dp[i] - along);
}
