/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of libhcasim.so, which `hcasim run` preloads (guest-lib/verbs/preload), that provides
 * /dev/infiniband/rdma_cm to a program's librdmacm. Opening it (preload/paths.c) returns a
 * descriptor of the connection manager in libibverbs.so.1 (guest-lib/verbs/cm/door.c). The
 * descriptor can be polled, and commands are written to it.
 *
 * For any other file, a write or close costs one table lookup. Nothing happens before the file is
 * opened. Then the library is looked for among the loaded ones; it must be the one in the same
 * folder as this library.
 */
/* fstat() and fstat64() must be two functions in this file. */
#undef _FILE_OFFSET_BITS
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "guest-lib/verbs/cm/door.h"
#include "guest-lib/verbs/preload/preload.h"
#include "guest-lib/verbs/preload/real.h"
#include "guest-lib/verbs/preload/tree.h"
#include "guest-lib/verbs/verbs.h"
#include "wire/cancel.h"
#include "wire/signals.h"

#define FILES 65536 /* descriptor numbers that a process may have */

/* The names of fstat() and fstat64() in programs that were built with an older C library. */
int __fxstat(int version, int fd, struct stat *buf);
int __fxstat64(int version, int fd, struct stat64 *buf);

#define FUNCTIONS(X)                                                                               \
    X(close)                                                                                       \
    X(dup)                                                                                         \
    X(dup2)                                                                                        \
    X(dup3)                                                                                        \
    X(fcntl)                                                                                       \
    X(fcntl64)                                                                                     \
    X(close_range)                                                                                 \
    X(fstat)                                                                                       \
    X(fstat64)                                                                                     \
    X(__fxstat)                                                                                    \
    X(__fxstat64)                                                                                  \
    X(write)
REAL_TABLE(FUNCTIONS)

/* An open file, like the kernel's struct file: it is closed when its last holder is gone. */
struct opened {
    struct ucma_file *file;
    unsigned holders; /* descriptors, and calls in progress */
};

struct entry {
    struct opened *opened;
    int mark; /* shows if a descriptor was closed without this library's knowledge */
};

static struct entry table[FILES];
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER; /* around all of this */
static pid_t table_pid; /* the process that it belongs to: a child of vfork() only borrows it */
static const struct hv_cm_ops *ops;

struct interpose_state {
    sigset_t signals;
    int cancel;
};

static struct interpose_state interpose_lock(void)
{
    struct interpose_state state = {.cancel = cancel_disable()};

    signals_hold(&state.signals);
    pthread_mutex_lock(&table_lock);
    return state;
}

static void interpose_unlock(const struct interpose_state *state)
{
    pthread_mutex_unlock(&table_lock);
    signals_release(&state->signals);
    cancel_restore(state->cancel);
}

/* The mark of a descriptor is the signal that its open file would send if it were asynchronous;
 * the connection manager's files are not. Most other files have 0 there; each of this library's
 * files has a signal number. So the mark tells this library's file from another file at the same
 * number. */
static int interpose_mark(int fd)
{
    return fcntl(fd, F_GETSIG);
}

static int interpose_new_mark(void)
{
    static unsigned count;
    int first = SIGRTMIN, last = SIGRTMAX;

    return first +
           (int)(__atomic_fetch_add(&count, 1, __ATOMIC_RELAXED) % (unsigned)(last - first + 1));
}

/* A cheap check: false for most other files. */
static bool interpose_may_be_file(int fd)
{
    return fd >= 0 && fd < FILES && __atomic_load_n(&table[fd].opened, __ATOMIC_ACQUIRE);
}

/* The open file of a descriptor, with the lock held. NULL: it is not one of these. */
static struct opened *interpose_look_up(int fd)
{
    return table[fd].opened && table[fd].mark == interpose_mark(fd) ? table[fd].opened : NULL;
}

/* The file of a descriptor, without holding it. It stays while the connection manager's lock is
 * held. */
PRELOAD_SLOW static struct ucma_file *interpose_look_at(int fd)
{
    int err = errno;
    struct interpose_state state = interpose_lock();
    const struct opened *opened = interpose_look_up(fd);
    struct ucma_file *file = opened ? opened->file : NULL;

    interpose_unlock(&state);
    errno = err;
    return file;
}

static struct ucma_file *interpose_file_of(int fd)
{
    return interpose_may_be_file(fd) ? interpose_look_at(fd) : NULL;
}

/* Holds the file of a descriptor for a call, until interpose_put(). NULL: it has none. */
PRELOAD_SLOW static struct opened *interpose_hold(int fd)
{
    int err = errno;
    struct interpose_state state = interpose_lock();
    struct opened *opened = interpose_look_up(fd);

    if (opened) {
        opened->holders++;
    }
    interpose_unlock(&state);
    errno = err;
    return opened;
}

static const struct hv_cm_ops *interpose_ops(void)
{
    return __atomic_load_n(&ops, __ATOMIC_ACQUIRE);
}

static bool interpose_is_beside(const void *symbol)
{
    Dl_info theirs, ours;
    const char *end;

    if (!dladdr(symbol, &theirs) || !dladdr((const void *)interpose_is_beside, &ours)) {
        return false;
    }
    end = strrchr(ours.dli_fname, '/');
    return end && !strncmp(theirs.dli_fname, ours.dli_fname, (size_t)(end - ours.dli_fname) + 1);
}

/* Finds the operations and stores them before any file is open, so that every holder of a file
 * finds them stored. False: ENOENT. */
static bool interpose_find_ops(void)
{
    void *library = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
    __typeof__(ibv_get_device_list) *get = library ? dlsym(library, "ibv_get_device_list") : NULL;
    struct ibv_device **list;

    if (!get || !interpose_is_beside((const void *)get)) {
        return false;
    }
    list = get(NULL);
    if (list && list[0]) {
        __atomic_store_n(&ops, hv_device(list[0])->cm, __ATOMIC_RELEASE);
    }
    free(list);
    return interpose_ops() != NULL;
}

/* Enters a descriptor of the file, with the lock held. */
static int interpose_note(int fd, struct opened *opened)
{
    if (fd >= FILES) {
        return EMFILE;
    }
    table[fd].mark = interpose_mark(fd);
    opened->holders++;
    __atomic_store_n(&table[fd].opened, opened, __ATOMIC_RELEASE);
    return 0;
}

/* Removes a descriptor, with the lock held. Returns its file, for interpose_drop(). */
static struct opened *interpose_take(int fd)
{
    struct opened *was = table[fd].opened;

    __atomic_store_n(&table[fd].opened, NULL, __ATOMIC_RELEASE);
    return was;
}

/* Removes a holder, with the lock held. Returns the file if that was its last holder, for
 * interpose_end(). */
static struct opened *interpose_drop(struct opened *was)
{
    return was && !--was->holders ? was : NULL;
}

static void interpose_end(struct opened *last)
{
    if (last) {
        interpose_ops()->close(last->file);
        free(last);
    }
}

/* To be called after a call, also if it was cancelled. */
static void interpose_put(void *opened)
{
    int err = errno;
    struct interpose_state state = interpose_lock();
    struct opened *last = interpose_drop(opened);

    interpose_unlock(&state);
    interpose_end(last);
    errno = err;
}

/* Closes the descriptor and removes its entry, if it was not closed without this library's
 * knowledge. A thread that writes to it meanwhile takes the table's lock, and so waits until the
 * descriptor is neither entered nor open: it never reaches the eventfd behind it. */
PRELOAD_SLOW static int interpose_close(int fd)
{
    struct interpose_state state = interpose_lock();
    int result = REAL(close)(fd), err = errno;
    struct opened *last = interpose_drop(interpose_take(fd));

    interpose_unlock(&state);
    interpose_end(last);
    errno = err;
    return result;
}

/* -- opening ------------------------------------------------------------------------------------
 */

int interpose_open(int flags)
{
    struct opened *opened = calloc(1, sizeof(*opened));
    int fd = -1, err = ENOENT;

    if (opened && (interpose_ops() || interpose_find_ops())) {
        opened->file = interpose_ops()->open(interpose_file_of, flags, rsockets_least_fd(), &fd);
        err = errno;
        if (opened->file) {
            struct interpose_state state = interpose_lock();

            fcntl(fd, F_SETSIG, interpose_new_mark());
            err = interpose_note(fd, opened);
            interpose_unlock(&state);
            if (!err) {
                return fd;
            }
            interpose_ops()->close(opened->file);
            REAL(close)(fd);
        }
    }
    free(opened);
    errno = err;
    return -1;
}

/* -- descriptors --------------------------------------------------------------------------------
 */

/* Another thread may close the descriptor meanwhile: the file stays open during this call. */
PRELOAD_SLOW static ssize_t interpose_write(int fd, const void *buf, size_t len)
{
    struct opened *opened = interpose_hold(fd);
    ssize_t result;

    if (!opened) {
        return REAL(write)(fd, buf, len);
    }
    pthread_cleanup_push(interpose_put, opened);
    result = interpose_ops()->write(opened->file, buf, len);
    pthread_cleanup_pop(1);
    return result;
}

PRELOAD_EXPORT ssize_t write(int fd, const void *buf, size_t len)
{
    return interpose_may_be_file(fd) ? interpose_write(fd, buf, len) : REAL(write)(fd, buf, len);
}

PRELOAD_EXPORT int close(int fd)
{
    return interpose_may_be_file(fd) && getpid() == table_pid ? interpose_close(fd)
                                                              : REAL(close)(fd);
}

/* The kernel's file is a character device, and librdmacm checks that. */
#define FSTAT(name, type, parameters, arguments)                                                   \
    PRELOAD_EXPORT int name parameters                                                             \
    {                                                                                              \
        int err = REAL(name) arguments;                                                            \
                                                                                                   \
        if (!err && interpose_file_of(fd)) {                                                       \
            struct type device;                                                                    \
                                                                                                   \
            buf->st_mode = S_IFCHR | 0666;                                                         \
            buf->st_rdev = type(TREE_FILE, &device) ? 0 : device.st_rdev;                          \
        }                                                                                          \
        return err;                                                                                \
    }
FSTAT(fstat, stat, (int fd, struct stat *buf), (fd, buf))
FSTAT(fstat64, stat64, (int fd, struct stat64 *buf), (fd, buf))
FSTAT(__fxstat, stat, (int version, int fd, struct stat *buf), (version, fd, buf))
FSTAT(__fxstat64, stat64, (int version, int fd, struct stat64 *buf), (version, fd, buf))

/* To be called after `to` became a duplicate of `from`, which has closed the previous file of
 * `to`. */
PRELOAD_SLOW static void interpose_duplicated(int from, int to)
{
    int err = errno;
    struct interpose_state state = interpose_lock();
    struct opened *opened = from < FILES ? interpose_look_up(from) : NULL, *last;
    struct opened *was = to < FILES ? interpose_take(to) : NULL;

    if (opened) {
        interpose_note(to, opened);
    }
    last = interpose_drop(was);
    interpose_unlock(&state);
    interpose_end(last);
    errno = err;
}

static int interpose_duplicate(int from, int to)
{
    if (to >= 0 && to != from && (interpose_may_be_file(from) || interpose_may_be_file(to)) &&
        getpid() == table_pid) {
        interpose_duplicated(from, to);
    }
    return to;
}

PRELOAD_EXPORT int dup(int from)
{
    return interpose_duplicate(from, REAL(dup)(from));
}

PRELOAD_EXPORT int dup2(int from, int to)
{
    return interpose_duplicate(from, REAL(dup2)(from, to));
}

PRELOAD_EXPORT int dup3(int from, int to, int flags)
{
    return interpose_duplicate(from, REAL(dup3)(from, to, flags));
}

/* Both fcntl() and fcntl64(). Duplicates are entered, too. For other commands, the argument is
 * passed on as it came, in a register. */
#define FCNTL(name)                                                                                \
    PRELOAD_EXPORT int name(int fd, int command, ...)                                              \
    {                                                                                              \
        va_list args;                                                                              \
        void *arg;                                                                                 \
        int got;                                                                                   \
                                                                                                   \
        va_start(args, command);                                                                   \
        arg = va_arg(args, void *);                                                                \
        va_end(args);                                                                              \
        got = REAL(name)(fd, command, arg);                                                        \
        return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? interpose_duplicate(fd, got)     \
                                                                : got;                             \
    }
FCNTL(fcntl)
FCNTL(fcntl64)

PRELOAD_EXPORT int close_range(unsigned first, unsigned last, int flags)
{
    if (!flags && getpid() == table_pid) {
        for (unsigned fd = first; fd <= last && fd < FILES; fd++) {
            if (interpose_may_be_file((int)fd)) {
                interpose_close((int)fd);
            }
        }
    }
    return REAL(close_range)(first, last, flags);
}

/* -- the process --------------------------------------------------------------------------------
 */

static void interpose_before_fork(void)
{
    pthread_mutex_lock(&table_lock);
}

static void interpose_after_fork(void)
{
    pthread_mutex_unlock(&table_lock);
}

static void interpose_in_child(void)
{
    table_pid = getpid();
    pthread_mutex_unlock(&table_lock);
}

__attribute__((constructor)) static void interpose_begin(void)
{
    table_pid = getpid();
    pthread_atfork(interpose_before_fork, interpose_after_fork, interpose_in_child);
}
