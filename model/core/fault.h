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
    PAGING_NEVER, /* the pager said that the page will not come: the next access to it is an error
                   */
};

/* Operations that may fault. The bits are those of the PRM's odp_per_transport_service_cap, shifted
 * down: a transport has a set of them. */
enum fault_op {
    FAULT_SRQ_RECEIVE = 1 << 0,
    FAULT_ATOMIC = 1 << 1,
    FAULT_READ = 1 << 2,
    FAULT_WRITE = 1 << 3,
    FAULT_RECEIVE = 1 << 4,
    FAULT_SEND = 1 << 5, /* also a WQE that stays inside the HCA */
};

/* Transports, in the order of the PRM's odp_scheme_cap. */
enum paging_transport {
    PAGING_RC,
    PAGING_UC,
    PAGING_UD,
    PAGING_XRC,
    PAGING_DC,
    PAGING_TRANSPORTS,
};

/* The WQE or the range of memory that the parked step works on. */
struct fault_step {
    enum fault_op op;
    bool is_wqe;        /* the list of a WQE of the guest's; else a range of one key */
    uint16_t wqe_index; /* WQE: its number in its queue */
    uint32_t srqn;      /* WQE: the SRQ that it is from; 0: the QP's own queue */
    uint32_t key;       /* range: the key, and the address at which the operation begins */
    uint64_t va;
    uint64_t done; /* bytes of the message or operation before the step's own */
    uint64_t len;  /* bytes of the whole message or operation; 0: not known */
    uint32_t part; /* bytes of the step */
};

struct mem_fault {
    uint32_t key; /* the key whose page is missing; it may be behind the key of the access */
    uint64_t va;  /* first byte that is missing */
    uint64_t len; /* bytes of the access from va on */
    bool is_write;
    struct fault_step step; /* set when the step is parked */
};

/* Tells pages apart, well enough to know again the page that will not come. */
static inline uint32_t fault_page(const struct mem_fault *fault)
{
    return fault->key ^ (uint32_t)(fault->va >> 12);
}

/* Brings pages in. fault() is called once per side of a QP, until qp_resume() resumes that side.
 * False: the page will not come, so the access is an error. */
struct pager {
    bool (*fault)(struct pager *pager, struct qp *qp, enum fault_side side,
                  const struct mem_fault *fault);
};

#endif
