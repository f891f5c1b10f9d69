/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements rdma_bench.h: makes objects by calling the model as the firmware does. */
#include <string.h>
#include "model/queue/eq.h"
#include "model/memory/mkey.h"
#include "model/core/pd.h"
#include "model/queue/uar.h"
#include "tests/unit/rdma_bench.h"
#include "wire/pair.h"

#define PAGE          4096
#define WIRE_SLOTS    64
#define LOG_EQ        8
#define LOG_RQ        4
#define LOG_RQ_STRIDE 6
#define LOG_SQ        4

static const uint8_t own_mac[6] = {0x02, 0, 0, 0, 0, 1}, peer_mac[6] = {0x02, 0, 0, 0, 0, 2};

static const uint8_t own_gid[][16] = {
    [BENCH_IPV4] = {[10] = 0xff, 0xff, 10, 0, 0, 1},
    [BENCH_IPV6] = {0xfe, 0x80, [15] = 1},
};
static const uint8_t peer_gid[][16] = {
    [BENCH_IPV4] = {[10] = 0xff, 0xff, 10, 0, 0, 2},
    [BENCH_IPV6] = {0xfe, 0x80, [15] = 2},
};

static void peer_rx(void *opaque, const uint8_t *frame, size_t len, unsigned flags)
{
    struct bench *b = opaque;

    ck_assert_uint_lt(b->got, BENCH_FRAMES);
    memcpy(b->frames[b->got].bytes, frame, len);
    b->frames[b->got++].len = len;
}

static void peer_nothing(void *opaque)
{
}

static const struct wire_client peer_client = {
    .rx = peer_rx,
    .tx_ready = peer_nothing,
    .link_change = peer_nothing,
    .rx_ready = peer_nothing,
};

struct mem_buf bench_buf(uint64_t addr, uint64_t size)
{
    uint32_t npages = (uint32_t)((size + PAGE - 1) / PAGE);
    uint8_t *pas = g_malloc(8 * npages);
    struct mem_buf buf;
    struct mtt *mtt;

    for (uint32_t i = 0; i < npages; i++) {
        uint64_t pa = GUINT64_TO_BE(addr + (uint64_t)i * PAGE);

        memcpy(pas + 8 * i, &pa, 8);
    }
    mtt = mtt_new(pas, npages, 12);
    ck_assert(mem_buf_init(&buf, mtt, 0, size));
    mtt_unref(mtt);
    g_free(pas);
    return buf;
}

static void make_eq(struct bench *b)
{
    struct prm_eqc eqc[1] = {0};
    uint64_t events[4] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    uint64_t ring = fake_host_alloc(&b->host, 64 << LOG_EQ, PAGE);
    uint64_t pas[(64 << LOG_EQ) / PAGE];

    for (size_t i = 0; i < G_N_ELEMENTS(pas); i++) {
        pas[i] = GUINT64_TO_BE(ring + i * PAGE);
    }
    for (int i = 0; i < 1 << LOG_EQ; i++) {
        PRM_SET(eqe, fake_host_ptr(&b->host, ring + 64 * i, 64), owner, 1);
    }
    PRM_SET(eqc, eqc, log_eq_size, LOG_EQ);
    PRM_SET(eqc, eqc, uar_page, b->uarn);
    ck_assert_int_eq(eq_create(&b->hca, 0, eqc, pas, G_N_ELEMENTS(pas), events, &b->eqn), SYN_OK);
    b->eq_ring = ring;
}

void bench_init(struct bench *b)
{
    static const struct hca_limits limits = {
        .log_max_qp = 12,
        .log_max_cq = 12,
        .log_max_srq = 12,
        .log_max_mkey = 12,
        .log_max_pd = 12,
        .log_max_eq = 7,
        .log_max_uar = 8,
        .log_max_umem = 4,
        .log_max_uctx = 4,
        .log_max_qp_sz = 15,
        .log_max_cq_sz = 16,
        .log_max_srq_sz = 15,
        .log_max_eq_sz = 16,
        .log_max_msg = 30,
        .log_max_ra_res_qp = 4,
        .log_max_ra_req_qp = 4,
        .num_msix = 8,
        .max_gid = 16,
        .max_sq_wqe = 512,
        .max_rq_wqe = 512,
        .early_packets = true,
    };
    struct wire_port *ends[2];

    memset(b, 0, sizeof(*b));
    b->frames = g_malloc(sizeof(*b->frames) * BENCH_FRAMES);
    fake_host_init(&b->host);
    hca_init(&b->hca, &fake_host_ops, &b->host, &limits, own_mac);
    wire_pair_new(WIRE_SLOTS, ends);
    port_set_wire(&b->hca, ends[0]);
    b->peer = ends[1];
    wire_set_client(b->peer, &peer_client, b);
    b->hca.vport->roce_enabled = true;
    b->hca.vport->uplink->mtu = PORT_MAX_MTU;
    for (int i = 0; i < 2; i++) {
        struct vport_gid gid = {
            .valid = true, .version = PRM_ROCE_VERSION_V2, .l3_type = i == BENCH_IPV6};

        memcpy(gid.gid, own_gid[i], 16);
        memcpy(gid.mac, own_mac, 6);
        vport_set_gid(b->hca.vport, (unsigned)i, &gid);
    }
    ck_assert_int_eq(pd_alloc(&b->hca, 0, &b->pdn), SYN_OK);
    ck_assert_int_eq(uar_alloc(&b->hca, 0, &b->uarn), SYN_OK);
    make_eq(b);
    bench_cq(b, 6, &b->cq);
    bench_run(b);
    /* The link coming up was an event, too. */
    while (b->eq_ci < 1u << LOG_EQ &&
           !PRM_GET(eqe, fake_host_ptr(&b->host, b->eq_ring + 64 * b->eq_ci, 64), owner)) {
        b->eq_ci++;
    }
}

void bench_clear(struct bench *b)
{
    struct wire_port *end = b->hca.vport->uplink->wire;

    hca_clear(&b->hca);
    wire_close(end);
    wire_close(b->peer);
    ck_assert_uint_eq(b->host.open_maps, 0);
    fake_host_clear(&b->host);
    g_free(b->frames);
}

void bench_run(struct bench *b)
{
    bool more;

    do {
        more = hca_run(&b->hca, 512);
        more |= !b->deaf && wire_poll(b->peer, 64) > 0;
    } while (more);
}

uint32_t bench_key(struct bench *b, const struct bench_key_attr *attr)
{
    unsigned access = attr->access;
    struct prm_mkc mkc[1] = {0};
    uint32_t index;

    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_PA);
    PRM_SET(mkc, mkc, lr, !!(access & MEM_LOCAL_READ));
    PRM_SET(mkc, mkc, lw, !!(access & MEM_LOCAL_WRITE));
    PRM_SET(mkc, mkc, rr, !!(access & MEM_REMOTE_READ));
    PRM_SET(mkc, mkc, rw, !!(access & MEM_REMOTE_WRITE));
    PRM_SET(mkc, mkc, a, !!(access & MEM_REMOTE_ATOMIC));
    PRM_SET(mkc, mkc, qpn, attr->qpn ? attr->qpn : 0xffffff);
    PRM_SET(mkc, mkc, mkey_7_0, 0x42);
    PRM_SET(mkc, mkc, pd, b->pdn);
    PRM_SET(mkc, mkc, start_addr, attr->addr);
    PRM_SET(mkc, mkc, len, attr->len);
    PRM_SET(mkc, mkc, umr_en, 1);
    PRM_SET(mkc, mkc, en_rinval, !attr->no_rinval);
    ck_assert_int_eq(mkey_create(&b->hca, 0, mkc, NULL, 0, true, &index), SYN_OK);
    return index << 8 | 0x42;
}

uint32_t bench_mkey(struct bench *b, uint64_t addr, uint64_t len, unsigned access)
{
    return bench_key(b, &(struct bench_key_attr){.addr = addr, .len = len, .access = access});
}

static struct prm_cqe64 *bench_cqe(struct bench *b, const struct bench_cq *cq, uint32_t index)
{
    uint32_t slot = index & ((1u << cq->log_size) - 1);

    return fake_host_ptr(&b->host, cq->ring + (slot + 1) * cq->cqe_size - 64, 64);
}

static void bench_make_cq(struct bench *b, uint32_t cqe_size, uint32_t log_size,
                          struct bench_cq *cq)
{
    struct prm_cqc cqc[1] = {0};
    struct mem_buf buf;

    cq->log_size = log_size;
    cq->cqe_size = cqe_size;
    cq->ci = 0;
    cq->ring = fake_host_alloc(&b->host, cqe_size << log_size, PAGE);
    cq->dbr = fake_host_alloc(&b->host, 8, 8);
    for (uint32_t i = 0; i < 1u << log_size; i++) {
        struct prm_cqe64 *cqe = bench_cqe(b, cq, i);

        PRM_SET(cqe64, cqe, opcode, PRM_CQE_OPCODE_INVALID);
        PRM_SET(cqe64, cqe, owner, 1);
    }
    buf = bench_buf(cq->ring, cqe_size << log_size);
    PRM_SET(cqc, cqc, cqe_sz, cqe_size == 128 ? PRM_CQE_SZ_128_BYTES : PRM_CQE_SZ_64_BYTES);
    PRM_SET(cqc, cqc, log_cq_size, log_size);
    PRM_SET(cqc, cqc, uar_page, b->uarn);
    PRM_SET(cqc, cqc, c_eqn_or_apu_element, b->eqn);
    PRM_SET(cqc, cqc, dbr_addr, cq->dbr);
    ck_assert_int_eq(cq_create(&b->hca, 0, cqc, &buf, cq->dbr, &cq->cqn), SYN_OK);
}

void bench_cq(struct bench *b, uint32_t log_size, struct bench_cq *cq)
{
    bench_make_cq(b, 64, log_size, cq);
}

void bench_cq128(struct bench *b, uint32_t log_size, struct bench_cq *cq)
{
    bench_make_cq(b, 128, log_size, cq);
}

const void *bench_poll(struct bench *b, struct bench_cq *cq)
{
    const struct prm_cqe64 *cqe = bench_cqe(b, cq, cq->ci);

    if (PRM_GET(cqe64, cqe, opcode) == PRM_CQE_OPCODE_INVALID ||
        PRM_GET(cqe64, cqe, owner) != (cq->ci >> cq->log_size & 1)) {
        return NULL;
    }
    cq->ci++;
    PRM_SET(cq_dbr, fake_host_ptr(&b->host, cq->dbr, 8), ci, cq->ci & 0xffffff);
    return cqe;
}

int bench_event(struct bench *b, uint32_t qpn)
{
    while (b->eq_ci < 1u << LOG_EQ) {
        const struct prm_eqe *eqe = fake_host_ptr(&b->host, b->eq_ring + 64 * b->eq_ci, 64);
        const struct prm_qp_events *data = PRM_PTR(eqe, eqe, event_data);
        uint32_t type = PRM_GET(eqe, eqe, event_type);

        if (PRM_GET(eqe, eqe, owner)) {
            return -1;
        }
        b->eq_ci++;
        if (type != PRM_EVENT_TYPE_COMP && PRM_GET(qp_events, data, qpn_rqn_sqn) == qpn) {
            return (int)type;
        }
    }
    return -1;
}

/* -- queue pairs ------------------------------------------------------------------------------- */

void bench_qpc(struct bench *b, const struct bench_qp_attr *attr, struct prm_qpc *qpc)
{
    memset(qpc, 0, PRM_SIZE(qpc));
    PRM_SET(qpc, qpc, st, attr->st);
    PRM_SET(qpc, qpc, pm_state, PRM_QP_PM_STATE_MIGRATED);
    PRM_SET(qpc, qpc, pd, b->pdn);
    PRM_SET(qpc, qpc, log_rq_size, LOG_RQ);
    PRM_SET(qpc, qpc, log_rq_stride, LOG_RQ_STRIDE - 4);
    PRM_SET(qpc, qpc, log_sq_size, LOG_SQ);
    PRM_SET(qpc, qpc, user_index, attr->user_index ? attr->user_index : 0xffffff);
    PRM_SET(qpc, qpc, uar_page, b->uarn);
    PRM_SET(qpc, qpc, cqn_snd, attr->cqn ? attr->cqn : b->cq.cqn);
    PRM_SET(qpc, qpc, cqn_rcv, attr->cqn ? attr->cqn : b->cq.cqn);
    PRM_SET(qpc, qpc, xrcd, attr->xrcd);
    PRM_SET(qpc, qpc, cs_req, attr->cs_req);
    PRM_SET(qpc, qpc, cs_res, attr->cs_res);
    PRM_SET(qpc, qpc, end_padding_mode, attr->pads_end);
    PRM_SET(qpc, qpc, no_sq, attr->no_sq);
    PRM_SET(qpc, qpc, offload_type, attr->fetches ? PRM_QP_OFFLOAD_RNDV : PRM_QP_OFFLOAD_NONE);
    if (attr->srqn) {
        PRM_SET(qpc, qpc, rq_type, PRM_RQ_TYPE_SRQ);
        PRM_SET(qpc, qpc, srqn_rmpn_xrqn, attr->srqn);
    } else if (attr->no_rq) {
        PRM_SET(qpc, qpc, rq_type, PRM_RQ_TYPE_ZERO_SIZE);
    }
}

void bench_qp(struct bench *b, const struct bench_qp_attr *attr, struct bench_qp *qp)
{
    struct prm_qpc qpc[1];
    uint64_t size;
    struct mem_buf buf = {0};

    memset(qp, 0, sizeof(*qp));
    bench_qpc(b, attr, qpc);
    size = qp_ring_size(qpc);
    qp->bench = b;
    qp->gid = attr->gid;
    if (size) {
        qp->ring = fake_host_alloc(&b->host, size, PAGE);
        buf = bench_buf(qp->ring, size);
    }
    qp->dbr = fake_host_alloc(&b->host, 8, 8);
    ck_assert_int_eq(qp_create(&b->hca, 0, qpc, &buf, qp->dbr, &qp->qpn), SYN_OK);
    qp->qp = qp_find(&b->hca, qp->qpn);
    ck_assert_ptr_nonnull(qp->qp);
}

enum syn bench_modify(struct bench *b, struct bench_qp *qp, uint16_t opcode,
                      const struct bench_qp_attr *attr)
{
    struct prm_qpc qpc[1] = {0};
    struct prm_ads *path = PRM_PTR(qpc, qpc, primary_address_path);
    bool reliable = attr->st == PRM_QP_ST_RC || attr->st == PRM_QP_ST_XRC;

    PRM_SET(qpc, qpc, st, attr->st);
    PRM_SET(qpc, qpc, pm_state, PRM_QP_PM_STATE_MIGRATED);
    PRM_SET(qpc, qpc, mtu, attr->mtu ? attr->mtu : PRM_QP_MTU_256);
    PRM_SET(qpc, qpc, log_msg_max, 30);
    PRM_SET(qpc, qpc, remote_qpn, attr->is_to_self ? qp->qpn : BENCH_PEER_QPN);
    PRM_SET(qpc, qpc, next_rcv_psn, attr->rq_psn);
    PRM_SET(qpc, qpc, next_send_psn, attr->sq_psn);
    PRM_SET(qpc, qpc, q_key, attr->qkey);
    PRM_SET(qpc, qpc, rre, reliable && !attr->no_access);
    PRM_SET(qpc, qpc, rae, reliable && !attr->no_access);
    PRM_SET(qpc, qpc, atomic_mode,
            attr->no_atomics    ? PRM_ATOMIC_MODE_NONE
            : attr->atomic_mode ? attr->atomic_mode
                                : PRM_ATOMIC_MODE_IB_SPEC);
    PRM_SET(qpc, qpc, rwe, !attr->no_access);
    PRM_SET(qpc, qpc, log_rra_max, attr->log_rra_max);
    PRM_SET(qpc, qpc, log_sra_max, 2);
    PRM_SET(qpc, qpc, min_rnr_nak, attr->min_rnr_nak);
    PRM_SET(qpc, qpc, retry_count, 7);
    PRM_SET(qpc, qpc, rnr_retry, 7);
    PRM_SET(ads, path, vhca_port_num, 1);
    PRM_SET(ads, path, src_addr_index, attr->gid);
    PRM_SET(ads, path, hop_limit, 64);
    PRM_SET(ads, path, ack_timeout, 14);
    PRM_SET(ads, path, rmac_47_32, peer_mac[0] << 8 | peer_mac[1]);
    PRM_SET(ads, path, rmac_31_0, peer_mac[5]);
    memcpy(PRM_PTR(ads, path, rgid_rip), peer_gid[attr->gid], 16);
    return qp_modify(&b->hca, 0, qp->qpn, opcode, 0, qpc, NULL);
}

void bench_qp_rts(struct bench *b, const struct bench_qp_attr *attr, struct bench_qp *qp)
{
    bench_qp(b, attr, qp);
    ck_assert_int_eq(bench_modify(b, qp, PRM_CMD_OP_RST2INIT_QP, attr), SYN_OK);
    ck_assert_int_eq(bench_modify(b, qp, PRM_CMD_OP_INIT2RTR_QP, attr), SYN_OK);
    ck_assert_int_eq(bench_modify(b, qp, PRM_CMD_OP_RTR2RTS_QP, attr), SYN_OK);
}

void bench_post_recv(struct bench_qp *qp, uint64_t addr, uint32_t len, uint32_t lkey)
{
    struct bench *b = qp->bench;
    uint32_t slot = qp->posted & ((1u << LOG_RQ) - 1);
    void *wqe =
        fake_host_ptr(&b->host, qp->ring + ((uint64_t)slot << LOG_RQ_STRIDE), 1u << LOG_RQ_STRIDE);

    memset(wqe, 0, 1u << LOG_RQ_STRIDE);
    PRM_SET(wqe_data_seg, wqe, byte_count, len);
    PRM_SET(wqe_data_seg, wqe, lkey, lkey);
    PRM_SET(wqe_data_seg, wqe, addr, addr);
    PRM_SET(wqe_data_seg, wqe + PRM_SIZE(wqe_data_seg), lkey, WQE_TERMINATOR_LKEY);
    qp->posted++;
    PRM_SET(qp_dbr, fake_host_ptr(&b->host, qp->dbr, 8), rcv_counter, qp->posted);
}

/* -- the peer ---------------------------------------------------------------------------------- */

struct roce_packet bench_packet(const struct bench_qp *qp, uint8_t opcode, uint32_t psn)
{
    struct roce_packet pkt = {
        .opcode = opcode,
        .dest_qp = qp->qpn,
        .psn = psn & PSN_MASK,
        .pkey = 0xffff,
        .migreq = true,
        .addr =
            {
                .is_ipv4 = qp->gid == BENCH_IPV4,
                .hop_limit = 64,
                .udp_sport = 0xc123,
            },
    };

    memcpy(pkt.addr.dmac, own_mac, 6);
    memcpy(pkt.addr.smac, peer_mac, 6);
    memcpy(pkt.addr.dgid, own_gid[qp->gid], 16);
    memcpy(pkt.addr.sgid, peer_gid[qp->gid], 16);
    return pkt;
}

void bench_put(struct bench *b, const struct roce_packet *pkt, const void *payload, size_t len)
{
    uint8_t *frame = wire_tx_reserve(b->peer, roce_frame_len(pkt, len));
    uint8_t *at;

    ck_assert_ptr_nonnull(frame);
    at = roce_build(frame, pkt, len);
    if (len) {
        memcpy(at, payload, len);
    }
    wire_tx_commit(b->peer, roce_finish(frame, pkt, len));
}

void bench_rx(struct bench *b, const struct roce_packet *pkt, const void *payload, size_t len)
{
    bench_put(b, pkt, payload, len);
    bench_run(b);
}

bool bench_tx(struct bench *b, struct roce_packet *pkt)
{
    if (b->read == b->got) {
        return false;
    }
    ck_assert_int_eq(roce_parse(b->frames[b->read].bytes, b->frames[b->read].len, pkt), ROCE_OK);
    b->read++;
    return true;
}

void bench_expect_silence(struct bench *b)
{
    ck_assert_uint_eq(b->read, b->got);
}
