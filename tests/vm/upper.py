# SPDX-License-Identifier: BSD-2-Clause
"""Tests the kernel's own users of RDMA over the device: NVMe, NFS, iSER, SRP, RDS.

A list of checks for tests/vm/run (--suite upper), with the same two guests as suite.py. These users
register memory by work requests (REG_MR, LOCAL_INV), let peers invalidate it (SEND_WITH_INV), share
receive queues, and drain their queue pairs; user programs do hardly any of that. Guest b provides
what guest a uses.

Each of them also has a load that lasts for HCASIM_IO_SECONDS (5 by default) and verifies all data:
fio on disks, guest/fsx.py on a file, guest/rds.py with datagrams.

NVMe and iSER also run with T10-PI, where the HCAs check the protection information of each block.
Linux 6.12 has no T10-PI in its SRP, NFS and RDS.
"""
import base64
import json
import os
import pathlib
import random
import re

import suite
from suite import expect

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = int(os.environ.get("HCASIM_IO_SECONDS", "5"))
SEED = int(os.environ.get("HCASIM_IO_SEED") or random.randrange(1 << 30))

CHECKS = []
check = suite.registrar(CHECKS)

check("both guests boot")(suite.boots)
check("the drivers load; a netdev with carrier and an active RDMA port appear")(suite.comes_up)

DISK_MB = 32
NQN = "nqn.2026-11.hcasim:disk"
NVME_PORT = 4420
NVME_TARGET = f"""
set -e
[ -d /sys/kernel/config/nvmet/ports/1 ] && exit  # it serves already
modprobe -a nvmet-rdma configfs
mountpoint -q /sys/kernel/config || mount -t configfs config /sys/kernel/config
truncate -s {DISK_MB}M /tmp/disk
cd /sys/kernel/config/nvmet
mkdir subsystems/{NQN}; echo 1 >subsystems/{NQN}/attr_allow_any_host
mkdir subsystems/{NQN}/namespaces/1; cd subsystems/{NQN}/namespaces/1
echo /tmp/disk >device_path; echo 1 >buffered_io; echo 1 >enable
cd /sys/kernel/config/nvmet; mkdir ports/1; cd ports/1
echo ipv4 >addr_adrfam; echo rdma >addr_trtype; echo {{ip}} >addr_traddr; echo {NVME_PORT} >addr_trsvcid
ln -s /sys/kernel/config/nvmet/subsystems/{NQN} subsystems/{NQN}
"""
NVME_DISK = "/dev/nvme0n1"
NVME_HOST = f"""
set -e
[ -b {NVME_DISK} ] && exit  # it is connected already
modprobe nvme-rdma
echo "transport=rdma,traddr={{peer}},trsvcid={NVME_PORT},nqn={NQN},nr_io_queues=2,keep_alive_tmo=2,reconnect_delay=1" >/dev/nvme-fabrics
until [ -b {NVME_DISK} ]; do sleep 0.1; done
"""
NVME_END = "echo 1 >/sys/class/nvme/nvme0/delete_controller"
# Pieces of several sizes and alignments; the data that is read is compared, and so is the file at
# the target.
DISK_IO = """
set -e
dd if=/dev/urandom of=/tmp/data bs=1M count=8 status=none
for bs in 4k 64k 1M; do
    dd if=/tmp/data of={disk} bs=$bs oflag=direct conv=fsync status=none
    dd if={disk} of=/tmp/back bs=$bs count=$((8388608 / $(numfmt --from=iec ${{bs^^}}))) iflag=direct status=none
    cmp /tmp/data /tmp/back
done
sha256sum </tmp/data
"""


# What fio writes it reads again, a few blocks later and at the end of each pass. The blocks have many
# sizes and places, and two processes work on a half of the file each.
FIO = ("fio --name=io --filename={file} --direct=1 --ioengine=libaio --iodepth=8 --rw=randwrite --bsrange={least}-128k "
       "--blockalign={least} --numjobs=2 --size={half}k --offset_increment={half}k --group_reporting --verify=crc32c "
       "--verify_backlog=8 --verify_fatal=1 --time_based --runtime={seconds} --randseed={seed} --output-format=json")


def begin_fio(vm, file, kilobytes, seconds, least=512):
    return vm.spawn(FIO.format(file=file, half=kilobytes // 2, seconds=seconds, seed=SEED, least=least))


def end_fio(job, seconds):
    """Expects that fio wrote and read something, and that all of that was right."""
    said = job.wait(seconds + 120, check=True).out
    done = json.loads(said[said.index("{"):])["jobs"][0]
    amounts = [done[way]["io_kbytes"] for way in ("read", "write")]
    expect(not done["error"] and all(amounts), f"seed {SEED}: error {done['error']}, KiB read and written: {amounts}")


def disk_at(lab, place):
    """Waits until a pattern of paths in /sys names a disk of guest a, and returns the disk."""
    lab.vms[0].until(f"ls -d {place}")
    return "/dev/" + lab.vms[0].run(f"ls -d {place}").out.split()[0].rsplit("/", maxsplit=1)[-1]


def begin_program(vm, name, arguments):
    """Starts a program of guest/ in the guest."""
    text = (HERE / "guest" / name).read_text(encoding="utf-8")
    vm.run(f"cat >/tmp/{name} <<'END_OF_PROGRAM'\n{text}END_OF_PROGRAM")
    return vm.spawn(f"exec python3 /tmp/{name} {arguments}")


# fio puts a checksum into each block. Another fio finds by it whether it reads what was written.
LAST_PASS = (f"fio --name=last --filename={{file}} --rw={{rw}} --bs=64k --size={DISK_MB}m --direct={{direct}} --verify=crc32c "
             "--verify_fatal=1 {what}")


def both(lab, target, host, values=None):
    """Sets up in guest b what guest a then uses."""
    names = [dict(entry, dev=entry["ibdev"], **values or {}) for entry in lab.hosts]
    lab.vms[1].run(target.format(**names[1], peer=names[0]["ip"]), 60)
    lab.vms[0].run(host.format(**names[0], peer=names[1]["ip"]), 60)


@check("NVMe over RDMA: a uses a disk of b; a reads what it wrote, and b's file has it")
def nvme(lab):
    both(lab, NVME_TARGET, NVME_HOST)
    written = lab.vms[0].run(DISK_IO.format(disk=NVME_DISK), 180).out.split()[0]
    found = lab.vms[1].run("head -c 8388608 /tmp/disk | sha256sum").out.split()[0]
    expect(written == found, f"{written} was written, {found} is there")


@check("NVMe over RDMA: a disconnects the disk and connects it again")
def nvme_again(lab):
    lab.vms[0].run("echo 1 >/sys/class/nvme/nvme0/delete_controller; ! [ -b /dev/nvme0n1 ]", 60)
    both(lab, ":", NVME_HOST)
    found = lab.vms[0].run("head -c 8388608 /dev/nvme0n1 | sha256sum; sha256sum </tmp/data", 60).out.split()
    expect(found[0] == found[2], str(found))
    lab.vms[0].run(NVME_END, 60)


def begin_nvme(lab, seconds):
    both(lab, NVME_TARGET, NVME_HOST)
    return begin_fio(lab.vms[0], NVME_DISK, DISK_MB << 10, seconds, 4096)  # a file's blocks have 4 KiB


@check("NVMe over RDMA: all that fio writes to a disk of b, it reads again")
def nvme_load(lab):
    end_fio(begin_nvme(lab, SECONDS), SECONDS)
    # Guest b has the disk's data in a file. What a wrote last is compared there, without the device.
    lab.vms[0].run(LAST_PASS.format(file=NVME_DISK, rw="write", direct=1, what="--do_verify=0"), 120)
    lab.vms[1].run(LAST_PASS.format(file="/tmp/disk", rw="read", direct=0, what=""), 120)
    lab.vms[0].run(NVME_END, 60)


@check("NVMe over RDMA: b's link fails for some seconds under I/O; a reconnects, and nothing is lost")
def nvme_reconnects(lab):
    both(lab, ":", NVME_HOST)
    job = lab.vms[0].spawn(DISK_IO.format(disk=NVME_DISK))
    netdev = lab.hosts[1]["netdev"]
    lab.vms[1].run(f"sleep 1; ip link set {netdev} down; sleep 8; ip link set {netdev} up")
    written = job.wait(300, check=True).out.split()[0]
    found = lab.vms[1].run("head -c 8388608 /tmp/disk | sha256sum").out.split()[0]
    expect(written == found, f"{written} was written, {found} is there")
    expect(any("reconnect" in line for _, line in lab.vms[0].dmesg()), "the connection was never lost")
    lab.vms[0].run(NVME_END, 60)


# T10-PI. A disk of guest b keeps a tuple beside each block of 512 bytes: a guard, an application tag and
# a reference tag. The HCA of the target checks the tuples of the data that it transfers, and so does
# that of the initiator (IB_MR_TYPE_INTEGRITY). The disk itself checks nothing when it is read (dif=0),
# so a wrong block gets as far as the HCA.
PI_DISK = f"""
set -e
modprobe -a sd_mod; modprobe scsi_debug dif=0 dix=1 dev_size_mb={DISK_MB}
until disk=$(ls /sys/bus/pseudo/drivers/scsi_debug/adapter0/host*/target*/*/block 2>/dev/null); do sleep 0.1; done
until [ -b /dev/$disk ]; do sleep 0.1; done
"""
PI_DISK_END = "until rmmod scsi_debug; do sleep 0.1; done"
# From then on b writes no tuples. If it writes a block, the old tuple stays.
PI_NO_TUPLES = """
set -e
disk=$(ls /sys/bus/pseudo/drivers/scsi_debug/adapter0/host*/target*/*/block)
echo 0 >/sys/block/$disk/integrity/write_generate
echo /dev/$disk
"""
PI_IO = """
set -e
head -c 2M /dev/urandom >/tmp/data
dd if=/tmp/data of={disk} bs=1M oflag=direct conv=fsync status=none
dd if=/tmp/data of={disk} bs=4k count=32 oflag=direct conv=fsync status=none
for bs in 4k 1M; do
    dd if={disk} bs=$bs count=$((2097152 / $(numfmt --from=iec ${{bs^^}}))) iflag=direct status=none | cmp - /tmp/data
done
"""
PI_NQN = "nqn.2026-11.hcasim:protected"
PI_PORT = NVME_PORT + 1
PI_NVME_TARGET = f"""
modprobe -a nvmet-rdma configfs
mountpoint -q /sys/kernel/config || mount -t configfs config /sys/kernel/config
cd /sys/kernel/config/nvmet
mkdir subsystems/{PI_NQN}; echo 1 >subsystems/{PI_NQN}/attr_allow_any_host; echo 1 >subsystems/{PI_NQN}/attr_pi_enable
mkdir subsystems/{PI_NQN}/namespaces/1; cd subsystems/{PI_NQN}/namespaces/1
echo /dev/$disk >device_path; echo 1 >enable
cd /sys/kernel/config/nvmet; mkdir ports/2; cd ports/2
echo ipv4 >addr_adrfam; echo rdma >addr_trtype; echo {{ip}} >addr_traddr; echo {PI_PORT} >addr_trsvcid
echo 1 >param_pi_enable
ln -s /sys/kernel/config/nvmet/subsystems/{PI_NQN} subsystems/{PI_NQN}
"""
PI_NVME_HOST = f"""
set -e
modprobe nvme-rdma
echo "transport=rdma,traddr={{peer}},trsvcid={PI_PORT},nqn={PI_NQN},nr_io_queues=2" >/dev/nvme-fabrics
"""
# A disk has the number of its subsystem, which may differ from the number of the controller.
PI_NVME_DISK = f"-d $(dirname $(grep -lx {PI_NQN} /sys/class/nvme-subsystem/*/subsysnqn))/nvme*n1"
PI_NVME_LEAVE = f"echo 1 >$(dirname $(grep -lx {PI_NQN} /sys/class/nvme/*/subsysnqn))/delete_controller"
PI_NVME_END = f"""
set -e
cd /sys/kernel/config/nvmet
rm ports/2/subsystems/{PI_NQN}; rmdir ports/2
echo 0 >subsystems/{PI_NQN}/namespaces/1/enable
rmdir subsystems/{PI_NQN}/namespaces/1 subsystems/{PI_NQN}
"""
# What the kernel and the device write about a wrong block.
PI_REPORTS = (r"Got SIGERR on key", r"PI error found type", r"the (guard|reference tag) of the block at byte .* does not match ")


def begin_protected_nvme(lab):
    """Connects guest a to a disk with T10-PI, and returns the disk."""
    both(lab, PI_DISK + PI_NVME_TARGET, PI_NVME_HOST)
    return disk_at(lab, PI_NVME_DISK)


def end_protected_nvme(lab):
    lab.vms[0].run(PI_NVME_LEAVE, 60)
    lab.vms[1].run(PI_NVME_END + PI_DISK_END, 60)


def signature_errors(vm):
    """Returns the messages about signature errors that the guest's HCA reported."""
    return [line for _, line in vm.dmesg() if "SIGERR" in line]


def t10_guard(block):
    """Returns the CRC of T10-DIF."""
    crc = 0
    for byte in block:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ (0x18bb7 if crc & 0x8000 else 0)) & 0xffff
    return crc


def write_block(vm, disk, number, block):
    text = base64.b64encode(block).decode()
    vm.run(f"echo {text} | base64 -d | dd of={disk} bs=512 seek={number} iflag=fullblock oflag=direct conv=notrunc status=none")


def expect_protection(lab, disk, guard):
    """Expects that all that guest a writes to a disk with T10-PI it reads again, and that both HCAs find a
    block of the disk whose tuple is another block's. guard: "CRC" or "IP", the guard in a's memory."""
    a, b = lab.vms
    integrity = f"/sys/block/{disk.removeprefix('/dev/')}/integrity"
    kind = a.run(f"cat {integrity}/format").out.strip()
    expect(kind == f"T10-DIF-TYPE1-{guard}", f"the disk's integrity format is {kind}")
    before = [len(signature_errors(vm)) for vm in lab.vms]
    # If the kernel does not generate or verify tuples, the HCA inserts or strips them.
    for generates, verifies in ((0, 0), (0, 1), (1, 0), (1, 1)):
        a.run(f"echo {generates} >{integrity}/write_generate; echo {verifies} >{integrity}/read_verify")
        a.run(PI_IO.format(disk=disk), 60)
    # Packets that are sent again are checked again, also from the middle of a block.
    lab.provoked.append(r"iser_event_handler: async event port (error|active)")
    job = begin_fio(a, disk, DISK_MB << 10, SECONDS)
    for vm, host in zip(lab.vms, lab.hosts):
        vm.run(f"sleep 1; ip link set {host['netdev']} down; sleep 0.3; ip link set {host['netdev']} up")
    end_fio(job, SECONDS)
    expect(before == [len(signature_errors(vm)) for vm in lab.vms], "\n".join(signature_errors(a) + signature_errors(b)))

    lab.provoked += PI_REPORTS
    good, bad = random.Random(SEED).randbytes(512), random.Random(SEED + 1).randbytes(512)
    write_block(a, disk, 1000, good)
    write_block(b, b.run(PI_NO_TUPLES).out.strip(), 1000, bad)
    read = f"LC_ALL=C dd if={disk} of=/dev/null bs=512 skip={{}} count=1 iflag=direct status=none"
    a.run(read.format(999))
    for verifies in (1, 0):
        a.run(f"echo {verifies} >{integrity}/read_verify")
        said = a.run(read.format(1000), check=False)
        expect(said.status and "multibyte" in said.err, str(said))  # the text of EILSEQ
    wanted = re.compile(rf"err_type 0 .* expected {t10_guard(good):x} actual {t10_guard(bad):x}$")
    # An initiator over SCSI has its HCA check only what the kernel verifies as well.
    for vm, count, least in zip(lab.vms, before, (1, 2)):
        said = signature_errors(vm)[count:]
        expect(len(said) >= least and all(map(wanted.search, said)), f"{vm.name}, {wanted.pattern}:\n" + "\n".join(said))
    expect(any("protection error, dev" in line for _, line in a.dmesg()), "the block layer reported no error")


@check("NVMe over RDMA with T10-PI: a reads what it wrote, and both HCAs find a block that is wrong on b's disk")
def protected_nvme(lab):
    disk = begin_protected_nvme(lab)
    expect_protection(lab, disk, "CRC")
    end_protected_nvme(lab)


RDS_SERVER = """
import socket
s = socket.socket(socket.AF_RDS, socket.SOCK_SEQPACKET)
s.bind(("{ip}", 4000))
open("/tmp/bound", "w")
for _ in range(200):
    data, sender = s.recvfrom(1 << 20)
    s.sendto(data[::-1], sender)
"""
RDS_CLIENT = """
import os, socket
s = socket.socket(socket.AF_RDS, socket.SOCK_SEQPACKET)
s.bind(("{ip}", 4001))
for size in (1, 100, 4096, 5000, 65536) * 40:
    data = os.urandom(size)
    s.sendto(data, ("{peer}", 4000))
    assert s.recvfrom(1 << 20)[0] == data[::-1], size
"""


@check("RDS: datagrams of 1 byte to 64 KiB return unchanged over the device")
def rds(lab):
    names = [dict(entry, dev=entry["ibdev"]) for entry in lab.hosts]
    for vm in lab.vms:
        vm.run("modprobe -a rds rds_rdma", 60)
    server = lab.vms[1].spawn("python3 -c '" + RDS_SERVER.format(**names[1]) + "'")
    lab.vms[1].until("[ -e /tmp/bound ]")  # before that, its messages would be dropped
    lab.vms[0].run("python3 -c '" + RDS_CLIENT.format(**names[0], peer=names[1]["ip"]) + "'", 120)
    server.wait(60, check=True)
    queues = lab.vms[0].run("rdma resource show qp").out
    expect(re.search(r"type RC state RTS .*\[rdma_cm\]", queues), queues)


@check("RDS: datagrams of many sizes between several sockets return unchanged")
def rds_load(lab):
    end_rds(*begin_rds(lab, SECONDS), SECONDS)


def begin_rds(lab, seconds):
    here, there = (entry["ip"] for entry in lab.hosts)
    for vm in lab.vms:
        vm.run("modprobe -a rds rds_rdma; rm -f /tmp/bound", 60)
    server = begin_program(lab.vms[1], "rds.py", f"serve {there}")
    lab.vms[1].until("[ -e /tmp/bound ]")
    return server, begin_program(lab.vms[0], "rds.py", f"ask {here} {there} {seconds} {SEED}")


def end_rds(server, client, seconds):
    returned = client.wait(seconds + 120, check=True).out.split()
    server.wait(60, check=True)
    expect(int(returned[0]) > 10, f"only {returned[0]} datagrams came back")


NFS_SERVER = """
set -e
[ -d /srv/nfs ] && exit  # it serves already
modprobe -a nfsd rpcrdma
cd /var/lib/nfs; mkdir -p nfsdcld rpc_pipefs; touch /etc/exports etab rmtab
mount -t rpc_pipefs sunrpc rpc_pipefs; nfsdcld -p $PWD/rpc_pipefs  # it knows that nobody had a file open before
mkdir -p /srv/nfs; mount -t tmpfs tmpfs /srv/nfs
mount -t nfsd nfsd /proc/fs/nfsd
exportfs -o rw,no_root_squash,insecure,no_subtree_check,fsid=0 '*:/srv/nfs'
rpc.mountd --no-nfs-version 3
rpc.nfsd --no-nfs-version 3 --rdma=20049 4
"""
NFS_CLIENT = "mountpoint -q /nfs && exit; mkdir -p /nfs; mount -t nfs4 -o proto=rdma,port=20049 {peer}:/ /nfs; grep -q 'xprt:.*rdma' /proc/self/mountstats"
NFS_IO = """
set -e
head -c 4M /dev/urandom >/tmp/data
for bs in 1000 4k 100k 1M; do
    dd if=/tmp/data of=/nfs/file bs=$bs status=none
    sync; echo 3 >/proc/sys/vm/drop_caches
    cmp /tmp/data /nfs/file
done
dd if=/nfs/file of=/tmp/back bs=1M iflag=direct status=none
cmp /tmp/data /tmp/back
mkdir /nfs/many; for i in $(seq 200); do echo $i >/nfs/many/$i; done
[ "$(cat /nfs/many/* | sort -n | md5sum)" = "$(seq 200 | md5sum)" ]
sha256sum </tmp/data
umount /nfs
"""


# SMC-R finds the device of the route to the peer, and takes its GID of RoCE version 1 (smc_ib_determine_gid()).
@check("SMC-R: 4 MiB of a TCP program return unchanged through a QP")
def smc(lab):
    for vm in lab.vms:
        vm.run("modprobe smc; rm -f /tmp/smc", 60)
    there = lab.hosts[1]["ip"]
    server = begin_program(lab.vms[1], "smc.py", f"serve {there}")
    lab.vms[1].until("[ -e /tmp/smc ]")
    queues = begin_program(lab.vms[0], "smc.py", f"ask {there} {4 << 20}").wait(180, check=True).out
    server.wait(60, check=True)
    expect(re.search(r"type RC state RTS .*comm \[smc\]", queues), queues)


@check("NFS over RDMA: a reads and writes large and many small files of b")
def nfs(lab):
    both(lab, NFS_SERVER, NFS_CLIENT)
    written = lab.vms[0].run(NFS_IO, 240).out.split()[0]
    found = lab.vms[1].run("sha256sum </srv/nfs/file; cat /srv/nfs/many/* | wc -l").out.split()
    expect([written, "200"] == [found[0], found[-1]], f"{written} was written, {found} is there")


@check("NFS over RDMA: random operations on a file, and fio on another one, find all data right")
def nfs_load(lab):
    end_nfs(lab, begin_nfs(lab, SECONDS), SECONDS)


def begin_nfs(lab, seconds):
    both(lab, NFS_SERVER, NFS_CLIENT)
    return (begin_program(lab.vms[0], "fsx.py", f"/nfs/fsx {seconds} {SEED}"),
            begin_fio(lab.vms[0], "/nfs/fio", 16 << 10, seconds))


def end_nfs(lab, jobs, seconds):
    count, checksum = jobs[0].wait(seconds + 120, check=True).out.split()
    end_fio(jobs[1], seconds)
    lab.vms[0].run("rm /nfs/fio; umount /nfs", 60)
    found = lab.vms[1].run("sha256sum </srv/nfs/fsx").out.split()[0]
    expect(int(count) > 5 and found == checksum, f"seed {SEED}: {count} operations; {checksum} was written, {found} is there")


# iSER's target and initiator are the kernel's. The target's portal listens by TCP and, because of
# "iser", by RDMA; the initiator has no driver for iSCSI over TCP.
ISER_NAME = "iqn.2026-11.hcasim:disk"
ISER_TARGET = f"""
set -e
modprobe -a iscsi_target_mod ib_isert
mountpoint -q /sys/kernel/config || mount -t configfs config /sys/kernel/config
cd /sys/kernel/config/target
mkdir -p core/{{store}}/disk; echo {{control}} >core/{{store}}/disk/control
echo 1 >core/{{store}}/disk/enable
mkdir -p iscsi/{ISER_NAME}/tpgt_1; cd iscsi/{ISER_NAME}/tpgt_1
mkdir lun/lun_0; ln -s /sys/kernel/config/target/core/{{store}}/disk lun/lun_0/disk
echo {{protected}} >attrib/t10_pi
mkdir np/{{ip}}:3260; echo 1 >np/{{ip}}:3260/iser
echo 0 >attrib/authentication; echo 1 >attrib/generate_node_acls; echo 0 >attrib/demo_mode_write_protect
echo 1 >enable
"""
ISER_NODE = f"iscsiadm -m node -T {ISER_NAME} -p {{peer}}:3260 -I iser"
ISER_INITIATOR = f"""
set -e
modprobe sd_mod; modprobe ib_iser pi_enable={{protected}}
mkdir -p /etc/iscsi /var/lib/iscsi /run/lock
echo InitiatorName=iqn.2026-11.hcasim:initiator >/etc/iscsi/initiatorname.iscsi
pidof iscsid >/dev/null || iscsid
{ISER_NODE} -o new
{ISER_NODE} -l
"""
ISER_DISK = "/sys/class/iscsi_session/session*/device/target*/*/block/sd?"
ISER_LOGOUT = f"{ISER_NODE} -u; {ISER_NODE} -o delete; kill $(pidof iscsid); modprobe -r ib_iser"
ISER_END = f"""
set -e
cd /sys/kernel/config/target/iscsi/{ISER_NAME}/tpgt_1
echo 0 >enable
rm lun/lun_0/disk; rmdir lun/lun_0 np/*
cd ../..; rmdir {ISER_NAME}/tpgt_1 {ISER_NAME}; cd ..; rmdir iscsi core/{{store}}/disk core/{{store}}
modprobe -r ib_isert iscsi_target_mod
"""


# Where the target keeps the disk: in memory, or on a disk of b with T10-PI.
ISER_MEMORY = {"store": "rd_mcp_1", "control": f"rd_pages={DISK_MB * 256}", "protected": 0}
ISER_PROTECTED = {"store": "iblock_1", "control": "udev_path=/dev/$disk", "protected": 1}


def begin_iser(lab, store=ISER_MEMORY):
    """Connects guest a to a disk of b, and returns the disk."""
    both(lab, (PI_DISK if store["protected"] else "") + ISER_TARGET, ISER_INITIATOR, store)
    return disk_at(lab, ISER_DISK)


def end_iser(lab, store=ISER_MEMORY):
    lab.vms[0].run(ISER_LOGOUT.format(peer=lab.hosts[1]["ip"]), 60)
    lab.vms[1].run(ISER_END.format(**store) + (PI_DISK_END if store["protected"] else ""), 60)


@check("iSER: a uses a disk of b, and all that fio writes it reads again")
def iser(lab):
    disk = begin_iser(lab)
    connection = lab.vms[0].run("iscsiadm -m session").out
    expect(connection.startswith("iser:"), connection)
    lab.vms[0].run(DISK_IO.format(disk=disk), 180)
    end_fio(begin_fio(lab.vms[0], disk, DISK_MB << 10, SECONDS), SECONDS)
    end_iser(lab)


@check("iSER with T10-PI: a reads what it wrote, and both HCAs find a block that is wrong on b's disk")
def protected_iser(lab):
    # Tuples in a's memory have an IP checksum as their guard; the HCA makes a CRC of it, and back.
    expect_protection(lab, begin_iser(lab, ISER_PROTECTED), "IP")
    end_iser(lab, ISER_PROTECTED)


# Linux's target looks up by its own address who may log in, if the login comes by RDMA-CM.
SRP_PORT = 5555
SRP_TARGET = f"""
set -e
modprobe ib_srpt
mountpoint -q /sys/kernel/config || mount -t configfs config /sys/kernel/config
cd /sys/kernel/config/target
mkdir -p core/rd_mcp_0/disk; echo rd_pages={DISK_MB * 256} >core/rd_mcp_0/disk/control
echo 1 >core/rd_mcp_0/disk/enable
mkdir srpt; echo {SRP_PORT} >srpt/discovery_auth/rdma_cm_port
guid=$(cut -d: -f5- /sys/class/infiniband/{{dev}}/ports/1/gids/0)
mkdir -p srpt/$guid/$guid; cd srpt/$guid/$guid
mkdir lun/lun_0; ln -s /sys/kernel/config/target/core/rd_mcp_0/disk lun/lun_0/disk
mkdir acls/{{ip}}; mkdir acls/{{ip}}/lun_0; ln -s $PWD/lun/lun_0 acls/{{ip}}/lun_0/disk
echo 512 >attrib/srp_sq_size    # else it begins with more than a queue pair can have
echo 1 >enable
"""
SRP_INITIATOR = f"""
set -e
modprobe -a ib_srp sd_mod
echo "id_ext=$guid,ioc_guid=$guid,dest={{peer}}:{SRP_PORT}" >/sys/class/infiniband_srp/srp-{{dev}}-1/add_target
"""
SRP_DISK = "/sys/class/srp_remote_ports/port-*/../../../target*/*/block/sd?"

# Otherwise it gets the event of the function's end at power-off, and logs that it does not know
# that event.
SRP_END = """
set -e
cd /sys/kernel/config/target/srpt/????:*/????:*
echo 0 >enable
rm acls/*/lun_0/disk lun/lun_0/disk; rmdir acls/*/lun_0 acls/* lun/lun_0
cd ../..; rmdir */????:* ????:*; cd ..; rmdir srpt core/rd_mcp_0/disk core/rd_mcp_0
modprobe -r ib_srpt
"""


def begin_srp(lab):
    # A target's port has the name of its first device.
    guid = lab.vms[1].run("cat /sys/class/infiniband/*/node_guid").out.strip().replace(":", "")
    both(lab, SRP_TARGET, f"guid={guid}\n{SRP_INITIATOR}")


def end_srp(lab):
    lab.vms[0].run("echo 1 >/sys/class/srp_remote_ports/port-*/delete", 60)
    lab.vms[1].run(SRP_END, 60)


@check("SRP over RDMA-CM: a uses a disk of b, and all that fio writes it reads again")
def srp(lab):
    begin_srp(lab)
    disk = disk_at(lab, SRP_DISK)
    lab.vms[0].run(DISK_IO.format(disk=disk), 180)
    end_fio(begin_fio(lab.vms[0], disk, DISK_MB << 10, SECONDS), SECONDS)
    end_srp(lab)


@check("NVMe with and without T10-PI, NFS, iSER, SRP and RDS at the same time: all data is right")
def all_at_once(lab):
    seconds = 2 * SECONDS if SECONDS < 60 else SECONDS  # each of them is slower than alone
    before = [len(signature_errors(vm)) for vm in lab.vms]
    # All connect first: commands take long in a guest that is busy with the loads.
    names = [begin_iser(lab)]
    begin_srp(lab)
    names.append(disk_at(lab, SRP_DISK))
    both(lab, NVME_TARGET, NVME_HOST)
    names.append(begin_protected_nvme(lab))
    both(lab, NFS_SERVER, NFS_CLIENT)
    disks = [begin_nvme(lab, seconds)]
    disks += [begin_fio(lab.vms[0], name, DISK_MB << 10, seconds) for name in names]
    datagrams = begin_rds(lab, seconds)
    end_nfs(lab, begin_nfs(lab, seconds), seconds)
    for job in disks:
        end_fio(job, seconds)
    end_rds(*datagrams, seconds)
    end_iser(lab)
    end_srp(lab)
    lab.vms[0].run(NVME_END, 60)
    end_protected_nvme(lab)
    expect(before == [len(signature_errors(vm)) for vm in lab.vms], "an HCA reported a signature error")


check("no warning or error of mlx5 or infiniband in either guest's dmesg")(suite.clean_dmesg)
check("both guests power off")(suite.powers_off)
check("no warning or error on either console, power-off included")(suite.clean_console)
check("the device reported no unhandled command or register, and no error", only="hcasim")(suite.clean_device_log)
