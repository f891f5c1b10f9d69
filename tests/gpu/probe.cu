// SPDX-License-Identifier: BSD-2-Clause
// Asks a GPU and its driver the questions on which hcasim's access to GPU memory depends: how long
// copies take and in which order they arrive, what stops them, what the driver says of an address,
// and which errors it returns. Needs no hcasim. Each question has a time limit. `probe --list`
// names the questions.
#include "probe_gpu.cuh"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <thread>

// ---- (a) How long copies take beside a kernel that spins ----

static void ask_latency(const test_case &)
{
    gpu g = open_gpu();
    static const size_t sizes[] = {8, 64, 4096, 65536, 1 << 20};
    char *pageable = (char *)aligned_alloc(4096, 4 << 20);
    memset(pageable, 2, 4 << 20);
    for (int spinning = 0; spinning < 2; spinning++) {
        if (spinning)
            spin_begin(g, 1, 1, 8);
        for (int kind = 0; kind < 2; kind++)
            for (int to_gpu = 0; to_gpu < 2; to_gpu++) {
                std::string text;
                for (size_t size : sizes) {
                    void *host = kind ? pageable : g.pinned;
                    copies(g.copy, to_gpu, (CUdeviceptr)g.mem, host, size, 5, 0.2);
                    copy_times t = copies(g.copy, to_gpu, (CUdeviceptr)g.mem, host, size,
                                          size > 65536 ? 50 : 300, 0.2);
                    char one[128];
                    snprintf(one, sizeof(one), "%zu B %.1f (call %.1f, worst %.0f)%s  ", size,
                             t.done, t.call, t.worst, t.stalled ? " STALLED" : "");
                    text += one;
                }
                say("%s, %s, %s: us %s", spinning ? "a kernel spins" : "idle GPU",
                    kind ? "pageable" : "pinned", to_gpu ? "to the GPU" : "from the GPU",
                    text.c_str());
            }
    }
    // Several in flight: 16 copies of one size, then one wait.
    for (size_t size : sizes) {
        std::vector<double> each;
        for (int round = 0; round < 30; round++) {
            double a = us();
            for (int i = 0; i < 16; i++)
                DR(cuMemcpyHtoDAsync((CUdeviceptr)g.mem + (i * size) % (4 << 20), g.pinned, size,
                                     g.copy));
            DR(cuStreamSynchronize(g.copy));
            each.push_back((us() - a) / 16);
        }
        say("16 copies of %zu B to the GPU in flight, pinned: %.2f us each", size,
            cases_median(each));
    }
    // A wait by the driver in place of queries.
    std::vector<double> sync;
    for (int i = 0; i < 200; i++) {
        double a = us();
        DR(cuMemcpyDtoHAsync(g.pinned, (CUdeviceptr)g.mem, 8, g.copy));
        DR(cuStreamSynchronize(g.copy));
        sync.push_back(us() - a);
    }
    say("8 B from the GPU, waited for by cuStreamSynchronize: %.1f us", cases_median(sync));
    // A write to pinned memory is seen there before the driver says so: how long until the word
    // itself has come?
    std::vector<double> word;
    for (int i = 0; i < 200; i++) {
        volatile unsigned long long *w = (volatile unsigned long long *)g.pinned;
        *w = 0x5555;
        double a = us();
        DR(cuMemcpyDtoHAsync(g.pinned, (CUdeviceptr)g.mem, 8, g.copy));
        while (*w == 0x5555 && us() - a < 1e5)
            ;
        word.push_back(us() - a);
        DR(cuStreamSynchronize(g.copy));
    }
    say("8 B from the GPU, waited for by the word in pinned memory: %.1f us", cases_median(word));
    spin_end(g);
}

// ---- (b) What stops copies ----

enum blocker {
    B_NOTHING,
    B_DEVICE_SYNC,
    B_STREAM_SYNC,
    B_EVENT_SYNC,
    B_FREE,
    B_MALLOC,
    B_HOST_REGISTER,
    B_HOST_ALLOC,
    B_FREE_HOST,
    B_MODULE,
    B_LAZY,
    B_MANAGED,
    B_COPY_DEFAULT,
    B_MALLOC_ASYNC,
    B_VMM,
    B_CAPTURE,
    B_CAPTURE_RELAXED,
    B_COUNT
};
static const char *const blocker_names[B_COUNT] = {
    "nothing",
    "cudaDeviceSynchronize",
    "cudaStreamSynchronize",
    "cudaEventSynchronize",
    "cudaFree",
    "cudaMalloc",
    "cudaHostRegister",
    "cudaHostAlloc",
    "cudaFreeHost",
    "cuModuleLoadData",
    "first launch of a kernel",
    "cudaMallocManaged",
    "cudaMemcpy on the default stream",
    "cudaMallocAsync",
    "cuMemCreate, Map, SetAccess",
    "stream capture, global mode",
    "stream capture, our thread relaxed",
};

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry probe_ptx(.param .u64 p)\n{\n.reg .u64 a, v;\n"
    "ld.param.u64 a, [p];\natom.global.sys.add.u64 v, [a], 1;\nret;\n}\n";

static void block(gpu &g, blocker what, void *to_free, void *host_to_free, char *to_register,
                  cudaEvent_t event, std::string &answer)
{
    RT(cudaSetDevice(0));
    cudaError_t e = cudaSuccess;
    CUresult r = CUDA_SUCCESS;
    void *p = nullptr;
    CUmodule m;
    switch (what) {
    case B_DEVICE_SYNC:
        e = cudaDeviceSynchronize();
        break;
    case B_STREAM_SYNC:
        e = cudaStreamSynchronize(g.user);
        break;
    case B_EVENT_SYNC:
        e = cudaEventSynchronize(event);
        break;
    case B_FREE:
        e = cudaFree(to_free);
        break;
    case B_MALLOC:
        e = cudaMalloc(&p, 64 << 20);
        break;
    case B_HOST_REGISTER:
        e = cudaHostRegister(to_register, 4 << 20,
                             cudaHostRegisterMapped | cudaHostRegisterPortable);
        break;
    case B_HOST_ALLOC:
        e = cudaHostAlloc(&p, 4 << 20, cudaHostAllocMapped);
        break;
    case B_FREE_HOST:
        e = cudaFreeHost(host_to_free);
        break;
    case B_MODULE:
        r = cuModuleLoadData(&m, ptx);
        break;
    case B_LAZY: {
        cudaStream_t third;
        (e = cudaStreamCreateWithFlags(&third, cudaStreamNonBlocking)) ||
            (lazy_kernel<<<1, 1, 0, third>>>((unsigned long long *)g.mem + 8),
             e = cudaGetLastError());
        break;
    }
    case B_MANAGED:
        e = cudaMallocManaged(&p, 4 << 20);
        break;
    case B_COPY_DEFAULT:
        e = cudaMemcpy(g.pinned + (2 << 20), g.mem + (2 << 20), 64, cudaMemcpyDefault);
        break;
    case B_MALLOC_ASYNC:
        e = cudaMallocAsync(&p, 4 << 20, g.user);
        break;
    case B_VMM: {
        CUmemAllocationProp prop = {};
        prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        CUmemGenericAllocationHandle h;
        CUdeviceptr a;
        CUmemAccessDesc access = {};
        access.location = prop.location;
        access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        (r = cuMemCreate(&h, 2 << 20, &prop, 0)) ||
            (r = cuMemAddressReserve(&a, 2 << 20, 0, 0, 0)) ||
            (r = cuMemMap(a, 2 << 20, 0, h, 0)) || (r = cuMemSetAccess(a, 2 << 20, &access, 1));
        break;
    }
    default:
        break;
    }
    answer = e ? cudaGetErrorName(e) : r ? err(r) : "success";
}

static void ask_blocker(const test_case &t)
{
    blocker what = (blocker)t.arg;
    gpu g = open_gpu();
    void *to_free, *host_to_free;
    RT(cudaMalloc(&to_free, 8 << 20));
    RT(cudaHostAlloc(&host_to_free, 4 << 20, cudaHostAllocMapped));
    char *to_register = (char *)mmap(nullptr, 4 << 20, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    cudaEvent_t event;
    RT(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    copies(g.copy, true, (CUdeviceptr)g.mem, g.pinned, 64, 20, 0.2);
    spin_begin(g, 1, 1, 2);
    RT(cudaEventRecord(event, g.user));
    std::string answer;
    std::atomic<bool> inside(false), back(false);
    double went_in = us();
    std::atomic<double> came_back(0);
    std::thread other;
    cudaStream_t captured = nullptr;
    if (what == B_CAPTURE || what == B_CAPTURE_RELAXED) {
        RT(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking));
        other = std::thread([&] {
            cudaSetDevice(0);
            cudaError_t e = cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal);
            inside = true;
            one_kernel<<<1, 1, 0, captured>>>((unsigned long long *)g.mem);
            while (us() - went_in < 6e5)
                usleep(1000);
            cudaGraph_t graph;
            cudaError_t f = cudaStreamEndCapture(captured, &graph);
            answer = std::string("begin ") + cudaGetErrorName(e) + ", end " + cudaGetErrorName(f);
            came_back = us();
            back = true;
        });
        while (!inside)
            usleep(100);
    } else {
        other = std::thread([&] {
            inside = true;
            block(g, what, to_free, host_to_free, to_register, event, answer);
            came_back = us();
            back = true;
        });
    }
    usleep(30000);
    std::string problem;
    if (what == B_CAPTURE_RELAXED) {
        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        DR(cuThreadExchangeStreamCaptureMode(&mode));
    }
    std::string other_calls;
    if (what == B_CAPTURE || what == B_CAPTURE_RELAXED) {
        CUresult q;
        int v = 0;
        CUmodule m;
        CUstream s;
        CUdeviceptr d;
        q = cuMemcpyHtoDAsync((CUdeviceptr)g.mem, g.pinned, 64, g.copy);
        other_calls += " copy " + err(q);
        do
            q = cuStreamQuery(g.copy);
        while (q == CUDA_ERROR_NOT_READY);
        other_calls += ", cuStreamQuery " + err(q) + ", cuStreamSynchronize " +
                       err(cuStreamSynchronize(g.copy));
        other_calls +=
            ", cuPointerGetAttribute " +
            err(cuPointerGetAttribute(&v, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)g.mem));
        other_calls += ", cuModuleLoadData " + err(cuModuleLoadData(&m, ptx));
        other_calls += ", cuStreamCreate " + err(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
        other_calls += ", cuMemAlloc " + err(cuMemAlloc(&d, 4096));
        say("in the other thread's capture:%s", other_calls.c_str());
    }
    copy_times in = copies(g.copy, true, (CUdeviceptr)g.mem, g.pinned, 64, 100, 0.3), out = {};
    if (!in.stalled)
        out = copies(g.copy, false, (CUdeviceptr)g.mem, g.pinned, 64, 100, 0.3);
    bool was_back = back;
    double call_took = was_back ? came_back - went_in : 0;
    g.flags[0] = 1;
    other.join();
    RT(cudaStreamSynchronize(g.user));
    say("copies of 64 B beside it: to the GPU %.1f us (worst %.0f)%s, from it %.1f us (worst %.0f)%s; the call %s, result %s",
        in.done, in.worst, in.stalled ? " STALLED" : "", out.done, out.worst,
        out.stalled ? " STALLED" : "",
        was_back ? ("returned after " + std::to_string((int)call_took) + " us").c_str()
                 : "returned only after the kernel's end",
        answer.c_str());
}

// ---- (c) Memory that is gone ----

static void ask_freed(const test_case &)
{
    gpu g = open_gpu();
    CUdeviceptr small, beside, large;
    DR(cuMemAlloc(&small, 4096));
    DR(cuMemAlloc(&beside, 4096));
    DR(cuMemAlloc(&large, 8 << 20));
    DR(cuMemFree(small));
    DR(cuMemFree(large));
    CUresult a = cuMemcpyDtoHAsync(g.pinned, small, 64, g.copy), b = cuStreamSynchronize(g.copy);
    say("a freed page beside a live one: copy from it %s, wait %s", err(a).c_str(), err(b).c_str());
    a = cuMemcpyDtoHAsync(g.pinned, large, 64, g.copy);
    b = cuStreamSynchronize(g.copy);
    say("8 MiB freed: copy from it %s, wait %s", err(a).c_str(), err(b).c_str());
    a = cuMemcpyHtoDAsync(large, g.pinned, 64, g.copy);
    b = cuStreamSynchronize(g.copy);
    say("8 MiB freed: copy to it %s, wait %s", err(a).c_str(), err(b).c_str());
    int type = 0;
    CUresult c = cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, large);
    unsigned long long id = 0;
    CUresult d = cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, small);
    say("8 MiB freed: its memory type %s; the freed page: its buffer id %s", err(c).c_str(),
        err(d).c_str());
    a = cuMemcpyDtoHAsync(g.pinned, (CUdeviceptr)g.mem, 64, g.copy);
    b = cuStreamSynchronize(g.copy);
    say("afterwards, a copy of live memory: %s, wait %s", err(a).c_str(), err(b).c_str());
    // A copy that leaves an allocation at its end.
    DR(cuMemAlloc(&large, 2 << 20));
    a = cuMemcpyDtoHAsync(g.pinned, large + (2 << 20) - 32, 64, g.copy);
    b = cuStreamSynchronize(g.copy);
    say("64 B that begin 32 B before the end of an allocation: %s, wait %s", err(a).c_str(),
        err(b).c_str());
    a = cuMemcpyDtoHAsync(g.pinned, 0x1000, 64, g.copy);
    say("address 0x1000: %s", err(a).c_str());
}

// Small allocations lie side by side. Does the driver take a copy that is in two of them?
static void ask_neighbours(const test_case &)
{
    gpu g = open_gpu();
    const size_t size = 64 << 10;
    std::vector<CUdeviceptr> pieces(64);
    for (CUdeviceptr &piece : pieces)
        DR(cuMemAlloc(&piece, size));
    std::sort(pieces.begin(), pieces.end());
    for (size_t i = 1; i < pieces.size(); i++) {
        if (pieces[i - 1] + size != pieces[i])
            continue;
        CUresult to = cuMemcpyHtoDAsync(pieces[i] - 512, g.pinned, 1024, g.copy);
        CUresult wait = cuStreamSynchronize(g.copy);
        CUresult from = cuMemcpyDtoHAsync(g.pinned, pieces[i] - 512, 1024, g.copy);
        say("a copy to two allocations side by side: %s, wait %s; from them: %s", err(to).c_str(),
            err(wait).c_str(), err(from).c_str());
        return;
    }
    say("64 allocations of 64 KiB: none lie side by side");
}

static void ask_unmapped(const test_case &)
{
    gpu g = open_gpu();
    CUmemAllocationProp prop = {};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemGenericAllocationHandle h;
    CUdeviceptr a;
    CUmemAccessDesc access = {};
    access.location = prop.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    DR(cuMemCreate(&h, 2 << 20, &prop, 0));
    DR(cuMemAddressReserve(&a, 4 << 20, 0, 0, 0));
    DR(cuMemMap(a, 2 << 20, 0, h, 0));
    CUresult r = cuMemcpyDtoHAsync(g.pinned, a, 64, g.copy), s = cuStreamSynchronize(g.copy);
    say("mapped without access: %s, wait %s", err(r).c_str(), err(s).c_str());
    DR(cuMemSetAccess(a, 2 << 20, &access, 1));
    r = cuMemcpyDtoHAsync(g.pinned, a, 64, g.copy), s = cuStreamSynchronize(g.copy);
    say("mapped with access: %s, wait %s", err(r).c_str(), err(s).c_str());
    r = cuMemcpyDtoHAsync(g.pinned, a + (2 << 20), 64, g.copy), s = cuStreamSynchronize(g.copy);
    say("the part that is reserved only: %s, wait %s", err(r).c_str(), err(s).c_str());
    DR(cuMemUnmap(a, 2 << 20));
    r = cuMemcpyDtoHAsync(g.pinned, a, 64, g.copy), s = cuStreamSynchronize(g.copy);
    say("unmapped: %s, wait %s", err(r).c_str(), err(s).c_str());
    r = cuMemcpyDtoHAsync(g.pinned, (CUdeviceptr)g.mem, 64, g.copy),
    s = cuStreamSynchronize(g.copy);
    say("afterwards, a copy of live memory: %s, wait %s", err(r).c_str(), err(s).c_str());
}

static void ask_context_destroyed(const test_case &)
{
    DR(cuInit(0));
    CUdevice dev;
    DR(cuDeviceGet(&dev, 0));
    CUcontext ctx;
#if CUDA_VERSION >= 13000
    DR(cuCtxCreate(&ctx, nullptr, 0, dev));
#else
    DR(cuCtxCreate(&ctx, 0, dev));
#endif
    CUdeviceptr mem;
    DR(cuMemAlloc(&mem, 8 << 20));
    void *pinned;
    DR(cuMemHostAlloc(&pinned, 4096, 0));
    CUstream stream;
    DR(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    int type;
    CUcontext of = nullptr;
    CUresult q = cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, mem);
    say("while the context lives: attribute CONTEXT %s, %s", err(q).c_str(),
        of == ctx ? "the same" : "another one");
    DR(cuCtxDestroy(ctx));
    q = cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, mem);
    say("context destroyed: memory type %s", err(q).c_str());
    char buf[64];
    q = cuMemcpyDtoH(buf, mem, 64);
    say("context destroyed, none current: cuMemcpyDtoH %s", err(q).c_str());
    q = cuCtxSetCurrent(ctx);
    say("context destroyed: cuCtxSetCurrent %s", err(q).c_str());
    q = cuCtxPushCurrent(ctx);
    say("context destroyed: cuCtxPushCurrent %s", err(q).c_str());
    q = cuStreamQuery(stream);
    say("context destroyed: cuStreamQuery %s", err(q).c_str());
    // The driver's own clean-up would fail: a context that is destroyed is current.
    cases_tell('K', "");
    _exit(0);
}

static void ask_device_reset(const test_case &)
{
    gpu g = open_gpu();
    CUstream stream = g.copy;
    CUdeviceptr mem = (CUdeviceptr)g.mem;
    RT(cudaDeviceReset());
    CUresult q = cuCtxSetCurrent(g.ctx);
    say("device reset: cuCtxSetCurrent of the old context %s", err(q).c_str());
    int type;
    q = cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, mem);
    say("device reset: memory type %s", err(q).c_str());
    char buf[64];
    q = cuMemcpyDtoH(buf, mem, 64);
    say("device reset: cuMemcpyDtoH %s", err(q).c_str());
    q = cuStreamQuery(stream);
    say("device reset: cuStreamQuery of an old stream %s", err(q).c_str());
    q = cuMemcpyDtoHAsync(buf, mem, 64, stream);
    say("device reset: cuMemcpyDtoHAsync on an old stream %s", err(q).c_str());
}

static void ask_failed_kernel(const test_case &t)
{
    gpu g = open_gpu();
    if (t.arg)
        bad_address_kernel<<<1, 1, 0, g.user>>>((int *)0x10);
    else
        trap_kernel<<<1, 1, 0, g.user>>>();
    double a = us();
    CUresult r, s = CUDA_SUCCESS;
    int n = 0;
    do {
        r = cuMemcpyDtoHAsync(g.pinned, (CUdeviceptr)g.mem, 64, g.copy);
        if (r == CUDA_SUCCESS)
            s = cuStreamSynchronize(g.copy);
        n++;
    } while (r == CUDA_SUCCESS && s == CUDA_SUCCESS && us() - a < 2e6);
    say("a copy on another stream, after %.0f us and %d copies: %s, wait %s", us() - a, n,
        err(r).c_str(), err(s).c_str());
    int type = 0;
    CUresult p = cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)g.mem);
    say("attributes: %s; stream query %s; context %s", err(p).c_str(),
        err(cuStreamQuery(g.copy)).c_str(), err(cuCtxSetCurrent(g.ctx)).c_str());
    CUdeviceptr m;
    say("cuMemAlloc %s; pinned memory is readable: %d", err(cuMemAlloc(&m, 4096)).c_str(),
        ((volatile char *)g.pinned)[0]);
}

// ---- (d) Launches beside a kernel that spins ----

static void launches(gpu &g, const char *beside, cudaStream_t stream, const char *how)
{
    std::vector<double> done, call;
    int stuck = 0;
    for (int i = 0; i < 200 && !stuck; i++) {
        double a = us();
        one_kernel<<<1, 1, 0, stream>>>((unsigned long long *)g.mem);
        RT(cudaGetLastError());
        double b = us();
        cudaError_t e;
        while ((e = cudaStreamQuery(stream)) == cudaErrorNotReady && us() - a < 5e5)
            ;
        if (e == cudaErrorNotReady)
            stuck = 1;
        else {
            RT(e);
            done.push_back(us() - a);
            call.push_back(b - a);
        }
    }
    say("one thread, %s, beside %s: %s; median %.1f us (call %.1f us) of %zu", how, beside,
        stuck ? "DOES NOT START within 0.5 s" : "starts", cases_median(done), cases_median(call),
        done.size());
}

static void ask_launch(const test_case &)
{
    gpu g = open_gpu();
    int low, high, blocks;
    RT(cudaDeviceGetStreamPriorityRange(&low, &high));
    cudaStream_t urgent;
    RT(cudaStreamCreateWithPriority(&urgent, cudaStreamNonBlocking, high));
    launches(g, "nothing", g.copy, "a stream");
    spin_begin(g, 1, 1, 3);
    launches(g, "one thread that spins", g.copy, "a stream");
    launches(g, "one thread that spins", urgent, "a stream of high priority");
    spin_end(g);
    RT(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, spin_kernel, 1024, 0));
    spin_begin(g, g.sms, 1024, 3);
    launches(g, "1024 threads on each SM", g.copy, "a stream");
    spin_end(g);
    char name[64];
    snprintf(name, sizeof(name), "%d threads on each SM (all)", blocks * 1024);
    spin_begin(g, g.sms * blocks, 1024, 4);
    usleep(20000); // all blocks are there
    copy_times t = copies(g.copy, true, (CUdeviceptr)g.mem, g.pinned, 64, 100, 0.2);
    say("copies of 64 B beside %s: %.1f us (worst %.0f)%s", name, t.done, t.worst,
        t.stalled ? " STALLED" : "");
    launches(g, name, urgent, "a stream of high priority");
    t = copies(g.copy, true, (CUdeviceptr)g.mem, g.pinned, 64, 100, 0.2);
    say("copies of 64 B with such a launch waiting: %.1f us (worst %.0f)%s", t.done, t.worst,
        t.stalled ? " STALLED" : "");
    spin_end(g);
    RT(cudaStreamSynchronize(urgent));
}

// ---- (e) dma-buf descriptors ----

static void ask_one_dmabuf(const char *what, CUdeviceptr a, size_t size)
{
    int fd[2] = {-1, -1};
    CUresult r =
        cuMemGetHandleForAddressRange(&fd[0], a, size, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
    CUresult s =
        cuMemGetHandleForAddressRange(&fd[1], a, size, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
    if (r) {
        say("%s: %s", what, err(r).c_str());
        return;
    }
    struct stat st[2] = {};
    fstat(fd[0], &st[0]);
    if (!s)
        fstat(fd[1], &st[1]);
    char path[64], link[256] = "", info[1024] = "";
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd[0]);
    ssize_t n = readlink(path, link, sizeof(link) - 1);
    link[n > 0 ? n : 0] = 0;
    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd[0]);
    int f = open(path, O_RDONLY);
    n = f >= 0 ? read(f, info, sizeof(info) - 1) : 0;
    info[n > 0 ? n : 0] = 0;
    for (char *c = info; *c; c++)
        if (*c == '\n')
            *c = '|';
    long long end = lseek(fd[0], 0, SEEK_END);
    int seek_errno = errno;
    void *m = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd[0], 0);
    int map_errno = errno;
    say("%s, %zu bytes: fd %d, %s, dev %llx ino %llu; second export %s dev %llx ino %llu; lseek(END) %lld (errno %d); mmap %s (errno %d); fdinfo %s",
        what, size, fd[0], link, (unsigned long long)st[0].st_dev, (unsigned long long)st[0].st_ino,
        err(s).c_str(), (unsigned long long)st[1].st_dev, (unsigned long long)st[1].st_ino, end,
        end < 0 ? seek_errno : 0, m == MAP_FAILED ? "fails" : "WORKS",
        m == MAP_FAILED ? map_errno : 0, info);
    close(fd[0]);
    if (!s)
        close(fd[1]);
}

static CUdeviceptr vmm(size_t size)
{
    CUmemAllocationProp prop = {};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.allocFlags.gpuDirectRDMACapable = 1;
    CUmemGenericAllocationHandle h;
    CUdeviceptr a;
    CUmemAccessDesc access = {};
    access.location = prop.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    DR(cuMemCreate(&h, size, &prop, 0));
    DR(cuMemAddressReserve(&a, size, 0, 0, 0));
    DR(cuMemMap(a, size, 0, h, 0));
    DR(cuMemSetAccess(a, size, &access, 1));
    return a;
}

static void ask_dmabuf(const test_case &)
{
    gpu g = open_gpu();
    int v;
    struct {
        CUdevice_attribute a;
        const char *name;
    } wanted[] = {
        {CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, "dma-buf"},
        {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, "GPUDirect RDMA"},
        {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, "the same with VMM"},
        {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, "concurrent managed access"},
        {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, "pageable memory access"},
        {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM,
         "host pointer for registered memory"},
        {CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, "host native atomics"},
        {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, "flush options"},
        {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING, "writes ordering"},
        {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, "copy engines"},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, "compute preemption"}};
    std::string text;
    for (auto &w : wanted) {
        CUresult r = cuDeviceGetAttribute(&v, w.a, g.dev);
        text += std::string(w.name) + " " + (r ? err(r) : std::to_string(v)) + ", ";
    }
    say("%s", text.c_str());
    ask_one_dmabuf("cudaMalloc", (CUdeviceptr)g.mem, 4 << 20);
    ask_one_dmabuf("cudaMalloc, its first 4 KiB", (CUdeviceptr)g.mem, 4096);
    ask_one_dmabuf("cudaMalloc, from 4 KiB on", (CUdeviceptr)g.mem + 4096, 65536);
    ask_one_dmabuf("cudaMalloc, from 64 KiB on", (CUdeviceptr)g.mem + 65536, 65536);
    ask_one_dmabuf("cudaMalloc, more than it has", (CUdeviceptr)g.mem, 64 << 20);
    void *small;
    RT(cudaMalloc(&small, 100));
    ask_one_dmabuf("cudaMalloc of 100 B, 4 KiB of it", (CUdeviceptr)small, 4096);
    ask_one_dmabuf("VMM", vmm(4 << 20), 4 << 20);
    void *managed;
    RT(cudaMallocManaged(&managed, 2 << 20));
    ask_one_dmabuf("managed", (CUdeviceptr)managed, 2 << 20);
    ask_one_dmabuf("pinned", (CUdeviceptr)g.pinned, 65536);
    struct stat st;
    for (const char *f :
         {"/sys/kernel/mm/memory_peers/nv_mem/version", "/sys/module/nvidia_peermem/version",
          "/sys/module/nvidia/version", "/dev/infiniband"})
        say("%s: %s", f, stat(f, &st) ? "absent" : "there");
}

// ---- (f) What the driver says of an address ----

static void ask_one_pointer(const char *what, CUdeviceptr p)
{
    int type = -1, ordinal = -1, legacy = -1, sync = -1, mapped = -1, rdma = -1;
    unsigned managed = 9;
    CUcontext ctx = nullptr;
    unsigned long long id = 0;
    CUdeviceptr start = 0, device = 0, base = 0;
    void *host = nullptr;
    size_t size = 0, base_size = 0;
    std::string text;
    char hex[64];
#define GET(var, attr)                                                                             \
    do {                                                                                           \
        CUresult r = cuPointerGetAttribute(&var, CU_POINTER_ATTRIBUTE_##attr, p);                  \
        snprintf(hex, sizeof(hex), "0x%llx", (unsigned long long)var);                             \
        text += std::string(#attr) + " " + (r ? err(r) : hex) + ", ";                              \
    } while (0)
    GET(type, MEMORY_TYPE);
    GET(ctx, CONTEXT);
    GET(ordinal, DEVICE_ORDINAL);
    GET(id, BUFFER_ID);
    GET(managed, IS_MANAGED);
    GET(start, RANGE_START_ADDR);
    GET(size, RANGE_SIZE);
    GET(device, DEVICE_POINTER);
    GET(host, HOST_POINTER);
    GET(mapped, MAPPED);
    GET(legacy, IS_LEGACY_CUDA_IPC_CAPABLE);
    GET(rdma, IS_GPU_DIRECT_RDMA_CAPABLE);
    GET(sync, SYNC_MEMOPS);
    CUresult r = cuMemGetAddressRange(&base, &base_size, p);
    double a = us();
    for (int i = 0; i < 1000; i++)
        cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p);
    double each = us() - a;
    say("%s at 0x%llx: %s cuMemGetAddressRange %s 0x%llx + 0x%zx; %.0f ns a question", what,
        (unsigned long long)p, text.c_str(), err(r).c_str(), (unsigned long long)base, base_size,
        each);
}

static void ask_pointers(const test_case &)
{
    gpu g = open_gpu();
    CUcontext ctx;
    DR(cuCtxGetCurrent(&ctx));
    say("the current context: %p", (void *)ctx);
    ask_one_pointer("cudaMalloc", (CUdeviceptr)g.mem);
    ask_one_pointer("cudaMalloc + 1000", (CUdeviceptr)g.mem + 1000);
    ask_one_pointer("VMM", vmm(2 << 20));
    void *managed, *async;
    RT(cudaMallocManaged(&managed, 2 << 20));
    ask_one_pointer("managed", (CUdeviceptr)managed);
    RT(cudaMallocAsync(&async, 2 << 20, g.user));
    RT(cudaStreamSynchronize(g.user));
    ask_one_pointer("cudaMallocAsync", (CUdeviceptr)async);
    ask_one_pointer("cudaHostAlloc", (CUdeviceptr)g.pinned);
    char *page = (char *)mmap(nullptr, 65536, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    RT(cudaHostRegister(page, 65536, cudaHostRegisterMapped | cudaHostRegisterPortable));
    ask_one_pointer("registered", (CUdeviceptr)page);
    int local = 0;
    ask_one_pointer("stack", (CUdeviceptr)&local);
    ask_one_pointer("malloc", (CUdeviceptr)malloc(100));
    // A thread that has no context.
    std::thread([&] {
        CUcontext none = (CUcontext)1;
        int type = -1;
        CUresult r = cuCtxGetCurrent(&none),
                 s = cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                           (CUdeviceptr)g.mem);
        char b[64];
        CUresult t = cuMemcpyDtoHAsync(b, (CUdeviceptr)g.mem, 64, g.copy),
                 u = cuStreamSynchronize(g.copy);
        say("a new thread: current context %p (%s), memory type %d (%s), a copy on a stream that is there %s, wait %s",
            (void *)none, err(r).c_str(), type, err(s).c_str(), err(t).c_str(), err(u).c_str());
    }).join();
}

// ---- (g) Managed memory ----

static void ask_managed(const test_case &)
{
    gpu g = open_gpu();
    int *m;
    RT(cudaMallocManaged((void **)&m, 2 << 20));
    memset(m, 0, 2 << 20);
    g.flags[1] = g.flags[2] = 0;
    volatile int *v = m;
    wait_kernel<<<1, 1, 0, g.user>>>(v, 5, g.flags + 2, g.flags + 1, 3000000000ULL);
    while (!g.flags[1])
        ;
    double a = us();
    int seen = v[0];
    double b = us();
    v[1] = 7;
    double c = us();
    say("while a kernel polls the page: a CPU load takes %.0f us (%d), a store %.0f us", b - a,
        seen, c - b);
    v[0] = 5;
    while (!g.flags[2] && us() - c < 5e6)
        ;
    say("the kernel sees the CPU's store: %s, after %.0f us", g.flags[2] == 1 ? "yes" : "NO",
        us() - c);
    RT(cudaStreamSynchronize(g.user));
    int x = 0;
    copies(g.copy, false, (CUdeviceptr)m, &x, 4, 1, 1);
    say("a copy of managed memory by the driver: %d", x);
}

// ---- (h) Host registration ----

static void ask_one_register(const char *what, void *p, size_t size, unsigned flags,
                             const char *flag_names)
{
    double a = us();
    cudaError_t e = cudaHostRegister(p, size, flags);
    double took = us() - a;
    cudaGetLastError();
    void *d = nullptr;
    if (!e) {
        cudaError_t f = cudaHostGetDevicePointer(&d, p, 0);
        say("%s, %s: success in %.0f us, device pointer %s", what, flag_names, took,
            f        ? cudaGetErrorName(f)
            : d == p ? "the same"
                     : "another one");
        cudaHostUnregister(p);
    } else
        say("%s, %s: %s", what, flag_names, cudaGetErrorName(e));
    cudaGetLastError();
}

static void ask_register(const test_case &)
{
    gpu g = open_gpu();
    int fd = memfd_create("probe", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, 1 << 20))
        fail("memfd: %s", strerror(errno));
    char *shared = (char *)mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char *write_only = (char *)mmap(nullptr, 1 << 20, PROT_WRITE, MAP_SHARED, fd, 0);
    char *private_ = (char *)mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    const unsigned both = cudaHostRegisterMapped | cudaHostRegisterPortable;
    ask_one_register("memfd page", shared, 4096, both | cudaHostRegisterIoMemory, "with IoMemory");
    ask_one_register("memfd page", shared, 4096, both, "without");
    ask_one_register("memfd page, 8 bytes at 0x800", shared + 0x800, 8, both, "without");
    ask_one_register("memfd page, 8 bytes at 0x800", shared + 0x800, 8,
                     both | cudaHostRegisterIoMemory, "with IoMemory");
    ask_one_register("memfd, 1 MiB", shared, 1 << 20, both, "without");
    ask_one_register("memfd page mapped write-only", write_only, 4096, both, "without");
    ask_one_register("anonymous page", private_, 4096, both | cudaHostRegisterIoMemory,
                     "with IoMemory");
    ask_one_register("anonymous page", private_, 4096, both, "without");
    // Twice the same page, and two ranges in one page.
    cudaError_t a = cudaHostRegister(shared + 0x800, 8, both),
                b = cudaHostRegister(shared + 0xa00, 8, both),
                c = cudaHostRegister(shared + 0x800, 8, both);
    say("8 bytes at 0x800: %s; 8 more at 0xa00 of the same page: %s; the first again: %s",
        cudaGetErrorName(a), cudaGetErrorName(b), cudaGetErrorName(c));
    cudaGetLastError();
    // A kernel's store to such a page, seen by the CPU through another mapping.
    char *other = (char *)mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    RT(cudaHostRegister(shared + 8192, 4096, both));
    lazy_kernel<<<1, 1, 0, g.user>>>((unsigned long long *)(shared + 8192));
    RT(cudaStreamSynchronize(g.user));
    say("a kernel's store to a memfd page through another mapping: %llu",
        *(volatile unsigned long long *)(other + 8192));
}

// ---- (i) Order ----

static void ask_order(const test_case &t)
{
    gpu g = open_gpu();
    const size_t sizes[] = {64, 4096, 65536};
    const int rounds[] = {100000, 20000, 4000};
    // Two copies on one stream count as one message whose second part is the flag.
    for (int two = 0; two < 2; two++)
        for (int s = 0; s < 3; s++) {
            size_t size = sizes[s];
            unsigned long long count = (unsigned long long)rounds[s] / (two ? 2 : 1);
            RT(cudaMemset(g.mem, 0, 4 << 20));
            volatile unsigned long long *result = (volatile unsigned long long *)(g.flags + 64);
            g.flags[0] = g.flags[1] = 0;
            result[0] = result[1] = result[2] = 0;
            volatile unsigned long long *first = (volatile unsigned long long *)g.mem;
            volatile unsigned long long *last =
                two ? (volatile unsigned long long *)(g.mem + (2 << 20))
                    : (volatile unsigned long long *)(g.mem + size - 8);
            // With two copies the kernel looks at the last word of the data: it has to be there if
            // the flag is.
            order_kernel<<<1, 1, 0, g.user>>>(
                two ? (volatile unsigned long long *)(g.mem + size - 8) : first, last, count,
                result, g.flags, g.flags + 1);
            RT(cudaGetLastError());
            double until = cases_now() + 2;
            while (!g.flags[1] && cases_now() < until)
                ;
            size_t slots = std::min<size_t>(64, (2 << 20) / size), flag_base = 2 << 20;
            double began = us();
            for (unsigned long long i = 1; i <= count; i++) {
                size_t slot = i % slots;
                if (!slot)
                    DR(cuStreamSynchronize(g.copy)); // the slots are free again
                unsigned long long *w = (unsigned long long *)(g.pinned + slot * size);
                for (size_t k = 0; k < size / 8; k++)
                    w[k] = i;
                DR(cuMemcpyHtoDAsync((CUdeviceptr)g.mem, w, size, g.copy));
                if (two) {
                    unsigned long long *f = (unsigned long long *)(g.pinned + flag_base + slot * 8);
                    *f = i;
                    DR(cuMemcpyHtoDAsync((CUdeviceptr)g.mem + (2 << 20), f, 8, g.copy));
                }
                if (us() - began > 6e6)
                    break;
            }
            DR(cuStreamSynchronize(g.copy));
            double took = us() - began;
            usleep(2000);
            g.flags[0] = 1;
            RT(cudaStreamSynchronize(g.user));
            say("%s of %zu B: %llu values seen by the kernel, the last is %llu; %llu TIMES OUT OF ORDER; %.2f us a round",
                two ? "a copy, then a copy of 8 B behind it" : "one copy", size, result[1],
                result[2], result[0], took / (double)count);
        }
    (void)t;
}

int main(int argc, char **argv)
{
    std::vector<test_case> cases = {
        {"latency", 12, ask_latency, 0, false},  {"launch", 14, ask_launch, 0, false},
        {"dmabuf", 8, ask_dmabuf, 0, false},     {"pointers", 8, ask_pointers, 0, false},
        {"register", 8, ask_register, 0, false}, {"managed", 8, ask_managed, 0, false},
        {"order", 30, ask_order, 0, false},      {"neighbours", 8, ask_neighbours, 0, false},
    };
    for (int b = 0; b < B_COUNT; b++)
        cases.push_back(
            {std::string("beside ") + blocker_names[b], 8, ask_blocker, b, b >= B_CAPTURE});
    cases.push_back({"freed", 8, ask_freed, 0, true});
    cases.push_back({"unmapped", 8, ask_unmapped, 0, true});
    cases.push_back({"context destroyed", 8, ask_context_destroyed, 0, true});
    cases.push_back({"device reset", 8, ask_device_reset, 0, true});
    cases.push_back({"kernel trapped", 8, ask_failed_kernel, 0, true});
    cases.push_back({"kernel with a bad address", 8, ask_failed_kernel, 1, true});
    return cases_main(cases, argc, argv);
}
