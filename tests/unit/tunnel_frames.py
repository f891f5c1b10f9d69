#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes tunnel_frames.def and tunnel_segments.def with scapy (python3-scapy 2.5).

scapy is an opinion of its own about headers, lengths and checksums. The tests do not need it: they
read the two files, which are kept in the tree. Run this in tests/unit to make them again.
"""
from scapy.all import GRE, IP, TCP, UDP, Dot1AD, Dot1Q, Ether, IPv6, IPv6ExtHdrDestOpt, raw
from scapy.contrib.geneve import GENEVE
from scapy.contrib.mpls import MPLS
from scapy.layers.vxlan import VXLAN

PARTS = """E = Ether(dst='02:00:00:00:00:01', src='02:00:00:00:00:02')
I = Ether(dst='02:00:00:00:00:11', src='02:00:00:00:00:12')
ip4 = IP(src='192.0.2.1', dst='198.51.100.7', ttl=63)
ip6 = IPv6(src='2001:db8::1', dst='2001:db8::ff02')
in4 = IP(src='10.1.0.1', dst='10.1.0.2', id=7)
in6 = IPv6(src='fd00::1', dst='fd00::2')
tcp = TCP(sport=443, dport=50000, flags='A', seq=1, ack=2)/b'hello'
udp = UDP(sport=1000, dport=2000)/b'datagram'"""

FRAMES = [
    ("vxlan", "E/ip4/UDP(sport=50123,dport=4789)/VXLAN(vni=0xabcdef,flags=8)/I/in4/tcp"),
    ("vxlan_v6",
     "E/ip6/UDP(sport=50123,dport=4789)/VXLAN(vni=5,flags=8)/I/Dot1Q(vlan=9)/in6/udp"),
    ("gpe",
     "E/ip4/UDP(sport=50123,dport=4790)/VXLAN(vni=0x123456,flags=0x0c,NextProtocol=1)/in4/udp"),
    ("geneve", "E/ip4/UDP(sport=50123,dport=6081)/GENEVE(vni=0x102030,oam=1,critical=1,"
               "options=b'\\x01\\x02\\x03\\x01wxyz')/I/in6/tcp"),
    ("geneve_ip", "E/ip6/UDP(sport=50123,dport=6081)/GENEVE(vni=7,proto=0x800)/in4/tcp"),
    ("gre", "E/ip4/GRE(proto=0x800)/in4/udp"),
    ("gre_all", "E/ip4/GRE(chksum_present=1,key_present=1,seqnum_present=1,key=0x11223344,"
                "seqence_number=0x55667788,proto=0x86dd)/in6/tcp"),
    ("nvgre", "E/Dot1Q(vlan=3)/ip4/GRE(key_present=1,key=0xabcdef07,proto=0x6558)/I/in4/tcp"),
    ("gretap", "E/ip6/GRE(seqnum_present=1,seqence_number=9,proto=0x6558)/I/in6/udp"),
    ("ip4in4", "E/ip4/in4/tcp"),
    ("ip6in4", "E/ip4/in6/tcp"),
    ("ip4in6", "E/ip6/in4/udp"),
    ("ip6in6", "E/ip6/in6/udp"),
    ("mpls", "E/MPLS(label=0xabcde,cos=5,s=0,ttl=9)/MPLS(label=3,s=1,ttl=8)/in4/tcp"),
    ("mpls_udp", "E/ip4/UDP(sport=50123,dport=6635)/MPLS(label=0x12345,s=1,ttl=64)/in6/udp"),
    ("mpls_gre",
     "E/ip4/GRE(key_present=1,key=5,proto=0x8847)/MPLS(label=0x54321,s=1,ttl=64)/in4/udp"),
]

# A message: name; checksums to fill in (wqe_eth_seg.cs_flags); its layers, with n for the number of
# the segment. Without 0x80, outer UDP checksums are not filled in: here they are 0.
PAYLOAD = b"abcdefghijklmnopqrst"
MSS = 8
MESSAGES = [
    ("vxlan", 0x70, "E/o4/UDP(sport=50123,dport=4789,chksum=0)/VXLAN(vni=1,flags=8)/I/i4/t"),
    ("vxlan_filled", 0xf0, "E/o4/UDP(sport=50123,dport=4789)/VXLAN(vni=1,flags=8)/I/i4/t"),
    ("vxlan_v6", 0xf0,
     "E/ip6/UDP(sport=50123,dport=4789)/VXLAN(vni=5,flags=8)/I/Dot1Q(vlan=9)/in6/t"),
    ("vxlan_vlan", 0x70, "E/Dot1AD(vlan=5,type=0x8100)/Dot1Q(vlan=7)/o4/"
                         "UDP(sport=50123,dport=4789,chksum=0)/VXLAN(vni=1,flags=8)/I/i4/t"),
    ("geneve", 0x70, "E/o4/UDP(sport=50123,dport=6081,chksum=0)/GENEVE(vni=3,"
                     "options=b'\\x01\\x02\\x03\\x01wxyz')/I/in6/t"),
    ("gpe_datagrams", 0x70, "E/o4/UDP(sport=50123,dport=4790,chksum=0)/"
                            "VXLAN(vni=1,flags=0x0c,NextProtocol=1)/i4/u"),
    ("gre", 0x70, "E/o4/GRE(proto=0x800)/i4/t"),
    ("gretap", 0x70, "E/ip6/GRE(key_present=1,key=7,proto=0x6558)/I/in6/t"),
    ("ip4in4", 0x70, "E/o4/i4/t"),
    ("ip6in4", 0x70, "E/o4/in6/t"),
    ("ip4in6", 0x70, "E/ip6/i4/u"),
    ("ip6in6", 0x70, "E/ip6/in6/t"),
    ("extensions", 0xc0, "E/IPv6(src='fd00::1',dst='fd00::2')/IPv6ExtHdrDestOpt()/t"),
    ("extensions_inside", 0x70,
     "E/o4/GRE(proto=0x86dd)/IPv6(src='fd00::1',dst='fd00::2')/IPv6ExtHdrDestOpt()/u"),
    ("unknown_port", 0x70,
     "E/o4/UDP(sport=50123,dport=7000,chksum=0)/GENEVE(vni=3)/I/i4/t"),
]
MESSAGE_PARTS = """o4 = IP(src='192.0.2.1', dst='198.51.100.7', ttl=63, id=0xffff + n)
i4 = IP(src='10.1.0.1', dst='10.1.0.2', id=7 + n)
t = TCP(sport=443, dport=50000, seq=0xfffffff8 + 8 * n, ack=2, flags=...)/payload
u = UDP(sport=1000, dport=2000)/payload"""


def parts(n, flags, payload):
    """The names that the expressions use."""
    names = {"IP": IP, "IPv6": IPv6, "UDP": UDP, "TCP": TCP, "Ether": Ether, "GRE": GRE,
             "MPLS": MPLS, "GENEVE": GENEVE, "VXLAN": VXLAN, "Dot1Q": Dot1Q, "Dot1AD": Dot1AD,
             "IPv6ExtHdrDestOpt": IPv6ExtHdrDestOpt}
    exec(PARTS, names)  # the constants above, nothing foreign
    names["o4"] = IP(src="192.0.2.1", dst="198.51.100.7", ttl=63, id=(0xffff + n) & 0xffff)
    names["i4"] = IP(src="10.1.0.1", dst="10.1.0.2", id=7 + n)
    names["t"] = TCP(sport=443, dport=50000, seq=(0xfffffff8 + 8 * n) & 0xffffffff, ack=2,
                     flags=flags)/payload
    names["u"] = UDP(sport=1000, dport=2000)/payload
    return names


def quoted(hexes):
    """Hex digits as lines of C strings."""
    return [f'      "{hexes[i:i + 88]}"' for i in range(0, len(hexes), 88)]


def head(what, *more):
    """The first lines of a file, with the names in comments."""
    lines = ["/* SPDX-License-Identifier: BSD-2-Clause */", "/*",
             f" * {what}"] + [f" * {line}" for line in more]
    return lines


def expression(text):
    """An expression as C strings of bearable length."""
    text = text.replace("\\", "\\\\").replace('"', "'")
    pieces = [text[i:i + 86] for i in range(0, len(text), 86)]
    return [f'      "{piece}"' for piece in pieces]


def frames():
    """tunnel_frames.def"""
    lines = head("Frames with tunnels, made by scapy (tunnel_frames.py), with right checksums.",
                 "Each row: name; the expression; the bytes. In the expressions:", "")
    lines += [f" *     {part}" for part in PARTS.split("\n")] + [" */", "/* clang-format off */"]
    for name, text in FRAMES:
        lines += [f"FRAME({name},"] + expression(text)
        lines[-1] += ","
        lines += quoted(raw(eval(text, parts(0, "A", b""))).hex())
        lines[-1] += ")"
    return lines + ["/* clang-format on */"]


def segments():
    """tunnel_segments.def"""
    lines = head("Messages and their segments, made by scapy (tunnel_frames.py). Each row: name;",
                 "cs_flags; the expression; the headers of the message; its segments, of 8 bytes",
                 "of payload each, of the 20 bytes a to t. Without 0x80 in cs_flags, the outer UDP",
                 "checksum is 0. In the expressions, n is the number of the segment:", "")
    lines += [f" *     {part}" for part in (PARTS + "\n" + MESSAGE_PARTS).split("\n")]
    lines += [" */", "/* clang-format off */"]
    for name, cs_flags, text in MESSAGES:
        whole = raw(eval(text, parts(0, "FPAEC", PAYLOAD)))
        lines += [f"MESSAGE({name}, 0x{cs_flags:x},"] + expression(text)
        lines[-1] += ","
        lines += quoted(whole[:-len(PAYLOAD)].hex())
        for n in range(3):
            flags = "A" + "E" + ("C" if n == 0 else "") + ("FP" if n == 2 else "")
            segment = raw(eval(text, parts(n, flags, PAYLOAD[n * MSS:][:MSS])))
            lines[-1] += ","
            lines += quoted(segment.hex())
        lines[-1] += ")"
    return lines + ["/* clang-format on */"]


if __name__ == "__main__":
    for path, made in ("tunnel_frames.def", frames()), ("tunnel_segments.def", segments()):
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(made) + "\n")
