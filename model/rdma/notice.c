/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends notices; see model/rdma/notice.h. */
#include <stddef.h>
#include "model/port/cong.h"
#include "model/port/port.h"
#include "model/port/uplink.h"
#include "model/rdma/notice.h"
#include "model/rdma/rdma.h"

/* The headers that all packets of a kind have in common. A CNAK is an ACK of no session, so no
 * connection sees its AETH. A DISCONNECT is a CONNECT with the solicited event bit and without
 * data. */
static const struct transport_packet notice_kinds[] = {
    [NOTICE_CNAK] = {.opcode = BTH_DC | BTH_ACK, .migreq = true, .aeth.syndrome = AETH_CNAK},
    [NOTICE_DISCONNECT] = {.opcode = BTH_DC | BTH_CONNECT, .migreq = true, .solicited = true},
    [NOTICE_CNP] = {.opcode = BTH_CNP_OPCODE, .becn = true},
};

/* False: the wire has no credit. */
static bool notice_put(struct hca *hca, enum notice_kind kind, const struct notice_text *text)
{
    struct roce_packet pkt = {.addr = text->addr, .transport = notice_kinds[kind]};

    pkt.pkey = text->pkey;
    pkt.dest_qp = text->dest_qp;
    pkt.psn = text->psn;
    if (text->number) {
        pkt.dceth.version = hca->limits.dc_version;
        pkt.dceth.session = text->session;
        pkt.dceth.number = text->number;
    }
    if (!port_tx_reserve_roce(hca, &pkt, 0)) {
        return false;
    }
    if (G_UNLIKELY(port_wants_note(hca))) {
        port_note(hca, &(struct wire_note){.why = kind == NOTICE_CNP ? WIRE_NOTE_CONGESTION
                                                                     : WIRE_NOTE_CONNECTS});
    }
    port_tx_commit_roce(hca, &pkt, 0);
    if (kind == NOTICE_CNP) {
        hca->vport->uplink->cong.counters.cnps_sent++;
    }
    return true;
}

static void notice_work(struct hca *hca, struct work *work)
{
    const struct notice *notice = (const struct notice *)work;

    if (!notice_put(hca, notice->kind, &notice->text)) {
        hca_wait_tx(hca, work);
    }
}

void notice_send(struct hca *hca, enum notice_kind kind, const struct notice_text *text)
{
    struct notices *notices = &hca->rdma->notices;
    struct notice *notice = &notices->slots[kind][notices->made[kind]++ % NOTICES];

    hca_unschedule(&notice->work); /* the oldest notice of the kind is dropped */
    notice->text = *text;
    hca_schedule(hca, &notice->work);
}

void notice_send_first(struct hca *hca, enum notice_kind kind, const struct notice_text *text)
{
    if (!notice_put(hca, kind, text)) {
        notice_send(hca, kind, text);
    }
}

void notices_init(struct hca *hca)
{
    for (unsigned kind = 0; kind < NOTICE_KINDS; kind++) {
        for (unsigned i = 0; i < NOTICES; i++) {
            struct notice *notice = &hca->rdma->notices.slots[kind][i];

            notice->work.run = notice_work;
            notice->kind = (uint8_t)kind;
        }
    }
}

void notices_reset(struct hca *hca)
{
    for (unsigned kind = 0; kind < NOTICE_KINDS; kind++) {
        for (unsigned i = 0; i < NOTICES; i++) {
            hca_unschedule(&hca->rdma->notices.slots[kind][i].work);
        }
    }
}
