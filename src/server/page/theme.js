// SPDX-License-Identifier: MIT
// Before anything is drawn: scripts run, and dark or light is what was chosen here, else what the system says.
"use strict";
const root = document.documentElement;
root.classList.add("js");
const systemDark = matchMedia("(prefers-color-scheme: dark)");
// Storage may be switched off.
function remembered(store, name) { try { return window[store].getItem(name) || ""; } catch { return ""; } }
function remember(store, name, value) { try { window[store].setItem(name, value); } catch { /* not kept, then */ } }
function setTheme() {
    root.dataset.theme = remembered("localStorage", "theme") || (systemDark.matches ? "dark" : "light");
    const button = document.getElementById("theme");
    if (button) button.setAttribute("aria-pressed", String(root.dataset.theme === "dark"));
}
setTheme();
systemDark.addEventListener("change", setTheme);
document.addEventListener("DOMContentLoaded", () => {
    setTheme();
    document.getElementById("theme").addEventListener("click", () => {
        remember("localStorage", "theme", root.dataset.theme === "dark" ? "light" : "dark");
        setTheme();
    });
});
