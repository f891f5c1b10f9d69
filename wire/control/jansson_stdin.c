/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For shared libraries that contain a static jansson.
 *
 * Debian's libjansson.a is compiled for programs, not for libraries: its json_loadf() refers to the
 * C library's stdin in a way that only a program can resolve. This variable has the same name
 * inside the library, and is hidden, so the reference is resolved here. json_loadf() is not called;
 * it would compare its file with stdin, to name it in an error. The rest of a library with this
 * file must not use stdin.
 */
#include <stdio.h>

extern FILE *const jansson_stdin __asm__("stdin") __attribute__((visibility("hidden")));
FILE *const jansson_stdin = NULL;
