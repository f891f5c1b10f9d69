/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Implements the transform of signatures (model/memory/sig.h).
 *
 * An access is cut at the ends of blocks and signatures of the wire domain, and its data then at
 * those of the memory domain. Where the data of a block ends, its guard is complete. The guard is
 * computed as the data passes; if a piece does not begin where the last one ended, the beginning of
 * the block is read from memory again. A block has at most 4,160 bytes, and a long block is read
 * from the last state that was kept, so this work is bounded.
 */
#include "model/memory/sig.h"

#include <string.h>
#include "model/memory/mkey_priv.h"
#include "model/memory/psv.h"

/* A place in a domain. */
struct sig_place {
    uint64_t block;
    uint32_t len;      /* bytes of data in the block */
    uint32_t in;       /* offset in the data, or in the signature */
    uint32_t left;     /* bytes to the end of the data or signature */
    bool is_signature; /* it is in the signature behind the data */
};

static struct sig *sig_of(const struct transform *transform)
{
    return (struct sig *)(uintptr_t)transform; /* its first member */
}

/* -- layout of a domain ------------------------------------------------------------------------ */

/* Bytes of the domain that hold so many bytes of data and their signatures. */
static uint64_t sig_domain_len(const struct sig *sig, const struct sig_domain *domain,
                               uint64_t data)
{
    uint64_t blocks = domain->bytes ? data / domain->block : 0;
    bool ends_short = domain->bytes && data % domain->block && data == sig->raw;

    return data + (blocks + ends_short) * domain->bytes;
}

/* Bytes of data in so many bytes of the domain. */
static uint64_t sig_domain_data(const struct sig *sig, const struct sig_domain *domain,
                                uint64_t len)
{
    uint64_t data = len, unit = (uint64_t)domain->block + domain->bytes;

    if (domain->bytes) {
        data = len / unit * domain->block + MIN(len % unit, domain->block);
    }
    return sig->raw == UINT32_MAX ? data : MIN(data, sig->raw);
}

/* Finds the place of a byte of the wire domain. False: it is behind the last one. */
static bool sig_find(const struct sig *sig, const struct sig_domain *domain, uint64_t offset,
                     struct sig_place *place)
{
    uint64_t unit = (uint64_t)domain->block + domain->bytes, in, left;

    place->block = domain->bytes ? offset / unit : 0;
    in = domain->bytes ? offset % unit : offset;
    left = sig->total - MIN(sig->total, place->block * domain->block);
    if (domain->bytes) {
        left = MIN(left, domain->block);
    }
    place->is_signature = in >= left;
    if (!place->is_signature) {
        place->len = (uint32_t)MIN(left, UINT32_MAX);
        place->left = (uint32_t)MIN(left - in, UINT32_MAX);
        place->in = (uint32_t)in; /* without signatures it is not used */
        return true;
    }
    place->len = (uint32_t)left;
    place->in = (uint32_t)MIN(in - left, UINT32_MAX);
    if (!left || place->in >= domain->bytes || (left < domain->block && sig->total != sig->raw)) {
        return false;
    }
    place->left = domain->bytes - place->in;
    return true;
}

/* The offset of a block in the domain. */
static uint64_t sig_block_at(const struct sig_domain *domain, uint64_t block)
{
    return block * ((uint64_t)domain->block + domain->bytes);
}

/* The length of the block's data. */
static uint32_t sig_block_len(const struct sig *sig, const struct sig_domain *domain,
                              uint64_t block)
{
    return (uint32_t)MIN(domain->block, sig->total - block * domain->block);
}

/* Whether a signature follows the block: the last block may be shorter and have none. */
static bool sig_has_signature(const struct sig *sig, const struct sig_domain *domain,
                              uint64_t block)
{
    return sig_block_len(sig, domain, block) == domain->block || sig->total == sig->raw;
}

/* -- signatures -------------------------------------------------------------------------------- */

static uint64_t sig_load(const uint8_t *bytes, size_t len, bool is_big_endian)
{
    uint64_t number = 0;

    for (size_t i = 0; i < len; i++) {
        number = number << 8 | bytes[is_big_endian ? i : len - 1 - i];
    }
    return number;
}

static void sig_store(uint8_t *bytes, size_t len, bool is_big_endian, uint64_t number)
{
    for (size_t i = 0; i < len; i++) {
        bytes[is_big_endian ? len - 1 - i : i] = (uint8_t)(number >> 8 * i);
    }
}

static bool sig_is_t10(const struct sig_domain *domain)
{
    return domain->kind == SIG_T10_CRC || domain->kind == SIG_T10_CSUM;
}

/* The PSV's value as the seed of a guard. */
static uint64_t sig_seed(const struct sig_domain *domain, uint64_t value)
{
    return sig_is_t10(domain) ? value >> 48 : domain->bytes == 4 ? value >> 32 : value;
}

/* The signature of a block with this guard, as a number in the form of struct sig_error. */
static uint64_t sig_make(const struct sig_domain *domain, uint64_t value, uint64_t block,
                         uint64_t guard)
{
    uint32_t ref = (uint32_t)value + (domain->has_inc_ref ? (uint32_t)block : 0);

    if (!sig_is_t10(domain)) {
        return domain->bytes == 4 ? guard << 32 : guard;
    }
    return guard << 48 | (value >> 32 & 0xffff) << 32 | ref;
}

static void sig_put(const struct sig_domain *domain, uint64_t number, uint8_t *field)
{
    sig_store(field, domain->bytes, sig_is_t10(domain), domain->bytes == 4 ? number >> 32 : number);
}

static uint64_t sig_get(const struct sig_domain *domain, const uint8_t *field)
{
    uint64_t number = sig_load(field, domain->bytes, sig_is_t10(domain));

    return domain->bytes == 4 ? number << 32 : number;
}

/* Takes over the bytes of from whose bits are set in the mask. */
static void sig_copy(uint8_t *field, const uint8_t *from, uint8_t mask)
{
    for (unsigned i = 0; i < SIG_FIELD_MAX; i++) {
        if (mask & 0x80 >> i) {
            field[i] = from[i];
        }
    }
}

static enum mem_result sig_value(struct transform_access *access, const struct sig_domain *domain,
                                 uint64_t *value)
{
    const struct psv *psv = psv_find(access->hca, domain->psvn, access->mkey->pdn);

    if (!psv) {
        return MEM_BAD_KEY;
    }
    *value = psv->value;
    return MEM_OK;
}

/* -- errors ------------------------------------------------------------------------------------ */

static void sig_fail(struct transform_access *access, struct sig *sig,
                     const struct sig_domain *domain, uint64_t block, unsigned bit, uint64_t found,
                     uint64_t computed)
{
    const struct mkey *mkey = access->mkey;

    if (sig->count == sig->expected_count) {
        return; /* an earlier error is still kept */
    }
    sig->count = sig->expected_count;
    sig->error = (struct sig_error){
        .key = mkey->obj.num << 8 | mkey->variant,
        .pdn = mkey->pdn,
        .syndrome = (uint16_t)(1u << bit),
        .domain = domain == &sig->wire ? PRM_SIG_ERR_DOMAIN_WIRE : PRM_SIG_ERR_DOMAIN_MEMORY,
        .type = domain->is_transaction ? PRM_SIG_ERR_TYPE_TRANSACTION : PRM_SIG_ERR_TYPE_BLOCK,
        .found = found,
        .computed = computed,
        .offset = sig_block_at(domain, block),
    };
    if (!sig->is_pending) {
        sig->is_pending = true;
        sig->pending = access->hca->sig_pending;
        access->hca->sig_pending = sig;
    }
}

/* Compares a signature with the one that the block should have. Of several errors in a block the
 * first is reported, in the order guard, application tag, reference tag (mlx5dv_mkey_check(3)). */
static void sig_compare(struct transform_access *access, struct sig *sig,
                        const struct sig_domain *domain, uint64_t block, const uint8_t *field,
                        uint64_t computed)
{
    uint64_t found = sig_get(domain, field), mask = 0;
    uint64_t differs;
    bool app_is_escape = (found >> 32 & 0xffff) == 0xffff;

    for (unsigned i = 0; i < domain->bytes; i++) {
        uint8_t byte[SIG_FIELD_MAX] = {0};

        byte[i] = sig->check_mask & 0x80 >> i ? 0xff : 0;
        mask |= sig_get(domain, byte);
    }
    differs = (found ^ computed) & mask;
    if (!sig_is_t10(domain)) {
        if (differs) {
            sig_fail(access, sig, domain, block, PRM_SIG_ERR_SYNDROME_GUARD, found, computed);
        }
        return;
    }
    if (app_is_escape &&
        (domain->app_escapes || (domain->appref_escapes && (uint32_t)found == 0xffffffff))) {
        return;
    }
    if (differs >> 48) {
        sig_fail(access, sig, domain, block, PRM_SIG_ERR_SYNDROME_GUARD, found, computed);
    } else if (differs >> 32 & domain->app_mask) {
        sig_fail(access, sig, domain, block, PRM_SIG_ERR_SYNDROME_APPTAG, found, computed);
    } else if ((uint32_t)differs) {
        sig_fail(access, sig, domain, block, PRM_SIG_ERR_SYNDROME_REFTAG, found, computed);
    }
}

bool sig_take_error(struct hca *hca, uint32_t pdn, struct sig_error *error)
{
    while (hca->sig_pending) {
        struct sig *sig = hca->sig_pending;

        hca->sig_pending = sig->pending;
        sig->pending = NULL;
        sig->is_pending = false;
        if (sig->error.pdn == pdn) {
            *error = sig->error;
            return true;
        }
    }
    return false;
}

void sig_end(struct hca *hca, struct sig *sig)
{
    for (struct sig **at = &hca->sig_pending; *at; at = &(*at)->pending) {
        if (*at == sig) {
            *at = sig->pending;
            return;
        }
    }
}

/* -- guards ------------------------------------------------------------------------------------ */

/* Reads data from memory; the range is in one block of each domain, or longer. */
static enum mem_result sig_read_memory(struct transform_access *access, struct sig *sig,
                                       uint64_t data, uint8_t *buf, uint64_t len)
{
    const struct sig_domain *mem = &sig->mem;

    while (len) {
        uint64_t block = mem->bytes ? data / mem->block : 0;
        uint64_t in = mem->bytes ? data % mem->block : data;
        uint64_t part = mem->bytes ? MIN(len, mem->block - in) : len;
        enum mem_result result = transform_below(access, &sig->transform,
                                                 sig_block_at(mem, block) + in, buf, part, false);

        if (result) {
            return result;
        }
        data += part;
        buf += part;
        len -= part;
    }
    return MEM_OK;
}

/* The state with which the guard of a block begins. A key in a transaction takes it from the PSV.
 * If the transfer begins again, the PSV may have the key's own result: then the key keeps what it
 * took, until somebody else changes the PSV. */
static enum mem_result sig_begin(struct transform_access *access, struct sig_domain *domain,
                                 uint64_t *state)
{
    const struct psv *psv = psv_find(access->hca, domain->psvn, access->mkey->pdn);

    if (!psv) {
        return MEM_BAD_KEY;
    }
    if (!domain->is_transaction) {
        *state = sig_seed(domain, psv->value);
        return MEM_OK;
    }
    if (!domain->begins &&
        (!domain->has_begun || (psv->stamp != domain->began && psv->stamp != domain->ended))) {
        domain->begin = domain->kind == SIG_CRC64_XP10 ? psv->value : psv->value >> 32;
        domain->has_begun = true;
        domain->began = domain->ended = psv->stamp;
    }
    *state = domain->begin;
    return MEM_OK;
}

/* All data of a key in a transaction has passed. */
static enum mem_result sig_end_transaction(struct transform_access *access,
                                           struct sig_domain *domain)
{
    struct psv *psv = psv_find(access->hca, domain->psvn, access->mkey->pdn);

    if (!psv) {
        return MEM_BAD_KEY;
    }
    psv_set(access->hca, psv,
            domain->kind == SIG_CRC64_XP10 ? domain->run.state : domain->run.state << 32);
    domain->ended = psv->stamp;
    return MEM_OK;
}

/* Begins the guard of a block, or of a long block at the last state that was kept. */
static enum mem_result sig_restart(struct transform_access *access, struct sig_domain *domain,
                                   uint64_t block, uint32_t in)
{
    struct sig_run *run = &domain->run;
    unsigned mark = MIN(in / SIG_STRIDE, SIG_MARKS - 1);
    uint64_t state;
    enum mem_result result;

    if (domain->is_long && in) {
        if (run->block != block || !(domain->marked >> mark & 1)) {
            return MEM_BAD_BOUNDS; /* data in front of it has not passed */
        }
        run->state = domain->marks[mark];
        run->done = (uint64_t)mark * SIG_STRIDE;
        return MEM_OK;
    }
    result = sig_begin(access, domain, &state);
    if (result == MEM_OK) {
        *run = (struct sig_run){.block = block, .state = state};
        domain->marked = 1;
        domain->marks[0] = state;
    }
    return result;
}

/* Feeds data of the block to its guard, and keeps states of long blocks. */
static void sig_feed(struct sig_domain *domain, const uint8_t *bytes, size_t len)
{
    struct sig_run *run = &domain->run;

    while (len) {
        size_t part = domain->is_long ? MIN(len, SIG_STRIDE - run->done % SIG_STRIDE) : len;

        run->state = sig_sum_add(domain->kind, run->state, run->done, bytes, part);
        run->done += part;
        bytes += part;
        len -= part;
        if (domain->is_long && run->done % SIG_STRIDE == 0 && run->done < SIG_LONG_MAX) {
            domain->marked |= 1ull << run->done / SIG_STRIDE;
            domain->marks[run->done / SIG_STRIDE] = run->state;
        }
    }
}

/* Brings the guard of a block to its byte `in`. */
static enum mem_result sig_catch_up(struct transform_access *access, struct sig *sig,
                                    struct sig_domain *domain, uint64_t block, uint32_t in)
{
    struct sig_run *run = &domain->run;
    uint8_t bytes[1024];
    enum mem_result result;

    if (run->block == block && run->done == in) {
        return MEM_OK;
    }
    result = sig_restart(access, domain, block, in);
    if (result) {
        return result;
    }
    while (run->done < in) {
        size_t part = MIN(in - run->done, sizeof(bytes));

        result = sig_read_memory(access, sig, block * domain->block + run->done, bytes, part);
        if (result) {
            run->done = UINT64_MAX;
            return result;
        }
        sig_feed(domain, bytes, part);
    }
    return MEM_OK;
}

/* A piece of a block's data passes. */
static enum mem_result sig_pass(struct transform_access *access, struct sig *sig,
                                struct sig_domain *domain, uint64_t data, const uint8_t *buf,
                                uint32_t len)
{
    struct sig_run *run = &domain->run;
    uint64_t block = data / domain->block;
    uint32_t in = (uint32_t)(data % domain->block);
    enum mem_result result;

    if (in == 0) {
        run->done = UINT64_MAX; /* of other data, which may have changed, if this fails */
    }
    result = sig_catch_up(access, sig, domain, block, in);
    if (result == MEM_OK) {
        sig_feed(domain, buf, len);
        if (domain->is_transaction && run->done == sig->total) {
            result = sig_end_transaction(access, domain);
        }
    }
    return result;
}

/* The signature that a block should have, as a number. */
static enum mem_result sig_compute(struct transform_access *access, struct sig *sig,
                                   struct sig_domain *domain, uint64_t block, uint64_t *number)
{
    const struct sig_run *run = &domain->run;
    enum mem_result result =
        sig_catch_up(access, sig, domain, block, sig_block_len(sig, domain, block));
    uint64_t value = 0;

    if (result == MEM_OK) {
        result = sig_value(access, domain, &value);
    }
    *number = sig_make(domain, value, block, sig_sum_end(domain->kind, run->state));
    return result;
}

/* -- from memory to the wire ------------------------------------------------------------------- */

/* Reads the signature of a block in memory. */
static enum mem_result sig_read_field(struct transform_access *access, struct sig *sig,
                                      uint64_t block, uint8_t *field)
{
    return transform_below(access, &sig->transform,
                           sig_block_at(&sig->mem, block) + sig_block_len(sig, &sig->mem, block),
                           field, sig->mem.bytes, false);
}

/* The data of a block in memory has been read: checks its signature. */
static enum mem_result sig_check_memory(struct transform_access *access, struct sig *sig,
                                        uint64_t block)
{
    uint8_t field[SIG_FIELD_MAX] = {0};
    uint64_t computed;
    enum mem_result result;

    if (!sig->check_mask || !sig_has_signature(sig, &sig->mem, block)) {
        return MEM_OK;
    }
    result = sig_read_field(access, sig, block, field);
    if (result == MEM_OK) {
        result = sig_compute(access, sig, &sig->mem, block, &computed);
    }
    if (result == MEM_OK) {
        sig_compare(access, sig, &sig->mem, block, field, computed);
    }
    return result;
}

/* The guards of both domains see a piece of data that is in one block of each. */
static enum mem_result sig_pass_both(struct transform_access *access, struct sig *sig,
                                     uint64_t data, const uint8_t *buf, uint32_t len)
{
    enum mem_result result = MEM_OK;

    if (sig->mem.kind) {
        result = sig_pass(access, sig, &sig->mem, data, buf, len);
    }
    if (result == MEM_OK && sig->wire.kind) {
        result = sig_pass(access, sig, &sig->wire, data, buf, len);
    }
    return result;
}

/* Reads a part of a signature on the wire. */
static enum mem_result sig_send_field(struct transform_access *access, struct sig *sig,
                                      const struct sig_place *place, uint8_t *buf, uint32_t len)
{
    uint8_t field[SIG_FIELD_MAX] = {0}, from[SIG_FIELD_MAX] = {0};
    uint64_t number;
    enum mem_result result = sig_compute(access, sig, &sig->wire, place->block, &number);

    if (result) {
        return result;
    }
    sig_put(&sig->wire, number, field);
    if (sig->is_same && sig->copy_mask) {
        result = sig_read_field(access, sig, place->block, from);
        if (result) {
            return result;
        }
        sig_copy(field, from, sig->copy_mask);
    }
    memcpy(buf, field + place->in, len);
    return MEM_OK;
}

/* -- from the wire to memory ------------------------------------------------------------------- */

/* Writes the signature of a block in memory. from: the signature on the wire, or NULL. */
static enum mem_result sig_write_field(struct transform_access *access, struct sig *sig,
                                       uint64_t block, const uint8_t *from)
{
    uint8_t field[SIG_FIELD_MAX] = {0};
    uint64_t number;
    enum mem_result result;

    if (!sig_has_signature(sig, &sig->mem, block)) {
        return MEM_OK;
    }
    result = sig_compute(access, sig, &sig->mem, block, &number);
    if (result) {
        return result;
    }
    sig_put(&sig->mem, number, field);
    if (from) {
        sig_copy(field, from, sig->copy_mask);
    }
    return transform_below(access, &sig->transform,
                           sig_block_at(&sig->mem, block) + sig_block_len(sig, &sig->mem, block),
                           field, sig->mem.bytes, true);
}

/* Whether the signature in memory waits for the one on the wire. */
static bool sig_copies(const struct sig *sig)
{
    return sig->is_same && sig->copy_mask;
}

/* Where the bytes of an incomplete signature are collected. */
static struct sig_part *sig_find_part(struct sig *sig, uint64_t block)
{
    struct sig_part *part;

    for (unsigned i = 0; i < SIG_PARTS; i++) {
        if (sig->parts[i].have && sig->parts[i].block == block) {
            return &sig->parts[i];
        }
    }
    part = &sig->parts[sig->next_part++ % SIG_PARTS];
    *part = (struct sig_part){.block = block};
    return part;
}

/* A part of a signature on the wire has come. */
static enum mem_result sig_receive_field(struct transform_access *access, struct sig *sig,
                                         const struct sig_place *place, const uint8_t *buf,
                                         uint32_t len)
{
    struct sig_part *part = sig_find_part(sig, place->block);
    struct sig_domain *wire = &sig->wire;
    uint64_t computed;
    enum mem_result result;

    memcpy(part->bytes + place->in, buf, len);
    part->have |= (uint8_t)(((1u << len) - 1) << place->in);
    if (place->in + len < wire->bytes) {
        return MEM_OK;
    }
    result = sig_compute(access, sig, wire, place->block, &computed);
    if (result == MEM_OK && sig_copies(sig)) {
        result = sig_write_field(access, sig, place->block, part->bytes);
    }
    if (result == MEM_OK) {
        sig_compare(access, sig, wire, place->block, part->bytes, computed);
        part->have = 0;
    }
    return result;
}

/* -- both directions --------------------------------------------------------------------------- */

/* The data of a block of the memory domain has passed. */
static enum mem_result sig_block_passed(struct transform_access *access, struct sig *sig,
                                        uint64_t block)
{
    if (!access->is_write) {
        return sig_check_memory(access, sig, block);
    }
    return sig_copies(sig) ? MEM_OK : sig_write_field(access, sig, block, NULL);
}

/* Transfers data that is in one block of the wire domain. */
static enum mem_result sig_run_data(struct transform_access *access, struct sig *sig, uint64_t data,
                                    uint8_t *buf, uint64_t len)
{
    const struct sig_domain *mem = &sig->mem;

    while (len) {
        uint64_t block = mem->bytes ? data / mem->block : 0;
        uint64_t in = mem->bytes ? data % mem->block : data;
        uint64_t left = mem->bytes ? sig_block_len(sig, mem, block) - in : len;
        uint32_t part = (uint32_t)MIN(len, left);
        enum mem_result result = transform_below(
            access, &sig->transform, sig_block_at(mem, block) + in, buf, part, access->is_write);

        if (result == MEM_OK) {
            result = sig_pass_both(access, sig, data, buf, part);
        }
        if (result == MEM_OK && mem->bytes && part == left) {
            result = sig_block_passed(access, sig, block);
        }
        if (result) {
            return result;
        }
        data += part;
        buf += part;
        len -= part;
    }
    return MEM_OK;
}

static enum mem_result sig_run_field(struct transform_access *access, struct sig *sig,
                                     const struct sig_place *place, uint8_t *buf, uint32_t len)
{
    return access->is_write ? sig_receive_field(access, sig, place, buf, len)
                            : sig_send_field(access, sig, place, buf, len);
}

static enum mem_result sig_run(struct transform_access *access, struct transform *transform,
                               uint64_t offset, uint8_t *buf, uint64_t len)
{
    struct sig *sig = sig_of(transform);
    const struct sig_domain *wire = &sig->wire;

    while (len) {
        struct sig_place place;
        uint32_t part;
        enum mem_result result;

        if (!sig_find(sig, wire, offset, &place)) {
            return MEM_BAD_BOUNDS;
        }
        part = (uint32_t)MIN(len, place.left);
        result = place.is_signature
                     ? sig_run_field(access, sig, &place, buf, part)
                     : sig_run_data(access, sig,
                                    wire->bytes ? place.block * wire->block + place.in : offset,
                                    buf, part);
        if (result) {
            return result;
        }
        offset += part;
        buf += part;
        len -= part;
    }
    return MEM_OK;
}

static uint64_t sig_above(const struct transform *transform, uint64_t below)
{
    const struct sig *sig = sig_of(transform);

    return sig_domain_len(sig, &sig->wire, sig_domain_data(sig, &sig->mem, below));
}

/* An element counts the signatures that both domains have, and no others (docs/adr/0026). */
static uint64_t sig_of_element(const struct transform *transform, uint64_t len)
{
    const struct sig *sig = sig_of(transform);
    bool both = sig->mem.bytes && sig->wire.bytes;

    if (both && sig->is_same) {
        return len;
    }
    return sig_domain_len(sig, &sig->wire, both ? sig_domain_data(sig, &sig->mem, len) : len);
}

const struct transform_ops sig_ops = {
    .above = sig_above,
    .of_element = sig_of_element,
    .run = sig_run,
};

void sig_changed(struct sig *sig, uint64_t memory)
{
    sig->total = sig_domain_data(sig, &sig->mem, memory);
    sig->mem.run.done = sig->wire.run.done = UINT64_MAX;
    sig->mem.marked = sig->wire.marked = 0;
    memset(sig->parts, 0, sizeof(sig->parts));
}
