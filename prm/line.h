/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints layouts into one line of text that has a bound, by the names of fields and values. The
 * trace of a device consists of such lines (model/core/trace.h).
 *
 *     st=RC pd=0x12 cqn_snd=0x80 primary_address_path{hop_limit=0xff vhca_port_num=1}
 *
 * Fields that are zero are left out. A value that has a name is printed as that name. Lengths and
 * PSNs are decimal; other numbers from 10 on are hexadecimal.
 *
 * A line can be the members of a JSON object instead:
 *
 *     "st":"RC","pd":"0x12","primary_address_path":{"hop_limit":"0xff","vhca_port_num":1}
 *
 * Names are strings, and so are hexadecimal numbers, because JavaScript has no integers of 64 bits.
 */
#ifndef HCASIM_PRM_LINE_H
#define HCASIM_PRM_LINE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "prm/reflect.h"

/* A text of at most size - 1 characters. If more is added, the text ends with "...", and what is
 * added afterwards is ignored. */
struct prm_line {
    char *text; /* always ends with a zero byte */
    size_t size, len;
    bool is_full;
    bool is_opened; /* the next field has no space (JSON: no comma) before it */
    bool is_json;
    const char *last_group; /* JSON: the title of the last group, and how many came in a row */
    unsigned groups;
};

/* size: the bytes at text, at least 4. */
void prm_line_begin(struct prm_line *line, char *text, size_t size);
/* The same for the members of a JSON object. If they are too many, is_full says so, and the text is
 * no JSON. */
void prm_line_begin_json(struct prm_line *line, char *text, size_t size);
/* Opens a line inside of a line, with at most most characters, and closes it again: for a part that
 * must leave space for others. */
void prm_line_begin_part(struct prm_line *part, const struct prm_line *line, size_t most);
void prm_line_end_part(struct prm_line *line, const struct prm_line *part);

void prm_line_add(struct prm_line *line, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Marks the place behind an opened brace: the next field has no space before it. */
void prm_line_open(struct prm_line *line);
/* Opens and closes a group: " title{" to "}". In JSON, groups of the same title in a row get an
 * index, because a member's name must be unique. */
void prm_line_open_group(struct prm_line *line, const char *title);
void prm_line_close_group(struct prm_line *line);
/* JSON only: adds a member whose value is a string, or a number. */
void prm_line_add_text(struct prm_line *line, const char *name, const char *text);
void prm_line_add_count(struct prm_line *line, const char *name, uint64_t value);
/* Adds bytes in hexadecimal, at most most of them. */
void prm_line_add_bytes(struct prm_line *line, const uint8_t *bytes, size_t len, size_t most);
/* Adds the name of a constant; if it has none, its enum's name and the value. */
void prm_line_add_name(struct prm_line *line, const char *enum_name, uint64_t value);

/*
 * Adds the fields of the structure in the len bytes at p that are not zero, each with a space
 * before it. Fields that end past len are left out. Of fields that share bits, the first one in the
 * description is printed. Opcode and status of a command are left out: the line's beginning has
 * them. Of an array, the first elements that are not zero are printed.
 */
void prm_line_add_fields(struct prm_line *line, const struct prm_struct *s, const void *p,
                         size_t len);

/* Adds the fields that differ between was and is, as "name=old->new". Both have len bytes. */
void prm_line_add_changes(struct prm_line *line, const struct prm_struct *s, const void *was,
                          const void *is, size_t len);

/* As prm_line_add_fields(), for the fields with these names, in this order. The last name is
 * NULL. */
void prm_line_add_chosen(struct prm_line *line, const struct prm_struct *s, const void *p,
                         size_t len, const char *const *names);

#endif
