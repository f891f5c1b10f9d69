/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults, described once: rules in plain words, of what shall go wrong on a port and in its device.
 *
 *     drop READ_RESPONSE qp 0x12 nth 2 once; loss 1%; command CREATE_CQ fail once
 *
 * docs/reference/faults.md has the words, made of the tables in words.c. A set has the rules of one
 * port. The port's filter (wire/fault/port.h) and the device behind it share the set: both ask it
 * what happens, and it counts, draws and logs. Nothing here has a thread or a timer.
 *
 * Everything about a set happens on one thread, or with one lock held: the owner's.
 *
 * Each rule has its own random numbers. They follow from seed, stream, the rule's kind and its
 * place among the rules of this kind. So the same rules and frames give the same decisions, and a
 * rule of one kind changes nothing for the rules of other kinds.
 */
#ifndef HCASIM_WIRE_FAULT_FAULT_H
#define HCASIM_WIRE_FAULT_FAULT_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define FAULT_MAX_RULES 64   /* of a set, so that a frame has a bounded cost */
#define FAULT_MAX_TEXT  4096 /* bytes of a description */

struct fault_set;

/* The names that a device gives to commands and to results. */
struct fault_names {
    /* False: there is no such command. */
    bool (*command)(const char *name, uint16_t *opcode);
    bool (*status)(const char *name, uint8_t *status);
};

struct fault_options {
    uint64_t seed, stream;
    /* Nanoseconds since any start; NULL: CLOCK_MONOTONIC. */
    uint64_t (*clock_ns)(void *clock_opaque);
    void *clock_opaque;
    /* Takes a line for each fault that happens: a burst of 100, and then one line a second. NULL:
     * there is no log. */
    void (*log)(void *log_opaque, const char *line);
    void *log_opaque;
    /* NULL: there is no device behind the port, and rules for devices are refused. */
    const struct fault_names *names;
};

struct fault_set *fault_set_new(const struct fault_options *options);
void fault_set_free(struct fault_set *set);

/* Whether a description is right. False: *err says in one line which word is wrong, and what is
 * allowed in its place. The empty description, and `none`, have no rules. */
bool fault_check(const char *text, const struct fault_names *names, GError **err);

/* The longest time for which the rules of a right description may hold back a frame, in all. A rate
 * counts as long as its queue takes, or a store. */
uint64_t fault_longest_ns(const char *text);

/* Adds the rules of a description: all of them, or none with *err. */
bool fault_set_add(struct fault_set *set, const char *text, GError **err);
/* Removes a rule. False: there is no rule with this number. */
bool fault_set_remove(struct fault_set *set, unsigned number);
/* Removes all rules. Numbers are not used again. */
void fault_set_clear(struct fault_set *set);

/* A rule, as a list shows it. */
struct fault_info {
    unsigned number;  /* for fault_set_remove(); 1 is the first rule of a set */
    const char *text; /* the rule in its words; valid until the rule is removed */
    uint64_t matched; /* frames and events that the rule is about */
    uint64_t done;    /* those in which it caused its fault */
};

unsigned fault_set_count(const struct fault_set *set);
/* i: below fault_set_count(). Rules come in the order of their numbers. */
void fault_set_get(const struct fault_set *set, unsigned i, struct fault_info *info);
/* The same as text, one line for each rule: "3: loss 1%: matched 526, done 9". The caller frees
 * it. */
char *fault_set_list(const struct fault_set *set);

/* -- for the filter and the device ------------------------------------------------------------- */

/* What a rule is about. */
enum fault_subject {
    FAULT_ABOUT_FRAMES,
    FAULT_ABOUT_LINK,
    FAULT_ABOUT_INTERRUPTS,
    FAULT_ABOUT_DOORBELLS,
    FAULT_ABOUT_RECEIVES,
    FAULT_ABOUT_COMMANDS,
    FAULT_ABOUT_HEALTH,
    FAULT_ABOUT_PAGES,
    FAULT_NUM_SUBJECTS,
};

/* Called after each change of the rules, from within the call that changes them. At most two. */
void fault_set_listen(struct fault_set *set, void (*changed)(void *opaque), void *opaque);
void fault_set_unlisten(struct fault_set *set, void *opaque);

/* Something that rules have caused, for a trace. */
struct fault_deed {
    enum fault_subject subject; /* frames also for the losses of a link that is down */
    bool is_lost;               /* a frame that goes no further */
    const char *what; /* such as "lost: never sent"; "corrupted: bit 3 of byte 60 is wrong" */
    unsigned rule;    /* its number; 0: no rule alone caused it */
    const char *text; /* the rule in its words, or NULL */
    /* of frames: valid during the call */
    const uint8_t *frame;
    size_t len;
    bool inbound;
    /* of the device */
    uint32_t qpn;     /* doorbells, receives */
    unsigned vector;  /* interrupts */
    uint16_t opcode;  /* commands */
    uint64_t late_ns; /* how much later it happens; 0: it is not late */
};

/* Called for each deed, when it happens, from within the call that asks the rules. Rules that delay
 * each frame are left out. NULL: nobody wants to know. */
void fault_set_watch(struct fault_set *set,
                     void (*happened)(void *opaque, const struct fault_deed *), void *opaque);
/* For the filter: tells the watcher. */
void fault_set_tell(struct fault_set *set, const struct fault_deed *deed);
bool fault_set_is_watched(const struct fault_set *set);

uint64_t fault_set_now_ns(const struct fault_set *set);
bool fault_set_has(const struct fault_set *set, enum fault_subject subject);

/* Something that happens in a device. */
struct fault_event {
    enum fault_subject subject;
    uint32_t qpn;    /* doorbells, receives: the queue */
    unsigned vector; /* interrupts */
    uint16_t opcode; /* commands */
};

/* The fault of an event. */
struct fault_outcome {
    bool is_late; /* the event happens late_ns later */
    uint64_t late_ns;
    bool fails;                    /* commands; doorbells: the device does not see them */
    bool has_status, has_syndrome; /* the rule names them; else the device chooses */
    uint8_t status;
    uint32_t syndrome;
    uint8_t health; /* health: the syndrome */
    bool is_fatal;
};

/* Whether an event has a fault. *outcome is zero without one. */
bool fault_set_ask(struct fault_set *set, const struct fault_event *event,
                   struct fault_outcome *outcome);
/* When the next rule about the device's health is due; UINT64_MAX: never. */
uint64_t fault_set_health_due_ns(const struct fault_set *set);

#endif
