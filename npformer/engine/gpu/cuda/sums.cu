// Sums over the rows of matrices, a group of rows at a time.
//
// x is (n, rows, width), out is (n, groups, width): entry (i, g, c) is the sum over the rows of group g.
// A second launch takes the groups as rows and adds them up.

// Replaces the sum that is db in functional.linear_backward.
extern "C" __global__ void column_sums(
    const real* x, real* out, index_t rows, index_t width, index_t groups, index_t rows_of_group) {
    const index_t tiles = (width + blockDim.x - 1) / blockDim.x;
    const index_t column = blockIdx.x % tiles * blockDim.x + threadIdx.x;
    if (column >= width) return;
    const index_t slab = blockIdx.x / tiles;  // i * groups + g
    const index_t first = slab % groups * rows_of_group;
    const index_t n = min(rows_of_group, rows - first);
    x += (slab / groups * rows + first) * width + column;
    real sum = 0;
    #pragma unroll 8
    for (index_t row = 0; row < n; row++) sum += x[row * width];
    out[slab * width + column] = sum;
}
