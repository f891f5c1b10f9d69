/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbered objects: the one kind of table that QPs, CQs, mkeys and all others live in.
 *
 * An object embeds struct obj first. Life: made by obj_new(), entered with
 * obj_insert() (which gives it its number), or both by obj_make(), used, and taken out by
 * obj_remove() when nobody references it any more. Numbers are handed out in rotation, so that a
 * freed number is not reused at once and a stale packet or doorbell finds nothing.
 */
#ifndef HCASIM_MODEL_OBJ_H
#define HCASIM_MODEL_OBJ_H

#include <stdbool.h>
#include <stdint.h>
#include "model/core/ledger.h"

/* What an object is: model/core/obj_classes.def. */
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
    uint32_t num;   /* its number in its table */
    uint32_t refs;  /* how often others name it; it cannot be destroyed while not 0 */
    uint32_t names; /* how often it names others */
    uint16_t uid;   /* user context that created it; 0 is the kernel's */
    uint8_t kind;   /* enum obj_kind */
    uint32_t size;  /* bytes, as obj_new() made it */
};

struct hca;

/* A zeroed object of size bytes, which begins with a struct obj, in no table yet. NULL: the
 * function may have no more (model/core/ledger.h). */
void *obj_new(struct hca *hca, enum obj_kind kind, uint16_t uid, size_t size);
/* The same in its kind's table, under a free number. NULL: refused, or there is none. */
void *obj_make(struct hca *hca, enum obj_kind kind, uint16_t uid, size_t size);
/* It must be in no table, and neither name others nor be named by any. */
void obj_free(struct hca *hca, struct obj *obj);
/* Takes it out of its kind's table, and frees it. */
void obj_end(struct hca *hca, struct obj *obj);

/*
 * obj names target from now on, which is kept by that, or does no more; of no target, nothing is
 * counted. Kinds that name others are listed in their rows of model/core/obj_classes.def (NAMES).
 */
void obj_ref(struct obj *obj, struct obj *target);
void obj_unref(struct obj *obj, struct obj *target);
/* Either of them: by is 1 or -1. */
static inline void obj_count(struct obj *obj, struct obj *target, int by)
{
    if (by > 0) {
        obj_ref(obj, target);
    } else {
        obj_unref(obj, target);
    }
}

#define OBJ_CHUNK 1024

/* Numbers are reserved by the word of bits. */
#define OBJ_LOG_RESERVED 6

/* Objects of OBJ_CHUNK numbers that follow one another. */
struct obj_chunk {
    struct obj *slot[OBJ_CHUNK];
    uint64_t there[OBJ_CHUNK / 64]; /* a bit per slot: it has an object */
    uint64_t used[OBJ_CHUNK / 64];  /* or is reserved */
    uint16_t reserved;              /* a bit per word of used */
    uint32_t objects, count;        /* bits of there, of used */
};

/* Entering, removing and walking cost no more the fuller the table is, or the more numbers were
 * given back: bits say which slots and which chunks are worth a look. */
struct obj_table {
    struct obj_chunk **chunks; /* [num >> 10]; a chunk is there while a number of it is used */
    uint64_t *some, *full;     /* a bit per chunk: it has objects; it has no free number */
    uint32_t first, end;       /* numbers are first..end-1 */
    uint32_t start;            /* the first that is given out after a reset */
    uint32_t next;             /* where the search for a free number starts */
    uint32_t next_reserved;    /* and for free ones to reserve */
    uint32_t count;            /* objects */
    struct ledger *ledger;     /* pays for the chunks */
    uint64_t steps;            /* words of bits looked at, ever: the table's work, for tests */
};

/* Numbers first to end - 1, end at most 1 << 24. */
void obj_table_init(struct obj_table *table, struct ledger *ledger, uint32_t first, uint32_t end);
/* From now on the first number that is given out after a reset is first + num, around the end; the
 * table must be empty. */
void obj_table_start(struct obj_table *table, uint32_t num);
/* As after obj_table_init(), or the last obj_table_start(); it must be empty. */
void obj_table_reset(struct obj_table *table);
/* Frees the table itself; it must be empty. */
void obj_table_clear(struct obj_table *table);

/* Gives obj a free number and enters it. False: the table is full, or the ledger. */
bool obj_insert(struct obj_table *table, struct obj *obj);
/* Enters obj under a number of the caller's choice, which may be reserved. False: taken or out of
 * range, or the ledger is full. */
bool obj_insert_at(struct obj_table *table, struct obj *obj, uint32_t num);
void obj_remove(struct obj_table *table, struct obj *obj);

/*
 * Reserves 1 << OBJ_LOG_RESERVED numbers in a row, free ones, from *first on, a multiple of as
 * many: obj_insert() does not give them out. False: there are none, or the ledger is full. They are
 * given back before the table is reset; objects that have one keep it.
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

/* As obj_find(), but only an object of that kind. */
static inline void *obj_find_kind(const struct obj_table *table, uint32_t num, enum obj_kind kind)
{
    struct obj *obj = obj_find(table, num);

    return obj && obj->kind == kind ? obj : 0;
}

/* The object with the lowest number >= num, or NULL. Who removes objects on the way goes on with
 * the number behind the last one. */
struct obj *obj_next(struct obj_table *table, uint32_t num);

/* Must not remove obj. */
#define OBJ_TABLE_FOREACH(obj, table)                                                              \
    for (struct obj *obj = obj_next(table, 0); obj; obj = obj_next(table, obj->num + 1))

#endif
