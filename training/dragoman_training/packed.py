# SPDX-License-Identifier: MIT
"""Packed id pairs: what training reads. One file, little-endian, everything in id form:

    int64 magic, n, source ids, target ids
    uint8 source length[n], target length[n], passes[n]      lengths without </s>, at most 255
    uint16 source ids, target ids                            back to back, no </s>, no padding; uint32 in files of the
                                                             second magic, for vocabularies of more than 65,536 ids

148 MB for 1.34M pairs: a whole corpus fits on a GPU, where batches.py gathers from it.
"""
import numpy as np

MAGIC = 0x31_4B_50_44                                       # "DPK1"
MAGIC_WIDE = 0x32_4B_50_44                                  # "DPK2"


def narrow(ids):
    """As uint16 where every id fits, else as uint32."""
    ids = np.asarray(ids)
    return ids.astype(np.uint16 if not len(ids) or ids.max() < 1 << 16 else np.uint32)


class Packed:
    def __init__(self, source_lengths, target_lengths, passes, source, target):
        self.source_lengths = np.asarray(source_lengths, np.uint8)
        self.target_lengths = np.asarray(target_lengths, np.uint8)
        self.passes = np.asarray(passes, np.uint8)
        self.source, self.target = narrow(source), narrow(target)

    def __len__(self):
        return len(self.passes)

    @classmethod
    def from_lists(cls, pairs, longest=126):
        """pairs: (source ids, target ids, passes); empty or too long ones are dropped."""
        kept = [p for p in pairs if 0 < len(p[0]) <= longest and 0 < len(p[1]) <= longest and p[2] > 0]
        flat = [np.concatenate([np.asarray(p[side], np.uint32) for p in kept]) if kept else np.zeros(0, np.uint32)
                for side in (0, 1)]
        return cls([len(p[0]) for p in kept], [len(p[1]) for p in kept], [p[2] for p in kept], *flat)

    @classmethod
    def join(cls, parts):
        names = ("source_lengths", "target_lengths", "passes", "source", "target")
        return cls(*(np.concatenate([getattr(p, name) for p in parts]) for name in names))

    def prefixed(self, source, target):
        """The same pairs with these ids before every source and every target."""
        sides = []
        for ids, lengths, before in ((self.source, self.source_lengths, source),
                                     (self.target, self.target_lengths, target)):
            starts = np.concatenate([[0], np.cumsum(lengths.astype(np.int64))[:-1]]) if len(lengths) else []
            at = np.repeat(np.asarray(starts, np.int64), len(before))
            sides.append((np.insert(ids.astype(np.int64), at, np.tile(before, len(lengths)).astype(np.int64)),
                          lengths + len(before)))
        return Packed(sides[0][1], sides[1][1], self.passes, sides[0][0], sides[1][0])

    def save(self, path):
        wide = np.uint32 in (self.source.dtype, self.target.dtype)
        ids = [a.astype(np.uint32 if wide else np.uint16) for a in (self.source, self.target)]
        with open(path, "wb") as f:
            head = [MAGIC_WIDE if wide else MAGIC, len(self), len(self.source), len(self.target)]
            np.array(head, "<i8").tofile(f)
            for a in (self.source_lengths, self.target_lengths, self.passes, *ids):
                a.tofile(f)

    @classmethod
    def load(cls, path):
        with open(path, "rb") as f:
            head = np.fromfile(f, "<i8", 4)
            if len(head) < 4 or head[0] not in (MAGIC, MAGIC_WIDE):
                raise ValueError(f"{path}: not a packed corpus")
            n, ns, nt = (int(x) for x in head[1:])
            arrays = [np.fromfile(f, np.uint8, n) for _ in range(3)]
            kind = np.uint16 if head[0] == MAGIC else np.uint32
            arrays += [np.fromfile(f, kind, ns), np.fromfile(f, kind, nt)]
        packed = cls(*arrays)
        if (len(packed), len(packed.source), len(packed.target)) != (n, ns, nt):
            raise ValueError(f"{path}: truncated")
        return packed

    def pair(self, i):
        """Id lists of pair i: for tests and inspection."""
        s = int(self.source_lengths[:i].astype(np.int64).sum())
        t = int(self.target_lengths[:i].astype(np.int64).sum())
        return (self.source[s:s + int(self.source_lengths[i])].tolist(),
                self.target[t:t + int(self.target_lengths[i])].tolist())
