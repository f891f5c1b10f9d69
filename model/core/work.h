/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs work and timers; for model/card. Code that asks for a turn or sets a timer uses the
 * functions of model/core/hca.h.
 */
#ifndef HCASIM_MODEL_WORK_H
#define HCASIM_MODEL_WORK_H

#include "model/core/hca.h"

void hca_work_init(struct hca *hca);
/* Forgets all work and all timers. */
void hca_work_reset(struct hca *hca);
void hca_work_clear(struct hca *hca);

/* Does ready work as long as hca_may_go_on(). */
void hca_work_run(struct hca *hca);
bool hca_work_pending(const struct hca *hca);

/* Whether some work waits for the wire's credit: of this class; of any class. */
bool hca_credit_awaited(const struct hca *hca, unsigned credit_class);
bool hca_tx_awaited(const struct hca *hca);
/* hca_frames_awaited(): whether some work waits until the turn has looked for frames again.
 * hca_frames_looked_for(): the turn has looked. */
bool hca_frames_awaited(const struct hca *hca);
void hca_frames_looked_for(struct hca *hca);

/* Fires due timers as long as hca_may_go_on(). more_frames: frames are left that might stop a
 * timer. */
void hca_timers_fire(struct hca *hca, bool more_frames);
/* Tells the owner when the next timer is due. */
void hca_timers_announce(struct hca *hca);

#endif
