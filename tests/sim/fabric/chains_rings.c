/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements chains_rings.h. */
#include "tests/sim/fabric/chains_rings.h"
#include <errno.h>
#include <string.h>
#include "guest-lib/verbs/kernel/kernel.h"
#include "tests/sim/fabric/connect.h"
#include "tests/sim/fabric/liveness.h"

#define LOG_CQES     8
#define LOG_BLOCKS   6
#define LOG_RECEIVES 5
#define DS           16u /* bytes */
#define BLOCK        64u

/* Offsets in the memory of a ring. The receive queue comes first. */
#define CQ_AT(half)        ((half) * (BLOCK << LOG_CQES))
#define QP_AT              CQ_AT(CHAINS_HALVES)
#define SQ_AT              (QP_AT + (DS << LOG_RECEIVES))
#define RECORD_AT          (CHAINS_RING_BYTES - 4096u)
#define CQ_RECORD_AT(half) (RECORD_AT + 64u * ((half) + 1))
G_STATIC_ASSERT(SQ_AT + (BLOCK << LOG_BLOCKS) <= RECORD_AT);

/* Opcodes of WQEs, and fields of the control segment. */
#define OP_NOP       0x00u
#define OP_WRITE     0x08u
#define OP_WRITE_IMM 0x09u
#define OP_SEND      0x0au
#define OP_WAIT      0x0fu
#define OP_READ      0x10u
#define OP_RECV_EN   0x16u
#define OP_SEND_EN   0x17u
#define CE_ALWAYS    0x08u

/* -- made and destroyed ------------------------------------------------------------------------ */

static void ring_make_cq(struct chains_ring *ring, const struct job *job, enum chains_half half)
{
    struct prm_create_cq_in in[1] = {0};
    struct prm_create_cq_out out[1] = {0};
    struct prm_cqc *cqc = PRM_PTR(create_cq_in, in, cq_context);
    uint32_t eqn;

    sim_must(job, hv_dv_devx_query_eqn(ring->host->ctx, 0, &eqn));
    ring->cq[half] =
        (struct gpu_cq){.ring = ring->memory + CQ_AT(half),
                        .cqes = 1u << LOG_CQES,
                        .record = (uint32_t *)(void *)(ring->memory + CQ_RECORD_AT(half))};
    gpu_cq_clear(&ring->cq[half]);
    PRM_SET(create_cq_in, in, opcode, PRM_CMD_OP_CREATE_CQ);
    PRM_SET(create_cq_in, in, cq_umem_id, ring->umem->umem_id);
    PRM_SET(create_cq_in, in, cq_umem_offset, CQ_AT(half));
    PRM_SET(cqc, cqc, log_cq_size, LOG_CQES);
    PRM_SET(cqc, cqc, uar_page, ring->page->page_id);
    PRM_SET(cqc, cqc, c_eqn_or_apu_element, eqn);
    PRM_SET(cqc, cqc, dbr_umem_id, ring->umem->umem_id);
    PRM_SET(cqc, cqc, dbr_addr, CQ_RECORD_AT(half));
    ring->cq_obj[half] = hv_dv_devx_obj_create(ring->host->ctx, in, sizeof(in), out, sizeof(out));
    sim_check(job, ring->cq_obj[half], "no CQ: errno %d", errno);
}

static void ring_make_qp(struct chains_ring *ring, const struct job *job)
{
    struct prm_create_qp_in in[1] = {0};
    struct prm_create_qp_out out[1] = {0};
    struct prm_qpc *qpc = PRM_PTR(create_qp_in, in, qpc);

    PRM_SET(create_qp_in, in, opcode, PRM_CMD_OP_CREATE_QP);
    PRM_SET(create_qp_in, in, wq_umem_id, ring->umem->umem_id);
    PRM_SET(create_qp_in, in, wq_umem_offset, QP_AT);
    PRM_SET(qpc, qpc, st, PRM_QP_ST_RC);
    PRM_SET(qpc, qpc, pm_state, PRM_QP_PM_STATE_MIGRATED);
    PRM_SET(qpc, qpc, pd, hv_pd(ring->host->pd)->pdn);
    PRM_SET(qpc, qpc, uar_page, ring->page->page_id);
    PRM_SET(qpc, qpc, log_sq_size, LOG_BLOCKS);
    PRM_SET(qpc, qpc, log_rq_size, LOG_RECEIVES); /* of 16 bytes: log_rq_stride is 0 */
    PRM_SET(qpc, qpc, cqn_snd, ring->cq_obj[CHAINS_SENDS]->id);
    PRM_SET(qpc, qpc, cqn_rcv, ring->cq_obj[CHAINS_RECEIVES]->id);
    PRM_SET(qpc, qpc, dbr_umem_id, ring->umem->umem_id);
    PRM_SET(qpc, qpc, dbr_addr, RECORD_AT);
    PRM_SET(qpc, qpc, cd_master, 1);
    PRM_SET(qpc, qpc, cd_slave_send, ring->managed[CHAINS_SENDS]);
    PRM_SET(qpc, qpc, cd_slave_receive, ring->managed[CHAINS_RECEIVES]);
    ring->qp_obj = hv_dv_devx_obj_create(ring->host->ctx, in, sizeof(in), out, sizeof(out));
    sim_check(job, ring->qp_obj, "no QP: errno %d", errno);
}

void chains_ring_make(struct chains_ring *ring, const struct job *job)
{
    memset(ring->memory, 0, CHAINS_RING_BYTES);
    ring->block = ring->wqe = ring->receive = 0;
    ring->umem = hv_dv_devx_umem_reg(ring->host->ctx, ring->memory, CHAINS_RING_BYTES,
                                     IBV_ACCESS_LOCAL_WRITE);
    sim_check(job, ring->umem, "no memory of a ring: errno %d", errno);
    ring_make_cq(ring, job, CHAINS_SENDS);
    ring_make_cq(ring, job, CHAINS_RECEIVES);
    ring_make_qp(ring, job);
    /* like a GPU, this program stores to the record and then to the doorbell page, which the device
     * looks at later */
    liveness_gpu_rings(job->sim->liveness, ring->host, ring->qp_obj->id, true);
}

void chains_ring_destroy(struct chains_ring *ring, const struct job *job)
{
    liveness_gpu_rings(job->sim->liveness, ring->host, ring->qp_obj->id, false);
    sim_must(job, hv_dv_devx_obj_destroy(ring->qp_obj));
    sim_must(job, hv_dv_devx_obj_destroy(ring->cq_obj[CHAINS_SENDS]));
    sim_must(job, hv_dv_devx_obj_destroy(ring->cq_obj[CHAINS_RECEIVES]));
    sim_must(job, hv_dv_devx_umem_dereg(ring->umem));
}

void chains_ring_connect(struct chains_ring *const rings[2], const struct job *job)
{
    struct gpu_terms terms = {
        .timeout = 15, /* no storm lasts longer than eight of these */
        .psn = (uint32_t)chance_below(&((struct job *)job)->chance, 1u << 24),
        .mtu = (enum ibv_mtu)chance_from(&((struct job *)job)->chance, IBV_MTU_256, IBV_MTU_4096)};

    for (unsigned i = 0; i < 2; i++) {
        const struct chains_ring *to = rings[!i];

        gpu_devx_connect(rings[i]->qp_obj, rings[i]->host->pd, to->host->ctx, to->qp_obj->id,
                         &terms);
        if (rings[0] == rings[1]) {
            break;
        }
    }
}

void chains_ring_reset(struct chains_ring *ring)
{
    gpu_devx_move(ring->qp_obj, PRM_CMD_OP_2RST_QP, NULL);
    memset(ring->memory + RECORD_AT, 0, 8);
    ring->block = ring->wqe = ring->receive = 0;
}

/* -- WQEs -------------------------------------------------------------------------------------- */

static void ring_put(uint8_t *at, uint64_t value, unsigned bytes)
{
    while (bytes--) {
        at[bytes] = (uint8_t)value;
        value >>= 8;
    }
}

static void ring_put_data(uint8_t *seg, uint64_t at, uint32_t key, unsigned elements)
{
    ring_put(seg, elements * CHAINS_ELEMENT, 4);
    ring_put(seg + 4, key, 4);
    ring_put(seg + 8, at, 8);
}

static unsigned ring_opcode(const struct chains_step *step)
{
    static const uint8_t opcodes[] = {
        [CHAINS_NOP] = OP_NOP,     [CHAINS_WAIT] = OP_WAIT,           [CHAINS_SEND] = OP_SEND,
        [CHAINS_WRITE] = OP_WRITE, [CHAINS_WRITE_IMM] = OP_WRITE_IMM, [CHAINS_READ] = OP_READ};

    if (step->what == CHAINS_ENABLE) {
        return step->half == CHAINS_SENDS ? OP_SEND_EN : OP_RECV_EN;
    }
    return opcodes[step->what];
}

static uint8_t *ring_put_message(uint8_t *seg, const struct chains_step *step,
                                 const struct chains_names *names)
{
    bool reads = step->what == CHAINS_READ;

    if (step->what != CHAINS_SEND) {
        ring_put(seg, names->far.at + (reads ? step->piece[0].slot : step->to) * CHAINS_ELEMENT, 8);
        ring_put(seg + 8, names->far.key, 4);
        seg += DS;
    }
    for (unsigned i = 0; i < step->pieces; i++) {
        unsigned slot = reads ? step->to : step->piece[i].slot;

        ring_put_data(seg, names->near.at + slot * CHAINS_ELEMENT, names->near.key,
                      step->piece[i].n);
        seg += DS;
    }
    return seg;
}

uint16_t chains_ring_write(struct chains_ring *ring, const struct chains_step *step,
                           const struct chains_names *names)
{
    uint8_t wqe[4 * BLOCK] = {0}, *seg = wqe + DS;
    uint16_t index = ring->block;
    unsigned ds;

    if (step->what == CHAINS_WAIT || step->what == CHAINS_ENABLE) {
        bool waits = step->what == CHAINS_WAIT;

        ring_put(seg + 8, names->index, 4);
        ring_put(seg + 12, waits ? names->on->cq_obj[step->half]->id : names->on->qp_obj->id, 4);
        seg += DS;
    } else if (step->what != CHAINS_NOP) {
        seg = ring_put_message(seg, step, names);
    }
    ds = (unsigned)(seg - wqe) / DS;
    ring_put(wqe, (uint32_t)step->op << 24 | (uint32_t)index << 8 | ring_opcode(step), 4);
    ring_put(wqe + 4, (uint64_t)ring->qp_obj->id << 8 | ds, 4);
    ring_put(wqe + 8, (uint32_t)step->fence << 5 | (step->signaled ? CE_ALWAYS : 0), 4);
    for (unsigned at = 0; at < ds * DS; at += BLOCK) {
        memcpy(ring->memory + SQ_AT + ring->block++ % (1u << LOG_BLOCKS) * BLOCK, wqe + at, BLOCK);
    }
    ring->wqe++;
    return index;
}

void chains_ring_write_receive(struct chains_ring *ring, uint64_t at, uint32_t key)
{
    ring_put_data(ring->memory + QP_AT + ring->receive++ % (1u << LOG_RECEIVES) * DS, at, key, 1);
    ring_put(ring->memory + RECORD_AT, ring->receive, 4);
}

void chains_ring_tell(struct chains_ring *ring)
{
    uint8_t doorbell[8];
    uint64_t value;

    ring_put(ring->memory + RECORD_AT + 4, ring->block, 4);
    ring_put(doorbell, (uint32_t)ring->block << 8, 4);
    ring_put(doorbell + 4, (uint64_t)ring->qp_obj->id << 8, 4);
    memcpy(&value, doorbell, sizeof(value));
    gpu_store_now(NULL, (uint8_t *)ring->page->base_addr + PRM_OFFSET(uar, blue_flame), value, 8);
}
