// SPDX-License-Identifier: MIT
// Charts of the last minutes, drawn from /v1/stats, and tables that follow it.
"use strict";
const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const EVERY = 2000, FIRST = 31, MOST = 151; // milliseconds; looks that charts begin with, and hold: one minute, five
const past = []; // [{time, stats}], oldest first

function element(name, attributes = {}, ...children) {
    const e = ["svg", "path", "line"].includes(name) ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
    e.append(...children);
    return e;
}

// ---- values ---------------------------------------------------------------------------------------

function at(stats, path) { return path.split(".").reduce((o, name) => o?.[name], stats); }

// As the server writes them into the tables (page_status.c).
const units = {
    count: (v) => Math.round(v).toLocaleString("en"),
    ratio: (v) => v.toFixed(1),
    rate: (v) => (v >= 100 || v === 0 ? Math.round(v).toLocaleString("en") : v.toFixed(1)),
    ms: (v) => `${v < 10 ? v.toFixed(1) : Math.round(v).toLocaleString("en")} ms`,
    bytes: (v) => `${Math.round(v / 1048576).toLocaleString("en")} MiB`,
    s: (v) => {
        const two = (n) => String(Math.floor(n)).padStart(2, "0");
        return `${Math.floor(v / 86400)} d ${two((v / 3600) % 24)}:${two((v / 60) % 60)}:${two(v % 60)}`;
    },
};

// What a counter grew by, for each second between two looks; 0 after the server was started again.
function rate(path) {
    return (now, before) => {
        const seconds = before ? (now.time - before.time) / 1000 : 0;
        return seconds > 0 ? Math.max(0, at(now.stats, path) - at(before.stats, path)) / seconds : 0;
    };
}

function value(path) { return (now) => at(now.stats, path) || 0; }

function fill(now, before) {
    const steps = before ? now.stats.steps - before.stats.steps : 0;
    return steps > 0 ? (now.stats.rows - before.stats.rows) / steps : 0;
}

const charts = [
    { title: "Requests", per: "a second", unit: "rate",
      lines: [["answered", rate("requests")], ["refused", rate("refused")], ["failed", rate("failed")]] },
    { title: "Tokens", per: "a second", unit: "rate",
      lines: [["written", rate("target_tokens")], ["read", rate("source_tokens")]] },
    { title: "Batch fill", per: "hypotheses in a step", unit: "ratio", lines: [["hypotheses", fill]] },
    { title: "Queue", per: "sentences", unit: "count",
      lines: [["waiting", value("queue.queued")], ["being translated", value("queue.running")]] },
    { title: "Latency", per: "", unit: "ms",
      lines: [["median", value("latency_ms.p50")], ["90 %", value("latency_ms.p90")], ["99 %", value("latency_ms.p99")]] },
    { title: "Memory", per: "", unit: "bytes",
      lines: [["process", value("rss_bytes")], ["translators", value("memory_bytes")]] },
];

// ---- drawing --------------------------------------------------------------------------------------

// How many looks the charts are wide, and where look i of those that there are stands in 300.
function width() { return Math.max(FIRST, past.length); }
function xOf(i) { return 300 * (width() - past.length + i) / (width() - 1); }

// The least of 1, 2, 5 times a power of ten that is not less.
function niceTop(v) {
    if (v <= 0) return 1;
    const power = 10 ** Math.floor(Math.log10(v));
    return [1, 2, 5, 10].map((m) => m * power).find((t) => t >= v);
}

function topOf(chart, most) {
    return chart.unit === "bytes" ? niceTop(most / 1048576) * 1048576 : niceTop(most);
}

// Values, the newest at the right edge of 300 x 100, as the path of a curve.
function curveOf(values, top) {
    return values.map((v, i) => `${i ? "L" : "M"}${xOf(i).toFixed(2)} ` +
        `${(100 - 100 * Math.min(1, v / top)).toFixed(2)}`).join("");
}

function areaOf(values, top) {
    return values.length ? `${curveOf(values, top)}L300 100L${xOf(0).toFixed(2)} 100Z` : "";
}

function build(chart, i) {
    chart.now = element("p", { class: "now" });
    chart.label = element("span", { class: "top-label", "aria-hidden": "true" });
    chart.curves = chart.lines.map((_, k) => element("path", { class: `curve c${k}` }));
    chart.area = element("path", { class: "area c0" });
    chart.cursor = element("line", { class: "cursor", y1: 0, y2: 100, visibility: "hidden" });
    chart.svg = element("svg", { viewBox: "0 0 300 100", preserveAspectRatio: "none", role: "img" },
                        ...[0, 50].map((y) => element("line", { class: "grid", x1: 0, x2: 300, y1: y, y2: y })),
                        chart.area, ...chart.curves, chart.cursor);
    chart.values = chart.lines.map(() => element("b"));
    chart.since = element("span");
    chart.when = element("span");
    const legend = element("ul", { class: "legend" }, ...chart.lines.map(([name], k) => element("li", {},
        element("svg", { viewBox: "0 0 28 12", "aria-hidden": "true" }, element("path", { class: `curve c${k}`, d: "M0 6H28" })),
        `${name} `, chart.values[k])));
    const plot = element("div", { class: "plot" }, chart.svg, chart.label);
    plot.addEventListener("pointermove", (e) => {
        const box = plot.getBoundingClientRect();
        chart.point = Math.round((e.clientX - box.left) / box.width * (width() - 1)) - (width() - past.length);
        draw(chart);
    });
    plot.addEventListener("pointerleave", () => { chart.point = undefined; draw(chart); });
    return element("figure", { class: "card chart", "aria-labelledby": `chart-${i}` },
                   element("h2", { id: `chart-${i}` }, chart.title), chart.now, plot,
                   element("div", { class: "axis", "aria-hidden": "true" }, chart.since, chart.when), legend);
}

function draw(chart) {
    const format = units[chart.unit];
    const series = chart.lines.map(([, get]) => past.map((now, i) => get(now, past[i - 1])));
    const top = topOf(chart, Math.max(...series.flat(), 0));
    const last = past.length - 1, i = chart.point >= 0 && chart.point <= last ? chart.point : last;
    chart.label.textContent = format(top);
    chart.curves.forEach((c, k) => c.setAttribute("d", curveOf(series[k], top)));
    chart.area.setAttribute("d", areaOf(series[0], top));
    chart.now.replaceChildren(format(series[0][last] || 0), " ", element("small", {}, chart.per));
    chart.values.forEach((e, k) => { e.textContent = format(series[k][i] || 0); });
    chart.svg.setAttribute("aria-label", chart.lines.map(([name], k) => `${name} ${format(series[k][last] || 0)}`).join(", "));
    const x = xOf(i), minutes = Math.round((width() - 1) * EVERY / 60000);
    chart.cursor.setAttribute("visibility", i < last ? "visible" : "hidden");
    chart.cursor.setAttribute("x1", x);
    chart.cursor.setAttribute("x2", x);
    chart.since.textContent = `${minutes} min ago`;
    chart.when.textContent = i < last ? new Date(past[i].time).toLocaleTimeString() : "now";
}

// ---- tables ---------------------------------------------------------------------------------------

function showNumbers(stats) {
    for (const cell of document.querySelectorAll("#numbers td"))
        cell.textContent = units[cell.dataset.unit](at(stats, cell.dataset.key) || 0);
}

function keyOf(model) { return `${model.name} ${model.settings}`; }

// Tokens a second of one model, over the time that is shown.
function sparkOf(model) {
    const key = keyOf(model);
    const counts = past.map((h) => h.stats.models.find((m) => keyOf(m) === key)?.target_tokens ?? 0);
    const rates = counts.map((n, i) => (i ? Math.max(0, n - counts[i - 1]) : 0));
    const top = niceTop(Math.max(...rates));
    return element("svg", { class: "spark", viewBox: "0 0 300 100", preserveAspectRatio: "none", role: "img",
                            "aria-label": `${Math.round(rates.at(-1) * 1000 / EVERY)} tokens a second` },
                   element("path", { class: "curve c0", d: curveOf(rates, top) }));
}

function showModels(stats) {
    const columns = [...document.querySelectorAll("#models thead th[data-key]")];
    $("models").tBodies[0].replaceChildren(...stats.models.map((model) => element("tr", {},
        element("th", { scope: "row" }, model.name, " ", element("span", { class: "muted" }, model.settings)),
        ...columns.map((c) => element("td", {}, units[c.dataset.unit](model[c.dataset.key] || 0))),
        element("td", {}, sparkOf(model)))));
}

// ---- looking --------------------------------------------------------------------------------------

function say(text, bad) {
    const state = $("state");
    if (state.textContent !== text) state.textContent = text;
    state.classList.toggle("bad", Boolean(bad));
}

async function look() {
    try {
        const answer = await fetch(`${root.dataset.base}v1/stats`, { cache: "no-store" });
        const stats = await answer.json();
        if (past.length && stats.uptime_s < past.at(-1).stats.uptime_s) past.length = 0; // started again
        past.push({ time: Date.now(), stats });
        if (past.length > MOST) past.shift();
        charts.forEach(draw);
        showNumbers(stats);
        showModels(stats);
        say("Live");
    } catch {
        say("The server does not answer", true);
    }
}

$("charts").append(...charts.map(build));
document.querySelector("#models thead tr").append(element("th", { scope: "col" }, "Tokens a second"));
look();
setInterval(() => { if (!document.hidden) look(); }, EVERY);
document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
