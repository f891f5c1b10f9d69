/* SPDX-License-Identifier: BSD-2-Clause */
/* Ends a file of verbs (cleanup.c). */
#ifndef HCASIM_GUEST_LIB_VERBS_KERNEL_CLEANUP_H
#define HCASIM_GUEST_LIB_VERBS_KERNEL_CLEANUP_H

#include "guest-lib/verbs/kernel/events.h"
#include "guest-lib/verbs/kernel/kernel.h"

/* Ends the objects and channels that are left in a file whose last context has left. The device's
 * user stays, with its transport domains and doorbell pages. */
void hv_cleanup_file(struct hv_hca *hca, struct hv_file *file);

#endif
