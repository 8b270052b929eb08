#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dragoman.spark on a local cluster (several executor JVMs), in make test-long; needs pyspark, pandas and pyarrow.

    PYTHONPATH=build/python python/tests/spark_job.py [--lines 400] [--master local-cluster[2,1,2048]]

A column is translated as Translator translates it, in order and with ids, errors in a column; a job goes on after it was
killed (kill -9 of the driver), and an executor that is killed in the middle loses nothing: the same bytes each time.
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODEL = str(ROOT / "models/en-de.gguf")
checks = {"passed": 0, "failed": 0}


def check(good, what):
    checks["passed" if good else "failed"] += 1
    print(("ok      " if good else "FAILED  ") + what, flush=True)


def texts(count):
    with open(ROOT / "tests/data/translate/newstest2014-1000.en", encoding="utf-8") as f:
        lines = [line.rstrip("\n") for line in f]
    return [lines[i % len(lines)][:80 + i % 60] for i in range(count)]


def session(master):
    from pyspark.sql import SparkSession
    return (SparkSession.builder.master(master).appName("dragoman tests").config("spark.ui.enabled", "false")
            .config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"]).config("spark.sql.execution.arrow.maxRecordsPerBatch", "64")
            .config("spark.python.worker.reuse", "true").getOrCreate())


def columns(spark, lines):
    import dragoman
    from dragoman.spark import Metrics, translate
    wanted = list(dragoman.Translator(MODEL, threads=2, beam=1).translate(lines))
    rows = [(i, text) for i, text in enumerate(lines)] + [(len(lines), None), (len(lines) + 1, "long " * 600)]
    df = spark.createDataFrame(rows, "id long, text string").repartition(4)
    metrics = Metrics(spark)
    done = translate(df, "text", "german", model=MODEL, beam=1, long="error", error_column="error", metrics=metrics).collect()
    got = {row.id: row for row in done}
    check([got[i].german for i in range(len(lines))] == wanted, "a column is translated as Translator translates it")
    check([got[i].text for i in range(len(lines))] == lines and len(got) == len(rows), "rows keep their columns")
    check(got[len(lines)].german == "" and got[len(lines)].error is None, "a null is an empty line")
    check(got[len(lines) + 1].german is None and "tokens" in got[len(lines) + 1].error, "errors stand in a column")
    import dragoman.spark
    dragoman.spark.CHARACTERS, usual = len("".join(lines)) // 6, dragoman.spark.CHARACTERS
    few = spark.createDataFrame(rows[:-2], "id long, text string").coalesce(1)
    parted = translate(few, "text", "german", model=MODEL, beam=1)
    check(parted.rdd.getNumPartitions() > 4 and [row.id for row in parted.collect()] == list(range(len(lines))),
          "rows keep their order when partitions become smaller")
    dragoman.spark.CHARACTERS = usual
    counted = metrics.as_dict()
    check(counted["rows"] == len(rows) and counted["failed"] == 1 and counted["target_tokens"] > 0, f"metrics: {counted}")
    return wanted


def submit(place, source, target, master, lines):
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    script = Path(os.environ["PYTHONPATH"]) / "dragoman/spark.py"
    command = [str(Path(sys.executable).parent / "spark-submit"), "--master", master, "--conf", "spark.ui.enabled=false", "--conf",
               f"spark.executorEnv.PYTHONPATH={env['PYTHONPATH']}", str(script), "--input", str(source), "--output", str(target),
               "--format", "text", "--model", MODEL, "--set", "beam=1", "--lines", str(lines)]
    log = open(place / "submit.log", "a")
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True)


def output(target):
    parts = sorted(target.glob("part=*"))
    return "".join(f.read_text(encoding="utf-8") for part in parts for f in sorted(part.glob("part-*")))


def parts_done(target):
    return len(list(target.glob("part=*/_SUCCESS")))


def wait_for(condition, job, limit=300):
    until = time.monotonic() + limit
    while job.poll() is None and time.monotonic() < until and not condition():
        time.sleep(0.2)
    return condition()


def executors(group):
    """Processes of the job that are executors."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
                if b"CoarseGrainedExecutorBackend" in line and os.getpgid(int(entry.name)) == group:
                    found.append(int(entry.name))
            except (OSError, ProcessLookupError):
                pass
    return found


def jobs(place, lines, wanted, master):
    source = place / "input.txt"
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    part, plain, killed = max(1, len(lines) // 4), place / "plain", place / "killed"
    job = submit(place, source, plain, master, part)
    out, _ = job.communicate(timeout=900)
    check(job.returncode == 0 and output(plain) == "\n".join(wanted) + "\n", f"a job of text: {out.strip()[-200:]}")
    job = submit(place, source, killed, master, part)
    check(wait_for(lambda: parts_done(killed) >= 1, job), "a first part is there")
    os.killpg(job.pid, signal.SIGKILL)
    job.wait()
    before = parts_done(killed)
    check(1 <= before < 4, f"killed after {before} of 4 parts")
    job = submit(place, source, killed, master, part)
    if "cluster" in master:
        wait_for(lambda: parts_done(killed) > before or executors(job.pid), job)
        for victim in executors(job.pid)[:1]:
            os.kill(victim, signal.SIGKILL)
            print(f"executor {victim} killed", flush=True)
    out, _ = job.communicate(timeout=900)
    check(job.returncode == 0 and output(killed) == output(plain), "it goes on, without an executor, and gives the same bytes")
    report = json.loads(out.strip().splitlines()[-1]) if out.strip() else {}
    check(report.get("rows", len(lines)) < len(lines), f"and does not begin anew: {report}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--lines", type=int, default=400)
    p.add_argument("--master", default="local-cluster[2,1,1024]")
    args = p.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    lines = texts(args.lines)
    spark = session(args.master)
    wanted = columns(spark, lines)
    spark.stop()
    with tempfile.TemporaryDirectory() as place:
        jobs(Path(place), lines, wanted, args.master)
        if checks["failed"]:
            print((Path(place) / "submit.log").read_text()[-3000:])
    print(f"{checks['passed']} passed, {checks['failed']} failed")
    return 1 if checks["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
