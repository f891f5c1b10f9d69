/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies from memory to memory by the DMA engine: WQEs of opcode MMO, variant DMA (libmlx5,
 * mlx5_wr_memcpy()).
 *
 * Such a WQE has a metadata segment, then the source and the destination, one data segment each.
 * The metadata names a buffer for results of other variants (compression, DPDK's
 * mlx5_gga_compress_opaque); a copy has no results, and leaves the buffer alone.
 */
#ifndef HCASIM_MODEL_MMO_H
#define HCASIM_MODEL_MMO_H

#include "model/memory/mkey.h"

/* Log2 of the most bytes of a copy (log_dma_mmo_max_size): docs/adr/0027. */
#define MMO_LOG_MAX 21

/* Bytes that one step copies, as many as a large packet has. */
#define MMO_PART 4096

struct mmo_copy {
    struct sge from, to;
};

/* Parses the len bytes of segments that follow the control segment. denied: the lkey that counts as
 * MKEY_NONE (mkey_denied()). False: the variant is unknown, or the segments are malformed. */
bool mmo_parse(uint32_t opmod, const void *segments, size_t len, uint32_t denied,
               struct mmo_copy *copy);
/* Whether the device makes a copy of this length, and the destination has room for it. */
bool mmo_length_ok(const struct mmo_copy *copy);
/* Copies up to MMO_PART bytes from byte *done on, and adds their number to *done. If the result is
 * not MEM_OK, *done is unchanged, although a part may be written. */
enum mem_result mmo_copy_part(struct hca *hca, uint32_t pdn, const struct mmo_copy *copy,
                              size_t *done);

#endif
