/* SPDX-License-Identifier: BSD-2-Clause */
/* Calculates with the elements of a list; see model/memory/calc.h. */
#include "model/memory/calc.h"
#include <string.h>
#include <glib.h>

/* The one result that is no number. A processor's choice depends on the order of the operands. */
#define CALC_NOT_A_NUMBER 0x7ff8000000000000ull

static uint64_t calc_load(const uint8_t *at)
{
    uint64_t number;

    memcpy(&number, at, sizeof(number));
    return GUINT64_FROM_BE(number);
}

static void calc_store(uint8_t *at, uint64_t number)
{
    number = GUINT64_TO_BE(number);
    memcpy(at, &number, sizeof(number));
}

static uint64_t calc_add_fp(uint64_t a, uint64_t b)
{
    double x, y;
    uint64_t sum;

    memcpy(&x, &a, sizeof(x));
    memcpy(&y, &b, sizeof(y));
    x += y;
    memcpy(&sum, &x, sizeof(sum));
    return x == x ? sum : CALC_NOT_A_NUMBER;
}

static void calc_one(enum calc_op op, uint8_t *sum, const uint8_t *element)
{
    uint64_t a = calc_load(sum), b = calc_load(element);

    switch (op) {
    case CALC_ADD:
        calc_store(sum, a + b);
        break;
    case CALC_ADD_FP:
        calc_store(sum, calc_add_fp(a, b));
        break;
    case CALC_MAXLOC:
        if (b > a || (b == a && calc_load(element + 8) < calc_load(sum + 8))) {
            memcpy(sum, element, CALC_ELEMENT);
        }
        break;
    case CALC_AND:
        calc_store(sum, a & b);
        break;
    case CALC_OR:
        calc_store(sum, a | b);
        break;
    default: /* CALC_XOR */
        calc_store(sum, a ^ b);
        break;
    }
}

static G_GNUC_NO_INLINE void calc_fold_each(enum calc_op op, uint8_t sum[CALC_ELEMENT],
                                            const uint8_t *elements, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        calc_one(op, sum, elements + i * CALC_ELEMENT);
    }
}

/* The settings of calculations: to nearest, nothing is flushed to 0, no traps, no flags. */
#define CALC_MXCSR 0x1f80

/* With no VM, the device works in threads of a program. These may round in another direction, flush
 * small numbers to 0, or trap. */
static void calc_fold_fp(uint8_t sum[CALC_ELEMENT], const uint8_t *elements, size_t n)
{
#ifdef __x86_64__
    unsigned threads = __builtin_ia32_stmxcsr();

    __builtin_ia32_ldmxcsr(CALC_MXCSR);
#endif
    calc_fold_each(CALC_ADD_FP, sum, elements, n);
#ifdef __x86_64__
    __builtin_ia32_ldmxcsr(threads);
#endif
}

void calc_fold(enum calc_op op, uint8_t sum[CALC_ELEMENT], const uint8_t *elements, size_t n)
{
    if (op == CALC_ADD_FP) {
        calc_fold_fp(sum, elements, n);
    } else {
        calc_fold_each(op, sum, elements, n);
    }
}

void calc_begin(enum calc_op op, uint8_t sum[CALC_ELEMENT], const uint8_t *elements, size_t n)
{
    memcpy(sum, elements, CALC_ELEMENT);
    calc_fold(op, sum, elements + CALC_ELEMENT, n - 1);
}
