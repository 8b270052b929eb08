# SPDX-License-Identifier: MIT
"""CTranslate2's interface, against Translator. tests/oracle/check_compat.py compares it with CTranslate2 itself."""
import pytest

import dragoman
from dragoman.compat import ctranslate2


@pytest.fixture(scope="module")
def door(tree):
    return ctranslate2.Translator(str(tree / "models/en-de.gguf"), compute_type="float32", inter_threads=2)


@pytest.fixture(scope="module")
def plain(tree):
    """What it should say: the text as it is, the whole vocabulary, CTranslate2's defaults."""
    with dragoman.Translator(tree / "models/en-de.gguf", threads=2, precision="f32", raw=True, shortlist="all", beam=2,
                             length_penalty=1, word_scores=True, max_length_factor=0, allow_unk=True, finish="refill") as t:
        yield t


@pytest.fixture(scope="module")
def sentences(plain, lines):
    return [plain.tokenize(line) for line in lines[:6]]


def test_batch(door, plain, sentences, lines):
    results = door.translate_batch(sentences, return_scores=True)
    for result, wanted in zip(results, plain.translate(lines[:6])):
        assert result.hypotheses == [wanted.tokens[:-1]] and result.scores == [pytest.approx(wanted.score, abs=1e-5)]
        assert result[0]["tokens"] == result.hypotheses[0] and len(result) == 1
    assert door.translate_batch([]) == [] and door.translate_batch([[]])[0].hypotheses == [[]]
    assert door.translate_batch(sentences[:1])[0].scores == []
    many = door.translate_batch(sentences[:2], beam_size=4, num_hypotheses=3, return_scores=True, max_batch_size=1,
                                batch_type="tokens", return_end_token=True)
    assert all(len(r.hypotheses) == 3 and r.scores == sorted(r.scores, reverse=True) for r in many)
    assert all(h[-1] == "</s>" for r in many for h in r.hypotheses)


def test_other_ways(door, sentences):
    wanted = door.translate_batch(sentences)
    assert [r.result() for r in door.translate_batch(sentences, asynchronous=True)] == wanted
    assert list(door.translate_iterable(iter(sentences * 30), max_batch_size=7)) == wanted * 30
    greedy = door.translate_batch(sentences[:1], beam_size=1)[0].hypotheses[0]
    steps = list(door.generate_tokens(sentences[0], return_log_prob=True))
    assert [s.token for s in steps] == greedy + ["</s>"] and steps[-1].is_last and steps[0].log_prob < 0
    heard = []
    result = door.translate_batch(sentences[:1], beam_size=1, callback=lambda s: heard.append(s.token) or len(heard) == 2)
    assert heard == greedy[:2] == result[0].hypotheses[0]
    heard.clear()
    pending = door.translate_batch(sentences[:1], beam_size=1, asynchronous=True, callback=lambda s: heard.append(s.token))
    assert pending[0].result().hypotheses[0] == greedy and heard == [*greedy, "</s>"] and pending[0].done()
    alternatives = door.translate_batch(sentences[:1], num_hypotheses=2, return_alternatives=True, asynchronous=True)
    assert len(alternatives[0].result().hypotheses) == 2
    assert len(list(door.translate_iterable(sentences[:2], num_hypotheses=2, return_alternatives=True))[1].hypotheses) == 2
    with pytest.raises(dragoman.ArgumentError, match="length"):
        list(door.translate_iterable(sentences[:2], [["a"]]))


def test_prefix_and_alternatives(door, sentences):
    prefix = door.translate_batch(sentences[1:2])[0].hypotheses[0][:2]
    forced = door.translate_batch(sentences[1:3], [prefix, None], return_scores=True)
    assert forced[0].hypotheses[0][:2] == prefix and forced[1].hypotheses == door.translate_batch(sentences[2:3])[0].hypotheses
    result = door.translate_batch(sentences[1:2], [prefix], num_hypotheses=4, beam_size=1, return_alternatives=True,
                                  return_scores=True)[0]
    assert len({h[2] for h in result.hypotheses}) == 4 and all(h[:2] == prefix for h in result.hypotheses)
    few = door.translate_batch(sentences[1:2], [prefix], num_hypotheses=4, beam_size=1, return_alternatives=True,
                               min_alternative_expansion_prob=0.2)[0]
    assert 1 <= len(few.hypotheses) < 4


def test_what_else(door, sentences, plain):
    result = door.translate_batch(sentences[:1], return_attention=True)[0]
    assert len(result.attention[0]) == len(result.hypotheses[0]) and len(result.attention[0][0]) == len(sentences[0])
    word = plain.tokenize("Haus", "target")
    red = plain.tokenize("The little house is red.")
    assert "Haus" in plain.detokenize(door.translate_batch([red])[0].hypotheses[0])
    other = door.translate_batch([red], suppress_sequences=[word])[0].hypotheses[0]
    assert "Haus" not in plain.detokenize(other).split()
    assert len(door.translate_batch([red], max_decoding_length=3)[0].hypotheses[0]) == 3
    assert len(door.translate_batch([red], min_decoding_length=20)[0].hypotheses[0]) >= 19
    assert door.translate_batch([red], sampling_topk=10, beam_size=1)[0].hypotheses[0]
    short = door.translate_batch([red] * 2, max_input_length=3)[0].hypotheses[0]  # with the end of the source
    assert short == door.translate_batch([red[:2]])[0].hypotheses[0]
    long = door.translate_batch([red * 60], max_decoding_length=4)[0].hypotheses[0]  # longer than the model's own limit
    assert len(red * 60) > 256 and len(long) == 4


def test_score(door, plain, sentences):
    targets = [r.hypotheses[0] for r in door.translate_batch(sentences)]
    scores = door.score_batch(sentences, targets)
    for s, t, text in zip(scores, targets, sentences):
        assert s.tokens == t + ["</s>"] and len(s.log_probs) == len(s.tokens) and max(s.log_probs) <= 0
        wanted = plain.score(plain.detokenize(text, "source"), plain.detokenize(t))
        assert sum(s.log_probs) == pytest.approx(wanted.log_probability, abs=1e-3)
    assert door.score_batch(sentences[:1], targets[:1], offset=2)[0].tokens == scores[0].tokens[2:]
    pending = door.score_batch(sentences[:1], targets[:1], asynchronous=True)[0]
    assert pending.result() == scores[0] and pending.done()
    assert list(door.score_iterable(iter(sentences), iter(targets), max_batch_size=1)) == scores


def test_unload(tree, sentences):
    door = ctranslate2.Translator(str(tree / "models/en-de.gguf"), device="cpu", intra_threads=1)
    before = door.translate_batch(sentences[:1])
    assert door.model_is_loaded and door.device == "cpu" and door.device_index == [0] and door.num_translators == 1
    assert door.num_active_batches == door.num_queued_batches == 0 and door.tensor_parallel is False
    door.unload_model(to_cpu=True)
    assert door.model_is_loaded  # it is there
    door.unload_model()
    with pytest.raises(dragoman.ClosedError):
        door.translate_batch(sentences[:1])
    assert not door.model_is_loaded
    door.load_model()
    assert door.translate_batch(sentences[:1]) == before


def test_compute_types(tree, tmp_path, monkeypatch):
    """By default what a model is stored in, as far as a CPU computes in that."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    model = str(tree / "models/en-de.gguf")  # 8 bits
    folder = str(tree / "tests/data/ctranslate2/m2m")  # float16
    wanted = {"default": "int8_float32", "auto": "int8_float32", "int8": "int8_float32", "int8_float32": "int8_float32",
              "int16": "int16", "float32": "float32", "float": "float32"}
    for asked, kind in wanted.items():
        assert ctranslate2.Translator(model, compute_type=asked).compute_type == kind
        assert ctranslate2.Translator(folder, compute_type=asked).compute_type == ("float32" if asked == "default" else kind)
    assert ctranslate2.Translator(folder, compute_type={"cuda": "float16", "cpu": "int8"}).compute_type == "int8_float32"
    assert ctranslate2.Translator(str(tree / "tests/data/ctranslate2/mbart50"), compute_type="default").compute_type == "float32"
    for asked in ("float16", "bfloat16", "int8_float16", "int8_bfloat16", "int4"):
        with pytest.raises(dragoman.ArgumentError, match="compute type"):
            ctranslate2.Translator(folder, compute_type=asked)
    assert ctranslate2.get_supported_compute_types("cpu") == {"int8", "int8_float32", "int16", "float32"}


def test_files_in_memory(tree, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tree / "tests/data/ctranslate2/opennmt-py"
    names = ("config.json", "model.bin", "shared_vocabulary.json")
    files = {name: (folder / name).read_bytes() for name in names[:2]}
    with open(folder / names[2], "rb") as vocabulary:
        door = ctranslate2.Translator("a name", files={**files, names[2]: vocabulary})
    source = [["son", "a"]]
    assert door.translate_batch(source) == ctranslate2.Translator(str(folder)).translate_batch(source)
    with pytest.raises(dragoman.ArgumentError):
        ctranslate2.Translator("a name", files={"../config.json": b""})


def test_module(tree, door, sentences):
    assert ctranslate2.contains_model(str(tree / "tests/data/ctranslate2/m2m")) and not ctranslate2.contains_model(str(tree))
    assert ctranslate2.get_cuda_device_count() >= 0 and ctranslate2.__version__
    ctranslate2.set_log_level(10)
    assert ctranslate2.get_log_level() == 10
    draws = []
    for seed in (1, 1, 2):
        ctranslate2.set_random_seed(seed)
        draws.append([door.translate_batch(sentences, beam_size=1, sampling_topk=0, sampling_temperature=2) for _ in range(2)])
    assert draws[0] == draws[1] != draws[2] and draws[0][0] != draws[0][1]
    for name in ("Generator", "Encoder", "StorageView", "converters", "models", "specs", "Device"):
        with pytest.raises(dragoman.UnsupportedError, match=name):
            getattr(ctranslate2, name)
    with pytest.raises(AttributeError):
        ctranslate2.nothing
    for call in (lambda: ctranslate2.Translator(str(tree / "models/en-de.gguf"), tensor_parallel=True),
                 lambda: door.translate_batch(sentences[:1], return_alternatives=True, beam_size=1, callback=print)):
        with pytest.raises(dragoman.UnsupportedError):
            call()
    for call in (lambda: door.translate_file("a", "b", source_tokenize_fn=str.split), lambda: ctranslate2.Translator("a", "tpu"),
                 lambda: door.score_file("a", "b", "c", target_tokenize_fn=str.split)):
        with pytest.raises(dragoman.ArgumentError):
            call()


def test_signatures():
    """Every argument of the package has its place."""
    options = {"beam_size", "patience", "num_hypotheses", "length_penalty", "coverage_penalty", "repetition_penalty",
               "no_repeat_ngram_size", "disable_unk", "suppress_sequences", "end_token", "return_end_token", "prefix_bias_beta",
               "max_input_length", "max_decoding_length", "min_decoding_length", "use_vmap", "return_scores",
               "return_logits_vocab", "return_attention", "return_alternatives", "min_alternative_expansion_prob",
               "sampling_topk", "sampling_topp", "sampling_temperature", "replace_unknowns", "callback"}
    assert set(ctranslate2.Options.__dataclass_fields__) == options


def test_folder_of_many_languages(tree, tmp_path, monkeypatch):
    """A CTranslate2 folder with language tokens on both sides, as people call such models."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tree / "tests/data/ctranslate2/m2m"
    door = ctranslate2.Translator(str(folder), compute_type="float32")
    dragoman.import_model(folder, tmp_path / "m.gguf", source_spm=str(tree / "tests/data/text/tiny.spm"), type="f32")
    with dragoman.Translator(tmp_path / "m.gguf", source="en", target="de", precision="f32", raw=True, threads=1, beam=2,
                             length_penalty=0, finish="margin", margin=0, max_length=20, max_length_factor=0,
                             word_scores=True) as t:
        text = "the house is small"
        wanted = t.translate(text)
        tokens = ["__en__", *t.tokenize(text), "</s>"]
    got = door.translate_batch([tokens], [["__de__"]], length_penalty=0, max_decoding_length=20, return_scores=True)[0]
    cut = wanted.tokens[:-1] if wanted.tokens[-1] == "</s>" else wanted.tokens
    assert got.hypotheses[0] == ["__de__", *cut]
    scored = door.score_batch([tokens], [got.hypotheses[0]])[0]
    assert scored.tokens[0] == "__de__" and scored.log_probs[0] == 0 and len(scored.tokens) == len(cut) + 2
    with pytest.raises(dragoman.ArgumentError, match="language"):
        door.translate_batch([tokens])


def test_bad_arguments(door, sentences):
    for kind, options in ((dragoman.ArgumentError, {"beam_size": 0}), (dragoman.ArgumentError, {"num_hypotheses": 3}),
                          (dragoman.ArgumentError, {"patience": 0}), (dragoman.ArgumentError, {"batch_type": "lines"}),
                          (dragoman.ArgumentError, {"max_decoding_length": 0}), (dragoman.ArgumentError, {"sampling_topp": 2}),
                          (dragoman.ArgumentError, {"callback": print}), (dragoman.UnsupportedError, {"prefix_bias_beta": 0.5}),
                          (dragoman.UnsupportedError, {"return_logits_vocab": True}), (TypeError, {"beams": 4}),
                          (dragoman.UnsupportedError, {"end_token": "x"}), (dragoman.ArgumentError, {"repetition_penalty": 0})):
        with pytest.raises(kind):
            door.translate_batch(sentences[:1], **options)
    for call in (lambda: door.translate_batch(["text"]), lambda: door.translate_batch([[1, 2]]),
                 lambda: door.translate_batch([None]), lambda: door.score_batch([["a"]], [[None]])):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(dragoman.ArgumentError):
        door.translate_batch(sentences[:2], [["a"]])
    with pytest.raises(dragoman.Error):
        ctranslate2.Translator("/no/such/folder")
