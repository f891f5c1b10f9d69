/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program loads libibverbs at run time, as a plugin does, opens a device, closes it, and unloads
 * the library. Then it has a fault of its own, which must go to its own handler: the handler that
 * the library had installed before must not be called.
 *
 * usage: unload PATH
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void on_fault(int signal)
{
    static const char text[] = "the program's own handler\n";

    (void)signal;
    _exit(write(STDOUT_FILENO, text, sizeof(text) - 1) < 0);
}

/* ISO C has no conversion of dlsym()'s result to a function pointer. */
#define FIND(pointer, library, name)                                                               \
    do {                                                                                           \
        void *found = dlvsym(library, name, "IBVERBS_1.1");                                        \
                                                                                                   \
        if (!found) {                                                                              \
            fprintf(stderr, "%s\n", dlerror());                                                    \
            exit(1);                                                                               \
        }                                                                                          \
        *(void **)&(pointer) = found;                                                              \
    } while (0)

static void use(const char *path)
{
    struct ibv_device **(*list)(int *num);
    struct ibv_context *(*open)(struct ibv_device * device);
    int (*close)(struct ibv_context * context);
    struct ibv_device **devices;
    struct ibv_context *context;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    FIND(list, library, "ibv_get_device_list");
    FIND(open, library, "ibv_open_device");
    FIND(close, library, "ibv_close_device");
    devices = list(NULL);
    context = devices && devices[0] ? open(devices[0]) : NULL;
    if (!context || close(context) || dlclose(library)) {
        fprintf(stderr, "no device, or it does not close\n");
        exit(1);
    }
}

int main(int argc, char **argv)
{
    volatile char *nothing = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (argc != 2 || nothing == MAP_FAILED) {
        fprintf(stderr, "usage: unload PATH\n");
        return 1;
    }
    signal(SIGSEGV, on_fault);
    use(argv[1]);
    *nothing = 1;
    return 1;
}
