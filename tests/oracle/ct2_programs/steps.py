# SPDX-License-Identifier: MIT
"""Words as they come, a translator that completes what a person types, and what is around: steps.py MODEL < lines"""
import logging
import sys

import ctranslate2
import sentencepiece

model = sys.argv[1]
ctranslate2.set_log_level(logging.ERROR)
ctranslate2.set_random_seed(7)
print(ctranslate2.contains_model(model), ctranslate2.get_cuda_device_count(),
      {"int8", "float32", "int8_float32"} <= ctranslate2.get_supported_compute_types("cpu"))
source, target = (sentencepiece.SentencePieceProcessor(f"{model}/{side}.spm") for side in ("source", "target"))
translator = ctranslate2.Translator(model, intra_threads=1)
lines = [source.encode(line.strip(), out_type=str) for line in sys.stdin]
for step in translator.generate_tokens(lines[0], return_log_prob=True):
    print(step.step, step.batch_id, step.hypothesis_id, step.token_id, step.token, f"{step.log_prob:.2f}", step.is_last)


def listen(step):
    print(step.step, step.batch_id, step.token, step.is_last)
    return step.batch_id == 1 and step.step == 2


for result in translator.translate_batch(lines[:3], beam_size=1, callback=listen, return_scores=True):
    print(target.decode(result.hypotheses[0]), f"{result.scores[0]:.2f}")
typed = target.encode("Das ist", out_type=str)
for result in translator.translate_batch(lines[:4], target_prefix=[typed[:1]] * 4, num_hypotheses=3, return_alternatives=True):
    print([target.decode(tokens) for tokens in result.hypotheses])
for result in translator.translate_batch(lines[:4], [typed, None, typed[:1], []], return_attention=True, max_decoding_length=9):
    print(target.decode(result.hypotheses[0]), len(result.attention[0]), len(result.attention[0][0]))
print(len(translator.translate_batch([lines[0]], beam_size=1, sampling_topk=5, num_hypotheses=3)[0].hypotheses))
print(translator.translate_batch([[], ["</s>"]], [["a"], None], return_scores=True, num_hypotheses=2))
