# SPDX-License-Identifier: MIT
"""A MarianMT model of Hugging Face with its own tokeniser: marianmt.py MODEL TOKENIZER < lines."""
import sys

import ctranslate2
import transformers

translator = ctranslate2.Translator(sys.argv[1])
tokenizer = transformers.AutoTokenizer.from_pretrained(sys.argv[2])
for line in sys.stdin:
    source = tokenizer.convert_ids_to_tokens(tokenizer.encode(line.strip()))
    best = translator.translate_batch([source])[0].hypotheses[0]
    print(tokenizer.decode(tokenizer.convert_tokens_to_ids(best)))
