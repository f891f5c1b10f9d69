# SPDX-License-Identifier: BSD-2-Clause
"""The program hcasim: wrong options, variables and key files are refused in one line, and nothing is run;
programs get their words and give their exit status; help, man pages and completion name each option.

usage: test_cli.py HCASIM
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HCASIM = pathlib.Path(sys.argv.pop(1)).resolve()
HERE = pathlib.Path(__file__).resolve().parent
COMMANDS = ("run", "cluster", "sim", "conformance", "vm", "wires", "ctl", "switch", "top")
WRONG_USE, FAILED, NOT_EXECUTABLE, NOT_FOUND = 2, 125, 126, 127
WIRE = f"cli-{os.getpid()}"

MTU = "mtu must be 1500 to 9978, but it is 10"
SEVERAL = ", or several with commas between them"
WIRE_IS = f"wire must be a name of letters, digits, '.', '_' and '-', or shm:/PATH, or a socket{SEVERAL}"
NAME = f"{WIRE_IS}, but it is my lab"
# Options of `run`, and the line that refuses them.
WRONG = (
    (["--mtu", "10"], MTU),
    (["--mtu=10"], MTU),
    (["--mtu", ""], "mtu must be 1500 to 9978, but it is empty"),
    (["--ip", "foo"], "ip must be an IPv4 address such as 10.0.0.7, but it is foo"),
    (["--mac", "zz"], "mac must be a unicast MAC address such as 02:00:00:00:00:07, but it is zz"),
    (["--mac", "01:00:00:00:00:01"],
     "mac must be a unicast MAC address such as 02:00:00:00:00:07, but it is 01:00:00:00:00:01"),
    (["--devices", "33"], "devices must be 1 to 16, but it is 33"),
    (["--host", "0"], "host must be 1 to 65518, but it is 0"),
    (["--memory", "1X"], "memory must be 8M or more, in bytes or with K, M or G, but it is 1X"),
    (["--responders", "many"], "responders must be 1 to 65536, but it is many"),
    (["--remove-after", "1s"], "remove_after must be 0 to 1000000000 seconds, but it is 1s"),
    (["--loss", "101"], "loss must be 0 to 100 percent, such as 1% or 0.5, but it is 101"),
    (["--loss", "-1%"], "loss must be 0 to 100 percent, such as 1% or 0.5, but it is -1%"),
    (["--delay", "5"], "delay must be 0us to 10s, with its unit: ns, us, ms or s, but it is 5"),
    (["--jitter", "11s"], "jitter must be 0us to 10s, with its unit: ns, us, ms or s, but it is 11s"),
    (["--fault-seed", "x"], "fault_seed must be 0 to 4294967295, but it is x"),
    (["--fault", "drop RC_ACKS"], "fault rule 'drop RC_ACKS': 'RC_ACKS' is not allowed there, but one of these words: qp, "
     "psn, from, to, in, out, both, nth, every, once, times, after, for, PERCENT%, a packet's name such as READ_RESPONSE "
     "or RC_ACK"),
    (["--fault", "link down"], "fault rule 'link down': it ends too early: one of these words follows: TIME"),
    (["--fault", "command CREATE_QC fail"], "fault rule 'command CREATE_QC fail': command needs the name of a command, "
     "such as CREATE_CQ, or any, but it has 'CREATE_QC'"),
    (["--fault", "health 1; delay 11s"],
     "fault rule 'delay 11s': delay needs a time of at most 10s, such as 100us, 5ms or 0.5s, but it has '11s'"),
    (["--log", "loud"], "log must be error, guest, info or trace, but it is loud"),
    (["--wire", "my lab"], NAME),
    (["--wire", "lab,"], f"{WIRE_IS}, but it is lab,"),
    (["--wire", ",".join(["lab"] * 17)], f"{WIRE_IS}, but it is {','.join(['lab'] * 17)}"),
    (["--wire", "a", "--wire=b"], "--wire is given twice; for a device on each wire, say --wire a,b"),
    (["--wire", "a,b,c", "--devices", "2"],
     "devices is 2, but wire names 3 wires: there is a device for each wire"),
    (["--config", "nofile"], "nofile: No such file or directory"),
    (["--profile", "cx9"], "profile must be cx4, cx4lx, cx5, cx6dx, cx7 or cx8, but it is cx9"),
    (["--capture", "/nonexistent/x"], "capture must be a file that can be written, but it is /nonexistent/x: No such file or directory"),
    (["--capture-size", "1K"], "capture_size must be 1M or more, in bytes or with K, M or G, but it is 1K"),
    (["--capture-files", "0"], "capture_files must be 1 to 9999, but it is 0"),
    (["--wibble", "1"], "unknown option --wibble, see hcasim help run"),
    (["--memlock=0"], "--memlock has no value, see hcasim help run"),
    (["-h4"], "-h has no value, see hcasim help run"),
    (["-x"], "unknown option -x, see hcasim help run"),
    (["--mtu-x=1500"], "unknown option --mtu-x (did you mean --mtu?), see hcasim help run"),
    (["--los", "1"], "unknown option --los (did you mean --loss?), see hcasim help run"),
    (["--duplicaiton=1"], "unknown option --duplicaiton (did you mean --duplication?), see hcasim help run"),
    (["--remove"], "unknown option --remove (did you mean --remove-after?), see hcasim help run"),
    (["--mac", "02:00:00:ff:ff:f1", "--devices", "16"],
     "mac is 02:00:00:ff:ff:f1, but there are not enough addresses after it for 16 devices"),
    (["--capture="], "capture must be a file that can be written, but it is empty"),
    (["--config="], "config must be the name of a file, but it is empty"),
    (["--remove-when="], "remove_when must be a text that is not empty, but it is empty"),
    (["--wire="], NAME.replace("my lab", "empty")),
)
# Key files, and how the line ends that refuses them.
WRONG_FILES = (
    ("[hcasim]\nmtu=10\n", MTU),
    ("[hcasim]\nmtuu=1500\n", "there is no setting 'mtuu'; did you mean 'mtu'?"),
    ("[hcasim]\ncolour=red\n", "there is no setting 'colour'"),
    ("[simulations]\nseeds=1\n", "there is no group [simulations]: the keys are in the group [hcasim]"),
    ("[hca]\nmtu=1500\n", "there is no group [hca]: the keys are in the group [hcasim]"),
    ("mtu=1500\n", "Key file does not start with a group"),
)


def hcasim(*words, **variables):
    return subprocess.run([HCASIM, *words], capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, **variables})


class Refusals(unittest.TestCase):
    def refused(self, line, *words, **variables):
        """Checks that the command is refused and runs nothing: the program would make a file."""
        with tempfile.TemporaryDirectory() as folder:
            ran = pathlib.Path(folder, "ran")
            done = hcasim(*words, "--", "touch", ran, **variables)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (WRONG_USE, "", f"hcasim: {line}\n"), words)
            self.assertFalse(ran.exists(), words)

    def test_a_wrong_value_is_refused(self):
        for words, line in WRONG:
            self.refused(line, "run", *words)

    def test_a_wrong_variable_is_refused(self):
        self.refused(f"HCASIM_MTU: {MTU}", "run", HCASIM_MTU="10")
        self.refused(f"HCASIM_WIRE: {NAME}", "run", HCASIM_WIRE="my lab")

    def test_an_option_has_priority_over_a_variable(self):
        done = hcasim("run", "--mtu", "2000", "--", "printenv", "HCASIM_MTU", HCASIM_MTU="10")
        self.assertEqual((done.returncode, done.stdout), (0, "2000\n"))

    def test_a_wrong_key_file_is_refused(self):
        for text, why in WRONG_FILES:
            with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
                file.write(text)
                file.flush()
                done = hcasim("run", "--config", file.name, "--", "true")
                self.assertEqual((done.returncode, done.stderr), (WRONG_USE, f"hcasim: {file.name}: {why}\n"))
                done = hcasim("run", "true", HCASIM_CONFIG=file.name)
                self.assertEqual((done.returncode, done.stderr), (WRONG_USE, f"hcasim: {file.name}: {why}\n"))

    def test_a_key_file_may_serve_several_commands(self):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write("[simulation]\nseeds=1\nhosts=2\nworkload=rc\nops=20\n[hcasim]\nmtu=1500\n[peer]\nwire=lab\n")
            file.flush()
            for words in (["run", "--config", file.name, "true"], ["sim", file.name]):
                done = hcasim(*words)
                self.assertEqual((done.returncode, done.stderr), (0, ""), words)

    def test_a_misspelt_variable_is_refused(self):
        for words in (["run"], ["cluster", "-n", "2"]):
            for name, meant in (("LOS", "LOSS"), ("DVICES", "DEVICES"), ("FAULTSEED", "FAULT_SEED"), ("PLUGN", "PLUGIN")):
                self.refused(f"HCASIM_{name} is no variable of hcasim; did you mean HCASIM_{meant}?", *words,
                             **{f"HCASIM_{name}": "1"})
        self.assertEqual(hcasim("run", "true", HCASIM_LOS="").stderr, "", "an empty variable is none")

    def test_another_unknown_variable_is_named_once(self):
        for words in (["run"], ["run", HCASIM, "run"], ["cluster", "-n", "2"]):
            for name, more in (("FOO", ", see hcasim help run"), ("LOG_FOLDER", "; did you mean HCASIM_LOG?")):
                done = hcasim(*words, "true", **{f"HCASIM_{name}": "1"})
                self.assertEqual((done.returncode, done.stderr),
                                 (0, f"hcasim: HCASIM_{name} is no variable of hcasim, and has no effect{more}\n"), words)

    def test_the_library_names_a_misspelt_variable_once(self):
        """A program that sets the variable itself runs, and lists its devices twice."""
        done = hcasim("run", "--wire", WIRE, "--", "sh", "-c",
                      "HCASIM_FOO=1 HCASIM_MTUU=1500 exec python3 -c 'import ctypes; v = ctypes.CDLL(\"libibverbs.so.1\"); "
                      "v.ibv_get_device_list(None); v.ibv_get_device_list(None)'")
        self.assertEqual((done.returncode, done.stderr),
                         (0, "hcasim: HCASIM_MTUU is no variable of hcasim; did you mean HCASIM_MTU?\n"))

    def test_variables_of_the_tree_are_known(self):
        """Scripts and tests have variables HCASIM_* of their own; programs that they start get them, too."""
        tree = HERE.parents[1]
        text = (tree / "scripts/lib/variables.txt").read_text(encoding="utf-8")
        listed = set(re.findall(r"^HCASIM_\w+", text, re.M))
        known = set(re.findall(r"`(HCASIM_\w+)` \|", hcasim("--markdown", "settings").stdout))
        done = subprocess.run(["git", "grep", "-hoE", "HCASIM_[A-Z0-9_]+", "--", "scripts", ".ci", "tests", ":!*.md", ":!*.txt",
                               ":!tests/fuzz", ":!tests/cli/test_cli.py"], cwd=tree, capture_output=True, text=True, check=False)
        if done.returncode:
            self.skipTest("the tree is no repository")
        used = {name for name in done.stdout.split() if not name.endswith("_H")}
        self.assertEqual(used - known, listed, "scripts/lib/variables.txt has to list them")
        done = hcasim("run", "true", **{name: "1" for name in listed})
        self.assertEqual((done.returncode, done.stderr), (0, ""), "none looks like a misspelt one")

    def test_a_cluster_refuses_what_run_refuses(self):
        self.refused(MTU, "cluster", "-n", "2", "--mtu", "10")
        self.refused("hosts must be 1 to 254, but it is 300", "cluster", "-n", "300")
        self.refused("hosts must be 1 to 254, but it is x", "cluster", "-nx")
        self.refused("how many hosts? Say -n N", "cluster")
        self.refused("unknown option --ip, see hcasim help cluster", "cluster", "-n", "2", "--ip", "10.0.0.1")
        self.refused("200 hosts with 2 devices each are 400 devices, but 254 is the most", "cluster", "-n", "200",
                     "--devices", "2")

    def test_an_option_without_its_value_is_refused(self):
        for words, line in ((["run", "--mtu"], "--mtu needs a value: --mtu BYTES, see hcasim help run"),
                            (["cluster", "-n"], "-n needs a value: -n N, see hcasim help cluster"),
                            (["conformance", "uc.txt", "--only"],
                             "--only needs a value: --only TEXT, see hcasim help conformance")):
            done = hcasim(*words)
            self.assertEqual((done.returncode, done.stderr), (WRONG_USE, f"hcasim: {line}\n"))

    def test_the_others_refuse_wrong_values(self):
        for words, line in ((["sim", "--loss", "x"], "loss must be 0 to 100 %, but it is x"),
                            (["sim", "--hosts=1001"], "hosts must be 0 to 1000, but it is 1001"),
                            (["conformance", "--peer", "nofile"],
                             "peer must be a file that can be read, but it is nofile: No such file or directory"),
                            (["sim", "--capture", "/nonexistent/x"],
                             "capture must be a file that can be written, but it is /nonexistent/x: No such file or directory"),
                            (["sim", "--capture", "/"], "capture must be a file that can be written, but it is /: Is a directory"),
                            (["sim", "--report", "x.xml"], "report must be junit:FILE, but it is x.xml"),
                            (["sim", "--report=junit:/nonexistent/x"],
                             "report must be a file that can be written, but it is /nonexistent/x: No such file or directory"),
                            (["conformance", "--peer", "/"], "peer must be a file that can be read, but it is /: Is a directory"),
                            (["conformance", "--report", "xml:r.xml"],
                             "there is no kind of report 'xml': say FILE for Markdown or junit:FILE for JUnit XML (a file of "
                             "that name is ./xml:r.xml)"),
                            (["frobnicate"], "there is no command 'frobnicate', see hcasim help"),
                            (["help", "frobnicate"], "there is no command 'frobnicate', see hcasim help"),
                            ([], "there is no command, see hcasim help"),
                            (["run"], "there is no PROGRAM to run")):
            done = hcasim(*words)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (WRONG_USE, "", f"hcasim: {line}\n"), words)


# Words of `vm`, and the line that refuses them.
WRONG_VMS = (
    (["--index", "0"], "index must be 1 to 254, but it is 0"),
    (["--memory=1G"], "memory must be 256 to 65536, but it is 1G"),
    (["--cpus", "many"], "cpus must be 1 to 64, but it is many"),
    (["--timeout", "0"], "timeout must be 1 to 1000000000 seconds, but it is 0"),
    (["--join", "my lab"], NAME.replace("wire must", "join must").replace(SEVERAL, "")),
    (["--share", "nofolder"], "share must be DIR or DIR:/PATH with a folder DIR, but it is nofolder"),
    (["--share", "/tmp:inside"], "share must be DIR or DIR:/PATH with a folder DIR, but it is /tmp:inside"),
    (["--share", "/tmp:/mnt/a b"], "share must have a path in the guest without blanks, commas, colons and quotes, but "
     "it is /tmp:/mnt/a b: say DIR:/PATH"),
    (["--qemu-args", "-name 'x"], "qemu_args must be words as a shell reads them, but it is -name 'x"),
    (["--device-args", "profile=cx7,trace"], "device_args must be NAME=VALUE,..., but it is profile=cx7,trace"),
    (["--kernel", "nofile"], "kernel must be a file that can be read, but it is nofile: No such file or directory"),
    (["--modules", "/tmp"], "--modules belongs to a kernel: say --kernel FILE, too"),
    (["--kernel", "/etc/passwd", "--kernel-release", "forky"], "--kernel and --kernel-release exclude each other"),
    (["--two", "--join", "lab"], "--two and --join exclude each other"),
    (["--two", "--index=3"], "--two and --index exclude each other"),
    (["--run", "b:true"], "--run b:true: there is no guest b; with --two there are a and b"),
    (["--two", "--run", "c:true"], "--run c:true: there is no guest c, but a and b"),
    (["--two", "--run", "a:true", "b:true"],
     "'b:true' follows --run, which takes one command: say --run again for each further command"),
    ([], "there is no terminal for a shell: hcasim vm -- COMMAND runs a command in the guest"),
    (["--wibble"], "unknown option --wibble, see hcasim help vm"),
)


class Vm(unittest.TestCase):
    """The guests themselves are in tests/vm/by-script."""

    def vm(self, *words, **variables):
        return subprocess.run([HCASIM, "vm", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                              check=False, env={**os.environ, **variables})

    def test_a_wrong_value_is_refused(self):
        for words, line in WRONG_VMS:
            done = self.vm(*words)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (WRONG_USE, "", f"hcasim: {line}\n"), words)

    def test_a_missing_part_is_named_in_one_line(self):
        for variables, line in (
                ({"HCASIM_PLUGIN": "/nonexistent/hcasim.so"},
                 "/nonexistent/hcasim.so is not built: run scripts/setup, then ninja -C build qemu-dev/hcasim.so"),
                ({"HCASIM_PLUGIN": "/dev/null", "QEMU": "no-such-qemu"},
                 "no-such-qemu is missing: install QEMU (on Debian, the package qemu-system-x86)")):
            done = self.vm("--", "true", **variables)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (FAILED, "", f"hcasim: {line}\n"))

    def options(self, *words):
        """Returns the argument that the Python part gets."""
        with tempfile.TemporaryDirectory() as folder:
            python = pathlib.Path(folder, "python3")
            python.write_text('#!/bin/sh\nprintf "%s" "$3"\n', encoding="ascii")
            python.chmod(0o755)
            done = self.vm(*words, HCASIM_PLUGIN="/dev/null", QEMU="/bin/true", PATH=f"{folder}:{os.environ['PATH']}")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def test_commands(self):
        self.assertEqual(self.options("--", "ibv_devinfo", "-v")["run"], ["a:ibv_devinfo -v"])
        self.assertEqual(self.options("ls", "--two")["run"], ["a:ls --two"])
        self.assertEqual(self.options("--two", "--run", 'b:echo "x"', "--run=sleep 1")["run"],
                         ['b:echo "x"', "a:sleep 1"])

    def test_options(self):
        got = self.options("--share", "/tmp", "--share=/etc:/mnt/etc", "--cpus", "2", "--bare", "--", "true")
        self.assertEqual(got["share"], ["/tmp", "/etc:/mnt/etc"])
        self.assertEqual((got["cpus"], got["memory"], got["timeout"], got["index"], got["two"], got["bare"]),
                         ("2", "1024", "600", "1", "", "1"))
        self.assertEqual(got["words"], ["--share=/tmp", "--share=/etc:/mnt/etc", "--cpus=2", "--bare"])
        self.assertEqual(got["hcasim"], str(HCASIM))
        self.assertEqual(self.options("--join", "lab", "--", "true")["index"], "2")


class VmOfAnOrdinaryUser(unittest.TestCase):
    """The Python part, in which QEMU does not start."""
    LIB = HERE.parents[1] / "scripts" / "lib"

    def python(self, script, *words, **variables):
        environment = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME", "HCASIM_ACCEL")}
        done = subprocess.run([sys.executable, "-B", "-c", f"import sys; sys.path.insert(0, {str(self.LIB)!r})\n{script}", *words],
                              capture_output=True, text=True, timeout=60, check=False, env={**environment, **variables})
        return done.returncode, done.stdout, done.stderr

    def test_a_user_without_a_home(self):
        """A user of a container may have neither HOME nor a line in /etc/passwd. bash and Python find the same place."""
        script = ("import pwd\ndef nobody(_): raise KeyError\npwd.getpwuid = nobody\n"
                  "import vmlib; print(vmlib.CACHE)")
        shell = subprocess.run(["bash", "-euc", f"unset HOME XDG_CACHE_HOME; . {self.LIB}/common.sh; echo $HCASIM_CACHE"],
                               capture_output=True, text=True, check=True).stdout
        self.assertEqual(self.python(script), (0, shell, ""))
        self.assertEqual(self.python(script, HOME="/home/me"), (0, "/home/me/.cache/hcasim\n", ""))
        self.assertEqual(self.python(script, HOME="/home/me", XDG_CACHE_HOME="/there"), (0, "/there/hcasim\n", ""))

    def test_a_guest_that_does_not_answer_ends_the_wait(self):
        """The guest's agent reads nothing: the command's end and its output are waited for once each."""
        script = ("import socket, vmlib; vmlib.SLOWNESS = 0.05; vm = vmlib.VM('a', '/tmp', None)\n"
                  "vm._agent, other = socket.socketpair()\n"
                  "try: vm.run('true', 10)\n"
                  "except vmlib.TimedOut as error: print(error)")
        self.assertEqual(self.python(script), (0, "a: `true`: no end after 10 s\nthe guest does not answer\n", ""))

    def test_a_user_who_may_not_use_kvm_is_told_once(self):
        with tempfile.NamedTemporaryFile() as kvm:
            script = (f"import grp, os, vmlib; vmlib.KVM = {kvm.name!r}; os.access = lambda *_: False\n"
                      "print(vmlib.accelerator(None), vmlib.accelerator(None), grp.getgrgid(os.stat(vmlib.KVM).st_gid).gr_name)")
            status, out, err = self.python(script)
        tcg, again, group = out.split()
        self.assertEqual((status, tcg, again), (0, "tcg", "tcg"))
        self.assertEqual(err, f"hcasim: this user may not open {kvm.name}: guests run without it, several times slower. "
                         f"Members of the group {group} may open it\n")

    def test_a_folder_that_cannot_be_written_is_told(self):
        script = ("import runpy, tempfile, vmlib; vmlib.Guest.prepare = lambda *_: None\n"
                  "tempfile._candidate_tempdir_list = lambda: ['/nonexistent']\n"
                  f"runpy.run_path({str(self.LIB / 'vm.py')!r}, run_name='__main__')")
        options = json.dumps(Vm().options("--", "true"))
        self.assertEqual(self.python(script, options),
                         (FAILED, "", "hcasim: No usable temporary directory found in ['/nonexistent']\n"))


class BeforeABuild(unittest.TestCase):
    def test_one_line_says_what_to_run(self):
        with tempfile.TemporaryDirectory() as folder:
            scripts = pathlib.Path(folder).resolve() / "scripts"
            scripts.mkdir()
            for name in ("hcasim", "vm"):
                shutil.copy(HERE.parents[1] / "scripts" / name, scripts)
            line = (f"hcasim: {scripts}/../build/cli/hcasim is not built: run 'scripts/setup verbs', then "
                    "'ninja -C build'\n")
            for name, *words in (("hcasim", "sim", "--help"), ("hcasim", "conformance", "--help"), ("hcasim", "help"),
                                 ("vm", "--help")):
                done = subprocess.run([scripts / name, *words], capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (FAILED, "", line), name)


class Pages(unittest.TestCase):
    def test_a_page_without_the_list_of_kinds_is_refused(self):
        """A program that has no simulator beside it does not write a page that only looks whole."""
        with tempfile.TemporaryDirectory() as folder:
            alone = pathlib.Path(folder).resolve() / "bin" / "hcasim"
            alone.parent.mkdir()
            shutil.copy(HCASIM, alone)
            for words in (("--markdown", "command-line"), ("--man", "sim")):
                done = subprocess.run([alone, *words], capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stdout), (FAILED, ""), words)
                self.assertRegex(done.stderr, r"^hcasim: \S+/hcasim-sim is not built or does not run, and without it the page "
                                              r"of hcasim sim would not be whole: run ninja in the build folder\n$")
                self.assertEqual(subprocess.run([HCASIM, *words], capture_output=True, check=False).returncode, 0)
            self.assertEqual(subprocess.run([alone, "--markdown", "faults"], capture_output=True, check=False).returncode, 0)


class Libraries(unittest.TestCase):
    def test_a_library_that_is_being_linked_is_no_failure_of_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder).resolve()
            verbs = build / "guest-lib" / "verbs"
            (build / "cli").mkdir()
            verbs.mkdir(parents=True)
            shutil.copy(HCASIM, build / "cli")
            shutil.copy(HCASIM.parent / "source-tree", build / "cli")
            names = ("libibverbs.so.1", "libmlx5.so.1", "libhcasim.so", "libhcasim-ibverbs.so", "libhcasim-mlx5.so")
            real = {name: HCASIM.parents[1] / "guest-lib" / "verbs" / name for name in names}
            for name in names:
                (verbs / name).symlink_to(real[name])
            self.assertEqual(self.run_in(build), (0, ""))
            for name in names:
                whole = real[name].read_bytes()
                for part in (b"", whole[:100], whole[:len(whole) // 2], whole[:-1], bytes(len(whole))):
                    (verbs / name).unlink()
                    (verbs / name).write_bytes(part)
                    self.assertEqual(self.run_in(build), (FAILED, f"hcasim: {verbs / name} is not complete: wait until the "
                                                          "build has ended, or run ninja -C build\n"), len(part))
                (verbs / name).unlink()
                self.assertEqual(self.run_in(build), (FAILED, f"hcasim: {verbs / name} is not built: run scripts/setup "
                                                      "verbs, then ninja -C build\n"))
                (verbs / name).symlink_to(real[name])

    def run_in(self, build):
        done = subprocess.run([build / "cli" / "hcasim", "run", "ibv_devices"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        return done.returncode, done.stderr


class Runs(unittest.TestCase):
    def test_words_after_the_program_are_the_programs(self):
        for words, want in ((["echo", "-h", "--mtu"], "-h --mtu\n"), (["--", "echo", "--", "-x"], "-- -x\n"),
                            (["--memlock", "echo", "--memlock=0"], "--memlock=0\n")):
            done = hcasim("run", *words)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, want, ""), words)

    def test_an_option_and_its_value_may_be_one_word(self):
        done = hcasim("run", "--wire=foo", "--mtu=1500", "sh", "-c", "echo $HCASIM_WIRE $HCASIM_MTU")
        self.assertEqual(done.stdout, "foo 1500\n")

    def test_explain_is_a_flag(self):
        self.assertEqual(hcasim("run", "--explain", "printenv", "HCASIM_EXPLAIN").stdout, "1\n")

    def test_the_last_one_of_two_holds(self):
        self.assertEqual(hcasim("run", "--mtu", "1500", "--mtu", "1501", "printenv", "HCASIM_MTU").stdout, "1501\n")

    def test_each_wire_has_a_device(self):
        for options, want in (([], 2), (["--devices", "3"], 3)):
            done = hcasim("run", "--wire", f"{WIRE},{WIRE}-b", *options, "ibv_devices")
            self.assertEqual(len(re.findall(r"mlx5_\d", done.stdout)), want, done.stderr)
        done = hcasim("cluster", "-n", "2", "--wire", f"{WIRE},{WIRE}-b", "printenv", "HCASIM_HOST")
        self.assertEqual(sorted(done.stdout.splitlines()), ["1| 1", "2| 3"], "the hosts have two numbers each")

    def test_the_status_is_the_programs(self):
        self.assertEqual(hcasim("run", "sh", "-c", "exit 7").returncode, 7)
        self.assertEqual(hcasim("run", "sh", "-c", "kill -9 $$").returncode, -9)

    def test_a_program_that_cannot_run(self):
        done = hcasim("run", "--", "no-such-program")
        self.assertEqual((done.returncode, done.stderr),
                         (NOT_FOUND, "hcasim: no-such-program: No such file or directory\n"))
        done = hcasim("run", "/etc/passwd")
        self.assertEqual((done.returncode, done.stderr), (NOT_EXECUTABLE, "hcasim: /etc/passwd: Permission denied\n"))

    def test_a_cluster_has_hosts(self):
        done = hcasim("cluster", "-n", "2", "--mtu", "1500", "--", "sh", "-c", "echo $HCASIM_HOST/$HCASIM_HOSTS $HCASIM_MTU")
        self.assertEqual((done.returncode, sorted(done.stdout.splitlines())), (0, ["1| 1/2 1500", "2| 2/2 1500"]))

    def test_a_letter_and_its_value_may_be_one_word(self):
        for words in (["-n2"], ["-n", "2"], ["--hosts=2"]):
            done = hcasim("cluster", *words, "--", "sh", "-c", "echo $HCASIM_HOST")
            self.assertEqual((done.returncode, sorted(done.stdout.splitlines())), (0, ["1| 1", "2| 2"]), words)

    def test_the_library_is_there(self):
        done = hcasim("run", "--wire", WIRE, "--ip", "10.0.7.7", "ibv_devices")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("mlx5_0", done.stdout)


class Clusters(unittest.TestCase):
    """Settings of all hosts, the ends of hosts, and what they print."""
    OWN = "each host has its own; "

    def start(self, *words, **how):
        started = subprocess.Popen([HCASIM, "cluster", "-n", "2", "--", *words], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, **how)
        self.addCleanup(started.stdout.close)
        self.addCleanup(started.stderr.close)
        self.addCleanup(started.wait)
        self.addCleanup(started.kill)
        return started

    def begin(self, script, first=":", **how):
        """Starts hosts that do `first`, print their process numbers, and run the script. Returns also these numbers."""
        started = self.start("sh", "-c", f"{first}; echo $$; {script}", **how)
        pids = [int(started.stdout.readline().split()[1]) for _ in range(2)]
        return started, pids

    def test_properties_of_a_single_host_are_refused(self):
        for name, value in (("host", "3"), ("ip", "10.0.0.9"), ("mac", "02:00:00:00:00:07")):
            done = hcasim("cluster", "-n", "2", "true", **{f"HCASIM_{name.upper()}": value})
            self.assertEqual((done.returncode, done.stderr),
                             (WRONG_USE, f"hcasim: HCASIM_{name.upper()}: {self.OWN}unset the variable\n"))
            with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
                file.write(f"[hcasim]\n{name}={value}\n")
                file.flush()
                done = hcasim("cluster", "-n", "2", "--config", file.name, "true")
                self.assertEqual((done.returncode, done.stderr),
                                 (WRONG_USE, f"hcasim: {file.name}: {name}: {self.OWN}remove the key\n"))

    def test_wire_and_capture_may_come_from_anywhere(self):
        with tempfile.TemporaryDirectory() as folder:
            capture = f"{folder}/all.pcapng"
            script = "echo $HCASIM_WIRE $HCASIM_CAPTURE"
            want = [f"{host}| {WIRE} {folder}/all.{host}.pcapng" for host in (1, 2)]
            file = pathlib.Path(folder, "key")
            file.write_text(f"[hcasim]\nwire={WIRE}\ncapture={capture}\n", encoding="utf-8")
            for options, variables in ((["--wire", WIRE, "--capture", capture], {}),
                                       ([], {"HCASIM_WIRE": WIRE, "HCASIM_CAPTURE": capture}),
                                       (["--config", file], {}), ([], {"HCASIM_CONFIG": str(file)})):
                done = hcasim("cluster", "-n2", *options, "--", "sh", "-c", script, **variables)
                self.assertEqual((done.returncode, sorted(done.stdout.splitlines())), (0, want))
            done = hcasim("cluster", "-n2", "--", "sh", "-c", script)
            self.assertRegex(done.stdout, r"^\d\| cluster-\d+\n\d\| cluster-\d+\n$")

    def test_each_host_has_the_fault_rules(self):
        """Both hosts ping: each counts for itself, and loses the third packet that it sends."""
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder, "t.jsonl")
            script = (f"cd {folder}; if [ $HCASIM_HOST = 1 ]; then ibv_rc_pingpong -p 18555 -g 1 -n 10 -s 64; "
                      "else sleep 1; ibv_rc_pingpong -p 18555 -g 1 -n 10 -s 64 127.0.0.1; fi")
            done = hcasim("cluster", "-n", "2", "--fault", "drop RC_SEND_ONLY nth 3; command CREATE_CQ slow 1ms once", "--explain",
                          "--trace-file", str(trace), "--", "sh", "-c", script)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stderr.count("fault 1: drop RC_SEND_ONLY nth 3: matched "), 2, done.stderr)
            self.assertEqual(done.stderr.count(", done 1\n"), 4, done.stderr)
            for host in (1, 2):
                events = [json.loads(line) for line in pathlib.Path(folder, f"t.{host}.jsonl").read_text().splitlines()[1:]]
                sent = [event for event in events if event["e"] == "sent" and event.get("opcode") == "RC_SEND_ONLY"]
                lost = [event for event in events if event["e"] == "lost"]
                self.assertEqual([event["psn"] for event in lost], [sent[2]["psn"]])
                self.assertEqual([event["command"] for event in events if event["e"] == "fault"], ["CREATE_CQ"])
        done = hcasim("cluster", "-n", "2", "--fault", "drop SENDS", "true")
        self.assertEqual((done.returncode, done.stdout), (WRONG_USE, ""))
        self.assertIn("fault rule 'drop SENDS': 'SENDS' is not allowed there", done.stderr)

    def test_a_signal_ends_all_hosts(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            started, pids = self.begin("exec sleep 1000")
            started.send_signal(number)
            self.assertEqual(started.wait(60), 128 + number)
            self.assertFalse([pid for pid in pids if pathlib.Path(f"/proc/{pid}").exists()], number)

    def test_an_ignored_signal_stays_ignored(self):
        started, pids = self.begin("exec sleep 1000", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        started.send_signal(signal.SIGHUP)
        started.send_signal(signal.SIGHUP)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(started.wait(60), 128 + signal.SIGKILL)

    def test_the_last_line_may_have_no_end(self):
        for script in ("printf end", "printf end; sleep 1000 & exit 0"):
            started = self.start("sh", "-c", script)
            self.assertEqual((sorted(started.communicate(timeout=60)[0].splitlines()), started.returncode),
                             (["1| end", "2| end"], 0), script)

    def test_last_words_after_a_signal_are_printed(self):
        started, _ = self.begin("while :; do sleep 0.1; done", first="trap 'echo bye; printf end; exit' TERM")
        started.terminate()
        out = started.communicate(timeout=60)[0]
        self.assertEqual((sorted(out.splitlines()), started.returncode),
                         (["1| bye", "1| end", "2| bye", "2| end"], 128 + signal.SIGTERM))

    def test_a_reader_that_does_not_read_holds_nothing_up(self):
        started = self.start("yes")
        started.stdout.readline()
        time.sleep(1)
        began = time.monotonic()
        started.terminate()
        self.assertEqual(started.wait(60), 128 + signal.SIGTERM)
        self.assertLess(time.monotonic() - began, 30)

    def test_its_own_failure_is_no_failure_of_a_host(self):
        done = subprocess.run(f"ulimit -n 16; exec {HCASIM} cluster -n 30 true", shell=True, capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (FAILED, "hcasim: Too many open files\n"))
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([HCASIM, "cluster", "-n", "2", "echo"], stdout=full, stderr=subprocess.PIPE, text=True,
                                  timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (FAILED, "hcasim: No space left on device\n"))

    def test_a_caller_may_ignore_the_end_of_children(self):
        started = self.start("sh", "-c", "exit 7", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(started.wait(60), 7)


class Requires(unittest.TestCase):
    """--require: some process must open a device."""
    COMPLAINT = "hcasim: --require: {} ended, and no process opened a device\n"

    def test_no_device_is_a_failure(self):
        done = hcasim("run", "--require", "--wire", WIRE, "true")
        self.assertEqual((done.returncode, done.stderr), (FAILED, self.COMPLAINT.format("true")))

    def test_a_list_of_devices_opens_none(self):
        self.assertEqual(hcasim("run", "--require", "--wire", WIRE, "ibv_devices").returncode, FAILED)

    def test_the_programs_own_failure_counts(self):
        done = hcasim("run", "--require", "--wire", WIRE, "sh", "-c", "exit 7")
        self.assertEqual((done.returncode, done.stderr), (7, self.COMPLAINT.format("sh")))

    def test_a_device_that_is_opened_is_seen(self):
        for words in (["ibv_devinfo"], ["sh", "-c", "ibv_devinfo; true"]):
            done = hcasim("run", "--require", "--wire", WIRE, *words)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(hcasim("cluster", "-n", "2", "--require", "ibv_devinfo").returncode, 0)
        # Two runs, one inside of the other, see the same device.
        done = hcasim("run", "--require", "--wire", WIRE, "--", HCASIM, "run", "--require", "ibv_devinfo")
        self.assertEqual(done.returncode, 0, done.stderr)

    def opens(self, *words):
        """A device that the command opens is seen. The wire is its own: another user could not join it."""
        done = hcasim("run", "--require", "--wire", f"{WIRE}-opens", "--", *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""), words)

    def test_a_program_may_change_its_user(self):
        if os.getuid():
            self.skipTest("only root can change the user")
        self.opens("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "ibv_devinfo")

    def test_a_program_may_have_namespaces(self):
        for kind in (["--pid", "--fork", "--mount-proc"], ["--net"]):
            words = ["unshare", "--user", "--map-root-user", *kind]
            if subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
                self.skipTest("no namespaces here")
            self.opens(*words, "ibv_devinfo")

    def test_a_program_may_close_and_reuse_descriptors(self):
        script = ("import os, subprocess, sys\n"
                  "number = int(os.environ['HCASIM_OPENED'].split(':')[0])\n"
                  "if sys.argv[1] == 'close': os.closerange(3, 4096)\n"
                  "else: os.dup2(os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), number)\n"
                  "os.execvp('ibv_devinfo', ['ibv_devinfo'])")
        self.opens("python3", "-c", script, "close")
        self.opens("python3", "-c", "import subprocess; subprocess.run(['ibv_devinfo'], check=True)")
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "file")
            self.opens("python3", "-c", script, file)
            self.assertEqual(file.read_bytes(), b"")
        # Few descriptors: the number is a small one.
        self.opens("sh", "-c", f"ulimit -n 64; exec {HCASIM} run --require ibv_devinfo")

    def test_many_devices_are_opened(self):
        """More news than a socket's queue holds."""
        self.opens("python3", "-c", "import subprocess\nfor _ in range(20): subprocess.run(['ibv_devinfo'], check=True)")

    def test_a_device_that_cannot_be_reported_is_said(self):
        done = hcasim("run", "--wire", WIRE, "ibv_devinfo", HCASIM_OPENED="3:0:0:")
        self.assertEqual((done.returncode, done.stderr),
                         (0, "hcasim: hcasim run --require cannot be told of the device: Bad file descriptor\n"))

    def test_each_host_of_a_cluster_must_open_one(self):
        self.assertEqual(hcasim("cluster", "-n", "2", "--require", "--", "sh", "-c",
                                "[ $HCASIM_HOST = 2 ] || ibv_devinfo").returncode, FAILED)

    def test_signals_are_passed_on(self):
        started = subprocess.Popen([HCASIM, "run", "--require", "--wire", WIRE, "sh", "-c",
                                    "trap 'ibv_devinfo; exit 9' TERM; echo begun; while :; do sleep 0.1; done"],
                                   stdout=subprocess.PIPE, text=True)
        with started:
            started.stdout.readline()
            started.send_signal(signal.SIGTERM)
            started.communicate(timeout=60)
        self.assertEqual(started.returncode, 9)
        done = hcasim("run", "--require", "--wire", WIRE, "sh", "-c", "kill -9 $$")
        self.assertEqual(done.returncode, 128 + 9)

    def test_a_caller_may_ignore_the_end_of_children(self):
        done = subprocess.run([HCASIM, "run", "--require", "--wire", WIRE, "grep", "SigIgn", "/proc/self/status"],
                              capture_output=True, text=True, timeout=60, check=False,
                              preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(done.returncode, FAILED)
        self.assertTrue(int(done.stdout.split()[1], 16) & 1 << signal.SIGCHLD - 1, done.stdout)

    def test_the_program_ends_with_hcasim(self):
        started = subprocess.Popen([HCASIM, "run", "--require", "sh", "-c", "echo $$; exec sleep 1000"],
                                   stdout=subprocess.PIPE, text=True)
        with started:
            child = pathlib.Path("/proc", started.stdout.readline().strip())
            started.kill()
        until = time.monotonic() + 60
        while child.exists() and child.joinpath("stat").read_text().split()[2] != "Z":
            self.assertLess(time.monotonic(), until, "the program lives on")
            time.sleep(0.05)


class Texts(unittest.TestCase):
    def options(self, command):
        text = hcasim("help", command).stdout
        found = re.findall(r"^  (?:-\w, )?(--[\w-]+)", text.partition("\nOptions:\n")[2], re.M)
        self.assertGreaterEqual(len(found), 3, text)
        return found

    def test_the_version_is_known(self):
        self.assertRegex(hcasim("--version").stdout, r"^hcasim \d+\.\d+\.\d+\n$")

    def test_a_reference_page_has_each_variable(self):
        tree = pathlib.Path(__file__).resolve().parents[2]
        page = hcasim("--markdown", "settings").stdout
        files = [file for folder in ("cli", "guest-lib", "wire", "fw", "model") for file in (tree / folder).rglob("*.[ch]")]
        used = {name for file in files for name in re.findall(r'"(HCASIM_[A-Z_]+)"', file.read_text(encoding="utf-8"))}
        self.assertIn("HCASIM_OPENED", used)
        self.assertFalse([name for name in used if f"`{name}`" not in page])

    def test_a_reference_page_has_each_option_and_status(self):
        page = hcasim("--markdown", "command-line").stdout
        for command in COMMANDS:
            part = page.partition(f"\n## hcasim {command}\n")[2].partition("\n## ")[0]
            for option in self.options(command):
                self.assertRegex(part, rf"`{option}[ `]")
            self.assertRegex(page, rf"\n\| `{command}` \| 2 \|")
        self.assertEqual(hcasim("--markdown", "nothing").returncode, WRONG_USE)

    def test_a_full_disk_is_a_failure(self):
        for words in (["--version"], ["help"], ["help", "run"], ["run", "-h"], ["--completion"], ["--man", "run"], ["wires", "--json"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([HCASIM, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (FAILED, "hcasim: standard output: No space left on device\n"),
                             words)

    def test_help_is_asked_for_in_many_ways(self):
        all_of_it = hcasim("help").stdout
        self.assertEqual({hcasim(word).stdout for word in ("--help", "-h")}, {all_of_it})
        for command in COMMANDS:
            self.assertIn(f"\n  {command} ", all_of_it)
            text = hcasim("help", command).stdout
            self.assertTrue(text.startswith(f"usage: hcasim {command} "), text)
            self.assertIn("\nExit status:\n", text)
            for word in ("--help", "-h"):
                self.assertEqual(hcasim(command, word).stdout, text)
            self.assertFalse([line for line in text.partition("Kinds of jobs")[0].splitlines() if len(line) > 80])

    def test_man_page_and_completion_name_each_option(self):
        completion = hcasim("--completion").stdout
        for command in COMMANDS:
            page = hcasim("--man", command).stdout
            words = re.search(rf"_hcasim_{command}\(\).*?options='([^']*)'", completion, re.S)[1].split()
            for option in self.options(command):
                if option not in ("--build", "--soft-roce"):  # they need the source tree
                    self.assertIn("\\fB" + option.replace("-", "\\-") + "\\fR", page.replace("\\fB\\-h, ", "\\fB"))
                    self.assertIn(option, words)

    def test_the_page_of_the_device_names_each_property(self):
        page = hcasim("--man", "device").stdout
        rows = (HERE.parents[1] / "qemu-dev/properties.def").read_text(encoding="utf-8")
        names = re.findall(r"^PROPERTY\(\w+, (\w+),", rows, re.M)
        self.assertGreater(len(names), 7)
        self.assertEqual(re.findall(r"^\.TP\n\\fB(\w+)\\fR=", page, re.M), names)
        for text in ("8M or more; default: 1G", "1 to 65536; default: 1024", "cx4, cx4lx, cx5, cx6dx, cx7, cx8; default: cx5",
                     "default: off"):
            self.assertIn(text, page)
        manual = (HERE.parents[1] / "docs/howto/vm.md").read_text(encoding="utf-8")
        self.assertEqual({name for name in names if f"| `{name}=" not in manual and f"/hca1 {name} " not in manual}, set())

    def test_the_page_about_wires_has_the_facts_of_the_tables(self):
        """The page's help and man page say the same. Its settings are those of run."""
        words, page = " ".join(hcasim("help", "wire").stdout.split()), hcasim("--man", "wire").stdout
        plain = " ".join(page.replace("\\fB", "").replace("\\fR", "").replace("\\-", "-").replace("\\(aq", "'").split())
        run = " ".join(hcasim("help", "run").stdout.split())
        for name in ("wire", "devices", "host", "ip", "mac", "mtu"):
            term = f"--{name}, HCASIM_{name.upper()}, {name}= "
            said = re.search(rf"{re.escape(term)}(.*?) \(default: (.*?)\)", words)
            self.assertIn(f"{said[1]} ", run)
            self.assertIn(f"default: {said[2]})", run)
            self.assertIn(f"{term}{said[1]} (default: {said[2]})", plain)
        self.assertIn("wire", hcasim("help").stdout.partition("Subjects of help:")[2])

    def test_the_page_about_wires_tells_the_limits(self):
        words = " ".join(hcasim("help", "wire").stdout.split())
        most = int(re.search(r"NAME has 1 to (\d+) letters", words)[1])
        self.assertEqual(hcasim("run", "--wire", "w" * most, "true").returncode, 0)
        self.assertEqual(hcasim("run", "--wire", "w" * (most + 1), "true").returncode, WRONG_USE)
        devices = int(re.search(r"(\d+) devices of a process", words)[1])
        self.assertEqual(hcasim("run", "--devices", str(devices), "true").returncode, 0)
        self.assertEqual(hcasim("run", "--devices", str(devices + 1), "true").returncode, WRONG_USE)
        file = pathlib.Path(re.search(r"Its file is (/\S+)\.", words)[1].replace("UID", str(os.getuid())).replace("NAME", WIRE))
        # While a program has its device open, the file is there, and takes the memory that the page says.
        done = hcasim("run", "--wire", WIRE, "--", "python3", "-c", "import ctypes, os; v = ctypes.CDLL('libibverbs.so.1'); "
                      "v.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p); "
                      "v.ibv_open_device.restype = ctypes.c_void_p; "
                      "v.ibv_open_device(ctypes.c_void_p(v.ibv_get_device_list(None)[0])); "
                      f"print(os.stat({str(file)!r}).st_blocks // 2)")
        of_wire, of_device = (int(re.search(pattern, words)[1]) for pattern in
                              (r"A wire takes (\d+) KiB", r"at least (\d+) KiB for each device"))
        self.assertGreaterEqual(int(done.stdout), of_wire)
        self.assertLess(abs(int(done.stdout) - of_wire - of_device), 32, done.stdout)
        self.assertFalse(file.exists())

    def complete(self, *words):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(hcasim("--completion").stdout)
            file.flush()
            script = f'. {file.name}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hcasim; printf "%s\\n" "${{COMPREPLY[@]}}"'
            return subprocess.run(["bash", "-c", script, "bash", "hcasim", *words], capture_output=True, text=True,
                                  check=True).stdout.split()

    def test_bash_completes(self):
        self.assertEqual(self.complete("cl"), ["cluster"])
        self.assertEqual(self.complete("help", "wir"), ["wires", "wire"])
        self.assertEqual(self.complete("run", "--mt"), ["--mtu"])
        self.assertEqual(self.complete("run", "--profile", "cx4"), ["cx4", "cx4lx"])
        self.assertEqual(self.complete("run", "--mtu", "--m"), [])
        self.assertEqual(self.complete("run", "--log", "trace", "--profi"), ["--profile"])
        self.assertIn("/etc/passwd", self.complete("run", "--config", "/etc/pass"))
        self.assertIn("/etc/passwd", self.complete("run", "cat", "--mtu", "/etc/pass"))
        self.assertIn("printenv", self.complete("run", "--mtu", "1500", "printe"))


if __name__ == "__main__":
    # A shell starts commands in the background with these signals ignored, and a cluster leaves them so.
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(each, signal.SIG_DFL)
    unittest.main()
