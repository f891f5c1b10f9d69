/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements verbs_hosts.h, the fixture of the tests of verbs hosts. */
#include "tests/sim/verbs_hosts.h"
#include <string.h>
#include "guest-lib/verbs/user/device.h"

static void verbs_on_frame(void *opaque, const uint8_t *frame, size_t len)
{
    struct verbs_hosts *v = opaque;

    g_checksum_update(v->trace, (const guchar *)&v->world->now_ns, sizeof(v->world->now_ns));
    g_checksum_update(v->trace, frame, (gssize)len);
    v->frames++;
}

static void verbs_host_init(struct verbs_hosts *v, unsigned index, const struct lossy_config *loss,
                            const char *profile)
{
    struct verbs_host *host = &v->host[index];
    const uint8_t stranger[6] = {0x52, 0x54, 0, 0x12, 0x34, (uint8_t)index};
    struct lossy_config faults = {0};

    if (loss) {
        faults = *loss;
        faults.seed = faults.seed * VERBS_HOSTS + index;
    }
    host->port = lossy_new(hub_plug(v->hub), &faults, verbs_on_frame, v);
    hv_config_simulate(&host->config, index + 1, faults.strangers ? stranger : NULL, v->world,
                       host->port);
    host->config.profile = g_strdup(profile);
    host->device = hv_sim_device_new(index, &host->config);
    host->ctx = ibv_open_device(host->device);
    if (!host->ctx) {
        g_error("host %u: errno %d", index, errno);
    }
    host->pd = ibv_alloc_pd(host->ctx);
}

struct verbs_hosts *verbs_hosts_new(unsigned num, const struct lossy_config *loss)
{
    return verbs_hosts_new_as(num, loss, NULL);
}

struct verbs_hosts *verbs_hosts_new_as(unsigned num, const struct lossy_config *loss,
                                       const char *profile)
{
    struct verbs_hosts *v = g_new0(struct verbs_hosts, 1);

    g_assert_cmpuint(num, <=, VERBS_HOSTS);
    v->num = num;
    v->world = inproc_world_new();
    v->trace = g_checksum_new(G_CHECKSUM_SHA256);
    v->hub = hub_new(v->world, VERBS_LATENCY);
    for (unsigned i = 0; i < num; i++) {
        verbs_host_init(v, i, loss, profile);
    }
    return v;
}

void verbs_hosts_free(struct verbs_hosts *v)
{
    for (unsigned i = 0; i < v->num; i++) {
        verbs_must_be_0(ibv_dealloc_pd(v->host[i].pd));
        verbs_must_be_0(ibv_close_device(v->host[i].ctx));
        hv_sim_device_free(v->host[i].device);
        g_free(v->host[i].config.profile);
    }
    hub_free(v->hub);
    inproc_world_free(v->world);
    g_checksum_free(v->trace);
    g_free(v);
}

unsigned verbs_faults(const struct verbs_hosts *v)
{
    unsigned faults = 0;

    for (unsigned i = 0; i < v->num; i++) {
        faults += lossy_faults(v->host[i].port);
    }
    return faults;
}

struct ibv_qp *verbs_qp(struct verbs_host *host, enum ibv_qp_type type, struct ibv_cq *cq,
                        struct ibv_srq *srq, const struct ibv_qp_cap *cap)
{
    static const struct ibv_qp_cap usual = {
        .max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 4, .max_recv_sge = 4};
    struct ibv_qp_init_attr attr = {
        .send_cq = cq, .recv_cq = cq, .srq = srq, .cap = cap ? *cap : usual, .qp_type = type};
    struct ibv_qp *qp = ibv_create_qp(host->pd, &attr);

    if (!qp) {
        g_error("no QP: errno %d", errno);
    }
    return qp;
}

#define USUAL_TIMEOUT 10 /* 4 ms */
#define USUAL_RETRIES 7
#define RD_ATOMS      16

void verbs_connect(struct ibv_qp *qp, const struct verbs_host *to, uint32_t dest,
                   const struct verbs_path *path)
{
    static const struct verbs_path usual;
    const struct verbs_path *p = path ? path : &usual;
    bool rc = qp->qp_type == IBV_QPT_RC;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags =
            IBV_ACCESS_REMOTE_WRITE | (rc ? IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC : 0),
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = dest,
        .rq_psn = p->psn,
        .sq_psn = p->psn,
        .max_rd_atomic = RD_ATOMS,
        .max_dest_rd_atomic = RD_ATOMS,
        .min_rnr_timer = 1,
        .timeout = p->timeout ? p->timeout : USUAL_TIMEOUT,
        .retry_cnt = p->retry_cnt ? p->retry_cnt : USUAL_RETRIES,
        .rnr_retry = 7,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.dgid = to->config.gid[1], .sgid_index = 1, .hop_limit = 1}},
    };

    verbs_must_be_0(ibv_modify_qp(
        qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    attr.qp_state = IBV_QPS_RTR;
    verbs_must_be_0(ibv_modify_qp(qp, &attr,
                                  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                      IBV_QP_RQ_PSN |
                                      (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)));
    attr.qp_state = IBV_QPS_RTS;
    verbs_must_be_0(ibv_modify_qp(
        qp, &attr,
        IBV_QP_STATE | IBV_QP_SQ_PSN |
            (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC
                : 0)));
}

struct ibv_wc verbs_wc(struct verbs_hosts *v, struct ibv_cq *cq)
{
    uint64_t limit = v->world->now_ns + 100 * VERBS_SECOND;
    struct ibv_wc wc;

    while (!ibv_poll_cq(cq, 1, &wc)) {
        if (!inproc_step(v->world, limit)) {
            g_error("no completion within 100 s");
        }
    }
    return wc;
}
