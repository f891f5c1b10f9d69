/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The owner's handle on one HCA function: its BAR, its reset, its cable, its turn to run.
 *
 * An owner (qemu-dev, guest-lib, a test) creates a function with a table of host callbacks,
 * forwards MMIO to it, plugs a wire port in, and calls fw_run() when the function asked for it
 * (hca_host_ops wake and timer_arm). All calls for one function are serialized by the owner, but
 * they may come out of a host callback, in the midst of another call: model/core/host.h says what
 * each does then.
 */
#ifndef HCASIM_FW_FW_H
#define HCASIM_FW_FW_H

#include <glib.h>
#include "model/core/host.h"

struct card;
struct fw;
struct wire_port;

/* Of the generations that this firmware can present (fw/profile.c) the one that nobody asked for.
 */
#define FW_PROFILE_DEFAULT "cx5"

/* 1 GiB: translation entries of 512 GiB of registered memory in pages of 4 KiB (eight bytes each),
 * or about 80,000 QPs. So a host of many guests knows what each of them can cost it. */
#define FW_MEMORY_DEFAULT (1ull << 30)
/* QPNs, as powers of two: the first 64 are never handed out, and the last that has 24 bits is that
 * of multicasts. */
#define FW_LOG_QPS_MIN 8
#define FW_LOG_QPS_MAX 23

/* Responders of DC targets: what a job of 64 processes with 8 initiators each needs, and as much
 * again. Each takes some 500 bytes of the host, and as much of the card, when it is used. */
#define FW_RESPONDERS_DEFAULT 1024
#define FW_RESPONDERS_MAX     65536

/* What a driver cannot do without: the pages that it gives to begin with, its queues and keys. */
#define FW_MEMORY_MIN (8ull << 20)

struct fw_config {
    const char *profile; /* NULL: FW_PROFILE_DEFAULT */
    uint8_t mac[6];      /* permanent MAC of its vport; unicast and not zero */
    unsigned num_msix;   /* MSI-X vectors that irq() accepts; 0: the profile's number */
    uint64_t memory;     /* bytes that the guest may make the function take; 0: FW_MEMORY_DEFAULT */
    unsigned responders; /* sessions that its DC targets have at a time; 0: FW_RESPONDERS_DEFAULT */
    unsigned log_max_qp; /* QPNs, as a power of two; 0: the profile's number */
    unsigned qpn_start;  /* which of its QPNs it gives out first, around their end */
    bool no_pci_atomics; /* dma_atomic() and the host's CPUs may lose each other's changes */
    bool trace;          /* the log gets a trace (model/core/trace.h); it takes time */
    /* NULL: a card of its own. Else one of model/card/card.h, which must outlive the function: it
     * is the card's function of this number, and stands at the vport of this number, which has
     * none. A vport that had a function before keeps its MAC. All calls for the functions of a card
     * come from one thread; each has its own owner's host, reset and turns. */
    struct card *card;
    unsigned function;
};

/* PCI identity of a profile, for the owner's configuration space. */
struct fw_pci_id {
    uint16_t vendor, device, subsys_vendor, subsys;
    uint8_t revision;
    unsigned num_msix;                        /* size of the MSI-X table to present */
    uint64_t bar_size;                        /* BAR0, bytes, a power of two */
    unsigned link_speed, link_width;          /* PCI Express: generation, lanes */
    const char *product, *part_number;        /* as the card's vital product data names it */
    unsigned fw_major, fw_minor, fw_subminor; /* what is in flash: the firmware's version */
    const char *board;                        /* its parameter set's id */
};

/* NULL-terminated list of the names that fw_config.profile accepts. */
const char *const *fw_profile_names(void);

/* Looks up a profile (NULL: the default). False: no such profile. */
bool fw_profile_pci_id(const char *profile, struct fw_pci_id *id);

/* The mode that PTYS tells of a profile's port (NULL: the default one's) while the link is up and
 * nobody has limited its speed: bits of enum eth_link_mode and enum ext_eth_link_mode. False: no
 * such profile. */
bool fw_profile_link_mode(const char *profile, uint32_t *legacy, uint32_t *ext);

/* Creates a function in its power-on state. NULL with *err set if the configuration is bad. */
struct fw *fw_new(const struct hca_host_ops *ops, void *host, const struct fw_config *config,
                  GError **err);

/* Whether a call of these is under way: the caller stands in a host callback. */
bool fw_is_entered(const struct fw *fw);

/*
 * Says that the function goes away, at any time: from here on it reaches its host no more (DMA,
 * interrupts), ignores what is asked of it, and has no work. What is left of it is for fw_free().
 */
void fw_retire(struct fw *fw);
/* Must not be called while fw_is_entered(): an owner whose function is unplugged in the midst of a
 * call retires it, and frees it after. NULL is fine. */
void fw_free(struct fw *fw);

/* Function-level or bus reset: every object is gone, the initialization segment starts over.
 * The cable stays plugged in. The port starts over, too, unless the card has other functions. While
 * fw_is_entered(), the function is off until it comes to that. */
void fw_reset(struct fw *fw);

/*
 * MMIO on BAR0. size is 1, 2, 4 or 8. The value is the register's numeric value: the BAR is
 * big-endian, so a 64-bit doorbell is (first dword << 32) | second dword. Reads outside any
 * register give 0, writes there are ignored; both are logged as guest errors.
 *
 * fw_mmio_write() returns true if the write is the first of several that belong together
 * (model/queue/uar.h): an owner that runs the function from within MMIO had better wait for the
 * rest. While fw_is_entered(), a write only waits for the end of that; as many as 16 do.
 */
uint64_t fw_mmio_read(struct fw *fw, uint64_t offset, unsigned size);
bool fw_mmio_write(struct fw *fw, uint64_t offset, uint64_t value, unsigned size);

/*
 * Takes a turn: does what is pending of received frames, expired timers, commands and doorbells,
 * for about budget pieces, and returns true if something is left that can be done now. A piece is a
 * call of the host for DMA, a frame sent or received; a small message takes half a dozen. Frames
 * and the rest each have a share of the turn, however much waits of the other. The last step of a
 * share is done whole: a packet to or from memory in pieces may take as many as it has bytes.
 */
bool fw_run(struct fw *fw, unsigned budget);
/* The pieces of the longest turn so far. */
uint64_t fw_most_pieces(const struct fw *fw);
/* The pieces spent since the function was made: fw_run() that leaves them as they were had nothing
 * to do. */
uint64_t fw_pieces(const struct fw *fw);

/*
 * The firmware fails, for tests of what a driver makes of that: the syndrome (enum
 * prm_health_syndrome, by which the driver tells what fails) stands in the health buffer. Fatal: it
 * also asks for a reset, answers no more commands and its health counter stands still, while what
 * is on its way goes on, until the function is reset or the driver resets the firmware. Not fatal:
 * it goes on, until PRM_HEALTH_SYNDROME_NONE or a reset.
 */
void fw_set_health(struct fw *fw, uint8_t syndrome, bool fatal);
/* The syndrome now, and in *fatal whether it is a fatal one. */
uint8_t fw_get_health(const struct fw *fw, bool *fatal);

/* The chip's id, as its configuration registers tell it. */
uint32_t fw_hw_id(const struct fw *fw);

/* Status of an operation on a register (the driver's tools call them so), 7 bits. */
enum fw_reg_status {
    FW_REG_OK = 0,
    FW_REG_BUSY = 1,
    FW_REG_UNKNOWN = 4,
    FW_REG_BAD_METHOD = 6,
    FW_REG_BAD_PARAM = 7,
    FW_REG_NO_RESOURCE = 8,
};

/* Reads or writes a register by another way than the command ACCESS_REG. data has len bytes, which
 * the register's value replaces as far as it goes. FW_REG_BUSY: the function is being reset, has
 * failed, or is entered. */
enum fw_reg_status fw_access_reg(struct fw *fw, uint16_t id, bool is_write, void *data, size_t len);

/*
 * Plugs in (or, with NULL, pulls out) the cable, which is the card's: any of its functions' handles
 * will do, while none of the others is entered. The card uses the port until the next call or its
 * end, while fw_is_entered() until that has ended, and does not own it. Link state events follow.
 */
void fw_set_wire(struct fw *fw, struct wire_port *port);

#endif
