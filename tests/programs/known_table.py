# SPDX-License-Identifier: BSD-2-Clause
"""The programs of tests/programs/known: what each needs, which commands are run, and what they must
print."""
import dataclasses
import typing

import known_ways as ways


@dataclasses.dataclass(frozen=True)
class Row:
    """A program. Words in braces in a command are filled in: {case}, {port}, {server}, {client}, {folder}."""
    name: str
    packages: str              # the page shows the version of the first one
    commands: tuple            # one for each host, the server first; for MPI the compiler and the launcher
    want: str = ""             # a pattern that the last command's output must contain
    way: typing.Callable = ways.one
    cases: tuple = ("",)       # the commands run once with each of these
    quick: bool = False        # CI runs it
    cannot: str = ""           # why it does not work; then `want` is in its output when it fails
    note: str = ""             # a remark about a program that works


@dataclasses.dataclass(frozen=True)
class Answered:
    """A finding of another project's program about hcasim, and its explanation."""
    name: str
    question: str
    answer: str


@dataclasses.dataclass(frozen=True)
class Untried:
    """A program that is left out, and the reason."""
    name: str
    why: str


def pingpong(transport, *options, quick=False):
    command = f"ibv_{transport}_pingpong -d mlx5_0 -g 1 -p {{port}} {{case}}"
    return Row(f"ibv_{transport}_pingpong", "ibverbs-utils", (command, command + " localhost"), r"\d+ iters in",
               ways.by_port, options, quick)


def perftest(name, cases, quick=False):
    command = f"{name} -F -d mlx5_0 -x 1 -p {{port}} -n 100 {{case}}"
    return Row(name, "perftest", (command, command + " localhost"), PERFTEST_RESULT, ways.by_port, cases, quick)


def perftest_by_address(name):
    command = f"{name} -F -R -n 100"
    return Row(f"{name} -R", "perftest", (command, command + " {server}"), PERFTEST_RESULT, ways.by_address)


def addressed(name, server, client, want="", way=ways.by_address, cases=("",), quick=False):
    return Row(name, "rdmacm-utils", (server, client), want, way, cases, quick)


def ucx(api, transport, tests, options=""):
    command = (f"env UCX_TLS={transport},self UCX_NET_DEVICES=mlx5_0:1 ucx_perftest -p {{port}} -f -n 200 -w 10 {options} "
               "-t {case}")
    return Row(f"ucx_perftest, {api}, {transport}", "ucx-utils", (command, command + " localhost"),
               r"^\s*\d+(\s+[\d.]+){7}\s*$", ways.by_port, tests)


def fabric(endpoint, provider="verbs"):
    command = f"fi_pingpong -p '{provider}' -e {endpoint}"
    return Row(f"fi_pingpong, {endpoint}", "libfabric-bin", (command, command + " {server}"), "^64 .*=10 ",
               ways.by_address, quick=endpoint == "msg")


def speaks_umad(name):
    return Row(name, "infiniband-diags", (name,), "open UMAD port", ways.failing(ways.one),
               cannot="sends management datagrams through /dev/infiniband/umad, which does not exist")


PERFTEST_RESULT = r"^ *\d+ +\d+ +[\d.]+ "
QEMU = "qemu-system-x86_64 -M pc,accel=tcg -m 64 -S -display none -nodefaults"
QPERF = "qperf {server} -lp {port} -t 1"
QPERF_SERVER = "qperf -lp {port}"
RC_TESTS = ("am_lat", "am_bw", "put_lat", "put_bw", "get -s 4096 -D zcopy", "add_mr", "fadd", "cswap")
UCP_TESTS = ("tag_lat", "tag_bw", "ucp_am_lat", "ucp_am_bw", "stream_lat", "stream_bw", "ucp_put_lat", "ucp_put_bw", "ucp_get",
             "ucp_add", "ucp_fadd", "ucp_swap", "ucp_cswap")
UCX = "env UCX_TLS=rc_v,self UCX_NET_DEVICES=mlx5_0:1"
XSRQ = "ibv_xsrq_pingpong -d mlx5_0 -g 1 -p {port} {case}"
MPI = "the results of all-to-all, reductions, puts, accumulates and tickets are compared, and each HCA saw packets of each rank"
NC = "OpenBSD's nc is the server and the traditional nc the client: [rdma-cm.md](../howto/rdma-cm.md) says why"
RANK = "{folder}/rank {folder}/collective 2"

ROWS = (
    Row("ibv_devices", "ibverbs-utils", ("ibv_devices",), r"mlx5_0\s+[0-9a-f]{16}"),
    Row("ibv_devinfo", "ibverbs-utils", ("ibv_devinfo -v",), r"GID\[ *1\]:\s+::ffff:10\.0\.0\.\d+, RoCE v2"),
    Row("ibv_asyncwatch", "ibverbs-utils", ("ibv_asyncwatch -d mlx5_0",), "async event FD", ways.until_interrupted),
    pingpong("rc", "", "-e", "-c", "-t", "-N"),
    pingpong("uc", "", "-e", "-c"),
    pingpong("ud", "", "-e", "-c"),
    pingpong("srq", "", "-e", "-c"),
    Row("ibv_xsrq_pingpong", "ibverbs-utils", (XSRQ, XSRQ + " localhost"), "^success$", ways.by_port, ("", "-e")),
    perftest("ib_send_bw", ("-c RC", "-c UC", "-c UD -s 1024", "-c XRC", "-c DC")),
    perftest("ib_send_lat", ("-c RC", "-c UC", "-c UD -s 1024", "-c XRC", "-c DC")),
    perftest("ib_write_bw", ("-c RC", "-c UC", "-c XRC", "-c DC")),
    perftest("ib_write_lat", ("-c RC", "-c UC")),
    perftest("ib_read_bw", ("-c RC", "-c XRC", "-c DC")),
    perftest("ib_read_lat", ("-c RC", "-c XRC", "-c DC")),
    perftest("ib_atomic_bw", ("-c RC", "-c XRC", "-c DC")),
    perftest("ib_atomic_lat", ("-c RC", "-c XRC", "-c DC")),
    *map(perftest_by_address, ("ib_send_bw", "ib_write_bw", "ib_read_lat", "ib_atomic_bw")),
    addressed("rping", "rping -s -V -C 20 -a {server}", "rping -c -V -C 20 -a {server}"),
    addressed("ucmatose", "ucmatose -c 10 -C 5", "ucmatose -s {server} -c 10 -C 5", "return status 0"),
    addressed("udaddy", "udaddy -c 10", "udaddy -s {server} -c 10", "return status 0"),
    addressed("mckey", "stdbuf -oL mckey -m 239.7.7.7 -b {server}", "mckey -m 239.7.7.7 -b {client} -s",
              "return status 0", ways.by_group),
    addressed("cmtime", "cmtime -c 50", "cmtime -s {server} -c 50", r"^connect +:", ways.unserved),
    addressed("rdma_server, rdma_client", "rdma_server", "rdma_client -s {server}", "end 0"),
    addressed("rdma_xserver, rdma_xclient", "rdma_xserver -c {case}", "rdma_xclient -c {case} -s {server}", "end 0",
              cases=("r", "x")),
    addressed("rstream", "rstream -S 4096 -I 10 -C 5 {case}", "rstream -s {server} -S 4096 -I 10 -C 5 {case}", " 4k ",
              cases=("", "-T v", "-T n")),
    addressed("riostream", "riostream -S 4096 -I 10 -C 5 {case}", "riostream -s {server} -S 4096 -I 10 -C 5 {case}",
              " 4k ", cases=("", "-T v")),
    addressed("rcopy", "rcopy", "rcopy {folder}/sent {server}:{folder}/got", way=ways.copied),
    Row("iperf3 under librspreload", "iperf3 librdmacm1", (
        "{folder}/rspreload iperf3 -s -1 -B {server}", "{folder}/rspreload iperf3 -c {server} -n 5M {case}"),
        "^iperf Done", ways.preloaded, ("", "-R", "-P 2")),
    Row("nc under librspreload", "netcat-openbsd netcat-traditional librdmacm1", (
        '{folder}/rspreload sh -c "exec nc.openbsd -l {server} 7471 >{folder}/got"',
        '{folder}/rspreload sh -c "exec nc.traditional -q 1 {server} 7471 <{folder}/sent"'), way=ways.preloaded, quick=True,
        note=NC),
    Row("ucx_info", "ucx-utils", ("ucx_info -d",), r"Transport: rc_verbs\s+#\s+Device: mlx5_0:1[\s\S]*"
        r"Transport: ud_verbs\s+#\s+Device: mlx5_0:1", quick=True),
    ucx("UCT", "rc_v", RC_TESTS, "-d mlx5_0:1 -x rc_verbs"),
    ucx("UCT", "ud_v", ("am_lat", "am_bw"), "-d mlx5_0:1 -x ud_verbs"),
    ucx("UCP", "rc_v", UCP_TESTS),
    ucx("UCP", "ud_v", UCP_TESTS),
    Row("Open MPI", "openmpi-bin libopenmpi-dev",
        ("mpicc.openmpi -O2", f"{UCX} mpirun.openmpi --oversubscribe --mca pml ucx --mca osc ucx -np 4 {RANK}"),
        "^2 rounds, 0 wrong$", ways.mpi, quick=True, note=MPI),
    Row("MPICH", "mpich libmpich-dev",
        ("mpicc.mpich -O2", f"{UCX} mpiexec.mpich -n 4 {RANK}"),
        "^2 rounds, 0 wrong$", ways.mpi, quick=True,
        note=MPI),
    Row("fi_info", "libfabric-bin", ("fi_info -p verbs",), r"domain: mlx5_0\s[\s\S]*FI_EP_MSG", quick=True),
    fabric("msg"),
    fabric("rdm", "verbs;ofi_rxm"),
    fabric("dgram"),
    Row("fio, ioengine=rdma", "fio", ("fio {folder}/server.fio", "fio {folder}/client.fio"), "err= 0", ways.fio,
        ("write", "read"), note="`verb=send` sometimes ends with an RNR error, because fio asks for no RNR retries"),
    Row("QEMU, migration by RDMA", "qemu-system-x86", (f"{QEMU} -qmp unix:{{folder}}/to,server=on,wait=off -incoming defer {{case}}",
        f"{QEMU} -qmp unix:{{folder}}/from,server=on,wait=off -device loader,file={{folder}}/sent,addr=0x1000000,force-raw=on {{case}}"),
        "^completed", ways.migrated, ("", "-global migration.x-rdma-pin-all=on"), quick=True,
        note="the receiver has `migrate_incoming rdma:SERVER:PORT` and the sender `migrate rdma:SERVER:PORT`; the memory of the guest is compared"),
    Row("tgt; libiscsi and QEMU's driver for it (iSER)", "tgt qemu-utils qemu-block-extra", ("tgtd -f --iscsi portal=127.0.0.1:3261",
        "qemu-io -f raw -c 'write -P 0x5a 4k 64k' -c 'write -P 0xa5 72k 64k' -c 'read -P 0x5a 4k 64k' -c 'read -P 0 68k 4k' "
        f"-c 'read -P 0xa5 72k 64k' iser://{{server}}/{ways.ISER_TARGET}/1"),
        r"(?s)(?!.*failed).*read 65536/65536 bytes at offset 73728", ways.iser,
        note="a request of 2 MiB, or 128 requests at a time, end in errors inside this libiscsi"),
    Row("pytest", "python3-pytest python3-pyverbs", ("python3 -B -m pytest -p no:cacheprovider -q {folder}/test_port.py",),
        "1 passed", quick=True),
    Row("make check", "make gcc libibverbs-dev", ("make -s -C {folder} check",), "^mlx5_0$", quick=True),
    Row("ibstat", "infiniband-diags", ("ibstat",), r"CA type: MT4119[\s\S]*State: Active", quick=True),
    Row("ibstatus", "infiniband-diags", ("ibstatus",), "4: ACTIVE"),
    *map(speaks_umad, ("ibaddr", "sminfo", "perfquery", "ibhosts", "iblinkinfo")),
    Row("rdma", "iproute2", ("rdma {case}",), r"mlx5_0.*(netdev hca0|fw 16)", cases=("link", "dev"), quick=True),
    Row("ip", "iproute2", ("ip address show hca0",), r"inet 10\.0\.0\.\d+/24"),
    Row("dpdk-testpmd", "dpdk-dev", (
        "dpdk-testpmd --no-huge -m 128 -l 0 --no-telemetry --no-shconf -a ca00:00:00.0 -- --total-num-mbufs=2048",),
        "No probed ethernet devices", ways.failing(ways.one),
        cannot="skips a PCI function that has no driver in sysfs; what its mlx5 driver asks of the kernel after "
        "that was not tried"),
    Row("qperf", "qperf", (QPERF_SERVER, QPERF + " {case}"), "Invalid argument", ways.failing(ways.by_port_unserved),
        ("rc_bw", "uc_bw", "ud_bw"),
        cannot="addresses its peer by LID alone; RoCE needs a GID, and a card refuses this as well"),
)

ANSWERED = (
    Answered("eRPC's test of 32 endpoints, a spinning thread each, on two processors",
             "some threads had no answer after 48 s: is a thread starved?",
             "no, the polls of each thread advance the work of all threads; but 32 spinning threads waited for the processor in "
             "turn. Now a thread that polls without finding anything lets others run "
             "([ADR 16](../adr/0016-one-thread-works-for-the-others.md), `tests/programs/spinners.c`)"),
    Answered("UCX 1.22's own tests `tag_match_rndv`, `tag_match_rndv_align`",
             "they had not ended after 120 s: do they hang?",
             "no, they move much data: four messages of a sixteenth of the machine's memory for each variant of the latter. "
             "[ucx.md](../howto/ucx.md#very-long-messages) says how fast that is"),
    Answered("eight threads that create, use and destroy SRQs, queue pairs and address handles",
             "they had not ended after a minute: does a lock delay them?",
             "no delay was seen: eight threads together create as many objects a second as one thread alone, within the noise, "
             "for each of eleven kinds (`tests/programs/lifecycles.c`); if they spin, see eRPC's test"),
)

UNTRIED = (
    Untried("Open MPI's `btl openib`",
            "Debian's version connects through InfiniBand only (`udcm`); by default Open MPI uses UCX"),
    Untried("srp_daemon, opensm, ibacm", "they are for InfiniBand fabrics, and the port is Ethernet"),
    Untried("NCCL, nccl-tests", "not in Debian, and NCCL needs a GPU"),
    Untried("Ceph", "not tried yet"),
)
