/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements capture_blocks.h. */
#include "wire/capture_blocks.h"

#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "wire/port.h"

enum {
    BLOCK_SECTION_HEADER = 0x0a0d0d0a,
    BLOCK_INTERFACE = 1,
    BLOCK_PACKET = 6,
    BYTE_ORDER_MAGIC = 0x1a2b3c4d,
    LINKTYPE_ETHERNET = 1,

    OPT_END = 0,
    OPT_COMMENT = 1,
    OPT_IF_NAME = 2,
    OPT_IF_TSRESOL = 9,
    OPT_EPB_FLAGS = 2,
    OPT_EPB_DROPCOUNT = 4,
};

#define RECORD_FORMAT                                                                              \
    "hcasim; interfaces %6u; bytes %20" PRIu64 "; file %10" PRIu32 " of %4u; size %20" PRIu64      \
    "; full %u; run %-40.40s"
#define RECORD_SCAN                                                                                \
    "hcasim; interfaces %6u; bytes %20" SCNu64 "; file %10" SCNu32 " of %4u; size %20" SCNu64      \
    "; full %1u; run%n"
/* So that the record does not become longer. */
#define INTERFACES_MAX 999999u

/* -- the record -------------------------------------------------------------------------------- */

bool capture_record_parse(const uint8_t *bytes, size_t len, struct capture_record *record)
{
    struct capture_section section;
    unsigned is_full = 0;
    int run = 0; /* where it begins in the record, after a blank */

    memset(record, 0, sizeof(*record));
    if (len < sizeof(section)) {
        return false;
    }
    memcpy(&section, bytes, sizeof(section));
    if (section.type != BLOCK_SECTION_HEADER || section.len != sizeof(section) ||
        section.magic != BYTE_ORDER_MAGIC || section.comment_code != OPT_COMMENT ||
        section.comment_len != CAPTURE_RECORD_LEN) {
        return false;
    }
    section.record[CAPTURE_RECORD_LEN - 1] = '\0';
    if (sscanf(section.record, RECORD_SCAN, &record->interfaces, &record->bytes, &record->number,
               &record->ring.files, &record->ring.size, &is_full, &run) != 6 ||
        !run || record->bytes < sizeof(section) || record->interfaces >= INTERFACES_MAX ||
        record->ring.files > CAPTURE_RING_FILES_MAX) {
        return false;
    }
    record->is_full = is_full;
    if (section.record[run] == ' ') {
        g_strlcpy(record->run, section.record + run + 1, sizeof(record->run));
        g_strchomp(record->run);
    }
    return true;
}

void capture_record_print(char text[static CAPTURE_RECORD_LEN], const struct capture_record *record)
{
    char line[CAPTURE_RECORD_LEN + 1];
    int len = g_snprintf(line, sizeof(line), RECORD_FORMAT, record->interfaces, record->bytes,
                         record->number, record->ring.files, record->ring.size, record->is_full,
                         record->run);

    memset(text, ' ', CAPTURE_RECORD_LEN);
    memcpy(text, line, MIN((size_t)len, (size_t)CAPTURE_RECORD_LEN));
}

/* -- blocks ------------------------------------------------------------------------------------ */

void capture_section_make(struct capture_section *section, const struct capture_record *record)
{
    *section = (struct capture_section){
        .type = BLOCK_SECTION_HEADER,
        .len = sizeof(*section),
        .magic = BYTE_ORDER_MAGIC,
        .major = 1,
        .section_len = -1,
        .comment_code = OPT_COMMENT,
        .comment_len = CAPTURE_RECORD_LEN,
        .end_of_options = OPT_END,
        .len_again = sizeof(*section),
    };
    capture_record_print(section->record, record);
}

size_t capture_interface_make(struct capture_interface *interface, const char *name)
{
    size_t len = strnlen(name, CAPTURE_NAME_MAX), padded = (len + 3) & ~(size_t)3;
    uint32_t block = (uint32_t)(sizeof(*interface) - CAPTURE_NAME_MAX + padded);
    uint32_t ends[2] = {OPT_END, block};

    *interface = (struct capture_interface){
        .type = BLOCK_INTERFACE,
        .len = block,
        .linktype = LINKTYPE_ETHERNET,
        .snaplen = WIRE_FRAME_MAX,
        .tsresol_code = OPT_IF_TSRESOL,
        .tsresol_len = 1,
        .tsresol = {9},
        .name_code = OPT_IF_NAME,
        .name_len = (uint16_t)len,
    };
    memcpy(interface->name, name, len);
    memcpy((char *)interface + offsetof(struct capture_interface, name) + padded, ends,
           sizeof(ends));
    return block;
}

static size_t capture_pad(size_t len)
{
    return -len & 3;
}

static size_t capture_comment_len(const char *comment)
{
    const struct capture_packet *p = NULL; /* for sizes only */

    return comment ? sizeof(p->text[0]) + strlen(comment) + capture_pad(strlen(comment)) : 0;
}

uint32_t capture_packet_len(const struct capture_frame *frame, uint64_t missing)
{
    const struct capture_packet *p = NULL;

    return (uint32_t)(sizeof(p->start) + frame->len + capture_pad(frame->len) +
                      capture_comment_len(frame->comments[0]) +
                      capture_comment_len(frame->comments[1]) + (missing ? sizeof(p->drops) : 0) +
                      sizeof(p->end));
}

static void capture_add_part(struct capture_packet *p, unsigned *num, const void *bytes, size_t len)
{
    p->parts[(*num)++] = (struct iovec){(void *)(uintptr_t)bytes, len};
}

static void capture_add_padded(struct capture_packet *p, unsigned *num, const void *bytes,
                               size_t len)
{
    static const uint8_t zeros[4];

    capture_add_part(p, num, bytes, len);
    capture_add_part(p, num, zeros, capture_pad(len));
}

void capture_packet_make(struct capture_packet *p, const struct capture_frame *frame,
                         uint32_t interface, uint64_t now_ns, uint64_t missing)
{
    uint32_t len = capture_packet_len(frame, missing);
    unsigned num = 0;

    p->start.type = BLOCK_PACKET;
    p->start.len = len;
    p->start.interface = interface;
    p->start.time_high = (uint32_t)(now_ns >> 32);
    p->start.time_low = (uint32_t)now_ns;
    p->start.captured_len = p->start.original_len = (uint32_t)frame->len;
    capture_add_part(p, &num, &p->start, sizeof(p->start));
    capture_add_padded(p, &num, frame->bytes, frame->len);
    for (unsigned i = 0; i < G_N_ELEMENTS(p->text); i++) {
        size_t text_len = frame->comments[i] ? strlen(frame->comments[i]) : 0;

        p->text[i].code = OPT_COMMENT;
        p->text[i].len = (uint16_t)text_len;
        capture_add_part(p, &num, &p->text[i], frame->comments[i] ? sizeof(p->text[i]) : 0);
        capture_add_padded(p, &num, frame->comments[i], text_len);
    }
    p->drops.code = OPT_EPB_DROPCOUNT;
    p->drops.len = sizeof(p->drops.count);
    p->drops.count = missing;
    capture_add_part(p, &num, &p->drops, missing ? sizeof(p->drops) : 0);
    p->end.flags_code = OPT_EPB_FLAGS;
    p->end.flags_len = sizeof(p->end.flags);
    p->end.flags = frame->direction;
    p->end.end_of_options = OPT_END;
    p->end.len_again = len;
    capture_add_part(p, &num, &p->end, sizeof(p->end));
}
