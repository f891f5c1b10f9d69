/* SPDX-License-Identifier: BSD-2-Clause */
/* A case's steps, and what their words have in common. */
#include "tests/conformance/play.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void play_pass_time(struct play *p)
{
    uint64_t ns = words_to_ns(&p->words, words_need(&p->words, "a time"));

    inproc_advance(p->stand.world, ns);
}

static const struct {
    const char *name;
    play_step_fn *run;
} steps[] = {
    {"<", play_arrives},       {">", play_leaves},    {"+", play_pass_time},   {"mr", play_new_mr},
    {"dereg", play_dereg},     {"srq", play_new_srq}, {"memory", play_memory}, {"qp", play_new_qp},
    {"modify", play_modify},   {"query", play_query}, {"recv", play_recv},     {"send", play_send},
    {"destroy", play_destroy}, {"wc", play_wc},       {"event", play_event},
};

static void play_fail(void *opaque, const char *why) G_GNUC_NORETURN;
static void play_fail(void *opaque, const char *why)
{
    const struct play *p = opaque;

    fprintf(stderr, "%s:%u: %s: %s\n  with rq_psn 0x%x, sq_psn 0x%x:\n%s", p->script->file,
            p->step->number, p->step->text, why, p->rq_psn, p->sq_psn, p->trace->str);
    fflush(stderr);
    _exit(EXIT_FAILURE);
}

static void play_step(struct play *p, const struct script_line *line)
{
    const char *name;
    unsigned i;

    p->step = line;
    words_split(&p->words, line->text);
    name = words_next(&p->words);
    for (i = 0; i < G_N_ELEMENTS(steps) && strcmp(steps[i].name, name); i++) {
    }
    if (i == G_N_ELEMENTS(steps)) {
        words_fail(&p->words, "there is no step '%s'", name);
    }
    steps[i].run(p);
    words_end(&p->words);
    words_clear(&p->words);
}

void play_case(const struct script_case *script, uint32_t rq_psn, uint32_t sq_psn)
{
    struct play p = {
        .script = script,
        .step = g_ptr_array_index(script->steps, 0),
        .mrs = g_ptr_array_new_with_free_func(g_free),
        .srqs = g_ptr_array_new_with_free_func(g_free),
        .qps = g_ptr_array_new_with_free_func(g_free),
        .rq_psn = rq_psn,
        .sq_psn = sq_psn,
        .trace = g_string_new(NULL),
    };

    p.words.fail = play_fail;
    p.words.opaque = &p;
    if (!stand_init(&p.stand)) {
        play_fail(&p, g_strerror(errno));
    }
    for (unsigned i = 0; i < script->steps->len; i++) {
        play_step(&p, g_ptr_array_index(script->steps, i));
    }
    words_split(&p.words, "");
    inproc_settle(p.stand.world);
    play_end_wire(&p);
    play_end_work(&p);
    play_free_qps(&p);
    play_free_objects(&p);
    stand_clear(&p.stand);
    words_clear(&p.words);
    g_ptr_array_unref(p.mrs);
    g_ptr_array_unref(p.srqs);
    g_ptr_array_unref(p.qps);
    g_string_free(p.trace, true);
}

/* -- names ------------------------------------------------------------------------------------- */

/* Objects begin with their name. */
static void *play_find(const GPtrArray *objects, const char *name, size_t len)
{
    for (unsigned i = 0; i < objects->len; i++) {
        const char *const *object = g_ptr_array_index(objects, i);

        if (!strncmp(*object, name, len) && !(*object)[len]) {
            return g_ptr_array_index(objects, i);
        }
    }
    return NULL;
}

static void *play_named(struct play *p, const GPtrArray *objects, const char *name)
{
    void *object = play_find(objects, name, strlen(name));

    if (!object) {
        words_fail(&p->words, "there is no '%s'", name);
    }
    return object;
}

struct play_mr *play_mr(struct play *p, const char *name)
{
    return play_named(p, p->mrs, name);
}

struct play_srq *play_srq(struct play *p, const char *name)
{
    return play_named(p, p->srqs, name);
}

struct play_qp *play_qp(struct play *p, const char *name)
{
    return play_named(p, p->qps, name);
}

struct play_qp *play_qp_meant(struct play *p)
{
    const char *name = words_value(&p->words, "qp");

    if (!name && !p->qps->len) {
        words_fail(&p->words, "there is no queue pair yet");
    }
    return name ? play_qp(p, name) : g_ptr_array_index(p->qps, 0);
}

/* NAME or NAME+N: the region, and N; NULL: it is neither. */
static struct play_mr *play_in_mr(struct play *p, const char *word, uint64_t *more)
{
    const char *plus = strchr(word, '+');
    struct play_mr *mr = play_find(p->mrs, word, plus ? (size_t)(plus - word) : strlen(word));

    *more = mr && plus ? words_to_number(&p->words, plus + 1) : 0;
    return mr;
}

uint64_t play_address(struct play *p, const char *word)
{
    uint64_t more;
    const struct play_mr *mr = play_in_mr(p, word, &more);

    return mr ? (uintptr_t)mr->bytes + more : words_to_number(&p->words, word);
}

uint32_t play_key(struct play *p, const char *word, bool remote)
{
    uint64_t more;
    const struct play_mr *mr = play_in_mr(p, word, &more);

    if (!mr) {
        return (uint32_t)words_to_number(&p->words, word);
    }
    return (remote ? mr->mr->rkey : mr->mr->lkey) + (uint32_t)more;
}

struct play_range play_range(struct play *p, const char *word)
{
    g_auto(GStrv) parts = g_strsplit(word, ":", 2);
    uint64_t offset;
    struct play_mr *mr = play_in_mr(p, parts[0], &offset);

    if (!mr) {
        words_fail(&p->words, "there is no region for '%s'", word);
    }
    if (!parts[1] && offset > mr->len) {
        words_fail(&p->words, "'%s' is outside its region", word);
    }
    return (struct play_range){mr, offset,
                               parts[1] ? words_to_number(&p->words, parts[1]) : mr->len - offset};
}

uint8_t play_pattern(unsigned seed, size_t offset)
{
    return (uint8_t)(offset * 7 + offset / 251 + seed * 61 + 1);
}

size_t play_data(struct play *p, const char *word, uint8_t *bytes, size_t max)
{
    g_auto(GStrv) parts = g_strsplit(word, "@", 2);
    size_t len = words_to_number(&p->words, parts[0]);
    const struct play_mr *mr = NULL;
    uint64_t offset = 0;

    if (len > max) {
        words_fail(&p->words, "%zu bytes are too many", len);
    }
    if (parts[1]) {
        mr = play_in_mr(p, parts[1], &offset);
        offset = mr ? offset : words_to_number(&p->words, parts[1]);
    }
    for (size_t i = 0; i < len; i++) {
        bytes[i] = play_pattern(mr ? mr->seed : 0, offset + i);
    }
    return len;
}

/* -- results ----------------------------------------------------------------------------------- */

void play_result(struct play *p, int err)
{
    play_result_is(p, words_value(&p->words, "errno"), err);
}

void play_result_is(struct play *p, const char *error, int err)
{
    static const struct words_name errors[] = {
        {"none", 0},        {"EINVAL", EINVAL}, {"ENOMEM", ENOMEM}, {"EBUSY", EBUSY},
        {"EPERM", EPERM},   {"ENOENT", ENOENT}, {"EFAULT", EFAULT}, {"EOPNOTSUPP", EOPNOTSUPP},
        {"ENOSYS", ENOSYS}, {NULL, 0},
    };
    int wanted = error ? (int)words_to_choice(&p->words, error, errors) : 0;

    if (err != wanted) {
        words_fail(&p->words, "it ends with %s", err ? g_strerror(err) : "success");
    }
}

void play_happened(struct play *p, uint64_t ns)
{
    const char *word = words_value(&p->words, "after");

    if (word) {
        g_auto(GStrv) bounds = g_strsplit(word, "..", 2);
        uint64_t least = words_to_ns(&p->words, bounds[0]);
        uint64_t most = bounds[1] ? words_to_ns(&p->words, bounds[1]) : least;
        uint64_t passed = ns - p->mark_ns;

        if (passed < least || passed > most) {
            words_fail(&p->words, "it is after %g us", (double)passed / 1000);
        }
    }
    p->mark_ns = ns;
}

unsigned play_rights(struct play *p, const char *key, unsigned usual)
{
    static const struct words_name rights[] = {
        {"none", 0},
        {"all", IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                    IBV_ACCESS_REMOTE_ATOMIC},
        {"lw", IBV_ACCESS_LOCAL_WRITE},
        {"rw", IBV_ACCESS_REMOTE_WRITE},
        {"rr", IBV_ACCESS_REMOTE_READ},
        {"ra", IBV_ACCESS_REMOTE_ATOMIC},
        {"mw", IBV_ACCESS_MW_BIND},
        {NULL, 0},
    };
    const char *value = words_value(&p->words, key);
    g_auto(GStrv) parts = value ? g_strsplit(value, ",", -1) : NULL;
    unsigned all = 0;

    for (char **part = parts; part && *part; part++) {
        all |= (unsigned)words_to_choice(&p->words, *part, rights);
    }
    return parts ? all : usual;
}
