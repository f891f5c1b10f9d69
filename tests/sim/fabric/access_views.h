/* SPDX-License-Identifier: BSD-2-Clause */
/* The views of an operation's sides, for access.c: see access.h. */
#ifndef HCASIM_TESTS_ACCESS_VIEWS_H
#define HCASIM_TESTS_ACCESS_VIEWS_H

#include "tests/sim/fabric/access.h"

/* Returns where the side's bytes lead, as find() says. The caller frees it. */
uint32_t *access_view(struct access *a, const struct access_op *op, const struct access_side *side,
                      bool next);
/* Returns whether a byte must fail. */
bool access_view_faults(const uint32_t *view, uint32_t len);
/* The operand and the result of an atomic. */
void access_compute(struct access *a, struct access_op *op);
/* The values that the side brings to the other side. */
struct brought *access_from(struct access_op *op, const struct access_side *side);
/* Adds a view to a side, which then owns it. Returns false, and frees it, if the side cannot have
 * it. */
bool access_add_view(struct access *a, struct access_op *op, struct access_side *side,
                     uint32_t *view);
/* Notes what the side may do now. */
void access_weigh(const struct access *a, struct access_op *op, struct access_side *side);
/* Returns whether each byte leads somewhere, in some view. */
bool access_leads(const struct access_op *op, const struct access_side *side);
/* Gives up views from the last one on, until there are n. */
void access_drop_views(struct access *a, const struct access_op *op, struct access_side *side,
                       unsigned n);
/* Frees what the operation has. */
void access_clear_op(struct access *a, struct access_op *op);

#endif
