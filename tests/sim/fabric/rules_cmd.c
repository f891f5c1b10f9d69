/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements rules_cmd.h. */
#include "tests/sim/fabric/rules_cmd.h"
#include <inttypes.h>
#include "guest-lib/verbs/kernel/kernel.h"
#include "guest-lib/verbs/verbs.h"
#include "prm/prm.h"

#define LOG_ENTRIES 4
#define BULK        1u /* bit of flow_counter_bulk: 128 counters */

G_STATIC_ASSERT(1u << LOG_ENTRIES == RULES_ENTRIES);

/* Where a field is in fte_match_param, in bits. */
static const struct {
    uint16_t first, width;
} places[] = {
#define FIELD(name, section, layout, field)                                                        \
    {PRM_OFFSET(fte_match_param, section) * 8 + PRM_FIELD_BIT(PRM_##layout##_##field##_FIELD),     \
     PRM_FIELD_WIDTH(PRM_##layout##_##field##_FIELD)},
#define WORD(name, section, layout, field, nth)                                                    \
    {PRM_OFFSET(fte_match_param, section) * 8 + PRM_OFFSET(layout, field) * 8 + (nth)*32, 32},
#include "tests/sim/fabric/rules_fields.def"
#undef FIELD
#undef WORD
};

uint32_t rules_cmd_mask(enum rules_field field)
{
    return UINT32_MAX >> (32 - places[field].width);
}

static void rules_put(struct prm_fte_match_param *to, enum rules_field field, uint32_t value)
{
    for (unsigned i = 0; i < places[field].width; i++) {
        unsigned bit = places[field].first + places[field].width - 1 - i;

        to->bytes[bit / 8] |= (uint8_t)((value >> i & 1) << (7 - bit % 8));
    }
}

static uint8_t rules_criteria(const struct rules_group *group)
{
    uint8_t criteria = 0;

    for (unsigned i = 0; i < group->parts; i++) {
        criteria |=
            (uint8_t)(1u << places[group->field[i]].first / 8 / PRM_SIZE(fte_match_set_lyr_2_4));
    }
    return criteria;
}

static int rules_cmd(struct rules_hca *hca, const void *in, size_t in_len, void *out,
                     size_t out_len)
{
    return hv_cmd(hv_hca_of(hca->ctx), in, in_len, out, out_len);
}

#define RULES_MUST(hca, in, out)                                                                   \
    sim_must((hca)->job, rules_cmd(hca, in, sizeof(in), out, sizeof(out)))

/* -- counters ---------------------------------------------------------------------------------- */

/* A bulk; its first counters are used. */
void rules_cmd_make_counters(struct rules_hca *hca)
{
    struct prm_alloc_flow_counter_in in[1] = {0};
    struct prm_alloc_flow_counter_out out[1] = {0};

    PRM_SET(alloc_flow_counter_in, in, opcode, PRM_CMD_OP_ALLOC_FLOW_COUNTER);
    PRM_SET(alloc_flow_counter_in, in, flow_counter_bulk, BULK);
    RULES_MUST(hca, in, out);
    for (unsigned i = 0; i < RULES_COUNTERS; i++) {
        hca->counter[i] = PRM_GET(alloc_flow_counter_out, out, flow_counter_id) + i;
    }
}

void rules_cmd_free_counters(struct rules_hca *hca)
{
    struct prm_dealloc_flow_counter_in in[1] = {0};
    struct prm_dealloc_flow_counter_out out[1] = {0};

    PRM_SET(dealloc_flow_counter_in, in, opcode, PRM_CMD_OP_DEALLOC_FLOW_COUNTER);
    PRM_SET(dealloc_flow_counter_in, in, flow_counter_id, hca->counter[0]);
    RULES_MUST(hca, in, out);
}

void rules_cmd_query_counter(struct rules_hca *hca, unsigned which, uint64_t *packets,
                             uint64_t *bytes)
{
    struct prm_query_flow_counter_in in[1] = {0};
    uint8_t out[PRM_SIZE(query_flow_counter_out) + PRM_SIZE(traffic_counter)] = {0};
    struct prm_query_flow_counter_out *whole = (void *)out;
    const struct prm_traffic_counter *counter =
        PRM_PTR_AT(query_flow_counter_out, whole, flow_statistics, 0);

    PRM_SET(query_flow_counter_in, in, opcode, PRM_CMD_OP_QUERY_FLOW_COUNTER);
    PRM_SET(query_flow_counter_in, in, flow_counter_id, hca->counter[which]);
    RULES_MUST(hca, in, out);
    *packets = PRM_GET(traffic_counter, counter, packets);
    *bytes = PRM_GET(traffic_counter, counter, octets);
}

/* -- rewrites ---------------------------------------------------------------------------------- */

static void rules_put_action(void *action, unsigned field, unsigned bits, uint32_t value)
{
    PRM_SET(set_action_in, action, action_type, PRM_MODIFY_HEADER_ACTION_SET);
    PRM_SET(set_action_in, action, field, field);
    PRM_SET(set_action_in, action, length, bits % 32); /* 0: 32 */
    PRM_SET(set_action_in, action, data, value);
}

void rules_cmd_make_rewrites(struct rules_hca *hca, struct rules_domain *domain)
{
    for (unsigned i = 1; i < RULES_REWRITES; i++) {
        const struct rules_rewrite *rewrite = &domain->rewrite[i];
        uint8_t bytes[PRM_SIZE(alloc_modify_header_context_in) + 2 * PRM_SIZE(set_action_in)] = {0};
        struct prm_alloc_modify_header_context_in *in = (void *)bytes;
        struct prm_alloc_modify_header_context_out out[1] = {0};
        uint8_t *action = bytes + PRM_SIZE(alloc_modify_header_context_in);
        unsigned n = 0;

        if (rewrite->smac) {
            rules_put_action(action + 8 * n++, PRM_MODIFY_HEADER_FIELD_OUT_SMAC_15_0, 16,
                             rewrite->smac_low);
        }
        if (rewrite->reg) {
            rules_put_action(action + 8 * n++, PRM_MODIFY_HEADER_FIELD_METADATA_REG_C_0, 32,
                             rewrite->reg_value);
        }
        PRM_SET(alloc_modify_header_context_in, in, opcode, PRM_CMD_OP_ALLOC_MODIFY_HEADER_CONTEXT);
        PRM_SET(alloc_modify_header_context_in, in, table_type, domain->type);
        PRM_SET(alloc_modify_header_context_in, in, num_of_actions, n);
        RULES_MUST(hca, bytes, out);
        domain->rewrite_id[i] = PRM_GET(alloc_modify_header_context_out, out, modify_header_id);
    }
}

void rules_cmd_free_rewrites(struct rules_hca *hca, const struct rules_domain *domain)
{
    for (unsigned i = 1; i < RULES_REWRITES; i++) {
        struct prm_dealloc_modify_header_context_in in[1] = {0};
        struct prm_dealloc_modify_header_context_out out[1] = {0};

        PRM_SET(dealloc_modify_header_context_in, in, opcode,
                PRM_CMD_OP_DEALLOC_MODIFY_HEADER_CONTEXT);
        PRM_SET(dealloc_modify_header_context_in, in, modify_header_id, domain->rewrite_id[i]);
        RULES_MUST(hca, in, out);
    }
}

/* -- tables and groups ------------------------------------------------------------------------- */

static void rules_put_miss(const struct rules_domain *domain, const struct rules_table *table,
                           struct prm_flow_table_context *ctx)
{
    static const uint8_t actions[] = {
        [RULES_MISS_ENDS] = PRM_FLOW_TABLE_MISS_ACTION_DEF,
        [RULES_MISS_FORWARD] = PRM_FLOW_TABLE_MISS_ACTION_FWD,
        [RULES_MISS_SWITCH] = PRM_FLOW_TABLE_MISS_ACTION_SWITCH_DOMAIN,
    };

    PRM_SET(flow_table_context, ctx, table_miss_action, actions[table->miss]);
    if (table->miss == RULES_MISS_FORWARD) {
        PRM_SET(flow_table_context, ctx, table_miss_id, domain->table[table->miss_to].id);
    }
}

void rules_cmd_make_table(struct rules_hca *hca, const struct rules_domain *domain,
                          struct rules_table *table)
{
    struct prm_create_flow_table_in in[1] = {0};
    struct prm_create_flow_table_out out[1] = {0};
    struct prm_flow_table_context *ctx = PRM_PTR(create_flow_table_in, in, flow_table_context);

    PRM_SET(create_flow_table_in, in, opcode, PRM_CMD_OP_CREATE_FLOW_TABLE);
    PRM_SET(create_flow_table_in, in, table_type, domain->type);
    PRM_SET(flow_table_context, ctx, level, table->level);
    PRM_SET(flow_table_context, ctx, log_size, LOG_ENTRIES);
    rules_put_miss(domain, table, ctx);
    RULES_MUST(hca, in, out);
    table->id = PRM_GET(create_flow_table_out, out, table_id);
}

void rules_cmd_free_table(struct rules_hca *hca, const struct rules_domain *domain,
                          const struct rules_table *table)
{
    struct prm_destroy_flow_table_in in[1] = {0};
    struct prm_destroy_flow_table_out out[1] = {0};

    PRM_SET(destroy_flow_table_in, in, opcode, PRM_CMD_OP_DESTROY_FLOW_TABLE);
    PRM_SET(destroy_flow_table_in, in, table_type, domain->type);
    PRM_SET(destroy_flow_table_in, in, table_id, table->id);
    RULES_MUST(hca, in, out);
}

void rules_cmd_set_root(struct rules_hca *hca, const struct rules_domain *domain)
{
    struct prm_set_flow_table_root_in in[1] = {0};
    struct prm_set_flow_table_root_out out[1] = {0};

    PRM_SET(set_flow_table_root_in, in, opcode, PRM_CMD_OP_SET_FLOW_TABLE_ROOT);
    PRM_SET(set_flow_table_root_in, in, op_mod, PRM_SET_FLOW_TABLE_ROOT_OP_SET);
    PRM_SET(set_flow_table_root_in, in, table_type, domain->type);
    PRM_SET(set_flow_table_root_in, in, table_id, domain->front.id);
    RULES_MUST(hca, in, out);
}

void rules_cmd_set_miss(struct rules_hca *hca, const struct rules_domain *domain,
                        const struct rules_table *table)
{
    struct prm_modify_flow_table_in in[1] = {0};
    struct prm_modify_flow_table_out out[1] = {0};

    PRM_SET(modify_flow_table_in, in, opcode, PRM_CMD_OP_MODIFY_FLOW_TABLE);
    PRM_SET(modify_flow_table_in, in, table_type, domain->type);
    PRM_SET(modify_flow_table_in, in, table_id, table->id);
    PRM_SET(modify_flow_table_in, in, modify_field_select, PRM_MODIFY_FLOW_TABLE_MISS_TABLE_ID);
    rules_put_miss(domain, table, PRM_PTR(modify_flow_table_in, in, flow_table_context));
    RULES_MUST(hca, in, out);
}

void rules_cmd_make_group(struct rules_hca *hca, const struct rules_domain *domain,
                          const struct rules_table *table, struct rules_group *group)
{
    struct prm_create_flow_group_in in[1] = {0};
    struct prm_create_flow_group_out out[1] = {0};

    PRM_SET(create_flow_group_in, in, opcode, PRM_CMD_OP_CREATE_FLOW_GROUP);
    PRM_SET(create_flow_group_in, in, table_type, domain->type);
    PRM_SET(create_flow_group_in, in, table_id, table->id);
    PRM_SET(create_flow_group_in, in, start_flow_index, group->start);
    PRM_SET(create_flow_group_in, in, end_flow_index, group->end);
    PRM_SET(create_flow_group_in, in, match_criteria_enable, rules_criteria(group));
    for (unsigned i = 0; i < group->parts; i++) {
        rules_put(PRM_PTR(create_flow_group_in, in, match_criteria), group->field[i],
                  group->mask[i]);
    }
    RULES_MUST(hca, in, out);
    group->id = PRM_GET(create_flow_group_out, out, group_id);
}

void rules_cmd_free_group(struct rules_hca *hca, const struct rules_domain *domain,
                          const struct rules_table *table, const struct rules_group *group)
{
    struct prm_destroy_flow_group_in in[1] = {0};
    struct prm_destroy_flow_group_out out[1] = {0};

    PRM_SET(destroy_flow_group_in, in, opcode, PRM_CMD_OP_DESTROY_FLOW_GROUP);
    PRM_SET(destroy_flow_group_in, in, table_type, domain->type);
    PRM_SET(destroy_flow_group_in, in, table_id, table->id);
    PRM_SET(destroy_flow_group_in, in, group_id, group->id);
    RULES_MUST(hca, in, out);
}

/* -- entries ----------------------------------------------------------------------------------- */

static void rules_put_lists(struct rules_hca *hca, const struct rules_domain *domain,
                            const struct rules_entry *entry, struct prm_flow_context *ctx)
{
    uint8_t *list = PRM_PTR_AT(flow_context, ctx, destination, 0)->bytes;

    for (unsigned i = 0; i < entry->dests; i++, list += PRM_SIZE(dest_format_struct)) {
        struct prm_dest_format_struct *dest = (void *)list;
        const struct rules_dest *to = &entry->dest[i];

        PRM_SET(dest_format_struct, dest, destination_type,
                to->is_table ? PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE
                             : PRM_FLOW_DESTINATION_TYPE_TIR);
        PRM_SET(dest_format_struct, dest, destination_id,
                to->is_table ? domain->table[to->which].id : hca->tirn[to->which]);
    }
    for (unsigned i = 0; i < entry->counters; i++, list += PRM_SIZE(flow_counter_list)) {
        PRM_SET(flow_counter_list, (void *)list, flow_counter_id, hca->counter[entry->counter[i]]);
    }
}

static unsigned rules_actions(const struct rules_entry *entry)
{
    const struct rules_change *change = &entry->change;

    return (change->pops > 0 ? PRM_FLOW_ACTION_VLAN_POP : 0u) |
           (change->pops > 1 ? PRM_FLOW_ACTION_VLAN_POP_2 : 0u) |
           (change->pushes > 0 ? PRM_FLOW_ACTION_VLAN_PUSH : 0u) |
           (change->pushes > 1 ? PRM_FLOW_ACTION_VLAN_PUSH_2 : 0u) |
           (change->rewrite ? PRM_FLOW_ACTION_MOD_HDR : 0u) |
           (entry->drops   ? PRM_FLOW_ACTION_DROP
            : entry->dests ? PRM_FLOW_ACTION_FWD_DEST
                           : PRM_FLOW_ACTION_ALLOW) |
           (entry->counters ? PRM_FLOW_ACTION_COUNT : 0u);
}

/* Only an entry that leads to a table of no higher level needs a flag for that. */
static bool rules_ignores_level(const struct rules_domain *domain, const struct rules_table *table,
                                const struct rules_entry *entry)
{
    bool ignores = false;

    for (unsigned i = 0; i < entry->dests; i++) {
        ignores |=
            entry->dest[i].is_table && domain->table[entry->dest[i].which].level <= table->level;
    }
    return ignores;
}

static void rules_put_tag(struct prm_vlan *to, struct rules_tag tag)
{
    PRM_SET(vlan, to, ethtype, tag.tpid);
    PRM_SET(vlan, to, prio, tag.tci >> 13);
    PRM_SET(vlan, to, cfi, tag.tci >> 12 & 1);
    PRM_SET(vlan, to, vid, tag.tci & 0xfff);
}

static void rules_put_change(const struct rules_domain *domain, const struct rules_change *change,
                             struct prm_flow_context *ctx)
{
    if (change->pushes > 0) {
        rules_put_tag(PRM_PTR(flow_context, ctx, push_vlan), change->tag[0]);
    }
    if (change->pushes > 1) {
        rules_put_tag(PRM_PTR(flow_context, ctx, push_vlan_2), change->tag[1]);
    }
    if (change->rewrite) {
        PRM_SET(flow_context, ctx, modify_header_id, domain->rewrite_id[change->rewrite]);
    }
}

bool rules_cmd_set_entry(struct rules_hca *hca, const struct rules_domain *domain,
                         const struct rules_table *table, unsigned index,
                         const struct rules_entry *entry, bool is_new)
{
    uint8_t bytes[PRM_SIZE(set_fte_in) + 8 * (RULES_DESTS + 2)] = {0};
    struct prm_set_fte_in *in = (void *)bytes;
    struct prm_set_fte_out out[1] = {0};
    struct prm_flow_context *ctx = PRM_PTR(set_fte_in, in, flow_context);
    const struct rules_group *group = &table->group[entry->group];

    PRM_SET(set_fte_in, in, opcode, PRM_CMD_OP_SET_FLOW_TABLE_ENTRY);
    PRM_SET(set_fte_in, in, table_type, domain->type);
    PRM_SET(set_fte_in, in, table_id, table->id);
    PRM_SET(set_fte_in, in, flow_index, index);
    PRM_SET(set_fte_in, in, ignore_flow_level, rules_ignores_level(domain, table, entry));
    if (!is_new) {
        PRM_SET(set_fte_in, in, op_mod, PRM_SET_FTE_OP_MODIFY);
        PRM_SET(set_fte_in, in, modify_enable_mask,
                1u << PRM_SET_FTE_MODIFY_ACTION | 1u << PRM_SET_FTE_MODIFY_FLOW_TAG |
                    1u << PRM_SET_FTE_MODIFY_DESTINATION_LIST |
                    1u << PRM_SET_FTE_MODIFY_FLOW_COUNTERS);
    }
    PRM_SET(flow_context, ctx, group_id, group->id);
    PRM_SET(flow_context, ctx, flow_tag, entry->tag);
    PRM_SET(flow_context, ctx, action, rules_actions(entry));
    PRM_SET(flow_context, ctx, destination_list_size, entry->dests);
    PRM_SET(flow_context, ctx, flow_counter_list_size, entry->counters);
    for (unsigned i = 0; i < group->parts; i++) {
        rules_put(PRM_PTR(flow_context, ctx, match_value), group->field[i], entry->value[i]);
    }
    rules_put_change(domain, &entry->change, ctx);
    rules_put_lists(hca, domain, entry, ctx);
    return !rules_cmd(hca, in, PRM_SIZE(set_fte_in) + 8 * (entry->dests + entry->counters), out,
                      sizeof(out));
}

void rules_cmd_delete_entry(struct rules_hca *hca, const struct rules_domain *domain,
                            const struct rules_table *table, unsigned index)
{
    struct prm_delete_fte_in in[1] = {0};
    struct prm_delete_fte_out out[1] = {0};

    PRM_SET(delete_fte_in, in, opcode, PRM_CMD_OP_DELETE_FLOW_TABLE_ENTRY);
    PRM_SET(delete_fte_in, in, table_type, domain->type);
    PRM_SET(delete_fte_in, in, table_id, table->id);
    PRM_SET(delete_fte_in, in, flow_index, index);
    RULES_MUST(hca, in, out);
}
