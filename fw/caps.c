/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Evaluates the tables of capabilities: what the function reports and supports.
 *
 * The maximum of a field is what the model supports and the profile allows. The present value is
 * the same, except for the few fields that a driver may set; these keep the set value until a reset
 * or the next ENABLE_HCA.
 */
#include <string.h>
#include "fw/caps.h"
#include "fw/cmd_table.h"
#include "model/core/obj_class.h"

#define ALWAYS 0

static const struct cap_section {
    uint16_t section; /* enum prm_hca_cap_type */
    /* the field of the general section that says that this section exists, or ALWAYS */
    uint32_t flag;
    const struct cap *rows;
    /* True: a driver sets only the settable fields, and its zeros in other fields mean nothing (the
     * driver's handle_hca_cap_atomic()). False: the driver sends the section back as it has read
     * it. */
    bool sparse;
} sections[] = {
    {PRM_HCA_CAP_TYPE_GENERAL, ALWAYS, caps_general, false},
    {PRM_HCA_CAP_TYPE_ETHERNET_OFFLOADS, PRM_cmd_hca_cap_eth_net_offloads_FIELD, caps_ethernet,
     false},
    {PRM_HCA_CAP_TYPE_ATOMIC, PRM_cmd_hca_cap_atomic_FIELD, caps_atomic, true},
    {PRM_HCA_CAP_TYPE_ROCE, PRM_cmd_hca_cap_roce_FIELD, caps_roce, false},
    {PRM_HCA_CAP_TYPE_FLOW_TABLE, PRM_cmd_hca_cap_nic_flow_table_FIELD, caps_flow_table, false},
    {PRM_HCA_CAP_TYPE_DEBUG, PRM_cmd_hca_cap_debug_FIELD, caps_debug, false},
    {PRM_HCA_CAP_TYPE_QOS, PRM_cmd_hca_cap_qos_FIELD, caps_qos, false},
    {PRM_HCA_CAP_TYPE_GENERAL_2, PRM_cmd_hca_cap_hca_cap_2_FIELD, caps_general_2, false},
    {PRM_HCA_CAP_TYPE_DEV_MEM, PRM_cmd_hca_cap_device_memory_FIELD, caps_device_memory, false},
    {PRM_HCA_CAP_TYPE_VECTOR_CALC, PRM_cmd_hca_cap_vector_calc_FIELD, caps_vector_calc, false},
    {PRM_HCA_CAP_TYPE_CRYPTO, PRM_cmd_hca_cap_crypto_FIELD, caps_crypto, false},
    {PRM_HCA_CAP_TYPE_ODP, PRM_cmd_hca_cap_pg_FIELD, caps_odp, false},
    {PRM_HCA_CAP_TYPE_DEV_EVENT, PRM_cmd_hca_cap_event_cap_FIELD, caps_event, false},
};

static const struct cap_section *caps_section(uint16_t section)
{
    for (size_t i = 0; i < G_N_ELEMENTS(sections); i++) {
        if (sections[i].section == section) {
            return &sections[i];
        }
    }
    return NULL;
}

/* -- the rows of a section --------------------------------------------------------------------- */

/* Walks the rows of a section's table. The general section also has rows for the number of objects
 * of each kind. */
struct cap_walk {
    const struct cap *next;
    unsigned kind; /* the last kind */
    struct cap of_kind;
};

static struct cap caps_of_kind(const struct fw *fw, const struct obj_class *c)
{
    const struct obj_table *numbers = (const void *)((const char *)&fw->hca + c->space);
    const struct prm_object *o = c->object;

    return (struct cap){
        .field = c->log_max,
        .name = c->name,
        .value = g_bit_storage(numbers->end) - 1,
        .commands = {o->create->opcode, o->destroy->opcode, o->query ? o->query->opcode : 0},
    };
}

static const struct cap *caps_next(const struct fw *fw, const struct cap_section *s,
                                   struct cap_walk *walk)
{
    if (walk->next->field) {
        return walk->next++;
    }
    while (s->section == PRM_HCA_CAP_TYPE_GENERAL && ++walk->kind < OBJ_KINDS) {
        if (obj_classes[walk->kind].log_max) {
            walk->of_kind = caps_of_kind(fw, &obj_classes[walk->kind]);
            return &walk->of_kind;
        }
    }
    return NULL;
}

#define CAPS_FOREACH(row, fw, s)                                                                   \
    for (struct cap_walk walk_ = {.next = (s)->rows}; ((row) = caps_next(fw, s, &walk_));)

/* -- values ------------------------------------------------------------------------------------ */

static bool caps_has_commands(const struct cap *row)
{
    for (size_t i = 0; i < G_N_ELEMENTS(row->commands) && row->commands[i]; i++) {
        if (!fw_cmd_find(row->commands[i])) {
            return false;
        }
    }
    return true;
}

static uint64_t caps_of_model(const struct fw *fw, const struct cap *row)
{
    if (!caps_has_commands(row)) {
        return 0;
    }
    if (row->of) {
        return row->of(fw);
    }
    return row->is_limit ? *(const unsigned *)((const char *)&fw->hca.limits + row->limit)
                         : row->value;
}

uint64_t caps_most(const struct fw *fw, uint16_t section, uint32_t field)
{
    for (const struct fw_cap_limit *l = fw->profile->at_most; l && l->field; l++) {
        if (l->section == section && l->field == field) {
            return l->most;
        }
    }
    return UINT64_MAX;
}

static uint64_t caps_max(const struct fw *fw, const struct cap_section *s, const struct cap *row)
{
    uint64_t has = caps_of_model(fw, row), allowed = caps_most(fw, s->section, row->field);

    return row->is_set ? has & allowed : MIN(has, allowed);
}

static uint8_t *caps_setting(struct fw_caps *caps, const struct cap *row)
{
    return (uint8_t *)caps + row->now;
}

static uint64_t caps_cur(const struct fw *fw, const struct cap_section *s, const struct cap *row)
{
    struct fw_caps now = fw->caps;

    return row->settable ? *caps_setting(&now, row) : caps_max(fw, s, row);
}

static uint64_t caps_value(const struct fw *fw, uint16_t section, uint32_t field, bool max)
{
    const struct cap_section *s = caps_section(section);
    const struct cap *row;

    CAPS_FOREACH(row, fw, s)
    {
        if (row->field == field) {
            return max ? caps_max(fw, s, row) : caps_cur(fw, s, row);
        }
    }
    return 0;
}

static bool caps_section_is_there(const struct fw *fw, const struct cap_section *s, bool max)
{
    return s->flag == ALWAYS || caps_value(fw, PRM_HCA_CAP_TYPE_GENERAL, s->flag, max);
}

bool caps_fill(const struct fw *fw, uint16_t section, bool max, void *cap)
{
    const struct cap_section *s = caps_section(section);
    const struct cap *row;

    if (!s || !caps_section_is_there(fw, s, max)) {
        return false;
    }
    CAPS_FOREACH(row, fw, s)
    {
        prm_set(cap, row->field, max ? caps_max(fw, s, row) : caps_cur(fw, s, row), row->name);
    }
    return true;
}

/* The fields of a transport in section ODP, in the order of enum fault_op from bit 0 up. */
#define ODP_OPERATIONS 6
#define ODP_FIELDS(scheme, transport)                                                              \
    {                                                                                              \
        CAP_ODP_FIELD(scheme, transport, srq_receive), CAP_ODP_FIELD(scheme, transport, atomic),   \
            CAP_ODP_FIELD(scheme, transport, read), CAP_ODP_FIELD(scheme, transport, write),       \
            CAP_ODP_FIELD(scheme, transport, receive), CAP_ODP_FIELD(scheme, transport, send)      \
    }
#define ODP_SCHEME(scheme)                                                                         \
    {                                                                                              \
        [PAGING_RC] = ODP_FIELDS(scheme, rc), [PAGING_UC] = ODP_FIELDS(scheme, uc),                \
        [PAGING_UD] = ODP_FIELDS(scheme, ud), [PAGING_XRC] = ODP_FIELDS(scheme, xrc),              \
        [PAGING_DC] = ODP_FIELDS(scheme, dc),                                                      \
    }
static const uint32_t odp_fields[2][PAGING_TRANSPORTS][ODP_OPERATIONS] = {
    ODP_SCHEME(transport),
    ODP_SCHEME(memory),
};

static void caps_apply_odp(struct fw *fw)
{
    struct hca *hca = &fw->hca;

    hca->memory_faults = fw->caps.mem_page_fault;
    for (unsigned t = 0; t < PAGING_TRANSPORTS; t++) {
        hca->may_fault[t] = 0;
        for (unsigned i = 0; i < ODP_OPERATIONS; i++) {
            hca->may_fault[t] |=
                caps_value(fw, PRM_HCA_CAP_TYPE_ODP, odp_fields[hca->memory_faults][t][i], false)
                << i;
        }
    }
}

/* Copies set values to where the model uses them. */
static void caps_apply(struct fw *fw)
{
    caps_apply_odp(fw);
    fw->hca.big_endian_replies = fw->caps.atomic_mode == PRM_ATOMIC_REQ_MODE_BIG_ENDIAN;
    fw->hca.long_cache_lines = fw->caps.cache_line_128byte;
}

/* -- settings by a driver --------------------------------------------------------------------- */

static bool caps_can_be(const struct cap *row, uint64_t value, uint64_t max)
{
    return value <= max && (!row->values || (value < 32 && row->values >> value & 1));
}

/* Takes one field of what a driver sends over into *now. */
static enum syn caps_take(const struct fw *fw, const struct cap_section *s, const struct cap *row,
                          const void *cap, struct fw_caps *now)
{
    uint64_t value = prm_get(cap, row->field), max = caps_max(fw, s, row);

    if (!caps_can_be(row, value, max)) {
        return SYN_CAP_TOO_HIGH;
    }
    if (row->settable) {
        *caps_setting(now, row) = (uint8_t)value;
    } else if (value != max && !(s->sparse && value == 0)) {
        return SYN_CAP_FIXED;
    }
    return SYN_OK;
}

enum syn caps_set(struct fw *fw, uint16_t section, const void *cap)
{
    const struct cap_section *s = caps_section(section);
    g_autofree uint8_t *known = g_malloc0(CAP_SECTION_BYTES);
    struct fw_caps now = fw->caps;
    bool settable = false;
    const struct cap *row;

    if (!s || !caps_section_is_there(fw, s, false)) {
        return SYN_NO_CAP_SECTION;
    }
    CAPS_FOREACH(row, fw, s)
    {
        settable |= row->settable;
    }
    if (!settable) {
        return SYN_NO_CAP_SECTION;
    }
    CAPS_FOREACH(row, fw, s)
    {
        enum syn syn = caps_take(fw, s, row, cap, &now);

        if (syn) {
            return syn;
        }
        prm_set(known, row->field, prm_get(cap, row->field), row->name);
    }
    if (memcmp(known, cap, CAP_SECTION_BYTES) != 0) { /* a field without a row has changed */
        return SYN_CAP_FIXED;
    }
    fw->caps = now;
    caps_apply(fw);
    return SYN_OK;
}

void caps_reset(struct fw *fw)
{
    for (size_t i = 0; i < G_N_ELEMENTS(sections); i++) {
        const struct cap *row;

        CAPS_FOREACH(row, fw, &sections[i])
        {
            if (row->settable) {
                *caps_setting(&fw->caps, row) = (uint8_t)caps_max(fw, &sections[i], row);
            }
        }
    }
    fw->caps.cmdif_checksum = PRM_CAP_CMDIF_CHECKSUM_INITIAL;
    fw->caps.cache_line_128byte = 0;
    memset(fw->caps.odp, 0, sizeof(fw->caps.odp));
    fw->caps.mem_page_fault = 0;
    fw->hca.limits.inline_l2 =
        caps_value(fw, PRM_HCA_CAP_TYPE_ETHERNET_OFFLOADS,
                   PRM_per_protocol_networking_offload_caps_wqe_inline_mode_FIELD,
                   true) == PRM_CAP_INLINE_MODE_L2;
    fw->hca.limits.swp = caps_value(fw, PRM_HCA_CAP_TYPE_ETHERNET_OFFLOADS,
                                    PRM_per_protocol_networking_offload_caps_swp_FIELD, true);
    fw->hca.limits.multi_packet = caps_value(
        fw, PRM_HCA_CAP_TYPE_ETHERNET_OFFLOADS,
        PRM_per_protocol_networking_offload_caps_enhanced_multi_pkt_send_wqe_FIELD, true);
    /* Drivers let TIRs look into tunnels if one of these is reported (mlx5_ib: qp.c,
     * tunnel_offload_supported()). */
    fw->hca.limits.tunnels =
        caps_value(fw, PRM_HCA_CAP_TYPE_ETHERNET_OFFLOADS,
                   PRM_per_protocol_networking_offload_caps_tunnel_stateless_vxlan_FIELD, true) ||
        caps_value(fw, PRM_HCA_CAP_TYPE_ETHERNET_OFFLOADS,
                   PRM_per_protocol_networking_offload_caps_tunnel_stateless_gre_FIELD, true) ||
        caps_value(fw, PRM_HCA_CAP_TYPE_ETHERNET_OFFLOADS,
                   PRM_per_protocol_networking_offload_caps_tunnel_stateless_geneve_rx_FIELD, true);
    fw->hca.limits.hairpin =
        caps_value(fw, PRM_HCA_CAP_TYPE_GENERAL, PRM_cmd_hca_cap_hairpin_FIELD, true);
    fw->hca.limits.cqe_checksum_full =
        caps_value(fw, PRM_HCA_CAP_TYPE_ETHERNET_OFFLOADS,
                   PRM_per_protocol_networking_offload_caps_cqe_checksum_full_FIELD, true);
    fw->hca.limits.early_packets = caps_value(fw, PRM_HCA_CAP_TYPE_GENERAL,
                                              PRM_cmd_hca_cap_dp_ordering_ooo_all_rc_FIELD, true);
    fw->hca.limits.tunneled =
        caps_value(fw, PRM_HCA_CAP_TYPE_GENERAL, PRM_cmd_hca_cap_tunneled_atomic_FIELD, true);
    fw->hca.limits.mmo_sq =
        caps_value(fw, PRM_HCA_CAP_TYPE_GENERAL, PRM_cmd_hca_cap_dma_mmo_sq_FIELD, true);
    fw->hca.limits.mmo_qp =
        caps_value(fw, PRM_HCA_CAP_TYPE_GENERAL, PRM_cmd_hca_cap_dma_mmo_qp_FIELD, true);
    fw->hca.limits.wait_on_time =
        caps_value(fw, PRM_HCA_CAP_TYPE_GENERAL, PRM_cmd_hca_cap_wait_on_time_FIELD, true);
    fw->hca.limits.no_send_dbr = caps_value(fw, PRM_HCA_CAP_TYPE_GENERAL_2,
                                            PRM_cmd_hca_cap_2_send_dbr_mode_no_dbr_ext_FIELD, true);
    fw->hca.limits.real_time =
        caps_value(fw, PRM_HCA_CAP_TYPE_GENERAL, PRM_cmd_hca_cap_sq_ts_format_FIELD, true) ==
        PRM_CAP_TS_FORMAT_FREE_RUNNING_AND_REAL_TIME;
    fw->hca.limits.enhanced_cqes = caps_value(fw, PRM_HCA_CAP_TYPE_GENERAL,
                                              PRM_cmd_hca_cap_enhanced_cqe_compression_FIELD, true);
    caps_apply(fw);
}

bool caps_have_general_type(const struct fw *fw, uint16_t type)
{
    return type < 64 && caps_value(fw, PRM_HCA_CAP_TYPE_GENERAL,
                                   PRM_cmd_hca_cap_general_obj_types_FIELD, true) >>
                                type &
                            1;
}

/* -- which commands the capabilities allow ---------------------------------------------------- */

static bool caps_names_command(const struct cap *row, uint16_t opcode)
{
    for (size_t i = 0; i < G_N_ELEMENTS(row->commands); i++) {
        if (row->commands[i] == opcode) {
            return true;
        }
    }
    return false;
}

/* Whether any row names the command. There are many rows, and most commands are in none. */
static bool caps_need_command(const struct fw *fw, uint16_t opcode)
{
    static uint8_t named[UINT16_MAX / 8 + 1];
    static gsize done;

    if (g_once_init_enter(&done)) {
        for (size_t i = 0; i < G_N_ELEMENTS(sections); i++) {
            const struct cap *row;

            CAPS_FOREACH(row, fw, &sections[i])
            {
                for (size_t n = 0; n < G_N_ELEMENTS(row->commands); n++) {
                    named[row->commands[n] / 8] |= (uint8_t)(1u << row->commands[n] % 8);
                }
            }
        }
        g_once_init_leave(&done, 1);
    }
    return named[opcode / 8] & 1u << opcode % 8;
}

bool caps_allow_command(const struct fw *fw, uint16_t opcode)
{
    bool is_named = false;

    if (!fw->profile->at_most || !caps_need_command(fw, opcode)) {
        return true;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(sections); i++) {
        const struct cap *row;

        CAPS_FOREACH(row, fw, &sections[i])
        {
            if (caps_names_command(row, opcode)) {
                if (caps_max(fw, &sections[i], row)) {
                    return true;
                }
                is_named = true;
            }
        }
    }
    return !is_named;
}
