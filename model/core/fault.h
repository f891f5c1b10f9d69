/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Page faults: an access to a page of an on-demand key that is not there now.
 *
 * Such an access comes to MEM_FAULT, which is neither success nor error: the step that met it is
 * parked, whoever pages for the function is told what is missing, and resumes the step when it is
 * there, or says that it never will be. Without a pager nobody would: then it is MEM_NO_ANSWER.
 *
 * What a step does that is parked (IBTA knows no paging; a card does so):
 *   a requester stops sending, and its ACK timer stands still; a response whose memory is missing
 *   is dropped, and asked for again when it is there
 *   a responder answers a request with RNR NAK, and so it does where READ data is missing: the peer
 *   asks again from there
 *   a datagram, or a packet of an unreliable connection, is dropped
 */
#ifndef HCASIM_MODEL_FAULT_H
#define HCASIM_MODEL_FAULT_H

#include <stdbool.h>
#include <stdint.h>

struct hca;
struct qp;

enum fault_side {
    FAULT_REQUESTER,
    FAULT_RESPONDER, /* of a DCT, too: of one of its initiators at a time */
};

/* Of one side of a QP. */
enum paging {
    PAGING_NONE,
    PAGING_PARKED,  /* the pager was told */
    PAGING_REPEATS, /* likewise, and when the page is there, a requester asks again for what has not
                     * come: answers before that are not taken */
    PAGING_NEVER,   /* and said that the page will not come: the next fault is an error */
};

struct mem_fault {
    uint32_t key; /* mkey index */
    uint64_t va;  /* first byte that is missing */
    uint64_t len; /* bytes of the access from there on */
    bool is_write;
};

/* Who brings pages in. Is told once per side of a QP, until that is resumed by qp_resume(). */
struct pager {
    void (*fault)(struct pager *pager, struct qp *qp, enum fault_side side,
                  const struct mem_fault *fault);
};

#endif
