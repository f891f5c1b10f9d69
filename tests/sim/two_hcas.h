/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two HCAs on one virtual clock, joined by a cable, each brought up by the user-space driver.
 *
 * Everything goes the way a guest's does: commands through the command queue, WQEs and doorbell
 * records in DMA memory, doorbells on the BAR. What a test makes here is destroyed by
 * two_hcas_free(), which also demands that the devices gave all their pages back and never
 * called themselves at fault. What fails here stops the program: fuzzers use it as well as tests.
 */
#ifndef HCASIM_TESTS_TWO_HCAS_H
#define HCASIM_TESTS_TWO_HCAS_H

#include "guest-lib/drv/drv.h"
#include "guest-lib/host/inproc.h"
#include "tests/sim/lossy.h"

#define MS     1000000ull
#define SECOND (1000 * MS)

/* Completions of each node's CQ; blocks and slots of each queue. */
#define LOG_CQ 8
#define LOG_SQ 7
#define LOG_RQ 6

struct node {
    struct inproc_hca *hca;
    struct drv *drv;
    struct wire_port *port; /* NULL: the cable is out */
    struct drv_cq cq;       /* of every queue here */
    unsigned in_cqe;        /* bytes of data that CQEs take of connections: 64, 32 or 0 */
    uint8_t gid[16];
    uint64_t next_va;
    GPtrArray *qps, *srqs, *bufs;
};

struct two_hcas {
    struct inproc_world *world;
    struct node a, b;
    GChecksum *trace; /* of every frame that arrived, with its time */
    uint64_t frames;
};

/* Stops the test unless condition holds. */
#define require(condition, ...)                                                                    \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            g_error(__VA_ARGS__);                                                                  \
        }                                                                                          \
    } while (0)

/* Registered memory; ptr is the test's view, va the device's. */
struct buf {
    struct drv_mem mem;
    struct drv_mr mr;
    uint8_t *ptr;
    uint64_t va;
    size_t len;
};

/* loss NULL: a perfect cable. */
struct two_hcas *two_hcas_new(const struct lossy_config *loss);
/* As above; capture, if not NULL, is a file for the frames at a's end of the cable: those that a
 * sends, and those that arrive there before the cable's faults are done to them. */
struct two_hcas *two_hcas_captured(const struct lossy_config *loss, const char *capture);
/* Of that generation (fw/profile.h), on a perfect cable. */
struct two_hcas *two_hcas_of(const char *profile);
/* CQEs have 128 bytes, and queues ask for data in them; on a perfect cable. */
struct two_hcas *two_hcas_data_in_cqe(void);
void two_hcas_free(struct two_hcas *t);

/* A function-level reset, and a new driver; what there was is gone, whatever state it was in. */
void node_revive(struct node *node);

/* Pulls one end out for good. */
void node_unplug(struct node *node);

/* len bytes with these rights (enum drv_access): zeroed, or with seed not 0 filled with a pattern.
 */
struct buf *node_buf(struct node *node, size_t len, unsigned access, unsigned seed);
struct drv_sge buf_sge(const struct buf *buf, size_t offset, size_t len);
void fill(uint8_t *ptr, size_t len, unsigned seed);

struct drv_srq *node_srq(struct node *node, unsigned log_size);
/* In RST. srq may be NULL. */
struct drv_qp *node_qp(struct node *node, uint8_t st, struct drv_srq *srq);
/* Takes both to RTS, towards each other; path has what is not usual, or is NULL. */
void connect_qps(struct node *na, struct drv_qp *a, struct node *nb, struct drv_qp *b,
                 const struct drv_path *path);
/* The usual: two connected QPs of a service type. */
struct qp_pair {
    struct drv_qp *a, *b;
};
struct qp_pair qp_pair_new(struct two_hcas *t, uint8_t st, const struct drv_path *path);
/* Both devices work: a message arrives on a new connection. */
void ping(struct two_hcas *t);
/* The path from a node to a QP of another. */
struct drv_path path_to(const struct node *to, const struct drv_qp *qp);

/* Waits for the next completion, 100 virtual seconds at most; there must be one. */
struct drv_wc next_wc(struct node *node);
/* As above, and it must be of that opcode, of that QP. */
struct drv_wc expect_wc(struct node *node, const struct drv_qp *qp, uint8_t opcode);
/* As above: an error (opcode REQ_ERR or RESP_ERR) with this syndrome. */
void expect_error(struct node *node, const struct drv_qp *qp, uint8_t opcode, uint8_t syndrome);
/* Nothing completes although everything that can be done is done. */
void expect_no_wc(struct two_hcas *t, struct node *node);
void expect_event(struct node *node, uint8_t type, uint32_t num);

uint8_t qp_state(struct drv_qp *qp);

#endif
