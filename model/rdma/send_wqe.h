/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parses send WQEs into host byte order.
 *
 * A WQE is copied whole from the ring to an image of its own. Therefore inline data and segments
 * never wrap, and the device uses exactly what it has checked. The table send_ops says, for each
 * opcode, which segments it has and which services may use it.
 */
#ifndef HCASIM_MODEL_SEND_WQE_H
#define HCASIM_MODEL_SEND_WQE_H

#include "model/memory/calc.h"
#include "model/memory/mkey.h"
#include "model/queue/wq.h"
#include "wire/encap/roce.h"

/* The properties of an operation, and the segments that follow the control segment. */
enum send_op_flags {
    SEND_OP_RADDR = 1 << 0,  /* wqe_raddr_seg */
    SEND_OP_ATOMIC = 1 << 1, /* wqe_atomic_seg; the 8-byte result goes to the list */
    SEND_OP_READ = 1 << 2,   /* the response data goes to the list */
    SEND_OP_LOCAL = 1 << 3,  /* nothing goes on the wire */
    SEND_OP_UMR = 1 << 4,    /* wqe_umr_ctrl_seg, mkey context, translation entries */
    SEND_OP_IMM = 1 << 5,    /* the packet carries ctrl.imm, as immediate or invalidated key */
    /* with ATOMIC: operands and result have the length that opmod says; with READ: the device
     * calculates with the response data, and the list gets the result; alone: the data are
     * computed (wqe_vec_calc_seg) */
    SEND_OP_EXTENDED = 1 << 6,
    SEND_OP_TAGS = 1 << 7, /* wqe_tm_seg; the list is the buffer of a tag list entry */
};

/* Whether the data of the message are computed. */
static inline bool send_op_computes(unsigned flags)
{
    return (flags & (SEND_OP_EXTENDED | SEND_OP_ATOMIC | SEND_OP_READ)) == SEND_OP_EXTENDED;
}

struct service;

struct send_op {
    const char *name; /* NULL: no such operation */
    uint16_t st_mask; /* a bit PRM_QP_ST_x for each service type that may use it */
    uint8_t flags;
    uint8_t first, middle, last, only; /* enum bth_op of its request packets, or bth_extended_op */
};

/* Indexed by opcode, 0 to SEND_OPS - 1 (PRM_WQE_OPCODE_). */
#define SEND_OPS 64
extern const struct send_op send_ops[SEND_OPS];
/* A SEND whose opmod is PRM_SEND_OPMOD_VECTOR_CALC. */
extern const struct send_op send_computed_op;

struct send_wqe {
    const struct send_op *op; /* NULL if the opcode is illegal */
    uint16_t index;           /* number of the first basic block: wqe_counter of its CQE */
    uint8_t opcode;           /* PRM_WQE_OPCODE_ */
    uint8_t num_bb;           /* basic blocks; 0 if ds is invalid */
    uint8_t fence;            /* PRM_WQE_FM_ */
    uint8_t ce;               /* PRM_WQE_CE_ */
    bool solicited;
    uint32_t imm; /* immediate in wire order, key to invalidate, or key of a UMR */
    uint32_t xrc_srqn;
    uint64_t raddr;
    uint32_t rkey;
    uint64_t swap_add, compare;
    const uint8_t *operands;     /* EXTENDED: the operands in the image, as they are sent */
    uint16_t operands_len;       /* bytes of them */
    uint8_t number_len;          /* bytes of each operand, and of the result */
    uint8_t calc;                /* enum calc_op: what the message's data is calculated with */
    uint16_t calc_len;           /* bytes of the operands: of the list, or of the READ's response */
    const struct prm_wqe_av *av; /* UD, DC: wqe_av in the image */
    const struct prm_wqe_umr_ctrl_seg *umr_ctrl; /* UMR: segment in the image */
    const struct prm_mkc *umr_mkc;               /* UMR: segment in the image */
    union {
        const struct prm_wqe_tm_seg *tags;          /* TAG_MATCHING: segment in the image */
        const void *psv;                            /* SET_PSV, GET_PSV: segment in the image */
        const struct prm_wqe_vec_calc_seg *vectors; /* computed data: segment in the image */
        const struct prm_wqe_wait_en_seg *wait_en;  /* cross channel: segment in the image */
    };
    /* UMR: inline entries and descriptor, or NULL: gather them from the list */
    const void *umr_xlt;
    uint32_t umr_xlt_len; /* bytes of the entries */
    uint32_t umr_bsf_len; /* bytes of the descriptor (BSF) behind the entries */
    /* Bytes of the list, including inline data; of a request with a calculation: of its result. */
    uint64_t len;
    unsigned num_sge;
    bool is_special; /* the list has inline data, or its data is calculated with */
    struct sge sge[WQE_MAX_SGE];
    const uint8_t *inl[WQE_MAX_SGE]; /* NULL, or the element's data in the image */
    union {
        struct prm_wqe_ctrl_seg ctrl[1]; /* the control segment comes first */
        uint8_t image[WQE_MAX_BYTES];
    };
};

/* Limits of the QP that a WQE is checked against. */
struct send_limits {
    const struct service *service;
    uint8_t log_msg_max; /* log2 of the longest message in bytes */
    bool master;         /* enables and calculations are allowed (cross.h) */
    uint16_t max_wqe;    /* bytes of one WQE */
    uint32_t denied;     /* lkey that counts as MKEY_NONE (mkey_denied()) */
};

/*
 * Fetches and decodes the WQE at index. At least 1 basic block is posted; max_bb says how many are.
 * Returns 0, or the PRM_CQE_SYNDROME_ with which the WQE fails: LOCAL_QP_OP_ERR (malformed, longer
 * than what was posted, opcode not for this transport, or the ring does not answer) or
 * LOCAL_LENGTH_ERR. Even then index, opcode, num_bb and ce are set as far as they are known.
 */
uint8_t send_wqe_fetch(struct hca *hca, const struct wq *sq, uint16_t index, unsigned max_bb,
                       const struct send_limits *limits, struct send_wqe *wqe);

/* The same for a WQE of the device's own, which is already complete in the image. */
uint8_t send_wqe_decode(const struct send_limits *limits, uint16_t index, struct send_wqe *wqe);

/* The number of basic blocks of the WQE at index, 1 to max_bb, and its opcode. Reads only the
 * control segment. 0: the segment is unreadable or invalid. */
unsigned send_wqe_peek(struct hca *hca, const struct wq *sq, uint16_t index, unsigned max_bb,
                       uint8_t *opcode);

/* The length of the WQE in the image. If the WQE's length is invalid, only its first basic block is
 * known. */
size_t send_wqe_bytes(const struct send_wqe *wqe);

/* Takes the length of the list for the length of the operands, if the WQE asks for a calculation.
 * Returns 0 or the syndrome. */
uint8_t send_wqe_set_calc_length(struct send_wqe *wqe) __attribute__((cold));

/* Copies bytes [offset, offset + len) of the list, or of the result of its calculation, to buf; see
 * sge_gather(). */
enum mem_result send_wqe_gather(struct hca *hca, const struct send_wqe *wqe, uint32_t pdn,
                                struct sge_cursor *cursor, uint64_t offset, void *buf, size_t len);

/* The addresses for an address vector. False: the vector is not complete, or there is no such
 * source GID. */
bool send_wqe_address(struct hca *hca, const struct prm_wqe_av *av, struct roce_addr *addr);

/* Bytes of an address vector without ext. */
#define WQE_SHORT_AV 16

#endif
