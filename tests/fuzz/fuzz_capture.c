/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer: the first bytes of a file that a capture finds at its path, as anybody may have
 * written them. What is accepted must be within the bounds of a record, and must stay the same when
 * it is written and read again.
 *
 * An input is the bytes that follow the fixed fields of a section header: the text of the record.
 * If its first byte is not 'h', the input is the whole file.
 */
#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include "wire/capture_blocks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_capture_require(bool condition)
{
    if (!condition) {
        abort();
    }
}

static bool fuzz_capture_equal(const struct capture_record *a, const struct capture_record *b)
{
    return a->interfaces == b->interfaces && a->bytes == b->bytes && a->number == b->number &&
           a->ring.size == b->ring.size && a->ring.files == b->ring.files &&
           a->is_full == b->is_full && !strcmp(a->run, b->run);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct capture_record none;
    struct capture_section section;
    struct capture_record record, again;
    uint8_t *file;

    capture_section_make(&section, &none);
    if (size && data[0] == 'h') {
        memcpy(section.record, data, MIN(size, sizeof(section.record)));
        data = (const uint8_t *)&section;
        size = sizeof(section);
    }
    file = malloc(size ? size : 1); /* so that a checker sees each read behind the end */
    memcpy(file, data, size);
    if (capture_record_parse(file, size, &record)) {
        fuzz_capture_require(record.bytes >= sizeof(section));
        fuzz_capture_require(strlen(record.run) <= CAPTURE_RUN_MAX);
        capture_section_make(&section, &record);
        fuzz_capture_require(
            capture_record_parse((const uint8_t *)&section, sizeof(section), &again));
        fuzz_capture_require(fuzz_capture_equal(&record, &again));
    }
    free(file);
    return 0;
}
