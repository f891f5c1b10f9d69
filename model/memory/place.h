/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Defines the result of a translation: an address in a space. The host's memory is a space that
 * always exists; DMA reaches it. The device's own memories are further spaces, each with its own
 * operations.
 */
#ifndef HCASIM_MODEL_PLACE_H
#define HCASIM_MODEL_PLACE_H

#include "model/core/hca.h"

enum mem_space_id {
    MEM_SPACE_HOST, /* bus addresses */
    MEM_SPACE_DEVICE,
    MEM_SPACE_SW_ICM, /* model/memory/sw_icm.h */
};
G_STATIC_ASSERT((int)MEM_SPACE_SW_ICM < (int)HCA_MEM_SPACES);

struct mem_place {
    enum mem_space_id space;
    uint64_t address;
};

/* A memory of the device's own. Its operations follow the rules of the host's callbacks in
 * host.h. */
struct mem_space {
    bool (*read)(struct hca *hca, uint64_t addr, void *buf, size_t len);
    bool (*write)(struct hca *hca, uint64_t addr, const void *buf, size_t len);
    bool (*atomic)(struct hca *hca, uint64_t addr, size_t len, struct host_atomic *op);
};

/* Gives a function the space; NULL takes it away. */
static inline void mem_space_set(struct hca *hca, enum mem_space_id id,
                                 const struct mem_space *space)
{
    hca->spaces[id] = space;
}

/* False: the address does not answer. */
static inline bool mem_place_read(struct hca *hca, struct mem_place at, void *buf, size_t len)
{
    if (G_LIKELY(at.space == MEM_SPACE_HOST)) {
        return hca_dma_read_to_send(hca, at.address, buf, len);
    }
    return hca->spaces[at.space] && hca->spaces[at.space]->read(hca, at.address, buf, len);
}

static inline bool mem_place_write(struct hca *hca, struct mem_place at, const void *buf,
                                   size_t len)
{
    if (G_LIKELY(at.space == MEM_SPACE_HOST)) {
        return hca_dma_write(hca, at.address, buf, len);
    }
    return hca->spaces[at.space] && hca->spaces[at.space]->write(hca, at.address, buf, len);
}

static inline bool mem_place_atomic(struct hca *hca, struct mem_place at, size_t len,
                                    struct host_atomic *op)
{
    if (G_LIKELY(at.space == MEM_SPACE_HOST)) {
        return hca_dma_atomic(hca, at.address, len, op);
    }
    return hca->spaces[at.space] && hca->spaces[at.space]->atomic(hca, at.address, len, op);
}

#endif
