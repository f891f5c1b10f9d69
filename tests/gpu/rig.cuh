// SPDX-License-Identifier: BSD-2-Clause
// Makes the memory, queues and connections of the cases: memory of each kind, RC and DC queue pairs
// by verbs and by DevX. Without a GPU (on_cpu) all memory is host memory, and the CPU posts.
#pragma once

#include "cases.cuh"
#include "queue.cuh"

#include <cuda.h>
#include <cuda_runtime.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <set>
#include <sys/mman.h>

static bool on_cpu;

#define RT(call)                                                                                   \
    do {                                                                                           \
        cudaError_t e_ = (call);                                                                   \
        if (e_ != cudaSuccess)                                                                     \
            fail("%s: %s (line %d)", #call, cudaGetErrorName(e_), __LINE__);                       \
    } while (0)
#define NEED(condition, ...)                                                                       \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail(__VA_ARGS__);                                                                     \
    } while (0)

// ---- Memory ----

enum kind {
    HOST,
    PINNED,
    CUDA,
    VMM,
    MANAGED,
    KINDS
};
static const char *const kind_names[KINDS] = {"host", "pinned", "cudaMalloc", "VMM", "managed"};

// Functions of the driver, found by the runtime: the program starts on a machine without libcuda,
// too.
struct driver {
    CUresult (*create)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
                       unsigned long long);
    CUresult (*reserve)(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
    CUresult (*map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long);
    CUresult (*access)(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t);
    CUresult (*dmabuf)(void *, CUdeviceptr, size_t, CUmemRangeHandleType, unsigned long long);
};

static void *driver_symbol(const char *name)
{
    void *f = nullptr;
    cudaDriverEntryPointQueryResult found;
    RT(cudaGetDriverEntryPointByVersion(name, &f, 12000, cudaEnableDefault, &found));
    NEED(found == cudaDriverEntryPointSuccess && f, "the driver has no %s", name);
    return f;
}

static const driver &driver_api(void)
{
    static driver d;
    if (!d.create) {
        d.reserve = (decltype(d.reserve))driver_symbol("cuMemAddressReserve");
        d.map = (decltype(d.map))driver_symbol("cuMemMap");
        d.access = (decltype(d.access))driver_symbol("cuMemSetAccess");
        d.dmabuf = (decltype(d.dmabuf))driver_symbol("cuMemGetHandleForAddressRange");
        d.create = (decltype(d.create))driver_symbol("cuMemCreate");
    }
    return d;
}

struct memory {
    kind of;
    char *at;
    size_t size;
};

static const size_t MEM_UNIT = 2 << 20;

static std::set<uintptr_t> registered; // pages that CUDA knows
static std::vector<void *> registrations;

// Lets kernels use these bytes of host memory, by whole pages.
static void let_gpu_use(void *from, size_t size, unsigned more_flags)
{
    if (on_cpu)
        return;
    for (uintptr_t page = (uintptr_t)from & ~4095ul; page < (uintptr_t)from + size; page += 4096) {
        if (!registered.insert(page).second)
            continue;
        cudaError_t e = cudaHostRegister(
            (void *)page, 4096, cudaHostRegisterMapped | cudaHostRegisterPortable | more_flags);
        NEED(!e, "cudaHostRegister(%s) of a page: %s",
             more_flags & cudaHostRegisterIoMemory ? "IoMemory" : "Mapped", cudaGetErrorName(e));
        void *d = nullptr;
        RT(cudaHostGetDevicePointer(&d, (void *)page, 0));
        NEED(
            d == (void *)page,
            "the GPU has another address for a page of host memory; this program cannot handle that");
        registrations.push_back((void *)page);
    }
}

static void forget_registrations(void)
{
    for (void *p : registrations)
        RT(cudaHostUnregister(p));
    registrations.clear();
    registered.clear();
}

static memory mem_new(kind of, size_t size)
{
    memory m = {of, nullptr, (size + MEM_UNIT - 1) / MEM_UNIT * MEM_UNIT};
    if (on_cpu || of == HOST) {
        void *p = mmap(nullptr, m.size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        NEED(p != MAP_FAILED, "mmap of %zu bytes: %s", m.size, strerror(errno));
        m.at = (char *)p;
        if (!on_cpu)
            RT(cudaHostRegister(p, m.size, cudaHostRegisterMapped | cudaHostRegisterPortable));
        return m;
    }
    switch (of) {
    case PINNED:
        RT(cudaHostAlloc((void **)&m.at, m.size, cudaHostAllocMapped | cudaHostAllocPortable));
        break;
    case CUDA:
        RT(cudaMalloc((void **)&m.at, m.size));
        break;
    case MANAGED:
        RT(cudaMallocManaged((void **)&m.at, m.size));
        break;
    default: {
        const driver &d = driver_api();
        CUmemAllocationProp prop = {};
        prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        prop.allocFlags.gpuDirectRDMACapable = 1;
        CUmemGenericAllocationHandle h;
        CUdeviceptr a = 0;
        CUmemAccessDesc access = {};
        access.location = prop.location;
        access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        CUresult r;
        (r = d.create(&h, m.size, &prop, 0)) || (r = d.reserve(&a, m.size, 0, 0, 0)) ||
            (r = d.map(a, m.size, 0, h, 0)) || (r = d.access(a, m.size, &access, 1));
        NEED(!r, "VMM allocation of %zu bytes: CUDA error %d", m.size, (int)r);
        m.at = (char *)a;
        break;
    }
    }
    RT(cudaMemset(m.at, 0, m.size));
    RT(cudaDeviceSynchronize());
    return m;
}

// Copies by a stream of its own, which no kernel delays.
static void mem_copy(void *to, const void *from, size_t size)
{
    static cudaStream_t stream;
    if (on_cpu) {
        memcpy(to, from, size);
        return;
    }
    if (!stream)
        RT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    RT(cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, stream));
    RT(cudaStreamSynchronize(stream));
}

static void mem_fill(const memory &m, size_t at, size_t size, unsigned seed)
{
    std::vector<char> bytes(size);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)((seed * 2654435761u + i * 40503u + (i >> 8)) >> 7);
    mem_copy(m.at + at, bytes.data(), size);
}

// Where the bytes differ, as a text; "" if nowhere.
static std::string mem_differs(const memory &a, size_t at_a, const memory &b, size_t at_b,
                               size_t size)
{
    std::vector<unsigned char> x(size), y(size);
    mem_copy(x.data(), a.at + at_a, size);
    mem_copy(y.data(), b.at + at_b, size);
    for (size_t i = 0; i < size; i++)
        if (x[i] != y[i]) {
            char text[128];
            snprintf(text, sizeof(text), "byte %zu of %zu is 0x%02x, should be 0x%02x", i, size,
                     y[i], x[i]);
            return text;
        }
    return "";
}

// ---- The device ----

struct hca {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    uint32_t pdn;
    int gid_index;
    union ibv_gid gid;
    uint8_t mac[6];
    enum ibv_mtu mtu;
};

static hca open_hca(void)
{
    hca h = {};
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    NEED(list && count > 0, "there is no RDMA device: is this run by hcasim?");
    h.ctx = ibv_open_device(list[0]);
    NEED(h.ctx, "ibv_open_device: %s", strerror(errno));
    ibv_free_device_list(list);
    h.pd = ibv_alloc_pd(h.ctx);
    NEED(h.pd, "ibv_alloc_pd: %s", strerror(errno));
    struct mlx5dv_pd pd = {};
    struct mlx5dv_obj obj = {};
    obj.pd.in = h.pd;
    obj.pd.out = &pd;
    NEED(!mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD), "mlx5dv_init_obj of a PD");
    h.pdn = pd.pdn;
    struct ibv_port_attr port = {};
    NEED(!ibv_query_port(h.ctx, 1, &port), "ibv_query_port");
    h.mtu = port.active_mtu;
    h.gid_index = 1; // RoCE v2, IPv4
    NEED(!ibv_query_gid(h.ctx, 1, h.gid_index, &h.gid), "ibv_query_gid: %s", strerror(errno));
    struct ibv_ah_attr to = {};
    to.is_global = 1;
    to.port_num = 1;
    to.grh.dgid = h.gid;
    to.grh.sgid_index = (uint8_t)h.gid_index;
    to.grh.hop_limit = 64;
    struct ibv_ah *ah = ibv_create_ah(h.pd, &to);
    NEED(ah, "ibv_create_ah: %s", strerror(errno));
    struct mlx5dv_ah av = {};
    obj.ah.in = ah;
    obj.ah.out = &av;
    NEED(!mlx5dv_init_obj(&obj, MLX5DV_OBJ_AH), "mlx5dv_init_obj of an AH");
    memcpy(h.mac, av.av->rmac, 6);
    ibv_destroy_ah(ah);
    return h;
}

static struct ibv_mr *reg(const hca &h, const memory &m, bool dmabuf)
{
    const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                       IBV_ACCESS_REMOTE_ATOMIC;
    struct ibv_mr *mr;
    if (dmabuf && !on_cpu) {
        int fd = -1;
        CUresult r = driver_api().dmabuf(&fd, (CUdeviceptr)m.at, m.size,
                                         CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
        NEED(!r, "cuMemGetHandleForAddressRange: CUDA error %d", (int)r);
        mr = ibv_reg_dmabuf_mr(h.pd, 0, m.size, (uint64_t)(uintptr_t)m.at, fd, access);
        int e = errno;
        close(fd);
        NEED(mr, "ibv_reg_dmabuf_mr of %s memory: %s", kind_names[m.of], strerror(e));
        return mr;
    }
    mr = ibv_reg_mr(h.pd, m.at, m.size, access);
    NEED(mr, "ibv_reg_mr of %s memory: %s", kind_names[m.of], strerror(errno));
    return mr;
}

// ---- Commands (DevX). A field is a place in the command: byte offset of its 32-bit word, highest
// and lowest bit ----

static void put(uint8_t *in, unsigned at, unsigned high, unsigned low, uint32_t value)
{
    uint32_t word, mask = (high - low == 31 ? 0xffffffffu : (1u << (high - low + 1)) - 1) << low;
    memcpy(&word, in + at, 4);
    word = be32((be32(word) & ~mask) | (value << low & mask));
    memcpy(in + at, &word, 4);
}

static void put_u64(uint8_t *in, unsigned at, uint64_t value)
{
    put(in, at, 31, 0, (uint32_t)(value >> 32));
    put(in, at + 4, 31, 0, (uint32_t)value);
}

static uint32_t out_id(const uint8_t *out)
{
    return (uint32_t)(out[9] << 16 | out[10] << 8 | out[11]);
}

enum {
    CMD_QUERY_HCA_CAP = 0x100,
    CMD_CREATE_CQ = 0x400,
    CMD_CREATE_QP = 0x500,
    CMD_RST2INIT = 0x502,
    CMD_INIT2RTR = 0x503,
    CMD_RTR2RTS = 0x504
};
enum {
    QPC = 0x18,
    ADS = QPC + 0x18,
    CQC = 0x10
};

// Whether send queues may do without a doorbell record (send_dbr_mode_no_dbr_ext of HCA_CAP_2).
static bool has_no_record_mode(const hca &h)
{
    uint8_t in[16] = {}, out[16 + 4096] = {};
    put(in, 0, 31, 16, CMD_QUERY_HCA_CAP);
    put(in, 4, 15, 0, 0x20 << 1 | 1);
    int e = mlx5dv_devx_general_cmd(h.ctx, in, sizeof(in), out, sizeof(out));
    NEED(!e, "QUERY_HCA_CAP: %s", strerror(errno));
    return out[16 + 0x5c] & 0x40;
}

// ---- A queue that posts, and its peer ----

struct shape {
    bool dc, devx, collapsed, allocator;
    kind ring;    // also of the CQ and the records
    kind records; // DevX: if it differs from ring
    bell order;
    unsigned dbr_mode; // send_dbr_mode of the QP context
    bool dmabuf_umem;
};

struct umem {
    memory m;
    struct mlx5dv_devx_umem *u;
};

struct rig {
    hca h;
    shape s;
    queue q;
    struct ibv_cq *peer_cq,
        *own_cq; // own_cq: of a verbs queue; of a DevX queue the CQ of its receive side
    struct ibv_srq *srq, *own_srq;
    struct ibv_qp *peer, *qp; // peer: a QP or a DCT
    struct ibv_pd *parent;
    struct mlx5dv_devx_obj *cq_obj, *qp_obj;
    struct mlx5dv_devx_uar *uar, *cq_uar;
    umem ring, cq, records;
    uint32_t peer_number;
};

static const uint64_t DC_KEY = 0x5ca1ab1e0ddba11ull;

static umem umem_new(const hca &h, kind of, size_t size, bool dmabuf)
{
    umem u = {mem_new(of, size), nullptr};
    if (dmabuf && !on_cpu) {
        struct mlx5dv_devx_umem_in in = {};
        int fd = -1;
        CUresult r = driver_api().dmabuf(&fd, (CUdeviceptr)u.m.at, u.m.size,
                                         CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
        NEED(!r, "cuMemGetHandleForAddressRange: CUDA error %d", (int)r);
        in.size = u.m.size;
        in.access = IBV_ACCESS_LOCAL_WRITE;
        in.pgsz_bitmap = 0xfffff000; // any size from a page on
        in.comp_mask = MLX5DV_UMEM_MASK_DMABUF;
        in.dmabuf_fd = fd;
        u.u = mlx5dv_devx_umem_reg_ex(h.ctx, &in);
        int e = errno;
        close(fd);
        NEED(u.u, "mlx5dv_devx_umem_reg_ex of a dma-buf: %s", strerror(e));
        return u;
    }
    u.u = mlx5dv_devx_umem_reg(h.ctx, u.m.at, size, IBV_ACCESS_LOCAL_WRITE);
    NEED(u.u, "mlx5dv_devx_umem_reg of %s memory: %s", kind_names[of], strerror(errno));
    return u;
}

static struct ibv_srq *new_srq(const hca &h)
{
    struct ibv_srq_init_attr attr = {};
    attr.attr.max_wr = 64;
    attr.attr.max_sge = 1;
    struct ibv_srq *srq = ibv_create_srq(h.pd, &attr);
    NEED(srq, "ibv_create_srq: %s", strerror(errno));
    return srq;
}

static void new_peer(rig &r)
{
    r.peer_cq = ibv_create_cq(r.h.ctx, 64, nullptr, nullptr, 0);
    NEED(r.peer_cq, "ibv_create_cq: %s", strerror(errno));
    r.srq = new_srq(r.h);
    struct ibv_qp_attr to = {};
    if (r.s.dc) {
        struct ibv_qp_init_attr_ex attr = {};
        struct mlx5dv_qp_init_attr dv = {};
        attr.qp_type = IBV_QPT_DRIVER;
        attr.send_cq = attr.recv_cq = r.peer_cq;
        attr.srq = r.srq;
        attr.comp_mask = IBV_QP_INIT_ATTR_PD;
        attr.pd = r.h.pd;
        dv.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC;
        dv.dc_init_attr.dc_type = MLX5DV_DCTYPE_DCT;
        dv.dc_init_attr.dct_access_key = DC_KEY;
        r.peer = mlx5dv_create_qp(r.h.ctx, &attr, &dv);
        NEED(r.peer, "a DCT: %s", strerror(errno));
        to.qp_state = IBV_QPS_INIT;
        to.port_num = 1;
        to.qp_access_flags =
            IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
        int e = ibv_modify_qp(r.peer, &to,
                              IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
        NEED(!e, "a DCT to INIT: %s", strerror(e));
        to.qp_state = IBV_QPS_RTR;
        to.path_mtu = r.h.mtu;
        to.min_rnr_timer = 12;
        to.ah_attr.is_global = 1;
        to.ah_attr.port_num = 1;
        to.ah_attr.grh.hop_limit = 64;
        to.ah_attr.grh.sgid_index = (uint8_t)r.h.gid_index;
        e = ibv_modify_qp(r.peer, &to,
                          IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV);
        NEED(!e, "a DCT to RTR: %s", strerror(e));
    } else {
        struct ibv_qp_init_attr attr = {};
        attr.qp_type = IBV_QPT_RC;
        attr.send_cq = attr.recv_cq = r.peer_cq;
        attr.srq = r.srq;
        attr.cap.max_send_wr = 1;
        attr.cap.max_send_sge = 1;
        r.peer = ibv_create_qp(r.h.pd, &attr);
        NEED(r.peer, "the peer's QP: %s", strerror(errno));
    }
    r.peer_number = r.peer->qp_num;
}

// Brings a verbs RC QP to RTS, connected to that QP of the same device.
static void connect_verbs(const hca &h, struct ibv_qp *qp, uint32_t to_qpn)
{
    struct ibv_qp_attr a = {};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    int e =
        ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    NEED(!e, "RC to INIT: %s", strerror(e));
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = h.mtu;
    a.dest_qp_num = to_qpn;
    a.max_dest_rd_atomic = 8;
    a.min_rnr_timer = 12;
    a.ah_attr.is_global = 1;
    a.ah_attr.port_num = 1;
    a.ah_attr.grh.dgid = h.gid;
    a.ah_attr.grh.hop_limit = 64;
    a.ah_attr.grh.sgid_index = (uint8_t)h.gid_index;
    e = ibv_modify_qp(qp, &a,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    NEED(!e, "RC to RTR: %s", strerror(e));
    a.qp_state = IBV_QPS_RTS;
    a.timeout = 14;
    a.retry_cnt = 7;
    a.rnr_retry = 7;
    a.max_rd_atomic = 8;
    e = ibv_modify_qp(qp, &a,
                      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                          IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    NEED(!e, "RC to RTS: %s", strerror(e));
}

// The allocators of a parent domain: memory of the rig's kind for whatever the library asks for.
static kind allocator_kind;
static int allocator_calls;

static void *allocate(struct ibv_pd *, void *, size_t size, size_t, uint64_t)
{
    allocator_calls++;
    return mem_new(allocator_kind, size).at;
}

static void release(struct ibv_pd *, void *, void *, uint64_t)
{
}

static void new_verbs_queue(rig &r)
{
    struct ibv_pd *pd = r.h.pd;
    if (r.s.allocator) {
        struct ibv_parent_domain_init_attr attr = {};
        attr.pd = r.h.pd;
        attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
        attr.alloc = allocate;
        attr.free = release;
        allocator_kind = r.s.ring;
        allocator_calls = 0;
        pd = r.parent = ibv_alloc_parent_domain(r.h.ctx, &attr);
        NEED(pd, "ibv_alloc_parent_domain: %s", strerror(errno));
        struct ibv_cq_init_attr_ex cq = {};
        cq.cqe = 127;
        cq.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
        cq.parent_domain = pd;
        struct ibv_cq_ex *ex = ibv_create_cq_ex(r.h.ctx, &cq);
        NEED(ex, "ibv_create_cq_ex with the parent domain: %s", strerror(errno));
        r.own_cq = ibv_cq_ex_to_cq(ex);
    } else {
        r.own_cq = ibv_create_cq(r.h.ctx, 127, nullptr, nullptr, 0);
        NEED(r.own_cq, "ibv_create_cq: %s", strerror(errno));
    }
    if (r.s.dc) {
        struct ibv_qp_init_attr_ex attr = {};
        struct mlx5dv_qp_init_attr dv = {};
        attr.qp_type = IBV_QPT_DRIVER;
        attr.send_cq = attr.recv_cq = r.own_cq;
        attr.cap.max_send_wr = 64;
        attr.cap.max_send_sge = 1;
        attr.comp_mask = IBV_QP_INIT_ATTR_PD;
        attr.pd = pd;
        dv.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC;
        dv.dc_init_attr.dc_type = MLX5DV_DCTYPE_DCI;
        r.qp = mlx5dv_create_qp(r.h.ctx, &attr, &dv);
        NEED(r.qp, "a DCI: %s", strerror(errno));
        struct ibv_qp_attr to = {};
        to.qp_state = IBV_QPS_INIT;
        to.port_num = 1;
        int e = ibv_modify_qp(r.qp, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT);
        NEED(!e, "a DCI to INIT: %s", strerror(e));
        to.qp_state = IBV_QPS_RTR;
        to.path_mtu = r.h.mtu;
        e = ibv_modify_qp(r.qp, &to, IBV_QP_STATE | IBV_QP_PATH_MTU);
        NEED(!e, "a DCI to RTR: %s", strerror(e));
        to.qp_state = IBV_QPS_RTS;
        to.timeout = 14;
        to.retry_cnt = 7;
        to.rnr_retry = 7;
        to.max_rd_atomic = 8;
        e = ibv_modify_qp(r.qp, &to,
                          IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                              IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
        NEED(!e, "a DCI to RTS: %s", strerror(e));
    } else {
        struct ibv_qp_init_attr attr = {};
        attr.qp_type = IBV_QPT_RC;
        attr.send_cq = attr.recv_cq = r.own_cq;
        attr.cap.max_send_wr = 128;
        attr.cap.max_send_sge = 1;
        attr.cap.max_recv_wr = 1;
        attr.cap.max_recv_sge = 1;
        r.qp = ibv_create_qp(pd, &attr);
        NEED(r.qp, "ibv_create_qp: %s", strerror(errno));
        connect_verbs(r.h, r.qp, r.peer_number);
    }
    struct mlx5dv_qp qp = {};
    struct mlx5dv_cq cq = {};
    struct mlx5dv_obj obj = {};
    obj.qp.in = r.qp;
    obj.qp.out = &qp;
    obj.cq.in = r.own_cq;
    obj.cq.out = &cq;
    int e = mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ);
    NEED(!e, "mlx5dv_init_obj: %s", strerror(e));
    r.q.ring = (uint8_t *)qp.sq.buf;
    r.q.blocks = qp.sq.wqe_cnt;
    r.q.record = (uint8_t *)(qp.dbrec + 1);
    r.q.cq = (uint8_t *)cq.buf;
    r.q.cqes = cq.cqe_cnt;
    r.q.cq_record = (uint8_t *)cq.dbrec;
    r.q.uar = (uint8_t *)qp.bf.reg;
    r.q.qpn = r.qp->qp_num;
    NEED(qp.sq.stride == 64 && cq.cqe_size == 64,
         "blocks of %u and CQEs of %u bytes; the program wants 64", qp.sq.stride, cq.cqe_size);
    if (r.s.allocator) {
        NEED(allocator_calls >= 4,
             "the library called the allocator %d times; CQ and QP have four buffers",
             allocator_calls);
    } else {
        let_gpu_use(qp.sq.buf, (size_t)qp.sq.wqe_cnt * 64, 0);
        let_gpu_use(qp.dbrec, 8, 0);
        let_gpu_use(cq.buf, (size_t)cq.cqe_cnt * 64, 0);
        let_gpu_use(cq.dbrec, 8, 0);
    }
    let_gpu_use(qp.bf.reg, 8, cudaHostRegisterIoMemory);
}

static void modify(rig &r, unsigned opcode, uint8_t *in, const char *name)
{
    uint8_t out[16] = {};
    put(in, 0, 31, 16, opcode);
    put(in, 8, 23, 0, r.q.qpn);
    put(in, QPC, 12, 11, 3);
    put(in, ADS + 0x24, 23, 16, 1);
    int e = mlx5dv_devx_obj_modify(r.qp_obj, in, 0x110, out, sizeof(out));
    NEED(!e, "%s: %s, syndrome 0x%02x%02x%02x%02x", name, strerror(errno), out[4], out[5], out[6],
         out[7]);
}

static void new_devx_queue(rig &r)
{
    const unsigned log_blocks = 8, log_cqes = 7;
    r.own_cq = ibv_create_cq(r.h.ctx, 16, nullptr, nullptr, 0);
    NEED(r.own_cq, "ibv_create_cq: %s", strerror(errno));
    r.own_srq = new_srq(r.h);
    struct mlx5dv_cq cq = {};
    struct mlx5dv_srq srq = {};
    struct mlx5dv_obj obj = {};
    srq.comp_mask = MLX5DV_SRQ_MASK_SRQN;
    obj.cq.in = r.own_cq;
    obj.cq.out = &cq;
    obj.srq.in = r.own_srq;
    obj.srq.out = &srq;
    NEED(!mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ | MLX5DV_OBJ_SRQ),
         "mlx5dv_init_obj of a CQ and an SRQ");
    r.uar = mlx5dv_devx_alloc_uar(r.h.ctx, r.s.order == BELL_BLUE_FLAME || r.s.order == BELL_HALVES
                                               ? MLX5DV_UAR_ALLOC_TYPE_BF
                                               : MLX5DV_UAR_ALLOC_TYPE_NC);
    NEED(r.uar, "mlx5dv_devx_alloc_uar: %s", strerror(errno));
    r.cq_uar = mlx5dv_devx_alloc_uar(r.h.ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
    NEED(r.cq_uar, "mlx5dv_devx_alloc_uar: %s", strerror(errno));
    r.ring = umem_new(r.h, r.s.ring, 64 << log_blocks, r.s.dmabuf_umem);
    r.cq = umem_new(r.h, r.s.ring, 64 << log_cqes, r.s.dmabuf_umem);
    r.records = umem_new(r.h, r.s.records, 4096, r.s.dmabuf_umem && r.s.records == r.s.ring);
    std::vector<char> ones((size_t)64 << log_cqes, (char)0xff);
    mem_copy(r.cq.m.at, ones.data(), ones.size());
    uint32_t eqn = 0;
    NEED(!mlx5dv_devx_query_eqn(r.h.ctx, 0, &eqn), "mlx5dv_devx_query_eqn: %s", strerror(errno));
    uint8_t in[0x110] = {}, out[16] = {};
    put(in, 0, 31, 16, CMD_CREATE_CQ);
    put(in, 0x58, 31, 0, r.cq.u->umem_id);
    put(in, 0x5c, 31, 31, 1);
    put(in, CQC, 25, 25, 1);
    put(in, CQC, 20, 20, r.s.collapsed);
    put(in, CQC, 17, 17, 1);
    put(in, CQC + 0x04, 31, 0, r.records.u->umem_id);
    put(in, CQC + 0x0c, 28, 24, log_cqes);
    put(in, CQC + 0x0c, 23, 0, r.cq_uar->page_id);
    put(in, CQC + 0x14, 31, 0, eqn);
    put_u64(in, CQC + 0x38, 64); // the CQ's record
    r.cq_obj = mlx5dv_devx_obj_create(r.h.ctx, in, sizeof(in), out, sizeof(out));
    NEED(r.cq_obj, "CREATE_CQ: %s, syndrome 0x%02x%02x%02x%02x", strerror(errno), out[4], out[5],
         out[6], out[7]);
    uint32_t cqn = out_id(out);
    memset(in, 0, sizeof(in));
    put(in, 0, 31, 16, CMD_CREATE_QP);
    put(in, 0x108, 31, 0, r.ring.u->umem_id);
    put(in, 0x10c, 31, 31, 1);
    put(in, QPC, 23, 16, r.s.dc ? 5 : 0);
    put(in, QPC, 12, 11, 3);
    put(in, QPC + 0x04, 23, 0, r.h.pdn);
    put(in, QPC + 0x08, 14, 11, log_blocks);
    put(in, QPC + 0x0c, 23, 0, r.uar->page_id);
    put(in, QPC + 0x7c, 23, 0, cqn);
    put(in, QPC + 0x9c, 23, 0, cq.cqn);
    put_u64(in, QPC + 0xa0, 0); // the QP's record
    put(in, QPC + 0xac, 26, 24, 1);
    put(in, QPC + 0xac, 23, 0, srq.srqn);
    put(in, QPC + 0xd0, 28, 28, 1);
    put(in, QPC + 0xe4, 31, 0, r.records.u->umem_id);
    if (r.s.dbr_mode)
        put(in, QPC + 0x10, 31, 30, r.s.dbr_mode);
    r.qp_obj = mlx5dv_devx_obj_create(r.h.ctx, in, sizeof(in), out, sizeof(out));
    NEED(r.qp_obj, "CREATE_QP: %s, syndrome 0x%02x%02x%02x%02x", strerror(errno), out[4], out[5],
         out[6], out[7]);
    r.q.qpn = out_id(out);
    memset(in, 0, sizeof(in));
    if (r.s.dc)
        put_u64(in, QPC + 0xc8, DC_KEY);
    else {
        put(in, QPC + 0x90, 15, 13, 7);
        put(in, QPC + 0x90, 19, 16, 3);
    }
    modify(r, CMD_RST2INIT, in, "RST2INIT_QP");
    memset(in, 0, sizeof(in));
    put(in, QPC + 0x08, 31, 29, (uint32_t)r.h.mtu);
    put(in, QPC + 0x08, 28, 24, 30);
    if (!r.s.dc) {
        put(in, QPC + 0x14, 23, 0, r.peer_number);
        put(in, QPC + 0x94, 28, 24, 12);
        put(in, QPC + 0x90, 23, 21, 3);
        put(in, ADS + 0x08, 7, 0, 64);
        put(in, ADS + 0x08, 23, 16, (uint32_t)r.h.gid_index);
        put(in, ADS + 0x20, 15, 0, 0xc000);
        put(in, ADS + 0x24, 15, 0, (uint32_t)(r.h.mac[0] << 8 | r.h.mac[1]));
        put(in, ADS + 0x28, 31, 0,
            (uint32_t)r.h.mac[2] << 24 |
                (uint32_t)(r.h.mac[3] << 16 | r.h.mac[4] << 8 | r.h.mac[5]));
        memcpy(in + ADS + 0x10, r.h.gid.raw, 16);
    }
    modify(r, CMD_INIT2RTR, in, "INIT2RTR_QP");
    memset(in, 0, sizeof(in));
    put(in, QPC + 0x70, 23, 21, 3);
    put(in, QPC + 0x70, 18, 16, 7);
    put(in, QPC + 0x70, 15, 13, 7);
    put(in, ADS + 0x08, 31, 27, 14);
    modify(r, CMD_RTR2RTS, in, "RTR2RTS_QP");
    r.q.ring = (uint8_t *)r.ring.m.at;
    r.q.blocks = 1 << log_blocks;
    r.q.record = (uint8_t *)r.records.m.at + 4;
    r.q.cq = (uint8_t *)r.cq.m.at;
    r.q.cqes = 1 << log_cqes;
    r.q.cq_record = (uint8_t *)r.records.m.at + 64;
    r.q.uar = r.s.order == BELL_NO_RECORD ? (uint8_t *)r.uar->base_addr + 0x600
                                          : (uint8_t *)r.uar->reg_addr;
    r.q.collapsed = r.s.collapsed;
    let_gpu_use(r.q.uar, 8, cudaHostRegisterIoMemory);
}

static rig rig_new(const hca &h, const shape &s)
{
    rig r = {};
    r.h = h;
    r.s = s;
    new_peer(r);
    r.s.devx ? new_devx_queue(r) : new_verbs_queue(r);
    if (!s.dc)
        connect_verbs(h, r.peer, r.q.qpn);
    r.q.bell = s.order;
    r.q.dc = s.dc;
    if (s.dc) {
        uint8_t av[48] = {};
        put_u64(av, 0, DC_KEY);
        put(av, 8, 31, 31, 1);
        put(av, 8, 23, 0, r.peer_number);
        put(av, 0x0c, 15, 0, 0xc000);
        memcpy(av + 0x14, h.mac, 6);
        put(av, 0x18, 7, 0, 64);
        put(av, 0x1c, 30, 30, 1);
        put(av, 0x1c, 27, 20, (uint32_t)h.gid_index);
        memcpy(av + 0x20, h.gid.raw, 16);
        for (int i = 0; i < 12; i++) {
            uint32_t w;
            memcpy(&w, av + 4 * i, 4);
            r.q.av[i] = be32(w);
        }
    }
    return r;
}

static void rig_end(rig &r)
{
    int e;
    if (!on_cpu)
        forget_registrations();
    if (r.s.devx) {
        NEED(!mlx5dv_devx_obj_destroy(r.qp_obj), "the QP is not destroyed: %s", strerror(errno));
        NEED(!mlx5dv_devx_obj_destroy(r.cq_obj), "the CQ is not destroyed: %s", strerror(errno));
        for (umem *u : {&r.ring, &r.cq, &r.records})
            NEED(!mlx5dv_devx_umem_dereg(u->u), "mlx5dv_devx_umem_dereg: %s", strerror(errno));
        mlx5dv_devx_free_uar(r.uar);
        mlx5dv_devx_free_uar(r.cq_uar);
    } else {
        e = ibv_destroy_qp(r.qp);
        NEED(!e, "ibv_destroy_qp: %s", strerror(e));
    }
    if (r.own_srq)
        ibv_destroy_srq(r.own_srq);
    e = ibv_destroy_cq(r.own_cq);
    NEED(!e, "ibv_destroy_cq: %s", strerror(e));
    if (r.parent)
        ibv_dealloc_pd(r.parent);
    e = ibv_destroy_qp(r.peer);
    NEED(!e, "ibv_destroy_qp of the peer: %s", strerror(e));
    ibv_destroy_srq(r.srq);
    ibv_destroy_cq(r.peer_cq);
}
