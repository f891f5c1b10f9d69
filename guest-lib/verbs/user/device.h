/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices of a simulation: as those of ibv_get_device_list(), but each with a configuration of its
 * own (hv_config_simulate()), so that many hosts live in one process and on one virtual clock. A
 * program opens them with ibv_open_device(). Nothing in it waits: completions come when the world
 * is stepped, and a descriptor that is read while it is empty blocks for ever.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_USER_DEVICE_H
#define HCASIM_GUEST_LIB_VERBS_USER_DEVICE_H

#include "guest-lib/verbs/kernel/config.h"

/* Has a device that was just opened be removed when its configuration says so (removal.c): 0 or
 * errno. */
int hv_removal_watch(struct ibv_device *device);

/* config stays the caller's, for as long as the device. */
struct ibv_device *hv_sim_device_new(unsigned index, const struct hv_port_config *config);
/* Its function is reset, whatever it does at the time: no object of any context is left in it.
 * Each context is told (IBV_EVENT_DEVICE_FATAL). Programs destroy what is theirs, which succeeds,
 * and close; whatever else they ask for fails. */
void hv_sim_device_reset(struct ibv_device *device);
/* It is removed (hv_hca_remove()). Its contexts stay open, and are closed as usual; none can be
 * opened. Any thread. */
void hv_device_remove(struct ibv_device *device);
/* All its contexts are closed. */
void hv_sim_device_free(struct ibv_device *device);

#endif
