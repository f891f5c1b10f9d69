# SPDX-License-Identifier: BSD-2-Clause
"""Does random operations on a file, and compares what it reads with a copy in memory.

usage: fsx.py FILE SECONDS SEED

Reads, writes, maps, truncates, punches holes in, copies within, opens again and drops the cache of
the file. The last line of its output is the number of operations and the file's SHA-256, for a
comparison at the server. If a byte is wrong, it prints the place and the last operations that
touched it, with exit status 1.
"""
import collections
import ctypes
import hashlib
import mmap
import os
import random
import sys
import time

MOST = 1 << 20  # bytes of the file
LONGEST = 128 << 10  # bytes of an operation
PUNCH_HOLE = 3  # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE
PAGE = 4096

libc = ctypes.CDLL(None, use_errno=True)
libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)


class File:
    """A file and the copy of what it must hold."""

    def __init__(self, path, seed):
        self.path, self.random = path, random.Random(seed)
        self.copy = bytearray()
        self.history = collections.deque(maxlen=2000)
        self.count = 0
        self.direct_buffer = mmap.mmap(-1, LONGEST)
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)

    def note(self, what, start, length):
        self.history.append((self.count, what, start, length))

    def expect(self, found, start, what):
        wanted = self.copy[start:start + len(found)]
        if found == wanted and start + len(found) <= len(self.copy):
            return
        at = next((i for i, (a, b) in enumerate(zip(found, wanted)) if a != b), len(wanted))
        place = start + at
        print(f"operation {self.count}, {what} of {len(found)} bytes at {start}: byte {place} is {found[at:at + 8].hex()}, "
              f"not {bytes(wanted[at:at + 8]).hex()}; the file has {len(self.copy)} bytes")
        for number, done, begin, length in self.history:
            if begin <= place < begin + length:
                print(f"  {number}: {done} {begin} {length}")
        sys.exit(1)

    def range(self, limit):
        """A range of at least one byte below the limit, often at a page's boundary."""
        start = self.random.randrange(limit)
        if self.random.random() < 0.3:
            start = start // PAGE * PAGE
        return start, self.random.randint(1, min(LONGEST, limit - start))

    def grow(self, size):
        self.copy.extend(bytes(max(0, size - len(self.copy))))

    # The operations

    def write(self):
        start, length = self.range(MOST)
        data = self.random.randbytes(length)
        self.note("write", start, length)
        self.grow(start + length)
        self.copy[start:start + length] = data
        done = os.pwrite(self.fd, data, start)
        assert done == length, done

    def write_direct(self):
        start, length = (value // PAGE * PAGE for value in self.range(MOST))
        if not length:
            return
        data = self.random.randbytes(length)
        self.note("direct write", start, length)
        self.grow(start + length)
        self.copy[start:start + length] = data
        self.direct_buffer[:length] = data
        with memoryview(self.direct_buffer) as view:
            self.with_direct(lambda fd: os.pwritev(fd, [view[:length]], start))

    def read(self):
        if self.copy:
            start, length = self.range(len(self.copy))
            found = os.pread(self.fd, length, start)
            assert len(found) == length, f"{len(found)} bytes of {length} at {start}"
            self.expect(found, start, "read")

    def read_direct(self):
        if len(self.copy) > PAGE:
            start = self.range(len(self.copy))[0] // PAGE * PAGE
            with memoryview(self.direct_buffer) as view:
                done = self.with_direct(lambda fd: os.preadv(fd, [view], start))
            self.expect(self.direct_buffer[:done], start, "direct read")

    def with_direct(self, function):
        fd = os.open(self.path, os.O_RDWR | os.O_DIRECT)
        try:
            return function(fd)
        finally:
            os.close(fd)

    def map_read(self):
        if self.copy:
            start, length = self.range(len(self.copy))
            with mmap.mmap(self.fd, len(self.copy), prot=mmap.PROT_READ) as view:
                self.expect(view[start:start + length], start, "mapped read")

    def map_write(self):
        if self.copy:
            start, length = self.range(len(self.copy))
            data = self.random.randbytes(length)
            self.note("mapped write", start, length)
            self.copy[start:start + length] = data
            with mmap.mmap(self.fd, len(self.copy)) as view:
                view[start:start + length] = data
                view.flush()

    def truncate(self):
        size = self.random.randrange(MOST)
        self.note("truncate", min(size, len(self.copy)), MOST)
        del self.copy[size:]
        self.grow(size)
        os.ftruncate(self.fd, size)

    def punch(self):
        if self.copy:
            start, length = self.range(len(self.copy))
            self.note("hole", start, length)
            if libc.fallocate(self.fd, PUNCH_HOLE, start, length):
                raise OSError(ctypes.get_errno(), "fallocate")
            self.copy[start:start + length] = bytes(length)

    def copy_range(self):
        if len(self.copy) > 2:
            start, length = self.range(len(self.copy) // 2)
            to = self.random.randrange(start + length, MOST)
            length = min(length, MOST - to)
            self.note("copy", to, length)
            done = os.copy_file_range(self.fd, self.fd, length, start, to)
            self.grow(to + done)
            self.copy[to:to + done] = self.copy[start:start + done]

    def drop_cache(self):
        os.fsync(self.fd)
        os.posix_fadvise(self.fd, 0, 0, os.POSIX_FADV_DONTNEED)

    def reopen(self):
        os.close(self.fd)
        self.fd = os.open(self.path, os.O_RDWR)
        size = os.fstat(self.fd).st_size
        assert size == len(self.copy), f"{size} bytes in place of {len(self.copy)}"

    def compare(self):
        self.drop_cache()
        self.expect(os.pread(self.fd, MOST, 0), 0, "whole read")

    def step(self):
        self.count += 1
        self.random.choices((self.write, self.write_direct, self.read, self.read_direct, self.map_read, self.map_write,
                             self.truncate, self.punch, self.copy_range, self.drop_cache, self.reopen, self.compare),
                            (6, 2, 6, 2, 3, 3, 1, 1, 1, 2, 1, 1))[0]()


def main():
    path, seconds, seed = sys.argv[1:]
    until = time.monotonic() + float(seconds)
    file = File(path, int(seed))
    while time.monotonic() < until:
        file.step()
    file.compare()
    os.close(file.fd)
    print(file.count, hashlib.sha256(file.copy).hexdigest())


if __name__ == "__main__":
    main()
