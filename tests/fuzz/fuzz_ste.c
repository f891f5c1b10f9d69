/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer: a guest that writes any bytes as steering entries, and frames that walk through them.
 *
 * The input is a list of steps. A step writes an entry, of which the input chooses the fields that
 * lead the walk on; writes bytes into an entry or into a list of header changes; or sends a frame
 * through the entries, received or sent, with a tunnel or without; or through the whole domain of
 * received or sent frames, whose root is software's, with samplers and meters that lead back to it.
 * A walk must end within its steps, and the frame must stay in its room.
 */
#include <stdlib.h>
#include <string.h>
#include "model/card/card.h"
#include "model/memory/place.h"
#include "model/memory/sw_icm.h"
#include "model/steering/contexts.h"
#include "model/steering/meter.h"
#include "model/steering/sampler.h"
#include "model/steering/ste.h"
#include "model/steering/steering.h"
#include "tests/fuzz/take.h"
#include "wire/bytes.h"

#define ENTRIES   64 /* the walk is among these */
#define LISTS     8
#define MAX_STEPS 64
#define HEADERS   50 /* of an inserted VXLAN tunnel */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t fuzz_clock(void *host)
{
    static uint64_t now;

    return now += 1000;
}

static void fuzz_arm(void *host, uint64_t deadline)
{
}

static void fuzz_wake(void *host)
{
}

static const struct hca_host_ops fuzz_host = {
    .clock_ns = fuzz_clock, .timer_arm = fuzz_arm, .wake = fuzz_wake};

static void fuzz_write(struct hca *hca, uint64_t at, const void *bytes, size_t len)
{
    if (!mem_place_write(hca, (struct mem_place){MEM_SPACE_SW_ICM, at}, bytes, len)) {
        abort();
    }
}

static uint64_t fuzz_entry_at(uint8_t which)
{
    return SW_ICM_STE_START + which % ENTRIES * STE_BYTES;
}

/* An address that an entry leads to: an entry, an end, or anything. */
static uint64_t fuzz_address(const uint8_t **data, size_t *size)
{
    uint8_t what = take_u8_from(data, size);

    return what < 0xc0   ? fuzz_entry_at(what)
           : what < 0xf0 ? ste_end_address((enum ste_end)(what % (STE_ENDS + 1)), what & 7)
                         : (uint64_t)take_u32_from(data, size) << 8;
}

static void fuzz_put_entry(struct hca *hca, const uint8_t **data, size_t *size)
{
    static const uint8_t types[] = {PRM_STE_TYPE_RX, PRM_STE_TYPE_TX, PRM_STE_TYPE_MODIFY_PKT, 0};
    uint8_t which = take_u8_from(data, size), how = take_u8_from(data, size);
    struct prm_ste ste[1] = {0};
    uint64_t miss, both;

    PRM_SET(ste, ste, entry_type, types[how & 3]);
    PRM_SET(ste, ste, entry_sub_type, take_u8_from(data, size) & 0x3f);
    PRM_SET(ste, ste, next_lu_type, take_u8_from(data, size) & 0x3f);
    PRM_SET(ste, ste, byte_mask, how & 4 ? 0xffff : 0);
    both = fuzz_address(data, size) >> 5 | 1ull << (how >> 3 & 7);
    PRM_SET(ste, ste, next_table_base_39_32_size, both >> 27 & 0xff);
    PRM_SET(ste, ste, next_table_base_31_5_size, both & 0x7ffffff);
    miss = fuzz_address(data, size);
    PRM_SET(ste, ste, miss_address_39_32, miss >> 32 & 0xff);
    PRM_SET(ste, ste, miss_address_31_6, (uint32_t)miss >> 6);
    PRM_SET(ste, ste, counter_trigger_15_0, how >> 6);
    if (types[how & 3] == PRM_STE_TYPE_TX) {
        PRM_SET(ste, ste, action_type, take_u8_from(data, size) & 7);
        PRM_SET(ste, ste, pointer, take_u8_from(data, size) & 3);
    } else {
        PRM_SET(ste, ste, tunneling_action, take_u8_from(data, size) & 7);
        PRM_SET(ste, ste, tunneling_description, how >> 7);
    }
    if (types[how & 3] == PRM_STE_TYPE_MODIFY_PKT) {
        PRM_SET(ste, ste, number_of_re_write_actions, take_u8_from(data, size) & 0xf);
        PRM_SET(ste, ste, pointer, take_u8_from(data, size) % (LISTS + 1));
    }
    if (how & 0x40) { /* few frames hit it */
        memset(PRM_PTR(ste, ste, mask), 0xff, 4);
        ste->bytes[PRM_OFFSET(ste, tag)] = take_u8_from(data, size);
    }
    fuzz_write(hca, fuzz_entry_at(which), ste, sizeof(ste));
}

static void fuzz_put_bytes(struct hca *hca, uint64_t at, const uint8_t **data, size_t *size)
{
    uint8_t bytes[16];

    for (unsigned i = 0; i < sizeof(bytes); i++) {
        bytes[i] = take_u8_from(data, size);
    }
    fuzz_write(hca, at, bytes, sizeof(bytes));
}

/* An Ethernet frame with the start of a header that the input chooses, and its bytes. */
static size_t fuzz_build(uint8_t *frame, const uint8_t **data, size_t *size)
{
    static const struct {
        uint8_t len;
        uint8_t bytes[44];
    } starts[] = {
        {2, {0x08, 0x00}},
        {2, {0x86, 0xdd}},
        {6, {0x81, 0x00, 0x20, 0x05, 0x08, 0x00}},
        {6, {0x88, 0xa8, 0x20, 0x05, 0x81, 0x00}},
        {30, {0x08, 0, 0x45, 0, 1, 0, 0, 0,    0, 0,    64,   17, 0,    0, 1,
              2,    3, 4,    5, 6, 7, 8, 0x30, 0, 0x12, 0xb5, 0,  0xec, 0, 0}}, /* VXLAN */
        {30, {0x08, 0, 0x45, 0, 1, 0, 0, 0,    0, 0,    64,   17, 0,    0, 1,
              2,    3, 4,    5, 6, 7, 8, 0x30, 0, 0x17, 0xc1, 0,  0xec, 0, 0}}, /* GENEVE */
        {26, {0x08, 0, 0x45, 0, 1, 0, 0, 0, 0, 0,    64, 47,   0,
              0,    1, 2,    3, 4, 5, 6, 7, 8, 0x20, 0,  0x65, 0x58}}, /* GRE */
        {30, {0x08, 0, 0x45, 0, 1, 0, 0, 0,    0, 0,    64,   6, 0, 0, 1,
              2,    3, 4,    5, 6, 7, 8, 0x30, 0, 0x17, 0xc1, 0, 0, 0, 1}}, /* TCP */
    };
    uint8_t start = take_u8_from(data, size) % G_N_ELEMENTS(starts);
    size_t len = 12, own = take_u8_from(data, size);

    memset(frame, 0x5a, 12);
    memcpy(frame + len, starts[start].bytes, starts[start].len);
    len += starts[start].len;
    for (size_t i = 0; i < own; i++) {
        frame[len++] = take_u8_from(data, size);
    }
    return len;
}

static void fuzz_walk(struct hca *hca, const uint8_t **data, size_t *size)
{
    static uint8_t frame[512], room[STEER_PLACE];
    uint8_t how = take_u8_from(data, size);
    struct flow_regs regs = {.a = how};
    uint16_t ip_id = 0;
    struct ste_walk walk = {.hca = hca,
                            .is_tx = how & 1,
                            .is_own = how & 2,
                            .frame = frame,
                            .room = room,
                            .regs = &regs,
                            .ip_id = &ip_id};
    uint32_t num;
    enum ste_end end;

    walk.len = fuzz_build(frame, data, size);
    end = ste_run(&walk, fuzz_entry_at(how >> 2), STEERING_MAX_STEPS, &num);
    if (end >= STE_ENDS || walk.steps > STEERING_MAX_STEPS + STE_MAX_MODIFY ||
        (walk.changed && (walk.frame < room || walk.len > WIRE_FRAME_MAX ||
                          walk.frame + walk.len > room + sizeof(room)))) {
        abort();
    }
}

static void fuzz_walk_domain(struct hca *hca, const uint8_t **data, size_t *size)
{
    static uint8_t frame[512];
    bool is_tx = take_u8_from(data, size) & 1;
    size_t len = fuzz_build(frame, data, size);
    const struct steering_sent sent = {.sqn = 1};
    const uint8_t *left = frame;
    struct eth_info info;

    if (is_tx) {
        if (steering_tx(hca, &sent, &left, &len) && len > WIRE_FRAME_MAX) {
            abort();
        }
    } else if (eth_parse(frame, len, &info)) {
        steering_rx(hca, frame, len, &info, 1);
    }
}

/* Makes the domain's root, which is software's, and a meter and a sampler that lead there. */
static void fuzz_domain(struct hca *hca, uint8_t type)
{
    struct prm_flow_table_context ctx[1] = {0};
    struct prm_flow_sampler sampler[1] = {0};
    struct prm_flow_meter meter[1] = {0};
    void *params = PRM_PTR(flow_meter, meter, flow_meter_params);
    uint32_t table, num;

    PRM_SET(flow_table_context, ctx, sw_owner, 1);
    PRM_SET(flow_table_context, ctx, sws_sw_owner_icm_root_0, SW_ICM_STE_START);
    if (flow_table_create(hca, 0, type, ctx, &table) ||
        flow_table_set_root(hca, type, table, true)) {
        abort();
    }
    PRM_SET(flow_meter, meter, active, 1);
    PRM_SET(flow_meter, meter, table_type, type);
    PRM_SET(flow_meter, meter, destination_table_id, table);
    PRM_SET(flow_meter_parameters, params, valid, 1);
    PRM_SET(flow_meter_parameters, params, start_color, PRM_FLOW_METER_COLOR_GREEN);
    PRM_SET(flow_meter_parameters, params, cir_mantissa, 1);
    PRM_SET(flow_meter_parameters, params, cbs_exponent, 8);
    PRM_SET(flow_meter_parameters, params, cbs_mantissa, 1);
    if (flow_meter_create(hca, 0, meter, &num)) {
        abort();
    }
    PRM_SET(flow_sampler, sampler, sample_ratio, 2);
    PRM_SET(flow_sampler, sampler, ignore_flow_level, 1);
    PRM_SET(flow_sampler, sampler, sample_table_id, table);
    PRM_SET(flow_sampler, sampler, default_table_id, table);
    if (type == PRM_FLOW_TABLE_TYPE_NIC_RX && flow_sampler_create(hca, 0, sampler, &num)) {
        abort();
    }
}

static struct hca *fuzz_hca(void)
{
    static struct hca hca;
    static bool made;
    static const uint8_t mac[6] = {2};
    struct hca_limits limits = {.log_max_qp = 10,
                                .log_max_cq = 10,
                                .log_max_srq = 10,
                                .log_max_mkey = 12,
                                .log_max_pd = 10,
                                .log_max_eq = 4,
                                .log_max_uar = 10,
                                .log_max_umem = 8,
                                .log_max_uctx = 8};
    struct prm_sw_icm object[1] = {0};
    uint8_t reformat[PRM_SIZE(packet_reformat_context_in) + HEADERS] = {0};
    struct prm_packet_reformat_context_in *context = (void *)reformat;
    uint32_t num;

    if (made) {
        return &hca;
    }
    made = true;
    hca_init(&hca, &fuzz_host, NULL, &limits, mac);
    PRM_SET(sw_icm, object, sw_icm_start_addr, SW_ICM_STE_START);
    PRM_SET(sw_icm, object, log_sw_icm_size, SW_ICM_LOG_BLOCK);
    if (sw_icm_create(&hca, 0, object, &num)) {
        abort();
    }
    PRM_SET(sw_icm, object, sw_icm_start_addr, SW_ICM_MODIFY_START);
    if (sw_icm_create(&hca, 0, object, &num) || flow_counter_alloc(&hca, 0, 1, &num)) {
        abort();
    }
    PRM_SET(packet_reformat_context_in, context, reformat_type, PRM_REFORMAT_TYPE_L2_TO_L2_TUNNEL);
    PRM_SET(packet_reformat_context_in, context, reformat_data_size, HEADERS);
    put16(reformat + PRM_OFFSET(packet_reformat_context_in, reformat_data) + 12, 0x0800);
    reformat[PRM_OFFSET(packet_reformat_context_in, reformat_data) + 14] = 0x45;
    if (packet_reformat_create(&hca, 0, context, HEADERS, &num)) {
        abort();
    }
    fuzz_domain(&hca, PRM_FLOW_TABLE_TYPE_NIC_RX);
    fuzz_domain(&hca, PRM_FLOW_TABLE_TYPE_NIC_TX);
    return &hca;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hca *hca = fuzz_hca();
    uint8_t zero[ENTRIES * PRM_SIZE(ste)] = {0};

    fuzz_write(hca, SW_ICM_STE_START, zero, sizeof(zero));
    fuzz_write(hca, SW_ICM_MODIFY_START, zero, LISTS * 64);
    for (unsigned i = 0; size && i < MAX_STEPS; i++) {
        uint8_t what = take_u8_from(&data, &size);

        switch (what & 3) {
        case 0:
            if (what & 4) {
                fuzz_walk_domain(hca, &data, &size);
            } else {
                fuzz_walk(hca, &data, &size);
            }
            break;
        case 1:
            fuzz_put_bytes(hca, SW_ICM_MODIFY_START + (what >> 2) % (LISTS * 4) * 16, &data, &size);
            break;
        case 2:
            fuzz_put_bytes(hca, fuzz_entry_at(what >> 2) + (what >> 6) * 16, &data, &size);
            break;
        default:
            fuzz_put_entry(hca, &data, &size);
            break;
        }
    }
    return 0;
}
