/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Doorbells without a record that nobody has heard.
 *
 * The threads of a program ring one send queue each by itself: they raise a common counter, and
 * then store it to the doorbell register (gpunetio: doca_gpu_dev_verbs_submit_db_no_dbr()). A
 * thread that is late stores a smaller counter over a greater one. A card gets both stores. Memory
 * keeps the last one, and the WQEs of the greater counter would wait for the next doorbell. In the
 * same way the doorbell of one queue hides the doorbell of another queue of the page.
 *
 * The ring shows them. Each WQE contains its own index and the queue's number. If the WQE behind
 * the last counter is there some time after a doorbell, and unchanged after the same time again,
 * its doorbell was lost: UNHEARD_NS is far longer than a thread takes from its first store to a WQE
 * to the doorbell. Then the counter behind it is rung.
 *
 * What the ring contained before may look like new WQEs: of an earlier queue with the same number,
 * or from before a reset. So the ring is read when a queue begins, and nothing is trusted until the
 * program has posted over what was found.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_UNHEARD_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_UNHEARD_H

#include <stdbool.h>
#include <stdint.h>

#define UNHEARD_NS 50000000u /* 50 ms */

struct unheard {
    uint32_t qpn;
    uint64_t ring;     /* address of the send queue; 0: it is unknown, or does not answer */
    unsigned log_size; /* log2 of its basic blocks */
    uint16_t told;     /* the greatest counter that was rung */
    uint32_t posted;   /* basic blocks since the beginning, at most old */
    uint32_t old;      /* basic blocks whose WQEs may be old */
    uint64_t look_ns;  /* when to look at the ring; UINT64_MAX: never */
    uint16_t end;      /* the counter that the last look found; told: none */
    uint64_t digest;   /* of the WQEs before it */
};

/* A queue begins, at its creation or by a reset. */
void unheard_begin(struct unheard *queue);
/* A doorbell told this counter. With the counter that was told last: a doorbell may have been lost.
 */
void unheard_tell(struct unheard *queue, uint16_t counter, uint64_t now_ns);
/* Looks at the ring if it is time. True: a doorbell was lost; ring with the counter told. */
bool unheard_look(struct unheard *queue, uint64_t now_ns);

#endif
