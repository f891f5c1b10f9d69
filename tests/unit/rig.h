/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An HCA on a fake host for tests of the model's parts: without firmware, with the kernel's PD and
 * UAR.
 */
#ifndef HCASIM_TESTS_RIG_H
#define HCASIM_TESTS_RIG_H

#include "model/card/card.h"
#include "model/port/port.h"
#include "model/queue/cq.h"
#include "model/queue/eq.h"
#include "model/core/hca.h"
#include "model/core/pd.h"
#include "model/memory/mem.h"
#include "model/queue/uar.h"
#include "prm/prm.h"
#include "tests/unit/fake_host.h"

#define RIG_MSIX       8
#define RIG_RESD_LKEY  0x500
#define RIG_NULL_MKEY  0x600
#define RIG_ASYNC_MASK (UINT64_MAX & ~1ull) /* every event type below 64 except completions */

struct rig {
    struct fake_host host;
    struct hca hca;
    uint32_t pdn, uarn;           /* of uid 0 */
    uint32_t user_pdn, user_uarn; /* of uid 7 */
};

#define RIG_USER 7 /* a user context's uid */

void rig_init(struct rig *rig);
/* Makes it function `number` of a card; its MAC ends with 1 + 0x10 * number. */
void rig_init_on(struct rig *rig, struct card *card, unsigned number);
/* Also checks that no map was left open. */
void rig_clear(struct rig *rig);

/* Runs the HCA until nothing is left to do. */
void rig_run(struct rig *rig);
/* Advances the clock and runs. */
void rig_advance(struct rig *rig, uint64_t ns);

/* Makes a ring of so many bytes in pages of the host. Returns its first byte; buf gets a reference.
 */
void *rig_ring(struct rig *rig, uint64_t size, struct mem_buf *buf);

/* An event queue of 2^log_size entries as the driver makes it: owner bits 1, not armed. */
struct rig_eq {
    uint32_t eqn;
    uint64_t ring; /* bus address */
    unsigned log_size;
    uint32_t ci;
};
void rig_eq_create(struct rig *rig, struct rig_eq *eq, unsigned log_size, unsigned vector,
                   uint64_t event_mask);
/* The next EQE if software owns it (driver: next_eqe_sw()), else NULL. */
const struct prm_eqe *rig_eq_peek(struct rig *rig, struct rig_eq *eq);
/* Takes the next EQE. */
const struct prm_eqe *rig_eq_next(struct rig *rig, struct rig_eq *eq);
/* Writes the EQ's doorbell with the present consumer index. */
void rig_eq_doorbell(struct rig *rig, struct rig_eq *eq, bool arm);

#endif
