# SPDX-License-Identifier: BSD-2-Clause
"""An ordinary user in a container: where tests of processes as hosts run.

There are no capabilities, no way to get any, no /dev/infiniband and no /sys/class/infiniband, whoever
runs the tests on whatever machine. Root becomes nobody, without supplementary groups and with an empty
bounding set; who is not root stays who he is. Device folders that the machine has are covered in a
mount namespace. What is needed of the tree is copied for root, whose clone others often cannot read.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENTERED = "HCASIM_TEST_SANDBOX"
DEVICE_FOLDERS = ("/dev/infiniband", "/sys/class/infiniband")
NOBODY = "65534"  # Debian's user and group without rights
TREE = ("scripts/hcasim", "scripts/lib/common.sh", "tests/verbs/*.py")
BUILD = ("guest-lib/verbs/libibverbs.so.1", "guest-lib/mlx5dv/libmlx5.so.1", "tests/programs/*")
UNPRIVILEGED = ["setpriv", "--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all",
                "--no-new-privs"]
# Arguments: the folders, --, and the command that must not see what is in them.
COVER = 'until [ "$1" = -- ]; do mount -t tmpfs -o ro tmpfs "$1"; shift; done; shift; exec "$@"'


def violations():
    """What of the above does not hold for this process."""
    status = pathlib.Path("/proc/self/status").read_text()
    found = [f"{name} is {value}"
             for name, value in re.findall(r"(Cap(?:Inh|Prm|Eff|Amb)):\t(\w+)", status)
             if int(value, 16)]
    if "NoNewPrivs:\t1" not in status:
        found.append("it could get privileges")
    if 0 in (os.getuid(), os.geteuid(), os.getgid()):
        found.append("it is root")
    for folder in DEVICE_FOLDERS:
        if os.path.isdir(folder) and os.listdir(folder):
            found.append(f"there is {folder}")
    return found


def copy(files, there):
    for source, name in files:
        target = there / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
        target.chmod(target.stat().st_mode | 0o444)


def stage(there, builds):
    """Copies the tests and builds (by their option); returns the builds' new places."""
    copy([(file, file.relative_to(ROOT)) for pattern in TREE for file in ROOT.glob(pattern)], there)
    placed = {}
    for option, build in builds.items():
        placed[option] = there / option.strip("-")
        copy([(file, file.relative_to(build)) for pattern in BUILD for file in build.glob(pattern)
              if file.is_file()], placed[option])
    for folder, _, _ in os.walk(there):
        os.chmod(folder, 0o755)
    return placed


def enter(script, builds):
    """Returns in the sandbox. Outside it runs the script with this process's arguments there, with
    builds (option: path) in the options' place, and exits with its status."""
    if os.environ.get(ENTERED):
        return
    with tempfile.TemporaryDirectory(prefix="hcasim-sandbox.") as temporary:
        command, cover = list(UNPRIVILEGED), [f for f in DEVICE_FOLDERS if os.path.isdir(f)]
        script = pathlib.Path(script).resolve()
        if os.getuid() == 0:
            there = pathlib.Path(temporary)
            builds = stage(there, builds)
            script = there / script.relative_to(ROOT)
            command += [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        else:
            command.remove("--bounding-set=-all")  # takes a privilege; what is not there stays away
        if cover:
            own = [] if os.getuid() == 0 else ["--user", "--map-current-user", "--keep-caps"]
            command = ["unshare", "--mount", *own, "sh", "-ec", COVER, "sh", *cover, "--", *command]
        options = [word for option, build in builds.items() for word in (option, str(build))]
        env = dict(os.environ, **{ENTERED: "1", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"})
        status = subprocess.run([*command, sys.executable, "-B", script, *sys.argv[1:], *options],
                                env=env, cwd="/").returncode
    sys.exit(status)
