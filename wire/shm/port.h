/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the parts of a port on a shared-memory segment share: shm.c (waiting and waking, the port's
 * operations), tx.c (addresses, sending), rx.c (receiving), ends.c (which members have ended).
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

/* The state that this member keeps about a member to which it sends. It is private memory: no
 * other process can change it. */
struct shm_peer {
    struct shm_region *region;  /* NULL: no memory yet for a ring in that region */
    uint32_t tx_head, tx_tail;  /* positions published, and positions known to be consumed; they
                                 * wrap */
    unsigned spares;            /* number of entries in spare */
    unsigned place;             /* index in shm_port.blocked, if blocked */
    bool blocked;               /* no credit at the last try; tried again after a wake-up only */
    uint16_t slot_of[SHM_RING]; /* the slot of each position */
    uint16_t spare[SHM_SLOTS];  /* slots this member used before, probably free again */
};

/* The state that this member keeps about a member from which it receives. */
struct shm_source {
    uint32_t gen, pos;  /* the generation of the ring's sender, and the position of the next
                         * frame */
    uint16_t idle;      /* times that the ring was found empty in a row */
    uint16_t last_len;  /* length of the frame taken last; the next is most often as long */
    bool active;        /* this member visits the ring */
    bool unsettled;     /* frames consumed here are not settled yet */
    uint32_t owed_from; /* tx_head towards that member when `unsettled` began */
    struct shm_log_reader log;
};

/* A descriptor of a member's FIFO. */
struct shm_wake {
    int fd; /* -1: none */
    unsigned id;
    uint32_t gen;
};

/* Checks that need system calls and are therefore made every SHM_RECHECK_MS at most. */
enum shm_recheck {
    SHM_RECHECK_BLOCKED, /* whether receivers that give no credit are still alive */
    SHM_RECHECK_OWNERS,  /* whether the senders that hold slots here are still alive */
    SHM_RECHECKS,
};

struct shm_cached_mac {
    uint64_t mac;
    uint64_t fdb_gen; /* the entry is valid while the segment's fdb_gen has this value */
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
    int ends_fd; /* readable when a process closes the segment's file; -1: not watched */
    bool ended;  /* a process has closed it, and the client has not been told */
    bool timer_armed, busy;
    bool owes;             /* the owner has not answered all that it took: none of that is settled
                            * yet */
    bool credits_due;      /* slots here were freed since waiting senders were last given credit */
    bool credit_short;     /* a sender has waited for credit since the last check for dead owners */
    unsigned credit_class; /* class of the credit that the last failed reservation waits for */
    uint64_t classes_awaited; /* classes with a failed reservation since the client was last told */
    uint64_t classes_back;    /* classes in which there is credit again */
    unsigned num_blocked;     /* number of blocked peers */
    unsigned num_active, num_unsettled; /* number of such sources */
    uint64_t recheck_at_ms[SHM_RECHECKS];
    unsigned next_turn, next_waiter;

    enum shm_reserved reserved;
    unsigned to_peer, to_slot; /* if reserved is SHM_RESERVED_SLOT */
    uint64_t to_mac;
    bool wake_due; /* wake_id got frames and may sleep */
    unsigned wake_id;
    size_t stashed;       /* length of the frame that waits in stage, or 0 */
    unsigned stash_peer;  /* the receiver whose credit it waits for */
    unsigned stage_flags; /* enum wire_frame_flags of the frame in stage */

    uint64_t learned_mac, learned_gen; /* the last source address seen, if this port owned it */
    struct shm_cached_mac cached[SHM_CACHED_MACS];
    struct shm_wake wake[SHM_WAKE_FDS]; /* indexed by id % SHM_WAKE_FDS */
    struct shm_log_writer log;
    struct wire_stats stats;
    struct shm_peer *peer[SHM_MEMBERS]; /* made at the first frame to the member */
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

/* Wakes a member that sleeps. The caller has stored what the member is to see. shm_wake_fenced()
 * also needs a full fence after these stores; shm_wake() makes one. */
void shm_wake(struct shm_port *sp, unsigned id);
void shm_wake_fenced(struct shm_port *sp, unsigned id);
/* Gives credit to up to `most` of the senders that wait for it in id's region. A sender that is
 * left over tries again by itself, after SHM_RECHECK_MS. */
void shm_wake_waiters(struct shm_port *sp, unsigned id, unsigned most);
/* Gives credit for the slots that this member has freed (`credits_due`), once for all frames of a
 * poll. fenced: there has been a fence since the slots were freed. */
void shm_give_credits(struct shm_port *sp, bool fenced);
/* Arms the timer, so that shm_tx_check_blocked() is called after SHM_RECHECK_MS, whatever other
 * members do. */
void shm_arm_timer(struct shm_port *sp);
bool shm_recheck_due(struct shm_port *sp, enum shm_recheck what);

/* tx.c: operations of the port, and retries of blocked sending. */

uint8_t *shm_tx_reserve(struct wire_port *port, size_t len);
uint8_t *shm_tx_reserve_to(struct wire_port *port, const uint8_t dmac[6], size_t len);
unsigned shm_tx_credit_class(struct wire_port *port);
uint64_t shm_tx_credits(struct wire_port *port);
void shm_tx_flush(struct wire_port *port);
void shm_tx_commit(struct wire_port *port, size_t len, unsigned flags);
bool shm_tx_is_paused(struct wire_port *port, const uint8_t dmac[6], struct wire_pause *pause);
bool shm_tx_knows(struct wire_port *port, const uint8_t mac[6]);
/* The member that frames to an address go to. SHM_NOBODY: they go to all. */
unsigned shm_tx_find_member(struct shm_port *sp, const uint8_t mac[6]);
/* Gives back the reserved slot. */
void shm_tx_cancel(struct shm_port *sp);
/* Tries again to send what is blocked, if a receiver has given credit, or after SHM_RECHECK_MS. */
void shm_tx_check_blocked(struct shm_port *sp);

/* ends.c: operations of the port. */

bool shm_ends_watch(struct wire_port *port);
uint64_t shm_ends_host_at(struct wire_port *port, const uint8_t mac[6]);
bool shm_ends_has_ended(struct wire_port *port, uint64_t host);
/* Reads what the watch of the segment's file reports: the descriptor may be readable. */
void shm_ends_look(struct shm_port *sp);
/* Tells the client that a host may have ended. To be called when all frames that were published
 * before shm_ends_look() have been handed out. */
void shm_ends_tell(struct shm_port *sp);

/* rx.c */

/* Begins to visit the rings of all members that may have sent something before this port was
 * opened. Skips what is in the logs. */
void shm_rx_begin(struct shm_port *sp);
/* Takes up to max frames and delivers the valid ones. Returns how many were taken. */
unsigned shm_rx_drain(struct shm_port *sp, unsigned max);
/* The turn has ended: tells the senders that what it consumed is settled. */
void shm_rx_settle(struct shm_port *sp);
/* Begins to visit the ring of a sender that has just announced its first frames. */
void shm_rx_meet(struct shm_port *sp, unsigned id);
/* Whether a frame of this sender waits. */
bool shm_rx_waits_from(struct shm_port *sp, unsigned id);
/* Whether a ring or a log has something new. */
bool shm_rx_waits(struct shm_port *sp);
/* Frees the slots that dead senders hold and have not published. Returns whether there were any. */
bool shm_rx_reap(struct shm_port *sp);

#endif
