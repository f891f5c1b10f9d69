/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues: their rings, arming, resizing, and removing the completions of a queue that is
 * destroyed. Polling is in cq_poll.c and cq_ex.c.
 */
#include "guest-lib/verbs/user/cq.h"
#include "guest-lib/verbs/exp/peer.h"
#include "guest-lib/verbs/exp/send.h"
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#define SUPPORTED_WC_FLAGS                                                                         \
    (IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_CVLAN |          \
     IBV_WC_EX_WITH_FLOW_TAG | IBV_WC_EX_WITH_TM_INFO |                                            \
     IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
#define SUPPORTED_FLAGS (IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)
#define SUPPORTED_DV                                                                               \
    (MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE | MLX5DV_CQ_INIT_ATTR_MASK_FLAGS |                    \
     MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE)

void hv_cq_lock_pair(struct user_cq *a, struct user_cq *b)
{
    struct user_cq *first = a && b && b->cqn < a->cqn ? b : a;
    struct user_cq *second = first == a ? b : a;

    if (first) {
        cq_lock(first);
    }
    if (second && second != first) {
        cq_lock(second);
    }
}

void hv_cq_unlock_pair(struct user_cq *a, struct user_cq *b)
{
    if (a) {
        cq_unlock(a);
    }
    if (b && b != a) {
        cq_unlock(b);
    }
}

/* -- creation -----------------------------------------------------------------------------------
 */

/* The size of a CQE in bytes: 64, or 128 if the program or its environment says so. 0: they ask for
 * an invalid size. */
static unsigned cq_choose_cqe_size(const struct mlx5dv_cq_init_attr *dv)
{
    const char *env = getenv("MLX5_CQE_SIZE");
    long size = 64;

    if (dv && (dv->comp_mask & MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE)) {
        size = dv->cqe_size;
    } else if (env) {
        size = strtol(env, NULL, 10);
    }
    return size == 64 || size == 128 ? (unsigned)size : 0;
}

static int cq_check_dv_attr(struct hv_hca *hca, const struct mlx5dv_cq_init_attr *dv,
                            unsigned cqe_size)
{
    if (dv->comp_mask & ~(uint64_t)SUPPORTED_DV) {
        return EINVAL;
    }
    if ((dv->comp_mask & MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE) &&
        !(dv->cqe_comp_res_format & hv_dv_cqe_comp_caps(hca).supported_format)) {
        return hv_refuse(hca, EINVAL, "create_cq: cqe_comp_res_format is 0x%x; supported are 0x%x",
                         dv->cqe_comp_res_format, hv_dv_cqe_comp_caps(hca).supported_format);
    }
    if (dv->comp_mask & MLX5DV_CQ_INIT_ATTR_MASK_FLAGS) {
        if (dv->flags & ~(uint32_t)MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD) {
            return EINVAL;
        }
        if (dv->flags && (!HV_CAP(hca, cqe_128_always) || cqe_size != 128)) {
            return EINVAL;
        }
    }
    return 0;
}

/* The checks of libmlx5 and uverbs before a command is sent: 0 or errno. */
static int cq_check_attr(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr,
                         const struct mlx5dv_cq_init_attr *dv)
{
    struct hv_hca *hca = hv_hca_of(context);

    if (attr->comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)) {
        return hv_refuse(hca, EINVAL, "create_cq: comp_mask 0x%x has unknown bits",
                         attr->comp_mask);
    }
    if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
        (attr->flags & ~(uint32_t)SUPPORTED_FLAGS)) {
        return hv_refuse(hca, EINVAL, "create_cq: flags 0x%x has unknown bits", attr->flags);
    }
    if (attr->cqe && (attr->wc_flags & ~(uint64_t)SUPPORTED_WC_FLAGS)) {
        return hv_refuse(hca, ENOTSUP, "create_cq: wc_flags 0x%" PRIx64 " has unsupported bits",
                         attr->wc_flags & ~(uint64_t)SUPPORTED_WC_FLAGS);
    }
    if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) &&
        (!attr->parent_domain || hv_pd(attr->parent_domain)->kind != HV_PD_PARENT_DOMAIN)) {
        return hv_refuse(hca, EINVAL, "create_cq: parent_domain is no parent domain");
    }
    if (!attr->cqe || g_bit_storage(attr->cqe) > HV_CAP(hca, log_max_cq_sz)) {
        return hv_refuse(hca, EINVAL, "create_cq: cqe is %u; it may be 1 to %u", attr->cqe,
                         (1u << HV_CAP(hca, log_max_cq_sz)) - 1);
    }
    if (attr->comp_vector >= (uint32_t)context->num_comp_vectors) {
        return hv_refuse(hca, EINVAL, "create_cq: comp_vector is %u; it may be 0 to %d",
                         attr->comp_vector, context->num_comp_vectors - 1);
    }
    if (!cq_choose_cqe_size(dv)) {
        return hv_refuse(
            hca, EINVAL,
            "create_cq: the size of a CQE (cqe_size, MLX5_CQE_SIZE) must be 64 or 128");
    }
    return dv ? cq_check_dv_attr(hca, dv, cq_choose_cqe_size(dv)) : 0;
}

#define UNWRITTEN (PRM_CQE_OPCODE_INVALID << 4)

/* Marks all entries as not written yet. */
static void cq_init_ring(uint8_t *ring, uint32_t ncqe, unsigned cqe_size, unsigned unwritten)
{
    for (uint32_t i = 0; i < ncqe; i++) {
        cqe_set_op_own(cqe64_at(ring, ncqe - 1, cqe_size, i), unwritten);
    }
}

/* The CQE of the library's shadow by which a poll notices that only a GPU polls the CQ: it names no
 * queue (hv_cq_poll_lost()). */
static void cq_leave_to_gpu(struct user_cq *cq)
{
    struct prm_cqe64 *first = cq_cqe64(cq, 0);

    PRM_SET(cqe64, first, srqn, HV_UIDX_NONE);
    cqe_set_op_own(first, PRM_CQE_OPCODE_REQ << 4);
}

/* Writes what ring and record hold at the beginning, also those of the program (create_cq() of
 * libmlx5). Returns 0 or errno. */
static int cq_init_memory(struct user_cq *cq)
{
    bool shadow = shadow_is(cq->ring);

    cq->on_gpu = shadow || shadow_is(cq->dbrec);
    if (cq->on_gpu && !shadow) {
        uint8_t *covered = shadow_cover(cq->ring, cq->ring_size);

        if (!covered) {
            return ENOMEM;
        }
        cq->ring = covered;
    }
    cq_init_ring(cq->ring, 1u << cq->log_size, cq->cqe_size,
                 cq->peer_cq ? exp_peer_unwritten(cq) : UNWRITTEN);
    cq->dbrec[0] = cq->dbrec[1] = 0;
    if (!cq->on_gpu) {
        return 0;
    }
    if (!shadow_flush(cq->ring, cq->ring_size) || !shadow_flush(cq->dbrec, HV_DBREC_SIZE)) {
        return EFAULT;
    }
    cq_leave_to_gpu(cq);
    return 0;
}

static size_t cq_ring_bytes(uint32_t ncqe, unsigned cqe_size)
{
    return hv_whole_pages((size_t)ncqe * cqe_size);
}

/* As verbs_init_cq(). */
static void cq_init_public(struct user_cq *cq, struct ibv_context *context,
                           const struct ibv_cq_init_attr_ex *attr)
{
    struct ibv_cq *ibv = &cq->ibv;

    ibv->context = context;
    ibv->channel = attr->channel;
    ibv->cq_context = attr->cq_context;
    ibv->cqe = (1 << cq->log_size) - 1;
    pthread_mutex_init(&ibv->mutex, NULL);
    pthread_cond_init(&ibv->cond, NULL);
}

/* Counts the CQs of a channel: while there are any, it cannot be destroyed. */
static void cq_use_channel(struct user_cq *cq, int change)
{
    if (cq->ibv.channel) {
        g_atomic_int_add(&cq->ibv.channel->refcnt, change);
    }
}

static void cq_free_memory(struct user_cq *cq, struct hv_context *ctx)
{
    if (cq->peer_cq) {
        exp_peer_free_cq(cq);
    }
    if (cq->dbrec) {
        hv_db_free(ctx, cq->parent_domain, cq->dbrec, cq->dbrec_from);
    }
    if (cq->ring && cq->ring_from != HV_FROM_PEER) {
        hv_buf_free(cq->parent_domain, cq->ring, cq->ring_size, MLX5DV_RES_TYPE_CQ, cq->ring_from);
    }
}

static void cq_free(struct user_cq *cq)
{
    pthread_spin_destroy(&cq->lock);
    free(cq);
}

/* Allocates ring and record: 0 or errno. */
static int cq_alloc_memory(struct user_cq *cq, struct hv_context *ctx,
                           const struct ibv_exp_peer_direct_attr *peer)
{
    int err = 0;

    cq->ring_size = cq_ring_bytes(1u << cq->log_size, cq->cqe_size);
    if (peer) {
        err = exp_peer_new_cq(cq, peer);
    } else {
        cq->ring = hv_buf_alloc(cq->parent_domain, cq->ring_size, PCI_PAGE, MLX5DV_RES_TYPE_CQ,
                                &cq->ring_from);
    }
    if (!err && cq->ring) {
        cq->dbrec = hv_db_alloc(ctx, cq->parent_domain, &cq->dbrec_from);
    }
    return err ? err : cq->dbrec ? 0 : ENOMEM;
}

/* peer: NULL, or the peer that waits for completions. */
static struct user_cq *cq_create(struct ibv_context *context,
                                 const struct ibv_cq_init_attr_ex *attr, bool extended,
                                 const struct mlx5dv_cq_init_attr *dv,
                                 const struct ibv_exp_peer_direct_attr *peer)
{
    struct hv_context *ctx = hv_context(context);
    uint32_t flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;
    const char *env = getenv("MLX5_SINGLE_THREADED");
    struct user_cq *cq;
    int err;

    err = cq_check_attr(context, attr, dv);
    err = err || !peer ? err : exp_peer_check_cq(ctx->hca, peer);
    if (err) {
        errno = err;
        return NULL;
    }
    cq = calloc(1, sizeof(*cq));
    if (!cq) {
        return NULL;
    }
    pthread_spin_init(&cq->lock, PTHREAD_PROCESS_PRIVATE);
    cq->hca = ctx->hca;
    cq->uar = &ctx->uar;
    cq->cur_uidx = HV_UIDX_NONE;
    cq->wc_flags = attr->wc_flags;
    cq->real_time = hv_has_real_time(cq->hca) &&
                    (attr->wc_flags & (IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                                       IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)) ==
                        IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
    cq->single_threaded =
        (flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) || (env && !strcmp(env, "1"));
    if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) {
        cq->parent_domain = hv_pd(attr->parent_domain);
    }
    cq->cqe_size = cq_choose_cqe_size(dv);
    if (dv) {
        cq->pads = dv->comp_mask & MLX5DV_CQ_INIT_ATTR_MASK_FLAGS &&
                   dv->flags & MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD;
        cq->compression =
            dv->comp_mask & MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE ? dv->cqe_comp_res_format : 0;
    }
    cq->log_size = (uint32_t)g_bit_storage(attr->cqe);
    cq->comp_vector = attr->comp_vector;
    err = cq_alloc_memory(cq, ctx, peer);
    if (!err && extended) {
        hv_cq_ex_init(cq, attr->wc_flags);
    }
    if (!err) {
        err = cq_init_memory(cq);
    }
    if (!err) {
        cq_init_public(cq, context, attr);
        err = uverbs_create_cq(&cq->hv, flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);
    }
    if (err) {
        cq_free_memory(cq, ctx);
        cq_free(cq);
        errno = err;
        return NULL;
    }
    if (cq->parent_domain) {
        g_atomic_int_inc(&cq->parent_domain->refs);
    }
    cq_use_channel(cq, 1);
    return cq;
}

struct user_cq *hv_cq_create(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr,
                             bool extended, const struct mlx5dv_cq_init_attr *dv)
{
    return cq_create(context, attr, extended, dv, NULL);
}

struct user_cq *hv_cq_create_for_peer(struct ibv_context *context,
                                      const struct ibv_cq_init_attr_ex *attr,
                                      const struct mlx5dv_cq_init_attr *dv,
                                      const struct ibv_exp_peer_direct_attr *peer)
{
    return cq_create(context, attr, false, dv, peer);
}

HV_EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                                       struct ibv_comp_channel *channel, int comp_vector)
{
    struct ibv_cq_init_attr_ex attr = {
        .cqe = (uint32_t)cqe,
        .cq_context = cq_context,
        .channel = channel,
        .comp_vector = (uint32_t)comp_vector,
        .wc_flags = IBV_WC_STANDARD_FLAGS,
    };
    struct user_cq *cq;

    if (cqe <= 0) {
        errno = hv_refuse(hv_hca_of(context), EINVAL, "create_cq: cqe is %d; it must be 1 or more",
                          cqe);
        return NULL;
    }
    cq = hv_cq_create(context, &attr, false, NULL);
    return cq ? &cq->ibv : NULL;
}

static struct ibv_cq_ex *create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
    struct user_cq *cq;

    if (attr->wc_flags & ~(uint64_t)IBV_CREATE_CQ_SUP_WC_FLAGS) {
        errno = hv_refuse(hv_hca_of(context), EOPNOTSUPP,
                          "create_cq: wc_flags 0x%" PRIx64 " has unsupported bits", attr->wc_flags);
        return NULL;
    }
    cq = hv_cq_create(context, attr, true, NULL);
    return cq ? &cq->ex : NULL;
}

HV_EXPORT int ibv_destroy_cq(struct ibv_cq *ibcq)
{
    struct user_cq *cq = user_cq(ibcq);
    struct hv_context *ctx = hv_context(ibcq->context);
    int err = hv_kernel(uverbs_destroy_cq(&cq->hv));

    if (err) {
        return err;
    }
    hv_event_drain_cq(cq);
    cq_use_channel(cq, -1);
    pthread_mutex_destroy(&ibcq->mutex);
    pthread_cond_destroy(&ibcq->cond);
    cq_free_memory(cq, ctx);
    if (cq->parent_domain) { /* its free() is not called any more */
        g_atomic_int_add(&cq->parent_domain->refs, -1);
    }
    cq_free(cq);
    return 0;
}

/* -- arming, moderation -------------------------------------------------------------------------
 */

/* Says why a call fails on a CQ that only a GPU polls. Returns EOPNOTSUPP. */
static int cq_refuse_gpu(struct user_cq *cq, const char *verb)
{
    return hv_refuse(cq->hca, EOPNOTSUPP,
                     "%s: the CQ lies in memory of a GPU, so only the GPU can poll and arm it",
                     verb);
}

void hv_cq_poll_lost(struct user_cq *cq)
{
    cq->ci--;
    cq_refuse_gpu(cq, "poll_cq");
}

/* As mlx5_cq_arm(): writes the doorbell record's arm word first, then the same words to the UAR. */
static int req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
    struct user_cq *cq = user_cq(ibcq);
    struct prm_cq_doorbell db[1] = {0};
    uint32_t arm;

    if (cq->on_gpu) {
        return cq_refuse_gpu(cq, "req_notify_cq");
    }
    PRM_SET(cq_doorbell, db, arm_sn, __atomic_load_n(&cq->arm_sn, __ATOMIC_RELAXED) & 3);
    PRM_SET(cq_doorbell, db, cmd,
            solicited_only ? PRM_CQ_DB_CMD_REQ_NOT_SOL : PRM_CQ_DB_CMD_REQ_NOT);
    PRM_SET(cq_doorbell, db, ci, cq->ci & 0xffffff);
    PRM_SET(cq_doorbell, db, cqn, cq->cqn);
    memcpy(&arm, db, sizeof(arm));
    __atomic_store_n(&cq->dbrec[1], arm, __ATOMIC_RELEASE);
    return hv_doorbell(cq->hca, (uint64_t)cq->uar->page * PCI_PAGE + PRM_OFFSET(uar, cq_db),
                       prm_load64(db));
}

static int cq_set_moderation(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr)
{
    return hv_kernel(uverbs_modify_cq(hv_cq(ibcq), attr));
}

/* -- resizing -----------------------------------------------------------------------------------
 */

/* Copies a whole CQE, which ends with its cqe64, and sets the owner bit of its new place. */
static void cq_copy_cqe(const struct user_cq *cq, struct prm_cqe64 *to,
                        const struct prm_cqe64 *from, unsigned owner)
{
    size_t before = cq->cqe_size - PRM_SIZE(cqe64);

    memcpy((uint8_t *)to - before, (const uint8_t *)from - before, cq->cqe_size);
    cqe_set_op_own(to, (cqe_op_own(to) & ~1u) | owner);
}

/* Moves the CQEs that were not polled from the old ring to the new one, behind the slot that
 * corresponds to the RESIZE_CQ entry. The device continues in the new ring at its own producer
 * index, and the RESIZE_CQ entry has taken one index. */
static void cq_copy_cqes(struct user_cq *cq, uint8_t *ring, unsigned log_size)
{
    uint32_t i = cq->ci;
    const struct prm_cqe64 *from;

    while ((from = cq_sw_cqe64(cq, i)) && cqe_op_own(from) >> 4 != PRM_CQE_OPCODE_RESIZE_CQ &&
           i - cq->ci <= (1u << cq->log_size)) {
        struct prm_cqe64 *to = cqe64_at(ring, (1u << log_size) - 1, cq->cqe_size, i + 1);
        unsigned owner = (i + 1) >> log_size & 1;

        cq_copy_cqe(cq, to, from, owner);
        i++;
    }
    cq->ci++;
    cq_update_ci(cq);
}

/* Resizes the CQ with its lock held. */
static int cq_resize_locked(struct user_cq *cq, int cqe)
{
    unsigned log_size = (unsigned)g_bit_storage((gulong)cqe);
    size_t size = cq_ring_bytes(1u << log_size, cq->cqe_size);
    uint8_t *ring;
    enum hv_from from;
    int err;

    if (cqe && log_size == cq->log_size) {
        return 0;
    }
    err = uverbs_check_resize_cq(&cq->hv, cqe);
    if (err || cq->on_gpu) {
        return err ? err : cq_refuse_gpu(cq, "resize_cq");
    }
    ring = hv_buf_alloc(cq->parent_domain, size, PCI_PAGE, MLX5DV_RES_TYPE_CQ, &from);
    if (!ring) {
        errno = ENOMEM; /* libmlx5 allocates before it sends the command, and returns -1 */
        return -1;
    }
    if (shadow_is(ring)) {
        hv_buf_free(cq->parent_domain, ring, size, MLX5DV_RES_TYPE_CQ, from);
        return cq_refuse_gpu(cq, "resize_cq");
    }
    cq_init_ring(ring, 1u << log_size, cq->cqe_size, UNWRITTEN);
    err = uverbs_resize_cq(&cq->hv, ring, size, log_size);
    if (err) {
        hv_buf_free(cq->parent_domain, ring, size, MLX5DV_RES_TYPE_CQ, from);
        return err;
    }
    cq_copy_cqes(cq, ring, log_size);
    hv_exp_task_resized(cq);
    hv_buf_free(cq->parent_domain, cq->ring, cq->ring_size, MLX5DV_RES_TYPE_CQ, cq->ring_from);
    cq->ring = ring;
    cq->ring_size = size;
    cq->ring_from = from;
    cq->log_size = log_size;
    cq->ibv.cqe = (1 << log_size) - 1;
    return 0;
}

HV_EXPORT int ibv_resize_cq(struct ibv_cq *ibcq, int cqe)
{
    struct user_cq *cq = user_cq(ibcq);
    int err;

    if (cqe < 0) {
        errno = EINVAL;
        return EINVAL;
    }
    if ((long long)cqe * 64 > INT_MAX) {
        return EINVAL;
    }
    if (cq->peer_cq) { /* as in libmlx5 */
        return hv_refuse(cq->hca, EINVAL, "resize_cq: a CQ with a peer cannot be resized");
    }
    cq_lock(cq);
    err = cq_resize_locked(cq, cqe);
    cq_unlock(cq);
    return err < 0 ? err : hv_kernel(err);
}

/* -- cleaning -----------------------------------------------------------------------------------
 */

static bool cq_is_receive(uint8_t opcode)
{
    return (opcode >= PRM_CQE_OPCODE_RESP_WR_IMM && opcode <= PRM_CQE_OPCODE_RESP_SEND_INV) ||
           opcode == PRM_CQE_OPCODE_RESP_ERR;
}

void hv_cq_clean(struct user_cq *cq, uint32_t uidx, struct hv_srq *srq)
{
    uint32_t pi = cq->ci, freed = 0;

    while (pi - cq->ci < (1u << cq->log_size) && cq_sw_cqe64(cq, pi)) {
        pi++;
    }
    /* backwards: CQEs that stay are moved over those that are removed */
    while (pi != cq->ci) {
        const struct prm_cqe64 *cqe = cq_cqe64(cq, --pi);

        if (PRM_GET(cqe64, cqe, srqn) == uidx) {
            freed++;
            if (srq && cq_is_receive(cqe_op_own(cqe) >> 4)) {
                hv_srq_free_wqe(srq, (uint16_t)PRM_GET(cqe64, cqe, wqe_counter));
            }
        } else if (freed) {
            struct prm_cqe64 *to = cq_cqe64(cq, pi + freed);

            cq_copy_cqe(cq, to, cqe, cqe_op_own(to) & 1);
        }
    }
    for (uint32_t i = 0; cq->peer_cq && i < freed; i++) {
        exp_peer_polled(cq, cq_cqe64(cq, cq->ci + i));
    }
    if (freed) {
        cq->ci += freed;
        cq_update_ci(cq);
    }
}

void hv_cq_ops(struct verbs_context *ops)
{
    ops->create_cq_ex = create_cq_ex;
    ops->modify_cq = cq_set_moderation;
    ops->context.ops.req_notify_cq = req_notify_cq;
    ops->context.ops.poll_cq = hv_poll_cq;
}
