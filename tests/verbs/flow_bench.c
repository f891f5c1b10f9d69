/* SPDX-License-Identifier: BSD-2-Clause */
/* A bench for flows: flow_bench.h. */
#include <check.h>
#include <string.h>
#include "guest-lib/verbs/kernel/hca.h"
#include "tests/verbs/flow_bench.h"

struct verbs_table *v;
struct ibv_cq *cq[2];
struct ibv_mr *mr[2];
static bool has_receive; /* one that no frame has taken yet */
struct ibv_qp *qp[2];    /* host 0 sends, host 1 receives */

void setup(void)
{
    v = verbs_table_new();
    has_receive = false;
    for (int i = 0; i < 2; i++) {
        struct ibv_qp_init_attr init = {.cap = {8, 8, 1, 1, 0}, .qp_type = IBV_QPT_RAW_PACKET};

        cq[i] = ibv_create_cq(i ? v->b : v->a, 63, NULL, NULL, 0);
        mr[i] = table_mr_new(v, i);
        init.send_cq = init.recv_cq = cq[i];
        qp[i] = ibv_create_qp(v->hosts->host[i].pd, &init);
        for (int s = IBV_QPS_INIT; s <= IBV_QPS_RTS; s++) {
            struct ibv_qp_attr to = {.qp_state = (enum ibv_qp_state)s, .port_num = 1};

            ck_assert_int_eq(
                ibv_modify_qp(qp[i], &to, IBV_QP_STATE | (s == IBV_QPS_INIT ? IBV_QP_PORT : 0)), 0);
        }
    }
}

void teardown(void)
{
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(ibv_destroy_qp(qp[i]), 0);
        table_mr_free(mr[i]);
        ck_assert_int_eq(ibv_destroy_cq(cq[i]), 0);
        for (size_t type = 0; type < G_N_ELEMENTS(v->hca[i]->flow_tables); type++) {
            ck_assert_ptr_null(v->hca[i]->flow_tables[type]);
        }
    }
    verbs_table_free(v);
}

/* -- frames ------------------------------------------------------------------------------------ */

uint8_t frame[ROOM];
size_t len;

static uint8_t *put(size_t bytes)
{
    len += bytes;
    return frame + len - bytes;
}

static void put_eth(uint16_t type)
{
    uint8_t *at = put(14);

    memcpy(at, v->hosts->host[1].config.mac, 6);
    memcpy(at + 6, v->hosts->host[0].config.mac, 6);
    prm_store16(at + 12, type);
}

static void put_ipv4(uint8_t protocol, size_t more)
{
    uint8_t *at = put(20);

    at[0] = 0x45;
    prm_store16(at + 2, 20 + more);
    at[8] = 64;
    at[9] = protocol;
    prm_store32(at + 12, 0x0a010203);
    prm_store32(at + 16, 0x0a010204);
}

static void put_udp(uint16_t to, size_t more)
{
    uint8_t *at = put(8);

    prm_store16(at, 777);
    prm_store16(at + 2, to);
    prm_store16(at + 4, 8 + more);
}

#define INNER (14 + 20 + 8 + 20)

static void put_inner(void)
{
    put_eth(0x0800);
    put_ipv4(17, 28);
    put_udp(5000, 20);
    memset(put(20), 0x5a, 20);
}

void make(enum kind kind)
{
    memset(frame, 0, sizeof(frame));
    len = 0;
    switch (kind) {
    case PLAIN:
        put_inner();
        break;
    case VXLAN:
        put_eth(0x0800);
        put_ipv4(17, 16 + INNER);
        put_udp(4789, 8 + INNER);
        prm_store32(put(4), 0x08000000);
        prm_store32(put(4), 0x12345600);
        put_inner();
        break;
    case GRE:
        put_eth(0x0800);
        put_ipv4(47, 8 + 20 + 28);
        prm_store32(put(4), 0x20000800);
        prm_store32(put(4), 0xabcdef01);
        put_ipv4(17, 28);
        put_udp(5000, 20);
        put(20);
        break;
    case MPLS:
        put_eth(0x8847);
        prm_store32(put(4), 77u << 12 | 1u << 8 | 64);
        put_ipv4(17, 28);
        put_udp(5000, 20);
        put(20);
        break;
    case MPLS_IN_UDP:
        put_eth(0x0800);
        put_ipv4(17, 8 + 4 + 28);
        put_udp(6635, 4 + 28);
        prm_store32(put(4), 77u << 12 | 1u << 8 | 64);
        put_ipv4(17, 8);
        put_udp(5000, 0);
        break;
    case IPV6:
        put_eth(0x86dd);
        prm_store32(put(4), 0x60054321);
        prm_store32(put(4), 28u << 16 | 17u << 8 | 64);
        put(32);
        put_udp(5000, 20);
        put(20);
        break;
    }
}

/* Sends the frame. Returns the bytes that host 1's QP gets; 0: none. */
uint32_t sent(void)
{
    struct ibv_sge here = {(uintptr_t)mr[0]->addr, (uint32_t)len, mr[0]->lkey};
    struct ibv_sge there = {(uintptr_t)mr[1]->addr, ROOM, mr[1]->lkey};
    struct ibv_recv_wr recv = {.sg_list = &there, .num_sge = 1}, *bad_recv;
    struct ibv_send_wr wr = {.sg_list = &here,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    struct ibv_wc wc;

    memcpy(mr[0]->addr, frame, len);
    if (!has_receive) {
        ck_assert_int_eq(ibv_post_recv(qp[1], &recv, &bad_recv), 0);
    }
    has_receive = true;
    ck_assert_int_eq(ibv_post_send(qp[0], &wr, &bad), 0);
    ck_assert_int_eq(table_wc(v, cq[0]).status, IBV_WC_SUCCESS);
    table_wait(v);
    if (ibv_poll_cq(cq[1], 1, &wc) == 0) {
        return 0;
    }
    has_receive = false;
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    return wc.byte_len;
}

struct rule rule_new(void)
{
    return (struct rule){.attr = {.size = sizeof(struct ibv_flow_attr), .port = 1}};
}

void rule_add(struct rule *rule, const void *spec, size_t size)
{
    memcpy((uint8_t *)rule + rule->attr.size, spec, size);
    rule->attr.size = (uint16_t)(rule->attr.size + size);
    rule->attr.num_of_specs++;
}
