/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registers of ACCESS_REGISTER: the table row of a register, and what handlers get.
 */
#ifndef HCASIM_FW_REGS_H
#define HCASIM_FW_REGS_H

#include "fw/fw_internal.h"
#include "model/port/eswitch.h"

#define REG_MAX_BYTES 268 /* NVDA */

/*
 * in and out are images of the register's size. in is what the command carries, cut or filled with
 * zeros; out is zeroed but for local_port (query) or a copy of in (write).
 */
typedef enum syn fw_reg_fn(struct fw *fw, const void *in, void *out);

struct fw_reg {
    uint16_t id;      /* enum prm_reg_id */
    uint16_t size;    /* bytes, at most REG_MAX_BYTES */
    bool port;        /* local_port (bits 23:16 of the first dword) must be the function's */
    fw_reg_fn *query; /* NULL: cannot be read */
    fw_reg_fn *write; /* NULL: cannot be written */
};

/* NULL: no such register. */
const struct fw_reg *fw_reg_find(uint16_t id);

/* Tools name a card by its first vport's addresses. */
static inline const struct vport *regs_first_vport(const struct fw *fw)
{
    return fw->hca.vport->sw->vports[0];
}

static inline uint64_t regs_base_mac(const struct fw *fw)
{
    const uint8_t *mac = regs_first_vport(fw)->permanent_mac;

    return (uint64_t)mac[0] << 40 | (uint64_t)mac[1] << 32 | prm_load32(mac + 2);
}

#define FW_LANES  4 /* of the port: PMLP, SLTP */

#define REG_GROUP 128 /* registers that one capability mask covers */

/* Which of the REG_GROUP registers from first on exist; the last bit is the first register's. */
void fw_reg_mask(uint16_t first, void *mask);

/* Tables end with a row of size 0. */
extern const struct fw_reg regs_port[];   /* fw/regs_port.c */
extern const struct fw_reg regs_module[]; /* fw/regs_module.c */
extern const struct fw_reg regs_qos[];    /* fw/regs_qos.c */
extern const struct fw_reg regs_link[];   /* fw/regs_link.c */
extern const struct fw_reg regs_device[]; /* fw/regs_device.c */
extern const struct fw_reg regs_update[]; /* fw/regs_update.c */
extern const struct fw_reg regs_nv[];     /* fw/regs_nv.c */

/* The Ethernet mode in use; none: the link is down (fw/regs_port.c). */
struct link_modes regs_eth_mode(struct fw *fw);
/* The error correction in use, a bit of enum prm_fec; 0: the link is down (fw/regs_module.c). */
uint32_t regs_fec_active(struct fw *fw);
/* PDDR's page about the module, which is zeroed (fw/regs_module.c). */
void regs_module_info(struct fw *fw, void *page);

/* fw/regs_ppcnt.c */
enum syn reg_ppcnt_query(struct fw *fw, const void *in, void *out);

#endif
