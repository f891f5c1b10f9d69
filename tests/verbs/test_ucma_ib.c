/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests addresses of AF_IB in the rdma_cm ABI, which consist of a GID and a service ID: as far as
 * Linux 6.12 accepts them on a RoCE device. The expected values are what a guest's kernel answers
 * to the same commands (tests/programs/gid_addresses.c repeats the main cases, in a guest and
 * without one).
 */
#include <check.h>
#include <netinet/in.h>
#include <string.h>
#include "tests/verbs/ucma_hosts.h"

#define IP_PORT_SPACES 0xffffffffffff0000u /* a mask for the port space of a service ID */
#define ALL            UINT64_MAX
#define OF(ps)         ((uint64_t)(ps) << 16)
#define PKEY           0xffff

static const uint8_t zero[16], loopback[16] = {[15] = 1};
static const uint8_t elsewhere[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 1};

static struct cma_sockaddr_ib gid(const uint8_t addr[16], uint16_t pkey, uint64_t sid,
                                  uint64_t mask)
{
    struct cma_sockaddr_ib ib = {.family = AF_IB,
                                 .pkey = GUINT16_TO_BE(pkey),
                                 .sid = GUINT64_TO_BE(sid),
                                 .sid_mask = GUINT64_TO_BE(mask)};

    memcpy(ib.addr, addr, sizeof(ib.addr));
    return ib;
}

static int bind_any(uint32_t id, const void *addr, size_t size)
{
    struct rdma_ucm_bind cmd = {.id = id, .addr_size = (uint16_t)size};

    memcpy(&cmd.addr, addr, size);
    return COMMAND(hosts[0].file, BIND, cmd);
}

static int bind_gid(uint32_t id, const uint8_t addr[16], uint64_t sid, uint64_t mask)
{
    struct cma_sockaddr_ib ib = gid(addr, 0, sid, mask);

    return bind_any(id, &ib, sizeof(ib));
}

static int resolve_from(uint32_t id, const void *src, size_t src_size, const void *dst, size_t size)
{
    struct rdma_ucm_resolve_addr cmd = {
        .id = id, .timeout_ms = 2000, .src_size = (uint16_t)src_size, .dst_size = (uint16_t)size};

    memcpy(&cmd.src_addr, src, src_size);
    memcpy(&cmd.dst_addr, dst, size);
    return COMMAND(hosts[0].file, RESOLVE_ADDR, cmd);
}

static int resolve_gid(uint32_t id, const uint8_t addr[16], uint16_t pkey)
{
    struct cma_sockaddr_ib ib = gid(addr, pkey, PORT, 0xffff);

    return resolve_from(id, "", 0, &ib, sizeof(ib));
}

static struct rdma_ucm_query_addr_resp query(uint32_t id, uint32_t option)
{
    struct rdma_ucm_query_addr_resp resp = {0};

    ck_assert_int_eq(
        ASK(hosts[0].file, QUERY, resp,
            (struct rdma_ucm_query){.response = (uintptr_t)&resp, .id = id, .option = option}),
        0);
    return resp;
}

static const struct cma_sockaddr_ib *ib_of(const struct __kernel_sockaddr_storage *addr)
{
    const struct cma_sockaddr_ib *ib = (const struct cma_sockaddr_ib *)addr;

    ck_assert_uint_eq(ib->family, AF_IB);
    return ib;
}

/* The result is valid until the next call. */
static const struct cma_sockaddr_ib *source(uint32_t id)
{
    static struct rdma_ucm_query_addr_resp resp;

    resp = query(id, RDMA_USER_CM_QUERY_ADDR);
    ck_assert_uint_eq(resp.src_size, sizeof(struct cma_sockaddr_ib));
    return ib_of(&resp.src_addr);
}

/* -- statements ---------------------------------------------------------------------------------
 */

/* ucma_set_af_ib_support() of librdmacm: if a kernel accepts this address, the library uses BIND,
 * RESOLVE_ADDR and QUERY from then on, whatever the family. */
START_TEST(what_librdmacm_tries_first)
{
    uint32_t id = create(hosts[0].file, 1, RDMA_PS_IB);
    const struct cma_sockaddr_ib *src;

    ck_assert_int_eq(bind_gid(id, zero, OF(RDMA_PS_TCP), IP_PORT_SPACES), 0);
    src = source(id);
    ck_assert_mem_eq(src->addr, zero, 16);
    ck_assert_uint_eq(GUINT64_FROM_BE(src->sid) >> 16, RDMA_PS_TCP);
    ck_assert_uint_ge(GUINT64_FROM_BE(src->sid) & 0xffff, 32768);
    ck_assert_uint_eq(src->sid_mask, ALL);
    ck_assert_uint_eq(query(id, RDMA_USER_CM_QUERY_ADDR).port_num, 0);
    ck_assert_int_eq(listen_on(hosts[0].file, id, 0), 0);
}
END_TEST

/* cma_select_ib_ps(): only the bits of the service ID that are in the mask count. An identifier of
 * RDMA_PS_IB may use every port space here, any other identifier only its own. */
START_TEST(port_spaces)
{
    static const struct {
        uint16_t ps;
        uint64_t sid, mask;
        int err;
        uint16_t becomes; /* its port space afterwards */
    } rows[] = {
        {RDMA_PS_IB, OF(RDMA_PS_IB), IP_PORT_SPACES, 0, RDMA_PS_IB},
        {RDMA_PS_IB, OF(RDMA_PS_TCP), IP_PORT_SPACES, 0, RDMA_PS_TCP},
        {RDMA_PS_IB, OF(RDMA_PS_UDP), IP_PORT_SPACES, 0, RDMA_PS_UDP},
        {RDMA_PS_IB, 0, 0, 0, RDMA_PS_IB},
        {RDMA_PS_TCP, 0, 0, 0, RDMA_PS_TCP},
        {RDMA_PS_UDP, 0, 0, 0, RDMA_PS_UDP},
        {RDMA_PS_TCP, OF(RDMA_PS_TCP) | PORT, IP_PORT_SPACES, 0, RDMA_PS_TCP},
        {RDMA_PS_IPOIB, 0, 0, EPROTONOSUPPORT, 0},
        {RDMA_PS_TCP, OF(RDMA_PS_UDP), IP_PORT_SPACES, EPROTONOSUPPORT, 0},
        {RDMA_PS_UDP, OF(RDMA_PS_TCP), IP_PORT_SPACES, EPROTONOSUPPORT, 0},
        {RDMA_PS_TCP, 1ull << 40 | OF(RDMA_PS_TCP), IP_PORT_SPACES, EPROTONOSUPPORT, 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        uint32_t id = create(hosts[0].file, 1, rows[i].ps);

        ck_assert_int_eq(bind_gid(id, zero, rows[i].sid, rows[i].mask), rows[i].err);
        if (!rows[i].err) {
            ck_assert_uint_eq(GUINT64_FROM_BE(source(id)->sid) >> 16, rows[i].becomes);
            ck_assert_uint_ne(GUINT64_FROM_BE(source(id)->sid) & 0xffff, PORT);
        }
        destroy(hosts[0].file, id);
    }
}
END_TEST

/* A port is unique in its space, whatever the family of its owner. */
START_TEST(ports)
{
    struct ucma_file *file = hosts[0].file;
    uint32_t id = create(file, 1, RDMA_PS_TCP), other = create(file, 0, RDMA_PS_TCP);

    ck_assert_int_eq(bind_gid(id, zero, PORT, 0xffff), 0);
    ck_assert_uint_eq(GUINT64_FROM_BE(source(id)->sid), OF(RDMA_PS_TCP) | PORT);
    ck_assert_int_eq(bind_gid(id, zero, PORT, 0xffff), EINVAL);
    ck_assert_int_eq(bind_gid(other, zero, PORT, 0xffff), EADDRNOTAVAIL);
    ck_assert_int_eq(bind_to(file, other, "0.0.0.0", PORT), EADDRNOTAVAIL);
    ck_assert_int_eq(bind_to(file, other, "10.0.0.1", PORT), EADDRNOTAVAIL);
    ck_assert_int_eq(bind_gid(create(file, 1, RDMA_PS_IB), zero, OF(RDMA_PS_TCP) | PORT, ALL),
                     EADDRNOTAVAIL);
    ck_assert_int_eq(bind_gid(create(file, 1, RDMA_PS_IB), zero, OF(RDMA_PS_IB) | PORT, ALL), 0);
    ck_assert_int_eq(bind_gid(other, zero, 80, 0xffff), EACCES);
    destroy(file, id);
    ck_assert_int_eq(bind_to(file, other, "10.0.0.1", PORT), 0);
}
END_TEST

/* A GID is an InfiniBand address; a RoCE device is found by the addresses of its network interface
 * (cma_validate_port()). */
START_TEST(a_gid_cannot_be_bound)
{
    struct ucma_file *file = hosts[0].file;
    uint32_t id = create(file, 1, RDMA_PS_TCP);
    struct cma_sockaddr_ib own = gid(hosts[0].device.gid[1], PKEY, 0, 0);

    ck_assert_int_eq(bind_any(id, &own, sizeof(own)), ENODEV);
    ck_assert_uint_eq(query(id, RDMA_USER_CM_QUERY_ADDR).dst_size, 0);
    ck_assert_int_eq(resolve_from(id, &own, sizeof(own), &own, sizeof(own)), ENODEV);
    ck_assert_int_eq(bind_gid(id, loopback, 0, 0), 0);
    ck_assert_mem_eq(source(id)->addr, loopback, 16);
}
END_TEST

START_TEST(sizes)
{
    struct ucma_file *file = hosts[0].file;
    uint32_t id = create(file, 1, RDMA_PS_TCP);
    struct cma_sockaddr_ib any = gid(zero, 0, 0, 0);
    struct rdma_ucm_bind_ip bind_ip = {.id = id};
    struct rdma_ucm_resolve_ip resolve_ip = {.id = id};
    static const struct sockaddr local = {.sa_family = AF_UNIX};

    ck_assert_int_eq(bind_any(id, &any, sizeof(any) - 1), EINVAL);
    ck_assert_int_eq(bind_any(id, &any, sizeof(struct sockaddr_in6)), EINVAL);
    ck_assert_int_eq(bind_any(id, &any, 0), EINVAL);
    ck_assert_int_eq(bind_any(id, &local, sizeof(local)), EINVAL);
    ck_assert_int_eq(resolve_from(id, "", 0, &any, sizeof(any) - 1), EINVAL);
    ck_assert_int_eq(resolve_from(id, &any, sizeof(any) - 1, &any, sizeof(any)), EINVAL);
    ck_assert_int_eq(resolve_from(id, "", 0, &local, sizeof(local)), EINVAL);
    memcpy(&bind_ip.addr, &any, sizeof(bind_ip.addr)); /* it does not contain an address */
    ck_assert_int_eq(COMMAND(file, BIND_IP, bind_ip), EINVAL);
    memcpy(&resolve_ip.dst_addr, &any, sizeof(resolve_ip.dst_addr));
    ck_assert_int_eq(COMMAND(file, RESOLVE_IP, resolve_ip), EINVAL);
}
END_TEST

/* cma_resolve_ib_dev(): a device with a GID of the same subnet leads there. Nobody is asked. */
START_TEST(a_gid_is_resolved)
{
    static const struct {
        unsigned host, gid;
    } rows[] = {{1, 1}, {1, 0}, {0, 1}, {0, 0}};
    struct ucma_file *file = hosts[0].file;

    found = EHOSTUNREACH;
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        uint32_t id = create(file, 0xa, RDMA_PS_TCP);
        const uint8_t *to = hosts[rows[i].host].device.gid[rows[i].gid];
        struct rdma_ucm_query_addr_resp resp;

        ck_assert_int_eq(resolve_gid(id, to, PKEY), 0);
        ck_assert_uint_eq(event_of(file, CMA_EVENT_ADDR_RESOLVED).uid, 0xa);
        ck_assert_mem_eq(source(id)->addr, hosts[0].device.gid[rows[i].gid], 16);
        ck_assert_uint_eq(source(id)->pkey, PKEY);
        for (uint32_t option = 0; option <= RDMA_USER_CM_QUERY_GID;
             option += RDMA_USER_CM_QUERY_GID) {
            resp = query(id, option);
            ck_assert_uint_eq(resp.node_guid, 1);
            ck_assert_uint_eq(resp.port_num, 1);
            ck_assert_uint_eq(resp.pkey, PKEY);
            ck_assert_mem_eq(ib_of(&resp.src_addr)->addr, hosts[0].device.gid[rows[i].gid], 16);
            ck_assert_mem_eq(ib_of(&resp.dst_addr)->addr, to, 16);
            ck_assert_uint_eq(ib_of(&resp.dst_addr)->sid, GUINT64_TO_BE(PORT));
            ck_assert_uint_eq(ib_of(&resp.dst_addr)->sid_mask, GUINT64_TO_BE(0xffff));
        }
        destroy(file, id);
    }
    ck_assert_uint_eq(finds, 0);
}
END_TEST

START_TEST(gids_that_nothing_leads_to)
{
    struct ucma_file *file = hosts[0].file;
    const uint8_t *other = hosts[1].device.gid[1];
    uint32_t id = create(file, 1, RDMA_PS_UDP);

    ck_assert_int_eq(resolve_gid(id, elsewhere, PKEY), ENODEV);
    ck_assert_int_eq(resolve_gid(id, other, 0), ENODEV); /* another partition */
    ck_assert_int_eq(resolve_gid(id, other, 0x8001), ENODEV);
    ck_assert(!is_readable(file));
    ck_assert_uint_eq(query(id, RDMA_USER_CM_QUERY_ADDR).port_num, 0);
    /* a limited member of the same partition */
    ck_assert_int_eq(resolve_gid(id, other, 0x7fff), 0);
    event_of(file, CMA_EVENT_ADDR_RESOLVED);
    ck_assert_int_eq(resolve_gid(id, other, PKEY), EINVAL); /* an address is resolved once */
}
END_TEST

/* cma_resolve_loopback(): the first device. */
START_TEST(no_gid_and_loopback_are_the_device)
{
    struct ucma_file *file = hosts[0].file;
    const uint8_t *const to[] = {zero, loopback};

    for (size_t i = 0; i < G_N_ELEMENTS(to); i++) {
        uint32_t id = create(file, 1, RDMA_PS_TCP);

        ck_assert_int_eq(resolve_gid(id, to[i], 0), 0);
        event_of(file, CMA_EVENT_ADDR_RESOLVED);
        ck_assert_mem_eq(source(id)->addr, loopback, 16);
        ck_assert_uint_eq(query(id, RDMA_USER_CM_QUERY_ADDR).pkey, PKEY);
        ck_assert_uint_eq(query(id, RDMA_USER_CM_QUERY_ADDR).node_guid, 1);
    }
}
END_TEST

/* Resolving with a source address of another family changes nothing. */
START_TEST(families_are_not_mixed)
{
    struct ucma_file *file = hosts[0].file;
    struct sockaddr_in6 ip = ipv4("10.0.0.1", 0);
    struct cma_sockaddr_ib to = gid(hosts[1].device.gid[1], PKEY, PORT, 0xffff);
    uint32_t id = create(file, 1, RDMA_PS_TCP);

    ck_assert_int_eq(resolve_from(id, &ip, sizeof(struct sockaddr_in), &to, sizeof(to)), EINVAL);
    ck_assert_int_eq(resolve_gid(id, to.addr, PKEY), EINVAL);
    ck_assert_int_eq(resolve(file, id, "10.0.0.2"), 0);
    id = create(file, 1, RDMA_PS_TCP);
    ck_assert_int_eq(bind_gid(id, zero, 0, 0), 0);
    ck_assert_int_eq(resolve(file, id, "10.0.0.2"), EINVAL);
    ck_assert_int_eq(resolve_gid(id, to.addr, PKEY), 0);
    ck_assert_uint_eq(query(id, RDMA_USER_CM_QUERY_ADDR).pkey, 0); /* the source's P_Key */
}
END_TEST

/* A route or a group needs a network interface, which a GID does not name
 * (cma_iboe_set_path_rec_l2_fields()), so neither is possible. */
START_TEST(no_route_leads_to_a_gid)
{
    struct ucma_file *file = hosts[0].file;
    struct ib_path_rec_data path = {.flags = 1 | 2 | 8 | 32};
    struct cma_sockaddr_ib group = gid(elsewhere, PKEY, 0, 0);
    struct rdma_ucm_create_id_resp joined;
    struct rdma_ucm_join_mcast join = {.response = (uintptr_t)&joined, .addr_size = sizeof(group)};
    struct rdma_ucm_join_ip_mcast join_ip = {.response = (uintptr_t)&joined};
    struct rdma_ucm_query_route_resp route = {0};
    uint32_t id = create(file, 1, RDMA_PS_UDP);
    struct rdma_ucm_set_option set = {.optval = (uintptr_t)&path,
                                      .id = id,
                                      .level = RDMA_OPTION_IB,
                                      .optname = RDMA_OPTION_IB_PATH,
                                      .optlen = sizeof(path)};

    ((uint8_t *)path.path_rec)[54] = 3; /* MTU 1024 */
    memcpy(&join.addr, &group, sizeof(group));
    memcpy(&join_ip.addr, &group, sizeof(join_ip.addr));
    join.id = join_ip.id = id;
    ck_assert_int_eq(resolve_gid(id, hosts[1].device.gid[1], PKEY), 0);
    event_of(file, CMA_EVENT_ADDR_RESOLVED);
    ck_assert_int_eq(
        COMMAND(file, RESOLVE_ROUTE, (struct rdma_ucm_resolve_route){.id = id, .timeout_ms = 1}),
        ENODEV);
    ck_assert_int_eq(COMMAND(file, SET_OPTION, set), ENODEV);
    ck_assert_int_eq(
        COMMAND(file, CONNECT, (struct rdma_ucm_connect){.id = id, .conn_param = param(1, "")}),
        EINVAL);
    ck_assert_int_eq(ASK(file, JOIN_MCAST, joined, join), ENODEV);
    ck_assert_int_eq(ASK(file, JOIN_IP_MCAST, joined, join_ip), EINVAL);
    memset((char *)&join.addr + 8, 0, 16);
    ck_assert_int_eq(ASK(file, JOIN_MCAST, joined, join), EINVAL);
    ck_assert(!is_readable(file));
    ck_assert_int_eq(ASK(file, QUERY_ROUTE, route,
                         (struct rdma_ucm_query){.response = (uintptr_t)&route, .id = id}),
                     0);
    ck_assert_uint_eq(route.num_paths, 0);
    ck_assert_uint_eq(route.port_num, 1);
    ck_assert_uint_eq(route.src_addr.sin6_family, AF_IB);
    ck_assert_mem_eq(route.ib_route[0].sgid, zero, 16);
    ck_assert_mem_eq(route.ib_route[0].dgid, zero, 16);
    ck_assert_uint_eq(route.ib_route[0].pkey, PKEY);
    ck_assert_uint_eq(qp_attr(file, id, 1).qkey, CMA_UDP_QKEY);
}
END_TEST

/* cma_ib_acquire_dev(): a request arrives for such a listener, but does not reach it. */
START_TEST(a_listener_without_a_gid_is_not_reached)
{
    static const struct {
        uint16_t ps;
        uint32_t event, status;
    } rows[] = {{RDMA_PS_TCP, CMA_EVENT_REJECTED, 28}, {RDMA_PS_UDP, CMA_EVENT_UNREACHABLE, 2}};

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        for (int afonly = 0; afonly < 2; afonly++) {
            struct ucma_file *file = hosts[1].file;
            uint32_t id = create(file, 1, rows[i].ps);
            struct cma_sockaddr_ib any = gid(zero, PKEY, PORT, 0xffff);
            struct rdma_ucm_bind bind = {.id = id, .addr_size = sizeof(any)};
            struct rdma_ucm_set_option only = {.optval = (uintptr_t)&afonly,
                                               .id = id,
                                               .optname = RDMA_OPTION_ID_AFONLY,
                                               .optlen = sizeof(afonly)};

            memcpy(&bind.addr, &any, sizeof(any));
            ck_assert_int_eq(COMMAND(file, BIND, bind), 0);
            ck_assert_int_eq(COMMAND(file, SET_OPTION, only), 0);
            ck_assert_int_eq(listen_on(file, id, 0), 0);
            connecting_of(rows[i].ps, 0, 1 + (uint64_t)afonly, "");
            ck_assert_uint_eq(event_of(hosts[0].file, rows[i].event).status, rows[i].status);
            ck_assert(!is_readable(file));
            destroy(file, id);
        }
    }
}
END_TEST

/* The answer of QUERY for GIDs about IP addresses (ucma_query_gid()): the library queries this way
 * from then on. */
START_TEST(the_gids_of_ip_addresses)
{
    static const uint8_t any_ipv4[16] = {[10] = 0xff, [11] = 0xff};
    struct ucma_file *file = hosts[0].file;
    uint32_t id = create(file, 1, RDMA_PS_TCP);
    struct rdma_ucm_query_addr_resp resp = query(id, RDMA_USER_CM_QUERY_GID);

    ck_assert_uint_eq(ib_of(&resp.src_addr)->sid, GUINT64_TO_BE(OF(RDMA_PS_TCP)));
    ck_assert_int_eq(bind_to(file, id, "10.0.0.1", PORT), 0);
    resp = query(id, RDMA_USER_CM_QUERY_GID);
    ck_assert_uint_eq(resp.pkey, 0); /* a P_Key of an Ethernet interface */
    ck_assert_uint_eq(resp.src_size, sizeof(struct cma_sockaddr_ib));
    ck_assert_mem_eq(ib_of(&resp.src_addr)->addr, hosts[0].device.gid[1], 16);
    ck_assert_uint_eq(ib_of(&resp.src_addr)->sid, GUINT64_TO_BE(OF(RDMA_PS_TCP) | PORT));
    ck_assert_uint_eq(ib_of(&resp.src_addr)->sid_mask, 0);
    ck_assert_mem_eq(ib_of(&resp.dst_addr)->addr, any_ipv4, 16);
    ck_assert_int_eq(resolve(file, id, "10.0.0.2"), 0);
    resp = query(id, RDMA_USER_CM_QUERY_GID);
    ck_assert_mem_eq(ib_of(&resp.dst_addr)->addr, hosts[1].device.gid[1], 16);
    ck_assert_uint_eq(ib_of(&resp.dst_addr)->sid, GUINT64_TO_BE(OF(RDMA_PS_TCP) | PORT));
    ck_assert_uint_eq(ib_of(&resp.dst_addr)->pkey, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("verbs-ucma-ib");
    TCase *tc = tcase_create("ucma-ib");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, what_librdmacm_tries_first);
    tcase_add_test(tc, port_spaces);
    tcase_add_test(tc, ports);
    tcase_add_test(tc, a_gid_cannot_be_bound);
    tcase_add_test(tc, sizes);
    tcase_add_test(tc, a_gid_is_resolved);
    tcase_add_test(tc, gids_that_nothing_leads_to);
    tcase_add_test(tc, no_gid_and_loopback_are_the_device);
    tcase_add_test(tc, families_are_not_mixed);
    tcase_add_test(tc, no_route_leads_to_a_gid);
    tcase_add_test(tc, a_listener_without_a_gid_is_not_reached);
    tcase_add_test(tc, the_gids_of_ip_addresses);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
