/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A reference for block signatures: CRCs bit by bit, and a function that lays blocks and signatures
 * one behind the other. Also the descriptors that ask a device for the same.
 */
#ifndef HCASIM_TESTS_SIG_REF_H
#define HCASIM_TESTS_SIG_REF_H

#include <stdbool.h>
#include "model/memory/sig_sum.h"
#include "prm/prm.h"

/* The signatures of one domain. */
struct ref {
    enum sig_kind kind;
    uint32_t block;
    bool ones; /* seed */
    bool inc;
    uint16_t app;
    uint32_t tag;
};

uint64_t ref_guard(const struct ref *ref, const uint8_t *bytes, size_t len);
/* Bytes of a signature. */
size_t ref_bytes(const struct ref *ref);
/* Lays out data in the domain; returns the number of bytes. */
size_t ref_layout(const struct ref *ref, const uint8_t *data, size_t len, uint8_t *to);

/* Fills in the descriptor of a key whose domains use these two PSVs, and the value of a PSV. */
void ref_bsf(struct prm_bsf *bsf, const struct ref *mem, const struct ref *wire,
             const uint32_t *psvs);
uint64_t ref_psv(const struct ref *ref);

#endif
