/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RC queues that a program of statements makes by DevX commands, and drives through memory alone:
 * queues and WQEs for which verbs have no call. A kernel lets any user of DevX make them.
 *
 * A queue has a CQ of its own. A WQE is built word by word, from layouts that are written down here
 * and in devx_queues.c once more, apart from those that the device is built from.
 */
#ifndef HCASIM_TESTS_PROGRAMS_DEVX_QUEUES_H
#define HCASIM_TESTS_PROGRAMS_DEVX_QUEUES_H

#include <infiniband/mlx5dv.h>
#include "tests/programs/statements.h"

#define DEVX_BLOCKS 32u /* basic blocks of a send queue, of 64 bytes */
#define DEVX_RECVS  8u  /* WQEs of a receive queue, of one piece of memory each */
#define DEVX_CQES   64u

/* Opcodes of send WQEs that mlx5dv.h has no name for. */
#define DEVX_WAIT    0x0f
#define DEVX_RECV_EN 0x16
#define DEVX_SEND_EN 0x17
#define DEVX_DUMP    0x23

/* Syndromes of error CQEs. */
#define DEVX_BAD_WQE 0x02
#define DEVX_BAD_KEY 0x04
#define DEVX_FLUSHED 0x05

/* The roles of a queue in cross channel. */
enum devx_role {
    DEVX_MASTER = 1,       /* cd_master */
    DEVX_MANAGED_SEND = 2, /* cd_slave_send */
    DEVX_MANAGED_RECV = 4, /* cd_slave_receive */
};

struct devx_queue {
    uint8_t *memory;
    struct mlx5dv_devx_umem *umem;
    struct mlx5dv_devx_obj *cq, *qp;
    uint32_t cqn, qpn;
    uint32_t posted; /* basic blocks of send WQEs */
    uint32_t received;
    uint32_t taken; /* CQEs */
};

/* A send WQE in the making, behind its control segment. */
struct devx_wqe {
    uint8_t opcode, opmod;
    uint32_t word[64]; /* big endian */
    unsigned words;
};

struct devx_cqe {
    uint16_t wqe; /* index of the WQE; of a send WQE, of its first basic block */
    uint8_t opcode;
    uint8_t syndrome; /* of an error CQE */
    uint32_t bytes;   /* of a received message */
};

/* The program's doorbell page, on the device of statements.h. */
void devx_open(void);
void devx_close(void);

/* Makes a queue in protection domain of, in state RESET. roles: of enum devx_role. */
void devx_queue_new(struct devx_queue *q, struct ibv_pd *of, unsigned roles);
/* From now on the device writes over CQEs that are not taken yet, and the CQ does not fail. */
void devx_ignore_overrun(struct devx_queue *q);
/* Connects a queue, from RESET to RTS, with the queue of that number on the same device. A receiver
 * without a WQE is asked again for ever. */
void devx_connect(struct devx_queue *q, uint32_t qpn);
/* Moves a connected queue to RESET or ERR: PRM_CMD_OP_2RST_QP, PRM_CMD_OP_2ERR_QP. RESET forgets
 * what is posted. */
void devx_move(struct devx_queue *q, uint16_t opcode);
/* Destroys the QP or the CQ of a queue, if it is still there; all of a queue. */
void devx_destroy_qp(struct devx_queue *q);
void devx_destroy_cq(struct devx_queue *q);
void devx_queue_free(struct devx_queue *q);

/* Add segments to a WQE: a list element, a remote address, an object with an index. */
void devx_add_data(struct devx_wqe *wqe, uint64_t addr, uint32_t len, uint32_t lkey);
void devx_add_remote(struct devx_wqe *wqe, uint64_t addr, uint32_t rkey);
void devx_add_object(struct devx_wqe *wqe, uint32_t number, uint32_t index);
void devx_add_words(struct devx_wqe *wqe, const uint32_t *words, unsigned n);

/* Writes a WQE to the ring, which has a CQE. Rings no doorbell. */
void devx_post(struct devx_queue *q, const struct devx_wqe *wqe);
/* Tells the device of the WQEs written so far, by record and doorbell. */
void devx_ring(struct devx_queue *q);
/* Posts a receive, and tells the device. */
void devx_receive(struct devx_queue *q, uint64_t addr, uint32_t len, uint32_t lkey);

/* Takes the next CQE. Returns whether there is one. */
bool devx_poll(struct devx_queue *q, struct devx_cqe *cqe);

#endif
