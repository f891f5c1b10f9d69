/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads what entries do to frames, and says which of it goes together: tunnels, header rewrite,
 * VLAN tags. model/steering/change.c does it.
 */
#include "model/core/pd.h"
#include "model/steering/change.h"
#include "wire/encap/ip.h"

#define ACTION(name)   PRM_FLOW_ACTION_##name
#define REFORMAT(name) (1u << PRM_REFORMAT_TYPE_##name)

/* What entries of each domain may do; QUERY_HCA_CAP reports it (fw/caps_net.c). A card decapsulates
 * what it receives, and encapsulates what it sends. */
static const struct {
    uint16_t actions;
    uint8_t reformats; /* REFORMAT() of types */
} domains[STEERING_DOMAINS] = {
    [STEERING_NIC_RX] = {ACTION(PACKET_REFORMAT) | ACTION(DECAP) | ACTION(MOD_HDR) |
                             ACTION(VLAN_POP) | ACTION(VLAN_POP_2),
                         REFORMAT(L2_TO_VXLAN) | REFORMAT(L2_TO_NVGRE) | REFORMAT(L2_TO_L2_TUNNEL) |
                             REFORMAT(L3_TUNNEL_TO_L2)},
    [STEERING_NIC_TX] = {ACTION(PACKET_REFORMAT) | ACTION(MOD_HDR) | ACTION(VLAN_PUSH) |
                             ACTION(VLAN_PUSH_2),
                         REFORMAT(L2_TO_VXLAN) | REFORMAT(L2_TO_NVGRE) | REFORMAT(L2_TO_L2_TUNNEL) |
                             REFORMAT(L2_TO_L3_TUNNEL)},
};

bool steering_changes_ok(const struct flow_table *table, const struct flow_entry *entry)
{
    uint16_t changes = entry->action & CHANGE_ACTIONS;
    bool decaps = entry->reformat && packet_reformat_is_decap(entry->reformat->type);

    return !(changes & ~domains[table->domain].actions) &&
           !(changes && entry->action & ACTION(DROP)) &&
           !(changes & ACTION(DECAP) && (!table->decaps || decaps)) &&
           !(changes & ACTION(PACKET_REFORMAT) && !entry->reformat) &&
           !(changes & ACTION(MOD_HDR) && !entry->modify) &&
           (changes & ACTION(VLAN_POP) || !(changes & ACTION(VLAN_POP_2))) &&
           (changes & ACTION(VLAN_PUSH) || !(changes & ACTION(VLAN_PUSH_2)));
}

enum syn steering_find_reformat(struct hca *hca, const struct flow_table *table, uint32_t id,
                                struct packet_reformat **reformat)
{
    enum syn syn;

    *reformat = packet_reformat_find(hca, id);
    syn = uid_check((const struct obj *)*reformat, table->obj.uid, SYN_NO_REFORMAT);
    if (syn != SYN_OK) {
        return syn;
    }
    return table->reformats && domains[table->domain].reformats & 1u << (*reformat)->type
               ? SYN_OK
               : SYN_FTE_ACTION;
}

static enum syn action_find_modify(struct hca *hca, const struct flow_table *table, uint32_t id,
                                   struct modify_header **modify)
{
    enum syn syn;

    *modify = modify_header_find(hca, id);
    syn = uid_check((const struct obj *)*modify, table->obj.uid, SYN_NO_MODIFY_HEADER);
    if (syn != SYN_OK) {
        return syn;
    }
    return (*modify)->table_type == table->type ? SYN_OK : SYN_FTE_ACTION;
}

static bool action_read_vlan(const struct prm_vlan *in, struct flow_vlan *vlan)
{
    vlan->tpid = (uint16_t)PRM_GET(vlan, in, ethtype);
    vlan->tci = (uint16_t)(PRM_GET(vlan, in, prio) << 13 | PRM_GET(vlan, in, cfi) << 12 |
                           PRM_GET(vlan, in, vid));
    return vlan->tpid == ETH_TYPE_VLAN || vlan->tpid == ETH_TYPE_QINQ;
}

static void action_write_vlan(const struct flow_vlan *vlan, struct prm_vlan *out)
{
    PRM_SET(vlan, out, ethtype, vlan->tpid);
    PRM_SET(vlan, out, prio, vlan->tci >> 13);
    PRM_SET(vlan, out, cfi, vlan->tci >> 12 & 1);
    PRM_SET(vlan, out, vid, vlan->tci & 0xfff);
}

enum syn steering_read_changes(struct hca *hca, const struct flow_table *table,
                               const struct prm_flow_context *ctx, struct flow_entry *entry)
{
    enum syn syn = SYN_OK;

    entry->reformat = NULL;
    entry->modify = NULL;
    if (entry->action & ACTION(PACKET_REFORMAT)) {
        syn = steering_find_reformat(hca, table, PRM_GET(flow_context, ctx, packet_reformat_id),
                                     &entry->reformat);
    }
    if (syn == SYN_OK && entry->action & ACTION(MOD_HDR)) {
        syn = action_find_modify(hca, table, PRM_GET(flow_context, ctx, modify_header_id),
                                 &entry->modify);
    }
    if (syn != SYN_OK) {
        return syn;
    }
    if ((!action_read_vlan(PRM_PTR(flow_context, ctx, push_vlan), &entry->vlans[0]) &&
         entry->action & ACTION(VLAN_PUSH)) ||
        (!action_read_vlan(PRM_PTR(flow_context, ctx, push_vlan_2), &entry->vlans[1]) &&
         entry->action & ACTION(VLAN_PUSH_2))) {
        return SYN_FTE_ACTION;
    }
    return SYN_OK;
}

void steering_write_changes(const struct flow_entry *entry, struct prm_flow_context *ctx)
{
    if (entry->action & ACTION(VLAN_PUSH)) {
        action_write_vlan(&entry->vlans[0], PRM_PTR(flow_context, ctx, push_vlan));
    }
    if (entry->action & ACTION(VLAN_PUSH_2)) {
        action_write_vlan(&entry->vlans[1], PRM_PTR(flow_context, ctx, push_vlan_2));
    }
    PRM_SET(flow_context, ctx, packet_reformat_id, entry->reformat ? entry->reformat->obj.num : 0);
    PRM_SET(flow_context, ctx, modify_header_id, entry->modify ? entry->modify->obj.num : 0);
}
