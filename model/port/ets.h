/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Enhanced transmission selection (IEEE 802.1Q, clause 37): divides what a function sends among
 * traffic classes. The registers QTCT and QETCR say which class a priority has (pause.h says which
 * priority a queue has), the group of a class, its part of the group's bandwidth, and the limits
 * of classes and port.
 *
 * Groups are served strictly in the order of their numbers, the highest first: the driver puts
 * classes with shares into group 0 and strict classes into groups of their own above it
 * (mlx5e_build_tc_group()). The classes of a group divide by their percentages.
 *
 * The engine is that of scheduling elements (model/port/sched.h), with a tree that no command
 * names. Each function has such a tree of its own: functions of a card do not share the limits. A
 * queue that a driver has put into a scheduling element stays there, and is in no class.
 *
 * While the classes are as after power-on, all in one group with equal parts and no limits, there
 * is no tree, and all queues take turns. A tree that was made stays until the function's reset.
 */
#ifndef HCASIM_MODEL_ETS_H
#define HCASIM_MODEL_ETS_H

#include "model/port/eswitch.h"
#include "model/port/sched.h"

/* The tree of a function follows the port's settings. ets_changed(): those of all functions. */
void ets_follow(struct hca *hca);
void ets_changed(struct eswitch *sw);
/* Ends the tree. No queue is left. */
void ets_reset(struct hca *hca);

/* As sched_may_send(), for a frame of this priority; called only while hca->ets exists. The queue
 * is the object owner, m is its membership, and work sends its frames. */
bool ets_may_send(struct hca *hca, struct obj *owner, struct sched_member *m, unsigned priority,
                  struct work *work);

#endif
