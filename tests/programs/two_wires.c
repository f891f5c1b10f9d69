/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program with a device on each of two wires, and a peer on each wire.
 *
 * Both peers have the same host number, so they have the same address and GID. A message that took
 * the wrong wire would reach the wrong peer. Each side of a connection checks what it gets.
 *
 * usage: two_wires (under hcasim run; it chooses its wires itself)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/programs/endpoint.h"
#include "tests/programs/other_side.h"

#define GID_INDEX 1
#define TEXT_MAX  64
#define TIMEOUT   14
#define PEER_HOST "9"

enum {
    LEFT,
    RIGHT,
    SIDES
};

static const char *const sides[SIDES] = {"left", "right"};

/* The facts about its QP that each side sends to the other. */
struct about {
    union ibv_gid gid;
    uint32_t qpn;
};

struct end {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct about about;
    char text[2][TEXT_MAX]; /* sent, received */
};

/* Opens a device and makes a QP, with a receive posted. */
static void end_open(struct end *end, const char *device)
{
    struct ibv_qp_init_attr init = {
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1};
    struct ibv_sge sge = {.addr = (uintptr_t)end->text[1], .length = TEXT_MAX};
    struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1}, *bad;

    end->ctx = endpoint_open(device, ibv_open_device);
    end->pd = ibv_alloc_pd(end->ctx);
    end->cq = ibv_create_cq(end->ctx, 2, NULL, NULL, 0);
    need(end->pd && end->cq, "a PD and a CQ");
    end->mr = ibv_reg_mr(end->pd, end->text, sizeof(end->text), IBV_ACCESS_LOCAL_WRITE);
    init.send_cq = init.recv_cq = end->cq;
    end->qp = ibv_create_qp(end->pd, &init);
    need(end->mr && end->qp, "an MR and a QP");
    endpoint_init_rc(end->qp, 0);
    sge.lkey = end->mr->lkey;
    need(!ibv_post_recv(end->qp, &receive, &bad), "posting a receive");
    end->about = (struct about){endpoint_gid(end->ctx, GID_INDEX), end->qp->qp_num};
}

/* Exchanges the facts over the socket, and connects. Returns what the other side said. */
static struct about end_connect(struct end *end, int sock)
{
    struct about other;

    need(write(sock, &end->about, sizeof(other)) == sizeof(other), "telling the other side");
    need(read(sock, &other, sizeof(other)) == sizeof(other), "hearing the other side");
    endpoint_connect_rc(end->qp, endpoint_towards(other.gid, GID_INDEX), other.qpn, TIMEOUT);
    return other;
}

static void end_send(struct end *end, const char *text)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)end->text[0], .length = TEXT_MAX, .lkey = end->mr->lkey};
    struct ibv_send_wr send = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

    snprintf(end->text[0], TEXT_MAX, "%s", text);
    need(!ibv_post_send(end->qp, &send, &bad), "posting a send");
}

/* Waits until the message is sent and another one is received. */
static void end_finish(struct end *end, const char *want)
{
    for (int i = 0; i < 2; i++) {
        need(endpoint_completion(end->cq).status == IBV_WC_SUCCESS, "a completion with success");
    }
    need(!strcmp(end->text[1], want), "the message of this side's peer");
}

static void end_close(struct end *end)
{
    need(!ibv_destroy_qp(end->qp) && !ibv_dereg_mr(end->mr) && !ibv_destroy_cq(end->cq) &&
             !ibv_dealloc_pd(end->pd) && !ibv_close_device(end->ctx),
         "closing the device");
}

static void name_wire(char name[TEXT_MAX], int side, pid_t program)
{
    snprintf(name, TEXT_MAX, "two-wires-%d-%s", (int)program, sides[side]);
}

/* The peer on one wire, in a process of its own. */
static void be_peer(int side, int sock)
{
    static struct end end;
    char wire[TEXT_MAX];

    name_wire(wire, side, getppid());
    setenv("HCASIM_WIRE", wire, 1);
    setenv("HCASIM_HOST", PEER_HOST, 1);
    end_open(&end, "mlx5_0");
    end_connect(&end, sock);
    end_send(&end, wire);
    end_finish(&end, sides[side]);
    end_close(&end);
    exit(EXIT_SUCCESS);
}

int main(void)
{
    static struct end ends[SIDES];
    struct about others[SIDES];
    char wires[SIDES][TEXT_MAX], both[2 * TEXT_MAX];
    pid_t pids[SIDES];
    int socks[SIDES][2], status, count;
    struct ibv_device **list;

    for (int i = 0; i < SIDES; i++) {
        need(!socketpair(AF_UNIX, SOCK_STREAM, 0, socks[i]), "a socket");
        pids[i] = fork();
        need(pids[i] >= 0, "fork()");
        if (!pids[i]) {
            be_peer(i, socks[i][1]);
        }
        close(socks[i][1]);
        name_wire(wires[i], i, getpid());
    }
    snprintf(both, sizeof(both), "%s,%s", wires[LEFT], wires[RIGHT]);
    setenv("HCASIM_WIRE", both, 1);
    list = ibv_get_device_list(&count);
    need(list && count == SIDES, "a device for each wire");
    ibv_free_device_list(list);
    for (int i = 0; i < SIDES; i++) {
        end_open(&ends[i], i == LEFT ? "mlx5_0" : "mlx5_1");
        others[i] = end_connect(&ends[i], socks[i][0]);
    }
    need(memcmp(&ends[LEFT].about.gid, &ends[RIGHT].about.gid, sizeof(union ibv_gid)) != 0,
         "devices with addresses of their own");
    need(!memcmp(&others[LEFT].gid, &others[RIGHT].gid, sizeof(union ibv_gid)),
         "peers with the same address");
    for (int i = 0; i < SIDES; i++) {
        end_send(&ends[i], sides[i]);
    }
    for (int i = 0; i < SIDES; i++) {
        end_finish(&ends[i], wires[i]);
        end_close(&ends[i]);
        need(waitpid(pids[i], &status, 0) == pids[i] && !status, "the success of a peer");
        printf("%s: %s\n", sides[i], ends[i].text[1] + strlen("two-wires-"));
    }
    return EXIT_SUCCESS;
}
