# SPDX-License-Identifier: MIT
"""Every message that the library, the program and the server can give, from the source, with cause and cure (messages.ini).

`packaging/manual` makes a page of all of them; docs/manual/ERRORS.md has causes and cures without the messages, written by

    python3 packaging/messages.py

`tests/system/manual` checks that each message has both, that no cure names an option which does not exist, and that the page is
what this writes."""
import configparser
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CALLS = {"DGM_FAIL_IF": 3, "dgm_fail": 2, "fail": 1, "fail_usage": 1, "warn": 0, "dgm_answer_error": 2}  # place of the text
CODE = {"DGM_FAIL_IF": 2, "dgm_fail": 1, "fail": 0, "dgm_answer_error": 1}


def arguments(text, at):
    """The arguments of a call whose opening parenthesis is at `at`."""
    depth, start, found, quote, here = 0, at + 1, [], None, at
    while here < len(text):
        c = text[here]
        if quote:
            if c == "\\":
                here += 1
            elif c == quote:
                quote = None
        elif c in "\"'":
            quote = c
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
            if depth == 0:
                found.append(text[start:here].strip())
                return found
        elif c == "," and depth == 1:
            found.append(text[start:here].strip())
            start = here + 1
        here += 1
    return []


def words(argument):
    """Text of an argument made of string constants and macros such as PRIu64."""
    parts = re.findall(r'"((?:[^"\\]|\\.)*)"|([A-Z]\w+|[?:])', argument)
    text = "".join(s if s or not m else (" / " if m in "?:" else "…") for s, m in parts)
    text = re.sub(r"%[-+ #0-9.*]*(?:ll|l|h|z|t|j|hh)?[a-zA-Z]", "…", text.replace('\\"', '"').replace("\\n", " ").replace("%%", "%"))
    return re.sub(r"(… ?){2,}", "…", text).strip(" /")


def messages():
    """[(text, status, file)], each text of a file once."""
    seen, found = set(), []
    for path in sorted([*ROOT.glob("src/**/*.c"), *ROOT.glob("apps/**/*.c")]):
        name = path.relative_to(ROOT).as_posix()
        text = path.read_text(encoding="utf-8")
        for match in re.finditer(r"(?<![\w\"])(" + "|".join(CALLS) + r")\(", text):
            given = arguments(text, match.end() - 1)
            place = CALLS[match.group(1)]
            if len(given) <= place or '"' not in given[place]:
                continue
            said = words(given[place])
            code = given[CODE[match.group(1)]] if match.group(1) in CODE else "EXIT_USAGE" if match.group(1) == "fail_usage" else "warning"
            if re.search(r"[A-Za-z]{3}", said) and (said, name) not in seen:
                seen.add((said, name))
                found.append((said, code if re.fullmatch(r"[\w]+", code) else "by its cause", name))
    return found


def families():
    """[(part of the page, title, where, pattern, cause, cure)] in order; cause and cure may be empty, which a test forbids."""
    file = configparser.ConfigParser(delimiters="=", comment_prefixes="#", interpolation=None, default_section="")
    file.read(ROOT / "packaging/messages.ini", encoding="utf-8")
    part, found = "", []
    for title in file.sections():
        if title.startswith("= "):
            part = title[2:]
            continue
        get = lambda name, default="": file[title].get(name, default)
        found.append((part, title, tuple(get("where", "src apps").split()), re.compile(get("match", ".")), get("cause"), get("cure")))
    return found


def sorted_out():
    """({title: [message]}, [message without a family])"""
    known, left = families(), []
    found = {title: [] for _, title, *_ in known}
    for message in messages():
        said, code, name = message
        for _, title, where, pattern, _, _ in known:
            if name.startswith(where) and pattern.search(f"{said} [{code}]"):
                found[title].append(message)
                break
        else:
            left.append(message)
    return found, left


def page():
    found, _ = sorted_out()
    out = ["# Messages\n\nEvery message of library, program and server, from the source. `…` is what a message fills in. "
           "[ERRORS](ERRORS.md) says how to read them.\n"]
    for _, title, _, _, cause, cure in families():
        if not found[title]:
            continue
        out.append(f"\n## {title[0].upper() + title[1:]}\n\n**Cause.** {cause} **Cure.** {cure}\n\n| message | status | source |\n|---|---|---|")
        for said, code, name in sorted(set(found[title])):
            shown = re.sub(r"([|*_<>`\[\]])", r"\\\1", said)
            out.append(f"| {shown} | {code.removeprefix('DGM_ERR_').removeprefix('EXIT_').lower()} | `{name}` |")
    return "\n".join(out) + "\n"


# ---- ERRORS.md -----------------------------------------------------------------------------------

MARKS = "<!-- packaging/messages.py: begin -->", "<!-- packaging/messages.py: end -->"


def errors_page():
    """docs/manual/ERRORS.md with the table of causes and cures between its marks."""
    text = (ROOT / "docs/manual/ERRORS.md").read_text(encoding="utf-8")
    out, last = [], None
    for part, title, _, _, cause, cure in families():
        if part != last:
            out.append(f"\n## {part}\n\n| what | cause | cure |\n|---|---|---|")
            last = part
        out.append(f"| {title} | {cause} | {cure} |")
    before, rest = text.split(MARKS[0])
    return before + MARKS[0] + "\n" + "\n".join(out) + "\n\n" + MARKS[1] + rest.split(MARKS[1])[1]


if __name__ == "__main__":
    (ROOT / "docs/manual/ERRORS.md").write_text(errors_page(), encoding="utf-8")
    sys.exit(0)
