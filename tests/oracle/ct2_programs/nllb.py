# SPDX-License-Identifier: MIT
"""NLLB, many lines at once, each into its own language: nllb.py MODEL SENTENCEPIECE < lines"""
import sys

import ctranslate2
import sentencepiece

pieces = sentencepiece.SentencePieceProcessor(sys.argv[2])
translator = ctranslate2.Translator(sys.argv[1], compute_type="auto" if "--fast" in sys.argv else "default")
sources = [["eng_Latn", *pieces.encode(line.strip(), out_type=str), "</s>"] for line in sys.stdin]
prefixes = [[("deu_Latn", "fra_Latn")[i % 2]] for i in range(len(sources))]
for options in ({}, {"beam_size": 4, "num_hypotheses": 2}, {"beam_size": 1}, {"length_penalty": 0.2, "beam_size": 4}):
    for result in translator.translate_batch(sources, target_prefix=prefixes, return_scores=True, **options):
        for tokens, score in zip(result.hypotheses, result.scores):
            if tokens[0] in ("deu_Latn", "fra_Latn"):
                tokens = tokens[1:]
            print(f"{score:.2f} {pieces.decode(tokens)}")
