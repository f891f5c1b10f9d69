/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes rules of a description. A rule is an action (fault_actions) and then words that may follow
 * it, in any order: clauses (fault_clauses), and names of opcodes (fault_groups, bth_opcodes). If
 * there are several names, a packet must be all of what they say.
 */
#include "wire/fault/rule.h"
#include "wire/open.h"

#include <string.h>

#define DEFAULT_HELD_NS 100000u /* how long a frame is held back, at most, unless the rule says */

/* A rule that is being read. */
struct fault_reader {
    const struct fault_names *names;
    const char *text; /* the rule */
    char **words;
    unsigned at, num; /* the next word, and their number */
    struct fault_rule *rule;
    GError **err;
};

static bool G_GNUC_PRINTF(2, 3) fault_parse_fail(struct fault_reader *r, const char *fmt, ...)
{
    g_autofree char *what = NULL;
    va_list ap;

    va_start(ap, fmt);
    what = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    g_set_error(r->err, WIRE_ERROR, WIRE_ERROR_URI, "fault rule '%s': %s", r->text, what);
    return false;
}

static void fault_parse_add_word(GString *list, const char *word)
{
    if (list->len) {
        g_string_append(list, ", ");
    }
    g_string_append(list, word);
}

/* -- actions ----------------------------------------------------------------------------------- */

static bool fault_parse_is_value(const char *word)
{
    return g_ascii_isupper(*word);
}

/* How many words of the rule fit to the words of the action, from the first one on. */
static unsigned fault_parse_fit(const struct fault_reader *r, char **pattern)
{
    unsigned i = 0;

    while (i < r->num && pattern[i] &&
           (fault_parse_is_value(pattern[i]) || !strcmp(pattern[i], r->words[i]))) {
        i++;
    }
    return i;
}

/* Says which words are allowed behind the first `fit` words. */
static bool fault_parse_fail_action(struct fault_reader *r, unsigned fit)
{
    g_autoptr(GString) allowed = g_string_new(NULL);

    for (unsigned i = 0; i < fault_num_actions; i++) {
        g_auto(GStrv) pattern = g_strsplit(fault_actions[i].pattern, " ", -1);

        if (fault_parse_fit(r, pattern) == fit && pattern[fit]) {
            fault_parse_add_word(allowed, pattern[fit]);
        }
    }
    if (fit == r->num) {
        return fault_parse_fail(r, "it ends too early: one of these words follows: %s",
                                allowed->str);
    }
    return fault_parse_fail(r, "'%s' is not allowed there, but one of these words: %s",
                            r->words[fit], allowed->str);
}

static bool fault_parse_value(struct fault_reader *r, const char *of, const char *word,
                              enum fault_value kind, size_t offset, uint64_t least, uint64_t most)
{
    g_autofree char *help = NULL;

    if (word && fault_value_read(kind, word, least, most, r->names, (uint8_t *)r->rule + offset)) {
        return true;
    }
    help = fault_value_help(kind, least, most);
    return fault_parse_fail(r, "%s needs %s, %s%s%s", of, help, word ? "but it has '" : "",
                            word ? word : "but nothing follows", word ? "'" : "");
}

/* Reads the values in the words of the action. */
static bool fault_parse_action_values(struct fault_reader *r, char **pattern)
{
    const struct fault_action *a = r->rule->action;

    for (unsigned i = 0; pattern[i]; i++) {
        bool is_time = !strcmp(pattern[i], "TIME");

        if (fault_parse_is_value(pattern[i]) &&
            !(is_time ? fault_parse_value(r, pattern[0], r->words[i], FAULT_VALUE_TIME,
                                          offsetof(struct fault_rule, time_ns), a->least, a->most)
                      : fault_parse_value(r, pattern[0], r->words[i], a->value, a->offset, a->least,
                                          a->most))) {
            return false;
        }
    }
    return true;
}

static bool fault_parse_action(struct fault_reader *r)
{
    unsigned best = 0;

    for (unsigned i = 0; i < fault_num_actions; i++) {
        g_auto(GStrv) pattern = g_strsplit(fault_actions[i].pattern, " ", -1);
        unsigned fit = fault_parse_fit(r, pattern);

        if (!pattern[fit]) {
            r->rule->action = &fault_actions[i];
            r->at = fit;
            if (r->rule->action->subject >= FAULT_ABOUT_INTERRUPTS && !r->names) {
                return fault_parse_fail(r, "there is no device here; rules can be about frames and "
                                           "the link");
            }
            return fault_parse_action_values(r, pattern);
        }
        best = MAX(best, fit);
    }
    return fault_parse_fail_action(r, best);
}

/* -- names of opcodes -------------------------------------------------------------------------- */

/* Whether a name is that of an opcode, with its transport (RC_SEND_ONLY) or without (SEND_ONLY). */
static bool fault_parse_names_opcode(const char *word, const struct bth_opcode_info *info)
{
    const char *behind = info->name ? strchr(info->name, '_') : NULL;

    return info->name && (!strcmp(info->name, word) || (behind && !strcmp(behind + 1, word)));
}

static const struct fault_group *fault_parse_find_group(const char *word)
{
    for (unsigned i = 0; i < fault_num_groups; i++) {
        if (!strcmp(fault_groups[i].name, word)) {
            return &fault_groups[i];
        }
    }
    return NULL;
}

static bool fault_parse_is_of(const char *word, const struct fault_group *group,
                              const struct bth_opcode_info *info)
{
    if (!group) {
        return fault_parse_names_opcode(word, info);
    }
    return info->name && (info->flags & group->flags) == group->flags &&
           (group->transport < 0 || info->transport == group->transport);
}

/* Takes a name of opcodes. *is_name false: the word is none. */
static bool fault_parse_opcode(struct fault_reader *r, const char *word, bool *is_name)
{
    const struct fault_group *group = fault_parse_find_group(word);
    struct fault_rule *rule = r->rule;
    bool any = false, left = false;

    *is_name = false;
    if (rule->action->subject != FAULT_ABOUT_FRAMES) {
        return true;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(bth_opcodes); i++) {
        any |= fault_parse_is_of(word, group, &bth_opcodes[i]);
    }
    if (!any) {
        return true;
    }
    *is_name = true;
    for (unsigned i = 0; i < G_N_ELEMENTS(bth_opcodes); i++) {
        bool was = !rule->names_opcodes || rule->opcodes[i / 8] >> i % 8 & 1;
        bool is = was && fault_parse_is_of(word, group, &bth_opcodes[i]);

        rule->opcodes[i / 8] &= (uint8_t) ~(1u << i % 8);
        rule->opcodes[i / 8] |= (uint8_t)((unsigned)is << i % 8);
        left |= is;
    }
    rule->names_opcodes = true;
    if (group && group->aeth_class >= 0) {
        left &= rule->aeth_class < 0 || rule->aeth_class == group->aeth_class;
        rule->aeth_class = group->aeth_class;
    }
    return left || fault_parse_fail(r, "no packet is '%s' and what the words before it say", word);
}

/* -- clauses ----------------------------------------------------------------------------------- */

static bool fault_parse_may_follow(const struct fault_rule *rule, unsigned row)
{
    return fault_clauses[row].whats >> rule->action->what & 1;
}

static bool fault_parse_fail_clause(struct fault_reader *r, const char *word)
{
    g_autoptr(GString) allowed = g_string_new(NULL);

    for (unsigned i = 0; i < FAULT_NUM_ROWS; i++) {
        if (fault_parse_may_follow(r->rule, i) && !FAULT_HAS(r->rule, i)) {
            fault_parse_add_word(allowed,
                                 fault_clauses[i].word ? fault_clauses[i].word : "PERCENT%");
        }
    }
    if (r->rule->action->subject == FAULT_ABOUT_FRAMES) {
        fault_parse_add_word(allowed, "a packet's name such as READ_RESPONSE or RC_ACK");
    }
    return fault_parse_fail(r, "'%s' is not allowed there, but %s%s", word,
                            allowed->len ? "one of these words: " : "the end of the rule",
                            allowed->str);
}

/* The row of a word, or FAULT_NUM_ROWS. */
static unsigned fault_parse_find_clause(const struct fault_rule *rule, const char *word)
{
    unsigned i = 0;

    if (g_str_has_suffix(word, "%")) {
        return fault_parse_may_follow(rule, FAULT_ROW_PERCENT) ? FAULT_ROW_PERCENT : FAULT_NUM_ROWS;
    }
    while (i < FAULT_NUM_ROWS && (!fault_clauses[i].word || strcmp(fault_clauses[i].word, word) ||
                                  !fault_parse_may_follow(rule, i))) {
        i++;
    }
    return i;
}

static bool fault_parse_clause(struct fault_reader *r, const char *word, unsigned row)
{
    const struct fault_clause *c = &fault_clauses[row];
    const char *value = NULL;

    if (FAULT_HAS(r->rule, row)) {
        return fault_parse_fail(r, "'%s' is there twice", c->word ? c->word : word);
    }
    r->rule->given |= 1ull << row;
    if (!c->word) {
        value = word;
    } else if (c->value != FAULT_VALUE_NONE && r->at < r->num) {
        value = r->words[r->at++];
    }
    return c->value == FAULT_VALUE_NONE ||
           fault_parse_value(r, c->word ? c->word : "a percentage", value, c->value, c->offset,
                             c->least, c->most);
}

static bool fault_parse_rest(struct fault_reader *r)
{
    while (r->at < r->num) {
        const char *word = r->words[r->at++];
        unsigned row = fault_parse_find_clause(r->rule, word);
        bool is_name = false;

        if (row < FAULT_NUM_ROWS) {
            if (!fault_parse_clause(r, word, row)) {
                return false;
            }
        } else if (!fault_parse_opcode(r, word, &is_name)) {
            return false;
        } else if (!is_name) {
            return fault_parse_fail_clause(r, word);
        }
    }
    return true;
}

/* -- rules ------------------------------------------------------------------------------------- */

/* What words of a rule say together. */
static bool fault_parse_finish(struct fault_reader *r)
{
    struct fault_rule *rule = r->rule;
    enum fault_what what = rule->action->what;
    bool is_link = rule->action->subject == FAULT_ABOUT_LINK;
    bool both = FAULT_HAS(rule, FAULT_ROW_BOTH) || is_link;
    bool in = FAULT_HAS(rule, FAULT_ROW_IN), out = FAULT_HAS(rule, FAULT_ROW_OUT);

    if (!in && !out) {
        both |= what == FAULT_PART;
        out = true;
    }
    rule->in = in || both;
    rule->out = out || both;
    rule->has_chance = FAULT_HAS(rule, FAULT_ROW_PERCENT);
    if (FAULT_HAS(rule, FAULT_ROW_ONCE)) {
        if (FAULT_HAS(rule, FAULT_ROW_TIMES)) {
            return fault_parse_fail(r, "it says both 'once' and 'times'");
        }
        rule->times = 1;
    }
    if (what == FAULT_REORDER && !rule->within_ns) {
        rule->within_ns = DEFAULT_HELD_NS;
    }
    if (what == FAULT_LINK_FLAP && rule->every.ns <= rule->time_ns) {
        return fault_parse_fail(r,
                                "link flap needs 'every' and a time that is longer than that for "
                                "which the link is down");
    }
    if (what != FAULT_LINK_FLAP && rule->every.ns) {
        return fault_parse_fail(r, "'every' has a number here, and no time");
    }
    if (what == FAULT_HEALTH && rule->after.count) {
        return fault_parse_fail(r, "'after' has a time here, such as 2s, and no number");
    }
    return true;
}

void fault_rule_free(gpointer data)
{
    struct fault_rule *rule = data;

    g_free(rule->text);
    g_free(rule);
}

/* The words of a rule, without blanks. */
static char **fault_parse_split(const char *text, unsigned *num)
{
    g_auto(GStrv) all = g_strsplit_set(text, " \t\n", -1);
    char **words = g_new0(char *, g_strv_length(all) + 1);

    *num = 0;
    for (char **word = all; *word; word++) {
        if (**word) {
            words[(*num)++] = g_strdup(*word);
        }
    }
    return words;
}

/* Reads one rule into rules. A rule without words is none. */
static bool fault_parse_rule(GPtrArray *rules, const char *text, const struct fault_names *names,
                             GError **err)
{
    unsigned num;
    g_auto(GStrv) words = fault_parse_split(text, &num);
    g_autofree char *tidy = g_strjoinv(" ", words);
    struct fault_reader reader = {
        .names = names, .text = tidy, .words = words, .num = num, .err = err};

    if (!num || (num == 1 && !strcmp(words[0], "none"))) {
        return true;
    }
    if (rules->len == FAULT_MAX_RULES) {
        return fault_parse_fail(&reader, "there are more than %d rules", FAULT_MAX_RULES);
    }
    reader.rule = g_new0(struct fault_rule, 1);
    reader.rule->aeth_class = -1;
    reader.rule->text = g_steal_pointer(&tidy);
    reader.text = reader.rule->text;
    g_ptr_array_add(rules, reader.rule);
    return fault_parse_action(&reader) && fault_parse_rest(&reader) && fault_parse_finish(&reader);
}

GPtrArray *fault_parse(const char *text, const struct fault_names *names, GError **err)
{
    g_autoptr(GPtrArray) rules = g_ptr_array_new_with_free_func(fault_rule_free);
    g_auto(GStrv) parts = NULL;

    if (strlen(text) > FAULT_MAX_TEXT) {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_URI,
                    "a description of faults has at most %d bytes, but this one has %zu",
                    FAULT_MAX_TEXT, strlen(text));
        return NULL;
    }
    for (const char *c = text; *c; c++) {
        if (!g_ascii_isprint(*c) && !g_ascii_isspace(*c)) {
            g_set_error(err, WIRE_ERROR, WIRE_ERROR_URI,
                        "a description of faults is ASCII text, but its byte %zu is 0x%02x",
                        (size_t)(c - text), (uint8_t)*c);
            return NULL;
        }
    }
    parts = g_strsplit(text, ";", -1);
    for (char **part = parts; *part; part++) {
        if (!fault_parse_rule(rules, *part, names, err)) {
            return NULL;
        }
    }
    return g_steal_pointer(&rules);
}

bool fault_check(const char *text, const struct fault_names *names, GError **err)
{
    g_autoptr(GPtrArray) rules = fault_parse(text, names, err);

    return rules != NULL;
}

#define STORE_BITS (8ull << 23) /* of a store (store.c) */
#define NS_PER_S   1000000000ull

uint64_t fault_longest_ns(const char *text)
{
    g_autoptr(GPtrArray) rules = fault_parse(text, NULL, NULL);
    uint64_t ns = 0;

    for (unsigned i = 0; rules && i < rules->len; i++) {
        const struct fault_rule *rule = g_ptr_array_index(rules, i);
        uint64_t bits = rule->queue ? rule->queue * 8 : STORE_BITS;

        if (rule->action->subject == FAULT_ABOUT_FRAMES) {
            ns += rule->time_ns + rule->jitter_ns + rule->within_ns;
            ns += rule->rate ? (uint64_t)((unsigned __int128)bits * NS_PER_S / rule->rate) : 0;
        }
    }
    return ns;
}
