// SPDX-License-Identifier: MIT
// Translates what is typed, as it is typed: what is outdated is given up, here and on the server.
const delay = Number(root.dataset.delay), limit = Number(root.dataset.limit);
const OTHERS = 5; // further translations of a sentence
let timer = 0, running = null;
const kept = new Map(); // chosen translations by what was translated, so that they survive further typing

function showError(text) { $("error").textContent = text; }

function number(n) { return n.toLocaleString("en"); }

function countCharacters() {
    const n = [...textBox.value].length;
    const count = $("count");
    count.textContent = limit >= 0 ? `${number(n)} / ${number(limit)}` : n ? `${number(n)} characters` : "";
    count.classList.toggle("over", limit >= 0 && n > limit);
    $("clear").hidden = n === 0;
    return n;
}

// ---- glossary -------------------------------------------------------------------------------------

// "house = Haus" a line; also with a tab or an arrow.
function readTerms() {
    const terms = [], wrong = [];
    $("terms").value.split("\n").forEach((line, i) => {
        if (!line.trim()) return;
        const parts = line.split(/\t|=>|→|=/).map((part) => part.trim());
        if (parts.length === 2 && parts[0] && parts[1]) terms.push({ source: parts[0], target: parts[1] });
        else wrong.push(i + 1);
    });
    $("terms-error").textContent = wrong.length ? `Line ${wrong.join(", ")}: write it as “word = translation”.` : "";
    $("terms-count").textContent = terms.length ? `· ${terms.length} ${terms.length === 1 ? "term" : "terms"}` : "";
    return terms;
}

// ---- requests -------------------------------------------------------------------------------------

function wish(text) {
    const terms = readTerms();
    return { q: text, source: source.value, target: target.value, ...(terms.length ? { terms } : {}) };
}

function keyOf(s) { return JSON.stringify([sourceNow(), target.value, s.source, readTerms()]); }

function keepChoice(s) {
    if (s.chosen) kept.set(keyOf(s), { text: s.text, alignment: s.alignment, others: s.others });
    else kept.delete(keyOf(s));
}

// The sentence's best translations, that which is shown first among them.
async function others(s) {
    const request = { ...wish(s.source), source: sourceNow(), alternatives: OTHERS, alignment: true };
    const answer = await askJson("v1/translate", request);
    const list = answer.translations[0].sentences;
    // A sentence that the server cuts in two here has none.
    if (list?.length !== 1) return [{ text: s.text, alignment: s.alignment }];
    const found = [list[0], ...list[0].alternatives].map(({ text, alignment }) => ({ text, alignment }));
    const first = { text: s.text, alignment: s.alignment };
    return [first, ...found.filter((o) => o.text !== first.text)];
}

function finish(answer, text) {
    const result = answer.translations[0];
    if (result.error) throw new Refused(200, result.error);
    if (answer.detected) showDetected(answer.detected.language);
    output.lang = answer.target;
    if (result.sentences) {
        showSentences(result.sentences, text);
        sentences.forEach((s, i) => {
            const other = kept.get(keyOf(s));
            if (!other) return;
            Object.assign(s, other, { chosen: true });
            s.element.replaceWith(s.element = sentenceElement(s, i));
        });
    } else
        showPlain(result.text);
    const through = answer.pivot ? ` through ${nameOf(answer.pivot)}` : "";
    const found = answer.detected ? `From ${nameOf(answer.source)}${through} · ` : "";
    $("notice").textContent = found + (answer.ms < 1000 ? `${Math.ceil(answer.ms)} ms` : `${(answer.ms / 1000).toFixed(1)} s`);
    $("copy").hidden = false;
    $("hint").hidden = !sentences.length;
    updateSwap();
}

async function run(text, signal) {
    // Numbers and names that a translation loses are put right, which streams do on demand.
    const request = { ...wish(text), stream: true, alignment: true, settings: { "no-protect": false } };
    const answer = await ask("v1/translate", request, signal);
    const parts = [];
    for await (const [name, data] of eventsOf(answer)) {
        if (name === "begin" && data.detected && data.source === data.target && avoidTarget(data.source)) return true;
        if (name === "begin" && data.detected) showDetected(data.source);
        if (name === "error") throw new Refused(200, data.error);
        if (name === "words") parts[data.sentence] = { text: data.begin };
        if (name === "sentence") parts[data.sentence] = { text: data.translation, gap: data.gap };
        if (name === "words" || name === "sentence") showPartialSoon(parts);
        if (name === "done") finish(data, text);
    }
    return false;
}

function nothingToDo() {
    showPlain("");
    showDetected("");
    showError("");
    $("notice").textContent = "";
    $("copy").hidden = true;
    $("hint").hidden = true;
    updateSwap();
}

// What runs is outdated, here and on the server.
function giveUp() {
    clearTimeout(timer);
    running?.abort();
    forgetPartial();
}

async function translateNow() {
    giveUp();
    const text = textBox.value, here = running = new AbortController();
    if (!text.trim()) return nothingToDo();
    if (limit >= 0 && countCharacters() > limit)
        return showError(`The text is longer than ${number(limit)} characters, the limit of this server.`);
    const slow = setTimeout(() => { $("notice").textContent = "Translating …"; }, 400);
    try {
        while (await run(text, here.signal)) { /* once more, into another language */ }
        showError("");
    } catch (error) {
        if (here.signal.aborted) return;
        output.setAttribute("aria-busy", "false");
        $("notice").textContent = "";
        showError(error instanceof Refused ? error.message : inWords(0));
    } finally {
        clearTimeout(slow);
    }
}

// wait: somebody is typing.
function translateSoon(wait) {
    giveUp();
    timer = setTimeout(translateNow, wait ? delay : 0);
}

function swapLanguages() {
    if (swap.disabled) return;
    const from = target.value, into = sourceNow(), text = outputText();
    source.value = from;
    showDetected("");
    updateMenus(into);
    if (text) textBox.value = text;
    typed(false);
}

function typed(wait) {
    countCharacters();
    showMirror();
    unlight();
    translateSoon(wait);
}
