/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements shadow.h. The shadows of a process are a list: few queues have any. */
#include "guest-lib/verbs/kernel/shadow.h"
#include "guest-lib/host/local.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "wire/forks.h"

struct shadow {
    uint8_t *begin, *real;
    size_t size;
    struct gpu_claim *claim; /* NULL: real is memory of the host */
};

unsigned shadow_count;
static pthread_mutex_t shadow_lock = PTHREAD_MUTEX_INITIALIZER; /* around the list */
static GPtrArray *shadows;                                      /* of struct shadow; or NULL */

static void shadow_before_fork(void)
{
    pthread_mutex_lock(&shadow_lock);
}

static void shadow_after_fork(void)
{
    pthread_mutex_unlock(&shadow_lock);
}

FORKS_INNER_LOCK static void shadow_begin(void)
{
    pthread_atfork(shadow_before_fork, shadow_after_fork, shadow_after_fork);
}

static void *shadow_new(void *real, size_t size, struct gpu_claim *claim)
{
    void *begin = aligned_alloc(PCI_PAGE, hv_whole_pages(size));
    struct shadow *s;

    if (!begin) {
        return NULL;
    }
    s = g_new0(struct shadow, 1);
    s->begin = memset(begin, 0, size);
    s->real = real;
    s->size = size;
    s->claim = claim;
    pthread_mutex_lock(&shadow_lock);
    shadows = shadows ? shadows : g_ptr_array_new();
    g_ptr_array_add(shadows, s);
    __atomic_store_n(&shadow_count, shadows->len, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&shadow_lock);
    return begin;
}

int shadow_take(struct hv_hca *hca, void **ptr, size_t size)
{
    struct gpu_claim *claim;
    int err = gpu_claim_range(*ptr, size, &claim);
    void *shadow;

    if (err || !claim) {
        return err;
    }
    shadow = shadow_new(*ptr, size, claim);
    if (!shadow) {
        gpu_release(claim);
        return ENOMEM;
    }
    local_reach_gpu(hca->local);
    *ptr = shadow;
    return 0;
}

void *shadow_cover(void *real, size_t size)
{
    return shadow_new(real, size, NULL);
}

/* The shadow that an address lies in, or NULL. Under the lock. */
static struct shadow *shadow_at(const uint8_t *ptr)
{
    for (guint i = 0; shadows && i < shadows->len; i++) {
        struct shadow *s = shadows->pdata[i];

        if (ptr >= s->begin && ptr < s->begin + s->size) {
            return s;
        }
    }
    return NULL;
}

void *shadow_free(void *ptr)
{
    struct shadow *s;
    void *real;

    pthread_mutex_lock(&shadow_lock);
    s = shadow_at(ptr);
    g_ptr_array_remove_fast(shadows, s);
    __atomic_store_n(&shadow_count, shadows->len, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&shadow_lock);
    real = s->real;
    gpu_release(s->claim);
    free(s->begin);
    g_free(s);
    return real;
}

void *shadow_find_real(const void *ptr)
{
    const struct shadow *s;
    void *real = (void *)(uintptr_t)ptr;

    pthread_mutex_lock(&shadow_lock);
    s = shadow_at(ptr);
    if (s) {
        real = s->real + ((const uint8_t *)ptr - s->begin);
    }
    pthread_mutex_unlock(&shadow_lock);
    return real;
}

bool shadow_copy(const void *ptr, size_t size)
{
    return reach_write(shadow_find_real(ptr), ptr, size);
}
