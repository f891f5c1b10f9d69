/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements fork_at_open.h. */
#include "tests/unit/fork_at_open.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <glib.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOMENT_MS 300 /* for a fork() that does not wait */

static char *file;             /* NULL: nobody forks */
static sem_t is_open, is_done; /* the file is open; fork() has returned */
static bool was_opened;
static pthread_t thread;
static pid_t child;

/* Returns 1 if a descriptor of this process refers to the file, else 0. */
static int fork_at_open_look(const char *path)
{
    DIR *dir = opendir("/proc/self/fd");
    const struct dirent *entry;
    int found = 0;

    while (dir && (entry = readdir(dir))) {
        char target[4096];
        ssize_t len = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

        target[len < 0 ? 0 : len] = 0;
        if (!strncmp(target, path, strlen(path))) {
            const char *rest = target + strlen(path);

            found |= !*rest || !strcmp(rest, " (deleted)");
        }
    }
    return found;
}

static void *fork_at_open_run(void *path)
{
    while (sem_wait(&is_open)) {
    }
    child = fork();
    if (!child) {
        _exit(fork_at_open_look(path));
    }
    sem_post(&is_done);
    return NULL;
}

void fork_at_open_begin(const char *path)
{
    was_opened = false;
    sem_init(&is_open, 0, 0);
    sem_init(&is_done, 0, 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, fork_at_open_run, (void *)(uintptr_t)path), 0);
    file = g_strdup(path);
}

bool fork_at_open_end(void)
{
    int status;

    ck_assert_msg(was_opened, "%s was not opened", file);
    pthread_join(thread, NULL);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    g_clear_pointer(&file, g_free);
    return WEXITSTATUS(status);
}

static void fork_at_open_tell(void)
{
    struct timespec until;

    was_opened = true;
    sem_post(&is_open);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += MOMENT_MS * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    sem_timedwait(&is_done, &until);
}

/* Takes the place of the C library's open(), under both of its names. */
int fork_at_open_open(const char *path, int flags, ...) __asm__("open");
int fork_at_open_open64(const char *path, int flags, ...) __asm__("open64")
    __attribute__((alias("open")));

int fork_at_open_open(const char *path, int flags, ...)
{
    va_list args;
    int fd;

    va_start(args, flags);
    /* Without O_CREAT there is no mode, and the kernel ignores it. */
    fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, va_arg(args, int));
    va_end(args);
    if (fd >= 0 && file && !was_opened && !strcmp(path, file)) {
        fork_at_open_tell();
    }
    return fd;
}
