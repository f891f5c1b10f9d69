/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Regions of on-demand paging: their keys, and which of their pages the device has (mlx5_ib: odp.c;
 * ib_core: umem_odp.c).
 *
 * A region begins without pages. Its key has a translation entry for each page, and an entry of 0
 * makes the device report a page fault. The pager then makes the page present in the process and
 * writes the entry by a UMR. When memory changes, a UMR clears the entries again. pages[] holds the
 * rights that were written last, so that a UMR, which writes entries in groups of 64 bytes, can
 * repeat the neighbours' entries.
 *
 * mlx5_ib enters the pages that are present when a region is registered (mlx5_ib_init_odp_mr()).
 * Here that happens only if queues exist that may not miss a page, which such programs rely on: in
 * the region's PD a queue of a service without page faults, or a queue made by DevX in the
 * transport scheme, where the driver cannot read its WQEs. They are also entered when the first
 * such queue is made. For all others the first access is a page fault (docs/adr/0024).
 *
 * An implicit region is a list of keys (KSM), one for each GiB of addresses. At first all of them
 * are the null key. The first fault in a GiB makes a child: a region of that GiB. A child whose
 * last page is invalidated ends again, so the memory of an implicit region depends on the pages in
 * use.
 */
#include <inttypes.h>
#include <string.h>
#include "guest-lib/verbs/kernel/odp_internal.h"
#include "guest-lib/verbs/kernel/mkey.h"
#include "wire/cancel.h"

#define MTT_SIZE 8u
#define KSM_SIZE 16u
#define LOG_HUGE 21 /* HPAGE_SHIFT */
/* mlx5_ib: alloc_implicit_mr_null_mkey() */
#define NULL_KEY_LOG_PAGE 61
#define NULL_KEY_OCTWORDS 4

#define MASK(field)       (1ull << PRM_MKEY_MASK_##field)
/* get_umr_enable_mr_mask(), _update_translation_mask(), _update_access_mask(), _update_pd_mask() */
#define ENABLE_MASK                                                                                \
    (MASK(KEY) | MASK(FREE) | MASK(LEN) | MASK(PAGE_SIZE) | MASK(START_ADDR) | MASK(LR) |          \
     MASK(LW) | MASK(RR) | MASK(RW) | MASK(A) | MASK(PD))

/* -- capabilities ------------------------------------------------------------------------------ */

static bool odp_by_memory(struct hv_hca *hca)
{
    return PRM_GET(odp_cap, hv_drv(hca)->odp_cap, mem_page_fault);
}

static uint32_t odp_service_caps(const struct prm_odp_per_transport_service_cap *cap)
{
    return (PRM_GET(odp_per_transport_service_cap, cap, send) ? IBV_ODP_SUPPORT_SEND : 0) |
           (PRM_GET(odp_per_transport_service_cap, cap, receive) ? IBV_ODP_SUPPORT_RECV : 0) |
           (PRM_GET(odp_per_transport_service_cap, cap, write) ? IBV_ODP_SUPPORT_WRITE : 0) |
           (PRM_GET(odp_per_transport_service_cap, cap, read) ? IBV_ODP_SUPPORT_READ : 0) |
           (PRM_GET(odp_per_transport_service_cap, cap, atomic) ? IBV_ODP_SUPPORT_ATOMIC : 0) |
           (PRM_GET(odp_per_transport_service_cap, cap, srq_receive) ? IBV_ODP_SUPPORT_SRQ_RECV
                                                                     : 0);
}

static struct prm_odp_scheme_cap *odp_scheme(struct hv_hca *hca)
{
    struct prm_odp_cap *caps = hv_drv(hca)->odp_cap;

    return odp_by_memory(hca) ? (void *)PRM_PTR(odp_cap, caps, memory_page_fault_scheme_cap)
                              : (void *)PRM_PTR(odp_cap, caps, transport_page_fault_scheme_cap);
}

bool hv_odp_is_offered(struct hv_hca *hca)
{
    return HV_CAP(hca, pg) && !HV_CAP(hca, umr_modify_entity_size_disabled);
}

static bool odp_is_implicit_offered(struct hv_hca *hca)
{
    return HV_CAP(hca, fixed_buffer_size) && HV_CAP(hca, null_mkey) &&
           HV_CAP(hca, umr_extended_translation_offset) && !HV_CAP(hca, umr_indirect_mkey_disabled);
}

void hv_odp_caps(struct hv_hca *hca, struct ibv_odp_caps *caps, uint32_t *xrc_caps)
{
    struct prm_odp_scheme_cap *scheme = odp_scheme(hca);
    const uint32_t datagrams = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_SRQ_RECV;

    memset(caps, 0, sizeof(*caps));
    *xrc_caps = 0;
    if (!hv_odp_is_offered(hca)) {
        return;
    }
    caps->general_caps = IBV_ODP_SUPPORT;
    caps->per_transport_caps.ud_odp_caps =
        odp_service_caps(PRM_PTR(odp_scheme_cap, scheme, ud_odp_caps)) & datagrams;
    caps->per_transport_caps.rc_odp_caps =
        odp_service_caps(PRM_PTR(odp_scheme_cap, scheme, rc_odp_caps));
    *xrc_caps = odp_service_caps(PRM_PTR(odp_scheme_cap, scheme, xrc_odp_caps));
    if (odp_is_implicit_offered(hca)) {
        caps->general_caps |= IBV_ODP_SUPPORT_IMPLICIT;
    }
}

uint32_t uverbs_dc_odp_caps(struct hv_hca *hca)
{
    struct prm_odp_scheme_cap *scheme =
        (void *)PRM_PTR(odp_cap, hv_drv(hca)->odp_cap, transport_page_fault_scheme_cap);

    return HV_CAP(hca, pg) ? odp_service_caps(PRM_PTR(odp_scheme_cap, scheme, dc_odp_caps)) : 0;
}

/* -- the paging of an HCA ---------------------------------------------------------------------- */

/* The paging of an HCA, which is made when it is first needed. NULL with *err. */
static struct odp *odp_need(struct hv_hca *hca, int *err)
{
    struct odp *odp;
    int state;

    if (!hv_cmd_begin(hca, &state)) {
        *err = EIO;
        return NULL;
    }
    odp = hca->odp;
    if (!odp) {
        odp = g_new0(struct odp, 1);
        odp->hca = hca;
        odp->by_memory = odp_by_memory(hca);
        odp->keys = g_hash_table_new_full(NULL, NULL, NULL, g_free);
        odp->regions = g_ptr_array_new();
        pthread_mutex_init(&odp->lock, NULL);
        pthread_cond_init(&odp->unused, NULL);
        __atomic_store_n(&hca->odp, odp, __ATOMIC_RELEASE);
    }
    hv_cmd_end(hca, state);
    return odp;
}

/* Makes the event queue and starts the pager with the first region. Returns 0 or errno. */
static int odp_start(struct odp *odp)
{
    struct hv_hca *hca = odp->hca;
    int state, status, err;

    if (!hv_cmd_begin(hca, &state)) {
        return EIO;
    }
    status = drv_create_fault_eq(hca->drv);
    err = status || odp->pager ? 0 : odp_pager_start(odp);
    hv_cmd_end(hca, state);
    return status ? hv_status_errno(status) : err;
}

static struct odp *odp_of(struct hv_hca *hca)
{
    return __atomic_load_n(&hca->odp, __ATOMIC_ACQUIRE);
}

void hv_odp_free(struct hv_hca *hca)
{
    struct odp *odp = hca->odp;

    hca->odp = NULL;
    if (odp) {
        g_hash_table_destroy(odp->keys);
        g_ptr_array_free(odp->regions, TRUE);
        pthread_mutex_destroy(&odp->lock);
        pthread_cond_destroy(&odp->unused);
        g_free(odp);
    }
}

/* -- keys -------------------------------------------------------------------------------------- */

static gpointer odp_index(uint32_t key)
{
    return GUINT_TO_POINTER(key >> 8);
}

static void odp_add_key(struct odp *odp, const struct odp_key *key)
{
    g_hash_table_insert(odp->keys, odp_index(key->key), g_memdup2(key, sizeof(*key)));
}

static void odp_del_key(struct odp *odp, uint32_t key)
{
    g_hash_table_remove(odp->keys, odp_index(key));
}

const struct odp_key *odp_find(struct odp *odp, uint32_t key, int *err)
{
    const struct odp_key *found = g_hash_table_lookup(odp->keys, odp_index(key));

    if (!found) {
        *err = ENOENT;
    } else if (found->kind != ODP_KEY_INDIRECT && found->key != key) {
        *err = EFAULT;
        found = NULL;
    }
    return found;
}

/* Keys of this kind matter in the transport scheme only: in the memory scheme the device names the
 * key behind them. They are noted before the first region is made. */
void hv_odp_add_indirect(struct hv_hca *hca, uint32_t key, uint32_t num_desc)
{
    const struct odp_key row = {.key = key, .kind = ODP_KEY_INDIRECT, .num_desc = num_desc};
    struct odp *odp;
    int err;

    if (!hv_odp_is_offered(hca) || odp_by_memory(hca)) {
        return;
    }
    odp = odp_need(hca, &err);
    if (odp) {
        pthread_mutex_lock(&odp->lock);
        odp_add_key(odp, &row);
        pthread_mutex_unlock(&odp->lock);
    }
}

void hv_odp_del_indirect(struct hv_hca *hca, uint32_t key)
{
    struct odp *odp = odp_of(hca);

    if (odp && hv_is_ours(hca)) {
        pthread_mutex_lock(&odp->lock);
        odp_del_key(odp, key);
        pthread_mutex_unlock(&odp->lock);
    }
}

/* The context of a region's key as an enabling UMR sets it
 * (mlx5r_umr_set_update_xlt_mkey_seg()). */
static void odp_fill_mkc(const struct odp_region *region, struct prm_mkc *mkc)
{
    hv_mr_set_rights(region->hca, mkc, region->access);
    PRM_SET(mkc, mkc, pd, region->pdn);
    PRM_SET(mkc, mkc, start_addr, region->iova);
    PRM_SET(mkc, mkc, log_page_size, region->log_page);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, mkey_7_0, region->key & 0xff);
    if (region->num_pages) {
        PRM_SET(mkc, mkc, len, region->len);
    } else {
        PRM_SET(mkc, mkc, length64, 1);
    }
}

static bool odp_is_list(const struct odp_region *region)
{
    return region->num_pages == 0;
}

/* The number of a region's entries, rounded up to what a UMR writes. */
static uint64_t odp_num_entries(const struct odp_region *region)
{
    uint64_t align = DRV_UMR_ALIGN / MTT_SIZE;

    return odp_is_list(region) ? ODP_CHILDREN : (region->num_pages + align - 1) / align * align;
}

/* Creates a key in the state free, with entries of 0 (reg_create() without populate). Returns 0 or
 * errno. */
static int odp_create_key(struct odp_region *region)
{
    uint64_t octwords = odp_num_entries(region) * (odp_is_list(region) ? KSM_SIZE : MTT_SIZE) / 16;
    struct prm_create_mkey_in in[1] = {0};
    struct prm_mkc *mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);

    if (octwords > UINT32_MAX) {
        return ENOMEM;
    }
    PRM_SET(create_mkey_in, in, pg_access, 1);
    PRM_SET(mkc, mkc, free, 1);
    PRM_SET(mkc, mkc, umr_en, 1);
    PRM_SET(mkc, mkc, access_mode_1_0,
            odp_is_list(region) ? PRM_MKC_ACCESS_MODE_KSM : PRM_MKC_ACCESS_MODE_MTT);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, pd, hv_drv(region->hca)->pdn);
    PRM_SET(mkc, mkc, translations_octword_size, octwords);
    PRM_SET(mkc, mkc, log_page_size, region->log_page);
    return hv_mkey_create(region->hca, in, sizeof(in), &region->key);
}

/* In the memory scheme an implicit region has a null key of its own, whose accesses fault
 * (alloc_implicit_mr_null_mkey()). */
static int odp_create_null_key(struct odp_region *region)
{
    struct {
        struct prm_create_mkey_in in;
        uint8_t entries[NULL_KEY_OCTWORDS * 16];
    } cmd = {0};
    struct prm_mkc *mkc = PRM_PTR(create_mkey_in, &cmd.in, memory_key_mkey_entry);

    PRM_SET(create_mkey_in, &cmd.in, translations_octword_actual_size, NULL_KEY_OCTWORDS);
    PRM_SET(create_mkey_in, &cmd.in, pg_access, 1);
    PRM_SET(mkc, mkc, a, 1);
    PRM_SET(mkc, mkc, rw, 1);
    PRM_SET(mkc, mkc, rr, 1);
    PRM_SET(mkc, mkc, lw, 1);
    PRM_SET(mkc, mkc, lr, 1);
    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_MTT);
    PRM_SET(mkc, mkc, translations_octword_size, NULL_KEY_OCTWORDS);
    PRM_SET(mkc, mkc, log_page_size, NULL_KEY_LOG_PAGE);
    PRM_SET(mkc, mkc, length64, 1);
    PRM_SET(mkc, mkc, pd, region->pdn);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    return hv_mkey_create(region->hca, &cmd.in, sizeof(cmd), &region->null_key);
}

/* -- translation entries (mlx5r_umr_update_xlt()) -----------------------------------------------
 */

/* populate_mtt() */
static void odp_fill_pages(const struct odp_region *region, uint8_t *to, uint64_t at, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++, at++) {
        uint8_t rights = at < region->num_pages ? region->pages[at] : 0;

        prm_store64(to + i * MTT_SIZE,
                    rights ? (region->first + (at << region->log_page)) | rights : 0);
    }
}

/* populate_klm() */
static void odp_fill_children(const struct odp_region *region, uint8_t *to, uint64_t at, uint64_t n)
{
    uint32_t null = region->null_key ? region->null_key : hv_drv(region->hca)->null_mkey;

    for (uint64_t i = 0; i < n; i++, at++) {
        struct odp_region *child =
            g_hash_table_lookup(region->children, GSIZE_TO_POINTER((gsize)at));
        struct prm_wqe_klm_seg *klm = (void *)(to + i * KSM_SIZE);

        PRM_SET(wqe_klm_seg, klm, byte_count, ODP_CHILD_SIZE);
        PRM_SET(wqe_klm_seg, klm, mkey, child ? child->key : null);
        PRM_SET(wqe_klm_seg, klm, va, child || region->null_key ? at << ODP_CHILD_SHIFT : 0);
    }
}

/* Writes a region's entries from first on to the device. enable: the key is free, and is to be in
 * use afterwards. Returns 0 or errno. With the lock held. */
static int odp_write_entries(const struct odp_region *region, uint64_t first, uint64_t n,
                             bool enable)
{
    size_t size = odp_is_list(region) ? KSM_SIZE : MTT_SIZE;
    uint64_t align = DRV_UMR_ALIGN / size;
    uint64_t end = MIN((first + n + align - 1) / align * align, odp_num_entries(region));
    struct prm_mkc mkc[1] = {0};
    int state, status = 0;

    odp_fill_mkc(region, mkc);
    if (!hv_cmd_begin(region->hca, &state)) {
        return EIO;
    }
    for (uint64_t at = first / align * align; at < end && !status;) {
        uint64_t part = MIN(end - at, DRV_UMR_ENTRIES / size);
        uint8_t *to = drv_umr_buffer(region->hca->drv, &status);
        struct drv_umr_entries umr = {
            .key = region->key,
            .mask = enable && at + part == end ? ENABLE_MASK : 0,
            .mkc = mkc,
            .is_free = enable,
            .offset = at * size,
            .len = part * size,
        };

        if (!to) {
            break;
        }
        (odp_is_list(region) ? odp_fill_children : odp_fill_pages)(region, to, at, part);
        status = drv_umr_entries(region->hca->drv, &umr);
        at += part;
    }
    hv_cmd_end(region->hca, state);
    return hv_status_errno(status);
}

/* -- making and ending regions ----------------------------------------------------------------- */

static void odp_free_region(struct odp_region *region)
{
    if (region->children) {
        g_hash_table_destroy(region->children);
    }
    g_free(region->pages);
    g_free(region);
}

/* Ends the keys of a region that no other thread can find any more. Returns 0 or errno of its main
 * key. */
static int odp_destroy_keys(struct odp_region *region)
{
    int err = region->key ? hv_mkey_destroy(region->hca, region->key) : 0;

    if (!err && region->null_key) {
        hv_mkey_destroy(region->hca, region->null_key);
    }
    return err;
}

/* Creates and enables the keys of a region. Returns 0 or errno; after an error there are none. */
static int odp_make_keys(struct odp *odp, struct odp_region *region)
{
    int err = odp_create_key(region);

    if (!err && odp_is_list(region) && odp->by_memory) {
        err = odp_create_null_key(region);
    }
    err = err ? err : odp_write_entries(region, 0, odp_num_entries(region), true);
    if (err) {
        odp_destroy_keys(region);
    }
    return err;
}

/* Allocates a region. NULL: there is no memory for its pages. */
static struct odp_region *odp_new_region(struct hv_hca *hca, const struct hv_odp_range *range,
                                         unsigned log_page)
{
    struct odp_region *region = g_new0(struct odp_region, 1);
    uint64_t page = (uint64_t)1 << log_page;

    region->hca = hca;
    region->start = range->start;
    region->len = range->len;
    region->iova = range->iova;
    region->log_page = log_page;
    if (hv_odp_is_implicit(range)) {
        region->log_page = ODP_CHILD_SHIFT;
        region->children = g_hash_table_new(NULL, NULL);
        return region;
    }
    region->first = range->start & ~(page - 1);
    region->num_pages = ((range->start - region->first) + range->len + page - 1) >> log_page;
    region->pages = g_try_malloc0(region->num_pages);
    if (!region->pages) {
        odp_free_region(region);
        return NULL;
    }
    return region;
}

/* Whether the range can be registered (create_user_odp_mr(), ib_umem_odp_get()): 0 or errno. */
static int odp_check_range(struct hv_hca *hca, const struct hv_odp_range *range, unsigned access)
{
    uint64_t page = access & IBV_ACCESS_HUGETLB ? (uint64_t)1 << LOG_HUGE : PCI_PAGE;

    if (hv_odp_is_implicit(range)) {
        if (range->iova) {
            return hv_refuse(hca, EINVAL,
                             "reg_mr: an implicit on-demand region has iova 0, not 0x%" PRIx64,
                             range->iova);
        }
        if (access & IBV_ACCESS_HUGETLB) {
            return hv_refuse(hca, EINVAL,
                             "reg_mr: an implicit on-demand region cannot have "
                             "IBV_ACCESS_HUGETLB");
        }
        return odp_is_implicit_offered(hca)
                   ? 0
                   : hv_refuse(hca, EINVAL, "reg_mr: the device has no implicit on-demand regions");
    }
    if (range->start + range->len < range->start ||
        range->start + range->len > UINT64_MAX - page + 1) {
        return hv_refuse(hca, EOVERFLOW,
                         "reg_mr: %" PRIu64 " bytes at 0x%" PRIx64
                         " go past the end of the addresses",
                         range->len, range->start);
    }
    if (!range->len && !(range->start & (page - 1))) {
        return hv_refuse(hca, EINVAL, "reg_mr: length is 0");
    }
    return 0;
}

static void odp_enter_region(struct odp *odp, struct odp_region *region, int kind)
{
    const struct odp_key key = {.key = region->key, .kind = kind, .region = region};

    if (kind == ODP_KEY_REGION || odp->by_memory) {
        odp_add_key(odp, &key);
    }
    if (region->null_key) {
        odp_add_key(odp, &(struct odp_key){
                             .key = region->null_key, .kind = ODP_KEY_NULL, .region = region});
    }
    if (!odp_is_list(region)) {
        g_ptr_array_add(odp->regions, region);
    }
}

/* Enters the pages of a region that are present (MLX5_PF_FLAGS_SNAPSHOT). */
static void odp_enter_present(struct odp *odp, struct odp_region *region);

static bool odp_needs_present(struct odp *odp, struct hv_pd *pd)
{
    return g_atomic_int_get(&pd->unpaged) ||
           (!odp->by_memory && g_atomic_int_get(&odp->hca->devx_queues));
}

int hv_odp_reg(struct hv_pd *pd, const struct hv_odp_range *range, unsigned access,
               struct odp_region **made, uint32_t *key)
{
    struct hv_hca *hca = hv_hca_of(pd->ibv.context);
    unsigned log_page = access & IBV_ACCESS_HUGETLB ? LOG_HUGE : 12;
    int err = odp_check_range(hca, range, access);
    struct odp *odp = err ? NULL : odp_need(hca, &err);
    struct odp_region *region;

    err = err ? err : odp_start(odp);
    region = err ? NULL : odp_new_region(hca, range, log_page);
    if (!region) {
        return err ? err : ENOMEM;
    }
    region->pdn = pd->pdn;
    region->access = access;
    region->writable = access & HV_ACCESS_WRITABLE;
    pthread_mutex_lock(&odp->lock);
    err = odp_make_keys(odp, region);
    if (!err) {
        odp_enter_region(odp, region, ODP_KEY_REGION);
    }
    pthread_mutex_unlock(&odp->lock);
    if (err) {
        odp_free_region(region);
        return err;
    }
    odp_pager_covers(odp, range->start,
                     odp_is_list(region) ? UINT64_MAX : range->start + range->len);
    if (!odp_is_list(region) && odp_needs_present(odp, pd)) {
        odp_enter_present(odp, region);
    }
    *made = region;
    *key = region->key;
    return 0;
}

void odp_use(struct odp_region *region)
{
    region->users++;
}

void odp_unuse(struct odp *odp, struct odp_region *region)
{
    if (--region->users == 0) {
        pthread_cond_broadcast(&odp->unused);
    }
}

/* Removes a region from what other threads find. */
static void odp_leave_region(struct odp *odp, struct odp_region *region)
{
    odp_del_key(odp, region->key);
    if (region->null_key) {
        odp_del_key(odp, region->null_key);
    }
    g_ptr_array_remove_fast(odp->regions, region);
}

/* Ends a child that no page fault uses. With the lock held. */
static void odp_end_child(struct odp *odp, struct odp_region *child, bool update)
{
    struct odp_region *parent = child->parent;
    uint64_t number = child->first >> ODP_CHILD_SHIFT;

    odp_leave_region(odp, child);
    g_hash_table_remove(parent->children, GSIZE_TO_POINTER((gsize)number));
    if (update) {
        odp_write_entries(parent, number, 1, false);
    }
    odp_destroy_keys(child);
    odp_free_region(child);
}

/* Enters the present pages of all regions in a PD, or in any PD. */
static void odp_enter_all_present(struct odp *odp, uint32_t pdn, bool any_pd)
{
    g_autoptr(GPtrArray) regions = g_ptr_array_new();

    pthread_mutex_lock(&odp->lock);
    for (guint i = 0; i < odp->regions->len; i++) {
        struct odp_region *region = g_ptr_array_index(odp->regions, i);

        if (!region->parent && (any_pd || region->pdn == pdn)) {
            odp_use(region);
            g_ptr_array_add(regions, region);
        }
    }
    pthread_mutex_unlock(&odp->lock);
    for (guint i = 0; i < regions->len; i++) {
        struct odp_region *region = g_ptr_array_index(regions, i);

        odp_enter_present(odp, region);
        pthread_mutex_lock(&odp->lock);
        odp_unuse(odp, region);
        pthread_mutex_unlock(&odp->lock);
    }
}

void hv_odp_note_queue(struct hv_hca *hca, struct hv_pd *pd, int change)
{
    struct odp *odp = odp_of(hca);

    if (g_atomic_int_add(&pd->unpaged, change) == 0 && odp) {
        odp_enter_all_present(odp, pd->pdn, false);
    }
}

void hv_odp_note_devx_queue(struct hv_hca *hca)
{
    struct odp *odp = odp_of(hca);

    if (g_atomic_int_compare_and_exchange(&hca->devx_queues, 0, 1) && odp && !odp->by_memory) {
        odp_enter_all_present(odp, 0, true);
    }
}

/* Waits until nothing uses a region. The pager ends each use: a page fault that it answers, a
 * prefetch that it was given. In a world no thread steps the pager meanwhile, so the caller does
 * its work. With the lock held, which is free while it waits. */
static void odp_await_unused(struct odp *odp, const struct odp_region *region)
{
    while (region->users) {
        bool did;

        pthread_mutex_unlock(&odp->lock);
        did = odp_pager_help(odp);
        pthread_mutex_lock(&odp->lock);
        if (!did && region->users) {
            pthread_cond_wait(&odp->unused, &odp->lock);
        }
    }
}

int hv_odp_dereg(struct odp_region *region)
{
    struct odp *odp = region->hca->odp;
    int state, err;

    if (!hv_is_ours(region->hca)) {
        return EIO; /* in a child of fork(), another thread of the parent may have had the lock */
    }
    state = cancel_disable();
    pthread_mutex_lock(&odp->lock);
    odp_leave_region(odp, region);
    odp_await_unused(odp, region);
    err = hv_mkey_destroy(region->hca, region->key);
    if (err) { /* a memory window is bound to it */
        odp_enter_region(odp, region, ODP_KEY_REGION);
    } else {
        GHashTableIter iter;
        gpointer child;

        while (region->children && g_hash_table_size(region->children)) {
            g_hash_table_iter_init(&iter, region->children);
            g_hash_table_iter_next(&iter, NULL, &child);
            odp_end_child(odp, child, false);
        }
        if (region->null_key) {
            hv_mkey_destroy(region->hca, region->null_key);
        }
        odp_free_region(region);
    }
    pthread_mutex_unlock(&odp->lock);
    cancel_restore(state);
    return err;
}

void hv_odp_moved(struct odp_region *region, const struct hv_pd *pd, unsigned access)
{
    struct odp *odp = region->hca->odp;

    pthread_mutex_lock(&odp->lock);
    region->pdn = pd->pdn;
    region->access = access;
    pthread_mutex_unlock(&odp->lock);
}

bool hv_odp_is_writable(const struct odp_region *region)
{
    return region->writable;
}

/* -- bringing pages in ------------------------------------------------------------------------- */

/* The child of an implicit region for this address; makes it if it is missing
 * (implicit_get_child_mr()). NULL with *err. With the lock held. */
static struct odp_region *odp_child_at(struct odp *odp, struct odp_region *parent, uint64_t va,
                                       int *err)
{
    gpointer number = GSIZE_TO_POINTER((gsize)(va >> ODP_CHILD_SHIFT));
    struct odp_region *child = g_hash_table_lookup(parent->children, number);
    struct hv_odp_range range = {.len = ODP_CHILD_SIZE};

    if (child) {
        return child;
    }
    range.start = range.iova = va & ~(ODP_CHILD_SIZE - 1);
    child = odp_new_region(parent->hca, &range, 12);
    if (!child) {
        *err = ENOMEM;
        return NULL;
    }
    child->pdn = parent->pdn;
    child->access = parent->access;
    child->writable = parent->writable;
    child->parent = parent;
    *err = odp_make_keys(odp, child);
    if (*err) {
        odp_free_region(child);
        return NULL;
    }
    odp_enter_region(odp, child, ODP_KEY_CHILD);
    g_hash_table_insert(parent->children, number, child);
    *err = odp_write_entries(parent, va >> ODP_CHILD_SHIFT, 1, false);
    if (*err) {
        odp_end_child(odp, child, false);
        return NULL;
    }
    return child;
}

/* Stores the rights of pages. present: NULL, or which of them are present. Returns whether any page
 * had other rights. */
static bool odp_set_pages(struct odp_region *region, uint64_t first, uint64_t n, uint8_t rights,
                          const bool *present)
{
    bool any = false;

    for (uint64_t i = 0; i < n; i++) {
        if (!present || present[i]) {
            any |= region->pages[first + i] != rights;
            region->num_mapped -= region->pages[first + i] != 0;
            region->num_mapped += rights != 0;
            region->pages[first + i] = rights;
        }
    }
    return any;
}

/* Ends what could go on for ever: a page that the pager can access and that the device cannot, such
 * as a page with a protection key. Several QPs may ask for a page at the same time, and a program
 * may take a page away again and again, so many repeats are normal. */
#define REPEATS 65536u
static bool odp_goes_on(struct odp_region *region, bool any_new)
{
    region->repeats = any_new ? 0 : region->repeats + 1;
    return region->repeats < REPEATS;
}

/* Brings in pages of a region that has pages (pagefault_real_mr()): 0 or errno. The lock is not
 * held; the region has a user. */
static int odp_bring_in_pages(struct odp *odp, struct odp_region *region, uint64_t va, uint64_t len,
                              enum odp_how how, uint64_t *count)
{
    uint64_t first = (va - region->first) >> region->log_page;
    uint64_t n = ((va + len - 1 - region->first) >> region->log_page) - first + 1;
    uint64_t start = region->first + (first << region->log_page), size = n << region->log_page;
    uint8_t rights = region->writable && how != ODP_FOR_READ ? ODP_READ | ODP_WRITE : ODP_READ;
    g_autofree bool *present = NULL;
    int err = 0;

    if (how == ODP_SNAPSHOT) {
        present = g_try_new0(bool, n);
        if (!present) {
            return ENOMEM;
        }
        odp_pages_present(start, n, region->log_page, present);
    } else {
        err = odp_pages_touch(start, size, rights & ODP_WRITE);
    }
    if (!err && how != ODP_SNAPSHOT && region->log_page != 12 && !odp_pages_are_huge(start, size)) {
        err = EINVAL;
    }
    if (err) {
        return err;
    }
    pthread_mutex_lock(&odp->lock);
    if (!odp_goes_on(region, odp_set_pages(region, first, n, rights, present))) {
        pthread_mutex_unlock(&odp->lock);
        return EFAULT;
    }
    err = odp_write_entries(region, first, n, false);
    if (err) { /* the device does not work any more, or does not have these entries */
        odp_set_pages(region, first, n, 0, NULL);
    } else {
        *count += n << (region->log_page - 12);
    }
    pthread_mutex_unlock(&odp->lock);
    return err;
}

int odp_bring_in(struct odp *odp, struct odp_region *region, uint64_t va, uint64_t len,
                 enum odp_how how, uint64_t *count)
{
    const uint64_t most = ODP_CHILDREN << ODP_CHILD_SHIFT;
    int err = 0;

    if (!odp_is_list(region)) {
        return odp_bring_in_pages(odp, region, va, len, how, count);
    }
    if (va >= most || most - va < len) {
        return EFAULT;
    }
    while (len && !err) {
        uint64_t part = MIN(len, ODP_CHILD_SIZE - (va & (ODP_CHILD_SIZE - 1)));
        struct odp_region *child;

        pthread_mutex_lock(&odp->lock);
        child = odp_child_at(odp, region, va, &err);
        if (child) {
            odp_use(child);
        }
        pthread_mutex_unlock(&odp->lock);
        if (!child) {
            break;
        }
        err = odp_bring_in_pages(odp, child, va, part, how, count);
        pthread_mutex_lock(&odp->lock);
        odp_unuse(odp, child);
        if (!child->num_mapped && !child->users) {
            odp_end_child(odp, child, true);
        }
        pthread_mutex_unlock(&odp->lock);
        va += part;
        len -= part;
    }
    return err;
}

static void odp_enter_present(struct odp *odp, struct odp_region *region)
{
    uint64_t count = 0;

    odp_bring_in_pages(odp, region, region->start, MAX(region->len, 1), ODP_SNAPSHOT, &count);
}

/* -- invalidation (mlx5_ib_invalidate_range()) --------------------------------------------------
 */

/* Takes pages of one region from the device. With the lock held. */
static void odp_invalidate_region(struct odp *odp, struct odp_region *region, uint64_t start,
                                  uint64_t end)
{
    uint64_t last = region->first + (region->num_pages << region->log_page);
    uint64_t from, to, before;

    start = MAX(start, region->first);
    end = MIN(end, last);
    if (start >= end || !region->num_mapped) {
        return;
    }
    from = (start - region->first) >> region->log_page;
    to = (end - 1 - region->first) >> region->log_page;
    while (from <= to && !region->pages[from]) {
        from++;
    }
    while (to > from && !region->pages[to]) {
        to--;
    }
    if (from > to) {
        return;
    }
    before = region->num_mapped;
    odp_set_pages(region, from, to - from + 1, 0, NULL);
    odp->stats.invalidations += before - region->num_mapped;
    odp_write_entries(region, from, to - from + 1, false);
}

void odp_invalidate(struct odp *odp, uint64_t start, uint64_t end)
{
    pthread_mutex_lock(&odp->lock);
    for (guint i = odp->regions->len; i-- > 0;) {
        struct odp_region *region = g_ptr_array_index(odp->regions, i);

        odp_invalidate_region(odp, region, start, end);
        if (region->parent && !region->num_mapped && !region->users) {
            odp_end_child(odp, region, true); /* the last region takes its place in the array */
        }
    }
    pthread_mutex_unlock(&odp->lock);
}
