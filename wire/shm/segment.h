/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The layout of a shared-memory Ethernet segment, and its membership.
 *
 * The file is one struct shm_header, then one struct shm_region for each of SHM_MEMBERS. A member
 * receives in its own region and writes to the regions of its receivers. Frames for all members are
 * in the header, in the sender's log. Each count and index in the file may have been written by a
 * hostile process: it is checked before use, and nothing that decides where this process reads or
 * writes is kept in the file. (A process that may open the file may also truncate it, and no check
 * can survive that; so the file is private to its user unless the user makes it otherwise.)
 *
 * Memory: the file is sparse. Memory is allocated for each part before the part is used, so that a
 * lack of memory shows as an error there and not as SIGBUS. A segment has its table of addresses,
 * 512 KiB. A member has SHM_CHUNK slots and its entry in the header, some 44 KiB. If more frames
 * wait for it at once, it gets more slots, up to SHM_SLOTS, 10 MiB. If one member sends to another
 * one, their ring takes 4 KiB, and the page in which the receiver says how far it has come takes up
 * to 4 KiB. A member that sends to all has up to SHM_LOG bytes. (Measured: 632 KiB with 2 members
 * of which each talks to one, 7.7 MiB with 128, 57 MiB with 1,000.) The next member with the same
 * id uses what its predecessor allocated; all memory is given back with the file.
 *
 * Liveness: member i holds the lock on byte i of the file for as long as it lives (file.h).
 *
 * A member is an id and a generation. The next process that gets the same id has the next
 * generation, so it recognizes what its predecessor left behind.
 */
#ifndef HCASIM_WIRE_SHM_SEGMENT_H
#define HCASIM_WIRE_SHM_SEGMENT_H

#include "wire/port.h"
#include "wire/shm/set.h"

#include <glib.h>
#include <sys/types.h>
#include <unistd.h>

enum {
    SHM_SLOTS = 1024, /* frames that can wait for one receiver, from all senders together */
    SHM_CHUNK = 4,    /* slots that get memory together */
    SHM_CHUNKS = SHM_SLOTS / SHM_CHUNK,
    SHM_RING = 512,      /* frames of one sender, so that one alone does not fill a receiver */
    SHM_LOG = 256 << 10, /* bytes of flooded frames; a reader that is later misses frames */
    SHM_MACS = 64,       /* source addresses remembered per member; then the oldest is replaced */
    SHM_FDB = 1 << 16,   /* places in the table of addresses, for all members */
    SHM_GEN_BITS = 24,
    SHM_POS_BITS = 24,
    SHM_ID_BITS = 16,
    SHM_PAGE = 4096,
    /* Locked bytes of the file. A member locks the byte of its id. The holder of number n
     * (wire_number_take()) locks byte SHM_LOCK_NUMBERS + n. */
    SHM_LOCK_NUMBERS = 1 << 16,
    SHM_LOCK_JOIN = 1 << 20,
};

/*
 * A frame on its way. A sender takes a slot by changing owner from 0 to its tag. From then on only
 * that sender writes the slot, until the receiver has consumed the frame and stores 0.
 */
struct shm_slot {
    _Alignas(SHM_LINE) _Atomic uint64_t owner; /* shm_tag() of a sender, 0: free */
    uint64_t stamp; /* shm_stamp() of the ring entry that this frame was published with */
    uint16_t len;
    uint16_t flags; /* enum wire_frame_flags */
    uint8_t frame[WIRE_FRAME_MAX];
};

/* How far the receiver of a ring has come. */
struct shm_ends {
    _Alignas(SHM_LINE) _Atomic uint64_t tail; /* shm_tail(): positions consumed */
    /* shm_tail() again: positions consumed in turns that have ended. The sender reads it only when
     * an answer does not come (wire_is_paused()), so its cache line stays with the receiver. */
    _Alignas(SHM_LINE) _Atomic uint64_t settled;
};

/*
 * The ring from one sender to one receiver. The sender writes the entry for position p (p counts
 * from 0 in each of its generations, modulo 2^32) to entry[p % SHM_RING]: stamp << 16 | slot. The
 * stamp tells a new entry from an entry of the previous round, so there is no shared head.
 */
struct shm_ring {
    _Alignas(SHM_PAGE) _Atomic uint64_t entry[SHM_RING];
};

struct shm_region {
    struct shm_ends ends[SHM_MEMBERS]; /* by sender */
    struct shm_ring ring[SHM_MEMBERS];
    struct shm_slot slot[SHM_SLOTS];
};

struct shm_member {
    /* Changed when the member joins or leaves, and by any member that finds it dead. */
    _Alignas(SHM_LINE) _Atomic uint32_t gen;
    _Atomic uint32_t attached; /* gen, or 0 */
    _Atomic uint32_t left;     /* gen, if it left in order: its end is not reported */
    _Atomic uint32_t watches;  /* gen, if it watches others; they are then told of its end */
    /* Odd: the receiver sleeps. A sender that wakes it writes to its FIFO and then makes this
     * even. */
    _Alignas(SHM_LINE) _Atomic uint32_t sleep;
    struct shm_set credits; /* receivers with credit again that this member waited for */
    struct shm_set waiters; /* senders that wait for credit of this member */
    struct shm_set senders; /* senders whose rings this member visits: not those idle lately */
    struct shm_set floods;  /* members whose logs have something new */
    /* This member's log: bytes written since its generation began, and the position up to which
     * they have been overwritten. */
    _Alignas(SHM_LINE) _Atomic uint64_t log_head;
    _Atomic uint64_t log_tail;
    _Alignas(SHM_LINE) _Atomic uint64_t chunks[SHM_CHUNKS / 64]; /* chunks that have memory */
    _Atomic uint32_t mac[SHM_MACS]; /* places in the table of addresses, from 1 */
};

/* A member's log of frames for all members, in the format of log.h. */
struct shm_log {
    _Alignas(SHM_PAGE) uint8_t bytes[SHM_LOG];
};

/* The beginning of the file, the same in every version. */
struct shm_start {
    char magic[8];
    uint32_t version;
    uint32_t members;
    uint64_t file_size;
};

struct shm_header {
    struct shm_start start;
    /* Changes whenever an address is learned or a member comes or goes. */
    _Alignas(SHM_LINE) _Atomic uint64_t fdb_gen;
    struct shm_set present;                           /* members that are attached */
    _Alignas(SHM_PAGE) _Atomic uint64_t fdb[SHM_FDB]; /* addresses; see fdb.h */
    _Alignas(SHM_PAGE) struct shm_member member[SHM_MEMBERS];
    struct shm_log log[SHM_MEMBERS];
};

static inline uint64_t shm_tag(unsigned id, uint32_t gen)
{
    return (uint64_t)gen << SHM_ID_BITS | (id + 1);
}

/* The id in a tag. SHM_MEMBERS or more: the tag has no id. */
static inline unsigned shm_tag_id(uint64_t tag)
{
    return (unsigned)(tag & ((1u << SHM_ID_BITS) - 1)) - 1u;
}

static inline uint64_t shm_stamp(uint32_t gen, uint32_t pos)
{
    return (uint64_t)gen << SHM_POS_BITS | (pos & ((1u << SHM_POS_BITS) - 1));
}

/* The position that a sender of this generation writes next, or that its receiver reads next, with
 * the generation. */
static inline uint64_t shm_tail(uint32_t gen, uint32_t pos)
{
    return (uint64_t)gen << 32 | pos;
}

/* The position in a tail, for a sender of generation gen. 0 if the tail is of another generation:
 * then nothing of this generation has been consumed. */
static inline uint32_t shm_tail_pos(uint64_t tail, uint32_t gen)
{
    return tail >> 32 == gen ? (uint32_t)tail : 0;
}

static inline size_t shm_page_up(size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (n + page - 1) / page * page;
}

/* The offset of a member's region in the file. For SHM_MEMBERS it is the file's size. */
static inline off_t shm_region_offset(unsigned id)
{
    return (off_t)(shm_page_up(sizeof(struct shm_header)) +
                   id * shm_page_up(sizeof(struct shm_region)));
}

/* This process's membership. */
struct shm_segment {
    char *path;
    int fd;      /* the file; only its open file description holds the lock */
    int map_fd;  /* the file, for mappings */
    int wake_fd; /* read end of this member's FIFO, path.ID */
    unsigned id;
    uint32_t gen;
    struct shm_header *header;
    struct shm_region *region[SHM_MEMBERS]; /* mapped when first needed */
    unsigned next_mac;                      /* the place in member.mac that is used next */
};

/*
 * Joins the segment at path. If the file is not there, or no living process is in it, the segment
 * is made (mode 0600). own_only: fails if the file belongs to another user. The new member sleeps
 * and is attached. False: *err says why.
 */
bool shm_segment_join(struct shm_segment *seg, const char *path, bool own_only, GError **err);

/* Takes the member out of the tables: from now on no member sends to it. */
void shm_segment_detach(struct shm_segment *seg);

/* Leaves the segment, detached or not. The last member to leave removes the file. */
void shm_segment_leave(struct shm_segment *seg);

/* Whether a process holds this id. One system call. */
bool shm_segment_alive(struct shm_segment *seg, unsigned id);

/* Detaches a member whose process has died. */
void shm_segment_detach_dead(struct shm_segment *seg, unsigned id);

struct shm_region *shm_segment_map_region(struct shm_segment *seg, unsigned id);
/* A member's region, which is mapped at first use. NULL: it cannot be mapped. */
static inline struct shm_region *shm_segment_region(struct shm_segment *seg, unsigned id)
{
    return seg->region[id] ? seg->region[id] : shm_segment_map_region(seg, id);
}

static inline bool shm_segment_has_chunk(const struct shm_segment *seg, unsigned id, unsigned chunk)
{
    return atomic_load_explicit(&seg->header->member[id].chunks[chunk / 64],
                                memory_order_acquire) >>
               chunk % 64 &
           1;
}

/* Each of these allocates memory, with system calls, and returns false if there is none. add_ring:
 * this member's ring in the region of member id, which is mapped. add_chunk: the first chunk of
 * slots there that has no memory (false also if all have). grow_log: the first len bytes of this
 * member's log. */
bool shm_segment_add_ring(struct shm_segment *seg, unsigned id);
bool shm_segment_add_chunk(struct shm_segment *seg, unsigned id);
bool shm_segment_grow_log(struct shm_segment *seg, size_t len);

/* Opens a member's FIFO; a write of one byte to it wakes the member and never blocks. -1:
 * failed. */
int shm_segment_open_wake(struct shm_segment *seg, unsigned id);

#endif
