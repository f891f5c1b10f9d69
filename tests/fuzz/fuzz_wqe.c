/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer: everything that a guest's data path can write, to a ready function: send WQEs of every
 * queue, receive WQEs, doorbell records, and the BAR. WQEs may name an on-demand key, most of whose
 * pages are missing; the input answers the page faults. They may also name a key with block
 * signatures, and queues of cross channel. SENDs may have vector calculations. Of the receive
 * queues of Ethernet frames, one is striding; the send queue takes UMRs.
 */
#include <stdlib.h>
#include <string.h>
#include "tests/fuzz/guest_input.h"
#include "tests/sim/variants.h"

#define MAX_STEPS 60
#define LOG_NUM   5 /* strides of a striding WQE */
#define LOG_SIZE  6

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct ring {
    uint32_t qpn;
    bool is_dci;
    uint8_t *base;
    size_t size;
    uint32_t *dbr;
};

static struct ring qp_sq(const struct drv_qp *qp)
{
    return (struct ring){qp->qpn, qp->attr.st == PRM_QP_ST_DCI,
                         (uint8_t *)qp->ring.ptr + qp->sq_offset, (size_t)64 << qp->attr.log_sq,
                         &qp->dbr[1]};
}

static struct ring qp_rq(const struct drv_qp *qp)
{
    return (struct ring){qp->qpn, false, qp->ring.ptr, qp->sq_offset, &qp->dbr[0]};
}

/* Objects of a guest that only this target needs. */
static struct {
    struct drv_qp *dci, *xrc; /* an initiator with streams; XRC, connected to itself */
    struct drv_qp *master;    /* RC, connected to itself: may wait, enable and calculate */
    struct drv_qp *managed;   /* the same, and both of its queues are managed */
    uint32_t paged;           /* an on-demand key */
    uint32_t is_signed;       /* a key that gets signatures by a UMR */
    uint32_t named;           /* the key that WQEs name */
    struct ring striding;     /* a striding receive queue */
} more;

/* Returns a queue of the guest, by index. */
static struct ring ring_at(const struct guest *g, unsigned i)
{
    uint8_t *mem = g->mem->ptr;

    switch (i < 16 ? i : i % 8) {
    case 15:
        return more.striding;
    case 12:
        return qp_sq(more.master);
    case 13:
        return qp_sq(more.managed);
    case 14:
        return qp_rq(more.managed);
    case 8:
        return qp_sq(g->tags);
    case 9:
        return qp_sq(g->dci);
    case 10:
        return qp_sq(more.dci);
    case 11:
        return qp_sq(more.xrc);
    case 0:
        return qp_sq(g->rc_loop);
    case 1:
        return qp_sq(g->uc);
    case 2:
        return qp_sq(g->ud);
    case 3:
        return qp_sq(g->umr);
    case 4:
        return (struct ring){g->sqn, false, mem + g->sq_ring, 32 * 64,
                             (uint32_t *)(mem + g->sq_dbr + 4)};
    case 5:
        return (struct ring){g->rqn, false, mem + g->rq_ring, 32 * 64,
                             (uint32_t *)(mem + g->rq_dbr)};
    case 6:
        return qp_rq(g->rc_loop);
    default:
        return (struct ring){g->srq->srqn, false, g->srq->ring.ptr, 32 * 64, g->srq->dbr};
    }
}

static void write_bar(struct guest_input *in, uint64_t offset, uint64_t value, unsigned size)
{
    const struct pci_dev *dev = &in->t->a.drv->dev;

    dev->ops->mmio_write(dev->pci, offset, value, size);
}

/* Rings the doorbell of a WQE; if BlueFlame is chosen, the rest of the WQE follows into its
 * buffer. */
static void ring_doorbell(struct guest_input *in, const uint8_t *wqe, unsigned blocks,
                          bool blueflame)
{
    uint64_t reg = (uint64_t)in->t->a.drv->uarn * PCI_PAGE + PRM_OFFSET(uar, blue_flame);

    write_bar(in, reg, prm_load64(wqe), 8);
    for (unsigned at = 8; blueflame && at < blocks * 64; at += 8) {
        write_bar(in, reg + at, prm_load64(wqe + at), 8);
    }
}

/* Names the guest's target. */
static void put_target(const struct guest *g, uint8_t *wqe)
{
    struct prm_wqe_av *av = (void *)(wqe + PRM_SIZE(wqe_ctrl_seg));

    memset(av, 0, PRM_SIZE(wqe_av));
    PRM_SET(wqe_av, av, dc_key, EXAMPLE_DC_KEY);
    PRM_SET(wqe_av, av, ext, 1);
    PRM_SET(wqe_av, av, dqp_dct, g->dctn);
    PRM_SET(wqe_av, av, udp_sport, 0xc000);
    memcpy(PRM_PTR(wqe_av, av, rmac), g->node->drv->mac, 6);
    PRM_SET(wqe_av, av, hop_limit, 64);
    memcpy(PRM_PTR(wqe_av, av, rgid), g->node->gid, 16);
}

/* A UMR that gives a key a range of memory, and signatures of its blocks in memory. */
static void put_signatures(const struct guest *g, uint8_t *seg)
{
    void *ctrl = seg, *mkc = seg + PRM_SIZE(wqe_umr_ctrl_seg), *klm = mkc + PRM_SIZE(mkc),
         *bsf = klm + PRM_SIZE(bsf);
    struct prm_bsf_inl *inl = PRM_PTR(bsf, (struct prm_bsf *)bsf, m_inl);

    memset(seg, 0, PRM_SIZE(wqe_umr_ctrl_seg) + PRM_SIZE(mkc) + 2 * PRM_SIZE(bsf));
    PRM_SET(wqe_umr_ctrl_seg, ctrl, inl, 1);
    PRM_SET(wqe_umr_ctrl_seg, ctrl, xlt_octowords, 4);
    PRM_SET(wqe_umr_ctrl_seg, ctrl, bsf_octowords, 4);
    PRM_SET(wqe_umr_ctrl_seg, ctrl, mkey_mask,
            1ull << PRM_MKEY_MASK_LEN | 1ull << PRM_MKEY_MASK_FREE | 1ull << PRM_MKEY_MASK_BSF_EN |
                1ull << PRM_MKEY_MASK_LR | 1ull << PRM_MKEY_MASK_LW | 1ull << PRM_MKEY_MASK_RR |
                1ull << PRM_MKEY_MASK_RW);
    PRM_SET(mkc, mkc, lr, 1);
    PRM_SET(mkc, mkc, lw, 1);
    PRM_SET(mkc, mkc, rr, 1);
    PRM_SET(mkc, mkc, rw, 1);
    PRM_SET(mkc, mkc, bsf_en, 1);
    PRM_SET(mkc, mkc, len, 4 * 520);
    prm_store32(klm, 4 * 520);
    prm_store32(klm + 4, g->mem->mr.key);
    prm_store64(klm + 8, g->mem->va);
    PRM_SET(bsf, bsf, size, PRM_BSF_SIZE_WITH_INLINE);
    PRM_SET(bsf, bsf, check_byte_mask, 0xff);
    PRM_SET(bsf, bsf, raw_data_size, 4 * 512);
    PRM_SET(bsf, bsf, mem_bs_selector, PRM_BSF_BLOCK_512);
    PRM_SET(bsf, bsf, m_psv, g->psvn);
    PRM_SET(bsf_inl, inl, valid, 1);
    PRM_SET(bsf_inl, inl, sig_type, PRM_BSF_DIF_CRC);
}

/* A vector calculation with vectors and a matrix in the guest's memory. */
static void put_calculation(const struct guest *g, struct prm_wqe_vec_calc_seg *seg)
{
    memset(seg, 0, sizeof(*seg));
    PRM_SET_AT(wqe_vec_calc_seg, seg, calc_op, 0, PRM_VEC_CALC_OP_XOR);
    PRM_SET_AT(wqe_vec_calc_seg, seg, calc_op, 1, PRM_VEC_CALC_OP_XOR);
    PRM_SET(wqe_vec_calc_seg, seg, matrix, 1);
    PRM_SET(wqe_vec_calc_seg, seg, matrix_8bit, 1);
    PRM_SET(wqe_vec_calc_seg, seg, vec_count, 4);
    PRM_SET(wqe_vec_calc_seg, seg, cm_lkey, more.named);
    PRM_SET(wqe_vec_calc_seg, seg, cm_addr, g->mem->va);
    PRM_SET(wqe_vec_calc_seg, seg, vec_size, 128);
    PRM_SET(wqe_vec_calc_seg, seg, vec_lkey, more.named);
    PRM_SET(wqe_vec_calc_seg, seg, vec_addr, g->mem->va);
}

/* Fills in the segments that an opcode has besides data, as far as the WQE has room. */
static void put_segments(const struct guest *g, uint8_t opcode, uint8_t *wqe, unsigned ds)
{
    void *seg = wqe + PRM_SIZE(wqe_ctrl_seg);

    switch (opcode) {
    case PRM_WQE_OPCODE_SEND:
        if (ds == 4 && PRM_GET(wqe_ctrl_seg, (struct prm_wqe_ctrl_seg *)(void *)wqe, opmod) ==
                           PRM_SEND_OPMOD_VECTOR_CALC) {
            put_calculation(g, seg);
        }
        break;
    case PRM_WQE_OPCODE_SET_PSV:
        PRM_SET(wqe_set_psv_seg, seg, psv_num, g->psvn);
        break;
    case PRM_WQE_OPCODE_GET_PSV:
        PRM_SET(wqe_get_psv_seg, seg, num_psv, 1);
        PRM_SET(wqe_get_psv_seg, seg, l_key, more.named);
        PRM_SET(wqe_get_psv_seg, seg, va, g->mem->va);
        PRM_SET_AT(wqe_get_psv_seg, (struct prm_wqe_get_psv_seg *)seg, psv_index, 0, g->psvn);
        break;
    case PRM_WQE_OPCODE_UMR:
        if (ds == 16) {
            put_signatures(g, seg);
            PRM_SET(wqe_ctrl_seg, (struct prm_wqe_ctrl_seg *)(void *)wqe, imm, more.is_signed);
        }
        break;
    case PRM_WQE_OPCODE_CQE_WAIT:
        PRM_SET(wqe_wait_en_seg, seg, pi, ds);
        PRM_SET(wqe_wait_en_seg, seg, obj_num, g->node->cq.cqn);
        break;
    case PRM_WQE_OPCODE_SEND_ENABLE:
    case PRM_WQE_OPCODE_RECV_ENABLE:
        PRM_SET(wqe_wait_en_seg, seg, pi, ds);
        PRM_SET(wqe_wait_en_seg, seg, obj_num, more.managed->qpn);
        break;
    default:
        break;
    }
}

/* Writes a WQE of the input's choice at the ring's next block, and rings its doorbell. */
static void post(struct guest_input *in, struct ring *ring, bool send, bool blueflame)
{
    uint16_t pi = (uint16_t)GUINT32_FROM_BE(*ring->dbr);
    uint8_t wqe[512] = {0};
    void *ctrl = wqe;
    unsigned ds = 1 + input_u8(in) % 24, blocks = send ? (ds + 3) / 4 : 1;

    for (unsigned i = 1; i < ds; i++) {
        prm_store32(wqe + 16 * i, 64);
        prm_store32(wqe + 16 * i + 4, more.named);
        prm_store64(wqe + 16 * i + 8, in->guest.mem->va);
    }
    if (ring->qpn == more.striding.qpn && !send) { /* behind the segment that names the next one */
        prm_store32(wqe + 16, 1u << (LOG_NUM + LOG_SIZE));
    }
    if (ring->is_dci) {
        put_target(&in->guest, wqe);
    } else if (ring->qpn == more.xrc->qpn) {
        PRM_SET(wqe_xrc_seg, (void *)(wqe + PRM_SIZE(wqe_ctrl_seg)), xrc_srqn, in->guest.xrc_srqn);
    }
    if (send) {
        uint8_t opcode = input_u8(in);

        PRM_SET(wqe_ctrl_seg, ctrl, wqe_index, pi);
        PRM_SET(wqe_ctrl_seg, ctrl, opcode, opcode);
        if (ring->qpn == more.master->qpn || ring->qpn == more.managed->qpn) {
            PRM_SET(wqe_ctrl_seg, ctrl, opmod,
                    opcode >> 6 == 3 ? PRM_SEND_OPMOD_VECTOR_CALC
                    : opcode >> 6    ? opcode % 8u
                                     : 0);
            PRM_SET(wqe_ctrl_seg, ctrl, opcode, opcode & 0x3f);
        }
        PRM_SET(wqe_ctrl_seg, ctrl, qpn, ring->qpn);
        PRM_SET(wqe_ctrl_seg, ctrl, ds, ds);
        PRM_SET(wqe_ctrl_seg, ctrl, ce, PRM_WQE_CE_ALWAYS);
        PRM_SET(wqe_ctrl_seg, ctrl, imm, in->guest.umr_key);
        put_segments(&in->guest, PRM_GET(wqe_ctrl_seg, ctrl, opcode), wqe, ds);
    }
    input_patch(in, wqe, 16 * ds);
    for (unsigned i = 0; i < blocks; i++) {
        memcpy(ring->base + (pi + i) * 64u % ring->size, wqe + i * 64u, 64);
    }
    *ring->dbr = GUINT32_TO_BE((uint32_t)(pi + blocks) & 0xffff);
    if (send) {
        ring_doorbell(in, wqe, MIN(blocks, 4), blueflame);
    }
}

/* Answers a page fault in the transport scheme. */
static void answer_fault(struct drv *drv, const struct drv_event *event, bool error)
{
    struct prm_page_fault_resume_in cmd[1] = {0};
    struct prm_trans_page_fault_info *info = PRM_PTR(page_fault_resume_in, cmd, page_fault_info);
    const struct prm_wqe_associated_page_fault_event *wqe = event->data.fault_wqe;
    bool is_wqe = event->sub_type == PRM_PFAULT_SUBTYPE_WQE;

    /* the last word has the same fields in both kinds of events */
    PRM_SET(page_fault_resume_in, cmd, opcode, PRM_CMD_OP_PAGE_FAULT_RESUME);
    PRM_SET(trans_page_fault_info, info, error, error);
    PRM_SET(trans_page_fault_info, info, page_fault_type,
            PRM_GET(wqe_associated_page_fault_event, wqe, requestor) |
                PRM_GET(wqe_associated_page_fault_event, wqe, write_read) << 1 |
                (unsigned)!is_wqe << 2);
    PRM_SET(trans_page_fault_info, info, wq_number,
            PRM_GET(wqe_associated_page_fault_event, wqe, qpn));
    PRM_SET(trans_page_fault_info, info, fault_token,
            is_wqe ? PRM_GET(wqe_associated_page_fault_event, wqe, token)
                   : PRM_GET(wqe_associated_page_fault_event, wqe, qpn));
    drv_cmd_simple(drv, cmd, sizeof(cmd));
}

/* how: bit 0: WQEs name the on-demand key from now on; bit 1: answers a page fault; bit 2: with an
 * error; bit 3: WQEs name the key with signatures. */
static void page(struct guest_input *in, unsigned how)
{
    struct drv *drv = in->guest.node->drv;
    struct drv_event event;

    more.named = how & 1 ? more.paged : how & 8 ? more.is_signed : in->guest.mem->mr.key;
    if (how & 2 && drv_wait_event(drv, PRM_EVENT_TYPE_PAGE_FAULT, DRV_ANY_NUM, &event, 0)) {
        answer_fault(drv, &event, how & 4);
    }
}

static void step(struct guest_input *in)
{
    uint8_t what = input_u8(in);
    struct ring ring = ring_at(&in->guest, what >> 4);

    switch (what & 7) {
    default: {
        unsigned i = what >> 4;

        post(in, &ring, i < 5 || (i >= 8 && i < 14), (what & 7) == 3);
        break;
    }
    case 4:
        *ring.dbr = input_u32(in);
        break;
    case 5: {
        uint64_t value = (uint64_t)input_u32(in) << 32;

        value |= input_u32(in);
        write_bar(in, (uint64_t)in->t->a.drv->uarn * PCI_PAGE + input_u16(in) % PCI_PAGE, value,
                  1u << (what >> 4) % 4);
        break;
    }
    case 6:
        input_patch(in, ring.base, ring.size);
        break;
    case 7:
        if (what >> 4 == 15) {
            page(in, input_u8(in));
        } else {
            input_advance(in, input_u16(in) * 1000ull);
        }
        break;
    }
}

static struct drv_qp *new_qp(const struct guest *g, const struct drv_qp_attr *kind)
{
    struct drv_qp *qp = g_new0(struct drv_qp, 1);
    struct drv_qp_attr attr = *kind;
    struct node *node = g->node;

    attr.pdn = node->drv->pdn;
    attr.send_cq = attr.recv_cq = &node->cq;
    attr.log_sq = g->dci->attr.log_sq;
    g_assert_cmpint(drv_create_qp(node->drv, &attr, qp), ==, 0);
    g_ptr_array_add(node->qps, qp);
    return qp;
}

/* Makes a key that a UMR gives a range of memory and signatures. */
static uint32_t new_signed_key(const struct guest *g)
{
    struct prm_create_mkey_in in[1] = {0};
    struct prm_create_mkey_out out[1] = {0};
    struct prm_mkc *mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);

    PRM_SET(create_mkey_in, in, opcode, PRM_CMD_OP_CREATE_MKEY);
    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_KLMS);
    PRM_SET(mkc, mkc, free, 1);
    PRM_SET(mkc, mkc, umr_en, 1);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, pd, g->node->drv->pdn);
    PRM_SET(mkc, mkc, translations_octword_size, 4);
    PRM_SET(mkc, mkc, bsf_en, 1);
    PRM_SET(mkc, mkc, bsf_octword_size, 4);
    g_assert_cmpint(drv_cmd(g->node->drv, in, sizeof(in), out, sizeof(out)), ==, 0);
    return PRM_GET(create_mkey_out, out, mkey_index) << 8;
}

static void run_example(const struct guest *g, const void *in, size_t len, void *out,
                        size_t out_len)
{
    g_assert_cmpint(drv_cmd(g->node->drv, in, len, out, out_len), ==, 0);
}

/* Makes a striding receive queue, and lets the guest's indirection table lead to it: with
 * frames that have no hash, and half of the others. */
static void make_striding(struct guest *g)
{
    uint64_t dbr = g->rq_dbr, ring = g->rq_ring;
    uint32_t rqn = g->rqn;
    uint8_t in[EXAMPLE_MAX] = {0};
    struct prm_create_rq_out out[1] = {0};
    struct prm_rqc *rqc = PRM_PTR(create_rq_in, (struct prm_create_rq_in *)(void *)in, ctx);
    struct prm_wq *wq = PRM_PTR(rqc, rqc, wq);
    struct prm_rqtc *rqtc = PRM_PTR(modify_rqt_in, (struct prm_modify_rqt_in *)(void *)in, ctx);
    size_t len = example(g, PRM_CMD_OP_CREATE_RQ, in);

    PRM_SET(wq, wq, wq_type, PRM_WQ_TYPE_CYCLIC_STRIDING_RQ);
    PRM_SET(wq, wq, log_wqe_num_of_strides, (LOG_NUM - 9) & 0xf); /* signed */
    PRM_SET(wq, wq, log_wqe_stride_size, LOG_SIZE - 6);
    run_example(g, in, len, out, sizeof(out));
    more.striding =
        (struct ring){PRM_GET(create_rq_out, out, rqn), false, (uint8_t *)g->mem->ptr + g->rq_ring,
                      32 * 64, (uint32_t *)((uint8_t *)g->mem->ptr + g->rq_dbr)};
    g->rq_dbr = dbr;
    g->rq_ring = ring;
    g->rqn = more.striding.qpn;
    g->ready = false;
    memset(in, 0, sizeof(in));
    len = example(g, PRM_CMD_OP_MODIFY_RQ, in);
    run_example(g, in, len, out, sizeof(out));
    g->rqn = rqn;
    g->ready = true;
    memset(in, 0, sizeof(in));
    len = example(g, PRM_CMD_OP_MODIFY_RQT, in);
    PRM_SET(rqtc, rqtc, rqt_actual_size, 2);
    PRM_SET(rq_num, PRM_PTR_AT(rqtc, rqtc, rq_num, 0), rq_num, more.striding.qpn);
    PRM_SET(rq_num, PRM_PTR_AT(rqtc, rqtc, rq_num, 1), rq_num, rqn);
    run_example(g, in, len, out, sizeof(out));
}

static void prepare(struct guest *g)
{
    g_assert_cmpint(drv_create_fault_eq(g->node->drv), ==, 0);
    more.paged = guest_paged_key(g);
    more.dci =
        new_qp(g, &(struct drv_qp_attr){.st = PRM_QP_ST_DCI, .srq = g->srq, .log_streams = 2});
    more.xrc =
        new_qp(g, &(struct drv_qp_attr){.st = PRM_QP_ST_XRC, .srq = g->srq, .xrcd = g->xrcd});
    more.master =
        new_qp(g, &(struct drv_qp_attr){.st = PRM_QP_ST_RC, .srq = g->srq, .cd_master = true});
    more.managed = new_qp(g, &(struct drv_qp_attr){.st = PRM_QP_ST_RC,
                                                   .log_rq = 5,
                                                   .max_recv_sge = 4,
                                                   .cd_master = true,
                                                   .cd_slave_send = true,
                                                   .cd_slave_receive = true});
    more.is_signed = new_signed_key(g);
    make_striding(g);
}

/* Restarts a QP, whatever an earlier run did to it. */
static void restart(struct node *node, struct drv_qp *qp)
{
    struct drv_path self = path_to(node, qp);

    self.retry_count = self.rnr_retry = 2; /* requests without a receiver end soon */
    self.ack_timeout = 10;
    g_assert_cmpint(drv_modify_qp(qp, PRM_CMD_OP_2RST_QP, 0, NULL), ==, 0);
    qp->dbr[0] = qp->dbr[1] = 0;
    g_assert_cmpint(drv_qp_connect(qp, &self), ==, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct guest_input *in = guest_input_start(data, size);

    if (in->fresh) {
        prepare(&in->guest);
    }
    more.named = in->guest.mem->mr.key;
    restart(in->guest.node, in->guest.dci);
    restart(in->guest.node, more.dci);
    restart(in->guest.node, more.xrc);
    restart(in->guest.node, more.master);
    restart(in->guest.node, more.managed);

    for (unsigned n = 0; n < MAX_STEPS && in->size; n++) {
        step(in);
        input_settle(in);
    }
    return 0;
}
