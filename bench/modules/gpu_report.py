# SPDX-License-Identifier: MIT
"""Chart and table of bench/gpu/compare: a bar a cell, what CTranslate2's best type does being 1, and the least that is asked
for as a line."""
from pathlib import Path

import peers_report

PARTS = ["nano", "tiny", "base", "big", "real"]
WANTED = {"1": 4, "32": 3, "128": 3}  # times CTranslate2's speed, by batch; 2.5 elsewhere


def cells(rows):
    """The newest row of every cell that has both programs, in order."""
    found = {(r["part"], int(r["beam"]), int(r["batch"]) if r["batch"].isdigit() else 0): r for r in rows if r.get("ratio")}
    return [found[k] for k in sorted(found, key=lambda k: (PARTS.index(k[0]), k[1], k[2]))]


def wanted(row):
    return WANTED.get(row["batch"], 2.5)


def bar(row, left, y, scale):
    low, high, ratio = (float(row[k]) for k in ("ratio_low", "ratio_high", "ratio"))
    aim = left + wanted(row) * scale
    return [peers_report.text(left - 6, y + 9, f"beam {row['beam']}, batch {row['batch']}", "end", 10),
            f'<rect x="{left}" y="{y}" width="{ratio * scale:.1f}" height="11" fill="{peers_report.SHADES["all"]}"/>',
            f'<line x1="{left + low * scale:.1f}" y1="{y + 5.5}" x2="{left + high * scale:.1f}" y2="{y + 5.5}" stroke="#222" '
            'stroke-width="1.5"/>',
            f'<line x1="{aim:.1f}" y1="{y - 1}" x2="{aim:.1f}" y2="{y + 12}" stroke="#c33" stroke-width="2"/>',
            peers_report.text(left + max(ratio, high) * scale + 4, y + 9, f"{ratio:.2f}", size=10)]


def draw(path, rows):
    rows = cells(rows)
    if not rows:
        return
    left, width, top = 150, 430, 62
    most = max([5.0] + [float(r["ratio_high"]) for r in rows]) * 1.08
    scale, y, body, group = width / most, top + 4, [], None
    for row in rows:
        if row["part"] != group:
            group = row["part"]
            y += 26
            body.append(peers_report.text(8, y - 6, group, size=12, fill="#000"))
        body += bar(row, left, y, scale)
        y += 14
    height, whole = y + 12, left + width + 60
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="{height}" viewBox="0 0 {whole} {height}" '
            'font-family="sans-serif">',
            '<rect width="100%" height="100%" fill="#fff"/>',
            peers_report.text(8, 17, f"Dragoman's speed over CTranslate2's best type, {rows[-1]['machine']}", size=13),
            peers_report.text(8, 35, "median of rounds; black: the least and most favourable process; red: at least", size=11)]
    lines = head + peers_report.axis(left, top, height - 8, scale, most) + body + ["</svg>"]
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf8")


def table(rows):
    out = ["| model | beam | batch | CTranslate2, tokens/s | type | Dragoman, tokens/s | setting | speed-up (processes) | BLEU of "
           "both |", "|---|" + "---:|" * 8]
    for r in cells(rows):
        quality = f"{r['rival_bleu']} / {r['ours_bleu']}" if r["ours_bleu"] else "-"
        out.append(f"| {r['part']} | {r['beam']} | {r['batch']} | {int(r['rival_tokens_s']):,} | {r['rival']} | "
                   f"{int(r['ours_tokens_s']):,} | {r['ours']} | {float(r['ratio']):.2f} "
                   f"({float(r['ratio_low']):.2f}-{float(r['ratio_high']):.2f}) | {quality} |")
    return "\n".join(out)
