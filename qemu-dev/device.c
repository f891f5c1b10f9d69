/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The PCIe function: configuration space, BAR, MSI-X, reset, and the glue between QEMU and the
 * firmware's handle (fw/fw.h).
 *
 * Everything runs under QEMU's big lock: MMIO in the vCPU's thread, all else in the main loop. So
 * the HCA is never entered twice at once, with one exception: its own DMA and interrupts may be
 * addressed to its BAR, to configuration space (a reset), or to the slot's register that unplugs
 * it. The firmware notes such an access and carries it out when the call that caused it ends
 * (model/core/host.h); an unplugged function is then dismantled by a bottom half. The small amount
 * of work that a doorbell usually asks for is done at once in the vCPU's thread, because waking the
 * main loop takes longer than sending a packet. Larger work, and other turns that the firmware asks
 * for (wake), run in a bottom half.
 *
 * States: device_realize() checks the configuration, then plugs in the cable and creates the
 * firmware, then shows the function to the guest. Unplug and a failed realize take the same steps
 * back.
 *
 * While the machine is stopped (stop, a breakpoint, a guest's panic) the function takes no turn, so
 * that memory does not change while a debugger reads it. Writes of a debugger to its registers, and
 * frames on the cable, wait until the machine continues. Its timers stand still with the virtual
 * clock.
 */
#include "qemu-dev/compat.h"
#include "hw/pci/msix.h"
#include "migration/vmstate.h"
#include "net/net.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "qemu/module.h"
#include "qemu/timer.h"
#include "fw/fw.h"
#include "wire/capture.h"
#include "wire/trace_file.h"
#include "wire/open.h"
#include "wire/port.h"
#include "qemu-dev/config.h"
#include "qemu-dev/device.h"
#include "qemu-dev/control.h"
#include "qemu-dev/faults.h"
#include "qemu-dev/health.h"
#include "qemu-dev/netdev.h"
#include "qemu-dev/properties.h"
#include "qemu-dev/vpd.h"
#include "qemu-dev/vsc.h"

#define TYPE_HCASIM "hcasim"
OBJECT_DECLARE_SIMPLE_TYPE(HcasimState, HCASIM)

/* Offsets of capabilities and, in BAR0, of the MSI-X table, as on ConnectX cards. */
#define CAP_VPD      0x48
#define CAP_MSIX     0x9c
#define CAP_VENDOR   0xc0
#define BAR_MSIX_TAB 0x2000
#define BAR_MSIX_PBA 0x3000
#define MSIX_MAX     ((BAR_MSIX_PBA - BAR_MSIX_TAB) / PCI_MSIX_ENTRY_SIZE)

/* Pieces (fw/fw.h) of one turn in the main loop. */
#define TURN_BUDGET 1024
/* The same in a vCPU's thread, which must also run the guest. */
#define MMIO_BUDGET 128
/* Short turns follow each other without returning to the main loop, whose own work takes longer
 * than they do: at most SHORT_TURNS of them, and only until they have made SHORT_PIECES pieces. */
#define SHORT_TURNS  8
#define SHORT_PIECES 256
/*
 * If a turn leaves work, the next one follows at once. But after so many in a row the main loop
 * sleeps for a moment: only then does a vCPU that waits for the big lock get it.
 */
#define TURNS_IN_A_ROW 8
#define BREATHER_NS    20000

/*
 * If the rest of its WQE follows a doorbell (uar_write()), the turn waits for the last store of the
 * WQE. If that store does not come, the doorbell waits for this time. If QEMU's main thread were
 * asked for a turn at once, it would compete with the vCPU's stores for the lock at every doorbell.
 */
#define BLUEFLAME_WAIT_NS 250000

struct HcasimState {
    PCIDevice parent_obj;

    /* properties */
    NICConf conf;
    char *profile;
    char *control_path;
    char *wire_uri;
    char *capture;
    struct capture_ring capture_ring;
    bool capture_comments;
    uint64_t memory;
    uint32_t responders;
    bool trace;
    char *fault_rules;
    uint32_t fault_seed;
    char *trace_file;

    MemoryRegion bar;
    MemoryRegion device_memory; /* RAM in the BAR, so that a vCPU accesses it without an exit */
    uint32_t link;              /* value of LNKCAP; 0: configuration space is not filled in */
    struct vsc vsc;
    struct vpd vpd;
    struct fw *fw;
    struct trace_file *events; /* the trace file, or NULL */
    struct wire_port *port;    /* the outermost port, which the firmware uses */
    struct hcasim_faults faults;
    int wire_fd; /* the descriptor that QEMU watches for the port, or -1 */
    QEMUBH *bh;
    QEMUTimer *timer;    /* the HCA's timer */
    QEMUTimer *breather; /* see TURNS_IN_A_ROW */
    QEMUTimer *rest;     /* see BLUEFLAME_WAIT_NS */
    unsigned turns;
    bool in_mmio;  /* a register is being written; a requested turn follows at once */
    bool turn_due; /* a turn was requested */
    struct hcasim_control control;
    VMChangeStateEntry *vm_state;
    bool stopped;        /* the machine is stopped: no turn is taken */
    bool port_completes; /* the root port reports atomics because of this function */
};

/* The host interface (model/core/host.h). */

static bool host_dma_read(void *host, uint64_t addr, void *buf, size_t len)
{
    HcasimState *s = host;

    return pci_dma_read(&s->parent_obj, addr, buf, len) == MEMTX_OK;
}

static bool host_dma_write(void *host, uint64_t addr, const void *buf, size_t len)
{
    HcasimState *s = host;
    PCIDevice *dev = &s->parent_obj;
    const uint8_t *bytes = buf;
    size_t first = len > sizeof(uint64_t) ? len - sizeof(uint64_t) : 0;

    /* QEMU may copy in any order, so the last word is written separately. */
    return (!first || pci_dma_write(dev, addr, bytes, first) == MEMTX_OK) &&
           pci_dma_write(dev, addr + first, bytes + first, len - first) == MEMTX_OK;
}

static void *host_dma_map(void *host, uint64_t addr, size_t *len, bool is_write)
{
    HcasimState *s = host;
    AddressSpace *as = pci_get_address_space(&s->parent_obj);
    hwaddr xlat, n = *len;
    MemoryRegion *mr;
    void *p;

    RCU_READ_LOCK_GUARD();
    /* QEMU maps other regions, or missing ones, through a copy, which is useless here. */
    mr = address_space_translate(as, addr, &xlat, &n, is_write, MEMTXATTRS_UNSPECIFIED);
    if (!compat_is_memory(mr, is_write)) {
        return NULL;
    }
    n = *len;
    p = address_space_map(as, addr, &n, is_write, MEMTXATTRS_UNSPECIFIED);
    *len = n;
    return p;
}

static void host_dma_unmap(void *host, void *ptr, size_t len, bool is_write)
{
    HcasimState *s = host;

    address_space_unmap(pci_get_address_space(&s->parent_obj), ptr, len, is_write, len);
}

static bool host_dma_atomic(void *host, uint64_t addr, size_t len, struct host_atomic *op)
{
    size_t mapped = len;
    void *p;

    if (addr % len) {
        return false;
    }
    p = host_dma_map(host, addr, &mapped, true);
    if (!p) {
        return false;
    }
    if (mapped == len) {
        host_atomic_do(p, len, op);
    }
    host_dma_unmap(host, p, mapped, true);
    return mapped == len;
}

static void host_irq(void *host, unsigned vector)
{
    HcasimState *s = host;

    if (vector < msix_nr_vectors_allocated(&s->parent_obj)) {
        msix_notify(&s->parent_obj, vector);
    }
}

static uint64_t host_clock_ns(void *host)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

static void host_timer_arm(void *host, uint64_t deadline_ns)
{
    HcasimState *s = host;

    if (deadline_ns == UINT64_MAX) {
        timer_del(s->timer);
    } else {
        timer_mod(s->timer, MIN(deadline_ns, INT64_MAX));
    }
}

static void host_wake(void *host)
{
    HcasimState *s = host;

    if (s->in_mmio) {
        s->turn_due = true;
    } else {
        qemu_bh_schedule(s->bh);
    }
}

static void host_log(void *host, enum hca_log_level level, const char *line)
{
    HcasimState *s = host;
    const char *id = DEVICE(s)->id;
    const char *sep = id ? " " : "";

    id = id ? id : "";
    switch (level) {
    case HCA_LOG_ERROR:
        error_report("hcasim%s%s: %s", sep, id, line);
        break;
    case HCA_LOG_GUEST_ERROR:
        warn_report("hcasim%s%s: %s", sep, id, line);
        break;
    case HCA_LOG_INFO:
    case HCA_LOG_TRACE:
        info_report("hcasim%s%s: %s", sep, id, line);
        break;
    }
}

/* Called only if there is a trace file. */
static void host_trace(void *host, const char *event, size_t len)
{
    HcasimState *s = host;

    if (event) {
        trace_file_event(s->events, event, len);
    } else {
        trace_file_flush(s->events);
    }
}

static const struct hca_host_ops host_ops = {
    .dma_read = host_dma_read,
    .dma_write = host_dma_write,
    .dma_map = host_dma_map,
    .dma_unmap = host_dma_unmap,
    .dma_atomic = host_dma_atomic,
    .irq = host_irq,
    .clock_ns = host_clock_ns,
    .timer_arm = host_timer_arm,
    .wake = host_wake,
    .log = host_log,
    .trace = host_trace,
};

/* Turns. */

/* Takes a turn and, as long as turns are short, the next ones that it asks for; these mostly check
 * whether more frames have come. True: there is more to do. */
static bool device_run_for_a_while(HcasimState *s)
{
    uint64_t start = fw_pieces(s->fw);
    int turns = 0;
    bool more;

    do {
        more = fw_run(s->fw, TURN_BUDGET);
    } while (more && ++turns < SHORT_TURNS && fw_pieces(s->fw) - start < SHORT_PIECES);
    return more;
}

static void device_take_turn(void *opaque)
{
    HcasimState *s = opaque;

    if (s->stopped) { /* device_vm_state_changed() asks for it again */
        return;
    }
    if (!device_run_for_a_while(s)) {
        s->turns = 0;
    } else if (++s->turns < TURNS_IN_A_ROW) {
        qemu_bh_schedule(s->bh);
    } else {
        s->turns = 0;
        timer_mod(s->breather, qemu_clock_get_ns(QEMU_CLOCK_REALTIME) + BREATHER_NS);
    }
}

static void device_ask_for_turn(void *opaque)
{
    host_wake(opaque);
}

static void device_vm_state_changed(void *opaque, bool running, RunState state)
{
    HcasimState *s = opaque;

    s->stopped = !running;
    if (running) {
        qemu_bh_schedule(s->bh);
    }
}

static void device_wire_readable(void *opaque)
{
    HcasimState *s = opaque;

    wire_fd_event(s->port);
}

/* The BAR: big-endian (fw/fw.h). */

static uint64_t device_bar_read(void *opaque, hwaddr offset, unsigned size)
{
    HcasimState *s = opaque;

    return s->fw ? fw_mmio_read(s->fw, offset, size) : UINT64_MAX;
}

static void device_bar_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    HcasimState *s = opaque;
    bool more_follows;

    if (!s->fw) { /* a vCPU's write that waited for the lock while the function was unplugged */
        return;
    }
    if (fw_is_entered(s->fw)) { /* the function's own DMA or interrupt */
        fw_mmio_write(s->fw, offset, value, size);
        return;
    }
    s->in_mmio = true;
    s->turn_due = false;
    more_follows = fw_mmio_write(s->fw, offset, value, size);
    s->in_mmio = false;
    if (!s->turn_due || s->stopped) {
        return;
    }
    if (more_follows) {
        if (!timer_pending(s->rest)) {
            timer_mod(s->rest, qemu_clock_get_ns(QEMU_CLOCK_REALTIME) + BLUEFLAME_WAIT_NS);
        }
    } else if (fw_run(s->fw, MMIO_BUDGET)) {
        qemu_bh_schedule(s->bh);
    }
}

static const MemoryRegionOps bar_ops = {
    .read = device_bar_read,
    .write = device_bar_write,
    .endianness = DEVICE_BIG_ENDIAN,
    .valid = {.min_access_size = 1, .max_access_size = 8},
    .impl = {.min_access_size = 1, .max_access_size = 8},
};

/* Configuration space. */

static uint32_t device_config_read(PCIDevice *dev, uint32_t addr, int len)
{
    if (HCASIM(dev)->link) {
        config_reading(dev, HCASIM(dev)->link);
    }
    vsc_config_read(&HCASIM(dev)->vsc, dev, addr, len);
    return pci_default_read_config(dev, addr, len);
}

static void device_config_write(PCIDevice *dev, uint32_t addr, uint32_t val, int len)
{
    pci_default_write_config(dev, addr, val, len);
    vsc_config_write(&HCASIM(dev)->vsc, dev, HCASIM(dev)->fw, addr, val, len);
    vpd_config_write(&HCASIM(dev)->vpd, dev, addr, val, len);
    config_written(dev, addr, val, len);
}

/* Shows the device memory in the BAR, if the function has any. */
static void device_map_memory(HcasimState *s)
{
    if (fw_has_device_memory(s->fw)) {
        memory_region_add_subregion(&s->bar, FW_DEVICE_MEMORY_BAR, &s->device_memory);
    }
}

static void device_unmap_memory(HcasimState *s)
{
    if (s->device_memory.container) {
        memory_region_del_subregion(&s->bar, &s->device_memory);
    }
}

/* Fills in configuration space. On failure, *errp is set and some capabilities may have been
 * added. */
static bool device_init_config(HcasimState *s, const struct fw_pci_id *id, Error **errp)
{
    PCIDevice *dev = &s->parent_obj;
    unsigned i;

    pci_config_set_vendor_id(dev->config, id->vendor);
    pci_config_set_device_id(dev->config, id->device);
    pci_config_set_revision(dev->config, id->revision);
    pci_set_word(dev->config + PCI_SUBSYSTEM_VENDOR_ID, id->subsys_vendor);
    pci_set_word(dev->config + PCI_SUBSYSTEM_ID, id->subsys);

    memory_region_init_io(&s->bar, OBJECT(s), &bar_ops, s, TYPE_HCASIM, id->bar_size);
    device_map_memory(s);
    pci_register_bar(dev, 0, PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH, &s->bar);

    if (!config_init(dev, id, errp)) {
        return false;
    }
    s->link = config_link(dev);
    s->port_completes = compat_cpus_are_atomic() && config_init_atomics(dev);
    if (msix_init(dev, id->num_msix, &s->bar, 0, BAR_MSIX_TAB, &s->bar, 0, BAR_MSIX_PBA, CAP_MSIX,
                  errp) < 0) {
        return false;
    }
    for (i = 0; i < id->num_msix; i++) {
        msix_vector_use(dev, i);
    }
    return vsc_init(&s->vsc, dev, CAP_VENDOR, errp) &&
           vpd_init(&s->vpd, dev, CAP_VPD, id, s->conf.macaddr.a, errp);
}

/* Plugging and unplugging. */

/* Opens the port that the properties name. No port is allowed, too. */
static bool device_plug_cable(HcasimState *s, Error **errp)
{
    NetClientState *peer = s->conf.peers.ncs[0];
    GError *err = NULL;
    struct wire_port *port;

    if (peer && s->wire_uri) {
        error_setg(errp, "hcasim: netdev=%s and wire=%s exclude each other: there is one port",
                   peer->name, s->wire_uri);
        return false;
    }
    if (peer) {
        s->port = netdev_port_new(DEVICE(s), &s->conf);
    } else if (s->wire_uri) {
        s->port = wire_open(s->wire_uri, &err);
        if (!s->port) {
            error_setg(errp, "hcasim: wire=%s: %s", s->wire_uri, err->message);
            g_error_free(err);
            return false;
        }
    }
    if (s->capture) {
        struct wire_capture_options options = {.ring = s->capture_ring,
                                               .comments = s->capture_comments};

        if (s->capture_ring.size && s->capture_ring.size < CAPTURE_SIZE_MIN) {
            error_setg(errp, "hcasim: capture_size is %" PRIu64 " bytes, the least is %u",
                       s->capture_ring.size, CAPTURE_SIZE_MIN);
            return false;
        }
        if (!s->capture_ring.files || s->capture_ring.files > CAPTURE_RING_FILES_MAX) {
            error_setg(errp, "hcasim: capture_files is %u, it must be 1 to %u",
                       s->capture_ring.files, CAPTURE_RING_FILES_MAX);
            return false;
        }
        if (!s->port) {
            error_setg(errp, "hcasim: capture=%s wants a netdev= or wire= to listen to",
                       s->capture);
            return false;
        }
        port = wire_capture_new(s->port, s->capture, &options, &err);
        if (!port) {
            error_setg(errp, "hcasim: capture=%s: %s", s->capture, err->message);
            g_error_free(err);
            return false;
        }
        s->port = port;
    }
    s->wire_fd = s->port ? wire_fd(s->port) : -1;
    if (s->wire_fd >= 0) {
        qemu_set_fd_handler(s->wire_fd, device_wire_readable, NULL, s);
    }
    return true;
}

/* Undoes what device_realize() has done so far, all of it or a part. */
static void device_dismantle(HcasimState *s)
{
    hcasim_control_end(&s->control);
    if (s->vm_state) {
        qemu_del_vm_change_state_handler(s->vm_state);
        s->vm_state = NULL;
    }
    if (s->wire_fd >= 0) {
        qemu_set_fd_handler(s->wire_fd, NULL, NULL, NULL);
        s->wire_fd = -1;
    }
    fw_free(s->fw);
    s->fw = NULL;
    if (s->events) {
        trace_file_close(s->events);
        s->events = NULL;
    }
    if (s->port) {
        wire_close(s->port);
        s->port = NULL;
    }
    hcasim_faults_end(&s->faults);
    if (s->bh) {
        qemu_bh_delete(s->bh);
        s->bh = NULL;
    }
    timer_free(s->timer);
    timer_free(s->breather);
    timer_free(s->rest);
    s->timer = s->breather = s->rest = NULL;
}

static void device_remove_config(HcasimState *s)
{
    PCIDevice *dev = &s->parent_obj;

    device_unmap_memory(s);
    msix_uninit(dev, &s->bar, &s->bar);
    if (s->port_completes) {
        config_exit_atomics(dev);
        s->port_completes = false;
    }
    s->link = 0;
    config_exit(dev);
}

/* The host of the events is the device: its id, or its MAC address. */
static bool device_open_trace(HcasimState *s, Error **errp)
{
    const uint8_t *mac = s->conf.macaddr.a;
    const char *id = DEVICE(s)->id;
    g_autofree char *name = id ? g_strdup(id)
                               : g_strdup_printf("%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1],
                                                 mac[2], mac[3], mac[4], mac[5]);
    struct trace_file_options options = {.host = name};
    GError *err = NULL;

    if (!s->trace_file) {
        return true;
    }
    s->events = trace_file_open(s->trace_file, &options, &err);
    if (!s->events) {
        error_setg(errp, "hcasim: trace_file=%s: %s", s->trace_file, err->message);
        g_error_free(err);
    }
    return s->events != NULL;
}

static bool device_create_firmware(HcasimState *s, const struct fw_pci_id *id, Error **errp)
{
    struct fw_config config = {
        .profile = s->profile,
        .num_msix = id->num_msix,
        .memory = s->memory,
        .responders = s->responders,
        .trace = s->trace,
        .trace_events = s->trace_file != NULL,
        .no_pci_atomics = !compat_cpus_are_atomic(),
    };
    GError *err = NULL;
    Error *no_memory = NULL;

    memory_region_init_ram_nomigrate(&s->device_memory, OBJECT(s), TYPE_HCASIM "-memory",
                                     FW_DEVICE_MEMORY, &no_memory);
    if (no_memory) {
        error_propagate(errp, no_memory);
        return false;
    }
    config.device_memory = memory_region_get_ram_ptr(&s->device_memory);
    qemu_macaddr_default_if_unset(&s->conf.macaddr);
    memcpy(config.mac, s->conf.macaddr.a, sizeof(config.mac));
    if (!device_open_trace(s, errp)) {
        return false;
    }
    s->stopped = !runstate_is_running();
    s->vm_state = qemu_add_vm_change_state_handler(device_vm_state_changed, s);
    s->bh = qemu_bh_new_guarded(device_take_turn, s, &DEVICE(s)->mem_reentrancy_guard);
    s->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, device_ask_for_turn, s);
    s->breather = timer_new_ns(QEMU_CLOCK_REALTIME, device_ask_for_turn, s);
    s->rest = timer_new_ns(QEMU_CLOCK_REALTIME, device_ask_for_turn, s);
    s->fw = fw_new(&host_ops, s, &config, &err);
    if (!s->fw) {
        error_setg(errp, "hcasim: %s", err->message);
        g_error_free(err);
        return false;
    }
    return true;
}

static void device_log_fault(void *opaque, const char *line)
{
    host_log(opaque, HCA_LOG_INFO, line);
}

/* Puts the filter of the property "fault" before the port, and has the firmware ask the rules. */
static bool device_plug_faults(HcasimState *s, Error **errp)
{
    const struct hcasim_faults_begin begin = {.rules = s->fault_rules,
                                              .seed = s->fault_seed,
                                              .mac = s->conf.macaddr.a,
                                              .log = device_log_fault,
                                              .log_opaque = s,
                                              .capture = s->capture ? s->port : NULL};

    if (!s->fault_rules) {
        return true;
    }
    if (!hcasim_faults_init(&s->faults, &begin, &s->port, errp)) {
        return false;
    }
    fw_set_faults(s->fw, s->faults.set);
    return true;
}

static bool device_open_control(HcasimState *s, Error **errp)
{
    NetClientState *peer = s->conf.peers.ncs[0];

    return hcasim_control_init(&s->control, s->control_path, s->fw,
                               DEVICE(s)->id ? DEVICE(s)->id : TYPE_HCASIM,
                               peer ? peer->name : s->wire_uri, errp);
}

static void device_realize(PCIDevice *dev, Error **errp)
{
    HcasimState *s = HCASIM(dev);
    struct fw_pci_id id;

    s->wire_fd = -1;
    if (!fw_profile_pci_id(s->profile, &id)) {
        char *names = g_strjoinv(", ", (char **)fw_profile_names());

        error_setg(errp, "hcasim: there is no profile '%s', but: %s", s->profile, names);
        g_free(names);
        return;
    }
    if (id.num_msix > MSIX_MAX) {
        error_setg(errp, "hcasim: profile '%s' has more than %u MSI-X vectors", s->profile,
                   (unsigned)MSIX_MAX);
        return;
    }
    if (!device_plug_cable(s, errp) || !device_create_firmware(s, &id, errp) ||
        !device_plug_faults(s, errp)) {
        device_dismantle(s);
        return;
    }
    if (!device_init_config(s, &id, errp)) {
        device_remove_config(s);
        device_dismantle(s);
        return;
    }
    if (s->control_path && !device_open_control(s, errp)) {
        device_remove_config(s);
        device_dismantle(s);
        return;
    }
    if (s->port) {
        fw_set_wire(s->fw, s->port);
    }
}

static void device_dismantle_later(void *opaque)
{
    HcasimState *s = opaque;

    device_dismantle(s);
    object_unref(OBJECT(s));
}

static void device_unrealize(PCIDevice *dev)
{
    HcasimState *s = HCASIM(dev);

    hcasim_control_end(&s->control);
    device_remove_config(s);
    fw_retire(s->fw);
    if (fw_is_entered(s->fw)) { /* the function's own DMA unplugs it */
        object_ref(OBJECT(s));
        aio_bh_schedule_oneshot(qemu_get_aio_context(), device_dismantle_later, s);
    } else {
        device_dismantle(s);
    }
}

static void device_reset(DeviceState *dev)
{
    HcasimState *s = HCASIM(dev);

    vsc_reset(&s->vsc, &s->parent_obj);
    config_reset(&s->parent_obj);
    if (s->fw) {
        fw_reset(s->fw);
    }
}

static char *device_get_health(Object *obj, Error **errp)
{
    return hcasim_health_get(HCASIM(obj)->fw);
}

static void device_set_health(Object *obj, const char *value, Error **errp)
{
    hcasim_health_set(HCASIM(obj)->fw, value, errp);
}

static char *device_get_faults(Object *obj, Error **errp)
{
    return hcasim_faults_get(&HCASIM(obj)->faults);
}

static void device_set_faults(Object *obj, const char *value, Error **errp)
{
    hcasim_faults_set(&HCASIM(obj)->faults, value, errp);
}

/* The type. */

static const VMStateDescription vmstate_hcasim = {
    .name = TYPE_HCASIM,
    .unmigratable = 1,
};

/* How QEMU's table names each kind of properties.def. */
#define DEFINE_MAC(name, member, usual)         DEFINE_PROP_MACADDR(name, HcasimState, member),
#define DEFINE_NETDEV(name, member, usual)      DEFINE_PROP_NETDEV(name, HcasimState, member),
#define DEFINE_TEXT(name, member, usual)        DEFINE_PROP_STRING(name, HcasimState, member),
#define DEFINE_PROFILE(name, member, usual)     DEFINE_PROP_STRING(name, HcasimState, member),
#define DEFINE_SIZE(name, member, usual)        DEFINE_PROP_SIZE(name, HcasimState, member, usual),
#define DEFINE_NUMBER(name, member, usual)      DEFINE_PROP_UINT32(name, HcasimState, member, usual),
#define DEFINE_SWITCH(name, member, usual)      DEFINE_PROP_BOOL(name, HcasimState, member, usual),
#define DEFINE_AT_RUN_TIME(name, member, usual) /* device_class_init() */

#define PROPERTY(kind, name, member, usual, least, most, value, usual_text, help)                  \
    DEFINE_##kind(#name, member, usual)

static const Property properties[] = {
#include "qemu-dev/properties.def"
};

static void device_class_init(ObjectClass *klass, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    PCIDeviceClass *pc = PCI_DEVICE_CLASS(klass);
    const struct device_property *property;
    struct fw_pci_id id;
    unsigned i;

    fw_profile_pci_id(NULL, &id);
    pc->realize = device_realize;
    pc->exit = device_unrealize;
    pc->config_read = device_config_read;
    pc->config_write = device_config_write;
    pc->vendor_id = id.vendor;
    pc->device_id = id.device;
    pc->class_id = PCI_CLASS_NETWORK_ETHERNET;
    dc->desc = "ConnectX (mlx5) HCA model";
    dc->vmsd = &vmstate_hcasim;
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
    compat_set_reset(dc, device_reset);
    compat_set_properties(dc, properties, ARRAY_SIZE(properties));
    object_class_property_add_str(klass, "health", device_get_health, device_set_health);
    object_class_property_add_str(klass, "faults", device_get_faults, device_set_faults);
    for (i = 0; (property = device_property_at(i)); i++) {
        g_autofree char *range = device_property_range(property);
        g_autofree char *text = g_strdup_printf("%s (%s)", property->help, range);

        object_class_property_set_description(klass, property->name, text);
    }
}

static const TypeInfo hcasim_info = {
    .name = TYPE_HCASIM,
    .parent = TYPE_PCI_DEVICE,
    .instance_size = sizeof(HcasimState),
    .class_init = device_class_init,
    .interfaces =
        (InterfaceInfo[]){
            {INTERFACE_PCIE_DEVICE},
            {},
        },
};

void hcasim_device_register(void)
{
    if (!object_class_by_name(TYPE_HCASIM)) { /* -plugin may be given twice */
        type_register_static(&hcasim_info);
    }
}

void hcasim_device_help(void)
{
    const struct device_property *property;
    unsigned i;

    printf("hcasim for QEMU " QEMU_FULL_VERSION "\n"
           "-device hcasim options, beside those of every PCI device:\n");
    for (i = 0; (property = device_property_at(i)); i++) {
        bool at_run_time = property->kind == DEVICE_PROPERTY_AT_RUN_TIME;
        g_autofree char *left = g_strdup_printf("%s=%s", property->name, property->value);
        g_autofree char *range = device_property_range(property);

        printf("%s  %-24s - %s (%s)\n", at_run_time ? "at run time, by qom-set:\n" : "", left,
               property->help, range);
    }
    printf("wire URIs:\n%s\n", wire_uri_help());
}
