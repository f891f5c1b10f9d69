/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The vital product data. Its fields are those of a ConnectX: the part number and the serial
 * number, and also V2 (part number again), V3 (a UUID that ends in the MAC address), V0 (the link)
 * and VA, which says what the V fields are.
 */
#include "qemu-dev/vpd.h"
#include "qapi/error.h"

/* Resources: a byte of tag and, in the first two kinds, two bytes of length. */
#define TAG_NAME   0x82
#define TAG_READ   0x90
#define TAG_END    0x78
#define TAG_HEADER 3
#define KEY_HEADER 3 /* two letters, a byte of length */

#define VPD_SIZE   8 /* of the capability */

static size_t vpd_put_tag(struct vpd *vpd, size_t at, uint8_t tag, size_t len)
{
    vpd->data[at] = tag;
    vpd->data[at + 1] = len & 0xff;
    vpd->data[at + 2] = len >> 8;
    return at + TAG_HEADER;
}

static size_t vpd_put_field(struct vpd *vpd, size_t at, const char *key, const char *value)
{
    size_t len = strlen(value);

    g_assert(len <= UINT8_MAX && at + KEY_HEADER + len + TAG_HEADER < VPD_BYTES);
    memcpy(vpd->data + at, key, 2);
    vpd->data[at + 2] = len;
    memcpy(vpd->data + at + KEY_HEADER, value, len);
    return at + KEY_HEADER + len;
}

static void vpd_fill(struct vpd *vpd, const struct fw_pci_id *id, const uint8_t mac[6])
{
    g_autofree char *address =
        g_strdup_printf("%02x%02x%02x%02x%02x%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
    g_autofree char *serial = g_strdup_printf("HS%s", address);
    g_autofree char *uuid = g_strdup_printf("00000000000010008000%s", address);
    g_autofree char *vendor =
        g_strdup_printf("MLX:MODL=%.*s:MN=MLNX:CSKU=V2:UUID=V3:PCI=V0",
                        (int)strcspn(id->part_number, "-") - 1, id->part_number + 1);
    g_autofree char *link = g_strdup_printf("PCIeGen%u x%u", id->link_speed, id->link_width);
    const char *const fields[][2] = {
        {"PN", id->part_number},
        {"EC", "A1"},
        {"V2", id->part_number},
        {"SN", serial},
        {"V3", uuid},
        {"VA", vendor},
        {"V0", link},
    };
    size_t at = vpd_put_tag(vpd, 0, TAG_NAME, strlen(id->product)), read, i;
    uint8_t sum = 0;

    memcpy(vpd->data + at, id->product, strlen(id->product));
    read = at + strlen(id->product);
    at = read + TAG_HEADER;
    for (i = 0; i < ARRAY_SIZE(fields); i++) {
        at = vpd_put_field(vpd, at, fields[i][0], fields[i][1]);
    }
    /* the last field makes the sum of all bytes up to its own value 0 */
    at = vpd_put_field(vpd, at, "RV", " ");
    vpd_put_tag(vpd, read, TAG_READ, at - read - TAG_HEADER);
    vpd->data[at - 1] = 0;
    for (i = 0; i < at; i++) {
        sum += vpd->data[i];
    }
    vpd->data[at - 1] = -sum;
    vpd->data[at] = TAG_END;
}

bool vpd_init(struct vpd *vpd, PCIDevice *dev, uint8_t offset, const struct fw_pci_id *id,
              const uint8_t mac[6], Error **errp)
{
    int cap = pci_add_capability(dev, PCI_CAP_ID_VPD, offset, VPD_SIZE, errp);

    if (cap < 0) {
        return false;
    }
    vpd->cap = cap;
    vpd_fill(vpd, id, mac);
    return true;
}

/*
 * To read, a driver writes the address with the flag clear and waits until the flag is set; to
 * write, it does the opposite. Both are done at once, but the data cannot be changed.
 */
void vpd_config_write(const struct vpd *vpd, PCIDevice *dev, uint32_t addr, uint32_t val, int len)
{
    uint8_t *cap = dev->config + vpd->cap;
    uint32_t at;

    if (addr == vpd->cap && len == 4) {
        val >>= 8 * PCI_VPD_ADDR;
    } else if (addr - vpd->cap != PCI_VPD_ADDR || len != 2) {
        return;
    }
    at = val & PCI_VPD_ADDR_MASK & ~3u;
    if (!(val & PCI_VPD_ADDR_F)) {
        pci_set_long(cap + PCI_VPD_DATA, at < VPD_BYTES ? pci_get_long(vpd->data + at) : 0);
    }
    pci_set_word(cap + PCI_VPD_ADDR, (val & PCI_VPD_ADDR_MASK) | (~val & PCI_VPD_ADDR_F));
}
