/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests a host whose callbacks re-enter the function (model/core/host.h, "Re-entry"): each request
 * waits for the end of the call that made the callback, and nothing that the call uses is destroyed
 * meanwhile.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "fw/fw_internal.h"
#include "tests/unit/suite.h"
#include "tests/unit/test_fw_driver.h"
#include "wire/pair.h"
#include "wire/port.h"

#define NOWHERE    UINT_MAX
#define POSITIONS  10 /* the most calls of a kind in which an action is tried */
#define DMA_BYTES  8192
#define MAX_TURNS  10000
#define ADDR_LO    PRM_OFFSET(initial_seg, cmdq_phy_addr_63_32) + 4
#define DISABLED   1u
#define SW_RESET   7u
#define LOST_AFTER 16u

static struct fwd d;
static struct wire_port *ends[2];
static bool far_open;

/* What the host does, and when. */
static struct {
    enum fake_call kind;
    unsigned at; /* in which call of that kind, from 0 */
    void (*action)(void);
    unsigned seen[FAKE_CALLS];
    unsigned depth, deepest; /* callbacks within callbacks */
    bool done, inside;       /* it was done; and it was done while the function was at work */
    unsigned quiet_entry;    /* the entry of the function after which it must not reach the host */
} hostile;

/* -- actions ----------------------------------------------------------------------------------- */

static void quiet(void)
{
    hostile.quiet_entry = hostile.inside ? d.entries : NOWHERE;
}

static void reset(void)
{
    fw_reset(d.fw);
    quiet();
}

static void disable(void)
{
    fw_mmio_write(d.fw, ADDR_LO, DISABLED << 8, 4);
    quiet();
}

static void disable_by_eight_bytes(void)
{
    fw_mmio_write(d.fw, ADDR_LO - 4, SW_RESET << 8, 8);
    quiet();
}

static void retire(void)
{
    ck_assert(fw_is_entered(d.fw) == hostile.inside);
    fw_retire(d.fw);
    quiet();
}

static void pull_the_cable(void)
{
    fw_set_wire(d.fw, NULL);
}

static void break_the_link(void)
{
    if (far_open) {
        far_open = false;
        wire_close(ends[1]);
    }
}

static void run_again(void)
{
    if (fw_is_entered(d.fw)) {
        ck_assert(fw_run(d.fw, 64));
    }
}

static void ring_doorbells(void)
{
    uint64_t uar = d.drv ? d.drv->uarn * 4096ull : 8 * 4096;

    fw_mmio_write(d.fw, PRM_OFFSET(initial_seg, command_doorbell_vector), 3, 4);
    fw_mmio_write(d.fw, uar + PRM_OFFSET(uar, eq_db_arm), 1u << 24, 4);
    fw_mmio_write(d.fw, uar + PRM_OFFSET(uar, cq_db), 1, 8);
    fw_mmio_write(d.fw, uar + PRM_OFFSET(uar, blue_flame), 64ull << 8, 8);
    fw_mmio_read(d.fw, PRM_OFFSET(initial_seg, command_doorbell_vector), 4);
}

static void everything(void)
{
    ring_doorbells();
    run_again();
    reset();
    ring_doorbells();
    pull_the_cable();
    break_the_link();
    disable();
    reset();
}

static const struct {
    void (*fn)(void);
    bool ends_objects; /* afterwards the function has none */
} actions[] = {
    {reset, true},           {disable, true},    {disable_by_eight_bytes, true},
    {everything, true},      {retire, false},    {pull_the_cable, false},
    {break_the_link, false}, {run_again, false}, {ring_doorbells, false},
};

static void on_call(void *opaque, enum fake_call call)
{
    bool reaches = call <= FAKE_IRQ && call != FAKE_UNMAP;

    ck_assert_msg(!reaches || d.entries != hostile.quiet_entry,
                  "callback %d of a function that is off", call);
    hostile.depth++;
    hostile.deepest = MAX(hostile.deepest, hostile.depth);
    if (call == hostile.kind && hostile.seen[call] == hostile.at) {
        hostile.done = true;
        hostile.inside = fw_is_entered(d.fw);
        hostile.seen[call]++;
        hostile.action();
    } else {
        hostile.seen[call]++;
    }
    hostile.depth--;
}

/* -- the function's activity at that moment ---------------------------------------------------- */

static void settle(void)
{
    unsigned turns = 0;

    do {
        d.entries++;
        ck_assert_msg(turns++ < MAX_TURNS, "the function never comes to rest");
    } while (fw_run(d.fw, 16));
    d.rung = false;
}

static void generate_event(void)
{
    struct prm_gen_eqe_in in[1] = {0};

    PRM_SET(gen_eqe_in, in, opcode, PRM_CMD_OP_GEN_EQE);
    PRM_SET(gen_eqe_in, in, eq_number, d.drv->eq.eqn);
    PRM_SET(eqe, PRM_PTR(gen_eqe_in, in, eqe), event_type, PRM_EVENT_TYPE_GENERAL_EVENT);
    drv_cmd_simple(d.drv, in, sizeof(in));
}

/* Logged mistakes: an unknown command, a doorbell that nobody has. */
static void mistakes(void)
{
    struct prm_nop_in in[1] = {0};

    PRM_SET(nop_in, in, opcode, 0xfff);
    drv_cmd_simple(d.drv, in, sizeof(in));
    d.entries++;
    fw_mmio_write(d.fw, 8 * 4096, 0, 4);
}

static void messages(void)
{
    struct drv_mem mem = drv_alloc(d.drv, DMA_BYTES);
    struct drv_path path = {.sgid_index = 0, .sq_psn = 5, .rq_psn = 5};
    struct drv_mr mr = {0};
    struct drv_cq cq = {0};
    struct drv_qp qp = {0};
    struct drv_qp_attr attr = {.st = PRM_QP_ST_RC,
                               .pdn = d.drv->pdn,
                               .send_cq = &cq,
                               .recv_cq = &cq,
                               .log_sq = 4,
                               .log_rq = 4,
                               .max_recv_sge = 1};
    static const uint8_t opcodes[] = {PRM_WQE_OPCODE_SEND, PRM_WQE_OPCODE_RDMA_WRITE_IMM,
                                      PRM_WQE_OPCODE_RDMA_READ, PRM_WQE_OPCODE_ATOMIC_FA,
                                      PRM_WQE_OPCODE_ATOMIC_CS};
    struct drv_sge sge;
    struct drv_wc wc;

    drv_ipv4_gid(path.gid, 1);
    memcpy(path.mac, d.drv->mac, 6);
    if (drv_set_gid(d.drv, 0, path.gid) || drv_create_cq(d.drv, 6, &cq) ||
        drv_reg_mr(d.drv, d.drv->pdn, &mem, mem.bus, DMA_BYTES, DRV_ALL, &mr) ||
        drv_create_qp(d.drv, &attr, &qp)) {
        return;
    }
    path.remote_qpn = qp.qpn;
    if (drv_qp_connect(&qp, &path)) {
        return;
    }
    sge = (struct drv_sge){mem.bus, 3000, mr.key};
    drv_arm_cq(d.drv, &cq, false);
    drv_post_recv(&qp, &sge, 1);
    drv_post_recv(&qp, &sge, 1);
    for (size_t i = 0; i < G_N_ELEMENTS(opcodes); i++) {
        bool atomic = opcodes[i] >= PRM_WQE_OPCODE_ATOMIC_CS;
        struct drv_send send = {.opcode = opcodes[i],
                                .flags = DRV_SIGNALED,
                                .sge = &sge,
                                .num_sge = 1,
                                .raddr = mem.bus + 4096,
                                .rkey = mr.key};

        sge.len = atomic ? 8 : 3000;
        drv_post_send(&qp, &send);
        settle();
        while (drv_poll_cq(d.drv, &cq, &wc)) {
        }
        drv_poll_events(d.drv);
    }
    /* one that fails, so that there are events of the QP, too */
    sge.lkey++;
    drv_post_send(&qp,
                  &(struct drv_send){.opcode = PRM_WQE_OPCODE_SEND, .sge = &sge, .num_sge = 1});
    settle();
}

static void scenario(void)
{
    wire_pair_new(16, ends);
    far_open = true;
    d.entries++;
    fw_set_wire(d.fw, ends[0]);
    generate_event();
    generate_event();
    mistakes();
    messages();
    drv_poll_events(d.drv);
    break_the_link();
    settle();
    d.host.now += 1000000000;
    settle();
}

static void begin(enum fake_call kind, unsigned at, void (*action)(void), bool no_map)
{
    memset(&hostile, 0, sizeof(hostile));
    hostile.kind = kind;
    hostile.at = at;
    hostile.action = action;
    hostile.quiet_entry = NOWHERE;
    fwd_open(&d);
    d.host.no_map = no_map;
    d.host.hook = on_call;
}

static void end(void)
{
    d.host.hook = NULL;
    d.entries++;
    fw_set_wire(d.fw, NULL);
    break_the_link();
    wire_close(ends[0]);
    d.drv->up = false;
    fwd_clear(&d);
}

static void try_everywhere(enum fake_call kind, bool no_map)
{
    unsigned calls, step;

    begin(kind, NOWHERE, NULL, no_map);
    scenario();
    calls = hostile.seen[kind];
    end();
    ck_assert(calls > 0 || (no_map && (kind == FAKE_MAP || kind == FAKE_UNMAP)));
    step = MAX(1, calls / POSITIONS);
    for (size_t i = 0; i < G_N_ELEMENTS(actions); i++) {
        for (unsigned at = 0; at < calls; at += step) {
            begin(kind, at, actions[i].fn, no_map);
            scenario();
            ck_assert(hostile.done);
            ck_assert(!fw_is_entered(d.fw));
            if (actions[i].ends_objects) {
                ck_assert_uint_eq(d.fw->hca.qpns.count + d.fw->hca.cqs.count + d.fw->hca.eqs.count,
                                  0);
                ck_assert_uint_eq(fw_mmio_read(d.fw, ADDR_LO, 4) >> 8 & 7, DISABLED);
            }
            end();
        }
    }
}

START_TEST(reentry_waits_for_the_end_of_the_callback)
{
    try_everywhere((enum fake_call)_i, false);
}
END_TEST

/* Rings and records at addresses that are not memory: each access is a separate call. */
START_TEST(reentry_waits_without_mapped_memory_too)
{
    try_everywhere((enum fake_call)_i, true);
}
END_TEST

/* -- one by one -------------------------------------------------------------------------------- */

/* The write of an EQE hits the function's own DEVCTL register: PCIe 6.6.2, a function-level reset.
 * The EQ is in use when the reset comes, and destroyed once the command has ended. */
START_TEST(reset_by_the_write_of_an_event_waits_for_the_command)
{
    begin(FAKE_WRITE, NOWHERE, reset, true);
    generate_event();
    hostile.at = hostile.seen[FAKE_WRITE];
    generate_event();
    ck_assert(hostile.done && hostile.inside);
    ck_assert_uint_eq(d.fw->hca.eqs.count, 0);
    ck_assert_uint_eq(fw_mmio_read(d.fw, ADDR_LO, 4) >> 8 & 7, DISABLED);
    wire_pair_new(16, ends);
    far_open = true;
    end();
}
END_TEST

/* Arms the EQ as if its last event had not been taken: it interrupts at once. */
static void ring_eq(void)
{
    hostile.at = hostile.seen[FAKE_IRQ] < 1000 ? hostile.seen[FAKE_IRQ] : NOWHERE;
    fw_mmio_write(d.fw, d.drv->uarn * 4096ull + PRM_OFFSET(uar, eq_db_arm),
                  d.drv->eq.eqn << 24 | (d.drv->eq.ci - 1), 4);
}

/* An MSI-X address is the EQ's own doorbell: each interrupt arms the EQ again, and it interrupts
 * again. The interrupts come one after the other, a few in a turn. */
START_TEST(interrupt_that_rings_its_own_doorbell_does_not_recurse)
{
    unsigned turns = 0;

    begin(FAKE_IRQ, NOWHERE, ring_eq, false);
    generate_event();
    drv_poll_events(d.drv);
    ck_assert_uint_gt(d.drv->eq.ci, 0);
    memset(hostile.seen, 0, sizeof(hostile.seen));
    hostile.at = 0;
    ring_eq();
    ck_assert_uint_gt(hostile.seen[FAKE_IRQ], 1);
    ck_assert_uint_le(hostile.seen[FAKE_IRQ], 1 + ENTRY_WRITES);
    for (unsigned before = 0; before != hostile.seen[FAKE_IRQ]; turns++) {
        before = hostile.seen[FAKE_IRQ];
        fw_run(d.fw, 64);
        ck_assert_uint_le(hostile.seen[FAKE_IRQ] - before, ENTRY_WRITES);
    }
    ck_assert_uint_ge(turns, 1000 / ENTRY_WRITES);
    ck_assert_uint_eq(hostile.seen[FAKE_IRQ], 1001);
    ck_assert_uint_le(hostile.deepest, 2);
    wire_pair_new(16, ends);
    far_open = true;
    end();
}
END_TEST

static void flood(void)
{
    for (unsigned i = 0; i < 100; i++) {
        fw_mmio_write(d.fw, 8 * 4096 + PRM_OFFSET(uar, eq_db), 0xff000000u, 4);
    }
    ck_assert_uint_eq(d.fw->entry.lost_writes, 100 - LOST_AFTER);
    disable();
}

/* Posted writes of the function's own DMA wait in a short queue. Once a call the guest's log
 * reports the writes that found no room. A write that disables the function always takes effect. */
START_TEST(register_writes_beyond_the_queue_are_lost_and_counted)
{
    begin(FAKE_WRITE, 0, flood, true);
    generate_event();
    ck_assert(hostile.inside);
    ck_assert_uint_eq(d.fw->hca.eqs.count, 0);
    wire_pair_new(16, ends);
    far_open = true;
    end();
}
END_TEST

static bool link_is_down(struct wire_port *port)
{
    return false;
}

/* A cable that is unplugged and plugged in again before the function could check was down
 * nevertheless. */
START_TEST(a_short_link_failure_is_reported)
{
    const struct uplink *uplink;
    struct wire_port_ops pulled;
    const struct wire_port_ops *plugged;
    uint64_t downs, events;

    begin(FAKE_WRITE, NOWHERE, NULL, false);
    wire_pair_new(16, ends);
    far_open = true;
    fw_set_wire(d.fw, ends[0]);
    settle();
    ck_assert(port_is_up(&d.fw->hca));
    uplink = d.fw->hca.vport->uplink;
    downs = uplink->counters.link_downs;
    events = d.fw->hca.event_count;
    ends[0]->client->link_change(ends[0]->opaque);
    settle();
    ck_assert_uint_eq(uplink->counters.link_downs, downs);
    ck_assert_uint_eq(d.fw->hca.event_count, events);
    plugged = ends[0]->ops;
    pulled = *plugged;
    pulled.link_up = link_is_down;
    ends[0]->ops = &pulled;
    ends[0]->client->link_change(ends[0]->opaque);
    ends[0]->ops = plugged;
    ends[0]->client->link_change(ends[0]->opaque);
    ck_assert_uint_eq(d.fw->hca.event_count, events);
    settle();
    ck_assert_uint_eq(uplink->counters.link_downs, downs + 1);
    ck_assert_uint_eq(d.fw->hca.event_count, events + 2); /* down, and up */
    ck_assert(port_is_up(&d.fw->hca));
    end();
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("re-entry");
    TCase *tcase = tcase_create("all");

    tcase_set_timeout(tcase, 100);
    tcase_add_loop_test(tcase, reentry_waits_for_the_end_of_the_callback, 0, FAKE_CALLS);
    tcase_add_loop_test(tcase, reentry_waits_without_mapped_memory_too, 0, FAKE_CALLS);
    tcase_add_test(tcase, reset_by_the_write_of_an_event_waits_for_the_command);
    tcase_add_test(tcase, interrupt_that_rings_its_own_doorbell_does_not_recurse);
    tcase_add_test(tcase, register_writes_beyond_the_queue_are_lost_and_counted);
    tcase_add_test(tcase, a_short_link_failure_is_reported);
    suite_add_tcase(suite, tcase);
    return suite;
}
