/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For verbs_probe.c: attributes and paths of the kernel's ABI, which librdmacm converts through the
 * library. Each function checks that the converted structure has the source's values.
 */
#include <errno.h>
#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>
#include "tests/programs/verbs_copies.h"

/* The header of these functions is not installed everywhere. */
void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, struct ib_uverbs_ah_attr *src);
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ib_uverbs_qp_attr *src);
void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst, struct ib_user_path_rec *src);
void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst, struct ibv_sa_path_rec *src);

int copies_ah(void)
{
    struct ib_uverbs_ah_attr from = {.grh = {.dgid = {1}, .hop_limit = 2}, .port_num = 3};
    struct ibv_ah_attr to;

    ibv_copy_ah_attr_from_kern(&to, &from);
    return to.grh.dgid.raw[0] == 1 && to.grh.hop_limit == 2 && to.port_num == 3 ? 0 : EINVAL;
}

int copies_qp(void)
{
    struct ib_uverbs_qp_attr from = {.dest_qp_num = 1, .rq_psn = 2, .ah_attr.sl = 3};
    struct ibv_qp_attr to;

    ibv_copy_qp_attr_from_kern(&to, &from);
    return to.dest_qp_num == 1 && to.rq_psn == 2 && to.ah_attr.sl == 3 ? 0 : EINVAL;
}

int copies_path(void)
{
    struct ib_user_path_rec from = {.sgid = {1}, .dlid = 2, .mtu = 3}, back = {0};
    struct ibv_sa_path_rec to;

    ibv_copy_path_rec_from_kern(&to, &from);
    ibv_copy_path_rec_to_kern(&back, &to);
    return to.sgid.raw[0] == 1 && to.dlid == 2 && !memcmp(&back, &from, sizeof(from)) ? 0 : EINVAL;
}
