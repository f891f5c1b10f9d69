/* SPDX-License-Identifier: BSD-2-Clause */
/* The structure of a port of slirp.h, for the two files that implement it. */
#ifndef HCASIM_WIRE_SLIRP_SLIRP_PRIV_H
#define HCASIM_WIRE_SLIRP_SLIRP_PRIV_H

#include "wire/slirp/library.h"
#include "wire/slirp/options.h"
#include "wire/slirp/slirp.h"

#define SLIRP_MTU         1500
#define SLIRP_FRAME_BYTES (14 + SLIRP_MTU)

struct slirp_frame {
    size_t len;
    uint8_t bytes[SLIRP_FRAME_BYTES];
};

struct slirp_port {
    struct wire_port port;
    const struct slirp_library *library;
    struct slirp *slirp;
    ssize_t (*frame_out)(const void *frame, size_t len, void *opaque);
    bool is_unsettled; /* frames went in since the sockets were looked at */
    int state;         /* of cancellation, within the lock */
    int epoll_fd, timer_fd;
    GHashTable *sockets; /* struct slirp_socket by descriptor */
    GPtrArray *asked;    /* those that libslirp asks about, in its order */
    GPtrArray *timers;   /* struct slirp_timer */
    unsigned put, get;   /* free-running */
    struct wire_stats stats;
    uint8_t tx[WIRE_FRAME_MAX];
    struct slirp_frame frames[SLIRP_FRAMES];
};

/* The callbacks for libslirp. */
extern const struct slirp_calls slirp_port_calls;

/* Around every call of libslirp (library.h). */
void slirp_lock(struct slirp_port *s);
void slirp_unlock(struct slirp_port *s);

/* False with *err. slirp_end_sockets() may be called in either case, without the lock. */
bool slirp_begin_sockets(struct slirp_port *s, GError **err);
void slirp_end_sockets(struct slirp_port *s);

/* Under the lock. slirp_watch() watches the sockets and times that libslirp names now; slirp_work()
 * lets libslirp do what is due, and then does the same. */
void slirp_watch(struct slirp_port *s);
void slirp_work(struct slirp_port *s);

/* Whether there are as many sockets as there may be. */
bool slirp_is_full(const struct slirp_port *s);

int64_t slirp_now_ns(void *opaque);

#endif
