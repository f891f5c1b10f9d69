/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests that a process says goodbye when it ends, however it ends. A kernel closes its files, and
 * the connection manager sends each peer the message that the connection's state requires. Its
 * queue pairs no longer answer. Under hcasim run; written to the ABI (rdma/rdma_user_cm.h).
 *
 * Two processes bring a connection to a state. One process ends in some way, and the other process
 * must get the right event.
 */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/rdma_user_cm.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/programs/own_wire.h"

#define PS_TCP  0x106
#define PORT    7471
#define QPN     0x1234
#define PATIENT 30000 /* ms, for what must come */
/* Less than the connection manager's first retry; measured: docs/howto/rdma-cm.md. */
#define SOON_MS   2000
#define UNSEEN_MS 500
#define WATCHES   1000 /* usually more than a user may have */
#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))

enum event { /* rdma_cm_event_type */
    ADDR_RESOLVED = 0,
    ROUTE_RESOLVED = 2,
    CONNECT_REQUEST = 4,
    CONNECT_RESPONSE = 5,
    REJECTED = 8,
    IS_ESTABLISHED = 9,
    DISCONNECTED = 10,
    NOTHING = -1,
};

enum state {
    ASKED,       /* a request has come and is not answered yet */
    ANSWERED,    /* the answer has come and is not acknowledged yet */
    ESTABLISHED, /* both sides have established the connection */
    LEAVING,     /* the surviving process has begun to disconnect */
    STATES
};

static const struct {
    const char *name;
    enum event told;
} states[STATES] = {
    [ASKED] = {"asked", REJECTED},
    [ANSWERED] = {"answered", REJECTED},
    [ESTABLISHED] = {"established", DISCONNECTED},
    [LEAVING] = {"leaving", DISCONNECTED},
};

static void end_by_exit(void)
{
    exit(0);
}

static void end_at_once(void)
{
    _exit(0);
}

static void end_by_segv(void)
{
    raise(SIGSEGV);
}

static void end_by_term(void)
{
    raise(SIGTERM);
}

static void end_by_int(void)
{
    raise(SIGINT);
}

static void end_by_kill(void)
{
    raise(SIGKILL);
}

static const struct {
    const char *name;
    void (*end)(void);
} ways[] = {
    {"exit", end_by_exit}, {"_exit", end_at_once},    {"abort", abort},      {"segv", end_by_segv},
    {"term", end_by_term}, {"interrupt", end_by_int}, {"kill", end_by_kill},
};

static int file;    /* the connection manager's file */
static uint32_t id; /* identifier of the connection */
static int to_peer, from_peer;

static void say(void)
{
    ck_assert_int_eq(write(to_peer, "", 1), 1);
}

static void hear(void)
{
    char byte;

    ck_assert_int_eq(read(from_peer, &byte, 1), 1);
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

#define COMMAND(name, ...)                                                                         \
    ck_assert_int_eq(command(RDMA_USER_CM_CMD_##name, &(__VA_ARGS__), sizeof(__VA_ARGS__), 0), 0)
#define ASK(name, resp, ...)                                                                       \
    ck_assert_int_eq(                                                                              \
        command(RDMA_USER_CM_CMD_##name, &(__VA_ARGS__), sizeof(__VA_ARGS__), sizeof(resp)), 0)

/* Returns the next event within so many ms; a request's identifier becomes the connection's. */
static enum event next_event(int ms)
{
    struct pollfd fd = {.fd = file, .events = POLLIN};
    struct rdma_ucm_event_resp event;

    if (poll(&fd, 1, ms) < 1) {
        return NOTHING;
    }
    ASK(GET_EVENT, event, (struct rdma_ucm_get_event){.response = (uintptr_t)&event});
    if (event.event == CONNECT_REQUEST) {
        id = event.id;
    }
    return (enum event)event.event;
}

static void expect(enum event event)
{
    ck_assert_int_eq(next_event(PATIENT), event);
}

static uint32_t create(void)
{
    struct rdma_ucm_create_id_resp resp;

    ibv_free_device_list(ibv_get_device_list(NULL)); /* loads the library */
    file = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(file, 0);
    ASK(CREATE_ID, resp,
        (struct rdma_ucm_create_id){
            .uid = 1, .response = (uintptr_t)&resp, .ps = PS_TCP, .qp_type = IBV_QPT_RC});
    return resp.id;
}

static struct rdma_ucm_conn_param params(void)
{
    return (struct rdma_ucm_conn_param){.qp_num = QPN,
                                        .responder_resources = 1,
                                        .initiator_depth = 1,
                                        .retry_count = 1,
                                        .valid = 1};
}

static void serve(enum state state)
{
    expect(CONNECT_REQUEST);
    if (state == ASKED) {
        return;
    }
    COMMAND(ACCEPT, (struct rdma_ucm_accept){.uid = 2, .id = id, .conn_param = params()});
    if (state != ANSWERED) {
        expect(IS_ESTABLISHED);
    }
}

static void listen_at_port(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    uint32_t listener = create();
    struct rdma_ucm_bind_ip bind = {.id = listener};

    memcpy(&bind.addr, &any, sizeof(any));
    COMMAND(BIND_IP, bind);
    COMMAND(LISTEN, (struct rdma_ucm_listen){.id = listener, .backlog = 4});
}

static void ask(enum state state, struct in_addr to)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr = to};
    struct rdma_ucm_resolve_ip resolve = {.timeout_ms = PATIENT};

    resolve.id = id = create();
    memcpy(&resolve.dst_addr, &addr, sizeof(addr));
    COMMAND(RESOLVE_IP, resolve);
    expect(ADDR_RESOLVED);
    COMMAND(RESOLVE_ROUTE, (struct rdma_ucm_resolve_route){.id = id, .timeout_ms = PATIENT});
    expect(ROUTE_RESOLVED);
    COMMAND(CONNECT, (struct rdma_ucm_connect){.id = id, .conn_param = params()});
    if (state == ASKED) {
        return;
    }
    expect(CONNECT_RESPONSE);
    if (state != ANSWERED) {
        COMMAND(ACCEPT, (struct rdma_ucm_accept){.id = id});
    }
}

/* Returns the IPv4 address of this host, from a GID of its device. */
static struct in_addr own_address(void)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = ibv_open_device(list[0]);
    struct in_addr addr = {0};
    union ibv_gid gid;

    for (int i = 0; !addr.s_addr && !ibv_query_gid(context, 1, i, &gid); i++) {
        if (!memcmp(gid.raw, mapped, sizeof(mapped))) {
            memcpy(&addr, gid.raw + sizeof(mapped), sizeof(addr));
        }
    }
    ibv_close_device(context);
    ibv_free_device_list(list);
    return addr;
}

/* Brings both sides to the state; asks: this side sends the request. */
static void meet(enum state state, bool asks)
{
    struct in_addr addr;

    if (asks) {
        ck_assert_int_eq(read(from_peer, &addr, sizeof(addr)), sizeof(addr));
        ask(state, addr);
        return;
    }
    listen_at_port();
    addr = own_address();
    ck_assert_int_eq(write(to_peer, &addr, sizeof(addr)), sizeof(addr));
    serve(state);
}

/* Makes the process an ordinary one that Check does not track. */
static void become_mortal(void)
{
    static const int checks[] = {SIGSEGV, SIGTERM, SIGINT};
    struct rlimit none = {0};

    for (unsigned i = 0; i < COUNT(checks); i++) {
        signal(checks[i], SIG_DFL);
    }
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void live_and_end(enum state state, bool asks, unsigned way)
{
    become_mortal();
    meet(state, asks);
    say();
    hear();
    if (state == LEAVING) {
        expect(DISCONNECTED);
        say();
        hear();
    }
    ways[way].end();
}

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Like fork(), but parent and child can then say() and hear() each other. */
static pid_t fork_a_peer(void)
{
    int down[2], up[2];
    pid_t pid;

    ck_assert_int_eq(pipe(down), 0);
    ck_assert_int_eq(pipe(up), 0);
    pid = fork();
    from_peer = pid ? up[0] : down[0];
    to_peer = pid ? down[1] : up[1];
    return pid;
}

/* Returns the process that is to end, when it has reached the state. */
static pid_t meet_a_mortal(enum state state, bool asks, unsigned way)
{
    pid_t pid = fork_a_peer();

    if (!pid) {
        live_and_end(state, !asks, way);
        _exit(1);
    }
    meet(state, asks);
    hear();
    return pid;
}

static void survive(enum state state, bool asks, unsigned way)
{
    pid_t pid = meet_a_mortal(state, asks, way);
    /* a program does not see a request before it is accepted */
    bool unseen = state == ASKED && !asks;
    enum event told;
    double start;

    if (state == LEAVING) {
        say();
        COMMAND(DISCONNECT, (struct rdma_ucm_disconnect){.id = id});
        hear();
    }
    say();
    start = now_ms();
    told = next_event(unseen ? UNSEEN_MS : SOON_MS);
    if (getenv("CM_DEATH_TIMES")) {
        printf("%s, %s, by %s: event %d after %.1f ms\n", asks ? "asked" : "was asked",
               states[state].name, ways[way].name, told, now_ms() - start);
    }
    ck_assert_msg(told == (unseen ? NOTHING : states[state].told), "%s, %s, by %s: event %d",
                  asks ? "asked" : "was asked", states[state].name, ways[way].name, told);
    if (unseen) {
        struct rdma_ucm_accept accept = {.uid = 2, .id = id, .conn_param = params()};

        ck_assert_int_eq(command(RDMA_USER_CM_CMD_ACCEPT, &accept, sizeof(accept), 0), EINVAL);
    }
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

START_TEST(the_active_side_sees_any_end)
{
    survive((enum state)((unsigned)_i / COUNT(ways)), true, (unsigned)_i % COUNT(ways));
}
END_TEST

START_TEST(the_passive_side_sees_any_end)
{
    survive((enum state)((unsigned)_i / COUNT(ways)), false, (unsigned)_i % COUNT(ways));
}
END_TEST

/* If the machine has no file watches left, the connection manager checks by itself. */
START_TEST(a_host_without_file_watches_sees_ends)
{
    int fds[WATCHES], n = 0;

    while (n < WATCHES && (fds[n] = inotify_init1(IN_CLOEXEC)) >= 0) {
        n++;
    }
    survive(ESTABLISHED, true, COUNT(ways) - 1);
    while (n) {
        close(fds[--n]);
    }
}
END_TEST

/* -- its device -------------------------------------------------------------------------------
 */

/* What the peer of a queue pair needs to know. */
struct place {
    union ibv_gid gid;
    uint32_t qpn;
    uint64_t addr;
    uint32_t rkey;
};

static uint8_t memory[64];
static struct ibv_cq *cq;

static struct ibv_qp *make_qp(struct place *here)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = ibv_open_device(list[0]);
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_mr *mr =
        ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = 4,
                                            .max_recv_wr = 4,
                                            .max_send_sge = 1,
                                            .max_recv_sge = 1,
                                            .max_inline_data = 8}};
    struct ibv_qp *qp;

    cq = attr.send_cq = attr.recv_cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    qp = ibv_create_qp(pd, &attr);
    ck_assert_ptr_nonnull(qp);
    ck_assert_int_eq(ibv_query_gid(context, 1, 1, &here->gid), 0);
    here->qpn = qp->qp_num;
    here->addr = (uintptr_t)memory;
    here->rkey = mr->rkey;
    ibv_free_device_list(list);
    return qp;
}

static void connect_qp(struct ibv_qp *qp, const struct place *there)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = there->qpn,
        .max_dest_rd_atomic = 1,
        .max_rd_atomic = 1,
        .timeout = 12,
        .retry_cnt = 1,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = there->gid, .sgid_index = 1}}};

    ck_assert_int_eq(
        ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
    attr.qp_state = IBV_QPS_RTR;
    ck_assert_int_eq(ibv_modify_qp(qp, &attr,
                                   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                       IBV_QP_MIN_RNR_TIMER),
                     0);
    attr.qp_state = IBV_QPS_RTS;
    ck_assert_int_eq(ibv_modify_qp(qp, &attr,
                                   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
                     0);
}

static struct ibv_qp *join(struct place *there)
{
    struct place here;
    struct ibv_qp *qp = make_qp(&here);

    ck_assert_int_eq(write(to_peer, &here, sizeof(here)), sizeof(here));
    ck_assert_int_eq(read(from_peer, there, sizeof(*there)), sizeof(*there));
    connect_qp(qp, there);
    say();
    hear();
    return qp;
}

static enum ibv_wc_status write_to(struct ibv_qp *qp, const struct place *there)
{
    struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = 1};
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
                             .wr.rdma = {.remote_addr = there->addr, .rkey = there->rkey}},
                       *bad;
    struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};
    double start = now_ms();

    ck_assert_int_eq(ibv_post_send(qp, &wr, &bad), 0);
    while (!ibv_poll_cq(cq, 1, &wc) && now_ms() < start + PATIENT) {
        usleep(1000);
    }
    return wc.status;
}

/* The dead host does not even answer that a queue pair or a key is unknown. */
START_TEST(a_dead_host_answers_no_more)
{
    struct place there;
    struct ibv_qp *qp;
    pid_t pid = fork_a_peer();

    if (!pid) {
        become_mortal();
        join(&there);
        hear();
        ways[_i].end();
    }
    qp = join(&there);
    ck_assert_int_eq(write_to(qp, &there), IBV_WC_SUCCESS);
    say();
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert_int_eq(write_to(qp, &there), IBV_WC_RETRY_EXC_ERR);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("cm-death");
    Suite *suite = suite_create("verbs-cm-death");

    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, the_active_side_sees_any_end, 0, STATES * (int)COUNT(ways));
    tcase_add_loop_test(tc, the_passive_side_sees_any_end, 0, STATES * (int)COUNT(ways));
    tcase_add_test(tc, a_host_without_file_watches_sees_ends);
    tcase_add_loop_test(tc, a_dead_host_answers_no_more, 0, (int)COUNT(ways));
    suite_add_tcase(suite, tc);
    return run_on_own_wire(suite, "cm-death");
}
