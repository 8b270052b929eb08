# SPDX-License-Identifier: MIT
"""One command for the whole way from Debian's packages to line-aligned text; it goes on where it was ended.

    PYTHONPATH=training python3 -m mine --work WORK --out OUT --known DATA --tests DATA/test.tar.xz
"""
import argparse
import os
import sys

from . import fetch, native, output, pipeline, sources

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def arguments(words):
    parser = argparse.ArgumentParser(prog="python3 -m mine", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", required=True, help="folder for packages and what lies between the stages")
    parser.add_argument("--out", help="folder for the result (not needed for single stages)")
    parser.add_argument("--known", help="folder of corpora, PAIR/SOURCE.LANG.xz: pairs of theirs are left out")
    parser.add_argument("--tests", help="tar of test sets: lines of theirs are left out, of either side")
    parser.add_argument("--languages", default="de,fr,es,it", help="targets (default %(default)s)")
    parser.add_argument("--sources", default="", help="names of sources between commas (default: all)")
    parser.add_argument("--stages", default="fetch,extract,align,filter,score,write", help="which (default %(default)s)")
    parser.add_argument("--suite", default="bookworm")
    parser.add_argument("--mirror", default="http://deb.debian.org/debian")
    parser.add_argument("--library", default=os.path.join(ROOT, "build", "libdragoman.so"))
    parser.add_argument("--program", default=os.path.join(ROOT, "build", "dragoman"))
    parser.add_argument("--model", action="append", default=[], metavar="LANG=FILE",
                        help="model from English for the score stage (default de=models/en-de.gguf)")
    parser.add_argument("--score-all", action="store_true", help="score every source, not only those aligned by length")
    parser.add_argument("--table", action="store_true", help="print the table of counts of OUT/MANIFEST.tsv for README.md and end")
    parser.add_argument("--sample", type=int, metavar="N", help="print N random pairs of the result of each source and end")
    return parser.parse_args(words)


def print_samples(out, languages, names, count):
    import random
    for lang in languages:
        for name in names:
            path = os.path.join(out, f"en-{lang}", f"{name}.en.xz")
            if os.path.exists(path):
                with output.open_any(path) as a, output.open_any(path[:-len("en.xz")] + lang + ".xz") as b:
                    pairs = list(zip(a.read().split("\n")[:-1], b.read().split("\n")[:-1]))
                print(f"== en-{lang} {name}: {len(pairs)}")
                for x, y in random.Random(7).sample(pairs, min(count, len(pairs))):
                    print(f"{x}\t{y}")


def main(words=None):
    options = arguments(words)
    try:
        chosen = sources.by_name([x for x in options.sources.split(",") if x])
        languages = [x for x in options.languages.split(",") if x]
        stages = options.stages.split(",")
        unknown = set(stages) - {"fetch", "write", *pipeline.STAGES}
        if unknown or set(languages) - set(sources.LANGUAGES):
            raise ValueError(f"no such stage or language: {', '.join(unknown or languages)}")
        models = dict(x.split("=", 1) for x in options.model) or {"de": os.path.join(ROOT, "models", "en-de.gguf")}
        printing = options.table or options.sample is not None
        if printing and not options.out:
            raise ValueError("--table and --sample require --out")
        if "write" in stages and not printing and not (options.out and options.tests):
            raise ValueError("write requires --out and --tests")
    except ValueError as error:
        sys.exit(f"mine: {error}")
    if options.sample is not None:
        return print_samples(options.out, languages, [x.name for x in chosen] + ["everyday"], options.sample)
    if options.table:
        return output.print_table(options.out)
    apt = fetch.Apt(options.work, options.suite, options.mirror, languages)
    work = pipeline.Work(options.work, native.Library(options.library), options.program, models, apt)
    if "fetch" in stages:
        for source in chosen:
            fetch.fetch(source, apt, options.work)
    for lang in languages:
        for source in chosen:
            wanted = [x for x in stages if x in pipeline.STAGES and (x != "score" or source.scored or options.score_all)]
            pipeline.run(source, lang, work, wanted)
    if "write" in stages:
        tests = output.test_keys(options.tests)
        for lang in languages:
            known = output.known_keys(options.known, lang) if options.known else set()
            rows = output.write_pair(chosen, lang, work, options.out, tests, known)
            output.write_manifest(options.out, rows)
            fetch.say(f"write en-{lang}: {sum(r['kept'] for r in rows)} pairs")
        output.write_packages(options.out, work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
