// SPDX-License-Identifier: BSD-2-Clause
// NVSHMEM's operations from kernels, between processes of one GPU, all results compared. Uses
// NVSHMEM as it is.
//
//     nvshmem_ops ops|measure|ops-turns|measure-turns
//
// "-turns": kernels of several processes take turns on the GPU, because CUDA's MPS does not run.
// scripts/gpu-check starts the processes. The variables GPU_CHECK_RANK, GPU_CHECK_COUNT and
// GPU_CHECK_FILE say which one this is, how many there are, and by which file they find each other;
// rank 0 writes it. Each process prints a line for each case; a case has passed if it has passed in
// all of them. Lines that begin with "@|" are measurements of rank 0, as in kernel_post.
#include <algorithm>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include "nvshmem_by_file.cuh"
#include <string>
#include <unistd.h>
#include <vector>

static int me, count;
static std::string now_running = "start";
static std::string why; // the first thing that was wrong in the case

#define CU(call)                                                                                   \
    do {                                                                                           \
        cudaError_t e_ = (call);                                                                   \
        if (e_ != cudaSuccess) {                                                                   \
            printf("FAILED %s: %s: %s\n", now_running.c_str(), #call, cudaGetErrorName(e_));       \
            fflush(stdout);                                                                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static void out_of_time(int)
{
    const char a[] = "FAILED ", b[] = ": no end in time\n";
    (void)!write(1, a, sizeof(a) - 1);
    (void)!write(1, now_running.c_str(), now_running.size());
    (void)!write(1, b, sizeof(b) - 1);
    _exit(1);
}

static cudaStream_t stream;

static void wait_for_kernel(void)
{
    CU(cudaGetLastError());
    CU(cudaStreamSynchronize(stream));
}

static void together(void)
{
    wait_for_kernel();
    nvshmem_barrier_all();
}

__attribute__((format(printf, 1, 2))) static void wrong(const char *format, ...)
{
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    if (why.empty())
        why = text;
}

static void begin(const char *name)
{
    now_running = name;
    why.clear();
    alarm(20);
}

static void end(void)
{
    together();
    alarm(0);
    if (why.empty())
        printf("ok %s\n", now_running.c_str());
    else
        printf("FAILED %s: PE %d: %s\n", now_running.c_str(), me, why.c_str());
    fflush(stdout);
}

static void copy(void *to, const void *from, size_t size)
{
    CU(cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, stream));
    CU(cudaStreamSynchronize(stream));
}

static int next_pe(void)
{
    return (me + 1) % count;
}

static int last_pe(void)
{
    return (me + count - 1) % count;
}

// The symmetric memory of all cases.
static const size_t HALF = 4 << 20;
static char *heap, *source, *target; // source and target: HALF bytes each
static uint64_t *words;              // 4096 of them
static unsigned long long *results;  // of kernels: pinned, 4096

static void clear(void)
{
    CU(cudaMemsetAsync(heap, 0, 2 * HALF + 32768, stream));
    CU(cudaStreamSynchronize(stream));
    nvshmem_barrier_all();
}

static unsigned char pattern(size_t i, int pe, int seed)
{
    return (unsigned char)((i * 40503u + (i >> 9) + pe * 77 + seed * 131) >> 3);
}

static void fill(char *at, size_t size, int pe, int seed)
{
    std::vector<unsigned char> v(size);
    for (size_t i = 0; i < size; i++)
        v[i] = pattern(i, pe, seed);
    copy(at, v.data(), size);
}

static void expect(const char *at, size_t size, int pe, int seed, const char *what)
{
    std::vector<unsigned char> v(size);
    copy(v.data(), at, size);
    for (size_t i = 0; i < size; i++)
        if (v[i] != pattern(i, pe, seed)) {
            wrong("%s of %zu B: byte %zu is 0x%02x, should be 0x%02x", what, size, i, v[i],
                  pattern(i, pe, seed));
            return;
        }
}

// ---- Single values ----

#define TYPES(X)                                                                                   \
    X(char, char)                                                                                  \
    X(short, short)                                                                                \
    X(int, int)                                                                                    \
    X(long, long)                                                                                  \
    X(longlong, long long)                                                                         \
    X(uint, unsigned) X(ulonglong, unsigned long long) X(float, float) X(double, double)           \
        X(uint8, uint8_t) X(uint16, uint16_t) X(uint32, uint32_t) X(uint64, uint64_t)

#define P_AND_G(NAME, TYPE)                                                                        \
    __global__ void p_##NAME(TYPE *at, TYPE value, int pe)                                         \
    {                                                                                              \
        nvshmem_##NAME##_p(at, value, pe);                                                         \
        nvshmem_quiet();                                                                           \
    }                                                                                              \
    __global__ void g_##NAME(TYPE *at, unsigned long long *out, int pe)                            \
    {                                                                                              \
        *(TYPE *)out = nvshmem_##NAME##_g(at, pe);                                                 \
    }
TYPES(P_AND_G)

static void single_values(void)
{
#define TRY(NAME, TYPE)                                                                            \
    {                                                                                              \
        TYPE got = 0, *at = (TYPE *)target;                                                        \
        clear();                                                                                   \
        p_##NAME<<<1, 1, 0, stream>>>(at, (TYPE)(10 + me), next_pe());                             \
        together();                                                                                \
        copy(&got, at, sizeof(got));                                                               \
        if (got != (TYPE)(10 + last_pe()))                                                         \
            wrong("nvshmem_%s_p: another value came", #NAME);                                      \
        *results = 0;                                                                              \
        g_##NAME<<<1, 1, 0, stream>>>(at, results, next_pe());                                     \
        wait_for_kernel();                                                                         \
        memcpy(&got, results, sizeof(got));                                                        \
        if (got != (TYPE)(10 + me))                                                                \
            wrong("nvshmem_%s_g: another value came", #NAME);                                      \
        nvshmem_barrier_all();                                                                     \
    }
    TYPES(TRY)
}

// ---- Puts and gets ----

enum way {
    THREAD,
    THREAD_NBI,
    WARP,
    BLOCK,
    BLOCK_NBI,
    WAYS
};
static const char *const way_names[WAYS] = {"thread", "thread, nbi", "warp", "block", "block, nbi"};

__global__ void put_kernel(char *to, const char *from, size_t size, int pe, int how)
{
    switch (how) {
    case THREAD:
        nvshmem_putmem(to, from, size, pe);
        break;
    case THREAD_NBI:
        nvshmem_putmem_nbi(to, from, size, pe);
        break;
    case WARP:
        nvshmemx_putmem_warp(to, from, size, pe);
        break;
    case BLOCK:
        nvshmemx_putmem_block(to, from, size, pe);
        break;
    default:
        nvshmemx_putmem_nbi_block(to, from, size, pe);
        break;
    }
    __syncthreads();
    if (!threadIdx.x)
        nvshmem_quiet();
}

__global__ void get_kernel(char *to, const char *from, size_t size, int pe, int how)
{
    switch (how) {
    case THREAD:
        nvshmem_getmem(to, from, size, pe);
        break;
    case THREAD_NBI:
        nvshmem_getmem_nbi(to, from, size, pe);
        break;
    case WARP:
        nvshmemx_getmem_warp(to, from, size, pe);
        break;
    case BLOCK:
        nvshmemx_getmem_block(to, from, size, pe);
        break;
    default:
        nvshmemx_getmem_nbi_block(to, from, size, pe);
        break;
    }
    __syncthreads();
    if (!threadIdx.x)
        nvshmem_quiet();
}

static int threads_of(int how)
{
    return how < WARP ? 1 : how == WARP ? 32 : 128;
}

static void puts_and_gets(bool get)
{
    int seed = 1;
    for (size_t size : {1, 4, 100, 4096, 65536, 1 << 20})
        for (int how = 0; how < WAYS; how++, seed++) {
            char what[64];
            snprintf(what, sizeof(what), "%s (%s)", get ? "get" : "put", way_names[how]);
            fill(source, size, me, seed);
            nvshmem_barrier_all();
            if (get)
                get_kernel<<<1, threads_of(how), 0, stream>>>(target, source, size, next_pe(), how);
            else
                put_kernel<<<1, threads_of(how), 0, stream>>>(target, source, size, next_pe(), how);
            together();
            expect(target, size, get ? next_pe() : last_pe(), seed, what);
            nvshmem_barrier_all();
        }
}

// Strided puts and gets are left out: NVSHMEM 3.4.5 has none over a network.

// ---- Signals and order ----

__global__ void put_signal_kernel(char *to, const char *from, size_t size, uint64_t *signal,
                                  uint64_t value, int op, int pe, int block)
{
    if (block)
        nvshmemx_putmem_signal_block(to, from, size, signal, value, op, pe);
    else if (!threadIdx.x)
        nvshmem_putmem_signal(to, from, size, signal, value, op, pe);
    __syncthreads();
    if (!threadIdx.x)
        nvshmem_quiet();
}

// Waits for the signal; counts the bytes that are not as they should be by then.
__global__ void wait_signal_kernel(const unsigned char *data, size_t size, uint64_t *signal,
                                   uint64_t value, unsigned char want, unsigned long long *bad)
{
    nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, value);
    unsigned long long n = 0;
    for (size_t i = 0; i < size; i++)
        n += *(volatile const unsigned char *)(data + i) != want;
    *bad = n;
}

static void put_with_signal(int op)
{
    clear();
    uint64_t value = 0;
    for (int round = 1; round <= 6; round++) {
        size_t size = round & 1 ? 64 : 8192;
        CU(cudaMemsetAsync(source, 10 * round + me, size, stream));
        CU(cudaStreamSynchronize(stream));
        value = op == NVSHMEM_SIGNAL_ADD ? value + 5 : (uint64_t)round;
        results[0] = 99999;
        nvshmem_barrier_all();
        put_signal_kernel<<<1, 64, 0, stream>>>(target, source, size, words,
                                                op == NVSHMEM_SIGNAL_ADD ? 5 : value, op, next_pe(),
                                                round > 3);
        wait_signal_kernel<<<1, 1, 0, stream>>>((unsigned char *)target, size, words, value,
                                                (unsigned char)(10 * round + last_pe()), results);
        together();
        if (results[0])
            wrong("round %d: %llu of %zu bytes were not there when the signal was", round,
                  results[0], size);
    }
}

__global__ void fence_kernel(uint64_t *data, uint64_t *flag, int rounds, int pe)
{
    for (int i = 1; i <= rounds; i++) {
        for (int k = 0; k < 4; k++)
            nvshmem_uint64_p(data + k, (uint64_t)i, pe);
        nvshmem_fence();
        nvshmem_uint64_p(flag, (uint64_t)i, pe);
    }
    nvshmem_quiet();
}

// Looks at flag and data while they change: data must never be older than the flag.
__global__ void watch_kernel(volatile uint64_t *data, volatile uint64_t *flag, uint64_t rounds,
                             unsigned long long *bad)
{
    uint64_t seen = 0;
    unsigned long long n = 0, turns = 0;
    while (seen < rounds && turns++ < 20000000) {
        seen = *flag;
        __threadfence_system();
        for (int k = 0; k < 4; k++)
            n += data[k] < seen;
    }
    bad[0] = n;
    bad[1] = seen;
}

static void fences(void)
{
    clear();
    const int rounds = 50;
    cudaStream_t other;
    CU(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    results[0] = results[1] = 0;
    // Both are loaded now: the second one must not wait for the first one to end.
    cudaFuncAttributes loaded;
    CU(cudaFuncGetAttributes(&loaded, watch_kernel));
    CU(cudaFuncGetAttributes(&loaded, fence_kernel));
    watch_kernel<<<1, 1, 0, other>>>(words, words + 8, rounds, results);
    fence_kernel<<<1, 1, 0, stream>>>(words, words + 8, rounds, next_pe());
    wait_for_kernel();
    CU(cudaStreamSynchronize(other));
    if (results[0])
        wrong("%llu times data was older than the flag behind a fence", results[0]);
    if (results[1] != rounds)
        wrong("the last flag seen is %llu, should be %d", results[1], rounds);
    CU(cudaStreamDestroy(other));
}

// ---- Atomics ----

// The device library of NVSHMEM 3.4.5 has no additions for longlong, int64 and ptrdiff.
#define INTEGERS(X)                                                                                \
    X(int, int)                                                                                    \
    X(long, long)                                                                                  \
    X(uint, unsigned)                                                                              \
    X(ulong, unsigned long)                                                                        \
    X(ulonglong, unsigned long long) X(int32, int32_t) X(uint32, uint32_t) X(uint64, uint64_t)     \
        X(size, size_t)
#define MORE_INTEGERS(X) X(longlong, long long) X(int64, int64_t) X(ptrdiff, ptrdiff_t)
#define BIT_TYPES(X)                                                                               \
    X(uint, unsigned)                                                                              \
    X(ulong, unsigned long)                                                                        \
    X(ulonglong, unsigned long long)                                                               \
    X(int32, int32_t) X(int64, int64_t) X(uint32, uint32_t) X(uint64, uint64_t)

// out: what the fetching ones returned.
#define AMO_KERNEL(NAME, TYPE)                                                                     \
    __global__ void amo_##NAME(TYPE *w, int pe, unsigned long long *out)                           \
    {                                                                                              \
        nvshmem_##NAME##_atomic_set(w, (TYPE)100, pe);                                             \
        nvshmem_quiet();                                                                           \
        nvshmem_##NAME##_atomic_add(w, (TYPE)5, pe);                                               \
        nvshmem_##NAME##_atomic_inc(w, pe);                                                        \
        nvshmem_quiet();                                                                           \
        out[0] = (unsigned long long)nvshmem_##NAME##_atomic_fetch(w, pe);                         \
        out[1] = (unsigned long long)nvshmem_##NAME##_atomic_fetch_add(w, (TYPE)4, pe);            \
        out[2] = (unsigned long long)nvshmem_##NAME##_atomic_fetch_inc(w, pe);                     \
        out[3] = (unsigned long long)nvshmem_##NAME##_atomic_swap(w, (TYPE)7, pe);                 \
        out[4] =                                                                                   \
            (unsigned long long)nvshmem_##NAME##_atomic_compare_swap(w, (TYPE)8, (TYPE)9, pe);     \
        out[5] =                                                                                   \
            (unsigned long long)nvshmem_##NAME##_atomic_compare_swap(w, (TYPE)7, (TYPE)9, pe);     \
        nvshmem_quiet();                                                                           \
    }
INTEGERS(AMO_KERNEL)

#define SWAP_KERNEL(NAME, TYPE)                                                                    \
    __global__ void amo_##NAME(TYPE *w, int pe, unsigned long long *out)                           \
    {                                                                                              \
        nvshmem_##NAME##_atomic_set(w, (TYPE)111, pe);                                             \
        nvshmem_quiet();                                                                           \
        out[0] = (unsigned long long)nvshmem_##NAME##_atomic_fetch(w, pe);                         \
        out[1] = (unsigned long long)nvshmem_##NAME##_atomic_swap(w, (TYPE)7, pe);                 \
        out[2] =                                                                                   \
            (unsigned long long)nvshmem_##NAME##_atomic_compare_swap(w, (TYPE)8, (TYPE)9, pe);     \
        out[3] =                                                                                   \
            (unsigned long long)nvshmem_##NAME##_atomic_compare_swap(w, (TYPE)7, (TYPE)9, pe);     \
        nvshmem_quiet();                                                                           \
    }
MORE_INTEGERS(SWAP_KERNEL)

#define BITS_KERNEL(NAME, TYPE)                                                                    \
    __global__ void bits_##NAME(TYPE *w, int pe, unsigned long long *out)                          \
    {                                                                                              \
        nvshmem_##NAME##_atomic_set(w, (TYPE)0xf0, pe);                                            \
        nvshmem_quiet();                                                                           \
        nvshmem_##NAME##_atomic_or(w, (TYPE)0x0c, pe);                                             \
        nvshmem_quiet();                                                                           \
        nvshmem_##NAME##_atomic_and(w, (TYPE)0x3c, pe);                                            \
        nvshmem_quiet();                                                                           \
        nvshmem_##NAME##_atomic_xor(w, (TYPE)0x01, pe);                                            \
        nvshmem_quiet();                                                                           \
        out[0] = (unsigned long long)nvshmem_##NAME##_atomic_fetch_or(w, (TYPE)0x80, pe);          \
        out[1] = (unsigned long long)nvshmem_##NAME##_atomic_fetch_and(w, (TYPE)0x8f, pe);         \
        out[2] = (unsigned long long)nvshmem_##NAME##_atomic_fetch_xor(w, (TYPE)0xff, pe);         \
        nvshmem_quiet();                                                                           \
    }
BIT_TYPES(BITS_KERNEL)

#define REAL_KERNEL(NAME, TYPE)                                                                    \
    __global__ void real_##NAME(TYPE *w, int pe, unsigned long long *out)                          \
    {                                                                                              \
        nvshmem_##NAME##_atomic_set(w, (TYPE)1.5, pe);                                             \
        nvshmem_quiet();                                                                           \
        out[0] = (unsigned long long)(nvshmem_##NAME##_atomic_fetch(w, pe) * 2);                   \
        out[1] = (unsigned long long)(nvshmem_##NAME##_atomic_swap(w, (TYPE)2.5, pe) * 2);         \
        nvshmem_quiet();                                                                           \
    }
REAL_KERNEL(float, float)
REAL_KERNEL(double, double)

static void expect_results(const char *name, std::initializer_list<unsigned long long> wanted)
{
    size_t i = 0;
    for (unsigned long long w : wanted) {
        if (results[i] != w)
            wrong("%s: answer %zu is %llu, should be %llu", name, i + 1, results[i], w);
        i++;
    }
}

static void atomics(void)
{
    clear();
#define TRY_AMO(NAME, TYPE, ...)                                                                   \
    {                                                                                              \
        TYPE got = 0;                                                                              \
        memset(results, 0, 64);                                                                    \
        amo_##NAME<<<1, 1, 0, stream>>>((TYPE *)words, next_pe(), results);                        \
        together();                                                                                \
        expect_results(#NAME, {__VA_ARGS__});                                                      \
        copy(&got, words, sizeof(got));                                                            \
        if (got != (TYPE)9)                                                                        \
            wrong("%s: the word is %llu in the end, should be 9", #NAME, (unsigned long long)got); \
        nvshmem_barrier_all();                                                                     \
    }
#define TRY_ALL(NAME, TYPE)  TRY_AMO(NAME, TYPE, 106, 106, 110, 111, 7, 7)
#define TRY_SWAP(NAME, TYPE) TRY_AMO(NAME, TYPE, 111, 111, 7, 7)
    INTEGERS(TRY_ALL)
    MORE_INTEGERS(TRY_SWAP)
}

static void bit_atomics(void)
{
    clear();
#define TRY_BITS(NAME, TYPE)                                                                       \
    {                                                                                              \
        TYPE got = 0;                                                                              \
        memset(results, 0, 64);                                                                    \
        bits_##NAME<<<1, 1, 0, stream>>>((TYPE *)words, next_pe(), results);                       \
        together();                                                                                \
        expect_results(#NAME, {0x3d, 0xbd, 0x8d});                                                 \
        copy(&got, words, sizeof(got));                                                            \
        if (got != (TYPE)0x72)                                                                     \
            wrong("%s: the word is 0x%llx in the end, should be 0x72", #NAME,                      \
                  (unsigned long long)got);                                                        \
        nvshmem_barrier_all();                                                                     \
    }
    BIT_TYPES(TRY_BITS)
#define TRY_REAL(NAME, TYPE, ...)                                                                  \
    {                                                                                              \
        TYPE got = 0;                                                                              \
        memset(results, 0, 64);                                                                    \
        real_##NAME<<<1, 1, 0, stream>>>((TYPE *)words, next_pe(), results);                       \
        together();                                                                                \
        expect_results(#NAME, {__VA_ARGS__});                                                      \
        copy(&got, words, sizeof(got));                                                            \
        if (got != (TYPE)2.5)                                                                      \
            wrong("%s: another word in the end", #NAME);                                           \
        nvshmem_barrier_all();                                                                     \
    }
    /* NVSHMEM 3.4.5 swaps the bytes of a 4-byte answer as if it were an integer, so a swap of floats
     * answers 0 on any network. The word itself is right. */
    TRY_REAL(float, float, 3)
    TRY_REAL(double, double, 3, 3)
}

__global__ void tickets_kernel(unsigned long long *w, int rounds, unsigned long long *out)
{
    for (int i = 0; i < rounds; i++)
        out[i] = nvshmem_ulonglong_atomic_fetch_add(w, 1, 0);
    nvshmem_quiet();
}

// Processes draw numbers from a word of PE 0: none is drawn twice. If the word is in host memory,
// PE 0 itself draws none: an atomic operation of a GPU on host memory is not atomic to anybody else
// on most machines.
static void tickets(bool heap_in_gpu)
{
    clear();
    const int rounds = 60, first = heap_in_gpu ? 0 : 1;
    if (me >= first)
        tickets_kernel<<<1, 1, 0, stream>>>((unsigned long long *)words, rounds, results);
    together();
    // Each PE puts its numbers into everybody's table.
    copy(source, results, rounds * 8);
    for (int pe = 0; pe < count; pe++)
        put_kernel<<<1, 1, 0, stream>>>(target + (size_t)me * rounds * 8, source, rounds * 8, pe,
                                        THREAD);
    together();
    std::vector<unsigned long long> all((size_t)((count - first) * rounds));
    copy(all.data(), target + (size_t)first * rounds * 8, all.size() * 8);
    std::sort(all.begin(), all.end());
    for (size_t i = 0; i < all.size(); i++)
        if (all[i] != i) {
            wrong("number %zu was drawn as %llu", i, all[i]);
            break;
        }
}

// ---- Barriers and collectives ----

__global__ void barrier_kernel(uint64_t *w, int rounds, int n, int me, unsigned long long *bad)
{
    unsigned long long wrong = 0;
    for (int i = 1; i <= rounds; i++) {
        for (int pe = 0; pe < n; pe++)
            nvshmem_uint64_p(w + me, (uint64_t)i, pe);
        nvshmem_barrier_all();
        for (int pe = 0; pe < n; pe++)
            wrong += ((volatile uint64_t *)w)[pe] < (uint64_t)i;
        nvshmem_sync_all();
    }
    *bad = wrong;
}

static void launch_together(const void *kernel, int threads, void **args)
{
    int e = nvshmemx_collective_launch(kernel, dim3(1), dim3((unsigned)threads), args, 0, stream);
    if (e)
        wrong("nvshmemx_collective_launch: %d", e);
}

static void barriers(void)
{
    clear();
    int rounds = 10;
    *results = 99;
    void *args[] = {&words, &rounds, &count, &me, &results};
    launch_together((const void *)barrier_kernel, 1, args);
    wait_for_kernel();
    if (*results)
        wrong("%llu values were not there behind a barrier", *results);
}

// Barriers of the host, one after the other, each with a quiet behind it: as nvshmem_finalize() does.
static void host_barriers(void)
{
    for (int i = 0; i < 200; i++) {
        nvshmem_barrier_all();
        nvshmemx_quiet_on_stream(stream);
        CU(cudaDeviceSynchronize());
    }
}

enum collective {
    C_BROADCAST,
    C_SUM,
    C_MAXIMUM,
    C_ALLTOALL,
    C_FCOLLECT,
    C_REDUCESCATTER,
    C_SUM_DOUBLE,
    COLLECTIVES
};
static const char *const collective_names[COLLECTIVES] = {
    "broadcast", "sum", "maximum", "alltoall", "fcollect", "reducescatter", "sum of doubles"};

__global__ void collective_kernel(int what, int *to, const int *from, int n)
{
    switch (what) {
    case C_BROADCAST:
        nvshmemx_int_broadcast_block(NVSHMEM_TEAM_WORLD, to, from, n, 0);
        break;
    case C_SUM:
        nvshmemx_int_sum_reduce_block(NVSHMEM_TEAM_WORLD, to, from, n);
        break;
    case C_MAXIMUM:
        nvshmemx_int_max_reduce_block(NVSHMEM_TEAM_WORLD, to, from, n);
        break;
    case C_ALLTOALL:
        nvshmemx_int_alltoall_block(NVSHMEM_TEAM_WORLD, to, from, n);
        break;
    case C_FCOLLECT:
        nvshmemx_int_fcollect_block(NVSHMEM_TEAM_WORLD, to, from, n);
        break;
    case C_REDUCESCATTER:
        nvshmemx_int_sum_reducescatter_block(NVSHMEM_TEAM_WORLD, to, from, n);
        break;
    default:
        nvshmemx_double_sum_reduce_block(NVSHMEM_TEAM_WORLD, (double *)to, (const double *)from, n);
        break;
    }
}

static void collective_on_stream(int what, int *to, const int *from, int n)
{
    switch (what) {
    case C_BROADCAST:
        nvshmemx_int_broadcast_on_stream(NVSHMEM_TEAM_WORLD, to, from, n, 0, stream);
        break;
    case C_SUM:
        nvshmemx_int_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, to, from, n, stream);
        break;
    case C_MAXIMUM:
        nvshmemx_int_max_reduce_on_stream(NVSHMEM_TEAM_WORLD, to, from, n, stream);
        break;
    case C_ALLTOALL:
        nvshmemx_int_alltoall_on_stream(NVSHMEM_TEAM_WORLD, to, from, n, stream);
        break;
    case C_FCOLLECT:
        nvshmemx_int_fcollect_on_stream(NVSHMEM_TEAM_WORLD, to, from, n, stream);
        break;
    case C_REDUCESCATTER:
        nvshmemx_int_sum_reducescatter_on_stream(NVSHMEM_TEAM_WORLD, to, from, n, stream);
        break;
    default:
        nvshmemx_double_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, (double *)to, (const double *)from,
                                             n, stream);
        break;
    }
}

// Element i of what PE pe gives. All sums fit.
static int given(int pe, int i)
{
    return (pe + 1) * 1000 + i * 3;
}

static void collective(int what, bool on_stream)
{
    clear();
    int *to = (int *)target, *from = (int *)source;
    for (int n : {1, 16, 1000}) {
        int all = n * count;
        std::vector<int> v((size_t)all), got((size_t)all);
        std::vector<double> d((size_t)n);
        if (what == C_SUM_DOUBLE) {
            for (int i = 0; i < n; i++)
                d[(size_t)i] = given(me, i) * 0.5;
            copy(from, d.data(), (size_t)n * 8);
        } else {
            for (int i = 0; i < all; i++)
                v[(size_t)i] = given(me, i);
            copy(from, v.data(), (size_t)all * 4);
        }
        nvshmem_barrier_all();
        if (on_stream)
            collective_on_stream(what, to, from, n);
        else {
            void *args[] = {&what, &to, &from, &n};
            launch_together((const void *)collective_kernel, 128, args);
        }
        together();
        if (what == C_SUM_DOUBLE) {
            copy(d.data(), to, (size_t)n * 8);
            for (int i = 0; i < n; i++) {
                double want = 0;
                for (int pe = 0; pe < count; pe++)
                    want += given(pe, i) * 0.5;
                if (d[(size_t)i] != want)
                    wrong("%d elements: element %d is %f, should be %f", n, i, d[(size_t)i], want);
            }
            continue;
        }
        copy(got.data(), to, (size_t)all * 4);
        int length = what == C_ALLTOALL || what == C_FCOLLECT ? all : n;
        for (int i = 0; i < length; i++) {
            int want = 0;
            for (int pe = 0; pe < count; pe++) {
                int x = given(pe, what == C_REDUCESCATTER ? me * n + i : i);
                want = what == C_MAXIMUM ? std::max(want, x) : want + x;
            }
            if (what == C_BROADCAST)
                want = given(0, i);
            if (what == C_ALLTOALL)
                want = given(i / n, me * n + i % n);
            if (what == C_FCOLLECT)
                want = given(i / n, i % n);
            if (got[(size_t)i] != want)
                wrong("%d elements: element %d is %d, should be %d", n, i, got[(size_t)i], want);
        }
    }
}

// ---- Measurements ----

enum measure {
    M_PUT,
    M_PUT_BLOCK,
    M_GET,
    M_P,
    M_FETCH_ADD,
    M_PUT_MANY
};

__device__ static unsigned long long ns(void)
{
    unsigned long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

// each: the nanoseconds of every round. Ends after limit_ns; done says how many rounds there were.
__global__ void measure_kernel(int what, char *to, char *from, size_t size, int rounds, int pe,
                               unsigned long long limit_ns, unsigned *each, int *done)
{
    __shared__ int go_on;
    unsigned long long until = ns() + limit_ns;
    int i = 0;
    for (; i < rounds; i++) {
        unsigned long long start = ns();
        switch (what) {
        case M_PUT_BLOCK:
            nvshmemx_putmem_nbi_block(to, from, size, pe);
            break;
        case M_GET:
            if (!threadIdx.x)
                nvshmem_getmem(to, from, size, pe);
            break;
        case M_P:
            if (!threadIdx.x)
                nvshmem_uint64_p((uint64_t *)to, (uint64_t)i, pe);
            break;
        case M_FETCH_ADD:
            if (!threadIdx.x)
                nvshmem_ulonglong_atomic_fetch_add((unsigned long long *)to, 1, pe);
            break;
        case M_PUT_MANY:
            if (!threadIdx.x)
                for (int k = 0; k < 32; k++)
                    nvshmem_putmem_nbi(to + k * size, from + k * size, size, pe);
            break;
        default:
            if (!threadIdx.x)
                nvshmem_putmem_nbi(to, from, size, pe);
            break;
        }
        __syncthreads();
        if (!threadIdx.x) {
            nvshmem_quiet();
            unsigned long long t = ns();
            each[i] = (unsigned)(t - start);
            go_on = t < until;
        }
        __syncthreads();
        if (!go_on) {
            i++;
            break;
        }
    }
    if (!threadIdx.x)
        *done = i;
}

__global__ void ping_pong_kernel(uint64_t *signal, int first, int rounds, int pe, unsigned *each)
{
    for (int i = 1; i <= rounds; i++) {
        unsigned long long start = ns();
        if (first) {
            nvshmemx_signal_op(signal, (uint64_t)i, NVSHMEM_SIGNAL_SET, pe);
            nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, (uint64_t)i);
        } else {
            nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, (uint64_t)i);
            nvshmemx_signal_op(signal, (uint64_t)i, NVSHMEM_SIGNAL_SET, pe);
        }
        each[i - 1] = (unsigned)(ns() - start);
    }
    nvshmem_quiet();
}

__global__ void barrier_time_kernel(int rounds, unsigned *each)
{
    for (int i = 0; i < rounds; i++) {
        unsigned long long start = ns();
        nvshmem_barrier_all();
        each[i] = (unsigned)(ns() - start);
    }
}

static unsigned *each;
static int *rounds_done;

static void print_measure(const char *name, size_t size, int rounds, double per_round)
{
    std::vector<unsigned> v(each, each + rounds);
    double sum = 0;
    for (unsigned x : v)
        sum += x;
    std::sort(v.begin(), v.end());
    printf("@|NVSHMEM, %d PEs|%s|%s|%s|%zu|%.2f|%.2f\n", count, getenv("GPU_CHECK_QUEUE") ?: "",
           getenv("GPU_CHECK_HEAP") ?: "", name, size, v[v.size() / 2] / 1000.0 / per_round,
           sum / rounds / 1000.0 / per_round);
}

static void measurements(void)
{
    clear();
    static const struct {
        int what;
        const char *name;
        size_t size;
        int threads;
        double per_round;
    } wanted[] = {
        {M_P, "nvshmem_p, quiet", 8, 1, 1},
        {M_PUT, "put, quiet", 64, 1, 1},
        {M_PUT, "put, quiet", 4096, 1, 1},
        {M_PUT, "put, quiet", 65536, 1, 1},
        {M_PUT, "put, quiet", 1 << 20, 1, 1},
        {M_PUT_BLOCK, "put by a block, quiet", 65536, 128, 1},
        {M_GET, "get", 64, 1, 1},
        {M_GET, "get", 4096, 1, 1},
        {M_GET, "get", 65536, 1, 1},
        {M_GET, "get", 1 << 20, 1, 1},
        {M_FETCH_ADD, "fetch and add", 8, 1, 1},
        {M_PUT_MANY, "put, 32 before a quiet", 64, 1, 32},
        {M_PUT_MANY, "put, 32 before a quiet", 4096, 1, 32},
        {M_PUT_MANY, "put, 32 before a quiet", 65536, 1, 32},
    };
    for (const auto &w : wanted) {
        if (!me) {
            char *to = w.what == M_FETCH_ADD || w.what == M_P ? (char *)words : target;
            measure_kernel<<<1, w.threads, 0, stream>>>(w.what, to, source, w.size, 20, 1,
                                                        200000000ull, each, rounds_done);
            wait_for_kernel();
            measure_kernel<<<1, w.threads, 0, stream>>>(w.what, to, source, w.size, 500, 1,
                                                        500000000ull, each, rounds_done);
            wait_for_kernel();
            print_measure(w.name, w.size, *rounds_done, w.per_round);
        }
        nvshmem_barrier_all();
    }
    clear();
    int rounds = 50, first = !me, other = 1 - me;
    if (me < 2) {
        ping_pong_kernel<<<1, 1, 0, stream>>>(words, first, rounds, other, each);
        wait_for_kernel();
        if (!me)
            print_measure("signal there and back", 8, rounds, 1);
    }
    nvshmem_barrier_all();
    void *args[] = {&rounds, &each};
    launch_together((const void *)barrier_time_kernel, 1, args);
    wait_for_kernel();
    if (!me)
        print_measure("barrier", 0, rounds, 1);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr,
                "usage: %s ops|measure|ops-turns|measure-turns; scripts/gpu-check starts it\n",
                argv[0]);
        return 2;
    }
    bool measure = !strncmp(argv[1], "measure", 7), turns = strstr(argv[1], "-turns");
    signal(SIGALRM, out_of_time);
    setvbuf(stdout, nullptr, _IOLBF, 0);
    alarm(40);
    CU(cudaSetDevice(0));
    const char *problem = nvshmem_by_file(&me, &count);
    if (problem) {
        printf("FAILED start: %s\n", problem);
        return 1;
    }
    CU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CU(cudaHostAlloc((void **)&results, 4096 * 8, cudaHostAllocMapped | cudaHostAllocPortable));
    CU(cudaHostAlloc((void **)&each, 4096 * 4, cudaHostAllocMapped | cudaHostAllocPortable));
    CU(cudaHostAlloc((void **)&rounds_done, 4096, cudaHostAllocMapped | cudaHostAllocPortable));
    heap = (char *)nvshmem_malloc(2 * HALF + 32768);
    if (!heap) {
        printf("FAILED start: PE %d: nvshmem_malloc\n", me);
        return 1;
    }
    source = heap;
    target = heap + HALF;
    words = (uint64_t *)(heap + 2 * HALF);
    end();
    if (measure) {
        begin("measurements");
        alarm(60);
        measurements();
        end();
    } else {
#define CASE(name, call)                                                                           \
    begin(name);                                                                                   \
    call;                                                                                          \
    end()
        CASE("single values of each type", single_values());
        CASE("put", puts_and_gets(false));
        CASE("get", puts_and_gets(true));
        CASE("put with signal, set", put_with_signal(NVSHMEM_SIGNAL_SET));
        CASE("put with signal, add", put_with_signal(NVSHMEM_SIGNAL_ADD));
        CASE("fence", fences());
        CASE("atomics", atomics());
        CASE("bitwise atomics, atomics of reals", bit_atomics());
        CASE("fetch and add by all processes",
             tickets(strcmp(getenv("GPU_CHECK_HEAP") ?: "", "heap host")));
        CASE("barriers in a kernel", barriers());
        CASE("barriers of the host", host_barriers());
        for (int on_stream = 0; on_stream < 2; on_stream++)
            for (int c = 0; c < COLLECTIVES; c++) {
                std::string name = std::string(collective_names[c]) +
                                   (on_stream ? " on a stream" : " in a kernel");
                if (on_stream && turns) {
                    printf("skipped %s: NVSHMEM refuses it without CUDA's MPS\n", name.c_str());
                    continue;
                }
                CASE(name.c_str(), collective(c, on_stream));
            }
    }
    begin("finalize");
    nvshmem_free(heap);
    nvshmem_finalize();
    alarm(0);
    printf("ok finalize\n");
    fflush(stdout);
    return 0;
}
