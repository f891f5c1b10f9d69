/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps parsed WQEs for the next packet.
 *
 * The message of a WQE may take many packets, but only a few messages are sent or received at a
 * time. Therefore a function has a few lines of each sort, which its QPs share by their numbers. If
 * another QP has taken its line, a QP reads the WQE from the ring again, because a line is only a
 * cache. The guest may have changed the WQE meanwhile; therefore code that reads a WQE again
 * compares it with what it knows about it.
 */
#ifndef HCASIM_MODEL_WQE_LINES_H
#define HCASIM_MODEL_WQE_LINES_H

#include "model/queue/wq.h"
#include "model/rdma/send_wqe.h"

struct peer;
struct qp;

#define WQE_LINES 16

struct send_line {
    const struct qp *qp;      /* NULL: the line is free */
    uint32_t num;             /* number of its descriptor (model/rdma/flight.h) */
    uint8_t source;           /* enum wqe_source_id: the source of its WQE */
    uint8_t syndrome;         /* result of send_wqe_fetch() */
    struct sge_cursor cursor; /* where the last packet's data ended */
    struct send_wqe wqe;
};

struct recv_line {
    const struct peer *peer; /* NULL: the line is free */
    struct recv_wqe wqe;
};

struct wqe_lines {
    struct send_line tx[WQE_LINES]; /* for the data that requests carry */
    struct send_line rx[WQE_LINES]; /* for the data that READs and atomics return */
    struct recv_line recv[WQE_LINES];
};

#endif
