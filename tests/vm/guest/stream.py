# SPDX-License-Identifier: BSD-2-Clause
"""Sends bytes both ways over one TCP connection and compares every byte that comes.

usage: stream.py serve PORT | stream.py connect ADDRESS PORT END

Either side sends until the file END exists on the connecting side; then both sides end what they
send, and read what is still under way. Prints the number of bytes that came. Exit status 0: every
byte was right, and the connection ended in order.
"""
import os
import random
import socket
import sys
import threading

PERIOD = 65521  # a prime: no piece of memory, frame or page has this size
PATTERN = random.Random(1).randbytes(PERIOD) * 3
PIECE = 65536


def send(sock, through):
    """Sends the pattern until through() says so."""
    at = 0
    while not through():
        sock.sendall(PATTERN[at:at + PIECE])
        at = (at + PIECE) % PERIOD
    sock.shutdown(socket.SHUT_WR)


def receive(sock, ended):
    """Returns the number of bytes up to the end, all of which were right. ended: is set at the end."""
    count = 0
    while piece := sock.recv(PIECE):
        at = count % PERIOD
        if piece != PATTERN[at:at + len(piece)]:
            first = next(i for i, byte in enumerate(piece) if byte != PATTERN[at + i])
            sys.exit(f"byte {count + first} differs")
        count += len(piece)
    ended.set()
    return count


def main():
    ended = threading.Event()
    if sys.argv[1] == "serve":
        with socket.create_server(("", int(sys.argv[2]))) as server:
            sock, _ = server.accept()
        through = ended.is_set
    else:
        sock = socket.create_connection((sys.argv[2], int(sys.argv[3])), timeout=30)
        through = lambda: os.path.exists(sys.argv[4])  # noqa: E731
    sock.settimeout(60)
    sender = threading.Thread(target=send, args=(sock, through), daemon=True)
    sender.start()
    print(receive(sock, ended), "bytes came")
    sender.join(60)
    if sender.is_alive():
        sys.exit("the sender does not end")


if __name__ == "__main__":
    main()
