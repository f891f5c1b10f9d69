/* SPDX-License-Identifier: BSD-2-Clause */
/* WQEs of masked atomics, as docs/adr/0011-extended-atomics-on-the-wire.md describes them. */
#include "tests/programs/masked_wqe.h"
#include <endian.h>
#include <infiniband/mlx5dv.h>
#include <string.h>
#include "tests/programs/other_side.h"

#define OPMOD_EXT   8u   /* opmod of such a WQE: this, plus log2 of the size minus 2 */
#define CAP_EXT     0xcu /* masked compare and swap, masked fetch and add */
#define CAP_SIZES   0xcu /* 4 and 8 bytes */
#define QUERY_CAPS  0x100u
#define CAPS_ATOMIC 3u

static void masked_put_be32(uint8_t *at, uint32_t v)
{
    v = htobe32(v);
    memcpy(at, &v, 4);
}

static void masked_put_word(uint8_t *at, uint64_t v, unsigned size)
{
    uint64_t be = size == 8 ? htobe64(v) : htobe32((uint32_t)v);

    memcpy(at, &be, size);
}

struct ibv_context *masked_open(struct ibv_device *device)
{
    struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};

    return mlx5dv_open_device(device, &attr);
}

bool masked_device_has_them(struct ibv_context *ctx)
{
    uint8_t in[16] = {0}, out[16 + 4096] = {0};

    masked_put_be32(in, QUERY_CAPS << 16);
    masked_put_be32(in + 4, CAPS_ATOMIC << 1 | 1);
    return !mlx5dv_devx_general_cmd(ctx, in, sizeof(in), out, sizeof(out)) &&
           (out[16 + 0x13] & CAP_EXT) == CAP_EXT && (out[16 + 0x17] & CAP_SIZES) == CAP_SIZES;
}

struct ibv_qp *masked_make_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_RC,
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = 16, .max_send_sge = 4, .max_inline_data = 64},
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = pd,
        .send_ops_flags = IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
                          IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP,
    };
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
                                     .send_ops_flags = MLX5DV_QP_EX_WITH_RAW_WQE};
    struct ibv_qp *qp = mlx5dv_create_qp(pd->context, &attr, &dv);

    need(qp, "mlx5dv_create_qp()");
    return qp;
}

void masked_post(struct ibv_qp *qp, const struct masked_wqe *w)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
    unsigned num = w->opcode == MASKED_SWAP ? 4 : 2;
    size_t operand_bytes = (num * w->size + 15) / 16 * 16, len = 32 + operand_bytes + 16;
    uint64_t remote = htobe64(w->remote), local = htobe64((uintptr_t)w->local);
    uint8_t wqe[96] = {0};

    masked_put_be32(wqe, (OPMOD_EXT | (w->size == 8 ? 1u : 0u)) << 24 | w->opcode);
    masked_put_be32(wqe + 4, qp->qp_num << 8 | (uint32_t)(len / 16));
    wqe[11] = MLX5_WQE_CTRL_CQ_UPDATE;
    memcpy(wqe + 16, &remote, 8);
    masked_put_be32(wqe + 24, w->rkey);
    for (unsigned i = 0; i < num; i++) {
        masked_put_word(wqe + 32 + i * w->size, w->operands[i], w->size);
    }
    masked_put_be32(wqe + 32 + operand_bytes, w->size);
    masked_put_be32(wqe + 36 + operand_bytes, w->lkey);
    memcpy(wqe + 40 + operand_bytes, &local, 8);
    ibv_wr_start(ex);
    ex->wr_id = w->wr_id;
    ex->wr_flags = IBV_SEND_SIGNALED;
    mlx5dv_wr_raw_wqe(mlx5dv_qp_ex_from_ibv_qp_ex(ex), wqe);
    need(!ibv_wr_complete(ex), "ibv_wr_complete()");
}

uint64_t masked_reply(const struct masked_wqe *w)
{
    uint64_t whole;
    uint32_t word;

    if (w->size == 8) {
        memcpy(&whole, w->local, 8);
        return whole;
    }
    memcpy(&word, w->local, 4);
    return be32toh(word);
}
