/* SPDX-License-Identifier: BSD-2-Clause */
/* Allocates Q counter sets, and answers QUERY_Q_COUNTER. */
#include "model/core/pd.h"
#include "model/queue/q_counter.h"
#include "prm/prm.h"

/* All counters that the device keeps. Each has the same name in struct q_counter and
 * query_q_counter_out. */
#define Q_COUNTERS(X)                                                                              \
    X(rx_write_requests)                                                                           \
    X(rx_read_requests)                                                                            \
    X(rx_atomic_requests)                                                                          \
    X(rx_dct_connect)                                                                              \
    X(out_of_buffer)                                                                               \
    X(out_of_sequence)                                                                             \
    X(duplicate_request)                                                                           \
    X(rnr_nak_retry_err)                                                                           \
    X(packet_seq_err)                                                                              \
    X(implied_nak_seq_err)                                                                         \
    X(local_ack_timeout_err)                                                                       \
    X(req_rnr_retries_exceeded)                                                                    \
    X(resp_local_length_error)                                                                     \
    X(req_local_length_error)                                                                      \
    X(resp_local_qp_error)                                                                         \
    X(local_operation_error)                                                                       \
    X(resp_local_protection)                                                                       \
    X(req_local_protection)                                                                        \
    X(resp_cqe_error)                                                                              \
    X(req_cqe_error)                                                                               \
    X(req_mw_binding)                                                                              \
    X(req_bad_response)                                                                            \
    X(req_remote_invalid_request)                                                                  \
    X(resp_remote_invalid_request)                                                                 \
    X(req_remote_access_errors)                                                                    \
    X(resp_remote_access_errors)                                                                   \
    X(req_remote_operation_errors)                                                                 \
    X(req_transport_retries_exceeded)                                                              \
    X(cq_overflow)                                                                                 \
    X(resp_cqe_flush_error)                                                                        \
    X(req_cqe_flush_error)

enum syn q_counter_alloc(struct hca *hca, uint16_t uid, uint32_t *id)
{
    struct q_counter *set = obj_make(hca, OBJ_Q_COUNTER, uid, sizeof(*set));

    if (!set) {
        return SYN_NO_MEMORY;
    }
    *id = set->obj.num;
    return SYN_OK;
}

enum syn q_counter_dealloc(struct hca *hca, uint16_t uid, uint32_t id)
{
    return obj_dealloc(hca, &hca->q_counters, uid, id, SYN_NO_Q_COUNTER);
}

enum syn q_counter_query(struct hca *hca, uint32_t id, bool clear,
                         struct prm_query_q_counter_out *out)
{
    struct q_counter *set = (struct q_counter *)obj_find(&hca->q_counters, id);

    if (!set) {
        return SYN_NO_Q_COUNTER;
    }
#define FILL(name) PRM_SET(query_q_counter_out, out, name, (uint32_t)set->name);
    Q_COUNTERS(FILL)
#undef FILL
    if (clear) {
#define CLEAR(name) set->name = 0;
        Q_COUNTERS(CLEAR)
#undef CLEAR
    }
    return SYN_OK;
}

struct q_counter *q_counter_get(struct hca *hca, uint32_t id)
{
    struct obj *obj = obj_find(&hca->q_counters, id);

    return obj ? (struct q_counter *)obj : hca->scratch_q_counter;
}

void q_counter_init(struct hca *hca)
{
    hca->scratch_q_counter = g_new0(struct q_counter, 1);
}

void q_counter_clear(struct hca *hca)
{
    g_free(hca->scratch_q_counter);
    hca->scratch_q_counter = NULL;
}
