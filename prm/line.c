/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints layouts into one bounded line; see prm/line.h. */
#include "prm/line.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MOST_ELEMENTS 4  /* elements of an array that are printed; of a list of pages one */
#define MOST_BYTES    16 /* bytes of an array of bytes that are printed */

static const char end_mark[] = "...";

void prm_line_begin(struct prm_line *line, char *text, size_t size)
{
    *line = (struct prm_line){.text = text, .size = size};
    text[0] = '\0';
}

void prm_line_begin_json(struct prm_line *line, char *text, size_t size)
{
    prm_line_begin(line, text, size);
    line->is_json = line->is_opened = true;
}

void prm_line_begin_part(struct prm_line *part, const struct prm_line *line, size_t most)
{
    size_t left = line->size - line->len;

    *part = *line;
    part->size = line->len + (most + 1 < left ? most + 1 : left);
    part->is_full = part->is_full || part->size - part->len < sizeof(end_mark);
}

void prm_line_end_part(struct prm_line *line, const struct prm_line *part)
{
    line->len = part->len;
    line->is_full = line->is_full || (part->is_full && part->size == line->size);
}

void prm_line_open(struct prm_line *line)
{
    line->is_opened = true;
}

static void line_cut(struct prm_line *line)
{
    memcpy(line->text + line->size - sizeof(end_mark), end_mark, sizeof(end_mark));
    line->len = line->size - 1;
    line->is_full = true;
}

void prm_line_add(struct prm_line *line, const char *fmt, ...)
{
    size_t room = line->size - line->len;
    va_list ap;
    int n;

    line->is_opened = false;
    if (line->is_full) {
        return;
    }
    va_start(ap, fmt);
    n = vsnprintf(line->text + line->len, room, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= room) {
        line_cut(line);
    } else {
        line->len += (size_t)n;
    }
}

void prm_line_add_bytes(struct prm_line *line, const uint8_t *bytes, size_t len, size_t most)
{
    for (size_t i = 0; i < len && i < most && !line->is_full; i++) {
        prm_line_add(line, "%02x", bytes[i]);
    }
    if (len > most) {
        prm_line_add(line, "+%zu bytes", len - most);
    }
}

/* JSON: the text has no control characters. */
static void line_add_quoted(struct prm_line *line, const char *text)
{
    prm_line_add(line, "\"");
    for (; *text && !line->is_full; text++) {
        bool is_plain = (unsigned char)*text >= ' ';

        prm_line_add(line, *text == '"' || *text == '\\' ? "\\%c" : "%c", is_plain ? *text : ' ');
    }
    prm_line_add(line, "\"");
}

/* JSON: the name of a member. index >= 0 is part of it. */
static void line_add_member(struct prm_line *line, const char *name, long index)
{
    const char *comma = line->is_opened ? "" : ",";

    if (index < 0) {
        prm_line_add(line, "%s\"%s\":", comma, name);
    } else {
        prm_line_add(line, "%s\"%s[%ld]\":", comma, name, index);
    }
}

void prm_line_open_group(struct prm_line *line, const char *title)
{
    if (!line->is_json) {
        prm_line_add(line, " %s{", title);
        prm_line_open(line);
        return;
    }
    line->groups = line->last_group && !strcmp(line->last_group, title) ? line->groups + 1 : 0;
    line->last_group = title;
    line_add_member(line, title, line->groups ? (long)line->groups : -1);
    prm_line_add(line, "{");
    prm_line_open(line);
}

void prm_line_close_group(struct prm_line *line)
{
    prm_line_add(line, "}");
}

void prm_line_add_text(struct prm_line *line, const char *name, const char *text)
{
    line_add_member(line, name, -1);
    line_add_quoted(line, text);
}

void prm_line_add_count(struct prm_line *line, const char *name, uint64_t value)
{
    line_add_member(line, name, -1);
    prm_line_add(line, "%" PRIu64, value);
}

static void line_add_number(struct prm_line *line, uint64_t value)
{
    if (line->is_json && value >= 10) {
        prm_line_add(line, "\"0x%" PRIx64 "\"", value);
        return;
    }
    prm_line_add(line, value < 10 ? "%" PRIu64 : "0x%" PRIx64, value);
}

/* Whether a field counts, so that its values are decimal. */
static bool line_counts(const struct prm_field *f)
{
    static const char *const ends[] = {"byte_count", "byte_cnt", "len", "psn"};
    size_t len = strlen(f->name);

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        if (len >= strlen(ends[i]) && strcmp(f->name + len - strlen(ends[i]), ends[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void line_add_value(struct prm_line *line, const struct prm_field *f, uint64_t value)
{
    const char *name = f->names ? prm_value_name(f->names, value) : NULL;

    if (name && line->is_json) {
        line_add_quoted(line, name);
    } else if (name) {
        prm_line_add(line, "%s", name);
    } else if (line_counts(f)) {
        prm_line_add(line, "%" PRIu64, value);
    } else {
        line_add_number(line, value);
    }
}

void prm_line_add_name(struct prm_line *line, const char *enum_name, uint64_t value)
{
    const char *name = prm_enum_name(enum_name, value);

    if (name) {
        prm_line_add(line, "%s", name);
    } else {
        prm_line_add(line, "unknown %s 0x%" PRIx64, enum_name, value);
    }
}

/* The printed fields: those of p that differ from was. was NULL: those that are not zero. */
struct line_source {
    const uint8_t *was, *p;
    size_t len;
};

static struct line_source line_inside(const struct line_source *source, size_t offset, size_t len)
{
    return (struct line_source){source->was ? source->was + offset : NULL, source->p + offset, len};
}

/* Whether n bytes at the offset are the same as before. */
static bool line_bytes_are_same(const struct line_source *source, size_t offset, size_t n)
{
    if (source->was) {
        return memcmp(source->was + offset, source->p + offset, n) == 0;
    }
    for (size_t i = 0; i < n; i++) {
        if (source->p[offset + i]) {
            return false;
        }
    }
    return true;
}

static void line_add_all(struct prm_line *line, const struct prm_struct *s,
                         const struct line_source *source);

/* Adds the name of a field. */
static void line_add_title(struct prm_line *line, const struct prm_field *f)
{
    prm_line_add(line, "%s%s", line->is_opened ? "" : " ", f->name);
}

/* The same with the index of the element, if the field is an array. */
static void line_add_element(struct prm_line *line, const struct prm_field *f, size_t i)
{
    if (line->is_json) {
        line_add_member(line, f->name, f->count >= 0 ? (long)i : -1);
        return;
    }
    line_add_title(line, f);
    if (f->count >= 0) {
        prm_line_add(line, "[%zu]", i);
    }
}

/* Adds element i of a field that is a structure. len: its bytes. */
static void line_add_struct(struct prm_line *line, const struct prm_field *f, size_t i,
                            const struct line_source *source, size_t len)
{
    struct line_source inside = line_inside(source, (f->bit + i * f->width) / 8, len);

    line_add_element(line, f, i);
    prm_line_add(line, "{");
    prm_line_open(line);
    line_add_all(line, f->type, &inside);
    prm_line_add(line, "}");
}

static void line_add_scalar(struct prm_line *line, const struct prm_field *f, size_t i,
                            const struct line_source *source)
{
    line_add_element(line, f, i);
    if (line->is_json) {
        line_add_value(line, f, prm_field_get(f, source->p, i));
        return;
    }
    prm_line_add(line, "=");
    if (source->was) {
        line_add_value(line, f, prm_field_get(f, source->was, i));
        prm_line_add(line, "->");
    }
    line_add_value(line, f, prm_field_get(f, source->p, i));
}

static void line_add_byte_array(struct prm_line *line, const struct prm_field *f, size_t n,
                                const struct line_source *source)
{
    if (line->is_json) {
        line_add_member(line, f->name, -1);
        prm_line_add(line, "\"");
        prm_line_add_bytes(line, source->p + f->bit / 8, n, MOST_BYTES);
        prm_line_add(line, "\"");
        return;
    }
    line_add_title(line, f);
    prm_line_add(line, "=");
    if (source->was) {
        prm_line_add_bytes(line, source->was + f->bit / 8, n, MOST_BYTES);
        prm_line_add(line, "->");
    }
    prm_line_add_bytes(line, source->p + f->bit / 8, n, MOST_BYTES);
}

static bool line_is_same(const struct prm_field *f, size_t i, const struct line_source *source,
                         size_t len)
{
    if (f->type) {
        return line_bytes_are_same(source, (f->bit + i * f->width) / 8, len);
    }
    return prm_field_get(f, source->p, i) == (source->was ? prm_field_get(f, source->was, i) : 0);
}

static void line_add_field(struct prm_line *line, const struct prm_struct *s,
                           const struct prm_field *f, const struct line_source *source)
{
    size_t n = prm_field_elements(f, source->len), said = 0;

    if (n && f->type == NULL && f->count >= 0 && f->width == 8) {
        if (!line_bytes_are_same(source, f->bit / 8, n)) {
            line_add_byte_array(line, f, n, source);
        }
        return;
    }
    for (size_t i = 0; i < n && !line->is_full; i++) {
        size_t len = f->width / 8, offset = f->bit / 8;

        /* An open array at the end of a structure at the end reaches to the end. */
        if (f->type && f->count < 0 && offset + len == s->size) {
            len = source->len - offset;
        }
        if (line_is_same(f, i, source, len)) {
            continue;
        }
        if (said++ == (f->count == 0 && f->width == 64 && !f->type ? 1 : MOST_ELEMENTS)) {
            if (line->is_json) {
                line_add_member(line, f->name, (long)i);
                prm_line_add(line, "\"...\"");
            } else {
                prm_line_add(line, " %s[%zu...]", f->name, i);
            }
            return;
        }
        if (f->type) {
            line_add_struct(line, f, i, source, len);
        } else {
            line_add_scalar(line, f, i, source);
        }
    }
}

/* Whether the line's beginning has this field. */
static bool line_has_said(const struct prm_field *f)
{
    return f->names &&
           (strcmp(f->names->name, "cmd_op") == 0 || strcmp(f->names->name, "cmd_status") == 0);
}

/* Whether a field shares bits with one that precedes it in the description. */
static bool line_is_alternative(const struct prm_struct *s, const struct prm_field *f)
{
    size_t end = f->bit + (size_t)f->width * (size_t)(f->count < 0 ? 1 : f->count);

    for (const struct prm_field *e = s->fields; e < f; e++) {
        size_t e_end = e->bit + (size_t)e->width * (size_t)(e->count < 0 ? 1 : e->count);

        if (e->bit < end && f->bit < e_end) {
            return true;
        }
    }
    return false;
}

static void line_add_all(struct prm_line *line, const struct prm_struct *s,
                         const struct line_source *source)
{
    for (size_t i = 0; i < s->n_fields && !line->is_full; i++) {
        const struct prm_field *f = &s->fields[i];

        if (!line_has_said(f) && !line_is_alternative(s, f)) {
            line_add_field(line, s, f, source);
        }
    }
}

void prm_line_add_fields(struct prm_line *line, const struct prm_struct *s, const void *p,
                         size_t len)
{
    line_add_all(line, s, &(struct line_source){NULL, p, len});
}

void prm_line_add_changes(struct prm_line *line, const struct prm_struct *s, const void *was,
                          const void *is, size_t len)
{
    line_add_all(line, s, &(struct line_source){was, is, len});
}

void prm_line_add_chosen(struct prm_line *line, const struct prm_struct *s, const void *p,
                         size_t len, const char *const *names)
{
    for (; *names; names++) {
        line_add_field(line, s, prm_field_find(s, *names), &(struct line_source){NULL, p, len});
    }
}
