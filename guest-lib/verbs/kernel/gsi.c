/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pair 1, which belongs to the kernel half and uses the driver. */
#include "guest-lib/verbs/kernel/gsi.h"
#include <string.h>
#include "guest-lib/verbs/kernel/hca.h"
#include "guest-lib/verbs/kernel/kernel.h"

#define QPN_GSI   1
#define GSI_QKEY  0x80010000
#define LOG_RECVS 9
#define RECVS     (1u << LOG_RECVS)
#define SENDS     128 /* outstanding sends */
#define LOG_SQ    10  /* WQEBBs: a datagram is in its WQE, which takes 6 */
#define LOG_CQ    10
#define WAITING   4096 /* datagrams that may wait to be sent */
/* datagrams that may wait for a neighbour's answer; the oldest makes room */
#define UNRESOLVED  256
#define GRH         40
#define IPV4_IN_GRH 20 /* offset of the IPv4 header in the place of a GRH */
#define RECV_STRIDE 512
#define RECV_LEN    (GRH + HV_MAD_LEN)
#define IPV4_SRC    12
#define IPV4_DST    16
#define IPV6_SRC    8
#define IPV6_DST    24
#define IPV4_AT     12 /* offset in a GID */

/* A datagram that waits to be sent. */
struct gsi_send {
    struct drv_path path;
    uint64_t until_ns; /* how long it waits for its MAC address */
    uint8_t mad[HV_MAD_LEN];
};

/* Readers of `answered` that have not looked yet. */
enum {
    GSI_ANSWERED_HERE = 1,
    GSI_ANSWERED_CALLER = 2
};

struct hv_gsi {
    struct hv_context *ctx;
    struct hv_hca *hca;
    void (*arrived)(void *opaque);
    void *opaque;
    struct drv_cq cq;
    struct drv_qp qp;
    struct drv_mem mem;
    struct drv_mr mr;
    unsigned sending;
    GQueue waiting;    /* struct gsi_send */
    GQueue unresolved; /* struct gsi_send, in the order in which they are to be sent */
    gint event;        /* the CQ was armed and has a completion */
    guint answered;    /* GSI_ANSWERED_: a neighbour has answered since these readers looked */
    gint ended;        /* a host of the wire may have ended since the last look */
    bool armed;
    bool tells_ends; /* gsi_on_host_end() will be called */
};

static void gsi_post_recv(struct hv_gsi *gsi, unsigned slot)
{
    struct drv_sge sge = {
        .va = gsi->mem.bus + (uint64_t)slot * RECV_STRIDE, .len = RECV_LEN, .lkey = gsi->mr.key};

    drv_post_recv(&gsi->qp, &sge, 1);
}

/* Makes the CQ, the key and the QP. *made says which of them were made. */
static int gsi_make(struct hv_gsi *gsi, unsigned *made)
{
    struct drv *drv = gsi->hca->drv;
    struct drv_qp_attr attr = {.st = PRM_QP_ST_QP1,
                               .pdn = drv->pdn,
                               .send_cq = &gsi->cq,
                               .recv_cq = &gsi->cq,
                               .log_sq = LOG_SQ,
                               .log_rq = LOG_RECVS,
                               .max_recv_sge = 1};
    struct drv_path path = {0};
    int status = drv_create_cq(drv, LOG_CQ, &gsi->cq);

    if (!status) {
        *made = 1;
        status = drv_reg_mr(drv, drv->pdn, &gsi->mem, gsi->mem.bus, gsi->mem.size, DRV_LOCAL_WRITE,
                            &gsi->mr);
    }
    if (!status) {
        *made = 2;
        status = drv_create_qp(drv, &attr, &gsi->qp);
    }
    if (!status) {
        *made = 3;
        gsi->qp.qkey = GSI_QKEY;
        status = drv_qp_connect(&gsi->qp, &path);
    }
    return status;
}

static void gsi_unmake(struct hv_gsi *gsi, unsigned made)
{
    struct drv *drv = gsi->hca->drv;

    if (made >= 3) {
        drv_destroy_qp(&gsi->qp);
    }
    if (made >= 2) {
        drv_dereg_mr(drv, &gsi->mr);
    }
    if (made >= 1) {
        drv_destroy_cq(drv, &gsi->cq);
    }
    drv_free(drv, &gsi->mem);
}

static void gsi_on_answer(void *opaque)
{
    struct hv_gsi *gsi = opaque;

    g_atomic_int_or(&gsi->answered, GSI_ANSWERED_HERE | GSI_ANSWERED_CALLER);
    gsi->arrived(gsi->opaque);
}

static void gsi_on_host_end(void *opaque)
{
    struct hv_gsi *gsi = opaque;

    g_atomic_int_set(&gsi->ended, 1);
    gsi->arrived(gsi->opaque);
}

bool hv_gsi_is_removed(const struct hv_gsi *gsi)
{
    return hv_is_removed(gsi->hca);
}

void hv_gsi_removed(struct hv_gsi *gsi)
{
    gsi->arrived(gsi->opaque);
}

bool hv_gsi_is_answered(struct hv_gsi *gsi)
{
    return g_atomic_int_and(&gsi->answered, ~(guint)GSI_ANSWERED_CALLER) & GSI_ANSWERED_CALLER;
}

bool hv_gsi_is_host_ended(struct hv_gsi *gsi)
{
    return g_atomic_int_compare_and_exchange(&gsi->ended, 1, 0);
}

bool hv_gsi_tells_ends(const struct hv_gsi *gsi)
{
    return gsi->tells_ends;
}

uint64_t hv_gsi_host_at(struct hv_gsi *gsi, unsigned sgid_index, const union ibv_gid *dgid)
{
    uint8_t mac[6];

    return hv_is_ours(gsi->hca) && !hv_find_mac(gsi->ctx, 1, sgid_index, dgid, mac)
               ? hv_host_at(gsi->hca, mac)
               : 0;
}

bool hv_gsi_has_ended(struct hv_gsi *gsi, uint64_t host)
{
    return hv_has_ended(gsi->hca, host);
}

int hv_gsi_open(struct hv_context *ctx, void (*arrived)(void *opaque), void *opaque,
                struct hv_gsi **out)
{
    struct hv_gsi *gsi = g_new0(struct hv_gsi, 1);
    unsigned made = 0;
    int status, state;

    gsi->ctx = ctx;
    gsi->hca = ctx->hca;
    gsi->arrived = arrived;
    gsi->opaque = opaque;
    if (hv_is_removed(ctx->hca)) {
        g_free(gsi);
        return EIO;
    }
    if (ctx->hca->gsi || !hv_cmd_begin(gsi->hca, &state)) {
        g_free(gsi);
        return ctx->hca->gsi ? EBUSY : EIO;
    }
    gsi->mem = drv_alloc(gsi->hca->drv, RECVS * RECV_STRIDE);
    status = gsi_make(gsi, &made);
    if (status) {
        gsi_unmake(gsi, made);
    }
    hv_cmd_end(gsi->hca, state);
    if (status) {
        g_free(gsi);
        return hv_status_errno(status);
    }
    for (unsigned i = 0; i < RECVS; i++) {
        gsi_post_recv(gsi, i);
    }
    pthread_mutex_lock(&gsi->hca->reg_lock);
    gsi->hca->gsi = gsi;
    pthread_mutex_unlock(&gsi->hca->reg_lock);
    hv_on_neighbour(gsi->hca, gsi_on_answer, gsi);
    gsi->tells_ends = hv_on_host_end(gsi->hca, gsi_on_host_end, gsi);
    *out = gsi;
    return 0;
}

void hv_gsi_close(struct hv_gsi *gsi)
{
    int state;

    if (hv_is_ours(gsi->hca)) {
        hv_on_neighbour(gsi->hca, NULL, NULL);
        hv_on_host_end(gsi->hca, NULL, NULL);
    }
    pthread_mutex_lock(&gsi->hca->reg_lock);
    gsi->hca->gsi = NULL;
    pthread_mutex_unlock(&gsi->hca->reg_lock);
    if (hv_cmd_begin(gsi->hca, &state)) {
        gsi_unmake(gsi, 3);
        hv_cmd_end(gsi->hca, state);
    }
    g_queue_clear_full(&gsi->waiting, g_free);
    g_queue_clear_full(&gsi->unresolved, g_free);
    g_free(gsi);
}

void hv_gsi_event(struct hv_hca *hca, uint32_t cqn)
{
    if (hca->gsi && hca->gsi->cq.cqn == cqn) {
        g_atomic_int_set(&hca->gsi->event, 1);
        hca->gsi->arrived(hca->gsi->opaque);
    }
}

/* Reads the GIDs from the network header, which the HCA writes before the datagram. */
static void gsi_take_gids(const uint8_t *grh, bool ipv4, struct hv_datagram *datagram)
{
    static const uint8_t mapped[IPV4_AT] = {[10] = 0xff, [11] = 0xff};

    if (!ipv4) {
        memcpy(datagram->sgid.raw, grh + IPV6_SRC, 16);
        memcpy(datagram->dgid.raw, grh + IPV6_DST, 16);
        return;
    }
    memcpy(datagram->sgid.raw, mapped, IPV4_AT);
    memcpy(datagram->dgid.raw, mapped, IPV4_AT);
    memcpy(datagram->sgid.raw + IPV4_AT, grh + IPV4_IN_GRH + IPV4_SRC, 4);
    memcpy(datagram->dgid.raw + IPV4_AT, grh + IPV4_IN_GRH + IPV4_DST, 4);
}

static void gsi_take(struct hv_gsi *gsi, const struct drv_wc *wc, struct hv_datagram *datagram)
{
    unsigned slot = wc->wqe_counter & (RECVS - 1);
    const uint8_t *buf = (const uint8_t *)gsi->mem.ptr + (size_t)slot * RECV_STRIDE;
    uint32_t header = PRM_GET(cqe64, wc->raw, roce_l3_hdr_type);

    gsi_take_gids(buf, header == PRM_CQE_ROCE_L3_IPV4, datagram);
    datagram->is_v1 = header == PRM_CQE_ROCE_L3_GRH;
    datagram->len = wc->byte_cnt > GRH ? MIN(wc->byte_cnt - GRH, HV_MAD_LEN) : 0;
    memcpy(datagram->mad, buf + GRH, datagram->len);
    gsi_post_recv(gsi, slot);
}

static void gsi_post_send(struct hv_gsi *gsi, const struct gsi_send *send)
{
    struct drv_sge sge = {.va = (uintptr_t)send->mad, .len = HV_MAD_LEN};
    struct drv_send wqe = {.opcode = PRM_WQE_OPCODE_SEND,
                           .flags = DRV_SIGNALED | DRV_INLINE,
                           .sge = &sge,
                           .num_sge = 1,
                           .ah = &send->path,
                           .qkey = GSI_QKEY};

    gsi->sending++;
    drv_post_send(&gsi->qp, &wqe);
}

static void gsi_sent(struct hv_gsi *gsi)
{
    struct gsi_send *next = g_queue_pop_head(&gsi->waiting);

    gsi->sending--;
    if (next) {
        gsi_post_send(gsi, next);
        g_free(next);
    }
}

/* Polls the CQ: completed sends make room; a receive is the next datagram. */
static bool gsi_poll_cq(struct hv_gsi *gsi, struct hv_datagram *datagram)
{
    struct drv_wc wc;

    while (drv_poll_cq(gsi->hca->drv, &gsi->cq, &wc)) {
        if (wc.opcode == PRM_CQE_OPCODE_REQ || wc.opcode == PRM_CQE_OPCODE_REQ_ERR) {
            gsi_sent(gsi);
        } else if (datagram && wc.opcode != PRM_CQE_OPCODE_RESP_ERR) {
            gsi_take(gsi, &wc, datagram);
            return true;
        }
    }
    return false;
}

static void gsi_send(struct hv_gsi *gsi, const struct gsi_send *send)
{
    if (gsi->sending < SENDS) {
        gsi_post_send(gsi, send);
    } else if (gsi->waiting.length < WAITING) {
        g_queue_push_tail(&gsi->waiting, g_memdup2(send, sizeof(*send)));
    }
}

static uint64_t gsi_now_ns(const struct hv_gsi *gsi)
{
    const struct pci_dev *dev = &gsi->hca->drv->dev;

    return dev->ops->now(dev->pci);
}

/* Returns as hv_find_mac(). */
static int gsi_find_mac(struct hv_gsi *gsi, struct gsi_send *send)
{
    union ibv_gid dgid;

    memcpy(dgid.raw, send->path.gid, sizeof(dgid.raw));
    return hv_find_mac(gsi->ctx, 1, send->path.sgid_index, &dgid, send->path.mac);
}

/* Sends the datagrams whose neighbour has answered. Drops those that have no neighbour or have
 * waited long enough. */
static void gsi_send_resolved(struct hv_gsi *gsi)
{
    uint64_t now = gsi_now_ns(gsi);

    for (guint n = gsi->unresolved.length; n; n--) {
        struct gsi_send *send = g_queue_pop_head(&gsi->unresolved);
        int err = send->until_ns > now ? gsi_find_mac(gsi, send) : ETIMEDOUT;

        if (err == EAGAIN) {
            g_queue_push_tail(&gsi->unresolved, send);
            continue;
        }
        if (!err) {
            gsi_send(gsi, send);
        }
        g_free(send);
    }
}

bool hv_gsi_poll(struct hv_gsi *gsi, struct hv_datagram *datagram)
{
    if (g_atomic_int_and(&gsi->answered, ~(guint)GSI_ANSWERED_HERE) & GSI_ANSWERED_HERE) {
        gsi_send_resolved(gsi);
    }
    if (g_atomic_int_compare_and_exchange(&gsi->event, 1, 0)) {
        gsi->armed = false;
        gsi->cq.arm_sn++;
    }
    if (gsi_poll_cq(gsi, datagram)) {
        return true;
    }
    if (gsi->armed) {
        return false;
    }
    gsi->armed = true;
    drv_arm_cq(gsi->hca->drv, &gsi->cq, false);
    return gsi_poll_cq(gsi, datagram);
}

bool hv_gsi_send(struct hv_gsi *gsi, unsigned sgid_index, const union ibv_gid *dgid,
                 const uint8_t mad[HV_MAD_LEN])
{
    struct gsi_send send = {.path = {.sgid_index = sgid_index, .remote_qpn = QPN_GSI}};
    int err;

    if (!hv_is_ours(gsi->hca) || hv_is_removed(gsi->hca) || gsi->waiting.length >= WAITING) {
        return false;
    }
    memcpy(send.path.gid, dgid->raw, sizeof(send.path.gid));
    memcpy(send.mad, mad, sizeof(send.mad));
    err = gsi_find_mac(gsi, &send);
    if (err == EAGAIN) {
        if (gsi->unresolved.length >= UNRESOLVED) {
            g_free(g_queue_pop_head(&gsi->unresolved));
        }
        send.until_ns = gsi_now_ns(gsi) + HV_RESOLVE_NS;
        g_queue_push_tail(&gsi->unresolved, g_memdup2(&send, sizeof(send)));
    } else if (!err) {
        gsi_send(gsi, &send);
    }
    return !err || err == EAGAIN;
}
