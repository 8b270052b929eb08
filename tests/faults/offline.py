# SPDX-License-Identifier: MIT
"""Commands that tests disturb: tests/system/faults lets calls fail in them, tests/system/kills kills them.

In the words of a command {t} is the folder of what `prepare` made, {o} that of the output, {d} tests/data. All are small:
some run in milliseconds, so that thousands of runs are possible.
"""

import gzip
import os
import subprocess
import tempfile
import zipfile
from collections import namedtuple
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DATA = ROOT / "tests/data"
MODELS = DATA / "models"

# name; its words; files that it writes, into {o}; files that may stay there when it is killed: what the manual says
Command = namedtuple("Command", "name words writes stays", defaults=((), ()))

MODEL = "{d}/models/transformer-pieces.gguf"
COMMANDS = [
    Command(name, words.split(), tuple(writes.split()), tuple(stays.split()))
    for name, words, writes, stays in (
        ("translate", f"translate -m {MODEL} {{t}}/in.en", "", ""),
        ("translate, beam", f"translate -m {MODEL} -b 3 --nbest 2 --json --alignment --threads 2 {{t}}/in.en", "", ""),
        ("translate, recurrent", "translate -m {d}/models/rnn-bahdanau-pieces.gguf {t}/in.en", "", ""),
        ("translate, pairs", "translate -m {d}/models/double-pieces.gguf {t}/in.en", "", ""),
        ("translate, terms", f"translate -m {MODEL} --terms {{t}}/terms.tsv {{t}}/in.en", "", ""),
        (
            "translate --resume",
            f"translate -q -m {MODEL} --window 2 --threads 1 -i {{t}}/in.en -o {{o}}/out --resume",
            "out",
            "out.progress out.progress.new",
        ),
        (
            "translate a page",
            f"translate -q -m {MODEL} -i {{t}}/page.html -o {{o}}/out.html",
            "out.html",
            "out.html.lines out.html.lines.progress out.html.lines.progress.new",
        ),
        (
            "translate an office document",
            f"translate -q -m {MODEL} -i {{t}}/text.odt -o {{o}}/out.odt",
            "out.odt",
            "out.odt.lines out.odt.lines.progress out.odt.lines.progress.new",
        ),
        (
            "translate a gettext file",
            f"translate -q -m {MODEL} -i {{t}}/some.po -o {{o}}/out.po",
            "out.po",
            "out.po.lines out.po.lines.progress out.po.lines.progress.new",
        ),
        ("score", f"score -m {MODEL} {{t}}/in.en {{t}}/in.de", "", ""),
        ("eval", "eval {t}/in.en {t}/in.de --metric bleu --metric chrf --samples 50", "", ""),
        ("detect", "detect -i {t}/in.en", "", ""),
        ("tokenize", "tokenize en -i {t}/in.en", "", ""),
        ("inspect", f"inspect {MODEL} --tensors", "", ""),
        ("import, Marian", "import marian {d}/marian/ssru.npz --vocabs {d}/marian/joint.spm -q -o {o}/m.gguf", "m.gguf", ""),
        ("import, Bergamot", "import bergamot {t}/ende -q -o {o}/m.gguf", "m.gguf", ""),
        ("import, Hugging Face", "import huggingface {d}/import/marian-odd -q -o {o}/m.gguf", "m.gguf", ""),
        ("import, fairseq", "import fairseq {d}/import/fairseq-old -q -o {o}/m.gguf", "m.gguf", ""),
        ("import, OpenNMT-py", "import opennmt-py {d}/import/opennmt-3 -q -o {o}/m.gguf", "m.gguf", ""),
        ("import, CTranslate2", "import ctranslate2 {d}/ctranslate2/opennmt-py -q -o {o}/m.gguf", "m.gguf", ""),
        ("import, Nematus", "import nematus {d}/nematus/theano.npz -q -o {o}/m.gguf", "m.gguf", ""),
        ("export", f"export ctranslate2 {MODEL} -q -o {{o}}/ct2", "ct2", ""),
        ("quantize", f"quantize {MODEL} --type i8 --calibrate {{t}}/in.en -q -o {{o}}/m.gguf", "m.gguf", ""),
        ("align", "align {t}/al.en {t}/al.de -q -o {o}/out --lex-s2t {o}/s2t.gz --lex-t2s {o}/t2s", "out s2t.gz t2s", ""),
        (
            "shortlist",
            f"shortlist -m {MODEL} -q -o {{o}}/m.gguf {{t}}/al.en {{t}}/al.de --write-lexicon {{o}}/lex",
            "m.gguf lex",
            "",
        ),
        ("cluster", f"cluster -m {MODEL} -q -o {{o}}/m.gguf --centroids 6 --best 2 {{t}}/al.en", "m.gguf", ""),
        ("lm train", "lm train {t}/al.de -n 3 --discount-fallback -q --memory 1M -o {o}/lm.arpa", "lm.arpa", ""),
        ("lm convert", "lm convert {t}/lm.arpa -o {o}/lm.lm", "lm.lm", ""),
        ("phrase extract", "phrase extract {t}/al.en {t}/al.de {t}/al.al -q -o {o}/pb.pt", "pb.pt", ""),
        (
            "phrase extract, text",
            "phrase extract {t}/al.en {t}/al.de {t}/al.al -q -o {o}/pb.txt.gz --write-reordering {o}/pb.r",
            "pb.txt.gz pb.r",
            "",
        ),
        ("phrase translate", "phrase translate {t}/pb.pt {t}/lm.arpa -i {t}/dev.en --nbest 3 -q -o {o}/out", "out", ""),
        (
            "mert",
            "mert {t}/pb.pt {t}/lm.arpa -i {t}/dev.en -R {t}/dev.de --rounds 2 --restarts 1 --directions 2 -n 8 -q -o {o}/w",
            "w",
            "",
        ),
        ("average", f"average {MODEL} {MODEL} -q -o {{o}}/m.gguf", "m.gguf", ""),
        (
            "shrink",
            "shrink {d}/models/rnn-bahdanau-pieces.gguf {d}/models/rnn-bahdanau-pieces.gguf --size 0.78 -q -o {o}/m.gguf",
            "m.gguf",
            "",
        ),
        (
            "tune",
            f"tune -m {MODEL} -i {{t}}/in.en -r {{t}}/in.de --precision f32 --finish refill --beam-width 0.01 --search beam "
            "--beam 2 --shortlist all --budget 100 -q -o {o}/m.gguf --html {o}/page.html --timings {o}/timings",
            "m.gguf page.html timings",
            "timings",
        ),
        ("lattice", "lattice {t}/nbest --from-nbest --prune 8 -o {o}/out.lat", "out.lat", ""),
        ("mbr", "mbr {t}/nbest -o {o}/out", "out", ""),
    )
]

# On the software GPU, of which every call is slow.
DEVICE = "--device cuda --precision f32 --threads 1 {t}/dev.en"
ON_DEVICE = [
    Command(name, words.split())
    for name, words in (
        ("gpu, beam", f"translate -m {MODEL} -b 2 --max-length 4 {DEVICE}"),
        ("gpu, recurrent", f"translate -m {{d}}/models/rnn-bahdanau-pieces.gguf -b 1 --max-length 4 {DEVICE}"),
        ("gpu, score", f"score -m {MODEL} --device cuda --precision f32 {{t}}/dev.en {{t}}/dev.de"),
    )
]


def scratch(name):
    """A new folder, in memory where that is possible: thousands of runs wait for the disk otherwise."""
    memory = "/dev/shm"
    return Path(tempfile.mkdtemp(prefix=f"dragoman-{name}-", dir=memory if os.access(memory, os.W_OK) else None))


def words(command, folder, out):
    return [w.format(t=folder, o=out, d=DATA) for w in command.words]


def prepare(program, folder):
    """Makes what the commands read."""

    def run(*more):
        subprocess.run([program, *map(str, more)], check=True, stdout=subprocess.DEVNULL)

    en = [f"the {c} house {i}" for i, c in enumerate(("blue", "small", "old", "red", "new", "tall"))]
    de = [f"das {c} Haus {i}" for i, c in enumerate(("blaue", "kleine", "alte", "rote", "neue", "hohe"))]
    pairs = [
        ("the house", "das Haus"),
        ("a blue flower", "eine blaue Blume"),
        ("the flower", "die Blume"),
        ("a house", "ein Haus"),
    ] * 8
    for name, lines in (
        ("in.en", en * 2),
        ("in.de", de * 2),
        ("al.en", en + [e for e, _ in pairs]),
        ("al.de", de + [d for _, d in pairs]),
        ("dev.en", en[:4]),
        ("dev.de", de[:4]),
    ):
        (folder / name).write_text("".join(x + "\n" for x in lines))
    (folder / "terms.tsv").write_text("house\tHaus\n")
    (folder / "page.html").write_text(
        "<html><title>A house</title><p>The <b>blue</b> house.</p><p>A flower &amp; more.</p></html>\n"
    )
    (folder / "some.po").write_text(
        'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "The house"\nmsgstr ""\n'
    )
    (folder / "nbest").write_text("0 ||| a house ||| x= -1 ||| -1\n0 ||| the house ||| x= -2 ||| -2\n1 ||| a ||| x= -1 ||| -1\n")
    (folder / "ende").mkdir()
    (folder / "ende/model.ende.intgemm.alphas.bin").write_bytes((DATA / "marian/model.ende.intgemm.alphas.bin").read_bytes())
    (folder / "ende/vocab.ende.spm").write_bytes((DATA / "marian/joint.spm").read_bytes())
    office(folder / "text.odt")
    run("align", folder / "al.en", folder / "al.de", "-q", "-o", folder / "al.al")
    run("lm", "train", folder / "al.de", "-n", 2, "--discount-fallback", "-q", "-o", folder / "lm.arpa")
    run("phrase", "extract", folder / "al.en", folder / "al.de", folder / "al.al", "-q", "-o", folder / "pb.pt")


def office(path):
    text = (
        '<?xml version="1.0" encoding="UTF-8"?><office:document-content '
        'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
        'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:text><text:p>The house.</text:p>'
        "<text:p>A <text:span>blue</text:span> flower.</text:p></office:text></office:body></office:document-content>"
    )
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("mimetype", "application/vnd.oasis.opendocument.text")
        z.writestr("content.xml", text)
        z.writestr(
            "META-INF/manifest.xml",
            '<?xml version="1.0"?><manifest:manifest ' 'xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>',
        )


def content(folder):
    """Everything below a folder: name -> bytes; of compressed files what they hold."""
    found = {}
    for p in sorted(folder.rglob("*")):
        if p.is_file():
            data = p.read_bytes()
            found[str(p.relative_to(folder))] = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    return found
