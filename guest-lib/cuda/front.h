/* SPDX-License-Identifier: BSD-2-Clause */
/* The names by which the front before the CUDA driver (front.c) and the program hcasim, which puts
 * it there, know each other. */
#ifndef HCASIM_GUEST_LIB_CUDA_FRONT_H
#define HCASIM_GUEST_LIB_CUDA_FRONT_H

/* The library that the front needs (DT_NEEDED): a link to the driver's library. The SONAME of the
 * driver's library is libcuda.so.1, and so is the front's. */
#define CUDA_FRONT_DRIVER "libcuda-of-the-system.so.1"

#endif
