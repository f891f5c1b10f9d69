# SPDX-License-Identifier: BSD-2-Clause
"""Makes frames for tests/vm/dpdk, and calculates what a program must make of them. It shares no code
with the device: its checksums and hashes are those of RFC 1071 and of Microsoft's description of
Toeplitz.
"""
import dataclasses
import ipaddress
import random
import struct

UDP, TCP = 17, 6
ACK, PSH = 0x10, 0x08
IPV4, IPV6, VLAN, OTHER = 0x0800, 0x86DD, 0x8100, 0x88B5


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def checksum(data):
    """The sum of the Internet protocols."""
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def pseudo(source, target, protocol, length):
    return source.packed + target.packed + struct.pack("!IHBB", length, 0, 0, protocol)


def transport(protocol, source, target, ports, payload, wrong, seq, flags):
    """A UDP datagram or TCP segment, with its checksum. wrong: is added to the checksum."""
    if protocol == UDP:
        head, at = struct.pack("!HHHH", *ports, 8 + len(payload), 0), 6
    else:
        head, at = struct.pack("!HHIIBBHHH", *ports, seq, 2000, 0x50, flags, 512, 0, 0), 16
    total = checksum(pseudo(source, target, protocol, len(head) + len(payload)) + head + payload)
    if protocol == UDP:
        total = total or 0xFFFF  # 0 says that there is no checksum
    if wrong:
        total = (total + wrong - 1) % 0xFFFF + 1
    return head[:at] + struct.pack("!H", total) + head[at + 2:] + payload


def ip_packet(source, target, protocol, ports, payload, wrong_ip=0, wrong_l4=0, ip_id=7, fragment=0x4000, seq=1000,
              flags=ACK):
    """Returns the EtherType and the packet. ip_id, fragment: those of IPv4; seq, flags: those of TCP."""
    source, target = ipaddress.ip_address(source), ipaddress.ip_address(target)
    inside = transport(protocol, source, target, ports, payload, wrong_l4, seq, flags)
    if source.version == 6:
        return IPV6, struct.pack("!IHBB", 6 << 28, len(inside), protocol, 64) + source.packed + target.packed + inside
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(inside), ip_id, fragment, 64, protocol, 0) + source.packed + target.packed
    total = (checksum(head) + wrong_ip) & 0xFFFF
    return IPV4, head[:10] + struct.pack("!H", total) + head[12:] + inside


def frame(target, source, ethertype, inside, tag=None):
    """An Ethernet frame of at least 60 bytes."""
    head = target + source + (struct.pack("!HH", VLAN, tag) if tag is not None else b"")
    return (head + struct.pack("!H", ethertype) + inside).ljust(60, b"\0")


@dataclasses.dataclass
class Sample:
    """A frame, what it would be with right checksums, and which of its sums are wrong."""
    sent: bytes
    right: bytes
    kind: int = OTHER
    bad_ip: bool = False
    bad_l4: bool = False


def source_of(number):
    """The MAC address from which the frame of this number comes."""
    return mac("02:00:00:01:00:00")[:4] + struct.pack("!H", number)


def mixed(count, target, seed, spoil=False):
    """Samples of all lengths and kinds: IPv4 and IPv6, UDP and TCP, with and without a VLAN tag, and
    a protocol that no NIC knows, each from an address of its own. spoil: some sums are wrong."""
    chance, made = random.Random(seed), []
    for number in range(count):
        size = chance.choice((0, 1, 14, 22, 60, 200, 700, 1400, chance.randrange(1420)))
        payload = struct.pack("!I", number) + chance.randbytes(size)
        tag = chance.choice((None, None, None, 0x2005))
        kind = chance.choice((IPV4, IPV4, IPV6, OTHER))
        if kind == OTHER:
            plain = frame(target, source_of(number), OTHER, payload, tag)
            made.append(Sample(plain, plain))
            continue
        ends = (f"192.0.2.{chance.randrange(1, 250)}", "198.51.100.7") if kind == IPV4 else ("2001:db8::7", "2001:db8::99")
        words = (*ends, chance.choice((UDP, TCP)), (chance.randrange(1024, 65536), chance.randrange(1024, 4000)), payload)
        bad_ip, bad_l4 = spoil and kind == IPV4 and chance.random() < 0.2, spoil and chance.random() < 0.2
        sent = ip_packet(*words, wrong_ip=0x1111 if bad_ip else 0, wrong_l4=0x2222 if bad_l4 else 0)
        made.append(Sample(frame(target, source_of(number), *sent, tag),
                           frame(target, source_of(number), *ip_packet(*words), tag), kind, bad_ip, bad_l4))
    return made


def toeplitz(key, data):
    """The hash of receive-side scaling, of at most len(key) - 4 bytes."""
    bits, key, result = 8 * len(key), int.from_bytes(key, "big"), 0
    for i in range(8 * len(data)):
        if data[i // 8] >> (7 - i % 8) & 1:
            result ^= key >> (bits - 32 - i) & 0xFFFFFFFF
    return result
