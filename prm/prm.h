/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gives access to every layout of the programming interface, by name. Code includes no other header
 * of prm/, except reflect.h.
 *
 * Layouts are described in prm/ (*.prm, grammar: prm/README.md); structure and field names are
 * those of the Linux driver's mlx5_ifc.h. A layout is a big-endian byte image of any alignment,
 * struct prm_qpc, an array of bytes; values are host numbers. A pointer must have PRM_SIZE bytes
 * behind it, because the macros do not know how long a buffer is. Declare an image as an array of
 * one element, struct prm_qpc qpc[1], so that its name is a pointer.
 *
 *   PRM_GET(qpc, p, state)            uint32_t, or uint64_t for fields wider than 32 bits
 *   PRM_SET(qpc, p, state, v)         aborts if v does not fit the field
 *   PRM_GET_AT(s, p, array, i)        element of an array of scalars
 *   PRM_SET_AT(s, p, array, i, v)
 *   PRM_PTR(create_qp_in, p, qpc)     pointer to a nested structure, struct prm_qpc *; or void * to
 *                                     another byte-aligned field; const if p's type is
 *   PRM_PTR_AT(s, p, array, i)        pointer to element i; open arrays have no upper bound
 *   PRM_SIZE(qpc)                     size in bytes, without an open array at the end
 *   PRM_OFFSET(create_qp_in, pas)     offset of a byte-aligned field, in bytes
 *   PRM_COUNT(s, array)               number of elements of an array, 0 for an open array
 *   PRM_STRIDE(s, array)              bytes from one element of an array to the next
 *
 *   PRM_COMMAND(CREATE_QP)            const struct prm_command * (prm/reflect.h): layouts, lengths
 *   PRM_OBJECT(QP)                    const struct prm_object *: the commands of a kind of object
 *
 * Constants are PRM_<ENUM>_<NAME>, for example PRM_CMD_OP_QUERY_HCA_CAP.
 */
#ifndef HCASIM_PRM_PRM_H
#define HCASIM_PRM_PRM_H

#include "prm/access.h"
#include "prm/prm_layout.h"
#include "prm/reflect.h"

/* clang-format off */
/*
 * The types that p may have: a pointer to the named layout, or void *. A pointer to another layout,
 * to bytes, or to const where something is written does not compile. PRM_FIELD_AT() casts at, which
 * lies in the memory of p, to a pointer of the field's type, which is const if p's type is.
 * (cppcheck does not know _Generic.)
 */
#ifdef __cppcheck__
#define PRM_READ(s, p)            prm_read(p)
#define PRM_WRITE(s, p)           prm_write(p)
#define PRM_FIELD_AT(s, p, f, at) ((PRM_##s##_##f##_TYPE *)(at))
#else
#define PRM_READ(s, p)                                                                             \
    _Generic((p),                                                                                  \
             struct prm_##s *: prm_read, const struct prm_##s *: prm_read,                         \
             void *: prm_read, const void *: prm_read)(p)
#define PRM_WRITE(s, p)                                                                            \
    _Generic((p), struct prm_##s *: prm_write, void *: prm_write)(p)
#define PRM_FIELD_AT(s, p, f, at)                                                                  \
    ((__typeof__(_Generic((p),                                                                     \
                          struct prm_##s *: (PRM_##s##_##f##_TYPE *)0,                             \
                          const struct prm_##s *: (const PRM_##s##_##f##_TYPE *)0,                 \
                          void *: (PRM_##s##_##f##_TYPE *)0,                                       \
                          const void *: (const PRM_##s##_##f##_TYPE *)0)))(at))
#endif
/* clang-format on */

#define PRM_GET(s, p, f)                                                                           \
    __builtin_choose_expr(PRM_FIELD_WIDTH(PRM_##s##_##f##_FIELD) > 32,                             \
                          prm_get(PRM_READ(s, p), PRM_##s##_##f##_FIELD),                          \
                          (uint32_t)prm_get(PRM_READ(s, p), PRM_##s##_##f##_FIELD))
#define PRM_SET(s, p, f, v) prm_set(PRM_WRITE(s, p), PRM_##s##_##f##_FIELD, v, #s "." #f)

/* An element is accessed as a scalar at the start of its own bytes. */
#define PRM_ELEMENT(s, p, f, i)                                                                    \
    prm_at_index(p, PRM_OFFSET(s, f), PRM_STRIDE(s, f), i, PRM_COUNT(s, f), #s "." #f)
#define PRM_GET_AT(s, p, f, i)                                                                     \
    __builtin_choose_expr(                                                                         \
        PRM_FIELD_WIDTH(PRM_##s##_##f##_ARRAY) > 32,                                               \
        prm_get(PRM_ELEMENT(s, PRM_READ(s, p), f, i), PRM_FIELD_WIDTH(PRM_##s##_##f##_ARRAY)),     \
        (uint32_t)prm_get(PRM_ELEMENT(s, PRM_READ(s, p), f, i),                                    \
                          PRM_FIELD_WIDTH(PRM_##s##_##f##_ARRAY)))
#define PRM_SET_AT(s, p, f, i, v)                                                                  \
    prm_set(PRM_ELEMENT(s, PRM_WRITE(s, p), f, i), PRM_FIELD_WIDTH(PRM_##s##_##f##_ARRAY), v,      \
            #s "." #f)

#define PRM_SIZE(s)            ((size_t)PRM_##s##_SIZE)
#define PRM_OFFSET(s, f)       ((size_t)PRM_##s##_##f##_OFFSET)
#define PRM_COUNT(s, f)        ((size_t)PRM_##s##_##f##_COUNT)
#define PRM_STRIDE(s, f)       ((size_t)PRM_##s##_##f##_STRIDE)
#define PRM_COMMAND(op)        (&prm_command_##op)
#define PRM_OBJECT(kind)       (&prm_object_##kind)
#define PRM_PTR(s, p, f)       PRM_FIELD_AT(s, p, f, prm_at(p, PRM_OFFSET(s, f)))
#define PRM_PTR_AT(s, p, f, i) PRM_FIELD_AT(s, p, f, PRM_ELEMENT(s, p, f, i))

#endif
