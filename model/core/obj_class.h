/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table of the properties of each kind of object; model/core/obj_classes.def has the rows. Code
 * that has an object asks the object's class, and need not know which kinds exist.
 */
#ifndef HCASIM_MODEL_OBJ_CLASS_H
#define HCASIM_MODEL_OBJ_CLASS_H

#include "model/core/hca.h"
#include "prm/prm.h"

struct cq;
struct wq;

/* How a doorbell on a UAR page reaches a send queue. */
struct obj_sender {
    uint32_t (*uar)(const struct obj *obj); /* the UAR page that the queue was created with */
    struct wq *(*wq)(struct obj *obj);
    /* ctrl: the first 8 bytes of the last WQE's control segment */
    void (*doorbell)(struct hca *hca, struct obj *obj, uint64_t ctrl);
};

struct obj_class {
    const char *name;
    size_t space; /* offset of the kind's table in struct hca; 0: the kind has no number space */
    uint16_t icm, host;
    /* Frees a part of a large object, as long as hca_has_room(). From the first call on,
     * the object is not used. False: there is more to free. NULL: objects of this kind are small.
     */
    bool (*trim)(struct hca *hca, struct obj *obj);
    void (*free)(struct hca *hca, struct obj *obj);
    const struct prm_object *object; /* the commands on the object; NULL: it has none */
    /* the general object type that those commands name; 0: it is no general object */
    uint16_t general_type;
    uint32_t log_max; /* field of cmd_hca_cap with log2 of the end of the number space; 0: none */
    uint64_t names; /* a bit for each kind of object that this kind refers to, and so keeps alive */
    uint64_t events;                 /* a bit for each type of affiliated event that it can raise */
    const struct obj_sender *sender; /* NULL: it has no send queue */
    /* Called when a CQ has failed, whether or not the object uses that CQ. NULL: this kind uses no
     * CQ. */
    void (*cq_failed)(struct hca *hca, struct obj *obj, const struct cq *cq);
};

extern const struct obj_class obj_classes[OBJ_KINDS];

static inline const struct obj_class *obj_class(const struct obj *obj)
{
    return &obj_classes[obj->kind];
}

/* The number spaces in the order in which a reset frees their objects. */
extern const size_t obj_spaces[]; /* offsets in struct hca */
extern const unsigned obj_n_spaces;

static inline struct obj_table *obj_space(struct hca *hca, unsigned i)
{
    return (struct obj_table *)((char *)hca + obj_spaces[i]);
}

/* Prepares all number spaces with the function's limits. */
void obj_spaces_init(struct hca *hca);

#endif
