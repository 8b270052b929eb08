# SPDX-License-Identifier: MIT
"""Tables, CSV files and drawings of bench/iglesias2018.

Every table is printed as markdown with the paper's numbers beside ours and written as RESULTS/iglesias2018-PART.csv.
Rows that were not measured, for lack of time are left out.
"""
import csv
import statistics
from pathlib import Path

# Words a minute on a GTX 1080 Ti, as read from the text of the paper.
PAPER_BEAM = {4: 3.0, 12: 5.0}                         # beam-batched / one row at a time
PAPER_SENTENCES = {5: 21000 / 9449, 7: 24000 / 9449}   # sorted sentences / one sentence
PAPER_UNSORTED = {7: 17000 / 9449}
PAPER_TABLE_1 = {"phrase-based alone": 19.6, "GRU": 26.1, "GRU lists": 26.6, "GRU lattices": 26.6, "Transformer": 28.9,
                 "Transformer lists": 29.2, "Transformer lattices": 29.2}
PAPER_TABLE_2 = {("research", False): (26.1, 2207), ("research", True): (26.6, 263), ("accelerated", False): (25.2, 9449),
                 ("accelerated", True): (25.7, 4927)}
PAPER_ABLATION = {"200-best": -0.3, "shrunken network": -0.2, "beam 4": -0.4}
COLOURS = ["#2457a6", "#b03a2e", "#1b7f4b", "#8a5aa8", "#c47f17", "#444444"]


def number(row, field):
    return float(row[field]) if row and row.get(field) not in (None, "") else None


def speed(row):
    """Source words per CPU minute of the search; evidence is ready."""
    return 60 * number(row, "words") / number(row, "seconds") if row else None


def shown(value, form="{:.2f}", none="-"):
    return none if value is None else form.format(value)


def spread(values):
    values = sorted(v for v in values if v is not None)
    return (statistics.median(values), values[0], values[-1]) if values else None


def table(bench, part, title, head, rows, note=""):
    """Prints a table and writes it as a CSV file."""
    if not rows:
        return
    print(f"\n{title}\n\n| {' | '.join(head)} |\n|{'|'.join('---' for _ in head)}|")
    for row in rows:
        print("| " + " | ".join(str(x) for x in row) + " |")
    if note:
        print("\n" + note)
    path = results(bench, f"iglesias2018-{part}", "csv")
    with open(path, "w", newline="", encoding="utf-8") as f:
        commits = ", ".join(dict.fromkeys(run["commit"] for run in bench.run.runs.values()))
        f.write(f"# cpu: {bench.run.cpu}\n# commits of the runs of this work folder: {commits}\n")
        out = csv.writer(f, lineterminator="\n")
        out.writerow(head)
        out.writerows(rows)


def results(bench, name, kind):
    folder = Path(bench.args.results or bench.run.work)
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{name}{'-' + bench.args.suffix if bench.args.suffix else ''}.{kind}"


# ---- drawings --------------------------------------------------------------------------------------------------------

def draw(path, title, x_name, y_name, curves, low=0):
    """curves: (name, colour, dashed, [(x, y)]); x of all curves are shown at equal distances, y from `low` on."""
    curves = [c for c in curves if c[3]]
    if not curves or max(y for c in curves for _, y in c[3]) <= low:
        return
    width, height, left, top = 460, 260, 70, 40
    xs = sorted({x for c in curves for x, _ in c[3]})
    peak = max(y for c in curves for _, y in c[3]) * 1.05

    def at(x, y):
        return left + width * xs.index(x) / max(1, len(xs) - 1), top + height * (1 - (y - low) / (peak - low))

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 260}" height="{height + 100}" '
           f'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>'
           f'<text x="{left}" y="24">{title}</text>'
           f'<path d="M{left} {top}V{top + height}H{left + width}" stroke="black" fill="none"/>'
           f'<text x="{left + width / 2}" y="{top + height + 44}" text-anchor="middle">{x_name}</text>'
           f'<text transform="translate(16 {top + height / 2}) rotate(-90)" text-anchor="middle">{y_name}</text>']
    for x in xs:
        px, py = at(x, low)
        out.append(f'<text x="{px:.1f}" y="{py + 18:.1f}" text-anchor="middle">{x:g}</text>')
    step = 10.0 ** (len(str(int(peak - low))) - 2)
    while (peak - low) / step > 8:
        step *= 2 if str(step).strip("0.")[0] in "15" else 2.5
    for i in range(int(low / step) + 1, int(peak / step) + 1):
        px, py = at(xs[0], i * step)
        out.append(f'<path d="M{left} {py:.1f}H{left + width}" stroke="#ddd"/>'
                   f'<text x="{left - 6}" y="{py + 4:.1f}" text-anchor="end">{i * step:g}</text>')
    for i, (name, colour, dashed, points) in enumerate(curves):
        dash = ' stroke-dasharray="6 4"' if dashed else ""
        line = "L".join("{:.1f} {:.1f}".format(*at(*p)) for p in points)
        out.append(f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        out.extend('<circle cx="{:.1f}" cy="{:.1f}" r="3" fill="{}"/>'.format(*at(*p), colour) for p in points)
        y = top + 12 + 18 * i
        out.append(f'<path d="M{left + width + 16} {y - 4}h24" stroke="{colour}" stroke-width="2"{dash}/>'
                   f'<text x="{left + width + 46}" y="{y}">{name}</text>')
    path.write_text("\n".join(out) + "\n</svg>\n", encoding="utf-8")


def draw_bars(path, title, bars):
    """bars: (name, {part: seconds})."""
    names = [n for n in dict.fromkeys(p for _, parts in bars for p in parts)]
    longest = max(sum(parts.values()) for _, parts in bars)
    left, width = 150, 460
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 40}" height="{90 + 50 * len(bars)}" '
           f'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>'
           f'<text x="20" y="24">{title}</text>']
    for i, (name, parts) in enumerate(bars):
        x, y = left, 40 + 50 * i
        out.append(f'<text x="{left - 8}" y="{y + 20}" text-anchor="end">{name}</text>')
        for part, seconds in parts.items():
            w = width * seconds / longest
            colour = COLOURS[names.index(part) % len(COLOURS)] if names.index(part) < 6 else "#999999"
            out.append(f'<rect x="{x:.1f}" y="{y}" width="{w:.1f}" height="30" fill="{colour}"/>')
            x += w
        out.append(f'<text x="{x + 4:.1f}" y="{y + 20}">{sum(parts.values()):.1f} s</text>')
    x = 20
    for i, part in enumerate(names):
        colour = COLOURS[i % len(COLOURS)] if i < 6 else "#999999"
        y = 60 + 50 * len(bars)
        out.append(f'<rect x="{x}" y="{y - 10}" width="10" height="10" fill="{colour}"/><text x="{x + 14}" y="{y}">{part}'
                   "</text>")
        x += 24 + 7 * len(part)
    path.write_text("\n".join(out) + "\n</svg>\n", encoding="utf-8")


# ---- figures ---------------------------------------------------------------------------------------------------------

def figure2(bench, rows):
    made, curves = [], []
    for system, precision, beam, finish, cells in rows:
        pairs = [(a, b) for a, b in cells if a and b]
        if not pairs:
            continue
        one, all_rows = (statistics.median(speed(p[k]) for p in pairs) for k in (0, 1))
        ratio = spread([speed(b) / speed(a) for a, b in pairs])
        walked = [max(number(r, "walked") or 0, 1e-3) / max(1, number(r, "tokens")) for r in pairs[0]]
        rate = walked[0] * number(pairs[0][0], "tokens") * 2**20 / number(pairs[0][0], "seconds") / 1e9
        made.append([system, precision, beam, f"{one:.0f}", f"{all_rows:.0f}", f"{ratio[0]:.2f}",
                     f"{ratio[1]:.2f}-{ratio[2]:.2f}", shown(PAPER_BEAM.get(beam), "{:.0f}"), f"{walked[0]:.0f}",
                     f"{walked[1]:.0f}", f"{walked[0] / walked[1]:.2f}", f"{rate:.1f}",
                     pairs[0][1]["rss"], finish, pairs[0][1].get("steps", "")])
    for i, (system, precision, finish) in enumerate(dict.fromkeys((m[0], m[1], m[-2]) for m in made)):
        mine = [m for m in made if (m[0], m[1], m[-2]) == (system, precision, finish)]
        colour = COLOURS[i % len(COLOURS)]
        precision += f", {finish}"
        curves.append((f"{system} {precision}", colour, False, [(m[2], float(m[4])) for m in mine]))
        curves.append((f"{system} {precision}, one row", colour, True, [(m[2], float(m[3])) for m in mine]))
    table(bench, "figure2", f"Figure 2: source words a minute against the beam, one sentence at a time "
          f"({bench.few.lines} lines of {bench.texts[0].name}, one thread)",
          ["system", "precision", "beam", "one row", "all rows", "ratio", "spread", "paper (GPU)", "MiB a token, one row",
           "all rows", "bound by bytes", "GB/s, one row", "peak RSS MiB", "finish", "state steps"], made,
          "MiB a token: weights that the decoder walks through. A CPU gains by batching what it saves in walking: where one "
          "row waits for memory the ratio of the two is the bound of the speed-up, less what rows do by themselves.")
    draw(results(bench, "iglesias2018-figure2", "svg"), "Words a minute against the beam, one sentence at a time", "beam",
         "words a minute", curves)


def figure3(bench, rows):
    made, curves = [], []
    for system, precision, beam, finish, cells in rows:
        for sentences in dict.fromkeys(c[0] for c in cells):
            for order in "sorted", "unsorted":
                pairs = [(c[2], c[3]) for c in cells if c[:2] == (sentences, order) and c[2] and c[3]]
                if not pairs:
                    continue
                ratio = spread([speed(b) / speed(a) for a, b in pairs])
                paper = (PAPER_SENTENCES if order == "sorted" else PAPER_UNSORTED).get(sentences) if beam == 4 else None
                made.append([system, precision, beam, sentences, order,
                             f"{statistics.median(speed(a) for a, _ in pairs):.0f}",
                             f"{statistics.median(speed(b) for _, b in pairs):.0f}", f"{ratio[0]:.2f}",
                             f"{ratio[1]:.2f}-{ratio[2]:.2f}", shown(paper), pairs[0][1]["workspace"], pairs[0][1]["rss"],
                             finish, pairs[0][1].get("steps", "")])
    for i, (system, precision, finish) in enumerate(dict.fromkeys((m[0], m[1], m[-2]) for m in made)):
        for order in "sorted", "unsorted":
            mine = [m for m in made if (m[0], m[1], m[-2], m[2], m[4]) == (system, precision, finish, 4, order)]
            curves.append((f"{system} {precision}, {finish}, {order}", COLOURS[i % len(COLOURS)], order == "unsorted",
                           ([(1, float(mine[0][5]))] if mine else []) + [(m[3], float(m[6])) for m in mine]))
    table(bench, "figure3", f"Figure 3: source words a minute against the sentences at once "
          f"({bench.many.lines} lines of {bench.texts[0].name}, one thread)",
          ["system", "precision", "beam", "sentences", "order", "one sentence", "all", "ratio", "spread", "paper (GPU)",
           "workspace MiB", "peak RSS MiB", "finish", "state steps"], made,
          "unsorted: lines are sorted within their batch alone; as sentences enter when others leave, little is lost.")
    draw(results(bench, "iglesias2018-figure3", "svg"), "Words a minute against the sentences at once, beam 4", "sentences",
         "words a minute", curves)


def figure1(bench, rows):
    bars, made = [], []
    for name, system, phrase, row in rows:
        if not row:
            continue
        parts = {}
        if phrase:
            parts["phrase decoder"] = number(phrase, "seconds")
        if number(row, "evidence_seconds") is not None:
            parts["evidence"] = number(row, "evidence_seconds")
        for part in "encoder", "states", "readout", "products", "selection", "search":
            if number(row, part):
                parts[part] = number(row, part)
        bars.append((name, parts))
        whole = sum(parts.values())
        made.extend([name, system.name, part, f"{seconds:.2f}", f"{100 * seconds / whole:.1f}"]
                    for part, seconds in parts.items())
    table(bench, "figure1", f"Figure 1: where the time goes, accelerated setting ({bench.many.lines} lines, beam 4)",
          ["setting", "system", "part", "seconds", "%"], made)
    if bars and any(sum(parts.values()) > 0 for _, parts in bars):
        draw_bars(results(bench, "iglesias2018-figure1", "svg"), "CPU seconds of the accelerated setting, beam 4", bars)


# ---- tables ----------------------------------------------------------------------------------------------------------

def together(rows):
    """Words a minute of several texts together, and evidence's share."""
    timed = [r for r in rows if isinstance(r, dict)]
    if not timed or len(timed) != len(rows):
        return None
    return 60 * sum(number(r, "words") for r in timed) / sum(number(r, "seconds") for r in timed)


def cost(rows):
    """Policy and state steps of several texts together; of minimum Bayes risk and other systems nothing."""
    timed = [r for r in rows if isinstance(r, dict) and r.get("finish")]
    if not timed or len(timed) != len(rows):
        return ["", ""]
    return [timed[0]["finish"], f"{sum(number(r, 'steps') or 0 for r in timed):.0f}"]


def table1(bench, system, rows):
    made = []
    kind = "Transformer" if system is bench.transformer else "GRU"
    for name, outputs, base in rows:
        if any(o is None for o in outputs):
            continue
        whole = bench.run.bleu(outputs, bench.tests, base)
        if not whole:                                   # the system alone is not there to compare with
            continue
        each = [bench.run.bleu([o], [t]) for o, t in zip(outputs, bench.tests)]
        bleu, difference, p = whole
        short = name if name.startswith("phrase") else kind + (" lists" if "lists" in name else
                                                               " lattices" if "LMBR, lattices" in name else "")
        paper = PAPER_TABLE_1.get(short) if "MBR of" not in name and "in the" not in name else None
        made.append([name, *(f"{e[0]:.2f}" for e in each), f"{bleu:.2f}", shown(difference, "{:+.2f}", ""),
                     shown(p, "{:.4f}", ""), shown(together(outputs), "{:.0f}", ""), *cost(outputs), shown(paper, "{:.1f}")])
    head = ["system", *(t.name for t in bench.tests), "together", "difference", "p", "words a minute", "finish", "state steps",
            "paper, en-de 2017"]
    if bench.args.languages != ["en", "de"]:  # the paper's numbers are of another pair
        head, made = head[:-1], [row[:-1] for row in made]
    table(bench, f"table1-{kind.lower()}", f"Table 1: {system.name}, beam {bench.args.beam}, settings of "
          f"{bench.dev.name if bench.dev else 'nowhere'}", head, made)


def table2(bench, rows):
    made = []
    for name, system, kind, timed, outputs in rows:
        if not timed:
            continue
        bleu = bench.run.bleu(outputs, bench.tests) if outputs else None
        whole = None
        if timed and kind:
            options = ["--nbest", 200, "--distinct", "--nbest-file", "FILE"] if kind == "lists" else \
                ["--lattice", "FILE", "--lattice-beam", 0.3]
            phrase = bench.run.phrase_speed(bench.many, options)
            if phrase:
                whole = 60 * number(timed, "words") / (number(timed, "seconds") + number(phrase, "seconds") +
                                                       (number(timed, "evidence_seconds") or 0))
        paper = PAPER_TABLE_2[name, bool(kind)]
        made.append([name, system.name, kind or "none", timed["beam"] if timed else "", shown(bleu and bleu[0]),
                     shown(speed(timed), "{:.0f}"), shown(whole, "{:.0f}", ""), timed["rss"] if timed else "",
                     *cost([timed]), paper[0], paper[1]])
    table(bench, "table2", "Table 2: research against accelerated, one sentence at a time, one thread",
          ["setting", "system", "evidence", "beam", "BLEU", "words a minute", "with making the evidence", "peak RSS MiB",
           "finish", "state steps", "paper BLEU", "paper words a minute (GPU)"], made)


def ablation(bench, rows):
    made, before = [], None
    for name, system, outputs in rows:
        bleu = bench.run.bleu(outputs, bench.tests, before)
        if not bleu:
            continue
        made.append([name, system.name, f"{bleu[0]:.2f}", shown(bleu[1], "{:+.2f}", ""), shown(bleu[2], "{:.4f}", ""),
                     shown(together(outputs), "{:.0f}"), *cost(outputs), *values(outputs),
                     shown(PAPER_ABLATION.get(name), "{:+.1f}")])
        before = outputs
    table(bench, "ablation", "Section 4.3, step by step", ["step", "system", "BLEU", "against the step before", "p",
                                                           "words a minute", "finish", "state steps", "rows a line",
                                                           "values a line", "paper"], made)


def values(rows):
    """Rows and values of the evidence of a line."""
    lines = sum(number(r, "lines") for r in rows)
    return [f"{sum((number(r, f) or 0) * number(r, 'lines') for r in rows) / lines:.0f}"
            for f in ("evidence_rows", "evidence_values")]


def limits(bench, rows, options, outputs):
    """rows: (option, value, BLEU on the development text, CPU seconds); outputs: with the defaults and with the best."""
    made = [[option, value, f"{bleu:.2f}", f"{60 * bench.whole_dev.words / seconds:.0f}" if seconds else "", "", ""]
            for option, value, bleu, seconds in rows]
    if all(path for group in outputs for path in group):
        bleu = bench.run.bleu(outputs[0], bench.texts)
        made.append(["defaults, " + " and ".join(t.name for t in bench.texts), "", f"{bleu[0]:.2f}", "", "", ""])
        bleu = bench.run.bleu(outputs[1], bench.texts, outputs[0])
        made.append([" ".join(map(str, options)), "", f"{bleu[0]:.2f}", "", f"{bleu[1]:+.2f}", shown(bleu[2], "{:.4f}")])
    table(bench, "limits", f"Limits of the phrase-based decoder, {bench.whole_dev.name}",
          ["option", "value", "BLEU", "words per CPU minute", "difference", "p"], made)


def size(bench, rows, base):
    made, points = [], []
    whole = sum(m.stat().st_size for m in bench.ensemble.models)
    for name, system, outputs in rows:
        bleu = bench.run.bleu(outputs, bench.tests, None if outputs is base else base)
        if not bleu:
            continue
        share = 100 * sum(m.stat().st_size for m in system.models) / whole
        made.append([name, f"{share:.0f}", f"{bleu[0]:.2f}", shown(bleu[1], "{:+.2f}", ""), shown(bleu[2], "{:.4f}", ""),
                     shown(together(outputs), "{:.0f}"), "-0.2" if name == "78 %" else "-"])
        if name.endswith("%") or name == "unfolded":
            points.append((share, bleu[0]))
    table(bench, "size", f"The ensemble as one network, beam {bench.args.beam}",
          ["network", "% of the members' files", "BLEU", "against the ensemble", "p", "words a minute", "paper"], made)
    draw(results(bench, "iglesias2018-size", "svg"), "BLEU against the size of the network", "% of the members' files",
         "BLEU", [("one network", COLOURS[0], False, sorted(points))],
         low=0.9 * min((y for _, y in points), default=0))


def evidence(bench, rows):
    made = []
    for name, outputs in rows:
        texts = [t for t in bench.tests if t.lists]
        bleu = bench.run.bleu(outputs, texts)
        if not bleu:
            continue
        lines = sum(number(r, "lines") for r in outputs)
        made.append([name, *(f"{sum(number(r, f) * number(r, 'lines') for r in outputs) / lines:.0f}"
                             for f in ("evidence_rows", "evidence_values")),
                     f"{1000 * sum(number(r, 'evidence_seconds') for r in outputs) / lines:.2f}", f"{bleu[0]:.2f}",
                     shown(together(outputs), "{:.0f}")])
    table(bench, "evidence", "Evidence by size", ["evidence", "rows a line", "values a line", "ms a line to make", "BLEU",
                                                  "words a minute"], made)


def phrase(bench, rows):
    made = []
    for options, threads in dict.fromkeys((tuple(map(str, o)), t) for o, t, _ in rows):
        found = [r for o, t, r in rows if r and (tuple(map(str, o)), t) == (options, threads)]
        if found:
            made.append([" ".join(o for o in options if o != "FILE") or "defaults", threads,
                         f"{statistics.median(speed(r) for r in found):.0f}",
                         f"{statistics.median(60 * number(r, 'words') / max(0.01, number(r, 'wall')) for r in found):.0f}",
                         len(found), found[0]["rss"]])
    table(bench, "phrase", f"The phrase-based decoder ({bench.texts[0].name}; paper: 20,000 words a minute)",
          ["options", "threads", "words per CPU minute, loading included", "words a minute, after loading", "rounds",
           "peak RSS MiB"], made)
