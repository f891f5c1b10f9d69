/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of the device's properties, and the words for a range. */
#include "qemu-dev/properties.h"
#include <stdbool.h>
#include "fw/fw.h"
#include "wire/capture_blocks.h"

#define PROPERTY(kind_, name_, member_, usual_, least_, most_, value_, usual_text_, help_)         \
    {.name = #name_,                                                                               \
     .kind = DEVICE_PROPERTY_##kind_,                                                              \
     .usual = (usual_),                                                                            \
     .least = (least_),                                                                            \
     .most = (most_),                                                                              \
     .value = (value_),                                                                            \
     .usual_text = (usual_text_),                                                                  \
     .help = (help_)},

static const struct device_property properties[] = {
#include "qemu-dev/properties.def"
};

const struct device_property *device_property_at(unsigned i)
{
    return i < G_N_ELEMENTS(properties) ? &properties[i] : NULL;
}

/* A number in the property's own form. */
static char *properties_number(const struct device_property *p, uint64_t n)
{
    static const char suffixes[] = "KMG";
    unsigned shifts = 0;

    if (p->kind == DEVICE_PROPERTY_SWITCH) {
        return g_strdup(n ? "on" : "off");
    }
    while (p->kind == DEVICE_PROPERTY_SIZE && shifts < 3 && n && !(n & 1023)) {
        n >>= 10;
        shifts++;
    }
    return g_strdup_printf("%" G_GUINT64_FORMAT "%.*s", n, shifts ? 1 : 0,
                           shifts ? &suffixes[shifts - 1] : "");
}

char *device_property_range(const struct device_property *p)
{
    g_autofree char *usual = p->usual_text ? NULL : properties_number(p, p->usual);
    g_autofree char *least = properties_number(p, p->least), *most = properties_number(p, p->most);
    GString *text = g_string_new(NULL);

    if (p->kind == DEVICE_PROPERTY_PROFILE) {
        g_autofree char *names = g_strjoinv(", ", (char **)fw_profile_names());

        g_string_append_printf(text, "%s; ", names);
    } else if (p->most) {
        g_string_append_printf(text, "%s to %s; ", least, most);
    } else if (p->least) {
        g_string_append_printf(text, "%s or more; ", least);
    }
    g_string_append_printf(text, "default: %s", p->usual_text ? p->usual_text : usual);
    return g_string_free(text, FALSE);
}
