/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Set-up and work that the old and the new programs of this folder share. It uses only calls that
 * verbs.h has with both interfaces. A step that fails ends the program with a line that names it.
 */
#ifndef HCASIM_TESTS_PROGRAMS_MIGRATION_BOTH_H
#define HCASIM_TESTS_PROGRAMS_MIGRATION_BOTH_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ABSENT 77 /* exit status: the device does not have the feature */

#define NEED(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            both_fail(#condition, __FILE__, __LINE__);                                             \
        }                                                                                          \
    } while (0)
void both_fail(const char *what, const char *file, int line) __attribute__((noreturn));

#define BOTH_SECONDS 60    /* for a completion to come */
#define BOTH_BYTES   65536 /* of the buffer */
#define BOTH_HALF    (BOTH_BYTES / 2)
#define BOTH_RIGHTS                                                                                \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |                   \
     IBV_ACCESS_REMOTE_ATOMIC)

/* A device, and the objects that nearly every program needs. Programs send from the first half of
 * the buffer, where byte i is i * 7, to the second half, which is zero. */
struct both {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    uint8_t *buf;
};

/* Opens the n-th device, and makes a PD, a CQ and a region with all of BOTH_RIGHTS. */
struct both both_begin(unsigned n);
union ibv_gid both_gid(struct ibv_context *ctx);
/* An address vector towards the own device. */
struct ibv_ah_attr both_towards_itself(struct ibv_context *ctx);
uint8_t *both_from(const struct both *b);
uint8_t *both_to(const struct both *b);
/* Are the first len bytes of the second half those of the first? */
bool both_same(const struct both *b, size_t len);

/* RC queue pairs in RESET with this CQ for both directions; from RESET to RTS, connected to each
 * other. */
struct ibv_qp *both_rc(const struct both *b, struct ibv_cq *cq);
void both_connect(struct ibv_qp *one, struct ibv_qp *other);
/* The same for a QP that is connected to itself. */
void both_loop(struct ibv_qp *qp);
/* RESET to RTS for a raw packet QP. */
void both_start_raw(struct ibv_qp *qp);

/* Returns the next completion, which must come within BOTH_SECONDS. both_done() needs it to be a
 * success. */
struct ibv_wc both_wait(struct ibv_cq *cq);
struct ibv_wc both_done(struct ibv_cq *cq);

/* Post a receive; a signaled work request of len bytes from the first half to the second half. */
void both_recv(struct ibv_qp *qp, void *to, uint32_t len, uint32_t lkey);
void both_send(struct ibv_qp *qp, void *from, uint32_t len, uint32_t lkey);
void both_write(struct ibv_qp *qp, const void *from, uint32_t len, uint32_t lkey, uint64_t to,
                uint32_t rkey);

/* Sends BOTH_MESSAGES messages by one doorbell to a QP whose CQ is recvs, message i with
 * both_length(i) bytes, and waits for the last acknowledgement. */
#define BOTH_MESSAGES 32
uint32_t both_length(unsigned i);
void both_messages(const struct both *b, struct ibv_cq *recvs);

/* A CQ with a channel, and a QP that is connected to itself. The CQ is to have an event after
 * BOTH_COUNT completions or BOTH_PERIOD microseconds; both_print_events() tries both. */
#define BOTH_COUNT  4
#define BOTH_PERIOD 4000
struct both_moderated {
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
};
struct both_moderated both_moderated(const struct both *b);
void both_print_events(const struct both *b, const struct both_moderated *m);

/* BOTH_HALF bytes of memory that was never touched; how many of its first 2 pages are present;
 * waits until both are. */
uint8_t *both_fresh_pages(void);
unsigned both_present(uint8_t *fresh);
void both_wait_for_pages(uint8_t *fresh);

/* Frames of raw packet QPs. They go from the device 0 to the device 1, whose MAC address is in its
 * first GID. A frame is a header of 14 bytes, of IPv4 20 and UDP 8 bytes, and a payload. */
#define BOTH_FRAME 128
void both_mac(struct ibv_context *ctx, uint8_t mac[6]);
/* Writes such a frame with right lengths and without checksums. */
void both_frame(uint8_t *frame, const struct both *from, const struct both *to, uint16_t port);
/* The checksum of IPv4 and of UDP with its pseudo header; 0 over a header that has the right sum.
 */
uint16_t both_ip_sum(const uint8_t *frame);
uint16_t both_udp_sum(const uint8_t *frame);
/* Sends one frame with a VLAN tag by a raw packet QP of its own, and waits for its completion. */
void both_send_tagged(const struct both *from, const struct both *to);
/* Writes 54 bytes of headers for TCP; prints the length, place and sums of a
 * segment with such headers, and whether its payload is right.
 */
void both_tcp_headers(uint8_t *headers, const struct both *from, const struct both *to);
void both_print_segment(uint32_t len, const uint8_t *segment, const uint8_t *payload);

#endif
