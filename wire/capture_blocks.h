/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The blocks of pcapng (draft-ietf-opsawg-pcapng) that a capture consists of: a section header,
 * interface descriptions and enhanced packet blocks, in the machine's own byte order as the format
 * allows. An interface's number is the count of descriptions before it.
 *
 * The section header carries a comment of fixed length, the record, which the writers of a file
 * share (wire/capture_file.c).
 */
#ifndef HCASIM_WIRE_CAPTURE_BLOCKS_H
#define HCASIM_WIRE_CAPTURE_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define CAPTURE_RUN_MAX    40 /* blanks at the end of run do not count; an empty run is none */
#define CAPTURE_NAME_MAX   64 /* of the name of an interface, the bytes that count */
#define CAPTURE_RECORD_LEN 168

/* A ring of files (wire/capture_file.h). */
struct capture_ring {
    uint64_t size;  /* bytes that a file may have; 0: there is no ring */
    unsigned files; /* how many files there are at a time */
};
#define CAPTURE_RING_SIZE_MIN  65536u     /* room for any packet, with what goes before it */
#define CAPTURE_SIZE_MIN       (1u << 20) /* that people may set */
#define CAPTURE_RING_FILES_MAX 9999u
#define CAPTURE_RING_FILES     10u /* unless something else is set */

/* What the record says. */
struct capture_record {
    unsigned interfaces;
    uint64_t bytes;  /* of the file, that are whole blocks */
    uint32_t number; /* of the file in its ring, from 1 */
    struct capture_ring ring;
    bool is_full; /* the next file of the ring has its place, or was about to take it */
    char run[CAPTURE_RUN_MAX + 1];
};

/* Reads the record from the first len bytes of a file. Anybody may have written them. False: they
 * are no section of ours, or the section can have no more interfaces. */
bool capture_record_parse(const uint8_t *bytes, size_t len, struct capture_record *record);
/* Writes the record as text, without a zero at the end. */
void capture_record_print(char text[static CAPTURE_RECORD_LEN],
                          const struct capture_record *record);

struct capture_section {
    uint32_t type, len, magic;
    uint16_t major, minor;
    int64_t section_len; /* -1: up to the end of the file */
    uint16_t comment_code, comment_len;
    char record[CAPTURE_RECORD_LEN];
    uint32_t end_of_options;
    uint32_t len_again;
} __attribute__((packed));

struct capture_interface {
    uint32_t type, len;
    uint16_t linktype, reserved;
    uint32_t snaplen;
    uint16_t tsresol_code, tsresol_len;
    uint8_t tsresol[4]; /* one byte and padding; 9: units of 10^-9 s */
    uint16_t name_code, name_len;
    char name[CAPTURE_NAME_MAX]; /* padded with zeros to a multiple of 4 */
    uint32_t ends[2];            /* end_of_options and len again, behind the name */
} __attribute__((packed));

/* A packet block, of which the parts are scattered. */
struct capture_packet {
    struct {
        uint32_t type, len, interface;
        uint32_t time_high, time_low;
        uint32_t captured_len, original_len;
    } start;
    struct {
        uint16_t code, len;
    } text[2];
    struct {
        uint16_t code, len;
        uint64_t count;
    } __attribute__((packed)) drops;
    struct {
        uint16_t flags_code, flags_len;
        uint32_t flags;
        uint32_t end_of_options;
        uint32_t len_again;
    } end;
#define CAPTURE_PACKET_PARTS 11
    struct iovec parts[CAPTURE_PACKET_PARTS];
};

/* A frame as a packet of a capture. */
struct capture_frame {
    const uint8_t *bytes;
    size_t len;
    unsigned direction;      /* enum capture_direction (wire/capture_file.h) */
    const char *comments[2]; /* NULL: none */
};

void capture_section_make(struct capture_section *section, const struct capture_record *record);
/* Returns the block's length. */
size_t capture_interface_make(struct capture_interface *interface, const char *name);
/* The length that capture_packet_make() gives a block. missing: frames that were left out before
 * this one. */
uint32_t capture_packet_len(const struct capture_frame *frame, uint64_t missing);
/* Points packet->parts to the parts of the block, which are valid as long as frame is. */
void capture_packet_make(struct capture_packet *packet, const struct capture_frame *frame,
                         uint32_t interface, uint64_t now_ns, uint64_t missing);

#endif
