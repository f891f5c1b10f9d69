/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds what verbs do when called, for docs/reference/verbs.md (guest-lib/export/verbs_doc.py).
 *
 * usage: verbs_probe < NAMES: lines "NAME VERSION", where VERSION is "-" for a verb that verbs.h
 * turns into a call through the context. Prints "NAME VERSION STATE" for each: works, refused with
 * an errno, or does nothing. A verb of the tables below is called as a program would, with objects
 * of its own. Any other verb gets only zeroes: it must refuse before it reads them.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "prm/prm.h"
#include "tests/programs/verbs_copies.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define BUF      8192
#define QKEY     0x11111111
#define ACCESS                                                                                     \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND)

static struct ibv_device **list;
static struct ibv_context *ctx, *second;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_mr *mr;
static struct ibv_qp *rc, *ud, *raw;
static struct ibv_wq *wq;
static struct ibv_rwq_ind_table *table;
static struct ibv_ah *ah;
static struct ibv_ah_attr path = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1}};
static uint8_t buf[BUF] __attribute__((aligned(4096)));

/* Convert the result of a call that returns a pointer, or an int that is 0, an errno, or -1. */
static int ptr(const void *made)
{
    return made ? 0 : errno;
}

static int num(long result)
{
    return result < 0 ? (result == -1 ? errno : (int)-result) : (int)result;
}

/* -- objects that calls need ------------------------------------------------------------------- */

static struct ibv_qp *new_qp(enum ibv_qp_type type, struct ibv_qp_init_attr_ex *ex)
{
    *ex = (struct ibv_qp_init_attr_ex){
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = type,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = pd,
        .send_ops_flags = IBV_QP_EX_WITH_SEND,
    };
    return ibv_create_qp_ex(ctx, ex);
}

static int to_rts(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = 1,
                               .qkey = QKEY,
                               .path_mtu = IBV_MTU_1024,
                               .dest_qp_num = qp->qp_num,
                               .max_dest_rd_atomic = 1,
                               .ah_attr = path,
                               .timeout = 10,
                               .max_rd_atomic = 1};
    bool connected = qp->qp_type == IBV_QPT_RC, packets = qp->qp_type == IBV_QPT_RAW_PACKET;
    int err = ibv_modify_qp(
        qp, &attr,
        IBV_QP_STATE | IBV_QP_PORT |
            (packets ? 0 : IBV_QP_PKEY_INDEX | (connected ? IBV_QP_ACCESS_FLAGS : IBV_QP_QKEY)));

    attr.qp_state = IBV_QPS_RTR;
    err = err ? err
              : ibv_modify_qp(qp, &attr,
                              IBV_QP_STATE |
                                  (connected ? IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                                   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                                   IBV_QP_MIN_RNR_TIMER
                                             : 0));
    attr.qp_state = IBV_QPS_RTS;
    return err ? err
               : ibv_modify_qp(qp, &attr,
                               IBV_QP_STATE | (packets ? 0 : IBV_QP_SQ_PSN) |
                                   (connected ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                                    IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC
                                              : 0));
}

static int post_recv(void)
{
    struct ibv_sge sge = {(uintptr_t)buf, 256, mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

    return ibv_post_recv(ud, &wr, &bad);
}

static int post_send(void)
{
    struct ibv_sge sge = {(uintptr_t)buf, 8, mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.ud = {ah, ud->qp_num, QKEY}},
                       *bad;

    return ibv_post_send(ud, &wr, &bad);
}

static bool setup(void)
{
    struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_wq_init_attr wq_attr = {.wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1};
    struct ibv_rwq_ind_table_init_attr table_attr = {.ind_tbl = &wq};
    struct ibv_qp_init_attr_ex ex;

    list = ibv_get_device_list(NULL);
    ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
    if (!ctx || ibv_query_gid(ctx, 1, path.grh.sgid_index, &path.grh.dgid)) {
        return false;
    }
    second = ibv_import_device(ctx->cmd_fd);
    pd = ibv_alloc_pd(ctx);
    channel = ibv_create_comp_channel(ctx);
    cq = ibv_create_cq(ctx, 64, NULL, channel, 0);
    srq = ibv_create_srq(pd, &srq_attr);
    mr = ibv_reg_mr(pd, buf, BUF, ACCESS);
    rc = new_qp(IBV_QPT_RC, &ex);
    ud = new_qp(IBV_QPT_UD, &ex);
    raw = new_qp(IBV_QPT_RAW_PACKET, &ex);
    wq_attr.pd = pd;
    wq_attr.cq = cq;
    wq = ibv_create_wq(ctx, &wq_attr);
    table = wq ? ibv_create_rwq_ind_table(ctx, &table_attr) : NULL;
    ah = ibv_create_ah(pd, &path);
    return second && srq && mr && rc && ud && raw && table && ah && !to_rts(rc) && !to_rts(ud) &&
           !to_rts(raw);
}

/* -- libibverbs.so.1 --------------------------------------------------------------------------- */

#define CALL(name, ...)                                                                            \
    static int call_##name(void)                                                                   \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static struct ibv_port_attr port;
static struct ibv_gid_entry gids[16];
static union ibv_gid group = {.raw = {0xff, 0x0e, [15] = 7}};
static __be16 pkey;

CALL(alloc_pd, struct ibv_pd *made = ibv_alloc_pd(ctx);
     return made ? num(ibv_dealloc_pd(made)) : errno;)
CALL(
    import_pd, struct ibv_pd *made = ibv_import_pd(second, pd->handle); int err = ptr(made);
    if (made) { ibv_unimport_pd(made); } return err;)
CALL(reg_mr, struct ibv_mr *made = ibv_reg_mr(pd, buf, BUF, ACCESS);
     return made ? num(ibv_dereg_mr(made)) : errno;)
CALL(reg_mr_iova, struct ibv_mr *made = ibv_reg_mr_iova(pd, buf, BUF, 4096, ACCESS);
     return made ? num(ibv_dereg_mr(made)) : errno;)
CALL(reg_mr_iova2, struct ibv_mr *made = ibv_reg_mr_iova2(pd, buf, BUF, 4096, ACCESS);
     return made ? num(ibv_dereg_mr(made)) : errno;)
CALL(reg_dmabuf_mr, return ptr(ibv_reg_dmabuf_mr(pd, 0, 4096, 0, 0, ACCESS));)
CALL(rereg_mr, return num(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ACCESS));)
CALL(
    import_mr, struct ibv_mr *made = ibv_import_mr(pd, mr->handle); int err = ptr(made);
    if (made) { ibv_unimport_mr(made); } return err;)
CALL(import_dm, return ptr(ibv_import_dm(ctx, 0));)
CALL(create_ah, struct ibv_ah *made = ibv_create_ah(pd, &path);
     return made ? num(ibv_destroy_ah(made)) : errno;)
CALL(create_cq, struct ibv_cq *made = ibv_create_cq(ctx, 8, NULL, NULL, 0);
     return made ? num(ibv_destroy_cq(made)) : errno;)
CALL(resize_cq, struct ibv_cq *made = ibv_create_cq(ctx, 8, NULL, NULL, 0);
     int err = num(ibv_resize_cq(made, 100)); ibv_destroy_cq(made); return err;)
CALL(create_comp_channel, struct ibv_comp_channel *made = ibv_create_comp_channel(ctx);
     return made ? num(ibv_destroy_comp_channel(made)) : errno;)
CALL(create_srq, struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
     struct ibv_srq *made = ibv_create_srq(pd, &attr);
     return made ? num(ibv_destroy_srq(made)) : errno;)
CALL(modify_srq, struct ibv_srq_attr attr = {.srq_limit = 0};
     return num(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));)
CALL(query_srq, struct ibv_srq_attr attr; return num(ibv_query_srq(srq, &attr));)
CALL(create_qp,
     struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};
     struct ibv_qp *made = ibv_create_qp(pd, &attr);
     return made ? num(ibv_destroy_qp(made)) : errno;)
CALL(modify_qp, struct ibv_qp_attr attr = {.min_rnr_timer = 3};
     return num(ibv_modify_qp(rc, &attr, IBV_QP_MIN_RNR_TIMER));)
CALL(query_qp, struct ibv_qp_attr attr; struct ibv_qp_init_attr init;
     return num(ibv_query_qp(rc, &attr, IBV_QP_STATE, &init));)
CALL(query_qp_data_in_order, return num(ibv_query_qp_data_in_order(rc, IBV_WR_RDMA_WRITE, 0));)
CALL(qp_to_qp_ex, return ptr(ibv_qp_to_qp_ex(rc));)
CALL(query_ece, struct ibv_ece ece; return num(ibv_query_ece(rc, &ece));)
CALL(set_ece, struct ibv_ece ece = {.vendor_id = 0x15b3}; return num(ibv_set_ece(rc, &ece));)
CALL(attach_mcast, int err = num(ibv_attach_mcast(ud, &group, 0));
     return err ? err : num(ibv_detach_mcast(ud, &group, 0));)
CALL(query_device, struct ibv_device_attr attr; return num(ibv_query_device(ctx, &attr));)
CALL(query_port, return num(ibv_query_port(ctx, 1, &port));)
CALL(query_gid, union ibv_gid gid; return num(ibv_query_gid(ctx, 1, 1, &gid));)
CALL(query_gid_ex, return num(ibv_query_gid_ex(ctx, 1, 1, gids, 0));)
CALL(query_gid_table, ssize_t got = ibv_query_gid_table(ctx, gids, COUNT(gids), 0);
     return got > 0 ? 0 : num(got);)
CALL(query_pkey, return num(ibv_query_pkey(ctx, 1, 0, &pkey));)
CALL(get_pkey_index, return num(ibv_get_pkey_index(ctx, 1, (__be16)0xffff));)
CALL(device, return list[0] && ibv_get_device_name(list[0])[0] && ibv_get_device_guid(list[0]) &&
                            ibv_get_device_index(list[0]) >= 0
                        ? 0
                        : ENODATA;)
CALL(get_device_list, struct ibv_device **made = ibv_get_device_list(NULL); int err = ptr(made);
     ibv_free_device_list(made); return err;)
CALL(open_device, struct ibv_context *made = ibv_open_device(list[0]);
     return made ? num(ibv_close_device(made)) : errno;)
CALL(import_device, struct ibv_context *made = ibv_import_device(ctx->cmd_fd);
     return made ? num(ibv_close_device(made)) : errno;)
CALL(resolve_mac, uint8_t mac[6]; uint16_t vid;
     return num(ibv_resolve_eth_l2_from_gid(ctx, &path, mac, &vid));)
CALL(strings, return ibv_node_type_str(IBV_NODE_CA) && ibv_port_state_str(IBV_PORT_ACTIVE) &&
                             ibv_event_type_str(IBV_EVENT_CQ_ERR) && ibv_wc_status_str(0)
                         ? 0
                         : ENODATA;)
CALL(rates, return ibv_rate_to_mult(IBV_RATE_5_GBPS) == 2 &&
                           mult_to_ibv_rate(2) == IBV_RATE_5_GBPS &&
                           ibv_rate_to_mbps(IBV_RATE_5_GBPS) == 5000 &&
                           mbps_to_ibv_rate(5000) == IBV_RATE_5_GBPS
                       ? 0
                       : ENODATA;)
CALL(fork, int err = num(ibv_fork_init());
     return err || ibv_is_fork_initialized() == IBV_FORK_UNNEEDED ? err : ENODATA;)

int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);
const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *to, size_t size);
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned index,
                       unsigned *type);
CALL(dontfork_range, int err = num(ibv_dontfork_range(buf, BUF));
     return err ? err : num(ibv_dofork_range(buf, BUF));)
CALL(get_sysfs_path, return ptr(ibv_get_sysfs_path());)
CALL(read_sysfs_file, char text[64];
     return ibv_read_sysfs_file("/proc/self", "comm", text, sizeof(text)) > 0 ? 0 : errno;)
CALL(query_gid_type, unsigned type; return num(ibv_query_gid_type(ctx, 1, 1, &type));)

/* Sends datagrams to itself: a completion by polling, and one by event. */
static int complete(bool by_event)
{
    struct ibv_cq *of;
    struct ibv_wc wc;
    void *cookie;
    int err = by_event ? num(ibv_req_notify_cq(cq, 0)) : 0;

    err = err ? err : num(post_recv());
    err = err ? err : num(post_send());
    if (!err && by_event) {
        err = num(ibv_get_cq_event(channel, &of, &cookie));
        ibv_ack_cq_events(cq, 1);
    }
    for (int left = 2; !err && left;) {
        int got = ibv_poll_cq(cq, 1, &wc);

        err = got < 0 ? EIO : got && wc.status ? EIO : 0;
        left -= got > 0;
    }
    return err;
}

CALL(poll_cq, return complete(false);)
CALL(get_cq_event, return complete(true);)

static int answer(bool make)
{
    struct ibv_ah_attr attr;
    struct ibv_ah *made;
    struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
    int err = complete(false);

    if (err || !make) {
        return err ? err : num(ibv_init_ah_from_wc(ctx, 1, &wc, (struct ibv_grh *)buf, &attr));
    }
    made = ibv_create_ah_from_wc(pd, &wc, (struct ibv_grh *)buf, 1);
    return made ? num(ibv_destroy_ah(made)) : errno;
}

CALL(init_ah_from_wc, return answer(false);)
CALL(create_ah_from_wc, return answer(true);)

/* Checks the event of a CQ that has no room; after its acknowledgement the CQ can be destroyed. */
static int async_event(void)
{
    struct ibv_async_event event;
    struct ibv_qp_init_attr init = {
        .cap = {.max_send_wr = 64, .max_send_sge = 1}, .qp_type = IBV_QPT_UD, .sq_sig_all = 1};
    struct ibv_cq *own = cq, *tiny = ibv_create_cq(ctx, 1, NULL, NULL, 0);
    struct ibv_qp *all = ud;
    int err;

    init.send_cq = init.recv_cq = tiny;
    cq = tiny;
    ud = ibv_create_qp(pd, &init);
    err = ud ? num(to_rts(ud)) : errno;
    for (int i = 0; !err && i < 32; i++) {
        err = num(post_send());
    }
    err = err ? err : num(ibv_get_async_event(ctx, &event));
    if (!err) {
        ibv_ack_async_event(&event);
    }
    if (ud) {
        ibv_destroy_qp(ud);
    }
    ibv_destroy_cq(tiny);
    ud = all;
    cq = own;
    return err;
}

CALL(get_async_event, return async_event();)

/* -- through the context ----------------------------------------------------------------------- */

CALL(alloc_mw, struct ibv_mw *made = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
     return made ? num(ibv_dealloc_mw(made)) : errno;)
CALL(bind_mw, struct ibv_mw *made = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
     struct ibv_mw_bind bind = {.bind_info = {mr, (uintptr_t)buf, 8, IBV_ACCESS_REMOTE_READ}};
     int err = num(ibv_bind_mw(rc, made, &bind)); ibv_dealloc_mw(made); return err;)
CALL(req_notify_cq, return num(ibv_req_notify_cq(cq, 1));)
CALL(post_srq_recv, struct ibv_recv_wr wr = {0}; struct ibv_recv_wr * bad;
     return num(ibv_post_srq_recv(srq, &wr, &bad));)
CALL(advise_mr, struct ibv_sge sge = {(uintptr_t)buf, 64, mr->lkey};
     return num(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1));)
CALL(alloc_null_mr, struct ibv_mr *made = ibv_alloc_null_mr(pd);
     return made ? num(ibv_dereg_mr(made)) : errno;)
CALL(read_counters, struct ibv_counters c = {ctx}; uint64_t value;
     return num(ibv_read_counters(&c, &value, 1, 0));)
CALL(attach_counters, struct ibv_counters c = {ctx}; struct ibv_counter_attach_attr attr = {0};
     return num(ibv_attach_counters_point_flow(&c, &attr, NULL));)
CALL(create_counters, struct ibv_counters_init_attr attr = {0};
     return ptr(ibv_create_counters(ctx, &attr));)
CALL(destroy_counters, struct ibv_counters c = {ctx}; return num(ibv_destroy_counters(&c));)
CALL(alloc_dm, struct ibv_alloc_dm_attr attr = {.length = 64};
     return ptr(ibv_alloc_dm(ctx, &attr));)
CALL(free_dm, struct ibv_dm dm = {.context = ctx}; return num(ibv_free_dm(&dm));)
CALL(reg_dm_mr, struct ibv_dm dm = {.context = ctx};
     return ptr(ibv_reg_dm_mr(pd, &dm, 0, 64, IBV_ACCESS_ZERO_BASED));)
CALL(modify_action, struct ibv_flow_action action = {ctx};
     struct ibv_flow_action_esp_attr attr = {0};
     return num(ibv_modify_flow_action_esp(&action, &attr));)
CALL(destroy_action, struct ibv_flow_action action = {ctx};
     return num(ibv_destroy_flow_action(&action));)
CALL(create_action, struct ibv_flow_action_esp_attr attr = {0};
     return ptr(ibv_create_flow_action_esp(ctx, &attr));)
CALL(modify_qp_rate_limit, struct ibv_qp_rate_limit_attr attr = {.rate_limit = 1000};
     return num(ibv_modify_qp_rate_limit(raw, &attr));)
CALL(alloc_td, struct ibv_td_init_attr attr = {0}; struct ibv_td *made = ibv_alloc_td(ctx, &attr);
     return made ? num(ibv_dealloc_td(made)) : errno;)
CALL(alloc_parent_domain, struct ibv_parent_domain_init_attr attr = {.pd = pd};
     struct ibv_pd *made = ibv_alloc_parent_domain(ctx, &attr);
     return made ? num(ibv_dealloc_pd(made)) : errno;)
CALL(modify_cq, struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE};
     return num(ibv_modify_cq(cq, &attr));)

/* Reports the count of unexpected messages to an SRQ that has tags. */
static int call_post_srq_ops(void)
{
    struct ibv_cq_init_attr_ex cq_attr = {.cqe = 15, .wc_flags = IBV_WC_EX_WITH_TM_INFO};
    struct ibv_cq_ex *ex = ibv_create_cq_ex(ctx, &cq_attr);
    struct ibv_srq_init_attr_ex attr = {.attr = {.max_wr = 7, .max_sge = 1},
                                        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                                     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
                                        .srq_type = IBV_SRQT_TM,
                                        .pd = pd,
                                        .cq = ibv_cq_ex_to_cq(ex),
                                        .tm_cap = {.max_num_tags = 7, .max_ops = 4}};
    struct ibv_srq *tm = ibv_create_srq_ex(ctx, &attr);
    struct ibv_ops_wr *bad, wr = {.opcode = IBV_WR_TAG_SYNC, .flags = IBV_OPS_TM_SYNC};
    int err = tm ? num(ibv_post_srq_ops(tm, &wr, &bad)) : errno;

    if (tm) {
        ibv_destroy_srq(tm);
    }
    ibv_destroy_cq(ibv_cq_ex_to_cq(ex));
    return err;
}

CALL(create_table, struct ibv_rwq_ind_table_init_attr attr = {.ind_tbl = &wq};
     struct ibv_rwq_ind_table *made = ibv_create_rwq_ind_table(ctx, &attr);
     return made ? num(ibv_destroy_rwq_ind_table(made)) : errno;)
CALL(create_wq, struct ibv_wq_init_attr attr = {.wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1};
     struct ibv_wq * made; attr.pd = pd; attr.cq = cq; made = ibv_create_wq(ctx, &attr);
     return made ? num(ibv_destroy_wq(made)) : errno;)
CALL(modify_wq, struct ibv_wq_attr attr = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY};
     return num(ibv_modify_wq(wq, &attr));)
CALL(query_rt_values, struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
     return num(ibv_query_rt_values_ex(ctx, &values));)
CALL(create_cq_ex, struct ibv_cq_init_attr_ex attr = {.cqe = 4};
     struct ibv_cq_ex *made = ibv_create_cq_ex(ctx, &attr);
     return made ? num(ibv_destroy_cq(ibv_cq_ex_to_cq(made))) : errno;)
CALL(query_device_ex, struct ibv_device_attr_ex attr;
     return num(ibv_query_device_ex(ctx, NULL, &attr));)
CALL(create_qp_ex, struct ibv_qp_init_attr_ex ex; struct ibv_qp *made = new_qp(IBV_QPT_RC, &ex);
     return made ? num(ibv_destroy_qp(made)) : errno;)

static int flow(void)
{
    struct {
        struct ibv_flow_attr attr;
        struct ibv_flow_spec_eth eth;
    } rule = {
        .attr = {.type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(rule), .num_of_specs = 1, .port = 1},
        .eth = {.type = IBV_FLOW_SPEC_ETH,
                .size = sizeof(rule.eth),
                .val.dst_mac = {2, 0, 0, 0, 0, 9},
                .mask.dst_mac = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}};
    struct ibv_flow *made = ibv_create_flow(raw, &rule.attr);

    return made ? num(ibv_destroy_flow(made)) : errno;
}

CALL(create_flow, return flow();)

/* Makes a domain, an SRQ in it, and a target QP, and opens the target again. */
static int xrc(void)
{
    struct ibv_xrcd_init_attr domain = {.comp_mask =
                                            IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                                        .fd = -1,
                                        .oflags = O_CREAT};
    struct ibv_xrcd *xrcd = ibv_open_xrcd(ctx, &domain);
    struct ibv_srq_init_attr_ex attr = {.attr = {.max_wr = 4, .max_sge = 1},
                                        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                                     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
                                        .srq_type = IBV_SRQT_XRC,
                                        .pd = pd,
                                        .xrcd = xrcd,
                                        .cq = cq};
    struct ibv_qp_init_attr_ex target = {
        .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};
    struct ibv_qp_open_attr again = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
                                                  IBV_QP_OPEN_ATTR_TYPE,
                                     .xrcd = xrcd,
                                     .qp_type = IBV_QPT_XRC_RECV};
    struct ibv_srq *made = xrcd ? ibv_create_srq_ex(ctx, &attr) : NULL;
    struct ibv_qp *qp = made ? ibv_create_qp_ex(ctx, &target) : NULL, *opened;
    uint32_t number;
    int err = qp ? num(ibv_get_srq_num(made, &number)) : errno;

    if (err) {
        return err;
    }
    again.qp_num = qp->qp_num;
    opened = ibv_open_qp(ctx, &again);
    err = opened ? num(ibv_destroy_qp(opened)) : errno;
    err = err ? err : num(ibv_destroy_qp(qp));
    err = err ? err : num(ibv_destroy_srq(made));
    return err ? err : num(ibv_close_xrcd(xrcd));
}

CALL(xrc, return xrc();)

/* -- libmlx5.so.1 ------------------------------------------------------------------------------ */

/* Sets a command's opcode and its object's number, which are at the same place in all commands. */
#define COMMAND(in_type, op)                                                                       \
    struct prm_##in_type in[1] = {0};                                                              \
    uint8_t out[8192] = {0};                                                                       \
    PRM_SET(in_type, in, opcode, PRM_CMD_OP_##op)

static uint32_t cqn_of(struct ibv_cq *of)
{
    struct mlx5dv_cq dv = {0};
    struct mlx5dv_obj obj = {.cq = {of, &dv}};

    mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ);
    return dv.cqn;
}

static uint32_t srqn_of(struct ibv_srq *of)
{
    struct mlx5dv_srq dv = {.comp_mask = MLX5DV_SRQ_MASK_SRQN};
    struct mlx5dv_obj obj = {.srq = {of, &dv}};

    mlx5dv_init_obj(&obj, MLX5DV_OBJ_SRQ);
    return dv.srqn;
}

CALL(init_obj, return cqn_of(cq) ? 0 : ENODATA;)
CALL(dv_query_device, struct mlx5dv_context attr = {0};
     return num(mlx5dv_query_device(ctx, &attr));)
CALL(dv_query_port, struct mlx5dv_port attr = {0}; return num(mlx5dv_query_port(ctx, 1, &attr));)
CALL(is_supported, return mlx5dv_is_supported(list[0]) ? 0 : ENODATA;)
CALL(dv_open_device, struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
     struct ibv_context *made = mlx5dv_open_device(list[0], &attr);
     return made ? num(ibv_close_device(made)) : errno;)
CALL(set_context_attr, struct mlx5dv_ctx_allocators none = {0};
     return num(mlx5dv_set_context_attr(ctx, MLX5DV_CTX_ATTR_BUF_ALLOCATORS, &none));)
CALL(get_clock_info, struct mlx5dv_clock_info info; return num(mlx5dv_get_clock_info(ctx, &info));)
CALL(dv_create_cq, struct ibv_cq_init_attr_ex attr = {.cqe = 4};
     struct mlx5dv_cq_init_attr dv = {0};
     struct ibv_cq_ex *made = mlx5dv_create_cq(ctx, &attr, &dv);
     return made ? num(ibv_destroy_cq(ibv_cq_ex_to_cq(made))) : errno;)
CALL(dv_create_wq,
     struct ibv_wq_init_attr attr = {.wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1};
     struct ibv_wq * made; attr.pd = pd; attr.cq = cq; made = mlx5dv_create_wq(ctx, &attr, NULL);
     return made ? num(ibv_destroy_wq(made)) : errno;)

/* Calls a function on a QP that direct verbs made. */
static int with_qp(int (*ask)(struct mlx5dv_qp_ex *))
{
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = pd,
        .send_ops_flags = IBV_QP_EX_WITH_SEND};
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
                                     .send_ops_flags = MLX5DV_QP_EX_WITH_RAW_WQE};
    struct ibv_qp *made = mlx5dv_create_qp(ctx, &attr, &dv);
    struct mlx5dv_qp_ex *ex;
    int err;

    if (!made) {
        return errno;
    }
    ex = mlx5dv_qp_ex_from_ibv_qp_ex(ibv_qp_to_qp_ex(made));
    err = ex ? ask(ex) : errno;
    ibv_destroy_qp(made);
    return err;
}

static int nothing(struct mlx5dv_qp_ex *ex)
{
    (void)ex;
    return 0;
}

static int cancel(struct mlx5dv_qp_ex *ex)
{
    int left = mlx5dv_qp_cancel_posted_send_wrs(ex, 1);

    return left < 0 ? -left : left;
}

CALL(dv_create_qp, return with_qp(nothing);)
CALL(cancel_sends, return with_qp(cancel);)

/* Resets a DCI's stream. Nothing has failed on the DCI: EINVAL shows that it knows the call. */
static int call_stream_reset(void)
{
    struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_DRIVER,
                                       .send_cq = cq,
                                       .recv_cq = cq,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD,
                                       .pd = pd};
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
                                     .dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCI}};
    struct ibv_qp *dci = mlx5dv_create_qp(ctx, &attr, &dv);
    int err = dci ? 0 : errno;

    if (dci) {
        dci->state = IBV_QPS_RTS; /* libmlx5 checks this field */
        err = mlx5dv_dci_stream_id_reset(dci, 1);
        dci->state = IBV_QPS_RESET;
        ibv_destroy_qp(dci);
    }
    return err == EINVAL ? 0 : err;
}

CALL(reserve, uint32_t qpn; int err = num(mlx5dv_reserved_qpn_alloc(ctx, &qpn));
     return err ? err : num(mlx5dv_reserved_qpn_dealloc(ctx, qpn));)
CALL(map_ah, return num(mlx5dv_map_ah_to_qp(ah, rc->qp_num));)
CALL(modify_udp_sport, return num(mlx5dv_modify_qp_udp_sport(rc, 0xc123));)
CALL(dv_alloc_dm, struct ibv_alloc_dm_attr attr = {0};
     struct mlx5dv_alloc_dm_attr dv = {.type = MLX5DV_DM_TYPE_MEMIC};
     return ptr(mlx5dv_alloc_dm(ctx, &attr, &dv));)

static int mkey(bool check)
{
    struct mlx5dv_mkey_init_attr attr = {
        .pd = pd, .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT, .max_entries = 4};
    struct mlx5dv_mkey *made = mlx5dv_create_mkey(&attr);
    struct mlx5dv_mkey_err info;
    int err = made && check ? num(mlx5dv_mkey_check(made, &info)) : 0;

    return !made ? errno : mlx5dv_destroy_mkey(made) ? errno : err;
}

CALL(create_mkey, return mkey(false);)
CALL(mkey_check, return mkey(true);)

static int matcher(bool with_flow)
{
    union {
        struct mlx5dv_flow_match_parameters match;
        uint8_t room[sizeof(struct mlx5dv_flow_match_parameters) + 64];
    } all = {.match = {.match_sz = 64}};
    struct mlx5dv_flow_matcher_attr attr = {.type = IBV_FLOW_ATTR_NORMAL, .match_mask = &all.match};
    struct mlx5dv_flow_matcher *made = mlx5dv_create_flow_matcher(ctx, &attr);
    struct mlx5dv_flow_action_attr to_qp = {.type = MLX5DV_FLOW_ACTION_DEST_IBV_QP, .qp = raw};
    struct ibv_flow *rule =
        made && with_flow ? mlx5dv_create_flow(made, &all.match, 1, &to_qp) : NULL;
    int err = with_flow ? (rule ? num(ibv_destroy_flow(rule)) : errno) : 0;

    return !made ? errno : mlx5dv_destroy_flow_matcher(made) ? errno : err;
}

CALL(create_matcher, return matcher(false);)
CALL(dv_create_flow, return matcher(true);)

CALL(general_cmd, COMMAND(query_hca_cap_in, QUERY_HCA_CAP);
     return num(mlx5dv_devx_general_cmd(ctx, in, sizeof(in), out, PRM_SIZE(query_hca_cap_out)));)
CALL(umem_reg, struct mlx5dv_devx_umem *made = mlx5dv_devx_umem_reg(ctx, buf, 4096, 1);
     return made ? num(mlx5dv_devx_umem_dereg(made)) : errno;)
CALL(umem_reg_ex, struct mlx5dv_devx_umem_in attr = {.addr = buf,
                                                     .size = 4096,
                                                     .access = 1,
                                                     .pgsz_bitmap = 4096};
     struct mlx5dv_devx_umem *made = mlx5dv_devx_umem_reg_ex(ctx, &attr);
     return made ? num(mlx5dv_devx_umem_dereg(made)) : errno;)
CALL(
    alloc_uar, struct mlx5dv_devx_uar *made = mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
    int err = ptr(made); if (made) { mlx5dv_devx_free_uar(made); } return err;)
CALL(query_eqn, uint32_t eqn; return num(mlx5dv_devx_query_eqn(ctx, 0, &eqn));)
CALL(cq_query, COMMAND(query_cq_in, QUERY_CQ); PRM_SET(query_cq_in, in, cqn, cqn_of(cq));
     return num(mlx5dv_devx_cq_query(cq, in, sizeof(in), out, PRM_SIZE(query_cq_out)));)
CALL(cq_modify, COMMAND(modify_cq_in, MODIFY_CQ); PRM_SET(modify_cq_in, in, cqn, cqn_of(cq));
     PRM_SET(modify_cq_in, in, modify_field_select_resize_field_select, PRM_CQ_MODIFY_CQ_PERIOD);
     return num(mlx5dv_devx_cq_modify(cq, in, sizeof(in), out, 16));)
CALL(qp_query, COMMAND(query_qp_in, QUERY_QP); PRM_SET(query_qp_in, in, qpn, rc->qp_num);
     return num(mlx5dv_devx_qp_query(rc, in, sizeof(in), out, PRM_SIZE(query_qp_out)));)
CALL(qp_modify, COMMAND(rts2rts_qp_in, RTS2RTS_QP); PRM_SET(rts2rts_qp_in, in, qpn, rc->qp_num);
     return num(mlx5dv_devx_qp_modify(rc, in, sizeof(in), out, PRM_SIZE(rts2rts_qp_out)));)
CALL(srq_query, COMMAND(query_rmp_in, QUERY_RMP); PRM_SET(query_rmp_in, in, rmpn, srqn_of(srq));
     return num(mlx5dv_devx_srq_query(srq, in, sizeof(in), out, PRM_SIZE(query_rmp_out)));)
CALL(srq_modify, COMMAND(modify_rmp_in, MODIFY_RMP); PRM_SET(modify_rmp_in, in, rmpn, srqn_of(srq));
     PRM_SET(modify_rmp_in, in, rmp_state, PRM_RMPC_STATE_RDY);
     PRM_SET(rmpc, PRM_PTR(modify_rmp_in, in, ctx), state, PRM_RMPC_STATE_RDY);
     PRM_SET(rmp_bitmask, PRM_PTR(modify_rmp_in, in, bitmask), lwm, 1);
     return num(mlx5dv_devx_srq_modify(srq, in, sizeof(in), out, 16));)
CALL(wq_query, COMMAND(query_rq_in, QUERY_RQ); PRM_SET(query_rq_in, in, rqn, wq->wq_num);
     return num(mlx5dv_devx_wq_query(wq, in, sizeof(in), out, PRM_SIZE(query_rq_out)));)
CALL(wq_modify, COMMAND(modify_rq_in, MODIFY_RQ); PRM_SET(modify_rq_in, in, rqn, wq->wq_num);
     PRM_SET(modify_rq_in, in, rq_state, wq->state == IBV_WQS_RDY);
     PRM_SET(rqc, PRM_PTR(modify_rq_in, in, ctx), state, wq->state == IBV_WQS_RDY);
     return num(mlx5dv_devx_wq_modify(wq, in, sizeof(in), out, 16));)
CALL(table_query, COMMAND(query_rqt_in, QUERY_RQT);
     PRM_SET(query_rqt_in, in, rqtn, (uint32_t)table->ind_tbl_num);
     return num(mlx5dv_devx_ind_tbl_query(table, in, sizeof(in), out,
                                          PRM_SIZE(query_rqt_out) + PRM_SIZE(rq_num)));)

CALL(
    table_modify,
    struct {
        struct prm_modify_rqt_in in[1];
        struct prm_rq_num rqn[1];
    } cmd = {0};
    uint8_t out[16] = {0}; struct prm_rqtc *rqtc = PRM_PTR(modify_rqt_in, cmd.in, ctx);
    PRM_SET(modify_rqt_in, cmd.in, opcode, PRM_CMD_OP_MODIFY_RQT);
    PRM_SET(modify_rqt_in, cmd.in, rqtn, (uint32_t)table->ind_tbl_num);
    PRM_SET(rqt_bitmask, PRM_PTR(modify_rqt_in, cmd.in, bitmask), rqn_list, 1);
    PRM_SET(rqtc, rqtc, rqt_actual_size, 1); PRM_SET(rq_num, cmd.rqn, rq_num, wq->wq_num);
    return num(mlx5dv_devx_ind_tbl_modify(table, &cmd, sizeof(cmd), out, sizeof(out)));)

/* Calls a function on an object that a command makes. */
struct devx {
    struct mlx5dv_devx_obj *domain, *tis;
    struct prm_create_tis_out made[1];
};

static int with_object(int (*ask)(struct devx *))
{
    struct prm_alloc_transport_domain_in domain_in[1] = {0};
    struct prm_alloc_transport_domain_out domain_out[1] = {0};
    struct prm_create_tis_in in[1] = {0};
    struct devx devx = {0};
    int err;

    PRM_SET(alloc_transport_domain_in, domain_in, opcode, PRM_CMD_OP_ALLOC_TRANSPORT_DOMAIN);
    devx.domain =
        mlx5dv_devx_obj_create(ctx, domain_in, sizeof(domain_in), domain_out, sizeof(domain_out));
    PRM_SET(create_tis_in, in, opcode, PRM_CMD_OP_CREATE_TIS);
    PRM_SET(tisc, PRM_PTR(create_tis_in, in, ctx), transport_domain,
            PRM_GET(alloc_transport_domain_out, domain_out, transport_domain));
    devx.tis = mlx5dv_devx_obj_create(ctx, in, sizeof(in), devx.made, sizeof(devx.made));
    if (!devx.tis) {
        return errno;
    }
    err = ask(&devx);
    if (mlx5dv_devx_obj_destroy(devx.tis) || mlx5dv_devx_obj_destroy(devx.domain)) {
        return errno;
    }
    return err;
}

static int ask_nothing(struct devx *devx)
{
    return devx->domain ? 0 : ENODATA;
}

#define TISN(devx) PRM_GET(create_tis_out, (devx)->made, tisn)

static int ask_query(struct devx *devx)
{
    COMMAND(query_tis_in, QUERY_TIS);

    PRM_SET(query_tis_in, in, tisn, TISN(devx));
    return num(mlx5dv_devx_obj_query(devx->tis, in, sizeof(in), out, PRM_SIZE(query_tis_out)));
}

static int ask_modify(struct devx *devx)
{
    COMMAND(modify_tis_in, MODIFY_TIS);

    PRM_SET(modify_tis_in, in, tisn, TISN(devx));
    return num(mlx5dv_devx_obj_modify(devx->tis, in, sizeof(in), out, 16));
}

static int ask_async(struct devx *devx)
{
    struct mlx5dv_devx_cmd_comp *comp = mlx5dv_devx_create_cmd_comp(ctx);
    COMMAND(query_tis_in, QUERY_TIS);
    int err = ptr(comp);

    PRM_SET(query_tis_in, in, tisn, TISN(devx));
    if (!err) {
        err = num(mlx5dv_devx_obj_query_async(devx->tis, in, sizeof(in), PRM_SIZE(query_tis_out), 5,
                                              comp));
        err = err ? err
                  : num(mlx5dv_devx_get_async_cmd_comp(
                        comp, (struct mlx5dv_devx_async_cmd_hdr *)out, sizeof(out)));
        mlx5dv_devx_destroy_cmd_comp(comp);
    }
    return err;
}

CALL(obj_create, return with_object(ask_nothing);)
CALL(obj_query, return with_object(ask_query);)
CALL(obj_modify, return with_object(ask_modify);)
CALL(obj_async, return with_object(ask_async);)

/* Subscribes to the port's changes. Nothing changes, so the channel has no event. */
static int subscribe(bool by_fd)
{
    struct mlx5dv_devx_event_channel *made = mlx5dv_devx_create_event_channel(ctx, 0);
    uint16_t type = PRM_EVENT_TYPE_PORT_CHANGE;
    uint8_t event[64];
    int err = ptr(made), fd = by_fd ? eventfd(0, 0) : -1;

    if (err) {
        return err;
    }
    err = num(by_fd ? mlx5dv_devx_subscribe_devx_event_fd(made, fd, NULL, type)
                    : mlx5dv_devx_subscribe_devx_event(made, NULL, sizeof(type), &type, 1));
    if (!err && !by_fd) {
        fcntl(made->fd, F_SETFL, O_NONBLOCK);
        errno = 0;
        err = mlx5dv_devx_get_event(made, (struct mlx5dv_devx_async_event_hdr *)event,
                                    sizeof(event)) < 0 &&
                      errno == EAGAIN
                  ? 0
                  : ENODATA;
    }
    mlx5dv_devx_destroy_event_channel(made);
    if (by_fd) {
        close(fd);
    }
    return err;
}

CALL(subscribe, return subscribe(false);)
CALL(subscribe_fd, return subscribe(true);)
CALL(vfio_fd, return num(mlx5dv_vfio_get_events_fd(ctx));)

/* -- names ------------------------------------------------------------------------------------- */

static const struct {
    const char *names; /* the functions that the call calls, between spaces */
    int (*call)(void);
} calls[] = {
    {" ibv_alloc_pd ibv_dealloc_pd ", call_alloc_pd},
    {" ibv_import_pd ibv_unimport_pd ", call_import_pd},
    {" ibv_reg_mr ibv_dereg_mr ", call_reg_mr},
    {" ibv_reg_mr_iova ", call_reg_mr_iova},
    {" ibv_reg_mr_iova2 ", call_reg_mr_iova2},
    {" ibv_reg_dmabuf_mr ", call_reg_dmabuf_mr},
    {" ibv_rereg_mr ", call_rereg_mr},
    {" ibv_import_mr ibv_unimport_mr ", call_import_mr},
    {" ibv_import_dm ", call_import_dm},
    {" ibv_create_ah ibv_destroy_ah ", call_create_ah},
    {" ibv_create_cq ibv_destroy_cq ", call_create_cq},
    {" ibv_resize_cq ", call_resize_cq},
    {" ibv_create_comp_channel ibv_destroy_comp_channel ", call_create_comp_channel},
    {" ibv_create_srq ibv_destroy_srq ", call_create_srq},
    {" ibv_modify_srq ", call_modify_srq},
    {" ibv_query_srq ", call_query_srq},
    {" ibv_create_qp ibv_destroy_qp ", call_create_qp},
    {" ibv_modify_qp ", call_modify_qp},
    {" ibv_query_qp ", call_query_qp},
    {" ibv_query_qp_data_in_order ", call_query_qp_data_in_order},
    {" ibv_qp_to_qp_ex ", call_qp_to_qp_ex},
    {" ibv_query_ece ", call_query_ece},
    {" ibv_set_ece ", call_set_ece},
    {" ibv_attach_mcast ibv_detach_mcast ", call_attach_mcast},
    {" ibv_query_device ", call_query_device},
    {" ibv_query_port query_port ", call_query_port},
    {" ibv_query_gid ", call_query_gid},
    {" _ibv_query_gid_ex ", call_query_gid_ex},
    {" _ibv_query_gid_table ", call_query_gid_table},
    {" ibv_query_pkey ", call_query_pkey},
    {" ibv_get_pkey_index ", call_get_pkey_index},
    {" ibv_get_device_name ibv_get_device_guid ibv_get_device_index ", call_device},
    {" ibv_get_device_list ibv_free_device_list ", call_get_device_list},
    {" ibv_open_device ibv_close_device ", call_open_device},
    {" ibv_import_device ", call_import_device},
    {" ibv_resolve_eth_l2_from_gid ", call_resolve_mac},
    {" ibv_node_type_str ibv_port_state_str ibv_event_type_str ibv_wc_status_str ", call_strings},
    {" ibv_rate_to_mult mult_to_ibv_rate ibv_rate_to_mbps mbps_to_ibv_rate ", call_rates},
    {" ibv_fork_init ibv_is_fork_initialized ", call_fork},
    {" ibv_dontfork_range ibv_dofork_range ", call_dontfork_range},
    {" ibv_get_sysfs_path ", call_get_sysfs_path},
    {" ibv_read_sysfs_file ", call_read_sysfs_file},
    {" ibv_query_gid_type ", call_query_gid_type},
    {" poll_cq post_send post_recv ", call_poll_cq},
    {" ibv_get_cq_event ibv_ack_cq_events ", call_get_cq_event},
    {" ibv_init_ah_from_wc ", call_init_ah_from_wc},
    {" ibv_create_ah_from_wc ", call_create_ah_from_wc},
    {" ibv_get_async_event ibv_ack_async_event ", call_get_async_event},
    {" alloc_mw dealloc_mw ", call_alloc_mw},
    {" bind_mw ", call_bind_mw},
    {" req_notify_cq ", call_req_notify_cq},
    {" post_srq_recv ", call_post_srq_recv},
    {" advise_mr ", call_advise_mr},
    {" alloc_null_mr ", call_alloc_null_mr},
    {" read_counters ", call_read_counters},
    {" attach_counters_point_flow ", call_attach_counters},
    {" create_counters ", call_create_counters},
    {" destroy_counters ", call_destroy_counters},
    {" alloc_dm ", call_alloc_dm},
    {" free_dm ", call_free_dm},
    {" reg_dm_mr ", call_reg_dm_mr},
    {" modify_flow_action_esp ", call_modify_action},
    {" destroy_flow_action ", call_destroy_action},
    {" create_flow_action_esp ", call_create_action},
    {" modify_qp_rate_limit ", call_modify_qp_rate_limit},
    {" alloc_td dealloc_td ", call_alloc_td},
    {" alloc_parent_domain ", call_alloc_parent_domain},
    {" modify_cq ", call_modify_cq},
    {" post_srq_ops ", call_post_srq_ops},
    {" create_rwq_ind_table destroy_rwq_ind_table ", call_create_table},
    {" create_wq destroy_wq ", call_create_wq},
    {" modify_wq ", call_modify_wq},
    {" query_rt_values ", call_query_rt_values},
    {" create_cq_ex ", call_create_cq_ex},
    {" query_device_ex ", call_query_device_ex},
    {" create_qp_ex ", call_create_qp_ex},
    {" ibv_create_flow ibv_destroy_flow ", call_create_flow},
    {" open_xrcd close_xrcd create_srq_ex get_srq_num open_qp ", call_xrc},
    {" mlx5dv_init_obj ", call_init_obj},
    {" mlx5dv_query_device ", call_dv_query_device},
    {" _mlx5dv_query_port ", call_dv_query_port},
    {" mlx5dv_is_supported ", call_is_supported},
    {" mlx5dv_open_device ", call_dv_open_device},
    {" mlx5dv_set_context_attr ", call_set_context_attr},
    {" mlx5dv_get_clock_info ", call_get_clock_info},
    {" mlx5dv_create_cq ", call_dv_create_cq},
    {" mlx5dv_create_wq ", call_dv_create_wq},
    {" mlx5dv_create_qp mlx5dv_qp_ex_from_ibv_qp_ex ", call_dv_create_qp},
    {" mlx5dv_qp_cancel_posted_send_wrs ", call_cancel_sends},
    {" mlx5dv_map_ah_to_qp ", call_map_ah},
    {" mlx5dv_modify_qp_udp_sport ", call_modify_udp_sport},
    {" mlx5dv_dci_stream_id_reset ", call_stream_reset},
    {" mlx5dv_reserved_qpn_alloc mlx5dv_reserved_qpn_dealloc ", call_reserve},
    {" mlx5dv_alloc_dm ", call_dv_alloc_dm},
    {" mlx5dv_create_mkey mlx5dv_destroy_mkey ", call_create_mkey},
    {" _mlx5dv_mkey_check ", call_mkey_check},
    {" mlx5dv_create_flow_matcher mlx5dv_destroy_flow_matcher ", call_create_matcher},
    {" mlx5dv_create_flow ", call_dv_create_flow},
    {" mlx5dv_devx_general_cmd ", call_general_cmd},
    {" mlx5dv_devx_umem_reg mlx5dv_devx_umem_dereg ", call_umem_reg},
    {" mlx5dv_devx_umem_reg_ex ", call_umem_reg_ex},
    {" mlx5dv_devx_alloc_uar mlx5dv_devx_free_uar ", call_alloc_uar},
    {" mlx5dv_devx_query_eqn ", call_query_eqn},
    {" mlx5dv_devx_cq_query ", call_cq_query},
    {" mlx5dv_devx_cq_modify ", call_cq_modify},
    {" mlx5dv_devx_qp_query ", call_qp_query},
    {" mlx5dv_devx_qp_modify ", call_qp_modify},
    {" mlx5dv_devx_srq_query ", call_srq_query},
    {" mlx5dv_devx_srq_modify ", call_srq_modify},
    {" mlx5dv_devx_wq_query ", call_wq_query},
    {" mlx5dv_devx_wq_modify ", call_wq_modify},
    {" mlx5dv_devx_ind_tbl_query ", call_table_query},
    {" mlx5dv_devx_ind_tbl_modify ", call_table_modify},
    {" mlx5dv_devx_obj_create mlx5dv_devx_obj_destroy ", call_obj_create},
    {" mlx5dv_devx_obj_query ", call_obj_query},
    {" mlx5dv_devx_obj_modify ", call_obj_modify},
    {" mlx5dv_devx_obj_query_async mlx5dv_devx_create_cmd_comp mlx5dv_devx_destroy_cmd_comp "
     "mlx5dv_devx_get_async_cmd_comp ",
     call_obj_async},
    {" mlx5dv_devx_create_event_channel mlx5dv_devx_destroy_event_channel "
     "mlx5dv_devx_subscribe_devx_event mlx5dv_devx_get_event ",
     call_subscribe},
    {" mlx5dv_devx_subscribe_devx_event_fd ", call_subscribe_fd},
    {" ibv_copy_ah_attr_from_kern ", copies_ah},
    {" ibv_copy_qp_attr_from_kern ", copies_qp},
    {" ibv_copy_path_rec_from_kern ibv_copy_path_rec_to_kern ", copies_path},
    {" mlx5dv_vfio_get_events_fd ", call_vfio_fd},
};

/* Functions that return nothing and do nothing here: for objects that nobody can have, or for
 * drivers of rdma-core. */
static const char silent[] =
    " ibv_unimport_dm mlx5dv_free_var mlx5dv_pp_free mlx5dv_dr_domain_set_reclaim_device_memory "
    "mlx5dv_dr_domain_allow_duplicate_rules __verbs_log verbs_register_driver_34 verbs_set_ops "
    "verbs_uninit_context verbs_init_cq verbs_allow_disassociate_destroy ";

static bool is_in(const char *names, const char *name)
{
    char word[160];

    snprintf(word, sizeof(word), " %s ", name);
    return strstr(names, word);
}

/* Calls a function of any type with zeroes: a function that refuses does not read them. */
static int call_with_zeroes(const char *name, const char *version)
{
    long (*call)(long, long, long, long, long, long);
    long result;

    *(void **)&call = dlvsym(RTLD_DEFAULT, name, version);
    if (!call) {
        return ENXIO;
    }
    errno = 0;
    result = call(0, 0, 0, 0, 0, 0);
    return errno ? errno : (int)result;
}

static void probe(const char *name, const char *version)
{
    bool old = !strcmp(version, "IBVERBS_1.0") || !strcmp(name, "ibv_register_driver");
    int err = 0;
    size_t i = 0;

    while (i < COUNT(calls) && !is_in(calls[i].names, name)) {
        i++;
    }
    if (is_in(silent, name)) {
        printf("%s %s does nothing\n", name, version);
        return;
    }
    errno = 0;
    /* old versions have other structures, and call another symbol */
    err = i < COUNT(calls) && (!old || !dlvsym(RTLD_DEFAULT, name, "IBVERBS_1.1"))
              ? calls[i].call()
              : call_with_zeroes(name, version);
    if (err) {
        const char *text = strerrorname_np(err);

        printf("%s %s refused: %s\n", name, version, text ? text : "no errno");
    } else {
        printf("%s %s works\n", name, version);
    }
}

int main(void)
{
    char name[128], version[64], wire[32];

    snprintf(wire, sizeof(wire), "probe-%d", (int)getpid());
    setenv("HCASIM_WIRE", wire, 0);
    if (ibv_fork_init() || !setup()) { /* ibv_fork_init() comes first */
        fprintf(stderr, "verbs_probe: what verbs need cannot be made: %s\n", strerror(errno));
        return EXIT_FAILURE;
    }
    while (scanf("%127s %63s", name, version) == 2) {
        probe(name, version);
        fflush(stdout); /* if a call ends the process, it is the one after this line */
    }
    return EXIT_SUCCESS;
}
