/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allocates UAR pages, and leads a write on a page to the queue that it is for.
 */
#include "model/core/inject.h"
#include "model/core/obj_class.h"
#include "model/core/pd.h"
#include "model/core/trace_event.h"
#include "model/queue/cq.h"
#include "model/queue/eq.h"
#include "model/queue/uar.h"
#include "model/queue/wq.h"
#include "prm/prm.h"

#define BF_BUF_SIZE BLUEFLAME_BYTES
#define BF_BUFS     ((UAR_PAGE_SIZE - PRM_OFFSET(uar, blue_flame)) / BF_BUF_SIZE)
#define BF_CHUNK    64 /* the most that a CPU's write combining delivers at once */
#define NO_LATCH    UINT32_MAX

/* The data written to a BlueFlame buffer since its last doorbell, without a gap. */
struct bf_buf {
    uint16_t len;    /* 0: something came out of order */
    bool was_filled; /* a whole chunk came after the last doorbell */
    uint8_t data[BF_BUF_SIZE];
};

struct uar {
    struct obj obj;
    struct bf_buf bf[BF_BUFS];
    uint32_t latch_offset; /* the 64-bit register whose first half was written; NO_LATCH: none */
    uint32_t latch_value;
};

enum syn uar_alloc(struct hca *hca, uint16_t uid, uint32_t *uarn)
{
    struct uar *uar = obj_make(hca, OBJ_UAR, uid, sizeof(*uar));

    if (!uar) {
        return SYN_NO_MEMORY;
    }
    uar->latch_offset = NO_LATCH;
    *uarn = uar->obj.num;
    return SYN_OK;
}

enum syn uar_dealloc(struct hca *hca, uint16_t uid, uint32_t uarn)
{
    return obj_dealloc(hca, &hca->uars, uid, uarn, SYN_NO_UAR);
}

/* The sender that the first 8 bytes of a control segment name, or NULL. A queue's doorbell and
 * BlueFlame buffers are on the UAR page that the queue was created with. So a process can ring only
 * the queues of pages that it has mapped. */
static struct obj *uar_send_object(struct hca *hca, const struct uar *uar, uint64_t ctrl)
{
    struct obj *obj = obj_find(&hca->qpns, ctrl >> 8 & 0xffffff);
    const struct obj_sender *sender = obj ? obj_class(obj)->sender : NULL;

    return sender && sender->uar(obj) == uar->obj.num ? obj : NULL;
}

static struct wq *uar_send_queue(struct obj *obj)
{
    return obj_class(obj)->sender->wq(obj);
}

/* no_record: the doorbell came to the register for queues without a doorbell record. A queue has
 * only one of the two kinds of registers, because one kind tells the counter of WQEs, and in the
 * other kind the record tells it. False: the device does not see the doorbell, which is a fault
 * that its owner wants. */
static bool uar_send_doorbell(struct hca *hca, const struct uar *uar, uint64_t ctrl, bool no_record)
{
    struct obj *obj = uar_send_object(hca, uar, ctrl);
    unsigned qpn = ctrl >> 8 & 0xffffff;

    if (G_UNLIKELY(hca->inject) && obj && inject_doorbell(hca, qpn)) {
        return false;
    }
    if (!obj) {
        hca_log(hca, HCA_LOG_GUEST_ERROR,
                "send doorbell for QPN 0x%x, which has no send queue on UAR %u", qpn, uar->obj.num);
        return true;
    }
    if (uar_send_queue(obj)->no_record != no_record) {
        hca_log(hca, HCA_LOG_GUEST_ERROR,
                "send doorbell for QPN 0x%x is ignored: it came to the register for queues %s a "
                "doorbell record",
                qpn, no_record ? "without" : "with");
        return true;
    }
    if (G_UNLIKELY(hca->tracing & HCA_TRACES_EVENTS)) {
        trace_event_doorbell(hca, qpn, ctrl);
    }
    blueflame_drop(uar_send_queue(obj));
    obj_class(obj)->sender->doorbell(hca, obj, ctrl);
    return true;
}

/* Collects the two halves of the 64-bit register reg. True: *value is complete. */
static bool uar_collect(struct uar *uar, uint32_t reg, uint32_t offset, uint64_t *value,
                        unsigned size)
{
    if (size == 8 && offset == reg) {
        uar->latch_offset = NO_LATCH;
        return true;
    }
    if (size == 4 && offset == reg) {
        uar->latch_offset = reg;
        uar->latch_value = (uint32_t)*value;
        return false;
    }
    if (size == 4 && offset == reg + 4 && uar->latch_offset == reg) {
        uar->latch_offset = NO_LATCH;
        *value |= (uint64_t)uar->latch_value << 32;
        return true;
    }
    return false;
}

/* Handles 8 bytes at offset at > 0 of a BlueFlame buffer: the WQE after its doorbell. */
static void uar_blueflame(struct hca *hca, const struct uar *uar, struct bf_buf *bf, uint32_t at,
                          uint64_t value)
{
    uint64_t ctrl = prm_load64(bf->data);
    uint32_t wqe_len = (ctrl & 0x3f) * 16;
    struct obj *obj;

    if (at != bf->len || at + 8 > BF_BUF_SIZE) {
        bf->len = 0;
        return;
    }
    prm_store64(bf->data + at, value);
    bf->len += 8;
    if (bf->len % BF_CHUNK) {
        return;
    }
    bf->was_filled = true;
    obj = uar_send_object(hca, uar, ctrl);
    if (obj && wqe_len <= bf->len && wqe_len + BF_CHUNK > bf->len) {
        blueflame_fill(hca, uar_send_queue(obj), (uint16_t)(ctrl >> 40), bf->data, bf->len);
        hca_wake(hca);
    }
}

static bool uar_send_register(struct hca *hca, struct uar *uar, uint32_t offset, uint64_t value,
                              unsigned size)
{
    uint32_t reg = offset & ~(uint32_t)(BF_BUF_SIZE - 1);
    struct bf_buf *bf = &uar->bf[(reg - PRM_OFFSET(uar, blue_flame)) / BF_BUF_SIZE];
    bool was_filled = bf->was_filled;

    if (offset - reg >= 8) {
        if (size == 8 && offset % 8 == 0) {
            uar_blueflame(hca, uar, bf, offset - reg, value);
        } else {
            bf->len = 0;
        }
        return false;
    }
    bf->len = 0;
    if (!uar_collect(uar, reg, offset, &value, size)) {
        return false;
    }
    prm_store64(bf->data, value);
    bf->len = 8;
    bf->was_filled = false;
    if (!uar_send_doorbell(hca, uar, value, false)) {
        bf->len = 0; /* neither does the device see the WQE that follows */
    }
    return was_filled;
}

bool uar_write(struct hca *hca, uint32_t uarn, uint32_t offset, uint64_t value, unsigned size)
{
    struct uar *uar = (struct uar *)obj_find(&hca->uars, uarn);
    uint32_t cq_reg = PRM_OFFSET(uar, cq_db), no_dbr_reg = PRM_OFFSET(uar, send_db_no_dbr);

    if (!uar) {
        hca_log(hca, HCA_LOG_GUEST_ERROR, "doorbell on UAR %u, which is not allocated", uarn);
        return false;
    }
    if (size < 8) {
        value &= (1ULL << 8 * size) - 1;
    }
    if (offset >= PRM_OFFSET(uar, blue_flame) && offset < UAR_PAGE_SIZE) {
        return uar_send_register(hca, uar, offset, value, size);
    } else if (offset == cq_reg || offset == cq_reg + 4) {
        if (uar_collect(uar, cq_reg, offset, &value, size)) {
            cq_doorbell(hca, uarn, (uint32_t)(value >> 32), (uint32_t)value & 0xffffff);
        }
    } else if (offset == no_dbr_reg || offset == no_dbr_reg + 4) {
        if (uar_collect(uar, no_dbr_reg, offset, &value, size)) {
            uar_send_doorbell(hca, uar, value, true);
        }
    } else if ((offset == PRM_OFFSET(uar, eq_db_arm) || offset == PRM_OFFSET(uar, eq_db)) &&
               size >= 4) {
        uint32_t word = size == 8 ? (uint32_t)(value >> 32) : (uint32_t)value;

        eq_doorbell(hca, uarn, word, offset == PRM_OFFSET(uar, eq_db_arm));
    } else {
        hca_log(hca, HCA_LOG_GUEST_ERROR, "UAR %u has no register of %u bytes at 0x%x", uarn, size,
                offset);
    }
    return false;
}
