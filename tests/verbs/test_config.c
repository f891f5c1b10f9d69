/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests the process's configuration (guest-lib/verbs/kernel/config.h): a port gets the configured
 * values, and impossible values are refused with a reason. No program joins the wire here.
 */
#include "guest-lib/verbs/kernel/config.h"
#include "guest-lib/verbs/kernel/spelling.h"
#include "tests/unit/suite.h"
#include "wire/open.h"

#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <glib/gstdio.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct hv_port_config ports[HV_MAX_DEVICES];
static unsigned count;
static char *reason; /* NULL: the configuration was accepted */

/* Reads this key file and the environment. */
static void look(const char *file)
{
    char path[] = "/tmp/hcasim-config-XXXXXX";
    g_autoptr(GError) err = NULL;
    int fd = g_mkstemp(path);

    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert(g_file_set_contents(path, file, -1, NULL));
    g_setenv("HCASIM_CONFIG", path, true);
    hv_config_look_end(ports, count);
    count = hv_config_look(ports, &err);
    g_unlink(path);
    g_free(reason);
    reason = err ? g_strdup(err->message) : NULL;
    ck_assert(!count == !!reason);
}

static void look_at(const char *name, const char *value)
{
    g_setenv(name, value, true);
    look("");
    g_unsetenv(name);
}

static void refused(const char *name, const char *value, const char *why)
{
    look_at(name, value);
    ck_assert_msg(reason != NULL, "%s=%s is taken", name, value);
    ck_assert_msg(strstr(reason, why) != NULL, "%s", reason);
}

START_TEST(a_port_is_what_the_file_says)
{
    look("[hcasim]\nwire=lab\nip=10.1.2.3\nmac=02:00:00:00:00:09\nmtu=9000\nmemory=512M\n"
         "responders=16\nmemlock=1\nexplain=1\nprofile=cx7\nlog=info\nhost=7\n");
    ck_assert_uint_eq(count, 1);
    ck_assert_str_eq(ports[0].wire, "shm:lab");
    ck_assert_uint_eq(ports[0].ipv4, 0x0a010203);
    ck_assert_mem_eq(ports[0].mac, "\x02\0\0\0\0\x09", 6);
    ck_assert_uint_eq(ports[0].mtu, 9000);
    ck_assert_uint_eq(ports[0].memory, 512ull << 20);
    ck_assert_uint_eq(ports[0].responders, 16);
    ck_assert(ports[0].memlock);
    ck_assert(ports[0].explain);
    ck_assert_str_eq(ports[0].profile, "cx7");
    ck_assert_int_eq(ports[0].log_level, 2);
}
END_TEST

/* "each with a default": a value without characters is no value, in the file as in the
 * environment. */
START_TEST(an_empty_value_is_the_default)
{
    static const char *const keys[] = {"wire", "ip",         "mac",     "mtu",  "memory",
                                       "log",  "responders", "profile", "host", "devices"};
    struct hv_port_config usual;

    look("");
    usual = ports[0];
    for (unsigned i = 0; i < G_N_ELEMENTS(keys); i++) {
        g_autofree char *file = g_strdup_printf("[hcasim]\n%s=\n", keys[i]);

        look(file);
        ck_assert_msg(count == 1, "%s: %s", keys[i], reason);
        ck_assert_uint_eq(ports[0].memory, usual.memory);
        ck_assert_uint_eq(ports[0].mtu, usual.mtu);
        ck_assert_str_eq(ports[0].wire, "shm:verbs");
        ck_assert_ptr_null(ports[0].profile);
    }
}
END_TEST

START_TEST(the_environment_comes_before_the_file)
{
    g_setenv("HCASIM_MTU", "2000", true);
    look("[hcasim]\nmtu=9000\n");
    g_unsetenv("HCASIM_MTU");
    ck_assert_uint_eq(ports[0].mtu, 2000);
}
END_TEST

/* A value that glib cannot read does not become the default. */
START_TEST(a_value_that_cannot_be_read_is_refused)
{
    look("[hcasim]\nmtu=90\\q00\n");
    ck_assert_ptr_nonnull(reason);
    ck_assert_ptr_nonnull(strstr(reason, "mtu"));
    look("[hcasim]\nmtu=\xff\n");
    ck_assert_ptr_nonnull(reason);
    look("[hcasim\n");
    ck_assert_ptr_nonnull(reason);
}
END_TEST

/* A misspelt key is not ignored. */
START_TEST(a_file_has_known_keys_in_one_group)
{
    look("[hcasim]\nmtuu=9000\n");
    ck_assert_msg(reason && g_str_has_suffix(reason, ": there is no setting 'mtuu'; did you mean "
                                                     "'mtu'?"),
                  "%s", reason);
    look("[hcasim]\ncolour=red\n");
    ck_assert_msg(reason && g_str_has_suffix(reason, ": there is no setting 'colour'"), "%s",
                  reason);
    look("[hcasim]\nconfig=other\n");
    ck_assert_msg(reason && g_str_has_suffix(reason, ": there is no setting 'config'"), "%s",
                  reason);
    look("[hca]\nmtu=9000\n");
    ck_assert_msg(reason && strstr(reason, ": there is no group [hca]"), "%s", reason);
    look("[hcasim]\ndevices=1\nmtu=10\n");
    ck_assert_msg(reason && strstr(reason, "mtu must be"), "%s", reason);
}
END_TEST

/* A file may have groups for other commands of hcasim. */
START_TEST(a_file_may_serve_other_commands)
{
    look("[simulation]\nhosts=4\n[hcasim]\nmtu=9000\n[peer]\nwire=lab\n");
    ck_assert_msg(count == 1, "%s", reason);
    ck_assert_uint_eq(ports[0].mtu, 9000);
    look("[simulation]\nhosts=4\n");
    ck_assert_msg(count == 1, "%s", reason);
}
END_TEST

/* The name that was meant is found if the difference is a slip. Other similar names are a guess.
 * Short words are similar to too many names. */
START_TEST(a_misspelt_name_is_recognized)
{
    static const char *const names[] = {"loss",         "log",         "host", "mtu",     "memory",
                                        "remove_after", "remove_when", "ip",   "memlock", NULL};
    static const struct {
        const char *word, *slip, *guess;
    } words[] = {
        {"los", "loss", "loss"},
        {"losss", "loss", "loss"},
        {"lsos", "loss", "loss"},
        {"kost", "host", "host"},
        {"lo", NULL, NULL},
        {"mtuu", "mtu", "mtu"},
        {"memroy", "memory", "memory"},
        {"ememory", "memory", "memory"},
        {"removeafter", "remove_after", "remove_after"},
        {"remove", NULL, "remove_after"},
        {"log_level", NULL, "log"},
        {"loglevel", NULL, NULL},
        {"root", NULL, NULL},
        {"ci", NULL, NULL},
        {"", NULL, NULL},
        {"remove_after_remove_after_remove_after", NULL, "remove_after"},
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        ck_assert_pstr_eq(spelling_find_slip(words[i].word, names), words[i].slip);
        ck_assert_pstr_eq(spelling_guess(words[i].word, names), words[i].guess);
    }
}
END_TEST

START_TEST(addresses_are_whole_and_nothing_else)
{
    static const char *const ips[] = {"10.0.0",    "10.0.0.300", "10.0.0.-1", "10.0.0.1 ",
                                      " 10.0.0.1", "10.0.0.1.2", "x"};
    static const char *const macs[] = {"02:00:00:00:00",       "02:00:00:00:00:-1",
                                       "02:00:00:00:00:09:01", "01:00:00:00:00:09",
                                       " 2:00:00:00:00:09",    "02:00:00:00:00:0x"};

    for (unsigned i = 0; i < G_N_ELEMENTS(ips); i++) {
        refused("HCASIM_IP", ips[i], "ip must be an IPv4 address");
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(macs); i++) {
        refused("HCASIM_MAC", macs[i], "mac must be a unicast MAC address");
    }
}
END_TEST

START_TEST(a_file_that_cannot_be_read_is_named)
{
    g_autoptr(GError) err = NULL;

    g_setenv("HCASIM_CONFIG", "/nonexistent/conf", true);
    hv_config_look_end(ports, count);
    count = hv_config_look(ports, &err);
    ck_assert_uint_eq(count, 0);
    ck_assert_str_eq(err->message, "/nonexistent/conf: No such file or directory");
    look("ip=10.0.0.1\n");
    ck_assert_msg(reason && g_str_has_prefix(reason, "/tmp/hcasim-config-"), "%s", reason);
}
END_TEST

/* The message says what is allowed, and what was given. */
START_TEST(numbers_have_bounds)
{
    refused("HCASIM_MTU", "1499", "mtu must be 1500 to 9978, but it is 1499");
    refused("HCASIM_MTU", "9979", "mtu must be 1500 to 9978, but it is 9979");
    refused("HCASIM_DEVICES", "17", "devices must be 1 to 16, but it is 17");
    refused("HCASIM_HOST", "0", "host must be 1 to 65518, but it is 0");
    refused("HCASIM_RESPONDERS", "0", "responders must be 1 to 65536, but it is 0");
    refused("HCASIM_MEMLOCK", "yes", "memlock must be 0 to 1, but it is yes");
    refused("HCASIM_EXPLAIN", "yes", "explain must be 0 to 1, but it is yes");
    refused("HCASIM_MEMORY", "1", "memory must be 8M or more");
    refused("HCASIM_MEMORY", "M", "memory must be 8M or more");
    refused("HCASIM_MEMORY", "18446744073709551615G", "memory must be 8M or more");
    refused("HCASIM_LOG", "loud", "log must be error, guest, info or trace, but it is loud");
    refused("HCASIM_PROFILE", "cx9",
            "profile must be cx4, cx4lx, cx5, cx6dx, cx7 or cx8, but it is cx9");
    refused("HCASIM_WIRE", "my lab", "wire must be a name of letters");
    refused("HCASIM_WIRE", "lab,,other", "wire must be a name of letters");
}
END_TEST

static bool locale_clobbers; /* newlocale() succeeds, but leaves an error in errno */

/* Stands in front of the C library's function, which glib calls before it reads its first number.
 * While one thread is in this call, others wait, and their wait leaves EAGAIN in errno. */
__attribute__((visibility("default"))) locale_t newlocale(int mask, const char *name, locale_t base)
{
    __typeof__(newlocale) *real = (__typeof__(newlocale) *)dlsym(RTLD_NEXT, "newlocale");
    locale_t made = real(mask, name, base);

    if (locale_clobbers) {
        errno = EAGAIN;
    }
    return made;
}

/* The first of these values is the first number that the process reads. */
START_TEST(a_first_number_is_read_beside_other_threads)
{
    static const struct {
        const char *name, *value;
    } values[] = {
        {"HCASIM_DEVICES", "2"},      {"HCASIM_MEMORY", "512M"}, {"HCASIM_LOSS", "1%"},
        {"HCASIM_DELAY", "10us"},     {"HCASIM_IP", "10.1.2.3"}, {"HCASIM_REMOVE_AFTER", "1.5"},
        {"HCASIM_FAULT_SEED", "200"},
    };
    int i = _i;

    locale_clobbers = true;
    look_at(values[i].name, values[i].value);
    ck_assert_msg(count > 0, "%s=%s: %s", values[i].name, values[i].value, reason);
    locale_clobbers = false;
}
END_TEST

/* Digits and nothing else. The largest number of 64 bits is read, a larger one is refused. */
START_TEST(a_number_is_digits)
{
    static const char *const wrong[] = {"+2", "-2", " 2", "2 ", "0x2", "2.0", "\xc2\xb2"};

    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        refused("HCASIM_DEVICES", wrong[i], "devices must be 1 to 16");
    }
    look_at("HCASIM_DEVICES", "0002");
    ck_assert_uint_eq(count, 2);
    look_at("HCASIM_MEMORY", "18446744073709551615");
    ck_assert_uint_eq(ports[0].memory, UINT64_MAX);
    refused("HCASIM_MEMORY", "18446744073709551616", "memory must be 8M or more");
    refused("HCASIM_MEMORY", "184467440737095516150", "memory must be 8M or more");
    refused("HCASIM_DEVICES", "18446744073709551618", "devices must be 1 to 16"); /* 2^64 + 2 */
}
END_TEST

/* The first device is removed at a given time; 0 is a valid time, too. */
START_TEST(a_removal_has_a_time_or_a_file)
{
    look("[hcasim]\ndevices=2\nremove_after=1.5\nremove_when=/tmp/gone\n");
    ck_assert(ports[0].removes && !ports[1].removes);
    ck_assert_uint_eq(ports[0].remove_after_ns, 1500000000);
    ck_assert_str_eq(ports[0].remove_when, "/tmp/gone");
    ck_assert_ptr_null(ports[1].remove_when);
    look("[hcasim]\nremove_after=0\n");
    ck_assert(ports[0].removes);
    ck_assert_uint_eq(ports[0].remove_after_ns, 0);
    look("");
    ck_assert(!ports[0].removes && !ports[0].remove_when);
    refused("HCASIM_REMOVE_AFTER", "-1",
            "remove_after must be 0 to 1000000000 seconds, but it is -1");
    refused("HCASIM_REMOVE_AFTER", "1s", "remove_after must be");
    refused("HCASIM_REMOVE_AFTER", "nan", "remove_after must be");
    refused("HCASIM_REMOVE_AFTER", "1e10", "remove_after must be");
}
END_TEST

START_TEST(a_capture_may_be_a_ring)
{
    look("[hcasim]\ncapture=/tmp/x.pcapng\n");
    ck_assert_uint_eq(ports[0].capture_ring.size, 0);
    look("[hcasim]\ncapture=/tmp/x.pcapng\ncapture_size=5M\n");
    ck_assert_uint_eq(ports[0].capture_ring.size, 5 << 20);
    ck_assert_uint_eq(ports[0].capture_ring.files, 10);
    look("[hcasim]\ncapture_size=1M\ncapture_files=3\n");
    ck_assert_uint_eq(ports[0].capture_ring.size, 1 << 20);
    ck_assert_uint_eq(ports[0].capture_ring.files, 3);
    ck_assert(ports[0].capture_comments);
    look("[hcasim]\ncapture_comments=off\n");
    ck_assert(!ports[0].capture_comments);
    refused("HCASIM_CAPTURE_SIZE", "1048575", "capture_size must be 1M or more");
    refused("HCASIM_CAPTURE_COMMENTS", "0", "capture_comments must be on or off, but");
    refused("HCASIM_CAPTURE_FILES", "10000", "capture_files must be 1 to 9999, but");
}
END_TEST

/* Each device has faults, and decides for itself. */
START_TEST(faults_have_rates_and_times)
{
    look("[hcasim]\ndevices=2\nloss=0.5%\nduplication=1\nreorder=2.25\ncorruption=100%\n"
         "delay=1.5ms\njitter=250ns\nfault_seed=9\n");
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_str_eq(ports[i].faults, "loss 0.5%; duplicate 1%; reorder 2.25%; "
                                          "corrupt 100%; delay 1500000ns jitter 250ns; ");
        ck_assert_uint_eq(ports[i].fault_seed, 9);
    }
    ck_assert_uint_ne(ports[0].fault_stream, ports[1].fault_stream);
    look_at("HCASIM_DELAY", "3s");
    ck_assert_str_eq(ports[0].faults, "delay 3000000000ns jitter 0ns; ");
    look_at("HCASIM_DELAY", "20us");
    ck_assert_str_eq(ports[0].faults, "delay 20000ns jitter 0ns; ");
    look("[hcasim]\nloss=1\nfault=drop RC_ACK once; health 1 after 2s\n");
    ck_assert_str_eq(ports[0].faults, "loss 1%; drop RC_ACK once; health 1 after 2s");
    look("");
    ck_assert_ptr_null(ports[0].faults);
    ck_assert_uint_eq(ports[0].fault_seed, 1);
    refused("HCASIM_FAULT", "drop RC_ACKS",
            "fault rule 'drop RC_ACKS': 'RC_ACKS' is not allowed there, but one of these words: ");
    refused("HCASIM_FAULT", "health 256", "fault rule 'health 256': health needs a number from 1");
    refused("HCASIM_LOSS", "100.1", "loss must be 0 to 100 percent, such as 1% or 0.5, but");
    refused("HCASIM_LOSS", "nan", "loss must be 0 to 100 percent");
    refused("HCASIM_CORRUPTION", "1%%", "corruption must be 0 to 100 percent");
    refused("HCASIM_DELAY", "100", "delay must be 0us to 10s, with its unit: ns, us, ms or s, but");
    refused("HCASIM_DELAY", "-1us", "delay must be 0us to 10s");
    refused("HCASIM_DELAY", "infs", "delay must be 0us to 10s");
    refused("HCASIM_JITTER", "10001ms", "jitter must be 0us to 10s");
    refused("HCASIM_FAULT_SEED", "4294967296", "fault_seed must be 0 to 4294967295, but");
}
END_TEST

/* HCASIM_DEVICES: further devices follow the first one. */
START_TEST(further_devices_follow_the_first)
{
    g_setenv("HCASIM_DEVICES", "3", true);
    look_at("HCASIM_IP", "10.0.0.9");
    g_unsetenv("HCASIM_DEVICES");
    ck_assert_uint_eq(count, 3);
    for (unsigned i = 0; i < 3; i++) {
        const uint8_t mac[6] = {0x02, 0x68, 10, 0, 0, (uint8_t)(9 + i)};

        ck_assert_uint_eq(ports[i].ipv4, 0x0a000009 + i);
        ck_assert_mem_eq(ports[i].mac, mac, 6);
    }
}
END_TEST

/* The addresses that follow may differ in more than the last byte. */
START_TEST(addresses_of_further_devices_have_a_carry)
{
    look("[hcasim]\ndevices=3\nip=10.0.0.254\nmac=02:00:00:00:ff:fe\n");
    ck_assert_msg(count == 3, "%s", reason);
    ck_assert_mem_eq(ports[1].mac, "\x02\0\0\0\xff\xff", 6);
    ck_assert_mem_eq(ports[2].mac, "\x02\0\0\x01\0\0", 6);
    ck_assert_uint_eq(ports[2].ipv4, 0x0a000100);
    look("[hcasim]\ndevices=2\nip=255.255.255.254\nmac=02:00:00:ff:ff:fe\n");
    ck_assert_msg(count == 2, "%s", reason);
    ck_assert_mem_eq(ports[1].mac, "\x02\0\0\xff\xff\xff", 6);
    g_setenv("HCASIM_DEVICES", "2", true);
    refused("HCASIM_MAC", "02:00:00:ff:ff:ff",
            "mac is 02:00:00:ff:ff:ff, but there are not enough addresses after it for 2 devices");
    refused("HCASIM_IP", "255.255.255.255",
            "ip is 255.255.255.255, but there are not enough addresses after it for 2 devices");
    g_unsetenv("HCASIM_DEVICES");
    look_at("HCASIM_MAC", "02:00:00:ff:ff:ff");
    ck_assert_msg(count == 1, "%s", reason);
}
END_TEST

/* Each wire has a device. Further devices are on the last wire. */
START_TEST(each_wire_has_a_device)
{
    look("[hcasim]\nwire=left,shm:/tmp/right\n");
    ck_assert_uint_eq(count, 2);
    ck_assert_str_eq(ports[0].wire, "shm:left");
    ck_assert_str_eq(ports[1].wire, "shm:/tmp/right");
    look("[hcasim]\nwire=left,right\ndevices=3\n");
    ck_assert_uint_eq(count, 3);
    ck_assert_str_eq(ports[2].wire, "shm:right");
    look("[hcasim]\nwire=left,right\ndevices=1\n");
    ck_assert_msg(reason && g_str_has_suffix(reason, "devices is 1, but wire names 2 wires: there "
                                                     "is a device for each wire"),
                  "%s", reason);
}
END_TEST

/* A number belongs to one host on all wires of the process, so the addresses that follow from it
 * are nobody else's. What a process would get is what it gets. */
START_TEST(a_host_number_is_free_on_all_wires)
{
    g_autofree char *left = g_strdup_printf("config-%d-left", (int)getpid());
    g_autofree char *right = g_strdup_printf("config-%d-right", (int)getpid());
    g_autofree char *left_uri = g_strconcat("shm:", left, NULL);
    g_autofree char *right_uri = g_strconcat("shm:", right, NULL);
    g_autofree char *both = g_strconcat(left, ",", right, NULL);
    struct wire_number *one = wire_number_take(left_uri, 1, NULL);
    struct wire_number *two = wire_number_take(right_uri, 2, NULL);
    struct hv_port_config *mine;

    look_at("HCASIM_WIRE", both);
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(ports[0].ipv4, 0x0a000003);
    ck_assert_uint_eq(ports[1].ipv4, 0x0a000004);
    g_unsetenv("HCASIM_CONFIG");
    g_setenv("HCASIM_WIRE", both, true);
    ck_assert_uint_eq(hv_config_load(&mine, NULL), 2);
    g_unsetenv("HCASIM_WIRE");
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_uint_eq(mine[i].ipv4, ports[i].ipv4);
        /* It is taken on both. */
        ck_assert_ptr_null(wire_number_take(left_uri, 3 + i, NULL));
        ck_assert_ptr_null(wire_number_take(right_uri, 3 + i, NULL));
    }
    wire_number_release(two);
    wire_number_release(one);
}
END_TEST

/* -- a rival ----------------------------------------------------------------------------------- */

/* Stands between the configuration and the wire (linked with --wrap=wire_number_take). */
static struct {
    unsigned calls;               /* of this process */
    unsigned rivals;              /* hosts that are to take a number just before this process */
    struct wire_number *taken[4]; /* by them */
    unsigned num_taken;
    bool fails; /* no number can be taken at all */
} taking;

struct wire_number *__wrap_wire_number_take(const char *uri, unsigned wanted, GError **err);
struct wire_number *__real_wire_number_take(const char *uri, unsigned wanted, GError **err);

struct wire_number *__wrap_wire_number_take(const char *uri, unsigned wanted, GError **err)
{
    taking.calls++;
    if (taking.fails) {
        g_set_error(err, WIRE_ERROR, WIRE_ERROR_IO, "%s: the lock is not released", uri);
        return NULL;
    }
    if (taking.rivals) {
        taking.rivals--;
        taking.taken[taking.num_taken] = __real_wire_number_take(uri, wanted, NULL);
        ck_assert_ptr_nonnull(taking.taken[taking.num_taken++]);
    }
    return __real_wire_number_take(uri, wanted, err);
}

/* Makes this process a host of two wires. Returns the number of its devices; 0 with *err. */
static unsigned load_two_wires(struct hv_port_config **mine, GError **err)
{
    g_autofree char *both =
        g_strdup_printf("config-%d-one,config-%d-two", (int)getpid(), (int)getpid());
    unsigned devices;

    g_unsetenv("HCASIM_CONFIG");
    g_setenv("HCASIM_WIRE", both, true);
    devices = hv_config_load(mine, err);
    g_unsetenv("HCASIM_WIRE");
    return devices;
}

/* A number that another host takes first is no failure: the next one is tried. */
START_TEST(a_number_that_was_just_taken_is_left_to_its_host)
{
    struct hv_port_config *mine;

    taking.rivals = 2;
    ck_assert_uint_eq(load_two_wires(&mine, NULL), 2);
    ck_assert_uint_eq(taking.num_taken, 2);
    ck_assert_uint_eq(mine[0].ipv4, 0x0a000003);
    ck_assert_uint_eq(mine[1].ipv4, 0x0a000004);
    while (taking.num_taken) {
        wire_number_release(taking.taken[--taking.num_taken]);
    }
}
END_TEST

/* Any other failure would only come again; some of them take seconds. */
START_TEST(a_number_that_cannot_be_taken_is_not_tried_again)
{
    struct hv_port_config *mine;
    g_autoptr(GError) err = NULL;

    taking.fails = true;
    ck_assert_uint_eq(load_two_wires(&mine, &err), 0);
    ck_assert_uint_eq(taking.calls, 1);
    ck_assert(g_str_has_suffix(err->message, ": the lock is not released"));
}
END_TEST

Suite *unit_suite(void)
{
    TCase *tc = tcase_create("config");
    Suite *s = suite_create("config");

    tcase_add_test(tc, a_port_is_what_the_file_says);
    tcase_add_test(tc, an_empty_value_is_the_default);
    tcase_add_test(tc, the_environment_comes_before_the_file);
    tcase_add_test(tc, a_value_that_cannot_be_read_is_refused);
    tcase_add_test(tc, a_file_has_known_keys_in_one_group);
    tcase_add_test(tc, a_file_may_serve_other_commands);
    tcase_add_test(tc, a_misspelt_name_is_recognized);
    tcase_add_test(tc, addresses_are_whole_and_nothing_else);
    tcase_add_test(tc, a_file_that_cannot_be_read_is_named);
    tcase_add_test(tc, numbers_have_bounds);
    tcase_add_loop_test(tc, a_first_number_is_read_beside_other_threads, 0, 7);
    tcase_add_test(tc, a_number_is_digits);
    tcase_add_test(tc, a_removal_has_a_time_or_a_file);
    tcase_add_test(tc, a_capture_may_be_a_ring);
    tcase_add_test(tc, faults_have_rates_and_times);
    tcase_add_test(tc, further_devices_follow_the_first);
    tcase_add_test(tc, addresses_of_further_devices_have_a_carry);
    tcase_add_test(tc, each_wire_has_a_device);
    tcase_add_test(tc, a_host_number_is_free_on_all_wires);
    tcase_add_test(tc, a_number_that_was_just_taken_is_left_to_its_host);
    tcase_add_test(tc, a_number_that_cannot_be_taken_is_not_tried_again);
    suite_add_tcase(s, tc);
    return s;
}
