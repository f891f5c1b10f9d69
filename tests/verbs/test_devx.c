/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests DevX: a program makes queues with its own commands, in its own memory, and drives them
 * through memory alone.
 */
#define _GNU_SOURCE
#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "guest-lib/verbs/kernel/devx.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "guest-lib/verbs/kernel/watch.h"
#include "guest-lib/verbs/newer.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

#define LOG_SIZE  4 /* CQ in CQEs, SQ in blocks, RQ in WQEs */
#define RING_SIZE 8192
#define RQ_BYTES  (16u << LOG_SIZE)
#define MSG_SIZE  4096

static struct verbs_table *v;

static void setup(void)
{
    v = verbs_table_new();
}

static void teardown(void)
{
    ck_assert(!local_is_watched(v->hca[0]->local) && !local_is_watched(v->hca[1]->local));
    verbs_table_free(v);
}

/* -- queues that belong to the program --------------------------------------------------------- */

struct side {
    int index;
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_mr *mr;
    struct table_umem cq_ring, qp_ring, cq_dbr, qp_dbr;
    uint8_t *msg;
    struct mlx5dv_devx_uar *uar;
    bool has_uar; /* it has its own doorbell page */
    struct mlx5dv_devx_obj *cq, *qp;
    uint32_t ci, sq_pi, rq_pi;
};

static void *page_alloc(size_t size)
{
    size_t whole = hv_whole_pages(size);

    return memset(aligned_alloc(PCI_PAGE, whole), 0, whole);
}

static struct prm_cqe64 *cqe_at(const struct side *s, uint32_t i)
{
    struct prm_cqe64 *ring = (void *)s->cq_ring.ptr;

    return &ring[i & ((1u << LOG_SIZE) - 1)];
}

static struct mlx5dv_devx_obj *create_cq(struct side *s)
{
    struct prm_create_cq_in in[1] = {0};
    struct prm_create_cq_out out[1] = {0};
    struct prm_cqc *cqc = PRM_PTR(create_cq_in, in, cq_context);
    uint32_t eqn;

    ck_assert_int_eq(hv_dv_devx_query_eqn(s->ctx, 0, &eqn), 0);
    for (unsigned i = 0; i < 1u << LOG_SIZE; i++) {
        PRM_SET(cqe64, cqe_at(s, i), opcode, PRM_CQE_OPCODE_INVALID);
        PRM_SET(cqe64, cqe_at(s, i), owner, 1);
    }
    PRM_SET(create_cq_in, in, opcode, PRM_CMD_OP_CREATE_CQ);
    PRM_SET(create_cq_in, in, cq_umem_id, s->cq_ring.umem->umem_id);
    PRM_SET(cqc, cqc, log_cq_size, LOG_SIZE);
    PRM_SET(cqc, cqc, uar_page, s->uar->page_id);
    PRM_SET(cqc, cqc, c_eqn_or_apu_element, eqn);
    PRM_SET(cqc, cqc, dbr_umem_id, s->cq_dbr.umem->umem_id);
    return hv_dv_devx_obj_create(s->ctx, in, sizeof(in), out, sizeof(out));
}

static struct mlx5dv_devx_obj *create_qp(struct side *s)
{
    struct prm_create_qp_in in[1] = {0};
    struct prm_create_qp_out out[1] = {0};
    struct prm_qpc *qpc = PRM_PTR(create_qp_in, in, qpc);

    PRM_SET(create_qp_in, in, opcode, PRM_CMD_OP_CREATE_QP);
    PRM_SET(create_qp_in, in, wq_umem_id, s->qp_ring.umem->umem_id);
    PRM_SET(qpc, qpc, st, PRM_QP_ST_RC);
    PRM_SET(qpc, qpc, pm_state, 3);
    PRM_SET(qpc, qpc, pd, hv_pd(s->pd)->pdn);
    PRM_SET(qpc, qpc, uar_page, s->uar->page_id);
    PRM_SET(qpc, qpc, log_sq_size, LOG_SIZE);
    PRM_SET(qpc, qpc, log_rq_size, LOG_SIZE);
    PRM_SET(qpc, qpc, cqn_snd, s->cq->id);
    PRM_SET(qpc, qpc, cqn_rcv, s->cq->id);
    PRM_SET(qpc, qpc, dbr_umem_id, s->qp_dbr.umem->umem_id);
    return hv_dv_devx_obj_create(s->ctx, in, sizeof(in), out, sizeof(out));
}

/* uar: another side's doorbell page; NULL: a page of its own. */
static struct side *side_new_on(int index, struct mlx5dv_devx_uar *uar)
{
    struct side *s = g_new0(struct side, 1);

    s->index = index;
    s->ctx = index ? v->b : v->a;
    s->pd = ibv_alloc_pd(s->ctx);
    s->msg = page_alloc(MSG_SIZE);
    s->mr = ibv_reg_mr(s->pd, s->msg, MSG_SIZE, IBV_ACCESS_LOCAL_WRITE);
    s->has_uar = !uar;
    s->uar = uar ? uar : hv_dv_devx_alloc_uar(s->ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
    s->cq_ring = table_umem_new(s->ctx, RING_SIZE);
    s->qp_ring = table_umem_new(s->ctx, RING_SIZE);
    s->cq_dbr = table_umem_new(s->ctx, 64);
    s->qp_dbr = table_umem_new(s->ctx, 64);
    s->cq = create_cq(s);
    ck_assert_ptr_nonnull(s->cq);
    s->qp = create_qp(s);
    ck_assert_ptr_nonnull(s->qp);
    return s;
}

static struct side *side_new(int index)
{
    return side_new_on(index, NULL);
}

static void side_free(struct side *s)
{
    ck_assert_int_eq(hv_dv_devx_obj_destroy(s->qp), 0);
    ck_assert_int_eq(hv_dv_devx_obj_destroy(s->cq), 0);
    table_umem_free(&s->qp_dbr);
    table_umem_free(&s->cq_dbr);
    table_umem_free(&s->qp_ring);
    table_umem_free(&s->cq_ring);
    if (s->has_uar) {
        hv_dv_devx_free_uar(s->uar);
    }
    ck_assert_int_eq(ibv_dereg_mr(s->mr), 0);
    free(s->msg);
    ck_assert_int_eq(ibv_dealloc_pd(s->pd), 0);
    g_free(s);
}

/* Executes one transition, with a context that the caller fills in. */
static void transition(struct side *s, uint16_t opcode, const struct prm_qpc *qpc)
{
    struct prm_rts2rts_qp_in in[1] = {0};
    struct prm_rts2rts_qp_out out[1] = {0};

    PRM_SET(rts2rts_qp_in, in, opcode, opcode);
    PRM_SET(rts2rts_qp_in, in, qpn, s->qp->id);
    memcpy(PRM_PTR(rts2rts_qp_in, in, qpc), qpc, PRM_SIZE(qpc));
    ck_assert_int_eq(hv_dv_devx_obj_modify(s->qp, in, sizeof(in), out, sizeof(out)), 0);
}

static void to_rts(struct side *s, const struct side *peer)
{
    const struct hv_port_config *to = &v->hosts->host[peer->index].config;
    struct prm_qpc qpc[1] = {0};
    struct prm_ads *ads = PRM_PTR(qpc, qpc, primary_address_path);

    PRM_SET(qpc, qpc, pm_state, 3);
    PRM_SET(ads, ads, vhca_port_num, 1);
    transition(s, PRM_CMD_OP_RST2INIT_QP, qpc);
    PRM_SET(qpc, qpc, log_msg_max, 30);
    PRM_SET(qpc, qpc, mtu, 3);
    PRM_SET(qpc, qpc, remote_qpn, peer->qp->id);
    PRM_SET(qpc, qpc, min_rnr_nak, 1);
    PRM_SET(ads, ads, hop_limit, 64);
    PRM_SET(ads, ads, src_addr_index, 1);
    PRM_SET(ads, ads, udp_sport, 0xdcba);
    memcpy(PRM_PTR(ads, ads, rgid_rip), to->gid[1].raw, 16);
    PRM_SET(ads, ads, rmac_47_32, prm_load16(to->mac));
    PRM_SET(ads, ads, rmac_31_0, prm_load32(to->mac + 2));
    transition(s, PRM_CMD_OP_INIT2RTR_QP, qpc);
    memset(qpc, 0, sizeof(qpc));
    PRM_SET(qpc, qpc, pm_state, 3);
    PRM_SET(ads, ads, vhca_port_num, 1);
    PRM_SET(ads, ads, ack_timeout, 14);
    PRM_SET(qpc, qpc, retry_count, 7);
    PRM_SET(qpc, qpc, rnr_retry, 7);
    transition(s, PRM_CMD_OP_RTR2RTS_QP, qpc);
}

/* -- driving them ------------------------------------------------------------------------------ */

static void data_seg(struct prm_wqe_data_seg *seg, const struct side *s, uint32_t len)
{
    PRM_SET(wqe_data_seg, seg, byte_count, len);
    PRM_SET(wqe_data_seg, seg, lkey, s->mr->lkey);
    PRM_SET(wqe_data_seg, seg, addr, (uintptr_t)s->msg);
}

static void post_recv(struct side *s)
{
    struct prm_wqe_data_seg *ring = (void *)s->qp_ring.ptr;

    data_seg(&ring[s->rq_pi++ & ((1u << LOG_SIZE) - 1)], s, MSG_SIZE);
    prm_store32(s->qp_dbr.ptr, s->rq_pi);
}

static struct prm_wqe_ctrl_seg *send_slot(const struct side *s, uint32_t index)
{
    return (void *)(s->qp_ring.ptr + RQ_BYTES + (index & ((1u << LOG_SIZE) - 1)) * 64u);
}

/* Makes one store, as a program does. */
static void store8(void *to, const void *value)
{
    uint64_t word;

    memcpy(&word, value, sizeof(word));
    __atomic_store_n((uint64_t *)to, word, __ATOMIC_RELEASE);
}

/* Rings for the last WQE, at that offset of a mapping of the doorbell page. */
static void ring_at(const struct side *s, void *page, uint32_t reg)
{
    store8((uint8_t *)page + reg, send_slot(s, s->sq_pi - 1));
}

/* Writes a WQE and the record, and rings if doorbell is true. */
static void post_send(struct side *s, uint32_t len, uint32_t imm, bool doorbell)
{
    struct prm_wqe_ctrl_seg *wqe = send_slot(s, s->sq_pi);

    memset(wqe, 0, 64);
    PRM_SET(wqe_ctrl_seg, wqe, opcode, PRM_WQE_OPCODE_SEND_IMM);
    PRM_SET(wqe_ctrl_seg, wqe, wqe_index, s->sq_pi & 0xffff);
    PRM_SET(wqe_ctrl_seg, wqe, qpn, s->qp->id);
    PRM_SET(wqe_ctrl_seg, wqe, ds, 2);
    PRM_SET(wqe_ctrl_seg, wqe, fm_ce_se, 8);
    PRM_SET(wqe_ctrl_seg, wqe, imm, imm);
    data_seg((void *)(wqe + 1), s, len);
    s->sq_pi++;
    prm_store32(s->qp_dbr.ptr + 4, s->sq_pi & 0xffff);
    if (doorbell) {
        ring_at(s, s->uar->base_addr, PRM_OFFSET(uar, blue_flame));
    }
}

/* Writes the arm word and the doorbell. */
static void arm(struct side *s, unsigned sn)
{
    uint8_t doorbell[8];

    prm_store32(doorbell, sn << 28 | s->ci);
    prm_store32(doorbell + 4, s->cq->id);
    memcpy(s->cq_dbr.ptr + 4, doorbell, 4);
    store8((uint8_t *)s->uar->base_addr + PRM_OFFSET(uar, cq_db), doorbell);
}

/* Lets both HCAs run, which check the doorbell pages. */
static void settle(void)
{
    table_wait(v);
}

/* Returns the next CQE, or NULL. */
static const struct prm_cqe64 *poll_cqe(struct side *s)
{
    const struct prm_cqe64 *cqe = cqe_at(s, s->ci);

    if (PRM_GET(cqe64, cqe, opcode) == PRM_CQE_OPCODE_INVALID ||
        PRM_GET(cqe64, cqe, owner) != (s->ci >> LOG_SIZE & 1)) {
        return NULL;
    }
    s->ci++;
    prm_store32(s->cq_dbr.ptr, s->ci & 0xffffff);
    return cqe;
}

START_TEST(a_program_drives_its_own_queues_by_memory_alone)
{
    struct side *a = side_new(0), *b = side_new(1);

    to_rts(a, b);
    to_rts(b, a);
    /* several times around each ring */
    for (uint32_t i = 0; i < 100; i++) {
        const struct prm_cqe64 *cqe;

        for (unsigned at = 0; at < MSG_SIZE; at++) {
            a->msg[at] = (uint8_t)(at * (i + 1) + i);
        }
        post_recv(b);
        post_send(a, MSG_SIZE, i, true);
        settle();
        cqe = poll_cqe(a);
        ck_assert_ptr_nonnull(cqe);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, opcode), PRM_CQE_OPCODE_REQ);
        cqe = poll_cqe(b);
        ck_assert_ptr_nonnull(cqe);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, opcode), PRM_CQE_OPCODE_RESP_SEND_IMM);
        ck_assert_uint_eq(PRM_GET(cqe64, cqe, imm_inval_pkey), i);
        ck_assert_mem_eq(a->msg, b->msg, MSG_SIZE);
    }
    side_free(a);
    side_free(b);
}
END_TEST

/* -- doorbells --------------------------------------------------------------------------------- */

/* Two pairs whose senders share one doorbell page. */
struct pairs {
    struct side *a, *b, *c, *d;
};

static struct pairs pairs_new(void)
{
    struct pairs p = {.a = side_new(0), .b = side_new(1), .d = side_new(1)};

    p.c = side_new_on(0, p.a->uar);
    to_rts(p.a, p.b);
    to_rts(p.b, p.a);
    to_rts(p.c, p.d);
    to_rts(p.d, p.c);
    return p;
}

static void pairs_free(struct pairs *p)
{
    side_free(p->c);
    side_free(p->a);
    side_free(p->b);
    side_free(p->d);
}

/* The second doorbell is stored to the same register before anybody has read the first. */
START_TEST(no_doorbell_hides_another)
{
    struct pairs p = pairs_new();

    for (unsigned i = 0; i < 10; i++) {
        post_recv(p.b);
        post_recv(p.d);
        post_send(p.a, 8, 1, true);
        post_send(p.c, 8, 2, true);
        settle();
        ck_assert_ptr_nonnull(poll_cqe(p.b));
        ck_assert_ptr_nonnull(poll_cqe(p.d));
    }
    pairs_free(&p);
}
END_TEST

/* Nobody reads the record of the queue. */
START_TEST(a_store_to_the_page_rings_without_a_record)
{
    struct side *a = side_new(0), *b = side_new(1);

    to_rts(a, b);
    to_rts(b, a);
    hv_watch_forget(v->hca[0], a->qp);
    /* either half of each of the page's four BlueFlame registers */
    for (uint32_t reg = PRM_OFFSET(uar, blue_flame); reg < PCI_PAGE; reg += 0x100) {
        post_recv(b);
        post_send(a, 8, reg, false);
        settle();
        ck_assert_ptr_null(poll_cqe(b));
        ring_at(a, a->uar->base_addr, reg);
        settle();
        ck_assert_ptr_nonnull(poll_cqe(b));
    }
    /* BlueFlame: the whole WQE */
    post_recv(b);
    post_send(a, 8, 0, false);
    for (unsigned at = 0; at < 64; at += 8) {
        store8((uint8_t *)a->uar->reg_addr + at, (uint8_t *)send_slot(a, a->sq_pi - 1) + at);
    }
    settle();
    ck_assert_ptr_nonnull(poll_cqe(b));
    side_free(a);
    side_free(b);
}
END_TEST

/* The doorbell page is shared: another process may get it by fork(), or through the context's
 * descriptor, as with uverbs. */
START_TEST(another_process_may_ring)
{
    struct side *a = side_new(0), *b = side_new(1);

    to_rts(a, b);
    to_rts(b, a);
    for (unsigned by_descriptor = 0; by_descriptor < 2; by_descriptor++) {
        int status;
        pid_t child;

        post_recv(b);
        post_send(a, 8, 0, false);
        child = fork();
        if (child == 0) {
            void *page = by_descriptor ? mmap(NULL, PCI_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
                                              a->ctx->cmd_fd, a->uar->mmap_off)
                                       : a->uar->base_addr;

            if (page == MAP_FAILED) {
                _exit(1);
            }
            ring_at(a, page, PRM_OFFSET(uar, blue_flame) + 0x100);
            _exit(0);
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_int_eq(status, 0);
        settle();
        ck_assert_ptr_nonnull(poll_cqe(b));
    }
    /* nobody can remove the memory */
    ck_assert_int_eq(ftruncate(a->ctx->cmd_fd, 0), -1);
    side_free(a);
    side_free(b);
}
END_TEST

/* A program that resets its QP need not clear the record. It posts as much as before, so the record
 * does not change. */
START_TEST(after_a_reset_the_same_counter_rings)
{
    struct side *a = side_new(0), *b = side_new(1);

    for (unsigned i = 0; i < 3; i++) {
        struct prm_qpc none[1] = {0};

        to_rts(a, b);
        to_rts(b, a);
        settle();
        ck_assert_ptr_null(poll_cqe(a)); /* nothing has been posted yet */
        post_recv(b);
        post_send(a, 8, i, true);
        ck_assert_uint_eq(a->sq_pi, 1);
        settle();
        ck_assert_ptr_nonnull(poll_cqe(a));
        ck_assert_ptr_nonnull(poll_cqe(b));
        transition(a, PRM_CMD_OP_2ERR_QP, none);
        transition(a, PRM_CMD_OP_2RST_QP, none);
        transition(b, PRM_CMD_OP_2RST_QP, none);
        a->sq_pi = b->rq_pi = 0;
    }
    side_free(a);
    side_free(b);
}
END_TEST

/* On a card, memory that a program unmaps was pinned. Here it is gone, and the queue's doorbells
 * still work. */
START_TEST(a_record_that_is_unmapped_ends_nobody)
{
    struct side *a = side_new(0);
    uint8_t *record =
        mmap(NULL, PCI_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    hv_watch_forget(v->hca[0], a->cq);
    ck_assert_int_eq(hv_watch_queue(hv_context(a->ctx), a->cq, HV_WATCH_CQ, a->cq->id,
                                    a->uar->page_id, (uint32_t *)record),
                     0);
    ck_assert_int_eq(munmap(record, PCI_PAGE), 0);
    for (unsigned i = 0; i < 100; i++) {
        /* gives the HCA a reason to look */
        ring_at(a, a->uar->base_addr, PRM_OFFSET(uar, blue_flame));
        settle();
    }
    side_free(a);
}
END_TEST

/* -- rules ------------------------------------------------------------------------------------- */

/* devx.c of mlx5_ib: creating, modifying, querying and other commands have their own calls. */
START_TEST(each_call_has_its_own_commands)
{
    struct prm_query_hca_cap_in in[1] = {0};
    struct prm_query_qp_in *query_qp = (void *)in; /* a structure of the same length */
    struct prm_query_hca_cap_out out[1] = {0};
    struct side *s = side_new(0);

    PRM_SET(query_hca_cap_in, in, opcode, PRM_CMD_OP_QUERY_HCA_CAP);
    ck_assert_int_eq(hv_dv_devx_general_cmd(s->ctx, in, sizeof(in), out, sizeof(out)), 0);
    ck_assert_int_eq(hv_dv_devx_obj_query(s->qp, in, sizeof(in), out, sizeof(out)), EINVAL);
    ck_assert_ptr_null(hv_dv_devx_obj_create(s->ctx, in, sizeof(in), out, sizeof(out)));
    ck_assert_int_eq(errno, EINVAL);
    PRM_SET(query_qp_in, query_qp, opcode, PRM_CMD_OP_QUERY_QP);
    PRM_SET(query_qp_in, query_qp, qpn, s->qp->id);
    ck_assert_int_eq(hv_dv_devx_general_cmd(s->ctx, in, sizeof(in), out, sizeof(out)), EINVAL);
    ck_assert_int_eq(hv_dv_devx_obj_modify(s->qp, in, sizeof(in), out, sizeof(out)), EINVAL);
    ck_assert_int_eq(hv_dv_devx_obj_query(s->qp, in, sizeof(in), out, sizeof(out)), 0);
    /* ENABLE_HCA and similar commands are reserved for the kernel */
    PRM_SET(query_hca_cap_in, in, opcode, PRM_CMD_OP_TEARDOWN_HCA);
    ck_assert_int_eq(hv_dv_devx_general_cmd(s->ctx, in, sizeof(in), out, sizeof(out)), EINVAL);
    side_free(s);
}
END_TEST

START_TEST(a_command_is_about_the_object_that_the_call_names)
{
    struct prm_query_qp_in in[1] = {0};
    struct prm_query_qp_out out[1] = {0};
    struct side *s = side_new(0), *other = side_new(0);

    PRM_SET(query_qp_in, in, opcode, PRM_CMD_OP_QUERY_QP);
    PRM_SET(query_qp_in, in, qpn, other->qp->id);
    ck_assert_int_eq(hv_dv_devx_obj_query(s->qp, in, sizeof(in), out, sizeof(out)), EINVAL);
    PRM_SET(query_qp_in, in, qpn, s->qp->id);
    ck_assert_int_eq(hv_dv_devx_obj_query(s->cq, in, sizeof(in), out, sizeof(out)), EINVAL);
    ck_assert_int_eq(hv_dv_devx_obj_query(s->qp, in, sizeof(in), out, sizeof(out)), 0);
    ck_assert_uint_eq(PRM_GET(qpc, PRM_PTR(query_qp_out, out, qpc), cqn_snd), s->cq->id);
    /* inputs and outputs need room for their headers */
    ck_assert_int_eq(hv_dv_devx_obj_query(s->qp, in, 15, out, sizeof(out)), EINVAL);
    ck_assert_int_eq(hv_dv_devx_obj_query(s->qp, in, sizeof(in), out, 15), EINVAL);
    side_free(s);
    side_free(other);
}
END_TEST

/* A table is named also by its type, a group by its table, an entry by both and by its index, which
 * the program chose. The commands that destroy them contain all of that. */
START_TEST(objects_of_steering_end_as_they_were_named)
{
    struct prm_create_flow_table_in table_in[1] = {0};
    struct prm_create_flow_table_out table_out[1] = {0};
    struct prm_create_flow_group_in group_in[1] = {0};
    struct prm_create_flow_group_out group_out[1] = {0};
    struct prm_set_fte_in entry_in[1] = {0};
    struct prm_set_fte_out entry_out[1] = {0};
    struct prm_flow_context *entry = PRM_PTR(set_fte_in, entry_in, flow_context);
    struct mlx5dv_devx_obj *table, *group, *rule;

    PRM_SET(create_flow_table_in, table_in, opcode, PRM_CMD_OP_CREATE_FLOW_TABLE);
    PRM_SET(create_flow_table_in, table_in, table_type, PRM_FLOW_TABLE_TYPE_NIC_RX);
    PRM_SET(flow_table_context, PRM_PTR(create_flow_table_in, table_in, flow_table_context),
            log_size, 3);
    table = hv_dv_devx_obj_create(v->a, table_in, sizeof(table_in), table_out, sizeof(table_out));
    ck_assert_ptr_nonnull(table);
    PRM_SET(create_flow_group_in, group_in, opcode, PRM_CMD_OP_CREATE_FLOW_GROUP);
    PRM_SET(create_flow_group_in, group_in, table_type, PRM_FLOW_TABLE_TYPE_NIC_RX);
    PRM_SET(create_flow_group_in, group_in, table_id,
            PRM_GET(create_flow_table_out, table_out, table_id));
    PRM_SET(create_flow_group_in, group_in, start_flow_index, 2);
    PRM_SET(create_flow_group_in, group_in, end_flow_index, 5);
    group = hv_dv_devx_obj_create(v->a, group_in, sizeof(group_in), group_out, sizeof(group_out));
    ck_assert_ptr_nonnull(group);
    PRM_SET(set_fte_in, entry_in, opcode, PRM_CMD_OP_SET_FLOW_TABLE_ENTRY);
    PRM_SET(set_fte_in, entry_in, table_type, PRM_FLOW_TABLE_TYPE_NIC_RX);
    PRM_SET(set_fte_in, entry_in, table_id, PRM_GET(create_flow_table_out, table_out, table_id));
    PRM_SET(set_fte_in, entry_in, flow_index, 4);
    PRM_SET(flow_context, entry, group_id, PRM_GET(create_flow_group_out, group_out, group_id));
    PRM_SET(flow_context, entry, action, PRM_FLOW_ACTION_DROP);
    rule = hv_dv_devx_obj_create(v->a, entry_in, sizeof(entry_in), entry_out, sizeof(entry_out));
    ck_assert_ptr_nonnull(rule);
    /* an object in use stays */
    ck_assert_int_ne(hv_dv_devx_obj_destroy(group), 0);
    ck_assert_int_eq(hv_dv_devx_obj_destroy(rule), 0);
    ck_assert_int_eq(hv_dv_devx_obj_destroy(group), 0);
    ck_assert_int_eq(hv_dv_devx_obj_destroy(table), 0);
}
END_TEST

/* UCX makes an XRQ fetch over DC with this command, which changes the XRQ and no other object. */
START_TEST(an_xrq_gets_the_parameters_to_fetch_over_dc)
{
    struct prm_create_xrq_in create[1] = {0};
    struct prm_create_xrq_out created[1] = {0};
    struct prm_set_xrq_dc_params_entry_in in[1] = {0};
    struct prm_set_xrq_dc_params_entry_out out[1] = {0};
    struct prm_xrqc *xrqc = PRM_PTR(create_xrq_in, create, xrq_context);
    struct prm_wq *wq = PRM_PTR(xrqc, xrqc, wq);
    struct side *s = side_new(0);
    struct table_umem ring = table_umem_new(s->ctx, PCI_PAGE), dbr = table_umem_new(s->ctx, 64);
    struct mlx5dv_devx_obj *xrq;

    PRM_SET(create_xrq_in, create, opcode, PRM_CMD_OP_CREATE_XRQ);
    PRM_SET(xrqc, xrqc, topology, PRM_XRQC_TOPOLOGY_TAG_MATCHING);
    PRM_SET(xrqc, xrqc, offload, PRM_XRQC_OFFLOAD_RNDV);
    PRM_SET(xrqc, xrqc, dc, 1);
    PRM_SET(xrqc, xrqc, cqn, s->cq->id);
    PRM_SET(wq, wq, log_wq_stride, 6);
    PRM_SET(wq, wq, log_wq_sz, LOG_SIZE);
    PRM_SET(wq, wq, pd, hv_pd(s->pd)->pdn);
    PRM_SET(wq, wq, wq_umem_id, ring.umem->umem_id);
    PRM_SET(wq, wq, dbr_umem_id, dbr.umem->umem_id);
    xrq = hv_dv_devx_obj_create(s->ctx, create, sizeof(create), created, sizeof(created));
    ck_assert_ptr_nonnull(xrq);
    PRM_SET(set_xrq_dc_params_entry_in, in, opcode, PRM_CMD_OP_SET_XRQ_DC_PARAMS_ENTRY);
    PRM_SET(set_xrq_dc_params_entry_in, in, xrqn, xrq->id);
    PRM_SET(set_xrq_dc_params_entry_in, in, mtu, PRM_QP_MTU_1024);
    ck_assert_int_eq(hv_dv_devx_obj_modify(s->cq, in, sizeof(in), out, sizeof(out)), EINVAL);
    ck_assert_int_eq(hv_dv_devx_obj_query(xrq, in, sizeof(in), out, sizeof(out)), EINVAL);
    ck_assert_int_eq(hv_dv_devx_obj_modify(xrq, in, sizeof(in), out, sizeof(out)), 0);
    PRM_SET(set_xrq_dc_params_entry_in, in, mtu, 7);
    ck_assert_int_eq(hv_dv_devx_obj_modify(xrq, in, sizeof(in), out, sizeof(out)), EREMOTEIO);
    ck_assert_int_eq(hv_dv_devx_obj_destroy(xrq), 0);
    table_umem_free(&ring);
    table_umem_free(&dbr);
    side_free(s);
}
END_TEST

/* mlx5_cmd_do(): if the device refuses, the result is EREMOTEIO, and the device's answer is
 * returned. */
START_TEST(what_the_device_refuses_comes_back_with_its_reason)
{
    struct prm_create_cq_in in[1] = {0};
    struct prm_create_cq_out out[1] = {0};

    PRM_SET(create_cq_in, in, opcode, PRM_CMD_OP_CREATE_CQ);
    PRM_SET(create_cq_in, in, cq_umem_id, 0x123456);
    ck_assert_ptr_null(hv_dv_devx_obj_create(v->a, in, sizeof(in), out, sizeof(out)));
    ck_assert_int_eq(errno, EREMOTEIO);
    ck_assert_uint_ne(PRM_GET(create_cq_out, out, status), PRM_CMD_STATUS_OK);
    ck_assert_uint_ne(PRM_GET(create_cq_out, out, syndrome), 0);
    /* no object of a general type exists */
    PRM_SET(create_cq_in, in, opcode, PRM_CMD_OP_CREATE_GENERAL_OBJECT);
    ck_assert_ptr_null(hv_dv_devx_obj_create(v->a, in, sizeof(in), out, sizeof(out)));
    ck_assert_int_eq(errno, EREMOTEIO);
}
END_TEST

START_TEST(a_umem_that_is_not_there_is_refused)
{
    uint8_t *page = page_alloc(4096);

    ck_assert_ptr_null(hv_dv_devx_umem_reg(v->a, (void *)64, 4096, IBV_ACCESS_LOCAL_WRITE));
    ck_assert_int_eq(errno, EFAULT);
    ck_assert_ptr_null(hv_dv_devx_umem_reg(v->a, page, 0, IBV_ACCESS_LOCAL_WRITE));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(hv_dv_devx_umem_reg(v->a, page, 64, IBV_ACCESS_MW_BIND));
    ck_assert_int_eq(errno, EINVAL);
    free(page);
}
END_TEST

/* ib_umem_get() pins for writing the memory that the device may write. */
START_TEST(a_umem_that_is_written_is_writable)
{
    uint8_t *page = mmap(NULL, PCI_PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct mlx5dv_devx_umem *umem;

    ck_assert_ptr_null(hv_dv_devx_umem_reg(v->a, page, PCI_PAGE, IBV_ACCESS_LOCAL_WRITE));
    ck_assert_int_eq(errno, EFAULT);
    umem = hv_dv_devx_umem_reg(v->a, page, PCI_PAGE, 0);
    ck_assert_ptr_nonnull(umem);
    ck_assert_int_eq(hv_dv_devx_umem_dereg(umem), 0);
    munmap(page, PCI_PAGE);
}
END_TEST

/* A umem that contains a ring cannot be deregistered. */
START_TEST(a_umem_in_use_stays)
{
    struct side *s = side_new(0);

    ck_assert_int_ne(hv_dv_devx_umem_dereg(s->cq_ring.umem), 0);
    side_free(s);
}
END_TEST

/* -- channels ---------------------------------------------------------------------------------- */

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

START_TEST(an_answer_waits_in_its_channel)
{
    struct prm_query_qp_in in[1] = {0};
    uint64_t answer[(sizeof(struct mlx5dv_devx_async_cmd_hdr) + PRM_SIZE(query_qp_out)) / 8];
    struct mlx5dv_devx_async_cmd_hdr *hdr = (struct mlx5dv_devx_async_cmd_hdr *)answer;
    struct mlx5dv_devx_cmd_comp *comp = hv_dv_devx_create_cmd_comp(v->a);
    struct side *s = side_new(0);
    const struct prm_query_qp_out *out = (const void *)hdr->out_data;
    size_t size = sizeof(struct mlx5dv_devx_async_cmd_hdr) + PRM_SIZE(query_qp_out);

    ck_assert_ptr_nonnull(comp);
    ck_assert(!readable(comp->fd));
    PRM_SET(query_qp_in, in, opcode, PRM_CMD_OP_QUERY_QP);
    PRM_SET(query_qp_in, in, qpn, s->qp->id);
    ck_assert_int_eq(hv_dv_devx_obj_query_async(s->qp, in, sizeof(in), PRM_SIZE(query_qp_out),
                                                0x1234567890, comp),
                     0);
    ck_assert(readable(comp->fd));
    /* too small a buffer: ENOSPC, and the answer stays */
    ck_assert_int_eq(hv_dv_devx_get_async_cmd_comp(comp, hdr, 16), ENOSPC);
    ck_assert(readable(comp->fd));
    ck_assert_int_eq(hv_dv_devx_get_async_cmd_comp(comp, hdr, size), 0);
    ck_assert_uint_eq(hdr->wr_id, 0x1234567890);
    ck_assert_uint_eq(PRM_GET(qpc, PRM_PTR(query_qp_out, out, qpc), cqn_snd), s->cq->id);
    ck_assert(!readable(comp->fd));
    side_free(s);
    hv_dv_devx_destroy_cmd_comp(comp);
}
END_TEST

START_TEST(completions_are_events_of_a_cq)
{
    uint64_t message[(sizeof(struct mlx5dv_devx_async_event_hdr) + PRM_SIZE(eqe)) / 8];
    struct mlx5dv_devx_async_event_hdr *hdr = (struct mlx5dv_devx_async_event_hdr *)message;
    struct mlx5dv_devx_event_channel *channel = hv_dv_devx_create_event_channel(v->b, 0);
    const struct prm_eqe *eqe = (const void *)hdr->out_data;
    const struct prm_comp_event *data = (const void *)PRM_PTR(eqe, eqe, event_data);
    uint16_t comp[] = {PRM_EVENT_TYPE_COMP};
    struct side *a = side_new(0), *b = side_new(1);
    int fd = eventfd(0, EFD_NONBLOCK);
    uint64_t count;

    ck_assert_int_eq(hv_dv_devx_subscribe_devx_event(channel, b->cq, sizeof(comp), comp, 0xc00c1e),
                     0);
    ck_assert_int_eq(hv_dv_devx_subscribe_devx_event_fd(channel, fd, b->cq, comp[0]), 0);
    to_rts(a, b);
    to_rts(b, a);
    arm(b, 1);
    post_recv(b);
    post_send(a, 8, 0, true);
    settle();
    ck_assert(readable(channel->fd));
    ck_assert_int_eq(hv_dv_devx_get_event(channel, hdr, 8), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(hv_dv_devx_get_event(channel, hdr, sizeof(message)), sizeof(message));
    ck_assert_uint_eq(hdr->cookie, 0xc00c1e);
    ck_assert_uint_eq(PRM_GET(comp_event, data, cq_number), b->cq->id);
    ck_assert_int_eq(read(fd, &count, sizeof(count)), sizeof(count));
    ck_assert_uint_eq(count, 1);
    close(fd);
    side_free(a);
    side_free(b);
    hv_dv_devx_destroy_event_channel(channel);
}
END_TEST

/* The first arm, for any completion from the first on, writes a 0 where a 0 was, so only the page
 * shows it. Two CQs are armed before anybody reads. */
START_TEST(the_first_arm_of_each_cq_is_noticed)
{
    struct pairs p = pairs_new();
    struct side *armed[] = {p.a, p.c};
    uint16_t comp[] = {PRM_EVENT_TYPE_COMP};
    struct mlx5dv_devx_event_channel *channel[2];

    for (unsigned i = 0; i < 2; i++) {
        channel[i] = hv_dv_devx_create_event_channel(v->a, 0);
        ck_assert_int_eq(
            hv_dv_devx_subscribe_devx_event(channel[i], armed[i]->cq, sizeof(comp), comp, i), 0);
        arm(armed[i], 0);
        ck_assert_uint_eq(prm_load32(armed[i]->cq_dbr.ptr + 4), 0);
    }
    settle();
    post_recv(p.b);
    post_recv(p.d);
    post_send(p.a, 8, 0, true);
    post_send(p.c, 8, 0, true);
    settle();
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_msg(readable(channel[i]->fd), "CQ %u", i);
    }
    pairs_free(&p);
    for (unsigned i = 0; i < 2; i++) {
        hv_dv_devx_destroy_event_channel(channel[i]);
    }
}
END_TEST

/* A CQ that was never armed raises no event because of its neighbours' send doorbells. */
START_TEST(a_cq_that_is_not_armed_is_silent)
{
    struct pairs p = pairs_new();
    uint16_t comp[] = {PRM_EVENT_TYPE_COMP};
    struct mlx5dv_devx_event_channel *channel = hv_dv_devx_create_event_channel(v->a, 0);

    ck_assert_int_eq(hv_dv_devx_subscribe_devx_event(channel, p.a->cq, sizeof(comp), comp, 0), 0);
    post_recv(p.b);
    post_recv(p.d);
    post_send(p.a, 8, 0, true);
    post_send(p.c, 8, 0, true);
    settle();
    ck_assert_ptr_nonnull(poll_cqe(p.a));
    ck_assert(!readable(channel->fd));
    pairs_free(&p);
    hv_dv_devx_destroy_event_channel(channel);
}
END_TEST

/* devx_async_event_file: without data, an event that already waits is not queued again. */
START_TEST(without_data_events_of_a_kind_are_one)
{
    struct mlx5dv_devx_async_event_hdr hdr;
    struct mlx5dv_devx_event_channel *channel =
        hv_dv_devx_create_event_channel(v->a, MLX5DV_DEVX_CREATE_EVENT_CHANNEL_FLAGS_OMIT_EV_DATA);
    uint16_t comp[] = {PRM_EVENT_TYPE_COMP};
    struct side *s = side_new(0);
    struct drv_event event = {.type = PRM_EVENT_TYPE_COMP};

    event.num = s->cq->id;
    ck_assert_int_eq(hv_dv_devx_subscribe_devx_event(channel, s->cq, sizeof(comp), comp, 7), 0);
    hv_dv_event(v->hca[0], &event);
    hv_dv_event(v->hca[0], &event);
    ck_assert_int_eq(hv_dv_devx_get_event(channel, &hdr, sizeof(hdr)), sizeof(hdr));
    ck_assert_uint_eq(hdr.cookie, 7);
    ck_assert(!readable(channel->fd));
    hv_dv_event(v->hca[0], &event);
    ck_assert(readable(channel->fd));
    side_free(s);
    hv_dv_devx_destroy_event_channel(channel);
}
END_TEST

/* Events that the device does not offer cannot be subscribed to: is_valid_events(). */
START_TEST(unknown_events_are_refused)
{
    struct mlx5dv_devx_event_channel *channel = hv_dv_devx_create_event_channel(v->a, 0);
    uint16_t port[] = {PRM_EVENT_TYPE_PORT_CHANGE}, page[] = {PRM_EVENT_TYPE_PAGE_REQUEST};
    uint16_t none[] = {0x1ff};
    struct side *s = side_new(0);

    ck_assert_int_eq(hv_dv_devx_subscribe_devx_event(channel, NULL, sizeof(port), port, 0), 0);
    ck_assert_int_eq(hv_dv_devx_subscribe_devx_event(channel, s->cq, sizeof(port), port, 0),
                     EINVAL);
    ck_assert_int_eq(hv_dv_devx_subscribe_devx_event(channel, NULL, sizeof(page), page, 0), EINVAL);
    ck_assert_int_eq(hv_dv_devx_subscribe_devx_event(channel, s->cq, sizeof(none), none, 0),
                     EINVAL);
    side_free(s);
    hv_dv_devx_destroy_event_channel(channel);
}
END_TEST

/* -- keys -------------------------------------------------------------------------------------- */

START_TEST(keys_for_umr_come_in_fours)
{
    struct ibv_pd *pd = ibv_alloc_pd(v->a);
    struct mlx5dv_mkey_init_attr attr = {
        .pd = pd, .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT, .max_entries = 5};
    struct mlx5dv_mkey *mkey = hv_dv_create_mkey(&attr);

    ck_assert_ptr_nonnull(mkey);
    ck_assert_uint_eq(attr.max_entries, 8);
    ck_assert_uint_eq(mkey->lkey, mkey->rkey);
    ck_assert_int_eq(hv_dv_destroy_mkey(mkey), 0);
    attr.create_flags |= MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE;
    mkey = hv_dv_create_mkey(&attr);
    ck_assert_ptr_nonnull(mkey);
    ck_assert_int_eq(hv_dv_destroy_mkey(mkey), 0);
    attr.create_flags |= MLX5DV_MKEY_INIT_ATTR_FLAGS_CRYPTO;
    ck_assert_ptr_null(hv_dv_create_mkey(&attr));
    ck_assert_int_eq(errno, EOPNOTSUPP);
    attr.create_flags = 0;
    ck_assert_ptr_null(hv_dv_create_mkey(&attr));
    ck_assert_int_eq(errno, EOPNOTSUPP);
    ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
}
END_TEST

/* The command of such a key contains the other keys, as the kernel's devx_handle_mkey_create()
 * leaves it; UCX makes such a key over each of its regions. */
START_TEST(a_key_of_other_keys_needs_no_umem)
{
    uint8_t in[PRM_SIZE(create_mkey_in) + PRM_SIZE(wqe_klm_seg)] = {0};
    struct prm_create_mkey_in *cmd = (struct prm_create_mkey_in *)in;
    struct prm_mkc *mkc = PRM_PTR(create_mkey_in, cmd, memory_key_mkey_entry);
    struct prm_wqe_klm_seg *entry =
        (struct prm_wqe_klm_seg *)(in + PRM_OFFSET(create_mkey_in, klm_pas_mtt));
    struct prm_create_mkey_out out[1] = {0};
    struct side *s = side_new(0);
    struct mlx5dv_devx_obj *key;

    PRM_SET(create_mkey_in, cmd, opcode, PRM_CMD_OP_CREATE_MKEY);
    PRM_SET(create_mkey_in, cmd, translations_octword_actual_size, 1);
    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_KSM);
    PRM_SET(mkc, mkc, lr, 1);
    PRM_SET(mkc, mkc, rw, 1);
    PRM_SET(mkc, mkc, lw, 1);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, pd, hv_pd(s->pd)->pdn);
    PRM_SET(mkc, mkc, len, MSG_SIZE);
    PRM_SET(mkc, mkc, log_page_size, 12);
    PRM_SET(mkc, mkc, translations_octword_size, 1);
    PRM_SET(wqe_klm_seg, entry, mkey, s->mr->lkey);
    PRM_SET(wqe_klm_seg, entry, va, (uintptr_t)s->mr->addr);
    key = hv_dv_devx_obj_create(s->ctx, in, sizeof(in), out, sizeof(out));
    ck_assert_ptr_nonnull(key);
    ck_assert_uint_ne(PRM_GET(create_mkey_out, out, mkey_index), 0);
    ck_assert_int_eq(hv_dv_devx_obj_destroy(key), 0);
    side_free(s);
}
END_TEST

/* A program that was compiled with the headers of a later rdma-core than this library asks by bits
 * for the members that later releases appended. Without the bits nothing is written behind the
 * structure. */
START_TEST(programs_of_later_headers_get_the_later_members)
{
    union {
        struct mlx5dv_context dv;
        uint8_t bytes[512];
    } caps;
    struct hv_context_newer *newer = hv_context_newer(&caps.dv);
    uint32_t handle = 0;
    struct {
        struct mlx5dv_obj obj;
        struct hv_obj_newer newer;
    } of = {0};
    struct side *s = side_new(0);

    memset(&caps, 0xa5, sizeof(caps));
    caps.dv.comp_mask = MLX5DV_CONTEXT_MASK_CRYPTO_OFFLOAD;
    ck_assert_int_eq(hv_dv_query_device(s->ctx, &caps.dv), 0);
    ck_assert_uint_eq(newer->max_dc_rd_atom, 0xa5a5a5a5a5a5a5a5);
    ck_assert_uint_eq(newer->ooo_recv_wrs_caps.max_rc, 0xa5a5a5a5);
    caps.dv.comp_mask = HV_CONTEXT_MASK_MAX_DC_RD_ATOM | HV_CONTEXT_MASK_OOO_RECV_WRS;
    ck_assert_int_eq(hv_dv_query_device(s->ctx, &caps.dv), 0);
    ck_assert_uint_eq(caps.dv.comp_mask,
                      HV_CONTEXT_MASK_MAX_DC_RD_ATOM | HV_CONTEXT_MASK_OOO_RECV_WRS);
    ck_assert_uint_eq(newer->max_dc_rd_atom, 16);
    ck_assert_uint_eq(newer->max_dc_init_rd_atom, 16);
    ck_assert_uint_gt(newer->ooo_recv_wrs_caps.max_rc, 0);
    hv_obj_newer(&of.obj)->devx.in = s->qp;
    hv_obj_newer(&of.obj)->devx.out = &handle;
    ck_assert_int_eq(hv_dv_init_obj(&of.obj, HV_OBJ_DEVX), 0);
    ck_assert_uint_eq(handle, s->qp->id);
    side_free(s);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("devx");
    TCase *tc = tcase_create("devx");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_program_drives_its_own_queues_by_memory_alone);
    tcase_add_test(tc, no_doorbell_hides_another);
    tcase_add_test(tc, a_store_to_the_page_rings_without_a_record);
    tcase_add_test(tc, another_process_may_ring);
    tcase_add_test(tc, after_a_reset_the_same_counter_rings);
    tcase_add_test(tc, a_record_that_is_unmapped_ends_nobody);
    tcase_add_test(tc, each_call_has_its_own_commands);
    tcase_add_test(tc, a_command_is_about_the_object_that_the_call_names);
    tcase_add_test(tc, objects_of_steering_end_as_they_were_named);
    tcase_add_test(tc, an_xrq_gets_the_parameters_to_fetch_over_dc);
    tcase_add_test(tc, what_the_device_refuses_comes_back_with_its_reason);
    tcase_add_test(tc, a_umem_that_is_not_there_is_refused);
    tcase_add_test(tc, a_umem_that_is_written_is_writable);
    tcase_add_test(tc, a_umem_in_use_stays);
    tcase_add_test(tc, an_answer_waits_in_its_channel);
    tcase_add_test(tc, completions_are_events_of_a_cq);
    tcase_add_test(tc, the_first_arm_of_each_cq_is_noticed);
    tcase_add_test(tc, a_cq_that_is_not_armed_is_silent);
    tcase_add_test(tc, without_data_events_of_a_kind_are_one);
    tcase_add_test(tc, unknown_events_are_refused);
    tcase_add_test(tc, keys_for_umr_come_in_fours);
    tcase_add_test(tc, a_key_of_other_keys_needs_no_umem);
    tcase_add_test(tc, programs_of_later_headers_get_the_later_members);
    suite_add_tcase(suite, tc);
    return suite;
}
