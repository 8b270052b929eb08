# SPDX-License-Identifier: MIT
"""Brings packages into a folder without installing anything.

apt gets a root of its own below WORK/apt (lists, caches, sources.list), so that nothing of the system's apt is touched. Binary
packages come by `apt-get download`; of source packages only the archives that are wanted, with their SHA-256 checked. Of
each archive only wanted members are unpacked, into WORK/unpacked/SOURCE/PACKAGE/. A package whose marker is there is done.
"""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from . import catalogues, sources

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
COPYRIGHT = re.compile(r"(^|/)(debian/copyright|usr/share/doc/[^/]+/copyright)$")
SMALL = 32 << 20  # a debian.tar of at most this size is fetched for its copyright file


class Missing(Exception):
    """A package that this archive does not have."""


def say(text):
    print(text, file=sys.stderr, flush=True)


class Apt:
    def __init__(self, work, suite, mirror, languages):
        self.root, self.suite, self.mirror = os.path.abspath(os.path.join(work, "apt")), suite, mirror
        for folder in ("lists/partial", "cache/archives/partial", "files"):
            os.makedirs(os.path.join(self.root, folder), exist_ok=True)
        listed = "".join(f"{kind} [signed-by={KEYRING}] {mirror} {suite} main\n" for kind in ("deb", "deb-src"))
        path = os.path.join(self.root, "sources.list")
        changed = not os.path.exists(path) or Path(path).read_text() != listed
        if changed:
            with open(path, "w") as f:
                f.write(listed)
        self.options = []
        for key, value in (("Dir::Etc::sourcelist", path), ("Dir::Etc::sourceparts", "/dev/null"),
                           ("Dir::State::lists", self.root + "/lists"), ("Dir::State::status", "/dev/null"), ("Dir::Cache", self.root + "/cache"),
                           ("Dir::Cache::pkgcache", "pkgcache.bin"), ("Dir::Cache::srcpkgcache", "srcpkgcache.bin"),
                           ("Acquire::Languages", ",".join(("en",) + tuple(languages)))):
            self.options += ["-o", f"{key}={value}"]
        if changed or not os.path.exists(self.root + "/updated"):
            self.call("apt-get", "update")
            open(self.root + "/updated", "w").close()

    def call(self, program, *words, cwd=None):
        done = subprocess.run([program, "-q", *self.options, *words], cwd=cwd, capture_output=True, text=True)
        if done.returncode != 0:
            raise Missing((done.stderr.strip().split("\n") or ["?"])[-1])
        return done.stdout

    def lists(self, pattern):
        folder = self.root + "/lists"
        return sorted(os.path.join(folder, n) for n in os.listdir(folder) if re.search(pattern, n))

    def read_list(self, path):
        return subprocess.run(["/usr/lib/apt/apt-helper", "cat-file", path], check=True, capture_output=True).stdout.decode()

    def download(self, names, batch=40):
        """Binary packages, many in one call of apt-get: reading its lists takes longer than most packages."""
        folder = self.root + "/files"
        there = {n.split("_")[0] for n in os.listdir(folder) if n.endswith(".deb")}
        known = set(self.call("apt-cache", "pkgnames").split())
        wanted = [n for n in names if n in known and n not in there]
        for at in range(0, len(wanted), batch):
            try:
                self.call("apt-get", "download", *wanted[at:at + batch], cwd=folder)
            except Missing as error:
                say(f"apt-get download: {error}")

    def binary(self, name):
        """(version, [path of the .deb])"""
        folder = self.root + "/files"
        found = sorted(n for n in os.listdir(folder) if n.startswith(name + "_") and n.endswith(".deb"))
        if not found:
            raise Missing("no such package, or it could not be downloaded")
        return urllib.parse.unquote(found[-1]).split("_")[1], [os.path.join(folder, found[-1])]

    def source(self, name, archive):
        uris = parse_uris(self.call("apt-get", "source", "--print-uris", "--download-only", "--only-source", name))
        if not uris:
            raise Missing(name)
        version = next(n for _, n, _, _ in uris if n.endswith(".dsc"))[:-4].split("_", 1)[1]
        paths, missing = [], None
        for uri, file, size, sha in uris:
            if not re.search(r"\.tar\.\w+$", file):
                continue
            wanted = re.search(archive, file) if archive else True
            if wanted or (re.search(r"\.debian\.tar", file) and size <= SMALL):
                try:
                    paths.append(self.get(uri, file, size, sha))
                except urllib.error.HTTPError as error:  # some mirrors have only a part of the sources
                    missing = f"{file}: {error}"
        if not paths:
            raise Missing(missing or name)
        return version, paths

    def get(self, uri, file, size, sha):
        path = os.path.join(self.root, "files", file)
        if not os.path.exists(path):
            partial = path + ".part"
            with urllib.request.urlopen(uri, timeout=60) as answer, open(partial, "wb") as out:
                shutil.copyfileobj(answer, out, 1 << 20)
            digest = hashlib.sha256()
            with open(partial, "rb") as f:
                while block := f.read(1 << 20):
                    digest.update(block)
            if digest.hexdigest() != sha:
                os.unlink(partial)
                raise OSError(f"{file}: its SHA-256 is not the one of the index")
            os.rename(partial, path)
        return path


def parse_uris(text):
    """[(uri, file, size, sha256)] of `apt-get --print-uris`."""
    return [(m[1], m[2], int(m[3]), m[4]) for m in re.finditer(r"^'([^']+)' (\S+) (\d+) SHA256:([0-9a-f]{64})$", text, re.M)]


def members(path):
    """Yields (name, reader of bytes) of the plain files of a .deb or .tar."""
    if path.endswith(".deb"):
        child = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", path], stdout=subprocess.PIPE)
        with tarfile.open(fileobj=child.stdout, mode="r|") as tar:
            yield from plain_members(tar)
        child.stdout.close()
        child.wait()
    else:
        with tarfile.open(path, mode="r|*") as tar:
            yield from plain_members(tar)


def plain_members(tar):
    for member in tar:
        if member.isfile():
            yield member.name.lstrip("./"), lambda m=member: tar.extractfile(m).read()


def unpack(paths, folder, wants):
    """Wanted members of all archives, and the copyright file, into a folder; how many."""
    count = 0
    for number, path in enumerate(paths):
        for name, read in members(path):
            if COPYRIGHT.search(name):
                target = os.path.join(folder, "COPYRIGHT")
            elif wants(name):
                target = os.path.normpath(os.path.join(folder, "files", str(number), name))
                if not target.startswith(os.path.abspath(folder) + os.sep):
                    continue
                count += 1
            else:
                continue
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb") as out:
                out.write(read())
    return count


def fetch(source, apt, work, keep_archives=False):
    """All packages of a source; returns [{package, version, licence, files}]."""
    found, packages = [], []
    place = lambda name: os.path.abspath(os.path.join(work, "unpacked", source.name, name))
    for kind, name, archive in source.package_list():
        if kind == "mo":
            packages += [("b", x, None) for x in catalogues.catalogue_packages(apt, sources.named_packages()).get(name, ())]
        elif kind != "apt":
            packages.append((kind, name, archive))
    missing = [name for kind, name, _ in packages if kind == "b" and not os.path.exists(place(name) + "/done.json")]
    if missing:
        apt.download(missing)
    for kind, name, archive in packages:
        folder = place(name)
        marker = os.path.join(folder, "done.json")
        if os.path.exists(marker):
            found.append(json.loads(Path(marker).read_text(encoding="utf-8")))
            continue
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        try:
            version, paths = apt.binary(name) if kind == "b" else apt.source(name, archive)
            count = unpack(paths, folder, source.wants)
        except (Missing, OSError, EOFError, tarfile.TarError, urllib.error.URLError) as error:
            say(f"{source.name}: {name} left out: {error}")
            continue
        copyright_file = os.path.join(folder, "COPYRIGHT")
        text = Path(copyright_file).read_text(encoding="utf-8", errors="replace") if os.path.exists(copyright_file) else ""
        entry = {"package": name, "version": version, "licence": licence_of(text), "files": count}
        with open(marker, "w") as f:
            json.dump(entry, f)
        say(f"{source.name}: {name} {version}: {count} files")
        found.append(entry)
        if not keep_archives:
            for path in paths:
                if os.path.getsize(path) > (64 << 20) and "translations" not in path:
                    os.unlink(path)
    return found


KNOWN = (("AGPL", r"Affero"), ("LGPL", r"Lesser General Public|Library General Public|\bLGPL"),
         ("GPL", r"GNU General Public|\bGPL"), ("GFDL", r"Free Documentation Licen[sc]e|\bGFDL"), ("MPL-2.0", r"Mozilla Public License"),
         ("CC-BY-SA", r"Attribution[- ]Share ?Alike|CC-BY-SA"), ("BSD", r"\bBSD\b|Redistribution and use in source"),
         ("MIT", r"\bMIT\b|Permission is hereby granted, free of charge"), ("Apache-2.0", r"Apache License"),
         ("public domain", r"public domain"))


def licence_of(text):
    """The licence that a copyright file gives to all files (machine-readable form), else the names that occur in it."""
    stanzas = re.split(r"\n\s*\n", text)
    for stanza in stanzas:
        if re.search(r"^Files:\s*\*", stanza, re.M):
            found = re.search(r"^License:[ \t]*(\S[^\n]*)", stanza, re.M)
            if found:
                return found[1].strip()
    found = re.search(r"^License:[ \t]*(\S[^\n]*)", text, re.M)
    if found and text.lstrip().startswith("Format"):
        return found[1].strip()
    names = [name for name, pattern in KNOWN if re.search(pattern, text)]
    return " or ".join(names[:3]) + " (named in it)" if names else "not stated"
