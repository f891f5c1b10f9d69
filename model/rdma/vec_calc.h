/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Vector calculations: SENDs whose data are computed (opmod 0xff; libmlx5 of MLNX_OFED,
 * post_ec_vec_calc()). They serve erasure codes.
 *
 * A WQE names up to 255 vectors of the same length, one behind the other, and one to four results
 * of that length. A result is the exclusive or of all vectors. With a matrix, each vector is first
 * multiplied by a constant of a field GF(2^w): the matrix has a row for each vector and in it a
 * byte for each result. The message has the results chunk by chunk: a chunk of the first result, a
 * chunk of the second, and so on, then their next chunks. The last chunks may be shorter. A
 * receiver whose key has an interleaved layout gets the results apart.
 *
 * docs/adr/0035 says which of this is the device's own choice.
 */
#ifndef HCASIM_MODEL_VEC_CALC_H
#define HCASIM_MODEL_VEC_CALC_H

#include "model/memory/gf.h"
#include "model/memory/mkey.h"
#include "prm/prm.h"

/* The limits that the capabilities report (vector_calc_cap). */
#define VEC_CALC_MAX_VECTORS   255
#define VEC_CALC_MAX_RESULTS   GF_MAX_RESULTS
#define VEC_CALC_LOG_MAX_CHUNK 6 /* log_chunk: chunks of 64 << 6 bytes */

/*
 * Results are computed in parts, of this many bytes of each vector. A part has whole chunks and, of
 * all results together, whole packets. One step reads this many bytes, or one vector's.
 */
#define VEC_CALC_PART 4096

/* A part of the results of a message. It belongs to the flight of the queue, and ends with it. */
struct vec_calc {
    uint32_t num;     /* the message: number of its descriptor */
    uint32_t part;    /* the part of it */
    bool is_begun;    /* message and part are valid, and the matrix is read */
    unsigned vectors; /* how many are added */
    uint8_t matrix[VEC_CALC_MAX_VECTORS * VEC_CALC_MAX_RESULTS];
    uint8_t results[VEC_CALC_MAX_RESULTS][VEC_CALC_PART];
};

/* The number of results that a segment asks for. */
unsigned vec_calc_results(const struct prm_wqe_vec_calc_seg *seg);
/* Whether the device can do what a segment asks for. */
bool vec_calc_ok(const struct prm_wqe_vec_calc_seg *seg);
/* The length of the message. */
uint64_t vec_calc_len(const struct prm_wqe_vec_calc_seg *seg);

/* Does a step of the part that has byte offset of message num. *is_done: its results are there.
 * denied: the lkey that counts as MKEY_NONE (mkey_denied()). */
enum mem_result vec_calc_step(struct hca *hca, struct vec_calc *calc,
                              const struct prm_wqe_vec_calc_seg *seg, uint32_t num, uint32_t pdn,
                              uint32_t denied, uint64_t offset, bool *is_done);
/* Copies bytes of the message, all of the part that is done. */
void vec_calc_copy(struct vec_calc *calc, const struct prm_wqe_vec_calc_seg *seg, uint64_t offset,
                   uint8_t *to, size_t len);

#endif
