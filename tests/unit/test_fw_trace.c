/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests what a trace says of commands as the driver gives them: objects that are modified have
 * their changes. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "fw/fw_internal.h"
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
START_TEST(no_trace_without_a_wish)
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
    tcase_add_test(tc, a_refused_transition_has_its_input);
    tcase_add_test(tc, no_trace_without_a_wish);
    suite_add_tcase(s, tc);
    return s;
}
