/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the descriptor of block signatures (BSF) that a UMR writes into a key.
 *
 * The basic part describes CRCs completely. T10-DIF also needs the inline parts. These
 * descriptors are refused: signatures of transactions (the extended part), blocks of 1 GiB, and a
 * signature that is not repeated with each block. No driver uses the first and the last; blocks of
 * 1 GiB would make the work of one packet unbounded.
 */
#include <string.h>
#include "model/memory/psv.h"
#include "model/memory/sig.h"
#include "prm/prm.h"

/* Bits of w_bfs and m_bfs that are not the kind of CRC. */
#define BFS_FLAGS (PRM_BSF_FORMAT_ZERO_SEED | PRM_BSF_FORMAT_REPEAT)

/* Bytes of data in a block, by enum bsf_block; 0: not supported. */
static const uint32_t bsf_blocks[] = {
    [PRM_BSF_BLOCK_512] = 512,   [PRM_BSF_BLOCK_520] = 520,   [PRM_BSF_BLOCK_4096] = 4096,
    [PRM_BSF_BLOCK_4160] = 4160, [PRM_BSF_BLOCK_4048] = 4048,
};

static const struct {
    uint8_t format, kind, bytes;
} bsf_crcs[] = {
    {PRM_BSF_FORMAT_CRC32, SIG_CRC32, 4},
    {PRM_BSF_FORMAT_CRC32C, SIG_CRC32C, 4},
    {PRM_BSF_FORMAT_CRC64_XP10, SIG_CRC64_XP10, 8},
};

uint32_t bsf_block_bytes(unsigned selector)
{
    return selector < G_N_ELEMENTS(bsf_blocks) ? bsf_blocks[selector] : 0;
}

static bool bsf_parse_crc(struct sig_domain *domain, unsigned format)
{
    for (size_t i = 0; i < G_N_ELEMENTS(bsf_crcs); i++) {
        if (bsf_crcs[i].format == (format & ~(unsigned)BFS_FLAGS)) {
            domain->kind = bsf_crcs[i].kind;
            domain->bytes = bsf_crcs[i].bytes;
            return format & PRM_BSF_FORMAT_REPEAT;
        }
    }
    return false;
}

static bool bsf_parse_t10(struct sig_domain *domain, const struct prm_bsf_inl *inl)
{
    uint32_t type = PRM_GET(bsf_inl, inl, sig_type);

    domain->kind = type == PRM_BSF_DIF_CRC ? SIG_T10_CRC : SIG_T10_CSUM;
    domain->bytes = 8;
    domain->has_inc_ref = PRM_GET(bsf_inl, inl, inc_reftag);
    domain->app_escapes = PRM_GET(bsf_inl, inl, apptag_escape);
    domain->appref_escapes = PRM_GET(bsf_inl, inl, appref_escape);
    domain->app_mask = (uint16_t)PRM_GET(bsf_inl, inl, dif_app_bitmask_check);
    return (type == PRM_BSF_DIF_CRC || type == PRM_BSF_DIF_IPCS) &&
           PRM_GET(bsf_inl, inl, repeat_block);
}

/* Reads the description of one domain. inl is NULL if the descriptor has no inline part. */
static bool bsf_parse_domain(struct hca *hca, uint32_t pdn, struct sig_domain *domain,
                             unsigned format, unsigned selector, const struct prm_bsf_inl *inl)
{
    bool ok = true;

    if (format) {
        ok = bsf_parse_crc(domain, format);
    } else if (inl && PRM_GET(bsf_inl, inl, valid)) {
        ok = bsf_parse_t10(domain, inl);
    } else {
        return true;
    }
    domain->block = bsf_block_bytes(selector);
    return ok && domain->block && psv_find(hca, domain->psvn, pdn);
}

/* Bytes of a descriptor of that size; 0: there is no such size. */
static size_t bsf_bytes(unsigned size)
{
    switch (size) {
    case PRM_BSF_SIZE_BASIC:
        return PRM_OFFSET(bsf, t_init_gen_pro_size);
    case PRM_BSF_SIZE_EXTENDED:
        return PRM_OFFSET(bsf, w_inl);
    default:
        return PRM_SIZE(bsf);
    }
}

static bool bsf_has_transaction(const struct prm_bsf *bsf)
{
    return PRM_GET(bsf, bsf, t_init_gen_pro_size) || PRM_GET(bsf, bsf, epi_size) ||
           PRM_GET(bsf, bsf, w_tfs_psv) || PRM_GET(bsf, bsf, m_tfs_psv);
}

bool bsf_parse(struct hca *hca, uint32_t pdn, const void *descriptor, size_t len, struct sig *sig)
{
    struct prm_bsf bsf[1] = {0};
    size_t bytes;
    bool has_inline, ok;
    unsigned selector;

    if (len < PRM_OFFSET(bsf, t_init_gen_pro_size) || len > sizeof(bsf)) {
        return false;
    }
    memcpy(bsf, descriptor, len);
    bytes = bsf_bytes(PRM_GET(bsf, bsf, size));
    has_inline = bytes == sizeof(bsf);
    if (bytes > len || PRM_GET(bsf, bsf, crypto) || bsf_has_transaction(bsf)) {
        return false;
    }
    sig->check_mask = (uint8_t)PRM_GET(bsf, bsf, check_byte_mask);
    sig->raw = PRM_GET(bsf, bsf, raw_data_size);
    sig->mem.psvn = PRM_GET(bsf, bsf, m_psv);
    sig->wire.psvn = PRM_GET(bsf, bsf, w_psv);
    selector = PRM_GET(bsf, bsf, mem_bs_selector);
    ok = bsf_parse_domain(hca, pdn, &sig->mem, PRM_GET(bsf, bsf, m_bfs), selector,
                          has_inline ? PRM_PTR(bsf, bsf, m_inl) : NULL);
    if (PRM_GET(bsf, bsf, sbs)) {
        sig->copy_mask = (uint8_t)PRM_GET(bsf, bsf, copy_byte_mask);
    } else {
        selector = PRM_GET(bsf, bsf, wire_bs_selector);
    }
    ok = ok && bsf_parse_domain(hca, pdn, &sig->wire, PRM_GET(bsf, bsf, w_bfs), selector,
                                has_inline ? PRM_PTR(bsf, bsf, w_inl) : NULL);
    sig->is_same = PRM_GET(bsf, bsf, sbs);
    return ok && (!sig->is_same || sig->mem.bytes == sig->wire.bytes);
}
