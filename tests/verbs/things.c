/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes every kind of object, and takes the census (things.h). */
#define _GNU_SOURCE
#include "tests/verbs/things.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include "fw/fw_internal.h"
#include "guest-lib/host/local_internal.h"
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "model/core/obj_class.h"
#include "model/steering/tables.h"
#include "model/rdma/rdma.h"
#include "model/rdma/requester_internal.h"
#include "tests/sim/verbs_hosts.h"

#define PAGE 4096

static uint8_t memory[16 * PAGE] __attribute__((aligned(PAGE)));
static struct things *left; /* objects of programs that were left: they stay for good */

static unsigned thing_chance(struct things *t, unsigned n)
{
    return (unsigned)g_rand_int_range(t->rand, 0, (gint32)n);
}

/* Returns an object of a kind, or NULL. */
static void *thing_some(struct things *t, enum thing kind)
{
    GPtrArray *made = t->made[kind];

    return made->len ? made->pdata[thing_chance(t, made->len)] : NULL;
}

/* Returns a PD, or an object that can be used as one. */
static struct ibv_pd *thing_some_pd(struct things *t)
{
    struct ibv_pd *domain = thing_chance(t, 3) ? NULL : thing_some(t, THING_PARENT_DOMAIN);

    return domain ? domain : thing_some(t, THING_PD);
}

static struct ibv_cq *thing_some_cq(struct things *t)
{
    struct ibv_cq *cq = thing_chance(t, 3) ? thing_some(t, THING_CQ) : NULL;

    return cq ? cq : thing_some(t, THING_CQ_EX);
}

static struct ibv_ah_attr thing_path(struct things *t)
{
    struct ibv_ah_attr attr = {
        .is_global = 1, .port_num = 1, .grh = {.sgid_index = 1, .hop_limit = 1}};

    verbs_must_be_0(ibv_query_gid(t->ctx, 1, 1, &attr.grh.dgid));
    return attr;
}

/* -- verbs ------------------------------------------------------------------------------------- */

static void *make_pd(struct things *t)
{
    return ibv_alloc_pd(t->ctx);
}

static void *make_td(struct things *t)
{
    struct ibv_td_init_attr attr = {0};

    return ibv_alloc_td(t->ctx, &attr);
}

static void *make_parent_domain(struct things *t)
{
    struct ibv_parent_domain_init_attr attr = {.pd = thing_some(t, THING_PD),
                                               .td = thing_some(t, THING_TD)};

    return attr.pd ? ibv_alloc_parent_domain(t->ctx, &attr) : NULL;
}

/* Some are paged on demand, and some of these are all of memory. */
static void *make_mr(struct things *t)
{
    struct ibv_pd *pd = thing_some(t, THING_PD);
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND;

    if (pd && thing_chance(t, 16) == 0) {
        return ibv_reg_mr(pd, NULL, SIZE_MAX, access | IBV_ACCESS_ON_DEMAND);
    }
    if (thing_chance(t, 3) == 0) {
        access |= IBV_ACCESS_ON_DEMAND;
    }
    return pd ? ibv_reg_mr(pd, memory, PAGE * (1 + thing_chance(t, 15)), access) : NULL;
}

/* Some of it gets an address of an operation, or is imported for a moment. */
static void *make_dm(struct things *t)
{
    struct ibv_alloc_dm_attr attr = {.length = 1 + thing_chance(t, 2 * PAGE),
                                     .log_align_req = thing_chance(t, 14)};
    struct ibv_dm *dm = ibv_alloc_dm(t->ctx, &attr), *imported;

    if (dm && thing_chance(t, 3) == 0) {
        void *op = hv_dv_dm_map_op_addr(dm, (uint8_t)thing_chance(t, 2));

        if (op) {
            munmap(op, attr.length);
        }
    }
    if (dm && thing_chance(t, 3) == 0) {
        imported = ibv_import_dm(t->ctx, dm->handle);
        if (imported) {
            ibv_unimport_dm(imported);
        }
    }
    return dm;
}

static void *make_dm_mr(struct things *t)
{
    struct ibv_pd *pd = thing_some(t, THING_PD);
    struct ibv_dm *dm = thing_some(t, THING_DM);

    return pd && dm ? ibv_reg_dm_mr(pd, dm, 0, 1, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE)
                    : NULL;
}

static void *make_mw(struct things *t)
{
    struct ibv_pd *pd = thing_some(t, THING_PD);

    return pd ? ibv_alloc_mw(pd, thing_chance(t, 2) ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2) : NULL;
}

static void *make_ah(struct things *t)
{
    struct ibv_pd *pd = thing_some(t, THING_PD);
    struct ibv_ah_attr attr = thing_path(t);

    return pd ? ibv_create_ah(pd, &attr) : NULL;
}

static void *make_channel(struct things *t)
{
    return ibv_create_comp_channel(t->ctx);
}

static void *make_cq(struct things *t)
{
    struct ibv_comp_channel *channel = thing_some(t, THING_CHANNEL);
    struct ibv_cq *cq = ibv_create_cq(t->ctx, 15, NULL, channel, 0);

    if (cq && channel) {
        verbs_must_be_0(ibv_req_notify_cq(cq, 0));
    }
    return cq;
}

static void *make_cq_ex(struct things *t)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = 15, .wc_flags = IBV_WC_EX_WITH_TM_INFO};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(t->ctx, &attr);

    return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

static void *make_xrcd(struct things *t)
{
    struct ibv_xrcd_init_attr attr = {.comp_mask =
                                          IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                                      .fd = thing_chance(t, 2) ? t->file : -1,
                                      .oflags = O_CREAT};

    return ibv_open_xrcd(t->ctx, &attr);
}

static void *make_srq(struct things *t)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_pd *pd = thing_some_pd(t);

    return pd ? ibv_create_srq(pd, &attr) : NULL;
}

static void *make_srq_ex(struct things *t, enum ibv_srq_type type)
{
    struct ibv_srq_init_attr_ex attr = {
        .attr = {.max_wr = 4, .max_sge = 1},
        .srq_type = type,
        .pd = thing_some_pd(t),
        .cq = type == IBV_SRQT_TM ? thing_some(t, THING_CQ_EX) : thing_some_cq(t),
        .xrcd = thing_some(t, THING_XRCD),
        .tm_cap = {.max_num_tags = 4, .max_ops = 4},
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
                     (type == IBV_SRQT_TM ? IBV_SRQ_INIT_ATTR_TM : IBV_SRQ_INIT_ATTR_XRCD)};

    if (!attr.pd || !attr.cq || (type == IBV_SRQT_XRC && !attr.xrcd)) {
        return NULL;
    }
    return ibv_create_srq_ex(t->ctx, &attr);
}

static void *make_xrc_srq(struct things *t)
{
    return make_srq_ex(t, IBV_SRQT_XRC);
}

static void *make_tm_srq(struct things *t)
{
    return make_srq_ex(t, IBV_SRQT_TM);
}

/* -- queue pairs ------------------------------------------------------------------------------- */

#define GROUPS 9

static union ibv_gid thing_group(uint8_t number)
{
    return (union ibv_gid){.raw = {[10] = 0xff, 0xff, 239, 1, 2, number}};
}

/* Moves a QP some steps towards RTS, connected to itself; some QPs get work on the way. */
static void thing_advance(struct things *t, struct ibv_qp *qp)
{
    bool connected = qp->qp_type != IBV_QPT_UD, reliable = qp->qp_type == IBV_QPT_RC;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = 1,
                               .qkey = 1,
                               .path_mtu = IBV_MTU_1024,
                               .dest_qp_num = qp->qp_num,
                               .max_dest_rd_atomic = 1,
                               .max_rd_atomic = 1,
                               .timeout = 10,
                               .retry_cnt = 7,
                               .rnr_retry = 7,
                               .min_rnr_timer = 30,
                               .ah_attr = thing_path(t)};
    union ibv_gid group = thing_group((uint8_t)thing_chance(t, GROUPS));
    struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = 8};
    struct ibv_mr *mr = thing_some(t, THING_MR);
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = mr ? 1 : 0,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;

    if (!thing_chance(t, 4)) {
        return;
    }
    verbs_must_be_0(ibv_modify_qp(qp, &attr,
                                  IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
                                      (connected ? IBV_QP_ACCESS_FLAGS : IBV_QP_QKEY)));
    if (!connected && thing_chance(t, 2)) {
        verbs_must_be_0(ibv_attach_mcast(qp, &group, 0));
    }
    attr.qp_state = IBV_QPS_RTR;
    verbs_must_be_0(ibv_modify_qp(
        qp, &attr,
        IBV_QP_STATE |
            (connected ? IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN : 0) |
            (reliable ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)));
    attr.qp_state = IBV_QPS_RTS;
    verbs_must_be_0(ibv_modify_qp(qp, &attr,
                                  IBV_QP_STATE | IBV_QP_SQ_PSN |
                                      (reliable ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                                      IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC
                                                : 0)));
    if (connected) { /* nobody receives it: it waits, or is lost */
        sge.lkey = mr ? mr->lkey : 0;
        verbs_must_be_0(ibv_post_send(qp, &wr, &bad));
    }
}

static void *make_qp(struct things *t)
{
    static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
    struct ibv_qp_init_attr attr = {
        .send_cq = thing_some_cq(t),
        .recv_cq = thing_some_cq(t),
        .srq = thing_chance(t, 3) ? NULL : thing_some(t, THING_SRQ),
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = types[thing_chance(t, 3)]};
    struct ibv_pd *pd = thing_some_pd(t);
    struct ibv_qp *qp = pd && attr.send_cq ? ibv_create_qp(pd, &attr) : NULL;

    if (qp) {
        thing_advance(t, qp);
    }
    return qp;
}

static void *make_xrc_qp(struct things *t)
{
    bool target = thing_chance(t, 2);
    struct ibv_qp_init_attr_ex attr = {.send_cq = thing_some_cq(t),
                                       .cap = {.max_send_wr = 4, .max_send_sge = 1},
                                       .qp_type = target ? IBV_QPT_XRC_RECV : IBV_QPT_XRC_SEND,
                                       .comp_mask =
                                           target ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD,
                                       .pd = thing_some_pd(t),
                                       .xrcd = thing_some(t, THING_XRCD)};
    struct ibv_qp *one = thing_some(t, THING_XRC_QP);
    struct ibv_qp_open_attr open = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
                                                 IBV_QP_OPEN_ATTR_TYPE,
                                    .xrcd = attr.xrcd,
                                    .qp_type = IBV_QPT_XRC_RECV};

    if (!attr.send_cq || !attr.pd || !attr.xrcd) {
        return NULL;
    }
    if (one && one->qp_type == IBV_QPT_XRC_RECV && thing_chance(t, 2)) {
        open.qp_num = one->qp_num;
        return ibv_open_qp(t->ctx, &open); /* another domain has none */
    }
    return ibv_create_qp_ex(t->ctx, &attr);
}

static void *make_raw_qp(struct things *t)
{
    struct ibv_qp_init_attr attr = {.send_cq = thing_some_cq(t),
                                    .recv_cq = thing_some_cq(t),
                                    .cap = {4, 4, 1, 1, 0},
                                    .qp_type = IBV_QPT_RAW_PACKET};
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct ibv_pd *pd = thing_some_pd(t);
    struct ibv_qp *qp = pd && attr.send_cq ? ibv_create_qp(pd, &attr) : NULL;

    if (qp) {
        verbs_must_be_0(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PORT));
    }
    return qp;
}

static void *make_dc(struct things *t, bool dct)
{
    struct ibv_qp_init_attr_ex attr = {.send_cq = thing_some_cq(t),
                                       .recv_cq = thing_some_cq(t),
                                       .srq = thing_some(t, THING_SRQ),
                                       .cap = {.max_send_wr = dct ? 0 : 4, .max_send_sge = !dct},
                                       .qp_type = IBV_QPT_DRIVER,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD,
                                       .pd = thing_some_pd(t)};
    struct mlx5dv_qp_init_attr dv = {
        .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
        .dc_init_attr = {.dc_type = dct ? MLX5DV_DCTYPE_DCT : MLX5DV_DCTYPE_DCI,
                         .dct_access_key = 1}};
    struct ibv_qp_attr to = {.qp_state = IBV_QPS_INIT,
                             .port_num = 1,
                             .path_mtu = IBV_MTU_1024,
                             .min_rnr_timer = 1,
                             .ah_attr = thing_path(t)};
    struct ibv_qp *qp;

    if (!attr.send_cq || !attr.pd || (dct && !attr.srq)) {
        return NULL;
    }
    if (!dct) {
        attr.srq = NULL;
    }
    qp = hv_dv_create_qp(t->ctx, &attr, &dv);
    if (qp && dct && thing_chance(t, 2)) {
        verbs_must_be_0(ibv_modify_qp(
            qp, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
        to.qp_state = IBV_QPS_RTR;
        verbs_must_be_0(ibv_modify_qp(
            qp, &to, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV | IBV_QP_PATH_MTU));
    }
    return qp;
}

static void *make_dci(struct things *t)
{
    return make_dc(t, false);
}

static void *make_dct(struct things *t)
{
    return make_dc(t, true);
}

/* -- work queues, flows ------------------------------------------------------------------------ */

static void *make_wq(struct things *t)
{
    struct ibv_wq_init_attr attr = {.wq_type = IBV_WQT_RQ,
                                    .max_wr = 4,
                                    .max_sge = 1,
                                    .pd = thing_some_pd(t),
                                    .cq = thing_some_cq(t)};

    return attr.pd && attr.cq ? ibv_create_wq(t->ctx, &attr) : NULL;
}

static void *make_ind_table(struct things *t)
{
    struct ibv_wq *wqs[] = {thing_some(t, THING_WQ), thing_some(t, THING_WQ)};
    struct ibv_rwq_ind_table_init_attr attr = {.log_ind_tbl_size = thing_chance(t, 2),
                                               .ind_tbl = wqs};

    return wqs[0] ? ibv_create_rwq_ind_table(t->ctx, &attr) : NULL;
}

static void *make_rss_qp(struct things *t)
{
    static uint8_t key[40];
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_RAW_PACKET,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
        .pd = thing_some(t, THING_PD),
        .rwq_ind_tbl = thing_some(t, THING_IND_TABLE),
        .rx_hash_conf = {.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
                         .rx_hash_key_len = sizeof(key),
                         .rx_hash_key = key,
                         .rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4}};

    return attr.pd && attr.rwq_ind_tbl ? ibv_create_qp_ex(t->ctx, &attr) : NULL;
}

static void *make_flow(struct things *t)
{
    struct ibv_flow_attr attr = {.type = thing_chance(t, 3) ? IBV_FLOW_ATTR_ALL_DEFAULT
                                                            : IBV_FLOW_ATTR_SNIFFER,
                                 .size = sizeof(attr),
                                 .port = 1};
    struct ibv_qp *qp = thing_some(t, thing_chance(t, 2) ? THING_RAW_QP : THING_RSS_QP);

    return qp ? ibv_create_flow(qp, &attr) : NULL;
}

static const union {
    struct mlx5dv_flow_match_parameters match; /* the match value follows it */
    uint8_t room[sizeof(struct mlx5dv_flow_match_parameters) + 64];
} all_packets = {.match = {.match_sz = 64}};

static void *make_matcher(struct things *t)
{
    struct mlx5dv_flow_matcher_attr attr = {.type = IBV_FLOW_ATTR_NORMAL,
                                            .match_mask = (void *)&all_packets.match};

    return hv_dv_create_flow_matcher(t->ctx, &attr);
}

static void *make_dv_flow(struct things *t)
{
    struct mlx5dv_flow_matcher *matcher = thing_some(t, THING_MATCHER);
    struct mlx5dv_flow_action_attr action = {.type = MLX5DV_FLOW_ACTION_DEST_IBV_QP,
                                             .qp = thing_some(t, THING_RAW_QP)};

    return matcher && action.qp ? hv_dv_create_flow(matcher, (void *)&all_packets.match, 1, &action)
                                : NULL;
}

/* -- DevX -------------------------------------------------------------------------------------- */

static void *make_mkey(struct things *t)
{
    struct mlx5dv_mkey_init_attr attr = {.pd = thing_some(t, THING_PD),
                                         .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
                                         .max_entries = 4};

    return attr.pd ? hv_dv_create_mkey(&attr) : NULL;
}

static void *make_reserved_qpn(struct things *t)
{
    uint32_t qpn;

    return hv_dv_reserved_qpn_alloc(t->ctx, &qpn) ? NULL : GUINT_TO_POINTER(qpn);
}

static void *make_umem(struct things *t)
{
    return hv_dv_devx_umem_reg(t->ctx, memory, 4 * PAGE, IBV_ACCESS_LOCAL_WRITE);
}

static void *make_uar(struct things *t)
{
    return hv_dv_devx_alloc_uar(t->ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
}

/* Its doorbell record is read, although the device never gets any work. */
static void *make_devx_cq(struct things *t)
{
    const struct mlx5dv_devx_umem *ring = thing_some(t, THING_UMEM),
                                  *dbrec = thing_some(t, THING_UMEM);
    const struct mlx5dv_devx_uar *uar = thing_some(t, THING_UAR);
    struct prm_create_cq_in in[1] = {0};
    struct prm_create_cq_out out[1] = {0};
    struct prm_cqc *cqc = PRM_PTR(create_cq_in, in, cq_context);
    uint32_t eqn;

    if (!ring || !uar) {
        return NULL;
    }
    verbs_must_be_0(hv_dv_devx_query_eqn(t->ctx, 0, &eqn));
    PRM_SET(create_cq_in, in, opcode, PRM_CMD_OP_CREATE_CQ);
    PRM_SET(create_cq_in, in, cq_umem_id, ring->umem_id);
    PRM_SET(cqc, cqc, log_cq_size, 4);
    PRM_SET(cqc, cqc, uar_page, uar->page_id);
    PRM_SET(cqc, cqc, c_eqn_or_apu_element, eqn);
    PRM_SET(cqc, cqc, dbr_umem_id, dbrec->umem_id);
    PRM_SET(cqc, cqc, dbr_addr, 2 * PAGE);
    return hv_dv_devx_obj_create(t->ctx, in, sizeof(in), out, sizeof(out));
}

static void *make_devx_obj(struct things *t)
{
    struct prm_alloc_pd_in in[1] = {0};
    struct prm_alloc_pd_out out[1] = {0};

    PRM_SET(alloc_pd_in, in, opcode, PRM_CMD_OP_ALLOC_PD);
    return hv_dv_devx_obj_create(t->ctx, in, sizeof(in), out, sizeof(out));
}

static void *make_events(struct things *t)
{
    struct mlx5dv_devx_event_channel *channel = hv_dv_devx_create_event_channel(t->ctx, 0);
    struct mlx5dv_devx_obj *cq = thing_some(t, THING_DEVX_CQ);
    uint16_t about_cq = PRM_EVENT_TYPE_COMP, about_port = PRM_EVENT_TYPE_PORT_CHANGE;
    int fd;

    if (!channel) {
        return NULL;
    }
    if (cq && thing_chance(t, 2)) {
        verbs_must_be_0(
            hv_dv_devx_subscribe_devx_event(channel, cq, sizeof(about_cq), &about_cq, 1));
    }
    if (thing_chance(t, 2)) {
        fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        hv_dv_devx_subscribe_devx_event_fd(channel, fd, NULL, about_port);
        close(fd);
    }
    return channel;
}

static void *make_commands(struct things *t)
{
    return hv_dv_devx_create_cmd_comp(t->ctx);
}

/* -- the kinds --------------------------------------------------------------------------------- */

static int end_td(void *td)
{
    return ibv_dealloc_td(td);
}

static int end_pd(void *pd)
{
    return ibv_dealloc_pd(pd);
}

static int end_mr(void *mr)
{
    return ibv_dereg_mr(mr);
}

static int end_dm(void *dm)
{
    return ibv_free_dm(dm);
}

static int end_mw(void *mw)
{
    return ibv_dealloc_mw(mw);
}

static int end_ah(void *ah)
{
    return ibv_destroy_ah(ah);
}

static int end_channel(void *channel)
{
    return ibv_destroy_comp_channel(channel);
}

static int end_cq(void *cq)
{
    return ibv_destroy_cq(cq);
}

static int end_xrcd(void *xrcd)
{
    return ibv_close_xrcd(xrcd);
}

static int end_srq(void *srq)
{
    return ibv_destroy_srq(srq);
}

/* The QP leaves its groups first. */
static int end_qp(void *thing)
{
    struct ibv_qp *qp = thing;

    for (uint8_t i = 0; qp->qp_type == IBV_QPT_UD && i < GROUPS; i++) {
        union ibv_gid group = thing_group(i);

        ibv_detach_mcast(qp, &group, 0);
    }
    return ibv_destroy_qp(qp);
}

static int end_wq(void *wq)
{
    return ibv_destroy_wq(wq);
}

static int end_ind_table(void *table)
{
    return ibv_destroy_rwq_ind_table(table);
}

static int end_flow(void *flow)
{
    return ibv_destroy_flow(flow);
}

static int end_matcher(void *matcher)
{
    return hv_dv_destroy_flow_matcher(matcher);
}

static int end_mkey(void *mkey)
{
    return hv_dv_destroy_mkey(mkey);
}

static int end_umem(void *umem)
{
    return hv_dv_devx_umem_dereg(umem);
}

static int end_uar(void *uar)
{
    hv_dv_devx_free_uar(uar);
    return 0;
}

static int end_devx_obj(void *obj)
{
    return hv_dv_devx_obj_destroy(obj);
}

static int end_events(void *channel)
{
    hv_dv_devx_destroy_event_channel(channel);
    return 0;
}

static int end_commands(void *channel)
{
    hv_dv_devx_destroy_cmd_comp(channel);
    return 0;
}

/* end NULL: destroyed by its number in the context. */
static const struct {
    void *(*make)(struct things *t);
    int (*end)(void *thing);
} kinds[THINGS] = {
    [THING_PD] = {make_pd, end_pd},
    [THING_TD] = {make_td, end_td},
    [THING_PARENT_DOMAIN] = {make_parent_domain, end_pd},
    [THING_MR] = {make_mr, end_mr},
    [THING_DM] = {make_dm, end_dm},
    [THING_DM_MR] = {make_dm_mr, end_mr},
    [THING_MW] = {make_mw, end_mw},
    [THING_AH] = {make_ah, end_ah},
    [THING_CHANNEL] = {make_channel, end_channel},
    [THING_CQ] = {make_cq, end_cq},
    [THING_CQ_EX] = {make_cq_ex, end_cq},
    [THING_XRCD] = {make_xrcd, end_xrcd},
    [THING_SRQ] = {make_srq, end_srq},
    [THING_XRC_SRQ] = {make_xrc_srq, end_srq},
    [THING_TM_SRQ] = {make_tm_srq, end_srq},
    [THING_QP] = {make_qp, end_qp},
    [THING_XRC_QP] = {make_xrc_qp, end_qp},
    [THING_RAW_QP] = {make_raw_qp, end_qp},
    [THING_DCI] = {make_dci, end_qp},
    [THING_DCT] = {make_dct, end_qp},
    [THING_WQ] = {make_wq, end_wq},
    [THING_IND_TABLE] = {make_ind_table, end_ind_table},
    [THING_RSS_QP] = {make_rss_qp, end_qp},
    [THING_FLOW] = {make_flow, end_flow},
    [THING_MATCHER] = {make_matcher, end_matcher},
    [THING_DV_FLOW] = {make_dv_flow, end_flow},
    [THING_MKEY] = {make_mkey, end_mkey},
    [THING_RESERVED_QPN] = {make_reserved_qpn, NULL},
    [THING_UMEM] = {make_umem, end_umem},
    [THING_UAR] = {make_uar, end_uar},
    [THING_DEVX_CQ] = {make_devx_cq, end_devx_obj},
    [THING_DEVX_OBJ] = {make_devx_obj, end_devx_obj},
    [THING_EVENTS] = {make_events, end_events},
    [THING_COMMANDS] = {make_commands, end_commands},
};

const char *const thing_names[THINGS] = {
    "PD",      "TD",      "parent domain", "MR",   "DM",   "DM MR",   "MW",      "AH",
    "channel", "CQ",      "CQ_EX",         "XRCD", "SRQ",  "XRC SRQ", "TM SRQ",  "QP",
    "XRC QP",  "raw QP",  "DCI",           "DCT",  "WQ",   "table",   "RSS QP",  "flow",
    "matcher", "dv flow", "mkey",          "QPN",  "umem", "UAR",     "DevX CQ", "DevX PD",
    "events",  "commands"};

struct things *things_new(struct ibv_context *ctx, GRand *rand, int file)
{
    struct things *t = g_new0(struct things, 1);

    t->ctx = ctx;
    t->rand = rand;
    t->file = file;
    for (int i = 0; i < THINGS; i++) {
        t->made[i] = g_ptr_array_new();
    }
    return t;
}

bool thing_make(struct things *t, enum thing kind)
{
    void *thing = kinds[kind].make(t);

    if (thing) {
        g_ptr_array_add(t->made[kind], thing);
    }
    return thing;
}

bool thing_destroy(struct things *t, enum thing kind, unsigned index)
{
    void *thing = t->made[kind]->pdata[index];
    int err = kinds[kind].end ? kinds[kind].end(thing)
                              : hv_dv_reserved_qpn_dealloc(t->ctx, GPOINTER_TO_UINT(thing));

    if (!err) {
        g_ptr_array_remove_index_fast(t->made[kind], index);
    }
    return !err;
}

static void thing_close_descriptor(enum thing kind, void *thing)
{
    if (kind == THING_CHANNEL) {
        close(((struct ibv_comp_channel *)thing)->fd);
    } else if (kind == THING_EVENTS) {
        close(((struct mlx5dv_devx_event_channel *)thing)->fd);
    } else if (kind == THING_COMMANDS) {
        close(((struct mlx5dv_devx_cmd_comp *)thing)->fd);
    }
}

void things_leave(struct things *t)
{
    for (int i = 0; i < THINGS; i++) {
        for (guint j = 0; j < t->made[i]->len; j++) {
            thing_close_descriptor((enum thing)i, t->made[i]->pdata[j]);
        }
    }
    t->ctx = NULL;
    do { /* no lock, which a child of fork() could find taken */
        t->next = g_atomic_pointer_get(&left);
    } while (!g_atomic_pointer_compare_and_exchange(&left, t->next, t));
}

void things_close(struct things *t)
{
    verbs_must_be_0(ibv_close_device(t->ctx));
    things_leave(t);
}

/* -- the census -------------------------------------------------------------------------------- */

/* What the ledger counts for one block. */
#define BLOCK(bytes) (((bytes) + 8 + 15) & ~15ul)
/* The chunk that a table keeps for the next numbers, even if it is empty; including malloc()'s own
 * share. */
#define CHUNK BLOCK(sizeof(struct obj_chunk))
/* The firmware's cost of a page that the driver owns: it takes pages back in batches. */
#define OWNED_PAGE (LEDGER_SET_ENTRY + 2 * sizeof(uint64_t))
/* Cost of an entry in the pool that sending queues share. */
#define FLIGHT BLOCK(sizeof(struct flight))

static void census_add_table(struct census *census, const struct obj_table *table)
{
    const struct obj_chunk *next = table->chunks[table->next / OBJ_CHUNK];

    census->objects += table->count;
    census->device -= next && !next->count ? CHUNK : 0;
}

/* The driver keeps what it makes for the first on-demand region: an EQ, a queue, a thread. */
static void census_begin(struct ibv_context *ctx)
{
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_mr *mr = pd ? ibv_reg_mr(pd, memory, PAGE, IBV_ACCESS_ON_DEMAND) : NULL;

    verbs_must_be_0(mr ? ibv_dereg_mr(mr) : errno);
    verbs_must_be_0(ibv_dealloc_pd(pd));
}

struct census census_take(struct ibv_context *ctx)
{
    struct hv_hca *hca = hv_hca_of(ctx);
    struct hca *model = &hca->local->fw->hca;
    struct census census = {0};

    census_begin(ctx);
    pthread_mutex_lock(&hca->local->lock);
    census.device = model->memory.used - OWNED_PAGE * hca->local->fw->pages.list->len;
    census.device -= FLIGHT * model->rdma->flights.all->len;
    census.icm = model->icm.used;
    census.doorbell_pages = hca->doorbell_pages->len;
    for (unsigned i = 0; i < obj_n_spaces; i++) {
        census_add_table(&census, obj_space(model, i));
    }
    census_add_table(&census, &model->steering->tables);
    pthread_mutex_unlock(&hca->local->lock);
    pthread_mutex_lock(&hca->reg_lock);
    census.numbers = g_hash_table_size(hca->numbers);
    census.contexts = hca->contexts->len;
    census.event_files = hca->event_files->len;
    pthread_mutex_unlock(&hca->reg_lock);
    census.subscriptions = hca->subscriptions->len;
    census.xrcds = hca->xrcds->len;
    census.flows = hca->sniffers != NULL;
    for (size_t i = 0; i < G_N_ELEMENTS(hca->flow_tables); i++) {
        census.flows |= hca->flow_tables[i] != NULL;
    }
    return census;
}

#define SAME(what)                                                                                 \
    do {                                                                                           \
        if (is->what != was->what) {                                                               \
            g_error("%s: " #what " %llu, was %llu", when, (unsigned long long)is->what,            \
                    (unsigned long long)was->what);                                                \
        }                                                                                          \
    } while (0)

void census_compare(const struct census *is, const struct census *was, const char *when)
{
    SAME(doorbell_pages);
    SAME(numbers);
    SAME(contexts);
    SAME(event_files);
    SAME(subscriptions);
    SAME(xrcds);
    SAME(flows);
    SAME(objects);
    SAME(icm);
    SAME(device);
}
