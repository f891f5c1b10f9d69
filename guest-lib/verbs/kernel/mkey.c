/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys and pinned memory: the common part of regions, windows and user memory. */
#include <sys/mman.h>
#include <unistd.h>
#include "guest-lib/verbs/kernel/hca.h"
#include "guest-lib/verbs/kernel/mkey.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

int hv_mkey_create(struct hv_hca *hca, struct prm_create_mkey_in *in, size_t in_len, uint32_t *key)
{
    uint8_t variant = (uint8_t)(g_atomic_int_add(&hca->key_variant, 1) + 1);
    struct prm_create_mkey_out out[1] = {0};
    int err;

    PRM_SET(create_mkey_in, in, opcode, PRM_CMD_OP_CREATE_MKEY);
    PRM_SET(mkc, PRM_PTR(create_mkey_in, in, memory_key_mkey_entry), mkey_7_0, variant);
    err = hv_cmd(hca, in, in_len, out, sizeof(out));
    *key = PRM_GET(create_mkey_out, out, mkey_index) << 8 | variant;
    return err;
}

int hv_mkey_destroy(struct hv_hca *hca, uint32_t key)
{
    struct prm_destroy_mkey_in in[1] = {0};

    PRM_SET(destroy_mkey_in, in, opcode, PRM_CMD_OP_DESTROY_MKEY);
    PRM_SET(destroy_mkey_in, in, mkey_index, key >> 8);
    return hv_cmd_simple(hca, in, sizeof(in));
}

/* Whether memory can be populated on request. Kernels before 5.14 and some sandboxes cannot. */
static bool mkey_can_populate(void)
{
    /* 0: not known yet; without a lock, so a child of fork() cannot wait for a thread that does not
     * exist there */
    static gint answer;
    gint known = g_atomic_int_get(&answer);

    if (!known) {
        void *page =
            mmap(NULL, PCI_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        bool can = page != MAP_FAILED && !madvise(page, PCI_PAGE, MADV_POPULATE_WRITE);

        if (page != MAP_FAILED) {
            munmap(page, PCI_PAGE);
        }
        known = can ? 2 : 1;
        g_atomic_int_set(&answer, known);
    }
    return known == 2;
}

int hv_umem_check(const void *ptr, size_t len, bool writable)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t addr = (uintptr_t)ptr, start = addr & ~(page - 1);
    size_t size = ((addr + len + page - 1) & ~(page - 1)) - start;
    unsigned char in_core[256];

    if (mkey_can_populate()) {
        int advice = writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;

        while (madvise((void *)start, size, advice)) {
            if (errno != EAGAIN && errno != EINTR) {
                return EFAULT;
            }
        }
        return 0;
    }
    while (size) {
        size_t part = MIN(size, sizeof(in_core) * page);

        if (mincore((void *)start, part, in_core)) {
            return EFAULT;
        }
        start += part;
        size -= part;
    }
    return 0;
}
