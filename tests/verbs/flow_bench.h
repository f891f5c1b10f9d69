/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bench for flows between two hosts in virtual time: raw packet QPs, frames of several kinds, and
 * rules for ibv_create_flow().
 */
#ifndef HCASIM_TESTS_FLOW_BENCH_H
#define HCASIM_TESTS_FLOW_BENCH_H

#include "tests/verbs/verbs_table.h"

#define ROOM 1024

extern struct verbs_table *v;
extern struct ibv_cq *cq[2];
extern struct ibv_mr *mr[2];
extern struct ibv_qp *qp[2]; /* host 0 sends, host 1 receives */

void setup(void);
void teardown(void);

/* The next frame. */
extern uint8_t frame[ROOM];
extern size_t len;

enum kind {
    PLAIN,
    VXLAN, /* VNI 0x123456 */
    GRE,   /* key 0xabcdef01 */
    MPLS,  /* label 77, over Ethernet */
    MPLS_IN_UDP,
    IPV6, /* flow label 0x54321 */
};

void make(enum kind kind);
/* Sends the frame. Returns the bytes that host 1's QP gets; 0: none. */
uint32_t sent(void);

/* A rule without specifications, and one more specification of it. */
struct rule {
    struct ibv_flow_attr attr;
    uint8_t specs[4 * sizeof(struct ibv_flow_spec)];
};
struct rule rule_new(void);
void rule_add(struct rule *rule, const void *spec, size_t size);
#define ADD(rule, type_, spec_type, ...)                                                           \
    do {                                                                                           \
        struct ibv_flow_spec_##type_ spec_ = {                                                     \
            .type = spec_type, .size = sizeof(spec_), __VA_ARGS__};                                \
                                                                                                   \
        rule_add(rule, &spec_, sizeof(spec_));                                                     \
    } while (0)

#define BE32(x) GUINT32_TO_BE(x)
#define BE16(x) GUINT16_TO_BE(x)

#endif
