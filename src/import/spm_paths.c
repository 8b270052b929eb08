// SPDX-License-Identifier: MIT
// SentencePiece models without names of files; see spm_paths.h.
//
// The model is a protocol-buffer message, of which these fields name files:
//
//     ModelProto     2 trainer_spec   3 normalizer_spec   5 denormalizer_spec
//     TrainerSpec    1 input (any number of them)   2 model_prefix   54 seed_sentencepieces_file
//     NormalizerSpec 6 normalization_rule_tsv
//
// No reader looks at them. What is not named here is copied as it lies there, known or not: pieces and so their ids,
// character maps, the order of all fields. A message that loses a field stays, with its new size, even if it is empty.
#include "import/spm_paths.h"

#include "base/mem.h"
#include "base/protobuf.h"

static bool is_settings(const dgm_proto_field *f)
{
    return f->wire == DGM_WIRE_BYTES && (f->number == 2 || f->number == 3 || f->number == 5);
}

static bool names_file(uint32_t message, const dgm_proto_field *f)
{
    if (f->wire != DGM_WIRE_BYTES) return false;
    return message == 2 ? f->number == 1 || f->number == 2 || f->number == 54 : f->number == 6;
}

static void write_varint(dgm_writer *w, uint64_t v)
{
    for (; v >= 0x80; v >>= 7) dgm_write_u8(w, (uint8_t)((v & 0x7f) | 0x80));
    dgm_write_u8(w, (uint8_t)v);
}

// The fields of one message of settings that name no file. False: the message is damaged.
static bool keep_fields(dgm_writer *kept, uint32_t message, dgm_text settings)
{
    dgm_reader r = dgm_reader_over(settings.data, settings.size);
    size_t first = 0;
    for (dgm_proto_field f; dgm_proto_next(&r, &f); first = r.pos)
        if (!names_file(message, &f)) dgm_write_bytes(kept, settings.data + first, r.pos - first);
    return !r.bad;
}

// whole: the field as it lies in the model, with its number.
static bool copy_settings(dgm_writer *out, const dgm_proto_field *f, dgm_text whole)
{
    dgm_writer kept = {0};
    const bool fine = keep_fields(&kept, f->number, f->payload);
    if (kept.failed) out->failed = true;
    if (kept.size == f->payload.size) {
        dgm_write_bytes(out, whole.data, whole.size);
    } else {
        write_varint(out, (uint64_t)f->number << 3 | DGM_WIRE_BYTES);
        write_varint(out, kept.size);
        dgm_write_bytes(out, kept.data, kept.size);
    }
    dgm_writer_free(&kept);
    return fine;
}

dgm_status dgm_spm_without_paths(dgm_writer *out, const void *model, size_t size, dgm_error *err)
{
    dgm_reader r = dgm_reader_over(model, size);
    const char *bytes = model;
    size_t first = 0;
    for (dgm_proto_field f; dgm_proto_next(&r, &f); first = r.pos) {
        const dgm_text whole = {bytes + first, r.pos - first};
        if (!is_settings(&f))
            dgm_write_bytes(out, whole.data, whole.size);
        else if (!copy_settings(out, &f, whole))
            r.bad = true;
    }
    DGM_FAIL_IF(r.bad, err, DGM_ERR_FORMAT, "damaged SentencePiece model: settings or pieces are cut off");
    return out->failed ? dgm_no_memory(err) : DGM_OK;
}

dgm_status dgm_spm_set(dgm_gguf_writer *w, dgm_side side, const void *model, size_t size, dgm_error *err)
{
    dgm_writer kept = {0};
    const dgm_status st = dgm_spm_without_paths(&kept, model, size, err);
    if (st == DGM_OK)
        dgm_gguf_set_array(w, dgm_side_key(side, "vocab.sentencepiece").text, DGM_META_U8, kept.data, kept.size);
    dgm_writer_free(&kept);
    return st;
}
