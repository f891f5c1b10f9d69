/* SPDX-License-Identifier: BSD-2-Clause */
/* Walks the generated tables: lookup, printing, the check of reserved bits. */
#include "prm/reflect.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "prm/access.h"
#include "prm/table.h"

_Noreturn void prm_too_wide(const char *name, uint64_t value, unsigned width)
{
    fprintf(stderr, "prm: value 0x%" PRIx64 " does not fit the %u bits of %s\n", value, width,
            name);
    abort();
}

_Noreturn void prm_bad_index(const char *name, size_t index, size_t count)
{
    fprintf(stderr, "prm: index %zu is past the %zu elements of %s\n", index, count, name);
    abort();
}

static int reflect_compare_struct(const void *key, const void *entry)
{
    return strcmp(key, ((const struct prm_struct *)entry)->name);
}

static int reflect_compare_enum(const void *key, const void *entry)
{
    return strcmp(key, ((const struct prm_enum *)entry)->name);
}

const struct prm_struct *prm_struct_find(const char *name)
{
    return bsearch(name, prm_structs, prm_n_structs, sizeof(prm_structs[0]),
                   reflect_compare_struct);
}

const struct prm_field *prm_field_find(const struct prm_struct *s, const char *name)
{
    for (size_t i = 0; i < s->n_fields; i++) {
        if (strcmp(s->fields[i].name, name) == 0) {
            return &s->fields[i];
        }
    }
    return NULL;
}

uint64_t prm_field_get(const struct prm_field *f, const void *p, size_t index)
{
    const uint8_t *bytes = p;
    size_t first = f->bit + index * f->width;
    uint64_t value = 0;

    for (size_t bit = first; bit < first + f->width; bit++) {
        value = value << 1 | (bytes[bit / 8] >> (7 - bit % 8) & 1);
    }
    return value;
}

static void reflect_copy_bits(uint8_t *to, const uint8_t *from, size_t first, size_t n)
{
    for (size_t bit = first; bit < first + n; bit++) {
        uint8_t mask = (uint8_t)(0x80 >> bit % 8);

        to[bit / 8] = (uint8_t)((to[bit / 8] & ~mask) | (from[bit / 8] & mask));
    }
}

void prm_copy_common(const struct prm_struct *to_layout, void *to,
                     const struct prm_struct *from_layout, const void *from, size_t from_len)
{
    for (size_t i = 0; i < to_layout->n_fields; i++) {
        const struct prm_field *t = &to_layout->fields[i];
        const struct prm_field *f = prm_field_find(from_layout, t->name);
        size_t bits = t->width * (size_t)(t->count < 0 ? 1 : t->count);

        if (f && f->bit == t->bit && f->width == t->width && f->count == t->count &&
            t->bit + bits <= from_len * 8) {
            reflect_copy_bits(to, from, t->bit, bits);
        }
    }
}

const char *prm_value_name(const struct prm_enum *e, uint64_t value)
{
    for (size_t i = 0; i < e->n_values; i++) {
        if (e->values[i].value == value) {
            return e->values[i].name;
        }
    }
    return NULL;
}

const char *prm_enum_name(const char *enum_name, uint64_t value)
{
    const struct prm_enum *e =
        bsearch(enum_name, prm_enums, prm_n_enums, sizeof(prm_enums[0]), reflect_compare_enum);

    return e ? prm_value_name(e, value) : NULL;
}

bool prm_command_has_variant(const struct prm_command *command, uint16_t op_mod)
{
    return command->any_variant ||
           (command->variants ? prm_value_name(command->variants, op_mod) != NULL : op_mod == 0);
}

const char *prm_cmd_op_name(uint16_t opcode)
{
    const char *name = prm_enum_name("cmd_op", opcode);

    return name ? name : "unknown";
}

size_t prm_field_elements(const struct prm_field *f, size_t len)
{
    size_t bits = len * 8;
    size_t fit = bits > f->bit && f->width != 0 ? (bits - f->bit) / f->width : 0;
    size_t count = f->count < 0 ? 1 : (size_t)f->count;

    return f->count != 0 && fit > count ? count : fit;
}

static bool reflect_all_zero(const struct prm_field *f, const uint8_t *p, size_t n)
{
    size_t bit = f->bit;
    size_t end = f->bit + n * f->width;

    while (bit < end) {
        if (bit % 8 == 0 && end - bit >= 8) {
            if (p[bit / 8] != 0) {
                return false;
            }
            bit += 8;
        } else {
            if (p[bit / 8] & 0x80 >> bit % 8) {
                return false;
            }
            bit++;
        }
    }
    return true;
}

static void reflect_dump(FILE *out, const struct prm_struct *s, const uint8_t *p, size_t len,
                         enum prm_dump_mode mode, int indent)
{
    for (size_t i = 0; i < s->n_fields; i++) {
        const struct prm_field *f = &s->fields[i];
        size_t n = prm_field_elements(f, len);

        if (n == 0 || (mode == PRM_DUMP_NONZERO && reflect_all_zero(f, p, n))) {
            continue;
        }
        if (f->type == NULL && f->count >= 0 && f->width == 8) {
            fprintf(out, "%*s%s:", indent, "", f->name);
            for (size_t j = 0; j < n; j++) {
                fprintf(out, "%s%02x", j % 4 == 0 ? " " : "", p[f->bit / 8 + j]);
            }
            fputc('\n', out);
            continue;
        }
        for (size_t j = 0; j < n; j++) {
            fprintf(out, "%*s%s", indent, "", f->name);
            if (f->count >= 0) {
                fprintf(out, "[%zu]", j);
            }
            if (f->type) {
                size_t offset = (f->bit + j * f->width) / 8;
                size_t size = f->width / 8;

                /* If a nested structure is the last field and ends with an open array, that array
                 * reaches to the end. */
                if (f->count < 0 && offset + size == s->size) {
                    size = len - offset;
                }
                fputs(":\n", out);
                reflect_dump(out, f->type, p + offset, size, mode, indent + 2);
                continue;
            }
            uint64_t value = prm_field_get(f, p, j);
            const char *name = f->names ? prm_value_name(f->names, value) : NULL;

            fprintf(out, ": 0x%" PRIx64, value);
            if (name) {
                fprintf(out, " (%s)", name);
            }
            fputc('\n', out);
        }
    }
}

void prm_dump(FILE *out, const struct prm_struct *s, const void *p, size_t len,
              enum prm_dump_mode mode)
{
    fprintf(out, "%s\n", s->name);
    reflect_dump(out, s, p, len, mode, 2);
}

char *prm_dump_string(const struct prm_struct *s, const void *p, size_t len,
                      enum prm_dump_mode mode)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (out == NULL) {
        return NULL;
    }
    prm_dump(out, s, p, len, mode);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static bool reflect_masked_clear(const uint8_t *mask, const uint8_t *p, size_t n, size_t base,
                                 size_t *first_bad_byte)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] & mask[i]) {
            if (first_bad_byte) {
                *first_bad_byte = base + i;
            }
            return false;
        }
    }
    return true;
}

/* Checks the reserved bits of the open array that ends s. base is the offset of s in the outermost
 * structure. */
static bool reflect_tail_clear(const struct prm_struct *s, const uint8_t *p, size_t len,
                               size_t base, size_t *first_bad_byte)
{
    for (size_t i = 0; i < s->n_fields; i++) {
        const struct prm_field *f = &s->fields[i];
        size_t offset = f->bit / 8;

        if (f->type == NULL) {
            continue;
        }
        if (f->count < 0 && offset + f->type->size == s->size && offset < len) {
            if (!reflect_tail_clear(f->type, p + offset, len - offset, base + offset,
                                    first_bad_byte)) {
                return false;
            }
        }
        for (size_t j = 0; f->count == 0 && j < prm_field_elements(f, len); j++) {
            size_t at = offset + j * f->type->size;

            if (!reflect_masked_clear(f->type->reserved, p + at, f->type->size, base + at,
                                      first_bad_byte)) {
                return false;
            }
        }
    }
    return true;
}

bool prm_reserved_clear(const struct prm_struct *s, const void *p, size_t len,
                        size_t *first_bad_byte)
{
    size_t fixed = len < s->size ? len : s->size;

    return reflect_masked_clear(s->reserved, p, fixed, 0, first_bad_byte) &&
           reflect_tail_clear(s, p, len, 0, first_bad_byte);
}
