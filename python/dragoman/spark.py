# SPDX-License-Identifier: MIT
"""Corpora on Spark: a column of a DataFrame is translated, or a folder of files by a job that can be killed and goes on.

    from dragoman.spark import translate
    translated = translate(df, "text", "translation", model="en-de", beam=4)

    spark-submit --master ... path/of/dragoman/spark.py --model en-de --input texts.parquet --output translations

Every Python worker opens one translator after it was forked and keeps it for its tasks (spark.python.worker.reuse). Rows keep
their order and their other columns. A translation depends on nothing but its text and the settings, so that a task that is
tried again gives the same bytes.
"""
from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    Batch = Any  # a pandas.DataFrame

__all__ = ["Metrics", "job", "translate"]

CHARACTERS = 4 << 20  # of one partition: some minutes of a core
ROW = "_dragoman_row"  # its number, while partitions are made anew
METRICS = ("rows", "failed", "source_tokens", "target_tokens", "seconds")

_kept: dict[str, Any] = {}  # translators of this worker, by how they were opened


def _translator(options: dict[str, Any]) -> Any:
    from . import Translator
    key = json.dumps([os.getpid(), options], sort_keys=True, default=str)
    if key not in _kept:
        _kept.clear()  # of another job; one model at a time
        _kept[key] = Translator(**options)
    return _kept[key]


class Metrics:
    """What the tasks of a translation did, as accumulators: rows, failed, source_tokens, target_tokens, seconds.

    Spark counts tasks that it tries again twice where an action repeats them; within one action each counts once.
    """

    def __init__(self, spark: SparkSession) -> None:
        for name in METRICS:
            setattr(self, name, spark.sparkContext.accumulator(0.0 if name == "seconds" else 0))

    def as_dict(self) -> dict[str, float]:
        return {name: getattr(self, name).value for name in METRICS}


def _texts(column: Iterable[Any]) -> list[str]:
    """Nulls become empty lines, and halves of characters U+FFFD."""
    return [text.encode("utf-8", "replace").decode("utf-8") if isinstance(text, str) else "" for text in column]


def translate(df: DataFrame, column: str, output: str = "translation", *, model: Optional[str] = None,
              error_column: Optional[str] = None, score_column: Optional[str] = None, metrics: Optional[Metrics] = None,
              repartition: bool = True, **settings: Any) -> DataFrame:
    """Adds a column with the translations of another one; rows keep their order and their other columns.

    model, settings  as those of dragoman.Translator; threads is 1 unless told otherwise: Spark runs a worker on every core.
    error_column     gets what is wrong with a row, null where nothing is; without it a row that fails has a null.
    score_column     gets the translations' scores.
    repartition      partitions of about 4 million characters, so that work is shared and what is lost with an executor is
                     little; needs a pass over the column. False: as they are.
    """
    from pyspark.sql import functions, types
    if column not in df.columns:
        raise ValueError(f"there is no column '{column}'")
    if repartition:
        size = df.agg(functions.sum(functions.length(functions.col(column)))).first()
        wanted = int(((size[0] if size else 0) or 0) // CHARACTERS) + 1
        if wanted > df.rdd.getNumPartitions():
            rows = df.withColumn(ROW, functions.monotonically_increasing_id())
            df = rows.repartitionByRange(wanted, ROW).sortWithinPartitions(ROW).drop(ROW)
    options = {"model": model, "threads": 1, **settings}
    fields = [f for f in df.schema.fields if f.name not in (output, error_column, score_column)]
    fields.append(types.StructField(output, types.StringType()))
    if error_column:
        fields.append(types.StructField(error_column, types.StringType()))
    if score_column:
        fields.append(types.StructField(score_column, types.FloatType()))
    counters = metrics and {name: getattr(metrics, name) for name in METRICS}

    def work(batches: Iterable[Batch]) -> Iterator[Batch]:
        translator = _translator(options)
        for batch in batches:
            begin, before = time.monotonic(), translator._engine.counters()
            results = translator.translate(_texts(batch[column]), errors="return")
            failed = [None if r.error is None else str(r.error) for r in results]
            batch = batch.assign(**{output: [r.text if f is None else None for r, f in zip(results, failed)]})
            if error_column:
                batch[error_column] = failed
            if score_column:
                batch[score_column] = [r.score if f is None else None for r, f in zip(results, failed)]
            if counters:
                after = translator._engine.counters()
                counters["rows"].add(len(results))
                counters["failed"].add(sum(f is not None for f in failed))
                counters["seconds"].add(time.monotonic() - begin)
                for name in ("source_tokens", "target_tokens"):
                    counters[name].add(after[name] - before[name])
            yield batch[[f.name for f in fields]]

    return df.mapInPandas(work, types.StructType(fields))


# ---- jobs ------------------------------------------------------------------------------------------------


def _read(spark: SparkSession, path: str, kind: str, column: str) -> DataFrame:
    if kind == "text":
        return spark.read.text(path).withColumnRenamed("value", column)
    if kind not in ("parquet", "json"):
        raise ValueError(f"format must be parquet, json or text, not '{kind}'")
    return spark.read.format(kind).load(path)


def job(spark: SparkSession, source: str, target: str, *, format: str = "parquet", column: str = "text",
        output: str = "translation", lines: int = 50000, progress: bool = True, **settings: Any) -> dict[str, float]:
    """Translates files into a folder, part by part; called again after an end of any kind, it goes on with what is missing.

    The input is numbered once, in its order, and cut into parts of `lines` rows, which are written to target/part=N. A part
    is there when Spark has committed it (_SUCCESS): a part that is not whole is written anew. target/job.json says what
    the job was; another one in the same folder is refused.
    """
    description = {"source": source, "format": format, "column": column, "output": output, "lines": lines,
                   "settings": {k: settings[k] for k in sorted(settings)}}
    java: Any = spark
    paths: Any = java._jvm.org.apache.hadoop.fs.Path
    system: Any = java._jvm.org.apache.hadoop.fs.FileSystem.get(paths(target).toUri(), java._jsc.hadoopConfiguration())
    _check_job(spark, system, paths, target, description)
    staged = f"{target}/input"
    if not system.exists(paths(f"{staged}/_SUCCESS")):
        rows = _read(spark, source, format, column)
        numbered = rows.rdd.zipWithIndex().map(lambda pair: (*pair[0], pair[1], pair[1] // lines))
        schema = rows.schema.add("_line", "long").add("_part", "long")
        spark.createDataFrame(numbered, schema).write.partitionBy("_part").mode("overwrite").parquet(staged)
    parts = sorted(int(s.getPath().getName().split("=")[1]) for s in system.listStatus(paths(staged))
                   if s.getPath().getName().startswith("_part="))
    metrics, begin = Metrics(spark), time.monotonic()
    cores = max(1, spark.sparkContext.defaultParallelism)
    for number in parts:
        if system.exists(paths(f"{target}/part={number:06d}/_SUCCESS")):
            continue
        rows = spark.read.parquet(f"{staged}/_part={number}").repartitionByRange(cores * 2, "_line")
        done = translate(rows, column, output, error_column="error", metrics=metrics, repartition=False, **settings)
        # Files of a part are named by the range of their rows, so that one behind the other they have the input's order.
        _write(done.sortWithinPartitions("_line"), f"{target}/part={number:06d}", format, output)
        if progress:
            print(f"part {number + 1} of {len(parts)}: {metrics.as_dict()}", file=sys.stderr, flush=True)
    return {**metrics.as_dict(), "parts": len(parts), "wall_seconds": time.monotonic() - begin}


def _check_job(spark: SparkSession, system: Any, paths: Any, target: str, description: dict[str, Any]) -> None:
    place, text = paths(f"{target}/job.json"), json.dumps(description, sort_keys=True, indent=1)
    if system.exists(place):
        before = "\n".join(row[0] for row in spark.sparkContext.wholeTextFiles(f"{target}/job.json").map(lambda f: (f[1],)).collect())
        if before.strip() != text.strip():
            raise ValueError(f"'{target}' holds another job: {before}")
        return
    out = system.create(place, False)
    out.write(bytearray(text.encode("utf-8")))
    out.close()


def _write(df: DataFrame, path: str, kind: str, output: str) -> None:
    writer = df.drop("_line", "_part").write.mode("overwrite")
    if kind == "text":  # lines that stand in a file one behind the other
        df.selectExpr(f"coalesce(`{output}`, '') as value").write.mode("overwrite").text(path)
    else:
        writer.format(kind).save(path)


def main(arguments: Optional[list[str]] = None) -> int:
    import argparse
    parser = argparse.ArgumentParser(prog="spark.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--input", required=True)
    parser.add_argument("--output", required=True, help="folder; a job that was killed goes on there")
    parser.add_argument("--format", default="parquet", choices=("parquet", "json", "text"))
    parser.add_argument("--column", default="text")
    parser.add_argument("--into", default="translation", help="column of the translations")
    parser.add_argument("--model")
    parser.add_argument("--lines", type=int, default=50000, help="rows of a part")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the translator")
    args = parser.parse_args(arguments)
    from pyspark.sql import SparkSession
    settings: dict[str, Any] = dict(pair.split("=", 1) for pair in args.set)
    if args.model:
        settings["model"] = args.model
    builder: Any = SparkSession.builder
    spark = builder.appName("dragoman").getOrCreate()
    print(json.dumps(job(spark, args.input, args.output, format=args.format, column=args.column, output=args.into,
                         lines=args.lines, **settings)))
    spark.stop()
    return 0


if __name__ == "__main__":
    # As a script its folder comes first, where modules of the package hide others (none does today).
    sys.path[:] = [p for p in sys.path if os.path.realpath(p or ".") != os.path.dirname(os.path.realpath(__file__))]
    from dragoman.spark import main as run  # functions of a module that workers can import
    sys.exit(run())
