# SPDX-License-Identifier: MIT
"""CTranslate2 as the rival of bench/peers: converts a MarianMT directory and translates on request.

    peers_ct2.py convert DIR OUT TYPE     DIR is a Hugging Face MarianMT directory, TYPE float32, int8, ...
    peers_ct2.py serve MODEL SPM          one JSON request a line on stdin, one JSON answer a line on stdout

A request: {"input": FILE, "output": FILE, "beam": 4, "batch": 32, "max_length": 256, "length_penalty": 1}.
The answer: {"seconds": text to text, "decode": translate_batch alone, "tokens": target tokens, "version": ...}.

The stock converter assumes that a Marian decoder starts from a zero vector. Some models start from a learned <pad>
row; the loader below keeps that row, which is right for both kinds.
"""
import json
import sys
import time


def convert(directory, output, quantization):
    from ctranslate2.converters import TransformersConverter
    from ctranslate2.converters import transformers as loaders

    class KeepStartRow(loaders.MarianMTLoader):
        def get_model_spec(self, model):
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
            return loaders.BartLoader.get_vocabulary(self, model, tokenizer)

    loaders._MODEL_LOADERS["MarianConfig"] = KeepStartRow()
    TransformersConverter(directory).convert(output, quantization=quantization, force=True)


def serve(model, spm):
    import ctranslate2
    import sentencepiece

    pieces = sentencepiece.SentencePieceProcessor(model_file=spm)
    translator = ctranslate2.Translator(model, device="cpu", inter_threads=1, intra_threads=1,
                                        compute_type="default")
    print(json.dumps({"ready": ctranslate2.__version__}), flush=True)
    for line in sys.stdin:
        r = json.loads(line)
        with open(r["input"], encoding="utf8") as f:
            lines = f.read().split("\n")[:-1]
        begin = time.perf_counter()
        sources = [pieces.encode(x, out_type=str) + ["</s>"] for x in lines]
        middle = time.perf_counter()
        results = translator.translate_batch(sources, beam_size=r["beam"], max_batch_size=r["batch"],
                                             batch_type="examples", length_penalty=r["length_penalty"],
                                             max_decoding_length=r["max_length"], max_input_length=0)
        decoded = time.perf_counter()
        texts = [pieces.decode(x.hypotheses[0]) for x in results]
        end = time.perf_counter()
        with open(r["output"], "w", encoding="utf8") as f:
            f.writelines(t + "\n" for t in texts)
        print(json.dumps({"seconds": end - begin, "decode": decoded - middle,
                          "tokens": sum(len(x.hypotheses[0]) for x in results)}), flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 5 and sys.argv[1] == "convert":
        convert(*sys.argv[2:])
    elif len(sys.argv) == 4 and sys.argv[1] == "serve":
        serve(*sys.argv[2:])
    else:
        sys.exit(__doc__)
