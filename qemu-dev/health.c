/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The property "health": makes the firmware fail while the machine runs, so that a driver's
 * reaction can be observed (QMP: qom-set). Its value, written and read, is "ok", "report:N" or
 * "fatal:N", where N is a syndrome of enum prm_health_syndrome.
 */
#include "qemu-dev/health.h"
#include "qapi/error.h"
#include "prm/prm.h"

#define REPORT "report:"
#define FATAL  "fatal:"

char *hcasim_health_get(const struct fw *fw)
{
    bool fatal = false;
    uint8_t syndrome = fw ? fw_get_health(fw, &fatal) : PRM_HEALTH_SYNDROME_NONE;

    return syndrome ? g_strdup_printf("%s0x%x", fatal ? FATAL : REPORT, syndrome) : g_strdup("ok");
}

void hcasim_health_set(struct fw *fw, const char *value, Error **errp)
{
    bool fatal = g_str_has_prefix(value, FATAL);
    const char *number = strchr(value, ':');
    char *end = NULL;
    uint64_t syndrome;

    if (!fw) {
        error_setg(errp, "there is no firmware before the device is realized");
    } else if (strcmp(value, "ok") == 0) {
        fw_set_health(fw, PRM_HEALTH_SYNDROME_NONE, false);
    } else if (!fatal && !g_str_has_prefix(value, REPORT)) {
        error_setg(errp, "health is ok, " REPORT "N or " FATAL "N");
    } else {
        syndrome = g_ascii_strtoull(number + 1, &end, 0);
        if (end == number + 1 || *end || syndrome == 0 || syndrome > UINT8_MAX) {
            error_setg(errp, "a health syndrome is a number from 1 to 255");
            return;
        }
        fw_set_health(fw, (uint8_t)syndrome, fatal);
    }
}
