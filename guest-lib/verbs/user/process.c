/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process: fork, and files that programs read beside the library.
 *
 * An HCA stays with the process that opened it: its threads, its place on the wire and what it does
 * DMA to are there. With hardware a child of fork(), or a program that opens a device before
 * daemon(), writes rings that no device reads, or none at all (ibv_fork_init(3)). Here each call in
 * it that needs the HCA fails with EIO, the first one with a line on standard error; the child may
 * open the device again, and is then a host of its own.
 *
 * Nothing is pinned, so the parent's memory does not move away from under the HCA, and there is
 * nothing that these functions need to do.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include "guest-lib/verbs/verbs.h"

static bool fork_initialized;

HV_EXPORT int ibv_fork_init(void)
{
    fork_initialized = true;
    return 0;
}

HV_EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return fork_initialized ? IBV_FORK_ENABLED : IBV_FORK_DISABLED;
}

HV_EXPORT int ibv_dontfork_range(void *base, size_t size);
int ibv_dontfork_range(void *base, size_t size)
{
    return 0;
}

HV_EXPORT int ibv_dofork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size)
{
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
