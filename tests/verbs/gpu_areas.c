/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of the stand-in GPU as regions of two hosts. */
#include "tests/verbs/gpu_areas.h"
#include <check.h>
#include <stdlib.h>
#include "guest-lib/host/gpu.h"
#include "guest-lib/verbs/dv.h"
#include "tests/programs/masked_wqe.h"

#define UNIT ((size_t)2 << 20) /* of virtual memory management */
#define PAGE 4096u
/* Bytes of mapped memory that are in the first of two mappings. */
#define SPLIT(len) ((len) / 2 / 8 * 8)

const char *const area_names[AREA_KINDS] = {"device", "mapped",     "managed",
                                            "pinned", "registered", "plain"};

#define must_work(call)                                                                            \
    do {                                                                                           \
        CUresult result_ = (call);                                                                 \
                                                                                                   \
        if (result_) {                                                                             \
            g_error("%s:%d: %s is %d", __func__, __LINE__, #call, result_);                        \
        }                                                                                          \
    } while (0)

struct areas areas;

static struct standin_counts at_begin;

/* Makes a queue pair whose library copies no data: it would take short messages out of the CQE, by
 * loads and stores of the CPU, which end a program if the memory is the GPU's. */
static struct ibv_qp *area_qp(int side, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_RC,
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 4, .max_recv_sge = 4},
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd = area_pd(side),
    };
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
                                     .create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE};
    struct ibv_qp *qp = mlx5dv_create_qp(attr.pd->context, &attr, &dv);

    ck_assert_ptr_nonnull(qp);
    return qp;
}

void areas_begin(const struct lossy_config *cable)
{
    areas_begin_as(cable, NULL);
}

void areas_begin_as(const struct lossy_config *cable, const char *profile)
{
    CUcontext primary;

    must_work(cuInit(0));
    hcasim_standin_count(&at_begin);
    must_work(cuDevicePrimaryCtxRetain(&primary, 0));
    must_work(cuCtxPushCurrent_v2(primary));
    areas.v = verbs_table_on(verbs_hosts_new_as(2, cable, profile));
    areas.cq[0] = ibv_create_cq(areas.v->a, 63, NULL, NULL, 0);
    areas.cq[1] = ibv_create_cq(areas.v->b, 63, NULL, NULL, 0);
    areas.a = masked_make_qp(area_pd(0), areas.cq[0]);
    areas.b = area_qp(1, areas.cq[1]);
    table_connect(areas.v, areas.a, areas.b);
}

void areas_end(void)
{
    struct standin_counts counts;

    table_qp_free(areas.a);
    table_qp_free(areas.b);
    verbs_must_be_0(ibv_destroy_cq(areas.cq[0]));
    verbs_must_be_0(ibv_destroy_cq(areas.cq[1]));
    verbs_table_free(areas.v);
    ck_assert_uint_eq(gpu_end, 0); /* nothing is claimed */
    ck_assert_uint_eq(gpu_unsettled, 0);
    hcasim_standin_delay(0);
    hcasim_standin_hold(0);
    hcasim_standin_fail(0, CUDA_SUCCESS);
    must_work(cuCtxPopCurrent_v2(NULL));
    must_work(cuDevicePrimaryCtxRelease_v2(0));
    hcasim_standin_count(&counts);
    ck_assert_uint_eq(counts.memory, at_begin.memory);
    ck_assert_uint_eq(counts.contexts, at_begin.contexts);
    ck_assert_uint_eq(counts.streams, at_begin.streams);
}

/* Half of it is the end of a mapping, and half the begin of another. */
static CUdeviceptr area_map(size_t len)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    size_t half = (len + UNIT - 1) / UNIT * UNIT;
    CUdeviceptr start;

    must_work(cuMemAddressReserve(&start, 2 * half, 0, 0, 0));
    for (unsigned i = 0; i < 2; i++) {
        must_work(cuMemCreate(&handle, half, &prop, 0));
        must_work(cuMemMap(start + i * half, half, 0, handle, 0));
        must_work(cuMemRelease(handle));
    }
    must_work(cuMemSetAccess(start, 2 * half, &access, 1));
    return start + half - SPLIT(len);
}

static void area_unmap(CUdeviceptr addr, size_t len)
{
    size_t half = (len + UNIT - 1) / UNIT * UNIT;
    CUdeviceptr start = addr + SPLIT(len) - half;

    must_work(cuMemUnmap(start, 2 * half));
    must_work(cuMemAddressFree(start, 2 * half));
}

CUdeviceptr area_alloc(enum area_kind kind, size_t len)
{
    CUdeviceptr addr = 0;
    void *ptr;

    switch (kind) {
    case AREA_DEVICE:
        must_work(cuMemAlloc_v2(&addr, len));
        return addr;
    case AREA_MAPPED:
        return area_map(len);
    case AREA_MANAGED:
        must_work(cuMemAllocManaged(&addr, len, CU_MEM_ATTACH_GLOBAL));
        return addr;
    case AREA_PINNED:
        must_work(cuMemHostAlloc(&ptr, len, 0));
        return (uintptr_t)ptr;
    default:
        ptr = aligned_alloc(PAGE, (len + PAGE - 1) / PAGE * PAGE);
        if (kind == AREA_REGISTERED) {
            must_work(cuMemHostRegister_v2(ptr, len, 0));
        }
        return (uintptr_t)ptr;
    }
}

void area_free(enum area_kind kind, CUdeviceptr addr, size_t len)
{
    void *ptr = (void *)(uintptr_t)addr;

    switch (kind) {
    case AREA_DEVICE:
    case AREA_MANAGED:
        must_work(cuMemFree_v2(addr));
        break;
    case AREA_MAPPED:
        area_unmap(addr, len);
        break;
    case AREA_PINNED:
        must_work(cuMemFreeHost(ptr));
        break;
    case AREA_REGISTERED:
        must_work(cuMemHostUnregister(ptr));
        free(ptr);
        break;
    default:
        free(ptr);
        break;
    }
}

uint8_t area_byte(unsigned seed, size_t at)
{
    return (uint8_t)((at + 1) * 2654435761u >> 11 ^ seed * 89);
}

void area_fill(const struct area *area, unsigned seed)
{
    for (size_t i = 0; i < area->len; i++) {
        *area_at(area, i) = area_byte(seed, i);
    }
}

/* Finds where the test reaches the memory. */
static void area_find(struct area *area)
{
    area->split = area->kind == AREA_MAPPED ? SPLIT(area->len) : area->len;
    area->half[0] = (uint8_t *)(uintptr_t)area->addr;
    if (area->kind < AREA_BEHIND) {
        area->half[0] = hcasim_standin_memory(area->addr, area->split);
        area->half[1] = hcasim_standin_memory(area->addr + area->split, area->len - area->split);
    }
}

struct area area_new(struct ibv_pd *pd, enum area_kind kind, size_t len, unsigned seed)
{
    struct area area = {.kind = kind, .len = len, .addr = area_alloc(kind, len)};

    area_find(&area);
    area_fill(&area, seed);
    area.mr = ibv_reg_mr(pd, (void *)(uintptr_t)area.addr, len, AREA_RIGHTS);
    if (!area.mr) {
        g_error("%s memory of %zu bytes is not registered: errno %d", area_names[kind], len, errno);
    }
    return area;
}

void area_drop(struct area *area)
{
    area_free(area->kind, area->addr, area->len);
    area->addr = 0;
}

void area_end(struct area *area)
{
    verbs_must_be_0(ibv_dereg_mr(area->mr));
    if (area->addr) {
        area_drop(area);
    }
}

struct ibv_sge area_part(const struct area *area, size_t from, size_t len)
{
    return (struct ibv_sge){
        .addr = (uintptr_t)area->mr->addr + from, .length = (uint32_t)len, .lkey = area->mr->lkey};
}

void area_post(enum ibv_wr_opcode opcode, struct ibv_sge sge, const struct area *to, size_t at,
               unsigned flags)
{
    struct ibv_send_wr *failed;
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = opcode,
                             .send_flags = IBV_SEND_SIGNALED | flags,
                             .imm_data = htobe32(0x12345678)};

    if (to) {
        wr.wr.rdma.remote_addr = (uintptr_t)to->mr->addr + at;
        wr.wr.rdma.rkey = to->mr->rkey;
    }
    ck_assert_int_eq(ibv_post_send(areas.a, &wr, &failed), 0);
}

void area_receive(struct ibv_qp *qp, struct ibv_sge sge)
{
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *failed;

    ck_assert_int_eq(ibv_post_recv(qp, &wr, &failed), 0);
}

void area_expect(struct ibv_cq *at, enum ibv_wc_status status)
{
    ck_assert_str_eq(ibv_wc_status_str(table_wc(areas.v, at).status), ibv_wc_status_str(status));
}

void area_expect_bytes(const struct area *area, size_t at, size_t len, unsigned seed, size_t from)
{
    for (size_t i = 0; i < len; i++) {
        if (*area_at(area, at + i) != area_byte(seed, from + i)) {
            ck_abort_msg("byte %zu of %zu in %s memory is wrong", i, len, area_names[area->kind]);
        }
    }
}

void area_expect_rest(const struct area *area, size_t at, size_t len, unsigned seed)
{
    area_expect_bytes(area, 0, at, seed, 0);
    area_expect_bytes(area, at + len, area->len - at - len, seed, at + len);
}
