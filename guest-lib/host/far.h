/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A copy to memory that another processor reads next, past this processor's caches.
 *
 * If another processor has read a cache line, this processor must fetch the line from it before
 * writing, and then the other processor must fetch it from here. If the two processors share no
 * cache, that takes four times as long as going through memory
 * (docs/adr/0017-long-payloads-pass-the-caches-by.md).
 */
#ifndef HCASIM_GUEST_LIB_HOST_FAR_H
#define HCASIM_GUEST_LIB_HOST_FAR_H

#include <stddef.h>

#define FAR_LINE 64 /* bytes of a cache line */

/* As memcpy(). Other processors see stores after this call only after the copy. */
void far_copy(void *to, const void *from, size_t len);

#endif
