/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the rdma_cm ABI (guest-lib/cm/ucma.h): what is written to the file and what comes back,
 * with the errnos of the kernel's rdma_ucm.
 */
#include <check.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>
#include "tests/verbs/ucma_hosts.h"

/* enum ibv_qp_state, enum ibv_qp_type, enum ibv_qp_attr_mask */
#define RTR         2
#define RTS         3
#define QPS_ERR     6
#define XRC_SEND    9
#define XRC_RECV    10
#define RNR_RETRY   (1 << 11)
#define RETRY_CNT   (1 << 10)
#define TIMEOUT     (1 << 9)
#define MIN_RNR     (1 << 15)
#define MAX_DEST_RD (1 << 17)

START_TEST(from_a_request_to_its_end)
{
    uint32_t a, b;
    struct rdma_ucm_event_resp event;
    struct ib_uverbs_qp_attr attr;

    listener(0);
    a = connecting(0xa, "hello");
    event = event_of(hosts[1].file, CMA_EVENT_CONNECT_REQUEST);
    ck_assert_uint_eq(event.uid, 0x100);
    ck_assert_str_eq((char *)event.param.conn.private_data, "hello");
    ck_assert_uint_eq(event.param.conn.private_data_len, 92 - 36);
    ck_assert_uint_eq(event.param.conn.initiator_depth, 4);
    ck_assert_uint_eq(event.param.conn.responder_resources, 2);
    b = event.id;
    attr = qp_attr(hosts[1].file, b, RTR);
    ck_assert_uint_eq(attr.dest_qp_num, 0x10a);
    ck_assert_uint_eq(attr.path_mtu, 5);
    ck_assert(!memcmp(attr.ah_attr.grh.dgid, hosts[0].device.gid[1], 16));
    ck_assert_int_eq(
        COMMAND(hosts[1].file, ACCEPT,
                (struct rdma_ucm_accept){.uid = 0xb, .id = b, .conn_param = param(0x222, "yes")}),
        0);
    event = event_of(hosts[0].file, CMA_EVENT_CONNECT_RESPONSE);
    ck_assert_str_eq((char *)event.param.conn.private_data, "yes");
    ck_assert_uint_eq(qp_attr(hosts[0].file, a, RTR).dest_qp_num, 0x222);
    ck_assert_int_eq(COMMAND(hosts[0].file, ACCEPT, (struct rdma_ucm_accept){.id = a}), 0);
    ck_assert_uint_eq(event_of(hosts[1].file, CMA_EVENT_ESTABLISHED).uid, 0xb);
    ck_assert_int_eq(COMMAND(hosts[0].file, DISCONNECT, (struct rdma_ucm_disconnect){a}), 0);
    event_of(hosts[1].file, CMA_EVENT_DISCONNECTED);
    ck_assert_int_eq(COMMAND(hosts[1].file, DISCONNECT, (struct rdma_ucm_disconnect){b}), 0);
    event_of(hosts[0].file, CMA_EVENT_DISCONNECTED);
    ck_assert_uint_eq(destroy(hosts[0].file, a), 4);
    ck_assert_uint_eq(destroy(hosts[1].file, b), 2);
}
END_TEST

/* Enhanced connection establishment: each side receives the other side's options. */
START_TEST(options_of_connections)
{
    const struct rdma_ucm_ece agreed = {.vendor_id = 0x15b3, .attr_mod = 2};
    struct rdma_ucm_event_resp event;

    listener(0);
    connecting(0xa, "");
    event = event_of(hosts[1].file, CMA_EVENT_CONNECT_REQUEST);
    ck_assert_mem_eq(&event.ece, &options_wanted, sizeof(event.ece));
    ck_assert_int_eq(
        COMMAND(hosts[1].file, ACCEPT,
                (struct rdma_ucm_accept){
                    .uid = 0xb, .id = event.id, .conn_param = param(0x222, ""), .ece = agreed}),
        0);
    event = event_of(hosts[0].file, CMA_EVENT_CONNECT_RESPONSE);
    ck_assert_mem_eq(&event.ece, &agreed, sizeof(event.ece));
}
END_TEST

/* The initiator's queue pair retries; the target's reads and waits (ib_cm_init_qp_attr()). A
 * listener for XRC gets only requests for XRC. */
START_TEST(xrc_queue_pairs)
{
    uint32_t a, b, mask;

    listener_of(RDMA_PS_IB, XRC_RECV, 0);
    a = connecting_of(RDMA_PS_IB, XRC_SEND, 0xa, "");
    b = event_of(hosts[1].file, CMA_EVENT_CONNECT_REQUEST).id;
    ck_assert_int_eq(
        COMMAND(hosts[1].file, ACCEPT,
                (struct rdma_ucm_accept){.uid = 0xb, .id = b, .conn_param = param(0x222, "")}),
        0);
    ck_assert_uint_eq(event_of(hosts[0].file, CMA_EVENT_CONNECT_RESPONSE).param.conn.qp_num, 0x222);
    ck_assert_uint_eq(qp_attr(hosts[0].file, a, RTR).dest_qp_num, 0x222);
    ck_assert_uint_eq(qp_attr(hosts[1].file, b, RTR).dest_qp_num, 0x10a);
    mask = qp_attr(hosts[0].file, a, RTR).qp_attr_mask;
    ck_assert_uint_eq(mask & (MIN_RNR | MAX_DEST_RD), 0);
    mask = qp_attr(hosts[1].file, b, RTR).qp_attr_mask;
    ck_assert_uint_eq(mask & (MIN_RNR | MAX_DEST_RD), MIN_RNR | MAX_DEST_RD);
    mask = qp_attr(hosts[0].file, a, RTS).qp_attr_mask;
    ck_assert_uint_eq(mask & (TIMEOUT | RETRY_CNT | RNR_RETRY), TIMEOUT | RETRY_CNT | RNR_RETRY);
    mask = qp_attr(hosts[1].file, b, RTS).qp_attr_mask;
    ck_assert_uint_eq(mask & (TIMEOUT | RETRY_CNT | RNR_RETRY), TIMEOUT);
    connecting_of(RDMA_PS_IB, 2, 0xc, "");
    event_of(hosts[0].file, CMA_EVENT_REJECTED);
}
END_TEST

/* The service ID of a port is 0x1060000 | port, and the header before the private data is Linux's
 * (IBTA annex A11): version 0, IPv4, the sender's port, both addresses. */
START_TEST(a_request_is_as_linux_writes_it)
{
    static const uint8_t addresses[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1,
                                        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2};
    const uint8_t *mad;

    connecting(0xa, "x");
    mad = ((struct mail *)g_queue_peek_head(&mails))->mad;
    ck_assert_uint_eq(prm_load64(mad + 32), 0x1060000 | PORT);
    ck_assert_uint_eq(mad[164], 0);
    ck_assert_uint_eq(mad[165], 4 << 4);
    ck_assert_uint_ge(prm_load16(mad + 166), 32768);
    ck_assert(!memcmp(mad + 168, addresses, sizeof(addresses)));
    ck_assert_uint_eq(mad[200], 'x');
}
END_TEST

START_TEST(what_is_written_is_checked)
{
    struct ucma_file *file = hosts[0].file;
    struct rdma_ucm_create_id_resp resp;
    struct rdma_ucm_create_id id = {.ps = RDMA_PS_TCP, .response = 1};
    struct rdma_ucm_cmd_hdr hdr = {.cmd = RDMA_USER_CM_CMD_LISTEN, .in = 8};
    struct ib_uverbs_qp_attr attr = {0};
    struct rdma_ucm_init_qp_attr attr_of = {.response = (uintptr_t)&attr, .qp_state = QPS_ERR};

    ck_assert_int_eq(ucma_write(file, &hdr, 4), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(ucma_write(file, &hdr, sizeof(hdr)), -1); /* the rest is missing */
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(ucma_write(file, (void *)8, 64), -1);
    ck_assert_int_eq(errno, EFAULT);
    ck_assert_int_eq(command(file, RDMA_USER_CM_CMD_JOIN_MCAST + 1, &id, sizeof(id), 0), EINVAL);
    ck_assert_int_eq(command(file, RDMA_USER_CM_CMD_GET_OPTION, &id, sizeof(id), 0), ENOSYS);
    ck_assert_int_eq(COMMAND(file, CREATE_ID, id), ENOSPC);
    ck_assert_int_eq(ASK(file, CREATE_ID, resp, id), EFAULT);
    id.ps = 1;
    ck_assert_int_eq(ASK(file, CREATE_ID, resp, id), EINVAL);
    attr_of.id = create(file, 1, RDMA_PS_TCP);
    ck_assert_int_eq(bind_to(file, attr_of.id, "10.0.0.1", 0), 0);
    ck_assert_int_eq(ASK(file, INIT_QP_ATTR, attr, attr_of), 0);
    attr_of.qp_state = QPS_ERR + 1;
    ck_assert_int_eq(ASK(file, INIT_QP_ATTR, attr, attr_of), EINVAL);
    ck_assert_int_eq(listen_on(file, 4711, 0), ENOENT);
    ck_assert_int_eq(listen_on(file, create(second, 1, RDMA_PS_TCP), 0), EINVAL);
    ck_assert_int_eq(ASK(file, GET_EVENT, struct rdma_ucm_event_resp,
                         (struct rdma_ucm_get_event){.response = 1}),
                     EAGAIN);
}
END_TEST

/* ucma_get_event() copies an event, and only then removes it from the list. */
START_TEST(an_event_that_finds_no_memory_stays)
{
    struct ucma_file *file = hosts[0].file;
    uint32_t id = create(file, 0xa, RDMA_PS_TCP);

    ck_assert_int_eq(resolve(file, id, "10.0.0.2"), 0);
    ck_assert_int_eq(ASK(file, GET_EVENT, struct rdma_ucm_event_resp,
                         (struct rdma_ucm_get_event){.response = 8}),
                     EFAULT);
    ck_assert(is_readable(file));
    ck_assert_uint_eq(event_of(file, CMA_EVENT_ADDR_RESOLVED).uid, 0xa);
    ck_assert_uint_eq(destroy(file, id), 1); /* which was reported once */
}
END_TEST

START_TEST(states_are_gone_through_in_order)
{
    struct ucma_file *file = hosts[0].file;
    uint32_t id = create(file, 1, RDMA_PS_TCP);
    struct rdma_ucm_connect connect = {.id = id, .conn_param = param(1, "")};

    ck_assert_int_eq(COMMAND(file, RESOLVE_ROUTE, (struct rdma_ucm_resolve_route){.id = id}),
                     EINVAL);
    ck_assert_int_eq(COMMAND(file, CONNECT, connect), EINVAL);
    ck_assert_int_eq(COMMAND(file, DISCONNECT, (struct rdma_ucm_disconnect){id}), EINVAL);
    ck_assert_int_eq(COMMAND(file, NOTIFY, (struct rdma_ucm_notify){.id = id, .event = 4}), EINVAL);
    ck_assert_int_eq(COMMAND(file, ACCEPT, (struct rdma_ucm_accept){.id = id}), EINVAL);
    ck_assert_int_eq(COMMAND(file, REJECT, (struct rdma_ucm_reject){.id = id}), EINVAL);
    ck_assert_int_eq(bind_to(file, id, "10.0.0.1", 0), 0);
    ck_assert_int_eq(bind_to(file, id, "10.0.0.1", 0), EINVAL);
}
END_TEST

START_TEST(addresses_and_ports)
{
    struct ucma_file *file = hosts[0].file;
    struct rdma_ucm_query_addr_resp resp = {0};
    uint32_t id = create(file, 1, RDMA_PS_TCP), other = create(file, 2, RDMA_PS_TCP);
    const struct sockaddr_in *src = (const struct sockaddr_in *)&resp.src_addr;

    ck_assert_int_eq(bind_to(file, id, "10.0.0.9", PORT), EADDRNOTAVAIL);
    ck_assert_int_eq(bind_to(file, id, "10.0.0.1", PORT), 0);
    ck_assert_int_eq(bind_to(file, other, "10.0.0.1", PORT), EADDRINUSE);
    ck_assert_int_eq(bind_to(file, other, "0.0.0.0", PORT), EADDRNOTAVAIL);
    ck_assert_int_eq(resolve(file, other, "127.0.0.1"), 0); /* the host's own device */
    ck_assert_int_eq(
        ASK(file, QUERY, resp, (struct rdma_ucm_query){.response = (uintptr_t)&resp, .id = other}),
        0);
    ck_assert_uint_eq(src->sin_addr.s_addr, htonl(0x0a000001));
    ck_assert_uint_eq(resp.node_guid, 1);
    ck_assert_int_eq(COMMAND(file, BIND_IP,
                             (struct rdma_ucm_bind_ip){.id = create(file, 3, RDMA_PS_TCP),
                                                       .addr = {.sin6_family = AF_UNIX}}),
                     EINVAL);
}
END_TEST

/* -- peers that must be asked for -------------------------------------------------------------- */

#define TIMEOUT_MS 2500

static int resolve_within(struct ucma_file *file, uint32_t id, const char *addr, uint32_t ms)
{
    return COMMAND(
        file, RESOLVE_IP,
        (struct rdma_ucm_resolve_ip){.id = id, .dst_addr = ipv4(addr, PORT), .timeout_ms = ms});
}

/* Advances time; then does what is due. */
static void pass_ms(unsigned ms, bool answered)
{
    now_ns += ms * 1000000ull;
    ucma_lock(hosts[0].ucma);
    ucma_run(hosts[0].ucma, answered);
    ucma_unlock(hosts[0].ucma);
}

static uint64_t deadline_ns(void)
{
    uint64_t deadline;

    ucma_lock(hosts[0].ucma);
    deadline = ucma_deadline_ns(hosts[0].ucma);
    ucma_unlock(hosts[0].ucma);
    return deadline;
}

static struct rdma_ucm_query_route_resp route_of(struct ucma_file *file, uint32_t id)
{
    struct rdma_ucm_query_route_resp resp = {0};

    ck_assert_int_eq(ASK(file, QUERY_ROUTE, resp,
                         (struct rdma_ucm_query){.response = (uintptr_t)&resp, .id = id}),
                     0);
    return resp;
}

/* While a peer is asked for its MAC address, the identifier belongs to no device yet, and no other
 * operation on it is possible (rdma_cm's RDMA_CM_ADDR_QUERY). */
START_TEST(a_peer_is_asked_for)
{
    struct ucma_file *file = hosts[0].file;
    uint32_t id = create(file, 7, RDMA_PS_TCP);
    unsigned asked;

    found = EAGAIN;
    ck_assert_uint_eq(deadline_ns(), UINT64_MAX);
    ck_assert_int_eq(resolve_within(file, id, "10.0.0.2", TIMEOUT_MS), 0);
    ck_assert(!is_readable(file));
    ck_assert_uint_eq(route_of(file, id).port_num, 0);
    ck_assert_int_eq(resolve_within(file, id, "10.0.0.2", TIMEOUT_MS), EINVAL);
    ck_assert_int_eq(COMMAND(file, RESOLVE_ROUTE, (struct rdma_ucm_resolve_route){.id = id}),
                     EINVAL);
    ck_assert_uint_eq(deadline_ns(), now_ns + 1000 * 1000000ull);
    asked = finds;
    pass_ms(999, false);
    ck_assert_uint_eq(finds, asked);
    pass_ms(1, false); /* asks again */
    ck_assert_uint_eq(finds, asked + 1);
    ck_assert(!is_readable(file));
    found = 0;
    pass_ms(1, false);
    ck_assert(!is_readable(file));
    pass_ms(0, true); /* the neighbour has answered */
    ck_assert_uint_eq(event_of(file, CMA_EVENT_ADDR_RESOLVED).uid, 7);
    ck_assert_uint_eq(route_of(file, id).port_num, 1);
    ck_assert_uint_eq(deadline_ns(), UINT64_MAX);
    ck_assert_int_eq(COMMAND(file, RESOLVE_ROUTE, (struct rdma_ucm_resolve_route){.id = id}), 0);
    event_of(file, CMA_EVENT_ROUTE_RESOLVED);
    destroy(file, id);
}
END_TEST

/* addr_handler() of rdma_cm: -ETIMEDOUT, and the identifier stays bound as before. */
START_TEST(a_missing_peer_times_out)
{
    struct ucma_file *file = hosts[0].file;
    uint32_t id = create(file, 7, RDMA_PS_TCP), late = create(file, 8, RDMA_PS_TCP);

    found = EAGAIN;
    ck_assert_int_eq(resolve_within(file, id, "10.0.0.9", TIMEOUT_MS), 0);
    ck_assert_int_eq(resolve_within(file, late, "10.0.0.9", 2 * TIMEOUT_MS), 0);
    pass_ms(TIMEOUT_MS - 1, false);
    ck_assert(!is_readable(file));
    ck_assert_uint_eq(deadline_ns(), now_ns + 1000000);
    pass_ms(1, false);
    ck_assert_int_eq((int)event_of(file, CMA_EVENT_ADDR_ERROR).status, -ETIMEDOUT);
    ck_assert(!is_readable(file));
    ck_assert_uint_eq(route_of(file, id).port_num, 0);
    found = 0;
    ck_assert_int_eq(resolve_within(file, id, "10.0.0.2", TIMEOUT_MS), 0);
    event_of(file, CMA_EVENT_ADDR_RESOLVED);
    destroy(file, late); /* while the peer is being asked for */
    pass_ms(10 * TIMEOUT_MS, true);
    ck_assert(!is_readable(file));
    ck_assert_uint_eq(deadline_ns(), UINT64_MAX);
    destroy(file, id);
    found = EHOSTUNREACH;
    id = create(file, 7, RDMA_PS_TCP);
    ck_assert_int_eq(resolve_within(file, id, "10.0.0.9", TIMEOUT_MS), EHOSTUNREACH);
    destroy(file, id);
}
END_TEST

/* cma_use_port(): only a privileged program may bind to ports below 1024. */
START_TEST(low_ports)
{
    struct ucma_file *file = hosts[0].file;
    uint32_t id = create(file, 1, RDMA_PS_TCP);

    ck_assert_int_eq(bind_to(file, id, "10.0.0.1", 1), EACCES);
    ck_assert_int_eq(bind_to(file, id, "0.0.0.0", 1023), EACCES);
    ck_assert_int_eq(bind_to(file, id, "10.0.0.1", 1024), 0);
    privileged = true;
    ck_assert_int_eq(bind_to(file, create(file, 2, RDMA_PS_TCP), "10.0.0.1", 1023), 0);
}
END_TEST

/* ucma.c: a request beyond the backlog is dropped, and the peer's connection manager asks again. */
START_TEST(a_backlog)
{
    struct cm *cm;

    listener(1);
    connecting(1, "first");
    connecting(2, "second");
    event_of(hosts[1].file, CMA_EVENT_CONNECT_REQUEST);
    ck_assert(!is_readable(hosts[1].file));
    now_ns += 5000000000u;
    cm = ucma_lock(hosts[0].ucma);
    cm_run(cm);
    ucma_unlock(hosts[0].ucma);
    ck_assert_str_eq(
        (char *)event_of(hosts[1].file, CMA_EVENT_CONNECT_REQUEST).param.conn.private_data,
        "second");
}
END_TEST

START_TEST(refusals_carry_private_data)
{
    struct rdma_ucm_event_resp event;
    struct rdma_ucm_reject reject = {.private_data_len = 2, .private_data = "no"};

    connecting(1, "");
    ck_assert_uint_eq(event_of(hosts[0].file, CMA_EVENT_REJECTED).status, 8); /* nobody listens */
    listener(0);
    connecting(2, "");
    reject.id = event_of(hosts[1].file, CMA_EVENT_CONNECT_REQUEST).id;
    ck_assert_int_eq(COMMAND(hosts[1].file, REJECT, reject), 0);
    event = event_of(hosts[0].file, CMA_EVENT_REJECTED);
    ck_assert_uint_eq(event.status, 28);
    ck_assert_str_eq((char *)event.param.conn.private_data, "no");
}
END_TEST

/* A listener that is destroyed rejects the waiting requests. */
START_TEST(requests_of_a_destroyed_listener_are_rejected)
{
    uint32_t id = listener(0);

    connecting(1, "");
    deliver();
    ck_assert(is_readable(hosts[1].file));
    ck_assert_uint_eq(destroy(hosts[1].file, id), 0);
    ck_assert(!is_readable(hosts[1].file));
    event_of(hosts[0].file, CMA_EVENT_REJECTED);
}
END_TEST

/* A closed file does the same. */
START_TEST(a_file_that_is_closed)
{
    for (unsigned i = 0; i < 8; i++) {
        listener(0);
        connecting(i + 1, "");
        deliver();
        ucma_close(hosts[1].file);
        hosts[1].file = open_file(1);
        event_of(hosts[0].file, CMA_EVENT_REJECTED);
    }
}
END_TEST

START_TEST(identifiers_migrate_with_their_events)
{
    struct rdma_ucm_migrate_resp resp = {0};
    uint32_t id = create(hosts[0].file, 0xa, RDMA_PS_TCP);
    struct rdma_ucm_migrate_id cmd = {.response = (uintptr_t)&resp, .id = id, .fd = 0};

    ck_assert_int_eq(resolve(hosts[0].file, id, "10.0.0.2"), 0);
    ck_assert_int_eq(ASK(second, MIGRATE_ID, resp, cmd), 0);
    ck_assert(!is_readable(hosts[0].file));
    ck_assert_uint_eq(event_of(second, CMA_EVENT_ADDR_RESOLVED).uid, 0xa);
    ck_assert_int_eq(ASK(second, MIGRATE_ID, resp, cmd), EINVAL); /* it is no longer there */
    cmd.fd = (uint32_t)open("/dev/null", O_RDONLY | O_CLOEXEC);
    /* a file of another kind */
    ck_assert_int_eq(ASK(hosts[0].file, MIGRATE_ID, resp, cmd), EINVAL);
    close((int)cmd.fd);
    ck_assert_int_eq(ASK(hosts[0].file, MIGRATE_ID, resp, cmd), ENOENT);
    ck_assert_uint_eq(destroy(second, id), 1);
}
END_TEST

/* A listener takes its waiting requests with it. */
START_TEST(a_listener_migrates_with_its_requests)
{
    struct ucma_file *other = open_file(1);
    struct rdma_ucm_migrate_resp resp = {0};
    struct rdma_ucm_event_resp event;
    uint32_t id = listener(0);

    connecting(0xa, "hello");
    deliver();
    ck_assert_int_eq(
        ASK(other, MIGRATE_ID, resp,
            (struct rdma_ucm_migrate_id){.response = (uintptr_t)&resp, .id = id, .fd = 2}),
        0);
    ck_assert_uint_eq(resp.events_reported, 0);
    ck_assert(!is_readable(hosts[1].file));
    event = event_of(other, CMA_EVENT_CONNECT_REQUEST);
    ck_assert_int_eq(
        COMMAND(other, ACCEPT,
                (struct rdma_ucm_accept){.id = event.id, .conn_param = param(0x222, "")}),
        0);
    event_of(hosts[0].file, CMA_EVENT_CONNECT_RESPONSE);
    ucma_close(other);
}
END_TEST

START_TEST(groups)
{
    struct ucma_file *file = hosts[0].file;
    struct rdma_ucm_create_id_resp resp = {0};
    struct rdma_ucm_destroy_id_resp left = {0};
    struct rdma_ucm_event_resp event;
    uint32_t id = create(file, 1, RDMA_PS_UDP);
    struct rdma_ucm_join_ip_mcast join = {
        .response = (uintptr_t)&resp, .uid = 0x9, .addr = ipv4("239.1.1.1", 0), .id = id};
    struct rdma_ucm_destroy_id leave = {.response = (uintptr_t)&left};

    /* the identifier is not bound */
    ck_assert_int_eq(ASK(file, JOIN_IP_MCAST, resp, join), EINVAL);
    ck_assert_int_eq(bind_to(file, id, "10.0.0.1", 0), 0);
    ck_assert_int_eq(ASK(file, JOIN_IP_MCAST, resp, join), 0);
    event = event_of(file, CMA_EVENT_MULTICAST_JOIN);
    ck_assert_uint_eq(event.uid, 0x9);
    ck_assert_uint_eq(event.param.ud.qp_num, 0xffffff);
    ck_assert_uint_eq(event.param.ud.qkey, CMA_UDP_QKEY);
    ck_assert_uint_eq(event.param.ud.ah_attr.grh.dgid[12], 239);
    leave.id = resp.id;
    ck_assert_int_eq(ASK(file, LEAVE_MCAST, left, leave), 0);
    ck_assert_uint_eq(left.events_reported, 1);
    ck_assert_int_eq(ASK(file, LEAVE_MCAST, left, leave), ENOENT);
}
END_TEST

START_TEST(options)
{
    struct ucma_file *file = hosts[0].file;
    int one = 1;
    struct rdma_ucm_set_option cmd = {.optval = (uintptr_t)&one,
                                      .id = create(file, 1, RDMA_PS_TCP),
                                      .optname = RDMA_OPTION_ID_REUSEADDR,
                                      .optlen = sizeof(one)};

    ck_assert_int_eq(COMMAND(file, SET_OPTION, cmd), 0);
    cmd.optlen = 1;
    ck_assert_int_eq(COMMAND(file, SET_OPTION, cmd), EINVAL);
    cmd.optname = RDMA_OPTION_ID_TOS;
    ck_assert_int_eq(COMMAND(file, SET_OPTION, cmd), 0);
    cmd.optval = 1;
    ck_assert_int_eq(COMMAND(file, SET_OPTION, cmd), EFAULT);
    cmd.optname = 99;
    ck_assert_int_eq(COMMAND(file, SET_OPTION, cmd), ENOSYS);
}
END_TEST

#define PATHS 1000

/* As in ucma_set_ib_path(): of the paths that a program sets, the one with the flags primary and
 * bidirectional counts. It can be set once the address is known, and replaces a resolved route. */
START_TEST(a_path_that_is_set)
{
    struct ucma_file *file = hosts[0].file;
    struct ib_path_rec_data paths[PATHS] = {{.flags = 1}, [PATHS - 1] = {.flags = 1 | 2 | 8 | 32}};
    uint8_t *record = (uint8_t *)paths[PATHS - 1].path_rec;
    uint32_t id = create(file, 1, RDMA_PS_TCP);
    struct rdma_ucm_set_option cmd = {.optval = (uintptr_t)paths,
                                      .id = id,
                                      .level = RDMA_OPTION_IB,
                                      .optname = RDMA_OPTION_IB_PATH,
                                      .optlen = sizeof(paths)};
    struct rdma_ucm_query_route_resp route = {0};

    memcpy(record + 8, hosts[1].device.gid[1], 16);
    record[48] = 0x40;        /* traffic class */
    record[54] = 2 << 6 | 3;  /* MTU 1024 */
    record[56] = 2 << 6 | 14; /* packet lifetime */
    /* the identifier has no address yet */
    ck_assert_int_eq(COMMAND(file, SET_OPTION, cmd), EINVAL);
    ck_assert_int_eq(resolve(file, id, "10.0.0.2"), 0);
    event_of(file, CMA_EVENT_ADDR_RESOLVED);
    cmd.optlen = sizeof(paths[0]); /* no path that counts */
    ck_assert_int_eq(COMMAND(file, SET_OPTION, cmd), EINVAL);
    cmd.optlen = sizeof(paths) - 1;
    ck_assert_int_eq(COMMAND(file, SET_OPTION, cmd), EINVAL);
    cmd.optlen = sizeof(paths);
    cmd.optval = 8;
    ck_assert_int_eq(COMMAND(file, SET_OPTION, cmd), EFAULT);
    cmd.optval = (uintptr_t)paths;
    cmd.optname++;
    ck_assert_int_eq(COMMAND(file, SET_OPTION, cmd), ENOSYS);
    cmd.optname--;
    ck_assert_int_eq(COMMAND(file, SET_OPTION, cmd), 0);
    event_of(file, CMA_EVENT_ROUTE_RESOLVED);
    ck_assert_int_eq(COMMAND(file, SET_OPTION, cmd), EINVAL); /* it has a route now */
    ck_assert_int_eq(ASK(file, QUERY_ROUTE, route,
                         (struct rdma_ucm_query){.response = (uintptr_t)&route, .id = id}),
                     0);
    ck_assert_uint_eq(route.num_paths, 1);
    ck_assert_uint_eq(route.ib_route[0].mtu, 3);
    ck_assert_uint_eq(route.ib_route[0].traffic_class, 0x40);
    ck_assert_uint_eq(route.ib_route[0].packet_life_time, 14);
    listener(0);
    ck_assert_int_eq(
        COMMAND(file, CONNECT, (struct rdma_ucm_connect){.id = id, .conn_param = param(0x101, "")}),
        0);
    id = event_of(hosts[1].file, CMA_EVENT_CONNECT_REQUEST).id;
    ck_assert_uint_eq(qp_attr(hosts[1].file, id, RTR).path_mtu, 3);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("verbs-ucma");
    TCase *tc = tcase_create("ucma");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, from_a_request_to_its_end);
    tcase_add_test(tc, options_of_connections);
    tcase_add_test(tc, xrc_queue_pairs);
    tcase_add_test(tc, a_request_is_as_linux_writes_it);
    tcase_add_test(tc, what_is_written_is_checked);
    tcase_add_test(tc, an_event_that_finds_no_memory_stays);
    tcase_add_test(tc, states_are_gone_through_in_order);
    tcase_add_test(tc, addresses_and_ports);
    tcase_add_test(tc, a_peer_is_asked_for);
    tcase_add_test(tc, a_missing_peer_times_out);
    tcase_add_test(tc, low_ports);
    tcase_add_test(tc, a_backlog);
    tcase_add_test(tc, refusals_carry_private_data);
    tcase_add_test(tc, requests_of_a_destroyed_listener_are_rejected);
    tcase_add_test(tc, a_file_that_is_closed);
    tcase_add_test(tc, identifiers_migrate_with_their_events);
    tcase_add_test(tc, a_listener_migrates_with_its_requests);
    tcase_add_test(tc, groups);
    tcase_add_test(tc, options);
    tcase_add_test(tc, a_path_that_is_set);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
