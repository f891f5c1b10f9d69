/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bench for memory keys: one HCA, a row of pages filled with a pattern that identifies each
 * byte's place, keys over them, and UMRs.
 */
#ifndef HCASIM_TESTS_MKEY_BENCH_H
#define HCASIM_TESTS_MKEY_BENCH_H

#include "model/memory/mkey.h"
#include "tests/unit/rig.h"

#define VARIANT 0x5a
#define PAGE    4096u
#define PAGES   16
#define VA      0x7f0000000000ull
#define ALL                                                                                        \
    (MEM_LOCAL_READ | MEM_LOCAL_WRITE | MEM_REMOTE_READ | MEM_REMOTE_WRITE | MEM_REMOTE_ATOMIC)
/* Bits of wqe_umr_ctrl_seg.mkey_mask; the bits of all rights; the bits that registration sets. */
#define MASK(x)     (1ull << PRM_MKEY_MASK_##x)
#define ACCESS_MASK (MASK(LR) | MASK(LW) | MASK(RR) | MASK(RW) | MASK(A))
#define ENABLE_MASK                                                                                \
    (MASK(KEY) | MASK(FREE) | ACCESS_MASK | MASK(PD) | MASK(LEN) | MASK(PAGE_SIZE) |               \
     MASK(START_ADDR))

/* create_scattered(): the offset of its first byte in its page, and its length. */
#define IN_PAGE 0x123
#define LEN     (4 * PAGE - IN_PAGE - 100)

extern struct rig rig;
extern uint64_t mem;                /* bus address of page 0 */
extern const unsigned scattered[4]; /* the pages of create_scattered() in order */

struct umr {
    struct prm_wqe_umr_ctrl_seg ctrl[1];
    struct prm_mkc mkc[1];
    uint8_t xlt[1024];
    struct mkey_umr req;
};

uint8_t *ram(uint64_t offset);
uint8_t pattern(uint64_t offset);
void setup(void);
void teardown(void);

/* Fills in a context in use with all rights and no room for translations. */
void fill_mkc(struct prm_mkc *mkc, unsigned mode, uint64_t start, uint64_t len);
uint32_t create(const struct prm_mkc *mkc, const void *xlt, size_t xlt_len);

/* Makes an MTT key of n of the pages, by their numbers, from va start. */
uint32_t create_mtt(uint64_t start, uint64_t len, const unsigned *pages, unsigned n);
void klm(void *list, unsigned i, uint32_t count, uint32_t key, uint64_t va);
uint32_t create_klm(unsigned mode, uint64_t start, uint64_t len, const void *list, unsigned n);
uint32_t create_scattered(void);

/* Returns the address in memory of byte `at` of that key. */
uint64_t scattered_at(uint64_t at);
enum mem_result peek(uint32_t key, uint64_t va, uint8_t *byte);
void umr_start(struct umr *umr, uint32_t key, uint64_t mask);
void umr_mtts(struct umr *umr, const unsigned *pages, unsigned n);

/* Makes a key as in the driver's cache: free, in the driver's PD, with room for ndescs pages. */
uint32_t create_cached(unsigned ndescs, uint32_t pdn);

#endif
