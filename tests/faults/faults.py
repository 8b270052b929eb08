# SPDX-License-Identifier: MIT
"""The other side of tests/faults/shim.c: says which calls of a program fail, and reads how many there were."""

import errno
import mmap
import os
import random
import struct

KINDS = ("memory", "map", "thread", "lock", "open", "read", "write", "sync", "name", "close", "socket", "cuda")
ERRORS = {"open": errno.EMFILE, "write": errno.ENOSPC, "socket": errno.EMFILE}
NUMBERS = 5 + len(KINDS)
ALWAYS = 1 << 40


class Faults:
    """A file that the shim maps, too."""

    def __init__(self, path, fresh=True):
        self.path = str(path)
        if fresh:
            with open(self.path, "wb") as f:
                f.write(bytes(8 * NUMBERS))
        with open(self.path, "r+b") as f:
            self.map = mmap.mmap(f.fileno(), 8 * NUMBERS)

    def environment(self, shim, **more):
        return {**os.environ, "LD_PRELOAD": str(shim), "FAULTS": self.path, **more}

    def arm(self, kind, at, always=False):
        """The at-th call of this kind from now on fails, and with `always` all behind it; counters begin at 0."""
        bits = 1 << KINDS.index(kind)
        # `at` comes last: until then nothing fails.
        self.map[:] = struct.pack(
            f"{NUMBERS}Q", bits, 0, ALWAYS if always else 0, 0, ERRORS.get(kind, errno.EIO), *[0] * len(KINDS)
        )
        self.map[8:16] = struct.pack("Q", at)

    def disarm(self):
        self.map[8:16] = bytes(8)

    def calls(self):
        """Calls since the last `arm`: kind -> number."""
        return dict(zip(KINDS, struct.unpack(f"{NUMBERS}Q", self.map[:])[5:]))

    def failed(self):
        return struct.unpack("Q", self.map[24:32])[0]


def sites(count, first, sample, seed):
    """Which of `count` calls to fail: each of the first ones, then a sample."""
    rest = range(first + 1, count + 1)
    return [*range(1, min(count, first) + 1), *sorted(random.Random(seed).sample(rest, min(sample, len(rest))))]
