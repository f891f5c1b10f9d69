/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements the device's own pager: see paging.h. */
#include <string.h>
#include "model/memory/mkey.h"
#include "model/queue/eq.h"
#include "model/rdma/dct.h"
#include "model/rdma/paging.h"
#include "model/rdma/qp.h"
#include "model/rdma/rdma.h"
#include "wire/packet/describe.h"

/* Bits of the type of a fault, in its event and in the answer. */
#define FAULT_TYPE_REQUESTOR 1u
#define FAULT_TYPE_WRITE     2u /* RDMA: a write. WQE: READ or atomic at the requester; else own RQ */
#define FAULT_TYPE_RDMA      4u

#define PAGING_NO_EQ         UINT32_MAX

#define TOKEN_QPN            0xffffffu
#define TOKEN_SIDE           24 /* memory scheme: bit of the token that is set for the responder */

/* Event fields of the memory scheme count pages of 4 KiB. The most pages that the driver is asked
 * to bring in ahead: 4 MiB, as much as the driver brings in ahead itself (its MAX_PREFETCH_LEN). */
#define PAGE         4096ull
#define AHEAD_PAGES  1024ull
#define DEMAND_PAGES 0xfffffull

/* A fault that the driver has not answered. */
struct paging_fault {
    struct paging_fault *prev, *next; /* of the function */
    struct paging_fault *other;       /* of the QP's other side, or NULL */
    struct qp *qp;
    uint8_t side; /* enum fault_side */
    bool ends;    /* it is one of those that paging.ending counts */
    uint16_t token;
    struct mem_fault fault;
    struct eq_waiter waiter;
};

static struct paging_fault *paging_find(const struct qp *qp, enum fault_side side)
{
    struct paging_fault *f = qp->faults;

    while (f && f->side != side) {
        f = f->other;
    }
    return f;
}

/* -- events ------------------------------------------------------------------------------------ */

static uint8_t paging_type(const struct paging_fault *f)
{
    const struct fault_step *step = &f->fault.step;
    bool requester = f->side == FAULT_REQUESTER;

    if (!step->is_wqe) {
        return FAULT_TYPE_RDMA | (requester ? FAULT_TYPE_REQUESTOR : 0) |
               (f->fault.is_write ? FAULT_TYPE_WRITE : 0);
    }
    if (requester) {
        return FAULT_TYPE_REQUESTOR |
               (step->op == FAULT_READ || step->op == FAULT_ATOMIC ? FAULT_TYPE_WRITE : 0);
    }
    return step->srqn ? 0 : FAULT_TYPE_WRITE;
}

/* The queue whose WQE is meant: an SRQ, or the QP's own. */
static uint32_t paging_wqn(const struct paging_fault *f)
{
    const struct fault_step *step = &f->fault.step;

    return step->is_wqe && f->side == FAULT_RESPONDER && step->srqn ? step->srqn : f->qp->obj.num;
}

static uint32_t paging_u32(uint64_t value)
{
    return (uint32_t)MIN(value, UINT32_MAX);
}

static uint16_t paging_u16(uint64_t value)
{
    return (uint16_t)MIN(value, UINT16_MAX);
}

static void paging_fill_wqe(const struct paging_fault *f, void *data)
{
    const struct fault_step *step = &f->fault.step;
    struct prm_wqe_associated_page_fault_event *e = data;
    uint8_t type = paging_type(f);

    PRM_SET(wqe_associated_page_fault_event, e, bytes_committed, paging_u32(step->done));
    PRM_SET(wqe_associated_page_fault_event, e, wqe_index, step->wqe_index);
    PRM_SET(wqe_associated_page_fault_event, e, len, paging_u16(step->part));
    PRM_SET(wqe_associated_page_fault_event, e, token, f->qp->obj.num);
    PRM_SET(wqe_associated_page_fault_event, e, write_read, !!(type & FAULT_TYPE_WRITE));
    PRM_SET(wqe_associated_page_fault_event, e, requestor, !!(type & FAULT_TYPE_REQUESTOR));
    PRM_SET(wqe_associated_page_fault_event, e, qpn, paging_wqn(f));
}

static void paging_fill_rdma(const struct paging_fault *f, void *data)
{
    const struct fault_step *step = &f->fault.step;
    struct prm_rdma_page_fault_event *e = data;
    uint8_t type = paging_type(f);

    PRM_SET(rdma_page_fault_event, e, bytes_committed, paging_u32(step->done));
    PRM_SET(rdma_page_fault_event, e, r_key, step->key);
    PRM_SET(rdma_page_fault_event, e, packet_len, paging_u16(step->part));
    PRM_SET(rdma_page_fault_event, e, rdma_op_len, paging_u32(step->len));
    PRM_SET(rdma_page_fault_event, e, rdma_va, step->va);
    PRM_SET(rdma_page_fault_event, e, rdma, 1);
    PRM_SET(rdma_page_fault_event, e, write, !!(type & FAULT_TYPE_WRITE));
    PRM_SET(rdma_page_fault_event, e, requestor, !!(type & FAULT_TYPE_REQUESTOR));
    PRM_SET(rdma_page_fault_event, e, qp_number, f->qp->obj.num);
}

/* The pages of the access are asked for, and those of the rest of the message ahead. */
static void paging_fill_memory(const struct paging_fault *f, void *data)
{
    const struct mem_fault *fault = &f->fault;
    const struct fault_step *step = &fault->step;
    struct prm_memory_page_fault_event *e = data;
    uint64_t first = fault->va / PAGE, pages = (fault->va % PAGE + fault->len + PAGE - 1) / PAGE;
    uint64_t after = step->done + step->part, rest = step->len > after ? step->len - after : 0;

    PRM_SET(memory_page_fault_event, e, last, 1);
    PRM_SET(memory_page_fault_event, e, post_demand_fault_pages,
            MIN((rest + PAGE - 1) / PAGE, AHEAD_PAGES));
    PRM_SET(memory_page_fault_event, e, token_47_32, f->token);
    PRM_SET(memory_page_fault_event, e, token_31_0,
            (uint32_t)f->side << TOKEN_SIDE | f->qp->obj.num);
    PRM_SET(memory_page_fault_event, e, demand_fault_pages, MIN(pages, DEMAND_PAGES));
    PRM_SET(memory_page_fault_event, e, mkey, fault->key);
    PRM_SET(memory_page_fault_event, e, va, first * PAGE);
}

/* Posts the event of a fault, now or when the EQ has room. */
static void paging_post(struct hca *hca, struct paging_fault *f)
{
    struct eq *eq = eq_for_page_faults(hca);
    uint8_t data[EQE_DATA_LEN] = {0};
    uint8_t sub_type;

    if (!eq) {
        return; /* the EQ has just ended, so the fault is about to end, too */
    }
    if (hca->memory_faults) {
        sub_type = PRM_PFAULT_SUBTYPE_MEMORY;
        paging_fill_memory(f, data);
    } else if (f->fault.step.is_wqe) {
        sub_type = PRM_PFAULT_SUBTYPE_WQE;
        paging_fill_wqe(f, data);
    } else {
        sub_type = PRM_PFAULT_SUBTYPE_RDMA;
        paging_fill_rdma(f, data);
    }
    eq_post_or_wait(hca, eq, PRM_EVENT_TYPE_PAGE_FAULT, sub_type, data, &f->waiter);
}

static void paging_retry(struct hca *hca, struct eq_waiter *waiter)
{
    paging_post(hca,
                (struct paging_fault *)((char *)waiter - offsetof(struct paging_fault, waiter)));
}

/* -- faults ------------------------------------------------------------------------------------ */

static struct paging_fault *paging_new(struct hca *hca, struct qp *qp, enum fault_side side)
{
    struct fault_pager *paging = &hca->rdma->paging;
    struct paging_fault *f = ledger_alloc(&hca->memory, sizeof(*f));

    if (!f) {
        return NULL;
    }
    f->qp = qp;
    f->side = side;
    f->waiter.retry = paging_retry;
    f->other = qp->faults;
    qp->faults = f;
    f->prev = paging->last;
    *(paging->last ? &paging->last->next : &paging->first) = f;
    paging->last = f;
    paging->num++;
    return f;
}

static void paging_drop(struct hca *hca, struct paging_fault *f)
{
    struct fault_pager *paging = &hca->rdma->paging;
    struct paging_fault **of_qp = &f->qp->faults;

    while (*of_qp != f) {
        of_qp = &(*of_qp)->other;
    }
    *of_qp = f->other;
    *(f->prev ? &f->prev->next : &paging->first) = f->next;
    *(f->next ? &f->next->prev : &paging->last) = f->prev;
    paging->ending -= f->ends;
    paging->num--;
    eq_stop_waiting(&f->waiter);
    ledger_free(&hca->memory, f, sizeof(*f));
}

static bool paging_fault(struct pager *pager, struct qp *qp, enum fault_side side,
                         const struct mem_fault *fault)
{
    struct hca *hca =
        ((struct fault_pager *)((char *)pager - offsetof(struct fault_pager, pager)))->hca;
    uint8_t transport = qp->service->paging;
    struct paging_fault *f;

    if (transport >= PAGING_TRANSPORTS || !(hca->may_fault[transport] & fault->step.op)) {
        return false;
    }
    f = paging_find(qp, side);
    if (f) {
        paging_drop(hca, f); /* a flush has made its answer meaningless */
    }
    f = paging_new(hca, qp, side);
    if (!f) {
        return false;
    }
    f->fault = *fault;
    f->token = hca->rdma->paging.next_token++;
    paging_post(hca, f);
    return true;
}

#define ANSWER_10US                                                                                \
    3                   /* what an answer is assumed to take, in the unit of aeth_rnr_delay: 30 us \
                         */
#define LONGEST_WAIT 20 /* timer value: 10.24 ms */

uint8_t paging_rnr_timer(const struct qp *qp)
{
    const struct fault_pager *paging = &qp->hca->rdma->paging;
    uint32_t wait = paging->num > 1 ? (paging->num - 1) * ANSWER_10US : 0;
    uint8_t value = 1;

    while (value < LONGEST_WAIT && aeth_rnr_delay[value] < wait) {
        value++;
    }
    return aeth_rnr_delay[value] > aeth_rnr_delay[qp->min_rnr_nak] ? value : qp->min_rnr_nak;
}

void paging_forget(struct qp *qp)
{
    while (qp->faults) {
        paging_drop(qp->hca, qp->faults);
    }
}

static void paging_answer(struct hca *hca, struct paging_fault *f, bool error)
{
    enum fault_side side = f->side;
    struct qp *qp = f->qp;

    paging_drop(hca, f);
    qp_resume(qp, side, error);
}

/* The unanswered fault of a side of the QP or DCT of that number. */
static struct paging_fault *paging_of(struct hca *hca, uint32_t qpn, enum fault_side side)
{
    struct qp *qp = qp_find(hca, qpn);
    struct dct *dct = qp ? NULL : dct_find(hca, qpn);

    return qp ? paging_find(qp, side) : dct ? paging_find(&dct->qp, side) : NULL;
}

enum syn paging_resume_transport(struct hca *hca, uint8_t type, uint32_t wqn, uint32_t token,
                                 bool error)
{
    struct paging_fault *f =
        paging_of(hca, token, type & FAULT_TYPE_REQUESTOR ? FAULT_REQUESTER : FAULT_RESPONDER);

    if (!f || hca->memory_faults || paging_type(f) != type || paging_wqn(f) != wqn) {
        return SYN_NO_FAULT;
    }
    paging_answer(hca, f, error);
    return SYN_OK;
}

enum syn paging_resume_memory(struct hca *hca, uint64_t token, bool error)
{
    struct paging_fault *f = paging_of(hca, token & TOKEN_QPN,
                                       token >> TOKEN_SIDE & 1 ? FAULT_RESPONDER : FAULT_REQUESTER);

    if (!f || !hca->memory_faults || f->token != token >> 32 ||
        (uint32_t)token != ((uint32_t)f->side << TOKEN_SIDE | f->qp->obj.num)) {
        return SYN_NO_FAULT;
    }
    paging_answer(hca, f, error);
    return SYN_OK;
}

/* -- the pager --------------------------------------------------------------------------------- */

static void paging_end_run(struct hca *hca, struct work *work)
{
    struct fault_pager *paging = &hca->rdma->paging;

    while (paging->ending) {
        paging_answer(hca, paging->first, true);
        hca_spend(hca, 1);
        if (!hca_may_go_on(hca)) {
            hca_schedule(hca, work);
            return;
        }
    }
}

void paging_init(struct hca *hca)
{
    hca->rdma->paging.hca = hca;
    hca->rdma->paging.eqn = PAGING_NO_EQ;
    hca->rdma->paging.pager.fault = paging_fault;
    hca->rdma->paging.end.run = paging_end_run;
}

void paging_follow_eqs(struct hca *hca)
{
    struct fault_pager *paging = &hca->rdma->paging;
    struct eq *eq = eq_for_page_faults(hca);
    uint32_t eqn = eq ? eq_obj(eq)->num : PAGING_NO_EQ;

    hca->pager = eq ? &paging->pager : NULL;
    if (eqn == paging->eqn) {
        return;
    }
    paging->eqn = eqn;
    for (struct paging_fault *f = paging->first; f; f = f->next) {
        paging->ending += !f->ends;
        f->ends = true;
    }
    if (paging->ending) {
        hca_schedule(hca, &paging->end);
    }
}

void paging_reset(struct hca *hca)
{
    g_assert(!hca->rdma->paging.first);
    hca_unschedule(&hca->rdma->paging.end);
    hca->rdma->paging.eqn = PAGING_NO_EQ;
    hca->pager = NULL;
}
