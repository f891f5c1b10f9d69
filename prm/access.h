/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and writes fields: the macros of prm/prm.h expand to these functions.
 *
 * A layout is a big-endian byte image at any alignment. An access touches the smallest 1, 2, 4 or 8
 * bytes that hold the field, in one load or store. It compiles to that, a byte swap, a shift and a
 * mask. A value too wide for its field, or an index past the end of an array, stops the program
 * with a message that names field or array. Both are mistakes of the caller, never of a guest.
 */
#ifndef HCASIM_PRM_ACCESS_H
#define HCASIM_PRM_ACCESS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Print what is wrong on stderr and abort. */
_Noreturn void prm_too_wide(const char *name, uint64_t value, unsigned width);
_Noreturn void prm_bad_index(const char *name, size_t index, size_t count);

static inline uint64_t prm_load8(const void *p)
{
    return *(const uint8_t *)p;
}

static inline uint64_t prm_load16(const void *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof(v));
    return __builtin_bswap16(v);
}

static inline uint64_t prm_load32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof(v));
    return __builtin_bswap32(v);
}

static inline uint64_t prm_load64(const void *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof(v));
    return __builtin_bswap64(v);
}

static inline void prm_store8(void *p, uint64_t value)
{
    *(uint8_t *)p = (uint8_t)value;
}

static inline void prm_store16(void *p, uint64_t value)
{
    uint16_t v = __builtin_bswap16((uint16_t)value);
    memcpy(p, &v, sizeof(v));
}

static inline void prm_store32(void *p, uint64_t value)
{
    uint32_t v = __builtin_bswap32((uint32_t)value);
    memcpy(p, &v, sizeof(v));
}

static inline void prm_store64(void *p, uint64_t value)
{
    uint64_t v = __builtin_bswap64(value);
    memcpy(p, &v, sizeof(v));
}

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the accessors swap bytes: a big-endian host needs them not to"
#endif

/*
 * The place of a scalar, as generated: its first bit (counted from the start of the layout, most
 * significant first) << 8 | its width in bits. It is a constant, so all functions below fold to one
 * access.
 */
#define PRM_FIELD_WIDTH(field) ((field)&0xff)
#define PRM_FIELD_BIT(field)   ((field) >> 8)
#ifndef PRM_INLINE
#define PRM_INLINE static inline __attribute__((always_inline))
#endif

/* Bits of the smallest aligned span that holds the field: 8, 16, 32, or 64 (dword-aligned). */
PRM_INLINE unsigned prm_span(unsigned field)
{
    unsigned bit = PRM_FIELD_BIT(field), width = PRM_FIELD_WIDTH(field);

    return bit % 8 + width <= 8     ? 8
           : bit % 16 + width <= 16 ? 16
           : bit % 32 + width <= 32 ? 32
                                    : 64;
}

/* Offset of that span, in bytes. */
PRM_INLINE size_t prm_span_offset(unsigned field)
{
    unsigned align = prm_span(field) < 32 ? prm_span(field) : 32;

    return PRM_FIELD_BIT(field) / align * align / 8;
}

/* Bits of the span below the field. */
PRM_INLINE unsigned prm_span_shift(unsigned field)
{
    return (unsigned)prm_span_offset(field) * 8 + prm_span(field) - PRM_FIELD_BIT(field) -
           PRM_FIELD_WIDTH(field);
}

PRM_INLINE uint64_t prm_field_mask(unsigned field)
{
    return UINT64_MAX >> (64 - PRM_FIELD_WIDTH(field));
}

PRM_INLINE uint64_t prm_load(const void *p, unsigned span)
{
    return span == 8    ? prm_load8(p)
           : span == 16 ? prm_load16(p)
           : span == 32 ? prm_load32(p)
                        : prm_load64(p);
}

PRM_INLINE void prm_store(void *p, unsigned span, uint64_t value)
{
    if (span == 8) {
        prm_store8(p, value);
    } else if (span == 16) {
        prm_store16(p, value);
    } else if (span == 32) {
        prm_store32(p, value);
    } else {
        prm_store64(p, value);
    }
}

/* PRM_READ() and PRM_WRITE() become these functions if the pointer has a valid type. */
PRM_INLINE const void *prm_read(const void *p)
{
    return p;
}

PRM_INLINE void *prm_write(void *p)
{
    return p;
}

PRM_INLINE uint64_t prm_get(const void *p, unsigned field)
{
    return prm_load((const uint8_t *)p + prm_span_offset(field), prm_span(field)) >>
               prm_span_shift(field) &
           prm_field_mask(field);
}

PRM_INLINE void prm_set(void *p, unsigned field, uint64_t value, const char *name)
{
    uint8_t *at = (uint8_t *)p + prm_span_offset(field);
    unsigned span = prm_span(field);
    uint64_t mask = prm_field_mask(field);

    if (__builtin_expect((value & ~mask) != 0, 0)) {
        prm_too_wide(name, value, PRM_FIELD_WIDTH(field));
    }
    value <<= prm_span_shift(field);
    if (PRM_FIELD_WIDTH(field) != span) {
        value |= prm_load(at, span) & ~(mask << prm_span_shift(field));
    }
    prm_store(at, span, value);
}

PRM_INLINE uint8_t *prm_at(const void *p, size_t offset)
{
    return (uint8_t *)(uintptr_t)p + offset;
}

/* The address of element index of an array whose first element is at offset. count 0 means an open
 * array. */
PRM_INLINE uint8_t *prm_at_index(const void *p, size_t offset, size_t stride, size_t index,
                                 size_t count, const char *name)
{
    if (__builtin_expect(count != 0 && index >= count, 0)) {
        prm_bad_index(name, index, count);
    }
    return prm_at(p, offset + stride * index);
}

#endif
