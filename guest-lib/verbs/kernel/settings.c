/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of settings, and a check for each kind of value. */
#include "guest-lib/verbs/kernel/settings.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "fw/fw.h"
#include "guest-lib/verbs/kernel/addresses.h"
#include "guest-lib/verbs/kernel/spelling.h"
#include "wire/capture_blocks.h"
#include "wire/fault/fault.h"
#include "wire/open.h"

#define MAX_SECONDS 1000000000u  /* until a removal: 32 years */
#define NS          1e9          /* of a second */
#define MILLION     1000000u     /* all frames */
#define MAX_DELAY   10000000000u /* ns */
#define PERCENT     10000u       /* of a million */

static const char *const *setting_log_levels(void)
{
    static const char *const names[] = {"error", "guest", "info", "trace", NULL};

    return names;
}

/* One of two values; a flag could not be switched off by an option. */
static const char *const *setting_on_off(void)
{
    static const char *const names[] = {"on", "off", NULL};

    return names;
}

static const struct hv_setting settings[] = {
    {"wire", HV_SETTING_WIRES, 0, 0, NULL, "NAME[,...]", "verbs",
     "The wire: a name, or a URI such as shm:/PATH. All programs on the same wire reach each "
     "other. With several names, the first device is on the first wire, and so on; further "
     "devices are on the last wire."},
    {"host", HV_SETTING_NUMBER, 1, WIRE_NUMBER_MAX - HV_MAX_DEVICES, NULL, "N",
     "the first free number", "The host number on the wire."},
    {"devices", HV_SETTING_NUMBER, 1, HV_MAX_DEVICES, NULL, "N", "1, or the number of wires",
     "The number of devices that a process has."},
    {"ip", HV_SETTING_IPV4, 0, 0, NULL, "A.B.C.D", "10.0.0.N of host N",
     "The IPv4 address of the first device. Further devices have the addresses that follow."},
    {"mac", HV_SETTING_MAC, 0, 0, NULL, "MAC", "02:68 and the four bytes of the IPv4 address",
     "The MAC address of the first device. Further devices have the addresses that follow: only the "
     "last three bytes are counted up."},
    {"mtu", HV_SETTING_NUMBER, 1500, 9978, NULL, "BYTES", "4200", "The largest IP packet."},
    {"memory", HV_SETTING_SIZE, FW_MEMORY_MIN, UINT64_MAX, NULL, "SIZE", "1G",
     "The memory that the objects of a device may take, such as 512M."},
    {"memlock", HV_SETTING_FLAG, 0, 1, NULL, NULL, "0",
     "Counts the memory that the program registers against RLIMIT_MEMLOCK, as a kernel does, which "
     "pins it: beyond the limit, registration fails with ENOMEM. A program with CAP_IPC_LOCK has "
     "no limit."},
    {"responders", HV_SETTING_NUMBER, 1, FW_RESPONDERS_MAX, NULL, "N", "1024",
     "The number of initiators that the DC targets of a device serve at a time."},
    {"profile", HV_SETTING_CHOICE, 0, 0, fw_profile_names, "NAME", FW_PROFILE_DEFAULT,
     "The generation of the device."},
    {"fake_gpu", HV_SETTING_FLAG, 0, 1, NULL, NULL, "0",
     "Gives the program a stand-in GPU in place of a real one: a libcuda.so.1 whose GPU memory is "
     "host memory, and which runs no kernels. Programs that use the CUDA runtime do not run on it."},
    {"cuda_front", HV_SETTING_CHOICE, 0, 0, setting_on_off, "STATE", "on",
     "Puts a front before the CUDA driver, if the machine has one, so that a GPU can ring doorbells."},
    {"capture", HV_SETTING_NEW_FILE, 0, 0, NULL, "FILE", "no capture",
     "Writes all frames of the first device of each process to FILE (pcapng). Each process is an "
     "interface of it. FILE may be a named pipe that Wireshark reads."},
    {"capture_size", HV_SETTING_SIZE, CAPTURE_SIZE_MIN, UINT64_MAX, NULL, "SIZE", "no limit",
     "The capture is a ring of files of at most this size, such as 100M. FILE is the newest one; "
     "the others have their number before the suffix."},
    {"capture_files", HV_SETTING_NUMBER, 1, CAPTURE_RING_FILES_MAX, NULL, "N", "10",
     "How many files a ring of captures has. Needs capture_size."},
    {"capture_comments", HV_SETTING_CHOICE, 0, 0, setting_on_off, "STATE", "on",
     "Each packet that the device sends has a comment in the capture: its QP, its WQE, the process, "
     "and why it is sent."},
    {"control", HV_SETTING_TEXT, 0, 0, NULL, "DIR", "no control sockets",
     "Makes the folder DIR, if it is missing, and a control socket in it for each device: hcasim ctl "
     "DIR and hcasim top DIR use them."},
    {"trace_file", HV_SETTING_NEW_FILE, 0, 0, NULL, "FILE", "no trace file",
     "Writes what each device of each process does to FILE, as JSON lines "
     "(docs/reference/trace.md). `hcasim explain FILE` makes a page of it."},
    {"loss", HV_SETTING_PERCENT, 0, MILLION, NULL, "PERCENT", "0",
     "How many of the frames that the device sends are lost."},
    {"duplication", HV_SETTING_PERCENT, 0, MILLION, NULL, "PERCENT", "0",
     "How many frames are sent twice."},
    {"reorder", HV_SETTING_PERCENT, 0, MILLION, NULL, "PERCENT", "0",
     "How many frames are held back for up to 100us, so that later frames pass them."},
    {"corruption", HV_SETTING_PERCENT, 0, MILLION, NULL, "PERCENT", "0",
     "How many frames are sent with a wrong bit. The receiver drops them: their ICRC is wrong."},
    {"delay", HV_SETTING_TIME, 0, MAX_DELAY, NULL, "TIME", "0us",
     "The delay of each frame between the device and the wire, such as 100us or 20ms."},
    {"jitter", HV_SETTING_TIME, 0, MAX_DELAY, NULL, "TIME", "0us",
     "The longest random time that is added to the delay. Frames keep their order."},
    {"fault", HV_SETTING_FAULTS, 0, 0, NULL, "RULES", "no faults",
     "Rules of what goes wrong on the device's port and in the device, with ; between them: \"drop "
     "READ_RESPONSE nth 2 once; link down 50ms after 1000\" (docs/reference/faults.md). The options "
     "from loss to jitter are short forms of such rules. none: no rules yet."},
    {"fault_seed", HV_SETTING_NUMBER, 0, UINT32_MAX, NULL, "N", "1",
     "Decides, with the MAC address of a device, which of its frames are lost, sent twice and so "
     "on."},
    {"remove_after", HV_SETTING_SECONDS, 0, MAX_SECONDS, NULL, "SECONDS", "never",
     "Removes the first device this many seconds after the program opened it, as if somebody "
     "pulled out the card."},
    {"remove_when", HV_SETTING_TEXT, 0, 0, NULL, "FILE", "never",
     "Removes the first device when FILE exists."},
    {"log", HV_SETTING_CHOICE, 0, 0, setting_log_levels, "LEVEL", "no log",
     "What the device writes to standard error; each level includes the levels before it."},
    {"explain", HV_SETTING_FLAG, 0, 1, NULL, NULL, "0",
     "Explains error completions when the program polls them, and refused verbs: log level guest "
     "at least (docs/reference/errors.md)."},
    {"config", HV_SETTING_KEY_FILE, 0, 0, NULL, "FILE", "no file",
     "A key file with settings in its group [hcasim]. The keys are the names of the options, with "
     "_ for -. An option or a variable has priority over the file."},
};

const struct hv_setting *hv_setting_at(unsigned i)
{
    return i < G_N_ELEMENTS(settings) ? &settings[i] : NULL;
}

const struct hv_setting *hv_setting_find(const char *name)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(settings); i++) {
        if (!strcmp(settings[i].name, name)) {
            return &settings[i];
        }
    }
    return NULL;
}

bool hv_setting_is_of_one_host(const char *name)
{
    return g_strv_contains((const char *const[]){"host", "ip", "mac", NULL}, name);
}

/* Reads decimal digits and nothing else. Does not use g_ascii_string_to_unsigned(), which refuses
 * any number if errno changes meanwhile: glib makes its C locale in the first call of a process,
 * and a thread that waits for that may find EAGAIN in errno. */
static bool setting_parse_digits(const char *text, uint64_t least, uint64_t most, uint64_t *number)
{
    uint64_t sum = 0;

    if (!*text) {
        return false;
    }
    for (; *text; text++) {
        if (!g_ascii_isdigit(*text) || __builtin_mul_overflow(sum, 10, &sum) ||
            __builtin_add_overflow(sum, (uint64_t)(*text - '0'), &sum)) {
            return false;
        }
    }
    *number = sum;
    return sum >= least && sum <= most;
}

static bool setting_parse_number(const struct hv_setting *s, const char *text, struct hv_value *v)
{
    return setting_parse_digits(text, s->least, s->most, &v->number);
}

static bool setting_parse_size(const struct hv_setting *s, const char *text, struct hv_value *v)
{
    static const char suffixes[] = "KMG";
    g_autofree char *digits = g_strdup(text);
    const char *suffix = *text ? strchr(suffixes, g_ascii_toupper(text[strlen(text) - 1])) : NULL;
    unsigned shift = 0;

    if (suffix) {
        shift = 10 * (unsigned)(suffix - suffixes + 1);
        digits[strlen(digits) - 1] = 0;
    }
    if (!setting_parse_digits(digits, 0, UINT64_MAX >> shift, &v->number)) {
        return false;
    }
    v->number <<= shift;
    return v->number >= s->least && v->number <= s->most;
}

static bool setting_parse_seconds(const struct hv_setting *s, const char *text, struct hv_value *v)
{
    char *end;
    double seconds = g_ascii_strtod(text, &end);

    if (!g_ascii_isdigit(*text) || *end || !(seconds >= (double)s->least) ||
        !(seconds <= (double)s->most)) {
        return false;
    }
    v->number = (uint64_t)(seconds * NS);
    return true;
}

static bool setting_is_in_range(const struct hv_setting *s, double number)
{
    return number >= (double)s->least && number <= (double)s->most;
}

static bool setting_parse_percent(const struct hv_setting *s, const char *text, struct hv_value *v)
{
    char *end;
    double number = g_ascii_strtod(text, &end) * PERCENT;

    if (!g_ascii_isdigit(*text) || (*end && strcmp(end, "%") != 0) ||
        !setting_is_in_range(s, number)) {
        return false;
    }
    v->number = (uint64_t)(number + 0.5);
    return true;
}

static bool setting_parse_time(const struct hv_setting *s, const char *text, struct hv_value *v)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", NS}};
    char *end;
    double number = g_ascii_strtod(text, &end);

    for (unsigned i = 0; i < G_N_ELEMENTS(units) && g_ascii_isdigit(*text); i++) {
        if (!strcmp(end, units[i].name) && setting_is_in_range(s, number * units[i].ns)) {
            v->number = (uint64_t)(number * units[i].ns + 0.5);
            return true;
        }
    }
    return false;
}

static bool setting_parse_ipv4(const struct hv_setting *s, const char *text, struct hv_value *v)
{
    struct in_addr addr;

    if (inet_pton(AF_INET, text, &addr) != 1) {
        return false;
    }
    v->number = ntohl(addr.s_addr);
    return true;
}

static bool setting_parse_mac(const struct hv_setting *s, const char *text, struct hv_value *v)
{
    uint8_t *mac = v->mac;
    char end;

    /* sscanf() accepts spaces and signs, too. */
    return strspn(text, "0123456789abcdefABCDEF:") == strlen(text) &&
           sscanf(text, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%c", &mac[0], &mac[1], &mac[2], &mac[3],
                  &mac[4], &mac[5], &end) == 6 &&
           !(mac[0] & 1);
}

static bool setting_parse_choice(const struct hv_setting *s, const char *text, struct hv_value *v)
{
    const char *const *names = s->choices();

    for (v->number = 0; names[v->number]; v->number++) {
        if (!strcmp(names[v->number], text)) {
            return true;
        }
    }
    return false;
}

static bool setting_parse_wires(const struct hv_setting *s, const char *text, struct hv_value *v)
{
    v->wires = g_strsplit(text, ",", -1);
    for (char **name = v->wires; *name; name++) {
        char *uri = strchr(*name, ':') ? g_strdup(*name) : g_strconcat("shm:", *name, NULL);

        g_free(*name);
        *name = uri;
        if (!wire_is_uri(uri)) {
            return false;
        }
    }
    return *v->wires && g_strv_length(v->wires) <= HV_MAX_DEVICES;
}

static bool setting_parse_wire(const struct hv_setting *s, const char *text, struct hv_value *v)
{
    return setting_parse_wires(s, text, v) && g_strv_length(v->wires) == 1;
}

/* Whether the path is a folder, or a file that is none, and can be accessed so. If not, errno says
 * why. */
static bool setting_can_access(const char *path, int how, bool is_folder)
{
    struct stat st;

    if (stat(path, &st) || access(path, how)) {
        return false;
    }
    errno = is_folder ? ENOTDIR : EISDIR;
    return S_ISDIR(st.st_mode) == is_folder;
}

/* If the file exists, it must be writable; otherwise its folder must be. */
static bool setting_parse_new_file(const struct hv_setting *s, const char *text, struct hv_value *v)
{
    g_autofree char *folder = g_path_get_dirname(text);

    return setting_can_access(text, W_OK, false) ||
           (errno == ENOENT && *text && setting_can_access(folder, W_OK | X_OK, true));
}

static bool setting_parse_file(const struct hv_setting *s, const char *text, struct hv_value *v)
{
    return setting_can_access(text, R_OK, false);
}

static bool setting_parse_folder(const struct hv_setting *s, const char *text, struct hv_value *v)
{
    return setting_can_access(text, F_OK, true);
}

static bool setting_parse_text(const struct hv_setting *s, const char *text, struct hv_value *v)
{
    return *text;
}

static bool setting_parse_faults(const struct hv_setting *s, const char *text, struct hv_value *v)
{
    return fault_check(text, &fw_fault_names, NULL);
}

static char *setting_size_text(uint64_t bytes)
{
    return g_strdup_printf("%" G_GUINT64_FORMAT "M", bytes >> 20);
}

/* Lists the choices, as "a, b or c". */
static char *setting_choices_text(const char *const *names)
{
    GString *text = g_string_new(NULL);

    for (unsigned i = 0; names[i]; i++) {
        g_string_append_printf(text, "%s%s", !i ? "" : names[i + 1] ? ", " : " or ", names[i]);
    }
    return g_string_free(text, FALSE);
}

static char *setting_must_be(const struct hv_setting *s)
{
    g_autofree char *least = NULL;

    switch (s->kind) {
    case HV_SETTING_NUMBER:
    case HV_SETTING_FLAG:
        return g_strdup_printf("%" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT, s->least, s->most);
    case HV_SETTING_SECONDS:
        return g_strdup_printf("%" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT " seconds", s->least,
                               s->most);
    case HV_SETTING_PERCENT:
        return g_strdup("0 to 100 percent, such as 1% or 0.5");
    case HV_SETTING_TIME:
        return g_strdup_printf("0us to %gs, with its unit: ns, us, ms or s", (double)s->most / NS);
    case HV_SETTING_SIZE:
        least = setting_size_text(s->least);
        return g_strdup_printf("%s or more, in bytes or with K, M or G", least);
    case HV_SETTING_IPV4:
        return g_strdup("an IPv4 address such as 10.0.0.7");
    case HV_SETTING_MAC:
        return g_strdup("a unicast MAC address such as 02:00:00:00:00:07");
    case HV_SETTING_CHOICE:
        return setting_choices_text(s->choices());
    case HV_SETTING_WIRE:
        return g_strdup("a name of letters, digits, '.', '_' and '-', or shm:/PATH, or a socket");
    case HV_SETTING_WIRES:
        return g_strdup("a name of letters, digits, '.', '_' and '-', or shm:/PATH, or a socket, "
                        "or several with commas between them");
    case HV_SETTING_NEW_FILE:
        return g_strdup("a file that can be written");
    case HV_SETTING_FILE:
        return g_strdup("a file that can be read");
    case HV_SETTING_FOLDER:
        return g_strdup("a folder");
    case HV_SETTING_KEY_FILE:
        return g_strdup("the name of a file");
    case HV_SETTING_FAULTS:
        return g_strdup("fault rules (docs/reference/faults.md)");
    case HV_SETTING_TEXT:
        break;
    }
    return g_strdup("a text that is not empty");
}

char *hv_setting_values(const struct hv_setting *setting)
{
    return setting_must_be(setting);
}

static bool (*const parsers[])(const struct hv_setting *, const char *, struct hv_value *) = {
    [HV_SETTING_NUMBER] = setting_parse_number,   [HV_SETTING_SIZE] = setting_parse_size,
    [HV_SETTING_SECONDS] = setting_parse_seconds, [HV_SETTING_FLAG] = setting_parse_number,
    [HV_SETTING_PERCENT] = setting_parse_percent, [HV_SETTING_TIME] = setting_parse_time,
    [HV_SETTING_IPV4] = setting_parse_ipv4,       [HV_SETTING_MAC] = setting_parse_mac,
    [HV_SETTING_CHOICE] = setting_parse_choice,   [HV_SETTING_WIRE] = setting_parse_wire,
    [HV_SETTING_WIRES] = setting_parse_wires,     [HV_SETTING_NEW_FILE] = setting_parse_new_file,
    [HV_SETTING_TEXT] = setting_parse_text,       [HV_SETTING_FILE] = setting_parse_file,
    [HV_SETTING_FOLDER] = setting_parse_folder,   [HV_SETTING_KEY_FILE] = setting_parse_text,
    [HV_SETTING_FAULTS] = setting_parse_faults,
};

/* Whether errno says why a value of this kind is refused. */
static bool setting_has_errno(enum hv_setting_kind kind)
{
    return kind == HV_SETTING_NEW_FILE || kind == HV_SETTING_FILE || kind == HV_SETTING_FOLDER;
}

bool hv_setting_parse(const struct hv_setting *setting, const char *text, struct hv_value *value,
                      GError **err)
{
    g_autofree char *must_be = NULL;
    const char *why = NULL;

    *value = (struct hv_value){0};
    if (parsers[setting->kind](setting, text, value)) {
        return true;
    }
    if (*text && setting_has_errno(setting->kind)) {
        why = g_strerror(errno);
    }
    if (setting->kind == HV_SETTING_FAULTS) {
        return fault_check(text, &fw_fault_names, err); /* says which word is wrong */
    }
    g_clear_pointer(&value->wires, g_strfreev);
    must_be = setting_must_be(setting);
    g_set_error(err, WIRE_ERROR, WIRE_ERROR_URI, "%s must be %s, but it is %s%s%s", setting->name,
                must_be, *text ? text : "empty", why ? ": " : "", why ? why : "");
    return false;
}

bool hv_setting_check(const struct hv_setting *setting, const char *text, GError **err)
{
    struct hv_value value;
    bool ok = hv_setting_parse(setting, text, &value, err);

    g_strfreev(value.wires);
    return ok;
}

unsigned hv_settings_count_devices(const char *wire, const char *devices, GError **err)
{
    struct hv_value wires = {0}, number = {.number = 1};
    unsigned count = 1;

    if (wire && *wire && hv_setting_parse(hv_setting_find("wire"), wire, &wires, NULL)) {
        count = g_strv_length(wires.wires);
    }
    g_strfreev(wires.wires);
    if (devices && *devices &&
        hv_setting_parse(hv_setting_find("devices"), devices, &number, NULL)) {
        if (number.number < count) {
            g_set_error(err, WIRE_ERROR, WIRE_ERROR_URI,
                        "devices is %s, but wire names %u wires: there is a device for each wire",
                        devices, count);
            return 0;
        }
        count = (unsigned)number.number;
    }
    return count;
}

/* The value of a setting that has been checked. False: it has none. */
static bool setting_read(const char *name, const char *text, struct hv_value *value)
{
    return text && *text && hv_setting_parse(hv_setting_find(name), text, value, NULL);
}

static bool setting_fail_last(const char *name, const char *text, unsigned devices, GError **err)
{
    g_set_error(err, WIRE_ERROR, WIRE_ERROR_URI,
                "%s is %s, but there are not enough addresses after it for %u devices", name, text,
                devices);
    return false;
}

bool hv_settings_check_addresses(const char *ip, const char *mac, unsigned devices, GError **err)
{
    struct hv_value value;
    uint32_t ipv4;

    if (setting_read("ip", ip, &value)) {
        ipv4 = (uint32_t)value.number;
        if (!hv_ipv4_advance(&ipv4, devices - 1)) {
            return setting_fail_last("ip", ip, devices, err);
        }
    }
    return !setting_read("mac", mac, &value) || hv_mac_advance(value.mac, devices - 1) ||
           setting_fail_last("mac", mac, devices, err);
}

/* -- key files --------------------------------------------------------------------------------- */

bool hv_settings_check_groups(GKeyFile *file, const char *own, GError **err)
{
    static const char *const known[] = {HV_SETTINGS_GROUP, HV_SIMULATION_GROUP, HV_PEER_GROUP,
                                        NULL};
    g_auto(GStrv) groups = g_key_file_get_groups(file, NULL);

    for (char **group = groups; *group; group++) {
        if (!g_strv_contains(known, *group)) {
            g_set_error(err, WIRE_ERROR, WIRE_ERROR_URI,
                        "there is no group [%s]: the keys are in the group [%s]", *group, own);
            return false;
        }
    }
    return true;
}

/* A setting that is similar to this key, which is none; or NULL. */
static const char *setting_guess(const char *key)
{
    const char *names[G_N_ELEMENTS(settings) + 1] = {NULL};
    unsigned n = 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(settings); i++) {
        if (settings[i].kind != HV_SETTING_KEY_FILE) {
            names[n++] = settings[i].name;
        }
    }
    return spelling_guess(key, names);
}

/* Checks a key of the file. An empty value is the same as no value. */
static bool setting_check_key(GKeyFile *file, const char *key, GError **err)
{
    const struct hv_setting *setting = hv_setting_find(key);
    g_autoptr(GError) why = NULL;
    g_autofree char *text = NULL;

    if (!setting || setting->kind == HV_SETTING_KEY_FILE) {
        const char *guess = setting_guess(key);

        g_set_error(err, WIRE_ERROR, WIRE_ERROR_URI, "there is no setting '%s'%s%s%s", key,
                    guess ? "; did you mean '" : "", guess ? guess : "", guess ? "'?" : "");
        return false;
    }
    /* glib can read a value only if it is UTF-8 and has no unknown escape. */
    text = g_key_file_get_string(file, HV_SETTINGS_GROUP, key, &why);
    if (why) {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_URI, "%s: %s", key, why->message);
        return false;
    }
    return !*text || hv_setting_check(setting, text, err);
}

static bool setting_check_file(GKeyFile *file, GError **err)
{
    g_auto(GStrv) keys = g_key_file_get_keys(file, HV_SETTINGS_GROUP, NULL, NULL);

    if (!hv_settings_check_groups(file, HV_SETTINGS_GROUP, err)) {
        return false;
    }
    for (unsigned i = 0; keys && keys[i]; i++) {
        if (!setting_check_key(file, keys[i], err)) {
            return false;
        }
    }
    return true;
}

GKeyFile *hv_settings_load(const char *path, GError **err)
{
    GKeyFile *file = g_key_file_new();

    if (g_key_file_load_from_file(file, path, G_KEY_FILE_NONE, err) &&
        setting_check_file(file, err)) {
        return file;
    }
    g_key_file_free(file);
    g_prefix_error(err, "%s: ", path);
    return NULL;
}
