/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers on wires, whatever holds them. */
#include "wire/number.h"

#include <unistd.h>

struct wire_number *wire_number_unheld(unsigned n)
{
    struct wire_number *number = g_new0(struct wire_number, 1);

    number->number = n;
    number->pid = getpid();
    return number;
}

unsigned wire_number_get(const struct wire_number *number)
{
    return number->number;
}

bool wire_number_is_held(const struct wire_number *number)
{
    return number->pid == getpid() && (!number->is_held || number->is_held(number));
}

void wire_number_release(struct wire_number *number)
{
    if (number->end) {
        number->end(number, number->pid == getpid());
    } else {
        g_free(number);
    }
}
