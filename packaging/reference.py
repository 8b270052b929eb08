# SPDX-License-Identifier: MIT
"""The reference of the C API as Markdown, from the public headers: `packaging/manual` calls it.

What stands in a header before a declaration is its text; "// ---- name ---" begins a section. A declaration ends with its ";",
that of a struct or an enumeration with its closing brace. Nothing of the headers is left out but guards and #include lines.
"""
import re
from pathlib import Path

STABLE = ("dragoman.h", "status.h", "settings.h")
RULES = """# The C API: reference

Made from the headers of `include/dragoman/`. `dragoman.h`, `status.h` and `settings.h` are stable (soversion 1); the others serve the
tools, and their symbols carry the version of the release. [API](API.md) goes through it task by task.

## Threads

- A `dgm_translator` may be used by any number of threads at once, without locks of yours; so may what `dgm_open_like` gives.
- `dgm_cancel`, `dgm_job_done` and `dgm_job_share` may be called by any thread while the job is there; `dgm_wait` ends it, once.
- Results are read-only: any thread may read them, until one frees them.
- Functions of `dgm_watch` are called from threads of the library: of one job never two at once, of several jobs at the same time. They may
  call `dgm_cancel`, `dgm_job_done` and `dgm_submit`, and must not wait for translations, close the translator, throw or jump out.
- `dgm_error`, `dgm_settings`, `dgm_input` and other structs of yours are yours: one thread writes them at a time.
- `dgm_close` comes after every call on the translator has returned and every job was waited for.
- Threads do not come along through `fork`: open translators in the child.
"""


def declarations(text):
    """[(kind, words)]: 'section', 'text' or 'code'."""
    lines, found, at = text.split("\n"), [], 0
    lines = [l for l in lines if not re.match(r"#include|#ifndef DRAGOMAN_|#define DRAGOMAN_|// SPDX", l)]
    while at < len(lines):
        line = lines[at]
        if re.match(r"// ---- (.*?) -+$", line):
            found.append(("section", re.match(r"// ---- (.*?) -+$", line).group(1)))
        elif re.match(r"#if defined\(__GNUC__\)|#ifdef __cplusplus", line):
            while at < len(lines) and not lines[at].startswith("#endif"):
                at += 1
        elif line.startswith("//"):
            words = []
            while at < len(lines) and lines[at].startswith("//"):
                words.append(lines[at][3:])
                at += 1
            found.append(("text", words))
            continue
        elif line.startswith("#define"):
            found.append(("code", line.rstrip("\\").rstrip()))
            while lines[at].endswith("\\"):
                at += 1
        elif line and not line.startswith("#") and line != "}":
            words, depth = [], 0
            while at < len(lines):
                words.append(lines[at])
                code = re.sub(r"//.*", "", lines[at])
                depth += code.count("{") - code.count("}")
                at += 1
                if depth == 0 and (code.rstrip().endswith(";") or (code.rstrip() == "}" and "static inline" in words[0])):
                    break
            found.append(("code", "\n".join(words)))
            continue
        at += 1
    return found


def name_of(code):
    if code.startswith("#define"):
        return re.match(r"#define (\w+)", code).group(1)
    found = re.search(r"\}\s*(\w+)\s*;\s*$", code) or re.search(r"\b(dgm_\w+)\s*\(", code) or re.search(r"(\w+)\s*;", code)
    return found.group(1) if found else code.split("\n")[0]


def prose(words):
    """Comment lines as Markdown; indented parts are code or lists, as they stand."""
    out = []
    for word in words:
        code = word.startswith("    ")
        out.append(word if code or word.lstrip().startswith("- ") else re.sub(r"([*_<>|])", r"\\\1", word))
    return "\n".join(out)


def header(path):
    stable = path.name in STABLE
    out = [f"\n## dragoman/{path.name}\n", "" if stable else "Of the tools: the version of its symbols goes with the release.\n"]
    pending = []
    for kind, words in declarations(path.read_text(encoding="utf-8")):
        if kind == "text":
            if pending:
                out.append(prose(pending) + "\n")
            pending = words
        elif kind == "section":
            out.append(prose(pending) + f"\n\n*{words}*\n")
            pending = []
        else:
            name = name_of(words)
            tidy = words.replace("DGM_API ", "")
            out.append(f"\n### {name}\n\n```c\n{tidy}\n```\n\n{prose(pending)}\n")
            pending = []
    return "\n".join(out + [prose(pending)])


def functions(folder):
    """Names of all public functions, by the headers."""
    text = "".join(p.read_text(encoding="utf-8") for p in sorted(Path(folder).glob("*.h")))
    return set(re.findall(r"^DGM_API [^;(]*?\b(dgm_\w+)\(", text, re.M))


def page(folder):
    folder = Path(folder)
    names = [folder / n for n in STABLE] + sorted(p for p in folder.glob("*.h") if p.name not in STABLE)
    text = RULES + "".join(header(p) for p in names)
    missing = [n for n in functions(folder) if f"### {n}\n" not in text]
    if missing:
        raise SystemExit(f"reference: no entry for {', '.join(sorted(missing))}")
    return text
