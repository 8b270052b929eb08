# SPDX-License-Identifier: MIT
"""check_export.py MODEL.gguf [--program DRAGOMAN] [--text FILE] [--lines N]: exports a model to CTranslate2 and to Hugging Face
transformers, translates real lines greedily with both programs, and compares with our own translations in f32.

Needs ctranslate2, transformers, torch and sentencepiece (PyPI). Exit status 1 where fewer than 99 % of the lines are alike.
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LONGEST = 128


def by_ctranslate2(folder, lines):
    import ctranslate2
    import sentencepiece
    source, target = (sentencepiece.SentencePieceProcessor(str(folder / (side + ".spm"))) for side in ("source", "target"))
    translator = ctranslate2.Translator(str(folder), compute_type="float32")
    tokens = [source.encode(line, out_type=str) for line in lines]
    results = translator.translate_batch(tokens, beam_size=1, max_decoding_length=LONGEST, min_decoding_length=0)
    return [target.decode_pieces(r.hypotheses[0]) for r in results]


def by_transformers(folder, lines):
    import torch
    from transformers import MarianMTModel, MarianTokenizer
    model, tokenizer = MarianMTModel.from_pretrained(folder).eval(), MarianTokenizer.from_pretrained(folder)
    out = []
    with torch.no_grad():
        for i in range(0, len(lines), 20):
            batch = tokenizer(lines[i:i + 20], return_tensors="pt", padding=True)
            ids = model.generate(**batch, num_beams=1, max_length=LONGEST + 2)
            out += tokenizer.batch_decode(ids, skip_special_tokens=True)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--program", default=str(ROOT / "build" / "dragoman"))
    parser.add_argument("--text", default=str(ROOT / "tests" / "data" / "translate" / "newstest2014-1000.en"))
    parser.add_argument("--lines", type=int, default=200)
    args = parser.parse_args()
    lines = Path(args.text).read_text(encoding="utf-8").splitlines()[:args.lines]
    fine = True
    with tempfile.TemporaryDirectory() as place:
        for name, translate in (("ctranslate2", by_ctranslate2), ("huggingface", by_transformers)):
            folder, model = Path(place) / name, Path(place) / (name + ".gguf")
            subprocess.run([args.program, "export", name, args.model, "-o", str(folder), "-q"], check=True)
            subprocess.run([args.program, "import", name, str(folder), "-o", str(model), "-q"], check=True)
            ours = subprocess.run([args.program, "translate", "-m", str(model), "--raw", "--precision", "f32", "-b", "1", "-q",
                                   "--max-length", str(LONGEST)], input="\n".join(lines) + "\n", capture_output=True,
                                  text=True, check=True).stdout.splitlines()
            theirs = translate(folder, lines)
            alike = sum(a.strip() == b.strip() for a, b in zip(ours, theirs))
            good = alike >= 0.99 * len(lines)
            fine &= good
            print(f"{name}: {alike} of {len(lines)} lines alike{'' if good else '  FAILED'}", flush=True)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
