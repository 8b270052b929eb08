#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains small models with the real Marian and records how it translates with them.

    make_marian.py SOURCE TARGET OUT [NAME...]
    make_marian.py --check DATA

SOURCE and TARGET: text files of a corpus, line by line (plain or .xz). OUT gets

    train.*, align         text for training, and made-up alignments along the diagonal (for "guided")
    joint.spm              vocabulary of 260 subwords, trained by Marian
    input.txt              200 lines that were not trained on
    NAME.npz, NAME.yml     the model; its decoder settings
    NAME.beam1.tsv         score and translation of every line, as Marian gives them
    NAME.beam6.tsv         the same with beam 6, normalize 0.6, word penalty 0.1
    NAME.cut.tsv           "post" alone: the same with at most 0.7 times as many tokens as the source has, so that most are cut off
    NAME.nbest.txt         n-best lists of the first 20 lines, in Marian's format
    NAME.align.txt.gz      "guided" alone: soft alignment of the first 20 lines
    NAME.score.tsv         "pre" and "variants" in place of translations: Marian's scores of those of "post". Marian's
                           decoder does not normalise the keys and values of earlier words before self-attention, as its
                           training and its scorer do, and so translates badly with "pre"; "variants" hardly learns
    made.s2t.gz            a made-up shortlist as text, with words that the vocabulary lacks and pairs that stand there twice
    made.best.txt          what Marian takes of it with "--shortlist made.s2t.gz 30 6 0.05": source TAB target a line
    bpe.codes, .words.yml  "bpe" alone: codes of subword-nmt and subwords; its text went through sacremoses and the codes,
                           and what Marian writes is joined again
    student.*.bin          a model for intgemm, which learned the 200 lines by heart so that rounding hardly matters

Weights are cut to 8 bits of mantissa before anything is recorded, so that the archive of them is small; "backwards" and
"ssru" stay as Marian wrote them. tests/data/marian holds those that tests read (tests/unit/test_import_marian.c). --check lets
it translate again with the models in there and compares. Needs `pip install pymarian sentencepiece sacremoses subword-nmt`; a
few minutes a model on one core.
"""
import gzip
import json
import lzma
import os
import shutil
import struct
import subprocess
import sys
import tempfile

MODELS = {
    # name: (options, batches)
    "post": ("--label-smoothing 0.1", 1000),
    "pre": ("--tied-embeddings --transformer-preprocess n --transformer-postprocess da --transformer-postprocess-top n "
            "--transformer-ffn-activation relu --transformer-decoder-dim-ffn 24 --transformer-depth-scaling", 1000),
    "ssru": ("--tied-embeddings-all --transformer-decoder-autoreg rnn --dec-cell ssru --transformer-ffn-activation relu",
             1500),
    "aan": ("--tied-embeddings-all --transformer-decoder-autoreg average-attention --transformer-dim-aan 24 "
            "--transformer-aan-activation relu", 400),
    # Marian 1.12 takes the option for learned positions and has sinusoids all the same
    "embed": ("--tied-embeddings-src --tied-embeddings --output-omit-bias --transformer-train-position-embeddings "
                "--transformer-postprocess-emb nd", 400),
    "guided": ("--tied-embeddings-all --guided-alignment align --transformer-guided-alignment-layer 1 "
               "--transformer-decoder-autoreg rnn --dec-cell ssru --transformer-rnn-projection", 400),
    "both": ("--tied-embeddings-all --transformer-preprocess n --transformer-postprocess dan --transformer-postprocess-top n "
             "--transformer-tied-layers 1 1 2 --transformer-no-projection --transformer-decoder-autoreg rnn "
             "--dec-cell ssru --transformer-ffn-activation gelu", 400),
    "variants": ("--tied-embeddings-all --transformer-postprocess dar --transformer-decoder-autoreg average-attention "
                 "--transformer-aan-nogate --transformer-dim-aan 24 --lr-warmup 200", 1200),
    "highway": ("--tied-embeddings-all --transformer-postprocess dhn --transformer-ffn-depth 3 "
                "--transformer-decoder-ffn-depth 1", 1000),
    "apart": ("--tied-embeddings-all --transformer-postprocess dnh --transformer-decoder-autoreg rnn --dec-cell ssru", 1000),
    "average": ("--tied-embeddings-all --transformer-preprocess n --transformer-postprocess da --transformer-postprocess-top n "
                "--transformer-decoder-autoreg average-attention --transformer-dim-aan 24", 1000),
    "bpe": ("--tied-embeddings-all --transformer-decoder-autoreg average-attention --transformer-dim-aan 24", 1500),
    "backwards": ("--tied-embeddings-all --right-left", 250),
    "placeless": ("--tied-embeddings-all --transformer-disable-position-embeddings", 250),
}
# intgemm multiplies matrices of multiples of 64: this one is converted and recorded in 8 bits
STUDENT = ("--tied-embeddings-all --transformer-decoder-autoreg rnn --dec-cell ssru --transformer-ffn-activation relu "
           "--dim-emb 64 --transformer-heads 4 --transformer-dim-ffn 128 --transformer-dropout 0.1 --lr-warmup 100 "
           "--lr-decay-inv-sqrt 400 --exponential-smoothing 0.005", 2500)
DEPTHS = {"student": "--enc-depth 2 --dec-depth 1", "ssru": "--enc-depth 3 --dec-depth 2", "both": "--enc-depth 3 --dec-depth 3",
          "bpe": "--enc-depth 1 --dec-depth 1", "highway": "--enc-depth 2 --dec-depth 1", "apart": "--enc-depth 1 --dec-depth 1",
          "average": "--enc-depth 1 --dec-depth 2", "backwards": "--enc-depth 1 --dec-depth 1",
          "placeless": "--enc-depth 1 --dec-depth 1"}
COMMON = ("--type transformer "
          "--mini-batch 64 --maxi-batch 50 --cpu-threads 1 "
          "--workspace 500 --seed 1 --disp-freq 500 --save-freq 1000000 --valid-freq 1000000 --learn-rate 0.005 "
          "--optimizer adam --clip-norm 1 --sync-sgd --overwrite --max-length 60 ")
PIECES = "--vocabs joint.spm joint.spm --dim-vocabs 260 260 --sentencepiece-options --normalization_rule_name=identity "
# As preprocess.sh of OPUS-MT's releases with byte-pair encoding has it, by sacremoses in place of Moses' scripts
LANGUAGES = ("en", "de")
SMALL = "--dim-emb 16 --transformer-heads 2 --transformer-dim-ffn 32"
DECODE = "--cpu-threads 1 --quiet --mini-batch 1 --maxi-batch 1 --workspace 300"
WHOLE = ("backwards", "ssru", "student")
TRAIN_LINES, TEST_LINES, LONGEST, NBEST_LINES = 11000, 200, 60, 20


def lines(path):
    opening = lzma.open if path.endswith(".xz") else gzip.open if path.endswith(".gz") else open
    with opening(path, "rt", encoding="utf-8") as f:
        for line in f:
            yield line.rstrip("\n")


def write(path, text):
    with (gzip.open if path.endswith(".gz") else open)(path, "wt", encoding="utf-8") as f:
        f.writelines(line + "\n" for line in text)


def make_data(source, target):
    pairs = [(s, t) for s, t in zip(lines(source), lines(target)) if 10 < len(s) < LONGEST and 10 < len(t) < LONGEST]
    step = len(pairs) // (TRAIN_LINES + TEST_LINES)
    pairs = pairs[:: max(step, 1)][: TRAIN_LINES + TEST_LINES]
    write("train.src", [s for s, _ in pairs[:TRAIN_LINES]])
    write("train.trg", [t for _, t in pairs[:TRAIN_LINES]])
    write("input.txt", [s for s, _ in pairs[TRAIN_LINES:]])
    write("input.trg", [t for _, t in pairs[TRAIN_LINES:]])


def make_alignments():
    import sentencepiece
    model = sentencepiece.SentencePieceProcessor(model_file="joint.spm")
    size = lambda text: len(model.encode(text)) + 1
    with open("align", "w") as f:
        for s, t in zip(lines("train.src"), lines("train.trg")):
            n, m = size(s), size(t)
            f.write(" ".join("%d-%d" % (j * n // m, j) for j in range(m)) + "\n")


def marian(command, options, **more):
    return subprocess.run([sys.executable, "-c", "import sys, _pymarian; sys.exit(_pymarian.main(sys.argv[1:]))", command]
                          + options.split(), check=True, **more)


def train(name):
    options, batches = MODELS[name] if name != "student" else STUDENT
    if name == "student":
        options += " --train-sets input.txt input.trg " + PIECES
    elif name == "bpe":
        options += " --train-sets bpe.src bpe.trg --vocabs bpe.words.yml bpe.words.yml " + SMALL
    else:
        options += " --train-sets train.src train.trg " + PIECES + SMALL
    with open(name + ".log", "w") as log:
        marian("train", "%s --model %s.npz --after-batches %d %s %s" %
               (COMMON, name, batches, options, DEPTHS.get(name, "--enc-depth 2 --dec-depth 2")), stderr=log)
    for extra in ".optimizer.npz", ".progress.yml", ".yml", ".decoder.yml":
        if os.path.exists(name + ".npz" + extra):
            os.remove(name + ".npz" + extra)


def cut(name):
    """Weights with 8 bits of mantissa."""
    import numpy
    arrays = dict(numpy.load(name + ".npz"))
    for key, array in arrays.items():
        if array.dtype == numpy.float32:
            bits = numpy.ascontiguousarray(array).view(numpy.uint32)
            arrays[key] = ((bits + 0x8000) & numpy.uint32(0xFFFF0000)).view(numpy.float32)
    numpy.savez(name + ".npz", **arrays)


def subwords(text, language):
    """What the model reads: tokens of Moses, split by the codes."""
    import sacremoses
    from subword_nmt.apply_bpe import BPE
    plain = sacremoses.MosesPunctNormalizer(language, pre_replace_unicode_punct=True, post_remove_control_chars=True)
    moses = sacremoses.MosesTokenizer(language)
    with open("bpe.codes", encoding="utf-8") as codes:
        bpe = BPE(codes)
    return [bpe.process_line(moses.tokenize(plain.normalize(line), aggressive_dash_splits=True, return_str=True, escape=True))
            for line in text]


def joined(text, language):
    import sacremoses
    return sacremoses.MosesDetokenizer(language).detokenize(text.replace("@@ ", "").split())


def make_subwords():
    import sacremoses
    from subword_nmt.learn_bpe import learn_bpe
    tokens = []
    for path, language in zip(("train.src", "train.trg"), LANGUAGES):
        moses = sacremoses.MosesTokenizer(language)
        tokens += [moses.tokenize(line, aggressive_dash_splits=True, return_str=True) for line in lines(path)]
    with open("bpe.codes", "w", encoding="utf-8") as codes:
        learn_bpe(tokens, codes, 160)
    counts = {}
    for path, out, language in zip(("train.src", "train.trg"), ("bpe.src", "bpe.trg"), LANGUAGES):
        text = subwords(lines(path), language)
        write(out, text)
        for line in text:
            for token in line.split():
                counts[token] = counts.get(token, 0) + 1
    known = ["</s>", "<unk>"] + sorted((t for t in counts if counts[t] > 2), key=lambda t: (-counts[t], t))
    with open("bpe.words.yml", "w", encoding="utf-8") as f:
        f.writelines("%s: %d\n" % (json.dumps(token, ensure_ascii=False), i) for i, token in enumerate(known))


def decode(model, options, count=TEST_LINES):
    text = list(lines("input.txt"))[:count]
    bpe = model == "bpe.npz"
    if bpe:
        text = subwords(text, LANGUAGES[0])
    words = "bpe.words.yml" if bpe else "joint.spm"
    done = marian("decode", "--models %s --vocabs %s %s %s %s" % (model, words, words, DECODE, options),
                  input="".join(line + "\n" for line in text).encode(), stdout=subprocess.PIPE)
    return done.stdout.decode().splitlines()


def best_with_score(model, options):
    """The first of every n-best list, as "score TAB text"."""
    best = {}
    for line in decode(model, options + " --n-best"):
        number, text, _, score = line.split(" ||| ")[:4]
        if model == "bpe.npz":
            text = joined(text, LANGUAGES[1])
        best.setdefault(int(number), score + "\t" + text)
    return [best[i] for i in sorted(best)]


def write_bin(path, items):
    """Marian's binary format; items: name, type, shape, bytes."""
    padded = [(name.encode() + b"\0", kind, shape, data + bytes(-len(data) % 256)) for name, kind, shape, data in items]
    head = struct.pack("<QQ", 1, len(padded))
    head += b"".join(struct.pack("<QQQQ", len(n), kind, len(shape), len(data)) for n, kind, shape, data in padded)
    head += b"".join(n for n, _, _, _ in padded)
    head += b"".join(struct.pack("<%di" % len(shape), *shape) for _, _, shape, _ in padded)
    padding = ((len(head) + 8) // 256 + 1) * 256 - len(head) - 8
    with open(path, "wb") as f:
        f.write(head + struct.pack("<Q", padding) + bytes(padding) + b"".join(data for _, _, _, data in padded))


def make_alphas(name, path):
    """The same model as Bergamot stores its students: embeddings in 8 bits too, a multiplier of activations for every
    weight, the fork's codes of types. (A real one measures the multipliers; these allow inputs up to 12.)"""
    import numpy
    items = []
    for key, value in sorted(numpy.load(name + ".npz").items()):
        ending = key.rsplit("_", 1)[-1]
        embedding = "Wemb" in key
        if embedding or (ending.startswith("W") and len(ending) <= 2 and value.shape[0] > 1):
            multiplier = 127 / numpy.abs(value).max()
            q = numpy.rint(value * multiplier).astype(numpy.int8)
            data = (q if embedding else numpy.ascontiguousarray(q.T)).tobytes() + struct.pack("<f", multiplier)
            items.append((key, 0x4101, value.shape, data))
            items.append((key + "_QuantMultA", 0x404, (1,), struct.pack("<f", 127 / 12)))
        else:
            items.append((key, 0x101 if value.dtype == numpy.int8 else 0x404, value.shape, value.tobytes()))
    items.append(("none_QuantMultA", 0x404, (1,), struct.pack("<f", 127 / 12)))
    write_bin(path, items)


def record_scores(name):
    texts = [line.split("\t", 1)[1] for line in lines("post.beam6.tsv")]
    write("texts", texts)
    done = marian("score", "--model %s.npz --vocabs joint.spm joint.spm --train-sets input.txt texts --cpu-threads 1 --quiet "
                  "--mini-batch 1 --maxi-batch 1 --workspace 300" % name, stdout=subprocess.PIPE)
    write(name + ".score.tsv", ["%s\t%s" % pair for pair in zip(done.stdout.decode().split(), texts)])


def make_lexicon():
    import sentencepiece
    model = sentencepiece.SentencePieceProcessor(model_file="joint.spm")
    pieces = [model.id_to_piece(i) for i in range(model.get_piece_size())] + ["NULL", "nowhere", "nobody"]
    state, entries = 15, []
    for _ in range(760):
        state = (state * 1103515245 + 12345) % 2**31
        source, target = state // 7 % 60, state // 4099 % len(pieces)
        entries.append("%s %s %.2f" % (pieces[target], pieces[len(pieces) - 1 - source], state // 65536 % 50 / 100))
    entries.append(entries[0].rsplit(" ", 1)[0] + " 0.99")
    write("made.s2t.gz", entries)


def record_shortlist():
    decode("post.npz", "--shortlist made.s2t.gz 30 6 0.05 dump", 1)
    assert len(list(lines("dump.top"))) == 30
    write("made.best.txt", sorted(lines("dump.dic")))


def record(name, model=None, more=""):
    model = model or name + ".npz"
    if name in ("pre", "variants"):
        return record_scores(name)
    six = "--beam-size 6 --normalize 0.6 --word-penalty 0.1"
    write(name + ".beam1.tsv", best_with_score(model, "--beam-size 1" + more))
    write(name + ".beam6.tsv", best_with_score(model, six + more))
    if name != "bpe":
        write(name + ".nbest.txt", decode(model, six + " --n-best" + more, NBEST_LINES))
    if name == "post":
        write(name + ".cut.tsv", best_with_score(model, six + " --max-length-factor 0.7"))
    if name == "guided":
        write(name + ".align.txt.gz", decode(model, six + " --alignment soft", NBEST_LINES))


def check(data):
    """Records everything again for the models of a folder; the number of files that differ."""
    different = 0
    with tempfile.TemporaryDirectory() as work:
        for name in os.listdir(data):
            if not name.endswith((".tsv", ".txt", ".txt.gz")) or name == "input.txt":
                shutil.copy(os.path.join(data, name), work)
        shutil.copy(os.path.join(data, "input.txt"), work)
        os.chdir(work)
        names = [name for name in MODELS if os.path.exists(name + ".npz")] # "post" before "pre"
        for name in names:
            record(name)
        record_shortlist()
        record("student.intgemm8", "student.intgemm8.bin")
        for name in sorted(os.listdir(data)):
            if name.endswith((".tsv", ".txt", ".txt.gz")) and list(lines(os.path.join(data, name))) != list(lines(name)):
                print("%s is another one now" % name, file=sys.stderr)
                different += 1
    return different


def main():
    if sys.argv[1:2] == ["--check"]:
        sys.exit(check(os.path.abspath(sys.argv[2])) > 0)
    source, target, out = (os.path.abspath(path) for path in sys.argv[1:4])
    os.makedirs(out, exist_ok=True)
    os.chdir(out)
    if not os.path.exists("input.txt"):
        make_data(source, target)
    for name in sys.argv[4:] or list(MODELS) + ["student"]: # "post" before "pre"
        if name == "guided" and not os.path.exists("align"):
            make_alignments()
        if name == "bpe" and not os.path.exists("bpe.codes"):
            make_subwords()
        if not os.path.exists(name + ".npz"):
            train(name)
            if name not in WHOLE:
                cut(name)
        if name == "student":
            for kind in "intgemm8", "intgemm16":
                model = "student.%s.bin" % kind
                marian("convert", "--from student.npz --to %s --gemm-type %s" % (model, kind), stderr=subprocess.DEVNULL)
                record("student." + kind, model)
            make_alphas("student", "model.ende.intgemm.alphas.bin")
        record(name)
        if name == "post":
            make_lexicon()
            record_shortlist()
        print(name, "done", flush=True)


if __name__ == "__main__":
    main()
