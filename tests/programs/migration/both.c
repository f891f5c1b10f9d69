/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements both.h. */
#include "tests/programs/migration/both.h"
#include <arpa/inet.h>
#include <sys/mman.h>
#include <time.h>

#define GID_INDEX 1 /* RoCE v2 over IPv4 */
#define PORT      1
#define SECONDS   60

void both_fail(const char *what, const char *file, int line)
{
    printf("%s:%d: %s failed (%s)\n", file, line, what, strerror(errno));
    exit(1);
}

struct both both_begin(unsigned n)
{
    int num = 0;
    struct ibv_device **list = ibv_get_device_list(&num);
    struct both b = {0};

    NEED(list && (int)n < num);
    NEED(b.ctx = ibv_open_device(list[n]));
    ibv_free_device_list(list);
    NEED(b.pd = ibv_alloc_pd(b.ctx));
    NEED(b.cq = ibv_create_cq(b.ctx, 128, NULL, NULL, 0));
    b.buf = mmap(NULL, BOTH_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(b.buf != MAP_FAILED);
    for (unsigned i = 0; i < BOTH_HALF; i++) {
        b.buf[i] = (uint8_t)(i * 7);
    }
    NEED(b.mr = ibv_reg_mr(b.pd, b.buf, BOTH_BYTES, BOTH_RIGHTS));
    return b;
}

union ibv_gid both_gid(struct ibv_context *ctx)
{
    union ibv_gid gid;

    NEED(!ibv_query_gid(ctx, PORT, GID_INDEX, &gid));
    return gid;
}

struct ibv_ah_attr both_towards_itself(struct ibv_context *ctx)
{
    return (struct ibv_ah_attr){
        .is_global = 1,
        .port_num = PORT,
        .grh = {.dgid = both_gid(ctx), .sgid_index = GID_INDEX, .hop_limit = 1}};
}

uint8_t *both_from(const struct both *b)
{
    return b->buf;
}

uint8_t *both_to(const struct both *b)
{
    return b->buf + BOTH_HALF;
}

bool both_same(const struct both *b, size_t len)
{
    return !memcmp(both_from(b), both_to(b), len);
}

/* -- queue pairs ------------------------------------------------------------------------------- */

struct ibv_qp *both_rc(const struct both *b, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = 32, .max_recv_wr = 32, .max_send_sge = 4, .max_recv_sge = 4},
        .qp_type = IBV_QPT_RC,
    };
    struct ibv_qp *qp = ibv_create_qp(b->pd, &attr);

    NEED(qp);
    return qp;
}

static void both_to_rts(struct ibv_qp *qp, uint32_t peer)
{
    struct ibv_qp_attr init = {
        .qp_state = IBV_QPS_INIT, .port_num = PORT, .qp_access_flags = BOTH_RIGHTS};
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
                              .path_mtu = IBV_MTU_1024,
                              .dest_qp_num = peer,
                              .max_dest_rd_atomic = 4,
                              .min_rnr_timer = 1,
                              .ah_attr = both_towards_itself(qp->context)};
    struct ibv_qp_attr rts = {
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 4};

    NEED(!ibv_modify_qp(qp, &init,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    NEED(!ibv_modify_qp(qp, &rtr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
    NEED(!ibv_modify_qp(qp, &rts,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

void both_connect(struct ibv_qp *one, struct ibv_qp *other)
{
    both_to_rts(one, other->qp_num);
    both_to_rts(other, one->qp_num);
}

void both_loop(struct ibv_qp *qp)
{
    both_to_rts(qp, qp->qp_num);
}

void both_start_raw(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = PORT};

    NEED(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT));
    attr.qp_state = IBV_QPS_RTR;
    NEED(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
    attr.qp_state = IBV_QPS_RTS;
    NEED(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
}

/* -- work -------------------------------------------------------------------------------------- */

struct ibv_wc both_wait(struct ibv_cq *cq)
{
    time_t end = time(NULL) + SECONDS;
    struct ibv_wc wc;
    int n;

    while (!(n = ibv_poll_cq(cq, 1, &wc))) {
        NEED(time(NULL) < end);
    }
    NEED(n == 1);
    return wc;
}

struct ibv_wc both_done(struct ibv_cq *cq)
{
    struct ibv_wc wc = both_wait(cq);

    NEED(wc.status == IBV_WC_SUCCESS);
    return wc;
}

void both_recv(struct ibv_qp *qp, void *to, uint32_t len, uint32_t lkey)
{
    struct ibv_sge sge = {(uintptr_t)to, len, lkey};
    struct ibv_recv_wr wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1}, *bad;

    NEED(!ibv_post_recv(qp, &wr, &bad));
}

void both_send(struct ibv_qp *qp, void *from, uint32_t len, uint32_t lkey)
{
    struct ibv_sge sge = {(uintptr_t)from, len, lkey};
    struct ibv_send_wr wr = {.wr_id = 1,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;

    NEED(!ibv_post_send(qp, &wr, &bad));
}

void both_write(struct ibv_qp *qp, const void *from, uint32_t len, uint32_t lkey, uint64_t to,
                uint32_t rkey)
{
    struct ibv_sge sge = {(uintptr_t)from, len, lkey};
    struct ibv_send_wr wr = {.wr_id = 3,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {to, rkey}},
                       *bad;

    NEED(!ibv_post_send(qp, &wr, &bad));
}

/* -- frames ------------------------------------------------------------------------------------ */

#define IP  14
#define UDP 34

void both_mac(struct ibv_context *ctx, uint8_t mac[6])
{
    union ibv_gid gid;

    NEED(!ibv_query_gid(ctx, PORT, 0, &gid)); /* of the link: fe80::, and the address in EUI-64 */
    memcpy(mac, gid.raw + 8, 3);
    memcpy(mac + 3, gid.raw + 13, 3);
    mac[0] ^= 2;
}

static void both_put16(uint8_t *at, uint16_t v)
{
    at[0] = (uint8_t)(v >> 8);
    at[1] = (uint8_t)v;
}

void both_frame(uint8_t *frame, const struct both *from, const struct both *to, uint16_t port)
{
    static const uint8_t addresses[8] = {10, 9, 0, 1, 10, 9, 0, 2};

    memset(frame, 0, UDP + 8);
    both_mac(to->ctx, frame);
    both_mac(from->ctx, frame + 6);
    both_put16(frame + 12, 0x0800);
    frame[IP] = 0x45;
    both_put16(frame + IP + 2, BOTH_FRAME - IP);
    frame[IP + 8] = 64;
    frame[IP + 9] = 17;
    memcpy(frame + IP + 12, addresses, sizeof(addresses));
    both_put16(frame + UDP, 5000);
    both_put16(frame + UDP + 2, port);
    both_put16(frame + UDP + 4, BOTH_FRAME - UDP);
    for (unsigned i = UDP + 8; i < BOTH_FRAME; i++) {
        frame[i] = (uint8_t)i;
    }
}

static uint32_t both_sum(uint32_t sum, const uint8_t *at, unsigned len)
{
    for (unsigned i = 0; i < len; i += 2) {
        sum += (uint32_t)(at[i] << 8) + at[i + 1];
    }
    return sum;
}

static uint16_t both_fold(uint32_t sum)
{
    while (sum >> 16) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return (uint16_t)~sum;
}

uint16_t both_ip_sum(const uint8_t *frame)
{
    return both_fold(both_sum(0, frame + IP, 20));
}

uint16_t both_udp_sum(const uint8_t *frame)
{
    uint32_t pseudo = both_sum(17 + BOTH_FRAME - UDP, frame + IP + 12, 8);

    return both_fold(both_sum(pseudo, frame + UDP, BOTH_FRAME - UDP));
}

void both_send_tagged(const struct both *from, const struct both *to)
{
    struct ibv_qp_init_attr attr = {.send_cq = from->cq,
                                    .recv_cq = from->cq,
                                    .cap = {.max_send_wr = 1, .max_send_sge = 1},
                                    .qp_type = IBV_QPT_RAW_PACKET};
    struct ibv_qp *qp = ibv_create_qp(from->pd, &attr);

    NEED(qp);
    both_start_raw(qp);
    both_frame(from->buf + 4, from, to, 6000);
    memmove(from->buf, from->buf + 4, 12);
    both_put16(from->buf + 12, 0x8100);
    both_put16(from->buf + 14, 5);
    both_send(qp, from->buf, BOTH_FRAME + 4, from->mr->lkey);
    both_done(from->cq);
}

void both_tcp_headers(uint8_t *headers, const struct both *from, const struct both *to)
{
    uint8_t frame[BOTH_FRAME];

    both_frame(frame, from, to, 0);
    frame[IP + 9] = 6;
    memset(frame + UDP, 0, 20);
    frame[UDP + 12] = 5 << 4;
    memcpy(headers, frame, UDP + 20);
}

void both_print_segment(uint32_t len, const uint8_t *segment, const uint8_t *payload)
{
    printf("segment of %u bytes at %u, IP sum %04x, payload %s\n", len,
           (unsigned)(segment[UDP + 6] << 8 | segment[UDP + 7]), both_ip_sum(segment),
           memcmp(segment + UDP + 20, payload, len - UDP - 20) ? "wrong" : "right");
}
