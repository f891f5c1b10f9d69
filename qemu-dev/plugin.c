/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The entry point for QEMU's -plugin: hcasim.so[,help=on].
 *
 * The plugin uses QEMU's own functions and structures, so it works only with exactly the QEMU whose
 * headers it was compiled against. This is checked before anything else, when the library is
 * loaded: QEMU itself would only compare the version of its plugin interface. The build makes every
 * reference to QEMU weak (weaken.sh), so that a plugin for another QEMU reaches that check instead
 * of failing on a symbol.
 */
#include "qemu-dev/compat.h"
#include "qemu/qemu-plugin.h"
#include "qapi/qapi-commands-control.h"
#include "qemu-dev/device.h"

#pragma weak qmp_query_version

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

/* The running QEMU's version, as --version prints it: "7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)". */
static char *plugin_running_version(void)
{
    VersionInfo *info;
    GString *s;

    if (!qmp_query_version) {
        return g_strdup("a program that is not qemu-system");
    }
    info = qmp_query_version(NULL);
    s = g_string_new(NULL);
    g_string_printf(s, "QEMU %" PRId64 ".%" PRId64 ".%" PRId64, info->qemu->major,
                    info->qemu->minor, info->qemu->micro);
    if (info->package[0]) {
        g_string_append_printf(s, " (%s)", info->package);
    }
    qapi_free_VersionInfo(info);
    return g_string_free(s, false);
}

static void __attribute__((constructor)) plugin_refuse_other_qemu(void)
{
    char *running = plugin_running_version();

    if (strcmp(running, "QEMU " QEMU_FULL_VERSION) != 0) {
        fprintf(stderr,
                "hcasim: this plugin was built for QEMU " QEMU_FULL_VERSION ", not for %s; "
                "to rebuild it, run scripts/setup and ninja -C build\n",
                running);
        exit(1);
    }
    g_free(running);
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
                                           char **argv)
{
    int i;

    for (i = 0; i < argc; i++) {
        if (strcmp(argv[i], "help=on") == 0) {
            hcasim_device_help();
            exit(0);
        }
        if (strcmp(argv[i], "help=off") != 0) {
            fprintf(stderr, "hcasim: unknown plugin argument '%s'; there is help=on\n", argv[i]);
            exit(1);
        }
    }
    hcasim_device_register();
    return 0;
}
