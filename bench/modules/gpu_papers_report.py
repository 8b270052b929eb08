# SPDX-License-Identifier: MIT
"""Pictures of bench/gpu/papers: speeds by beam of Zhang's and Imamura's searches, and of rows and sentences at once."""
from pathlib import Path

import iglesias2018_report

COLOURS = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b"]


def curves(rows, keep, name, x, y="ratio"):
    """(name, colour, dashed, points) of the rows that `keep` takes, those of one name together."""
    found = {}
    for row in filter(keep, rows):
        if row.get(y):
            found.setdefault(name(row), {})[x(row)] = float(row[y])
    return [(label, COLOURS[i % len(COLOURS)], i % 2 == 1, sorted(points.items()))
            for i, (label, points) in enumerate(found.items())]


def draw(path, rows):
    """PATH-zhang.svg, -iglesias.svg and -imamura.svg."""
    stem = str(Path(path).with_suffix(""))

    def picture(name, title, x_name, y_name, found):
        iglesias2018_report.draw(Path(f"{stem}-{name}.svg"), title, x_name, y_name, found)

    def beam(row):
        return int(row["beam"])
    picture("zhang", "Cube pruning on a GPU: speed over beam search's", "beam", "times", curves(
        rows, lambda r: r["paper"] == "zhang2018" and r["system"] != "NBS" and "with self" in r["element"],
        lambda r: f"{r['system']}, {r['batch']} at once", beam))
    picture("iglesias", "Rows of a beam at once over one at a time", "beam", "times", curves(
        rows, lambda r: r["element"] == "figure 2" and r["system"] == "rows of a beam", lambda r: f"{r['weights']} model", beam))
    picture("imamura", "Two tokens a step over one", "beam", "times", curves(
        rows, lambda r: r["paper"] == "imamura2020" and r["element"] == "figure 3" and r["system"] == "double",
        lambda r: f"{r['batch']} at once", beam))
