/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The card's vendor specific capability, as the driver's lib/pci_vsc.c uses it.
 *
 * To take the gateway, a driver reads the counter, writes that value to the gateway's semaphore,
 * and owns the gateway if it reads the value back. It then selects a space (status bits tell
 * whether the space exists), and reads or writes a dword of it: the flag in the address register
 * says which, and flips when the access is done. Here it is done at once.
 *
 * Spaces:
 * - semaphores, which the functions of a card share;
 * - configuration: of the chip's registers, only its id and those that say that the firmware is up
 *   exist; the other addresses are invalid;
 * - commands (ICMD), through a control register and a mailbox, as Mellanox's tools use them
 *   (mtcr_ul): one command reports what is supported, one accesses a register. For the second one
 *   the mailbox has two TLVs: the operation and its data. Both are done at once.
 *
 * There is no space to dump; the driver works without one.
 */
#include "qemu-dev/vsc.h"
#include "prm/prm.h"

enum vsc_register {
    VSC_CTRL = 0x04,
    VSC_COUNTER = 0x08,
    VSC_SEMAPHORE = 0x0c,
    VSC_ADDR = 0x10,
    VSC_DATA = 0x14,
    VSC_SIZE = 0x18,
};

#define CTRL_SPACE    0xffffu
#define CTRL_STATUS   (1u << 29) /* of three bits; not 0 if the space exists */
#define ADDR_FLAG     (1u << 31)
#define ADDR_SYNDROME (1u << 30) /* the address is invalid */
#define ADDR_MASK     0x3fffffffu

/* The configuration space. Each generation has its "not up yet" bit in a different register. */
#define CR_HW_ID 0xf0014
static const uint32_t cr_not_up[] = {0xb0004, 0xb5e04, 0xb5f04};

/* The command space. */
#define ICMD_CONTROL      0x0
#define ICMD_SIZE         0x1000
#define ICMD_MAILBOX      0x100000
#define ICMD_BUSY         0x1u
#define ICMD_STATUS_SHIFT 8
#define ICMD_STATUS       (0xffu << ICMD_STATUS_SHIFT)
#define ICMD_OPCODE_SHIFT 16
#define ICMD_QUERY_CAP    0x8400
#define ICMD_CAP_BYTES    64
#define ICMD_CAPS         (1u << 29 | 1u << 27 | 1u << 26) /* registers by ICMD; PCAM, MCAM */
#define ICMD_ACCESS_REG   0x9001

enum icmd_status {
    ICMD_OK = 0,
    ICMD_BAD_OPCODE = 1,
    ICMD_BAD_PARAM = 4
};

/* TLVs: five bits of type, eleven bits of length in dwords. The first TLV, for the operation, also
 * has a register's id and the kind of access. */
#define TLV_OPERATION       (1u << 27 | 4u << 16)
#define TLV_OPERATION_BYTES 16u
#define TLV_REG_TYPE        3u
#define TLV_HEADER_BYTES    4u
#define TLV_TYPE_LEN        0xffff0000u
#define TLV_STATUS_SHIFT    8
#define TLV_RESPONSE        (1u << 15)
#define METHOD_READ         1
#define METHOD_WRITE        2

static uint32_t vsc_get(const struct vsc *vsc, PCIDevice *dev, enum vsc_register reg)
{
    return pci_get_long(dev->config + vsc->cap + reg);
}

static void vsc_set(const struct vsc *vsc, PCIDevice *dev, enum vsc_register reg, uint32_t value)
{
    pci_set_long(dev->config + vsc->cap + reg, value);
}

bool vsc_init(struct vsc *vsc, PCIDevice *dev, uint8_t offset, Error **errp)
{
    int cap = pci_add_capability(dev, PCI_CAP_ID_VNDR, offset, VSC_SIZE, errp);

    if (cap < 0) {
        return false;
    }
    vsc->cap = cap;
    pci_set_byte(dev->config + cap + PCI_CAP_FLAGS, VSC_SIZE);
    return true;
}

void vsc_reset(struct vsc *vsc, PCIDevice *dev)
{
    enum vsc_register reg;

    memset(vsc->semaphores, 0, sizeof(vsc->semaphores));
    memset(vsc->mailbox, 0, sizeof(vsc->mailbox));
    vsc->command = 0;
    for (reg = VSC_CTRL; reg < VSC_SIZE; reg += 4) {
        vsc_set(vsc, dev, reg, 0);
    }
}

void vsc_config_read(struct vsc *vsc, PCIDevice *dev, uint32_t addr, int len)
{
    if (ranges_overlap(addr, len, vsc->cap + VSC_COUNTER, 4)) {
        /* A value that no other owner has got, and not that of a free semaphore. */
        if (++vsc->counter == 0) {
            vsc->counter = 1;
        }
        vsc_set(vsc, dev, VSC_COUNTER, vsc->counter);
    }
}

/* A free semaphore can be taken; a taken one can only be freed. */
static uint32_t vsc_semaphore_write(uint32_t held, uint32_t value)
{
    return held && value ? held : value;
}

/* ICMD_ACCESS_REG, with the TLVs in the mailbox. */
static enum icmd_status vsc_access_reg(struct vsc *vsc, struct fw *fw)
{
    uint8_t *op = vsc->mailbox, *reg = op + TLV_OPERATION_BYTES;
    uint32_t what = prm_load32(op + 4), head = prm_load32(reg);
    unsigned dwords = head >> 16 & 0x7ff, method = what >> 8 & 0x7f;
    size_t len = dwords * 4 - TLV_HEADER_BYTES;
    enum fw_reg_status status = FW_REG_BAD_METHOD;

    if ((prm_load32(op) & TLV_TYPE_LEN) != TLV_OPERATION || head >> 27 != TLV_REG_TYPE || !dwords ||
        TLV_OPERATION_BYTES + dwords * 4 > VSC_MAILBOX) {
        return ICMD_BAD_PARAM;
    }
    if (method == METHOD_READ || method == METHOD_WRITE) {
        status = fw_access_reg(fw, (uint16_t)(what >> 16), method == METHOD_WRITE,
                               reg + TLV_HEADER_BYTES, len);
    }
    prm_store32(op, TLV_OPERATION | (uint32_t)status << TLV_STATUS_SHIFT);
    prm_store32(op + 4, what | TLV_RESPONSE);
    return ICMD_OK;
}

static enum icmd_status vsc_do_command(struct vsc *vsc, struct fw *fw, uint32_t opcode)
{
    switch (opcode) {
    case ICMD_QUERY_CAP:
        memset(vsc->mailbox, 0, ICMD_CAP_BYTES);
        prm_store32(vsc->mailbox, ICMD_CAPS);
        return ICMD_OK;
    case ICMD_ACCESS_REG:
        return vsc_access_reg(vsc, fw);
    }
    return ICMD_BAD_OPCODE;
}

/* Reads or writes a dword of a space. False: the address is invalid. */
typedef bool vsc_access_fn(struct vsc *vsc, struct fw *fw, uint32_t addr, bool is_write,
                           uint32_t *value);

static bool vsc_semaphores(struct vsc *vsc, struct fw *fw, uint32_t addr, bool is_write,
                           uint32_t *value)
{
    uint32_t *held = &vsc->semaphores[addr / 4 % VSC_SEMAPHORES];

    if (addr / 4 >= VSC_SEMAPHORES) {
        return false;
    }
    if (is_write) {
        *held = vsc_semaphore_write(*held, *value);
    }
    *value = *held;
    return true;
}

static bool vsc_configuration(struct vsc *vsc, struct fw *fw, uint32_t addr, bool is_write,
                              uint32_t *value)
{
    bool found = addr == CR_HW_ID;
    size_t i;

    for (i = 0; i < ARRAY_SIZE(cr_not_up); i++) {
        found |= addr == cr_not_up[i];
    }
    *value = found && addr == CR_HW_ID ? fw_hw_id(fw) : 0;
    return found && !is_write;
}

static bool vsc_commands(struct vsc *vsc, struct fw *fw, uint32_t addr, bool is_write,
                         uint32_t *value)
{
    if (addr >= ICMD_MAILBOX && addr < ICMD_MAILBOX + VSC_MAILBOX) {
        uint8_t *at = vsc->mailbox + (addr - ICMD_MAILBOX);

        if (is_write) {
            prm_store32(at, *value);
        }
        *value = prm_load32(at);
        return true;
    }
    if (addr == ICMD_CONTROL && is_write) {
        vsc->command = *value & ~ICMD_BUSY;
        if (*value & ICMD_BUSY) {
            enum icmd_status status = vsc_do_command(vsc, fw, *value >> ICMD_OPCODE_SHIFT);

            vsc->command = (vsc->command & ~ICMD_STATUS) | (uint32_t)status << ICMD_STATUS_SHIFT;
        }
        return true;
    }
    *value = addr == ICMD_CONTROL ? vsc->command : VSC_MAILBOX;
    return addr == ICMD_CONTROL || (addr == ICMD_SIZE && !is_write);
}

static const struct {
    uint32_t number;
    vsc_access_fn *access;
} spaces[] = {
    {0x1, vsc_commands}, /* the same space, under its older number */
    {0x2, vsc_configuration},
    {0x3, vsc_commands},
    {0xa, vsc_semaphores},
};

/* The access function of a space. NULL: there is no such space. */
static vsc_access_fn *vsc_space(uint32_t number)
{
    size_t i;

    for (i = 0; i < ARRAY_SIZE(spaces); i++) {
        if (spaces[i].number == number) {
            return spaces[i].access;
        }
    }
    return NULL;
}

/* Carries out the access that a write to the address register asks for. */
static void vsc_access_space(struct vsc *vsc, PCIDevice *dev, struct fw *fw, uint32_t addr)
{
    vsc_access_fn *access = vsc_space(vsc_get(vsc, dev, VSC_CTRL) & CTRL_SPACE);
    bool is_write = addr & ADDR_FLAG;
    uint32_t value = vsc_get(vsc, dev, VSC_DATA);

    if (!fw || !access || addr % 4 || !access(vsc, fw, addr & ADDR_MASK, is_write, &value)) {
        value = 0;
        addr |= ADDR_SYNDROME;
    }
    if (!is_write || addr & ADDR_SYNDROME) {
        vsc_set(vsc, dev, VSC_DATA, value);
    }
    vsc_set(vsc, dev, VSC_ADDR, addr ^ ADDR_FLAG);
}

void vsc_config_write(struct vsc *vsc, PCIDevice *dev, struct fw *fw, uint32_t addr, uint32_t val,
                      int len)
{
    if (len != 4) {
        return; /* only whole registers can be written */
    }
    switch (addr - vsc->cap) {
    case VSC_CTRL:
        val &= CTRL_SPACE;
        vsc_set(vsc, dev, VSC_CTRL, val | (vsc_space(val) ? CTRL_STATUS : 0));
        break;
    case VSC_SEMAPHORE:
        vsc_set(vsc, dev, VSC_SEMAPHORE,
                vsc_semaphore_write(vsc_get(vsc, dev, VSC_SEMAPHORE), val));
        break;
    case VSC_DATA:
        vsc_set(vsc, dev, VSC_DATA, val);
        break;
    case VSC_ADDR:
        vsc_access_space(vsc, dev, fw, val & ~ADDR_SYNDROME);
        break;
    }
}
