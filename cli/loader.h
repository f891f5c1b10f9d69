/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells from a program's file whether the loader that loads hcasim loads the program, too. */
#ifndef HCASIM_CLI_LOADER_H
#define HCASIM_CLI_LOADER_H

#include <stdbool.h>

/* True: the file is an ELF program that is linked statically, or that names another loader or
 * another processor than hcasim itself. False for scripts and for files that cannot be read. */
bool loader_is_foreign(const char *path);

#endif
