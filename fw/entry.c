/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lets one call into the function run at a time. Host callbacks may come back into the function
 * (model/core/host.h has the rule). What they ask for while an entry is under way is noted here,
 * and done when that entry ends.
 *
 * Doing a noted request may provoke the next: an interrupt whose address is the function's own
 * doorbell rings itself for ever. Therefore an entry does at most as many notes as fit the queue.
 * The rest waits for the turn that the entry asks for. Until then new writes queue behind the rest,
 * and a due reset keeps the function off. A reset of many objects stays due for as many turns as it
 * takes. Meanwhile the function says that it is initializing, or still says that it is not disabled
 * yet, and takes no write. Drivers wait for that (mlx5_cmd_fast_teardown_hca(), wait_fw_init()).
 */
#include <inttypes.h>
#include <string.h>
#include "fw/fw_internal.h"

#define ENTRY_PIECES 512 /* pieces of a reset in one entry */

bool entry_begin(struct fw *fw)
{
    if (fw->entry.under_way) {
        return false;
    }
    fw->entry.under_way = fw->hca.holding = true;
    return true;
}

/* Whether a write that disables the function waits. Such a write is the last that was taken. */
static bool entry_disable_is_due(const struct fw_entry *e)
{
    const struct fw_write *last;

    if (!e->num_writes) {
        return false;
    }
    last = &e->writes[e->num_writes - 1];
    return iseg_disables(last->offset, last->value, last->size);
}

/* Called after each change of the notes. The function stays off as long as a note that turns it off
 * is waiting. */
static void entry_update(struct fw *fw)
{
    struct fw_entry *e = &fw->entry;

    e->due = !e->retired && (e->reset || e->rewire || e->num_writes);
    fw->hca.off = e->retired || e->reset || entry_disable_is_due(e);
}

/* Does the first noted write. A write that disables the function is done again for each part of the
 * reset. False: the reset has more parts. */
static bool entry_do_first_write(struct fw *fw)
{
    struct fw_entry *e = &fw->entry;
    struct fw_write first = e->writes[0];

    if (iseg_disables(first.offset, first.value, first.size)) {
        fw_do_write(fw, first.offset, first.value, first.size);
        e->num_writes = fw->hca.reset.under_way; /* this write is the last one */
        return !fw->hca.reset.under_way;
    }
    memmove(e->writes, e->writes + 1, --e->num_writes * sizeof(first));
    fw_do_write(fw, first.offset, first.value, first.size);
    return true;
}

/* Does one note. False: it takes longer than one entry may. */
static bool entry_do_one(struct fw *fw)
{
    struct fw_entry *e = &fw->entry;
    bool done = true;

    fw->hca.pieces_end = fw->hca.pieces + ENTRY_PIECES;
    if (e->reset) {
        done = fw_do_reset(fw);
        e->reset = !done;
    } else if (e->rewire) {
        e->rewire = false;
        port_set_wire(&fw->hca, e->wire);
    } else {
        done = entry_do_first_write(fw);
    }
    entry_update(fw);
    return done;
}

static G_GNUC_NO_INLINE void entry_do_what_is_due(struct fw *fw)
{
    struct fw_entry *e = &fw->entry;

    for (unsigned i = 0; i < ENTRY_WRITES && entry_is_due(fw) && entry_do_one(fw); i++) {
    }
    if (e->lost_writes != e->lost_told) {
        hca_log(&fw->hca, HCA_LOG_GUEST_ERROR,
                "%" PRIu64 " writes of the function's own DMA to its registers are lost: "
                "it cannot follow",
                e->lost_writes - e->lost_told);
        e->lost_told = e->lost_writes;
    }
    if (entry_is_due(fw)) {
        fw->hca.ops->wake(fw->hca.host);
    }
}

void entry_end(struct fw *fw)
{
    fw->hca.holding = false;
    /* also if writes were lost, because the writes before them wait */
    if (G_UNLIKELY(entry_is_due(fw))) {
        entry_do_what_is_due(fw);
    }
    fw->entry.under_way = false;
}

void entry_note_write(struct fw *fw, uint64_t offset, uint64_t value, unsigned size)
{
    struct fw_entry *e = &fw->entry;
    bool disables = iseg_disables(offset, value, size);

    if (e->retired || entry_disable_is_due(e)) {
        return; /* the function is gone, or about to be disabled */
    }
    if (e->num_writes >= ENTRY_WRITES + (disables ? 1u : 0u)) {
        e->lost_writes++;
        return;
    }
    e->writes[e->num_writes++] = (struct fw_write){offset, value, (uint8_t)size};
    entry_update(fw);
}

void entry_note_reset(struct fw *fw)
{
    fw->entry.num_writes = 0;
    fw->entry.reset = true;
    entry_update(fw);
}

void entry_note_wire(struct fw *fw, struct wire_port *wire)
{
    fw->entry.rewire = true;
    fw->entry.wire = wire;
    entry_update(fw);
}

void entry_retire(struct fw *fw)
{
    fw->entry.retired = true;
    entry_update(fw);
}
