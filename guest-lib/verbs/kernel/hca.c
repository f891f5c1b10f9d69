/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The HCA of a device: firmware and model in this process, the driver over its BAR, and the
 * commands, doorbells and memory that the verbs use.
 *
 * Commands run one at a time. The thread that holds the command lock also polls the EQs before it
 * releases the lock, so a thread that polls never waits behind a command.
 */
#define _GNU_SOURCE
#include "guest-lib/verbs/kernel/flow_chain.h"
#include "guest-lib/verbs/kernel/hca.h"
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "guest-lib/host/held.h"
#include "guest-lib/host/mmio.h"
#include "guest-lib/verbs/kernel/events.h"
#include "guest-lib/verbs/kernel/kernel.h"
#include "guest-lib/verbs/kernel/odp.h"
#include "guest-lib/verbs/kernel/watch.h"
#include "wire/cancel.h"

/* -- events ------------------------------------------------------------------------------------ */

#define ASYNC_VECTOR 1u /* a bit */

/* Takes the events from the EQs of these vectors, and those that were found during a command, and
 * hands them out. If another thread does so already, it also takes these. */
static void hca_service_eqs(struct hv_hca *hca, uint32_t vectors)
{
    g_atomic_int_or(&hca->eqs_pending, vectors);
    while (g_atomic_int_get(&hca->eqs_pending) && pthread_mutex_trylock(&hca->cmd_lock) == 0) {
        GArray *events = NULL;

        drv_poll_eqs(hca->drv, g_atomic_int_and(&hca->eqs_pending, 0));
        if (hca->drv->events->len) {
            events = hca->drv->events;
            hca->drv->events = g_array_new(FALSE, FALSE, sizeof(struct drv_event));
        }
        pthread_mutex_unlock(&hca->cmd_lock);
        for (guint i = 0; events && i < events->len; i++) {
            hv_events_dispatch(hca, &g_array_index(events, struct drv_event, i));
        }
        if (events) {
            g_array_free(events, TRUE);
        }
    }
}

static void hca_on_irq(void *opaque, uint32_t vectors)
{
    hca_service_eqs(opaque, vectors);
}

static void hca_ring_locked(struct hv_hca *hca, uint64_t bar_offset, uint64_t value)
{
    local_mmio_locked(hca->local, bar_offset, value);
}

static bool hca_scan_doorbells(void *opaque, uint64_t now_ns)
{
    return hv_watch_scan(opaque, now_ns, hca_ring_locked);
}

/* -- commands and doorbells -------------------------------------------------------------------- */

bool hv_cmd_begin(struct hv_hca *hca, int *state)
{
    if (!local_is_ours(hca->local)) {
        return false;
    }
    *state = cancel_disable();
    pthread_mutex_lock(&hca->cmd_lock);
    return true;
}

void hv_cmd_end(struct hv_hca *hca, int state)
{
    pthread_mutex_unlock(&hca->cmd_lock);
    hca_service_eqs(hca, ASYNC_VECTOR);
    local_tell_irq(hca->local);
    cancel_restore(state);
}

int hv_cmd(struct hv_hca *hca, const void *in, size_t in_len, void *out, size_t out_len)
{
    int status, state;

    memset(out, 0, out_len);
    if (!hv_cmd_begin(hca, &state)) {
        return EIO;
    }
    status = drv_cmd(hca->drv, in, in_len, out, out_len);
    hv_cmd_end(hca, state);
    return hv_status_errno(status);
}

int hv_drain_dct(struct hv_hca *hca, uint16_t uid, uint32_t dctn)
{
    struct prm_drain_dct_in in[1] = {0};
    struct drv_event event;
    int status, state;

    PRM_SET(drain_dct_in, in, opcode, PRM_CMD_OP_DRAIN_DCT);
    PRM_SET(drain_dct_in, in, uid, uid);
    PRM_SET(drain_dct_in, in, dctn, dctn);
    if (!hv_cmd_begin(hca, &state)) {
        return EIO;
    }
    status = drv_cmd_simple(hca->drv, in, sizeof(in));
    if (!status && !hca->drv->lost &&
        !drv_wait_event(hca->drv, PRM_EVENT_TYPE_DCT_DRAINED, dctn, &event, DRV_CMD_TIMEOUT)) {
        status = DRV_TIMEOUT;
    }
    hv_cmd_end(hca, state);
    return hv_status_errno(status);
}

int hv_umr(struct hv_hca *hca, uint32_t key, uint64_t mask, const struct prm_mkc *mkc)
{
    int status, state;

    if (!hv_cmd_begin(hca, &state)) {
        return EIO;
    }
    status = drv_umr(hca->drv, key, mask, mkc);
    hv_cmd_end(hca, state);
    return hv_status_errno(status);
}

int hv_cmd_simple(struct hv_hca *hca, const void *in, size_t in_len)
{
    uint8_t out[16];

    return hv_cmd(hca, in, in_len, out, sizeof(out));
}

int hv_doorbell(struct hv_hca *hca, uint64_t bar_offset, uint64_t value)
{
    return local_doorbell(hca->local, bar_offset, value) ? 0 : EIO;
}

int hv_doorbell_soon(struct hv_hca *hca, uint64_t bar_offset, uint64_t value)
{
    return local_doorbell_soon(hca->local, bar_offset, value) ? 0 : EIO;
}

void hv_finish(struct hv_hca *hca)
{
    if (hca->control) {
        host_control_unlink(hca->control);
    }
    local_finish(hca->local);
}

bool hv_is_ours(struct hv_hca *hca)
{
    return local_is_ours(hca->local);
}

bool hv_progress(struct hv_hca *hca)
{
    return local_run(hca->local);
}

void hv_progress_now_and_then(struct hv_hca *hca)
{
    local_run_now_and_then(hca->local);
}

void hv_rest(struct hv_hca *hca)
{
    local_rest(hca->local);
}

uint32_t hv_comp_eqn(const struct hv_hca *hca, uint32_t vector)
{
    return hca->drv->comp_eq[vector].eqn;
}

struct drv *hv_drv(struct hv_hca *hca)
{
    return hca->drv;
}

uint32_t hv_iseg_read(struct hv_hca *hca, size_t offset)
{
    const struct pci_dev *dev = &hca->drv->dev;

    return hv_is_removed(hca) ? 0 : (uint32_t)dev->ops->mmio_read(dev->pci, offset, 4);
}

/* -- memory ------------------------------------------------------------------------------------ */

void *hv_ring_alloc(size_t size)
{
    return held_alloc(MAX(size, PCI_PAGE));
}

void hv_ring_free(void *ptr, size_t size)
{
    held_free(ptr, MAX(size, PCI_PAGE));
}

#define CACHE_LINE 64u

uint32_t *hv_dbrec_alloc(struct hv_context *ctx)
{
    return held_alloc(CACHE_LINE);
}

void hv_dbrec_free(struct hv_context *ctx, uint32_t *dbrec)
{
    held_free(dbrec, CACHE_LINE);
}

void *hv_map_device_memory(struct hv_hca *hca, uint64_t offset, size_t size)
{
    return local_map_device_memory(hca->local, offset, size);
}

void *hv_map_registers(struct hv_hca *hca, uint64_t offset, size_t size)
{
    return mmio_map(hca->drv->dev, offset, size);
}

void hv_forget_registers(struct hv_hca *hca, uint64_t offset, size_t size)
{
    mmio_forget(hca->drv->dev, offset, size);
}

/* -- bringing up and closing ------------------------------------------------------------------- */

G_STATIC_ASSERT(HV_COMP_VECTORS <= DRV_COMP_EQS);

/* Sets the card's clock as mlx5_core does (mlx5_init_timer_clock()). In a simulation it keeps the
 * time of the virtual clock. */
static bool hca_set_clock(struct hv_hca *hca, const struct hv_port_config *config, GError **err)
{
    if (!hv_has_real_time(hca) || config->world) {
        return true;
    }
    if (drv_set_real_time(hca->drv, (uint64_t)g_get_real_time() * 1000)) {
        g_set_error(err, G_FILE_ERROR, G_FILE_ERROR_IO, "the real-time clock cannot be set");
        return false;
    }
    return true;
}

static bool hca_configure_port(struct hv_hca *hca, const struct hv_port_config *config,
                               GError **err)
{
    for (unsigned i = 0; i < HV_GIDS; i++) {
        const uint8_t *gid = hv_config_gid(config, i)->raw;

        if (hv_config_gid_is_v1(i) ? drv_set_gid_v1(hca->drv, i, gid)
                                   : drv_set_gid(hca->drv, i, gid)) {
            g_set_error(err, G_FILE_ERROR, G_FILE_ERROR_IO, "GID %u is refused", i);
            return false;
        }
    }
    if (drv_set_port_mtu(hca->drv, config->mtu + HV_FRAME_OVERHEAD)) {
        g_set_error(err, G_FILE_ERROR, G_FILE_ERROR_IO, "an MTU of %u is refused", config->mtu);
        return false;
    }
    if (drv_create_comp_eqs(hca->drv, HV_COMP_VECTORS)) {
        g_set_error(err, G_FILE_ERROR, G_FILE_ERROR_IO, "no EQs for %d completion vectors",
                    HV_COMP_VECTORS);
        return false;
    }
    return true;
}

/* HCAs with objects left behind, through which threads may still call. These calls do nothing
 * (hv_progress(), hv_rest(), doorbells). */
static struct hv_hca *hcas_kept;
/* taken inside the devices' locks */
static pthread_mutex_t hcas_kept_lock = PTHREAD_MUTEX_INITIALIZER;

static void hca_keep(struct hv_hca *hca)
{
    pthread_mutex_lock(&hcas_kept_lock);
    hca->next_kept = hcas_kept;
    hcas_kept = hca;
    pthread_mutex_unlock(&hcas_kept_lock);
}

static void hca_free_parts(struct hv_hca *hca)
{
    bool keep = hca->left_behind;

    if (hca->local) {
        local_hca_end(hca->local);
    }
    if (hca->local && !keep) {
        local_hca_free(hca->local);
    }
    hv_watch_free(hca);
    hv_odp_free(hca);
    g_hash_table_destroy(hca->numbers);
    g_ptr_array_free(hca->contexts, TRUE);
    g_ptr_array_free(hca->event_files, TRUE);
    g_ptr_array_free(hca->xrcds, TRUE);
    g_ptr_array_free(hca->subscriptions, TRUE);
    if (keep) {
        hca_keep(hca);
        return;
    }
    pthread_mutex_destroy(&hca->cmd_lock);
    pthread_mutex_destroy(&hca->reg_lock);
    pthread_mutex_destroy(&hca->xrcd_lock);
    pthread_mutex_destroy(&hca->flow_lock);
    pthread_mutex_destroy(&hca->rate_lock);
    pthread_mutex_destroy(&hca->devx_lock);
    g_free(hca->rates);
    hv_flow_chain_free(hca);
    hv_said_fini(&hca->said);
    g_free(hca);
}

/* The process, in the comments of a capture. */
static char *hca_capture_process(const struct hv_port_config *config)
{
    return config->world ? NULL
                         : g_strdup_printf("%s[%d]", program_invocation_short_name, (int)getpid());
}

bool hv_traces;

/* Which interface of a capture this is: the address, then the program. In a simulation the same
 * seed makes the same file, so there is no process number. */
static char *hca_capture_name(const struct hv_port_config *config)
{
    char address[INET_ADDRSTRLEN];
    struct in_addr ip = {g_htonl(config->ipv4)};

    inet_ntop(AF_INET, &ip, address, sizeof(address));
    return config->world ? g_strdup(address)
                         : g_strdup_printf("%s %s[%d]", address, program_invocation_short_name,
                                           (int)getpid());
}

/* Opens the control socket, if the user wants one. */
static bool hca_open_control(struct hv_hca *hca, const struct hv_port_config *config, GError **err)
{
    char address[INET_ADDRSTRLEN];
    struct in_addr ip = {g_htonl(config->ipv4)};
    struct host_control_config control = {
        .folder = config->control,
        .address = address,
        .device = hca->device->ibv.name,
        .wire = config->wire,
    };

    inet_ntop(AF_INET, &ip, address, sizeof(address));
    hca->control = config->control ? host_control_start(hca->local, &control, err) : NULL;
    return hca->control || !config->control;
}

struct hv_hca *hv_hca_open(struct hv_device *device, const struct hv_port_config *config,
                           GError **err)
{
    struct hv_hca *hca = g_new0(struct hv_hca, 1);
    g_autofree char *capture_name = hca_capture_name(config);
    g_autofree char *capture_process = hca_capture_process(config);
    struct local_config local = {
        .fw = {.profile = config->profile,
               .memory = config->memory,
               .responders = config->responders,
               /* Peers remember the connections of a process's QPNs for a while after it has ended,
                * and take a request with such a QPN for a stale connection (cm_match_req() in
                * Linux). So the next process with the same address begins at other numbers. In a
                * simulation, runs must repeat. */
               .qpn_start = config->world ? 0 : g_random_int(),
               .trace = config->log_level >= HCA_LOG_TRACE},
        .world = config->world,
        .port = config->port,
        .wire = config->wire,
        .capture = config->capture,
        .capture_name = capture_name,
        .capture_run = config->capture_run,
        .capture_ring = config->capture_ring,
        .capture_comments = config->capture_comments,
        .capture_process = capture_process,
        .trace_file = config->trace_file,
        .faults = config->faults,
        .fault_seed = config->fault_seed,
        .fault_stream = config->fault_stream,
        .gids = (const uint8_t(*)[16])config->gid,
        .num_gids = HV_ADDRESSES,
        .log_level = config->log_level,
        .name = device->ibv.name,
    };

    memcpy(local.fw.mac, config->mac, sizeof(local.fw.mac));
    hca->device = device;
    pthread_mutex_init(&hca->cmd_lock, NULL);
    pthread_mutex_init(&hca->reg_lock, NULL);
    pthread_mutex_init(&hca->xrcd_lock, NULL);
    pthread_mutex_init(&hca->flow_lock, NULL);
    pthread_mutex_init(&hca->rate_lock, NULL);
    pthread_mutex_init(&hca->devx_lock, NULL);
    hv_said_init(&hca->said);
    hca->explains = config->explain;
    hv_traces = hv_traces || config->trace_file;
    hca->doorbell_pages = g_ptr_array_new();
    hca->numbers = g_hash_table_new(NULL, NULL);
    hca->contexts = g_ptr_array_new();
    hca->event_files = g_ptr_array_new();
    hca->xrcds = g_ptr_array_new();
    hca->subscriptions = g_ptr_array_new();
    hca->local = local_hca_new(&local, err);
    hca->drv = hca->local ? drv_open(local_pci(hca->local), err) : NULL;
    if (!hca->drv) {
        hca_free_parts(hca);
        return NULL;
    }
    if (!hca_configure_port(hca, config, err) || !hca_set_clock(hca, config, err)) {
        drv_close(hca->drv);
        hca_free_parts(hca);
        return NULL;
    }
    if (!local_start(hca->local, hca_on_irq, hca_scan_doorbells, hca)) {
        g_set_error(err, G_FILE_ERROR, G_FILE_ERROR_NOMEM, "no thread: %s", g_strerror(errno));
        drv_close(hca->drv);
        hca_free_parts(hca);
        return NULL;
    }
    if (!hca_open_control(hca, config, err)) {
        local_stop(hca->local);
        drv_close(hca->drv);
        hca_free_parts(hca);
        return NULL;
    }
    drv_arm_eqs(hca->drv);
    hca_service_eqs(hca, DRV_ALL_VECTORS);
    local_tell_irq(hca->local);
    return hca;
}

void hv_trace_event(struct hv_hca *hca, const char *event, size_t len)
{
    local_trace(hca->local, event, len);
}

void hv_hca_abandon(struct hv_hca *hca)
{
    hv_forget_registers(hca, 0, SIZE_MAX);
    local_hca_abandon(hca->local);
}

void hv_hca_before_fork(struct hv_hca *hca)
{
    hv_odp_before_fork(hca);
    local_before_fork(hca->local);
}

void hv_hca_after_fork(struct hv_hca *hca)
{
    local_after_fork(hca->local);
    hv_odp_after_fork(hca);
}

void hv_hca_reset(struct hv_hca *hca)
{
    local_reset(hca->local);
    hca->drv->lost = true;
    hv_events_fatal(hca);
}

void hv_hca_remove(struct hv_hca *hca)
{
    int state = cancel_disable();

    pthread_mutex_lock(&hca->cmd_lock);
    hca->drv->lost = true;
    g_atomic_int_set(&hca->removed, true);
    pthread_mutex_unlock(&hca->cmd_lock);
    hv_forget_registers(hca, 0, SIZE_MAX);
    local_remove(hca->local);
    hv_events_removed(hca);
    cancel_restore(state);
}

bool hv_is_removed(const struct hv_hca *hca)
{
    return g_atomic_int_get(&hca->removed);
}

void hv_hca_close(struct hv_hca *hca)
{
    hv_odp_stop(hca);
    if (hca->control) {
        host_control_stop(hca->control);
    }
    if (hca->left_behind) {
        local_shut(hca->local);
    }
    local_stop(hca->local); /* the helper uses the driver's EQ */
    drv_close(hca->drv);
    hca_free_parts(hca);
}
