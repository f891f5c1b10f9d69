/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tunneled atomics: an RDMA WRITE to a key with mkc.tunneled_atomic writes nothing. Its payload
 * says which operation the host's memory controller does on the word at the address.
 *
 * On a card, the key's addresses have a top by which a POWER9 knows such commands. No public source
 * has the encoding of the payload, and no other host has such a controller. Here the payload is a
 * struct prm_tunneled_atomic, and an atomic operation of the host stands for the controller
 * (docs/adr/0032).
 */
#include "model/memory/mkey_priv.h"

struct tunneled_word {
    uint32_t op; /* PRM_TUNNELED_OP_ */
    uint64_t operand;
    unsigned unused; /* upper bits of a word of 8 bytes that the number does not have */
};

static int64_t tunneled_signed(const struct tunneled_word *word, uint64_t number)
{
    return (int64_t)(number << word->unused) >> word->unused;
}

static uint64_t tunneled_pick(bool held_wins, uint64_t held, uint64_t operand)
{
    return held_wins ? held : operand;
}

static uint64_t tunneled_compute(const void *with, uint64_t held)
{
    const struct tunneled_word *word = with;
    uint64_t operand = word->operand;
    int64_t a = tunneled_signed(word, held), b = tunneled_signed(word, operand);

    switch (word->op) {
    case PRM_TUNNELED_OP_ADD:
        return held + operand;
    case PRM_TUNNELED_OP_XOR:
        return held ^ operand;
    case PRM_TUNNELED_OP_OR:
        return held | operand;
    case PRM_TUNNELED_OP_AND:
        return held & operand;
    case PRM_TUNNELED_OP_MAX_UNSIGNED:
        return tunneled_pick(held > operand, held, operand);
    case PRM_TUNNELED_OP_MAX_SIGNED:
        return tunneled_pick(a > b, held, operand);
    case PRM_TUNNELED_OP_MIN_UNSIGNED:
        return tunneled_pick(held < operand, held, operand);
    default:
        return tunneled_pick(a < b, held, operand);
    }
}

/* Whether a payload is an operation: it has this length, and no bits that mean nothing. */
static bool tunneled_is_valid(const void *payload, uint64_t len)
{
    const uint8_t *bytes = payload;
    uint32_t log_size;

    if (len != PRM_SIZE(tunneled_atomic)) {
        return false;
    }
    log_size = PRM_GET(tunneled_atomic, payload, log_size);
    for (unsigned i = 2; i < PRM_OFFSET(tunneled_atomic, operand); i++) {
        if (bytes[i]) {
            return false;
        }
    }
    return (log_size == 2 || log_size == 3) &&
           PRM_GET(tunneled_atomic, payload, op) <= PRM_TUNNELED_OP_MIN_SIGNED &&
           (log_size == 3 || PRM_GET(tunneled_atomic, payload, operand) <= UINT32_MAX);
}

enum mem_result mkey_tunneled(struct hca *hca, const struct mkey *mkey, uint64_t va,
                              const void *payload, uint64_t len)
{
    struct tunneled_word word;
    struct host_atomic atomic = {
        .kind = HOST_ATOMIC_COMPUTE, .compute = tunneled_compute, .with = &word};
    struct mem_place at;
    enum mem_result result;
    bool is_null;
    size_t size;

    if (!tunneled_is_valid(payload, len)) {
        return MEM_BAD_BOUNDS;
    }
    size = (size_t)1 << PRM_GET(tunneled_atomic, payload, log_size);
    word.op = PRM_GET(tunneled_atomic, payload, op);
    word.operand = PRM_GET(tunneled_atomic, payload, operand);
    word.unused = (unsigned)(64 - 8 * size);
    if (va % size) {
        return MEM_BAD_BOUNDS;
    }
    result = mkey_find_place(hca, mkey, va, size, &at, &is_null);
    if (result || is_null) { /* a write to the null key has no effect */
        return result;
    }
    if (at.address % size) {
        return MEM_BAD_BOUNDS;
    }
    if (word.op == PRM_TUNNELED_OP_ADD) {
        atomic = (struct host_atomic){.kind = HOST_ATOMIC_ADD, .operand = word.operand};
    }
    if (!mem_place_atomic(hca, at, size, &atomic)) {
        return MEM_NO_ANSWER;
    }
    return atomic.lost ? MEM_BUSY : MEM_OK;
}
