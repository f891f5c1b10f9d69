/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of the firmware, for the files under fw/.
 *
 * One struct fw is one function. Each part of the firmware keeps its state in a struct of its own
 * here; the comment beside it names the file that may change it.
 */
#ifndef HCASIM_FW_FW_INTERNAL_H
#define HCASIM_FW_FW_INTERNAL_H

#include "fw/fw.h"
#include "fw/profile.h"
#include "model/core/hca.h"
#include "model/port/port.h"
#include "prm/prm.h"

#define FW_MIN_MTU 90 /* an IPv4 packet of 68 bytes, with Ethernet header, VLAN tag and FCS */

/* The most register writes by the function's own DMA that wait for the end of an entry. */
#define ENTRY_WRITES 16

/* The owner's call that is under way, and the calls that came back into the function meanwhile
 * (fw/entry.c). */
struct fw_entry {
    bool under_way;
    bool retired; /* the function goes away: it does nothing any more */
    bool due;     /* some of the following is to be done, and the function is not retired */
    bool reset;
    bool rewire; /* the cable to plug in */
    struct wire_port *wire;
    struct fw_write {
        uint64_t offset, value;
        uint8_t size;
    } writes[ENTRY_WRITES + 1]; /* the last place is for a write that disables the function */
    unsigned num_writes;
    uint64_t lost_writes; /* writes that found no place, since the function was made */
    uint64_t lost_told;   /* lost_writes when it was last logged */
};

/* The command queue (fw/cmdq.c). */
struct fw_cmdq {
    uint64_t addr;            /* bus address of entry 0; 0: not set yet */
    uint32_t pending;         /* entries whose doorbell rang and that were not taken yet */
    struct work work;         /* takes the entries, one at a time */
    struct cmdq_entry *entry; /* the entry under way */
};

/* log2 of the number of hash tables. There are many, so that growing one does not take long. */
#define FW_LOG_PAGE_SETS 8

/* Host memory that the driver gave to the function (fw/pages.c). */
struct fw_pages {
    GArray *list; /* numbers of the given pages (uint64_t): bus address >> 12 */
    GHashTable *sets[1 << FW_LOG_PAGE_SETS]; /* the same pages as hash tables */
    uint64_t secret; /* odd; determines the hash table of a page, and its key there */
    int32_t asked; /* the PAGE_REQUEST under way: > 0 pages requested, < 0 pages offered, 0 none */
    bool refused;  /* the host could not give pages: send no request until pages are free */
};

/* Progress of a command on many pages; zeroed before its first step. */
struct pages_progress {
    bool begun;
    uint32_t n; /* how many pages to take */
    uint32_t done;
    enum syn why; /* why giving failed; the pages given so far are given back */
};

/* Present values of the capabilities that SET_HCA_CAP can change (fw/caps.c). All are bytes. */
struct fw_caps {
    uint8_t log_max_qp;
    uint8_t log_max_current_uc_list;
    uint8_t cmdif_checksum;
    uint8_t cache_line_128byte;
    uint8_t roce;
    uint8_t dct;
    uint8_t atomic_mode;
    /* on-demand paging, transport scheme: 1 for each operation that a driver has switched on */
    struct {
        uint8_t send, receive, write, read, atomic, srq_receive;
    } odp[PAGING_TRANSPORTS];
    uint8_t mem_page_fault; /* the memory scheme is used */
};

/* The health that the firmware reports (fw/health.c). */
struct fw_health {
    uint8_t syndrome; /* enum prm_health_syndrome; 0: healthy */
    bool fatal;       /* the firmware has stopped, and asks for a reset */
    uint64_t since;   /* clock_ns() when it was set */
};

/* An update of the firmware (fw/regs_update.c). */
struct fw_update {
    uint32_t handle; /* handle of the update, or of the next one */
    bool locked;     /* an update is under way */
    uint8_t error;   /* enum prm_mcc_error of the last instruction */
};

/* Faults that the owner wants (fw/inject.c). */
struct fw_inject {
    struct hca_timer health, command, pages;
    bool pages_go;  /* the page request that waited is due */
    uint8_t status; /* of the command that fails */
    uint32_t syndrome;
};

struct fw {
    struct hca hca; /* the hardware; must be first, because struct work leads to struct fw */
    const struct fw_profile *profile;
    uint8_t state; /* one of enum fw_cmd_states */
    uint16_t issi;
    uint8_t nic_interface; /* PRM initial_seg.nic_interface: enum prm_nic_interface */

    struct fw_entry entry;
    struct fw_cmdq cmdq;
    struct fw_pages pages;
    struct fw_caps caps;
    char node_desc[64];      /* NODE_DESC */
    uint64_t restarted_ns;   /* MGIR.uptime */
    struct fw_update update; /* MCC */
    struct fw_health health;
    struct fw_inject inject;
    uint32_t invalid_commands; /* vnic_diagnostic_statistics.invalid_command */
    uint32_t quota_exceeded;   /* the commands among them that were refused for want of room */
};

static inline struct fw *fw_of_hca(struct hca *hca)
{
    return (struct fw *)hca;
}

/* The physical port of the function's vport. */
static inline struct uplink *fw_uplink(const struct fw *fw)
{
    return fw->hca.vport->uplink;
}

/* Changes the function's state; no other function does: DISABLED <-> ENABLED <-> READY. */
void fw_set_state(struct fw *fw, uint8_t state);

/* Restarts the firmware: health and registers have their values after power-on. The port restarts,
 * too, unless the card has other functions. */
void fw_restart(struct fw *fw);

/* -- health (fw/health.c) ---------------------------------------------------------------------- */

void health_reset(struct fw *fw);
/* Whether the firmware has stopped. Then it answers nothing until it is reset. */
bool health_is_fatal(const struct fw *fw);
/* Fills in the health buffer, which is zeroed, and the counter that runs while the firmware
 * does. */
void health_fill(struct fw *fw, struct prm_health_buffer *image);
uint32_t health_counter(struct fw *fw);

/* -- faults (fw/inject.c) ---------------------------------------------------------------------- */

struct fw_cmd;
/* Called after a reset, which has forgotten all timers. */
void inject_restart(struct fw *fw);
/* inject_command(), inject_pages_wait() need a function with faults. SYN_OK: the command has none.
 * SYN_INJECTED: it fails; inject_fill() writes how. SYN_AGAIN: it runs when a timer says so. */
enum syn inject_command(struct fw *fw, const struct fw_cmd *cmd);
void inject_fill(const struct fw *fw, struct prm_cmd_out *out);
/* Whether the command under way waits for that timer, which wakes the command queue. */
bool inject_command_waits(const struct fw *fw);
/* Whether the page request waits; pages_balance() is called when it is due. */
bool inject_pages_wait(struct fw *fw);

/* -- entries (fw/entry.c) ---------------------------------------------------------------------- */

/* Begins an entry. False: another entry is under way, and the request must be noted. */
bool entry_begin(struct fw *fw);
/* Ends the entry, and does what was noted. */
void entry_end(struct fw *fw);
/* These note a request that came in while an entry was under way. */
void entry_note_write(struct fw *fw, uint64_t offset, uint64_t value, unsigned size);
void entry_note_reset(struct fw *fw);
void entry_note_wire(struct fw *fw, struct wire_port *wire);
/* The function goes away. */
void entry_retire(struct fw *fw);

/* Whether a noted request is still to be done. It comes before new requests. */
static inline bool entry_is_due(const struct fw *fw)
{
    return fw->entry.due;
}

/* Carry out noted requests (fw/fw.c). fw_do_write() returns what fw_mmio_write() does. */
bool fw_do_write(struct fw *fw, uint64_t offset, uint64_t value, unsigned size);
/* Does a part of a reset. False: there is more to do. */
bool fw_do_reset(struct fw *fw);

/* -- initialization segment (fw/iseg.c): the first 8 pages of BAR0 ----------------------------- */

/* Whether a write to BAR0 disables the function. */
bool iseg_disables(uint64_t offset, uint64_t value, unsigned size);

/* Reads the 32-bit register at a 4-byte aligned offset. */
uint32_t iseg_read(struct fw *fw, uint64_t offset);
void iseg_write(struct fw *fw, uint64_t offset, uint32_t value);

/* -- command queue (fw/cmdq.c) ----------------------------------------------------------------- */

#define CMDQ_LOG_ENTRIES 5 /* 32 entries, the most that the driver uses */
#define CMDQ_LOG_STRIDE  6 /* an entry is 64 bytes */

void cmdq_init(struct fw *fw);
void cmdq_clear(struct fw *fw);
/* Forgets every doorbell and the command under way, which gets no answer. */
void cmdq_forget(struct fw *fw);
/* Forgets also the queue's address. */
void cmdq_reset(struct fw *fw);
/* Doorbell vector: a bit for each entry. */
void cmdq_doorbell(struct fw *fw, uint32_t vector);

/* -- capabilities (fw/caps.c) ------------------------------------------------------------------ */

#define CAP_SECTION_BYTES 4096 /* query_hca_cap_out.capability */

/* Sets the settable capabilities to their values after power-on; the model supports what the
 * profile allows. */
void caps_reset(struct fw *fw);
/* Fills a section (op_mod >> 1), which has CAP_SECTION_BYTES zeroed bytes. False: there is no such
 * section. */
bool caps_fill(const struct fw *fw, uint16_t section, bool max, void *cap);
/* Sets the settable fields of a section. All other fields must be as they were read. cap has
 * CAP_SECTION_BYTES. */
enum syn caps_set(struct fw *fw, uint16_t section, const void *cap);
/* False: the command belongs only to capabilities that the profile does not allow; such a card does
 * not know the command. */
bool caps_allow_command(const struct fw *fw, uint16_t opcode);
/* Whether general_obj_types has this type of general object. */
bool caps_have_general_type(const struct fw *fw, uint16_t type);

/* -- pages (fw/pages.c) ------------------------------------------------------------------------ */

void pages_init(struct fw *fw);
void pages_clear(struct fw *fw);
void pages_reset(struct fw *fw);
/* How many more pages the function needs: pages_wanted_boot() at boot, pages_wanted_init() before
 * INIT_HCA. */
uint32_t pages_wanted_boot(const struct fw *fw);
uint32_t pages_wanted_init(const struct fw *fw);
/* After INIT_HCA: the pages to request (> 0), or that could be given back (< 0). */
int32_t pages_wanted_regular(const struct fw *fw);
/* Takes over all n pages of a big-endian list of addresses, or none. SYN_AGAIN: a part is done. */
enum syn pages_give(struct fw *fw, const uint8_t *pas, uint32_t n, struct pages_progress *at);
/* The host cannot give the requested pages. */
void pages_cant_give(struct fw *fw);
/* Gives back up to n pages, into the big-endian list pas; at->n says how many. SYN_AGAIN: a part is
 * done. */
enum syn pages_take(struct fw *fw, uint8_t *pas, uint32_t n, struct pages_progress *at);
/* Forgets the request under way, because it will not be answered any more. */
void pages_forget_request(struct fw *fw);
/* Raises a PAGE_REQUEST if the ledger needs one. Called after every command. */
void pages_balance(struct fw *fw);

/* -- user contexts (fw/cmd_devx.c) ------------------------------------------------------------- */

bool devx_uid_exists(const struct fw *fw, uint16_t uid);

/* -- registers ------------------------------------------------------------------- */

/* Restores the device's own node description, and ends any update. */
void regs_reset(struct fw *fw);
void regs_update_reset(struct fw *fw);
/* Sets the port's registers to their values after power-on. */
void regs_port_reset(struct fw *fw);

#endif
