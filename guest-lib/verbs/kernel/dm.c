/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device memory (MEMIC), as mlx5_ib's dm.c gives it to a program: the memory, regions on it, and
 * addresses of operations.
 *
 * The memory is in BAR0, and addresses here are offsets in it. A program gets a mapping of the
 * memory, and of the pages of an operation, whose accesses go to the BAR (guest-lib/host/mmio.h).
 */
#include <inttypes.h>
#include "guest-lib/verbs/kernel/mkey.h"
#include "guest-lib/verbs/kernel/uverbs.h"

/* As MLX5_MEMIC_BASE_ALIGN: log2 of the unit of sizes and alignments. */
#define LOG_UNIT 6
#define UNIT     (1u << LOG_UNIT)

/* As MLX5_IB_DM_MEMIC_ALLOWED_ACCESS. */
#define DM_ACCESS                                                                                  \
    (unsigned)(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |         \
               IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED)

static size_t dm_mapped(size_t length)
{
    return (length + PCI_PAGE - 1) / PCI_PAGE * PCI_PAGE;
}

/* The memory of a handle. dm: what the program calls its memory; if it is not imported, the handle
 * must be its own. NULL with *err. */
static struct hv_dm *dm_owner(struct ibv_dm *dm, int *err)
{
    struct hv_dm *owner = NULL;

    if (hv_dm(dm)->imported) {
        return hv_handle_get(dm->context, HV_HANDLE_DM, dm->handle, err);
    }
    *err = hv_handle_check(dm->context, HV_HANDLE_DM, dm->handle, dm);
    return *err ? owner : hv_dm(dm);
}

/* -- the memory -------------------------------------------------------------------------------- */

/* As mlx5_cmd_alloc_memic(). The driver tries one range after the other; the range here is the
 * whole memory, in which the device finds a place. */
int uverbs_alloc_dm(struct hv_dm *dm, uint32_t log_align)
{
    struct hv_hca *hca = hv_hca_of(dm->ibv.context);
    struct prm_alloc_memic_in in[1] = {0};
    struct prm_alloc_memic_out out[1];
    uint32_t align = log_align < LOG_UNIT ? 0 : log_align - LOG_UNIT;
    uint64_t size = ((uint64_t)dm->length + UNIT - 1) / UNIT * UNIT;
    int err;

    if (!HV_DM_CAP(hca, memic)) {
        return hv_refuse(hca, EOPNOTSUPP, "alloc_dm: the device has no memory for programs");
    }
    if (!size) {
        return hv_refuse(hca, EINVAL, "alloc_dm: length is 0");
    }
    if (align > HV_DM_CAP(hca, log_max_memic_addr_alignment)) {
        return hv_refuse(hca, EINVAL, "alloc_dm: log_align_req is %u; it may be at most %u",
                         log_align,
                         LOG_UNIT + (unsigned)HV_DM_CAP(hca, log_max_memic_addr_alignment));
    }
    PRM_SET(alloc_memic_in, in, opcode, PRM_CMD_OP_ALLOC_MEMIC);
    PRM_SET(alloc_memic_in, in, range_start_addr, HV_DM_CAP(hca, memic_bar_start_addr));
    PRM_SET(alloc_memic_in, in, range_size, HV_DM_CAP(hca, memic_bar_size));
    PRM_SET(alloc_memic_in, in, memic_size, size);
    PRM_SET(alloc_memic_in, in, log_memic_addr_alignment, align);
    err = hv_cmd(hca, in, sizeof(in), out, sizeof(out));
    if (err == EAGAIN) { /* no range has room */
        err = hv_refuse(hca, ENOMEM,
                        "alloc_dm: of the device's memory, %zu bytes in one piece are not free",
                        dm->length);
    }
    if (err) {
        return err;
    }
    dm->addr = PRM_GET(alloc_memic_out, out, memic_start_addr);
    dm->size = (uint32_t)size;
    pthread_mutex_init(&dm->lock, NULL);
    dm->ibv.handle = hv_handle_add(dm->ibv.context, HV_HANDLE_DM, dm);
    return 0;
}

int uverbs_mmap_dm(struct hv_dm *dm)
{
    dm->map = hv_map_device_memory(hv_hca_of(dm->ibv.context), dm->addr, dm_mapped(dm->length));
    return dm->map ? 0 : errno;
}

int uverbs_query_dm(struct hv_dm *dm, uint32_t handle)
{
    int err = hv_check_there(hv_hca_of(dm->ibv.context));
    const struct hv_dm *owner;

    if (err) {
        return err;
    }
    owner = hv_handle_get(dm->ibv.context, HV_HANDLE_DM, handle, &err);
    if (!owner) {
        return err;
    }
    dm->addr = owner->addr;
    dm->length = owner->length;
    dm->ibv.handle = handle;
    return 0;
}

/* -- operations -------------------------------------------------------------------------------- */

static int dm_modify(struct hv_hca *hca, const struct hv_dm *dm, unsigned op_mod, unsigned op,
                     uint64_t *addr)
{
    struct prm_modify_memic_in in[1] = {0};
    struct prm_modify_memic_out out[1];
    int err;

    PRM_SET(modify_memic_in, in, opcode, PRM_CMD_OP_MODIFY_MEMIC);
    PRM_SET(modify_memic_in, in, op_mod, op_mod);
    PRM_SET(modify_memic_in, in, memic_operation_type, op);
    PRM_SET(modify_memic_in, in, memic_start_addr, dm->addr);
    err = hv_cmd(hca, in, sizeof(in), out, sizeof(out));
    *addr = PRM_GET(modify_memic_out, out, memic_operation_addr);
    return err;
}

/* Gives the operation an address, unless it has one. Under the memory's lock. */
static int dm_make_op(struct hv_hca *hca, struct hv_dm *dm, unsigned op)
{
    int err;

    if (dm->ops >> op & 1) {
        return hv_check_there(hca);
    }
    err = dm_modify(hca, dm, PRM_MODIFY_MEMIC_OP_ALLOC, op, &dm->op_addr[op]);
    if (!err) {
        dm->ops |= 1u << op;
    }
    return err;
}

int uverbs_map_dm_op(struct ibv_dm *ibdm, uint8_t op, void **addr)
{
    struct hv_hca *hca = hv_hca_of(ibdm->context);
    struct hv_dm *dm;
    int err;

    dm = dm_owner(ibdm, &err);
    if (!dm) {
        return err;
    }
    if (op >= 32 || !(HV_DM_CAP(hca, memic_operations) >> op & 1)) {
        return hv_refuse(hca, EOPNOTSUPP, "dm_map_op_addr: the device has no operation %u", op);
    }
    pthread_mutex_lock(&dm->lock);
    err = dm_make_op(hca, dm, op);
    if (!err) {
        *addr = hv_map_registers(hca, dm->op_addr[op], dm_mapped(dm->length));
        err = *addr ? 0 : errno;
    }
    pthread_mutex_unlock(&dm->lock);
    return err;
}

/* A kernel keeps the memory until the program has unmapped it and its operations. Here nothing
 * tells of that, so accesses to the operations have no effect any more, and the memory that the
 * program still sees is nobody's until another program of the process gets it. */
static int dm_free_memory(struct hv_hca *hca, struct hv_dm *dm)
{
    struct prm_dealloc_memic_in in[1] = {0};
    uint64_t none;

    pthread_mutex_lock(&dm->lock);
    for (unsigned op = 0; op < 32; op++) {
        if (dm->ops >> op & 1) {
            hv_forget_registers(hca, dm->op_addr[op], dm_mapped(dm->length));
            /* if it fails, so does the next command (mlx5_cmd_dealloc_memic_op()) */
            dm_modify(hca, dm, PRM_MODIFY_MEMIC_OP_DEALLOC, op, &none);
        }
    }
    dm->ops = 0;
    pthread_mutex_unlock(&dm->lock);
    PRM_SET(dealloc_memic_in, in, opcode, PRM_CMD_OP_DEALLOC_MEMIC);
    PRM_SET(dealloc_memic_in, in, memic_start_addr, dm->addr);
    PRM_SET(dealloc_memic_in, in, memic_size, dm->size);
    return hv_cmd_simple(hca, in, sizeof(in));
}

int uverbs_free_dm(struct ibv_dm *ibdm)
{
    struct hv_hca *hca = hv_hca_of(ibdm->context);
    struct hv_dm *dm;
    int err;

    dm = dm_owner(ibdm, &err);
    if (!dm) {
        return err;
    }
    if (g_atomic_int_get(&dm->refs)) {
        return hv_refuse(hca, EBUSY, "free_dm: %d regions of the memory are registered",
                         g_atomic_int_get(&dm->refs));
    }
    err = dm_free_memory(hca, dm);
    if (!err) {
        hv_handle_del(ibdm->context, ibdm->handle);
        pthread_mutex_destroy(&dm->lock);
    }
    return err;
}

/* -- regions ----------------------------------------------------------------------------------- */

/* As UVERBS_METHOD_DM_MR_REG and mlx5_ib_reg_dm_mr(). */
static int dm_check_region(struct hv_hca *hca, const struct hv_dm *dm, uint64_t offset,
                           size_t length, unsigned access)
{
    int err;

    if (!(access & IBV_ACCESS_ZERO_BASED)) {
        return hv_refuse(hca, EINVAL, "reg_dm_mr: access has no IBV_ACCESS_ZERO_BASED");
    }
    err = hv_mr_check_access(hca, access);
    if (err) {
        return err;
    }
    if (offset > dm->length || length > dm->length - offset) {
        return hv_refuse(hca, EINVAL,
                         "reg_dm_mr: %zu bytes at %" PRIu64 " go past the end of the memory, which "
                         "has %zu bytes",
                         length, offset, dm->length);
    }
    return access & ~DM_ACCESS
               ? hv_refuse(hca, EINVAL, "reg_dm_mr: access has bits 0x%x; it may have 0x%x",
                           access & ~DM_ACCESS, DM_ACCESS)
               : 0;
}

static int dm_create_key(struct hv_mr *mr, const struct hv_dm *dm, uint64_t offset, size_t length,
                         unsigned access, uint32_t *key)
{
    struct hv_hca *hca = hv_hca_of(mr->ibv.context);
    struct prm_create_mkey_in in[1] = {0};
    struct prm_mkc *mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);

    hv_mr_set_rights(hca, mkc, access);
    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_MEMIC & 3);
    PRM_SET(mkc, mkc, access_mode_4_2, PRM_MKC_ACCESS_MODE_MEMIC >> 2);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, pd, mr->pd->pdn);
    PRM_SET(mkc, mkc, start_addr, dm->addr + offset);
    PRM_SET(mkc, mkc, len, length);
    return hv_mkey_create(hca, in, sizeof(in), key);
}

int uverbs_reg_dm_mr(struct hv_mr *mr, struct ibv_pd *pd, struct ibv_dm *ibdm, uint64_t offset,
                     size_t length, unsigned access)
{
    struct hv_hca *hca = hv_hca_of(pd->context);
    struct hv_dm *dm;
    uint32_t key = 0;
    int err = hv_pd_check(pd);

    if (err) {
        return err;
    }
    dm = dm_owner(ibdm, &err);
    if (!dm) {
        return err;
    }
    err = dm_check_region(hca, dm, offset, length, access);
    err = err ? err : dm_create_key(mr, dm, offset, length, access, &key);
    if (err) {
        return err;
    }
    mr->dm = dm;
    g_atomic_int_inc(&dm->refs);
    mr->ibv.lkey = mr->ibv.rkey = key;
    mr->ibv.handle = hv_handle_add(pd->context, HV_HANDLE_MR, mr);
    g_atomic_int_inc(&mr->pd->refs);
    return 0;
}
