/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends notices: packets without data that the protocol allows to be lost. There are three kinds. A
 * target refuses an initiator (CNAK). An initiator tells a target that a session is over
 * (DISCONNECT). A receiver of a packet with a congestion mark tells the sender (CNP).
 *
 * Each notice waits for the credit of its own receiver. So a receiver that takes nothing holds up
 * neither the notices of others nor a queue. A notice waits until NOTICES newer notices of its kind
 * have been made; then it is dropped. A lost notice does no harm: the initiator asks again, the
 * next mark causes another CNP, and a responder is kept until it has been idle for long
 * (model/rdma/dc.h).
 */
#ifndef HCASIM_MODEL_NOTICE_H
#define HCASIM_MODEL_NOTICE_H

#include "model/core/hca.h"
#include "wire/encap/roce.h"

enum notice_kind {
    NOTICE_CNAK,
    NOTICE_DISCONNECT,
    NOTICE_CNP,
    NOTICE_KINDS,
};

/* The contents of a notice. */
struct notice_text {
    struct roce_addr addr;
    uint32_t dest_qp, psn;
    uint32_t session, number; /* fields of a DC packet (DCETH); number 0: it is not a DC packet */
    uint16_t pkey;
};

struct notice {
    struct work work; /* on a list until the notice is sent */
    struct notice_text text;
    uint8_t kind;
};

/* The most notices of each kind that are kept at one time. */
#define NOTICES 32

struct notices {
    struct notice slots[NOTICE_KINDS][NOTICES];
    unsigned made[NOTICE_KINDS];
};

void notices_init(struct hca *hca);
/* Drops the notices that are still to be sent. */
void notices_reset(struct hca *hca);

/* Sends a notice in a later step. */
void notice_send(struct hca *hca, enum notice_kind kind, const struct notice_text *text);
/* Sends a notice at once if there is credit, before the next packet; else as soon as there is
 * credit. */
void notice_send_first(struct hca *hca, enum notice_kind kind, const struct notice_text *text);

#endif
