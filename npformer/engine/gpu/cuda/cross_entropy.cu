// Softmax cross-entropy, one block per row.
//
// A label of -1 means no label. Any other label that is not a class makes the loss NaN, because a kernel
// cannot raise an error. logits are (rows, classes).

// Replaces functional.softmax_cross_entropy of rows.
// losses is (rows,): the row's loss. saved is (rows, 2): the row's largest logit, and the logarithm of the
// sum of exponentials after that logit is subtracted. They stay two numbers, because their sum would lose
// the digits of the small one.
extern "C" __global__ void softmax_cross_entropy(
    const real* logits, const index_t* labels, real smoothing, real* losses, real* saved,
    index_t classes) {
    const real* row = logits + index_t(blockIdx.x) * classes;
    real top = minus_infinity();
    for (index_t i = threadIdx.x; i < classes; i += blockDim.x) top = fmax(top, row[i]);
    top = block_max(top);
    // The largest logit's own 1 is left out: log(1 + rest) would lose the digits of a small rest.
    real rest = 0, shifted = 0, ties = 0;
    for (index_t i = threadIdx.x; i < classes; i += blockDim.x) {
        const real z = row[i] - top;
        if (z == real(0)) ties += real(1); else rest += exp(z);
        shifted += z;
    }
    block_sums(rest, shifted);
    ties = block_sum(ties);
    if (threadIdx.x != 0) return;
    const real log_total = log1p(rest + (ties - real(1)));
    const index_t label = labels[blockIdx.x];
    saved[2 * index_t(blockIdx.x)] = top;
    saved[2 * index_t(blockIdx.x) + 1] = log_total;
    real loss = 0;
    if (label != -1) {
        const bool is_class = label >= 0 && label < classes;
        const real of_right = is_class ? row[label] - top - log_total : not_a_number();
        loss = -(real(1) - smoothing) * of_right;
        // Only with smoothing: a class that is ruled out by -inf makes this mean infinite.
        if (smoothing != real(0)) loss -= smoothing * (shifted / real(classes) - log_total);
    }
    losses[blockIdx.x] = loss;
}

// Replaces the mean in functional.softmax_cross_entropy.
// One block: the mean over the labels and 1 / their number, or 0 and 1 if there are no labels.
extern "C" __global__ void mean_over_labels(
    const real* losses, const index_t* labels, real* loss, real* share, index_t rows) {
    real sum = 0, count = 0;
    for (index_t i = threadIdx.x; i < rows; i += blockDim.x) {
        sum += losses[i];
        count += labels[i] != -1 ? real(1) : real(0);
    }
    block_sums(sum, count);
    if (threadIdx.x != 0) return;
    const real n = fmax(count, real(1));
    *loss = sum / n;
    *share = real(1) / n;
}

// Replaces functional.softmax_cross_entropy_backward.
// dlogits = (p - q) dloss / number of labels, where q is the smoothed label; 0 without a label.
extern "C" __global__ void softmax_cross_entropy_backward(
    const real* logits, const index_t* labels, const real* saved, const real* share, real dloss,
    real smoothing, real* dlogits, index_t classes) {
    const index_t row = index_t(blockIdx.x) * classes;
    const index_t label = labels[blockIdx.x];
    const real top = saved[2 * index_t(blockIdx.x)], log_total = saved[2 * index_t(blockIdx.x) + 1];
    const real factor = dloss * *share;
    for (index_t i = threadIdx.x; i < classes; i += blockDim.x) {
        const real log_p = logits[row + i] - top - log_total;
        // p - 1 at the right class, which would cancel where p is nearly 1, and p elsewhere
        const real error = i == label ? expm1(log_p) : exp(log_p);
        const real smoothed = (i == label ? smoothing : real(0)) - smoothing / real(classes);
        dlogits[row + i] = label == -1 ? real(0) : (error + smoothed) * factor;
    }
}
