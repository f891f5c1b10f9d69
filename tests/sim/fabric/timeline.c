/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements timeline.h: a binary heap, ordered by time and then by an increasing number. */
#include "tests/sim/fabric/timeline.h"

struct timeline_event {
    uint64_t time_ns, number;
    timeline_fn *fn;
    void *opaque, *what;
};

struct timeline {
    struct inproc_member member; /* first member, so a pointer to it is also one to the timeline */
    struct inproc_world *world;
    struct timeline_event *heap;
    size_t len, room;
    uint64_t numbers;
};

static bool timeline_is_before(const struct timeline_event *a, const struct timeline_event *b)
{
    return a->time_ns < b->time_ns || (a->time_ns == b->time_ns && a->number < b->number);
}

static void timeline_push(struct timeline *t, struct timeline_event event)
{
    size_t at = t->len++;

    if (t->len > t->room) {
        t->room = t->room ? 2 * t->room : 256;
        t->heap = g_renew(struct timeline_event, t->heap, t->room);
    }
    while (at && timeline_is_before(&event, &t->heap[(at - 1) / 2])) {
        t->heap[at] = t->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    t->heap[at] = event;
}

void timeline_at(struct timeline *t, uint64_t time_ns, timeline_fn *fn, void *opaque, void *what)
{
    timeline_push(t, (struct timeline_event){time_ns, t->numbers++, fn, opaque, what});
}

static struct timeline_event timeline_pop(struct timeline *t)
{
    struct timeline_event first = t->heap[0], last = t->heap[--t->len];
    size_t at = 0, below;

    while ((below = 2 * at + 1) < t->len) {
        below += below + 1 < t->len && timeline_is_before(&t->heap[below + 1], &t->heap[below]);
        if (!timeline_is_before(&t->heap[below], &last)) {
            break;
        }
        t->heap[at] = t->heap[below];
        at = below;
    }
    t->heap[at] = last;
    return first;
}

/* Events that are requested meanwhile wait for the next round. */
static bool timeline_run(struct inproc_member *member, uint64_t now_ns)
{
    struct timeline *t = (struct timeline *)member;
    uint64_t end = t->numbers;
    bool did = false;

    while (t->len && t->heap[0].time_ns <= now_ns && t->heap[0].number < end) {
        struct timeline_event event = timeline_pop(t);

        event.fn(event.opaque, event.what);
        did = true;
    }
    return did;
}

static uint64_t timeline_deadline_ns(const struct inproc_member *member)
{
    const struct timeline *t = (const struct timeline *)member;

    return t->len ? t->heap[0].time_ns : UINT64_MAX;
}

struct timeline *timeline_new(struct inproc_world *world)
{
    struct timeline *t = g_new0(struct timeline, 1);

    t->member = (struct inproc_member){timeline_run, timeline_deadline_ns};
    t->world = world;
    inproc_join(world, &t->member);
    return t;
}

void timeline_forget(struct timeline *t, timeline_fn *fn, GDestroyNotify free)
{
    struct timeline_event *all = g_steal_pointer(&t->heap);
    size_t len = t->len;

    t->len = t->room = 0;
    for (size_t i = 0; i < len; i++) {
        if (all[i].fn == fn) {
            free(all[i].what);
        } else {
            timeline_push(t, all[i]);
        }
    }
    g_free(all);
}

uint64_t timeline_now(const struct timeline *t)
{
    return t->world->now_ns;
}

void timeline_free(struct timeline *t)
{
    inproc_leave(t->world, &t->member);
    g_free(t->heap);
    g_free(t);
}
