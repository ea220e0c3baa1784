#!/usr/bin/env python3
"""Tests the memory of hvdliterun's commit store: replaced commits use none.

usage: commit_memory_test.py HVDLITERUN
"""

import concurrent.futures
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "testing"))
from launchers import environment, kind  # noqa: E402

PROGRAM = None  # set by the command line

MIB = 1 << 20


def put(address, name, number, content):
    """Like base::PutCommit; the fields of the header are those in base/commit_store.cc."""
    where, secret = address.split("/")
    host, port = where.rsplit(":", 1)
    header = struct.Struct("<II32sQQII")
    name = name.encode()
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(header.pack(0x31436d43, 1, secret.encode(), number, len(content),
                                       len(name), zlib.crc32(content, zlib.crc32(name))))
        connection.sendall(name + content)
        answer = connection.recv(header.size, socket.MSG_WAITALL)
        status = header.unpack(answer)[1]
        if status != 0:
            raise RuntimeError("the commit store answers with status %d" % status)
        # This returns when the store has closed the connection.
        assert connection.recv(1) == b""


class CommitMemoryTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.mkdtemp(prefix="hvdl", dir="/tmp")
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        self.job = subprocess.Popen(
            [PROGRAM, "-np", "1", "--max-restarts", "1", "--commit-memory", "sh", "-c",
             "echo $HVDLITE_COMMIT_STORE; read line"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=environment(TMPDIR=directory))
        self.addCleanup(self.job.communicate, "\n")
        self.address = self.job.stdout.readline().strip()

    def resident_bytes(self):
        with open("/proc/%d/status" % self.job.pid) as status:
            return int(re.search(r"VmRSS:\s+(\d+) kB", status.read()).group(1)) << 10

    def test_replaced_commits_use_no_memory(self):
        content = os.urandom(8 * MIB)
        put(self.address, "state", 1, content)
        before = self.resident_bytes()
        for number in range(2, 20):
            put(self.address, "state", number, content)
        self.assertLess(self.resident_bytes() - before, 2 * MIB)

    def test_simultaneous_commits_use_no_memory_later(self):
        content = os.urandom(8 * MIB)
        put(self.address, "state", 1, content)
        before = self.resident_bytes()

        def put_ten(rank):
            for number in range(4):
                put(self.address, "rank%d" % rank, number, content)

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(put_ten, range(4)))
        for rank in range(4):
            put(self.address, "rank%d" % rank, 100, b"small")
        self.assertLess(self.resident_bytes() - before, 8 * MIB)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    if kind() is None:
        print("there is no mpirun")
        sys.exit(77)
    unittest.main()
