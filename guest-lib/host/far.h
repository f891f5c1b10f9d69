/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A copy to memory that another processor reads next, past this processor's caches.
 *
 * A cache line that another processor has read must be had from it before it can be written, and
 * then it must fetch the line from here. Where the two share no cache that takes four times as long
 * as memory does (docs/adr/0017-long-payloads-pass-the-caches-by.md).
 */
#ifndef HCASIM_GUEST_LIB_HOST_FAR_H
#define HCASIM_GUEST_LIB_HOST_FAR_H

#include <stddef.h>

#define FAR_LINE 64 /* bytes of a cache line */

/* As memcpy(). What is stored after the call is seen after the copy. */
void far_copy(void *to, const void *from, size_t len);

#endif
