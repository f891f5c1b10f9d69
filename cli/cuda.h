/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides which CUDA driver the program of `hcasim run` finds as libcuda.so.1: that of the machine,
 * or the stand-in GPU of hcasim. The front of hcasim goes before each (guest-lib/cuda/front.c). */
#ifndef HCASIM_CLI_CUDA_H
#define HCASIM_CLI_CUDA_H

#include "cli/option.h"

/* *folder: what has to come before the folders that LD_LIBRARY_PATH has already; the caller frees
 * it. NULL: nothing, because the machine has no driver, or its driver gets no front. Takes out of
 * LD_LIBRARY_PATH what an outer run has put there, and sets HCASIM_GPU. For a real GPU it also sets
 * CUDA_DEVICE_MAX_CONNECTIONS, unless that is set already. False, after a line on standard error: a
 * library of hcasim that is needed is not there. */
bool cuda_choose(const struct cli_line *line, char **folder);

#endif
