/* SPDX-License-Identifier: BSD-2-Clause */
/* DC targets and initiators in the two-HCA lab (lab.h). */
#ifndef HCASIM_TESTS_DC_LAB_H
#define HCASIM_TESTS_DC_LAB_H

#include "model/rdma/dct.h"
#include "tests/unit/lab.h"

#define DC_LAB_KEY 0x1122334455667788ull
#define DC_LAB_LOG 8 /* receive WQEs of a target */

struct lab_dct {
    struct lab_side *side;
    uint32_t dctn;
    struct srq *srq;
    uint64_t ring, dbr;
    uint16_t posted;
};

/* Fills in the context that lab_dct_new() uses by default: mtu 1024, every access, DC_LAB_KEY. */
void lab_dctc(struct lab_side *side, struct prm_dctc *dctc);
/* Makes a DCT with its own SRQ and the side's CQ. */
void lab_dct_new(struct lab_side *side, struct lab_dct *dct);
/* Makes a DCT that accepts early packets (dctc.dp_ordering). */
void lab_dct_new_ordered(struct lab_side *side, struct lab_dct *dct);
enum syn lab_dct_create(struct lab_side *side, const struct prm_dctc *dctc, struct lab_dct *dct);
void lab_dct_post_recv(struct lab_dct *dct, uint64_t addr, uint32_t len);
struct dct *lab_dct_of(const struct lab_dct *dct);

/* Makes an initiator in RTS. path NULL: lab_path. */
void lab_dci_new(struct lab_side *side, const struct lab_qp_attr *attr, const struct lab_path *path,
                 struct lab_qp *dci);
extern const struct lab_qp_attr lab_dci;

/* Sets the target of a work request. */
struct lab_wr *lab_to(struct lab_wr *wr, const struct lab_dct *dct);

#endif
