# SPDX-License-Identifier: BSD-2-Clause
"""The one file that UCX looks for before it takes an RDMA device: a name in /dev/infiniband."""
import os
import pathlib

UVERBS = pathlib.Path("/dev/infiniband/uverbs0")


def cannot_be_made():
    """Whether the name is missing and this user cannot make it."""
    return not UVERBS.exists() and os.getuid() != 0


class UverbsName:
    """The name is there, or was made by us and goes again."""

    def __enter__(self):
        self.made = []
        if not UVERBS.exists():
            if not UVERBS.parent.exists():
                UVERBS.parent.mkdir()
                self.made.append(UVERBS.parent)
            UVERBS.symlink_to("/dev/null")
            self.made.append(UVERBS)

    def __exit__(self, *_):
        for path in reversed(self.made):
            path.rmdir() if path == UVERBS.parent else path.unlink()
