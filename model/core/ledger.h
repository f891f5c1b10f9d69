/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a function's objects take, and how much they may.
 *
 * There are two accounts. hca->memory is the host's memory: whatever the function allocates because
 * its guest asked for something is taken from it first, and what does not fit is refused. So
 * a guest makes this process grow by no more than the owner allows (fw_config.memory). hca->icm is
 * the device's memory in the terms of a card: the pages that the driver gave, and what a card's
 * contexts would take of them (fw/pages.c). An object pays into both when it is made and gets both
 * back when it goes; after a reset nothing is left in either.
 */
#ifndef HCASIM_MODEL_LEDGER_H
#define HCASIM_MODEL_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ledger {
    uint64_t limit, used; /* bytes */
};

/* False: it does not fit, nothing was taken. */
bool ledger_take(struct ledger *ledger, uint64_t bytes);
void ledger_give(struct ledger *ledger, uint64_t bytes);

/* Zeroed memory that the ledger pays for, the allocator's own share included. NULL: refused, or the
 * host has none. */
void *ledger_alloc(struct ledger *ledger, uint64_t bytes);
/* bytes as they were asked for, or as ledger_trim() left them; NULL is fine. */
void ledger_free(struct ledger *ledger, void *block, uint64_t bytes);

/*
 * To let go of a large block is not quick: a page of it costs about what a DMA call does. This
 * gives back LEDGER_TRIM bytes of its end. False: that was done, and *bytes is what is left. True:
 * what is left is little enough to be freed at once.
 */
#define LEDGER_TRIM       (256u << 10)
#define LEDGER_TRIM_PAGES (LEDGER_TRIM >> 12)
bool ledger_trim(struct ledger *ledger, void *block, uint64_t *bytes);

/* What an entry of one of glib's hash tables takes at most: key, value and hash in a table that is
 * one quarter full, of a set the key and the hash; and an empty table. */
#define LEDGER_HASH_ENTRY 80
#define LEDGER_SET_ENTRY  48
#define LEDGER_HASH_TABLE 512

#endif
