/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declares the part of the CUDA driver API (libcuda.so.1) that hcasim uses, replaces or stands in
 * for: types, values and functions, as NVIDIA's public documentation of the driver API has them.
 * No header of CUDA is needed to build hcasim, and this header cannot be included beside cuda.h.
 *
 * The prototypes come from cuda_functions.def. A caller that finds a function with dlsym() declares
 * its pointer as typeof(cuMemAlloc_v2) *.
 */
#ifndef HCASIM_GUEST_LIB_CUDA_API_H
#define HCASIM_GUEST_LIB_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

/* The soname of the driver's library. */
#define CUDA_LIBRARY "libcuda.so.1"

typedef int CUdevice;
typedef unsigned long long CUdeviceptr; /* an address of the process */
typedef unsigned long long CUmemGenericAllocationHandle;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream; /* NULL: the default stream of the context */
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef void (*CUhostFn)(void *opaque);
typedef int CUjit_option;
typedef enum CUstreamCaptureMode {
    CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
    CU_STREAM_CAPTURE_MODE_RELAXED = 2,
} CUstreamCaptureMode;
typedef struct CUuuid_st {
    char bytes[16];
} CUuuid;

typedef enum CUresult {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_DEINITIALIZED = 4,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_MAP_FAILED = 205,
    CUDA_ERROR_UNMAP_FAILED = 206,
    CUDA_ERROR_ALREADY_MAPPED = 208,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_NOT_MAPPED = 211,
    CUDA_ERROR_INVALID_PTX = 218,
    CUDA_ERROR_OPERATING_SYSTEM = 304,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_ILLEGAL_STATE = 401,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_ERROR_LAUNCH_TIMEOUT = 702,
    CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE = 708,
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
    CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
    CUDA_ERROR_MISALIGNED_ADDRESS = 716,
    CUDA_ERROR_LAUNCH_FAILED = 719, /* a kernel trapped: every later call of the context fails */
    CUDA_ERROR_NOT_PERMITTED = 800,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_UNKNOWN = 999,
} CUresult;

typedef enum CUdriverProcAddressQueryResult {
    CU_GET_PROC_ADDRESS_SUCCESS = 0,
    CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
    CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2,
} CUdriverProcAddressQueryResult;

/* Flags of cuGetProcAddress(). */
enum {
    CU_GET_PROC_ADDRESS_DEFAULT = 0,
    CU_GET_PROC_ADDRESS_LEGACY_STREAM = 1,
    CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM = 2,
};

typedef enum CUdevice_attribute {
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X = 2,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y = 3,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z = 4,
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = 5,
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y = 6,
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z = 7,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
    CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
    CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
    CU_DEVICE_ATTRIBUTE_GPU_OVERLAP = 15,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_INTEGRATED = 18,
    CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY = 19,
    CU_DEVICE_ATTRIBUTE_COMPUTE_MODE = 20,
    CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS = 31,
    CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33,
    CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = 34,
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
    CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT = 40,
    CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
    CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID = 50,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED = 78,
    CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY = 83,
    CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED = 86,
    CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS = 88,
    CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS = 89,
    CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM = 91,
    CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES = 98,
    CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED = 99,
    CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES = 100,
    CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
    CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103,
    CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED = 110,
    CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,
    CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED = 116,
    CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS = 117,
    CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING = 118,
    CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS = 122,
    CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED = 124,
    CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED = 128,
    CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED = 132,
} CUdevice_attribute;

enum {
    /* CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING */
    CU_GPU_DIRECT_RDMA_WRITES_ORDERING_NONE = 0,
    CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER = 100,
    CU_GPU_DIRECT_RDMA_WRITES_ORDERING_ALL_DEVICES = 200,
};

/* -- contexts ---------------------------------------------------------------------------------- */

enum {
    CU_CTX_SCHED_MASK = 0x07,
    CU_CTX_MAP_HOST = 0x08,
    CU_CTX_LMEM_RESIZE_TO_MAX = 0x10,
    CU_CTX_SYNC_MEMOPS = 0x80,
    CU_CTX_FLAGS_MASK = 0xff,
};

/* -- memory ------------------------------------------------------------------------------------ */

typedef enum CUmemorytype {
    CU_MEMORYTYPE_HOST = 1,
    CU_MEMORYTYPE_DEVICE = 2,
    CU_MEMORYTYPE_ARRAY = 3,
    CU_MEMORYTYPE_UNIFIED = 4,
} CUmemorytype;

/* In brackets: the type of the value. */
typedef enum CUpointer_attribute {
    CU_POINTER_ATTRIBUTE_CONTEXT = 1,        /* CUcontext; NULL: memory of cuMemCreate() */
    CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,    /* CUmemorytype; managed memory is DEVICE */
    CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3, /* CUdeviceptr */
    CU_POINTER_ATTRIBUTE_HOST_POINTER = 4,   /* void *; an error if the host cannot access it */
    CU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6,    /* unsigned */
    CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,      /* unsigned long long */
    CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,     /* unsigned */
    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9, /* int */
    CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE = 10, /* int */
    CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,           /* void * */
    CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,                 /* size_t */
    CU_POINTER_ATTRIBUTE_MAPPED = 13,                     /* int */
    CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES = 14,       /* unsigned long long */
    CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE = 15, /* int */
    CU_POINTER_ATTRIBUTE_ACCESS_FLAGS = 16,               /* unsigned: 1 read, 3 also write */
    CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE = 17,             /* a pointer */
    CU_POINTER_ATTRIBUTE_MAPPING_SIZE = 18,               /* size_t */
    CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR = 19,          /* void * */
    CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID = 20,            /* unsigned long long */
} CUpointer_attribute;

enum {
    /* cuMemAllocManaged() */
    CU_MEM_ATTACH_GLOBAL = 1,
    CU_MEM_ATTACH_HOST = 2,
    CU_MEM_ATTACH_SINGLE = 4,
    /* cuMemHostAlloc() */
    CU_MEMHOSTALLOC_PORTABLE = 1,
    CU_MEMHOSTALLOC_DEVICEMAP = 2,
    CU_MEMHOSTALLOC_WRITECOMBINED = 4,
    /* cuMemHostRegister() */
    CU_MEMHOSTREGISTER_PORTABLE = 1,
    CU_MEMHOSTREGISTER_DEVICEMAP = 2,
    CU_MEMHOSTREGISTER_IOMEMORY = 4, /* a BAR of another device, not memory */
    CU_MEMHOSTREGISTER_READ_ONLY = 8,
};

typedef enum CUmemRangeHandleType {
    CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD = 1, /* the handle is an int */
} CUmemRangeHandleType;

/* -- virtual memory management ----------------------------------------------------------------- */

typedef enum CUmemAllocationType {
    CU_MEM_ALLOCATION_TYPE_PINNED = 1,
} CUmemAllocationType;

typedef enum CUmemAllocationHandleType {
    CU_MEM_HANDLE_TYPE_NONE = 0,
    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1,
    CU_MEM_HANDLE_TYPE_FABRIC = 8,
} CUmemAllocationHandleType;

typedef enum CUmemLocationType {
    CU_MEM_LOCATION_TYPE_DEVICE = 1,
    CU_MEM_LOCATION_TYPE_HOST = 2,
    CU_MEM_LOCATION_TYPE_HOST_NUMA = 3,
} CUmemLocationType;

typedef enum CUmemAccess_flags {
    CU_MEM_ACCESS_FLAGS_PROT_NONE = 0,
    CU_MEM_ACCESS_FLAGS_PROT_READ = 1,
    CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
} CUmemAccess_flags;

typedef enum CUmemAllocationGranularity_flags {
    CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
    CU_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1,
} CUmemAllocationGranularity_flags;

typedef struct CUmemLocation {
    CUmemLocationType type;
    int id; /* the number of the device */
} CUmemLocation;

typedef struct CUmemAllocationProp {
    CUmemAllocationType type;
    CUmemAllocationHandleType requestedHandleTypes; /* bits */
    CUmemLocation location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType;
        unsigned char gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
} CUmemAllocationProp;

typedef struct CUmemAccessDesc {
    CUmemLocation location;
    CUmemAccess_flags flags;
} CUmemAccessDesc;

/* -- streams ----------------------------------------------------------------------------------- */

/* The default streams, by value in place of a CUstream. */
#define CU_STREAM_LEGACY     ((CUstream)1)
#define CU_STREAM_PER_THREAD ((CUstream)2)

enum {
    CU_STREAM_DEFAULT = 0,
    CU_STREAM_NON_BLOCKING = 1, /* does not wait for the default stream, nor that one for it */
    CU_STREAM_WRITE_VALUE_DEFAULT = 0,
    CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER = 1,
    CU_EVENT_DEFAULT = 0,
    CU_EVENT_BLOCKING_SYNC = 1,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_EVENT_INTERPROCESS = 4,
};

typedef enum CUstreamCaptureStatus {
    CU_STREAM_CAPTURE_STATUS_NONE = 0,
    CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
    CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2,
} CUstreamCaptureStatus;

/* -- functions --------------------------------------------------------------------------------- */

#define CUDA_EXPORT                                __attribute__((visibility("default")))

#define CUDA_FUNCTION(symbol, name, version, args) CUDA_EXPORT CUresult symbol args;
#include "guest-lib/cuda/cuda_functions.def"
#undef CUDA_FUNCTION

/* -- what hcasim adds -------------------------------------------------------------------------- */

/* Exported by the front and by the stand-in. 0: the descriptor (or one with the same device and
 * inode) was exported by cuMemGetHandleForAddressRange() for *len bytes at *addr. -1: it was
 * not. */
CUDA_EXPORT int hcasim_cuda_dmabuf(int fd, unsigned long long *addr, size_t *len);

/* The kernel of guest-lib/host/gpu_atomic.c that does an atomic operation on a word of the GPU: its
 * name. Its one parameter is the address of a struct cuda_atomic in pinned memory. */
#define CUDA_ATOMIC_KERNEL "hcasim_atomic"

enum cuda_atomic_kind {
    CUDA_ATOMIC_ADD = 0,      /* operand is added to the word */
    CUDA_ATOMIC_CMP_SWAP = 1, /* if the word equals compare, it becomes operand */
    /* as CMP_SWAP, but compares the bits of compare_mask and swaps those of swap_mask */
    CUDA_ATOMIC_MASKED_CMP_SWAP = 2,
    /* operand is added within fields; a 1 in compare marks the top bit of a field */
    CUDA_ATOMIC_FIELD_ADD = 3,
};

enum cuda_atomic_verdict {
    CUDA_ATOMIC_DONE = 1,
    CUDA_ATOMIC_GIVEN_UP = 2, /* the kernel found that it was cancelled, and did nothing */
};

/* The kernel sets started, and then reads cancelled. If it is 0, the kernel does the operation,
 * stores the result, and then the verdict. */
struct cuda_atomic {
    uint64_t word; /* address, aligned to len */
    uint64_t operand, compare;
    uint64_t result; /* out: what the word held before */
    uint32_t kind;   /* enum cuda_atomic_kind */
    uint32_t len;    /* 4 or 8 bytes */
    uint32_t started, cancelled;
    uint32_t verdict; /* out: enum cuda_atomic_verdict; 0: not yet */
    uint32_t reserved;
    uint64_t swap_mask, compare_mask;
};

#endif
