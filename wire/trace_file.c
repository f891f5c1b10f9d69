/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes the events of a trace (wire/trace_file.h).
 *
 * Writers do not lock the file while they write: O_APPEND puts each write() behind all others. They
 * lock it (F_OFD_SETLK) only while one decides whether the file is of its run.
 */
#include "wire/trace_file.h"
#include "wire/cancel.h"
#include "wire/open.h"
#include "wire/own_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    BUFFER = 64 << 10,
    HEAD = 256, /* the first line, and what stands before an event */
    NAME = 96,
    LOCK_TRIES = 1000, /* of a millisecond each */
};

struct trace_file {
    char *path;
    struct own_fd own; /* fd -1: tracing has ended */
    uint64_t (*clock_ns)(void *opaque);
    void *clock_opaque;
    char host[NAME];
    pid_t pid;
    pthread_mutex_t lock;
    size_t used;
    char buffer[BUFFER];
};

static uint64_t trace_file_realtime_ns(void *opaque)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* -- opening ----------------------------------------------------------------------------------- */

/* O_NONBLOCK: a pipe must not hold up this call; it is refused afterwards. */
static void trace_file_open_own(struct trace_file *f)
{
    int code, fd;

    f->own.fd = -1;
    own_fd_lock();
    fd = open(f->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644);
    code = errno;
    if (fd >= 0) {
        own_fd_set(&f->own, fd);
    }
    own_fd_unlock();
    errno = code;
}

static bool trace_file_lock(int fd, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_len = 1};
    struct timespec step = {.tv_nsec = 1000000};

    for (unsigned i = 0; i < LOCK_TRIES; i++) {
        if (fcntl(fd, F_OFD_SETLK, &lock) == 0) {
            return true;
        }
        if (errno != EAGAIN && errno != EACCES && errno != EINTR) {
            return false;
        }
        nanosleep(&step, NULL);
    }
    return false;
}

/* Copies text for a JSON string: characters that would need an escape become '_'. */
static void trace_file_name(char *to, size_t size, const char *text)
{
    g_strlcpy(to, text, size);
    for (char *c = to; *c; c++) {
        if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ' || (unsigned char)*c > '~') {
            *c = '_';
        }
    }
}

/* Empties the file and writes the first line, unless the file begins with that line. False: errno.
 */
static bool trace_file_begin(struct trace_file *f, const char *run)
{
    char name[NAME], line[HEAD], found[HEAD];
    ssize_t len, have;

    trace_file_name(name, sizeof(name), run);
    len =
        snprintf(line, sizeof(line), "{\"hcasim\":\"trace\",\"version\":1,\"run\":\"%s\"}\n", name);
    have = pread(f->own.fd, found, (size_t)len, 0);
    if (have == len && memcmp(found, line, (size_t)len) == 0) {
        return true;
    }
    return ftruncate(f->own.fd, 0) == 0 && write(f->own.fd, line, (size_t)len) == len;
}

/* The run of a process that belongs to no other. */
static const char *trace_file_own_run(void)
{
    static char run[NAME];

    if (!*run) {
        snprintf(run, sizeof(run), "%d.%" PRIu64, (int)getpid(), trace_file_realtime_ns(NULL));
    }
    return run;
}

static bool trace_file_fail(struct trace_file *f, GError **err, const char *why)
{
    g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO, "trace file %s: %s", f->path, why);
    return false;
}

static bool trace_file_start(struct trace_file *f, const char *run, GError **err)
{
    struct stat st;
    bool ok;

    trace_file_open_own(f);
    if (f->own.fd < 0 || fstat(f->own.fd, &st)) {
        return trace_file_fail(f, err, g_strerror(errno));
    }
    if (!S_ISREG(st.st_mode)) {
        return trace_file_fail(f, err, "this is no regular file; name a file, or a new one");
    }
    /* Some file systems have no locks; then only the beginning can go wrong. */
    (void)trace_file_lock(f->own.fd, F_WRLCK);
    ok = trace_file_begin(f, run);
    (void)trace_file_lock(f->own.fd, F_UNLCK);
    return ok || trace_file_fail(f, err, g_strerror(errno));
}

struct trace_file *trace_file_open(const char *path, const struct trace_file_options *options,
                                   GError **err)
{
    struct trace_file *f = g_new0(struct trace_file, 1);
    int state = cancel_disable();
    bool ok;

    f->path = g_strdup(path);
    f->clock_ns = options->clock_ns ? options->clock_ns : trace_file_realtime_ns;
    f->clock_opaque = options->clock_opaque;
    f->pid = getpid();
    trace_file_name(f->host, sizeof(f->host), options->host);
    pthread_mutex_init(&f->lock, NULL);
    ok = trace_file_start(f, options->run && *options->run ? options->run : trace_file_own_run(),
                          err);
    if (!ok) {
        trace_file_close(f);
        f = NULL;
    }
    cancel_restore(state);
    return f;
}

/* -- writing ----------------------------------------------------------------------------------- */

/* Under the lock. A write that is cut short (disk full) leaves a part of a line at the end, which
 * readers skip. */
static void trace_file_write(struct trace_file *f)
{
    size_t done = 0;

    while (done < f->used && f->own.fd >= 0) {
        ssize_t n = write(f->own.fd, f->buffer + done, f->used - done);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            g_warning("trace file %s: %s; nothing more is traced", f->path,
                      n < 0 ? g_strerror(errno) : "it takes no more");
            own_fd_close(&f->own);
            break;
        }
        done += (size_t)n;
    }
    f->used = 0;
}

void trace_file_event(struct trace_file *f, const char *event, size_t len)
{
    int state = cancel_disable();

    if (f->pid == getpid() && len + HEAD <= BUFFER) {
        pthread_mutex_lock(&f->lock);
        if (f->used + len + HEAD > BUFFER) {
            trace_file_write(f);
        }
        f->used += (size_t)snprintf(f->buffer + f->used, BUFFER - f->used,
                                    "{\"t\":%" PRIu64 ",\"host\":\"%s\",%.*s}\n",
                                    f->clock_ns(f->clock_opaque), f->host, (int)len, event);
        pthread_mutex_unlock(&f->lock);
    }
    cancel_restore(state);
}

void trace_file_flush(struct trace_file *f)
{
    int state = cancel_disable();

    if (f->pid == getpid() && __atomic_load_n(&f->used, __ATOMIC_RELAXED)) {
        pthread_mutex_lock(&f->lock);
        trace_file_write(f);
        pthread_mutex_unlock(&f->lock);
    }
    cancel_restore(state);
}

void trace_file_close(struct trace_file *f)
{
    trace_file_flush(f);
    own_fd_close(&f->own);
    pthread_mutex_destroy(&f->lock);
    g_free(f->path);
    g_free(f);
}
