/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: commands. */
#include <infiniband/mlx5dv.h>
#include "guest-lib/verbs/kernel/events.h"
#include "guest-lib/verbs/kernel/memlock.h"
#include "guest-lib/verbs/kernel/mkey.h"
#include "guest-lib/verbs/kernel/uverbs.h"

#define MAX_CQ_PERIOD 0xfff /* microseconds (mlx5_ib: MLX5_MAX_CQ_PERIOD) */

/* Allocates a command with a page list for a ring; CREATE_CQ and MODIFY_CQ both end with one. */
static void *cq_ring_cmd(const uint8_t *ring, size_t size, size_t *len)
{
    struct prm_create_cq_in *in;

    *len = PRM_SIZE(create_cq_in) + 8 * hv_ring_pages(ring, size);
    in = g_malloc0(*len);
    PRM_SET(cqc, PRM_PTR(create_cq_in, in, cq_context), page_offset, hv_ring_offset(ring));
    hv_set_pas(PRM_PTR(create_cq_in, in, pas), ring, size);
    return in;
}

static enum prm_cqe_sz cq_cqe_sz(const struct hv_cq *cq)
{
    return cq->cqe_size != 128 ? PRM_CQE_SZ_64_BYTES
           : cq->pads          ? PRM_CQE_SZ_128_BYTES_PAD
                               : PRM_CQE_SZ_128_BYTES;
}

/* Asks for compressed CQEs (mlx5_ib: create_cq_user()). 0 or errno. */
static int cq_set_compression(const struct hv_cq *cq, struct prm_cqc *cqc)
{
    unsigned format;

    if (!cq->compression) {
        return 0;
    }
    if (cq->cqe_size == 128 ? !HV_CAP(cq->hca, cqe_compression_128)
                            : !HV_CAP(cq->hca, cqe_compression)) {
        return hv_refuse(cq->hca, EOPNOTSUPP,
                         "create_cq: the device does not compress CQEs of %u bytes", cq->cqe_size);
    }
    switch (cq->compression) {
    case MLX5DV_CQE_RES_FORMAT_HASH:
        format = PRM_MINI_CQE_FORMAT_HASH;
        break;
    case MLX5DV_CQE_RES_FORMAT_CSUM:
        format = PRM_MINI_CQE_FORMAT_CSUM;
        break;
    case MLX5DV_CQE_RES_FORMAT_CSUM_STRIDX:
        if (!HV_CAP(cq->hca, mini_cqe_resp_stride_index)) {
            return hv_refuse(cq->hca, EOPNOTSUPP,
                             "create_cq: the device has no compressed CQEs with a stride index");
        }
        format = PRM_MINI_CQE_FORMAT_CSUM_STRIDX;
        break;
    default:
        return hv_refuse(cq->hca, EINVAL,
                         "create_cq: cqe_comp_res_format is 0x%x; it must be one "
                         "MLX5DV_CQE_RES_FORMAT_",
                         cq->compression);
    }
    PRM_SET(cqc, cqc, cqe_comp_en, 1);
    PRM_SET(cqc, cqc, mini_cqe_res_format, format);
    return 0;
}

int uverbs_create_cq(struct hv_cq *cq, bool ignore_overrun)
{
    struct prm_create_cq_out out[1] = {0};
    size_t len;
    g_autofree struct prm_create_cq_in *in = cq_ring_cmd(cq->ring, cq->ring_size, &len);
    struct prm_cqc *cqc = PRM_PTR(create_cq_in, in, cq_context);
    const struct ibv_comp_channel *channel = cq->ibv.channel;
    int err;

    /* a descriptor of another file is invalid (lookup_get_fd_uobject()) */
    if (channel &&
        ((const struct hv_channel *)channel)->file.file != hv_context(cq->ibv.context)->file) {
        return hv_refuse(cq->hca, EBADF, "create_cq: the completion channel is of another context");
    }
    err = cq_set_compression(cq, cqc);
    err = err ? err : hv_ring_check(cq->hca, "create_cq", cq->ring, HV_QUEUE_OFFSETS);
    err =
        err ? err : hv_pin_queue(cq->ibv.context, cq->ring, cq->ring_size, cq->dbrec, &cq->pinned);
    if (err) {
        return err;
    }
    PRM_SET(create_cq_in, in, opcode, PRM_CMD_OP_CREATE_CQ);
    PRM_SET(create_cq_in, in, uid, hv_context(cq->ibv.context)->uid);
    PRM_SET(cqc, cqc, cqe_sz, cq_cqe_sz(cq));
    PRM_SET(cqc, cqc, oi, ignore_overrun);
    PRM_SET(cqc, cqc, log_cq_size, cq->log_size);
    PRM_SET(cqc, cqc, uar_page, cq->uar->page);
    PRM_SET(cqc, cqc, c_eqn_or_apu_element, hv_comp_eqn(cq->hca, cq->comp_vector));
    PRM_SET(cqc, cqc, dbr_addr, (uintptr_t)shadow_real(cq->dbrec));
    err = hv_cmd(cq->hca, in, len, out, sizeof(out));
    if (!err) {
        cq->cqn = PRM_GET(create_cq_out, out, cqn);
        cq->ibv.handle = hv_handle_add(cq->ibv.context, HV_HANDLE_CQ, cq);
        hv_event_add_cq(cq->hca, cq);
    } else {
        hv_unpin_queue(cq->ibv.context, cq->dbrec, &cq->pinned);
    }
    return err;
}

int uverbs_destroy_cq(struct hv_cq *cq)
{
    struct prm_destroy_cq_in in[1] = {0};
    int err = hv_cq_check(&cq->ibv);

    if (!err && g_atomic_int_get(&cq->users)) {
        err = hv_refuse(cq->hca, EBUSY,
                        "destroy_cq: %d queues use the CQ (QPs count for send_cq and for recv_cq); "
                        "destroy them first",
                        g_atomic_int_get(&cq->users));
    }
    if (err) {
        return err;
    }
    PRM_SET(destroy_cq_in, in, opcode, PRM_CMD_OP_DESTROY_CQ);
    PRM_SET(destroy_cq_in, in, uid, hv_context(cq->ibv.context)->uid);
    PRM_SET(destroy_cq_in, in, cqn, cq->cqn);
    err = hv_cmd_simple(cq->hca, in, sizeof(in));
    if (!err) {
        hv_handle_del(cq->ibv.context, cq->ibv.handle);
        hv_event_del_cq(cq->hca, cq);
        hv_unpin_queue(cq->ibv.context, cq->dbrec, &cq->pinned);
    }
    return err;
}

/* Changes the moderation of a CQ. */
int uverbs_modify_cq(struct hv_cq *cq, const struct ibv_modify_cq_attr *attr)
{
    struct prm_modify_cq_in in[1] = {0};
    struct prm_cqc *cqc = PRM_PTR(modify_cq_in, in, cq_context);
    int err;

    if (!attr->attr_mask) {
        return EINVAL;
    }
    if (attr->attr_mask > IBV_CQ_ATTR_MODERATE) {
        return EOPNOTSUPP;
    }
    err = hv_cq_check(&cq->ibv);
    if (err) {
        return err;
    }
    if (!HV_CAP(cq->hca, cq_moderation)) {
        return EOPNOTSUPP;
    }
    if (attr->moderate.cq_period > MAX_CQ_PERIOD) {
        return EINVAL;
    }
    PRM_SET(modify_cq_in, in, opcode, PRM_CMD_OP_MODIFY_CQ);
    PRM_SET(modify_cq_in, in, uid, hv_context(cq->ibv.context)->uid);
    PRM_SET(modify_cq_in, in, cqn, cq->cqn);
    PRM_SET(modify_cq_in, in, modify_field_select_resize_field_select,
            PRM_CQ_MODIFY_CQ_PERIOD | PRM_CQ_MODIFY_CQ_MAX_COUNT);
    PRM_SET(cqc, cqc, cq_period, attr->moderate.cq_period);
    PRM_SET(cqc, cqc, cq_max_count, attr->moderate.cq_count);
    return hv_cmd_simple(cq->hca, in, sizeof(in));
}

/* Whether the device may write over CQEs that are not polled yet (mlx5_ib_exp_modify_cq()). */
int uverbs_ignore_overrun(struct hv_cq *cq, bool ignore)
{
    struct prm_modify_cq_in in[1] = {0};
    int err = hv_cq_check(&cq->ibv);

    if (err) {
        return err;
    }
    if (!HV_CAP(cq->hca, cq_oi)) {
        return hv_refuse(cq->hca, ENOSYS, "exp_modify_cq: the device reports every overrun");
    }
    PRM_SET(modify_cq_in, in, opcode, PRM_CMD_OP_MODIFY_CQ);
    PRM_SET(modify_cq_in, in, uid, hv_context(cq->ibv.context)->uid);
    PRM_SET(modify_cq_in, in, cqn, cq->cqn);
    PRM_SET(modify_cq_in, in, modify_field_select_resize_field_select, PRM_CQ_MODIFY_OI);
    PRM_SET(cqc, PRM_PTR(modify_cq_in, in, cq_context), oi, ignore);
    return hv_cmd_simple(cq->hca, in, sizeof(in));
}

int uverbs_check_resize_cq(struct hv_cq *cq, int cqe)
{
    int err = hv_check_there(cq->hca);

    err = err ? err : hv_cq_check(&cq->ibv);
    if (!err && !HV_CAP(cq->hca, cq_resize)) {
        err = hv_refuse(cq->hca, ENOSYS, "resize_cq: the device does not resize CQs");
    }
    if (!err && (cqe < 1 || g_bit_storage((gulong)cqe) > HV_CAP(cq->hca, log_max_cq_sz))) {
        err = hv_refuse(cq->hca, EINVAL, "resize_cq: cqe is %d; it may be 1 to %u", cqe,
                        (1u << HV_CAP(cq->hca, log_max_cq_sz)) - 1);
    }
    return err;
}

int uverbs_resize_cq(struct hv_cq *cq, const uint8_t *ring, size_t size, unsigned log_size)
{
    size_t len;
    g_autofree struct prm_modify_cq_in *in = cq_ring_cmd(ring, size, &len);
    struct prm_cqc *cqc = PRM_PTR(modify_cq_in, in, cq_context);
    uint64_t pinned;
    int err = hv_ring_check(cq->hca, "resize_cq", ring, HV_QUEUE_OFFSETS);

    err = err ? err : hv_pin(cq->hca, ring, size, &pinned);
    if (err) {
        return err;
    }
    G_STATIC_ASSERT(PRM_OFFSET(modify_cq_in, pas) == PRM_OFFSET(create_cq_in, pas));
    G_STATIC_ASSERT(PRM_OFFSET(modify_cq_in, cq_context) == PRM_OFFSET(create_cq_in, cq_context));
    PRM_SET(modify_cq_in, in, opcode, PRM_CMD_OP_MODIFY_CQ);
    PRM_SET(modify_cq_in, in, op_mod, PRM_MODIFY_CQ_OP_RESIZE_CQ);
    PRM_SET(modify_cq_in, in, uid, hv_context(cq->ibv.context)->uid);
    PRM_SET(modify_cq_in, in, cqn, cq->cqn);
    PRM_SET(modify_cq_in, in, modify_field_select_resize_field_select,
            PRM_CQ_RESIZE_LOG_CQ_SIZE | PRM_CQ_RESIZE_PAGE_OFFSET | PRM_CQ_RESIZE_LOG_PAGE_SIZE);
    PRM_SET(cqc, cqc, cqe_sz, cq_cqe_sz(cq));
    PRM_SET(cqc, cqc, log_cq_size, log_size);
    err = hv_cmd_simple(cq->hca, in, len);
    hv_unpin(err ? &pinned : &cq->pinned); /* the ring that the CQ does not use (any more) */
    cq->pinned = err ? cq->pinned : pinned;
    return err;
}
