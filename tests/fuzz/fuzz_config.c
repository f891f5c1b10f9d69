/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer: the configuration of a process (guest-lib/verbs/kernel/config.h), as text: lines
 * "HCASIM_NAME=value" are environment variables, the rest is the key file. The configuration must
 * be refused with a reason, or all its values must be possible for a port.
 */
#include <glib/gstdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "fw/fw.h"
#include "guest-lib/verbs/kernel/config.h"

#define VARIABLE "HCASIM_"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"WIRE",   "HOST",       "DEVICES", "IP",      "MAC", "MTU",
                                    "MEMORY", "RESPONDERS", "PROFILE", "CAPTURE", "LOG"};

static void require(bool what)
{
    if (!what) {
        abort();
    }
}

/* A wire elsewhere could be anybody's: here all wires are in the run's folder. */
static char *config_wire(const char *value, const char *dir)
{
    return g_str_has_prefix(value, "shm:/") ? g_strdup_printf("shm:%s/x%.200s", dir, value + 5)
                                            : g_strdup(value);
}

static void config_set(const char *line, const char *dir)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        size_t len = strlen(names[i]);

        if (!strncmp(line, names[i], len) && line[len] == '=') {
            g_autofree char *name = g_strconcat(VARIABLE, names[i], NULL);
            g_autofree char *value = config_wire(line + len + 1, dir);

            g_setenv(name, value, true);
        }
    }
}

static void config_check(const struct hv_port_config *port)
{
    require(port->wire && *port->wire);
    require(!(port->mac[0] & 1));
    require(port->mtu >= 1500 && port->mtu <= 9978);
    require(port->memory >= FW_MEMORY_MIN);
    require(port->responders >= 1 && port->responders <= FW_RESPONDERS_MAX);
    require(port->log_level >= -1 && port->log_level <= 3);
    require(port->gid[0].raw[0] == 0xfe && port->gid[1].raw[11] == 0xff);
}

static char dir[] = "/dev/shm/hcasim-fuzz-XXXXXX";
static char *path;

static void config_remove_dir(void)
{
    g_unlink(path);
    g_rmdir(dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct hv_port_config ports[HV_MAX_DEVICES];
    g_autofree char *text = g_strndup((const char *)data, size);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autoptr(GString) file = g_string_new(NULL);
    g_autoptr(GError) err = NULL;
    unsigned count;

    if (!path) {
        require(g_mkdtemp(dir) != NULL);
        path = g_build_filename(dir, "config", NULL);
        atexit(config_remove_dir);
    }
    g_unsetenv(VARIABLE "CONFIG");
    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *name = g_strconcat(VARIABLE, names[i], NULL);

        g_unsetenv(name);
    }
    for (char **line = lines; *line; line++) {
        if (g_str_has_prefix(*line, VARIABLE)) {
            config_set(*line + strlen(VARIABLE), dir);
        } else if (!strstr(*line, "shm:")) {
            g_string_append_printf(file, "%s\n", *line);
        }
    }
    require(g_file_set_contents(path, file->str, (gssize)file->len, NULL));
    g_setenv(VARIABLE "CONFIG", path, true);
    count = hv_config_look(ports, &err);
    require(!count == !!err);
    for (unsigned i = 0; i < count; i++) {
        config_check(&ports[i]);
    }
    hv_config_look_end(ports, count);
    return 0;
}
