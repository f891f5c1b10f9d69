/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * datagrams [N]: sends N datagrams (1000) from the first device of this process to the second one,
 * and prints how many of them arrived: "951 of 1000 arrived". A datagram that arrives twice counts
 * twice. Fails if one arrives with wrong data.
 *
 * Written to libibverbs alone. Other programs lose frames on the way, and compare the numbers.
 */
#include "tests/programs/pair.h"
#include <string.h>
#include <unistd.h>

#define QUIET 1.0 /* seconds without a datagram, after which none comes any more */

static uint8_t data[MSG];
static uint8_t (*place)[GRH + MSG]; /* for each datagram, and for a duplicate of each */
static struct ibv_mr *mr[2];

static struct ibv_qp *make_qp(int end, struct ibv_cq *cq, unsigned recvs)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = 1, .max_recv_wr = recvs, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_UD,
        .sq_sig_all = 1};
    struct ibv_qp *qp = ibv_create_qp(pd[end], &attr);

    must(qp, "errno %d", errno);
    datagrams_to_rts(qp);
    return qp;
}

static void post_one_recv(struct ibv_qp *qp, unsigned i)
{
    struct ibv_sge sge = {(uintptr_t)place[i], GRH + MSG, mr[1]->lkey};
    struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

    must_be_0(ibv_post_recv(qp, &wr, &bad));
}

static struct ibv_ah *address_of_end_1(void)
{
    struct ibv_ah_attr to = {
        .is_global = 1, .port_num = 1, .grh = {.sgid_index = 1, .hop_limit = 1}};
    struct ibv_ah *ah;

    gid_of(1, &to.grh.dgid);
    ah = ibv_create_ah(pd[0], &to);
    must(ah, "errno %d", errno);
    return ah;
}

static void send_one(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t qpn)
{
    struct ibv_sge sge = {(uintptr_t)data, MSG, mr[0]->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .wr.ud = {.ah = ah, .remote_qpn = qpn, .remote_qkey = QKEY}};
    struct ibv_send_wr *bad;

    must_be_0(ibv_post_send(qp, &wr, &bad));
    success(qp->send_cq);
}

/* Takes what has arrived. */
static unsigned take(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    unsigned n = 0;

    while (ibv_poll_cq(cq, 1, &wc) > 0) {
        must(wc.status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
        must(wc.byte_len == GRH + MSG && !memcmp(place[wc.wr_id] + GRH, data, MSG), "wrong data");
        n++;
    }
    return n;
}

int main(int argc, char **argv)
{
    unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 1000, arrived = 0;
    struct ibv_cq *cq[2];
    struct ibv_qp *qp[2];
    struct ibv_ah *ah;

    use_two_devices();
    device_open();
    memset(data, 0x5a, MSG);
    place = calloc(2 * count, sizeof(*place));
    must(place, "errno %d", errno);
    mr[0] = ibv_reg_mr(pd[0], data, sizeof(data), 0);
    mr[1] = ibv_reg_mr(pd[1], place, 2 * count * sizeof(*place), IBV_ACCESS_LOCAL_WRITE);
    for (int end = 0; end < 2; end++) {
        must(mr[end], "errno %d", errno);
        cq[end] = ibv_create_cq(ctx[end], (int)(2 * count), NULL, NULL, 0);
        must(cq[end], "errno %d", errno);
        qp[end] = make_qp(end, cq[end], end ? 2 * count : 1);
    }
    for (unsigned i = 0; i < 2 * count; i++) {
        post_one_recv(qp[1], i);
    }
    ah = address_of_end_1();
    for (unsigned i = 0; i < count; i++) {
        send_one(qp[0], ah, qp[1]->qp_num);
    }
    for (double last = now(); now() < last + QUIET;) {
        unsigned n = take(cq[1]);

        last = n ? now() : last;
        arrived += n;
        usleep(1000);
    }
    printf("%u of %u arrived\n", arrived, count);
    must_be_0(ibv_destroy_ah(ah));
    for (int end = 0; end < 2; end++) {
        must_be_0(ibv_destroy_qp(qp[end]));
        must_be_0(ibv_destroy_cq(cq[end]));
        must_be_0(ibv_dereg_mr(mr[end]));
    }
    device_close();
    free(place);
    return 0;
}
