/* SPDX-License-Identifier: BSD-2-Clause */
/* The places in a build tree, and those of an installation. */
#include "cli/places.h"
#include <glib.h>
#include <stdlib.h>
#include <string.h>

static char *places_read(const char *folder, const char *name)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    char *text = NULL;

    if (g_file_get_contents(path, &text, NULL, NULL)) {
        g_strchomp(text);
    }
    return text;
}

/* BUILD/cli/hcasim, with a file beside it that names the source tree. */
static void places_of_build(struct cli_places *p, const char *folder)
{
    p->in_tree = true;
    p->build = g_path_get_dirname(folder);
    p->libraries = g_build_filename(p->build, "guest-lib", "verbs", NULL);
    p->cuda_front = g_build_filename(p->build, "guest-lib", "cuda", "libhcasim-cuda.so", NULL);
    p->stand_in = g_build_filename(p->build, CLI_STAND_IN_BUILT, "libcuda.so.1", NULL);
    p->sim = g_build_filename(p->build, "tests", "sim", "fabric", "hcasim-sim", NULL);
    p->conformance = g_build_filename(p->build, "tests", "conformance", "conformance", NULL);
    p->scripts = g_build_filename(p->source, "tests", "conformance", NULL);
    p->cluster = g_build_filename(folder, "cluster.py", NULL);
    p->explain = g_build_filename(p->source, "cli", "explain", NULL);
    p->plugin = g_build_filename(p->build, "qemu-dev", "hcasim.so", NULL);
    p->vm = g_build_filename(p->source, "scripts", "lib", NULL);
}

/* PREFIX/bin/hcasim, and PREFIX/libexec/hcasim. */
static void places_of_prefix(struct cli_places *p, const char *folder)
{
    p->libraries = g_canonicalize_filename(HCASIM_LIBEXEC_FROM_BIN, folder);
    p->cuda_front = g_build_filename(p->libraries, "libhcasim-cuda.so", NULL);
    p->stand_in = g_build_filename(p->libraries, CLI_STAND_IN_INSTALLED, "libcuda.so.1", NULL);
    p->sim = g_build_filename(p->libraries, "hcasim-sim", NULL);
    p->conformance = g_build_filename(p->libraries, "conformance", NULL);
    p->scripts = g_build_filename(p->libraries, "conformance-scripts", NULL);
    p->cluster = g_build_filename(p->libraries, "cluster.py", NULL);
    p->explain = g_build_filename(p->libraries, "explain", NULL);
    p->plugin = g_build_filename(p->libraries, "hcasim.so", NULL);
    p->vm = g_build_filename(p->libraries, "vm", "scripts", "lib", NULL);
}

const struct cli_places *cli_places(void)
{
    static struct cli_places places;
    g_autofree char *folder = NULL;

    if (places.program) {
        return &places;
    }
    places.program = realpath("/proc/self/exe", NULL);
    if (!places.program) {
        g_error("/proc is not mounted: hcasim does not find its libraries");
    }
    folder = g_path_get_dirname(places.program);
    places.source = places_read(folder, "source-tree");
    if (places.source) {
        places_of_build(&places, folder);
    } else {
        places_of_prefix(&places, folder);
    }
    return &places;
}
