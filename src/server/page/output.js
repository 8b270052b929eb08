// SPDX-License-Identifier: MIT
// What is shown: sentences that can be chosen, words that know where they come from, on both sides.
const output = $("output"), mirror = $("mirror"), textBox = $("text"), choices = $("choices");
const MOST_WORDS = 6000; // of a text whose words are told apart
let sentences = []; // {source, text, gap, alignment, at: where its source begins in the text or -1, element, mirrored}

function element(name, attributes = {}, ...children) {
    const e = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
    e.append(...children);
    return e;
}

// [[word, begin]] of a text: what white space separates, as the server counts.
function wordsOf(text) {
    return [...text.matchAll(/\S+/g)].map((m) => [m[0], m.index]);
}

// A sentence as elements, its words as elements inside.
function wordElements(text) {
    const parts = [];
    let at = 0;
    wordsOf(text).forEach(([word, begin], i) => {
        parts.push(text.slice(at, begin), element("span", { class: "w", "data-word": i }, word));
        at = begin + word.length;
    });
    parts.push(text.slice(at));
    return parts;
}

function sentenceElement(s, i) {
    const e = element("span", { class: "s", role: "button", tabindex: i === 0 ? "0" : "-1", "aria-haspopup": "dialog",
                                "aria-expanded": "false", "data-sentence": i }, ...wordElements(s.text));
    e.classList.toggle("chosen", Boolean(s.chosen));
    return e;
}

// ---- while it comes -------------------------------------------------------------------------------

// Sentences as far as they are known, in place of what stood there; the rest of that is pale until it is replaced.
// parts: by number, of which some may not be known yet. Drawn at most once a frame.
let frame = 0;

function showPartialSoon(parts) {
    if (!frame) frame = requestAnimationFrame(() => { frame = 0; showPartial(Array.from(parts)); });
}

function forgetPartial() {
    cancelAnimationFrame(frame);
    frame = 0;
}

function showPartial(parts) {
    closeChoices(false);
    const known = parts.filter(Boolean).length;
    const old = sentences.slice(parts.length).map((s) => s.text + s.gap).join("");
    output.setAttribute("aria-busy", "true");
    output.replaceChildren(...parts.map((part, i) => {
        const text = part ? part.text + (part.gap ?? " ") : sentences[i] ? sentences[i].text + sentences[i].gap : "… ";
        return element("span", part ? {} : { class: "stale" }, text);
    }), element("span", { class: "stale" }, known ? old : ""));
}

// ---- when it is there -----------------------------------------------------------------------------

function showPlain(text) {
    forgetPartial();
    closeChoices(false);
    sentences = [];
    output.setAttribute("aria-busy", "false");
    output.replaceChildren(text);
    showMirror();
}

// list: of the server's answer; text: what was translated.
function showSentences(list, text) {
    forgetPartial();
    closeChoices(false);
    let at = 0;
    sentences = list.map((s) => {
        const found = text.indexOf(s.source, at);
        if (found >= 0) at = found + s.source.length;
        return { ...s, at: found };
    });
    const lead = sentences[0]?.at > 0 ? text.slice(0, sentences[0].at) : "";
    const parts = [lead];
    sentences.forEach((s, i) => {
        s.element = sentenceElement(s, i);
        parts.push(s.element, s.gap);
    });
    output.setAttribute("aria-busy", "false");
    output.replaceChildren(...parts);
    showMirror();
}

function outputText() {
    return sentences.length ? (sentences[0].at > 0 ? textBox.value.slice(0, sentences[0].at) : "") +
        sentences.map((s) => s.text + s.gap).join("") : output.textContent;
}

// The text again, behind itself, with its words as elements where they have counterparts.
function showMirror() {
    const text = textBox.value, parts = [];
    const many = sentences.reduce((n, s) => n + s.source.length, 0) > MOST_WORDS * 6;
    let at = 0;
    sentences.forEach((s, i) => {
        s.mirrored = null;
        if (many || s.at < at || text.slice(s.at, s.at + s.source.length) !== s.source) return;
        s.mirrored = element("span", { class: "s", "data-sentence": i }, ...wordElements(s.source));
        parts.push(text.slice(at, s.at), s.mirrored);
        at = s.at + s.source.length;
    });
    mirror.replaceChildren(...parts, text.slice(at) + "\n");
}

// ---- which word comes from which ------------------------------------------------------------------

let lit = [];

function unlight() {
    for (const e of lit) e.classList.remove("hit", "near");
    lit = [];
}

// Word `word` of sentence s, on the side of the source or of the translation, and its counterparts: [source, target].
function light(s, word, ofSource) {
    unlight();
    const links = (s.alignment || []).filter((link) => link[ofSource ? 0 : 1] === word);
    const here = ofSource ? [[word], links.map((l) => l[1])] : [links.map((l) => l[0]), [word]];
    const sides = [[s.mirrored, here[0]], [s.element, here[1]]];
    for (const [e, numbers] of sides) {
        if (!e) continue;
        if (!links.length) lit.push(e);
        for (const n of numbers) {
            const w = e.querySelector(`[data-word="${n}"]`);
            if (w) lit.push(w);
        }
    }
    for (const e of lit) e.classList.add(e.classList.contains("w") ? "hit" : "near");
    return here;
}

function place(e) {
    const s = e?.closest?.("[data-sentence]");
    return s ? sentences[Number(s.dataset.sentence)] : null;
}

function lightElement(e) {
    const s = place(e);
    if (!s || s.element !== e.closest(".s")) return unlight();
    if (e.classList.contains("w")) light(s, Number(e.dataset.word), false);
    else unlight();
}

function inside(e, x, y) {
    return [...e.getClientRects()].some((r) => x >= r.left && x <= r.right && y >= r.top && y <= r.bottom);
}

// A textarea does not say over which word the mouse is: its mirror does.
function lightPoint(x, y) {
    const s = sentences.find((one) => one.mirrored && inside(one.mirrored, x, y));
    const w = s && [...s.mirrored.children].find((e) => inside(e, x, y));
    if (w) light(s, Number(w.dataset.word), true);
    else unlight();
}

function lightCaret() {
    const at = textBox.selectionStart;
    const s = sentences.find((one) => one.mirrored && at >= one.at && at <= one.at + one.source.length);
    const n = s ? wordsOf(s.source).findIndex(([word, begin]) => at - s.at >= begin && at - s.at <= begin + word.length) : -1;
    if (n >= 0) light(s, n, true);
    else unlight();
}

// ---- other translations ---------------------------------------------------------------------------

let openSentence = null;

// Words of b that are not in a, by their longest common subsequence.
function newWords(a, b) {
    const x = wordsOf(a).map((w) => w[0]), y = wordsOf(b).map((w) => w[0]);
    const longest = Array.from({ length: x.length + 1 }, () => new Array(y.length + 1).fill(0));
    for (let i = x.length - 1; i >= 0; i--)
        for (let j = y.length - 1; j >= 0; j--)
            longest[i][j] = x[i] === y[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
    const fresh = new Set();
    for (let i = 0, j = 0; j < y.length;) {
        if (i < x.length && x[i] === y[j]) i++, j++;
        else if (i < x.length && longest[i + 1][j] >= longest[i][j + 1]) i++;
        else fresh.add(j++);
    }
    return fresh;
}

function choiceButton(s, other) {
    const fresh = newWords(s.text, other.text);
    const button = element("button", { type: "button", lang: target.value, dir: "auto" });
    for (const e of wordElements(other.text))
        button.append(e instanceof Element && fresh.has(Number(e.dataset.word)) ? element("b", {}, e.textContent) : e);
    if (other.text === s.text) button.setAttribute("aria-current", "true");
    button.addEventListener("click", () => choose(s, other));
    return button;
}

function showChoices(s, ...content) {
    $("choices-list").replaceChildren(...content);
    choices.hidden = false;
    const box = s.element.getClientRects()[0] || output.getBoundingClientRect();
    const last = [...s.element.getClientRects()].pop() || box;
    const left = Math.max(12, Math.min(box.left, root.clientWidth - choices.offsetWidth - 12));
    choices.style.setProperty("--left", `${left + scrollX}px`);
    choices.style.setProperty("--top", `${last.bottom + scrollY + 6}px`);
    if (getComputedStyle(choices).position !== "fixed") return;
    root.classList.add("sheet"); // of a phone: room below the page, so that the sentence is seen above it
    s.element.scrollIntoView({ block: "start" });
}

function closeChoices(back) {
    if (choices.hidden) return;
    choices.hidden = true;
    root.classList.remove("sheet");
    openSentence?.element.setAttribute("aria-expanded", "false");
    if (back) openSentence?.element.focus();
    openSentence = null;
}

async function openChoices(s) {
    closeChoices(false);
    openSentence = s;
    s.element.setAttribute("aria-expanded", "true");
    if (!s.others) showChoices(s, element("p", { class: "muted", role: "status" }, "Looking for others …"));
    try {
        s.others = s.others || await others(s);
        if (openSentence !== s) return;
        const list = s.others.map((o) => choiceButton(s, o));
        showChoices(s, ...list, s.others.length < 2 ? element("p", { class: "muted" }, "There is no other one.") : "");
        (list.find((b) => b.hasAttribute("aria-current")) || list[0])?.focus({ preventScroll: true });
    } catch (error) {
        if (openSentence === s) showChoices(s, element("p", { class: "error", role: "alert" }, error.message));
    }
}

function choose(s, other) {
    const back = s.element;
    Object.assign(s, { text: other.text, alignment: other.alignment, chosen: other !== s.others[0] });
    keepChoice(s);
    s.element = sentenceElement(s, sentences.indexOf(s));
    s.element.tabIndex = 0;
    back.replaceWith(s.element);
    closeChoices(false);
    s.element.focus();
}
