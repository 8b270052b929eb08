# SPDX-License-Identifier: MIT
"""Results of bench/peers: the CSV that a run adds to, the bar chart of its ratios, tables in pages.

A row belongs to one cell; KEY says which. The file is written whole and renamed after every cell, so an interrupted run
leaves the cells that were measured. Tables stand between markers and are made from the CSV alone: everything between WHOLE
(docs/results/PEERS.md), real models with the whole vocabulary and in batches between SHORT (any page).
"""
import csv
import os
from pathlib import Path

KEY = ["cpu", "model", "text", "lines", "precision", "shortlist", "beam", "batch", "forced"]
COLUMNS = ["date", "commit", "ctranslate2", *KEY, "max_length", "rounds", "rival", "rival_tokens_s",
           "dragoman_tokens_s", "ratio", "ratio_q1", "ratio_q3", "rival_p50_ms", "dragoman_p50_ms", "rival_startup_s",
           "dragoman_startup_s", "rival_mib", "dragoman_mib", "rival_bleu", "dragoman_bleu", "equal_lines",
           "ratio_whole", "rival_lines_s", "dragoman_lines_s"]
WHOLE = "<!-- bench/peers --table: begin -->", "<!-- bench/peers --table: end -->"
SHORT = "<!-- bench/peers --table, short: begin -->", "<!-- bench/peers --table, short: end -->"
SHADES = {"all": "#4878a8", "lexical": "#d08a3c"}


# ---- rows ----------------------------------------------------------------------------------------

def read(path):
    if not path.exists():
        return []
    with open(path, newline="") as f:
        return list(csv.DictReader(f))


def key(row):
    return tuple(str(row.get(k, "")) for k in KEY)


def has(path, cell):
    return any(key(row) == key(cell) for row in read(path))


def store(path, row):
    """Adds the row; one with the same key goes."""
    rows = [r for r in read(path) if key(r) != key(row)] + [row]
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    with open(part, "w", newline="") as f:
        w = csv.DictWriter(f, COLUMNS, restval="", extrasaction="ignore", lineterminator="\n")
        w.writeheader()
        w.writerows(rows)
    part.replace(path)


def line(row):
    shown = ["model", "precision", "shortlist", "beam", "batch", "rival", "rival_tokens_s", "dragoman_tokens_s", "ratio",
             "ratio_q1", "ratio_q3", "rival_p50_ms", "dragoman_p50_ms", "rival_startup_s", "dragoman_startup_s",
             "rival_mib", "dragoman_mib", "rival_bleu", "dragoman_bleu", "equal_lines", "ratio_whole"]
    return "  ".join(f"{k}={row[k]}" for k in shown if row.get(k, "") != "")


def order(row):
    batch = {"1": 0, "free": 2}.get(row["batch"], 1)
    return (row["model"].startswith("random"), ["random-tiny", "random-base", "random-big"].index(row["model"])
            if row["model"].startswith("random-") else 0, row["model"],
            ["f32", "i16", "bf16", "i8"].index(row["precision"]), row["shortlist"], int(row["beam"]), batch)


# ---- chart ---------------------------------------------------------------------------------------

def text(x, y, content, anchor="start", size=11, fill="#333"):
    content = content.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{fill}">{content}</text>'


def legend(left, width):
    out = [f'<rect x="{left}" y="26" width="10" height="10" fill="{SHADES["all"]}"/>',
           text(left + 14, 35, "whole vocabulary"),
           f'<rect x="{left + 120}" y="26" width="10" height="10" fill="{SHADES["lexical"]}"/>',
           text(left + 134, 35, "shortlists"), text(left + width, 35, "1 = CTranslate2", "end")]
    return out


def axis(left, top, bottom, scale, most):
    out, step = [], 1 if most <= 8 else 2
    for tick in range(0, int(most) + 1, step):
        x = left + tick * scale
        shade = "#333" if tick == 1 else "#ddd"
        out.append(f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}" stroke="{shade}"/>')
        out.append(text(x, top - 5, str(tick), "middle", 10))
    return out


def bar(row, left, y, scale):
    ratio, low, high = (float(row[k]) for k in ("ratio", "ratio_q1", "ratio_q3"))
    middle = y + 5.5
    return [text(left - 6, y + 9, f"beam {row['beam']}, batch {row['batch']}", "end", 10),
            f'<rect x="{left}" y="{y}" width="{ratio * scale:.1f}" height="11" fill="{SHADES[row["shortlist"]]}"/>',
            f'<line x1="{left + low * scale:.1f}" y1="{middle}" x2="{left + high * scale:.1f}" y2="{middle}" '
            'stroke="#222" stroke-width="1.5"/>',
            text(left + max(ratio, high) * scale + 4, y + 9, f"{ratio:.2f}", size=10)]


def draw(path, rows):
    """A bar a cell, in groups of model and precision; the black line spans the quartiles."""
    rows = sorted(newest(rows), key=order)
    left, width, top = 150, 430, 62
    most = max(2.0, *(float(r["ratio_q3"]) for r in rows)) * 1.08
    scale, y, body, group = width / most, top + 4, [], None
    for row in rows:
        if (row["model"], row["precision"]) != group:
            group = row["model"], row["precision"]
            y += 16
            body.append(text(8, y + 4, f"{group[0]}, {group[1]}", size=12, fill="#000"))
            y += 10
        body += bar(row, left, y, scale)
        y += 14
    height = y + 12
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 60}" height="{height}" '
            f'viewBox="0 0 {left + width + 60} {height}" font-family="sans-serif">',
            '<rect width="100%" height="100%" fill="#fff"/>',
            text(8, 17, "Dragoman's speed over CTranslate2's, one thread: median of rounds, quartiles", size=13)]
    lines = head + legend(left, width) + axis(left, top, height - 8, scale, most) + body + ["</svg>"]
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf8")


# ---- tables --------------------------------------------------------------------------------------

def pair(row, name, digits=None):
    values = [row[f"{who}_{name}"] for who in ("rival", "dragoman")]
    if "" in values:
        return "-"
    return " / ".join(f"{float(v):,.{digits}f}" if digits is not None else v for v in values)


def newest(rows):
    """A cell may have been measured on several numbers of lines: the row that came last."""
    found = {}
    for r in rows:
        found[tuple(r[k] for k in ("model", "precision", "shortlist", "beam", "batch"))] = r
    return list(found.values())


def whole(row):
    """Over CTranslate2 without a shortlist, where one was used."""
    return f"{float(row['ratio_whole']):.2f}" if row.get("ratio_whole") else "-"


def vocabulary(shortlist):
    return "shortlist" if shortlist == "lexical" else "whole"


def detail(rows):
    """All about the cells of real models."""
    if not rows:
        return []
    out = ["| model | precision | vocabulary | beam | batch | tokens/s of both | ms a line | speed-up (quartiles) | over "
           "CTranslate2 with the whole vocabulary | BLEU of both | start-up, s | peak MiB |", "|" + "---|" * 12]
    for r in rows:
        words = vocabulary(r["shortlist"])
        out.append(f"| {r['model']} | {r['precision']} | {words} | {r['beam']} | {r['batch']} | "
                   f"{pair(r, 'tokens_s', 0)} | {pair(r, 'p50_ms', 1)} | {float(r['ratio']):.2f} "
                   f"({float(r['ratio_q1']):.2f}-{float(r['ratio_q3']):.2f}) | {whole(r)} | {pair(r, 'bleu', 2)} | "
                   f"{pair(r, 'startup_s', 2)} | {pair(r, 'mib', 0)} |")
    return out


def matrix(rows):
    """Speed-ups of every model, precision and vocabulary by beam and batch."""
    batches = sorted({r["batch"] for r in rows}, key=lambda b: {"1": 0, "free": 1 << 30}.get(b) or int(b))
    beams = sorted({int(r["beam"]) for r in rows})
    columns = [(b, k) for k in batches for b in beams if any(int(r["beam"]) == b and r["batch"] == k for r in rows)]
    out = ["| model | precision | vocabulary | " + " | ".join(f"batch {k}, beam {b}" for b, k in columns) +
           " |", "|" + "---|" * (3 + len(columns))]
    groups = []
    for r in rows:
        g = r["model"], r["precision"], r["shortlist"]
        if g not in groups:
            groups.append(g)
    for g in groups:
        found = {(int(r["beam"]), r["batch"]): f"{float(r['ratio']):.2f}" +
                 (f" ({whole(r)})" if r.get("ratio_whole") else "") for r in rows
                 if (r["model"], r["precision"], r["shortlist"]) == g}
        out.append(f"| {g[0]} | {g[1]} | {vocabulary(g[2])} | " +
                   " | ".join(found.get(c, "-") for c in columns) + " |")
    return out


def everything(rows, source, chart):
    real, made = ([r for r in rows if (r["forced"] == "0") == want] for want in (True, False))
    title = "Speed-ups of random models, 25 tokens into 25 (in brackets: a shortlist over CTranslate2 with the whole vocabulary):"
    parts = [detail(real), [title] if made else [],
             matrix(made) if made else [],
             [f"Pairs are CTranslate2 / Dragoman. [Lines, rounds, settings and commit of every row]({source}), "
              f"[chart]({chart})."]]
    return "\n\n".join("\n".join(p) for p in parts if p)


def few(rows):
    """Speed in lines and quality of both, for readers in a hurry: i8, the whole vocabulary, batches of 32."""
    out = ["| model | beam | CTranslate2, lines/s | Dragoman, lines/s | speed-up | BLEU of CTranslate2 | of Dragoman |",
           "|---|---:|---:|---:|---:|---:|---:|"]
    for r in rows:
        if r["forced"] == "0" and (r["precision"], r["shortlist"], r["batch"]) == ("i8", "all", "32"):
            out.append(f"| {r['model']} | {r['beam']} | {float(r['rival_lines_s']):.1f} | {float(r['dragoman_lines_s']):.1f} | "
                       f"{float(r['ratio']):.2f} | {float(r['rival_bleu']):.2f} | {float(r['dragoman_bleu']):.2f} |")
    return "\n".join(out)


def fill(page, rows, source, chart):
    """Puts the tables between the markers that the page has."""
    rows = sorted(newest(rows), key=order)
    relative = [os.path.relpath(Path(p).resolve(), page.resolve().parent) for p in (source, chart)]
    content, found = page.read_text(encoding="utf8"), False
    for (begin, end), body in ((WHOLE, lambda: everything(rows, *relative)), (SHORT, lambda: few(rows))):
        if content.count(begin) == content.count(end) == 1:
            before, rest = content.split(begin)
            content, found = f"{before}{begin}\n{body()}\n{end}{rest.split(end)[1]}", True
    if not found:
        raise SystemExit(f"bench/peers: {page} needs the lines '{WHOLE[0]}' and '{WHOLE[1]}' once each, or '{SHORT[0]}' and "
                         f"'{SHORT[1]}'")
    page.write_text(content, encoding="utf8")
