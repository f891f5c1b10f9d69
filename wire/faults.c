/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A filter that causes faults (wire/faults.h).
 *
 * Without a delay, the client builds its frame where the inner port has credit for it, and only
 * frames that are reordered or duplicated are copied to the store. With a delay, the client builds
 * it in the filter's own buffer, and each frame goes to the store.
 *
 * Who wakes whom: the timer is set for the first frame of the store that is not due. Frames that
 * are due and had no credit are tried again when the inner port reports credit, or when another
 * frame is due. A client that found the store full gets tx_ready when the store is half empty.
 */
#include "wire/faults.h"
#include "wire/cancel.h"
#include "wire/capture.h"
#include "wire/chance.h"
#include "wire/filter.h"
#include "wire/open.h"
#include "wire/encap/eth.h"
#include "wire/encap/neigh.h"
#include "wire/encap/roce.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define STORE_BYTES     (8u << 20)
#define REORDER_NS      100000u /* how long a frame is held back, at most */
#define NEVER           UINT64_MAX
#define NS_PER_S        1000000000u
#define NS_PER_US       1000.0
#define NO_CREDIT_CLASS 0 /* the store is full; tx_ready then tells all classes */

/* Where the ICRC covers all bits: behind the BTH's first reserved byte (IBTA 9.2.7, A17.3.3). */
#define BTH_COVERED 5

/* What happens to a frame. */
struct fate {
    bool spared; /* has no faults at all */
    bool lost, duplicated, reordered, corrupted;
    uint32_t bit;      /* of the frame, if it is corrupted */
    uint64_t delay_ns; /* as configured; with jitter */
    uint64_t held_ns;  /* added to the delay, if it is reordered */
};

struct stored {
    uint64_t due_ns;
    struct fate fate;
    bool is_copy; /* the second frame of a duplication */
    bool has_note;
    struct wire_note note; /* what the client says of the frame */
    uint32_t len;
    uint8_t frame[];
};

/* The streams of decisions. */
enum stream {
    STREAM_LOSS,
    STREAM_DUPLICATION,
    STREAM_REORDER,
    STREAM_CORRUPTION,
    STREAM_JITTER,
    NUM_STREAMS
};

static const char *const stream_names[NUM_STREAMS] = {"loss", "duplication", "reorder",
                                                      "corruption", "jitter"};

struct faults {
    struct wire_filter filter;
    struct wire_faults_config config;
    struct wire_port *capture;
    struct chance chance[NUM_STREAMS];
    struct wire_faults_stats stats;
    GQueue store; /* struct stored, by due_ns */
    size_t store_bytes;
    uint64_t last_due_ns; /* of a frame that was not reordered */
    uint64_t next_due_ns; /* of the first frame that has not been due yet; NEVER: there is none */
    uint64_t timer_ns;    /* what the timer is set to; NEVER: it is not set */
    bool is_blocked;      /* the client waits for room in the store */
    bool tells_room;      /* within tx_ready, for this reason */
    bool is_full;         /* the last reservation failed for this reason */
    int epoll_fd, timer_fd;
    uint8_t *building; /* the frame that the client is building, or NULL */
    bool has_note;     /* the client has said why it sends that frame */
    struct wire_note note;
    uint8_t own[WIRE_FRAME_MAX];
};

static struct faults *faults_of(struct wire_port *port)
{
    return (struct faults *)port;
}

static uint64_t faults_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static bool faults_delay(const struct faults *f)
{
    return f->config.delay_ns || f->config.jitter_ns;
}

/* -- decisions --------------------------------------------------------------------------------- */

/* The part of a RoCE frame in which the ICRC detects any wrong bit. False: it is not RoCE. */
static bool faults_find_covered(const uint8_t *frame, size_t len, uint32_t *from, uint32_t *to)
{
    struct eth_info info;

    if (!eth_parse(frame, len, &info) || info.malformed || info.l4 != ETH_L4_UDP ||
        info.dport != ROCE_UDP_DPORT || info.payload_off + BTH_BYTES + ICRC_BYTES > info.ip_end) {
        return false;
    }
    *from = info.payload_off + BTH_COVERED;
    *to = info.ip_end;
    return true;
}

static struct fate faults_decide(struct faults *f, const uint8_t *frame, size_t len)
{
    const struct wire_faults_config *c = &f->config;
    struct fate fate = {
        .lost = chance_happens(&f->chance[STREAM_LOSS], c->loss),
        .duplicated = chance_happens(&f->chance[STREAM_DUPLICATION], c->duplication),
        .reordered = chance_happens(&f->chance[STREAM_REORDER], c->reorder),
        .corrupted = chance_happens(&f->chance[STREAM_CORRUPTION], c->corruption),
        .delay_ns = c->delay_ns,
    };
    uint32_t from, to;

    if (c->jitter_ns) {
        fate.delay_ns += chance_below(&f->chance[STREAM_JITTER], c->jitter_ns + 1);
    }
    if (fate.reordered) {
        fate.held_ns = chance_from(&f->chance[STREAM_REORDER], 1, REORDER_NS);
    }
    if (fate.corrupted && !faults_find_covered(frame, len, &from, &to)) {
        fate.lost = true;
    } else if (fate.corrupted) {
        fate.bit = (uint32_t)chance_from(&f->chance[STREAM_CORRUPTION], 8ull * from, 8ull * to - 1);
    }
    return fate;
}

static void faults_count(struct faults *f, const struct fate *fate)
{
    f->stats.frames++;
    f->stats.lost += fate->lost;
    if (!fate->lost) {
        f->stats.duplicated += fate->duplicated;
        f->stats.reordered += fate->reordered;
        f->stats.corrupted += fate->corrupted;
        f->stats.delayed += faults_delay(f);
    }
}

/* -- the capture ------------------------------------------------------------------------------- */

static void faults_add_word(GString *text, const char *word)
{
    g_string_append_printf(text, "%s%s", text->len ? ", " : "", word);
}

/* Tells the capture the fate of the next frame. */
static void faults_comment(const struct faults *f, const struct fate *fate, bool is_copy)
{
    g_autoptr(GString) text = g_string_new(NULL);

    if (!f->capture) {
        return;
    }
    if (fate->corrupted) {
        g_string_append_printf(text, "corrupted: bit %u of byte %u is wrong", fate->bit % 8,
                               fate->bit / 8);
    }
    if (is_copy) {
        faults_add_word(text, "duplicate");
    }
    if (fate->delay_ns) {
        faults_add_word(text, "delayed");
        g_string_append_printf(text, " by %.1f us", (double)fate->delay_ns / NS_PER_US);
    }
    if (fate->reordered) {
        faults_add_word(text, "reordered: held back");
        g_string_append_printf(text, " by %.1f us", (double)fate->held_ns / NS_PER_US);
    }
    if (text->len) {
        wire_capture_comment(f->capture, text->str);
    }
}

static void faults_capture_lost(const struct faults *f, const uint8_t *frame, size_t len,
                                const char *text)
{
    if (f->capture) {
        wire_capture_lost(f->capture, frame, len, false, text);
    }
}

/* -- the store --------------------------------------------------------------------------------- */

static bool faults_is_full(const struct faults *f)
{
    return f->store_bytes + 2 * WIRE_FRAME_MAX > STORE_BYTES; /* a frame and its duplicate */
}

static void faults_store(struct faults *f, const uint8_t *frame, size_t len,
                         const struct fate *fate, bool is_copy, uint64_t due_ns)
{
    struct stored *s = g_malloc(sizeof(*s) + len);
    GList *before = f->store.tail;

    *s = (struct stored){
        .due_ns = due_ns,
        .fate = *fate,
        .is_copy = is_copy,
        .has_note = f->has_note,
        .note = f->note,
        .len = (uint32_t)len,
    };
    memcpy(s->frame, frame, len);
    while (before && ((const struct stored *)before->data)->due_ns > due_ns) {
        before = before->prev;
    }
    if (before) {
        g_queue_insert_after(&f->store, before, s);
    } else {
        g_queue_push_head(&f->store, s);
    }
    f->store_bytes += sizeof(*s) + len;
    f->next_due_ns = MIN(f->next_due_ns, due_ns);
}

static void faults_unstore(struct faults *f, GList *link)
{
    f->store_bytes -= sizeof(struct stored) + ((const struct stored *)link->data)->len;
    g_free(link->data);
    g_queue_delete_link(&f->store, link);
}

/* False: the receiver has no credit now. */
static bool faults_send(struct faults *f, const struct stored *s)
{
    uint8_t *room = wire_tx_reserve_to(f->filter.inner, s->frame, s->len);

    if (!room) {
        return false;
    }
    memcpy(room, s->frame, s->len);
    if (s->has_note) {
        wire_note(f->filter.inner, &s->note);
    }
    faults_comment(f, &s->fate, s->is_copy);
    wire_tx_commit(f->filter.inner, s->len);
    return true;
}

/* One bit for a receiver; receivers share bits. */
static uint64_t faults_bit_of(const uint8_t *dmac)
{
    return 1ull << ((dmac[3] ^ dmac[4] ^ dmac[5]) & 63);
}

static void faults_set_timer(struct faults *f, uint64_t due_ns)
{
    struct itimerspec at = {0};
    int state;

    if (due_ns == f->timer_ns || due_ns == NEVER) {
        return; /* if the timer expires and nothing is due, that does no harm */
    }
    f->timer_ns = due_ns;
    at.it_value.tv_sec = (time_t)(due_ns / NS_PER_S);
    at.it_value.tv_nsec = (long)(due_ns % NS_PER_S);
    state = cancel_disable();
    if (timerfd_settime(f->timer_fd, TFD_TIMER_ABSTIME, &at, NULL)) {
        g_warning("the timer of delayed frames: %s", g_strerror(errno));
    }
    cancel_restore(state);
}

/* Sends the frames that are due by then, and sets the timer for the next one. */
static void faults_send_due(struct faults *f, uint64_t by_ns)
{
    uint64_t blocked = 0;
    GList *next;

    f->next_due_ns = NEVER;
    for (GList *link = f->store.head; link; link = next) {
        const struct stored *s = link->data;

        next = link->next;
        if (s->due_ns > by_ns) {
            f->next_due_ns = s->due_ns;
            faults_set_timer(f, s->due_ns);
            break;
        }
        /* The frames to a receiver keep their order. */
        if (blocked & faults_bit_of(s->frame)) {
            continue;
        }
        if (faults_send(f, s)) {
            faults_unstore(f, link);
        } else {
            blocked |= faults_bit_of(s->frame);
        }
    }
}

/* Whether the client waits for room, and there is room. */
static bool faults_has_news(const struct faults *f)
{
    return f->is_blocked && f->store_bytes <= STORE_BYTES / 2;
}

static void faults_tell_room(struct faults *f)
{
    if (faults_has_news(f)) {
        f->is_blocked = false;
        f->tells_room = true;
        wire_filter_client.tx_ready(f);
        f->tells_room = false;
    }
}

/* Sends what is due. */
static void faults_look(struct faults *f)
{
    uint64_t now = f->next_due_ns == NEVER ? 0 : faults_now_ns();

    if (f->next_due_ns <= now && !f->building) {
        faults_send_due(f, now);
    }
    /* If the client is building a frame, what is due now waits for the timer. 0 would stop it. */
    faults_set_timer(f, MAX(f->next_due_ns, 1));
    faults_tell_room(f);
}

/* -- the port ---------------------------------------------------------------------------------- */

static uint8_t *faults_reserve(struct faults *f, const uint8_t *dmac, size_t len)
{
    struct wire_port *inner = f->filter.inner;

    f->building = NULL;
    f->has_note = false;
    f->is_full = faults_is_full(f);
    if (f->is_full || len > WIRE_FRAME_MAX) {
        f->is_blocked |= f->is_full;
        return NULL;
    }
    if (faults_delay(f)) {
        f->building = f->own;
    } else {
        f->building = dmac ? wire_tx_reserve_to(inner, dmac, len) : wire_tx_reserve(inner, len);
    }
    return f->building;
}

static uint8_t *faults_tx_reserve(struct wire_port *port, size_t len)
{
    return faults_reserve(faults_of(port), NULL, len);
}

static uint8_t *faults_tx_reserve_to(struct wire_port *port, const uint8_t dmac[6], size_t len)
{
    return faults_reserve(faults_of(port), dmac, len);
}

static unsigned faults_tx_credit_class(struct wire_port *port)
{
    const struct faults *f = faults_of(port);

    return f->is_full ? NO_CREDIT_CLASS : wire_tx_credit_class(f->filter.inner);
}

static uint64_t faults_tx_credits(struct wire_port *port)
{
    const struct faults *f = faults_of(port);

    return f->tells_room ? ~0ull : wire_tx_credits(f->filter.inner);
}

/* Gives the inner port what the client has built, or len 0. The inner port tells its receiver at
 * once, because it does not see which of the client's frames is the last one. */
static void faults_pass(const struct faults *f, size_t len)
{
    if (!faults_delay(f)) {
        if (len && f->has_note) {
            wire_note(f->filter.inner, &f->note);
        }
        wire_tx_commit(f->filter.inner, len);
    }
}

/* Sends the client's frame, or keeps it, and a duplicate. */
static void faults_commit(struct faults *f, uint8_t *frame, size_t len, const struct fate *fate)
{
    uint64_t now = faults_now_ns();
    uint64_t due = fate->spared ? now : MAX(f->last_due_ns, now + fate->delay_ns);
    bool is_kept = faults_delay(f) || fate->reordered;

    if (fate->corrupted) {
        frame[fate->bit / 8] ^= (uint8_t)(1u << fate->bit % 8);
    }
    if (fate->reordered) {
        due += fate->held_ns;
    } else if (!fate->spared) {
        f->last_due_ns = due;
    }
    if (is_kept) {
        faults_store(f, frame, len, fate, false, due);
    }
    if (fate->duplicated) {
        faults_store(f, frame, len, fate, true, due);
    }
    if (is_kept) {
        faults_pass(f, 0);
    } else {
        faults_comment(f, fate, false);
        faults_pass(f, len);
    }
    if (f->next_due_ns <= now) {
        faults_send_due(f, now);
    } else {
        faults_set_timer(f, f->next_due_ns);
    }
    if (faults_has_news(f)) {
        faults_set_timer(f, now); /* the client is told later, and not within its commit */
    }
}

/* The frame may leave later, with its note. */
static void faults_note(struct wire_port *port, const struct wire_note *note)
{
    struct faults *f = faults_of(port);

    f->note = *note;
    f->has_note = true;
}

static void faults_tx_commit(struct wire_port *port, size_t len, unsigned flags)
{
    struct faults *f = faults_of(port);
    uint8_t *frame = f->building;
    struct fate fate = {0};

    f->building = NULL;
    if (!frame || len < ETH_BYTES || len > WIRE_FRAME_MAX) {
        faults_pass(f, 0);
        return;
    }
    if (neigh_is_one(frame, len)) {
        fate.spared = true;
    } else {
        fate = faults_decide(f, frame, len);
        faults_count(f, &fate);
    }
    if (fate.lost) {
        if (f->has_note) {
            wire_note(f->filter.inner, &f->note);
        }
        faults_capture_lost(f, frame, len,
                            fate.corrupted ? "lost: corrupted, and its FCS would be wrong"
                                           : "lost: never sent");
        faults_pass(f, 0);
        return;
    }
    faults_commit(f, frame, len, &fate);
}

static unsigned faults_poll(struct wire_port *port, unsigned max)
{
    struct faults *f = faults_of(port);

    faults_look(f);
    return wire_poll(f->filter.inner, max);
}

static int faults_fd(struct wire_port *port)
{
    return faults_of(port)->epoll_fd;
}

static void faults_fd_event(struct wire_port *port)
{
    struct faults *f = faults_of(port);
    uint64_t expired;

    if (read(f->timer_fd, &expired, sizeof(expired)) == (ssize_t)sizeof(expired)) {
        f->timer_ns = NEVER;
        faults_look(f);
        wire_filter_client.rx_ready(f); /* a poll arms the inner port for credit */
    }
    wire_fd_event(f->filter.inner);
}

static void faults_inner_tx_ready(void *opaque)
{
    struct faults *f = opaque;

    f->next_due_ns = 0; /* what is due may have credit now */
    faults_look(f);
    wire_filter_client.tx_ready(f);
}

void wire_faults_settle(struct wire_port *port)
{
    struct faults *f = faults_of(port);

    f->building = NULL;
    faults_send_due(f, NEVER);
    while (f->store.head) {
        const struct stored *s = f->store.head->data;

        f->stats.unsent++;
        if (s->has_note) {
            wire_note(f->filter.inner, &s->note);
        }
        faults_capture_lost(f, s->frame, s->len, "lost: its sender ended, and there was no credit");
        faults_unstore(f, f->store.head);
    }
}

static void faults_close(struct wire_port *port)
{
    struct faults *f = faults_of(port);

    wire_faults_settle(port);
    close(f->epoll_fd);
    close(f->timer_fd);
    wire_filter_ops.close(port);
    g_free(f);
}

void wire_faults_get_stats(const struct wire_port *port, struct wire_faults_stats *stats)
{
    *stats = ((const struct faults *)port)->stats;
}

/* -- making it --------------------------------------------------------------------------------- */

bool wire_faults_any(const struct wire_faults_config *c)
{
    return c->loss || c->duplication || c->reorder || c->corruption || c->delay_ns || c->jitter_ns;
}

static bool faults_watch(int epoll_fd, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};

    return !epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

/* One descriptor that is readable if the inner port's is, or if the timer has expired. */
static bool faults_open_descriptors(struct faults *f, struct wire_port *inner)
{
    f->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    f->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    return f->epoll_fd >= 0 && f->timer_fd >= 0 && faults_watch(f->epoll_fd, f->timer_fd) &&
           (wire_fd(inner) < 0 || faults_watch(f->epoll_fd, wire_fd(inner)));
}

static void faults_replace(struct wire_filter_tables *tables)
{
    tables->ops.tx_reserve = faults_tx_reserve;
    tables->ops.tx_reserve_to = faults_tx_reserve_to;
    tables->ops.tx_commit = faults_tx_commit;
    tables->ops.note = faults_note;
    tables->ops.tx_credit_class = faults_tx_credit_class;
    tables->ops.tx_credits = faults_tx_credits;
    tables->ops.poll = faults_poll;
    tables->ops.fd = faults_fd;
    tables->ops.fd_event = faults_fd_event;
    tables->ops.close = faults_close;
    tables->inside.tx_ready = faults_inner_tx_ready;
}

struct wire_port *wire_faults_new(struct wire_port *inner, const struct wire_faults_config *config,
                                  struct wire_port *capture, GError **err)
{
    static struct wire_filter_tables tables;
    struct faults *f = g_new0(struct faults, 1);

    f->config = *config;
    f->capture = capture;
    f->timer_ns = f->next_due_ns = NEVER;
    g_queue_init(&f->store);
    for (unsigned i = 0; i < NUM_STREAMS; i++) {
        f->chance[i] = chance_of(config->seed, stream_names[i], config->stream);
    }
    if (!faults_open_descriptors(f, inner)) {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO, "no descriptors for delayed frames: %s",
                    g_strerror(errno));
        if (f->epoll_fd >= 0) {
            close(f->epoll_fd);
        }
        if (f->timer_fd >= 0) {
            close(f->timer_fd);
        }
        g_free(f);
        return NULL;
    }
    wire_filter_make_tables(&tables, faults_replace);
    wire_filter_init(&f->filter, inner, &tables.ops, &tables.inside);
    return &f->filter.port;
}
