#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs written for the package ctranslate2, after its guides, run once with it and once with dragoman.compat.ctranslate2:
only the import is another. What they print must be the same.

    PYTHONPATH=build/python PYTHON tests/oracle/check_ct2_programs.py [--program build/dragoman] [NAME ...]

PYTHON has ctranslate2, sentencepiece and transformers (PyPI). Models: models/en-de.gguf as float32 for those of one direction,
tests/data/ctranslate2/m2m for those of many, with the languages of NLLB by their names.
"""
import argparse
import difflib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAMS = Path(__file__).resolve().parent / "ct2_programs"
NAMES = {"__en__": "eng_Latn", "__de__": "deu_Latn", "__fr__": "fra_Latn"}


def prepare(program, place):
    """Folders of models, and lines."""
    subprocess.run([program, "quantize", str(ROOT / "models/en-de.gguf"), "-o", str(place / "f32.gguf"), "--type", "f32", "-q"],
                   check=True)
    for kind, name in (("ctranslate2", "one"), ("huggingface", "tokenizer")):
        subprocess.run([program, "export", kind, str(place / "f32.gguf"), "-o", str(place / name), "-q"], check=True)
    many = ROOT / "tests/data/ctranslate2/m2m"
    shutil.copytree(many, place / "m2m")
    shutil.copytree(many, place / "nllb")
    vocabulary = json.loads((many / "shared_vocabulary.json").read_text(encoding="utf-8"))
    (place / "nllb/shared_vocabulary.json").write_text(json.dumps([NAMES.get(t, t) for t in vocabulary]), encoding="utf-8")
    lines = (ROOT / "tests/data/translate/newstest2014-1000.en").read_text(encoding="utf-8").splitlines()[:40]
    return lines


def run(path, arguments, lines, ours):
    text = path.read_text(encoding="utf-8")
    if ours:
        text, count = re.subn(r"^import ctranslate2$", "import dragoman.compat.ctranslate2 as ctranslate2", text, flags=re.M)
        assert count == 1, path
    done = subprocess.run([sys.executable, "-c", text, *arguments],
                          input="\n".join(lines) + "\n", capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{path.name} {'with Dragoman' if ours else ''}: {done.stderr}")
    return done.stdout.splitlines()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=str(ROOT / "build/dragoman"))
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        lines = prepare(args.program, place)
        spm = str(ROOT / "tests/data/text/tiny.spm")
        arguments = {"marianmt": [str(place / "one"), str(place / "tokenizer")], "opus_mt": [str(place / "one")],
                     "m2m100": [str(place / "m2m"), spm], "nllb": [str(place / "nllb"), spm],
                     "files": [str(place / "one"), folder], "steps": [str(place / "one")]}
        for name in args.names or arguments:
            some = lines[2:8] if name in ("m2m100", "nllb") else lines[:12]
            a, b = (run(PROGRAMS / f"{name}.py", arguments[name], some, ours) for ours in (False, True))
            passed, failed = passed + (a == b), failed + (a != b)
            print(f"{'ok' if a == b else 'FAILED':7} {name:10} {len(a)} lines", flush=True)
            if a != b:
                print("\n".join(list(difflib.unified_diff(a, b, "ctranslate2", "dragoman", lineterm="", n=0))[:30]))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
