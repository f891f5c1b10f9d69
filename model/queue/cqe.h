/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Builds the images of CQEs for all kinds of queues (PRM CQE; struct cqe64 and err_cqe). The caller
 * gives a zeroed cqe64, in which it may have set fields of its own (immediate, checksums).
 * cq_post() adds owner, time stamp and vendor syndrome.
 */
#ifndef HCASIM_MODEL_CQE_H
#define HCASIM_MODEL_CQE_H

#include "model/core/hca.h"
#include "prm/prm.h"

/*
 * Data that goes into a CQE instead of into the WQE's buffers (qpc.cs_req, cs_res, dctc.cs_res):
 * docs/adr/0013. 64 bytes of data fit into the first half of a 128-byte CQE. 32 bytes fit into the
 * first half of the cqe64, in place of the fields that are normally there. byte_cnt is the length
 * of the data.
 */
enum {
    CQE_DATA_32 = 32,
    CQE_DATA_64 = 64,
};

struct cqe_data {
    const void *bytes;
    uint8_t len;  /* 1 to room */
    uint8_t room; /* CQE_DATA_32 or _64 */
};

/* Whether a queue may ask for a format of time stamps (ts_format of qpc, sqc and rqc). All cards
 * know the default. */
static inline bool queue_ts_format_ok(const struct hca *hca, uint32_t ts_format)
{
    return ts_format <= (hca->limits.real_time ? PRM_TS_FORMAT_REAL_TIME : PRM_TS_FORMAT_DEFAULT);
}

/* Whether the time stamps of such a queue are those of the real-time clock. On a card that has one,
 * that is the default: MTUTC says so (DPDK: mlx5_rt_timestamp_config()). */
static inline bool queue_real_time(const struct hca *hca, uint32_t ts_format)
{
    return hca->limits.real_time && ts_format != PRM_TS_FORMAT_FREE_RUNNING;
}

/* The completed WQE and its queue. */
struct cqe_about {
    uint32_t qpn;   /* QP, SQ or RQ; on an RQ of frames the flow tag */
    uint32_t srqn;  /* the SRQ's or QP's user index; in CQEs of version 0 the SRQN */
    uint16_t index; /* wqe_counter */
    bool real_time; /* the time stamp is that of the real-time clock (queue_real_time()) */
    bool strides;   /* of a striding queue: byte_cnt has the number of strides */
};

/* What the field timestamp of an image says to cq_post(), which writes the stamp there. */
#define CQE_REAL_TIME 1 /* the stamp is that of the real-time clock */
#define CQE_STRIDES   2 /* the CQE is of a striding queue */

/* byte_cnt of a striding queue: a filler, strides, and bytes (driver: mpwrq_get_cqe_*()). */
#define CQE_FILLER            (1u << 31)
#define CQE_STRIDES_IN(n)     ((uint32_t)(n) << 16)
#define CQE_STRIDES_OF(bytes) ((bytes) >> 16 & 0x7fff)

static inline void cqe_fill(struct prm_cqe64 *cqe, struct cqe_about about,
                            enum prm_cqe_opcode opcode)
{
    PRM_SET(cqe64, cqe, qpn, about.qpn);
    PRM_SET(cqe64, cqe, srqn, about.srqn);
    PRM_SET(cqe64, cqe, wqe_counter, about.index);
    PRM_SET(cqe64, cqe, opcode, opcode);
}

/* A send WQE is done. byte_cnt is the length of the data that a READ or an atomic returned, else
 * 0. */
static inline void cqe_sent(struct prm_cqe64 *cqe, struct cqe_about about, uint8_t wqe_opcode,
                            uint32_t byte_cnt)
{
    cqe_fill(cqe, about, PRM_CQE_OPCODE_REQ);
    PRM_SET(cqe64, cqe, timestamp, about.real_time ? CQE_REAL_TIME : 0);
    PRM_SET(cqe64, cqe, send_wqe_opcode, wqe_opcode);
    PRM_SET(cqe64, cqe, byte_cnt, byte_cnt);
}

/* A send WQE has failed; syndrome is a PRM_CQE_SYNDROME_. */
static inline void cqe_send_failed(struct prm_cqe64 *cqe, struct cqe_about about,
                                   uint8_t wqe_opcode, uint8_t syndrome)
{
    struct prm_err_cqe *failed = (void *)cqe; /* the same bytes as an error CQE */

    cqe_fill(cqe, about, PRM_CQE_OPCODE_REQ_ERR);
    PRM_SET(err_cqe, failed, send_wqe_opcode, wqe_opcode);
    PRM_SET(err_cqe, failed, syndrome, syndrome);
}

/* A receive WQE took byte_cnt bytes. opcode is a PRM_CQE_OPCODE_RESP_. */
static inline void cqe_received(struct prm_cqe64 *cqe, struct cqe_about about,
                                enum prm_cqe_opcode opcode, uint32_t byte_cnt, bool solicited)
{
    cqe_fill(cqe, about, opcode);
    PRM_SET(cqe64, cqe, timestamp,
            (about.real_time ? CQE_REAL_TIME : 0) | (about.strides ? CQE_STRIDES : 0));
    PRM_SET(cqe64, cqe, byte_cnt, byte_cnt);
    PRM_SET(cqe64, cqe, se, solicited);
}

/* A receive WQE has failed; syndrome is a PRM_CQE_SYNDROME_. */
static inline void cqe_receive_failed(struct prm_cqe64 *cqe, struct cqe_about about,
                                      uint8_t syndrome)
{
    struct prm_err_cqe *failed = (void *)cqe; /* the same bytes as an error CQE */

    cqe_fill(cqe, about, PRM_CQE_OPCODE_RESP_ERR);
    PRM_SET(err_cqe, failed, syndrome, syndrome);
}

#endif
