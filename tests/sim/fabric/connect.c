/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements connect.h: the transitions of two QPs to a connection. */
#include "tests/sim/fabric/connect.h"

#define RD_ATOMS 16
#define RIGHTS   (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* -- terms ------------------------------------------------------------------------------------- */

/* 4 ms may be shorter than the transit time where queues are long: then retries would run out. */
#define QUICK 10 /* 4 ms */
#define SLOW  15 /* 134 ms */
/* Timers of receivers that are not ready. */
#define RNR_SHORT 8  /* 0.16 ms */
#define RNR_LONG  20 /* 10 ms */

/* Draws values. Waits for a receive are so long that a few retries are never used up, unless no
 * receives are posted. */
static void connect_draw_patience(struct job *job, struct connect_terms *terms)
{
    struct chance *chance = &job->chance;

    terms->max_reads = (uint8_t)(1u << chance_below(chance, 5));
    terms->rnr_timer = (uint8_t)chance_from(chance, 1, RNR_SHORT);
    if (!sim_is_lossy(job->sim) && !sim_is_disorderly(job->sim)) {
        terms->retries = (uint8_t)chance_from(chance, 0, 7);
        terms->timeout = chance_one_in(chance, 4) ? 0 : SLOW;
    }
    if (!sim_is_disorderly(job->sim) && chance_one_in(chance, 2)) {
        terms->rnr_timer = (uint8_t)chance_from(chance, RNR_LONG, RNR_LONG + 2);
        terms->rnr_retries = (uint8_t)chance_from(chance, 3, 6);
    }
}

struct connect_terms connect_draw(struct job *job, enum connect_patience patience)
{
    struct chance *chance = &job->chance;
    struct connect_terms terms = {
        .mtu = (enum ibv_mtu)chance_from(chance, IBV_MTU_256, IBV_MTU_4096),
        .timeout = patience != CONNECT_PATIENT && sim_is_lossy(job->sim) && chance_one_in(chance, 2)
                       ? QUICK
                       : SLOW,
        .max_reads = RD_ATOMS,
        .rnr_timer = 1,
        .retries = 7,
        .rnr_retries = 7, /* for ever */
    };

    if (patience == CONNECT_ANY) {
        connect_draw_patience(job, &terms);
    }
    for (unsigned i = 0; i < 2; i++) {
        terms.psn[i] =
            0xffffff - (uint32_t)chance_below(chance, chance_one_in(chance, 2) ? 40 : 0xffffff);
    }
    return terms;
}

/* -- states ------------------------------------------------------------------------------------ */

static void connect_to_init(struct job *job, struct ibv_qp *qp, unsigned denies)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = RIGHTS & ~denies};

    sim_must(job,
             ibv_modify_qp(qp, &attr,
                           IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
}

static void connect_one_to_rtr(struct job *job, struct sim_host *const host[2],
                               struct ibv_qp *const qp[2], unsigned nth,
                               const struct connect_terms *terms)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = terms->mtu,
        .dest_qp_num = qp[!nth]->qp_num,
        .rq_psn = terms->psn[!nth],
        .max_dest_rd_atomic = terms->max_reads,
        .min_rnr_timer = terms->rnr_timer,
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
}

void connect_to_rtr(struct job *job, struct sim_host *const host[2], struct ibv_qp *const qp[2],
                    const struct connect_terms *terms)
{
    connect_to_init(job, qp[0], terms->denies[0]);
    connect_to_init(job, qp[1], terms->denies[1]);
    connect_one_to_rtr(job, host, qp, 0, terms);
    connect_one_to_rtr(job, host, qp, 1, terms);
    sim_note(job, "connected: QP 0x%x and 0x%x, PSN %u and %u", qp[0]->qp_num, qp[1]->qp_num,
             terms->psn[0], terms->psn[1]);
    job->sim->tally.connections++;
}

void connect_to_rts(const struct job *job, struct ibv_qp *const qp[2], unsigned nth,
                    const struct connect_terms *terms)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .sq_psn = terms->psn[nth],
        .max_rd_atomic = terms->max_reads,
        .timeout = terms->timeout,
        .retry_cnt = terms->retries,
        .rnr_retry = terms->rnr_retries,
    };

    sim_must(job, ibv_modify_qp(qp[nth], &attr,
                                IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                    IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
}

static void connect_both(struct job *job, struct sim_host *const host[2],
                         struct ibv_qp *const qp[2], enum connect_patience patience)
{
    struct connect_terms terms = connect_draw(job, patience);

    connect_to_rtr(job, host, qp, &terms);
    connect_to_rts(job, qp, 0, &terms);
    connect_to_rts(job, qp, 1, &terms);
}

void connect_rc(struct job *job, struct sim_host *const host[2], struct ibv_qp *const qp[2])
{
    connect_both(job, host, qp, CONNECT_USUAL);
}

void connect_rc_patiently(struct job *job, struct sim_host *const host[2],
                          struct ibv_qp *const qp[2])
{
    connect_both(job, host, qp, CONNECT_PATIENT);
}

/* An initiator or a target. */
void connect_xrc(const struct job *job, struct ibv_qp *qp, bool is_target,
                 const struct ibv_qp *peer, const struct sim_host *peer_host, uint32_t psn)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = RIGHTS,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = peer->qp_num,
        .rq_psn = psn,
        .sq_psn = psn,
        .max_rd_atomic = 16,
        .max_dest_rd_atomic = 16,
        .min_rnr_timer = 1,
        .timeout = SLOW,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.dgid = peer_host->config.gid[1], .sgid_index = 1, .hop_limit = 1}},
    };

    sim_must(job,
             ibv_modify_qp(qp, &attr,
                           IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    attr.qp_state = IBV_QPS_RTR;
    sim_must(job, ibv_modify_qp(
                      qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          (is_target ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)));
    attr.qp_state = IBV_QPS_RTS;
    sim_must(job, ibv_modify_qp(qp, &attr,
                                IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
                                    (is_target ? 0
                                               : IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                                     IBV_QP_MAX_QP_RD_ATOMIC)));
}

void connect_dc(const struct job *job, struct ibv_qp *qp, bool target)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = RIGHTS,
        .path_mtu = IBV_MTU_1024,
        .max_rd_atomic = 16,
        .min_rnr_timer = 1,
        .timeout = SLOW,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1, .hop_limit = 1}},
    };

    sim_must(job, ibv_modify_qp(qp, &attr,
                                IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                    (target ? IBV_QP_ACCESS_FLAGS : 0)));
    attr.qp_state = IBV_QPS_RTR;
    sim_must(job, ibv_modify_qp(qp, &attr,
                                IBV_QP_STATE | IBV_QP_PATH_MTU |
                                    (target ? IBV_QP_MIN_RNR_TIMER | IBV_QP_AV : 0)));
    if (!target) {
        attr.qp_state = IBV_QPS_RTS;
        sim_must(job,
                 ibv_modify_qp(qp, &attr,
                               IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                   IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
    }
}

void connect_move(const struct job *job, struct ibv_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};

    sim_must(job, ibv_modify_qp(qp, &attr, IBV_QP_STATE));
}
