/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer: what a program may write to the rdma_cm file, on a host of its own whose datagrams
 * come back to it. Answers go where there is room for them.
 *
 * An input is a list of: a command, which of the last identifiers it names, an address of the table
 * below, what is subtracted from the length, and six pairs of an offset in the command and the byte
 * that is written there.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include "guest-lib/cm/ucma.h"
#include "tests/fuzz/cm_host.h"

#define STEP 16
#define IDS  4
#define PORT 7174
#define GID                                                                                        \
    {                                                                                              \
        [10] = 0xff, 0xff, 10, 0, 0, 1                                                             \
    }
#define ANSWER_AT_LEAST 16 /* bytes of a command up to the address of its answer */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct ucma_file *file;
static GQueue mails; /* datagrams */
static uint8_t answer[4096];
static uint32_t ids[IDS];
static unsigned num_ids;

static void fuzz_send(void *opaque, const struct cm_av *av, const uint8_t mad[CM_MAD_LEN])
{
    g_queue_push_tail(&mails, g_memdup2(mad, CM_MAD_LEN));
}

static void fuzz_changed(void *opaque)
{
}

static bool fuzz_has_low_ports(void *opaque)
{
    return false;
}

static int fuzz_find(void *opaque, unsigned device, unsigned sgid_index, const uint8_t dgid[16])
{
    return dgid[15] & 1 ? 0 : EAGAIN;
}

static struct ucma_file *fuzz_file_of(int fd)
{
    return fd ? NULL : file;
}

static const struct ucma_ops ops = {.cm = CM_HOST(fuzz_send),
                                    .changed = fuzz_changed,
                                    .has_low_ports = fuzz_has_low_ports,
                                    .find = fuzz_find};

static const struct cma_device device = {
    .node_guid = 1, .gid = {{0xfe, 0x80, [15] = 1}, GID}, .mtu = 5, .rate = 16};

static size_t fuzz_addr(uint8_t which, void *to)
{
    static const struct cma_sockaddr_ib gids[] = {
        {.family = AF_IB, .pkey = 0xffff},
        {.family = AF_IB, .pkey = 0xffff, .addr = GID},
        {.family = AF_IB, .pkey = 0xffff, .addr = {0xfe, 0x80, [15] = 9}},
    };
    static const uint8_t ips[][4] = {{0}, {10, 0, 0, 1}, {10, 0, 0, 2}, {239, 1, 1, 1}};
    struct sockaddr_in *in = to;

    if (which % 8 < G_N_ELEMENTS(gids)) {
        memcpy(to, &gids[which % 8], sizeof(gids[0]));
        return sizeof(gids[0]);
    }
    in->sin_family = AF_INET;
    in->sin_port = htons(PORT);
    memcpy(&in->sin_addr, ips[which % 4], sizeof(in->sin_addr));
    return sizeof(*in);
}

/* The fields that most commands need, and the answer in its place. */
union fuzz_in {
    uint8_t bytes[1024];
    struct rdma_ucm_create_id create;
    struct rdma_ucm_destroy_id destroy;
    struct rdma_ucm_bind_ip bind_ip;
    struct rdma_ucm_resolve_ip resolve_ip;
    struct rdma_ucm_resolve_route resolve_route;
    struct rdma_ucm_query query;
    struct rdma_ucm_connect connect;
    struct rdma_ucm_listen listen;
    struct rdma_ucm_accept accept;
    struct rdma_ucm_reject reject;
    struct rdma_ucm_disconnect disconnect;
    struct rdma_ucm_init_qp_attr init_qp_attr;
    struct rdma_ucm_get_event get_event;
    struct rdma_ucm_set_option set_option;
    struct rdma_ucm_notify notify;
    struct rdma_ucm_join_ip_mcast join_ip;
    struct rdma_ucm_migrate_id migrate;
    struct rdma_ucm_bind bind;
    struct rdma_ucm_resolve_addr resolve_addr;
    struct rdma_ucm_join_mcast join;
};

#define IN(type, of, ...)                                                                          \
    do {                                                                                           \
        in->of = (struct rdma_ucm_##type){__VA_ARGS__};                                            \
        len = sizeof(in->of);                                                                      \
    } while (0)

static size_t fuzz_begin(union fuzz_in *in, uint8_t cmd, uint32_t id, uint8_t addr)
{
    size_t len = 0;

    switch (cmd) {
    case RDMA_USER_CM_CMD_CREATE_ID:
        IN(create_id, create, .uid = 1, .ps = addr & 1 ? RDMA_PS_TCP : RDMA_PS_IB, .qp_type = 2);
        break;
    case RDMA_USER_CM_CMD_DESTROY_ID:
    case RDMA_USER_CM_CMD_LEAVE_MCAST:
        IN(destroy_id, destroy, .id = id);
        break;
    case RDMA_USER_CM_CMD_BIND_IP:
        IN(bind_ip, bind_ip, .id = id);
        fuzz_addr(addr | 4, &in->bind_ip.addr);
        break;
    case RDMA_USER_CM_CMD_RESOLVE_IP:
        IN(resolve_ip, resolve_ip, .id = id, .timeout_ms = 2000);
        fuzz_addr(addr | 4, &in->resolve_ip.dst_addr);
        break;
    case RDMA_USER_CM_CMD_RESOLVE_ROUTE:
        IN(resolve_route, resolve_route, .id = id);
        break;
    case RDMA_USER_CM_CMD_QUERY_ROUTE:
    case RDMA_USER_CM_CMD_QUERY:
        IN(query, query, .id = id, .option = addr % 3);
        break;
    case RDMA_USER_CM_CMD_CONNECT:
        IN(connect, connect, .id = id, .conn_param = {.qp_num = id + 1, .valid = 1});
        break;
    case RDMA_USER_CM_CMD_LISTEN:
        IN(listen, listen, .id = id);
        break;
    case RDMA_USER_CM_CMD_ACCEPT:
        IN(accept, accept, .uid = 1, .id = id, .conn_param = {.qp_num = id + 9, .valid = addr & 1});
        break;
    case RDMA_USER_CM_CMD_REJECT:
        IN(reject, reject, .id = id);
        break;
    case RDMA_USER_CM_CMD_DISCONNECT:
        IN(disconnect, disconnect, .id = id);
        break;
    case RDMA_USER_CM_CMD_INIT_QP_ATTR:
        IN(init_qp_attr, init_qp_attr, .id = id, .qp_state = 1 + addr % 3);
        break;
    case RDMA_USER_CM_CMD_GET_EVENT:
        len = sizeof(in->get_event);
        break;
    case RDMA_USER_CM_CMD_SET_OPTION:
        IN(set_option, set_option, .id = id, .optname = addr % 4, .optlen = addr & 4 ? 1 : 4);
        break;
    case RDMA_USER_CM_CMD_NOTIFY:
        IN(notify, notify, .id = id, .event = 4);
        break;
    case RDMA_USER_CM_CMD_JOIN_IP_MCAST:
        IN(join_ip_mcast, join_ip, .id = id, .uid = 1);
        fuzz_addr(addr | 4, &in->join_ip.addr);
        break;
    case RDMA_USER_CM_CMD_MIGRATE_ID:
        IN(migrate_id, migrate, .id = id);
        break;
    case RDMA_USER_CM_CMD_BIND:
        IN(bind, bind, .id = id);
        in->bind.addr_size = (uint16_t)fuzz_addr(addr, &in->bind.addr);
        break;
    case RDMA_USER_CM_CMD_RESOLVE_ADDR:
        IN(resolve_addr, resolve_addr, .id = id, .timeout_ms = 2000);
        in->resolve_addr.dst_size = (uint16_t)fuzz_addr(addr, &in->resolve_addr.dst_addr);
        break;
    case RDMA_USER_CM_CMD_JOIN_MCAST:
        IN(join_mcast, join, .id = id, .uid = 1);
        in->join.addr_size = (uint16_t)fuzz_addr(addr, &in->join.addr);
        break;
    default:
        len = sizeof(in->bytes);
    }
    return len;
}

/* Keeps written and read data within this process's memory. */
static void fuzz_aim(union fuzz_in *in, uint8_t cmd)
{
    if (cmd == RDMA_USER_CM_CMD_CREATE_ID) {
        in->create.response = (uintptr_t)answer;
    } else if (cmd == RDMA_USER_CM_CMD_SET_OPTION) {
        in->set_option.optval = (uintptr_t)answer;
        in->set_option.optlen %= sizeof(answer) / 2;
    } else {
        in->query.response = (uintptr_t)answer;
    }
}

static bool fuzz_answers(uint8_t cmd)
{
    switch (cmd) {
    case RDMA_USER_CM_CMD_BIND:
    case RDMA_USER_CM_CMD_RESOLVE_ADDR:
    case RDMA_USER_CM_CMD_RESOLVE_IP:
    case RDMA_USER_CM_CMD_RESOLVE_ROUTE:
    case RDMA_USER_CM_CMD_LISTEN:
    case RDMA_USER_CM_CMD_CONNECT:
    case RDMA_USER_CM_CMD_ACCEPT:
    case RDMA_USER_CM_CMD_REJECT:
    case RDMA_USER_CM_CMD_DISCONNECT:
    case RDMA_USER_CM_CMD_NOTIFY:
        return false;
    default:
        return true;
    }
}

static void fuzz_step(const uint8_t step[STEP])
{
    struct {
        struct rdma_ucm_cmd_hdr hdr;
        union fuzz_in in;
    } message = {0};
    uint8_t cmd = step[0] % (RDMA_USER_CM_CMD_JOIN_MCAST + 2);
    size_t least, len = fuzz_begin(&message.in, cmd, ids[step[1] % IDS], step[2]);

    for (unsigned i = 4; i < STEP; i += 2) {
        message.in.bytes[step[i]] ^= step[i + 1];
    }
    if (fuzz_answers(cmd)) {
        fuzz_aim(&message.in, cmd);
    }
    least = fuzz_answers(cmd) ? MIN(len, ANSWER_AT_LEAST) : 0;
    len -= MIN(len - least, step[3]);
    message.hdr = (struct rdma_ucm_cmd_hdr){
        .cmd = cmd, .in = (uint16_t)len, .out = step[1] & 0x80 ? 16 : 1024};
    if (ucma_write(file, &message, sizeof(message.hdr) + len) < 0) {
        return;
    }
    if (cmd == RDMA_USER_CM_CMD_CREATE_ID) {
        memcpy(&ids[num_ids++ % IDS], answer, sizeof(ids[0]));
    } else if (cmd == RDMA_USER_CM_CMD_GET_EVENT && message.hdr.out == 1024) {
        const struct rdma_ucm_event_resp *event = (const void *)answer;

        if (event->event == CMA_EVENT_CONNECT_REQUEST) {
            ids[num_ids++ % IDS] = event->id;
        }
    }
}

static void fuzz_deliver(struct ucma *ucma, bool later)
{
    struct cm_av from = {.sgid_index = 1, .dgid = GID};
    struct cm *cm = ucma_lock(ucma);
    uint8_t *mad;

    while ((mad = g_queue_pop_head(&mails))) {
        cm_recv(cm, &from, mad, CM_MAD_LEN);
        g_free(mad);
    }
    now_ns += later ? SECOND : 0;
    ucma_run(ucma, later);
    ucma_unlock(ucma);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ucma *ucma = ucma_new(&ops, NULL, &device, 1);

    now_ns = SECOND;
    num_ids = 0;
    memset(ids, 0, sizeof(ids));
    memset(answer, 0, sizeof(answer));
    file = ucma_open(ucma, fuzz_file_of);
    if (fcntl(ucma_fd(file), F_SETFL, O_NONBLOCK)) {
        g_error("the file's descriptor");
    }
    for (; size >= STEP; data += STEP, size -= STEP) {
        fuzz_step(data);
        fuzz_deliver(ucma, data[1] & 0x40);
    }
    ucma_close(file);
    ucma_free(ucma);
    g_queue_clear_full(&mails, g_free);
    return 0;
}
