/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements both.h. */
#define _GNU_SOURCE
#include "tests/programs/migration/both.h"
#include <arpa/inet.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define GID_INDEX 1 /* RoCE v2 over IPv4 */
#define PORT      1

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
    time_t end = time(NULL) + BOTH_SECONDS;
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

/* -- messages with one doorbell ---------------------------------------------------------------- */

uint32_t both_length(unsigned i)
{
    return 100 + i * 7; /* more than a CQE has room for */
}

void both_messages(const struct both *b, struct ibv_cq *recvs)
{
    struct ibv_qp *from = both_rc(b, b->cq), *to = both_rc(b, recvs);
    struct ibv_send_wr wr[BOTH_MESSAGES] = {0}, *bad;
    struct ibv_sge sge[BOTH_MESSAGES];

    both_connect(from, to);
    for (unsigned i = 0; i < BOTH_MESSAGES; i++) {
        both_recv(to, both_to(b), both_length(i), b->mr->lkey);
        sge[i] = (struct ibv_sge){(uintptr_t)both_from(b), both_length(i), b->mr->lkey};
        wr[i] = (struct ibv_send_wr){.next = i + 1 < BOTH_MESSAGES ? &wr[i + 1] : NULL,
                                     .sg_list = &sge[i],
                                     .num_sge = 1,
                                     .opcode = IBV_WR_SEND,
                                     .send_flags = i + 1 < BOTH_MESSAGES ? 0 : IBV_SEND_SIGNALED};
    }
    NEED(!ibv_post_send(from, wr, &bad));
    both_done(b->cq);
}

/* -- events ------------------------------------------------------------------------------------ */

struct both_moderated both_moderated(const struct both *b)
{
    struct both_moderated m = {.channel = ibv_create_comp_channel(b->ctx)};

    NEED(m.channel);
    NEED(m.cq = ibv_create_cq(b->ctx, 64, NULL, m.channel, 0));
    m.qp = both_rc(b, m.cq);
    both_loop(m.qp);
    return m;
}

static int64_t both_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Asks for an event, posts WRITEs, and waits for the event and for their completions. */
static void both_event(const struct both *b, const struct both_moderated *m, unsigned writes)
{
    struct ibv_cq *of;
    void *context;

    NEED(!ibv_req_notify_cq(m->cq, 0));
    for (unsigned i = 0; i < writes; i++) {
        both_write(m->qp, both_from(b), 8, b->mr->lkey, (uintptr_t)both_to(b), b->mr->rkey);
    }
    NEED(!ibv_get_cq_event(m->channel, &of, &context) && of == m->cq);
    ibv_ack_cq_events(of, 1);
    for (unsigned i = 0; i < writes; i++) {
        both_done(m->cq);
    }
}

/* The shortest time that an event and then one after this many WRITEs took. The period may begin
 * with the event before, so the first event is at once and the second has to wait. */
static int64_t both_two_events(const struct both *b, const struct both_moderated *m,
                               unsigned writes)
{
    int64_t least = INT64_MAX;

    for (unsigned i = 0; i < 20; i++) {
        int64_t begin, took;

        usleep(2 * BOTH_PERIOD);
        begin = both_us();
        both_event(b, m, 1);
        both_event(b, m, writes);
        took = both_us() - begin;
        least = took < least ? took : least;
    }
    return least;
}

void both_print_events(const struct both *b, const struct both_moderated *m)
{
    printf("events of 1 completion each: the second %s\n",
           both_two_events(b, m, 1) < BOTH_PERIOD / 2 ? "at once" : "waits for the period");
    printf("the second of %d completions: %s\n", BOTH_COUNT,
           both_two_events(b, m, BOTH_COUNT) < BOTH_PERIOD / 2 ? "at once"
                                                               : "waits for the period");
}

/* -- pages ------------------------------------------------------------------------------------- */

#define PAGE 4096

uint8_t *both_fresh_pages(void)
{
    void *at = mmap(NULL, BOTH_HALF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    NEED(at != MAP_FAILED);
    return at;
}

unsigned both_present(uint8_t *fresh)
{
    unsigned char present[2];

    NEED(!mincore(fresh, sizeof(present) * PAGE, present));
    return (present[0] & 1u) + (present[1] & 1u);
}

void both_wait_for_pages(uint8_t *fresh)
{
    time_t end = time(NULL) + BOTH_SECONDS;

    while (both_present(fresh) < 2) {
        NEED(time(NULL) < end);
    }
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
