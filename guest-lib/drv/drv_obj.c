/* SPDX-License-Identifier: BSD-2-Clause */
/* Protection domains, memory keys, GIDs. */
#include <string.h>
#include "guest-lib/drv/drv.h"

int drv_alloc_pd(struct drv *drv, uint32_t *pdn)
{
    struct prm_alloc_pd_in in[1] = {0};
    struct prm_alloc_pd_out out[1] = {0};
    int status;

    PRM_SET(alloc_pd_in, in, opcode, PRM_CMD_OP_ALLOC_PD);
    PRM_SET(alloc_pd_in, in, uid, drv->uid);
    status = drv_cmd(drv, in, sizeof(in), out, sizeof(out));
    *pdn = PRM_GET(alloc_pd_out, out, pd);
    return status;
}

int drv_dealloc_pd(struct drv *drv, uint32_t pdn)
{
    struct prm_dealloc_pd_in in[1] = {0};

    PRM_SET(dealloc_pd_in, in, opcode, PRM_CMD_OP_DEALLOC_PD);
    PRM_SET(dealloc_pd_in, in, uid, drv->uid);
    PRM_SET(dealloc_pd_in, in, pd, pdn);
    return drv_cmd_simple(drv, in, sizeof(in));
}

/* The variant byte that the driver adds to a key's index. */
#define KEY_VARIANT 0x5a

int drv_reg_mr(struct drv *drv, uint32_t pdn, const struct drv_mem *mem, uint64_t va, uint64_t len,
               unsigned access, struct drv_mr *mr)
{
    uint32_t pages = (uint32_t)((va % PCI_PAGE + len + PCI_PAGE - 1) / PCI_PAGE);
    uint32_t octwords = (pages + 1) / 2;
    size_t in_len = PRM_SIZE(create_mkey_in) + (size_t)octwords * 16;
    g_autofree struct prm_create_mkey_in *in = g_malloc0(in_len);
    struct prm_create_mkey_out out[1] = {0};
    struct prm_mkc *mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);
    uint8_t *mtt = PRM_PTR(create_mkey_in, in, klm_pas_mtt);
    int status;

    PRM_SET(create_mkey_in, in, opcode, PRM_CMD_OP_CREATE_MKEY);
    PRM_SET(create_mkey_in, in, uid, drv->uid);
    PRM_SET(create_mkey_in, in, translations_octword_actual_size, octwords);
    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_MTT);
    PRM_SET(mkc, mkc, lr, 1);
    PRM_SET(mkc, mkc, lw, !!(access & DRV_LOCAL_WRITE));
    PRM_SET(mkc, mkc, rr, !!(access & DRV_REMOTE_READ));
    PRM_SET(mkc, mkc, rw, !!(access & DRV_REMOTE_WRITE));
    PRM_SET(mkc, mkc, a, !!(access & DRV_REMOTE_ATOMIC));
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, mkey_7_0, KEY_VARIANT);
    PRM_SET(mkc, mkc, pd, pdn);
    PRM_SET(mkc, mkc, start_addr, va);
    PRM_SET(mkc, mkc, len, len);
    PRM_SET(mkc, mkc, translations_octword_size, octwords);
    PRM_SET(mkc, mkc, log_page_size, 12);
    for (uint32_t i = 0; i < pages; i++) {
        prm_store64(mtt + 8 * i, mem->bus + (uint64_t)i * PCI_PAGE);
    }
    status = drv_cmd(drv, in, in_len, out, sizeof(out));
    mr->key = PRM_GET(create_mkey_out, out, mkey_index) << 8 | KEY_VARIANT;
    mr->va = va;
    mr->len = len;
    return status;
}

void drv_fill_paged_key(struct prm_create_mkey_in *in, uint32_t pdn, uint64_t va, uint64_t len,
                        uint32_t pages)
{
    struct prm_mkc *mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);

    PRM_SET(create_mkey_in, in, pg_access, 1);
    PRM_SET(create_mkey_in, in, translations_octword_actual_size, pages / 2);
    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_MTT);
    PRM_SET(mkc, mkc, umr_en, 1);
    PRM_SET(mkc, mkc, lr, 1);
    PRM_SET(mkc, mkc, lw, 1);
    PRM_SET(mkc, mkc, rr, 1);
    PRM_SET(mkc, mkc, rw, 1);
    PRM_SET(mkc, mkc, a, 1);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, pd, pdn);
    PRM_SET(mkc, mkc, start_addr, va);
    PRM_SET(mkc, mkc, len, len);
    PRM_SET(mkc, mkc, translations_octword_size, pages / 2);
    PRM_SET(mkc, mkc, log_page_size, 12);
}

int drv_dereg_mr(struct drv *drv, struct drv_mr *mr)
{
    struct prm_destroy_mkey_in in[1] = {0};

    PRM_SET(destroy_mkey_in, in, opcode, PRM_CMD_OP_DESTROY_MKEY);
    PRM_SET(destroy_mkey_in, in, uid, drv->uid);
    PRM_SET(destroy_mkey_in, in, mkey_index, mr->key >> 8);
    return drv_cmd_simple(drv, in, sizeof(in));
}

void drv_ipv4_gid(uint8_t gid[16], uint8_t host)
{
    static const uint8_t base[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 0};

    memcpy(gid, base, 16);
    gid[15] = host;
}

/* IPv4-mapped GIDs get l3_type 0, all others 1 (IPv6). */
static int drv_set_gid_of(struct drv *drv, unsigned index, const uint8_t gid[16],
                          enum prm_roce_version version)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    struct prm_set_roce_address_in in[1] = {0};
    struct prm_roce_addr_layout *addr = PRM_PTR(set_roce_address_in, in, roce_address);

    PRM_SET(set_roce_address_in, in, opcode, PRM_CMD_OP_SET_ROCE_ADDRESS);
    PRM_SET(set_roce_address_in, in, roce_address_index, index);
    memcpy(PRM_PTR(roce_addr_layout, addr, source_l3_address), gid, 16);
    PRM_SET(roce_addr_layout, addr, source_mac_47_32, drv->mac[0] << 8 | drv->mac[1]);
    PRM_SET(roce_addr_layout, addr, source_mac_31_0, prm_load32(drv->mac + 2));
    PRM_SET(roce_addr_layout, addr, roce_version, version);
    PRM_SET(roce_addr_layout, addr, roce_l3_type, memcmp(gid, mapped, 12) != 0);
    return drv_cmd_simple(drv, in, sizeof(in));
}

int drv_set_gid(struct drv *drv, unsigned index, const uint8_t gid[16])
{
    return drv_set_gid_of(drv, index, gid, PRM_ROCE_VERSION_V2);
}

int drv_set_gid_v1(struct drv *drv, unsigned index, const uint8_t gid[16])
{
    return drv_set_gid_of(drv, index, gid, PRM_ROCE_VERSION_V1);
}

int drv_set_real_time(struct drv *drv, uint64_t ns)
{
    struct {
        struct prm_access_register_in in;
        struct prm_mtutc_reg mtutc;
    } write = {0};
    struct {
        struct prm_access_register_out out;
        struct prm_mtutc_reg mtutc;
    } done = {0};

    PRM_SET(access_register_in, &write.in, opcode, PRM_CMD_OP_ACCESS_REG);
    PRM_SET(access_register_in, &write.in, op_mod, PRM_ACCESS_REGISTER_OP_WRITE);
    PRM_SET(access_register_in, &write.in, register_id, PRM_REG_ID_MTUTC);
    PRM_SET(mtutc_reg, &write.mtutc, operation, PRM_MTUTC_OPERATION_SET_TIME_IMMEDIATE);
    PRM_SET(mtutc_reg, &write.mtutc, utc_sec, (uint32_t)(ns / 1000000000u));
    PRM_SET(mtutc_reg, &write.mtutc, utc_nsec, (uint32_t)(ns % 1000000000u));
    return drv_cmd(drv, &write, sizeof(write), &done, sizeof(done));
}

int drv_set_port_mtu(struct drv *drv, unsigned bytes)
{
    struct {
        struct prm_access_register_in in;
        struct prm_pmtu_reg pmtu;
    } write = {0};
    struct {
        struct prm_access_register_out out;
        struct prm_pmtu_reg pmtu;
    } done = {0};

    PRM_SET(access_register_in, &write.in, opcode, PRM_CMD_OP_ACCESS_REG);
    PRM_SET(access_register_in, &write.in, op_mod, PRM_ACCESS_REGISTER_OP_WRITE);
    PRM_SET(access_register_in, &write.in, register_id, PRM_REG_ID_PMTU);
    PRM_SET(pmtu_reg, &write.pmtu, local_port, 1);
    PRM_SET(pmtu_reg, &write.pmtu, admin_mtu, bytes);
    return drv_cmd(drv, &write, sizeof(write), &done, sizeof(done));
}
