/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registers of ACCESS_REGISTER: the table row of a register, and what its handlers get.
 */
#ifndef HCASIM_FW_REGS_H
#define HCASIM_FW_REGS_H

#include "fw/fw_internal.h"
#include "model/port/eswitch.h"

#define REG_MAX_BYTES 268 /* that of NVDA */

/*
 * in and out are images of the register, with its size. in is the command's data, cut or filled up
 * with zeros. For a query, out is zeroed except local_port; for a write it is a copy of in.
 */
typedef enum syn fw_reg_fn(struct fw *fw, const void *in, void *out);

struct fw_reg {
    uint16_t id;      /* enum prm_reg_id */
    uint16_t size;    /* size in bytes, at most REG_MAX_BYTES */
    bool port;        /* local_port (bits 23:16 of the first dword) must be the function's port */
    fw_reg_fn *query; /* NULL: cannot be read */
    fw_reg_fn *write; /* NULL: cannot be written */
};

/* NULL: there is no such register. */
const struct fw_reg *fw_reg_find(uint16_t id);

/* Tools name a card by the addresses of its first vport. */
static inline const struct vport *regs_first_vport(const struct fw *fw)
{
    return fw->hca.vport->sw->vports[0];
}

static inline uint64_t regs_base_mac(const struct fw *fw)
{
    const uint8_t *mac = regs_first_vport(fw)->permanent_mac;

    return (uint64_t)mac[0] << 40 | (uint64_t)mac[1] << 32 | prm_load32(mac + 2);
}

#define FW_LANES 4 /* lanes of the port: PMLP, SLTP */
/* Receive buffers of the port in cells of 128 bytes, in all 262,016 bytes (published outputs of
 * mlnx_qos on a ConnectX-5). */
#define FW_BUFFER_CELLS 2047

#define REG_GROUP       128 /* registers that one capability mask covers */

/* Sets the bits of the registers that exist among the REG_GROUP registers from first on. The last
 * bit is the first register. */
void fw_reg_mask(uint16_t first, void *mask);

/* Each table ends with a row of size 0. */
extern const struct fw_reg regs_port[];    /* fw/regs_port.c */
extern const struct fw_reg regs_module[];  /* fw/regs_module.c */
extern const struct fw_reg regs_qos[];     /* fw/regs_qos.c */
extern const struct fw_reg regs_buffers[]; /* fw/regs_buffers.c */
extern const struct fw_reg regs_link[];    /* fw/regs_link.c */
extern const struct fw_reg regs_device[];  /* fw/regs_device.c */
extern const struct fw_reg regs_clock[];   /* fw/regs_clock.c */
extern const struct fw_reg regs_update[];  /* fw/regs_update.c */
extern const struct fw_reg regs_nv[];      /* fw/regs_nv.c */
extern const struct fw_reg regs_of_dump[]; /* fw/regs_dump.c */

/* The Ethernet mode in use (fw/regs_port.c). No bits: the link is down. */
struct link_modes regs_eth_mode(struct fw *fw);
/* The FEC in use, a bit of enum prm_fec (fw/regs_module.c). 0: the link is down. */
uint32_t regs_fec_active(struct fw *fw);
/* Fills PDDR's page about the module, which is zeroed (fw/regs_module.c). */
void regs_module_info(struct fw *fw, void *page);

/* fw/regs_ppcnt.c */
enum syn reg_ppcnt_query(struct fw *fw, const void *in, void *out);

#endif
