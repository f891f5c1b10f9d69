/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two hosts with connections, whose operations access memory (mirror.h) through keys that change
 * while operations are under way. A kind has a reference that says for each key and address which
 * byte it leads to, or that the access must fail.
 *
 * Each side of an operation has views: the positions of its bytes, as the reference finds them. A
 * side has more than one view while a key that it uses is being changed: the device may use the
 * key as it was or as it will be, for each byte. After the change the side has only the new view,
 * and the bytes that the operation has left behind must not change any more.
 *
 * The rules: an operation succeeds if all its bytes lead somewhere. If a byte must fail, so does
 * the operation, with the status of that side. If this changed meanwhile, both may happen. An
 * operation that ends in error has written each byte or has not. It ends its connection: both QPs
 * are drained, and when all is quiet they are connected again.
 *
 * A datagram is repeated until its receive completes. There is one receive at a time, and no next
 * datagram before all copies of the last one are gone.
 */
#ifndef HCASIM_TESTS_ACCESS_H
#define HCASIM_TESTS_ACCESS_H

#include "tests/sim/fabric/mirror.h"
#include "tests/sim/fabric/service.h"

#define ACCESS_CONNS    2
#define ACCESS_WINDOW   16u
#define ACCESS_SGES     3u
#define ACCESS_VIEWS    4u
#define ACCESS_DATAGRAM 1024u  /* the most bytes of a datagram */
#define ACCESS_LONG     16384u /* the most bytes of an operation */

enum access_what {
    ACCESS_WRITE,
    ACCESS_READ,
    ACCESS_SEND,
    ACCESS_FETCH_ADD,
    ACCESS_CTRL, /* a request of the kind */
};

struct access_side {
    unsigned host; /* index in job->host */
    struct access_sge {
        uint32_t key, len;
        uint64_t va;
    } sge[ACCESS_SGES];
    unsigned num_sge;
    unsigned need; /* the right that it needs, of enum ibv_access_flags; 0: local read */
    bool writes;
    uint32_t *view[ACCESS_VIEWS]; /* the newest is the last one */
    unsigned views;
    bool *leads; /* for each byte: in some view it leads somewhere */
    bool faults; /* in some view it must fail */
    bool moved;  /* a view was given up */
};

struct access_op {
    enum access_what what;
    uint32_t len, room; /* room: of the receive that a SEND takes */
    uint64_t add;
    struct access_side near, far;
    struct brought to_near, to_far;
    bool received; /* of UD */
    void *about;   /* for the kind's use */
};

struct access_end {
    struct sim_host *host;
    struct ibv_cq *cq;
    struct service via; /* the queues, unless the service is SERVICE_OWN */
    struct ibv_qp *qp;  /* requests */
    struct access_op ops[ACCESS_WINDOW];
    uint64_t posted, done, settled;   /* settled: the operations before it have no more effects */
    uint64_t receives[ACCESS_WINDOW]; /* the SENDs of the peer that the receives are for */
    uint64_t receives_posted, receives_done;
    bool broken;
    uint64_t again_ns; /* UD: then the datagram is repeated; 0: not */
    uint64_t rest_ns;  /* UD: no datagram before */
};

enum access_state {
    ACCESS_RUNS,
    ACCESS_DRAINS,
    ACCESS_IS_QUIET, /* until quiet_ns */
};

struct access_conn {
    struct access_end end[2];
    enum service_kind service;
    enum access_state state;
    uint64_t quiet_ns, ops;
    bool destroyed;
    bool troubled; /* an operation of it may fail */
    bool over;     /* a target has refused a message, and does not end by itself */
    /* At end [i]: what it requests itself [1], or its peer [0], may fail. */
    bool doubtful[2][2];
};

struct access {
    struct job *job;
    struct sim_host *host[2]; /* NULL before access_init(): those of the job */
    struct mirror mirror[2];
    struct access_conn conn[ACCESS_CONNS];
    uint64_t limit;
    unsigned window;
    bool pending[2]; /* a key of that host is being changed */
    bool polite;     /* the change must not make operations fail */

    /* Functions of the kind. */
    struct ibv_qp *(*make_qp)(struct access *a, struct sim_host *host, struct ibv_cq *cq);
    /* Draws the service of a connection. NULL: SERVICE_OWN, for which make_qp() makes the QPs. */
    enum service_kind (*draw_service)(struct access *a);
    /* Returns where the byte at va leads, and in *run how many bytes from there on, of the *run
     * that were asked for, follow each other. next: according to the keys after the change that is
     * under way. */
    uint32_t (*find)(struct access *a, unsigned host, bool next, uint32_t key, unsigned need,
                     uint64_t va, uint32_t *run);
    /* Draws a side of an operation: its sge and num_sge, for len bytes. Returns false if there is
     * nothing to draw. The side may be one that must fail. */
    bool (*draw)(struct access *a, struct access_side *side, uint32_t len);
    void (*ctrl_done)(struct access *a, struct access_op *op, enum ibv_wc_status status);
    /* Called when a connection ends. May be NULL. */
    void (*ended)(struct access *a);
};

/* For make_qp: an RC QP whose CQEs carry no data. */
struct ibv_qp *access_make_qp(struct access *a, struct sim_host *host, struct ibv_cq *cq);

/* Call after the kind's members have been set. memory: of each host, len bytes. */
void access_init(struct access *a, struct job *job, uint8_t *const memory[2], size_t len);
bool access_step(struct access *a);
bool access_is_done(const struct access *a);
void access_check(const struct access *a);
void access_free(struct access *a);

/* Returns whether an action that makes operations fail is allowed now. */
bool access_may_be_rude(struct access *a);
/* Returns a connection with room for a request of the kind at the end of that host, or NULL. */
struct access_conn *access_find_room(struct access *a, unsigned host);
/* Takes that room: returns the QP to post to, with wr_id in *id. The completion calls
 * ctrl_done(). */
struct ibv_qp *access_claim(struct access_conn *c, unsigned host, void *about, uint64_t *id);

/* From now on operations of a QP of that host may fail at that host's side: those that it has
 * requested, or those of its peer. doubt: also the operations that are posted later, until a call
 * without doubt. */
void access_may_fail(struct access *a, unsigned host, uint32_t qpn, bool requester, bool doubt);
/* Calls a function for each byte that the operations under way on such a QP may access at that
 * side.
 */
void access_each_byte(struct access *a, unsigned host, uint32_t qpn, bool requester,
                      void (*fn)(void *opaque, uint32_t at, bool writes), void *opaque);
/* Returns whether that QP of the host exists, and its connection has not ended. */
bool access_is_running(struct access *a, unsigned host, uint32_t qpn);
/* Ends the connection of a QP of that host, if it is running. */
void access_end(struct access *a, unsigned host, uint32_t qpn, bool destroy);
/* A key of that host is about to change: find() knows how. Gives the operations under way their
 * new views. Returns false, and forgets them, if an operation would then use bytes that another
 * operation uses, or (polite) fail: the change must not be made. A second change may begin while
 * one is under way if it only ends access, and is not polite; it is never refused. */
bool access_may_change(struct access *a, unsigned host, bool polite);
/* The change is complete. */
void access_has_changed(struct access *a, unsigned host);

#endif
