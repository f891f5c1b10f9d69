/* SPDX-License-Identifier: BSD-2-Clause */
/* The states of two QPs on their way to each other. */
#include "tests/sim/fabric/connect.h"

#define RD_ATOMS 16

static void connect_to_init(struct job *job, struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = 1,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                                  IBV_ACCESS_REMOTE_ATOMIC};

    sim_must(job,
             ibv_modify_qp(qp, &attr,
                           IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
}

/* What both ends of a connection agree on. */
struct connect_terms {
    enum ibv_mtu mtu;
    uint32_t psn[2];
    uint8_t timeout;
};

static void connect_to_rts(struct job *job, struct sim_host *const host[2],
                           struct ibv_qp *const qp[2], unsigned nth,
                           const struct connect_terms *terms)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = terms->mtu,
        .dest_qp_num = qp[!nth]->qp_num,
        .rq_psn = terms->psn[!nth],
        .sq_psn = terms->psn[nth],
        .max_rd_atomic = RD_ATOMS,
        .max_dest_rd_atomic = RD_ATOMS,
        .min_rnr_timer = 1,
        .timeout = terms->timeout,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.dgid = host[!nth]->config.gid[1],
                            .sgid_index = 1,
                            .hop_limit = 1,
                            .traffic_class = job->sim->options.ecn ? 2 : 0}},
    };

    sim_must(job,
             ibv_modify_qp(qp[nth], &attr,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                               IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
    attr.qp_state = IBV_QPS_RTS;
    sim_must(job, ibv_modify_qp(qp[nth], &attr,
                                IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                    IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
}

/* 4 ms may be less than the way takes where queues are long: then retries would run out. */
#define QUICK 10 /* 4 ms */
#define SLOW  15 /* 134 ms */

static void connect_both(struct job *job, struct sim_host *const host[2],
                         struct ibv_qp *const qp[2], bool patient)
{
    struct chance *chance = &job->chance;
    struct connect_terms terms = {
        .mtu = (enum ibv_mtu)chance_from(chance, IBV_MTU_256, IBV_MTU_4096),
        .timeout = !patient && sim_is_lossy(job->sim) && chance_one_in(chance, 2) ? QUICK : SLOW,
    };

    for (unsigned i = 0; i < 2; i++) {
        terms.psn[i] =
            0xffffff - (uint32_t)chance_below(chance, chance_one_in(chance, 2) ? 40 : 0xffffff);
    }
    connect_to_init(job, qp[0]);
    connect_to_init(job, qp[1]);
    connect_to_rts(job, host, qp, 0, &terms);
    connect_to_rts(job, host, qp, 1, &terms);
    sim_note(job, "connected: QP 0x%x and 0x%x, PSN %u and %u", qp[0]->qp_num, qp[1]->qp_num,
             terms.psn[0], terms.psn[1]);
    job->sim->tally.connections++;
}

void connect_rc(struct job *job, struct sim_host *const host[2], struct ibv_qp *const qp[2])
{
    connect_both(job, host, qp, false);
}

void connect_rc_patiently(struct job *job, struct sim_host *const host[2],
                          struct ibv_qp *const qp[2])
{
    connect_both(job, host, qp, true);
}

void connect_move(const struct job *job, struct ibv_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};

    sim_must(job, ibv_modify_qp(qp, &attr, IBV_QP_STATE));
}
