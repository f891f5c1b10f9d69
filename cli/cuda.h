/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts the front of hcasim (guest-lib/cuda/front.c) before the libcuda.so.1 that the program of
 * `hcasim run` finds. */
#ifndef HCASIM_CLI_CUDA_H
#define HCASIM_CLI_CUDA_H

#include "cli/option.h"

/* *folder: what has to come before the folders that LD_LIBRARY_PATH has already; the caller frees
 * it. NULL: nothing, because the machine has no CUDA driver or the user wants no front. What an
 * outer run has put into LD_LIBRARY_PATH is taken out. HCASIM_GPU says from now on whether there is
 * a driver. False, after a line on standard error: a library of hcasim that is needed is not there.
 */
bool cuda_choose(const struct cli_line *line, char **folder);

#endif
