/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The owner's handle on one HCA function: its BAR, its reset, its cable, its turns.
 *
 * An owner (qemu-dev, guest-lib, a test) creates a function with a table of host callbacks,
 * forwards MMIO to it, plugs a wire port in, and calls fw_run() when the function has asked for it
 * (hca_host_ops wake and timer_arm). The owner serializes all calls for one function. But a call
 * may come out of a host callback, in the middle of another call; model/core/host.h says what each
 * does then.
 */
#ifndef HCASIM_FW_FW_H
#define HCASIM_FW_FW_H

#include <glib.h>
#include "model/core/host.h"

struct card;
struct fault_names;
struct fault_deed;
struct fault_set;
struct fw;
struct wire_port;

/* The profile that is used if none is named (fw/profile.c has all). */
#define FW_PROFILE_DEFAULT "cx5"

/* 1 GiB: translation entries (eight bytes each) of 512 GiB of registered memory in pages of 4 KiB,
 * or about 80,000 QPs. So the owner of many guests knows what each guest can cost. */
#define FW_MEMORY_DEFAULT (1ull << 30)
/* log2 of the number of QPNs. The first 64 are never given out, and the last 24-bit number is the
 * multicast QPN. */
#define FW_LOG_QPS_MIN 8
#define FW_LOG_QPS_MAX 23

/* The device memory (model/memory/memic.h): its bytes, and its place in BAR0. */
#define FW_DEVICE_MEMORY     (1u << 20)
#define FW_DEVICE_MEMORY_BAR (28u << 20)

/* Responders of DC targets: twice what a job of 64 processes with 8 initiators each needs. Each
 * responder in use takes about 500 bytes of the host's memory and as much of the card's. */
#define FW_RESPONDERS_DEFAULT 1024
#define FW_RESPONDERS_MAX     65536

/* The least that a driver needs: the pages that it gives first, its queues and keys. */
#define FW_MEMORY_MIN (8ull << 20)

struct fw_config {
    const char *profile; /* NULL: FW_PROFILE_DEFAULT */
    uint8_t mac[6];      /* permanent MAC of its vport; unicast and not zero */
    unsigned num_msix;   /* MSI-X vectors that irq() accepts; 0: the profile's number */
    /* most bytes that the guest can make the function allocate; 0: FW_MEMORY_DEFAULT */
    uint64_t memory;
    unsigned responders; /* most sessions of its DC targets at one time; 0: FW_RESPONDERS_DEFAULT */
    unsigned log_max_qp; /* log2 of the number of QPNs; 0: the profile's number */
    unsigned qpn_start;  /* offset of the first QPN that is given out, modulo their number */
    bool no_pci_atomics; /* dma_atomic() is not atomic to the host's CPUs */
    /* FW_DEVICE_MEMORY bytes for the device memory, aligned to a page, which live as long as the
     * function. The owner may map them into the guest at offset FW_DEVICE_MEMORY_BAR of BAR0: then
     * CPUs access them without calls here. NULL: the function allocates its own memory. */
    void *device_memory;
    bool trace;        /* write a trace to the log (model/core/trace.h); it costs time */
    bool trace_events; /* give its events to the host (model/core/trace_event.h) */
    /* NULL: the function gets a card of its own. Else a card of model/card/card.h, which must
     * outlive the function. The function then has this number on the card, and is attached to the
     * vport of this number, which must have no function. A vport that had a function before keeps
     * its MAC. All calls for the functions of a card come from one thread; each function has its
     * own host, reset and turns. */
    struct card *card;
    unsigned function;
};

/* PCI identity of a profile, for the owner's configuration space. */
struct fw_pci_id {
    uint16_t vendor, device, subsys_vendor, subsys;
    uint8_t revision;
    unsigned num_msix;                        /* size of the MSI-X table */
    uint64_t bar_size;                        /* size of BAR0 in bytes, a power of two */
    unsigned link_speed, link_width;          /* PCI Express generation and number of lanes */
    const char *product, *part_number;        /* as in the card's vital product data */
    unsigned fw_major, fw_minor, fw_subminor; /* the firmware's version */
    const char *board;                        /* id of the parameter set */
};

/* The names that fw_config.profile accepts, ended by NULL. */
const char *const *fw_profile_names(void);

/* Finds a profile (NULL: the default). False: there is no such profile. */
bool fw_profile_pci_id(const char *profile, struct fw_pci_id *id);

/* The mode that PTYS reports for a profile's port (NULL: the default) while the link is up and
 * its speed is not limited: bits of enum eth_link_mode and enum ext_eth_link_mode. False: there
 * is no such profile. */
bool fw_profile_link_mode(const char *profile, uint32_t *legacy, uint32_t *ext);

/* Creates a function in its power-on state. If the configuration is bad, returns NULL and sets
 * *err. */
struct fw *fw_new(const struct hca_host_ops *ops, void *host, const struct fw_config *config,
                  GError **err);

/* Whether the function has device memory. Its owner may then map the memory of the configuration
 * into the BAR. */
bool fw_has_device_memory(const struct fw *fw);

/* Whether a call of the function is under way, so that the caller runs inside a host callback. */
bool fw_is_entered(const struct fw *fw);

/*
 * Retires the function; may be called at any time. From here on it does not call its host (DMA,
 * interrupts), ignores all requests, and has no work. fw_free() frees the rest.
 */
void fw_retire(struct fw *fw);
/* Must not be called while fw_is_entered(): if a function is unplugged in the middle of a call, its
 * owner retires it and frees it after the call. NULL is allowed. */
void fw_free(struct fw *fw);

/* Function-level or bus reset: destroys every object and restarts the initialization segment. The
 * cable stays plugged in. The port restarts, too, unless the card has other functions. While
 * fw_is_entered(), the function is off until the reset is done. */
void fw_reset(struct fw *fw);

/*
 * Reads or writes BAR0. size is 1, 2, 4 or 8. The value is the register's numeric value: the BAR is
 * big-endian, so a 64-bit doorbell is (first dword << 32) | second dword. Reads outside any
 * register return 0, and writes there are ignored; both are logged as guest errors.
 *
 * fw_mmio_write() returns true if the write is the first of several that belong together
 * (model/queue/uar.h). Then an owner that runs the function from within MMIO should wait for the
 * rest. While fw_is_entered(), a write waits until that call ends; at most 16 writes can wait.
 */
uint64_t fw_mmio_read(struct fw *fw, uint64_t offset, unsigned size);
bool fw_mmio_write(struct fw *fw, uint64_t offset, uint64_t value, unsigned size);

/*
 * Takes a turn of about budget pieces: handles received frames, expired timers, commands and
 * doorbells. Returns true if something is left that can be done now. A piece is a call of the host
 * for DMA, or a frame sent or received; a small message takes about six. Frames and the rest have
 * separate shares of the turn, however much waits on either side. The last step of a share is done
 * completely: a packet from or to memory in small parts may take as many pieces as it has bytes.
 */
bool fw_run(struct fw *fw, unsigned budget);
/* The pieces of the longest turn so far. */
uint64_t fw_most_pieces(const struct fw *fw);
/* To be called when the host's table of callbacks has got dma_expect() and dma_settle(). They must
 * stay there. */
void fw_host_settles(struct fw *fw);
/* The pieces spent since the function was made. If a call of fw_run() does not change this number,
 * there was nothing to do. */
uint64_t fw_pieces(const struct fw *fw);

/*
 * Makes the firmware fail, to test how a driver reacts. The health buffer then has the syndrome
 * (enum prm_health_syndrome; the driver prints its meaning). If fatal, the firmware also asks for a
 * reset, answers no more commands, and its health counter stops; traffic goes on. This lasts until
 * the function is reset or the driver resets the firmware. If not fatal, the firmware goes on; the
 * syndrome lasts until PRM_HEALTH_SYNDROME_NONE or a reset.
 */
void fw_set_health(struct fw *fw, uint8_t syndrome, bool fatal);
/* The present syndrome. *fatal says whether it is fatal. */
uint8_t fw_get_health(const struct fw *fw, bool *fatal);

/*
 * Makes the function ask a set of rules about its own faults (wire/fault/fault.h): late interrupts,
 * doorbells that it does not see, commands, health, page requests. The set's clock is that of the
 * function's host, and rules change only while no call of the function is under way. NULL: the
 * function has no faults; a set must be taken away, or the function freed, before the set ends.
 */
void fw_set_faults(struct fw *fw, struct fault_set *faults);
/* Adds a fault to the function's trace of events, if it has one. The function does this itself with
 * the faults of its set. */
void fw_trace_fault(struct fw *fw, const struct fault_deed *deed);
/* The names of commands and of their status that such rules use. */
extern const struct fault_names fw_fault_names;

/* The chip's id, as in its configuration registers. */
uint32_t fw_hw_id(const struct fw *fw);

/* Status of a register access, as the driver's tools name it; 7 bits. */
enum fw_reg_status {
    FW_REG_OK = 0,
    FW_REG_BUSY = 1,
    FW_REG_UNKNOWN = 4,
    FW_REG_BAD_METHOD = 6,
    FW_REG_BAD_PARAM = 7,
    FW_REG_NO_RESOURCE = 8,
};

/* Reads or writes a register by another way than the command ACCESS_REG. data has len bytes. The
 * register's value replaces them, as far as it reaches. FW_REG_BUSY: the function is being reset,
 * has failed, or is entered. */
enum fw_reg_status fw_access_reg(struct fw *fw, uint16_t id, bool is_write, void *data, size_t len);

/*
 * Plugs in the card's cable; NULL unplugs it. The caller may use the handle of any of the card's
 * functions, while none of the other functions is entered. The card does not own the port. It uses
 * the port until the next call or until the card ends; while fw_is_entered(), the old port is used
 * until that call has ended. Link state events follow.
 */
void fw_set_wire(struct fw *fw, struct wire_port *port);

/* Cuts the card's cable as somebody would who pulls it out, or mends it: the link goes down, frames
 * of both directions are dropped. The cable stays cut whatever is reset. False: fw_is_entered();
 * nothing has changed. */
bool fw_cut_cable(struct fw *fw, bool cut);

#endif
