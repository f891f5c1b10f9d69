/* SPDX-License-Identifier: BSD-2-Clause */
/* What the programs share that look at their HCA in sysfs and /dev (beside.c, beside_cm.c). */
#ifndef HCASIM_TESTS_PROGRAMS_BESIDE_H
#define HCASIM_TESTS_PROGRAMS_BESIDE_H

#include <check.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IBDEV "/sys/class/infiniband/mlx5_0"

/* Gives this process a wire of its own. */
static inline void beside_own_wire(void)
{
    char wire[32];

    snprintf(wire, sizeof(wire), "beside-%d", (int)getpid());
    setenv("HCASIM_WIRE", wire, 1);
}

/* Finds the folder of the simulated tree, to which a file's name is added. */
static inline void beside_root(char root[PATH_MAX])
{
    char name[32];
    int fd = open("/sys/class/infiniband", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ssize_t len;

    snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    len = readlink(name, root, PATH_MAX - 1);
    ck_assert_int_gt(len, 0);
    root[len] = '\0';
    close(fd);
    *strstr(root, "/sys/class") = '\0';
}

#endif
