/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements completion queues. Indices run freely in 32 bits. Host and doorbells carry the low 24
 * bits, and rings are smaller than that.
 *
 * An arm request lives from the doorbell to its event: disarmed -> armed (any or solicited) ->
 * disarmed. It asks for CQEs that come at or after the consumer index in the doorbell and that no
 * event has announced. The second condition matters because programs arm before they poll (get
 * event, arm, poll until empty). An event for CQEs that the last event has already announced would
 * wake the program twice, or the program would take it for another CQ's event. (A program that does
 * not poll until empty waits for ever, as perftest 4.5 does on a ConnectX-5: its issue 137.) Two
 * things may delay the event after the CQE that satisfies the request: the moderation period
 * (timer) and a full EQ (waiter). Both call cq_notify() again.
 */
#include "model/core/obj_class.h"
#include "model/core/pd.h"
#include "model/core/real_time.h"
#include "model/core/trace.h"
#include "model/queue/cq_priv.h"
#include "model/queue/cqe.h"
#include "model/queue/cqe_compress.h"
#include "model/queue/cqe_vendor.h"
#include "model/queue/ring.h"
#include "model/queue/uar.h"
#include "prm/prm.h"

static void cq_notify(struct hca *hca, struct cq *cq);

static void cq_timer_fire(struct hca *hca, struct hca_timer *timer)
{
    cq_notify(hca, (struct cq *)((char *)timer - offsetof(struct cq, timer)));
}

static void cq_eq_retry(struct hca *hca, struct eq_waiter *waiter)
{
    cq_notify(hca, (struct cq *)((char *)waiter - offsetof(struct cq, waiter)));
}

static bool cq_has_users(size_t space)
{
    for (unsigned i = 0; i < OBJ_KINDS; i++) {
        if (obj_classes[i].space == space && obj_classes[i].cq_failed) {
            return true;
        }
    }
    return false;
}

/* Tells the users of a failed CQ. Goes through every object of the number spaces that have kinds
 * which use CQs. */
static void cq_error_run(struct hca *hca, struct work *work)
{
    struct cq *cq = (struct cq *)((char *)work - offsetof(struct cq, error_work));
    unsigned n = 0;

    for (; cq->error_space < obj_n_spaces; cq->error_space++, cq->error_at = 0) {
        struct obj_table *table = obj_space(hca, cq->error_space);
        struct obj *obj;

        if (!cq_has_users(obj_spaces[cq->error_space])) {
            continue;
        }
        for (; (obj = obj_next(table, cq->error_at)); n++) {
            if (n && !hca_may_go_on(hca)) {
                hca_schedule(hca, work);
                return;
            }
            cq->error_at = obj->num + 1;
            hca_spend(hca, n % HCA_PIECE_ENTRIES == 0);
            if (obj_class(obj)->cq_failed) {
                obj_class(obj)->cq_failed(hca, obj, cq);
            }
        }
    }
}

/* -- object ----------------------------------------------------------------------------------- */

struct cq *cq_find(struct hca *hca, uint32_t cqn)
{
    return (struct cq *)obj_find(&hca->cqs, cqn);
}

static unsigned cq_log_stride(const struct prm_cqc *cqc)
{
    return PRM_GET(cqc, cqc, cqe_sz) == PRM_CQE_SZ_64_BYTES ? 6 : 7;
}

uint64_t cq_ring_size(const struct prm_cqc *cqc)
{
    if (PRM_GET(cqc, cqc, cqe_sz) > PRM_CQE_SZ_128_BYTES_PAD ||
        PRM_GET(cqc, cqc, log_cq_size) >= 24) {
        return 0;
    }
    return 1ULL << (PRM_GET(cqc, cqc, log_cq_size) + cq_log_stride(cqc));
}

static enum syn cq_ring_check(const struct hca *hca, const struct prm_cqc *cqc,
                              const struct mem_buf *buf)
{
    uint64_t size = cq_ring_size(cqc);

    if (!size) {
        return SYN_CQ_SIZE;
    }
    if (PRM_GET(cqc, cqc, log_cq_size) > hca->limits.log_max_cq_sz) {
        return SYN_LIMIT;
    }
    return buf->mtt && buf->size >= size && buf->offset % RING_ENTRY == 0 ? SYN_OK : SYN_BAD_PAS;
}

static void cq_moderation(struct cq *cq)
{
    cq->max_count = PRM_GET(cqc, cq->cqc, cq_max_count);
    cq->period_ns = cq->max_count ? PRM_GET(cqc, cq->cqc, cq_period) * 1000ULL : 0;
    cq->period_from_cqe =
        PRM_GET(cqc, cq->cqc, cq_period_mode) == PRM_CQ_PERIOD_MODE_START_FROM_CQE;
}

enum syn cq_create(struct hca *hca, uint16_t uid, const struct prm_cqc *cqc, struct mem_buf *buf,
                   uint64_t dbr_addr, uint32_t *cqn)
{
    struct eq *eq = eq_find(hca, PRM_GET(cqc, cqc, c_eqn_or_apu_element));
    struct obj *uar = obj_find(&hca->uars, PRM_GET(cqc, cqc, uar_page));
    enum syn syn;
    struct cq *cq;

    if (PRM_GET(cqc, cqc, apu_cq) ||
        PRM_GET(cqc, cqc, cq_period_mode) > PRM_CQ_PERIOD_MODE_START_FROM_CQE) {
        return SYN_CQ_FEATURE;
    }
    syn = cqe_compress_check(hca, cqc);
    if (syn) {
        return syn;
    }
    if (!eq) {
        return SYN_NO_EQ;
    }
    if (!uar) {
        return SYN_NO_UAR;
    }
    if (!uid_may_use(eq_obj(eq), uid) || !uid_may_use(uar, uid)) {
        return SYN_BAD_UID;
    }
    if (dbr_addr % 8) {
        return SYN_CQ_DBR;
    }
    syn = cq_ring_check(hca, cqc, buf);
    if (syn) {
        return syn;
    }
    cq = obj_make(hca, OBJ_CQ, uid, sizeof(*cq));
    if (!cq) {
        return SYN_NO_MEMORY;
    }
    cq->hca = hca;
    memcpy(cq->cqc, cqc, sizeof(cq->cqc));
    if (PRM_GET(cqc, cqc, cqe_comp_en) && !(cq->session = cqe_session_new(hca, cq))) {
        obj_end(hca, &cq->obj);
        return SYN_NO_MEMORY;
    }
    cq->log_size = PRM_GET(cqc, cqc, log_cq_size);
    cq->log_stride = cq_log_stride(cqc);
    cq->cqe_offset = (1 << cq->log_stride) - RING_ENTRY;
    cq->oi = PRM_GET(cqc, cqc, oi);
    cq->as_notify = PRM_GET(cqc, cqc, as_notify);
    cq->cc = PRM_GET(cqc, cqc, cc);
    cq->slot_mask = cq->cc ? 0 : (1u << cq->log_size) - 1;
    cq->pad = PRM_GET(cqc, cqc, cqe_sz) == PRM_CQE_SZ_128_BYTES_PAD;
    cq_note_unusual(cq);
    cq->dbr = dbr_addr;
    cq->timer.fire = cq_timer_fire;
    cq->waiter.retry = cq_eq_retry;
    cq->error_work.run = cq_error_run;
    cq_moderation(cq);
    mem_buf_take(&cq->obj, &cq->ring, buf);
    cq->eq = eq;
    cq->uar = uar;
    obj_ref(&cq->obj, eq_obj(eq));
    obj_ref(&cq->obj, uar);
    *cqn = cq->obj.num;
    return SYN_OK;
}

/* Reads the consumer index. False: the doorbell record does not answer. */
static bool cq_read_ci(struct hca *hca, struct cq *cq)
{
    struct prm_cq_dbr dbr[1];

    if (!hca_dma_read(hca, cq->dbr, dbr, 4)) {
        return false;
    }
    cq->ci = PRM_GET(cq_dbr, dbr, ci);
    return true;
}

enum syn cq_query(struct hca *hca, uint32_t cqn, struct prm_cqc *cqc)
{
    struct cq *cq = cq_find(hca, cqn);

    if (!cq) {
        return SYN_NO_CQ;
    }
    if (cq->session) {
        cqe_session_close(hca, cq);
    }
    cq_read_ci(hca, cq);
    memcpy(cqc, cq->cqc, sizeof(cq->cqc));
    PRM_SET(cqc, cqc, status, cq->status);
    PRM_SET(cqc, cqc, st, cq->armed ? cq->armed : PRM_CQC_ST_FIRED);
    PRM_SET(cqc, cqc, last_notified_index, cq->last_notified & CQ_INDEX_MASK);
    PRM_SET(cqc, cqc, last_solicit_index, cq->last_solicit & CQ_INDEX_MASK);
    PRM_SET(cqc, cqc, consumer_counter, cq->ci);
    PRM_SET(cqc, cqc, producer_counter, cq->pi & CQ_INDEX_MASK);
    return SYN_OK;
}

enum syn cq_destroy(struct hca *hca, uint16_t uid, uint32_t cqn)
{
    struct cq *cq = cq_find(hca, cqn);

    if (!cq) {
        return SYN_NO_CQ;
    }
    if (!uid_owns(&cq->obj, uid)) {
        return SYN_BAD_UID;
    }
    if (cq->obj.refs) {
        return SYN_IN_USE;
    }
    if (cq->session) {
        cqe_session_close(hca, cq);
    }
    cq_free(hca, &cq->obj);
    return SYN_OK;
}

void cq_free(struct hca *hca, struct obj *obj)
{
    struct cq *cq = (struct cq *)obj;

    hca_timer_stop(hca, &cq->timer);
    hca_unschedule(&cq->error_work);
    eq_stop_waiting(&cq->waiter);
    cq_wake_all(hca, cq); /* they will not find the CQ */
    obj_unref(obj, eq_obj(cq->eq));
    obj_unref(obj, cq->uar);
    mem_buf_drop(obj, &cq->ring);
    cqe_session_free(hca, cq);
    obj_end(hca, obj);
}

/* -- posting ---------------------------------------------------------------------------------- */

static void cq_fail(struct hca *hca, struct cq *cq, uint8_t status, uint8_t syndrome)
{
    struct prm_cq_error data[1] = {0};

    cq->status = status;
    hca_log(hca, HCA_LOG_GUEST_ERROR, "CQ 0x%x: %s at index %u", cq->obj.num,
            status == PRM_CQC_STATUS_CQ_OVERFLOW ? "overrun" : "memory does not answer", cq->pi);
    PRM_SET(cq_error, data, cqn, cq->obj.num);
    PRM_SET(cq_error, data, syndrome, syndrome);
    eq_async(hca, PRM_EVENT_TYPE_CQ_ERROR, 0, data);
    hca_schedule(hca, &cq->error_work);
    cq_wake_all(hca, cq);
}

/* The room follows from the index of the slot and the owner bit, no more. A program may therefore
 * keep its index in fewer than 24 bits; DPDK keeps 16 (cq_ci of struct mlx5_txq_data). */
static uint32_t cq_used(const struct cq *cq)
{
    return (cq->pi - cq->ci) & ((2u << cq->log_size) - 1);
}

/* Makes sure that n more CQEs fit. False: they do not fit; the CQ may have failed. */
static bool cq_has_room(struct hca *hca, struct cq *cq, uint32_t n)
{
    uint32_t size = 1u << cq->log_size;

    if (cq->oi || cq->cc || cq_used(cq) + n <= size) {
        return true;
    }
    if (!cq_read_ci(hca, cq)) {
        cq_fail(hca, cq, PRM_CQC_STATUS_CQ_WRITE_FAIL,
                PRM_CQ_ERROR_SYNDROME_CQ_ACCESS_VIOLATION_ERROR);
        return false;
    }
    return cq_used(cq) + n <= size;
}

unsigned cq_data_room(const struct cq *cq, unsigned asked)
{
    return asked == CQE_DATA_64 && !cq->cqe_offset ? CQE_DATA_32 : asked;
}

/* Byte offset of the slot of an index. */
static uint64_t cq_slot(const struct cq *cq, uint32_t index)
{
    return (uint64_t)(index & cq->slot_mask) << cq->log_stride;
}

static void cq_fail_write(struct hca *hca, struct cq *cq)
{
    cq_fail(hca, cq, PRM_CQC_STATUS_CQ_WRITE_FAIL, PRM_CQ_ERROR_SYNDROME_CQ_ACCESS_VIOLATION_ERROR);
}

bool cq_write(struct hca *hca, struct cq *cq, uint32_t index, const void *entry, bool pads)
{
    static const uint8_t padding[RING_ENTRY];
    uint64_t slot = cq_slot(cq, index);

    if ((!pads || ring_write_bytes(hca, &cq->ring, slot, padding, sizeof(padding))) &&
        ring_write(hca, &cq->ring, slot + cq->cqe_offset, entry)) {
        return true;
    }
    cq_fail_write(hca, cq);
    return false;
}

/* Puts the data where the next CQE has it. False: the host does not answer. */
static bool cq_put_data(struct hca *hca, struct cq *cq, uint64_t slot, struct prm_cqe64 *cqe,
                        const struct cqe_data *data)
{
    uint8_t half[RING_ENTRY] = {0};

    if (data->room == CQE_DATA_64) {
        PRM_SET(cqe64, cqe, format, PRM_CQE_FORMAT_INLINE_64);
        memcpy(half, data->bytes, data->len);
        return ring_write_bytes(hca, &cq->ring, slot, half, cq->pad ? RING_ENTRY : data->len);
    }
    memcpy(cqe, data->bytes, data->len);
    PRM_SET(cqe64, cqe, format, PRM_CQE_FORMAT_INLINE_32);
    return true;
}

/* The same as cq_put(), for a CQ that pads or compresses, or for whose CQEs a queue waits. Data is
 * already in its place. */
static G_GNUC_NO_INLINE bool cq_put_unusual(struct hca *hca, struct cq *cq,
                                            const struct prm_cqe64 *cqe)
{
    bool pads = cq->pad && PRM_GET(cqe64, cqe, format) != PRM_CQE_FORMAT_INLINE_64;

    if (hca->tracing) {
        trace_cqe(hca, cq->obj.num, cqe);
    }
    if (cq->session) {
        if (!cqe_session_take(hca, cq, cqe)) {
            return false;
        }
    } else {
        if (!cq_write(hca, cq, cq->pi, cqe, pads)) {
            return false;
        }
        cq_count(cq);
    }
    cq_wake_due(hca, cq);
    return true;
}

/* Writes the CQE into the ring at pi, or gives it to the session. False: the CQ has failed. */
static bool cq_put(struct hca *hca, struct cq *cq, struct prm_cqe64 *cqe,
                   const struct cqe_data *data)
{
    uint64_t slot = cq_slot(cq, cq->pi);

    PRM_SET(cqe64, cqe, owner, cq->pi >> cq->log_size & 1);
    if (data && !cq_put_data(hca, cq, slot, cqe, data)) {
        cq_fail_write(hca, cq);
        return false;
    }
    if (G_UNLIKELY(cq->unusual)) {
        return cq_put_unusual(hca, cq, cqe);
    }
    if (!ring_write(hca, &cq->ring, slot + cq->cqe_offset, cqe)) {
        cq_fail_write(hca, cq);
        return false;
    }
    if (hca->tracing) {
        trace_cqe(hca, cq->obj.num, cqe);
    }
    cq_count(cq);
    return true;
}

/* Error CQEs have other fields in place of the time stamp. */
static bool cq_has_timestamp(uint32_t opcode)
{
    return opcode < PRM_CQE_OPCODE_SIG_ERR;
}

/* Sets the fields that all CQEs have in common. */
static void cq_finish_cqe(struct hca *hca, struct prm_cqe64 *cqe, uint64_t now)
{
    struct prm_err_cqe *failed = (void *)cqe; /* the same bytes as an error CQE */
    uint8_t opcode = (uint8_t)PRM_GET(cqe64, cqe, opcode);

    if (cq_has_timestamp(opcode)) {
        PRM_SET(cqe64, cqe, timestamp,
                G_UNLIKELY(PRM_GET(cqe64, cqe, timestamp) & CQE_REAL_TIME)
                    ? real_time_stamp(hca->real_time, now)
                    : now);
    } else if (opcode == PRM_CQE_OPCODE_REQ_ERR || opcode == PRM_CQE_OPCODE_RESP_ERR) {
        uint8_t syndrome = (uint8_t)PRM_GET(err_cqe, failed, syndrome);

        PRM_SET(err_cqe, failed, vendor_err_synd, cqe_vendor_synd(opcode, syndrome));
    }
}

bool cq_has_overrun(const struct cq *cq)
{
    return cq->status == PRM_CQC_STATUS_CQ_OVERFLOW;
}

bool cq_post_data(struct hca *hca, struct cq *cq, struct prm_cqe64 *cqe, bool solicited,
                  const struct cqe_data *data)
{
    uint64_t now;

    if (cq->status) {
        return false;
    }
    if (!cq_has_room(hca, cq, 1)) {
        if (!cq->status) {
            if (cq->session) {
                cqe_session_close(hca, cq); /* there was room for what it holds */
            }
            hca->cq_overruns++;
            cq_fail(hca, cq, PRM_CQC_STATUS_CQ_OVERFLOW, PRM_CQ_ERROR_SYNDROME_CQ_OVERRUN);
        }
        return false;
    }
    now = hca_now(hca);
    cq->strides = PRM_GET(cqe64, cqe, timestamp) & CQE_STRIDES;
    cq_finish_cqe(hca, cqe, now);
    cq->last_cqe_ns = now;
    if (!cq_put(hca, cq, cqe, data)) {
        return false;
    }
    if (solicited) {
        cq->last_solicit = cq->pi;
    }
    if (cq->armed) {
        cq_notify(hca, cq);
    }
    return true;
}

/* -- events ----------------------------------------------------------------------------------- */

/* Whether there is a CQE that the arm request asked for. */
static bool cq_is_due(const struct cq *cq)
{
    switch (cq->armed) {
    case PRM_CQC_ST_ARMED:
        return (int32_t)(cq->pi - cq->arm_ci) > 0;
    case PRM_CQC_ST_SOLICITED_ARMED:
        return (int32_t)(cq->last_solicit - cq->arm_ci) > 0;
    default:
        return false;
    }
}

/* Wakes the thread of a CQ with as_notify. False: the host cannot, so the event goes the usual way,
 * by an EQE and its interrupt. */
static __attribute__((cold)) bool cq_wake_thread(struct hca *hca, const struct cq *cq)
{
    const struct host_thread thread = {
        .partition = PRM_GET(cqc, cq->cqc, local_partition_id),
        .process = PRM_GET(cqc, cq->cqc, process_id),
        .thread = PRM_GET(cqc, cq->cqc, thread_id),
    };

    return hca->tunnels && hca->ops->as_notify && !hca->off &&
           hca->ops->as_notify(hca->host, &thread);
}

/* Answers the arm request if it is due. If moderation or a full EQ delays the event, arranges to be
 * called again. */
static void cq_notify(struct hca *hca, struct cq *cq)
{
    if (!cq_is_due(cq)) {
        return;
    }
    if (cq->period_ns && cq->untold < cq->max_count) {
        uint64_t deadline =
            (cq->period_from_cqe ? cq->last_cqe_ns : cq->last_event_ns) + cq->period_ns;

        if (hca_now(hca) < deadline) {
            hca_timer_set(hca, &cq->timer, deadline);
            return;
        }
    }
    if (G_UNLIKELY(cq->session) && !cqe_session_close(hca, cq)) {
        return;
    }
    if (!(G_UNLIKELY(cq->as_notify) && cq_wake_thread(hca, cq)) &&
        !eq_post_comp(hca, cq->eq, cq->obj.num, &cq->waiter)) {
        return;
    }
    eq_stop_waiting(&cq->waiter);
    hca_timer_stop(hca, &cq->timer);
    cq->armed = 0;
    cq->answered = true;
    cq->last_notified = cq->pi;
    cq->untold = 0;
    if (cq->period_ns) {
        cq->last_event_ns = hca_now(hca);
    }
}

void cq_doorbell(struct hca *hca, uint32_t uarn, uint32_t dword0, uint32_t cqn)
{
    struct cq *cq = cq_find(hca, cqn);
    uint8_t sn = dword0 >> 28 & 3;
    bool solicited = dword0 >> 24 & 1, keeps_any;
    uint32_t behind;

    if (!cq || cq->uar->num != uarn) {
        hca_log(hca, HCA_LOG_GUEST_ERROR, "UAR %u has no CQ 0x%x", uarn, cqn);
        return;
    }
    if (cq->session) {
        cqe_session_close(hca, cq);
    }
    if (cq->answered && cq->arm_sn == sn) {
        return;
    }
    /* IBTA 11.4.2.2: a request for any completion that is still waiting is not replaced by a
     * request for a solicited completion. The two have the same sequence number as long as software
     * has not seen an event. */
    keeps_any = cq->armed == PRM_CQC_ST_ARMED && cq->arm_sn == sn;
    cq->answered = false;
    cq->arm_sn = sn;
    cq->armed = solicited && !keeps_any ? PRM_CQC_ST_SOLICITED_ARMED : PRM_CQC_ST_ARMED;
    /* an index ahead of the producer means: from the next CQE on */
    behind = (cq->pi - dword0) & CQ_INDEX_MASK;
    cq->arm_ci = behind <= CQ_INDEX_MASK / 2 ? cq->pi - MIN(behind, cq->untold) : cq->pi;
    cq_notify(hca, cq);
}

/* -- MODIFY_CQ -------------------------------------------------------------------------------- */

static enum syn cq_resize(struct hca *hca, struct cq *cq, const struct prm_cqc *cqc,
                          struct mem_buf *buf)
{
    struct prm_cqe64 cqe[1] = {0};
    struct mem_buf old = cq->ring;
    uint32_t untold = cq->untold;
    bool due = cq_is_due(cq);
    enum syn syn;

    if (PRM_GET(cqc, cqc, cqe_sz) != PRM_GET(cqc, cq->cqc, cqe_sz) || cq->cc) {
        return SYN_CQ_SIZE;
    }
    syn = cq_ring_check(hca, cqc, buf);
    if (syn) {
        return syn;
    }
    if (!cq_has_room(hca, cq, 1)) {
        return SYN_CQ_STATE;
    }
    if (!cq_read_ci(hca, cq)) {
        return SYN_CQ_DBR;
    }
    if (!cq->oi && cq_used(cq) + 1 > 1u << PRM_GET(cqc, cqc, log_cq_size)) {
        return SYN_CQ_OUTSTANDING;
    }
    PRM_SET(cqe64, cqe, opcode, PRM_CQE_OPCODE_RESIZE_CQ);
    if (!cq_put(hca, cq, cqe, NULL)) {
        return SYN_CQ_STATE;
    }
    /* the entry is no completion: it makes no event due, and moderation does not count it */
    cq->untold = untold;
    if (!due) {
        cq->arm_ci = cq->pi;
    }
    buf->dbr_umem = old.dbr_umem; /* the doorbell record does not move */
    mem_buf_take(&cq->obj, &cq->ring, buf);
    mem_buf_drop(&cq->obj, &old);
    cq->log_size = PRM_GET(cqc, cqc, log_cq_size);
    cq->slot_mask = (1u << cq->log_size) - 1;
    PRM_SET(cqc, cq->cqc, log_cq_size, cq->log_size);
    PRM_SET(cqc, cq->cqc, log_page_size, PRM_GET(cqc, cqc, log_page_size));
    PRM_SET(cqc, cq->cqc, page_offset, PRM_GET(cqc, cqc, page_offset));
    return SYN_OK;
}

enum syn cq_modify(struct hca *hca, uint16_t uid, uint32_t cqn, uint32_t field_select,
                   const struct prm_cqc *cqc, struct mem_buf *buf)
{
    struct cq *cq = cq_find(hca, cqn);
    const uint32_t known = PRM_CQ_MODIFY_CQ_PERIOD | PRM_CQ_MODIFY_CQ_MAX_COUNT | PRM_CQ_MODIFY_OI |
                           PRM_CQ_MODIFY_CQ_PERIOD_MODE;

    if (!cq) {
        return SYN_NO_CQ;
    }
    if (!uid_owns(&cq->obj, uid)) {
        return SYN_BAD_UID;
    }
    if (cq->status) {
        return SYN_CQ_STATE;
    }
    if (buf) {
        if (!(field_select & PRM_CQ_RESIZE_LOG_CQ_SIZE) ||
            field_select & ~(uint32_t)CQ_RESIZE_ALL) {
            return SYN_CQ_FIELDS;
        }
        return cq_resize(hca, cq, cqc, buf);
    }
    if (field_select & ~known ||
        (field_select & PRM_CQ_MODIFY_CQ_PERIOD_MODE &&
         PRM_GET(cqc, cqc, cq_period_mode) > PRM_CQ_PERIOD_MODE_START_FROM_CQE)) {
        return SYN_CQ_FIELDS;
    }
    if (field_select & PRM_CQ_MODIFY_CQ_PERIOD) {
        PRM_SET(cqc, cq->cqc, cq_period, PRM_GET(cqc, cqc, cq_period));
    }
    if (field_select & PRM_CQ_MODIFY_CQ_MAX_COUNT) {
        PRM_SET(cqc, cq->cqc, cq_max_count, PRM_GET(cqc, cqc, cq_max_count));
    }
    if (field_select & PRM_CQ_MODIFY_CQ_PERIOD_MODE) {
        PRM_SET(cqc, cq->cqc, cq_period_mode, PRM_GET(cqc, cqc, cq_period_mode));
    }
    if (field_select & PRM_CQ_MODIFY_OI) {
        cq->oi = PRM_GET(cqc, cqc, oi);
        PRM_SET(cqc, cq->cqc, oi, cq->oi);
    }
    cq_moderation(cq);
    cq_notify(hca, cq);
    return SYN_OK;
}
