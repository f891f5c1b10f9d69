/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * WQEs taken apart, kept for the next packet.
 *
 * The message that a WQE is about may take many packets, but only so many messages are being sent
 * or received at a time. So a function has a few lines of each sort, which its QPs share by their
 * numbers. Who finds its line taken by another reads its WQE from the ring again: the line is
 * nothing but memory that was looked at. The guest could have changed the WQE meanwhile; who reads
 * it again holds it against what it knows of it.
 */
#ifndef HCASIM_MODEL_WQE_LINES_H
#define HCASIM_MODEL_WQE_LINES_H

#include "model/queue/wq.h"
#include "model/rdma/send_wqe.h"

struct peer;
struct qp;

#define WQE_LINES 16

struct send_line {
    const struct qp *qp;      /* NULL: the line is nobody's */
    uint32_t num;             /* of the descriptor that it is for (model/rdma/flight.h) */
    uint8_t source;           /* that its WQE is from: enum wqe_source_id */
    uint8_t syndrome;         /* what send_wqe_fetch() said */
    struct sge_cursor cursor; /* where the last packet's data ended */
    struct send_wqe wqe;
};

struct recv_line {
    const struct peer *peer; /* NULL: the line is nobody's */
    struct recv_wqe wqe;
};

struct wqe_lines {
    struct send_line tx[WQE_LINES]; /* what requests carry */
    struct send_line rx[WQE_LINES]; /* where the data of READs and atomics goes */
    struct recv_line recv[WQE_LINES];
};

#endif
