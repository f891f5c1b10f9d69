/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Builds a send WQE, from a list (qp_send.c) or by builders (qp_wr.c), with the send queue's lock
 * held: begin, the segments, end. A WQE is written into the ring in units of 16 bytes, and
 * continues at the ring's beginning if it reaches the end. The first failure is stored in wr_err;
 * after that no WQE is begun.
 */
#ifndef HCASIM_GUEST_LIB_VERBS_USER_SEND_WQE_H
#define HCASIM_GUEST_LIB_VERBS_USER_SEND_WQE_H

#include <string.h>
#include "guest-lib/verbs/user/qp.h"

#define HV_WQEBB 64u

/* Ends the call with err, unless it has failed before. The log says why (kernel/refuse.h). */
HV_COLD void hv_wqe_fail(struct user_qp *qp, int err, const char *fmt, ...) G_GNUC_PRINTF(3, 4);
/* Begins a WQE. False: there is no room (wr_err). */
bool hv_wqe_begin(struct user_qp *qp, uint8_t opcode, unsigned flags, uint64_t wr_id,
                  enum ibv_wc_opcode wc, uint32_t imm);
/* Completes the WQE: from now on it is posted. */
void hv_wqe_end(struct user_qp *qp);

void hv_wqe_put_raddr(struct user_qp *qp, uint64_t raddr, uint32_t rkey);
void hv_wqe_put_atomic(struct user_qp *qp, bool swap, uint64_t compare_add, uint64_t swap_value);
void hv_wqe_put_av(struct user_qp *qp, const struct ibv_ah *ah, uint32_t qpn, uint32_t qkey);
void hv_wqe_put_xrc(struct user_qp *qp, uint32_t srqn);
/* A raw packet's headers need to be in the WQE only for segmentation (hdr), or if the device wants
 * them there; in the second case the segment is written together with the data. */
void hv_wqe_put_eth(struct user_qp *qp, bool csum, uint32_t mss, const void *hdr, size_t hdr_len);
/* Writes the Ethernet segment, with the packet's first hdr_len bytes (hdr) or without (NULL). */
void hv_wqe_put_eth_seg(struct user_qp *qp, bool csum, uint32_t mss, const void *hdr,
                        size_t hdr_len);
void hv_wqe_put_sge(struct user_qp *qp, uint32_t lkey, uint64_t addr, uint32_t length);
void hv_wqe_put_sges(struct user_qp *qp, size_t num, const struct ibv_sge *sge);
/* The list of an atomic, whose answer has that many bytes. A single element takes the answer,
 * whatever its own length is (libmlx5: set_data_ptr_seg_atomic(), set_data_atom_seg()). Of several
 * elements, libmlx5 gives each the length of the answer; here they share the answer by their own
 * lengths, so no element takes more than the program said. */
void hv_wqe_put_answer(struct user_qp *qp, size_t num, const struct ibv_sge *sge, uint32_t bytes);
/* Copies inline data from num pieces. */
void hv_wqe_put_inline(struct user_qp *qp, size_t num, const struct ibv_data_buf *bufs);
/* A UMR that binds a window; if its length is 0, it invalidates the key. */
void hv_wqe_put_bind(struct user_qp *qp, enum ibv_mw_type type, uint32_t new_rkey,
                     const struct ibv_mw_bind_info *info);

/* Copies data that does not fit before the end of the ring. */
G_GNUC_NO_INLINE void hv_wqe_put_round(struct user_qp *qp, const void *data, size_t len);

/* Copies whole units to the WQE's current position. */
static inline void hv_wqe_put(struct user_qp *qp, const void *data, size_t len)
{
    const uint8_t *end = qp->sq.buf + (size_t)qp->sq.wqe_cnt * HV_WQEBB;

    if (G_LIKELY((size_t)(end - qp->cur_data) > len)) {
        memcpy(qp->cur_data, data, len);
        qp->cur_data += len;
    } else {
        hv_wqe_put_round(qp, data, len);
    }
    qp->cur_size += (uint32_t)len / 16;
}

#endif
