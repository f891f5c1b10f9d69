/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reserved: tests reserved QP numbers together with ordinary QPs, over libibverbs and libmlx5.
 *
 *     reserved [-d DEVICE]
 *
 * A reserved number belongs to no QP and is not reserved again meanwhile; it can be released once.
 * Exit status 0: this holds. 77: the device has no reserved numbers.
 */
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>
#include "tests/programs/endpoint.h"
#include "tests/programs/other_side.h"

#define NONE    77
#define NUMBERS 300
#define QPS     300

static uint32_t reserved[NUMBERS];
static struct ibv_qp *qps[QPS];

static bool is_reserved(uint32_t qpn, unsigned of)
{
    for (unsigned i = 0; i < of; i++) {
        if (reserved[i] == qpn) {
            return true;
        }
    }
    return false;
}

static struct ibv_context *reserved_open(struct ibv_device *device)
{
    struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};

    return mlx5dv_open_device(device, &attr);
}

int main(int argc, char **argv)
{
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
    struct endpoint_options options = {0};
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    int err;

    endpoint_options(argc, argv, &options);
    ctx = endpoint_open(options.device, reserved_open);
    for (unsigned i = 0; i < NUMBERS; i++) {
        err = mlx5dv_reserved_qpn_alloc(ctx, &reserved[i]);
        if (err == EOPNOTSUPP && i == 0) {
            printf("skipped: no numbers of QPs can be reserved\n");
            return NONE;
        }
        need(!err, "mlx5dv_reserved_qpn_alloc()");
        need(!is_reserved(reserved[i], i), "reserving each number once");
    }
    need((pd = ibv_alloc_pd(ctx)), "ibv_alloc_pd()");
    need((attr.send_cq = attr.recv_cq = ibv_create_cq(ctx, 16, NULL, NULL, 0)), "ibv_create_cq()");
    for (unsigned i = 0; i < QPS; i++) {
        need((qps[i] = ibv_create_qp(pd, &attr)), "ibv_create_qp()");
        need(!is_reserved(qps[i]->qp_num, NUMBERS), "giving no QP a reserved number");
    }
    for (unsigned i = 0; i < NUMBERS; i++) {
        need(!mlx5dv_reserved_qpn_dealloc(ctx, reserved[i]), "mlx5dv_reserved_qpn_dealloc()");
    }
    need(mlx5dv_reserved_qpn_dealloc(ctx, reserved[NUMBERS - 1]) == EINVAL,
         "refusing a number that is back");
    need(mlx5dv_reserved_qpn_dealloc(ctx, qps[0]->qp_num) == EINVAL, "refusing a QP's number");
    for (unsigned i = 0; i < QPS; i++) {
        need(!ibv_destroy_qp(qps[i]), "ibv_destroy_qp()");
    }
    need(!ibv_destroy_cq(attr.send_cq) && !ibv_dealloc_pd(pd) && !ibv_close_device(ctx), "the end");
    printf("%d numbers, %d QPs\n", NUMBERS, QPS);
    return 0;
}
