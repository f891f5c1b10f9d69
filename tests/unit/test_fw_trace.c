/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests what a trace says of commands as the driver gives them: objects that are modified have
 * their changes. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "fw/fw_internal.h"
#include "model/eth/tir.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_fw_driver.h"

static struct fwd d;
static GString *said;
static struct hca_host_ops traced_ops;
static const struct drv_path path = {.mac = {2, 0, 0, 0, 0, 9}, .mtu = PRM_QP_MTU_1024};

static void note_trace(void *host, enum hca_log_level level, const char *line)
{
    if (level == HCA_LOG_TRACE) {
        g_string_append_printf(said, "%s\n", line);
    }
}

static void setup(void)
{
    fwd_open(&d);
    said = g_string_new(NULL);
    traced_ops = *d.fw->hca.ops;
    traced_ops.log = note_trace;
    d.fw->hca.ops = &traced_ops;
    d.fw->hca.tracing = true;
}

static void teardown(void)
{
    fwd_clear(&d);
    g_string_free(said, true);
}

/* The last line of the trace. */
static const char *last(void)
{
    char *end = said->str + said->len - 1, *start;

    ck_assert_uint_gt(said->len, 0);
    *end = '\0';
    start = strrchr(said->str, '\n');
    return start ? start + 1 : said->str;
}

START_TEST(an_object_has_its_number)
{
    g_autofree char *line = NULL;
    uint32_t pdn;

    ck_assert_int_eq(drv_alloc_pd(d.drv, &pdn), 0);
    line = g_strdup_printf("command ALLOC_PD OK -> pd=%u", pdn);
    ck_assert_uint_lt(pdn, 10); /* else it would be hexadecimal */
    ck_assert_str_eq(last(), line);
}
END_TEST

/* "changed fields only": the state and what the transition sets, not the whole context. */
START_TEST(a_transition_has_the_fields_that_it_changes)
{
    struct drv_cq cq;
    struct drv_qp qp;
    struct drv_qp_attr attr = {.st = PRM_QP_ST_RC, .log_sq = 4, .log_rq = 4, .max_recv_sge = 1};
    g_autofree char *line = NULL;

    ck_assert_int_eq(drv_alloc_pd(d.drv, &attr.pdn), 0);
    ck_assert_int_eq(drv_create_cq(d.drv, 4, &cq), 0);
    attr.send_cq = attr.recv_cq = &cq;
    ck_assert_int_eq(drv_create_qp(d.drv, &attr, &qp), 0);
    ck_assert_int_eq(drv_qp_to_init(&qp, &path), 0);
    line = g_strdup_printf("command RST2INIT_QP OK: qpn=0x%x qpc{state=RST->INIT "
                           "primary_address_path{vhca_port_num=0->1} atomic_mode=NONE->UP_TO_128B "
                           "rre=0->1 rwe=0->1 rae=0->1}",
                           qp.qpn);
    ck_assert_str_eq(last(), line);
    ck_assert_int_eq(drv_destroy_qp(&qp), 0);
    ck_assert_int_eq(drv_destroy_cq(d.drv, &cq), 0);
}
END_TEST

static uint32_t make_rq(struct drv_cq *cq)
{
    uint8_t bytes[PRM_create_rq_in_SIZE + 8] = {0}, out[16];
    struct prm_create_rq_in *in = (void *)bytes;
    struct prm_rqc *rqc = PRM_PTR(create_rq_in, in, ctx);
    struct prm_wq *wq = PRM_PTR(rqc, rqc, wq);

    PRM_SET(create_rq_in, in, opcode, PRM_CMD_OP_CREATE_RQ);
    PRM_SET(rqc, rqc, cqn, cq->cqn);
    PRM_SET(wq, wq, wq_type, PRM_WQ_TYPE_CYCLIC);
    PRM_SET(wq, wq, pd, d.drv->pdn);
    PRM_SET(wq, wq, log_wq_stride, 6);
    PRM_SET(wq, wq, log_wq_sz, 4);
    PRM_SET(wq, wq, dbr_addr, fake_host_alloc(&d.host, 8, 8));
    prm_store64(PRM_PTR_AT(wq, wq, pas, 0), fake_host_alloc(&d.host, 4096, 4096));
    ck_assert_int_eq(fwd_cmd(&d, in, sizeof(bytes), out, sizeof(out)), SYN_OK);
    return PRM_GET(create_rq_out, (void *)out, rqn);
}

/* Sends a command with a list of all the queues that an RQT can have: the last one is another RQ.
 * rqtc: where the context is in the input. */
static void send_rqt(void *in, size_t in_size, struct prm_rqtc *rqtc, uint32_t rqn,
                     uint32_t last_rqn, void *out)
{
    PRM_SET(rqtc, rqtc, rqt_max_size, RQT_MAX_SIZE);
    PRM_SET(rqtc, rqtc, rqt_actual_size, RQT_MAX_SIZE);
    for (unsigned i = 0; i < RQT_MAX_SIZE; i++) {
        PRM_SET(rq_num, PRM_PTR_AT(rqtc, rqtc, rq_num, i), rq_num,
                i == RQT_MAX_SIZE - 1 ? last_rqn : rqn);
    }
    ck_assert_int_eq(fwd_cmd(&d, in, in_size + RQT_MAX_SIZE * PRM_SIZE(rq_num), out, 16), SYN_OK);
}

/* "the fields of the object that have changed": also those of a list behind the context, up to the
 * end of the longest one. */
START_TEST(a_list_has_the_elements_that_change)
{
    g_autofree struct prm_create_rqt_in *create =
        g_malloc0(PRM_SIZE(create_rqt_in) + RQT_MAX_SIZE * PRM_SIZE(rq_num));
    g_autofree struct prm_modify_rqt_in *modify =
        g_malloc0(PRM_SIZE(modify_rqt_in) + RQT_MAX_SIZE * PRM_SIZE(rq_num));
    g_autofree char *change = NULL;
    uint32_t rqn[2];
    uint8_t out[16];
    struct drv_cq cq;

    ck_assert_int_eq(drv_create_cq(d.drv, 4, &cq), 0);
    rqn[0] = make_rq(&cq);
    rqn[1] = make_rq(&cq);
    PRM_SET(create_rqt_in, create, opcode, PRM_CMD_OP_CREATE_RQT);
    send_rqt(create, PRM_SIZE(create_rqt_in), PRM_PTR(create_rqt_in, create, rqt_context), rqn[0],
             rqn[0], out);
    PRM_SET(modify_rqt_in, modify, opcode, PRM_CMD_OP_MODIFY_RQT);
    PRM_SET(modify_rqt_in, modify, rqtn, PRM_GET(create_rqt_out, (void *)out, rqtn));
    PRM_SET(rqt_bitmask, PRM_PTR(modify_rqt_in, modify, bitmask), rqn_list, 1);
    send_rqt(modify, PRM_SIZE(modify_rqt_in), PRM_PTR(modify_rqt_in, modify, ctx), rqn[0], rqn[1],
             out);
    change = g_strdup_printf(" rqt_context{rq_num[%u]{rq_num=0x%x->0x%x}}", RQT_MAX_SIZE - 1,
                             rqn[0], rqn[1]);
    ck_assert_uint_gt(rqn[0], 9); /* else it would be decimal */
    ck_assert_msg(g_str_has_suffix(last(), change), "%s", last());
}
END_TEST

/* A transition that is refused changes nothing: the line has what was asked for. */
START_TEST(a_refused_transition_has_its_input)
{
    uint8_t in[PRM_rst2init_qp_in_SIZE] = {0}, out[16];

    PRM_SET(rst2init_qp_in, (void *)in, opcode, PRM_CMD_OP_RST2INIT_QP);
    PRM_SET(rst2init_qp_in, (void *)in, qpn, 0xabc);
    PRM_SET(qpc, PRM_PTR(rst2init_qp_in, (void *)in, qpc), rre, 1);
    ck_assert_int_ne(fwd_cmd(&d, in, sizeof(in), out, sizeof(out)), SYN_OK);
    ck_assert_ptr_nonnull(strstr(last(), "): qpn=0xabc qpc{rre=1}"));
    ck_assert_ptr_nonnull(strstr(last(), "command RST2INIT_QP BAD_RES (syndrome 0x"));
}
END_TEST

/* Without a trace, nobody queries. */
START_TEST(nothing_is_traced_unless_requested)
{
    uint32_t pdn;

    d.fw->hca.tracing = false;
    ck_assert_int_eq(drv_alloc_pd(d.drv, &pdn), 0);
    ck_assert_uint_eq(said->len, 0);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("fw trace");
    TCase *tc = tcase_create("commands");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, an_object_has_its_number);
    tcase_add_test(tc, a_transition_has_the_fields_that_it_changes);
    tcase_add_test(tc, a_list_has_the_elements_that_change);
    tcase_add_test(tc, a_refused_transition_has_its_input);
    tcase_add_test(tc, nothing_is_traced_unless_requested);
    suite_add_tcase(s, tc);
    return s;
}
