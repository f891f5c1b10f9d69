/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two connected QPs in one process, each with its own CQ, for programs that test threads and
 * processes; and assertions that any thread may use.
 */
#ifndef HCASIM_TESTS_PROGRAMS_PAIR_H
#define HCASIM_TESTS_PROGRAMS_PAIR_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define DEPTH   16 /* work requests of a queue */
#define MSG     64
#define SECONDS 120 /* time limit for any answer; only a failing test waits that long */

/* Like ck_assert_msg(), but for any thread: a failure ends the program, and Check reports that. */
#define must(condition, ...)                                                                       \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s: ", __func__, __LINE__, #condition);                        \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            abort();                                                                               \
        }                                                                                          \
    } while (0)
/* Fails unless the call returns 0. A call returns 0 or an errno. */
#define must_be_0(call)                                                                            \
    do {                                                                                           \
        int result_ = (call);                                                                      \
                                                                                                   \
        must(result_ == 0, "%s is %d", #call, result_);                                            \
    } while (0)

/* Where the two ends are: both on the first device, or after use_two_devices() each on its own.
 * RDEV_GID_INDEX sets their GID index (1). */
extern struct ibv_device **list;
extern struct ibv_context *ctx[2];
extern struct ibv_pd *pd[2];
void use_two_devices(void);
void device_open(void);
void device_close(void);

double now(void); /* seconds */

/* Calls run(args + i * size) in n threads (i < n), all at once, and waits until every thread has
 * returned. Returns the time when they began, as now() has it. */
#define THREADS_MOST 64
double run_at_once(unsigned n, void (*run)(void *arg), void *args, size_t size);

/* The SRQ, if any, belongs to the second QP; the channels, if any, to the CQs. */
struct pair {
    struct ibv_comp_channel *channel[2];
    struct ibv_cq *cq[2];
    struct ibv_srq *srq;
    struct ibv_qp *qp[2];
    struct ibv_mr *mr[2];
    uint8_t buf[2][DEPTH][MSG];
};
struct pair *pair_new(bool channels, bool srq);
void pair_free(struct pair *p);
/* Makes an RC QP of that end in RESET; all its sends are signaled. */
struct ibv_qp *new_qp(int end, struct ibv_cq *cq, struct ibv_srq *srq);
/* Moves a QP from RESET to RTS, towards a QP of the other end. timeout: as in struct
 * ibv_qp_attr. */
void to_rts(int end, struct ibv_qp *qp, uint32_t dest, uint8_t timeout);
/* The same towards a QP of another process, with this GID. */
void to_rts_towards(struct ibv_qp *qp, const union ibv_gid *gid, uint32_t dest, uint8_t timeout);
void gid_of(int end, union ibv_gid *gid);
/* A UD QP from RESET to RTS, with that Q_Key; an address handle of end 0's own GID. */
#define QKEY 0x5a5a
#define GRH  40 /* bytes before the data of a datagram that was received */
void datagrams_to_rts(struct ibv_qp *qp);
struct ibv_ah *own_address(void);

/* slot: a slot of the end's buffer; it is the wr_id of the completion. */
void post_recv(struct pair *p, int end, unsigned slot);
int try_send(struct pair *p, int end, unsigned slot);
void post_send(struct pair *p, int end, unsigned slot);
/* Return the next completion, which must come within SECONDS. success() also requires success. */
struct ibv_wc completion(struct ibv_cq *cq);
struct ibv_wc success(struct ibv_cq *cq);
/* Sends a numbered message, from post to both completions, and checks the data. */
void message(struct pair *p, int from, unsigned n);

/* Maps private memory, which the test will unmap. The kernel gives other mappings from the top
 * down, so none of them comes to the place of this one meanwhile. */
void *map_far_below(size_t len);

#endif
