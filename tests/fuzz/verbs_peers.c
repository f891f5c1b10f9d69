/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements verbs_peers.h: bytes as calls about queues of a peer, and as the peer. */
#include "tests/fuzz/take.h"
#include "tests/fuzz/verbs_peers.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "guest-lib/verbs/exp/peer.h"
#include "tests/verbs/peer_device.h"

#define SLOTS 4u
#define WORDS 16u
#define WRS   8u
#define CQES  255 /* more than a peer can have executed */

/* Stops the program, and prints the condition, unless it holds. */
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s (errno %d)\n", __func__, __LINE__, #condition, errno);      \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static struct peers {
    const struct verbs_world *world;
    const uint8_t *data;
    size_t size;
    struct peer_device peer;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    uint64_t words[WORDS];
    struct peer_list list[SLOTS], wait[SLOTS];
    uint64_t list_id[SLOTS], wait_id[SLOTS];
} p;

static uint8_t take_u8(void)
{
    return take_u8_from(&p.data, &p.size);
}

static uint32_t take_u32(void)
{
    return take_u32_from(&p.data, &p.size);
}

/* An identifier that a call gave, or one that is wrong in some bits. */
static uint64_t take_id(uint64_t id)
{
    uint8_t how = take_u8();

    return how < 192 ? id : id ^ (uint64_t)take_u8() << how % 57;
}

/* -- objects ----------------------------------------------------------------------------------- */

static void peers_connect(void)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = IBV_ACCESS_REMOTE_ATOMIC,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = p.qp->qp_num,
        .max_rd_atomic = 4,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 1,
        .timeout = 5,
        .retry_cnt = 1,
        .rnr_retry = 1,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.dgid = p.world->gid, .sgid_index = 1, .hop_limit = 1}}};

    MUST(!ibv_modify_qp(p.qp, &attr,
                        IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS));
    attr.qp_state = IBV_QPS_RTR;
    MUST(!ibv_modify_qp(p.qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
    attr.qp_state = IBV_QPS_RTS;
    MUST(!ibv_modify_qp(p.qp, &attr,
                        IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                            IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
}

void verbs_peers_end(void)
{
    MUST(!p.qp || !ibv_destroy_qp(p.qp));
    MUST(!p.cq || !ibv_destroy_cq(p.cq));
    MUST(!p.mr || !ibv_dereg_mr(p.mr));
    MUST(!p.peer.areas && !p.peer.buffers);
    p = (struct peers){.world = p.world, .data = p.data, .size = p.size};
}

/* The peer has an allocator or not, and capabilities; one of its functions may fail. */
static void peers_make(void)
{
    uint8_t how = take_u8(), fails_at = take_u8();
    struct ibv_cq_init_attr_ex cq_attr = {.cqe = CQES};
    struct ibv_qp_init_attr_ex attr = {
        .cap = {.max_send_wr = WRS, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd = p.world->pd,
    };
    struct hv_qp_extra extra = {.peer = &p.peer.attr};
    struct user_cq *cq;

    peer_device_init(&p.peer, how & 2 ? PEER_CAPS_GEQ : PEER_CAPS_NOR, how & 1);
    if (how & 4) {
        p.peer.attr.caps |= IBV_EXP_PEER_OP_COPY_BLOCK_CAP;
        p.peer.attr.peer_dma_op_map_len = how & 8 ? 256 : 32;
    }
    p.peer.fails_at = fails_at < 16 ? fails_at : 0;
    p.peer.bad_buffer = how >> 4 & 3;
    p.mr = ibv_reg_mr(p.world->pd, p.words, sizeof(p.words),
                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
    MUST(p.mr);
    cq = hv_cq_create_for_peer(p.world->ctx, &cq_attr, NULL, &p.peer.attr);
    if (cq) {
        p.cq = attr.send_cq = attr.recv_cq = &cq->ibv;
        p.qp = hv_qp_create(p.world->ctx, &attr, &extra);
    }
    if (p.qp) {
        peers_connect();
    } else {
        MUST(p.peer.fails_at || p.peer.bad_buffer);
        verbs_peers_end();
    }
}

/* -- the program ------------------------------------------------------------------------------- */

static void peers_post(void)
{
    unsigned n = 1 + take_u8() % WRS;
    struct ibv_sge sge = {(uintptr_t)&p.words[take_u8() % WORDS], sizeof(*p.words), p.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.atomic = {.remote_addr = (uintptr_t)p.words,
                                           .compare_add = 1,
                                           .rkey = p.mr->rkey}},
                       *bad;

    while (n--) {
        int err = ibv_post_send(p.qp, &wr, &bad);

        MUST(!err || err == ENOMEM);
    }
}

static void peers_commit(void)
{
    unsigned slot = take_u8() % SLOTS;
    struct peer_list *list = &p.list[slot];
    struct ibv_exp_peer_commit commit = {.entries = take_u8() % (PEER_OPS + 1)};
    int err;

    peer_list_init(list);
    commit.storage = list->op;
    err = ibv_exp_peer_commit_qp(p.qp, &commit);
    MUST(!err || err == -ENOSPC);
    if (!err && commit.entries) {
        list->num = commit.entries;
        p.list_id[slot] = commit.rollback_id;
    }
}

static void peers_roll_back(void)
{
    struct ibv_exp_rollback_ctx rollback = {.rollback_id = take_id(p.list_id[take_u8() % SLOTS]),
                                            .flags = take_u8() & 3};
    int err = ibv_exp_rollback_qp(p.qp, &rollback);

    MUST(!err || err == -ERANGE);
}

static void peers_peek(void)
{
    unsigned slot = take_u8() % SLOTS;
    struct peer_list *wait = &p.wait[slot];
    uint8_t how = take_u8();
    struct ibv_exp_peer_peek peek = {
        .entries = how % 8, .whence = how >> 3 & 3, .offset = how & 0x80 ? take_u32() : take_u8()};
    int err;

    peer_list_init(wait);
    peek.storage = wait->op;
    err = ibv_exp_peer_peek_cq(p.cq, &peek);
    MUST(!err || err == ENOSPC || err == EINVAL || err == E2BIG || err == ENOMEM);
    if (!err) {
        wait->num = peek.entries;
        p.wait_id[slot] = peek.peek_id;
    }
}

static void peers_abort(void)
{
    struct ibv_exp_peer_abort_peek abort_peek = {.peek_id = take_id(p.wait_id[take_u8() % SLOTS])};
    int err = ibv_exp_peer_abort_peek_cq(p.cq, &abort_peek);

    MUST(!err || err == EINVAL);
}

static void peers_poll(void)
{
    struct ibv_wc wc[4];

    p.world->settle(p.world->opaque);
    MUST(ibv_poll_cq(p.cq, 1 + take_u8() % 4, wc) >= 0);
}

static void peers_reset(void)
{
    struct ibv_qp_attr attr = {.qp_state = take_u8() & 1 ? IBV_QPS_ERR : IBV_QPS_RESET};

    MUST(!ibv_modify_qp(p.qp, &attr, IBV_QP_STATE));
    attr.qp_state = IBV_QPS_RESET;
    MUST(!ibv_modify_qp(p.qp, &attr, IBV_QP_STATE));
    peers_connect();
}

/* -- the peer ---------------------------------------------------------------------------------- */

/* Some operations of a list, from where it stands or once more from the first. */
static void peers_run(struct peer_list *lists)
{
    struct peer_list *list = &lists[take_u8() % SLOTS];
    unsigned num = list->num;
    uint8_t how = take_u8();

    if (how & 0x80) {
        list->done = 0;
    }
    list->num = MIN(num, list->done + how % (PEER_OPS + 1));
    peer_list_run(list);
    list->num = num;
}

static void peers_run_list(void)
{
    peers_run(p.list);
}

static void peers_run_wait(void)
{
    peers_run(p.wait);
}

/* Any value anywhere in its memory, but in the ring of the CQ, which only the device writes. */
static void peers_store(void)
{
    const struct peer_area *area = &p.peer.area[1 + take_u8() % 3];
    uint32_t at = take_u8(), value = take_u32();

    if (area->at && area->len >= sizeof(value)) {
        at = at % (area->len / sizeof(value)) * sizeof(value);
        __atomic_store_n((uint32_t *)(void *)(area->at + at), value, __ATOMIC_RELAXED);
    }
}

/* -- a call ------------------------------------------------------------------------------------ */

void verbs_peers_op(const struct verbs_world *world, const uint8_t **data, size_t *size)
{
    static void (*const calls[])(void) = {
        peers_post,     peers_post,     peers_commit, peers_commit, peers_roll_back,
        peers_peek,     peers_abort,    peers_poll,   peers_poll,   peers_run_list,
        peers_run_list, peers_run_wait, peers_store,  peers_reset,  verbs_peers_end,
    };

    p.world = world;
    p.data = *data;
    p.size = *size;
    if (p.qp) {
        calls[take_u8() % G_N_ELEMENTS(calls)]();
    } else {
        peers_make();
    }
    *data = p.data;
    *size = p.size;
}
