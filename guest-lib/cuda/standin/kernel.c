/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Modules and kernels of the stand-in GPU. Any module can be loaded. The functions of a module in
 * PTX are those of its text; a module in another form is taken to have every function. The only
 * kernel that runs is hcasim's own (guest-lib/host/gpu_atomic.c).
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "guest-lib/cuda/standin/standin_internal.h"

#define TEXT ((size_t)4 << 20) /* bytes of PTX that are looked at */
#define NAME 256               /* bytes of a function's name */

struct standin_module {
    CUmodule handle;
    struct standin_context *context;
    char *text; /* NULL: it is not PTX */
};

/* A kernel that this library has. */
struct standin_kernel {
    const char *name;
    size_t len; /* bytes of its one argument */
    bool (*run)(const void *argument);
};

struct standin_function {
    CUfunction handle;
    CUmodule module;
    const struct standin_kernel *kernel; /* NULL: it cannot run */
    char name[NAME];
};

/* -- the kernel of atomic operations ----------------------------------------------------------- */

/* Where a kernel reaches a word. NULL: it faults. */
static void *kernel_reach(CUdeviceptr addr, size_t len)
{
    uint8_t *at;
    size_t got = len;
    struct standin_block *block;

    if (addr % sizeof(uint32_t)) {
        return NULL;
    }
    block = standin_memory_at(addr, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, &at, &got);
    if (!block) {
        return NULL;
    }
    standin_block_drop(block); /* the lock is held as long as the kernel runs */
    return got == len ? at : NULL;
}

/* Returns the word that an operation stores in place of held. compare: the order's, cut to the
 * length of the word. */
static uint64_t kernel_make(const struct cuda_atomic *order, uint64_t compare, uint64_t held)
{
    switch (order->kind) {
    case CUDA_ATOMIC_ADD:
        return held + order->operand;
    case CUDA_ATOMIC_CMP_SWAP:
        return held == compare ? order->operand : held;
    case CUDA_ATOMIC_MASKED_CMP_SWAP:
        return (held ^ compare) & order->compare_mask
                   ? held
                   : (held & ~order->swap_mask) | (order->operand & order->swap_mask);
    case CUDA_ATOMIC_FIELD_ADD:
    default:
        return ((held & ~compare) + (order->operand & ~compare)) ^
               ((held ^ order->operand) & compare);
    }
}

static uint64_t kernel_do_word32(uint32_t *word, const struct cuda_atomic *order)
{
    uint32_t held = __atomic_load_n(word, __ATOMIC_SEQ_CST), compare = (uint32_t)order->compare;

    while (!__atomic_compare_exchange_n(word, &held, (uint32_t)kernel_make(order, compare, held),
                                        false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
    return held;
}

static uint64_t kernel_do_word64(uint64_t *word, const struct cuda_atomic *order)
{
    uint64_t held = __atomic_load_n(word, __ATOMIC_SEQ_CST);

    while (!__atomic_compare_exchange_n(word, &held, kernel_make(order, order->compare, held),
                                        false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
    return held;
}

/* As the kernel of gpu_atomic.c: it says that it has started, and then looks whether the host has
 * given it up. */
static bool kernel_atomic(const void *argument)
{
    CUdeviceptr addr;
    struct cuda_atomic *order;
    void *word;

    memcpy(&addr, argument, sizeof(addr));
    order = kernel_reach(addr, sizeof(*order));
    if (!order) {
        return false;
    }
    __atomic_store_n(&order->started, 1, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (__atomic_load_n(&order->cancelled, __ATOMIC_SEQ_CST)) {
        __atomic_store_n(&order->verdict, CUDA_ATOMIC_GIVEN_UP, __ATOMIC_RELEASE);
        return true;
    }
    word = kernel_reach(order->word, order->len);
    if (!word) {
        return false;
    }
    order->result = order->len == sizeof(uint32_t) ? kernel_do_word32(word, order)
                                                   : kernel_do_word64(word, order);
    __atomic_store_n(&order->verdict, CUDA_ATOMIC_DONE, __ATOMIC_RELEASE);
    return true;
}

static const struct standin_kernel kernels[] = {
    {CUDA_ATOMIC_KERNEL, sizeof(uint64_t), kernel_atomic},
};

bool standin_kernel_run(const struct standin_op *op)
{
    return op->launch.kernel->run(op->launch.argument);
}

/* -- modules ----------------------------------------------------------------------------------- */

/* PTX is text whose first directive is .version, after spaces and comments. */
static bool kernel_is_ptx(const char *image)
{
    size_t len = strnlen(image, TEXT);

    for (size_t i = 0; i < len; i++) {
        if (!isprint((unsigned char)image[i]) && !isspace((unsigned char)image[i])) {
            return false;
        }
    }
    return len < TEXT && strstr(image, ".version") != NULL;
}

static void kernel_free_module(struct standin_module *module)
{
    struct standin_function *function;
    unsigned at = 0;

    while ((function = standin_handle_next(STANDIN_FUNCTION, &at))) {
        if (function->module == module->handle) {
            standin_handle_end(STANDIN_FUNCTION, function->handle);
            free(function);
        }
    }
    standin_handle_end(STANDIN_MODULE, module->handle);
    free(module->text);
    free(module);
}

void standin_module_end_all(const struct standin_context *context)
{
    struct standin_module *module;
    unsigned at = 0;

    while ((module = standin_handle_next(STANDIN_MODULE, &at))) {
        if (module->context == context) {
            kernel_free_module(module);
        }
    }
}

CUresult cuModuleLoadData(CUmodule *handle, const void *image)
{
    struct standin_context *context;
    struct standin_module *module;
    CUresult result = standin_begin_in(&context);

    if (result) {
        return result;
    }
    if (!handle || !image) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    module = calloc(1, sizeof(*module));
    if (module) {
        module->context = context;
        module->text = kernel_is_ptx(image) ? strdup(image) : NULL;
        module->handle = standin_handle_new(STANDIN_MODULE, module);
    }
    if (!module || !module->handle) {
        if (module) {
            free(module->text);
        }
        free(module);
        return standin_end(CUDA_ERROR_OUT_OF_MEMORY);
    }
    *handle = module->handle;
    return standin_end(CUDA_SUCCESS);
}

CUresult cuModuleLoadDataEx(CUmodule *handle, const void *image, unsigned count,
                            CUjit_option *options, void **values)
{
    return cuModuleLoadData(handle, image);
}

/* Streams may still run its functions: an order in a stream does not refer to the module. */
CUresult cuModuleUnload(CUmodule handle)
{
    struct standin_context *context;
    struct standin_module *module;
    CUresult result = standin_begin_in(&context);

    if (result) {
        return result;
    }
    module = standin_handle_find(STANDIN_MODULE, handle);
    if (!module) {
        return standin_end(CUDA_ERROR_INVALID_HANDLE);
    }
    kernel_free_module(module);
    return standin_end(CUDA_SUCCESS);
}

/* -- functions --------------------------------------------------------------------------------- */

/* Whether the text has ".entry NAME". */
static bool kernel_is_in(const char *text, const char *name)
{
    size_t len = strlen(name);

    while ((text = strstr(text, ".entry"))) {
        text += strlen(".entry");
        text += strspn(text, " \t\r\n");
        if (!strncmp(text, name, len) && !isalnum((unsigned char)text[len]) && text[len] != '_' &&
            text[len] != '$') {
            return true;
        }
    }
    return false;
}

static const struct standin_kernel *kernel_find(const char *name)
{
    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
        if (!strcmp(kernels[i].name, name)) {
            return &kernels[i];
        }
    }
    return NULL;
}

/* The function's handle if the module gave it out before, or a new one. */
static CUfunction kernel_handle(CUmodule module, const char *name)
{
    struct standin_function *function;
    unsigned at = 0;

    while ((function = standin_handle_next(STANDIN_FUNCTION, &at))) {
        if (function->module == module && !strcmp(function->name, name)) {
            return function->handle;
        }
    }
    function = calloc(1, sizeof(*function));
    if (!function) {
        return NULL;
    }
    function->module = module;
    function->kernel = kernel_find(name);
    snprintf(function->name, sizeof(function->name), "%s", name);
    function->handle = standin_handle_new(STANDIN_FUNCTION, function);
    if (!function->handle) {
        free(function);
        return NULL;
    }
    return function->handle;
}

CUresult cuModuleGetFunction(CUfunction *handle, CUmodule module_handle, const char *name)
{
    struct standin_context *context;
    const struct standin_module *module;
    CUresult result = standin_begin_in(&context);

    if (result) {
        return result;
    }
    module = standin_handle_find(STANDIN_MODULE, module_handle);
    if (!module) {
        return standin_end(CUDA_ERROR_INVALID_HANDLE);
    }
    if (!handle || !name) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    if (strlen(name) >= NAME || (module->text && !kernel_is_in(module->text, name))) {
        return standin_end(CUDA_ERROR_NOT_FOUND);
    }
    *handle = kernel_handle(module_handle, name);
    return standin_end(*handle ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

/* Says so once. */
static CUresult kernel_refuse(const char *name)
{
    static bool said;

    if (!said) {
        said = true;
        fprintf(stderr,
                "hcasim: the stand-in GPU runs no kernels: %s was not started. "
                "Its memory, copies and streams work; a kernel needs a GPU.\n",
                name);
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuLaunchKernel(CUfunction handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream stream_handle, void **params, void **extra)
{
    struct standin_context *context;
    const struct standin_function *function;
    struct standin_stream *stream;
    struct standin_op op = {.kind = STANDIN_OP_KERNEL};
    CUresult result = standin_begin_in(&context);

    if (result) {
        return result;
    }
    function = standin_handle_find(STANDIN_FUNCTION, handle);
    stream = standin_stream_find(context, stream_handle);
    if (!function || !stream || stream->context != context) {
        return standin_end(CUDA_ERROR_INVALID_HANDLE);
    }
    if (!grid_x || !grid_y || !grid_z || !block_x || !block_y || !block_z) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    if (!function->kernel) {
        return standin_end(kernel_refuse(function->name));
    }
    if (!params || !params[0] || extra) {
        return standin_end(CUDA_ERROR_INVALID_VALUE);
    }
    op.launch.kernel = function->kernel;
    memcpy(op.launch.argument, params[0], function->kernel->len);
    return standin_end(standin_stream_put(stream, &op, NULL));
}
