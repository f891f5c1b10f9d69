/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of the device: pieces of it are allocated and freed, have keys, which are destroyed while
 * they are in use, and are read and written by both hosts: through the keys, by the processor, and
 * by the device's operations. An array of pages is the reference of what is free: an allocation
 * fails only if there is no room, lies where nothing else lies, and is zero at first.
 *
 * The job has hosts of its own, so that the device has no other memory in use. A host's memory
 * (mirror.h) has a part for each piece. While a piece is not allocated, its part is ordinary memory
 * to which no key leads.
 */
#include "tests/sim/fabric/access.h"
#include "tests/sim/fabric/keymap.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/kernel/kernel.h"

#define PAGE         MIRROR_PAGE
#define LOG_PAGE     12u
#define DEVICE_PAGES 256u        /* of a device (docs/adr/0025) */
#define LONGEST      (32 * PAGE) /* allocation */
#define PIECES       5u
#define PIECE        (12 * PAGE) /* the most bytes of a piece */
#define PLAIN        (8 * PAGE)  /* ordinary memory behind the pieces */
#define MEMORY       (PIECES * PIECE + PLAIN)
#define FILLERS      9u /* pieces without keys */
#define LEAST        8u /* bytes of a key */
#define OPS          2u
#define REMOTE       (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

enum {
    ORDINARY = KEYMAP_KEYS - 1, /* the key of the ordinary memory */
    FOREIGN = ORDINARY - 1,     /* a key of another protection domain */
};

struct devmem_piece {
    struct ibv_dm *dm; /* or NULL */
    uint32_t len;
    uint32_t at;           /* position of its part */
    uint8_t *plain;        /* ordinary memory, used while there is no dm */
    uint8_t *op_addr[OPS]; /* or NULL */
};

struct devmem_key {
    struct ibv_mr *mr; /* or NULL */
    unsigned piece;
};

struct devmem_host {
    struct sim_host host;
    struct ibv_pd *other_pd;
    struct devmem_piece piece[PIECES], filler[FILLERS];
    struct devmem_key key[KEYMAP_KEYS];
    struct keymap now, next;
    bool used[DEVICE_PAGES]; /* the reference */
};

struct devmem {
    struct access access; /* first member, so a pointer to it is also one to the struct */
    struct devmem_host on[2];
};

/* -- pieces ------------------------------------------------------------------------------------ */

static unsigned devmem_pages(uint32_t len)
{
    return (len + PAGE - 1) / PAGE;
}

/* Returns whether the device has room for so many bytes. */
static bool devmem_has_room(const struct devmem_host *on, uint32_t len, unsigned log_align)
{
    unsigned n = devmem_pages(len), step = log_align > LOG_PAGE ? 1u << (log_align - LOG_PAGE) : 1;

    for (unsigned first = 0; first + n <= DEVICE_PAGES; first += step) {
        unsigned free = 0;

        while (free < n && !on->used[first + free]) {
            free++;
        }
        if (free == n) {
            return true;
        }
    }
    return false;
}

/* Marks the pages of an allocation as used, or as free. */
static void devmem_mark(const struct job *job, struct devmem_host *on,
                        const struct devmem_piece *piece, bool used)
{
    unsigned first = (unsigned)(hv_dm(piece->dm)->addr % (DEVICE_PAGES * PAGE)) / PAGE;

    for (unsigned i = first; i < first + devmem_pages(piece->len); i++) {
        sim_check(job, i < DEVICE_PAGES && on->used[i] != used,
                  "host %u: an allocation has page %u, which another one has", on->host.number, i);
        on->used[i] = used;
    }
}

/* Allocates memory, which the reference says to be possible or not. Returns whether it was. */
static bool devmem_allocate(struct job *job, struct devmem_host *on, struct devmem_piece *piece,
                            uint32_t most)
{
    struct chance *chance = &job->chance;
    struct ibv_alloc_dm_attr attr = {
        .length = chance_from(chance, LEAST, most),
        .log_align_req = chance_one_in(chance, 4) ? (uint32_t)chance_from(chance, 6, 15) : 0};
    bool room = devmem_has_room(on, (uint32_t)attr.length, attr.log_align_req);
    const uint8_t *map;

    piece->dm = ibv_alloc_dm(on->host.ctx, &attr);
    sim_check(job, piece->dm ? room : !room && errno == ENOMEM,
              "host %u: %zu bytes of device memory: errno %d, and there is %s", on->host.number,
              attr.length, piece->dm ? 0 : errno, room ? "room" : "no room");
    if (!piece->dm) {
        job->sim->tally.errors++;
        return false;
    }
    piece->len = (uint32_t)attr.length;
    map = hv_dm(piece->dm)->map;
    devmem_mark(job, on, piece, true);
    sim_check(job, hv_dm(piece->dm)->addr % (1ull << attr.log_align_req) == 0,
              "device memory at 0x%" PRIx64 ", which is not aligned", hv_dm(piece->dm)->addr);
    for (uint32_t i = 0; i < devmem_pages(piece->len) * PAGE; i++) {
        sim_check(job, !map[i], "host %u: byte %u of new memory is 0x%x", on->host.number, i,
                  map[i]);
    }
    return true;
}

static void devmem_release(struct job *job, struct devmem_host *on, struct devmem_piece *piece)
{
    for (unsigned op = 0; op < OPS; op++) {
        if (piece->op_addr[op]) {
            munmap(piece->op_addr[op], piece->len);
            piece->op_addr[op] = NULL;
        }
    }
    devmem_mark(job, on, piece, false);
    sim_must(job, ibv_free_dm(piece->dm));
    piece->dm = NULL;
}

/* The piece's part of the memory becomes device memory, which is zero. */
static bool devmem_begin_piece(struct devmem *d, unsigned h, struct devmem_piece *piece)
{
    struct mirror *m = &d->access.mirror[h];
    struct job *job = d->access.job;

    if (!devmem_allocate(job, &d->on[h], piece, PIECE)) {
        return false;
    }
    for (unsigned i = 0; i < devmem_pages(piece->len); i++) {
        m->page[piece->at / PAGE + i] = (uint8_t *)hv_dm(piece->dm)->map + (size_t)i * PAGE;
        memset(m->copy + piece->at + (size_t)i * PAGE, 0, PAGE);
    }
    for (uint8_t op = 0; op < OPS; op++) {
        if (chance_one_in(&job->chance, 2)) {
            piece->op_addr[op] = hv_dv_dm_map_op_addr(piece->dm, op);
            sim_check(job, piece->op_addr[op], "no address of operation %u: errno %d", op, errno);
        }
    }
    sim_note(job, "host %u: %u bytes of device memory are allocated", d->on[h].host.number,
             piece->len);
    return true;
}

/* The part becomes ordinary memory again. No key leads there. */
static void devmem_end_piece(struct devmem *d, unsigned h, struct devmem_piece *piece)
{
    struct mirror *m = &d->access.mirror[h];
    uint32_t bytes = devmem_pages(piece->len) * PAGE;

    mirror_check(m);
    for (unsigned i = 0; i < bytes / PAGE; i++) {
        m->page[piece->at / PAGE + i] = piece->plain + (size_t)i * PAGE;
    }
    memcpy(piece->plain, m->copy + piece->at, bytes);
    devmem_release(d->access.job, &d->on[h], piece);
    sim_note(d->access.job, "host %u: %u bytes of device memory are freed", d->on[h].host.number,
             piece->len);
}

/* Allocates or frees memory to which no key ever leads. Nothing may touch it. */
static bool devmem_step_filler(struct devmem *d, struct devmem_host *on)
{
    struct job *job = d->access.job;
    struct devmem_piece *filler = &on->filler[chance_below(&job->chance, FILLERS)];
    uint8_t pattern = (uint8_t)(filler - on->filler + 1);
    const uint8_t *map;

    if (!filler->dm) {
        if (devmem_allocate(job, on, filler, LONGEST)) {
            memset(hv_dm(filler->dm)->map, pattern, filler->len);
        }
        return true;
    }
    map = hv_dm(filler->dm)->map;
    for (uint32_t i = 0; i < filler->len; i++) {
        sim_check(job, map[i] == pattern, "host %u: byte %u of memory without keys is 0x%x",
                  on->host.number, i, map[i]);
    }
    devmem_release(job, on, filler);
    return true;
}

/* -- keys -------------------------------------------------------------------------------------- */

/* Makes the key of a slot, if the piece that was drawn exists. */
static void devmem_make_key(struct devmem *d, unsigned h, unsigned slot)
{
    static const unsigned rights[] = {IBV_ACCESS_LOCAL_WRITE | REMOTE,
                                      IBV_ACCESS_LOCAL_WRITE | REMOTE, IBV_ACCESS_LOCAL_WRITE,
                                      IBV_ACCESS_REMOTE_READ, 0};
    struct job *job = d->access.job;
    struct chance *chance = &job->chance;
    struct devmem_host *on = &d->on[h];
    struct devmem_key *k = &on->key[slot];
    const struct devmem_piece *piece =
        &on->piece[k->piece = (unsigned)chance_below(chance, PIECES)];
    unsigned access = rights[chance_below(chance, G_N_ELEMENTS(rights))];
    uint32_t at, len;

    if (!piece->dm) {
        return;
    }
    len = (uint32_t)chance_from(chance, LEAST, piece->len);
    at = (uint32_t)chance_below(chance, piece->len - len + 1);
    at &= chance_below(chance, 4) ? ~7u : ~0u; /* an atomic needs an aligned word in the memory */
    k->mr = ibv_reg_dm_mr(slot == FOREIGN ? on->other_pd : on->host.pd, piece->dm, at, len,
                          access | IBV_ACCESS_ZERO_BASED);
    sim_check(job, k->mr, "no key of device memory: errno %d", errno);
    on->now.key[slot] = (struct keymap_key){.key = k->mr->lkey,
                                            .form = KEYMAP_MEMORY,
                                            .rights = access,
                                            .pd = slot == FOREIGN,
                                            .len = len,
                                            .at = piece->at + at};
    on->next = on->now;
}

/* Destroys keys: bits of slots. They may be in use. Returns whether it was allowed. */
static bool devmem_destroy_keys(struct devmem *d, unsigned h, unsigned slots)
{
    struct devmem_host *on = &d->on[h];
    bool polite = !access_may_be_rude(&d->access);

    for (unsigned i = 0; i < KEYMAP_KEYS; i++) {
        if (slots & 1u << i) {
            on->next.key[i] = (struct keymap_key){0};
        }
    }
    if (!access_may_change(&d->access, h, polite)) {
        on->next = on->now;
        return false;
    }
    for (unsigned i = 0; i < KEYMAP_KEYS; i++) {
        if (slots & 1u << i) {
            sim_must(d->access.job, ibv_dereg_mr(on->key[i].mr));
            on->key[i].mr = NULL;
        }
    }
    on->now = on->next;
    access_has_changed(&d->access, h);
    return true;
}

/* Frees a piece, with its keys. While there are keys, it cannot be freed. */
static bool devmem_free_piece(struct devmem *d, unsigned h, struct devmem_piece *piece)
{
    struct devmem_host *on = &d->on[h];
    unsigned slots = 0;

    for (unsigned i = 0; i < ORDINARY; i++) {
        slots |= on->key[i].mr && &on->piece[on->key[i].piece] == piece ? 1u << i : 0;
    }
    if (slots) {
        int err = ibv_free_dm(piece->dm);

        sim_check(d->access.job, err == EBUSY, "device memory with keys is freed: errno %d", err);
    }
    if (slots && !devmem_destroy_keys(d, h, slots)) {
        return false;
    }
    devmem_end_piece(d, h, piece);
    return true;
}

static bool devmem_step_keys(struct devmem *d, unsigned h)
{
    struct chance *chance = &d->access.job->chance;
    struct devmem_host *on = &d->on[h];
    struct devmem_piece *piece = &on->piece[chance_below(chance, PIECES)];
    unsigned slot = (unsigned)chance_below(chance, ORDINARY);

    if (chance_one_in(chance, 16)) {
        return piece->dm ? devmem_free_piece(d, h, piece) : devmem_begin_piece(d, h, piece);
    }
    if (!on->key[slot].mr) {
        devmem_make_key(d, h, slot);
        return true;
    }
    return chance_one_in(chance, 8) && devmem_destroy_keys(d, h, 1u << slot);
}

/* -- the processor ----------------------------------------------------------------------------- */

/* Returns whether no operation under way uses the bytes. */
static bool devmem_is_idle(const struct mirror *m, uint32_t at, uint32_t len, bool writes)
{
    for (uint32_t i = at; i < at + len; i++) {
        if (m->writers[i] || (writes && m->readers[i])) {
            return false;
        }
    }
    return true;
}

/* ibv_memcpy_to_dm() and ibv_memcpy_from_dm(). */
static void devmem_copy(struct devmem *d, struct mirror *m, const struct devmem_piece *piece)
{
    struct job *job = d->access.job;
    uint8_t bytes[512];
    uint32_t len = (uint32_t)chance_from(&job->chance, 1, MIN(sizeof(bytes), piece->len)) & ~3u;
    uint32_t at = (uint32_t)chance_below(&job->chance, piece->len - len + 1) & ~3u;
    bool writes = chance_one_in(&job->chance, 2);

    if (!len || !devmem_is_idle(m, piece->at + at, len, writes)) {
        return;
    }
    if (writes) {
        chance_fill(&job->chance, bytes, len);
        sim_must(job, ibv_memcpy_to_dm(piece->dm, at, bytes, len));
        memcpy(m->copy + piece->at + at, bytes, len);
        return;
    }
    sim_must(job, ibv_memcpy_from_dm(bytes, piece->dm, at, len));
    sim_check(job, !memcmp(bytes, m->copy + piece->at + at, len),
              "the processor reads other bytes of device memory");
}

/* A store adds, and a load takes the word and sets it to 1. */
static void devmem_operate(struct devmem *d, struct mirror *m, const struct devmem_piece *piece)
{
    struct chance *chance = &d->access.job->chance;
    uint8_t op = (uint8_t)chance_below(chance, OPS);
    uint32_t at = (uint32_t)chance_below(chance, piece->len) & ~3u, word, found;
    uint32_t operand = (uint32_t)chance_next(chance);

    if (!piece->op_addr[op] || at + 4 > piece->len || !devmem_is_idle(m, piece->at + at, 4, true)) {
        return;
    }
    memcpy(&word, m->copy + piece->at + at, 4);
    if (op == PRM_MEMIC_OPERATION_INCREMENT) {
        *(volatile uint32_t *)(void *)(piece->op_addr[op] + at) = operand;
        word += operand;
    } else {
        found = *(volatile uint32_t *)(void *)(piece->op_addr[op] + at);
        sim_check(d->access.job, found == word, "an operation finds 0x%x, and not 0x%x", found,
                  word);
        word = 1;
    }
    memcpy(m->copy + piece->at + at, &word, 4);
    d->access.job->sim->tally.checks++;
}

static bool devmem_step_processor(struct devmem *d, unsigned h)
{
    struct chance *chance = &d->access.job->chance;
    const struct devmem_piece *piece = &d->on[h].piece[chance_below(chance, PIECES)];

    if (!piece->dm || chance_below(chance, 4)) {
        return false;
    }
    if (chance_one_in(chance, 2)) {
        devmem_copy(d, &d->access.mirror[h], piece);
    } else {
        devmem_operate(d, &d->access.mirror[h], piece);
    }
    return true;
}

/* -- operations -------------------------------------------------------------------------------- */

static uint32_t devmem_find(struct access *a, unsigned host, bool next, uint32_t key, unsigned need,
                            uint64_t va, uint32_t *run)
{
    const struct devmem_host *on = &((struct devmem *)a)->on[host];

    return keymap_find(next ? &on->next : &on->now, key, 0, need, va, run, 1);
}

/* Draws bytes of a key, mostly inside of it. */
static bool devmem_draw_sge(struct devmem *d, unsigned host, struct access_sge *sge, uint32_t len,
                            bool word)
{
    struct chance *chance = &d->access.job->chance;
    const struct keymap_key *key = &d->on[host].now.key[chance_below(chance, KEYMAP_KEYS)];
    uint64_t at;

    if (!key->key || key->len < len || (key->pd && !chance_one_in(chance, 8))) {
        return false;
    }
    at = chance_below(chance, key->len - len + 1) +
         (chance_one_in(chance, 16) ? chance_below(chance, len) : 0);
    at = word ? (at + 7) & ~7ull : at;
    *sge = (struct access_sge){key->key, len, key->start + at};
    return true;
}

static bool devmem_draw(struct access *a, struct access_side *side, uint32_t len)
{
    struct devmem *d = (struct devmem *)a;
    struct chance *chance = &a->job->chance;
    bool remote = side->need & REMOTE, word = side->need == IBV_ACCESS_REMOTE_ATOMIC;

    side->num_sge = remote || len < ACCESS_SGES ? 1 : (unsigned)chance_from(chance, 1, ACCESS_SGES);
    for (unsigned i = 0; i < side->num_sge; i++) {
        uint32_t left = side->num_sge - i - 1;
        uint32_t now = left ? (uint32_t)chance_from(chance, 1, len - left) : len;

        if (!devmem_draw_sge(d, side->host, &side->sge[i], now, word)) {
            return false;
        }
        len -= now;
    }
    return true;
}

static void devmem_ctrl_done(struct access *a, struct access_op *op, enum ibv_wc_status status)
{
}

/* -- steps ------------------------------------------------------------------------------------- */

static void devmem_make_ordinary(struct devmem *d, unsigned h, uint8_t *memory)
{
    struct devmem_host *on = &d->on[h];
    const unsigned rights = IBV_ACCESS_LOCAL_WRITE | REMOTE;
    struct ibv_mr *mr = ibv_reg_mr(on->host.pd, memory + PIECES * PIECE, PLAIN, (int)rights);

    sim_check(d->access.job, mr, "no region: errno %d", errno);
    on->key[ORDINARY].mr = mr;
    on->now.key[ORDINARY] = (struct keymap_key){.key = mr->lkey,
                                                .form = KEYMAP_MEMORY,
                                                .rights = rights,
                                                .start = (uintptr_t)mr->addr,
                                                .len = PLAIN,
                                                .at = PIECES * PIECE};
    on->next = on->now;
}

static void kind_device_memory_make(struct job *job)
{
    struct devmem *d = job->state;
    uint8_t *memory[2];

    d->access.make_qp = access_make_qp;
    d->access.find = devmem_find;
    d->access.draw = devmem_draw;
    d->access.ctrl_done = devmem_ctrl_done;
    for (unsigned h = 0; h < 2; h++) {
        struct devmem_host *on = &d->on[h];

        sim_host_own(job, &on->host, h, NULL);
        d->access.host[h] = &on->host;
        on->other_pd = ibv_alloc_pd(on->host.ctx);
        sim_check(job, on->other_pd, "no PD: errno %d", errno);
        memory[h] = sim_memory(job->sim, MEMORY);
    }
    access_init(&d->access, job, memory, MEMORY);
    for (unsigned h = 0; h < 2; h++) {
        for (unsigned i = 0; i < PIECES; i++) {
            d->on[h].piece[i].at = i * PIECE;
            d->on[h].piece[i].plain = memory[h] + i * PIECE;
            devmem_begin_piece(d, h, &d->on[h].piece[i]);
        }
        devmem_make_ordinary(d, h, memory[h]);
        for (unsigned i = 0; i < ORDINARY; i++) {
            devmem_make_key(d, h, i);
        }
    }
}

static bool kind_device_memory_step(struct job *job)
{
    struct devmem *d = job->state;
    bool did = access_step(&d->access);

    for (unsigned h = 0; h < 2; h++) {
        sim_poll_events(job, &d->on[h].host);
        did |= chance_one_in(&job->chance, 4) && devmem_step_keys(d, h);
        did |= chance_one_in(&job->chance, 16) && devmem_step_filler(d, &d->on[h]);
        did |= devmem_step_processor(d, h);
    }
    return did;
}

static bool kind_device_memory_is_done(const struct job *job)
{
    return access_is_done(job->state);
}

static void kind_device_memory_check(struct job *job)
{
    access_check(job->state);
}

static void kind_device_memory_free(struct job *job)
{
    struct devmem *d = job->state;

    for (unsigned h = 0; h < 2; h++) {
        struct devmem_host *on = &d->on[h];

        for (unsigned i = 0; i < KEYMAP_KEYS; i++) {
            sim_must(job, on->key[i].mr ? ibv_dereg_mr(on->key[i].mr) : 0);
        }
        for (unsigned i = 0; i < PIECES; i++) {
            if (on->piece[i].dm) {
                devmem_end_piece(d, h, &on->piece[i]);
            }
        }
        for (unsigned i = 0; i < FILLERS; i++) {
            if (on->filler[i].dm) {
                devmem_release(job, on, &on->filler[i]);
            }
        }
        sim_must(job, ibv_dealloc_pd(on->other_pd));
    }
    access_free(&d->access);
    sim_host_down(&d->on[0].host);
    sim_host_down(&d->on[1].host);
}

const struct kind kind_device_memory = {
    .name = "device-memory",
    .about = "memory of the device, allocated, freed and used under traffic, with its keys",
    .usual = true,
    .hosts = 2,
    .size = sizeof(struct devmem),
    .make = kind_device_memory_make,
    .step = kind_device_memory_step,
    .is_done = kind_device_memory_is_done,
    .check = kind_device_memory_check,
    .free = kind_device_memory_free,
};
