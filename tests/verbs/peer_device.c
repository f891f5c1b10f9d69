/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer in the process; see peer_device.h. */
#include "tests/verbs/peer_device.h"
#include <glib.h>
#include <stdlib.h>
#include <string.h>

/* -- memory: the functions that the library calls ---------------------------------------------- */

static bool peer_device_fails(struct peer_device *peer)
{
    return ++peer->calls == peer->fails_at;
}

static struct ibv_exp_peer_buf *peer_device_alloc(struct ibv_exp_peer_buf_alloc_attr *attr)
{
    struct peer_device *peer = (void *)(uintptr_t)attr->peer_id;
    size_t len = (attr->length + attr->alignment - 1) & ~(size_t)(attr->alignment - 1);
    struct ibv_exp_peer_buf *buf;

    peer->dirs[peer->num_dirs++ % G_N_ELEMENTS(peer->dirs)] = attr->dir;
    if (peer_device_fails(peer)) {
        return NULL;
    }
    buf = g_new0(struct ibv_exp_peer_buf, 1);
    buf->addr = aligned_alloc(attr->alignment, len);
    memset(buf->addr, 0xa5, len); /* the peer's memory is not zeroed */
    buf->length = peer->bad_buffer == 1 ? attr->length - 1 : attr->length;
    if (peer->bad_buffer == 2) {
        buf->addr = (uint8_t *)buf->addr + 8;
    }
    peer->buffers++;
    return buf;
}

/* Finds the peer of a buffer by its registration's: there is one peer with an allocator in a
 * process. */
static struct peer_device *allocator;

static int peer_device_release(struct ibv_exp_peer_buf *buf)
{
    g_assert_cmpuint(allocator->buffers, >, 0);
    allocator->buffers--;
    allocator->calls++;
    free((void *)((uintptr_t)buf->addr & ~(uintptr_t)63));
    g_free(buf);
    return 1; /* nobody looks at it */
}

static uint64_t peer_device_register(void *start, size_t length, uint64_t peer_id,
                                     struct ibv_exp_peer_buf *buf)
{
    struct peer_device *peer = (void *)(uintptr_t)peer_id;
    unsigned i = 0;

    if (peer_device_fails(peer)) {
        return 0;
    }
    while (peer->area[i].at) {
        g_assert_cmpuint(++i, <, PEER_AREAS);
    }
    peer->area[i] = (struct peer_area){.at = start,
                                       .len = length,
                                       .is_page = buf == IBV_EXP_PEER_IOMEMORY,
                                       .buf = buf == IBV_EXP_PEER_IOMEMORY ? NULL : buf};
    peer->areas++;
    return (uintptr_t)&peer->area[i];
}

static int peer_device_unregister(uint64_t target_id, uint64_t peer_id)
{
    struct peer_device *peer = (void *)(uintptr_t)peer_id;
    struct peer_area *area = (void *)(uintptr_t)target_id;

    g_assert_true(area >= peer->area && area < peer->area + PEER_AREAS && area->at);
    area->at = NULL;
    peer->areas--;
    peer->calls++;
    return 1;
}

void peer_device_init(struct peer_device *peer, uint64_t caps, bool allocates)
{
    *peer = (struct peer_device){.attr = {.peer_id = (uintptr_t)peer,
                                          .buf_alloc = allocates ? peer_device_alloc : NULL,
                                          .buf_release = allocates ? peer_device_release : NULL,
                                          .register_va = peer_device_register,
                                          .unregister_va = peer_device_unregister,
                                          .caps = caps,
                                          .comp_mask = IBV_EXP_PEER_DIRECT_VERSION,
                                          .version = 1}};
    if (allocates) {
        allocator = peer;
    }
}

/* -- lists ------------------------------------------------------------------------------------- */

void peer_list_init(struct peer_list *list)
{
    *list = (struct peer_list){0};
    for (unsigned i = 0; i + 1 < PEER_OPS; i++) {
        list->op[i].next = &list->op[i + 1];
    }
}

int peer_list_commit(struct peer_list *list, struct ibv_qp *qp, uint64_t *rollback_id)
{
    struct ibv_exp_peer_commit commit = {.storage = list->op, .entries = PEER_OPS};
    int err;

    peer_list_init(list);
    err = ibv_exp_peer_commit_qp(qp, &commit);
    list->num = err ? 0 : commit.entries;
    if (rollback_id) {
        *rollback_id = commit.rollback_id;
    }
    return err;
}

int peer_list_peek(struct peer_list *list, struct ibv_cq *cq, uint32_t whence, uint32_t offset,
                   uint64_t *peek_id)
{
    struct ibv_exp_peer_peek peek = {
        .storage = list->op, .entries = PEER_OPS, .whence = whence, .offset = offset};
    int err;

    peer_list_init(list);
    err = ibv_exp_peer_peek_cq(cq, &peek);
    list->num = err ? 0 : peek.entries;
    if (peek_id) {
        *peek_id = peek.peek_id;
    }
    return err;
}

static uint8_t *peer_op_at(uint64_t target_id, size_t offset, size_t len)
{
    const struct peer_area *area = (const void *)(uintptr_t)target_id;

    g_assert_nonnull(area);
    g_assert_nonnull(area->at);
    g_assert_cmpuint(offset, <=, area->len);
    g_assert_cmpuint(len, <=, area->len - offset);
    return area->at + offset;
}

void *peer_op_target(const struct peer_op_wr *op)
{
    switch (op->type) {
    case IBV_EXP_PEER_OP_FENCE:
        return NULL;
    case IBV_EXP_PEER_OP_STORE_QWORD:
        return peer_op_at(op->wr.qword_va.target_id, op->wr.qword_va.offset, sizeof(uint64_t));
    case IBV_EXP_PEER_OP_COPY_BLOCK:
        return peer_op_at(op->wr.copy_op.target_id, op->wr.copy_op.offset, op->wr.copy_op.len);
    default:
        return peer_op_at(op->wr.dword_va.target_id, op->wr.dword_va.offset, sizeof(uint32_t));
    }
}

static void peer_copy_block(uint64_t *to, const uint64_t *from, size_t len)
{
    for (size_t i = 0; i < len / sizeof(*to); i++) {
        __atomic_store_n(&to[i], from[i], __ATOMIC_RELAXED);
    }
}

/* False: a wait that is not over. Waits end as libmlx5 and its tests have it; the manual page says
 * the opposite. */
static bool peer_op_run(const struct peer_op_wr *op)
{
    uint32_t data = op->wr.dword_va.data, *at = peer_op_target(op);

    switch (op->type) {
    case IBV_EXP_PEER_OP_FENCE:
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        return true;
    case IBV_EXP_PEER_OP_STORE_DWORD:
        __atomic_store_n(at, data, __ATOMIC_RELAXED);
        return true;
    case IBV_EXP_PEER_OP_STORE_QWORD:
        __atomic_store_n((uint64_t *)(void *)at, op->wr.qword_va.data, __ATOMIC_RELAXED);
        return true;
    case IBV_EXP_PEER_OP_COPY_BLOCK:
        peer_copy_block((void *)at, op->wr.copy_op.src, op->wr.copy_op.len);
        return true;
    case IBV_EXP_PEER_OP_POLL_AND_DWORD:
        return __atomic_load_n(at, __ATOMIC_ACQUIRE) & data;
    case IBV_EXP_PEER_OP_POLL_NOR_DWORD:
        return ~(__atomic_load_n(at, __ATOMIC_ACQUIRE) | data);
    case IBV_EXP_PEER_OP_POLL_GEQ_DWORD:
        return (int32_t)__atomic_load_n(at, __ATOMIC_ACQUIRE) >= (int32_t)data;
    default:
        g_assert_not_reached();
    }
}

bool peer_list_run(struct peer_list *list)
{
    while (list->done < list->num && peer_op_run(&list->op[list->done])) {
        list->done++;
    }
    return list->done == list->num;
}
