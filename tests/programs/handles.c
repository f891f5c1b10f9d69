/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests what a program sees of the two halves of a call: libmlx5 in the process, and the kernel,
 * which knows objects only by their handles and answers with an errno.
 */
#include <stdio.h>
#include <sys/utsname.h>
#include "tests/programs/statements.h"

#define CQE        64
#define WRS        8
#define BUF        8192
#define QKEY       0x11111111
#define GARBLE     0xdeadbeef
#define SENTINEL   12345 /* an errno that no call sets */

#define QP_ACCESS  (REMOTE | IBV_ACCESS_LOCAL_WRITE)
#define ACCESS_ALL (QP_ACCESS | IBV_ACCESS_MW_BIND)

static struct ibv_comp_channel *channel;
static struct ibv_cq *cq, *other_cq;
static struct ibv_cq_ex *cq_ex;
static struct ibv_srq *srq;
static struct ibv_mr *mr;
static struct ibv_mw *mw;
static struct ibv_qp *qp, *peer, *ud, *on_srq;
static struct ibv_ah *ah;
static struct ibv_wq *wq;
static struct ibv_rwq_ind_table *table;
static uint8_t buf[BUF] __attribute__((aligned(4096)));

/* -- objects ----------------------------------------------------------------------------------- */

static struct ibv_qp_init_attr qp_attr(enum ibv_qp_type type)
{
    return (struct ibv_qp_init_attr){
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = WRS, .max_recv_wr = WRS, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = type,
    };
}

static struct ibv_qp *new_qp(enum ibv_qp_type type, struct ibv_srq *its_srq)
{
    struct ibv_qp_init_attr init = qp_attr(type);
    struct ibv_qp *made;

    init.srq = its_srq;
    made = ibv_create_qp(pd, &init);
    ck_assert_ptr_nonnull(made);
    return made;
}

static void setup(void)
{
    struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = WRS, .max_sge = 1}};
    struct ibv_cq_init_attr_ex ex_attr = {.cqe = CQE, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN};
    struct ibv_wq_init_attr wq_attr = {.wq_type = IBV_WQT_RQ, .max_wr = WRS, .max_sge = 1};
    struct ibv_rwq_ind_table_init_attr table_attr = {.ind_tbl = &wq};
    struct ibv_ah_attr ah_attr;

    open_device();
    channel = ibv_create_comp_channel(ctx);
    cq = ibv_create_cq(ctx, CQE, NULL, channel, 0);
    other_cq = ibv_create_cq(ctx, CQE, NULL, NULL, 0);
    cq_ex = ibv_create_cq_ex(ctx, &ex_attr);
    srq = ibv_create_srq(pd, &srq_attr);
    mr = ibv_reg_mr(pd, buf, BUF, ACCESS_ALL);
    mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
    ck_assert(channel && cq && other_cq && cq_ex && srq && mr && mw);
    qp = new_qp(IBV_QPT_RC, NULL);
    peer = new_qp(IBV_QPT_RC, NULL);
    ud = new_qp(IBV_QPT_UD, NULL);
    on_srq = new_qp(IBV_QPT_RC, srq);
    ah_attr = path();
    ah = ibv_create_ah(pd, &ah_attr);
    ck_assert_ptr_nonnull(ah);
    wq_attr.pd = pd;
    wq_attr.cq = cq;
    wq = ibv_create_wq(ctx, &wq_attr);
    ck_assert_ptr_nonnull(wq);
    table = ibv_create_rwq_ind_table(ctx, &table_attr);
    ck_assert_ptr_nonnull(table);
}

/* Whatever a program tried, everything still exists and can be closed. */
static void teardown(void)
{
    ck_assert_int_eq(ibv_destroy_rwq_ind_table(table), 0);
    ck_assert_int_eq(ibv_destroy_wq(wq), 0);
    ck_assert_int_eq(ibv_destroy_ah(ah), 0);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    ck_assert_int_eq(ibv_destroy_qp(peer), 0);
    ck_assert_int_eq(ibv_destroy_qp(ud), 0);
    ck_assert_int_eq(ibv_destroy_qp(on_srq), 0);
    ck_assert_int_eq(ibv_dealloc_mw(mw), 0);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    ck_assert_int_eq(ibv_destroy_srq(srq), 0);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
    ck_assert_int_eq(ibv_destroy_cq(other_cq), 0);
    ck_assert_int_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(cq_ex)), 0);
    ck_assert_int_eq(ibv_destroy_comp_channel(channel), 0);
    close_device();
}

static void connect_both(void)
{
    connect_to(qp, peer->qp_num, QP_ACCESS);
    connect_to(peer, qp->qp_num, QP_ACCESS);
}

static int post_send(struct ibv_qp *to, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;

    wr->send_flags |= IBV_SEND_SIGNALED;
    return ibv_post_send(to, wr, &bad);
}

/* -- calls: return 0 or their error; calls that return a pointer set errno
 * ----------------------- */

static int dealloc_pd(void)
{
    return ibv_dealloc_pd(other_pd);
}

static int reg_mr(void)
{
    struct ibv_mr *made = ibv_reg_mr(other_pd, buf, BUF, 0);

    return made ? ibv_dereg_mr(made) : errno;
}

static int rereg_mr(void)
{
    int err = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ACCESS_ALL);

    return err == IBV_REREG_MR_ERR_CMD ? errno : err;
}

static int rereg_mr_to_pd(void)
{
    int err = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other_pd, NULL, 0, 0);

    return err == IBV_REREG_MR_ERR_CMD ? errno : err;
}

static int dereg_mr(void)
{
    return ibv_dereg_mr(mr);
}

static int alloc_mw(void)
{
    struct ibv_mw *made = ibv_alloc_mw(other_pd, IBV_MW_TYPE_1);

    return made ? ibv_dealloc_mw(made) : errno;
}

static int dealloc_mw(void)
{
    return ibv_dealloc_mw(mw);
}

static int create_ah(void)
{
    struct ibv_ah_attr attr = path();
    struct ibv_ah *made = ibv_create_ah(other_pd, &attr);

    return made ? ibv_destroy_ah(made) : errno;
}

static int destroy_ah(void)
{
    return ibv_destroy_ah(ah);
}

static int resize_cq(void)
{
    return ibv_resize_cq(other_cq, 3 * CQE);
}

static int modify_cq(void)
{
    struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = {1, 0}};

    return ibv_modify_cq(other_cq, &attr);
}

static int destroy_cq(void)
{
    return ibv_destroy_cq(other_cq);
}

static int destroy_cq_ex(void)
{
    return ibv_destroy_cq(ibv_cq_ex_to_cq(cq_ex));
}

static int create_srq(void)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = WRS, .max_sge = 1}};
    struct ibv_srq *made = ibv_create_srq(other_pd, &attr);

    return made ? ibv_destroy_srq(made) : errno;
}

static int modify_srq(void)
{
    struct ibv_srq_attr attr = {.srq_limit = 1};

    return ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT);
}

static int query_srq(void)
{
    struct ibv_srq_attr attr;

    return ibv_query_srq(srq, &attr);
}

static int destroy_srq(void)
{
    return ibv_destroy_srq(srq);
}

static int create_with(struct ibv_qp_init_attr *init)
{
    struct ibv_qp *made = ibv_create_qp(other_pd, init);

    return made ? ibv_destroy_qp(made) : errno;
}

static int create_qp(void)
{
    struct ibv_qp_init_attr init = qp_attr(IBV_QPT_RC);

    return create_with(&init);
}

static int create_qp_sending_to_cq(void)
{
    struct ibv_qp_init_attr init = qp_attr(IBV_QPT_RC);

    init.send_cq = other_cq;
    return create_with(&init);
}

static int create_qp_receiving_to_cq(void)
{
    struct ibv_qp_init_attr init = qp_attr(IBV_QPT_RC);

    init.recv_cq = other_cq;
    return create_with(&init);
}

static int create_qp_on_srq(void)
{
    struct ibv_qp_init_attr init = qp_attr(IBV_QPT_RC);

    init.srq = srq;
    return create_with(&init);
}

static int modify_qp(void)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static int query_qp(void)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    return ibv_query_qp(qp, &attr, IBV_QP_STATE, &init);
}

static int destroy_qp(void)
{
    return ibv_destroy_qp(qp);
}

static int attach_mcast(void)
{
    union ibv_gid gid = {.raw = {0xff, 0x0e, [15] = 7}};

    return ibv_attach_mcast(ud, &gid, 0);
}

static int detach_mcast(void)
{
    union ibv_gid gid = {.raw = {0xff, 0x0e, [15] = 7}};

    return ibv_detach_mcast(ud, &gid, 0);
}

static int create_wq(void)
{
    struct ibv_wq_init_attr attr = {
        .wq_type = IBV_WQT_RQ, .max_wr = WRS, .max_sge = 1, .pd = pd, .cq = other_cq};
    struct ibv_wq *made = ibv_create_wq(ctx, &attr);

    return made ? ibv_destroy_wq(made) : errno;
}

static int modify_wq(void)
{
    struct ibv_wq_attr attr = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY};

    return ibv_modify_wq(wq, &attr);
}

static int destroy_wq(void)
{
    return ibv_destroy_wq(wq);
}

static int create_table(void)
{
    struct ibv_rwq_ind_table_init_attr attr = {.ind_tbl = &wq};
    struct ibv_rwq_ind_table *made = ibv_create_rwq_ind_table(ctx, &attr);

    return made ? ibv_destroy_rwq_ind_table(made) : errno;
}

static int destroy_table(void)
{
    return ibv_destroy_rwq_ind_table(table);
}

/* -- handles ----------------------------------------------------------------------------------- */

static uint32_t *handle_of_pd(void)
{
    return &other_pd->handle;
}

static uint32_t *handle_of_mr(void)
{
    return &mr->handle;
}

static uint32_t *handle_of_mw(void)
{
    return &mw->handle;
}

static uint32_t *handle_of_ah(void)
{
    return &ah->handle;
}

static uint32_t *handle_of_cq(void)
{
    return &other_cq->handle;
}

static uint32_t *handle_of_cq_ex(void)
{
    return &ibv_cq_ex_to_cq(cq_ex)->handle;
}

static uint32_t *handle_of_srq(void)
{
    return &srq->handle;
}

static uint32_t *handle_of_qp(void)
{
    return &qp->handle;
}

static uint32_t *handle_of_ud(void)
{
    return &ud->handle;
}

static uint32_t *handle_of_wq(void)
{
    return &wq->handle;
}

static uint32_t *handle_of_table(void)
{
    return (uint32_t *)&table->ind_tbl_handle;
}

static const struct use {
    const char *name;
    uint32_t *(*handle)(void);
    int (*call)(void);
    bool may_succeed; /* the call can be repeated */
} uses[] = {
    {"dealloc_pd", handle_of_pd, dealloc_pd, false},
    {"reg_mr", handle_of_pd, reg_mr, true},
    {"rereg_mr", handle_of_mr, rereg_mr, true},
    {"rereg_mr's new pd", handle_of_pd, rereg_mr_to_pd, false},
    {"dereg_mr", handle_of_mr, dereg_mr, false},
    {"alloc_mw", handle_of_pd, alloc_mw, true},
    {"dealloc_mw", handle_of_mw, dealloc_mw, false},
    {"create_ah", handle_of_pd, create_ah, true},
    {"destroy_ah", handle_of_ah, destroy_ah, false},
    {"resize_cq", handle_of_cq, resize_cq, true},
    {"modify_cq", handle_of_cq, modify_cq, true},
    {"destroy_cq", handle_of_cq, destroy_cq, false},
    {"destroy_cq of an extended one", handle_of_cq_ex, destroy_cq_ex, false},
    {"create_srq", handle_of_pd, create_srq, true},
    {"modify_srq", handle_of_srq, modify_srq, true},
    {"query_srq", handle_of_srq, query_srq, true},
    {"destroy_srq", handle_of_srq, destroy_srq, false},
    {"create_qp", handle_of_pd, create_qp, true},
    {"create_qp's send_cq", handle_of_cq, create_qp_sending_to_cq, true},
    {"create_qp's recv_cq", handle_of_cq, create_qp_receiving_to_cq, true},
    {"create_qp's srq", handle_of_srq, create_qp_on_srq, true},
    {"modify_qp", handle_of_qp, modify_qp, true},
    {"query_qp", handle_of_qp, query_qp, true},
    {"destroy_qp", handle_of_qp, destroy_qp, false},
    {"attach_mcast", handle_of_ud, attach_mcast, false},
    {"detach_mcast", handle_of_ud, detach_mcast, false},
    {"create_wq's cq", handle_of_cq, create_wq, true},
    {"modify_wq", handle_of_wq, modify_wq, true},
    {"destroy_wq", handle_of_wq, destroy_wq, false},
    {"create_rwq_ind_table", handle_of_wq, create_table, true},
    {"destroy_rwq_ind_table", handle_of_table, destroy_table, false},
};

/* lookup_get_idr_uobject(): no object has that number. The call had no effect: with the correct
 * handle it does its work. */
START_TEST(a_handle_that_is_not_the_kernels_is_found_out)
{
    const struct use *use = &uses[_i];
    uint32_t *handle = use->handle();
    int err;

    errno = SENTINEL;
    *handle ^= GARBLE;
    err = use->call();
    ck_assert_msg(err == ENOENT, "%s: %s", use->name, strerror(err));
    ck_assert_msg(errno == ENOENT, "%s: errno %d", use->name, errno);
    *handle ^= GARBLE;
    if (use->may_succeed) {
        err = use->call();
        ck_assert_msg(err == 0, "%s: %s", use->name, strerror(err));
    }
}
END_TEST

/* rdma_lookup_get_uobject(): objects of all kinds share one numbering. */
START_TEST(a_handle_of_another_kind_is_found_out)
{
    const struct use *use = &uses[_i];
    uint32_t *handle = use->handle(), own = *handle;
    int err;

    *handle = use->handle == handle_of_mr ? srq->handle : mr->handle;
    errno = SENTINEL;
    err = use->call();
    ck_assert_msg(err == EINVAL, "%s: %s", use->name, strerror(err));
    ck_assert_msg(errno == EINVAL, "%s: errno %d", use->name, errno);
    *handle = own;
}
END_TEST

START_TEST(no_two_objects_have_one_handle)
{
    const uint32_t handles[] = {
        pd->handle,  other_pd->handle,
        cq->handle,  other_cq->handle,
        srq->handle, *handle_of_cq_ex(),
        mr->handle,  mw->handle,
        qp->handle,  ud->handle,
        ah->handle,  on_srq->handle,
        wq->handle,  (uint32_t)table->ind_tbl_handle,
    };

    for (size_t i = 0; i < COUNT(handles); i++) {
        for (size_t j = 0; j < i; j++) {
            ck_assert_uint_ne(handles[i], handles[j]);
        }
    }
}
END_TEST

/* The kernel does not see polling and requests for notification. */
START_TEST(what_libmlx5_does_alone_needs_no_handle)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
    struct ibv_recv_wr recv = {0}, *bad;

    connect_both();
    cq->handle ^= GARBLE;
    qp->handle ^= GARBLE;
    ck_assert_int_eq(ibv_req_notify_cq(cq, 0), 0);
    ck_assert_int_eq(ibv_post_recv(peer, &recv, &bad), 0);
    ck_assert_int_eq(post_send(qp, &wr), 0);
    ck_assert_int_eq(completion(cq).status, IBV_WC_SUCCESS);
    ck_assert_int_eq(completion(cq).status, IBV_WC_SUCCESS);
    cq->handle ^= GARBLE;
    qp->handle ^= GARBLE;
}
END_TEST

/* -- errno ------------------------------------------------------------------------------------- */

static int pd_in_use(void)
{
    return ibv_dealloc_pd(pd);
}

static int cq_in_use(void)
{
    return ibv_destroy_cq(cq);
}

static int srq_too_small(void)
{
    struct ibv_srq_attr attr = {.srq_limit = 1 << 20};

    return ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT);
}

static int srq_of_another_size(void)
{
    struct ibv_srq_attr attr = {.max_wr = 1};

    return ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
}

static int cq_of_nothing(void)
{
    return ibv_resize_cq(other_cq, 0);
}

static int no_transition(void)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};

    return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

static int no_datagrams(void)
{
    union ibv_gid gid = {.raw = {0xff, 0x0e, [15] = 7}};

    return ibv_attach_mcast(qp, &gid, 0);
}

static int no_port(void)
{
    struct ibv_port_attr attr;

    return ibv_query_port(ctx, 2, &attr);
}

static int wq_in_use(void)
{
    return ibv_destroy_wq(wq);
}

static int nothing_to_modify(void)
{
    struct ibv_modify_cq_attr attr = {0};

    return ibv_modify_cq(other_cq, &attr);
}

static const struct {
    const char *name;
    int (*call)(void);
    int err;
} refused[] = {
    {"a PD in use", pd_in_use, EBUSY},
    {"a CQ in use", cq_in_use, EBUSY},
    {"an SRQ in use", destroy_srq, EBUSY},
    {"a WQ in use", wq_in_use, EBUSY},
    {"a limit above the SRQ's size", srq_too_small, EINVAL},
    {"another size of an SRQ", srq_of_another_size, EINVAL},
    {"a CQ without an entry", cq_of_nothing, EINVAL},
    {"no change of a CQ", nothing_to_modify, EINVAL},
    {"from RESET to RTS", no_transition, EINVAL},
    {"a group for a connected QP", no_datagrams, EINVAL},
    {"a group that the QP is not in", detach_mcast, EINVAL},
    {"the second port", no_port, EINVAL},
};

START_TEST(what_the_kernel_refuses_is_in_errno_too)
{
    int err;

    errno = SENTINEL;
    err = refused[_i].call();
    ck_assert_msg(err == refused[_i].err, "%s: %s", refused[_i].name, strerror(err));
    ck_assert_msg(errno == err, "%s: errno %d", refused[_i].name, errno);
}
END_TEST

/* For EBUSY of objects that the kernel does not know, and for posting, libmlx5 only returns the
 * error and does not set errno. */
START_TEST(what_libmlx5_refuses_is_returned_only)
{
    struct ibv_td_init_attr td_attr = {0};
    struct ibv_td *td = ibv_alloc_td(ctx, &td_attr);
    struct ibv_parent_domain_init_attr domain_attr = {.pd = other_pd, .td = td};
    struct ibv_pd *domain = ibv_alloc_parent_domain(ctx, &domain_attr);
    struct ibv_qp_init_attr init = qp_attr(IBV_QPT_RC);
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
    struct ibv_recv_wr recv = {0}, *bad;
    struct ibv_qp *in_domain;

    ck_assert(td && domain);
    in_domain = ibv_create_qp(domain, &init);
    ck_assert_ptr_nonnull(in_domain);
    errno = SENTINEL;
    ck_assert_int_eq(ibv_dealloc_pd(other_pd), EBUSY);
    ck_assert_int_eq(ibv_dealloc_pd(domain), EBUSY);
    ck_assert_int_eq(ibv_dealloc_td(td), EBUSY);
    ck_assert_int_eq(ibv_destroy_comp_channel(channel), EBUSY);
    ck_assert_int_eq(post_send(qp, &wr), ENOMEM); /* the QP is in RESET */
    ck_assert_int_eq(ibv_post_recv(qp, &recv, &bad), EINVAL);
    ck_assert_int_eq(errno, SENTINEL);
    ck_assert_int_eq(ibv_destroy_qp(in_domain), 0);
    ck_assert_int_eq(ibv_dealloc_pd(domain), 0);
    ck_assert_int_eq(ibv_dealloc_td(td), 0);
}
END_TEST

START_TEST(what_succeeds_leaves_errno_alone)
{
    int (*const calls[])(void) = {reg_mr,       rereg_mr,    alloc_mw,  modify_cq,    modify_srq,
                                  query_srq,    modify_qp,   query_qp,  create_table, modify_wq,
                                  resize_cq,    create_srq,  create_qp, create_wq,    create_ah,
                                  attach_mcast, detach_mcast};

    for (size_t i = 0; i < COUNT(calls); i++) {
        errno = SENTINEL;
        ck_assert_int_eq(calls[i](), 0);
        ck_assert_msg(errno == SENTINEL, "call %zu: %s", i, strerror(errno));
    }
}
END_TEST

/* -- regions of no bytes ----------------------------------------------------------------------- */

/* ib_umem_get() counts pages: a region without bytes that begins at a page boundary has none. */
START_TEST(a_region_of_no_bytes_is_not_at_the_beginning_of_a_page)
{
    errno = 0;
    ck_assert_ptr_null(ibv_reg_mr(pd, buf, 0, 0));
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

/* Posts a request with no bytes, from and to the region. */
static enum ibv_wc_status status_of(enum ibv_wr_opcode opcode, const struct ibv_mr *in)
{
    struct ibv_sge sge = {(uintptr_t)in->addr, 0, in->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = opcode,
                             .wr.rdma = {(uintptr_t)in->addr, in->rkey}};

    ck_assert_int_eq(post_send(qp, &wr), 0);
    return completion(cq).status;
}

/* Linux has refused it since "RDMA/umem: Be careful about boundary conditions in
 * ib_umem_find_best_pgsz()": 09ea6837a043 of Linux 7.2, which came to 6.12 with 6.12.111 and is not
 * in 6.1. The last of no bytes is before the first one, the sum overflows, and mlx5_ib ends with a
 * warning and EINVAL before it asks the device. Without a VM the old behaviour is kept. */
static bool kernel_refuses_no_bytes(void)
{
    unsigned major = 0, minor = 0, patch = 0;
    struct utsname os;

    if (!in_guest) {
        return false;
    }
    ck_assert_int_eq(uname(&os), 0);
    ck_assert_int_ge(sscanf(os.release, "%u.%u.%u", &major, &minor, &patch), 2);
    return major > 7 || (major == 7 && minor >= 2) || (major == 6 && minor == 12 && patch >= 111);
}

START_TEST(a_region_of_no_bytes_takes_no_bytes)
{
    struct ibv_mr *empty = ibv_reg_mr(pd, buf + 8, 0, ACCESS_ALL);
    struct ibv_sge sge = {(uintptr_t)buf + 8, 0, 0};
    struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad;

    if (kernel_refuses_no_bytes()) {
        ck_assert_ptr_null(empty);
        ck_assert_int_eq(errno, EINVAL);
        return;
    }
    ck_assert_ptr_nonnull(empty);
    ck_assert_uint_eq(empty->length, 0);
    sge.lkey = empty->lkey;
    connect_both();
    ck_assert_int_eq(ibv_post_recv(peer, &recv, &bad), 0);
    ck_assert_int_eq(status_of(IBV_WR_SEND, empty), IBV_WC_SUCCESS);
    ck_assert_int_eq(completion(cq).status, IBV_WC_SUCCESS);
    ck_assert_int_eq(status_of(IBV_WR_RDMA_WRITE, empty), IBV_WC_SUCCESS);
    ck_assert_int_eq(status_of(IBV_WR_RDMA_READ, empty), IBV_WC_SUCCESS);
    ck_assert_int_eq(ibv_dereg_mr(empty), 0);
}
END_TEST

/* -- what a QP can hold ------------------------------------------------------------------------ */

/* libmlx5 examines the size of a WQE, not max_sge. The WQE leaves room for the largest overhead;
 * the number of receive pieces that fits is a power of two. */
START_TEST(a_qp_has_room_for_more_pieces_than_the_device_promises)
{
    struct ibv_qp_init_attr init = qp_attr(IBV_QPT_RC), told;
    struct ibv_device_attr dev;
    struct ibv_qp_attr attr;
    struct ibv_qp *made;

    ck_assert_int_eq(ibv_query_device(ctx, &dev), 0);
    ck_assert_int_eq(dev.max_sge, 30);
    init.cap.max_send_sge = init.cap.max_recv_sge = (uint32_t)dev.max_sge + 1;
    made = ibv_create_qp(pd, &init);
    ck_assert_ptr_nonnull(made);
    ck_assert_uint_eq(init.cap.max_send_sge, 31);
    ck_assert_uint_eq(init.cap.max_recv_sge, 32);
    ck_assert_int_eq(ibv_query_qp(made, &attr, IBV_QP_CAP, &told), 0);
    ck_assert_uint_eq(told.cap.max_send_sge, 31);
    ck_assert_uint_eq(told.cap.max_recv_sge, 32);
    ck_assert_int_eq(ibv_destroy_qp(made), 0);
}
END_TEST

/* -- windows ----------------------------------------------------------------------------------- */

/* libmlx5's post_send() writes the new key into the WQE only: the program itself must change
 * mw->rkey, and the old key no longer works. */
START_TEST(a_window_that_is_bound_by_posting_keeps_its_rkey)
{
    uint32_t old = mw->rkey, key = ibv_inc_rkey(old);
    struct ibv_sge sge = {(uintptr_t)buf, 8, mr->lkey};
    struct ibv_send_wr bind = {
        .opcode = IBV_WR_BIND_MW,
        .bind_mw = {.mw = mw,
                    .rkey = key,
                    .bind_info = {mr, (uintptr_t)buf, BUF, IBV_ACCESS_REMOTE_WRITE}}};
    struct ibv_send_wr write = {.sg_list = &sge,
                                .num_sge = 1,
                                .opcode = IBV_WR_RDMA_WRITE,
                                .wr.rdma = {(uintptr_t)buf + 64, key}};

    connect_both();
    ck_assert_int_eq(post_send(peer, &bind), 0); /* posted on the QP where the window is accessed */
    ck_assert_int_eq(completion(cq).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(mw->rkey, old);
    ck_assert_int_eq(post_send(qp, &write), 0);
    ck_assert_int_eq(completion(cq).status, IBV_WC_SUCCESS);
    write.wr.rdma.rkey = old;
    ck_assert_int_eq(post_send(qp, &write), 0);
    ck_assert_int_eq(completion(cq).status, IBV_WC_REM_ACCESS_ERR);
}
END_TEST

/* ibv_bind_mw() is for windows of type 1 and chooses the key. */
START_TEST(a_window_that_is_bound_by_the_library_has_a_new_rkey)
{
    struct ibv_mw *type_1 = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
    struct ibv_mw_bind bind = {.wr_id = 3,
                               .send_flags = IBV_SEND_SIGNALED,
                               .bind_info = {mr, (uintptr_t)buf, BUF, IBV_ACCESS_REMOTE_WRITE}};
    uint32_t old;

    ck_assert_ptr_nonnull(type_1);
    old = type_1->rkey;
    connect_both();
    ck_assert_int_eq(ibv_bind_mw(peer, mw, &bind), EINVAL); /* a window of type 2 */
    ck_assert_int_eq(ibv_bind_mw(peer, type_1, &bind), 0);
    ck_assert_int_eq(completion(cq).status, IBV_WC_SUCCESS);
    ck_assert_uint_eq(type_1->rkey, ibv_inc_rkey(old));
    ck_assert_int_eq(ibv_dealloc_mw(type_1), 0);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *tc = tcase_create("handles");
    Suite *suite = suite_create("verbs-handles");

    tcase_set_timeout(tc, 2 * SECONDS);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, a_handle_that_is_not_the_kernels_is_found_out, 0, COUNT(uses));
    tcase_add_loop_test(tc, a_handle_of_another_kind_is_found_out, 0, COUNT(uses));
    tcase_add_test(tc, no_two_objects_have_one_handle);
    tcase_add_test(tc, what_libmlx5_does_alone_needs_no_handle);
    tcase_add_loop_test(tc, what_the_kernel_refuses_is_in_errno_too, 0, COUNT(refused));
    tcase_add_test(tc, what_libmlx5_refuses_is_returned_only);
    tcase_add_test(tc, what_succeeds_leaves_errno_alone);
    tcase_add_test(tc, a_region_of_no_bytes_is_not_at_the_beginning_of_a_page);
    tcase_add_test(tc, a_region_of_no_bytes_takes_no_bytes);
    tcase_add_test(tc, a_qp_has_room_for_more_pieces_than_the_device_promises);
    tcase_add_test(tc, a_window_that_is_bound_by_posting_keeps_its_rkey);
    tcase_add_test(tc, a_window_that_is_bound_by_the_library_has_a_new_rkey);
    suite_add_tcase(suite, tc);
    return run_statements(suite, "handles", argc, argv);
}
