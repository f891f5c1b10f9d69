/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps WQEs that came through a BlueFlame buffer with their doorbell, until they are fetched.
 *
 * A card has a few lines for such WQEs, which all send queues share: a new WQE takes the line that
 * was filled longest ago. A WQE that has lost its line is read from the ring, where the driver has
 * written it as well (libmlx5's post_send_db(), the driver's mlx5_write64() after wqe_ctrl).
 */
#ifndef HCASIM_MODEL_BLUEFLAME_H
#define HCASIM_MODEL_BLUEFLAME_H

#include <stddef.h>
#include <stdint.h>

struct hca;
struct wq;

/* Size of a BlueFlame buffer: half of 2^log_bf_reg_size (struct uar). */
#define BLUEFLAME_BYTES 256
#define BLUEFLAME_LINES 16

struct blueflame_line {
    struct wq *owner;    /* the send queue whose wq->bf is this line; NULL: the line is free */
    uint16_t index, len; /* the slot that bytes[] begins with, and the number of valid bytes */
    uint8_t bytes[BLUEFLAME_BYTES];
};

struct blueflame {
    struct blueflame_line lines[BLUEFLAME_LINES];
    unsigned next; /* the line that is filled next */
};

void blueflame_init(struct hca *hca);
void blueflame_clear(struct hca *hca);

/* Stores the WQE at index of a send queue, of which at most len bytes are here. wq_read() then
 * takes it from the line. A managed queue (wq->gate) has no line: its WQEs start when they are
 * enabled, again and again if its ring goes round, and may be written over until then. */
void blueflame_fill(struct hca *hca, struct wq *wq, uint16_t index, const void *data, size_t len);
/* Gives up the queue's line, so that its WQEs are read from the ring. Also called before the memory
 * of a queue is freed. */
void blueflame_drop(struct wq *wq);

#endif
