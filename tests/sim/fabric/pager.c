/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements pager.h. */
#include "tests/sim/fabric/pager.h"
#include <inttypes.h>
#include <string.h>
#include "guest-lib/verbs/kernel/kernel.h"
#include "guest-lib/verbs/kernel/mkey.h"

#define PAGE      MIRROR_PAGE
#define LOG_PAGE  12u
#define PATTERN   0x5a
#define LOG_EQ    4u /* less than there may be faults: some wait for room in the EQ */
#define EQES      (1u << LOG_EQ)
#define GROUP     8u  /* a UMR writes whole groups of entries of 8 bytes */
#define KSM       16u /* bytes of an entry of the implicit region */
#define LOG_BLOCK 15u
#define READ      1u /* bits of a translation entry */
#define WRITE     2u
#define LATE_MOST (2 * SIM_MS)

static uint8_t *pager_swap(const struct faulty_pager *p, unsigned page)
{
    return p->swap + (size_t)page * PAGE;
}

/* -- pages ------------------------------------------------------------------------------------- */

/* Writes the translation entries of a page and its neighbours by a UMR. */
static void pager_tell(const struct faulty_pager *p, unsigned page)
{
    struct drv *drv = hv_drv(hv_hca_of(p->on->ctx));
    unsigned first = page / GROUP * GROUP;
    int status;
    uint8_t *entries = drv_umr_buffer(drv, &status);

    sim_check(p->job, entries, "no buffer for UMRs: status %d", status);
    for (unsigned i = 0; i < GROUP; i++) {
        unsigned rights = p->rights[first + i];

        prm_store64(entries + (size_t)i * 8,
                    rights ? (uintptr_t)p->mirror->page[first + i] | rights : 0);
    }
    sim_must(p->job, drv_umr_entries(drv, &(struct drv_umr_entries){
                                              .key = p->key[page / PAGER_LIST],
                                              .offset = (uint64_t)(first % PAGER_LIST) * 8,
                                              .len = (size_t)GROUP * 8,
                                          }));
}

/* Writes the entries of the implicit region. */
static void pager_fill_blocks(const struct faulty_pager *p, uint8_t *entries)
{
    const struct keymap_key *region = &p->keys->key[PAGER_IMPLICIT];

    for (unsigned i = 0; i < PAGER_BLOCKS; i++) {
        struct prm_wqe_klm_seg *entry = (void *)(entries + (size_t)i * KSM);

        PRM_SET(wqe_klm_seg, entry, byte_count, 1u << LOG_BLOCK);
        PRM_SET(wqe_klm_seg, entry, mkey,
                p->linked[i] ? region->range[i].key : hv_drv(hv_hca_of(p->on->ctx))->null_mkey);
        PRM_SET(wqe_klm_seg, entry, va, p->linked[i] ? region->range[i].va : 0);
    }
}

static void pager_tell_blocks(const struct faulty_pager *p)
{
    struct drv *drv = hv_drv(hv_hca_of(p->on->ctx));
    int status;
    uint8_t *entries = drv_umr_buffer(drv, &status);

    sim_check(p->job, entries, "no buffer for UMRs: status %d", status);
    pager_fill_blocks(p, entries);
    sim_must(p->job,
             drv_umr_entries(drv, &(struct drv_umr_entries){.key = p->implicit,
                                                            .len = (size_t)PAGER_BLOCKS * KSM}));
}

/* Gives blocks of the implicit region their keys. part: one in so many is left out, or 0. */
static void pager_link(struct faulty_pager *p, unsigned part)
{
    bool any = false;

    for (unsigned i = 0; i < PAGER_BLOCKS; i++) {
        if (!p->linked[i] && !(part && chance_one_in(&p->job->chance, part))) {
            p->linked[i] = any = true;
        }
    }
    if (any) {
        sim_note(p->job, "host %u: blocks of its implicit region get keys", p->on->number);
        pager_tell_blocks(p);
    }
}

static uint8_t *pager_take_frame(struct faulty_pager *p)
{
    unsigned first = (unsigned)chance_below(&p->job->chance, PAGER_FRAMES);

    for (unsigned i = 0; i < PAGER_FRAMES; i++) {
        unsigned nth = (first + i) % PAGER_FRAMES;

        if (!p->taken[nth]) {
            p->taken[nth] = true;
            return p->frames + (size_t)nth * PAGE;
        }
    }
    g_assert_not_reached();
}

static void pager_give_frame(struct faulty_pager *p, uint8_t *frame)
{
    memset(frame, PATTERN, PAGE);
    p->taken[(size_t)(frame - p->frames) / PAGE] = false;
}

static void pager_bring_in(struct faulty_pager *p, unsigned page, unsigned rights)
{
    if ((p->rights[page] & rights) == rights) {
        return;
    }
    if (!p->rights[page]) {
        uint8_t *frame = pager_take_frame(p);

        memcpy(frame, pager_swap(p, page), PAGE);
        p->mirror->page[page] = frame;
    }
    p->rights[page] |= rights;
    p->mirror->rests[page] = p->rights[page] == READ;
    pager_tell(p, page);
}

/* A page that is to be written to no more keeps a copy in its own memory. */
static void pager_protect(struct faulty_pager *p, unsigned page)
{
    p->rights[page] = READ;
    p->mirror->rests[page] = true;
    pager_tell(p, page);
    memcpy(pager_swap(p, page), p->mirror->page[page], PAGE);
}

static void pager_take_away(struct faulty_pager *p, unsigned page)
{
    uint8_t *frame = p->mirror->page[page];

    p->rights[page] = 0;
    p->mirror->rests[page] = false;
    pager_tell(p, page);
    memcpy(pager_swap(p, page), frame, PAGE);
    p->mirror->page[page] = pager_swap(p, page);
    pager_give_frame(p, frame);
}

void pager_check(const struct faulty_pager *p)
{
    static uint8_t pattern[PAGE];

    memset(pattern, PATTERN, sizeof(pattern));
    for (unsigned i = 0; i < PAGER_FRAMES; i++) {
        sim_check(p->job, p->taken[i] || !memcmp(p->frames + (size_t)i * PAGE, pattern, PAGE),
                  "frame %u of host %u was touched after it was taken away", i, p->on->number);
    }
    for (unsigned i = 0; i < PAGER_PAGES; i++) {
        sim_check(p->job,
                  p->rights[i] != READ || !memcmp(p->mirror->page[i], pager_swap(p, i), PAGE),
                  "page %u of host %u was written to, and is for reading", i, p->on->number);
    }
}

/* Pages come and go without a fault. */
static bool pager_stir(struct faulty_pager *p)
{
    struct chance *chance = &p->job->chance;
    unsigned page = (unsigned)chance_below(chance, PAGER_PAGES);
    unsigned block = (unsigned)chance_below(chance, PAGER_BLOCKS);

    if (p->linked[block] && chance_one_in(chance, 8)) {
        p->linked[block] = false;
        pager_tell_blocks(p);
    } else if (!p->rights[page]) {
        pager_bring_in(p, page, chance_one_in(chance, 2) ? READ : READ | WRITE);
    } else if (p->rights[page] & WRITE && chance_one_in(chance, 4)) {
        pager_protect(p, page);
    } else {
        pager_take_away(p, page);
    }
    pager_check(p);
    return true;
}

/* -- faults ------------------------------------------------------------------------------------ */

static void pager_note(struct faulty_pager *p, const struct prm_eqe *eqe)
{
    struct pager_fault *f = &p->fault[p->faults];
    const struct prm_memory_page_fault_event *memory = (void *)f->data;
    const struct prm_wqe_associated_page_fault_event *wqe = (void *)f->data;
    const struct prm_rdma_page_fault_event *rdma = (void *)f->data;

    sim_check(p->job,
              PRM_GET(eqe, eqe, event_type) == PRM_EVENT_TYPE_PAGE_FAULT &&
                  p->faults < PAGER_FAULTS,
              "an event of type %u, or too many faults", (unsigned)PRM_GET(eqe, eqe, event_type));
    *f = (struct pager_fault){
        .sub_type = (uint8_t)PRM_GET(eqe, eqe, event_sub_type),
        .due_ns =
            p->job->sim->world->now_ns +
            (chance_one_in(&p->job->chance, 2) ? 0 : chance_below(&p->job->chance, LATE_MOST)),
        .life = p->lives,
    };
    memcpy(f->data, PRM_PTR(eqe, eqe, event_data), sizeof(f->data));
    switch (f->sub_type) {
    case PRM_PFAULT_SUBTYPE_WQE:
        /* the other number may be that of an SRQ */
        f->qpn = (uint32_t)PRM_GET(wqe_associated_page_fault_event, wqe, token);
        f->requester = PRM_GET(wqe_associated_page_fault_event, wqe, requestor);
        break;
    case PRM_PFAULT_SUBTYPE_RDMA:
        f->qpn = (uint32_t)PRM_GET(rdma_page_fault_event, rdma, qp_number);
        f->requester = PRM_GET(rdma_page_fault_event, rdma, requestor);
        break;
    default: /* the token has both (model/rdma/paging.h) */
        f->qpn = (uint32_t)PRM_GET(memory_page_fault_event, memory, token_31_0) & 0xffffff;
        f->requester = !(PRM_GET(memory_page_fault_event, memory, token_31_0) >> 24);
    }
    f->stale = !access_is_running(p->access, p->host, f->qpn);
    p->faults++;
    /* a page that was refused is forgotten */
    access_may_fail(p->access, p->host, f->qpn, f->requester, false);
    sim_note(p->job, "host %u: page fault %u of QP 0x%x, %s", p->on->number, f->sub_type, f->qpn,
             f->requester ? "requester" : "responder");
}

static bool pager_poll(struct faulty_pager *p)
{
    struct drv *drv = hv_drv(hv_hca_of(p->on->ctx));
    bool did = false;

    while (p->faults < PAGER_FAULTS) {
        const struct prm_eqe *eqe = &p->eqes[p->ci % EQES];

        if ((PRM_GET(eqe, eqe, owner) & 1) != (p->ci / EQES & 1)) {
            break;
        }
        pager_note(p, eqe);
        p->ci++;
        drv->dev.ops->mmio_write(drv->dev.pci, (uint64_t)drv->uarn * 4096 + PRM_OFFSET(uar, eq_db),
                                 p->eqn << 24 | (p->ci & 0xffffff), 4);
        did = true;
    }
    return did;
}

/* -- answers ----------------------------------------------------------------------------------- */

/* Brings in the page of a position, or chooses not to. part: one page in so many is left out, or 0.
 */
static void pager_serve(struct faulty_pager *p, uint32_t at, bool writes, unsigned part)
{
    if (mirror_is_byte(at) && at / PAGE < PAGER_PAGES &&
        !(part && chance_one_in(&p->job->chance, part))) {
        pager_bring_in(p, at / PAGE,
                       writes || chance_one_in(&p->job->chance, 2) ? READ | WRITE : READ);
    }
}

/* Brings in what a range of a key leads to. */
static void pager_serve_range(struct faulty_pager *p, uint32_t key, uint64_t va, uint64_t len,
                              bool writes, unsigned part)
{
    while (len) {
        uint32_t run = (uint32_t)MIN(len, PAGE - va % PAGE);
        uint32_t at = keymap_find(p->keys, key, 0, 0, va, &run, 1);

        pager_serve(p, at, writes, part);
        if (mirror_is_byte(at)) {
            pager_serve(p, at + run - 1, writes, part);
        }
        va += run;
        len -= run;
    }
}

struct pager_wqe {
    struct faulty_pager *pager;
    unsigned part;
};

static void pager_serve_byte(void *opaque, uint32_t at, bool writes)
{
    const struct pager_wqe *wqe = opaque;

    pager_serve(wqe->pager, at, writes, wqe->part);
}

/* Brings in what the fault asks for. */
static void pager_serve_fault(struct faulty_pager *p, const struct pager_fault *f, unsigned part)
{
    const struct prm_memory_page_fault_event *memory = (const void *)f->data;
    const struct prm_rdma_page_fault_event *rdma = (const void *)f->data;
    uint64_t done, len;

    pager_link(p, part);
    switch (f->sub_type) {
    case PRM_PFAULT_SUBTYPE_WQE:
        access_each_byte(p->access, p->host, f->qpn, f->requester, pager_serve_byte,
                         &(struct pager_wqe){p, part});
        break;
    case PRM_PFAULT_SUBTYPE_RDMA:
        done = PRM_GET(rdma_page_fault_event, rdma, bytes_committed);
        len = chance_one_in(&p->job->chance, 2)
                  ? PRM_GET(rdma_page_fault_event, rdma, packet_len)
                  : PRM_GET(rdma_page_fault_event, rdma, rdma_op_len) - done;
        pager_serve_range(p, (uint32_t)PRM_GET(rdma_page_fault_event, rdma, r_key),
                          PRM_GET(rdma_page_fault_event, rdma, rdma_va) + done, len,
                          PRM_GET(rdma_page_fault_event, rdma, write), part);
        break;
    default:
        pager_serve_range(p, (uint32_t)PRM_GET(memory_page_fault_event, memory, mkey),
                          PRM_GET(memory_page_fault_event, memory, va),
                          PRM_GET(memory_page_fault_event, memory, demand_fault_pages) * PAGE, true,
                          part);
    }
}

/* Sends the answer to a fault. Returns its status. */
static int pager_resume(const struct faulty_pager *p, const struct pager_fault *f, bool error)
{
    const struct prm_memory_page_fault_event *memory = (const void *)f->data;
    const struct prm_wqe_associated_page_fault_event *wqe = (const void *)f->data;
    const struct prm_rdma_page_fault_event *rdma = (const void *)f->data;
    struct prm_page_fault_resume_in in[1] = {0};
    struct prm_trans_page_fault_info *trans = PRM_PTR(page_fault_resume_in, in, page_fault_info);
    struct prm_mem_page_fault_info *mem = PRM_PTR(page_fault_resume_in, in, page_fault_info);
    bool is_wqe = f->sub_type == PRM_PFAULT_SUBTYPE_WQE;
    bool writes = is_wqe ? PRM_GET(wqe_associated_page_fault_event, wqe, write_read)
                         : PRM_GET(rdma_page_fault_event, rdma, write);

    PRM_SET(page_fault_resume_in, in, opcode, PRM_CMD_OP_PAGE_FAULT_RESUME);
    if (f->sub_type == PRM_PFAULT_SUBTYPE_MEMORY) {
        PRM_SET(mem_page_fault_info, mem, error, error);
        PRM_SET(mem_page_fault_info, mem, fault_token_47_32,
                PRM_GET(memory_page_fault_event, memory, token_47_32));
        PRM_SET(mem_page_fault_info, mem, fault_token_31_0,
                PRM_GET(memory_page_fault_event, memory, token_31_0));
    } else {
        PRM_SET(trans_page_fault_info, trans, error, error);
        PRM_SET(trans_page_fault_info, trans, page_fault_type,
                f->requester | (unsigned)writes << 1 | (unsigned)!is_wqe << 2);
        PRM_SET(trans_page_fault_info, trans, wq_number,
                is_wqe ? PRM_GET(wqe_associated_page_fault_event, wqe, qpn) : f->qpn);
        PRM_SET(trans_page_fault_info, trans, fault_token,
                is_wqe ? PRM_GET(wqe_associated_page_fault_event, wqe, token) : f->qpn);
    }
    return hv_cmd_simple(hv_hca_of(p->on->ctx), in, sizeof(in));
}

/* Answers a fault. Now and then the answer is an error, comes twice, or comes when a connection has
 * ended. */
static void pager_answer(struct faulty_pager *p, const struct pager_fault *f)
{
    struct chance *chance = &p->job->chance;
    bool error = access_may_be_rude(p->access) && chance_one_in(chance, 16);
    bool current = !f->stale && f->life == p->lives;
    int status;

    if (current && access_may_be_rude(p->access) && chance_one_in(chance, 32)) {
        access_end(p->access, p->host, f->qpn, chance_one_in(chance, 2));
        current = false;
    }
    if (error) {
        access_may_fail(p->access, p->host, f->qpn, f->requester, true);
    } else if (!chance_one_in(chance, 8)) {
        pager_serve_fault(p, f, chance_one_in(chance, 4) ? 2 : 0);
    }
    status = pager_resume(p, f, error);
    sim_note(p->job, "host %u: page fault of QP 0x%x, %s, is answered%s: status %d", p->on->number,
             f->qpn, f->requester ? "requester" : "responder", error ? " with error" : "", status);
    sim_check(p->job, !status || !current || p->took_other,
              "the device does not take the answer to a page fault: status %d", status);
    /* In the transport scheme an answer may also be taken for that of a newer fault of the QP, or
     * of a QP that has the same number. */
    p->took_other |= !current && !status;
    if (chance_one_in(chance, 8) && !pager_resume(p, f, false)) {
        sim_check(p->job, f->sub_type != PRM_PFAULT_SUBTYPE_MEMORY,
                  "the device takes a second answer to a page fault");
        p->took_other = true;
    }
    p->answered++;
}

void pager_lost_a_connection(struct faulty_pager *p)
{
    p->lives++;
}

bool pager_step(struct faulty_pager *p)
{
    bool did = pager_poll(p);

    for (unsigned i = 0; i < p->faults;) {
        struct pager_fault f = p->fault[i];

        if (f.due_ns > p->job->sim->world->now_ns) {
            i++;
            continue;
        }
        p->fault[i] = p->fault[--p->faults];
        pager_answer(p, &f);
        did = true;
    }
    return (chance_one_in(&p->job->chance, 4) && pager_stir(p)) || did;
}

/* -- made and freed ---------------------------------------------------------------------------- */

static void pager_make_eq(struct faulty_pager *p)
{
    struct hv_hca *hca = hv_hca_of(p->on->ctx);
    uint8_t bytes[PRM_SIZE(create_eq_in) + 8] = {0};
    struct prm_create_eq_in *in = (void *)bytes;
    struct prm_create_eq_out out[1] = {0};
    struct prm_eqc *eqc = PRM_PTR(create_eq_in, in, eq_context_entry);

    p->eqes = (void *)sim_memory(p->job->sim, PAGE);
    for (unsigned i = 0; i < EQES; i++) {
        PRM_SET(eqe, &p->eqes[i], owner, 1);
    }
    PRM_SET(create_eq_in, in, opcode, PRM_CMD_OP_CREATE_EQ);
    PRM_SET_AT(create_eq_in, in, event_bitmask, 0, 1ull << PRM_EVENT_TYPE_PAGE_FAULT);
    PRM_SET(eqc, eqc, log_eq_size, LOG_EQ);
    PRM_SET(eqc, eqc, uar_page, hv_drv(hca)->uarn);
    prm_store64(PRM_PTR(create_eq_in, in, pas), (uintptr_t)p->eqes);
    sim_must(p->job, hv_cmd(hca, bytes, sizeof(bytes), out, sizeof(out)));
    p->eqn = (uint32_t)PRM_GET(create_eq_out, out, eq_number);
}

/* The key covers PAGER_LIST pages, but for the first bytes of the first one. */
static void pager_make_key(struct faulty_pager *p, unsigned nth, struct keymap_key *key)
{
    struct chance *chance = &p->job->chance;
    uint8_t bytes[PRM_SIZE(create_mkey_in) + PAGER_LIST * 8] = {0};
    struct prm_create_mkey_in *in = (void *)bytes;
    uint32_t in_page = chance_one_in(chance, 2) ? 0 : (uint32_t)chance_below(chance, PAGE);

    *key = (struct keymap_key){.form = KEYMAP_MEMORY,
                               .rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                         IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
                               .start = (chance_next(chance) >> 20 << LOG_PAGE) + in_page,
                               .len = PAGER_LIST * PAGE - in_page,
                               .at = nth * PAGER_LIST * PAGE + in_page};
    drv_fill_paged_key(in, hv_pd(p->on->pd)->pdn, key->start, key->len, PAGER_LIST);
    sim_must(p->job, hv_mkey_create(hv_hca_of(p->on->ctx), in, sizeof(bytes), &key->key));
    p->key[nth] = key->key;
}

/* The implicit region: block i begins at the second page of a key. */
static void pager_make_implicit(struct faulty_pager *p, struct keymap *keys)
{
    struct chance *chance = &p->job->chance;
    uint8_t bytes[PRM_SIZE(create_mkey_in) + PAGER_BLOCKS * KSM] = {0};
    struct prm_create_mkey_in *in = (void *)bytes;
    struct prm_mkc *mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);
    struct keymap_key *key = &keys->key[PAGER_IMPLICIT];

    *key = (struct keymap_key){.form = KEYMAP_BLOCKS,
                               .rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                         IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
                               .start = chance_next(chance) >> 20 << LOG_BLOCK,
                               .len = PAGER_BLOCKS << LOG_BLOCK,
                               .num = PAGER_BLOCKS,
                               .log_block = LOG_BLOCK};
    for (unsigned i = 0; i < PAGER_BLOCKS; i++) {
        const struct keymap_key *inner = &keys->key[i % PAGER_KEYS];

        key->range[i] =
            (struct keymap_range){.key = inner->key, .va = (inner->start | (PAGE - 1)) + 1};
    }
    drv_fill_paged_key(in, hv_pd(p->on->pd)->pdn, key->start, key->len, 2 * PAGER_BLOCKS);
    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_KSM);
    PRM_SET(mkc, mkc, log_page_size, LOG_BLOCK);
    pager_fill_blocks(p, PRM_PTR(create_mkey_in, in, klm_pas_mtt));
    sim_must(p->job, hv_mkey_create(hv_hca_of(p->on->ctx), in, sizeof(bytes), &key->key));
    p->implicit = key->key;
}

void pager_init(struct faulty_pager *p, struct access *a, unsigned host, struct keymap *keys)
{
    p->job = a->job;
    p->access = a;
    p->host = host;
    p->on = a->host[host];
    p->mirror = &a->mirror[host];
    p->keys = keys;
    p->frames = sim_memory(p->job->sim, (size_t)PAGER_FRAMES * PAGE);
    p->swap = p->mirror->page[0]; /* the memory itself: the device has no key for it */
    memset(p->frames, PATTERN, (size_t)PAGER_FRAMES * PAGE);
    pager_make_eq(p);
    for (unsigned i = 0; i < PAGER_KEYS; i++) {
        pager_make_key(p, i, &keys->key[i]);
    }
    pager_make_implicit(p, keys);
}

void pager_free(struct faulty_pager *p)
{
    struct hv_hca *hca = hv_hca_of(p->on->ctx);
    struct prm_destroy_eq_in in[1] = {0};

    sim_must(p->job, hv_mkey_destroy(hca, p->implicit));
    for (unsigned i = 0; i < PAGER_KEYS; i++) {
        sim_must(p->job, hv_mkey_destroy(hca, p->key[i]));
    }
    PRM_SET(destroy_eq_in, in, opcode, PRM_CMD_OP_DESTROY_EQ);
    PRM_SET(destroy_eq_in, in, eq_number, p->eqn);
    sim_must(p->job, hv_cmd_simple(hca, in, sizeof(in)));
}
