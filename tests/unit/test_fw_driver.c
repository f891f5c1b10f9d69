/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements test_fw_driver.h: the driver on a function in the fake host. */
#include <check.h>
#include <string.h>
#include "tests/unit/test_fw_driver.h"
#include "wire/pair.h"

static uint64_t pci_read(void *pci, uint64_t offset, unsigned size)
{
    struct fwd *d = pci;

    d->entries++;
    return fw_mmio_read(d->fw, offset, size);
}

static void pci_write(void *pci, uint64_t offset, uint64_t value, unsigned size)
{
    struct fwd *d = pci;

    d->rung = true;
    d->entries++;
    fw_mmio_write(d->fw, offset, value, size);
}

static void *pci_alloc(void *pci, size_t size, uint64_t *bus)
{
    struct fwd *d = pci;

    *bus = fake_host_alloc(&d->host, size, PCI_PAGE);
    return fake_host_ptr(&d->host, *bus, size);
}

/* All memory is freed with the host. */
static void pci_free(void *pci, void *ptr, size_t size)
{
    (void)pci;
    (void)ptr;
    (void)size;
}

/* The clock stands still as long as there was something to do. */
static bool pci_wait(void *pci, uint64_t timeout_ns)
{
    struct fwd *d = pci;

    if (!d->rung) {
        d->host.now += timeout_ns;
        return false;
    }
    d->rung = false;
    do {
        d->entries++;
    } while (fw_run(d->fw, 16));
    return true;
}

static uint64_t pci_now(void *pci)
{
    return ((struct fwd *)pci)->host.now;
}

static const struct pci_ops pci_ops = {
    .mmio_read = pci_read,
    .mmio_write = pci_write,
    .dma_alloc = pci_alloc,
    .dma_free = pci_free,
    .wait = pci_wait,
    .now = pci_now,
};

static void make_function(struct fwd *d, const char *profile)
{
    struct fw_config config = {.profile = profile, .mac = {0x02, 0, 0, 0, 0, 1}};
    GError *err = NULL;

    memset(d, 0, sizeof(*d));
    fake_host_init(&d->host);
    d->fw = fw_new(&fake_host_ops, &d->host, &config, &err);
    ck_assert_ptr_nonnull(d->fw);
    d->far_pages = 1ull << 40;
}

void fwd_init(struct fwd *d)
{
    fwd_init_as(d, NULL);
}

void fwd_init_as(struct fwd *d, const char *profile)
{
    make_function(d, profile);
    d->drv = drv_attach((struct pci_dev){.ops = &pci_ops, .pci = d});
    ck_assert_ptr_nonnull(d->drv);
}

void fwd_open(struct fwd *d)
{
    GError *err = NULL;

    make_function(d, NULL);
    d->drv = drv_open((struct pci_dev){.ops = &pci_ops, .pci = d}, &err);
    ck_assert_msg(d->drv, "%s", err ? err->message : "");
}

void fwd_clear(struct fwd *d)
{
    if (d->cable[0]) {
        fw_set_wire(d->fw, NULL);
    }
    drv_close(d->drv);
    fw_free(d->fw);
    for (unsigned i = 0; i < G_N_ELEMENTS(d->cable); i++) {
        g_clear_pointer(&d->cable[i], wire_close);
    }
    ck_assert_uint_eq(d->host.open_maps, 0);
    fake_host_clear(&d->host);
}

struct prm_cmd_queue_entry *fwd_entry(struct fwd *d)
{
    void *entry = drv_cmd_entry(d->drv, DRV_SLOT_CMD);

    return entry;
}

struct prm_cmd_if_box *fwd_in_box(struct fwd *d, unsigned i)
{
    void *box = drv_cmd_mailbox(d->drv, DRV_SLOT_CMD, i);

    return box;
}

struct prm_cmd_if_box *fwd_out_box(struct fwd *d, unsigned i)
{
    return fwd_in_box(d, d->in_boxes + i);
}

void fwd_prepare(struct fwd *d, const void *in, size_t in_len, size_t out_len)
{
    d->in_boxes = drv_cmd_prepare(d->drv, DRV_SLOT_CMD, in, in_len, out_len);
}

int fwd_ring(struct fwd *d)
{
    int status = drv_cmd_ring(d->drv, DRV_SLOT_CMD);

    if (d->rung) { /* the driver had no reason to wait: the device did not own the entry */
        pci_wait(d, 0);
    }
    return status == DRV_TIMEOUT ? -1 : drv_delivery_status(d->drv);
}

void fwd_output(struct fwd *d, void *out, size_t out_len)
{
    drv_cmd_output(d->drv, DRV_SLOT_CMD, d->in_boxes, out, out_len);
}

enum syn fwd_cmd(struct fwd *d, const void *in, size_t in_len, void *out, size_t out_len)
{
    int status = drv_cmd(d->drv, in, in_len, out, out_len);
    uint32_t code = PRM_GET(cmd_out, out, syndrome);

    ck_assert_int_ge(status, 0);
    for (enum syn syn = SYN_OK; syn < SYN_COUNT; syn++) {
        if (syn_code(syn) == code) {
            ck_assert_int_eq(status, syn_status(syn));
            return syn;
        }
    }
    ck_abort_msg("syndrome 0x%x is not in the table", code);
}

void fwd_set(void *image, const struct prm_struct *s, const char *path, uint64_t value)
{
    uint8_t *bytes = image;
    g_auto(GStrv) parts = g_strsplit(path, ".", -1);
    const struct prm_field *f = NULL;
    unsigned at = 0;

    for (unsigned i = 0; parts[i]; i++) {
        f = prm_field_find(i ? f->type : s, parts[i]);
        ck_assert_msg(f, "%s has no %s", s->name, path);
        at += f->bit;
    }
    for (unsigned i = 0; i < f->width; i++, at++) {
        bytes[at / 8] &= (uint8_t) ~(0x80 >> at % 8);
        bytes[at / 8] |= (uint8_t)((value >> (f->width - 1 - i) & 1) << (7 - at % 8));
    }
}

enum syn fwd_simple(struct fwd *d, uint16_t opcode, uint16_t op_mod)
{
    struct prm_cmd_in in[4] = {0};
    uint8_t out[16];

    PRM_SET(cmd_in, in, opcode, opcode);
    PRM_SET(cmd_in, in, op_mod, op_mod);
    return fwd_cmd(d, in, sizeof(in), out, sizeof(out));
}

uint32_t fwd_query_pages(struct fwd *d, uint16_t op_mod)
{
    struct prm_query_pages_in in[1] = {0};
    struct prm_query_pages_out out[1];

    PRM_SET(query_pages_in, in, opcode, PRM_CMD_OP_QUERY_PAGES);
    PRM_SET(query_pages_in, in, op_mod, op_mod);
    ck_assert_uint_eq(fwd_cmd(d, in, sizeof(in), out, sizeof(out)), 0);
    return PRM_GET(query_pages_out, out, num_pages);
}

enum syn fwd_give_pages(struct fwd *d, uint32_t n)
{
    size_t len = PRM_SIZE(manage_pages_in) + 8u * n;
    uint8_t out[16];
    struct prm_manage_pages_in *in = g_malloc0(len);
    enum syn status;

    PRM_SET(manage_pages_in, in, opcode, PRM_CMD_OP_MANAGE_PAGES);
    PRM_SET(manage_pages_in, in, op_mod, 1);
    PRM_SET(manage_pages_in, in, input_num_entries, n);
    for (uint32_t i = 0; i < n; i++) {
        PRM_SET_AT(manage_pages_in, in, pas, i, d->far_pages);
        d->far_pages += 4096;
    }
    status = fwd_cmd(d, in, len, out, sizeof(out));
    g_free(in);
    return status;
}

uint32_t fwd_take_pages(struct fwd *d, uint32_t n)
{
    size_t len = PRM_SIZE(manage_pages_out) + 8u * n;
    struct prm_manage_pages_in in[1] = {0};
    struct prm_manage_pages_out *out = g_malloc0(len);
    uint32_t taken;

    PRM_SET(manage_pages_in, in, opcode, PRM_CMD_OP_MANAGE_PAGES);
    PRM_SET(manage_pages_in, in, op_mod, 2);
    PRM_SET(manage_pages_in, in, input_num_entries, n);
    ck_assert_uint_eq(fwd_cmd(d, in, sizeof(in), out, len), 0);
    taken = PRM_GET(manage_pages_out, out, output_num_entries);
    g_free(out);
    return taken;
}

void fwd_bring_up(struct fwd *d)
{
    int status = 0;
    const char *failed = drv_init_hca(d->drv, &status);

    ck_assert_msg(!failed, "%s: status %d", failed, status);
}

void fwd_plug(struct fwd *d)
{
    wire_pair_new(16, d->cable);
    fw_set_wire(d->fw, d->cable[0]);
}

void fwd_leave_alone(struct fwd *d)
{
    g_clear_pointer(&d->cable[1], wire_close);
}

enum syn fwd_reg(struct fwd *d, uint16_t id, bool write, void *reg, size_t size)
{
    size_t in_at = PRM_OFFSET(access_register_in, register_data);
    size_t out_at = PRM_OFFSET(access_register_out, register_data);
    uint8_t in_bytes[1024] = {0}, out[1024];
    void *in = in_bytes;
    enum syn syn;

    ck_assert_uint_le(size, sizeof(out) - MAX(in_at, out_at));
    PRM_SET(access_register_in, in, opcode, PRM_CMD_OP_ACCESS_REG);
    PRM_SET(access_register_in, in, op_mod,
            write ? PRM_ACCESS_REGISTER_OP_WRITE : PRM_ACCESS_REGISTER_OP_READ);
    PRM_SET(access_register_in, in, register_id, id);
    memcpy(in + in_at, reg, size);
    syn = fwd_cmd(d, in, in_at + size, out, out_at + size);
    if (syn == SYN_OK) { /* as mlx5_core_access_reg() */
        memcpy(reg, out + out_at, size);
    }
    return syn;
}

enum syn fwd_query_cap(struct fwd *d, uint16_t section, bool max, void *cap)
{
    struct prm_query_hca_cap_in in[1] = {0};
    uint8_t out[PRM_SIZE(query_hca_cap_out)];
    enum syn status;

    PRM_SET(query_hca_cap_in, in, opcode, PRM_CMD_OP_QUERY_HCA_CAP);
    PRM_SET(query_hca_cap_in, in, op_mod, (uint32_t)section << 1 | !max);
    status = fwd_cmd(d, in, sizeof(in), out, sizeof(out));
    memcpy(cap, out + PRM_OFFSET(query_hca_cap_out, capability), 4096);
    return status;
}
