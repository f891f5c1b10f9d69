/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: lifetime [--seconds N] [--seed N] [--seeds N]
 *
 * Runs programs that open devices, make every kind of object, destroy some, close, fork, and end,
 * in any order. A seed decides the order. Each seed is a process. Meanwhile another thread of the
 * process opens and closes devices, too, so that fork() happens at any point of that.
 *
 * Afterwards the resources are checked. In the process: the objects of library and device, through
 * a context that was open all the time; the process's descriptors and threads. After all processes
 * have ended, their wire must not be in /dev/shm. The first seed with a mistake ends the program.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "guest-lib/verbs/kernel/kernel.h"
#include "tests/verbs/things.h"

#define STEPS    120
#define CONTEXTS 5
#define LIMIT    120 /* the most seconds of a seed */
/* A sanitizer's malloc() does not know of fork(): a lock that another thread held stays locked in
 * the child. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

/* The contexts of one file. */
struct sharing {
    unsigned open;
    GPtrArray *closed; /* struct things */
};

struct opened {
    struct things *things;
    struct sharing *sharing;
};

struct program {
    struct ibv_device *device;
    GRand *rand;
    int file;
    bool has_threads;
    GArray *opened; /* struct opened */
};

static unsigned chance(struct program *p, unsigned n)
{
    return (unsigned)g_rand_int_range(p->rand, 0, (gint32)n);
}

static unsigned entries(const char *path)
{
    DIR *dir = opendir(path);
    unsigned n = 0;

    g_assert(dir);
    while (readdir(dir)) {
        n++;
    }
    closedir(dir);
    return n;
}

/* A joined thread stays in /proc until the kernel has ended it. ThreadSanitizer starts its own
 * thread with a process's first thread. */
static void expect_threads(unsigned threads)
{
    gint64 until = g_get_monotonic_time() + 10 * G_USEC_PER_SEC;
#ifdef __SANITIZE_THREAD__
    unsigned most = threads + 1;
#else
    unsigned most = threads;
#endif

    while (entries("/proc/self/task") > most && g_get_monotonic_time() < until) {
        g_usleep(1000);
    }
    g_assert_cmpuint(entries("/proc/self/task"), >=, threads);
    g_assert_cmpuint(entries("/proc/self/task"), <=, most);
}

/* -- steps ------------------------------------------------------------------------------------- */

static struct opened *some_context(struct program *p)
{
    return p->opened->len ? &g_array_index(p->opened, struct opened, chance(p, p->opened->len))
                          : NULL;
}

static void add_context(struct program *p, struct ibv_context *ctx, struct sharing *sharing)
{
    struct opened opened = {.things = things_new(ctx, p->rand, p->file), .sharing = sharing};

    sharing->open++;
    g_array_append_val(p->opened, opened);
}

static void step_open(struct program *p)
{
    struct opened *other = chance(p, 3) ? NULL : some_context(p);
    struct ibv_context *ctx;
    struct sharing *sharing;

    if (p->opened->len == CONTEXTS) {
        return;
    }
    ctx = other ? ibv_import_device(other->things->ctx->cmd_fd) : ibv_open_device(p->device);
    g_assert(ctx);
    sharing = other ? other->sharing : g_new0(struct sharing, 1);
    sharing->closed = sharing->closed ? sharing->closed : g_ptr_array_new();
    add_context(p, ctx, sharing);
}

/* The objects of a file's contexts exist until its last context is closed. */
static void step_close(struct program *p)
{
    struct opened *which = some_context(p), opened;

    if (!which) {
        return;
    }
    opened = *which;
    g_array_remove_index_fast(p->opened,
                              (guint)(which - &g_array_index(p->opened, struct opened, 0)));
    g_assert_cmpint(ibv_close_device(opened.things->ctx), ==, 0);
    g_ptr_array_add(opened.sharing->closed, opened.things);
    if (--opened.sharing->open == 0) {
        g_ptr_array_foreach(opened.sharing->closed, (GFunc)(void (*)(void))things_leave, NULL);
        g_ptr_array_free(opened.sharing->closed, TRUE);
        g_free(opened.sharing);
    }
}

static void step_make(struct program *p)
{
    struct opened *opened = some_context(p);

    for (unsigned n = opened ? chance(p, 30) : 0; n > 0; n--) {
        thing_make(opened->things, (enum thing)chance(p, THINGS));
    }
}

/* Destroys everything in this order, which shows that every object can be destroyed. */
static void destroy_all(struct things *things)
{
    unsigned left = 1, before;

    do {
        before = left;
        left = 0;
        for (enum thing kind = THINGS; kind-- > 0;) {
            for (unsigned i = things->made[kind]->len; i-- > 0;) {
                left += !thing_destroy(things, kind, i);
            }
        }
    } while (left && left != before);
    g_assert_cmpuint(left, ==, 0);
}

static void step_destroy(struct program *p)
{
    struct opened *opened = some_context(p);

    if (opened && !chance(p, 4)) {
        destroy_all(opened->things);
        return;
    }
    for (unsigned n = opened ? chance(p, 30) : 0; n > 0; n--) {
        enum thing kind = (enum thing)chance(p, THINGS);
        guint len = opened->things->made[kind]->len;

        if (len) {
            thing_destroy(opened->things, kind, chance(p, len));
        }
    }
}

/* -- fork -------------------------------------------------------------------------------------- */

/* ThreadSanitizer keeps the parent's threads in a child, where they do not exist, and aborts
 * when a new thread's stack is where one of theirs was. With a larger stack the new thread is
 * elsewhere. */
static void have_threads_elsewhere(void)
{
#ifdef __SANITIZE_THREAD__
    pthread_attr_t attr;

    g_assert_cmpint(pthread_getattr_default_np(&attr), ==, 0);
    g_assert_cmpint(pthread_attr_setstacksize(&attr, 32u << 20), ==, 0);
    g_assert_cmpint(pthread_setattr_default_np(&attr), ==, 0);
    pthread_attr_destroy(&attr);
#endif
}

/* A child can close what belongs to its parent, which changes nothing in the parent. */
static void be_a_child(struct program *p)
{
    struct things *things;
    struct ibv_context *witness, *ctx;
    struct census before, after;

    alarm(LIMIT);
    have_threads_elsewhere();
    while (p->opened->len && chance(p, 2)) {
        struct opened *opened = &g_array_index(p->opened, struct opened, p->opened->len - 1);

        g_assert_cmpint(ibv_close_device(opened->things->ctx), ==, 0);
        g_array_set_size(p->opened, p->opened->len - 1);
    }
    if (!chance(p, 3)) {
        _exit(EXIT_SUCCESS);
    }
    ibv_free_device_list(ibv_get_device_list(NULL)); /* gets addresses for this process */
    witness = ibv_open_device(p->device);
    g_assert(witness);
    before = census_take(witness);
    ctx = ibv_open_device(p->device);
    g_assert(ctx);
    things = things_new(ctx, p->rand, p->file);
    for (unsigned n = chance(p, 100); n > 0; n--) {
        thing_make(things, (enum thing)chance(p, THINGS));
    }
    if (chance(p, 2)) {
        things_close(things);
        after = census_take(witness);
        census_compare(&after, &before, "in a child");
    }
    _exit(EXIT_SUCCESS);
}

static void wait_for(pid_t pid, uint32_t seed)
{
    int status;

    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    if (status) {
        g_error("a process of seed %u ended with status %#x", seed, status);
    }
}

static void step_fork(struct program *p, uint32_t seed)
{
    pid_t pid;

    if (SANITIZED && p->has_threads) {
        return;
    }
    fflush(NULL);
    pid = fork();
    g_assert_cmpint(pid, >=, 0);
    if (!pid) {
        be_a_child(p);
    }
    wait_for(pid, seed);
}

/* -- a seed ------------------------------------------------------------------------------------ */

static void program_end(struct program *p)
{
    while (p->opened->len) {
        step_close(p);
    }
    g_array_free(p->opened, TRUE);
    g_rand_free(p->rand);
}

static gint stop;

static void *be_busy(void *device)
{
    struct program p = {.device = device,
                        .rand = g_rand_new_with_seed(1),
                        .file = memfd_create("domain", MFD_CLOEXEC),
                        .opened = g_array_new(FALSE, FALSE, sizeof(struct opened))};

    while (!g_atomic_int_get(&stop)) {
        step_open(&p);
        step_make(&p);
        step_destroy(&p);
        if (chance(&p, 2)) {
            step_close(&p);
        }
    }
    program_end(&p);
    close(p.file);
    return NULL;
}

static void run_steps(struct program *p, uint32_t seed)
{
    pthread_t busy;

    if (p->has_threads) {
        g_assert_cmpint(pthread_create(&busy, NULL, be_busy, p->device), ==, 0);
    }
    for (int i = 0; i < STEPS; i++) {
        switch (chance(p, 12)) {
        case 0:
        case 1:
            step_open(p);
            break;
        case 2:
            step_close(p);
            break;
        case 3:
        case 4:
            step_destroy(p);
            break;
        case 5:
            step_fork(p, seed);
            break;
        default:
            step_make(p);
        }
    }
    if (p->has_threads) {
        g_atomic_int_set(&stop, 1);
        g_assert_cmpint(pthread_join(busy, NULL), ==, 0);
    }
}

static void run_seed(uint32_t seed)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct program p = {.device = list ? list[0] : NULL,
                        .rand = g_rand_new_with_seed(seed),
                        .file = memfd_create("domain", MFD_CLOEXEC),
                        .has_threads = seed % 2,
                        .opened = g_array_new(FALSE, FALSE, sizeof(struct opened))};
    unsigned descriptors, threads;
    struct ibv_context *witness;
    struct census before, after;

    alarm(LIMIT);
    g_assert(p.device);
    descriptors = entries("/proc/self/fd");
    threads = entries("/proc/self/task");
    witness = ibv_open_device(p.device);
    g_assert(witness);
    before = census_take(witness);
    run_steps(&p, seed);
    if (!g_rand_int_range(p.rand, 0, 4)) {
        exit(EXIT_SUCCESS); /* ends with all its objects */
    }
    program_end(&p);
    after = census_take(witness);
    census_compare(&after, &before, "at the end");
    g_assert_cmpint(ibv_close_device(witness), ==, 0);
    g_assert_cmpuint(entries("/proc/self/fd"), ==, descriptors);
    expect_threads(threads);
    close(p.file);
    ibv_free_device_list(list);
    exit(EXIT_SUCCESS);
}

/* -- all seeds --------------------------------------------------------------------------------- */

/* The last host that leaves removes the wire. */
static void expect_no_wire(const char *wire)
{
    g_autofree char *path = g_strdup_printf("/dev/shm/hcasim-%u-%s", (unsigned)getuid(), wire);

    if (g_file_test(path, G_FILE_TEST_EXISTS)) {
        g_error("%s is left", path);
    }
}

/* Runs a program that ends properly, after the programs that did not. */
static void run_last(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx = list ? ibv_open_device(list[0]) : NULL;

    g_assert(ctx);
    g_assert_cmpint(ibv_close_device(ctx), ==, 0);
    ibv_free_device_list(list);
    exit(EXIT_SUCCESS);
}

int main(int argc, char **argv)
{
    static gint seconds, seed = 1, seeds = 12;
    static const GOptionEntry options[] = {
        {"seconds", 0, 0, G_OPTION_ARG_INT, &seconds, "go on for so long", "N"},
        {"seed", 0, 0, G_OPTION_ARG_INT, &seed, "the first seed", "N"},
        {"seeds", 0, 0, G_OPTION_ARG_INT, &seeds, "how many, unless for so long", "N"},
        {.long_name = NULL}};
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_autofree char *wire = g_strdup_printf("lifetime-%d", (int)getpid());
    GError *err = NULL;
    gint64 end;
    int ran = 0;
    pid_t last;

    g_option_context_add_main_entries(context, options, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &err)) {
        fprintf(stderr, "lifetime: %s\n", err->message);
        return EXIT_FAILURE;
    }
    setenv("HCASIM_WIRE", wire, 1);
    end = g_get_monotonic_time() + (gint64)seconds * G_USEC_PER_SEC;
    for (; seconds ? g_get_monotonic_time() < end : ran < seeds; ran++) {
        pid_t pid = fork();

        if (!pid) {
            run_seed((uint32_t)(seed + ran));
        }
        wait_for(pid, (uint32_t)(seed + ran));
    }
    last = fork();
    if (!last) {
        run_last();
    }
    wait_for(last, 0);
    expect_no_wire(wire);
    printf("%d seeds from %d on\n", ran, seed);
    return EXIT_SUCCESS;
}
