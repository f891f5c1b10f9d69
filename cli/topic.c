/* SPDX-License-Identifier: BSD-2-Clause */
/* The subjects that have a page, and the page about wires. Numbers on it come from the code. */
#include "cli/topic.h"
#include <stddef.h>
#include <string.h>
#include "guest-lib/verbs/kernel/settings.h"
#include "wire/open.h"
#include "wire/shm/file.h"
#include "wire/shm/segment.h"

/* -- sections ---------------------------------------------------------------------------------- */

static void topic_free_section(gpointer data)
{
    struct cli_section *section = data;

    g_free(section->text);
    g_ptr_array_unref(section->items);
    g_free(section);
}

GPtrArray *cli_sections_new(void)
{
    return g_ptr_array_new_with_free_func(topic_free_section);
}

void cli_section_add(GPtrArray *sections, const char *title, char *text)
{
    struct cli_section *section = g_new0(struct cli_section, 1);

    *section = (struct cli_section){title, text, g_ptr_array_new_with_free_func(g_free)};
    g_ptr_array_add(sections, section);
}

void cli_item_add(GPtrArray *sections, char *term, char *text)
{
    struct cli_section *last = g_ptr_array_index(sections, sections->len - 1);

    g_ptr_array_add(last->items, term);
    g_ptr_array_add(last->items, text);
}

/* -- wires ------------------------------------------------------------------------------------- */

static void topic_add_text(GPtrArray *sections, const char *title, const char *text)
{
    cli_section_add(sections, title, g_strdup(text));
}

static void topic_add_item(GPtrArray *sections, const char *term, const char *text)
{
    cli_item_add(sections, g_strdup(term), g_strdup(text));
}

/* A number and what it counts. */
static void topic_add_limit(GPtrArray *sections, uint64_t number, const char *of)
{
    cli_item_add(sections, g_strdup_printf("%" G_GUINT64_FORMAT, number), g_strdup(of));
}

static uint64_t topic_kib(uint64_t bytes)
{
    return (bytes + 1023) >> 10;
}

static void topic_add_limits(GPtrArray *sections)
{
    topic_add_text(sections, "LIMITS", NULL);
    topic_add_limit(sections, SHM_MEMBERS, "devices on a wire.");
    topic_add_limit(sections, WIRE_NUMBER_MAX, "host numbers on a wire.");
    topic_add_limit(sections, HV_MAX_DEVICES,
                    "devices of a process, and so many wires on which it can be.");
    topic_add_limit(sections, WIRE_FRAME_MAX, "bytes of a frame.");
    topic_add_limit(sections, SHM_SLOTS,
                    "frames that wait for one receiver, from all senders together. Further "
                    "senders wait.");
    topic_add_limit(sections, SHM_RING, "frames of one sender that wait for one receiver.");
    topic_add_limit(sections, SHM_LOG >> 10,
                    "KiB of frames for all that one sender has sent and a receiver has not read. "
                    "A receiver that is later misses the oldest frames.");
    topic_add_limit(sections, SHM_MACS,
                    "source addresses of a device that the wire remembers. If there are more, "
                    "frames to the oldest one go to all.");
    topic_add_limit(sections, SHM_JOIN_WAIT_MS / 1000,
                    "seconds that a program waits at most for others that join or leave at the "
                    "same time.");
}

static void topic_add_memory(GPtrArray *sections)
{
    cli_section_add(
        sections, "MEMORY",
        g_strdup_printf("A wire takes %" G_GUINT64_FORMAT " KiB, and at least %" G_GUINT64_FORMAT
                        " KiB for each device on it. A device with much traffic takes more, up to "
                        "%" G_GUINT64_FORMAT " KiB for the frames that wait for it. The size that "
                        "ls shows for the file is the size of its address space, not of its "
                        "memory; du shows the memory, and so does hcasim wires.",
                        topic_kib(offsetof(struct shm_header, member)),
                        topic_kib(sizeof(struct shm_member) + SHM_CHUNK * sizeof(struct shm_slot)),
                        topic_kib(SHM_SLOTS * sizeof(struct shm_slot))));
}

static void topic_add_settings(GPtrArray *sections)
{
    static const char *const names[] = {"wire", "devices", "host", "ip", "mac", "mtu"};

    topic_add_text(sections, "SETTINGS",
                   "Each setting is an option of hcasim run, a variable, and a key in the "
                   "group [" HV_SETTINGS_GROUP
                   "] of the key file that --config or HCASIM_CONFIG names. An "
                   "option has priority over a variable, and a variable over the file.");
    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        const struct hv_setting *setting = hv_setting_find(names[i]);
        g_autofree char *upper = g_ascii_strup(setting->name, -1);

        cli_item_add(sections,
                     g_strdup_printf("--%s, HCASIM_%s, %s=", setting->name, upper, setting->name),
                     g_strdup_printf("%s (default: %s)", setting->help, setting->usual));
    }
}

/* The forms of wire/socket/socket.h. */
static void topic_add_sockets(GPtrArray *sections)
{
    static const char *const forms[][2] = {
        {"listen:/PATH, listen:HOST:PORT",
         "A stream, Unix or TCP, to the program that connects to this address. A second program is "
         "refused as long as there is one."},
        {"connect:/PATH, connect:HOST:PORT",
         "A stream to the program that listens at this address. The link is down until there is "
         "one. Frames pass as in QEMU's -netdev stream, so the other end may also be a QEMU."},
        {"unix:OURS:THEIRS",
         "Datagrams between the Unix sockets OURS and THEIRS, as in QEMU's -netdev dgram. The file "
         "OURS is replaced."},
        {"udp:PORT:HOST:PORT",
         "Datagrams of UDP from our PORT to that HOST and PORT; only that peer is heard."},
        {"vxlan:VNI:PORT:HOST:PORT",
         "The same with the header of VXLAN, as Linux and Open vSwitch use it on port 4789."},
        {"tap:NAME", "The tap interface NAME, of which the program is the other end."},
        {"if:NAME", "The network interface NAME, in promiscuous mode. Needs CAP_NET_RAW."},
    };

    topic_add_text(sections, "SOCKETS",
                   "Instead of a wire in shared memory, a program may have a socket to one other "
                   "end: another program with hcasim, a QEMU, another machine. A stream loses no "
                   "frame between its two ends, and its link is down while there is no other end. "
                   "Datagrams may be lost, and their link is always up.");
    for (size_t i = 0; i < G_N_ELEMENTS(forms); i++) {
        topic_add_item(sections, forms[i][0], forms[i][1]);
    }
}

static GPtrArray *topic_wire(void)
{
    GPtrArray *sections = cli_sections_new();

    topic_add_text(
        sections, "DESCRIPTION",
        "A wire connects the devices of programs, and of VMs, on one machine. It is a file in "
        "shared memory that works as an Ethernet switch. All devices on the same wire reach each "
        "other, and no others.\n"
        "A unicast frame goes to the device that has its destination address. No such frame is "
        "lost: if the receiver has no room, the sender waits. A frame whose address no device has "
        "used, a broadcast or a multicast frame goes to all. The link is up as long as the device "
        "is open.\n"
        "The first program that uses a wire makes it, and the last one removes it.");
    topic_add_text(sections, "NAMES", NULL);
    cli_item_add(sections, g_strdup("NAME, shm:NAME"),
                 g_strdup_printf("A wire of this user. NAME has 1 to %d letters, digits, '.', '_' "
                                 "and '-', and does not begin with '.'. Its file is " WIRE_SHM_DIR
                                 "/hcasim-UID-NAME.",
                                 WIRE_NAME_MAX));
    topic_add_item(sections, "shm:/PATH",
                   "The wire whose file is /PATH. The file system must support open file "
                   "description locks and shared mappings, as tmpfs does.");
    topic_add_sockets(sections);
    topic_add_text(
        sections, "WHO MAY JOIN",
        "A wire that hcasim makes has mode 0600: programs of the same user join it. Different "
        "users have different wires of the same name. Containers share a wire if they share the "
        "folder of its file and the user's number.\n"
        "To let a group share a wire, create an empty file with the access rights that you want, "
        "and use shm:/PATH. The file is removed with the last device, as others are. Any "
        "user who can write the file can disturb the wire.");
    topic_add_text(
        sections, "HOST NUMBERS AND ADDRESSES",
        "Each device of a program has a host number N on its wire: the one of --host, or the "
        "lowest free one. No other living process has the same number. By default, the IPv4 "
        "address is 10.0.0.N (10.0.1.1 follows 10.0.0.254), and the MAC address is 02:68 and the "
        "four bytes of the IPv4 address. A program on several wires holds each of its numbers on "
        "all of them. On a socket the other hosts are not known, so --host must be given, and each "
        "host must have another number.");
    topic_add_settings(sections);
    topic_add_limits(sections);
    topic_add_memory(sections);
    topic_add_text(
        sections, "KILLED PROGRAMS",
        "The kernel tells the others at once that a program has ended, however it ended. Frames "
        "that a killed program has sent before still arrive. If nobody lives on a wire, the next "
        "hcasim run of the user removes its files, and hcasim wires --clean does so, too. A file "
        "shm:/PATH outside of " WIRE_SHM_DIR
        " stays until a program uses that wire again, or until hcasim wires --clean shm:/PATH.");
    topic_add_text(sections, "FILES", NULL);
    topic_add_item(sections, WIRE_SHM_DIR "/hcasim-UID-NAME",
                   "The wire NAME of the user with the number UID.");
    topic_add_item(sections, WIRE_SHM_DIR "/hcasim-UID-NAME.M",
                   "A FIFO that wakes device number M on the wire, counted from 0.");
    topic_add_text(sections, "EXAMPLES", NULL);
    topic_add_item(sections, "hcasim run --wire lab -- PROGRAM", "Runs PROGRAM on the wire lab.");
    topic_add_item(sections, "hcasim run --wire left,right -- PROGRAM",
                   "Gives PROGRAM the device mlx5_0 on the wire left, and mlx5_1 on the wire "
                   "right.");
    topic_add_item(sections, "hcasim wires", "Lists the wires and the hosts on them.");
    return sections;
}

/* -- the table --------------------------------------------------------------------------------- */

static const struct cli_topic topics[] = {
    {"wire", "what connects the devices of programs and VMs", topic_wire},
};

const struct cli_topic *cli_topic_at(unsigned i)
{
    return i < G_N_ELEMENTS(topics) ? &topics[i] : NULL;
}

const struct cli_topic *cli_topic_find(const char *name)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(topics); i++) {
        if (!strcmp(topics[i].name, name)) {
            return &topics[i];
        }
    }
    return NULL;
}
