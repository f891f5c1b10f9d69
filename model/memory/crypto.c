/* SPDX-License-Identifier: BSD-2-Clause */
/* Encrypts and decrypts the data behind a key. */
#include <string.h>
#include "model/memory/crypto.h"
#include "model/memory/sig.h"

#define UNIT_MAX 4160

/* The tweak of a unit, as XTS takes it. */
static void crypto_tweak(const struct crypto *crypto, uint64_t unit, uint8_t tweak[AES_BLOCK])
{
    uint64_t low = crypto->tweak[0] + unit, high = crypto->tweak[1] + (low < unit);

    for (unsigned i = 0; i < 8; i++) {
        tweak[i] = (uint8_t)(low >> 8 * i);
        tweak[8 + i] = (uint8_t)(high >> 8 * i);
    }
}

/* Takes a unit from one domain to the other in place. */
static bool crypto_convert(const struct crypto *crypto, struct aes_xts *xts, uint64_t unit,
                           bool to_wire, uint8_t *bytes, uint64_t len)
{
    uint8_t tweak[AES_BLOCK];

    if (len < AES_BLOCK) {
        return true;
    }
    crypto_tweak(crypto, unit, tweak);
    return aes_xts_run(xts, to_wire == crypto_is_of_wire(crypto), tweak, bytes, bytes, len);
}

/* Accesses a part of one unit: bytes [at, at + part) of its size bytes, which begin at start. */
static enum mem_result crypto_run_unit(struct transform_access *access, struct crypto *crypto,
                                       struct aes_xts *xts, uint64_t start, uint64_t size,
                                       uint64_t at, uint8_t *buf, uint64_t part)
{
    struct transform *transform = &crypto->transform;
    uint64_t unit = start / crypto->unit;
    uint8_t bytes[UNIT_MAX];
    enum mem_result result = MEM_OK;

    hca_spend(access->hca, 1);
    if (!access->is_write || part < size) {
        result = transform_below(access, transform, start, bytes, size, false);
        if (result == MEM_OK && !crypto_convert(crypto, xts, unit, true, bytes, size)) {
            result = MEM_BAD_KEY;
        }
    }
    if (result != MEM_OK) {
        return result;
    }
    if (!access->is_write) {
        memcpy(buf, bytes + at, part);
        return MEM_OK;
    }
    memcpy(bytes + at, buf, part);
    return crypto_convert(crypto, xts, unit, false, bytes, size)
               ? transform_below(access, transform, start, bytes, size, true)
               : MEM_BAD_KEY;
}

static enum mem_result crypto_run(struct transform_access *access, struct transform *transform,
                                  uint64_t offset, uint8_t *buf, uint64_t len)
{
    struct crypto *crypto = (struct crypto *)transform;
    struct dek *dek = dek_find(access->hca, crypto->dek, crypto->pdn);

    if (!dek || memcmp(dek->keytag, crypto->keytag, dek->has_keytag ? sizeof(dek->keytag) : 0)) {
        return MEM_BAD_KEY;
    }
    while (len) {
        uint64_t at = offset % crypto->unit, start = offset - at;
        uint64_t size = MIN(crypto->unit, crypto->total - start);
        uint64_t part = MIN(len, size - at);
        enum mem_result result;

        if (offset >= crypto->total) {
            return MEM_BAD_BOUNDS;
        }
        result = crypto_run_unit(access, crypto, dek->xts, start, size, at, buf, part);
        if (result != MEM_OK) {
            return result;
        }
        offset += part;
        buf += part;
        len -= part;
    }
    return MEM_OK;
}

static uint64_t crypto_same(const struct transform *transform, uint64_t len)
{
    (void)transform;
    return len;
}

const struct transform_ops crypto_ops = {
    .above = crypto_same,
    .of_element = crypto_same,
    .run = crypto_run,
};

/* The tweak as a number. A device that encrypts several units takes it big-endian, and counts; a
 * device that encrypts one takes it as XTS does (libmlx5, mlx5_umr_fill_crypto_bsf()). */
static void crypto_take_tweak(struct crypto *crypto, const uint8_t *tweak)
{
    crypto->tweak[0] = crypto->tweak[1] = 0;
    for (unsigned i = 0; i < AES_BLOCK; i++) {
        crypto->tweak[i / 8] |= (uint64_t)tweak[AES_BLOCK - 1 - i] << 8 * (i % 8);
    }
}

bool crypto_parse(struct hca *hca, uint32_t pdn, const struct prm_crypto_bsf *descriptor,
                  struct crypto *crypto)
{
    crypto->unit = bsf_block_bytes(PRM_GET(crypto_bsf, descriptor, bs_pointer));
    crypto->order = (uint8_t)PRM_GET(crypto_bsf, descriptor, enc_order);
    crypto->dek = PRM_GET(crypto_bsf, descriptor, dek_pointer);
    crypto->pdn = pdn;
    crypto_take_tweak(crypto, PRM_PTR(crypto_bsf, descriptor, xts_initial_tweak));
    memcpy(crypto->keytag, PRM_PTR(crypto_bsf, descriptor, keytag), sizeof(crypto->keytag));
    return crypto->unit && crypto->order <= PRM_CRYPTO_ORDER_RAW_MEMORY &&
           PRM_GET(crypto_bsf, descriptor, enc_standard) == PRM_CRYPTO_STANDARD_AES_XTS &&
           dek_find(hca, crypto->dek, pdn);
}
