/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steering memory (SW ICM): memory of the device in which software lays out its own steering
 * entries (model/steering/ste.h) and lists of header changes.
 *
 * There are two regions, one for each use. QUERY_HCA_CAP (section DEVICE_MEMORY) tells where they
 * are. The driver chooses a range of a region, and takes it with CREATE_GENERAL_OBJECT of type
 * SW_ICM. Ranges do not overlap. Software reads and writes a range by RDMA READ and WRITE through a
 * key of access mode SW_ICM, which references the object. The object references nothing.
 *
 * A range costs memory as it is written, in blocks of SW_ICM_BLOCK bytes, which the function's
 * ledger pays for. Blocks that were never written read as zero. If the ledger refuses a block, the
 * write fails, and with it the request that made it.
 *
 * Addresses here are those that steering entries name. A walk that reads a range that is gone finds
 * no memory there (docs/adr/0040).
 */
#ifndef HCASIM_MODEL_SW_ICM_H
#define HCASIM_MODEL_SW_ICM_H

#include "model/core/hca.h"
#include "prm/prm.h"

#define SW_ICM_LOG_BLOCK 16 /* log_sw_icm_alloc_granularity */
#define SW_ICM_BLOCK     (1u << SW_ICM_LOG_BLOCK)
#define SW_ICM_LOG_MAX   10 /* log2 of the number of objects */

enum sw_icm_region {
    SW_ICM_STE,    /* steering entries */
    SW_ICM_MODIFY, /* lists of header changes */
    SW_ICM_REGIONS
};

/*
 * Steering entries hold bits 39:0 of an address. mlx5dv_dr takes an eighth of a region at a time,
 * but at most 64 MiB of steering entries (dr_domain_check_icm_memory_caps()).
 */
#define SW_ICM_STE_START       (1ull << 32)
#define SW_ICM_LOG_STE_SIZE    29
#define SW_ICM_MODIFY_START    (2ull << 32)
#define SW_ICM_LOG_MODIFY_SIZE 22

struct sw_icm {
    struct obj obj;
    struct prm_sw_icm ctx[1]; /* as CREATE_GENERAL_OBJECT gave it */
    uint8_t region;           /* enum sw_icm_region */
    uint32_t first, n;        /* blocks in the region */
    uint32_t kept;            /* blocks of block[] that sw_icm_trim() has not freed */
    uint8_t *block[];         /* NULL: not written yet */
};

/* For hca_init(). */
void sw_icm_init(struct hca *hca);

/* CREATE_GENERAL_OBJECT; object is a sw_icm. */
enum syn sw_icm_create(struct hca *hca, uint16_t uid, const void *object, uint32_t *num);
/* For the table of object classes. */
bool sw_icm_trim(struct hca *hca, struct obj *obj);
void sw_icm_free(struct hca *hca, struct obj *obj);

/* The object that has the whole range, or NULL. */
struct sw_icm *sw_icm_find(struct hca *hca, uint64_t addr, uint64_t len);

/* Copies len bytes of the region that begin at addr. False: some of them are in no object. */
bool sw_icm_read(struct hca *hca, uint64_t addr, void *buf, size_t len);

#endif
