# SPDX-License-Identifier: MIT
"""M2M-100: the language of a sentence stands before it, the language to translate into begins the translation.
m2m100.py MODEL SENTENCEPIECE < lines"""
import sys

import ctranslate2
import sentencepiece

pieces = sentencepiece.SentencePieceProcessor(sys.argv[2])
translator = ctranslate2.Translator(sys.argv[1])
for line in sys.stdin:
    source = ["__en__", *pieces.encode(line.strip(), out_type=str), "</s>"]
    results = translator.translate_batch([source], target_prefix=[["__de__"]])
    print(pieces.decode(results[0].hypotheses[0][1:]))
