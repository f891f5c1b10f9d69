/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Capabilities of on-demand paging: which operations of which transport may miss a page.
 *
 * There are two schemes (model/rdma/paging.h). In the transport scheme, drivers expect the
 * operations of the first firmware to be on, and switch the others on (driver:
 * handle_hca_cap_odp()). In the memory scheme all are on, and a driver switches only the scheme on.
 * UC may not miss pages: no driver has a capability for it. A UD QP may miss pages when it sends
 * and when it receives from an SRQ.
 */
#include "fw/caps.h"

/* The memory scheme has its capabilities only on a generation that has the scheme. */
static uint64_t caps_memory_scheme(const struct fw *fw)
{
    return caps_most(fw, PRM_HCA_CAP_TYPE_ODP, PRM_odp_cap_mem_page_fault_FIELD) != 0;
}

#define ODP_NAMED(scheme, service, operation)                                                      \
    .field = CAP_ODP_FIELD(scheme, service, operation), .name = #service "." #operation

/* transport scheme: always on */
#define ODP_ON(service, operation)                                                                 \
    {                                                                                              \
        ODP_NAMED(transport, service, operation), .value = 1                                       \
    }
/* transport scheme: off until a driver switches it on */
#define ODP_SET(service, index, operation)                                                         \
    {                                                                                              \
        ODP_NAMED(transport, service, operation), .value = 1,                                      \
                                                  CAP_SET(odp[PAGING_##index].operation)           \
    }
#define ODP_MEMORY(service, operation)                                                             \
    {                                                                                              \
        ODP_NAMED(memory, service, operation), .of = caps_memory_scheme                            \
    }

#define ODP_ALL_SET(service, index)                                                                \
    ODP_SET(service, index, send), ODP_SET(service, index, receive),                               \
        ODP_SET(service, index, write), ODP_SET(service, index, read),                             \
        ODP_SET(service, index, atomic), ODP_SET(service, index, srq_receive)
#define ODP_ALL_MEMORY(service)                                                                    \
    ODP_MEMORY(service, send), ODP_MEMORY(service, receive), ODP_MEMORY(service, write),           \
        ODP_MEMORY(service, read), ODP_MEMORY(service, atomic), ODP_MEMORY(service, srq_receive)

const struct cap caps_odp[] = {
    ODP_ON(rc, send),
    ODP_ON(rc, receive),
    ODP_ON(rc, write),
    ODP_ON(rc, read),
    ODP_ON(rc, atomic),
    ODP_SET(rc, RC, srq_receive),
    ODP_ON(ud, send),
    ODP_SET(ud, UD, srq_receive),
    ODP_ALL_SET(xrc, XRC),
    ODP_ALL_SET(dc, DC),

    ODP_ALL_MEMORY(rc),
    ODP_MEMORY(ud, send),
    ODP_MEMORY(ud, srq_receive),
    ODP_ALL_MEMORY(xrc),
    ODP_ALL_MEMORY(dc),
    /* a driver uses the memory scheme only if pages can be brought in ahead */
    {.field = PRM_odp_scheme_cap_page_prefetch_FIELD +
              (PRM_OFFSET(odp_cap, memory_page_fault_scheme_cap) << 11),
     .name = "memory.page_prefetch",
     .of = caps_memory_scheme},
    {CAP_NAMED(odp_cap, mem_page_fault), .value = 1, CAP_SET(mem_page_fault)},
    {0},
};
