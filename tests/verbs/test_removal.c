/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests a device that is removed while programs use it (guest-lib/verbs/user/device.h): which
 * events they get, what still works, what fails and how, as in Linux
 * (drivers/infiniband/core/uverbs_main.c, rdma_core.c). Host 0 loses its device; host 1 is its
 * peer.
 */
#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/kernel/gsi.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "guest-lib/verbs/user/device.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

static struct verbs_table *v;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq[2];
static struct ibv_qp *qp[2];
static struct ibv_mr *mr[2];

static void setup(void)
{
    v = verbs_table_new();
    channel = ibv_create_comp_channel(v->a);
    ck_assert_ptr_nonnull(channel);
    table_do_not_wait(channel->fd);
    cq[0] = ibv_create_cq(v->a, 16, NULL, channel, 0);
    cq[1] = ibv_create_cq(v->b, 16, NULL, NULL, 0);
    for (int i = 0; i < 2; i++) {
        qp[i] = table_qp_new(v, i, cq[i], NULL);
        mr[i] = table_mr_new(v, i);
    }
    table_connect(v, qp[0], qp[1]);
}

/* Destroying succeeds, whether or not the device exists. */
static void teardown(void)
{
    for (int i = 0; i < 2; i++) {
        table_qp_free(qp[i]);
        table_mr_free(mr[i]);
        verbs_must_be_0(ibv_destroy_cq(cq[i]));
    }
    verbs_must_be_0(ibv_destroy_comp_channel(channel));
    verbs_table_free(v);
}

static void remove_device(void)
{
    hv_device_remove(v->a->device);
}

static void send_one(int side)
{
    struct ibv_sge sge = {.addr = (uintptr_t)mr[side]->addr, .length = 64, .lkey = mr[side]->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;

    ck_assert_int_eq(ibv_post_send(qp[side], &wr, &bad), 0);
}

static void receive_one(int side)
{
    struct ibv_sge sge = {.addr = (uintptr_t)mr[side]->addr, .length = 64, .lkey = mr[side]->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

    ck_assert_int_eq(ibv_post_recv(qp[side], &wr, &bad), 0);
}

static short ready(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    poll(&p, 1, 0);
    return p.revents;
}

#define fails_with(error, call)                                                                    \
    do {                                                                                           \
        errno = 0;                                                                                 \
        ck_assert_msg((call), "%s succeeds", #call);                                               \
        ck_assert_msg(errno == (error), "%s: errno %d", #call, errno);                             \
    } while (0)

/* -- what is told -------------------------------------------------------------------------------
 */

/* uverbs_async_event_destroy_uobj(): the last event, delivered once; then the descriptor blocks as
 * usual. */
START_TEST(a_context_gets_one_event)
{
    struct ibv_async_event event;

    ck_assert_int_eq(ready(v->a->async_fd), 0);
    remove_device();
    ck_assert_int_eq(ready(v->a->async_fd), POLLIN);
    ck_assert_int_eq(ibv_get_async_event(v->a, &event), 0);
    ck_assert_int_eq(event.event_type, IBV_EVENT_DEVICE_FATAL);
    ibv_ack_async_event(&event);
    table_wait(v);
    ck_assert_int_eq(ready(v->a->async_fd), 0);
    fails_with(EAGAIN, ibv_get_async_event(v->a, &event) == -1);
    ck_assert_int_eq(ready(v->b->async_fd), 0);
}
END_TEST

/* The context's objects removed their events when they were destroyed
 * (ib_uverbs_release_uevent()). */
START_TEST(events_of_objects_go_with_them)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(v->hosts->host[0].pd, &init);
    struct ibv_qp *last = table_qp_new(v, 0, cq[0], srq);
    struct ibv_async_event event;

    verbs_connect(last, &v->hosts->host[1], qp[1]->qp_num, NULL);
    ck_assert_int_eq(ibv_modify_qp(last, &attr, IBV_QP_STATE), 0);
    table_wait(v);
    ck_assert_int_eq(ready(v->a->async_fd), POLLIN); /* LAST_WQE_REACHED */
    remove_device();
    ck_assert_int_eq(ibv_get_async_event(v->a, &event), 0);
    ck_assert_int_eq(event.event_type, IBV_EVENT_DEVICE_FATAL);
    ck_assert_int_eq(ready(v->a->async_fd), 0);
    table_qp_free(last);
    verbs_must_be_0(ibv_destroy_srq(srq));
}
END_TEST

/* ib_uverbs_free_event_queue(): the channel's events are gone, and its descriptor reports that for
 * good. */
START_TEST(a_channel_is_closed)
{
    struct ibv_cq *which;
    void *cookie;

    receive_one(0);
    ck_assert_int_eq(ibv_req_notify_cq(cq[0], 0), 0);
    send_one(1);
    table_wait(v);
    ck_assert_int_eq(ready(channel->fd), POLLIN);
    remove_device();
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(ready(channel->fd), POLLIN);
        fails_with(EIO, ibv_get_cq_event(channel, &which, &cookie) == -1);
    }
}
END_TEST

START_TEST(channels_of_devx_are_closed)
{
    const struct hv_dv_ops *dv = hv_context(v->a)->dv;
    struct mlx5dv_devx_event_channel *events = dv->devx_create_event_channel(v->a, 0);
    struct mlx5dv_devx_cmd_comp *commands = dv->devx_create_cmd_comp(v->a);
    uint64_t room[16];

    remove_device();
    ck_assert_int_eq(ready(events->fd), POLLIN);
    ck_assert_int_eq(ready(commands->fd), POLLIN);
    fails_with(EIO, dv->devx_get_event(events, (void *)room, sizeof(room)) == -1);
    ck_assert_int_eq(dv->devx_get_async_cmd_comp(commands, (void *)room, sizeof(room)), EIO);
    fails_with(EIO, !dv->devx_create_event_channel(v->a, 0));
    fails_with(EIO, !dv->devx_create_cmd_comp(v->a));
    dv->devx_destroy_event_channel(events);
    dv->devx_destroy_cmd_comp(commands);
}
END_TEST

/* -- what still works ---------------------------------------------------------------------------
 */

/* A completion that was written is found; then there are none. Doorbells go to a page that nobody
 * reads (rdma_umap_fault()): posting succeeds while the rings have room. */
START_TEST(rings_are_the_programs)
{
    struct ibv_wc wc;

    receive_one(0);
    send_one(1);
    table_wait(v);
    remove_device();
    ck_assert_int_eq(ibv_poll_cq(cq[0], 1, &wc), 1);
    ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
    receive_one(0);
    send_one(0);
    ck_assert_int_eq(ibv_req_notify_cq(cq[0], 0), 0);
    table_wait(v);
    ck_assert_int_eq(ibv_poll_cq(cq[0], 1, &wc), 0);
}
END_TEST

/* As with a card that was pulled out: nobody answers. */
START_TEST(its_peer_retries_and_gives_up)
{
    struct ibv_wc wc;

    receive_one(0);
    remove_device();
    send_one(1);
    wc = table_wc(v, cq[1]);
    ck_assert_int_eq(wc.status, IBV_WC_RETRY_EXC_ERR);
}
END_TEST

/* Its cable is gone, too: a host that asks for its address on the wire gets no answer, once the
 * known entry is too old. */
START_TEST(nobody_is_at_its_address)
{
    /* addresses that must be asked for */
    const struct lossy_config strangers = {.strangers = true};
    struct verbs_hosts *hosts = verbs_hosts_new(2, &strangers);
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1}};
    struct ibv_ah *ah;

    attr.grh.dgid = hosts->host[0].config.gid[1];
    ah = ibv_create_ah(hosts->host[1].pd, &attr);
    ck_assert_ptr_nonnull(ah);
    hv_device_remove(hosts->host[0].device);
    for (int seconds = 0; ah && seconds < 100; seconds++) {
        verbs_must_be_0(ibv_destroy_ah(ah));
        inproc_advance(hosts->world, VERBS_SECOND);
        ah = ibv_create_ah(hosts->host[1].pd, &attr);
    }
    ck_assert_ptr_null(ah);
    ck_assert_int_eq(errno, ETIMEDOUT);
    verbs_hosts_free(hosts);
}
END_TEST

/* Posted requests that have not left when the device is removed never leave, and are not
 * flushed. */
START_TEST(what_has_not_left_is_lost)
{
    struct ibv_wc wc;

    receive_one(1);
    send_one(0);
    remove_device();
    table_wait(v);
    ck_assert_int_eq(ibv_poll_cq(cq[0], 1, &wc), 0);
    ck_assert_int_eq(ibv_poll_cq(cq[1], 1, &wc), 0);
}
END_TEST

/* mlx5_query_rt_values() reads a page of zeros. */
START_TEST(its_clock_stands_at_0)
{
    struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};

    table_wait(v);
    ck_assert_int_eq(ibv_query_rt_values_ex(v->a, &values), 0);
    ck_assert_int_ne(values.raw_clock.tv_nsec, 0);
    remove_device();
    values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
    ck_assert_int_eq(ibv_query_rt_values_ex(v->a, &values), 0);
    ck_assert_int_eq(values.raw_clock.tv_nsec, 0);
}
END_TEST

/* -- what fails ---------------------------------------------------------------------------------
 */

START_TEST(nothing_can_be_made)
{
    struct verbs_host *host = &v->hosts->host[0];
    struct ibv_qp_init_attr init = {
        .send_cq = cq[0], .recv_cq = cq[0], .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_ah_attr ah = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1}};
    struct ibv_xrcd_init_attr xrcd = {.comp_mask =
                                          IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                                      .fd = -1,
                                      .oflags = O_CREAT};
    struct ibv_td_init_attr td = {0};

    ah.grh.dgid = host->config.gid[1];
    remove_device();
    fails_with(EIO, !ibv_alloc_pd(v->a));
    fails_with(EIO, !ibv_reg_mr(host->pd, mr[0]->addr, 64, 0));
    fails_with(EIO, !ibv_create_comp_channel(v->a));
    fails_with(EIO, !ibv_create_cq(v->a, 4, NULL, NULL, 0));
    fails_with(EIO, !ibv_create_qp(host->pd, &init));
    fails_with(EIO, !ibv_create_srq(host->pd, &srq));
    fails_with(EIO, !ibv_create_ah(host->pd, &ah));
    fails_with(EIO, !ibv_alloc_mw(host->pd, IBV_MW_TYPE_1));
    fails_with(EIO, !ibv_open_xrcd(v->a, &xrcd));
    fails_with(EIO, !ibv_alloc_td(v->a, &td));
}
END_TEST

START_TEST(nothing_can_be_asked)
{
    struct ibv_device_attr attr;
    struct ibv_device_attr_ex attr_ex;
    struct ibv_port_attr port;
    struct ibv_qp_attr qp_attr;
    struct ibv_qp_init_attr init;
    struct ibv_gid_entry entry;
    union ibv_gid gid;
    __be16 pkey;

    remove_device();
    ck_assert_int_eq(ibv_query_device(v->a, &attr), EIO);
    ck_assert_int_eq(ibv_query_device_ex(v->a, NULL, &attr_ex), EIO);
    ck_assert_int_eq(ibv_query_port(v->a, 1, &port), EIO);
    ck_assert_int_eq(ibv_query_qp(qp[0], &qp_attr, IBV_QP_STATE, &init), EIO);
    ck_assert_int_eq(ibv_query_gid_ex(v->a, 1, 1, &entry, 0), EIO);
    fails_with(EIO, ibv_query_gid(v->a, 1, 1, &gid) == -1);
    fails_with(EIO, ibv_query_gid_table(v->a, &entry, 1, 0) == -EIO);
    fails_with(ENOENT, ibv_query_pkey(v->a, 1, 0, &pkey) == -1);
}
END_TEST

START_TEST(nothing_can_be_changed)
{
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    struct ibv_modify_cq_attr moderation = {.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = {1, 1}};

    remove_device();
    ck_assert_int_eq(ibv_modify_qp(qp[0], &error, IBV_QP_STATE), EIO);
    ck_assert_int_eq(ibv_resize_cq(cq[0], 64), EIO);
    ck_assert_int_eq(ibv_modify_cq(cq[0], &moderation), EIO);
    ck_assert_int_ne(
        ibv_rereg_mr(mr[0], IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE), 0);
}
END_TEST

/* -- what ends ----------------------------------------------------------------------------------
 */

/* Every object of a context can be destroyed: its handle is still known (uverbs_destroy_uobject()),
 * and the device has nothing to do. */
START_TEST(everything_can_be_destroyed)
{
    struct verbs_host *host = &v->hosts->host[0];
    struct ibv_pd *pd = ibv_alloc_pd(v->a);
    struct ibv_td_init_attr td_init = {0};
    struct ibv_td *td = ibv_alloc_td(v->a, &td_init);
    struct ibv_xrcd_init_attr xrcd_init = {.comp_mask =
                                               IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                                           .fd = -1,
                                           .oflags = O_CREAT};
    struct ibv_xrcd *xrcd = ibv_open_xrcd(v->a, &xrcd_init);
    struct ibv_srq_init_attr_ex xsrq_init = {.attr = {.max_wr = 4, .max_sge = 1},
                                             .comp_mask =
                                                 IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
                                                 IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
                                             .srq_type = IBV_SRQT_XRC,
                                             .pd = host->pd,
                                             .xrcd = xrcd,
                                             .cq = cq[0]};
    struct ibv_srq *xsrq = ibv_create_srq_ex(v->a, &xsrq_init);
    struct ibv_cq_init_attr_ex ex_init = {.cqe = 63, .wc_flags = IBV_WC_EX_WITH_TM_INFO};
    struct ibv_cq_ex *ex = ibv_create_cq_ex(v->a, &ex_init);
    struct ibv_srq_init_attr_ex tm_init = {.attr = {.max_wr = 4, .max_sge = 1},
                                           .comp_mask = IBV_SRQ_INIT_ATTR_TYPE |
                                                        IBV_SRQ_INIT_ATTR_TM |
                                                        IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
                                           .srq_type = IBV_SRQT_TM,
                                           .pd = host->pd,
                                           .cq = ibv_cq_ex_to_cq(ex),
                                           .tm_cap = {.max_num_tags = 4, .max_ops = 4}};
    struct ibv_srq *tm = ibv_create_srq_ex(v->a, &tm_init);
    struct ibv_ah_attr ah_attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1}};
    struct ibv_mw *mw = ibv_alloc_mw(host->pd, IBV_MW_TYPE_1);
    struct ibv_ah *ah;

    ah_attr.grh.dgid = host->config.gid[1];
    ah = ibv_create_ah(host->pd, &ah_attr);
    ck_assert(pd && td && xrcd && xsrq && tm && ah && mw);
    remove_device();
    ck_assert_int_eq(ibv_dealloc_mw(mw), 0);
    ck_assert_int_eq(ibv_destroy_ah(ah), 0);
    ck_assert_int_eq(ibv_destroy_srq(xsrq), 0);
    ck_assert_int_eq(ibv_destroy_srq(tm), 0);
    ck_assert_int_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
    ck_assert_int_eq(ibv_close_xrcd(xrcd), 0);
    ck_assert_int_eq(ibv_dealloc_td(td), 0);
    ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
}
END_TEST

START_TEST(raw_queues_and_flows_can_be_destroyed)
{
    struct verbs_host *host = &v->hosts->host[0];
    struct ibv_qp_init_attr init = {
        .send_cq = cq[0], .recv_cq = cq[0], .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RAW_PACKET};
    struct ibv_qp *raw = ibv_create_qp(host->pd, &init);
    struct ibv_flow_attr flow_attr = {
        .type = IBV_FLOW_ATTR_ALL_DEFAULT, .size = sizeof(flow_attr), .port = 1};
    struct ibv_wq_init_attr wq_init = {
        .wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1, .pd = host->pd, .cq = cq[0]};
    struct ibv_wq *wq = ibv_create_wq(v->a, &wq_init);
    struct ibv_rwq_ind_table_init_attr table_init = {.ind_tbl = &wq};
    struct ibv_rwq_ind_table *table = ibv_create_rwq_ind_table(v->a, &table_init);
    struct ibv_qp_attr to_init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct ibv_flow *flow;

    ck_assert_ptr_nonnull(raw);
    ck_assert_int_eq(ibv_modify_qp(raw, &to_init, IBV_QP_STATE | IBV_QP_PORT), 0);
    flow = ibv_create_flow(raw, &flow_attr);
    ck_assert_ptr_nonnull(flow);
    ck_assert(wq && table);
    remove_device();
    fails_with(EIO, !ibv_create_flow(raw, &flow_attr));
    ck_assert_int_eq(ibv_destroy_flow(flow), 0);
    ck_assert_int_eq(ibv_destroy_qp(raw), 0);
    ck_assert_int_eq(ibv_destroy_rwq_ind_table(table), 0);
    ck_assert_int_eq(ibv_destroy_wq(wq), 0);
}
END_TEST

/* A group cannot be left any more, because that is not a destruction; its QP can be destroyed
 * (ib_uverbs_detach_umcast()). */
START_TEST(a_group_goes_with_its_queue_pair)
{
    struct ibv_qp *ud = verbs_qp(&v->hosts->host[0], IBV_QPT_UD, cq[0], NULL, NULL);
    union ibv_gid group = {.raw = {[10] = 0xff, 0xff, 239, 1, 2, 3}};

    ck_assert_int_eq(ibv_attach_mcast(ud, &group, 0), 0);
    ck_assert_int_eq(ibv_destroy_qp(ud), EBUSY);
    remove_device();
    ck_assert_int_eq(ibv_detach_mcast(ud, &group, 0), EIO);
    ck_assert_int_eq(ibv_attach_mcast(ud, &group, 0), EIO);
    ck_assert_int_eq(ibv_destroy_qp(ud), 0);
}
END_TEST

/* A driver's own methods are removed with the driver (uverbs_disassociate_api_pre()), including
 * those that destroy. Their objects end with their context. */
START_TEST(objects_of_devx_cannot_be_destroyed)
{
    const struct hv_dv_ops *dv = hv_context(v->a)->dv;
    struct prm_alloc_pd_in in[1] = {0};
    struct prm_alloc_pd_out out[1] = {0};
    static struct mlx5dv_devx_umem *umem; /* these stay, as with a kernel */
    static struct mlx5dv_devx_obj *obj;

    PRM_SET(alloc_pd_in, in, opcode, PRM_CMD_OP_ALLOC_PD);
    umem = dv->devx_umem_reg(v->a, mr[0]->addr, 4096, 7);
    obj = dv->devx_obj_create(v->a, in, sizeof(in), out, sizeof(out));
    ck_assert(umem && obj);
    remove_device();
    ck_assert_int_eq(dv->devx_obj_destroy(obj), EIO);
    ck_assert_int_eq(dv->devx_umem_dereg(umem), EIO);
    fails_with(EIO, !dv->devx_obj_create(v->a, in, sizeof(in), out, sizeof(out)));
}
END_TEST

START_TEST(it_cannot_be_opened)
{
    struct ibv_context *again = ibv_open_device(v->a->device);

    ck_assert_ptr_nonnull(again);
    ck_assert_int_eq(ibv_close_device(again), 0);
    remove_device();
    fails_with(ENOENT, !ibv_open_device(v->a->device));
}
END_TEST

/* -- below a program's rings ------------------------------------------------------------------- */

static void arrived(void *opaque)
{
    ++*(unsigned *)opaque;
}

/* The owner of queue pair 1 is notified, and nothing leaves the queue pair. */
START_TEST(queue_pair_1_falls_silent)
{
    static const uint8_t mad[HV_MAD_LEN];
    unsigned calls = 0;
    struct hv_datagram datagram;
    struct hv_gsi *gsi;

    ck_assert_int_eq(hv_gsi_open(hv_context(v->a), arrived, &calls, &gsi), 0);
    ck_assert(!hv_gsi_poll(gsi, &datagram));
    ck_assert(hv_gsi_send(gsi, 1, &v->hosts->host[1].config.gid[1], mad));
    table_wait(v);
    while (hv_gsi_poll(gsi, &datagram)) {
    }
    calls = 0;
    remove_device();
    ck_assert_uint_eq(calls, 1);
    ck_assert(hv_gsi_is_removed(gsi));
    ck_assert(!hv_gsi_send(gsi, 1, &v->hosts->host[1].config.gid[1], mad));
    ck_assert(!hv_gsi_poll(gsi, &datagram));
    hv_gsi_close(gsi);
    ck_assert_int_eq(hv_gsi_open(hv_context(v->a), arrived, &calls, &gsi), EIO);
}
END_TEST

Suite *unit_suite(void)
{
    Suite *suite = suite_create("verbs-removal");
    TCase *tc = tcase_create("removal");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_context_gets_one_event);
    tcase_add_test(tc, events_of_objects_go_with_them);
    tcase_add_test(tc, a_channel_is_closed);
    tcase_add_test(tc, channels_of_devx_are_closed);
    tcase_add_test(tc, rings_are_the_programs);
    tcase_add_test(tc, its_peer_retries_and_gives_up);
    tcase_add_test(tc, nobody_is_at_its_address);
    tcase_add_test(tc, what_has_not_left_is_lost);
    tcase_add_test(tc, its_clock_stands_at_0);
    tcase_add_test(tc, nothing_can_be_made);
    tcase_add_test(tc, nothing_can_be_asked);
    tcase_add_test(tc, nothing_can_be_changed);
    tcase_add_test(tc, everything_can_be_destroyed);
    tcase_add_test(tc, raw_queues_and_flows_can_be_destroyed);
    tcase_add_test(tc, a_group_goes_with_its_queue_pair);
    tcase_add_test(tc, objects_of_devx_cannot_be_destroyed);
    tcase_add_test(tc, it_cannot_be_opened);
    tcase_add_test(tc, queue_pair_1_falls_silent);
    suite_add_tcase(suite, tc);
    return suite;
}
