/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Send WQEs taken apart: what a WQE in a QP's send queue asks for, in host byte order.
 *
 * A WQE is fetched whole from the ring to an image of its own, so that inline data and segments
 * never wrap and what was checked is what is used. What each opcode is made of and where it may be
 * used is one table, send_ops.
 */
#ifndef HCASIM_MODEL_SEND_WQE_H
#define HCASIM_MODEL_SEND_WQE_H

#include "model/memory/mkey.h"
#include "model/queue/wq.h"
#include "wire/encap/roce.h"

/* What an operation does, and which segments follow the control segment. */
enum send_op_flags {
    SEND_OP_RADDR = 1 << 0,    /* wqe_raddr_seg */
    SEND_OP_ATOMIC = 1 << 1,   /* wqe_atomic_seg; the list takes the 8-byte result */
    SEND_OP_READ = 1 << 2,     /* the list is scattered to */
    SEND_OP_LOCAL = 1 << 3,    /* nothing goes on the wire */
    SEND_OP_UMR = 1 << 4,      /* wqe_umr_ctrl_seg, mkey context, translation entries */
    SEND_OP_IMM = 1 << 5,      /* the packet carries ctrl.imm, as immediate or invalidated key */
    SEND_OP_EXTENDED = 1 << 6, /* beside ATOMIC: operands as long as opmod says, and the result */
    SEND_OP_TAGS = 1 << 7,     /* wqe_tm_seg; the list is the buffer of an entry */
};

struct service;

struct send_op {
    const char *name; /* NULL: no such operation */
    uint16_t st_mask; /* bit PRM_QP_ST_x: service types that know it */
    uint8_t flags;
    uint8_t first, middle, last, only; /* enum bth_op of its request packets, or bth_extended_op */
};

/* Indexed by opcode, 0 to SEND_OPS - 1 (PRM_WQE_OPCODE_). */
#define SEND_OPS 64
extern const struct send_op send_ops[SEND_OPS];

struct send_wqe {
    const struct send_op *op; /* NULL if the opcode is illegal */
    uint16_t index;           /* of the first basic block: wqe_counter of its CQE */
    uint8_t opcode;           /* PRM_WQE_OPCODE_ */
    uint8_t num_bb;           /* basic blocks; 0 if ds makes no sense */
    uint8_t fence;            /* PRM_WQE_FM_ */
    uint8_t ce;               /* PRM_WQE_CE_ */
    bool solicited;
    uint32_t imm; /* immediate as on the wire, key to invalidate, key of a UMR */
    uint32_t xrc_srqn;
    uint64_t raddr;
    uint32_t rkey;
    uint64_t swap_add, compare;
    const uint8_t *operands;                     /* EXTENDED: in the image, as they are sent */
    uint16_t operands_len;                       /* bytes of them */
    uint8_t number_len;                          /* bytes of each, and of the result */
    const struct prm_wqe_av *av;                 /* UD, DC: wqe_av in the image */
    const struct prm_wqe_umr_ctrl_seg *umr_ctrl; /* UMR: in the image */
    const struct prm_mkc *umr_mkc;               /* the same */
    const struct prm_wqe_tm_seg *tags;           /* TAG_MATCHING: in the image */
    const void *umr_xlt; /* inline entries, or NULL: to be gathered from the list */
    size_t umr_xlt_len;  /* bytes of the entries */
    uint64_t len;        /* bytes of the list, inline data included */
    unsigned num_sge;
    bool has_inline;
    struct sge sge[WQE_MAX_SGE];
    const uint8_t *inl[WQE_MAX_SGE]; /* NULL, or the element's data in the image */
    union {
        struct prm_wqe_ctrl_seg ctrl[1]; /* first in it */
        uint8_t image[WQE_MAX_BYTES];
    };
};

/* What of a QP a WQE is checked against. */
struct send_limits {
    const struct service *service;
    uint8_t log_msg_max; /* longest message, log2 bytes */
    uint32_t max_wqe;    /* bytes of one WQE */
    uint32_t denied;     /* lkey that counts as MKEY_NONE (mkey_denied()) */
};

/*
 * Fetches and decodes the WQE at index, of which max_bb basic blocks (1 or more) are posted.
 * Returns 0, or the PRM_CQE_SYNDROME_ that the WQE fails with: LOCAL_QP_OP_ERR (malformed, more
 * than was posted, opcode not for this transport, ring does not answer) or LOCAL_LENGTH_ERR.
 * index, opcode, num_bb and ce are set as far as known even then.
 */
uint8_t send_wqe_fetch(struct hca *hca, const struct wq *sq, uint16_t index, unsigned max_bb,
                       const struct send_limits *limits, struct send_wqe *wqe);

/* The same of a WQE of the device's own, which is whole and in the image already. */
uint8_t send_wqe_decode(const struct send_limits *limits, uint16_t index, struct send_wqe *wqe);

/* The basic blocks of the WQE at index, 1 to max_bb, and its opcode, without looking at more
 * than the control segment. 0: unreadable or nonsense. */
unsigned send_wqe_peek(struct hca *hca, const struct wq *sq, uint16_t index, unsigned max_bb,
                       uint8_t *opcode);

/* Bytes of the image that are the WQE; of one of impossible length no more is known than a basic
 * block. */
size_t send_wqe_bytes(const struct send_wqe *wqe);

/* Copies bytes [offset, offset + len) of the list to buf; see sge_gather(). */
enum mem_result send_wqe_gather(struct hca *hca, const struct send_wqe *wqe, uint32_t pdn,
                                struct sge_cursor *cursor, uint64_t offset, void *buf, size_t len);

/* The addresses that an address vector stands for. False: not a whole vector, or no such source
 * GID.
 */
bool send_wqe_address(struct hca *hca, const struct prm_wqe_av *av, struct roce_addr *addr);

/* Bytes of an address vector without ext. */
#define WQE_SHORT_AV 16

#endif
