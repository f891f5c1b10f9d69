/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Q counters: sets of transport counters. QPs and RQs name a set by counter_set_id.
 *
 * Counters have 64 bits here; QUERY_Q_COUNTER reports them modulo 2^32. For the meaning of each
 * counter see the PRM and the driver's Documentation/networking/.../counters.rst ("hw_counters").
 */
#ifndef HCASIM_MODEL_Q_COUNTER_H
#define HCASIM_MODEL_Q_COUNTER_H

#include "model/core/hca.h"
#include "prm/prm.h"

struct q_counter {
    struct obj obj;
    uint64_t rx_write_requests, rx_read_requests, rx_atomic_requests, rx_dct_connect;
    uint64_t out_of_buffer, out_of_sequence, duplicate_request, rnr_nak_retry_err, packet_seq_err,
        implied_nak_seq_err, local_ack_timeout_err, resp_local_length_error, resp_cqe_error,
        req_cqe_error, req_remote_invalid_request, req_remote_access_errors,
        resp_remote_access_errors, resp_cqe_flush_error, req_cqe_flush_error;
    uint64_t req_rnr_retries_exceeded, req_local_length_error, resp_local_qp_error,
        local_operation_error, resp_local_protection, req_local_protection, req_mw_binding,
        req_bad_response, resp_remote_invalid_request, req_remote_operation_errors,
        req_transport_retries_exceeded, cq_overflow;
};

enum syn q_counter_alloc(struct hca *hca, uint16_t uid, uint32_t *id);
enum syn q_counter_dealloc(struct hca *hca, uint16_t uid, uint32_t id);
/* Fills in the counters of query_q_counter_out. clear: resets them. */
enum syn q_counter_query(struct hca *hca, uint32_t id, bool clear,
                         struct prm_query_q_counter_out *out);

/* The set of that id. If there is none, returns a scratch set of the HCA, so counting never
 * fails. */
struct q_counter *q_counter_get(struct hca *hca, uint32_t id);

/* Make and free the scratch set; called by hca_init() and hca_clear(). */
void q_counter_init(struct hca *hca);
void q_counter_clear(struct hca *hca);

#endif
