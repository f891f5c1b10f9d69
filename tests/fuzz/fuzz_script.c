/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer: a conformance script as anybody may write it (tests/conformance): reads it and, if
 * possible, plays its first case. A case that does not hold ends its process; here it ends the run,
 * and everything that it has made is freed (linked with --wrap=_exit, --wrap=sim_init).
 *
 * Inputs are text. They are changed by the line and by the word: a line is removed, is duplicated
 * or comes from elsewhere, a word becomes another word of the language, a number another number.
 */
#include <glib/gstdio.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "guest-lib/verbs/user/device.h"
#include "tests/conformance/case.h"
#include "tests/conformance/sim.h"

#define MAX_STEPS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int __lsan_is_turned_off(void) __attribute__((visibility("default")));
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);
void __wrap__exit(int status) G_GNUC_NORETURN;
void __real__exit(int status) G_GNUC_NORETURN;
bool __wrap_sim_init(struct sim *sim, const struct sim_wishes *wishes);
bool __real_sim_init(struct sim *sim, const struct sim_wishes *wishes);

static jmp_buf *playing;      /* NULL: no case is being played */
static struct sim *sim_of_it; /* NULL: the case has no sim yet */

bool __wrap_sim_init(struct sim *sim, const struct sim_wishes *wishes)
{
    bool ok = __real_sim_init(sim, wishes);

    sim_of_it = sim;
    return ok;
}

/* Does what sim_clear() does, while everything else still exists. */
static void script_drop_sim(struct sim *sim)
{
    ibv_close_device(sim->host.ctx);
    hv_sim_device_free(sim->ibdev);
    inproc_leave(sim->world, &sim->member);
    stand_clear(&sim->stand);
    inproc_world_free(sim->world);
}

/* A case that leaves the process leaves its allocations: that is not a leak. */
int __lsan_is_turned_off(void)
{
    return 1;
}

void __wrap__exit(int status)
{
    jmp_buf *back = playing;

    if (!back) {
        __real__exit(status);
    }
    playing = NULL;
    if (sim_of_it) {
        script_drop_sim(sim_of_it);
        sim_of_it = NULL;
    }
    longjmp(*back, 1);
}

/* -- changing -----------------------------------------------------------------------------------
 */

static const char *const words[] = {
    "case t",
    "rule 9.7 r",
    "mr m 4096",
    "qp q rc",
    "qp q ud",
    "qp q uc",
    "recv q m:64",
    "send q SEND m:16",
    "wc q SEND",
    "wc q RECV",
    "event q",
    "dereg m",
    "destroy q",
    "modify q",
    "query q",
    "srq s",
    "+ 5ms",
    "> nothing",
    "memory m is 16",
    "unchanged",
    "errno=EINVAL",
    "< SEND_ONLY psn=0 data=16",
    "> ACK",
    "psn=0",
    "data=16@m+4",
    "rights=none",
    "limit=2",
    "wr=1",
    "sge=1",
    "inline=64",
    "RTS",
    "ERR",
    "RESET",
    "SQD",
    "state=INIT",
    "READ",
    "WRITE",
    "FAA",
    "va=m+8",
    "rkey=m+1",
    "imm=7",
    "raw=255",
    "pad=3",
    "badicrc",
    "together",
    "after=1us..2us",
    "device profile=cx4",
    "device responders=1",
    "qp q dct srq=s key=7",
    "qp q dci",
    "qp q dci streams=2 errored=1",
    "< CONNECT psn=0 session=1 key=7",
    "< DISCONNECT psn=0",
    "> CONNECT psn=0 key=7",
    "nak=cnak",
    "session=2",
    "number=0x101",
    "key=7",
    "stream=1",
    "cur=SQD",
    "event none",
    "modify s limit=2",
    "mw w",
    "send q BIND m:64 mw=w",
    "send q LOCAL_INV inv=m",
    "key k 4 rinval",
    "qp q rc umr",
    "send q UMR m:8 m+64:8 key=k",
    "send q SEND k:8",
    "rkey=k",
};
static const char *const numbers[] = {"0",        "1",          "2",
                                      "255",      "4096",       "65536",
                                      "0xffffff", "0x80000000", "18446744073709551615",
                                      "-1",       "1e30",       "m+18446744073709551615"};

static const char *script_any(GRand *rand, const char *const *all, size_t n)
{
    return all[g_rand_int_range(rand, 0, (gint32)n)];
}

static void script_change_line(GRand *rand, GPtrArray *lines)
{
    unsigned i = (unsigned)g_rand_int_range(rand, 0, (gint32)lines->len);
    unsigned k = (unsigned)g_rand_int_range(rand, 0, (gint32)lines->len);

    switch (g_rand_int_range(rand, 0, 4)) {
    case 0:
        g_ptr_array_remove_index(lines, i);
        break;
    case 1:
        g_ptr_array_insert(lines, (gint)k, g_strdup(g_ptr_array_index(lines, i)));
        break;
    case 2:
        g_ptr_array_insert(lines, (gint)k, g_strdup(script_any(rand, words, G_N_ELEMENTS(words))));
        break;
    default: {
        gpointer line = g_ptr_array_index(lines, i);

        g_ptr_array_index(lines, i) = g_ptr_array_index(lines, k);
        g_ptr_array_index(lines, k) = line;
    }
    }
}

/* Changes the digits at the end of a word, if there are any; otherwise the whole word. */
static char *script_changed(GRand *rand, const char *word)
{
    size_t len = strlen(word);

    while (len && (g_ascii_isxdigit(word[len - 1]) || word[len - 1] == 'x')) {
        len--;
    }
    if (word[len] && g_rand_boolean(rand)) {
        return g_strdup_printf("%.*s%s", (int)len, word,
                               script_any(rand, numbers, G_N_ELEMENTS(numbers)));
    }
    return g_strdup(script_any(rand, words, G_N_ELEMENTS(words)));
}

static void script_change_word(GRand *rand, GPtrArray *lines)
{
    unsigned i = (unsigned)g_rand_int_range(rand, 0, (gint32)lines->len);
    g_auto(GStrv) parts = g_strsplit(g_ptr_array_index(lines, i), " ", -1);
    unsigned n = g_strv_length(parts), k = n ? (unsigned)g_rand_int_range(rand, 0, (gint32)n) : 0;
    char *word;

    if (!n) {
        return;
    }
    word = script_changed(rand, parts[k]);
    g_free(parts[k]);
    parts[k] = word;
    g_free(g_ptr_array_index(lines, i));
    g_ptr_array_index(lines, i) = g_strjoinv(" ", parts);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    g_autofree char *text = g_strndup((const char *)data, size), *changed = NULL;
    g_auto(GStrv) all = g_strsplit(text, "\n", -1);
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    GRand *rand = g_rand_new_with_seed(seed);

    for (char **line = all; *line; line++) {
        g_ptr_array_add(lines, g_strdup(*line));
    }
    for (int n = g_rand_int_range(rand, 1, 4); n && lines->len; n--) {
        if (g_rand_boolean(rand)) {
            script_change_line(rand, lines);
        } else {
            script_change_word(rand, lines);
        }
    }
    g_rand_free(rand);
    g_ptr_array_add(lines, NULL);
    changed = g_strjoinv("\n", (char **)lines->pdata);
    size = MIN(strlen(changed), max);
    memcpy(data, changed, size);
    return size;
}

/* -- a run ------------------------------------------------------------------------------------- */

static char path[] = "/tmp/hcasim-fuzz-XXXXXX";

static void script_remove_file(void)
{
    g_unlink(path);
}

static void script_make_file(void)
{
    int fd = g_mkstemp(path);

    if (fd < 0) {
        abort();
    }
    close(fd);
    atexit(script_remove_file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static GPtrArray *cases;
    static bool has_file;
    g_autoptr(GError) err = NULL;
    jmp_buf back;

    if (!has_file) {
        script_make_file();
        has_file = true;
    }
    if (!g_file_set_contents(path, (const char *)data, (gssize)size, NULL)) {
        abort();
    }
    cases = script_read(path, &err);
    if (!cases != !!err) {
        abort();
    }
    if (cases) {
        const struct script_case *c = g_ptr_array_index(cases, 0);

        if (c->steps->len <= MAX_STEPS && !setjmp(back)) {
            playing = &back;
            case_play(c, NULL, 0, 0x7fffff);
            playing = NULL;
            sim_of_it = NULL;
        }
        g_ptr_array_unref(cases);
    }
    return 0;
}
