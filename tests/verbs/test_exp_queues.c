/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests QPs, CQs, requests and completions of experimental verbs between two hosts in virtual time:
 * ibv_exp_create_qp(), ibv_exp_modify_qp(), ibv_exp_create_cq(), ibv_exp_modify_cq(),
 * ibv_exp_post_send(), ibv_exp_poll_cq().
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/user/queues.h"
#include "tests/unit/suite.h"
#include "tests/verbs/exp_queues_bench.h"

/* -- messages and their completions ------------------------------------------------------------ */

START_TEST(a_message_completes_with_queue_and_time_stamp)
{
    struct ibv_sge sge = {.addr = (uintptr_t)mr[0]->addr, .length = 64, .lkey = mr[0]->lkey};
    struct ibv_exp_send_wr wr = {.wr_id = 3,
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .exp_opcode = IBV_EXP_WR_SEND_WITH_IMM,
                                 .ex.imm_data = 0x12345678};
    struct ibv_exp_wc wc;

    post_recv();
    wc = complete(&wr);
    ck_assert_uint_eq(wc.wr_id, 3);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    ck_assert_int_eq(wc.exp_opcode, IBV_EXP_WC_SEND);
    ck_assert_ptr_eq(wc.qp, qp[0]);
    wc = wc_of(cq[1]);
    ck_assert_uint_eq(wc.wr_id, 7);
    ck_assert_int_eq(wc.exp_opcode, IBV_EXP_WC_RECV);
    ck_assert_uint_eq(wc.byte_len, 64);
    ck_assert_uint_eq(wc.imm_data, 0x12345678);
    ck_assert_uint_eq(wc.qp_num, qp[1]->qp_num);
    ck_assert_uint_eq(wc.src_qp, qp[0]->qp_num);
    ck_assert_uint_eq(wc.exp_wc_flags,
                      IBV_EXP_WC_WITH_IMM | IBV_EXP_WC_QP | IBV_EXP_WC_WITH_TIMESTAMP);
    ck_assert_ptr_eq(wc.qp, qp[1]);
    ck_assert_uint_ne(wc.timestamp, 0);
    ck_assert_mem_eq(mr[1]->addr, mr[0]->addr, 64);
}
END_TEST

/* A program whose header is older has a shorter structure: what lies behind it stays as it is. */
START_TEST(a_shorter_structure_is_not_written_beyond_its_end)
{
    struct ibv_exp_send_wr wr = {.exp_opcode = IBV_EXP_WR_RDMA_WRITE,
                                 .exp_send_flags = IBV_EXP_SEND_SIGNALED,
                                 .wr.rdma = {(uintptr_t)mr[1]->addr, mr[1]->rkey}};
    struct ibv_exp_wc wc[2];

    memset(wc, 0xff, sizeof(wc));
    ck_assert_int_eq(post(&wr), 0);
    table_wait(v);
    ck_assert_int_eq(ibv_exp_poll_cq(cq[0], 1, wc, offsetof(struct ibv_exp_wc, timestamp)), 1);
    ck_assert_int_eq(wc[0].exp_opcode, IBV_EXP_WC_RDMA_WRITE);
    ck_assert_uint_eq(wc[0].timestamp, UINT64_MAX);
    ck_assert_ptr_eq(wc[0].qp, (void *)-1);
    ck_assert_uint_eq(wc[0].exp_wc_flags, UINT64_MAX);
}
END_TEST

/* mlx5_set_bad_wc_opcode(): a failed request has its opcode, which ibv_poll_cq() does not say. */
START_TEST(a_failed_request_has_its_opcode)
{
    struct ibv_sge sge = {.addr = (uintptr_t)mr[0]->addr, .length = 8, .lkey = mr[0]->lkey};
    struct ibv_exp_send_wr wr = {.sg_list = &sge,
                                 .num_sge = 1,
                                 .exp_opcode = IBV_EXP_WR_RDMA_READ,
                                 .wr.rdma = {(uintptr_t)mr[1]->addr, mr[1]->rkey ^ 0xff00}};
    struct ibv_exp_wc wc = complete(&wr);

    ck_assert_int_eq(wc.status, IBV_WC_REM_ACCESS_ERR);
    ck_assert_int_eq(wc.exp_opcode, IBV_EXP_WC_RDMA_READ);
    ck_assert_ptr_eq(wc.qp, qp[0]);
}
END_TEST

START_TEST(a_nop_completes_in_its_place)
{
    struct ibv_exp_send_wr nop = {.wr_id = 1, .exp_opcode = IBV_EXP_WR_NOP};
    struct ibv_exp_wc wc = complete(&nop);

    ck_assert_uint_eq(wc.wr_id, 1);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
}
END_TEST

/* -- masked atomics ---------------------------------------------------------------------------- */

#define HIGH 0xffffffff00000000ull

/* "If (cmp ^ v) & compare_mask is 0, v becomes (v & ~swap_mask) | (swap & swap_mask)". */
START_TEST(a_masked_swap_compares_and_swaps_under_masks)
{
    uint64_t *there = mr[1]->addr, *got = mr[0]->addr;
    struct ibv_sge sge;
    struct ibv_exp_send_wr wr = masked(&sge, 3, true);
    struct ibv_exp_cmp_swap *cs = &wr.ext_op.masked_atomics.wr_data.inline_data.op.cmp_swap;
    struct ibv_exp_wc wc;

    *there = 0x1111111122222222ull;
    *cs = (struct ibv_exp_cmp_swap){.compare_mask = HIGH,
                                    .compare_val = 0x11111111ffffffffull,
                                    .swap_val = 0x3333333344444444ull,
                                    .swap_mask = ~HIGH};
    wc = complete(&wr);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    ck_assert_int_eq(wc.exp_opcode, IBV_EXP_WC_MASKED_COMP_SWAP);
    ck_assert_uint_eq(wc.byte_len, 8);
    ck_assert_uint_eq(*there, 0x1111111144444444ull);
    ck_assert_uint_eq(*got, 0x1111111122222222ull);
}
END_TEST

/* "Each field up to a bit of field_boundary is added without a carry into the next." */
START_TEST(a_masked_add_carries_within_its_fields)
{
    uint64_t *there = mr[1]->addr, *got = mr[0]->addr;
    struct ibv_sge sge;
    struct ibv_exp_send_wr wr = masked(&sge, 3, false);
    struct ibv_exp_wc wc;

    *there = 0x00000001ffffffffull;
    wr.ext_op.masked_atomics.wr_data.inline_data.op.fetch_add =
        (struct ibv_exp_fetch_add){.add_val = 0x0000000200000003ull, .field_boundary = 1ull << 31};
    wc = complete(&wr);
    ck_assert_int_eq(wc.exp_opcode, IBV_EXP_WC_MASKED_FETCH_ADD);
    ck_assert_uint_eq(*there, 0x0000000300000002ull);
    ck_assert_uint_eq(*got, 0x00000001ffffffffull);
}
END_TEST

/* Operands of up to 8 bytes are in the request; of 16 bytes, at the addresses in the request, the
 * upper word first. Numbers in memory are in the host's order (ADR 11). */
START_TEST(operands_of_four_and_sixteen_bytes)
{
    void *there = mr[1]->addr;
    struct ibv_sge sge;
    struct ibv_exp_send_wr wr = masked(&sge, 2, false);
    const uint64_t add[2] = {1, 2}, boundary[2] = {0, 0};

    memset(there, 0, 32);
    wr.ext_op.masked_atomics.wr_data.inline_data.op.fetch_add.add_val = 0x01020304;
    ck_assert_int_eq(complete(&wr).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(*(uint32_t *)there, 0x01020304);
    memset(there, 0, 32);
    wr = masked(&sge, 4, false);
    wr.ext_op.masked_atomics.wr_data.inline_data.op.fetch_add =
        (struct ibv_exp_fetch_add){(uintptr_t)add, (uintptr_t)boundary};
    ck_assert_int_eq(complete(&wr).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(*(uint64_t *)there, 2);
    ck_assert_uint_eq(((uint64_t *)there)[1], 1);
}
END_TEST

/* libmlx5: set_ext_atomic_seg(). */
START_TEST(masked_atomics_that_are_refused)
{
    struct ibv_sge sge;
    struct ibv_exp_send_wr wr = masked(&sge, 3, false);

    wr.exp_send_flags = IBV_EXP_SEND_SIGNALED;
    ck_assert_int_eq(post(&wr), EINVAL);
    wr = masked(&sge, 7, false); /* max_atomic_arg is 64 */
    ck_assert_int_eq(post(&wr), EINVAL);
    wr = masked(&sge, 9, false);
    ck_assert_int_eq(post(&wr), EINVAL);
    wr = masked(&sge, 1, false);
    ck_assert_int_eq(post(&wr), EINVAL);
    wr = (struct ibv_exp_send_wr){.exp_opcode = (enum ibv_exp_wr_opcode)0x70};
    ck_assert_int_eq(post(&wr), EINVAL);
    wr = (struct ibv_exp_send_wr){.exp_opcode = IBV_EXP_WR_SEND,
                                  .exp_send_flags = IBV_EXP_SEND_WITH_CALC};
    ck_assert_int_eq(post(&wr), EINVAL);
}
END_TEST

/* -- creation ---------------------------------------------------------------------------------- */

static void expect_no_qp(struct ibv_exp_qp_init_attr attr, int err)
{
    ck_assert_ptr_null(qp_new(0, attr));
    ck_assert_int_eq(errno, err);
}

/* create_qp() of libmlx5, then mlx5_ib_exp_create_qp(). */
START_TEST(what_makes_no_qp)
{
    struct ibv_exp_qp_init_attr attr = qp_attr(0);

    attr.comp_mask |= IBV_EXP_QP_INIT_ATTR_RESERVED1;
    expect_no_qp(attr, EINVAL);
    attr = qp_attr(0);
    attr.comp_mask |= IBV_EXP_QP_INIT_ATTR_CREATE_FLAGS;
    attr.exp_create_flags = IBV_EXP_QP_CREATE_UMR;
    expect_no_qp(attr, EINVAL);
    attr.exp_create_flags = 0;
    attr.comp_mask |= IBV_EXP_QP_INIT_ATTR_MAX_INL_KLMS;
    expect_no_qp(attr, EINVAL);
    attr = qp_attr(0);
    attr.comp_mask |= IBV_EXP_QP_INIT_ATTR_CREATE_FLAGS;
    attr.exp_create_flags = IBV_EXP_QP_CREATE_ATOMIC_BE_REPLY;
    expect_no_qp(attr, EINVAL);
    attr.exp_create_flags = IBV_EXP_QP_CREATE_TUNNEL_OFFLOADS;
    expect_no_qp(attr, EOPNOTSUPP);
    attr = qp_attr(0);
    attr.comp_mask |= IBV_EXP_QP_INIT_ATTR_QPG;
    attr.qpg.qpg_type = IBV_EXP_QPG_PARENT;
    expect_no_qp(attr, ENOSYS);
    attr = qp_attr(0);
    attr.comp_mask |= IBV_EXP_QP_INIT_ATTR_ASSOCIATED_QPN;
    expect_no_qp(attr, EINVAL);
    attr = qp_attr(0);
    attr.comp_mask |= IBV_EXP_QP_INIT_ATTR_MAX_TSO_HEADER;
    expect_no_qp(attr, EINVAL);
    attr = qp_attr(0);
    attr.max_atomic_arg = 512;
    expect_no_qp(attr, EINVAL);
    attr = qp_attr(0);
    attr.comp_mask |= IBV_EXP_QP_INIT_ATTR_PORT;
    attr.port_num = 2;
    expect_no_qp(attr, EINVAL);
    attr = qp_attr(0);
    attr.qp_type = IBV_QPT_RAW_PACKET;
    attr.comp_mask = IBV_EXP_QP_INIT_ATTR_PD | IBV_EXP_QP_INIT_ATTR_RX_HASH;
    attr.rx_hash_conf = NULL;
    expect_no_qp(attr, EINVAL);
}
END_TEST

/* A send WQE has room for the four operands of a masked compare and swap: 16 + 16 + 4 * 64 + 2 * 16
 * bytes are five blocks, and 8 such WQEs in a ring that is a power of two take 64 blocks. */
START_TEST(a_wqe_has_room_for_the_operands)
{
    ck_assert_uint_eq(user_qp(qp[0])->sq.wqe_cnt, 64);
}
END_TEST

START_TEST(what_makes_no_cq)
{
    struct ibv_exp_cq_init_attr attr = {0};

    ck_assert_ptr_null(ibv_exp_create_cq(v->a, 0, NULL, NULL, 0, &attr));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(cq_new(0, IBV_EXP_CQ_INIT_ATTR_RESERVED1, 0));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(cq_new(0, IBV_EXP_CQ_INIT_ATTR_FLAGS, IBV_EXP_CQ_TIMESTAMP_TO_SYS_TIME));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(cq_new(0, IBV_EXP_CQ_INIT_ATTR_FLAGS, IBV_EXP_CQ_AS_NOTIFY));
    ck_assert_int_eq(errno, EOPNOTSUPP);
    ck_assert_ptr_null(cq_new(0, IBV_EXP_CQ_INIT_ATTR_RES_DOMAIN, 0));
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

/* The inline call counts the channel's CQs itself, as the library does in ibv_create_cq(). */
START_TEST(a_channel_is_counted_once)
{
    struct ibv_comp_channel *channel = ibv_create_comp_channel(v->a);
    struct ibv_exp_cq_init_attr attr = {0};
    struct ibv_cq *made = ibv_exp_create_cq(v->a, 1, NULL, channel, 0, &attr);

    ck_assert_ptr_nonnull(made);
    ck_assert_int_eq(channel->refcnt, 1);
    ck_assert_int_eq(ibv_destroy_comp_channel(channel), EBUSY);
    ck_assert_int_eq(ibv_destroy_cq(made), 0);
    ck_assert_int_eq(ibv_destroy_comp_channel(channel), 0);
}
END_TEST

/* A period has 12 bits, and a longer one is the longest (mlx5_ib_exp_modify_cq()). */
START_TEST(a_cq_takes_moderation_and_overruns)
{
    struct ibv_exp_cq_attr attr = {.comp_mask = IBV_EXP_CQ_ATTR_MODERATION,
                                   .moderation = {4, 0xffff},
                                   .cq_cap_flags = IBV_EXP_CQ_IGNORE_OVERRUN};

    ck_assert_int_eq(ibv_exp_modify_cq(cq[0], &attr, IBV_EXP_CQ_MODERATION | IBV_EXP_CQ_CAP_FLAGS),
                     0);
    attr.comp_mask = IBV_EXP_CQ_ATTR_RESERVED;
    ck_assert_int_eq(ibv_exp_modify_cq(cq[0], &attr, IBV_EXP_CQ_MODERATION), EINVAL);
}
END_TEST

/* A resource domain has a doorbell page, which its QPs ring, so it stays as long as they do. */
START_TEST(queues_in_a_resource_domain)
{
    struct ibv_exp_res_domain_init_attr init = {.comp_mask = IBV_EXP_RES_DOMAIN_THREAD_MODEL,
                                                .thread_model = IBV_EXP_THREAD_SINGLE};
    struct ibv_exp_res_domain *domain = ibv_exp_create_res_domain(v->a, &init);
    struct ibv_exp_cq_init_attr with = {.comp_mask = IBV_EXP_CQ_INIT_ATTR_RES_DOMAIN,
                                        .res_domain = domain};
    struct ibv_exp_qp_init_attr attr = qp_attr(0);
    struct ibv_cq *made_cq;
    struct ibv_qp *made;

    ck_assert_ptr_nonnull(domain);
    made_cq = ibv_exp_create_cq(v->a, 1, NULL, NULL, 0, &with);
    ck_assert_ptr_nonnull(made_cq);
    ck_assert(user_cq(made_cq)->single_threaded);
    attr.comp_mask |= IBV_EXP_QP_INIT_ATTR_RES_DOMAIN;
    attr.res_domain = domain;
    made = qp_new(0, attr);
    ck_assert_ptr_nonnull(made);
    ck_assert_uint_ne(user_qp(made)->uar->page, user_qp(qp[0])->uar->page);
    ck_assert_int_eq(ibv_exp_destroy_res_domain(v->a, domain, NULL), EBUSY);
    table_qp_free(made);
    ck_assert_int_eq(ibv_destroy_cq(made_cq), 0);
    ck_assert_int_eq(ibv_exp_destroy_res_domain(v->a, NULL, NULL), EINVAL);
    ck_assert_int_eq(ibv_exp_destroy_res_domain(v->a, domain, NULL), 0);
}
END_TEST

/* -- DC ---------------------------------------------------------------------------------------- */

#define DC_KEY 0x1122334455667788ull

/* A DCT of direct verbs on host 1. */
static struct ibv_qp *dct_new(struct ibv_srq *srq)
{
    struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_DRIVER,
                                       .send_cq = cq[1],
                                       .recv_cq = cq[1],
                                       .srq = srq,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD,
                                       .pd = v->hosts->host[1].pd};
    struct mlx5dv_qp_init_attr dv = {
        .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
        .dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCT, .dct_access_key = DC_KEY}};
    struct ibv_qp *dct = hv_dv_create_qp(v->b, &attr, &dv);
    struct ibv_qp_attr mod = {.qp_state = IBV_QPS_INIT,
                              .port_num = 1,
                              .qp_access_flags =
                                  IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC};

    ck_assert_int_eq(
        ibv_modify_qp(dct, &mod,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
    mod = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                               .path_mtu = IBV_MTU_1024,
                               .ah_attr = {.is_global = 1, .port_num = 1, .grh.sgid_index = 1}};
    ck_assert_int_eq(
        ibv_modify_qp(dct, &mod, IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV),
        0);
    return dct;
}

static struct ibv_qp *dci_new(void)
{
    struct ibv_exp_qp_init_attr attr = qp_attr(0);
    struct ibv_exp_qp_attr mod = {.qp_state = IBV_QPS_INIT,
                                  .port_num = 1,
                                  .path_mtu = IBV_MTU_1024,
                                  .ah_attr = {.is_global = 1, .port_num = 1},
                                  .dct_key = DC_KEY,
                                  .timeout = 14,
                                  .retry_cnt = 7,
                                  .rnr_retry = 7,
                                  .max_rd_atomic = 1};
    struct ibv_qp *dci;

    attr.qp_type = IBV_EXP_QPT_DC_INI;
    attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
    dci = qp_new(0, attr);
    ck_assert_ptr_nonnull(dci);
    ck_assert_int_eq(dci->qp_type, IBV_EXP_QPT_DC_INI);
    ck_assert_int_eq(
        ibv_exp_modify_qp(dci, &mod, IBV_EXP_QP_STATE | IBV_EXP_QP_PKEY_INDEX | IBV_EXP_QP_PORT),
        EINVAL); /* without the key */
    ck_assert_int_eq(ibv_exp_modify_qp(dci, &mod,
                                       IBV_EXP_QP_STATE | IBV_EXP_QP_PKEY_INDEX | IBV_EXP_QP_PORT |
                                           IBV_EXP_QP_DC_KEY),
                     0);
    mod.qp_state = IBV_QPS_RTR;
    ck_assert_int_eq(
        ibv_exp_modify_qp(dci, &mod, IBV_EXP_QP_STATE | IBV_EXP_QP_PATH_MTU | IBV_EXP_QP_AV), 0);
    mod.qp_state = IBV_QPS_RTS;
    ck_assert_int_eq(ibv_exp_modify_qp(dci, &mod,
                                       IBV_EXP_QP_STATE | IBV_EXP_QP_TIMEOUT |
                                           IBV_EXP_QP_RETRY_CNT | IBV_EXP_QP_RNR_RETRY |
                                           IBV_EXP_QP_MAX_QP_RD_ATOMIC),
                     0);
    return dci;
}

static struct ibv_ah *ah_to_b(void)
{
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1}};
    struct ibv_ah *ah;

    ck_assert_int_eq(ibv_query_gid(v->b, 1, 1, &attr.grh.dgid), 0);
    ah = ibv_create_ah(v->hosts->host[0].pd, &attr);
    ck_assert_ptr_nonnull(ah);
    return ah;
}

/* Each request of a DC initiator names its target; it writes there, or adds to a number there. */
START_TEST(a_dc_initiator_reaches_a_target)
{
    struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 7, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(v->hosts->host[1].pd, &srq_attr);
    struct ibv_qp *dct = dct_new(srq), *rc = qp[0];
    struct ibv_ah *ah = ah_to_b();
    struct ibv_sge sge = {.addr = (uintptr_t)mr[0]->addr, .length = 64, .lkey = mr[0]->lkey};
    struct ibv_exp_send_wr wr = {.sg_list = &sge,
                                 .num_sge = 1,
                                 .exp_opcode = IBV_EXP_WR_RDMA_WRITE,
                                 .wr.rdma = {(uintptr_t)mr[1]->addr, mr[1]->rkey},
                                 .dc = {ah, DC_KEY, dct->qp_num}};
    struct ibv_exp_wc wc;

    qp[0] = dci_new();
    wc = complete(&wr);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    ck_assert_int_eq(wc.exp_opcode, IBV_EXP_WC_RDMA_WRITE);
    ck_assert_mem_eq(mr[1]->addr, mr[0]->addr, 64);
    *(uint64_t *)mr[1]->addr = 5;
    wr = masked(&sge, 3, false);
    wr.dc.ah = ah;
    wr.dc.dct_access_key = DC_KEY;
    wr.dc.dct_number = dct->qp_num;
    wr.ext_op.masked_atomics.wr_data.inline_data.op.fetch_add.add_val = 2;
    ck_assert_int_eq(complete(&wr).exp_opcode, IBV_EXP_WC_MASKED_FETCH_ADD);
    ck_assert_uint_eq(*(uint64_t *)mr[1]->addr, 7);
    wr = (struct ibv_exp_send_wr){.sg_list = &sge,
                                  .num_sge = 1,
                                  .exp_opcode = IBV_EXP_WR_ATOMIC_CMP_AND_SWP,
                                  .wr.atomic = {.remote_addr = (uintptr_t)mr[1]->addr,
                                                .compare_add = 7,
                                                .swap = 70,
                                                .rkey = mr[1]->rkey},
                                  .dc = {ah, DC_KEY, dct->qp_num}};
    sge.length = 8;
    ck_assert_int_eq(complete(&wr).exp_opcode, IBV_EXP_WC_COMP_SWAP);
    ck_assert_uint_eq(*(uint64_t *)mr[1]->addr, 70);
    wr.exp_opcode = IBV_EXP_WR_BIND_MW;
    ck_assert_int_eq(post(&wr), EINVAL);
    wr = (struct ibv_exp_send_wr){.exp_opcode = IBV_EXP_WR_NOP}; /* has no address */
    ck_assert_int_eq(complete(&wr).status, IBV_WC_SUCCESS);
    table_qp_free(qp[0]);
    qp[0] = rc;
    ck_assert_int_eq(ibv_destroy_ah(ah), 0);
    ck_assert_int_eq(ibv_destroy_qp(dct), 0);
    ck_assert_int_eq(ibv_destroy_srq(srq), 0);
}
END_TEST

/* cc_pingpong: an operand is 16 bytes, a big-endian value and an id. Two of them, in one element of
 * the list or in two, become one. */
START_TEST(a_request_calculates)
{
    static const enum ibv_exp_wr_opcode opcodes[] = {IBV_EXP_WR_SEND, IBV_EXP_WR_RDMA_WRITE,
                                                     IBV_EXP_WR_RDMA_READ};
    bool reads = opcodes[_i] == IBV_EXP_WR_RDMA_READ;
    uint64_t *from = mr[reads]->addr, *to = mr[!reads]->addr;
    struct ibv_sge sge[] = {{(uintptr_t)mr[0]->addr, 16, mr[0]->lkey},
                            {(uintptr_t)mr[0]->addr + 16, 16, mr[0]->lkey}};
    struct ibv_exp_send_wr wr = {.sg_list = sge,
                                 .num_sge = 2,
                                 .exp_opcode = opcodes[_i],
                                 .exp_send_flags = IBV_EXP_SEND_WITH_CALC};
    struct ibv_exp_qp_init_attr attr;

    wr.op.calc.calc_op = IBV_EXP_CALC_OP_ADD;
    wr.op.calc.data_type = IBV_EXP_CALC_DATA_TYPE_UINT;
    wr.op.calc.data_size = IBV_EXP_CALC_DATA_SIZE_64_BIT;
    wr.wr.rdma.remote_addr = (uintptr_t)mr[1]->addr;
    wr.wr.rdma.rkey = mr[1]->rkey;
    for (int i = 0; i < 2; i++) {
        table_qp_free(qp[i]);
        attr = qp_attr(i);
        attr.comp_mask |= IBV_EXP_QP_INIT_ATTR_CREATE_FLAGS;
        attr.exp_create_flags = IBV_EXP_QP_CREATE_CROSS_CHANNEL;
        qp[i] = qp_new(i, attr);
        ck_assert_ptr_nonnull(qp[i]);
    }
    table_connect(v, qp[0], qp[1]);
    post_recv();
    memset(to, 0x5a, 64);
    from[0] = GUINT64_TO_BE(40);
    from[2] = GUINT64_TO_BE(2);
    from[1] = from[3] = GUINT64_TO_BE(9);
    ck_assert_int_eq(complete(&wr).status, IBV_WC_SUCCESS);
    if (opcodes[_i] == IBV_EXP_WR_SEND) {
        ck_assert_uint_eq(wc_of(cq[1]).byte_len, 16);
    }
    ck_assert_uint_eq(GUINT64_FROM_BE(to[0]), 42);
    ck_assert_uint_eq(GUINT64_FROM_BE(to[1]), 9);
    ck_assert_uint_eq(to[2], 0x5a5a5a5a5a5a5a5a);
    wr.op.calc.calc_op = IBV_EXP_CALC_OP_MAXLOC;
    wr.op.calc.data_type = IBV_EXP_CALC_DATA_TYPE_FLOAT;
    ck_assert_int_eq(post(&wr), EINVAL);
}
END_TEST

/* qp_state_table of MLNX_OFED: the bit belongs to the change of RC, XRC and DC from INIT to RTR. */
START_TEST(data_may_be_placed_out_of_order_from_init_to_rtr_alone)
{
    struct ibv_exp_qp_init_attr ud_attr = qp_attr(0);
    struct ibv_exp_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1};
    struct ibv_qp *rc = qp_new(0, qp_attr(0)), *ud;
    const uint64_t init = IBV_EXP_QP_STATE | IBV_EXP_QP_PKEY_INDEX | IBV_EXP_QP_PORT;
    const uint64_t rtr = IBV_EXP_QP_STATE | IBV_EXP_QP_AV | IBV_EXP_QP_PATH_MTU |
                         IBV_EXP_QP_DEST_QPN | IBV_EXP_QP_RQ_PSN | IBV_EXP_QP_MAX_DEST_RD_ATOMIC |
                         IBV_EXP_QP_MIN_RNR_TIMER;

    ud_attr.qp_type = IBV_QPT_UD;
    ud = qp_new(0, ud_attr);
    ck_assert(rc && ud);
    ck_assert_int_eq(
        ibv_exp_modify_qp(rc, &attr,
                          init | IBV_EXP_QP_ACCESS_FLAGS | IBV_EXP_QP_OOO_RW_DATA_PLACEMENT),
        EINVAL);
    ck_assert_int_eq(ibv_exp_modify_qp(rc, &attr, init | IBV_EXP_QP_ACCESS_FLAGS), 0);
    ck_assert_int_eq(ibv_exp_modify_qp(ud, &attr, init | IBV_EXP_QP_QKEY), 0);
    attr = (struct ibv_exp_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = qp[1]->qp_num,
        .max_dest_rd_atomic = 1,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1, .hop_limit = 1}}};
    ck_assert_int_eq(ibv_query_gid(v->b, 1, 1, &attr.ah_attr.grh.dgid), 0);
    ck_assert_int_eq(
        ibv_exp_modify_qp(ud, &attr, IBV_EXP_QP_STATE | IBV_EXP_QP_OOO_RW_DATA_PLACEMENT), EINVAL);
    ck_assert_int_eq(ibv_exp_modify_qp(rc, &attr, rtr | IBV_EXP_QP_OOO_RW_DATA_PLACEMENT), 0);
    ck_assert(user_qp(rc)->hv.ooo_rw);
    table_qp_free(rc);
    table_qp_free(ud);
}
END_TEST

START_TEST(requests_that_are_refused)
{
    struct ibv_sge sge[3] = {{(uintptr_t)mr[0]->addr, 8, mr[0]->lkey},
                             {(uintptr_t)mr[0]->addr, 8, mr[0]->lkey},
                             {(uintptr_t)mr[0]->addr, 8, mr[0]->lkey}};
    struct ibv_exp_send_wr wr = masked(sge, 3, false);
    struct ibv_qp *connected = qp[0];

    sge[1] = sge[2] = sge[0];
    wr.num_sge = 3; /* max_send_sge is 2 */
    ck_assert_int_eq(post(&wr), ENOMEM);
    wr.num_sge = -1;
    ck_assert_int_eq(post(&wr), ENOMEM);
    wr.num_sge = 1;
    qp[0] = qp_new(0, qp_attr(0)); /* in RESET */
    ck_assert_ptr_nonnull(qp[0]);
    ck_assert_int_ne(post(&wr), 0);
    table_qp_free(qp[0]);
    qp[0] = connected;
    ck_assert_int_eq(complete(&wr).status, IBV_WC_SUCCESS);
}
END_TEST

START_TEST(what_changes_no_qp)
{
    struct ibv_exp_qp_attr attr = {.qp_state = IBV_QPS_RTS, .rate_limit = 1000};

    ck_assert_int_eq(ibv_exp_modify_qp(qp[0], &attr, IBV_EXP_QP_GROUP_RSS), EINVAL);
    ck_assert_int_eq(ibv_exp_modify_qp(qp[0], &attr, IBV_EXP_QP_DC_KEY), EINVAL);
    ck_assert_int_eq(ibv_exp_modify_qp(qp[0], &attr, IBV_EXP_QP_RATE_LIMIT), EINVAL);
    attr.comp_mask = IBV_EXP_QP_ATTR_RESERVED;
    ck_assert_int_eq(ibv_exp_modify_qp(qp[0], &attr, IBV_EXP_QP_STATE), EINVAL);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("verbs-exp-queues");
    TCase *tc = tcase_create("queues");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_message_completes_with_queue_and_time_stamp);
    tcase_add_test(tc, a_shorter_structure_is_not_written_beyond_its_end);
    tcase_add_test(tc, a_failed_request_has_its_opcode);
    tcase_add_test(tc, a_nop_completes_in_its_place);
    tcase_add_test(tc, a_masked_swap_compares_and_swaps_under_masks);
    tcase_add_test(tc, a_masked_add_carries_within_its_fields);
    tcase_add_test(tc, operands_of_four_and_sixteen_bytes);
    tcase_add_test(tc, masked_atomics_that_are_refused);
    tcase_add_test(tc, what_makes_no_qp);
    tcase_add_test(tc, a_wqe_has_room_for_the_operands);
    tcase_add_test(tc, what_makes_no_cq);
    tcase_add_test(tc, a_channel_is_counted_once);
    tcase_add_test(tc, a_cq_takes_moderation_and_overruns);
    tcase_add_test(tc, queues_in_a_resource_domain);
    tcase_add_test(tc, a_dc_initiator_reaches_a_target);
    tcase_add_loop_test(tc, a_request_calculates, 0, 3);
    tcase_add_test(tc, data_may_be_placed_out_of_order_from_init_to_rtr_alone);
    tcase_add_test(tc, requests_that_are_refused);
    tcase_add_test(tc, what_changes_no_qp);
    suite_add_tcase(suite, tc);
    return suite;
}
