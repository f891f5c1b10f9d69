/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Defines page faults: accesses to a page of an on-demand key that is not present.
 *
 * Such an access returns MEM_FAULT, which is neither success nor error. The step that met the fault
 * is parked, and the function's pager is told which page is missing. The pager resumes the step
 * when the page is present, or says that the page will never come. Without a pager the step
 * would never be resumed; then the access returns MEM_NO_ANSWER.
 *
 * While a step is parked, the device does the following (IBTA knows no paging; a card does so):
 *   requester    It stops sending, and its ACK timer stands still. It drops a response whose memory
 *                is missing, and requests the response again when the page is present.
 *   responder    It answers the request with RNR NAK, also where READ data is missing. The peer
 *                sends its request again from that PSN on.
 *   unreliable   A datagram or a packet of an unreliable connection is dropped.
 */
#ifndef HCASIM_MODEL_FAULT_H
#define HCASIM_MODEL_FAULT_H

#include <stdbool.h>
#include <stdint.h>

struct hca;
struct qp;

enum fault_side {
    FAULT_REQUESTER,
    FAULT_RESPONDER, /* also of a DCT: of one of its initiators at a time */
};

/* The paging state of one side of a QP. */
enum paging {
    PAGING_NONE,
    PAGING_PARKED, /* the pager was told */
    /* The pager was told. When the page is present, the requester requests the missing responses
     * again. It takes no response before that. */
    PAGING_REPEATS,
    PAGING_NEVER, /* the pager said that the page will not come: the next fault is an error */
};

struct mem_fault {
    uint32_t key; /* mkey index */
    uint64_t va;  /* first byte that is missing */
    uint64_t len; /* bytes of the access from va on */
    bool is_write;
};

/* Brings pages in. fault() is called once per side of a QP, until qp_resume() resumes that side. */
struct pager {
    void (*fault)(struct pager *pager, struct qp *qp, enum fault_side side,
                  const struct mem_fault *fault);
};

#endif
