/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CQE compression, new: MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE of mlx5dv_create_cq(). The program
 * reads the ring itself, because ibv_poll_cq() does not decompress.
 */
#include <infiniband/mlx5dv.h>
#include "tests/programs/cqe_decoder.h"
#include "tests/programs/migration/both.h"
#include <time.h>

static const uint8_t *next(struct cqe_decoder *decoder)
{
    time_t end = time(NULL) + BOTH_SECONDS;
    const uint8_t *cqe;

    while (!(cqe = cqe_decoder_next(decoder, NULL))) {
        NEED(!decoder->fault && time(NULL) < end);
    }
    return cqe;
}

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_cq_init_attr_ex attr = {.cqe = 2 * BOTH_MESSAGES - 1,
                                       .wc_flags = IBV_WC_STANDARD_FLAGS};
    struct mlx5dv_cq_init_attr dv = {.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE,
                                     .cqe_comp_res_format = MLX5DV_CQE_RES_FORMAT_HASH};
    struct ibv_cq_ex *cq = mlx5dv_create_cq(b.ctx, &attr, &dv);
    struct mlx5dv_cq ring = {0};
    struct mlx5dv_obj obj = {.cq = {.out = &ring}};
    struct cqe_decoder decoder = {.format = DEC_FORMAT_HASH};
    unsigned right = 0;

    NEED(cq);
    obj.cq.in = ibv_cq_ex_to_cq(cq);
    NEED(!mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ));
    decoder.ring = ring.buf;
    decoder.log_size = (unsigned)__builtin_ctz(ring.cqe_cnt);
    decoder.stride = ring.cqe_size;
    both_messages(&b, obj.cq.in);
    for (unsigned i = 0; i < BOTH_MESSAGES; i++) {
        right += dec_32(next(&decoder) + DEC_BYTE_CNT) == both_length(i);
    }
    NEED(decoder.minis); /* the device did compress */
    printf("%d messages, the lengths of %u right\n", BOTH_MESSAGES, right);
    return 0;
}
