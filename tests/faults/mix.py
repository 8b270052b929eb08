# SPDX-License-Identifier: MIT
"""Requests to every endpoint of `dragoman serve`: from many clients in tests/system/soak, while calls fail in tests/system/faults.

Each function asks a serving.Server and returns what of the answer does not depend on the moment; it raises ValueError for another
status than was expected.
"""

import json
import random
import time
import urllib.parse

TEXTS = [
    "Good morning.",
    "The house is big.",
    "I would like a cup of tea, please.",
    "Where is the station?\nIt is over there.",
    "We met in March 2024.",
]
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
PARTS = {"Content-Type": "multipart/form-data; boundary=B"}
VOLATILE = {"ms", "queued_ms", "uptime_s", "translatedFileUrl", "url", "loaded"}


def settled(answer):
    """Without what changes from time to time."""
    if isinstance(answer, dict):
        return {k: settled(v) for k, v in answer.items() if k not in VOLATILE}
    return [settled(v) for v in answer] if isinstance(answer, list) else answer


def ask(s, method, path, body=None, headers=None, expected=200, raw=False):
    status, answer = s.ask(method, path, body, headers, raw)
    if status != expected:
        raise ValueError(f"{method} {path}: {status} {str(answer)[:300]}")
    return answer


def plain(method, path, body=None, headers=None):
    return lambda s: settled(ask(s, method, path, body, headers))


def there(path):
    """Of an answer that says how things are: that there is one."""
    return lambda s: bool(ask(s, "GET", path))


def multipart(**fields):
    rows = []
    for name, value in fields.items():
        more = '; filename="a.md"' if name == "file" else ""
        rows += ["--B", f'Content-Disposition: form-data; name="{name}"{more}', "", value]
    return "\r\n".join([*rows, "--B--", ""])


PAGE = "# A house\n\nThe **house** is big.\n"


def translate_file(s):
    answer = ask(s, "POST", "/translate_file", multipart(file=PAGE, source="en", target="de"), PARTS)
    return ask(s, "GET", urllib.parse.urlsplit(answer["translatedFileUrl"]).path)


def stream(s):
    text = ask(s, "POST", "/v1/translate", {"q": TEXTS[3], "source": "en", "target": "de", "stream": True})
    events = [e.split("\ndata: ", 1) for e in text.strip().split("\n\n")]
    if events[-1][0] != "event: done":
        raise ValueError(f"a stream ends with {events[-1]}")
    return [t if t.get("error") else t["text"] for t in json.loads(events[-1][1])["translations"]]


def bulk(s):
    lines = "".join(json.dumps({"id": i, "q": t}) + "\n" for i, t in enumerate(TEXTS))
    text = ask(s, "POST", "/v1/bulk?source=en&target=de", lines, {"Content-Type": "application/x-ndjson"}, raw=True)
    return [json.loads(line) for line in text.splitlines()]


def deepl_document(s):
    answer = ask(s, "POST", "/v2/document", multipart(file=PAGE, source_lang="EN", target_lang="DE"), PARTS)
    key = "document_key=" + answer["document_key"]
    path = "/v2/document/" + answer["document_id"]
    end = time.monotonic() + 300
    while (state := ask(s, "POST", path, key, FORM)["status"]) in ("queued", "translating") and time.monotonic() < end:
        time.sleep(0.02)
    if state != "done":
        raise ValueError(f"a document is {state}")
    return ask(s, "POST", path + "/result", key, FORM)


def glossary(s):
    made = ask(
        s,
        "POST",
        "/v2/glossaries",
        {"name": "g", "source_lang": "en", "target_lang": "de", "entries": "house\tHeim", "entries_format": "tsv"},
        expected=201,
    )
    path = "/v2/glossaries/" + made["glossary_id"]
    entries = ask(s, "GET", path + "/entries", headers={"Accept": "text/tab-separated-values"})
    used = ask(
        s,
        "POST",
        "/v2/translate",
        {"text": [TEXTS[1]], "source_lang": "EN", "target_lang": "DE", "glossary_id": made["glossary_id"]},
    )
    ask(s, "DELETE", path, expected=204, raw=True)
    return entries, settled(used)


MIX = {
    "translate": plain("POST", "/translate", {"q": TEXTS, "source": "en", "target": "de"}),
    "translate, form": plain("POST", "/translate", urllib.parse.urlencode({"q": TEXTS[1], "source": "en", "target": "de"}), FORM),
    "alternatives": plain("POST", "/translate", {"q": TEXTS[2], "source": "auto", "target": "de", "alternatives": 2}),
    "html": plain(
        "POST", "/translate", {"q": "<p>The <b>house</b> is big.</p>", "source": "en", "target": "de", "format": "html"}
    ),
    "detect": plain("POST", "/detect", {"q": TEXTS[2]}),
    "languages": plain("GET", "/languages"),
    "file": translate_file,
    "frontend": plain("GET", "/frontend/settings"),
    "health": plain("GET", "/health"),
    "spec": plain("GET", "/spec"),
    "metrics": there("/metrics"),
    "page": there("/"),
    "status page": there("/status"),
    "page without scripts": lambda s: TEXTS[1]
    in ask(s, "POST", "/", urllib.parse.urlencode({"q": TEXTS[1], "source": "en", "target": "de"}), FORM),
    "v1": plain("POST", "/v1/translate", {"q": TEXTS, "source": "en", "target": "de", "sentences": True, "alignment": True}),
    "v1, settings": plain(
        "POST",
        "/v1/translate",
        {
            "q": TEXTS[1],
            "source": "en",
            "target": "de",
            "settings": {"beam": 1},
            "terms": [{"source": "house", "target": "Heim"}],
        },
    ),
    "stream": stream,
    "bulk": bulk,
    "v1 detect": plain("POST", "/v1/detect", {"q": TEXTS}),
    "v1 languages": plain("GET", "/v1/languages"),
    "v1 models": plain("GET", "/v1/models"),
    "v1 settings": plain("GET", "/v1/settings"),
    "v1 document": plain("POST", "/v1/document", multipart(file=PAGE, source="en", target="de"), PARTS),
    "v1 stats": there("/v1/stats"),
    "openapi": plain("GET", "/v1/openapi.json"),
    "deepl": plain("POST", "/v2/translate", {"text": TEXTS, "source_lang": "EN", "target_lang": "DE"}),
    "deepl languages": plain("GET", "/v2/languages?type=target"),
    "deepl usage": lambda s: sorted(ask(s, "GET", "/v2/usage")),
    "deepl document": deepl_document,
    "glossary": glossary,
}
# How often clients ask for what: mostly for translations.
WEIGHTS = {"translate": 8, "translate, form": 6, "v1": 4, "stream": 3, "deepl": 4, "bulk": 2}


def draw(rng=random):
    return rng.choices(list(MIX), [WEIGHTS.get(name, 1) for name in MIX])[0]
