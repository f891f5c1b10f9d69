/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The instructions of x86-64 that load, store or compare one word in memory (Intel SDM, volume 2,
 * appendix A). Of the operand in memory only its length in the code matters here: the kernel says
 * at which address the access was.
 */
#define _GNU_SOURCE
#include "guest-lib/host/mmio_insn.h"
#include <string.h>
#include <ucontext.h>

#ifdef __x86_64__

/* -- decoding ---------------------------------------------------------------------------------- */

struct mmio_prefixes {
    bool data16;    /* 66 */
    uint8_t repeat; /* F2 or F3, or 0 */
    uint8_t rex;    /* or 0 */
};

#define REX_W 8u
#define REX_R 4u

enum mmio_map {
    MAP_1,    /* one byte of opcode */
    MAP_0F,   /* behind 0F */
    MAP_0F38, /* behind 0F 38 */
};

/* How the sizes of an instruction follow from its prefixes. */
enum mmio_width {
    WIDTH_8,
    WIDTH_V,  /* 16, 32 or 64 bits */
    WIDTH_16, /* a word that is extended to WIDTH_V */
    WIDTH_8X, /* a byte that is extended to WIDTH_V */
    WIDTH_32X,
    WIDTH_XMM, /* 32 bits, or 64 with REX.W */
    WIDTH_XMM32,
    WIDTH_XMM64,
};

enum mmio_operand {
    IN_REG,
    IMM_8,
    IMM_V,  /* as wide as the word; at most 32 bits, which are extended with their sign */
    IMM_8S, /* 8 bits, extended with their sign */
};

#define ANY       0xff
#define NO_PREFIX 0

static const struct mmio_form {
    uint8_t map, opcode;
    uint8_t prefix; /* 66, F2 or F3 that is a part of the opcode; ANY: 66 is a size */
    uint8_t digit;  /* the reg field of ModRM, if it is a part of the opcode; else ANY */
    uint8_t act, width, operand;
    bool is_signed, swaps, mem_first;
} mmio_forms[] = {
    {MAP_1, 0x88, ANY, ANY, MMIO_STORE, WIDTH_8, IN_REG, 0, 0, 0},
    {MAP_1, 0x89, ANY, ANY, MMIO_STORE, WIDTH_V, IN_REG, 0, 0, 0},
    {MAP_1, 0x8a, ANY, ANY, MMIO_LOAD, WIDTH_8, IN_REG, 0, 0, 0},
    {MAP_1, 0x8b, ANY, ANY, MMIO_LOAD, WIDTH_V, IN_REG, 0, 0, 0},
    {MAP_1, 0xc6, ANY, 0, MMIO_STORE, WIDTH_8, IMM_8, 0, 0, 0},
    {MAP_1, 0xc7, ANY, 0, MMIO_STORE, WIDTH_V, IMM_V, 0, 0, 0},
    {MAP_1, 0x63, ANY, ANY, MMIO_LOAD, WIDTH_32X, IN_REG, true, 0, 0},
    {MAP_1, 0x38, ANY, ANY, MMIO_COMPARE, WIDTH_8, IN_REG, 0, 0, true},
    {MAP_1, 0x39, ANY, ANY, MMIO_COMPARE, WIDTH_V, IN_REG, 0, 0, true},
    {MAP_1, 0x3a, ANY, ANY, MMIO_COMPARE, WIDTH_8, IN_REG, 0, 0, 0},
    {MAP_1, 0x3b, ANY, ANY, MMIO_COMPARE, WIDTH_V, IN_REG, 0, 0, 0},
    {MAP_1, 0x80, ANY, 7, MMIO_COMPARE, WIDTH_8, IMM_8, 0, 0, true},
    {MAP_1, 0x81, ANY, 7, MMIO_COMPARE, WIDTH_V, IMM_V, 0, 0, true},
    {MAP_1, 0x83, ANY, 7, MMIO_COMPARE, WIDTH_V, IMM_8S, 0, 0, true},
    {MAP_1, 0x84, ANY, ANY, MMIO_TEST, WIDTH_8, IN_REG, 0, 0, true},
    {MAP_1, 0x85, ANY, ANY, MMIO_TEST, WIDTH_V, IN_REG, 0, 0, true},
    {MAP_1, 0xf6, ANY, 0, MMIO_TEST, WIDTH_8, IMM_8, 0, 0, true},
    {MAP_1, 0xf7, ANY, 0, MMIO_TEST, WIDTH_V, IMM_V, 0, 0, true},
    {MAP_0F, 0xb6, ANY, ANY, MMIO_LOAD, WIDTH_8X, IN_REG, 0, 0, 0},
    {MAP_0F, 0xb7, ANY, ANY, MMIO_LOAD, WIDTH_16, IN_REG, 0, 0, 0},
    {MAP_0F, 0xbe, ANY, ANY, MMIO_LOAD, WIDTH_8X, IN_REG, true, 0, 0},
    {MAP_0F, 0xbf, ANY, ANY, MMIO_LOAD, WIDTH_16, IN_REG, true, 0, 0},
    {MAP_0F, 0xc3, NO_PREFIX, ANY, MMIO_STORE, WIDTH_V, IN_REG, 0, 0, 0}, /* MOVNTI */
    {MAP_0F38, 0xf0, ANY, ANY, MMIO_LOAD, WIDTH_V, IN_REG, 0, true, 0},   /* MOVBE */
    {MAP_0F38, 0xf1, ANY, ANY, MMIO_STORE, WIDTH_V, IN_REG, 0, true, 0},
    {MAP_0F, 0x6e, 0x66, ANY, MMIO_LOAD, WIDTH_XMM, IN_REG, 0, 0, 0}, /* MOVD, MOVQ */
    {MAP_0F, 0x7e, 0x66, ANY, MMIO_STORE, WIDTH_XMM, IN_REG, 0, 0, 0},
    {MAP_0F, 0x7e, 0xf3, ANY, MMIO_LOAD, WIDTH_XMM64, IN_REG, 0, 0, 0},
    {MAP_0F, 0xd6, 0x66, ANY, MMIO_STORE, WIDTH_XMM64, IN_REG, 0, 0, 0},
    {MAP_0F, 0x10, 0xf3, ANY, MMIO_LOAD, WIDTH_XMM32, IN_REG, 0, 0, 0}, /* MOVSS */
    {MAP_0F, 0x11, 0xf3, ANY, MMIO_STORE, WIDTH_XMM32, IN_REG, 0, 0, 0},
    {MAP_0F, 0x10, 0xf2, ANY, MMIO_LOAD, WIDTH_XMM64, IN_REG, 0, 0, 0}, /* MOVSD */
    {MAP_0F, 0x11, 0xf2, ANY, MMIO_STORE, WIDTH_XMM64, IN_REG, 0, 0, 0},
};

static unsigned mmio_read_prefixes(const uint8_t *code, struct mmio_prefixes *p)
{
    unsigned n = 0;

    *p = (struct mmio_prefixes){0};
    for (; n < 4; n++) {
        if (code[n] == 0x66) {
            p->data16 = true;
        } else if (code[n] == 0xf2 || code[n] == 0xf3) {
            p->repeat = code[n];
        } else if (code[n] != 0x67 && code[n] != 0x64 && code[n] != 0x65 && code[n] != 0x2e &&
                   code[n] != 0x36 && code[n] != 0x3e && code[n] != 0x26) {
            break; /* no address size, no segment */
        }
    }
    if (code[n] >> 4 == 4) {
        p->rex = code[n++];
    }
    return n;
}

/* Bytes of ModRM and of what belongs to it. 0: the operand is no memory. */
static unsigned mmio_modrm_len(const uint8_t *at)
{
    unsigned mod = at[0] >> 6, rm = at[0] & 7, len = 1;

    if (mod == 3) {
        return 0;
    }
    if (rm == 4) {
        len++;
        if (mod == 0 && (at[1] & 7) == 5) {
            return len + 4;
        }
    } else if (mod == 0 && rm == 5) {
        return len + 4;
    }
    return len + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

static bool mmio_prefix_fits(const struct mmio_form *form, const struct mmio_prefixes *p)
{
    switch (form->prefix) {
    case ANY:
        return !p->repeat;
    case NO_PREFIX:
        return !p->repeat && !p->data16;
    case 0x66:
        return !p->repeat && p->data16;
    default:
        return p->repeat == form->prefix;
    }
}

static const struct mmio_form *mmio_find_form(const struct mmio_prefixes *p, enum mmio_map map,
                                              uint8_t opcode, uint8_t digit)
{
    for (unsigned i = 0; i < sizeof(mmio_forms) / sizeof(mmio_forms[0]); i++) {
        const struct mmio_form *form = &mmio_forms[i];

        if (form->map == map && form->opcode == opcode && mmio_prefix_fits(form, p) &&
            (form->digit == ANY || form->digit == digit)) {
            return form;
        }
    }
    return NULL;
}

static void mmio_set_sizes(const struct mmio_form *form, const struct mmio_prefixes *p,
                           struct mmio_insn *insn)
{
    unsigned v = p->rex & REX_W ? 8 : p->data16 ? 2 : 4;

    switch (form->width) {
    case WIDTH_8:
        insn->size = insn->reg_size = 1;
        break;
    case WIDTH_V:
        insn->size = v;
        insn->reg_size = (uint8_t)v;
        break;
    case WIDTH_16:
    case WIDTH_8X:
    case WIDTH_32X:
        insn->size = form->width == WIDTH_8X ? 1 : form->width == WIDTH_16 ? 2 : 4;
        insn->reg_size = (uint8_t)v;
        break;
    default:
        insn->is_vector = true;
        insn->size =
            form->width == WIDTH_XMM64 || (form->width == WIDTH_XMM && p->rex & REX_W) ? 8 : 4;
        break;
    }
}

/* Reads the constant at the end of the code, and returns its length. */
static unsigned mmio_read_imm(const struct mmio_form *form, const uint8_t *at,
                              struct mmio_insn *insn)
{
    unsigned len = form->operand == IMM_V ? (insn->size < 4 ? insn->size : 4) : 1;
    uint64_t value = 0;

    if (form->operand == IN_REG) {
        return 0;
    }
    insn->is_imm = true;
    memcpy(&value, at, len);
    insn->imm = (uint64_t)((int64_t)(value << (64 - 8 * len)) >> (64 - 8 * len));
    return len;
}

bool mmio_decode(const uint8_t *code, struct mmio_insn *insn)
{
    const struct mmio_form *form;
    struct mmio_prefixes p;
    unsigned n = mmio_read_prefixes(code, &p), operand;
    enum mmio_map map = MAP_1;
    uint8_t opcode;

    if (code[n] == 0x0f) {
        map = code[n + 1] == 0x38 ? MAP_0F38 : MAP_0F;
        n += map == MAP_0F38 ? 2 : 1;
    }
    opcode = code[n++];
    form = mmio_find_form(&p, map, opcode, code[n] >> 3 & 7);
    operand = mmio_modrm_len(code + n);
    if (!form || !operand) {
        return false;
    }
    *insn = (struct mmio_insn){.act = (enum mmio_act)form->act,
                               .swaps = form->swaps,
                               .mem_first = form->mem_first,
                               .is_signed = form->is_signed,
                               .reg = (uint8_t)((code[n] >> 3 & 7) | (p.rex & REX_R ? 8 : 0))};
    mmio_set_sizes(form, &p, insn);
    if (form->width == WIDTH_8 && !p.rex && insn->reg >= 4) {
        insn->is_high = true;
        insn->reg -= 4;
    }
    insn->len = n + operand + mmio_read_imm(form, code + n + operand, insn);
    return true;
}

/* -- registers --------------------------------------------------------------------------------- */

static const int mmio_gregs[16] = {
    REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
};

#define TRAP_PAGE_FAULT 14
#define ERROR_WRITE     2

#define FLAG_CF         (1u << 0)
#define FLAG_PF         (1u << 2)
#define FLAG_AF         (1u << 4)
#define FLAG_ZF         (1u << 6)
#define FLAG_SF         (1u << 7)
#define FLAG_OF         (1u << 11)

bool mmio_is_supported(void)
{
    return true;
}

const uint8_t *mmio_code(const void *context)
{
    return (const uint8_t *)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
}

bool mmio_wrote(const void *context)
{
    const greg_t *regs = ((const ucontext_t *)context)->uc_mcontext.gregs;

    return regs[REG_TRAPNO] == TRAP_PAGE_FAULT && regs[REG_ERR] & ERROR_WRITE;
}

static uint64_t mmio_mask(unsigned size)
{
    return UINT64_MAX >> (64 - 8 * size);
}

static uint64_t mmio_swap(uint64_t value, unsigned size)
{
    return __builtin_bswap64(value) >> (64 - 8 * size);
}

uint64_t mmio_operand(const struct mmio_insn *insn, const void *context)
{
    const ucontext_t *c = context;
    uint64_t value;

    if (insn->is_imm) {
        return insn->imm & mmio_mask(insn->size);
    }
    if (insn->is_vector) {
        memcpy(&value, &c->uc_mcontext.fpregs->_xmm[insn->reg], sizeof(value));
    } else {
        value = (uint64_t)c->uc_mcontext.gregs[mmio_gregs[insn->reg]] >> (insn->is_high ? 8 : 0);
    }
    value &= mmio_mask(insn->size);
    return insn->swaps ? mmio_swap(value, insn->size) : value;
}

/* Stores a word in a general register. A value of 32 bits clears the upper half; shorter ones leave
 * the rest of the register alone. */
static void mmio_load(const struct mmio_insn *insn, uint64_t word, greg_t *regs)
{
    greg_t *reg = &regs[mmio_gregs[insn->reg]];
    unsigned shift = insn->is_high ? 8 : 0;
    uint64_t mask = mmio_mask(insn->reg_size) << shift;

    if (insn->swaps) {
        word = mmio_swap(word, insn->size);
    }
    if (insn->is_signed) {
        word = (uint64_t)((int64_t)(word << (64 - 8 * insn->size)) >> (64 - 8 * insn->size));
    }
    if (insn->reg_size == 4) {
        *reg = (greg_t)(word & mask);
    } else {
        *reg = (greg_t)(((uint64_t)*reg & ~mask) | (word << shift & mask));
    }
}

static void mmio_set_flags(const struct mmio_insn *insn, uint64_t word, uint64_t other,
                           greg_t *regs)
{
    uint64_t a = insn->mem_first ? word : other, b = insn->mem_first ? other : word;
    uint64_t sign = 1ull << (8 * insn->size - 1), flags = 0, made;

    if (insn->act == MMIO_TEST) {
        made = a & b;
    } else {
        made = (a - b) & mmio_mask(insn->size);
        flags |= a < b ? FLAG_CF : 0;
        flags |= (a ^ b ^ made) & 0x10 ? FLAG_AF : 0;
        flags |= (a ^ b) & (a ^ made) & sign ? FLAG_OF : 0;
    }
    flags |= made ? 0 : FLAG_ZF;
    flags |= made & sign ? FLAG_SF : 0;
    flags |= __builtin_parity((unsigned)made & 0xff) ? 0 : FLAG_PF;
    regs[REG_EFL] =
        (regs[REG_EFL] & ~(greg_t)(FLAG_CF | FLAG_PF | FLAG_AF | FLAG_ZF | FLAG_SF | FLAG_OF)) |
        (greg_t)flags;
}

void mmio_finish(const struct mmio_insn *insn, uint64_t word, void *context)
{
    ucontext_t *c = context;
    greg_t *regs = c->uc_mcontext.gregs;

    switch (insn->act) {
    case MMIO_LOAD:
        if (insn->is_vector) {
            uint64_t whole[2] = {word, 0};

            memcpy(&c->uc_mcontext.fpregs->_xmm[insn->reg], whole, sizeof(whole));
        } else {
            mmio_load(insn, word, regs);
        }
        break;
    case MMIO_COMPARE:
    case MMIO_TEST:
        mmio_set_flags(insn, word, mmio_operand(insn, context), regs);
        break;
    case MMIO_STORE:
        break;
    }
    regs[REG_RIP] += insn->len;
}

#else

bool mmio_is_supported(void)
{
    return false;
}

bool mmio_decode(const uint8_t *code, struct mmio_insn *insn)
{
    return false;
}

uint64_t mmio_operand(const struct mmio_insn *insn, const void *context)
{
    return 0;
}

void mmio_finish(const struct mmio_insn *insn, uint64_t word, void *context)
{
}

const uint8_t *mmio_code(const void *context)
{
    return NULL;
}

bool mmio_wrote(const void *context)
{
    return false;
}

#endif
