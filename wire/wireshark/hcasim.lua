-- SPDX-License-Identifier: BSD-2-Clause
--
-- Wireshark's dissector for what Wireshark itself does not know of hcasim's packets: dynamic
-- connections (DC), extended atomics, the headers of tag matching, and the comments of a capture as
-- fields. It is for Wireshark 3.6 and later.
--
--     wireshark -X lua_script:hcasim.lua -r FILE
--
-- The layouts are those of wire/packet/opcode.c and wire/packet/transport.c. All fields begin with
-- "hcasim." Wireshark's own dissector gets every packet that it knows.

local hcasim = Proto("hcasim", "hcasim")

set_plugin_info({version = "1.0", author = "hcasim", description = "packets and comments of hcasim"})

local ROCE_PORT = 4791
local ICRC_BYTES = 4
local BTH_BYTES = 12
local ROCE_V1_TYPE = 0x8915 -- Ethernet type: a GRH follows
local GRH_BYTES = 40

-- Fields ------------------------------------------------------------------------------------------

local f = {
    -- of packets that Wireshark does not know
    opcode = ProtoField.uint8("hcasim.opcode", "Opcode", base.HEX),
    name = ProtoField.string("hcasim.name", "Operation"),
    solicited = ProtoField.bool("hcasim.solicited", "Solicited event", 8, nil, 0x80),
    migreq = ProtoField.bool("hcasim.migreq", "MigReq", 8, nil, 0x40),
    pad = ProtoField.uint8("hcasim.pad", "Pad count", base.DEC, nil, 0x30),
    tver = ProtoField.uint8("hcasim.tver", "Transport version", base.DEC, nil, 0x0f),
    pkey = ProtoField.uint16("hcasim.pkey", "P_Key", base.HEX),
    fecn = ProtoField.bool("hcasim.fecn", "FECN", 8, nil, 0x80),
    becn = ProtoField.bool("hcasim.becn", "BECN", 8, nil, 0x40),
    dest_qp = ProtoField.uint24("hcasim.dest_qp", "Destination", base.HEX),
    ackreq = ProtoField.bool("hcasim.ackreq", "Acknowledge request", 8, nil, 0x80),
    psn = ProtoField.uint24("hcasim.psn", "PSN", base.DEC),
    srqn = ProtoField.uint24("hcasim.srqn", "SRQN (XRCETH)", base.HEX),
    dc_version = ProtoField.uint8("hcasim.dc.version", "DC version", base.DEC),
    dc_session = ProtoField.uint24("hcasim.dc.session", "Session", base.HEX),
    dc_number = ProtoField.uint24("hcasim.dc.number", "Sender: DCI or DCT", base.HEX),
    dc_reconnect = ProtoField.bool("hcasim.dc.reconnect", "Connects again", 8, nil, 0x80),
    dc_rsl = ProtoField.uint8("hcasim.dc.rsl", "Service level of the responses", base.DEC, nil, 0x0f),
    dc_next_psn = ProtoField.uint24("hcasim.dc.next_psn", "PSN of the next request", base.DEC),
    dc_key = ProtoField.uint64("hcasim.dc.key", "Access key", base.HEX),
    va = ProtoField.uint64("hcasim.va", "Virtual address", base.HEX),
    rkey = ProtoField.uint32("hcasim.rkey", "Remote key", base.HEX),
    len = ProtoField.uint32("hcasim.len", "Length", base.DEC),
    swap_add = ProtoField.uint64("hcasim.swap_add", "Swap or add", base.HEX),
    compare = ProtoField.uint64("hcasim.compare", "Compare", base.HEX),
    value = ProtoField.uint64("hcasim.value", "Previous value", base.HEX),
    syndrome = ProtoField.uint8("hcasim.syndrome", "Syndrome", base.HEX),
    answer = ProtoField.string("hcasim.answer", "Answer"),
    msn = ProtoField.uint24("hcasim.msn", "MSN", base.DEC),
    imm = ProtoField.uint32("hcasim.imm", "Immediate data", base.HEX),
    inval_rkey = ProtoField.uint32("hcasim.inval_rkey", "Remote key that is invalidated", base.HEX),
    payload = ProtoField.bytes("hcasim.payload", "Payload"),
    icrc = ProtoField.uint32("hcasim.icrc", "ICRC", base.HEX),
    -- of extended atomics: the operands, each as long as the number
    ext_swap = ProtoField.bytes("hcasim.extended.swap", "Swap"),
    ext_compare = ProtoField.bytes("hcasim.extended.compare", "Compare"),
    ext_swap_mask = ProtoField.bytes("hcasim.extended.swap_mask", "Swap mask"),
    ext_compare_mask = ProtoField.bytes("hcasim.extended.compare_mask", "Compare mask"),
    ext_add = ProtoField.bytes("hcasim.extended.add", "Add"),
    ext_boundary = ProtoField.bytes("hcasim.extended.boundary", "Boundary"),
    ext_previous = ProtoField.bytes("hcasim.extended.previous", "Previous value"),
    -- of tag matching
    tm_op = ProtoField.uint8("hcasim.tm.op", "Tag matching", base.DEC,
                             {[0] = "NO_TAG", [1] = "RNDV", [2] = "FIN", [3] = "EAGER"}),
    tm_app_ctx = ProtoField.uint32("hcasim.tm.app_ctx", "Value of the application", base.HEX),
    tm_tag = ProtoField.uint64("hcasim.tm.tag", "Tag", base.HEX),
    tm_va = ProtoField.uint64("hcasim.tm.va", "Address of the data", base.HEX),
    tm_rkey = ProtoField.uint32("hcasim.tm.rkey", "Remote key of the data", base.HEX),
    tm_len = ProtoField.uint32("hcasim.tm.len", "Length of the data", base.DEC),
    tm_dct = ProtoField.uint24("hcasim.tm.dct", "DCT that READ and FIN go to", base.HEX),
    tm_key = ProtoField.uint64("hcasim.tm.dc_access_key", "Access key of that DCT", base.HEX),
    -- of comments
    qp = ProtoField.uint32("hcasim.qp", "QP that sends", base.HEX),
    wqe = ProtoField.uint32("hcasim.wqe", "WQE", base.DEC),
    message = ProtoField.uint32("hcasim.message", "First PSN of the message", base.DEC),
    request = ProtoField.uint32("hcasim.request", "PSN of the request", base.DEC),
    ["function"] = ProtoField.uint32("hcasim.function", "Function of the card", base.DEC),
    retry = ProtoField.uint32("hcasim.retry", "Retries in a row", base.DEC),
    process = ProtoField.string("hcasim.process", "Process"),
    why = ProtoField.string("hcasim.why", "Why it is sent"),
    repeated = ProtoField.bool("hcasim.repeated", "Sent again"),
    fate = ProtoField.string("hcasim.fate", "Fate"),
    fate_text = ProtoField.string("hcasim.fate_text", "Fate in words"),
}

local all = {}
for _, field in pairs(f) do
    all[#all + 1] = field
end
hcasim.fields = all

local truncated = ProtoExpert.new("hcasim.truncated", "The packet ends within its headers",
                                  expert.group.MALFORMED, expert.severity.ERROR)
local bad_length = ProtoExpert.new("hcasim.bad_length", "The length does not fit the opcode",
                                   expert.group.MALFORMED, expert.severity.ERROR)
local unknown = ProtoExpert.new("hcasim.unknown", "The opcode does not exist",
                                expert.group.MALFORMED, expert.severity.ERROR)
hcasim.experts = {truncated, bad_length, unknown}

hcasim.prefs.tm_qps = Pref.string("Tag matching", "",
    "The QPs and DCTs to which messages with tags go, such as 0x12,0x13, or all. Nothing in a "
    .. "packet says that it has the headers of tag matching.")

-- Opcodes -----------------------------------------------------------------------------------------

-- What follows the BTH and the header of the transport, in this order.
local OPERATIONS = {
    [0x00] = {"SEND_FIRST", "payload", tags = true}, [0x01] = {"SEND_MIDDLE", "payload"},
    [0x02] = {"SEND_LAST", "payload"}, [0x03] = {"SEND_LAST_IMM", "imm", "payload"},
    [0x04] = {"SEND_ONLY", "payload", tags = true},
    [0x05] = {"SEND_ONLY_IMM", "imm", "payload", tags = true},
    [0x06] = {"WRITE_FIRST", "reth", "payload"}, [0x07] = {"WRITE_MIDDLE", "payload"},
    [0x08] = {"WRITE_LAST", "payload"}, [0x09] = {"WRITE_LAST_IMM", "imm", "payload"},
    [0x0a] = {"WRITE_ONLY", "reth", "payload"}, [0x0b] = {"WRITE_ONLY_IMM", "reth", "imm", "payload"},
    [0x0c] = {"READ_REQUEST", "reth"}, [0x0d] = {"READ_RESP_FIRST", "aeth", "payload", answers = true},
    [0x0e] = {"READ_RESP_MIDDLE", "payload", answers = true}, [0x0f] = {"READ_RESP_LAST", "aeth", "payload", answers = true},
    [0x10] = {"READ_RESP_ONLY", "aeth", "payload", answers = true}, [0x11] = {"ACK", "aeth", answers = true},
    [0x12] = {"ATOMIC_ACK", "aeth", "atomic_ack", answers = true}, [0x13] = {"CMP_SWAP", "atomic"},
    [0x14] = {"FETCH_ADD", "atomic"}, [0x15] = {"CONNECT", "connect"},
    [0x16] = {"SEND_LAST_INV", "ieth", "payload"}, [0x17] = {"SEND_ONLY_INV", "ieth", "payload"},
}
local EXTENDED = {
    [0] = {"EXTENDED_CMP_SWAP", "reth", "extended"}, [1] = {"EXTENDED_FETCH_ADD", "reth", "extended"},
    [2] = {"EXTENDED_ACK", "aeth", "previous", answers = true},
}
local BLOCKS = {[0xc0] = "RC", [0xc8] = "XRC", [0xd0] = "DC"}

-- Returns transport and operation of an opcode whose headers Wireshark does not know, or nil.
local function find(opcode)
    local high = bit.band(opcode, 0xe0)
    if high == 0x40 then
        return "DC", OPERATIONS[opcode - 0x40]
    elseif high == 0xa0 then
        -- There is no CONNECT of XRC.
        return "XRC", opcode ~= 0xb5 and OPERATIONS[opcode - 0xa0] or nil
    end
    local block = BLOCKS[bit.band(opcode, 0xf8)]
    if block then
        return block, EXTENDED[bit.band(opcode, 7)]
    end
    return nil
end

-- Headers -----------------------------------------------------------------------------------------

local RNR_DELAY = {[0] = 65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512,
                   768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152}
local NAKS = {[0] = "NAK PSN sequence error", "NAK invalid request", "NAK remote access error",
              "NAK remote operational error", "CNAK no free responder"}

local function answer_words(syndrome)
    local class, value = bit.rshift(syndrome, 5), bit.band(syndrome, 31)
    if class == 0 then
        return "ACK"
    elseif class == 1 then
        return string.format("RNR NAK %d.%02d ms", math.floor(RNR_DELAY[value] / 100), RNR_DELAY[value] % 100)
    elseif class == 3 and NAKS[value] then
        return NAKS[value]
    end
    return string.format("reserved syndrome 0x%02x", syndrome)
end

-- A reader of the bytes from BTH to ICRC. take() returns the next bytes; beyond the end it raises
-- the object truncated, which dissect() catches.
local function reader(tvb, from, to)
    local r = {at = from, to = to, tvb = tvb}
    function r.left()
        return r.to - r.at
    end
    function r.take(n)
        if r.left() < n then
            error(truncated, 0)
        end
        r.at = r.at + n
        return r.tvb:range(r.at - n, n)
    end
    return r
end

-- Each adds its header to the tree and returns words for the Info column, or nil.
local header = {}

function header.dceth(r, tree)
    local at = r.take(8)
    local sub = tree:add(hcasim, at, "DC header (DCETH)")
    sub:add(f.dc_version, at:range(0, 1))
    sub:add(f.dc_session, at:range(1, 3))
    sub:add(f.dc_number, at:range(5, 3))
    return string.format("session 0x%x of 0x%x", at:range(1, 3):uint(), at:range(5, 3):uint())
end

function header.xrceth(r, tree)
    local at = r.take(4)
    tree:add(f.srqn, at:range(1, 3))
    return string.format("srqn 0x%x", at:range(1, 3):uint())
end

function header.reth(r, tree)
    local at = r.take(16)
    local sub = tree:add(hcasim, at, "RDMA header (RETH)")
    sub:add(f.va, at:range(0, 8))
    sub:add(f.rkey, at:range(8, 4))
    sub:add(f.len, at:range(12, 4))
    r.number_len = at:range(12, 4):uint()
    return string.format("va 0x%s rkey 0x%x len %u", at:range(0, 8):uint64():tohex():gsub("^0+(.)", "%1"),
                         at:range(8, 4):uint(), r.number_len)
end

function header.atomic(r, tree)
    local at = r.take(28)
    local sub = tree:add(hcasim, at, "Atomic header (AtomicETH)")
    sub:add(f.va, at:range(0, 8))
    sub:add(f.rkey, at:range(8, 4))
    sub:add(f.swap_add, at:range(12, 8))
    sub:add(f.compare, at:range(20, 8))
    return nil
end

function header.aeth(r, tree)
    local at = r.take(4)
    local sub = tree:add(hcasim, at, "Answer (AETH)")
    local words = answer_words(at:range(0, 1):uint())
    sub:add(f.syndrome, at:range(0, 1))
    sub:add(f.answer, at:range(0, 1), words)
    sub:add(f.msn, at:range(1, 3))
    return string.format("%s msn %u", words, at:range(1, 3):uint())
end

function header.atomic_ack(r, tree)
    tree:add(f.value, r.take(8))
    return nil
end

function header.imm(r, tree)
    local at = r.take(4)
    tree:add(f.imm, at)
    return string.format("imm 0x%x", at:uint())
end

function header.ieth(r, tree)
    local at = r.take(4)
    tree:add(f.inval_rkey, at)
    return string.format("inval_rkey 0x%x", at:uint())
end

-- The payload of a CONNECT. With the solicited bit the packet ends the session and has none.
function header.connect(r, tree, packet)
    if packet.solicited then
        return "ends the session"
    end
    local at = r.take(16)
    local sub = tree:add(hcasim, at, "DC connect (DCCETH)")
    sub:add(f.dc_reconnect, at:range(0, 1))
    sub:add(f.dc_rsl, at:range(0, 1))
    sub:add(f.dc_next_psn, at:range(5, 3))
    sub:add(f.dc_key, at:range(8, 8))
    return "begins the session"
end

local CMP_SWAP = {"ext_swap", "ext_compare", "ext_swap_mask", "ext_compare_mask"}
local FETCH_ADD = {"ext_add", "ext_boundary"}

function header.extended(r, tree, packet)
    local operands = packet.name == "EXTENDED_CMP_SWAP" and CMP_SWAP or FETCH_ADD
    local len = r.number_len
    if len == 0 or r.left() - packet.pad ~= len * #operands then
        error(bad_length, 0)
    end
    for _, name in ipairs(operands) do
        tree:add(f[name], r.take(len))
    end
    return nil
end

function header.previous(r, tree, packet)
    if r.left() <= packet.pad then
        error(truncated, 0)
    end
    tree:add(f.ext_previous, r.take(r.left() - packet.pad))
    return nil
end

-- Tag matching ------------------------------------------------------------------------------------

local tm_qps, tm_all = {}, false

function hcasim.prefs_changed()
    tm_qps, tm_all = {}, hcasim.prefs.tm_qps == "all"
    for number in string.gmatch(hcasim.prefs.tm_qps, "[%w]+") do
        local qpn = tonumber(number)
        if qpn then
            tm_qps[qpn] = true
        end
    end
end

local TM_NAMES = {[0] = "NO_TAG", "RNDV", "FIN", "EAGER"}

-- The headers at the beginning of a message. A message without a tag has the first byte alone.
-- Returns words for the Info column, or nil: there are no such headers.
local function tag_headers(tvb, tree, is_dc)
    if tvb:len() < 1 or tvb:range(0, 1):uint() > 3 then
        return nil
    end
    local op = tvb:range(0, 1):uint()
    local sub = tree:add(hcasim, tvb:range(0, math.min(16, tvb:len())), "Tag matching header (TMH)")
    sub:add(f.tm_op, tvb:range(0, 1))
    if tvb:len() < 16 then
        return TM_NAMES[op]
    end
    sub:add(f.tm_app_ctx, tvb:range(4, 4))
    sub:add(f.tm_tag, tvb:range(8, 8))
    if (op == 1 or op == 2) and tvb:len() >= 32 then
        sub = tree:add(hcasim, tvb:range(16, 16), "Rendezvous header (RVH)")
        sub:add(f.tm_va, tvb:range(16, 8))
        sub:add(f.tm_rkey, tvb:range(24, 4))
        sub:add(f.tm_len, tvb:range(28, 4))
        if op == 1 and is_dc and tvb:len() >= 48 then
            sub = tree:add(hcasim, tvb:range(32, 16), "Rendezvous address header (RAVH)")
            sub:add(f.tm_dct, tvb:range(33, 3))
            sub:add(f.tm_key, tvb:range(40, 8))
        end
    end
    return TM_NAMES[op]
end

local function has_tags(qpn)
    return tm_all or tm_qps[qpn]
end

function header.payload(r, tree, packet)
    local len = r.left() - packet.pad
    if len < 0 then
        error(truncated, 0)
    end
    if len == 0 then
        return "0 bytes"
    end
    local at = r.take(len)
    local words = string.format("%d bytes", len)
    tree:add(f.payload, at)
    if packet.tags and has_tags(packet.dest_qp) then
        local tags = tag_headers(at:tvb(), tree, packet.transport == "DC")
        words = tags and words .. " " .. tags or words
    end
    return words
end

-- Packets -----------------------------------------------------------------------------------------

local function dissect_bth(tvb, tree, transport, operation)
    local sub = tree:add(hcasim, tvb:range(0, BTH_BYTES), "Base transport header (BTH)")
    local flags = tvb:range(1, 1)
    sub:add(f.opcode, tvb:range(0, 1))
    sub:add(f.name, tvb:range(0, 1), transport .. "_" .. operation[1])
    for _, name in ipairs({"solicited", "migreq", "pad", "tver"}) do
        sub:add(f[name], flags)
    end
    sub:add(f.pkey, tvb:range(2, 2))
    sub:add(f.fecn, tvb:range(4, 1))
    sub:add(f.becn, tvb:range(4, 1))
    sub:add(f.dest_qp, tvb:range(5, 3))
    sub:add(f.ackreq, tvb:range(8, 1))
    sub:add(f.psn, tvb:range(9, 3))
    return {
        transport = transport,
        name = operation[1],
        tags = operation.tags,
        solicited = bit.band(flags:uint(), 0x80) ~= 0,
        pad = bit.rshift(bit.band(flags:uint(), 0x30), 4),
        dest_qp = tvb:range(5, 3):uint(),
    }
end

local function dissect_headers(r, tree, packet, operation, words)
    if packet.transport == "DC" then
        words[#words + 1] = header.dceth(r, tree)
    elseif packet.transport == "XRC" and not operation.answers then
        words[#words + 1] = header.xrceth(r, tree)
    end
    for i = 2, #operation do
        words[#words + 1] = header[operation[i]](r, tree, packet)
    end
    if r.left() ~= packet.pad and operation[#operation] ~= "payload" then
        error(bad_length, 0)
    end
end

-- A packet that Wireshark does not know, from BTH to ICRC.
local function dissect(tvb, pinfo, root, transport, operation)
    pinfo.cols.protocol = "hcasim"
    local tree = root:add(hcasim, tvb(), "hcasim, " .. transport)
    if not operation then
        tree:add(f.opcode, tvb:range(0, 1))
        tree:add_proto_expert_info(unknown)
        pinfo.cols.info = string.format("%s unknown opcode 0x%02x", transport, tvb:range(0, 1):uint())
        return
    end
    local packet = dissect_bth(tvb, tree, transport, operation)
    local words = {string.format("%s_%s QP=0x%06x PSN=%u", transport, operation[1], packet.dest_qp,
                                 tvb:range(9, 3):uint())}
    local r = reader(tvb, BTH_BYTES, tvb:len() - ICRC_BYTES)
    local ok, what = pcall(dissect_headers, r, tree, packet, operation, words)
    if not ok and (what == truncated or what == bad_length) then
        tree:add_proto_expert_info(what)
    elseif not ok then
        error(what, 0)
    end
    tree:add(f.icrc, tvb:range(tvb:len() - ICRC_BYTES, ICRC_BYTES))
    pinfo.cols.info = table.concat(words, " ")
end

-- Where the payload of a SEND begins that Wireshark's own dissector dissects: it may have tags.
local TAGGED = {[0x00] = BTH_BYTES, [0x04] = BTH_BYTES, [0x05] = BTH_BYTES + 4}

local function add_tags(tvb, root)
    local at, qpn = TAGGED[tvb:range(0, 1):uint()], tvb:range(5, 3):uint()
    local pad = bit.rshift(bit.band(tvb:range(1, 1):uint(), 0x30), 4)
    local len = at and tvb:len() - at - pad - ICRC_BYTES or 0
    if len > 0 and has_tags(qpn) then
        tag_headers(tvb:range(at, len):tvb(), root, false)
    end
end

local roce = DissectorTable.get("udp.port"):get_dissector(ROCE_PORT)
local roce_v1 = DissectorTable.get("ethertype"):get_dissector(ROCE_V1_TYPE)

-- A dissector that finds a packet malformed has shown that when it raises its error.
local function give_to(wiresharks, tvb, pinfo, root)
    pcall(wiresharks.call, wiresharks, tvb, pinfo, root)
    return tvb:len()
end

-- packet: BTH to ICRC, which lies in tvb. wiresharks: Wireshark's own dissector for tvb.
local function dissect_either(wiresharks, tvb, packet, pinfo, root)
    if packet:len() < BTH_BYTES + ICRC_BYTES then
        return give_to(wiresharks, tvb, pinfo, root)
    end
    local transport, operation = find(packet:range(0, 1):uint())
    if not transport then
        give_to(wiresharks, tvb, pinfo, root)
        add_tags(packet, root)
        return tvb:len()
    elseif transport == "XRC" then
        give_to(wiresharks, tvb, pinfo, root) -- which knows the BTH of some of them
    end
    dissect(packet, pinfo, root, transport, operation)
    return tvb:len()
end

local function hcasim_packets(tvb, pinfo, root)
    return dissect_either(roce, tvb, tvb, pinfo, root)
end

-- A packet of RoCE version 1 is as long as its GRH says.
local function hcasim_v1(tvb, pinfo, root)
    local len = tvb:len() >= GRH_BYTES and tvb:range(4, 2):uint() or 0
    if len == 0 or tvb:len() < GRH_BYTES + len then
        return give_to(roce_v1, tvb, pinfo, root)
    end
    return dissect_either(roce_v1, tvb, tvb:range(GRH_BYTES, len):tvb(), pinfo, root)
end

local packets = Proto("hcasim_packets", "hcasim packets")
packets.dissector = hcasim_packets
DissectorTable.get("udp.port"):add(ROCE_PORT, packets)

local packets_v1 = Proto("hcasim_packets_v1", "hcasim packets of RoCE version 1")
packets_v1.dissector = hcasim_v1
DissectorTable.get("ethertype"):add(ROCE_V1_TYPE, packets_v1)

-- Comments ----------------------------------------------------------------------------------------

-- A comment of the sender is words key=value; the last one, why, goes to the end of the comment. A
-- comment of a fault begins with its name (docs/howto/capture.md).
local comments = Field.new("frame.comment")
local NUMBERS = {qp = true, wqe = true, message = true, request = true, retry = true, ["function"] = true}
local TEXTS = {process = true}
local FATES = {lost = true, duplicate = true, corrupted = true, delayed = true, reordered = true,
               marked = true, late = true}

local function add_note(tree, text)
    local before, why = text:match("^(.-)%s*why=(.*)$")
    for key, value in (before or text):gmatch("(%w+)=(%S+)") do
        if NUMBERS[key] and tonumber(value) then
            tree:add(f[key], tonumber(value))
        elseif TEXTS[key] then
            tree:add(f[key], value)
        end
    end
    if why then
        tree:add(f.why, why)
        tree:add(f.repeated, why:find("^repeated") ~= nil)
    end
end

local function add_fate(tree, text)
    for word in text:gmatch("%a+") do
        if FATES[word] then
            tree:add(f.fate, word)
        end
    end
    tree:add(f.fate_text, text)
end

-- Runs after all other dissectors, so that it finds their fields.
function hcasim.dissector(tvb, pinfo, root)
    local tree
    for _, comment in ipairs({comments()}) do
        tree = tree or root:add(hcasim, tvb(0, 0), "hcasim, what the capture says")
        local text = tostring(comment.value)
        if text:find("^%w+=") then
            add_note(tree, text)
        elseif FATES[text:match("^%a+") or ""] then
            add_fate(tree, text)
        end
    end
end

register_postdissector(hcasim)
