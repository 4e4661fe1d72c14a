// Bias and activation in one pass over memory, forward and backward.
//
// Forward: z = before + bias, hidden = f(z). With `keep`, f'(z) overwrites `before`; otherwise hidden may
// be `before` itself. ReLU does not keep the derivative: hidden > 0 says the same.
// Backward: dhidden *= f'(z). Unless `sums` is null, it receives the sums of dhidden over each group of
// rows, from which the gradient of the bias is made.
//
// One thread per column of a group of rows, so that the bias stays in a register.

struct Relu {
    // Not fmax, which would hide NaN.
    __device__ static real value(real z, real&) { return z < real(0) ? real(0) : z; }
};

struct Gelu {
    __device__ static real value(real z, real& derivative) {
        // Not (1 + erf) / 2, which loses all digits where erf is nearly -1.
        const real far = real(40), distance = fabs(z) > far ? far : fabs(z);  // NaN stays NaN
        const real beyond = normcdf(-distance);
        const real phi = z > real(0) ? real(1) - beyond : beyond;
        // exp(-z^2 / 2), in which the rounding of z^2 would cost digits: `rest` is what it left out.
        const real square = distance * distance, rest = fma(distance, distance, -square);
        const real bell = exp(real(-0.5) * square) * (real(1) - real(0.5) * rest);
        const real density = real(0.39894228040143267794) * bell;
        derivative = phi + z * density;
        return z * phi;
    }
};

struct GeluTanh {
    __device__ static real value(real z, real& derivative) {
        const real root = real(0.79788456080286535588), cubic = real(0.044715);  // root = sqrt(2 / pi)
        const real u = root * (z + cubic * (z * z * z));
        const real phi = real(1) / (real(1) + exp(real(-2) * u));  // (1 + tanh(u)) / 2; exp may overflow
        const real du = root * (real(1) + real(3) * cubic * (z * z));
        derivative = phi + z * (phi * (real(1) - phi)) * (real(2) * du);
        return z * phi;
    }
};

struct Silu {
    __device__ static real value(real z, real& derivative) {
        const real s = real(1) / (real(1) + exp(-z));  // exp may overflow: s is then 0
        derivative = s + z * (s * (real(1) - s));
        return z * s;
    }
};

struct Tanh {
    __device__ static real value(real z, real& derivative) {
        const real y = tanh(z);
        derivative = real(1) - y * y;
        return y;
    }
};

template <class Activation>
__device__ void bias_activation(
    real* before, const real* bias, real* hidden, index_t rows, index_t width, index_t rows_of_group,
    index_t keep) {
    const index_t tiles = (width + blockDim.x - 1) / blockDim.x;
    const index_t column = blockIdx.x % tiles * blockDim.x + threadIdx.x;
    if (column >= width) return;
    const index_t first = blockIdx.x / tiles * rows_of_group;
    const index_t last = min(first + rows_of_group, rows);
    const real b = bias[column];
    for (index_t i = first * width + column; i < last * width; i += width) {
        real derivative = 0;
        const real y = Activation::value(before[i] + b, derivative);
        if (keep) before[i] = derivative;
        hidden[i] = y;
    }
}

// Replaces functional.relu after a bias.
extern "C" __global__ void bias_relu(
    real* before, const real* bias, real* hidden, index_t rows, index_t width, index_t rows_of_group,
    index_t keep) {
    bias_activation<Relu>(before, bias, hidden, rows, width, rows_of_group, keep);
}

// Replaces functional.gelu after a bias.
extern "C" __global__ void bias_gelu(
    real* before, const real* bias, real* hidden, index_t rows, index_t width, index_t rows_of_group,
    index_t keep) {
    bias_activation<Gelu>(before, bias, hidden, rows, width, rows_of_group, keep);
}

// Replaces functional.gelu with tanh after a bias.
extern "C" __global__ void bias_gelu_tanh(
    real* before, const real* bias, real* hidden, index_t rows, index_t width, index_t rows_of_group,
    index_t keep) {
    bias_activation<GeluTanh>(before, bias, hidden, rows, width, rows_of_group, keep);
}

// Replaces functional.silu after a bias.
extern "C" __global__ void bias_silu(
    real* before, const real* bias, real* hidden, index_t rows, index_t width, index_t rows_of_group,
    index_t keep) {
    bias_activation<Silu>(before, bias, hidden, rows, width, rows_of_group, keep);
}

// Replaces functional.tanh after a bias.
extern "C" __global__ void bias_tanh(
    real* before, const real* bias, real* hidden, index_t rows, index_t width, index_t rows_of_group,
    index_t keep) {
    bias_activation<Tanh>(before, bias, hidden, rows, width, rows_of_group, keep);
}

// saved: the derivative; or, for ReLU, hidden, which is positive where the derivative is 1.
template <bool positive>
__device__ void activation_backward(
    real* dhidden, const real* saved, real* sums, index_t rows, index_t width, index_t rows_of_group) {
    const index_t tiles = (width + blockDim.x - 1) / blockDim.x;
    const index_t column = blockIdx.x % tiles * blockDim.x + threadIdx.x;
    if (column >= width) return;
    const index_t group = blockIdx.x / tiles;
    const index_t first = group * rows_of_group;
    const index_t last = min(first + rows_of_group, rows);
    real sum = 0;
    #pragma unroll 8
    for (index_t i = first * width + column; i < last * width; i += width) {
        const real factor = positive ? (saved[i] > real(0) ? real(1) : real(0)) : saved[i];
        const real dz = dhidden[i] * factor;
        dhidden[i] = dz;
        sum += dz;
    }
    if (sums) sums[group * width + column] = sum;
}

// Replaces functional.relu_backward; saved is hidden.
extern "C" __global__ void relu_backward(
    real* dhidden, const real* saved, real* sums, index_t rows, index_t width, index_t rows_of_group) {
    activation_backward<true>(dhidden, saved, sums, rows, width, rows_of_group);
}

// Replaces functional.gelu_backward, silu_backward and tanh_backward; saved is the derivative.
extern "C" __global__ void smooth_activation_backward(
    real* dhidden, const real* saved, real* sums, index_t rows, index_t width, index_t rows_of_group) {
    activation_backward<false>(dhidden, saved, sums, rows, width, rows_of_group);
}
