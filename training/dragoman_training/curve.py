# SPDX-License-Identifier: MIT
"""Learning curves as a small SVG, from the run's log.csv (no plotting library)."""
import csv


def read_log(path):
    with open(path, encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))


def points(rows, x, y):
    found = []
    for row in rows:
        if row.get(x) and row.get(y):
            found.append((float(row[x]), float(row[y])))
    return found


def thin(place, apart=10):
    """The points of a line that are at least so many pixels apart, and its last."""
    kept = place[:1]
    for point in place[1:-1]:
        if point[0] - kept[-1][0] >= apart:
            kept.append(point)
    return kept + place[-1:]


def panel(data, title, left, top, width, height, colour):
    """One set of axes with a line; data [(x, y)]."""
    if len(data) < 2:
        return ""
    xs, ys = [p[0] for p in data], [p[1] for p in data]
    x0, x1, y0, y1 = min(xs), max(xs), min(ys), max(ys)
    x1, y1 = (x1 if x1 > x0 else x0 + 1), (y1 if y1 > y0 else y0 + 1)
    place = [(left + (x - x0) / (x1 - x0) * width, top + height - (y - y0) / (y1 - y0) * height) for x, y in data]
    line = " ".join(f"{x:.0f},{y:.0f}" for x, y in thin(place))
    text = [f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#bbb"/>',
            f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>',
            f'<text x="{left}" y="{top - 6}" font-weight="bold">{title}</text>']
    for i in range(5):
        y = y0 + (y1 - y0) * i / 4
        line = top + height - height * i / 4 + 4
        text.append(f'<text x="{left - 4}" y="{line:.0f}" text-anchor="end">{y:.3g}</text>')
        x = x0 + (x1 - x0) * i / 4
        text.append(f'<text x="{left + width * i / 4:.0f}" y="{top + height + 14}" text-anchor="middle">{x:.0f}</text>')
    return "\n".join(text)


def draw(log, out, name="run"):
    """Loss, learning rate and validation BLEU over seconds."""
    rows = read_log(log)
    wanted = [("loss", "training loss", "#1f6feb"), ("rate", "learning rate", "#8250df"),
              ("valid_loss", "validation -log p a token", "#bf3989"),
              ("valid_bleu", "validation BLEU (greedy)", "#1a7f37")]
    panels = [(points(rows, "seconds", key), title, colour) for key, title, colour in wanted]
    panels = [p for p in panels if len(p[0]) >= 2]
    height = 30 + 190 * len(panels)
    body = [panel(data, title, 70, 40 + 190 * i, 560, 140, colour) for i, (data, title, colour) in enumerate(panels)]
    with open(out, "w", encoding="utf-8") as f:
        f.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="660" height="{height}" font-family="sans-serif" '
                f'font-size="11">\n<rect width="100%" height="100%" fill="white"/>\n'
                f'<text x="70" y="18" font-size="13">{name} (seconds)</text>\n' + "\n".join(body) + "\n</svg>\n")
