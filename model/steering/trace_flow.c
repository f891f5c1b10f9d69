/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements trace_flow.h. */
#include "model/steering/trace_flow.h"
#include <stdio.h>
#include "model/core/trace_event.h"
#include "prm/reflect.h"

#define WORDS 900 /* of a list of actions or destinations */

/* The words for one table on the way of a frame. */
struct flow_step {
    const struct flow_table *table;
    const struct flow_entry *entry; /* or NULL */
    char how[64], actions[WORDS], to[WORDS];
};

static void trace_flow_event(const struct walk *walk, const struct flow_step *step)
{
    struct trace_event event;

    trace_event_begin(&event, "flow");
    trace_event_add_name(&event, "domain", "flow_table_type", step->table->type);
    if (walk->sqn) {
        prm_line_add_count(&event.line, "qpn", walk->sqn);
    }
    prm_line_add_count(&event.line, "table", step->table->obj.num);
    prm_line_add_count(&event.line, "level", step->table->level);
    if (step->entry) {
        prm_line_add_count(&event.line, "group", step->entry->group->id);
        prm_line_add_count(&event.line, "entry", step->entry->index);
        prm_line_add_text(&event.line, "actions", step->actions);
        prm_line_add_count(&event.line, "flow_tag", step->entry->flow_tag);
    }
    prm_line_add_text(&event.line, "how", step->how);
    if (step->to[0]) {
        prm_line_add_text(&event.line, "to", step->to);
    }
    trace_event_end(walk->hca, &event);
}

static void trace_flow_line(struct hca *hca, const struct flow_step *step)
{
    struct trace_line line;

    trace_begin(&line);
    prm_line_add_name(&line.line, "flow_table_type", step->table->type);
    prm_line_add(&line.line, " table 0x%x: %s", step->table->obj.num, step->how);
    if (step->entry) {
        prm_line_add(&line.line, ": %s", step->actions);
    }
    if (step->to[0]) {
        prm_line_add(&line.line, "%s %s", step->entry ? "" : ":", step->to);
    }
    trace_end(hca, &line);
}

/* A frame that was made again, because it had no place on the wire, is in the trace already. */
static void trace_flow_step(const struct walk *walk, const struct flow_step *step)
{
    if (walk->counted) {
        return;
    }
    if (walk->hca->tracing & HCA_TRACES_EVENTS) {
        trace_flow_event(walk, step);
    }
    if (walk->hca->tracing & HCA_TRACES_TEXT) {
        trace_flow_line(walk->hca, step);
    }
}

static void trace_flow_actions(struct prm_line *line, unsigned actions)
{
    for (unsigned bit = 1; bit <= actions; bit <<= 1) {
        if (actions & bit) {
            prm_line_add(line, "%s", line->len ? " " : "");
            prm_line_add_name(line, "flow_action", bit);
        }
    }
}

static void trace_flow_dests(struct prm_line *line, const struct flow_entry *entry)
{
    for (unsigned i = 0; i < entry->num_dests; i++) {
        const struct flow_dest *dest = &entry->dests[i];

        prm_line_add(line, "%s %s 0x%x", i ? "," : "to",
                     dest->type == PRM_FLOW_DESTINATION_TYPE_FLOW_TABLE ? "table" : "TIR",
                     dest->id);
    }
}

void steering_trace_entry(const struct walk *walk, const struct flow_table *table,
                          const struct flow_entry *entry)
{
    struct flow_step step = {.table = table, .entry = entry};
    struct prm_line line;

    snprintf(step.how, sizeof(step.how), "entry %u of group %u", entry->index, entry->group->id);
    prm_line_begin(&line, step.actions, sizeof(step.actions));
    trace_flow_actions(&line, entry->action);
    prm_line_begin(&line, step.to, sizeof(step.to));
    if (entry->action & PRM_FLOW_ACTION_FWD_DEST) {
        trace_flow_dests(&line, entry);
    }
    trace_flow_step(walk, &step);
}

void steering_trace_miss(const struct walk *walk, const struct flow_table *table,
                         const struct flow_table *next)
{
    struct flow_step step = {.table = table, .how = "no entry matches"};

    if (next) {
        snprintf(step.to, sizeof(step.to), "to table 0x%x", next->obj.num);
    } else if (table->miss_action == PRM_FLOW_TABLE_MISS_ACTION_SWITCH_DOMAIN) {
        snprintf(step.to, sizeof(step.to), "to the other domain");
    }
    trace_flow_step(walk, &step);
}

void steering_trace_software(const struct walk *walk, const struct flow_table *table,
                             unsigned steps, enum ste_end end, uint32_t num)
{
    static const struct {
        const char *words;
        bool has_number;
    } ends[STE_ENDS] = {
        [STE_DROP] = {"dropped", false},      [STE_ALLOW] = {"sent", false},
        [STE_TIR] = {"to TIR", true},         [STE_TABLE] = {"to table", true},
        [STE_SAMPLER] = {"to sampler", true}, [STE_METER] = {"to meter", true},
    };
    struct flow_step step = {.table = table};

    snprintf(step.how, sizeof(step.how), "entries of software, %u steps", steps);
    if (ends[end].has_number) {
        snprintf(step.to, sizeof(step.to), "%s 0x%x", ends[end].words, num);
    } else {
        snprintf(step.to, sizeof(step.to), "%s", ends[end].words);
    }
    trace_flow_step(walk, &step);
}
