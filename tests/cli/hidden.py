# SPDX-License-Identifier: BSD-2-Clause
"""Runs commands where some folders are hidden and only a few can be written, to test an installed hcasim."""
import os
import pathlib
import subprocess

# Arguments: the folders to hide, --, the folders that stay writable, --, and the command.
HIDE = ('until [ "$1" = -- ]; do mount -t tmpfs -o ro tmpfs "$1"; shift; done; shift; '
        'until [ "$1" = -- ]; do mount --bind "$1" "$1"; shift; done; shift; '
        'mount -o remount,bind,ro / 2>/dev/null || :; exec "$@"')


def way(hidden, writable):
    """The words before a command that hide folders and make all but /dev/shm and writable folders read-only.

    Returns None and prints the reason if this process may not make mounts of its own."""
    namespace = ["unshare", "--mount"] + ([] if os.getuid() == 0 else ["--user", "--map-root-user"])
    outermost = [folder for folder in hidden
                 if not any(folder != other and folder.is_relative_to(other) for other in hidden)]
    words = [*namespace, "sh", "-ec", HIDE, "sh", *map(str, outermost), "--", *map(str, writable), "--"]
    seen = next(path for path in pathlib.Path(hidden[0]).iterdir())
    done = subprocess.run([*words, "test", "!", "-e", seen], capture_output=True, check=False, cwd="/")
    if done.returncode:
        print("folders cannot be hidden here:", done.stderr.decode().strip())
    return None if done.returncode else words
