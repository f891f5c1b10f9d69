/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbered objects: the table in which QPs, CQs, mkeys and all other objects live.
 *
 * An object has a struct obj as its first member. obj_new() makes it, obj_insert() enters it in a
 * table and gives it its number; obj_make() does both. obj_remove() takes it out when no object
 * references it any more. Numbers are handed out in rotation, so that a freed number is not reused
 * at once and a stale packet or doorbell finds nothing.
 */
#ifndef HCASIM_MODEL_OBJ_H
#define HCASIM_MODEL_OBJ_H

#include <stdbool.h>
#include <stdint.h>
#include "model/core/ledger.h"

/* The kinds of objects: model/core/obj_classes.def. */
enum obj_kind {
    OBJ_NONE,
#define SPACE(...)
#define KIND(kind, ...)    OBJ_##kind,
#define OWN(kind, ...)     OBJ_##kind,
#define GENERAL(kind, ...) OBJ_##kind,
#define PART(kind, ...)    OBJ_##kind,
#include "model/core/obj_classes.def"
#undef SPACE
#undef KIND
#undef PART
    OBJ_KINDS
};

struct obj {
    uint32_t num;   /* the object's number in its table */
    uint32_t refs;  /* how many times others name it; while not 0, it cannot be destroyed */
    uint32_t names; /* how many times it names others */
    uint16_t uid;   /* user context that created it; 0 is the kernel */
    uint8_t kind;   /* enum obj_kind */
    uint32_t size;  /* size in bytes, as given to obj_new() */
};

struct hca;

/* A zeroed object of size bytes, which begins with a struct obj and is in no table yet. NULL: the
 * function's memory is used up (model/core/ledger.h). */
void *obj_new(struct hca *hca, enum obj_kind kind, uint16_t uid, size_t size);
/* The same, entered in its kind's table under a free number. NULL: the ledger refuses it, or no
 * number is free. */
void *obj_make(struct hca *hca, enum obj_kind kind, uint16_t uid, size_t size);
/* The object must be in no table, must not name others and must not be named by others. */
void obj_free(struct hca *hca, struct obj *obj);
/* Takes the object out of its kind's table, and frees it. */
void obj_end(struct hca *hca, struct obj *obj);

/*
 * obj_ref(): obj names target from now on, so target cannot be destroyed. obj_unref(): obj names
 * target no more. If target is NULL, nothing is counted. For each kind, its row in
 * model/core/obj_classes.def lists the kinds that it may name (NAME).
 */
void obj_ref(struct obj *obj, struct obj *target);
void obj_unref(struct obj *obj, struct obj *target);
/* Does either of the two: by is 1 or -1. */
static inline void obj_count(struct obj *obj, struct obj *target, int by)
{
    if (by > 0) {
        obj_ref(obj, target);
    } else {
        obj_unref(obj, target);
    }
}

#define OBJ_CHUNK 1024

/* log2 of the numbers that are reserved at a time: one word of bits. */
#define OBJ_LOG_RESERVED 6

/* The objects of OBJ_CHUNK consecutive numbers. */
struct obj_chunk {
    struct obj *slot[OBJ_CHUNK];
    uint64_t there[OBJ_CHUNK / 64]; /* a bit per slot: the slot has an object */
    uint64_t used[OBJ_CHUNK / 64];  /* a bit per slot: the slot has an object or is reserved */
    uint16_t reserved;              /* a bit per word of used: the word is reserved */
    uint32_t objects, count;        /* number of bits set in there; in used */
};

/* The cost of entering, removing and walking does not grow with the number of objects or of freed
 * numbers: bits say which slots and which chunks need to be looked at. */
struct obj_table {
    struct obj_chunk **chunks; /* [num >> 10]; a chunk exists while one of its numbers is used */
    uint64_t *some, *full;     /* a bit per chunk: it has objects; it has no free number */
    uint32_t first, end;       /* numbers are first..end-1 */
    uint32_t start;            /* the first number that is given out after a reset */
    uint32_t next;             /* where the search for a free number starts */
    uint32_t next_reserved;    /* where the search for numbers to reserve starts */
    uint32_t count;            /* objects */
    struct ledger *ledger;     /* pays for the chunks */
    uint64_t steps; /* words of bits examined so far: measures the table's work, for tests */
};

/* Sets up a table for the numbers first to end - 1; end is at most 1 << 24. */
void obj_table_init(struct obj_table *table, struct ledger *ledger, uint32_t first, uint32_t end);
/* Sets the first number that is given out after a reset to first + num, modulo the size of the
 * table. The table must be empty. */
void obj_table_start(struct obj_table *table, uint32_t num);
/* Brings the table to its state after obj_table_init() or the last obj_table_start(). The table
 * must be empty. */
void obj_table_reset(struct obj_table *table);
/* Frees the table itself; it must be empty. */
void obj_table_clear(struct obj_table *table);

/* Gives obj a free number and enters it. False: the table or the ledger is full. */
bool obj_insert(struct obj_table *table, struct obj *obj);
/* Enters obj under a number of the caller's choice, which may be reserved. False: the number is
 * taken or out of range, or the ledger is full. */
bool obj_insert_at(struct obj_table *table, struct obj *obj, uint32_t num);
void obj_remove(struct obj_table *table, struct obj *obj);

/*
 * Reserves 2^OBJ_LOG_RESERVED consecutive free numbers. *first receives the first number, a
 * multiple of 2^OBJ_LOG_RESERVED. obj_insert() does not give reserved numbers out. False: there are
 * no such numbers, or the ledger is full. The caller must unreserve the numbers before the table is
 * reset; objects that have such a number keep it.
 */
bool obj_reserve(struct obj_table *table, uint32_t *first);
void obj_unreserve(struct obj_table *table, uint32_t first);

static inline struct obj *obj_find(const struct obj_table *table, uint32_t num)
{
    const struct obj_chunk *chunk;

    if (num >= table->end) {
        return 0;
    }
    chunk = table->chunks[num / OBJ_CHUNK];
    return chunk ? chunk->slot[num % OBJ_CHUNK] : 0;
}

/* As obj_find(), but finds only an object of that kind. */
static inline void *obj_find_kind(const struct obj_table *table, uint32_t num, enum obj_kind kind)
{
    struct obj *obj = obj_find(table, num);

    return obj && obj->kind == kind ? obj : 0;
}

/* The object with the lowest number >= num, or NULL. A caller that removes objects during a walk
 * continues with the number after the last one. */
struct obj *obj_next(struct obj_table *table, uint32_t num);

/* The body must not remove obj. */
#define OBJ_TABLE_FOREACH(obj, table)                                                              \
    for (struct obj *obj = obj_next(table, 0); obj; obj = obj_next(table, obj->num + 1))

#endif
