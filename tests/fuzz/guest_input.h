/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fuzzer's bytes, read as what a guest does.
 *
 * A run starts with a function that was reset and brought up, with one object of every kind
 * (tests/sim/examples.h). That takes longer than most runs, so a few share a function; with
 * FUZZ_FRESH=1 in the environment each has its own, to look into what was found. Bytes choose what
 * is sent and where it differs from what a good driver sends; object numbers and addresses can be
 * named by index, so that the fuzzer need not guess them.
 */
#ifndef HCASIM_TESTS_GUEST_INPUT_H
#define HCASIM_TESTS_GUEST_INPUT_H

#include "tests/sim/examples.h"

struct guest_input {
    const uint8_t *data;
    size_t size;
    struct two_hcas *t;
    struct guest guest;
    struct storm names; /* its lists only */
    unsigned turns;     /* of the world that the input has left */
    bool fresh;         /* the function is a new one: nothing but the guest's objects is there */
};

/* The same world each time. */
struct guest_input *guest_input_start(const uint8_t *data, size_t size);

/* The next bytes; zeros behind the end. */
uint8_t input_u8(struct guest_input *in);
uint16_t input_u16(struct guest_input *in);
uint32_t input_u32(struct guest_input *in);

/* Overwrites words of p as the input says. */
void input_patch(struct guest_input *in, uint8_t *p, size_t len);

/* Lets everything happen that can happen now, or in ns nanoseconds; completions of the guest's CQ
 * are taken. Ends before the device does when the input's turns are used up: one can make work for
 * ever. */
void input_settle(struct guest_input *in);
void input_advance(struct guest_input *in, uint64_t ns);

#endif
