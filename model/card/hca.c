/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes, resets and clears a function: its parts are put together here.
 */
#include "model/card/card.h"
#include "model/core/inject.h"
#include "model/core/obj_class.h"
#include "model/core/work.h"
#include "model/eth/eth.h"
#include "model/eth/vxlan_ports.h"
#include "model/steering/steering.h"
#include "model/memory/memic.h"
#include "model/memory/sw_icm.h"
#include "model/port/ets.h"
#include "model/port/pace.h"
#include "model/port/port.h"
#include "model/queue/blueflame.h"
#include "model/queue/q_counter.h"
#include "model/queue/uar.h"
#include "model/rdma/mcg.h"
#include "model/rdma/qp.h"
#include "model/rdma/rdma.h"

const struct port_receivers port_receivers = {
    .roce = roce_rx,
    .steer_roce = eth_steer_roce,
    .eth = eth_rx,
    .steer_roce_tx = steering_tx_rdma,
    .sniff_tx = eth_sniff_tx,
    .wants_mac = mcg_has_mac,
    .wants_copy = roce_wants_copy,
};

const struct steering_receivers steering_receivers = {
    .tir = tir_rx,
};

/* Frees objects, users before the objects that they use; each costs at least one piece. False: some
 * are left. */
static bool hca_objects_free(struct hca *hca)
{
    struct hca_reset *at = &hca->reset;
    struct obj *obj;

    for (; at->space < obj_n_spaces; at->space++, at->num = 0) {
        struct obj_table *table = obj_space(hca, at->space);

        while ((obj = obj_next(table, at->num))) {
            at->num = obj->num;
            if (obj_class(obj)->trim && !obj_class(obj)->trim(hca, obj)) {
                return false;
            }
            obj_class(obj)->free(hca, obj);
            hca_spend(hca, 1);
            if (!hca_has_room(hca)) {
                return false;
            }
        }
    }
    for (unsigned i = 0; i < obj_n_spaces; i++) {
        /* only when all are empty: a space may hold ranges of another */
        obj_table_reset(obj_space(hca, i));
    }
    return true;
}

void hca_init_on(struct hca *hca, const struct hca_host_ops *ops, void *host,
                 const struct hca_limits *limits, struct card *card, unsigned number,
                 const uint8_t mac[6])
{
    g_assert(1u << limits->log_max_eq <= HCA_MAX_EQS);
    hca->ops = ops;
    hca->host = host;
    hca->limits = *limits;
    hca->memory.limit = hca->icm.limit = UINT64_MAX;
    hca_work_init(hca);
    q_counter_init(hca);
    blueflame_init(hca);
    rdma_init(hca);
    obj_spaces_init(hca);
    /* UAR pages end where the windows of the device memory begin */
    hca->uars.end = MIN(hca->uars.end, MEMIC_BAR_START / UAR_PAGE_SIZE);
    memic_init(hca, NULL);
    sw_icm_init(hca);
    obj_table_start(&hca->qpns, limits->qpn_start);
    steering_init(hca);
    vxlan_ports_init(hca);
    hca->card = card;
    hca->real_time = &card->real_time;
    port_init(hca, eswitch_vport(&card->sw, number, mac));
    ets_follow(hca);
}

void hca_init(struct hca *hca, const struct hca_host_ops *ops, void *host,
              const struct hca_limits *limits, const uint8_t mac[6])
{
    struct card *card = card_new();

    card->ends_with_function = true;
    hca_init_on(hca, ops, host, limits, card, 0, mac);
}

/* The order lets the function work between two parts: whatever leads to an object is removed before
 * the object. */
static bool hca_objects_clear(struct hca *hca)
{
    struct hca_reset *at = &hca->reset;

    g_assert(!hca->holding);
    at->under_way = true;
    if (!flow_tables_empty_from(hca, &at->flow_table) || !mcg_clear(hca, &at->groups) ||
        !hca_objects_free(hca)) {
        return false;
    }
    *at = (struct hca_reset){0};
    steering_clear(hca);
    rdma_reset(hca);
    pace_reset(hca);
    ets_reset(hca);
    hca_work_reset(hca);
    inject_reset(hca);
    port_owe_nothing(hca);
    return true;
}

bool hca_reset_part(struct hca *hca)
{
    if (!hca_objects_clear(hca)) {
        return false;
    }
    steering_init(hca);
    vxlan_ports_init(hca);
    vport_release(hca->vport);
    ets_follow(hca);
    hca->cq_overruns = 0;
    hca->eq_overruns = 0;
    hca->tunnels = false;
    hca->delay_drop_ns = 0;
    hca->ops->timer_arm(hca->host, UINT64_MAX);
    return true;
}

void hca_reset(struct hca *hca)
{
    hca->pieces_end = UINT64_MAX;
    hca_reset_part(hca);
}

void hca_clear(struct hca *hca)
{
    hca->pieces_end = UINT64_MAX;
    hca_objects_clear(hca);
    for (unsigned i = 0; i < obj_n_spaces; i++) {
        obj_table_clear(obj_space(hca, i));
    }
    port_clear(hca);
    if (hca->card->ends_with_function) {
        card_free(hca->card);
    }
    hca->card = NULL;
    hca_log_end(hca);
    q_counter_clear(hca);
    blueflame_clear(hca);
    rdma_clear(hca);
    hca_work_clear(hca);
}
