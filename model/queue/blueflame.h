/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * WQEs that came through a BlueFlame buffer with their doorbell, kept until they are fetched.
 *
 * A card has a few lines for them, which all send queues share: the newest WQE takes the line that
 * was filled longest ago. A WQE that lost its line is read from the ring, where the driver has
 * written it as well (libmlx5's post_send_db(), the driver's mlx5_write64() after wqe_ctrl).
 */
#ifndef HCASIM_MODEL_BLUEFLAME_H
#define HCASIM_MODEL_BLUEFLAME_H

#include <stddef.h>
#include <stdint.h>

struct hca;
struct wq;

/* A BlueFlame buffer: half of what log_bf_reg_size says (struct uar). */
#define BLUEFLAME_BYTES 256
#define BLUEFLAME_LINES 16

struct blueflame_line {
    struct wq *owner;    /* whose wq->bf is this line; NULL: nobody's */
    uint16_t index, len; /* the slot that bytes[] begins with, and how many are good */
    uint8_t bytes[BLUEFLAME_BYTES];
};

struct blueflame {
    struct blueflame_line lines[BLUEFLAME_LINES];
    unsigned next; /* the line that is filled next */
};

void blueflame_init(struct hca *hca);
void blueflame_clear(struct hca *hca);

/* The WQE at index of a send queue came so, len bytes of it or less; wq_read() takes it from there.
 */
void blueflame_fill(struct hca *hca, struct wq *wq, uint16_t index, const void *data, size_t len);
/* The queue's ring counts again. Before a queue's memory is freed, too. */
void blueflame_drop(struct wq *wq);

#endif
