/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DevX: objects that a program makes with commands of its own (mlx5dv_devx_obj_*), commands on
 * objects of verbs, and general commands.
 *
 * Every command is sent with the context's user number, so the firmware checks which objects it may
 * use. Which commands are allowed is checked here, as the kernel's driver does (devx_cmd.h).
 */
#include "guest-lib/verbs/kernel/devx.h"
#include "guest-lib/verbs/kernel/devx_cmd.h"
#include "guest-lib/verbs/kernel/odp.h"
#include "guest-lib/verbs/kernel/refuse.h"
#include "guest-lib/verbs/kernel/watch.h"

/* The shortest input and output that the kernel accepts. */
#define MIN_LEN 16u

int hv_dv_command(struct ibv_context *ctx, const void *in, size_t inlen, void *out, size_t outlen,
                  bool umem)
{
    struct prm_general_obj_in_cmd_hdr *copy = g_memdup2(in, inlen);
    int err;

    PRM_SET(general_obj_in_cmd_hdr, copy, uid, hv_context(ctx)->uid);
    if (umem) {
        devx_cmd_set_umem_valid(copy, inlen);
    }
    err = hv_cmd(hv_hca_of(ctx), copy, inlen, out, outlen);
    g_free(copy);
    if (err && PRM_GET(cmd_out, out, status) != PRM_CMD_STATUS_OK) {
        return EREMOTEIO;
    }
    return err;
}

static bool devx_lengths_fit(size_t inlen, size_t outlen)
{
    return inlen >= MIN_LEN && outlen >= MIN_LEN && inlen <= UINT16_MAX && outlen <= UINT16_MAX;
}

static bool devx_is_tunnelled(const struct prm_general_obj_in_cmd_hdr *in)
{
    return PRM_GET(general_obj_in_cmd_hdr, in, vhca_tunnel_id) != 0;
}

/* -- objects -----------------------------------------------------------------------------------
 */

/* Registers the ring of a QP whose send queue has no doorbell record. */
static void devx_watch_ring(const struct mlx5dv_devx_obj *obj, const struct prm_create_qp_in *in)
{
    const struct prm_qpc *qpc = PRM_PTR(create_qp_in, in, qpc);
    unsigned log_size = PRM_GET(qpc, qpc, log_sq_size);
    uint64_t at = PRM_GET(create_qp_in, in, wq_umem_offset);
    const void *ring;

    if (PRM_GET(qpc, qpc, rq_type) == PRM_RQ_TYPE_REGULAR) {
        at += 16ull << (PRM_GET(qpc, qpc, log_rq_size) + PRM_GET(qpc, qpc, log_rq_stride));
    }
    ring =
        hv_dv_umem_at(obj->context, PRM_GET(create_qp_in, in, wq_umem_id), at, 64ull << log_size);
    if (ring) {
        hv_watch_ring(hv_hca_of(obj->context), obj, obj->id, ring, log_size);
    }
}

/* Registers the doorbell page and record of a queue that was just made, so that its doorbells are
 * noticed. Returns 0 or errno. */
static int devx_watch_queue(const struct mlx5dv_devx_obj *obj, const void *in)
{
    enum hv_watch_kind kind = obj->object == PRM_OBJECT(CQ) ? HV_WATCH_CQ : HV_WATCH_SQ;
    const void *queue;
    uint32_t umem, uar, *dbrec;
    uint64_t at;
    int err;

    switch (obj->object->create->opcode) {
    case PRM_CMD_OP_CREATE_CQ:
        queue = PRM_PTR(create_cq_in, in, cq_context);
        umem = PRM_GET(cqc, queue, dbr_umem_id);
        at = PRM_GET(cqc, queue, dbr_addr);
        uar = PRM_GET(cqc, queue, uar_page);
        break;
    case PRM_CMD_OP_CREATE_QP:
        queue = PRM_PTR(create_qp_in, in, qpc);
        umem = PRM_GET(qpc, queue, dbr_umem_id);
        at = PRM_GET(qpc, queue, dbr_addr);
        uar = PRM_GET(qpc, queue, uar_page);
        if (PRM_GET(qpc, queue, send_dbr_mode) == PRM_SEND_DBR_MODE_NO_DBR_EXT) {
            kind = HV_WATCH_SQ_NO_RECORD;
        }
        break;
    case PRM_CMD_OP_CREATE_SQ:
        queue = PRM_PTR(sqc, PRM_PTR(create_sq_in, in, ctx), wq);
        umem = PRM_GET(wq, queue, dbr_umem_id);
        at = PRM_GET(wq, queue, dbr_addr);
        uar = PRM_GET(wq, queue, uar_page);
        break;
    default:
        return 0;
    }
    dbrec = kind == HV_WATCH_SQ_NO_RECORD ? NULL : hv_dv_umem_at(obj->context, umem, at, 8);
    /* the second word is the send counter, or the arm word */
    err =
        hv_watch_queue(hv_context(obj->context), obj, kind, obj->id, uar, dbrec ? dbrec + 1 : NULL);
    if (!err && kind == HV_WATCH_SQ_NO_RECORD) {
        devx_watch_ring(obj, in);
    }
    return err;
}

/* Notes for the pager a key that names other keys (devx_handle_mkey_indirect()), and a queue. */
static void devx_note_for_pager(const struct mlx5dv_devx_obj *obj, const void *in)
{
    const struct prm_mkc *mkc =
        PRM_PTR(create_mkey_in, (struct prm_create_mkey_in *)(uintptr_t)in, memory_key_mkey_entry);

    if (obj->object == PRM_OBJECT(QP) || obj->object == PRM_OBJECT(RQ) ||
        obj->object == PRM_OBJECT(SQ) || obj->object == PRM_OBJECT(RMP)) {
        hv_odp_note_devx_queue(hv_hca_of(obj->context));
    }
    if (obj->object == PRM_OBJECT(MKEY) && devx_cmd_is_of_keys(in)) {
        hv_odp_add_indirect(hv_hca_of(obj->context), obj->id << 8 | PRM_GET(mkc, mkc, mkey_7_0),
                            PRM_GET(mkc, mkc, translations_octword_size));
    }
}

struct mlx5dv_devx_obj *hv_dv_devx_obj_create(struct ibv_context *ctx, const void *in, size_t inlen,
                                              void *out, size_t outlen)
{
    struct mlx5dv_devx_obj *obj;
    struct prm_general_obj_in_cmd_hdr *copy;
    int err;

    if (!devx_lengths_fit(inlen, outlen) || devx_is_tunnelled(in) ||
        !devx_cmd_does(in, PRM_CREATES)) {
        errno = EINVAL;
        return NULL;
    }
    err = hv_dv_command(ctx, in, inlen, out, outlen, true);
    if (err) {
        errno = err;
        return NULL;
    }
    copy = g_memdup2(in, inlen);
    PRM_SET(general_obj_in_cmd_hdr, copy, uid, hv_context(ctx)->uid);
    obj = g_new0(struct mlx5dv_devx_obj, 1);
    obj->context = ctx;
    devx_cmd_created(obj, copy, inlen, out, outlen);
    devx_note_for_pager(obj, in);
    obj->handle = hv_handle_add(ctx, HV_HANDLE_DEVX_OBJ, obj);
    g_free(copy);
    err = devx_watch_queue(obj, in);
    if (err) {
        hv_dv_devx_obj_destroy(obj);
        errno = err;
        return NULL;
    }
    return obj;
}

int uverbs_destroy_devx_obj(struct mlx5dv_devx_obj *obj)
{
    struct hv_hca *hca = hv_hca_of(obj->context);
    uint8_t out[MIN_LEN] = {0};
    int err = 0;

    if (obj->object == PRM_OBJECT(DCT)) {
        err = hv_drain_dct(hca, hv_context(obj->context)->uid, obj->id);
    }
    if (obj->object == PRM_OBJECT(MKEY)) {
        hv_odp_del_indirect(hca, obj->id << 8);
    }
    err = err ? err : hv_cmd(hca, obj->destroy, obj->object->destroy->in_least, out, sizeof(out));
    if (err) {
        return err;
    }
    hv_watch_forget(hca, obj);
    hv_dv_unsubscribe_obj(obj);
    hv_handle_del(obj->context, obj->handle);
    return 0;
}

int hv_devx_obj_end(struct mlx5dv_devx_obj *obj)
{
    int err = hv_kernel(uverbs_destroy_devx_obj(obj));

    if (!err) {
        g_free(obj);
    }
    return err;
}

int hv_dv_devx_obj_destroy(struct mlx5dv_devx_obj *obj)
{
    /* a removed device has no methods left */
    int err = hv_kernel(hv_check_there(hv_hca_of(obj->context)));

    return err ? err : hv_devx_obj_end(obj);
}

/* Runs a command about the object with this kind and number: 0 or errno. */
static int devx_try_use(struct ibv_context *ctx, enum prm_act act, const struct prm_object *object,
                        uint32_t id, uint32_t obj_type, const void *in, size_t inlen, void *out,
                        size_t outlen)
{
    const struct prm_object *its;
    uint32_t its_id, its_type;

    if (!devx_lengths_fit(inlen, outlen) || devx_is_tunnelled(in) || !devx_cmd_does(in, act) ||
        !devx_cmd_object(in, inlen, &its, &its_id, &its_type) || its != object || its_id != id ||
        its_type != obj_type) {
        return EINVAL;
    }
    return hv_dv_command(ctx, in, inlen, out, outlen, act == PRM_MODIFIES);
}

/* The same for a program, which names the object by its handle. checked: the result of
 * hv_handle_check() for that handle. */
static int devx_use(int checked, struct ibv_context *ctx, enum prm_act act,
                    const struct prm_object *object, uint32_t id, uint32_t obj_type, const void *in,
                    size_t inlen, void *out, size_t outlen)
{
    return hv_kernel(
        checked ? checked : devx_try_use(ctx, act, object, id, obj_type, in, inlen, out, outlen));
}

int hv_dv_devx_obj_query(struct mlx5dv_devx_obj *obj, const void *in, size_t inlen, void *out,
                         size_t outlen)
{
    return devx_use(0, obj->context, PRM_QUERIES, obj->object, obj->id, obj->obj_type, in, inlen,
                    out, outlen);
}

int hv_dv_devx_obj_modify(struct mlx5dv_devx_obj *obj, const void *in, size_t inlen, void *out,
                          size_t outlen)
{
    int err = devx_use(0, obj->context, PRM_MODIFIES, obj->object, obj->id, obj->obj_type, in,
                       inlen, out, outlen);

    if (!err && PRM_GET(general_obj_in_cmd_hdr, in, opcode) == PRM_CMD_OP_2RST_QP) {
        hv_watch_reset(hv_hca_of(obj->context), obj);
    }
    return err;
}

int hv_dv_devx_general_cmd(struct ibv_context *ctx, const void *in, size_t inlen, void *out,
                           size_t outlen)
{
    if (!devx_lengths_fit(inlen, outlen) || !devx_cmd_is_general(in)) {
        return hv_kernel(EINVAL);
    }
    return hv_kernel(hv_dv_command(ctx, in, inlen, out, outlen, false));
}

/* -- commands on verbs' objects ----------------------------------------------------------------
 */

int hv_dv_devx_cq_query(struct ibv_cq *cq, const void *in, size_t inlen, void *out, size_t outlen)
{
    return devx_use(hv_cq_check(cq), cq->context, PRM_QUERIES, PRM_OBJECT(CQ), hv_cq(cq)->cqn, 0,
                    in, inlen, out, outlen);
}

int hv_dv_devx_cq_modify(struct ibv_cq *cq, const void *in, size_t inlen, void *out, size_t outlen)
{
    return devx_use(hv_cq_check(cq), cq->context, PRM_MODIFIES, PRM_OBJECT(CQ), hv_cq(cq)->cqn, 0,
                    in, inlen, out, outlen);
}

/* A raw packet QP consists of four objects; a command may be about any of them. */
static int devx_use_qp(struct ibv_qp *ibqp, enum prm_act act, const void *in, size_t inlen,
                       void *out, size_t outlen)
{
    struct hv_qp *qp = hv_qp(ibqp);
    const struct {
        const struct prm_object *object;
        uint32_t id;
    } parts[] = {
        {PRM_OBJECT(RQ), qp->rqn},
        {PRM_OBJECT(SQ), qp->sqn},
        {PRM_OBJECT(TIR), qp->tirn},
        {PRM_OBJECT(TIS), qp->tisn},
    };
    int err = hv_qp_check(ibqp);

    if (err || ibqp->qp_type != IBV_QPT_RAW_PACKET) {
        return devx_use(err, ibqp->context, act, PRM_OBJECT(QP), ibqp->qp_num, 0, in, inlen, out,
                        outlen);
    }
    err = EINVAL;
    for (size_t i = 0; i < G_N_ELEMENTS(parts) && err == EINVAL; i++) {
        err = devx_try_use(ibqp->context, act, parts[i].object, parts[i].id, 0, in, inlen, out,
                           outlen);
    }
    return hv_kernel(err);
}

int hv_dv_devx_qp_query(struct ibv_qp *qp, const void *in, size_t inlen, void *out, size_t outlen)
{
    return devx_use_qp(qp, PRM_QUERIES, in, inlen, out, outlen);
}

/* The state that a transition command leads to. -1: it is not such a command. */
static int devx_state_after(uint16_t op)
{
    switch (op) {
    case PRM_CMD_OP_RST2INIT_QP:
    case PRM_CMD_OP_INIT2INIT_QP:
        return IBV_QPS_INIT;
    case PRM_CMD_OP_INIT2RTR_QP:
        return IBV_QPS_RTR;
    case PRM_CMD_OP_RTR2RTS_QP:
    case PRM_CMD_OP_RTS2RTS_QP:
    case PRM_CMD_OP_SQERR2RTS_QP:
        return IBV_QPS_RTS;
    case PRM_CMD_OP_2ERR_QP:
        return IBV_QPS_ERR;
    case PRM_CMD_OP_2RST_QP:
        return IBV_QPS_RESET;
    default:
        return -1;
    }
}

int hv_dv_devx_qp_modify(struct ibv_qp *qp, const void *in, size_t inlen, void *out, size_t outlen)
{
    int err = devx_use_qp(qp, PRM_MODIFIES, in, inlen, out, outlen);
    int state = err ? -1 : devx_state_after((uint16_t)PRM_GET(general_obj_in_cmd_hdr, in, opcode));

    if (state >= 0) {
        qp->state = hv_qp(qp)->state = (enum ibv_qp_state)state;
    }
    return err;
}

static int devx_use_srq(struct ibv_srq *srq, enum prm_act act, const void *in, size_t inlen,
                        void *out, size_t outlen)
{
    return devx_use(hv_srq_check(srq), srq->context, act, hv_srq_object(hv_srq(srq)),
                    hv_srq(srq)->srqn, 0, in, inlen, out, outlen);
}

int hv_dv_devx_srq_query(struct ibv_srq *srq, const void *in, size_t inlen, void *out,
                         size_t outlen)
{
    return devx_use_srq(srq, PRM_QUERIES, in, inlen, out, outlen);
}

int hv_dv_devx_srq_modify(struct ibv_srq *srq, const void *in, size_t inlen, void *out,
                          size_t outlen)
{
    return devx_use_srq(srq, PRM_MODIFIES, in, inlen, out, outlen);
}

int hv_dv_devx_wq_query(struct ibv_wq *wq, const void *in, size_t inlen, void *out, size_t outlen)
{
    return devx_use(hv_wq_check(wq), wq->context, PRM_QUERIES, PRM_OBJECT(RQ),
                    ((struct hv_rwq *)wq)->rqn, 0, in, inlen, out, outlen);
}

int hv_dv_devx_wq_modify(struct ibv_wq *wq, const void *in, size_t inlen, void *out, size_t outlen)
{
    return devx_use(hv_wq_check(wq), wq->context, PRM_MODIFIES, PRM_OBJECT(RQ),
                    ((struct hv_rwq *)wq)->rqn, 0, in, inlen, out, outlen);
}

/* The ind_tbl_num of a table is the RQT's number, as in mlx5_ib. */
int hv_dv_devx_ind_tbl_query(struct ibv_rwq_ind_table *table, const void *in, size_t inlen,
                             void *out, size_t outlen)
{
    return devx_use(hv_ind_table_check(table), table->context, PRM_QUERIES, PRM_OBJECT(RQT),
                    (uint32_t)table->ind_tbl_num, 0, in, inlen, out, outlen);
}

int hv_dv_devx_ind_tbl_modify(struct ibv_rwq_ind_table *table, const void *in, size_t inlen,
                              void *out, size_t outlen)
{
    return devx_use(hv_ind_table_check(table), table->context, PRM_MODIFIES, PRM_OBJECT(RQT),
                    (uint32_t)table->ind_tbl_num, 0, in, inlen, out, outlen);
}
