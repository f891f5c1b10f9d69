/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests what /dev/infiniband/rdma_cm answers about addresses of AF_IB on a RoCE device: the cases
 * of tests/verbs/test_ucma_ib.c, in a program written to the ABI (rdma/rdma_user_cm.h), so that a
 * kernel can be asked the same. Run in a guest, and by `hcasim run`.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_user_cm.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tests/programs/statements.h"

#define PORT           7174
#define IP_PORT_SPACES 0xffffffffffff0000u
#define OF(ps)         ((uint64_t)(ps) << 16)
#define PKEY           0xffff
#define ADDR_RESOLVED  0 /* enum rdma_cm_event_type */
#define ROUTE_RESOLVED 2
#define REJECTED       8
#define NO_CONSUMER    28 /* reason of a refusal: rejected by the consumer */

/* struct sockaddr_ib of librdmacm, big-endian except the family and the scope. */
struct gid_addr {
    uint16_t family, pkey;
    uint32_t flowinfo;
    union ibv_gid gid;
    uint64_t sid, sid_mask, scope_id;
};

static int file;
static union ibv_gid none, own, neighbour; /* of the same subnet */

static void setup(void)
{
    open_device();
    own = neighbour = path().grh.dgid;
    neighbour.raw[15] ^= 0x40;
    file = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(file, 0);
}

static void teardown(void)
{
    close(file);
    close_device();
}

/* Returns 0 or an errno. */
static int command(uint32_t cmd, const void *in, size_t len, size_t out)
{
    uint8_t buf[1024];
    struct rdma_ucm_cmd_hdr hdr = {.cmd = cmd, .in = (uint16_t)len, .out = (uint16_t)out};

    memcpy(buf, &hdr, sizeof(hdr));
    memcpy(buf + sizeof(hdr), in, len);
    return write(file, buf, sizeof(hdr) + len) == (ssize_t)(sizeof(hdr) + len) ? 0 : errno;
}

#define COMMAND(name, ...) command(RDMA_USER_CM_CMD_##name, &(__VA_ARGS__), sizeof(__VA_ARGS__), 0)
#define ASK(name, resp, ...)                                                                       \
    command(RDMA_USER_CM_CMD_##name, &(__VA_ARGS__), sizeof(__VA_ARGS__), sizeof(resp))

static uint32_t create(uint16_t ps)
{
    struct rdma_ucm_create_id_resp resp = {0};

    ck_assert_int_eq(
        ASK(CREATE_ID, resp,
            (struct rdma_ucm_create_id){.uid = 1, .response = (uintptr_t)&resp, .ps = ps}),
        0);
    return resp.id;
}

static struct gid_addr gid(union ibv_gid addr, uint64_t sid, uint64_t mask)
{
    return (struct gid_addr){.family = AF_IB,
                             .pkey = htons(PKEY),
                             .gid = addr,
                             .sid = htobe64(sid),
                             .sid_mask = htobe64(mask)};
}

static int bind_to(uint32_t id, union ibv_gid addr, uint64_t sid, uint64_t mask)
{
    struct gid_addr to = gid(addr, sid, mask);
    struct rdma_ucm_bind cmd = {.id = id, .addr_size = sizeof(to)};

    memcpy(&cmd.addr, &to, sizeof(to));
    return COMMAND(BIND, cmd);
}

static int resolve(uint32_t id, const void *addr, size_t size)
{
    struct rdma_ucm_resolve_addr cmd = {
        .id = id, .timeout_ms = SECONDS * 1000, .dst_size = (uint16_t)size};

    memcpy(&cmd.dst_addr, addr, size);
    return COMMAND(RESOLVE_ADDR, cmd);
}

static int resolve_gid(uint32_t id, union ibv_gid addr)
{
    struct gid_addr to = gid(addr, PORT, 0xffff);

    return resolve(id, &to, sizeof(to));
}

static int resolve_route(uint32_t id)
{
    return COMMAND(RESOLVE_ROUTE, (struct rdma_ucm_resolve_route){.id = id, .timeout_ms = 2000});
}

/* Takes the next event, which must be of that type; returns its status. */
static uint32_t event(uint32_t type)
{
    struct rdma_ucm_event_resp resp = {.event = UINT32_MAX};
    struct pollfd fd = {.fd = file, .events = POLLIN};

    ck_assert_int_eq(poll(&fd, 1, SECONDS * 1000), 1);
    ck_assert_int_eq(
        ASK(GET_EVENT, resp, (struct rdma_ucm_get_event){.response = (uintptr_t)&resp}), 0);
    ck_assert_uint_eq(resp.event, type);
    return resp.status;
}

static struct rdma_ucm_query_addr_resp query(uint32_t id, uint32_t option)
{
    struct rdma_ucm_query_addr_resp resp = {0};

    ck_assert_int_eq(
        ASK(QUERY, resp,
            (struct rdma_ucm_query){.response = (uintptr_t)&resp, .id = id, .option = option}),
        0);
    return resp;
}

static const struct gid_addr *gid_of(const struct __kernel_sockaddr_storage *addr)
{
    const struct gid_addr *is = (const struct gid_addr *)addr;

    ck_assert_uint_eq(is->family, AF_IB);
    return is;
}

/* -- statements ---------------------------------------------------------------------------------
 */

START_TEST(no_gid_is_bound)
{
    uint32_t id = create(RDMA_PS_IB);
    struct rdma_ucm_query_addr_resp resp;

    ck_assert_int_eq(bind_to(id, none, OF(RDMA_PS_TCP), IP_PORT_SPACES), 0);
    resp = query(id, RDMA_USER_CM_QUERY_ADDR);
    ck_assert_uint_eq(resp.src_size, sizeof(struct gid_addr));
    ck_assert_uint_eq(be64toh(gid_of(&resp.src_addr)->sid) >> 16, RDMA_PS_TCP);
    ck_assert_uint_ne(be64toh(gid_of(&resp.src_addr)->sid) & 0xffff, 0);
    ck_assert_uint_eq(gid_of(&resp.src_addr)->sid_mask, UINT64_MAX);
    ck_assert_int_eq(bind_to(create(RDMA_PS_TCP), none, OF(RDMA_PS_UDP), IP_PORT_SPACES),
                     EPROTONOSUPPORT);
    ck_assert_int_eq(bind_to(create(RDMA_PS_IPOIB), none, 0, 0), EPROTONOSUPPORT);
}
END_TEST

START_TEST(ports_are_of_all_families)
{
    uint32_t id = create(RDMA_PS_TCP), other = create(RDMA_PS_TCP);
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct rdma_ucm_bind bind_ip = {.id = other, .addr_size = sizeof(any)};

    memcpy(&bind_ip.addr, &any, sizeof(any));
    ck_assert_int_eq(bind_to(id, none, PORT, 0xffff), 0);
    ck_assert_int_eq(bind_to(other, none, PORT, 0xffff), EADDRNOTAVAIL);
    ck_assert_int_eq(COMMAND(BIND, bind_ip), EADDRNOTAVAIL);
}
END_TEST

START_TEST(a_gid_is_not_bound)
{
    ck_assert_int_eq(bind_to(create(RDMA_PS_TCP), own, PORT, 0xffff), ENODEV);
}
END_TEST

START_TEST(a_gid_is_resolved_and_no_route_leads_there)
{
    union ibv_gid to[] = {neighbour, own, none};
    struct ib_path_rec_data path_record = {.flags = 1 | 2 | 8 | 32};

    ((uint8_t *)path_record.path_rec)[54] = 3;
    for (size_t i = 0; i < COUNT(to); i++) {
        uint32_t id = create(RDMA_PS_TCP);
        struct rdma_ucm_query_addr_resp resp;

        ck_assert_int_eq(resolve_gid(id, to[i]), 0);
        ck_assert_uint_eq(event(ADDR_RESOLVED), 0);
        resp = query(id, RDMA_USER_CM_QUERY_GID);
        ck_assert_uint_eq(resp.port_num, 1);
        ck_assert_uint_eq(resp.pkey, htons(PKEY));
        ck_assert_mem_eq(&gid_of(&resp.dst_addr)->gid, &to[i], 16);
        if (i < 2) {
            ck_assert_mem_eq(&gid_of(&resp.src_addr)->gid, &own, 16);
        }
        ck_assert_int_eq(resolve_route(id), ENODEV);
        ck_assert_int_eq(
            COMMAND(SET_OPTION, (struct rdma_ucm_set_option){.optval = (uintptr_t)&path_record,
                                                             .id = id,
                                                             .level = RDMA_OPTION_IB,
                                                             .optname = RDMA_OPTION_IB_PATH,
                                                             .optlen = sizeof(path_record)}),
            ENODEV);
    }
}
END_TEST

START_TEST(another_subnet_and_partition)
{
    union ibv_gid far = {.raw = {0x20, 0x01, 0x0d, 0xb8, [15] = 1}};
    struct gid_addr to = gid(neighbour, PORT, 0xffff);

    ck_assert_int_eq(resolve_gid(create(RDMA_PS_TCP), far), ENODEV);
    to.pkey = htons(0x8001);
    ck_assert_int_eq(resolve(create(RDMA_PS_TCP), &to, sizeof(to)), ENODEV);
    ck_assert_int_eq(resolve(create(RDMA_PS_TCP), &to, sizeof(to) - 1), EINVAL);
}
END_TEST

/* Uses the IPv4 address that the GID contains. */
START_TEST(a_listener_without_a_gid_is_not_reached)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    uint32_t id = create(RDMA_PS_TCP), client = create(RDMA_PS_TCP);
    struct rdma_ucm_query_addr_resp resp;

    memcpy(&to.sin_addr, own.raw + 12, sizeof(to.sin_addr));
    ck_assert_int_eq(bind_to(id, none, PORT, 0xffff), 0);
    ck_assert_int_eq(COMMAND(LISTEN, (struct rdma_ucm_listen){.id = id}), 0);
    ck_assert_int_eq(resolve(client, &to, sizeof(to)), 0);
    ck_assert_uint_eq(event(ADDR_RESOLVED), 0);
    resp = query(client, RDMA_USER_CM_QUERY_GID);
    ck_assert_mem_eq(&gid_of(&resp.src_addr)->gid, &own, 16);
    ck_assert_mem_eq(&gid_of(&resp.dst_addr)->gid, &own, 16);
    ck_assert_uint_eq(resp.pkey, 0);
    ck_assert_int_eq(resolve_route(client), 0);
    ck_assert_uint_eq(event(ROUTE_RESOLVED), 0);
    ck_assert_int_eq(
        COMMAND(CONNECT,
                (struct rdma_ucm_connect){.id = client, .conn_param = {.qp_num = 1, .valid = 1}}),
        0);
    ck_assert_uint_eq(event(REJECTED), NO_CONSUMER);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *suite = suite_create("gid-addresses");
    TCase *tc = tcase_create("gid-addresses");

    tcase_set_timeout(tc, 3 * SECONDS);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, no_gid_is_bound);
    tcase_add_test(tc, ports_are_of_all_families);
    tcase_add_test(tc, a_gid_is_not_bound);
    tcase_add_test(tc, a_gid_is_resolved_and_no_route_leads_there);
    tcase_add_test(tc, another_subnet_and_partition);
    tcase_add_test(tc, a_listener_without_a_gid_is_not_reached);
    suite_add_tcase(suite, tc);
    return run_statements(suite, "gid-addresses", argc, argv);
}
