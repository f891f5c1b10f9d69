/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notices: packets without data that the protocol allows to be lost. A target refuses an initiator
 * (CNAK), an initiator tells a target that a session is over (DISCONNECT), and whoever gets a
 * packet with a congestion mark tells the sender (CNP).
 *
 * Each waits for the credit of its own receiver, so that a receiver that takes nothing holds up
 * nobody else's notice, and no queue. It waits until as many later ones of its kind have been made
 * as are kept; then it is dropped. Whoever misses it asks again, is told again by the next mark, or
 * keeps a responder until that is idle for long (model/rdma/dc.h).
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

/* What one says. */
struct notice_text {
    struct roce_addr addr;
    uint32_t dest_qp, psn;
    uint32_t session, number; /* of DC (DCETH); number 0: it is none of DC */
    uint16_t pkey;
};

struct notice {
    struct work work; /* on a list while the notice is still to be sent */
    struct notice_text text;
    uint8_t kind;
};

/* Of each kind, those that are kept at a time. */
#define NOTICES 32

struct notices {
    struct notice slots[NOTICE_KINDS][NOTICES];
    unsigned made[NOTICE_KINDS];
};

void notices_init(struct hca *hca);
/* What is still to be sent is dropped. */
void notices_reset(struct hca *hca);

/* Sends one in a later step. */
void notice_send(struct hca *hca, enum notice_kind kind, const struct notice_text *text);
/* Sends one now if there is room, before what is sent next; else as soon as there is. */
void notice_send_first(struct hca *hca, enum notice_kind kind, const struct notice_text *text);

#endif
