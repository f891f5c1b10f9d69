/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions of physical addresses, which need CAP_SYS_RAWIO. The program gives it up. */
#define _GNU_SOURCE
#include <infiniband/verbs_exp.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "tests/programs/migration/both.h"

static void try(struct both *b, const char *what, uint64_t access)
{
    struct ibv_exp_reg_mr_in in = {.pd = b->pd, .exp_access = access};
    struct ibv_mr *mr;

    errno = 0;
    mr = ibv_exp_reg_mr(&in);
    printf("%s: %s\n", what, mr ? "registered" : errno == EPERM ? "not permitted" : "invalid");
    NEED(!mr || !ibv_dereg_mr(mr));
}

int main(void)
{
    struct both b = both_begin(0);
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {0};

    NEED(!syscall(SYS_capset, &header, none));
    try(&b, "all of memory", IBV_EXP_ACCESS_PHYSICAL_ADDR | IBV_EXP_ACCESS_LOCAL_WRITE);
    return 0;
}
