/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes, resets and frees the state that QPs share. */
#include "model/core/hca.h"
#include "model/rdma/rdma.h"
#include "model/rdma/responder_internal.h"

void rdma_init(struct hca *hca)
{
    g_assert(1u << hca->limits.log_max_ra_res_qp <= RESPONDER_RESOURCES);
    hca->rdma = g_new0(struct rdma, 1);
    hca->rdma->flights.all = g_ptr_array_new();
    dc_pool_init(hca);
    notices_init(hca);
    paging_init(hca);
}

void rdma_reset(struct hca *hca)
{
    paging_reset(hca);
    dc_pool_reset(hca);
    notices_reset(hca);
    flight_pool_empty(hca);
    early_pool_empty(hca);
}

void rdma_clear(struct hca *hca)
{
    dc_pool_clear(hca);
    flight_pool_empty(hca);
    early_pool_empty(hca);
    g_ptr_array_free(hca->rdma->flights.all, TRUE);
    g_clear_pointer(&hca->rdma, g_free);
}
