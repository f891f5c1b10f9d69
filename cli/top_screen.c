/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements top_screen.h. A row of the table below is a column of the screen. */
#include "cli/top_screen.h"

#include <string.h>
#include "cli/ctl_text.h"
#include "cli/top_data.h"

#define NAME_MOST 24 /* columns of a text */

enum column_kind {
    COLUMN_HOST,
    COLUMN_DEVICE,
    COLUMN_ABOUT,
    COLUMN_LINK,
    COLUMN_RATE, /* per second */
    COLUMN_BITS, /* the rate of a counter of bytes, in bits */
    COLUMN_VALUE,
};

static const struct {
    const char *title;
    char key; /* sorts by it, the largest first; 0: none */
    enum column_kind kind;
    const char *name; /* of the counter or gauge */
} columns[] = {
    {"HOST", 'h', COLUMN_HOST, NULL},
    {"DEVICE", 0, COLUMN_DEVICE, NULL},
    {"LINK", 0, COLUMN_LINK, "link_up"},
    {"TX bit/s", 't', COLUMN_BITS, "tx_bytes"},
    {"RX bit/s", 'r', COLUMN_BITS, "rx_bytes"},
    {"TX fr/s", 'f', COLUMN_RATE, "tx_frames"},
    {"RX fr/s", 0, COLUMN_RATE, "rx_frames"},
    {"MSG/s", 'm', COLUMN_RATE, "messages"},
    {"QPS", 'p', COLUMN_VALUE, "qps"},
    {"FLIGHT", 'd', COLUMN_VALUE, "send_wqes_in_flight"},
    {"RETR/s", 'x', COLUMN_RATE, "retransmissions"},
    {"NAK/s", 'n', COLUMN_RATE, "naks_received"},
    {"RNR/s", 0, COLUMN_RATE, "rnr_naks_received"},
    {"TIMEOUT", 'o', COLUMN_VALUE, "ack_timeouts"},
    {"PROGRAM", 0, COLUMN_ABOUT, NULL},
};

#define COLUMNS G_N_ELEMENTS(columns)

static unsigned sorted_by; /* a column */

gboolean top_screen_sort(char key)
{
    for (unsigned c = 0; c < COLUMNS; c++) {
        if (key && columns[c].key == key) {
            sorted_by = c;
            return TRUE;
        }
    }
    return FALSE;
}

const char *top_screen_keys(void)
{
    return "q quits; sorts by: h host, t r bit/s, f frames, m messages, p QPs, d in flight, x "
           "retransmissions, n NAKs, o timeouts";
}

/* Four digits at most, with a unit: 999, 12.3k, 4.56M. */
static char *screen_number(double value)
{
    static const char units[] = " kMGTP";
    unsigned unit = 0;

    if (value < 0) {
        return g_strdup("-");
    }
    while (value >= 999.5 && unit < strlen(units) - 1) {
        value /= 1000;
        unit++;
    }
    if (!unit) {
        return g_strdup_printf("%.0f", value);
    }
    return g_strdup_printf(value < 9.995   ? "%.2f%c"
                           : value < 99.95 ? "%.1f%c"
                                           : "%.0f%c",
                           value, units[unit]);
}

static double screen_value(const struct top_row *row, unsigned c)
{
    double rate = columns[c].name ? top_rate(row, columns[c].name) : -1;

    switch (columns[c].kind) {
    case COLUMN_BITS:
        return rate < 0 ? rate : 8 * rate;
    case COLUMN_RATE:
        return rate;
    case COLUMN_VALUE:
        return row->silent || row->is_port ? -1 : (double)top_value(row, columns[c].name);
    default:
        return -1;
    }
}

static char *screen_text(const char *text)
{
    g_autofree char *plain = ctl_plain(text);

    return g_utf8_substring(plain, 0, MIN(g_utf8_strlen(plain, -1), NAME_MOST));
}

static char *screen_cell(const struct top_row *row, unsigned c)
{
    switch (columns[c].kind) {
    case COLUMN_HOST:
        return screen_text(row->host);
    case COLUMN_DEVICE:
        return screen_text(row->device);
    case COLUMN_ABOUT:
        return screen_text(row->about);
    case COLUMN_LINK:
        return g_strdup(row->silent ? "silent" : top_value(row, "link_up") ? "up" : "down");
    default:
        return screen_number(screen_value(row, c));
    }
}

static gint screen_compare(gconstpointer a, gconstpointer b)
{
    const struct top_row *x = *(struct top_row *const *)a, *y = *(struct top_row *const *)b;
    double p = screen_value(x, sorted_by), q = screen_value(y, sorted_by);

    if (p != q) {
        return p < q ? 1 : -1;
    }
    p = strverscmp(x->host, y->host);
    return p ? (gint)p : strverscmp(x->device, y->device);
}

static bool screen_is_text(unsigned c)
{
    return columns[c].kind <= COLUMN_LINK;
}

static char *screen_line(char *const *cells, const unsigned *widths, unsigned width)
{
    GString *line = g_string_new(NULL);

    for (unsigned c = 0; c < COLUMNS; c++) {
        unsigned blanks = widths[c] - (unsigned)g_utf8_strlen(cells[c], -1);

        g_string_append_printf(line, "%s%*s%s%*s", c ? "  " : "",
                               screen_is_text(c) ? 0 : (int)blanks, "", cells[c],
                               screen_is_text(c) && c < COLUMNS - 1 ? (int)blanks : 0, "");
    }
    if (g_utf8_strlen(line->str, -1) > (glong)width) {
        g_string_truncate(line,
                          (gsize)(g_utf8_offset_to_pointer(line->str, (glong)width) - line->str));
    }
    return g_string_free(line, FALSE);
}

static char **screen_titles(void)
{
    char **cells = g_new0(char *, COLUMNS + 1);

    for (unsigned c = 0; c < COLUMNS; c++) {
        cells[c] = g_strdup(columns[c].title);
    }
    return cells;
}

static char **screen_cells(const struct top_row *row)
{
    char **cells = g_new0(char *, COLUMNS + 1);

    for (unsigned c = 0; c < COLUMNS; c++) {
        cells[c] = screen_cell(row, c);
    }
    return cells;
}

char **top_screen_lines(const GPtrArray *rows, unsigned width)
{
    g_autoptr(GPtrArray) sorted = g_ptr_array_new();
    g_autoptr(GPtrArray) table = g_ptr_array_new_with_free_func((GDestroyNotify)g_strfreev);
    GPtrArray *lines = g_ptr_array_new();
    unsigned widths[COLUMNS] = {0};

    for (unsigned i = 0; i < rows->len; i++) {
        g_ptr_array_add(sorted, rows->pdata[i]);
    }
    g_ptr_array_sort(sorted, screen_compare);
    g_ptr_array_add(table, screen_titles());
    for (unsigned i = 0; i < sorted->len; i++) {
        g_ptr_array_add(table, screen_cells(sorted->pdata[i]));
    }
    for (unsigned i = 0; i < table->len; i++) {
        for (unsigned c = 0; c < COLUMNS; c++) {
            unsigned own = (unsigned)g_utf8_strlen(((char **)table->pdata[i])[c], -1);

            widths[c] = MAX(widths[c], screen_is_text(c) ? own : MAX(own, 5));
        }
    }
    for (unsigned i = 0; i < table->len; i++) {
        g_ptr_array_add(lines, screen_line(table->pdata[i], widths, width));
    }
    g_ptr_array_add(lines, NULL);
    return (char **)g_ptr_array_free(lines, FALSE);
}
