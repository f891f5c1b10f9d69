/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Streams of the stand-in GPU, and the thread that works on them.
 *
 * A stream is a queue of things to do. One thread takes the first thing of a stream that may go on,
 * and of several streams any: programs must not rely on an order between them. It does copies
 * without the lock.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include "guest-lib/cuda/standin/standin_internal.h"

#define ROOM 1024u /* things in a stream; who puts in more waits */

static struct standin_stream *streams;
static unsigned long long last_id;
static uint64_t last_seq;

static pthread_t worker;
static bool working; /* the thread exists */
static bool calling; /* it is in a function of the program's */

static uint64_t stream_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* -- which stream may go on -------------------------------------------------------------------- */

/* Whether the default stream and another stream of its context wait for each other. */
static bool stream_is_blocking(const struct standin_stream *stream)
{
    return !(stream->flags & CU_STREAM_NON_BLOCKING);
}

static bool stream_is_behind(const struct standin_stream *stream)
{
    const struct standin_stream *main = stream->context->main;
    uint64_t seq = stream->first->seq;

    if (stream != main) {
        return stream_is_blocking(stream) && main->first && main->first->seq < seq;
    }
    for (const struct standin_stream *other = streams; other; other = other->next) {
        if (other != main && other->context == main->context && stream_is_blocking(other) &&
            other->first && other->first->seq < seq) {
            return true;
        }
    }
    return false;
}

/* The kind of work that it is (enum standin_work); 0: none. */
static unsigned stream_work_of(const struct standin_op *op)
{
    switch (op->kind) {
    case STANDIN_OP_COPY:
    case STANDIN_OP_FILL:
        return STANDIN_COPIES;
    case STANDIN_OP_KERNEL:
        return STANDIN_KERNELS;
    default:
        return 0;
    }
}

bool standin_stream_did(unsigned long long id, uint64_t seq)
{
    for (const struct standin_stream *stream = streams; stream; stream = stream->next) {
        if (stream->id == id) {
            return stream->done >= seq;
        }
    }
    return true; /* it has ended */
}

/* Whether the first thing of a stream may be done now. *due_ns: the earliest time of all that only
 * have to wait for a time. */
static bool stream_may_go(struct standin_stream *stream, uint64_t now, uint64_t *due_ns)
{
    struct standin_op *op = stream->first;

    if (!op || stream->running) {
        return false;
    }
    if (stream->context->error) {
        return true; /* to be dropped */
    }
    if (stream_is_behind(stream) || stream_work_of(op) & standin.held ||
        (op->kind == STANDIN_OP_WAIT && !standin_stream_did(op->wait.stream, op->wait.seq))) {
        return false;
    }
    if (!op->due_ns) {
        op->due_ns = now + (op->kind == STANDIN_OP_COPY ? standin.delay_ns : 0);
    }
    if (op->due_ns > now) {
        *due_ns = op->due_ns < *due_ns ? op->due_ns : *due_ns;
        return false;
    }
    return true;
}

/* Any of those that may go on. */
static struct standin_stream *stream_choose(uint64_t *due_ns)
{
    static uint32_t random = 1;
    struct standin_stream *chosen = NULL;
    uint64_t now = stream_now_ns();
    unsigned ready = 0;

    *due_ns = UINT64_MAX;
    for (struct standin_stream *stream = streams; stream; stream = stream->next) {
        if (stream_may_go(stream, now, due_ns)) {
            random = random * 1664525u + 1013904223u;
            ready++;
            if ((random >> 16) % ready == 0) {
                chosen = stream;
            }
        }
    }
    return chosen;
}

/* -- the thread that works --------------------------------------------------------------------- */

static void stream_call(const struct standin_op *op)
{
    calling = true;
    pthread_mutex_unlock(&standin.lock);
    op->call.function(op->call.opaque);
    pthread_mutex_lock(&standin.lock);
    calling = false;
}

/* False: the device failed. */
static bool stream_run(const struct standin_op *op)
{
    switch (op->kind) {
    case STANDIN_OP_COPY:
        standin.counts.copies++;
        return standin_copy_run(op);
    case STANDIN_OP_FILL:
        return standin_fill_run(op);
    case STANDIN_OP_KERNEL:
        standin.counts.kernels++;
        return standin_kernel_run(op);
    case STANDIN_OP_CALL:
        stream_call(op);
        return true;
    case STANDIN_OP_RECORD:
    case STANDIN_OP_WAIT:
    default:
        return true;
    }
}

static void stream_free(struct standin_stream *stream)
{
    struct standin_stream **at = &streams;

    while (*at != stream) {
        at = &(*at)->next;
    }
    *at = stream->next;
    free(stream);
}

/* Frees a stream that was destroyed, when nothing is left in it and nobody waits for it. */
static void stream_drop(struct standin_stream *stream)
{
    if (!stream->refs && !stream->first) {
        stream_free(stream);
    }
}

/* Takes the first thing out of a stream. */
static void stream_finish(struct standin_stream *stream)
{
    struct standin_op *op = stream->first;

    stream->first = op->next;
    if (!stream->first) {
        stream->last = &stream->first;
    }
    stream->count--;
    stream->done = op->seq;
    if (op->kind == STANDIN_OP_RECORD) {
        standin_event_done(op->record, op->seq);
    }
    free(op);
    pthread_cond_broadcast(&standin.done);
}

static void stream_step(struct standin_stream *stream)
{
    struct standin_context *context = stream->context;
    const struct standin_op *op = stream->first;
    unsigned work = stream_work_of(op);

    if (!context->error && work & standin.failing) {
        context->error = standin.failure;
        standin.failing = 0;
    } else if (!context->error) {
        stream->running = true;
        if (!stream_run(op) && !context->error) {
            context->error = CUDA_ERROR_ILLEGAL_ADDRESS;
        }
        stream->running = false;
    }
    stream_finish(stream);
    stream_drop(stream);
}

static void *stream_work(void *unused)
{
    standin_is_worker = true;
    pthread_mutex_lock(&standin.lock);
    while (!standin.ended) {
        uint64_t due_ns;
        struct standin_stream *stream = stream_choose(&due_ns);

        if (stream) {
            stream_step(stream);
        } else if (due_ns == UINT64_MAX) {
            pthread_cond_wait(&standin.work, &standin.lock);
        } else {
            struct timespec due = {.tv_sec = (time_t)(due_ns / 1000000000u),
                                   .tv_nsec = (long)(due_ns % 1000000000u)};

            pthread_cond_timedwait(&standin.work, &standin.lock, &due);
        }
    }
    pthread_mutex_unlock(&standin.lock);
    return NULL;
}

/* The program's signals are not for this thread. */
static bool stream_start_worker(void)
{
    sigset_t all, before;

    if (!working) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        working = !pthread_create(&worker, NULL, stream_work, NULL);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    return working;
}

void standin_worker_stop(void)
{
    pthread_cond_signal(&standin.work);
    if (!working) {
        return;
    }
    working = false;
    if (calling) {
        pthread_detach(worker); /* the program's function may not return */
        return;
    }
    pthread_mutex_unlock(&standin.lock);
    pthread_join(worker, NULL);
    pthread_mutex_lock(&standin.lock);
}

/* -- streams ----------------------------------------------------------------------------------- */

struct standin_stream *standin_stream_new(struct standin_context *context, unsigned flags,
                                          int priority)
{
    struct standin_stream *stream = stream_start_worker() ? calloc(1, sizeof(*stream)) : NULL;

    if (!stream) {
        return NULL;
    }
    stream->context = context;
    stream->id = ++last_id;
    stream->flags = flags;
    stream->priority = priority;
    stream->last = &stream->first;
    stream->refs = 1;
    stream->next = streams;
    streams = stream;
    return stream;
}

struct standin_stream *standin_stream_find(struct standin_context *context, CUstream handle)
{
    if (!handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
        return context->main;
    }
    return standin_handle_find(STANDIN_STREAM, handle);
}

/* The error with which calls for a stream fail. */
static CUresult stream_error(const struct standin_stream *stream)
{
    if (standin.ended) {
        return CUDA_ERROR_DEINITIALIZED;
    }
    return stream->context ? stream->context->error : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

static void stream_unref(struct standin_stream *stream)
{
    stream->refs--;
    stream_drop(stream);
}

CUresult standin_stream_wait(struct standin_stream *stream, uint64_t seq)
{
    CUresult result;

    stream->refs++;
    while (!(result = stream_error(stream)) && stream->done < seq) {
        pthread_cond_wait(&standin.done, &standin.lock);
    }
    stream_unref(stream);
    return result;
}

CUresult standin_stream_put(struct standin_stream *stream, const struct standin_op *op,
                            uint64_t *seq)
{
    struct standin_op *copy = malloc(sizeof(*copy));
    CUresult result;

    if (!copy) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *copy = *op;
    stream->refs++;
    while (!(result = stream_error(stream)) && stream->count >= ROOM) {
        pthread_cond_wait(&standin.done, &standin.lock);
    }
    if (result) {
        free(copy);
    } else {
        copy->next = NULL;
        copy->seq = stream->put = ++last_seq;
        copy->due_ns = 0;
        *stream->last = copy;
        stream->last = &copy->next;
        stream->count++;
        if (seq) {
            *seq = copy->seq;
        }
        pthread_cond_signal(&standin.work);
    }
    stream_unref(stream);
    return result;
}

/* A stream of a context that has something to do that was put in before the limit. */
static struct standin_stream *stream_find_busy(const struct standin_context *context,
                                               uint64_t limit)
{
    for (struct standin_stream *stream = streams; stream; stream = stream->next) {
        if (stream->context == context && stream->first && stream->first->seq <= limit) {
            return stream;
        }
    }
    return NULL;
}

CUresult standin_stream_drain(struct standin_context *context)
{
    CUcontext handle = context->handle;
    uint64_t limit = last_seq;

    for (;;) {
        struct standin_stream *stream;

        if (standin.ended) {
            return CUDA_ERROR_DEINITIALIZED;
        }
        if (standin_handle_find(STANDIN_CONTEXT, handle) != context || !context->alive) {
            return CUDA_ERROR_CONTEXT_IS_DESTROYED;
        }
        stream = stream_find_busy(context, limit);
        if (context->error || !stream) {
            return context->error;
        }
        pthread_cond_wait(&standin.done, &standin.lock);
    }
}

/* The thread may be in one of them now. */
static struct standin_stream *stream_find_of(const struct standin_context *context)
{
    for (struct standin_stream *stream = streams; stream; stream = stream->next) {
        if (stream->context == context) {
            return stream;
        }
    }
    return NULL;
}

static void stream_end(struct standin_stream *stream)
{
    if (stream->handle) {
        standin_handle_end(STANDIN_STREAM, stream->handle);
        standin.counts.streams--;
    }
    stream->handle = NULL;
}

void standin_stream_end_all(struct standin_context *context)
{
    struct standin_stream *stream;

    while ((stream = stream_find_of(context))) {
        bool owned = stream->handle || stream == context->main;

        stream->refs++;
        while (stream->running) {
            pthread_cond_wait(&standin.done, &standin.lock);
        }
        while (stream->first) {
            stream_finish(stream);
        }
        stream->done = stream->put;
        stream->context = NULL;
        if (owned) {
            stream_end(stream);
            stream->refs--;
        }
        stream_unref(stream);
    }
    pthread_cond_broadcast(&standin.done);
}

/* -- calls ------------------------------------------------------------------------------------- */

/* Begins a call for a stream. */
static CUresult stream_begin(CUstream handle, struct standin_stream **stream)
{
    struct standin_context *context;
    CUresult result = standin_begin_in(&context);

    if (result) {
        return result;
    }
    *stream = standin_stream_find(context, handle);
    return *stream ? CUDA_SUCCESS : standin_end(CUDA_ERROR_INVALID_HANDLE);
}

CUresult cuStreamCreateWithPriority(CUstream *handle, unsigned flags, int priority)
{
    struct standin_context *context;
    struct standin_stream *stream;
    CUresult result = standin_begin_in(&context);

    if (result) {
        return result;
    }
    if (!handle || flags & ~(unsigned)CU_STREAM_NON_BLOCKING) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    priority = priority < -5 ? -5 : priority > 0 ? 0 : priority;
    stream = standin_stream_new(context, flags, priority);
    if (!stream) {
        return standin_end(CUDA_ERROR_OUT_OF_MEMORY);
    }
    stream->handle = standin_handle_new(STANDIN_STREAM, stream);
    if (!stream->handle) {
        stream_unref(stream);
        return standin_end(CUDA_ERROR_OUT_OF_MEMORY);
    }
    standin.counts.streams++;
    *handle = stream->handle;
    return standin_end(CUDA_SUCCESS);
}

CUresult cuStreamCreate(CUstream *handle, unsigned flags)
{
    return cuStreamCreateWithPriority(handle, flags, 0);
}

/* The work in the stream is still done. */
CUresult cuStreamDestroy_v2(CUstream handle)
{
    struct standin_stream *stream;
    CUresult result = stream_begin(handle, &stream);

    if (result) {
        return result;
    }
    if (!stream->handle) {
        return standin_end(CUDA_ERROR_INVALID_HANDLE); /* a default stream */
    }
    stream_end(stream);
    stream_unref(stream);
    return standin_end(CUDA_SUCCESS);
}

CUresult cuStreamQuery(CUstream handle)
{
    struct standin_stream *stream;
    CUresult result = stream_begin(handle, &stream);

    if (result) {
        return result;
    }
    result = stream_error(stream);
    if (!result && stream->first) {
        result = CUDA_ERROR_NOT_READY;
    }
    return standin_end(result);
}

CUresult cuStreamSynchronize(CUstream handle)
{
    struct standin_stream *stream;
    CUresult result = stream_begin(handle, &stream);

    return result ? result : standin_end(standin_stream_wait(stream, stream->put));
}

CUresult cuStreamGetPriority(CUstream handle, int *priority)
{
    struct standin_stream *stream;
    CUresult result = stream_begin(handle, &stream);

    if (result) {
        return result;
    }
    if (!priority) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    *priority = stream->priority;
    return standin_end(CUDA_SUCCESS);
}

CUresult cuStreamGetFlags(CUstream handle, unsigned *flags)
{
    struct standin_stream *stream;
    CUresult result = stream_begin(handle, &stream);

    if (result) {
        return result;
    }
    if (!flags) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    *flags = stream->flags;
    return standin_end(CUDA_SUCCESS);
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *context)
{
    struct standin_stream *stream;
    CUresult result = stream_begin(handle, &stream);

    if (result) {
        return result;
    }
    if (!context) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    *context = stream->context->handle;
    return standin_end(CUDA_SUCCESS);
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status)
{
    struct standin_stream *stream;
    CUresult result = stream_begin(handle, &stream);

    if (result) {
        return result;
    }
    if (!status) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    *status = CU_STREAM_CAPTURE_STATUS_NONE; /* there are no graphs */
    return standin_end(CUDA_SUCCESS);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    static __thread CUstreamCaptureMode current;
    CUstreamCaptureMode before = current;

    if (!mode || *mode < 0 || *mode > 2) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    current = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void *opaque)
{
    struct standin_stream *stream;
    CUresult result = stream_begin(handle, &stream);
    struct standin_op op = {.kind = STANDIN_OP_CALL,
                            .call = {.function = function, .opaque = opaque}};

    if (result) {
        return result;
    }
    return standin_end(function ? standin_stream_put(stream, &op, NULL) : CUDA_ERROR_INVALID_VALUE);
}
