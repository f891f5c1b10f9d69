/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements capture_reader.h. */
#include "tests/unit/capture_reader.h"

#include <check.h>
#include <glib.h>
#include <string.h>

enum {
    SECTION = 0x0a0d0d0a,
    INTERFACE = 1,
    PACKET = 6,
};

static uint32_t reader_word(const uint8_t *p)
{
    uint32_t v;

    memcpy(&v, p, 4);
    return v;
}

static void reader_packet(struct capture_contents *c, const uint8_t *block, uint32_t len)
{
    uint32_t interface = reader_word(block + 8), frame_len = reader_word(block + 20);
    const uint8_t *option = block + 28 + ((frame_len + 3) & ~3u);

    ck_assert_uint_lt(interface, c->interfaces);
    ck_assert_uint_le(28 + frame_len + 4, len);
    ck_assert_mem_eq(block + 28, block + 29, frame_len - 1);
    if (reader_word(option) == (8u << 16 | 4)) { /* epb_dropcount */
        c->missing += reader_word(option + 4);
        c->missing_of[interface] += reader_word(option + 4);
        option += 12;
    }
    ck_assert_uint_eq(reader_word(option), 4u << 16 | 2); /* epb_flags */
    c->packets++;
    c->of_interface[interface] += block[28] != CAPTURE_CLOSER;
    c->closers[interface] += block[28] == CAPTURE_CLOSER;
}

struct capture_contents capture_read(const uint8_t *bytes, size_t len)
{
    struct capture_contents c = {0};
    size_t at = 0;

    while (at < len) {
        const uint8_t *block = bytes + at;
        uint32_t block_len;

        ck_assert_uint_ge(len - at, 12);
        block_len = reader_word(block + 4);
        ck_assert_uint_ge(block_len, 12);
        ck_assert_uint_le(block_len, len - at);
        ck_assert_uint_eq(reader_word(block + block_len - 4), block_len);
        ck_assert_uint_eq(at == 0, reader_word(block) == SECTION);
        if (reader_word(block) == INTERFACE) {
            ck_assert_uint_lt(c.interfaces, G_N_ELEMENTS(c.names));
            ck_assert_uint_eq(reader_word(block + 24) & 0xffff, 2); /* if_name */
            memcpy(c.names[c.interfaces++], block + 28, reader_word(block + 24) >> 16);
        } else if (reader_word(block) == PACKET) {
            reader_packet(&c, block, block_len);
        }
        at += block_len;
    }
    return c;
}

struct capture_contents capture_read_file(const char *path)
{
    g_autofree gchar *bytes = NULL;
    gsize len;

    ck_assert_msg(g_file_get_contents(path, &bytes, &len, NULL), "%s", path);
    return capture_read((const uint8_t *)bytes, len);
}

static char *reader_comments(const uint8_t *block, uint32_t len)
{
    GString *text = g_string_new(NULL);
    uint32_t at = 28 + ((reader_word(block + 20) + 3) & ~3u);

    while (at + 4 < len && reader_word(block + at)) {
        uint32_t code = reader_word(block + at) & 0xffff, option = reader_word(block + at) >> 16;

        ck_assert_uint_le(at + 4 + option, len);
        if (code == 1) { /* opt_comment */
            g_string_append(text, text->len ? " | " : "");
            g_string_append_len(text, (const char *)block + at + 4, (gssize)option);
        }
        at += 4 + ((option + 3) & ~3u);
    }
    return g_string_free(text, FALSE);
}

GPtrArray *capture_read_comments(const char *path, GByteArray *first)
{
    GPtrArray *comments = g_ptr_array_new_with_free_func(g_free);
    g_autofree gchar *bytes = NULL;
    gsize len, at = 0;

    ck_assert_msg(g_file_get_contents(path, &bytes, &len, NULL), "%s", path);
    while (at + 12 <= len) {
        const uint8_t *block = (const uint8_t *)bytes + at;

        if (reader_word(block) == PACKET) {
            g_ptr_array_add(comments, reader_comments(block, reader_word(block + 4)));
            if (first) {
                g_byte_array_append(first, block + 28, 1);
            }
        }
        at += reader_word(block + 4);
    }
    ck_assert_uint_eq(at, len);
    return comments;
}
