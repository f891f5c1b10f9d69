/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of commands, with the options, exit statuses and examples of each. */
#include <string.h>
#include "cli/command.h"
#include "cli/places.h"
#include "cli/report.h"

#define NUMBER_OF_HOSTS 254

/* -- options ----------------------------------------------------------------------------------- */

static const struct cli_option build = {
    .row = {.name = "build",
            .kind = HV_SETTING_FOLDER,
            .metavar = "DIR",
            .usual = "build",
            .help = "Runs the hcasim of the build folder DIR, with that folder's libraries."},
    .only_in_tree = true};

static const struct cli_option require = {
    .row = {.name = "require",
            .kind = HV_SETTING_FLAG,
            .help = "Fails with status 125 if the program succeeds, and neither the program nor a "
                    "process that it started has opened a device by then."}};

static const struct cli_option hosts = {.row = {.name = "hosts",
                                                .kind = HV_SETTING_NUMBER,
                                                .least = 1,
                                                .most = NUMBER_OF_HOSTS,
                                                .metavar = "N",
                                                .help = "The number of hosts."},
                                        .letter = 'n'};

static const struct cli_option conformance_options[] = {
    {.row = {.name = "list",
             .kind = HV_SETTING_FLAG,
             .help = "Prints the cases and their rules, and plays no case."}},
    {.row = {.name = "only",
             .kind = HV_SETTING_TEXT,
             .metavar = "TEXT",
             .help = "Plays only cases with TEXT in their title or in a rule."}},
    {.row = {.name = "report",
             .kind = HV_SETTING_NEW_FILE,
             .metavar = "[junit:]FILE",
             .help = "Writes to FILE the cases that do not hold or were not tried (Markdown). With "
                     "junit:, writes all cases, as JUnit XML."},
     .check = cli_report_check},
    {.row = {.name = "peer",
             .kind = HV_SETTING_FILE,
             .metavar = "FILE",
             .help = "Plays with the foreign device that the key file FILE describes."}},
    {.row = {.name = "soft_roce",
             .kind = HV_SETTING_FLAG,
             .help = "Plays with Linux soft-RoCE (rdma_rxe) in a Debian guest."},
     .only_in_tree = true},
};

static const struct cli_option explain_options[] = {
    {.row = {.name = "output",
             .kind = HV_SETTING_NEW_FILE,
             .metavar = "FILE",
             .usual = "explain.html, unless --perfetto is given",
             .help = "The page: one HTML file that needs no server and no network."},
     .letter = 'o'},
    {.row = {.name = "perfetto",
             .kind = HV_SETTING_NEW_FILE,
             .metavar = "FILE",
             .help = "Writes FILE for Perfetto (ui.perfetto.dev) or chrome://tracing: a track for "
                     "each QP and CQ, and a flow for each message."}},
};

static const struct cli_option ctl_options[] = {
    {.row = {.name = "json", .kind = HV_SETTING_FLAG, .help = "Prints the answer as JSON."}},
};

static const struct cli_option top_options[] = {
    {.row = {.name = "once",
             .kind = HV_SETTING_FLAG,
             .help = "Prints one table, with the rates of one interval, and ends; so it does if "
                     "the standard output is no terminal."}},
    {.row = {.name = "interval",
             .kind = HV_SETTING_NUMBER,
             .least = 1,
             .most = 3600,
             .metavar = "SECONDS",
             .usual = "1",
             .help = "The time between two looks."}},
    {.row = {.name = "prometheus",
             .kind = HV_SETTING_TEXT,
             .metavar = "ADDRESS",
             .help = "Shows nothing, but answers HTTP requests at /PATH, a Unix socket, or at "
                     "HOST:PORT with the numbers as Prometheus reads them."}},
};

static const struct cli_option wires_options[] = {
    {.row = {.name = "clean",
             .kind = HV_SETTING_FLAG,
             .help = "Removes the wires on which no host lives, and prints the files that it "
                     "removes. Without WIRE it also removes the files of /sys of killed "
                     "programs, and links to CUDA drivers that do not exist any more. Wires in use "
                     "stay."}},
    {.row = {.name = "json",
             .kind = HV_SETTING_FLAG,
             .help = "Prints a list of objects in JSON, one for each wire."}},
};

static void commands_add_settings(GPtrArray *options, bool of_one_host)
{
    const struct hv_setting *setting;

    for (unsigned i = 0; (setting = hv_setting_at(i)); i++) {
        struct cli_option option = {.row = *setting};

        if (!of_one_host && hv_setting_is_of_one_host(setting->name)) {
            continue;
        }
        if (!of_one_host && !strcmp(setting->name, "wire")) {
            option.row.usual = "a wire of its own";
        }
        cli_option_add(options, &option);
    }
    cli_option_add(options, &require);
    cli_option_add(options, &build);
}

static void commands_add_run(GPtrArray *options)
{
    commands_add_settings(options, true);
}

static void commands_add_cluster(GPtrArray *options)
{
    cli_option_add(options, &hosts);
    commands_add_settings(options, false);
}

static void commands_add_conformance(GPtrArray *options)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(conformance_options); i++) {
        cli_option_add(options, &conformance_options[i]);
    }
    cli_option_add(options, &build);
}

static void commands_add_explain(GPtrArray *options)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(explain_options); i++) {
        cli_option_add(options, &explain_options[i]);
    }
    cli_option_add(options, &build);
}

static void commands_add_ctl(GPtrArray *options)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(ctl_options); i++) {
        cli_option_add(options, &ctl_options[i]);
    }
    cli_option_add(options, &build);
}

static void commands_add_top(GPtrArray *options)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(top_options); i++) {
        cli_option_add(options, &top_options[i]);
    }
    cli_option_add(options, &build);
}

static void commands_add_wires(GPtrArray *options)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(wires_options); i++) {
        cli_option_add(options, &wires_options[i]);
    }
    cli_option_add(options, &build);
}

static void commands_add_sim(GPtrArray *options)
{
    cli_sim_add_options(options);
    cli_option_add(options, &build);
}

static void commands_add_switch(GPtrArray *options)
{
    cli_switch_add_options(options);
    cli_option_add(options, &build);
}

static void commands_add_vm(GPtrArray *options)
{
    cli_vm_add_options(options);
    cli_option_add(options, &build);
}

GPtrArray *cli_command_options(const struct cli_command *command, bool in_tree)
{
    GPtrArray *options = cli_options_new();

    command->add_options(options);
    for (unsigned i = options->len; i > 0; i--) {
        const struct cli_option *option = g_ptr_array_index(options, i - 1);

        if (option->only_in_tree && !in_tree) {
            g_ptr_array_remove_index(options, i - 1);
        }
    }
    return options;
}

/* -- exit statuses ----------------------------------------------------------------------------- */

#define WRONG_USE                                                                                  \
    {                                                                                              \
        "2", "An option, a variable or a key file is wrong. Nothing was run."                      \
    }

static const struct cli_status run_statuses[] = {
    {"of PROGRAM", "PROGRAM ran."},
    WRONG_USE,
    {"125", "hcasim itself failed, or --require found that no process opened a device."},
    {"126", "PROGRAM cannot be executed."},
    {"127", "PROGRAM does not exist."},
    {"128+N", "With --require: the signal N ended PROGRAM."},
    {NULL, NULL}};

static const struct cli_status cluster_statuses[] = {
    {"0", "PROGRAM succeeded on all hosts."},
    {"of PROGRAM",
     "The status of the first host that failed. It is 128+N if the signal N ended PROGRAM."},
    WRONG_USE,
    {"125", "hcasim itself failed, or --require found that no process of a host opened a device."},
    {"126", "PROGRAM cannot be executed."},
    {"127", "PROGRAM or python3 does not exist."},
    {"128+N", "The signal N interrupted hcasim, which ended all hosts."},
    {NULL, NULL}};

#define REPORT_FAILED                                                                              \
    {                                                                                              \
        "125", "hcasim itself failed, or its output or its report cannot be written."              \
    }

static const struct cli_status sim_statuses[] = {
    {"0", "No seed failed."}, {"1", "A seed failed."}, WRONG_USE, REPORT_FAILED, {NULL, NULL}};

static const struct cli_status conformance_statuses[] = {
    {"0", "All cases that were played hold."},
    {"1", "A case does not hold, or no case was played."},
    {"2", "An option or a key file is wrong, the device of --peer cannot be reached, or a script "
          "cannot be read or has an unknown step: no case was played. Or a script has another "
          "mistake, which was seen when its case was played."},
    REPORT_FAILED,
    {NULL, NULL}};

static const struct cli_status vm_statuses[] = {
    {"0", "The commands succeeded, or the shell has ended."},
    {"of COMMAND",
     "The status of the first command that failed, in the order of the command line."},
    WRONG_USE,
    {"124", "--timeout ended a command."},
    {"125", "The guests did not start, or did not power off. A line says what to install."},
    {"127", "python3 does not exist."},
    {"128+N", "The signal N interrupted hcasim, which ended the guests."},
    {NULL, NULL}};

static const struct cli_status explain_statuses[] = {
    {"0", "The files were written."},
    {"1", "A file cannot be read or written, or is neither a trace nor a capture."},
    WRONG_USE,
    {"127", "python3 does not exist."},
    {NULL, NULL}};

static const struct cli_status ctl_statuses[] = {
    {"0", "The process ran the command."},
    {"1", "The process refused the command, or cannot be reached: a line says why."},
    WRONG_USE,
    {"125", "The output cannot be written."},
    {NULL, NULL}};

static const struct cli_status switch_statuses[] = {
    {"0", "A signal (SIGINT, SIGTERM) ended the switch."},
    WRONG_USE,
    {"125", "A port or socket could not be opened, or hcasim itself failed: a line says why."},
    {NULL, NULL}};

static const struct cli_status top_statuses[] = {
    {"0", "The user quit, or the table was printed."},
    {"1",
     "A folder cannot be read, no process has a control socket there (--once), or --prometheus "
     "cannot listen: a line says why."},
    WRONG_USE,
    {"125", "The output cannot be written."},
    {NULL, NULL}};

static const struct cli_status wires_statuses[] = {
    {"0", "The wires were listed, or removed."},
    {"1", "A wire that was named does not exist; with --clean: is in use, and was not removed. The "
          "others were listed, or removed."},
    WRONG_USE,
    {"125", "hcasim itself failed."},
    {NULL, NULL}};

/* -- commands ---------------------------------------------------------------------------------- */

#define LAST_HOLDS          "If an option is given twice, the last one holds."
#define LAST_HOLDS_BUT_WIRE LAST_HOLDS " --wire can be given once only."

static const struct cli_command commands[] = {
    {.name = "run",
     .arguments = "[--] PROGRAM [ARGUMENT...]",
     .summary = "runs a verbs program on an HCA of its own",
     .about = "Runs an unmodified verbs program on a ConnectX HCA of its own: no VM, no root, no "
              "device. All programs that run on the same wire reach each other. Programs with the "
              "experimental verbs of MLNX_OFED (ibv_exp_*) run, too.\n"
              "Each option except --require sets an environment variable: --mtu sets HCASIM_MTU. "
              "The variable can be set instead of the option. A variable has priority over the "
              "key file of --config, and an option has priority over both. " LAST_HOLDS_BUT_WIRE,
     .statuses = run_statuses,
     .examples =
         (const char *const[]){"hcasim run -- ibv_devinfo", "Shows the device.",
                               "hcasim run --wire lab -- ibv_rc_pingpong -d mlx5_0 -g 1",
                               "Waits for a peer on the wire lab. Index 1 is the RoCEv2 GID of the "
                               "IPv4 address.",
                               "hcasim run --wire left,right -- PROGRAM",
                               "mlx5_0 is on the wire left, and mlx5_1 on the wire right.",
                               "hcasim run --require -- make check",
                               "In CI: fails if no test opened a device.", NULL},
     .runs_program = true,
     .add_options = commands_add_run,
     .run = cli_run},
    {.name = "cluster",
     .arguments = "[--] PROGRAM [ARGUMENT...]",
     .summary = "runs a program on several hosts of one wire",
     .about =
         "Runs the program on hosts 1 to N, each with an HCA of its own. They reach each "
         "other. They have a wire of their own, unless --wire, HCASIM_WIRE or the key file of "
         "--config names one.\n"
         "The program finds the last number of its address in HCASIM_HOST "
         "(10.0.0.HCASIM_HOST), and N in HCASIM_HOSTS. With --devices D the numbers of the "
         "hosts are D apart. Each line that a host prints begins with the number of the host. "
         "If the program fails on a host, a line on standard error says so. An interrupt ends "
         "all hosts.\n"
         "--capture writes the frames of host H to FILE with .H before its suffix, and so does "
         "--trace-file with events. Each host has "
         "its own host number, IPv4 address and MAC address, so no variable and no key file "
         "of --config may set host, ip or mac. " LAST_HOLDS_BUT_WIRE,
     .statuses = cluster_statuses,
     .examples = (const char *const[]){"hcasim cluster -n 4 -- ibv_devinfo",
                                       "Shows the devices of four hosts.", NULL},
     .runs_program = true,
     .add_options = commands_add_cluster,
     .run = cli_cluster},
    {.name = "sim",
     .arguments = "[KEYFILE]",
     .summary = "simulates hosts on a fabric with faults, in virtual time",
     .about = "Simulates hosts, each with an HCA, on a fabric, in virtual time, and compares the "
              "results of random operations with a model. The seed decides everything: the same "
              "seed and options give the same run. If a seed fails, hcasim makes the run smaller "
              "and prints the command that repeats it. The last line is \"N passed, N failed, N "
              "skipped\".\n"
              "KEYFILE sets the same options in its group [simulation]. An option has priority "
              "over the file. " LAST_HOLDS,
     .statuses = sim_statuses,
     .examples = (const char *const[]){"hcasim sim --seeds 20", "Runs the seeds 1 to 20.", NULL},
     .add_options = commands_add_sim,
     .more = cli_sim_more,
     .run = cli_sim},
    {.name = "conformance",
     .arguments = "[SCRIPT...]",
     .summary = "plays conversations at packet level, each with the rules that it checks",
     .about = "Plays conformance scripts with the device of hcasim, in seconds, or with a foreign "
              "device on a wire. Without SCRIPT it plays all scripts.\n"
              "It prints a line for each case when the case ends. If a rule does not hold, it "
              "prints the step and all packets so far on standard error. The last line is \"N "
              "passed, N failed, N skipped\". " LAST_HOLDS,
     .statuses = conformance_statuses,
     .examples = (const char *const[]){"hcasim conformance --only READ",
                                       "Plays the cases with READ in their title or in a rule.",
                                       "hcasim conformance --peer FILE",
                                       "Plays with the foreign device that FILE describes.", NULL},
     .add_options = commands_add_conformance,
     .run = cli_conformance},
    {.name = "switch",
     .arguments = "",
     .summary = "joins many hosts and wires into one Ethernet segment",
     .about =
         "Runs an Ethernet switch until Ctrl-C or SIGTERM. Hosts connect to a socket of the switch "
         "(--listen), and each is a port; --port adds wires in shared memory, tunnels and network "
         "interfaces. The switch learns where stations are, and floods frames for unknown ones. "
         "Hosts on a socket need a host number each (hcasim run --host N).\n"
         "When the switch is ready, it prints a line that begins with \"switch:\". At its end it "
         "prints what it has counted. Each frame that comes in has one fate, and each copy that "
         "was meant for a port has one.\n"
         "The options from --rate to --vlan are those of all ports. Behind AT or URI, and with "
         "hcasim ctl while the switch runs, a port gets its own: rate, latency, queue, ecn, pfc, "
         "pause, vlan as the options; link (up, down); island (ports of different numbers do not "
         "hear each other); priority (0 to 7, of untagged frames without IP); stations and groups (how "
         "many the switch remembers of the port). fault is rules for its frames, as of hcasim run "
         "--fault; fault-add of hcasim ctl adds others if there are some, or none. " LAST_HOLDS
         " --listen and --port add up.",
     .statuses = switch_statuses,
     .examples =
         (const char *const[]){
             "hcasim switch --listen /tmp/sw", "Joins all that connect to /tmp/sw.",
             "hcasim run --wire connect:/tmp/sw --host 1 -- ibv_devinfo", "Is one of them.",
             "hcasim switch --listen /tmp/sw --port shm:lab --rate 10G --ecn 100K:400K:10",
             "The same with the hosts of the wire lab, at 10 Gb/s and with ECN marks.",
             "hcasim switch --listen /tmp/sw --control /tmp/sw.ctl",
             "Takes commands: hcasim ctl /tmp/sw.ctl port-set port=1 key=link value=down", NULL},
     .add_options = commands_add_switch,
     .run = cli_switch},
    {.name = "vm",
     .arguments = "[[--] COMMAND...]",
     .summary = "opens a shell, or runs commands, in a VM with the device",
     .about =
         "Boots a Debian guest in QEMU with the device. Its own kernel drives the device: when the "
         "shell appears, the drivers are loaded and the network device has 10.0.0.N/24. Ctrl-D, "
         "exit or poweroff ends the guest. At first use, hcasim downloads Debian packages and "
         "keeps the guest's system in ~/.cache/hcasim ($XDG_CACHE_HOME/hcasim).\n"
         "With COMMAND or --run no terminal is needed: the guests boot, run the commands and power "
         "off. COMMAND and its words are joined by blanks, and the guest's shell reads them. The "
         "commands start in their order. Each starts when the command before it listens on a TCP "
         "port or through the RDMA connection manager, or has ended, or has run for 5 s. A command "
         "finds its own guest's names in $NETDEV, $IBDEV, $PCI, $IP and $GID (the index of the "
         "RoCEv2 GID of $IP), and the other guest's address in $PEER. hcasim prints the output "
         "after the commands have ended; with --two each line begins with the name of its guest. "
         "Progress goes to standard error.\n"
         "VMs need QEMU (on Debian, the package qemu-system-x86) and the plugin, which works with "
         "the QEMU that it was built for. If an option that may not be given several times is "
         "given twice, the last one holds.",
     .statuses = vm_statuses,
     .examples =
         (const char *const[]){"hcasim vm --share .",
                               "Opens a shell in a guest, which finds this folder below /mnt.",
                               "hcasim vm -- ibv_devinfo -v", "Shows the device of a guest.",
                               "hcasim vm --two --run 'rping -s -C 9' --run b:'rping -c -C 9 -a "
                               "$PEER'",
                               "Runs a server in guest a and its client in guest b.", NULL},
     .runs_program = true,
     .add_options = commands_add_vm,
     .run = cli_vm},
    {.name = "wires",
     .arguments = "[WIRE...]",
     .summary = "lists the wires of this user and their hosts, and removes abandoned wires",
     .about =
         "Lists the wires of this user on this machine, or those that are named: one line for "
         "each host. WIRE is a name, or a URI such as shm:/PATH. Without WIRE, wires shm:/PATH "
         "are not listed, because they can be anywhere. Listing joins no wire, and its hosts do "
         "not notice it.\n"
         "HOST is the host number, and ADDRESS the IPv4 address, or the MAC address if that does "
         "not follow from an IPv4 address. A host that has opened no device has no address. "
         "PROCESS and PROGRAM are - if the process is not visible, for example because it runs "
         "in another container.\n"
         "STATE is alive; dead: the host was killed, and the wire is in use by others; "
         "left-behind: no host lives on the wire; other-version: another version of hcasim uses "
         "it, or it is damaged; not-a-wire; or unreadable: a line on standard error says why. AGE "
         "is the time since the wire was made, and MEMORY is the memory that its file takes. In "
         "PROGRAM and in names, ? stands for blanks and other special characters.\n"
         "The next hcasim run also removes what --clean removes.",
     .statuses = wires_statuses,
     .examples = (const char *const[]){"hcasim wires", "Lists the wires.", "hcasim wires --clean",
                                       "Removes what killed programs left.", NULL},
     .add_options = commands_add_wires,
     .run = cli_wires},
    {.name = "explain",
     .arguments = "FILE...",
     .summary = "draws what happened, from traces and captures, as a page",
     .about =
         "Draws a ladder: a line for each host, time downwards, an arrow for each packet, and a "
         "mark for each doorbell, WQE and completion. A message can be followed from "
         "ibv_post_send to the other side's completion, with all its repeated packets and the "
         "reasons for them.\n"
         "FILE is a trace (--trace-file of run, cluster and sim), or a capture (--capture). "
         "Traces of both ends show most. Of a capture alone, the page shows the packets. If "
         "there are both, the page shows the comments of the capture with the packets of the "
         "trace. " LAST_HOLDS,
     .statuses = explain_statuses,
     .examples = (const char *const[]){"hcasim sim --seed 1 --trace-file t.jsonl && hcasim explain "
                                       "t.jsonl",
                                       "Draws a simulation; the page is explain.html.", NULL},
     .add_options = commands_add_explain,
     .run = cli_explain},
    {.name = "ctl",
     .arguments = "SOCKET|DIR [COMMAND [NAME=VALUE...]]",
     .summary = "gives commands to a running process through its control socket",
     .about =
         "Gives COMMAND to the process that listens at the control socket SOCKET, and prints the "
         "answer. With DIR, it gives COMMAND to each process that has a control socket in the "
         "folder DIR. Without COMMAND, it lists the commands of the process with their arguments. "
         "An argument whose type is not STRING is written as in JSON: up=true, hosts=[1,2].\n"
         "A control socket takes a line of JSON for each command: {\"execute\": COMMAND, "
         "\"arguments\": {...}}. Only the user who runs the process can connect.",
     .statuses = ctl_statuses,
     .examples = (const char *const[]){"hcasim ctl /tmp/lab", "Lists the commands.",
                                       "hcasim ctl /tmp/lab query-stats",
                                       "Prints the counters of all hosts with --control /tmp/lab.",
                                       "hcasim ctl /tmp/lab/10.0.0.1.* set-link up=false",
                                       "Cuts the cable of one host.", NULL},
     .add_options = commands_add_ctl,
     .run = cli_ctl},
    {.name = "top",
     .arguments = "[DIR|SOCKET...]",
     .summary = "shows the traffic of hosts and switches while they run",
     .about =
         "Shows a line for each host that has a control socket in the folder DIR or at SOCKET "
         "(hcasim run --control), and for each port of a switch there: rates of bits, frames and "
         "messages, the number of QPs, WQEs in flight, retransmissions, NAKs that were received, "
         "and all ACK timeouts so far. Without an argument it looks at the folder that "
         "HCASIM_CONTROL names. The line of a process that does not answer says silent.\n"
         "q quits. Other keys, which the last line lists, choose the column to sort by.\n"
         "With --prometheus, the same numbers are served to Prometheus: counters as "
         "hcasim_NAME_total and gauges as hcasim_NAME, with the labels socket, host, device and "
         "program. Each request asks the processes anew.",
     .statuses = top_statuses,
     .examples =
         (const char *const[]){"hcasim top /tmp/lab",
                               "Shows the hosts that run with --control /tmp/lab.",
                               "hcasim top --prometheus localhost:9100 /tmp/lab",
                               "Serves their numbers at http://localhost:9100/metrics.", NULL},
     .add_options = commands_add_top,
     .run = cli_top},
};

const struct cli_command *cli_command_at(unsigned i)
{
    return i < G_N_ELEMENTS(commands) ? &commands[i] : NULL;
}

const struct cli_command *cli_command_find(const char *name)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(commands); i++) {
        if (!strcmp(commands[i].name, name)) {
            return &commands[i];
        }
    }
    return NULL;
}
