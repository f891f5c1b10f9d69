/* SPDX-License-Identifier: BSD-2-Clause */
/* The least of a driver (tests/unit/test_fw_driver.h). */
#include <check.h>
#include <string.h>
#include "tests/unit/test_fw_driver.h"

#define ENTRY_BYTES 64
#define BOX_BYTES   0x240
#define BOX_DATA    512
#define QUERY_BOOT  1
#define QUERY_INIT  2

static uint8_t xor8(const uint8_t *p, size_t len)
{
    uint8_t sum = 0;

    while (len--) {
        sum ^= *p++;
    }
    return sum;
}

void fwd_init(struct fwd *d)
{
    struct fw_config config = {.mac = {0x02, 0, 0, 0, 0, 1}};
    GError *err = NULL;

    memset(d, 0, sizeof(*d));
    fake_host_init(&d->host);
    d->fw = fw_new(&fake_host_ops, &d->host, &config, &err);
    ck_assert_ptr_nonnull(d->fw);
    d->queue = fake_host_alloc(&d->host, 4096, 4096);
    d->in_boxes = fake_host_alloc(&d->host, FWD_BOXES * FWD_BOX_STRIDE, 1024);
    d->out_boxes = fake_host_alloc(&d->host, FWD_BOXES * FWD_BOX_STRIDE, 1024);
    d->pages = 1ull << 40; /* the device never touches them */
    fw_mmio_write(d->fw, 0x10, d->queue >> 32, 4);
    fw_mmio_write(d->fw, 0x14, d->queue & 0xffffffff, 4);
}

void fwd_clear(struct fwd *d)
{
    fw_free(d->fw);
    ck_assert_uint_eq(d->host.open_maps, 0);
    fake_host_clear(&d->host);
}

uint8_t *fwd_entry(struct fwd *d)
{
    return fake_host_ptr(&d->host, d->queue, ENTRY_BYTES);
}

uint8_t *fwd_in_box(struct fwd *d, unsigned i)
{
    return fake_host_ptr(&d->host, d->in_boxes + i * FWD_BOX_STRIDE, BOX_BYTES);
}

uint8_t *fwd_out_box(struct fwd *d, unsigned i)
{
    return fake_host_ptr(&d->host, d->out_boxes + i * FWD_BOX_STRIDE, BOX_BYTES);
}

static unsigned box_count(size_t len)
{
    return len > 16 ? (unsigned)((len - 16 + BOX_DATA - 1) / BOX_DATA) : 0;
}

static void link_box(uint8_t *box, unsigned block, uint64_t next)
{
    memset(box, 0, BOX_BYTES);
    PRM_SET(cmd_if_box, box, next_pointer_63_32, next >> 32);
    PRM_SET(cmd_if_box, box, next_pointer_31_10, (next & 0xffffffff) >> 10);
    PRM_SET(cmd_if_box, box, block_number, block);
    PRM_SET(cmd_if_box, box, token, FWD_TOKEN);
}

void fwd_prepare(struct fwd *d, const void *in, size_t in_len, size_t out_len)
{
    uint8_t *e = fwd_entry(d);
    unsigned in_n = box_count(in_len), out_n = box_count(out_len);

    ck_assert_uint_le(in_n, FWD_BOXES);
    ck_assert_uint_le(out_n, FWD_BOXES);
    memset(e, 0, ENTRY_BYTES);
    PRM_SET(cmd_queue_entry, e, type, 7);
    PRM_SET(cmd_queue_entry, e, input_length, (uint32_t)in_len);
    PRM_SET(cmd_queue_entry, e, output_length, (uint32_t)out_len);
    PRM_SET(cmd_queue_entry, e, token, FWD_TOKEN);
    PRM_SET(cmd_queue_entry, e, ownership, 1);
    memcpy(e + 0x10, in, in_len < 16 ? in_len : 16);
    if (in_n) {
        PRM_SET(cmd_queue_entry, e, input_mailbox_pointer_63_32, d->in_boxes >> 32);
        PRM_SET(cmd_queue_entry, e, input_mailbox_pointer_31_9, (d->in_boxes & 0xffffffff) >> 9);
    }
    if (out_n) {
        PRM_SET(cmd_queue_entry, e, output_mailbox_pointer_63_32, d->out_boxes >> 32);
        PRM_SET(cmd_queue_entry, e, output_mailbox_pointer_31_9, (d->out_boxes & 0xffffffff) >> 9);
    }
    for (unsigned i = 0; i < in_n; i++) {
        size_t done = 16 + (size_t)i * BOX_DATA, rest = in_len - done;

        link_box(fwd_in_box(d, i), i, i + 1 < in_n ? d->in_boxes + (i + 1) * FWD_BOX_STRIDE : 0);
        memcpy(fwd_in_box(d, i), (const uint8_t *)in + done, rest < BOX_DATA ? rest : BOX_DATA);
    }
    for (unsigned i = 0; i < out_n; i++) {
        link_box(fwd_out_box(d, i), i, i + 1 < out_n ? d->out_boxes + (i + 1) * FWD_BOX_STRIDE : 0);
    }
}

void fwd_sign(struct fwd *d, size_t in_len)
{
    uint8_t *e = fwd_entry(d);

    for (unsigned i = 0; i < box_count(in_len); i++) {
        uint8_t *box = fwd_in_box(d, i);

        PRM_SET(cmd_if_box, box, ctrl_signature,
                (uint8_t)~xor8(box + BOX_DATA, BOX_BYTES - BOX_DATA));
        PRM_SET(cmd_if_box, box, signature, (uint8_t)~xor8(box, BOX_BYTES));
    }
    PRM_SET(cmd_queue_entry, e, signature, (uint8_t)~xor8(e, ENTRY_BYTES));
}

int fwd_ring(struct fwd *d)
{
    const uint8_t *e = fwd_entry(d);

    fw_mmio_write(d->fw, 0x18, 1, 4);
    while (fw_run(d->fw, 16)) {
    }
    return PRM_GET(cmd_queue_entry, e, ownership) ? -1 : (int)PRM_GET(cmd_queue_entry, e, status);
}

void fwd_output(struct fwd *d, void *out, size_t out_len)
{
    memcpy(out, fwd_entry(d) + 0x20, out_len < 16 ? out_len : 16);
    for (unsigned i = 0; i < box_count(out_len); i++) {
        size_t done = 16 + (size_t)i * BOX_DATA, rest = out_len - done;

        memcpy((uint8_t *)out + done, fwd_out_box(d, i), rest < BOX_DATA ? rest : BOX_DATA);
    }
}

uint8_t fwd_cmd(struct fwd *d, const void *in, size_t in_len, void *out, size_t out_len)
{
    fwd_prepare(d, in, in_len, out_len);
    ck_assert_int_eq(fwd_ring(d), PRM_CMD_DELIVERY_STATUS_OK);
    fwd_output(d, out, out_len);
    d->syndrome = PRM_GET(cmd_out, out, syndrome);
    return (uint8_t)PRM_GET(cmd_out, out, status);
}

uint8_t fwd_simple(struct fwd *d, uint16_t opcode, uint16_t op_mod)
{
    uint8_t in[32] = {0}, out[16];

    PRM_SET(cmd_in, in, opcode, opcode);
    PRM_SET(cmd_in, in, op_mod, op_mod);
    return fwd_cmd(d, in, sizeof(in), out, sizeof(out));
}

uint32_t fwd_query_pages(struct fwd *d, uint16_t op_mod)
{
    uint8_t in[16] = {0}, out[16];

    PRM_SET(query_pages_in, in, opcode, PRM_CMD_OP_QUERY_PAGES);
    PRM_SET(query_pages_in, in, op_mod, op_mod);
    ck_assert_uint_eq(fwd_cmd(d, in, sizeof(in), out, sizeof(out)), 0);
    return PRM_GET(query_pages_out, out, num_pages);
}

uint8_t fwd_give_pages(struct fwd *d, uint32_t n)
{
    size_t len = PRM_SIZE(manage_pages_in) + 8u * n;
    uint8_t out[16], *in = g_malloc0(len);
    uint8_t status;

    PRM_SET(manage_pages_in, in, opcode, PRM_CMD_OP_MANAGE_PAGES);
    PRM_SET(manage_pages_in, in, op_mod, 1);
    PRM_SET(manage_pages_in, in, input_num_entries, n);
    for (uint32_t i = 0; i < n; i++) {
        PRM_SET_AT(manage_pages_in, in, pas, i, d->pages);
        d->pages += 4096;
    }
    status = fwd_cmd(d, in, len, out, sizeof(out));
    g_free(in);
    return status;
}

uint32_t fwd_take_pages(struct fwd *d, uint32_t n)
{
    size_t len = PRM_SIZE(manage_pages_out) + 8u * n;
    uint8_t in[16] = {0}, *out = g_malloc0(len);
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
    ck_assert_uint_eq(fwd_simple(d, PRM_CMD_OP_ENABLE_HCA, 0), 0);
    ck_assert_uint_eq(fwd_give_pages(d, fwd_query_pages(d, QUERY_BOOT)), 0);
    ck_assert_uint_eq(fwd_give_pages(d, fwd_query_pages(d, QUERY_INIT)), 0);
    ck_assert_uint_eq(fwd_simple(d, PRM_CMD_OP_INIT_HCA, 0), 0);
}

uint8_t fwd_query_cap(struct fwd *d, uint16_t section, bool max, uint8_t *cap)
{
    uint8_t in[16] = {0}, out[PRM_SIZE(query_hca_cap_out)];
    uint8_t status;

    PRM_SET(query_hca_cap_in, in, opcode, PRM_CMD_OP_QUERY_HCA_CAP);
    PRM_SET(query_hca_cap_in, in, op_mod, (uint32_t)section << 1 | !max);
    status = fwd_cmd(d, in, sizeof(in), out, sizeof(out));
    memcpy(cap, out + PRM_OFFSET(query_hca_cap_out, capability), 4096);
    return status;
}
