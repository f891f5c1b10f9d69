/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signature values (PSV): numbers that belong to a PD and hold where signatures begin.
 *
 * A signature of a domain of a memory key names a PSV (model/memory/bsf.c). The PSV has the value
 * with which the guard of each block begins, the application tag and the reference tag of the first
 * block. Or it has the state of a transaction's signature (model/memory/sig.h). A SET_PSV WQE
 * writes it, and a GET_PSV WQE reads it. A key looks its PSV up by number at each use, so a PSV can
 * be destroyed while keys name it, as rdma-core does; then the key refuses accesses.
 */
#ifndef HCASIM_MODEL_PSV_H
#define HCASIM_MODEL_PSV_H

#include "model/core/hca.h"

#define PSV_MAX 4 /* the most that one command creates */

struct psv {
    struct obj obj;
    struct obj *pd; /* referenced */
    /* T10-DIF: guard << 48 | application tag << 32 | reference tag. CRC32 and CRC32C: the upper 32
     * bits. CRC64: all bits. */
    uint64_t value;
    uint32_t stamp; /* no other value of any PSV of the function has had it */
};

/* CREATE_PSV: creates n PSVs in the PD, or none. psvn receives their numbers. */
enum syn psv_create(struct hca *hca, uint16_t uid, uint32_t pdn, uint32_t n,
                    uint32_t psvn[PSV_MAX]);
enum syn psv_destroy(struct hca *hca, uint16_t uid, uint32_t psvn);
void psv_free(struct hca *hca, struct obj *obj); /* for the table of object classes */

/* Writes the value. */
void psv_set(struct hca *hca, struct psv *psv, uint64_t value);

/* The PSV of that number if it belongs to the PD, else NULL. */
struct psv *psv_find(struct hca *hca, uint32_t psvn, uint32_t pdn);

#endif
