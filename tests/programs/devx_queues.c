/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements devx_queues.h. */
#include "tests/programs/devx_queues.h"
#include <endian.h>
#include "prm/prm.h"

#define LOG_BLOCKS 5
#define LOG_RECVS  3
#define LOG_CQES   6
#define BLOCK      64u
#define RECV       16u
#define MIGRATED   3

/* Offsets in the memory of a queue. The receive queue is at the begin of the ring. */
#define CQ_AT        0u
#define RING_AT      4096u
#define SQ_AT        (RING_AT + DEVX_RECVS * RECV)
#define CQ_RECORD_AT 8192u
#define QP_RECORD_AT 8256u
#define MEMORY       12288u

/* A command's input and output, as variables in and out. */
#define COMMAND(type, op)                                                                          \
    struct prm_##type##_in in[1] = {0};                                                            \
    struct prm_##type##_out out[1] = {0};                                                          \
    PRM_SET(type##_in, in, opcode, PRM_CMD_OP_##op)

static struct mlx5dv_devx_uar *uar;

void devx_open(void)
{
    uar = mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
    uar = uar ? uar : mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_BF);
    ck_assert_msg(uar, "mlx5dv_devx_alloc_uar(): errno %d", errno);
}

void devx_close(void)
{
    mlx5dv_devx_free_uar(uar);
}

/* -- creation ---------------------------------------------------------------------------------- */

static uint32_t number_of_pd(struct ibv_pd *of)
{
    struct mlx5dv_pd dv = {0};
    struct mlx5dv_obj obj = {.pd = {.in = of, .out = &dv}};

    ck_assert_int_eq(mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD), 0);
    return dv.pdn;
}

static void make_cq(struct devx_queue *q)
{
    COMMAND(create_cq, CREATE_CQ);
    struct prm_cqc *cqc = PRM_PTR(create_cq_in, in, cq_context);
    uint32_t eqn;

    ck_assert_int_eq(mlx5dv_devx_query_eqn(ctx, 0, &eqn), 0);
    memset(q->memory + CQ_AT, 0xff, DEVX_CQES * BLOCK);
    PRM_SET(create_cq_in, in, cq_umem_id, q->umem->umem_id);
    PRM_SET(create_cq_in, in, cq_umem_offset, CQ_AT);
    PRM_SET(cqc, cqc, dbr_umem_id, q->umem->umem_id);
    PRM_SET(cqc, cqc, dbr_addr, CQ_RECORD_AT);
    PRM_SET(cqc, cqc, log_cq_size, LOG_CQES);
    PRM_SET(cqc, cqc, uar_page, uar->page_id);
    PRM_SET(cqc, cqc, c_eqn_or_apu_element, eqn);
    q->cq = mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out));
    ck_assert_msg(q->cq, "CREATE_CQ: errno %d, syndrome 0x%x", errno,
                  PRM_GET(create_cq_out, out, syndrome));
    q->cqn = PRM_GET(create_cq_out, out, cqn);
}

static void make_qp(struct devx_queue *q, uint32_t pdn, unsigned roles)
{
    COMMAND(create_qp, CREATE_QP);
    struct prm_qpc *qpc = PRM_PTR(create_qp_in, in, qpc);

    PRM_SET(create_qp_in, in, wq_umem_id, q->umem->umem_id);
    PRM_SET(create_qp_in, in, wq_umem_offset, RING_AT);
    PRM_SET(qpc, qpc, dbr_umem_id, q->umem->umem_id);
    PRM_SET(qpc, qpc, dbr_addr, QP_RECORD_AT);
    PRM_SET(qpc, qpc, st, PRM_QP_ST_RC);
    PRM_SET(qpc, qpc, pm_state, MIGRATED);
    PRM_SET(qpc, qpc, pd, pdn);
    PRM_SET(qpc, qpc, uar_page, uar->page_id);
    PRM_SET(qpc, qpc, log_sq_size, LOG_BLOCKS);
    PRM_SET(qpc, qpc, log_rq_size, LOG_RECVS);
    PRM_SET(qpc, qpc, log_rq_stride, 0);
    PRM_SET(qpc, qpc, rq_type, PRM_RQ_TYPE_REGULAR);
    PRM_SET(qpc, qpc, cqn_snd, q->cqn);
    PRM_SET(qpc, qpc, cqn_rcv, q->cqn);
    PRM_SET(qpc, qpc, cd_master, !!(roles & DEVX_MASTER));
    PRM_SET(qpc, qpc, cd_slave_send, !!(roles & DEVX_MANAGED_SEND));
    PRM_SET(qpc, qpc, cd_slave_receive, !!(roles & DEVX_MANAGED_RECV));
    q->qp = mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out));
    ck_assert_msg(q->qp, "CREATE_QP: errno %d, syndrome 0x%x", errno,
                  PRM_GET(create_qp_out, out, syndrome));
    q->qpn = PRM_GET(create_qp_out, out, qpn);
}

void devx_queue_new(struct devx_queue *q, struct ibv_pd *of, unsigned roles)
{
    *q = (struct devx_queue){.memory = aligned_alloc(4096, MEMORY)};
    ck_assert_ptr_nonnull(q->memory);
    memset(q->memory, 0, MEMORY);
    q->umem = mlx5dv_devx_umem_reg(ctx, q->memory, MEMORY, IBV_ACCESS_LOCAL_WRITE);
    ck_assert_msg(q->umem, "mlx5dv_devx_umem_reg(): errno %d", errno);
    make_cq(q);
    make_qp(q, number_of_pd(of), roles);
}

void devx_ignore_overrun(struct devx_queue *q)
{
    COMMAND(modify_cq, MODIFY_CQ);

    PRM_SET(modify_cq_in, in, cqn, q->cqn);
    PRM_SET(modify_cq_in, in, modify_field_select_resize_field_select, PRM_CQ_MODIFY_OI);
    PRM_SET(cqc, PRM_PTR(modify_cq_in, in, cq_context), oi, 1);
    ck_assert_msg(!mlx5dv_devx_obj_modify(q->cq, in, sizeof(in), out, sizeof(out)),
                  "MODIFY_CQ: errno %d, syndrome 0x%x", errno,
                  PRM_GET(modify_cq_out, out, syndrome));
}

void devx_destroy_qp(struct devx_queue *q)
{
    ck_assert(!q->qp || !mlx5dv_devx_obj_destroy(q->qp));
    q->qp = NULL;
}

void devx_destroy_cq(struct devx_queue *q)
{
    ck_assert(!q->cq || !mlx5dv_devx_obj_destroy(q->cq));
    q->cq = NULL;
}

void devx_queue_free(struct devx_queue *q)
{
    devx_destroy_qp(q);
    devx_destroy_cq(q);
    ck_assert_int_eq(mlx5dv_devx_umem_dereg(q->umem), 0);
    free(q->memory);
}

static void store_record(uint8_t *at, uint32_t value)
{
    __atomic_store_n((uint32_t *)(void *)at, htobe32(value), __ATOMIC_RELEASE);
}

/* -- states ------------------------------------------------------------------------------------ */

/* The inputs of all transitions begin like that of RTS2RTS. */
static void move(struct devx_queue *q, uint16_t opcode, const struct prm_qpc *qpc)
{
    COMMAND(rts2rts_qp, RTS2RTS_QP);

    PRM_SET(rts2rts_qp_in, in, opcode, opcode);
    PRM_SET(rts2rts_qp_in, in, qpn, q->qpn);
    if (qpc) {
        memcpy(PRM_PTR(rts2rts_qp_in, in, qpc), qpc, PRM_SIZE(qpc));
    }
    ck_assert_msg(!mlx5dv_devx_obj_modify(q->qp, in, sizeof(in), out, sizeof(out)),
                  "command 0x%x: errno %d, syndrome 0x%x", opcode, errno,
                  PRM_GET(rts2rts_qp_out, out, syndrome));
}

void devx_move(struct devx_queue *q, uint16_t opcode)
{
    move(q, opcode, NULL);
    if (opcode == PRM_CMD_OP_2RST_QP) {
        q->posted = q->received = 0;
        store_record(q->memory + QP_RECORD_AT, 0);
        store_record(q->memory + QP_RECORD_AT + 4, 0);
    }
}

/* The addresses are those of an address handle. */
static void set_path(struct prm_ads *ads)
{
    struct ibv_ah_attr attr = path();
    struct ibv_ah *ah = ibv_create_ah(pd, &attr);
    struct mlx5dv_ah dv = {0};
    struct mlx5dv_obj obj = {.ah = {.in = ah, .out = &dv}};

    ck_assert(ah && !mlx5dv_init_obj(&obj, MLX5DV_OBJ_AH));
    memcpy((uint8_t *)ads + PRM_OFFSET(ads, rmac_47_32), dv.av->rmac, sizeof(dv.av->rmac));
    memcpy((uint8_t *)ads + PRM_OFFSET(ads, rgid_rip), dv.av->rgid, sizeof(dv.av->rgid));
    PRM_SET(ads, ads, hop_limit, 64);
    PRM_SET(ads, ads, src_addr_index, attr.grh.sgid_index);
    PRM_SET(ads, ads, udp_sport, 0xc000);
    ck_assert_int_eq(ibv_destroy_ah(ah), 0);
}

void devx_connect(struct devx_queue *q, uint32_t qpn)
{
    struct prm_qpc qpc[1] = {0};
    struct prm_ads *ads = PRM_PTR(qpc, qpc, primary_address_path);

    PRM_SET(qpc, qpc, pm_state, MIGRATED);
    PRM_SET(ads, ads, vhca_port_num, 1);
    PRM_SET(qpc, qpc, rre, 1);
    PRM_SET(qpc, qpc, rwe, 1);
    move(q, PRM_CMD_OP_RST2INIT_QP, qpc);
    PRM_SET(qpc, qpc, mtu, PRM_QP_MTU_1024);
    PRM_SET(qpc, qpc, log_msg_max, 30);
    PRM_SET(qpc, qpc, remote_qpn, qpn);
    PRM_SET(qpc, qpc, min_rnr_nak, 12);
    set_path(ads);
    move(q, PRM_CMD_OP_INIT2RTR_QP, qpc);
    memset(qpc, 0, sizeof(qpc));
    PRM_SET(qpc, qpc, pm_state, MIGRATED);
    PRM_SET(ads, ads, vhca_port_num, 1);
    PRM_SET(ads, ads, ack_timeout, 18);
    PRM_SET(qpc, qpc, retry_count, 7);
    PRM_SET(qpc, qpc, rnr_retry, 7);
    move(q, PRM_CMD_OP_RTR2RTS_QP, qpc);
}

/* -- WQEs -------------------------------------------------------------------------------------- */

void devx_add_words(struct devx_wqe *wqe, const uint32_t *words, unsigned n)
{
    ck_assert_uint_le(wqe->words + n, COUNT(wqe->word));
    for (unsigned i = 0; i < n; i++) {
        wqe->word[wqe->words++] = htobe32(words[i]);
    }
}

void devx_add_data(struct devx_wqe *wqe, uint64_t addr, uint32_t len, uint32_t lkey)
{
    devx_add_words(wqe, (uint32_t[]){len, lkey, (uint32_t)(addr >> 32), (uint32_t)addr}, 4);
}

void devx_add_remote(struct devx_wqe *wqe, uint64_t addr, uint32_t rkey)
{
    devx_add_words(wqe, (uint32_t[]){(uint32_t)(addr >> 32), (uint32_t)addr, rkey, 0}, 4);
}

void devx_add_object(struct devx_wqe *wqe, uint32_t number, uint32_t index)
{
    devx_add_words(wqe, (uint32_t[]){0, 0, index, number}, 4);
}

static uint32_t *word_of(const struct devx_queue *q, uint32_t block, unsigned word)
{
    uint32_t at = (block * BLOCK + word * 4) % (DEVX_BLOCKS * BLOCK);

    return (uint32_t *)(void *)(q->memory + SQ_AT + at);
}

void devx_post(struct devx_queue *q, const struct devx_wqe *wqe)
{
    const uint32_t ctrl[4] = {(uint32_t)wqe->opmod << 24 | (q->posted & 0xffff) << 8 | wqe->opcode,
                              q->qpn << 8 | (4 + wqe->words) / 4, MLX5_WQE_CTRL_CQ_UPDATE, 0};

    for (unsigned i = 0; i < 4; i++) {
        *word_of(q, q->posted, i) = htobe32(ctrl[i]);
    }
    for (unsigned i = 0; i < wqe->words; i++) {
        *word_of(q, q->posted, 4 + i) = wqe->word[i];
    }
    q->posted += (4 + wqe->words + 15) / 16;
}

/* A doorbell begins like the WQE that it is about. */
void devx_ring(struct devx_queue *q)
{
    const uint32_t words[2] = {htobe32(q->posted << 8), htobe32(q->qpn << 8)};
    uint64_t doorbell;

    memcpy(&doorbell, words, sizeof(doorbell));
    store_record(q->memory + QP_RECORD_AT + 4, q->posted & 0xffff);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n((uint64_t *)uar->reg_addr, doorbell, __ATOMIC_RELEASE);
}

void devx_receive(struct devx_queue *q, uint64_t addr, uint32_t len, uint32_t lkey)
{
    const uint32_t words[4] = {htobe32(len), htobe32(lkey), htobe32((uint32_t)(addr >> 32)),
                               htobe32((uint32_t)addr)};

    memcpy(q->memory + RING_AT + q->received % DEVX_RECVS * RECV, words, sizeof(words));
    q->received++;
    store_record(q->memory + QP_RECORD_AT, q->received & 0xffff);
}

/* -- CQEs -------------------------------------------------------------------------------------- */

static uint32_t load_word(const uint8_t *at)
{
    return be32toh(__atomic_load_n((const uint32_t *)(const void *)at, __ATOMIC_ACQUIRE));
}

bool devx_poll(struct devx_queue *q, struct devx_cqe *cqe)
{
    const uint8_t *at = q->memory + CQ_AT + q->taken % DEVX_CQES * BLOCK;
    uint32_t last = load_word(at + 0x3c); /* wqe_counter, signature, opcode and owner */

    if ((last >> 4 & 0xf) == MLX5_CQE_INVALID || (last & 1) != (q->taken / DEVX_CQES & 1)) {
        return false;
    }
    cqe->wqe = (uint16_t)(last >> 16);
    cqe->opcode = last >> 4 & 0xf;
    cqe->syndrome = at[0x37];
    cqe->bytes = load_word(at + 0x2c);
    q->taken++;
    store_record(q->memory + CQ_RECORD_AT, q->taken & 0xffffff);
    return true;
}
