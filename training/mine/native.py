# SPDX-License-Identifier: MIT
"""Sentence splitting and language identification of libdragoman, scores by the `dragoman` program."""
import ctypes
import os
import subprocess


class _Sentence(ctypes.Structure):
    _fields_ = [("begin", ctypes.c_size_t), ("end", ctypes.c_size_t)]


class _Detected(ctypes.Structure):
    _fields_ = [("language", ctypes.c_char * 16), ("confidence", ctypes.c_float)]


class Library:
    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.error = ctypes.create_string_buffer(4096)
        self.found = (_Detected * 2)()

    def sentences(self, text, language):
        data = text.encode()
        items, count = ctypes.POINTER(_Sentence)(), ctypes.c_size_t()
        if self.lib.dgm_sentences(data, ctypes.c_size_t(len(data)), language.encode(), ctypes.byref(items), ctypes.byref(count), self.error):
            raise ValueError(self.error.value.decode())
        found = [data[items[i].begin:items[i].end].decode() for i in range(count.value)]
        self.lib.dgm_sentences_free(ctypes.byref(items))
        return [" ".join(x.split()) for x in found]

    def detect(self, text, among):
        """The code of the most probable language, None without one."""
        data, count = text.encode(), ctypes.c_size_t()
        if self.lib.dgm_detect(data, ctypes.c_size_t(len(data)), among.encode(), self.found, ctypes.c_size_t(1), ctypes.byref(count),
                               self.error):
            raise ValueError(self.error.value.decode())
        return self.found[0].language.decode() if count.value else None


def scores(program, model, sources, targets, folder):
    """Mean log-probability of a token for every pair; None where there is no score."""
    names = [os.path.join(folder, n) for n in ("score.source", "score.target")]
    for name, lines in zip(names, (sources, targets)):
        with open(name, "w", encoding="utf-8", newline="\n") as f:
            f.writelines(line + "\n" for line in lines)
    done = subprocess.run([program, "score", *names, "-m", model, "-n", "-q", "--threads", "1"], capture_output=True, text=True)
    if done.returncode not in (0, 3):
        raise OSError(done.stderr.strip())
    found = [float(x) if x.strip() else None for x in done.stdout.split("\n")[:len(sources)]]
    for name in names:
        os.unlink(name)
    if len(found) != len(sources):
        raise OSError(f"{program} score gave {len(found)} scores for {len(sources)} lines")
    return found
