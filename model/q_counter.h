/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Q counters: sets of transport counters which QPs and RQs name by counter_set_id.
 */
#ifndef HCASIM_MODEL_Q_COUNTER_H
#define HCASIM_MODEL_Q_COUNTER_H

#include "model/hca.h"

struct q_counter {
    struct obj obj;
    uint64_t rx_write_requests, rx_read_requests, rx_atomic_requests;
    uint64_t out_of_buffer, out_of_sequence, duplicate_request, rnr_nak_retry_err,
        packet_seq_err, implied_nak_seq_err, local_ack_timeout_err, resp_local_length_error,
        resp_cqe_error, req_cqe_error, req_remote_invalid_request, req_remote_access_errors,
        resp_remote_access_errors, resp_cqe_flush_error, req_cqe_flush_error;
};

enum syn q_counter_alloc(struct hca *hca, uint16_t uid, uint32_t *id);
enum syn q_counter_dealloc(struct hca *hca, uint16_t uid, uint32_t id);
void q_counter_free(struct hca *hca, struct obj *obj);
/* Fills query_q_counter_out's counters; clear resets them. */
enum syn q_counter_query(struct hca *hca, uint32_t id, bool clear, void *out);

/* The set, or a scratch set of the HCA when id names none: counting never fails. */
struct q_counter *q_counter_get(struct hca *hca, uint32_t id);

#endif
