/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See wire/shm/file.h. segment.h says which bytes are locked. The byte of the join lock is behind
 * all bytes whose locks keep the file in place.
 */
#include "wire/shm/file.h"
#include "wire/cancel.h"
#include "wire/forks.h"
#include "wire/open.h"
#include "wire/shm/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define SHM_MAGIC   "hcasimSW"
#define SHM_VERSION 7

enum {
    JOIN_LOCK_SLEEP_US = 1000,
    LOOKS_AT_LEAVING = 8, /* more in a row mean that a process joins and leaves all the time */
};

bool shm_file_fail(GError **err, const char *path, const char *what)
{
    int code = errno;

    g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO, "%s: %s: %s", path, what, g_strerror(code));
    return false;
}

bool shm_file_fail_memory(GError **err, const char *path, const char *what)
{
    bool is_full = errno == ENOSPC;
    g_autofree char *folder = g_path_get_dirname(path);
    struct statvfs fs;

    shm_file_fail(err, path, what);
    if (is_full && err && statvfs(folder, &fs) == 0) {
        char *before = (*err)->message;

        (*err)->message = g_strdup_printf(
            "%s: %s has %llu KiB, of which %llu KiB are free. A container gets more with "
            "--shm-size=1g",
            before, folder, (unsigned long long)fs.f_blocks * fs.f_frsize >> 10,
            (unsigned long long)fs.f_bavail * fs.f_frsize >> 10);
        g_free(before);
    }
    return false;
}

/* ---- locks ---- */

static bool shm_file_set_lock(int fd, off_t byte, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    int rc;

    do {
        rc = fcntl(fd, F_OFD_SETLK, &lock);
    } while (rc < 0 && errno == EINTR);
    return rc == 0;
}

bool shm_lock(int fd, off_t byte)
{
    return shm_file_set_lock(fd, byte, F_WRLCK);
}

void shm_unlock(int fd, off_t byte)
{
    shm_file_set_lock(fd, byte, F_UNLCK);
}

bool shm_is_locked(int fd, off_t byte, off_t len)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = len};

    return fcntl(fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

static bool shm_file_anybody_alive(int fd)
{
    return shm_is_locked(fd, 0, SHM_LOCK_JOIN);
}

static bool shm_file_lock_join(int fd, gint64 until)
{
    while (!shm_lock(fd, SHM_LOCK_JOIN)) {
        if (errno != EAGAIN && errno != EACCES) {
            return false;
        }
        if (g_get_monotonic_time() > until) {
            errno = ETIMEDOUT;
            return false;
        }
        g_usleep(JOIN_LOCK_SLEEP_US);
    }
    return true;
}

void shm_file_joined(int fd)
{
    shm_unlock(fd, SHM_LOCK_JOIN);
}

/* ---- fork ---- */

/* A descriptor that holds locks of this process, and the file that it belongs to: a program that
 * closes all unknown descriptors may have another file at this number. */
struct shm_kept {
    int fd;
    dev_t dev;
    ino_t ino;
};

static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static struct shm_kept *kept;
static unsigned num_kept;

static bool shm_file_is_kept(const struct shm_kept *one)
{
    struct stat st;

    return fstat(one->fd, &st) == 0 && st.st_dev == one->dev && st.st_ino == one->ino;
}

static void shm_file_close_kept(const struct shm_kept *one)
{
    if (shm_file_is_kept(one)) {
        close(one->fd);
    }
}

static void shm_file_before_fork(void)
{
    pthread_mutex_lock(&kept_lock);
}

static void shm_file_in_parent(void)
{
    pthread_mutex_unlock(&kept_lock);
}

static void shm_file_in_child(void)
{
    while (num_kept) {
        shm_file_close_kept(&kept[--num_kept]);
    }
    pthread_mutex_unlock(&kept_lock);
}

FORKS_INNER_LOCK static void shm_file_watch_forks(void)
{
    pthread_atfork(shm_file_before_fork, shm_file_in_parent, shm_file_in_child);
}

/* Opens a file whose bytes this process locks. A fork() waits until the descriptor is listed, so
 * that the child does not keep a copy of it. The flags have O_NONBLOCK for the case that the file
 * is not a regular one: the call must not wait, because a fork() waits for it. -1: errno. */
static int shm_file_open_kept(const char *path, int flags)
{
    int state = cancel_disable(), fd, code;
    struct stat st = {0};

    pthread_mutex_lock(&kept_lock);
    fd = open(path, flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    code = errno;
    if (fd >= 0) {
        fstat(fd, &st);
        kept = g_renew(struct shm_kept, kept, num_kept + 1);
        kept[num_kept++] = (struct shm_kept){fd, st.st_dev, st.st_ino};
    }
    pthread_mutex_unlock(&kept_lock);
    cancel_restore(state);
    errno = code;
    return fd;
}

bool shm_file_is_open(int fd)
{
    bool is = false;

    pthread_mutex_lock(&kept_lock);
    for (unsigned i = 0; i < num_kept; i++) {
        is |= kept[i].fd == fd && shm_file_is_kept(&kept[i]);
    }
    pthread_mutex_unlock(&kept_lock);
    return is;
}

void shm_file_close(int fd)
{
    pthread_mutex_lock(&kept_lock);
    for (unsigned i = 0; i < num_kept; i++) {
        if (kept[i].fd == fd) {
            shm_file_close_kept(&kept[i]);
            kept[i] = kept[--num_kept];
            break;
        }
    }
    if (!num_kept) {
        g_clear_pointer(&kept, g_free);
    }
    pthread_mutex_unlock(&kept_lock);
}

/* ---- opening ---- */

char *shm_wake_path(const char *path, unsigned id)
{
    return g_strdup_printf("%s.%u", path, id);
}

static void shm_file_report(GPtrArray *removed, const char *path)
{
    if (removed) {
        g_ptr_array_add(removed, g_strdup(path));
    }
}

bool shm_file_unlink_fifo(const char *fifo)
{
    struct stat st;

    return lstat(fifo, &st) == 0 && S_ISFIFO(st.st_mode) && unlink(fifo) == 0;
}

/* Removes the FIFOs of members that died. To be called when no member lives in the segment. */
static void shm_file_unlink_fifos(const char *path, GPtrArray *removed)
{
    for (unsigned id = 0; id < SHM_MEMBERS; id++) {
        char *fifo = shm_wake_path(path, id);

        if (shm_file_unlink_fifo(fifo)) {
            shm_file_report(removed, fifo);
        }
        g_free(fifo);
    }
}

bool shm_file_is_at(int fd, const char *path)
{
    struct stat opened, named;

    return fstat(fd, &opened) == 0 && lstat(path, &named) == 0 && named.st_ino == opened.st_ino &&
           named.st_dev == opened.st_dev;
}

static bool shm_file_is_same(int fd, int other)
{
    struct stat a, b;

    return fstat(fd, &a) == 0 && fstat(other, &b) == 0 && a.st_ino == b.st_ino &&
           a.st_dev == b.st_dev;
}

/* Opens the file at path, or makes it. -1: errno; EEXIST: another process has just made it. */
static int shm_file_open_any(const char *path, bool *made)
{
    int fd = shm_file_open_kept(path, 0);

    *made = fd < 0 && errno == ENOENT;
    return *made ? shm_file_open_kept(path, O_CREAT | O_EXCL) : fd;
}

/* Opens the file at path and takes the join lock; the file is then still the one at path. The
 * file's last user may remove it while this process waits for the lock; then the loop opens the new
 * file. That happens once or rarely. If it happens again and again, a process replaces the file all
 * the time; after SHM_JOIN_WAIT_MS this call fails. *made: this call made the file. */
static int shm_file_open_locked(const char *path, bool own_only, bool *made, GError **err)
{
    gint64 until = g_get_monotonic_time() + SHM_JOIN_WAIT_MS * 1000;

    do {
        struct stat st;
        int fd = shm_file_open_any(path, made);

        if (fd < 0 && errno == EEXIST) {
            continue;
        }
        if (fd < 0) {
            shm_file_fail(err, path, "cannot open the segment");
            return -1;
        }
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (own_only && st.st_uid != geteuid())) {
            g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO, "%s: not a regular file%s", path,
                        own_only ? " of this user" : "");
            shm_file_close(fd);
            return -1;
        }
        if (!shm_file_lock_join(fd, until)) {
            shm_file_fail(err, path, "cannot lock the segment");
            shm_file_close(fd);
            return -1;
        }
        if (shm_file_is_at(fd, path)) {
            return fd;
        }
        shm_file_close(fd);
    } while (g_get_monotonic_time() < until);
    g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO, "%s: the segment is replaced again and again",
                path);
    return -1;
}

bool shm_allocate(int fd, off_t offset, size_t len)
{
    int rc;

    do {
        rc = posix_fallocate(fd, offset, (off_t)len);
    } while (rc == EINTR);
    errno = rc;
    return rc == 0;
}

enum shm_file_kind shm_file_kind(int fd)
{
    static const char zeros[sizeof(SHM_MAGIC) - 1];
    struct shm_start start = {0};
    off_t size = shm_region_offset(SHM_MEMBERS);
    struct stat st;

    if (fstat(fd, &st) < 0 || pread(fd, &start, sizeof(start), 0) < 0) {
        return SHM_FILE_FOREIGN;
    }
    if (memcmp(start.magic, SHM_MAGIC, sizeof(start.magic)) == 0) {
        return st.st_size == size && start.version == SHM_VERSION && start.members == SHM_MEMBERS &&
                       start.file_size == (uint64_t)size
                   ? SHM_FILE_SEGMENT
                   : SHM_FILE_OTHER;
    }
    return st.st_size == 0 || (st.st_size == size && memcmp(start.magic, zeros, sizeof(zeros)) == 0)
               ? SHM_FILE_UNFINISHED
               : SHM_FILE_FOREIGN;
}

static bool shm_file_was_segment(int fd)
{
    enum shm_file_kind kind = shm_file_kind(fd);

    return kind == SHM_FILE_SEGMENT || kind == SHM_FILE_OTHER;
}

/* Makes an empty segment of the file. No member lives in it, so no process has it mapped. */
static bool shm_file_create(int fd, const char *path, GError **err)
{
    struct shm_start start = {.version = SHM_VERSION, .members = SHM_MEMBERS};
    off_t size = shm_region_offset(SHM_MEMBERS);

    memcpy(start.magic, SHM_MAGIC, sizeof(start.magic));
    start.file_size = (uint64_t)size;
    if (ftruncate(fd, 0) < 0 || ftruncate(fd, size) < 0) {
        return shm_file_fail(err, path, "cannot set the segment's size");
    }
    if (!shm_allocate(fd, 0, offsetof(struct shm_header, member))) {
        return shm_file_fail_memory(err, path, "no memory for the segment");
    }
    if (pwrite(fd, &start, sizeof(start), 0) != (ssize_t)sizeof(start)) {
        return shm_file_fail(err, path, "cannot write the segment");
    }
    shm_file_unlink_fifos(path, NULL);
    return true;
}

/* ---- removing ---- */

/*
 * Removes the file at path and the FIFOs of its members, if the file is a segment in which no
 * member lives. This is the only function that removes a segment, for members that leave, for
 * sweepers, and for `hcasim wires --clean`. Why it never harms a segment in use or one that is just
 * joined:
 * - It removes the file only while it holds the join lock and no byte of a member or a number is
 *   locked.
 * - Whoever joins takes the join lock first, and takes its byte before it releases the join lock.
 * - Whoever joins checks, with the join lock, that its file is still the file at path. If the file
 *   was removed meanwhile, it opens or makes the new one.
 * - A file without the magic number is another program's: it stays. with_remains: an empty file, or
 *   one that has the size of a segment and no magic number yet, is removed, too. Its maker has died
 *   or failed, or waits for the join lock and will make a new file.
 * The paths of the removed files are added to `removed`, which may be NULL.
 */
static void shm_file_leave(int fd, const char *path, bool with_remains, GPtrArray *removed)
{
    for (int i = 0; i < LOOKS_AT_LEAVING; i++) {
        bool needed;

        if (!shm_lock(fd, SHM_LOCK_JOIN)) {
            return; /* its holder checks again after this */
        }
        needed = shm_file_anybody_alive(fd);
        if (!needed && shm_file_is_at(fd, path) &&
            (with_remains ? shm_file_kind(fd) != SHM_FILE_FOREIGN : shm_file_was_segment(fd))) {
            shm_file_unlink_fifos(path, removed);
            if (unlink(path) == 0) {
                shm_file_report(removed, path);
            }
        }
        shm_unlock(fd, SHM_LOCK_JOIN);
        if (!needed || shm_file_anybody_alive(fd)) {
            return;
        }
    }
}

/* Makes an empty segment of the file. If that fails, the file is empty afterwards; *is_waste then
 * tells that it is not needed: this process has made it, or it was a segment of the dead. An empty
 * file that a user has made for a group stays. */
static bool shm_file_make_segment(int fd, const char *path, bool made, bool *is_waste, GError **err)
{
    bool was_segment = shm_file_was_segment(fd);

    /* Other data is never overwritten. */
    if (shm_file_kind(fd) == SHM_FILE_FOREIGN) {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO, "%s: this file is something else", path);
        return false;
    }
    if (!shm_file_create(fd, path, err)) {
        *is_waste = made || was_segment;
        (void)!ftruncate(fd, 0);
        return false;
    }
    return true;
}

/* Whether this process can join the members of a segment. */
static bool shm_file_check(int fd, const char *path, GError **err)
{
    if (shm_file_kind(fd) == SHM_FILE_SEGMENT) {
        return true;
    }
    g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO,
                "%s: in use by another version of this program, or not a segment", path);
    return false;
}

int shm_file_open(const char *path, bool own_only, GError **err)
{
    bool made, is_waste = false;
    int fd = shm_file_open_locked(path, own_only, &made, err);

    if (fd < 0) {
        return -1;
    }
    if (shm_file_anybody_alive(fd) ? !shm_file_check(fd, path, err)
                                   : !shm_file_make_segment(fd, path, made, &is_waste, err)) {
        shm_file_joined(fd);
        shm_file_leave(fd, path, is_waste, NULL);
        shm_file_close(fd);
        return -1;
    }
    return fd;
}

int shm_file_open_again(int fd, const char *path)
{
    int again = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

    if (again >= 0 && !shm_file_is_same(fd, again)) {
        close(again);
        errno = ESTALE;
        again = -1;
    }
    return again;
}

/* ---- the end ---- */

void shm_file_left(int fd, const char *path)
{
    shm_file_leave(fd, path, false, NULL);
}

/*
 * A program may end without closing its device. If no other member lives in the segment, the file
 * is removed here, although this process still holds its place: other threads may go on with the
 * memory until the process is gone, and a process that joins now makes a new file. The handler runs
 * after the handlers that release numbers. If the process has several places in a segment, each one
 * is in use as seen from the others; then the next sweep removes the file.
 */
__attribute__((destructor(101))) static void shm_file_at_exit(void)
{
    if (pthread_mutex_trylock(&kept_lock)) {
        return;
    }
    for (unsigned i = 0; i < num_kept; i++) {
        g_autofree char *link = g_strdup_printf("/proc/self/fd/%d", kept[i].fd);
        g_autofree char *path = shm_file_is_kept(&kept[i]) ? g_file_read_link(link, NULL) : NULL;

        if (path) {
            shm_file_leave(kept[i].fd, path, false, NULL);
        }
    }
    pthread_mutex_unlock(&kept_lock);
}

/* Removes a FIFO whose segment was removed by hand. An empty segment file is made in its place, and
 * removed with its FIFOs as a segment in which no member lives. The file's join lock protects
 * another process that is just making this segment: its FIFOs stay. */
static void shm_file_sweep_fifo(const char *fifo, GPtrArray *removed)
{
    const char *id = strrchr(fifo, '.');
    char *path = id && g_ascii_isdigit(id[1]) ? g_strndup(fifo, (gsize)(id - fifo)) : NULL;
    int fd = path ? shm_file_open_kept(path, O_CREAT | O_EXCL) : -1;

    if (fd >= 0) {
        g_autoptr(GPtrArray) files = g_ptr_array_new_with_free_func(g_free);

        shm_file_leave(fd, path, true, files);
        for (unsigned i = 0; i < files->len; i++) {
            if (strcmp(files->pdata[i], path) != 0) { /* was there before */
                shm_file_report(removed, files->pdata[i]);
            }
        }
        shm_file_close(fd);
    }
    g_free(path);
}

void shm_file_sweep_one(const char *path, bool with_remains, GPtrArray *removed)
{
    int fd = shm_file_open_kept(path, 0);
    struct stat st;

    if (fd < 0) {
        return;
    }
    if (fstat(fd, &st) == 0 && st.st_uid == geteuid()) {
        if (S_ISREG(st.st_mode)) {
            shm_file_leave(fd, path, with_remains, removed);
        } else if (S_ISFIFO(st.st_mode)) {
            shm_file_sweep_fifo(path, removed);
        }
    }
    shm_file_close(fd);
}

void shm_file_sweep(const char *dir, const char *prefix, GPtrArray *removed)
{
    GDir *d = g_dir_open(dir, 0, NULL);
    const char *name;

    while (d && (name = g_dir_read_name(d))) {
        g_autofree char *path = g_build_filename(dir, name, NULL);

        if (g_str_has_prefix(name, prefix)) {
            shm_file_sweep_one(path, true, removed);
        }
    }
    if (d) {
        g_dir_close(d);
    }
}
