# SPDX-License-Identifier: MIT
"""How the scripts of bench/ begin and end: what is missing is said in one line, never as a traceback.

    entry.run(main)                  calls main() and ends the script: 0, 1, 130 after Ctrl-C, 2 for a wrong argument
    entry.need("numpy")              imports a package or ends with the names under which PyPI and Debian have it
    entry.need_file(parser, FILE)    a file that was named on the command line, or parser.error()
    entry.need_program(FILE)         a program of this project, or the make target that builds it
    entry.count                      argparse type: a whole number of at least one
    entry.commit()                   of this tree, for the rows of results
    entry.DATA                       lines of newstest2014 that the tree has
    entry.parallel_text(FOLDER)      English and German lines of the tree for --quick without files: {part: (source, reference)}
"""
import argparse
import importlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(sys.argv[0]).resolve()
NAME = f"bench/{'gpu/' if SCRIPT.parent.name == 'gpu' else ''}{SCRIPT.name}"
DATA = ROOT / "tests/data/translate"
# module: its name on PyPI, and the package of Debian or "" where Debian has none
PACKAGES = {"numpy": ("numpy", "python3-numpy"), "sentencepiece": ("sentencepiece", "python3-sentencepiece"),
            "torch": ("torch", "python3-torch"), "ctranslate2": ("ctranslate2", ""), "transformers": ("transformers", ""),
            "pymarian": ("pymarian", "")}


def stop(message, status=1):
    print(f"{NAME}: {message}", file=sys.stderr)
    sys.exit(status)


UNPACKED = DATA.is_dir() and any(ROOT.glob("models/research/*.gguf"))
if not UNPACKED and subprocess.run([str(ROOT / "scripts/test_data"), "unpack"]).returncode:
    stop("what tests/data/packed holds cannot be unpacked")


# ---- what must be there ----------------------------------------------------------------------------------------------

def missing_line(modules, python=""):
    """One line for packages that are not there."""
    found = [PACKAGES.get(m.split(".")[0], (m.split(".")[0], "")) for m in modules]
    pip = f"{python or 'python3'} -m pip install {' '.join(p for p, _ in found)}"
    debian = " ".join(d for _, d in found if d)
    more = f" (Debian: apt-get install {debian})" if len(debian.split()) == len(found) else ""
    return f"missing Python package{'s' * (len(found) > 1)}: {', '.join(modules)}; install with: {pip}{more}"


def need(*modules):
    """The modules, or the end; the first of them is returned."""
    missing = [m for m in modules if not has(m)]
    if missing:
        stop(missing_line(missing))
    return importlib.import_module(modules[0])


def has(module):
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


def need_of(python, *modules):
    """The same for another interpreter."""
    script = "import importlib.util as u, sys; print(' '.join(m for m in sys.argv[1:] if u.find_spec(m) is None))"
    done = subprocess.run([str(python), "-c", script, *modules], text=True, stdout=subprocess.PIPE)
    if done.returncode:
        stop(f"'{python}' is no Python that runs")
    if done.stdout.split():
        stop(missing_line(done.stdout.split(), python))


def need_file(parser, *paths):
    for path in paths:
        if not os.path.exists(path):
            parser.error(f"there is no file '{path}'")
        if not os.access(path, os.R_OK):
            parser.error(f"'{path}' may not be read")


def need_program(*paths):
    for path in paths:
        if not shutil.which(str(path)):
            stop(no_program(path))


def no_program(path):
    path = Path(path)
    if path.is_absolute() and ROOT in path.parents:
        path = path.relative_to(ROOT)
    ours = path.as_posix() == "dragoman" or path.parts[0] == "build"
    return f"there is no program '{path}'" + (f"; build it with: make {path}" if ours else "")


def count(text):
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number above 0")
    return number


def parallel_text(folder):
    """Three parts of the 500 lines that the tree has in both languages: "corpus" (400), "dev" (40) and "test" (60)."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    sides = [(DATA / name).read_text(encoding="utf-8").split("\n")[:500]
             for name in ("newstest2014-1000.en", "newstest2014-500.de")]
    found = {}
    for part, first, last in (("corpus", 100, 500), ("dev", 60, 100), ("test", 0, 60)):
        found[part] = tuple(folder / f"{part}.{language}" for language in ("en", "de"))
        for path, lines in zip(found[part], sides):
            path.write_text("".join(line + "\n" for line in lines[first:last]), encoding="utf-8")
    return found


def commit():
    """Of this tree, for the rows of results; DRAGOMAN_COMMIT says it where the tree came without git."""
    if os.environ.get("DRAGOMAN_COMMIT"):
        return os.environ["DRAGOMAN_COMMIT"]
    try:
        done = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    except OSError:
        return "unknown"
    return done.stdout.strip() or "unknown"


# ---- how it ends -----------------------------------------------------------------------------------------------------

def said_of(error):
    """An exception that the user can do something about, in one line; None for a fault of the script."""
    if isinstance(error, subprocess.CalledProcessError):
        words = error.cmd if isinstance(error.cmd, str) else " ".join(str(word) for word in error.cmd)
        how = (f"was ended by {signal.Signals(-error.returncode).name}" if error.returncode < 0
               else f"failed with status {error.returncode}")
        return f"'{words}' {how}"
    if isinstance(error, ModuleNotFoundError) and error.name:
        return missing_line([error.name])
    if isinstance(error, UnicodeDecodeError):
        return f"a text is not UTF-8: {error.reason} at byte {error.start}"
    if isinstance(error, OSError) and error.strerror:
        file = error.filename
        if isinstance(error, FileNotFoundError) and file and Path(os.fsdecode(file)).name in ("dragoman", "clusters"):
            return no_program(os.fsdecode(file))
        return f"{os.fsdecode(file)}: {error.strerror}" if file is not None else error.strerror
    return None


def run(main):
    try:
        status = main()
    except KeyboardInterrupt:
        stop("stopped", 130)
    except BrokenPipeError:                                             # the reader of our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except Exception as error:
        line = said_of(error)
        if line is None:
            raise
        stop(line)
    sys.exit(status or 0)
