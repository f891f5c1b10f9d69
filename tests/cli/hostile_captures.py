# SPDX-License-Identifier: BSD-2-Clause
"""Makes damaged captures and traces from whole ones: the same ones for the same seed.

Bytes, fields of blocks, whole blocks, lines and values of JSON change, so that some damage gets past the first check.
"""
import json
import struct

HEAD = 8    # a block's type and length


def blocks_of(content):
    """The blocks of a whole pcapng file of this machine's byte order."""
    at = 0
    while at < len(content):
        length = struct.unpack_from("<I", content, at + 4)[0]
        yield content[at:at + length]
        at += length


def _number(random, size):
    return random.choice([0, 1, 3, 8, 11, 12, 13, 16, 20, 0x7fff, 0xffff, 1 << 24, 1 << 31, (1 << 32) - 4, (1 << 32) - 1,
                          random.getrandbits(32)]) & ((1 << 8 * size) - 1)


def _flip(random, block):
    at = random.randrange(len(block))
    return block[:at] + bytes([block[at] ^ 1 << random.randrange(8)]) + block[at + 1:]


def _set_word(random, block):
    size = random.choice((1, 2, 4))
    if len(block) < size:
        return block
    at = random.randrange(0, len(block) - size + 1, size)
    return block[:at] + _number(random, size).to_bytes(size, "little") + block[at + size:]


def _cut(random, block):
    return block[:random.randrange(len(block))]


def _resize(random, block):
    """Another length, which the block's two fields agree on."""
    body = block[HEAD:-4]
    body = body[:random.randrange(len(body) + 1)] if random.random() < 0.5 else body + random.randbytes(4 * random.randrange(64))
    body = body[:len(body) // 4 * 4]
    length = struct.pack("<I", HEAD + len(body) + 4)
    return block[:4] + length + body + length


def _swap(random, block):
    """Says that it has the other byte order."""
    return block[::-1] if random.random() < 0.1 else block[:4] + block[4:8][::-1] + block[8:]


def capture(random, content):
    """A capture with one to four damages."""
    blocks = list(blocks_of(content))
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(blocks))
        what = random.randrange(9)
        if what == 0:
            del blocks[at]
        elif what == 1:
            blocks.insert(random.randrange(len(blocks)), blocks[at])
        elif what == 2:
            blocks = blocks[:at] + [random.randbytes(random.randrange(200))] + blocks[at:]
        elif blocks[at]:
            damage = random.choice((_flip, _set_word, _set_word, _cut, _resize, _resize, _swap))
            blocks[at] = damage(random, blocks[at])
        if not blocks:
            return b""
    return b"".join(blocks)


VALUES = [None, True, -1, 0, 1, 1 << 24, 1 << 40, 1 << 63, 1 << 100, 1.5, 1e300, "", "x", "\ud800", "</script>", [], [1], {}, {"a": {}},
          "0x1", "NAK", "lost"]
KINDS = ["post", "post_recv", "posted", "doorbell", "wqe", "receive", "sent", "received", "seen", "cqe", "poll", "lost", "fault",
         "state", "command", "eqe", "interrupt", "other", "__init__"]
KEYS = ["qpn", "dqpn", "srqn", "psn", "wqe", "first_psn", "request_psn", "src", "dst", "opcode", "lost", "why", "repeated", "what",
        "of", "rule", "inbound", "fields", "host", "t", "e", "sent_by", "message", "duplicate", "frame", "text", "len", "cqn",
        "of_send", "syndrome", "status", "wr_id", "hcasim"]
LINES = ["[" * 100000, "{\"t\":1,\"e\":\"sent\",\"fields\":" + "{\"a\":" * 500 + "1" + "}" * 501, "nothing", "{}", "[]", "1" * 5000,
         "{\"t\":NaN,\"e\":\"sent\"}", "{\"t\":1,\"e\":\"sent\",\"x\":Infinity}", "{\"t\":1,\"e\":\"sent\",\"x\":1e999}",
         "{\"t\":" + "9" * 4000 + ",\"e\":\"sent\"}", "x" * 2000000, "\0", "{\"t\":1,\"e\":\"sent\"", "\ufeff{}"]


def trace(random, lines):
    """A trace with one to eight damages."""
    lines = list(lines)
    for _ in range(random.randint(1, 8)):
        at = random.randrange(len(lines))
        what = random.randrange(12)
        if what == 0:
            lines[at] = random.choice(LINES)
        elif what == 1:
            lines.insert(random.randrange(len(lines)), lines[at])
        elif what == 2:
            lines[at] = lines[at][:random.randrange(len(lines[at]) + 1)]
        else:
            try:
                event = json.loads(lines[at])
                event[random.choice(KEYS)] = random.choice(VALUES)
                if random.random() < 0.3:
                    event["e"] = random.choice(KINDS)
                if random.random() < 0.2:
                    del event[random.choice(list(event))]
                lines[at] = json.dumps(event)
            except (ValueError, TypeError, AttributeError, RecursionError):
                pass
    return "\n".join(lines) + random.choice(("\n", ""))
