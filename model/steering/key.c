/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads masks and values from commands, and finds entries by them. */
#include <string.h>
#include "model/steering/key.h"

G_STATIC_ASSERT(MATCH_WORDS * 4 <= PRM_SIZE(fte_match_param));
G_STATIC_ASSERT(PRM_SIZE(fte_match_set_misc) == MATCH_SECTION_WORDS * 4);

/* The bits that can be matched, as words of memory. */
static uint32_t matchable[STEERING_DOMAINS][MATCH_WORDS];

/* Random factors of the hash. A guest chooses the keys, but does not know the factors. So it cannot
 * make all its keys collide in a group's hash table. */
static uint64_t key_factors[MATCH_WORDS];

/* Places in fte_match_param, in bits. */
struct match_field {
    uint8_t domains;
    uint16_t first, width;
};

#define SECTION_BIT(section) ((unsigned)PRM_OFFSET(fte_match_param, section) * 8)
#define MORE(in, section, layout, f)                                                               \
    {.domains = (in),                                                                              \
     .first = SECTION_BIT(section) + PRM_FIELD_BIT(PRM_##layout##_##f##_FIELD),                    \
     .width = PRM_FIELD_WIDTH(PRM_##layout##_##f##_FIELD)},
#define MATCH(in, section, layout, f, capability) MORE(in, section, layout, f)
#define MATCH_BYTES(in, section, layout, f, bytes, capability)                                     \
    {.domains = (in),                                                                              \
     .first = SECTION_BIT(section) + (unsigned)PRM_OFFSET(layout, f) * 8,                          \
     .width = (bytes)*8},
static const struct match_field match_fields[] = {
#include "model/steering/match_fields.def"
};

static void key_collect_matchable(enum steering_domain domain)
{
    uint8_t *bytes = (uint8_t *)matchable[domain];

    for (size_t i = 0; i < G_N_ELEMENTS(match_fields); i++) {
        const struct match_field *field = &match_fields[i];

        for (unsigned bit = field->first; bit < (unsigned)field->first + field->width; bit++) {
            if (field->domains & 1u << domain) {
                bytes[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
            }
        }
    }
}

void flow_key_init(void)
{
    static gsize done;

    if (g_once_init_enter(&done)) {
        for (unsigned i = 0; i < MATCH_WORDS; i++) {
            key_factors[i] = (uint64_t)g_random_int() << 32 | g_random_int();
        }
        for (unsigned domain = 0; domain < STEERING_DOMAINS; domain++) {
            key_collect_matchable(domain);
        }
        g_once_init_leave(&done, 1);
    }
}

static guint steering_key_hash(gconstpointer p)
{
    const struct flow_key *key = p;
    uint64_t sum = 0;

    for (unsigned i = 0; i < key->num_words; i++) {
        sum += key_factors[i] * key->word[i];
    }
    return (guint)(sum >> 32);
}

static gboolean steering_key_equal(gconstpointer a, gconstpointer b)
{
    const struct flow_key *x = a, *y = b;

    return memcmp(x->word, y->word, x->num_words * sizeof(x->word[0])) == 0;
}

GHashTable *flow_key_table_new(void)
{
    return g_hash_table_new(steering_key_hash, steering_key_equal);
}

/* Whether tables of the domain can match on anything in the section. */
static bool key_knows_section(enum steering_domain domain, unsigned section)
{
    for (unsigned i = 0; i < MATCH_SECTION_WORDS; i++) {
        if (matchable[domain][section * MATCH_SECTION_WORDS + i]) {
            return true;
        }
    }
    return false;
}

enum syn flow_mask_read(enum steering_domain domain, const struct prm_create_flow_group_in *in,
                        struct flow_mask *mask)
{
    const struct prm_fte_match_param *param = PRM_PTR(create_flow_group_in, in, match_criteria);
    uint32_t words[PRM_SIZE(fte_match_param) / 4];

    memset(mask, 0, sizeof(*mask));
    mask->enable = (uint8_t)PRM_GET(create_flow_group_in, in, match_criteria_enable);
    memcpy(words, param, sizeof(words));
    for (unsigned section = 0; section < 8; section++) {
        if (mask->enable & 1u << section &&
            (section >= MATCH_SECTIONS || !key_knows_section(domain, section))) {
            return SYN_FG_CRITERIA;
        }
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        unsigned section = i / MATCH_SECTION_WORDS;

        if (!words[i]) {
            continue;
        }
        if (section >= MATCH_SECTIONS || !(mask->enable & 1u << section) ||
            words[i] & ~matchable[domain][i]) {
            return SYN_FG_CRITERIA;
        }
        mask->sections |= (uint8_t)(1u << section);
        mask->at[mask->num_words] = (uint8_t)i;
        mask->word[mask->num_words++] = words[i];
    }
    return SYN_OK;
}

/* Writes the words of a mask, or the values of these words, to their places. */
static void key_write_words(const struct flow_mask *mask, const uint32_t *words,
                            struct prm_fte_match_param *param)
{
    for (unsigned i = 0; i < mask->num_words; i++) {
        memcpy(param->bytes + mask->at[i] * 4u, &words[i], 4);
    }
}

void flow_mask_write(const struct flow_mask *mask, struct prm_fte_match_param *param)
{
    key_write_words(mask, mask->word, param);
}

void flow_key_write(const struct flow_key *key, const struct flow_mask *mask,
                    struct prm_fte_match_param *param)
{
    key_write_words(mask, key->word, param);
}
