/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sniffers: a table of received frames and one of sent frames. Each has one entry, which matches
 * all frames and has a list of the TIRs that get a copy (mlx5_ib create_sniffer_rule()). The tables
 * exist only while a TIR sniffs, because they keep the HCA from using paths on which frames are not
 * seen.
 */
#include "guest-lib/verbs/kernel/flow_sniffer.h"
#include "guest-lib/verbs/kernel/flow_cmd.h"
#include "guest-lib/verbs/kernel/hca.h"

#define MOST 32 /* TIRs of an entry */

static const uint8_t types[] = {PRM_FLOW_TABLE_TYPE_SNIFFER_RX, PRM_FLOW_TABLE_TYPE_SNIFFER_TX};
#define DIRECTIONS G_N_ELEMENTS(types)

struct hv_sniffers {
    struct hv_flow_place place[DIRECTIONS];
    uint32_t tirns[MOST];
    unsigned times[MOST]; /* how often it was added */
    unsigned num;
};

static const struct hv_flow_rule everything = {.action = PRM_FLOW_ACTION_FWD_DEST};

static int sniffer_set(struct hv_hca *hca, const struct hv_flow_place *place, const uint32_t *tirns,
                       unsigned num, bool change)
{
    struct hv_flow_dest dests[MOST];

    for (unsigned i = 0; i < num; i++) {
        dests[i] = (struct hv_flow_dest){PRM_FLOW_DESTINATION_TYPE_TIR, tirns[i]};
    }
    return hv_flow_set_entry(hca, place, &everything, dests, num, change);
}

static int sniffer_begin(struct hv_hca *hca, struct hv_flow_place *place, uint8_t type,
                         uint32_t tirn)
{
    int err;

    place->type = type;
    err = hv_flow_create_table(hca, &(const struct hv_flow_shape){.type = type}, NULL,
                               &place->table_id);
    if (err) {
        return err;
    }
    err = hv_flow_create_group(hca, place, &everything);
    if (!err) {
        err = sniffer_set(hca, place, &tirn, 1, false);
        err = err ? err : hv_flow_set_root(hca, type, place->table_id);
        if (err) {
            hv_flow_delete_entry(hca, place);
            hv_flow_destroy_group(hca, place);
        }
    }
    if (err) {
        hv_flow_destroy_table(hca, type, place->table_id);
    }
    return err;
}

static void sniffer_end(struct hv_hca *hca, const struct hv_flow_place *place)
{
    hv_flow_unset_root(hca, place->type, place->table_id);
    hv_flow_delete_entry(hca, place);
    hv_flow_destroy_group(hca, place);
    hv_flow_destroy_table(hca, place->type, place->table_id);
}

/* Begins in both directions; if one fails, in neither. */
static int sniffer_begin_both(struct hv_hca *hca, uint32_t tirn)
{
    struct hv_sniffers *sniffers = g_new0(struct hv_sniffers, 1);
    int err = sniffer_begin(hca, &sniffers->place[0], types[0], tirn);

    if (!err) {
        err = sniffer_begin(hca, &sniffers->place[1], types[1], tirn);
        if (err) {
            sniffer_end(hca, &sniffers->place[0]);
        }
    }
    if (err) {
        g_free(sniffers);
        return err;
    }
    sniffers->tirns[0] = tirn;
    sniffers->times[0] = 1;
    sniffers->num = 1;
    hca->sniffers = sniffers;
    return 0;
}

static int sniffer_tell(struct hv_hca *hca, const uint32_t *tirns, unsigned num)
{
    int err = 0;

    for (unsigned i = 0; !err && i < DIRECTIONS; i++) {
        err = sniffer_set(hca, &hca->sniffers->place[i], tirns, num, true);
    }
    return err;
}

static unsigned sniffer_find(const struct hv_sniffers *sniffers, uint32_t tirn)
{
    unsigned i = 0;

    while (i < sniffers->num && sniffers->tirns[i] != tirn) {
        i++;
    }
    return i;
}

int hv_sniffer_add(struct hv_hca *hca, uint32_t tirn)
{
    struct hv_sniffers *sniffers = hca->sniffers;
    unsigned at;
    int err;

    if (!sniffers) {
        return sniffer_begin_both(hca, tirn);
    }
    at = sniffer_find(sniffers, tirn);
    if (at == MOST) {
        return ENOSPC;
    }
    if (at < sniffers->num) {
        sniffers->times[at]++;
        return 0;
    }
    sniffers->tirns[at] = tirn;
    err = sniffer_tell(hca, sniffers->tirns, sniffers->num + 1);
    if (err) {
        sniffer_tell(hca, sniffers->tirns, sniffers->num);
        return err;
    }
    sniffers->times[at] = 1;
    sniffers->num++;
    return 0;
}

void hv_sniffer_remove(struct hv_hca *hca, uint32_t tirn)
{
    struct hv_sniffers *sniffers = hca->sniffers;
    unsigned at = sniffer_find(sniffers, tirn), last = sniffers->num - 1;

    if (--sniffers->times[at]) {
        return;
    }
    if (sniffers->num == 1) {
        for (unsigned i = 0; i < DIRECTIONS; i++) {
            sniffer_end(hca, &sniffers->place[i]);
        }
        g_free(sniffers);
        hca->sniffers = NULL;
        return;
    }
    sniffers->tirns[at] = sniffers->tirns[last];
    sniffers->times[at] = sniffers->times[last];
    sniffers->num = last;
    sniffer_tell(hca, sniffers->tirns, last);
}
