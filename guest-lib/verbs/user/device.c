/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices and contexts: the list, opening, closing. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "wire/cancel.h"
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/kernel/hca.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* around the devices' hca and users */
static struct hv_device *devices;
static unsigned num_devices;
static struct hv_port_config *ports;
static pthread_once_t watching_forks = PTHREAD_ONCE_INIT;

/* What is done with it opens and closes files, which no cancellation may interrupt. */
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

static void init_device(struct hv_device *dev, unsigned index)
{
    dev->index = index;
    dev->dv = &hv_dv_ops;
    dev->ibv.node_type = IBV_NODE_CA;
    dev->ibv.transport_type = IBV_TRANSPORT_IB;
    snprintf(dev->ibv.name, sizeof(dev->ibv.name), "mlx5_%u", index);
    snprintf(dev->ibv.dev_name, sizeof(dev->ibv.dev_name), "uverbs%u", index);
    snprintf(dev->ibv.dev_path, sizeof(dev->ibv.dev_path), "/sys/class/infiniband_verbs/uverbs%u",
             index);
    snprintf(dev->ibv.ibdev_path, sizeof(dev->ibv.ibdev_path), "/sys/class/infiniband/mlx5_%u",
             index);
}

/* After fork() the HCAs are the parent's: the child must not disturb their wire. It can open HCAs
 * of its own, so no other thread may be at it meanwhile. */
static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

static void after_fork_in_child(void)
{
    for (unsigned i = 0; i < num_devices; i++) {
        if (devices[i].hca) {
            local_hca_abandon(devices[i].hca->local);
            devices[i].hca = NULL;
            devices[i].users = 0;
        }
    }
    pthread_mutex_unlock(&lock);
}

/* Once an HCA is open: handlers run in the order in which they were made known, the last one first,
 * and its wire has a lock of its own that is taken under this one. */
static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* Under the lock. */
static bool load_devices(void)
{
    GError *err = NULL;

    if (devices) {
        return true;
    }
    num_devices = hv_config_load(&ports, &err);
    if (!num_devices) {
        fprintf(stderr, "hcasim: %s\n", err->message);
        g_error_free(err);
        return false;
    }
    devices = g_new0(struct hv_device, num_devices);
    for (unsigned i = 0; i < num_devices; i++) {
        init_device(&devices[i], i);
    }
    return true;
}

HV_EXPORT struct ibv_device **ibv_get_device_list(int *num)
{
    struct ibv_device **list = NULL;
    bool ok;
    int state = lock_devices();

    ok = load_devices();
    unlock_devices(state);
    if (num) {
        *num = ok ? (int)num_devices : 0;
    }
    list = calloc((ok ? num_devices : 0) + 1u, sizeof(*list));
    for (unsigned i = 0; ok && list && i < num_devices; i++) {
        list[i] = &devices[i].ibv;
    }
    if (!list && num) {
        *num = 0;
    }
    return list;
}

HV_EXPORT void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

HV_EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

/* Known before the device is open; the same as the device's own (fw/cmd_vport.c). */
HV_EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
    const uint8_t *mac = ports[hv_device(device)->index].mac;
    const uint8_t bytes[8] = {mac[0], mac[1], mac[2], 3, 0, mac[3], mac[4], mac[5]};
    __be64 guid;

    memcpy(&guid, bytes, sizeof(guid));
    return guid;
}

HV_EXPORT int ibv_get_device_index(struct ibv_device *device)
{
    return (int)hv_device(device)->index;
}

/* -- contexts ---------------------------------------------------------------------------------- */

static int alloc_user(struct hv_context *ctx)
{
    uint8_t uctx_in[PRM_SIZE(create_uctx_in)] = {0}, uctx_out[PRM_SIZE(create_uctx_out)];
    uint8_t td_in[PRM_SIZE(alloc_transport_domain_in)] = {0};
    uint8_t td_out[PRM_SIZE(alloc_transport_domain_out)];
    const uint32_t raw_tx = PRM_UCTX_CAP_RAW_TX;
    int err;

    if (!ctx->uid) {
        PRM_SET(create_uctx_in, uctx_in, opcode, PRM_CMD_OP_CREATE_UCTX);
        PRM_SET(uctx, PRM_PTR(create_uctx_in, uctx_in, uctx), cap, raw_tx);
        err = hv_cmd(ctx->hca, uctx_in, sizeof(uctx_in), uctx_out, sizeof(uctx_out));
        if (err) {
            return err;
        }
        ctx->uid = (uint16_t)PRM_GET(create_uctx_out, uctx_out, uid);
    }
    PRM_SET(alloc_transport_domain_in, td_in, opcode, PRM_CMD_OP_ALLOC_TRANSPORT_DOMAIN);
    PRM_SET(alloc_transport_domain_in, td_in, uid, ctx->uid);
    err = hv_cmd(ctx->hca, td_in, sizeof(td_in), td_out, sizeof(td_out));
    if (err) {
        return err;
    }
    ctx->tdn = PRM_GET(alloc_transport_domain_out, td_out, transport_domain);
    return hv_uar_alloc(ctx, &ctx->uar);
}

static void free_transport_domain(struct hv_context *ctx)
{
    uint8_t in[PRM_SIZE(dealloc_transport_domain_in)] = {0};

    PRM_SET(dealloc_transport_domain_in, in, opcode, PRM_CMD_OP_DEALLOC_TRANSPORT_DOMAIN);
    PRM_SET(dealloc_transport_domain_in, in, uid, ctx->uid);
    PRM_SET(dealloc_transport_domain_in, in, transport_domain, ctx->tdn);
    hv_cmd_simple(ctx->hca, in, sizeof(in));
}

/* The user's objects go with it, whatever the program forgot. */
static void free_user(struct hv_context *ctx)
{
    uint8_t in[PRM_SIZE(destroy_uctx_in)] = {0};

    if (ctx->uid) {
        PRM_SET(destroy_uctx_in, in, opcode, PRM_CMD_OP_DESTROY_UCTX);
        PRM_SET(destroy_uctx_in, in, uid, ctx->uid);
        hv_cmd_simple(ctx->hca, in, sizeof(in));
    }
}

static void init_ops(struct hv_context *ctx)
{
    static void (*const fill[])(struct verbs_context *) = {
        hv_query_ops, hv_pd_ops,   hv_mr_ops,      hv_mw_ops, hv_cq_ops,
        hv_srq_ops,   hv_xrcd_ops, hv_xrc_tgt_ops, hv_qp_ops, hv_eth_ops,
    };

    for (size_t i = 0; i < G_N_ELEMENTS(fill); i++) {
        fill[i](&ctx->ibv);
    }
}

/* Under the lock: the device's HCA, brought up by its first user. */
static struct hv_hca *use_hca(struct hv_device *dev)
{
    GError *err = NULL;

    if (!dev->hca) {
        if (hv_config_load(&ports, &err)) {
            dev->hca = hv_hca_open(dev, &ports[dev->index], &err);
        }
        if (!dev->hca) {
            fprintf(stderr, "hcasim: %s: %s\n", dev->ibv.name, err->message);
            g_error_free(err);
            return NULL;
        }
        pthread_once(&watching_forks, watch_forks);
    }
    dev->users++;
    return dev->hca;
}

static void release_hca(struct hv_device *dev, struct hv_hca *hca)
{
    if (dev->hca == hca && --dev->users == 0) {
        dev->hca = NULL;
        hv_hca_close(hca);
    }
}

/* A new context; of, if not NULL, is the one whose user it shares. */
static struct ibv_context *open_context(struct hv_device *dev, const struct hv_context *of)
{
    struct hv_context *ctx = calloc(1, sizeof(*ctx));
    int err, state;

    if (!ctx) {
        return NULL;
    }
    state = lock_devices();
    ctx->hca = use_hca(dev);
    unlock_devices(state);
    if (!ctx->hca) {
        free(ctx);
        errno = EIO;
        return NULL;
    }
    ctx->file = of ? hv_file_share(of->file) : hv_file_new();
    ctx->dv = dev->dv;
    ctx->ibv.sz = sizeof(ctx->ibv);
    ctx->ibv.context.device = &dev->ibv;
    ctx->ibv.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    ctx->ibv.context.num_comp_vectors = 1;
    /* stands for the kernel's file: duplicates of it are the same context */
    ctx->ibv.context.cmd_fd = memfd_create(dev->ibv.dev_name, MFD_CLOEXEC);
    pthread_mutex_init(&ctx->ibv.context.mutex, NULL);
    pthread_mutex_init(&ctx->uidx.lock, NULL);
    init_ops(ctx);
    err = hv_async_open(ctx);
    if (!err) {
        if (of) {
            ctx->uid = of->uid;
        }
        err = alloc_user(ctx);
        if (!err) {
            pthread_mutex_lock(&ctx->hca->reg_lock);
            g_ptr_array_add(ctx->hca->contexts, ctx);
            pthread_mutex_unlock(&ctx->hca->reg_lock);
            return &ctx->ibv.context;
        }
        if (!of) {
            free_user(ctx);
        }
        hv_async_close(ctx);
    }
    hv_file_close(ctx->file);
    state = lock_devices();
    release_hca(dev, ctx->hca);
    unlock_devices(state);
    close(ctx->ibv.context.cmd_fd);
    free(ctx);
    errno = err;
    return NULL;
}

HV_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    return open_context(hv_device(device), NULL);
}

HV_EXPORT int ibv_close_device(struct ibv_context *context)
{
    struct hv_context *ctx = hv_context(context);
    struct hv_hca *hca = ctx->hca;
    int state;

    pthread_mutex_lock(&hca->reg_lock);
    g_ptr_array_remove(hca->contexts, ctx);
    pthread_mutex_unlock(&hca->reg_lock);
    hv_uar_free(ctx, &ctx->uar);
    free_transport_domain(ctx);
    if (hv_file_close(ctx->file)) {
        free_user(ctx);
    }
    state = lock_devices();
    release_hca(hv_device(context->device), hca);
    unlock_devices(state);
    hv_async_close(ctx);
    hv_uidx_fini(ctx);
    close(context->cmd_fd);
    pthread_mutex_destroy(&context->mutex);
    free(ctx);
    return 0;
}

/* Among an HCA's, the context behind a descriptor. */
static struct hv_context *find_in(struct hv_hca *hca, const struct stat *wanted)
{
    struct hv_context *found = NULL;
    struct stat st;

    pthread_mutex_lock(&hca->reg_lock);
    for (guint i = 0; !found && i < hca->contexts->len; i++) {
        struct hv_context *ctx = hca->contexts->pdata[i];

        if (!fstat(ctx->ibv.context.cmd_fd, &st) && st.st_dev == wanted->st_dev &&
            st.st_ino == wanted->st_ino) {
            found = ctx;
        }
    }
    pthread_mutex_unlock(&hca->reg_lock);
    return found;
}

/* The context behind a descriptor, if it is one of this process's. Under the lock. */
static struct hv_context *find_context(int cmd_fd)
{
    struct hv_context *found = NULL;
    struct stat wanted;

    if (fstat(cmd_fd, &wanted)) {
        return NULL;
    }
    for (unsigned i = 0; !found && i < num_devices; i++) {
        found = devices[i].hca ? find_in(devices[i].hca, &wanted) : NULL;
    }
    return found;
}

/* Contexts of one process only: another one has another HCA. */
HV_EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
    struct hv_context *found;
    int state = lock_devices();

    found = find_context(cmd_fd);
    unlock_devices(state);
    if (!found) {
        errno = EINVAL;
        return NULL;
    }
    return open_context(hv_device(found->ibv.context.device), found);
}
