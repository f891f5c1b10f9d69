/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests CQs with compressed or padded CQEs as programs make them (mlx5dv_create_cq()).
 * ibv_poll_cq() of rdma-core does not decompress: such programs read the ring themselves. Here they
 * do so with a decoder that shares no code with the device (tests/programs/cqe_decoder.h).
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "guest-lib/verbs/dv.h"
#include "tests/programs/cqe_decoder.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

#define CQE      127 /* asks for 128 entries */
#define MESSAGES 100

static struct verbs_table *v;
static struct ibv_cq *send_cq, *recv_cq;
static struct ibv_qp *a, *b;
static struct ibv_mr *from, *to;
static struct cqe_decoder sent, received;

static const struct {
    enum mlx5dv_cqe_comp_res_format format;
    enum dec_format raw;
} formats[] = {{MLX5DV_CQE_RES_FORMAT_HASH, DEC_FORMAT_HASH},
               {MLX5DV_CQE_RES_FORMAT_CSUM, DEC_FORMAT_CSUM},
               {MLX5DV_CQE_RES_FORMAT_CSUM_STRIDX, DEC_FORMAT_CSUM_STRIDX}};

static struct ibv_cq *cq_new(struct ibv_context *context, unsigned format, uint16_t cqe_size,
                             uint32_t flags)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = CQE, .wc_flags = IBV_WC_STANDARD_FLAGS};
    struct mlx5dv_cq_init_attr dv = {
        .comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE | MLX5DV_CQ_INIT_ATTR_MASK_FLAGS |
                     (format ? MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE : 0),
        .cqe_comp_res_format = (uint8_t)format,
        .flags = flags,
        .cqe_size = cqe_size,
    };
    struct ibv_cq_ex *cq = hv_dv_create_cq(context, &attr, &dv);

    return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

/* Reads the ring of a CQ that has just been made. */
static void read_ring(struct cqe_decoder *d, struct ibv_cq *cq, enum dec_format format)
{
    struct mlx5dv_cq dv = {0};
    struct mlx5dv_obj obj = {.cq = {cq, &dv}};

    ck_assert_int_eq(hv_dv_init_obj(&obj, MLX5DV_OBJ_CQ), 0);
    memset(d, 0, sizeof(*d));
    d->ring = dv.buf;
    d->log_size = (unsigned)__builtin_ctz(dv.cqe_cnt);
    d->stride = dv.cqe_size;
    d->format = format;
}

static struct ibv_qp *qp_new(int side, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr attr = {
        .qp_type = IBV_QPT_RC,
        .send_cq = cq,
        .recv_cq = cq,
        .sq_sig_all = 1,
        .cap = {.max_send_wr = 128, .max_recv_wr = 128, .max_send_sge = 1, .max_recv_sge = 1},
    };
    struct ibv_qp *qp = ibv_create_qp(v->hosts->host[side].pd, &attr);

    ck_assert_ptr_nonnull(qp);
    return qp;
}

static void setup(void)
{
    v = verbs_table_new();
    from = table_mr_new(v, 0);
    to = table_mr_new(v, 1);
    send_cq = recv_cq = NULL;
}

static void teardown(void)
{
    table_mr_free(from);
    table_mr_free(to);
    verbs_table_free(v);
}

static void connect_with(unsigned format, uint16_t cqe_size, uint32_t flags, enum dec_format raw)
{
    send_cq = cq_new(v->a, format, cqe_size, flags);
    recv_cq = cq_new(v->b, format, cqe_size, flags);
    ck_assert_ptr_nonnull(send_cq);
    ck_assert_ptr_nonnull(recv_cq);
    read_ring(&sent, send_cq, raw);
    read_ring(&received, recv_cq, raw);
    a = qp_new(0, send_cq);
    b = qp_new(1, recv_cq);
    table_connect(v, a, b);
}

static void disconnect(void)
{
    table_qp_free(a);
    table_qp_free(b);
    ck_assert_int_eq(ibv_destroy_cq(send_cq), 0);
    ck_assert_int_eq(ibv_destroy_cq(recv_cq), 0);
}

/* Message i has its own length; every third is an RDMA WRITE with immediate. */
static uint32_t length_of(unsigned i)
{
    return 70 + i;
}

static void post_messages(void)
{
    for (unsigned i = 0; i < MESSAGES; i++) {
        struct ibv_sge sge = {(uintptr_t)to->addr, 1000, to->lkey};
        struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

        ck_assert_int_eq(ibv_post_recv(b, &wr, &bad), 0);
    }
    for (unsigned i = 0; i < MESSAGES; i++) {
        struct ibv_sge sge = {(uintptr_t)from->addr, length_of(i), from->lkey};
        struct ibv_send_wr wr = {.sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = i / 30 % 2 ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND,
                                 .imm_data = GUINT32_TO_BE(5),
                                 .wr.rdma = {(uintptr_t)to->addr, to->rkey}},
                           *bad;

        ck_assert_int_eq(ibv_post_send(a, &wr, &bad), 0);
    }
    table_wait(v);
}

static void take_messages(void)
{
    for (unsigned i = 0; i < MESSAGES; i++) {
        bool write = i / 30 % 2;
        const uint8_t *cqe = cqe_decoder_next(&received, NULL);

        ck_assert_msg(cqe, "receive %u is missing: %s", i, received.fault);
        ck_assert_uint_eq(cqe[DEC_OP_OWN] >> 4, write ? 1 : 2);
        ck_assert_uint_eq(dec_16(cqe + DEC_COUNTER), i);
        ck_assert_uint_eq(dec_32(cqe + DEC_BYTE_CNT), length_of(i));
        if (write) {
            ck_assert_uint_eq(dec_32(cqe + 0x24), 5);
        }
        cqe = cqe_decoder_next(&sent, NULL);
        ck_assert_msg(cqe, "send %u is missing: %s", i, sent.fault);
        ck_assert_uint_eq(cqe[DEC_OP_OWN] >> 4, DEC_REQ);
        ck_assert_uint_eq(cqe[DEC_SEND_OPCODE], write ? 0x09 : 0x0a);
        ck_assert_uint_eq(dec_32(cqe + DEC_SEND_OPCODE) & 0xffffff, a->qp_num);
    }
    ck_assert_ptr_null(cqe_decoder_next(&received, NULL));
    ck_assert_ptr_null(cqe_decoder_next(&sent, NULL));
}

START_TEST(a_program_reads_compressed_cqes)
{
    uint16_t cqe_size = _i / 3 % 2 ? 128 : 64;
    uint32_t flags = _i / 6 ? MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD : 0;

    connect_with(formats[_i % 3].format, cqe_size, cqe_size == 128 ? flags : 0,
                 formats[_i % 3].raw);
    post_messages();
    take_messages();
    ck_assert_uint_gt(received.sessions, 0);
    ck_assert_uint_gt(sent.sessions, 0);
    ck_assert_uint_lt(received.slots_written, MESSAGES / 2);
    ck_assert_uint_lt(sent.slots_written, MESSAGES / 2);
    disconnect();
}
END_TEST

/* The same program with a CQ that does not compress: each CQE has a slot of its own. */
START_TEST(without_the_flag_nothing_is_compressed)
{
    connect_with(0, 64, 0, DEC_FORMAT_HASH);
    post_messages();
    take_messages();
    ck_assert_uint_eq(received.sessions, 0);
    ck_assert_uint_eq(received.slots_written, MESSAGES);
    disconnect();
}
END_TEST

/* ibv_poll_cq() polls a CQ that compresses as long as its CQEs come one by one. */
START_TEST(single_completions_can_be_polled)
{
    connect_with(formats[_i].format, 64, 0, formats[_i].raw);
    for (unsigned i = 0; i < 300; i++) {
        struct ibv_sge sge = {(uintptr_t)to->addr, 1000, to->lkey};
        struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;
        struct ibv_sge from_sge = {(uintptr_t)from->addr, length_of(i % 100), from->lkey};
        struct ibv_send_wr send = {.wr_id = i,
                                   .sg_list = &from_sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_SEND},
                           *bad_send;
        struct ibv_wc wc;

        ck_assert_int_eq(ibv_post_recv(b, &wr, &bad), 0);
        ck_assert_int_eq(ibv_post_send(a, &send, &bad_send), 0);
        wc = table_wc(v, recv_cq);
        ck_assert_uint_eq(wc.wr_id, i);
        ck_assert_uint_eq(wc.byte_len, length_of(i % 100));
        ck_assert_uint_eq(table_wc(v, send_cq).wr_id, i);
    }
    disconnect();
}
END_TEST

START_TEST(query_device_reports_it)
{
    struct mlx5dv_context caps = {.comp_mask = MLX5DV_CONTEXT_MASK_CQE_COMPRESION};

    ck_assert_int_eq(hv_dv_query_device(v->a, &caps), 0);
    ck_assert_uint_eq(caps.comp_mask, MLX5DV_CONTEXT_MASK_CQE_COMPRESION);
    ck_assert_uint_eq(caps.cqe_comp_caps.max_num, 64);
    ck_assert_uint_eq(caps.cqe_comp_caps.supported_format, MLX5DV_CQE_RES_FORMAT_HASH |
                                                               MLX5DV_CQE_RES_FORMAT_CSUM |
                                                               MLX5DV_CQE_RES_FORMAT_CSUM_STRIDX);
    ck_assert(caps.flags & MLX5DV_CONTEXT_FLAGS_CQE_128B_COMP);
    ck_assert(caps.flags & MLX5DV_CONTEXT_FLAGS_CQE_128B_PAD);
}
END_TEST

/* As libmlx5 and mlx5_ib refuse them. */
START_TEST(what_no_card_does_is_refused)
{
    static const struct {
        unsigned format;
        uint16_t cqe_size;
        uint32_t flags;
    } bad[] = {
        {MLX5DV_CQE_RES_FORMAT_HASH | MLX5DV_CQE_RES_FORMAT_CSUM, 64, 0},
        {8, 64, 0},
        {0, 64, MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD},
        {0, 128, 2},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        errno = 0;
        ck_assert_ptr_null(cq_new(v->a, bad[i].format, bad[i].cqe_size, bad[i].flags));
        ck_assert_int_eq(errno, EINVAL);
    }
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("compressed CQEs");
    TCase *tc = tcase_create("compressed CQEs");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, a_program_reads_compressed_cqes, 0, 12);
    tcase_add_test(tc, without_the_flag_nothing_is_compressed);
    tcase_add_loop_test(tc, single_completions_can_be_polled, 0, 3);
    tcase_add_test(tc, query_device_reports_it);
    tcase_add_test(tc, what_no_card_does_is_refused);
    suite_add_tcase(suite, tc);
    return suite;
}
