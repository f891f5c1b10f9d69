/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The firmware's own view of itself, for the files under fw/.
 *
 * One struct fw is one function. Each part keeps its state in a struct of its own here; who may
 * change it stands beside it.
 */
#ifndef HCASIM_FW_FW_INTERNAL_H
#define HCASIM_FW_FW_INTERNAL_H

#include "fw/fw.h"
#include "fw/profile.h"
#include "model/core/hca.h"
#include "model/port/port.h"
#include "prm/prm.h"

#define FW_MIN_MTU 90 /* 68 bytes of IPv4, Ethernet header, VLAN tag, FCS */

/* Register writes from the function's own DMA that wait for the end of an entry. */
#define ENTRY_WRITES 16

/* The owner's call that is under way, and what came back into the function meanwhile
 * (fw/entry.c). */
struct fw_entry {
    bool under_way;
    bool retired; /* the function goes away: nothing is done any more */
    bool due;     /* anything of what follows, and not retired */
    bool reset;
    bool rewire; /* to this: */
    struct wire_port *wire;
    struct fw_write {
        uint64_t offset, value;
        uint8_t size;
    } writes[ENTRY_WRITES + 1]; /* the last place is for one that disables the function */
    unsigned num_writes;
    uint64_t lost_writes; /* those that found no place, ever */
    uint64_t lost_told;   /* that, when it was last logged */
};

/* The command queue (fw/cmdq.c). */
struct fw_cmdq {
    uint64_t addr;            /* bus address of entry 0; 0: not told yet */
    uint32_t pending;         /* entries whose doorbell rang and which were not taken yet */
    struct work work;         /* takes them, one at a time */
    struct cmdq_entry *entry; /* the one under way */
};

/* Many, so that none takes long to grow. */
#define FW_LOG_PAGE_SETS 8

/* Host memory that the function was given (fw/pages.c). */
struct fw_pages {
    GArray *list;                            /* page frames (uint64_t): bus address >> 12 */
    GHashTable *sets[1 << FW_LOG_PAGE_SETS]; /* the same */
    uint64_t secret;                         /* odd; says in which set a frame is, and where */
    int32_t asked; /* PAGE_REQUEST under way: > 0 pages asked for, < 0 offered, 0 none */
    bool refused;  /* the host could not give: do not ask again before pages are free */
};

/* How far a command on many pages has come; zeroed before its first step. */
struct pages_progress {
    bool begun;
    uint32_t n; /* pages to take */
    uint32_t done;
    enum syn why; /* giving failed, what was given is given back */
};

/* Capabilities that SET_HCA_CAP can change, as they stand now (fw/caps.c); all of them bytes. */
struct fw_caps {
    uint8_t log_max_qp;
    uint8_t log_max_current_uc_list;
    uint8_t cmdif_checksum;
    uint8_t cache_line_128byte;
    uint8_t roce;
    uint8_t dct;
    uint8_t atomic_mode;
};

/* What the firmware says of its own health (fw/health.c). */
struct fw_health {
    uint8_t syndrome; /* enum prm_health_syndrome; 0: well */
    bool fatal;       /* it stopped, and asks for a reset */
    uint64_t since;   /* clock_ns() when it said so */
};

/* An update of the firmware (fw/regs_update.c). */
struct fw_update {
    uint32_t handle; /* of the update, or of the next one */
    bool locked;     /* there is one */
    uint8_t error;   /* enum prm_mcc_error: of its last instruction */
};

struct fw {
    struct hca hca; /* the hardware; must stay first: struct work finds struct fw */
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
    uint32_t invalid_commands; /* vnic_diagnostic_statistics.invalid_command */
};

static inline struct fw *fw_of_hca(struct hca *hca)
{
    return (struct fw *)hca;
}

/* The physical port that the function's vport goes out by. */
static inline struct uplink *fw_uplink(const struct fw *fw)
{
    return fw->hca.vport->uplink;
}

/* The function's state changes only here: DISABLED <-> ENABLED <-> READY. */
void fw_set_state(struct fw *fw, uint8_t state);

/* The firmware begins anew: health and registers are as after power-on; the port, too, unless the
 * card has other functions. */
void fw_restart(struct fw *fw);

/* -- health (fw/health.c) ---------------------------------------------------------------------- */

void health_reset(struct fw *fw);
/* Whether the firmware has stopped: it answers nothing until it is reset. */
bool health_is_fatal(const struct fw *fw);
/* The health buffer, zeroed before, and the counter that runs while the firmware does. */
void health_fill(struct fw *fw, struct prm_health_buffer *image);
uint32_t health_counter(struct fw *fw);

/* -- entries (fw/entry.c) ---------------------------------------------------------------------- */

/* Begins an entry. False: one is under way, and what is asked for must be noted. */
bool entry_begin(struct fw *fw);
/* Ends it, and does what was noted. */
void entry_end(struct fw *fw);
/* Notes what came in while an entry was under way. */
void entry_note_write(struct fw *fw, uint64_t offset, uint64_t value, unsigned size);
void entry_note_reset(struct fw *fw);
void entry_note_wire(struct fw *fw, struct wire_port *wire);
/* The function goes away. */
void entry_retire(struct fw *fw);

/* Whether something noted is left to do: it comes before what is new. */
static inline bool entry_is_due(const struct fw *fw)
{
    return fw->entry.due;
}

/* What becomes of them (fw/fw.c). */
bool fw_do_write(struct fw *fw, uint64_t offset, uint64_t value, unsigned size);
/* A part of a reset. False: there is more. */
bool fw_do_reset(struct fw *fw);

/* -- initialization segment (fw/iseg.c): the first 8 pages of BAR0 ----------------------------- */

/* Whether a write of the whole of BAR0 disables the function. */
bool iseg_disables(uint64_t offset, uint64_t value, unsigned size);

/* The 32-bit register at a 4-byte aligned offset. */
uint32_t iseg_read(struct fw *fw, uint64_t offset);
void iseg_write(struct fw *fw, uint64_t offset, uint32_t value);

/* -- command queue (fw/cmdq.c) ----------------------------------------------------------------- */

#define CMDQ_LOG_ENTRIES 5 /* 32 entries, the most that the driver takes */
#define CMDQ_LOG_STRIDE  6 /* an entry is 64 bytes */

void cmdq_init(struct fw *fw);
void cmdq_clear(struct fw *fw);
/* Forgets every doorbell and the command under way, which is never answered. */
void cmdq_forget(struct fw *fw);
/* The queue's address, too. */
void cmdq_reset(struct fw *fw);
/* Doorbell vector: a bit per entry. */
void cmdq_doorbell(struct fw *fw, uint32_t vector);

/* -- capabilities (fw/caps.c) ------------------------------------------------------------------ */

#define CAP_SECTION_BYTES 4096 /* query_hca_cap_out.capability */

/* What can be set is as after power-on, and the model does what the profile allows. */
void caps_reset(struct fw *fw);
/* Fills a section (op_mod >> 1) of CAP_SECTION_BYTES zeroed bytes. False: no such section. */
bool caps_fill(const struct fw *fw, uint16_t section, bool max, void *cap);
/* Takes over what may be changed in a section: the rest must be as it was read. cap has
 * CAP_SECTION_BYTES. */
enum syn caps_set(struct fw *fw, uint16_t section, const void *cap);
/* False: the command belongs to what the profile does not allow; such a card does not know it. */
bool caps_allow_command(const struct fw *fw, uint16_t opcode);
/* Whether general_obj_types has a type of general object. */
bool caps_have_general_type(const struct fw *fw, uint16_t type);

/* -- pages (fw/pages.c) ------------------------------------------------------------------------ */

void pages_init(struct fw *fw);
void pages_clear(struct fw *fw);
void pages_reset(struct fw *fw);
/* Pages the function must have before INIT_HCA (boot, then init), beyond what it has. */
uint32_t pages_wanted_boot(const struct fw *fw);
uint32_t pages_wanted_init(const struct fw *fw);
/* Pages that would be asked for (> 0) or could be given back (< 0) now, after INIT_HCA. */
int32_t pages_wanted_regular(const struct fw *fw);
/* Takes over n page addresses (big-endian list). All or nothing. SYN_AGAIN: a part is done. */
enum syn pages_give(struct fw *fw, const uint8_t *pas, uint32_t n, struct pages_progress *at);
/* The host cannot give what was asked for. */
void pages_cant_give(struct fw *fw);
/* Gives back up to n pages into pas (big-endian list); at->n says how many. SYN_AGAIN: a part is
 * done. */
enum syn pages_take(struct fw *fw, uint8_t *pas, uint32_t n, struct pages_progress *at);
/* No request is under way: those who would answer it are gone. */
void pages_forget_request(struct fw *fw);
/* Raises a PAGE_REQUEST if the ledger calls for one; run after every command. */
void pages_balance(struct fw *fw);

/* -- user contexts (fw/cmd_devx.c) ------------------------------------------------------------- */

bool devx_uid_exists(const struct fw *fw, uint16_t uid);

/* -- registers ------------------------------------------------------------------- */

/* The description of the node is the device's own again, and no update is under way. */
void regs_reset(struct fw *fw);
void regs_update_reset(struct fw *fw);
/* The port's registers are as after power-on. */
void regs_port_reset(struct fw *fw);

#endif
