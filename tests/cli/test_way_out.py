# SPDX-License-Identifier: BSD-2-Clause
"""usage: test_way_out.py HCASIM

Tests `slirp:` as a wire of programs and as a port of `hcasim switch`: two hosts behind the switch get addresses and
reach a server of this machine. The hosts are sockets of this test, which speak the switch's stream. Exit status 77:
libslirp is not installed.
"""
import ctypes
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

HCASIM = sys.argv[1]
PATIENCE = 60
GATEWAY = socket.inet_aton("10.0.2.2")


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


class Host:
    """A host at a port of the switch."""

    def __init__(self, path, number):
        self.mac, self.ip = bytes([2, 0, 0, 0, 0, number]), socket.inet_aton(f"10.0.2.{number}")
        self.link = socket.socket(socket.AF_UNIX)
        self.link.settimeout(PATIENCE)
        self.link.connect(path)

    def send(self, frame):
        self.link.sendall(struct.pack(">I", len(frame)) + frame)

    def take(self, size):
        data = b""
        while len(data) < size:
            data += self.link.recv(size - len(data))
        return data

    def receive(self, wanted):
        """Returns the first frame for which wanted() holds."""
        while True:
            frame = self.take(struct.unpack(">I", self.take(4))[0])
            if wanted(frame):
                return frame

    def gateway(self):
        """Asks by ARP for the gateway's MAC address."""
        self.send(b"\xff" * 6 + self.mac + bytes.fromhex("08060001080006040001") + self.mac + self.ip + bytes(6) + GATEWAY)
        return self.receive(lambda frame: frame[12:14] == b"\x08\x06" and frame[28:32] == GATEWAY and frame[:6] == self.mac)[22:28]

    def send_udp(self, gateway, port, data):
        udp = struct.pack(">HHHH", 1000, port, 8 + len(data), 0) + data
        head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, self.ip, GATEWAY)
        head = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
        self.send(gateway + self.mac + b"\x08\x00" + head + udp)

    def receive_udp(self):
        return self.receive(lambda frame: frame[12:14] == b"\x08\x00" and frame[23] == 17 and frame[30:34] == self.ip)[42:]


class WayOut(unittest.TestCase):
    def test_a_program_has_an_address_there(self):
        done = subprocess.run([HCASIM, "run", "--wire", "slirp:", "--host", "15", "--ip", "10.0.2.15", "--", "sh", "-c",
                               "cat /sys/class/infiniband/mlx5_0/ports/1/state /sys/class/infiniband/mlx5_0/ports/1/gids/1"],
                              capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("0a00:020f", done.stdout)

    def test_hosts_behind_a_switch_share_the_way_out(self):
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        server.bind(("127.0.0.1", 0))
        server.settimeout(PATIENCE)
        with tempfile.TemporaryDirectory() as folder, \
                subprocess.Popen([HCASIM, "switch", "--listen", f"{folder}/sw", "--port", "slirp:"],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as switch:
            try:
                until = time.monotonic() + PATIENCE
                while not pathlib.Path(folder, "sw").exists():
                    self.assertIsNone(switch.poll(), switch.stdout.read() if switch.poll() is not None else "")
                    self.assertLess(time.monotonic(), until)
                    time.sleep(0.05)
                for number in 15, 16:
                    host = Host(f"{folder}/sw", number)
                    question, answer = b"question %d" % number, b"answer %d" % number
                    host.send_udp(host.gateway(), server.getsockname()[1], question)
                    said, where = server.recvfrom(100)
                    self.assertEqual(said, question)
                    server.sendto(answer, where)
                    self.assertEqual(host.receive_udp(), answer)
                    host.link.close()
            finally:
                switch.kill()
                switch.wait()
                server.close()


if __name__ == "__main__":
    try:
        ctypes.CDLL("libslirp.so.0")
    except OSError:
        print("libslirp is not installed")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
