/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The card's vendor specific capability, as the driver's lib/pci_vsc.c uses it.
 *
 * Whoever wants the gateway reads the counter, writes what it read to the gateway's semaphore, and
 * has it if it reads that back. It then selects a space (status bits tell whether there is such a
 * space), and reads or writes a dword of it: the flag in the address register says which, and
 * flips when that is done. Here it is done at once.
 *
 * There is one space, that of the semaphores which the functions of a card share. There is no
 * space to dump, and the driver does without.
 */
#include "qemu-dev/vsc.h"

enum vsc_register {
    VSC_CTRL = 0x04,
    VSC_COUNTER = 0x08,
    VSC_SEMAPHORE = 0x0c,
    VSC_ADDR = 0x10,
    VSC_DATA = 0x14,
    VSC_SIZE = 0x18,
};

#define CTRL_SPACE      0xffffu
#define CTRL_STATUS     (1u << 29) /* of three bits: not 0 if the space exists */
#define ADDR_FLAG       (1u << 31)
#define ADDR_SYNDROME   (1u << 30) /* there is no such address */
#define ADDR_MASK       0x3fffffffu
#define SPACE_SEMAPHORE 0xa

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
    for (reg = VSC_CTRL; reg < VSC_SIZE; reg += 4) {
        vsc_set(vsc, dev, reg, 0);
    }
}

void vsc_config_read(struct vsc *vsc, PCIDevice *dev, uint32_t addr, int len)
{
    if (ranges_overlap(addr, len, vsc->cap + VSC_COUNTER, 4)) {
        /* A value that nobody else has got, and never that of a free semaphore. */
        if (++vsc->counter == 0) {
            vsc->counter = 1;
        }
        vsc_set(vsc, dev, VSC_COUNTER, vsc->counter);
    }
}

/* A free semaphore can be taken, a taken one only be freed. */
static uint32_t vsc_semaphore_write(uint32_t held, uint32_t value)
{
    return held && value ? held : value;
}

/* Does what was written to the address register asks for. */
static void vsc_access_space(struct vsc *vsc, PCIDevice *dev, uint32_t addr)
{
    bool is_write = addr & ADDR_FLAG;
    uint32_t index = (addr & ADDR_MASK) / 4;

    if ((vsc_get(vsc, dev, VSC_CTRL) & CTRL_SPACE) != SPACE_SEMAPHORE || addr % 4 ||
        index >= VSC_SEMAPHORES) {
        vsc_set(vsc, dev, VSC_DATA, 0);
        addr |= ADDR_SYNDROME;
    } else if (is_write) {
        vsc->semaphores[index] =
            vsc_semaphore_write(vsc->semaphores[index], vsc_get(vsc, dev, VSC_DATA));
    } else {
        vsc_set(vsc, dev, VSC_DATA, vsc->semaphores[index]);
    }
    vsc_set(vsc, dev, VSC_ADDR, addr ^ ADDR_FLAG);
}

void vsc_config_write(struct vsc *vsc, PCIDevice *dev, uint32_t addr, uint32_t val, int len)
{
    if (len != 4) {
        return; /* the registers are written whole */
    }
    switch (addr - vsc->cap) {
    case VSC_CTRL:
        val &= CTRL_SPACE;
        vsc_set(vsc, dev, VSC_CTRL, val | (val == SPACE_SEMAPHORE ? CTRL_STATUS : 0));
        break;
    case VSC_SEMAPHORE:
        vsc_set(vsc, dev, VSC_SEMAPHORE,
                vsc_semaphore_write(vsc_get(vsc, dev, VSC_SEMAPHORE), val));
        break;
    case VSC_DATA:
        vsc_set(vsc, dev, VSC_DATA, val);
        break;
    case VSC_ADDR:
        vsc_access_space(vsc, dev, val & ~ADDR_SYNDROME);
        break;
    }
}
