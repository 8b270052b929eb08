# SPDX-License-Identifier: MIT
"""Command line: python3 -m dragoman_training COMMAND --help. See training/README.md for whole recipes."""
import argparse
import json
import os
import sys
import time


def prepare(a):
    from . import corpus
    upsample = {k: int(v) for k, v in (x.split("=") for x in a.upsample)}
    extra = [(folder, names.split(",")) for folder, names in (x.split(":") for x in a.extra)]
    counts = corpus.prepare(a.folder, a.source, a.target, a.out, upsample, extra, a.seed, a.limit,
                            {k: int(v) for k, v in (x.split("=") for x in a.take)})
    print(json.dumps(counts, indent=1))


def templates(a):
    from . import templates as figures
    figures.write(a.out, a.count, a.seed)


def vocab(a):
    from . import subword
    print(subword.train(a.files, a.prefix, a.size, a.coverage, a.sentences, a.threads, a.seed, control=a.control))


def words(a):
    from . import wordlist
    print(f"{a.out}: {100 * wordlist.build(a.files, a.out, a.size):.2f} % of the words are in it")


def pack(a):
    """Packs parts one after the other, waiting for those that are still being distilled."""
    from . import corpus, distill, mix, multilingual, wordlist
    from .packed import Packed
    shares = None if a.augment else {}
    if a.directions and len(a.directions) != len(a.source):
        raise ValueError(f"pack: {len(a.source)} sources need as many --directions, not {len(a.directions)}")
    tags = None
    if a.directions:                                        # the first part has all of them
        tags = multilingual.Tags(sorted(set(multilingual.read_directions(a.directions[0]))), wordlist.load(a.vocab).piece_to_id)
        with open(os.path.join(os.path.dirname(a.out) or ".", "directions.json"), "w", encoding="utf-8") as f:
            json.dump(tags.card(), f)
    sizes = {}
    if a.manifest:
        with open(a.manifest, encoding="utf-8") as f:
            sizes = json.load(f)
    packed, first, began = [], 0, time.time()
    for i, path in enumerate(a.source):
        real, up = (names[i] if i < len(names) and names[i] != "-" else None for names in (a.target, a.passes))
        for name in filter(None, (path, real, up, *a.directions[i:i + 1])):
            distill.wait_for(name, sizes.get(os.path.basename(name), 0))
        sources = corpus.read_lines(path)
        reals = corpus.read_lines(real) if real else None
        passes = [int(x) for x in corpus.read_lines(up)] if up else None
        mades = distill.collect(a.made, path, a.made_workers) if a.made else None
        if mades and len(mades) < len(sources):
            mades += [""] * (len(sources) - len(mades))
        if mades:
            if any("\t" in line for line in mades):
                mades = mix.pick_all(sources, reals, mades, a.processes)
            distill.write_made(a.made, path, mades)
        before = None
        if tags:
            ways = distill.directions_of(a.directions[i], len(sources))
            before = [(tags.before("source", way), tags.before("target", way)) for way in ways]
        part = mix.mix(a.vocab, sources, reals, mades, passes, a.threshold, shares, a.seed, a.longest, a.processes,
                       first, a.source_vocab, before)
        first += len(sources)
        packed.append(part)
        print(f"pack {os.path.basename(path)}: {len(sources)} lines, {len(part)} pairs, {time.time() - began:.0f} s",
              flush=True)
        whole = Packed.join(packed)                         # after every part: training may begin with the first
        whole.save(a.out + ".tmp")
        os.replace(a.out + ".tmp", a.out)
    print(f"pack: {len(whole)} pairs, {len(whole.target) / 1e6:.1f}M target tokens", flush=True)


def turn(a):
    """Pairs for a teacher of the other direction: what was distilled, turned round."""
    from . import corpus, distill, mix
    sources = corpus.read_lines(a.source)
    mades = distill.collect(a.made, a.source, 1) if os.path.isdir(a.made) else corpus.read_lines(a.made)
    if os.path.isdir(a.made):                               # a worker that ran out of time leaves the last lines out
        mades += [""] * (len(sources) - len(mades))
    reals = corpus.read_lines(a.real) if a.real else [""] * len(sources)
    if not len(sources) == len(mades) == len(reals):
        raise ValueError(f"{a.source}, {a.made} and {a.real or '-'} have different numbers of lines")
    found = [pair for pair in map(mix.turned, sources, reals, mades) if pair]
    corpus.write_lines(a.out[0], (pair[0] for pair in found))
    corpus.write_lines(a.out[1], (pair[1] for pair in found))
    print(f"turn: {len(found)} of {len(sources)} pairs")


def run_distill(a):
    from . import distill
    distill.distill(a.teacher, a.files, a.out, a.beam, a.budget, a.rows, a.workers, a.device, a.manifest,
                    a.total_tokens, memory=a.memory, nbest=a.nbest, precision=a.precision, chunk=a.chunk,
                    program=a.dragoman if a.engine == "dragoman" else None, directions=a.directions)


def train(a):
    from . import recipe, train as training
    settings = recipe.load(a.recipe, a.set)
    out = a.out or os.path.join(a.work, settings["name"])
    if a.fresh:
        for name in ("state.pt", "log.csv"):
            if os.path.exists(os.path.join(out, name)):
                os.remove(os.path.join(out, name))
    training.Trainer(settings, a.work, out, a.device).run()


def translate(a):
    """Text in, text out with a trained model.pt (or a Hugging Face Marian folder): for test outputs."""
    import sentencepiece
    import torch
    from . import checkpoint, distill, search
    device = a.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if os.path.isdir(a.model):
        model, path = distill.load_teacher(a.model)
        spm = sentencepiece.SentencePieceProcessor(model_file=path)
    else:
        model = checkpoint.load_model(a.model)
        spm = sentencepiece.SentencePieceProcessor(model_proto=checkpoint.read(a.model)["vocab"])
    model = model.to(device, torch.bfloat16 if a.bf16 else torch.float32)
    model = model.fuse_for_decoding() if hasattr(model, "fuse_for_decoding") else model.eval()
    for pair in a.files:
        source, out = pair.split(":")
        with open(source, encoding="utf-8") as f:
            lines = [line.rstrip("\n") for line in f]
        began = time.time()
        found = spm.decode(search.translate_ids(model, spm.encode(lines), a.beam, a.rows))
        with open(out, "w", encoding="utf-8") as f:
            f.writelines(line + "\n" for line in found)
        print(f"{source}: {len(lines)} lines, {time.time() - began:.1f} s", flush=True)


def smoke(a):
    from . import smoke as test
    complaints = test.run(a.out, a.dragoman)
    if complaints:
        sys.exit("smoke: " + "; ".join(complaints))


def quality(a):
    from . import quality as faults
    faults.report(a.files, a.language, a.other)


def lexicon(a):
    import sentencepiece
    from . import align, corpus
    pieces = sentencepiece.SentencePieceProcessor()
    pieces.Load(a.vocab)
    found = sorted(align.table(a.lexicon, pieces, a.join, a.threshold).items(), key=lambda x: (x[0][0], -x[1]))
    corpus.write_lines(a.out, (f"{target} {source} {value:.6g}" for (source, target), value in found))


def agree(a):
    from . import agree as test
    test.compare(a.model, a.text, a.lines, a.dragoman)


def average(a):
    from . import checkpoint
    checkpoint.average(a.models, a.out)


def parser():
    top = argparse.ArgumentParser(prog="dragoman_training", description=__doc__)
    sub = top.add_subparsers(dest="command", required=True)

    def command(name, run, text):
        p = sub.add_parser(name, help=text, description=text)
        p.set_defaults(run=run)
        return p

    p = command("prepare", prepare, "clean and join parallel text (NAME.LANG.xz files of a folder)")
    p.add_argument("folder")
    p.add_argument("source")
    p.add_argument("target")
    p.add_argument("--out", required=True)
    p.add_argument("--upsample", action="append", default=[], metavar="NAME=N")
    p.add_argument("--extra", action="append", default=[], metavar="FOLDER:NAME,NAME", help="source-only text")
    p.add_argument("--limit", type=int, default=0)
    p.add_argument("--take", action="append", default=[], metavar="NAME=N", help="at most N pairs of a source, at random")
    p.add_argument("--seed", type=int, default=7)

    p = command("templates", templates, "English-German prices, percentages, dates and times")
    p.add_argument("--out", required=True, metavar="PREFIX")
    p.add_argument("--count", type=int, default=6000)
    p.add_argument("--seed", type=int, default=3)

    p = command("vocab", vocab, "train a SentencePiece model with byte fallback")
    p.add_argument("files", nargs="+")
    p.add_argument("--prefix", required=True)
    p.add_argument("--size", type=int, default=8000)
    p.add_argument("--coverage", type=float, default=0.9998)
    p.add_argument("--sentences", type=int, default=700_000)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seed", type=int, default=7)
    p.add_argument("--control", nargs="+", default=[], metavar="PIECE", help="pieces that no text becomes, such as '<2fr>'")

    p = command("words", words, "make a word vocabulary from text that 'dragoman tokenize' has split")
    p.add_argument("files", nargs="+")
    p.add_argument("--out", required=True, help="NAME.words")
    p.add_argument("--size", type=int, default=80000)

    p = command("distill", run_distill, "translate training sources with a teacher (GPU)")
    p.add_argument("files", nargs="+")
    p.add_argument("--teacher", required=True, help="Hugging Face Marian folder, one with model.pt and vocab.spm, or (dragoman) a "
                   "model file")
    p.add_argument("--out", required=True)
    p.add_argument("--engine", choices=("pytorch", "dragoman"), default="pytorch", help="what translates; dragoman goes on where an "
                   "earlier run was ended, and is one worker for pack (--made-workers 1)")
    p.add_argument("--dragoman", default="dragoman", metavar="PROGRAM", help="with --engine dragoman")
    p.add_argument("--precision", help="of dragoman (default: the device's)")
    p.add_argument("--chunk", type=int, default=250000, help="lines of a job of dragoman")
    p.add_argument("--beam", type=int, default=4)
    p.add_argument("--nbest", type=int, default=1, help="translations kept a line: pack takes the nearest to the real one")
    p.add_argument("--budget", type=float, default=0, help="seconds; greedy where beam search would not fit")
    p.add_argument("--rows", type=int, default=2048)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--device", default="cuda")
    p.add_argument("--memory", type=float, default=0.84, help="share of the GPU's memory for all workers together")
    p.add_argument("--manifest", help="JSON {file: bytes} of files that are still arriving")
    p.add_argument("--directions", nargs="+", default=[], metavar="FILE", help="of a model of many directions: a file for every file, "
                   "'en fr' a line")
    p.add_argument("--total-tokens", type=float, default=0, help="of all files, in the teacher's pieces: for budget")

    p = command("pack", pack, "choose targets, augment, encode: text to a packed corpus")
    p.add_argument("--vocab", required=True, help="SentencePiece model, or .words for tokenised text")
    p.add_argument("--source-vocab", default="", help="of the source, if it has its own")
    p.add_argument("--source", nargs="+", required=True)
    p.add_argument("--target", nargs="*", default=[], help="real targets, - for none")
    p.add_argument("--passes", nargs="*", default=[], help="repetitions a line, - for none")
    p.add_argument("--made", help="folder of distilled targets")
    p.add_argument("--made-workers", type=int, default=2)
    p.add_argument("--manifest")
    p.add_argument("--directions", nargs="+", default=[], metavar="FILE", help="for a model of many directions: a file for every "
                   "source, 'en fr' a line; writes directions.json beside OUT")
    p.add_argument("--threshold", type=float, default=0.5, help="word F1 from which a real target is used as well")
    p.add_argument("--no-augment", dest="augment", action="store_false")
    p.add_argument("--longest", type=int, default=126)
    p.add_argument("--processes", type=int, default=2)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--out", required=True)

    p = command("turn", turn, "distilled pairs turned round: synthetic sources, real targets, for the other direction")
    p.add_argument("source", help="the text that was translated")
    p.add_argument("made", help="its translations, one a line, or the folder where distill left them (one worker)")
    p.add_argument("--real", help="its real translations: equal ones are left out")
    p.add_argument("--out", nargs=2, required=True, metavar=("SOURCE", "TARGET"))

    p = command("train", train, "run a recipe")
    p.add_argument("recipe")
    p.add_argument("--work", default=".", help="folder with the recipe's data")
    p.add_argument("--out", help="run folder (default WORK/NAME)")
    p.add_argument("--device")
    p.add_argument("--fresh", action="store_true", help="do not resume")
    p.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")

    p = command("translate", translate, "translate text files with a trained model")
    p.add_argument("model")
    p.add_argument("files", nargs="+", metavar="IN:OUT")
    p.add_argument("--beam", type=int, default=1)
    p.add_argument("--rows", type=int, default=1024)
    p.add_argument("--device")
    p.add_argument("--bf16", action="store_true")

    p = command("smoke", smoke, "train a toy model on made-up text on the CPU and check everything")
    p.add_argument("--out", required=True, help="folder to work in; emptied first")
    p.add_argument("--dragoman", default="", help="the C program, to compare translations with")

    p = command("quality", quality, "shares of looping and of foreign lines in translations")
    p.add_argument("files", nargs="+", metavar="OUTPUT:REFERENCE")
    p.add_argument("--language", required=True, help="target language, e.g. de")
    p.add_argument("--other", default="en", help="the language it could be mistaken for")

    p = command("lexicon", lexicon, "a run's translation table as text, for `dragoman shortlist --lexicon`")
    p.add_argument("lexicon", help="lexicon.npz of the run folder")
    p.add_argument("--vocab", required=True, help="the SentencePiece model")
    p.add_argument("--join", action="append", default=[], metavar="TABLE", help="another text table to join")
    p.add_argument("--threshold", type=float, default=0.0005)
    p.add_argument("--out", required=True)

    p = command("agree", agree, "compare the C program's greedy translations with PyTorch's")
    p.add_argument("model", help="model file, e.g. models/en-de.gguf")
    p.add_argument("--text", required=True)
    p.add_argument("--lines", type=int, default=500)
    p.add_argument("--dragoman", required=True, help="the C program")

    p = command("average", average, "average several model.pt")
    p.add_argument("models", nargs="+")
    p.add_argument("--out", required=True)
    return top


def main():
    a = parser().parse_args()
    try:
        a.run(a)
    except (OSError, ValueError) as e:
        sys.exit(f"dragoman_training {a.command}: {e}")


if __name__ == "__main__":
    main()
