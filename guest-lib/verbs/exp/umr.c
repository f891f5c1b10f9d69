/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UMRs of experimental verbs: work requests that say which ranges of other keys a key consists of
 * (libmlx5: lay_umr(), set_mkey_seg()), and memory for lists that do not fit into the WQE.
 *
 * A list lies in the WQE (IBV_SEND_INLINE), or in memory of ibv_exp_alloc_mkey_list_memory(), which
 * the device reads when it carries out the WQE. A list of ranges of one size, which the published
 * library does not know, is as its header and the kernel's key suggest (docs/adr/0032).
 */
#include "guest-lib/verbs/exp/mem.h"
#include "guest-lib/verbs/kernel/mkey.h"
#include "guest-lib/verbs/user/send_wqe.h"

#define ENTRY    PRM_SIZE(wqe_klm_seg)
#define BIT(x)   (1ull << PRM_MKEY_MASK_##x)
#define KLM_UNIT 4u /* the device takes entries in multiples of 64 bytes */

/* Lists in memory begin at a multiple of this (MLX5_UMR_PTR_ALIGN), and so does a page. */
#define LIST_ALIGN 2048u
G_STATIC_ASSERT(PCI_PAGE % LIST_ALIGN == 0);

/* The sizes of ranges in a list of ranges of one size: a page of the device to 2 GiB. */
#define LOG_RANGE_MIN 12
#define LOG_RANGE_MAX 31

/* -- memory for lists -------------------------------------------------------------------------- */

struct exp_list {
    struct ibv_exp_mkey_list_container exp;
    uint8_t *entries;
    size_t size;
    struct ibv_mr *mr;
};

static struct ibv_exp_mkey_list_container *
exp_alloc_list(struct ibv_exp_mkey_list_container_attr *attr)
{
    struct hv_hca *hca = hv_hca_of(attr->pd->context);
    uint32_t max = 1u << HV_CAP(hca, log_max_klm_list_size);
    struct exp_list *list;

    if (attr->mkey_list_type != IBV_EXP_MKEY_LIST_TYPE_INDIRECT_MR ||
        attr->max_klm_list_size > max) {
        errno = hv_refuse(hca, ENOMEM,
                          "alloc_mkey_list_memory: mkey_list_type is %u and max_klm_list_size %u; "
                          "they may be IBV_EXP_MKEY_LIST_TYPE_INDIRECT_MR and up to %u",
                          attr->mkey_list_type, attr->max_klm_list_size, max);
        return NULL;
    }
    list = calloc(1, sizeof(*list));
    if (!list) {
        return NULL;
    }
    /* whole multiples of 64 bytes, and an entry more for an interleaved list */
    list->size = hv_whole_pages((attr->max_klm_list_size + KLM_UNIT) * ENTRY);
    list->entries = hv_ring_alloc(list->size);
    if (!list->entries) {
        errno = ENOMEM;
        free(list);
        return NULL;
    }
    list->mr = ibv_reg_mr(attr->pd, list->entries, list->size, 0);
    if (!list->mr) {
        hv_ring_free(list->entries, list->size);
        free(list);
        return NULL;
    }
    list->exp.max_klm_list_size = attr->max_klm_list_size;
    list->exp.context = attr->pd->context;
    return &list->exp;
}

static int exp_dealloc_list(struct ibv_exp_mkey_list_container *exp)
{
    struct exp_list *list = (struct exp_list *)exp;
    int err = ibv_dereg_mr(list->mr);

    if (!err) {
        hv_ring_free(list->entries, list->size);
        free(list);
    }
    return err;
}

/* -- lists ------------------------------------------------------------------------------------- */

/* A list on its way to the device: into the WQE entry by entry, or into memory. */
struct exp_lay {
    struct user_qp *qp;
    uint8_t *to; /* NULL: the WQE */
    uint32_t entries;
};

static void exp_lay_entry(struct exp_lay *lay, const void *entry)
{
    if (lay->to) {
        memcpy(lay->to + (size_t)lay->entries * ENTRY, entry, ENTRY);
    } else {
        hv_wqe_put(lay->qp, entry, ENTRY);
    }
    lay->entries++;
}

static void exp_lay_region(struct exp_lay *lay, const struct ibv_exp_mem_region *region, bool equal)
{
    struct prm_wqe_klm_seg entry[1] = {0};

    PRM_SET(wqe_klm_seg, entry, byte_count, equal ? 0 : region->length);
    PRM_SET(wqe_klm_seg, entry, mkey, region->mr->lkey);
    PRM_SET(wqe_klm_seg, entry, va, region->base_addr);
    exp_lay_entry(lay, entry);
}

static void exp_lay_repeat(struct exp_lay *lay, const struct ibv_exp_send_wr *wr, uint32_t round)
{
    struct prm_wqe_repeat_block_seg block[1] = {0};

    PRM_SET(wqe_repeat_block_seg, block, op, PRM_WQE_REPEAT_OP_STRIDED_BLOCK);
    PRM_SET(wqe_repeat_block_seg, block, num_ent, wr->ext_op.umr.num_mrs);
    PRM_SET(wqe_repeat_block_seg, block, repeat_count, wr->ext_op.umr.mem_list.rb.repeat_count[0]);
    PRM_SET(wqe_repeat_block_seg, block, byte_count, round);
    exp_lay_entry(lay, block);
    for (uint32_t i = 0; i < wr->ext_op.umr.num_mrs; i++) {
        const struct ibv_exp_mem_repeat_block *from =
            &wr->ext_op.umr.mem_list.rb.mem_repeat_block_list[i];
        struct prm_wqe_repeat_ent_seg entry[1] = {0};

        PRM_SET(wqe_repeat_ent_seg, entry, stride, from->stride[0]);
        PRM_SET(wqe_repeat_ent_seg, entry, byte_count, from->byte_count[0]);
        PRM_SET(wqe_repeat_ent_seg, entry, memkey, from->mr->lkey);
        PRM_SET(wqe_repeat_ent_seg, entry, va, from->base_addr);
        exp_lay_entry(lay, entry);
    }
}

/* -- checks ------------------------------------------------------------------------------------ */

/* The content that a UMR gives a key. */
struct exp_umr {
    uint64_t len;
    uint32_t entries;  /* of the list, without padding */
    uint32_t round;    /* an interleaved list: bytes of a round */
    uint8_t log_range; /* a list of ranges of one size */
};

/* Every range has the size of the first, which is a power of two; the last may be shorter. */
static bool exp_umr_equal_ranges(struct user_qp *qp, const struct ibv_exp_send_wr *wr,
                                 struct exp_umr *umr)
{
    const struct ibv_exp_mem_region *list = wr->ext_op.umr.mem_list.mem_reg_list;
    uint32_t n = wr->ext_op.umr.num_mrs;
    uint64_t size = list[0].length;

    if (n == 1) { /* a range alone may be shorter than the range of the key */
        size = MAX(1ull << LOG_RANGE_MIN, 1ull << (size > 1 ? 64 - __builtin_clzll(size - 1) : 0));
    }
    for (uint32_t i = 0; i < n; i++) {
        if (i + 1 < n ? list[i].length != size : !list[i].length || list[i].length > size) {
            size = 0;
        }
    }
    if (!size || size & (size - 1) || size < 1ull << LOG_RANGE_MIN ||
        size > 1ull << LOG_RANGE_MAX) {
        hv_wqe_fail(qp, EINVAL,
                    "the ranges of a UMR of fixed size must all have the size of the first, a "
                    "power of two from %u to 2^%u, but for the last, which may be shorter",
                    1u << LOG_RANGE_MIN, LOG_RANGE_MAX);
        return false;
    }
    umr->log_range = (uint8_t)__builtin_ctzll(size);
    return true;
}

static bool exp_umr_list(struct user_qp *qp, const struct ibv_exp_send_wr *wr, struct exp_umr *umr)
{
    const struct ibv_exp_mem_region *list = wr->ext_op.umr.mem_list.mem_reg_list;

    umr->entries = wr->ext_op.umr.num_mrs;
    for (uint32_t i = 0; i < umr->entries; i++) {
        if (list[i].length > UINT32_MAX) {
            hv_wqe_fail(qp, EINVAL,
                        "range %u of the UMR has %zu bytes; it may have less than 4 GiB", i,
                        list[i].length);
            return false;
        }
        umr->len += list[i].length;
    }
    return wr->ext_op.umr.umr_type != IBV_EXP_UMR_MR_LIST_FIXED_SIZE ||
           exp_umr_equal_ranges(qp, wr, umr);
}

static bool exp_umr_repeat(struct user_qp *qp, const struct ibv_exp_send_wr *wr,
                           struct exp_umr *umr)
{
    const struct ibv_exp_mem_repeat_block *list = wr->ext_op.umr.mem_list.rb.mem_repeat_block_list;
    size_t rounds;

    if (wr->ext_op.umr.mem_list.rb.stride_dim != 1) {
        hv_wqe_fail(qp, ENOMEM, "stride_dim of the UMR is %u; it must be 1",
                    wr->ext_op.umr.mem_list.rb.stride_dim);
        return false;
    }
    rounds = wr->ext_op.umr.mem_list.rb.repeat_count[0];
    umr->entries = wr->ext_op.umr.num_mrs + 1;
    for (uint32_t i = 0; i < wr->ext_op.umr.num_mrs; i++) {
        if (list[i].byte_count[0] > UINT16_MAX || list[i].stride[0] > UINT16_MAX) {
            hv_wqe_fail(qp, EINVAL,
                        "byte_count and stride of block %u of the UMR are %zu and %zu; they may be "
                        "up to %u",
                        i, list[i].byte_count[0], list[i].stride[0], UINT16_MAX);
            return false;
        }
        umr->round += (uint32_t)list[i].byte_count[0];
    }
    if (rounds > UINT32_MAX) {
        hv_wqe_fail(qp, EINVAL, "repeat_count of the UMR is %zu; it may be up to %u", rounds,
                    UINT32_MAX);
        return false;
    }
    umr->len = (uint64_t)umr->round * rounds;
    return true;
}

/* Whether the list is well formed, and fits into the key and to where it goes. */
static bool exp_umr_check(struct user_qp *qp, const struct ibv_exp_send_wr *wr, struct exp_umr *umr)
{
    const struct exp_list *memory = (const struct exp_list *)wr->ext_op.umr.memory_objects;
    const struct hv_mr *mr = (const struct hv_mr *)wr->ext_op.umr.modified_mr;
    bool inl = wr->exp_send_flags & IBV_SEND_INLINE;
    uint32_t n = wr->ext_op.umr.num_mrs, most = inl ? qp->max_inl_klms : 0;

    if (!inl && memory) {
        most = memory->exp.max_klm_list_size;
    }
    if (!n || n > most || n > mr->max_klms) {
        hv_wqe_fail(qp, EINVAL,
                    "num_mrs of the UMR is %u; %s %u (%s), and the key up to %u "
                    "(max_klm_list_size)",
                    n, inl ? "the WQE may have up to" : "memory_objects may have up to", most,
                    inl ? "max_inl_send_klms" : "max_klm_list_size", mr->max_klms);
        return false;
    }
    switch (wr->ext_op.umr.umr_type) {
    case IBV_EXP_UMR_MR_LIST:
    case IBV_EXP_UMR_MR_LIST_FIXED_SIZE:
        return exp_umr_list(qp, wr, umr);
    case IBV_EXP_UMR_REPEAT:
        return exp_umr_repeat(qp, wr, umr);
    default:
        hv_wqe_fail(qp, EINVAL, "umr_type %u is unknown", wr->ext_op.umr.umr_type);
        return false;
    }
}

/* -- the WQE ----------------------------------------------------------------------------------- */

static void exp_umr_lay(struct user_qp *qp, const struct ibv_exp_send_wr *wr,
                        const struct exp_umr *umr, struct exp_list *memory)
{
    static const uint8_t padding[KLM_UNIT * PRM_SIZE(wqe_klm_seg)];
    struct exp_lay lay = {.qp = qp, .to = memory ? memory->entries : NULL};

    if (wr->ext_op.umr.umr_type == IBV_EXP_UMR_REPEAT) {
        exp_lay_repeat(&lay, wr, umr->round);
    } else {
        for (uint32_t i = 0; i < umr->entries; i++) {
            exp_lay_region(&lay, &wr->ext_op.umr.mem_list.mem_reg_list[i],
                           wr->ext_op.umr.umr_type == IBV_EXP_UMR_MR_LIST_FIXED_SIZE);
        }
    }
    while (lay.entries % KLM_UNIT) {
        exp_lay_entry(&lay, padding);
    }
    if (memory) {
        struct prm_wqe_data_seg seg[1] = {0};

        PRM_SET(wqe_data_seg, seg, byte_count, lay.entries * ENTRY);
        PRM_SET(wqe_data_seg, seg, lkey, memory->mr->lkey);
        PRM_SET(wqe_data_seg, seg, addr, (uintptr_t)memory->entries);
        hv_wqe_put(qp, seg, sizeof(seg));
    }
}

static void exp_umr_fill(struct user_qp *qp, const struct ibv_exp_send_wr *wr,
                         const struct exp_umr *umr)
{
    struct exp_list *memory = wr->exp_send_flags & IBV_SEND_INLINE
                                  ? NULL
                                  : (struct exp_list *)wr->ext_op.umr.memory_objects;
    uint32_t lkey = wr->ext_op.umr.modified_mr->lkey;
    struct prm_wqe_umr_ctrl_seg ctrl[1] = {0};
    struct prm_mkc mkc[1] = {0};

    PRM_SET(wqe_umr_ctrl_seg, ctrl, inl, !memory);
    PRM_SET(wqe_umr_ctrl_seg, ctrl, xlt_octowords, (umr->entries + KLM_UNIT - 1) & ~(KLM_UNIT - 1));
    PRM_SET(wqe_umr_ctrl_seg, ctrl, mkey_mask,
            BIT(LEN) | BIT(START_ADDR) | BIT(LR) | BIT(LW) | BIT(RR) | BIT(RW) | BIT(A) |
                BIT(FREE) | (umr->log_range ? BIT(PAGE_SIZE) : 0));
    hv_mr_set_rights(qp->hca, mkc, (unsigned)wr->ext_op.umr.exp_access);
    PRM_SET(mkc, mkc, start_addr, wr->ext_op.umr.base_addr);
    PRM_SET(mkc, mkc, len, umr->len);
    PRM_SET(mkc, mkc, log_page_size, umr->log_range);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, mkey_7_0, lkey & 0xff);
    hv_wqe_put(qp, ctrl, sizeof(ctrl));
    hv_wqe_put(qp, mkc, sizeof(mkc));
    exp_umr_lay(qp, wr, umr, memory);
}

static void exp_umr_invalidate(struct user_qp *qp)
{
    struct prm_wqe_umr_ctrl_seg ctrl[1] = {0};
    struct prm_mkc mkc[1] = {0};

    PRM_SET(wqe_umr_ctrl_seg, ctrl, inl, 1);
    PRM_SET(wqe_umr_ctrl_seg, ctrl, mkey_mask, BIT(FREE));
    PRM_SET(mkc, mkc, free, 1);
    hv_wqe_put(qp, ctrl, sizeof(ctrl));
    hv_wqe_put(qp, mkc, sizeof(mkc));
}

void hv_exp_put_umr(struct user_qp *qp, const struct ibv_exp_send_wr *wr)
{
    bool fills = wr->exp_opcode == IBV_EXP_WR_UMR_FILL;
    struct exp_umr umr = {0};

    if (!(qp->exp_flags & IBV_EXP_QP_CREATE_UMR) || qp->ibv.qp_type != IBV_QPT_RC) {
        hv_wqe_fail(qp, EINVAL,
                    "UMRs need an RC QP with IBV_EXP_QP_CREATE_UMR; a key that was filled on one "
                    "serves QPs and DCIs of its PD, too");
        return;
    }
    if (fills && !exp_umr_check(qp, wr, &umr)) {
        return;
    }
    if (!hv_wqe_begin(qp, PRM_WQE_OPCODE_UMR,
                      (unsigned)wr->exp_send_flags &
                          (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED),
                      wr->wr_id, IBV_WC_DRIVER1, wr->ext_op.umr.modified_mr->lkey)) {
        return;
    }
    if (fills) {
        exp_umr_fill(qp, wr, &umr);
    } else {
        exp_umr_invalidate(qp);
    }
    hv_wqe_end(qp);
    qp->small_fence = true;
}

void hv_exp_umr_ops(struct verbs_context_exp *ops)
{
    ops->drv_exp_alloc_mkey_list_memory = ops->lib_exp_alloc_mkey_list_memory = exp_alloc_list;
    ops->drv_exp_dealloc_mkey_list_memory = ops->lib_exp_dealloc_mkey_list_memory =
        exp_dealloc_list;
}
