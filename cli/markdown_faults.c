/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the page docs/reference/faults.md from the tables of wire/fault/words.c. */
#include <string.h>
#include "cli/text.h"
#include "wire/fault/rule.h"

#define MADE                                                                                       \
    "<!-- Made by `hcasim --markdown faults` from the tables of wire/fault/words.c and\n"          \
    "     cli/markdown_faults.c. To change this page, change the tables, then run\n"               \
    "     scripts/lib/reference_pages.py build/cli/hcasim --write. -->\n"

static const char intro[] =
    "\n# Fault rules\n"
    "\n"
    "A rule says in words what goes wrong. Several rules have `;` between them:\n"
    "\n"
    "    drop READ_RESPONSE qp 0x12 nth 2 once; loss 1%; link down 50ms after 1000\n"
    "\n"
    "`hcasim run`, `cluster` and `sim` take rules behind `--fault`, the device in QEMU as its property\n"
    "`fault`, and `hcasim switch` as the setting `fault` of a port. [faults.md](../howto/faults.md)\n"
    "shows them at work.\n"
    "\n"
    "A rule begins with an action. Then words follow that say when it happens, and how; their order\n"
    "does not matter. A word in capitals below is a value:\n"
    "\n"
    "- TIME has a unit: `250ns`, `100us`, `5ms`, `0.5s`.\n"
    "- A number is decimal, or hexadecimal behind `0x`.\n"
    "- RATE is a number of bits a second: `64kbit`, `100Mbit`, `1Gbit`.\n"
    "- ADDRESS is a MAC, IPv4 or IPv6 address.\n"
    "- COMMAND and STATUS are names as in the traces of the device: `CREATE_CQ`, `BAD_RES`.\n"
    "\n"
    "The word `none` in the place of a rule is no rule: with `--fault none` a host has no faults yet,\n"
    "but can get some while it runs. A description has at most 4,096 bytes, and a host at most 64\n"
    "rules.\n";

static const char counting[] =
    "\n## How a rule counts\n"
    "\n"
    "1. A frame (or an event of the device) *matches* if it is what the rule's names, `qp`, `psn`,\n"
    "   `from`, `to`, `vector` and direction say. If the rule has `after` with a time, nothing matches\n"
    "   before that.\n"
    "2. `after` with a number leaves out the first frames (or events) that match; `nth` and `every`\n"
    "   count the rest.\n"
    "3. A percentage then draws. The random numbers follow from the seed, from the host's MAC address\n"
    "   and from which rule of its kind the rule is, so a rule of another kind changes nothing.\n"
    "4. `once` and `times` limit how often the action is done.\n"
    "\n"
    "Each rule counts what matched and what was done. All rules are asked about each frame, also\n"
    "about one that another rule loses.\n"
    "\n"
    "ARP and neighbour discovery match no rule but `part`. Frames in one direction keep their order,\n"
    "also behind a delayed frame, unless `reorder` holds one back.\n";

static void markdown_faults_cell(GString *to, const char *text)
{
    g_string_append_printf(to, " %s |", text);
}

static void markdown_faults_actions(GString *to)
{
    g_string_append(to, "\n## Actions\n\n| action | what happens |\n|---|---|\n");
    for (unsigned i = 0; i < fault_num_actions; i++) {
        g_string_append_printf(to, "| `%s` |", fault_actions[i].pattern);
        markdown_faults_cell(to, fault_actions[i].help);
        g_string_append_c(to, '\n');
    }
}

/* The actions on frames, a bit each. */
static uint32_t markdown_faults_about_frames(void)
{
    uint32_t whats = 0;

    for (unsigned i = 0; i < fault_num_actions; i++) {
        bool is = fault_actions[i].subject == FAULT_ABOUT_FRAMES;

        whats |= (uint32_t)is << fault_actions[i].what;
    }
    return whats;
}

/* The words of the actions that a clause may follow. */
static char *markdown_faults_follows(const struct fault_clause *clause)
{
    uint32_t left = clause->whats, frames = markdown_faults_about_frames();
    GString *list = g_string_new(NULL);

    if ((left & frames) == frames) {
        g_string_append(list, "all actions on frames");
        left &= ~frames;
    }
    for (unsigned i = 0; i < fault_num_actions; i++) {
        const struct fault_action *a = &fault_actions[i];

        if (left >> a->what & 1) {
            g_autoptr(GString) words = g_string_new(a->pattern);

            /* the words alone say which action it is */
            g_string_replace(words, " TIME", "", 0);
            g_string_replace(words, " RATE", "", 0);
            g_string_replace(words, " COMMAND", "", 0);
            g_string_replace(words, " SYNDROME", "", 0);
            g_string_append_printf(list, "%s%s", list->len ? ", " : "", words->str);
        }
    }
    return g_string_free(list, FALSE);
}

static const char *markdown_faults_value(enum fault_value value)
{
    static const char *const names[] = {
        [FAULT_VALUE_NUMBER] = " N",
        [FAULT_VALUE_RANGE] = " N[..N]",
        [FAULT_VALUE_TIME] = " TIME",
        [FAULT_VALUE_COUNT_OR_TIME] = " N or TIME",
        [FAULT_VALUE_PERCENT] = "N%",
        [FAULT_VALUE_SIZE] = " BYTES",
        [FAULT_VALUE_RATE] = " RATE",
        [FAULT_VALUE_ADDRESS] = " ADDRESS",
        [FAULT_VALUE_COMMAND] = " COMMAND",
        [FAULT_VALUE_STATUS] = " STATUS",
        [FAULT_VALUE_NONE] = "",
    };

    return names[value];
}

static void markdown_faults_clauses(GString *to)
{
    g_string_append(to,
                    "\n## Words that follow\n\n| word | what it says | behind |\n|---|---|---|\n");
    for (unsigned i = 0; i < FAULT_NUM_ROWS; i++) {
        const struct fault_clause *c = &fault_clauses[i];
        g_autofree char *follows = markdown_faults_follows(c);

        g_string_append_printf(to, "| `%s%s` |", c->word ? c->word : "",
                               markdown_faults_value(c->value));
        markdown_faults_cell(to, c->help);
        markdown_faults_cell(to, follows);
        g_string_append_c(to, '\n');
    }
}

static void markdown_faults_names(GString *to)
{
    g_string_append(
        to, "\n## Names of packets\n"
            "\n"
            "A rule about frames may name packets. If it has several names, a packet must be "
            "all of that:\n`drop RC WRITE`. Names are the opcodes as the trace prints them "
            "(`RC_READ_RESP_FIRST`,\n`UD_SEND_ONLY`, `CNP`), the same without their "
            "transport (`READ_REQUEST`, `ACK`), and:\n"
            "\n| name | packets |\n|---|---|\n");
    for (unsigned i = 0; i < fault_num_groups; i++) {
        if (fault_groups[i].help) {
            g_string_append_printf(to, "| `%s` |", fault_groups[i].name);
            markdown_faults_cell(to, fault_groups[i].help);
            g_string_append_c(to, '\n');
        }
    }
}

char *cli_markdown_faults(void)
{
    GString *to = g_string_new(MADE);

    g_string_append(to, intro);
    markdown_faults_actions(to);
    markdown_faults_clauses(to);
    markdown_faults_names(to);
    g_string_append(to, counting);
    return g_string_free(to, FALSE);
}
