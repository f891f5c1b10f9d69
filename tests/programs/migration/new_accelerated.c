/* SPDX-License-Identifier: BSD-2-Clause */
/* Accelerated verbs, new: the program writes the ring of mlx5dv_init_obj() itself. */
#include <endian.h>
#include <infiniband/mlx5dv.h>
#include "tests/programs/migration/both.h"

static void post(struct mlx5dv_qp *ring, uint32_t qpn, uint16_t at, const void *from, uint32_t lkey)
{
    uint8_t *wqe = (uint8_t *)ring->sq.buf + (at % ring->sq.wqe_cnt) * ring->sq.stride;

    mlx5dv_set_ctrl_seg((void *)wqe, at, MLX5_OPCODE_SEND, 0, qpn, MLX5_WQE_CTRL_CQ_UPDATE, 2, 0,
                        0);
    mlx5dv_set_data_seg((void *)(wqe + 16), 100, lkey, (uintptr_t)from);
}

static void ring_doorbell(struct mlx5dv_qp *ring, uint16_t posted, const void *last)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    ring->dbrec[MLX5_SND_DBR] = htobe32(posted);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    *(volatile uint64_t *)ring->bf.reg = *(const uint64_t *)last;
}

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_cq *recvs = ibv_create_cq(b.ctx, 16, NULL, NULL, 0);
    struct ibv_qp *one = both_rc(&b, b.cq), *other = both_rc(&b, recvs);
    struct mlx5dv_qp ring = {0};
    struct mlx5dv_cq completions = {0};
    struct mlx5dv_obj obj = {.qp = {one, &ring}, .cq = {b.cq, &completions}};
    unsigned done;

    both_connect(one, other);
    for (unsigned i = 0; i < 3; i++) {
        both_recv(other, both_to(&b) + i * 100, 100, b.mr->lkey);
    }
    NEED(!mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ));
    for (uint16_t i = 0; i < 3; i++) {
        post(&ring, one->qp_num, i, both_from(&b) + i * 100, b.mr->lkey);
    }
    ring_doorbell(&ring, 3, (uint8_t *)ring.sq.buf + 2 * ring.sq.stride);
    for (done = 0; done < 3; done++) {
        volatile struct mlx5_cqe64 *cqe =
            (void *)((uint8_t *)completions.buf + (done + 1) * completions.cqe_size - 64);

        while (cqe->op_own >> 4 == MLX5_CQE_INVALID || cqe->op_own & MLX5_CQE_OWNER_MASK) {
        }
        NEED(cqe->op_own >> 4 == MLX5_CQE_REQ);
    }
    *completions.dbrec = htobe32(done);
    for (unsigned i = 0; i < 3; i++) {
        both_done(recvs);
    }
    printf("3 messages, %u completions, data %s\n", done, both_same(&b, 300) ? "right" : "wrong");
    return 0;
}
