/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests what a simulation promises its users: a seed repeats bit for bit, another seed gives
 * another run, a failure is reported and shrunk, and leaks are found. The kinds here are one that
 * works and some that do not.
 */
#include <check.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>
#include "fw/fw_internal.h"
#include "guest-lib/host/local_internal.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "model/rdma/flight.h"
#include "model/rdma/qp.h"
#include "tests/sim/fabric/runner.h"
#include "tests/sim/fabric/pair.h"
#include "tests/sim/fabric/shrink.h"
#include "tests/unit/suite.h"

extern const struct kind kind_rc;

/* -- kinds that fail --------------------------------------------------------------------------- */

struct liar {
    unsigned steps;
    struct ibv_mr *mr;
    uint8_t bytes[64];
};

static void liar_make(struct job *job)
{
}

/* Reports a failure in its tenth step, if it has that many operations. */
static bool liar_step(struct job *job)
{
    struct liar *liar = job->state;

    sim_check(job, liar->steps < 10, "is a liar");
    liar->steps++;
    return true;
}

static bool liar_is_done(const struct job *job)
{
    return ((const struct liar *)job->state)->steps >= job->sim->options.ops;
}

static void liar_free(struct job *job)
{
}

static const struct kind kind_liar = {.name = "liar",
                                      .hosts = 2,
                                      .size = sizeof(struct liar),
                                      .make = liar_make,
                                      .step = liar_step,
                                      .is_done = liar_is_done,
                                      .free = liar_free};

/* Never ends. */
static bool idler_step(struct job *job)
{
    return false;
}

static bool idler_is_done(const struct job *job)
{
    return false;
}

static const struct kind kind_idler = {.name = "idler",
                                       .hosts = 2,
                                       .size = 1,
                                       .make = liar_make,
                                       .step = idler_step,
                                       .is_done = idler_is_done,
                                       .free = liar_free};

/* Does not destroy what it made. */
static void leaker_make(struct job *job)
{
    struct ibv_cq *cq = ibv_create_cq(job->host[0]->ctx, 16, NULL, NULL, 0);

    sim_check(job, cq, "no CQ");
}

static const struct kind kind_leaker = {.name = "leaker",
                                        .hosts = 2,
                                        .size = sizeof(struct liar),
                                        .make = leaker_make,
                                        .step = idler_step,
                                        .is_done = liar_is_done,
                                        .free = liar_free};

/* A connection whose first host loses its queues' ACK timers, or their turns. */
static void robber_make(struct job *job)
{
    kind_rc.make(job);
}

static void robber_rob(const struct sim_host *host, bool timers)
{
    struct hca *hca = &hv_context(host->ctx)->hca->local->fw->hca;

    OBJ_TABLE_FOREACH (obj, &hca->qpns) {
        struct qp *qp = (struct qp *)obj;

        if (obj->kind == OBJ_QP && !timers) {
            hca_unschedule(&qp->req.work);
        } else if (obj->kind == OBJ_QP && qp->req.flight) {
            hca_timer_stop(hca, &qp->req.flight->timer);
        }
    }
}

static bool robber_step(struct job *job)
{
    bool did = kind_rc.step(job);

    robber_rob(job->host[0], job->number % 2);
    return did;
}

static bool robber_is_done(const struct job *job)
{
    return kind_rc.is_done(job);
}

static void robber_free(struct job *job)
{
    kind_rc.free(job);
}

/* kind_rc's state is a struct pair. */
static const struct kind kind_robber = {.name = "robber",
                                        .hosts = 2,
                                        .size = sizeof(struct pair),
                                        .make = robber_make,
                                        .step = robber_step,
                                        .is_done = robber_is_done,
                                        .free = robber_free};

static const struct kind *const kinds[] = {&kind_rc,     &kind_liar,   &kind_idler,
                                           &kind_leaker, &kind_robber, NULL};

const struct kind *kind_at(unsigned nth)
{
    return kinds[nth];
}

const struct kind *kind_find(const char *name)
{
    for (unsigned i = 0; kinds[i]; i++) {
        if (!strcmp(kinds[i]->name, name)) {
            return kinds[i];
        }
    }
    return NULL;
}

/* -- runs -------------------------------------------------------------------------------------- */

static struct sim_options options;

static void setup(void)
{
    sim_options_init(&options);
}

static void teardown(void)
{
    sim_options_clear(&options);
}

static void set(const char *name, const char *value)
{
    ck_assert(sim_options_set(&options, name, value, NULL));
}

START_TEST(the_same_seed_is_the_same_run_bit_by_bit)
{
    struct verdict first, again, other;

    set("seed", "3");
    set("loss", "1");
    first = runner_run(&options);
    again = runner_run(&options);
    set("seed", "4");
    other = runner_run(&options);
    ck_assert_msg(first.passed && again.passed && other.passed, "%s %s %s", first.said, again.said,
                  other.said);
    ck_assert_mem_eq(&first.tally, &again.tally, sizeof(first.tally));
    ck_assert_uint_gt(first.tally.frames, 0);
    ck_assert_uint_ne(first.tally.fingerprint, other.tally.fingerprint);
    g_free(first.said);
    g_free(again.said);
    g_free(other.said);
}
END_TEST

START_TEST(a_job_that_is_left_out_changes_no_other_draw)
{
    struct sim_options drawn, again;

    set("seed", "5");
    drawn = sim_options_draw(&options);
    set("only", "0");
    again = sim_options_draw(&options);
    ck_assert_uint_eq(drawn.hosts, again.hosts);
    ck_assert_uint_eq(drawn.loss, again.loss);
    sim_options_clear(&drawn);
    sim_options_clear(&again);
}
END_TEST

START_TEST(a_failure_is_told_with_its_job)
{
    struct verdict verdict;

    set("workload", "liar");
    set("ops", "100");
    verdict = runner_run(&options);
    ck_assert(!verdict.passed);
    ck_assert_ptr_nonnull(strstr(verdict.said, "(liar, hosts"));
    ck_assert_ptr_nonnull(strstr(verdict.said, "is a liar"));
    g_free(verdict.said);
}
END_TEST

START_TEST(a_failing_seed_is_made_smaller)
{
    struct sim_options smaller;
    char *said = g_strdup("");
    unsigned runs;

    set("workload", "liar,rc");
    set("seed", "1");
    set("jobs", "8");
    set("hosts", "6");
    set("ops", "100");
    set("loss", "1");
    smaller = shrink(&options, &said, &runs);
    ck_assert_ptr_nonnull(strstr(said, "is a liar"));
    ck_assert_uint_eq(strlen(smaller.only), 1); /* one job */
    ck_assert_uint_le(smaller.ops, 20);
    ck_assert_uint_eq(smaller.loss, 0);
    ck_assert_uint_eq(smaller.hosts, 2);
    sim_options_clear(&smaller);
    g_free(said);
}
END_TEST

START_TEST(a_job_that_does_not_get_on_fails)
{
    struct verdict verdict;

    set("workload", "idler");
    verdict = runner_run(&options);
    ck_assert(!verdict.passed);
    ck_assert_ptr_nonnull(strstr(verdict.said, "has not got on"));
    g_free(verdict.said);
}
END_TEST

/* The failure names what the queue waited for, and what would end the wait. */
START_TEST(a_queue_that_nobody_runs_again_fails)
{
    struct verdict verdict;

    set("workload", "robber");
    set("only", _i ? "1" : "0");
    set("hosts", "2");
    set("latency", "10000000");
    verdict = runner_run(&options);
    ck_assert(!verdict.passed);
    ck_assert_msg(strstr(verdict.said, "is idle with work in it"), "%s", verdict.said);
    ck_assert_msg(
        strstr(verdict.said, _i ? "an answer, which a response or the ACK timer ends" : " ends"),
        "%s", verdict.said);
    g_free(verdict.said);
}
END_TEST

START_TEST(an_object_that_is_left_fails)
{
    struct verdict verdict;

    set("workload", "leaker");
    set("ops", "0");
    verdict = runner_run(&options);
    ck_assert(!verdict.passed);
    ck_assert_ptr_nonnull(strstr(verdict.said, "after all jobs"));
    g_free(verdict.said);
}
END_TEST

START_TEST(a_command_says_what_is_set)
{
    g_autofree char *text = NULL;

    set("seed", "9");
    set("seeds", "100");
    set("loss", "0.25");
    set("workload", "rc");
    text = sim_options_print(&options);
    ck_assert_str_eq(text, " --seed 9 --workload rc --loss 0.25");
    ck_assert(!sim_options_set(&options, "loss", "101", NULL));
    ck_assert(!sim_options_set(&options, "hosts", "1001", NULL));
    ck_assert(!sim_options_set(&options, "colour", "red", NULL));
}
END_TEST

/* A host that is reset, and comes again, is one more interface. */
START_TEST(a_capture_has_all_hosts)
{
    g_autofree char *path = g_strdup_printf("%s/hcasim-runs-%d.pcapng", g_get_tmp_dir(), getpid());
    struct verdict verdict;
    g_autofree char *bytes = NULL;
    unsigned interfaces = 0;
    gsize len;

    set("hosts", "3");
    set("workload", "rc");
    set("capture", path);
    verdict = runner_run(&options);
    ck_assert_msg(verdict.passed, "%s", verdict.said);
    ck_assert(g_file_get_contents(path, &bytes, &len, NULL));
    for (gsize at = 0; at < len; at += *(uint32_t *)(bytes + at + 4)) {
        interfaces += *(uint32_t *)(bytes + at) == 1; /* an interface description */
    }
    ck_assert_uint_ge(interfaces, 3);
    ck_assert_int_eq(g_remove(path), 0);
    g_free(verdict.said);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("simulations");
    TCase *tcase = tcase_create("runs");

    tcase_set_timeout(tcase, 240);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, the_same_seed_is_the_same_run_bit_by_bit);
    tcase_add_test(tcase, a_job_that_is_left_out_changes_no_other_draw);
    tcase_add_test(tcase, a_failure_is_told_with_its_job);
    tcase_add_test(tcase, a_failing_seed_is_made_smaller);
    tcase_add_test(tcase, a_job_that_does_not_get_on_fails);
    tcase_add_loop_test(tcase, a_queue_that_nobody_runs_again_fails, 0, 2);
    tcase_add_test(tcase, an_object_that_is_left_fails);
    tcase_add_test(tcase, a_command_says_what_is_set);
    tcase_add_test(tcase, a_capture_has_all_hosts);
    suite_add_tcase(suite, tcase);
    return suite;
}
