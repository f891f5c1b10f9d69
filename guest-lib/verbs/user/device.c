/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices and contexts: the list, opening, closing. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "wire/cancel.h"
#include "guest-lib/cuda/doorbell_file.h"
#include "guest-lib/verbs/cm/door.h"
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/exp/exp.h"
#include "guest-lib/verbs/kernel/config.h"
#include "guest-lib/verbs/kernel/facts.h"
#include "guest-lib/verbs/kernel/opened.h"
#include "guest-lib/verbs/kernel/variables.h"
#include "guest-lib/verbs/user/device.h"
#include "guest-lib/verbs/user/user.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* around hca and users of the devices */
static struct hv_device *devices;                        /* HV_MAX_DEVICES */
static unsigned num_devices;
static pid_t devices_of; /* the process that they were listed in */
static struct hv_port_config *ports;

static void init_device(struct hv_device *dev, unsigned index, const struct hv_port_config *config)
{
    dev->index = index;
    dev->dv = &hv_dv_ops;
    dev->cm = &hv_cm_ops;
    dev->config = config;
    dev->removed = dev->watched = false;
    dev->ibv.node_type = IBV_NODE_CA;
    dev->ibv.transport_type = IBV_TRANSPORT_IB;
    snprintf(dev->ibv.name, sizeof(dev->ibv.name), "mlx5_%u", index);
    snprintf(dev->ibv.dev_name, sizeof(dev->ibv.dev_name), "uverbs%u", index);
    snprintf(dev->ibv.dev_path, sizeof(dev->ibv.dev_path), "/sys/class/infiniband_verbs/uverbs%u",
             index);
    snprintf(dev->ibv.ibdev_path, sizeof(dev->ibv.ibdev_path), "/sys/class/infiniband/%s",
             dev->ibv.name);
}

/* After fork() the HCAs belong to the parent: the child must not disturb their wire. The child can
 * open HCAs of its own, so no other thread may be opening or closing one during fork(). */
static void device_before_fork(void)
{
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < num_devices; i++) {
        if (devices[i].hca) {
            hv_hca_before_fork(devices[i].hca);
        }
    }
}

static void device_after_fork_in_parent(void)
{
    for (unsigned i = 0; i < num_devices; i++) {
        if (devices[i].hca) {
            hv_hca_after_fork(devices[i].hca);
        }
    }
    pthread_mutex_unlock(&lock);
}

static void device_after_fork_in_child(void)
{
    for (unsigned i = 0; i < num_devices; i++) {
        if (devices[i].hca) {
            hv_hca_abandon(devices[i].hca);
            devices[i].hca = NULL;
            devices[i].users = 0;
        }
    }
    pthread_mutex_unlock(&lock);
}

/* The handlers of an outer lock (wire/forks.h): the locks of the wire, of held memory and of the
 * facts are taken under it. */
__attribute__((constructor)) static void device_watch_forks(void)
{
    pthread_atfork(device_before_fork, device_after_fork_in_parent, device_after_fork_in_child);
}

/* Takes the lock. Code under it opens and closes files, which cancellation must not interrupt. */
static int lock_devices(void)
{
    int state = cancel_disable();

    pthread_mutex_lock(&lock);
    return state;
}

static void unlock_devices(int state)
{
    pthread_mutex_unlock(&lock);
    cancel_restore(state);
}

/* The last posted work may wait for a poll (hv_doorbell_soon()). If a program ends without closing
 * its device, this work is done here. */
__attribute__((destructor)) static void device_finish(void)
{
    if (pthread_mutex_trylock(&lock)) {
        return;
    }
    for (unsigned i = 0; i < num_devices; i++) {
        if (devices[i].hca) {
            hv_finish(devices[i].hca);
        }
    }
    pthread_mutex_unlock(&lock);
}

/* Lists the devices, under the lock. A child of fork() is a different host, with its own addresses
 * and GUIDs. */
static bool load_devices(void)
{
    GError *err = NULL;
    unsigned num;

    if (devices && devices_of == getpid()) {
        return true;
    }
    hv_variables_warn();
    num = hv_config_load(&ports, &err);
    if (!num) {
        fprintf(stderr, "hcasim: %s\n", err->message);
        g_error_free(err);
        return false;
    }
    devices = devices ? devices : g_new0(struct hv_device, HV_MAX_DEVICES);
    devices_of = getpid();
    num_devices = num;
    for (unsigned i = 0; i < num_devices; i++) {
        init_device(&devices[i], i, &ports[i]);
    }
    return true;
}

HV_EXPORT struct ibv_device **ibv_get_device_list(int *num)
{
    struct ibv_device **list = calloc(HV_MAX_DEVICES + 1, sizeof(*list));
    unsigned found = 0;
    int state = lock_devices();

    hv_fork_init_from_env();
    if (load_devices() && list) {
        for (unsigned i = 0; i < num_devices; i++) {
            if (!devices[i].removed) {
                list[found++] = &devices[i].ibv;
            }
        }
    }
    unlock_devices(state);
    if (num) {
        *num = (int)found;
    }
    return list;
}

/* The device list of programs with experimental verbs: the same. */
HV_EXPORT struct ibv_device **ibv_exp_get_device_list(int *num)
{
    return ibv_get_device_list(num);
}

HV_EXPORT void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

HV_EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

HV_EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
    return hv_config_guid(hv_device(device)->config);
}

HV_EXPORT int ibv_get_device_index(struct ibv_device *device)
{
    return (int)hv_device(device)->index;
}

struct ibv_device *hv_sim_device_new(unsigned index, const struct hv_port_config *config)
{
    struct hv_device *dev = g_new0(struct hv_device, 1);

    init_device(dev, index, config);
    return &dev->ibv;
}

void hv_sim_device_reset(struct ibv_device *device)
{
    hv_hca_reset(hv_device(device)->hca);
}

void hv_device_remove(struct ibv_device *device)
{
    struct hv_device *dev = hv_device(device);
    int state = lock_devices();

    if (dev->hca && !dev->removed) {
        hv_hca_remove(dev->hca);
    }
    if (!dev->config->world) {
        hv_facts_remove(dev->index);
    }
    dev->removed = true;
    unlock_devices(state);
}

void hv_sim_device_free(struct ibv_device *device)
{
    g_assert(!hv_device(device)->users);
    g_free(hv_device(device));
}

/* -- contexts ---------------------------------------------------------------------------------- */

static void device_init_ops(struct hv_context *ctx)
{
    static void (*const fill[])(struct verbs_context *) = {
        hv_query_ops, hv_clock_ops, hv_pd_ops,   hv_mr_ops, hv_mw_ops, hv_dm_ops,
        hv_cq_ops,    hv_srq_ops,   hv_xrcd_ops, hv_qp_ops, hv_wq_ops, hv_flow_ops,
    };

    for (size_t i = 0; i < G_N_ELEMENTS(fill); i++) {
        fill[i](&ctx->ibv);
    }
    hv_exp_init(ctx);
}

/* Under the lock. */
static bool device_is_any_open(void)
{
    for (unsigned i = 0; i < num_devices; i++) {
        if (devices[i].hca) {
            return true;
        }
    }
    return false;
}

/* Begins to wait for the time to remove the device. If no thread can be made for that, the device
 * stays. */
static void device_watch(struct hv_device *dev)
{
    int err = dev->watched ? 0 : hv_removal_watch(&dev->ibv);

    dev->watched = true;
    if (err) {
        fprintf(stderr, "hcasim: %s: will not be removed: %s\n", dev->ibv.name, g_strerror(err));
    }
}

/* Reports to hcasim run --require that this process has opened a device. */
static void device_tell_opened(void)
{
    const char *address = g_getenv(HV_OPENED_VARIABLE);

    if (address && !hv_opened_tell(address)) {
        fprintf(stderr, "hcasim: hcasim run --require cannot be told of the device: %s\n",
                g_strerror(errno));
    }
}

/* The device's HCA, which its first user brings up. Under the lock. NULL with errno. */
static struct hv_hca *device_use_hca(struct hv_device *dev)
{
    GError *err = NULL;

    if (dev->removed) {
        errno = ENOENT; /* the name of its device file is gone */
        return NULL;
    }
    if (!dev->hca) {
        if (!dev->config->world && !device_is_any_open()) {
            hv_config_renew();
        }
        if (dev->config->world || hv_config_load(&ports, &err)) {
            dev->hca = hv_hca_open(dev, dev->config, &err);
        }
        if (!dev->hca) {
            fprintf(stderr, "hcasim: %s: %s\n", dev->ibv.name, err->message);
            g_error_free(err);
            errno = EIO;
            return NULL;
        }
        device_watch(dev);
        device_tell_opened();
    }
    dev->users++;
    return dev->hca;
}

static void device_release_hca(struct hv_device *dev, struct hv_hca *hca)
{
    if (dev->hca == hca && --dev->users == 0) {
        dev->hca = NULL;
        hv_hca_close(hca);
    }
}

static void device_free_context(struct hv_context *ctx)
{
    hv_exp_env_free(&ctx->exp);
    hv_uidx_fini(ctx);
    free(ctx);
}

/* Makes ctx a context of a file. uid: the file's user; 0: a new user. The HCA was taken into use
 * for it. NULL with errno: the context was freed, it has left the file, and the HCA was
 * released. */
static struct ibv_context *device_open_context(struct hv_context *ctx, struct hv_device *dev,
                                               struct hv_hca *hca, struct hv_file *file,
                                               uint16_t uid)
{
    char file_name[sizeof(DOORBELL_FILE) + sizeof(dev->ibv.dev_name)];
    int err, state;

    ctx->hca = hca;
    ctx->file = file;
    ctx->uid = uid;
    ctx->free = device_free_context;
    ctx->dv = dev->dv;
    ctx->ibv.sz = sizeof(ctx->ibv);
    ctx->ibv.context.device = &dev->ibv;
    ctx->ibv.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    ctx->ibv.context.num_comp_vectors = HV_COMP_VECTORS;
    /* represents the kernel's file: duplicates of it are the same context, and its doorbell pages
     * can be mapped from it (kernel/watch.c) */
    snprintf(file_name, sizeof(file_name), DOORBELL_FILE "%s", dev->ibv.dev_name);
    ctx->ibv.context.cmd_fd = memfd_create(file_name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    err = ctx->ibv.context.cmd_fd < 0 ? errno : 0;
    pthread_mutex_init(&ctx->ibv.context.mutex, NULL);
    pthread_mutex_init(&ctx->uidx.lock, NULL);
    pthread_mutex_init(&ctx->reserved_lock, NULL);
    pthread_mutex_init(&ctx->sig_lock, NULL);
    pthread_mutex_init(&ctx->task_lock, NULL);
    pthread_mutex_init(&ctx->crypto_lock, NULL);
    device_init_ops(ctx);
    err = err ? err : hv_async_open(ctx);
    if (!err) {
        err = uverbs_get_context(ctx);
        if (!err) {
            return &ctx->ibv.context;
        }
        hv_async_close(ctx);
    }
    if (ctx->ibv.context.cmd_fd >= 0) {
        close(ctx->ibv.context.cmd_fd);
    }
    uverbs_put_context(ctx);
    state = lock_devices();
    device_release_hca(dev, hca);
    unlock_devices(state);
    errno = err;
    return NULL;
}

HV_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct hv_context *ctx = calloc(1, sizeof(*ctx));
    struct hv_device *dev = hv_device(device);
    struct hv_hca *hca;
    int err, state;

    if (!ctx) {
        return NULL;
    }
    state = lock_devices();
    hca = device_use_hca(dev);
    err = errno;
    unlock_devices(state);
    if (!hca) {
        free(ctx);
        errno = err;
        return NULL;
    }
    return device_open_context(ctx, dev, hca, hv_file_new(), 0);
}

HV_EXPORT int ibv_close_device(struct ibv_context *context)
{
    struct hv_context *ctx = hv_context(context);
    struct hv_device *device = hv_device(context->device);
    struct hv_hca *hca = ctx->hca;
    int state;

    hv_reserved_qpns_free(ctx);
    hv_dv_crypto_logout(context);
    uverbs_forget_context(ctx);
    hv_async_close(ctx);
    close(context->cmd_fd);
    pthread_mutex_destroy(&context->mutex);
    uverbs_put_context(ctx);
    state = lock_devices();
    device_release_hca(device, hca);
    unlock_devices(state);
    return 0;
}

/* Imports only contexts of this process: another process has another HCA. */
HV_EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
    struct hv_context *ctx = calloc(1, sizeof(*ctx));
    struct hv_device *dev = NULL;
    struct hv_file *file;
    struct stat wanted;
    uint16_t uid;
    int err = fstat(cmd_fd, &wanted) ? EINVAL : 0, state;

    if (err || !ctx) {
        free(ctx);
        errno = err ? err : ENOMEM;
        return NULL;
    }
    err = EINVAL;
    state = lock_devices();
    for (unsigned i = 0; err == EINVAL && i < num_devices; i++) {
        dev = &devices[i];
        err = dev->hca ? uverbs_share_file(dev->hca, &wanted, &file, &uid) : EINVAL;
    }
    if (!err) {
        dev->users++;
    }
    unlock_devices(state);
    if (err) {
        free(ctx);
        errno = err;
        return NULL;
    }
    return device_open_context(ctx, dev, dev->hca, file, uid);
}
