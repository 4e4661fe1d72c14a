// CUDA on one core: enough of it to run the kernels of npformer/kernels/gpu/cuda as C++.
//
// Each thread of a block is a fiber. It runs until it waits for others, at __syncthreads or in a shuffle
// between the lanes of a warp, and goes on when all of them have come. Blocks, warps and lanes take turns
// in an order that can be changed, and each warp goes as far as it can, so that what depends on the order
// shows: a missing __syncthreads above all. Shared memory is filled with NaN before each block.
//
// What cannot go on is an error: threads that leave while others wait for them, lanes of a warp that
// shuffle alone.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <math.h>
#include <setjmp.h>
#include <ucontext.h>

// The normal distribution function, in more digits than CUDA's two.
inline double normcdf(double x) { return 0.5L * erfcl(-x * 0.707106781186547524400844L); }
inline float normcdf(float x) { return normcdf(double(x)); }

#define __global__
#define __device__
#define __shared__ static __attribute__((section("shared_memory")))

struct Index {
    unsigned int x, y, z;
};
Index gridDim, blockDim, blockIdx, threadIdx;

extern char __start_shared_memory[] __attribute__((weak));
extern char __stop_shared_memory[] __attribute__((weak));

namespace emulation {

constexpr unsigned int WARP_SIZE = 32;
constexpr size_t STACK = 64 * 1024;

enum State { READY, IN_WARP, IN_BLOCK, DONE };

// Made once, and then run one kernel after another. A first visit goes through setcontext, which asks
// the system; later ones jump, which costs next to nothing.
struct Fiber {
    ucontext_t context;
    jmp_buf place;
    std::vector<char> stack = std::vector<char>(STACK);
    State state = DONE;
    bool started = false;
};

jmp_buf scheduler;
std::vector<Fiber> fibers;
std::vector<uint64_t> lanes;  // what each thread shows to its warp
unsigned int current;
std::function<void()> body;
std::string problem;
unsigned int order = 0;  // 0: as numbered; 1: reversed; others seed a shuffle

__attribute__((noinline)) void wait(State state) {
    Fiber& fiber = fibers[current];
    fiber.state = state;
    if (!_setjmp(fiber.place)) _longjmp(scheduler, 1);
}

void enter() {
    while (true) {
        body();
        wait(DONE);
    }
}

__attribute__((noinline)) void resume(unsigned int thread) {
    Fiber& fiber = fibers[thread];
    current = thread;
    threadIdx = {thread, 0, 0};
    if (_setjmp(scheduler)) return;
    if (fiber.started) _longjmp(fiber.place, 1);
    fiber.started = true;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, enter, 0);
    setcontext(&fiber.context);
}

std::vector<unsigned int> turns(unsigned int n, std::mt19937& random) {
    std::vector<unsigned int> found(n);
    for (unsigned int i = 0; i < n; i++) found[i] = i;
    if (order == 1) std::reverse(found.begin(), found.end());
    if (order > 1) std::shuffle(found.begin(), found.end(), random);
    return found;
}

bool all(unsigned int first, unsigned int last, State state) {
    for (unsigned int i = first; i < last; i++)
        if (fibers[i].state != state) return false;
    return true;
}

bool wake(unsigned int first, unsigned int last, State state) {
    if (!all(first, last, state)) return false;
    for (unsigned int i = first; i < last; i++) fibers[i].state = READY;
    return true;
}

void run_block(unsigned int n, std::mt19937& random) {
    if (__start_shared_memory) memset(__start_shared_memory, 0xff, __stop_shared_memory - __start_shared_memory);
    for (unsigned int i = 0; i < n; i++) fibers[i].state = READY;
    const unsigned int warps = n / WARP_SIZE;
    while (true) {
        for (unsigned int warp : turns(warps, random)) {
            // As far as it gets: a warp may be through a shuffle before another has begun.
            const unsigned int first = warp * WARP_SIZE, last = first + WARP_SIZE;
            do {
                for (unsigned int lane : turns(WARP_SIZE, random)) {
                    if (fibers[first + lane].state == READY) resume(first + lane);
                    if (!problem.empty()) return;
                }
            } while (wake(first, last, IN_WARP));
        }
        if (all(0, n, DONE)) return;
        if (!wake(0, n, IN_BLOCK)) {
            problem = "threads wait for others that do not come";
            return;
        }
    }
}

void run(unsigned int blocks, unsigned int threads, std::function<void()> kernel) {
    problem.clear();
    if (blocks == 0 || threads == 0 || threads > 1024) problem = "a launch that CUDA refuses";
    if (threads % WARP_SIZE) problem = "a block that is no whole number of warps";
    if (!problem.empty()) return;
    if (fibers.size() < threads) fibers.resize(threads);
    lanes.assign(threads, 0);
    gridDim = {blocks, 1, 1};
    blockDim = {threads, 1, 1};
    body = kernel;
    std::mt19937 random(order);
    for (unsigned int block : turns(blocks, random)) {
        blockIdx = {block, 0, 0};
        run_block(threads, random);
        if (problem.empty()) continue;
        for (Fiber& fiber : fibers) fiber.started = false;  // some are in the middle of a kernel
        return;
    }
}

template <class T>
T exchange(unsigned int mask, T value, unsigned int partner) {
    static_assert(sizeof(T) <= sizeof(uint64_t), "a lane shows up to 8 bytes");
    if (mask != 0xffffffffu) problem = "a shuffle without all lanes";
    memcpy(&lanes[current], &value, sizeof(T));
    wait(IN_WARP);
    if (partner < WARP_SIZE) memcpy(&value, &lanes[current / WARP_SIZE * WARP_SIZE + partner], sizeof(T));
    wait(IN_WARP);
    return value;
}

// What a kernel takes, a word for each argument: array_in:float, array:float, index, number:float.

template <class T>
std::string type_name() {
    if (std::is_same<T, float>::value) return "float";
    if (std::is_same<T, double>::value) return "double";
    if (std::is_same<T, bool>::value) return "bool";
    if (std::is_same<T, long long>::value) return "index";
    return "unknown";
}

template <class T>
std::string describe() {
    using Pointee = typename std::remove_pointer<T>::type;
    if (std::is_pointer<T>::value)
        return (std::is_const<Pointee>::value ? "array_in:" : "array:")
            + type_name<typename std::remove_const<Pointee>::type>();
    if (std::is_floating_point<T>::value) return "number:" + type_name<T>();
    return type_name<T>();
}

template <class... A>
const char* signature(void (*)(A...)) {
    static std::string words;
    words.clear();
    for (const std::string& word : {describe<A>()...}) words += word + " ";
    return words.c_str();
}

template <class... A, size_t... I>
void call(void (*kernel)(A...), void** arguments, std::index_sequence<I...>) {
    kernel(*static_cast<A*>(arguments[I])...);
}

template <class... A>
const char* launch(void (*kernel)(A...), unsigned int blocks, unsigned int threads, void** arguments) {
    run(blocks, threads, [=] { call(kernel, arguments, std::index_sequence_for<A...>{}); });
    return problem.c_str();
}

}  // namespace emulation

extern "C" void set_order(unsigned int order) { emulation::order = order; }

void __syncthreads() { emulation::wait(emulation::IN_BLOCK); }

template <class T>
T __shfl_xor_sync(unsigned int mask, T value, int lane) {
    return emulation::exchange(mask, value, (threadIdx.x % emulation::WARP_SIZE) ^ lane);
}

template <class T>
T __shfl_down_sync(unsigned int mask, T value, unsigned int lane) {
    return emulation::exchange(mask, value, threadIdx.x % emulation::WARP_SIZE + lane);
}

template <class T>
T min(T a, T b) {
    return b < a ? b : a;
}

template <class T>
T max(T a, T b) {
    return a < b ? b : a;
}

inline float __int_as_float(int bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
