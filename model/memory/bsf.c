/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the descriptor of block signatures (BSF) that a UMR writes into a key.
 *
 * The basic part describes CRCs of blocks completely. T10-DIF also needs the inline parts. The
 * extended part describes CRCs of transactions. These descriptors are refused: a signature that is
 * not repeated with each block; a transaction with a prologue or an epilogue, whose meaning no
 * public source tells; both kinds of signatures in one domain; long blocks (of transactions, and of
 * 1 GiB) with more than SIG_LONG_MAX bytes of data.
 */
#include <string.h>
#include "model/memory/psv.h"
#include "model/memory/sig.h"
#include "prm/prm.h"

#define BLOCK_1GIB (1u << 30)

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

/* flags: bits of the format that are not the kind of CRC. */
static bool bsf_parse_crc(struct sig_domain *domain, unsigned format, unsigned flags)
{
    for (size_t i = 0; i < G_N_ELEMENTS(bsf_crcs); i++) {
        if (bsf_crcs[i].format == (format & ~flags)) {
            domain->kind = bsf_crcs[i].kind;
            domain->bytes = bsf_crcs[i].bytes;
            return true;
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
        ok = bsf_parse_crc(domain, format, BFS_FLAGS) && format & PRM_BSF_FORMAT_REPEAT;
    } else if (inl && PRM_GET(bsf_inl, inl, valid)) {
        ok = bsf_parse_t10(domain, inl);
    } else {
        return true;
    }
    domain->is_long = selector == PRM_BSF_BLOCK_1_GIB;
    domain->block = domain->is_long ? BLOCK_1GIB : bsf_block_bytes(selector);
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

/* Reads the transaction of one domain, of which the other parts are read already. */
static bool bsf_parse_transaction(struct hca *hca, uint32_t pdn, struct sig_domain *domain,
                                  unsigned format, uint32_t psvn, bool init, bool check_gen)
{
    if (!format) {
        return !psvn && !init && !check_gen;
    }
    if (domain->kind || !bsf_parse_crc(domain, format, PRM_BSF_FORMAT_ZERO_SEED)) {
        return false;
    }
    domain->is_long = domain->is_transaction = true;
    domain->begins = init;
    domain->begin = format & PRM_BSF_FORMAT_ZERO_SEED ? 0
                    : domain->bytes == 4              ? UINT32_MAX
                                                      : UINT64_MAX;
    domain->block = UINT32_MAX;
    domain->bytes = check_gen ? domain->bytes : 0;
    domain->psvn = psvn;
    return psv_find(hca, psvn, pdn);
}

static bool bsf_parse_transactions(struct hca *hca, uint32_t pdn, const struct prm_bsf *bsf,
                                   struct sig *sig)
{
    const uint32_t flags = 1u << 29 | 1u << 28 | 1u << 25 | 1u << 24;

    return !(PRM_GET(bsf, bsf, t_init_gen_pro_size) & ~flags) && !PRM_GET(bsf, bsf, epi_size) &&
           bsf_parse_transaction(hca, pdn, &sig->wire, PRM_GET(bsf, bsf, w_tfs),
                                 PRM_GET(bsf, bsf, w_t_psv), PRM_GET(bsf, bsf, w_t_init),
                                 PRM_GET(bsf, bsf, w_t_check_gen)) &&
           bsf_parse_transaction(hca, pdn, &sig->mem, PRM_GET(bsf, bsf, m_tfs),
                                 PRM_GET(bsf, bsf, m_t_psv), PRM_GET(bsf, bsf, m_t_init),
                                 PRM_GET(bsf, bsf, m_t_check_gen));
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
    if (bytes > len || PRM_GET(bsf, bsf, crypto)) {
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
    ok = ok && bsf_parse_transactions(hca, pdn, bsf, sig);
    if ((sig->mem.is_long || sig->wire.is_long) && sig->raw > SIG_LONG_MAX) {
        return false;
    }
    sig->is_same = PRM_GET(bsf, bsf, sbs);
    return ok && (!sig->is_same || sig->mem.bytes == sig->wire.bytes);
}
