/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements opened.h with two ways, because each one has programs that it does not reach.
 *
 * The first way is a memory file that processes inherit. It works for a process that has changed
 * its user, or has namespaces and a /proc of its own. A program that closes its descriptors loses
 * the file. Another file may then have the number, so the address also has device and inode.
 *
 * The second way is a socket with an abstract address, for programs that close their descriptors.
 * It works in the network namespace of hcasim only.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create() */
#endif
#include "guest-lib/verbs/kernel/opened.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* A number that shell scripts and programs with few descriptors do not use. */
#define FILE_NUMBER 900
/* The kernel chooses an abstract address: a zero byte and five hexadecimal digits (unix(7)). */
#define NAME_LEN 5

/* Makes the memory file. Its number is FILE_NUMBER or more, if the limit of descriptors allows. */
static int opened_make_file(void)
{
    int fd = memfd_create("hcasim-opened", 0), high;

    if (fd < 0) {
        return -1;
    }
    high = fcntl(fd, F_DUPFD, FILE_NUMBER);
    if (high < 0) {
        return fd;
    }
    close(fd);
    return high;
}

/* Makes the socket, and writes the digits of its address to name. -1: there is none. */
static int opened_make_socket(char name[NAME_LEN + 1])
{
    struct sockaddr_un own = {.sun_family = AF_UNIX};
    socklen_t len = sizeof(own);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    memset(name, 0, NAME_LEN + 1);
    if (fd < 0) {
        return -1;
    }
    if (bind(fd, (struct sockaddr *)&own, sizeof(own.sun_family)) ||
        getsockname(fd, (struct sockaddr *)&own, &len) ||
        len != offsetof(struct sockaddr_un, sun_path) + 1 + NAME_LEN) {
        close(fd);
        return -1;
    }
    memcpy(name, own.sun_path + 1, NAME_LEN);
    return fd;
}

char *hv_opened_begin(struct hv_opened *opened)
{
    char name[NAME_LEN + 1];
    struct stat st;

    opened->file = opened_make_file();
    if (opened->file < 0 || fstat(opened->file, &st)) {
        return NULL;
    }
    opened->socket = opened_make_socket(name);
    return g_strdup_printf("%d:%" PRIx64 ":%" PRIx64 ":%s", opened->file, (uint64_t)st.st_dev,
                           (uint64_t)st.st_ino, name);
}

bool hv_opened_is_told(const struct hv_opened *opened)
{
    struct stat st = {0};
    char byte;

    return (!fstat(opened->file, &st) && st.st_size) ||
           recv(opened->socket, &byte, sizeof(byte), MSG_DONTWAIT) >= 0;
}

/* Writes to the file if the number still names it. Works on a duplicate, because another thread may
 * close the number and open another file meanwhile. */
static bool opened_tell_file(int number, uint64_t device, uint64_t inode)
{
    int fd = fcntl(number, F_DUPFD_CLOEXEC, 0);
    struct stat st;
    bool told;

    if (fd < 0) {
        return false;
    }
    told =
        !fstat(fd, &st) && st.st_dev == device && st.st_ino == inode && pwrite(fd, "1", 1, 0) == 1;
    close(fd);
    return told;
}

static bool opened_tell_socket(const char *name)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), why;
    bool told;

    if (fd < 0) {
        return false;
    }
    memcpy(to.sun_path + 1, name, NAME_LEN);
    /* If the socket's queue is full, another report is in it already. */
    told = sendto(fd, "1", 1, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&to,
                  offsetof(struct sockaddr_un, sun_path) + 1 + NAME_LEN) == 1 ||
           errno == EAGAIN;
    why = errno;
    close(fd);
    errno = why;
    return told;
}

bool hv_opened_tell(const char *address)
{
    char name[NAME_LEN + 1] = "";
    uint64_t device, inode;
    int number;

    if (sscanf(address, "%d:%" SCNx64 ":%" SCNx64 ":%5s", &number, &device, &inode, name) < 3) {
        errno = EINVAL;
        return false;
    }
    errno = EBADF;
    return opened_tell_file(number, device, inode) ||
           (strlen(name) == NAME_LEN && opened_tell_socket(name));
}
