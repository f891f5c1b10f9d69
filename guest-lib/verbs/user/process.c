/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process: fork, and fork protection.
 *
 * An HCA stays with the process that opened it: its threads, its place on the wire and the memory
 * that it accesses are there. With hardware, a child of fork(), or a program that opens a device
 * before daemon(), writes to rings that no device reads, or to none at all (ibv_fork_init(3)). Here
 * each call in the child that needs the HCA fails with EIO, and the first one writes a line to
 * standard error. The child may open the device again, and is then a host of its own.
 *
 * Nothing is pinned, so after a fork() the parent's HCA still accesses the parent's memory. A
 * kernel that copies pinned memory at fork() has the same effect, and reports that
 * (RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK, since Linux 5.13; preload/netlink_rdma.c reports it, too). On
 * such a kernel ibv_is_fork_initialized() answers that nothing needs to be done, and since
 * rdma-core 51 ibv_fork_init() does nothing. Before rdma-core 51, ibv_fork_init() had to be called
 * before any memory was registered or any ring was made, and it kept registered pages out of
 * children (MADV_DONTFORK). This library keeps the first rule, because programs see the result. It
 * does not keep the second one: the library's own work in a child of fork() uses the heap, which
 * may share pages with memory that a program registers.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "guest-lib/verbs/user/user.h"

/* RDMA_CORE is the rdma-core release of the headers, which the library represents. */
#define FORK_INIT_IS_UNNEEDED (RDMA_CORE >= 51)

static bool fork_initialized, fork_too_late; /* atomic */

void hv_fork_note_memory(void)
{
    if (!__atomic_load_n(&fork_initialized, __ATOMIC_RELAXED)) {
        __atomic_store_n(&fork_too_late, true, __ATOMIC_RELAXED);
    }
}

HV_EXPORT int ibv_fork_init(void)
{
    if (!FORK_INIT_IS_UNNEEDED && !__atomic_load_n(&fork_initialized, __ATOMIC_RELAXED)) {
        if (__atomic_load_n(&fork_too_late, __ATOMIC_RELAXED)) {
            return EINVAL;
        }
        __atomic_store_n(&fork_initialized, true, __ATOMIC_RELAXED);
    }
    return 0;
}

static bool process_env_is_on(const char *name)
{
    const char *value = getenv(name);

    return value && strcmp(value, "0") != 0;
}

void hv_fork_init_from_env(void)
{
    static bool done; /* protected by the lock of the devices */

    if (!done && (process_env_is_on("RDMAV_FORK_SAFE") || process_env_is_on("IBV_FORK_SAFE")) &&
        ibv_fork_init()) {
        fprintf(stderr, "hcasim: RDMAV_FORK_SAFE, IBV_FORK_SAFE: memory is registered already\n");
    }
    done = true;
}

HV_EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return IBV_FORK_UNNEEDED;
}

HV_EXPORT int ibv_dontfork_range(void *base, size_t size);
int ibv_dontfork_range(void *base, size_t size)
{
    hv_fork_note_memory();
    return 0;
}

HV_EXPORT int ibv_dofork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size)
{
    hv_fork_note_memory();
    return 0;
}

HV_EXPORT const char *ibv_get_sysfs_path(void);
const char *ibv_get_sysfs_path(void)
{
    const char *path = getenv("SYSFS_PATH");

    return path ? path : "/sys";
}

HV_EXPORT int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
    char *path;
    int fd;
    ssize_t len;

    if (asprintf(&path, "%s/%s", dir, file) < 0) {
        return -1;
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    free(path);
    if (fd < 0) {
        return -1;
    }
    len = read(fd, buf, size);
    close(fd);
    if (len > 0) {
        if (buf[len - 1] == '\n') {
            buf[--len] = '\0';
        } else if ((size_t)len < size) {
            buf[len] = '\0';
        } else {
            return -1;
        }
    }
    return (int)len;
}
