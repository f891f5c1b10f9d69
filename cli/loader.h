/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells from the files of programs and libraries what the loader will do with them. */
#ifndef HCASIM_CLI_LOADER_H
#define HCASIM_CLI_LOADER_H

#include <stdbool.h>

/* True: the file is an ELF program that is linked statically, or that names another loader or
 * another processor than hcasim itself. False for scripts and for files that cannot be read. */
bool loader_is_foreign(const char *path);

/* Whether the file is an ELF file for the processor and the word size of hcasim itself. */
bool loader_is_of_our_kind(const char *path);

/* Whether the file of a library can be loaded as far as its size tells: it is an ELF file, and its
 * segments and its section table are all there. A linker writes the table last. */
bool loader_is_whole(const char *path);

#endif
