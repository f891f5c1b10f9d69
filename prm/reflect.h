/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The layouts as data: finds a structure by name, prints it, checks its reserved bits, names a
 * constant. The tables are read-only; every function may be called from any thread.
 */
#ifndef HCASIM_PRM_REFLECT_H
#define HCASIM_PRM_REFLECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct prm_struct;

struct prm_enum_value {
    uint32_t value;
    const char *name;
};

struct prm_enum {
    const char *name;
    const struct prm_enum_value *values;
    size_t n_values;
};

struct prm_field {
    const char *name;
    uint32_t bit;   /* position from the structure's start, most significant bit first */
    uint32_t width; /* bits of one element */
    int32_t count;  /* -1: not an array; 0: open array at the structure's end */
    const struct prm_struct *type; /* nested structure, or NULL for a scalar */
    const struct prm_enum *names;  /* names of its values, or NULL */
};

struct prm_struct {
    const char *name;
    size_t size; /* bytes, without an open array at the end */
    size_t n_fields;
    const struct prm_field *fields;
    const uint8_t *reserved; /* size bytes: a bit is set where the structure has no field */
};

struct prm_command;

/* A kind of object, and the commands that all objects of the kind have. */
struct prm_object {
    const char *name;
    const struct prm_command *create, *query, *destroy; /* query may be NULL */
};

enum prm_act {
    PRM_ABOUT_NONE,
    PRM_CREATES,
    PRM_QUERIES,
    PRM_MODIFIES,
    PRM_DESTROYS,
};

/* The most fields of a command's input that say that memory is in umems. */
#define PRM_UMEM_FIELDS 2

/* A command: its layouts, their required lengths, and the object that it is about. */
struct prm_command {
    uint16_t opcode;
    const char *name;
    const struct prm_struct *in, *out;
    size_t in_least, out_least;      /* bytes, without open arrays at the end */
    bool any_variant;                /* op_mod consists of bits that the command itself explains */
    const struct prm_enum *variants; /* otherwise the values of op_mod; NULL: only 0 */
    enum prm_act act;
    const struct prm_object *object; /* NULL: about no object */
    uint32_t number; /* the field with the object's number (prm_get(), prm_set()), in the input */
    bool number_in_out; /* or in the output, if the command creates the object */
    /* The fields of the input that say that rings, pages and doorbell records are in umems; 0: no
     * more. */
    uint32_t umem_valid[PRM_UMEM_FIELDS];
};

/* The structure of that name ("qpc"), or NULL. */
const struct prm_struct *prm_struct_find(const char *name);

/* The field of that name, or NULL. */
const struct prm_field *prm_field_find(const struct prm_struct *s, const char *name);

/* Value of a scalar field of at most 64 bits. index counts array elements; else it is 0. The caller
 * must make sure that the image at p reaches that far. */
uint64_t prm_field_get(const struct prm_field *f, const void *p, size_t index);

/* Number of elements of the field (1 if it is not an array) that lie completely in the first len
 * bytes of the structure. */
size_t prm_field_elements(const struct prm_field *f, size_t len);

/* Copies the fields that both layouts have with the same name in the same place, as far as the
 * from_len bytes of from reach. */
void prm_copy_common(const struct prm_struct *to_layout, void *to,
                     const struct prm_struct *from_layout, const void *from, size_t from_len);

/* How prm_dump() treats fields whose bits are all zero. */
enum prm_dump_mode {
    PRM_DUMP_ALL,
    PRM_DUMP_NONZERO,
};

/*
 * Prints the structure in the len bytes at p: a line for each field, nested structures indented.
 * Fields past len are left out. An open array is printed as far as len reaches.
 */
void prm_dump(FILE *out, const struct prm_struct *s, const void *p, size_t len,
              enum prm_dump_mode mode);

/* The same as a string, which the caller frees with free(). NULL: no memory. */
char *prm_dump_string(const struct prm_struct *s, const void *p, size_t len,
                      enum prm_dump_mode mode);

/*
 * True if all bits that no field of s covers are zero, in the first len bytes at p. If not,
 * *first_bad_byte (may be NULL) is the offset of the first byte with such a bit. Bytes past the
 * structure, and past the last whole element of its open array, are not checked: the caller checks
 * lengths. Drivers newer than a description set bits that it does not know.
 */
bool prm_reserved_clear(const struct prm_struct *s, const void *p, size_t len,
                        size_t *first_bad_byte);

/* Name of a constant, such as prm_enum_name("cmd_status", 3). NULL: it has no name. */
const char *prm_enum_name(const char *enum_name, uint64_t value);

/* The same for an enum of the table, such as a field's names. */
const char *prm_value_name(const struct prm_enum *e, uint64_t value);

/* Whether the command has a variant of that op_mod. */
bool prm_command_has_variant(const struct prm_command *command, uint16_t op_mod);

/* Name of a command opcode for logs; never NULL. */
const char *prm_cmd_op_name(uint16_t opcode);

#endif
