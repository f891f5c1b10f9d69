/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the rules of a set, decides what happens, and counts and logs it. */
#include "wire/fault/rule.h"
#include "wire/open.h"
#include "wire/packet/describe.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#define NS_PER_S      1000000000ull
#define MAX_LISTENERS 2
#define LOG_BURST     100

struct fault_set {
    struct fault_options options;
    GPtrArray *rules; /* struct fault_rule, by number */
    unsigned next_number;
    unsigned made[FAULT_NUM_WHATS]; /* rules of each kind that were ever made */
    unsigned about[FAULT_NUM_SUBJECTS];
    /* whether rules are about frames of a direction (index: inbound), and may delay them */
    bool concerns[2], delays[2];
    struct {
        void (*changed)(void *opaque);
        void *opaque;
    } listeners[MAX_LISTENERS];
    /* the log's bucket: it holds a burst of lines and loses one each second */
    uint64_t log_since, log_left_out;
    unsigned log_lines;
    void (*happened)(void *opaque, const struct fault_deed *deed);
    void *happened_opaque;
};

static struct fault_rule *fault_set_rule(const struct fault_set *set, unsigned i)
{
    return g_ptr_array_index(set->rules, i);
}

uint64_t fault_set_now_ns(const struct fault_set *set)
{
    struct timespec now;

    if (set->options.clock_ns) {
        return set->options.clock_ns(set->options.clock_opaque);
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* -- rules come and go ------------------------------------------------------------------------- */

struct fault_set *fault_set_new(const struct fault_options *options)
{
    struct fault_set *set = g_new0(struct fault_set, 1);

    set->options = *options;
    set->rules = g_ptr_array_new_with_free_func(fault_rule_free);
    set->next_number = 1;
    return set;
}

void fault_set_free(struct fault_set *set)
{
    if (set) {
        g_ptr_array_unref(set->rules);
        g_free(set);
    }
}

static void fault_set_note(struct fault_set *set, const struct fault_rule *rule)
{
    bool delays = rule->action->what == FAULT_DELAY || rule->action->what == FAULT_RATE;

    set->about[rule->action->subject]++;
    if (rule->action->subject <= FAULT_ABOUT_LINK) {
        set->concerns[false] |= rule->out;
        set->concerns[true] |= rule->in;
        set->delays[false] |= rule->out && delays;
        set->delays[true] |= rule->in && delays;
    }
}

static void fault_set_changed(struct fault_set *set)
{
    memset(set->about, 0, sizeof(set->about));
    memset(set->concerns, 0, sizeof(set->concerns));
    memset(set->delays, 0, sizeof(set->delays));
    for (unsigned i = 0; i < set->rules->len; i++) {
        fault_set_note(set, fault_set_rule(set, i));
    }
    for (unsigned i = 0; i < MAX_LISTENERS; i++) {
        if (set->listeners[i].changed) {
            set->listeners[i].changed(set->listeners[i].opaque);
        }
    }
}

void fault_set_listen(struct fault_set *set, void (*changed)(void *opaque), void *opaque)
{
    for (unsigned i = 0; i < MAX_LISTENERS; i++) {
        if (!set->listeners[i].changed) {
            set->listeners[i].changed = changed;
            set->listeners[i].opaque = opaque;
            return;
        }
    }
    g_assert_not_reached();
}

void fault_set_unlisten(struct fault_set *set, void *opaque)
{
    for (unsigned i = 0; i < MAX_LISTENERS; i++) {
        if (set->listeners[i].opaque == opaque) {
            set->listeners[i].changed = NULL;
            set->listeners[i].opaque = NULL;
        }
    }
}

static struct chance fault_set_chance(struct fault_set *set, const struct fault_action *action)
{
    unsigned place = set->made[action->what]++;
    struct chance chance = chance_of(set->options.seed, action->stream, set->options.stream);

    if (place) {
        chance.state = chance_mix(chance.state ^ place);
    }
    return chance;
}

bool fault_set_add(struct fault_set *set, const char *text, GError **err)
{
    g_autoptr(GPtrArray) rules = fault_parse(text, set->options.names, err);

    if (!rules) {
        return false;
    }
    if (set->rules->len + rules->len > FAULT_MAX_RULES) {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_URI,
                    "there would be %u fault rules, but at most %d are allowed: remove some",
                    set->rules->len + rules->len, FAULT_MAX_RULES);
        return false;
    }
    for (unsigned i = 0; i < rules->len; i++) {
        struct fault_rule *rule = g_ptr_array_index(rules, i);

        rule->number = set->next_number++;
        rule->begun_ns = fault_set_now_ns(set);
        rule->chance = fault_set_chance(set, rule->action);
    }
    g_ptr_array_extend_and_steal(set->rules, g_steal_pointer(&rules));
    fault_set_changed(set);
    return true;
}

bool fault_set_remove(struct fault_set *set, unsigned number)
{
    for (unsigned i = 0; i < set->rules->len; i++) {
        if (fault_set_rule(set, i)->number == number) {
            g_ptr_array_remove_index(set->rules, i);
            fault_set_changed(set);
            return true;
        }
    }
    return false;
}

void fault_set_clear(struct fault_set *set)
{
    g_ptr_array_set_size(set->rules, 0);
    fault_set_changed(set);
}

unsigned fault_set_count(const struct fault_set *set)
{
    return set->rules->len;
}

void fault_set_get(const struct fault_set *set, unsigned i, struct fault_info *info)
{
    const struct fault_rule *rule = fault_set_rule(set, i);

    *info = (struct fault_info){rule->number, rule->text, rule->matched, rule->done};
}

char *fault_set_list(const struct fault_set *set)
{
    GString *list = g_string_new(NULL);

    for (unsigned i = 0; i < set->rules->len; i++) {
        const struct fault_rule *rule = fault_set_rule(set, i);

        g_string_append_printf(list, "%u: %s: matched %" PRIu64 ", done %" PRIu64 "\n",
                               rule->number, rule->text, rule->matched, rule->done);
    }
    return g_string_free(list, FALSE);
}

void fault_set_watch(struct fault_set *set,
                     void (*happened)(void *opaque, const struct fault_deed *), void *opaque)
{
    set->happened = happened;
    set->happened_opaque = opaque;
}

bool fault_set_is_watched(const struct fault_set *set)
{
    return set->happened;
}

void fault_set_tell(struct fault_set *set, const struct fault_deed *deed)
{
    if (set->happened) {
        set->happened(set->happened_opaque, deed);
    }
}

bool fault_set_has(const struct fault_set *set, enum fault_subject subject)
{
    return set->about[subject] > 0;
}

/* -- the log ----------------------------------------------------------------------------------- */

/* Whether the log takes one more line now. */
static bool fault_set_may_log(struct fault_set *set)
{
    uint64_t now, out;

    if (!set->options.log) {
        return false;
    }
    now = fault_set_now_ns(set);
    out = (now - set->log_since) / NS_PER_S;
    if (out >= set->log_lines) {
        set->log_lines = 0;
        set->log_since = now;
    } else {
        set->log_lines -= (unsigned)out;
        set->log_since += out * NS_PER_S;
    }
    if (set->log_lines >= LOG_BURST) {
        set->log_left_out++;
        return false;
    }
    set->log_lines++;
    return true;
}

static void fault_set_log(struct fault_set *set, const struct fault_rule *rule, const char *what)
{
    g_autofree char *line = NULL;

    if (!fault_set_may_log(set)) {
        return;
    }
    if (set->log_left_out) {
        g_autofree char *left =
            g_strdup_printf("faults: %" PRIu64 " lines were left out", set->log_left_out);

        set->log_left_out = 0;
        set->options.log(set->options.log_opaque, left);
    }
    line = g_strdup_printf("fault %u, %s: %s", rule->number, rule->text, what);
    set->options.log(set->options.log_opaque, line);
}

static void fault_set_log_frame(struct fault_set *set, const struct fault_rule *rule,
                                const struct fault_frame *frame)
{
    g_autoptr(GString) what = NULL;

    if (!set->options.log) {
        return;
    }
    what = g_string_new(frame->inbound ? "received " : "sent ");
    if (frame->is_roce) {
        transport_describe(what, &frame->packet);
    } else {
        g_string_append_printf(what, "frame of %zu bytes, type 0x%04x", frame->len,
                               frame->eth.ethertype);
    }
    fault_set_log(set, rule, what->str);
}

/* -- decisions --------------------------------------------------------------------------------- */

/* Whether a rule acts on something that it is about. */
static bool fault_set_acts(struct fault_rule *rule, uint64_t now_ns)
{
    uint64_t n;

    if (now_ns - rule->begun_ns < rule->after.ns || ++rule->matched <= rule->after.count) {
        return false;
    }
    if (!rule->started) {
        rule->started = true;
        rule->start_ns = rule->after.count ? now_ns : rule->begun_ns + rule->after.ns;
    }
    n = rule->matched - rule->after.count;
    if ((rule->for_ns && now_ns - rule->start_ns >= rule->for_ns) ||
        (rule->nth && n != rule->nth) || (rule->every.count && n % rule->every.count) ||
        (rule->has_chance && !chance_happens(&rule->chance, (unsigned)rule->per_million)) ||
        (rule->times && rule->done >= rule->times)) {
        return false;
    }
    rule->done++;
    return true;
}

static void fault_set_lose(struct fault_fate *fate, const struct fault_rule *rule, const char *why)
{
    if (!fate->lost) {
        fate->lost = true;
        fate->why = why;
        fate->rule = rule;
    }
}

/* A line of limited rate: the frame leaves behind those before it. */
static void fault_set_queue(struct fault_fate *fate, struct fault_rule *rule,
                            const struct fault_frame *frame, uint64_t now_ns)
{
    uint64_t begin = MAX(rule->free_ns, now_ns);
    uint64_t waiting = (uint64_t)((unsigned __int128)(begin - now_ns) * rule->rate / 8 / NS_PER_S);

    if (rule->queue && waiting && waiting + frame->len > rule->queue) {
        fault_set_lose(fate, rule, "lost: the queue is full");
        return;
    }
    rule->free_ns = begin + (uint64_t)((unsigned __int128)frame->len * 8 * NS_PER_S / rule->rate);
    fate->leave_ns = MAX(fate->leave_ns, rule->free_ns);
    fate->delayed = true;
}

static void fault_set_corrupt(struct fault_fate *fate, struct fault_rule *rule,
                              const struct fault_frame *frame)
{
    if (!fault_choose_bit(rule, frame, &fate->bit)) {
        fault_set_lose(fate, rule, "lost: corrupted, and its FCS would be wrong");
        return;
    }
    fate->corrupted = true;
    fate->repair = FAULT_HAS(rule, FAULT_ROW_REPAIR);
}

static void fault_set_act(struct fault_fate *fate, struct fault_rule *rule,
                          const struct fault_frame *frame, uint64_t now_ns)
{
    switch (rule->action->what) {
    case FAULT_DROP:
        fault_set_lose(fate, rule, "lost: never sent");
        return;
    case FAULT_PART:
        fault_set_lose(fate, rule, "lost: the hosts are parted");
        return;
    case FAULT_DUPLICATE:
        fate->duplicated = true;
        return;
    case FAULT_CORRUPT:
        fault_set_corrupt(fate, rule, frame);
        return;
    case FAULT_REORDER:
        fate->reordered = true;
        fate->held_ns += chance_from(&rule->chance, 1, rule->within_ns);
        return;
    case FAULT_DELAY:
        fate->delayed = true;
        fate->delay_ns += rule->time_ns;
        if (rule->jitter_ns) {
            fate->delay_ns += chance_below(&rule->chance, rule->jitter_ns + 1);
        }
        return;
    case FAULT_RATE:
        fault_set_queue(fate, rule, frame, now_ns);
        return;
    case FAULT_MARK:
        fate->marked = true;
        return;
    default: /* a rule about something else, which is asked elsewhere */
        return;
    }
}

/* Rules that are about each frame say nothing new in each line of the log. */
static bool fault_set_is_loud(const struct fault_rule *rule)
{
    return rule->action->what != FAULT_DELAY && rule->action->what != FAULT_RATE;
}

/* -- the link ---------------------------------------------------------------------------------- */

/* Whether the rule takes the link down at a time; *next_ns becomes earlier if it changes this
 * before. */
static bool fault_set_link_rule(struct fault_rule *rule, uint64_t now_ns, uint64_t *next_ns)
{
    uint64_t end = UINT64_MAX, in_period;

    if (!rule->started) {
        if (rule->after.count) {
            return false; /* frames start it */
        }
        if (now_ns - rule->begun_ns < rule->after.ns) {
            *next_ns = MIN(*next_ns, rule->begun_ns + rule->after.ns);
            return false;
        }
        rule->started = true;
        rule->start_ns = rule->begun_ns + rule->after.ns;
    }
    in_period = now_ns - rule->start_ns;
    if (rule->action->what == FAULT_LINK_DOWN) {
        rule->done = 1;
        if (in_period < rule->time_ns) {
            *next_ns = MIN(*next_ns, rule->start_ns + rule->time_ns);
        }
        return in_period < rule->time_ns;
    }
    if (rule->for_ns) {
        end = rule->start_ns + rule->for_ns;
        if (now_ns >= end) {
            return false;
        }
    }
    rule->done = in_period / rule->every.ns + 1;
    in_period %= rule->every.ns;
    *next_ns = MIN(*next_ns,
                   MIN(end, now_ns + (in_period < rule->time_ns ? rule->time_ns : rule->every.ns) -
                                in_period));
    return in_period < rule->time_ns;
}

bool fault_set_link_is_down(struct fault_set *set, uint64_t now_ns, uint64_t *next_ns)
{
    bool down = false;

    *next_ns = UINT64_MAX;
    for (unsigned i = 0; i < set->rules->len && set->about[FAULT_ABOUT_LINK]; i++) {
        struct fault_rule *rule = fault_set_rule(set, i);
        uint64_t done = rule->done;

        if (rule->action->subject == FAULT_ABOUT_LINK) {
            down |= fault_set_link_rule(rule, now_ns, next_ns);
            if (rule->done != done) {
                fault_set_log(set, rule, "the link is down");
            }
        }
    }
    return down;
}

/* Counts a frame for the rules that take the link down after frames. */
static void fault_set_count_for_link(struct fault_rule *rule, uint64_t now_ns)
{
    rule->matched++;
    if (!rule->started && rule->after.count && rule->matched > rule->after.count) {
        rule->started = true;
        rule->start_ns = now_ns;
    }
}

/* -- frames ------------------------------------------------------------------------------------ */

struct fault_fate fault_set_decide(struct fault_set *set, const struct fault_frame *frame,
                                   uint64_t now_ns)
{
    struct fault_fate fate = {.spared = frame->is_neighbour};

    for (unsigned i = 0; i < set->rules->len; i++) {
        struct fault_rule *rule = fault_set_rule(set, i);

        if (rule->action->subject == FAULT_ABOUT_LINK) {
            fault_set_count_for_link(rule, now_ns);
        }
        if (rule->action->subject != FAULT_ABOUT_FRAMES || !fault_match(rule, frame)) {
            continue;
        }
        if (fault_set_acts(rule, now_ns)) {
            fault_set_act(&fate, rule, frame, now_ns);
            if (fault_set_is_loud(rule)) {
                fate.rule = fate.rule ? fate.rule : rule;
                fault_set_log_frame(set, rule, frame);
            }
        }
    }
    return fate;
}

bool fault_set_concerns(const struct fault_set *set, bool inbound)
{
    return set->concerns[inbound];
}

bool fault_set_delays(const struct fault_set *set, bool inbound)
{
    return set->delays[inbound];
}

/* -- the device -------------------------------------------------------------------------------- */

static bool fault_set_is_about(const struct fault_rule *rule, const struct fault_event *event)
{
    if (rule->action->subject != event->subject) {
        return false;
    }
    switch (event->subject) {
    case FAULT_ABOUT_DOORBELLS:
    case FAULT_ABOUT_RECEIVES:
        return !FAULT_HAS(rule, FAULT_ROW_QP) || rule->qp == event->qpn;
    case FAULT_ABOUT_INTERRUPTS:
        return !FAULT_HAS(rule, FAULT_ROW_VECTOR) || rule->vector == event->vector;
    case FAULT_ABOUT_COMMANDS:
        return rule->command == FAULT_ANY_COMMAND || rule->command == event->opcode;
    default:
        return true;
    }
}

static void fault_set_act_on_device(struct fault_outcome *o, const struct fault_rule *rule)
{
    switch (rule->action->what) {
    case FAULT_DOORBELL_UNSEEN:
    case FAULT_RECEIVE_RETURNED:
        o->fails = true;
        return;
    case FAULT_COMMAND_FAIL:
        o->fails = true;
        o->status = (uint8_t)rule->status;
        o->has_status = FAULT_HAS(rule, FAULT_ROW_STATUS);
        o->syndrome = (uint32_t)rule->syndrome;
        o->has_syndrome = FAULT_HAS(rule, FAULT_ROW_SYNDROME);
        return;
    case FAULT_HEALTH:
        o->health = (uint8_t)rule->health;
        o->is_fatal = !FAULT_HAS(rule, FAULT_ROW_REPORT);
        return;
    default: /* late or slow */
        o->is_late = true;
        o->late_ns += rule->time_ns;
        return;
    }
}

/* A rule about the health acts once, when its time has come. */
static bool fault_set_is_due(const struct fault_rule *rule, uint64_t now_ns)
{
    return rule->action->subject != FAULT_ABOUT_HEALTH ||
           (!rule->done && now_ns - rule->begun_ns >= rule->after.ns);
}

/* What a fault of the device is called in a trace. */
static const char *fault_set_word(const struct fault_rule *rule)
{
    switch (rule->action->what) {
    case FAULT_INTERRUPT_LATE:
        return "interrupt late";
    case FAULT_DOORBELL_UNSEEN:
        return "doorbell unseen";
    case FAULT_RECEIVE_RETURNED:
        return "receive returned";
    case FAULT_COMMAND_FAIL:
        return "command fails";
    case FAULT_COMMAND_SLOW:
        return "command slow";
    case FAULT_HEALTH:
        return "health";
    default:
        return "pages slow";
    }
}

static void fault_set_tell_event(struct fault_set *set, const struct fault_rule *rule,
                                 const struct fault_event *event)
{
    fault_set_tell(set, &(struct fault_deed){.subject = event->subject,
                                             .what = fault_set_word(rule),
                                             .rule = rule->number,
                                             .text = rule->text,
                                             .qpn = event->qpn,
                                             .vector = event->vector,
                                             .opcode = event->opcode,
                                             .late_ns = rule->time_ns});
}

static void fault_set_log_event(struct fault_set *set, const struct fault_rule *rule,
                                const struct fault_event *event)
{
    g_autofree char *what = NULL;

    if (!set->options.log) {
        return;
    }
    switch (event->subject) {
    case FAULT_ABOUT_DOORBELLS:
        what = g_strdup_printf("doorbell of QP 0x%x", event->qpn);
        break;
    case FAULT_ABOUT_RECEIVES:
        what = g_strdup_printf("receive of QP 0x%x", event->qpn);
        break;
    case FAULT_ABOUT_INTERRUPTS:
        what = g_strdup_printf("interrupt of vector %u", event->vector);
        break;
    case FAULT_ABOUT_COMMANDS:
        what = g_strdup_printf("command 0x%x", event->opcode);
        break;
    default:
        what = g_strdup("now");
    }
    fault_set_log(set, rule, what);
}

bool fault_set_ask(struct fault_set *set, const struct fault_event *event,
                   struct fault_outcome *outcome)
{
    uint64_t now = fault_set_now_ns(set);
    bool any = false;

    *outcome = (struct fault_outcome){0};
    for (unsigned i = 0; i < set->rules->len && set->about[event->subject]; i++) {
        struct fault_rule *rule = fault_set_rule(set, i);

        if (fault_set_is_about(rule, event) && fault_set_is_due(rule, now) &&
            fault_set_acts(rule, now)) {
            fault_set_act_on_device(outcome, rule);
            fault_set_log_event(set, rule, event);
            fault_set_tell_event(set, rule, event);
            any = true;
        }
    }
    return any;
}

uint64_t fault_set_health_due_ns(const struct fault_set *set)
{
    uint64_t due = UINT64_MAX;

    for (unsigned i = 0; i < set->rules->len; i++) {
        const struct fault_rule *rule = fault_set_rule(set, i);

        if (rule->action->subject == FAULT_ABOUT_HEALTH && !rule->done) {
            due = MIN(due, rule->begun_ns + rule->after.ns);
        }
    }
    return due;
}
