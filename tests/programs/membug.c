/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * membug: a program with a bug that memory checkers must find.
 *
 *     membug [freed | lost]
 *
 * It sends one message over UC to itself (GID 1 of its first device), with no receive posted, waits
 * for the completion and frees the buffer. With "freed" the buffer is freed before the SEND is
 * posted. With "lost" the buffer, and some more memory, is never freed. Exit status 0: the SEND has
 * completed successfully, as it does on hardware in all cases.
 */
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES 4096
#define GID   1

static void need(bool condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "membug: %s failed\n", what);
        exit(1);
    }
}

static struct ibv_qp *connected_to_itself(struct ibv_pd *pd, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_UC,
    };
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);

    need(qp != NULL, "ibv_create_qp");
    need(ibv_modify_qp(qp, &attr,
                       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
         "ibv_modify_qp to INIT");
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = qp->qp_num;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.grh.sgid_index = GID;
    attr.ah_attr.grh.hop_limit = 1;
    need(ibv_query_gid(pd->context, 1, GID, &attr.ah_attr.grh.dgid) == 0, "ibv_query_gid");
    need(ibv_modify_qp(qp, &attr,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                           IBV_QP_RQ_PSN) == 0,
         "ibv_modify_qp to RTR");
    attr.qp_state = IBV_QPS_RTS;
    need(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0, "ibv_modify_qp to RTS");
    return qp;
}

/* Loses several blocks, because a stale copy of a pointer may be found somewhere. */
static void lose_memory(void)
{
    for (int i = 0; i < 10; i++) {
        char *volatile lost = malloc(BYTES);

        need(lost != NULL, "malloc");
        lost[0] = 'x';
        lost = NULL;
    }
}

int main(int argc, char **argv)
{
    bool freed = argc > 1 && strcmp(argv[1], "freed") == 0;
    bool lost = argc > 1 && strcmp(argv[1], "lost") == 0;
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
    struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
    struct ibv_cq *cq = pd ? ibv_create_cq(ctx, 1, NULL, NULL, 0) : NULL;
    char *buf = malloc(BYTES);
    struct ibv_mr *mr = cq && buf ? ibv_reg_mr(pd, memset(buf, 'x', BYTES), BYTES, 0) : NULL;
    struct ibv_sge sge = {.addr = (uintptr_t)buf, .length = BYTES};
    struct ibv_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    struct ibv_qp *qp;
    struct ibv_wc wc;

    need(mr != NULL, "opening the device and registering memory");
    qp = connected_to_itself(pd, cq);
    sge.lkey = mr->lkey;
    if (freed) {
        free(buf);
    }
    need(ibv_post_send(qp, &wr, &bad) == 0, "ibv_post_send");
    while (ibv_poll_cq(cq, 1, &wc) == 0) {
    }
    if (lost) {
        lose_memory();
    } else if (!freed) {
        free(buf);
    }
    need(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
    need(ibv_destroy_qp(qp) == 0 && ibv_dereg_mr(mr) == 0 && ibv_destroy_cq(cq) == 0 &&
             ibv_dealloc_pd(pd) == 0 && ibv_close_device(ctx) == 0,
         "closing");
    ibv_free_device_list(list);
    return 0;
}
