/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plays a case: its steps one after the other.
 *
 * Steps of the wire (play_wire.c), as packetdrill writes them: "<" arrives at the device, ">" it
 * sends. Steps of the host are verbs: objects (play_objects.c), queue pairs (play_qp.c), work and
 * completions (play_work.c). "+ 5ms" lets time pass. docs/conformance.md has the language.
 *
 * Both halves are in one process where the device is (sim.h). A foreign device has its own host:
 * the player (case.c) asks a helper there (helper.c), a step at a time (foreign.h), and both have a
 * struct play of the case.
 */
#ifndef HCASIM_TESTS_CONFORMANCE_PLAY_H
#define HCASIM_TESTS_CONFORMANCE_PLAY_H

#include "tests/conformance/clock.h"
#include "tests/conformance/host.h"
#include "tests/conformance/words.h"

struct stand;

/* A memory region; or a memory window, or a key of several pieces: these have no bytes of their
 * own. */
struct play_mr {
    const char *name;
    struct ibv_mw *mw;
    void *key;         /* of several pieces: host_direct's */
    struct ibv_mr *mr; /* NULL: another process has it, or it is gone */
    uint8_t *bytes;
    size_t len;
    unsigned seed; /* of what it held at first */
    uint64_t addr;
    uint32_t lkey, rkey;
};

struct play_srq {
    const char *name;
    struct ibv_srq *srq;
    struct ibv_cq *cq;     /* XRC's: where its receives complete */
    struct ibv_xrcd *xrcd; /* XRC's */
    uint32_t srqn;         /* XRC's */
};

/* What direct verbs make: types beside those of enum ibv_qp_type. */
enum {
    PLAY_DCI = 0x100,
    PLAY_DCT
};

struct play_qp {
    const char *name;
    struct ibv_qp *qp; /* NULL: another process has it, or it is gone */
    unsigned type;     /* enum ibv_qp_type, PLAY_DCI, PLAY_DCT */
    uint32_t qpn;
    struct ibv_cq *cq;                /* for both directions */
    struct ibv_comp_channel *channel; /* of that */
    bool shares_cq;                   /* it is another queue pair's */
    struct ibv_ah *ah;                /* to the peer; UD and DCI only */
    struct ibv_qp_attr attr;
    uint32_t peer_qpn;
    uint64_t next_id; /* of a work request */
    /* A DC session: the last one, and an initiator's first one, which it numbers itself. */
    uint32_t session, first_session;
    bool has_session;
};

enum play_end {
    PLAY_HOLDS,
    PLAY_FAILS,
    PLAY_CANNOT /* be asked of this device */
};

struct play {
    struct words words; /* of the step under way; its opaque is the struct play */
    struct play_clock *clock;
    struct stand *stand;         /* NULL: the steps of the wire are not here */
    struct host *host;           /* NULL: nor are those of the host */
    GPtrArray *mrs, *srqs, *qps; /* by age */
    uint32_t rq_psn, sq_psn;     /* where the device's QPs begin */
    uint64_t mark_ns;            /* when what the last step was about happened */
    GString *trace;              /* packets so far */
    unsigned scale_bits;         /* real time: ack timeouts are longer by so much */
    /* What ends a case before its last step; does not return. */
    void (*ends)(struct play *p, enum play_end how, const char *why);
};

typedef void play_step_fn(struct play *p);
struct play_step {
    const char *name; /* NULL ends a table */
    play_step_fn *run;
};
extern const struct play_step play_host_steps[], play_wire_steps[];

/* No objects yet. */
void play_init(struct play *p, struct play_clock *clock);
void play_clear(struct play *p);
/* Runs a line if its first word is in the table; else nothing of it is taken. */
bool play_step(struct play *p, const struct play_step *table, const char *line);
/* Nothing is left of what the case did not expect. */
void play_end_wire(struct play *p);
/* The same; then all that was made is gone. */
void play_end_host(struct play *p);

/* -- for the steps ----------------------------------------------------------------------------- */

uint64_t play_now(const struct play *p);
void play_settle(struct play *p);
/* This device cannot be asked for that, because of an error unless err is 0: the case ends. */
void play_cannot(struct play *p, const char *what, int err) G_GNUC_NORETURN;
/* The object that a word names; there must be one. */
struct play_mr *play_mr(struct play *p, const char *name);
struct play_srq *play_srq(struct play *p, const char *name);
/* The one of that name, or NULL. */
struct play_srq *play_srq_if(struct play *p, const char *name);
struct play_qp *play_qp(struct play *p, const char *name);
/* The one of qp=NAME, or the first. */
struct play_qp *play_qp_meant(struct play *p);

/* 100, m, m+16: a number, or an address in a region. */
uint64_t play_address(struct play *p, const char *word);
/* 100, m, m+1: a number, or a region's key and so much more. */
uint32_t play_key(struct play *p, const char *word, bool remote);
/* m, m+16, m:8, m+16:8: bytes of a region. */
struct play_range {
    struct play_mr *mr;
    size_t offset, len;
};
struct play_range play_range(struct play *p, const char *word);
/* 16, 16@4: bytes of the pattern that a peer sends, from its first one on; 16@m+4: such as a region
 * held there at first. At most WIRE_FRAME_MAX, or max bytes. Returns how many. */
size_t play_data(struct play *p, const char *word, uint8_t *bytes, size_t max);
uint8_t play_pattern(unsigned seed, size_t offset);

/* errno=NAME says what the call must have failed with; without it, it must have succeeded. The
 * second one is for who takes that word before. */
void play_result(struct play *p, int err);
void play_result_is(struct play *p, const char *error, int err);
/* after=4ms..17ms says when this must have happened, counted from what was before; then it is what
 * was before. In real time the bounds are wide. */
void play_happened(struct play *p, uint64_t ns);
/* A time that passes; in real time, no longer than need be. */
uint64_t play_span(struct play *p, const char *word);
/* from its first byte, with these rights, as words have it: rr,rw,ra,lw,mw, all, none */
unsigned play_rights(struct play *p, const char *key, unsigned usual);

void play_end_work(struct play *p);
void play_free_windows(struct play *p);
void play_free_objects(struct play *p);
void play_free_qps(struct play *p);

play_step_fn play_new_mr, play_dereg, play_new_srq, play_memory, play_new_mw, play_new_key;
play_step_fn play_new_qp, play_modify, play_query, play_destroy, play_resize;
play_step_fn play_recv, play_send, play_wc, play_event, play_arm, play_notice;

#endif
