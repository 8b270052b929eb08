# SPDX-License-Identifier: MIT
"""CTranslate2 beside the threads of bench/workers.

    workers_ct2.py MODEL TEXT THREADS BEAM     MODEL is a folder of `dragoman export ctranslate2`

translates TEXT, a line after the other, text to text, on the CPU in 8 bits by THREADS workers of one thread each, which take
batches of 32 sentences from one queue. Loads the model, translates some lines to warm up, prints "ready", waits for a line on
standard input and prints {"tokens_s": target tokens a second} of the whole text.
"""
import json
import sys
import time
from pathlib import Path

import entry

MAX_LENGTH, BATCH = 256, 32


def main(model, text, threads, beam):
    ctranslate2, sentencepiece = entry.need("ctranslate2", "sentencepiece"), entry.need("sentencepiece")
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(Path(model) / "source.spm"))
    lines = Path(text).read_text(encoding="utf8").split("\n")[:-1]
    translator = ctranslate2.Translator(model, device="cpu", inter_threads=int(threads), intra_threads=1, compute_type="int8",
                                        max_queued_batches=-1)

    def run(part):
        sources = [pieces.encode(line, out_type=str) for line in part]
        results = translator.translate_batch(sources, beam_size=int(beam), length_penalty=1, max_input_length=0,
                                             max_decoding_length=MAX_LENGTH, max_batch_size=BATCH, batch_type="examples")
        return [pieces.decode(r.hypotheses[0]) for r in results], sum(len(r.hypotheses[0]) for r in results)

    run(lines[:2 * BATCH * int(threads)])
    print("ready", flush=True)
    sys.stdin.readline()
    begin = time.perf_counter()
    tokens = run(lines)[1]
    print(json.dumps({"tokens_s": tokens / (time.perf_counter() - begin)}), flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    entry.run(lambda: main(*sys.argv[1:]))
