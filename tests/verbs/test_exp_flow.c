/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the specifications of ibv_exp_create_flow(): which of two frames, UDP over IPv6 and TCP
 * over IPv4, a raw QP gets by a rule.
 */
#include <check.h>
#include <string.h>
#include "guest-lib/verbs/exp/include/infiniband/verbs_exp.h"
#include "prm/prm.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

#define FRAME     100
#define PORT      4000 /* to which both frames go */
#define ETH_BYTES 14

enum frame {
    IPV6_UDP,
    IPV4_TCP
};

static struct verbs_table *v;
static struct ibv_cq *cq[2];
static struct ibv_mr *mr[2];
static struct ibv_qp *qp[2];

static void setup(void)
{
    v = verbs_table_new();
    for (int i = 0; i < 2; i++) {
        struct ibv_exp_qp_init_attr attr = {.cap = {8, 8, 1, 1, 0},
                                            .qp_type = IBV_QPT_RAW_PACKET,
                                            .comp_mask = IBV_EXP_QP_INIT_ATTR_PD,
                                            .pd = v->hosts->host[i].pd};

        cq[i] = ibv_create_cq(i ? v->b : v->a, 63, NULL, NULL, 0);
        mr[i] = table_mr_new(v, i);
        attr.send_cq = attr.recv_cq = cq[i];
        qp[i] = ibv_exp_create_qp(i ? v->b : v->a, &attr);
        ck_assert(cq[i] && qp[i]);
        for (int s = IBV_QPS_INIT; s <= IBV_QPS_RTS; s++) {
            struct ibv_exp_qp_attr to = {.qp_state = (enum ibv_qp_state)s, .port_num = 1};

            ck_assert_int_eq(
                ibv_exp_modify_qp(qp[i], &to,
                                  IBV_EXP_QP_STATE | (s == IBV_QPS_INIT ? IBV_EXP_QP_PORT : 0)),
                0);
        }
    }
}

static void teardown(void)
{
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(ibv_destroy_qp(qp[i]), 0);
        table_mr_free(mr[i]);
        ck_assert_int_eq(ibv_destroy_cq(cq[i]), 0);
    }
    verbs_table_free(v);
}

/* The addresses of both frames are made of these bytes. */
static const uint8_t from[16] = {0xfd, 1, 2, 3}, to[16] = {0xfd, 9, 8, 7, 0, 0, 0, 0, 5};

static void write_frame(enum frame which)
{
    uint8_t *frame = mr[0]->addr, *ip = frame + ETH_BYTES;

    memset(frame, 0, FRAME);
    memcpy(frame, v->hosts->host[1].config.mac, 6);
    memcpy(frame + 6, v->hosts->host[0].config.mac, 6);
    prm_store16(frame + 12, which == IPV6_UDP ? 0x86dd : 0x0800);
    if (which == IPV6_UDP) {
        prm_store32(ip, 0x61400000);
        prm_store16(ip + 4, FRAME - ETH_BYTES - 40);
        ip[6] = 17;
        ip[7] = 64;
        memcpy(ip + 8, from, 16);
        memcpy(ip + 24, to, 16);
        prm_store16(ip + 42, PORT);
    } else {
        ip[0] = 0x45;
        prm_store16(ip + 2, FRAME - ETH_BYTES);
        ip[8] = 64;
        ip[9] = 6;
        memcpy(ip + 12, from, 4);
        memcpy(ip + 16, to, 4);
        prm_store16(ip + 22, PORT);
        ip[32] = 0x50;
    }
}

/* Whether host 1's QP gets the frame. */
static bool gets(enum frame which)
{
    struct ibv_sge here = {(uintptr_t)mr[0]->addr, FRAME, mr[0]->lkey};
    struct ibv_sge there = {(uintptr_t)mr[1]->addr, 2000, mr[1]->lkey};
    struct ibv_recv_wr recv = {.sg_list = &there, .num_sge = 1}, *bad_recv;
    struct ibv_exp_send_wr *bad, wr = {.sg_list = &here,
                                       .num_sge = 1,
                                       .exp_opcode = IBV_EXP_WR_SEND,
                                       .exp_send_flags = IBV_EXP_SEND_SIGNALED};
    struct ibv_exp_wc wc;
    int received;

    write_frame(which);
    ck_assert_int_eq(ibv_post_recv(qp[1], &recv, &bad_recv), 0);
    ck_assert_int_eq(ibv_exp_post_send(qp[0], &wr, &bad), 0);
    table_wait(v);
    ck_assert_int_eq(ibv_exp_poll_cq(cq[0], 1, &wc, sizeof(wc)), 1);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    received = ibv_exp_poll_cq(cq[1], 1, &wc, sizeof(wc));
    ck_assert_int_ge(received, 0);
    return received;
}

/* A rule for one host's address and a specification or two. */
struct rule {
    struct ibv_exp_flow_attr attr;
    struct ibv_exp_flow_spec_eth eth;
    uint8_t more[2 * sizeof(struct ibv_exp_flow_spec)];
};

static struct rule rule_new(void)
{
    struct rule rule = {
        .attr = {.size = offsetof(struct rule, more), .num_of_specs = 1, .port = 1},
        .eth = {.type = IBV_EXP_FLOW_SPEC_ETH, .size = sizeof(rule.eth)},
    };

    memcpy(rule.eth.val.dst_mac, v->hosts->host[1].config.mac, 6);
    memset(rule.eth.mask.dst_mac, 0xff, 6);
    return rule;
}

static void add(struct rule *rule, const struct ibv_exp_flow_spec *spec)
{
    memcpy((uint8_t *)rule + rule->attr.size, spec, spec->hdr.size);
    rule->attr.size = (uint16_t)(rule->attr.size + spec->hdr.size);
    rule->attr.num_of_specs++;
}

/* A rule of the specification gives these frames. */
static void expect(const struct ibv_exp_flow_spec *spec, const struct ibv_exp_flow_spec *second,
                   bool ipv6, bool ipv4)
{
    struct rule rule = rule_new();
    struct ibv_exp_flow *flow;

    if (spec) {
        add(&rule, spec);
    }
    if (second) {
        add(&rule, second);
    }
    flow = ibv_exp_create_flow(qp[1], &rule.attr);
    ck_assert_ptr_nonnull(flow);
    ck_assert(gets(IPV6_UDP) == ipv6);
    ck_assert(gets(IPV4_TCP) == ipv4);
    ck_assert_int_eq(ibv_exp_destroy_flow(flow), 0);
}

#define SPEC(member, TYPE)                                                                         \
    {                                                                                              \
        .member = {.type = IBV_EXP_FLOW_SPEC_##TYPE, .size = sizeof(spec.member) }                 \
    }

START_TEST(without_a_rule_nothing_comes)
{
    ck_assert(!gets(IPV6_UDP));
    expect(NULL, NULL, true, true);
}
END_TEST

START_TEST(ipv6_addresses)
{
    struct ibv_exp_flow_spec spec = SPEC(ipv6, IPV6);

    memcpy(spec.ipv6.val.src_ip, from, 16);
    memcpy(spec.ipv6.val.dst_ip, to, 16);
    memset(spec.ipv6.mask.src_ip, 0xff, 16);
    memset(spec.ipv6.mask.dst_ip, 0xff, 16);
    expect(&spec, NULL, true, false);
    spec.ipv6.val.dst_ip[15] ^= 1;
    expect(&spec, NULL, false, false);
    spec.ipv6.mask.dst_ip[15] = 0xfe;
    expect(&spec, NULL, true, false);
}
END_TEST

/* The extended specification has the fields of the header, too. */
START_TEST(ipv6_addresses_and_fields)
{
    struct ibv_exp_flow_spec spec = SPEC(ipv6_ext, IPV6_EXT);

    memcpy(spec.ipv6_ext.val.dst_ip, to, 16);
    memset(spec.ipv6_ext.mask.dst_ip, 0xff, 16);
    spec.ipv6_ext.val.next_hdr = 17;
    spec.ipv6_ext.mask.next_hdr = 0xff;
    spec.ipv6_ext.val.traffic_class = 0x14;
    spec.ipv6_ext.mask.traffic_class = 0xff;
    expect(&spec, NULL, true, false);
    spec.ipv6_ext.val.next_hdr = 6;
    expect(&spec, NULL, false, false);
    spec.ipv6_ext.val.next_hdr = 17;
    spec.ipv6_ext.val.traffic_class = 0x15;
    expect(&spec, NULL, false, false);
}
END_TEST

START_TEST(ipv4_addresses)
{
    struct ibv_exp_flow_spec spec = SPEC(ipv4, IPV4);

    memcpy(&spec.ipv4.val.src_ip, from, 4);
    memcpy(&spec.ipv4.val.dst_ip, to, 4);
    spec.ipv4.mask.src_ip = spec.ipv4.mask.dst_ip = UINT32_MAX;
    expect(&spec, NULL, false, true);
    spec.ipv4.val.src_ip ^= 1;
    expect(&spec, NULL, false, false);
}
END_TEST

START_TEST(ipv4_addresses_and_fields)
{
    struct ibv_exp_flow_spec spec = SPEC(ipv4_ext, IPV4_EXT);

    memcpy(&spec.ipv4_ext.val.dst_ip, to, 4);
    spec.ipv4_ext.mask.dst_ip = UINT32_MAX;
    spec.ipv4_ext.val.proto = 6;
    spec.ipv4_ext.mask.proto = 0xff;
    expect(&spec, NULL, false, true);
    spec.ipv4_ext.val.proto = 17;
    expect(&spec, NULL, false, false);
}
END_TEST

START_TEST(ports)
{
    struct ibv_exp_flow_spec spec = SPEC(ipv4, IPV4);
    struct ibv_exp_flow_spec tcp = {.tcp_udp = {.type = IBV_EXP_FLOW_SPEC_TCP,
                                                .size = sizeof(tcp.tcp_udp),
                                                .val.dst_port = GUINT16_TO_BE(PORT),
                                                .mask.dst_port = UINT16_MAX}};
    struct ibv_exp_flow_spec udp = tcp;

    udp.tcp_udp.type = IBV_EXP_FLOW_SPEC_UDP;
    expect(&spec, &tcp, false, true);
    expect(&spec, &udp, false, false);
    spec = (struct ibv_exp_flow_spec)SPEC(ipv6, IPV6);
    expect(&spec, &udp, true, false);
    udp.tcp_udp.val.dst_port ^= 1;
    expect(&spec, &udp, false, false);
}
END_TEST

START_TEST(actions)
{
    struct ibv_exp_flow_spec spec = SPEC(flow_tag, ACTION_TAG);

    spec.flow_tag.tag_id = 5;
    expect(&spec, NULL, true, true);
    spec = (struct ibv_exp_flow_spec)SPEC(drop, ACTION_DROP);
    expect(&spec, NULL, false, false);
}
END_TEST

/* No frame here is in a tunnel, or has inner headers. */
START_TEST(tunnels_and_inner_headers)
{
    struct ibv_exp_flow_spec tunnel = {
        .tunnel = {.type = IBV_EXP_FLOW_SPEC_VXLAN_TUNNEL, .size = sizeof(tunnel.tunnel)}};
    struct ibv_exp_flow_spec spec = SPEC(tcp_udp, UDP);

    tunnel.tunnel.val.tunnel_id = tunnel.tunnel.mask.tunnel_id = GUINT32_TO_BE(0xffffff);
    expect(&tunnel, NULL, false, false);
    spec.tcp_udp.val.dst_port = GUINT16_TO_BE(PORT);
    spec.tcp_udp.mask.dst_port = 0xffff;
    expect(&spec, NULL, true, false);
    spec.hdr.type |= IBV_EXP_FLOW_SPEC_INNER;
    expect(&spec, NULL, false, false);
}
END_TEST

START_TEST(what_is_no_rule)
{
    struct ibv_exp_flow_spec tunnel = {
        .tunnel = {.type = IBV_EXP_FLOW_SPEC_VXLAN_TUNNEL, .size = sizeof(tunnel.tunnel)}};
    struct ibv_exp_flow_spec unknown = {.hdr = {.type = 0x77, .size = 16}};
    struct rule rule = rule_new();

    errno = 0;
    add(&rule, &unknown);
    ck_assert_ptr_null(ibv_exp_create_flow(qp[1], &rule.attr));
    ck_assert_int_eq(errno, EINVAL);
    rule = rule_new();
    tunnel.tunnel.val.tunnel_id = 0xff; /* big-endian: more than 24 bits */
    add(&rule, &tunnel);
    errno = 0;
    ck_assert_ptr_null(ibv_exp_create_flow(qp[1], &rule.attr));
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("experimental rules");
    TCase *tc = tcase_create("rules");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, without_a_rule_nothing_comes);
    tcase_add_test(tc, ipv6_addresses);
    tcase_add_test(tc, ipv6_addresses_and_fields);
    tcase_add_test(tc, ipv4_addresses);
    tcase_add_test(tc, ipv4_addresses_and_fields);
    tcase_add_test(tc, ports);
    tcase_add_test(tc, actions);
    tcase_add_test(tc, tunnels_and_inner_headers);
    tcase_add_test(tc, what_is_no_rule);
    suite_add_tcase(suite, tc);
    return suite;
}
