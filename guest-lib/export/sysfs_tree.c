/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes what programs such as UCX read of a device in sysfs, where ibv_device.ibdev_path leads
 * them: which card it is. One folder a profile, as that of the PCI function is:
 *
 *   DIRECTORY/cx5/vendor, device ...       the PCI function
 *   DIRECTORY/cx5/infiniband/mlx5_0        ibdev_path of the first device
 *
 * usage: sysfs-tree DIRECTORY STAMP
 */
#include "fw/fw.h"
#include "guest-lib/verbs/kernel/config.h"
#include <glib.h>
#include <glib/gstdio.h>
#include <stdio.h>

static bool sysfs_write_file(const char *folder, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    g_autoptr(GError) err = NULL;

    if (!g_file_set_contents(path, text, -1, &err)) {
        fprintf(stderr, "sysfs-tree: %s\n", err->message);
        return false;
    }
    return true;
}

static bool sysfs_write_id(const char *folder, const char *name, unsigned id)
{
    g_autofree char *text = g_strdup_printf("0x%04x\n", id);

    return sysfs_write_file(folder, name, text);
}

static bool sysfs_write_profile(const char *directory, const char *profile)
{
    g_autofree char *folder = g_build_filename(directory, profile, NULL);
    struct fw_pci_id id;

    if (!fw_profile_pci_id(profile, &id)) {
        return false;
    }
    for (unsigned i = 0; i < HV_MAX_DEVICES; i++) {
        g_autofree char *device = g_strdup_printf("%s/infiniband/mlx5_%u", folder, i);

        if (g_mkdir_with_parents(device, 0755)) {
            fprintf(stderr, "sysfs-tree: cannot make %s\n", device);
            return false;
        }
    }
    /* No node: it is as near to one processor as to another. */
    return sysfs_write_id(folder, "vendor", id.vendor) &&
           sysfs_write_id(folder, "device", id.device) &&
           sysfs_write_id(folder, "subsystem_vendor", id.subsys_vendor) &&
           sysfs_write_id(folder, "subsystem_device", id.subsys) &&
           sysfs_write_file(folder, "numa_node", "-1\n");
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: sysfs-tree DIRECTORY STAMP\n");
        return 2;
    }
    for (const char *const *name = fw_profile_names(); *name; name++) {
        if (!sysfs_write_profile(argv[1], *name)) {
            return 1;
        }
    }
    return g_file_set_contents(argv[2], "", 0, NULL) ? 0 : 1;
}
