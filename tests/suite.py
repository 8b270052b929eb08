# SPDX-License-Identifier: MIT
"""What scripts/run_tests runs: one function for each tier, which returns its tests in order, long ones first."""
import glob
import os
from collections import namedtuple
from pathlib import Path

EN_DE = "models/en-de.gguf"
TEXT = "tests/data/translate/newstest2014-1000.en"
REFERENCE = "tests/data/translate/newstest2014-500.de"
RECURRENT = "tests/data/models/rnn-bahdanau-pieces.gguf"

# Fuzz targets: parsers of other programs' files
IMPORTERS = ("argos", "ct2", "folder", "import_json", "marian_bin", "marian_text", "npz", "pickle", "safetensors", "tokenizer",
             "yaml")

Test = namedtuple("Test", "name command env limit")


def test(name, *command, env=None, limit=3600):
    return Test(name, [str(c) for c in command], env or {}, limit)


def system_test(program, name, model, text, lines, *more):
    """tests/system/NAME PROGRAM MODEL TEXT LINES MORE..."""
    label = " ".join(["tests/system/" + name, *([] if model == EN_DE else [Path(model).stem]), *map(str, more)])
    return test(label, f"tests/system/{name}", program, model, text, lines, *more)


def fingerprint(program, only):
    """Outputs with scores, compared with recorded ones (tests/system/fingerprint.commands)."""
    return test(f"tests/system/fingerprint {only}", "tests/system/fingerprint", "--program", program, "--only", only,
                "--check", "tests/system/fingerprint.sha256")


def composed_on_gpu(build, lines, *more, limit=3600):
    """Compositions on the GPU made of software, by small models."""
    label = " ".join(["tests/system/compositions --device cuda", *map(str, more)])
    return test(label, "tests/system/compositions", f"{build}/dragoman", TEXT, lines, "--device", "cuda", "--small", *more,
                env={"DRAGOMAN_PLUGINS": f"{build}/tests/softcuda"}, limit=limit)


def source(build):
    """What can be said without a compiler."""
    return [test(f"scripts/{s}", f"scripts/{s}") for s in ("check_layers", "check_format", "check_links", "check_names",
                                                              "check_papers", "check_words", "check_models")] + \
        [test("scripts/test_data check", "scripts/test_data", "check"),
         test("packaging/pictures --check", "packaging/pictures", "--check")]


def unit(build):
    # By source, not by program: a build folder may hold tests that are no more.
    programs = [f"{build}/tests/{Path(source).stem}" for source in sorted(glob.glob("tests/unit/test_*.c"))]
    slow = ["test_engine_damage", "test_search_cube_models", "test_engine_constraints"]
    programs.sort(key=lambda p: (Path(p).name not in slow, p))
    devices = [test("checkbackend", f"{build}/checkbackend", "--levels")]
    devices += [test(f"checkbackend {name} --team 3", f"{build}/checkbackend", name, "--team", 3) for name in ("cpu", "cpu:c")]
    devices += [test(f"checkbackend cpu {name}", f"{build}/checkbackend", "cpu", name,
                     env={"DRAGOMAN_PLUGINS": f"{build}/tests/plugins"}) for name in ("echo", "fake")]
    if not os.environ.get("SANFLAGS"):
        # Few and many processors, little shared memory: products choose their kernels by these.
        kinds = (("", {}), (", large", {"SOFTCUDA_PROCESSORS": "132"}),
                 (", older", {"SOFTCUDA_PROCESSORS": "16", "SOFTCUDA_SHARED": "65536", "SOFTCUDA_CAPABILITY": "75"}))
        devices += [test(f"checkbackend cpu cuda (software{name})", f"{build}/checkbackend", "cpu", "cuda",
                         env={"DRAGOMAN_PLUGINS": f"{build}/tests/softcuda", **kind}) for name, kind in kinds]
        devices += [test("checkbackend cuda --team 1 (software)", f"{build}/checkbackend", "cuda", "--team", 1, "--only", "paths",
                         env={"DRAGOMAN_PLUGINS": f"{build}/tests/softcuda"})]
    devices += [test("fuzz corpora", f"{build}/fuzz-replay")]
    return [test("checkkernel", f"{build}/checkkernel")] + devices + [test(Path(p).name, p) for p in programs] + \
        [test("public headers alone", "tests/system/headers")]


# Libraries that MemorySanitizer did not compile: what they write counts as not written. By library, the unit tests (without
# "test_") in which it writes first; of zlib also the corpora of the fuzzers.
UNSEEN = {
    "zlib": "base_encoding base_lines import_marian_files phrase_lm phrase_table phrase_tools",
    "Expat": "base_xml document_xliff text_glossary text_memory tools_directed",
    "libzip": "base_zip document_office",
    "Gumbo": "document_corpus tools_route",
    "jansson": """document_formats export format_import format_m2m format_t5 format_tokenizer import_checkpoints
        import_ct2 import_damage import_marian import_parity import_pickle import_recurrent import_store
        import_variants server_api server_deepl server_openapi server_page server_parts text_metrics text_sacremoses text_spm
        text_vocab tools_cache tools_tune""",
    "Poppler": "document_pdf",
    "OpenSSL": "import_argos import_containers",
    "libseccomp": "server_sandbox",
    "utf8proc": "engine_odd_text text_tidy text_unicode",
}


def memory(build):
    """Unit tests of our own code alone, for MemorySanitizer."""
    unseen = {"test_" + name for names in UNSEEN.values() for name in names.split()} | {"fuzz corpora"}
    return [t for t in unit(build) if t.name not in unseen]


def system(build):
    program = f"{build}/dragoman"
    # Sanitizers make decoding ten times slower.
    lines = 6 if os.environ.get("SANFLAGS") else 24
    on = lambda name, count, *more: system_test(program, name, EN_DE, TEXT, count, *more)
    tests = [on("cube", lines * 4)]
    tests += [on("invariance", lines, "--beam", 4, "--precision", precision) for precision in ("f32", "i8")]
    tests += [test(f"tests/system/{name}", f"tests/system/{name}", program) for name in ("server", "deepl")]
    tests += [on("stream", lines), test("tests/system/page_source", "tests/system/page_source")]
    tests += [on("resume", lines * 5 // 2), on("terminal", 48), on("invariance", lines, "--beam", 8, "--search", "cube")]
    tests += [on("invariance", lines // 3, "--beam", 6, "--search", "cube", "--no-repeat-ngram", 2, "--max-length", 60)]
    tests += [test("scripts/python_tests", "scripts/python_tests", build)]
    tests += [test("tests/system/translations", "tests/system/translations", program, EN_DE)]
    tests += [test(f"tests/system/{name}", f"tests/system/{name}", program, EN_DE) for name in ("documents", "office")]
    tests += [test("tests/system/ctranslate2", "tests/system/ctranslate2", program)]
    tests += [test("tests/cli " + Path(f).stem, "tests/cli/run", "--build", build, Path(f).name)
              for f in sorted(glob.glob("tests/cli/*.cases"))]
    # The groups of the fingerprint that take seconds; all of it is in the long tier.
    groups = ["random", "file", "score", "shortlist", "lattice", "rnn", "phrase", "nbest", "refuse", "eval"]
    if lines == 24:
        groups = ["search", "terms", "cpu", "print", "lmbr", "batch", "cluster", "long", "many", *groups]
    tests += [fingerprint(program, f"{group}/*") for group in groups]
    tests += [test("tests/system/compositions", "tests/system/compositions", program, TEXT, 4)]
    tests += [system_test(program, "writing", "models/research/imamura-r2l-small.gguf", TEXT, 12)]
    tests += [on("lmbr", lines * 2 // 3)]
    tests += [system_test(program, "terms", EN_DE, TEXT, REFERENCE, lines * 5 // 3, *more.split())
              for more in ("", "--shortlist all --precision f32", "--search cube", "--search cube --cube naive")]
    tests += [test(f"tests/system/everyday_terms {d}", "tests/system/everyday_terms", program, f"models/{d}.gguf",
                   f"tests/data/everyday/terms.{d}.tsv", "--check") for d in ("en-de", "de-en")]
    tests += [system_test(program, "optimisations", RECURRENT, TEXT, lines), on("identity", lines // 3)]
    tests += [test("tests/system/strict_device", "tests/system/strict_device", build, lines // 2)]
    if not os.environ.get("SANFLAGS"):
        tests += [test("tests/system/software_gpu", "tests/system/software_gpu", build), composed_on_gpu(build, 2, "--sample", 29),
                  test("tests/system/cuda_kit", "tests/system/cuda_kit", build)]
        # The first sites of each kind and a sample; seconds, and no file systems to be mounted.
        tests += [test("tests/system/faults (short)", "tests/system/faults", build, "--first", 2, "--sample", 4,
                       "--parts", "commands,python"),
                  test("tests/system/kills (short)", "tests/system/kills", build, "--kills", 4, "--slow", 2, "--sizes", 1),
                  test("tests/system/soak (short)", "tests/system/soak", build, "--minutes", 0.2, "--clients", 8,
                       "--lines", 5000, "--interruptions", 2)]
    tests += [test(f"tests/system/{name}", f"tests/system/{name}", build) for name in ("first_hour", "manual")]
    tests += [test("tests/system/install", "tests/system/install", build), test("tests/system/checks", "tests/system/checks"),
              test("tests/system/test_data", "tests/system/test_data"),
              test("tests/system/measurements", "tests/system/measurements", build),
              test("tests/system/compare", "tests/system/compare", build)]
    return tests


def long(build):
    """make test-long: everything above under sanitizers, then full-size checks, then what others' programs say."""
    program = f"{build}/dragoman"
    writing = glob.glob("models/research/imamura-*.gguf") + os.environ.get("WRITING_MODELS", "").split()
    recurrent = ["models/research/devlin-s4-small.gguf", "models/research/rnnsearch-small.gguf",
                 *os.environ.get("RECURRENT_MODELS", "").split()]
    training = {"PYTHONPATH": "training"}
    agree = lambda model, text: test(f"PyTorch agrees on {model}", "/usr/bin/python3", "-m", "dragoman_training", "agree", model,
                                     "--text", text, "--dragoman", program, env=training)
    on = lambda name, count, *more: system_test(program, name, EN_DE, TEXT, count, *more)
    make = os.environ.get("MAKE", "make")
    tests = [test("make test", make, "test")]
    tests += [test(f"make test {san}=1", make, "test", f"{san}=1", limit=6 * 3600) for san in ("ASAN", "TSAN")]
    tests += [test("Arm under qemu", "scripts/check_arm")]
    # What reads files of other programs is fuzzed for ten minutes a target, the rest for one.
    targets = [Path(f).stem.removeprefix("fuzz_") for f in sorted(glob.glob("tests/fuzz/fuzz_*.c"))]
    tests += [test("fuzzing of importers", "scripts/fuzz", "--seconds", 600, *IMPORTERS, limit=6 * 3600),
              test("fuzzing", "scripts/fuzz", "--seconds", 60, *(t for t in targets if t not in IMPORTERS), limit=6 * 3600)]
    tests += [test("packaging/abi", "packaging/abi", build), test("packaging/sbom", "packaging/sbom", program, "--licences"),
              test("tests/system/sbom", "tests/system/sbom", build),
              test("make deb", make, "deb"), test("make manual", make, "manual")]
    tests += [test(f"tests/system/debian {kind} {compiler}", "tests/system/debian", kind, compiler, limit=3 * 3600)
              for kind in ("minimal", "full") for compiler in ("gcc", "clang")]
    tests += [test("tests/system/debian container", "tests/system/debian", "container", limit=3 * 3600)]
    tests += [test("make wheel", make, "wheel"), test("scripts/wheel_tests", "scripts/wheel_tests", build),
              test("scripts/python_long", "scripts/python_long", build, limit=2 * 3600),
              test("scripts/clients_long", "scripts/clients_long", build, limit=2 * 3600)]
    tests += [fingerprint(program, "*")]
    tests += [on("invariance", 1000, "--precision", p) for p in ("f32", "i16", "i8")]
    tests += [on("invariance", 1000, "--search", "cube", "--cube", c) for c in ("naive", "accelerated")]
    tests += [on("invariance", 1000, "--search", "cube", "--no-repeat-ngram", 2, "--repetition-penalty", 2)]
    tests += [test("tests/system/compositions --all", "tests/system/compositions", program, TEXT, 100, "--all", limit=2 * 3600)]
    tests += [on("cube", 1000), on("lmbr", 400), on("identity", 200), on("stream", 1000)]
    tests += [test(f"tests/system/{name}", f"tests/system/{name}", program) for name in ("proxy", "hostile")]
    tests += [test("tests/system/page", "/usr/bin/python3", "tests/system/page", program, f"{build}/page")]
    tests += [test(f"checkbackend cpu cuda (software), seed {seed}", f"{build}/checkbackend", "cpu", "cuda", "--seed", seed,
                   env={"DRAGOMAN_PLUGINS": f"{build}/tests/softcuda", "SOFTCUDA_SEED": str(seed)}) for seed in range(2, 12)]
    tests += [test("tests/system/faults", "tests/system/faults", build, limit=8 * 3600),
              test("tests/system/kills", "tests/system/kills", build, limit=8 * 3600),
              test("tests/system/soak", "tests/system/soak", build, limit=2 * 3600)]
    tests += [test("tests/system/software_gpu all", "tests/system/software_gpu", build, "all"),
              composed_on_gpu(build, 3, "--all", limit=2 * 3600)]
    tests += [test(f"tests/system/{name} all", f"tests/system/{name}", program, EN_DE, 0) for name in ("documents", "office")]
    tests += [system_test(program, "optimisations", model, TEXT, 1000) for model in recurrent]
    for model in writing:
        tests += [system_test(program, "writing", model, TEXT, 200), agree(model, TEXT)]
    tests += [system_test(program, "terms", EN_DE, TEXT, REFERENCE, 500, *more.split())
              for more in ("", "--shortlist all", "--search cube", "--search cube --cube naive", "--beam 1", "--finish mask")]
    small, pair = "tests/data/models/self-normalised.gguf", "tests/data/translate/self-normalised"
    tests += [test("bench/zhang2018 --quick", "bench/zhang2018", "--plain", small, "--self-normalised", small, "--quick",
                   "--input", pair + ".en", "--reference", pair + ".de", "--out", f"{build}/zhang2018", "--program", program)]
    for script in ("iglesias2018", "vocab-clusters", "imamura2020"):                 # what begins in two minutes
        place = "--work" if script == "iglesias2018" else "--out"
        tests += [test(f"bench/{script} --quick", "/usr/bin/python3", f"bench/{script}", "--quick", "--budget", 120, place,
                       f"{build}/{script}", "--program", program)]
    tests += [test("memory of imports", "bench/import-memory", "--layers", 1, "--program", program),
              test("tests/system/rivals", "tests/system/rivals", build)]
    tests += [test("training modules", "/usr/bin/python3", "-m", "unittest", "discover", "-s", "training/tests", env=training),
              test("training smoke test", "training/smoke.sh"),
              test("tests/system/models_pipeline", "tests/system/models_pipeline", program)]
    tests += [agree(EN_DE, TEXT), agree("models/de-en.gguf", REFERENCE)]
    tests += [test("goldens made again", "scripts/remake_goldens")]
    tests += [test("our SentencePiece segmenter against the library", "/usr/bin/python3", "tests/oracle/check_spm.py",
                   f"{build}/tests/oracle/spm_answers", "--rounds", 50, "--points", limit=4 * 3600)]
    return tests


TIERS = {"source": source, "unit": unit, "system": system, "long": long, "memory": memory}
