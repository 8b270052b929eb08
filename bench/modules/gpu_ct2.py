# SPDX-License-Identifier: MIT
"""CTranslate2 on a GPU as the rival of bench/gpu/compare: one process that holds several translators and times calls.

    gpu_ct2.py serve [FOLDER]      one JSON request a line on stdin, one JSON answer a line on stdout

FOLDER holds the unpacked wheel (ctranslate2/, ctranslate2.libs/) where it cannot be installed. CTranslate2 4.8 asks for CUDA
12's cuBLAS; where only PyTorch's of CUDA 13 is there, links under the old names serve (right numbers were measured), see
libraries(). Requests:

    {"open": NAME, "model": FOLDER, "type": "float16", "device": "cuda"}
        -> {"open": NAME, "seconds": ..., "version": ...}
    {"run": NAME, "pieces": FILE, "lines": 0, "beam": 4, "batch": 1024, "forced": 0, "calls": 3, "output": null}
        -> {"times": [...], "tokens": of a call, without ends, "lengths": [least, most]}
    {"close": NAME}
        -> {}

FILE has subwords between spaces. A call hands over `lines` of them (0: all), which CTranslate2 sorts and cuts into batches.
forced: that many tokens come out of every line. Texts of the last call go to `output`, as subwords. What fails is answered by
{"error": ...}.
"""
import glob
import importlib.util
import json
import os
import sys
import tempfile
import time

CUBLAS = ("libcublas", "libcublasLt")


# ---- libraries -----------------------------------------------------------------------------------------------------

def folders():
    """Where cuBLAS may lie: PyTorch's packages, the toolkit."""
    for package in ("nvidia", "torch"):
        found = importlib.util.find_spec(package)
        for place in (found.submodule_search_locations or []) if found else []:
            yield from glob.glob(os.path.join(place, "**", "lib"), recursive=True)
    yield from glob.glob("/usr/local/cuda*/lib64")
    yield "/usr/lib/x86_64-linux-gnu"


def libraries(folder):
    """Value of LD_LIBRARY_PATH with which the wheel finds cuBLAS, or None if there is none. Makes links in `folder`."""
    for place in folders():
        for version in ("12", "13"):
            files = [os.path.join(place, f"{name}.so.{version}") for name in CUBLAS]
            if all(map(os.path.exists, files)):
                os.makedirs(folder, exist_ok=True)
                for name, file in zip(CUBLAS, files):
                    link = os.path.join(folder, f"{name}.so.12")
                    if os.path.lexists(link):
                        os.unlink(link)
                    os.symlink(file, link)
                return ":".join(filter(None, [folder, place, os.environ.get("LD_LIBRARY_PATH")]))
    return None


def environment(wheel=None):
    """For the process that serves; wheel: the folder it was unpacked in."""
    found = dict(os.environ)
    path = libraries(os.path.join(tempfile.gettempdir(), f"cublas-links-{os.getuid()}"))
    if path:
        found["LD_LIBRARY_PATH"] = path
    if wheel:
        found["PYTHONPATH"] = ":".join(filter(None, [str(wheel), os.environ.get("PYTHONPATH")]))
    return found


# ---- the process ---------------------------------------------------------------------------------------------------

TEXTS = {}


def subwords(path):
    if path not in TEXTS:
        with open(path, encoding="utf8") as f:
            TEXTS[path] = [line.split() for line in f.read().split("\n")[:-1]]
    return TEXTS[path]


def run(translator, r):
    sources = subwords(r["pieces"])
    sources = sources[:r.get("lines") or None]
    options = dict(beam_size=r["beam"], max_batch_size=r["batch"], batch_type="examples", max_input_length=0, length_penalty=1,
                   max_decoding_length=r.get("forced") or r.get("max_length") or 256, min_decoding_length=r.get("forced") or 1)
    times = []
    for _ in range(r.get("calls", 1)):
        begin = time.perf_counter()
        results = translator.translate_batch(sources, **options)
        times.append(time.perf_counter() - begin)
    lengths = [len(x.hypotheses[0]) for x in results]
    if r.get("output"):
        with open(r["output"], "w", encoding="utf8") as f:
            f.writelines(" ".join(x.hypotheses[0]) + "\n" for x in results)
    return dict(times=times, tokens=sum(lengths), lengths=[min(lengths), max(lengths)])


def answer(translators, r):
    if "open" in r:
        import ctranslate2
        begin = time.perf_counter()
        translators[r["open"]] = ctranslate2.Translator(r["model"], device=r.get("device", "cuda"), compute_type=r["type"],
                                                        inter_threads=1)
        return dict(open=r["open"], seconds=time.perf_counter() - begin, version=ctranslate2.__version__)
    if "close" in r:
        translators.pop(r["close"], None)
        return {}
    return run(translators[r["run"]], r)


def serve():
    translators = {}
    for line in sys.stdin:
        try:
            said = answer(translators, json.loads(line))
        except Exception as error:                                      # out of memory, a type that this GPU does not have
            said = dict(error=f"{type(error).__name__}: {error}")
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] != ["serve"]:
        sys.exit(__doc__)
    if len(sys.argv) == 3:
        os.execve(sys.executable, [sys.executable, __file__, "serve"], environment(sys.argv[2]))
    serve()
