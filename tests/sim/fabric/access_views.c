/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements access_views.h. */
#include "tests/sim/fabric/access_views.h"
#include <string.h>

/* Returns where the side's bytes lead. */
static uint32_t *access_look(struct access *a, const struct access_side *side, uint32_t len,
                             bool next)
{
    uint32_t *view = g_new(uint32_t, len), done = 0;

    for (unsigned i = 0; i < side->num_sge && done < len; i++) {
        const struct access_sge *sge = &side->sge[i];
        uint32_t in_sge = MIN(sge->len, len - done);

        for (uint32_t at = 0; at < in_sge;) {
            uint32_t run = in_sge - at;
            uint32_t to = a->find(a, side->host, next, sge->key, side->need, sge->va + at, &run);

            for (uint32_t b = 0; b < run; b++) {
                view[done++] = mirror_is_byte(to) ? to + b : to;
            }
            at += run;
        }
    }
    return view;
}

/* An atomic needs a word that lies in one place, at a multiple of its length. */
static void access_look_at_word(struct access *a, const struct access_side *side, uint32_t *view,
                                bool next)
{
    uint32_t run = 8;
    uint32_t to = a->find(a, side->host, next, side->sge[0].key, side->need, side->sge[0].va, &run);

    for (unsigned i = 0; i < 8; i++) {
        view[i] = run == 8 && mirror_is_byte(to) && to % 8 == 0 ? to + i
                  : run == 8 && to == MIRROR_NOWHERE            ? to
                                                                : MIRROR_FAULT;
    }
}

uint32_t *access_view(struct access *a, const struct access_op *op, const struct access_side *side,
                      bool next)
{
    uint32_t *view = access_look(a, side, op->len, next);

    if (op->what == ACCESS_FETCH_ADD && side == &op->far) {
        access_look_at_word(a, side, view, next);
    }
    return view;
}

bool access_view_faults(const uint32_t *view, uint32_t len)
{
    for (uint32_t i = 0; i < len; i++) {
        if (view[i] == MIRROR_FAULT) {
            return true;
        }
    }
    return false;
}

/* Returns whether the side's bytes may bring values to the other side that are not noted yet. */
static bool access_brings_more(const struct access *a, const struct access_side *side,
                               const uint32_t *view, uint32_t len, const struct brought *to)
{
    for (uint32_t i = 0; i < len; i++) {
        if (view[i] != MIRROR_FAULT &&
            !brought_has(to, i, mirror_value(&a->mirror[side->host], view[i]))) {
            return true;
        }
    }
    return false;
}

/* Notes the values that the side's newest view brings to the other side. */
static void access_bring(const struct access *a, const struct access_side *side, uint32_t len,
                         struct brought *to)
{
    const uint32_t *view = side->view[side->views - 1];
    uint16_t *value;

    if (to->n && !access_brings_more(a, side, view, len, to)) {
        return;
    }
    g_assert_cmpuint(to->n, <, BROUGHT_MOST);
    value = to->value[to->n++] = g_new(uint16_t, len);
    for (uint32_t i = 0; i < len; i++) {
        value[i] =
            view[i] == MIRROR_FAULT ? BROUGHT_NONE : mirror_value(&a->mirror[side->host], view[i]);
    }
}

void access_compute(struct access *a, struct access_op *op)
{
    uint64_t found = 0, sum;
    uint8_t word[8];

    for (unsigned i = 0; i < 8; i++) {
        word[i] = op->far.view[0][i] == MIRROR_FAULT
                      ? 0
                      : mirror_value(&a->mirror[op->far.host], op->far.view[0][i]);
    }
    memcpy(&found, word, sizeof(found));
    sum = found + op->add;
    op->to_far.value[0] = g_new(uint16_t, 8);
    op->to_near.value[0] = g_new(uint16_t, 8);
    op->to_far.n = op->to_near.n = 1;
    for (unsigned i = 0; i < 8; i++) {
        op->to_near.value[0][i] = word[i];
        op->to_far.value[0][i] = ((const uint8_t *)&sum)[i];
    }
}

struct brought *access_from(struct access_op *op, const struct access_side *side)
{
    return side == &op->near ? &op->to_far : &op->to_near;
}

bool access_add_view(struct access *a, struct access_op *op, struct access_side *side,
                     uint32_t *view)
{
    struct mirror *m = &a->mirror[side->host];
    const struct brought *from = access_from(op, side);
    uint32_t len = op->len;
    bool free = side->views < ACCESS_VIEWS;

    if (side->views && !memcmp(view, side->view[side->views - 1], len * sizeof(*view))) {
        g_free(view);
        return true;
    }
    for (unsigned i = 0; i < side->views; i++) {
        mirror_release(m, side->view[i], len, side->writes);
    }
    free = free && (side->writes || from->n < BROUGHT_MOST ||
                    !access_brings_more(a, side, view, len, from));
    free = free && mirror_is_free(m, view, len, side->writes);
    for (unsigned i = 0; i < side->views; i++) {
        mirror_claim(m, side->view[i], len, side->writes);
    }
    if (!free) {
        g_free(view);
        return false;
    }
    mirror_claim(m, view, len, side->writes);
    side->view[side->views++] = view;
    return true;
}

void access_weigh(const struct access *a, struct access_op *op, struct access_side *side)
{
    const uint32_t *view = side->view[side->views - 1];

    side->leads = side->leads ? side->leads : g_new0(bool, op->len);
    for (uint32_t i = 0; i < op->len; i++) {
        side->leads[i] |= view[i] != MIRROR_FAULT;
        side->faults |= view[i] == MIRROR_FAULT;
    }
    if (!side->writes) {
        access_bring(a, side, op->len, access_from(op, side));
    }
}

bool access_leads(const struct access_op *op, const struct access_side *side)
{
    for (uint32_t i = 0; i < op->len; i++) {
        if (!side->leads[i]) {
            return false;
        }
    }
    return true;
}

void access_drop_views(struct access *a, const struct access_op *op, struct access_side *side,
                       unsigned n)
{
    while (side->views > n) {
        uint32_t *view = side->view[--side->views];

        mirror_release(&a->mirror[side->host], view, op->len, side->writes);
        g_free(view);
    }
}

void access_clear_op(struct access *a, struct access_op *op)
{
    struct access_side *const sides[] = {&op->near, &op->far};

    for (unsigned i = 0; i < 2; i++) {
        access_drop_views(a, op, sides[i], 0);
        g_clear_pointer(&sides[i]->leads, g_free);
    }
    brought_free(&op->to_near);
    brought_free(&op->to_far);
}
