/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests block signatures of direct verbs beyond rdma-core's own tests: what the setters refuse, how
 * attributes are kept and reset, the values that mlx5dv_mkey_check() gives, and extended CQs.
 */
#include <check.h>
#include <string.h>
#include "guest-lib/verbs/dv.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

static struct verbs_table *v;
static struct ibv_cq_ex *ex; /* host 0 */
static struct ibv_cq *cq;    /* host 1 */
static struct ibv_qp *a, *b;
static struct ibv_mr *mr, *peer;
static struct mlx5dv_mkey *mkey;

static struct ibv_qp *qp_new(void)
{
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_RC,
        .send_cq = ibv_cq_ex_to_cq(ex),
        .recv_cq = ibv_cq_ex_to_cq(ex),
        .pd = v->hosts->host[0].pd,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE,
        .cap = {.max_send_wr = 16,
                .max_recv_wr = 1,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 512},
    };
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
                                     .send_ops_flags = MLX5DV_QP_EX_WITH_MKEY_CONFIGURE};
    struct ibv_qp *qp = hv_dv_create_qp(v->a, &attr, &dv);

    ck_assert_ptr_nonnull(qp);
    return qp;
}

static void setup(void)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = 63, .wc_flags = IBV_WC_STANDARD_FLAGS};

    v = verbs_table_new();
    ex = ibv_create_cq_ex(v->a, &attr);
    cq = ibv_create_cq(v->b, 63, NULL, NULL, 0);
    ck_assert(ex && cq);
    a = qp_new();
    b = table_qp_new(v, 1, cq, NULL);
    table_connect(v, a, b);
    mr = table_mr_new(v, 0);
    peer = table_mr_new(v, 1);
    mkey = table_mkey_new(v, 0, MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE);
}

static void teardown(void)
{
    ck_assert_int_eq(hv_dv_destroy_mkey(mkey), 0);
    table_mr_free(mr);
    table_mr_free(peer);
    table_qp_free(a);
    table_qp_free(b);
    verbs_must_be_0(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)));
    verbs_must_be_0(ibv_destroy_cq(cq));
    verbs_table_free(v);
}

/* Waits for the next completion on the extended CQ. */
static enum ibv_wc_status next_status(uint64_t *wr_id)
{
    enum ibv_wc_status status;

    for (unsigned i = 0; i < 100; i++) {
        if (ibv_start_poll(ex, &(struct ibv_poll_cq_attr){0}) == 0) {
            status = ex->status;
            *wr_id = ex->wr_id;
            ibv_end_poll(ex);
            return status;
        }
        table_wait(v);
    }
    ck_abort_msg("no completion");
}

static const struct mlx5dv_sig_t10dif dif = {.bg_type = MLX5DV_SIG_T10DIF_CRC,
                                             .bg = 0xffff,
                                             .app_tag = 0x1234,
                                             .ref_tag = 7,
                                             .flags = MLX5DV_SIG_T10DIF_FLAG_REF_REMAP};
static const struct mlx5dv_sig_crc crc = {.type = MLX5DV_SIG_CRC_TYPE_CRC64_XP10,
                                          .seed = UINT64_MAX};
static const struct mlx5dv_sig_block_domain dif_512 = {
    .sig_type = MLX5DV_SIG_TYPE_T10DIF, .sig.dif = &dif, .block_size = MLX5DV_BLOCK_SIZE_512};
static const struct mlx5dv_sig_block_domain crc_512 = {
    .sig_type = MLX5DV_SIG_TYPE_CRC, .sig.crc = &crc, .block_size = MLX5DV_BLOCK_SIZE_512};

/* Posts a configuration: with a layout of len bytes if that is not 0, and with attr if it is not
 * NULL. */
static int configure(struct ibv_qp *qp, struct mlx5dv_mkey *key, uint32_t len,
                     const struct mlx5dv_sig_block_attr *attr, uint32_t conf_flags)
{
    struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(qp);
    struct mlx5dv_qp_ex *dvx = hv_dv_qp_ex_from_ibv_qp_ex(qpx);
    struct mlx5dv_mkey_conf_attr conf = {.conf_flags = conf_flags};
    struct ibv_sge sge = {(uintptr_t)mr->addr, len, mr->lkey};

    ibv_wr_start(qpx);
    qpx->wr_id = 100;
    qpx->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
    mlx5dv_wr_mkey_configure(dvx, key, (uint8_t)(!!len + !!attr), &conf);
    if (len) {
        mlx5dv_wr_set_mkey_layout_list(dvx, 1, &sge);
    }
    if (attr) {
        mlx5dv_wr_set_mkey_sig_block(dvx, attr);
    }
    return ibv_wr_complete(qpx);
}

/* A work request has one completion, whatever it takes to configure the key. */
static void must_configure(uint32_t len, const struct mlx5dv_sig_block_attr *attr, uint32_t flags)
{
    uint64_t wr_id;

    ck_assert_int_eq(configure(a, mkey, len, attr, flags), 0);
    ck_assert_int_eq(next_status(&wr_id), IBV_WC_SUCCESS);
    ck_assert_uint_eq(wr_id, 100);
}

/* Writes len bytes of the key to the peer. */
static void write_key(uint32_t len)
{
    struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(a);
    uint64_t wr_id;

    ibv_wr_start(qpx);
    qpx->wr_id = 200;
    qpx->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(qpx, peer->rkey, (uintptr_t)peer->addr);
    ibv_wr_set_sge(qpx, mkey->lkey, 0, len);
    ck_assert_int_eq(ibv_wr_complete(qpx), 0);
    ck_assert_int_eq(next_status(&wr_id), IBV_WC_SUCCESS);
    ck_assert_uint_eq(wr_id, 200);
}

static struct mlx5dv_mkey_err checked(void)
{
    struct mlx5dv_mkey_err info = {0};

    ck_assert_int_eq(hv_dv_ops.mkey_check(mkey, &info, sizeof(info)), 0);
    return info;
}

/* The device has what a ConnectX has; a key without signatures has nothing to check. */
START_TEST(capabilities_are_those_of_a_card)
{
    struct mlx5dv_context caps = {.comp_mask = MLX5DV_CONTEXT_MASK_SIGNATURE_OFFLOAD};
    struct mlx5dv_mkey *plain = table_mkey_new(v, 0, 0);
    struct mlx5dv_mkey_err info;

    ck_assert_int_eq(hv_dv_query_device(v->a, &caps), 0);
    ck_assert_uint_eq(caps.sig_caps.block_prot,
                      MLX5DV_SIG_PROT_CAP_T10DIF | MLX5DV_SIG_PROT_CAP_CRC);
    ck_assert_uint_eq(caps.sig_caps.block_size, 0x1f);
    ck_assert_uint_eq(caps.sig_caps.t10dif_bg, 3);
    ck_assert_uint_eq(caps.sig_caps.crc_type, 7);
    ck_assert_int_eq(hv_dv_ops.mkey_check(plain, &info, sizeof(info)), EINVAL);
    ck_assert_int_eq(hv_dv_destroy_mkey(plain), 0);
    ck_assert_int_eq(checked().err_type, MLX5DV_MKEY_NO_ERR);
}
END_TEST

/* libmlx5's mlx5_send_wr_set_mkey_sig_block() and umr_wqe_finalize(). A refused request posts
 * nothing. */
START_TEST(setters_refuse_what_libmlx5_refuses)
{
    struct mlx5dv_sig_t10dif bad_dif = dif;
    struct mlx5dv_sig_crc bad_crc = crc;
    struct mlx5dv_sig_block_domain bad = dif_512;
    struct mlx5dv_sig_block_attr attr = {.mem = &bad};
    struct mlx5dv_mkey *plain = table_mkey_new(v, 0, 0);
    struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(a);
    struct mlx5dv_qp_ex *dvx = hv_dv_qp_ex_from_ibv_qp_ex(qpx);

    bad.block_size = MLX5DV_BLOCK_SIZE_4160 + 1;
    ck_assert_int_eq(configure(a, mkey, 520, &attr, 0), EINVAL);
    bad = dif_512;
    bad.comp_mask = 1;
    ck_assert_int_eq(configure(a, mkey, 520, &attr, 0), EINVAL);
    bad = dif_512;
    bad.sig.dif = &bad_dif;
    bad_dif.bg = 1;
    ck_assert_int_eq(configure(a, mkey, 520, &attr, 0), EINVAL);
    bad_dif = dif;
    bad_dif.flags = 8;
    ck_assert_int_eq(configure(a, mkey, 520, &attr, 0), EINVAL);
    bad = crc_512;
    bad.sig.crc = &bad_crc;
    bad_crc.seed = UINT32_MAX;
    ck_assert_int_eq(configure(a, mkey, 520, &attr, 0), EINVAL);
    bad_crc.type = 3;
    ck_assert_int_eq(configure(a, mkey, 520, &attr, 0), EINVAL);
    attr = (struct mlx5dv_sig_block_attr){.flags = 1};
    ck_assert_int_eq(configure(a, mkey, 520, &attr, 0), EINVAL); /* no domain */
    attr = (struct mlx5dv_sig_block_attr){.mem = &dif_512, .flags = 2};
    ck_assert_int_eq(configure(a, mkey, 520, &attr, 0), EINVAL);
    attr.flags = 0;
    ck_assert_int_eq(configure(a, plain, 520, &attr, 0), EINVAL);
    ck_assert_int_eq(configure(a, mkey, 520, &attr, 2), EOPNOTSUPP);
    /* a copy mask for domains of different structure */
    attr = (struct mlx5dv_sig_block_attr){
        .mem = &dif_512, .wire = &crc_512, .flags = MLX5DV_SIG_BLOCK_ATTR_FLAG_COPY_MASK};
    ck_assert_int_eq(configure(a, mkey, 520, &attr, 0), EINVAL);
    /* the setter twice in one request */
    ibv_wr_start(qpx);
    qpx->wr_flags = IBV_SEND_INLINE;
    mlx5dv_wr_mkey_configure(dvx, mkey, 3, &(struct mlx5dv_mkey_conf_attr){0});
    attr = (struct mlx5dv_sig_block_attr){.mem = &dif_512};
    mlx5dv_wr_set_mkey_sig_block(dvx, &attr);
    mlx5dv_wr_set_mkey_sig_block(dvx, &attr);
    ck_assert_int_eq(ibv_wr_complete(qpx), EINVAL);
    table_wait(v);
    ck_assert_int_eq(ibv_start_poll(ex, &(struct ibv_poll_cq_attr){0}), ENOENT);
    ck_assert_int_eq(hv_dv_destroy_mkey(plain), 0);
}
END_TEST

/* mlx5dv_mkey_check(3): the first error, once, with its place and values. The block of 512 bytes
 * with 0x20 and without a signature fails in the guard; then in the tags, when the guard and one
 * tag after the other are right. */
START_TEST(errors_have_their_places_and_values)
{
    const struct mlx5dv_sig_block_attr attr = {.mem = &dif_512, .check_mask = 0xff};
    uint8_t *bytes = mr->addr;
    struct mlx5dv_mkey_err info;
    uint64_t guard;

    memset(bytes, 0x20, 1040);
    memset(bytes + 512, 0, 8);
    must_configure(520, &attr, 0);
    write_key(512);
    info = checked();
    ck_assert_int_eq(info.err_type, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD);
    ck_assert_uint_eq(info.err.sig.offset, 0);
    ck_assert_uint_eq(info.err.sig.expected_value, 0);
    guard = info.err.sig.actual_value;
    ck_assert_int_eq(checked().err_type, MLX5DV_MKEY_NO_ERR);

    bytes[512] = (uint8_t)(guard >> 8);
    bytes[513] = (uint8_t)guard;
    write_key(512); /* the key is not armed */
    ck_assert_int_eq(checked().err_type, MLX5DV_MKEY_NO_ERR);
    must_configure(520, NULL, 0); /* arms it, and keeps the attributes */
    write_key(512);
    info = checked();
    ck_assert_int_eq(info.err_type, MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG);
    ck_assert_uint_eq(info.err.sig.expected_value, 0);
    ck_assert_uint_eq(info.err.sig.actual_value, 0x1234);

    bytes[514] = 0x12;
    bytes[515] = 0x34;
    must_configure(520, NULL, 0);
    write_key(512);
    info = checked();
    ck_assert_int_eq(info.err_type, MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG);
    ck_assert_uint_eq(info.err.sig.actual_value, 7);

    bytes[519] = 7;
    memcpy(bytes + 520, bytes, 520); /* the second block has the reference tag of the first */
    must_configure(1040, NULL, 0);
    write_key(1024);
    info = checked();
    ck_assert_int_eq(info.err_type, MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG);
    ck_assert_uint_eq(info.err.sig.offset, 520);
    ck_assert_uint_eq(info.err.sig.expected_value, 7);
    ck_assert_uint_eq(info.err.sig.actual_value, 8);
    ck_assert_int_eq(memcmp(peer->addr, bytes, 512), 0);
}
END_TEST

/* MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR: the data has no signatures any more; a later configuration
 * sets new ones. */
START_TEST(attributes_are_reset_and_set_again)
{
    const struct mlx5dv_sig_block_attr attr = {.wire = &crc_512, .check_mask = 0xff};
    uint8_t *bytes = mr->addr, *got = peer->addr;

    memset(bytes, 0x31, 512);
    memset(got, 0, 1024);
    must_configure(512, &attr, 0);
    write_key(512);
    ck_assert_int_eq(memcmp(got, bytes, 512), 0);
    ck_assert_uint_ne(got[512] | got[519], 0); /* the signature that was added */
    memset(got, 0, 1024);
    must_configure(512, NULL, MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR);
    write_key(512);
    ck_assert_int_eq(memcmp(got, bytes, 512), 0);
    ck_assert_uint_eq(got[512] | got[519], 0);
    must_configure(0, &attr, 0);
    write_key(512);
    ck_assert_uint_ne(got[512] | got[519], 0);
}
END_TEST

/* A key is not made in parts: if a command fails, no PSV stays. */
START_TEST(nothing_stays_of_a_key_that_could_not_be_made)
{
    struct mlx5dv_mkey_init_attr attr = {.pd = v->hosts->host[0].pd,
                                         .create_flags =
                                             MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT |
                                             MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE,
                                         .max_entries = 4};

    table_refuse(v, 0, PRM_CMD_STATUS_NO_RES);
    ck_assert_ptr_null(hv_dv_create_mkey(&attr));
    /* verbs_table_free() fails if the PD cannot be freed */
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("signatures in direct verbs");
    TCase *tc = tcase_create("sig");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, capabilities_are_those_of_a_card);
    tcase_add_test(tc, setters_refuse_what_libmlx5_refuses);
    tcase_add_test(tc, errors_have_their_places_and_values);
    tcase_add_test(tc, attributes_are_reset_and_set_again);
    tcase_add_test(tc, nothing_stays_of_a_key_that_could_not_be_made);
    suite_add_tcase(s, tc);
    return s;
}
