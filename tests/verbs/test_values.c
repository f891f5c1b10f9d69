/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests values of a program at the limits and beyond: each gets libmlx5's answer, and none ends the
 * program. */
#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/kernel/events.h"
#include "guest-lib/verbs/user/queues.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

#define MAX_WQE 1024u
#define GID     1 /* the port's IPv4 address */

static struct verbs_table *v;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_xrcd *xrcd;

static void setup(void)
{
    struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 7, .max_sge = 1}};
    struct ibv_xrcd_init_attr domain = {.comp_mask =
                                            IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                                        .fd = -1,
                                        .oflags = O_CREAT};

    v = verbs_table_new();
    pd = v->hosts->host[0].pd;
    cq = ibv_create_cq(v->a, 255, NULL, NULL, 0);
    srq = ibv_create_srq(pd, &srq_attr);
    xrcd = ibv_open_xrcd(v->a, &domain);
    ck_assert(cq && srq && xrcd);
}

static void teardown(void)
{
    ck_assert_int_eq(ibv_close_xrcd(xrcd), 0);
    ck_assert_int_eq(ibv_destroy_srq(srq), 0);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
    verbs_table_free(v);
}

/* -- queues that do not exist ------------------------------------------------------------------ */

static void expect_full(struct ibv_qp *qp, const char *what)
{
    struct ibv_recv_wr recv = {.wr_id = 1}, *bad_recv = NULL;
    struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad_send = NULL;

    ck_assert_msg(ibv_post_recv(qp, &recv, &bad_recv) == ENOMEM, "%s: a receive", what);
    ck_assert_ptr_eq(bad_recv, &recv);
    if (!user_qp(qp)->sq.max_post) {
        ck_assert_msg(ibv_post_send(qp, &send, &bad_send) == ENOMEM, "%s: a send", what);
        ck_assert_ptr_eq(bad_send, &send);
    }
    ck_assert_int_eq(ibv_post_recv(qp, NULL, &bad_recv), 0);
    ck_assert_int_eq(ibv_post_send(qp, NULL, &bad_send), 0);
}

static void to_init(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

    ck_assert_int_eq(
        ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
}

static struct ibv_qp *dct_new(void)
{
    struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_DRIVER,
                                       .send_cq = cq,
                                       .recv_cq = cq,
                                       .srq = srq,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD,
                                       .pd = pd};
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
                                     .dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCT}};

    return hv_dv_create_qp(v->a, &attr, &dv);
}

/* An XRC target's other handles and a DCT also have no doorbell record. */
START_TEST(a_queue_that_is_not_there_is_full)
{
    struct ibv_qp_init_attr_ex target_attr = {
        .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};
    struct ibv_qp *target = ibv_create_qp_ex(v->a, &target_attr), *handle, *dct = dct_new(),
                  *with_srq = table_qp_new(v, 0, cq, srq);
    struct ibv_qp_open_attr open = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
                                                 IBV_QP_OPEN_ATTR_TYPE,
                                    .xrcd = xrcd,
                                    .qp_type = IBV_QPT_XRC_RECV};

    ck_assert(target && dct && with_srq);
    open.qp_num = target->qp_num;
    expect_full(target, "a target in RESET");
    to_init(target);
    handle = ibv_open_qp(v->a, &open);
    ck_assert_ptr_nonnull(handle);
    expect_full(target, "a target");
    expect_full(handle, "a handle on it");
    expect_full(dct, "a DCT in RESET");
    to_init(dct);
    expect_full(dct, "a DCT");
    expect_full(with_srq, "a QP in RESET with an SRQ");
    to_init(with_srq);
    expect_full(with_srq, "a QP with an SRQ");
    ck_assert_int_eq(ibv_destroy_qp(with_srq), 0);
    ck_assert_int_eq(ibv_destroy_qp(dct), 0);
    ck_assert_int_eq(ibv_destroy_qp(handle), 0);
    ck_assert_int_eq(ibv_destroy_qp(target), 0);
}
END_TEST

/* Tests the order of the checks of mlx5_post_send() and mlx5_post_recv(). */
START_TEST(what_is_posted_too_early_is_refused)
{
    struct ibv_qp *qp = table_qp_new(v, 0, cq, NULL);
    struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad_send = NULL;
    struct ibv_recv_wr recv = {.wr_id = 1}, *bad_recv = NULL;

    ck_assert_int_eq(ibv_post_recv(qp, &recv, &bad_recv), EINVAL);
    ck_assert_int_eq(ibv_post_send(qp, &send, &bad_send), ENOMEM);
    send.opcode = (enum ibv_wr_opcode)(IBV_WR_DRIVER1 + 1);
    ck_assert_int_eq(ibv_post_send(qp, &send, &bad_send), EINVAL);
    ck_assert_ptr_eq(bad_send, &send);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* -- the largest WQEs ---------------------------------------------------------------------------
 */

static const struct service {
    enum ibv_qp_type type;
    uint64_t ops;   /* 0: the program declares none */
    uint32_t fixed; /* bytes before the data */
} services[] = {
    {IBV_QPT_RC, 0, 192},
    {IBV_QPT_RC, IBV_QP_EX_WITH_SEND, 16},
    {IBV_QPT_RC, IBV_QP_EX_WITH_RDMA_WRITE, 32},
    {IBV_QPT_UC, 0, 192},
    {IBV_QPT_UC, IBV_QP_EX_WITH_SEND, 16},
    {IBV_QPT_UD, 0, 64},
    {IBV_QPT_UD, IBV_QP_EX_WITH_SEND, 64},
    {IBV_QPT_XRC_SEND, 0, 208},
    {IBV_QPT_XRC_SEND, IBV_QP_EX_WITH_SEND, 32},
    {IBV_QPT_RAW_PACKET, 0, 48},
    {IBV_QPT_RAW_PACKET, IBV_QP_EX_WITH_SEND, 48},
};

/* Returns NULL with errno if it is refused. */
static struct ibv_qp *service_qp(const struct service *s, struct ibv_qp_cap *cap)
{
    struct ibv_qp_init_attr_ex attr = {.qp_type = s->type,
                                       .send_cq = cq,
                                       .recv_cq = cq,
                                       .cap = *cap,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD |
                                                    (s->ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
                                       .send_ops_flags = s->ops,
                                       .sq_sig_all = 1,
                                       .pd = pd};
    struct ibv_qp *qp;

    errno = 0;
    qp = ibv_create_qp_ex(v->a, &attr);
    *cap = attr.cap;
    return qp;
}

START_TEST(what_fits_the_largest_wqe_is_promised_and_no_more)
{
    for (size_t i = 0; i < G_N_ELEMENTS(services); i++) {
        const struct service *s = &services[i];
        uint32_t data = MAX_WQE - s->fixed;
        struct ibv_qp_cap cap = {.max_send_wr = 4, .max_inline_data = data - 4};
        struct ibv_qp *qp = service_qp(s, &cap);

        ck_assert_msg(qp, "service %zu, %u bytes inline: %s", i, data - 4, strerror(errno));
        ck_assert_msg(cap.max_inline_data == data - 4, "service %zu: %u bytes inline", i,
                      cap.max_inline_data);
        ck_assert_int_eq(ibv_destroy_qp(qp), 0);
        cap = (struct ibv_qp_cap){.max_send_wr = 4, .max_inline_data = data - 3};
        ck_assert_ptr_null(service_qp(s, &cap));
        ck_assert_int_eq(errno, EINVAL);
        cap = (struct ibv_qp_cap){.max_send_wr = 4, .max_send_sge = data / 16};
        qp = service_qp(s, &cap);
        ck_assert_msg(qp, "service %zu, %u pieces: %s", i, data / 16, strerror(errno));
        ck_assert_int_eq(ibv_destroy_qp(qp), 0);
        cap = (struct ibv_qp_cap){.max_send_wr = 4, .max_send_sge = data / 16 + 1};
        ck_assert_ptr_null(service_qp(s, &cap));
        ck_assert_int_eq(errno, EINVAL);
    }
}
END_TEST

/* Moves the QP to RTS, without a peer. */
static void to_rts(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    bool raw = qp->qp_type == IBV_QPT_RAW_PACKET;

    if (qp->qp_type != IBV_QPT_UD && !raw) {
        verbs_connect(qp, &v->hosts->host[1], 0x123, NULL);
        return;
    }
    ck_assert_int_eq(ibv_modify_qp(qp, &attr,
                                   IBV_QP_STATE | IBV_QP_PORT |
                                       (raw ? 0 : (int)(IBV_QP_PKEY_INDEX | IBV_QP_QKEY))),
                     0);
    attr.qp_state = IBV_QPS_RTR;
    ck_assert_int_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    attr.qp_state = IBV_QPS_RTS;
    ck_assert_int_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE | (raw ? 0 : IBV_QP_SQ_PSN)), 0);
}

/* Returns the status of a SEND with that many bytes in its WQE: inline, or, if pieces is true,
 * gathered a byte each. */
static enum ibv_wc_status send_status(const struct service *s, uint32_t inline_len, unsigned pieces)
{
    static uint8_t data[2048];
    struct ibv_qp_cap cap = {
        .max_send_wr = 4, .max_send_sge = MAX(pieces, 1), .max_inline_data = inline_len};
    struct ibv_mr *mr = ibv_reg_mr(pd, data, sizeof(data), 0);
    struct ibv_qp *qp = service_qp(s, &cap);
    struct ibv_sge sge[64];
    struct ibv_send_wr wr = {.wr_id = 77,
                             .sg_list = sge,
                             .num_sge = pieces ? (int)pieces : 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = pieces ? 0 : IBV_SEND_INLINE},
                       *bad = NULL;
    struct ibv_ah_attr ah_attr = {
        .is_global = 1,
        .port_num = 1,
        .grh = {.dgid = v->hosts->host[1].config.gid[1], .sgid_index = GID, .hop_limit = 1}};
    struct ibv_ah *ah = ibv_create_ah(pd, &ah_attr);
    struct ibv_wc wc, rest;

    ck_assert(mr && qp && ah);
    for (unsigned i = 0; i < G_N_ELEMENTS(sge); i++) {
        sge[i] = (struct ibv_sge){(uintptr_t)data + i, pieces ? 1 : inline_len, mr->lkey};
    }
    if (s->type == IBV_QPT_UD) {
        wr.wr.ud.ah = ah;
    }
    to_rts(qp);
    ck_assert_int_eq(ibv_post_send(qp, &wr, &bad), 0);
    wc = table_wc(v, cq);
    ck_assert_uint_eq(wc.wr_id, wr.wr_id);
    table_wait(v);
    while (ibv_poll_cq(cq, 1, &rest)) { /* blocks of a WQE without a length */
        ck_assert_int_eq(wc.status, IBV_WC_LOC_QP_OP_ERR);
        ck_assert_int_eq(rest.status, IBV_WC_WR_FLUSH_ERR);
    }
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    ck_assert_int_eq(ibv_destroy_ah(ah), 0);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    return wc.status;
}

/* Datagrams and raw packets complete when they are sent; the connected QPs have no peer. */
START_TEST(a_wqe_may_have_63_units_and_with_64_fails)
{
    for (size_t i = 0; i < G_N_ELEMENTS(services); i++) {
        const struct service *s = &services[i];
        bool alone =
            s->type == IBV_QPT_UD || s->type == IBV_QPT_RAW_PACKET || IBV_QPT_UC == s->type;
        enum ibv_wc_status sent = alone ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR;
        /* a raw packet's segment is a unit shorter than the reserved space if no header is required
         * in it; the connected QPs have no UMR in this WQE */
        uint32_t used = s->type == IBV_QPT_RAW_PACKET ? 32
                        : s->type == IBV_QPT_UD       ? 64
                        : s->type == IBV_QPT_XRC_SEND ? 32
                                                      : 16;
        uint32_t room = MAX_WQE - s->fixed, over = MAX_WQE - used;

        if (s->type == IBV_QPT_XRC_SEND) {
            continue; /* it has no target, and its sums are those of an RC QP plus one unit */
        }
        if (s->type != IBV_QPT_RAW_PACKET) { /* its data is never inline */
            ck_assert_int_eq(send_status(s, MIN(room, over - 16) - 4, 0), sent);
        }
        ck_assert_int_eq(send_status(s, 0, MIN(room, over - 16) / 16), sent);
        if (room == over) {
            ck_assert_int_eq(send_status(s, room - 4, 0), IBV_WC_LOC_QP_OP_ERR);
            ck_assert_int_eq(send_status(s, 0, room / 16), IBV_WC_LOC_QP_OP_ERR);
        }
    }
}
END_TEST

/* The rest of a WQE without room for data, as libmlx5 reports it: a negative int. */
START_TEST(where_there_is_no_room_inline_nothing_is_inline)
{
    const struct service rc = {IBV_QPT_RC, 0, 192};
    struct ibv_qp_cap cap = {.max_send_wr = 4};
    struct ibv_qp *qp = service_qp(&rc, &cap);
    uint8_t byte = 0;
    struct ibv_sge sge = {(uintptr_t)&byte, 1, 0};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_INLINE},
                       *bad;

    ck_assert_ptr_nonnull(qp);
    ck_assert_uint_eq(cap.max_inline_data, (uint32_t)-4);
    to_rts(qp);
    user_qp(qp)->sq.max_gs = 1; /* is checked first */
    ck_assert_int_eq(ibv_post_send(qp, &wr, &bad), ENOMEM);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* mlx5_post_send() counts the pieces of every request, even of a request that uses none. */
START_TEST(too_many_pieces_are_refused_of_any_request)
{
    const struct service rc = {IBV_QPT_RC, 0, 192};
    struct ibv_qp_cap cap = {.max_send_wr = 4, .max_send_sge = 1};
    struct ibv_qp *qp = service_qp(&rc, &cap);
    struct ibv_sge sges[2] = {{0}};
    struct ibv_send_wr wr = {.sg_list = sges, .num_sge = 2}, *bad = NULL;

    ck_assert_ptr_nonnull(qp);
    to_rts(qp);
    for (unsigned op = IBV_WR_RDMA_WRITE; op <= IBV_WR_DRIVER1; op++) {
        wr.opcode = (enum ibv_wr_opcode)op;
        ck_assert_msg(ibv_post_send(qp, &wr, &bad) == ENOMEM, "opcode %u", op);
        ck_assert_ptr_eq(bad, &wr);
    }
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* The sum of these lengths wraps around to a small value. */
START_TEST(inline_lengths_do_not_wrap)
{
    const struct service rc = {IBV_QPT_RC, IBV_QP_EX_WITH_SEND, 16};
    struct ibv_qp_cap cap = {.max_send_wr = 4, .max_send_sge = 2, .max_inline_data = 64};
    struct ibv_qp *qp = service_qp(&rc, &cap);
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
    uint8_t byte[2] = {0};
    const struct ibv_data_buf bufs[] = {{byte, SIZE_MAX}, {byte, 2}, {byte, SIZE_MAX}};

    to_rts(qp);
    for (unsigned first = 0; first < 2; first++) {
        ibv_wr_start(ex);
        ibv_wr_send(ex);
        ibv_wr_set_inline_data_list(ex, 2, bufs + first);
        ck_assert_int_eq(ibv_wr_complete(ex), ENOMEM);
    }
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* mlx5_post_send() puts the pieces of any request into its WQE, and therefore reports what does not
 * fit, even if the operation does not use them. */
START_TEST(pieces_of_a_request_without_data_count)
{
    const struct service rc = {IBV_QPT_RC, 0, 192};
    struct ibv_qp_cap cap = {.max_send_wr = 8, .max_send_sge = 1, .max_inline_data = 64};
    struct ibv_qp *qp = service_qp(&rc, &cap);
    struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
    static uint8_t data[1024];
    struct ibv_sge sge = {(uintptr_t)data, cap.max_inline_data, 0};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_LOCAL_INV,
                             .invalidate_rkey = mw->rkey,
                             .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED},
                       *bad = NULL;

    to_rts(qp);
    ck_assert_int_eq(ibv_post_send(qp, &wr, &bad), 0);
    sge.length++;
    ck_assert_int_eq(ibv_post_send(qp, &wr, &bad), ENOMEM);
    ck_assert_ptr_eq(bad, &wr);
    wr.send_flags = IBV_SEND_SIGNALED;
    ck_assert_int_eq(ibv_post_send(qp, &wr, &bad), 0);
    table_wait(v);
    ck_assert_int_eq(table_wc(v, cq).opcode, IBV_WC_LOCAL_INV);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    ck_assert_int_eq(ibv_dealloc_mw(mw), 0);
}
END_TEST

/* At most tso_caps.max_tso, in all pieces together. */
START_TEST(a_large_send_has_a_limit)
{
    const uint32_t most = 1u << HV_ETH_CAP(v->hca[0], max_lso_cap);
    struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_RAW_PACKET,
                                       .send_cq = cq,
                                       .recv_cq = cq,
                                       .cap = {.max_send_wr = 8, .max_send_sge = 3},
                                       .comp_mask =
                                           IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER,
                                       .pd = pd,
                                       .max_tso_header = 64};
    struct ibv_qp *qp = ibv_create_qp_ex(v->a, &attr);
    struct ibv_sge sge[] = {{0, most - 10, 0}, {0, 0, 0}, {0, 10, 0}};
    uint8_t header[54] = {0};
    struct ibv_send_wr wr = {.sg_list = sge,
                             .num_sge = 3,
                             .opcode = IBV_WR_TSO,
                             .tso = {header, sizeof(header), 1000}},
                       *bad = NULL;

    to_rts(qp);
    sge[2].length = 11;
    ck_assert_int_eq(ibv_post_send(qp, &wr, &bad), EINVAL);
    ck_assert_ptr_eq(bad, &wr);
    sge[2].length = 10;
    ck_assert_int_eq(ibv_post_send(qp, &wr, &bad), 0);
    wr.opcode = IBV_WR_SEND; /* a SEND has its own limit, the device's */
    sge[2].length = 11;
    ck_assert_int_eq(ibv_post_send(qp, &wr, &bad), 0);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* mlx5_post_send() subtracts the data of a large send from max_tso, which is 0 unless the QP is one
 * of raw packets. */
START_TEST(a_connected_qp_has_no_large_send)
{
    const struct service rc = {IBV_QPT_RC, 0, 192};
    struct ibv_qp_cap cap = {.max_send_wr = 8, .max_send_sge = 2};
    struct ibv_qp *qp = service_qp(&rc, &cap);
    struct ibv_sge sge[] = {{0, 0, 0}, {0, 1, 0}};
    struct ibv_send_wr wr = {.sg_list = sge, .num_sge = 2, .opcode = IBV_WR_TSO}, *bad = NULL;

    to_rts(qp);
    ck_assert_int_eq(ibv_post_send(qp, &wr, &bad), EINVAL);
    ck_assert_ptr_eq(bad, &wr);
    /* Without data it is posted, and the device refuses the WQE. */
    wr.num_sge = 1;
    ck_assert_int_eq(ibv_post_send(qp, &wr, &bad), 0);
    table_wait(v);
    ck_assert_int_eq(table_wc(v, cq).status, IBV_WC_LOC_QP_OP_ERR);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* A setter without a request writes into no WQE, whether or not there was one before. */
START_TEST(a_setter_without_a_request_is_refused)
{
    const struct service ud = {IBV_QPT_UD, IBV_QP_EX_WITH_SEND, 64};
    struct ibv_ah_attr ah_attr = {
        .is_global = 1, .port_num = 1, .grh = {.sgid_index = GID, .hop_limit = 1}};
    struct ibv_qp_cap cap = {.max_send_wr = 4, .max_send_sge = 1};
    struct ibv_qp *qp = service_qp(&ud, &cap);
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
    struct ibv_ah *ah;

    ah_attr.grh.dgid = v->hosts->host[1].config.gid[1];
    ah = ibv_create_ah(pd, &ah_attr);
    ck_assert_ptr_nonnull(ah);
    to_rts(qp);
    for (int i = 0; i < 2; i++) {
        ibv_wr_start(ex);
        ibv_wr_set_ud_addr(ex, ah, 1, 0);
        ck_assert_int_eq(ibv_wr_complete(ex), EINVAL);
        ibv_wr_start(ex);
        ibv_wr_set_sge(ex, 0, 0, 16);
        ck_assert_int_eq(ibv_wr_complete(ex), EINVAL);
        ibv_wr_start(ex);
        ibv_wr_send(ex);
        ibv_wr_set_sge(ex, 0, 0, 0);
        ibv_wr_set_ud_addr(ex, ah, 1, 0);
        ck_assert_int_eq(ibv_wr_complete(ex), 0);
    }
    ck_assert_int_eq(table_wc(v, cq).status, IBV_WC_SUCCESS);
    ck_assert_int_eq(table_wc(v, cq).status, IBV_WC_SUCCESS);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    ck_assert_int_eq(ibv_destroy_ah(ah), 0);
}
END_TEST

/* -- attributes that are not used -------------------------------------------------------------- */

/* create_qp() of libmlx5: which of two mistakes is reported, and which attributes are checked
 * although the QP does not use them. */
START_TEST(attributes_are_looked_at_in_libmlx5s_order)
{
    const uint32_t too_many = (1u << HV_CAP(v->hca[0], log_max_qp_sz)) + 1;
    const uint32_t ops = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, flags = IBV_QP_INIT_ATTR_CREATE_FLAGS;
    const struct {
        enum ibv_qp_type type;
        struct ibv_qp_cap cap;
        bool srq;
        uint32_t mask;
        uint64_t ops;
        uint32_t flags;
        int err;
    } tries[] = {
        {IBV_QPT_RC, {1, 65536, 1, 1, 0}, true, 0, 0, 0, EINVAL},
        {IBV_QPT_RC, {1, too_many, 1, 1, 0}, true, 0, 0, 0, EINVAL},
        {IBV_QPT_RC, {1, too_many - 1, 1, 1, 0}, true, 0, 0, 0, 0},
        {IBV_QPT_RC, {1, 1, 1, 1000, 0}, true, 0, 0, 0, 0},
        {IBV_QPT_RC, {0, 1, 1000, 1, 10000}, true, 0, 0, 0, 0},
        {IBV_QPT_XRC_SEND, {1, too_many, 1, 1, 0}, false, 0, 0, 0, EINVAL},
        {IBV_QPT_XRC_SEND, {1, 1, 1, 1000, 0}, false, 0, 0, 0, EINVAL},
        {IBV_QPT_XRC_SEND, {1, 1, 1, 1, 0}, false, 0, 0, 0, 0},
        {IBV_QPT_XRC_RECV, {too_many, 1, 1, 1, 0}, false, 0, 0, 0, EINVAL},
        {IBV_QPT_XRC_RECV, {1, too_many, 1, 1, 0}, false, 0, 0, 0, EINVAL},
        {IBV_QPT_XRC_RECV, {1, 1, 1, 1, 4096}, false, 0, 0, 0, EINVAL},
        {IBV_QPT_XRC_RECV, {1, 1, 1, 1, 0}, false, 0, 0, 0, 0},
        /* two mistakes each */
        {IBV_QPT_UD, {too_many, 1, 1, 1, 0}, false, ops, IBV_QP_EX_WITH_RDMA_READ, 0, EOPNOTSUPP},
        {IBV_QPT_UD, {too_many, 1, 1, 1, 0}, false, flags, 0, IBV_QP_CREATE_SCATTER_FCS, EINVAL},
        {IBV_QPT_UD, {1, 1, 1, 1, 0}, false, flags, 0, IBV_QP_CREATE_SCATTER_FCS, EOPNOTSUPP},
        {IBV_QPT_UD, {1, 1, 1, 1, 0}, false, flags, 0, 1u << 20, EINVAL},
        {IBV_QPT_RC, {1, 1, 1, 1, 0}, false, flags, 0, IBV_QP_CREATE_SOURCE_QPN, EINVAL},
        {IBV_QPT_XRC_RECV, {1, 1, 1, 1, 0}, false, ops, 0, 0, EOPNOTSUPP},
        {(enum ibv_qp_type)5, {1, 1, 1, 1, 0}, false, 0, 0, 0, EINVAL},
        {(enum ibv_qp_type)5, {1, 1, 0, 1, 0}, false, 0, 0, 0, EINVAL},
        {(enum ibv_qp_type)5, {0}, false, 0, 0, 0, EINVAL},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(tries); i++) {
        bool tgt = tries[i].type == IBV_QPT_XRC_RECV;
        struct ibv_qp_init_attr_ex attr = {
            .qp_type = tries[i].type,
            .send_cq = cq,
            .recv_cq = cq,
            .srq = tries[i].srq ? srq : NULL,
            .cap = tries[i].cap,
            .comp_mask = tries[i].mask | (tgt ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD),
            .send_ops_flags = tries[i].ops,
            .create_flags = tries[i].flags,
            .pd = pd,
            .xrcd = xrcd};
        struct ibv_qp *qp;

        errno = 0;
        qp = ibv_create_qp_ex(v->a, &attr);
        ck_assert_msg(qp ? !tries[i].err : errno == tries[i].err, "try %zu: %s", i,
                      qp ? "made" : strerror(errno));
        if (qp) {
            ck_assert_msg(attr.cap.max_recv_wr == (tries[i].srq ? 0 : 4), "try %zu: %u receives", i,
                          attr.cap.max_recv_wr);
            ck_assert_int_eq(ibv_destroy_qp(qp), 0);
        }
    }
}
END_TEST

/* mlx5_create_srq_ex(), then ibv_cmd_create_srq_ex(): which of two mistakes is reported. For an
 * ordinary SRQ the other attributes are not checked (mlx5_create_srq()). */
START_TEST(an_srqs_attributes_are_looked_at_in_libmlx5s_order)
{
    const uint32_t type = IBV_SRQ_INIT_ATTR_TYPE, in_pd = IBV_SRQ_INIT_ATTR_PD,
                   of_cq = IBV_SRQ_INIT_ATTR_CQ, domain = IBV_SRQ_INIT_ATTR_XRCD,
                   tm = IBV_SRQ_INIT_ATTR_TM, unknown = IBV_SRQ_INIT_ATTR_RESERVED;
    const uint32_t xrc = type | in_pd | of_cq | domain, tags = type | in_pd | of_cq | tm;
    const uint32_t many = 1u << HV_CAP(v->hca[0], log_max_srq_sz);
    struct ibv_cq_init_attr_ex ex_attr = {.cqe = 15};
    struct ibv_cq *ex = ibv_cq_ex_to_cq(ibv_create_cq_ex(v->a, &ex_attr));
    const struct {
        enum ibv_srq_type type;
        uint32_t mask, max_wr, tags;
        struct ibv_cq *cq;
        int err;
    } tries[] = {
        {IBV_SRQT_BASIC, in_pd, 4, 0, NULL, 0},
        {IBV_SRQT_BASIC, type, 4, 0, NULL, 0},
        {IBV_SRQT_BASIC, type | in_pd | unknown, 4, 0, NULL, 0},
        {IBV_SRQT_BASIC, type | in_pd | unknown, many, 0, NULL, EINVAL},
        {IBV_SRQT_XRC, 0, 4, 0, NULL, 0}, /* without a type */
        {IBV_SRQT_XRC, xrc, 4, 0, cq, 0},
        {IBV_SRQT_XRC, xrc | unknown, 4, 0, cq, EOPNOTSUPP},
        {IBV_SRQT_XRC, xrc | unknown, many, 0, cq, EINVAL},
        {IBV_SRQT_XRC, (xrc | unknown) & ~in_pd, 4, 0, cq, EOPNOTSUPP},
        {IBV_SRQT_XRC, xrc & ~in_pd, 4, 0, cq, EINVAL},
        {IBV_SRQT_XRC, xrc & ~of_cq, 4, 0, cq, EINVAL},
        {IBV_SRQT_XRC, xrc & ~domain, 4, 0, cq, EINVAL},
        {IBV_SRQT_TM, tags, 4, 8, ex, 0},
        {IBV_SRQT_TM, tags, 4, 0, ex, EINVAL},
        {IBV_SRQT_TM, tags & ~tm, 4, 8, ex, EINVAL},
        {IBV_SRQT_TM, tags | unknown, 4, 0, ex, EOPNOTSUPP},
        {IBV_SRQT_TM, tags | unknown, 4, 8, cq, EINVAL}, /* not an extended CQ */
        {IBV_SRQT_TM, tags | unknown, 4, 8, NULL, EINVAL},
        {(enum ibv_srq_type)3, xrc | unknown, 4, 0, cq, EINVAL},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(tries); i++) {
        struct ibv_srq_init_attr_ex attr = {.attr = {.max_wr = tries[i].max_wr, .max_sge = 1},
                                            .comp_mask = tries[i].mask,
                                            .srq_type = tries[i].type,
                                            .pd = pd,
                                            .xrcd = xrcd,
                                            .cq = tries[i].cq,
                                            .tm_cap = {tries[i].tags, 4}};
        struct ibv_srq *made;

        errno = 0;
        made = ibv_create_srq_ex(v->a, &attr);
        ck_assert_msg(made ? !tries[i].err : errno == tries[i].err, "try %zu: %s", i,
                      made ? "made" : strerror(errno));
        if (made) {
            ck_assert_int_eq(ibv_destroy_srq(made), 0);
        }
    }
    ck_assert_int_eq(ibv_destroy_cq(ex), 0);
}
END_TEST

static struct ibv_wq *wq_new(void)
{
    struct ibv_wq_init_attr attr = {
        .wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1, .pd = pd, .cq = cq};

    return ibv_create_wq(v->a, &attr);
}

/* mlx5_calc_rwq_size() comes before the checks of the flags by libibverbs and the kernel. */
START_TEST(a_wqs_attributes_are_looked_at_in_libmlx5s_order)
{
    const struct {
        uint32_t max_wr, comp_mask, flags;
        int err;
    } tries[] = {
        {0, IBV_WQ_INIT_ATTR_FLAGS, IBV_WQ_FLAGS_SCATTER_FCS, EINVAL},
        {4, IBV_WQ_INIT_ATTR_FLAGS, IBV_WQ_FLAGS_PCI_WRITE_END_PADDING << 1, EOPNOTSUPP},
        {4, IBV_WQ_INIT_ATTR_RESERVED, 0, EINVAL},
    };
    struct ibv_wq *wq = wq_new();
    struct ibv_wq_attr attr = {.attr_mask = 0};

    for (size_t i = 0; i < G_N_ELEMENTS(tries); i++) {
        struct ibv_wq_init_attr init = {.wq_type = IBV_WQT_RQ,
                                        .max_wr = tries[i].max_wr,
                                        .max_sge = 1,
                                        .pd = pd,
                                        .cq = cq,
                                        .comp_mask = tries[i].comp_mask,
                                        .create_flags = tries[i].flags};

        errno = 0;
        ck_assert_ptr_null(ibv_create_wq(v->a, &init));
        ck_assert_msg(errno == tries[i].err, "try %zu: %s", i, strerror(errno));
    }
    ck_assert_ptr_nonnull(wq);
    ck_assert_int_eq(ibv_modify_wq(wq, &attr), EINVAL);
    attr.attr_mask = IBV_WQ_ATTR_RESERVED;
    ck_assert_int_eq(ibv_modify_wq(wq, &attr), EINVAL);
    ck_assert_int_eq(ibv_destroy_wq(wq), 0);
}
END_TEST

/* -- contents of the structures ---------------------------------------------------------------- */

/* Simulates the next asynchronous event, and acknowledges it. */
static void async_event(uint8_t type, uint32_t num, enum ibv_event_type expected)
{
    const struct drv_event event = {.type = type, .num = num};
    struct ibv_async_event got;

    hv_events_dispatch(v->hca[0], &event);
    ck_assert_int_eq(ibv_get_async_event(v->a, &got), 0);
    ck_assert_int_eq(got.event_type, expected);
    ibv_ack_async_event(&got);
}

/* libibverbs counts acknowledged events in the objects, and programs read them there. */
START_TEST(acknowledged_events_are_counted_in_the_object)
{
    struct ibv_qp *qp = table_qp_new(v, 0, cq, srq);
    struct ibv_wq *wq = wq_new();

    ck_assert_ptr_nonnull(wq);
    for (uint32_t i = 1; i <= 2; i++) {
        async_event(PRM_EVENT_TYPE_COMM_EST, qp->qp_num, IBV_EVENT_COMM_EST);
        ck_assert_uint_eq(qp->events_completed, i);
        async_event(PRM_EVENT_TYPE_CQ_ERROR, hv_cq(cq)->cqn, IBV_EVENT_CQ_ERR);
        ck_assert_uint_eq(cq->async_events_completed, i);
        async_event(PRM_EVENT_TYPE_SRQ_RQ_LIMIT, hv_srq(srq)->srqn, IBV_EVENT_SRQ_LIMIT_REACHED);
        ck_assert_uint_eq(srq->events_completed, i);
        async_event(PRM_EVENT_TYPE_WQ_CATAS_ERROR, wq->wq_num, IBV_EVENT_WQ_FATAL);
        ck_assert_uint_eq(wq->events_completed, i);
    }
    ck_assert_uint_eq(cq->comp_events_completed, 0);
    ck_assert_int_eq(ibv_destroy_wq(wq), 0);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* Several at once. */
START_TEST(completion_events_are_acknowledged_together)
{
    struct ibv_comp_channel *channel = ibv_create_comp_channel(v->a);
    struct ibv_cq *own = ibv_create_cq(v->a, 15, NULL, channel, 0), *of;
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RAW_PACKET,
                                    .send_cq = own,
                                    .recv_cq = own,
                                    .sq_sig_all = 1,
                                    .cap = {.max_send_wr = 4, .max_send_sge = 1}};
    struct ibv_qp *qp = ibv_create_qp(pd, &attr);
    struct ibv_mr *mr = table_mr_new(v, 0);
    struct ibv_sge sge = {(uintptr_t)mr->addr, 64, mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    void *context;

    ck_assert(channel && own && qp);
    table_do_not_wait(channel->fd);
    to_rts(qp);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(ibv_req_notify_cq(own, 0), 0);
        ck_assert_int_eq(ibv_post_send(qp, &wr, &bad), 0);
        table_wait(v);
        ck_assert_int_eq(table_wc(v, own).status, IBV_WC_SUCCESS);
        ck_assert_int_eq(ibv_get_cq_event(channel, &of, &context), 0);
    }
    ck_assert_uint_eq(own->comp_events_completed, 0);
    ibv_ack_cq_events(own, 2);
    ck_assert_uint_eq(own->comp_events_completed, 2);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    ck_assert_int_eq(ibv_destroy_cq(own), 0);
    ck_assert_int_eq(ibv_destroy_comp_channel(channel), 0);
    table_mr_free(mr);
}
END_TEST

static gint gone;

static void *destroy_thread(void *qp)
{
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    g_atomic_int_set(&gone, 1);
    return NULL;
}

/* ibv_destroy_qp(3): it waits for the acknowledgement of each delivered event. */
START_TEST(an_object_goes_when_its_events_are_acknowledged)
{
    struct ibv_qp *qp = table_qp_new(v, 0, cq, srq);
    const struct drv_event event = {.type = PRM_EVENT_TYPE_COMM_EST, .num = qp->qp_num};
    struct ibv_async_event got[2];
    pthread_t thread;

    for (int i = 0; i < 2; i++) {
        hv_events_dispatch(v->hca[0], &event);
        ck_assert_int_eq(ibv_get_async_event(v->a, &got[i]), 0);
    }
    ibv_ack_async_event(&got[0]);
    ck_assert_int_eq(pthread_create(&thread, NULL, destroy_thread, qp), 0);
    g_usleep(100000);
    ck_assert_int_eq(g_atomic_int_get(&gone), 0);
    ibv_ack_async_event(&got[1]);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(g_atomic_int_get(&gone), 1);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("values");
    TCase *tc = tcase_create("values");

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_queue_that_is_not_there_is_full);
    tcase_add_test(tc, what_is_posted_too_early_is_refused);
    tcase_add_test(tc, what_fits_the_largest_wqe_is_promised_and_no_more);
    tcase_add_test(tc, a_wqe_may_have_63_units_and_with_64_fails);
    tcase_add_test(tc, where_there_is_no_room_inline_nothing_is_inline);
    tcase_add_test(tc, too_many_pieces_are_refused_of_any_request);
    tcase_add_test(tc, inline_lengths_do_not_wrap);
    tcase_add_test(tc, pieces_of_a_request_without_data_count);
    tcase_add_test(tc, a_large_send_has_a_limit);
    tcase_add_test(tc, a_connected_qp_has_no_large_send);
    tcase_add_test(tc, a_setter_without_a_request_is_refused);
    tcase_add_test(tc, attributes_are_looked_at_in_libmlx5s_order);
    tcase_add_test(tc, an_srqs_attributes_are_looked_at_in_libmlx5s_order);
    tcase_add_test(tc, a_wqs_attributes_are_looked_at_in_libmlx5s_order);
    tcase_add_test(tc, acknowledged_events_are_counted_in_the_object);
    tcase_add_test(tc, completion_events_are_acknowledged_together);
    tcase_add_test(tc, an_object_goes_when_its_events_are_acknowledged);
    suite_add_tcase(suite, tc);
    return suite;
}
