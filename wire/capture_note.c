/* SPDX-License-Identifier: BSD-2-Clause */
/* The comment that a capture makes of a sender's note (wire/note.h). */
#include "wire/capture.h"
#include "wire/note.h"

#include <stdarg.h>

#define PROCESS_MAX 64 /* bytes of the process's word */

struct note_text {
    char *text;
    size_t len;
};

static G_GNUC_PRINTF(2, 3) void note_text_add(struct note_text *t, const char *format, ...)
{
    va_list args;
    int added;

    va_start(args, format);
    added = g_vsnprintf(t->text + t->len, WIRE_CAPTURE_NOTE - t->len, format, args);
    va_end(args);
    t->len = MIN(t->len + (size_t)added, WIRE_CAPTURE_NOTE - 1);
}

void wire_capture_note_text(char text[static WIRE_CAPTURE_NOTE], const struct wire_note *note,
                            const char *process)
{
    struct note_text t = {text, 0};

    if (note->qpn) {
        note_text_add(&t, "qp=0x%x ", note->qpn);
    }
    if (note->is_response) {
        note_text_add(&t, "request=%u ", note->request_psn);
    } else if (note->has_wqe) {
        note_text_add(&t, "wqe=%u ", note->wqe);
        if (!note->no_psn) {
            note_text_add(&t, "message=%u ", note->first_psn);
        }
    }
    if (note->function) {
        note_text_add(&t, "function=%u ", note->function);
    }
    if (process) {
        note_text_add(&t, "process=%.*s ", PROCESS_MAX, process);
    }
    if (wire_note_repeats(note) && !note->is_response) {
        note_text_add(&t, "retry=%u ", note->retry);
    }
    note_text_add(&t, "why=%s", wire_note_words(note->why));
}
