# SPDX-License-Identifier: BSD-2-Clause
"""An ordinary user in a container, in which tests of processes as hosts run.

The container has no capabilities, no way to get any, no /dev/infiniband and no
/sys/class/infiniband, whoever runs the tests on whatever machine. Root becomes nobody, without
supplementary groups and with an empty bounding set; any other user stays. Device folders that have
content on the machine are covered in a mount namespace. The needed files of the tree are copied for
root, because other users often cannot read root's clone.

Where this is not possible, in a chroot or in a container that forbids it, as much as possible is
done: the ways are tried from the strictest on (ways()). What is lacking then is printed and counted
as skipped, and violations() does not check it; violations() checks everything else.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENTERED = "HCASIM_TEST_SANDBOX"  # names what is lacking
DEVICE_FOLDERS = ("/dev/infiniband", "/sys/class/infiniband")
NOBODY = "65534"  # Debian's user and group without rights
TREE = ("scripts/hcasim", "scripts/lib/common.sh", "scripts/lib/tries.py",
        "scripts/lib/capture.py", "wire/wireshark/hcasim.lua", "tests/verbs/*.py",
        "tests/programs/known*", "tests/programs/collective.c")
BUILD = ("guest-lib/verbs/libibverbs.so.1", "guest-lib/verbs/libmlx5.so.1", "guest-lib/verbs/libhcasim*.so",
         "cli/hcasim", "cli/cluster.py", "cli/source-tree", "tests/programs/*")
UNPRIVILEGED = ["setpriv", "--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all",
                "--no-new-privs"]
# Arguments: the folders, --, and the command that must not see their content.
COVER = 'until [ "$1" = -- ]; do mount -t tmpfs -o ro tmpfs "$1"; shift; done; shift; exec "$@"'
LACKING = {
    "folders": "no mount can be made here: programs see " + " and ".join(DEVICE_FOLDERS),
    "user": "root cannot become another user here: programs run as root, without capabilities",
}


def lacking():
    """Returns the names of LACKING that this sandbox does not have."""
    return [name for name in os.environ.get(ENTERED, "").split(",") if name in LACKING]


def violations():
    """Returns which of these properties do not hold for this process, except those that are
    lacking."""
    lacks = lacking()
    status = pathlib.Path("/proc/self/status").read_text()
    found = [f"{name} is {value}"
             for name, value in re.findall(r"(Cap(?:Inh|Prm|Eff|Amb)):\t(\w+)", status)
             if int(value, 16)]
    if "NoNewPrivs:\t1" not in status:
        found.append("it could get privileges")
    if "user" not in lacks and 0 in (os.getuid(), os.geteuid(), os.getgid()):
        found.append("it is root")
    if "folders" not in lacks:
        found += [f"there is something in {folder}" for folder in full_folders()]
    return found


def full_folders():
    return [f for f in DEVICE_FOLDERS if os.path.isdir(f) and os.listdir(f)]


def is_shared(path):
    """Returns whether a mount on path would be visible outside a mount namespace whose mounts are
    unchanged. In a chroot the mount of / may be missing in the table."""
    found = [line.split() for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()]
    over = [fields for fields in found
            if pathlib.PurePath(path).is_relative_to(fields[4].replace("\\040", " "))]
    return not over or any(field.startswith("shared:") for field in max(
        over, key=lambda fields: len(fields[4]))[6:])


def ways(root, full):
    """Yields commands that make the sandbox, each with what it lacks; the strictest first."""
    drop = [word for word in UNPRIVILEGED if root or word != "--bounding-set=-all"]
    nobody = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if root else []
    own = [] if root else ["--user", "--map-current-user", "--keep-caps"]
    cover = ["sh", "-ec", COVER, "sh", *full, "--"]
    if full:
        yield ["unshare", "--mount", *own, *cover, *drop, *nobody], []
        # In a chroot / is not a mount whose propagation could be changed. That is not needed if the
        # folders are in mounts that nobody shares, or in those of another user namespace.
        if own or not any(map(is_shared, full)):
            yield ["unshare", "--mount", "--propagation=unchanged", *own, *cover, *drop, *nobody], []
    lacks = ["folders"] if full else []
    yield [*drop, *nobody], lacks
    if root:  # without the capabilities to become another user, or to change the bounding set
        yield [word for word in drop if word != "--bounding-set=-all"], [*lacks, "user"]


def choose(root, full):
    """Returns the first of the ways that works."""
    said = []
    for command, lacks in ways(root, full):
        tried = subprocess.run([*command, "true"], capture_output=True, text=True, check=False)
        if tried.returncode == 0:
            return command, lacks
        said.append(tried.stderr.strip())
    sys.exit("no sandbox can be made here: " + "; ".join(said))


def copy(files, there):
    for source, name in files:
        target = there / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
        target.chmod(target.stat().st_mode | 0o444)


def stage(there, builds):
    """Copies the tests and builds (by their option); returns the new places of the builds."""
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
    """Returns if this process is in the sandbox. Otherwise runs the script with this process's
    arguments there, with builds (option: path) in place of the options, and exits with its
    status."""
    if os.environ.get(ENTERED):
        return
    with tempfile.TemporaryDirectory(prefix="hcasim-sandbox.") as temporary:
        script = pathlib.Path(script).resolve()
        command, lacks = choose(os.getuid() == 0, full_folders())
        if os.getuid() == 0:
            there = pathlib.Path(temporary)
            builds = stage(there, builds)
            script = there / script.relative_to(ROOT)
        options = [word for option, build in builds.items() for word in (option, str(build))]
        env = dict(os.environ, **{ENTERED: ",".join(["entered", *lacks]), "HOME": "/nonexistent",
                                  "LC_ALL": "C.UTF-8"})
        status = subprocess.run([*command, sys.executable, "-B", script, *sys.argv[1:], *options],
                                env=env, cwd="/").returncode
    sys.exit(status)
