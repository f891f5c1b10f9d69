/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements cuda.h. The driver's library is found as the loader finds it, but not loaded. */
#include "cli/cuda.h"
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include "cli/command.h"
#include "cli/cuda_links.h"
#include "cli/ld_cache.h"
#include "cli/loader.h"
#include "cli/places.h"
#include "guest-lib/cuda/cuda_api.h"

/* Whether a folder of LD_LIBRARY_PATH has no driver of the machine: it comes from an outer run, of
 * this hcasim or of another one, or from a test. */
static bool cuda_is_ours(const char *folder)
{
    return g_str_has_suffix(folder, "/" CLI_STAND_IN_BUILT) ||
           g_str_has_suffix(folder, "/" CLI_STAND_IN_INSTALLED) || cuda_links_are(folder);
}

static void cuda_forget_outer_run(void)
{
    const char *path = g_getenv("LD_LIBRARY_PATH");
    g_auto(GStrv) folders = g_strsplit_set(path ? path : "", ":;", -1);
    g_autoptr(GPtrArray) kept = g_ptr_array_new();
    g_autofree char *rest = NULL;

    for (char **folder = folders; *folder; folder++) {
        if (!cuda_is_ours(*folder)) {
            g_ptr_array_add(kept, *folder);
        }
    }
    if (kept->len < g_strv_length(folders)) {
        g_ptr_array_add(kept, NULL);
        rest = g_strjoinv(":", (char **)kept->pdata);
        g_setenv("LD_LIBRARY_PATH", rest, TRUE);
    }
}

/* -- the driver -------------------------------------------------------------------------------- */

/* The driver's library in a folder, or NULL. */
static char *cuda_find_in(const char *folder)
{
    g_autofree char *path = g_build_filename(folder, CUDA_LIBRARY, NULL);

    return !cuda_is_ours(folder) && loader_is_of_our_kind(path)
               ? g_canonicalize_filename(path, NULL)
               : NULL;
}

static char *cuda_find_in_path(void)
{
    const char *path = g_getenv("LD_LIBRARY_PATH");
    g_auto(GStrv) folders = g_strsplit_set(path ? path : "", ":;", -1);
    char *found = NULL;

    for (char **folder = folders; *folder && !found; folder++) {
        found = cuda_find_in(**folder ? *folder : "."); /* an empty one is the current folder */
    }
    return found;
}

/* All folders in which the loader looks for the libraries of this program, without its cache. Those
 * of the system come last. NULL: unknown. */
static Dl_serinfo *cuda_folders(void)
{
    void *program = dlopen(NULL, RTLD_LAZY);
    Dl_serinfo size, *folders;

    if (!program || dlinfo(program, RTLD_DI_SERINFOSIZE, &size)) {
        return NULL;
    }
    folders = g_malloc0(size.dls_size);
    folders->dls_size = size.dls_size;
    folders->dls_cnt = size.dls_cnt;
    if (dlinfo(program, RTLD_DI_SERINFO, folders)) {
        g_clear_pointer(&folders, g_free);
    }
    return folders;
}

static char *cuda_find_in_system(void)
{
    g_autofree Dl_serinfo *folders = cuda_folders();
    char *found = NULL;

    for (unsigned i = 0; folders && i < folders->dls_cnt && !found; i++) {
        found = cuda_find_in(folders->dls_serpath[i].dls_name);
    }
    return found;
}

/* The library that the loader would load as libcuda.so.1, or NULL. */
static char *cuda_find_driver(void)
{
    char *found = cuda_find_in_path();

    found = found ? found : ld_cache_find(CUDA_LIBRARY);
    return found ? found : cuda_find_in_system();
}

/* -- what the program gets --------------------------------------------------------------------- */

static bool cuda_has(const struct cli_line *line, const char *setting, const char *value)
{
    g_autofree char *text = cli_run_setting(line, setting);

    return text && !strcmp(text, value);
}

/* The folder of the links for the front and the driver. NULL after a line on standard error. */
static char *cuda_make_links(const char *driver)
{
    char *folder = cuda_links_make(cli_places()->cuda_front, driver);

    if (!folder) {
        cli_say("a GPU cannot ring doorbells, because no folder for the links of the CUDA driver's "
                "front can be made: %s",
                g_strerror(errno));
    }
    return folder;
}

/* -- queues to the GPU ------------------------------------------------------------------------- */

#define CONNECTIONS "CUDA_DEVICE_MAX_CONNECTIONS"

/* How many queues the process asks for; 32 is the most that the driver has. The processes of CUDA's
 * MPS share the queues of the GPU: two processes with 32 each found room on an H200, and four did
 * not. */
enum {
    QUEUES_MOST = 32,
    QUEUES_OF_MPS = 64,  /* together, if each process says which part of the GPU it takes */
    QUEUES_LEAST_MPS = 8 /* in place of the 2 that the driver gives it */
};

static bool cuda_has_mps(void)
{
    const char *folder = g_getenv("CUDA_MPS_PIPE_DIRECTORY");
    g_autofree char *control =
        g_build_filename(folder && *folder ? folder : "/tmp/nvidia-mps", "control", NULL);

    return g_file_test(control, G_FILE_TEST_EXISTS);
}

/* The driver puts the work of all streams into so many queues: 8, or 2 under MPS. If a copy of the
 * device shares a queue with work that waits for a kernel, and this kernel waits for the copy,
 * neither ever ends. So the program gets as many queues as it can, unless it says how many. */
static void cuda_ask_for_queues(void)
{
    const char *percent = g_getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    double share = percent ? g_ascii_strtod(percent, NULL) : 0;
    int queues = QUEUES_MOST;
    char text[16];

    if (cuda_has_mps()) {
        share = share > 0 ? MIN(share, 100) : 0; /* not a number: 0 */
        queues = CLAMP((int)(QUEUES_OF_MPS * share / 100), QUEUES_LEAST_MPS, QUEUES_MOST);
    }
    g_snprintf(text, sizeof(text), "%d", queues);
    g_setenv(CONNECTIONS, text, FALSE);
}

bool cuda_choose(const struct cli_line *line, char **folder)
{
    const struct cli_places *places = cli_places();
    bool fake = cuda_has(line, "fake_gpu", "1"), front = !cuda_has(line, "cuda_front", "off");
    g_autofree char *driver = NULL;

    *folder = NULL;
    cuda_forget_outer_run();
    driver = fake ? g_strdup(places->stand_in) : cuda_find_driver();
    if (!driver) {
        g_unsetenv("HCASIM_GPU");
        return true;
    }
    if ((fake && !cli_run_find_library(driver)) ||
        (front && !cli_run_find_library(places->cuda_front))) {
        return false;
    }
    g_setenv("HCASIM_GPU", fake ? "fake" : "real", TRUE);
    if (!fake) {
        cuda_ask_for_queues();
    }
    *folder = front ? cuda_make_links(driver) : NULL;
    if (fake && !*folder) {
        *folder = g_path_get_dirname(driver);
    }
    return true;
}
