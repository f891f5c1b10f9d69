/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Brings the function up and tears it down, in the order of mlx5_core: wait for the initialization
 * segment, command queue, ENABLE_HCA, ISSI, boot pages, capabilities, init pages, INIT_HCA, event
 * queue, UAR and PD; and back.
 */
#include <string.h>
#include "guest-lib/drv/drv.h"
#include "guest-lib/drv/drv_internal.h"

#define ISEG(field) PRM_OFFSET(initial_seg, field)

/* The dword whose low half has the command queue's size and stride and the driver's request
 * (nic_interface). */
#define CMDQ_ADDR_LOW          0x14
#define NIC_INTERFACE_DISABLED 1

/* The dword whose top bit says that the firmware is still starting. */
#define INITIALIZING 0x1fc

struct drv_mem drv_alloc(struct drv *drv, size_t size)
{
    struct drv_mem mem = {.size = size};

    mem.ptr = drv->dev.ops->dma_alloc(drv->dev.pci, size, &mem.bus);
    return mem;
}

void drv_free(struct drv *drv, struct drv_mem *mem)
{
    if (mem->ptr) {
        drv->dev.ops->dma_free(drv->dev.pci, mem->ptr, mem->size);
    }
    memset(mem, 0, sizeof(*mem));
}

static uint32_t drv_iseg_read(struct drv *drv, size_t offset)
{
    return (uint32_t)drv->dev.ops->mmio_read(drv->dev.pci, offset, 4);
}

static void drv_iseg_write(struct drv *drv, size_t offset, uint32_t value)
{
    drv->dev.ops->mmio_write(drv->dev.pci, offset, value, 4);
}

static bool drv_wait_initialized(struct drv *drv)
{
    uint64_t deadline = drv->dev.ops->now(drv->dev.pci) + DRV_CMD_TIMEOUT;

    while (drv_iseg_read(drv, INITIALIZING) >> 31) {
        uint64_t now = drv->dev.ops->now(drv->dev.pci);

        if (now >= deadline) {
            return false;
        }
        drv->dev.ops->wait(drv->dev.pci, deadline - now);
    }
    return true;
}

static void drv_cmdq_setup(struct drv *drv)
{
    uint32_t low = drv_iseg_read(drv, CMDQ_ADDR_LOW);

    drv->cmdq = drv_alloc(drv, PCI_PAGE);
    drv->cmd_log_stride = low & 0xf;
    for (unsigned i = 0; i < DRV_SLOTS; i++) {
        drv->mailboxes[i] = drv_alloc(drv, 16 * PCI_PAGE);
    }
    drv_iseg_write(drv, ISEG(cmdq_phy_addr_63_32), drv->cmdq.bus >> 32);
    drv_iseg_write(drv, CMDQ_ADDR_LOW, (uint32_t)drv->cmdq.bus);
}

/* -- pages --------------------------------------------------------------------------------------
 */

int drv_give_pages(struct drv *drv, uint32_t n)
{
    int status = 0;

    while (n && !status) {
        uint32_t now = MIN(n, 500);
        size_t len = PRM_SIZE(manage_pages_in) + now * 8;
        g_autofree struct prm_manage_pages_in *in = g_malloc0(len);
        struct prm_manage_pages_out out[1] = {0};

        PRM_SET(manage_pages_in, in, opcode, PRM_CMD_OP_MANAGE_PAGES);
        PRM_SET(manage_pages_in, in, op_mod, 1);
        PRM_SET(manage_pages_in, in, input_num_entries, now);
        for (uint32_t i = 0; i < now; i++) {
            struct drv_mem page = drv_alloc(drv, PCI_PAGE);

            PRM_SET_AT(manage_pages_in, in, pas, i, page.bus);
            g_hash_table_insert(drv->pages, GSIZE_TO_POINTER(page.bus), page.ptr);
        }
        status = drv_cmd_slot(drv, DRV_SLOT_PAGES, in, len, out, sizeof(out));
        n -= now;
    }
    return status;
}

static void drv_page_back(struct drv *drv, uint64_t bus)
{
    void *ptr = g_hash_table_lookup(drv->pages, GSIZE_TO_POINTER(bus));

    if (ptr) {
        g_hash_table_remove(drv->pages, GSIZE_TO_POINTER(bus));
        drv->dev.ops->dma_free(drv->dev.pci, ptr, PCI_PAGE);
    }
}

uint32_t drv_reclaim_pages(struct drv *drv, uint32_t n)
{
    uint32_t want = MIN(n, 500), got;
    size_t len = PRM_SIZE(manage_pages_out) + want * 8;
    g_autofree struct prm_manage_pages_out *out = g_malloc0(len);
    struct prm_manage_pages_in in[1] = {0};

    PRM_SET(manage_pages_in, in, opcode, PRM_CMD_OP_MANAGE_PAGES);
    PRM_SET(manage_pages_in, in, op_mod, 2);
    PRM_SET(manage_pages_in, in, input_num_entries, want);
    if (drv_cmd_slot(drv, DRV_SLOT_PAGES, in, sizeof(in), out, len)) {
        return 0;
    }
    got = MIN(PRM_GET(manage_pages_out, out, output_num_entries), want);
    for (uint32_t i = 0; i < got; i++) {
        drv_page_back(drv, PRM_GET_AT(manage_pages_out, out, pas, i));
    }
    return got;
}

/* QUERY_PAGES op_mod: 1 boot, 2 init. */
static int drv_satisfy_pages(struct drv *drv, unsigned stage)
{
    struct prm_query_pages_in in[1] = {0};
    struct prm_query_pages_out out[1] = {0};
    int status;

    PRM_SET(query_pages_in, in, opcode, PRM_CMD_OP_QUERY_PAGES);
    PRM_SET(query_pages_in, in, op_mod, stage);
    status = drv_cmd(drv, in, sizeof(in), out, sizeof(out));
    return status ? status : drv_give_pages(drv, PRM_GET(query_pages_out, out, num_pages));
}

/* -- commands of the bring-up -------------------------------------------------------------------
 */

static int drv_enable_hca(struct drv *drv)
{
    struct prm_enable_hca_in in[1] = {0};

    PRM_SET(enable_hca_in, in, opcode, PRM_CMD_OP_ENABLE_HCA);
    return drv_cmd_simple(drv, in, sizeof(in));
}

static int drv_set_issi(struct drv *drv)
{
    struct prm_query_issi_in query[1] = {0};
    struct prm_query_issi_out reply[1] = {0};
    struct prm_set_issi_in set[1] = {0};
    int status;

    PRM_SET(query_issi_in, query, opcode, PRM_CMD_OP_QUERY_ISSI);
    status = drv_cmd(drv, query, sizeof(query), reply, sizeof(reply));
    if (status || !(PRM_GET(query_issi_out, reply, supported_issi_dw0) & 2)) {
        return status ? status : -1;
    }
    PRM_SET(set_issi_in, set, opcode, PRM_CMD_OP_SET_ISSI);
    PRM_SET(set_issi_in, set, current_issi, 1);
    return drv_cmd_simple(drv, set, sizeof(set));
}

enum drv_caps {
    DRV_CAPS_MAX,
    DRV_CAPS_CURRENT
};

/* Queries a capability section: its first len bytes go to cap. */
static int drv_query_caps_of(struct drv *drv, unsigned type, enum drv_caps which, void *cap,
                             size_t len)
{
    struct prm_query_hca_cap_in in[1] = {0};
    g_autofree struct prm_query_hca_cap_out *out = g_malloc0(PRM_SIZE(query_hca_cap_out));
    int status;

    PRM_SET(query_hca_cap_in, in, opcode, PRM_CMD_OP_QUERY_HCA_CAP);
    PRM_SET(query_hca_cap_in, in, op_mod, type << 1 | which);
    status = drv_cmd(drv, in, sizeof(in), out, PRM_SIZE(query_hca_cap_out));
    memcpy(cap, PRM_PTR(query_hca_cap_out, out, capability), len);
    return status;
}

static int drv_query_caps(struct drv *drv, unsigned type, void *cap, size_t len)
{
    return drv_query_caps_of(drv, type, DRV_CAPS_CURRENT, cap, len);
}

/* Sets what handle_hca_cap() sets: 4 KiB UARs, no command checksums, DC if the device has it. */
static int drv_set_caps(struct drv *drv)
{
    struct prm_cmd_hca_cap max[1];
    g_autofree struct prm_set_hca_cap_in *in = g_malloc0(PRM_SIZE(set_hca_cap_in));
    void *section = PRM_PTR(set_hca_cap_in, in, capability);
    struct prm_cmd_hca_cap *cap = section;
    int status = drv_query_caps(drv, PRM_HCA_CAP_TYPE_GENERAL, section,
                                PRM_STRIDE(set_hca_cap_in, capability) *
                                    PRM_COUNT(set_hca_cap_in, capability));

    status = status
                 ? status
                 : drv_query_caps_of(drv, PRM_HCA_CAP_TYPE_GENERAL, DRV_CAPS_MAX, max, sizeof(max));
    if (status) {
        return status;
    }
    PRM_SET(cmd_hca_cap, cap, cmdif_checksum, 0);
    PRM_SET(cmd_hca_cap, cap, uar_4k, 1);
    PRM_SET(cmd_hca_cap, cap, log_uar_page_sz, 0);
    PRM_SET(cmd_hca_cap, cap, dct, PRM_GET(cmd_hca_cap, max, dct));
    PRM_SET(set_hca_cap_in, in, opcode, PRM_CMD_OP_SET_HCA_CAP);
    PRM_SET(set_hca_cap_in, in, op_mod, PRM_HCA_CAP_TYPE_GENERAL << 1);
    status = drv_cmd_simple(drv, in, PRM_SIZE(set_hca_cap_in));
    return status ? status
                  : drv_query_caps(drv, PRM_HCA_CAP_TYPE_GENERAL, drv->cap, sizeof(drv->cap));
}

#define ODP_SRQ ((uint32_t)1 << 26) /* odp_per_transport_service_cap.srq_receive */
#define ODP_ALL ((uint32_t)63 << 26)

/* The operations that the driver switches on in the transport scheme, by the offset of the service
 * in odp_scheme_cap. Those of RC and UD other than SRQ receives are on already. */
static const struct {
    size_t at;
    uint32_t ops;
} drv_odp_services[] = {
    {PRM_OFFSET(odp_scheme_cap, ud_odp_caps), ODP_SRQ},
    {PRM_OFFSET(odp_scheme_cap, rc_odp_caps), ODP_SRQ},
    {PRM_OFFSET(odp_scheme_cap, xrc_odp_caps), ODP_ALL},
    {PRM_OFFSET(odp_scheme_cap, dc_odp_caps), ODP_ALL},
};

/* Switches on-demand paging on, as handle_hca_cap_odp() does: the memory scheme if the device has
 * it with prefetch, else all that the transport scheme can do. */
static int drv_set_odp_caps(struct drv *drv)
{
    struct prm_odp_cap max[1] = {0};
    struct prm_odp_scheme_cap *memory = PRM_PTR(odp_cap, max, memory_page_fault_scheme_cap);
    g_autofree struct prm_set_hca_cap_in *in = g_malloc0(PRM_SIZE(set_hca_cap_in));
    void *section = PRM_PTR(set_hca_cap_in, in, capability);
    int status;

    if (!PRM_GET(cmd_hca_cap, drv->cap, pg)) {
        return 0;
    }
    status = drv_query_caps_of(drv, PRM_HCA_CAP_TYPE_ODP, DRV_CAPS_MAX, max, sizeof(max));
    status = status ? status
                    : drv_query_caps(drv, PRM_HCA_CAP_TYPE_ODP, drv->odp_cap, sizeof(drv->odp_cap));
    if (status) {
        return status;
    }
    if (PRM_GET(odp_cap, max, mem_page_fault) && PRM_GET(odp_scheme_cap, memory, page_prefetch)) {
        PRM_SET(odp_cap, drv->odp_cap, mem_page_fault, 1);
    } else {
        for (size_t i = 0; i < G_N_ELEMENTS(drv_odp_services); i++) {
            size_t at =
                PRM_OFFSET(odp_cap, transport_page_fault_scheme_cap) + drv_odp_services[i].at;
            uint32_t most = (uint32_t)prm_load32(&max->bytes[at]) & drv_odp_services[i].ops;

            prm_store32(&drv->odp_cap->bytes[at],
                        (uint32_t)prm_load32(&drv->odp_cap->bytes[at]) | most);
        }
    }
    memcpy(section, drv->odp_cap, sizeof(drv->odp_cap));
    PRM_SET(set_hca_cap_in, in, opcode, PRM_CMD_OP_SET_HCA_CAP);
    PRM_SET(set_hca_cap_in, in, op_mod, PRM_HCA_CAP_TYPE_ODP << 1);
    status = drv_cmd_simple(drv, in, PRM_SIZE(set_hca_cap_in));
    return status ? status
                  : drv_query_caps(drv, PRM_HCA_CAP_TYPE_ODP, drv->odp_cap, sizeof(drv->odp_cap));
}

/* Queries, once, the sections that users of the driver need (mlx5_query_hca_caps()). */
static int drv_query_sections(struct drv *drv)
{
    const struct {
        bool there;
        uint16_t type;
        void *cap;
        size_t len;
    } sections[] = {
        {PRM_GET(cmd_hca_cap, drv->cap, eth_net_offloads), PRM_HCA_CAP_TYPE_ETHERNET_OFFLOADS,
         drv->eth_cap, sizeof(drv->eth_cap)},
        {PRM_GET(cmd_hca_cap, drv->cap, roce), PRM_HCA_CAP_TYPE_ROCE, drv->roce_cap,
         sizeof(drv->roce_cap)},
        {PRM_GET(cmd_hca_cap, drv->cap, event_cap), PRM_HCA_CAP_TYPE_DEV_EVENT, drv->event_cap,
         sizeof(drv->event_cap)},
        {PRM_GET(cmd_hca_cap, drv->cap, atomic), PRM_HCA_CAP_TYPE_ATOMIC, drv->atomic_cap,
         sizeof(drv->atomic_cap)},
        {PRM_GET(cmd_hca_cap, drv->cap, hca_cap_2), PRM_HCA_CAP_TYPE_GENERAL_2, drv->cap_2,
         sizeof(drv->cap_2)},
        {PRM_GET(cmd_hca_cap, drv->cap, device_memory), PRM_HCA_CAP_TYPE_DEV_MEM,
         drv->device_mem_cap, sizeof(drv->device_mem_cap)},
        {PRM_GET(cmd_hca_cap, drv->cap, crypto), PRM_HCA_CAP_TYPE_CRYPTO, drv->crypto_cap,
         sizeof(drv->crypto_cap)},
        {PRM_GET(cmd_hca_cap, drv->cap, nic_flow_table), PRM_HCA_CAP_TYPE_FLOW_TABLE, drv->flow_cap,
         sizeof(drv->flow_cap)},
        {PRM_GET(cmd_hca_cap, drv->cap, qos), PRM_HCA_CAP_TYPE_QOS, drv->qos_cap,
         sizeof(drv->qos_cap)},
    };
    int status = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(sections) && !status; i++) {
        if (sections[i].there) {
            status = drv_query_caps(drv, sections[i].type, sections[i].cap, sections[i].len);
        }
    }
    return status;
}

static int drv_boot_pages(struct drv *drv)
{
    return drv_satisfy_pages(drv, 1);
}

static int drv_init_pages(struct drv *drv)
{
    return drv_satisfy_pages(drv, 2);
}

static int drv_do_init_hca(struct drv *drv)
{
    struct prm_init_hca_in in[1] = {0};

    PRM_SET(init_hca_in, in, opcode, PRM_CMD_OP_INIT_HCA);
    return drv_cmd_simple(drv, in, sizeof(in));
}

static int drv_alloc_uar(struct drv *drv)
{
    struct prm_alloc_uar_in in[1] = {0};
    struct prm_alloc_uar_out out[1] = {0};
    int status;

    PRM_SET(alloc_uar_in, in, opcode, PRM_CMD_OP_ALLOC_UAR);
    status = drv_cmd(drv, in, sizeof(in), out, sizeof(out));
    drv->uarn = PRM_GET(alloc_uar_out, out, uar);
    return status;
}

static int drv_make_pd(struct drv *drv)
{
    return drv_alloc_pd(drv, &drv->pdn);
}

static int drv_query_special_contexts(struct drv *drv)
{
    struct prm_query_special_contexts_in in[1] = {0};
    struct prm_query_special_contexts_out out[1] = {0};
    int status;

    PRM_SET(query_special_contexts_in, in, opcode, PRM_CMD_OP_QUERY_SPECIAL_CONTEXTS);
    status = drv_cmd(drv, in, sizeof(in), out, sizeof(out));
    drv->resd_lkey = PRM_GET(query_special_contexts_out, out, resd_lkey);
    drv->dump_fill_mkey = PRM_GET(query_special_contexts_out, out, dump_fill_mkey);
    drv->null_mkey = PRM_GET(query_special_contexts_out, out, null_mkey);
    return status;
}

/* Reads the port's MAC and switches RoCE on, as mlx5_nic_vport_enable_roce() does. */
static int drv_setup_vport(struct drv *drv)
{
    struct prm_query_nic_vport_context_in query[1] = {0};
    g_autofree struct prm_query_nic_vport_context_out *reply =
        g_malloc0(PRM_SIZE(query_nic_vport_context_out));
    g_autofree struct prm_modify_nic_vport_context_in *in =
        g_malloc0(PRM_SIZE(modify_nic_vport_context_in));
    struct prm_nic_vport_context *ctx;
    const struct prm_mac_address_layout *mac;
    int status;

    PRM_SET(query_nic_vport_context_in, query, opcode, PRM_CMD_OP_QUERY_NIC_VPORT_CONTEXT);
    status = drv_cmd(drv, query, sizeof(query), reply, PRM_SIZE(query_nic_vport_context_out));
    if (status) {
        return status;
    }
    ctx = PRM_PTR(query_nic_vport_context_out, reply, nic_vport_context);
    mac = PRM_PTR(nic_vport_context, ctx, permanent_address);
    memcpy(drv->mac, &mac->bytes[2], 6);

    PRM_SET(modify_nic_vport_context_in, in, opcode, PRM_CMD_OP_MODIFY_NIC_VPORT_CONTEXT);
    PRM_SET(modify_nic_vport_field_select, PRM_PTR(modify_nic_vport_context_in, in, field_select),
            roce_en, 1);
    ctx = PRM_PTR(modify_nic_vport_context_in, in, nic_vport_context);
    PRM_SET(nic_vport_context, ctx, roce_en, 1);
    return drv_cmd_simple(drv, in, PRM_SIZE(modify_nic_vport_context_in));
}

struct step {
    const char *name;
    int (*run)(struct drv *drv);
};

static const struct step to_init_hca[] = {
    {"ENABLE_HCA", drv_enable_hca},
    {"SET_ISSI", drv_set_issi},
    {"boot pages", drv_boot_pages},
    {"SET_HCA_CAP", drv_set_caps},
    {"SET_HCA_CAP of paging", drv_set_odp_caps},
    {"init pages", drv_init_pages},
    {"INIT_HCA", drv_do_init_hca},
};

static const struct step from_init_hca[] = {
    {"QUERY_HCA_CAP", drv_query_sections},
    {"ALLOC_UAR", drv_alloc_uar},
    {"CREATE_EQ", drv_create_async_eq},
    {"ALLOC_PD", drv_make_pd},
    {"QUERY_SPECIAL_CONTEXTS", drv_query_special_contexts},
    {"NIC vport context", drv_setup_vport},
};

/* Runs the steps. Returns the name of the step that failed, or NULL. */
static const char *drv_run_steps(struct drv *drv, const struct step *steps, size_t n, int *status)
{
    for (size_t i = 0; i < n; i++) {
        *status = steps[i].run(drv);
        if (*status) {
            return steps[i].name;
        }
    }
    return NULL;
}

struct drv *drv_attach(struct pci_dev dev)
{
    struct drv *drv = g_new0(struct drv, 1);

    drv->dev = dev;
    drv->pages = g_hash_table_new(NULL, NULL);
    drv->events = g_array_new(FALSE, FALSE, sizeof(struct drv_event));
    drv_init_dbs(drv);
    if (!drv_wait_initialized(drv)) {
        drv_close(drv);
        return NULL;
    }
    drv_cmdq_setup(drv);
    return drv;
}

const char *drv_init_hca(struct drv *drv, int *status)
{
    return drv_run_steps(drv, to_init_hca, G_N_ELEMENTS(to_init_hca), status);
}

struct drv *drv_open(struct pci_dev dev, GError **err)
{
    struct drv *drv = drv_attach(dev);
    const char *failed;
    int status = 0;

    if (!drv) {
        g_set_error(err, G_FILE_ERROR, G_FILE_ERROR_IO, "the device does not initialize");
        return NULL;
    }
    failed = drv_init_hca(drv, &status);
    if (!failed) {
        failed = drv_run_steps(drv, from_init_hca, G_N_ELEMENTS(from_init_hca), &status);
    }
    if (failed) {
        g_set_error(err, G_FILE_ERROR, G_FILE_ERROR_IO,
                    "device bring-up failed at %s: status %d, syndrome 0x%x", failed, status,
                    drv->syndrome);
        drv_close(drv);
        return NULL;
    }
    return drv;
}

/* -- tear-down ----------------------------------------------------------------------------------
 */

static int drv_dealloc_uar(struct drv *drv)
{
    struct prm_dealloc_uar_in in[1] = {0};

    PRM_SET(dealloc_uar_in, in, opcode, PRM_CMD_OP_DEALLOC_UAR);
    PRM_SET(dealloc_uar_in, in, uar, drv->uarn);
    return drv_cmd_simple(drv, in, sizeof(in));
}

static int drv_teardown_hca(struct drv *drv)
{
    struct prm_teardown_hca_in in[1] = {0};

    PRM_SET(teardown_hca_in, in, opcode, PRM_CMD_OP_TEARDOWN_HCA);
    return drv_cmd_simple(drv, in, sizeof(in));
}

static int drv_disable_hca(struct drv *drv)
{
    struct prm_disable_hca_in in[1] = {0};

    PRM_SET(disable_hca_in, in, opcode, PRM_CMD_OP_DISABLE_HCA);
    return drv_cmd_simple(drv, in, sizeof(in));
}

/* Frees all pages after the device was told to forget everything, so that it cannot use them any
 * more. */
static void drv_free_all_pages(struct drv *drv)
{
    GHashTableIter iter;
    gpointer page;

    g_hash_table_iter_init(&iter, drv->pages);
    while (g_hash_table_iter_next(&iter, NULL, &page)) {
        drv->dev.ops->dma_free(drv->dev.pci, page, PCI_PAGE);
    }
}

unsigned drv_close(struct drv *drv)
{
    unsigned lost;

    if (drv->up) {
        drv_umr_close(drv);
        drv_dealloc_pd(drv, drv->pdn);
        drv_destroy_eqs(drv);
        drv_dealloc_uar(drv);
        drv_teardown_hca(drv);
        while (g_hash_table_size(drv->pages) &&
               drv_reclaim_pages(drv, g_hash_table_size(drv->pages))) {
        }
        drv_disable_hca(drv);
    }
    lost = g_hash_table_size(drv->pages);
    drv_iseg_write(drv, ISEG(cmdq_phy_addr_63_32), 0);
    drv_iseg_write(drv, CMDQ_ADDR_LOW, NIC_INTERFACE_DISABLED << 8);
    drv_free_all_pages(drv);
    drv_free_eqs(drv);
    drv_close_dbs(drv);
    drv_free(drv, &drv->cmdq);
    for (unsigned i = 0; i < DRV_SLOTS; i++) {
        drv_free(drv, &drv->mailboxes[i]);
    }
    g_hash_table_destroy(drv->pages);
    g_array_free(drv->events, TRUE);
    g_free(drv);
    return lost;
}
