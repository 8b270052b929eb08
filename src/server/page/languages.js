// SPDX-License-Identifier: MIT
// The two menus: what the models offer, detection, swapping.
const source = $("source"), target = $("target"), swap = $("swap");
let languages = new Map(); // by code: name, targets
let detected = ""; // code, of the text that is shown; "": none

function nameOf(code) { return languages.get(code)?.name || code; }

// Where a text in this language can go; of "auto", all that something is translated into.
function targetsOf(code) {
    if (code !== "auto") return languages.get(code)?.targets || [];
    return [...languages.keys()].filter((c) => [...languages.values()].some((l) => l.targets.includes(c)));
}

function fillMenu(menu, codes, chosen) {
    const kept = codes.includes(chosen) ? chosen : codes[0];
    menu.replaceChildren(...codes.map((code) => {
        const option = document.createElement("option");
        option.value = code;
        option.textContent = code === "auto" ? "Detect language" : nameOf(code);
        return option;
    }));
    menu.value = kept;
}

// The first entry of the menu says what was found.
function showDetected(code) {
    detected = code;
    const auto = source.querySelector('option[value="auto"]');
    if (auto) auto.textContent = code && source.value === "auto" ? `${nameOf(code)} (auto)` : "Detect language";
}

function sourceNow() { return source.value === "auto" ? detected : source.value; }

function updateMenus(wanted = target.value) {
    fillMenu(target, targetsOf(source.value), wanted);
    updateSwap();
}

function updateSwap() {
    swap.disabled = !targetsOf(target.value).includes(sourceNow());
}

async function loadLanguages() {
    const answer = await askJson("v1/languages");
    languages = new Map(answer.languages.map((l) => [l.code, l]));
    const sources = answer.languages.filter((l) => l.targets.length).map((l) => l.code);
    const from = source.value;
    fillMenu(source, ["auto", ...sources], from);
    updateMenus();
}

// The text is in the language that it should be translated into: into another one, then. False: there is none.
function avoidTarget(code) {
    const other = targetsOf(code).find((c) => c !== code);
    if (other) target.value = other;
    return Boolean(other);
}
