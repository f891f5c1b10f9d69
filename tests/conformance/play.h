/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plays a case: runs its steps one after the other.
 *
 * The steps of the wire (play_wire.c) are written as in packetdrill: "<" arrives at the device, ">"
 * leaves it. The steps of the host are verbs: objects (play_objects.c), queue pairs (play_qp.c),
 * work and completions (play_work.c). "+ 5ms" lets time pass. docs/howto/conformance.md has the
 * language.
 *
 * If the device is in this process, both halves are, too (sim.h). A foreign device has its own
 * host: the player (case.c) sends the host's steps to a helper there (helper.c), one at a time
 * (foreign.h), and both have a struct play of the case.
 */
#ifndef HCASIM_TESTS_CONFORMANCE_PLAY_H
#define HCASIM_TESTS_CONFORMANCE_PLAY_H

#include "tests/conformance/clock.h"
#include "tests/conformance/host.h"
#include "tests/conformance/words.h"

struct stand;

/* A memory region, or a memory window, a key of several pieces or a null key; the last three have
 * no bytes of their own. */
struct play_mr {
    const char *name;
    struct ibv_mw *mw;
    void *key;         /* a key of several pieces: the handle of host_direct */
    bool has_sig;      /* it has block signatures */
    struct ibv_dm *dm; /* the region is of device memory; bytes has a copy of it */
    struct ibv_mr *mr; /* NULL: another process has it, or it is destroyed */
    uint8_t *bytes;
    size_t len;
    unsigned seed; /* the seed of its initial content */
    uint64_t addr;
    uint32_t lkey, rkey;
};

struct play_srq {
    const char *name;
    struct ibv_srq *srq;
    struct ibv_cq *cq;     /* of an XRC SRQ: the CQ of its receives */
    struct ibv_xrcd *xrcd; /* of an XRC SRQ */
    uint32_t srqn;         /* of an XRC SRQ */
};

/* QP types that direct verbs make, in addition to those of enum ibv_qp_type. */
enum {
    PLAY_DCI = 0x100,
    PLAY_DCT
};

struct play_qp {
    const char *name;
    struct ibv_qp *qp; /* NULL: another process has it, or it is destroyed */
    unsigned type;     /* enum ibv_qp_type, PLAY_DCI, PLAY_DCT */
    uint32_t qpn;
    struct ibv_cq *cq;                /* CQ of both directions */
    struct ibv_comp_channel *channel; /* channel of that CQ */
    bool shares_cq;                   /* the CQ belongs to another queue pair */
    struct ibv_ah *ah;                /* to the peer; UD and DCI only */
    struct ibv_qp_attr attr;
    uint32_t peer_qpn;
    uint64_t next_id; /* of the next work request */
    /* The last DC session, and an initiator's first session, because an initiator numbers its
     * sessions itself. */
    uint32_t session, first_session;
    bool has_session;
};

enum play_end {
    PLAY_HOLDS,
    PLAY_FAILS,
    PLAY_CANNOT, /* this device cannot do what the step asks for */
    PLAY_MISTAKE /* the step is wrong */
};

struct play {
    struct words words; /* words of the current step; its opaque is the struct play */
    struct play_clock *clock;
    struct stand *stand;         /* NULL: another process plays the steps of the wire */
    struct host *host;           /* NULL: another process plays the steps of the host */
    GPtrArray *mrs, *srqs, *qps; /* oldest first */
    uint32_t rq_psn, sq_psn;     /* first PSNs of the device's QPs */
    uint64_t mark_ns;            /* when the event of the last step happened */
    GString *trace;              /* packets so far */
    unsigned scale_bits;         /* in real time ack timeouts are longer by so many bits */
    /* Ends a case before its last step; does not return. */
    void (*ends)(struct play *p, enum play_end how, const char *why);
};

typedef void play_step_fn(struct play *p);
struct play_step {
    const char *name; /* NULL ends a table */
    play_step_fn *run;
};
extern const struct play_step play_host_steps[], play_wire_steps[];

/* Begins with no objects. */
void play_init(struct play *p, struct play_clock *clock);
void play_clear(struct play *p);
/* Returns the step that the first word of a line names, or NULL. */
const struct play_step *play_find_step(const struct play_step *table, const char *line);
/* Runs a line if its first word is in the table. Otherwise it consumes nothing of the line. */
bool play_step(struct play *p, const struct play_step *table, const char *line);
/* Fails if the device has sent a packet that the case did not expect. */
void play_end_wire(struct play *p);
/* Fails if there is a completion or event that the case did not expect. Then destroys all
 * objects. */
void play_end_host(struct play *p);

/* -- for the steps ----------------------------------------------------------------------------- */

uint64_t play_now(const struct play *p);
void play_settle(struct play *p);
/* Ends the case: this device does not support the request. err is the errno, or 0. */
void play_cannot(struct play *p, const char *what, int err) G_GNUC_NORETURN;
/* Returns the object of that name. If there is none, or it was destroyed, the case fails. */
struct play_mr *play_mr(struct play *p, const char *name);
struct play_srq *play_srq(struct play *p, const char *name);
struct play_qp *play_live_qp(struct play *p, const char *name);
/* The same for what remains of a QP: its CQ, its numbers. */
struct play_qp *play_qp(struct play *p, const char *name);
/* Returns the object of that name, or NULL. */
struct play_srq *play_srq_if(struct play *p, const char *name);
/* Returns the QP of qp=NAME, or the first QP. */
struct play_qp *play_qp_meant(struct play *p);

/* 100, m, m+16: a number, or an address in a region. */
uint64_t play_address(struct play *p, const char *word);
/* 100, m, m+1: a number, or a region's key plus an offset. */
uint32_t play_key(struct play *p, const char *word, bool remote);
/* m, m+16, m:8, m+16:8: bytes of a region. */
struct play_range {
    struct play_mr *mr;
    size_t offset, len;
};
struct play_range play_range(struct play *p, const char *word);
/* x00ff: these bytes. x00ff,16: one part after the other. 16, 16@4: bytes of the pattern that a
 * peer sends, from its first byte or that offset on. 16@m+4: the bytes that the region held there
 * at first. At most WIRE_FRAME_MAX, or max bytes. Returns the length. */
size_t play_data(struct play *p, const char *word, uint8_t *bytes, size_t max);
/* seed PLAY_ZEROS: zeros */
#define PLAY_ZEROS UINT_MAX
uint8_t play_pattern(unsigned seed, size_t offset);

/* Checks the result of a call. With errno=NAME it must have failed with that errno; without it, it
 * must have succeeded. The second function is for callers that took the word before the call. */
void play_result(struct play *p, int err);
void play_result_is(struct play *p, const char *error, int err);
/* after=4ms..17ms checks when this event happened, counted from the previous event. Then this event
 * becomes the previous one. In real time the bounds are wide. */
void play_happened(struct play *p, uint64_t ns);
/* Returns a span of time; in real time it is no longer than necessary. */
uint64_t play_span(struct play *p, const char *word);
/* Returns the rights of the word key=LIST: rr,rw,ra,lw,mw, all, none. */
unsigned play_rights(struct play *p, const char *key, unsigned usual);

void play_end_work(struct play *p);
void play_free_windows(struct play *p);
void play_free_objects(struct play *p);
void play_free_qps(struct play *p);

play_step_fn play_new_mr, play_dereg, play_new_srq, play_memory, play_new_mw, play_new_key;
play_step_fn play_new_null, play_check;
play_step_fn play_new_qp, play_modify, play_query, play_destroy, play_resize;
play_step_fn play_recv, play_send, play_wc, play_event, play_arm, play_notice;

#endif
