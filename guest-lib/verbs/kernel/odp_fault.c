/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers page faults: finds the memory that an event asks for, has it brought in, and resumes the
 * device (mlx5_ib: mlx5_ib_pfault() and what it calls). Prefetch (ibv_advise_mr()) is here, too.
 *
 * In the transport scheme an event names a WQE, whose list is read from the ring, or a range of a
 * remote key. In the memory scheme an event names a key and an address. If the answer is an error,
 * the device ends the access with an error.
 */
#include <string.h>
#include "guest-lib/verbs/kernel/events.h"
#include "guest-lib/verbs/kernel/odp_internal.h"

#define FAULT_PREFETCH_MOST ((uint64_t)4 << 20) /* MAX_PREFETCH_LEN */
#define FAULT_PAGE          4096u               /* MEMORY_SCHEME_PAGE_FAULT_GRANULARITY */
#define FAULT_REQUESTOR     1u                  /* of the type: the WQE is in a send queue */
/* enum of mlx5_ib's page_fault_type: MLX5_WQE_PF_TYPE_RMP */
#define FAULT_TYPE_RMP     0u
#define FAULT_WQE_MOST     4096u
#define FAULT_LIST_END_KEY 0x100u /* ends a scatter list */
#define FAULT_INLINE       (1u << 31)
#define FAULT_INLINE_BYTES 0x3ffu
#define FAULT_EXTENDED_AV  (1u << 31)
#define FAULT_KLMS_MOST    65536u

/* -- one range of a key -------------------------------------------------------------------------
 */

/* Why pages are brought in. */
enum fault_why {
    FAULT_BY_QUEUE,  /* the transport scheme */
    FAULT_BY_MEMORY, /* the memory scheme: what lies outside of the region is left out */
    FAULT_PREFETCH,
};

/* Brings in a range of a region's key addresses (pagefault_mr()): 0 or errno. */
static int fault_region(struct odp *odp, struct odp_region *region, uint64_t io_virt, uint64_t len,
                        enum odp_how how, enum fault_why why)
{
    uint64_t *count = why == FAULT_PREFETCH ? &odp->stats.prefetched : &odp->stats.faults;
    uint64_t end = region->start + region->len, va;
    bool permissive = why == FAULT_BY_MEMORY;

    if (region->children) {
        return odp_bring_in(odp, region, io_virt, len, how, count);
    }
    if (io_virt < region->iova && !permissive) {
        return EFAULT;
    }
    va = region->start + (io_virt < region->iova ? 0 : io_virt - region->iova);
    if (permissive) {
        /* whole pages of the region count */
        uint64_t pages = region->first + (region->num_pages << region->log_page);

        if (va < region->start || va >= pages) {
            return EFAULT;
        }
        len = MIN(len, pages - va);
    } else if (va < region->start || va >= end || end - va < len) {
        return EFAULT;
    }
    return odp_bring_in(odp, region, va, len, how, count);
}

struct fault_range {
    uint32_t key;
    uint64_t io_virt, len;
};

static int fault_range(struct odp *odp, const struct fault_range *range, unsigned depth);

/* Brings in what the entries of an indirect key name in this range. Returns 0 or errno. */
static int fault_indirect(struct odp *odp, const struct odp_key *key,
                          const struct fault_range *range, unsigned depth)
{
    const size_t at = PRM_OFFSET(query_mkey_out, bsf0_klm0_pas_mtt0_1);
    size_t room = MAX(PRM_SIZE(query_mkey_out), at + (size_t)key->num_desc * PRM_SIZE(wqe_klm_seg));
    g_autofree uint8_t *out = g_malloc0(room);
    struct prm_query_mkey_in in[1] = {0};
    const struct prm_wqe_klm_seg *klm = (void *)(out + at);
    uint64_t offset, left = range->len;
    int err;

    if (depth >= HV_CAP(odp->hca, max_indirection) || key->num_desc > FAULT_KLMS_MOST) {
        return EFAULT;
    }
    PRM_SET(query_mkey_in, in, opcode, PRM_CMD_OP_QUERY_MKEY);
    PRM_SET(query_mkey_in, in, mkey_index, range->key >> 8);
    err = hv_cmd(odp->hca, in, sizeof(in), out, room);
    if (err) {
        return err;
    }
    offset = range->io_virt - PRM_GET(mkc,
                                      PRM_PTR(query_mkey_out, (struct prm_query_mkey_out *)out,
                                              memory_key_mkey_entry),
                                      start_addr);
    for (uint32_t i = 0; i < key->num_desc && left && !err; i++, klm++) {
        uint64_t bytes = PRM_GET(wqe_klm_seg, klm, byte_count);
        struct fault_range part;

        if (offset >= bytes) {
            offset -= bytes;
            continue;
        }
        part = (struct fault_range){.key = PRM_GET(wqe_klm_seg, klm, mkey),
                                    .io_virt = PRM_GET(wqe_klm_seg, klm, va) + offset,
                                    .len = MIN(left, bytes - offset)};
        err = fault_range(odp, &part, depth + 1);
        left -= part.len;
        offset = 0;
    }
    return err;
}

/* Brings in a range of any key (pagefault_single_data_segment()). Keys without paging count as
 * present. Returns 0 or errno. */
static int fault_range(struct odp *odp, const struct fault_range *range, unsigned depth)
{
    const struct odp_key *found;
    struct odp_region *region = NULL;
    struct odp_key key = {0};
    int err = 0;

    pthread_mutex_lock(&odp->lock);
    found = odp_find(odp, range->key, &err);
    if (found && found->kind == ODP_KEY_REGION) {
        region = found->region;
        odp_use(region);
    }
    key = found ? *found : key;
    pthread_mutex_unlock(&odp->lock);
    if (!found) {
        return err == ENOENT ? 0 : err;
    }
    if (!region) {
        return key.kind == ODP_KEY_INDIRECT ? fault_indirect(odp, &key, range, depth) : EFAULT;
    }
    err = fault_region(odp, region, range->io_virt, range->len, ODP_FAULT, FAULT_BY_QUEUE);
    pthread_mutex_lock(&odp->lock);
    odp_unuse(odp, region);
    pthread_mutex_unlock(&odp->lock);
    return err;
}

/* -- answers ------------------------------------------------------------------------------------
 */

/* Resumes what waits for the page (mlx5_ib_page_fault_resume()). A refusal means that it does not
 * wait any more: its queue was destroyed or reset. */
static void fault_resume_by_queue(struct odp *odp, uint32_t type, uint32_t num, uint32_t token,
                                  bool error)
{
    struct prm_page_fault_resume_in in[1] = {0};
    struct prm_trans_page_fault_info *info = PRM_PTR(page_fault_resume_in, in, page_fault_info);

    PRM_SET(page_fault_resume_in, in, opcode, PRM_CMD_OP_PAGE_FAULT_RESUME);
    PRM_SET(trans_page_fault_info, info, page_fault_type, type);
    PRM_SET(trans_page_fault_info, info, wq_number, num);
    PRM_SET(trans_page_fault_info, info, fault_token, token);
    PRM_SET(trans_page_fault_info, info, error, error);
    hv_cmd_simple(odp->hca, in, sizeof(in));
}

static void fault_resume_by_memory(struct odp *odp, const struct prm_memory_page_fault_event *event,
                                   bool error)
{
    struct prm_page_fault_resume_in in[1] = {0};
    struct prm_mem_page_fault_info *info = PRM_PTR(page_fault_resume_in, in, page_fault_info);

    PRM_SET(page_fault_resume_in, in, opcode, PRM_CMD_OP_PAGE_FAULT_RESUME);
    PRM_SET(mem_page_fault_info, info, fault_token_47_32,
            PRM_GET(memory_page_fault_event, event, token_47_32));
    PRM_SET(mem_page_fault_info, info, fault_token_31_0,
            PRM_GET(memory_page_fault_event, event, token_31_0));
    PRM_SET(mem_page_fault_info, info, error, error);
    hv_cmd_simple(odp->hca, in, sizeof(in));
}

/* -- the memory scheme --------------------------------------------------------------------------
 */

/* mlx5_ib_mr_memory_pfault_handler() */
static void fault_memory(struct odp *odp, const struct prm_memory_page_fault_event *event)
{
    uint64_t va = PRM_GET(memory_page_fault_event, event, va);
    uint64_t len =
        (uint64_t)PRM_GET(memory_page_fault_event, event, demand_fault_pages) * FAULT_PAGE;
    uint64_t before =
        (uint64_t)PRM_GET(memory_page_fault_event, event, pre_demand_fault_pages) * FAULT_PAGE;
    uint64_t after =
        (uint64_t)PRM_GET(memory_page_fault_event, event, post_demand_fault_pages) * FAULT_PAGE;
    struct odp_region *region = NULL;
    const struct odp_key *key;
    int err = 0;

    pthread_mutex_lock(&odp->lock);
    key = odp_find(odp, PRM_GET(memory_page_fault_event, event, mkey), &err);
    if (key && key->region) {
        region = key->kind == ODP_KEY_CHILD ? key->region->parent : key->region;
        odp_use(region);
    }
    pthread_mutex_unlock(&odp->lock);
    if (!region) {
        fault_resume_by_memory(odp, event, true);
        return;
    }
    err = EFAULT;
    if (before || after) { /* if these cannot come, the page that is needed still may */
        err = fault_region(odp, region, va - before, before + len + after, ODP_FAULT,
                           FAULT_BY_MEMORY);
    }
    if (err) {
        err = fault_region(odp, region, va, len, ODP_FAULT, FAULT_BY_MEMORY);
    }
    pthread_mutex_lock(&odp->lock);
    odp_unuse(odp, region);
    pthread_mutex_unlock(&odp->lock);
    if (err || PRM_GET(memory_page_fault_event, event, last)) {
        fault_resume_by_memory(odp, event, err != 0);
    }
}

/* -- the transport scheme: RDMA ------------------------------------------------------------------
 */

/* The kind of a transport fault: the highest byte of the event's last word, without its bits above
 * 26. */
static uint32_t fault_type(const struct drv_event *event)
{
    return (uint32_t)(prm_load32(&event->data.bytes[24]) >> 24 & 7);
}

static uint32_t fault_number(const struct drv_event *event)
{
    return (uint32_t)prm_load32(&event->data.bytes[24]) & 0xffffff;
}

/* mlx5_ib_mr_rdma_pfault_handler() */
static void fault_rdma(struct odp *odp, const struct drv_event *event)
{
    const struct prm_rdma_page_fault_event *rdma = event->data.fault_rdma;
    uint64_t done = PRM_GET(rdma_page_fault_event, rdma, bytes_committed);
    uint64_t len = PRM_GET(rdma_page_fault_event, rdma, rdma_op_len);
    uint32_t token = fault_number(event);
    struct fault_range range = {.key = PRM_GET(rdma_page_fault_event, rdma, r_key),
                                .io_virt = PRM_GET(rdma_page_fault_event, rdma, rdma_va) + done};
    bool is_length_known;
    int err;

    len -= MIN(len, done);
    /* the length of the operation is not always known: then the packet comes first, more after it
     */
    is_length_known = len != 0;
    range.len = is_length_known ? len : PRM_GET(rdma_page_fault_event, rdma, packet_len);
    err = fault_range(odp, &range, 0);
    fault_resume_by_queue(odp, fault_type(event), token, token, err != 0);
    if (!err && !is_length_known && done) {
        range.len = MIN(done, FAULT_PREFETCH_MOST);
        fault_range(odp, &range, 0);
    }
}

/* -- the transport scheme: WQEs ------------------------------------------------------------------
 */

/* A WQE, copied from its ring. */
struct fault_wqe {
    uint8_t bytes[FAULT_WQE_MOST];
    size_t len;  /* bytes copied */
    size_t list; /* where its data segments begin */
    bool receives;
};

/* Copies from a ring that wraps. */
static size_t fault_copy(uint8_t *to, const uint8_t *ring, size_t size, size_t at, size_t len)
{
    len = MIN(len, size);
    for (size_t i = 0; i < len; i += 16) {
        memcpy(to + i, ring + (at + i) % size, 16);
    }
    return len;
}

/* Where the data segments of a send WQE begin (mlx5_ib_mr_initiator_pfault_handler()): 0 or EFAULT.
 */
static int fault_parse_send(const struct hv_qp *qp, struct fault_wqe *wqe)
{
    const struct prm_wqe_ctrl_seg *ctrl = (void *)wqe->bytes;
    size_t end = (size_t)PRM_GET(wqe_ctrl_seg, ctrl, ds) * 16;

    if (!end || end > wqe->len) {
        return EFAULT;
    }
    wqe->len = end;
    wqe->list = PRM_SIZE(wqe_ctrl_seg);
    if (qp->ibv.qp_type == IBV_QPT_XRC_SEND) {
        wqe->list += PRM_SIZE(wqe_xrc_seg);
    }
    if (qp->ibv.qp_type == IBV_QPT_UD || qp->dc == HV_DC_DCI) {
        /* the first part of an address vector is one octword; with ext set, a second part follows
         */
        bool extended = prm_load32(&wqe->bytes[wqe->list + 8]) & FAULT_EXTENDED_AV;

        wqe->list += extended ? PRM_SIZE(wqe_av) : 16;
    }
    switch (PRM_GET(wqe_ctrl_seg, ctrl, opcode)) {
    case PRM_WQE_OPCODE_RDMA_WRITE:
    case PRM_WQE_OPCODE_RDMA_WRITE_IMM:
    case PRM_WQE_OPCODE_RDMA_READ:
        wqe->list += 16;
        break;
    case PRM_WQE_OPCODE_ATOMIC_CS:
    case PRM_WQE_OPCODE_ATOMIC_FA:
        wqe->list += 32;
        break;
    }
    return 0;
}

struct fault_wqe_of {
    const struct drv_event *event;
    struct fault_wqe *wqe;
};

/* Copies the WQE of an event. Returns 0; ENOENT: its queue is not there; EFAULT: it is no valid
 * WQE. With the lock of the registry. */
static int fault_read_wqe(struct hv_hca *hca, const struct drv_event *event, struct fault_wqe *wqe)
{
    uint32_t type = fault_type(event), num = fault_number(event);
    size_t index = PRM_GET(wqe_associated_page_fault_event, event->data.fault_wqe, wqe_index);
    const struct hv_qp *qp;

    wqe->receives = !(type & FAULT_REQUESTOR);
    if (type == FAULT_TYPE_RMP) {
        const struct hv_srq *srq = hv_number_find(hca, HV_ABOUT_SRQ, num);

        if (!srq) {
            return ENOENT;
        }
        wqe->len = fault_copy(wqe->bytes, srq->ring, srq->ring_size,
                              index % srq->ring_cnt << srq->wqe_shift,
                              MIN((size_t)1 << srq->wqe_shift, FAULT_WQE_MOST));
        wqe->list = PRM_SIZE(wqe_srq_next_seg);
        return 0;
    }
    qp = hv_number_find(hca, HV_ABOUT_QP, num);
    if (!qp) {
        return ENOENT;
    }
    if (wqe->receives) {
        if (!qp->rq.wqe_cnt) {
            return EFAULT;
        }
        wqe->len = fault_copy(wqe->bytes, qp->rq.buf, (size_t)qp->rq.wqe_cnt << qp->rq.wqe_shift,
                              index % qp->rq.wqe_cnt << qp->rq.wqe_shift,
                              MIN((size_t)1 << qp->rq.wqe_shift, FAULT_WQE_MOST));
        wqe->list = 0;
        return 0;
    }
    if (!qp->sq.wqe_cnt) {
        return EFAULT;
    }
    wqe->len = fault_copy(wqe->bytes, qp->sq.buf, (size_t)qp->sq.wqe_cnt << qp->sq.wqe_shift,
                          index % qp->sq.wqe_cnt << qp->sq.wqe_shift, FAULT_WQE_MOST);
    return fault_parse_send(qp, wqe);
}

/* Brings in the list of a WQE (pagefault_data_segments()): 0 or errno. done: bytes that the device
 * has transferred already. */
static int fault_list(struct odp *odp, const struct fault_wqe *wqe, uint64_t done)
{
    int err = 0;

    for (size_t at = wqe->list; at + PRM_SIZE(wqe_data_seg) <= wqe->len && !err;) {
        const struct prm_wqe_data_seg *seg = (void *)(wqe->bytes + at);
        uint32_t count = (uint32_t)prm_load32(seg);
        bool is_inline = count & FAULT_INLINE;
        uint64_t len = is_inline ? count & FAULT_INLINE_BYTES : count & ~FAULT_INLINE;
        struct fault_range range = {.key = PRM_GET(wqe_data_seg, seg, lkey),
                                    .io_virt = PRM_GET(wqe_data_seg, seg, addr)};

        at += is_inline ? (sizeof(uint32_t) + len + 15) / 16 * 16 : PRM_SIZE(wqe_data_seg);
        if (wqe->receives && !len && range.key == FAULT_LIST_END_KEY && !range.io_virt) {
            break;
        }
        len = len ? len : (uint64_t)1 << 31;
        if (is_inline || len <= done) {
            done -= MIN(len, done);
            continue;
        }
        range.io_virt += done;
        range.len = len - done;
        done = 0;
        err = fault_range(odp, &range, 0);
    }
    return err;
}

/* mlx5_ib_mr_wqe_pfault_handler() */
static void fault_wqe(struct odp *odp, const struct drv_event *event)
{
    const struct prm_wqe_associated_page_fault_event *fault = event->data.fault_wqe;
    g_autofree struct fault_wqe *wqe = g_new0(struct fault_wqe, 1);
    int err;

    pthread_mutex_lock(&odp->hca->reg_lock);
    err = fault_read_wqe(odp->hca, event, wqe);
    pthread_mutex_unlock(&odp->hca->reg_lock);
    if (!err) {
        err =
            fault_list(odp, wqe, PRM_GET(wqe_associated_page_fault_event, fault, bytes_committed));
    }
    /* mlx5_ib does not resume a queue that it does not know: it was destroyed, or a DevX program
     * made it. Here the latter ends with an error and does not wait for ever. */
    fault_resume_by_queue(odp, fault_type(event), fault_number(event),
                          PRM_GET(wqe_associated_page_fault_event, fault, token), err != 0);
}

void odp_fault_answer(struct odp *odp, const struct drv_event *event)
{
    odp->stats.events++; /* by the pager alone */
    switch (event->sub_type) {
    case PRM_PFAULT_SUBTYPE_WQE:
        fault_wqe(odp, event);
        break;
    case PRM_PFAULT_SUBTYPE_RDMA:
        fault_rdma(odp, event);
        break;
    case PRM_PFAULT_SUBTYPE_MEMORY:
        fault_memory(odp, event->data.fault_memory);
        break;
    }
}

/* -- prefetch -----------------------------------------------------------------------------------
 */

/* mlx5_ib_prefetch_mr_work(): errors of a part are not reported. */
void odp_prefetch_do(struct odp *odp, struct odp_prefetch *prefetch)
{
    for (unsigned i = 0; i < prefetch->num; i++) {
        struct odp_part *part = &prefetch->parts[i];

        fault_region(odp, part->region, part->io_virt, part->len, prefetch->how, FAULT_PREFETCH);
        pthread_mutex_lock(&odp->lock);
        odp_unuse(odp, part->region);
        pthread_mutex_unlock(&odp->lock);
    }
}

/* The region of a key that may be prefetched, which then has a user (get_prefetchable_mr()): 0 or
 * errno. */
static int fault_prefetch_region(struct odp *odp, const struct hv_pd *pd,
                                 enum ibv_advise_mr_advice advice, uint32_t lkey,
                                 struct odp_region **region)
{
    const struct odp_key *key;
    int err = 0;

    pthread_mutex_lock(&odp->lock);
    key = odp_find(odp, lkey, &err);
    if (!key || key->key != lkey) {
        err = hv_refuse(odp->hca, ENOENT,
                        "advise_mr: lkey 0x%x is not the key of an on-demand region", lkey);
    } else if (key->kind != ODP_KEY_REGION) {
        err = hv_refuse(odp->hca, EINVAL, "advise_mr: lkey 0x%x is not the key of a region", lkey);
    } else if (key->region->pdn != pd->pdn) {
        err =
            hv_refuse(odp->hca, EPERM, "advise_mr: the region of lkey 0x%x is in another PD", lkey);
    } else if (advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE && !key->region->writable) {
        err = hv_refuse(odp->hca, EPERM,
                        "advise_mr: the region of lkey 0x%x was not registered for writing", lkey);
    } else {
        *region = key->region;
        odp_use(*region);
    }
    pthread_mutex_unlock(&odp->lock);
    return err;
}

/* mlx5_ib_prefetch_sg_list(): the first error ends it. */
static int fault_prefetch_now(struct odp *odp, const struct hv_pd *pd,
                              enum ibv_advise_mr_advice advice, enum odp_how how,
                              const struct ibv_sge *list, uint32_t num)
{
    int err = 0;

    for (uint32_t i = 0; i < num && !err; i++) {
        struct odp_region *region;

        err = fault_prefetch_region(odp, pd, advice, list[i].lkey, &region);
        if (!err) {
            err = fault_region(odp, region, list[i].addr, list[i].length, how, FAULT_PREFETCH);
            pthread_mutex_lock(&odp->lock);
            odp_unuse(odp, region);
            pthread_mutex_unlock(&odp->lock);
        }
    }
    return err;
}

static int fault_prefetch_later(struct odp *odp, const struct hv_pd *pd,
                                enum ibv_advise_mr_advice advice, enum odp_how how,
                                const struct ibv_sge *list, uint32_t num)
{
    struct odp_prefetch *later = g_try_malloc0(sizeof(*later) + num * sizeof(later->parts[0]));
    int err = later ? 0 : ENOMEM;

    for (uint32_t i = 0; i < num && !err; i++) {
        err = fault_prefetch_region(odp, pd, advice, list[i].lkey, &later->parts[i].region);
        if (!err) {
            later->parts[i].io_virt = list[i].addr;
            later->parts[i].len = list[i].length;
            later->num++;
        }
    }
    if (!err) {
        later->how = how;
        odp_pager_prefetch(odp, later);
        return 0;
    }
    pthread_mutex_lock(&odp->lock);
    for (unsigned i = 0; later && i < later->num; i++) {
        odp_unuse(odp, later->parts[i].region);
    }
    pthread_mutex_unlock(&odp->lock);
    g_free(later);
    return err;
}

int uverbs_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
                     const struct ibv_sge *list, uint32_t num)
{
    struct hv_hca *hca = hv_hca_of(pd->context);
    struct odp *odp = hca->odp;
    enum odp_how how = advice == IBV_ADVISE_MR_ADVICE_PREFETCH            ? ODP_FOR_READ
                       : advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT ? ODP_SNAPSHOT
                                                                          : ODP_FAULT;
    int err = hv_pd_check(pd);

    if (err) {
        return err;
    }
    if (!hv_odp_is_offered(hca)) {
        return hv_refuse(hca, EOPNOTSUPP, "advise_mr: the device has no on-demand paging");
    }
    if (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH) {
        return hv_refuse(hca, EINVAL, "advise_mr: flags has unknown bits 0x%x",
                         flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH);
    }
    if (!num) {
        return hv_refuse(hca, EINVAL, "advise_mr: num_sge is 0");
    }
    if (advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT) {
        return hv_refuse(hca, EOPNOTSUPP, "advise_mr: advice %u is unknown", (unsigned)advice);
    }
    err = hv_is_ours(hca) ? hv_check_there(hca) : EIO;
    if (err) {
        return err;
    }
    if (!odp) {
        return hv_refuse(hca, ENOENT, "advise_mr: lkey 0x%x is not the key of an on-demand region",
                         list[0].lkey);
    }
    return flags & IBV_ADVISE_MR_FLAG_FLUSH
               ? fault_prefetch_now(odp, hv_real_pd(pd), advice, how, list, num)
               : fault_prefetch_later(odp, hv_real_pd(pd), advice, how, list, num);
}
