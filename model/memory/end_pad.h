/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Padding of received data (qpc and wq end_padding_mode ALIGN): the device writes whole cache
 * lines, so that the host need not merge the last line with what was there.
 */
#ifndef HCASIM_MODEL_END_PAD_H
#define HCASIM_MODEL_END_PAD_H

#include "model/memory/mkey.h"

/* Writes zeros behind the first len bytes of a list, up to the end of the cache line, and not
 * beyond the list's element. If the key does not allow this, nothing is written, and the message
 * is received all the same. */
void sge_pad_end(struct hca *hca, const struct sge *list, unsigned n, uint32_t pdn, uint64_t len);

#endif
