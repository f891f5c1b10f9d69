/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements place.h: slots and their copy. */
#include "tests/sim/fabric/place.h"
#include <string.h>

#define SLOT_LEAST 8u

void place_init(struct place *p, struct job *job, struct sim_host *host)
{
    p->job = job;
    p->host = host;
    p->slot = ((uint32_t)MAX(job->sim->options.size, SLOT_LEAST) + 7u) & ~7u;
    p->copy = g_malloc0(place_bytes(p));
}

void place_free(struct place *p)
{
    g_free(p->copy);
}

/* Copies between the memory at an offset and a buffer. */
static void place_move(const struct place *p, size_t at, uint8_t *buf, size_t len, bool writes)
{
    for (unsigned i = 0; len; i++) {
        const struct place_part *part = &p->part[i];
        size_t now;

        g_assert_cmpuint(i, <, p->num_parts);
        if (at >= part->len) {
            at -= part->len;
            continue;
        }
        now = MIN(len, part->len - at);
        if (writes) {
            memcpy(part->at + at, buf, now);
        } else {
            memcpy(buf, part->at + at, now);
        }
        buf += now;
        len -= now;
        at = 0;
    }
}

void place_fill(struct place *p)
{
    chance_fill(&p->job->chance, p->copy, place_bytes(p));
    place_move(p, 0, p->copy, place_bytes(p), true);
}

void place_scribble(struct place *p)
{
    for (unsigned i = 0; i < PLACE_SLOTS; i++) {
        uint8_t *copy = p->copy + (size_t)i * p->slot;

        if (!(p->busy >> i & 1)) {
            chance_fill(&p->job->chance, copy, MIN(p->slot, 64));
            place_move(p, (size_t)i * p->slot, copy, p->slot, true);
        }
    }
}

void place_open(struct place *p, uint64_t va, uint32_t key, unsigned rights)
{
    p->stale = p->key != key ? p->key : p->stale;
    p->va = va;
    p->key = key;
    p->rights = rights;
    p->doubtful = 0;
    p->rests = false;
}

int place_take_slot(struct place *p)
{
    unsigned first = (unsigned)chance_below(&p->job->chance, PLACE_SLOTS);

    for (unsigned i = 0; i < PLACE_SLOTS; i++) {
        unsigned slot = (first + i) % PLACE_SLOTS;

        if (!(p->busy >> slot & 1)) {
            p->busy |= 1u << slot;
            return (int)slot;
        }
    }
    return -1;
}

void place_give_slot(struct place *p, unsigned slot)
{
    p->busy &= ~(1u << slot);
    p->loose &= ~(1u << slot);
}

const uint8_t *place_slot(const struct place *p, unsigned slot)
{
    return p->copy + (size_t)slot * p->slot;
}

uint64_t place_slot_va(const struct place *p, unsigned slot)
{
    return p->va + (uint64_t)slot * p->slot;
}

void place_set_loose(struct place *p, unsigned slot)
{
    p->loose |= 1u << slot;
}

void place_settle(struct place *p, unsigned slot, const uint8_t *brought, uint32_t len, bool whole)
{
    g_autofree uint8_t *now = g_malloc(p->slot);
    uint8_t *copy = p->copy + (size_t)slot * p->slot;

    place_move(p, (size_t)slot * p->slot, now, p->slot, false);
    for (uint32_t i = 0; i < p->slot; i++) {
        sim_check(p->job, now[i] == copy[i] || (i < len && now[i] == brought[i]),
                  "an operation has left other bytes at %u of %u in slot %u of key 0x%x, host %u",
                  i, len, slot, p->key, p->host->number);
    }
    sim_check(p->job, !whole || !memcmp(now, copy, len) || !memcmp(now, brought, len),
              "half of an operation is in slot %u of key 0x%x, host %u", slot, p->key,
              p->host->number);
    memcpy(copy, now, p->slot);
    p->loose &= ~(1u << slot);
}

void place_check(const struct place *p)
{
    g_autofree uint8_t *now = g_malloc(place_bytes(p));

    place_move(p, 0, now, place_bytes(p), false);
    for (unsigned i = 0; i < PLACE_SLOTS; i++) {
        sim_check(
            p->job,
            p->loose >> i & 1 || !memcmp(now + (size_t)i * p->slot, place_slot(p, i), p->slot),
            "slot %u of key 0x%x, host %u, was written to by nobody", i, p->key, p->host->number);
    }
}
