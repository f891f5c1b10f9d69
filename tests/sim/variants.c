/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/sim/variants.h"
#include <string.h>
#include "fw/cmd_table.h"
#include "tests/unit/crypto_in.h"

/* -- keys -------------------------------------------------------------------------------------- */

static struct prm_mkc *variant_mkc(void *in)
{
    return PRM_PTR(create_mkey_in, (struct prm_create_mkey_in *)in, memory_key_mkey_entry);
}

static size_t variant_paged_key(struct guest *g, void *in)
{
    struct prm_create_mkey_in *cmd = in;
    uint8_t *mtt = PRM_PTR(create_mkey_in, cmd, klm_pas_mtt);

    PRM_SET(create_mkey_in, cmd, opcode, PRM_CMD_OP_CREATE_MKEY);
    drv_fill_paged_key(cmd, g->node->drv->pdn, g->mem->va,
                       PAGED_PAGES * PCI_PAGE - g->mem->va % PCI_PAGE, PAGED_PAGES);
    prm_store64(mtt + 8, g->mem->mem.bus | 1);
    prm_store64(mtt + 16, g->mem->mem.bus | 3);
    return PRM_SIZE(create_mkey_in) + PAGED_PAGES * 8;
}

/* A free key that a UMR may give pieces, and a descriptor of so many bytes. */
static size_t variant_free_key(struct guest *g, void *in, size_t bsf)
{
    struct prm_mkc *mkc = variant_mkc(in);

    example(g, PRM_CMD_OP_CREATE_MKEY, in);
    PRM_SET(create_mkey_in, (struct prm_create_mkey_in *)in, translations_octword_actual_size, 0);
    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_KLMS);
    PRM_SET(mkc, mkc, free, 1);
    PRM_SET(mkc, mkc, bsf_octword_size, bsf / 16);
    return PRM_SIZE(create_mkey_in);
}

static size_t variant_sig_key(struct guest *g, void *in)
{
    return variant_free_key(g, in, PRM_SIZE(bsf));
}

static size_t variant_crypto_key(struct guest *g, void *in)
{
    size_t len = variant_free_key(g, in, PRM_SIZE(bsf) + PRM_SIZE(crypto_bsf));

    PRM_SET(mkc, variant_mkc(in), crypto_en, 1);
    return len;
}

/* A KSM list whose entries are null keys, as an implicit region begins. */
static size_t variant_null_list(struct guest *g, void *in)
{
    size_t len = example(g, PRM_CMD_OP_CREATE_MKEY, in);
    struct prm_wqe_klm_seg *entry =
        PRM_PTR(create_mkey_in, (struct prm_create_mkey_in *)in, klm_pas_mtt);

    PRM_SET(mkc, variant_mkc(in), access_mode_1_0, PRM_MKC_ACCESS_MODE_KSM);
    memset(entry, 0, 4 * PRM_SIZE(wqe_klm_seg));
    for (unsigned i = 0; i < 4; i++) {
        PRM_SET(wqe_klm_seg, &entry[i], mkey, g->node->hca->fw->hca.null_mkey);
    }
    return len;
}

static size_t variant_device_key(struct guest *g, void *in)
{
    struct prm_mkc *mkc = variant_mkc(in);

    example(g, PRM_CMD_OP_CREATE_MKEY, in);
    PRM_SET(create_mkey_in, (struct prm_create_mkey_in *)in, translations_octword_actual_size, 0);
    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_MEMIC & 3);
    PRM_SET(mkc, mkc, access_mode_4_2, PRM_MKC_ACCESS_MODE_MEMIC >> 2);
    PRM_SET(mkc, mkc, translations_octword_size, 0);
    PRM_SET(mkc, mkc, start_addr, g->memic);
    PRM_SET(mkc, mkc, len, EXAMPLE_MEMIC);
    return PRM_SIZE(create_mkey_in);
}

/* -- completion queues ------------------------------------------------------------------------- */

static struct prm_cqc *variant_cqc(void *in)
{
    return PRM_PTR(create_cq_in, (struct prm_create_cq_in *)in, cq_context);
}

static size_t variant_basic_cq(struct guest *g, void *in)
{
    size_t len = example(g, PRM_CMD_OP_CREATE_CQ, in);

    PRM_SET(cqc, variant_cqc(in), cqe_comp_en, 1);
    PRM_SET(cqc, variant_cqc(in), mini_cqe_res_format, PRM_MINI_CQE_FORMAT_HASH);
    return len;
}

static size_t variant_enhanced_cq(struct guest *g, void *in)
{
    size_t len = example(g, PRM_CMD_OP_CREATE_CQ, in);

    PRM_SET(cqc, variant_cqc(in), cqe_comp_en, 1);
    PRM_SET(cqc, variant_cqc(in), cqe_compression_layout, PRM_CQE_LAYOUT_ENHANCED);
    PRM_SET(cqc, variant_cqc(in), mini_cqe_res_format, PRM_MINI_CQE_FORMAT_CSUM_STRIDX);
    return len;
}

/* -- the others -------------------------------------------------------------------------------- */

static size_t variant_dek(struct guest *g, void *in)
{
    example(g, PRM_CMD_OP_ALLOC_PD, in);
    prm_store16(in, PRM_CMD_OP_CREATE_GENERAL_OBJECT);
    return crypto_dek_in(g->node->hca->fw, in, g->node->drv->pdn);
}

static size_t variant_login(struct guest *g, void *in)
{
    example(g, PRM_CMD_OP_ALLOC_PD, in);
    prm_store16(in, PRM_CMD_OP_CREATE_GENERAL_OBJECT);
    return crypto_login_in(g->node->hca->fw, in, g->node->drv->pdn);
}

/* The first object of another type, by a command that names it by its number. */
static size_t variant_object(struct guest *g, void *in, uint16_t opcode, uint16_t type)
{
    struct hca *hca = &g->node->hca->fw->hca;
    const struct obj *first =
        obj_next(type == PRM_GENERAL_OBJ_TYPE_ENCRYPTION_KEY ? &hca->deks : &hca->crypto_logins, 0);
    size_t len = example(g, opcode, in);

    prm_store16((uint8_t *)in + 6, type);
    prm_store32((uint8_t *)in + 8, first ? first->num : 0);
    return len + (opcode == PRM_CMD_OP_MODIFY_GENERAL_OBJECT ? PRM_SIZE(encryption_key_obj) : 0);
}

#define OBJECT(name, opcode, type)                                                                 \
    static size_t name(struct guest *g, void *in)                                                  \
    {                                                                                              \
        return variant_object(g, in, PRM_CMD_OP_##opcode, PRM_GENERAL_OBJ_TYPE_##type);            \
    }
OBJECT(variant_query_dek, QUERY_GENERAL_OBJECT, ENCRYPTION_KEY)
OBJECT(variant_modify_dek, MODIFY_GENERAL_OBJECT, ENCRYPTION_KEY)
OBJECT(variant_destroy_dek, DESTROY_GENERAL_OBJECT, ENCRYPTION_KEY)
OBJECT(variant_query_login, QUERY_GENERAL_OBJECT, CRYPTO_LOGIN)
OBJECT(variant_destroy_login, DESTROY_GENERAL_OBJECT, CRYPTO_LOGIN)
#undef OBJECT

static size_t variant_end_operation(struct guest *g, void *in)
{
    size_t len = example(g, PRM_CMD_OP_MODIFY_MEMIC, in);

    prm_store16((uint8_t *)in + 6, PRM_MODIFY_MEMIC_OP_DEALLOC);
    return len;
}

/* The answer to a fault of the connection's requester, at a SEND or WRITE. */
static size_t variant_resume(struct guest *g, void *in)
{
    size_t len = example(g, PRM_CMD_OP_PAGE_FAULT_RESUME, in);
    struct prm_trans_page_fault_info *info =
        PRM_PTR(page_fault_resume_in, (struct prm_page_fault_resume_in *)in, page_fault_info);

    PRM_SET(trans_page_fault_info, info, page_fault_type, 1);
    PRM_SET(trans_page_fault_info, info, wq_number, g->rc_loop->qpn);
    PRM_SET(trans_page_fault_info, info, fault_token, g->rc_loop->qpn);
    return len;
}

static const struct {
    uint16_t opcode;
    size_t (*fill)(struct guest *g, void *in);
} variants[] = {
    {PRM_CMD_OP_CREATE_MKEY, variant_paged_key},
    {PRM_CMD_OP_CREATE_MKEY, variant_sig_key},
    {PRM_CMD_OP_CREATE_MKEY, variant_crypto_key},
    {PRM_CMD_OP_CREATE_MKEY, variant_null_list},
    {PRM_CMD_OP_CREATE_MKEY, variant_device_key},
    {PRM_CMD_OP_CREATE_CQ, variant_basic_cq},
    {PRM_CMD_OP_CREATE_CQ, variant_enhanced_cq},
    {PRM_CMD_OP_CREATE_GENERAL_OBJECT, variant_dek},
    {PRM_CMD_OP_CREATE_GENERAL_OBJECT, variant_login},
    {PRM_CMD_OP_QUERY_GENERAL_OBJECT, variant_query_dek},
    {PRM_CMD_OP_QUERY_GENERAL_OBJECT, variant_query_login},
    {PRM_CMD_OP_MODIFY_GENERAL_OBJECT, variant_modify_dek},
    {PRM_CMD_OP_DESTROY_GENERAL_OBJECT, variant_destroy_dek},
    {PRM_CMD_OP_DESTROY_GENERAL_OBJECT, variant_destroy_login},
    {PRM_CMD_OP_MODIFY_MEMIC, variant_end_operation},
    {PRM_CMD_OP_PAGE_FAULT_RESUME, variant_resume},
};

size_t example_variant(struct guest *g, uint16_t opcode, unsigned variant, void *in)
{
    unsigned num = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(variants); i++) {
        num += variants[i].opcode == opcode;
    }
    variant %= num + 1;
    for (size_t i = 0; variant && i < G_N_ELEMENTS(variants); i++) {
        if (variants[i].opcode == opcode && --variant == 0) {
            memset(in, 0, EXAMPLE_MAX);
            return variants[i].fill(g, in);
        }
    }
    return example(g, opcode, in);
}

uint32_t guest_paged_key(struct guest *g)
{
    uint8_t in[EXAMPLE_MAX] = {0};
    struct prm_create_mkey_out out[1] = {0};
    size_t len = variant_paged_key(g, in);

    g_assert_cmpint(drv_cmd(g->node->drv, in, len, out, sizeof(out)), ==, 0);
    return (uint32_t)PRM_GET(create_mkey_out, out, mkey_index) << 8;
}
