/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The filter that causes faults (wire/fault/port.h).
 *
 * Unless rules delay frames, the client builds its frame where the inner port has credit for it,
 * and only frames that are reordered or duplicated are copied to the store. Otherwise the client
 * builds it in the filter's own buffer, and each frame goes to the store. A frame that was received
 * is copied to a buffer before rules are asked, because its sender may still be able to change it.
 *
 * Who wakes whom: the timer is set for the first stored frame that is not due, and for the next
 * change of the link. Frames that are due and had no credit are tried again when the inner port
 * reports credit, or when another frame is due. A client that found the store full gets tx_ready
 * when the store is half empty.
 */
#include "wire/fault/port.h"
#include "wire/cancel.h"
#include "wire/capture.h"
#include "wire/fault/rule.h"
#include "wire/filter.h"
#include "wire/open.h"
#include "wire/encap/roce.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define NEVER           UINT64_MAX
#define NS_PER_S        1000000000u
#define NS_PER_US       1000.0
#define UNTAKEN         "lost: its receiver ended before it took it"
#define UNSENT          "lost: its sender ended, and there was no credit"
#define NO_CREDIT_CLASS 0 /* the store is full; tx_ready then tells all classes */

struct fault_port {
    struct wire_filter filter;
    struct wire_fault_options options;
    struct fault_set *set;
    struct wire_fault_stats stats;
    struct fault_store out, in;
    bool down;             /* the link, by a rule */
    uint64_t link_next_ns; /* when `down` is to be looked at again */
    uint64_t timer_ns;     /* what the timer is set to; NEVER: it is not set */
    bool has_told;         /* the client knows that received frames are due, and will poll */
    bool is_blocked;       /* the client waits for room in the store */
    bool tells_room;       /* within tx_ready, for this reason */
    bool is_full;          /* the last reservation failed for this reason */
    int epoll_fd, timer_fd;
    uint8_t *building; /* the frame that the client is building, or NULL */
    bool has_note;     /* the client has given a note about it */
    struct wire_note note;
    uint8_t own[WIRE_FRAME_MAX];
    uint8_t received[WIRE_FRAME_MAX];
};

static struct fault_port *fault_port_of(struct wire_port *port)
{
    return (struct fault_port *)port;
}

/* -- the capture ------------------------------------------------------------------------------- */

static void fault_port_add_word(GString *text, const char *word)
{
    g_string_append_printf(text, "%s%s", text->len ? ", " : "", word);
}

/* What happens to a frame that passes, in words, or NULL. */
static char *fault_port_words(const struct fault_fate *fate, bool is_copy)
{
    GString *text = g_string_new(NULL);

    if (fate->corrupted) {
        g_string_append_printf(text, "corrupted: bit %u of byte %u is wrong%s", fate->bit % 8,
                               fate->bit / 8, fate->repair ? ", checksums repaired" : "");
    }
    if (is_copy) {
        fault_port_add_word(text, "duplicate");
    }
    if (fate->marked) {
        fault_port_add_word(text, "marked CE");
    }
    if (fate->delay_ns) {
        fault_port_add_word(text, "delayed");
        g_string_append_printf(text, " by %.1f us", (double)fate->delay_ns / NS_PER_US);
    }
    if (fate->reordered) {
        fault_port_add_word(text, "reordered: held back");
        g_string_append_printf(text, " by %.1f us", (double)fate->held_ns / NS_PER_US);
    }
    return g_string_free(text, !text->len);
}

/* What the capture says of a frame that passes, or NULL. */
static char *fault_port_describe(const struct fault_port *f, const struct fault_fate *fate,
                                 bool is_copy)
{
    return f->options.capture ? fault_port_words(fate, is_copy) : NULL;
}

static void fault_port_comment(const struct fault_port *f, const char *comment)
{
    if (comment) {
        wire_capture_comment(f->options.capture, comment);
    }
}

/* Why a frame is lost. */
static const char *fault_port_why(const struct fault_fate *fate, bool inbound)
{
    return inbound && fate->rule ? "lost: never received" : fate->why;
}

static void fault_port_capture_lost(const struct fault_port *f, const uint8_t *frame, size_t len,
                                    bool inbound, const char *text)
{
    if (f->options.capture) {
        wire_capture_lost(f->options.capture, frame, len, inbound, text);
    }
}

/* Tells the watcher of the rules what happens to a frame. Its bytes are those before the fault. */
static void fault_port_tell(const struct fault_port *f, const uint8_t *bytes, size_t len,
                            bool inbound, const struct fault_fate *fate, const char *what)
{
    fault_set_tell(f->set, &(struct fault_deed){.subject = FAULT_ABOUT_FRAMES,
                                                .is_lost = fate->lost,
                                                .what = what,
                                                .rule = fate->rule ? fate->rule->number : 0,
                                                .text = fate->rule ? fate->rule->text : NULL,
                                                .frame = bytes,
                                                .len = len,
                                                .inbound = inbound});
}

static void fault_port_tell_fate(const struct fault_port *f, const uint8_t *bytes, size_t len,
                                 bool inbound, const struct fault_fate *fate)
{
    g_autofree char *words = NULL;

    if (!fault_set_is_watched(f->set) || (!fate->lost && !fate->rule)) {
        return;
    }
    words = fate->lost ? g_strdup(fault_port_why(fate, inbound))
                       : fault_port_words(fate, fate->duplicated);
    fault_port_tell(f, bytes, len, inbound, fate, words);
}

/* -- the timer and the link -------------------------------------------------------------------- */

static void fault_port_set_timerfd(const struct fault_port *f, uint64_t due_ns)
{
    struct itimerspec at = {0};
    int state;

    at.it_value.tv_sec = (time_t)(due_ns / NS_PER_S);
    at.it_value.tv_nsec = (long)(due_ns % NS_PER_S);
    state = cancel_disable();
    if (timerfd_settime(f->timer_fd, TFD_TIMER_ABSTIME, &at, NULL)) {
        g_warning("the timer of delayed frames: %s", g_strerror(errno));
    }
    cancel_restore(state);
}

/* Sets the timer to what comes first. If the timer expires and nothing is due, that does no
 * harm. */
static void fault_port_set_timer(struct fault_port *f, uint64_t due_ns)
{
    due_ns = MIN(due_ns, f->link_next_ns);
    due_ns = MIN(due_ns, f->out.next_due_ns);
    due_ns = MIN(due_ns, f->has_told ? NEVER : f->in.next_due_ns);
    if (due_ns == f->timer_ns || due_ns == NEVER) {
        return;
    }
    due_ns = MAX(due_ns, 1); /* 0 would stop the timer */
    f->timer_ns = due_ns;
    if (f->options.wake_at) {
        f->options.wake_at(f->options.wake_opaque, due_ns);
    } else {
        fault_port_set_timerfd(f, due_ns);
    }
}

/* Looks whether rules take the link down now, and tells the client of a change. */
static void fault_port_follow_link(struct fault_port *f, uint64_t now_ns)
{
    struct wire_port *port = &f->filter.port;
    bool down = fault_set_link_is_down(f->set, now_ns, &f->link_next_ns);

    if (down != f->down) {
        f->down = down;
        if (port->client && port->client->link_change) {
            port->client->link_change(port->opaque);
        }
    }
}

/* The rules have changed: the timer expires soon, and the link is looked at then. */
static void fault_port_rules_changed(void *opaque)
{
    struct fault_port *f = opaque;

    f->link_next_ns = fault_set_has(f->set, FAULT_ABOUT_LINK) || f->down ? 1 : NEVER;
    fault_port_set_timer(f, NEVER);
}

/* -- frames that leave ------------------------------------------------------------------------- */

/* False: the receiver has no credit now. */
static bool fault_port_send(struct fault_port *f, const struct fault_stored *s)
{
    uint8_t *room = wire_tx_reserve_to(f->filter.inner, s->frame, s->len);

    if (!room) {
        return false;
    }
    memcpy(room, s->frame, s->len);
    fault_port_comment(f, s->comment);
    if (s->has_note) {
        wire_note(f->filter.inner, &s->note);
    }
    wire_tx_commit(f->filter.inner, s->len);
    return true;
}

/* One bit for a receiver; receivers share bits. */
static uint64_t fault_port_bit_of(const uint8_t *dmac)
{
    return 1ull << ((dmac[3] ^ dmac[4] ^ dmac[5]) & 63);
}

/* Sends the frames that are due by then, and sets the timer for the next one. */
static void fault_port_send_due(struct fault_port *f, uint64_t by_ns)
{
    uint64_t blocked = 0;
    GList *next;

    f->out.next_due_ns = NEVER;
    for (GList *link = f->out.queue.head; link; link = next) {
        const struct fault_stored *s = link->data;

        next = link->next;
        if (s->due_ns > by_ns) {
            f->out.next_due_ns = s->due_ns;
            break;
        }
        /* The frames to a receiver keep their order. */
        if (blocked & fault_port_bit_of(s->frame)) {
            continue;
        }
        if (fault_port_send(f, s)) {
            fault_store_take_out(&f->out, link);
        } else {
            blocked |= fault_port_bit_of(s->frame);
        }
    }
    fault_port_set_timer(f, NEVER);
}

/* Whether the client waits for room, and there is room. */
static bool fault_port_has_news(const struct fault_port *f)
{
    return f->is_blocked && fault_store_has_room_again(&f->out);
}

static void fault_port_tell_room(struct fault_port *f)
{
    if (fault_port_has_news(f)) {
        f->is_blocked = false;
        f->tells_room = true;
        wire_filter_client.tx_ready(f);
        f->tells_room = false;
    }
}

/* Sends what is due, and follows the link. */
static void fault_port_look(struct fault_port *f)
{
    uint64_t due = MIN(f->out.next_due_ns, f->link_next_ns);
    uint64_t now = due == NEVER ? 0 : fault_set_now_ns(f->set);

    if (f->link_next_ns <= now) {
        fault_port_follow_link(f, now);
    }
    if (f->out.next_due_ns <= now && !f->building) {
        fault_port_send_due(f, now);
    }
    /* If the client is building a frame, what is due now waits for the timer. */
    fault_port_set_timer(f, NEVER);
    fault_port_tell_room(f);
}

/* -- the client's side ------------------------------------------------------------------------- */

static uint8_t *fault_port_reserve(struct fault_port *f, const uint8_t *dmac, size_t len)
{
    struct wire_port *inner = f->filter.inner;

    f->building = NULL;
    f->has_note = false;
    f->is_full = fault_store_is_full(&f->out);
    if (f->is_full || len > WIRE_FRAME_MAX) {
        f->is_blocked |= f->is_full;
        return NULL;
    }
    if (fault_set_delays(f->set, false) || f->out.queue.head) {
        f->building = f->own;
    } else {
        f->building = dmac ? wire_tx_reserve_to(inner, dmac, len) : wire_tx_reserve(inner, len);
    }
    return f->building;
}

static uint8_t *fault_port_tx_reserve(struct wire_port *port, size_t len)
{
    return fault_port_reserve(fault_port_of(port), NULL, len);
}

static uint8_t *fault_port_tx_reserve_to(struct wire_port *port, const uint8_t dmac[6], size_t len)
{
    return fault_port_reserve(fault_port_of(port), dmac, len);
}

static unsigned fault_port_tx_credit_class(struct wire_port *port)
{
    const struct fault_port *f = fault_port_of(port);

    return f->is_full ? NO_CREDIT_CLASS : wire_tx_credit_class(f->filter.inner);
}

static uint64_t fault_port_tx_credits(struct wire_port *port)
{
    const struct fault_port *f = fault_port_of(port);

    return f->tells_room ? ~0ull : wire_tx_credits(f->filter.inner);
}

/* Gives the inner port what the client says of its frame. */
static void fault_port_pass_note(const struct fault_port *f)
{
    if (f->has_note) {
        wire_note(f->filter.inner, &f->note);
    }
}

/* Gives the inner port what the client has built there, or len 0. The inner port tells its receiver
 * at once, because it does not see which of the client's frames is the last one. */
static void fault_port_pass(const struct fault_port *f, bool is_own, size_t len)
{
    if (!is_own) {
        if (len) {
            fault_port_pass_note(f);
        }
        wire_tx_commit(f->filter.inner, len);
    }
}

static void fault_port_count(struct fault_port *f, const struct fault_fate *fate)
{
    if (fate->spared && !fate->lost) {
        return;
    }
    f->stats.frames++;
    f->stats.lost += fate->lost;
    if (!fate->lost) {
        f->stats.duplicated += fate->duplicated;
        f->stats.reordered += fate->reordered;
        f->stats.corrupted += fate->corrupted;
        f->stats.delayed += fate->delayed;
        f->stats.marked += fate->marked;
    }
}

/* Asks the rules about a frame, and does what they say to its bytes. */
static struct fault_fate fault_port_decide(struct fault_port *f, uint8_t *bytes, size_t len,
                                           bool inbound, uint64_t now)
{
    struct fault_frame frame;
    struct fault_fate fate;

    fault_frame_read(&frame, bytes, len, inbound);
    fate = fault_set_decide(f->set, &frame, now);
    if (fault_set_has(f->set, FAULT_ABOUT_LINK)) {
        fault_port_follow_link(f, now);
    }
    if (f->down && !fate.lost) {
        fate.lost = true;
        fate.why = "lost: the link is down";
        fate.rule = NULL;
    }
    fault_port_count(f, &fate);
    fault_port_tell_fate(f, bytes, len, inbound, &fate);
    if (!fate.lost && fate.marked) {
        fault_mark(&frame);
    }
    if (!fate.lost && fate.corrupted) {
        fault_flip(&frame, fate.bit, fate.repair);
    }
    return fate;
}

/* When a frame is due. */
static uint64_t fault_port_due(struct fault_store *store, const struct fault_fate *fate,
                               uint64_t now)
{
    uint64_t due = MAX(store->last_due_ns, MAX(now, fate->leave_ns) + fate->delay_ns);

    if (fate->spared) {
        return now;
    }
    if (fate->reordered) {
        return due + fate->held_ns;
    }
    store->last_due_ns = due;
    return due;
}

/* Sends the client's frame, or keeps it, and a duplicate. */
static void fault_port_send_or_keep(struct fault_port *f, const uint8_t *frame, size_t len,
                                    const struct fault_fate *fate, uint64_t now)
{
    bool is_own = frame == f->own, is_kept = is_own || fate->reordered || fate->delayed;
    uint64_t due = fault_port_due(&f->out, fate, now);
    const struct wire_note *note = f->has_note ? &f->note : NULL;

    if (is_kept) {
        fault_store_put(&f->out, frame, len, fault_port_describe(f, fate, false), note, due);
    }
    if (fate->duplicated) {
        fault_store_put(&f->out, frame, len, fault_port_describe(f, fate, true), note, due);
    }
    if (is_kept) {
        fault_port_pass(f, is_own, 0);
    } else {
        g_autofree char *comment = fault_port_describe(f, fate, false);

        fault_port_comment(f, comment);
        fault_port_pass(f, is_own, len);
    }
    if (f->out.next_due_ns <= now) {
        fault_port_send_due(f, now);
    } else {
        fault_port_set_timer(f, NEVER);
    }
    if (fault_port_has_news(f)) {
        fault_port_set_timer(f, now); /* the client is told later, and not within its commit */
    }
}

static void fault_port_tx_commit(struct wire_port *port, size_t len, unsigned flags)
{
    struct fault_port *f = fault_port_of(port);
    uint8_t *frame = f->building;
    bool is_own = frame == f->own;
    struct fault_fate fate;
    uint64_t now;

    f->building = NULL;
    if (!frame || len < ETH_BYTES || len > WIRE_FRAME_MAX) {
        fault_port_pass(f, is_own || !frame, 0);
        return;
    }
    if (!fault_set_concerns(f->set, false) && !is_own) {
        fault_port_pass(f, false, len);
        return;
    }
    now = fault_set_now_ns(f->set);
    fate = fault_port_decide(f, frame, len, false, now);
    if (fate.lost) {
        fault_port_pass_note(f);
        fault_port_capture_lost(f, frame, len, false, fate.why);
        fault_port_pass(f, is_own, 0);
        fault_port_set_timer(f, NEVER);
        return;
    }
    fault_port_send_or_keep(f, frame, len, &fate, now);
}

/* The frame may leave later, with its note. */
static void fault_port_note(struct wire_port *port, const struct wire_note *note)
{
    struct fault_port *f = fault_port_of(port);

    f->has_note = true;
    f->note = *note;
}

static bool fault_port_link_up(struct wire_port *port)
{
    const struct fault_port *f = fault_port_of(port);

    return !f->down && wire_link_up(f->filter.inner);
}

/* -- frames that come in ----------------------------------------------------------------------- */

/* Hands a received frame to the client. comment: of the capture, or NULL. */
static void fault_port_pass_on(struct fault_port *f, const uint8_t *bytes, size_t len,
                               unsigned flags, const char *comment)
{
    if (f->options.capture) {
        wire_capture_arrived(f->options.capture, bytes, len, flags, comment);
    }
    wire_filter_client.rx(f, bytes, len, flags);
}

/* The comment of a received frame: what a simulation says of it, and then what happens here. NULL:
 * there is none. */
static char *fault_port_comment_in(const struct fault_port *f, const char *before,
                                   const struct fault_fate *fate, bool is_copy)
{
    g_autofree char *words = fault_port_describe(f, fate, is_copy);

    if (!before || !words) {
        return g_strdup(before ? before : words);
    }
    return g_strdup_printf("%s, %s", before, words);
}

/* Hands out up to max of the received frames that are due. */
static unsigned fault_port_deliver_due(struct fault_port *f, unsigned max)
{
    uint64_t now = fault_set_now_ns(f->set);
    unsigned n = 0;

    while (f->in.queue.head && n < max) {
        GList *link = f->in.queue.head;
        const struct fault_stored *s = link->data;

        if (s->due_ns > now) {
            break;
        }
        fault_port_pass_on(f, s->frame, s->len, 0, s->comment);
        fault_store_take_out(&f->in, link);
        n++;
    }
    f->in.next_due_ns =
        f->in.queue.head ? ((const struct fault_stored *)f->in.queue.head->data)->due_ns : NEVER;
    fault_port_set_timer(f, NEVER);
    return n;
}

/* Passes the received frame on, or keeps it, and a duplicate. */
static void fault_port_take_in(struct fault_port *f, size_t len, const struct fault_fate *fate,
                               uint64_t now)
{
    uint64_t due = fault_port_due(&f->in, fate, now);
    g_autofree char *before =
        f->options.capture ? wire_capture_take_comment(f->options.capture) : NULL;
    g_autofree char *comment = fault_port_comment_in(f, before, fate, false);

    if (due > now || f->in.queue.head) {
        fault_store_put(&f->in, f->received, len, g_steal_pointer(&comment), NULL, due);
    } else {
        fault_port_pass_on(f, f->received, len, 0, comment);
    }
    if (fate->duplicated) {
        fault_store_put(&f->in, f->received, len, fault_port_comment_in(f, before, fate, true),
                        NULL, due);
    }
}

static void fault_port_rx(void *opaque, const uint8_t *bytes, size_t len, unsigned flags)
{
    struct fault_port *f = opaque;
    struct fault_fate fate;
    uint64_t now;

    if ((!fault_set_concerns(f->set, true) && !f->in.queue.head) || len < ETH_BYTES ||
        len > WIRE_FRAME_MAX) {
        fault_port_pass_on(f, bytes, len, flags, NULL);
        return;
    }
    memcpy(f->received, bytes, len);
    if (flags & WIRE_NO_ICRC) {
        roce_fill_icrc(f->received, len); /* so that a wrong bit is one */
    }
    now = fault_set_now_ns(f->set);
    fate = fault_port_decide(f, f->received, len, true, now);
    if (fate.lost) {
        fault_port_capture_lost(f, f->received, len, true, fault_port_why(&fate, true));
        return;
    }
    fault_port_take_in(f, len, &fate, now);
    fault_port_set_timer(f, NEVER);
}

static unsigned fault_port_poll(struct wire_port *port, unsigned max)
{
    struct fault_port *f = fault_port_of(port);
    unsigned n;

    f->has_told = false;
    fault_port_look(f);
    n = f->in.queue.head ? fault_port_deliver_due(f, max) : 0;
    if (n < max && !fault_store_is_full(&f->in)) {
        n += wire_poll(f->filter.inner, max - n);
    }
    return n;
}

/* -- waking ------------------------------------------------------------------------------------ */

static int fault_port_fd(struct wire_port *port)
{
    const struct fault_port *f = fault_port_of(port);

    return f->options.wake_at ? wire_fd(f->filter.inner) : f->epoll_fd;
}

static bool fault_port_timer_expired(struct fault_port *f)
{
    uint64_t expired;

    if (f->options.wake_at) {
        return f->timer_ns <= fault_set_now_ns(f->set);
    }
    return read(f->timer_fd, &expired, sizeof(expired)) == (ssize_t)sizeof(expired);
}

static void fault_port_fd_event(struct wire_port *port)
{
    struct fault_port *f = fault_port_of(port);

    if (fault_port_timer_expired(f)) {
        f->timer_ns = NEVER;
        f->has_told = true;
        fault_port_look(f);
        wire_filter_client.rx_ready(f); /* a poll arms the inner port for credit */
    }
    wire_fd_event(f->filter.inner);
}

static void fault_port_inner_tx_ready(void *opaque)
{
    struct fault_port *f = opaque;

    if (f->out.queue.head) {
        f->out.next_due_ns = 0; /* what is due may have credit now */
    }
    fault_port_look(f);
    wire_filter_client.tx_ready(f);
}

void wire_fault_settle(struct wire_port *port)
{
    struct fault_port *f = fault_port_of(port);

    f->building = NULL;
    fault_port_send_due(f, NEVER);
    while (f->out.queue.head) {
        const struct fault_stored *s = f->out.queue.head->data;

        f->stats.unsent++;
        if (s->has_note) {
            wire_note(f->filter.inner, &s->note);
        }
        fault_port_capture_lost(f, s->frame, s->len, false, UNSENT);
        fault_port_tell(f, s->frame, s->len, false, &(struct fault_fate){.lost = true}, UNSENT);
        fault_store_take_out(&f->out, f->out.queue.head);
    }
    while (f->in.queue.head) {
        const struct fault_stored *s = f->in.queue.head->data;

        f->stats.unsent++;
        fault_port_capture_lost(f, s->frame, s->len, true, UNTAKEN);
        fault_store_take_out(&f->in, f->in.queue.head);
    }
    f->in.next_due_ns = NEVER;
}

static void fault_port_close(struct wire_port *port)
{
    struct fault_port *f = fault_port_of(port);

    wire_fault_settle(port);
    fault_set_unlisten(f->set, f);
    if (f->options.owns_set) {
        fault_set_free(f->set);
    }
    if (f->options.wake_at) {
        f->options.wake_at(f->options.wake_opaque, NEVER);
    } else {
        close(f->epoll_fd);
        close(f->timer_fd);
    }
    wire_filter_ops.close(port);
    g_free(f);
}

struct fault_set *wire_fault_rules(struct wire_port *port)
{
    return port->ops->poll == fault_port_poll ? fault_port_of(port)->set : NULL;
}

void wire_fault_get_stats(const struct wire_port *port, struct wire_fault_stats *stats)
{
    *stats = ((const struct fault_port *)port)->stats;
}

/* -- making it --------------------------------------------------------------------------------- */

static bool fault_port_watch(int epoll_fd, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};

    return !epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

/* One descriptor that is readable if the inner port's is, or if the timer has expired. */
static bool fault_port_open_descriptors(struct fault_port *f, struct wire_port *inner)
{
    f->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    f->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    return f->epoll_fd >= 0 && f->timer_fd >= 0 && fault_port_watch(f->epoll_fd, f->timer_fd) &&
           (wire_fd(inner) < 0 || fault_port_watch(f->epoll_fd, wire_fd(inner)));
}

static void fault_port_replace(struct wire_filter_tables *tables)
{
    tables->ops.tx_reserve = fault_port_tx_reserve;
    tables->ops.tx_reserve_to = fault_port_tx_reserve_to;
    tables->ops.tx_commit = fault_port_tx_commit;
    tables->ops.tx_credit_class = fault_port_tx_credit_class;
    tables->ops.tx_credits = fault_port_tx_credits;
    tables->ops.note = fault_port_note;
    tables->ops.link_up = fault_port_link_up;
    tables->ops.poll = fault_port_poll;
    tables->ops.fd = fault_port_fd;
    tables->ops.fd_event = fault_port_fd_event;
    tables->ops.close = fault_port_close;
    tables->inside.rx = fault_port_rx;
    tables->inside.tx_ready = fault_port_inner_tx_ready;
}

struct wire_port *wire_fault_new(struct wire_port *inner, struct fault_set *set,
                                 const struct wire_fault_options *options, GError **err)
{
    static struct wire_filter_tables tables;
    struct fault_port *f = g_new0(struct fault_port, 1);

    f->set = set;
    f->options = options ? *options : (struct wire_fault_options){0};
    f->timer_ns = f->link_next_ns = f->out.next_due_ns = f->in.next_due_ns = NEVER;
    if (!f->options.wake_at && !fault_port_open_descriptors(f, inner)) {
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
    wire_filter_make_tables(&tables, fault_port_replace);
    wire_filter_init(&f->filter, inner, &tables.ops, &tables.inside);
    if (f->options.capture) {
        wire_capture_leave_received(f->options.capture);
    }
    fault_set_listen(set, fault_port_rules_changed, f);
    fault_port_rules_changed(f);
    return &f->filter.port;
}
