/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gpu_probes LIBRARY [--gpu]: asks the device for what one of the libraries for GPU-initiated RDMA
 * asks for before it posts, through the same calls and files and in its order. Ends with an error
 * where that library would give up, or would not use the device from a GPU. At the end it makes
 * queues as the library does, and posts one WRITE through memory alone.
 *
 * LIBRARY is one of nvshmem (IBGDA transport), gpunetio (DOCA's open part), nccl (net_ib and GIN,
 * type GDAKI), ucx (rc_gda), mooncake (IBGDA), rocshmem (verbs, with allocators). DeepEP asks for
 * nothing itself: it uses NVSHMEM's queues or NCCL's. With --gpu, the memory is that of the first
 * GPU (libcuda.so.1).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "prm/prm.h"
#include "tests/programs/gpu/probes.h"

struct ibv_context *ctx;
struct ibv_device_attr device_attr;
struct ibv_port_attr port_attr;
struct ibv_pd *pd;
uint32_t pdn;
int gid_index = -1;
union ibv_gid gid;
static const char *name; /* of the device */

bool give_up(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    printf("  ");
    vprintf(fmt, args);
    putchar('\n');
    va_end(args);
    return false;
}

/* -- symbols ----------------------------------------------------------------------------------- */

struct symbol {
    const char *name, *version; /* of dlvsym(); NULL: dlsym() */
};

static bool have_symbols(const char *library, const struct symbol *s)
{
    void *handle = dlopen(library, RTLD_NOW);
    bool all = true;

    if (!handle) {
        return give_up("%s", dlerror());
    }
    for (; s->name; s++) {
        if (!(s->version ? dlvsym(handle, s->name, s->version) : dlsym(handle, s->name))) {
            all = give_up("%s has no %s %s", library, s->name, s->version ? s->version : "");
        }
    }
    return all;
}

#define VERBS(version)                                                                             \
    {"ibv_get_device_list", version}, {"ibv_get_device_name", version},                            \
        {"ibv_open_device", version}, {"ibv_close_device", version},                               \
        {"ibv_query_device", version}, {"ibv_query_port", version}, {"ibv_query_gid", version},    \
        {"ibv_alloc_pd", version}, {"ibv_dealloc_pd", version}, {"ibv_reg_mr", version},           \
        {"ibv_dereg_mr", version}, {"ibv_create_cq", version}, {"ibv_destroy_cq", version},        \
        {"ibv_create_qp", version}, {"ibv_modify_qp", version},                                    \
    {                                                                                              \
        "ibv_destroy_qp", version                                                                  \
    }

#define DEVX(version)                                                                              \
    {"mlx5dv_devx_alloc_uar", version}, {"mlx5dv_devx_free_uar", version},                         \
        {"mlx5dv_devx_general_cmd", version}, {"mlx5dv_devx_obj_create", version},                 \
        {"mlx5dv_devx_obj_modify", version}, {"mlx5dv_devx_obj_destroy", version},                 \
        {"mlx5dv_devx_query_eqn", version}, {"mlx5dv_devx_umem_reg", version},                     \
    {                                                                                              \
        "mlx5dv_devx_umem_dereg", version                                                          \
    }

#define DATA_DIRECT                                                                                \
    {"mlx5dv_get_data_direct_sysfs_path", "MLX5_1.25"},                                            \
    {                                                                                              \
        "mlx5dv_reg_dmabuf_mr", "MLX5_1.25"                                                        \
    }

static bool nvshmem_symbols(void)
{
    static const struct symbol verbs[] = {VERBS(NULL),
                                          {"ibv_fork_init", NULL},
                                          {"ibv_create_ah", NULL},
                                          {"ibv_destroy_ah", NULL},
                                          {"ibv_create_srq", NULL},
                                          {"ibv_destroy_srq", NULL},
                                          {"ibv_reg_mr_iova", NULL},
                                          {"ibv_reg_dmabuf_mr", NULL},
                                          {NULL, NULL}};
    static const struct symbol mlx5[] = {{"mlx5dv_is_supported", "MLX5_1.8"},
                                         DATA_DIRECT,
                                         {"mlx5dv_create_qp", "MLX5_1.3"},
                                         {"mlx5dv_init_obj", "MLX5_1.2"},
                                         DEVX("MLX5_1.7"),
                                         {"mlx5dv_devx_umem_reg_ex", "MLX5_1.19"},
                                         {NULL, NULL}};

    return have_symbols("libibverbs.so.1", verbs) && have_symbols("libmlx5.so.1", mlx5);
}

static bool gpunetio_symbols(void)
{
    static const struct symbol verbs[] = {VERBS(NULL),
                                          {"ibv_free_device_list", NULL},
                                          {"ibv_create_ah", NULL},
                                          {"ibv_destroy_ah", NULL},
                                          {"ibv_create_srq", NULL},
                                          {"ibv_destroy_srq", NULL},
                                          {"ibv_query_qp", NULL},
                                          {NULL, NULL}};
    static const struct symbol mlx5[] = {DEVX(NULL),
                                         {"mlx5dv_init_obj", NULL},
                                         {"mlx5dv_devx_obj_query", NULL},
                                         {"mlx5dv_devx_umem_reg_ex", NULL},
                                         {"mlx5dv_query_device", NULL},
                                         {NULL, NULL}};

    return have_symbols("libibverbs.so.1", verbs) && have_symbols("libmlx5.so.1", mlx5);
}

static bool nccl_symbols(void)
{
    static const struct symbol verbs[] = {VERBS("IBVERBS_1.1"),
                                          {"ibv_free_device_list", "IBVERBS_1.1"},
                                          {"ibv_get_async_event", "IBVERBS_1.1"},
                                          {"ibv_ack_async_event", "IBVERBS_1.1"},
                                          {"ibv_query_qp", "IBVERBS_1.1"},
                                          {"ibv_fork_init", "IBVERBS_1.1"},
                                          {"ibv_event_type_str", "IBVERBS_1.1"},
                                          {"ibv_reg_mr_iova2", "IBVERBS_1.8"},
                                          {"ibv_reg_dmabuf_mr", "IBVERBS_1.12"},
                                          {"ibv_query_ece", "IBVERBS_1.10"},
                                          {"ibv_set_ece", "IBVERBS_1.10"},
                                          {"ibv_query_port_speed", "IBVERBS_1.16"},
                                          {NULL, NULL}};
    static const struct symbol mlx5[] = {{"mlx5dv_is_supported", "MLX5_1.8"},
                                         DATA_DIRECT,
                                         {"mlx5dv_query_device", "MLX5_1.0"},
                                         {"mlx5dv_create_qp", "MLX5_1.3"},
                                         {NULL, NULL}};

    return have_symbols("libibverbs.so.1", verbs) && have_symbols("libmlx5.so.1", mlx5) &&
           gpunetio_symbols();
}

static bool ucx_symbols(void)
{
    static const struct symbol verbs[] = {VERBS(NULL), {"ibv_reg_dmabuf_mr", NULL}, {NULL, NULL}};
    static const struct symbol mlx5[] = {DEVX(NULL),
                                         {"mlx5dv_open_device", NULL},
                                         {"mlx5dv_is_supported", NULL},
                                         {"mlx5dv_init_obj", NULL},
                                         {"mlx5dv_devx_qp_query", NULL},
                                         {"mlx5dv_devx_create_event_channel", NULL},
                                         {"mlx5dv_devx_umem_reg_ex", NULL},
                                         DATA_DIRECT,
                                         {NULL, NULL}};

    return have_symbols("libibverbs.so.1", verbs) && have_symbols("libmlx5.so.1", mlx5);
}

static bool mooncake_symbols(void)
{
    static const struct symbol verbs[] = {
        VERBS(NULL), {"ibv_create_ah", NULL}, {"_ibv_query_gid_ex", NULL}, {NULL, NULL}};
    static const struct symbol mlx5[] = {DEVX(NULL),
                                         {"mlx5dv_init_obj", NULL},
                                         {"mlx5dv_devx_umem_reg_ex", "MLX5_1.19"},
                                         {NULL, NULL}};

    return have_symbols("libibverbs.so.1", verbs) && have_symbols("libmlx5.so.1", mlx5);
}

/* -- device and port --------------------------------------------------------------------------- */

static bool open_first(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct mlx5dv_pd dv;
    struct mlx5dv_obj obj;

    if (!list || !list[0]) {
        return give_up("no device");
    }
    name = strdup(ibv_get_device_name(list[0]));
    if (!strstr(name, "mlx5") && !strstr(name, "ibp")) {
        return give_up("the device is called %s", name);
    }
    if (!mlx5dv_is_supported(list[0])) {
        return give_up("mlx5dv_is_supported()");
    }
    ctx = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    if (!ctx || ibv_query_device(ctx, &device_attr)) {
        return give_up("the device does not open: %s", strerror(errno));
    }
    pd = ibv_alloc_pd(ctx);
    obj.pd.in = pd; /* the rest is not initialised, as in some of these libraries */
    obj.pd.out = &dv;
    if (!pd || mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD)) {
        return give_up("the PD: %s", strerror(errno));
    }
    pdn = dv.pdn;
    return device_attr.phys_port_cnt == 1 || give_up("%u ports", device_attr.phys_port_cnt);
}

static bool fork_init(void)
{
    return !ibv_fork_init() || give_up("ibv_fork_init(): %s", strerror(errno));
}

static bool port_is_active(void)
{
    if (ibv_query_port(ctx, 1, &port_attr)) {
        return give_up("ibv_query_port(): %s", strerror(errno));
    }
    return (port_attr.state == IBV_PORT_ACTIVE && port_attr.link_layer == IBV_LINK_LAYER_ETHERNET &&
            port_attr.lid == 0 && port_attr.gid_tbl_len > 1) ||
           give_up("the port is not active, or no Ethernet port");
}

static bool is_ipv4(const union ibv_gid *of)
{
    static const uint8_t mapped[12] = {[10] = 0xff, 0xff};

    return !memcmp(of->raw, mapped, sizeof(mapped));
}

/* Reads the first bytes of a file. Returns how many. */
static int read_file(char *text, size_t size, const char *fmt, ...)
{
    char path[PATH_MAX];
    va_list args;
    int fd, len;

    va_start(args, fmt);
    vsnprintf(path, sizeof(path), fmt, args);
    va_end(args);
    fd = open(path, O_RDONLY);
    len = fd < 0 ? -1 : (int)read(fd, text, size - 1);
    text[len > 0 ? len : 0] = '\0';
    if (fd >= 0) {
        close(fd);
    }
    return len;
}

/* NVSHMEM, NCCL and UCX read the types of GIDs from sysfs, and the network device behind one. */
static bool gid_by_sysfs(void)
{
    char type[16], ndev[32];

    for (int i = 0; i < port_attr.gid_tbl_len; i++) {
        if (read_file(type, sizeof(type), "/sys/class/infiniband/%s/ports/1/gid_attrs/types/%d",
                      name, i) > 0 &&
            !strncmp(type, "RoCE v2", 7) && !ibv_query_gid(ctx, 1, i, &gid) && is_ipv4(&gid)) {
            gid_index = i;
            return read_file(ndev, sizeof(ndev),
                             "/sys/class/infiniband/%s/ports/1/gid_attrs/ndevs/%d", name, i) > 0 ||
                   give_up("the GID has no network device");
        }
    }
    return give_up("no GID with an IPv4 address and type RoCE v2");
}

static bool gid_by_verbs(void)
{
    struct ibv_gid_entry entry;

    for (int i = 0; i < port_attr.gid_tbl_len; i++) {
        if (!ibv_query_gid_ex(ctx, 1, (uint32_t)i, &entry, 0) &&
            entry.gid_type == IBV_GID_TYPE_ROCE_V2 && is_ipv4(&entry.gid)) {
            gid_index = i;
            return !ibv_query_gid(ctx, 1, i, &gid);
        }
    }
    return give_up("no GID with an IPv4 address and type RoCE v2");
}

static bool port_speed(void)
{
    int (*query)(struct ibv_context *, uint32_t, uint64_t *);
    uint64_t speed = 0;

    *(void **)&query =
        dlvsym(dlopen("libibverbs.so.1", RTLD_NOW), "ibv_query_port_speed", "IBVERBS_1.16");
    return (query && !query(ctx, 1, &speed) && speed) || give_up("ibv_query_port_speed()");
}

/* -- files ------------------------------------------------------------------------------------- */

static bool is_file(const char *path)
{
    return !access(path, F_OK);
}

/* Whether one of the files is there that promise that ibv_reg_mr() takes memory of a GPU. */
static bool peer_memory(void)
{
    static const char *const files[] = {
        "/sys/kernel/mm/memory_peers/nv_mem/version",
        "/sys/module/nvidia_peermem/version",
    };

    for (unsigned i = 0; gpu_is_there() && i < sizeof(files) / sizeof(files[0]); i++) {
        if (!is_file(files[i])) {
            return give_up("no %s", files[i]);
        }
    }
    return true;
}

/* The folder of the PCI function, and files in it. */
static bool pci_files(const char *folder)
{
    static const char *const files[] = {"vendor",         "device",           "class",
                                        "numa_node",      "subsystem_vendor", "subsystem_device",
                                        "max_link_speed", "max_link_width"};
    char text[64];

    for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (read_file(text, sizeof(text), "%s/%s", folder, files[i]) <= 0) {
            return give_up("no %s/%s", folder, files[i]);
        }
    }
    read_file(text, sizeof(text), "%s/class", folder);
    return !strncmp(text, "0x02", 4) || give_up("class %s", text);
}

static bool pci_folder(void)
{
    char path[PATH_MAX], real[PATH_MAX];

    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device", name);
    if (!realpath(path, real)) {
        return give_up("%s does not resolve: %s", path, strerror(errno));
    }
    return pci_files(real);
}

/* NCCL takes the bus number from the folder, and looks the folder up again. */
static bool pci_folder_by_bus(void)
{
    char path[PATH_MAX], real[PATH_MAX], again[PATH_MAX];
    const char *slot;

    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device", name);
    if (!realpath(path, real)) {
        return give_up("%s does not resolve", path);
    }
    slot = strrchr(real, '/') + 1;
    snprintf(path, sizeof(path), "/sys/class/pci_bus/%.7s/../../%s", slot, slot);
    return (realpath(path, again) && !strcmp(real, again) && pci_files(again)) ||
           give_up("%s does not lead to %s", path, real);
}

/* UCX and Mooncake look under the bus. */
static bool pci_folder_of_bus(void)
{
    char path[PATH_MAX], real[PATH_MAX];

    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/../..", name);
    if (!realpath(path, real)) {
        return give_up("%s does not resolve", path);
    }
    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", strrchr(real, '/') + 1);
    return (realpath(path, real) && pci_files(real)) || give_up("%s does not resolve", path);
}

static bool device_file(void)
{
    char path[PATH_MAX];
    struct stat st;

    snprintf(path, sizeof(path), "/dev/infiniband/%s", ctx->device->dev_name);
    return (!stat(path, &st) && S_ISCHR(st.st_mode) && !access(path, R_OK | W_OK)) ||
           give_up("%s is no character device that can be read and written", path);
}

/* -- dma-bufs ---------------------------------------------------------------------------------- */

#define CONNECTX_8         0x1023
#define DATA_DIRECT_ACCESS 1 /* MLX5DV_REG_DMABUF_ACCESS_DATA_DIRECT */

typedef struct ibv_mr *reg_dmabuf_fn(struct ibv_pd *, uint64_t, size_t, uint64_t, int, int, int);

static reg_dmabuf_fn *find_reg_dmabuf(void)
{
    return (reg_dmabuf_fn *)dlvsym(dlopen("libmlx5.so.1", RTLD_NOW), "mlx5dv_reg_dmabuf_mr",
                                   "MLX5_1.25");
}

/* All of them ask with descriptor -1. EOPNOTSUPP and EPROTONOSUPPORT say that the kernel takes no
 * dma-bufs; UCX wants EBADF. */
static bool takes_dmabufs(void)
{
    reg_dmabuf_fn *reg = find_reg_dmabuf();

    errno = 0;
    if (ibv_reg_dmabuf_mr(pd, 0, 0, 0, -1, 0) || errno != EBADF) {
        return give_up("ibv_reg_dmabuf_mr() says: %s", strerror(errno));
    }
    errno = 0;
    if (ibv_reg_dmabuf_mr(pd, 0, PAGE, 0, -1, ACCESS) || errno != EBADF) {
        return give_up("ibv_reg_dmabuf_mr() of a page says: %s", strerror(errno));
    }
    errno = 0;
    if (!reg || reg(pd, 0, 0, 0, -1, 0, 0) || errno != EBADF) {
        return give_up("mlx5dv_reg_dmabuf_mr() says: %s", strerror(errno));
    }
    errno = 0;
    return (!reg(pd, 0, 0, 0, -1, 0, DATA_DIRECT_ACCESS) && errno == EINVAL) ||
           give_up("mlx5dv_reg_dmabuf_mr() with data direct says: %s", strerror(errno));
}

/* ENODEV: there is no second function for data. NCCL ends after any other error. */
static bool no_data_direct(void)
{
    int (*path_of)(struct ibv_context *, char *, size_t);
    char path[PATH_MAX];
    int err;

    *(void **)&path_of =
        dlvsym(dlopen("libmlx5.so.1", RTLD_NOW), "mlx5dv_get_data_direct_sysfs_path", "MLX5_1.25");
    err = path_of ? path_of(ctx, path, sizeof(path)) : EOPNOTSUPP;
    return err == ENODEV || give_up("mlx5dv_get_data_direct_sysfs_path() returns %d", err);
}

static bool small_umem(void)
{
    return umem_of_dmabuf_works(1, UINT64_MAX & ~(uint64_t)(PAGE - 1));
}

/* -- capabilities ------------------------------------------------------------------------------ */

/* Reads a section of the capabilities as they are. */
static bool read_caps(unsigned section, void *to)
{
    struct prm_query_hca_cap_in in[1] = {0};
    uint8_t out[PRM_SIZE(query_hca_cap_out) + 4096] = {0};

    PRM_SET(query_hca_cap_in, in, opcode, PRM_CMD_OP_QUERY_HCA_CAP);
    PRM_SET(query_hca_cap_in, in, op_mod, section << 1 | 1);
    if (mlx5dv_devx_general_cmd(ctx, in, sizeof(in), out, sizeof(out))) {
        return give_up("QUERY_HCA_CAP of section %u: %s", section, strerror(errno));
    }
    memcpy(to, out + 16, 4096);
    return true;
}

union caps {
    struct prm_cmd_hca_cap general[1];
    struct prm_cmd_hca_cap_2 general_2[1];
    struct prm_atomic_caps atomic[1];
    struct prm_roce_cap roce[1];
    uint8_t room[4096];
};

static bool general_caps(void)
{
    union caps c;

    if (!read_caps(PRM_HCA_CAP_TYPE_GENERAL, &c)) {
        return false;
    }
    return (PRM_GET(cmd_hca_cap, c.general, cqe_version) == 1 &&
            PRM_GET(cmd_hca_cap, c.general, log_bf_reg_size) &&
            PRM_GET(cmd_hca_cap, c.general, compact_address_vector)) ||
           give_up("cqe_version, log_bf_reg_size, compact_address_vector");
}

/* Compare and swap, fetch and add, both masked ones, of 4 and 8 bytes, on QPs and DC. */
static bool atomics(void)
{
    union caps c;

    if (!read_caps(PRM_HCA_CAP_TYPE_ATOMIC, &c)) {
        return false;
    }
    return ((PRM_GET(atomic_caps, c.atomic, atomic_operations) & 0xf) == 0xf &&
            (PRM_GET(atomic_caps, c.atomic, atomic_size_qp) & 0xc) == 0xc &&
            (PRM_GET(atomic_caps, c.atomic, atomic_size_dc) & 0xc) == 0xc) ||
           give_up("atomic_operations 0x%x, atomic_size_qp 0x%x, atomic_size_dc 0x%x",
                   PRM_GET(atomic_caps, c.atomic, atomic_operations),
                   PRM_GET(atomic_caps, c.atomic, atomic_size_qp),
                   PRM_GET(atomic_caps, c.atomic, atomic_size_dc));
}

static bool gpunetio_caps(void)
{
    union caps c, roce, more;

    if (!read_caps(PRM_HCA_CAP_TYPE_GENERAL, &c) || !read_caps(PRM_HCA_CAP_TYPE_ROCE, &roce)) {
        return false;
    }
    if (PRM_GET(cmd_hca_cap, c.general, hca_cap_2) &&
        !read_caps(PRM_HCA_CAP_TYPE_GENERAL_2, &more)) {
        return false;
    }
    return (PRM_GET(cmd_hca_cap, c.general, port_type) == PRM_CAP_PORT_TYPE_ETH &&
            PRM_GET(cmd_hca_cap, c.general, rc) &&
            PRM_GET(cmd_hca_cap, c.general, max_wqe_sz_sq) >= 64 &&
            PRM_GET(cmd_hca_cap, c.general, log_max_qp_sz) &&
            PRM_GET(roce_cap, roce.roce, roce_address_table_size) > (unsigned)gid_index &&
            PRM_GET(roce_cap, roce.roce, r_roce_min_src_udp_port) &&
            PRM_GET(roce_cap, roce.roce, r_roce_max_src_udp_port) >
                PRM_GET(roce_cap, roce.roce, r_roce_min_src_udp_port)) ||
           give_up("port_type, rc, sizes of WQEs and rings, the GID table or UDP source ports");
}

static bool roce_version(void)
{
    struct prm_query_roce_address_in in[1] = {0};
    struct prm_query_roce_address_out out[1] = {0};

    PRM_SET(query_roce_address_in, in, opcode, PRM_CMD_OP_QUERY_ROCE_ADDRESS);
    PRM_SET(query_roce_address_in, in, roce_address_index, gid_index);
    if (mlx5dv_devx_general_cmd(ctx, in, sizeof(in), out, sizeof(out))) {
        return give_up("QUERY_ROCE_ADDRESS: %s", strerror(errno));
    }
    return PRM_GET(roce_addr_layout, PRM_PTR(query_roce_address_out, out, roce_address),
                   roce_version) == PRM_ROCE_VERSION_V2 ||
           give_up("the GID is not of RoCE v2");
}

static bool ucx_caps(void)
{
    struct mlx5dv_context dv = {.comp_mask = 0};
    struct mlx5dv_devx_event_channel *channel;
    union caps c;

    if (mlx5dv_query_device(ctx, &dv) || !read_caps(PRM_HCA_CAP_TYPE_GENERAL, &c)) {
        return give_up("mlx5dv_query_device()");
    }
    if (PRM_GET(cmd_hca_cap, c.general, log_max_msg) != 30 ||
        !PRM_GET(cmd_hca_cap, c.general, cqe_version)) {
        return give_up("log_max_msg is %u", PRM_GET(cmd_hca_cap, c.general, log_max_msg));
    }
    channel =
        mlx5dv_devx_create_event_channel(ctx, MLX5DV_DEVX_CREATE_EVENT_CHANNEL_FLAGS_OMIT_EV_DATA);
    if (!channel) {
        return give_up("mlx5dv_devx_create_event_channel(): %s", strerror(errno));
    }
    mlx5dv_devx_destroy_event_channel(channel);
    return true;
}

/* -- queues ------------------------------------------------------------------------------------ */

static const struct queue_way nvshmem_way = {.uar_types = {NC_DEDICATED, MLX5DV_UAR_ALLOC_TYPE_BF},
                                             .uar_size = 8,
                                             .page_sizes = UINT64_MAX & ~(uint64_t)(PAGE - 1),
                                             .log_cq = 6,
                                             .cq_log_page = 4,
                                             .pi_valid_bits = true,
                                             .with_srq = true,
                                             .with_user_index = true};
static const struct queue_way nvshmem_peer_way = {
    .uar_types = {NC_DEDICATED, MLX5DV_UAR_ALLOC_TYPE_BF},
    .uar_size = 8,
    .log_cq = 6,
    .cq_log_page = 4,
    .pi_valid_bits = true,
    .with_srq = true,
    .with_user_index = true};
static const struct queue_way gpunetio_way = {.uar_types = {NC_DEDICATED, MLX5DV_UAR_ALLOC_TYPE_NC},
                                              .uar_size = 8,
                                              .page_sizes = PAGE,
                                              .log_cq = 6,
                                              .pi_valid_bits = true,
                                              .mtu = IBV_MTU_4096,
                                              .queries = true,
                                              .doorbell_first = true};
static const struct queue_way nccl_way = {.uar_types = {NC_DEDICATED, MLX5DV_UAR_ALLOC_TYPE_NC},
                                          .uar_size = 8,
                                          .page_sizes = PAGE,
                                          .log_cq = 6,
                                          .pi_valid_bits = true,
                                          .mtu = IBV_MTU_4096,
                                          .zero_iova = true,
                                          .by_iova = true,
                                          .queries = true,
                                          .doorbell_first = true};
static const struct queue_way ucx_way = {
    .uar_types = {MLX5DV_UAR_ALLOC_TYPE_BF, MLX5DV_UAR_ALLOC_TYPE_BF},
    .uar_size = 512,
    .page_sizes = 2 * PAGE - 1,
    .one_umem = true,
    .has_recv_cq = true,
    .ece = true,
    .with_counter = true};
static const struct queue_way mooncake_way = {
    .uar_types = {MLX5DV_UAR_ALLOC_TYPE_BF, MLX5DV_UAR_ALLOC_TYPE_BF},
    .uar_size = 512,
    .page_sizes = PAGE,
    .log_cq = 6,
    .pi_valid_bits = true,
    .mtu = IBV_MTU_4096};

static bool nvshmem_queues(void)
{
    return queues_work(&nvshmem_way);
}

static bool nvshmem_peer_queues(void)
{
    return queues_work(&nvshmem_peer_way);
}

static bool nvshmem_dc(void)
{
    return dc_queues_work(&nvshmem_way);
}

static bool gpunetio_queues(void)
{
    return queues_work(&gpunetio_way);
}

/* ConnectX-8 has them. */
static bool gpunetio_queues_without_record(void)
{
    struct queue_way without = gpunetio_way;
    union caps c;

    if (!read_caps(PRM_HCA_CAP_TYPE_GENERAL, &c)) {
        return false;
    }
    if (!PRM_GET(cmd_hca_cap, c.general, hca_cap_2) ||
        (read_caps(PRM_HCA_CAP_TYPE_GENERAL_2, &c) &&
         !PRM_GET(cmd_hca_cap_2, c.general_2, send_dbr_mode_no_dbr_ext))) {
        return device_attr.vendor_part_id != CONNECTX_8 || give_up("a ConnectX-8 has them");
    }
    without.no_record = true;
    return queues_work(&without);
}

static bool nccl_queues(void)
{
    return queues_work(&nccl_way);
}

static bool ucx_queues(void)
{
    return queues_work(&ucx_way);
}

static bool mooncake_queues(void)
{
    return queues_work(&mooncake_way);
}

/* -- the libraries ----------------------------------------------------------------------------- */

static const struct library {
    const char *name;
    struct step {
        const char *what;
        bool (*holds)(void);
    } steps[18];
} libraries[] = {
    {"nvshmem",
     {{"symbols", nvshmem_symbols},
      {"ibv_fork_init()", fork_init},
      {"peer memory", peer_memory},
      {"device", open_first},
      {"capabilities", general_caps},
      {"atomics", atomics},
      {"port", port_is_active},
      {"GID", gid_by_sysfs},
      {"PCI folder", pci_folder},
      {"dma-bufs", takes_dmabufs},
      {"no data direct", no_data_direct},
      {"queues in dma-bufs", nvshmem_queues},
      {"queues by peer memory", nvshmem_peer_queues},
      {"DCI and DCT", nvshmem_dc}}},
    {"gpunetio",
     {{"symbols", gpunetio_symbols},
      {"device", open_first},
      {"port", port_is_active},
      {"GID", gid_by_verbs},
      {"capabilities", gpunetio_caps},
      {"RoCE version", roce_version},
      {"queues", gpunetio_queues},
      {"queues without a record", gpunetio_queues_without_record}}},
    {"nccl",
     {{"symbols", nccl_symbols},
      {"ibv_fork_init()", fork_init},
      {"peer memory", peer_memory},
      {"device", open_first},
      {"port", port_is_active},
      {"port speed", port_speed},
      {"dma-bufs", takes_dmabufs},
      {"no data direct", no_data_direct},
      {"GID", gid_by_sysfs},
      {"PCI folder", pci_folder},
      {"PCI folder by its bus", pci_folder_by_bus},
      {"capabilities", gpunetio_caps},
      {"RoCE version", roce_version},
      {"queues", nccl_queues}}},
    {"ucx",
     {{"symbols", ucx_symbols},
      {"device", open_first},
      {"device file", device_file},
      {"capabilities", ucx_caps},
      {"atomics", atomics},
      {"port", port_is_active},
      {"GID", gid_by_sysfs},
      {"PCI folder", pci_folder_of_bus},
      {"peer memory", peer_memory},
      {"dma-bufs", takes_dmabufs},
      {"a umem of one byte", small_umem},
      {"no data direct", no_data_direct},
      {"queues", ucx_queues}}},
    {"mooncake",
     {{"symbols", mooncake_symbols},
      {"device", open_first},
      {"device file", device_file},
      {"PCI folder", pci_folder_of_bus},
      {"port", port_is_active},
      {"GID", gid_by_verbs},
      {"capabilities", general_caps},
      {"queues", mooncake_queues}}},
    {"rocshmem",
     {{"device", open_first},
      {"port", port_is_active},
      {"GID", gid_by_verbs},
      {"queues", domain_queues_work}}},
};

static const struct library *find_library(const char *wanted)
{
    for (size_t i = 0; wanted && i < sizeof(libraries) / sizeof(libraries[0]); i++) {
        if (!strcmp(libraries[i].name, wanted)) {
            return &libraries[i];
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const struct library *library = find_library(argv[1]);
    bool ok = true;

    if (!library || argc > 3 || (argc == 3 && strcmp(argv[2], "--gpu") != 0)) {
        fprintf(stderr, "usage: gpu_probes nvshmem|gpunetio|nccl|ucx|mooncake|rocshmem [--gpu]\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 3 && !gpu_start()) {
        return 1;
    }
    for (const struct step *s = library->steps; ok && s->what; s++) {
        ok = s->holds();
        printf("%s %s: %s\n", ok ? "ok  " : "FAIL", library->name, s->what);
    }
    if (!ok) {
        return 1;
    }
    if (ibv_dealloc_pd(pd) || ibv_close_device(ctx)) {
        printf("FAIL %s: something is left\n", library->name);
        return 1;
    }
    memory_free_all();
    return 0;
}
