/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys that a program lays over fragments of its memory (mlx5dv_wr_mr_list() and
 * mlx5dv_wr_mr_interleaved()), and messages from and to them, by the host itself and by its peer. A
 * key is laid again only while it is not in use; it is invalidated also while an operation uses it.
 */
#include "tests/sim/fabric/reach.h"
#include <errno.h>
#include "guest-lib/verbs/dv.h"

#define KEYS      3u
#define FRAGMENTS 16u     /* of a list; half as many of an interleaved round */
#define GAP_MOST  64u     /* the most unused bytes behind a fragment */
#define STRIDE    0xffffu /* the longest stride */
#define INLINE    512u    /* bytes of a WQE for the description of a key */
#define ACCESS    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

enum umr_ctrl {
    UMR_NONE,
    UMR_LAYS,
    UMR_INVALIDATES,
};

struct key {
    struct place place;
    unsigned host;
    struct mlx5dv_mkey *mkey;
    struct span span; /* memory of its fragments */
    enum umr_ctrl ctrl;
    bool goes;   /* replace when it is not in use */
    bool unsure; /* the request under way was flushed, and may have been executed before */
};

struct umr {
    struct reach reach; /* first member, so a pointer to it is also one to the struct */
    struct key key[2][KEYS];
};

static struct ibv_qp *umr_make_qp(struct reach *r, struct sim_host *host, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = REACH_WINDOW,
                .max_recv_wr = REACH_RECEIVES,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = INLINE},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = host->pd,
        .send_ops_flags =
            IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_LOCAL_INV};
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
                                     .send_ops_flags = MLX5DV_QP_EX_WITH_MR_LIST |
                                                       MLX5DV_QP_EX_WITH_MR_INTERLEAVED};

    return hv_dv_create_qp(host->ctx, &attr, &dv);
}

static void umr_make_key(struct key *k)
{
    struct mlx5dv_mkey_init_attr attr = {.pd = k->place.host->pd,
                                         .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
                                         .max_entries = FRAGMENTS};

    k->mkey = hv_dv_create_mkey(&attr);
    sim_check(k->place.job, k->mkey, "no key: errno %d", errno);
}

/* -- layouts ----------------------------------------------------------------------------------- */

/* Plans a list of pieces of the memory, in an order that differs from the memory's. */
static uint16_t umr_plan_list(struct key *k, struct ibv_sge *list)
{
    struct place *p = &k->place;
    struct chance *chance = &p->job->chance;
    uint16_t n = (uint16_t)chance_from(chance, 1, FRAGMENTS);
    uint16_t turn = (uint16_t)chance_below(chance, n);
    size_t left = place_bytes(p), at = 0;

    p->num_parts = n;
    for (uint16_t i = 0; i < n; i++) {
        size_t len = i + 1u == n ? left : chance_from(chance, 1, left - (n - i - 1u));
        unsigned nth = (i + turn) % n;

        p->part[nth] = (struct place_part){k->span.at + at, len};
        list[nth] = (struct ibv_sge){(uintptr_t)(k->span.at + at), (uint32_t)len, k->span.mr->lkey};
        at += len + chance_below(chance, GAP_MOST);
        left -= len;
    }
    return n;
}

/* Plans rounds; in each some bytes of each source follow each other. Returns the number of
 * rounds. */
static uint32_t umr_plan_rounds(struct key *k, struct mlx5dv_mr_interleaved *source, uint16_t *num)
{
    struct place *p = &k->place;
    struct chance *chance = &p->job->chance;
    uint32_t rounds = place_bytes(p) / 8 > STRIDE - GAP_MOST ? 16 : 2u << chance_below(chance, 3);
    size_t left = place_bytes(p) / rounds, at = 0;
    uint16_t n = (uint16_t)chance_from(chance, 1, 2);

    p->num_parts = rounds * n;
    for (uint16_t i = 0; i < n; i++) {
        uint32_t len = (uint32_t)(i + 1u == n ? left : chance_from(chance, 1, left - 1));
        uint32_t skip = (uint32_t)chance_below(chance, GAP_MOST);

        source[i] = (struct mlx5dv_mr_interleaved){.addr = (uintptr_t)(k->span.at + at),
                                                   .bytes_count = len,
                                                   .bytes_skip = skip,
                                                   .lkey = k->span.mr->lkey};
        for (uint32_t round = 0; round < rounds; round++) {
            p->part[round * n + i] = (struct place_part){k->span.at + at, len};
            at += len + skip;
        }
        left -= len;
    }
    *num = n;
    return rounds;
}

/* A round may be too long for a stride. */
static bool umr_may_interleave(const struct place *p)
{
    return place_bytes(p) / 16 <= STRIDE - GAP_MOST;
}

static size_t umr_span_bytes(const struct place *p)
{
    return place_bytes(p) + (size_t)PLACE_PARTS * GAP_MOST;
}

/* -- requests ---------------------------------------------------------------------------------- */

/* Chooses a connection. Returns NULL if there is no room. */
static struct ibv_qp_ex *umr_begin(struct reach *r, struct key *k, enum umr_ctrl ctrl)
{
    struct reach_conn *c = &r->conn[chance_below(&r->job->chance, REACH_CONNS)];
    struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(c->end[k->host].qp);
    uint64_t id;
    struct reach_op *op = reach_claim(r, c, k->host, &id);

    if (!op) {
        return NULL;
    }
    op->ctrl = k->ctrl = ctrl;
    op->about = k;
    reach_loses(r, &k->place, PLACE_ALL);
    ibv_wr_start(qp);
    qp->wr_id = id;
    qp->wr_flags = IBV_SEND_SIGNALED;
    return qp;
}

static bool umr_lay(struct reach *r, struct key *k)
{
    struct ibv_qp_ex *qp = umr_begin(r, k, UMR_LAYS);
    struct mlx5dv_qp_ex *dv = qp ? hv_dv_ops.qp_ex_from_ibv_qp_ex(qp) : NULL;
    struct mlx5dv_mr_interleaved source[2];
    struct ibv_sge list[FRAGMENTS];
    uint32_t rounds;
    uint16_t n;

    if (!qp) {
        return false;
    }
    qp->wr_flags |= IBV_SEND_INLINE;
    if (umr_may_interleave(&k->place) && chance_one_in(&r->job->chance, 2)) {
        rounds = umr_plan_rounds(k, source, &n);
        mlx5dv_wr_mr_interleaved(dv, k->mkey, ACCESS, rounds, n, source);
    } else {
        n = umr_plan_list(k, list);
        mlx5dv_wr_mr_list(dv, k->mkey, ACCESS, n, list);
    }
    place_fill(&k->place);
    /* an operation that named the key now might find the old or the new layout */
    k->place.rests = true;
    sim_must(r->job, ibv_wr_complete(qp));
    return true;
}

static bool umr_invalidate(struct reach *r, struct key *k)
{
    struct ibv_qp_ex *qp = umr_begin(r, k, UMR_INVALIDATES);

    if (!qp) {
        return false;
    }
    ibv_wr_local_inv(qp, k->mkey->rkey);
    sim_must(r->job, ibv_wr_complete(qp));
    return true;
}

/* Replaces the key by a command, which is done when it returns. */
static bool umr_replace(struct reach *r, struct key *k)
{
    reach_loses(r, &k->place, PLACE_ALL);
    sim_must(r->job, hv_dv_destroy_mkey(k->mkey));
    reach_has_lost(r, &k->place);
    k->place.rests = k->unsure = false;
    umr_make_key(k);
    return true;
}

static void umr_ctrl_done(struct reach *r, struct reach_conn *c, unsigned end,
                          const struct reach_op *op, enum ibv_wc_status status)
{
    struct key *k = op->about;

    k->ctrl = UMR_NONE;
    k->unsure = status != IBV_WC_SUCCESS;
    if (k->unsure) {
        return;
    }
    reach_has_lost(r, &k->place);
    k->place.rests = false;
    if (op->ctrl == UMR_LAYS) {
        place_open(&k->place, 0, k->mkey->rkey, PLACE_LOCAL | ACCESS);
    }
    sim_note(r->job, "key 0x%x of host %u is %s", k->mkey->rkey, k->place.host->number,
             op->ctrl == UMR_LAYS ? "laid" : "invalid");
}

/* -- steps ------------------------------------------------------------------------------------- */

/* The same key must not lead elsewhere before all operations that named it have ended. */
static bool umr_step_key(struct reach *r, struct key *k)
{
    struct chance *chance = &r->job->chance;

    if (k->ctrl) {
        return false;
    }
    if (k->unsure) {
        return umr_replace(r, k);
    }
    if (!k->place.rights) {
        return !k->place.busy && umr_lay(r, k);
    }
    if (!k->goes) {
        k->goes = chance_one_in(chance, 12);
        k->place.rests = k->goes && !reach_may_be_rude(r);
    }
    if (!k->goes || (k->place.rests && k->place.busy)) {
        return false;
    }
    k->goes = false;
    if (!k->place.busy && chance_one_in(chance, 2)) {
        return umr_lay(r, k);
    }
    return chance_one_in(chance, 4) ? umr_replace(r, k) : umr_invalidate(r, k);
}

static void kind_umr_make(struct job *job)
{
    struct umr *u = job->state;

    for (unsigned i = 0; i < 2 * KEYS; i++) {
        struct key *k = &u->key[i % 2][i / 2];

        k->host = i % 2;
        place_init(&k->place, job, job->host[k->host]);
        k->span = sim_span(job, k->place.host, umr_span_bytes(&k->place));
        umr_make_key(k);
        u->reach.near[k->host][i / 2] = u->reach.far[k->host][i / 2] = &k->place;
    }
    u->reach.make_qp = umr_make_qp;
    u->reach.ctrl_done = umr_ctrl_done;
    reach_init(&u->reach, job);
}

static bool kind_umr_step(struct job *job)
{
    struct umr *u = job->state;
    bool did = reach_step(&u->reach);
    struct key *k = &u->key[chance_below(&job->chance, 2)][chance_below(&job->chance, KEYS)];

    return umr_step_key(&u->reach, k) || did;
}

static bool kind_umr_is_done(const struct job *job)
{
    return reach_is_done(job->state);
}

static void kind_umr_check(struct job *job)
{
    reach_check(job->state);
}

static void kind_umr_free(struct job *job)
{
    struct umr *u = job->state;

    reach_free(&u->reach);
    for (unsigned i = 0; i < 2 * KEYS; i++) {
        struct key *k = &u->key[i % 2][i / 2];

        sim_must(job, hv_dv_destroy_mkey(k->mkey));
        sim_span_free(job, &k->span);
        place_free(&k->place);
    }
}

const struct kind kind_umr = {
    .name = "umr",
    .about = "keys laid over fragments of memory, and laid anew, under traffic",
    .usual = true,
    .hosts = 2,
    .size = sizeof(struct umr),
    .make = kind_umr_make,
    .step = kind_umr_step,
    .is_done = kind_umr_is_done,
    .check = kind_umr_check,
    .free = kind_umr_free,
};
