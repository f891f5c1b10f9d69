/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests what a trace shows (model/core/trace.c): each work request, completion and event, by
 * name. */
#include "tests/unit/requester_bench.h"
#include "tests/unit/suite.h"

#define LEN 100

static GString *said;
static struct hca_host_ops traced_ops;

static void note_trace(void *host, enum hca_log_level level, const char *line)
{
    if (level == HCA_LOG_TRACE) {
        g_string_append_printf(said, "%s\n", line);
    }
}

static void trace(struct lab_side *side)
{
    said = g_string_new(NULL);
    traced_ops = *side->hca.ops;
    traced_ops.log = note_trace;
    side->hca.ops = &traced_ops;
    side->hca.tracing = true;
}

static void end_trace(void)
{
    g_string_free(said, true);
}

static void expect_said(const char *what)
{
    ck_assert_msg(strstr(said->str, what) != NULL, "nothing says '%s':\n%s", what, said->str);
}

static void send_one(void)
{
    struct lab_wr wr = send_wr(lab_mem(left, LEN, 1), LEN);

    lab_post_recv(&b, lab_mem(right, LEN, 0), LEN);
    lab_post(&a, &wr);
    lab_run(lab);
    expect_sent(PRM_WQE_OPCODE_SEND, 0);
    expect_received(LEN);
}

START_TEST(who_sends_says_what)
{
    g_autofree char *wqe = g_strdup_printf("qp 0x%x: send wqe 0 SEND", a.qp->obj.num);

    trace(left);
    send_one();
    expect_said(wqe);
    expect_said("cqe REQ");
    end_trace();
}
END_TEST

START_TEST(who_receives_says_into_what)
{
    g_autofree char *wqe =
        g_strdup_printf("qp 0x%x: receive wqe 0: 1 pieces, %u bytes", b.qp->obj.num, LEN);

    trace(right);
    send_one();
    expect_said(wqe);
    expect_said("cqe RESP_SEND");
    end_trace();
}
END_TEST

/* A QP in RTR that receives is an event (communication established). */
START_TEST(an_event_has_its_type_and_number)
{
    trace(right);
    b.qp->state = PRM_QP_STATE_RTR;
    send_one();
    expect_said("event COMM_EST.0");
    end_trace();
}
END_TEST

/* Without a request for a trace nothing is printed or formatted. */
START_TEST(no_trace_without_a_wish)
{
    trace(left);
    left->hca.tracing = false;
    send_one();
    ck_assert_uint_eq(said->len, 0);
    end_trace();
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("trace");
    TCase *tc = tcase_create("trace");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, who_sends_says_what);
    tcase_add_test(tc, who_receives_says_into_what);
    tcase_add_test(tc, an_event_has_its_type_and_number);
    tcase_add_test(tc, no_trace_without_a_wish);
    suite_add_tcase(s, tc);
    return s;
}
