/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes the log with a bound: a guest or a peer that errs for ever cannot fill the owner's disk.
 *
 * Each level has a bucket of its own, so that a flood on one level does not suppress the others. A
 * bucket holds LOG_BURST lines and loses one line each LOG_LINE_NS. If the owner asked for a trace,
 * nothing is left out, neither of the trace nor of the other levels.
 */
#include <inttypes.h>
#include <stdarg.h>
#include "model/core/hca.h"

#define LOG_BURST   100
#define LOG_LINE_NS 1000000000ull

static void log_write_line(struct hca *hca, enum hca_log_level level, const char *fmt, va_list ap)
{
    char line[512];

    g_vsnprintf(line, sizeof(line), fmt, ap);
    hca->ops->log(hca->host, level, line);
}

static void G_GNUC_PRINTF(3, 4)
    log_write_now(struct hca *hca, enum hca_log_level level, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    log_write_line(hca, level, fmt, ap);
    va_end(ap);
}

static void log_tell_left_out(struct hca *hca, enum hca_log_level level)
{
    struct log_bucket *b = &hca->logged[level];

    if (b->left_out) {
        log_write_now(hca, level, "%" PRIu64 " lines of this kind were left out", b->left_out);
        b->left_out = 0;
    }
}

/* Puts a line into the bucket. False: the bucket is full. */
static bool log_take(struct hca *hca, struct log_bucket *b)
{
    uint64_t now = hca_now(hca);
    uint64_t out = (now - b->since) / LOG_LINE_NS;

    if (out >= b->lines) {
        b->lines = 0;
        b->since = now;
    } else {
        b->lines -= (unsigned)out;
        b->since += out * LOG_LINE_NS;
    }
    if (b->lines >= LOG_BURST) {
        b->left_out++;
        return false;
    }
    b->lines++;
    return true;
}

void hca_log(struct hca *hca, enum hca_log_level level, const char *fmt, ...)
{
    va_list ap;

    /* Memory that does not answer because the function is off is not the guest's error. */
    if (!hca->ops->log || (level == HCA_LOG_TRACE && !(hca->tracing & HCA_TRACES_TEXT)) ||
        (level == HCA_LOG_GUEST_ERROR && hca->off)) {
        return;
    }
    if (!(hca->tracing & HCA_TRACES_TEXT)) {
        if (!log_take(hca, &hca->logged[level])) {
            return;
        }
        log_tell_left_out(hca, level);
    }
    va_start(ap, fmt);
    log_write_line(hca, level, fmt, ap);
    va_end(ap);
}

void hca_log_end(struct hca *hca)
{
    for (enum hca_log_level level = 0; hca->ops->log && level < HCA_LOG_TRACE; level++) {
        log_tell_left_out(hca, level);
    }
}
