/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * On-demand keys and implicit regions on both sides of connections of each service that has paging
 * (RC, XRC, DC and UD, with receive queues of their own or shared ones), and a pager for each host
 * that misbehaves (pager.h). Pages come and go under traffic. Lists of keys name the on-demand
 * keys, too. The job has hosts of its own, of a generation that reports faults by queue or by
 * memory.
 */
#include "tests/sim/fabric/pager.h"
#include <errno.h>
#include "guest-lib/verbs/dv.h"
#include "guest-lib/verbs/kernel/kernel.h"

#define PLAIN_PAGES 16u /* of an ordinary region behind the pages of the pager */
#define MEMORY      ((PAGER_PAGES + PLAIN_PAGES) * MIRROR_PAGE)
#define LISTS       2u
#define RANGES      8u
#define REMOTE      (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* Slots of the reference. */
enum {
    PLAIN = PAGER_SLOTS,
    FIRST_LIST,
    KEYS = FIRST_LIST + LISTS,
};

struct paging {
    struct access access; /* first member, so a pointer to it is also one to the struct */
    struct sim_host host[2];
    struct keymap keys[2];
    struct faulty_pager pager[2];
    struct ibv_mr *plain[2];
    struct mlx5dv_devx_obj *list[2][LISTS];
};

static enum service_kind paging_draw_service(struct access *a)
{
    return (enum service_kind)chance_below(&a->job->chance, SERVICE_KINDS);
}

static uint32_t paging_find(struct access *a, unsigned host, bool next, uint32_t key, unsigned need,
                            uint64_t va, uint32_t *run)
{
    const struct paging *p = (struct paging *)a;

    return keymap_find(&p->keys[host], key, 0, need, va, run, 1);
}

static bool paging_draw(struct access *a, struct access_side *side, uint32_t len)
{
    struct paging *p = (struct paging *)a;
    struct chance *chance = &a->job->chance;
    const struct keymap_key *key = &p->keys[side->host].key[chance_below(chance, KEYS)];
    uint64_t at;

    if (key->len < len) {
        return false;
    }
    at = key->start + chance_below(chance, key->len - len + 1);
    at = side->need == IBV_ACCESS_REMOTE_ATOMIC ? (at + 7) & ~7ull : at;
    side->num_sge = 1;
    side->sge[0] = (struct access_sge){key->key, len, at};
    if (!(side->need & REMOTE) && len > 1 && chance_one_in(chance, 2)) {
        uint32_t first = (uint32_t)chance_from(chance, 1, len - 1);

        side->num_sge = 2;
        side->sge[0].len = first;
        key = &p->keys[side->host].key[chance_below(chance, KEYS)];
        side->sge[1] = (struct access_sge){
            key->key, len - first,
            key->start + chance_below(chance, key->len > len ? key->len - len : 1)};
    }
    return true;
}

static void paging_ctrl_done(struct access *a, struct access_op *op, enum ibv_wc_status status)
{
}

static void paging_ended(struct access *a)
{
    struct paging *p = (struct paging *)a;

    pager_lost_a_connection(&p->pager[0]);
    pager_lost_a_connection(&p->pager[1]);
}

/* -- hosts and keys ---------------------------------------------------------------------------- */

static void paging_make_plain(struct paging *p, unsigned h, uint8_t *memory)
{
    const unsigned rights = IBV_ACCESS_LOCAL_WRITE | REMOTE;
    uint32_t at = PAGER_PAGES * MIRROR_PAGE, len = PLAIN_PAGES * MIRROR_PAGE;

    p->plain[h] = ibv_reg_mr(p->host[h].pd, memory + at, len, rights);
    sim_check(p->access.job, p->plain[h], "no region: errno %d", errno);
    p->keys[h].key[PLAIN] = (struct keymap_key){.key = p->plain[h]->lkey,
                                                .form = KEYMAP_MEMORY,
                                                .rights = rights,
                                                .start = (uintptr_t)p->plain[h]->addr,
                                                .len = len,
                                                .at = at};
}

/* A list of ranges of the keys before it. */
static void paging_make_list(struct paging *p, unsigned h, unsigned nth)
{
    struct job *job = p->access.job;
    struct chance *chance = &job->chance;
    struct keymap_key *key = &p->keys[h].key[FIRST_LIST + nth];
    uint8_t cmd[PRM_SIZE(create_mkey_in) + RANGES * 16] = {0};
    struct prm_create_mkey_in *in = (void *)cmd;
    struct prm_create_mkey_out out[1] = {0};
    struct prm_mkc *mkc = PRM_PTR(create_mkey_in, in, memory_key_mkey_entry);
    struct prm_wqe_klm_seg *entry = (void *)(cmd + PRM_OFFSET(create_mkey_in, klm_pas_mtt));

    *key = (struct keymap_key){
        .form = KEYMAP_LIST, .rights = IBV_ACCESS_LOCAL_WRITE | REMOTE, .num = RANGES, .rounds = 1};
    for (unsigned i = 0; i < RANGES; i++, entry++) {
        const struct keymap_key *inner = &p->keys[h].key[chance_below(chance, FIRST_LIST + nth)];
        uint64_t at = chance_below(chance, inner->len) & ~7ull;

        key->range[i] = (struct keymap_range){
            .key = inner->key,
            .len = (uint32_t)chance_from(chance, 1, MIN(inner->len - at, 3 * MIRROR_PAGE)),
            .va = inner->start + at};
        key->len += key->range[i].len;
        PRM_SET(wqe_klm_seg, entry, byte_count, key->range[i].len);
        PRM_SET(wqe_klm_seg, entry, mkey, key->range[i].key);
        PRM_SET(wqe_klm_seg, entry, va, key->range[i].va);
    }
    PRM_SET(create_mkey_in, in, opcode, PRM_CMD_OP_CREATE_MKEY);
    PRM_SET(create_mkey_in, in, translations_octword_actual_size, RANGES);
    PRM_SET(mkc, mkc, access_mode_1_0, PRM_MKC_ACCESS_MODE_KLMS);
    PRM_SET(mkc, mkc, lr, 1);
    PRM_SET(mkc, mkc, lw, 1);
    PRM_SET(mkc, mkc, rr, 1);
    PRM_SET(mkc, mkc, rw, 1);
    PRM_SET(mkc, mkc, a, 1);
    PRM_SET(mkc, mkc, qpn, 0xffffff);
    PRM_SET(mkc, mkc, pd, hv_pd(p->host[h].pd)->pdn);
    PRM_SET(mkc, mkc, len, key->len);
    PRM_SET(mkc, mkc, translations_octword_size, RANGES);
    p->list[h][nth] = hv_dv_devx_obj_create(p->host[h].ctx, cmd, sizeof(cmd), out, sizeof(out));
    sim_check(job, p->list[h][nth], "no key: errno %d", errno);
    key->key = (uint32_t)PRM_GET(create_mkey_out, out, mkey_index) << 8;
}

/* -- steps ------------------------------------------------------------------------------------- */

static void kind_paging_make(struct job *job)
{
    struct paging *p = job->state;
    uint8_t *memory[2];

    p->access.make_qp = access_make_qp;
    p->access.draw_service = paging_draw_service;
    p->access.find = paging_find;
    p->access.draw = paging_draw;
    p->access.ctrl_done = paging_ctrl_done;
    p->access.ended = paging_ended;
    for (unsigned h = 0; h < 2; h++) {
        sim_host_own(job, &p->host[h], h, chance_one_in(&job->chance, 2) ? NULL : "cx8");
        p->access.host[h] = &p->host[h];
        memory[h] = sim_memory(job->sim, MEMORY);
    }
    access_init(&p->access, job, memory, MEMORY);
    for (unsigned h = 0; h < 2; h++) {
        pager_init(&p->pager[h], &p->access, h, &p->keys[h]);
        paging_make_plain(p, h, memory[h]);
        for (unsigned i = 0; i < LISTS; i++) {
            paging_make_list(p, h, i);
        }
    }
}

static bool kind_paging_step(struct job *job)
{
    struct paging *p = job->state;
    bool did = access_step(&p->access);

    for (unsigned h = 0; h < 2; h++) {
        sim_poll_events(job, &p->host[h]);
        did |= pager_step(&p->pager[h]);
    }
    return did;
}

static bool kind_paging_is_done(const struct job *job)
{
    const struct paging *p = job->state;

    return access_is_done(&p->access);
}

static void kind_paging_check(struct job *job)
{
    const struct paging *p = job->state;

    access_check(&p->access);
    pager_check(&p->pager[0]);
    pager_check(&p->pager[1]);
}

static void kind_paging_free(struct job *job)
{
    struct paging *p = job->state;

    for (unsigned h = 0; h < 2; h++) {
        for (unsigned i = 0; i < LISTS; i++) {
            sim_must(job, hv_dv_devx_obj_destroy(p->list[h][i]));
        }
        pager_free(&p->pager[h]);
        sim_must(job, ibv_dereg_mr(p->plain[h]));
    }
    access_free(&p->access);
    sim_host_down(&p->host[0]);
    sim_host_down(&p->host[1]);
}

const struct kind kind_paging = {
    .name = "paging",
    .about = "on-demand keys whose pages come and go under traffic, and pagers that misbehave",
    .usual = true,
    .hosts = 2,
    .size = sizeof(struct paging),
    .make = kind_paging_make,
    .step = kind_paging_step,
    .is_done = kind_paging_is_done,
    .check = kind_paging_check,
    .free = kind_paging_free,
};
