/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a fuzzer's bytes as the actions of a guest.
 *
 * A run starts with a function that was reset and brought up, with one object of every kind
 * (tests/sim/examples.h). That takes longer than most runs, so a few runs share a function. With
 * FUZZ_FRESH=1 in the environment each run has its own, which helps when a finding is investigated.
 * The bytes choose what is sent and where it differs from what a correct driver sends. Object
 * numbers and addresses can be named by index, so the fuzzer need not guess them.
 */
#ifndef HCASIM_TESTS_GUEST_INPUT_H
#define HCASIM_TESTS_GUEST_INPUT_H

#include "tests/sim/examples.h"

struct guest_input {
    const uint8_t *data;
    size_t size;
    struct two_hcas *t;
    struct guest guest;
    struct storm names; /* only its lists are used */
    unsigned turns;     /* turns of the world that the input may still use */
    bool fresh;         /* the function is a new one that has only the guest's objects */
};

/* Starts with the same world each time. */
struct guest_input *guest_input_start(const uint8_t *data, size_t size);

/* Returns the next bytes; zeros behind the end. */
uint8_t input_u8(struct guest_input *in);
uint16_t input_u16(struct guest_input *in);
uint32_t input_u32(struct guest_input *in);

/* Overwrites words of p as the input says. */
void input_patch(struct guest_input *in, uint8_t *p, size_t len);

/* Runs the device until nothing more can happen now, or within ns nanoseconds, and takes
 * completions from the guest's CQ. If the input's turns are used up, it stops earlier, because a
 * WQE ring can make work for ever. */
void input_settle(struct guest_input *in);
void input_advance(struct guest_input *in, uint64_t ns);

#endif
