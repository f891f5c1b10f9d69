/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds the table of object classes from model/core/obj_classes.def. */
#include "model/core/obj_class.h"
#include "model/eth/eth.h"
#include "model/eth/tir.h"
#include "model/memory/memic.h"
#include "model/memory/mkey.h"
#include "model/memory/dek.h"
#include "model/memory/kek.h"
#include "model/memory/psv.h"
#include "model/memory/sw_icm.h"
#include "model/memory/umem.h"
#include "model/port/sched.h"
#include "model/queue/cq.h"
#include "model/queue/eq.h"
#include "model/queue/q_counter.h"
#include "model/queue/srq.h"
#include "model/queue/uar.h"
#include "model/rdma/dct.h"
#include "model/rdma/qp.h"
#include "model/rdma/requester.h"
#include "model/rdma/reserved_qpn.h"
#include "model/rdma/xrq_dci.h"
#include "model/steering/contexts.h"
#include "model/steering/meter.h"
#include "model/steering/sampler.h"

#define LOG_MAX(what) .log_max = PRM_cmd_hca_cap_log_max_##what##_FIELD
#define EVENT(type)   (1ull << PRM_EVENT_TYPE_##type)
#define NAME(kind)    (1ull << OBJ_##kind)

const struct obj_class obj_classes[OBJ_KINDS] = {
#define SPACE(table, first, log_end)
#define KIND(kind, table, icm_bytes, host_bytes, end, ...)                                         \
    [OBJ_##kind] = {.name = #kind,                                                                 \
                    .space = offsetof(struct hca, table),                                          \
                    .icm = icm_bytes,                                                              \
                    .host = host_bytes,                                                            \
                    .free = end,                                                                   \
                    .object = PRM_OBJECT(kind),                                                    \
                    __VA_ARGS__},
#define OWN(kind, table, icm_bytes, host_bytes, end)                                               \
    [OBJ_##kind] = {.name = #kind,                                                                 \
                    .space = offsetof(struct hca, table),                                          \
                    .icm = icm_bytes,                                                              \
                    .host = host_bytes,                                                            \
                    .free = end},
#define GENERAL(kind, table, icm_bytes, host_bytes, end, ...)                                      \
    [OBJ_##kind] = {.name = #kind,                                                                 \
                    .space = offsetof(struct hca, table),                                          \
                    .icm = icm_bytes,                                                              \
                    .host = host_bytes,                                                            \
                    .free = end,                                                                   \
                    .object = PRM_OBJECT(GENERAL_OBJECT),                                          \
                    .general_type = PRM_GENERAL_OBJ_TYPE_##kind,                                   \
                    __VA_ARGS__},
#define PART(kind, icm_bytes, host_bytes, ...)                                                     \
    [OBJ_##kind] = {.name = #kind, .icm = icm_bytes, .host = host_bytes, __VA_ARGS__},
#include "model/core/obj_classes.def"
#undef SPACE
#undef KIND
#undef PART
};

#define KIND(...)
#define PART(...)

const size_t obj_spaces[] = {
#define SPACE(table, first, log_end) offsetof(struct hca, table),
#include "model/core/obj_classes.def"
#undef SPACE
};
const unsigned obj_n_spaces = G_N_ELEMENTS(obj_spaces);

void obj_spaces_init(struct hca *hca)
{
    const struct hca_limits *l = &hca->limits;

#define SPACE(table, first, log_end)                                                               \
    obj_table_init(&hca->table, &hca->memory, first, 1u << (log_end));
#include "model/core/obj_classes.def"
#undef SPACE
}
