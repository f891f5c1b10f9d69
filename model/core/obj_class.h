/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is particular to each kind of object, as a table: model/core/obj_classes.def has the rows.
 * Who has an object asks its class, and need not know the kinds that there are.
 */
#ifndef HCASIM_MODEL_OBJ_CLASS_H
#define HCASIM_MODEL_OBJ_CLASS_H

#include "model/core/hca.h"
#include "prm/prm.h"

struct cq;
struct wq;

/* How a doorbell on a UAR page reaches a send queue. */
struct obj_sender {
    uint32_t (*uar)(const struct obj *obj); /* the page that it was created with */
    struct wq *(*wq)(struct obj *obj);
    /* ctrl: the first 8 bytes of the last WQE's control segment */
    void (*doorbell)(struct hca *hca, struct obj *obj, uint64_t ctrl);
};

struct obj_class {
    const char *name;
    size_t space; /* offset of its table in struct hca; 0: it has no number there */
    uint16_t icm, host;
    /* Frees a part of what is large, as long as hca_has_room(): from the first time on nobody uses
     * the object. False: there is more. NULL: it is small. */
    bool (*trim)(struct hca *hca, struct obj *obj);
    void (*free)(struct hca *hca, struct obj *obj);
    const struct prm_object *object; /* its commands; NULL: it has none */
    uint16_t general_type;           /* which general object those are about; 0: it is none */
    uint32_t log_max; /* the field of cmd_hca_cap that has log2 of their numbers' end; 0: none */
    uint64_t names;   /* a bit for each kind of object that it refers to, and so keeps */
    uint64_t events;  /* a bit for each type of affiliated event that it can raise */
    const struct obj_sender *sender; /* NULL: it sends nothing */
    /* A CQ has failed, which is this object's or another's. NULL: it has none. */
    void (*cq_failed)(struct hca *hca, struct obj *obj, const struct cq *cq);
};

extern const struct obj_class obj_classes[OBJ_KINDS];

static inline const struct obj_class *obj_class(const struct obj *obj)
{
    return &obj_classes[obj->kind];
}

/* Number spaces in the order in which a reset frees what they hold. */
extern const size_t obj_spaces[]; /* offsets in struct hca */
extern const unsigned obj_n_spaces;

static inline struct obj_table *obj_space(struct hca *hca, unsigned i)
{
    return (struct obj_table *)((char *)hca + obj_spaces[i]);
}

/* Prepares all number spaces as the function's limits say. */
void obj_spaces_init(struct hca *hca);

#endif
