/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests which entries of its HCA in sysfs, /dev and the network a program sees. Run by `hcasim
 * run`; each statement has its own process and wire.
 */
#define _GNU_SOURCE
#include <check.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <ifaddrs.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/programs/beside.h"
#include "tests/programs/own_wire.h"

/* Returns the first line of a file, without its line end. */
static const char *line_of(const char *path)
{
    static char line[128];
    FILE *file = fopen(path, "r");

    ck_assert_msg(file != NULL, "no %s: %s", path, strerror(errno));
    ck_assert_ptr_nonnull(fgets(line, sizeof(line), file));
    fclose(file);
    line[strcspn(line, "\n")] = '\0';
    return line;
}

__attribute__((format(printf, 2, 3))) static void ck_line_is(const char *path, const char *text,
                                                             ...)
{
    char wanted[128];
    va_list args;

    va_start(args, text);
    vsnprintf(wanted, sizeof(wanted), text, args);
    va_end(args);
    ck_assert_msg(!strcmp(line_of(path), wanted), "%s says %s, not %s", path, line_of(path),
                  wanted);
}

static bool wire_is_there(void)
{
    char path[64];

    snprintf(path, sizeof(path), "/dev/shm/hcasim-%u-%s", geteuid(), getenv("HCASIM_WIRE"));
    return !access(path, F_OK);
}

/* Runs a statement in a child process, which exits with status 0 if the statement holds. */
static void in_a_child(void (*statement)(void))
{
    pid_t pid = fork();
    int status;

    if (!pid) {
        statement();
        exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}

static struct ibv_context *open_first(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context;

    ck_assert(list && list[0]);
    context = ibv_open_device(list[0]);
    ck_assert_ptr_nonnull(context);
    ibv_free_device_list(list);
    return context;
}

static void print_guid(__be64 guid, char text[20])
{
    const uint8_t *b = (const uint8_t *)&guid;

    snprintf(text, 20, "%02x%02x:%02x%02x:%02x%02x:%02x%02x", b[0], b[1], b[2], b[3], b[4], b[5],
             b[6], b[7]);
}

static void print_gid(const union ibv_gid *gid, char text[40])
{
    for (int i = 0; i < 8; i++) {
        snprintf(text + 5 * i, 6, i < 7 ? "%02x%02x:" : "%02x%02x", gid->raw[2 * i],
                 gid->raw[2 * i + 1]);
    }
}

/* -- statements --------------------------------------------------------------------------------
 */

START_TEST(sysfs_and_verbs_agree_about_the_device)
{
    struct ibv_context *context;
    struct ibv_device_attr attr;
    char guid[20];

    beside_own_wire();
    setenv("HCASIM_PROFILE", "cx7", 1);
    context = open_first();
    ck_assert_int_eq(ibv_query_device(context, &attr), 0);
    print_guid(ibv_get_device_guid(context->device), guid);
    ck_line_is(IBDEV "/node_guid", "%s", guid);
    ck_line_is(IBDEV "/sys_image_guid", "%s", guid);
    ck_line_is(IBDEV "/fw_ver", "%s", attr.fw_ver);
    ck_line_is(IBDEV "/hca_type", "MT%u", attr.vendor_part_id);
    ck_line_is(IBDEV "/device/device", "0x%04x", attr.vendor_part_id);
    ck_line_is(IBDEV "/device/vendor", "0x15b3");
    ck_line_is(IBDEV "/node_type", "1: CA");
    ck_line_is("/sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_0");
    ibv_close_device(context);
}
END_TEST

/* Width and speed are what mlx5_ib makes of the link mode (translate_eth_proto_oper()). */
static void the_speed_is(const char *profile, int width, int speed, const char *rate, int mbps)
{
    int (*query_speed)(struct ibv_context *, uint32_t, uint64_t *);
    struct ibv_context *context;
    struct ibv_port_attr attr;
    uint64_t hundreds = 0;

    beside_own_wire();
    setenv("HCASIM_PROFILE", profile, 1);
    context = open_first();
    ck_assert_int_eq(ibv_query_port(context, 1, &attr), 0);
    ck_assert_int_eq(attr.active_width, width);
    ck_assert_int_eq(attr.active_speed, speed);
    *(void **)&query_speed =
        dlvsym(dlopen("libibverbs.so.1", RTLD_NOW), "ibv_query_port_speed", "IBVERBS_1.16");
    ck_assert_ptr_nonnull(query_speed);
    ck_assert_int_eq(query_speed(context, 1, &hundreds), 0);
    ck_assert_uint_eq(100 * hundreds, (unsigned)mbps);
    ck_assert_int_eq(query_speed(context, 2, &hundreds), EINVAL);
    ck_line_is(IBDEV "/ports/1/rate", "%s", rate);
    ck_line_is("/sys/class/net/hca0/speed", "%d", mbps);
}

START_TEST(a_connectx_4_lx_has_25_gb_s)
{
    the_speed_is("cx4lx", 1 /* 1X */, 32 /* EDR */, "25 Gb/sec (1X EDR)", 25000);
}
END_TEST

START_TEST(a_connectx_6_dx_has_100_gb_s_on_two_lanes)
{
    the_speed_is("cx6dx", 16 /* 2X */, 64 /* HDR */, "100 Gb/sec (2X HDR)", 100000);
}
END_TEST

START_TEST(a_connectx_7_has_400_gb_s)
{
    the_speed_is("cx7", 2 /* 4X */, 128 /* NDR */, "400 Gb/sec (4X NDR)", 400000);
}
END_TEST

START_TEST(sysfs_and_verbs_agree_about_the_port)
{
    struct ibv_context *context;
    struct ibv_port_attr attr;

    beside_own_wire();
    context = open_first();
    ck_assert_int_eq(ibv_query_port(context, 1, &attr), 0);
    ck_assert_int_eq(attr.active_width, 2);
    ck_assert_int_eq(attr.active_speed, 32);
    ck_line_is(IBDEV "/ports/1/rate", "100 Gb/sec (4X EDR)");
    ck_line_is(IBDEV "/ports/1/state", "%d: ACTIVE", attr.state);
    ck_line_is(IBDEV "/ports/1/phys_state", "%d: LinkUp", attr.phys_state);
    ck_line_is(IBDEV "/ports/1/link_layer", "Ethernet");
    ck_line_is(IBDEV "/ports/1/cap_mask", "0x%08x", attr.port_cap_flags);
    ck_line_is(IBDEV "/ports/1/pkeys/0", "0xffff");
    for (int i = 0; i < attr.gid_tbl_len; i++) {
        char path[64], text[40];
        union ibv_gid gid;

        ck_assert_int_eq(ibv_query_gid(context, 1, i, &gid), 0);
        print_gid(&gid, text);
        snprintf(path, sizeof(path), IBDEV "/ports/1/gids/%d", i);
        ck_line_is(path, "%s", text);
    }
    ck_line_is(IBDEV "/ports/1/gid_attrs/types/1", "RoCE v2");
    ck_line_is(IBDEV "/ports/1/gid_attrs/types/3", "IB/RoCE v1");
    ck_assert_int_ne(access(IBDEV "/ports/1/gid_attrs/types/4", F_OK), 0);
    ibv_close_device(context);
}
END_TEST

START_TEST(a_gid_leads_to_its_network_device)
{
    char path[96], netdev[32], name[IF_NAMESIZE];
    struct ibv_gid_entry entry;
    union ibv_gid gid;
    struct ibv_context *context;

    beside_own_wire();
    context = open_first();
    snprintf(netdev, sizeof(netdev), "%s", line_of(IBDEV "/ports/1/gid_attrs/ndevs/1"));
    snprintf(path, sizeof(path), "/sys/class/net/%s/address", netdev);
    ck_assert_int_eq(ibv_query_gid(context, 1, 0, &gid), 0);
    ck_line_is(path, "%02x:%02x:%02x:%02x:%02x:%02x", gid.raw[8] ^ 2, gid.raw[9], gid.raw[10],
               gid.raw[13], gid.raw[14], gid.raw[15]);
    snprintf(path, sizeof(path), IBDEV "/device/net/%s/mtu", netdev);
    ck_line_is(path, "4200");
    for (uint32_t i = 0; i < 2; i++) {
        ck_assert_int_eq(ibv_query_gid_ex(context, 1, i, &entry, 0), 0);
        ck_assert_ptr_nonnull(if_indextoname(entry.ndev_ifindex, name));
        ck_assert_str_eq(name, netdev);
    }
    ck_assert_int_eq(ibv_query_gid_ex(context, 256 + 1, 0, &entry, 0), EINVAL); /* of port 1? */
    ibv_close_device(context);
}
END_TEST

START_TEST(each_device_is_there)
{
    static const char *const names[] = {"mlx5_0", "mlx5_1", "mlx5_2"};
    struct dirent **found;
    unsigned seen = 0;
    DIR *dir;

    beside_own_wire();
    setenv("HCASIM_DEVICES", "3", 1);
    dir = opendir("/sys/class/infiniband");
    ck_assert_ptr_nonnull(dir);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        for (int i = 0; i < 3; i++) {
            seen |= !strcmp(entry->d_name, names[i]) ? 1u << i : 0;
        }
    }
    closedir(dir);
    ck_assert_uint_eq(seen, 7);
    ck_assert_int_eq(scandir("/sys/class/infiniband", &found, NULL, alphasort), 5);
    for (int i = 0; i < 5; i++) {
        free(found[i]);
    }
    free(found);
    for (int i = 0; i < 3; i++) {
        char path[64];

        snprintf(path, sizeof(path), "/dev/infiniband/uverbs%d", i);
        ck_assert_int_eq(access(path, R_OK | W_OK), 0);
    }
}
END_TEST

static bool is_listed(const char *folder, const char *name)
{
    DIR *dir = opendir(folder);
    bool found = false;

    ck_assert_ptr_nonnull(dir);
    for (const struct dirent *entry; !found && (entry = readdir(dir));) {
        found = !strcmp(entry->d_name, name);
    }
    closedir(dir);
    return found;
}

START_TEST(entries_of_the_machine_are_beside_those_of_the_hca)
{
    struct stat there, here;

    beside_own_wire();
    ck_assert(is_listed("/sys/class/net", "lo"));
    ck_assert(is_listed("/sys/class/net/", "hca0"));
    ck_assert(is_listed("/sys/bus/pci/devices", "ca00:00:00.0"));
    ck_assert(!is_listed("/sys/class/net/lo", "hca0"));
    ck_assert_int_eq(chdir("/sys/class/net"), 0);
    ck_assert_int_eq(stat("lo/address", &there), 0);
    ck_assert_int_eq(stat("/sys/class/net/lo/address", &here), 0);
    ck_assert_uint_eq(there.st_ino, here.st_ino);
    ck_line_is("hca0/speed", "100000");
}
END_TEST

static int status_of(const char *path)
{
    struct stat st;

    return stat(path, &st) ? errno : 0;
}

START_TEST(paths_may_begin_in_a_folder_above)
{
    char path[PATH_MAX], text[16] = "";
    int sys, fd;

    beside_own_wire();
    sys = open("/sys", O_PATH | O_DIRECTORY | O_CLOEXEC);
    fd = openat(sys, "class/infiniband/mlx5_0/node_type", O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_gt(read(fd, text, sizeof(text) - 1), 0);
    ck_assert_str_eq(text, "1: CA\n");
    ck_assert_int_eq(faccessat(sys, "bus/pci/devices/ca00:00:00.0", F_OK, 0), 0);
    ck_assert_int_eq(faccessat(sys, "class/infiniband/mlx5_1", F_OK, 0), -1);
    close(fd);
    close(sys);
    ck_assert_int_eq(chdir("/sys/class"), 0);
    ck_line_is("infiniband/mlx5_0/node_type", "1: CA");
    ck_assert(is_listed("net", "hca0") && is_listed("./net", "lo"));
    ck_assert_ptr_nonnull(realpath("infiniband/mlx5_0", path));
    ck_assert_msg(!strncmp(path, "/sys/devices/pci", 16), "%s", path);
    ck_assert_int_eq(chdir("/"), 0);
    ck_line_is("sys/class/infiniband/mlx5_0/node_type", "1: CA");
    ck_assert_int_eq(chdir("/usr"), 0);
    ck_assert_int_eq(status_of("class/infiniband"), ENOENT);
    ck_assert_int_eq(status_of("../sys/class/infiniband"), 0);
}
END_TEST

/* A program that assembles a path from parts writes such paths. */
START_TEST(a_path_may_have_parts_that_lead_nowhere)
{
    struct stat st;

    beside_own_wire();
    ck_line_is("/sys//class/./infiniband///mlx5_0/./node_type", "1: CA");
    ck_assert(is_listed("/sys/./class//infiniband/.", "mlx5_0"));
    ck_assert(is_listed("/sys/class//net/", "hca0"));
    ck_assert_int_eq(lstat("/sys/class//infiniband/mlx5_0", &st), 0);
    ck_assert(S_ISLNK(st.st_mode));
    ck_assert_int_eq(lstat("/sys/class//infiniband/mlx5_0/", &st), 0);
    ck_assert(S_ISDIR(st.st_mode));
    ck_assert_int_eq(status_of("/sys/class//infiniband/mlx5_0/node_type/"), ENOTDIR);
    ck_assert_int_eq(status_of("/sys/class//infiniband/mlx5_0/."), 0);
    ck_assert_int_eq(chdir("/sys//class"), 0);
    ck_line_is(".//infiniband/mlx5_0/node_type", "1: CA");
    ck_assert_int_eq(status_of("/sys/class/.infiniband"), ENOENT);
    ck_assert_int_eq(status_of("/sys//class/infiniband/nobody"), ENOENT);
}
END_TEST

START_TEST(a_folder_of_the_hca_s_is_at_its_place)
{
    char folder[PATH_MAX];

    beside_own_wire();
    ck_assert_int_eq(chdir("/sys/class/infiniband"), 0);
    ck_assert_ptr_nonnull(getcwd(folder, sizeof(folder)));
    ck_assert_str_eq(folder, "/sys/class/infiniband");
    ck_line_is("mlx5_0/node_type", "1: CA");
    ck_line_is("../infiniband/mlx5_0/node_type", "1: CA");
    ck_assert(is_listed("../net", "lo"));
}
END_TEST

static unsigned walked;

static int count_in_class(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    struct stat same;

    ck_assert_msg(!strncmp(path, "/sys/class/infiniband", 21), "%s", path);
    ck_assert_int_eq(lstat(path, &same), 0);
    ck_assert_uint_eq(same.st_ino, st->st_ino);
    walked += !strcmp(path + at->base, "mlx5_0") && flag == FTW_SL;
    return 0;
}

/* Uses the C library's own walks of folders. */
START_TEST(patterns_and_walks_find_the_hca)
{
    bool has_lo = false, has_hca = false;
    glob_t found;

    beside_own_wire();
    ck_assert_int_eq(glob("/sys/class/infiniband/*/node_type", 0, NULL, &found), 0);
    ck_assert_uint_eq(found.gl_pathc, 1);
    ck_assert_str_eq(found.gl_pathv[0], IBDEV "/node_type");
    globfree(&found);
    ck_assert_int_eq(glob("/sys/class/net/*/address", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        has_lo |= !strcmp(found.gl_pathv[i], "/sys/class/net/lo/address");
        has_hca |= !strcmp(found.gl_pathv[i], "/sys/class/net/hca0/address");
    }
    ck_assert(has_lo && has_hca);
    globfree(&found);
    ck_assert_int_eq(nftw("/sys/class/infiniband", count_in_class, 4, FTW_PHYS), 0);
    ck_assert_uint_eq(walked, 1);
    ck_assert_int_eq(nftw("/sys//class/./infiniband/", count_in_class, 4, FTW_PHYS), 0);
    ck_assert_uint_eq(walked, 2);
    ck_assert_int_eq(nftw("/sys/class/infiniband/nothing", count_in_class, 4, FTW_PHYS), -1);
}
END_TEST

/* UCX reads vendor and device two folders above ibdev_path (ucs_topo_resolve_sysfs_path()). */
START_TEST(a_program_finds_the_card_from_the_device)
{
    struct ibv_device **list;
    char path[PATH_MAX + 32], real[PATH_MAX], link[64] = "";

    beside_own_wire();
    setenv("HCASIM_PROFILE", "cx7", 1);
    list = ibv_get_device_list(NULL);
    ck_assert(list && list[0]);
    snprintf(path, sizeof(path), "%s/../../vendor", list[0]->ibdev_path);
    ck_line_is(path, "0x15b3");
    ck_assert_ptr_nonnull(realpath(list[0]->ibdev_path, real));
    ck_assert_msg(!strncmp(real, "/sys/devices/pci", 16), "%s", real);
    snprintf(path, sizeof(path), "%s/../../device", real);
    ck_line_is(path, "0x1021");
    ck_assert_int_gt(readlink(IBDEV "/device", link, sizeof(link) - 1), 0);
    ck_assert_ptr_nonnull(strstr(link, "../../../"));
    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/vendor", strrchr(link, '/') + 1);
    ck_line_is(path, "0x15b3");
    ibv_free_device_list(list);
}
END_TEST

START_TEST(the_device_file_is_a_character_device)
{
    struct stat st;
    int fd;

    beside_own_wire();
    ck_assert_int_eq(stat("/dev/infiniband/uverbs0", &st), 0);
    ck_assert(S_ISCHR(st.st_mode));
    fd = open("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_int_eq(access("/dev/infiniband/uverbs1", F_OK), -1);
    ck_assert_int_eq(errno, ENOENT);
}
END_TEST

/* The entries are as the kernel's, of which root may write only a few. */
START_TEST(files_of_sysfs_cannot_be_written)
{
    const char *guid = IBDEV "/node_guid";
    char before[64];

    beside_own_wire();
    snprintf(before, sizeof(before), "%s", line_of(guid));
    ck_assert_int_eq(open(guid, O_WRONLY), -1);
    ck_assert_int_eq(errno, EACCES);
    ck_assert_int_eq(open(guid, O_RDONLY | O_TRUNC), -1);
    ck_assert_int_eq(errno, EACCES);
    ck_assert_ptr_null(fopen(guid, "w"));
    ck_assert_int_eq(errno, EACCES);
    ck_assert_ptr_null(fopen(guid, "r+"));
    ck_assert_int_eq(errno, EACCES);
    ck_line_is(guid, "%s", before);
}
END_TEST

/* Programs that were built with an older C library call these functions. */
START_TEST(old_names_see_the_same)
{
    static const char *const names[] = {"__xstat", "__xstat64", "__lxstat", "__lxstat64"};
    struct stat st, old;

    beside_own_wire();
    ck_assert_int_eq(stat(IBDEV "/fw_ver", &st), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        int (*call)(int, const char *, struct stat *) =
            (int (*)(int, const char *, struct stat *))dlsym(RTLD_DEFAULT, names[i]);

        ck_assert_ptr_nonnull(call);
        ck_assert_int_eq(call(1, IBDEV "/fw_ver", &old), 0);
        ck_assert_uint_eq(old.st_ino, st.st_ino);
    }
}
END_TEST

START_TEST(other_paths_lead_to_the_machine)
{
    int (*volatile call)(const char *, int) = access; /* no compiler sees its "nonnull" */
    struct stat st;

    beside_own_wire();
    ck_assert_int_eq(open("/sys/class/infiniban", O_RDONLY | O_CLOEXEC), -1);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_int_eq(stat("/dev/null", &st), 0);
    ck_assert_int_eq(access("/dev/infinity", F_OK), -1);
    ck_assert_int_eq(errno, ENOENT);
    /* The system decides whether a program may pass no path. */
    ck_assert_int_eq(call(NULL, F_OK), -1);
    ck_assert_int_eq(errno, EFAULT);
}
END_TEST

/* Reading takes no number on the wire, makes no file there, and leaves a capture as it is. */
START_TEST(a_look_makes_no_host)
{
    char capture[] = "/tmp/beside-XXXXXX", text[8] = "";
    int fd = mkstemp(capture);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "kept", 4), 4);
    beside_own_wire();
    setenv("HCASIM_CAPTURE", capture, 1);
    line_of(IBDEV "/fw_ver");
    ck_assert(!wire_is_there());
    ck_assert_int_eq(pread(fd, text, sizeof(text), 0), 4);
    ck_assert_str_eq(text, "kept");
    close(fd);
    unlink(capture);
}
END_TEST

static void become_a_host_and_wait(int told, int wait)
{
    char byte = 0;

    open_first();
    (void)!write(told, &byte, 1);
    (void)!read(wait, &byte, 1);
    exit(0);
}

/* Returns whether the GID ends with this text, such as 0a00:0002 of 10.0.0.2. */
static bool gid_ends(const char *end)
{
    const char *line = line_of(IBDEV "/ports/1/gids/1");

    return !strcmp(line + strlen(line) - strlen(end), end);
}

/* By the time it joins, another host may have taken the number that it saw. */
START_TEST(a_host_sees_its_own_address_after_an_earlier_look)
{
    struct ibv_context *context;
    int told[2], wait[2];
    char byte;
    pid_t pid;

    beside_own_wire();
    ck_assert(gid_ends("0a00:0001"));
    ck_assert_int_eq(pipe(told), 0);
    ck_assert_int_eq(pipe(wait), 0);
    pid = fork();
    if (!pid) {
        become_a_host_and_wait(told[1], wait[0]);
    }
    ck_assert_int_eq(read(told[0], &byte, 1), 1);
    context = open_first();
    ck_assert(gid_ends("0a00:0002"));
    ck_assert_int_eq(write(wait[1], "", 1), 1);
    waitpid(pid, NULL, 0);
    ck_assert(gid_ends("0a00:0002"));
    ibv_close_device(context);
}
END_TEST

static void sees_its_parent_s(void)
{
    ck_assert(gid_ends("0a09:0807"));
    ck_assert(gid_ends("0a09:0807"));
}

START_TEST(a_child_that_looks_sees_its_parent_s_device)
{
    struct ibv_context *context;

    beside_own_wire();
    setenv("HCASIM_IP", "10.9.8.7", 1);
    context = open_first();
    unsetenv("HCASIM_IP"); /* the child would have this address if it joined the wire */
    in_a_child(sees_its_parent_s);
    sees_its_parent_s();
    in_a_child(sees_its_parent_s);
    ibv_close_device(context);
}
END_TEST

static int root_pipe[2];

static void tell_root(void)
{
    char root[PATH_MAX] = "";

    beside_root(root);
    ck_assert_int_eq(write(root_pipe[1], root, sizeof(root)), sizeof(root));
}

static void tell_root_and_die(void)
{
    tell_root();
    kill(getpid(), SIGKILL);
}

static void close_all_and_look(void)
{
    close_range(3, ~0u, 0);
    line_of(IBDEV "/fw_ver");
}

static void look(void)
{
    line_of(IBDEV "/fw_ver");
}

/* Makes a folder for the trees of this process and its children. A program of another test, which
 * would remove what a killed process left behind, does not look there. */
static void own_trees(char folder[PATH_MAX])
{
    strcpy(folder, "/tmp/beside-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    setenv("XDG_RUNTIME_DIR", folder, 1);
    ck_assert_int_eq(pipe(root_pipe), 0);
}

/* A killed process leaves a tree behind. */
static void leave_a_tree(char root[PATH_MAX])
{
    pid_t pid = fork();

    if (!pid) {
        tell_root_and_die();
    }
    waitpid(pid, NULL, 0);
    ck_assert_int_eq(read(root_pipe[0], root, PATH_MAX), PATH_MAX);
    ck_assert_int_eq(access(root, F_OK), 0);
}

START_TEST(nothing_is_left)
{
    char root[PATH_MAX], folder[PATH_MAX];

    beside_own_wire();
    own_trees(folder);
    in_a_child(tell_root);
    ck_assert_int_eq(read(root_pipe[0], root, sizeof(root)), sizeof(root));
    ck_assert_int_ne(access(root, F_OK), 0);
    leave_a_tree(root);
    /* The next reader removes it. */
    in_a_child(look);
    ck_assert_int_ne(access(root, F_OK), 0);
    in_a_child(close_all_and_look);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

/* Whoever removes a tree holds its lock meanwhile. Another reader does not wait for the lock. If
 * the process that removes the tree dies, the next reader removes the rest. */
START_TEST(a_tree_that_is_being_removed_keeps_no_reader_waiting)
{
    char root[PATH_MAX], folder[PATH_MAX];
    int remover;

    beside_own_wire();
    own_trees(folder);
    leave_a_tree(root);
    remover = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_eq(flock(remover, LOCK_EX | LOCK_NB), 0);
    in_a_child(look);
    ck_assert_int_eq(access(root, F_OK), 0);
    close(remover);
    in_a_child(look);
    ck_assert_int_ne(access(root, F_OK), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

/* -- interfaces --------------------------------------------------------------------------------
 */

static const struct ifaddrs *entry_of(const struct ifaddrs *list, const char *name, int family)
{
    while (list && (strcmp(list->ifa_name, name) != 0 || list->ifa_addr->sa_family != family)) {
        list = list->ifa_next;
    }
    return list;
}

START_TEST(the_network_device_is_among_the_interfaces)
{
    const struct ifaddrs *link, *ipv4, *ipv6;
    struct rtnl_link_stats stats;
    struct ifaddrs *list, *other;
    struct sockaddr_ll mac;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    union ibv_gid gid[2];
    struct ibv_context *context;
    char name[IF_NAMESIZE];

    beside_own_wire();
    setenv("HCASIM_DEVICES", "2", 1);
    context = open_first();
    ck_assert_int_eq(ibv_query_gid(context, 1, 0, &gid[0]), 0);
    ck_assert_int_eq(ibv_query_gid(context, 1, 1, &gid[1]), 0);
    ck_assert_int_eq(getifaddrs(&list), 0);
    ck_assert_int_eq(getifaddrs(&other), 0);
    ck_assert_ptr_nonnull(entry_of(list, "lo", AF_PACKET));
    ck_assert_ptr_nonnull(entry_of(list, "hca1", AF_INET));
    link = entry_of(list, "hca0", AF_PACKET);
    ipv4 = entry_of(list, "hca0", AF_INET);
    ipv6 = entry_of(list, "hca0", AF_INET6);
    ck_assert(link && ipv4 && ipv6);
    memcpy(&mac, link->ifa_addr, sizeof(mac));
    memcpy(&in, ipv4->ifa_addr, sizeof(in));
    memcpy(&in6, ipv6->ifa_addr, sizeof(in6));
    ck_line_is("/sys/class/net/hca0/ifindex", "%d", mac.sll_ifindex);
    ck_assert_uint_eq(if_nametoindex("hca0"), (unsigned)mac.sll_ifindex);
    ck_assert_str_eq(if_indextoname((unsigned)mac.sll_ifindex + 1, name), "hca1");
    ck_assert_uint_eq(if_nametoindex("hca2"), 0);
    ck_line_is("/sys/class/net/hca0/address", "%02x:%02x:%02x:%02x:%02x:%02x", mac.sll_addr[0],
               mac.sll_addr[1], mac.sll_addr[2], mac.sll_addr[3], mac.sll_addr[4], mac.sll_addr[5]);
    memcpy(&stats, link->ifa_data, sizeof(stats)); /* all of it */
    ck_assert_uint_eq(stats.rx_packets, 0);
    ck_assert(!memcmp(&in.sin_addr, &gid[1].raw[12], sizeof(in.sin_addr)));
    ck_assert(!memcmp(&in6.sin6_addr, &gid[0], sizeof(gid[0])));
    ck_assert_uint_eq(in6.sin6_scope_id, (unsigned)mac.sll_ifindex);
    freeifaddrs(list);
    ck_assert_ptr_nonnull(entry_of(other, "hca0", AF_INET));
    freeifaddrs(other);
    ibv_close_device(context);
}
END_TEST

static struct sockaddr_in host_address(unsigned host, uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = port, .sin_addr = {htonl(10u << 24 | host)}};
}

static int call_with(int (*call)(int, const struct sockaddr *, socklen_t), int fd, unsigned host,
                     uint16_t port)
{
    struct sockaddr_in addr = host_address(host, port);

    errno = 0;
    return call(fd, (const struct sockaddr *)&addr, sizeof(addr));
}

static int tcp(int family)
{
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    return fd;
}

/* Whether data for the host's address arrives at the machine itself: a datagram socket tells. */
static bool is_taken_to_the_machine(unsigned host)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in peer;
    socklen_t len = sizeof(peer);
    bool is = !call_with(connect, fd, host, 9) &&
              !getpeername(fd, (struct sockaddr *)&peer, &len) &&
              ntohl(peer.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;

    close(fd);
    return is;
}

static uint16_t listening_port;

static void reach_the_parent(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    unsetenv("HCASIM_HOST");
    open_first();
    ck_assert_int_eq(call_with(connect, fd, 3, listening_port), 0);
    close(fd);
    ck_assert_int_eq(call_with(bind, tcp(AF_INET), 3, 0), -1); /* another host's */
    ck_assert_int_eq(errno, EADDRNOTAVAIL);
}

START_TEST(sockets_meet_at_the_addresses_of_hosts)
{
    struct sockaddr_in at;
    socklen_t len = sizeof(at);
    int fd = tcp(AF_INET);

    beside_own_wire();
    setenv("HCASIM_HOST", "3", 1);
    open_first();
    ck_assert_int_eq(call_with(bind, fd, 3, 0), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    listening_port = at.sin_port;
    in_a_child(reach_the_parent);
    ck_assert(is_taken_to_the_machine(77)); /* it may still join */
    ck_assert(!is_taken_to_the_machine(0x20003));
    ck_assert_int_eq(call_with(bind, tcp(AF_INET6), 3, 0), -1);
    ck_assert_int_ne(errno, EADDRNOTAVAIL);
    ck_assert_int_eq(call_with(bind, tcp(AF_INET), 77, 0), -1);
    ck_assert_int_eq(errno, EADDRNOTAVAIL);
}
END_TEST

/* As programs without connections use them. */
START_TEST(datagrams_reach_the_addresses_of_hosts)
{
    int receiver = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int sender = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    char sent[] = "sent";
    struct iovec iov = {.iov_base = sent, .iov_len = 4};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    struct sockaddr_in to;
    socklen_t len = sizeof(to);
    char text[8] = "";

    beside_own_wire();
    setenv("HCASIM_HOST", "3", 1);
    open_first();
    ck_assert_int_eq(call_with(bind, receiver, 3, 0), 0);
    ck_assert_int_eq(getsockname(receiver, (struct sockaddr *)&to, &len), 0);
    to = host_address(3, to.sin_port);
    ck_assert_int_eq(sendto(sender, sent, 4, 0, (const struct sockaddr *)&to, sizeof(to)), 4);
    ck_assert_int_eq(recv(receiver, text, sizeof(text), 0), 4);
    message.msg_name = &to;
    message.msg_namelen = sizeof(to);
    ck_assert_int_eq(sendmsg(sender, &message, 0), 4);
    ck_assert_int_eq(recv(receiver, text, sizeof(text), 0), 4);
    ck_assert_str_eq(text, "sent");
    close(sender);
    close(receiver);
}
END_TEST

/* As NCCL finds the folder of a PCI function, from which it reads class and link. */
START_TEST(a_program_finds_the_card_from_its_bus)
{
    char path[PATH_MAX];

    beside_own_wire();
    ck_assert_ptr_nonnull(realpath("/sys/class/pci_bus/ca00:00/../../ca00:00:00.0", path));
    ck_assert_str_eq(path, "/sys/devices/pcica00:00/ca00:00:00.0");
    ck_assert_ptr_nonnull(realpath("/sys/class/pci_bus/ca00:00/device", path));
    ck_assert_str_eq(path, "/sys/devices/pcica00:00");
    ck_assert(is_listed("/sys/class/pci_bus", "ca00:00"));
    ck_line_is("/sys/class/pci_bus/ca00:00/../../ca00:00:00.0/class", "0x020000");
}
END_TEST

/* Programs conclude from any of these files that ibv_reg_mr() takes memory of a GPU. */
static void peer_memory_is(int status)
{
    static const char *const files[] = {"/sys/kernel/mm/memory_peers/nv_mem/version",
                                        "/sys/module/nvidia_peermem/version"};

    beside_own_wire();
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        ck_assert_int_eq(status_of(files[i]), status);
    }
}

static void peer_memory_is_missing(void)
{
    peer_memory_is(ENOENT);
}

static void peer_memory_is_there(void)
{
    setenv("HCASIM_GPU", "real", 1);
    peer_memory_is(0);
    ck_assert_int_gt(strlen(line_of("/sys/module/nvidia_peermem/version")), 0);
    ck_assert_int_eq(status_of("/sys/module/nvidia_peermem/refcnt"), ENOENT);
}

START_TEST(peer_memory_is_there_if_a_gpu_is)
{
    if (!access("/sys/module/nvidia_peermem", F_OK) ||
        !access("/sys/kernel/mm/memory_peers", F_OK)) {
        return; /* the machine has the module itself */
    }
    unsetenv("HCASIM_GPU");
    in_a_child(peer_memory_is_missing);
    in_a_child(peer_memory_is_there);
}
END_TEST

int main(void)
{
    const TTest *const statements[] = {
        sysfs_and_verbs_agree_about_the_device,
        sysfs_and_verbs_agree_about_the_port,
        a_connectx_4_lx_has_25_gb_s,
        a_connectx_6_dx_has_100_gb_s_on_two_lanes,
        a_connectx_7_has_400_gb_s,
        a_gid_leads_to_its_network_device,
        each_device_is_there,
        entries_of_the_machine_are_beside_those_of_the_hca,
        paths_may_begin_in_a_folder_above,
        a_path_may_have_parts_that_lead_nowhere,
        a_folder_of_the_hca_s_is_at_its_place,
        patterns_and_walks_find_the_hca,
        a_program_finds_the_card_from_the_device,
        the_device_file_is_a_character_device,
        files_of_sysfs_cannot_be_written,
        old_names_see_the_same,
        other_paths_lead_to_the_machine,
        a_look_makes_no_host,
        a_host_sees_its_own_address_after_an_earlier_look,
        a_child_that_looks_sees_its_parent_s_device,
        nothing_is_left,
        a_tree_that_is_being_removed_keeps_no_reader_waiting,
        the_network_device_is_among_the_interfaces,
        sockets_meet_at_the_addresses_of_hosts,
        datagrams_reach_the_addresses_of_hosts,
        a_program_finds_the_card_from_its_bus,
        peer_memory_is_there_if_a_gpu_is,
    };
    TCase *tc = tcase_create("beside");
    Suite *suite = suite_create("verbs-beside");

    tcase_set_timeout(tc, 60);
    for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++) {
        tcase_add_test(tc, statements[i]);
    }
    suite_add_tcase(suite, tc);
    return run_on_own_wire(suite, "beside");
}
