/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements mirror.h. */
#include "tests/sim/fabric/mirror.h"
#include <string.h>

#define SCRIBBLE 2048u

void mirror_init(struct mirror *m, struct job *job, struct sim_host *host, uint8_t *at, size_t len)
{
    m->job = job;
    m->host = host;
    m->len = len;
    m->copy = g_malloc(len);
    m->readers = g_new0(uint16_t, len);
    m->writers = g_new0(uint16_t, len);
    m->marks = g_malloc0(len);
    m->page = g_new(uint8_t *, len / MIRROR_PAGE);
    m->rests = g_new0(bool, len / MIRROR_PAGE);
    chance_fill(&job->chance, m->copy, len);
    memcpy(at, m->copy, len);
    for (size_t i = 0; i < len / MIRROR_PAGE; i++) {
        m->page[i] = at + i * MIRROR_PAGE;
    }
}

void mirror_free(struct mirror *m)
{
    g_free(m->copy);
    g_free(m->page);
    g_free(m->rests);
    g_free(m->readers);
    g_free(m->writers);
    g_free(m->marks);
}

/* -- claims ------------------------------------------------------------------------------------ */

bool mirror_is_free(const struct mirror *m, const uint32_t *at, size_t n, bool writes)
{
    for (size_t i = 0; i < n; i++) {
        if (mirror_is_byte(at[i]) && (m->writers[at[i]] || (writes && m->readers[at[i]]))) {
            return false;
        }
    }
    return true;
}

void mirror_claim(struct mirror *m, const uint32_t *at, size_t n, bool writes)
{
    for (size_t i = 0; i < n; i++) {
        if (mirror_is_byte(at[i])) {
            (writes ? m->writers : m->readers)[at[i]]++;
        }
    }
}

void mirror_release(struct mirror *m, const uint32_t *at, size_t n, bool writes)
{
    for (size_t i = 0; i < n; i++) {
        if (mirror_is_byte(at[i])) {
            (writes ? m->writers : m->readers)[at[i]]--;
        }
    }
}

uint8_t mirror_value(const struct mirror *m, uint32_t at)
{
    return mirror_is_byte(at) ? m->copy[at] : 0;
}

/* -- results ----------------------------------------------------------------------------------- */

bool brought_has(const struct brought *b, size_t nth, uint8_t value)
{
    for (unsigned i = 0; i < b->n; i++) {
        if (b->value[i][nth] == value) {
            return true;
        }
    }
    return false;
}

void brought_free(struct brought *b)
{
    for (unsigned i = 0; i < b->n; i++) {
        g_free(b->value[i]);
    }
    b->n = 0;
}

static void mirror_mark(struct mirror *m, const uint32_t *at, size_t n, const struct brought *b)
{
    for (size_t i = 0; i < n; i++) {
        if (mirror_is_byte(at[i])) {
            m->marks[at[i]] |= *mirror_byte(m, at[i]) == m->copy[at[i]] ||
                               brought_has(b, i, *mirror_byte(m, at[i]));
        }
    }
}

void mirror_settle(struct mirror *m, uint32_t *const *views, unsigned num, size_t n,
                   const struct brought *b)
{
    for (unsigned v = 0; v < num; v++) {
        mirror_mark(m, views[v], n, b);
    }
    for (unsigned v = 0; v < num; v++) {
        for (size_t i = 0; i < n; i++) {
            uint32_t at = views[v][i];

            sim_check(m->job,
                      !mirror_is_byte(at) || m->marks[at] || *mirror_byte(m, at) == m->copy[at],
                      "an operation has left 0x%x at byte %u of host %u, which is neither what was "
                      "there nor what it brings there",
                      *mirror_byte(m, at), at, m->host->number);
            if (mirror_is_byte(at)) {
                m->copy[at] = *mirror_byte(m, at);
                m->marks[at] = 0;
            }
        }
    }
}

void mirror_arrived(struct mirror *m, const uint32_t *at, size_t n, const struct brought *b)
{
    for (size_t i = 0; i < n; i++) {
        if (mirror_is_byte(at[i])) {
            m->copy[at[i]] = (uint8_t)b->value[0][i];
        }
    }
    for (size_t i = 0; i < n; i++) {
        sim_check(m->job, !mirror_is_byte(at[i]) || *mirror_byte(m, at[i]) == m->copy[at[i]],
                  "an operation is complete, and byte %u of host %u is 0x%x instead of byte %zu of "
                  "%zu, 0x%x",
                  at[i], m->host->number, *mirror_byte(m, at[i]), i, n, m->copy[at[i]]);
    }
}

/* -- the host ---------------------------------------------------------------------------------- */

void mirror_scribble(struct mirror *m)
{
    uint8_t bytes[SCRIBBLE];
    uint32_t len = (uint32_t)chance_from(&m->job->chance, 1, MIN(SCRIBBLE, m->len));
    uint32_t from = (uint32_t)chance_below(&m->job->chance, m->len - len + 1);

    chance_fill(&m->job->chance, bytes, len);
    for (uint32_t i = 0; i < len; i++) {
        if (!m->readers[from + i] && !m->writers[from + i] && !m->rests[(from + i) / MIRROR_PAGE]) {
            *mirror_byte(m, from + i) = m->copy[from + i] = bytes[i];
        }
    }
}

void mirror_check(const struct mirror *m)
{
    for (uint32_t at = 0; at < m->len; at += MIRROR_PAGE) {
        const uint8_t *page = m->page[at / MIRROR_PAGE], *copy = m->copy + at;

        if (!memcmp(page, copy, MIRROR_PAGE)) {
            continue;
        }
        for (uint32_t i = 0; i < MIRROR_PAGE; i++) {
            sim_check(m->job, page[i] == copy[i] || m->writers[at + i],
                      "byte %u of host %u is 0x%x and not 0x%x: no key lets an operation write it",
                      at + i, m->host->number, page[i], copy[i]);
        }
    }
}
