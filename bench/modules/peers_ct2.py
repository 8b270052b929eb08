# SPDX-License-Identifier: MIT
"""CTranslate2 as the rival of bench/peers: converts a MarianMT directory and translates on request.

    peers_ct2.py convert DIR OUT TYPE          DIR is a Hugging Face MarianMT directory, TYPE float32, int16, int8
    peers_ct2.py serve MODEL SPM TYPE LINE     one JSON request a line on stdin, one JSON answer a line on stdout

First comes {"ready": version, "startup": seconds}: loading vocabulary and model and making the first token of LINE,
without the start of Python and its imports. A request and its answer:

    {"input": FILE, "output": FILE, "beam": 4, "unit": "examples", "batch": 32, "max_length": 256, "min_length": 1,
     "vmap": false, "length_penalty": 1, "lines": 0}
    {"seconds": text to text, "decode": translate_batch alone, "tokens": target tokens, "p50_ms": ...}

unit is CTranslate2's batch_type, "examples" or "tokens", or "single": every line is a call of its own, and p50_ms is the
median of their times. lines limits the input to its first lines; 0: all.

The stock converter assumes that a Marian decoder starts from a zero vector. Some models start from a learned <pad>
row; the loader below keeps that row, which is right for both kinds. It also moves <pad> to the third place of the
vocabulary: CTranslate2 4.8.4 remembers where the start token lay among the candidates of the first batch that used a vmap
and takes whatever lies there later, or fails, unless the place is always the same.
"""
import json
import statistics
import sys
import time
from pathlib import Path

import entry


def convert(directory, output, quantization):
    from ctranslate2.converters import TransformersConverter
    from ctranslate2.converters import transformers as loaders

    def start_third(tokens):
        """Order of the ids with the last one, <pad>, behind </s> and <unk>."""
        count = len(tokens)
        if tokens[count - 1] != "<pad>" or sorted(tokens[:2]) != ["</s>", "<unk>"]:
            return list(range(count))
        return [0, 1, count - 1, *range(2, count - 1)]

    class KeepStartRow(loaders.MarianMTLoader):
        def __call__(self, model, tokenizer):
            self.tokens = loaders.BartLoader.get_vocabulary(self, model, tokenizer)
            return super().__call__(model, tokenizer)

        def get_model_spec(self, model):
            order = start_third(self.tokens)
            modules = (model.model.encoder.embed_tokens, model.model.decoder.embed_tokens, model.lm_head)
            for weight in {id(m.weight): m.weight for m in modules}.values():
                weight.data = weight.data[order]
            model.final_logits_bias = model.final_logits_bias[:, order]
            model.config.normalize_before = False
            model.config.normalize_embedding = False
            return loaders.BartLoader.get_model_spec(self, model)

        def set_decoder(self, spec, decoder):
            loaders.BartLoader.set_decoder(self, spec, decoder)

        def set_config(self, config, model, tokenizer):
            config.eos_token = tokenizer.eos_token
            config.unk_token = tokenizer.unk_token
            config.decoder_start_token = tokenizer.pad_token

        def get_vocabulary(self, model, tokenizer):
            return [self.tokens[i] for i in start_third(self.tokens)]

    loaders._MODEL_LOADERS["MarianConfig"] = KeepStartRow()
    TransformersConverter(directory).convert(output, quantization=quantization, force=True)


def load(model, spm, kind, line):
    import ctranslate2
    import sentencepiece

    begin = time.perf_counter()
    pieces = sentencepiece.SentencePieceProcessor(model_file=spm)
    translator = ctranslate2.Translator(model, device="cpu", inter_threads=1, intra_threads=1, compute_type=kind)
    translator.translate_batch([pieces.encode(line, out_type=str) + end_of_source(model)], beam_size=1, max_decoding_length=1)
    print(json.dumps({"ready": ctranslate2.__version__, "startup": time.perf_counter() - begin}), flush=True)
    return pieces, translator


def end_of_source(model):
    """What a caller appends to a sentence: folders of `dragoman export ctranslate2` have CTranslate2 append it."""
    config = json.loads((Path(model) / "config.json").read_text(encoding="utf8"))
    return [] if config.get("add_source_eos") else ["</s>"]


def translate(pieces, translator, lines, r, end):
    """Texts, target tokens and seconds inside CTranslate2."""
    options = dict(beam_size=r["beam"], length_penalty=r["length_penalty"], max_decoding_length=r["max_length"],
                   min_decoding_length=r["min_length"], max_input_length=0, use_vmap=r["vmap"])
    if r["unit"] != "single":
        options.update(max_batch_size=r["batch"], batch_type=r["unit"])
    sources = [pieces.encode(x, out_type=str) + end for x in lines]
    begin = time.perf_counter()
    results = translator.translate_batch(sources, **options)
    seconds = time.perf_counter() - begin
    return [pieces.decode(x.hypotheses[0]) for x in results], sum(len(x.hypotheses[0]) for x in results), seconds


def serve(model, spm, kind, line):
    pieces, translator = load(model, spm, kind, line)
    end = end_of_source(model)
    for request in sys.stdin:
        r = json.loads(request)
        with open(r["input"], encoding="utf8") as f:
            lines = f.read().split("\n")[:-1]
        lines = lines[:r["lines"] or None]
        calls = [[x] for x in lines] if r["unit"] == "single" else [lines]
        texts, tokens, decode, times = [], 0, 0.0, []
        for call in calls:
            begin = time.perf_counter()
            answer = translate(pieces, translator, call, r, end)
            times.append(time.perf_counter() - begin)
            texts += answer[0]
            tokens += answer[1]
            decode += answer[2]
        with open(r["output"], "w", encoding="utf8") as f:
            f.writelines(t + "\n" for t in texts)
        print(json.dumps({"seconds": sum(times), "decode": decode, "tokens": tokens,
                          "p50_ms": 1000 * statistics.median(times)}), flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 5 and sys.argv[1] == "convert":
        entry.run(lambda: convert(*sys.argv[2:]))
    elif len(sys.argv) == 6 and sys.argv[1] == "serve":
        entry.run(lambda: serve(*sys.argv[2:]))
    else:
        sys.exit(__doc__)
