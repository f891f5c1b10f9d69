/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of a set of fault rules, for the files of this folder.
 *
 *   words.c   the tables: actions, and the words that may follow them
 *   value.c   reads a number, a time, an address
 *   parse.c   makes rules of a description
 *   match.c   whether a frame is one that a rule is about
 *   change.c  wrong bits, checksums, marks
 *   set.c     adds, lists, removes; decides, counts and logs
 *   store.c   frames that wait
 *   port.c    the filter
 */
#ifndef HCASIM_WIRE_FAULT_RULE_H
#define HCASIM_WIRE_FAULT_RULE_H

#include "wire/fault/fault.h"
#include "wire/chance.h"
#include "wire/encap/eth.h"
#include "wire/note.h"
#include "wire/packet/transport.h"

enum fault_what {
    FAULT_DROP,
    FAULT_DUPLICATE,
    FAULT_CORRUPT,
    FAULT_REORDER,
    FAULT_DELAY,
    FAULT_RATE,
    FAULT_MARK,
    FAULT_PART,
    FAULT_LINK_DOWN,
    FAULT_LINK_FLAP,
    FAULT_INTERRUPT_LATE,
    FAULT_DOORBELL_UNSEEN,
    FAULT_RECEIVE_RETURNED,
    FAULT_COMMAND_FAIL,
    FAULT_COMMAND_SLOW,
    FAULT_HEALTH,
    FAULT_PAGES_SLOW,
    FAULT_NUM_WHATS,
};

/* The kinds of values that follow words. */
enum fault_value {
    FAULT_VALUE_NONE,
    FAULT_VALUE_NUMBER,
    FAULT_VALUE_RANGE, /* two numbers, or the same one twice */
    FAULT_VALUE_TIME,
    FAULT_VALUE_COUNT_OR_TIME, /* struct fault_span */
    FAULT_VALUE_PERCENT,
    FAULT_VALUE_SIZE,
    FAULT_VALUE_RATE,
    FAULT_VALUE_ADDRESS,
    FAULT_VALUE_COMMAND,
    FAULT_VALUE_STATUS,
};

/* An action: the words that a rule begins with. */
struct fault_action {
    const char *pattern; /* its words; a word in capitals is a value */
    enum fault_what what;
    enum fault_subject subject;
    enum fault_value value; /* of the word in capitals, if there is one */
    size_t offset;          /* of that value in the rule */
    uint64_t least, most;   /* of that value, if it is a number or a time */
    const char *stream;     /* names the random numbers */
    const char *help;
};

/* A word that may follow an action. */
struct fault_clause {
    const char *word; /* NULL: the value has no word before it */
    enum fault_value value;
    size_t offset;
    uint64_t least, most;
    uint32_t whats; /* the actions that it may follow, a bit each */
    const char *help;
};

/* A group of opcodes: those with these flags (enum bth_headers). */
struct fault_group {
    const char *name;
    uint32_t flags;
    int transport;  /* enum bth_transport; -1: any */
    int aeth_class; /* the class of the AETH (enum aeth_class); -1: any */
    const char *help;
};

struct fault_span {
    uint64_t count, ns;
};

struct fault_address {
    bool is_mac;
    uint8_t bytes[16]; /* a MAC address, or a GID */
};

#define FAULT_ANY_COMMAND UINT64_MAX

struct fault_rule {
    unsigned number;
    const struct fault_action *action;
    char *text;
    uint64_t given; /* the clauses of the rule, a bit for each row */
    bool in, out;   /* the directions of frames */

    /* values of actions and clauses */
    uint64_t time_ns, jitter_ns, within_ns, for_ns;
    uint64_t rate, queue; /* bits/s, bytes */
    uint64_t command, status, syndrome, health, vector;
    uint64_t qp, psn[2], byte;
    uint64_t nth, times, per_million;
    bool has_chance;
    struct fault_span after, every;
    struct fault_address from, to;
    bool names_opcodes;
    uint8_t opcodes[256 / 8];
    int aeth_class; /* -1: any */

    /* state */
    struct chance chance;
    uint64_t begun_ns; /* when the rule was added */
    bool started;      /* `after` is over */
    uint64_t start_ns;
    uint64_t matched, done;
    uint64_t free_ns; /* rate: when the line is free */
};

#define FAULT_HAS(rule, row) ((rule)->given >> (row)&1)

/* The rows of fault_clauses that code asks for. */
enum fault_row {
    FAULT_ROW_QP,
    FAULT_ROW_PSN,
    FAULT_ROW_FROM,
    FAULT_ROW_TO,
    FAULT_ROW_IN,
    FAULT_ROW_OUT,
    FAULT_ROW_BOTH,
    FAULT_ROW_NTH,
    FAULT_ROW_EVERY,
    FAULT_ROW_ONCE,
    FAULT_ROW_TIMES,
    FAULT_ROW_AFTER,
    FAULT_ROW_FOR,
    FAULT_ROW_PERCENT,
    FAULT_ROW_WITHIN,
    FAULT_ROW_JITTER,
    FAULT_ROW_QUEUE,
    FAULT_ROW_BYTE,
    FAULT_ROW_REPAIR,
    FAULT_ROW_VECTOR,
    FAULT_ROW_STATUS,
    FAULT_ROW_SYNDROME,
    FAULT_ROW_REPORT,
    FAULT_NUM_ROWS,
};

extern const struct fault_action fault_actions[];
extern const unsigned fault_num_actions;
extern const struct fault_clause fault_clauses[FAULT_NUM_ROWS];
extern const struct fault_group fault_groups[];
extern const unsigned fault_num_groups;

/* -- value.c ----------------------------------------------------------------------------------- */

/* Reads a value of a kind to `to`, which has the type that the kind names. False: it is none. */
bool fault_value_read(enum fault_value kind, const char *text, uint64_t least, uint64_t most,
                      const struct fault_names *names, void *to);
/* What a value of the kind must be, in words. The caller frees it. */
char *fault_value_help(enum fault_value kind, uint64_t least, uint64_t most);

/* -- parse.c ----------------------------------------------------------------------------------- */

/* Makes the rules of a description: an array of struct fault_rule *, which frees them. NULL with
 * *err. */
GPtrArray *fault_parse(const char *text, const struct fault_names *names, GError **err);

/* -- match.c ----------------------------------------------------------------------------------- */

/* A frame that rules are asked about, which nobody else changes meanwhile. */
struct fault_frame {
    uint8_t *bytes;
    size_t len;
    bool inbound;
    bool is_neighbour; /* ARP or neighbour discovery */
    bool is_ip, is_roce;
    struct eth_info eth;
    struct transport_packet packet; /* if is_roce */
};

void fault_frame_read(struct fault_frame *frame, uint8_t *bytes, size_t len, bool inbound);
/* Where the transport packet of a frame is whose UDP port or Ethernet type is that of RoCE; its
 * ICRC ends at *end. False: there is none. */
bool fault_find_packet(const struct fault_frame *frame, size_t *at, size_t *end);
/* Whether the frame is one that the rule is about: direction, addresses and packet. */
bool fault_match(const struct fault_rule *rule, const struct fault_frame *frame);

/* -- change.c ---------------------------------------------------------------------------------- */

/* Whether the frame's IP header says that it may be marked. */
bool fault_may_mark(const struct fault_frame *frame);
void fault_mark(struct fault_frame *frame);
/* Chooses the bit that a rule makes wrong. False: the frame has no such bit, and would be lost. */
bool fault_choose_bit(struct fault_rule *rule, const struct fault_frame *frame, uint32_t *bit);
/* Makes the bit wrong. repair: makes all checksums and the ICRC right again, as far as the headers
 * still say which there are. */
void fault_flip(const struct fault_frame *frame, uint32_t bit, bool repair);

/* -- store.c ----------------------------------------------------------------------------------- */

/* A frame that waits. */
struct fault_stored {
    uint64_t due_ns;
    char *comment; /* for the capture, or NULL */
    bool has_note;
    struct wire_note note; /* of the frame's sender */
    uint32_t len;
    uint8_t frame[];
};

/* Frames that wait, in the order in which they are due. All zero but next_due_ns: it is empty. */
struct fault_store {
    GQueue queue; /* struct fault_stored */
    size_t bytes;
    uint64_t last_due_ns; /* of a frame that was not reordered */
    uint64_t next_due_ns; /* of the first frame that has not been due yet; UINT64_MAX: none */
};

/* Takes a copy of the frame and the note, and the comment. note, comment: or NULL. */
void fault_store_put(struct fault_store *store, const uint8_t *frame, size_t len, char *comment,
                     const struct wire_note *note, uint64_t due_ns);
void fault_store_take_out(struct fault_store *store, GList *link);
/* Whether there is no room for one more frame and its duplicate. */
bool fault_store_is_full(const struct fault_store *store);
/* Whether a client that found no room may try again. */
bool fault_store_has_room_again(const struct fault_store *store);

/* -- set.c ------------------------------------------------------------------------------------- */

/* What happens to a frame. */
struct fault_fate {
    bool spared; /* it passes all others: ARP and neighbour discovery */
    bool lost, duplicated, reordered, corrupted, marked, delayed;
    const char *why; /* lost: why */
    /* the rule that lost the frame; of a frame that passes, the first rule that did something to
     * it, but for delays */
    const struct fault_rule *rule;
    uint32_t bit;      /* of the frame, if it is corrupted */
    bool repair;       /* the checksums are right again */
    uint64_t delay_ns; /* of delay and jitter */
    uint64_t held_ns;  /* added to the delay, if it is reordered */
    uint64_t leave_ns; /* when the last slow line is free; 0: there is none */
};

/* Asks all rules about a frame. */
struct fault_fate fault_set_decide(struct fault_set *set, const struct fault_frame *frame,
                                   uint64_t now_ns);
/* Whether rules are about what leaves (or what comes in); whether they may delay it. */
bool fault_set_concerns(const struct fault_set *set, bool inbound);
bool fault_set_delays(const struct fault_set *set, bool inbound);
/* Whether the link is down, and when this changes next (UINT64_MAX: it does not, by itself). */
bool fault_set_link_is_down(struct fault_set *set, uint64_t now_ns, uint64_t *next_ns);

void fault_rule_free(gpointer rule);

#endif
