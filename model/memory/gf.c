/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multiplies by ISA-L, or by tables of 256 products if the machine has no ISA-L or no AVX2.
 *
 * ISA-L's functions for a named instruction set take the products of the two halves of a byte, so
 * they multiply in any field. (Its other functions are for w = 8 only, and on some CPUs take tables
 * of another form.) docs/adr/0035 has measurements.
 */
#include "model/memory/gf.h"

#include <dlfcn.h>
#include <glib.h>
#include <string.h>

/* libisal: adds the products of vector vec_i of k to the results. */
typedef void gf_isal_add(int len, int k, int results, int vec_i, const uint8_t *maps,
                         const uint8_t *from, uint8_t *const *to);

static gf_isal_add *gf_isal;

#define GF_LIBRARY "libisal.so.2"

static void gf_load(bool wanted)
{
    gf_isal = NULL;
#ifdef __x86_64__
    if (wanted && __builtin_cpu_supports("avx2")) {
        void *library = dlopen(GF_LIBRARY, RTLD_NOW | RTLD_LOCAL);

        if (library) {
            *(void **)&gf_isal = dlsym(library, "ec_encode_data_update_avx2");
        }
    }
#endif
}

/* The product of two symbols of w bits. */
static unsigned gf_multiply(unsigned w, unsigned a, unsigned b)
{
    static const uint16_t polynomials[] = {[1] = 0x3, [2] = 0x7, [4] = 0x13, [8] = 0x11d};
    unsigned product = 0;

    for (; b; b >>= 1) {
        if (b & 1) {
            product ^= a;
        }
        a <<= 1;
        if (a >> w) {
            a ^= polynomials[w];
        }
    }
    return product;
}

static uint8_t gf_multiply_byte(unsigned w, unsigned constant, unsigned byte)
{
    unsigned mask = (1u << w) - 1, product = 0;

    for (unsigned at = 0; at < 8; at += w) {
        product |= gf_multiply(w, constant & mask, byte >> at & mask) << at;
    }
    return (uint8_t)product;
}

/* The maps of all constants: of GF(2^w) from gf_first(w) on. */
static struct gf_map gf_maps[2 + 4 + 16 + 256];

static unsigned gf_first(unsigned w)
{
    return w == 1 ? 0 : w == 2 ? 2 : w == 4 ? 6 : 22;
}

static void gf_make_maps(void)
{
    for (unsigned w = 1; w <= 8; w *= 2) {
        for (unsigned constant = 0; constant < 1u << w; constant++) {
            struct gf_map *map = &gf_maps[gf_first(w) + constant];

            for (unsigned i = 0; i < 16; i++) {
                map->low[i] = gf_multiply_byte(w, constant, i);
                map->high[i] = gf_multiply_byte(w, constant, i << 4);
            }
        }
    }
}

static void gf_init(void)
{
    static gsize done;

    if (g_once_init_enter(&done)) {
        gf_make_maps();
        gf_load(true);
        g_once_init_leave(&done, 1);
    }
}

bool gf_use_library(bool wanted)
{
    gf_init(); /* otherwise the first multiplication would choose again */
    gf_load(wanted);
    return gf_isal;
}

const struct gf_map *gf_map_of(unsigned w, uint8_t constant)
{
    gf_init();
    return &gf_maps[gf_first(w) + (constant & ((1u << w) - 1))];
}

static void gf_add_by_table(const struct gf_map *map, const uint8_t *from, uint8_t *to, size_t len)
{
    uint8_t products[256];

    for (unsigned i = 0; i < 256; i++) {
        products[i] = map->low[i & 15] ^ map->high[i >> 4];
    }
    for (size_t i = 0; i < len; i++) {
        to[i] ^= products[from[i]];
    }
}

void gf_add(const struct gf_map *map, unsigned n, const uint8_t *from, uint8_t *const *to,
            size_t len)
{
    if (gf_isal) {
        gf_isal((int)len, 1, (int)n, 0, map->low, from, to);
        return;
    }
    for (unsigned i = 0; i < n; i++) {
        gf_add_by_table(&map[i], from, to[i], len);
    }
}
