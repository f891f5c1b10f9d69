/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests registrations of dma-bufs that are not a GPU's: the library maps them, as it can a dma-buf
 * of /dev/udmabuf. Where the kernel has that device, the dma-bufs are its own. Otherwise they are
 * memfds which this program says are dma-bufs: readlink() below answers for the kernel, and all
 * else is the same (mmap(), lseek()).
 */
#define _GNU_SOURCE
#include <check.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "guest-lib/verbs/dv.h"
#include "tests/unit/suite.h"
#include "tests/verbs/dmabuf_bench.h"

static struct verbs_table *v;
static struct ibv_pd *pd;
static uint8_t *memory; /* of the memfd behind the dma-buf */
static int fd;
static int stands_in = -1; /* the memfd that counts as a dma-buf */
static bool has_no_mapping;

/* The library asks the kernel for the name that a dma-buf has in /proc. */
ssize_t readlink(const char *path, char *buf, size_t size)
{
    int asked;

    if (stands_in >= 0 && sscanf(path, "/proc/self/fd/%d", &asked) == 1 && asked == stands_in) {
        memcpy(buf, "/dmabuf:", MIN(size, 8));
        return 8;
    }
    return syscall(SYS_readlink, path, buf, size);
}

void *mmap(void *addr, size_t len, int prot, int flags, int of, off_t at)
{
    if (has_no_mapping && of >= 0 && of == fd) {
        errno = EINVAL;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, addr, len, prot, flags, of, at);
}

struct udmabuf_create {
    uint32_t memfd, flags;
    uint64_t offset, size;
};
#define UDMABUF_CREATE _IOW('u', 0x42, struct udmabuf_create)

/* The kernel's dma-buf of a memfd, or the memfd itself. */
static int dmabuf_of(int memfd)
{
    struct udmabuf_create wish = {.memfd = (uint32_t)memfd, .size = SIZE};
    int device = open("/dev/udmabuf", O_RDWR), made = -1;

    if (device >= 0) {
        made = ioctl(device, UDMABUF_CREATE, &wish);
        close(device);
    }
    if (made >= 0) {
        close(memfd);
        return made;
    }
    stands_in = memfd;
    return memfd;
}

static void setup(void)
{
    int memfd = memfd_create("dmabuf", MFD_ALLOW_SEALING);

    ck_assert_int_ge(memfd, 0);
    ck_assert_int_eq(ftruncate(memfd, SIZE), 0);
    ck_assert_int_eq(fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
    ck_assert_ptr_ne(memory, MAP_FAILED);
    fd = dmabuf_of(memfd);
    v = verbs_table_new();
    pd = v->hosts->host[0].pd;
}

static void teardown(void)
{
    verbs_table_free(v);
    munmap(memory, SIZE);
    close(fd);
    stands_in = -1;
}

/* How many mappings of the dma-buf this process has. */
static unsigned mappings(void)
{
    char line[512];
    unsigned n = 0;
    FILE *maps = fopen("/proc/self/maps", "r");

    while (fgets(line, sizeof(line), maps)) {
        n += strstr(line, "dmabuf") != NULL;
    }
    fclose(maps);
    return n;
}

/* ib_umem_dmabuf_get() */
START_TEST(a_region_lies_in_the_dma_buf)
{
    unsigned before = mappings();

    dmabuf_bounds_are_checked(pd, fd);
    dmabuf_refused(pd, fd, 0, PAGE, 8, LOCAL, EINVAL);
    dmabuf_refused(pd, fd, 0, PAGE, 0, IBV_ACCESS_REMOTE_WRITE, EINVAL);
    ck_assert_uint_eq(mappings(), before);
}
END_TEST

START_TEST(a_dma_buf_without_a_mapping_is_refused)
{
    has_no_mapping = true;
    dmabuf_refused(pd, fd, 0, PAGE, 0, LOCAL, EOPNOTSUPP);
    has_no_mapping = false;
}
END_TEST

/* A command that fails leaves no mapping. */
START_TEST(a_refused_region_leaves_no_mapping)
{
    unsigned before = mappings();

    table_refuse(v, 0, PRM_CMD_STATUS_NO_RES);
    dmabuf_refused(pd, fd, 0, PAGE, 0, LOCAL, EAGAIN);
    ck_assert_uint_eq(mappings(), before);
}
END_TEST

/* Sends a WRITE and a READ of host 1 to the region. */
static void write_and_read(struct ibv_mr *mr, uint64_t raddr, size_t place, unsigned len)
{
    const struct dmabuf_peer peer = dmabuf_peer_new(v);

    memset(peer.page->addr, 0x5a, len);
    ck_assert_int_eq(dmabuf_peer_does(&peer, IBV_WR_RDMA_WRITE, mr, raddr, len), IBV_WC_SUCCESS);
    for (size_t i = 0; i < SIZE; i++) {
        ck_assert_uint_eq(memory[i], i >= place && i < place + len ? 0x5a : 0);
    }
    memset(memory + place, 0x77, len);
    ck_assert_int_eq(dmabuf_peer_does(&peer, IBV_WR_RDMA_READ, mr, raddr, len), IBV_WC_SUCCESS);
    ck_assert_mem_eq(peer.page->addr, memory + place, len);
    memset(memory, 0, SIZE);
    dmabuf_peer_free(&peer);
}

/* Offset and iova need only have the same place in their pages. */
START_TEST(offset_and_iova_lead_to_the_memory)
{
    static const struct {
        uint64_t offset, length, iova, at;
        unsigned len;
    } places[] = {
        {0, SIZE, 0, 0, 100},
        {0, SIZE, 0, 3 * PAGE - 50, 100},
        {5 * PAGE + 77, 3 * PAGE, 0x7000 + 77, 2 * PAGE, 200},
        {SIZE - 300, 300, PAGE - 300, 100, 200},
    };
    unsigned before = mappings();

    for (size_t i = 0; i < G_N_ELEMENTS(places); i++) {
        struct ibv_mr *mr =
            ibv_reg_dmabuf_mr(pd, places[i].offset, places[i].length, places[i].iova, fd, ALL);

        ck_assert_ptr_nonnull(mr);
        write_and_read(mr, places[i].iova + places[i].at, places[i].offset + places[i].at,
                       places[i].len);
        ck_assert_int_eq(ibv_dereg_mr(mr), 0);
        ck_assert_uint_eq(mappings(), before);
    }
}
END_TEST

START_TEST(a_region_keeps_the_memory_of_a_closed_dma_buf)
{
    struct ibv_mr *mr = ibv_reg_dmabuf_mr(pd, 0, SIZE, 0, fd, ALL);

    ck_assert_ptr_nonnull(mr);
    close(fd);
    write_and_read(mr, 0x100, 0x100, 64);
    ck_assert_int_eq(ibv_dereg_mr(mr), 0);
    fd = open("/dev/null", O_RDONLY); /* for the teardown */
}
END_TEST

START_TEST(a_umem_may_be_a_dma_buf)
{
    struct mlx5dv_devx_umem_in in = {.addr = (void *)(uintptr_t)PAGE,
                                     .size = 2 * PAGE,
                                     .access = IBV_ACCESS_LOCAL_WRITE,
                                     .pgsz_bitmap = UINT64_MAX & ~(uint64_t)(PAGE - 1),
                                     .comp_mask = MLX5DV_UMEM_MASK_DMABUF,
                                     .dmabuf_fd = fd};
    unsigned before = mappings();
    struct mlx5dv_devx_umem *umem = hv_dv_devx_umem_reg_ex(v->a, &in);

    ck_assert_ptr_nonnull(umem);
    ck_assert_uint_eq(mappings(), before + 1);
    ck_assert_int_eq(hv_dv_devx_umem_dereg(umem), 0);
    in.access = IBV_ACCESS_REMOTE_WRITE;
    ck_assert_ptr_null(hv_dv_devx_umem_reg_ex(v->a, &in));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_uint_eq(mappings(), before);
}
END_TEST

Suite *unit_suite(void)
{
    TCase *tc = tcase_create("dmabuf");
    Suite *suite = suite_create("verbs-dmabuf");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_region_lies_in_the_dma_buf);
    tcase_add_test(tc, a_dma_buf_without_a_mapping_is_refused);
    tcase_add_test(tc, a_refused_region_leaves_no_mapping);
    tcase_add_test(tc, offset_and_iova_lead_to_the_memory);
    tcase_add_test(tc, a_region_keeps_the_memory_of_a_closed_dma_buf);
    tcase_add_test(tc, a_umem_may_be_a_dma_buf);
    suite_add_tcase(suite, tc);
    return suite;
}
