/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds what hcasim runs and loads, relative to its own program file: in the build tree, or below
 * libexec where it is installed. A link to the program may be anywhere.
 */
#ifndef HCASIM_CLI_PLACES_H
#define HCASIM_CLI_PLACES_H

#include <stdbool.h>

/* The end of the folder of the stand-in GPU: in a build, and where it is installed. */
#define CLI_STAND_IN_BUILT     "guest-lib/cuda/standin"
#define CLI_STAND_IN_INSTALLED "cuda-standin"

struct cli_places {
    bool in_tree;
    char *program;     /* hcasim itself */
    char *build;       /* the build folder; NULL where it is installed */
    char *libraries;   /* the folder of libibverbs.so.1 and the others */
    char *cuda_front;  /* the library that goes before the CUDA driver */
    char *stand_in;    /* libcuda.so.1 of the stand-in GPU, in a folder of its own */
    char *sim;         /* program */
    char *conformance; /* program */
    char *scripts;     /* the folder of the conformance scripts */
    char *cluster;     /* Python file */
    char *explain;     /* folder of Python files */
    char *plugin;      /* what QEMU loads; built and installed only with QEMU's headers */
    char *vm;          /* the folder of vm.py, and of the scripts that prepare the guests' system */
    char *source;      /* the source tree; NULL where it is installed */
};

/* The places are found at the first call and never freed. */
const struct cli_places *cli_places(void);

#endif
