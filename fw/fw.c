/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Creates, resets and frees a function; passes MMIO and turns on to it.
 *
 * BAR0 consists of pages of 4 KiB. The first UAR_FIRST pages are the initialization segment. Each
 * other page is the UAR page of its number.
 */
#include <string.h>
#include "fw/cmd.h"
#include "fw/fw_internal.h"
#include "model/card/card.h"
#include "model/memory/memic.h"
#include "model/memory/mkey.h"
#include "model/queue/uar.h"

#define UAR_PAGE_SHIFT 12
#define ISEG_BYTES     ((uint64_t)UAR_FIRST << UAR_PAGE_SHIFT)

/* Keys whose indices mkey_create() never gives out (below MKEY_FIRST). */
#define NULL_MKEY     0x200
#define RESERVED_LKEY 0x300

G_STATIC_ASSERT(RESERVED_LKEY >> 8 < MKEY_FIRST);

static GQuark fw_error_quark(void)
{
    return g_quark_from_static_string("hcasim-fw-error");
}

/* Sets the state after power-on and after every reset. */
static void fw_power_on(struct fw *fw)
{
    fw->state = CMD_DISABLED;
    fw->issi = 0;
    /* If a driver was bound during the reset, its health poll sees this, and the driver
     * recovers. */
    fw->nic_interface = PRM_NIC_INTERFACE_DISABLED;
    fw->invalid_commands = 0;
    fw->quota_exceeded = 0;
    cmdq_reset(fw);
    pages_reset(fw);
    caps_reset(fw);
    health_reset(fw);
    inject_restart(fw);
    regs_reset(fw);
}

void fw_restart(struct fw *fw)
{
    health_reset(fw);
    regs_reset(fw);
    if (hca_restart_card(&fw->hca)) {
        regs_port_reset(fw);
    }
}

G_STATIC_ASSERT(FW_DEVICE_MEMORY == MEMIC_BAR_SIZE);
G_STATIC_ASSERT(FW_DEVICE_MEMORY_BAR == MEMIC_BAR_START);

struct fw *fw_new(const struct hca_host_ops *ops, void *host, const struct fw_config *config,
                  GError **err)
{
    static const uint8_t zero_mac[6];
    const struct fw_profile *profile = fw_profile_find(config->profile);
    struct hca_limits limits;
    struct fw *fw;

    if (!profile) {
        g_set_error(err, fw_error_quark(), 0, "no device profile is called \"%s\"",
                    config->profile);
        return NULL;
    }
    if (memcmp(config->mac, zero_mac, 6) == 0 || (config->mac[0] & 1)) {
        g_set_error_literal(err, fw_error_quark(), 0,
                            "the MAC address must be a unicast address and not zero");
        return NULL;
    }
    if (config->num_msix > profile->pci.num_msix) {
        g_set_error(err, fw_error_quark(), 0, "profile %s has %u MSI-X vectors, not %u",
                    profile->name, profile->pci.num_msix, config->num_msix);
        return NULL;
    }
    if (config->memory && config->memory < FW_MEMORY_MIN) {
        g_set_error(err, fw_error_quark(), 0,
                    "memory is %" G_GUINT64_FORMAT " bytes, the least is "
                    "%llu",
                    config->memory, FW_MEMORY_MIN);
        return NULL;
    }
    if (config->log_max_qp &&
        (config->log_max_qp < FW_LOG_QPS_MIN || config->log_max_qp > FW_LOG_QPS_MAX)) {
        g_set_error(err, fw_error_quark(), 0, "log_max_qp is %u, not one of %d to %d",
                    config->log_max_qp, FW_LOG_QPS_MIN, FW_LOG_QPS_MAX);
        return NULL;
    }
    if (config->responders > FW_RESPONDERS_MAX) {
        g_set_error(err, fw_error_quark(), 0, "responders is %u, more than %d", config->responders,
                    FW_RESPONDERS_MAX);
        return NULL;
    }
    if (config->card && !card_has_room(config->card, config->function)) {
        g_set_error(err, fw_error_quark(), 0, "the card has no room for function %u",
                    config->function);
        return NULL;
    }
    fw = g_new0(struct fw, 1);
    fw->profile = profile;
    limits = profile->limits;
    if (config->log_max_qp) {
        limits.log_max_qp = config->log_max_qp;
    }
    limits.qpn_start = config->qpn_start;
    limits.pci_atomics = config->no_pci_atomics ? 0 : HCA_PCI_ATOMICS;
    limits.dc_responders = config->responders ? config->responders : FW_RESPONDERS_DEFAULT;
    limits.num_msix = config->num_msix ? config->num_msix : profile->pci.num_msix;
    if (config->card) {
        hca_init_on(&fw->hca, ops, host, &limits, config->card, config->function, config->mac);
    } else {
        hca_init(&fw->hca, ops, host, &limits, config->mac);
    }
    fw->hca.memory.limit = config->memory ? config->memory : FW_MEMORY_DEFAULT;
    memic_init(&fw->hca, config->device_memory);
    fw->hca.null_mkey = NULL_MKEY;
    fw->hca.resd_lkey = RESERVED_LKEY;
    fw->hca.tracing = (uint8_t)((config->trace ? HCA_TRACES_TEXT : 0) |
                                (config->trace_events ? HCA_TRACES_EVENTS : 0));
    cmdq_init(fw);
    pages_init(fw);
    fw_power_on(fw);
    if (!fw_uplink(fw)->phy.eth_admin.legacy) { /* the card is new */
        regs_port_reset(fw);
    }
    return fw;
}

bool fw_has_device_memory(const struct fw *fw)
{
    return caps_allow_command(fw, PRM_CMD_OP_ALLOC_MEMIC);
}

bool fw_is_entered(const struct fw *fw)
{
    return fw->entry.under_way;
}

void fw_retire(struct fw *fw)
{
    entry_retire(fw);
}

void fw_free(struct fw *fw)
{
    if (!fw) {
        return;
    }
    g_assert(!fw_is_entered(fw));
    fw_retire(fw);
    fw_set_faults(fw, NULL);
    cmdq_clear(fw);
    hca_clear(&fw->hca);
    pages_clear(fw);
    g_assert(fw->hca.memory.used == 0 && fw->hca.icm.used == 0); /* as after a reset */
    g_free(fw);
}

bool fw_do_reset(struct fw *fw)
{
    cmdq_forget(fw);
    if (!hca_reset_part(&fw->hca)) {
        return false;
    }
    fw_power_on(fw);
    fw_restart(fw);
    /* inside a turn, the turn's own memory is still in use */
    g_assert(fw->hca.running || (fw->hca.memory.used == 0 && fw->hca.icm.used == 0));
    return true;
}

void fw_reset(struct fw *fw)
{
    bool outermost = entry_begin(fw);

    entry_note_reset(fw);
    if (outermost) {
        entry_end(fw);
    }
}

void fw_set_state(struct fw *fw, uint8_t state)
{
    static const char *const names[] = {
        [CMD_DISABLED] = "disabled", [CMD_ENABLED] = "enabled", [CMD_READY] = "ready"};

    if (fw->state != state) {
        hca_log(&fw->hca, HCA_LOG_INFO, "function is %s", names[state]);
        fw->state = state;
    }
}

bool fw_cut_cable(struct fw *fw, bool cut)
{
    if (!entry_begin(fw)) {
        return false;
    }
    fw_uplink(fw)->is_cut = cut;
    port_update_link(&fw->hca);
    entry_end(fw);
    return true;
}

uint64_t fw_mmio_read(struct fw *fw, uint64_t offset, unsigned size)
{
    uint64_t aligned = offset & ~3ull;
    unsigned shift = 8 * (4 - (unsigned)(offset & 3) - size);

    if (memic_has_offset(offset) && size <= 8) {
        return memic_mmio_read(&fw->hca, offset, size);
    }
    if (offset >= ISEG_BYTES || (offset & (size - 1)) || size > 8) {
        hca_log(&fw->hca, HCA_LOG_GUEST_ERROR,
                "read of %u bytes at offset 0x%" G_GINT64_MODIFIER "x", size, offset);
        return 0;
    }
    if (size == 8) {
        uint64_t high = iseg_read(fw, aligned);

        return high << 32 | iseg_read(fw, aligned + 4);
    }
    return iseg_read(fw, aligned) >> shift & (UINT32_MAX >> (32 - 8 * size));
}

bool fw_do_write(struct fw *fw, uint64_t offset, uint64_t value, unsigned size)
{
    if (offset >= ISEG_BYTES && fw->state != CMD_READY) {
        /* mlx5_core still updates its EQs after it has torn the function down (fast unload) */
        return false;
    } else if (memic_has_offset(offset)) {
        memic_mmio_write(&fw->hca, offset, value, size);
    } else if (offset >= ISEG_BYTES) {
        return uar_write(&fw->hca, (uint32_t)(offset >> UAR_PAGE_SHIFT),
                         (uint32_t)offset & ((1u << UAR_PAGE_SHIFT) - 1), value, size);
    } else if (size == 4 && (offset & 3) == 0) {
        iseg_write(fw, offset, (uint32_t)value);
    } else if (size == 8 && (offset & 7) == 0) {
        iseg_write(fw, offset, (uint32_t)(value >> 32));
        iseg_write(fw, offset + 4, (uint32_t)value);
    } else {
        hca_log(&fw->hca, HCA_LOG_GUEST_ERROR,
                "write of %u bytes at offset 0x%" G_GINT64_MODIFIER "x", size, offset);
    }
    return false;
}

bool fw_mmio_write(struct fw *fw, uint64_t offset, uint64_t value, unsigned size)
{
    bool outermost = entry_begin(fw), more = false;

    if (!outermost || entry_is_due(fw) || fw->entry.retired || iseg_disables(offset, value, size)) {
        entry_note_write(fw, offset, value, size);
    } else {
        more = fw_do_write(fw, offset, value, size);
    }
    if (outermost) {
        entry_end(fw);
    }
    return more;
}

bool fw_run(struct fw *fw, unsigned budget)
{
    bool more;

    if (fw->entry.retired) {
        return false;
    }
    if (!entry_begin(fw)) {
        return true;
    }
    more = !fw->hca.off && hca_run(&fw->hca, budget);
    entry_end(fw);
    return more || entry_is_due(fw);
}

uint64_t fw_most_pieces(const struct fw *fw)
{
    return fw->hca.most_pieces;
}

void fw_host_settles(struct fw *fw)
{
    fw->hca.settles = true;
}

uint64_t fw_pieces(const struct fw *fw)
{
    return fw->hca.pieces;
}

void fw_set_wire(struct fw *fw, struct wire_port *port)
{
    bool outermost = entry_begin(fw);

    if (outermost) {
        port_set_wire(&fw->hca, port);
        entry_end(fw);
    } else {
        entry_note_wire(fw, port);
    }
}
