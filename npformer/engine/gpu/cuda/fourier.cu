// Replaces functional.fourier_mixing, after the transform.
// The real part of a transform, read from half of it, one block per row.
//
// spectrum is (n, length, width / 2 + 1), in pairs of real and imaginary part. For real input the
// transform at (-l, -k) is the complex conjugate of that at (l, k), so the real parts are equal.
extern "C" __global__ void fourier_mixing_real_part(
    const real* spectrum, real* y, index_t length, index_t width) {
    const index_t half = width / 2 + 1;
    const index_t sequence = blockIdx.x / length, l = blockIdx.x % length;
    const index_t mirrored = (length - l) % length;
    for (index_t k = threadIdx.x; k < width; k += blockDim.x) {
        const index_t row = sequence * length + (k < half ? l : mirrored);
        const index_t column = k < half ? k : width - k;
        y[index_t(blockIdx.x) * width + k] = spectrum[2 * (row * half + column)];
    }
}
