/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A part of libhcasim.so, which `hcasim run` preloads (guest-lib/verbs/preload): to a program's
 * librdmacm, /dev/infiniband/rdma_cm is there. What is opened (preload/paths.c) is a descriptor of the connection manager in libibverbs.so.1
 * (guest-lib/verbs/cm/door.c), which can be polled; what is written to it are commands.
 *
 * Any other file costs a look into a table when it is written to or closed. Nothing happens before the file is opened; the library is then looked
 * for among those that are loaded, and has to be the one beside this.
 */
/* fstat() and fstat64() are two functions here. */
#undef _FILE_OFFSET_BITS
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "guest-lib/verbs/cm/door.h"
#include "guest-lib/verbs/preload/preload.h"
#include "guest-lib/verbs/verbs.h"

#define DEVICE "/dev/infiniband/rdma_cm"
#define FILES  65536 /* descriptors that it may have */

static struct {
    struct ucma_file *file;
    unsigned *descriptors; /* of the file */
    ino_t inode;           /* tells a descriptor that was closed without us */
} table[FILES];
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static const struct hv_cm_ops *ops;

/* The C library's function of that name. */
#define REAL(name) ((__typeof__(name) *)interpose_real(#name))

static void *interpose_real(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

static struct ucma_file *interpose_file_of(int fd)
{
    struct stat now;

    if (fd < 0 || fd >= FILES || !__atomic_load_n(&table[fd].file, __ATOMIC_ACQUIRE)) {
        return NULL;
    }
    return REAL(fstat)(fd, &now) || now.st_ino != table[fd].inode ? NULL : table[fd].file;
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

static const struct hv_cm_ops *interpose_find_ops(void)
{
    void *library = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
    __typeof__(ibv_get_device_list) *get = library ? dlsym(library, "ibv_get_device_list") : NULL;
    struct ibv_device **list;

    if (!get || !interpose_is_beside((const void *)get)) {
        return NULL;
    }
    list = get(NULL);
    if (list && list[0]) {
        ops = hv_device(list[0])->cm;
    }
    free(list);
    return ops;
}

/* With the lock. */
static int interpose_note(int fd, struct ucma_file *file, unsigned *descriptors)
{
    struct stat now;

    if (fd >= FILES || REAL(fstat)(fd, &now)) {
        return EMFILE;
    }
    table[fd].descriptors = descriptors;
    table[fd].inode = now.st_ino;
    ++*descriptors;
    __atomic_store_n(&table[fd].file, file, __ATOMIC_RELEASE);
    return 0;
}

/* The descriptor is about to be closed. */
static void interpose_forget(int fd)
{
    struct ucma_file *file;
    bool last = false;

    if (!interpose_file_of(fd)) {
        return;
    }
    pthread_mutex_lock(&table_lock);
    file = table[fd].file;
    __atomic_store_n(&table[fd].file, NULL, __ATOMIC_RELEASE);
    if (file && !--*table[fd].descriptors) {
        free(table[fd].descriptors);
        last = true;
    }
    pthread_mutex_unlock(&table_lock);
    if (last) {
        ops->close(file);
    }
}

/* -- opening ------------------------------------------------------------------------------------
 */

int interpose_open(int flags)
{
    unsigned *descriptors = calloc(1, sizeof(*descriptors));
    struct ucma_file *file;
    int fd = -1, err = ENOENT;

    if (descriptors && (ops || interpose_find_ops())) {
        file = ops->open(interpose_file_of, flags, &fd);
        err = errno;
        if (file) {
            pthread_mutex_lock(&table_lock);
            err = interpose_note(fd, file, descriptors);
            pthread_mutex_unlock(&table_lock);
            if (!err) {
                return fd;
            }
            ops->close(file);
            REAL(close)(fd);
        }
    }
    free(descriptors);
    errno = err;
    return -1;
}

/* -- descriptors --------------------------------------------------------------------------------
 */

HV_EXPORT ssize_t write(int fd, const void *buf, size_t len)
{
    static __typeof__(write) *real;
    struct ucma_file *file = interpose_file_of(fd);

    if (file) {
        return ops->write(file, buf, len);
    }
    if (!real) {
        real = REAL(write);
    }
    return real(fd, buf, len);
}

HV_EXPORT int close(int fd)
{
    static __typeof__(close) *real;

    interpose_forget(fd);
    if (!real) {
        real = REAL(close);
    }
    return real(fd);
}

/* The kernel's is a character device, which librdmacm looks at. */
#define FSTAT(name, type)                                                                          \
    HV_EXPORT int name(int fd, struct type *buf)                                                   \
    {                                                                                              \
        struct type device;                                                                        \
        int err = REAL(name)(fd, buf);                                                             \
                                                                                                   \
        if (!err && interpose_file_of(fd)) {                                                       \
            buf->st_mode = S_IFCHR | 0666;                                                         \
            buf->st_rdev = type(DEVICE, &device) ? 0 : device.st_rdev;                             \
        }                                                                                          \
        return err;                                                                                \
    }
FSTAT(fstat, stat)
FSTAT(fstat64, stat64)

static int interpose_duplicated(int from, int to)
{
    if (to >= 0 && interpose_file_of(from)) {
        pthread_mutex_lock(&table_lock);
        interpose_note(to, table[from].file, table[from].descriptors);
        pthread_mutex_unlock(&table_lock);
    }
    return to;
}

HV_EXPORT int dup(int from)
{
    return interpose_duplicated(from, REAL(dup)(from));
}

HV_EXPORT int dup2(int from, int to)
{
    if (from == to) {
        return REAL(dup2)(from, to);
    }
    interpose_forget(to);
    return interpose_duplicated(from, REAL(dup2)(from, to));
}

HV_EXPORT int dup3(int from, int to, int flags)
{
    if (from != to) {
        interpose_forget(to);
    }
    return interpose_duplicated(from, REAL(dup3)(from, to, flags));
}
