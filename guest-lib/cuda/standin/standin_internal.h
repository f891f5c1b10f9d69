/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the stand-in GPU share: state.c has the lock, the handles and the entry of each
 * call, device.c the device, context.c contexts, memory.c and vmm.c memory, pointer.c what is told
 * of an address, stream.c streams and the thread that works on them, event.c events, copy.c copies,
 * kernel.c modules and the one kernel.
 *
 * One lock is around everything but the bytes of a copy and the functions that a program puts into
 * a stream.
 */
#ifndef HCASIM_GUEST_LIB_CUDA_STANDIN_INTERNAL_H
#define HCASIM_GUEST_LIB_CUDA_STANDIN_INTERNAL_H

#include <pthread.h>
#include "guest-lib/cuda/standin/standin.h"

#define STANDIN_DRIVER_VERSION 13000             /* CUDA 13.0 */
#define STANDIN_TOTAL          (16ull << 30)     /* bytes of memory */
#define STANDIN_PAGE           4096u             /* alignment of dma-bufs */
#define STANDIN_GRANULARITY    ((size_t)2 << 20) /* of cuMemCreate() */

/* -- state.c ----------------------------------------------------------------------------------- */

struct standin_context;
struct standin_stream;

struct standin_state {
    pthread_mutex_t lock;
    pthread_cond_t work; /* something was put into a stream, or may start now */
    pthread_cond_t done; /* something was done */
    bool initialised;
    bool ended; /* the process exits, or unloads the library */
    /* set by tests */
    uint64_t delay_ns;
    unsigned held;    /* enum standin_work */
    unsigned failing; /* likewise: the next of these fails with */
    CUresult failure;
    struct standin_counts counts;
};

extern struct standin_state standin;

/* Begin a call: take the lock, or return an error without it. The first is for calls that need no
 * context. */
CUresult standin_begin(void);
CUresult standin_begin_in(struct standin_context **context);
/* Ends a call that has begun. Returns result. */
CUresult standin_end(CUresult result);
/* Whether this is a child of the process that called cuInit(). */
bool standin_in_child(void);
/* Calls from the thread that works are refused. */
extern __thread bool standin_is_worker;

enum standin_kind {
    STANDIN_CONTEXT,
    STANDIN_STREAM,
    STANDIN_EVENT,
    STANDIN_MODULE,
    STANDIN_FUNCTION,
    STANDIN_ALLOCATION,
    STANDIN_KINDS,
};

/* Handles are numbers in the form of a pointer, which are not used again soon. So a call with a
 * handle of something that was destroyed fails. NULL: there are too many of this kind. */
void *standin_handle_new(enum standin_kind kind, void *object);
/* NULL: it is no handle of this kind. */
void *standin_handle_find(enum standin_kind kind, const void *handle);
void standin_handle_end(enum standin_kind kind, const void *handle);
/* The objects of a kind, one after the other: *at is 0 at the start. NULL: no more. */
void *standin_handle_next(enum standin_kind kind, unsigned *at);

/* -- context.c --------------------------------------------------------------------------------- */

struct standin_context {
    CUcontext handle;
    unsigned long long id;
    unsigned flags;
    bool primary;
    bool stopping;  /* a thread ends it */
    bool alive;     /* only the primary context exists while it is not */
    CUresult error; /* stays: all later calls return it */
    struct standin_stream *main;
};

/* The current context of the calling thread, and the error with which calls fail in it. */
CUresult standin_context_current(struct standin_context **context);
/* Whether a device is the one that there is. */
bool standin_is_device(CUdevice device);

/* -- memory.c ---------------------------------------------------------------------------------- */

/* Bytes that are mapped for the host. They outlive their addresses until the last user has gone. */
struct standin_block {
    uint8_t *at;
    size_t len;
    bool ours; /* at is a mapping of this library */
    unsigned refs;
};

struct standin_block *standin_block_new(size_t len);
void standin_block_drop(struct standin_block *block);

enum standin_memory {
    STANDIN_DEVICE,     /* cuMemAlloc() */
    STANDIN_MAPPED,     /* cuMemMap() */
    STANDIN_MANAGED,    /* cuMemAllocManaged() */
    STANDIN_PINNED,     /* cuMemHostAlloc() */
    STANDIN_REGISTERED, /* cuMemHostRegister() */
};

/* The kind of memory at a range of addresses. */
struct standin_range {
    CUdeviceptr addr;
    size_t len;
    enum standin_memory memory;
    struct standin_block *block;
    struct standin_context *context; /* NULL: of no context (cuMemMap()) */
    unsigned flags;
    unsigned access; /* CUmemAccess_flags of the device */
    unsigned long long id;
    bool sync_memops;
    CUmemGenericAllocationHandle allocation;
};

/* Ranges that do not overlap, by address. */
struct standin_map {
    struct standin_range **ranges;
    size_t count, room;
};

extern struct standin_map standin_memory;

/* The range that an address is in, or NULL. */
struct standin_range *standin_map_find(const struct standin_map *map, CUdeviceptr addr);
/* The first range that overlaps these addresses, or NULL. */
struct standin_range *standin_map_overlap(const struct standin_map *map, CUdeviceptr addr,
                                          size_t len);
/* Takes a copy of the range. False: there are too many. */
bool standin_map_add(struct standin_map *map, const struct standin_range *range);
void standin_map_remove(struct standin_map *map, struct standin_range *range);

/* Addresses without access. 0: there are none. The wish may be 0. */
CUdeviceptr standin_addresses_take(size_t len, size_t alignment, CUdeviceptr wish);
void standin_addresses_give(CUdeviceptr addr, size_t len);

/* A number that no memory had before. */
unsigned long long standin_memory_id(void);
/* Whether the device may access all of these addresses in this way (CUmemAccess_flags). */
bool standin_may_access(CUdeviceptr addr, size_t len, unsigned access);
/* Whether it is memory of the host; whether the CPU reaches it, as it does managed memory. */
bool standin_is_of_host(const struct standin_range *range);
bool standin_is_reached(const struct standin_range *range);
/* Whether the process has mappings at all of these addresses. */
bool standin_is_mapped(CUdeviceptr addr, size_t len);
/* Frees what a context has. */
void standin_memory_end(const struct standin_context *context);
size_t standin_round_up(size_t len, size_t unit);

/* The block at an address, and how many of *len bytes are contiguous in it from *at on. The caller
 * drops it (standin_block_drop()). NULL: no device memory that allows the access. */
struct standin_block *standin_memory_at(CUdeviceptr addr, unsigned access, uint8_t **at,
                                        size_t *len);

/* -- stream.c ---------------------------------------------------------------------------------- */

enum standin_op_kind {
    STANDIN_OP_COPY,
    STANDIN_OP_FILL,
    STANDIN_OP_KERNEL,
    STANDIN_OP_CALL,
    STANDIN_OP_RECORD,
    STANDIN_OP_WAIT,
};

struct standin_kernel;

#define STANDIN_ARGUMENT 8 /* bytes of a kernel's argument */

/* A thing to do in a stream. */
struct standin_op {
    enum standin_op_kind kind;
    struct standin_op *next;
    uint64_t seq;    /* grows over all streams */
    uint64_t due_ns; /* 0: not known yet */
    union {
        struct {
            CUdeviceptr to, from;
            size_t len;
            bool host_to, host_from; /* this side is pageable memory */
        } copy;
        struct {
            CUdeviceptr to;
            uint64_t value;
            size_t size, count; /* bytes of a value, number of values */
        } fill;
        struct {
            const struct standin_kernel *kernel;
            uint8_t argument[STANDIN_ARGUMENT];
        } launch;
        struct {
            CUhostFn function;
            void *opaque;
        } call;
        CUevent record;
        struct {
            unsigned long long stream; /* its number */
            uint64_t seq;
        } wait;
    };
};

struct standin_stream {
    struct standin_stream *next; /* in the list of all */
    CUstream handle;             /* NULL: the default stream of its context */
    struct standin_context *context;
    unsigned long long id;
    unsigned flags;
    int priority;
    struct standin_op *first, **last;
    unsigned count;
    uint64_t put, done; /* seq of the last that was put in, and of the last that was done */
    bool running;
    unsigned refs; /* 1 until it is destroyed, and one for each thread that waits */
};

struct standin_stream *standin_stream_new(struct standin_context *context, unsigned flags,
                                          int priority);
/* Finds a stream for a call in a context. NULL: the handle is wrong. */
struct standin_stream *standin_stream_find(struct standin_context *context, CUstream handle);
/* Puts a copy of *op into a stream, and waits if it is full. *seq, unless NULL: the number that it
 * got. */
CUresult standin_stream_put(struct standin_stream *stream, const struct standin_op *op,
                            uint64_t *seq);
/* Waits until the stream has done what has this number. */
CUresult standin_stream_wait(struct standin_stream *stream, uint64_t seq);
/* Waits until all streams of a context are empty. */
CUresult standin_stream_drain(struct standin_context *context);
/* Whether a stream has done what has this number. */
bool standin_stream_did(unsigned long long id, uint64_t seq);
/* Ends all streams of a context, and drops what is in them. */
void standin_stream_end_all(struct standin_context *context);
/* Ends the thread that works. With the lock held. */
void standin_worker_stop(void);

/* -- event.c ----------------------------------------------------------------------------------- */

/* The op RECORD with this number was done. */
void standin_event_done(CUevent handle, uint64_t seq);
void standin_event_end_all(const struct standin_context *context);

/* -- copy.c: with the lock held, which they give up meanwhile. False: an address faulted. --------
 */

bool standin_copy_run(const struct standin_op *op);
bool standin_fill_run(const struct standin_op *op);

/* -- kernel.c ---------------------------------------------------------------------------------- */

bool standin_kernel_run(const struct standin_op *op);
void standin_module_end_all(const struct standin_context *context);

#endif
