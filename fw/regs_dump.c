/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements RESOURCE_DUMP: what the device knows of an object, for `devlink health dump` and `rdma
 * resource show -dd` (driver: diag/rsc_dump.c).
 *
 * A dump is a list of segments: the device, the request, then the menu of all kinds of dumps or one
 * object, then the end. If it is longer than the reader's memory, the reader repeats the access
 * with what the device answered; device_opaque says where the next part begins. Each part is made
 * anew, so a dump whose object changes meanwhile shows parts of two moments. A reader that changes
 * device_opaque gets another part of the same dump.
 *
 * Dumps of objects are layouts of the PRM: the context of a queue (FULL_), or the output of a query
 * command (PRM_QUERY_). FULL_QPC knows all queues that share the numbers of QPs.
 */
#include <string.h>
#include "fw/regs.h"
#include "model/eth/eth_queue.h"
#include "model/memory/mkey.h"
#include "model/queue/cq.h"
#include "model/queue/eq.h"
#include "model/rdma/qp.h"

#define DUMP_MAX     1024 /* bytes of a whole dump; dump_make() asserts it */
#define DUMP_VERSION 1
#define DUMP_INLINE  (PRM_COUNT(resource_dump, inline_data) * 4)

struct dump {
    uint8_t bytes[DUMP_MAX];
    size_t len;
};

static enum syn dump_qpc(struct hca *hca, uint32_t number, void *to)
{
    enum syn syn = qp_query(hca, number, to);

    if (syn == SYN_OK || eth_sq_query(hca, number, to) == SYN_OK) {
        return SYN_OK;
    }
    return eth_rq_query(hca, number, to) == SYN_OK ? SYN_OK : syn;
}

static enum syn dump_cqc(struct hca *hca, uint32_t number, void *to)
{
    return cq_query(hca, number, to);
}

static enum syn dump_eqc(struct hca *hca, uint32_t number, void *to)
{
    uint64_t mask[4];

    return eq_query(hca, number, to, mask);
}

static enum syn dump_query_qp(struct hca *hca, uint32_t number, void *to)
{
    return qp_query(hca, number, PRM_PTR(query_qp_out, to, qpc));
}

static enum syn dump_query_cq(struct hca *hca, uint32_t number, void *to)
{
    return cq_query(hca, number, PRM_PTR(query_cq_out, to, cq_context));
}

static enum syn dump_query_mkey(struct hca *hca, uint32_t number, void *to)
{
    return mkey_query(hca, number, PRM_PTR(query_mkey_out, to, memory_key_mkey_entry));
}

static const struct dump_kind {
    uint16_t type; /* enum prm_dump_segment */
    uint16_t size; /* bytes of the dump of one object */
    const char *name, *index;
    enum syn (*fill)(struct hca *hca, uint32_t number, void *to);
} kinds[] = {
#define KIND(name, bytes, index, fn)                                                               \
    {                                                                                              \
        PRM_DUMP_SEGMENT_##name, bytes, #name, index, fn                                           \
    }
    /* the contexts of SQs and RQs are longer than that of a QP */
    KIND(FULL_QPC, PRM_SIZE(sqc), "QPN", dump_qpc),
    KIND(FULL_CQC, PRM_SIZE(cqc), "CQN", dump_cqc),
    KIND(FULL_EQC, PRM_SIZE(eqc), "EQN", dump_eqc),
    KIND(PRM_QUERY_QP, PRM_SIZE(query_qp_out), "QPN", dump_query_qp),
    KIND(PRM_QUERY_CQ, PRM_SIZE(query_cq_out), "CQN", dump_query_cq),
    KIND(PRM_QUERY_MKEY, PRM_SIZE(query_mkey_out), "MKEY INDEX", dump_query_mkey),
#undef KIND
};

G_STATIC_ASSERT(PRM_SIZE(sqc) >= PRM_SIZE(qpc) && PRM_SIZE(sqc) == PRM_SIZE(rqc));

static void *dump_segment(struct dump *d, uint16_t type, size_t bytes)
{
    void *segment = d->bytes + d->len;

    g_assert(bytes % 4 == 0 && d->len + bytes <= sizeof(d->bytes));
    memset(segment, 0, bytes);
    PRM_SET(resource_dump_segment_header, segment, length_dw, (uint32_t)bytes / 4);
    PRM_SET(resource_dump_segment_header, segment, segment_type, type);
    d->len += bytes;
    return segment;
}

static void dump_text(uint8_t *field, const char *text, size_t size)
{
    memcpy(field, text, MIN(strlen(text), size - 1)); /* the field is zero before */
}

static void dump_menu(struct dump *d)
{
    size_t n = G_N_ELEMENTS(kinds), at = PRM_SIZE(resource_dump_menu_segment);
    uint8_t *menu =
        dump_segment(d, PRM_DUMP_SEGMENT_MENU, at + n * PRM_SIZE(resource_dump_menu_record));

    PRM_SET(resource_dump_menu_segment, (void *)menu, num_of_records, (uint32_t)n);
    for (size_t i = 0; i < n; i++) {
        void *record = menu + at + i * PRM_SIZE(resource_dump_menu_record);

        PRM_SET(resource_dump_menu_record, record, support_index1, 1);
        PRM_SET(resource_dump_menu_record, record, must_have_index1, 1);
        PRM_SET(resource_dump_menu_record, record, segment_type, kinds[i].type);
        dump_text(PRM_PTR(resource_dump_menu_record, record, segment_name), kinds[i].name,
                  PRM_COUNT(resource_dump_menu_record, segment_name));
        dump_text(PRM_PTR(resource_dump_menu_record, record, index1_name), kinds[i].index,
                  PRM_COUNT(resource_dump_menu_record, index1_name));
    }
}

static void dump_object(struct hca *hca, struct dump *d, const struct dump_kind *kind,
                        uint32_t number)
{
    size_t before = d->len, head = PRM_SIZE(resource_dump_resource_segment);
    uint8_t *segment = dump_segment(d, kind->type, head + kind->size);
    enum syn syn = kind->fill(hca, number, segment + head);

    PRM_SET(resource_dump_resource_segment, (void *)segment, index1, number);
    if (syn != SYN_OK) {
        void *error;

        d->len = before;
        error = dump_segment(d, PRM_DUMP_SEGMENT_ERROR, PRM_SIZE(resource_dump_error_segment));
        PRM_SET(resource_dump_error_segment, error, syndrome_id, syn_code(syn) & 0xffff);
        dump_text(PRM_PTR(resource_dump_error_segment, error, error), syn_text(syn),
                  PRM_COUNT(resource_dump_error_segment, error));
    }
}

static void dump_make(struct fw *fw, const void *in, const struct dump_kind *kind, struct dump *d)
{
    void *info = dump_segment(d, PRM_DUMP_SEGMENT_INFO, PRM_SIZE(resource_dump_info_segment));
    void *cmd;

    PRM_SET(resource_dump_info_segment, info, dump_version, DUMP_VERSION);
    PRM_SET(resource_dump_info_segment, info, hw_version, fw->profile->pci.revision);
    PRM_SET(resource_dump_info_segment, info, fw_version,
            (uint32_t)fw->profile->fw_major << 16 | fw->profile->fw_minor);
    cmd = dump_segment(d, PRM_DUMP_SEGMENT_COMMAND, PRM_SIZE(resource_dump_command_segment));
    PRM_SET(resource_dump_command_segment, cmd, segment_called,
            PRM_GET(resource_dump, in, segment_type));
    PRM_SET(resource_dump_command_segment, cmd, vhca_id, PRM_GET(resource_dump, in, vhca_id));
    PRM_SET(resource_dump_command_segment, cmd, index1, PRM_GET(resource_dump, in, index1));
    PRM_SET(resource_dump_command_segment, cmd, index2, PRM_GET(resource_dump, in, index2));
    PRM_SET(resource_dump_command_segment, cmd, num_of_obj1,
            PRM_GET(resource_dump, in, num_of_obj1));
    PRM_SET(resource_dump_command_segment, cmd, num_of_obj2,
            PRM_GET(resource_dump, in, num_of_obj2));
    if (kind) {
        dump_object(&fw->hca, d, kind, PRM_GET(resource_dump, in, index1));
    } else {
        dump_menu(d);
    }
    dump_segment(d, PRM_DUMP_SEGMENT_TERMINATE, PRM_SIZE(resource_dump_terminate_segment));
}

/* Writes to the reader's memory, with the rights of its key. */
static enum syn dump_write(struct hca *hca, const void *in, const uint8_t *bytes, size_t len)
{
    uint32_t key = PRM_GET(resource_dump, in, mkey);
    struct prm_mkc mkc[1];
    enum syn syn = mkey_query(hca, key >> 8, mkc);

    if (syn != SYN_OK) {
        return syn;
    }
    return mkey_write(hca, key, PRM_GET(mkc, mkc, pd), PRM_GET(resource_dump, in, address), bytes,
                      len, MEM_LOCAL_WRITE) == MEM_OK
               ? SYN_OK
               : SYN_REG_VALUE;
}

static enum syn regs_dump(struct fw *fw, const void *in, void *out)
{
    uint32_t type = PRM_GET(resource_dump, in, segment_type);
    uint64_t at = PRM_GET(resource_dump, in, device_opaque);
    bool is_inline = PRM_GET(resource_dump, in, inline_dump);
    size_t room = PRM_GET(resource_dump, in, size), len;
    const struct dump_kind *kind = NULL;
    struct dump d = {.len = 0};
    enum syn syn;

    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        kind = kinds[i].type == type ? &kinds[i] : kind;
    }
    if ((!kind && type != PRM_DUMP_SEGMENT_MENU) || PRM_GET(resource_dump, in, vhca_id) ||
        PRM_GET(resource_dump, in, index2) || PRM_GET(resource_dump, in, num_of_obj1) > 1) {
        return SYN_REG_VALUE;
    }
    dump_make(fw, in, kind, &d);
    room = is_inline ? DUMP_INLINE : room;
    if (at >= d.len || at % 4 || room < 4) {
        return SYN_REG_VALUE;
    }
    len = MIN(room / 4 * 4, d.len - (size_t)at);
    memcpy(out, in, PRM_SIZE(resource_dump));
    if (is_inline) {
        memset(PRM_PTR(resource_dump, out, inline_data), 0, DUMP_INLINE);
        memcpy(PRM_PTR(resource_dump, out, inline_data), d.bytes + at, len);
    } else {
        syn = dump_write(&fw->hca, in, d.bytes + at, len);
        if (syn != SYN_OK) {
            return syn;
        }
    }
    PRM_SET(resource_dump, out, size, (uint32_t)len);
    PRM_SET(resource_dump, out, more_dump, at + len < d.len);
    PRM_SET(resource_dump, out, device_opaque, at + len < d.len ? at + len : 0);
    PRM_SET(resource_dump, out, seq_num, (PRM_GET(resource_dump, in, seq_num) + 1) & 0xf);
    return SYN_OK;
}

/* Drivers ask by a write, tools by a query. */
const struct fw_reg regs_of_dump[] = {
    {PRM_REG_ID_RESOURCE_DUMP, PRM_SIZE(resource_dump), false, regs_dump, regs_dump},
    {0},
};
