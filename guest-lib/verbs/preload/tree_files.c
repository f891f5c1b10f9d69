/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contents of the tree's files, as mlx5_ib, ib_core, ib_uverbs, mlx5_core and PCI write them
 * (Linux' Documentation/ABI, and what each driver prints). There are no counters, because their
 * values would not change.
 */
#define _GNU_SOURCE
#include "guest-lib/verbs/preload/tree.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GID_TABLE  256 /* entries */
#define ABI_UVERBS "6\n"
#define ABI_UMAD   "5\n"

/* The folder that is being written, and whether all writes have succeeded. */
struct tree_writer {
    int root_fd;
    char folder[128];
    bool ok;
};

static bool tree_mkdirs(int root_fd, const char *path)
{
    char part[128];

    for (const char *end = strchr(path, '/');; end = strchr(end + 1, '/')) {
        snprintf(part, sizeof(part), "%.*s", end ? (int)(end - path) : (int)strlen(path), path);
        if (mkdirat(root_fd, part, 0700) && errno != EEXIST) {
            return false;
        }
        if (!end) {
            return true;
        }
    }
}

__attribute__((format(printf, 2, 3))) static void tree_enter(struct tree_writer *w,
                                                             const char *folder, ...)
{
    va_list args;

    va_start(args, folder);
    vsnprintf(w->folder, sizeof(w->folder), folder, args);
    va_end(args);
    w->ok = w->ok && tree_mkdirs(w->root_fd, w->folder);
}

static void tree_path(const struct tree_writer *w, const char *name, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/%s", w->folder, name);
}

__attribute__((format(printf, 3, 4))) static void tree_put(struct tree_writer *w, const char *name,
                                                           const char *text, ...)
{
    char path[PATH_MAX];
    va_list args;
    int fd;

    tree_path(w, name, path);
    fd = openat(w->root_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    if (fd < 0) {
        w->ok = false;
        return;
    }
    va_start(args, text);
    w->ok = vdprintf(fd, text, args) >= 0 && w->ok;
    va_end(args);
    close(fd);
}

__attribute__((format(printf, 3, 4))) static void tree_link(struct tree_writer *w, const char *name,
                                                            const char *to, ...)
{
    char path[PATH_MAX], target[128];
    va_list args;

    va_start(args, to);
    vsnprintf(target, sizeof(target), to, args);
    va_end(args);
    tree_path(w, name, path);
    w->ok = w->ok && !symlinkat(target, w->root_fd, path);
}

/* The path as links in class folders name it. */
static const char *tree_below_sys(const char *function)
{
    return function + strlen("sys/");
}

static unsigned tree_pair(const uint8_t *bytes)
{
    return (unsigned)bytes[0] << 8 | bytes[1];
}

static void tree_put_guid(struct tree_writer *w, const char *name, const uint8_t guid[8])
{
    tree_put(w, name, "%04x:%04x:%04x:%04x\n", tree_pair(guid), tree_pair(guid + 2),
             tree_pair(guid + 4), tree_pair(guid + 6));
}

static void tree_put_gid(struct tree_writer *w, const char *name, const uint8_t gid[16])
{
    tree_put(w, name, "%04x:%04x:%04x:%04x:%04x:%04x:%04x:%04x\n", tree_pair(gid),
             tree_pair(gid + 2), tree_pair(gid + 4), tree_pair(gid + 6), tree_pair(gid + 8),
             tree_pair(gid + 10), tree_pair(gid + 12), tree_pair(gid + 14));
}

/* All empty entries of a table are links to one file. */
static void tree_write_gids(struct tree_writer *w, const struct hv_device_facts *facts)
{
    static const uint8_t none[16];
    char name[12], first[PATH_MAX], path[PATH_MAX];

    snprintf(name, sizeof(name), "%d", HV_FACTS_GIDS);
    tree_put_gid(w, name, none);
    tree_path(w, name, first);
    for (unsigned i = 0; i < GID_TABLE; i++) {
        snprintf(name, sizeof(name), "%u", i);
        tree_path(w, name, path);
        if (i < HV_FACTS_GIDS) {
            tree_put_gid(w, name, facts->gid[i % HV_FACTS_ADDRESSES]);
        } else if (i > HV_FACTS_GIDS) {
            w->ok = w->ok && !linkat(w->root_fd, first, w->root_fd, path, 0);
        }
    }
}

/* As the kernel's rate_show() prints it: the rate of all lanes together, the width, the speed. */
static void tree_put_rate(struct tree_writer *w, const struct hv_device_facts *facts)
{
    static const struct {
        uint8_t speed;
        unsigned lane; /* 100 Mb/s */
        const char *name;
    } speeds[] = {{1, 25, "SDR"},   {2, 50, "DDR"},   {4, 100, "QDR"},   {16, 140, "FDR"},
                  {32, 250, "EDR"}, {64, 500, "HDR"}, {128, 1000, "NDR"}};
    static const unsigned lanes[] = {[1] = 1, [2] = 4, [4] = 8, [8] = 12, [16] = 2};
    unsigned n = lanes[facts->ib_width];

    for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++) {
        if (speeds[i].speed == facts->ib_speed) {
            tree_put(w, "rate", "%u%s Gb/sec (%uX %s)\n", n * speeds[i].lane / 10,
                     n * speeds[i].lane % 10 ? ".5" : "", n, speeds[i].name);
        }
    }
}

static void tree_write_port(struct tree_writer *w, const char *ibdev, unsigned index,
                            const struct hv_device_facts *facts)
{
    static const struct {
        const char *name, *text;
    } fixed[] = {
        {"state", "4: ACTIVE\n"},
        {"phys_state", "5: LinkUp\n"},
        {"link_layer", "Ethernet\n"},
        {"cap_mask", "0x04010000\n"},
        {"lid", "0x0\n"},
        {"lid_mask_count", "0\n"},
        {"sm_lid", "0x0\n"},
        {"sm_sl", "0\n"},
    };

    tree_enter(w, "%s/ports/1", ibdev);
    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
        tree_put(w, fixed[i].name, "%s", fixed[i].text);
    }
    tree_put_rate(w, facts);
    tree_enter(w, "%s/ports/1/pkeys", ibdev);
    tree_put(w, "0", "0xffff\n");
    tree_enter(w, "%s/ports/1/gids", ibdev);
    tree_write_gids(w, facts);
    for (unsigned i = 0; i < HV_FACTS_GIDS; i++) {
        char name[12];

        snprintf(name, sizeof(name), "%u", i);
        tree_enter(w, "%s/ports/1/gid_attrs/types", ibdev);
        tree_put(w, name, i < HV_FACTS_ADDRESSES ? "RoCE v2\n" : "IB/RoCE v1\n");
        tree_enter(w, "%s/ports/1/gid_attrs/ndevs", ibdev);
        tree_put(w, name, TREE_NETDEV "%u\n", index);
    }
}

static void tree_write_ibdev(struct tree_writer *w, const char *function, unsigned index,
                             const struct hv_device_facts *facts)
{
    char ibdev[96];

    snprintf(ibdev, sizeof(ibdev), "%s/infiniband/mlx5_%u", function, index);
    tree_enter(w, "%s", ibdev);
    tree_put(w, "node_type", "1: CA\n");
    tree_put_guid(w, "node_guid", facts->node_guid);
    tree_put_guid(w, "sys_image_guid", facts->node_guid);
    tree_put(w, "fw_ver", "%s\n", facts->firmware);
    tree_put(w, "hw_rev", "%x\n", facts->revision);
    tree_put(w, "hca_type", "MT%u\n", facts->device);
    tree_put(w, "board_id", "%s\n", facts->board);
    tree_link(w, "device", "../../../" TREE_PCI_SLOT, index);
    tree_link(w, "subsystem", "../../../../../class/infiniband");
    tree_write_port(w, ibdev, index, facts);
    tree_enter(w, "sys/class/infiniband");
    snprintf(ibdev, sizeof(ibdev), "mlx5_%u", index);
    tree_link(w, ibdev, "../../%s/infiniband/%s", tree_below_sys(function), ibdev);
}

static void tree_write_uverbs(struct tree_writer *w, const char *function, unsigned index)
{
    char name[24];

    snprintf(name, sizeof(name), "uverbs%u", index);
    tree_enter(w, "%s/infiniband_verbs/%s", function, name);
    tree_put(w, "ibdev", "mlx5_%u\n", index);
    tree_put(w, "abi_version", "1\n"); /* mlx5's */
    tree_link(w, "device", "../../../" TREE_PCI_SLOT, index);
    tree_enter(w, "sys/class/infiniband_verbs");
    tree_link(w, name, "../../%s/infiniband_verbs/%s", tree_below_sys(function), name);
    tree_enter(w, "dev/infiniband");
    tree_link(w, name, TREE_FILE);
}

static void tree_write_netdev(struct tree_writer *w, const char *function, unsigned index,
                              const struct hv_device_facts *facts)
{
    const uint8_t *mac = facts->mac;
    char name[24];

    snprintf(name, sizeof(name), TREE_NETDEV "%u", index);
    tree_enter(w, "%s/net/%s", function, name);
    tree_put(w, "address", "%02x:%02x:%02x:%02x:%02x:%02x\n", mac[0], mac[1], mac[2], mac[3],
             mac[4], mac[5]);
    tree_put(w, "addr_len", "6\n");
    tree_put(w, "ifindex", "%u\n", TREE_IFINDEX + index);
    tree_put(w, "iflink", "%u\n", TREE_IFINDEX + index);
    tree_put(w, "flags", "0x1003\n"); /* up, broadcast, multicast */
    tree_put(w, "type", "1\n");       /* Ethernet */
    tree_put(w, "mtu", "%u\n", facts->mtu);
    tree_put(w, "operstate", "up\n");
    tree_put(w, "carrier", "1\n");
    tree_put(w, "speed", "%u\n", facts->mbps);
    tree_put(w, "duplex", "full\n");
    tree_put(w, "dev_id", "0x0\n");
    tree_put(w, "dev_port", "0\n");
    tree_link(w, "device", "../../../" TREE_PCI_SLOT, index);
    tree_enter(w, "sys/class/net");
    tree_link(w, name, "../../%s/net/%s", tree_below_sys(function), name);
}

static const char *tree_link_speed(unsigned generation)
{
    static const char *const names[] = {"Unknown",       "2.5 GT/s PCIe",  "5.0 GT/s PCIe",
                                        "8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe",
                                        "64.0 GT/s PCIe"};

    return names[generation < sizeof(names) / sizeof(names[0]) ? generation : 0];
}

#define PCI_HEADER  64   /* bytes: the part of configuration space that any user may read */
#define PCI_RANGES  13   /* lines of the file `resource` */
#define PCI_PCIE    0x60 /* offset of the PCI Express capability */
#define PCI_BAR0    0xca000000000ull
#define PCI_BAR_MEM 0x14220cull /* Linux' IORESOURCE flags: memory, prefetchable, 64 bits */

static void tree_write_config(struct tree_writer *w, const struct hv_device_facts *facts)
{
    const uint16_t words[PCI_HEADER / 2] = {
        [0x00 / 2] = facts->vendor,
        [0x02 / 2] = facts->device,
        [0x04 / 2] = 0x0406, /* command: memory, master, no INTx */
        [0x06 / 2] = 0x0010, /* status: has capabilities */
        [0x08 / 2] = facts->revision,
        [0x0a / 2] = 0x0200, /* an Ethernet controller */
        [0x0c / 2] = 0x0010, /* cache line */
        [0x10 / 2] = 0x000c | (uint16_t)(PCI_BAR0 & 0xfff0),
        [0x12 / 2] = (uint16_t)(PCI_BAR0 >> 16),
        [0x14 / 2] = (uint16_t)(PCI_BAR0 >> 32),
        [0x2c / 2] = facts->subsys_vendor,
        [0x2e / 2] = facts->subsys,
        [0x34 / 2] = PCI_PCIE,
    };
    uint8_t bytes[PCI_HEADER];
    char path[PATH_MAX];
    int fd;

    for (unsigned i = 0; i < PCI_HEADER; i++) {
        bytes[i] = (uint8_t)(words[i / 2] >> (i % 2 ? 8 : 0));
    }
    tree_path(w, "config", path);
    fd = openat(w->root_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    w->ok = w->ok && fd >= 0 && write(fd, bytes, sizeof(bytes)) == sizeof(bytes);
    if (fd >= 0) {
        close(fd);
    }
}

/* Writes begin, end and flags of each range. */
static void tree_write_resources(struct tree_writer *w, const struct hv_device_facts *facts)
{
    static const char none[] = "0x0000000000000000 0x0000000000000000 0x0000000000000000\n";
    char text[PCI_RANGES * sizeof(none)];
    size_t len = 0;

    len += (size_t)snprintf(text, sizeof(text), "0x%016llx 0x%016llx 0x%016llx\n", PCI_BAR0,
                            PCI_BAR0 + facts->bar_size - 1, PCI_BAR_MEM);
    for (unsigned i = 1; i < PCI_RANGES; i++) {
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s", none);
    }
    tree_put(w, "resource", "%s", text);
}

/* The driver of the function: by these two, DPDK takes a function for one that it may use. */
static void tree_write_driver(struct tree_writer *w, const char *slot,
                              const struct hv_device_facts *facts)
{
    tree_link(w, "driver", "../../../bus/pci/drivers/mlx5_core");
    tree_put(w, "uevent",
             "DRIVER=mlx5_core\nPCI_CLASS=20000\nPCI_ID=%04X:%04X\nPCI_SUBSYS_ID=%04X:%04X\n"
             "PCI_SLOT_NAME=%s\n",
             facts->vendor, facts->device, facts->subsys_vendor, facts->subsys, slot);
}

static void tree_write_function(struct tree_writer *w, const char *function, unsigned index,
                                const struct hv_device_facts *facts)
{
    char slot[24];

    tree_enter(w, "%s", function);
    tree_put(w, "vendor", "0x%04x\n", facts->vendor);
    tree_put(w, "device", "0x%04x\n", facts->device);
    tree_put(w, "subsystem_vendor", "0x%04x\n", facts->subsys_vendor);
    tree_put(w, "subsystem_device", "0x%04x\n", facts->subsys);
    tree_put(w, "revision", "0x%02x\n", facts->revision);
    tree_put(w, "class", "0x020000\n");
    tree_put(w, "irq", "0\n"); /* it uses MSI-X */
    tree_write_config(w, facts);
    tree_write_resources(w, facts);
    tree_put(w, "numa_node", "-1\n"); /* equally near to all processors */
    for (unsigned i = 0; i < 2; i++) {
        tree_put(w, i ? "max_link_speed" : "current_link_speed", "%s\n",
                 tree_link_speed(facts->link_speed));
        tree_put(w, i ? "max_link_width" : "current_link_width", "%u\n", facts->link_width);
    }
    snprintf(slot, sizeof(slot), TREE_PCI_SLOT, index);
    tree_write_driver(w, slot, facts);
    tree_link(w, "subsystem", "../../../bus/pci");
    tree_enter(w, "sys/bus/pci/devices");
    tree_link(w, slot, "../../../%s", tree_below_sys(function));
}

/* The bus on which all functions are. */
static void tree_write_bus(struct tree_writer *w)
{
    tree_enter(w, TREE_PCI_ROOT "/pci_bus/" TREE_PCI_BUS);
    tree_link(w, "device", "../../../pci" TREE_PCI_BUS);
    tree_link(w, "subsystem", "../../../../class/pci_bus");
    tree_enter(w, "sys/class/pci_bus");
    tree_link(w, TREE_PCI_BUS, "../../%s/pci_bus/" TREE_PCI_BUS, tree_below_sys(TREE_PCI_ROOT));
}

/* nvidia_peermem registers itself under the name nv_mem. */
static void tree_write_peer_memory(struct tree_writer *w)
{
    tree_enter(w, TREE_PEER_MEMORY "/nv_mem");
    tree_put(w, "version", HCASIM_VERSION "\n");
    tree_enter(w, TREE_PEER_MODULE);
    tree_put(w, "version", HCASIM_VERSION "\n");
}

bool tree_write(int root_fd, const struct hv_facts *facts)
{
    struct tree_writer w = {.root_fd = root_fd, .ok = true};

    for (unsigned i = 0; i < facts->count; i++) {
        char function[64];

        if (!hv_facts_has(facts, i)) {
            continue;
        }
        snprintf(function, sizeof(function), TREE_PCI_ROOT "/" TREE_PCI_SLOT, i);
        tree_write_function(&w, function, i, &facts->device[i]);
        tree_write_ibdev(&w, function, i, &facts->device[i]);
        tree_write_uverbs(&w, function, i);
        tree_write_netdev(&w, function, i, &facts->device[i]);
    }
    if (facts->count) {
        tree_write_bus(&w);
    }
    if (tree_has_gpu()) {
        tree_write_peer_memory(&w);
    }
    tree_enter(&w, "sys/class/infiniband_verbs");
    tree_put(&w, "abi_version", ABI_UVERBS);
    tree_enter(&w, "sys/class/infiniband_mad");
    tree_put(&w, "abi_version", ABI_UMAD);
    tree_enter(&w, "dev/infiniband");
    tree_link(&w, "rdma_cm", TREE_FILE);
    return w.ok;
}

/* -- entries of the machine -------------------------------------------------------------------- */

static const char *const tree_joined[] = {"/sys/class/net", "/sys/bus/pci/devices",
                                          "/sys/class/pci_bus"};

bool tree_joins(const char *path)
{
    for (size_t i = 0; i < sizeof(tree_joined) / sizeof(tree_joined[0]); i++) {
        size_t len = strlen(tree_joined[i]);

        if (!strncmp(path, tree_joined[i], len) && strspn(path + len, "/") == strlen(path + len)) {
            return true;
        }
    }
    return false;
}

static DIR *tree_open(int at, const char *path)
{
    int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (fd >= 0 && !dir) {
        close(fd);
    }
    return dir;
}

/* Removes links to entries of the machine that do not exist any more. */
static void tree_part(DIR *ours)
{
    char target[128];
    const struct dirent *entry;

    while ((entry = readdir(ours))) {
        ssize_t len = readlinkat(dirfd(ours), entry->d_name, target, sizeof(target) - 1);

        if (len > 0 && target[0] == '/' && faccessat(dirfd(ours), entry->d_name, F_OK, 0)) {
            unlinkat(dirfd(ours), entry->d_name, 0);
        }
    }
}

void tree_join(int root_fd, const char *path)
{
    DIR *ours = tree_open(root_fd, path + 1), *theirs = ours ? tree_open(AT_FDCWD, path) : NULL;
    const struct dirent *entry;
    char target[PATH_MAX];

    if (ours) {
        tree_part(ours);
    }
    while (theirs && (entry = readdir(theirs))) {
        snprintf(target, sizeof(target), "%s/%s", path, entry->d_name);
        if (entry->d_name[0] != '.') {
            (void)!symlinkat(target, dirfd(ours), entry->d_name); /* it may exist already */
        }
    }
    if (theirs) {
        closedir(theirs);
    }
    if (ours) {
        closedir(ours);
    }
}
