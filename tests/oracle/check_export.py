# SPDX-License-Identifier: MIT
"""check_export.py [MODEL.gguf] [--program DRAGOMAN] [--text FILE] [--lines N] [--beams 1,4]

With MODEL: exports it to CTranslate2 and to Hugging Face transformers, translates real lines with both programs, and
compares with our own translations in f32. Without: the same through transformers alone for small random models of M2M100,
NLLB (both places of the source's language), mBART and mBART-50, tied and untied, and MarianMT, tied and untied. They are
saved by transformers, imported, exported, imported again (every tensor must have the same bits) and loaded by transformers
from what was exported.

Needs ctranslate2 (with MODEL), transformers, torch and sentencepiece (PyPI). Exit status 1 where fewer than 99 % of the
lines are alike or a tensor changes.
"""
import argparse
import filecmp
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LONGEST = 40


def by_ctranslate2(folder, lines, beam):
    import ctranslate2
    import sentencepiece
    source, target = (sentencepiece.SentencePieceProcessor(str(folder / (side + ".spm"))) for side in ("source", "target"))
    translator = ctranslate2.Translator(str(folder), compute_type="float32")
    tokens = [source.encode(line, out_type=str) for line in lines]
    results = translator.translate_batch(tokens, beam_size=beam, max_decoding_length=LONGEST, min_decoding_length=0)
    return [target.decode_pieces(r.hypotheses[0]) for r in results]


def by_transformers(folder, lines, beam, direction=None):
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
    model, loading = AutoModelForSeq2SeqLM.from_pretrained(folder, output_loading_info=True)
    for what, names in loading.items():
        if names and not all("embed_positions" in str(name) for name in names):
            raise SystemExit(f"{folder.name}: {what}: {names}")  # nothing is made up, and nothing left over
    model, tokenizer = model.eval(), AutoTokenizer.from_pretrained(folder)
    more = {}
    if direction:
        tokenizer.src_lang = direction[0]
        more["forced_bos_token_id"] = language_id(tokenizer, direction[1])
    if direction and model.generation_config.decoder_start_token_id != 2:  # mBART begins with the language
        more = {}
    out = []
    with torch.no_grad():
        for i in range(0, len(lines), 20):
            batch = tokenizer(lines[i:i + 20], return_tensors="pt", padding=True)
            ids = model.generate(**batch, num_beams=beam, max_length=LONGEST + (3 if more else 2), **more)
            out += tokenizer.batch_decode(ids, skip_special_tokens=True)
    return out


def language_id(tokenizer, code):
    return tokenizer.get_lang_id(code) if hasattr(tokenizer, "get_lang_id") else tokenizer.convert_tokens_to_ids(code)


def ours(program, model, lines, beam, direction=None):
    command = [program, "translate", "-m", str(model), "--raw", "--precision", "f32", "-b", str(beam), "-q", "--max-length",
               str(LONGEST)] + (["-s", direction[0], "-t", direction[1]] if direction else [])
    run = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(run.stderr)
    return run.stdout.splitlines()


def compare(name, theirs, own, beam):
    alike = sum(" ".join(a.split()) == " ".join(b.split()) for a, b in zip(theirs, own))
    good = alike >= 0.99 * len(own)
    print(f"{name}, beam {beam}: {alike} of {len(own)} lines alike ({len(set(own))} different ones)"
          f"{'' if good else '  FAILED'}", flush=True)
    for a, b in [(a, b) for a, b in zip(theirs, own) if " ".join(a.split()) != " ".join(b.split())][:0 if good else 3]:
        print("    theirs", a, "\n    ours  ", b)
    return good


# ---- a model of ours ------------------------------------------------------------------------------

def check_model(args, lines, beams):
    fine = True
    with tempfile.TemporaryDirectory() as place:
        for name, translate in (("ctranslate2", by_ctranslate2), ("huggingface", by_transformers)):
            folder, model = Path(place) / name, Path(place) / (name + ".gguf")
            subprocess.run([args.program, "export", name, args.model, "-o", str(folder), "-q"], check=True)
            subprocess.run([args.program, "import", name, str(folder), "-o", str(model), "-q"], check=True)
            for beam in beams:
                own = ours(args.program, model, lines, beam)
                fine &= compare(name, translate(folder, lines, beam), own, beam)
    return fine & check_scores(args, lines[:60])


def check_scores(args, lines):
    """Log-probabilities by CTranslate2, by us, both in f32, and by transformers in f64 of the same translations."""
    import ctranslate2
    import sentencepiece
    import torch
    from transformers import MarianMTModel
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        for name in ("ctranslate2", "huggingface"):
            subprocess.run([args.program, "export", name, args.model, "-o", str(place / name), "-q"], check=True)
        spm = [sentencepiece.SentencePieceProcessor(str(place / "ctranslate2" / (s + ".spm"))) for s in ("source", "target")]
        tokens = [spm[0].encode(line, out_type=str) for line in lines]
        translator = ctranslate2.Translator(str(place / "ctranslate2"), compute_type="float32")
        theirs = translator.translate_batch(tokens, beam_size=6, length_penalty=0, return_scores=True, max_decoding_length=250,
                                            min_decoding_length=0)
        again = str(place / "again.gguf")  # without a shortlist, which would have a softmax of its own
        subprocess.run([args.program, "import", "ctranslate2", str(place / "ctranslate2"), "-o", again, "-q"], check=True)
        run = subprocess.run([args.program, "translate", "-m", again, "--raw", "--precision", "f32", "-b", "6", "--scores", "-q",
                              "--length-penalty", "0", "--finish", "margin", "--margin", "0", "--max-length", "250"],
                             input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
        own = [line.rsplit(" ||| ", 1) for line in run.stdout.splitlines()]
        model = MarianMTModel.from_pretrained(place / "huggingface").double().eval()
        ids = json.loads((place / "huggingface" / "vocab.json").read_text(encoding="utf-8"))
    end, off = ids["</s>"], [[], [], []]
    for source, result, (text, score) in zip(tokens, theirs, own):
        if spm[1].decode_pieces(result.hypotheses[0]).strip() != text.strip():
            continue
        target = [ids[token] for token in result.hypotheses[0]] + [end]
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([[ids[token] for token in source] + [end]]),
                           decoder_input_ids=torch.tensor([[model.config.decoder_start_token_id] + target[:-1]])).logits[0]
        exact = float(torch.log_softmax(logits, -1)[range(len(target)), target].sum())
        pairs = ((float(score), result.scores[0]), (float(score), exact), (result.scores[0], exact))
        for i, (a, b) in enumerate(pairs):
            off[i].append(abs(a - b))
    good = len(off[0]) >= 0.99 * len(lines) and max(max(one) for one in off) < 1e-3
    print(f"log-probabilities of {len(off[0])} of {len(lines)} lines: ours and CTranslate2's within {max(off[0]):.1e}, ours and "
          f"f64 {max(off[1]):.1e}, CTranslate2's and f64 {max(off[2]):.1e}{'' if good else '  FAILED'}", flush=True)
    return good


# ---- models of transformers -----------------------------------------------------------------------

SHAPE = dict(d_model=48, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=3,
             encoder_ffn_dim=80, decoder_ffn_dim=64, max_position_embeddings=200, dropout=0.0, attention_dropout=0.0,
             activation_dropout=0.0, encoder_layerdrop=0.0, decoder_layerdrop=0.0, scale_embedding=True)


def pieces_model(text, kind, place):
    import sentencepiece
    sentencepiece.SentencePieceTrainer.train(input=str(text), model_prefix=str(place / kind), vocab_size=400, model_type=kind,
                                             character_coverage=1.0, minloglevel=2)
    return place / (kind + ".model")


def randomise(model, end, untied, seed):
    """Weights that make translations depend on the source, and an end symbol that grows with the position."""
    import torch
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            noise = torch.randn(p.shape, generator=generator)
            if p.dim() == 1:
                p.copy_(noise * 0.1 + (1 if "norm" in name and name.endswith("weight") else 0))
            elif "embed_positions" in name and "mbart" not in type(model).__name__.lower():
                continue
            else:
                p.copy_(noise * (0.3 if "embed" in name or "shared" in name or "lm_head" in name else 1.5 / p.shape[-1] ** 0.5))
        tables = [model.get_output_embeddings().weight] + ([model.model.decoder.embed_tokens.weight] if untied else [])
        for table in tables:  # some slow sines speak for the end alone
            table[:, 8:11] = 0
            table[end, 8:11] = 4
        if "mbart" in type(model).__name__.lower():
            for side in (model.model.encoder, model.model.decoder):
                weight = side.embed_positions.weight
                weight[:, 8:11] = torch.clamp(torch.arange(len(weight)) / 20, max=2)[:, None]
    return model.eval()


def write(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def make(name, folder, text, place):
    """A folder as transformers saves it; returns a direction."""
    import sentencepiece
    import transformers as t
    from transformers.models.m2m_100 import tokenization_m2m_100
    kind, _, variant = name.partition("/")
    spm = pieces_model(text, "bpe" if kind in ("nllb", "m2m100") else "unigram", place)
    data = spm.read_bytes()
    processor = sentencepiece.SentencePieceProcessor(str(spm))
    pieces = [processor.id_to_piece(i) for i in range(processor.get_piece_size())]
    folder.mkdir()
    common = dict(SHAPE, tie_word_embeddings=variant != "untied", bos_token_id=0, pad_token_id=1, eos_token_id=2,
                  decoder_start_token_id=2)
    tokenizer, direction = {}, None
    if kind == "marian":
        vocab = {"</s>": 0, "<unk>": 1, **{p: i + 2 for i, p in enumerate(pieces[3:])}, "<pad>": len(pieces) - 1}
        common.update(vocab_size=len(vocab), decoder_vocab_size=len(vocab), bos_token_id=0, eos_token_id=0, forced_eos_token_id=0,
                      pad_token_id=len(vocab) - 1, decoder_start_token_id=len(vocab) - 1, activation_function="swish")
        model = t.MarianMTModel(t.MarianConfig(**common))
        write(folder / "vocab.json", vocab)
        for side in ("source.spm", "target.spm"):
            (folder / side).write_bytes(data)
        tokenizer = dict(tokenizer_class="MarianTokenizer", source_lang="eng", target_lang="deu")
    else:
        (folder / "sentencepiece.bpe.model").write_bytes(data)
    if kind == "m2m100":
        codes = tokenization_m2m_100.FAIRSEQ_LANGUAGE_CODES["m2m100"]
        vocab = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, **{p: i + 4 for i, p in enumerate(reversed(pieces[3:]))}}
        write(folder / "vocab.json", vocab)
        model = t.M2M100ForConditionalGeneration(t.M2M100Config(**common, vocab_size=len(vocab) + len(codes) + 8))
        tokenizer, direction = dict(tokenizer_class="M2M100Tokenizer"), ("en", "de")
    if kind == "nllb":
        codes = ["ace_Latn", "deu_Latn", "eng_Latn", "fra_Latn"]
        model = t.M2M100ForConditionalGeneration(t.M2M100Config(**common, vocab_size=len(pieces) + 2 + len(codes)))
        tokenizer = dict(tokenizer_class="NllbTokenizer", additional_special_tokens=codes, legacy_behaviour=variant == "legacy")
        direction = ("eng_Latn", "deu_Latn")
    if kind in ("mbart", "mbart50"):
        from transformers.models.mbart import tokenization_mbart
        from transformers.models.mbart50 import tokenization_mbart50
        codes = (tokenization_mbart if kind == "mbart" else tokenization_mbart50).FAIRSEQ_LANGUAGE_CODES
        german = len(pieces) + 1 + codes.index("de_DE")
        common["decoder_start_token_id"] = german if kind == "mbart" else 2
        model = t.MBartForConditionalGeneration(t.MBartConfig(**common, vocab_size=len(pieces) + 2 + len(codes)))
        tokenizer = dict(tokenizer_class="MBartTokenizer" if kind == "mbart" else "MBart50Tokenizer")
        direction = ("en_XX", "de_DE")
    randomise(model, model.config.eos_token_id, variant == "untied", sum(map(ord, name)))
    model.generation_config.update(num_beams=4, max_length=64, early_stopping="never" if variant == "untied" else True,
                                   forced_eos_token_id=model.config.eos_token_id)
    model.save_pretrained(folder)
    write(folder / "tokenizer_config.json", tokenizer)
    return direction


def check_folders(args, lines, beams):
    fine = True
    for name in ("marian", "marian/untied", "m2m100", "m2m100/untied", "nllb", "nllb/legacy", "mbart", "mbart/untied",
                 "mbart50", "mbart50/untied"):
        if args.only and args.only != name:
            continue
        with tempfile.TemporaryDirectory() as temporary:
            place = Path(temporary)
            first, folder, again = place / "first.gguf", place / "exported", place / "again.gguf"
            direction = make(name, place / "saved", args.text, place)
            subprocess.run([args.program, "import", "huggingface", str(place / "saved"), "-o", str(first), "-q",
                            "--name", "same"], check=True)
            subprocess.run([args.program, "export", "huggingface", str(first), "-o", str(folder), "-q"], check=True)
            subprocess.run([args.program, "import", "huggingface", str(folder), "-o", str(again), "-q", "--name", "same"],
                           check=True)
            same = filecmp.cmp(first, again, shallow=False)
            print(f"{name}: imported again, the model file is {'the same' if same else 'another one  FAILED'}", flush=True)
            fine &= same
            for beam in beams:
                own = ours(args.program, again, lines, beam, direction)
                fine &= compare(name, by_transformers(folder, lines, beam, direction), own, beam)
    return fine


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?")
    parser.add_argument("--program", default=str(ROOT / "build" / "dragoman"))
    parser.add_argument("--text", default=str(ROOT / "tests" / "data" / "translate" / "newstest2014-1000.en"))
    parser.add_argument("--lines", type=int, default=200)
    parser.add_argument("--beams", help="by default 1 with a model, else 1,4")
    parser.add_argument("--only", help="one of the models that are made")
    args = parser.parse_args()
    lines = Path(args.text).read_text(encoding="utf-8").splitlines()[:args.lines]
    beams = [int(beam) for beam in (args.beams or ("1" if args.model else "1,4")).split(",")]
    return 0 if (check_model if args.model else check_folders)(args, lines, beams) else 1


if __name__ == "__main__":
    sys.exit(main())
