// What all kernels share. `real` is float or double: a #define in front of this file says which.
//
// Numbers are written as real(0.5), because 0.5 alone is a double. One double in an expression makes all
// of it double, which most GPUs compute many times slower.
//
// Two layouts of threads:
//
// - One block per row. Thread t takes the entries t, t + blockDim.x, ... of the row. So neighbouring
//   threads read neighbouring entries, and a later pass of a thread reads only what it wrote itself.
// - One thread per column of a group of rows. Neighbouring blocks take neighbouring columns of the same
//   group; the next group follows.
//
// The order of additions depends on the shapes alone, so that the same numbers give the same sums, bit
// for bit. No kernel uses floating-point atomics.

typedef long long index_t;

#define WARP 32
#define WHOLE_WARP 0xffffffffu

// Returns the sum of the threads' values, in all threads. The block's size is a multiple of 32, and all
// of its threads must call this.
__device__ real block_sum(real value) {
    __shared__ real of_warps[WARP];
    for (int step = WARP / 2; step > 0; step /= 2) value += __shfl_xor_sync(WHOLE_WARP, value, step);
    __syncthreads();  // all threads have read what an earlier call left
    if (threadIdx.x % WARP == 0) of_warps[threadIdx.x / WARP] = value;
    __syncthreads();
    real total = 0;
    for (int warp = 0; warp < blockDim.x / WARP; warp++) total += of_warps[warp];
    return total;
}

// Replaces two values by their sums, with the waits of one sum.
__device__ void block_sums(real& one, real& other) {
    __shared__ real of_warps[2][WARP];
    for (int step = WARP / 2; step > 0; step /= 2) {
        one += __shfl_xor_sync(WHOLE_WARP, one, step);
        other += __shfl_xor_sync(WHOLE_WARP, other, step);
    }
    __syncthreads();  // all threads have read what an earlier call left
    if (threadIdx.x % WARP == 0) {
        of_warps[0][threadIdx.x / WARP] = one;
        of_warps[1][threadIdx.x / WARP] = other;
    }
    __syncthreads();
    one = other = 0;
    for (int warp = 0; warp < blockDim.x / WARP; warp++) {
        one += of_warps[0][warp];
        other += of_warps[1][warp];
    }
}

// Returns the largest of the threads' values, in all threads; NaN is ignored.
__device__ real block_max(real value) {
    __shared__ real of_warps[WARP];
    for (int step = WARP / 2; step > 0; step /= 2)
        value = fmax(value, __shfl_xor_sync(WHOLE_WARP, value, step));
    __syncthreads();  // all threads have read what an earlier call left
    if (threadIdx.x % WARP == 0) of_warps[threadIdx.x / WARP] = value;
    __syncthreads();
    real top = of_warps[0];
    for (int warp = 1; warp < blockDim.x / WARP; warp++) top = fmax(top, of_warps[warp]);
    return top;
}

__device__ real minus_infinity() { return real(__int_as_float(0xff800000)); }

__device__ real not_a_number() { return real(__int_as_float(0x7fc00000)); }
