# SPDX-License-Identifier: BSD-2-Clause
"""Runs the dma-buf tests of rdma-core's pyverbs suite on dma-bufs that need no GPU.

The suite takes its dma-bufs from a render node (/dev/dri/renderD128), which the guests do not have.
The classes here are those of the suite, with another source of dma-bufs: /dev/udmabuf of the Linux
kernel, which makes a dma-buf of the pages of a memfd. This file is put beside the suite's own tests.
"""
import errno
import fcntl
import mmap
import os
import struct
import unittest
from unittest import mock

from pyverbs.libibverbs_enums import ibv_access_flags, ibv_wr_opcode
from pyverbs.mr import DmaBufMR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError

from tests import test_mr
from tests.base import PyverbsAPITestCase
import tests.utils as u

DEVICE = "/dev/udmabuf"
UDMABUF_CREATE = 0x40187542  # _IOW('u', 0x42, struct udmabuf_create)
F_ADD_SEALS, F_SEAL_SHRINK = 1033, 2  # a memfd that can shrink is refused
PAGE = mmap.PAGESIZE
WRITABLE = ibv_access_flags.IBV_ACCESS_LOCAL_WRITE | ibv_access_flags.IBV_ACCESS_REMOTE_WRITE


class Udmabuf:
    """A dma-buf over the pages of a memfd: .fd, and .memory, a mapping of the memfd."""

    def __init__(self, size):
        size = (size + PAGE - 1) // PAGE * PAGE
        memfd = os.memfd_create("udmabuf", os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(memfd, size)
            fcntl.fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK)
            with open(DEVICE, "r+b", buffering=0) as device:
                wish = bytearray(struct.pack("IIQQ", memfd, 0, 0, size))
                self.fd = fcntl.ioctl(device, UDMABUF_CREATE, wish)
            self.memory = mmap.mmap(memfd, size)
        finally:
            os.close(memfd)

    def close(self):
        os.close(self.fd)
        self.memory.close()


class UdmabufMR(DmaBufMR):
    """A region over a dma-buf of its own. It is written through the dma-buf and read through the
    memfd, so both are the same pages."""

    def __init__(self, pd, length, access, offset=0, gpu=0, gtt=0):
        self.udmabuf = Udmabuf(length + offset)
        try:
            super().__init__(pd, length, access, dmabuf=self.udmabuf.fd, offset=offset)
        except PyverbsRDMAError:
            self.udmabuf.close()
            raise

    def close(self):
        super().close()
        udmabuf, self.udmabuf = getattr(self, "udmabuf", None), None
        if udmabuf:
            udmabuf.close()

    def write(self, data, length, offset=0):
        at = self.offset + offset
        with mmap.mmap(self.udmabuf.fd, at + length) as mapping:
            mapping[at:at + length] = (data.encode() if isinstance(data, str) else data)[:length]

    def read(self, length, offset):
        at = self.offset + offset
        return self.udmabuf.memory[at:at + length]


class OverUdmabuf:
    """Gives the suite's tests dma-bufs of /dev/udmabuf."""

    def setUp(self):
        if not os.path.exists(DEVICE):
            raise unittest.SkipTest(f"{DEVICE} is not there")
        for name, value in (("DmaBufMR", UdmabufMR), ("check_dmabuf_support", lambda gpu: None)):
            patch = mock.patch.object(test_mr, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        super().setUp()


class UdmabufMRTest(OverUdmabuf, test_mr.DmaBufMRTest):
    pass


class UdmabufTrafficTest(OverUdmabuf, test_mr.DmaBufTestCase):
    def test_dmabuf_rdma_read_traffic(self):
        self.create_players(UdmabufReadRC, gpu=self.gpu, gtt=self.gtt)
        u.rdma_traffic(**self.traffic_args, send_op=ibv_wr_opcode.IBV_WR_RDMA_READ)


class UdmabufReadRC(test_mr.DmaBufRC):
    """Players whose regions and QPs can be read, too."""

    def create_mr(self):
        access = WRITABLE | ibv_access_flags.IBV_ACCESS_REMOTE_READ
        self.mr = UdmabufMR(self.pd, self.msg_size, access)

    def create_qp_attr(self):
        attr = super().create_qp_attr()
        attr.qp_access_flags = WRITABLE | ibv_access_flags.IBV_ACCESS_REMOTE_READ
        return attr


class UdmabufBadFlowTest(PyverbsAPITestCase):
    """What UVERBS_METHOD_REG_DMABUF_MR and ib_umem_dmabuf_get() refuse."""

    def setUp(self):
        if not os.path.exists(DEVICE):
            raise unittest.SkipTest(f"{DEVICE} is not there")
        super().setUp()
        self.udmabuf = Udmabuf(4 * PAGE)
        self.addCleanup(self.udmabuf.close)

    def refused(self, pd, why, *, length=PAGE, access=WRITABLE, fd=None, offset=0):
        with self.assertRaises(PyverbsRDMAError) as caught:
            DmaBufMR(pd, length, access, dmabuf=self.udmabuf.fd if fd is None else fd, offset=offset)
        self.assertEqual(caught.exception.error_code, why)

    def test_udmabuf_bad_flow(self):
        with PD(self.ctx) as pd:
            self.refused(pd, errno.EINVAL, length=4 * PAGE + 1)
            self.refused(pd, errno.EINVAL, offset=4 * PAGE)
            self.refused(pd, errno.EINVAL, access=WRITABLE | ibv_access_flags.IBV_ACCESS_ON_DEMAND)
            self.refused(pd, errno.EBADF, fd=10_000)
            with open("/dev/zero", "rb") as zero:
                self.refused(pd, errno.EINVAL, fd=zero.fileno())

    def test_udmabuf_closed(self):
        """The region keeps the memory of a dma-buf whose descriptor is closed."""
        own = Udmabuf(PAGE)
        with PD(self.ctx) as pd:
            with DmaBufMR(pd, PAGE, WRITABLE, dmabuf=own.fd):
                own.close()
