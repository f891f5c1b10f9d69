/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests address handles: the address vector of a destination, and the path back to a datagram's
 * sender.
 */
#include <check.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include "guest-lib/verbs/dv.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

/* The port's GID table (guest-lib/verbs/kernel/config.h): the entries after these are empty. */
#define GID_LINK_LOCAL 0
#define GID_IPV4       1

/* The MAC address that belongs to 10.0.0.2. */
static const uint8_t neighbour[6] = {0x02, 0x68, 10, 0, 0, 2};

static struct verbs_table *v;
static struct ibv_pd *pd;

static void setup(void)
{
    v = verbs_table_new();
    pd = ibv_alloc_pd(v->a);
}

static void teardown(void)
{
    ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
    verbs_table_free(v);
}

static struct ibv_ah_attr usual(void)
{
    return (struct ibv_ah_attr){
        .is_global = 1,
        .port_num = 1,
        .sl = 5,
        .static_rate = IBV_RATE_100_GBPS,
        .grh = {.dgid.raw = {[10] = 0xff, 0xff, 10, 0, 0, 2},
                .sgid_index = GID_IPV4,
                .flow_label = 0x12345,
                .hop_limit = 33,
                .traffic_class = 0x68},
    };
}

START_TEST(the_address_vector_is_as_the_device_wants_it)
{
    struct ibv_ah_attr attr = usual();
    struct ibv_ah *ah = ibv_create_ah(pd, &attr);
    const struct prm_wqe_av *av;

    ck_assert_ptr_nonnull(ah);
    av = hv_ah(ah)->av;
    ck_assert_uint_eq(PRM_GET(wqe_av, av, sl), 5 << 1);
    ck_assert_uint_eq(PRM_GET(wqe_av, av, stat_rate), 15);
    ck_assert_uint_eq(PRM_GET(wqe_av, av, src_addr_index), GID_IPV4);
    ck_assert_uint_eq(PRM_GET(wqe_av, av, flow_label), 0x12345);
    ck_assert_uint_eq(PRM_GET(wqe_av, av, hop_limit), 33);
    ck_assert_uint_eq(PRM_GET(wqe_av, av, tclass), 0x68);
    ck_assert_uint_eq(PRM_GET(wqe_av, av, grh), 0); /* reserved with RoCE */
    /* the low 14 bits of the label, with its high bits folded in (ibv_flow_label_to_udp_sport) */
    ck_assert_uint_eq(PRM_GET(wqe_av, av, udp_sport), 0xc000 | (0x2345 ^ 0x4));
    ck_assert_mem_eq(PRM_PTR(wqe_av, av, rmac), neighbour, 6);
    ck_assert_mem_eq(PRM_PTR(wqe_av, av, rgid), attr.grh.dgid.raw, 16);
    ck_assert_int_eq(ibv_dealloc_pd(pd), EBUSY);
    ck_assert_int_eq(ibv_destroy_ah(ah), 0);
}
END_TEST

START_TEST(without_a_flow_label_the_source_port_is_any)
{
    struct ibv_ah_attr attr = usual();
    struct ibv_ah *ah;

    attr.grh.flow_label = 0;
    ah = ibv_create_ah(pd, &attr);
    ck_assert_uint_ge(PRM_GET(wqe_av, hv_ah(ah)->av, udp_sport), 0xc000);
    ck_assert_int_eq(ibv_destroy_ah(ah), 0);
}
END_TEST

static void expect_refused(const struct ibv_ah_attr *attr, int err)
{
    struct ibv_ah_attr copy = *attr;

    errno = 0;
    ck_assert_ptr_null(ibv_create_ah(pd, &copy));
    ck_assert_int_eq(errno, err);
}

/* mlx5dv_map_ah_to_qp(3): the first mapping stays, even if the QP does not; it ends with the
 * handle. */
START_TEST(a_handle_is_mapped_to_a_qp)
{
    struct ibv_cq *cq = ibv_create_cq(v->a, 4, NULL, NULL, 0);
    struct ibv_qp *qp = table_qp_new(v, 0, cq, NULL);
    struct ibv_ah_attr attr = usual();
    struct ibv_ah *ah = ibv_create_ah(pd, &attr);
    uint32_t qpn = qp->qp_num;

    ck_assert_int_eq(hv_dv_map_ah_to_qp(ah, 0xfffffe), EINVAL);
    ck_assert_int_eq(hv_dv_map_ah_to_qp(ah, 0xfffffffe), EINVAL); /* a QPN has 24 bits */
    ck_assert_ptr_null(hv_ah(ah)->mapping);
    ck_assert_int_eq(hv_dv_map_ah_to_qp(ah, qpn), 0);
    table_qp_free(qp);
    ck_assert_int_eq(hv_dv_map_ah_to_qp(ah, qpn), 0);
    ck_assert_int_eq(ibv_destroy_ah(ah), 0);
    ah = ibv_create_ah(pd, &attr);
    ck_assert_int_eq(hv_dv_map_ah_to_qp(ah, qpn), EINVAL);
    ck_assert_int_eq(ibv_destroy_ah(ah), 0);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
}
END_TEST

START_TEST(attributes_are_checked)
{
    struct ibv_ah_attr attr = usual();

    attr.is_global = 0;
    expect_refused(&attr, EINVAL);
    attr = usual();
    attr.port_num = 2;
    expect_refused(&attr, EINVAL);
    attr = usual();
    attr.grh.sgid_index = HV_GIDS;
    expect_refused(&attr, ENODATA);
    attr = usual();
    attr.grh.dgid.raw[0] = 0x20; /* 2000::ffff:10.0.0.2, for which no rule gives a MAC address */
    expect_refused(&attr, EHOSTUNREACH);
}
END_TEST

/* IPv4, RFC 791: the header's checksum makes the sum of its words 0xffff. */
static void put_ipv4(uint8_t *ip, uint32_t from, uint32_t to)
{
    uint32_t sum = 0;

    ip[0] = 0x45;
    ip[1] = 0x20;
    prm_store16(ip + 2, 60);
    ip[8] = 17;
    ip[9] = 17;
    prm_store32(ip + 12, from);
    prm_store32(ip + 16, to);
    for (int i = 0; i < 20; i += 2) {
        sum += (uint32_t)prm_load16(ip + i);
    }
    sum = (sum & 0xffff) + (sum >> 16);
    prm_store16(ip + 10, (uint16_t)~sum);
}

START_TEST(a_datagram_over_ipv4_is_answered)
{
    struct ibv_wc wc = {.wc_flags = IBV_WC_GRH, .sl = 3};
    struct ibv_grh grh = {0};
    struct ibv_ah_attr attr;
    static const uint8_t sender[16] = {[10] = 0xff, 0xff, 10, 0, 0, 7};
    struct ibv_ah *ah;

    put_ipv4((uint8_t *)&grh + 20, 0x0a000007, 0x0a000001);
    ck_assert_int_eq(ibv_init_ah_from_wc(v->a, 1, &wc, &grh, &attr), 0);
    ck_assert_int_eq(attr.is_global, 1);
    ck_assert_int_eq(attr.port_num, 1);
    ck_assert_int_eq(attr.sl, 3);
    ck_assert_int_eq(attr.grh.sgid_index, GID_IPV4);
    ck_assert_int_eq(attr.grh.hop_limit, 17);
    ck_assert_int_eq(attr.grh.traffic_class, 0x20);
    ck_assert_mem_eq(attr.grh.dgid.raw, sender, 16);
    ah = ibv_create_ah_from_wc(pd, &wc, &grh, 1);
    ck_assert_ptr_nonnull(ah);
    ck_assert_int_eq(ibv_destroy_ah(ah), 0);
    /* to a group, or to an address of another host */
    put_ipv4((uint8_t *)&grh + 20, 0x0a000007, 0xe0000001);
    ck_assert_int_eq(ibv_init_ah_from_wc(v->a, 1, &wc, &grh, &attr), -1);
    memset(&grh, 0, sizeof(grh));
    put_ipv4((uint8_t *)&grh + 20, 0x0a000007, 0x0a000002);
    ck_assert_int_eq(ibv_init_ah_from_wc(v->a, 1, &wc, &grh, &attr), -1);
}
END_TEST

START_TEST(a_datagram_over_ipv6_is_answered)
{
    struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
    struct ibv_grh grh = {
        .version_tclass_flow = GUINT32_TO_BE(6u << 28 | 0x44 << 20 | 0x54321),
        .next_hdr = IPPROTO_UDP,
        .hop_limit = 9,
        .sgid.raw = {0xfe, 0x80, [15] = 7},
        .dgid = v->hosts->host[0].config.gid[GID_LINK_LOCAL],
    };
    struct ibv_ah_attr attr;

    ck_assert_int_eq(ibv_init_ah_from_wc(v->a, 1, &wc, &grh, &attr), 0);
    ck_assert_int_eq(attr.grh.sgid_index, GID_LINK_LOCAL);
    ck_assert_int_eq(attr.grh.hop_limit, 9);
    ck_assert_int_eq(attr.grh.traffic_class, 0x44);
    ck_assert_uint_eq(attr.grh.flow_label, 0x54321);
    ck_assert_mem_eq(attr.grh.dgid.raw, grh.sgid.raw, 16);
    /* RoCE v1, where a BTH follows the GRH: the entry of that type, whatever address it has */
    grh.next_hdr = 0x1b;
    ck_assert_int_eq(ibv_init_ah_from_wc(v->a, 1, &wc, &grh, &attr), 0);
    ck_assert_int_eq(attr.grh.sgid_index, HV_ADDRESSES + GID_LINK_LOCAL);
    grh.dgid = v->hosts->host[0].config.gid[GID_IPV4];
    ck_assert_int_eq(ibv_init_ah_from_wc(v->a, 1, &wc, &grh, &attr), 0);
    ck_assert_int_eq(attr.grh.sgid_index, HV_ADDRESSES + GID_IPV4);
    grh.next_hdr = IPPROTO_UDP;
    grh.dgid.raw[15] ^= 1;
    ck_assert_int_eq(ibv_init_ah_from_wc(v->a, 1, &wc, &grh, &attr), -1);
    grh.next_hdr = IPPROTO_TCP;
    ck_assert_int_eq(ibv_init_ah_from_wc(v->a, 1, &wc, &grh, &attr), -1);
    ck_assert_int_eq(errno, EPROTONOSUPPORT);
}
END_TEST

Suite *unit_suite(void)
{
    TCase *tc = tcase_create("ah");
    Suite *suite = suite_create("verbs-ah");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, the_address_vector_is_as_the_device_wants_it);
    tcase_add_test(tc, without_a_flow_label_the_source_port_is_any);
    tcase_add_test(tc, a_handle_is_mapped_to_a_qp);
    tcase_add_test(tc, attributes_are_checked);
    tcase_add_test(tc, a_datagram_over_ipv4_is_answered);
    tcase_add_test(tc, a_datagram_over_ipv6_is_answered);
    suite_add_tcase(suite, tc);
    return suite;
}
