/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements two_hcas.h, the fixture of the simulation tests. */
#include <string.h>
#include "tests/sim/two_hcas.h"
#include "wire/capture.h"
#include "wire/pair.h"

#define SLOTS 64

static void on_frame(void *opaque, const uint8_t *frame, size_t len)
{
    struct two_hcas *t = opaque;

    g_checksum_update(t->trace, (const guchar *)&t->world->now_ns, sizeof(t->world->now_ns));
    g_checksum_update(t->trace, frame, (gssize)len);
    t->frames++;
}

static void bring_up(struct node *node)
{
    GError *err = NULL;

    node->drv = drv_open(inproc_pci(node->hca), &err);
    require(node->drv, "%s", err ? err->message : "");
    g_assert_cmpint(drv_set_gid(node->drv, 0, node->gid), ==, 0);
    g_assert_cmpint((node->in_cqe ? drv_create_cq128 : drv_create_cq)(node->drv, LOG_CQ, &node->cq),
                    ==, 0);
}

static void node_init(struct two_hcas *t, struct node *node, uint8_t host, struct wire_port *end,
                      const struct lossy_config *loss, const char *profile)
{
    struct fw_config config = {.profile = profile, .mac = {0x02, 0, 0, 0, 0, host}};
    struct lossy_config faults = {0};
    GError *err = NULL;

    if (loss) {
        faults = *loss;
        faults.seed = faults.seed * 2 + host;
    }
    node->hca = inproc_hca_new(t->world, &config, &err);
    require(node->hca, "%s", err ? err->message : "");
    node->port = lossy_new(end, &faults, on_frame, t);
    fw_set_wire(node->hca->fw, node->port);
    drv_ipv4_gid(node->gid, host);
    bring_up(node);
    node->next_va = 0x100000000 * host;
    node->qps = g_ptr_array_new();
    node->srqs = g_ptr_array_new();
    node->bufs = g_ptr_array_new();
}

static uint64_t world_clock_ns(void *opaque)
{
    const struct inproc_world *world = opaque;

    return world->now_ns;
}

static struct two_hcas *two_hcas_make(const struct lossy_config *loss, const char *capture,
                                      const char *profile, unsigned in_cqe)
{
    struct two_hcas *t = g_new0(struct two_hcas, 1);
    struct wire_port *ends[2];
    GError *err = NULL;

    t->world = inproc_world_new();
    t->trace = g_checksum_new(G_CHECKSUM_SHA256);
    wire_pair_new(SLOTS, ends);
    if (capture) {
        ends[0] = wire_capture_new(
            ends[0], capture,
            &(struct wire_capture_options){.clock_ns = world_clock_ns, .clock_opaque = t->world},
            &err);
        require(ends[0], "%s", err ? err->message : "");
    }
    t->a.in_cqe = t->b.in_cqe = in_cqe;
    node_init(t, &t->a, 1, ends[0], loss, profile);
    node_init(t, &t->b, 2, ends[1], loss, profile);
    return t;
}

struct two_hcas *two_hcas_new(const struct lossy_config *loss)
{
    return two_hcas_make(loss, NULL, NULL, 0);
}

struct two_hcas *two_hcas_captured(const struct lossy_config *loss, const char *capture)
{
    return two_hcas_make(loss, capture, NULL, 0);
}

struct two_hcas *two_hcas_of(const char *profile)
{
    return two_hcas_make(NULL, NULL, profile, 0);
}

struct two_hcas *two_hcas_data_in_cqe(void)
{
    return two_hcas_make(NULL, NULL, NULL, 64);
}

/* Frees the driver's own data of an object that the device has forgotten. */
static void forget(struct node *node)
{
    for (unsigned i = 0; i < node->qps->len; i++) {
        struct drv_qp *qp = g_ptr_array_index(node->qps, i);

        drv_free(node->drv, &qp->ring);
        g_free(qp);
    }
    for (unsigned i = 0; i < node->srqs->len; i++) {
        struct drv_srq *srq = g_ptr_array_index(node->srqs, i);

        drv_free(node->drv, &srq->ring);
        g_free(srq);
    }
    for (unsigned i = 0; i < node->bufs->len; i++) {
        struct buf *buf = g_ptr_array_index(node->bufs, i);

        drv_free(node->drv, &buf->mem);
        g_free(buf);
    }
    g_ptr_array_set_size(node->qps, 0);
    g_ptr_array_set_size(node->srqs, 0);
    g_ptr_array_set_size(node->bufs, 0);
    drv_free(node->drv, &node->cq.ring);
}

void node_revive(struct node *node)
{
    fw_reset(node->hca->fw);
    forget(node);
    node->drv->up = false;
    drv_close(node->drv);
    g_assert_cmpuint(node->hca->outstanding, ==, 0);
    bring_up(node);
}

void node_unplug(struct node *node)
{
    if (node->port) {
        fw_set_wire(node->hca->fw, NULL);
        wire_close(node->port);
        node->port = NULL;
    }
}

static void node_clear(struct node *node)
{
    for (unsigned i = 0; i < node->qps->len; i++) {
        struct drv_qp *qp = g_ptr_array_index(node->qps, i);

        g_assert_cmpint(drv_destroy_qp(qp), ==, 0);
        g_free(qp);
    }
    for (unsigned i = 0; i < node->srqs->len; i++) {
        struct drv_srq *srq = g_ptr_array_index(node->srqs, i);

        g_assert_cmpint(drv_destroy_srq(node->drv, srq), ==, 0);
        g_free(srq);
    }
    for (unsigned i = 0; i < node->bufs->len; i++) {
        struct buf *buf = g_ptr_array_index(node->bufs, i);

        g_assert_cmpint(drv_dereg_mr(node->drv, &buf->mr), ==, 0);
        drv_free(node->drv, &buf->mem);
        g_free(buf);
    }
    g_ptr_array_free(node->qps, TRUE);
    g_ptr_array_free(node->srqs, TRUE);
    g_ptr_array_free(node->bufs, TRUE);
    g_assert_cmpint(drv_destroy_cq(node->drv, &node->cq), ==, 0);
    g_assert_cmpuint(drv_close(node->drv), ==, 0);
    g_assert_cmpuint(node->hca->log_errors, ==, 0);
    g_assert_cmpuint(node->hca->outstanding, ==, 0);
}

void two_hcas_free(struct two_hcas *t)
{
    node_clear(&t->a);
    node_clear(&t->b);
    node_unplug(&t->a);
    node_unplug(&t->b);
    inproc_world_free(t->world);
    g_checksum_free(t->trace);
    g_free(t);
}

/* -- objects ------------------------------------------------------------------------------------
 */

/* A pattern that shows a byte in the wrong place; never 0. */
void fill(uint8_t *ptr, size_t len, unsigned seed)
{
    uint32_t x = seed * 2654435761u + 1;

    for (size_t i = 0; i < len; i++) {
        x = x * 1664525 + 1013904223;
        ptr[i] = (uint8_t)(x >> 24) | 1;
    }
}

struct buf *node_buf(struct node *node, size_t len, unsigned access, unsigned seed)
{
    struct buf *buf = g_new0(struct buf, 1);

    buf->mem = drv_alloc(node->drv, MAX(len, 1));
    buf->ptr = buf->mem.ptr;
    buf->va = node->next_va;
    buf->len = len;
    node->next_va += (len + 2 * PCI_PAGE) / PCI_PAGE * PCI_PAGE;
    g_assert_cmpint(
        drv_reg_mr(node->drv, node->drv->pdn, &buf->mem, buf->va, MAX(len, 1), access, &buf->mr),
        ==, 0);
    if (seed) {
        fill(buf->ptr, len, seed);
    }
    g_ptr_array_add(node->bufs, buf);
    return buf;
}

struct drv_sge buf_sge(const struct buf *buf, size_t offset, size_t len)
{
    return (struct drv_sge){.va = buf->va + offset, .len = (uint32_t)len, .lkey = buf->mr.key};
}

struct drv_srq *node_srq(struct node *node, unsigned log_size)
{
    struct drv_srq *srq = g_new0(struct drv_srq, 1);

    g_assert_cmpint(drv_create_srq(node->drv, node->drv->pdn, log_size, srq), ==, 0);
    g_ptr_array_add(node->srqs, srq);
    return srq;
}

struct drv_qp *node_qp(struct node *node, uint8_t st, struct drv_srq *srq)
{
    struct drv_qp *qp = g_new0(struct drv_qp, 1);
    struct drv_qp_attr attr = {
        .st = st,
        .pdn = node->drv->pdn,
        .send_cq = &node->cq,
        .recv_cq = &node->cq,
        .srq = srq,
        .log_sq = LOG_SQ,
        .log_rq = LOG_RQ,
        .max_recv_sge = 4,
        .cs_req = node->in_cqe == 64 ? PRM_CS_REQ_UP_TO_64B
                  : node->in_cqe     ? PRM_CS_REQ_UP_TO_32B
                                     : 0,
        .cs_res = node->in_cqe == 64 ? PRM_CS_RES_UP_TO_64B
                  : node->in_cqe     ? PRM_CS_RES_UP_TO_32B
                                     : 0,
    };

    g_assert_cmpint(drv_create_qp(node->drv, &attr, qp), ==, 0);
    g_ptr_array_add(node->qps, qp);
    return qp;
}

struct drv_path path_to(const struct node *to, const struct drv_qp *qp)
{
    struct drv_path path = {.remote_qpn = qp->qpn};

    memcpy(path.mac, to->drv->mac, 6);
    memcpy(path.gid, to->gid, 16);
    return path;
}

static void connect_one(struct drv_qp *qp, const struct node *to, const struct drv_qp *peer,
                        const struct drv_path *usual)
{
    struct drv_path path = *usual, there = path_to(to, peer);

    path.remote_qpn = there.remote_qpn;
    memcpy(path.mac, there.mac, 6);
    memcpy(path.gid, there.gid, 16);
    g_assert_cmpint(drv_qp_connect(qp, &path), ==, 0);
}

void connect_qps(struct node *na, struct drv_qp *a, struct node *nb, struct drv_qp *b,
                 const struct drv_path *path)
{
    static const struct drv_path usual;

    connect_one(a, nb, b, path ? path : &usual);
    connect_one(b, na, a, path ? path : &usual);
}

struct qp_pair qp_pair_new(struct two_hcas *t, uint8_t st, const struct drv_path *path)
{
    struct qp_pair pair = {.a = node_qp(&t->a, st, NULL), .b = node_qp(&t->b, st, NULL)};

    connect_qps(&t->a, pair.a, &t->b, pair.b, path);
    return pair;
}

/* -- expectations ------------------------------------------------------------------------------ */

struct drv_wc next_wc(struct node *node)
{
    struct drv_wc wc;

    require(drv_wait_cq(node->drv, &node->cq, &wc, 100 * SECOND), "no completion came");
    return wc;
}

struct drv_wc expect_wc(struct node *node, const struct drv_qp *qp, uint8_t opcode)
{
    struct drv_wc wc = next_wc(node);

    require(wc.opcode == opcode, "completion 0x%x with syndrome 0x%x, wanted 0x%x", wc.opcode,
            wc.syndrome, opcode);
    g_assert_cmpuint(wc.qpn, ==, qp->qpn);
    return wc;
}

void expect_error(struct node *node, const struct drv_qp *qp, uint8_t opcode, uint8_t syndrome)
{
    struct drv_wc wc = expect_wc(node, qp, opcode);

    g_assert_cmpuint(wc.syndrome, ==, syndrome);
    g_assert_cmpuint(wc.vendor_syndrome, !=, 0);
}

void expect_no_wc(struct two_hcas *t, struct node *node)
{
    struct drv_wc wc;

    inproc_settle(t->world);
    g_assert_true(!drv_poll_cq(node->drv, &node->cq, &wc));
}

void expect_event(struct node *node, uint8_t type, uint32_t num)
{
    struct drv_event event;

    require(drv_wait_event(node->drv, type, num, &event, SECOND), "no event 0x%x came", type);
}

uint8_t qp_state(struct drv_qp *qp)
{
    struct prm_qpc qpc[1];

    g_assert_cmpint(drv_query_qp(qp, qpc), ==, 0);
    return (uint8_t)PRM_GET(qpc, qpc, state);
}

void ping(struct two_hcas *t)
{
    struct qp_pair rc = qp_pair_new(t, PRM_QP_ST_RC, NULL);
    struct buf *src = node_buf(&t->a, 5000, DRV_ALL, 1), *dst = node_buf(&t->b, 5000, DRV_ALL, 0);
    struct drv_sge from = buf_sge(src, 0, 5000), to = buf_sge(dst, 0, 5000);
    struct drv_send send = {
        .opcode = PRM_WQE_OPCODE_SEND, .flags = DRV_SIGNALED, .sge = &from, .num_sge = 1};

    drv_post_recv(rc.b, &to, 1);
    drv_post_send(rc.a, &send);
    expect_wc(&t->b, rc.b, PRM_CQE_OPCODE_RESP_SEND);
    expect_wc(&t->a, rc.a, PRM_CQE_OPCODE_REQ);
    require(memcmp(src->ptr, dst->ptr, 5000) == 0, "a message arrived otherwise than it was sent");
}
