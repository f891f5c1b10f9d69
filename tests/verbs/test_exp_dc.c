/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests DC in the experimental verbs: what a program learns of a target, its events, inline
 * receive, out-of-order data, the trace of refused connections. The rules are those of libibverbs
 * and the kernel of MLNX_OFED 4.6, and docs/adr/0033-dc-of-the-experimental-verbs.md. */
#include <check.h>
#include <stdlib.h>
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/exp/dct.h"
#include "guest-lib/verbs/kernel/uverbs.h"
#include "guest-lib/verbs/user/device.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

#define KEY 0x1234567890abcdefull
#define LEN 20

static struct verbs_table *v;
static struct ibv_pd *pd; /* of the target's host */
static struct ibv_cq *ini_cq, *cq;
static struct ibv_srq *srq;
static struct ibv_mr *here, *there;
static struct ibv_ah *ah;

static void begin(const char *profile)
{
    struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 7, .max_sge = 1}};
    struct ibv_ah_attr path = {
        .is_global = 1, .port_num = 1, .grh = {.sgid_index = 1, .hop_limit = 64}};

    v = verbs_table_on(verbs_hosts_new_as(2, NULL, profile));
    pd = v->hosts->host[1].pd;
    ini_cq = ibv_create_cq(v->a, 63, NULL, NULL, 0);
    cq = ibv_create_cq(v->b, 63, NULL, NULL, 0);
    srq = ibv_create_srq(pd, &srq_attr);
    here = table_mr_new(v, 0);
    there = table_mr_new(v, 1);
    ck_assert_int_eq(ibv_query_gid(v->b, 1, 1, &path.grh.dgid), 0);
    ah = ibv_create_ah(v->hosts->host[0].pd, &path);
    ck_assert(srq && ah);
}

static void setup(void)
{
    begin("cx6dx");
}

static void teardown(void)
{
    ck_assert_int_eq(ibv_destroy_ah(ah), 0);
    table_mr_free(there);
    table_mr_free(here);
    ck_assert_int_eq(ibv_destroy_srq(srq), 0);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
    ck_assert_int_eq(ibv_destroy_cq(ini_cq), 0);
    verbs_table_free(v);
}

/* -- targets and initiators -------------------------------------------------------------------- */

static struct ibv_exp_dct_init_attr some_attr(void)
{
    return (struct ibv_exp_dct_init_attr){
        .pd = pd,
        .cq = cq,
        .srq = srq,
        .dc_key = KEY,
        .port = 1,
        .access_flags = IBV_ACCESS_REMOTE_WRITE,
        .min_rnr_timer = 2,
        .tclass = 0x20,
        .flow_label = 0x54321,
        .mtu = IBV_MTU_1024,
        .gid_index = 1,
        .hop_limit = 64,
    };
}

static struct ibv_exp_dct *target(void)
{
    struct ibv_exp_dct_init_attr attr = some_attr();
    struct ibv_exp_dct *dct = ibv_exp_create_dct(v->b, &attr);

    ck_assert_ptr_nonnull(dct);
    return dct;
}

static void expect_refused(struct ibv_exp_dct_init_attr attr)
{
    errno = 0;
    ck_assert_ptr_null(ibv_exp_create_dct(v->b, &attr));
    ck_assert_int_eq(errno, EINVAL);
}

static struct prm_dctc context_of(struct ibv_exp_dct *dct)
{
    struct prm_dctc dctc;

    ck_assert_int_eq(uverbs_query_dct(&hv_exp_dct(dct)->qp->hv, &dctc), 0);
    return dctc;
}

static struct ibv_qp *initiator(void)
{
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_DRIVER,
        .send_cq = ini_cq,
        .recv_cq = ini_cq,
        .cap = {.max_send_wr = 4, .max_send_sge = 1},
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE,
        .pd = v->hosts->host[0].pd};
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
                                     .dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCI}};
    struct ibv_qp_attr to = {.qp_state = IBV_QPS_INIT,
                             .port_num = 1,
                             .path_mtu = IBV_MTU_1024,
                             .timeout = 14,
                             .retry_cnt = 1,
                             .rnr_retry = 7};
    struct ibv_qp *qp = hv_dv_create_qp(v->a, &attr, &dv);

    ck_assert_ptr_nonnull(qp);
    ck_assert_int_eq(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT), 0);
    to.qp_state = IBV_QPS_RTR;
    ck_assert_int_eq(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PATH_MTU), 0);
    to.qp_state = IBV_QPS_RTS;
    ck_assert_int_eq(ibv_modify_qp(qp, &to,
                                   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                       IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_SQ_PSN),
                     0);
    return qp;
}

/* Sends a message, or writes to rkey if it is not 0, and returns the status. The initiator is a new
 * one, because an error ends it. */
static enum ibv_wc_status say(const struct ibv_exp_dct *dct, uint64_t key, uint32_t rkey)
{
    struct ibv_qp *qp = initiator();
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
    struct mlx5dv_qp_ex *dv = hv_dv_qp_ex_from_ibv_qp_ex(ex);
    enum ibv_wc_status status;

    ibv_wr_start(ex);
    ex->wr_flags = IBV_SEND_SIGNALED;
    if (rkey) {
        ibv_wr_rdma_write(ex, rkey, (uintptr_t)there->addr);
    } else {
        ibv_wr_send(ex);
    }
    mlx5dv_wr_set_dc_addr(dv, ah, dct->dct_num, key);
    ibv_wr_set_sge(ex, here->lkey, (uintptr_t)here->addr, LEN);
    ck_assert_int_eq(ibv_wr_complete(ex), 0);
    status = table_wc(v, ini_cq).status;
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    return status;
}

static void expect_receive(void)
{
    struct ibv_sge sge = {(uintptr_t)there->addr, LEN, there->lkey};
    struct ibv_recv_wr wr = {.wr_id = 9, .sg_list = &sge, .num_sge = 1}, *bad;

    ck_assert_int_eq(ibv_post_srq_recv(srq, &wr, &bad), 0);
}

static void arm(struct ibv_exp_dct *dct)
{
    struct ibv_exp_arm_attr attr = {0};

    ck_assert_int_eq(ibv_exp_arm_dct(dct, &attr), 0);
}

static void expect_event(enum ibv_event_type type, const struct ibv_exp_dct *dct)
{
    struct ibv_async_event got;

    ck_assert_int_eq(ibv_get_async_event(v->b, &got), 0);
    ck_assert_int_eq(got.event_type, type);
    ck_assert_ptr_eq((void *)got.element.qp, dct);
    ibv_ack_async_event(&got);
}

static void expect_no_event(void)
{
    struct ibv_async_event got;

    ck_assert_int_ne(ibv_get_async_event(v->b, &got), 0);
}

static uint32_t violations(struct ibv_exp_dct *dct)
{
    struct ibv_exp_dct_attr attr = {0};

    ck_assert_int_eq(ibv_exp_query_dct(dct, &attr), 0);
    return attr.key_violations;
}

/* -- creation and queries ---------------------------------------------------------------------- */

/* ib_uverbs_exp_query_dct(), mlx5_query_dct() */
START_TEST(a_query_tells_what_was_asked_for)
{
    struct ibv_exp_dct *dct = target();
    struct ibv_exp_dct_attr got = {0};

    ck_assert_uint_ne(dct->dct_num, 0);
    ck_assert(dct->context == v->b && dct->pd == pd && dct->cq == cq && dct->srq == srq);
    ck_assert_int_eq(ibv_exp_query_dct(dct, &got), 0);
    ck_assert_uint_eq(got.dc_key, KEY);
    ck_assert_uint_eq(got.port, 1);
    ck_assert_uint_eq(got.access_flags, IBV_ACCESS_REMOTE_WRITE);
    ck_assert_uint_eq(got.min_rnr_timer, 2);
    ck_assert_uint_eq(got.tclass, 0x20);
    ck_assert_uint_eq(got.flow_label, 0x54321);
    ck_assert_int_eq(got.mtu, IBV_MTU_1024);
    ck_assert_uint_eq(got.pkey_index, 0);
    ck_assert_uint_eq(got.gid_index, 1);
    ck_assert_uint_eq(got.hop_limit, 64);
    ck_assert_uint_eq(got.key_violations, 0);
    ck_assert_uint_eq(got.state, IBV_EXP_DCT_STATE_ACTIVE);
    ck_assert(got.srq == srq && got.cq == cq && got.pd == pd);
    ck_assert_int_eq(ibv_destroy_srq(srq), EBUSY);
    ck_assert_int_eq(ibv_exp_destroy_dct(dct), 0);
}
END_TEST

START_TEST(what_makes_no_dct_is_refused)
{
    struct ibv_exp_dct_init_attr attr = some_attr();
    struct ibv_exp_dct *dct;

    attr.srq = NULL;
    expect_refused(attr);
    attr = some_attr();
    attr.port = 2;
    expect_refused(attr);
    attr = some_attr();
    attr.create_flags = IBV_EXP_DCT_OOO_RW_DATA_PLACEMENT << 1;
    expect_refused(attr);
    attr = some_attr();
    attr.comp_mask = 1;
    expect_refused(attr);
    attr = some_attr();
    attr.pkey_index = 200;
    expect_refused(attr);
    attr = some_attr();
    attr.mtu = (enum ibv_mtu)9;
    expect_refused(attr);
    dct = target();
    ck_assert_int_eq(ibv_exp_arm_dct(dct, &(struct ibv_exp_arm_attr){.comp_mask = 1}), EINVAL);
    ck_assert_int_eq(ibv_exp_destroy_dct(dct), 0);
}
END_TEST

START_TEST(a_dct_of_a_removed_device_ends)
{
    struct ibv_exp_dct *dct = target();
    struct ibv_exp_dct_attr got = {0};

    hv_device_remove(v->b->device);
    ck_assert_int_eq(ibv_exp_query_dct(dct, &got), EIO);
    ck_assert_int_eq(ibv_exp_arm_dct(dct, &(struct ibv_exp_arm_attr){0}), EIO);
    ck_assert_int_eq(ibv_exp_destroy_dct(dct), 0);
}
END_TEST

/* -- events ------------------------------------------------------------------------------------ */

/* ARM_DCT_FOR_KEY_VIOLATION asks for one event; each CONNECT with another key is counted. */
START_TEST(a_wrong_key_raises_an_event_once_armed)
{
    struct ibv_exp_dct *dct = target();
    uint32_t counted;

    ck_assert_int_eq(say(dct, KEY + 1, 0), IBV_WC_RETRY_EXC_ERR);
    expect_no_event(); /* nobody asked for it */
    counted = violations(dct);
    ck_assert_uint_gt(counted, 0);
    arm(dct);
    ck_assert_int_eq(say(dct, KEY + 1, 0), IBV_WC_RETRY_EXC_ERR);
    expect_event(IBV_EXP_EVENT_DCT_KEY_VIOLATION, dct);
    expect_no_event(); /* although the initiator tried again */
    ck_assert_uint_eq(violations(dct), 2 * counted);
    arm(dct);
    expect_receive();
    ck_assert_int_eq(say(dct, KEY, 0), IBV_WC_SUCCESS);
    ck_assert_uint_eq(table_wc(v, cq).qp_num, dct->dct_num);
    expect_no_event();
    ck_assert_int_eq(say(dct, KEY - 1, 0), IBV_WC_RETRY_EXC_ERR);
    expect_event(IBV_EXP_EVENT_DCT_KEY_VIOLATION, dct);
    ck_assert_int_eq(ibv_exp_destroy_dct(dct), 0);
}
END_TEST

/* mlx5_ib_dct_event() */
START_TEST(a_wrong_rkey_is_an_event_of_the_dct)
{
    struct ibv_exp_dct *dct = target();

    ck_assert_int_eq(say(dct, KEY, there->rkey), IBV_WC_SUCCESS);
    ck_assert_mem_eq(there->addr, here->addr, LEN);
    expect_no_event();
    ck_assert_int_eq(say(dct, KEY, there->rkey + 0x100), IBV_WC_REM_ACCESS_ERR);
    expect_event(IBV_EXP_EVENT_DCT_ACCESS_ERR, dct);
    expect_no_event();
    ck_assert_int_eq(ibv_exp_destroy_dct(dct), 0);
}
END_TEST

/* Events that the program has not read go with their DCT; another DCT's stay. */
START_TEST(unread_events_end_with_their_dct)
{
    struct ibv_exp_dct *first = target(), *second = target();

    arm(first);
    arm(second);
    ck_assert_int_eq(say(first, KEY + 1, 0), IBV_WC_RETRY_EXC_ERR);
    ck_assert_int_eq(say(second, KEY + 1, 0), IBV_WC_RETRY_EXC_ERR);
    ck_assert_int_eq(ibv_exp_destroy_dct(first), 0);
    expect_event(IBV_EXP_EVENT_DCT_KEY_VIOLATION, second);
    expect_no_event();
    ck_assert_int_eq(ibv_exp_destroy_dct(second), 0);
}
END_TEST

/* -- inline receive, out-of-order data --------------------------------------------------------- */

/* dct_create_qp(): 64 bytes if the CQEs have 128, else none. */
START_TEST(inline_receive_needs_cqes_of_128_bytes)
{
    struct ibv_cq_init_attr_ex plain = {.cqe = 63};
    struct mlx5dv_cq_init_attr dv = {.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE,
                                     .cqe_size = 128};
    struct ibv_cq *large = ibv_cq_ex_to_cq(hv_dv_create_cq(v->b, &plain, &dv));
    struct ibv_exp_dct_init_attr attr = some_attr();
    struct ibv_exp_dct *dct;
    struct prm_dctc dctc;

    attr.inline_size = 20;
    dct = ibv_exp_create_dct(v->b, &attr);
    ck_assert_ptr_nonnull(dct);
    ck_assert_uint_eq(attr.inline_size, 0);
    dctc = context_of(dct);
    ck_assert_uint_eq(PRM_GET(dctc, &dctc, cs_res), 0);
    ck_assert_int_eq(ibv_exp_destroy_dct(dct), 0);

    attr.cq = large;
    ck_assert_uint_eq(attr.inline_size, 0); /* not asked for */
    dct = ibv_exp_create_dct(v->b, &attr);
    dctc = context_of(dct);
    ck_assert_uint_eq(PRM_GET(dctc, &dctc, cs_res), 0);
    ck_assert_int_eq(ibv_exp_destroy_dct(dct), 0);

    attr.inline_size = 1;
    dct = ibv_exp_create_dct(v->b, &attr);
    ck_assert_uint_eq(attr.inline_size, 64);
    dctc = context_of(dct);
    ck_assert_uint_eq(PRM_GET(dctc, &dctc, cs_res), PRM_CS_RES_UP_TO_64B);
    expect_receive();
    ck_assert_int_eq(say(dct, KEY, 0), IBV_WC_SUCCESS);
    ck_assert_uint_eq(table_wc(v, large).byte_len, LEN);
    ck_assert_mem_eq(there->addr, here->addr, LEN);
    ck_assert_int_eq(ibv_exp_destroy_dct(dct), 0);
    ck_assert_int_eq(ibv_destroy_cq(large), 0);
}
END_TEST

/* IBV_EXP_DCT_OOO_RW_DATA_PLACEMENT: READs and WRITEs, whatever the port's setting is; atomics have
 * 8 bytes at most (get_atomic_mode()). */
START_TEST(data_of_a_dct_may_come_out_of_order)
{
    struct ibv_exp_dct_init_attr attr = some_attr();
    struct ibv_exp_dct *dct;
    struct prm_dctc dctc;

    attr.create_flags = IBV_EXP_DCT_OOO_RW_DATA_PLACEMENT;
    attr.access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
    dct = ibv_exp_create_dct(v->b, &attr);
    ck_assert_ptr_nonnull(dct);
    dctc = context_of(dct);
    ck_assert_uint_eq(PRM_GET(dctc, &dctc, dp_ordering_0), 1);
    ck_assert_uint_eq(PRM_GET(dctc, &dctc, dp_ordering_1), 0);
    ck_assert_uint_eq(PRM_GET(dctc, &dctc, dp_ordering_force), 1);
    ck_assert_uint_eq(PRM_GET(dctc, &dctc, atomic_mode), PRM_ATOMIC_MODE_UP_TO_8B);
    ck_assert_int_eq(say(dct, KEY, there->rkey), IBV_WC_SUCCESS);
    ck_assert_mem_eq(there->addr, here->addr, LEN);
    ck_assert_int_eq(ibv_exp_destroy_dct(dct), 0);
}
END_TEST

static void setup_old(void)
{
    begin("cx4");
}

START_TEST(a_connectx4_places_data_in_order)
{
    struct ibv_exp_dct_init_attr attr = some_attr();

    ck_assert_int_eq(ibv_exp_destroy_dct(target()), 0);
    attr.create_flags = IBV_EXP_DCT_OOO_RW_DATA_PLACEMENT;
    expect_refused(attr);
}
END_TEST

/* -- initiators -------------------------------------------------------------------------------- */

/* Makes an initiator in RESET, with the call of its kind: ibv_exp_create_qp(), or
 * ibv_create_qp_ex() with the type of the experimental verbs, as dcini of the old examples. */
static struct ibv_qp *exp_initiator(bool exp)
{
    struct ibv_exp_qp_init_attr attr = {.qp_type = IBV_EXP_QPT_DC_INI,
                                        .send_cq = ini_cq,
                                        .recv_cq = ini_cq,
                                        .cap = {.max_send_wr = 4, .max_send_sge = 1},
                                        .comp_mask = IBV_EXP_QP_INIT_ATTR_PD,
                                        .pd = v->hosts->host[0].pd};
    struct ibv_qp_init_attr_ex ex = {.qp_type = IBV_EXP_QPT_DC_INI,
                                     .send_cq = ini_cq,
                                     .recv_cq = ini_cq,
                                     .cap = {.max_send_wr = 4, .max_send_sge = 1},
                                     .comp_mask = IBV_QP_INIT_ATTR_PD,
                                     .pd = v->hosts->host[0].pd};
    struct ibv_qp *qp = exp ? ibv_exp_create_qp(v->a, &attr) : ibv_create_qp_ex(v->a, &ex);

    ck_assert_ptr_nonnull(qp);
    ck_assert_int_eq(qp->qp_type, IBV_EXP_QPT_DC_INI);
    return qp;
}

static void exp_move(struct ibv_qp *qp, enum ibv_qp_state to, uint64_t mask, int expected)
{
    struct ibv_exp_qp_attr attr = {
        .qp_state = to,
        .path_mtu = IBV_MTU_1024,
        .port_num = 1,
        .timeout = 14,
        .retry_cnt = 1,
        .rnr_retry = 7,
        .max_rd_atomic = 1,
        .dct_key = KEY,
        .flow_entropy = 5,
        .ah_attr = {.is_global = 1, .grh = {.sgid_index = 1, .hop_limit = 64}}};

    ck_assert_int_eq(ibv_exp_modify_qp(qp, &attr, IBV_EXP_QP_STATE | mask), expected);
}

#define EXP_TO_INIT (IBV_EXP_QP_PKEY_INDEX | IBV_EXP_QP_PORT | IBV_EXP_QP_DC_KEY)
#define EXP_TO_RTR  (IBV_EXP_QP_AV | IBV_EXP_QP_PATH_MTU)
#define EXP_TO_RTS                                                                                 \
    (IBV_EXP_QP_TIMEOUT | IBV_EXP_QP_RETRY_CNT | IBV_EXP_QP_RNR_RETRY | IBV_EXP_QP_MAX_QP_RD_ATOMIC)

/* qp_state_table of MLNX_OFED's ib_core; mlx5_ib of direct verbs has another. */
START_TEST(an_initiator_takes_the_attributes_of_mlnx_ofed)
{
    struct ibv_qp *qp = exp_initiator(_i);
    struct ibv_exp_dct *dct = target();
    struct ibv_sge sge = {(uintptr_t)here->addr, LEN, here->lkey};
    struct ibv_exp_send_wr wr = {.wr_id = 4,
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .exp_opcode = IBV_EXP_WR_SEND,
                                 .exp_send_flags = IBV_EXP_SEND_SIGNALED,
                                 .dc = {.ah = ah,
                                        .dct_access_key = KEY,
                                        .dct_number = dct->dct_num}},
                           *bad;
    struct ibv_exp_wc wc;

    exp_move(qp, IBV_QPS_INIT, EXP_TO_INIT & ~(uint64_t)IBV_EXP_QP_DC_KEY, EINVAL);
    exp_move(qp, IBV_QPS_INIT, EXP_TO_INIT | IBV_EXP_QP_OOO_RW_DATA_PLACEMENT, EINVAL);
    exp_move(qp, IBV_QPS_INIT, EXP_TO_INIT, 0);
    exp_move(qp, IBV_QPS_RTR, IBV_EXP_QP_PATH_MTU, EINVAL);
    exp_move(qp, IBV_QPS_RTR, EXP_TO_RTR | IBV_EXP_QP_OOO_RW_DATA_PLACEMENT, 0);
    exp_move(qp, IBV_QPS_RTS, EXP_TO_RTS | IBV_EXP_QP_SQ_PSN, EINVAL);
    exp_move(qp, IBV_QPS_RTS, EXP_TO_RTS, 0);
    expect_receive();
    ck_assert_int_eq(ibv_exp_post_send(qp, &wr, &bad), 0);
    ck_assert_uint_eq(table_wc(v, ini_cq).wr_id, 4);
    ck_assert_int_eq(ibv_exp_poll_cq(cq, 1, &wc, sizeof(wc)), 1);
    ck_assert_ptr_eq(wc.dct, dct);
    ck_assert(wc.exp_wc_flags & IBV_EXP_WC_DCT);
    ck_assert_mem_eq(there->addr, here->addr, LEN);
    exp_move(qp, IBV_QPS_RESET, 0, 0);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    ck_assert_int_eq(ibv_exp_destroy_dct(dct), 0);
}
END_TEST

/* __mlx5_ib_modify_qp(): bit 56 is for the change to RTR of RC, XRC and DC. */
START_TEST(the_device_is_told_of_out_of_order_data)
{
    struct ibv_qp *qp = exp_initiator(true);
    struct prm_query_qp_in in[1] = {0};
    struct prm_query_qp_out out[1];
    const struct prm_qpc *qpc = PRM_PTR(query_qp_out, out, qpc);

    exp_move(qp, IBV_QPS_INIT, EXP_TO_INIT, 0);
    exp_move(qp, IBV_QPS_RTR, EXP_TO_RTR | IBV_EXP_QP_OOO_RW_DATA_PLACEMENT, 0);
    PRM_SET(query_qp_in, in, opcode, PRM_CMD_OP_QUERY_QP);
    PRM_SET(query_qp_in, in, qpn, qp->qp_num);
    ck_assert_int_eq(hv_cmd(v->hca[0], in, sizeof(in), out, sizeof(out)), 0);
    ck_assert_uint_eq(PRM_GET(qpc, qpc, dp_ordering_0), 1);
    ck_assert_uint_eq(PRM_GET(qpc, qpc, dp_ordering_1), 0);
    ck_assert_uint_eq(PRM_GET(qpc, qpc, dp_ordering_force), 1);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}
END_TEST

/* -- inline receive of QPs --------------------------------------------------------------------- */

static const struct {
    int type;
    bool large, sig_all; /* CQEs of 128 bytes; all WQEs are signalled */
    uint32_t answer;
    uint8_t res, req;
} inlines[] = {
    {IBV_QPT_RC, false, false, 32, PRM_CS_RES_UP_TO_32B, 0},
    {IBV_QPT_RC, true, false, 64, PRM_CS_RES_UP_TO_64B, 0},
    {IBV_QPT_RC, false, true, 32, PRM_CS_RES_UP_TO_32B, PRM_CS_REQ_UP_TO_32B},
    {IBV_QPT_UC, false, true, 32, PRM_CS_RES_UP_TO_32B, 0},
    {IBV_QPT_UC, true, true, 64, PRM_CS_RES_UP_TO_64B, 0},
    {IBV_QPT_UD, false, true, 0, 0, 0},
    {IBV_EXP_QPT_DC_INI, true, false, 0, 0, 0},
    {IBV_EXP_QPT_DC_INI, false, true, 32, 0, PRM_CS_REQ_UP_TO_32B},
    {IBV_EXP_QPT_DC_INI, true, true, 64, 0, PRM_CS_REQ_UP_TO_64B},
};

/* Makes a QP as the row says; checks the answer and what the device was asked for. */
static void check_inline(int row, struct ibv_cq *with, bool asks)
{
    bool dci = inlines[row].type == IBV_EXP_QPT_DC_INI;
    struct ibv_exp_qp_init_attr attr = {
        .qp_type = inlines[row].type,
        .send_cq = with,
        .recv_cq = with,
        .cap = {.max_send_wr = 4, .max_send_sge = 1, .max_recv_wr = !dci, .max_recv_sge = !dci},
        .sq_sig_all = inlines[row].sig_all,
        .comp_mask = IBV_EXP_QP_INIT_ATTR_PD | IBV_EXP_QP_INIT_ATTR_INL_RECV,
        .pd = pd,
        .max_inl_recv = asks};
    struct ibv_qp *qp = ibv_exp_create_qp(v->b, &attr);
    struct prm_query_qp_in in[1] = {0};
    struct prm_query_qp_out out[1];
    const struct prm_qpc *qpc = PRM_PTR(query_qp_out, out, qpc);

    ck_assert_ptr_nonnull(qp);
    ck_assert_uint_eq(attr.max_inl_recv, asks ? inlines[row].answer : 0);
    PRM_SET(query_qp_in, in, opcode, PRM_CMD_OP_QUERY_QP);
    PRM_SET(query_qp_in, in, qpn, qp->qp_num);
    ck_assert_int_eq(hv_cmd(v->hca[1], in, sizeof(in), out, sizeof(out)), 0);
    ck_assert_uint_eq(PRM_GET(qpc, qpc, cs_res), asks ? inlines[row].res : 0);
    ck_assert_uint_eq(PRM_GET(qpc, qpc, cs_req), asks ? inlines[row].req : 0);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
}

/* mlx5_ib_exp_create_qp(): half a CQE of the receive queue, or for a DCI all of whose WQEs are
 * signalled, of the send queue. */
START_TEST(inline_receive_of_a_qp_is_half_a_cqe)
{
    struct ibv_cq_init_attr_ex plain = {.cqe = 63};
    struct mlx5dv_cq_init_attr dv = {.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE,
                                     .cqe_size = inlines[_i].large ? 128 : 64};
    struct ibv_cq *with = ibv_cq_ex_to_cq(hv_dv_create_cq(v->b, &plain, &dv));

    check_inline(_i, with, true);
    check_inline(_i, with, false);
    ck_assert_int_eq(setenv("MLX5_SCATTER_TO_CQE", "0", 1), 0); /* the program's wish is stronger */
    check_inline(_i, with, true);
    ck_assert_int_eq(unsetenv("MLX5_SCATTER_TO_CQE"), 0);
    ck_assert_int_eq(ibv_destroy_cq(with), 0);
}
END_TEST

/* -- refused connections ----------------------------------------------------------------------- */

/* mlx5_poll_dc_info() without the kernel's page. The device does not know the command either. */
START_TEST(a_roce_port_has_no_trace_of_refused_connections)
{
    struct ibv_exp_dc_info_ent ents[2];
    struct prm_general_obj_in_cmd_hdr in[1] = {0};
    struct prm_cmd_out out[1] = {0};

    ck_assert_int_eq(ibv_exp_poll_dc_info(v->b, ents, 2, 1), -ENOSYS);
    PRM_SET(general_obj_in_cmd_hdr, in, opcode, 0x715); /* SET_DC_CNAK_TRACE */
    ck_assert_int_ne(hv_cmd(v->hca[1], in, sizeof(in), out, sizeof(out)), 0);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("experimental DC");
    TCase *tc = tcase_create("targets"), *old = tcase_create("ConnectX-4");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_query_tells_what_was_asked_for);
    tcase_add_test(tc, what_makes_no_dct_is_refused);
    tcase_add_test(tc, a_dct_of_a_removed_device_ends);
    tcase_add_test(tc, a_wrong_key_raises_an_event_once_armed);
    tcase_add_test(tc, a_wrong_rkey_is_an_event_of_the_dct);
    tcase_add_test(tc, unread_events_end_with_their_dct);
    tcase_add_test(tc, inline_receive_needs_cqes_of_128_bytes);
    tcase_add_test(tc, data_of_a_dct_may_come_out_of_order);
    tcase_add_loop_test(tc, an_initiator_takes_the_attributes_of_mlnx_ofed, 0, 2);
    tcase_add_test(tc, the_device_is_told_of_out_of_order_data);
    tcase_add_loop_test(tc, inline_receive_of_a_qp_is_half_a_cqe, 0, G_N_ELEMENTS(inlines));
    tcase_add_test(tc, a_roce_port_has_no_trace_of_refused_connections);
    suite_add_tcase(s, tc);
    tcase_add_checked_fixture(old, setup_old, teardown);
    tcase_set_timeout(old, 60);
    tcase_add_test(old, a_connectx4_places_data_in_order);
    suite_add_tcase(s, old);
    return s;
}
