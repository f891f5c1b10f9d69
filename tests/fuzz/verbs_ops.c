/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements verbs_ops.h: bytes as a program's calls of verbs. */
#include "tests/fuzz/verbs_ops.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "guest-lib/verbs/user/queues.h"
#include "tests/fuzz/mlx5_says.h"

#define SLOTS   4 /* objects of each kind */
#define MAX_WRS 4
#define MAX_SGE 80
#define ARENA   16384u
#define MORE    240 /* calls of the world's own have this number or a higher one */

/* Stops the program, and prints the call, unless the condition holds. */
#define MUST(what, ...)                                                                            \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%s:%d: " #what " ", __func__, __LINE__);                              \
            fprintf(stderr, __VA_ARGS__);                                                          \
            abort();                                                                               \
        }                                                                                          \
    } while (0)
#define HERE "\n"

/* A QP as the test knows it. */
struct ops_qp {
    struct ibv_qp *qp;
    struct says_queue sq, rq;
    bool ready, receives; /* has been in RTS, and in INIT, since RESET */
    bool odd;             /* has had WQEs whose completions are unknown */
    uint32_t life;        /* changes with each RESET */
    uint32_t sent, received;
};

struct ops_srq {
    struct ibv_srq *srq;
    struct ibv_srq_attr size;
};

struct ops {
    const struct verbs_world *world;
    const uint8_t *data;
    size_t size;
    uint8_t *arena; /* memory of the program */
    struct ibv_cq *cq[SLOTS];
    struct ops_srq srq[SLOTS];
    struct ops_qp qp[SLOTS];
    struct ibv_wq *wq[SLOTS];
    struct ibv_mr *mr[SLOTS];
    struct ibv_mw *mw[SLOTS];
    struct ibv_ah *ah[SLOTS];
    struct ibv_xrcd *xrcd;
    uint32_t lives;
    bool overrun; /* a CQ has lost completions, or may have lost some */
};

/* -- bytes --------------------------------------------------------------------------------------
 */

static uint8_t ops_u8(struct ops *o)
{
    if (!o->size) {
        return 0;
    }
    o->size--;
    return *o->data++;
}

static uint32_t ops_u32(struct ops *o)
{
    uint32_t v = 0;

    for (int i = 0; i < 4; i++) {
        v = v << 8 | ops_u8(o);
    }
    return v;
}

/* Returns a number: mostly small, often at a limit, sometimes anything. */
static uint32_t ops_value(struct ops *o)
{
    static const uint32_t edges[] = {
        0,     1,     2,     3,        4,        15,       16,         17,         32,        33,
        62,    63,    64,    65,       100,      188,      220,        828,        829,       940,
        956,   957,   988,   1004,     1023,     1024,     1025,       4096,       16384,     32767,
        32768, 32769, 65535, 1u << 22, 1u << 24, 1u << 31, 0x7fffffff, 0xfffffffe, 0xffffffff};
    uint8_t how = ops_u8(o);

    if (how < 128) {
        return how % 16;
    }
    return how == 255 ? ops_u32(o) : edges[how % G_N_ELEMENTS(edges)];
}

static bool ops_chance(struct ops *o, unsigned of_256)
{
    return ops_u8(o) < of_256;
}

#define SLOT(o, list) (&(o)->list[ops_u8(o) % SLOTS])

/* -- objects ------------------------------------------------------------------------------------
 */

static void ops_cq(struct ops *o)
{
    struct ibv_cq **cq = SLOT(o, cq);
    struct ibv_cq_init_attr_ex attr = {.cqe = ops_value(o),
                                       .comp_vector = ops_chance(o, 32) ? ops_value(o) : 0,
                                       .wc_flags = IBV_WC_STANDARD_FLAGS};
    int expected;

    if (*cq) {
        return;
    }
    if (ops_chance(o, 64)) {
        attr.comp_mask = ops_value(o) & ~(uint32_t)IBV_CQ_INIT_ATTR_MASK_PD;
        attr.flags = ops_value(o) & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
        attr.wc_flags = ops_value(o);
    }
    if (attr.cqe > 1u << 16 && attr.cqe < 1u << 22) {
        attr.cqe &= 0xffff; /* rings of 256 MB would take too long */
    }
    expected = says_create_cq(&attr, o->world->ctx->num_comp_vectors);
    o->overrun = o->overrun || attr.flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
    errno = 0;
    *cq = ibv_cq_ex_to_cq(ibv_create_cq_ex(o->world->ctx, &attr));
    MUST(!*cq == !!expected && (*cq || errno == expected), "%u entries: errno %d, not %d", attr.cqe,
         errno, expected);
}

static void ops_srq(struct ops *o)
{
    struct ops_srq *srq = SLOT(o, srq);
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = ops_value(o), .max_sge = ops_value(o)}};
    struct ibv_srq_attr size = attr.attr;
    int expected;

    if (srq->srq) {
        return;
    }
    expected = says_create_srq(&size);
    errno = 0;
    srq->srq = ibv_create_srq(o->world->pd, &attr);
    MUST(!srq->srq == !!expected && (srq->srq || errno == expected), "errno %d, not %d", errno,
         expected);
    if (srq->srq) {
        MUST(attr.attr.max_wr == size.max_wr && attr.attr.max_sge == size.max_sge, HERE);
        srq->size = size;
    }
}

static void ops_wq(struct ops *o)
{
    struct ibv_wq **wq = SLOT(o, wq);
    struct ibv_wq_init_attr attr = {.wq_type = ops_chance(o, 8) ? 1 : IBV_WQT_RQ,
                                    .max_wr = ops_value(o),
                                    .max_sge = ops_value(o),
                                    .pd = o->world->pd,
                                    .cq = *SLOT(o, cq),
                                    .comp_mask = ops_chance(o, 32) ? ops_value(o) : 0,
                                    .create_flags = ops_chance(o, 32) ? ops_value(o) : 0};
    struct ibv_wq_init_attr size = attr;
    int expected;

    if (*wq || !attr.cq) {
        return;
    }
    expected = says_create_wq(&size);
    errno = 0;
    *wq = ibv_create_wq(o->world->ctx, &attr);
    MUST(!*wq == !!expected && (*wq || errno == expected), "errno %d, not %d", errno, expected);
    MUST(!*wq || (attr.max_wr == size.max_wr && attr.max_sge == size.max_sge), HERE);
}

static void ops_qp_new_life(struct ops *o, struct ops_qp *q)
{
    q->life = ++o->lives;
    q->ready = q->receives = q->odd = false;
    q->sent = q->received = q->sq.outstanding = q->rq.outstanding = 0;
}

static void ops_qp(struct ops *o)
{
    static const enum ibv_qp_type types[] = {IBV_QPT_RC,       IBV_QPT_RC,         IBV_QPT_UC,
                                             IBV_QPT_UD,       IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND,
                                             IBV_QPT_XRC_RECV, (enum ibv_qp_type)5};
    struct ops_qp *q = SLOT(o, qp);
    enum ibv_qp_type type = types[ops_u8(o) % G_N_ELEMENTS(types)];
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = type,
        .send_cq = *SLOT(o, cq),
        .recv_cq = *SLOT(o, cq),
        .srq = ops_chance(o, 64) ? SLOT(o, srq)->srq : NULL,
        .sq_sig_all = ops_chance(o, 128),
        .cap = {ops_value(o), ops_value(o), ops_value(o), ops_value(o), ops_value(o)},
        .comp_mask = type == IBV_QPT_XRC_RECV ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD,
        .pd = o->world->pd,
        .xrcd = o->xrcd};
    struct ibv_qp_init_attr_ex size;
    int expected;

    if (ops_chance(o, 96)) {
        attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        attr.send_ops_flags = ops_chance(o, 200) ? IBV_QP_EX_WITH_SEND : ops_value(o);
    }
    if (ops_chance(o, 32)) {
        attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
        attr.create_flags = ops_value(o);
    }
    if (ops_chance(o, 32)) {
        attr.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
        attr.max_tso_header = (uint16_t)ops_value(o);
    }
    if (ops_chance(o, 8)) { /* other calls change tables and hashes */
        attr.comp_mask =
            ops_value(o) & ~(uint32_t)(IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH);
    }
    if (q->qp) {
        return;
    }
    size = attr;
    expected = says_create_qp(&size, &q->sq, &q->rq);
    errno = 0;
    q->qp = ibv_create_qp_ex(o->world->ctx, &attr);
    MUST(!q->qp == !!expected && (q->qp || errno == expected),
         "type %d, cap %u %u %u %u %u, mask 0x%x: errno %d, not %d", type, attr.cap.max_send_wr,
         attr.cap.max_recv_wr, attr.cap.max_send_sge, attr.cap.max_recv_sge,
         attr.cap.max_inline_data, attr.comp_mask, errno, expected);
    MUST(!q->qp || !memcmp(&attr.cap, &size.cap, sizeof(size.cap)), HERE);
    ops_qp_new_life(o, q);
}

static void ops_region(struct ops *o)
{
    struct ibv_mr **mr = SLOT(o, mr);
    int access = ops_chance(o, 200)
                     ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND
                     : (int)ops_value(o);
    uint32_t at = ops_value(o), len = ops_value(o);

    if (*mr) {
        if (ops_chance(o, 64)) {
            int flags = (int)ops_value(o);

            ibv_rereg_mr(*mr, flags, o->world->pd, o->arena + at % ARENA, len, access);
        }
        return;
    }
    if (ops_chance(o, 200)) {
        at %= ARENA;
        len %= ARENA - at;
    }
    *mr = ibv_reg_mr(o->world->pd, o->arena + at, len, access);
}

static void ops_window(struct ops *o)
{
    struct ibv_mw **mw = SLOT(o, mw);
    struct ibv_mr *mr = *SLOT(o, mr);
    struct ops_qp *q = SLOT(o, qp);
    struct ibv_mw_bind bind = {.wr_id = UINT64_MAX,
                               .bind_info = {.mr = mr,
                                             .addr = (uintptr_t)o->arena + ops_value(o),
                                             .length = mr ? ops_value(o) : 0,
                                             .mw_access_flags = ops_value(o)}};

    if (!*mw) {
        *mw = ibv_alloc_mw(o->world->pd, (enum ibv_mw_type)(ops_u8(o) % 4));
    } else if (q->qp && (*mw)->type == IBV_MW_TYPE_1) {
        uint32_t before = user_qp(q->qp)->sq.head;

        ibv_bind_mw(q->qp, *mw, &bind);
        q->odd = q->odd || user_qp(q->qp)->sq.head != before;
    }
}

static void ops_address(struct ops *o)
{
    struct ibv_ah **ah = SLOT(o, ah);
    struct ibv_ah_attr attr = {.is_global = !ops_chance(o, 16),
                               .port_num = ops_chance(o, 16) ? ops_u8(o) : 1,
                               .sl = ops_u8(o),
                               .static_rate = ops_u8(o),
                               .grh = {.dgid = o->world->gid,
                                       .flow_label = ops_value(o),
                                       .sgid_index = ops_chance(o, 32) ? ops_u8(o) : 1,
                                       .hop_limit = ops_u8(o),
                                       .traffic_class = ops_u8(o)}};

    if (!*ah) {
        *ah = ibv_create_ah(o->world->pd, &attr);
    }
}

/* -- states -------------------------------------------------------------------------------------
 */

/* The attributes of a program that makes progress. */
static int ops_good_step(struct ops *o, const struct ops_qp *q, struct ibv_qp_attr *attr)
{
    const struct ops_qp *to = SLOT(o, qp);
    enum ibv_qp_type type = q->qp->qp_type;
    bool rc = type == IBV_QPT_RC, raw = type == IBV_QPT_RAW_PACKET, ud = type == IBV_QPT_UD;
    bool ini = type == IBV_QPT_XRC_SEND, tgt = type == IBV_QPT_XRC_RECV;

    *attr = (struct ibv_qp_attr){
        .port_num = 1,
        .qp_access_flags =
            IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = to->qp ? to->qp->qp_num : 0x123,
        .max_rd_atomic = 4,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 1,
        .timeout = 5,
        .retry_cnt = 1,
        .rnr_retry = 1,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.dgid = o->world->gid, .sgid_index = 1, .hop_limit = 1}}};
    if (type == IBV_QPT_UC) {
        attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    }
    switch (q->qp->state) {
    case IBV_QPS_RESET:
        attr->qp_state = IBV_QPS_INIT;
        return IBV_QP_STATE | IBV_QP_PORT | (raw ? 0 : IBV_QP_PKEY_INDEX) |
               (raw  ? 0
                : ud ? IBV_QP_QKEY
                     : IBV_QP_ACCESS_FLAGS);
    case IBV_QPS_INIT:
        attr->qp_state = IBV_QPS_RTR;
        return IBV_QP_STATE |
               (raw || ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) |
               (rc || tgt ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
    case IBV_QPS_RTR:
        attr->qp_state = IBV_QPS_RTS;
        return IBV_QP_STATE | (raw ? 0 : IBV_QP_SQ_PSN) |
               (rc || ini
                    ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC
                    : 0) |
               (tgt ? IBV_QP_TIMEOUT : 0);
    default:
        attr->qp_state = ops_chance(o, 128) ? IBV_QPS_RESET : IBV_QPS_ERR;
        return IBV_QP_STATE;
    }
}

static void ops_modify(struct ops *o, bool good)
{
    struct ops_qp *q = SLOT(o, qp);
    struct ibv_qp_attr attr;
    enum ibv_qp_state before;
    int mask, err;

    if (!q->qp) {
        return;
    }
    mask = ops_good_step(o, q, &attr);
    if (!good) {
        uint8_t *bytes = (uint8_t *)&attr;

        for (unsigned i = ops_u8(o) % 8; i; i--) {
            size_t at = ops_u8(o) % (sizeof(attr) / 4) * 4;
            uint32_t v = ops_value(o);

            memcpy(bytes + at, &v, sizeof(v));
        }
        if (ops_chance(o, 128)) {
            mask ^= 1 << ops_u8(o) % 26;
        }
        if (ops_chance(o, 32)) {
            mask = (int)ops_u32(o);
        }
    }
    before = q->qp->state;
    err = ibv_modify_qp(q->qp, &attr, mask);
    if (err) {
        MUST(q->qp->state == before, HERE);
        MUST(err > 0 && err < 4096, "errno %d", err);
        return;
    }
    if (!(mask & IBV_QP_STATE)) {
        return;
    }
    MUST(q->qp->state == attr.qp_state, HERE);
    if (attr.qp_state == IBV_QPS_RESET) {
        ops_qp_new_life(o, q);
    } else if (attr.qp_state == IBV_QPS_INIT) {
        q->receives = true;
    } else if (attr.qp_state == IBV_QPS_RTS) {
        q->ready = true;
    }
}

/* -- posting ------------------------------------------------------------------------------------
 */

/* Identifies the QP, the queue, and the request in it. */
static uint64_t ops_wr_id(const struct ops *o, const struct ops_qp *q, bool send, uint32_t n)
{
    return (uint64_t)(q - o->qp) << 56 | (uint64_t)send << 55 |
           (uint64_t)(q->life & 0x3fffff) << 32 | n;
}

/* Makes a list that ends at random; its keys are mostly right. */
static int ops_sges(struct ops *o, struct ibv_sge *sge, uint32_t max)
{
    uint32_t num = ops_chance(o, 200) ? ops_u8(o) % 4 : ops_value(o);
    const struct ibv_mr *mr = *SLOT(o, mr);

    if (ops_chance(o, 200)) {
        num = MIN(num, max);
    }
    num = MIN(num, MAX_SGE);
    for (uint32_t i = 0; i < num; i++) {
        sge[i].addr = (uintptr_t)o->arena + (ops_value(o) & 2047);
        sge[i].length = ops_value(o);
        sge[i].lkey = mr && !ops_chance(o, 16) ? mr->lkey : ops_u8(o);
        if (!ops_chance(o, 64)) {
            sge[i].length %= 1024;
        }
    }
    return (int)num;
}

/* Returns whether the model knows a request's answer and completion. */
static bool ops_is_plain(const struct ops_qp *q, const struct ibv_send_wr *wr)
{
    uint64_t bytes = 0;

    for (int i = 0; i < wr->num_sge; i++) {
        bytes += wr->sg_list[i].length;
    }
    /* A UMR has three basic blocks, and its data lies behind them. A queue that was made for
     * shorter WQEs (send_ops_flags) has no such place for each: the UMR lies over the next WQE. */
    return wr->opcode != IBV_WR_BIND_MW &&
           !(wr->opcode == IBV_WR_LOCAL_INV &&
             (wr->num_sge || 3 * user_qp(q->qp)->sq.max_post > user_qp(q->qp)->sq.wqe_cnt)) &&
           !(wr->opcode == IBV_WR_TSO && q->qp->qp_type == IBV_QPT_RAW_PACKET) &&
           wr->num_sge < 58 && (bytes < 900 || !(wr->send_flags & IBV_SEND_INLINE));
}

static void ops_send_wr(struct ops *o, struct ops_qp *q, struct ibv_send_wr *wr,
                        struct ibv_sge *sge, uint32_t n)
{
    const struct ibv_mr *mr = *SLOT(o, mr);
    struct ibv_mw *mw = *SLOT(o, mw);

    wr->wr_id = ops_wr_id(o, q, true, n);
    wr->sg_list = sge;
    wr->num_sge = ops_sges(o, sge, q->sq.gather);
    wr->opcode = (enum ibv_wr_opcode)(ops_chance(o, 250) ? ops_u8(o) % 12 : (int)ops_value(o));
    wr->send_flags = ops_u8(o) & 0x1f; /* FENCE, SIGNALED, SOLICITED, INLINE, IP_CSUM */
    wr->imm_data = ops_u32(o);
    wr->wr.atomic.remote_addr = (uintptr_t)o->arena + (ops_value(o) & 2047);
    wr->wr.atomic.rkey = mr ? mr->rkey : ops_u8(o);
    if (q->qp->qp_type == IBV_QPT_UD) {
        wr->wr.ud.ah = *SLOT(o, ah);
        wr->wr.ud.remote_qpn = SLOT(o, qp)->qp ? q->qp->qp_num : ops_value(o);
        wr->wr.ud.remote_qkey = 0;
    }
    wr->qp_type.xrc.remote_srqn = ops_value(o);
    if (wr->opcode == IBV_WR_BIND_MW) {
        wr->bind_mw.mw = mw;
        wr->bind_mw.rkey = mw ? ibv_inc_rkey(mw->rkey) : 0;
        wr->bind_mw.bind_info = (struct ibv_mw_bind_info){.mr = (struct ibv_mr *)mr,
                                                          .addr = (uintptr_t)o->arena,
                                                          .length = mr ? ops_value(o) : 0,
                                                          .mw_access_flags = ops_u8(o)};
    } else if (wr->opcode == IBV_WR_TSO) {
        wr->tso.hdr = o->arena;
        wr->tso.hdr_sz = (uint16_t)ops_value(o);
        wr->tso.mss = (uint16_t)ops_value(o);
    }
    /* pointers that a program must not pass: libmlx5 follows them */
    if ((q->qp->qp_type == IBV_QPT_UD && !wr->wr.ud.ah) ||
        (wr->opcode == IBV_WR_BIND_MW && !wr->bind_mw.mw)) {
        wr->opcode = (enum ibv_wr_opcode)99;
    }
}

static void ops_post_send(struct ops *o)
{
    struct ops_qp *q = SLOT(o, qp);
    struct ibv_sge sges[MAX_WRS][MAX_SGE];
    struct ibv_send_wr wrs[MAX_WRS] = {0}, *bad = NULL;
    unsigned num = 1 + ops_u8(o) % MAX_WRS, accepted;
    uint32_t head;
    int err;

    if (!q->qp) {
        return;
    }
    for (unsigned i = 0; i < num; i++) {
        ops_send_wr(o, q, &wrs[i], sges[i], q->sent + i);
        wrs[i].next = i + 1 < num ? &wrs[i + 1] : NULL;
    }
    head = user_qp(q->qp)->sq.head;
    err = ibv_post_send(q->qp, wrs, &bad);
    accepted = err ? (unsigned)(bad - wrs) : num;
    MUST(accepted <= num && (!err || bad), HERE);
    MUST(user_qp(q->qp)->sq.head - head == accepted, HERE);
    for (unsigned i = 0; i < MIN(accepted + 1, num); i++) {
        bool plain = ops_is_plain(q, &wrs[i]);
        int expected = says_post_send(&q->sq, q->ready, &wrs[i]);
        int answer = i < accepted ? 0 : err;

        MUST(!plain || q->odd || answer == expected,
             "type %d, opcode %d, %d pieces, flags 0x%x: %d, not %d", q->qp->qp_type, wrs[i].opcode,
             wrs[i].num_sge, wrs[i].send_flags, answer, expected);
        if (!answer) {
            q->odd = q->odd || !plain;
            q->sent++;
            q->sq.outstanding++;
        }
    }
}

static unsigned ops_recv_wrs(struct ops *o, struct ibv_recv_wr *wrs,
                             struct ibv_sge (*sges)[MAX_SGE], uint32_t max)
{
    unsigned num = 1 + ops_u8(o) % MAX_WRS;

    memset(wrs, 0, num * sizeof(*wrs));
    for (unsigned i = 0; i < num; i++) {
        wrs[i].sg_list = sges[i];
        wrs[i].num_sge = ops_sges(o, sges[i], max);
        wrs[i].next = i + 1 < num ? &wrs[i + 1] : NULL;
    }
    return num;
}

static void ops_post_recv(struct ops *o)
{
    struct ops_qp *q = SLOT(o, qp);
    struct ibv_sge sges[MAX_WRS][MAX_SGE];
    struct ibv_recv_wr wrs[MAX_WRS], *bad = NULL;
    unsigned num, accepted;
    uint32_t head;
    int err;

    if (!q->qp) {
        return;
    }
    num = ops_recv_wrs(o, wrs, sges, q->rq.gather);
    for (unsigned i = 0; i < num; i++) {
        wrs[i].wr_id = ops_wr_id(o, q, false, q->received + i);
    }
    head = user_qp(q->qp)->rq.head;
    err = ibv_post_recv(q->qp, wrs, &bad);
    accepted = err ? (unsigned)(bad - wrs) : num;
    MUST(accepted <= num && user_qp(q->qp)->rq.head - head == accepted, HERE);
    for (unsigned i = 0; i < MIN(accepted + 1, num); i++) {
        int expected = says_post_recv(&q->rq, q->receives, &wrs[i]);
        int answer = i < accepted ? 0 : err;

        MUST(q->odd || answer == expected, "%d, not %d", answer, expected);
        if (!answer) {
            q->received++;
            q->rq.outstanding++;
        }
    }
}

static void ops_post_srq_recv(struct ops *o)
{
    struct ops_srq *srq = SLOT(o, srq);
    struct ibv_wq *wq = *SLOT(o, wq);
    struct ibv_sge sges[MAX_WRS][MAX_SGE];
    struct ibv_recv_wr wrs[MAX_WRS], *bad = NULL;
    unsigned num;
    int err;

    if (srq->srq) {
        num = ops_recv_wrs(o, wrs, sges, srq->size.max_sge);
        for (unsigned i = 0; i < num; i++) {
            wrs[i].wr_id = UINT64_MAX;
        }
        err = ibv_post_srq_recv(srq->srq, wrs, &bad);
        MUST(!err || (uint32_t)bad->num_sge > srq->size.max_sge ? err == 0 || err == EINVAL
                                                                : err == ENOMEM,
             "%d", err);
    }
    if (wq) {
        num = ops_recv_wrs(o, wrs, sges, 2);
        for (unsigned i = 0; i < num; i++) {
            wrs[i].wr_id = UINT64_MAX;
        }
        ibv_post_wq_recv(wq, wrs, &bad);
    }
}

/* -- builders -----------------------------------------------------------------------------------
 */

static void ops_build_one(struct ops *o, struct ibv_qp_ex *ex, struct ibv_ah *ah,
                          const struct ibv_mr *mr)
{
    uint32_t key = mr ? mr->rkey : 0;
    uint64_t addr = (uintptr_t)o->arena + (ops_value(o) & 2047);
    struct ibv_data_buf bufs[3];

    ex->wr_flags = ops_u8(o) & 0x1f;
    switch (ops_u8(o) % 8) {
    case 0:
        if (ex->wr_rdma_write) {
            ibv_wr_rdma_write(ex, key, addr);
        }
        break;
    case 1:
        if (ex->wr_atomic_fetch_add) {
            ibv_wr_atomic_fetch_add(ex, key, addr, 1);
        }
        break;
    case 2:
        if (ex->wr_local_inv) {
            ibv_wr_local_inv(ex, ops_u32(o));
        }
        break;
    case 3:
        if (ex->wr_send_tso) {
            uint16_t hdr = (uint16_t)ops_value(o);

            ibv_wr_send_tso(ex, o->arena, hdr, (uint16_t)ops_value(o));
        }
        break;
    case 4:
        break; /* setters without a request */
    default:
        ibv_wr_send(ex);
    }
    for (unsigned i = ops_u8(o) % 4; i; i--) {
        for (unsigned b = 0; b < G_N_ELEMENTS(bufs); b++) {
            bufs[b].addr = o->arena;
            bufs[b].length = ops_chance(o, 8) ? SIZE_MAX : ops_value(o);
        }
        switch (ops_u8(o) % 5) {
        case 0:
            ibv_wr_set_inline_data(ex, o->arena, ops_value(o));
            break;
        case 1:
            ibv_wr_set_inline_data_list(ex, ops_u8(o) % 4, bufs);
            break;
        case 2:
            if (ex->wr_set_ud_addr && ah) {
                ibv_wr_set_ud_addr(ex, ah, ops_u32(o), 0);
            } else if (ex->wr_set_xrc_srqn) {
                ibv_wr_set_xrc_srqn(ex, ops_u32(o));
            }
            break;
        default:
            ibv_wr_set_sge(ex, mr ? mr->lkey : 0, addr, ops_value(o));
        }
    }
}

static void ops_build(struct ops *o)
{
    struct ops_qp *q = SLOT(o, qp);
    struct ibv_ah *ah = *SLOT(o, ah);
    const struct ibv_mr *mr = *SLOT(o, mr);
    struct ibv_qp_ex *ex = q->qp ? ibv_qp_to_qp_ex(q->qp) : NULL;
    uint32_t head;
    int err = -1;

    if (!ex) {
        return;
    }
    head = user_qp(q->qp)->sq.head;
    ibv_wr_start(ex);
    ex->wr_id = UINT64_MAX;
    for (unsigned i = ops_u8(o) % 4; i; i--) {
        ops_build_one(o, ex, ah, mr);
    }
    if (ops_chance(o, 32)) {
        ibv_wr_abort(ex);
    } else {
        err = ibv_wr_complete(ex);
    }
    MUST(!err || user_qp(q->qp)->sq.head == head, HERE);
    q->odd = q->odd || user_qp(q->qp)->sq.head != head;
}

/* -- completions, events, questions -------------------------------------------------------------
 */

static void ops_completed(struct ops *o, const struct ibv_wc *wc)
{
    struct ops_qp *q = &o->qp[wc->wr_id >> 56 & (SLOTS - 1)];
    bool send = wc->wr_id >> 55 & 1;
    uint32_t n = (uint32_t)wc->wr_id;

    /* 0 belongs to a block without a request (a WQE without a length) */
    if (!wc->wr_id || wc->wr_id == UINT64_MAX || q->odd || !q->qp) {
        return;
    }
    MUST((wc->wr_id >> 32 & 0x3fffff) == (q->life & 0x3fffff), "of a life before");
    if (send) {
        MUST(q->sent - n <= q->sq.outstanding && q->sent != n, "a send twice");
        q->sq.outstanding = q->sent - n - 1;
    } else {
        MUST(q->rq.outstanding, HERE);
        q->rq.outstanding--;
    }
}

static void ops_poll(struct ops *o)
{
    struct ibv_async_event event;
    struct ibv_wc wc[8];
    int got;

    o->world->settle(o->world->opaque);
    for (unsigned i = 0; i < SLOTS; i++) {
        for (unsigned rounds = 0; o->cq[i] && rounds < 1000; rounds++) {
            got = ibv_poll_cq(o->cq[i], (int)G_N_ELEMENTS(wc), wc);
            MUST(got >= 0 && got <= (int)G_N_ELEMENTS(wc), HERE);
            for (int k = 0; k < got; k++) {
                ops_completed(o, &wc[k]);
            }
            if (!got) {
                break;
            }
        }
    }
    while (o->world->own_events && !ibv_get_async_event(o->world->ctx, &event)) {
        o->overrun = o->overrun || event.event_type == IBV_EVENT_CQ_ERR;
        ibv_ack_async_event(&event);
    }
}

static void ops_ask(struct ops *o)
{
    struct ibv_cq *cq = *SLOT(o, cq);
    struct ops_srq *srq = SLOT(o, srq);
    struct ops_qp *q = SLOT(o, qp);
    struct ibv_wq *wq = *SLOT(o, wq);
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    struct ibv_srq_attr srq_attr = {.srq_limit = ops_value(o)};
    struct ibv_modify_cq_attr moderate = {ops_value(o),
                                          {(uint16_t)ops_value(o), (uint16_t)ops_value(o)}};
    struct ibv_wq_attr wq_attr = {.attr_mask =
                                      ops_chance(o, 200) ? IBV_WQ_ATTR_STATE : ops_value(o),
                                  .wq_state = (enum ibv_wq_state)ops_value(o),
                                  .curr_wq_state = (enum ibv_wq_state)ops_value(o),
                                  .flags = ops_value(o),
                                  .flags_mask = ops_value(o)};
    int cqe = (int)ops_value(o);

    if (cq && ops_chance(o, 64) && (cqe < 1 << 16 || cqe >= 1 << 22)) {
        ibv_resize_cq(cq, cqe);
    }
    if (cq && ops_chance(o, 64)) {
        ibv_modify_cq(cq, &moderate);
        ibv_req_notify_cq(cq, ops_u8(o));
    }
    if (srq->srq) {
        ibv_modify_srq(srq->srq, &srq_attr, (int)ops_value(o));
        MUST(!ibv_query_srq(srq->srq, &srq_attr), HERE);
    }
    if (q->qp) {
        ibv_query_qp(q->qp, &attr, (int)ops_u32(o), &init);
    }
    if (wq) {
        ibv_modify_wq(wq, &wq_attr);
    }
}

/* -- ends ---------------------------------------------------------------------------------------
 */

/* An object that others use stays: EBUSY, and the object is unchanged. */
#define END(object, destroy)                                                                       \
    do {                                                                                           \
        int err_ = (object) ? destroy(object) : 0;                                                 \
                                                                                                   \
        MUST(!err_ || err_ == EBUSY, "%d", err_);                                                  \
        (object) = err_ ? (object) : NULL;                                                         \
    } while (0)

static void ops_end(struct ops *o)
{
    unsigned kind = ops_u8(o) % 8, slot = ops_u8(o) % SLOTS;

    ops_poll(o);
    switch (kind) {
    case 0:
        END(o->cq[slot], ibv_destroy_cq);
        break;
    case 1:
        END(o->srq[slot].srq, ibv_destroy_srq);
        break;
    case 2:
        END(o->wq[slot], ibv_destroy_wq);
        break;
    case 3:
        END(o->mr[slot], ibv_dereg_mr);
        break;
    case 4:
        END(o->mw[slot], ibv_dealloc_mw);
        break;
    case 5:
        END(o->ah[slot], ibv_destroy_ah);
        break;
    default:
        END(o->qp[slot].qp, ibv_destroy_qp);
        MUST(!o->qp[slot].qp, HERE);
    }
}

/* Posts a signaled send behind requests that may have no completion. */
static void ops_beacon(struct ops *o, struct ops_qp *q)
{
    struct ibv_send_wr wr = {.wr_id = ops_wr_id(o, q, true, q->sent),
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;

    if (q->qp->qp_type == IBV_QPT_UD) {
        q->odd = q->odd || !o->ah[0];
        wr.wr.ud.ah = o->ah[0];
    }
    q->odd = q->odd || q->sq.outstanding == q->sq.posts;
    if (q->ready && !q->odd) {
        MUST(!ibv_post_send(q->qp, &wr, &bad), HERE);
        q->sent++;
        q->sq.outstanding++;
    }
}

/* Returns whether a request that was posted to a QP in ERR has not completed, and must. The device
 * does not see requests that are posted to a raw packet QP before RTR or in ERR. */
static bool ops_owes(const struct ops *o, const struct ops_qp *q)
{
    bool told = q->qp && q->qp->qp_type != IBV_QPT_RAW_PACKET;

    return q->qp && !q->odd && !o->overrun && o->world->own_events &&
           (q->sq.outstanding || (q->rq.outstanding && told));
}

static bool ops_is_owed(const struct ops *o)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        if (ops_owes(o, &o->qp[i])) {
            return true;
        }
    }
    return false;
}

/* In ERR every posted request completes, unless a CQ has lost completions. */
static void ops_flush(struct ops *o)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

    ops_poll(o);
    for (unsigned i = 0; i < SLOTS; i++) {
        struct ops_qp *q = &o->qp[i];

        if (q->qp && q->qp->state != IBV_QPS_RESET) {
            struct ibv_qp_attr now;
            struct ibv_qp_init_attr init;
            int err;

            /* the queues of a raw packet QP fail separately, and the kernel learns it when it
             * asks */
            ibv_query_qp(q->qp, &now, IBV_QP_STATE, &init);
            err = ibv_modify_qp(q->qp, &attr, IBV_QP_STATE);
            /* and a QP that was never ready does not fail: a rule of the device, which the kernel's
             * own change of state does not know */
            MUST(!err || q->qp->qp_type == IBV_QPT_RAW_PACKET, "type %d in state %d: %d\n",
                 q->qp->qp_type, q->qp->state, err);
            q->odd = q->odd || err;
            ops_beacon(o, q);
        }
    }
    /* a receive queue has no doorbell: in ERR a device checks it now and then */
    for (unsigned rounds = 0; rounds < o->world->flush_polls && ops_is_owed(o); rounds++) {
        ops_poll(o);
    }
    for (unsigned i = 0; i < SLOTS; i++) {
        const struct ops_qp *q = &o->qp[i];

        MUST(!ops_owes(o, q), "type %d: %u sends, %u receives left\n", q->qp->qp_type,
             q->sq.outstanding, q->rq.outstanding);
    }
}

static void ops_end_all(struct ops *o)
{
    ops_flush(o);
    for (unsigned i = 0; i < SLOTS; i++) {
        END(o->qp[i].qp, ibv_destroy_qp);
        END(o->mw[i], ibv_dealloc_mw);
        END(o->ah[i], ibv_destroy_ah);
    }
    for (unsigned i = 0; i < SLOTS; i++) {
        END(o->srq[i].srq, ibv_destroy_srq);
        END(o->wq[i], ibv_destroy_wq);
        END(o->mr[i], ibv_dereg_mr);
    }
    for (unsigned i = 0; i < SLOTS; i++) {
        END(o->cq[i], ibv_destroy_cq);
        MUST(!o->qp[i].qp && !o->mw[i] && !o->ah[i] && !o->srq[i].srq && !o->wq[i] && !o->mr[i] &&
                 !o->cq[i],
             "something cannot be destroyed");
    }
    MUST(!ibv_close_xrcd(o->xrcd), HERE);
}

/* Begins with what gets most inputs past the first checks: a CQ, a region, a connected pair. */
static void ops_begin(struct ops *o)
{
    struct ibv_xrcd_init_attr domain = {.comp_mask =
                                            IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                                        .fd = -1,
                                        .oflags = O_CREAT};

    o->xrcd = ibv_open_xrcd(o->world->ctx, &domain);
    MUST(o->xrcd, HERE);
    for (unsigned i = 0; i < SLOTS / 2; i++) {
        o->cq[i] = ibv_create_cq(o->world->ctx, 255, NULL, NULL, 0);
        MUST(o->cq[i], HERE);
    }
    o->mr[0] =
        ibv_reg_mr(o->world->pd, o->arena, ARENA,
                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                       IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
    MUST(o->mr[0], HERE);
}

void verbs_ops_run(const struct verbs_world *world, const uint8_t *data, size_t size)
{
    static void (*const makers[])(struct ops *) = {ops_cq,     ops_srq,     ops_wq,
                                                   ops_region, ops_address, ops_window};
    struct ops *o = g_new0(struct ops, 1);
    void *arena = NULL;

    MUST(!posix_memalign(&arena, 4096, ARENA), HERE);
    memset(arena, 1, ARENA);
    *o = (struct ops){.world = world, .data = data, .size = size, .arena = arena};
    ops_begin(o);
    while (o->size) {
        uint8_t byte = ops_u8(o), op = byte % 32;

        if (byte >= MORE && world->more) {
            world->more(world, &o->data, &o->size);
        } else if (op < 4) {
            ops_qp(o);
        } else if (op < 10) {
            makers[op - 4](o);
        } else if (op < 17) {
            ops_modify(o, true);
        } else if (op < 18) {
            ops_modify(o, false);
        } else if (op < 22) {
            ops_post_send(o);
        } else if (op < 24) {
            ops_post_recv(o);
        } else if (op < 25) {
            ops_post_srq_recv(o);
        } else if (op < 27) {
            ops_build(o);
        } else if (op < 29) {
            ops_poll(o);
        } else if (op < 30) {
            ops_ask(o);
        } else {
            ops_end(o);
        }
    }
    ops_end_all(o);
    if (world->more_end) {
        world->more_end(world);
    }
    g_free(o);
    free(arena);
}
