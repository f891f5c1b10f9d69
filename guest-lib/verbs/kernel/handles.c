/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handles: the numbers by which a program names its objects to the kernel, and the objects that a
 * file owns.
 *
 * Every open device has one numbering for objects of all kinds, like every file of ib_uverbs
 * (rdma_core.c). The next handle is the lowest free number. A command looks up the handle in the
 * program's structure, so a handle that was overwritten or deleted is detected before anything is
 * done. Contexts that were imported from one another share their file.
 *
 * Objects that are left when the last context closes are ended then (hv_file_end_objects()): the
 * youngest first. An object that cannot end because another one needs it is tried again after that
 * one (uverbs_destroy_ufile_hw()).
 */
#include <stdlib.h>
#include "guest-lib/verbs/kernel/kernel.h"

struct slot {
    enum hv_handle_kind kind;
    void *obj;   /* NULL: free */
    guint64 age; /* number of handles that were given out before this one */
};

struct hv_file {
    pthread_mutex_t lock; /* around the members below */
    GArray *slots;        /* struct slot, by handle */
    guint lowest;         /* all handles below it are in use */
    guint64 made;
    unsigned contexts; /* number of open contexts */
    GPtrArray *left;   /* struct hv_context that have left */
};

static void handle_free_context(void *opaque)
{
    struct hv_context *ctx = opaque;

    if (ctx->free) {
        ctx->free(ctx);
    } else {
        free(ctx);
    }
}

struct hv_file *hv_file_new(void)
{
    struct hv_file *file = g_new0(struct hv_file, 1);

    pthread_mutex_init(&file->lock, NULL);
    file->slots = g_array_new(FALSE, TRUE, sizeof(struct slot));
    file->left = g_ptr_array_new_with_free_func(handle_free_context);
    file->contexts = 1;
    return file;
}

struct hv_file *hv_file_share(struct hv_file *file)
{
    pthread_mutex_lock(&file->lock);
    file->contexts++;
    pthread_mutex_unlock(&file->lock);
    return file;
}

bool hv_file_leave(struct hv_file *file, struct hv_context *ctx)
{
    bool last;

    pthread_mutex_lock(&file->lock);
    g_ptr_array_add(file->left, ctx);
    last = --file->contexts == 0;
    pthread_mutex_unlock(&file->lock);
    return last;
}

void hv_file_each_context(struct hv_file *file, void (*call)(struct hv_context *ctx))
{
    for (guint i = 0; i < file->left->len; i++) {
        call(file->left->pdata[i]);
    }
}

static gint handle_is_younger(gconstpointer a, gconstpointer b)
{
    const struct slot *x = a, *y = b;

    return x->age > y->age ? -1 : x->age < y->age;
}

/* All objects, the youngest first. */
static GArray *handle_list_all(struct hv_file *file)
{
    GArray *list = g_array_new(FALSE, FALSE, sizeof(struct slot));

    pthread_mutex_lock(&file->lock);
    for (guint i = 0; i < file->slots->len; i++) {
        const struct slot *slot = &g_array_index(file->slots, struct slot, i);

        if (slot->obj) {
            g_array_append_vals(list, slot, 1);
        }
    }
    pthread_mutex_unlock(&file->lock);
    g_array_sort(list, handle_is_younger);
    return list;
}

unsigned hv_file_end_objects(struct hv_file *file, int (*const end[])(void *obj))
{
    unsigned left, ended;

    do {
        GArray *list = handle_list_all(file);

        ended = 0;
        for (guint i = 0; i < list->len; i++) {
            const struct slot *slot = &g_array_index(list, struct slot, i);

            ended += end[slot->kind](slot->obj) == 0;
        }
        left = list->len - ended;
        g_array_free(list, TRUE);
    } while (left && ended);
    return left;
}

bool hv_file_has_objects(struct hv_file *file)
{
    bool any = false;

    pthread_mutex_lock(&file->lock);
    for (guint i = 0; !any && i < file->slots->len; i++) {
        any = g_array_index(file->slots, struct slot, i).obj;
    }
    pthread_mutex_unlock(&file->lock);
    return any;
}

void hv_file_free(struct hv_file *file, bool keep)
{
    g_array_free(file->slots, TRUE);
    if (keep) {
        g_ptr_array_set_free_func(file->left, NULL);
    }
    g_ptr_array_free(file->left, TRUE);
    pthread_mutex_destroy(&file->lock);
    g_free(file);
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
    g_array_index(file->slots, struct slot, handle) = (struct slot){kind, obj, file->made++};
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

static void handle_note(void *obj, void *noted)
{
    *(void **)noted = obj;
}

bool hv_handle_use(struct ibv_context *context, enum hv_handle_kind kind, uint32_t handle,
                   void (*use)(void *obj, void *arg), void *arg, int *err)
{
    struct hv_file *file = hv_context(context)->file;
    struct slot slot = {0};

    pthread_mutex_lock(&file->lock);
    if (handle < file->slots->len) {
        slot = g_array_index(file->slots, struct slot, handle);
    }
    *err = !slot.obj ? ENOENT : slot.kind != kind ? EINVAL : 0;
    if (!*err) {
        use(slot.obj, arg);
    }
    pthread_mutex_unlock(&file->lock);
    return !*err;
}

void *hv_handle_get(struct ibv_context *context, enum hv_handle_kind kind, uint32_t handle,
                    int *err)
{
    void *obj = NULL;

    hv_handle_use(context, kind, handle, handle_note, &obj, err);
    return obj;
}

bool hv_handle_find(struct ibv_context *context, enum hv_handle_kind kind,
                    bool (*found)(void *obj, void *arg), void *arg)
{
    struct hv_file *file = hv_context(context)->file;
    bool done = false;

    pthread_mutex_lock(&file->lock);
    for (guint i = 0; !done && i < file->slots->len; i++) {
        const struct slot *slot = &g_array_index(file->slots, struct slot, i);

        done = slot->obj && slot->kind == kind && found(slot->obj, arg);
    }
    pthread_mutex_unlock(&file->lock);
    return done;
}

int hv_handle_check(struct ibv_context *context, enum hv_handle_kind kind, uint32_t handle,
                    const void *obj)
{
    static const char *const kinds[HV_HANDLE_KINDS] = {
        "PD",      "MR",          "MW",   "AH",        "CQ",   "SRQ",
        "QP",      "XRCD",        "WQ",   "RWQ table", "flow", "device memory",
        "matcher", "DevX object", "umem", "UAR",       "rate", "flow action"};
    int err;
    void *found = hv_handle_get(context, kind, handle, &err);

    if (found && found != obj) {
        err = EINVAL;
    }
    return hv_refuse(hv_hca_of(context), err,
                     "handle %u is not this %s: the %s has been destroyed, belongs to another "
                     "context, or its structure was overwritten",
                     handle, kinds[kind], kinds[kind]);
}
