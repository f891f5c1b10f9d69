/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer: a peer that sends arbitrary frames on the wire of a whole HCA. The HCA has a QP of
 * every service, Ethernet queues behind flow tables, receive WQEs, and sends of its own under way.
 *
 * A frame begins as a correct packet for one of the QPs, or as an Ethernet frame; the input says
 * what is changed. Nearly every changed frame would fail a checksum, so checksums are corrected
 * unless the input says otherwise. The device must continue and accept commands, must never report
 * a fault of its own, and must not change memory beyond the one key that is open to the wire.
 */
#include <stdlib.h>
#include <string.h>
#include "fw/fw_internal.h"
#include "model/rdma/qp.h"
#include "tests/fuzz/guest_input.h"
#include "wire/encap/eth.h"

#define MAX_STEPS  100
#define PEER_QPN   0x777777 /* a number that the other HCA does not have */
#define QKEY       0x1234
#define GSI_QKEY   0x80010000
#define OPEN       4096           /* bytes that the key opens, and closed bytes on each side */
#define RECV_AT    (2u << 20)     /* of the guest's memory: receive buffers, sources of sends */
#define XRC_AT     (0x380u << 12) /* ring and doorbell record of the XRC SRQ */
#define XRC_LOG    5
#define XRC_STRIDE 6

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    RC_OWN_RQ,
    RC_SRQ,
    RC_IPV6,
    UC,
    UD,
    GSI,
    XRC,
    QPS,        /* a step's first byte names one of the QPs, or one of these */
    TAGS = QPS, /* on an XRQ */
    ALL_QPS,
};

static const uint8_t ipv6_gid[2][16] = {{0xfe, 0x80, [15] = 1}, {0xfe, 0x80, [15] = 2}};
static const uint8_t group[16] = {[10] = 0xff, 0xff, 224, 0, 0, 5};

static struct {
    struct drv_qp *qps[ALL_QPS];
    struct drv_srq *srq, xrc_srq;
    struct buf *closed; /* guard, open memory, guard */
    struct drv_mr open;
    uint16_t eth_pi;
    uint32_t tags_dctn; /* a DC target on the XRQ */
} peer;

/* -- the device's side --------------------------------------------------------------------------
 */

static struct drv_path path_of(const struct guest_input *in, unsigned i)
{
    struct drv_path path = {
        .remote_qpn = PEER_QPN, .mtu = 1, .retry_count = 2, .rnr_retry = 2, .log_rd_atom = 2};

    memcpy(path.mac, in->t->b.drv->mac, 6);
    memcpy(path.gid, i == RC_IPV6 ? ipv6_gid[1] : in->t->b.gid, 16);
    path.sgid_index = i == RC_IPV6;
    path.order = i == RC_IPV6 ? PRM_DP_ORDERING_OOO_ALL : PRM_DP_ORDERING_IBTA;
    return path;
}

static void connect(const struct guest_input *in, unsigned i)
{
    struct drv_path path = path_of(in, i);
    struct drv_qp *qp = peer.qps[i];

    if (qp->dbr) {
        qp->dbr[0] = qp->dbr[1] = 0;
    }
    qp->sq_pi = qp->rq_pi = 0;
    qp->qkey = i == GSI ? GSI_QKEY : QKEY;
    g_assert_cmpint(drv_qp_connect(qp, &path), ==, 0);
}

/* A target of XRC: no queue, and an SRQ that it never uses. */
static struct drv_qp *new_xrc_target(struct guest_input *in)
{
    struct prm_create_qp_in cmd[1] = {0};
    struct prm_create_qp_out out[1] = {0};
    struct prm_qpc *qpc = PRM_PTR(create_qp_in, cmd, qpc);
    struct node *node = &in->t->a;
    struct drv_qp *qp = g_new0(struct drv_qp, 1);

    qp->drv = node->drv;
    qp->attr = (struct drv_qp_attr){.st = PRM_QP_ST_XRC,
                                    .pdn = node->drv->pdn,
                                    .send_cq = &node->cq,
                                    .recv_cq = &node->cq,
                                    .srq = peer.srq};
    PRM_SET(create_qp_in, cmd, opcode, PRM_CMD_OP_CREATE_QP);
    PRM_SET(qpc, qpc, st, PRM_QP_ST_XRC);
    PRM_SET(qpc, qpc, pm_state, PRM_QP_PM_STATE_MIGRATED);
    PRM_SET(qpc, qpc, pd, node->drv->pdn);
    PRM_SET(qpc, qpc, uar_page, node->drv->uarn);
    PRM_SET(qpc, qpc, no_sq, 1);
    PRM_SET(qpc, qpc, xrcd, in->guest.xrcd);
    PRM_SET(qpc, qpc, rq_type, PRM_RQ_TYPE_SRQ);
    PRM_SET(qpc, qpc, srqn_rmpn_xrqn, peer.srq->srqn);
    PRM_SET(qpc, qpc, cqn_snd, node->cq.cqn);
    PRM_SET(qpc, qpc, cqn_rcv, node->cq.cqn);
    PRM_SET(qpc, qpc, user_index, 0xffffff);
    g_assert_cmpint(drv_cmd(node->drv, cmd, sizeof(cmd), out, sizeof(out)), ==, 0);
    qp->qpn = PRM_GET(create_qp_out, out, qpn);
    g_ptr_array_add(node->qps, qp);
    return qp;
}

static struct drv_qp *new_tags_qp(struct guest_input *in)
{
    struct node *node = &in->t->a;
    struct drv_qp *qp = g_new0(struct drv_qp, 1);
    struct drv_qp_attr attr = {.st = PRM_QP_ST_RC,
                               .pdn = node->drv->pdn,
                               .send_cq = &node->cq,
                               .recv_cq = &node->cq,
                               .srq = &in->guest.xrq,
                               .no_sq = true,
                               .fetches = true,
                               .cs_res = PRM_CS_RES_UP_TO_64B};

    g_assert_cmpint(drv_create_qp(node->drv, &attr, qp), ==, 0);
    g_ptr_array_add(node->qps, qp);
    return qp;
}

static void new_xrc_srq(struct guest_input *in)
{
    uint8_t cmd_bytes[EXAMPLE_MAX];
    void *cmd = cmd_bytes;
    struct prm_create_xrc_srq_out out[1] = {0};
    struct prm_xrc_srqc *ctx = PRM_PTR(create_xrc_srq_in, cmd, xrc_srq_context_entry);
    size_t len = example(&in->guest, PRM_CMD_OP_CREATE_XRC_SRQ, cmd);
    const struct buf *mem = in->guest.mem;
    struct drv_srq *srq = &peer.xrc_srq;

    *srq = (struct drv_srq){.ring.ptr = mem->ptr + XRC_AT,
                            .log_size = XRC_LOG,
                            .log_stride = XRC_STRIDE,
                            .dbr = (uint32_t *)(mem->ptr + XRC_AT + PCI_PAGE),
                            .dbr_bus = mem->mem.bus + XRC_AT + PCI_PAGE};
    for (unsigned i = 0; i < 1u << XRC_LOG; i++) {
        prm_store16((uint8_t *)srq->ring.ptr + ((size_t)i << XRC_STRIDE) + 2,
                    (i + 1) % (1u << XRC_LOG));
    }
    PRM_SET(xrc_srqc, ctx, db_record_addr_h, srq->dbr_bus >> 32);
    PRM_SET(xrc_srqc, ctx, db_record_addr_l, (uint32_t)srq->dbr_bus >> 2);
    PRM_SET_AT(create_xrc_srq_in, cmd, pas, 0, mem->mem.bus + XRC_AT);
    g_assert_cmpint(drv_cmd(in->t->a.drv, cmd, len, out, sizeof(out)), ==, 0);
    srq->srqn = PRM_GET(create_xrc_srq_out, out, xrc_srqn);
}

static uint32_t flow_command(struct guest_input *in, const void *cmd, size_t len)
{
    uint8_t out[64] = {0};

    g_assert_cmpint(drv_cmd(in->t->a.drv, cmd, len, out, sizeof(out)), ==, 0);
    return (uint32_t)prm_load32(out + 8) & 0xffffff;
}

/* Puts in front of the guest's table, which takes all, two groups that match every header. */
static void steer(struct guest_input *in)
{
    struct prm_create_flow_table_in table[1] = {0};
    struct prm_set_flow_table_root_in root[1] = {0};
    struct prm_flow_table_context *ctx = PRM_PTR(create_flow_table_in, table, flow_table_context);
    uint32_t id;

    PRM_SET(create_flow_table_in, table, opcode, PRM_CMD_OP_CREATE_FLOW_TABLE);
    PRM_SET(flow_table_context, ctx, log_size, 2);
    PRM_SET(flow_table_context, ctx, table_miss_action, PRM_FLOW_TABLE_MISS_ACTION_FWD);
    PRM_SET(flow_table_context, ctx, table_miss_id, in->guest.table);
    id = flow_command(in, table, sizeof(table));
    for (unsigned i = 0; i < 2; i++) {
        struct prm_create_flow_group_in cmd[1] = {0};
        uint8_t fte_bytes[EXAMPLE_MAX];
        void *fte = fte_bytes;
        void *mask = PRM_PTR(create_flow_group_in, cmd, match_criteria);
        uint32_t num;
        size_t len;

        PRM_SET(create_flow_group_in, cmd, opcode, PRM_CMD_OP_CREATE_FLOW_GROUP);
        PRM_SET(create_flow_group_in, cmd, table_id, id);
        PRM_SET(create_flow_group_in, cmd, start_flow_index, i);
        PRM_SET(create_flow_group_in, cmd, end_flow_index, i);
        PRM_SET(create_flow_group_in, cmd, match_criteria_enable, 1);
        if (i == 0) {
            PRM_SET(fte_match_set_lyr_2_4, mask, ethertype, 0xffff);
            PRM_SET(fte_match_set_lyr_2_4, mask, cvlan_tag, 1);
            PRM_SET(fte_match_set_lyr_2_4, mask, first_vid, 0xfff);
        } else {
            PRM_SET(fte_match_set_lyr_2_4, mask, ip_protocol, 0xff);
            PRM_SET(fte_match_set_lyr_2_4, mask, frag, 1);
            PRM_SET(fte_match_set_lyr_2_4, mask, tcp_flags, 0x1ff);
            PRM_SET(fte_match_set_lyr_2_4, mask, tcp_dport, 0xffff);
        }
        num = flow_command(in, cmd, sizeof(cmd));
        len = example(&in->guest, PRM_CMD_OP_SET_FLOW_TABLE_ENTRY, fte);
        PRM_SET(set_fte_in, fte, table_id, id);
        PRM_SET(set_fte_in, fte, flow_index, i);
        PRM_SET(flow_context, PRM_PTR(set_fte_in, fte, flow_context), group_id, num);
        flow_command(in, fte, len);
    }
    PRM_SET(set_flow_table_root_in, root, opcode, PRM_CMD_OP_SET_FLOW_TABLE_ROOT);
    PRM_SET(set_flow_table_root_in, root, table_id, id);
    flow_command(in, root, sizeof(root));
}

/* Makes a target on the XRQ, and the initiator by which the XRQ fetches for it. */
static void new_tags_target(struct guest_input *in)
{
    uint8_t cmd_bytes[EXAMPLE_MAX];
    void *cmd = cmd_bytes;
    struct prm_create_dct_out out[1] = {0};
    struct prm_dctc *dctc = PRM_PTR(create_dct_in, cmd, dct_context_entry);
    struct drv *drv = in->t->a.drv;
    size_t len = example(&in->guest, PRM_CMD_OP_SET_XRQ_DC_PARAMS_ENTRY, cmd);

    g_assert_cmpint(drv_cmd(drv, cmd, len, out, sizeof(out)), ==, 0);
    len = example(&in->guest, PRM_CMD_OP_CREATE_DCT, cmd);
    PRM_SET(dctc, dctc, srqn_xrqn, in->guest.xrqn);
    PRM_SET(dctc, dctc, offload_type, PRM_QP_OFFLOAD_RNDV);
    PRM_SET(dctc, dctc, cs_res, PRM_CS_RES_UP_TO_64B);
    PRM_SET(dctc, dctc, atomic_mode, PRM_ATOMIC_MODE_UP_TO_256B);
    g_assert_cmpint(drv_cmd(drv, cmd, len, out, sizeof(out)), ==, 0);
    peer.tags_dctn = PRM_GET(create_dct_out, out, dctn);
}

static void join(struct guest_input *in)
{
    struct prm_attach_to_mcg_in cmd[1] = {0};

    PRM_SET(attach_to_mcg_in, cmd, opcode, PRM_CMD_OP_ATTACH_TO_MCG);
    PRM_SET(attach_to_mcg_in, cmd, qpn, peer.qps[UD]->qpn);
    memcpy(PRM_PTR(attach_to_mcg_in, cmd, multicast_gid), group, 16);
    g_assert_cmpint(drv_cmd_simple(in->t->a.drv, cmd, sizeof(cmd)), ==, 0);
}

static void prepare(struct guest_input *in)
{
    struct node *node = &in->t->a;
    struct drv_mem open;

    peer.eth_pi = 0;
    peer.closed = node_buf(node, 3 * OPEN, 0, 1);
    open = (struct drv_mem){peer.closed->ptr + OPEN, peer.closed->mem.bus + OPEN, OPEN};
    g_assert_cmpint(
        drv_reg_mr(node->drv, node->drv->pdn, &open, 0x40000000, OPEN, DRV_ALL, &peer.open), ==, 0);
    g_assert_cmpint(drv_set_gid(node->drv, 1, ipv6_gid[0]), ==, 0);
    peer.srq = node_srq(node, 5);
    new_xrc_srq(in);
    peer.qps[RC_OWN_RQ] = node_qp(node, PRM_QP_ST_RC, NULL);
    peer.qps[RC_SRQ] = node_qp(node, PRM_QP_ST_RC, peer.srq);
    node->in_cqe = 32;
    peer.qps[RC_IPV6] = node_qp(node, PRM_QP_ST_RC, NULL);
    peer.qps[UC] = node_qp(node, PRM_QP_ST_UC, NULL);
    node->in_cqe = 64;
    peer.qps[UD] = node_qp(node, PRM_QP_ST_UD, NULL);
    peer.qps[GSI] = node_qp(node, PRM_QP_ST_QP1, NULL);
    peer.qps[XRC] = new_xrc_target(in);
    peer.qps[TAGS] = new_tags_qp(in);
    new_tags_target(in);
    for (unsigned i = 0; i < ALL_QPS; i++) {
        connect(in, i);
    }
    join(in);
    steer(in);
}

static struct qp *model_of(const struct guest_input *in, unsigned i)
{
    return qp_find(&in->t->a.hca->fw->hca, peer.qps[i]->qpn);
}

/* Takes a QP back to a state in which packets have an effect. */
static void revive(struct guest_input *in, unsigned i)
{
    if (model_of(in, i)->state != PRM_QP_STATE_RTS) {
        g_assert_cmpint(drv_modify_qp(peer.qps[i], PRM_CMD_OP_2RST_QP, 0, NULL), ==, 0);
        connect(in, i);
    }
}

static struct drv_sge recv_sge(const struct guest_input *in, uint32_t len)
{
    return buf_sge(in->guest.mem, RECV_AT, len);
}

static void post_eth_recv(const struct guest_input *in, uint32_t len)
{
    const struct guest *g = &in->guest;
    uint8_t *slot = g->mem->ptr + g->rq_ring + peer.eth_pi % 32 * 64;

    prm_store32(slot, len);
    prm_store32(slot + 4, g->mem->mr.key);
    prm_store64(slot + 8, g->mem->va + RECV_AT);
    prm_store32(slot + 20, 0x100); /* end of the list */
    prm_store32(g->mem->ptr + g->rq_dbr, ++peer.eth_pi);
}

/* Posts receive WQEs of len bytes wherever there is room. */
static void post_receives(struct guest_input *in, uint32_t len)
{
    struct drv_sge sge = recv_sge(in, len);
    struct hca *hca = &in->t->a.hca->fw->hca;

    for (unsigned i = 0; i < QPS; i++) {
        const struct qp *qp = model_of(in, i);

        if (qp->has_rq && (uint16_t)(peer.qps[i]->rq_pi - qp->rq.ci) < 8) {
            drv_post_recv(peer.qps[i], &sge, 1);
        }
    }
    if ((uint16_t)(peer.srq->counter - srq_find(hca, peer.srq->srqn)->wq.ci) < 8) {
        drv_post_srq_recv(in->t->a.drv, peer.srq, &sge, 1);
    }
    if ((uint16_t)(peer.xrc_srq.counter - srq_find(hca, peer.xrc_srq.srqn)->wq.ci) < 8) {
        drv_post_srq_recv(in->t->a.drv, &peer.xrc_srq, &sge, 1);
    }
    if ((uint16_t)(in->guest.xrq.counter - srq_find(hca, in->guest.xrqn)->wq.ci) < 8) {
        drv_post_srq_recv(in->t->a.drv, &in->guest.xrq, &sge, 1);
    }
    if ((uint16_t)(in->guest.srq->counter - srq_find(hca, in->guest.srq->srqn)->wq.ci) < 8) {
        drv_post_srq_recv(in->t->a.drv, in->guest.srq, &sge, 1);
    }
    post_eth_recv(in, len);
}

/* Appends an entry for one message's tag, or for any tag. */
static void append_tag(struct guest_input *in, uint8_t tag)
{
    struct drv_qp *qp = in->guest.tags;
    void *wqe =
        (uint8_t *)qp->ring.ptr + qp->sq_offset + 64u * (qp->sq_pi & ((1u << qp->attr.log_sq) - 1));
    struct prm_wqe_tm_seg *seg = wqe + PRM_SIZE(wqe_ctrl_seg);
    struct prm_wqe_data_seg *data = (void *)(seg + 1);
    const struct tag_list *list = srq_find(&in->t->a.hca->fw->hca, in->guest.xrqn)->tags;
    struct drv_sge sge = recv_sge(in, 1024);

    if (qp_find(&in->t->a.hca->fw->hca, qp->qpn)->state != PRM_QP_STATE_RTS) {
        return; /* an entry was still taken */
    }
    memset(wqe, 0, 64);
    PRM_SET(wqe_ctrl_seg, wqe, opcode, PRM_WQE_OPCODE_TAG_MATCHING);
    PRM_SET(wqe_ctrl_seg, wqe, wqe_index, qp->sq_pi);
    PRM_SET(wqe_ctrl_seg, wqe, qpn, qp->qpn);
    PRM_SET(wqe_ctrl_seg, wqe, ds, 4);
    PRM_SET(wqe_tm_seg, seg, opcode, PRM_TM_OPCODE_APPEND);
    PRM_SET(wqe_tm_seg, seg, cqe_req, tag & 1);
    PRM_SET(wqe_tm_seg, seg, has_sw_cnt, 1);
    PRM_SET(wqe_tm_seg, seg, sw_cnt, list->hw_phase);
    PRM_SET(wqe_tm_seg, seg, index, (list->append_next + 1) % (1u << list->log_size));
    PRM_SET(wqe_tm_seg, seg, append_tag, tag);
    PRM_SET(wqe_tm_seg, seg, append_mask, tag ? 0xff : 0);
    PRM_SET(wqe_data_seg, data, byte_count, sge.len);
    PRM_SET(wqe_data_seg, data, lkey, sge.lkey);
    PRM_SET(wqe_data_seg, data, addr, sge.va);
    qp->sq_pi++;
    qp->dbr[1] = GUINT32_TO_BE(qp->sq_pi);
    drv_ring_doorbell(qp, (uint32_t)prm_load32(wqe), (uint32_t)prm_load32(wqe + 4));
}

/* Posts a send of the device's own, so that there is something to respond to. */
static void post_send(struct guest_input *in, unsigned i)
{
    static const uint8_t opcodes[] = {
        PRM_WQE_OPCODE_SEND,      PRM_WQE_OPCODE_RDMA_WRITE, PRM_WQE_OPCODE_RDMA_READ,
        PRM_WQE_OPCODE_ATOMIC_FA, PRM_WQE_OPCODE_ATOMIC_CS,  PRM_WQE_OPCODE_SEND_IMM,
    };
    static const uint8_t extended[] = {PRM_WQE_OPCODE_ATOMIC_MASKED_CS,
                                       PRM_WQE_OPCODE_ATOMIC_MASKED_FA};
    static const uint8_t operands[MASKED_OPERANDS_MAX];
    uint8_t what = input_u8(in);
    bool is_extended = what & 0x80;
    uint8_t opcode = is_extended ? extended[what & 1] : opcodes[what % G_N_ELEMENTS(opcodes)];
    bool atomic = opcode == PRM_WQE_OPCODE_ATOMIC_FA || opcode == PRM_WQE_OPCODE_ATOMIC_CS;
    struct drv_sge sge = recv_sge(in, is_extended ? MASKED_MIN << (what >> 1 & 63) % 6
                                      : atomic    ? 8
                                                  : input_u16(in) % 2048);
    struct drv_send send = {.opcode = opcode,
                            .flags = DRV_SIGNALED,
                            .sge = &sge,
                            .num_sge = 1,
                            .operands = operands,
                            .raddr = 0x40000000,
                            .rkey = 0x1234};

    if (i <= RC_IPV6 && (uint16_t)(peer.qps[i]->sq_pi - model_of(in, i)->sq.ci) < 64) {
        drv_post_send(peer.qps[i], &send);
    }
}

/* -- the wire -----------------------------------------------------------------------------------
 */

static void put_on_the_wire(struct guest_input *in, const uint8_t *frame, size_t len)
{
    uint8_t *room = wire_tx_reserve(in->t->b.port, len);

    if (room) {
        memcpy(room, frame, len);
        wire_tx_commit(in->t->b.port, len);
    }
}

/* Corrects IP's checksums, and the ICRC over the present headers. */
static void make_right(uint8_t *frame, size_t len)
{
    struct eth_info info;
    struct roce_packet pkt;

    if (!eth_parse(frame, len, &info)) {
        return;
    }
    eth_csum_fill_ipv4(frame, &info);
    eth_csum_fill_l4(frame, &info);
    if (roce_parse(frame, len, &pkt) == ROCE_BAD_ICRC) {
        roce_finish(frame, &pkt, pkt.payload_len + pkt.pad_count);
    }
}

static uint8_t opcode_for(unsigned i, uint8_t choice)
{
    static const uint8_t transports[ALL_QPS] = {
        [UC] = BTH_UC, [UD] = BTH_UD, [GSI] = BTH_UD, [XRC] = BTH_XRC};
    static const uint8_t extended[ALL_QPS] = {[RC_OWN_RQ] = BTH_EXTENDED_RC,
                                              [RC_SRQ] = BTH_EXTENDED_RC,
                                              [RC_IPV6] = BTH_EXTENDED_RC,
                                              [XRC] = BTH_EXTENDED_XRC};
    uint8_t opcode = choice == 0xc0  ? BTH_CNP_OPCODE
                     : choice & 0x80 ? (uint8_t)(choice << 1)
                     : choice & 0x40 ? extended[i] | (choice & 7)
                                     : transports[i] | (choice & 0x1f);

    return bth_opcodes[opcode].name ? opcode : transports[i] | BTH_SEND_ONLY;
}

/* Sends a packet for a QP that is correct except for what the input changes. */
static void send_packet(struct guest_input *in, unsigned i)
{
    uint8_t frame[WIRE_FRAME_MAX], how;
    const struct qp *qp = model_of(in, i);
    struct roce_packet pkt = {
        .opcode = opcode_for(i, input_u8(in)),
        .dest_qp = i == GSI ? 1 : peer.qps[i]->qpn,
        .pkey = 0xffff,
        .migreq = true,
        .xrc_srqn = peer.xrc_srq.srqn,
        .addr = {.is_ipv4 = i != RC_IPV6, .hop_limit = 64, .udp_sport = 0xc123},
        .deth = {.qkey = i == GSI ? GSI_QKEY : QKEY, .src_qp = PEER_QPN},
    };
    uint32_t flags = bth_opcodes[pkt.opcode].flags;
    static const uint16_t lens[] = {0, 1, 4, 8, 255, 256, 256, 256, 256, 257, 1024, 4096};
    size_t len, total;

    how = input_u8(in);
    len = flags & HDR_PAYLOAD ? lens[(how & 15) % G_N_ELEMENTS(lens)] : 0;
    if ((flags & HDR_PAYLOAD) && !(flags & PKT_LAST)) {
        len = how & 15 ? 256 : 255;
    }
    pkt.ackreq = how & 0x10;
    pkt.solicited = how & 0x20;
    pkt.psn = flags & PKT_RESPONSE ? qp->req.unacked_psn : qp->peer.resp.epsn;
    if (how & 0x40) {
        pkt.psn = (pkt.psn + (uint32_t)(int8_t)input_u8(in)) & PSN_MASK;
    }
    pkt.reth.va = pkt.atomic.va = 0x40000000 + (how & 0x80 ? input_u16(in) : 0);
    pkt.reth.rkey = pkt.atomic.rkey = peer.open.key;
    pkt.reth.len = (uint32_t)(flags & PKT_LAST ? len : len + input_u8(in));
    if (flags & PKT_READ) {
        pkt.reth.len = input_u16(in) % 8192;
    } else if (flags & PKT_ATOMIC) { /* operands of an extended atomic */
        pkt.reth.len = (uint32_t)len / (pkt.opcode & 1 ? 2 : 4);
    }
    if (flags & HDR_AETH) {
        pkt.aeth.syndrome = input_u8(in);
    }
    if (flags & HDR_IETH) {
        pkt.imm = peer.open.key;
    }
    memcpy(pkt.addr.dmac, in->t->a.drv->mac, 6);
    memcpy(pkt.addr.smac, in->t->b.drv->mac, 6);
    memcpy(pkt.addr.dgid, i == RC_IPV6 ? ipv6_gid[0] : in->t->a.gid, 16);
    memcpy(pkt.addr.sgid, i == RC_IPV6 ? ipv6_gid[1] : in->t->b.gid, 16);
    if (i == UD && (how & 0x80)) {
        memcpy(pkt.addr.dgid, group, 16);
        memcpy(pkt.addr.dmac, (const uint8_t[]){1, 0, 0x5e, 0, 0, 5}, 6);
        pkt.dest_qp = 0xffffff;
    }
    memset(roce_build(frame, &pkt, len), 0xa5, len);
    total = roce_finish(frame, &pkt, len);
    how = input_u8(in);
    if (how & 1) {
        input_patch(in, frame, MIN(total, 128));
        if (how & 2) {
            make_right(frame, total);
        }
    }
    if (how & 4) {
        total = MIN(input_u16(in), total);
    }
    put_on_the_wire(in, frame, total);
}

/* Sends a packet for a target of dynamic connections, whose sender has one of a few numbers. The
 * target that accepts extended atomics is the XRQ's. */
static void send_dc_packet(struct guest_input *in)
{
    uint8_t frame[WIRE_FRAME_MAX], how = input_u8(in), choice = input_u8(in);
    bool extended = (choice & 0x18) == 0x18; /* the transport itself has no such opcodes */
    bool tags = extended || (choice & 0xe0) == 0xe0;
    struct dcceth connect = {.key = EXAMPLE_DC_KEY, .psn = how >> 4};
    struct roce_packet pkt = {
        .opcode =
            extended ? BTH_EXTENDED_DC | (choice & BTH_EXTENDED_OP) : BTH_DC | (choice & 0x1f),
        .solicited = how & 1,
        .ackreq = how & 2,
        .migreq = true,
        .dest_qp = tags ? peer.tags_dctn : in->guest.dctn,
        .pkey = 0xffff,
        .psn = input_u8(in) & 15,
        .addr = {.is_ipv4 = true, .hop_limit = 64, .udp_sport = 0xc123},
        .dceth = {.version = how & 4 ? 0 : 1, .session = input_u8(in), .number = choice >> 5},
    };
    uint32_t flags = bth_opcodes[pkt.opcode].flags;
    size_t len = flags & HDR_PAYLOAD ? input_u16(in) % 1025 : 0, total;
    uint8_t *payload;

    if (!bth_opcodes[pkt.opcode].name) {
        return;
    }
    pkt.reth.va = pkt.atomic.va = 0x40000000;
    pkt.reth.rkey = pkt.atomic.rkey = peer.open.key;
    pkt.reth.len = (uint32_t)len;
    if (extended) { /* operands */
        pkt.reth.len = (uint32_t)len / (pkt.opcode & 1 ? 2 : 4);
    }
    memcpy(pkt.addr.dmac, in->t->a.drv->mac, 6);
    memcpy(pkt.addr.smac, in->t->b.drv->mac, 6);
    memcpy(pkt.addr.dgid, in->t->a.gid, 16);
    memcpy(pkt.addr.sgid, in->t->b.gid, 16);
    if (pkt.opcode == (BTH_DC | BTH_CONNECT)) {
        len = pkt.solicited ? 0 : DCC_ETH_BYTES;
    }
    payload = roce_build(frame, &pkt, len);
    memset(payload, 0xa5, len);
    if (pkt.opcode == (BTH_DC | BTH_CONNECT) && len) {
        dcceth_build(payload, &connect);
    }
    total = roce_finish(frame, &pkt, len);
    if (how & 8) {
        input_patch(in, frame, MIN(total, 128));
        make_right(frame, total);
    }
    put_on_the_wire(in, frame, total);
}

static void send_dc(struct guest_input *in, struct roce_packet *pkt, const void *data, size_t len,
                    bool patched)
{
    uint8_t frame[WIRE_FRAME_MAX];
    size_t total;

    pkt->migreq = true;
    pkt->pkey = 0xffff;
    pkt->addr = (struct roce_addr){.is_ipv4 = true, .hop_limit = 64, .udp_sport = 0xc123};
    pkt->dceth.version = 1;
    memcpy(pkt->addr.dmac, in->t->a.drv->mac, 6);
    memcpy(pkt->addr.smac, in->t->b.drv->mac, 6);
    memcpy(pkt->addr.dgid, in->t->a.gid, 16);
    memcpy(pkt->addr.sgid, in->t->b.gid, 16);
    memcpy(roce_build(frame, pkt, len), data, len);
    total = roce_finish(frame, pkt, len);
    if (patched) {
        input_patch(in, frame, MIN(total, 128));
        make_right(frame, total);
    }
    put_on_the_wire(in, frame, total);
}

/* Sends a request for a rendezvous over DC. */
static void send_dc_request(struct guest_input *in, uint8_t how)
{
    struct {
        struct prm_tmh tmh[1];
        struct prm_rvh rvh[1];
        struct prm_ravh ravh[1];
    } request = {0};
    uint8_t dcc[DCC_ETH_BYTES];
    struct dcceth connect = {.key = EXAMPLE_DC_KEY};
    uint8_t session = input_u8(in);
    struct roce_packet pkt = {.opcode = BTH_DC | BTH_CONNECT,
                              .dest_qp = peer.tags_dctn,
                              .dceth = {.session = session, .number = how >> 6}};

    dcceth_build(dcc, &connect);
    send_dc(in, &pkt, dcc, sizeof(dcc), false);
    PRM_SET(tmh, request.tmh, op, PRM_TM_OP_RNDV);
    PRM_SET(tmh, request.tmh, tag, input_u8(in) & 3);
    PRM_SET(rvh, request.rvh, len, input_u16(in) % 1100);
    PRM_SET(ravh, request.ravh, dct, how & 0x10 ? peer.tags_dctn : PEER_QPN);
    PRM_SET(ravh, request.ravh, dc_access_key, EXAMPLE_DC_KEY);
    pkt.opcode = BTH_DC | BTH_SEND_ONLY;
    pkt.ackreq = true;
    send_dc(in, &pkt, &request, sizeof(request), how & 8);
}

/* The guest's initiator sends a request to a target that the other HCA does not have. */
static void post_dc_send(struct guest_input *in)
{
    static const uint8_t opcodes[] = {
        PRM_WQE_OPCODE_SEND,      PRM_WQE_OPCODE_RDMA_WRITE,       PRM_WQE_OPCODE_RDMA_READ,
        PRM_WQE_OPCODE_ATOMIC_FA, PRM_WQE_OPCODE_ATOMIC_MASKED_FA,
    };
    static const uint8_t operands[MASKED_OPERANDS_MAX];
    struct drv_qp *qp = in->guest.dci;
    const struct qp *model = qp_find(&in->t->a.hca->fw->hca, qp->qpn);
    struct drv_path target = path_of(in, RC_OWN_RQ);
    uint8_t what = input_u8(in), opcode = opcodes[(what & 7) % G_N_ELEMENTS(opcodes)];
    uint32_t len = opcode == PRM_WQE_OPCODE_ATOMIC_FA ? 8
                   : opcode == PRM_WQE_OPCODE_ATOMIC_MASKED_FA
                       ? (uint32_t)MASKED_MIN << (what >> 3) % 6
                       : (what >> 3) * 64u;
    struct drv_sge sge = recv_sge(in, len);
    struct drv_send send = {.opcode = opcode,
                            .flags = DRV_SIGNALED,
                            .sge = &sge,
                            .num_sge = 1,
                            .operands = operands,
                            .raddr = 0x40000000,
                            .rkey = 0x1234,
                            .ah = &target,
                            .dc_key = EXAMPLE_DC_KEY};

    if (model->state != PRM_QP_STATE_RTS) {
        g_assert_cmpint(drv_modify_qp(qp, PRM_CMD_OP_2RST_QP, 0, NULL), ==, 0);
        qp->dbr[0] = qp->dbr[1] = 0;
        qp->sq_pi = 0;
        guest_connect_dci(&in->guest);
    }
    if ((uint16_t)(qp->sq_pi - model->sq.ci) < 64) {
        drv_post_send(qp, &send);
    }
}

/* Sends an answer to an initiator's request: the XRQ's, or the guest's. */
static void send_dc_answer(struct guest_input *in, uint8_t how)
{
    static const uint8_t ops[] = {BTH_DC | BTH_READ_RESP_ONLY,
                                  BTH_DC | BTH_READ_RESP_FIRST,
                                  BTH_DC | BTH_READ_RESP_MIDDLE,
                                  BTH_DC | BTH_READ_RESP_LAST,
                                  BTH_DC | BTH_ACK,
                                  BTH_EXTENDED_DC | BTH_EXTENDED_ACK,
                                  BTH_DC | BTH_ATOMIC_ACK,
                                  BTH_DC | BTH_SEND_ONLY};
    static const uint8_t data[1024] = {1};
    struct hca *hca = &in->t->a.hca->fw->hca;
    const struct srq *xrq = srq_find(hca, in->guest.xrqn);
    const struct qp *qp = how & 4 ? qp_find(hca, in->guest.dci->qpn) : (const struct qp *)xrq->dci;
    struct roce_packet pkt = {
        .opcode = ops[how >> 4 & 7],
        .dest_qp = qp->obj.num,
        .psn = (qp->req.unacked_psn + (how >> 7)) & PSN_MASK,
        .dceth = {.session = qp->peer.session, .number = qp->peer.qpn},
        .aeth = {.syndrome = input_u8(in)},
    };
    uint32_t flags = bth_opcodes[pkt.opcode].flags;

    send_dc(in, &pkt, data, flags & HDR_PAYLOAD ? input_u16(in) % 1025 : 0, how & 8);
}

/* Sends a frame that is not a RoCE packet, or not meant as one. */
static void send_frame(struct guest_input *in)
{
    static const uint8_t ipv4_tcp[] = {
        8, 0,    0x45, 0,    0,    60, 0, 0, 0, 0, 64, 6, 0, 0,    10,   0, 0, 2, 10, 0, 0,
        1, 0x12, 0x34, 0x56, 0x78, 0,  0, 0, 1, 0, 0,  0, 0, 0x50, 0x10, 1, 0, 0, 0,  0, 0,
    };
    static const uint8_t vlan_ipv6_udp[] = {
        0x81, 0, 0, 5, 0x86, 0xdd, 0x60, 0, 0, 0, 0,    24,   17,   64,   0xfe, 0x80, 0, 0,
        0,    0, 0, 0, 0,    0,    0,    0, 0, 0, 0,    2,    0xfe, 0x80, 0,    0,    0, 0,
        0,    0, 0, 0, 0,    0,    0,    0, 0, 1, 0x12, 0x34, 0x12, 0xb7, 0,    24,   0, 0,
    };
    uint8_t frame[2048] = {0}, how = input_u8(in);
    size_t len = 14 + input_u16(in) % 1600;

    memcpy(frame, in->t->a.drv->mac, 6);
    memcpy(frame + 6, in->t->b.drv->mac, 6);
    if (how & 1) {
        memcpy(frame + 12, ipv4_tcp, sizeof(ipv4_tcp));
    } else if (how & 2) {
        memcpy(frame + 12, vlan_ipv6_udp, sizeof(vlan_ipv6_udp));
    }
    if (how & 4) {
        memset(frame, 0xff, 6);
    }
    input_patch(in, frame, MIN(len, 96));
    if (how & 8) {
        make_right(frame, len);
    }
    put_on_the_wire(in, frame, len);
}

/* -- a run --------------------------------------------------------------------------------------
 */

static void step(struct guest_input *in)
{
    uint8_t what = input_u8(in);
    unsigned i = (what >> 4) % QPS;

    switch (what & 15) {
    default:
        revive(in, i);
        send_packet(in, i);
        break;
    case 7: {
        uint8_t how = input_u8(in);

        if ((how & 5) == 1) {
            append_tag(in, input_u8(in) & 3);
            input_settle(in);
        } else if (how & 1) {
            post_dc_send(in);
            input_settle(in);
        }
        if (how & 2) {
            send_dc_request(in, how);
        } else {
            send_dc_answer(in, how);
        }
        break;
    }
    case 8:
        send_frame(in);
        break;
    case 9:
        send_dc_packet(in);
        break;
    case 10:
    case 11:
        revive(in, i);
        post_send(in, i);
        break;
    case 15: /* messages for the XRQ, and entries that they may match */
        if (what & 0x40) {
            append_tag(in, input_u8(in) & 3);
            input_settle(in);
        }
        revive(in, TAGS);
        send_packet(in, TAGS);
        break;
    case 12:
        post_receives(in, input_u16(in));
        break;
    case 13:
        input_advance(in, input_u16(in) * 1000ull);
        break;
    case 14: {
        struct drv_mem open = {peer.closed->ptr + OPEN, peer.closed->mem.bus + OPEN, OPEN};

        /* registers the key again, after it was invalidated */
        drv_dereg_mr(in->t->a.drv, &peer.open);
        g_assert_cmpint(drv_reg_mr(in->t->a.drv, in->t->a.drv->pdn, &open, 0x40000000, OPEN,
                                   DRV_ALL, &peer.open),
                        ==, 0);
        break;
    }
    }
    /* frames that wait together are handled differently from single frames */
    if (!(what & 0x80)) {
        input_settle(in);
    }
}

static void check(struct guest_input *in)
{
    static uint8_t pattern[3 * OPEN];
    uint32_t pdn;

    if (!pattern[0]) {
        fill(pattern, sizeof(pattern), 1);
    }
    require(memcmp(peer.closed->ptr, pattern, OPEN) == 0 &&
                memcmp(peer.closed->ptr + 2 * OPEN, pattern + 2 * OPEN, OPEN) == 0,
            "a peer wrote to memory that no key opens");
    require(drv_alloc_pd(in->t->a.drv, &pdn) == 0 && drv_dealloc_pd(in->t->a.drv, pdn) == 0,
            "the device takes no command");
    require(in->t->a.hca->log_errors == 0, "the device called itself at fault");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct guest_input *in = guest_input_start(data, size);

    if (in->fresh) {
        prepare(in);
    }
    post_receives(in, 2048);
    for (unsigned n = 0; n < MAX_STEPS && in->size; n++) {
        step(in);
    }
    input_settle(in);
    drv_poll_events(in->t->a.drv);
    g_array_set_size(in->t->a.drv->events, 0);
    check(in);
    return 0;
}
