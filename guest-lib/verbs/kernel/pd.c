/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection domains, thread domains and parent domains.
 *
 * A thread domain is a doorbell page of its own. A parent domain joins a PD with a thread domain
 * or with allocators of the program's own; it can stand wherever a PD can. Imported PDs refer to
 * the one whose handle they were made from.
 */
#include <infiniband/mlx5dv.h>
#include <string.h>
#include <sys/mman.h>
#include "guest-lib/verbs/verbs.h"

#define DBREC_SIZE 8

static pthread_mutex_t imports_lock = PTHREAD_MUTEX_INITIALIZER; /* around imports and dead */

/* -- doorbell pages -----------------------------------------------------------------------------
 */

int hv_uar_alloc(struct hv_context *ctx, struct hv_uar *uar)
{
    uint8_t in[PRM_SIZE(alloc_uar_in)] = {0}, out[PRM_SIZE(alloc_uar_out)] = {0};
    int err;

    PRM_SET(alloc_uar_in, in, opcode, PRM_CMD_OP_ALLOC_UAR);
    PRM_SET(alloc_uar_in, in, uid, ctx->uid);
    err = hv_cmd(ctx->hca, in, sizeof(in), out, sizeof(out));
    uar->page = PRM_GET(alloc_uar_out, out, uar);
    uar->bf_toggle = 0;
    return err;
}

void hv_uar_free(struct hv_context *ctx, struct hv_uar *uar)
{
    uint8_t in[PRM_SIZE(dealloc_uar_in)] = {0};

    PRM_SET(dealloc_uar_in, in, opcode, PRM_CMD_OP_DEALLOC_UAR);
    PRM_SET(dealloc_uar_in, in, uid, ctx->uid);
    PRM_SET(dealloc_uar_in, in, uar, uar->page);
    hv_cmd_simple(ctx->hca, in, sizeof(in));
}

/* -- protection domains -------------------------------------------------------------------------
 */

HV_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct hv_context *ctx = hv_context(context);
    uint8_t in[PRM_SIZE(alloc_pd_in)] = {0}, out[PRM_SIZE(alloc_pd_out)] = {0};
    struct hv_pd *pd = calloc(1, sizeof(*pd));

    if (!pd) {
        return NULL;
    }
    PRM_SET(alloc_pd_in, in, opcode, PRM_CMD_OP_ALLOC_PD);
    PRM_SET(alloc_pd_in, in, uid, ctx->uid);
    if (hv_kernel(hv_cmd(ctx->hca, in, sizeof(in), out, sizeof(out)))) {
        free(pd);
        return NULL;
    }
    pd->pdn = PRM_GET(alloc_pd_out, out, pd);
    pd->ibv.context = context;
    pd->ibv.handle = hv_handle_add(context, HV_HANDLE_PD, pd);
    return &pd->ibv;
}

static int dealloc_parent_domain(struct hv_pd *pd)
{
    if (g_atomic_int_get(&pd->refs) || g_atomic_int_get(&pd->domains)) {
        return EBUSY;
    }
    g_atomic_int_add(&pd->parent->domains, -1);
    if (pd->td) {
        g_atomic_int_add(&pd->td->refs, -1);
    }
    free(pd);
    return 0;
}

/* The imported one's memory; its PD's, too, if nothing else refers to that. */
static void free_imported(struct hv_pd *pd)
{
    struct hv_pd *real = pd->parent;

    pthread_mutex_lock(&imports_lock);
    if (--real->imports == 0 && real->dead) {
        free(real);
    }
    pthread_mutex_unlock(&imports_lock);
    free(pd);
}

/* Takes the PD from the device. It may be deallocated through any object that refers to it. */
static int dealloc_device_pd(struct ibv_pd *ibpd)
{
    uint8_t in[PRM_SIZE(dealloc_pd_in)] = {0};
    struct hv_context *ctx = hv_context(ibpd->context);
    struct hv_pd *pd = hv_real_pd(ibpd);
    int err = hv_pd_check(ibpd);

    if (err) {
        return err;
    }
    if (g_atomic_int_get(&pd->refs)) {
        return EBUSY;
    }
    PRM_SET(dealloc_pd_in, in, opcode, PRM_CMD_OP_DEALLOC_PD);
    PRM_SET(dealloc_pd_in, in, uid, ctx->uid);
    PRM_SET(dealloc_pd_in, in, pd, pd->pdn);
    err = hv_cmd_simple(ctx->hca, in, sizeof(in));
    if (err) {
        return err;
    }
    hv_handle_del(ibpd->context, ibpd->handle);
    pthread_mutex_lock(&imports_lock);
    pd->dead = true;
    pthread_mutex_unlock(&imports_lock);
    return 0;
}

HV_EXPORT int ibv_dealloc_pd(struct ibv_pd *ibpd)
{
    struct hv_pd *pd = hv_pd(ibpd);
    unsigned imports;
    int err;

    if (pd->kind == HV_PD_PARENT_DOMAIN) {
        return dealloc_parent_domain(pd);
    }
    if (g_atomic_int_get(&pd->domains)) {
        return EBUSY;
    }
    err = hv_kernel(dealloc_device_pd(ibpd));
    if (err) {
        return err;
    }
    if (pd->kind == HV_PD_IMPORTED) {
        free_imported(pd);
        return 0;
    }
    pthread_mutex_lock(&imports_lock);
    imports = pd->imports;
    pthread_mutex_unlock(&imports_lock);
    if (!imports) {
        free(pd);
    }
    return 0;
}

void hv_pd_use(struct ibv_pd *ibpd, int change)
{
    struct hv_pd *pd = hv_pd(ibpd), *real = hv_real_pd(ibpd);

    g_atomic_int_add(&real->refs, change);
    if (pd->kind == HV_PD_PARENT_DOMAIN) {
        g_atomic_int_add(&pd->refs, change);
    }
}

HV_EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
    struct hv_pd *pd = calloc(1, sizeof(*pd)), *real;
    int err;

    if (!pd) {
        return NULL;
    }
    real = hv_handle_get(context, HV_HANDLE_PD, pd_handle, &err);
    if (hv_kernel(err)) {
        free(pd);
        return NULL;
    }
    pthread_mutex_lock(&imports_lock);
    real->imports++;
    pthread_mutex_unlock(&imports_lock);
    pd->ibv.context = context;
    pd->ibv.handle = pd_handle;
    pd->kind = HV_PD_IMPORTED;
    pd->parent = real;
    pd->pdn = real->pdn;
    return &pd->ibv;
}

HV_EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
    g_assert(hv_pd(pd)->kind == HV_PD_IMPORTED);
    free_imported(hv_pd(pd));
}

/* -- thread domains, parent domains -------------------------------------------------------------
 */

static struct ibv_td *alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
    struct hv_td *td;

    if (attr->comp_mask) {
        errno = EINVAL;
        return NULL;
    }
    td = calloc(1, sizeof(*td));
    if (!td) {
        return NULL;
    }
    if (hv_kernel(hv_uar_alloc(hv_context(context), &td->uar))) {
        free(td);
        return NULL;
    }
    td->ibv.context = context;
    return &td->ibv;
}

static int dealloc_td(struct ibv_td *ibtd)
{
    struct hv_td *td = (struct hv_td *)ibtd;

    if (g_atomic_int_get(&td->refs)) {
        return EBUSY;
    }
    hv_uar_free(hv_context(ibtd->context), &td->uar);
    free(td);
    return 0;
}

static struct ibv_pd *alloc_parent_domain(struct ibv_context *context,
                                          struct ibv_parent_domain_init_attr *attr)
{
    struct hv_pd *pd;

    if (!attr->pd || (attr->comp_mask & ~(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
                                          IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT))) {
        errno = EINVAL;
        return NULL;
    }
    pd = calloc(1, sizeof(*pd));
    if (!pd) {
        return NULL;
    }
    pd->kind = HV_PD_PARENT_DOMAIN;
    pd->ibv.context = context;
    pd->ibv.handle = attr->pd->handle;
    pd->pdn = hv_pd(attr->pd)->pdn;
    pd->parent = hv_pd(attr->pd);
    g_atomic_int_inc(&pd->parent->domains);
    if (attr->td) {
        pd->td = (struct hv_td *)attr->td;
        g_atomic_int_inc(&pd->td->refs);
    }
    if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
        pd->alloc = attr->alloc;
        pd->free = attr->free;
    }
    if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT) {
        pd->pd_context = attr->pd_context;
    }
    return &pd->ibv;
}

/* -- allocators ---------------------------------------------------------------------------------
 */

/*
 * Rings on huge pages, as MLX_QP_ALLOC_TYPE, MLX_CQ_ALLOC_TYPE and MLX_SRQ_ALLOC_TYPE ask libmlx5:
 * HUGE or nothing, or PREFER_HUGE. Such a ring takes whole huge pages, so its size is kept here.
 */
#define HUGE_PAGE ((size_t)2 << 20)

static pthread_mutex_t huge_lock = PTHREAD_MUTEX_INITIALIZER;
static GHashTable *huge_sizes;

static const char *wanted_memory(uint64_t type)
{
    return type == MLX5DV_RES_TYPE_QP    ? getenv("MLX_QP_ALLOC_TYPE")
           : type == MLX5DV_RES_TYPE_CQ  ? getenv("MLX_CQ_ALLOC_TYPE")
           : type == MLX5DV_RES_TYPE_SRQ ? getenv("MLX_SRQ_ALLOC_TYPE")
                                         : NULL;
}

static void *huge_alloc(size_t size)
{
    size_t bytes = (size + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
    void *ptr =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

    if (ptr == MAP_FAILED) {
        return NULL;
    }
    pthread_mutex_lock(&huge_lock);
    if (!huge_sizes) {
        huge_sizes = g_hash_table_new(NULL, NULL);
    }
    g_hash_table_insert(huge_sizes, ptr, GSIZE_TO_POINTER(bytes));
    pthread_mutex_unlock(&huge_lock);
    return ptr;
}

static bool huge_free(void *ptr)
{
    size_t bytes = 0;

    pthread_mutex_lock(&huge_lock);
    if (huge_sizes) {
        bytes = GPOINTER_TO_SIZE(g_hash_table_lookup(huge_sizes, ptr));
        g_hash_table_remove(huge_sizes, ptr);
    }
    pthread_mutex_unlock(&huge_lock);
    if (bytes) {
        munmap(ptr, bytes);
    }
    return bytes > 0;
}

void *hv_buf_alloc(struct hv_pd *pd, size_t size, uint64_t type, bool *custom)
{
    const char *wanted;

    *custom = false;
    if (pd && pd->alloc) {
        void *ptr = pd->alloc(&pd->ibv, pd->pd_context, size, PCI_PAGE, type);

        if (!ptr) {
            errno = ENOMEM;
            return NULL;
        }
        if (ptr != IBV_ALLOCATOR_USE_DEFAULT) {
            *custom = true;
            memset(ptr, 0, size);
            return ptr;
        }
    }
    wanted = wanted_memory(type);
    if (wanted && (!strcmp(wanted, "HUGE") || !strcmp(wanted, "PREFER_HUGE"))) {
        void *ptr = huge_alloc(size);

        if (ptr || !strcmp(wanted, "HUGE")) {
            return ptr;
        }
    }
    return hv_ring_alloc(size);
}

void hv_buf_free(struct hv_pd *pd, void *ptr, size_t size, uint64_t type, bool custom)
{
    if (custom) {
        pd->free(&pd->ibv, pd->pd_context, ptr, type);
    } else if (!huge_free(ptr)) {
        hv_ring_free(ptr, size);
    }
}

uint32_t *hv_db_alloc(struct hv_context *ctx, struct hv_pd *pd, bool *custom)
{
    *custom = false;
    if (pd && pd->alloc) {
        void *ptr =
            pd->alloc(&pd->ibv, pd->pd_context, DBREC_SIZE, DBREC_SIZE, MLX5DV_RES_TYPE_DBR);

        if (!ptr) {
            errno = ENOMEM;
            return NULL;
        }
        if (ptr != IBV_ALLOCATOR_USE_DEFAULT) {
            *custom = true;
            memset(ptr, 0, DBREC_SIZE);
            return ptr;
        }
    }
    return hv_dbrec_alloc(ctx);
}

void hv_db_free(struct hv_context *ctx, struct hv_pd *pd, uint32_t *dbrec, bool custom)
{
    if (custom) {
        pd->free(&pd->ibv, pd->pd_context, dbrec, MLX5DV_RES_TYPE_DBR);
    } else {
        hv_dbrec_free(ctx, dbrec);
    }
}

void hv_pd_ops(struct verbs_context *ops)
{
    ops->alloc_td = alloc_td;
    ops->dealloc_td = dealloc_td;
    ops->alloc_parent_domain = alloc_parent_domain;
}
