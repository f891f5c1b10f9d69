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
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "guest-lib/verbs/exp/include/infiniband/ofa_verbs.h"
#include "tests/programs/verbs_copies.h"
#include "tests/programs/verbs_probe.h"

#define QKEY 0x11111111
#define ACCESS                                                                                     \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND)

struct ibv_device **list;
struct ibv_context *ctx;
struct ibv_pd *pd;
struct ibv_cq *cq;
struct ibv_srq *srq;
struct ibv_qp *rc, *raw;
struct ibv_wq *wq;
struct ibv_rwq_ind_table *table;
struct ibv_ah *ah;
uint8_t buf[BUF] __attribute__((aligned(4096)));
static struct ibv_context *second;
static struct ibv_comp_channel *channel;
static struct ibv_mr *mr;
static struct ibv_qp *ud;
static struct ibv_ah_attr path = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1}};

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
/* There is no dma-buf: EBADF shows that it would take one. */
CALL(reg_dmabuf_mr, int err = ptr(ibv_reg_dmabuf_mr(pd, 0, 4096, 0, -1, IBV_ACCESS_LOCAL_WRITE));
     return err == EBADF ? 0 : err;)
CALL(rereg_mr, return num(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ACCESS));)
CALL(
    import_mr, struct ibv_mr *made = ibv_import_mr(pd, mr->handle); int err = ptr(made);
    if (made) { ibv_unimport_mr(made); } return err;)

/* Counters of flows, or NULL with errno. */
static struct ibv_counters *a_counters(void)
{
    struct ibv_counters_init_attr attr = {0};

    return ibv_create_counters(ctx, &attr);
}

/* Device memory of 64 bytes, or NULL with errno. */
static struct ibv_dm *a_dm(void)
{
    struct ibv_alloc_dm_attr attr = {.length = 64};

    return ibv_alloc_dm(ctx, &attr);
}

static int call_import_dm(void)
{
    struct ibv_dm *dm = a_dm(), *imported = dm ? ibv_import_dm(ctx, dm->handle) : NULL;
    int err = imported ? 0 : errno;

    if (imported) {
        ibv_unimport_dm(imported);
    }
    return dm && ibv_free_dm(dm) ? errno : err;
}
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
int ibv_query_port_speed(struct ibv_context *context, uint32_t port_num, uint64_t *port_speed);
CALL(query_port_speed, uint64_t speed = 0; int err = num(ibv_query_port_speed(ctx, 1, &speed));
     return err || speed >= 100 ? err : ENODATA;)
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
struct ibv_device **ibv_exp_get_device_list(int *num); /* of <infiniband/verbs_exp.h> */
CALL(exp_get_device_list, struct ibv_device **made = ibv_exp_get_device_list(NULL);
     int err = ptr(made); ibv_free_device_list(made); return err;)
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
CALL(advise_mr, struct ibv_mr *paged = ibv_reg_mr(pd, buf, 64, IBV_ACCESS_ON_DEMAND);
     struct ibv_sge sge = {(uintptr_t)buf, 64, paged ? paged->lkey : 0};
     int err = num(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1));
     return paged ? (ibv_dereg_mr(paged), err) : err;)
CALL(alloc_null_mr, struct ibv_mr *made = ibv_alloc_null_mr(pd);
     return made ? num(ibv_dereg_mr(made)) : errno;)
/* Counters are read while a flow has them. */
static int call_read_counters(void)
{
    struct ibv_counters *counters = a_counters();
    struct ibv_counter_attach_attr packets = {.counter_desc = IBV_COUNTER_PACKETS};
    struct ibv_flow_spec_counter_action count = {IBV_FLOW_SPEC_ACTION_COUNT, sizeof(count),
                                                 counters};
    uint32_t rule[(sizeof(struct ibv_flow_attr) + sizeof(count)) / sizeof(uint32_t)] = {0};
    struct ibv_flow_attr *attr = (void *)rule;
    struct ibv_flow *flow = NULL;
    uint64_t value;
    int result;

    *attr = (struct ibv_flow_attr){.size = sizeof(rule), .num_of_specs = 1, .port = 1};
    memcpy(attr + 1, &count, sizeof(count));
    if (!counters || ibv_attach_counters_point_flow(counters, &packets, NULL) ||
        !(flow = ibv_create_flow(raw, attr))) {
        return ptr(flow);
    }
    result = num(ibv_read_counters(counters, &value, 1, 0));
    ibv_destroy_flow(flow);
    return result;
}
CALL(attach_counters, struct ibv_counters *c = a_counters();
     struct ibv_counter_attach_attr attr = {0};
     return c ? num(ibv_attach_counters_point_flow(c, &attr, NULL)) : ptr(c);)
CALL(create_counters, struct ibv_counters_init_attr attr = {0};
     return ptr(ibv_create_counters(ctx, &attr));)
CALL(destroy_counters, struct ibv_counters *c = a_counters();
     return c ? num(ibv_destroy_counters(c)) : ptr(c);)
CALL(alloc_dm, struct ibv_dm *dm = a_dm(); return dm ? num(ibv_free_dm(dm)) : errno;)

static int call_reg_dm_mr(void)
{
    struct ibv_dm *dm = a_dm();
    struct ibv_mr *region = dm ? ibv_reg_dm_mr(pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED) : NULL;
    int err = region ? num(ibv_dereg_mr(region)) : errno;

    return dm && ibv_free_dm(dm) ? errno : err;
}
CALL(modify_action, struct ibv_flow_action action = {ctx};
     struct ibv_flow_action_esp_attr attr = {0};
     return num(ibv_modify_flow_action_esp(&action, &attr));)
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

/* The same by the calls of OFED 1.5. The program is registered with the target as its maker. */
static int old_xrc(void)
{
    struct ibv_xrc_domain *domain = ibv_open_xrc_domain(ctx, -1, O_CREAT);
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_srq *made = domain ? ibv_create_xrc_srq(pd, domain, cq, &attr) : NULL;
    struct ibv_xrc_qp_init_attr target = {.xrc_domain = domain};
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct ibv_qp_init_attr told;
    uint32_t number;
    int err = made ? ibv_create_xrc_rcv_qp(&target.base, &number) : errno;

    if (err) {
        return err;
    }
    err =
        ibv_modify_xrc_rcv_qp(domain, number, &init,
                              IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    err = err ? err : ibv_query_xrc_rcv_qp(domain, number, &init, IBV_QP_STATE, &told);
    err = err ? err : ibv_reg_xrc_rcv_qp(domain, number) == EEXIST ? 0 : ENODATA;
    err = err ? err : ibv_unreg_xrc_rcv_qp(domain, number);
    err = err ? err : num(ibv_destroy_srq(made));
    return err ? err : ibv_close_xrc_domain(domain);
}

CALL(old_xrc, return old_xrc();)

/* -- names ------------------------------------------------------------------------------------- */

static const struct probe_call calls[] = {
    {" ibv_alloc_pd ibv_dealloc_pd ", call_alloc_pd},
    {" ibv_import_pd ibv_unimport_pd ", call_import_pd},
    {" ibv_reg_mr ibv_dereg_mr ", call_reg_mr},
    {" ibv_reg_mr_iova ", call_reg_mr_iova},
    {" ibv_reg_mr_iova2 ", call_reg_mr_iova2},
    {" ibv_reg_dmabuf_mr ", call_reg_dmabuf_mr},
    {" ibv_rereg_mr ", call_rereg_mr},
    {" ibv_import_mr ibv_unimport_mr ", call_import_mr},
    {" ibv_import_dm ibv_unimport_dm ", call_import_dm},
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
    {" ibv_query_port_speed ", call_query_port_speed},
    {" ibv_query_gid ", call_query_gid},
    {" _ibv_query_gid_ex ", call_query_gid_ex},
    {" _ibv_query_gid_table ", call_query_gid_table},
    {" ibv_query_pkey ", call_query_pkey},
    {" ibv_get_pkey_index ", call_get_pkey_index},
    {" ibv_get_device_name ibv_get_device_guid ibv_get_device_index ", call_device},
    {" ibv_get_device_list ibv_free_device_list ", call_get_device_list},
    {" ibv_exp_get_device_list ", call_exp_get_device_list},
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
    {" alloc_dm free_dm ", call_alloc_dm},
    {" reg_dm_mr ", call_reg_dm_mr},
    {" modify_flow_action_esp ", call_modify_action},
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
    {" ibv_open_xrc_domain ibv_close_xrc_domain ibv_create_xrc_srq ibv_create_xrc_rcv_qp "
     "ibv_modify_xrc_rcv_qp ibv_query_xrc_rcv_qp ibv_reg_xrc_rcv_qp ibv_unreg_xrc_rcv_qp ",
     call_old_xrc},
    {" ibv_copy_ah_attr_from_kern ", copies_ah},
    {" ibv_copy_qp_attr_from_kern ", copies_qp},
    {" ibv_copy_path_rec_from_kern ibv_copy_path_rec_to_kern ", copies_path},
};

/* Functions that return nothing and do nothing here: for objects that do not exist here, or
 * for drivers of rdma-core. */
static const char silent[] =
    " mlx5dv_free_var mlx5dv_dr_domain_set_reclaim_device_memory "
    "mlx5dv_dr_domain_allow_duplicate_rules __verbs_log verbs_register_driver_34 verbs_set_ops "
    "verbs_uninit_context verbs_init_cq verbs_allow_disassociate_destroy ibv_free_buf "
    "_mlx5dv_get_export_sizes mlx5dv_devx_obj_unimport mlx5dv_devx_umem_unimport "
    "mlx5dv_var_unimport ";

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

/* The call that calls the function, or NULL. */
static const struct probe_call *find_call(const char *name)
{
    for (size_t i = 0; i < COUNT(calls); i++) {
        if (is_in(calls[i].names, name)) {
            return &calls[i];
        }
    }
    for (const struct probe_call *call = probe_dv_calls; call->names; call++) {
        if (is_in(call->names, name)) {
            return call;
        }
    }
    return NULL;
}

static void probe(const char *name, const char *version)
{
    bool old = !strcmp(version, "IBVERBS_1.0") || !strcmp(name, "ibv_register_driver");
    const struct probe_call *call = find_call(name);
    int err;

    if (is_in(silent, name)) {
        printf("%s %s does nothing\n", name, version);
        return;
    }
    errno = 0;
    /* old versions have other structures, and call another symbol */
    err = call && (!old || !dlvsym(RTLD_DEFAULT, name, "IBVERBS_1.1"))
              ? call->call()
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
