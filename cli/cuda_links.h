/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Folders of links that put the front of hcasim before the CUDA driver: libcuda.so.1 and libcuda.so
 * are the front, and CUDA_FRONT_DRIVER is the driver.
 *
 * The name of a folder is made of the paths that its links lead to. All runs of a user with the
 * same front and driver share a folder. It stays, because a program may outlive `hcasim run` and
 * start other programs. If it is removed meanwhile, these programs find the driver without a front.
 */
#ifndef HCASIM_CLI_CUDA_LINKS_H
#define HCASIM_CLI_CUDA_LINKS_H

#include <glib.h>
#include <stdbool.h>

/* The folder for this front and this driver, which is made if it is not there. NULL with errno: no
 * place can have it. The caller frees the path. */
char *cuda_links_make(const char *front, const char *driver);

/* Whether a folder is one of these, by its name. */
bool cuda_links_are(const char *folder);

/* Removes the folders of this user whose front or driver does not exist any more. Adds their paths
 * to `removed` (freed with g_free()), which may be NULL. */
void cuda_links_sweep(GPtrArray *removed);

#endif
