// SPDX-License-Identifier: BSD-2-Clause
// RDMA that a GPU starts: kernels post WRITEs, READs, atomics, masked atomics, inline data and
// SENDs on RC and DC queue pairs, ring the doorbells themselves and poll the CQs. Rings, records,
// CQs and data lie in host memory and in GPU memory of each kind; all data is compared. Each case
// prints one line.
//
//     hcasim run kernel_post [--only TEXT] [--list] [--cpu]
//
// --cpu: the CPU posts what a kernel would, in host memory, on a machine without a GPU.
// Lines that begin with "@|" are measurements: what, queue, data, operation, bytes, microseconds.
#include "rig.cuh"

static const uint64_t LIMIT_NS = 3000000000ull; // for one completion

__global__ void ops_kernel(queue q, const op *ops, uint32_t count, uint64_t limit_ns, outcome *out)
{
    run_ops(q, ops, count, limit_ns, out);
}

__global__ void again_kernel(queue q, op o, uint32_t rounds, uint32_t batch, uint64_t limit_ns,
                             uint32_t *each, outcome *out)
{
    run_again(q, o, rounds, batch, limit_ns, each, out);
}

// Adds to the word, again and again, until told to stop or for a while. Counts what it added.
__global__ void hammer_kernel(unsigned long long *word, volatile int *stop,
                              unsigned long long *added, unsigned long long limit_ns)
{
    unsigned long long mine = 0, until = clock_ns() + limit_ns;
    while (clock_ns() < until) {
        for (int i = 0; i < 64; i++)
            atomicAdd_system(word, 1ull);
        mine += 64;
        if (!(mine & 1023) && *stop)
            break;
    }
    atomicAdd_system(added, mine);
}

// The first thread of each block looks whether it is to stop; the others only take their places.
__global__ void busy_kernel(volatile int *stop, volatile int *started, unsigned long long limit_ns)
{
    unsigned long long until = clock_ns() + limit_ns;
    if (!threadIdx.x) {
        *started = 1;
        while (!*stop && clock_ns() < until)
            __nanosleep(2000);
    }
    __syncthreads();
}

// Posts, then fails before the completion can come.
__global__ void post_and_trap_kernel(queue q, op o)
{
    uint32_t first = write_wqe(q, o);
    ring_bell(q, first);
    __trap();
}

// What the kernels report to: pinned memory, and a stream of each.
struct stage {
    outcome *out;
    op *ops;
    uint32_t *each;
    volatile int *flags;
    cudaStream_t post, other;
};

static const uint32_t OPS_MAX = 256, ROUNDS_MAX = 4096;

static stage &get_stage(void)
{
    static stage s;
    if (s.out)
        return s;
    if (on_cpu) {
        s.out = (outcome *)calloc(1, sizeof(outcome));
        s.ops = (op *)calloc(OPS_MAX, sizeof(op));
        s.each = (uint32_t *)calloc(ROUNDS_MAX, sizeof(uint32_t));
        s.flags = (volatile int *)calloc(64, sizeof(int));
        return s;
    }
    RT(cudaSetDevice(0));
    RT(cudaFree(nullptr));
    int *flags;
    const unsigned how = cudaHostAllocMapped | cudaHostAllocPortable;
    RT(cudaHostAlloc((void **)&flags, 4096, how));
    RT(cudaHostAlloc((void **)&s.ops, OPS_MAX * sizeof(op), how));
    RT(cudaHostAlloc((void **)&s.each, ROUNDS_MAX * sizeof(uint32_t), how));
    RT(cudaHostAlloc((void **)&s.out, sizeof(outcome), how));
    s.flags = flags;
    RT(cudaStreamCreateWithFlags(&s.post, cudaStreamNonBlocking));
    RT(cudaStreamCreateWithFlags(&s.other, cudaStreamNonBlocking));
    // All kernels are loaded now: loading waits for kernels that run.
    cudaFuncAttributes a;
    RT(cudaFuncGetAttributes(&a, ops_kernel));
    RT(cudaFuncGetAttributes(&a, again_kernel));
    RT(cudaFuncGetAttributes(&a, hammer_kernel));
    RT(cudaFuncGetAttributes(&a, busy_kernel));
    RT(cudaFuncGetAttributes(&a, post_and_trap_kernel));
    return s;
}

static hca &get_hca(void)
{
    static hca h;
    if (!h.ctx)
        h = open_hca();
    return h;
}

static const char *status_text(uint32_t status)
{
    static char text[64];
    if (status == POST_TIMEOUT)
        return "no completion";
    snprintf(text, sizeof(text), "error completion, syndrome 0x%02x", status & 0xff);
    return text;
}

// Lets the kernel run the ops. Returns its verdict; out holds the rest.
static outcome run(rig &r, const std::vector<op> &ops, uint64_t limit_ns = LIMIT_NS)
{
    stage &s = get_stage();
    NEED(ops.size() <= OPS_MAX, "more ops than there is room for");
    std::copy(ops.begin(), ops.end(), s.ops);
    memset(s.out, 0, sizeof(outcome));
    s.out->status = 99;
    if (on_cpu) {
        run_ops(r.q, s.ops, (uint32_t)ops.size(), limit_ns, s.out);
    } else {
        ops_kernel<<<1, 1, 0, s.post>>>(r.q, s.ops, (uint32_t)ops.size(), limit_ns, s.out);
        RT(cudaGetLastError());
        RT(cudaStreamSynchronize(s.post));
    }
    r.q.pi = s.out->pi;
    r.q.ci = s.out->ci;
    r.q.half = s.out->half;
    return *s.out;
}

static void must_run(rig &r, const std::vector<op> &ops, const char *what)
{
    outcome o = run(r, ops);
    NEED(o.status == POST_OK, "%s: op %u of %zu: %s", what, o.failed_at + 1, ops.size(),
         status_text(o.status));
}

struct times {
    double median, mean;
};

static times again(rig &r, const op &o, uint32_t rounds, uint32_t batch, const char *what)
{
    stage &s = get_stage();
    rounds = std::min(rounds, ROUNDS_MAX);
    memset(s.out, 0, sizeof(outcome));
    s.out->status = 99;
    if (on_cpu) {
        run_again(r.q, o, rounds, batch, LIMIT_NS, s.each, s.out);
    } else {
        again_kernel<<<1, 1, 0, s.post>>>(r.q, o, rounds, batch, LIMIT_NS, s.each, s.out);
        RT(cudaGetLastError());
        RT(cudaStreamSynchronize(s.post));
    }
    NEED(s.out->status == POST_OK, "%s, round %u of %u: %s", what, s.out->failed_at, rounds,
         status_text(s.out->status));
    r.q.pi = s.out->pi;
    r.q.ci = s.out->ci;
    r.q.half = s.out->half;
    std::vector<double> v;
    for (uint32_t i = 0; i < rounds; i++)
        v.push_back(s.each[i] / 1000.0 / batch);
    return {cases_median(v), s.out->ns / 1000.0 / rounds / batch};
}

// ---- The table of queues and data ----

struct plan {
    shape s;
    kind data;
    bool dmabuf;
    std::string name;
};

static std::vector<plan> plans;

static std::string shape_name(const shape &s)
{
    std::string t = s.dc ? "DC" : "RC";
    t += s.allocator ? " by verbs with allocators" : s.devx ? " by DevX" : " by verbs";
    if (s.devx || s.allocator)
        t += std::string(", queue ") + kind_names[s.ring];
    if (s.devx && s.records != s.ring)
        t += std::string(", records ") + kind_names[s.records];
    if (s.devx)
        t += s.collapsed ? ", collapsed CQ" : ", ordinary CQ";
    if (s.dmabuf_umem)
        t += ", umems of dma-bufs";
    return t;
}

static const char *const bell_names[BELL_COUNT] = {
    "record, doorbell", "doorbell, record, doorbell", "BlueFlame, record, doorbell",
    "record, alternating doorbells", "doorbell without record"};

// ---- Each operation once, all data compared ----

static void all_operations(const test_case &t)
{
    const plan &p = plans[(size_t)t.arg];
    get_stage();
    hca &h = get_hca();
    if (p.s.dbr_mode && !has_no_record_mode(h))
        skip("this device has no such queues; hcasim run --profile cx8 has");
    rig r = rig_new(h, p.s);
    memory near = mem_new(p.data, 4 << 20), far = mem_new(p.data, 4 << 20);
    struct ibv_mr *near_mr = reg(h, near, p.dmabuf), *far_mr = reg(h, far, p.dmabuf);
    op base = {};
    base.lkey = near_mr->lkey;
    base.rkey = far_mr->rkey;
    base.local = (uint64_t)(uintptr_t)near.at;
    base.remote = (uint64_t)(uintptr_t)far.at;

    // WRITE and READ of several lengths, also from odd addresses.
    const size_t sizes[] = {1, 8, 64, 100, 4096, 5000, 65536, 1 << 20};
    unsigned seed = 1;
    for (size_t size : sizes)
        for (unsigned odd = 0; odd < 2; odd++) {
            op o = base;
            o.size = (uint32_t)size;
            o.opcode = WQE_WRITE;
            o.local += odd * 3;
            o.remote += odd * 5;
            char what[64];
            mem_fill(near, odd * 3, size, seed++);
            snprintf(what, sizeof(what), "WRITE of %zu B%s", size, odd ? " at odd addresses" : "");
            must_run(r, {o}, what);
            std::string d = mem_differs(near, odd * 3, far, odd * 5, size);
            NEED(d.empty(), "%s: %s", what, d.c_str());
            mem_fill(far, odd * 5, size, seed++);
            o.opcode = WQE_READ;
            snprintf(what, sizeof(what), "READ of %zu B%s", size, odd ? " at odd addresses" : "");
            must_run(r, {o}, what);
            d = mem_differs(far, odd * 5, near, odd * 3, size);
            NEED(d.empty(), "%s: %s", what, d.c_str());
        }

    // Inline WRITE.
    op in = base;
    in.opcode = WQE_WRITE;
    in.inline_data = 1;
    in.a = 0x1122334455667788ull;
    in.b = 0x99aabbccddeeff00ull;
    in.mask_a = 0x0102030405060708ull;
    for (uint32_t size : {4u, 8u, 12u, 24u}) {
        unsigned char got[24];
        in.size = size;
        must_run(r, {in}, "inline WRITE");
        mem_copy(got, far.at, size);
        NEED(!memcmp(got, &in.a, size < 8 ? size : 8) &&
                 (size < 16 || !memcmp(got + 8, &in.b, 8)) &&
                 (size < 24 || !memcmp(got + 16, &in.mask_a, 8)),
             "inline WRITE of %u B: wrong data", size);
    }

    // Atomics. The answers of the 8-byte ones come in host order, those of 4 bytes are compared in
    // both orders.
    uint64_t word = 1000, answer = 0;
    mem_copy(far.at, &word, 8);
    op a = base;
    a.size = 8;
    a.opcode = WQE_FA;
    a.a = 7;
    must_run(r, {a}, "fetch and add");
    mem_copy(&word, far.at, 8);
    mem_copy(&answer, near.at, 8);
    NEED(word == 1007 && answer == 1000,
         "fetch and add: the word is %llu and the answer %llu, should be 1007 and 1000",
         (unsigned long long)word, (unsigned long long)answer);
    a.opcode = WQE_CAS;
    a.a = 5;
    a.b = 1007;
    must_run(r, {a}, "compare and swap");
    a.a = 6;
    must_run(r, {a}, "compare and swap");
    mem_copy(&word, far.at, 8);
    mem_copy(&answer, near.at, 8);
    NEED(
        word == 5 && answer == 5,
        "two compare and swaps, of which the second does not match: the word is %llu and the answer %llu, should be 5 and 5",
        (unsigned long long)word, (unsigned long long)answer);
    a.opmod = 9;
    a.opcode = WQE_MASKED_FA;
    a.a = 0x00000001000000ffull;
    a.mask_a = 0x8000000080000000ull; // two fields of 32 bits
    word = 0x00000007ffffffffull;
    mem_copy(far.at, &word, 8);
    must_run(r, {a}, "masked fetch and add of 8 B");
    mem_copy(&word, far.at, 8);
    NEED(word == 0x00000008000000feull,
         "masked fetch and add of 8 B: the word is 0x%llx, should be 0x8000000fe",
         (unsigned long long)word);
    a.opcode = WQE_MASKED_CAS;
    a.a = 0xaaaaaaaaaaaaaaaaull;
    a.b = 0x00000000000000feull;
    a.mask_a = 0xffff000000000000ull;
    a.mask_b = 0xff;
    must_run(r, {a}, "masked compare and swap of 8 B");
    mem_copy(&word, far.at, 8);
    NEED(word == 0xaaaa0008000000feull,
         "masked compare and swap of 8 B: the word is 0x%llx, should be 0xaaaa0008000000fe",
         (unsigned long long)word);
    uint32_t word4 = 100, answer4 = 0;
    mem_copy(far.at, &word4, 4);
    a.size = 4;
    a.opmod = 8;
    a.opcode = WQE_MASKED_FA;
    a.a = 11;
    a.mask_a = 0;
    must_run(r, {a}, "masked fetch and add of 4 B");
    mem_copy(&word4, far.at, 4);
    mem_copy(&answer4, near.at, 4);
    NEED(word4 == 111 && (answer4 == 100 || answer4 == be32(100)),
         "masked fetch and add of 4 B: the word is %u and the answer 0x%x, should be 111 and 100",
         word4, answer4);
    a.opcode = WQE_MASKED_CAS;
    a.a = 222;
    a.b = 111;
    a.mask_a = a.mask_b = 0xffffffff;
    must_run(r, {a}, "masked compare and swap of 4 B");
    mem_copy(&word4, far.at, 4);
    NEED(word4 == 222, "masked compare and swap of 4 B: the word is %u, should be 222", word4);

    // SENDs: one from memory, one inline, and a WRITE with immediate data.
    auto recv = [&](uint64_t at) {
        struct ibv_sge sge = {(uint64_t)(uintptr_t)far.at + at, 8192, far_mr->lkey};
        struct ibv_recv_wr wr = {}, *bad;
        wr.wr_id = at;
        wr.sg_list = &sge;
        wr.num_sge = 1;
        NEED(!ibv_post_srq_recv(r.srq, &wr, &bad), "ibv_post_srq_recv");
    };
    auto arrived = [&](uint64_t at, const char *what) {
        struct ibv_wc wc = {};
        int n = 0;
        for (double until = cases_now() + 2; !n && cases_now() < until;)
            n = ibv_poll_cq(r.peer_cq, 1, &wc);
        NEED(n == 1, "%s: the receiver has no completion", what);
        NEED(wc.status == IBV_WC_SUCCESS && wc.wr_id == at, "%s: the receiver's completion: %s",
             what, ibv_wc_status_str(wc.status));
        return wc;
    };
    op s = base;
    s.opcode = WQE_SEND;
    s.size = 5000;
    recv(1 << 20);
    mem_fill(near, 0, s.size, seed++);
    must_run(r, {s}, "SEND");
    arrived(1 << 20, "SEND");
    std::string d = mem_differs(near, 0, far, 1 << 20, s.size);
    NEED(d.empty(), "SEND: %s", d.c_str());
    s.inline_data = 1;
    s.size = 16;
    s.a = 0x0011223344556677ull;
    s.b = 0x8899aabbccddeeffull;
    recv(2 << 20);
    must_run(r, {s}, "inline SEND");
    arrived(2 << 20, "inline SEND");
    uint64_t two[2];
    mem_copy(two, far.at + (2 << 20), 16);
    NEED(two[0] == s.a && two[1] == s.b, "inline SEND: wrong data");
    op w = base;
    w.opcode = WQE_WRITE_IMM;
    w.size = 64;
    w.imm = 0xcafe1234;
    recv(3 << 20);
    must_run(r, {w}, "WRITE with immediate data");
    NEED(be32(arrived(3 << 20, "WRITE with immediate data").imm_data) == 0xcafe1234,
         "WRITE with immediate data: another value");

    // NOP and DUMP complete, and the ring is crossed several times.
    op nop = {}, dump = base;
    must_run(r, {nop, nop, nop}, "NOP");
    dump.opcode = WQE_DUMP;
    dump.size = 8192;
    must_run(r, {dump, nop, dump}, "DUMP");
    op small = base;
    small.opcode = WQE_WRITE;
    small.size = 8;
    for (int i = 0; i < 4; i++)
        must_run(r, std::vector<op>(200, small), "200 WRITEs");
    if (!on_cpu)
        RT(cudaDeviceSynchronize());
    NEED(!ibv_dereg_mr(near_mr) && !ibv_dereg_mr(far_mr), "ibv_dereg_mr: %s", strerror(errno));
    rig_end(r);
}

// ---- Latency and rate ----

static void latency(const test_case &t)
{
    const plan &p = plans[(size_t)t.arg];
    get_stage();
    hca &h = get_hca();
    rig r = rig_new(h, p.s);
    memory near = mem_new(p.data, 4 << 20), far = mem_new(p.data, 4 << 20);
    struct ibv_mr *near_mr = reg(h, near, false), *far_mr = reg(h, far, false);
    op o = {};
    o.lkey = near_mr->lkey;
    o.rkey = far_mr->rkey;
    o.local = (uint64_t)(uintptr_t)near.at;
    o.remote = (uint64_t)(uintptr_t)far.at;
    std::string queue_name =
        std::string(p.s.dc ? "DC" : "RC") + ", " + (p.s.devx ? kind_names[p.s.ring] : "host");
    static const struct {
        uint32_t opcode, size, rounds, batch;
        const char *name;
    } wanted[] = {{WQE_WRITE, 64, 1000, 1, "WRITE"},
                  {WQE_WRITE, 4096, 1000, 1, "WRITE"},
                  {WQE_WRITE, 65536, 300, 1, "WRITE"},
                  {WQE_WRITE, 1 << 20, 40, 1, "WRITE"},
                  {WQE_READ, 64, 1000, 1, "READ"},
                  {WQE_READ, 4096, 1000, 1, "READ"},
                  {WQE_READ, 65536, 300, 1, "READ"},
                  {WQE_READ, 1 << 20, 40, 1, "READ"},
                  {WQE_FA, 8, 500, 1, "fetch and add"},
                  {WQE_WRITE, 64, 200, 32, "WRITE, 32 behind a doorbell"},
                  {WQE_WRITE, 4096, 100, 32, "WRITE, 32 behind a doorbell"}};
    for (const auto &w : wanted) {
        o.opcode = w.opcode;
        o.size = w.size;
        again(r, o, 20, w.batch, w.name);
        times v = again(r, o, w.rounds, w.batch, w.name);
        say("@|kernel|%s|%s|%s|%u|%.2f|%.2f", queue_name.c_str(), kind_names[p.data], w.name,
            w.size, v.median, v.mean);
    }
    rig_end(r);
}

// ---- Single questions ----

static shape rc_devx(kind ring)
{
    shape s = {};
    s.devx = s.collapsed = true;
    s.ring = s.records = ring;
    return s;
}

// A kernel adds to the word that the device adds to.
static void hammer(const test_case &t)
{
    if (on_cpu)
        skip("needs a GPU");
    stage &st = get_stage();
    hca &h = get_hca();
    rig r = rig_new(h, rc_devx(HOST));
    memory near = mem_new(HOST, 4096), far = mem_new(t.arg ? MANAGED : CUDA, 4096);
    struct ibv_mr *near_mr = reg(h, near, false), *far_mr = reg(h, far, false);
    op o = {};
    o.opcode = WQE_FA;
    o.size = 8;
    o.lkey = near_mr->lkey;
    o.rkey = far_mr->rkey;
    o.local = (uint64_t)(uintptr_t)near.at;
    o.remote = (uint64_t)(uintptr_t)far.at;
    o.a = 1;
    unsigned long long *added;
    RT(cudaMalloc((void **)&added, 8));
    RT(cudaMemset(added, 0, 8));
    RT(cudaDeviceSynchronize());
    st.flags[0] = 0;
    hammer_kernel<<<4, 64, 0, st.other>>>((unsigned long long *)far.at, st.flags, added,
                                          10000000000ull);
    RT(cudaGetLastError());
    const uint32_t rounds = t.arg ? 200 : 2000; // managed memory moves back and forth
    times v = again(r, o, rounds, 1, "fetch and add");
    st.flags[0] = 1;
    RT(cudaStreamSynchronize(st.other));
    unsigned long long sum = 0, word = 0;
    mem_copy(&sum, added, 8);
    mem_copy(&word, far.at, 8);
    NEED(word == sum + rounds,
         "the kernel added %llu and the device %u, but the word is %llu: %lld are lost", sum,
         rounds, word, (long long)(sum + rounds - word));
    remark("the kernel added %llu, the device %u; %.1f us each", sum, rounds, v.median);
    rig_end(r);
}

// The GPU has no room for another kernel: the device's atomics must go on.
static void full_gpu(const test_case &)
{
    if (on_cpu)
        skip("needs a GPU");
    stage &st = get_stage();
    hca &h = get_hca();
    rig r = rig_new(h, rc_devx(HOST));
    memory near = mem_new(HOST, 4096), far = mem_new(CUDA, 4096);
    struct ibv_mr *near_mr = reg(h, near, false), *far_mr = reg(h, far, false);
    int sms, blocks;
    RT(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    RT(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, busy_kernel, 1024, 0));
    // The posting kernel has to run, too: the CPU posts here, as a proxy does.
    st.flags[0] = st.flags[1] = 0;
    busy_kernel<<<blocks * sms, 1024, 0, st.other>>>(st.flags, st.flags + 1, 8000000000ull);
    RT(cudaGetLastError());
    for (double until = cases_now() + 2; !st.flags[1] && cases_now() < until;)
        ;
    usleep(20000);
    op o = {};
    o.opcode = WQE_FA;
    o.size = 8;
    o.lkey = near_mr->lkey;
    o.rkey = far_mr->rkey;
    o.local = (uint64_t)(uintptr_t)near.at;
    o.remote = (uint64_t)(uintptr_t)far.at;
    o.a = 3;
    op w = o;
    w.opcode = WQE_WRITE;
    w.size = 64;
    w.remote += 2048;
    run_again(r.q, w, 100, 1, LIMIT_NS, st.each, st.out);
    NEED(st.out->status == POST_OK, "a WRITE to GPU memory while a kernel fills the GPU: %s",
         status_text(st.out->status));
    r.q.pi = st.out->pi;
    r.q.ci = st.out->ci;
    run_again(r.q, o, 10, 1, LIMIT_NS, st.each, st.out);
    outcome out = *st.out;
    double first = st.each[0] / 1000.0, last = st.each[9] / 1000.0;
    st.flags[0] = 1;
    RT(cudaStreamSynchronize(st.other));
    NEED(out.status == POST_OK, "fetch and add while a kernel fills the GPU: %s",
         status_text(out.status));
    unsigned long long word = 0;
    mem_copy(&word, far.at, 8);
    NEED(word == 30, "10 fetch and adds of 3: the word is %llu", word);
    remark("the first took %.0f us, the tenth %.0f us", first, last);
    rig_end(r);
}

// Memory that is freed while it is registered.
static void freed_data(const test_case &t)
{
    if (on_cpu)
        skip("needs a GPU");
    get_stage();
    hca &h = get_hca();
    rig r = rig_new(h, rc_devx(HOST));
    memory near = mem_new(HOST, 1 << 20), far = mem_new(CUDA, 16 << 20);
    struct ibv_mr *near_mr = reg(h, near, false), *far_mr = reg(h, far, false);
    op o = {};
    o.opcode = t.arg == 1 ? WQE_READ : t.arg == 2 ? WQE_FA : WQE_WRITE;
    o.size = t.arg == 2 ? 8 : 4096;
    o.lkey = near_mr->lkey;
    o.rkey = far_mr->rkey;
    o.local = (uint64_t)(uintptr_t)near.at;
    o.remote = (uint64_t)(uintptr_t)far.at;
    must_run(r, {o}, "the same operation before");
    RT(cudaFree(far.at));
    outcome out = run(r, {o});
    NEED(out.status & POST_ERROR, "the memory is freed, but the operation ends with: %s",
         out.status == POST_OK ? "success" : status_text(out.status));
    remark("%s", status_text(out.status));
    // The GPU is of use afterwards.
    memory again_mem = mem_new(CUDA, 4096);
    mem_fill(again_mem, 0, 4096, 5);
    NEED(!ibv_dereg_mr(far_mr), "ibv_dereg_mr of freed memory: %s", strerror(errno));
    (void)near_mr;
    rig_end(r);
}

static void freed_ring(const test_case &)
{
    if (on_cpu)
        skip("needs a GPU");
    get_stage();
    hca &h = get_hca();
    shape s = rc_devx(CUDA);
    rig r = rig_new(h, s);
    memory near = mem_new(HOST, 4096);
    struct ibv_mr *near_mr = reg(h, near, false);
    op o = {};
    o.opcode = WQE_WRITE;
    o.size = 8;
    o.lkey = near_mr->lkey;
    o.rkey = near_mr->rkey;
    o.local = o.remote = (uint64_t)(uintptr_t)near.at;
    must_run(r, {o}, "a WRITE before");
    RT(cudaFree(r.ring.m.at));
    // The CPU rings for a WQE that nobody can read any more.
    *(volatile uint64_t *)r.q.uar = (uint64_t)be32(r.q.qpn << 8) << 32 | be32((r.q.pi + 1) << 8);
    fence();
    usleep(200000);
    rig_end(r);
    remark("the QP was destroyed");
}

// A kernel fails behind its doorbell. The CUDA context is of no use from then on; the program ends
// in order all the same.
static void trapped(const test_case &t)
{
    if (on_cpu)
        skip("needs a GPU");
    stage &st = get_stage();
    hca &h = get_hca();
    rig r = rig_new(h, rc_devx(t.arg ? CUDA : HOST));
    memory near = mem_new(CUDA, 4096);
    struct ibv_mr *near_mr = reg(h, near, false);
    op o = {};
    o.opcode = WQE_WRITE;
    o.size = 64;
    o.lkey = near_mr->lkey;
    o.rkey = near_mr->rkey;
    o.local = (uint64_t)(uintptr_t)near.at;
    o.remote = (uint64_t)(uintptr_t)near.at + 2048;
    must_run(r, {o}, "a WRITE before");
    post_and_trap_kernel<<<1, 1, 0, st.post>>>(r.q, o);
    cudaError_t e = cudaStreamSynchronize(st.post);
    NEED(e != cudaSuccess, "the kernel should have failed");
    outcome after = {};
    if (!t.arg) {
        // The CPU posts another one: memory of a context that failed gives an error completion.
        r.q.pi += 1;
        run_ops(r.q, &o, 1, LIMIT_NS, &after);
        NEED(after.status & POST_ERROR, "after the kernel's failure a WRITE ends with: %s",
             after.status == POST_OK ? "success" : status_text(after.status));
        remark("%s; %s", cudaGetErrorName(e), status_text(after.status));
    } else
        remark("%s", cudaGetErrorName(e));
    NEED(!mlx5dv_devx_obj_destroy(r.qp_obj), "the QP is not destroyed: %s", strerror(errno));
    NEED(!mlx5dv_devx_obj_destroy(r.cq_obj), "the CQ is not destroyed: %s", strerror(errno));
    NEED(!ibv_dereg_mr(near_mr), "ibv_dereg_mr: %s", strerror(errno));
}

static void context_gone(const test_case &)
{
    if (on_cpu)
        skip("needs a GPU");
    get_stage();
    hca &h = get_hca();
    rig r = rig_new(h, rc_devx(HOST));
    memory near = mem_new(CUDA, 4096);
    struct ibv_mr *near_mr = reg(h, near, false);
    op o = {};
    o.opcode = WQE_WRITE;
    o.size = 64;
    o.lkey = near_mr->lkey;
    o.rkey = near_mr->rkey;
    o.local = (uint64_t)(uintptr_t)near.at;
    o.remote = (uint64_t)(uintptr_t)near.at + 2048;
    must_run(r, {o}, "a WRITE before");
    RT(cudaDeviceReset());
    outcome after = {};
    run_ops(r.q, &o, 1, LIMIT_NS, &after);
    NEED(after.status & POST_ERROR, "after cudaDeviceReset a WRITE ends with: %s",
         after.status == POST_OK ? "success" : status_text(after.status));
    remark("%s", status_text(after.status));
    NEED(!mlx5dv_devx_obj_destroy(r.qp_obj), "the QP is not destroyed: %s", strerror(errno));
    NEED(!ibv_dereg_mr(near_mr), "ibv_dereg_mr: %s", strerror(errno));
}

// A thread of the program captures a CUDA graph, in the mode that forbids other threads most. What
// the device does meanwhile must not spoil the capture. With arg, the capturing thread itself posts
// and polls.
static void capture(const test_case &t)
{
    if (on_cpu)
        skip("needs a GPU");
    stage &st = get_stage();
    hca &h = get_hca();
    shape s = {};
    rig r = rig_new(h, t.arg ? s : rc_devx(HOST));
    memory near = mem_new(CUDA, 1 << 20), far = mem_new(CUDA, 1 << 20);
    struct ibv_mr *near_mr = reg(h, near, false), *far_mr = reg(h, far, false);
    mem_fill(near, 0, 65536, 9);
    cudaGraph_t graph;
    RT(cudaStreamBeginCapture(st.other, cudaStreamCaptureModeGlobal));
    busy_kernel<<<1, 1, 0, st.other>>>(st.flags, st.flags + 1, 1000);
    std::string problem;
    if (t.arg) {
        struct ibv_sge sge = {(uint64_t)(uintptr_t)near.at, 65536, near_mr->lkey};
        struct ibv_send_wr wr = {}, *bad;
        wr.sg_list = &sge;
        wr.num_sge = 1;
        wr.opcode = IBV_WR_RDMA_WRITE;
        wr.send_flags = IBV_SEND_SIGNALED;
        wr.wr.rdma.remote_addr = (uint64_t)(uintptr_t)far.at;
        wr.wr.rdma.rkey = far_mr->rkey;
        for (int i = 0; i < 20 && problem.empty(); i++) {
            struct ibv_wc wc = {};
            int n = 0, e = ibv_post_send(r.qp, &wr, &bad);
            for (double until = cases_now() + 2; !e && !n && cases_now() < until;)
                n = ibv_poll_cq(r.own_cq, 1, &wc);
            if (e || n != 1 || wc.status)
                problem = e ? strerror(e) : n ? ibv_wc_status_str(wc.status) : "no completion";
        }
    } else {
        op o = {};
        o.opcode = WQE_WRITE;
        o.size = 65536;
        o.lkey = near_mr->lkey;
        o.rkey = far_mr->rkey;
        o.local = (uint64_t)(uintptr_t)near.at;
        o.remote = (uint64_t)(uintptr_t)far.at;
        run_again(r.q, o, 20, 1, LIMIT_NS, st.each, st.out);
        if (st.out->status != POST_OK)
            problem = status_text(st.out->status);
    }
    cudaError_t e = cudaStreamEndCapture(st.other, &graph);
    NEED(problem.empty(), "a WRITE of GPU memory during the capture: %s", problem.c_str());
    NEED(!e, "the capture is spoiled: %s", cudaGetErrorName(e));
    std::string d = mem_differs(near, 0, far, 0, 65536);
    NEED(d.empty(), "WRITEs during the capture: %s", d.c_str());
    rig_end(r);
}

// The IoMemory flag is taken off for doorbell pages and for nothing else.
static void io_memory(const test_case &)
{
    if (on_cpu)
        skip("needs a GPU");
    get_stage();
    hca &h = get_hca();
    const unsigned all =
        cudaHostRegisterMapped | cudaHostRegisterPortable | cudaHostRegisterIoMemory;
    struct mlx5dv_devx_uar *uar = mlx5dv_devx_alloc_uar(h.ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
    NEED(uar, "mlx5dv_devx_alloc_uar: %s", strerror(errno));
    cudaError_t e = cudaHostRegister(uar->reg_addr, 8, all);
    NEED(!e, "8 bytes of a doorbell page: %s", cudaGetErrorName(e));
    RT(cudaHostUnregister(uar->reg_addr));
    e = cudaHostRegister(uar->base_addr, 4096, all);
    NEED(!e, "a whole doorbell page: %s", cudaGetErrorName(e));
    RT(cudaHostUnregister(uar->base_addr));
    void *page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    e = cudaHostRegister(page, 4096, all);
    NEED(e, "an ordinary page is taken as IoMemory, which CUDA refuses");
    cudaGetLastError();
    remark("an ordinary page: %s, as without hcasim", cudaGetErrorName(e));
}

// Several queues on one doorbell page; each kernel thread drives one.
__global__ void many_kernel(const queue *queues, const op *ops, uint32_t rounds, uint64_t limit_ns,
                            outcome *outs)
{
    uint32_t i = blockIdx.x;
    queue q = queues[i];
    uint32_t status = POST_OK, k;
    for (k = 0; k < rounds && status == POST_OK; k++) {
        uint32_t first = write_wqe(q, ops[i]);
        ring_bell(q, first);
        status = wait_wqe(q, first, limit_ns);
    }
    outs[i].failed_at = k;
    outs[i].status = status;
}

static void many_queues(const test_case &t)
{
    if (on_cpu)
        skip("needs a GPU");
    stage &st = get_stage();
    hca &h = get_hca();
    const uint32_t count = 8, rounds = 500;
    std::vector<rig> rigs;
    memory near = mem_new(CUDA, 1 << 20), far = mem_new(CUDA, 1 << 20);
    struct ibv_mr *near_mr = reg(h, near, false), *far_mr = reg(h, far, false);
    queue *queues;
    op *ops;
    outcome *outs;
    RT(cudaHostAlloc((void **)&queues, count * sizeof(queue), cudaHostAllocMapped));
    RT(cudaHostAlloc((void **)&ops, count * sizeof(op), cudaHostAllocMapped));
    RT(cudaHostAlloc((void **)&outs, count * sizeof(outcome), cudaHostAllocMapped));
    for (uint32_t i = 0; i < count; i++) {
        shape s = {};
        s.devx = t.arg;
        s.collapsed = t.arg;
        s.ring = s.records = CUDA;
        rigs.push_back(rig_new(h, s));
        queues[i] = rigs[i].q;
        op o = {};
        o.opcode = WQE_FA;
        o.size = 8;
        o.a = i + 1;
        o.lkey = near_mr->lkey;
        o.rkey = far_mr->rkey;
        o.local = (uint64_t)(uintptr_t)near.at + 64 * i;
        o.remote = (uint64_t)(uintptr_t)far.at + 64 * i;
        ops[i] = o;
        outs[i].status = 99;
    }
    cudaFuncAttributes a;
    RT(cudaFuncGetAttributes(&a, many_kernel));
    double began = cases_now();
    many_kernel<<<count, 1, 0, st.post>>>(queues, ops, rounds, LIMIT_NS, outs);
    RT(cudaGetLastError());
    RT(cudaStreamSynchronize(st.post));
    double took = cases_now() - began;
    for (uint32_t i = 0; i < count; i++) {
        NEED(outs[i].status == POST_OK, "queue %u, round %u: %s", i, outs[i].failed_at,
             status_text(outs[i].status));
        uint64_t word = 0;
        mem_copy(&word, far.at + 64 * i, 8);
        NEED(word == (uint64_t)rounds * (i + 1), "queue %u: the word is %llu, should be %u", i,
             (unsigned long long)word, rounds * (i + 1));
    }
    remark("%.1f us for one of each queue", took * 1e6 / rounds);
}

// A program that says nothing for a while, and whose kernel then rings: the device has to wake up.
static void after_silence(const test_case &t)
{
    get_stage();
    hca &h = get_hca();
    rig r = rig_new(h, rc_devx(t.arg ? CUDA : HOST));
    memory near = mem_new(HOST, 4096);
    struct ibv_mr *mr = reg(h, near, false);
    op o = {};
    o.opcode = WQE_WRITE;
    o.size = 64;
    o.lkey = o.rkey = 0;
    o.lkey = mr->lkey;
    o.rkey = mr->rkey;
    o.local = (uint64_t)(uintptr_t)near.at;
    o.remote = o.local + 2048;
    usleep(1500000);
    must_run(r, {o}, "the first WRITE after 1.5 s");
    usleep(1500000);
    must_run(r, {o}, "a WRITE after another 1.5 s");
    rig_end(r);
}

static void add_plan(std::vector<test_case> &cases, const shape &s, kind data, bool dmabuf,
                     void (*run)(const test_case &), double limit)
{
    plan p = {s, data, dmabuf, ""};
    p.name = shape_name(s) + ", data " + kind_names[data] + (dmabuf ? " as a dma-buf" : "");
    if (s.order != BELL_RECORD_BELL)
        p.name += std::string(", ") + bell_names[s.order];
    if (run == latency)
        p.name = "latency: " + p.name;
    if (on_cpu && (s.ring != HOST || s.records != HOST || data != HOST || dmabuf || s.dmabuf_umem))
        return;
    plans.push_back(p);
    cases.push_back({p.name, limit, run, (int)plans.size() - 1, false});
}

int main(int argc, char **argv)
{
    std::vector<test_case> cases;
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--cpu"))
            on_cpu = true;
    for (bool dc : {false, true}) {
        shape s = {};
        s.dc = dc;
        for (kind data : {HOST, PINNED, CUDA, VMM, MANAGED})
            add_plan(cases, s, data, false, all_operations, 20);
        add_plan(cases, s, CUDA, true, all_operations, 20);
        s.devx = true;
        for (kind ring : {HOST, CUDA}) {
            s.ring = s.records = ring;
            s.collapsed = true;
            for (kind data : {HOST, CUDA, VMM, MANAGED})
                add_plan(cases, s, data, false, all_operations, 20);
            s.collapsed = false;
            add_plan(cases, s, ring, false, all_operations, 20);
        }
    }
    for (kind ring : {HOST, CUDA})
        for (bell b : {BELL_BELL_RECORD_BELL, BELL_BLUE_FLAME, BELL_HALVES, BELL_NO_RECORD}) {
            shape s = rc_devx(ring);
            s.order = b;
            s.dbr_mode = b == BELL_NO_RECORD ? 1 : 0;
            add_plan(cases, s, ring, false, all_operations, 20);
        }
    shape mixed = rc_devx(CUDA);
    mixed.records = HOST;
    add_plan(cases, mixed, CUDA, false, all_operations, 20);
    mixed = rc_devx(VMM);
    add_plan(cases, mixed, VMM, true, all_operations, 20);
    mixed = rc_devx(CUDA);
    mixed.dmabuf_umem = true;
    add_plan(cases, mixed, CUDA, true, all_operations, 20);
    for (kind ring : {HOST, CUDA}) {
        shape s = {};
        s.allocator = true;
        s.ring = ring;
        add_plan(cases, s, ring, false, all_operations, 20);
    }
    for (kind ring : {HOST, CUDA})
        for (kind data : {HOST, CUDA})
            add_plan(cases, rc_devx(ring), data, false, latency, 30);
    shape dc = rc_devx(HOST);
    dc.dc = true;
    add_plan(cases, dc, CUDA, false, latency, 30);
    cases.push_back({"after silence, queue host", 10, after_silence, 0, false});
    if (!on_cpu) {
        cases.push_back({"after silence, queue cudaMalloc", 10, after_silence, 1, false});
        cases.push_back({"IoMemory", 10, io_memory, 0, false});
        cases.push_back({"8 queues by verbs", 20, many_queues, 0, true});
        cases.push_back({"8 queues by DevX, queues cudaMalloc", 20, many_queues, 1, true});
        cases.push_back({"a kernel adds to the same word, cudaMalloc", 20, hammer, 0, false});
        cases.push_back({"a kernel adds to the same word, managed", 20, hammer, 1, true});
        cases.push_back({"a graph is captured meanwhile", 15, capture, 0, true});
        cases.push_back({"a graph is captured by the thread that posts", 15, capture, 1, true});
        cases.push_back({"a kernel fills the GPU", 20, full_gpu, 0, true});
        cases.push_back({"WRITE to freed memory", 15, freed_data, 0, true});
        cases.push_back({"READ of freed memory", 15, freed_data, 1, true});
        cases.push_back({"fetch and add of freed memory", 15, freed_data, 2, true});
        cases.push_back({"a ring that is freed", 15, freed_ring, 0, true});
        cases.push_back({"a kernel traps, queue host", 15, trapped, 0, true});
        cases.push_back({"a kernel traps, queue cudaMalloc", 15, trapped, 1, true});
        cases.push_back({"the CUDA context is gone", 15, context_gone, 0, true});
    }
    return cases_main(cases, argc, argv);
}
