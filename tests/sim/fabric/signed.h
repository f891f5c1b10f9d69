/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A round of transfers between memories of two hosts, through keys with block signatures on one
 * side or on both. The formats, the data and the damage are drawn; dif.h says which bytes must
 * arrive, and which error each key must have.
 */
#ifndef HCASIM_TESTS_SIGNED_H
#define HCASIM_TESTS_SIGNED_H

#include "tests/sim/fabric/dif.h"
#include "tests/sim/fabric/sim.h"

#define SIGNED_PARTS    4u /* of a key's memory */
#define SIGNED_MESSAGES 3u /* of a round */
#define SIGNED_DATA     16640u
#define SIGNED_MEMORY   17472u /* with signatures, and unused bytes between the parts */

/* One host's part in a round. */
struct signed_side {
    struct sim_host *host;
    struct span span;
    uint8_t *old, *want; /* the memory before and after the round */
    struct mlx5dv_mkey *mkey;
    bool has_key;  /* the round uses the key, and else plain memory */
    bool is_asked; /* the configuration is posted */
    bool is_ready; /* the key is configured */
    bool is_gone;  /* the key was destroyed: old has the memory of that moment */
    struct dif_format mem, wire;
    uint8_t check, copy;
    bool names_copy; /* the copy mask is given, and not derived */
    struct {
        uint32_t at, len;
    } part[SIGNED_PARTS];
    unsigned parts;
    bool interleaved;
    uint32_t image; /* bytes of memory */
    struct dif_error error;
    bool on_wire; /* the error is in the wire domain */
};

struct signed_round {
    bool runs;      /* false: it is free */
    bool is_posted; /* its messages are posted */
    bool reads;     /* from another host: a late duplicate of the request reads the key again */
    enum ibv_wr_opcode opcode;
    unsigned from; /* the end that requests */
    struct signed_side side[2];
    uint32_t data, wire; /* bytes */
    unsigned messages, done;
    bool received;    /* of a SEND */
    uint64_t rest_ns; /* not used before */
};

/* Makes memory and key. signed_make_key() makes only the key. */
void signed_init(struct job *job, struct signed_side *side, struct sim_host *host);
void signed_make_key(struct job *job, struct signed_side *side);
void signed_free(struct job *job, struct signed_side *side);
/* Draws the round, and fills both memories. */
void signed_draw_round(struct job *job, struct signed_round *r);
void signed_note(struct job *job, const struct signed_round *r);
/* Posts the request that configures the key. */
void signed_configure(struct job *job, struct ibv_qp *to, uint64_t id, struct signed_side *side);
/* Lists the elements of a range of the message at that side: SIGNED_PARTS at most. A key has the
 * whole message. Returns their number. */
int signed_list(const struct signed_round *r, const struct signed_side *side, uint32_t from,
                uint32_t len, struct ibv_sge *list);
/* Checks that the key has the error that the reference has found, and no other. */
void signed_check_key(struct job *job, const struct signed_side *side);
/* Checks the whole memory. whole: the round is complete; else each byte may be as it was. */
void signed_check_memory(struct job *job, const struct signed_side *side, bool whole);

#endif
