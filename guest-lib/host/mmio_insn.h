/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decodes and carries out an instruction that accesses one word in memory, for mmio.c.
 */
#ifndef HCASIM_GUEST_LIB_HOST_MMIO_INSN_H
#define HCASIM_GUEST_LIB_HOST_MMIO_INSN_H

#include <stdbool.h>
#include <stdint.h>

/* The effect of an instruction on the word. */
enum mmio_act {
    MMIO_LOAD,    /* into a register */
    MMIO_STORE,   /* from a register or a constant */
    MMIO_COMPARE, /* subtracts two words, and keeps only the flags */
    MMIO_TEST,    /* the same with AND */
};

struct mmio_insn {
    enum mmio_act act;
    unsigned len;   /* bytes of the instruction */
    unsigned size;  /* bytes of the word: 1, 2, 4 or 8 */
    bool swaps;     /* MOVBE: the register has the bytes in reverse order */
    bool is_vector; /* the register is an XMM register */
    bool is_high;   /* the register is AH, CH, DH or BH; reg is 0 to 3 */
    bool is_imm;    /* the other operand is imm */
    bool mem_first; /* COMPARE: the word in memory is the first operand */
    uint8_t reg;
    uint8_t reg_size; /* LOAD: bytes of the register that get a value; 4 clears the upper half */
    bool is_signed;   /* LOAD: the word is extended with its sign */
    uint64_t imm;
};

/* Decodes the instruction at code. False: it is none of these. */
bool mmio_decode(const uint8_t *code, struct mmio_insn *insn);

/* The operand beside the word in memory: context is a ucontext_t. */
uint64_t mmio_operand(const struct mmio_insn *insn, const void *context);
/* Stores what the instruction makes of the word in the registers, and goes on behind it. */
void mmio_finish(const struct mmio_insn *insn, uint64_t word, void *context);

/* Whether the two functions above know this processor's registers. */
bool mmio_is_supported(void);
/* The address of the instruction, and whether it wrote, as the kernel has found. */
const uint8_t *mmio_code(const void *context);
bool mmio_wrote(const void *context);

#endif
