/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that processes of a machine share by the number of a region (ibv_exp_reg_shared_mr()).
 *
 * A kernel finds the region of another process by its number and maps its pages. Here the memory is
 * a file in /dev/shm whose name has the number, and whose mode has the permissions that the region
 * was made with; so the kernel checks them when another process opens the file. A process that has
 * mapped it keeps the memory, whatever becomes of the name (docs/adr/0032).
 *
 * The process that made a file keeps it locked (flock()). A file without a lock was left behind by
 * a process that was killed: it can no longer be opened, and a process that comes across it removes
 * it. The file gets its name only when it is locked, and only the owner of the lock takes the name
 * away: when the region ends, or the process.
 *
 * A child of fork() has the open file, too, and would keep the lock when its parent is gone. So it
 * closes the file at once. The region is its parent's.
 */
#define _GNU_SOURCE
#include "guest-lib/verbs/kernel/shared_mr.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "guest-lib/verbs/kernel/kernel.h"

#define SHARED_DIR "/dev/shm"
#define SHARED_MAX 0xffffu /* old programs send the number as four digits */

struct shared_path {
    char text[48];
};

static struct shared_path shared_path(uint32_t number)
{
    struct shared_path path;

    snprintf(path.text, sizeof(path.text), SHARED_DIR "/hcasim-shared-mr-%04x", number);
    return path;
}

/* -- the process's own regions ----------------------------------------------------------------- */

/* Protects the list. The lock of own_fd.h is taken under it. */
static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static struct hv_shared *shared_own; /* those whose lock the process has */

/* Takes the name and the lock of the region away. Under the lock of the list. */
static void shared_end(struct hv_shared *shared)
{
    struct shared_path path = shared_path(shared->number);

    unlink(path.text);
    own_fd_close(&shared->lock);
}

static void shared_remove(struct hv_shared *shared)
{
    pthread_mutex_lock(&shared_lock);
    for (struct hv_shared **at = &shared_own; *at; at = &(*at)->next) {
        if (*at == shared) {
            *at = shared->next;
            shared_end(shared);
            break;
        }
    }
    pthread_mutex_unlock(&shared_lock);
}

static void shared_before_fork(void)
{
    pthread_mutex_lock(&shared_lock);
}

static void shared_after_fork_in_parent(void)
{
    pthread_mutex_unlock(&shared_lock);
}

static void shared_after_fork_in_child(void)
{
    shared_own = NULL;
    pthread_mutex_unlock(&shared_lock);
}

/* An outer lock (wire/forks.h). */
__attribute__((constructor)) static void shared_watch_forks(void)
{
    pthread_atfork(shared_before_fork, shared_after_fork_in_parent, shared_after_fork_in_child);
}

/* A program may end without deregistering its regions. */
__attribute__((destructor)) static void shared_finish(void)
{
    if (pthread_mutex_trylock(&shared_lock)) {
        return;
    }
    for (struct hv_shared *shared = shared_own; shared; shared = shared->next) {
        shared_end(shared);
    }
    shared_own = NULL;
    pthread_mutex_unlock(&shared_lock);
}

/* -- files ------------------------------------------------------------------------------------- */

/* Whether the process that made the file of this open descriptor has ended, so that the region is
 * no more. Removes the file then. */
static bool shared_is_left_behind(int fd, const struct shared_path *path)
{
    struct stat file, named;

    if (flock(fd, LOCK_EX | LOCK_NB)) {
        return false;
    }
    if (!fstat(fd, &file) && !stat(path->text, &named) && file.st_ino == named.st_ino) {
        unlink(path->text);
    }
    return true;
}

/* Removes the file of a number if it was left behind. */
static bool shared_reclaim(const struct shared_path *path)
{
    int fd = open(path->text, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool left = fd >= 0 && shared_is_left_behind(fd, path);

    if (fd >= 0) {
        close(fd);
    }
    return left;
}

/* The path by which the process finds a file that it has open. */
static void shared_self(int fd, char *path, size_t size)
{
    snprintf(path, size, "/proc/self/fd/%d", fd);
}

/* Gives the file a number: 0 or errno. */
static int shared_name(int fd, uint32_t *number)
{
    uint32_t first = (uint32_t)getpid() * 61;
    char self[32];

    shared_self(fd, self, sizeof(self));
    for (uint32_t i = 0; i < SHARED_MAX; i++) {
        struct shared_path path = shared_path(*number = (first + i) % SHARED_MAX + 1);

        if (!linkat(AT_FDCWD, self, AT_FDCWD, path.text, AT_SYMLINK_FOLLOW)) {
            return 0;
        }
        if (errno != EEXIST) {
            return errno;
        }
        if (shared_reclaim(&path) &&
            !linkat(AT_FDCWD, self, AT_FDCWD, path.text, AT_SYMLINK_FOLLOW)) {
            return 0;
        }
    }
    return ENOSPC;
}

/* Makes a file of that size without a name. Returns -1 with errno. */
static int shared_file(size_t length)
{
    int fd = open(SHARED_DIR, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), err;

    if (fd < 0) {
        return -1;
    }
    /* the pages exist from the start: a page that cannot be had later would kill the program */
    err = posix_fallocate(fd, 0, (off_t)length);
    if (err) {
        close(fd);
        errno = err == ENOSPC || err == EFBIG ? ENOMEM : err;
        return -1;
    }
    return fd;
}

/* Opens the file once more, and locks this open file. Mappings would keep the lock of the open file
 * that they were made from, also those of a child of fork(). False: errno. */
static bool shared_take_lock(struct hv_shared *shared, int file)
{
    char self[32];
    int fd;

    shared_self(file, self, sizeof(self));
    own_fd_lock();
    fd = open(self, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB)) {
        close(fd);
        fd = -1;
    }
    if (fd >= 0) {
        own_fd_set(&shared->lock, fd);
    }
    own_fd_unlock();
    return fd >= 0;
}

/* Maps, locks and names a file: 0 or errno. */
static int shared_begin(struct hv_shared *shared, int file, unsigned mode, void *at)
{
    int err;

    if (!shared_take_lock(shared, file) || fchmod(file, mode)) {
        return errno;
    }
    shared->addr = mmap(at, shared->length, PROT_READ | PROT_WRITE,
                        MAP_SHARED | (at ? MAP_FIXED : 0), file, 0);
    if (shared->addr == MAP_FAILED) {
        return errno;
    }
    err = shared_name(file, &shared->number);
    if (err) {
        munmap(shared->addr, shared->length);
    }
    return err;
}

int hv_shared_new(struct hv_hca *hca, size_t length, unsigned mode, void *at,
                  struct hv_shared **made)
{
    struct hv_shared *shared = g_new0(struct hv_shared, 1);
    int file = shared_file(length), err = file < 0 ? errno : 0;

    shared->length = length;
    shared->lock.fd = -1;
    pthread_mutex_lock(&shared_lock); /* a fork() finds the region in the list, or no lock of it */
    err = err ? err : shared_begin(shared, file, mode, at);
    if (!err) {
        shared->next = shared_own;
        shared_own = shared;
    } else {
        own_fd_close(&shared->lock);
    }
    pthread_mutex_unlock(&shared_lock);
    if (file >= 0) {
        close(file);
    }
    if (err) {
        g_free(shared);
        return hv_refuse(hca, err,
                         "reg_mr: %zu bytes of shared memory cannot be had in " SHARED_DIR, length);
    }
    *made = shared;
    return 0;
}

int hv_shared_open(struct hv_hca *hca, uint32_t number, bool writable, void *at,
                   struct hv_shared **made)
{
    struct shared_path path = shared_path(number);
    int fd = number && number <= SHARED_MAX
                 ? open(path.text, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW)
                 : -1;
    void *addr = MAP_FAILED;
    struct stat file;
    int err = fd < 0 && errno == EACCES && number && number <= SHARED_MAX ? EACCES : EINVAL;

    if (fd < 0) {
        return hv_refuse(hca, err,
                         err == EACCES
                             ? "reg_shared_mr: region %u is not shared with this user for "
                               "such an access"
                             : "reg_shared_mr: there is no shared region %u",
                         number);
    }
    if (!shared_is_left_behind(fd, &path) && !fstat(fd, &file) && S_ISREG(file.st_mode)) {
        addr = mmap(at, (size_t)file.st_size, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED,
                    fd, 0);
        err = addr == MAP_FAILED ? errno : 0;
    }
    close(fd);
    if (err) {
        return hv_refuse(hca, err, "reg_shared_mr: region %u has ended or cannot be mapped",
                         number);
    }
    *made = g_new0(struct hv_shared, 1);
    **made = (struct hv_shared){
        .addr = addr, .length = (size_t)file.st_size, .number = number, .lock.fd = -1};
    return 0;
}

void hv_shared_free(struct hv_shared *shared)
{
    if (!shared) {
        return;
    }
    munmap(shared->addr, shared->length);
    shared_remove(shared);
    g_free(shared);
}
