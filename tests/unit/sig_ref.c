/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements sig_ref.h: the reference for block signatures. */
#include "tests/unit/sig_ref.h"

#include <glib.h>
#include <string.h>

/* A CRC of the given width, bit by bit (R. Williams' parametrised model). */
static uint64_t ref_crc(unsigned width, uint64_t poly, bool reflected, uint64_t crc,
                        const uint8_t *bytes, size_t len)
{
    uint64_t top = 1ull << (width - 1);

    for (size_t i = 0; i < 8 * len; i++) {
        unsigned bit = bytes[i / 8] >> (reflected ? i % 8 : 7 - i % 8) & 1;
        bool carry = !!(crc & top) != bit;

        crc = crc << 1 ^ (carry ? poly : 0);
    }
    return width == 64 ? crc : crc & ((1ull << width) - 1);
}

static uint64_t ref_reverse(unsigned width, uint64_t number)
{
    uint64_t reversed = 0;

    for (unsigned i = 0; i < width; i++) {
        reversed |= (number >> i & 1) << (width - 1 - i);
    }
    return reversed;
}

uint64_t ref_guard(const struct ref *ref, const uint8_t *bytes, size_t len)
{
    uint64_t ones = ref->ones ? UINT64_MAX : 0;
    uint32_t sum = ones & 0xffff;

    switch (ref->kind) {
    case SIG_T10_CRC:
        return ref_crc(16, 0x8bb7, false, ones & 0xffff, bytes, len);
    case SIG_T10_CSUM:
        for (size_t i = 0; i < len; i++) {
            sum += i % 2 ? bytes[i] : bytes[i] << 8;
            sum = (sum & 0xffff) + (sum >> 16);
        }
        return ~sum & 0xffff;
    case SIG_CRC32:
        return ~ref_reverse(32, ref_crc(32, 0x04c11db7, true, ones & 0xffffffff, bytes, len)) &
               0xffffffff;
    case SIG_CRC32C:
        return ~ref_reverse(32, ref_crc(32, 0x1edc6f41, true, ones & 0xffffffff, bytes, len)) &
               0xffffffff;
    default:
        return ~ref_reverse(64, ref_crc(64, 0xad93d23594c93659, true, ones, bytes, len));
    }
}

size_t ref_bytes(const struct ref *ref)
{
    return ref->kind == SIG_NONE ? 0 : ref->kind == SIG_CRC32 || ref->kind == SIG_CRC32C ? 4 : 8;
}

size_t ref_layout(const struct ref *ref, const uint8_t *data, size_t len, uint8_t *to)
{
    uint8_t *at = to;

    if (ref->kind == SIG_NONE) {
        memcpy(to, data, len);
        return len;
    }
    for (size_t block = 0; block * ref->block < len; block++) {
        size_t part = MIN(len - block * ref->block, ref->block);
        uint64_t guard = ref_guard(ref, data + block * ref->block, part);
        uint32_t tag = ref->tag + (ref->inc ? (uint32_t)block : 0);

        memcpy(at, data + block * ref->block, part);
        at += part;
        if (part < ref->block) {
            break;
        }
        if (ref->kind == SIG_T10_CRC || ref->kind == SIG_T10_CSUM) {
            guard = guard << 48 | (uint64_t)ref->app << 32 | tag;
            guard = GUINT64_SWAP_LE_BE(guard);
        }
        guard = GUINT64_TO_LE(guard);
        memcpy(at, &guard, ref_bytes(ref));
        at += ref_bytes(ref);
    }
    return (size_t)(at - to);
}

static unsigned ref_selector(uint32_t block)
{
    switch (block) {
    case 512:
        return PRM_BSF_BLOCK_512;
    case 520:
        return PRM_BSF_BLOCK_520;
    case 4048:
        return PRM_BSF_BLOCK_4048;
    case 4096:
        return PRM_BSF_BLOCK_4096;
    default:
        return PRM_BSF_BLOCK_4160;
    }
}

static unsigned ref_format(const struct ref *ref)
{
    unsigned flags = PRM_BSF_FORMAT_REPEAT | (ref->ones ? 0 : PRM_BSF_FORMAT_ZERO_SEED);

    switch (ref->kind) {
    case SIG_CRC32:
        return PRM_BSF_FORMAT_CRC32 | flags;
    case SIG_CRC32C:
        return PRM_BSF_FORMAT_CRC32C | flags;
    case SIG_CRC64_XP10:
        return PRM_BSF_FORMAT_CRC64_XP10 | flags;
    default:
        return 0;
    }
}

static void ref_inl(const struct ref *ref, struct prm_bsf_inl *inl)
{
    if (ref->kind != SIG_T10_CRC && ref->kind != SIG_T10_CSUM) {
        return;
    }
    PRM_SET(bsf_inl, inl, valid, 1);
    PRM_SET(bsf_inl, inl, refresh_dif, 1);
    PRM_SET(bsf_inl, inl, dif_apptag, ref->app);
    PRM_SET(bsf_inl, inl, dif_reftag, ref->tag);
    PRM_SET(bsf_inl, inl, sig_type, ref->kind == SIG_T10_CRC ? PRM_BSF_DIF_CRC : PRM_BSF_DIF_IPCS);
    PRM_SET(bsf_inl, inl, repeat_block, 1);
    PRM_SET(bsf_inl, inl, inc_reftag, ref->inc);
    PRM_SET(bsf_inl, inl, dif_app_bitmask_check, 0xffff);
}

uint64_t ref_psv(const struct ref *ref)
{
    uint64_t seed = ref->ones ? UINT64_MAX : 0;

    switch (ref->kind) {
    case SIG_T10_CRC:
    case SIG_T10_CSUM:
        return seed << 48 | (uint64_t)ref->app << 32 | ref->tag;
    case SIG_CRC32:
    case SIG_CRC32C:
        return seed << 32;
    default:
        return seed;
    }
}

void ref_bsf(struct prm_bsf *bsf, const struct ref *mem, const struct ref *wire,
             const uint32_t *psvs)
{
    bool same = mem->kind && mem->kind == wire->kind && mem->block == wire->block;

    PRM_SET(bsf, bsf, size, PRM_BSF_SIZE_WITH_INLINE);
    PRM_SET(bsf, bsf, check_byte_mask, 0xff);
    PRM_SET(bsf, bsf, raw_data_size, 0xffffffff);
    PRM_SET(bsf, bsf, m_psv, psvs[0]);
    PRM_SET(bsf, bsf, w_psv, psvs[1]);
    PRM_SET(bsf, bsf, m_bfs, ref_format(mem));
    PRM_SET(bsf, bsf, w_bfs, ref_format(wire));
    PRM_SET(bsf, bsf, mem_bs_selector, mem->kind ? ref_selector(mem->block) : 0);
    PRM_SET(bsf, bsf, sbs, same);
    PRM_SET(bsf, bsf, wire_bs_selector, same ? 0 : wire->kind ? ref_selector(wire->block) : 0);
    ref_inl(mem, PRM_PTR(bsf, bsf, m_inl));
    ref_inl(wire, PRM_PTR(bsf, bsf, w_inl));
}
