/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accounts for the memory that a function's objects take, and limits it.
 *
 * There are two accounts. hca->memory is the host's memory: whatever the function allocates because
 * its guest asked for something is taken from this account first. If it does not fit, the request
 * is refused. So a guest makes this process grow by no more than the owner allows
 * (fw_config.memory). hca->icm is the device's memory as a card counts it: the pages that the
 * driver gave, and the bytes that a card's contexts would take of them (fw/pages.c). An object pays
 * into both accounts when it is made and gets both back when it is destroyed; after a reset both
 * accounts are empty.
 */
#ifndef HCASIM_MODEL_LEDGER_H
#define HCASIM_MODEL_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ledger {
    uint64_t limit, used; /* bytes */
};

/* False: it does not fit; then nothing was taken. */
bool ledger_take(struct ledger *ledger, uint64_t bytes);
void ledger_give(struct ledger *ledger, uint64_t bytes);

/* Zeroed memory that the ledger pays for, including the allocator's overhead. NULL: refused, or the
 * host has no memory. */
void *ledger_alloc(struct ledger *ledger, uint64_t bytes);
/* bytes is the size that was asked for, or that ledger_trim() left. block may be NULL. */
void ledger_free(struct ledger *ledger, void *block, uint64_t bytes);

/*
 * Freeing a large block takes time: each of its pages costs about as much as a DMA call. This
 * function gives back the last LEDGER_TRIM bytes of the block. False: bytes were given back, and
 * *bytes is the new size. True: the rest is small enough to be freed at once.
 */
#define LEDGER_TRIM       (256u << 10)
#define LEDGER_TRIM_PAGES (LEDGER_TRIM >> 12)
bool ledger_trim(struct ledger *ledger, void *block, uint64_t *bytes);

/* The most bytes that glib's hash tables take: per entry of a table (key, value and hash), per
 * entry of a set (key and hash), both when one quarter full, and for an empty table. */
#define LEDGER_HASH_ENTRY 80
#define LEDGER_SET_ENTRY  48
#define LEDGER_HASH_TABLE 512

#endif
