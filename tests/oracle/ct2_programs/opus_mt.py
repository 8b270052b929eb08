# SPDX-License-Identifier: MIT
"""An OPUS-MT model with SentencePiece, one line after the other and all of them: opus_mt.py MODEL < lines."""
import sys

import ctranslate2
import sentencepiece

model = sys.argv[1]
pieces = sentencepiece.SentencePieceProcessor(model + "/source.spm")
lines = [pieces.encode(line.strip(), out_type=str) for line in sys.stdin]
translator = ctranslate2.Translator(model, device="cpu", inter_threads=2, intra_threads=1)
print(translator.num_translators, translator.compute_type, translator.device, translator.device_index)
print(pieces.decode(translator.translate_batch([lines[0]])[0].hypotheses[0]))
results = translator.translate_batch(lines, beam_size=5, num_hypotheses=2, length_penalty=0.8, max_batch_size=1024,
                                     batch_type="tokens", return_scores=True)
for result in results:
    for tokens, score in zip(result.hypotheses, result.scores):
        print(f"{score:.2f} {pieces.decode(tokens)}")
pending = translator.translate_batch(lines, asynchronous=True, disable_unk=True)
print([pieces.decode(p.result().hypotheses[0]) for p in pending], all(p.done() for p in pending))
translator.unload_model()
translator.load_model()
print(translator.model_is_loaded)
print(pieces.decode(translator.translate_batch([lines[1]])[0][0]["tokens"]))
