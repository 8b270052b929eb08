// SPDX-License-Identifier: MIT
// Files: sent with their progress, translated with theirs, and fetched.
const fileBox = $("file"), progress = $("progress");
let sending = null;

function sizeOf(bytes) {
    const units = ["bytes", "KiB", "MiB", "GiB"];
    let i = 0;
    for (; bytes >= 1024 && i < 3; i++) bytes /= 1024;
    return `${bytes >= 10 || i === 0 ? Math.round(bytes) : bytes.toFixed(1)} ${units[i]}`;
}

function fileSays(state, error = "") {
    $("file-state").textContent = state;
    $("file-error").textContent = error;
}

function showFile() {
    const file = fileBox.files[0];
    $("file-name").textContent = file ? `${file.name} (${sizeOf(file.size)})` : "Choose a file";
    $("download").hidden = true;
    progress.hidden = true;
    fileSays("");
}

function endFile() {
    sending = null;
    $("send").disabled = false;
    $("stop").hidden = true;
}

function fileFails(text) {
    endFile();
    progress.hidden = true;
    fileSays("", text);
}

function fileDone(data) {
    endFile();
    progress.value = 1;
    const link = $("download");
    link.href = base + data.url.slice(1);
    link.download = data.name;
    link.textContent = `Download ${data.name}`;
    link.hidden = false;
    fileSays(`Translated from ${nameOf(data.source)} into ${nameOf(data.target)}. It is kept for half an hour.`);
    link.focus();
}

function fileEvent(name, data) {
    if (name === "progress") {
        progress.value = data.lines / data.all;
        fileSays(`${number(data.lines)} of ${number(data.all)} lines`);
    }
    if (name === "error") fileFails(data.error);
    if (name === "done") fileDone(data);
}

function sendFile() {
    const file = fileBox.files[0];
    if (!file) return fileSays("", "Choose a file first.");
    if (file.size > Number(root.dataset.fileSize))
        return fileSays("", `The file is larger than ${sizeOf(Number(root.dataset.fileSize))}, the limit of this server.`);
    const form = new FormData(), request = sending = new XMLHttpRequest(), events = new EventReader();
    let read = 0;
    form.append("source", source.value);
    form.append("target", target.value);
    const terms = readTerms();
    if (terms.length) form.append("terms", JSON.stringify(terms));
    form.append("file", file);
    request.open("POST", `${base}v1/document`);
    request.setRequestHeader("Accept", "text/event-stream");
    for (const [name, value] of Object.entries(credentials())) request.setRequestHeader(name, value);
    request.upload.onprogress = (e) => {
        progress.value = e.loaded / e.total;
        fileSays(e.loaded < e.total ? `Sent ${sizeOf(e.loaded)} of ${sizeOf(e.total)}` : "Translating …");
    };
    const take = () => {
        if (request.status !== 200) return;
        const fresh = events.feed(request.responseText.slice(read));
        read = request.responseText.length;
        fresh.forEach(([name, data]) => fileEvent(name, data));
    };
    request.onprogress = take;
    request.onload = () => {
        take();
        if (request.status !== 200) fileFails(errorOf(request.status, request.responseText).message);
        else if (sending) fileFails("The server ended the translation. Try again.");
    };
    request.onerror = () => fileFails(inWords(0));
    request.onabort = () => fileFails("Stopped.");
    $("send").disabled = true;
    $("stop").hidden = false;
    $("download").hidden = true;
    progress.hidden = false;
    progress.value = 0;
    fileSays("Sending …");
    request.send(form);
}
