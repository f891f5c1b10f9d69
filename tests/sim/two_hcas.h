/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two HCAs on one virtual clock, joined by a cable, each brought up by the user-space driver.
 *
 * Everything works as in a guest: commands go through the command queue, WQEs and doorbell records
 * are in DMA memory, doorbells on the BAR. two_hcas_free() destroys what a test makes here, and
 * checks that the devices gave all their pages back and never reported a fault of their own. A
 * failure here stops the program, because fuzzers use it as well as tests.
 */
#ifndef HCASIM_TESTS_TWO_HCAS_H
#define HCASIM_TESTS_TWO_HCAS_H

#include "guest-lib/drv/drv.h"
#include "guest-lib/host/inproc.h"
#include "tests/sim/lossy.h"

#define MS     1000000ull
#define SECOND (1000 * MS)

/* Log of the completions of each node's CQ, and of the blocks and slots of each queue. */
#define LOG_CQ 8
#define LOG_SQ 7
#define LOG_RQ 6

struct node {
    struct inproc_hca *hca;
    struct drv *drv;
    struct wire_port *port; /* NULL: the cable is unplugged */
    struct drv_cq cq;       /* CQ of every queue here */
    unsigned in_cqe;        /* how many bytes of data CQEs of connections carry: 64, 32 or 0 */
    uint8_t gid[16];
    uint64_t next_va;
    GPtrArray *qps, *srqs, *bufs;
};

struct two_hcas {
    struct inproc_world *world;
    struct node a, b;
    GChecksum *trace; /* a hash of every frame that arrived, with its time */
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

/* loss NULL: the cable has no faults. */
struct two_hcas *two_hcas_new(const struct lossy_config *loss);
/* As above. capture, if not NULL, is a file for the frames at a's end of the cable: the frames that
 * a sends, and those that arrive there before the cable's faults apply. */
struct two_hcas *two_hcas_captured(const struct lossy_config *loss, const char *capture);
/* The same with devices of that generation (fw/profile.h), on a cable without faults. */
struct two_hcas *two_hcas_of(const char *profile);
/* The same with CQEs of 128 bytes and queues that ask for data in CQEs, on a cable without
 * faults. */
struct two_hcas *two_hcas_data_in_cqe(void);
void two_hcas_free(struct two_hcas *t);

/* Makes a function-level reset and a new driver. The old objects are gone, whatever their state. */
void node_revive(struct node *node);

/* Unplugs one end for good. */
void node_unplug(struct node *node);

/* Returns len bytes with these rights (enum drv_access): zeroed, or, if seed is not 0, filled with
 * a pattern. */
struct buf *node_buf(struct node *node, size_t len, unsigned access, unsigned seed);
struct drv_sge buf_sge(const struct buf *buf, size_t offset, size_t len);
void fill(uint8_t *ptr, size_t len, unsigned seed);

struct drv_srq *node_srq(struct node *node, unsigned log_size);
/* Makes a QP in RST. srq may be NULL. */
struct drv_qp *node_qp(struct node *node, uint8_t st, struct drv_srq *srq);
/* Takes both QPs to RTS, towards each other. path has the values that are not the default, or is
 * NULL. */
void connect_qps(struct node *na, struct drv_qp *a, struct node *nb, struct drv_qp *b,
                 const struct drv_path *path);
/* The common case: two connected QPs of a service type. */
struct qp_pair {
    struct drv_qp *a, *b;
};
struct qp_pair qp_pair_new(struct two_hcas *t, uint8_t st, const struct drv_path *path);
/* Checks that both devices work: a message arrives on a new connection. */
void ping(struct two_hcas *t);
/* Returns the path from a node to a QP of another node. */
struct drv_path path_to(const struct node *to, const struct drv_qp *qp);

/* Returns the next completion, which must come within 100 virtual seconds. */
struct drv_wc next_wc(struct node *node);
/* The same; the completion must have that opcode and belong to that QP. */
struct drv_wc expect_wc(struct node *node, const struct drv_qp *qp, uint8_t opcode);
/* The same for an error (opcode REQ_ERR or RESP_ERR) with this syndrome. */
void expect_error(struct node *node, const struct drv_qp *qp, uint8_t opcode, uint8_t syndrome);
/* Checks that nothing completes after everything that can be done is done. */
void expect_no_wc(struct two_hcas *t, struct node *node);
void expect_event(struct node *node, uint8_t type, uint32_t num);

uint8_t qp_state(struct drv_qp *qp);

#endif
