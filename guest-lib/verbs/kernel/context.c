/* SPDX-License-Identifier: BSD-2-Clause */
/* Contexts: the user, the transport domain and the doorbell page of each
 * (mlx5_ib_alloc_ucontext()). */
#include <sys/stat.h>
#include "guest-lib/verbs/kernel/cleanup.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "guest-lib/verbs/kernel/uverbs.h"

static int context_alloc(struct hv_context *ctx)
{
    struct prm_create_uctx_in uctx_in[1] = {0};
    struct prm_create_uctx_out uctx_out[1];
    struct prm_alloc_transport_domain_in td_in[1] = {0};
    struct prm_alloc_transport_domain_out td_out[1];
    const uint32_t raw_tx = PRM_UCTX_CAP_RAW_TX;
    int err;

    if (!ctx->uid) {
        PRM_SET(create_uctx_in, uctx_in, opcode, PRM_CMD_OP_CREATE_UCTX);
        PRM_SET(uctx, PRM_PTR(create_uctx_in, uctx_in, uctx), cap, raw_tx);
        err = hv_cmd(ctx->hca, uctx_in, sizeof(uctx_in), uctx_out, sizeof(uctx_out));
        if (err) {
            return err;
        }
        ctx->uid = (uint16_t)PRM_GET(create_uctx_out, uctx_out, uid);
    }
    PRM_SET(alloc_transport_domain_in, td_in, opcode, PRM_CMD_OP_ALLOC_TRANSPORT_DOMAIN);
    PRM_SET(alloc_transport_domain_in, td_in, uid, ctx->uid);
    err = hv_cmd(ctx->hca, td_in, sizeof(td_in), td_out, sizeof(td_out));
    if (err) {
        return err;
    }
    ctx->tdn = PRM_GET(alloc_transport_domain_out, td_out, transport_domain);
    return hv_uar_alloc(ctx, &ctx->uar);
}

static void context_free_td(struct hv_context *ctx)
{
    struct prm_dealloc_transport_domain_in in[1] = {0};

    PRM_SET(dealloc_transport_domain_in, in, opcode, PRM_CMD_OP_DEALLOC_TRANSPORT_DOMAIN);
    PRM_SET(dealloc_transport_domain_in, in, uid, ctx->uid);
    PRM_SET(dealloc_transport_domain_in, in, transport_domain, ctx->tdn);
    hv_cmd_simple(ctx->hca, in, sizeof(in));
}

/* Destroys the user with everything that is left of it. */
static void context_free_user(struct hv_context *ctx)
{
    struct prm_destroy_uctx_in in[1] = {0};

    if (ctx->uid) {
        PRM_SET(destroy_uctx_in, in, opcode, PRM_CMD_OP_DESTROY_UCTX);
        PRM_SET(destroy_uctx_in, in, uid, ctx->uid);
        hv_cmd_simple(ctx->hca, in, sizeof(in));
    }
}

int uverbs_get_context(struct hv_context *ctx)
{
    int err = context_alloc(ctx);

    if (err) {
        return err;
    }
    ctx->allocated = true;
    pthread_mutex_lock(&ctx->hca->reg_lock);
    g_ptr_array_add(ctx->hca->contexts, ctx);
    pthread_mutex_unlock(&ctx->hca->reg_lock);
    return 0;
}

void uverbs_forget_context(struct hv_context *ctx)
{
    if (hv_is_ours(ctx->hca)) {
        pthread_mutex_lock(&ctx->hca->reg_lock);
        g_ptr_array_remove(ctx->hca->contexts, ctx);
        pthread_mutex_unlock(&ctx->hca->reg_lock);
    }
}

static void context_end(struct hv_context *ctx)
{
    g_clear_pointer(&ctx->record_pages, g_hash_table_destroy);
    if (ctx->allocated) {
        hv_uar_free(ctx, &ctx->uar);
        context_free_td(ctx);
    }
}

/* Keeps a context in memory because objects of it were left. A program that still polls or posts to
 * one of them finds the memory that these calls read, as with a kernel. */
static void context_keep(struct hv_context *ctx)
{
    struct hv_hca *hca = ctx->hca;

    pthread_mutex_lock(&hca->reg_lock);
    ctx->next_kept = hca->kept;
    hca->kept = ctx;
    hca->left_behind = true;
    pthread_mutex_unlock(&hca->reg_lock);
}

/* In a child of fork() the file belongs to the parent, and stays: one of its locks may be held by a
 * thread that does not exist in the child. */
void uverbs_put_context(struct hv_context *ctx)
{
    struct hv_file *file = ctx->file;
    struct hv_hca *hca = ctx->hca;
    bool keep;

    if (!hv_is_ours(hca) || !hv_file_leave(file, ctx)) {
        return;
    }
    keep = hv_file_has_objects(file);
    hv_cleanup_file(hca, file);
    hv_file_each_context(file, context_end);
    context_free_user(ctx);
    if (keep) {
        hv_file_each_context(file, context_keep);
    }
    hv_file_free(file, keep);
}

int uverbs_share_file(struct hv_hca *hca, const struct stat *wanted, struct hv_file **file,
                      uint16_t *uid)
{
    int err = EINVAL;
    struct stat st;

    pthread_mutex_lock(&hca->reg_lock);
    for (guint i = 0; err == EINVAL && i < hca->contexts->len; i++) {
        struct hv_context *ctx = hca->contexts->pdata[i];

        if (!fstat(ctx->ibv.context.cmd_fd, &st) && st.st_dev == wanted->st_dev &&
            st.st_ino == wanted->st_ino) {
            err = hv_is_removed(hca) ? ENODEV : 0;
            if (!err) {
                *file = hv_file_share(ctx->file);
                *uid = ctx->uid;
            }
        }
    }
    pthread_mutex_unlock(&hca->reg_lock);
    return err;
}
