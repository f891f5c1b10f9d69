// SPDX-License-Identifier: BSD-2-Clause
// What the questions of probe.cu share: kernels, a GPU that is set up, copies that are timed.
#pragma once

#include "cases.cuh"

#include <atomic>
#include <cuda.h>
#include <cuda_runtime.h>
#include <string>

static std::string err(CUresult r)
{
    const char *name = nullptr;
    cuGetErrorName(r, &name);
    return std::string(name ? name : "?") + " (" + std::to_string((int)r) + ")";
}

#define RT(call)                                                                                   \
    do {                                                                                           \
        cudaError_t e_ = (call);                                                                   \
        if (e_ != cudaSuccess)                                                                     \
            fail("%s: %s (line %d)", #call, cudaGetErrorName(e_), __LINE__);                       \
    } while (0)
#define DR(call)                                                                                   \
    do {                                                                                           \
        CUresult r_ = (call);                                                                      \
        if (r_ != CUDA_SUCCESS)                                                                    \
            fail("%s: %s (line %d)", #call, err(r_).c_str(), __LINE__);                            \
    } while (0)

static double us(void)
{
    return cases_now() * 1e6;
}

__device__ static unsigned long long ns_of_gpu(void)
{
    unsigned long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

// Spins until the host sets *stop, or for limit_ns. The first thread of each block looks; the
// others wait for it, so that they do not fill PCIe with loads.
__global__ void spin_kernel(volatile int *stop, volatile int *started, unsigned long long limit_ns)
{
    unsigned long long until = ns_of_gpu() + limit_ns;
    if (!threadIdx.x) {
        *started = 1;
        while (!*stop && ns_of_gpu() < until)
            __nanosleep(gridDim.x > 1 ? 2000 : 0);
    }
    __syncthreads();
}

__global__ void one_kernel(unsigned long long *word)
{
    atomicAdd_system(word, 1ULL);
}

__global__ void lazy_kernel(unsigned long long *word)
{
    *word = 77;
}

__global__ void trap_kernel(void)
{
    __trap();
}

__global__ void bad_address_kernel(int *where)
{
    *where = 1;
}

// Counts how often the last word of a buffer was newer than its first.
__global__ void order_kernel(volatile unsigned long long *first, volatile unsigned long long *last,
                             unsigned long long end, volatile unsigned long long *result,
                             volatile int *stop, volatile int *started)
{
    unsigned long long seen = 0, bad = 0, changes = 0;
    *started = 1;
    for (unsigned turn = 0; seen < end && (turn & 63 || !*stop); turn++) { // *stop is slow to read
        unsigned long long b = *last;
        __threadfence_system();
        unsigned long long a = *first;
        if (a < b)
            bad++;
        if (b != seen)
            changes++;
        seen = b;
    }
    result[0] = bad;
    result[1] = changes;
    result[2] = seen;
    __threadfence_system();
}

// Waits until the word has the wanted value; tells so by *answer.
__global__ void wait_kernel(volatile int *word, int wanted, volatile int *answer,
                            volatile int *started, unsigned long long limit_ns)
{
    unsigned long long until = ns_of_gpu() + limit_ns;
    *started = 1;
    while (*word != wanted && ns_of_gpu() < until)
        ;
    *answer = *word == wanted ? 1 : 2;
    __threadfence_system();
}

// What most questions need: streams of their own, pinned memory, a kernel that spins. Every kernel
// is loaded beforehand.
struct gpu {
    CUcontext ctx;
    CUdevice dev;
    cudaStream_t user, copy;
    volatile int *flags; // pinned: 0 stop, 1 started, 2 answer
    char *pinned;        // 4 MiB
    char *mem;           // 4 MiB of the GPU
    int sms;
};

static gpu open_gpu(void)
{
    gpu g;
    RT(cudaSetDevice(0));
    RT(cudaFree(nullptr));
    DR(cuCtxGetCurrent(&g.ctx));
    DR(cuCtxGetDevice(&g.dev));
    RT(cudaStreamCreateWithFlags(&g.user, cudaStreamNonBlocking));
    RT(cudaStreamCreateWithFlags(&g.copy, cudaStreamNonBlocking));
    int *flags;
    RT(cudaHostAlloc((void **)&flags, 4096, cudaHostAllocMapped | cudaHostAllocPortable));
    memset(flags, 0, 4096);
    g.flags = flags;
    RT(cudaHostAlloc((void **)&g.pinned, 4 << 20, cudaHostAllocMapped | cudaHostAllocPortable));
    memset(g.pinned, 1, 4 << 20);
    RT(cudaMalloc((void **)&g.mem, 4 << 20));
    RT(cudaMemset(g.mem, 0, 4 << 20));
    RT(cudaDeviceGetAttribute(&g.sms, cudaDevAttrMultiProcessorCount, 0));
    cudaFuncAttributes a;
    RT(cudaFuncGetAttributes(&a, spin_kernel));
    RT(cudaFuncGetAttributes(&a, one_kernel));
    RT(cudaFuncGetAttributes(&a, order_kernel));
    RT(cudaFuncGetAttributes(&a, wait_kernel));
    g.flags[0] = 1;
    spin_kernel<<<1, 1, 0, g.user>>>(g.flags, g.flags + 1, 1000);
    one_kernel<<<1, 1, 0, g.user>>>((unsigned long long *)g.mem);
    RT(cudaStreamSynchronize(g.user));
    g.flags[0] = g.flags[1] = 0;
    return g;
}

static void spin_begin(gpu &g, int blocks, int threads, double seconds)
{
    g.flags[0] = g.flags[1] = 0;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    spin_kernel<<<blocks, threads, 0, g.user>>>(g.flags, g.flags + 1,
                                                (unsigned long long)(seconds * 1e9));
    RT(cudaGetLastError());
    double until = cases_now() + 3;
    while (!g.flags[1] && cases_now() < until)
        ;
    if (!g.flags[1])
        fail("the kernel that spins does not start");
}

static void spin_end(gpu &g)
{
    g.flags[0] = 1;
    RT(cudaStreamSynchronize(g.user));
}

struct copy_times {
    double call, done, worst;
    bool stalled;
};

// One copy after the other, each waited for by cuStreamQuery. Stops after limit_s.
static copy_times copies(CUstream stream, bool to_gpu, CUdeviceptr gpu, void *host, size_t size,
                         int count, double limit_s)
{
    std::vector<double> call, done;
    copy_times t = {};
    double end = us() + limit_s * 1e6;
    for (int i = 0; i < count && us() < end; i++) {
        double a = us();
        DR(to_gpu ? cuMemcpyHtoDAsync(gpu, host, size, stream)
                  : cuMemcpyDtoHAsync(host, gpu, size, stream));
        double b = us();
        CUresult r;
        while ((r = cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY)
            if (us() > end + 1e6)
                break;
        if (r == CUDA_ERROR_NOT_READY) {
            t.stalled = true;
            break;
        }
        DR(r);
        double c = us();
        call.push_back(b - a);
        done.push_back(c - a);
    }
    t.call = cases_median(call);
    t.done = cases_median(done);
    t.worst = done.empty() ? 0 : *std::max_element(done.begin(), done.end());
    return t;
}
