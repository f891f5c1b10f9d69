/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sniffer: copies everything that a device's first port receives and sends, RoCE included, by a
 * flow of type IBV_FLOW_ATTR_SNIFFER. usage: sniffer DEVICE FRAMES. Prints "sniffing", takes so
 * many RoCEv2 frames, and prints how many of them came from each source MAC.
 *
 * Written to libibverbs alone.
 */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH      256
#define ROOM       2048 /* bytes for a frame */
#define SOURCES    8
#define MAC_AT     6
#define IPV4_PROTO 23
#define IPV4_DPORT 36
#define UDP        17
#define ROCE_PORT  4791
#define SHORTEST   64

static struct {
    uint8_t mac[6];
    unsigned frames;
} sources[SOURCES];

static void must(int right, const char *what)
{
    if (!right) {
        perror(what);
        exit(1);
    }
}

static struct ibv_context *open_device(const char *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL);

    must(list != NULL, "ibv_get_device_list");
    for (unsigned i = 0; list[i]; i++) {
        if (!strcmp(ibv_get_device_name(list[i]), name)) {
            return ibv_open_device(list[i]);
        }
    }
    return NULL;
}

static void post(struct ibv_qp *qp, const struct ibv_mr *mr, uint8_t *buf, uint64_t slot)
{
    struct ibv_sge sge = {.addr = (uintptr_t)buf + slot * ROOM, .length = ROOM, .lkey = mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

    must(ibv_post_recv(qp, &wr, &bad) == 0, "ibv_post_recv");
}

static void to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state, .port_num = 1};

    must(ibv_modify_qp(qp, &attr, IBV_QP_STATE | (state == IBV_QPS_INIT ? IBV_QP_PORT : 0)) == 0,
         "ibv_modify_qp");
}

/* Counts a frame of RoCEv2 over IPv4 for its source; returns whether it is one. */
static int count(const uint8_t *frame, size_t len)
{
    unsigned i = 0;

    if (len < SHORTEST || frame[12] != 8 || frame[13] != 0 || frame[IPV4_PROTO] != UDP ||
        (frame[IPV4_DPORT] << 8 | frame[IPV4_DPORT + 1]) != ROCE_PORT) {
        return 0;
    }
    while (i < SOURCES - 1 && sources[i].frames && memcmp(sources[i].mac, frame + MAC_AT, 6)) {
        i++;
    }
    memcpy(sources[i].mac, frame + MAC_AT, 6);
    sources[i].frames++;
    return 1;
}

static void take(struct ibv_cq *cq, struct ibv_qp *qp, const struct ibv_mr *mr, uint8_t *buf,
                 unsigned frames)
{
    struct ibv_wc wc;

    while (frames) {
        int n = ibv_poll_cq(cq, 1, &wc);

        must(n >= 0, "ibv_poll_cq");
        if (n) {
            must(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
            frames -= (unsigned)count(buf + wc.wr_id * ROOM, wc.byte_len);
            post(qp, mr, buf, wc.wr_id);
        }
    }
}

int main(int argc, char **argv)
{
    struct ibv_context *context = argc == 3 ? open_device(argv[1]) : NULL;
    struct ibv_flow_attr sniff = {.type = IBV_FLOW_ATTR_SNIFFER, .size = sizeof(sniff), .port = 1};
    struct ibv_qp_init_attr init = {.cap = {.max_recv_wr = DEPTH, .max_recv_sge = 1},
                                    .qp_type = IBV_QPT_RAW_PACKET};
    uint8_t *buf = calloc(DEPTH, ROOM);
    struct ibv_flow *flow;
    struct ibv_qp *qp;
    struct ibv_pd *pd;
    struct ibv_mr *mr;

    must(context && buf, "usage: sniffer DEVICE FRAMES");
    must((pd = ibv_alloc_pd(context)) != NULL, "ibv_alloc_pd");
    must((mr = ibv_reg_mr(pd, buf, (size_t)DEPTH * ROOM, IBV_ACCESS_LOCAL_WRITE)) != NULL,
         "ibv_reg_mr");
    init.send_cq = init.recv_cq = ibv_create_cq(context, DEPTH, NULL, NULL, 0);
    must(init.recv_cq != NULL, "ibv_create_cq");
    must((qp = ibv_create_qp(pd, &init)) != NULL, "ibv_create_qp");
    to_state(qp, IBV_QPS_INIT);
    to_state(qp, IBV_QPS_RTR);
    for (unsigned slot = 0; slot < DEPTH; slot++) {
        post(qp, mr, buf, slot);
    }
    must((flow = ibv_create_flow(qp, &sniff)) != NULL, "ibv_create_flow");
    puts("sniffing");
    fflush(stdout);
    take(init.recv_cq, qp, mr, buf, (unsigned)strtoul(argv[2], NULL, 0));
    must(ibv_destroy_flow(flow) == 0, "ibv_destroy_flow");
    for (unsigned i = 0; i < SOURCES && sources[i].frames; i++) {
        const uint8_t *mac = sources[i].mac;

        printf("%u frames from %02x:%02x:%02x:%02x:%02x:%02x\n", sources[i].frames, mac[0], mac[1],
               mac[2], mac[3], mac[4], mac[5]);
    }
    return 0;
}
