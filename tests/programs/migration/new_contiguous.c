/* SPDX-License-Identifier: BSD-2-Clause */
/* Contiguous pages, new: huge pages where the system has some. */
#define _GNU_SOURCE
#include <sys/mman.h>
#include "tests/programs/migration/both.h"

#define BYTES (4u << 20)

static void *pages(int flags)
{
    void *at =
        mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

    return at == MAP_FAILED ? NULL : at;
}

int main(void)
{
    struct both b = both_begin(0);
    struct ibv_qp *qp = both_rc(&b, b.cq);
    void *memory = pages(MAP_HUGETLB);
    struct ibv_mr *mr;
    uint8_t *last;

    both_loop(qp);
    NEED(memory || (memory = pages(0)));
    mr = ibv_reg_mr(b.pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    NEED(mr);
    last = (uint8_t *)memory + BYTES - 4096;
    both_write(qp, both_from(&b), 4096, b.mr->lkey, (uintptr_t)last, mr->rkey);
    both_done(b.cq);
    printf("%zu bytes, the last page %s\n", mr->length,
           memcmp(last, both_from(&b), 4096) ? "wrong" : "right");
    NEED(!ibv_dereg_mr(mr));
    return 0;
}
