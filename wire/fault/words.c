/* SPDX-License-Identifier: BSD-2-Clause */
/* The words of fault rules: actions, what may follow them, groups of opcodes. */
#include "wire/fault/rule.h"

#define SECOND    1000000000ull
#define TIME_MOST (1000000 * SECOND) /* eleven days */
#define HELD_MOST (10 * SECOND)      /* of a frame or a command */
#define BIT(what) (1u << FAULT_##what)
#define AT(field) offsetof(struct fault_rule, field)

const struct fault_action fault_actions[] = {
    {"loss", FAULT_DROP, FAULT_ABOUT_FRAMES, .stream = "loss", .help = "The same as drop."},
    {"drop", FAULT_DROP, FAULT_ABOUT_FRAMES, .stream = "loss", .help = "The frame is lost."},
    {"duplicate", FAULT_DUPLICATE, FAULT_ABOUT_FRAMES, .stream = "duplication",
     .help = "The frame comes twice."},
    {"corrupt", FAULT_CORRUPT, FAULT_ABOUT_FRAMES, .stream = "corruption",
     .help =
         "A bit of the frame is wrong. The ICRC of a RoCE packet detects it. A frame without an "
         "ICRC is lost, as its FCS would be wrong, unless the rule says byte or repair."},
    {"reorder", FAULT_REORDER, FAULT_ABOUT_FRAMES, .stream = "reorder",
     .help = "The frame is held back for a random time, so that later frames pass it."},
    {"delay TIME", FAULT_DELAY, FAULT_ABOUT_FRAMES, FAULT_VALUE_TIME, AT(time_ns), 0, HELD_MOST,
     "jitter", "The frame comes TIME later. Frames keep their order."},
    {"rate RATE", FAULT_RATE, FAULT_ABOUT_FRAMES, FAULT_VALUE_RATE, AT(rate), 1000, UINT64_MAX,
     "rate", "Frames leave one behind the other, so many bits a second."},
    {"mark", FAULT_MARK, FAULT_ABOUT_FRAMES, .stream = "mark",
     .help = "The frame is marked as having met congestion (ECN CE). Only frames whose sender "
             "supports ECN are matched."},
    {"part", FAULT_PART, FAULT_ABOUT_FRAMES, .stream = "part",
     .help = "Partition: nothing passes in either direction. With from, nothing passes to and from "
             "this host."},
    {"link down TIME", FAULT_LINK_DOWN, FAULT_ABOUT_LINK, FAULT_VALUE_TIME, AT(time_ns), 1,
     TIME_MOST, "link", "The link is down for TIME, and the device sees it."},
    {"link flap TIME", FAULT_LINK_FLAP, FAULT_ABOUT_LINK, FAULT_VALUE_TIME, AT(time_ns), 1,
     TIME_MOST, "flap", "The link is down for TIME, again and again; every says how often."},
    {"interrupt late TIME", FAULT_INTERRUPT_LATE, FAULT_ABOUT_INTERRUPTS, FAULT_VALUE_TIME,
     AT(time_ns), 0, HELD_MOST, "interrupt", "The interrupt comes TIME later."},
    {"doorbell unseen", FAULT_DOORBELL_UNSEEN, FAULT_ABOUT_DOORBELLS, .stream = "doorbell",
     .help = "The device does not see a send doorbell. The next doorbell of the queue makes good "
             "for it. A program that rings only after an answer, such as a ping-pong, waits for "
             "ever: end it with Ctrl-C, or start it with timeout 60 PROGRAM."},
    {"receive returned", FAULT_RECEIVE_RETURNED, FAULT_ABOUT_RECEIVES, .stream = "receive",
     .help = "A receive of an SRQ whose page is missing is not kept until the page is there. It "
             "ends with the syndrome 0x22 and the vendor's syndrome 0x93, and rdma-core posts it "
             "again."},
    {"command COMMAND fail", FAULT_COMMAND_FAIL, FAULT_ABOUT_COMMANDS, FAULT_VALUE_COMMAND,
     AT(command), 0, 0, "fail",
     "The command is not executed, and fails. COMMAND is its name, such as CREATE_CQ, or any."},
    {"command COMMAND slow TIME", FAULT_COMMAND_SLOW, FAULT_ABOUT_COMMANDS, FAULT_VALUE_COMMAND,
     AT(command), 0, HELD_MOST, "slow",
     "The command is executed TIME later; the commands after it wait."},
    {"health SYNDROME", FAULT_HEALTH, FAULT_ABOUT_HEALTH, FAULT_VALUE_NUMBER, AT(health), 1, 255,
     "health", "The firmware fails with this syndrome and asks for a reset: the driver recovers."},
    {"pages slow TIME", FAULT_PAGES_SLOW, FAULT_ABOUT_PAGES, FAULT_VALUE_TIME, AT(time_ns), 0,
     HELD_MOST, "pages",
     "The device asks its driver for memory (PAGE_REQUEST) TIME later than it could."},
};

const unsigned fault_num_actions = G_N_ELEMENTS(fault_actions);

#define LOSING   (BIT(DROP) | BIT(PART))
#define CHANGING (BIT(DUPLICATE) | BIT(CORRUPT) | BIT(REORDER) | BIT(DELAY) | BIT(RATE) | BIT(MARK))
#define FRAMES   (LOSING | CHANGING)
#define LINK     (BIT(LINK_DOWN) | BIT(LINK_FLAP))
#define COMMANDS (BIT(COMMAND_FAIL) | BIT(COMMAND_SLOW))
#define QUEUES   (BIT(DOORBELL_UNSEEN) | BIT(RECEIVE_RETURNED))
#define DEVICE   (BIT(INTERRUPT_LATE) | QUEUES | COMMANDS | BIT(PAGES_SLOW))
#define COUNTED  (FRAMES | DEVICE)
#define NUMBER   FAULT_VALUE_NUMBER

const struct fault_clause fault_clauses[FAULT_NUM_ROWS] = {
    [FAULT_ROW_QP] = {"qp", NUMBER, AT(qp), 0, 0xffffff, FRAMES | QUEUES,
                      "Only packets to this QP (the destination QP of the packet); only the "
                      "doorbells of this QP; only receives that this QP takes."},
    [FAULT_ROW_PSN] = {"psn", FAULT_VALUE_RANGE, AT(psn), 0, 0xffffff, FRAMES,
                       "Only packets with this PSN, or one of a range: psn 100..110. A range may "
                       "pass the highest PSN."},
    [FAULT_ROW_FROM] = {"from", FAULT_VALUE_ADDRESS, AT(from), 0, 0, FRAMES,
                        "Only frames from this MAC, IPv4 or IPv6 address."},
    [FAULT_ROW_TO] = {"to", FAULT_VALUE_ADDRESS, AT(to), 0, 0, FRAMES & ~BIT(PART),
                      "Only frames to this address."},
    [FAULT_ROW_IN] = {"in", FAULT_VALUE_NONE, 0, 0, 0, FRAMES, "Frames that the port receives."},
    [FAULT_ROW_OUT] = {"out", FAULT_VALUE_NONE, 0, 0, 0, FRAMES,
                       "Frames that the port sends. This holds if the rule names no direction, "
                       "except for part."},
    [FAULT_ROW_BOTH] = {"both", FAULT_VALUE_NONE, 0, 0, 0, FRAMES, "Both directions."},
    [FAULT_ROW_NTH] = {"nth", NUMBER, AT(nth), 1, UINT64_MAX, COUNTED,
                       "Only the one with this number, of those that match; 1 is the first."},
    [FAULT_ROW_EVERY] = {"every", FAULT_VALUE_COUNT_OR_TIME, AT(every), 1, TIME_MOST,
                         COUNTED | BIT(LINK_FLAP),
                         "every 10: only each tenth that matches. link flap has a time here."},
    [FAULT_ROW_ONCE] = {"once", FAULT_VALUE_NONE, 0, 0, 0, COUNTED, "At most once."},
    [FAULT_ROW_TIMES] = {"times", NUMBER, AT(times), 1, UINT64_MAX, COUNTED,
                         "At most so many times."},
    [FAULT_ROW_AFTER] =
        {"after", FAULT_VALUE_COUNT_OR_TIME, AT(after), 0, TIME_MOST, COUNTED | LINK | BIT(HEALTH),
         "after 1000: only what comes after 1,000 that match (link: after 1,000 "
         "frames). after 2s: only what comes 2 s after the rule was made, or later."},
    [FAULT_ROW_FOR] = {"for", FAULT_VALUE_TIME, AT(for_ns), 1, TIME_MOST, COUNTED | BIT(LINK_FLAP),
                       "For so long, from the beginning of the rule, or from the end of after."},
    [FAULT_ROW_PERCENT] = {NULL, FAULT_VALUE_PERCENT, AT(per_million), 0, CHANCE_MILLION, COUNTED,
                           "At random, so many of a hundred that match: 0.5%."},
    [FAULT_ROW_WITHIN] =
        {"within", FAULT_VALUE_TIME, AT(within_ns), 1, HELD_MOST, BIT(REORDER),
         "The longest time for which a frame is held back; 100us unless the rule says."},
    [FAULT_ROW_JITTER] = {"jitter", FAULT_VALUE_TIME, AT(jitter_ns), 0, HELD_MOST, BIT(DELAY),
                          "The longest random time that is added to the delay."},
    [FAULT_ROW_QUEUE] = {"queue", FAULT_VALUE_SIZE, AT(queue), 1, UINT32_MAX, BIT(RATE),
                         "How many bytes may wait for the line: 64K. A frame that finds no room is "
                         "lost."},
    [FAULT_ROW_BYTE] = {"byte", NUMBER, AT(byte), 0, 0xffff, BIT(CORRUPT),
                        "The wrong bit is in this byte of the frame, counted from 0. Shorter "
                        "frames do not match."},
    [FAULT_ROW_REPAIR] = {"repair", FAULT_VALUE_NONE, 0, 0, 0, BIT(CORRUPT),
                          "Checksums and ICRC are made right again, so that nobody detects the "
                          "wrong bit."},
    [FAULT_ROW_VECTOR] = {"vector", NUMBER, AT(vector), 0, 0xffff, BIT(INTERRUPT_LATE),
                          "Only interrupts of this vector."},
    [FAULT_ROW_STATUS] =
        {"status", FAULT_VALUE_STATUS, AT(status), 0, 0, BIT(COMMAND_FAIL),
         "The status of the command, such as BAD_RES; INTERNAL_ERR unless the rule says."},
    [FAULT_ROW_SYNDROME] = {"syndrome", NUMBER, AT(syndrome), 0, UINT32_MAX, BIT(COMMAND_FAIL),
                            "The syndrome of the command, such as 0x1a2b3c."},
    [FAULT_ROW_REPORT] = {"report", FAULT_VALUE_NONE, 0, 0, 0, BIT(HEALTH),
                          "The firmware reports the syndrome and goes on."},
};

const struct fault_group fault_groups[] = {
    {"ROCE", 0, -1, -1, "each RoCE packet"},
    {"RC", 0, BTH_RC, -1, "each packet of a reliable connection; so do UC, UD, DC, XRC"},
    {"UC", 0, BTH_UC, -1, NULL},
    {"UD", 0, BTH_UD, -1, NULL},
    {"DC", 0, BTH_DC, -1, NULL},
    {"XRC", 0, BTH_XRC, -1, NULL},
    {"REQUEST", PKT_REQUEST, -1, -1, "each request"},
    {"RESPONSE", PKT_RESPONSE, -1, -1, "each response, ACKs included"},
    {"SEND", PKT_SEND, -1, -1, "each packet of a SEND"},
    {"WRITE", PKT_WRITE, -1, -1, "each packet of a WRITE"},
    {"READ", PKT_READ, -1, -1, "each READ request and response"},
    {"READ_RESPONSE", PKT_READ | PKT_RESPONSE, -1, -1, "each READ response"},
    {"ATOMIC", PKT_ATOMIC, -1, -1, "each atomic operation and its answer"},
    {"NAK", PKT_RESPONSE | HDR_AETH, -1, AETH_CLASS_NAK, "each NAK"},
    {"RNR_NAK", PKT_RESPONSE | HDR_AETH, -1, AETH_CLASS_RNR_NAK, "each RNR NAK"},
};

const unsigned fault_num_groups = G_N_ELEMENTS(fault_groups);
