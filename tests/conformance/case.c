/* SPDX-License-Identifier: BSD-2-Clause */
/* A case from its first step to its last. */
#include "tests/conformance/case.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "tests/conformance/foreign.h"
#include "tests/conformance/play.h"
#include "tests/conformance/sim.h"

#define SCALE_BITS 4 /* a player in real time cannot answer within 4 ms */

struct case_run {
    struct play play;
    const struct script_case *script;
    const struct script_line *line;
};

static void case_ends(struct play *p, enum play_end how, const char *why)
{
    const struct case_run *run = (const struct case_run *)p;

    if (how == PLAY_CANNOT) {
        fprintf(stderr, "%s: %s\n", run->line->text, why);
    } else {
        fprintf(stderr, "%s:%u: %s: %s\n  with rq_psn 0x%x, sq_psn 0x%x:\n%s", run->script->file,
                run->line->number, run->line->text, why, p->rq_psn, p->sq_psn, p->trace->str);
    }
    fflush(stderr);
    _exit(how == PLAY_CANNOT ? CASE_SKIPPED : CASE_FAILS);
}

static void case_steps(struct case_run *run, struct foreign *foreign)
{
    struct play *p = &run->play;

    for (unsigned i = 0; i < run->script->steps->len; i++) {
        run->line = g_ptr_array_index(run->script->steps, i);
        if (play_step(p, play_wire_steps, run->line->text)) {
            continue;
        }
        if (foreign) {
            foreign_step(foreign, p, run->line->text);
        } else if (!play_step(p, play_host_steps, run->line->text)) {
            words_fail(&p->words, "there is no such step");
        }
    }
}

/* Whether a case is about the ack timeout: it says how long that is. */
static bool case_has_timeout(const struct script_case *script)
{
    for (unsigned i = 0; i < script->steps->len; i++) {
        const struct script_line *line = g_ptr_array_index(script->steps, i);

        if (strstr(line->text, " timeout=")) {
            return true;
        }
    }
    return false;
}

static void case_play_sim(struct case_run *run)
{
    struct play *p = &run->play;
    struct sim sim;

    p->clock = &sim.clock;
    p->stand = &sim.stand;
    p->host = &sim.host;
    if (!sim_init(&sim)) {
        case_ends(p, PLAY_FAILS, g_strerror(errno));
    }
    case_steps(run, NULL);
    words_split(&p->words, "");
    play_settle(p);
    play_end_wire(p);
    play_end_host(p);
    sim_clear(&sim);
    words_clear(&p->words);
}

static void case_play_foreign(struct case_run *run, const struct foreign_config *config)
{
    struct play *p = &run->play;
    g_autofree char *why = NULL;
    struct foreign foreign;

    p->scale_bits = case_has_timeout(run->script) ? SCALE_BITS : 0;
    p->clock = &foreign.real.clock;
    p->stand = &foreign.stand;
    why = foreign_init(&foreign, config);
    if (why) {
        case_ends(p, PLAY_FAILS, why);
    }
    foreign_begin(&foreign, p);
    case_steps(run, &foreign);
    words_split(&p->words, "");
    play_end_wire(p);
    foreign_end(&foreign, p);
    words_clear(&p->words);
    foreign_clear(&foreign);
}

void case_play(const struct script_case *script, const struct foreign_config *foreign,
               uint32_t rq_psn, uint32_t sq_psn)
{
    struct case_run run = {.script = script, .line = g_ptr_array_index(script->steps, 0)};

    play_init(&run.play, NULL);
    run.play.ends = case_ends;
    run.play.rq_psn = rq_psn;
    run.play.sq_psn = sq_psn;
    if (foreign) {
        case_play_foreign(&run, foreign);
    } else {
        case_play_sim(&run);
    }
    play_clear(&run.play);
}
