/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PeerDirect: memory of a peer and for a peer, and the attribute that a context gets when it is
 * opened for a peer.
 */
#include "guest-lib/verbs/exp/peer.h"
#include <inttypes.h>
#include "guest-lib/verbs/exp/exp.h"

int exp_peer_check(struct hv_hca *hca, const char *verb,
                   const struct ibv_exp_peer_direct_attr *attr, uint64_t all, uint64_t one)
{
    if (!attr) {
        return hv_refuse(hca, EINVAL, "%s: peer_direct_attrs is NULL", verb);
    }
    if (attr->comp_mask != IBV_EXP_PEER_DIRECT_VERSION || attr->version != 1) {
        return hv_refuse(hca, EINVAL,
                         "%s: peer_direct_attrs has comp_mask 0x%x and version %u; they must be "
                         "IBV_EXP_PEER_DIRECT_VERSION and 1",
                         verb, attr->comp_mask, attr->version);
    }
    if (!attr->register_va != !attr->unregister_va) {
        return hv_refuse(hca, EINVAL,
                         "%s: peer_direct_attrs has one of register_va and unregister_va; set both "
                         "or none",
                         verb);
    }
    if (!attr->buf_alloc != !attr->buf_release) {
        return hv_refuse(hca, EINVAL,
                         "%s: peer_direct_attrs has one of buf_alloc and buf_release; set both or "
                         "none",
                         verb);
    }
    if ((attr->caps & all) != all || (one && !(attr->caps & one))) {
        return hv_refuse(
            hca, EINVAL, "%s: the peer's caps are 0x%" PRIx64 "; they must have 0x%" PRIx64 "%s",
            verb, attr->caps, all, one ? ", and POLL_NOR_DWORD or POLL_GEQ_DWORD" : "");
    }
    return 0;
}

/* -- memory ------------------------------------------------------------------------------------ */

/* Whether the library can use what the peer's allocator returned: 0 or errno. */
static int exp_peer_check_buf(struct hv_hca *hca, const struct ibv_exp_peer_buf *buf, size_t size,
                              size_t alignment)
{
    if (!buf->addr || buf->length < size || (uintptr_t)buf->addr % alignment) {
        return hv_refuse(
            hca, EINVAL,
            "the peer's buf_alloc() returned %zu bytes at %p; it must return %zu bytes "
            "or more at a multiple of %zu",
            buf->length, buf->addr, size, alignment);
    }
    if (uverbs_is_gpu_memory(buf->addr, size)) {
        return hv_refuse(hca, EFAULT,
                         "the peer's buf_alloc() returned memory of a GPU (%p), from which the CPU "
                         "cannot load; it must return an address that the CPU can use, or NULL",
                         buf->addr);
    }
    return 0;
}

bool exp_peer_alloc(struct hv_hca *hca, const struct ibv_exp_peer_direct_attr *peer, size_t size,
                    size_t alignment, uint32_t dir, struct exp_peer_memory *memory, int *err)
{
    struct ibv_exp_peer_buf_alloc_attr attr = {
        .length = size, .dir = dir, .peer_id = peer->peer_id, .alignment = (uint32_t)alignment};
    struct ibv_exp_peer_buf *buf = peer->buf_alloc ? peer->buf_alloc(&attr) : NULL;

    *err = 0;
    if (!buf) {
        return false;
    }
    *err = exp_peer_check_buf(hca, buf, size, alignment);
    if (*err) {
        peer->buf_release(buf);
        return false;
    }
    *memory = (struct exp_peer_memory){.at = buf->addr, .size = size, .buf = buf};
    return true;
}

int exp_peer_register(struct hv_hca *hca, const struct ibv_exp_peer_direct_attr *peer,
                      struct exp_peer_memory *memory, struct ibv_exp_peer_buf *buf)
{
    if (!peer->register_va) {
        return 0;
    }
    memory->id = peer->register_va(memory->at, memory->size, peer->peer_id, buf);
    return memory->id
               ? 0
               : hv_refuse(hca, ENOMEM, "the peer's register_va() failed for %zu bytes at %p",
                           memory->size, memory->at);
}

void exp_peer_release(const struct ibv_exp_peer_direct_attr *peer, struct exp_peer_memory *memory)
{
    if (memory->id) {
        peer->unregister_va(memory->id, peer->peer_id);
    }
    if (memory->buf) {
        peer->buf_release(memory->buf);
    }
    memory->id = 0;
    memory->buf = NULL;
}

bool exp_peer_take_list(struct peer_op_wr *storage, struct peer_op_wr **op, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (!storage) {
            return false;
        }
        op[i] = storage;
        storage = storage->next;
    }
    return true;
}

/* -- contexts ---------------------------------------------------------------------------------- */

/* ibv_exp_open_device() calls this for the context that it has opened, and closes the context if
 * it fails. */
static int exp_peer_set_context(struct ibv_context *context, struct ibv_exp_open_device_attr *attr)
{
    const char *name = attr->peer_info.peer_name;
    int err;

    if (!(attr->comp_mask & IBV_EXP_SET_ATTR_PEER_INFO) || !name) {
        err = hv_refuse(hv_hca_of(context), EINVAL,
                        "exp_open_device: peer_info is missing or has no peer_name");
        errno = err; /* the caller of the program's call sees errno alone */
        return err;
    }
    return hv_kernel(uverbs_set_peer(hv_context(context), attr->peer_info.peer_id, name));
}

void hv_exp_peer_ops(struct verbs_context_exp *ops)
{
    ops->exp_peer_commit_qp = exp_peer_commit;
    ops->exp_rollback_send = exp_peer_roll_back;
    ops->exp_peer_peek_cq = exp_peer_peek;
    ops->exp_peer_abort_peek_cq = exp_peer_abort_peek;
    ops->drv_exp_set_context_attr = exp_peer_set_context;
}
