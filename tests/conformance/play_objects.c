/* SPDX-License-Identifier: BSD-2-Clause */
/* Plays the steps about regions and shared receive queues. */
#include "tests/conformance/play.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE     4096
#define MR_MAX   (16u << 20) /* bytes of all regions of a case, which each step may look at */
#define XRC_CQES 64

/* The bytes of all regions so far. */
static size_t play_all_bytes(const struct play *p)
{
    size_t sum = 0;

    for (unsigned i = 0; i < p->mrs->len; i++) {
        const struct play_mr *mr = g_ptr_array_index(p->mrs, i);

        sum += mr->bytes ? mr->len : 0;
    }
    return sum;
}

/* Takes the region's pages away after its registration, so that the device misses them. */
static void play_take_pages(struct play *p, const struct play_mr *mr)
{
    if (!mr->mr) {
        play_cannot(p, "the device has no on-demand paging", errno);
    }
    g_assert_no_errno(madvise(mr->bytes, (mr->len + PAGE - 1) / PAGE * PAGE, MADV_DONTNEED));
}

/* Makes a region of device memory, whose bytes are mr->bytes. Its addresses begin with 0. */
static void play_make_dm(struct play *p, struct play_mr *mr, struct ibv_pd *pd, unsigned rights)
{
    struct ibv_alloc_dm_attr attr = {.length = mr->len};

    mr->dm = ibv_alloc_dm(p->host->ctx, &attr);
    if (!mr->dm) {
        play_cannot(p, "the device has no such memory of its own", errno);
    }
    g_assert_cmpint(ibv_memcpy_to_dm(mr->dm, 0, mr->bytes, mr->len), ==, 0);
    mr->mr = ibv_reg_dm_mr(pd, mr->dm, 0, mr->len, rights | IBV_ACCESS_ZERO_BASED);
}

/* mr NAME LEN [rights=lw,rw,...] [other_pd] [paged | dm]: its bytes are its own pattern, or zeros
 * if it is paged: an on-demand region without pages. dm: device memory */
void play_new_mr(struct play *p)
{
    struct play_mr *mr = g_new0(struct play_mr, 1);
    const char *name = words_need(&p->words, "the region's name");
    struct ibv_pd *pd;
    bool paged;
    unsigned rights = play_rights(p, "rights",
                                  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                      IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);

    mr->len = words_to_number(&p->words, words_need(&p->words, "its length"));
    if (!mr->len || mr->len > MR_MAX - play_all_bytes(p)) {
        words_mistake(&p->words,
                      "a region has 1 byte or more, and all regions of a case have up to %u bytes",
                      MR_MAX);
    }
    mr->bytes = aligned_alloc(PAGE, (mr->len + PAGE - 1) / PAGE * PAGE);
    g_assert_nonnull(mr->bytes);
    mr->seed = p->mrs->len + 1;
    for (size_t i = 0; i < mr->len; i++) {
        mr->bytes[i] = play_pattern(mr->seed, i);
    }
    mr->name = name;
    paged = words_flag(&p->words, "paged");
    rights |= paged ? IBV_ACCESS_ON_DEMAND : 0;
    pd = words_flag(&p->words, "other_pd") ? p->host->other_pd : p->host->pd;
    if (words_flag(&p->words, "dm")) {
        play_make_dm(p, mr, pd, rights);
    } else {
        mr->mr = ibv_reg_mr(pd, mr->bytes, mr->len, (int)rights);
    }
    if (paged) {
        play_take_pages(p, mr);
    }
    play_result(p, mr->mr ? 0 : errno);
    mr->addr = mr->dm ? 0 : (uintptr_t)mr->bytes;
    mr->lkey = mr->mr ? mr->mr->lkey : 0;
    mr->rkey = mr->mr ? mr->mr->rkey : 0;
    g_ptr_array_add(p->mrs, mr);
}

/* mw NAME [type=2]: a window that is not bound yet */
void play_new_mw(struct play *p)
{
    struct play_mr *mr = g_new0(struct play_mr, 1);

    mr->name = words_need(&p->words, "the window's name");
    mr->mw = ibv_alloc_mw(p->host->pd,
                          words_number(&p->words, "type", 2) == 1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
    if (!mr->mw) {
        play_cannot(p, "the device makes no such window", errno);
    }
    mr->rkey = mr->mw->rkey;
    g_ptr_array_add(p->mrs, mr);
}

/* null NAME: a key of any range of addresses, which reads as zeros and keeps nothing */
void play_new_null(struct play *p)
{
    struct play_mr *mr = g_new0(struct play_mr, 1);

    mr->name = words_need(&p->words, "the key's name");
    mr->mr = ibv_alloc_null_mr(p->host->pd);
    if (!mr->mr) {
        play_cannot(p, "the device has no null key", errno);
    }
    mr->seed = PLAY_ZEROS;
    mr->len = MR_MAX;
    mr->lkey = mr->mr->lkey;
    mr->rkey = mr->mr->rkey;
    g_ptr_array_add(p->mrs, mr);
}

/* key NAME PIECES [rinval] [fixed] [other_pd] [sig]: a key that is free until a UMR gives it
 * pieces; fixed: no UMR may; sig: it may have block signatures */
void play_new_key(struct play *p)
{
    const struct host_direct *direct = p->host->direct;
    struct words *w = &p->words;
    struct play_mr *mr = g_new0(struct play_mr, 1);
    uint16_t pieces;

    if (!direct) {
        play_cannot(p, "keys of several pieces need direct verbs", 0);
    }
    mr->name = words_need(w, "the key's name");
    pieces = (uint16_t)words_to_number(w, words_need(w, "how many pieces"));
    mr->has_sig = words_flag(w, "sig");
    mr->key =
        mr->has_sig
            ? direct->make_sig_key(p->host->pd, pieces, &mr->rkey)
            : direct->make_key(words_flag(w, "other_pd") ? p->host->other_pd : p->host->pd, pieces,
                               words_flag(w, "rinval"), words_flag(w, "fixed"), &mr->rkey);
    if (!mr->key) {
        words_fail(w, "there is no such key: %s", g_strerror(errno));
    }
    mr->lkey = mr->rkey;
    g_ptr_array_add(p->mrs, mr);
}

/* check NAME none | guard | app | ref [offset=N]: what a key with signatures has found since the
 * last check, and where its block begins */
void play_check(struct play *p)
{
    static const struct words_name errors[] = {
        {"none", HOST_SIG_NONE},
        {"guard", HOST_SIG_GUARD},
        {"ref", HOST_SIG_REF_TAG},
        {"app", HOST_SIG_APP_TAG},
        {NULL, 0},
    };
    struct words *w = &p->words;
    const struct play_mr *mr = play_mr(p, words_need(w, "the key's name"));
    unsigned long wanted = words_to_choice(w, words_need(w, "what it has found"), errors);
    enum host_sig_error error;
    uint64_t offset;

    if (!mr->has_sig) {
        words_mistake(w, "'%s' is no key with signatures", mr->name);
    }
    play_settle(p);
    if (p->host->direct->check_sig(mr->key, &error, &offset)) {
        words_fail(w, "it cannot be checked");
    }
    if (error != wanted || offset != words_number(w, "offset", offset)) {
        words_fail(w, "it is %s at offset %" G_GUINT64_FORMAT, words_name_of(errors, error),
                   offset);
    }
}

static int play_free_mr(struct play *p, struct play_mr *mr)
{
    int err = mr->mw    ? ibv_dealloc_mw(mr->mw)
              : mr->key ? p->host->direct->free_key(mr->key)
              : mr->mr  ? ibv_dereg_mr(mr->mr)
                        : 0;

    if (!err && mr->dm) {
        err = ibv_free_dm(mr->dm);
    }
    if (!err) {
        mr->mw = NULL;
        mr->key = NULL;
        mr->mr = NULL;
        mr->dm = NULL;
    }
    return err;
}

/* dereg NAME [errno=E]: a region, whose memory stays unless it is the device's, or a window or key
 */
void play_dereg(struct play *p)
{
    play_result(p, play_free_mr(p, play_mr(p, words_need(&p->words, "the region's name"))));
}

static struct ibv_srq *play_make_xrc_srq(struct play *p, struct play_srq *srq,
                                         const struct ibv_srq_init_attr *attr)
{
    struct ibv_xrcd_init_attr domain = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
        .fd = -1,
        .oflags = O_CREAT,
    };
    struct ibv_srq_init_attr_ex init = {
        .attr = attr->attr,
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ |
                     IBV_SRQ_INIT_ATTR_PD,
        .srq_type = IBV_SRQT_XRC,
        .pd = p->host->pd,
    };
    struct ibv_srq *made;

    init.xrcd = srq->xrcd = ibv_open_xrcd(p->host->ctx, &domain);
    init.cq = srq->cq =
        ibv_create_cq(p->host->ctx, (int)words_number(&p->words, "cqe", XRC_CQES), NULL, NULL, 0);
    made = srq->xrcd && srq->cq ? ibv_create_srq_ex(p->host->ctx, &init) : NULL;
    if (made && ibv_get_srq_num(made, &srq->srqn)) {
        words_fail(&p->words, "it has no number");
    }
    return made;
}

/* srq NAME [xrc [cqe=64]] [wr=16] [sge=1] [limit=N] */
void play_new_srq(struct play *p)
{
    struct play_srq *srq = g_new0(struct play_srq, 1);
    struct ibv_srq_init_attr attr = {
        .attr = {.max_wr = (uint32_t)words_number(&p->words, "wr", 16),
                 .max_sge = (uint32_t)words_number(&p->words, "sge", 1)},
    };

    srq->name = words_need(&p->words, "the queue's name");
    srq->srq = words_flag(&p->words, "xrc") ? play_make_xrc_srq(p, srq, &attr)
                                            : ibv_create_srq(p->host->pd, &attr);
    if (!srq->srq) {
        play_cannot(p, "the device makes no such shared receive queue", errno);
    }
    attr.attr.srq_limit = (uint32_t)words_number(&p->words, "limit", 0);
    if (attr.attr.srq_limit && ibv_modify_srq(srq->srq, &attr.attr, IBV_SRQ_LIMIT)) {
        words_fail(&p->words, "it takes no limit");
    }
    g_ptr_array_add(p->srqs, srq);
}

/* Reads the expected content of memory: "is DATA", "unchanged", "number=N". */
static void play_wanted(struct play *p, const struct play_range *range, uint8_t *bytes)
{
    const char *number = words_value(&p->words, "number");

    if (number && range->len == sizeof(uint64_t)) {
        uint64_t value = words_to_number(&p->words, number);

        memcpy(bytes, &value, sizeof(value));
    } else if (words_flag(&p->words, "unchanged")) {
        for (size_t i = 0; i < range->len; i++) {
            bytes[i] = play_pattern(range->mr->seed, range->offset + i);
        }
    } else if (!words_flag(&p->words, "is") ||
               play_data(p, words_need(&p->words, "data"), bytes, range->len) != range->len) {
        words_mistake(&p->words, "say: is DATA (of that length), unchanged, or number=N (8 bytes)");
    }
}

/* A device in real time may be slow, and does not report when it has written data that is not
 * acknowledged. */
static void play_wait_for(struct play *p, const uint8_t *bytes, const uint8_t *wanted, size_t len)
{
    uint64_t limit = play_now(p) + p->clock->patience_ns;

    while (p->clock->is_real && memcmp(bytes, wanted, len) != 0 &&
           p->clock->step(p->clock, limit)) {
    }
}

/* Brings a range of device memory and its copy in this process up to date. */
static void play_dm_copy(const struct play_range *range, bool to_device)
{
    struct ibv_dm *dm = range->mr->dm;
    uint8_t *bytes = range->mr->bytes + range->offset;

    if (dm) {
        g_assert_cmpint(to_device ? ibv_memcpy_to_dm(dm, range->offset, bytes, range->len)
                                  : ibv_memcpy_from_dm(bytes, dm, range->offset, range->len),
                        ==, 0);
    }
}

/* memory RANGE is DATA | unchanged | number=N: checks it; with "set" in front: writes it */
void play_memory(struct play *p)
{
    bool set = words_flag(&p->words, "set");
    struct play_range range = play_range(p, words_need(&p->words, "where"));
    g_autofree uint8_t *wanted = NULL;
    uint8_t *bytes = range.mr->bytes + range.offset;

    if (!range.mr->bytes) {
        words_mistake(&p->words, "'%s' has no bytes of its own", range.mr->name);
    }
    if (range.offset + range.len > range.mr->len) {
        words_mistake(&p->words, "that is outside the region");
    }
    wanted = g_malloc(range.len);
    play_wanted(p, &range, wanted);
    if (set) {
        memcpy(bytes, wanted, range.len);
        play_dm_copy(&range, true);
        return;
    }
    play_settle(p);
    play_dm_copy(&range, false);
    play_wait_for(p, bytes, wanted, range.len);
    for (size_t i = 0; i < range.len; i++) {
        if (bytes[i] != wanted[i]) {
            words_fail(&p->words, "byte %zu of it is 0x%02x, not 0x%02x", i, bytes[i], wanted[i]);
        }
    }
}

void play_free_windows(struct play *p)
{
    for (unsigned i = 0; i < p->mrs->len; i++) {
        struct play_mr *mr = g_ptr_array_index(p->mrs, i);

        if (mr->mw && play_free_mr(p, mr)) {
            words_fail(&p->words, "'%s' cannot be deallocated at the end", mr->name);
        }
    }
}

void play_free_objects(struct play *p)
{
    for (unsigned i = 0; i < p->mrs->len; i++) {
        struct play_mr *mr = g_ptr_array_index(p->mrs, i);

        if (play_free_mr(p, mr)) {
            words_fail(&p->words, "'%s' cannot be deregistered at the end", mr->name);
        }
        free(mr->bytes);
    }
    for (unsigned i = 0; i < p->srqs->len; i++) {
        struct play_srq *srq = g_ptr_array_index(p->srqs, i);

        if ((srq->srq && ibv_destroy_srq(srq->srq)) || (srq->cq && ibv_destroy_cq(srq->cq)) ||
            (srq->xrcd && ibv_close_xrcd(srq->xrcd))) {
            words_fail(&p->words, "'%s' cannot be destroyed at the end", srq->name);
        }
    }
}
