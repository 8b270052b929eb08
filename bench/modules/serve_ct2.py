# SPDX-License-Identifier: MIT
"""CTranslate2 behind FastAPI, with dynamic batching: the rival of bench/serve-rivals, run by uvicorn in its environment.

POST /translate as LibreTranslate's, one text. Requests are collected for 10 ms after the first of them (and while a batch is
being translated), then translated in one call with beam and length penalty of SERVE_CT2 (JSON: model, beam, length_penalty,
batch, compute_type, wait).
"""
import asyncio
import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import ctranslate2
import sentencepiece
from fastapi import FastAPI, Request
from fastapi.responses import ORJSONResponse

CONFIG = json.loads(os.environ["SERVE_CT2"])
translator = ctranslate2.Translator(CONFIG["model"], device="cpu", compute_type=CONFIG["compute_type"], inter_threads=1,
                                    intra_threads=1)
source = sentencepiece.SentencePieceProcessor(model_file=f"{CONFIG['model']}/source.spm")
target = sentencepiece.SentencePieceProcessor(model_file=f"{CONFIG['model']}/target.spm")


def translate(texts):
    tokens = source.encode(texts, out_type=str)
    results = translator.translate_batch(tokens, beam_size=CONFIG["beam"], length_penalty=CONFIG["length_penalty"],
                                         max_batch_size=CONFIG["batch"], max_decoding_length=256)
    return target.decode([r.hypotheses[0] for r in results])


async def collect(queue):
    """One batch after the other: whoever came within the wait of the first, and whoever came meanwhile."""
    pool, loop = ThreadPoolExecutor(1), asyncio.get_running_loop()
    while True:
        batch = [await queue.get()]
        until = loop.time() + CONFIG["wait"]
        while (left := until - loop.time()) > 0:
            try:
                batch.append(await asyncio.wait_for(queue.get(), left))
            except asyncio.TimeoutError:
                break
        try:
            texts = await loop.run_in_executor(pool, translate, [text for text, _ in batch])
        except Exception as e:  # pylint: disable=broad-except
            for _, answer in batch:
                answer.set_exception(e)
            continue
        for (_, answer), text in zip(batch, texts):
            if not answer.done():
                answer.set_result(text)


@asynccontextmanager
async def lifespan(app):
    app.state.queue = asyncio.Queue()
    task = asyncio.create_task(collect(app.state.queue))
    yield
    task.cancel()


app = FastAPI(lifespan=lifespan, default_response_class=ORJSONResponse)


@app.post("/translate")
async def translate_one(request: Request):
    answer = asyncio.get_running_loop().create_future()
    await app.state.queue.put((json.loads(await request.body())["q"], answer))
    return {"translatedText": await answer}


@app.get("/health")
async def health():
    return {"status": "ok"}
