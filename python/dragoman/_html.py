# SPDX-License-Identifier: MIT
"""Results for Jupyter: a table of sources and translations, in which words that belong together light up."""
from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from ._result import Result

ROWS = 200  # more would make a notebook slow
STYLE = ("#{id} td{{text-align:left;vertical-align:top}}#{id} .dgm-on{{background:#fd6;color:#000;border-radius:3px}}"
         "#{id} .dgm-error{{color:#b00}}")
# Hovering over a word marks those of the other side that it is linked with.
SCRIPT = """(function(){{var t=document.getElementById("{id}");if(!t)return;function mark(e,on){{var s=e.target;
if(!s.dataset||!s.dataset.links)return;s.classList.toggle("dgm-on",on);s.dataset.links.split(" ").forEach(function(i){{
var o=document.getElementById(i);if(o)o.classList.toggle("dgm-on",on)}})}}
t.addEventListener("mouseover",function(e){{mark(e,true)}});t.addEventListener("mouseout",function(e){{mark(e,false)}})}})()"""


def spans(words: Sequence[str], name: str, other: str, links: list[set[int]]) -> str:
    out = []
    for i, word in enumerate(words):
        partners = " ".join(f"{other}-{k}" for k in sorted(links[i]))
        out.append(f'<span id="{name}-{i}" data-links="{partners}">{escape(word)}</span>' if partners else escape(word))
    return " ".join(out)


def cells(result: Result, name: str) -> str:
    if result.error is not None:
        return f'<td>{escape(result.source)}</td><td class="dgm-error">{escape(str(result.error))}</td><td></td>'
    source, target = result.source.split(), result.text.split()
    left: list[set[int]] = [set() for _ in source]
    right: list[set[int]] = [set() for _ in target]
    links = result.alignment
    for s, t in (() if links is None else ((int(pair[0]), int(pair[1])) for pair in links)):
        if s < len(source) and t < len(target):  # links of tokens may go further
            left[s].add(t)
            right[t].add(s)
    return (f"<td>{spans(source, name + 's', name + 't', left)}</td><td>{spans(target, name + 't', name + 's', right)}</td>"
            f"<td>{result.score:.3f}</td>")


def table(results: Sequence[Result]) -> str:
    name = "dgm" + uuid4().hex[:12]
    rows = "".join(f"<tr>{cells(r, f'{name}-{i}')}</tr>" for i, r in enumerate(results[:ROWS]))
    more = f"<p>{len(results) - ROWS} more</p>" if len(results) > ROWS else ""
    return (f'<style>{STYLE.format(id=name)}</style><table id="{name}"><thead><tr><th>source</th><th>translation</th>'
            f"<th>score</th></tr></thead><tbody>{rows}</tbody></table>{more}<script>{SCRIPT.format(id=name)}</script>")
