/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements variables.h. */
#include "guest-lib/verbs/kernel/variables.h"
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include "guest-lib/verbs/kernel/settings.h"
#include "guest-lib/verbs/kernel/spelling.h"

static const struct hv_variable variables[] = {
    {"HCASIM_HOSTS",
     "`hcasim cluster` sets it for the program: the number of hosts. The number of the host itself "
     "is in `HCASIM_HOST`."},
    {"HCASIM_RUN",
     "`hcasim run` sets it. Processes with the same value share a capture file. A run that is "
     "started by another run keeps the value of the outer run."},
    {"HCASIM_PLUGIN",
     "`hcasim vm`: the plugin for QEMU, hcasim.so, to use instead of the one that was built or "
     "installed with hcasim."},
    {"HCASIM_GPU",
     "`hcasim run` sets it if the program can load a CUDA driver: `real`, or `fake` for the stand-in "
     "GPU. Then the program finds the files of peer memory, because `ibv_reg_mr()` takes memory of a "
     "GPU."},
    {"HCASIM_OPENED",
     "`hcasim run --require` sets it: the place where a process tells that it has opened a device."},
};

const struct hv_variable *hv_variable_at(unsigned i)
{
    return i < G_N_ELEMENTS(variables) ? &variables[i] : NULL;
}

char *hv_variable_of(const char *setting)
{
    g_autofree char *upper = g_ascii_strup(setting, -1);

    return g_strconcat(HV_VARIABLE_PREFIX, upper, NULL);
}

static void variable_free(gpointer name)
{
    g_free(name);
}

/* The names of all variables without the prefix; NULL at the end. */
static GPtrArray *variable_names(void)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(variable_free);
    const struct hv_setting *setting;

    for (unsigned i = 0; (setting = hv_setting_at(i)); i++) {
        g_ptr_array_add(names, g_ascii_strup(setting->name, -1));
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(variables); i++) {
        g_ptr_array_add(names, g_strdup(variables[i].name + strlen(HV_VARIABLE_PREFIX)));
    }
    g_ptr_array_add(names, NULL);
    return names;
}

char **hv_variables_unknown(void)
{
    g_autoptr(GPtrArray) known = variable_names();
    g_auto(GStrv) all = g_listenv();
    GPtrArray *unknown = g_ptr_array_new();

    for (char **name = all; *name; name++) {
        const char *value = g_getenv(*name);

        if (g_str_has_prefix(*name, HV_VARIABLE_PREFIX) && value && *value &&
            !g_strv_contains((const char *const *)known->pdata,
                             *name + strlen(HV_VARIABLE_PREFIX))) {
            g_ptr_array_add(unknown, g_strdup(*name));
        }
    }
    g_ptr_array_add(unknown, NULL);
    return (char **)g_ptr_array_free(unknown, FALSE);
}

static char *variable_find(const char *name,
                           const char *(*find)(const char *word, const char *const *names))
{
    g_autoptr(GPtrArray) known = variable_names();
    const char *found = find(name + strlen(HV_VARIABLE_PREFIX), (const char *const *)known->pdata);

    return found ? g_strconcat(HV_VARIABLE_PREFIX, found, NULL) : NULL;
}

char *hv_variable_slip(const char *name)
{
    return variable_find(name, spelling_find_slip);
}

char *hv_variable_guess(const char *name)
{
    return variable_find(name, spelling_guess);
}

char *hv_variable_slip_text(const char *name, const char *meant)
{
    return g_strdup_printf("%s is no variable of hcasim; did you mean %s?", name, meant);
}

void hv_variables_warn(void)
{
    static gsize is_done;
    g_auto(GStrv) unknown = NULL;

    if (!g_once_init_enter(&is_done)) {
        return;
    }
    unknown = hv_variables_unknown();
    for (char **name = unknown; *name; name++) {
        g_autofree char *meant = hv_variable_slip(*name);
        g_autofree char *text = meant ? hv_variable_slip_text(*name, meant) : NULL;

        if (text) {
            fprintf(stderr, "hcasim: %s\n", text);
        }
    }
    g_once_init_leave(&is_done, 1);
}
