/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of a port on a shared-memory segment among themselves: shm.c (waiting and waking, the
 * port's operations), tx.c (addresses, sending), rx.c (receiving), ends.c (who has ended).
 */
#ifndef HCASIM_WIRE_SHM_PORT_H
#define HCASIM_WIRE_SHM_PORT_H

#include "wire/shm/log.h"
#include "wire/shm/segment.h"

#define SHM_RECHECK_MS 50

enum {
    SHM_ETH_MIN = 14,
    SHM_NOBODY = SHM_MEMBERS,
    SHM_CACHED_MACS = 64,
    SHM_WAKE_FDS = 64,      /* FIFOs that are kept open */
    SHM_PREFETCH_LINES = 3, /* of the next slot: enough for headers and a short message */
};

/* What this member knows of another one, to which it sends. Private memory: nobody else can change
 * it. */
struct shm_peer {
    struct shm_region *region;  /* NULL: there was no memory yet for a ring there */
    uint32_t tx_head, tx_tail;  /* positions published, and known to be consumed; they wrap */
    unsigned spares;            /* in spare */
    unsigned place;             /* in shm_port.blocked, if blocked */
    bool blocked;               /* no credit at the last try; try again after a wake-up only */
    uint16_t slot_of[SHM_RING]; /* by position */
    uint16_t spare[SHM_SLOTS];  /* slots this member used before, probably free again */
};

/* What it knows of another one, from which it receives. */
struct shm_source {
    uint32_t gen, pos;  /* whose ring it is, and where in it the next frame will be */
    uint16_t idle;      /* looks at the ring in vain */
    uint16_t last_len;  /* of the frame that was taken last: the next one is as long most often */
    bool active;        /* the ring is looked at */
    bool unsettled;     /* this turn has consumed something */
    uint32_t owed_from; /* tx_head to it when that began */
    struct shm_log_reader log;
};

/* A member's FIFO. */
struct shm_wake {
    int fd; /* -1: none */
    unsigned id;
    uint32_t gen;
};

/* What is looked at with system calls, and so every SHM_RECHECK_MS at most. */
enum shm_recheck {
    SHM_RECHECK_BLOCKED, /* whether receivers that give no credit still live */
    SHM_RECHECK_OWNERS,  /* whether those who hold slots here still live */
    SHM_RECHECKS,
};

struct shm_cached_mac {
    uint64_t mac;
    uint64_t fdb_gen; /* the entry counts while the segment's is the same */
    unsigned member;
};

enum shm_reserved {
    SHM_RESERVED_NONE,
    SHM_RESERVED_SLOT,
    SHM_RESERVED_STAGE,
};

struct shm_port {
    struct wire_port port;
    struct shm_segment seg;
    struct shm_member *self;
    uint64_t tag;
    int epoll_fd, timer_fd;
    int ends_fd; /* readable when somebody closes the segment's file; -1: nobody wants to know */
    bool ended;  /* somebody did, and the client has not been told */
    bool timer_armed, busy;
    bool owes;         /* the owner has not answered all it took: nothing of that is settled yet */
    bool credits_due;  /* slots here are free since senders who wait were last given credit */
    bool credit_short; /* somebody has waited for some since the last look for dead owners */
    unsigned credit_class;    /* of the credit that the last reservation waits for that failed */
    uint64_t classes_awaited; /* in which one has failed since the client was told of them */
    uint64_t classes_back;    /* in which there is credit again */
    unsigned num_blocked;     /* how many peers are */
    unsigned num_active, num_unsettled; /* how many sources are */
    uint64_t recheck_at_ms[SHM_RECHECKS];
    unsigned next_turn, next_waiter;

    enum shm_reserved reserved;
    unsigned to_peer, to_slot; /* with SHM_RESERVED_SLOT */
    uint64_t to_mac;
    bool wake_due; /* wake_id got frames, and may sleep */
    unsigned wake_id;
    size_t stashed;       /* length of the frame that waits in stage, or 0 */
    unsigned stash_peer;  /* for whose credit it waits */
    unsigned stage_flags; /* enum wire_frame_flags of the frame in stage */

    uint64_t learned_mac, learned_gen; /* the last source address seen, when it was this port's */
    struct shm_cached_mac cached[SHM_CACHED_MACS];
    struct shm_wake wake[SHM_WAKE_FDS]; /* by id */
    struct shm_log_writer log;
    struct wire_stats stats;
    struct shm_peer *peer[SHM_MEMBERS]; /* made when first sent to */
    struct shm_source source[SHM_MEMBERS];
    uint16_t blocked[SHM_MEMBERS], active[SHM_MEMBERS], unsettled[SHM_MEMBERS]; /* ids, compact */
    uint8_t stage[WIRE_FRAME_MAX];                                              /* to send */
    uint8_t copied[WIRE_FRAME_MAX];                                             /* from a log */
};

static inline struct shm_port *shm_port_of(struct wire_port *port)
{
    return (struct shm_port *)port;
}

static inline struct shm_member *shm_member_at(struct shm_port *sp, unsigned id)
{
    return &sp->seg.header->member[id];
}

/* shm.c */

/* Wakes a member that sleeps. What it is to see has been stored before; for the second one, before
 * a fence. */
void shm_wake(struct shm_port *sp, unsigned id);
void shm_wake_fenced(struct shm_port *sp, unsigned id);
/* Gives credit to up to most of those who wait for it in id's region. Whoever is left finds
 * out by himself, after SHM_RECHECK_MS. */
void shm_wake_waiters(struct shm_port *sp, unsigned id, unsigned most);
/* Likewise for the slots that this member has freed (`credits_due`), once for all frames of a poll.
 * fenced: there has been a fence since. */
void shm_give_credits(struct shm_port *sp, bool fenced);
/* Has shm_tx_check_blocked() called after a while, whatever others do. */
void shm_arm_timer(struct shm_port *sp);
bool shm_recheck_due(struct shm_port *sp, enum shm_recheck what);

/* tx.c: operations of the port, and what brings blocked sending on. */

uint8_t *shm_tx_reserve(struct wire_port *port, size_t len);
uint8_t *shm_tx_reserve_to(struct wire_port *port, const uint8_t dmac[6], size_t len);
unsigned shm_tx_credit_class(struct wire_port *port);
uint64_t shm_tx_credits(struct wire_port *port);
void shm_tx_flush(struct wire_port *port);
void shm_tx_commit(struct wire_port *port, size_t len, unsigned flags);
bool shm_tx_is_paused(struct wire_port *port, const uint8_t dmac[6], struct wire_pause *pause);
bool shm_tx_knows(struct wire_port *port, const uint8_t mac[6]);
/* The member to which frames to an address go, or SHM_NOBODY: to all. */
unsigned shm_tx_find_member(struct shm_port *sp, const uint8_t mac[6]);
/* Gives back what is reserved. */
void shm_tx_cancel(struct shm_port *sp);
/* Tries again what is blocked if a receiver said so, or after SHM_RECHECK_MS. */
void shm_tx_check_blocked(struct shm_port *sp);

/* ends.c: operations of the port. */

bool shm_ends_watch(struct wire_port *port);
uint64_t shm_ends_host_at(struct wire_port *port, const uint8_t mac[6]);
bool shm_ends_has_ended(struct wire_port *port, uint64_t host);
/* The descriptor may be readable. */
void shm_ends_look(struct shm_port *sp);
/* All that was published before a look has been handed out. */
void shm_ends_tell(struct shm_port *sp);

/* rx.c */

/* Looks at the ring of whoever may have sent something before this port was opened, and at no log.
 */
void shm_rx_begin(struct shm_port *sp);
/* Takes up to max frames and delivers those that are some; returns how many were taken. */
unsigned shm_rx_drain(struct shm_port *sp, unsigned max);
/* The turn is over: tells the senders of what it consumed. */
void shm_rx_settle(struct shm_port *sp);
/* Finds the ring of a sender that has only just said that there is something in it. */
void shm_rx_meet(struct shm_port *sp, unsigned id);
/* Whether a frame of this sender waits. */
bool shm_rx_waits_from(struct shm_port *sp, unsigned id);
/* Whether a ring has something new. */
bool shm_rx_waits(struct shm_port *sp);
/* Frees the slots that dead senders hold and have not published. Returns whether there were any. */
bool shm_rx_reap(struct shm_port *sp);

#endif
