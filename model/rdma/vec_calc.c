/* SPDX-License-Identifier: BSD-2-Clause */
/* Computes the data of vector calculations; see model/rdma/vec_calc.h. */
#include "model/rdma/vec_calc.h"
#include <string.h>

/* -- the segment ------------------------------------------------------------------------------- */

unsigned vec_calc_results(const struct prm_wqe_vec_calc_seg *seg)
{
    unsigned n = 0;

    while (n < VEC_CALC_MAX_RESULTS && PRM_GET_AT(wqe_vec_calc_seg, seg, calc_op, n)) {
        n++;
    }
    return n;
}

bool vec_calc_ok(const struct prm_wqe_vec_calc_seg *seg)
{
    unsigned n = vec_calc_results(seg);
    uint32_t size = PRM_GET(wqe_vec_calc_seg, seg, vec_size);

    for (unsigned i = 0; i < n; i++) {
        if (PRM_GET_AT(wqe_vec_calc_seg, seg, calc_op, i) != PRM_VEC_CALC_OP_XOR) {
            return false;
        }
    }
    return n && size && size % 4 == 0 && PRM_GET(wqe_vec_calc_seg, seg, vec_count) &&
           !PRM_GET(wqe_vec_calc_seg, seg, op_tags) && !PRM_GET(wqe_vec_calc_seg, seg, le_tag) &&
           PRM_GET(wqe_vec_calc_seg, seg, log_chunk) <= VEC_CALC_LOG_MAX_CHUNK;
}

uint64_t vec_calc_len(const struct prm_wqe_vec_calc_seg *seg)
{
    return (uint64_t)PRM_GET(wqe_vec_calc_seg, seg, vec_size) * vec_calc_results(seg);
}

/* Bytes of each vector that belong to the part. */
static size_t vec_calc_part_len(const struct prm_wqe_vec_calc_seg *seg, uint32_t part)
{
    uint64_t from = (uint64_t)part * VEC_CALC_PART;

    return MIN(PRM_GET(wqe_vec_calc_seg, seg, vec_size) - from, VEC_CALC_PART);
}

/* -- the calculation --------------------------------------------------------------------------- */

/* The field of a constant, and its bits. In a matrix of 4-bit constants, a high half of 2 means
 * GF(2^2); all else is GF(2^4), in which 0 and 1 are also those of GF(2). */
static const struct gf_map *vec_calc_map(const struct prm_wqe_vec_calc_seg *seg, uint8_t constant)
{
    if (!PRM_GET(wqe_vec_calc_seg, seg, matrix)) {
        return gf_map_of(1, 1);
    }
    if (PRM_GET(wqe_vec_calc_seg, seg, matrix_8bit)) {
        return gf_map_of(8, constant);
    }
    return gf_map_of(constant >> 4 == 2 ? 2 : 4, constant);
}

static enum mem_result vec_calc_begin(struct hca *hca, struct vec_calc *calc,
                                      const struct prm_wqe_vec_calc_seg *seg, uint32_t num,
                                      uint32_t part, uint32_t pdn, uint32_t denied)
{
    uint32_t key = PRM_GET(wqe_vec_calc_seg, seg, cm_lkey);
    size_t bytes = PRM_GET(wqe_vec_calc_seg, seg, vec_count) * vec_calc_results(seg);
    enum mem_result result = MEM_OK;

    calc->is_begun = false;
    if (PRM_GET(wqe_vec_calc_seg, seg, matrix)) {
        result =
            mkey_read(hca, key == denied ? MKEY_NONE : key, pdn,
                      PRM_GET(wqe_vec_calc_seg, seg, cm_addr), calc->matrix, bytes, MEM_LOCAL_READ);
    }
    if (result == MEM_OK) {
        calc->num = num;
        calc->part = part;
        calc->is_begun = true;
        calc->vectors = 0;
        memset(calc->results, 0, sizeof(calc->results));
    }
    return result;
}

/* Adds the next vector to all results. */
static enum mem_result vec_calc_add(struct hca *hca, struct vec_calc *calc,
                                    const struct prm_wqe_vec_calc_seg *seg, uint32_t pdn,
                                    uint32_t denied, size_t len)
{
    uint32_t key = PRM_GET(wqe_vec_calc_seg, seg, vec_lkey);
    uint64_t at = (uint64_t)PRM_GET(wqe_vec_calc_seg, seg, vec_size) * calc->vectors +
                  (uint64_t)calc->part * VEC_CALC_PART;
    size_t whole = (len + GF_GRAIN - 1) / GF_GRAIN * GF_GRAIN;
    unsigned n = vec_calc_results(seg);
    struct gf_map maps[VEC_CALC_MAX_RESULTS];
    uint8_t *to[VEC_CALC_MAX_RESULTS];
    uint8_t vector[VEC_CALC_PART];
    enum mem_result result =
        mkey_read(hca, key == denied ? MKEY_NONE : key, pdn,
                  PRM_GET(wqe_vec_calc_seg, seg, vec_addr) + at, vector, len, MEM_LOCAL_READ);

    if (result != MEM_OK) {
        return result;
    }
    memset(vector + len, 0, whole - len);
    for (unsigned i = 0; i < n; i++) {
        maps[i] = *vec_calc_map(seg, calc->matrix[calc->vectors * n + i]);
        to[i] = calc->results[i];
    }
    gf_add(maps, n, vector, to, whole);
    calc->vectors++;
    return MEM_OK;
}

enum mem_result vec_calc_step(struct hca *hca, struct vec_calc *calc,
                              const struct prm_wqe_vec_calc_seg *seg, uint32_t num, uint32_t pdn,
                              uint32_t denied, uint64_t offset, bool *is_done)
{
    uint32_t part = (uint32_t)(offset / (VEC_CALC_PART * vec_calc_results(seg)));
    unsigned vectors = PRM_GET(wqe_vec_calc_seg, seg, vec_count);
    size_t len = vec_calc_part_len(seg, part);

    if (!calc->is_begun || calc->num != num || calc->part != part) {
        enum mem_result result = vec_calc_begin(hca, calc, seg, num, part, pdn, denied);

        if (result != MEM_OK) {
            return result;
        }
    }
    for (size_t bytes = 0; calc->vectors < vectors && bytes < VEC_CALC_PART; bytes += len) {
        enum mem_result result = vec_calc_add(hca, calc, seg, pdn, denied, len);

        if (result != MEM_OK) {
            return result;
        }
    }
    /* a WQE that was written over may have fewer vectors than before */
    *is_done = calc->vectors >= vectors;
    return MEM_OK;
}

void vec_calc_copy(struct vec_calc *calc, const struct prm_wqe_vec_calc_seg *seg, uint64_t offset,
                   uint8_t *to, size_t len)
{
    unsigned n = vec_calc_results(seg);
    size_t chunk = (size_t)64 << PRM_GET(wqe_vec_calc_seg, seg, log_chunk);
    size_t part_len = vec_calc_part_len(seg, calc->part);
    size_t at = (size_t)(offset - (uint64_t)calc->part * VEC_CALC_PART * n);

    if (offset + len == vec_calc_len(seg)) {
        calc->is_begun = false; /* a later message may have the same number */
    }
    while (len) {
        size_t first = at / (chunk * n) * chunk; /* of this round, in each result */
        size_t round = MIN(chunk, part_len - first);
        size_t in_round = at % (chunk * n);
        size_t run = MIN(len, round - in_round % round);

        memcpy(to, calc->results[in_round / round] + first + in_round % round, run);
        to += run;
        at += run;
        len -= run;
    }
}
