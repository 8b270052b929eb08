// SPDX-License-Identifier: MIT
// Requests to this server, answers bit by bit, and errors in words that help.
"use strict";
const $ = (id) => document.getElementById(id);
const base = root.dataset.base;

// An error to be shown as it is. status: of HTTP, 0 where there was no answer.
class Refused extends Error {
    constructor(status, text) {
        super(text);
        this.status = status;
    }
}

function inWords(status, text) {
    const why = text ? ` (${text})` : "";
    if (status === 0) return "The server does not answer. It may have been stopped, or the network is down.";
    if (status === 401 || status === 403) {
        if ($("access").hidden) return text || "The server refused this.";
        $("access").open = true;
        if ($("key").value.trim()) return `The server does not accept this API key${why}.`;
        return "This server wants an API key: enter it below.";
    }
    if (status === 413) return `This is too long for the server${why}.`;
    if (status === 429) return `Too many requests in a short time. Wait a moment and try again${why}.`;
    if (status === 503) return `The server is too busy${why}. Try again.`;
    return text || `The server answered with error ${status}.`;
}

function credentials() {
    const key = $("key").value.trim();
    return key ? { Authorization: `Bearer ${key}` } : {};
}

function errorOf(status, body) {
    let text = "";
    try { text = JSON.parse(body).error; } catch { /* no JSON: the status says enough */ }
    return new Refused(status, inWords(status, text));
}

// The answer; throws Refused, or AbortError where signal says so.
async function ask(path, body, signal) {
    let answer;
    try {
        answer = await fetch(base + path, body === undefined ? { signal } : {
            method: "POST", signal, body: JSON.stringify(body),
            headers: { "Content-Type": "application/json", ...credentials() },
        });
    } catch (error) {
        if (error.name === "AbortError") throw error;
        throw new Refused(0, inWords(0));
    }
    if (!answer.ok) throw errorOf(answer.status, await answer.text());
    return answer;
}

async function askJson(path, body, signal) {
    return (await ask(path, body, signal)).json();
}

// Server-sent events as they become whole: feed(text) gives [name, data] of each.
class EventReader {
    #rest = "";

    feed(text) {
        const parts = (this.#rest + text).split("\n\n");
        this.#rest = parts.pop();
        return parts.map((part) => {
            const field = (name) => (part.split("\n").find((line) => line.startsWith(name)) || "").slice(name.length);
            return [field("event: "), JSON.parse(field("data: "))];
        });
    }
}

async function* eventsOf(answer) {
    const reader = answer.body.getReader(), decoder = new TextDecoder(), events = new EventReader();
    for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        yield* events.feed(decoder.decode(value, { stream: true }));
    }
}
