# SPDX-License-Identifier: MIT
"""What the scripts of bench/gpu share: processes that answer requests, rows that are written at once, time that is left.

    Process(command, env)    bench/programs/cells.c or gpu_ct2.py: ask(limit, **request) gives the answer, or {"error": ...}
    ours(program)            of --cells; theirs(wheel) of an unpacked wheel
    Rows(path, columns)      a CSV that grows row by row; known(column, **key): is it there?
    Clock(minutes)           left(), over()
    machine()                name of the GPU, or of the processor where a GPU of software stands in
    memory_used()            MiB of the GPU that are taken, None without nvidia-smi
"""
import csv
import json
import os
import select
import statistics
import subprocess
import sys
import time
from pathlib import Path

import entry
import gpu_ct2

RIVAL_TYPES = ["float16", "bfloat16", "int8_float16"]


# ---- processes -----------------------------------------------------------------------------------------------------

class Process:
    def __init__(self, command, env=None):
        self.process = subprocess.Popen([str(c) for c in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)

    def ask(self, limit, **request):
        """An answer; a process that gives none within `limit` seconds is ended."""
        pipe, ready = self.process.stdout, True
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
            ready = select.select([pipe], [], [], max(limit, 1))[0]
            line = pipe.readline() if ready else b""
        except OSError as error:
            return dict(error=f"the process is gone: {error.strerror}")
        if line:
            return json.loads(line)
        self.process.kill()
        self.process.wait()
        return dict(error="the process ended" if ready else f"no answer within {limit:.0f} s")

    def close(self):
        try:
            self.process.stdin.close()
            self.process.wait(20)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()


def ours(cells):
    return Process([cells])


def theirs(wheel):
    return Process([sys.executable, Path(gpu_ct2.__file__), "serve"], gpu_ct2.environment(wheel))


# ---- rows ----------------------------------------------------------------------------------------------------------

class Rows:
    def __init__(self, path, columns):
        self.path, self.columns, self.rows = Path(path), columns, []
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists():
            with open(self.path, newline="") as f:
                self.rows = list(csv.DictReader(f))

    def known(self, column, **key):
        """Is there a row of that key with something in the column?"""
        return any(row.get(column) and all(row.get(k, "") == str(v) for k, v in key.items()) for row in self.rows)

    def put(self, **row):
        row = {c: "" if row.get(c) is None else str(row[c]) for c in self.columns}
        self.rows.append(row)
        new = not self.path.exists()
        with open(self.path, "a", newline="") as f:
            w = csv.DictWriter(f, self.columns, lineterminator="\n")
            if new:
                w.writeheader()
            w.writerow(row)
            f.flush()
            os.fsync(f.fileno())
        print("  ".join(f"{k}={v}" for k, v in row.items() if v != "" and k not in ("date", "commit", "machine")), flush=True)


class Clock:
    def __init__(self, minutes):
        self.end = time.monotonic() + 60 * minutes

    def left(self):
        return self.end - time.monotonic()

    def over(self):
        return self.left() <= 0


# ---- machine -------------------------------------------------------------------------------------------------------

def smi(what):
    try:
        done = subprocess.run(["nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader,nounits"], capture_output=True,
                              text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.split("\n")[0].strip() if done.returncode == 0 else None


def machine():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return smi("name") or line.split(":")[1].strip()
    return smi("name") or "unknown"


def memory_used():
    said = smi("memory.used")
    return int(said) if said and said.isdigit() else None


def about():
    return dict(date=time.strftime("%Y-%m-%d"), commit=entry.commit(), machine=machine())


def middle(values):
    return statistics.median(values)


# ---- arguments -----------------------------------------------------------------------------------------------------

def numbers(text):
    return [entry.count(x) for x in text.split(",")]


def words(text):
    return text.split(",")


def add_common(p, csv_name):
    p.add_argument("--program", default=str(entry.ROOT / "dragoman"), help="`make cuda-kit` has one")
    p.add_argument("--cells", default=str(entry.ROOT / "build/bench/cells"), help="build/bench/cells; `make cuda-kit` has one")
    p.add_argument("--device", default="cuda", help="of ours (default cuda)")
    p.add_argument("--work", type=Path, default=entry.ROOT / ".work" / "gpu", help="models that are made are kept there")
    p.add_argument("--csv", type=Path, default=entry.ROOT / ".work" / "gpu" / csv_name)
    p.add_argument("--minutes", type=float, default=9, help="nothing new is begun after that (default 9)")
    p.add_argument("--limit", type=float, default=60, help="seconds that one request may take (default 60)")
