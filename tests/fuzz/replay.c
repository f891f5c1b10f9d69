/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a fuzzing target over kept inputs: a fault that a search has found once stays tested.
 *
 * A file has an input per line, as hexadecimal digits; empty lines and lines with # are skipped. In
 * a file whose name ends in .txt inputs are text, each behind a line "%%"; the text before the
 * first is skipped. With --unpack DIR the inputs are written to files of that folder instead, as a
 * start for libFuzzer.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Converts digits to bytes, in a block of exactly that size, so that an access beyond its end is
 * found. */
static uint8_t *parse(const char *line, size_t *size)
{
    size_t digits = strlen(line);
    uint8_t *data;

    if (digits % 2) {
        return NULL;
    }
    *size = digits / 2;
    data = g_malloc(MAX(*size, 1));
    for (size_t i = 0; i < digits; i++) {
        int value = g_ascii_xdigit_value(line[i]);

        if (value < 0) {
            g_free(data);
            return NULL;
        }
        data[i / 2] = (uint8_t)(i % 2 ? data[i / 2] | value : value << 4);
    }
    return data;
}

/* Runs an input of the file, or writes it to a file of the folder unpack. Returns false, with a
 * line on stderr, if it cannot be written. */
static bool replay_input(const uint8_t *data, size_t size, const char *unpack, unsigned number)
{
    g_autofree char *name = g_strdup_printf("%s/%04u", unpack, number);
    g_autoptr(GError) err = NULL;

    if (!unpack) {
        LLVMFuzzerTestOneInput(data, size);
    } else if (!g_file_set_contents(name, (const char *)data, (gssize)size, &err)) {
        fprintf(stderr, "%s\n", err->message);
        return false;
    }
    return true;
}

static bool replay_hex(const char *path, char **lines, const char *unpack, unsigned *runs)
{
    for (unsigned i = 0; lines[i]; i++) {
        g_autofree uint8_t *data = NULL;
        size_t size;

        if (!lines[i][0] || lines[i][0] == '#') {
            continue;
        }
        data = parse(lines[i], &size);
        if (!data) {
            fprintf(stderr, "%s:%u: not hexadecimal\n", path, i + 1);
            return false;
        }
        if (!replay_input(data, size, unpack, i)) {
            return false;
        }
        ++*runs;
    }
    return true;
}

static bool replay_text(const char *text, const char *unpack, unsigned *runs)
{
    g_auto(GStrv) parts = g_strsplit(text, "\n%%\n", -1);

    for (unsigned i = 1; parts[0] && parts[i]; i++) {
        size_t size = strlen(parts[i]);
        g_autofree uint8_t *data = g_malloc(MAX(size, 1)); /* of exactly this size */

        memcpy(data, parts[i], size);
        if (!replay_input(data, size, unpack, i)) {
            return false;
        }
        ++*runs;
    }
    return true;
}

/* Returns false, with a line on stderr, if the file cannot be read or has a bad line. */
static bool replay(const char *path, const char *unpack, unsigned *runs)
{
    g_autofree char *text = NULL;
    g_autoptr(GError) err = NULL;
    g_auto(GStrv) lines = NULL;

    if (!g_file_get_contents(path, &text, NULL, &err)) {
        fprintf(stderr, "%s\n", err->message);
        return false;
    }
    if (g_str_has_suffix(path, ".txt")) {
        return replay_text(text, unpack, runs);
    }
    lines = g_strsplit(text, "\n", -1);
    return replay_hex(path, lines, unpack, runs);
}

int main(int argc, char **argv)
{
    const char *unpack = NULL;
    unsigned runs = 0;
    int i = 1;

    if (argc > 3 && strcmp(argv[1], "--unpack") == 0) {
        unpack = argv[2];
        i = 3;
    }
    for (; i < argc; i++) {
        if (!replay(argv[i], unpack, &runs)) {
            return EXIT_FAILURE;
        }
    }
    printf("%u inputs\n", runs);
    return runs ? EXIT_SUCCESS : EXIT_FAILURE;
}
