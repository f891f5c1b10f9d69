/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The differences between the QEMU versions that the plugin can be built for: 7.2 (Debian 12) to
 * 10.0 (Debian 13). Every other file of this folder is the same for all of them.
 */
#ifndef HCASIM_QEMU_DEV_COMPAT_H
#define HCASIM_QEMU_DEV_COMPAT_H

#include "qemu/osdep.h"
#include "qemu-version.h"
#include "qemu/accel.h"
#include "exec/memory.h"
#include "hw/boards.h"
#include "hw/pci/pci.h"
#include "hw/pci/pci_bus.h"
#include "hw/qdev-properties.h"
#include "hw/qdev-properties-system.h"

#define COMPAT_QEMU_SINCE(major, minor)                                                            \
    (QEMU_VERSION_MAJOR > (major) ||                                                               \
     (QEMU_VERSION_MAJOR == (major) && QEMU_VERSION_MINOR >= (minor)))

#if COMPAT_QEMU_SINCE(8, 0)
#include "hw/pci/pci_device.h"
#endif

#if COMPAT_QEMU_SINCE(10, 0)
#include "system/runstate.h"
#else
#include "sysemu/runstate.h"
#endif

/* Sets the n properties of a class from an array without an end marker. */
static inline void compat_set_properties(DeviceClass *dc, const Property *props, size_t n)
{
#if COMPAT_QEMU_SINCE(10, 0)
    device_class_set_props_n(dc, props, n);
#else
    /* These versions need an end marker. The copy lives as long as the class: for ever. */
    Property *ended = g_new0(Property, n + 1);

    memcpy(ended, props, n * sizeof(*props));
    device_class_set_props(dc, ended);
#endif
}

static inline void compat_set_reset(DeviceClass *dc, void (*reset)(DeviceState *dev))
{
#if COMPAT_QEMU_SINCE(9, 2)
    device_class_set_legacy_reset(dc, reset);
#else
    dc->reset = reset;
#endif
}

/* Whether mr is memory that can be accessed through a pointer. */
static inline bool compat_is_memory(MemoryRegion *mr, bool is_write)
{
#if COMPAT_QEMU_SINCE(10, 0)
    return memory_access_is_direct(mr, is_write, MEMTXATTRS_UNSPECIFIED);
#else
    return memory_access_is_direct(mr, is_write);
#endif
}

/*
 * Whether an atomic of the device and an atomic of a guest CPU never lose each other's changes.
 * They do if QEMU translates for one thread at a time: QEMU then makes plain instructions of the
 * guest's atomic ones, because no other CPU can run in between.
 */
static inline bool compat_cpus_are_atomic(void)
{
    Object *accel = OBJECT(current_accel());
    g_autofree char *threads = NULL;

    if (!object_dynamic_cast(accel, "tcg-accel")) {
        return true;
    }
    threads = object_property_get_str(accel, "thread", NULL);
    return g_strcmp0(threads, "multi") == 0 && current_machine->smp.max_cpus > 1;
}

/* Adds a power management capability. Returns its offset or, with *errp set, a negative value. */
static inline int compat_pm_init(PCIDevice *dev, uint8_t offset, Error **errp)
{
#if COMPAT_QEMU_SINCE(10, 0)
    return pci_pm_init(dev, offset, errp);
#else
    return pci_add_capability(dev, PCI_CAP_ID_PM, offset, PCI_PM_SIZEOF, errp);
#endif
}

#endif
