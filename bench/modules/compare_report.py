# SPDX-License-Identifier: MIT
"""Results of bench/compare: CSV, figure, page and table of text, all from the same rows.

A row is a dict of texts (COLUMNS); rows of a test follow each other, and the first of them is what the others are compared with.
"""
import csv
import math
import os
from html import escape
from pathlib import Path

COLUMNS = ["date", "version", "commit", "machine", "device", "model", "settings", "options", "precision", "search", "beam",
           "threads", "test", "lines", "failed", "rounds", "lines_per_s", "slowest", "fastest", "tokens_per_s", "seconds", "cpu_s",
           "load_s", "peak_mib", "bleu", "bleu_low", "bleu_high", "bleu_p", "chrf", "chrf_low", "chrf_high", "chrf_p"]
# Tell series apart on white and on black, and for colour-blind readers.
SHADES = ["#0a7cc1", "#d55e00", "#0a9e73", "#c66aa0", "#b98a00", "#4f9fd0", "#8c6bb1", "#808080"]
SHAPES = ["circle", "square", "diamond", "triangle"]
# Grey can be read on both, too, where a viewer does not say which it has.
STYLE = (".word{fill:#7a7a7a}.line{stroke:#888;fill:none}.grid{stroke:#8884;fill:none}"
         "@media (prefers-color-scheme:light){.word{fill:#333}}@media (prefers-color-scheme:dark){.word{fill:#ddd}}")
PAGE_STYLE = ("body{font:15px/1.45 sans-serif;max-width:1000px;margin:2em auto;padding:0 1em;color:#222;background:#fff}"
              "table{border-collapse:collapse;margin:1em 0;font-size:14px}th,td{padding:.3em .6em;border-bottom:1px solid #8886;"
              "text-align:right}th{border-bottom:2px solid #888}th.l,td.l{text-align:left}.scroll{overflow-x:auto}"
              "td.clear{font-weight:bold}pre{overflow-x:auto;font-size:13px;padding:.6em;background:#8882}"
              "svg{max-width:100%;height:auto}"
              "@media (prefers-color-scheme:dark){body{color:#ddd;background:#161616}}")


def machine():
    """The processor's name and how many of its cores may be used."""
    name = ""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as f:
            name = next((line.partition(":")[2].strip() for line in f if line.startswith("model name")), "")
    except OSError:
        pass
    return f"{name or os.uname().machine}, {len(os.sched_getaffinity(0))} cores"


def series_of(row):
    return Path(row["model"]).stem or row["model"], row["settings"]


def by_test(rows):
    found = {}
    for row in rows:
        found.setdefault(row["test"], []).append(row)
    return found


# ---- figure ------------------------------------------------------------------------------------------------------------

WIDTH, LEFT, RIGHT, PLOT, TOP = 760, 62, 20, 330, 46


def word(x, y, content, anchor="start", size=12, more="", shade=""):
    paint = f'fill="{shade}"' if shade else 'class="word"'
    return f'<text {paint} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{more}>{escape(content)}</text>'


def ticks(low, high, most=7):
    """Round numbers between two ends."""
    step = 10.0 ** math.floor(math.log10(max(high - low, 1e-9)))
    while (high - low) / step > most:
        step *= 2 if f"{step:e}"[0] in "15" else 2.5
    while (high - low) / step < most / 2.5:
        step /= 2 if f"{step:e}"[0] in "14" else 2.5
    first = math.ceil(low / step - 1e-9)
    return [n * step for n in range(first, int(high / step + 1e-9) + 1)]


class Axis:
    """From numbers to places. Speeds that lie far apart get a logarithmic one."""

    def __init__(self, values, start, end, log=False):
        low, high = min(values), max(values)
        self.log = log and low > 0 and high / low > 4
        pad = (math.log(high / low) if self.log else high - low) * 0.08 or (0.1 if self.log else max(abs(high) * 0.1, 0.5))
        self.low, self.high = (math.log(low) - pad, math.log(high) + pad) if self.log else (low - pad, high + pad)
        self.start, self.end = start, end

    def at(self, value):
        share = ((math.log(value) if self.log else value) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self):
        if not self.log:
            return ticks(self.low, self.high)
        low, high = math.exp(self.low), math.exp(self.high)
        found = [n * 10.0 ** k for k in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1) for n in (1, 2, 5)]
        return [t for t in found if low <= t <= high]


def mark(shape, x, y, shade, size=5):
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{shade}"/>'
    if shape == "square":
        side = 2 * size - 1
        return f'<rect x="{x - side / 2:.1f}" y="{y - side / 2:.1f}" width="{side}" height="{side}" fill="{shade}"/>'
    points = {"diamond": ((0, -6), (6, 0), (0, 6), (-6, 0)), "triangle": ((0, -6), (6, 5), (-6, 5))}[shape]
    return '<polygon points="' + " ".join(f"{x + a:.1f},{y + b:.1f}" for a, b in points) + f'" fill="{shade}"/>'


def overlap(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def place(x, y, content, taken, shade):
    """Where a point's label stands: the first place beside it that nothing else has."""
    wide, high = 6.3 * len(content), 12
    best = None
    for dx, dy, anchor in ((9, -7, "start"), (-9, -7, "end"), (9, 15, "start"), (-9, 15, "end"), (9, 4, "start"), (-9, 4, "end"),
                           (9, -20, "start"), (-9, -20, "end"), (9, 28, "start"), (-9, 28, "end")):
        left = x + dx - (wide if anchor == "end" else 0)
        box = (left, y + dy - high, left + wide, y + dy + 2)
        if box[0] < LEFT or box[2] > WIDTH - 2:
            continue
        best = best or (box, dx, dy, anchor)
        if not any(overlap(box, other) for other in taken):
            best = box, dx, dy, anchor
            break
    box, dx, dy, anchor = best or ((x, y, x, y), 9, -7, "start")
    taken.append(box)
    return word(x + dx, y + dy, content, anchor, 11, "", shade)


def panel(name, rows, styles, top):
    """One test: frame, scales, and every row as a point with its intervals."""
    number = lambda row, column: float(row[column])
    x_axis = Axis([number(r, c) for r in rows for c in ("slowest", "fastest")], LEFT, WIDTH - RIGHT, True)
    y_axis = Axis([number(r, c) for r in rows for c in ("bleu_low", "bleu_high", "bleu")], top + PLOT, top)
    out = [word(LEFT, top - 10, f"{name}, {rows[0]['lines']} lines", size=13)]
    for tick in y_axis.ticks():
        y = y_axis.at(tick)
        out += [f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>', word(LEFT - 6, y + 4, f"{tick:g}", "end", 11)]
    for tick in x_axis.ticks():
        x = x_axis.at(tick)
        out += [f'<path class="grid" d="M{x:.1f} {top}V{top + PLOT}"/>', word(x, top + PLOT + 16, f"{tick:g}", "middle", 11)]
    middle = top + PLOT / 2
    out += [f'<path class="line" d="M{LEFT} {top}V{top + PLOT}H{WIDTH - RIGHT}"/>',
            word((LEFT + WIDTH - RIGHT) / 2, top + PLOT + 34, "lines/s" + (" (logarithmic)" if x_axis.log else ""), "middle"),
            word(16, middle, "BLEU", "middle", 12, f' transform="rotate(-90 16 {middle:.1f})"')]
    places = [(x_axis.at(number(r, "lines_per_s")), y_axis.at(number(r, "bleu"))) for r in rows]
    taken = [(x - 7, y - 7, x + 7, y + 7) for x, y in places]
    beams = len(styles) < len(rows)  # lines over beams; else a point stands for its model and settings
    kinds = [len({series_of(row)[i] for row in rows}) > 1 for i in (0, 1)]
    for key, (shade, _) in styles.items():
        path = [p for p, row in zip(places, rows) if series_of(row) == key]
        if len(path) > 1:
            out.append(f'<polyline fill="none" stroke="{shade}" stroke-opacity="0.6" points="' +
                       " ".join(f"{x:.1f},{y:.1f}" for x, y in path) + '"/>')
    for (x, y), row in zip(places, rows):
        shade, shape = styles[series_of(row)]
        low, high = (y_axis.at(number(row, c)) for c in ("bleu_low", "bleu_high"))
        left, right = (x_axis.at(number(row, c)) for c in ("slowest", "fastest"))
        lines = f"M{x:.1f} {low:.1f}V{high:.1f}M{x - 3:.1f} {low:.1f}h6M{x - 3:.1f} {high:.1f}h6M{left:.1f} {y:.1f}H{right:.1f}"
        out += [f'<path fill="none" stroke="{shade}" d="{lines}"/>', mark(shape, x, y, shade)]
    for (x, y), row in zip(places, rows):
        differs = [part for part, several in zip(series_of(row), kinds) if several]
        content = f"beam {row['beam']}" if beams or not differs else ", ".join(differs)
        out.append(place(x, y, content if len(content) <= 40 else content[:39] + "\u2026", taken,
                         styles[series_of(row)][0]))
    return out


def cut(content, most=105):
    """Lines of words."""
    lines = [""]
    for part in content.split(" "):
        if len(lines[-1]) + len(part) + 1 > most and lines[-1]:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + part
    return lines


def draw(rows, title):
    styles = {}
    for row in rows:
        n = len(styles)
        styles.setdefault(series_of(row), (SHADES[n % len(SHADES)], SHAPES[(n + n // len(SHADES)) % len(SHAPES)]))
    body, top = [], TOP + 20
    for name, some in by_test(rows).items():
        body += panel(name, some, styles, top)
        top += PLOT + 76
    y = top - 22
    for (model, settings), (shade, shape) in styles.items():
        body.append(mark(shape, LEFT + 6, y - 4, shade))
        for line in cut(f"{model}: {settings}"):
            body.append(word(LEFT + 20, y, line))
            y += 17
    note = "vertical: 95 % interval of BLEU by bootstrap; horizontal: slowest and fastest round, point: median"
    body.append(word(LEFT, y + 6, note, size=11))
    height = y + 20
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}" viewBox="0 0 {WIDTH} {height:.0f}" '
            'font-family="sans-serif" role="img">', f"<title>{escape(title)}</title>", f"<style>{STYLE}</style>",
            word(LEFT, 22, title, size=15)]
    return "\n".join(head + body + ["</svg>"]) + "\n"


# ---- page --------------------------------------------------------------------------------------------------------------

def score(row, name):
    return f"{row[name]} [{row[name + '_low']}, {row[name + '_high']}]"


def cell(tag, content, kind=""):
    return f'<{tag} class="{kind}">{escape(content)}</{tag}>' if kind else f"<{tag}>{escape(content)}</{tag}>"


def table(rows):
    heads = ["model", "settings", "beam", "lines/s (rounds)", "tokens/s", "BLEU [95 %]", "p", "chrF [95 %]", "p", "CPU s",
             "load, s", "peak MiB"]
    shown = "".join(cell("th", h, "l" if i < 2 else "") for i, h in enumerate(heads))
    out = [f'<div class="scroll"><table><thead><tr>{shown}</tr></thead><tbody>']
    for row in rows:
        model, settings = series_of(row)
        speed = f"{row['lines_per_s']} ({row['slowest']} to {row['fastest']})"
        cells = [(model, "l"), (settings, "l"), (row["beam"], ""), (speed, ""), (row["tokens_per_s"], "")]
        for name in ("bleu", "chrf"):
            p = row[name + "_p"]
            cells += [(score(row, name), ""), (p or "first", "clear" if p and float(p) < 0.05 else "")]
        cells += [(row["cpu_s"], ""), (row["load_s"], ""), (row["peak_mib"], "")]
        out.append("<tr>" + "".join(cell("td", str(c), kind) for c, kind in cells) + "</tr>")
    return out + ["</tbody></table></div>"]


def page(rows, commands, command, title, figure):
    first = rows[0]
    out = ['<!DOCTYPE html>', '<html xmlns="http://www.w3.org/1999/xhtml" lang="en">', '<head><meta charset="utf-8"/>',
           '<meta name="viewport" content="width=device-width"/>', f"<title>{escape(title)}</title>",
           f"<style>{PAGE_STYLE}</style></head>", "<body>", f"<h1>{escape(title)}</h1>",
           f"<p>{escape(first['date'])}, Dragoman {escape(first['version'])} ({escape(first['commit'])}), "
           f"{escape(first['machine'])}; {escape(first['device'])}. {first['rounds']} rounds, in which rows take turns; "
           "medians. p: how probable so large a difference to "
           "the first row is if there is none, by paired bootstrap resampling; bold below 0.05.</p>", figure]
    for (name, some), shown in zip(by_test(rows).items(), commands):
        failed = sum(int(row["failed"]) for row in some)
        out += [f"<h2>{escape(name)}, {some[0]['lines']} lines</h2>", *table(some)]
        if failed:
            out.append(f"<p>{failed} lines could not be translated.</p>")
        out += ["<pre>" + escape("\n".join(shown)) + "</pre>"]
    return "\n".join(out + ["<h2>Command</h2>", f"<pre>{escape(command)}</pre>", "</body></html>"]) + "\n"


def write(out, rows, commands, command, title):
    """OUT.csv, OUT.svg and OUT.html."""
    title = title or "BLEU and speed"
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    with open(f"{out}.csv", "w", newline="", encoding="utf-8") as f:
        w = csv.DictWriter(f, COLUMNS, lineterminator="\n")
        w.writeheader()
        w.writerows(rows)
    figure = draw(rows, title)
    Path(f"{out}.svg").write_text(figure, encoding="utf-8")
    Path(f"{out}.html").write_text(page(rows, commands, command, title, figure), encoding="utf-8")


def text(rows):
    """The same for a terminal."""
    lines = []
    for name, some in by_test(rows).items():
        heads = ["model", "settings", "beam", "lines/s", "BLEU", "p", "chrF", "p"]
        cells = [[*series_of(r), str(r["beam"]), r["lines_per_s"], score(r, "bleu"), r["bleu_p"] or "-", r["chrf"],
                  r["chrf_p"] or "-"] for r in some]
        widths = [max(len(row[i]) for row in [heads, *cells]) for i in range(len(heads))]
        lines.append(f"{name}, {some[0]['lines']} lines, {some[0]['rounds']} rounds")
        lines += ["  ".join(c.ljust(w) for c, w in zip(row, widths)).rstrip() for row in [heads, *cells]]
    return "\n".join(lines)
