/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the allocators of a parent domain: which memory each kind of object asks the program for,
 * with sizes, alignments and order of libmlx5 (mlx5_alloc_buf_custom(), mlx5_alloc_dbrec()), and
 * when the memory is given back.
 */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/kernel/uverbs.h"
#include "tests/unit/suite.h"
#include "tests/verbs/verbs_table.h"

#define PAGE    4096u
#define DEPTH   4 /* WRs of a small queue */
#define PIECES  16
#define ENDED   (-1)
#define NEVER   1000
#define DBR     MLX5DV_RES_TYPE_DBR
#define QP      MLX5DV_RES_TYPE_QP
#define CQ      MLX5DV_RES_TYPE_CQ
#define SRQ     MLX5DV_RES_TYPE_SRQ
#define RWQ     MLX5DV_RES_TYPE_RWQ
#define CONTEXT ((void *)0x1234)

/* -- the program's allocators ------------------------------------------------------------------ */

/* A call of alloc(), and its memory: pages of its own, of which it begins inside the first one if
 * the alignment allows that. */
struct piece {
    uint64_t type;
    size_t size, alignment;
    uint8_t *pages, *ptr;
    int freed; /* the number of the call of free(), from 0, or ENDED */
};

static struct verbs_table *v;
static struct ibv_pd *pd, *domain;
static struct ibv_cq *cq;
static struct piece piece[PIECES];
static int pieces, frees;
static int null_at;      /* the number of the call of alloc() that returns NULL */
static bool use_default; /* alloc() returns IBV_ALLOCATOR_USE_DEFAULT */
static size_t shift;     /* bytes to add to an address, against the alignment */
static int protection;   /* of the memory */
static int (*is_there)(void *object);
static void *object;

static size_t span(size_t size)
{
    return (size + 2 * PAGE - 1) & ~(size_t)(PAGE - 1);
}

static void *program_alloc(struct ibv_pd *of, void *context, size_t size, size_t alignment,
                           uint64_t type)
{
    struct piece *p = &piece[pieces];

    ck_assert_ptr_eq(of, domain);
    ck_assert_ptr_eq(context, CONTEXT);
    ck_assert_int_lt(pieces, PIECES);
    *p = (struct piece){.type = type, .size = size, .alignment = alignment, .freed = ENDED};
    if (pieces++ == null_at) {
        return NULL;
    }
    if (use_default) {
        return IBV_ALLOCATOR_USE_DEFAULT;
    }
    p->pages = mmap(NULL, span(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(p->pages, MAP_FAILED);
    p->ptr = p->pages + (alignment < PAGE ? PAGE - alignment : 0) + (type == DBR ? 0 : shift);
    ck_assert_int_eq(mprotect(p->pages, span(size), protection), 0);
    return p->ptr;
}

/* The memory is unmapped at once: nobody uses it any more. The object is destroyed, but its parent
 * domain cannot be deallocated yet, because the allocators are part of it. */
static void program_free(struct ibv_pd *of, void *context, void *ptr, uint64_t type)
{
    ck_assert_ptr_eq(of, domain);
    ck_assert_ptr_eq(context, CONTEXT);
    if (is_there) {
        ck_assert_int_ne(is_there(object), 0);
        ck_assert_int_eq(ibv_dealloc_pd(domain), EBUSY);
    }
    for (int i = 0; i < pieces; i++) {
        if (piece[i].ptr == ptr) {
            ck_assert_uint_eq(piece[i].type, type);
            ck_assert_int_eq(piece[i].freed, ENDED);
            piece[i].freed = frees++;
            piece[i].ptr = NULL;
            ck_assert_int_eq(munmap(piece[i].pages, span(piece[i].size)), 0);
            return;
        }
    }
    ck_abort_msg("free() of memory that alloc() did not return, or a second time");
}

static void forget(void)
{
    for (int i = 0; i < pieces; i++) {
        ck_assert_ptr_null(piece[i].ptr);
    }
    pieces = frees = 0;
    is_there = NULL;
}

static struct ibv_pd *new_domain(struct ibv_td *td, bool has_alloc, bool has_free)
{
    struct ibv_parent_domain_init_attr attr = {.pd = pd,
                                               .td = td,
                                               .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
                                                            IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
                                               .alloc = has_alloc ? program_alloc : NULL,
                                               .free = has_free ? program_free : NULL,
                                               .pd_context = CONTEXT};
    struct ibv_pd *made = ibv_alloc_parent_domain(v->a, &attr);

    ck_assert_ptr_nonnull(made);
    return made;
}

static void setup(void)
{
    v = verbs_table_new();
    pd = v->hosts->host[0].pd;
    cq = ibv_create_cq(v->a, 63, NULL, NULL, 0);
    null_at = NEVER;
    use_default = false;
    shift = 0;
    protection = PROT_READ | PROT_WRITE;
    domain = new_domain(NULL, true, true);
}

static void teardown(void)
{
    forget();
    ck_assert_int_eq(ibv_dealloc_pd(domain), 0);
    ck_assert_int_eq(ibv_destroy_cq(cq), 0);
    verbs_table_free(v);
}

/* -- the kinds of objects ---------------------------------------------------------------------- */

static struct ibv_xrcd *xrcd;

static void *make_cq_of(int cqe)
{
    struct ibv_cq_init_attr_ex attr = {
        .cqe = (uint32_t)cqe, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = domain};

    return ibv_create_cq_ex(v->a, &attr);
}

static void *make_cq(void)
{
    return make_cq_of(63);
}

static void *make_large_cq(void)
{
    return make_cq_of(100);
}

static int end_cq(void *made)
{
    return ibv_destroy_cq(made);
}

static int check_cq(void *made)
{
    return hv_cq_check(made);
}

static void *make_srq(void)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 7, .max_sge = 2}};

    return ibv_create_srq(domain, &attr);
}

static void *make_srq_ex(enum ibv_srq_type type, struct ibv_cq *of)
{
    struct ibv_srq_init_attr_ex attr = {
        .attr = {.max_wr = 7, .max_sge = 2},
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
                     (type == IBV_SRQT_XRC ? IBV_SRQ_INIT_ATTR_XRCD : IBV_SRQ_INIT_ATTR_TM),
        .srq_type = type,
        .pd = domain,
        .xrcd = xrcd,
        .cq = of,
        .tm_cap = {.max_num_tags = 4, .max_ops = DEPTH}};

    return ibv_create_srq_ex(v->a, &attr);
}

static void *make_xrc_srq(void)
{
    return make_srq_ex(IBV_SRQT_XRC, cq);
}

static struct ibv_cq *tm_cq;

static void *make_tm_srq(void)
{
    return make_srq_ex(IBV_SRQT_TM, tm_cq);
}

static int end_srq(void *made)
{
    return ibv_destroy_srq(made);
}

static int check_srq(void *made)
{
    return hv_srq_check(made);
}

static void *make_qp_of(enum ibv_qp_type type, uint32_t send, uint32_t receive)
{
    struct ibv_qp_init_attr attr = {.qp_type = type,
                                    .send_cq = cq,
                                    .recv_cq = cq,
                                    .cap = {send, receive, send ? 1 : 0, receive ? 1 : 0, 0}};

    return ibv_create_qp(domain, &attr);
}

#define MAKE_QP(name, type, send, receive)                                                         \
    static void *make_##name(void)                                                                 \
    {                                                                                              \
        return make_qp_of(type, send, receive);                                                    \
    }

MAKE_QP(rc, IBV_QPT_RC, DEPTH, DEPTH)
MAKE_QP(large_rc, IBV_QPT_RC, 64, 64)
MAKE_QP(uc, IBV_QPT_UC, DEPTH, DEPTH)
MAKE_QP(ud, IBV_QPT_UD, DEPTH, DEPTH)
MAKE_QP(receiver, IBV_QPT_UD, 0, DEPTH)
MAKE_QP(idle, IBV_QPT_RC, 0, 0)
MAKE_QP(raw, IBV_QPT_RAW_PACKET, DEPTH, DEPTH)
MAKE_QP(raw_sender, IBV_QPT_RAW_PACKET, DEPTH, 0)
MAKE_QP(raw_receiver, IBV_QPT_RAW_PACKET, 0, 257)

static void *make_dc(enum mlx5dv_dc_type type)
{
    struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 7, .max_sge = 2}};
    static struct ibv_srq *srq; /* not in the domain */
    struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_DRIVER,
                                       .send_cq = cq,
                                       .recv_cq = cq,
                                       .cap = {.max_send_wr = DEPTH, .max_send_sge = 1},
                                       .comp_mask = IBV_QP_INIT_ATTR_PD,
                                       .pd = domain};
    struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
                                     .dc_init_attr = {.dc_type = type}};

    if (type == MLX5DV_DCTYPE_DCT) {
        srq = srq ? srq : ibv_create_srq(pd, &srq_attr);
        attr.srq = srq;
        attr.cap = (struct ibv_qp_cap){0};
    }
    return hv_dv_create_qp(v->a, &attr, &dv);
}

static void *make_dci(void)
{
    return make_dc(MLX5DV_DCTYPE_DCI);
}

static int end_qp(void *made)
{
    return ibv_destroy_qp(made);
}

static int check_qp(void *made)
{
    return hv_qp_check(made);
}

static void *make_wq(void)
{
    struct ibv_wq_init_attr attr = {
        .wq_type = IBV_WQT_RQ, .max_wr = DEPTH, .max_sge = 1, .pd = domain, .cq = cq};

    return ibv_create_wq(v->a, &attr);
}

static int end_wq(void *made)
{
    return ibv_destroy_wq(made);
}

/* The pieces of memory that a kind of object asks for, in this order; frees has the order in which
 * it gives them back. */
static const struct kind {
    const char *name;
    void *(*make)(void);
    int (*end)(void *made);
    int (*check)(void *made); /* 0: the kernel half knows the object */
    struct {
        uint64_t type;
        size_t size, alignment;
    } asks[4];
    int frees[4];   /* the place of each in the order of free() */
    bool untouched; /* neither ring nor record is read or written before it is used */
} kinds[] = {
    {"CQ", make_cq, end_cq, check_cq, {{CQ, PAGE, PAGE}, {DBR, 8, 8}}, {1, 0}, false},
    {"large CQ",
     make_large_cq,
     end_cq,
     check_cq,
     {{CQ, 2 * PAGE, PAGE}, {DBR, 8, 8}},
     {1, 0},
     false},
    /* 16 WQEs of 64 bytes, of which the program can post 7 */
    {"SRQ", make_srq, end_srq, check_srq, {{SRQ, 1024, PAGE}, {DBR, 8, 8}}, {1, 0}, false},
    {"XRC SRQ", make_xrc_srq, end_srq, check_srq, {{SRQ, 1024, PAGE}, {DBR, 8, 8}}, {1, 0}, false},
    /* its internal QP has 4 WQEs of 256 bytes */
    {"TM SRQ",
     make_tm_srq,
     end_srq,
     NULL,
     {{SRQ, 1024, PAGE}, {DBR, 8, 8}, {QP, 1024, 64}, {DBR, 8, 8}},
     {3, 2, 1, 0},
     false},
    /* 4 WQEs of 256 bytes, because it could bind windows, and 4 of 16 bytes */
    {"RC QP", make_rc, end_qp, check_qp, {{QP, 1088, 64}, {DBR, 8, 8}}, {1, 0}, true},
    /* five pages: one page of 32 KiB, of which page_offset counts 64ths */
    {"large RC QP", make_large_rc, end_qp, check_qp, {{QP, 17408, 512}, {DBR, 8, 8}}, {1, 0}, true},
    {"UC QP", make_uc, end_qp, check_qp, {{QP, 1088, 64}, {DBR, 8, 8}}, {1, 0}, true},
    {"UD QP", make_ud, end_qp, check_qp, {{QP, 576, 64}, {DBR, 8, 8}}, {1, 0}, true},
    {"UD receiver", make_receiver, end_qp, check_qp, {{QP, 64, 64}, {DBR, 8, 8}}, {1, 0}, true},
    {"QP without queues", make_idle, end_qp, check_qp, {{DBR, 8, 8}}, {0}, true},
    {"DCI", make_dci, end_qp, check_qp, {{QP, 1024, 64}, {DBR, 8, 8}}, {1, 0}, true},
    {"raw packet QP",
     make_raw,
     end_qp,
     check_qp,
     {{QP, PAGE, PAGE}, {QP, PAGE, PAGE}, {DBR, 8, 8}},
     {1, 2, 0},
     true},
    {"raw sender",
     make_raw_sender,
     end_qp,
     check_qp,
     {{QP, PAGE, PAGE}, {DBR, 8, 8}},
     {1, 0},
     true},
    /* 512 WQEs of 16 bytes */
    {"raw receiver",
     make_raw_receiver,
     end_qp,
     check_qp,
     {{QP, 2 * PAGE, PAGE}, {DBR, 8, 8}},
     {1, 0},
     true},
    {"WQ", make_wq, end_wq, NULL, {{RWQ, PAGE, PAGE}, {DBR, 8, 8}}, {1, 0}, true},
};

static int asks_of(const struct kind *kind)
{
    int n = 0;

    while (n < 4 && kind->asks[n].size) {
        n++;
    }
    return n;
}

/* Runs test for each kind, with the objects that some kinds need. */
static void with_each_kind(void (*test)(const struct kind *kind))
{
    struct ibv_xrcd_init_attr xrcd_attr = {.comp_mask =
                                               IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                                           .fd = -1,
                                           .oflags = O_CREAT};
    struct ibv_cq_init_attr_ex cq_attr = {.cqe = 63, .wc_flags = IBV_WC_EX_WITH_TM_INFO};

    xrcd = ibv_open_xrcd(v->a, &xrcd_attr);
    ck_assert_ptr_nonnull(xrcd);
    tm_cq = ibv_cq_ex_to_cq(ibv_create_cq_ex(v->a, &cq_attr));
    ck_assert_ptr_nonnull(tm_cq);
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        test(&kinds[i]);
        forget();
        ck_assert_int_eq(hv_pd(domain)->refs, 0);
    }
    ck_assert_int_eq(ibv_destroy_cq(tm_cq), 0);
    ck_assert_int_eq(ibv_close_xrcd(xrcd), 0);
}

static void *must_make(const struct kind *kind)
{
    void *made = kind->make();

    ck_assert_msg(made != NULL, "%s: errno %d", kind->name, errno);
    ck_assert_msg(pieces == asks_of(kind), "%s asked %d times", kind->name, pieces);
    return made;
}

static void must_end(const struct kind *kind, void *made)
{
    object = made;
    is_there = kind->check;
    ck_assert_msg(kind->end(made) == 0, "%s: errno %d", kind->name, errno);
}

/* -- what is asked ------------------------------------------------------------------------------
 */

static void check_calls(const struct kind *kind)
{
    void *made = must_make(kind);

    ck_assert_int_eq(ibv_dealloc_pd(domain), EBUSY);
    for (int i = 0; i < pieces; i++) {
        ck_assert_msg(piece[i].type == kind->asks[i].type && piece[i].size == kind->asks[i].size &&
                          piece[i].alignment == kind->asks[i].alignment,
                      "%s asked for %zu bytes, aligned to %zu, of type %d", kind->name,
                      piece[i].size, piece[i].alignment, (int)piece[i].type);
    }
    ck_assert_int_eq(frees, 0);
    must_end(kind, made);
    ck_assert_msg(frees == pieces, "%s freed %d of %d", kind->name, frees, pieces);
    for (int i = 0; i < pieces; i++) {
        ck_assert_msg(piece[i].freed == kind->frees[i], "%s: free() %d was for %d", kind->name,
                      piece[i].freed, i);
    }
}

START_TEST(each_kind_asks_for_its_memory_and_gives_it_back)
{
    with_each_kind(check_calls);
}
END_TEST

/* A thread domain beside the allocators changes no call. */
START_TEST(a_thread_domain_changes_no_call)
{
    struct ibv_td_init_attr attr = {0};
    struct ibv_td *td = ibv_alloc_td(v->a, &attr);

    ck_assert_int_eq(ibv_dealloc_pd(domain), 0);
    domain = new_domain(td, true, true);
    with_each_kind(check_calls);
    ck_assert_int_eq(ibv_dealloc_pd(domain), 0);
    ck_assert_int_eq(ibv_dealloc_td(td), 0);
    domain = new_domain(NULL, true, true);
}
END_TEST

static void check_default(const struct kind *kind)
{
    void *made = must_make(kind);

    must_end(kind, made);
    ck_assert_int_eq(frees, 0);
}

START_TEST(what_is_left_to_the_library_is_not_freed_by_the_program)
{
    use_default = true;
    with_each_kind(check_default);
}
END_TEST

static void check_not_asked(const struct kind *kind)
{
    void *made = kind->make();

    ck_assert_ptr_nonnull(made);
    must_end(kind, made);
    ck_assert_int_eq(pieces, 0);
}

/* mlx5_is_custom_alloc() */
START_TEST(one_function_alone_is_not_used)
{
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(ibv_dealloc_pd(domain), 0);
        domain = new_domain(NULL, i == 0, i == 1);
        with_each_kind(check_not_asked);
    }
}
END_TEST

/* A DCT has no memory, and objects outside the domain do not ask. */
START_TEST(objects_outside_the_domain_do_not_ask)
{
    struct ibv_pd *asks = domain;
    struct ibv_qp *dct = make_dc(MLX5DV_DCTYPE_DCT);
    struct ibv_srq *srq;

    ck_assert_ptr_nonnull(dct);
    srq = dct->srq;
    ck_assert_int_eq(ibv_destroy_qp(dct), 0);
    ck_assert_int_eq(ibv_destroy_srq(srq), 0);
    ck_assert_int_eq(pieces, 0);
    domain = pd;
    check_not_asked(&(struct kind){.name = "QP", .make = make_rc, .end = end_qp});
    check_not_asked(&(struct kind){.name = "SRQ", .make = make_srq, .end = end_srq});
    check_not_asked(&(struct kind){.name = "WQ", .make = make_wq, .end = end_wq});
    domain = asks;
}
END_TEST

/* -- failures -----------------------------------------------------------------------------------
 */

static void check_null(const struct kind *kind)
{
    for (null_at = 0; null_at < asks_of(kind); null_at++) {
        errno = 0;
        ck_assert_msg(kind->make() == NULL, "%s with NULL %d", kind->name, null_at);
        ck_assert_int_eq(errno, ENOMEM);
        ck_assert_int_eq(pieces, null_at + 1);
        ck_assert_msg(frees == null_at, "%s freed %d of %d", kind->name, frees, null_at);
        forget();
    }
    null_at = NEVER;
}

START_TEST(without_memory_nothing_is_made_and_nothing_stays)
{
    with_each_kind(check_null);
}
END_TEST

static void check_refused(const struct kind *kind)
{
    table_refuse(v, 0, PRM_CMD_STATUS_LIM_ERR);
    ck_assert_msg(kind->make() == NULL, "%s", kind->name);
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_int_eq(frees, pieces);
}

START_TEST(if_the_device_refuses_the_memory_is_given_back)
{
    with_each_kind(check_refused);
}
END_TEST

static void check_shifted(const struct kind *kind)
{
    if (kind->asks[0].type != DBR) {
        errno = 0;
        ck_assert_msg(kind->make() == NULL, "%s", kind->name);
        ck_assert_int_eq(errno, EINVAL);
        ck_assert_int_eq(frees, pieces);
    }
}

/* The device counts where a ring begins in 64ths of a page. */
START_TEST(a_ring_that_the_device_cannot_reach_is_refused)
{
    shift = 8;
    with_each_kind(check_shifted);
}
END_TEST

/* -- the memory ----------------------------------------------------------------------------------
 */

static void check_untouched(const struct kind *kind)
{
    if (kind->untouched) {
        protection = PROT_NONE;
        must_end(kind, must_make(kind));
        protection = PROT_READ | PROT_WRITE;
    }
}

/* As libmlx5: the memory can be a GPU's, which the CPU cannot reach. */
START_TEST(creation_does_not_touch_the_memory_of_qps_and_wqs)
{
    with_each_kind(check_untouched);
}
END_TEST

static void send_one(struct ibv_qp *from, struct ibv_srq *to, struct ibv_mr *mr,
                     struct ibv_mr *into, uint32_t i)
{
    struct ibv_sge out = {(uintptr_t)mr->addr + i % 64, 64, mr->lkey},
                   in = {(uintptr_t)into->addr, PAGE, into->lkey};
    struct ibv_send_wr send = {.wr_id = i,
                               .sg_list = &out,
                               .num_sge = 1,
                               .opcode = IBV_WR_SEND,
                               .send_flags = IBV_SEND_SIGNALED},
                       *bad_send;
    struct ibv_recv_wr receive = {.wr_id = i, .sg_list = &in, .num_sge = 1}, *bad;

    memset(into->addr, 0, 64);
    ck_assert_int_eq(ibv_post_srq_recv(to, &receive, &bad), 0);
    ck_assert_int_eq(ibv_post_send(from, &send, &bad_send), 0);
}

/* The QP's ring begins inside a page, and ring and record of each queue are where the program put
 * them: WQEs, counters and CQEs are there. The queues go round many times. */
static void check_traffic(size_t shift_of_cq)
{
    struct verbs_host *host = &v->hosts->host[0];
    struct ibv_mr *mr = table_mr_new(v, 0), *into = table_mr_new(v, 0);
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {DEPTH, 0, 1, 0, 0}};
    struct ibv_qp *qp;
    struct ibv_srq *srq;
    struct ibv_cq *both;
    const uint8_t *cq_ring, *qp_ring;
    const uint32_t *cq_record, *srq_record, *qp_record;

    shift = shift_of_cq;
    both = ibv_cq_ex_to_cq(make_cq());
    srq = make_srq();
    shift = 0;
    attr.send_cq = attr.recv_cq = both;
    attr.srq = srq;
    qp = ibv_create_qp(domain, &attr);
    ck_assert_ptr_nonnull(qp);
    verbs_connect(qp, host, qp->qp_num, NULL);
    cq_ring = piece[0].ptr;
    cq_record = (void *)piece[1].ptr;
    srq_record = (void *)piece[3].ptr;
    qp_ring = piece[4].ptr;
    qp_record = (void *)piece[5].ptr;
    ck_assert_uint_ne((uintptr_t)qp_ring % PAGE, 0);
    for (uint32_t i = 1; i <= 200; i++) {
        send_one(qp, srq, mr, into, i);
        for (int ends = 0; ends < 2; ends++) {
            struct ibv_wc wc = table_wc(v, both);

            ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
            ck_assert_uint_eq(wc.wr_id, i);
        }
        ck_assert_mem_eq(into->addr, (uint8_t *)mr->addr + i % 64, 64);
        ck_assert_uint_eq(GUINT32_FROM_BE(*srq_record), i);
        ck_assert_uint_eq(GUINT32_FROM_BE(qp_record[1]), i);
        ck_assert_uint_eq(GUINT32_FROM_BE(cq_record[0]), 2 * i);
        /* WQEs have 64 bytes: the opcode is in the lowest byte of the first word */
        ck_assert_uint_eq(qp_ring[(i - 1) % (attr.cap.max_send_wr * 4) * 64 + 3],
                          PRM_WQE_OPCODE_SEND);
        /* the owner bit of the last CQE: which time round the ring it is */
        ck_assert_uint_eq(cq_ring[(2 * i - 1) % 64 * 64 + 63] & 1, ((2 * i - 1) / 64) & 1);
    }
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    ck_assert_int_eq(ibv_destroy_srq(srq), 0);
    ck_assert_int_eq(ibv_destroy_cq(both), 0);
    ck_assert_int_eq(frees, pieces);
    table_mr_free(mr);
    table_mr_free(into);
}

START_TEST(the_device_uses_the_programs_memory)
{
    check_traffic(0);
}
END_TEST

/* CQs and SRQs, too, can begin inside a page, although libmlx5 does not ask for that. */
START_TEST(every_ring_can_begin_inside_a_page)
{
    check_traffic(5 * 64);
}
END_TEST

/* -- resizing ------------------------------------------------------------------------------------
 */

START_TEST(a_cq_that_is_resized_gives_its_first_ring_back)
{
    struct ibv_mr *mr = table_mr_new(v, 0), *into = table_mr_new(v, 0);
    struct ibv_cq *resized = ibv_cq_ex_to_cq(make_cq());
    struct ibv_qp_init_attr attr = {
        .qp_type = IBV_QPT_RC, .send_cq = resized, .recv_cq = resized, .cap = {DEPTH, 0, 1, 0, 0}};
    struct ibv_qp *qp;

    attr.srq = make_srq();
    qp = ibv_create_qp(domain, &attr);
    verbs_connect(qp, &v->hosts->host[0], qp->qp_num, NULL);
    send_one(qp, attr.srq, mr, into, 1);
    table_wait(v); /* two CQEs move to the new ring */
    null_at = pieces;
    ck_assert_int_eq(ibv_resize_cq(resized, 200), -1);
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_int_eq(frees, 0);
    null_at = NEVER;
    table_refuse(v, 0, PRM_CMD_STATUS_LIM_ERR);
    ck_assert_int_ne(ibv_resize_cq(resized, 200), 0);
    ck_assert_int_eq(piece[7].freed, 0); /* the new one */
    shift = 64;                          /* begins inside a page */
    ck_assert_int_eq(ibv_resize_cq(resized, 200), 0);
    shift = 0;
    ck_assert_uint_eq(piece[8].type, CQ);
    ck_assert_uint_eq(piece[8].size, 4 * PAGE);
    ck_assert_uint_eq(piece[8].alignment, PAGE);
    ck_assert_int_eq(piece[0].freed, 1); /* the first one */
    ck_assert_int_eq(piece[1].freed, ENDED);
    ck_assert_int_eq(pieces, 9);
    ck_assert_int_eq(ibv_resize_cq(resized, 201), 0); /* the same size */
    ck_assert_int_eq(pieces, 9);
    for (uint32_t i = 1; i < 300; i++) {
        ck_assert_uint_eq(table_wc(v, resized).wr_id, i);
        ck_assert_uint_eq(table_wc(v, resized).wr_id, i);
        send_one(qp, attr.srq, mr, into, i + 1);
    }
    table_wait(v);
    ck_assert_int_eq(ibv_destroy_qp(qp), 0);
    ck_assert_int_eq(ibv_destroy_srq(attr.srq), 0);
    ck_assert_int_eq(ibv_destroy_cq(resized), 0);
    table_mr_free(mr);
    table_mr_free(into);
}
END_TEST

/* -- the end --------------------------------------------------------------------------------------
 */

/* The memory stays with the program, as with libmlx5. */
START_TEST(a_device_that_is_closed_frees_nothing)
{
    static void *left[2]; /* reachable, so LeakSanitizer does not report them */
    struct ibv_context *first = v->a;

    v->a = ibv_open_device(v->hosts->host[0].device);
    pd = ibv_alloc_pd(v->a);
    ck_assert_int_eq(ibv_dealloc_pd(domain), 0);
    domain = new_domain(NULL, true, true);
    left[0] = make_cq();
    left[1] = make_srq();
    ck_assert_ptr_nonnull(left[0]);
    ck_assert_ptr_nonnull(left[1]);
    ck_assert_int_eq(pieces, 4);
    ck_assert_int_eq(ibv_close_device(v->a), 0);
    table_wait(v);
    ck_assert_int_eq(frees, 0);
    pieces = 0;
    v->a = first;
    pd = v->hosts->host[0].pd;
    domain = new_domain(NULL, true, true);
}
END_TEST

Suite *unit_suite(void)
{
    TCase *tc = tcase_create("allocators");
    Suite *suite = suite_create("verbs-allocators");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, each_kind_asks_for_its_memory_and_gives_it_back);
    tcase_add_test(tc, a_thread_domain_changes_no_call);
    tcase_add_test(tc, what_is_left_to_the_library_is_not_freed_by_the_program);
    tcase_add_test(tc, one_function_alone_is_not_used);
    tcase_add_test(tc, objects_outside_the_domain_do_not_ask);
    tcase_add_test(tc, without_memory_nothing_is_made_and_nothing_stays);
    tcase_add_test(tc, if_the_device_refuses_the_memory_is_given_back);
    tcase_add_test(tc, a_ring_that_the_device_cannot_reach_is_refused);
    tcase_add_test(tc, creation_does_not_touch_the_memory_of_qps_and_wqs);
    tcase_add_test(tc, the_device_uses_the_programs_memory);
    tcase_add_test(tc, every_ring_can_begin_inside_a_page);
    tcase_add_test(tc, a_cq_that_is_resized_gives_its_first_ring_back);
    tcase_add_test(tc, a_device_that_is_closed_frees_nothing);
    suite_add_tcase(suite, tc);
    return suite;
}
