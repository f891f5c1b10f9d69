/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys of experimental verbs that have no memory of the process: over bus addresses, and keys whose
 * ranges of other keys a UMR fills in. */
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "guest-lib/verbs/kernel/mkey.h"
#include "guest-lib/verbs/kernel/odp.h"
#include "guest-lib/verbs/kernel/uverbs.h"

/* Whether the process may do raw I/O, as capable() in the kernel. */
static bool mr_may_do_raw_io(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};

    return !syscall(SYS_capget, &header, data) &&
           data[CAP_TO_INDEX(CAP_SYS_RAWIO)].effective & CAP_TO_MASK(CAP_SYS_RAWIO);
}

/* Enters a key that has no memory of the process. */
static void mr_enter_key(struct hv_mr *mr, uint32_t key)
{
    mr->ibv.lkey = mr->ibv.rkey = key;
    mr->ibv.handle = hv_handle_add(mr->ibv.context, HV_HANDLE_MR, mr);
    g_atomic_int_inc(&mr->pd->refs);
}

int uverbs_reg_physical_mr(struct hv_mr *mr, struct ibv_pd *pd, uint64_t start, uint64_t length,
                           unsigned access)
{
    const unsigned may = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                         IBV_ACCESS_REMOTE_ATOMIC;
    struct hv_hca *hca = hv_hca_of(pd->context);
    struct prm_create_mkey_in in[1] = {0};
    struct prm_mkc *mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);
    uint32_t key = 0;
    int err;

    if (!mr_may_do_raw_io()) {
        return hv_refuse(hca, EPERM,
                         "reg_mr: IBV_EXP_ACCESS_PHYSICAL_ADDR needs the capability CAP_SYS_RAWIO");
    }
    if (access & ~may) {
        return hv_refuse(hca, EINVAL,
                         "reg_mr: access has bits 0x%x; with IBV_EXP_ACCESS_PHYSICAL_ADDR it may "
                         "have 0x%x",
                         access & ~may, may);
    }
    err = hv_mr_check_access(hca, access);
    err = err ? err : hv_pd_check(pd);
    if (err) {
        return err;
    }
    hv_mr_set_rights(hca, mkc, access);
    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_PA);
    PRM_SET(mkc, mkc, length64, !length);
    PRM_SET(mkc, mkc, len, length);
    PRM_SET(mkc, mkc, pd, mr->pd->pdn);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, start_addr, start);
    err = hv_mkey_create(hca, in, sizeof(in), &key);
    if (!err) {
        mr_enter_key(mr, key);
    }
    return err;
}

#define LOG_RANGE_MAX 31 /* log_page_size of a key of equal ranges before its first UMR */

int uverbs_create_keys_mr(struct hv_mr *mr, struct ibv_pd *pd, uint32_t max_klms, bool equal_ranges)
{
    struct hv_hca *hca = hv_hca_of(pd->context);
    struct prm_create_mkey_in in[1] = {0};
    struct prm_mkc *mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);
    uint64_t mode = equal_ranges ? PRM_MKC_ACCESS_MODE_KSM : PRM_MKC_ACCESS_MODE_KLMS;
    uint32_t key = 0;
    int err = hv_pd_check(pd);

    if (!err && max_klms > 1u << HV_CAP(hca, log_max_klm_list_size)) {
        err = hv_refuse(hca, EINVAL, "create_mr: max_klm_list_size is %u; it may be at most %u",
                        max_klms, 1u << HV_CAP(hca, log_max_klm_list_size));
    }
    if (err) {
        return err;
    }
    PRM_SET(mkc, mkc, free, 1);
    PRM_SET(mkc, mkc, umr_en, 1);
    PRM_SET(mkc, mkc, access_mode_1_0, mode & 3);
    PRM_SET(mkc, mkc, access_mode_4_2, mode >> 2);
    PRM_SET(mkc, mkc, log_page_size, equal_ranges ? LOG_RANGE_MAX : 0);
    PRM_SET(mkc, mkc, pd, mr->pd->pdn);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    /* an interleaved list has an entry more */
    PRM_SET(mkc, mkc, translations_octword_size, (max_klms + 1 + 3) & ~3u);
    err = hv_mkey_create(hca, in, sizeof(in), &key);
    if (!err) {
        mr->max_klms = (max_klms + 3) & ~3u;
        hv_odp_add_indirect(hca, key, (max_klms + 1 + 3) & ~3u);
        mr_enter_key(mr, key);
    }
    return err;
}
