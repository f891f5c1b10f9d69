/* SPDX-License-Identifier: BSD-2-Clause */
/* Interfaces between the files of the requester (model/rdma/requester.h lists them). */
#ifndef HCASIM_MODEL_REQUESTER_INTERNAL_H
#define HCASIM_MODEL_REQUESTER_INTERNAL_H

#include "model/rdma/flight.h"
#include "model/rdma/qp.h"
#include "model/rdma/send_wqe.h"
#include "model/rdma/wqe_lines.h"
#include "model/rdma/wqe_source.h"

/* Whether started WQEs go on in the QP's state. */
static inline bool qp_may_send(const struct qp *qp)
{
    return qp->state == PRM_QP_STATE_RTS || qp->state == PRM_QP_STATE_SQ_DRAINING ||
           qp->state == PRM_QP_STATE_SQD;
}

/* -- model/rdma/requester.c ------------------------------------------------------------------- */

/* Gives an event to the machine of the queue or of the recovery, for a QP with a flight. False: the
 * machine ignores the event. */
bool requester_queue_step(struct qp *qp, enum requester_queue_event event);
bool requester_recovery_step(struct qp *qp, enum requester_recovery_event event);

/* Frees the lines that have WQEs of the QP. */
void requester_forget_lines(struct qp *qp);

/* Fetches WQE num into the line. */
void requester_line_fill(struct qp *qp, struct send_line *line, uint32_t num, enum wqe_source_id id,
                         uint16_t index, unsigned max_bb);
static inline bool requester_line_has(const struct send_line *line, const struct qp *qp,
                                      uint32_t num)
{
    return line->qp == qp && line->num == num;
}

/* The WQE of a started descriptor, from the line or its source. NULL: the WQE has changed. */
static inline const struct send_wqe *requester_wqe(struct qp *qp, struct send_line *line,
                                                   uint32_t num)
{
    const struct send_desc *desc = flight_desc(qp->req.flight, num);

    if (G_UNLIKELY(!requester_line_has(line, qp, num))) {
        requester_line_fill(qp, line, num, desc->source, desc->index, desc->num_bb);
    }
    if (line->syndrome || line->wqe.opcode != desc->opcode || line->wqe.len != desc->len ||
        line->wqe.num_bb != desc->num_bb) {
        return NULL;
    }
    return &line->wqe;
}
/* If requester_wqe() returned NULL: the syndrome. */
uint8_t requester_why_changed(struct qp *qp, const struct send_line *line,
                              const struct send_desc *desc) __attribute__((cold));

/* Completes the WQEs that are done, in order, up to the first that is not. A failed WQE takes the
 * QP to ERR or SQER. */
void requester_retire(struct qp *qp);

/* Marks a descriptor as failed, and completes what can be completed. */
void requester_fail(struct qp *qp, struct send_desc *desc, uint8_t syndrome);

/* The part of a WQE whose memory is accessed: where it begins in the WQE's data, and its length. */
struct wqe_part {
    const struct send_wqe *wqe;
    uint16_t index;
    bool is_hidden; /* no driver finds the list: a WQE of the device's own, or a copy */
    uint64_t offset;
    uint32_t len;
};
/* A page is missing for data that the QP sends or receives: parks the requester. repeat:
 * unacknowledged packets are sent again when the page is there. False: the page never will be
 * there. */
bool requester_park(struct qp *qp, bool repeat, const struct wqe_part *part);

/* -- model/rdma/requester_send.c -------------------------------------------------------------- */

/* Sends the next packet of descriptor flight->tx, which is SEND_ACTIVE. */
enum send_wait requester_send(struct qp *qp, struct send_desc *desc);

/* -- model/rdma/requester_local.c ------------------------------------------------------------- */

/* Reads the next part of what a UMR or DUMP that is about to start reads from memory, or copies the
 * next part of an MMO. The flight says how much is done. A CQE_WAIT waits for its CQE. True:
 * everything is read, and nothing is to be waited for; or *syndrome says why it cannot be. */
bool requester_read_local(struct qp *qp, struct send_line *line, uint8_t *syndrome);
/* Carries out a WQE that sends nothing on the wire. Returns 0 or the syndrome. */
uint8_t requester_execute_local(struct qp *qp, const struct send_wqe *wqe);
/* Forgets what was read. */
void requester_forget_read(struct qp *qp);

/* -- model/rdma/requester_rx.c ---------------------------------------------------------------- */

/* Handles the timer of a flight. */
void requester_timeout(struct hca *hca, struct hca_timer *timer);
/* Starts the ACK timer if it does not run. */
void requester_watch(struct qp *qp);

/* The oldest WQE that is not done, or NULL. */
struct send_desc *requester_oldest(struct flight *flight);
/* Sends again everything from the oldest unacknowledged PSN on, for this reason. */
void requester_go_back(struct qp *qp, enum wire_note_why why);

#endif
