/* SPDX-License-Identifier: BSD-2-Clause */
/* What the driver of cuda_driver.c was asked. */
#ifndef HCASIM_TESTS_PROGRAMS_CUDA_DRIVER_H
#define HCASIM_TESTS_PROGRAMS_CUDA_DRIVER_H

#include <stddef.h>

/* The last registration of host memory by this thread. version: 1 or 2 of the function. */
struct cuda_asked {
    unsigned version, flags;
    void *ptr;
    size_t len;
};

__attribute__((visibility("default"))) struct cuda_asked cuda_driver_asked(void);

#endif
