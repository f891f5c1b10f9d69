#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""usage: smc.py serve ADDRESS | ask ADDRESS BYTES

A TCP program over SMC (shared memory communications). One end returns what the other sends; the other
compares it, and then prints the RDMA queue pairs that there are: a connection that fell back to TCP has
none.
"""
import ctypes
import os
import socket
import subprocess
import sys
import threading

AF_SMC = 43
PORT = 4010


def smc_socket():
    """Returns a socket of SMC with IPv4 addresses. Python knows no addresses of AF_SMC itself."""
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0,
                         fileno=ctypes.CDLL(None).socket(AF_SMC, socket.SOCK_STREAM, 0))


def serve(address):
    listener = smc_socket()
    listener.bind((address, PORT))
    listener.listen()
    with open("/tmp/smc", "w", encoding="ascii"):
        pass
    peer, _ = listener.accept()
    while data := peer.recv(1 << 16):
        peer.sendall(data)


def ask(address, count):
    peer = smc_socket()
    peer.connect((address, PORT))
    sent, got = os.urandom(count), bytearray()
    sender = threading.Thread(target=peer.sendall, args=(sent,))
    sender.start()
    while len(got) < count:
        got += peer.recv(1 << 16)
    sender.join()
    assert got == sent, "the bytes differ"
    print(subprocess.run(["rdma", "resource", "show", "qp"], capture_output=True, text=True, check=True).stdout)


if sys.argv[1] == "serve":
    serve(sys.argv[2])
else:
    ask(sys.argv[2], int(sys.argv[3]))
