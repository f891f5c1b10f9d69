/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices of a simulation. They are like those of ibv_get_device_list(), but each has a
 * configuration of its own (hv_config_simulate()), so that many hosts live in one process and on
 * one virtual clock. A program opens them with ibv_open_device(). Nothing in a simulation waits:
 * completions come when the world is stepped, and reading an empty descriptor blocks for ever.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_USER_DEVICE_H
#define HCASIM_GUEST_LIB_VERBS_USER_DEVICE_H

#include "guest-lib/verbs/kernel/config.h"

/* Schedules the removal of a device that was just opened, as its configuration says (removal.c).
 * Returns 0 or errno. */
int hv_removal_watch(struct ibv_device *device);

/* The caller owns config, which must live as long as the device. */
struct ibv_device *hv_sim_device_new(unsigned index, const struct hv_port_config *config);
/* Resets the device's function, whatever it does at the time: no object of any context is left in
 * it. Each context is told (IBV_EVENT_DEVICE_FATAL). Programs can destroy their objects, which
 * succeeds, and close; all other requests fail. */
void hv_sim_device_reset(struct ibv_device *device);
/* Removes the device (hv_hca_remove()). Its contexts stay open and are closed as usual; no new one
 * can be opened. May be called from any thread. */
void hv_device_remove(struct ibv_device *device);
/* To be called when all its contexts are closed. */
void hv_sim_device_free(struct ibv_device *device);

#endif
