// SPDX-License-Identifier: MIT
// Who hears what: keys, mouse, menus, files that are dropped; and the first look at the server.

// ---- the text -------------------------------------------------------------------------------------
textBox.addEventListener("input", (e) => typed(!/^insertFrom(Paste|Drop)/.test(e.inputType)));
source.addEventListener("change", () => { showDetected(""); updateMenus(); translateSoon(false); });
target.addEventListener("change", () => { updateSwap(); translateSoon(false); });
swap.addEventListener("click", swapLanguages);
$("clear").addEventListener("click", () => { textBox.value = ""; typed(false); textBox.focus(); });
$("terms").addEventListener("input", () => {
    readTerms();
    remember("sessionStorage", "terms", $("terms").value);
    translateSoon(true);
});
$("key").addEventListener("input", () => { remember("sessionStorage", "key", $("key").value); translateSoon(true); });
$("form").addEventListener("submit", (e) => {
    e.preventDefault();
    if (e.submitter === $("send")) sendFile();
    else translateNow();
});
$("copy").addEventListener("click", copyOutput);

async function copyOutput() {
    if ($("copy").hidden) return;
    try {
        await navigator.clipboard.writeText(outputText());
        $("notice").textContent = "Copied";
    } catch { // not without TLS: the text is selected, and the keyboard copies it
        getSelection().selectAllChildren(output);
        $("notice").textContent = "Selected: press Ctrl+C";
    }
}

// ---- words ----------------------------------------------------------------------------------------
output.addEventListener("mouseover", (e) => lightElement(e.target));
output.addEventListener("mouseleave", unlight);
textBox.addEventListener("mousemove", (e) => requestAnimationFrame(() => lightPoint(e.clientX, e.clientY)));
textBox.addEventListener("mouseleave", unlight);
document.addEventListener("selectionchange", () => { if (document.activeElement === textBox) lightCaret(); });
textBox.addEventListener("blur", unlight);

// ---- sentences ------------------------------------------------------------------------------------
output.addEventListener("click", (e) => {
    const s = place(e.target);
    if (s && getSelection().isCollapsed) openChoices(s);
});
output.addEventListener("focusin", (e) => {
    for (const s of sentences) s.element.tabIndex = s.element === e.target ? 0 : -1;
});
output.addEventListener("focusout", unlight);
output.addEventListener("keydown", (e) => {
    const s = place(e.target), i = sentences.indexOf(s);
    if (!s || e.ctrlKey || e.altKey || e.metaKey) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key], word = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (e.key === "Enter" || e.key === " ") openChoices(s);
    else if (e.key === "Home") sentences[0].element.focus();
    else if (e.key === "End") sentences.at(-1).element.focus();
    else if (step) sentences[i + step]?.element.focus();
    else if (word) walkWords(s, word);
    else return;
    e.preventDefault();
});

// The next word of a sentence, said aloud with the words that it comes from.
function walkWords(s, step) {
    const words = wordsOf(s.text).map((w) => w[0]), from = wordsOf(s.source).map((w) => w[0]);
    s.word = s.word === undefined ? (step > 0 ? 0 : words.length - 1) : Math.max(0, Math.min(words.length - 1, s.word + step));
    const [origins] = light(s, s.word, false);
    $("notice").textContent = `${words[s.word]} ← ${origins.map((n) => from[n]).join(" … ") || "?"}`;
}

// ---- other translations ---------------------------------------------------------------------------
$("choices-close").addEventListener("click", () => closeChoices(true));
choices.addEventListener("keydown", (e) => {
    const list = [...$("choices-list").querySelectorAll("button")], i = list.indexOf(document.activeElement);
    const to = { ArrowDown: i + 1, ArrowUp: i - 1, Home: 0, End: list.length - 1 }[e.key];
    if (to !== undefined && list.length) {
        list[(to + list.length) % list.length].focus();
        e.preventDefault();
    }
});
document.addEventListener("pointerdown", (e) => {
    if (!choices.hidden && !choices.contains(e.target) && !openSentence?.element.contains(e.target)) closeChoices(false);
});
addEventListener("resize", () => closeChoices(false));

// ---- keys -----------------------------------------------------------------------------------------
const shortcuts = { KeyS: swapLanguages, KeyC: copyOutput, Digit1: () => textBox.focus(),
                    Digit2: () => (output.querySelector('.s[tabindex="0"]') || output.querySelector(".s"))?.focus() };
document.addEventListener("keydown", (e) => {
    if (e.key === "Escape" && !choices.hidden) closeChoices(true);
    else if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) translateNow();
    else if (e.altKey && !e.ctrlKey && !e.metaKey && shortcuts[e.code]) shortcuts[e.code]();
    else if (e.key === "?" && !e.target.closest("input, textarea, select")) $("shortcuts").showModal();
    else return;
    e.preventDefault();
});
$("help").addEventListener("click", () => $("shortcuts").showModal());

// ---- files ----------------------------------------------------------------------------------------
fileBox.addEventListener("change", showFile);
$("stop").addEventListener("click", () => sending?.abort());
if (!$("files").hidden) {
    const holdsFile = (e) => [...e.dataTransfer.types].includes("Files");
    addEventListener("dragover", (e) => {
        if (!holdsFile(e)) return;
        e.preventDefault();
        $("files").open = true;
        $("files").classList.add("dropping");
    });
    addEventListener("dragleave", (e) => { if (!e.relatedTarget) $("files").classList.remove("dropping"); });
    addEventListener("drop", (e) => {
        $("files").classList.remove("dropping");
        if (!holdsFile(e)) return;
        e.preventDefault();
        fileBox.files = e.dataTransfer.files;
        showFile();
    });
}

// ---- the beginning --------------------------------------------------------------------------------
$("terms").value = remembered("sessionStorage", "terms");
$("key").value = $("key").value || remembered("sessionStorage", "key");
readTerms();
countCharacters();
showMirror();
loadLanguages().then(() => { if (textBox.value) translateNow(); }, (error) => showError(error.message));
