/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compresses CQEs: several completions that differ little share a title CQE and an array of
 * mini CQEs. cqe_compress.c describes the formats, and when a session ends.
 */
#ifndef HCASIM_MODEL_CQE_COMPRESS_H
#define HCASIM_MODEL_CQE_COMPRESS_H

#include "model/queue/cq.h"

enum {
    CQE_SESSION_MOST = 64,        /* CQEs of a session: capability cqe_compression_max_num */
    CQE_SESSION_TIMEOUT_US = 100, /* age of a session: capability cqe_compression_timeout */
};

/* Checks what a cqc asks for. */
enum syn cqe_compress_check(const struct hca *hca, const struct prm_cqc *cqc);

/* What a CQ that compresses needs for it, in the memory of the CQ. NULL: there is no memory. */
struct cqe_session *cqe_session_new(struct hca *hca, struct cq *cq);
/* Ends a session whose CQ goes. The CQEs that it holds are lost; cq_destroy() writes them first. */
void cqe_session_free(struct hca *hca, struct cq *cq);

/* Takes the CQE of index cq->pi, and writes it to the ring now or later. cq->last_cqe_ns is the
 * time of the CQE. False: the CQ has failed. */
bool cqe_session_take(struct hca *hca, struct cq *cq, const struct prm_cqe64 *cqe);

/* Writes the CQEs that the session of a CQ holds. False: the CQ has failed. */
bool cqe_session_close(struct hca *hca, struct cq *cq);

void cqe_sessions_write(struct hca *hca);
/* Writes what all open sessions hold. Called before software may notice that they hold it: before
 * an asynchronous event, at the end of a command and of a turn. */
static inline void cqe_sessions_close(struct hca *hca)
{
    if (G_UNLIKELY(hca->open_sessions)) {
        cqe_sessions_write(hca);
    }
}

#endif
