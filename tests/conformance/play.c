/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements play.h: a step, and what the words of all steps have in common. */
#include "tests/conformance/play.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* the allowed delay by a busy machine, of the guest and of the player */
#define REAL_SLACK_NS 500000000ull
#define REAL_MOST_NS  2000000000ull /* the longest time in which nothing may happen */

static void play_fail(void *opaque, bool is_mistake, const char *why) G_GNUC_NORETURN;
static void play_fail(void *opaque, bool is_mistake, const char *why)
{
    struct play *p = opaque;

    p->ends(p, is_mistake ? PLAY_MISTAKE : PLAY_FAILS, why);
    abort(); /* ends() returned */
}

void play_cannot(struct play *p, const char *what, int err)
{
    g_autofree char *why = err ? g_strdup_printf("%s: %s", what, g_strerror(err)) : g_strdup(what);

    p->ends(p, PLAY_CANNOT, why);
    abort(); /* ends() returned */
}

void play_init(struct play *p, struct play_clock *clock)
{
    *p = (struct play){
        .words = {.fail = play_fail, .opaque = p},
        .clock = clock,
        .mrs = g_ptr_array_new_with_free_func(g_free),
        .srqs = g_ptr_array_new_with_free_func(g_free),
        .qps = g_ptr_array_new_with_free_func(g_free),
        .trace = g_string_new(NULL),
    };
}

void play_clear(struct play *p)
{
    g_ptr_array_unref(p->mrs);
    g_ptr_array_unref(p->srqs);
    g_ptr_array_unref(p->qps);
    g_string_free(p->trace, true);
}

const struct play_step *play_find_step(const struct play_step *table, const char *line)
{
    size_t len = strcspn(line, " \t");

    while (table->name && (strncmp(table->name, line, len) || table->name[len])) {
        table++;
    }
    return table->name ? table : NULL;
}

bool play_step(struct play *p, const struct play_step *table, const char *line)
{
    const struct play_step *step = play_find_step(table, line);

    if (!step) {
        return false;
    }
    words_split(&p->words, line);
    words_next(&p->words);
    step->run(p);
    words_end(&p->words);
    words_clear(&p->words);
    return true;
}

uint64_t play_now(const struct play *p)
{
    return p->clock->now(p->clock);
}

void play_settle(struct play *p)
{
    p->clock->settle(p->clock);
}

/* -- names ------------------------------------------------------------------------------------- */

/* Finds an object by name; every object begins with its name. */
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
        words_mistake(&p->words, "there is no '%s'", name);
    }
    return object;
}

struct play_mr *play_mr(struct play *p, const char *name)
{
    return play_named(p, p->mrs, name);
}

struct play_srq *play_srq(struct play *p, const char *name)
{
    struct play_srq *srq = play_named(p, p->srqs, name);

    if (!srq->srq) {
        words_mistake(&p->words, "'%s' is destroyed", name);
    }
    return srq;
}

struct play_srq *play_srq_if(struct play *p, const char *name)
{
    return play_find(p->srqs, name, strlen(name));
}

struct play_qp *play_qp(struct play *p, const char *name)
{
    return play_named(p, p->qps, name);
}

struct play_qp *play_live_qp(struct play *p, const char *name)
{
    struct play_qp *qp = play_qp(p, name);

    if (!qp->qp) {
        words_mistake(&p->words, "'%s' is destroyed", name);
    }
    return qp;
}

struct play_qp *play_qp_meant(struct play *p)
{
    const char *name = words_value(&p->words, "qp");

    if (!name && !p->qps->len) {
        words_mistake(&p->words, "there is no queue pair yet");
    }
    return name ? play_qp(p, name) : g_ptr_array_index(p->qps, 0);
}

/* NAME or NAME+N: returns the region, and N; NULL: the word is neither. */
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

    return mr ? mr->addr + more : words_to_number(&p->words, word);
}

uint32_t play_key(struct play *p, const char *word, bool remote)
{
    uint64_t more;
    const struct play_mr *mr = play_in_mr(p, word, &more);

    if (!mr) {
        return (uint32_t)words_to_number(&p->words, word);
    }
    return (remote ? mr->rkey : mr->lkey) + (uint32_t)more;
}

struct play_range play_range(struct play *p, const char *word)
{
    g_auto(GStrv) parts = g_strsplit(word, ":", 2);
    uint64_t offset;
    struct play_mr *mr = play_in_mr(p, parts[0], &offset);

    if (!mr) {
        words_mistake(&p->words, "there is no region for '%s'", word);
    }
    if (!parts[1] && offset > mr->len) {
        words_mistake(&p->words, "'%s' is outside its region", word);
    }
    return (struct play_range){mr, offset,
                               parts[1] ? words_to_number(&p->words, parts[1]) : mr->len - offset};
}

uint8_t play_pattern(unsigned seed, size_t offset)
{
    return seed == PLAY_ZEROS ? 0 : (uint8_t)(offset * 7 + offset / 251 + seed * 61 + 1);
}

/* x and two digits for each byte */
static size_t play_hex(struct play *p, const char *digits, uint8_t *bytes, size_t max)
{
    size_t len = strlen(digits) / 2;

    if (strlen(digits) % 2 || len > max) {
        words_mistake(&p->words, "'x%s' is not two digits for each of at most %zu bytes", digits,
                      max);
    }
    for (size_t i = 0; i < 2 * len; i++) {
        int digit = g_ascii_xdigit_value(digits[i]);

        if (digit < 0) {
            words_mistake(&p->words, "'%c' of 'x%s' is no hexadecimal digit", digits[i], digits);
        }
        bytes[i / 2] = (uint8_t)(i % 2 ? bytes[i / 2] << 4 | digit : digit);
    }
    return len;
}

/* N, N@OFFSET, N@REGION: bytes of a pattern */
static size_t play_pattern_data(struct play *p, const char *word, uint8_t *bytes, size_t max)
{
    g_auto(GStrv) parts = g_strsplit(word, "@", 2);
    size_t len = words_to_number(&p->words, parts[0]);
    const struct play_mr *mr = NULL;
    uint64_t offset = 0;

    if (len > max) {
        words_mistake(&p->words, "%zu bytes are too many: %zu are the most", len, max);
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

size_t play_data(struct play *p, const char *word, uint8_t *bytes, size_t max)
{
    g_auto(GStrv) parts = g_strsplit(word, ",", -1);
    size_t len = 0;

    for (char **part = parts; *part; part++) {
        len += **part == 'x' ? play_hex(p, *part + 1, bytes + len, max - len)
                             : play_pattern_data(p, *part, bytes + len, max - len);
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

    /* the errno depends on the library */
    if (p->clock->is_real ? !err != !wanted : err != wanted) {
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
        /* real time: the event is noticed after it happened */
        uint64_t passed = ns > p->mark_ns ? ns - p->mark_ns : 0;

        if (p->clock->is_real) {
            least = (least << p->scale_bits) / 10 * 9;
            most = (most << p->scale_bits) + REAL_SLACK_NS;
        }
        if (passed < least || passed > most) {
            words_fail(&p->words, "it is after %g us", (double)passed / 1000);
        }
    }
    p->mark_ns = ns;
}

uint64_t play_span(struct play *p, const char *word)
{
    uint64_t ns = words_to_ns(&p->words, word);

    return p->clock->is_real ? MIN(ns, REAL_MOST_NS) : ns;
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
