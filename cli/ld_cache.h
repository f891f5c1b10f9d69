/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks a library up in the loader's cache, /etc/ld.so.cache, without loading it. */
#ifndef HCASIM_CLI_LD_CACHE_H
#define HCASIM_CLI_LD_CACHE_H

/* The path of the first library of this name that is for this processor; NULL: there is none, or
 * the cache cannot be read. The caller frees it. */
char *ld_cache_find(const char *name);

#endif
