/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: where [LIBRARY...]
 *
 * Prints the devices of the libibverbs that this program is linked with, and then of the libraries
 * that it loads by these names. A library without verbs is only loaded. Exit status 0: all were
 * found.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdio.h>

static void say_devices(const char *name, __typeof__(ibv_get_device_list) *get,
                        __typeof__(ibv_get_device_name) *name_of,
                        __typeof__(ibv_free_device_list) *free_list)
{
    struct ibv_device **list = get(NULL);

    printf("%s:", name);
    for (int i = 0; list && list[i]; i++) {
        printf(" %s", name_of(list[i]));
    }
    printf("\n");
    if (list) {
        free_list(list);
    }
}

static int load(const char *name)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);

    if (!library) {
        printf("%s\n", dlerror());
        return 1;
    }
    if (dlsym(library, "ibv_get_device_list")) {
        say_devices(name, (__typeof__(ibv_get_device_list) *)dlsym(library, "ibv_get_device_list"),
                    (__typeof__(ibv_get_device_name) *)dlsym(library, "ibv_get_device_name"),
                    (__typeof__(ibv_free_device_list) *)dlsym(library, "ibv_free_device_list"));
    }
    return 0;
}

int main(int argc, char **argv)
{
    int status = 0;

    say_devices("linked", ibv_get_device_list, ibv_get_device_name, ibv_free_device_list);
    for (int i = 1; i < argc; i++) {
        status |= load(argv[i]);
    }
    return status;
}
