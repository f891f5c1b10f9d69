/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the CUDA driver, if the process has loaded it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include "guest-lib/host/gpu_internal.h"

#define WHY 160 /* bytes of a reason */

static struct gpu_driver driver;
static bool found;

static __thread char why[WHY];

const char *gpu_why(void)
{
    return *why ? why : "the memory is no GPU's any more";
}

bool gpu_ok(CUresult result, const char *what)
{
    const char *text = NULL;

    if (result == CUDA_SUCCESS) {
        return true;
    }
    if (driver.get_error_string(result, &text) != CUDA_SUCCESS || !text) {
        text = "unknown error";
    }
    snprintf(why, sizeof(why), "%s: error %d, %s", what, (int)result, text);
    return false;
}

static int gpu_take_adds(struct dl_phdr_info *info, size_t size, void *adds)
{
    *(unsigned long long *)adds = info->dlpi_adds;
    return size > offsetof(struct dl_phdr_info, dlpi_adds);
}

/* Whether the process has loaded a library since the last call. */
static bool gpu_has_loaded(void)
{
    static unsigned long long before;
    unsigned long long adds = 0;

    dl_iterate_phdr(gpu_take_adds, &adds);
    if (adds == before) {
        return false;
    }
    before = adds;
    return true;
}

static bool gpu_driver_bind(void *library)
{
    const struct {
        const char *symbol;
        void **at;
    } functions[] = {
#define GPU_FUNCTION(member, symbol) {#symbol, (void **)&driver.member},
        GPU_DRIVER(GPU_FUNCTION)
#undef GPU_FUNCTION
    };

    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        *functions[i].at = dlsym(library, functions[i].symbol);
        if (!*functions[i].at) {
            return false;
        }
    }
    *(void **)&driver.find_dmabuf = dlsym(library, "hcasim_cuda_dmabuf");
    return true;
}

const struct gpu_driver *gpu_driver_find(void)
{
    if (!found && gpu_has_loaded()) {
        void *library = dlopen(CUDA_LIBRARY, RTLD_LAZY | RTLD_NOLOAD);

        found = library && gpu_driver_bind(library);
    }
    return found ? &driver : NULL;
}
