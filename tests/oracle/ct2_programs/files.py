# SPDX-License-Identifier: MIT
"""Files of text, streams of any length, scores: files.py MODEL FOLDER < lines"""
import sys

import ctranslate2
import sentencepiece

model, folder = sys.argv[1:3]
source, target = (sentencepiece.SentencePieceProcessor(f"{model}/{side}.spm") for side in ("source", "target"))
translator = ctranslate2.Translator(model)


def split(line):
    return source.encode(line, out_type=str)


with open(f"{folder}/text.en", "w", encoding="utf-8") as out:
    out.writelines(sys.stdin)
stats = translator.translate_file(f"{folder}/text.en", f"{folder}/text.de", source_tokenize_fn=split,
                                  target_detokenize_fn=target.decode, beam_size=4)
print(stats.num_examples, stats.num_tokens, stats.total_time_in_ms > 0)
print(open(f"{folder}/text.de", encoding="utf-8").read(), end="")
with open(f"{folder}/text.en", encoding="utf-8") as lines, open(f"{folder}/tokens.en", "w", encoding="utf-8") as out:
    out.writelines(" ".join(split(line.strip())) + "\n" for line in lines)
stats = translator.translate_file(f"{folder}/tokens.en", f"{folder}/tokens.de", max_batch_size=8, num_hypotheses=2)
print(stats.num_examples, stats.num_tokens)
print(open(f"{folder}/tokens.de", encoding="utf-8").read(), end="")
with open(f"{folder}/text.en", encoding="utf-8") as lines:
    for result in translator.translate_iterable(map(split, map(str.strip, lines)), max_batch_size=4, beam_size=1):
        print(target.decode(result.hypotheses[0]))
stats = translator.score_file(f"{folder}/text.en", f"{folder}/text.de", f"{folder}/scores", source_tokenize_fn=split,
                              target_tokenize_fn=lambda line: target.encode(line, out_type=str),
                              target_detokenize_fn=lambda tokens: target.decode([t for t in tokens if t != "</s>"]))
print(stats.num_examples, stats.num_tokens)
for line in open(f"{folder}/scores", encoding="utf-8"):
    score, text = line.rstrip("\n").split(" ||| ")
    print(f"{float(score):.2f} {text}")
with open(f"{folder}/text.en", encoding="utf-8") as left, open(f"{folder}/text.de", encoding="utf-8") as right:
    pairs = translator.score_iterable([split(line.strip()) for line in left],
                                      [target.encode(line.strip(), out_type=str) for line in right], max_batch_size=3)
    print([(len(pair.tokens), round(sum(pair.log_probs), 1)) for pair in pairs])
