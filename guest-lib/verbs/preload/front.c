/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The front of a library: `hcasim run` preloads it in place of libibverbs.so.1 or libmlx5.so.1. It
 * has the library's SONAME, so that the loader uses it whenever a program or a library asks for
 * that name, whatever folders these list themselves (DT_RPATH, RUNPATH). It has the library's
 * symbols at their versions, which are found before those of a private copy.
 *
 * The front is in every process, so it needs only the C library. The library itself, in the same
 * folder, is loaded when the first of its functions is called; after that a call costs one jump.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* FRONT_NAME(number, "symbol", "@" or "@@", "version") for each symbol, generated from the
 * tables of guest-lib/export. */
#define FRONT_NAME(number, symbol, at, version)                                                    \
    __asm__(".pushsection .text\n"                                                                 \
            ".type front_" #number ", @function\n"                                                 \
            "front_" #number ": endbr64\n"                                                         \
            "    jmp *front_targets + 8 * " #number "(%rip)\n"                                     \
            ".globl front_" #number "\n"                                                           \
            ".symver front_" #number ", " symbol at version ", remove\n"                           \
            "front_first_" #number ": endbr64\n"                                                   \
            "    pushq $" #number "\n"                                                             \
            "    jmp front_first\n"                                                                \
            ".popsection\n"                                                                        \
            ".pushsection .data.front_targets, \"aw\"\n"                                           \
            ".quad front_first_" #number "\n"                                                      \
            ".popsection\n");
/* The targets of the calls, by number: initially front_first() with the number. */
__asm__(".pushsection .data.front_targets, \"aw\"\n"
        ".balign 8\n"
        "front_targets:\n"
        ".popsection\n");
#include FRONT_NAMES
#undef FRONT_NAME

extern void *front_targets[] __attribute__((visibility("hidden")));

static const struct {
    const char *symbol, *version;
} front_names[] = {
#define FRONT_NAME(number, symbol, at, version) {symbol, version},
#include FRONT_NAMES
};
#define FRONT_NAMES_LEN (sizeof(front_names) / sizeof(front_names[0]))

/* The path of the library, which is in this library's folder. False: the path is too long. */
static bool front_beside(char path[PATH_MAX])
{
    Dl_info info;
    const char *end;
    int len;

    if (!dladdr((const void *)front_beside, &info) || !(end = strrchr(info.dli_fname, '/'))) {
        return false;
    }
    len = snprintf(path, PATH_MAX, "%.*s/%s", (int)(end - info.dli_fname), info.dli_fname,
                   FRONT_LIBRARY);
    return len > 0 && len < PATH_MAX;
}

/* Loads the library. Threads may do this at the same time: they find the same functions. */
static const char *front_load(void)
{
    char path[PATH_MAX];
    void *library = front_beside(path) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;

    for (size_t i = 0; library && i < FRONT_NAMES_LEN; i++) {
        void *target = dlvsym(library, front_names[i].symbol, front_names[i].version);

        if (!target) {
            return dlerror();
        }
        __atomic_store_n(&front_targets[i], target, __ATOMIC_RELEASE);
    }
    return library ? NULL : dlerror();
}

void *front_find(size_t number);
/* Finds the function with this number. On failure, ends the program as the loader does when it does
 * not find a library. */
__attribute__((used)) void *front_find(size_t number)
{
    const char *failed;
    int state;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    failed = front_load();
    if (failed) {
        dprintf(STDERR_FILENO, "hcasim: %s\n", failed);
        _exit(127);
    }
    pthread_setcancelstate(state, NULL);
    return __atomic_load_n(&front_targets[number], __ATOMIC_ACQUIRE);
}

/* The target of a first call: finds the function and jumps to it with the original arguments.
 * Arguments in registers are saved below the frame meanwhile. Above the frame are the number and
 * the caller's address. */
__asm__(".pushsection .text\n"
        ".type front_first, @function\n"
        "front_first:\n"
        "    .cfi_startproc\n"
        "    .cfi_def_cfa_offset 16\n"
        "    pushq %rbp\n"
        "    .cfi_def_cfa_offset 24\n"
        "    .cfi_offset %rbp, -24\n"
        "    movq %rsp, %rbp\n"
        "    .cfi_def_cfa_register %rbp\n"
        "    subq $200, %rsp\n" /* makes %rsp a multiple of 16 */
        "    movq %rax, 0(%rsp)\n"
        "    movq %rdi, 8(%rsp)\n"
        "    movq %rsi, 16(%rsp)\n"
        "    movq %rdx, 24(%rsp)\n"
        "    movq %rcx, 32(%rsp)\n"
        "    movq %r8, 40(%rsp)\n"
        "    movq %r9, 48(%rsp)\n"
        "    movups %xmm0, 64(%rsp)\n"
        "    movups %xmm1, 80(%rsp)\n"
        "    movups %xmm2, 96(%rsp)\n"
        "    movups %xmm3, 112(%rsp)\n"
        "    movups %xmm4, 128(%rsp)\n"
        "    movups %xmm5, 144(%rsp)\n"
        "    movups %xmm6, 160(%rsp)\n"
        "    movups %xmm7, 176(%rsp)\n"
        "    movq 8(%rbp), %rdi\n"
        "    call front_find\n"
        "    movq %rax, %r11\n"
        "    movq 0(%rsp), %rax\n"
        "    movq 8(%rsp), %rdi\n"
        "    movq 16(%rsp), %rsi\n"
        "    movq 24(%rsp), %rdx\n"
        "    movq 32(%rsp), %rcx\n"
        "    movq 40(%rsp), %r8\n"
        "    movq 48(%rsp), %r9\n"
        "    movups 64(%rsp), %xmm0\n"
        "    movups 80(%rsp), %xmm1\n"
        "    movups 96(%rsp), %xmm2\n"
        "    movups 112(%rsp), %xmm3\n"
        "    movups 128(%rsp), %xmm4\n"
        "    movups 144(%rsp), %xmm5\n"
        "    movups 160(%rsp), %xmm6\n"
        "    movups 176(%rsp), %xmm7\n"
        "    leave\n"
        "    .cfi_def_cfa %rsp, 16\n"
        "    addq $8, %rsp\n"
        "    .cfi_def_cfa_offset 8\n"
        "    jmp *%r11\n"
        "    .cfi_endproc\n"
        ".popsection\n");
