/* SPDX-License-Identifier: BSD-2-Clause */
/* The stand-in GPU's one device: what is told of it, the names of errors, and the functions by
 * name. */
#include <stdio.h>
#include <string.h>
#include "guest-lib/cuda/standin/standin_internal.h"

#define DEVICE_NAME   "hcasim stand-in GPU (host memory, no kernels)"
#define DEVICE_BUS_ID "0000:fe:00.0" /* no such device is in /sys/bus/pci */
#define DEVICE_BUS    0xfe

bool standin_is_device(CUdevice device)
{
    return device == 0;
}

/* -- errors ------------------------------------------------------------------------------------ */

static const struct {
    CUresult error;
    const char *name, *text;
} device_errors[] = {
#define DEVICE_ERROR(error, text)                                                                  \
    {                                                                                              \
        error, #error, text                                                                        \
    }
    DEVICE_ERROR(CUDA_SUCCESS, "no error"),
    DEVICE_ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    DEVICE_ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    DEVICE_ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    DEVICE_ERROR(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
    DEVICE_ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    DEVICE_ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    DEVICE_ERROR(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    DEVICE_ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    DEVICE_ERROR(CUDA_ERROR_MAP_FAILED, "mapping failed"),
    DEVICE_ERROR(CUDA_ERROR_UNMAP_FAILED, "unmapping failed"),
    DEVICE_ERROR(CUDA_ERROR_ALREADY_MAPPED, "already mapped"),
    DEVICE_ERROR(CUDA_ERROR_NO_BINARY_FOR_GPU, "no binary for this GPU"),
    DEVICE_ERROR(CUDA_ERROR_NOT_MAPPED, "not mapped"),
    DEVICE_ERROR(CUDA_ERROR_INVALID_PTX, "invalid PTX"),
    DEVICE_ERROR(CUDA_ERROR_OPERATING_SYSTEM, "a call of the operating system failed"),
    DEVICE_ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    DEVICE_ERROR(CUDA_ERROR_ILLEGAL_STATE, "illegal state"),
    DEVICE_ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    DEVICE_ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
    DEVICE_ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    DEVICE_ERROR(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    DEVICE_ERROR(CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
    DEVICE_ERROR(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "the primary context is active"),
    DEVICE_ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    DEVICE_ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "memory is already registered"),
    DEVICE_ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "memory is not registered"),
    DEVICE_ERROR(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"),
    DEVICE_ERROR(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    DEVICE_ERROR(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
    DEVICE_ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    DEVICE_ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
#undef DEVICE_ERROR
};

#define COUNT(array) (sizeof(array) / sizeof(array[0]))

static CUresult device_find_error(CUresult error, const char **name, const char **text)
{
    for (size_t i = 0; i < COUNT(device_errors); i++) {
        if (device_errors[i].error == error) {
            *name = device_errors[i].name;
            *text = device_errors[i].text;
            return CUDA_SUCCESS;
        }
    }
    *name = *text = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
    const char *text;

    return name ? device_find_error(error, name, &text) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    const char *name;

    return text ? device_find_error(error, &name, text) : CUDA_ERROR_INVALID_VALUE;
}

/* -- functions by name ------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int version;
    void *function;
} device_functions[] = {
#define CUDA_FUNCTION(symbol, name, version, args) {#name, version, (void *)symbol},
#include "guest-lib/cuda/cuda_functions.def"
#undef CUDA_FUNCTION
};

/* A function that is not found is no error of this call: the driver answers NULL and says why in
 * *found, which may be NULL. The CUDA runtime ends with an error if the call fails. */
CUresult cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags,
                             CUdriverProcAddressQueryResult *found)
{
    CUdriverProcAddressQueryResult how = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    int newest = 0;

    if (!name || !function ||
        flags & ~(uint64_t)(CU_GET_PROC_ADDRESS_LEGACY_STREAM |
                            CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *function = NULL;
    for (size_t i = 0; i < COUNT(device_functions); i++) {
        if (strcmp(device_functions[i].name, name)) {
            continue;
        }
        if (device_functions[i].version > version) {
            how = *function ? how : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        } else if (device_functions[i].version > newest) {
            newest = device_functions[i].version;
            *function = device_functions[i].function;
            how = CU_GET_PROC_ADDRESS_SUCCESS;
        }
    }
    if (found) {
        *found = how;
    }
    return CUDA_SUCCESS;
}

/* Fails if the function is not found, and leaves *function as it is, as the driver does. */
CUresult cuGetProcAddress(const char *name, void **function, int version, uint64_t flags)
{
    void *found = NULL;
    CUresult result = cuGetProcAddress_v2(name, function ? &found : NULL, version, flags, NULL);

    if (result == CUDA_SUCCESS && !found) {
        return CUDA_ERROR_NOT_FOUND;
    }
    if (result == CUDA_SUCCESS) {
        *function = found;
    }
    return result;
}

/* -- the device -------------------------------------------------------------------------------- */

/* An attribute that is not in this table is 0: not supported. */
static const struct {
    CUdevice_attribute attribute;
    int value;
} device_attributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7fffffff},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000}, /* kHz */
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, DEVICE_BUS},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 1},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING,
     CU_GPU_DIRECT_RDMA_WRITES_ORDERING_ALL_DEVICES},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1},
    {CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 1},
};

CUresult cuDriverGetVersion(int *version)
{
    if (!version) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *version = STANDIN_DRIVER_VERSION;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    CUresult result = standin_begin();

    if (result) {
        return result;
    }
    if (!device) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    if (!standin_is_device(ordinal)) {
        return standin_end(CUDA_ERROR_INVALID_DEVICE);
    }
    *device = ordinal;
    return standin_end(CUDA_SUCCESS);
}

/* Begins a call that tells something of a device. */
static CUresult device_begin(const void *out, CUdevice device)
{
    CUresult result = standin_begin();

    if (result) {
        return result;
    }
    if (!standin_is_device(device)) {
        return standin_end(CUDA_ERROR_INVALID_DEVICE);
    }
    return out ? CUDA_SUCCESS : standin_end(CUDA_ERROR_INVALID_VALUE);
}

static CUresult device_tell_text(char *out, int len, CUdevice device, const char *text)
{
    CUresult result = device_begin(out, device);

    if (result) {
        return result;
    }
    if (len <= 0) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    snprintf(out, (size_t)len, "%s", text);
    return standin_end(CUDA_SUCCESS);
}

CUresult cuDeviceGetCount(int *count)
{
    CUresult result = device_begin(count, 0);

    if (result) {
        return result;
    }
    *count = 1;
    return standin_end(CUDA_SUCCESS);
}

CUresult cuDeviceGetName(char *name, int len, CUdevice device)
{
    return device_tell_text(name, len, device, DEVICE_NAME);
}

CUresult cuDeviceGetPCIBusId(char *bus_id, int len, CUdevice device)
{
    return device_tell_text(bus_id, len, device, DEVICE_BUS_ID);
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *bus_id)
{
    CUresult result = device_begin(device, 0);

    if (result) {
        return result;
    }
    if (!bus_id || strcasecmp(bus_id, DEVICE_BUS_ID)) {
        return standin_end(CUDA_ERROR_INVALID_DEVICE);
    }
    *device = 0;
    return standin_end(CUDA_SUCCESS);
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    static const CUuuid ours = {"hcasim stand-in"};
    CUresult result = device_begin(uuid, device);

    if (result) {
        return result;
    }
    *uuid = ours;
    return standin_end(CUDA_SUCCESS);
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    return cuDeviceGetUuid(uuid, device);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    CUresult result = device_begin(bytes, device);

    if (result) {
        return result;
    }
    *bytes = STANDIN_TOTAL;
    return standin_end(CUDA_SUCCESS);
}

static int device_attribute(CUdevice_attribute attribute)
{
    for (size_t i = 0; i < COUNT(device_attributes); i++) {
        if (device_attributes[i].attribute == attribute) {
            return device_attributes[i].value;
        }
    }
    return 0;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    CUresult result = device_begin(value, device);

    if (result) {
        return result;
    }
    if ((int)attribute <= 0) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    *value = device_attribute(attribute);
    return standin_end(CUDA_SUCCESS);
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    CUresult result = device_begin(major, device);

    if (result) {
        return result;
    }
    if (!minor) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    *major = device_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    *minor = device_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    return standin_end(CUDA_SUCCESS);
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    CUresult result = device_begin(can, device);

    if (result) {
        return result;
    }
    if (!standin_is_device(peer)) {
        return standin_end(CUDA_ERROR_INVALID_DEVICE);
    }
    *can = 0; /* a device is no peer of its own */
    return standin_end(CUDA_SUCCESS);
}
