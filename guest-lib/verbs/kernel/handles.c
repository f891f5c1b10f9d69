/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handles: the numbers by which a program names its objects to the kernel.
 *
 * Every open device has one numbering for objects of all kinds, as every file of ib_uverbs has
 * (rdma_core.c); the lowest free number is next. A command looks up the handle that stands in the
 * program's structure, so that one which was overwritten there, or has gone, is found out before
 * anything is done. Contexts that were imported from one another share their file.
 */
#include "guest-lib/verbs/kernel/kernel.h"

struct slot {
    enum hv_handle_kind kind;
    void *obj; /* NULL: free */
};

struct hv_file {
    pthread_mutex_t lock; /* around what follows */
    GArray *slots;        /* struct slot, by handle */
    guint lowest;         /* no handle below it is free */
    gint contexts;
};

struct hv_file *hv_file_new(void)
{
    struct hv_file *file = g_new0(struct hv_file, 1);

    pthread_mutex_init(&file->lock, NULL);
    file->slots = g_array_new(FALSE, TRUE, sizeof(struct slot));
    file->contexts = 1;
    return file;
}

struct hv_file *hv_file_share(struct hv_file *file)
{
    g_atomic_int_inc(&file->contexts);
    return file;
}

bool hv_file_close(struct hv_file *file)
{
    if (!g_atomic_int_dec_and_test(&file->contexts)) {
        return false;
    }
    g_array_free(file->slots, TRUE);
    pthread_mutex_destroy(&file->lock);
    g_free(file);
    return true;
}

uint32_t hv_handle_add(struct ibv_context *context, enum hv_handle_kind kind, void *obj)
{
    struct hv_file *file = hv_context(context)->file;
    uint32_t handle;

    pthread_mutex_lock(&file->lock);
    for (handle = file->lowest; handle < file->slots->len; handle++) {
        if (!g_array_index(file->slots, struct slot, handle).obj) {
            break;
        }
    }
    if (handle == file->slots->len) {
        g_array_set_size(file->slots, handle + 1);
    }
    g_array_index(file->slots, struct slot, handle) = (struct slot){kind, obj};
    file->lowest = handle + 1;
    pthread_mutex_unlock(&file->lock);
    return handle;
}

void hv_handle_del(struct ibv_context *context, uint32_t handle)
{
    struct hv_file *file = hv_context(context)->file;

    pthread_mutex_lock(&file->lock);
    g_array_index(file->slots, struct slot, handle).obj = NULL;
    file->lowest = MIN(file->lowest, handle);
    pthread_mutex_unlock(&file->lock);
}

void *hv_handle_get(struct ibv_context *context, enum hv_handle_kind kind, uint32_t handle,
                    int *err)
{
    struct hv_file *file = hv_context(context)->file;
    struct slot slot = {0};

    pthread_mutex_lock(&file->lock);
    if (handle < file->slots->len) {
        slot = g_array_index(file->slots, struct slot, handle);
    }
    pthread_mutex_unlock(&file->lock);
    *err = !slot.obj ? ENOENT : slot.kind != kind ? EINVAL : 0;
    return *err ? NULL : slot.obj;
}

int hv_handle_check(struct ibv_context *context, enum hv_handle_kind kind, uint32_t handle,
                    const void *obj)
{
    int err;
    void *found = hv_handle_get(context, kind, handle, &err);

    return found && found != obj ? EINVAL : err;
}
