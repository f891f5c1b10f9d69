// SPDX-License-Identifier: BSD-2-Clause
// The start of NVSHMEM's own performance tests, in place of the one in their utils.cu, which wants
// MPI: processes of scripts/gpu-check. utils.cu is included here under another name for its own
// start.
#define init_wrapper init_wrapper_of_utils
#include "utils.cu"
#undef init_wrapper

#include "nvshmem_by_file.cuh"

void init_wrapper(int *, char ***)
{
    cudaSetDevice(0);
    const char *problem = nvshmem_by_file(&mype, &npes);
    if (problem) {
        printf("error: %s\n", problem);
        exit(1);
    }
    nvshmem_barrier_all();
    d_latency = (double *)nvshmem_malloc(sizeof(double));
    d_avg_time = (double *)nvshmem_malloc(sizeof(double));
}
