# SPDX-License-Identifier: MIT
"""Which binary packages hold message catalogues (.mo), found in the archive's Contents lists, in groups of a kind.

`mo:GROUP` in the table of sources stands for the packages of a group; a package is left out if it is large for what it has, or
if the table names it, or its source package, itself.
"""
import gzip
import json
import os
import re
import urllib.request
from collections import Counter, defaultdict
from pathlib import Path

CATALOGUE = re.compile(r"/(?:de|de_DE)/LC_MESSAGES/[^/]+\.mo$")
GROUPS = (("kde", lambda p: "KDE" in p["Maintainer"]), ("games", lambda p: p["Section"] == "games"),
          ("gnome", lambda p: re.search("GNOME|MATE|Xfce|Cinnamon|LXDE", p["Maintainer"])), ("programs", lambda p: True))
LIMITS = {"programs": 2_500_000}
LIMIT, LIMIT_OF_MANY = 6_000_000, 15_000_000  # bytes of a package; of one with three catalogues or more


def read_packages(text):
    found = {}
    for stanza in text.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Size|Section|Maintainer|Source): (.*)$", stanza, re.M))
        if "Package" in fields:
            found.setdefault(fields["Package"], {"Section": "", "Maintainer": "", "Source": fields["Package"], **fields})
    return found


def holders(lines):
    """How many German catalogues each package has. lines: of Contents lists, a path and packages."""
    count = Counter()
    for line in lines:
        path, _, packages = line.rstrip("\n").rpartition(" ")
        if CATALOGUE.search(path.rstrip()):
            count[packages.split(",")[0].split("/")[-1]] += 1
    return count


def choose(packages, count, named):
    groups = defaultdict(list)
    for name, catalogues in sorted(count.items()):
        entry = packages.get(name)
        if entry is None or name in named or entry["Source"].split(" ")[0] in named:
            continue
        group = next(g for g, test in GROUPS if test(entry))
        size = int(entry["Size"])
        if size <= LIMITS.get(group, LIMIT) or (catalogues >= 3 and size <= LIMIT_OF_MANY):
            groups[group].append(name)
    return dict(groups)


def catalogue_packages(apt, named):
    """{group: [package]}, kept in a file below the work folder."""
    path = os.path.join(apt.root, "catalogues.json")
    if not os.path.exists(path):
        lines = []
        for arch in ("all", "amd64"):
            with urllib.request.urlopen(f"{apt.mirror}/dists/{apt.suite}/main/Contents-{arch}.gz", timeout=60) as answer:
                with gzip.open(answer, "rt", encoding="utf-8", errors="replace") as f:
                    lines += [line for line in f if "/LC_MESSAGES/" in line]
        packages = {}
        for name in apt.lists(r"binary-\w+_Packages(\.\w+)?$"):
            packages.update(read_packages(apt.read_list(name)))
        with open(path, "w") as f:
            json.dump(choose(packages, holders(lines), named), f)
    return json.loads(Path(path).read_text(encoding="utf-8"))
