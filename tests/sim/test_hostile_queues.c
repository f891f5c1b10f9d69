/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests a guest that writes arbitrary values into its rings and to the BAR: WQEs of every kind,
 * doorbells and doorbell records of any value, buffers that do not answer. The device reports it by
 * completions and events, or not at all; it continues to work, and after a reset it works like a
 * new device.
 */
#include <check.h>
#include <string.h>
#include "fw/fw_internal.h"
#include "tests/sim/examples.h"
#include "tests/unit/suite.h"

#define BAR_SIZE (32u << 20)
#define ROUNDS   1500

static struct two_hcas *t;
static struct guest g;
static struct storm s;

static void setup(void)
{
    t = two_hcas_new(NULL);
    guest_init(&g, &t->a);
    storm_init(&s, 1);
    guest_tell(&g, &s);
}

static void teardown(void)
{
    storm_clear(&s);
    node_revive(&t->a);
    if (t->a.port) {
        ping(t);
    }
    ck_assert_uint_eq(t->a.hca->log_errors + t->b.hca->log_errors, 0);
    two_hcas_free(t);
}

static void write_bar(uint64_t offset, uint64_t value, unsigned size)
{
    const struct pci_dev *dev = &t->a.drv->dev;

    dev->ops->mmio_write(dev->pci, offset, value, size);
}

/* Takes completions, because an overrun of the CQ would end the storm. */
static unsigned drain(struct node *node)
{
    struct drv_wc wc;
    unsigned n = 0;

    while (drv_poll_cq(node->drv, &node->cq, &wc)) {
        n++;
    }
    drv_poll_events(node->drv);
    g_array_set_size(node->drv->events, 0);
    return n;
}

/* Runs the devices for a while: the work that the guest started need not end. */
static void run(void)
{
    for (int i = 0; i < 200 && inproc_run_ready(t->world); i++) {
        drain(&t->a);
        drain(&t->b);
    }
    drain(&t->a);
    drain(&t->b);
}

/* -- send queues --------------------------------------------------------------------------------
 */

/* A send queue with its ring and doorbell record. */
struct sq {
    uint32_t qpn;
    uint8_t *ring;
    unsigned blocks; /* power of two */
    uint32_t *dbr;
    uint16_t pi;
    uint8_t st;
};

static struct sq sq_of_qp(struct drv_qp *qp)
{
    return (struct sq){.qpn = qp->qpn,
                       .ring = (uint8_t *)qp->ring.ptr + qp->sq_offset,
                       .blocks = 1u << LOG_SQ,
                       .dbr = &qp->dbr[1],
                       .pi = qp->sq_pi,
                       .st = qp->attr.st};
}

static uint8_t *put_data(uint8_t *seg)
{
    static const uint32_t kinds = 5;

    switch (storm_upto(&s, kinds)) {
    case 0: /* noise */
        for (int i = 0; i < 16; i += 4) {
            prm_store32(seg + i, storm_word(&s));
        }
        break;
    case 1: /* inline */
        prm_store32(seg, 1u << 31 | storm_upto(&s, 300));
        break;
    case 2: /* another key, another address */
        prm_store32(seg, storm_upto(&s, 5000));
        prm_store32(seg + 4, storm_upto(&s, 1) ? g.umr_key : storm_word(&s));
        prm_store64(seg + 8, storm_address(&s));
        break;
    default:
        prm_store32(seg, storm_upto(&s, 20000));
        prm_store32(seg + 4, g.mem->mr.key);
        prm_store64(seg + 8, g.mem->va + (1 << 20) + storm_upto(&s, 1 << 16));
    }
    return seg + 16;
}

static uint8_t *put_raddr(uint8_t *seg)
{
    prm_store64(seg, g.mem->va + (2 << 20) + storm_upto(&s, 1 << 16) / 8 * 8);
    prm_store32(seg + 8, storm_upto(&s, 3) ? g.mem->mr.key : g.umr_key);
    return seg + 16;
}

/* Writes a change of the guest's own key: its control segment, the new context, and entries for
 * it. */
static uint8_t *put_umr(uint8_t *seg)
{
    struct prm_wqe_umr_ctrl_seg *umr = (void *)seg;
    struct prm_mkc *mkc = (void *)(umr + 1);
    uint8_t *xlt = (uint8_t *)(mkc + 1);
    unsigned n = storm_upto(&s, 2) * 4;

    PRM_SET(wqe_umr_ctrl_seg, umr, inl, 1);
    PRM_SET(wqe_umr_ctrl_seg, umr, xlt_octowords, storm_upto(&s, 9) ? n : storm_upto(&s, 0xffff));
    PRM_SET(wqe_umr_ctrl_seg, umr, mkey_mask,
            1ull << PRM_MKEY_MASK_FREE | 1ull << PRM_MKEY_MASK_LEN |
                (storm_upto(&s, 3) ? 0 : 1ull << storm_upto(&s, 63)));
    PRM_SET(mkc, mkc, len, storm_upto(&s, 3) ? 1 << 16 : storm_word(&s));
    PRM_SET(mkc, mkc, log_page_size, 12);
    PRM_SET(mkc, mkc, pd, g.node->drv->pdn);
    for (unsigned i = 0; i < n; i++, xlt += 16) {
        prm_store32(xlt, storm_upto(&s, 3) ? storm_upto(&s, 10000) : storm_word(&s));
        prm_store32(xlt + 4, storm_upto(&s, 1) ? g.mem->mr.key : storm_word(&s));
        prm_store64(xlt + 8, storm_upto(&s, 1) ? g.mem->va : storm_address(&s));
    }
    return xlt;
}

/* Writes the segments that belong to an opcode, in most cases. */
static size_t put_segments(uint8_t *wqe, uint8_t opcode, uint8_t st)
{
    uint8_t *seg = wqe + 16;

    if (st == PRM_QP_ST_UD) {
        struct prm_wqe_av *av = (void *)seg;

        PRM_SET(wqe_av, av, ext, 1);
        PRM_SET(wqe_av, av, dqp_dct, storm_upto(&s, 3) ? g.ud->qpn : storm_word(&s) & 0xffffff);
        memcpy(PRM_PTR(wqe_av, av, rmac), t->a.drv->mac, 6);
        memcpy(PRM_PTR(wqe_av, av, rgid), t->a.gid, 16);
        PRM_SET(wqe_av, av, grh, 1);
        seg += PRM_SIZE(wqe_av);
    }
    if (opcode == PRM_WQE_OPCODE_UMR) {
        seg = put_umr(seg);
    } else {
        if (opcode >= PRM_WQE_OPCODE_RDMA_WRITE && opcode <= PRM_WQE_OPCODE_ATOMIC_FA &&
            opcode != PRM_WQE_OPCODE_SEND && opcode != PRM_WQE_OPCODE_SEND_IMM) {
            seg = put_raddr(seg);
        }
        if (opcode == PRM_WQE_OPCODE_ATOMIC_CS || opcode == PRM_WQE_OPCODE_ATOMIC_FA) {
            seg += 16;
            prm_store32(seg, 8);
            prm_store32(seg + 4, g.mem->mr.key);
            prm_store64(seg + 8, g.mem->va);
            seg += 16;
        } else {
            for (unsigned n = storm_upto(&s, 4); n; n--) {
                seg = put_data(seg);
            }
        }
    }
    if (storm_upto(&s, 9) == 0) {
        storm_bend(&s, wqe + 16, (size_t)(seg - wqe));
    }
    return (size_t)(seg - wqe) / 16;
}

static void post_noise(struct sq *sq)
{
    static const uint8_t opcodes[] = {
        PRM_WQE_OPCODE_NOP,       PRM_WQE_OPCODE_SEND,       PRM_WQE_OPCODE_SEND_IMM,
        PRM_WQE_OPCODE_RDMA_READ, PRM_WQE_OPCODE_RDMA_WRITE, PRM_WQE_OPCODE_RDMA_WRITE_IMM,
        PRM_WQE_OPCODE_ATOMIC_CS, PRM_WQE_OPCODE_ATOMIC_FA,  PRM_WQE_OPCODE_UMR,
        PRM_WQE_OPCODE_TSO,
    };
    uint8_t wqe[1024] = {0};
    struct prm_wqe_ctrl_seg *ctrl = (void *)wqe;
    uint8_t opcode = storm_upto(&s, 5) ? opcodes[storm_upto(&s, G_N_ELEMENTS(opcodes) - 1)]
                                       : (uint8_t)storm_upto(&s, 255);
    size_t ds = put_segments(wqe, opcode, sq->st),
           claimed = storm_upto(&s, 9) ? ds : storm_upto(&s, 63);
    unsigned blocks = (unsigned)(ds + 3) / 4;

    PRM_SET(wqe_ctrl_seg, ctrl, opmod, storm_upto(&s, 9) ? 0 : storm_upto(&s, 255));
    PRM_SET(wqe_ctrl_seg, ctrl, wqe_index, storm_upto(&s, 30) ? sq->pi : storm_upto(&s, 0xffff));
    PRM_SET(wqe_ctrl_seg, ctrl, opcode, opcode);
    PRM_SET(wqe_ctrl_seg, ctrl, qpn, storm_upto(&s, 30) ? sq->qpn : storm_upto(&s, 0xffffff));
    PRM_SET(wqe_ctrl_seg, ctrl, ds, claimed);
    wqe[11] = (uint8_t)storm_word(&s);
    PRM_SET(wqe_ctrl_seg, ctrl, imm, storm_word(&s));
    for (unsigned i = 0; i < blocks; i++) {
        memcpy(sq->ring + (sq->pi + i) % sq->blocks * 64, wqe + i * 64, 64);
    }
    sq->pi = (uint16_t)(sq->pi + blocks);
    prm_store32((uint8_t *)sq->dbr, storm_upto(&s, 50) ? sq->pi : storm_word(&s));
    write_bar((uint64_t)t->a.drv->uarn * PCI_PAGE + PRM_OFFSET(uar, blue_flame), prm_load64(wqe),
              8);
}

/* Takes a QP back to RTS from any state, connected to another QP or to itself. */
static void reconnect(struct drv_qp *qp, const struct drv_qp *peer)
{
    struct drv_path path = path_to(&t->a, peer);

    path.retry_count = path.rnr_retry = 1;
    path.ack_timeout = 8;
    ck_assert_int_eq(drv_modify_qp(qp, PRM_CMD_OP_2RST_QP, 0, NULL), 0);
    memset(qp->dbr, 0, 8);
    qp->sq_pi = qp->rq_pi = 0;
    ck_assert_int_eq(drv_qp_connect(qp, &path), 0);
}

static const uint8_t services[] = {PRM_QP_ST_RC, PRM_QP_ST_UC, PRM_QP_ST_UD, PRM_QP_ST_REG_UMR};

/* Sender and receiver are QPs of the same device, so the device has both ends of everything. */
START_TEST(noise_in_a_send_queue)
{
    uint8_t st = services[_i % 4];
    struct drv_qp *qp = st == PRM_QP_ST_REG_UMR ? g.umr : node_qp(&t->a, st, NULL);
    struct drv_qp *peer = st == PRM_QP_ST_REG_UMR ? g.umr : node_qp(&t->a, st, g.srq);
    struct sq sq = sq_of_qp(qp);

    g_rand_set_seed(s.rand, 100 + (uint32_t)_i);
    for (int i = 0; i < ROUNDS; i++) {
        if (qp_state(qp) != PRM_QP_STATE_RTS || qp_state(peer) != PRM_QP_STATE_RTS) {
            reconnect(qp, peer);
            if (peer != qp) {
                reconnect(peer, qp);
            }
            sq.pi = 0;
        }
        for (unsigned n = 1 + storm_upto(&s, 3); n; n--) {
            struct drv_sge sge = buf_sge(g.mem, 3 << 20, storm_upto(&s, 1) ? 65536 : 100);

            drv_post_srq_recv(t->a.drv, g.srq, &sge, 1);
            post_noise(&sq);
        }
        run();
        if (storm_upto(&s, 15) == 0) {
            inproc_advance(t->world, 20 * MS);
        }
    }
}
END_TEST

/* The Ethernet SQ's ring has a page of 64-byte blocks, of which it uses half. */
static struct sq eth_sq(void)
{
    return (struct sq){.qpn = g.sqn,
                       .ring = g.mem->ptr + g.sq_ring,
                       .blocks = 32,
                       .dbr = (uint32_t *)(g.mem->ptr + g.sq_dbr + 4)};
}

static void modify_eth(uint16_t opcode, uint32_t num, unsigned from, unsigned to)
{
    struct prm_modify_sq_in in[1] = {0};

    PRM_SET(modify_sq_in, in, opcode, opcode);
    PRM_SET(modify_sq_in, in, sqn, num);
    PRM_SET(modify_sq_in, in, sq_state, from);
    PRM_SET(sqc, PRM_PTR(modify_sq_in, in, ctx), state, to);
    drv_cmd_simple(t->a.drv, in, sizeof(in));
}

/* Posts a frame that begins correctly and then has errors: lengths, offloads, LSO, fragments of
 * headers. */
static void post_frame(struct sq *sq)
{
    static const uint8_t start[] = {
        0x02, 0,    0,    0,    0, 2, 0x02, 0, 0,  0, 0, 1, 0x08, 0x00, /* Ethernet, IPv4 */
        0x45, 0,    0,    60,   0, 0, 0,    0, 64, 6, 0, 0, 10,   0,    0, 1, 10, 0, 0, 2,
        0x12, 0x34, 0x56, 0x78, 0, 0, 0,    1, 0,  0, 0, 0, 0x50, 0x10, 1, 0, 0,  0, 0, 0,
    };
    uint8_t wqe[1024] = {0}, headers[sizeof(start)];
    struct prm_wqe_ctrl_seg *ctrl = (void *)wqe;
    uint8_t *eth = wqe + 16, *data;
    unsigned inline_len = storm_upto(&s, 3) ? 54 : storm_upto(&s, 80), blocks;
    size_t ds;

    memcpy(headers, start, sizeof(start));
    if (storm_upto(&s, 1)) {
        headers[storm_upto(&s, sizeof(headers) - 1)] = (uint8_t)storm_word(&s);
    }
    headers[5] = (uint8_t)(1 + storm_upto(&s, 1)); /* to itself or the other node */
    prm_store32(eth + 4, storm_upto(&s, 1) ? 0xc0000000u | storm_upto(&s, 2000) : storm_word(&s));
    prm_store16(eth + 12, storm_upto(&s, 20) ? inline_len : storm_upto(&s, 0xffff));
    memcpy(eth + 14, headers, MIN(inline_len, sizeof(headers)));
    data = eth + 16 + (inline_len > 2 ? (inline_len - 2 + 15) / 16 * 16 : 0);
    for (unsigned n = storm_upto(&s, 3); n; n--) {
        prm_store32(data, storm_upto(&s, 5) ? storm_upto(&s, 9000) : storm_word(&s));
        prm_store32(data + 4, storm_upto(&s, 9) ? g.mem->mr.key : storm_word(&s));
        prm_store64(data + 8, storm_upto(&s, 9) ? g.mem->va : storm_address(&s));
        data += 16;
    }
    ds = (size_t)(data - wqe) / 16;
    blocks = (unsigned)(ds + 3) / 4;
    PRM_SET(wqe_ctrl_seg, ctrl, wqe_index, sq->pi);
    PRM_SET(wqe_ctrl_seg, ctrl, opcode,
            storm_upto(&s, 1)   ? PRM_WQE_OPCODE_SEND
            : storm_upto(&s, 3) ? PRM_WQE_OPCODE_TSO
                                : storm_upto(&s, 0x3f));
    PRM_SET(wqe_ctrl_seg, ctrl, qpn, sq->qpn);
    PRM_SET(wqe_ctrl_seg, ctrl, ds, storm_upto(&s, 20) ? ds : storm_upto(&s, 63));
    wqe[11] = 8;
    for (unsigned i = 0; i < blocks; i++) {
        memcpy(sq->ring + (sq->pi + i) % sq->blocks * 64, wqe + i * 64, 64);
    }
    sq->pi = (uint16_t)(sq->pi + blocks);
    prm_store32((uint8_t *)sq->dbr, storm_upto(&s, 50) ? sq->pi : storm_word(&s));
    write_bar((uint64_t)t->a.drv->uarn * PCI_PAGE + PRM_OFFSET(uar, blue_flame), prm_load64(wqe),
              8);
}

START_TEST(noise_in_an_ethernet_send_queue)
{
    struct sq sq = eth_sq();
    uint8_t *rq = g.mem->ptr + g.rq_ring;
    uint32_t *rq_dbr = (uint32_t *)(g.mem->ptr + g.rq_dbr);
    uint16_t rq_pi = 0;

    g_rand_set_seed(s.rand, 200 + (uint32_t)_i);
    for (int i = 0; i < ROUNDS; i++) {
        /* receive buffers, some of them unusable */
        uint8_t *slot = rq + rq_pi % 32 * 64;
        uint32_t word;

        prm_store32(slot, storm_upto(&s, 5) ? 2048 : storm_word(&s));
        prm_store32(slot + 4, storm_upto(&s, 5) ? g.mem->mr.key : storm_word(&s));
        prm_store64(slot + 8, storm_upto(&s, 5) ? g.mem->va + (1 << 20) : storm_address(&s));
        word = storm_upto(&s, 40) ? (uint32_t)(uint16_t)++rq_pi : storm_word(&s);
        *rq_dbr = GUINT32_TO_BE(word);
        if (storm_upto(&s, 4) == 0) {
            post_noise(&sq);
        } else {
            post_frame(&sq);
        }
        run();
        if (storm_upto(&s, 7) == 0) {
            modify_eth(PRM_CMD_OP_MODIFY_SQ, g.sqn, PRM_SQC_STATE_ERR, PRM_SQC_STATE_RST);
            modify_eth(PRM_CMD_OP_MODIFY_SQ, g.sqn, PRM_SQC_STATE_RDY, PRM_SQC_STATE_RST);
            modify_eth(PRM_CMD_OP_MODIFY_SQ, g.sqn, PRM_SQC_STATE_RST, PRM_SQC_STATE_RDY);
            modify_eth(PRM_CMD_OP_MODIFY_RQ, g.rqn, PRM_SQC_STATE_ERR, PRM_SQC_STATE_RST);
            modify_eth(PRM_CMD_OP_MODIFY_RQ, g.rqn, PRM_SQC_STATE_RST, PRM_SQC_STATE_RDY);
            *sq.dbr = *rq_dbr = 0;
            sq.pi = rq_pi = 0;
        }
    }
}
END_TEST

/* Posts one LSO WQE of len bytes of zeros (through the null mkey) in frames of one byte each. */
static void post_endless_lso(struct sq *sq, uint32_t len)
{
    static const uint8_t headers[] = {
        0x02, 0, 0, 0, 0,  2, 0x02, 0, 0,  0, 0,    1,    0x08, 0x00, 0x45, 0, 0, 40,
        0,    0, 0, 0, 64, 6, 0,    0, 10, 0, 0,    1,    10,   0,    0,    2, 1, 2,
        3,    4, 0, 0, 0,  1, 0,    0, 0,  0, 0x50, 0x10, 1,    0,    0,    0, 0, 0,
    };
    uint8_t wqe[128] = {0};
    struct prm_wqe_ctrl_seg *ctrl = (void *)wqe;
    uint8_t *eth = wqe + 16, *data = wqe + 16 + 16 + 64;
    G_STATIC_ASSERT(sizeof(headers) == 54);

    PRM_SET(wqe_ctrl_seg, ctrl, opcode, PRM_WQE_OPCODE_TSO);
    PRM_SET(wqe_ctrl_seg, ctrl, qpn, sq->qpn);
    PRM_SET(wqe_ctrl_seg, ctrl, ds, 7);
    PRM_SET(wqe_ctrl_seg, ctrl, ce, PRM_WQE_CE_ALWAYS);
    prm_store16(eth + 6, 1); /* mss */
    prm_store16(eth + 12, sizeof(headers));
    memcpy(eth + 14, headers, sizeof(headers));
    prm_store32(data, len);
    prm_store32(data + 4, t->a.hca->fw->hca.null_mkey);
    memcpy(sq->ring, wqe, sizeof(wqe));
    *sq->dbr = GUINT32_TO_BE(2);
    write_bar((uint64_t)t->a.drv->uarn * PCI_PAGE + PRM_OFFSET(uar, blue_flame), prm_load64(wqe),
              8);
}

/* While the link is down there is always room for a frame: only the turn's budget ends the work. */
START_TEST(one_send_does_not_fill_a_turn)
{
    struct sq sq = eth_sq();
    struct drv_wc wc;
    unsigned turns = 1;

    node_unplug(&t->a);
    inproc_settle(t->world);
    post_endless_lso(&sq, 1 << 18);
    while (fw_run(t->a.hca->fw, 100)) {
        turns++;
    }
    ck_assert_uint_ge(turns, (1 << 18) / 100);
    wc = next_wc(&t->a);
    ck_assert_uint_eq(wc.qpn, sq.qpn);
    ck_assert_uint_eq(wc.opcode, PRM_CQE_OPCODE_REQ);
}
END_TEST

/* QUERY_HCA_CAP reports the longest LSO message. */
START_TEST(send_of_gigabytes_is_refused)
{
    struct sq sq = eth_sq();
    struct drv_wc wc;

    post_endless_lso(&sq, 0x7fffffff);
    wc = next_wc(&t->a);
    ck_assert_uint_eq(wc.qpn, sq.qpn);
    ck_assert_uint_eq(wc.opcode, PRM_CQE_OPCODE_REQ_ERR);
}
END_TEST

/* -- receive queues -----------------------------------------------------------------------------
 */

/* Noise in the rings that receive messages from the other side. */
START_TEST(noise_in_receive_queues)
{
    struct drv_srq *srq = node_srq(&t->a, 5);
    struct drv_qp *own, *shared, *from_own, *from_shared;
    struct drv_path path = {.retry_count = 1, .rnr_retry = 2, .ack_timeout = 8};
    struct buf *src = node_buf(&t->b, 5000, DRV_ALL, 1);

    g_rand_set_seed(s.rand, 300 + (uint32_t)_i);
    for (int i = 0; i < 100; i++) {
        own = node_qp(&t->a, PRM_QP_ST_RC, NULL);
        shared = node_qp(&t->a, PRM_QP_ST_RC, srq);
        from_own = node_qp(&t->b, PRM_QP_ST_RC, NULL);
        from_shared = node_qp(&t->b, PRM_QP_ST_RC, NULL);
        connect_qps(&t->a, own, &t->b, from_own, &path);
        connect_qps(&t->a, shared, &t->b, from_shared, &path);
        for (int j = 0; j < 10; j++) {
            struct drv_sge sge = buf_sge(src, 0, storm_upto(&s, 5000));
            struct drv_send send = {.opcode = PRM_WQE_OPCODE_SEND,
                                    .flags = DRV_SIGNALED,
                                    .sge = &sge,
                                    .num_sge = sge.len ? 1 : 0};
            struct drv_sge list[3];

            for (int k = 0; k < 3; k++) {
                list[k] = storm_upto(&s, 1)
                              ? buf_sge(g.mem, storm_upto(&s, 1 << 20), storm_upto(&s, 3000))
                              : (struct drv_sge){.va = storm_address(&s),
                                                 .len = storm_word(&s),
                                                 .lkey = storm_word(&s)};
            }
            drv_post_recv(own, list, 3);
            drv_post_srq_recv(t->a.drv, srq, list, 3);
            if (storm_upto(&s, 5) == 0) {
                storm_bend(&s, srq->ring.ptr, 32 * 64);
                storm_bend(&s, own->ring.ptr, 1024);
                *srq->dbr = storm_word(&s);
                *own->dbr = storm_word(&s);
            }
            srq->head &= 31;
            drv_post_send(from_own, &send);
            drv_post_send(from_shared, &send);
            run();
            inproc_advance(t->world, MS);
        }
        run();
    }
}
END_TEST

/* -- doorbells ----------------------------------------------------------------------------------
 */

/* Every offset of the first pages and of UAR pages in use, each size; then anywhere on the BAR.
 * Whole and partial accesses; registers get values that are meant for other registers. */
START_TEST(noise_on_the_bar)
{
    const struct pci_dev *dev = &t->a.drv->dev;
    uint64_t uar = (uint64_t)t->a.drv->uarn * PCI_PAGE;

    for (unsigned size = 1; size <= 8; size *= 2) {
        for (uint64_t offset = 0; offset < PCI_PAGE; offset++) {
            write_bar(uar + offset, storm_word(&s), size);
            dev->ops->mmio_read(dev->pci, uar + offset, size);
            dev->ops->mmio_read(dev->pci, offset * 8, size);
        }
    }
    run();
    for (int i = 0; i < 100000; i++) {
        uint64_t value = (uint64_t)storm_word(&s) << 32 | storm_word(&s);
        unsigned size = 1u << storm_upto(&s, 3);
        uint64_t offset = storm_upto(&s, 3) ? uar + storm_upto(&s, PCI_PAGE - 1) / size * size
                                            : storm_upto(&s, BAR_SIZE - 8);

        write_bar(offset, value, size);
        if (i % 64 == 0) {
            run();
        }
    }
    run();
}
END_TEST

/* The initialization segment: the command queue at any address, states that no driver requests. */
START_TEST(noise_on_the_initialization_segment)
{
    for (int i = 0; i < 20000; i++) {
        write_bar(storm_upto(&s, 9) ? storm_upto(&s, 10) * 4 : storm_upto(&s, 8 * PCI_PAGE),
                  storm_word(&s), 4);
        if (i % 16 == 0) {
            for (int j = 0; j < 200 && inproc_run_ready(t->world); j++) {
            }
        }
    }
}
END_TEST

/* -- steering -----------------------------------------------------------------------------------
 */

static uint32_t flow_command(void *in, size_t len)
{
    uint8_t out[64] = {0};

    ck_assert_int_eq(drv_cmd(t->a.drv, in, len, out, sizeof(out)), 0);
    return (uint32_t)prm_load32(out + 8) & 0xffffff;
}

/* Makes a table of groups that have no entry for any frame; a frame without a match goes on to the
 * guest's table. */
static void root_table_of_groups(unsigned log_groups)
{
    struct prm_create_flow_table_in table[1] = {0};
    struct prm_set_flow_table_root_in root[1] = {0};
    struct prm_create_flow_group_in group[1] = {0};
    struct prm_flow_table_context *ctx = PRM_PTR(create_flow_table_in, table, flow_table_context);
    uint32_t id;

    PRM_SET(create_flow_table_in, table, opcode, PRM_CMD_OP_CREATE_FLOW_TABLE);
    PRM_SET(flow_table_context, ctx, log_size, log_groups);
    PRM_SET(flow_table_context, ctx, table_miss_action, PRM_FLOW_TABLE_MISS_ACTION_FWD);
    PRM_SET(flow_table_context, ctx, table_miss_id, g.table);
    id = flow_command(table, sizeof(table));
    PRM_SET(create_flow_group_in, group, opcode, PRM_CMD_OP_CREATE_FLOW_GROUP);
    PRM_SET(create_flow_group_in, group, table_id, id);
    for (uint32_t i = 0; i < 1u << log_groups; i++) {
        PRM_SET(create_flow_group_in, group, start_flow_index, i);
        PRM_SET(create_flow_group_in, group, end_flow_index, i);
        flow_command(group, sizeof(group));
    }
    PRM_SET(set_flow_table_root_in, root, opcode, PRM_CMD_OP_SET_FLOW_TABLE_ROOT);
    PRM_SET(set_flow_table_root_in, root, table_id, id);
    flow_command(root, sizeof(root));
}

/* Sends a frame from the other node, with a buffer for it; returns whether it arrived. */
static bool frame_arrives(void)
{
    static uint16_t pi;
    uint8_t frame[64] = {0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2, 0x08, 0x06};
    uint8_t *slot = g.mem->ptr + g.rq_ring + pi % 32 * 64;
    struct drv_wc wc;
    uint8_t *room = wire_tx_reserve(t->b.port, sizeof(frame));

    prm_store32(slot, 2048);
    prm_store32(slot + 4, g.mem->mr.key);
    prm_store64(slot + 8, g.mem->va + (1 << 20));
    prm_store32(slot + 20, 0x100); /* end of the list */
    prm_store32(g.mem->ptr + g.rq_dbr, ++pi);
    memcpy(room, frame, sizeof(frame));
    wire_tx_commit(t->b.port, sizeof(frame));
    inproc_settle(t->world);
    return drv_poll_cq(t->a.drv, &t->a.cq, &wc);
}

/* However many groups a guest makes, a frame is dropped after some thousands of comparisons. */
START_TEST(walk_through_endless_rules)
{
    ck_assert(frame_arrives());
    root_table_of_groups(6);
    ck_assert(frame_arrives());
    root_table_of_groups(13);
    ck_assert(!frame_arrives());
}
END_TEST

/* -- memory that does not exist ---------------------------------------------------------------- */

static const uint16_t ring_owners[] = {
    PRM_CMD_OP_CREATE_CQ, PRM_CMD_OP_CREATE_EQ, PRM_CMD_OP_CREATE_QP,      PRM_CMD_OP_CREATE_SRQ,
    PRM_CMD_OP_CREATE_SQ, PRM_CMD_OP_CREATE_RQ, PRM_CMD_OP_CREATE_XRC_SRQ, PRM_CMD_OP_CREATE_MKEY,
};

/* A ring that does not answer. A QP can still report it. */
START_TEST(rings_at_no_memory)
{
    uint8_t in[EXAMPLE_MAX], out[64] = {0};
    size_t len = example(&g, ring_owners[_i], in);
    uint32_t num;

    prm_store64(in + len - 8, 0xdead00000000);
    if (drv_cmd(t->a.drv, in, len, out, sizeof(out))) {
        return;
    }
    num = (uint32_t)prm_load32(out + 8) & 0xffffff;
    storm_num(&s, num);
    if (ring_owners[_i] == PRM_CMD_OP_CREATE_QP) {
        struct drv_qp qp = {.drv = t->a.drv, .attr = g.rc->attr, .qpn = num};
        struct drv_path self = path_to(&t->a, &qp);
        uint64_t db[3] = {num << 8 | 1, 0xffffff00 | num, (uint64_t)1 << 40 | num << 8 | 2};
        const struct prm_create_qp_in *made = (const void *)in;
        const struct prm_qpc *qpc = PRM_PTR(create_qp_in, made, qpc);

        prm_store32(g.mem->ptr + PRM_GET(qpc, qpc, dbr_addr) - g.mem->mem.bus + 4, 3);
        ck_assert_int_eq(drv_qp_connect(&qp, &self), 0);
        for (int i = 0; i < 3; i++) {
            write_bar((uint64_t)t->a.drv->uarn * PCI_PAGE + PRM_OFFSET(uar, blue_flame), db[i], 8);
        }
        inproc_advance(t->world, MS);
        ck_assert_uint_eq(qp_state(&qp), PRM_QP_STATE_ERR);
        expect_error(&t->a, &qp, PRM_CQE_OPCODE_REQ_ERR, PRM_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    } else {
        for (int i = 0; i < 1000; i++) {
            write_bar((uint64_t)t->a.drv->uarn * PCI_PAGE + storm_upto(&s, 1023) * 4,
                      (uint64_t)storm_word(&s) << 32 | storm_word(&s), 8);
            run();
        }
    }
}
END_TEST

/* Without a doorbell record there is no WQE that a completion could name. */
START_TEST(doorbell_record_at_no_memory)
{
    uint8_t image[EXAMPLE_MAX];
    struct prm_create_qp_in *in = (void *)image;
    struct prm_create_qp_out out[1] = {0};
    size_t len = example(&g, PRM_CMD_OP_CREATE_QP, in);
    struct drv_qp qp = {.drv = t->a.drv, .attr = g.rc->attr};
    struct drv_path self;

    PRM_SET(qpc, PRM_PTR(create_qp_in, in, qpc), dbr_addr, 0xdead00000000);
    ck_assert_int_eq(drv_cmd(t->a.drv, in, len, out, sizeof(out)), 0);
    qp.qpn = PRM_GET(create_qp_out, out, qpn);
    self = path_to(&t->a, &qp);
    ck_assert_int_eq(drv_qp_connect(&qp, &self), 0);
    write_bar((uint64_t)t->a.drv->uarn * PCI_PAGE + PRM_OFFSET(uar, blue_flame), qp.qpn << 8 | 1,
              8);
    expect_event(&t->a, PRM_EVENT_TYPE_WQ_CATAS_ERROR, qp.qpn);
    ck_assert_uint_eq(qp_state(&qp), PRM_QP_STATE_ERR);
}
END_TEST

static uint32_t make_at_no_memory(uint16_t opcode)
{
    uint8_t in[EXAMPLE_MAX], out[64] = {0};
    size_t len = example(&g, opcode, in);

    prm_store64(in + len - 8, 0xdead00000000);
    ck_assert_int_eq(drv_cmd(t->a.drv, in, len, out, sizeof(out)), 0);
    return (uint32_t)prm_load32(out + 8) & 0xffffff;
}

/* Makes a QP with this CQ or SRQ, connected to itself. */
static struct drv_qp *loop_qp(struct drv_cq *cq, struct drv_srq *srq)
{
    struct drv_qp_attr attr = {.st = PRM_QP_ST_RC,
                               .pdn = t->a.drv->pdn,
                               .send_cq = cq,
                               .recv_cq = cq,
                               .srq = srq,
                               .log_sq = LOG_SQ,
                               .log_rq = LOG_RQ,
                               .max_recv_sge = 1};
    struct drv_qp *qp = g_new0(struct drv_qp, 1);
    struct drv_path self;

    ck_assert_int_eq(drv_create_qp(t->a.drv, &attr, qp), 0);
    g_ptr_array_add(t->a.qps, qp);
    self = path_to(&t->a, qp);
    ck_assert_int_eq(drv_qp_connect(qp, &self), 0);
    return qp;
}

static void post_to_oneself(struct drv_qp *qp, uint8_t opcode)
{
    struct drv_sge sge = buf_sge(g.mem, 0, 8);
    struct drv_send send = {.opcode = opcode,
                            .flags = DRV_SIGNALED,
                            .sge = &sge,
                            .num_sge = 1,
                            .raddr = g.mem->va + 64,
                            .rkey = g.mem->mr.key};

    drv_post_send(qp, &send);
}

/* IBTA 11.6.3.1: a CQ that cannot be written causes a CQ error, and its QPs cannot continue. */
START_TEST(cq_at_no_memory)
{
    struct drv_cq cq = {.cqn = make_at_no_memory(PRM_CMD_OP_CREATE_CQ)};
    struct drv_qp *qp = loop_qp(&cq, NULL);
    struct drv_event event;

    post_to_oneself(qp, PRM_WQE_OPCODE_RDMA_WRITE);
    ck_assert(drv_wait_event(t->a.drv, PRM_EVENT_TYPE_CQ_ERROR, cq.cqn, &event, SECOND));
    ck_assert_uint_eq(PRM_GET(cq_error, event.data.cq, syndrome),
                      PRM_CQ_ERROR_SYNDROME_CQ_ACCESS_VIOLATION_ERROR);
    ck_assert_uint_eq(qp_state(qp), PRM_QP_STATE_ERR);
}
END_TEST

/* An SRQ that cannot be read causes its own event, and the sender learns that the other side
 * failed. */
START_TEST(srq_at_no_memory)
{
    struct drv_srq srq = {.srqn = make_at_no_memory(PRM_CMD_OP_CREATE_SRQ)};
    uint8_t *dbr = g.mem->ptr + (g.next - 2 * PCI_PAGE);
    struct drv_qp *qp = loop_qp(&t->a.cq, &srq);

    prm_store32(dbr, 1); /* one WQE is posted */
    post_to_oneself(qp, PRM_WQE_OPCODE_SEND);
    inproc_advance(t->world, SECOND);
    expect_event(&t->a, PRM_EVENT_TYPE_SRQ_CATAS_ERROR, srq.srqn);
    ck_assert_uint_eq(qp_state(qp), PRM_QP_STATE_ERR);
}
END_TEST

/* If an EQ cannot be written, its events are lost; completions still come. */
START_TEST(eq_at_no_memory)
{
    uint8_t image[EXAMPLE_MAX];
    struct prm_create_cq_in *in = (void *)image;
    struct prm_create_cq_out out[1] = {0};
    uint32_t eqn = make_at_no_memory(PRM_CMD_OP_CREATE_EQ);
    size_t len = example(&g, PRM_CMD_OP_CREATE_CQ, in);
    uint64_t ring = prm_load64(image + len - 8);
    struct prm_cqe64 *cqe = (void *)(g.mem->ptr + (ring - g.mem->mem.bus));
    struct drv_cq cq = {0};
    struct drv_qp *qp;

    PRM_SET(cqc, PRM_PTR(create_cq_in, in, cq_context), c_eqn_or_apu_element, eqn);
    memset(cqe, 0xff, 64);
    ck_assert_int_eq(drv_cmd(t->a.drv, in, len, out, sizeof(out)), 0);
    cq.cqn = PRM_GET(create_cq_out, out, cqn);
    qp = loop_qp(&cq, NULL);
    post_to_oneself(qp, PRM_WQE_OPCODE_RDMA_WRITE);
    write_bar((uint64_t)t->a.drv->uarn * PCI_PAGE + PRM_OFFSET(uar, cq_db), cq.cqn, 8);
    post_to_oneself(qp, PRM_WQE_OPCODE_RDMA_WRITE);
    inproc_advance(t->world, MS);
    ck_assert_uint_eq(PRM_GET(cqe64, cqe, opcode), PRM_CQE_OPCODE_REQ);
    ck_assert_uint_eq(qp_state(qp), PRM_QP_STATE_RTS);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("hostile guest, queues");
    TCase *tc = tcase_create("queues");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, noise_in_a_send_queue, 0, 12);
    tcase_add_loop_test(tc, noise_in_an_ethernet_send_queue, 0, 4);
    tcase_add_test(tc, one_send_does_not_fill_a_turn);
    tcase_add_test(tc, send_of_gigabytes_is_refused);
    tcase_add_loop_test(tc, noise_in_receive_queues, 0, 3);
    tcase_add_test(tc, noise_on_the_bar);
    tcase_add_test(tc, noise_on_the_initialization_segment);
    tcase_add_test(tc, walk_through_endless_rules);
    tcase_add_loop_test(tc, rings_at_no_memory, 0, (int)G_N_ELEMENTS(ring_owners));
    tcase_add_test(tc, doorbell_record_at_no_memory);
    tcase_add_test(tc, cq_at_no_memory);
    tcase_add_test(tc, srq_at_no_memory);
    tcase_add_test(tc, eq_at_no_memory);
    suite_add_tcase(suite, tc);
    return suite;
}
