/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements contexts.h. */
#include "model/steering/contexts.h"
#include <string.h>
#include "model/core/pd.h"
#include "wire/encap/ip.h"

/* What may be asked of each type: its headers are a tunnel's, or an Ethernet header with at most
 * one tag. */
static const struct {
    uint16_t least, most; /* bytes of headers; most 0: there is no such type */
} reformat_types[] = {
    [PRM_REFORMAT_TYPE_L2_TO_VXLAN] = {ETH_BYTES, REFORMAT_MAX},
    [PRM_REFORMAT_TYPE_L2_TO_NVGRE] = {ETH_BYTES, REFORMAT_MAX},
    [PRM_REFORMAT_TYPE_L2_TO_L2_TUNNEL] = {ETH_BYTES, REFORMAT_MAX},
    [PRM_REFORMAT_TYPE_L3_TUNNEL_TO_L2] = {ETH_BYTES, ETH_BYTES + VLAN_BYTES},
    [PRM_REFORMAT_TYPE_L2_TO_L3_TUNNEL] = {ETH_BYTES, REFORMAT_MAX},
};

enum syn packet_reformat_create(struct hca *hca, uint16_t uid,
                                const struct prm_packet_reformat_context_in *in, size_t room,
                                uint32_t *id)
{
    uint32_t type = PRM_GET(packet_reformat_context_in, in, reformat_type);
    uint32_t len = PRM_GET(packet_reformat_context_in, in, reformat_data_size);
    struct packet_reformat *reformat;

    if (type >= G_N_ELEMENTS(reformat_types) || !reformat_types[type].most) {
        return SYN_REFORMAT_TYPE;
    }
    if (len < reformat_types[type].least || len > reformat_types[type].most || len > room) {
        return SYN_REFORMAT_SIZE;
    }
    reformat = obj_make(hca, OBJ_PACKET_REFORMAT, uid, sizeof(*reformat));
    if (!reformat) {
        return SYN_NO_MEMORY;
    }
    reformat->type = (uint8_t)type;
    reformat->len = (uint16_t)len;
    memcpy(reformat->headers, PRM_PTR(packet_reformat_context_in, in, reformat_data), len);
    *id = reformat->obj.num;
    return SYN_OK;
}

enum syn packet_reformat_query(struct hca *hca, uint16_t uid, uint32_t id,
                               struct prm_packet_reformat_context_in *out, size_t room)
{
    const struct packet_reformat *reformat = packet_reformat_find(hca, id);
    enum syn syn = uid_check((const struct obj *)reformat, uid, SYN_NO_REFORMAT);

    if (syn != SYN_OK) {
        return syn;
    }
    if (room < reformat->len) {
        return SYN_OUT_LEN;
    }
    PRM_SET(packet_reformat_context_in, out, reformat_type, reformat->type);
    PRM_SET(packet_reformat_context_in, out, reformat_data_size, reformat->len);
    memcpy(PRM_PTR(packet_reformat_context_in, out, reformat_data), reformat->headers,
           reformat->len);
    return SYN_OK;
}

enum syn modify_header_create(struct hca *hca, uint16_t uid, uint8_t table_type,
                              const struct prm_set_action_in *list, unsigned n, uint32_t *id)
{
    struct rewrite_action actions[REWRITE_MAX];
    size_t size = n * sizeof(actions[0]);
    struct modify_header *modify;
    enum syn syn;

    if (table_type != PRM_FLOW_TABLE_TYPE_NIC_RX && table_type != PRM_FLOW_TABLE_TYPE_NIC_TX) {
        return SYN_FT_TYPE;
    }
    if (n > REWRITE_MAX) {
        return SYN_LIMIT;
    }
    syn = n ? rewrite_read(list, n, actions) : SYN_MH_ACTION;
    if (syn != SYN_OK) {
        return syn;
    }
    modify = obj_make(hca, OBJ_MODIFY_HEADER, uid, sizeof(*modify) + size);
    if (!modify) {
        return SYN_NO_MEMORY;
    }
    modify->table_type = table_type;
    modify->count = (uint8_t)n;
    modify->writes_frame = rewrite_writes_frame(actions, n);
    memcpy(modify->actions, actions, size);
    *id = modify->obj.num;
    return SYN_OK;
}
