# SPDX-License-Identifier: MIT
"""Builds wheels and source distributions (PEP 517) with make alone: what pip calls, and `make wheel`.

    python3 python/backend.py wheel FOLDER      a wheel for this machine, with the libraries that it has
    python3 python/backend.py models FOLDER     the shipped models as a wheel of their own
    python3 python/backend.py sdist FOLDER      sources of library, extension and package
"""
import base64
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSION = (ROOT / "VERSION").read_text().strip()
FOLDERS = ("src", "include", "python", "apps", "scripts")  # of a source distribution, with these files:
FILES = ("Makefile", "VERSION", "LICENSE", "NOTICE", "README.md", "pyproject.toml")
SUMMARY = "Neural machine translation: a C library for Python"


def metadata(name, summary, *more):
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {VERSION}", f"Summary: {summary}", "License: MIT",
             "Requires-Python: >=3.11", *more]
    return "\n".join(lines) + "\n"


def kind(tag):
    pure = str(tag.endswith("any")).lower()
    return f"Wheel-Version: 1.0\nGenerator: dragoman\nRoot-Is-Purelib: {pure}\nTag: {tag}\n"


class Wheel:
    """A zip file that lists what is in it."""

    def __init__(self, folder, name, tag, summary, *more):
        self.path = Path(folder) / f"{name}-{VERSION}-{tag}.whl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.info, self.rows = f"{name}-{VERSION}.dist-info", []
        self.zip = zipfile.ZipFile(self.path, "w", zipfile.ZIP_DEFLATED)
        self.head = metadata(name.replace("_", "-"), summary, *more)
        self.kind = kind(tag)

    def add(self, name, data, mode=0o644):
        entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))  # the same bytes whenever it is built
        entry.external_attr, entry.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
        self.zip.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.rows.append(f"{name},sha256={digest},{len(data)}")

    def close(self):
        self.add(f"{self.info}/METADATA", self.head.encode())
        self.add(f"{self.info}/WHEEL", self.kind.encode())
        for name in ("LICENSE", "NOTICE"):
            if (ROOT / name).exists():
                self.add(f"{self.info}/licenses/{name}", (ROOT / name).read_bytes())
        self.rows.append(f"{self.info}/RECORD,,")
        self.zip.writestr(f"{self.info}/RECORD", "\n".join(self.rows) + "\n")
        self.zip.close()
        return self.path.name


def build_extension():
    """The folder with the built package, its extension without the names that debuggers want."""
    make = [os.environ.get("MAKE", "make"), "-C", str(ROOT), f"-j{os.cpu_count() or 1}", f"PYTHON={sys.executable}", "python"]
    build = os.environ.get("BUILD", "build")
    env = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}
    subprocess.run([*make, f"BUILD={build}"], check=True, stdout=sys.stderr, env=env)
    package = ROOT / build / "python" / "dragoman"
    if not (package / "_dragoman.abi3.so").exists():
        sys.exit("the extension was not built: Python.h is missing")
    return package


def stripped(path):
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / path.name
        shutil.copy(path, copy)
        subprocess.run(["strip", "--strip-unneeded", str(copy)], check=True)
        return copy.read_bytes()


def platform_tag():
    return "cp311-abi3-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """What pip wants to know first, without building anything."""
    info = Path(metadata_directory) / f"dragoman-{VERSION}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(metadata("dragoman", SUMMARY))
    (info / "WHEEL").write_text(kind(platform_tag()))
    return info.name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    package = build_extension()
    wheel = Wheel(wheel_directory, "dragoman", platform_tag(), SUMMARY)
    for path in sorted(ROOT.glob("python/dragoman/**/*")):
        if path.suffix in (".py", ".pyi") or path.name == "py.typed":
            wheel.add(path.relative_to(ROOT / "python").as_posix(), path.read_bytes())
    wheel.add("dragoman/_dragoman.abi3.so", stripped(package / "_dragoman.abi3.so"), 0o755)
    return wheel.close()


def build_models(folder):
    """Models beside the extension, where the library looks for them."""
    wheel = Wheel(folder, "dragoman_models", "py3-none-any", "Models of Dragoman: English and German",
                  f"Requires-Dist: dragoman=={VERSION}")
    default = (ROOT / "models/default.gguf").resolve()  # a link, which wheels do not have: it has that name alone
    for path in sorted((ROOT / "models").glob("*.gguf")):
        if not path.is_symlink():
            wheel.add(f"dragoman/models/{'default.gguf' if path == default else path.name}", path.read_bytes())
    return wheel.close()


def build_sdist(sdist_directory, config_settings=None):
    name = f"dragoman-{VERSION}"
    path = Path(sdist_directory) / f"{name}.tar.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        files = [ROOT / f for f in FILES] + [p for d in FOLDERS for p in sorted((ROOT / d).rglob("*"))]
        for p in files:
            if p.is_file() and "__pycache__" not in p.parts and p.exists():
                tar.add(p, f"{name}/{p.relative_to(ROOT).as_posix()}")
        with tempfile.NamedTemporaryFile("w", suffix="PKG-INFO") as head:
            head.write(metadata("dragoman", SUMMARY))
            head.flush()
            tar.add(head.name, f"{name}/PKG-INFO")
    return path.name


def main():
    kinds = {"wheel": build_wheel, "models": build_models, "sdist": build_sdist}
    if len(sys.argv) != 3 or sys.argv[1] not in kinds:
        sys.exit(__doc__)
    print(kinds[sys.argv[1]](sys.argv[2]))


if __name__ == "__main__":
    main()
