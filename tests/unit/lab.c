/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements lab.h: two HCAs, for the tests of queues and transports. */
#include <check.h>
#include <string.h>
#include "model/queue/eq.h"
#include "model/memory/mkey.h"
#include "model/core/pd.h"
#include "model/queue/uar.h"
#include "tests/unit/lab.h"
#include "wire/pair.h"

#define PAGE 4096ull

const struct lab_qp_attr lab_rc = {
    .st = PRM_QP_ST_RC,
    .log_sq = 7,
    .log_rq = 6,
};

const struct lab_path lab_path = {
    .mtu = PRM_QP_MTU_1024,
    .retry_count = 7,
    .rnr_retry = 7,
    .ack_timeout = LAB_ACK_TIMEOUT,
    .min_rnr_nak = 12, /* 0.64 ms */
    .log_sra_max = 2,
    .log_rra_max = 2,
    .psn = 0xffff80, /* wraps soon */
    .qkey = 0x11111111,
};

static const struct hca_limits limits = {
    .log_max_qp = 18,
    .log_max_cq = 16,
    .log_max_srq = 16,
    .log_max_mkey = 16,
    .log_max_pd = 16,
    .log_max_eq = 7,
    .log_max_uar = 13,
    .log_max_umem = 4,
    .log_max_uctx = 4,
    .log_max_qp_sz = 15,
    .log_max_cq_sz = 20,
    .log_max_srq_sz = 15,
    .log_max_eq_sz = 20,
    .log_max_msg = 30,
    .log_max_ra_res_qp = 4,
    .log_max_ra_req_qp = 4,
    .num_msix = FAKE_HOST_VECTORS,
    .max_gid = 16,
    .max_sq_wqe = 1024,
    .max_rq_wqe = 512,
    .no_send_dbr = true,
    .early_packets = true,
    .tunneled = true,
    .swp = true,
    .multi_packet = true,
    .dc_responders = 64,
    .dc_version = 1,
    .enhanced_cqes = true,
};

/* -- the cable --------------------------------------------------------------------------------- */

struct mid {
    struct lab *lab;
    unsigned from;
};
static struct mid mids[2];

static void mid_rx(void *opaque, const uint8_t *frame, size_t len, unsigned flags)
{
    struct mid *mid = opaque;
    struct lab *lab = mid->lab;
    struct roce_packet pkt;
    bool pass = true;
    uint8_t *room;

    if (roce_parse(frame, len, &pkt) == ROCE_OK) {
        pass = !lab->tap || lab->tap(lab, mid->from, &pkt);
        if (lab->num_packets == LAB_TRACE_MAX) {
            ck_abort_msg("more packets than the trace holds");
        }
        lab->trace[lab->num_packets++] =
            (struct lab_packet){.from = mid->from, .dropped = !pass, .pkt = pkt};
    }
    if (pass) {
        room = wire_tx_reserve(lab->mid[!mid->from], len);
        if (!room) {
            ck_abort_msg("the test's cable is full");
        }
        memcpy(room, frame, len);
        wire_tx_commit(lab->mid[!mid->from], len);
    }
}

static void mid_nothing(void *opaque)
{
}

static const struct wire_client mid_client = {
    .rx = mid_rx,
    .tx_ready = mid_nothing,
    .link_change = mid_nothing,
    .rx_ready = mid_nothing,
};

/* -- sides ------------------------------------------------------------------------------------- */

struct mem_buf lab_buf(uint64_t addr, uint64_t size)
{
    uint64_t first = addr & ~(PAGE - 1);
    uint32_t npages = (uint32_t)((addr + size - first + PAGE - 1) / PAGE);
    uint64_t *pas = g_new(uint64_t, npages);
    struct mem_buf buf;
    struct mtt *mtt;

    for (uint32_t i = 0; i < npages; i++) {
        pas[i] = GUINT64_TO_BE(first + i * PAGE);
    }
    mtt = mtt_new(pas, npages, 12);
    ck_assert(mem_buf_init(&buf, mtt, addr - first, size));
    mtt_unref(mtt);
    g_free(pas);
    return buf;
}

static void make_eq(struct lab_side *side)
{
    struct prm_eqc eqc[1] = {0};
    uint64_t bitmask[4] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    uint64_t pas[(64 << LAB_EQ_LOG) / PAGE];

    side->eq_ring = fake_host_alloc(&side->host, 64 << LAB_EQ_LOG, PAGE);
    for (size_t i = 0; i < 1u << LAB_EQ_LOG; i++) {
        ((uint8_t *)lab_ptr(side, side->eq_ring, 64 << LAB_EQ_LOG))[i * 64 + 63] = 1;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(pas); i++) {
        pas[i] = GUINT64_TO_BE(side->eq_ring + i * PAGE);
    }
    PRM_SET(eqc, eqc, log_eq_size, LAB_EQ_LOG);
    PRM_SET(eqc, eqc, uar_page, side->uarn);
    ck_assert_int_eq(eq_create(&side->hca, 0, eqc, pas, G_N_ELEMENTS(pas), bitmask, &side->eqn),
                     SYN_OK);
}

static uint32_t make_cq(struct lab_side *side, size_t cqe_size, unsigned log_size, uint64_t *ring,
                        uint64_t *dbr)
{
    struct prm_cqc cqc[1] = {0};
    size_t bytes = cqe_size << log_size;
    struct mem_buf buf;
    uint32_t cqn;

    *ring = fake_host_alloc(&side->host, bytes, PAGE);
    *dbr = fake_host_alloc(&side->host, 8, 8);
    for (size_t end = cqe_size; end <= bytes; end += cqe_size) {
        ((uint8_t *)lab_ptr(side, *ring, bytes))[end - 1] = PRM_CQE_OPCODE_INVALID << 4 | 1;
    }
    buf = lab_buf(*ring, bytes);
    PRM_SET(cqc, cqc, cqe_sz, cqe_size == 128 ? PRM_CQE_SZ_128_BYTES : PRM_CQE_SZ_64_BYTES);
    PRM_SET(cqc, cqc, log_cq_size, log_size);
    PRM_SET(cqc, cqc, uar_page, side->uarn);
    PRM_SET(cqc, cqc, c_eqn_or_apu_element, side->eqn);
    ck_assert_int_eq(cq_create(&side->hca, 0, cqc, &buf, *dbr, &cqn), SYN_OK);
    return cqn;
}

uint32_t lab_cq_new(struct lab_side *side, unsigned log_size, uint64_t *ring, uint64_t *dbr)
{
    return make_cq(side, 64, log_size, ring, dbr);
}

uint32_t lab_cq128_new(struct lab_side *side, unsigned log_size, uint64_t *ring, uint64_t *dbr)
{
    return make_cq(side, 128, log_size, ring, dbr);
}

static uint32_t make_key(struct lab_side *side, struct prm_mkc *mkc, unsigned rights,
                         const void *xlt, size_t xlt_len)
{
    uint32_t index;

    PRM_SET(mkc, mkc, lr, !!(rights & MEM_LOCAL_READ));
    PRM_SET(mkc, mkc, lw, !!(rights & MEM_LOCAL_WRITE));
    PRM_SET(mkc, mkc, rr, !!(rights & MEM_REMOTE_READ));
    PRM_SET(mkc, mkc, rw, !!(rights & MEM_REMOTE_WRITE));
    PRM_SET(mkc, mkc, a, !!(rights & MEM_REMOTE_ATOMIC));
    PRM_SET(mkc, mkc, en_rinval, 1);
    PRM_SET(mkc, mkc, umr_en, 1);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, pd, side->pdn);
    PRM_SET(mkc, mkc, mkey_7_0, 0x42);
    ck_assert_int_eq(mkey_create(&side->hca, 0, mkc, xlt, xlt_len, true, &index), SYN_OK);
    return index << 8 | 0x42;
}

uint32_t lab_mr(struct lab_side *side, uint64_t addr, size_t len, unsigned rights)
{
    struct prm_mkc mkc[1] = {0};
    uint64_t first = addr & ~(PAGE - 1);
    size_t npages = (addr + len - first + PAGE - 1) / PAGE;
    uint64_t *pas = g_new0(uint64_t, npages + 1);
    uint32_t key;

    for (size_t i = 0; i < npages; i++) {
        pas[i] = GUINT64_TO_BE(first + i * PAGE);
    }
    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_MTT);
    PRM_SET(mkc, mkc, start_addr, addr);
    PRM_SET(mkc, mkc, len, len);
    PRM_SET(mkc, mkc, log_page_size, 12);
    PRM_SET(mkc, mkc, translations_octword_size, (npages + 1) / 2);
    key = make_key(side, mkc, rights, pas, npages * 8);
    g_free(pas);
    return key;
}

uint32_t lab_crumbs(struct lab_side *side, uint64_t addr, unsigned len, uint64_t start)
{
    g_autofree struct prm_wqe_klm_seg *xlt = g_new0(struct prm_wqe_klm_seg, len);
    struct prm_mkc mkc[1] = {0};
    uint32_t index;

    for (unsigned i = 0; i < len; i++) {
        PRM_SET(wqe_klm_seg, &xlt[i], byte_count, 1);
        PRM_SET(wqe_klm_seg, &xlt[i], mkey, side->key);
        PRM_SET(wqe_klm_seg, &xlt[i], va, addr + i);
    }
    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_KLMS);
    PRM_SET(mkc, mkc, lr, 1);
    PRM_SET(mkc, mkc, lw, 1);
    PRM_SET(mkc, mkc, rw, 1);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, pd, side->pdn);
    PRM_SET(mkc, mkc, start_addr, start);
    PRM_SET(mkc, mkc, len, len);
    PRM_SET(mkc, mkc, translations_octword_size, len);
    ck_assert_int_eq(mkey_create(&side->hca, 0, mkc, xlt, len * sizeof(*xlt), true, &index),
                     SYN_OK);
    return index << 8;
}

static void make_side(struct lab_side *side, unsigned nth, struct wire_port *wire)
{
    struct prm_mkc mkc[1] = {0};
    struct vport_gid gid = {.valid = true, .version = PRM_ROCE_VERSION_V2};

    fake_host_init(&side->host);
    side->host.now = 1000;
    memcpy(side->mac, (uint8_t[]){0x02, 0, 0, 0, 0, (uint8_t)(nth + 1)}, 6);
    hca_init(&side->hca, &fake_host_ops, &side->host, &limits, side->mac);
    side->hca.resd_lkey = 0x700;
    port_set_wire(&side->hca, wire);
    side->hca.vport->uplink->admin_up = true;
    side->hca.vport->roce_enabled = true;
    side->hca.vport->uplink->mtu = 4200 + 22;
    memcpy(gid.gid, (uint8_t[]){[10] = 0xff, [11] = 0xff, [12] = 10, [15] = (uint8_t)(nth + 1)},
           16);
    memcpy(gid.mac, side->mac, 6);
    vport_set_gid(side->hca.vport, 3, &gid);
    ck_assert_int_eq(uar_alloc(&side->hca, 0, &side->uarn), SYN_OK);
    ck_assert_int_eq(pd_alloc(&side->hca, 0, &side->pdn), SYN_OK);
    make_eq(side);
    side->cqn = lab_cq_new(side, LAB_CQ_LOG, &side->cq_ring, &side->cq_dbr);
    PRM_SET(mkc, mkc, length64, 1);
    side->key = make_key(side, mkc, 0x1f, NULL, 0);
}

struct lab *lab_new(void)
{
    struct lab *lab = g_new0(struct lab, 1);

    for (unsigned i = 0; i < 2; i++) {
        struct wire_port *ends[2];

        wire_pair_new(512, ends);
        mids[i] = (struct mid){lab, i};
        lab->mid[i] = ends[1];
        wire_set_client(ends[1], &mid_client, &mids[i]);
        make_side(&lab->side[i], i, ends[0]);
    }
    return lab;
}

void lab_free(struct lab *lab)
{
    for (unsigned i = 0; i < 2; i++) {
        struct wire_port *wire = lab->side[i].hca.vport->uplink->wire;

        hca_clear(&lab->side[i].hca);
        ck_assert_uint_eq(lab->side[i].host.open_maps, 0);
        ck_assert_uint_eq(lab->side[i].host.bad_irqs, 0);
        wire_close(wire);
        wire_close(lab->mid[i]);
        fake_host_clear(&lab->side[i].host);
    }
    g_free(lab);
}

void lab_run(struct lab *lab)
{
    bool busy = true;

    for (unsigned rounds = 0; busy; rounds++) {
        if (rounds == 1000000) {
            ck_abort_msg("the HCAs never come to rest");
        }
        busy = false;
        for (unsigned i = 0; i < 2; i++) {
            busy |= hca_run(&lab->side[i].hca, LAB_BUDGET);
            busy |= wire_poll(lab->mid[i], 64) > 0;
        }
    }
}

void lab_advance(struct lab *lab, uint64_t ns)
{
    uint64_t end = lab->side[0].host.now + ns;

    lab_run(lab);
    for (;;) {
        uint64_t next = MIN(end, MIN(lab->side[0].host.deadline, lab->side[1].host.deadline));

        lab->side[0].host.now = lab->side[1].host.now = MAX(next, lab->side[0].host.now);
        lab_run(lab);
        if (lab->side[0].host.now >= end) {
            return;
        }
    }
}

void *lab_ptr(struct lab_side *side, uint64_t addr, size_t len)
{
    return fake_host_ptr(&side->host, addr, len);
}

uint64_t lab_mem(struct lab_side *side, size_t len, unsigned seed)
{
    uint64_t addr = fake_host_alloc(&side->host, len ? len : 1, 64);
    uint8_t *p = lab_ptr(side, addr, len);

    for (size_t i = 0; seed && i < len; i++) {
        p[i] = (uint8_t)(i * 7 + i / 251 + seed);
    }
    return addr;
}

/* -- QPs --------------------------------------------------------------------------------------- */

void lab_qp_new(struct lab_side *side, const struct lab_qp_attr *attr, struct lab_qp *qp)
{
    struct prm_qpc qpc[1] = {0};
    bool own_rq = !attr->srqn && !attr->no_rq;
    struct mem_buf buf;
    uint32_t qpn;
    uint64_t rq_bytes;

    *qp = (struct lab_qp){
        .side = side, .log_rq = attr->log_rq, .log_sq = attr->log_sq, .log_rq_stride = 6};
    rq_bytes = own_rq ? 1ull << (qp->log_rq + qp->log_rq_stride) : 0;
    qp->rq_ring = fake_host_alloc(&side->host, rq_bytes + (64ull << qp->log_sq), PAGE);
    qp->sq_ring = qp->rq_ring + rq_bytes;
    qp->dbr = fake_host_alloc(&side->host, 8, 8);
    PRM_SET(qpc, qpc, st, attr->st);
    PRM_SET(qpc, qpc, pm_state, PRM_QP_PM_STATE_MIGRATED);
    PRM_SET(qpc, qpc, rlky, !attr->programs);
    PRM_SET(qpc, qpc, fre, !attr->programs);
    PRM_SET(qpc, qpc, pd, attr->pdn ? attr->pdn : side->pdn);
    PRM_SET(qpc, qpc, uar_page, side->uarn);
    PRM_SET(qpc, qpc, user_index, 0xffffff);
    PRM_SET(qpc, qpc, log_sq_size, attr->log_sq);
    PRM_SET(qpc, qpc, rq_type,
            own_rq       ? PRM_RQ_TYPE_REGULAR
            : attr->srqn ? PRM_RQ_TYPE_SRQ
                         : PRM_RQ_TYPE_ZERO_SIZE);
    PRM_SET(qpc, qpc, srqn_rmpn_xrqn, attr->srqn);
    PRM_SET(qpc, qpc, log_num_dci_stream_channels, attr->log_streams);
    PRM_SET(qpc, qpc, log_num_dci_errored_streams, attr->log_errored);
    if (own_rq) {
        PRM_SET(qpc, qpc, log_rq_size, attr->log_rq);
        PRM_SET(qpc, qpc, log_rq_stride, qp->log_rq_stride - 4);
    }
    if (attr->no_record) {
        PRM_SET(qpc, qpc, send_dbr_mode, PRM_SEND_DBR_MODE_NO_DBR_EXT);
        qp->dbr = UINT64_MAX - 7;
    }
    PRM_SET(qpc, qpc, cs_req, attr->cs_req);
    PRM_SET(qpc, qpc, cs_res, attr->cs_res);
    PRM_SET(qpc, qpc, ts_format, attr->ts_format);
    PRM_SET(qpc, qpc, cd_master, attr->master);
    PRM_SET(qpc, qpc, cd_slave_send, attr->managed_send);
    PRM_SET(qpc, qpc, cd_slave_receive, attr->managed_recv);
    PRM_SET(qpc, qpc, cqn_snd, attr->cqn ? attr->cqn : side->cqn);
    PRM_SET(qpc, qpc, cqn_rcv, attr->cqn ? attr->cqn : side->cqn);
    buf = lab_buf(qp->rq_ring, rq_bytes + (64ull << qp->log_sq));
    ck_assert_int_eq(qp_create(&side->hca, 0, qpc, &buf, qp->dbr, &qpn), SYN_OK);
    qp->qp = qp_find(&side->hca, qpn);
}

enum syn lab_modify(struct lab_qp *qp, uint16_t opcode, const struct lab_path *path, uint32_t psn,
                    const struct lab_qp *peer)
{
    struct prm_qpc qpc[1] = {0};
    struct prm_ads *ads = PRM_PTR(qpc, qpc, primary_address_path);

    PRM_SET(qpc, qpc, rre, 1);
    PRM_SET(qpc, qpc, rwe, 1);
    PRM_SET(qpc, qpc, rae, 1);
    PRM_SET(qpc, qpc, atomic_mode, PRM_ATOMIC_MODE_UP_TO_128B);
    PRM_SET(ads, ads, vhca_port_num, 1);
    if (path) {
        if (path->order) {
            PRM_SET(qpc, qpc, dp_ordering_0, path->order & 1);
            PRM_SET(qpc, qpc, dp_ordering_1, path->order >> 1);
            PRM_SET(qpc, qpc, dp_ordering_force, 1);
            PRM_SET(qpc, qpc, atomic_mode, PRM_ATOMIC_MODE_UP_TO_8B);
        }
        PRM_SET(qpc, qpc, q_key, path->qkey);
        PRM_SET(qpc, qpc, mtu, path->mtu);
        PRM_SET(qpc, qpc, log_msg_max, 30);
        PRM_SET(qpc, qpc, next_rcv_psn, psn & PSN_MASK);
        PRM_SET(qpc, qpc, next_send_psn, psn & PSN_MASK);
        PRM_SET(qpc, qpc, log_rra_max, path->log_rra_max);
        PRM_SET(qpc, qpc, log_sra_max, path->log_sra_max);
        PRM_SET(qpc, qpc, min_rnr_nak, path->min_rnr_nak);
        PRM_SET(qpc, qpc, retry_count, path->retry_count);
        PRM_SET(qpc, qpc, rnr_retry, path->rnr_retry);
        PRM_SET(ads, ads, ack_timeout, path->ack_timeout);
        PRM_SET(ads, ads, log_rtm, path->log_rtm);
    }
    if (peer && path && path->fl) {
        PRM_SET(qpc, qpc, remote_qpn, peer->qp->obj.num);
        PRM_SET(ads, ads, fl, 1);
    } else if (peer) {
        const uint8_t *mac = peer->side->mac;

        PRM_SET(qpc, qpc, remote_qpn, peer->qp->obj.num);
        PRM_SET(ads, ads, src_addr_index, 3);
        PRM_SET(ads, ads, hop_limit, 64);
        PRM_SET(ads, ads, rmac_47_32, mac[0] << 8 | mac[1]);
        PRM_SET(ads, ads, rmac_31_0, (uint32_t)mac[2] << 24 | mac[3] << 16 | mac[4] << 8 | mac[5]);
        memcpy(PRM_PTR(ads, ads, rgid_rip), peer->side->hca.vport->gids[3].gid, 16);
    }
    return qp_modify(&qp->side->hca, 0, qp->qp->obj.num, opcode, 0, qpc, NULL);
}

static void to_rts(struct lab_qp *qp, const struct lab_path *path, uint32_t send_psn,
                   uint32_t recv_psn, const struct lab_qp *peer)
{
    ck_assert_int_eq(lab_modify(qp, PRM_CMD_OP_RST2INIT_QP, path, 0, NULL), SYN_OK);
    ck_assert_int_eq(lab_modify(qp, PRM_CMD_OP_INIT2RTR_QP, path, recv_psn, peer), SYN_OK);
    ck_assert_int_eq(lab_modify(qp, PRM_CMD_OP_RTR2RTS_QP, path, send_psn, peer), SYN_OK);
}

void lab_connect(struct lab *lab, struct lab_qp *a, struct lab_qp *b, const struct lab_path *path)
{
    to_rts(a, path, path->psn, path->psn + 0x1000, b);
    to_rts(b, path, path->psn + 0x1000, path->psn, a);
    lab_run(lab);
}

void lab_rc_pair(struct lab *lab, struct lab_qp *a, struct lab_qp *b, const struct lab_path *path)
{
    lab_qp_new(&lab->side[0], &lab_rc, a);
    lab_qp_new(&lab->side[1], &lab_rc, b);
    lab_connect(lab, a, b, path);
}

/* -- work requests ----------------------------------------------------------------------------- */

static bool has_raddr(uint8_t opcode)
{
    return opcode == PRM_WQE_OPCODE_RDMA_WRITE || opcode == PRM_WQE_OPCODE_RDMA_WRITE_IMM ||
           opcode == PRM_WQE_OPCODE_RDMA_READ || opcode == PRM_WQE_OPCODE_ATOMIC_CS ||
           opcode == PRM_WQE_OPCODE_ATOMIC_FA || opcode == PRM_WQE_OPCODE_ATOMIC_MASKED_CS ||
           opcode == PRM_WQE_OPCODE_ATOMIC_MASKED_FA;
}

static uint8_t *put_av(const struct lab_qp *qp, const struct lab_wr *wr, void *seg,
                       const struct lab_side *peer)
{
    if (qp->qp->service->dynamic) {
        PRM_SET(wqe_av, seg, dc_key, wr->dc_key);
    } else {
        PRM_SET(wqe_av, seg, qkey, wr->qkey);
    }
    PRM_SET(wqe_av, seg, ext, 1);
    PRM_SET(wqe_av, seg, grh, 1);
    PRM_SET(wqe_av, seg, dqp_dct, wr->dest_qpn);
    PRM_SET(wqe_av, seg, udp_sport, 0xd000);
    PRM_SET(wqe_av, seg, hop_limit, 33);
    PRM_SET(wqe_av, seg, tclass, 0x48);
    PRM_SET(wqe_av, seg, src_addr_index, 3);
    memcpy(PRM_PTR(wqe_av, seg, rmac), peer->mac, 6);
    memcpy(PRM_PTR(wqe_av, seg, rgid), peer->hca.vport->gids[3].gid, 16);
    return seg + PRM_SIZE(wqe_av);
}

void *lab_write_wqe(struct lab_qp *qp, const struct lab_wr *wr)
{
    union {
        struct prm_wqe_ctrl_seg ctrl[1];
        uint8_t bytes[1024];
    } wqe = {0};
    void *seg = wqe.bytes + PRM_SIZE(wqe_ctrl_seg);
    uint8_t *ring = lab_ptr(qp->side, qp->sq_ring, 64ull << qp->log_sq);
    uint16_t slots = (uint16_t)(1u << qp->log_sq);
    uint16_t first = qp->sq_pi;
    unsigned num_bb;

    if (!qp->qp->service->connected) {
        /* side[0] and side[1] lie next to each other in struct lab */
        const struct lab_side *peer = qp->side->mac[5] == 1 ? qp->side + 1 : qp->side - 1;

        seg = put_av(qp, wr, seg, wr->loop ? qp->side : peer);
    }
    if (has_raddr(wr->opcode)) {
        PRM_SET(wqe_raddr_seg, seg, raddr, wr->raddr);
        PRM_SET(wqe_raddr_seg, seg, rkey, wr->rkey);
        seg += PRM_SIZE(wqe_raddr_seg);
    }
    if (wr->opcode == PRM_WQE_OPCODE_ATOMIC_CS || wr->opcode == PRM_WQE_OPCODE_ATOMIC_FA) {
        PRM_SET(wqe_atomic_seg, seg, swap_add, wr->swap_add);
        PRM_SET(wqe_atomic_seg, seg, compare, wr->compare);
        seg += PRM_SIZE(wqe_atomic_seg);
    }
    if (wr->operands) {
        memcpy(seg, wr->operands, wr->operands_len);
        seg += (wr->operands_len + 15) / 16 * 16;
    }
    if (wr->inline_data) {
        PRM_SET(wqe_inline_seg, seg, inl, 1);
        PRM_SET(wqe_inline_seg, seg, byte_count, wr->inline_len);
        memcpy(PRM_PTR(wqe_inline_seg, seg, data), wr->inline_data, wr->inline_len);
        seg += (4 + wr->inline_len + 15) / 16 * 16;
    }
    for (unsigned i = 0; i < wr->num_sge; i++) {
        PRM_SET(wqe_data_seg, seg, byte_count, wr->sge[i].len);
        PRM_SET(wqe_data_seg, seg, lkey, wr->sge[i].key ? wr->sge[i].key : qp->side->key);
        PRM_SET(wqe_data_seg, seg, addr, wr->sge[i].addr);
        seg += PRM_SIZE(wqe_data_seg);
    }
    PRM_SET(wqe_ctrl_seg, wqe.ctrl, wqe_index, first);
    PRM_SET(wqe_ctrl_seg, wqe.ctrl, opcode, wr->opcode);
    PRM_SET(wqe_ctrl_seg, wqe.ctrl, opmod, wr->opmod);
    PRM_SET(wqe_ctrl_seg, wqe.ctrl, qpn, qp->qp->obj.num);
    PRM_SET(wqe_ctrl_seg, wqe.ctrl, ds, (size_t)(seg - (void *)wqe.bytes) / 16);
    PRM_SET(wqe_ctrl_seg, wqe.ctrl, fm, wr->fence);
    PRM_SET(wqe_ctrl_seg, wqe.ctrl, ce, wr->unsignaled ? PRM_WQE_CE_ERROR : PRM_WQE_CE_ALWAYS);
    PRM_SET(wqe_ctrl_seg, wqe.ctrl, se, wr->solicited);
    PRM_SET(wqe_ctrl_seg, wqe.ctrl, imm, wr->imm);
    PRM_SET(wqe_ctrl_seg, wqe.ctrl, dci_stream_channel_id, wr->stream);
    num_bb = (unsigned)((seg - (void *)wqe.bytes + 63) / 64);
    for (unsigned i = 0; i < num_bb; i++) {
        memcpy(ring + (size_t)((first + i) % slots) * 64, wqe.bytes + i * 64, 64);
    }
    qp->sq_pi = (uint16_t)(first + num_bb);
    return ring + (size_t)(first % slots) * 64;
}

void lab_ring(struct lab_qp *qp)
{
    PRM_SET(qp_dbr, lab_ptr(qp->side, qp->dbr, 8), send_counter, qp->sq_pi);
    requester_doorbell(qp->qp);
}

void lab_post(struct lab_qp *qp, const struct lab_wr *wr)
{
    lab_write_wqe(qp, wr);
    lab_ring(qp);
}

void lab_post_recv(struct lab_qp *qp, uint64_t addr, uint32_t len)
{
    uint32_t slot = qp->rq_pi % (1u << qp->log_rq);
    void *wqe = lab_ptr(qp->side, qp->rq_ring + ((uint64_t)slot << qp->log_rq_stride), 64);

    memset(wqe, 0, 64);
    PRM_SET(wqe_data_seg, wqe, byte_count, len);
    PRM_SET(wqe_data_seg, wqe, lkey, qp->side->key);
    PRM_SET(wqe_data_seg, wqe, addr, addr);
    PRM_SET(wqe_data_seg, wqe + 16, lkey, WQE_TERMINATOR_LKEY);
    qp->rq_pi++;
    PRM_SET(qp_dbr, lab_ptr(qp->side, qp->dbr, 8), rcv_counter, qp->rq_pi);
}

/* -- what comes back --------------------------------------------------------------------------- */

bool lab_poll(struct lab_side *side, struct lab_cqe *cqe)
{
    uint32_t size = 1u << LAB_CQ_LOG;
    void *raw = lab_ptr(side, side->cq_ring + (side->cq_ci % size) * 64ull, 64);

    if (PRM_GET(cqe64, raw, opcode) == PRM_CQE_OPCODE_INVALID ||
        PRM_GET(cqe64, raw, owner) != (side->cq_ci >> LAB_CQ_LOG & 1)) {
        return false;
    }
    *cqe = (struct lab_cqe){
        .opcode = (uint8_t)PRM_GET(cqe64, raw, opcode),
        .send_opcode = (uint8_t)PRM_GET(cqe64, raw, send_wqe_opcode),
        .counter = (uint16_t)PRM_GET(cqe64, raw, wqe_counter),
        .qpn = PRM_GET(cqe64, raw, qpn),
        .byte_cnt = PRM_GET(cqe64, raw, byte_cnt),
        .imm = PRM_GET(cqe64, raw, immediate),
        .stamp = PRM_GET(cqe64, raw, timestamp),
    };
    if (cqe->opcode == PRM_CQE_OPCODE_REQ_ERR || cqe->opcode == PRM_CQE_OPCODE_RESP_ERR) {
        cqe->syndrome = (uint8_t)PRM_GET(err_cqe, raw, syndrome);
        cqe->vendor = (uint8_t)PRM_GET(err_cqe, raw, vendor_err_synd);
        cqe->byte_cnt = 0;
    }
    side->cq_ci++;
    PRM_SET(cq_dbr, lab_ptr(side, side->cq_dbr, 8), ci, side->cq_ci & 0xffffff);
    return true;
}

bool lab_event(struct lab_side *side, uint8_t *type, uint32_t *num)
{
    uint32_t size = 1u << LAB_EQ_LOG;

    for (;;) {
        struct prm_eqe *raw = lab_ptr(side, side->eq_ring + (side->eq_ci % size) * 64ull, 64);

        if (PRM_GET(eqe, raw, owner) != (side->eq_ci >> LAB_EQ_LOG & 1)) {
            return false;
        }
        side->eq_ci++;
        *type = (uint8_t)PRM_GET(eqe, raw, event_type);
        *num = PRM_GET(qp_events, PRM_PTR(eqe, raw, event_data), qpn_rqn_sqn);
        if (*type != PRM_EVENT_TYPE_COMP && *type != PRM_EVENT_TYPE_PORT_CHANGE) {
            return true;
        }
    }
}

unsigned lab_count(const struct lab *lab, unsigned from, uint8_t op)
{
    unsigned n = 0;

    for (unsigned i = 0; i < lab->num_packets; i++) {
        n += lab->trace[i].from == from && (lab->trace[i].pkt.opcode & 0x1f) == op;
    }
    return n;
}
