/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Defines transforms: what the device does to data between the wire and the memory of a key.
 *
 * The data behind a key with a descriptor (BSF) differs on the wire and in memory: signatures are
 * added, removed or replaced. Such a key has a stack of transforms. The top of the stack is what
 * an access sees, the wire domain; an access to byte 0 of the wire domain is an access to the
 * key's first address. Below the last transform is the memory domain: the bytes that the key's
 * translation reaches. Each transform turns an access of the domain above it into accesses of the
 * domain below it.
 *
 * A transform keeps no state that a repeated packet needs. If an access does not begin where the
 * last one ended, the transform reads the beginning of the block from memory again. Therefore
 * packets may be sent again, from the midst of a block on, and several QPs may use the key.
 *
 * No list of another key may name a key with transforms.
 *
 * A key without transforms costs one test of mkey->transform where an access has found the key. A
 * key with transforms never has a cached key run.
 */
#ifndef HCASIM_MODEL_TRANSFORM_H
#define HCASIM_MODEL_TRANSFORM_H

#include "model/memory/mkey.h"

struct transform;

/* An access on its way down the stack. */
struct transform_access {
    struct hca *hca;
    const struct mkey *mkey;
    bool is_write; /* from the wire to memory */
    bool is_noted; /* the refusal is noted for mkey_why() already */
};

struct transform_ops {
    /* The number of bytes above the transform if there are so many below it. */
    uint64_t (*above)(const struct transform *transform, uint64_t below);
    /* The number of bytes above the transform for so many bytes of a local list element. */
    uint64_t (*of_element)(const struct transform *transform, uint64_t len);
    /* Accesses the domain above the transform. A write does not change buf. */
    enum mem_result (*run)(struct transform_access *access, struct transform *transform,
                           uint64_t offset, uint8_t *buf, uint64_t len);
};

struct transform {
    const struct transform_ops *ops;
    struct transform *below; /* NULL: the memory of the key */
};

/* Accesses the memory of the access's key at an offset from the key's first byte
 * (model/memory/mkey_access.c). */
enum mem_result transform_memory(struct transform_access *access, uint64_t offset, uint8_t *buf,
                                 uint64_t len, bool is_write);

/* Accesses the domain below the transform. */
static inline enum mem_result transform_below(struct transform_access *access,
                                              struct transform *transform, uint64_t offset,
                                              uint8_t *buf, uint64_t len, bool is_write)
{
    struct transform *below = transform->below;
    struct transform_access further = *access;
    enum mem_result result;

    if (!below) {
        return transform_memory(access, offset, buf, len, is_write);
    }
    further.is_write = is_write;
    result = below->ops->run(&further, below, offset, buf, len);
    access->is_noted = further.is_noted;
    return result;
}

/* The length of the wire domain, if the memory domain has so many bytes. */
static inline uint64_t transform_length(const struct transform *transform, uint64_t memory)
{
    return transform->ops->above(
        transform, transform->below ? transform_length(transform->below, memory) : memory);
}

/* The same for bytes of a local list element: see mkey_lists_to_wire(). */
static inline uint64_t transform_of_element(const struct transform *transform, uint64_t len)
{
    return transform->ops->of_element(
        transform, transform->below ? transform_of_element(transform->below, len) : len);
}

#endif
