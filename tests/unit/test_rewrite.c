/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests how the list of a modify header context changes a frame, and which lists are refused. */
#include "model/steering/rewrite.h"
#include <stdlib.h>
#include "tests/unit/steer_frames.h"
#include "tests/unit/suite.h"

#define SET  PRM_MODIFY_HEADER_ACTION_SET
#define ADD  PRM_MODIFY_HEADER_ACTION_ADD
#define COPY PRM_MODIFY_HEADER_ACTION_COPY
#define F(x) PRM_MODIFY_HEADER_FIELD_##x

/* SET and ADD use data; COPY copies from the field to the field `to`. */
struct action {
    uint8_t type;
    uint16_t field;
    uint8_t offset, length;
    uint32_t data;
    uint16_t to;
    uint8_t to_offset;
};

#define DO(type_, field_, offset_, length_, data_)                                                 \
    {                                                                                              \
        .type = (type_), .field = (field_), .offset = (offset_), .length = (length_),              \
        .data = (data_)                                                                            \
    }
#define MOVE(from_, offset_, length_, to_, to_offset_)                                             \
    {                                                                                              \
        .type = COPY, .field = (from_), .offset = (offset_), .length = (length_), .to = (to_),     \
        .to_offset = (to_offset_)                                                                  \
    }

static struct steer_frame f;
static struct flow_regs regs;

static void setup(void)
{
    memset(&regs, 0, sizeof(regs));
}

static void write_action(const struct action *a, struct prm_set_action_in *in)
{
    memset(in, 0, sizeof(*in));
    PRM_SET(set_action_in, in, action_type, a->type);
    PRM_SET(set_action_in, in, field, a->field);
    PRM_SET(set_action_in, in, offset, a->offset);
    PRM_SET(set_action_in, in, length, a->length);
    PRM_SET(set_action_in, in, data, a->data);
    if (a->type == COPY) {
        PRM_SET(copy_action_in, (void *)in, dst_field, a->to);
        PRM_SET(copy_action_in, (void *)in, dst_offset, a->to_offset);
    }
}

/* Reads the list, and runs it on the frame. */
static enum syn run(const struct action *list, unsigned n)
{
    struct prm_set_action_in in[REWRITE_MAX];
    struct rewrite_action actions[REWRITE_MAX];
    enum syn syn;

    for (unsigned i = 0; i < n; i++) {
        write_action(&list[i], &in[i]);
    }
    syn = rewrite_read(in, n, actions);
    if (syn == SYN_OK) {
        rewrite_run(actions, n, &f.packet, &regs);
    }
    return syn;
}

static enum syn run_one(struct action action)
{
    return run(&action, 1);
}

/* Expects the frame with the changes, a list of OFFSET:BYTES. */
static void expect_changes(const char *frame, const char *changes, const char *what)
{
    uint8_t bytes[512];
    size_t len = steer_hex(bytes, frame);
    char **list = g_strsplit(changes, " ", 0);

    for (char **change = list; *change && **change; change++) {
        steer_hex(bytes + strtoul(*change, NULL, 10), strchr(*change, ':') + 1);
    }
    g_strfreev(list);
    steer_expect(&f, bytes, len, what);
}

/* Scapy says what each frame becomes: the differences. */
static const struct {
    const char *what, *frame, *changes;
    struct action list[3];
} changes[] = {
    {"source MAC",
     FRAME_TCP4,
     "6:888888888888",
     {DO(SET, F(OUT_SMAC_47_16), 0, 0, 0x88888888), DO(SET, F(OUT_SMAC_15_0), 0, 16, 0x8888)}},
    {"low half of the destination MAC",
     FRAME_TCP4,
     "4:0099",
     {DO(SET, F(OUT_DMAC_15_0), 0, 0x10, 0x99)}},
    {"source address and port of TCP over IPv4",
     FRAME_TCP4,
     "24:adb7c0 28:024d 34:9c40 50:839e",
     {DO(SET, F(OUT_SIPV4), 0, 0, 0xc000024d), DO(SET, F(OUT_TCP_SPORT), 0, 16, 40000)}},
    {"DSCP of IPv4", FRAME_TCP4, "15:28 25:93", {DO(SET, F(OUT_IP_DSCP), 0, 6, 0x0a)}},
    {"TTL, one less", FRAME_TCP4, "22:3f 24:67", {DO(ADD, F(OUT_IP_TTL), 0, 0, 0xff)}},
    {"TCP sequence number, 256 less",
     FRAME_TCP4,
     "40:02 50:d5",
     {DO(ADD, F(OUT_TCP_SEQ_NUM), 0, 0, 0xffffff00)}},
    {"TCP flags", FRAME_TCP4, "47:02 51:58", {DO(SET, F(OUT_TCP_FLAGS), 0, 9, 2)}},
    {"destination address and port of UDP over IPv6",
     FRAME_UDP6,
     "47:01 49:02 51:03 53:04 55:05 57:06 60:0035 64:007b",
     {DO(SET, F(OUT_DIPV6_95_64), 0, 0, 0x00010002), DO(SET, F(OUT_DIPV6_63_32), 0, 0, 0x00030004),
      DO(SET, F(OUT_DIPV6_31_0), 0, 0, 0x00050006)}},
    {"DSCP of IPv6", FRAME_UDP6, "18:62", {DO(SET, F(OUT_IP_DSCP), 0, 6, 0x0a)}},
    {"hop limit, one less", FRAME_UDP6, "25:3f", {DO(ADD, F(OUT_IPV6_HOPLIMIT), 0, 0, 0xffffffff)}},
    {"VLAN number", FRAME_UDP6, "14:6abc", {DO(SET, F(OUT_FIRST_VID), 0, 12, 0xabc)}},
    {"priority of the tag", FRAME_UDP6, "14:e0", {DO(SET, F(OUT_FIRST_VID), 13, 3, 7)}},
    {"Ethernet type behind the tag",
     FRAME_UDP6,
     "16:1234",
     {DO(SET, F(OUT_ETHERTYPE), 0, 16, 0x1234)}},
};

START_TEST(fields_change_and_checksums_follow)
{
    unsigned n = 0;

    while (n < 3 && changes[_i].list[n].type) {
        n++;
    }
    steer_load(&f, changes[_i].frame);
    ck_assert_int_eq(run(changes[_i].list, n), SYN_OK);
    /* the case of UDP over IPv6 also moves the port */
    if (strstr(changes[_i].what, "UDP over IPv6")) {
        ck_assert_int_eq(run_one((struct action)DO(SET, F(OUT_UDP_DPORT), 0, 16, 53)), SYN_OK);
    }
    expect_changes(changes[_i].frame, changes[_i].changes, changes[_i].what);
}
END_TEST

/* A frame without the field stays as it is: it has no tag, is no UDP, is not IPv6, or is no IP. */
START_TEST(a_field_that_is_not_there_does_not_change)
{
    static const struct action absent[] = {
        DO(SET, F(OUT_FIRST_VID), 0, 12, 5),
        DO(SET, F(OUT_UDP_SPORT), 0, 16, 5),
        DO(SET, F(OUT_SIPV6_31_0), 0, 0, 5),
        DO(ADD, F(OUT_IPV6_HOPLIMIT), 0, 0, 5),
        MOVE(F(OUT_UDP_DPORT), 0, 16, F(OUT_TCP_DPORT), 0),
        MOVE(F(OUT_TCP_DPORT), 0, 16, F(OUT_UDP_DPORT), 0),
    };
    static const char arp[] = "ffffffffffff248a07a528c808060001080006040001";

    steer_load(&f, FRAME_TCP4);
    ck_assert_int_eq(run(absent, G_N_ELEMENTS(absent)), SYN_OK);
    steer_expect_hex(&f, FRAME_TCP4, "TCP");

    steer_load(&f, arp);
    ck_assert_int_eq(run_one((struct action)DO(SET, F(OUT_IP_DSCP), 0, 6, 5)), SYN_OK);
    ck_assert_int_eq(run_one((struct action)DO(SET, F(OUT_SIPV4), 0, 0, 5)), SYN_OK);
    steer_expect_hex(&f, arp, "ARP");

    steer_load(&f, "ffffffffffff248a07"); /* no Ethernet header */
    ck_assert_int_eq(run_one((struct action)DO(SET, F(OUT_DMAC_47_16), 0, 0, 5)), SYN_OK);
    steer_expect_hex(&f, "ffffffffffff248a07", "a part of a header");
}
END_TEST

START_TEST(bits_go_through_registers)
{
    static const struct action list[] = {
        MOVE(F(OUT_TCP_SPORT), 0, 16, F(METADATA_REG_C_1), 16), /* 1000 to the upper half */
        DO(SET, F(METADATA_REG_C_1), 0, 16, 0x1234),
        MOVE(F(METADATA_REG_C_1), 8, 16, F(METADATA_REG_A), 0),
        DO(ADD, F(METADATA_REG_A), 0, 0, 0xffffffff),
        MOVE(F(METADATA_REG_C_1), 4, 4, F(OUT_DMAC_15_0), 8),
        DO(SET, F(METADATA_REG_B), 31, 1, 1),
        DO(SET, F(METADATA_REG_C_7), 0, 0, 0xcafecafe),
    };

    regs.c[0] = 0x55555555;
    steer_load(&f, FRAME_TCP4);
    ck_assert_int_eq(run(list, G_N_ELEMENTS(list)), SYN_OK);
    ck_assert_uint_eq(regs.c[1], 0x03e81234);
    ck_assert_uint_eq(regs.a, 0xe811);
    ck_assert_uint_eq(regs.b, 0x80000000);
    ck_assert_uint_eq(regs.c[7], 0xcafecafe);
    ck_assert_uint_eq(regs.c[0], 0x55555555);
    expect_changes(FRAME_TCP4, "4:23", "four bits of the MAC"); /* was 28 */
}
END_TEST

/* RFC 1624: an update adds what has changed. So a wrong checksum is wrong by as much as before. */
START_TEST(a_wrong_checksum_stays_wrong)
{
    steer_load(&f, FRAME_TCP4);
    f.packet.bytes[25]++;    /* IPv4 */
    f.packet.bytes[51] += 2; /* TCP */
    ck_assert_int_eq(run_one((struct action)DO(SET, F(OUT_SIPV4), 0, 0, 0xc000024d)), SYN_OK);
    ck_assert_int_eq(run_one((struct action)DO(SET, F(OUT_TCP_SPORT), 0, 16, 40000)), SYN_OK);
    expect_changes(FRAME_TCP4, "24:adb8c0 28:024d 34:9c40 50:83a0", "wrong by 1, and by 2");
}
END_TEST

/* RFC 768: 0 says that there is no checksum. A sum that comes out as 0 is sent as 0xffff. */
START_TEST(udp_without_a_checksum_stays_without)
{
    steer_load(&f, FRAME_UDP4);
    f.packet.bytes[40] = f.packet.bytes[41] = 0;
    ck_assert_int_eq(run_one((struct action)DO(SET, F(OUT_UDP_DPORT), 0, 16, 53)), SYN_OK);
    ck_assert_uint_eq(f.packet.bytes[40] << 8 | f.packet.bytes[41], 0);

    steer_load(&f, FRAME_UDP4); /* its checksum is 0x4066 */
    ck_assert_int_eq(run_one((struct action)DO(ADD, F(OUT_UDP_DPORT), 0, 0, 0x4066)), SYN_OK);
    ck_assert_uint_eq(f.packet.bytes[40] << 8 | f.packet.bytes[41], 0xffff);
}
END_TEST

/* A fragment has no ports here, and its checksum covers other frames, too. */
START_TEST(ports_of_fragments_do_not_change)
{
    steer_load(&f, FRAME_UDP4);
    f.packet.bytes[20] = 0x20; /* more fragments */
    ck_assert_int_eq(run_one((struct action)DO(SET, F(OUT_UDP_DPORT), 0, 16, 53)), SYN_OK);
    expect_changes(FRAME_UDP4, "20:20", "fragment");
}
END_TEST

static const struct {
    struct action action;
    enum syn syn;
} refused[] = {
    {DO(0, F(OUT_SMAC_15_0), 0, 16, 0), SYN_MH_ACTION},
    {DO(4, F(OUT_SMAC_15_0), 0, 16, 0), SYN_MH_ACTION},
    {DO(15, F(OUT_SMAC_15_0), 0, 16, 0), SYN_MH_ACTION},
    {DO(SET, 0, 0, 16, 0), SYN_MH_ACTION},
    {DO(SET, 0x18, 0, 8, 0), SYN_MH_ACTION},
    {DO(SET, 0x5a, 0, 8, 0), SYN_MH_ACTION},
    {DO(SET, 0xfff, 0, 8, 0), SYN_MH_ACTION},
    {DO(ADD, 0x4a, 0, 8, 0), SYN_MH_ACTION},
    {MOVE(F(OUT_SIPV4), 0, 0, 0, 0), SYN_MH_ACTION},
    {MOVE(0x100, 0, 0, F(OUT_SIPV4), 0), SYN_MH_ACTION},
    {DO(SET, F(OUT_SMAC_15_0), 0, 0, 0), SYN_MH_BITS}, /* 0 is 32 */
    {DO(SET, F(OUT_SMAC_15_0), 1, 16, 0), SYN_MH_BITS},
    {DO(SET, F(OUT_SMAC_47_16), 31, 2, 0), SYN_MH_BITS},
    {DO(SET, F(OUT_IP_DSCP), 0, 7, 0), SYN_MH_BITS},
    {DO(SET, F(OUT_TCP_FLAGS), 9, 1, 0), SYN_MH_BITS},
    {MOVE(F(OUT_UDP_SPORT), 0, 0, F(METADATA_REG_C_0), 0), SYN_MH_BITS},
    {MOVE(F(METADATA_REG_C_0), 0, 17, F(OUT_UDP_SPORT), 0), SYN_MH_BITS},
    {MOVE(F(METADATA_REG_C_0), 20, 13, F(METADATA_REG_C_1), 0), SYN_MH_BITS},
    {MOVE(F(METADATA_REG_C_0), 0, 13, F(METADATA_REG_C_1), 20), SYN_MH_BITS},
};

START_TEST(lists_that_cannot_be_are_refused)
{
    struct action list[2] = {DO(SET, F(OUT_SIPV4), 0, 0, 1), refused[_i].action};

    steer_load(&f, FRAME_TCP4);
    ck_assert_int_eq(run(list, 2), refused[_i].syn);
    steer_expect_hex(&f, FRAME_TCP4, "nothing is done");
}
END_TEST

Suite *unit_suite(void)
{
    Suite *s = suite_create("rewrite");
    TCase *tc = tcase_create("rewrite");

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_loop_test(tc, fields_change_and_checksums_follow, 0, (int)G_N_ELEMENTS(changes));
    tcase_add_test(tc, a_field_that_is_not_there_does_not_change);
    tcase_add_test(tc, bits_go_through_registers);
    tcase_add_test(tc, a_wrong_checksum_stays_wrong);
    tcase_add_test(tc, udp_without_a_checksum_stays_without);
    tcase_add_test(tc, ports_of_fragments_do_not_change);
    tcase_add_loop_test(tc, lists_that_cannot_be_are_refused, 0, (int)G_N_ELEMENTS(refused));
    suite_add_tcase(s, tc);
    return s;
}
