/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RLIMIT_MEMLOCK, which a kernel applies to a process when it pins memory for a device
 * (ib_umem_get()): registered memory, rings, and pages of doorbell records. Here nothing is pinned,
 * so the limit applies only if the configuration says so.
 *
 * A page counts as often as it is pinned, for all devices of the process together (mm->pinned_vm).
 * A process with CAP_IPC_LOCK has no limit.
 */
#include "guest-lib/verbs/kernel/memlock.h"
#include <linux/capability.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "guest-lib/verbs/kernel/config.h"
#include "guest-lib/verbs/kernel/hca.h"

#define FIRST_NAMESPACE "user:[4026531837]" /* PROC_USER_INIT_INO */

static uint64_t pinned; /* pages */

/* A child of fork() has pinned nothing yet (mm_init()). */
static void memlock_after_fork_in_child(void)
{
    __atomic_store_n(&pinned, 0, __ATOMIC_RELAXED);
}

__attribute__((constructor)) static void memlock_watch_forks(void)
{
    pthread_atfork(NULL, NULL, memlock_after_fork_in_child);
}

/* As capable(CAP_IPC_LOCK): a capability in the first user namespace, which root in a container
 * lacks. */
static bool memlock_has_no_limit(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
    char namespace[sizeof(FIRST_NAMESPACE)] = "";

    if (syscall(SYS_capget, &header, data) ||
        !(data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK))) {
        return false;
    }
    return readlink("/proc/self/ns/user", namespace, sizeof(namespace) - 1) < 0 ||
           !strcmp(namespace, FIRST_NAMESPACE);
}

int hv_pin(struct hv_hca *hca, const void *addr, size_t len, uint64_t *pages)
{
    uintptr_t start = (uintptr_t)addr;
    uint64_t num = (start % PCI_PAGE + len + PCI_PAGE - 1) / PCI_PAGE;
    struct rlimit limit;

    *pages = 0;
    if (!hca->device->config->memlock || getrlimit(RLIMIT_MEMLOCK, &limit)) {
        return 0;
    }
    if (!limit.rlim_cur && !memlock_has_no_limit()) {
        return EPERM; /* as can_do_mlock() */
    }
    if (__atomic_add_fetch(&pinned, num, __ATOMIC_RELAXED) > limit.rlim_cur / PCI_PAGE &&
        !memlock_has_no_limit()) {
        __atomic_sub_fetch(&pinned, num, __ATOMIC_RELAXED);
        return ENOMEM;
    }
    *pages = num;
    return 0;
}

void hv_unpin(uint64_t *pages)
{
    __atomic_sub_fetch(&pinned, *pages, __ATOMIC_RELAXED);
    *pages = 0;
}

/* -- rings with doorbell records ----------------------------------------------------------------
 */

/* A page with doorbell records of a context is pinned once for all of them
 * (mlx5_ib_db_map_user()). */
struct record_page {
    uint64_t pages;
    unsigned records;
};

static int memlock_pin_record(struct hv_context *ctx, const uint32_t *dbrec)
{
    gpointer page = (gpointer)((uintptr_t)dbrec & ~(uintptr_t)(PCI_PAGE - 1));
    struct record_page *found;
    uint64_t pages;
    int err = 0;

    pthread_mutex_lock(&ctx->hca->reg_lock);
    ctx->record_pages =
        ctx->record_pages ? ctx->record_pages : g_hash_table_new_full(NULL, NULL, NULL, g_free);
    found = g_hash_table_lookup(ctx->record_pages, page);
    if (!found) {
        err = hv_pin(ctx->hca, page, PCI_PAGE, &pages);
        if (!err) {
            found = g_new0(struct record_page, 1);
            found->pages = pages;
            g_hash_table_insert(ctx->record_pages, page, found);
        }
    }
    if (found) {
        found->records++;
    }
    pthread_mutex_unlock(&ctx->hca->reg_lock);
    return err;
}

static void memlock_unpin_record(struct hv_context *ctx, const uint32_t *dbrec)
{
    gpointer page = (gpointer)((uintptr_t)dbrec & ~(uintptr_t)(PCI_PAGE - 1));
    struct record_page *found;

    pthread_mutex_lock(&ctx->hca->reg_lock);
    found = g_hash_table_lookup(ctx->record_pages, page);
    if (found && --found->records == 0) {
        hv_unpin(&found->pages);
        g_hash_table_remove(ctx->record_pages, page);
    }
    pthread_mutex_unlock(&ctx->hca->reg_lock);
}

int hv_pin_queue(struct ibv_context *context, const void *ring, size_t size, const uint32_t *dbrec,
                 uint64_t *pages)
{
    struct hv_context *ctx = hv_context(context);
    int err;

    *pages = 0;
    if (!ctx->hca->device->config->memlock) {
        return 0;
    }
    err = hv_pin(ctx->hca, ring, size, pages);
    if (!err) {
        err = memlock_pin_record(ctx, dbrec);
        if (err) {
            hv_unpin(pages);
        }
    }
    return err;
}

void hv_unpin_queue(struct ibv_context *context, const uint32_t *dbrec, uint64_t *pages)
{
    if (*pages) {
        memlock_unpin_record(hv_context(context), dbrec);
        hv_unpin(pages);
    }
}
