/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests an incast: hosts write to one host without end, over a switch with 25 Gb/s cables. Without
 * congestion marks everything that the windows allow waits in the switch. With marks the hosts slow
 * down, the queue stays short, and each host gets its share. Eight hosts do so with the settings of
 * delivered adapters. For 32 hosts, whose CNPs the one host would have to spread too thin, both
 * sides are configured (docs/explanation/congestion.md has the figures).
 *
 * With HCASIM_INCAST_CSV in the environment a run writes its samples to that file:
 * scripts/lib/incast.py draws docs/explanation/incast.svg from it.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include "guest-lib/drv/drv.h"
#include "tests/sim/fabric/fabric.h"
#include "tests/unit/suite.h"

#define SENDERS  32
#define RATE     25000000000ull
#define MESSAGE  (64u << 10)
#define POSTED   4 /* outstanding messages of a sender */
#define US       1000ull
#define SAMPLE   (100 * US)
#define SAMPLES  600
#define BEGINS   250 /* samples during which the hosts find their rates */
#define NUM_MTUS 5

struct host {
    struct inproc_hca *hca;
    struct wire_port *port;
    struct drv *drv;
    struct drv_cq cq;
    struct drv_qp qp;
    struct drv_mem mem;
    struct drv_mr mr;
    uint8_t gid[16];
    unsigned posted, done;
};

struct incast {
    struct inproc_world *world;
    struct fabric *fabric;
    unsigned num; /* number of senders */
    struct host senders[SENDERS], target;
    struct drv_qp at_target[SENDERS];
};

struct outcome {
    unsigned num;            /* number of senders */
    uint32_t queue[SAMPLES]; /* bytes that wait for the target, in each sample */
    unsigned done[SAMPLES][SENDERS];
    struct fabric_stats stats;
};

static void host_set(struct host *host, unsigned protocol, unsigned select, uint32_t field,
                     uint32_t value)
{
    struct prm_modify_cong_params_in in[1] = {0};

    PRM_SET(modify_cong_params_in, in, opcode, PRM_CMD_OP_MODIFY_CONG_PARAMS);
    PRM_SET(modify_cong_params_in, in, cong_protocol, protocol);
    PRM_SET(modify_cong_params_in, in, field_select, 1u << select);
    prm_set(PRM_PTR(modify_cong_params_in, in, congestion_parameters), field, value, "value");
    ck_assert_int_eq(drv_cmd_simple(host->drv, in, sizeof(in)), 0);
}

/* Configures a CNP for each mark, as a ConnectX-4 Lx of 2019 is delivered; and a sender's target
 * rate that follows each CNP. */
static void host_set_up(struct host *host)
{
    host_set(host, PRM_CONG_PROTOCOL_R_ROCE_ECN_NP, 2,
             PRM_cong_control_r_roce_ecn_np_min_time_between_cnps_FIELD, 0);
    host_set(host, PRM_CONG_PROTOCOL_R_ROCE_ECN_RP, 1,
             PRM_cong_control_r_roce_ecn_rp_clamp_tgt_rate_FIELD, 1);
}

static void host_init(struct incast *t, struct host *host, uint8_t number)
{
    struct fw_config config = {.profile = "cx4lx", .mac = {0x02, 0, 0, 0, 0, number}};
    GError *err = NULL;

    host->hca = inproc_hca_new(t->world, &config, &err);
    ck_assert_ptr_nonnull(host->hca);
    host->port = fabric_plug(t->fabric);
    fw_set_wire(host->hca->fw, host->port);
    host->drv = drv_open(inproc_pci(host->hca), &err);
    ck_assert_ptr_nonnull(host->drv);
    drv_ipv4_gid(host->gid, number);
    ck_assert_int_eq(drv_set_port_mtu(host->drv, 9000), 0);
    ck_assert_int_eq(drv_set_gid(host->drv, 0, host->gid), 0);
    ck_assert_int_eq(drv_create_cq(host->drv, 8, &host->cq), 0);
    host->mem = drv_alloc(host->drv, MESSAGE);
    ck_assert_int_eq(
        drv_reg_mr(host->drv, host->drv->pdn, &host->mem, 0, MESSAGE, DRV_ALL, &host->mr), 0);
}

static void host_clear(struct host *host)
{
    fw_set_wire(host->hca->fw, NULL);
    wire_close(host->port);
    ck_assert_int_eq(drv_dereg_mr(host->drv, &host->mr), 0);
    drv_free(host->drv, &host->mem);
    ck_assert_int_eq(drv_destroy_cq(host->drv, &host->cq), 0);
    ck_assert_uint_eq(drv_close(host->drv), 0);
    ck_assert_uint_eq(host->hca->outstanding, 0);
}

static void host_qp(struct host *host, struct drv_qp *qp)
{
    struct drv_qp_attr attr = {
        .st = PRM_QP_ST_RC,
        .pdn = host->drv->pdn,
        .send_cq = &host->cq,
        .recv_cq = &host->cq,
        .log_sq = 5,
        .log_rq = 0,
        .max_recv_sge = 1,
    };

    ck_assert_int_eq(drv_create_qp(host->drv, &attr, qp), 0);
}

static void host_connect(struct drv_qp *qp, const struct host *there, uint32_t qpn)
{
    struct drv_path path = {.remote_qpn = qpn, .mtu = NUM_MTUS, .ack_timeout = 16};

    memcpy(path.mac, there->drv->mac, 6);
    memcpy(path.gid, there->gid, 16);
    ck_assert_int_eq(drv_qp_connect(qp, &path), 0);
}

static void incast_begin(struct incast *t, unsigned num, bool marks, bool set_up)
{
    struct fabric_config config = {
        .seed = 1,
        .uplink = {.latency_ns = 1000, .rate = RATE},
        .downlink = {.latency_ns = 1000, .rate = RATE},
    };

    if (marks) { /* as in the DCQCN paper: none below 5 KB, all from 200 KB on, 1 % just below */
        config.downlink.ecn_min = 5000;
        config.downlink.ecn_max = 200000;
        config.downlink.ecn_most = CHANCE_MILLION / 100;
    }
    *t = (struct incast){.world = inproc_world_new(), .num = num};
    t->world->arena_size = 8u << 20;
    t->fabric = fabric_new(t->world, &config);
    host_init(t, &t->target, 100);
    if (set_up) {
        host_set_up(&t->target);
    }
    for (unsigned i = 0; i < num; i++) {
        struct host *sender = &t->senders[i];

        host_init(t, sender, (uint8_t)(i + 1));
        if (set_up) {
            host_set_up(sender);
        }
        host_qp(sender, &sender->qp);
        host_qp(&t->target, &t->at_target[i]);
        host_connect(&sender->qp, &t->target, t->at_target[i].qpn);
        host_connect(&t->at_target[i], sender, sender->qp.qpn);
    }
}

static void incast_end(struct incast *t)
{
    for (unsigned i = 0; i < t->num; i++) {
        ck_assert_int_eq(drv_destroy_qp(&t->senders[i].qp), 0);
        ck_assert_int_eq(drv_destroy_qp(&t->at_target[i]), 0);
        host_clear(&t->senders[i]);
    }
    host_clear(&t->target);
    fabric_free(t->fabric);
    inproc_world_free(t->world);
}

/* Keeps each sender's messages posted. */
static void incast_post(struct incast *t, struct host *sender)
{
    struct drv_sge sge = {.va = sender->mr.va, .len = MESSAGE, .lkey = sender->mr.key};
    struct drv_send send = {
        .opcode = PRM_WQE_OPCODE_RDMA_WRITE,
        .flags = DRV_SIGNALED,
        .sge = &sge,
        .num_sge = 1,
        .raddr = t->target.mr.va,
        .rkey = t->target.mr.key,
    };
    struct drv_wc wc;

    while (drv_poll_cq(sender->drv, &sender->cq, &wc)) {
        ck_assert_uint_eq(wc.opcode, PRM_CQE_OPCODE_REQ);
        sender->done++;
    }
    while (sender->posted - sender->done < POSTED) {
        drv_post_send(&sender->qp, &send);
        sender->posted++;
    }
}

static struct outcome *incast_run(unsigned num, bool marks, bool set_up)
{
    struct outcome *out = g_new0(struct outcome, 1);
    struct incast t;

    out->num = num;
    incast_begin(&t, num, marks, set_up);
    for (unsigned i = 0; i < SAMPLES; i++) {
        for (unsigned part = 0; part < 10; part++) {
            for (unsigned s = 0; s < num; s++) {
                incast_post(&t, &t.senders[s]);
            }
            inproc_advance(t.world, SAMPLE / 10);
            out->queue[i] = MAX(out->queue[i], link_queued(fabric_downlink(t.fabric, 0)));
        }
        for (unsigned s = 0; s < num; s++) {
            out->done[i][s] = t.senders[s].done;
        }
    }
    out->stats = fabric_stats(t.fabric);
    incast_end(&t);
    return out;
}

/* -- results of a run -------------------------------------------------------------------------- */

static uint32_t queue_most(const struct outcome *o, unsigned from)
{
    uint32_t most = 0;

    for (unsigned i = from; i < SAMPLES; i++) {
        most = MAX(most, o->queue[i]);
    }
    return most;
}

static double share(const struct outcome *o, unsigned sender)
{
    return o->done[SAMPLES - 1][sender] - o->done[BEGINS][sender];
}

/* Jain's index of fairness: 1 if all have the same, 1/num if one sender has everything. */
static double fairness(const struct outcome *o)
{
    double sum = 0, squares = 0;

    for (unsigned s = 0; s < o->num; s++) {
        sum += share(o, s);
        squares += share(o, s) * share(o, s);
    }
    return sum * sum / (o->num * squares);
}

/* Returns the share of the target's cable that is used, once rates are found. */
static double utilization(const struct outcome *o)
{
    double sum = 0, ns = (double)(SAMPLES - 1 - BEGINS) * SAMPLE;

    for (unsigned s = 0; s < o->num; s++) {
        sum += share(o, s);
    }
    return sum * MESSAGE * 8 / (RATE / 1e9 * ns);
}

static void write_csv(const struct outcome *without, const struct outcome *with)
{
    const char *path = getenv("HCASIM_INCAST_CSV");
    FILE *f = path ? fopen(path, "w") : NULL;

    if (!f) {
        return;
    }
    fprintf(f, "ms,queue_without,queue_with");
    for (unsigned s = 0; s < SENDERS; s++) {
        fprintf(f, ",sender%u", s);
    }
    fprintf(f, "\n");
    for (unsigned i = 0; i < SAMPLES; i++) {
        fprintf(f, "%.1f,%u,%u", (i + 1) * (SAMPLE / 1e6), without->queue[i], with->queue[i]);
        for (unsigned s = 0; s < SENDERS; s++) {
            fprintf(f, ",%u", with->done[i][s]);
        }
        fprintf(f, "\n");
    }
    fclose(f);
}

static void tell(const char *what, const struct outcome *o)
{
    printf("%u senders, %s: queue %u bytes (%u at first), fairness %.3f, %.0f %% of the cable; %lu "
           "packets marked\n",
           o->num, what, queue_most(o, BEGINS), queue_most(o, 0), fairness(o), 100 * utilization(o),
           (unsigned long)o->stats.marked);
}

static void expect_marks_to_help(const struct outcome *without, const struct outcome *with,
                                 double use)
{
    tell("no marks", without);
    tell("marks", with);
    ck_assert_uint_eq(without->stats.marked, 0);
    ck_assert_uint_gt(with->stats.marked, 0);
    ck_assert_uint_gt(queue_most(without, BEGINS), 4 * queue_most(with, BEGINS));
    ck_assert(fairness(with) > 0.95);
    ck_assert(utilization(with) > use);
}

START_TEST(marks_keep_the_queue_short_and_shares_fair)
{
    struct outcome *without = incast_run(SENDERS, false, true);
    struct outcome *with = incast_run(SENDERS, true, true);

    write_csv(without, with);
    expect_marks_to_help(without, with, 0.85);
    g_free(without);
    g_free(with);
}
END_TEST

START_TEST(eight_senders_need_no_other_parameters)
{
    struct outcome *without = incast_run(8, false, false), *with = incast_run(8, true, false);

    expect_marks_to_help(without, with, 0.95);
    g_free(without);
    g_free(with);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("incast");
    TCase *tc = tcase_create("incast");

    tcase_set_timeout(tc, 280);
    tcase_add_test(tc, marks_keep_the_queue_short_and_shares_fair);
    tcase_add_test(tc, eight_senders_need_no_other_parameters);
    suite_add_tcase(s, tc);
    return s;
}
