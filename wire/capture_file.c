/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A capture in pcapng (draft-ietf-opsawg-pcapng) with several writers.
 *
 * The file is one section: a section header, then interface descriptions and enhanced packet blocks
 * in the order in which they were written, in the machine's own byte order as the format allows. An
 * interface's number is the count of descriptions before it.
 *
 * The section header carries a comment of fixed length, the record: how many interfaces the section
 * has, how many bytes of the file are whole blocks, and which run wrote them. Two locks of the open
 * file (F_OFD_SETLK) order the writers. The kernel releases them when the last process that has the
 * open file closes it or ends. A child of fork() closes it at once, because it would keep its
 * parent's locks.
 * - PRESENCE is held shared for as long as a port writes the file. A port that gets it exclusively
 *   is alone, and may empty the file.
 * - TURN is held exclusively while a block is written. Its holder first cuts off bytes behind those
 *   that the record counts: the writer of these bytes died before it had counted them.
 */
#include "wire/capture_file.h"
#include "wire/cancel.h"
#include "wire/open.h"
#include "wire/own_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
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

    NAME_MAX_LEN = 64,
};

/* Bytes of the file that stand for the locks. */
enum {
    PRESENCE = 0,
    TURN = 1,
};

#define RECORD_FORMAT "hcasim; interfaces %6u; bytes %20" PRIu64 "; run %-40.40s"
#define RECORD_LEN    100
/* So that the record does not become longer. Anybody may have written the file. */
#define INTERFACES_MAX  999999u

#define READER_SLEEP_US 1000

/* How long a frame waits for its turn, in steps of how long. */
#define PATIENCE_US 20000
#define STEP_US     50

struct section {
    uint32_t type, len, magic;
    uint16_t major, minor;
    int64_t section_len; /* -1: up to the end of the file */
    uint16_t comment_code, comment_len;
    char record[RECORD_LEN];
    uint32_t end_of_options;
    uint32_t len_again;
} __attribute__((packed));

struct interface {
    uint32_t type, len;
    uint16_t linktype, reserved;
    uint32_t snaplen;
    uint16_t tsresol_code, tsresol_len;
    uint8_t tsresol[4]; /* one byte and padding; 9: units of 10^-9 s */
    uint16_t name_code, name_len;
    char name[NAME_MAX_LEN]; /* padded with zeros to a multiple of 4 */
    uint32_t ends[2];        /* end_of_options and len again, behind the name */
} __attribute__((packed));

struct packet_start {
    uint32_t type, len, interface;
    uint32_t time_high, time_low;
    uint32_t captured_len, original_len;
};

struct option_head {
    uint16_t code, len;
};

struct packet_drops {
    uint16_t code, len;
    uint64_t count;
} __attribute__((packed));

struct packet_end {
    uint16_t flags_code, flags_len;
    uint32_t flags;
    uint32_t end_of_options;
    uint32_t len_again;
};

/* What the record says. */
struct record {
    unsigned interfaces;
    uint64_t bytes;
    char run[CAPTURE_RUN_MAX + 1];
};

struct capture_file {
    char *path;
    struct own_fd own; /* fd -1: capturing has ended */
    bool is_shared;
    bool is_impatient; /* the last frame waited in vain */
    bool is_busy;      /* another port had the turn at the last attempt */
    uint32_t interface;
    uint64_t missing; /* frames that were left out since the last one that was written */
};

/* -- the descriptor ---------------------------------------------------------------------------- */

/* Opens the file. The flags have O_NONBLOCK, because a fork() waits for this call. Sets f->own.fd;
 * -1: errno. */
static void capture_file_open_own(struct capture_file *f, int flags)
{
    int state = cancel_disable(), code, fd;

    f->own.fd = -1;
    own_fd_lock();
    fd = open(f->path, flags | O_CLOEXEC | O_NONBLOCK, 0644);
    code = errno;
    if (fd >= 0) {
        own_fd_set(&f->own, fd);
    }
    own_fd_unlock();
    cancel_restore(state);
    errno = code;
}

/* -- locks and the record ---------------------------------------------------------------------- */

static bool capture_file_lock(int fd, int command, short type, off_t which)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = which, .l_len = 1};
    int failed;

    do {
        failed = fcntl(fd, command, &lock);
    } while (failed < 0 && errno == EINTR);
    return !failed;
}

/* Whether a lock failed because another open file has it. Some file systems have no such locks. */
static bool capture_file_is_taken(int err)
{
    return err == EAGAIN || err == EACCES;
}

/* False: another port has the turn (is_busy), or errno says why there are no turns. */
static bool capture_file_take_turn(struct capture_file *f)
{
    unsigned waited = 0;

    f->is_busy = false;
    while (!capture_file_lock(f->own.fd, F_OFD_SETLK, F_WRLCK, TURN)) {
        struct timespec step = {.tv_nsec = STEP_US * 1000};

        if (!capture_file_is_taken(errno)) {
            return false;
        }
        f->is_busy = true;
        if (f->is_impatient || waited >= PATIENCE_US) {
            f->is_impatient = true;
            return false;
        }
        nanosleep(&step, NULL);
        waited += STEP_US;
    }
    f->is_impatient = false;
    return true;
}

static void capture_file_end_turn(struct capture_file *f)
{
    capture_file_lock(f->own.fd, F_OFD_SETLK, F_UNLCK, TURN);
}

/* False: the file does not begin with a section of ours, or its section can have no more
 * interfaces. */
static bool capture_file_read_record(int fd, struct record *record)
{
    struct section section;
    int run = 0; /* where it begins in the record, after a blank */

    memset(record, 0, sizeof(*record));
    if (pread(fd, &section, sizeof(section), 0) != (ssize_t)sizeof(section) ||
        section.type != BLOCK_SECTION_HEADER || section.len != sizeof(section) ||
        section.magic != BYTE_ORDER_MAGIC || section.comment_code != OPT_COMMENT ||
        section.comment_len != RECORD_LEN) {
        return false;
    }
    section.record[RECORD_LEN - 1] = '\0';
    if (sscanf(section.record, "hcasim; interfaces %u; bytes %" SCNu64 "; run%n",
               &record->interfaces, &record->bytes, &run) != 2 ||
        record->bytes < sizeof(section) || record->interfaces >= INTERFACES_MAX) {
        return false;
    }
    if (section.record[run] == ' ') {
        g_strlcpy(record->run, section.record + run + 1, sizeof(record->run));
        g_strchomp(record->run);
    }
    return true;
}

static void capture_file_print_record(char text[static RECORD_LEN + 1], const struct record *record)
{
    memset(text, ' ', RECORD_LEN);
    text[g_snprintf(text, RECORD_LEN + 1, RECORD_FORMAT, record->interfaces, record->bytes,
                    record->run)] = ' ';
    text[RECORD_LEN] = '\0';
}

static bool capture_file_write_record(int fd, const struct record *record)
{
    char text[RECORD_LEN + 1];

    capture_file_print_record(text, record);
    return pwrite(fd, text, RECORD_LEN, offsetof(struct section, record)) == RECORD_LEN;
}

/* In this port's turn: what the record says, and the file cut to what it counts. */
static bool capture_file_begin(int fd, struct record *record)
{
    struct stat stat;

    if (!capture_file_read_record(fd, record) || fstat(fd, &stat) < 0 ||
        (uint64_t)stat.st_size < record->bytes) {
        return false;
    }
    return (uint64_t)stat.st_size == record->bytes || !ftruncate(fd, (off_t)record->bytes);
}

/* -- opening ----------------------------------------------------------------------------------- */

static struct section capture_file_section(const struct record *record)
{
    struct section section = {
        .type = BLOCK_SECTION_HEADER,
        .len = sizeof(section),
        .magic = BYTE_ORDER_MAGIC,
        .major = 1,
        .section_len = -1,
        .comment_code = OPT_COMMENT,
        .comment_len = RECORD_LEN,
        .end_of_options = OPT_END,
        .len_again = sizeof(section),
    };
    char text[RECORD_LEN + 1];

    capture_file_print_record(text, record);
    memcpy(section.record, text, RECORD_LEN);
    return section;
}

/* Returns the block's length. */
static size_t capture_file_interface(struct interface *interface, const char *name)
{
    size_t len = strnlen(name, NAME_MAX_LEN), padded = (len + 3) & ~(size_t)3;
    uint32_t block = (uint32_t)(sizeof(*interface) - NAME_MAX_LEN + padded);
    uint32_t ends[2] = {OPT_END, block};

    *interface = (struct interface){
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
    memcpy((char *)interface + offsetof(struct interface, name) + padded, ends, sizeof(ends));
    return block;
}

/* In this port's turn: an empty file with the section header. */
static bool capture_file_start(int fd, const char *run)
{
    struct record record = {.bytes = sizeof(struct section)};
    struct section section;

    g_strlcpy(record.run, run, sizeof(record.run));
    section = capture_file_section(&record);
    return !ftruncate(fd, 0) && pwrite(fd, &section, sizeof(section), 0) == sizeof(section);
}

static bool capture_file_add_interface(struct capture_file *f, const char *name)
{
    struct interface interface;
    size_t len = capture_file_interface(&interface, name);
    struct record record;

    errno = 0;
    if (!capture_file_begin(f->own.fd, &record)) {
        errno = errno ? errno : EINVAL;
        return false;
    }
    errno = ENOSPC; /* for a short write */
    if (pwrite(f->own.fd, &interface, len, (off_t)record.bytes) != (ssize_t)len) {
        return false;
    }
    f->interface = record.interfaces++;
    record.bytes += len;
    return capture_file_write_record(f->own.fd, &record);
}

static bool capture_file_join(struct capture_file *f, const char *name, const char *run_given)
{
    char run[CAPTURE_RUN_MAX + 1];
    struct record record;
    bool is_alone, joined;

    g_strlcpy(run, run_given ? run_given : "", sizeof(run));
    g_strchomp(run); /* blanks fill the record's end */

    if (!capture_file_take_turn(f)) {
        errno = f->is_busy ? EBUSY : errno;
        return false;
    }
    is_alone = capture_file_lock(f->own.fd, F_OFD_SETLK, F_WRLCK, PRESENCE);
    if (!is_alone && !capture_file_is_taken(errno)) {
        return false; /* closing the file ends the turn as well */
    }
    if (is_alone && run[0] && capture_file_begin(f->own.fd, &record) && !strcmp(record.run, run)) {
        is_alone = false;
    }
    joined = (!is_alone || capture_file_start(f->own.fd, run)) &&
             capture_file_lock(f->own.fd, F_OFD_SETLK, F_RDLCK, PRESENCE) &&
             capture_file_add_interface(f, name);
    capture_file_end_turn(f);
    return joined;
}

/* To a pipe, a section with one interface. */
static bool capture_file_begin_stream(struct capture_file *f, const char *name)
{
    struct record record = {.interfaces = 1};
    struct section section = capture_file_section(&record);
    struct interface interface;
    size_t len = capture_file_interface(&interface, name);

    return write(f->own.fd, &section, sizeof(section)) == (ssize_t)sizeof(section) &&
           write(f->own.fd, &interface, len) == (ssize_t)len;
}

/* Opens a pipe or a device. A pipe needs a reader, for which this waits, while a fork() does not
 * wait for this. Then each write waits until the pipe has room. */
static void capture_file_open_stream(struct capture_file *f, bool is_pipe)
{
    capture_file_open_own(f, O_WRONLY);
    while (f->own.fd < 0 && is_pipe && errno == ENXIO) {
        g_usleep(READER_SLEEP_US);
        capture_file_open_own(f, O_WRONLY);
    }
    if (f->own.fd >= 0) {
        fcntl(f->own.fd, F_SETFL, O_WRONLY);
    }
}

struct capture_file *capture_file_open(const char *path, const char *name, const char *run,
                                       GError **err)
{
    struct capture_file *f = g_new0(struct capture_file, 1);
    struct stat st;

    f->is_shared = stat(path, &st) < 0 || S_ISREG(st.st_mode);
    f->path = g_strdup(path);
    if (f->is_shared) {
        capture_file_open_own(f, O_RDWR | O_CREAT);
    } else {
        capture_file_open_stream(f, S_ISFIFO(st.st_mode));
    }
    if (f->own.fd < 0 ||
        !(f->is_shared ? capture_file_join(f, name, run) : capture_file_begin_stream(f, name))) {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO, "%s: cannot write the capture: %s", path,
                    g_strerror(errno));
        capture_file_close(f);
        return NULL;
    }
    return f;
}

void capture_file_close(struct capture_file *f)
{
    own_fd_close(&f->own);
    g_free(f->path);
    g_free(f);
}

/* -- frames ------------------------------------------------------------------------------------ */

static void capture_file_give_up(struct capture_file *f, const char *why)
{
    g_warning("%s: capture ends: %s", f->path, why);
    own_fd_close(&f->own);
}

/* Writes a block at the end of what the record counts, or at the end of a pipe. */
static ssize_t capture_file_write(const struct capture_file *f, const struct iovec *parts,
                                  int num_parts, const struct record *record)
{
    ssize_t written;

    do {
        written = f->is_shared ? pwritev(f->own.fd, parts, num_parts, (off_t)record->bytes)
                               : writev(f->own.fd, parts, num_parts);
    } while (written < 0 && errno == EINTR);
    return written;
}

static void capture_file_packet(struct capture_file *f, const uint8_t *frame, size_t len,
                                enum capture_direction direction, const char *comment, uint64_t now,
                                struct record *record)
{
    static const uint8_t zeros[4];
    size_t pad = -len & 3, drops_len = f->missing ? sizeof(struct packet_drops) : 0;
    size_t text_len = comment ? strlen(comment) : 0, text_pad = -text_len & 3;
    struct option_head text = {OPT_COMMENT, (uint16_t)text_len};
    size_t head_len = comment ? sizeof(text) : 0;
    uint32_t block = (uint32_t)(sizeof(struct packet_start) + len + pad + head_len + text_len +
                                text_pad + drops_len + sizeof(struct packet_end));
    struct packet_start start = {
        .type = BLOCK_PACKET,
        .len = block,
        .interface = f->interface,
        .time_high = (uint32_t)(now >> 32),
        .time_low = (uint32_t)now,
        .captured_len = (uint32_t)len,
        .original_len = (uint32_t)len,
    };
    struct packet_drops drops = {OPT_EPB_DROPCOUNT, sizeof(drops.count), f->missing};
    struct packet_end end = {
        .flags_code = OPT_EPB_FLAGS,
        .flags_len = sizeof(end.flags),
        .flags = direction,
        .end_of_options = OPT_END,
        .len_again = block,
    };
    struct iovec parts[] = {
        {&start, sizeof(start)},
        {(void *)(uintptr_t)frame, len},
        {(void *)(uintptr_t)zeros, pad},
        {&text, head_len},
        {(void *)(uintptr_t)comment, text_len},
        {(void *)(uintptr_t)zeros, text_pad},
        {&drops, drops_len},
        {&end, sizeof(end)},
    };
    ssize_t written = capture_file_write(f, parts, G_N_ELEMENTS(parts), record);
    const char *why = written < 0 ? g_strerror(errno) : "short write";

    if (written == (ssize_t)block) {
        f->missing = 0;
        record->bytes += block;
        if (!f->is_shared || capture_file_write_record(f->own.fd, record)) {
            return;
        }
        why = g_strerror(errno);
        record->bytes -= block;
    }
    if (f->is_shared && ftruncate(f->own.fd, (off_t)record->bytes) < 0) {
        g_warning("%s: the last packet is incomplete: %s", f->path, g_strerror(errno));
    }
    capture_file_give_up(f, why);
}

void capture_file_frame(struct capture_file *f, const uint8_t *frame, size_t len,
                        enum capture_direction direction, const char *comment,
                        uint64_t (*clock_ns)(void *opaque), void *clock_opaque)
{
    struct record record = {0};

    if (f->own.fd < 0) {
        return;
    }
    if (!f->is_shared) {
        capture_file_packet(f, frame, len, direction, comment, clock_ns(clock_opaque), &record);
        return;
    }
    if (!capture_file_take_turn(f)) {
        if (f->is_busy) {
            f->missing++;
        } else {
            capture_file_give_up(f, g_strerror(errno));
        }
        return;
    }
    errno = 0;
    if (!capture_file_begin(f->own.fd, &record)) {
        /* Closing the file ends the turn as well. */
        capture_file_give_up(f, errno ? g_strerror(errno)
                                      : "somebody else has emptied or replaced what it had");
        return;
    }
    capture_file_packet(f, frame, len, direction, comment, clock_ns(clock_opaque), &record);
    if (f->own.fd >= 0) {
        capture_file_end_turn(f);
    }
}
