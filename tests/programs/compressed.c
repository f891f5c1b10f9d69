/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * compressed: measures how many bytes of CQEs a completion costs, with compression and without, and
 * compares each completion with what was posted.
 *
 *     compressed [-d DEVICE] [-g GID]
 *
 * Two connected QPs of one process exchange messages, with a window of messages outstanding. The
 * program reads the rings of its CQs itself (cqe_decoder.h), because ibv_poll_cq() does not
 * decompress. Exit status 0: all completions were right. 77: the device does not compress CQEs.
 */
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "tests/programs/cqe_decoder.h"
#include "tests/programs/endpoint.h"
#include "tests/programs/other_side.h"

#define NONE     77
#define MESSAGES 8000u /* the library counts what its own polls took: queues have room for all */
#define WINDOW   256u  /* of messages; the rings have twice as many CQEs */
#define MOST     512u  /* bytes of a message */

/* A CQ whose ring the program reads. */
struct ring {
    struct ibv_cq *cq;
    struct cqe_decoder d;
    volatile uint32_t *dbrec;
    uint32_t taken;
};

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static uint8_t memory[2 * MOST];

static void ring_open(struct ring *ring, unsigned format, unsigned cqe_size)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = 2 * WINDOW - 1, .wc_flags = IBV_WC_STANDARD_FLAGS};
    struct mlx5dv_cq_init_attr dv_attr = {
        .comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE |
                     (format ? MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE : 0),
        .cqe_comp_res_format = (uint8_t)format,
        .cqe_size = (uint16_t)cqe_size,
    };
    struct mlx5dv_cq dv = {0};
    struct mlx5dv_obj obj = {.cq = {NULL, &dv}};
    struct ibv_cq_ex *made = mlx5dv_create_cq(ctx, &attr, &dv_attr);

    need(made, "mlx5dv_create_cq()");
    memset(ring, 0, sizeof(*ring));
    ring->cq = obj.cq.in = ibv_cq_ex_to_cq(made);
    need(!mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ), "mlx5dv_init_obj()");
    ring->d = (struct cqe_decoder){
        .ring = dv.buf,
        .log_size = (unsigned)__builtin_ctz(dv.cqe_cnt),
        .stride = dv.cqe_size,
        .format = format == MLX5DV_CQE_RES_FORMAT_CSUM          ? DEC_FORMAT_CSUM
                  : format == MLX5DV_CQE_RES_FORMAT_CSUM_STRIDX ? DEC_FORMAT_CSUM_STRIDX
                                                                : DEC_FORMAT_HASH,
    };
    ring->dbrec = (void *)dv.dbrec;
}

/* Takes the next completion, or returns NULL. */
static const uint8_t *ring_next(struct ring *ring)
{
    const uint8_t *cqe = cqe_decoder_next(&ring->d, NULL);

    need(!ring->d.fault, ring->d.fault ? ring->d.fault : "");
    if (cqe) {
        *ring->dbrec = htobe32(ring->d.ci & 0xffffff);
        ring->taken++;
    }
    return cqe;
}

static struct ibv_qp *qp_open(struct ring *ring)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = ring->cq,
        .recv_cq = ring->cq,
        .cap = {MESSAGES, MESSAGES, 1, 1, 0},
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
    };
    struct ibv_qp *qp = ibv_create_qp(pd, &attr);

    need(qp, "ibv_create_qp()");
    endpoint_init_rc(qp, IBV_ACCESS_LOCAL_WRITE);
    return qp;
}

/* Longer than what fits into a CQE. */
static uint32_t length_of(uint32_t n)
{
    return 100 + n * 7 % (MOST - 100);
}

static void post_receive(struct ibv_qp *qp)
{
    struct ibv_sge sge = {(uintptr_t)memory + MOST, MOST, mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

    need(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv()");
}

/* Posts n messages with one doorbell, so that the device has them all at once. */
static void post_sends(struct ibv_qp *qp, uint32_t first, uint32_t n)
{
    struct ibv_send_wr wrs[WINDOW / 2] = {0}, *bad;
    struct ibv_sge sges[WINDOW / 2];

    for (uint32_t i = 0; i < n; i++) {
        sges[i] = (struct ibv_sge){(uintptr_t)memory, length_of(first + i), mr->lkey};
        wrs[i] = (struct ibv_send_wr){.next = i + 1 < n ? &wrs[i + 1] : NULL,
                                      .sg_list = &sges[i],
                                      .num_sge = 1,
                                      .opcode = IBV_WR_SEND};
    }
    need(!ibv_post_send(qp, wrs, &bad), "ibv_post_send()");
}

/* Sends all messages; the program polls until each has its two completions. */
static void exchange(struct ring *sends, struct ring *receives, struct ibv_qp *a, struct ibv_qp *b)
{
    uint32_t sent = 0;
    time_t end = time(NULL) + OTHER_SIDE_PATIENCE;

    for (uint32_t i = 0; i < WINDOW; i++) {
        post_receive(b);
    }
    while (receives->taken < MESSAGES || sends->taken < MESSAGES) {
        const uint8_t *cqe;

        need(time(NULL) < end, "all completions in time");
        if (sent < MESSAGES && sent - receives->taken <= WINDOW / 2 &&
            sent - sends->taken <= WINDOW / 2) {
            uint32_t n = MESSAGES - sent < WINDOW / 2 ? MESSAGES - sent : WINDOW / 2;

            post_sends(a, sent, n);
            sent += n;
        }
        while ((cqe = ring_next(receives))) {
            uint32_t n = receives->taken - 1;

            need(cqe[DEC_OP_OWN] >> 4 == 2, "a receive");
            need(dec_16(cqe + DEC_COUNTER) == (uint16_t)n, "the receives in order");
            need(dec_32(cqe + DEC_BYTE_CNT) == length_of(n), "the length of a receive");
            if (n + WINDOW < MESSAGES) {
                post_receive(b);
            }
        }
        while ((cqe = ring_next(sends))) {
            need(cqe[DEC_OP_OWN] >> 4 == DEC_REQ && cqe[DEC_SEND_OPCODE] == 0x0a, "a send");
            need((dec_32(cqe + DEC_SEND_OPCODE) & 0xffffff) == a->qp_num, "the number of the QP");
        }
    }
}

static void measure(const struct endpoint_options *options, const char *name, unsigned format,
                    unsigned cqe_size)
{
    struct ibv_ah_attr to =
        endpoint_towards(endpoint_gid(ctx, options->gid_index), options->gid_index);
    struct ring sends, receives;
    struct ibv_qp *a, *b;

    ring_open(&sends, format, cqe_size);
    ring_open(&receives, format, cqe_size);
    a = qp_open(&sends);
    b = qp_open(&receives);
    endpoint_connect_rc(a, to, b->qp_num, 14);
    endpoint_connect_rc(b, to, a->qp_num, 14);
    exchange(&sends, &receives, a, b);
    need(format || !receives.d.sessions, "no compression unless the program asks for it");
    printf("%-16s CQEs of %3u bytes: %4.1f bytes of CQEs for a receive, %4.1f for a send\n", name,
           cqe_size, 64.0 * (double)receives.d.slots_written / MESSAGES,
           64.0 * (double)sends.d.slots_written / MESSAGES);
    need(!ibv_destroy_qp(a) && !ibv_destroy_qp(b), "ibv_destroy_qp()");
    need(!ibv_destroy_cq(sends.cq) && !ibv_destroy_cq(receives.cq), "ibv_destroy_cq()");
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        unsigned format;
    } formats[] = {{"uncompressed", 0},
                   {"hash", MLX5DV_CQE_RES_FORMAT_HASH},
                   {"checksum", MLX5DV_CQE_RES_FORMAT_CSUM},
                   {"checksum, stride", MLX5DV_CQE_RES_FORMAT_CSUM_STRIDX}};
    struct mlx5dv_context caps = {.comp_mask = MLX5DV_CONTEXT_MASK_CQE_COMPRESION};
    struct endpoint_options options = {.gid_index = 1};

    endpoint_options(argc, argv, &options);
    ctx = endpoint_open(options.device, ibv_open_device);
    need(!mlx5dv_query_device(ctx, &caps), "mlx5dv_query_device()");
    if (!caps.cqe_comp_caps.max_num) {
        printf("skipped: the device does not compress CQEs\n");
        return NONE;
    }
    need((pd = ibv_alloc_pd(ctx)), "ibv_alloc_pd()");
    need((mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE)), "ibv_reg_mr()");
    for (unsigned cqe_size = 64; cqe_size <= 128; cqe_size *= 2) {
        for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
            if (cqe_size == 64 || caps.flags & MLX5DV_CONTEXT_FLAGS_CQE_128B_COMP) {
                measure(&options, formats[i].name, formats[i].format, cqe_size);
            }
        }
    }
    need(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd) && !ibv_close_device(ctx), "the end");
    return 0;
}
