/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements case.h: plays a case from its first step to its last. */
#include "tests/conformance/case.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "fw/fw.h"
#include "fw/profile.h"
#include "tests/conformance/foreign.h"
#include "tests/conformance/play.h"
#include "tests/conformance/sim.h"

#define DEVICE     "device" /* a step that may be the first one */
#define SCALE_BITS 4        /* a player in real time cannot answer within 4 ms */

struct case_run {
    struct play play;
    const struct script_case *script;
    const struct script_line *line;
};

static void case_ends(struct play *p, enum play_end how, const char *why)
{
    static const int statuses[] = {
        [PLAY_FAILS] = CASE_FAILS, [PLAY_CANNOT] = CASE_SKIPPED, [PLAY_MISTAKE] = CASE_MISTAKE};
    const struct case_run *run = (const struct case_run *)p;

    if (how == PLAY_CANNOT) {
        fprintf(stderr, "%s: %s\n", run->line->text, why);
    } else if (how == PLAY_MISTAKE) {
        fprintf(stderr, "%s:%u: %s: %s\n", run->script->file, run->line->number, run->line->text,
                why);
    } else {
        fprintf(stderr, "%s:%u: %s: %s\n  with rq_psn 0x%x, sq_psn 0x%x:\n%s", run->script->file,
                run->line->number, run->line->text, why, p->rq_psn, p->sq_psn, p->trace->str);
    }
    fflush(stderr);
    _exit(statuses[how]);
}

static bool case_is_device(const struct script_line *line)
{
    return !strncmp(line->text, DEVICE, strlen(DEVICE)) &&
           strchr(" \t", line->text[strlen(DEVICE)]);
}

/* device [profile=P] [responders=N] [roce=1]: takes this step if it is the first one. The player
 * can configure only its own device. Returns the number of steps taken. */
static unsigned case_take_device(struct case_run *run, struct sim_wishes *wishes)
{
    struct words *w = &run->play.words;
    const char *profile;
    unsigned version;

    if (!case_is_device(run->line)) {
        return 0;
    }
    if (!wishes) {
        play_cannot(&run->play, "the device is as it is", 0);
    }
    words_split(w, run->line->text + strlen(DEVICE));
    profile = words_value(w, "profile");
    if (profile && !fw_profile_find(profile)) {
        g_autofree char *names = g_strjoinv(" ", (char **)fw_profile_names());

        words_mistake(w, "there is no profile '%s'; profiles: %s", profile, names);
    }
    wishes->profile = g_strdup(profile);
    wishes->responders = (unsigned)words_number(w, "responders", 0);
    if (wishes->responders > FW_RESPONDERS_MAX) {
        words_mistake(w, "these are too many responders: %u are the most", FW_RESPONDERS_MAX);
    }
    version = (unsigned)words_number(w, "roce", 2);
    if (version != 1 && version != 2) {
        words_mistake(w, "there is no RoCE version %u: roce= is 1 or 2", version);
    }
    wishes->is_v1 = version == 1;
    words_end(w);
    words_clear(w);
    return 1;
}

static void case_steps(struct case_run *run, unsigned first, struct foreign *foreign)
{
    struct play *p = &run->play;

    for (unsigned i = first; i < run->script->steps->len; i++) {
        run->line = g_ptr_array_index(run->script->steps, i);
        if (play_step(p, play_wire_steps, run->line->text)) {
            continue;
        }
        if (foreign) {
            foreign_step(foreign, p, run->line->text);
        } else if (!play_step(p, play_host_steps, run->line->text)) {
            words_mistake(&p->words, "there is no such step");
        }
    }
}

static void case_add_steps(GPtrArray *names, const struct play_step *table)
{
    for (; table->name; table++) {
        g_ptr_array_add(names, (gpointer)table->name);
    }
}

static void case_refuse_step(const struct script_case *script, const struct script_line *line,
                             GError **err)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    g_autofree char *word = g_strndup(line->text, strcspn(line->text, " \t")), *known = NULL;

    if (case_is_device(line)) {
        g_set_error(err, G_FILE_ERROR, G_FILE_ERROR_INVAL,
                    "%s:%u: the step 'device' must be the first one of its case", script->file,
                    line->number);
        return;
    }
    case_add_steps(names, play_wire_steps);
    case_add_steps(names, play_host_steps);
    g_ptr_array_add(names, (gpointer)DEVICE);
    g_ptr_array_add(names, NULL);
    known = words_suggest(word, (const char *const *)names->pdata, "steps");
    g_set_error(err, G_FILE_ERROR, G_FILE_ERROR_INVAL, "%s:%u: there is no step '%s'; %s",
                script->file, line->number, word, known);
}

bool case_check(const struct script_case *script, GError **err)
{
    for (unsigned i = 0; i < script->steps->len; i++) {
        const struct script_line *line = g_ptr_array_index(script->steps, i);

        if (!play_find_step(play_wire_steps, line->text) &&
            !play_find_step(play_host_steps, line->text) && (i || !case_is_device(line))) {
            case_refuse_step(script, line, err);
            return false;
        }
    }
    return true;
}

/* Returns whether a case is about the ack timeout: then it sets the timeout. */
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
    struct sim_wishes wishes = {0};
    unsigned first = case_take_device(run, &wishes);
    struct sim sim;

    p->clock = &sim.clock;
    p->stand = &sim.stand;
    p->host = &sim.host;
    if (!sim_init(&sim, &wishes)) {
        case_ends(p, PLAY_FAILS, g_strerror(errno));
    }
    case_steps(run, first, NULL);
    words_split(&p->words, "");
    play_settle(p);
    play_end_wire(p);
    play_end_host(p);
    sim_clear(&sim);
    g_free(wishes.profile);
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
    case_steps(run, case_take_device(run, NULL), &foreign);
    words_split(&p->words, "");
    play_end_wire(p);
    foreign_end(&foreign, p);
    words_clear(&p->words);
    foreign_clear(&foreign);
}

/* Ends a trial, which is part of no case. */
static void case_trial_ends(struct play *p, enum play_end how, const char *why)
{
    fputs(why, stderr);
    fflush(stderr);
    _exit(CASE_FAILS);
}

void case_try_foreign(const struct foreign_config *config)
{
    g_autofree char *why = NULL;
    struct foreign foreign;
    struct play play;

    play_init(&play, &foreign.real.clock);
    play.ends = case_trial_ends;
    play.stand = &foreign.stand;
    why = foreign_init(&foreign, config);
    if (why) {
        case_trial_ends(&play, PLAY_FAILS, why);
    }
    foreign_begin(&foreign, &play);
    foreign_clear(&foreign);
    play_clear(&play);
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
