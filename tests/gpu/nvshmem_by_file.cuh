// SPDX-License-Identifier: BSD-2-Clause
// Starts NVSHMEM in a process that scripts/gpu-check started: the processes find each other by a
// file.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <nvshmem.h>
#include <nvshmemx.h>
#include <string>
#include <unistd.h>

// Returns what went wrong, or NULL.
static inline const char *nvshmem_by_file(int *rank, int *count)
{
    const char *r = getenv("GPU_CHECK_RANK"), *c = getenv("GPU_CHECK_COUNT"),
               *file = getenv("GPU_CHECK_FILE");
    nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
    nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;
    FILE *f = nullptr;

    if (!r || !c || !file)
        return "GPU_CHECK_RANK, GPU_CHECK_COUNT and GPU_CHECK_FILE are not set: scripts/gpu-check starts this program";
    *rank = atoi(r);
    *count = atoi(c);
    if (!*rank) {
        std::string partial = std::string(file) + ".new";
        if (nvshmemx_get_uniqueid(&id))
            return "nvshmemx_get_uniqueid fails";
        f = fopen(partial.c_str(), "w");
        if (!f || fwrite(&id, sizeof(id), 1, f) != 1 || fclose(f) || rename(partial.c_str(), file))
            return "the file by which the processes find each other cannot be written";
    } else {
        for (int i = 0; i < 2000 && !(f = fopen(file, "r")); i++)
            usleep(10000);
        if (!f || fread(&id, sizeof(id), 1, f) != 1)
            return "the file by which the processes find each other does not come";
        fclose(f);
    }
    nvshmemx_set_attr_uniqueid_args(*rank, *count, &id, &attr);
    if (nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attr))
        return "nvshmemx_init_attr fails";
    return nullptr;
}
