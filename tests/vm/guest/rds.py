# SPDX-License-Identifier: BSD-2-Clause
"""Sends RDS datagrams to a peer, which returns each one reversed, and compares what comes back.

usage: rds.py serve ADDRESS
       rds.py ask ADDRESS PEER SECONDS SEED

Several pairs of sockets work at the same time, each with as many datagrams under way as the buffers
hold. The last line of `ask` has the numbers of datagrams and bytes that came back. `serve` ends when
`ask` ends.
"""
import queue
import random
import socket
import struct
import sys
import threading
import time

PAIRS = 3
PORT = 4000  # of the server's first socket; the client's first one is 100 above
LONGEST = 96 << 10  # half of a socket's send buffer, which counts each byte twice
QUIET = 60  # seconds without an answer that are too long
END = b"end"

failures = []


def open_socket(address, port):
    s = socket.socket(socket.AF_RDS, socket.SOCK_SEQPACKET)
    s.bind((address, port))
    return s


def limit_waits(s):
    """settimeout() would make the socket a non-blocking one, whose sends fail while a peer is busy."""
    for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
        s.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", QUIET, 0))


def echo(s):
    while True:
        data, sender = s.recvfrom(LONGEST)
        if data == END:
            return
        s.sendto(data[::-1], sender)


def serve(address):
    sockets = [open_socket(address, PORT + i) for i in range(PAIRS)]
    with open("/tmp/bound", "w", encoding="ascii"):
        pass
    threads = [threading.Thread(target=echo, args=(s,)) for s in sockets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def new_datagram(generator):
    """Of another length than END."""
    return generator.randbytes(generator.choice((1, 100, 4096, 5000, LONGEST, generator.randint(4, LONGEST))))


def send_all(s, peer, until, generator, sent):
    """Sends until the time is over, as fast as the buffers allow; notes each datagram, and the end."""
    try:
        while time.monotonic() < until:
            data = new_datagram(generator)
            sent.put(data)
            s.sendto(data, peer)
    except OSError as error:
        failures.append(f"a datagram of {len(data)} bytes was not sent: {error!r}")
    sent.put(None)


def ask_pair(s, peer, until, generator, counts):
    """RDS keeps the order of datagrams between two sockets."""
    sent = queue.SimpleQueue()
    sender = threading.Thread(target=send_all, args=(s, peer, until, generator, sent))
    sender.start()
    while (data := sent.get()) is not None:
        wanted = data[::-1]
        found = s.recvfrom(LONGEST)[0]
        if found != wanted:
            at = next((i for i, (a, b) in enumerate(zip(found, wanted)) if a != b), min(len(found), len(wanted)))
            raise AssertionError(f"{len(found)} bytes came back of {len(wanted)}; byte {at} is the first that differs")
        counts.append(len(found))
    sender.join()
    s.sendto(END, peer)


def ask(address, peer, seconds, seed):
    until = time.monotonic() + float(seconds)
    counts = []

    def work(i):
        try:
            s = open_socket(address, PORT + 100 + i)
            limit_waits(s)
            ask_pair(s, (peer, PORT + i), until, random.Random(int(seed) + i), counts)
        except BaseException as error:  # pylint: disable=broad-exception-caught
            failures.append(f"pair {i}: {error!r}")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(PAIRS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(*failures, sep="\n", file=sys.stderr)
    print(len(counts), sum(counts))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit({"serve": serve, "ask": ask}[sys.argv[1]](*sys.argv[2:]))
