/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Channels: descriptors, other than a context's own, from which a program reads events (completion
 * channels, DevX channels). In ib_uverbs they are objects that are files. The HCA lists them, so
 * that they are closed with the file that made them, or when the device is removed; threads that
 * read them then get an error. The descriptor itself stays with the program.
 */
#include "guest-lib/verbs/kernel/events.h"
#include "guest-lib/verbs/kernel/hca.h"
#include "guest-lib/verbs/kernel/kernel.h"

int hv_event_file_open(struct ibv_context *context, struct hv_event_file *file,
                       GDestroyNotify free_event)
{
    struct hv_hca *hca = hv_hca_of(context);
    int err;

    if (!hv_is_ours(hca)) {
        return EIO;
    }
    file->hca = hca;
    file->file = hv_context(context)->file;
    pthread_mutex_lock(&hca->reg_lock);
    err = hv_check_there(hca);
    err = err ? err : hv_event_queue_init(&file->queue, free_event);
    if (!err) {
        g_ptr_array_add(hca->event_files, file);
    }
    pthread_mutex_unlock(&hca->reg_lock);
    return err;
}

void hv_event_file_close(struct hv_event_file *file)
{
    struct hv_hca *hca = __atomic_load_n(&file->hca, __ATOMIC_ACQUIRE);

    if (hca && hv_is_ours(hca)) {
        pthread_mutex_lock(&hca->reg_lock);
        if (file->hca) { /* its file is not closed yet */
            g_ptr_array_remove_fast(hca->event_files, file);
        }
        pthread_mutex_unlock(&hca->reg_lock);
    }
    hv_event_queue_fini(&file->queue);
}

void hv_event_files_end(struct hv_hca *hca, const struct hv_file *of)
{
    pthread_mutex_lock(&hca->reg_lock);
    for (guint i = hca->event_files->len; i-- > 0;) {
        struct hv_event_file *file = hca->event_files->pdata[i];

        if (file->file == of) {
            hv_event_queue_close(&file->queue);
            __atomic_store_n(&file->hca, NULL, __ATOMIC_RELEASE);
            hca->left_behind = true;
            g_ptr_array_remove_index_fast(hca->event_files, i);
        }
    }
    pthread_mutex_unlock(&hca->reg_lock);
}

void hv_event_files_removed(struct hv_hca *hca)
{
    pthread_mutex_lock(&hca->reg_lock);
    for (guint i = 0; i < hca->event_files->len; i++) {
        struct hv_event_file *file = hca->event_files->pdata[i];

        hv_event_queue_close(&file->queue);
    }
    pthread_mutex_unlock(&hca->reg_lock);
}
