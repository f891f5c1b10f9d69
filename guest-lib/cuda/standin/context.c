/* SPDX-License-Identifier: BSD-2-Clause */
/* Contexts of the stand-in GPU: the primary context, others, and the stack of each thread. */
#include <stdlib.h>
#include "guest-lib/cuda/standin/standin_internal.h"

#define DEPTH 64 /* contexts on a thread's stack */

static __thread CUcontext stack[DEPTH];
static __thread unsigned depth;

static struct standin_context primary = {.primary = true};
static unsigned primary_users;
static unsigned long long last_id;

/* -- life -------------------------------------------------------------------------------------- */

static CUresult context_start(struct standin_context *context, unsigned flags)
{
    context->main = standin_stream_new(context, 0, 0);
    if (!context->main) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    context->id = ++last_id;
    context->flags = flags;
    context->error = CUDA_SUCCESS;
    context->alive = true;
    standin.counts.contexts++;
    return CUDA_SUCCESS;
}

/* Ends the objects of the context. Work that waits in its streams is dropped. */
static void context_stop(struct standin_context *context)
{
    context->stopping = true;
    context->error = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    standin_stream_end_all(context);
    standin_event_end_all(context);
    standin_module_end_all(context);
    standin_memory_end(context);
    context->main = NULL;
    context->alive = context->stopping = false;
    standin.counts.contexts--;
    pthread_cond_broadcast(&standin.done);
}

CUresult standin_context_current(struct standin_context **context)
{
    struct standin_context *found;

    if (!depth) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    found = standin_handle_find(STANDIN_CONTEXT, stack[depth - 1]);
    if (!found || !found->alive) {
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    *context = found;
    return found->error;
}

/* -- the primary context ----------------------------------------------------------------------- */

static CUresult context_begin_primary(CUdevice device)
{
    CUresult result = standin_begin();

    if (!result && !standin_is_device(device)) {
        return standin_end(CUDA_ERROR_INVALID_DEVICE);
    }
    while (!result && primary.stopping) {
        pthread_cond_wait(&standin.done, &standin.lock);
    }
    return result;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    CUresult result = context_begin_primary(device);

    if (result) {
        return result;
    }
    if (!context) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    if (!primary.handle) {
        primary.handle = standin_handle_new(STANDIN_CONTEXT, &primary);
        if (!primary.handle) {
            return standin_end(CUDA_ERROR_OUT_OF_MEMORY);
        }
    }
    if (!primary.alive) {
        result = context_start(&primary, primary.flags);
        if (result) {
            return standin_end(result);
        }
    }
    primary_users++;
    *context = primary.handle;
    return standin_end(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    CUresult result = context_begin_primary(device);

    if (result) {
        return result;
    }
    if (!primary_users) {
        return standin_end(CUDA_ERROR_INVALID_CONTEXT);
    }
    if (!--primary_users && primary.alive) {
        context_stop(&primary);
    }
    return standin_end(CUDA_SUCCESS);
}

/* Its users stay: the next of them that retains it makes it anew. */
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    CUresult result = context_begin_primary(device);

    if (result) {
        return result;
    }
    if (primary.alive) {
        context_stop(&primary);
    }
    return standin_end(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
    CUresult result = context_begin_primary(device);

    if (result) {
        return result;
    }
    if (flags & ~(unsigned)CU_CTX_FLAGS_MASK) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    primary.flags = flags;
    return standin_end(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    CUresult result = context_begin_primary(device);

    if (result) {
        return result;
    }
    if (!flags || !active) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    *flags = primary.flags;
    *active = primary.alive;
    return standin_end(CUDA_SUCCESS);
}

/* -- other contexts ---------------------------------------------------------------------------- */

CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device)
{
    struct standin_context *made;
    CUresult result = context_begin_primary(device);

    if (result) {
        return result;
    }
    if (!context || flags & ~(unsigned)CU_CTX_FLAGS_MASK) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    made = calloc(1, sizeof(*made));
    if (made) {
        made->handle = standin_handle_new(STANDIN_CONTEXT, made);
    }
    if (!made || !made->handle || depth == DEPTH || context_start(made, flags)) {
        if (made) {
            standin_handle_end(STANDIN_CONTEXT, made->handle);
        }
        free(made);
        return standin_end(CUDA_ERROR_OUT_OF_MEMORY);
    }
    stack[depth++] = *context = made->handle;
    return standin_end(CUDA_SUCCESS);
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
    struct standin_context *found;
    CUresult result = standin_begin();

    if (result) {
        return result;
    }
    found = standin_handle_find(STANDIN_CONTEXT, context);
    if (!found || found->primary) {
        return standin_end(CUDA_ERROR_INVALID_CONTEXT);
    }
    standin_handle_end(STANDIN_CONTEXT, context);
    context_stop(found);
    free(found);
    if (depth && stack[depth - 1] == context) {
        depth--;
    }
    return standin_end(CUDA_SUCCESS);
}

/* -- the thread's stack ------------------------------------------------------------------------ */

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    CUresult result = standin_begin();

    if (result) {
        return result;
    }
    if (!standin_handle_find(STANDIN_CONTEXT, context)) {
        return standin_end(CUDA_ERROR_INVALID_CONTEXT);
    }
    if (depth == DEPTH) {
        return standin_end(CUDA_ERROR_OUT_OF_MEMORY);
    }
    stack[depth++] = context;
    return standin_end(CUDA_SUCCESS);
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    CUresult result = standin_begin();

    if (result) {
        return result;
    }
    if (!depth) {
        return standin_end(CUDA_ERROR_INVALID_CONTEXT);
    }
    depth--;
    if (context) {
        *context = stack[depth];
    }
    return standin_end(CUDA_SUCCESS);
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    CUresult result = standin_begin();

    if (result) {
        return result;
    }
    if (context && !standin_handle_find(STANDIN_CONTEXT, context)) {
        return standin_end(CUDA_ERROR_INVALID_CONTEXT);
    }
    if (depth) {
        depth--;
    }
    if (context) {
        stack[depth++] = context;
    }
    return standin_end(CUDA_SUCCESS);
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    CUresult result = standin_begin();

    if (result) {
        return result;
    }
    if (!context) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    *context = depth ? stack[depth - 1] : NULL;
    return standin_end(CUDA_SUCCESS);
}

/* -- what is told of a context ----------------------------------------------------------------- */

CUresult cuCtxGetDevice(CUdevice *device)
{
    struct standin_context *context;
    CUresult result = standin_begin_in(&context);

    if (result) {
        return result;
    }
    if (!device) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    *device = 0;
    return standin_end(CUDA_SUCCESS);
}

CUresult cuCtxGetFlags(unsigned *flags)
{
    struct standin_context *context;
    CUresult result = standin_begin_in(&context);

    if (result) {
        return result;
    }
    if (!flags) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    *flags = context->flags;
    return standin_end(CUDA_SUCCESS);
}

/* Finds a context by its handle; NULL stands for the current one. */
static CUresult context_begin_at(CUcontext handle, struct standin_context **context)
{
    CUresult result;

    if (!handle) {
        return standin_begin_in(context);
    }
    result = standin_begin();
    if (result) {
        return result;
    }
    *context = standin_handle_find(STANDIN_CONTEXT, handle);
    return *context && (*context)->alive ? CUDA_SUCCESS : standin_end(CUDA_ERROR_INVALID_CONTEXT);
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long *id)
{
    struct standin_context *context;
    CUresult result = context_begin_at(handle, &context);

    if (result) {
        return result;
    }
    if (!id) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    *id = context->id;
    return standin_end(CUDA_SUCCESS);
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned *version)
{
    struct standin_context *context;
    CUresult result = context_begin_at(handle, &context);

    if (result) {
        return result;
    }
    if (!version) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    *version = 3020; /* of cuCtxCreate_v2() */
    return standin_end(CUDA_SUCCESS);
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    struct standin_context *context;
    CUresult result = standin_begin_in(&context);

    if (result) {
        return result;
    }
    if (least) {
        *least = 0;
    }
    if (greatest) {
        *greatest = -5;
    }
    return standin_end(CUDA_SUCCESS);
}

CUresult cuCtxSynchronize(void)
{
    struct standin_context *context;
    CUresult result = standin_begin_in(&context);

    return result ? result : standin_end(standin_stream_drain(context));
}
