/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of the stand-in GPU: marks in streams, which streams and threads wait for. */
#include <stdlib.h>
#include <time.h>
#include "guest-lib/cuda/standin/standin_internal.h"

struct standin_event {
    CUevent handle;
    struct standin_context *context;
    unsigned flags;
    unsigned long long stream; /* the number of the stream of its last record */
    uint64_t seq;              /* of that record; 0: it was never recorded */
    bool done;                 /* the stream came to that record */
    struct timespec at;        /* when it did */
};

void standin_event_done(CUevent handle, uint64_t seq)
{
    struct standin_event *event = standin_handle_find(STANDIN_EVENT, handle);

    if (event && event->seq == seq) {
        event->done = true;
        clock_gettime(CLOCK_MONOTONIC, &event->at);
    }
}

static void event_free(struct standin_event *event)
{
    standin_handle_end(STANDIN_EVENT, event->handle);
    free(event);
}

void standin_event_end_all(const struct standin_context *context)
{
    struct standin_event *event;
    unsigned at = 0;

    while ((event = standin_handle_next(STANDIN_EVENT, &at))) {
        if (event->context == context) {
            event_free(event);
        }
    }
}

/* Begins a call for an event. */
static CUresult event_begin_in(struct standin_context **context, CUevent handle,
                               struct standin_event **event)
{
    CUresult result = standin_begin_in(context);

    if (result) {
        return result;
    }
    *event = standin_handle_find(STANDIN_EVENT, handle);
    return *event ? (*event)->context->error ? standin_end((*event)->context->error) : CUDA_SUCCESS
                  : standin_end(CUDA_ERROR_INVALID_HANDLE);
}

static CUresult event_begin(CUevent handle, struct standin_event **event)
{
    struct standin_context *context;

    return event_begin_in(&context, handle, event);
}

CUresult cuEventCreate(CUevent *handle, unsigned flags)
{
    struct standin_context *context;
    struct standin_event *event;
    CUresult result = standin_begin_in(&context);

    if (result) {
        return result;
    }
    if (!handle || flags & ~(unsigned)(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING)) {
        return standin_end(CUDA_ERROR_INVALID_VALUE); /* INTERPROCESS as well */
    }
    event = calloc(1, sizeof(*event));
    if (event) {
        event->handle = standin_handle_new(STANDIN_EVENT, event);
    }
    if (!event || !event->handle) {
        free(event);
        return standin_end(CUDA_ERROR_OUT_OF_MEMORY);
    }
    event->context = context;
    event->flags = flags;
    event->done = true;
    *handle = event->handle;
    return standin_end(CUDA_SUCCESS);
}

CUresult cuEventDestroy_v2(CUevent handle)
{
    struct standin_event *event;
    CUresult result = event_begin(handle, &event);

    if (result) {
        return result;
    }
    event_free(event);
    return standin_end(CUDA_SUCCESS);
}

CUresult cuEventRecord(CUevent handle, CUstream stream_handle)
{
    struct standin_context *context;
    struct standin_event *event;
    struct standin_stream *stream;
    struct standin_op op = {.kind = STANDIN_OP_RECORD, .record = handle};
    uint64_t seq;
    CUresult result = event_begin_in(&context, handle, &event);

    if (result) {
        return result;
    }
    stream = standin_stream_find(context, stream_handle);
    if (!stream || stream->context != event->context) {
        return standin_end(CUDA_ERROR_INVALID_HANDLE);
    }
    result = standin_stream_put(stream, &op, &seq);
    event = standin_handle_find(STANDIN_EVENT, handle); /* the stream may have been full */
    if (!result && event) {
        event->stream = stream->id;
        event->seq = seq;
        event->done = false;
    }
    return standin_end(result);
}

CUresult cuEventQuery(CUevent handle)
{
    struct standin_event *event;
    CUresult result = event_begin(handle, &event);

    return result ? result : standin_end(event->done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

CUresult cuEventSynchronize(CUevent handle)
{
    struct standin_event *event;
    CUresult result = event_begin(handle, &event);

    if (result) {
        return result;
    }
    while (event && !event->done && !event->context->error && !standin.ended) {
        pthread_cond_wait(&standin.done, &standin.lock);
        event = standin_handle_find(STANDIN_EVENT, handle);
    }
    if (!event) {
        result = CUDA_ERROR_INVALID_HANDLE;
    } else {
        result = event->done ? event->context->error : CUDA_ERROR_DEINITIALIZED;
    }
    return standin_end(result);
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    struct standin_event *first, *last;
    CUresult result = event_begin(start, &first);

    if (result) {
        return result;
    }
    last = standin_handle_find(STANDIN_EVENT, end);
    if (!milliseconds) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    if (!last || !first->seq || !last->seq ||
        (first->flags | last->flags) & CU_EVENT_DISABLE_TIMING) {
        return standin_end(CUDA_ERROR_INVALID_HANDLE);
    }
    if (!first->done || !last->done) {
        return standin_end(CUDA_ERROR_NOT_READY);
    }
    *milliseconds = (float)(last->at.tv_sec - first->at.tv_sec) * 1e3f +
                    (float)(last->at.tv_nsec - first->at.tv_nsec) / 1e6f;
    return standin_end(CUDA_SUCCESS);
}

CUresult cuStreamWaitEvent(CUstream stream_handle, CUevent handle, unsigned flags)
{
    struct standin_context *context;
    struct standin_event *event;
    struct standin_stream *stream;
    struct standin_op op = {.kind = STANDIN_OP_WAIT};
    CUresult result = event_begin_in(&context, handle, &event);

    if (result) {
        return result;
    }
    stream = standin_stream_find(context, stream_handle);
    if (!stream) {
        return standin_end(CUDA_ERROR_INVALID_HANDLE);
    }
    if (flags) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    op.wait.stream = event->stream;
    op.wait.seq = event->seq;
    return standin_end(standin_stream_put(stream, &op, NULL));
}
