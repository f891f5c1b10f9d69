/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts put together: a function's life, and its turns.
 */
#ifndef HCASIM_MODEL_CARD_H
#define HCASIM_MODEL_CARD_H

#include "model/core/hca.h"

/* Prepares an empty HCA (hca is zeroed by the caller). */
void hca_init(struct hca *hca, const struct hca_host_ops *ops, void *host,
              const struct hca_limits *limits, const uint8_t mac[6]);
/* The function starts over: destroys every object whatever its references, forgets work and timers.
 * The port is released, and stays as it is (port_reset() resets it). */
void hca_reset(struct hca *hca);
void hca_clear(struct hca *hca);

/* Takes one turn of about budget pieces: received frames, due timers, pending work, each with its
 * share; see fw_run(). */
bool hca_run(struct hca *hca, unsigned budget);

#endif
