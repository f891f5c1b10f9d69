/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counters and gauges of query-stats, as tables. A counter only goes up as long as the function
 * lives; bytes are without FCS.
 */
#include "fw/control.h"
#include "fw/fw_internal.h"
#include "model/port/eswitch.h"
#include "model/rdma/qp.h"
#include "model/rdma/rdma.h"

/* A member of one of the structures that have counters. */
struct stat_row {
    const char *name;
    size_t at;
};

#define ROW(type, name, member)                                                                    \
    {                                                                                              \
        name, offsetof(struct type, member)                                                        \
    }

static const struct stat_row of_uplink[] = {
    ROW(uplink_counters, "link_downs", link_downs),
    ROW(uplink_counters, "rx_truncated_frames", rx_truncated),
};

static const struct stat_row of_vport[] = {
    ROW(vport_counters, "rx_bad_icrc", rx_bad_icrc),
    ROW(vport_counters, "rx_bad_headers", rx_bad_header),
    ROW(vport_counters, "rx_no_qp", rx_no_qp),
    ROW(vport_counters, "rx_bad_gids", rx_bad_gid),
    ROW(vport_counters, "rx_bad_pkeys", rx_bad_pkey),
    ROW(vport_counters, "rx_bad_qkeys", rx_bad_qkey),
    ROW(vport_counters, "rx_no_steering", rx_no_steering),
    ROW(vport_counters, "rx_oversize_frames", rx_oversize),
    ROW(vport_counters, "tx_oversize_frames", tx_oversize),
    ROW(vport_counters, "rx_discarded_frames", rx_discards),
};

static const struct stat_row of_rdma[] = {
    ROW(rdma_counts, "messages", messages),
    ROW(rdma_counts, "receives", receives),
    ROW(rdma_counts, "retransmissions", retransmitted),
    ROW(rdma_counts, "ack_timeouts", ack_timeouts),
    ROW(rdma_counts, "naks_sent", naks_sent),
    ROW(rdma_counts, "naks_received", naks_received),
    ROW(rdma_counts, "rnr_naks_sent", rnr_naks_sent),
    ROW(rdma_counts, "rnr_naks_received", rnr_naks_received),
    ROW(rdma_counts, "out_of_sequence", out_of_sequence),
    ROW(rdma_counts, "duplicate_requests", duplicates),
};

static const struct stat_row of_cong[] = {
    ROW(cong_counters, "cnps_sent", cnps_sent),
    ROW(cong_counters, "cnps_handled", cnps_handled),
    ROW(cong_counters, "cnps_ignored", cnps_ignored),
    ROW(cong_counters, "ecn_marked_packets", marked),
};

/* Objects that users ask about. */
static const struct {
    const char *name;
    size_t table;
} of_hca[] = {
    {"cqs", offsetof(struct hca, cqs)},           {"srqs", offsetof(struct hca, srqs)},
    {"memory_keys", offsetof(struct hca, mkeys)}, {"pds", offsetof(struct hca, pds)},
    {"eqs", offsetof(struct hca, eqs)},
};

static void stats_put(json_t *to, const char *name, uint64_t value)
{
    json_object_set_new(to, name, json_integer((json_int_t)value));
}

static void stats_put_rows(json_t *to, const struct stat_row *rows, unsigned n, const void *of)
{
    for (unsigned i = 0; i < n; i++) {
        stats_put(to, rows[i].name, *(const uint64_t *)((const char *)of + rows[i].at));
    }
}

static json_t *stats_counters(const struct fw *fw)
{
    const struct uplink_counters *port = &fw_uplink(fw)->counters;
    const struct vport_counters *vport = &fw->hca.vport->counters;
    json_t *to = json_object();

    stats_put(to, "rx_frames", traffic_frames(&port->rx));
    stats_put(to, "rx_bytes", traffic_bytes(&port->rx));
    stats_put(to, "tx_frames", traffic_frames(&port->tx));
    stats_put(to, "tx_bytes", traffic_bytes(&port->tx));
    stats_put(to, "rx_roce_packets", traffic_frames(&vport->rx_roce));
    stats_put(to, "tx_roce_packets", traffic_frames(&vport->tx_roce));
    stats_put_rows(to, of_rdma, G_N_ELEMENTS(of_rdma), &fw->hca.rdma->counts);
    stats_put_rows(to, of_cong, G_N_ELEMENTS(of_cong), &fw_uplink(fw)->cong.counters);
    stats_put_rows(to, of_vport, G_N_ELEMENTS(of_vport), vport);
    stats_put_rows(to, of_uplink, G_N_ELEMENTS(of_uplink), port);
    stats_put(to, "cq_overruns", fw->hca.cq_overruns);
    return to;
}

/* -- QPs by type and state --------------------------------------------------------------------- */

/* The states of qpc.state are less. */
#define STATES 16

struct stats_qps {
    unsigned count[SERVICES][STATES];
    unsigned total, dcts, started, posted;
};

static void stats_count_qps(struct fw *fw, struct stats_qps *sum)
{
    OBJ_TABLE_FOREACH (obj, &fw->hca.qpns) {
        if (obj->kind == OBJ_QP) {
            const struct qp *qp = (struct qp *)obj;

            sum->count[qp->service->st % SERVICES][qp->state % STATES]++;
            sum->total++;
            sum->started += requester_started(qp);
            sum->posted += qp->has_rq && !qp->srq ? wq_posted(&qp->rq) : 0;
        } else if (obj->kind == OBJ_DCT) {
            sum->dcts++;
        }
    }
}

static json_t *stats_list_qps(const struct stats_qps *sum)
{
    json_t *list = json_array();

    for (unsigned st = 0; st < SERVICES; st++) {
        for (unsigned state = 0; state < STATES; state++) {
            if (sum->count[st][state]) {
                const char *name = prm_enum_name("qp_state", state);

                json_array_append_new(list, json_pack("{ss ss si}", "type", services[st].name,
                                                      "state", name ? name : "?", "count",
                                                      (int)sum->count[st][state]));
            }
        }
    }
    return list;
}

json_t *fw_control_stats(struct fw *fw)
{
    struct stats_qps sum = {0};
    json_t *gauges = json_object();

    stats_count_qps(fw, &sum);
    stats_put(gauges, "link_up", uplink_is_up(fw_uplink(fw)));
    stats_put(gauges, "qps", sum.total);
    stats_put(gauges, "dcts", sum.dcts);
    stats_put(gauges, "send_wqes_in_flight", sum.started);
    stats_put(gauges, "receive_wqes_posted", sum.posted);
    for (unsigned i = 0; i < G_N_ELEMENTS(of_hca); i++) {
        stats_put(gauges, of_hca[i].name,
                  ((const struct obj_table *)((const char *)&fw->hca + of_hca[i].table))->count);
    }
    stats_put(gauges, "limited_flows", fw_uplink(fw)->cong.flows);
    stats_put(gauges, "memory_bytes", fw->hca.memory.used);
    stats_put(gauges, "memory_limit_bytes", fw->hca.memory.limit);
    return json_pack("{sI so so so}", "time_ns", (json_int_t)hca_now(&fw->hca), "counters",
                     stats_counters(fw), "gauges", gauges, "qps", stats_list_qps(&sum));
}
