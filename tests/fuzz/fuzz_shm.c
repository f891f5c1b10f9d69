/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer: a member of a shared-memory segment that writes arbitrary values into the shared
 * memory (wire/shm/segment.h), beside an honest member that sends, receives and asks.
 *
 * An input is a list of steps: the honest member does something, or the hostile member does what a
 * member does, or it writes a word somewhere, an entry in the ring to the honest member with its
 * slot, or a record in its log. Positions, tags and stamps are right unless the input says
 * otherwise, because each would fail the first check. There must be no more frames than were asked
 * for, each with a valid length and in the port's memory; and both members can leave.
 */
#include <glib/gstdio.h>
#include <stdlib.h>
#include <string.h>
#include "wire/open.h"
#include "wire/shm/port.h"

#define MAX_STEPS 200
#define NOBODYS   700 /* an id whose place is free */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *data;
    size_t size;
};

static struct shm_port *honest, *hostile;
static unsigned delivered, sum;

static void require(bool what)
{
    if (!what) {
        abort();
    }
}

/* -- the input -------------------------------------------------------------------------------- */

static uint8_t shm_u8(struct input *in)
{
    if (!in->size) {
        return 0;
    }
    in->size--;
    return *in->data++;
}

static uint16_t shm_u16(struct input *in)
{
    uint16_t high = shm_u8(in);

    return (uint16_t)(high << 8 | shm_u8(in));
}

/* Returns a meaningful word, or any word. */
static uint64_t shm_word(struct input *in)
{
    static const uint64_t ends[] = {0, 1, UINT64_MAX, 1ull << 63, UINT32_MAX, SHM_LOG, 0xffff};
    uint8_t what = shm_u8(in);
    uint64_t value;

    switch (what % 5) {
    case 0:
        return ends[(what >> 4) % G_N_ELEMENTS(ends)];
    case 1:
        return what & 0x80 ? honest->tag : hostile->tag;
    case 2:
        return 1ull << what / 5;
    case 3:
        return shm_u16(in);
    default:
        value = (uint64_t)shm_u16(in) << 32;
        return value | (uint64_t)shm_u16(in) << 16 | shm_u16(in);
    }
}

static unsigned shm_id(struct input *in)
{
    uint8_t what = shm_u8(in);

    switch (what & 3) {
    case 0:
        return honest->seg.id;
    case 1:
        return hostile->seg.id;
    case 2:
        return NOBODYS;
    default:
        return what * 4;
    }
}

/* -- the honest one --------------------------------------------------------------------------- */

static bool is_within(const uint8_t *p, size_t len, const void *memory, size_t size)
{
    const uint8_t *begin = memory;

    return p >= begin && p + len <= begin + size;
}

static void shm_take(void *opaque, const uint8_t *frame, size_t len, unsigned flags)
{
    struct shm_port *sp = opaque;

    require(len >= SHM_ETH_MIN && len <= WIRE_FRAME_MAX);
    require(is_within(frame, len, sp->seg.region[sp->seg.id]->slot,
                      sizeof(struct shm_slot[SHM_SLOTS])) ||
            is_within(frame, len, sp->copied, sizeof(sp->copied)));
    for (size_t i = 0; i < len; i++) {
        sum += frame[i];
    }
    delivered++;
}

static void shm_tell(void *opaque)
{
    sum++;
}

static const struct wire_client client = {
    .rx = shm_take, .tx_ready = shm_tell, .link_change = shm_tell, .rx_ready = shm_tell};

static void shm_poll_port(struct shm_port *sp, unsigned max)
{
    unsigned before = delivered, n = wire_poll(&sp->port, max);

    require(n <= max);
    require(delivered - before <= n);
}

static void shm_mac(uint8_t mac[6], unsigned which)
{
    static const uint8_t macs[4][6] = {{2, 0, 0, 0, 0, 1},
                                       {2, 0, 0, 0, 0, 2},
                                       {2, 0, 0, 0, 0, 3},
                                       {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

    memcpy(mac, macs[which & 3], 6);
}

static void shm_send(struct shm_port *sp, unsigned to, size_t len, unsigned flags)
{
    uint8_t dmac[6], *frame;

    shm_mac(dmac, to);
    frame = wire_tx_reserve_to(&sp->port, dmac, len);
    if (frame) {
        memset(frame, (int)len, len);
        memcpy(frame, dmac, MIN(len, 6));
        if (len >= 12) {
            shm_mac(frame + 6, sp == hostile);
        }
        wire_tx_commit_as(&sp->port, len, flags & sp->port.offers);
    }
}

static void shm_ask(struct shm_port *sp, unsigned whom)
{
    static struct wire_pause pause;
    uint8_t mac[6];

    shm_mac(mac, whom);
    sum += wire_is_paused(&sp->port, mac, &pause);
    sum += wire_knows(&sp->port, mac);
}

/* -- what the other one writes ------------------------------------------------------------------
 */

static void shm_write_set(struct input *in, struct shm_set *set, unsigned where)
{
    uint64_t value = shm_word(in);

    if (where % 4 == 0) {
        atomic_store(&set->some, value);
    } else {
        atomic_store(&set->word[where % SHM_WORDS], value);
        atomic_fetch_or(&set->some, 1ull << where % SHM_WORDS);
    }
}

static void shm_write_member(struct input *in, struct shm_member *m)
{
    uint8_t what = shm_u8(in), where = what >> 4;

    switch (what % 11) {
    case 0:
        atomic_store(&m->gen, (uint32_t)shm_word(in));
        break;
    case 1:
        atomic_store(&m->attached, (uint32_t)shm_word(in));
        break;
    case 2:
        atomic_store(&m->sleep, (uint32_t)shm_word(in));
        break;
    case 3:
        shm_write_set(in, &m->credits, where);
        break;
    case 4:
        shm_write_set(in, &m->waiters, where);
        break;
    case 5:
        shm_write_set(in, &m->senders, where);
        break;
    case 6:
        shm_write_set(in, &m->floods, where);
        break;
    case 7:
        atomic_store(&m->log_head, shm_word(in));
        break;
    case 8:
        atomic_store(&m->log_tail, shm_word(in));
        break;
    case 9:
        atomic_store(&m->chunks[where % (SHM_CHUNKS / 64)], shm_word(in));
        break;
    default:
        atomic_store(&m->mac[where % SHM_MACS], (uint32_t)shm_word(in));
    }
}

static void shm_write_header(struct input *in)
{
    struct shm_header *h = hostile->seg.header;
    uint8_t what = shm_u8(in);

    if (what & 1) {
        shm_write_set(in, &h->present, what >> 1);
    } else if (what & 2) {
        atomic_fetch_add(&h->fdb_gen, shm_word(in));
    } else {
        /* the table's place of one of the addresses that are used here */
        uint8_t mac[6];
        uint64_t key;

        shm_mac(mac, what >> 2);
        key = (uint64_t)mac[0] << 40 | mac[5];
        for (unsigned i = 0; i < SHM_FDB; i++) {
            if (atomic_load(&h->fdb[i]) >> SHM_ID_BITS == key) {
                atomic_store(&h->fdb[i], key << SHM_ID_BITS | (uint16_t)shm_word(in));
            }
        }
        atomic_fetch_add(&h->fdb_gen, 1);
    }
}

/* Writes an entry in the ring to the honest member, and its slot. */
static void shm_write_entry(struct input *in)
{
    struct shm_region *region = honest->seg.region[honest->seg.id];
    const struct shm_source *source = &honest->source[hostile->seg.id];
    uint8_t wrong = shm_u8(in);
    uint32_t pos = source->pos + (wrong >> 6);
    uint64_t stamp = shm_stamp(source->gen, pos);
    unsigned index = wrong & 32 ? shm_u16(in) : shm_u16(in) % SHM_CHUNK;
    struct shm_slot *slot = &region->slot[index % SHM_SLOTS];

    atomic_store(&slot->owner, wrong & 1 ? shm_word(in) : hostile->tag);
    slot->stamp = wrong & 2 ? shm_word(in) : stamp;
    slot->len = wrong & 4 ? (uint16_t)shm_word(in) : 64;
    slot->flags = shm_u8(in);
    atomic_store(&region->ring[hostile->seg.id].entry[pos % SHM_RING],
                 wrong & 8 ? shm_word(in) : stamp << 16 | index);
    if (!(wrong & 16)) {
        shm_set_add(&honest->self->senders, hostile->seg.id);
    }
}

static void shm_write_ends(struct input *in)
{
    struct shm_region *mine = hostile->seg.region[hostile->seg.id];
    struct shm_ends *ends = &mine->ends[honest->seg.id];
    uint8_t what = shm_u8(in);
    uint64_t value = what & 2 ? shm_word(in) : shm_tail(honest->seg.gen, (uint32_t)shm_word(in));

    atomic_store(what & 1 ? &ends->tail : &ends->settled, value);
    for (unsigned i = 0; what & 4 && i < SHM_SLOTS; i++) {
        if (shm_segment_has_chunk(&hostile->seg, hostile->seg.id, i / SHM_CHUNK)) {
            atomic_store(&mine->slot[i].owner, what & 8 ? hostile->tag : 0);
        }
    }
}

/* Writes where the honest member reads next; log.c's struct record. */
static void shm_write_record(struct input *in)
{
    struct shm_member *self = hostile->self;
    uint8_t *bytes = hostile->seg.header->log[hostile->seg.id].bytes;
    uint8_t wrong = shm_u8(in);
    uint64_t pos = honest->source[hostile->seg.id].log.pos, count = shm_word(in);
    uint16_t len = wrong & 1 ? (uint16_t)shm_word(in) : 64, flags = shm_u8(in);
    size_t at = pos % SHM_LOG;

    if (at + 16 <= SHM_LOG) {
        memcpy(bytes + at, &count, sizeof(count));
        memcpy(bytes + at + 8, &len, sizeof(len));
        memcpy(bytes + at + 10, &flags, sizeof(flags));
    }
    atomic_store(&self->log_head, wrong & 2 ? shm_word(in) : pos + 128);
    if (wrong & 4) {
        atomic_store(&self->log_tail, wrong & 8 ? shm_word(in) : pos);
    }
    shm_set_add(&honest->self->floods, hostile->seg.id);
}

/* -- a run ------------------------------------------------------------------------------------- */

static void shm_step(struct input *in)
{
    uint8_t what = shm_u8(in);
    struct shm_port *who = what & 0x80 ? hostile : honest;

    switch (what % 13) {
    case 0:
    case 1:
        shm_poll_port(who, 1 + (what >> 4 & 7) * 16);
        break;
    case 2:
        shm_send(who, what >> 4, shm_u16(in) % (WIRE_FRAME_MAX + 2), 0);
        break;
    case 3:
        for (unsigned i = 0; i < 600; i++) {
            shm_send(who, what >> 4, 64, what & 0x40 ? WIRE_MORE : 0);
        }
        break;
    case 4:
        shm_ask(who, what >> 4);
        break;
    case 5:
        wire_fd_event(&who->port);
        break;
    case 6:
        wire_set_busy(&who->port, what & 0x10);
        wire_tx_flush(&who->port);
        break;
    case 7:
        who->recheck_at_ms[SHM_RECHECK_BLOCKED] = who->recheck_at_ms[SHM_RECHECK_OWNERS] = 0;
        break;
    case 8:
        shm_write_member(in, &hostile->seg.header->member[shm_id(in)]);
        break;
    case 9:
        shm_write_header(in);
        break;
    case 10:
        shm_write_entry(in);
        break;
    case 11:
        shm_write_ends(in);
        break;
    default:
        shm_write_record(in);
    }
}

static char dir[] = "/dev/shm/hcasim-fuzz-XXXXXX";

static void shm_remove_dir(void)
{
    g_rmdir(dir);
}

static struct shm_port *shm_join(const char *uri)
{
    struct wire_port *port = wire_open(uri, NULL);
    struct shm_port *sp = shm_port_of(port);

    require(port != NULL);
    wire_set_client(port, &client, sp);
    /* The clock decides nothing: the input says what is due. */
    sp->recheck_at_ms[SHM_RECHECK_BLOCKED] = sp->recheck_at_ms[SHM_RECHECK_OWNERS] = UINT64_MAX;
    return sp;
}

static unsigned shm_files_left(void)
{
    GDir *d = g_dir_open(dir, 0, NULL);
    unsigned n = 0;

    while (g_dir_read_name(d)) {
        n++;
    }
    g_dir_close(d);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char *uri;
    struct input in = {data, size};

    if (!uri) {
        require(g_mkdtemp(dir) != NULL);
        atexit(shm_remove_dir);
        uri = g_strdup_printf("shm:%s/seg", dir);
    }
    honest = shm_join(uri);
    hostile = shm_join(uri);
    shm_send(honest, 3, 64, 0); /* each knows the other's address, and has a ring to it */
    shm_send(hostile, 3, 64, 0);
    shm_poll_port(honest, 64);
    shm_poll_port(hostile, 64);
    shm_send(honest, 1, 64, 0);
    shm_send(hostile, 0, 64, 0);
    shm_poll_port(honest, 64);
    shm_poll_port(hostile, 64);
    for (unsigned n = 0; n < MAX_STEPS && in.size; n++) {
        shm_step(&in);
    }
    wire_close(&honest->port);
    wire_close(&hostile->port);
    require(!shm_files_left());
    return 0;
}
