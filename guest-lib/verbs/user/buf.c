/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of rings and doorbell records: from the program's allocators, from huge pages, or the
 * library's own (guest-lib/host/held.h).
 */
#include <infiniband/mlx5dv.h>
#include <string.h>
#include <sys/mman.h>
#include "guest-lib/verbs/user/user.h"

/*
 * Rings on huge pages, as libmlx5 allocates them if MLX_QP_ALLOC_TYPE, MLX_CQ_ALLOC_TYPE or
 * MLX_SRQ_ALLOC_TYPE say so: HUGE (no other memory is used) or PREFER_HUGE. Such a ring takes whole
 * huge pages.
 */
#define HUGE_PAGE ((size_t)2 << 20)

static const char *buf_wanted_memory(uint64_t type)
{
    return type == MLX5DV_RES_TYPE_QP    ? getenv("MLX_QP_ALLOC_TYPE")
           : type == MLX5DV_RES_TYPE_CQ  ? getenv("MLX_CQ_ALLOC_TYPE")
           : type == MLX5DV_RES_TYPE_SRQ ? getenv("MLX_SRQ_ALLOC_TYPE")
                                         : NULL;
}

static size_t buf_huge_size(size_t size)
{
    return (size + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
}

static void *buf_huge_alloc(size_t size)
{
    void *ptr = mmap(NULL, buf_huge_size(size), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

    return ptr == MAP_FAILED ? NULL : ptr;
}

/* Takes what alloc() returned: if it is memory of a GPU, its shadow stands for it. NULL with errno:
 * it was given back. */
static void *buf_take(struct hv_pd *pd, void *ptr, size_t size, uint64_t type)
{
    struct hv_hca *hca = hv_hca_of(pd->ibv.context);
    void *taken = ptr;
    int err = shadow_take(hca, &taken, size);

    if (!err) {
        return taken;
    }
    pd->free(&pd->ibv, pd->pd_context, ptr, type);
    errno = hv_refuse(hca, err,
                      "the parent domain's alloc() returned %p, and not all of the %zu bytes there "
                      "are memory of the GPU",
                      ptr, size);
    return NULL;
}

/* Asks the allocators of a parent domain. NULL with errno: there is no memory.
 * IBV_ALLOCATOR_USE_DEFAULT: the library is to allocate it. */
static void *buf_ask_program(struct hv_pd *pd, size_t size, size_t alignment, uint64_t type,
                             enum hv_from *from)
{
    void *ptr = pd->alloc(&pd->ibv, pd->pd_context, size, alignment, type);

    *from = ptr == IBV_ALLOCATOR_USE_DEFAULT ? HV_FROM_HELD : HV_FROM_PROGRAM;
    if (!ptr) {
        errno = ENOMEM;
    }
    return ptr && *from == HV_FROM_PROGRAM ? buf_take(pd, ptr, size, type) : ptr;
}

void *hv_buf_alloc(struct hv_pd *pd, size_t size, size_t alignment, uint64_t type,
                   enum hv_from *from)
{
    const char *wanted = buf_wanted_memory(type);

    hv_fork_note_memory();
    if (pd && pd->alloc) {
        void *ptr = buf_ask_program(pd, size, alignment, type, from);

        if (ptr != IBV_ALLOCATOR_USE_DEFAULT) {
            return ptr;
        }
        wanted = NULL; /* libmlx5 reads the variables only if there are no allocators */
    }
    *from = HV_FROM_HELD;
    if (wanted && (!strcmp(wanted, "HUGE") || !strcmp(wanted, "PREFER_HUGE"))) {
        void *ptr = buf_huge_alloc(size);

        if (ptr || !strcmp(wanted, "HUGE")) {
            *from = HV_FROM_HUGE;
            return ptr;
        }
    }
    return hv_ring_alloc(hv_whole_pages(size));
}

void hv_buf_free(struct hv_pd *pd, void *ptr, size_t size, uint64_t type, enum hv_from from)
{
    ptr = shadow_end(ptr);
    if (from == HV_FROM_PROGRAM) {
        pd->free(&pd->ibv, pd->pd_context, ptr, type);
    } else if (from == HV_FROM_HUGE) {
        munmap(ptr, buf_huge_size(size));
    } else {
        hv_ring_free(ptr, hv_whole_pages(size));
    }
}

uint32_t *hv_db_alloc(struct hv_context *ctx, struct hv_pd *pd, enum hv_from *from)
{
    if (pd && pd->alloc) {
        void *ptr = buf_ask_program(pd, HV_DBREC_SIZE, HV_DBREC_SIZE, MLX5DV_RES_TYPE_DBR, from);

        if (ptr != IBV_ALLOCATOR_USE_DEFAULT) {
            return ptr;
        }
    }
    *from = HV_FROM_HELD;
    return hv_dbrec_alloc(ctx);
}

void hv_db_free(struct hv_context *ctx, struct hv_pd *pd, uint32_t *dbrec, enum hv_from from)
{
    dbrec = shadow_end(dbrec);
    if (from == HV_FROM_PROGRAM) {
        pd->free(&pd->ibv, pd->pd_context, dbrec, MLX5DV_RES_TYPE_DBR);
    } else {
        hv_dbrec_free(ctx, dbrec);
    }
}
