/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements ucma_hosts.h: two hosts, and a program's writes to their files. */
#include "tests/verbs/ucma_hosts.h"
#include <arpa/inet.h>
#include <check.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>

struct ucma_host hosts[2];
GQueue mails;
uint64_t now_ns;

static void send_mad(void *opaque, const struct cm_av *av, const uint8_t mad[CM_MAD_LEN])
{
    unsigned me = (unsigned)((struct ucma_host *)opaque - hosts);
    struct mail *mail = g_new0(struct mail, 1);

    mail->to = !memcmp(av->dgid, hosts[me].device.gid[1], 16) ? me : !me;
    mail->from = (struct cm_av){.sgid_index = 1, .hop_limit = 64};
    memcpy(mail->from.dgid, hosts[me].device.gid[1], 16);
    memcpy(mail->mad, mad, CM_MAD_LEN);
    g_queue_push_tail(&mails, mail);
}

static uint64_t clock_ns(void *opaque)
{
    return now_ns;
}

static uint32_t random32(void *opaque)
{
    return g_random_int();
}

static uint64_t guid(void *opaque, unsigned port)
{
    return 1 + (uint64_t)((struct ucma_host *)opaque - hosts);
}

static void changed(void *opaque)
{
}

bool privileged;

static bool has_low_ports(void *opaque)
{
    return privileged;
}

int found;
unsigned finds;

static int find(void *opaque, unsigned device, unsigned sgid_index, const uint8_t dgid[16])
{
    ck_assert_uint_eq(device, 0);
    finds++;
    return found;
}

static const struct ucma_ops ops = {
    .cm = {.send = send_mad, .now_ns = clock_ns, .random = random32, .ca_guid = guid},
    .changed = changed,
    .has_low_ports = has_low_ports,
    .find = find};

void deliver(void)
{
    for (struct mail *mail = g_queue_pop_head(&mails); mail; mail = g_queue_pop_head(&mails)) {
        cm_recv(ucma_lock(hosts[mail->to].ucma), &mail->from, mail->mad, CM_MAD_LEN);
        ucma_unlock(hosts[mail->to].ucma);
        g_free(mail);
    }
}

struct ucma_file *second;

static struct ucma_file *file_of(int fd)
{
    return fd == 2 ? hosts[1].file : fd == 1 ? second : fd == 0 ? hosts[0].file : NULL;
}

struct ucma_file *open_file(unsigned host)
{
    struct ucma_file *file = ucma_open(hosts[host].ucma, file_of);

    ck_assert_int_eq(fcntl(ucma_fd(file), F_SETFL, O_NONBLOCK), 0);
    return file;
}

void setup(void)
{
    now_ns = 1;
    privileged = false;
    found = 0;
    for (unsigned i = 0; i < 2; i++) {
        const uint8_t gid[16] = {[10] = 0xff, 0xff, 10, 0, 0, (uint8_t)(i + 1)};

        hosts[i].device = (struct cma_device){.node_guid = i + 1, .mtu = 5, .rate = 16};
        memcpy(hosts[i].device.gid[1], gid, 16);
        hosts[i].device.gid[0][0] = 0xfe;
        hosts[i].device.gid[0][1] = 0x80;
        hosts[i].device.gid[0][15] = (uint8_t)(i + 1);
        hosts[i].ucma = ucma_new(&ops, &hosts[i], &hosts[i].device, 1);
        hosts[i].file = open_file(i);
    }
    second = open_file(0);
}

void teardown(void)
{
    ucma_close(second);
    for (unsigned i = 0; i < 2; i++) {
        ucma_close(hosts[i].file);
    }
    for (unsigned i = 0; i < 2; i++) {
        ucma_free(hosts[i].ucma);
    }
    g_queue_clear_full(&mails, g_free);
}

/* -- commands -----------------------------------------------------------------------------------
 */

/* Returns 0 or an errno. */
int command(struct ucma_file *file, uint32_t cmd, const void *in, size_t len, size_t out)
{
    uint8_t buf[1024];
    struct rdma_ucm_cmd_hdr hdr = {.cmd = cmd, .in = (uint16_t)len, .out = (uint16_t)out};

    memcpy(buf, &hdr, sizeof(hdr));
    memcpy(buf + sizeof(hdr), in, len);
    return ucma_write(file, buf, sizeof(hdr) + len) == (ssize_t)(sizeof(hdr) + len) ? 0 : errno;
}

uint32_t create_for(struct ucma_file *file, uint64_t uid, uint16_t ps, uint8_t qp_type)
{
    struct rdma_ucm_create_id_resp resp = {0};

    ck_assert_int_eq(
        ASK(file, CREATE_ID, resp,
            (struct rdma_ucm_create_id){
                .uid = uid, .response = (uintptr_t)&resp, .ps = ps, .qp_type = qp_type}),
        0);
    return resp.id;
}

uint32_t create(struct ucma_file *file, uint64_t uid, uint16_t ps)
{
    return create_for(file, uid, ps, 0);
}

uint32_t destroy(struct ucma_file *file, uint32_t id)
{
    struct rdma_ucm_destroy_id_resp resp = {0};

    ck_assert_int_eq(ASK(file, DESTROY_ID, resp,
                         (struct rdma_ucm_destroy_id){.response = (uintptr_t)&resp, .id = id}),
                     0);
    return resp.events_reported;
}

struct sockaddr_in6 ipv4(const char *addr, uint16_t port)
{
    struct sockaddr_in6 in6 = {0};
    struct sockaddr_in *in = (struct sockaddr_in *)&in6;

    in->sin_family = AF_INET;
    in->sin_port = htons(port);
    inet_pton(AF_INET, addr, &in->sin_addr);
    return in6;
}

int bind_to(struct ucma_file *file, uint32_t id, const char *addr, uint16_t port)
{
    return COMMAND(file, BIND_IP, (struct rdma_ucm_bind_ip){.id = id, .addr = ipv4(addr, port)});
}

int listen_on(struct ucma_file *file, uint32_t id, uint32_t backlog)
{
    return COMMAND(file, LISTEN, (struct rdma_ucm_listen){.id = id, .backlog = backlog});
}

int resolve(struct ucma_file *file, uint32_t id, const char *addr)
{
    return COMMAND(file, RESOLVE_IP,
                   (struct rdma_ucm_resolve_ip){.id = id, .dst_addr = ipv4(addr, PORT)});
}

/* Takes the next event, which must be of that type. */
struct rdma_ucm_event_resp event_of(struct ucma_file *file, uint32_t type)
{
    struct rdma_ucm_event_resp resp = {.event = UINT32_MAX};

    deliver();
    ck_assert_int_eq(
        ASK(file, GET_EVENT, resp, (struct rdma_ucm_get_event){.response = (uintptr_t)&resp}), 0);
    ck_assert_uint_eq(resp.event, type);
    return resp;
}

bool is_readable(const struct ucma_file *file)
{
    struct pollfd fd = {.fd = ucma_fd(file), .events = POLLIN};

    return poll(&fd, 1, 0) == 1;
}

struct rdma_ucm_conn_param param(uint32_t qpn, const char *data)
{
    struct rdma_ucm_conn_param p = {.qp_num = qpn,
                                    .responder_resources = 4,
                                    .initiator_depth = 2,
                                    .retry_count = 7,
                                    .valid = 1,
                                    .private_data_len = (uint8_t)strlen(data)};

    memcpy(p.private_data, data, strlen(data));
    return p;
}

uint32_t listener_of(uint16_t ps, uint8_t qp_type, uint32_t backlog)
{
    uint32_t id = create_for(hosts[1].file, 0x100, ps, qp_type);

    ck_assert_int_eq(bind_to(hosts[1].file, id, "0.0.0.0", PORT), 0);
    ck_assert_int_eq(listen_on(hosts[1].file, id, backlog), 0);
    return id;
}

uint32_t listener(uint32_t backlog)
{
    return listener_of(RDMA_PS_TCP, 0, backlog);
}

const struct rdma_ucm_ece options_wanted = {.vendor_id = 0x15b3, .attr_mod = 0x80000003};

/* Connects as far as the request. */
uint32_t connecting_of(uint16_t ps, uint8_t qp_type, uint64_t uid, const char *data)
{
    struct ucma_file *file = hosts[0].file;
    uint32_t id = create_for(file, uid, ps, qp_type);

    ck_assert_int_eq(resolve(file, id, "10.0.0.2"), 0);
    event_of(file, CMA_EVENT_ADDR_RESOLVED);
    ck_assert_int_eq(COMMAND(file, RESOLVE_ROUTE, (struct rdma_ucm_resolve_route){.id = id}), 0);
    event_of(file, CMA_EVENT_ROUTE_RESOLVED);
    ck_assert_int_eq(
        COMMAND(file, CONNECT,
                (struct rdma_ucm_connect){.id = id,
                                          .conn_param = param(0x100 + (uint32_t)uid, data),
                                          .ece = options_wanted}),
        0);
    return id;
}

uint32_t connecting(uint64_t uid, const char *data)
{
    return connecting_of(RDMA_PS_TCP, 0, uid, data);
}

struct ib_uverbs_qp_attr qp_attr(struct ucma_file *file, uint32_t id, uint32_t state)
{
    struct ib_uverbs_qp_attr attr = {0};

    ck_assert_int_eq(ASK(file, INIT_QP_ATTR, attr,
                         (struct rdma_ucm_init_qp_attr){
                             .response = (uintptr_t)&attr, .id = id, .qp_state = state}),
                     0);
    return attr;
}
