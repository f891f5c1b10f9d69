#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The usual mistakes of a first verbs program in Python, and what hcasim says of each, word for word.

    python_mistakes.py BUILD           exit status 77 without python3-pyverbs

Each mistake is made in docs/examples/first_program.py, as tests/programs/mistakes.c makes them in C. All that hcasim
run --explain says is compared: {qp} and {peer} stand for the numbers of the two queue pairs, {key} and {address} for
those of the memory. Each must be the same wherever it occurs.
"""
import re
import subprocess
import sys

import first_program

# What it is, what is replaced, with what, the last line of the program, and the lines of hcasim.
MISTAKES = (
    ("a wrong GID index", "GID_INDEX = 1", "GID_INDEX = 17",
     "pyverbs.pyverbs_error.PyverbsRDMAError: Failed to modify QP state to RTR. Errno: 22, Invalid argument",
     ("modify_qp: ah_attr.grh.sgid_index 17 is empty; 0 (link-local) and 1 (IPv4) are in use, and 2 and 3, which are the same for RoCE v1 (EINVAL)",)),
    ("a forgotten RTR", "qp.to_rts(attr)  # by way of INIT and RTR",
     "qp.to_init(attr); attr.qp_state = enums.IBV_QPS_RTS; qp.modify(attr, enums.IBV_QP_STATE)",
     "pyverbs.pyverbs_error.PyverbsRDMAError: Failed to modify QP. Errno: 22, Invalid argument",
     ("modify_qp (QP {qp}, INIT to RTS): there is no such transition; from INIT the QP may go to RESET or RTR or ERR "
      "(EINVAL)",)),
    ("a bad lkey", "mr_from.lkey)", "mr_from.lkey + 1)", "work request 2: local protection error",
     ("qp {qp}: WQE 0 (SEND 0xa) fails with LOCAL_PROT_ERR (syndrome 0x4): lkey {key} does not exist; the key with this "
      "index is {other}",
      "QP {qp}, WR 0 (SEND, wr_id 2): IBV_WC_LOC_PROT_ERR (vendor_err 0x51): lkey {key}, for 23 bytes at {address}, is "
      "no key of this PD; look at sge.lkey and at whether the region is still registered")),
    ("a receiver without receives", "qps[1].post_recv", "(lambda wr: None)", "work request 2: RNR retry exceeded",
     ("qp {qp}: WQE 0 (SEND 0xa) fails with RNR_RETRY_EXC_ERR (syndrome 0x16)",
      "QP {qp}, WR 0 (SEND, wr_id 2): IBV_WC_RNR_RETRY_EXC_ERR (vendor_err 0x87): QP {peer} at 10.0.0.1 has no receive "
      "posted (rnr_retry was 3); post receives there before this side sends, or set rnr_retry to 7, which retries for "
      "ever")),
    ("a wrong QP number", "qps[0], qps[1].qp_num", "qps[0], 0x999", "work request 2: retry exceeded error",
     ("qp {qp}: WQE 0 (SEND 0xa) fails with TRANSPORT_RETRY_EXC_ERR (syndrome 0x15)",
      "QP {qp}, WR 0 (SEND, wr_id 2): IBV_WC_RETRY_EXC_ERR (vendor_err 0x81): QP 0x999 at 10.0.0.1 did not answer after "
      "retry_cnt 7 retries (timeout 14); the device itself has this address, so look at whether dest_qp_num is right, "
      "and at whether that QP is in RTR or RTS and connected to this QP")),
)
DEVICE = "mlx5_0: "


def pattern(lines):
    """A pattern for these lines, in which the same name stands for the same number."""
    known = set()

    def number(found):
        name = found[1]
        if name in known:
            return f"(?P={name})"
        known.add(name)
        return f"(?P<{name}>0x[0-9a-f]+)"
    return re.compile(re.sub(r"\\\{(\w+)\\\}", number, re.escape("\n".join(DEVICE + line for line in lines))))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if subprocess.run([first_program.INTERPRETER, "-c", "import pyverbs"], stderr=subprocess.DEVNULL,
                      check=False).returncode:
        print("python3-pyverbs is not installed")
        return first_program.SKIPPED
    source = first_program.PYTHON.read_text(encoding="utf-8")
    bad = 0
    for title, old, new, last, lines in MISTAKES:
        bad += first_program.differs(f"{title}: how often '{old}' is in the program", 1, source.count(old))
        text, status = first_program.output(sys.argv[1], first_program.INTERPRETER, "-c", source.replace(old, new))
        said = "\n".join(line for line in text if line.startswith(DEVICE))
        bad += first_program.differs(f"{title}: status and last line", (1, last), (status, text[-1] if text else ""))
        if not pattern(lines).fullmatch(said):
            print(f"{title}: hcasim should say\n{chr(10).join(lines)}\nbut says\n{said}")
            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
