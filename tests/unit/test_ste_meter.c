/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the objects to which software's steering entries lead: flow samplers, which copy some of
 * the frames, and flow meters, which give frames a colour.
 */
#include <check.h>
#include <string.h>
#include "model/steering/meter.h"
#include "model/steering/sampler.h"
#include "model/steering/ste.h"
#include "model/steering/steering.h"
#include "tests/unit/eth_bench.h"
#include "tests/unit/ste_entries.h"
#include "tests/unit/suite.h"

#define NIC_RX PRM_FLOW_TABLE_TYPE_NIC_RX
#define NIC_TX PRM_FLOW_TABLE_TYPE_NIC_TX
#define START  SW_ICM_STE_START
#define DROP   0x1000000000ull
#define RED    PRM_FLOW_METER_COLOR_RED
#define YELLOW PRM_FLOW_METER_COLOR_YELLOW
#define GREEN  PRM_FLOW_METER_COLOR_GREEN
#define MS     1000000ull /* ns */
#define REG    3          /* the register of the meters */

static struct bench *b;
static struct hca *hca;
static uint8_t frame[2048];
static size_t frame_len;

static void setup(void)
{
    struct bench_pkt pkt = {.ip_version = 4, .proto = 17, .payload = 1000 - 42};
    uint32_t num;

    b = bench_new();
    hca = &b->rig.hca;
    frame_len = bench_build(frame, &pkt);
    ck_assert_uint_eq(frame_len, 1000);
    ste_take_memory(hca, START, &num);
    ste_take_memory(hca, SW_ICM_MODIFY_START, &num);
}

static void teardown(void)
{
    bench_free(b);
}

static uint32_t counter_new(void)
{
    uint32_t id;

    ck_assert_int_eq(flow_counter_alloc(hca, 0, 1, &id), SYN_OK);
    return id;
}

static uint64_t counted(uint32_t id)
{
    return flow_counter_find(hca, id)->packets;
}

/* A table whose only rule, for all frames whose register is so (-1: for all), counts and drops. */
static uint32_t table_of(uint8_t type, int colour, uint32_t counter)
{
    struct prm_fte_match_param mask[1] = {0}, value[1] = {0};
    struct bench_fte fte = {.param = value,
                            .action = PRM_FLOW_ACTION_DROP | PRM_FLOW_ACTION_COUNT,
                            .counters = {counter},
                            .num_counters = 1};

    b->table_type = type;
    fte.table = bench_table(b, 110, 0);
    if (colour >= 0) {
        PRM_SET(fte_match_set_misc2, PRM_PTR(fte_match_param, mask, misc_parameters_2),
                metadata_reg_c_3, 0xffffffff);
        PRM_SET(fte_match_set_misc2, PRM_PTR(fte_match_param, value, misc_parameters_2),
                metadata_reg_c_3, (uint32_t)colour);
    }
    ck_assert_int_eq(bench_try_group(b, fte.table,
                                     colour >= 0 ? 1 << PRM_MATCH_CRITERIA_MISC_PARAMETERS_2 : 0,
                                     mask, &fte.group),
                     SYN_OK);
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);
    return fte.table;
}

/* The root of the domain is software's; all frames go to that address. */
static void lead_all_to(uint8_t type, uint64_t address)
{
    const struct entry all = {.lookup = STE_ANY, .next_lookup = STE_ANY, .hit = address};

    ste_put(hca, type == NIC_RX ? 2 : 1, START, &all);
    ck_assert_int_eq(flow_table_set_root(hca, type, ste_table(hca, 0, type, START), true), SYN_OK);
}

/* -- samplers -----------------------------------------------------------------------------------
 */

static enum syn try_sampler(uint16_t uid, uint32_t ratio, uint32_t copies, uint32_t all,
                            uint32_t *num)
{
    struct prm_flow_sampler object[1] = {0};

    PRM_SET(flow_sampler, object, table_type, NIC_RX);
    PRM_SET(flow_sampler, object, sample_ratio, ratio);
    PRM_SET(flow_sampler, object, sample_table_id, copies);
    PRM_SET(flow_sampler, object, default_table_id, all);
    return flow_sampler_create(hca, uid, object, num);
}

static uint64_t sampler(uint32_t ratio, uint32_t copies, uint32_t all)
{
    uint32_t num;

    ck_assert_int_eq(try_sampler(0, ratio, copies, all, &num), SYN_OK);
    return PRM_GET(flow_sampler, flow_sampler_find(hca, num)->ctx, sw_steering_icm_address_rx);
}

static void receive(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        bench_rx(b, frame, frame_len);
    }
}

/* pyverbs test_flow_sampler: all frames are in the default table, and a part is in the other. */
START_TEST(one_frame_in_so_many_is_copied)
{
    static const unsigned ratios[] = {1, 2, 4, 10, 1000};
    uint32_t copied = counter_new(), all = counter_new();

    lead_all_to(NIC_RX,
                sampler(ratios[_i], table_of(NIC_RX, -1, copied), table_of(NIC_RX, -1, all)));
    receive(1000);
    ck_assert_uint_eq(counted(all), 1000);
    ck_assert_uint_eq(counted(copied), 1000 / ratios[_i]);
    receive(1000);
    ck_assert_uint_eq(counted(copied), 2000 / ratios[_i]);
}
END_TEST

/* Frames of four senders in turns: with a ratio of 4, none of them is always sampled. */
START_TEST(a_rhythm_is_not_sampled)
{
    uint32_t counter = counter_new(), num;
    unsigned of[4] = {0};
    struct flow_sampler *s;

    ck_assert_int_eq(
        try_sampler(0, 4, table_of(NIC_RX, -1, counter), table_of(NIC_RX, -1, counter), &num),
        SYN_OK);
    s = flow_sampler_find(hca, num);
    for (unsigned i = 0; i < 4000; i++) {
        of[i % 4] += flow_sampler_takes(s);
    }
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_uint_gt(of[i], 200);
        ck_assert_uint_lt(of[i], 300);
    }
}
END_TEST

/* Changes of the copy do not change the frame: here, the copy's table removes a VLAN tag. */
START_TEST(the_frame_goes_on_as_it_was)
{
    struct bench_pkt pkt = {.ip_version = 4, .proto = 17, .payload = 100, .vlan = true};
    const struct entry pop = {.lookup = STE_ANY, .next_lookup = STE_ANY, .tunneling = 4};
    uint32_t before = counter_new(), after = counter_new();
    struct entry e = pop;
    uint64_t bytes;

    e.hit = ste_end_address(STE_TABLE, table_of(NIC_RX, -1, after));
    ste_put(hca, 2, START + 0x1000, &e);
    frame_len = bench_build(frame, &pkt);
    lead_all_to(NIC_RX, sampler(1, ste_table(hca, 0, NIC_RX, START + 0x1000),
                                table_of(NIC_RX, -1, before)));
    receive(1);
    bytes = flow_counter_find(hca, after)->bytes;
    ck_assert_uint_eq(bytes, frame_len - 4);
    ck_assert_uint_eq(flow_counter_find(hca, before)->bytes, frame_len);
}
END_TEST

START_TEST(a_sampler_that_cannot_be_is_refused)
{
    uint32_t num, mine = table_of(NIC_RX, -1, counter_new()),
                  sent = table_of(NIC_TX, -1, counter_new());
    struct prm_flow_sampler object[1] = {0};

    ck_assert_int_eq(try_sampler(0, 0, mine, mine, &num), SYN_SAMPLER_RATIO);
    ck_assert_int_eq(try_sampler(0, 1, 0x3ff, mine, &num), SYN_FT_NOT_FOUND);
    ck_assert_int_eq(try_sampler(0, 1, mine, 0x3ff, &num), SYN_FT_NOT_FOUND);
    ck_assert_int_eq(try_sampler(0, 1, mine, sent, &num), SYN_FT_NOT_FOUND);
    ck_assert_int_eq(try_sampler(RIG_USER, 1, mine, mine, &num), SYN_BAD_UID);
    PRM_SET(flow_sampler, object, table_type, NIC_TX);
    PRM_SET(flow_sampler, object, sample_ratio, 1);
    PRM_SET(flow_sampler, object, sample_table_id, sent);
    PRM_SET(flow_sampler, object, default_table_id, sent);
    ck_assert_int_eq(flow_sampler_create(hca, 0, object, &num), SYN_FT_TYPE);
    PRM_SET(flow_sampler, object, table_type, NIC_RX);
    PRM_SET(flow_sampler, object, sample_table_id, mine);
    PRM_SET(flow_sampler, object, default_table_id, mine);
    PRM_SET(flow_sampler, object, level, 110);
    ck_assert_int_eq(flow_sampler_create(hca, 0, object, &num), SYN_FT_LEVEL);
    PRM_SET(flow_sampler, object, ignore_flow_level, 1);
    ck_assert_int_eq(flow_sampler_create(hca, 0, object, &num), SYN_OK);
    ck_assert_int_eq(flow_table_destroy(hca, 0, NIC_RX, mine), SYN_IN_USE);
    flow_sampler_free(hca, obj_find(&hca->flow_samplers, num));
}
END_TEST

/* Driver: dr_action_create_sampler_term_tbl(). */
START_TEST(the_last_table_leads_to_no_other)
{
    struct prm_flow_table_context ctx[1] = {0};
    uint32_t last, next = table_of(NIC_RX, -1, counter_new());
    struct bench_fte fte = {.dests = {{PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE, next}},
                            .num_dests = 1};

    PRM_SET(flow_table_context, ctx, termination_table, 1);
    ck_assert_int_eq(flow_table_create(hca, 0, NIC_RX, ctx, &last), SYN_OK);
    fte.table = last;
    fte.group = bench_group(b, last, 0, 0, NULL);
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_FTE_DEST);
    fte.num_dests = 0;
    fte.action = PRM_FLOW_ACTION_DROP;
    ck_assert_int_eq(bench_fte_set(b, &fte), SYN_OK);
    memset(ctx, 0, sizeof(ctx));
    ck_assert_int_eq(flow_table_query(hca, NIC_RX, last, ctx), SYN_OK);
    ck_assert_uint_eq(PRM_GET(flow_table_context, ctx, termination_table), 1);
}
END_TEST

/* A sampler whose tables lead back to it: a frame's way ends. */
START_TEST(a_loop_of_samplers_ends)
{
    uint32_t software = ste_table(hca, 0, NIC_RX, START);
    uint64_t before, address = sampler(1, software, software);

    lead_all_to(NIC_RX, address);
    before = hca->pieces;
    receive(1);
    ck_assert_uint_lt(hca->pieces - before, 1000);
}
END_TEST

/* -- meters -------------------------------------------------------------------------------------
 */

/* A rate of 10^9 / 2^10 bytes/s is about 1 byte/us: 976 bytes in a ms. */
struct rates {
    uint8_t start, mode, cir, cir_exp, cbs, cbs_exp, eir, eir_exp, ebs, ebs_exp;
    bool overflow, both, inactive, invalid;
};

static void set_params(struct prm_flow_meter *object, const struct rates *r)
{
    void *params = PRM_PTR(flow_meter, object, flow_meter_params);

    PRM_SET(flow_meter, object, active, !r->inactive);
    PRM_SET(flow_meter_parameters, params, valid, !r->invalid);
    PRM_SET(flow_meter_parameters, params, bucket_overflow, r->overflow);
    PRM_SET(flow_meter_parameters, params, both_buckets_on_green, r->both);
    PRM_SET(flow_meter_parameters, params, start_color, r->start);
    PRM_SET(flow_meter_parameters, params, meter_mode, r->mode);
    PRM_SET(flow_meter_parameters, params, cir_mantissa, r->cir);
    PRM_SET(flow_meter_parameters, params, cir_exponent, r->cir_exp);
    PRM_SET(flow_meter_parameters, params, cbs_mantissa, r->cbs);
    PRM_SET(flow_meter_parameters, params, cbs_exponent, r->cbs_exp);
    PRM_SET(flow_meter_parameters, params, eir_mantissa, r->eir);
    PRM_SET(flow_meter_parameters, params, eir_exponent, r->eir_exp);
    PRM_SET(flow_meter_parameters, params, ebs_mantissa, r->ebs);
    PRM_SET(flow_meter_parameters, params, ebs_exponent, r->ebs_exp);
}

static enum syn try_meter(uint8_t type, uint32_t table, unsigned reg, const struct rates *r,
                          struct flow_meter **meter)
{
    struct prm_flow_meter object[1] = {0};
    uint32_t num;
    enum syn syn;

    set_params(object, r);
    PRM_SET(flow_meter, object, return_reg_id, reg);
    PRM_SET(flow_meter, object, table_type, type);
    PRM_SET(flow_meter, object, destination_table_id, table);
    syn = flow_meter_create(hca, 0, object, &num);
    *meter = syn ? NULL : flow_meter_find(hca, num);
    return syn;
}

static struct flow_meter *meter_new(const struct rates *r)
{
    struct flow_meter *meter;

    ck_assert_int_eq(try_meter(NIC_RX, table_of(NIC_RX, -1, counter_new()), REG, r, &meter),
                     SYN_OK);
    return meter;
}

/* Colours of n frames of 1000 bytes at this moment, counted. */
static void colours(struct flow_meter *meter, unsigned n, unsigned of[3])
{
    memset(of, 0, 3 * sizeof(of[0]));
    for (unsigned i = 0; i < n; i++) {
        of[flow_meter_colour(hca, meter, 1014, 14)]++;
    }
}

static void pass(uint64_t ns)
{
    b->rig.host.now += ns;
}

/* 100 frames at a time, every ms: a bucket of 2000 bytes at first, then a frame in 1.024 ms. */
START_TEST(a_flow_is_green_up_to_its_rate)
{
    struct flow_meter *m = meter_new(
        &(struct rates){.start = GREEN, .cir = 1, .cir_exp = 10, .cbs = 125, .cbs_exp = 4});
    unsigned of[3], sum = 0;

    colours(m, 100, of);
    ck_assert_uint_eq(of[GREEN], 2);
    ck_assert_uint_eq(of[YELLOW], 0);
    ck_assert_uint_eq(of[RED], 98);
    for (unsigned i = 0; i < 1024; i++) {
        pass(MS);
        colours(m, 100, of);
        sum += of[GREEN];
    }
    ck_assert_uint_ge(sum, 998);
    ck_assert_uint_le(sum, 1001);
    pass(3600000 * MS); /* an hour: the bucket is full, and no more */
    colours(m, 100, of);
    ck_assert_uint_eq(of[GREEN], 2);
}
END_TEST

/* pyverbs test_flow_meter has no burst at all: a flow above its rate has both colours. */
START_TEST(without_a_burst_the_rate_holds)
{
    struct flow_meter *m =
        meter_new(&(struct rates){.start = GREEN, .overflow = true, .cir = 1, .cir_exp = 6});
    unsigned of[3], green = 0, red = 0;

    for (unsigned i = 0; i < 1000; i++) { /* 30 MB/s against 15.6 MB/s */
        pass(1000000 / 30);
        colours(m, 1, of);
        green += of[GREEN];
        red += of[RED];
    }
    ck_assert_uint_eq(green, 500);
    ck_assert_uint_eq(red, 500);
}
END_TEST

/* RFC 2697: one rate; tokens for which the first bucket has no room fill the second. */
START_TEST(one_rate_and_two_bursts)
{
    struct rates r = {.start = GREEN,
                      .overflow = true,
                      .cir = 1,
                      .cir_exp = 10,
                      .cbs = 1,
                      .cbs_exp = 11,
                      .ebs = 1,
                      .ebs_exp = 12};
    struct flow_meter *m = meter_new(&r);
    unsigned of[3];

    colours(m, 100, of);
    ck_assert_uint_eq(of[GREEN], 3);  /* 2048 bytes */
    ck_assert_uint_eq(of[YELLOW], 5); /* 4096 bytes */
    pass(2 * MS); /* 1953 bytes, of which 952 pay the debt of the first bucket */
    colours(m, 100, of);
    ck_assert_uint_eq(of[GREEN], 2);
    ck_assert_uint_eq(of[YELLOW], 0);
    pass(10000 * MS);
    colours(m, 100, of);
    ck_assert_uint_eq(of[GREEN], 3);
    ck_assert_uint_eq(of[YELLOW], 5);
    r.overflow = false;
    m = meter_new(&r);
    colours(m, 100, of);
    pass(10000 * MS);
    colours(m, 100, of);
    ck_assert_uint_eq(of[GREEN], 3);
    ck_assert_uint_eq(of[YELLOW], 0);
}
END_TEST

/* RFC 2698: a green frame takes tokens of both buckets. */
START_TEST(two_rates)
{
    struct rates r = {.start = GREEN,
                      .both = true,
                      .cir = 1,
                      .cir_exp = 10,
                      .cbs = 1,
                      .cbs_exp = 11,
                      .eir = 1,
                      .eir_exp = 9,
                      .ebs = 1,
                      .ebs_exp = 12};
    struct flow_meter *m = meter_new(&r);
    unsigned of[3];

    colours(m, 100, of);
    ck_assert_uint_eq(of[GREEN], 3);
    ck_assert_uint_eq(of[YELLOW], 2);
    r.both = false;
    m = meter_new(&r);
    colours(m, 100, of);
    ck_assert_uint_eq(of[GREEN], 3);
    ck_assert_uint_eq(of[YELLOW], 5);
    pass(4 * MS); /* 3906 and 7812 bytes */
    colours(m, 100, of);
    ck_assert_uint_eq(of[GREEN], 3);
    ck_assert_uint_eq(of[YELLOW], 5);
}
END_TEST

START_TEST(a_frame_does_not_become_better)
{
    struct rates r = {.cir = 1, .cbs = 255, .cbs_exp = 31, .ebs = 255, .ebs_exp = 31};
    unsigned of[3];

    for (r.start = RED; r.start <= GREEN; r.start++) {
        colours(meter_new(&r), 10, of);
        ck_assert_uint_eq(of[r.start], 10);
    }
}
END_TEST

START_TEST(a_meter_counts_what_its_mode_says)
{
    /* 1000 bytes of IP, 1014 of the frame, 1038 of the wire: 63 green ones use up 64000 bytes */
    static const unsigned frames[] = {64, 64, 62};
    struct rates r = {.start = GREEN, .cbs = 125, .cbs_exp = 9};
    unsigned of[3];

    for (r.mode = 0; r.mode < 3; r.mode++) {
        colours(meter_new(&r), 100, of);
        ck_assert_uint_eq(of[GREEN], frames[r.mode]);
    }
}
END_TEST

START_TEST(a_meter_that_is_off_gives_the_first_colour)
{
    unsigned of[3];

    colours(meter_new(&(struct rates){.start = GREEN, .inactive = true}), 10, of);
    ck_assert_uint_eq(of[GREEN], 10);
    colours(meter_new(&(struct rates){.start = YELLOW, .invalid = true}), 10, of);
    ck_assert_uint_eq(of[YELLOW], 10);
}
END_TEST

/* The register takes the colour; rules of the next table tell frames apart by it. */
START_TEST(the_colour_is_in_the_register)
{
    uint32_t green = counter_new();
    struct rates r = {.start = GREEN, .cbs = 1, .cbs_exp = 12};
    struct flow_meter *m;

    ck_assert_int_eq(try_meter(NIC_RX, table_of(NIC_RX, GREEN, green), REG, &r, &m), SYN_OK);
    lead_all_to(NIC_RX, PRM_GET(flow_meter, m->ctx, sw_steering_icm_address_rx));
    receive(10); /* 986 bytes of IP each */
    ck_assert_uint_eq(counted(green), 5);
}
END_TEST

START_TEST(sent_frames_are_metered)
{
    struct bench_wr wr = {.opcode = PRM_WQE_OPCODE_SEND, .num_sge = 1};
    struct rates r = {.start = GREEN, .cbs = 1, .cbs_exp = 12};
    uint32_t green = counter_new();
    struct bench_queue sq;
    struct flow_meter *m;
    unsigned left = 0;

    memcpy(frame, bench_peer_mac, 6);
    bench_sq_new(b, b->tisn, &sq);
    ck_assert_int_eq(try_meter(NIC_TX, table_of(NIC_TX, GREEN, green), REG, &r, &m), SYN_OK);
    lead_all_to(NIC_TX, PRM_GET(flow_meter, m->ctx, sw_steering_icm_address_tx));
    wr.hdr = frame;
    wr.hdr_len = 42;
    wr.sge[0] = (struct bench_sge){bench_mem(b, frame + 42, 958), 958, 0};
    for (unsigned i = 0; i < 10; i++) {
        b->num_frames = 0;
        bench_send(&sq, &wr);
        left += b->num_frames;
    }
    ck_assert_uint_eq(counted(green), 5);
    ck_assert_uint_eq(left, 5); /* those that no rule drops */
}
END_TEST

START_TEST(entries_of_another_domain_do_not_use_a_meter)
{
    struct rates r = {.start = GREEN};
    uint32_t counter = counter_new();
    struct flow_meter *m;

    ck_assert_int_eq(try_meter(NIC_TX, table_of(NIC_TX, -1, counter), REG, &r, &m), SYN_OK);
    lead_all_to(NIC_RX, PRM_GET(flow_meter, m->ctx, sw_steering_icm_address_rx));
    receive(1);
    lead_all_to(NIC_RX, ste_end_address(STE_METER, 0xfff));
    receive(1);
    ck_assert_uint_eq(counted(counter), 0);
}
END_TEST

static enum syn modify(struct flow_meter *m, const struct rates *r, uint64_t fields)
{
    struct prm_flow_meter object[1] = {0};

    set_params(object, r);
    PRM_SET(flow_meter, object, modify_field_select, fields);
    return flow_meter_modify(hca, &m->obj, object);
}

START_TEST(a_meter_is_modified)
{
    struct rates r = {.start = GREEN, .cir = 1, .cir_exp = 31, .cbs = 125, .cbs_exp = 4};
    struct flow_meter *m = meter_new(&r);
    unsigned of[3];

    r.cbs_exp = 3;
    ck_assert_int_eq(modify(m, &r, 0), SYN_OK);
    colours(m, 1, of);
    ck_assert_int_eq(modify(m, &r, PRM_MODIFY_METER_CBS), SYN_OK);
    colours(m, 10, of);
    ck_assert_uint_eq(of[GREEN], 1); /* 2000 - 1000 bytes were left */
    r.cir_exp = 0;
    ck_assert_int_eq(modify(m, &r, PRM_MODIFY_METER_CIR), SYN_OK);
    pass(MS);
    colours(m, 10, of);
    ck_assert_uint_eq(of[GREEN], 1); /* a bucket of 1000 bytes, which fills in a microsecond */
    r.inactive = true;
    ck_assert_int_eq(modify(m, &r, PRM_MODIFY_METER_ACTIVE), SYN_OK);
    colours(m, 10, of);
    ck_assert_uint_eq(of[GREEN], 10);
    ck_assert_int_eq(modify(m, &r, 0x20), SYN_METER_PARAMS);
}
END_TEST

START_TEST(a_smaller_bucket_loses_what_it_has_no_room_for)
{
    struct rates r = {.start = GREEN, .cir = 1, .cir_exp = 31, .cbs = 125, .cbs_exp = 4};
    struct flow_meter *m = meter_new(&r);
    unsigned of[3];

    r.cbs_exp = 3;
    ck_assert_int_eq(modify(m, &r, PRM_MODIFY_METER_CBS), SYN_OK);
    colours(m, 10, of);
    ck_assert_uint_eq(of[GREEN], 1); /* 1000 bytes of 2000 */
}
END_TEST

START_TEST(a_meter_that_cannot_be_is_refused)
{
    const struct rates bad[] = {{.start = PRM_FLOW_METER_COLOR_UNDEFINED},
                                {.mode = PRM_FLOW_METER_MODE_NUM_PACKETS}};
    struct rates r = {.start = GREEN};
    uint32_t table = table_of(NIC_RX, -1, counter_new());
    struct flow_meter *m;

    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        ck_assert_int_eq(try_meter(NIC_RX, table, REG, &bad[i], &m), SYN_METER_PARAMS);
    }
    ck_assert_int_eq(try_meter(NIC_RX, table, 6, &r, &m), SYN_METER_REGISTER);
    ck_assert_int_eq(try_meter(NIC_RX, 0x3ff, REG, &r, &m), SYN_FT_NOT_FOUND);
    ck_assert_int_eq(try_meter(NIC_TX, table, REG, &r, &m), SYN_FT_NOT_FOUND);
    ck_assert_int_eq(try_meter(PRM_FLOW_TABLE_TYPE_RDMA_RX, table, REG, &r, &m), SYN_FT_TYPE);
    ck_assert_int_eq(try_meter(NIC_RX, table, 5, &r, &m), SYN_OK);
    ck_assert_int_eq(flow_table_destroy(hca, 0, NIC_RX, table), SYN_IN_USE);
    flow_meter_free(hca, &m->obj);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("ste-meter");
    TCase *tc = tcase_create("samplers and meters");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, one_frame_in_so_many_is_copied, 0, 5);
    tcase_add_test(tc, a_rhythm_is_not_sampled);
    tcase_add_test(tc, the_frame_goes_on_as_it_was);
    tcase_add_test(tc, a_sampler_that_cannot_be_is_refused);
    tcase_add_test(tc, the_last_table_leads_to_no_other);
    tcase_add_test(tc, a_loop_of_samplers_ends);
    tcase_add_test(tc, a_flow_is_green_up_to_its_rate);
    tcase_add_test(tc, without_a_burst_the_rate_holds);
    tcase_add_test(tc, one_rate_and_two_bursts);
    tcase_add_test(tc, two_rates);
    tcase_add_test(tc, a_frame_does_not_become_better);
    tcase_add_test(tc, a_meter_counts_what_its_mode_says);
    tcase_add_test(tc, a_meter_that_is_off_gives_the_first_colour);
    tcase_add_test(tc, the_colour_is_in_the_register);
    tcase_add_test(tc, sent_frames_are_metered);
    tcase_add_test(tc, entries_of_another_domain_do_not_use_a_meter);
    tcase_add_test(tc, a_meter_is_modified);
    tcase_add_test(tc, a_smaller_bucket_loses_what_it_has_no_room_for);
    tcase_add_test(tc, a_meter_that_cannot_be_is_refused);
    suite_add_tcase(s, tc);
    return s;
}
