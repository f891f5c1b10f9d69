/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes the trees of traffic classes: root, port, groups, classes. A class that changes its group
 * gets another leaf there. Its queues join that leaf when they next ask, so nothing is moved.
 */
#include "model/port/ets.h"
#include "model/core/hca.h"

struct ets {
    struct sched_elem *root, *port, *group[TC_GROUPS];
    struct sched_elem *leaf[TC_GROUPS][TRAFFIC_CLASSES]; /* NULL: the class was never there */
};

static bool ets_is_plain(const struct uplink_phy *phy)
{
    for (unsigned i = 0; i < TRAFFIC_CLASSES; i++) {
        if (phy->tc[i].group != phy->tc[0].group || phy->tc[i].percent != phy->tc[0].percent ||
            phy->tc[i].max.units != TC_NO_LIMIT) {
            return false;
        }
    }
    return phy->port_max.units == TC_NO_LIMIT;
}

/* A limit in kb/s. 0 means none, so a limit of value 0 is the least that there is. */
static uint32_t ets_kbps(const struct tc_limit *limit)
{
    switch (limit->units) {
    case TC_100_MBPS:
        return MAX(limit->value * 100000u, 1);
    case TC_1_GBPS:
        return MAX(limit->value * 1000000u, 1);
    default:
        return 0;
    }
}

static struct ets *ets_new(struct hca *hca)
{
    struct ets *ets = g_new0(struct ets, 1);

    ets->root = sched_own(hca, NULL, SCHED_OWN_SHARES);
    ets->port = sched_own(hca, ets->root, SCHED_OWN_STRICT);
    for (unsigned i = 0; i < TC_GROUPS; i++) {
        ets->group[i] = sched_own(hca, ets->port, SCHED_OWN_SHARES);
        ets->group[i]->rank = TC_GROUPS - 1 - i;
    }
    return ets;
}

void ets_follow(struct hca *hca)
{
    const struct uplink_phy *phy = &hca->vport->uplink->phy;
    struct ets *ets = hca->ets;

    if (!ets && ets_is_plain(phy)) {
        return;
    }
    if (!ets) {
        ets = hca->ets = ets_new(hca);
    }
    sched_own_set(hca, ets->port, 1, ets_kbps(&phy->port_max));
    for (unsigned i = 0; i < TRAFFIC_CLASSES; i++) {
        const struct tc_setting *tc = &phy->tc[i];
        struct sched_elem **leaf = &ets->leaf[tc->group][i];

        if (!*leaf) {
            *leaf = sched_own(hca, ets->group[tc->group], SCHED_OWN_LEAF);
        }
        sched_own_set(hca, *leaf, tc->percent, ets_kbps(&tc->max));
    }
}

void ets_changed(struct eswitch *sw)
{
    for (unsigned i = 0; i < sw->num_vports; i++) {
        if (sw->vports[i]->hca) {
            ets_follow(sw->vports[i]->hca);
        }
    }
}

void ets_reset(struct hca *hca)
{
    struct ets *ets = hca->ets;

    if (!ets) {
        return;
    }
    hca->ets = NULL;
    for (unsigned i = 0; i < TC_GROUPS; i++) {
        for (unsigned tc = 0; tc < TRAFFIC_CLASSES; tc++) {
            sched_own_free(hca, ets->leaf[i][tc]);
        }
        sched_own_free(hca, ets->group[i]);
    }
    sched_own_free(hca, ets->port);
    sched_own_free(hca, ets->root);
    g_free(ets);
}

bool ets_may_send(struct hca *hca, struct obj *owner, struct sched_member *m, unsigned priority,
                  struct work *work)
{
    const struct uplink_phy *phy = &hca->vport->uplink->phy;
    unsigned tc = phy->priority_tc[priority];
    struct sched_elem *leaf = hca->ets->leaf[phy->tc[tc].group][tc];

    if (m->leaf != leaf && (!m->leaf || m->leaf->is_own)) {
        sched_join(hca, owner, m, leaf, work);
    }
    return sched_may_send(hca, m);
}
