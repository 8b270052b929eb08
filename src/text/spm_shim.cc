// SPDX-License-Identifier: MIT
// The one C++ file of the library: libsentencepiece behind spm_shim.h.
//
// Nothing thrown leaves this file. The advanced interface (SentencePieceText) is used for encoding
// and decoding, because it carries byte spans and the plain one builds it anyway and copies. Its
// log is switched off: the library never prints.
extern "C" {
#include "base/mem.h"
#include "base/status.h"
}

#include "text/spm_shim.h"

#include <sentencepiece_processor.h>

#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "text/spm_check.h"

namespace sentencepiece
{
namespace logging
{
void SetMinLogLevel(int level); // exported by the library, declared in no installed header
}
} // namespace sentencepiece

struct dgm_spm {
    sentencepiece::SentencePieceProcessor processor;
    int size;
    int unk;
};

namespace
{

constexpr int log_fatal_only = 3;

// Runs body, which returns dgm_status, and turns exceptions into one.
template <typename Body> dgm_status guarded(dgm_error *err, const char *what, Body body)
{
    try {
        return body();
    } catch (const std::bad_alloc &) {
        return dgm_no_memory(err);
    } catch (const std::exception &e) {
        return dgm_fail(err, DGM_ERR_FORMAT, "%s: %s", what, e.what());
    } catch (...) {
        return dgm_fail(err, DGM_ERR_FORMAT, "%s", what);
    }
}

dgm_status failed(dgm_error *err, const char *what, const sentencepiece::util::Status &status)
{
    // The library's own messages may hold source positions and line breaks: first line only.
    std::string text = status.ToString();
    for (char &c : text)
        if (static_cast<unsigned char>(c) < 32) c = ' ';
    return dgm_fail(err, DGM_ERR_FORMAT, "%s: %.200s", what, text.c_str());
}

} // namespace

extern "C" dgm_status dgm_spm_open(dgm_spm **spm, const void *model, size_t size, dgm_error *err)
{
    *spm = nullptr;
    DGM_TRY(dgm_spm_check(model, size, err));
    return guarded(err, "damaged SentencePiece model", [&]() -> dgm_status {
        sentencepiece::logging::SetMinLogLevel(log_fatal_only);
        std::unique_ptr<dgm_spm> fresh(new dgm_spm);
        const auto status = fresh->processor.LoadFromSerializedProto(
            absl::string_view(static_cast<const char *>(model), size));
        if (!status.ok()) return failed(err, "damaged SentencePiece model", status);
        fresh->size = fresh->processor.GetPieceSize();
        fresh->unk = fresh->processor.unk_id();
        if (fresh->size <= 0 || fresh->unk < 0)
            return dgm_fail(err, DGM_ERR_FORMAT, "damaged SentencePiece model: no unknown piece");
        *spm = fresh.release();
        return DGM_OK;
    });
}

extern "C" void dgm_spm_close(dgm_spm **spm)
{
    if (!spm) return;
    delete *spm;
    *spm = nullptr;
}

extern "C" int32_t dgm_spm_size(const dgm_spm *spm)
{
    return spm->size;
}

extern "C" const char *dgm_spm_piece(const dgm_spm *spm, int32_t id, size_t *size)
{
    const std::string &piece = spm->processor.IdToPiece(id);
    *size = piece.size();
    return piece.data();
}

extern "C" int32_t dgm_spm_id(const dgm_spm *spm, const char *piece, size_t size)
{
    const int id = spm->processor.PieceToId(absl::string_view(piece, size));
    if (id == spm->unk && spm->processor.IdToPiece(id) != absl::string_view(piece, size)) return -1;
    return id;
}

extern "C" int32_t dgm_spm_unk(const dgm_spm *spm)
{
    return spm->unk;
}

extern "C" bool dgm_spm_is_control(const dgm_spm *spm, int32_t id)
{
    return spm->processor.IsControl(id);
}

extern "C" bool dgm_spm_is_byte(const dgm_spm *spm, int32_t id)
{
    return spm->processor.IsByte(id);
}

extern "C" float dgm_spm_score(const dgm_spm *spm, int32_t id)
{
    return spm->processor.GetScore(id);
}

extern "C" dgm_status dgm_spm_encode(const dgm_spm *spm, const char *text, size_t size,
                                     dgm_spm_token_fn fn, void *arg, dgm_error *err)
{
    return guarded(err, "cannot encode text", [&]() -> dgm_status {
        sentencepiece::ImmutableSentencePieceText result;
        const auto status =
            spm->processor.Encode(absl::string_view(text, size), result.mutable_proto());
        if (!status.ok()) return failed(err, "cannot encode text", status);
        const int count = static_cast<int>(result.pieces_size());
        for (int i = 0; i < count; i++) {
            const auto piece = result.pieces(i);
            DGM_TRY(fn(arg, static_cast<int32_t>(piece.id()), piece.begin(), piece.end()));
        }
        return DGM_OK;
    });
}

extern "C" dgm_status dgm_spm_decode(const dgm_spm *spm, const int32_t *pieces, size_t count,
                                     dgm_spm_text_fn text_fn, dgm_spm_token_fn fn, void *arg,
                                     dgm_error *err)
{
    return guarded(err, "cannot decode tokens", [&]() -> dgm_status {
        const std::vector<int> ids(pieces, pieces + count);
        sentencepiece::ImmutableSentencePieceText result;
        const auto status = spm->processor.Decode(ids, result.mutable_proto());
        if (!status.ok()) return failed(err, "cannot decode tokens", status);
        const std::string &text = result.text();
        DGM_TRY(text_fn(arg, text.data(), text.size()));
        const int made = static_cast<int>(result.pieces_size());
        for (int i = 0; i < made; i++) {
            const auto piece = result.pieces(i);
            DGM_TRY(fn(arg, pieces[i], piece.begin(), piece.end()));
        }
        return DGM_OK;
    });
}
