/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device's own pager: reports page faults to the driver as events, and takes its answers.
 *
 * A fault becomes an EQE of type PAGE_FAULT on the EQ that the kernel has made for it. The driver
 * brings the pages in by UMR and answers by PAGE_FAULT_RESUME. Then the parked step goes on, or
 * ends in error (model/core/fault.h). A step that finds a page missing again is a new fault.
 *
 * A side of a QP has at most one fault. The fault ends with its answer, with the QP or DCT, or with
 * the EQ: without it nobody would answer, so all faults then end in error. If the EQ is full, the
 * event waits for room. If a QP is flushed or reset, its fault remains until it is answered, and
 * the answer has no effect; the driver has read the event and will answer. If the side misses a
 * page again before that, the driver is told again.
 *
 * The driver chooses one of two schemes (odp_cap.mem_page_fault). The transport scheme names the
 * queue and its WQE, or the range of a remote operation; its token is the number of the QP or DCT.
 * The memory scheme names the key and the address of the pages; its token is
 * sequence number << 32 | side << 24 | number of the QP or DCT.
 */
#ifndef HCASIM_MODEL_PAGING_H
#define HCASIM_MODEL_PAGING_H

#include "model/core/hca.h"
#include "model/core/syndrome.h"

struct paging_fault;

/* A function's pager. */
struct fault_pager {
    struct pager pager;
    struct hca *hca;
    struct paging_fault *first, *last; /* all faults, oldest first */
    unsigned num;                      /* of them */
    uint32_t eqn;                      /* the EQ that takes the faults; UINT32_MAX: none */
    unsigned ending; /* how many of the oldest faults end in error, because their EQ is gone */
    struct work end; /* ends them */
    uint16_t next_token;
};

void paging_init(struct hca *hca);
/* Called after the function's QPs are gone. */
void paging_reset(struct hca *hca);
/* An EQ was created or destroyed. The function has a pager as long as an EQ takes page faults. */
void paging_follow_eqs(struct hca *hca);
/* The QP, or the QP of a DCT, ends. */
void paging_forget(struct qp *qp);

/* The timer value of an RNR NAK for a page fault: the QP's min_rnr_nak, or a longer one if the
 * driver has many faults to answer. Otherwise all peers would send their requests again and again
 * meanwhile, and the device would do nothing else. The QP's value is the least that a responder
 * sends (IBTA: Minimum RNR NAK Timer Field Value). */
uint8_t paging_rnr_timer(const struct qp *qp);

/* PAGE_FAULT_RESUME in the two schemes. type and wqn are as in the event. */
enum syn paging_resume_transport(struct hca *hca, uint8_t type, uint32_t wqn, uint32_t token,
                                 bool error);
enum syn paging_resume_memory(struct hca *hca, uint64_t token, bool error);

#endif
