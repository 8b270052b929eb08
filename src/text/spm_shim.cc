// SPDX-License-Identifier: MIT
// libsentencepiece behind spm_shim.h; C++, as cld2_shim.cc is and nothing else.
//
// Nothing thrown leaves this file. The advanced interface (SentencePieceText) is used for encoding
// and decoding, because it carries byte spans and the plain one builds it anyway and copies. Its
// log is switched off: the library never prints.
//
// An allocation that fails in the middle leaves the library's messages half made, and destroying those ends the
// program. So memory is set aside before it is called, and given back when there is no other for it: what does not
// suffice is found before it begins.
//
// Decoding ordinary pieces is joining them. That is done here: the library looks for each of them again by its
// spelling and makes a message with two strings for it, which takes ten times as long.
extern "C" {
#include "base/mem.h"
#include "base/status.h"
}

#include "text/spm_shim.h"

#include <sentencepiece_processor.h>

#include <cstring>
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
    dgm_spm_traits traits;
};

namespace
{

constexpr int log_fatal_only = 3;

// What is set aside: for a model, so many times its size, and for a text, so many bytes a byte. A piece of one byte is
// a message with two strings. Text of 400 bytes, which is long, stays below what malloc maps.
constexpr size_t model_factor = 16, text_factor = 256, reserve_least = 16384;

thread_local void *reserve; // of the call that this thread is in
std::new_handler handler_before;

void give_reserve()
{
    if (reserve) {
        dgm_free(reserve);
        reserve = nullptr; // `new` tries again
    } else if (handler_before) {
        handler_before();
    } else {
        throw std::bad_alloc();
    }
}

void install_handler()
{
    static const bool once = (handler_before = std::set_new_handler(give_reserve), true);
    (void)once;
}

// Runs body, which returns dgm_status, with that much set aside, and turns exceptions into a status.
template <typename Body> dgm_status guarded(dgm_error *err, const char *what, size_t bytes, Body body)
{
    install_handler();
    reserve = dgm_malloc(reserve_least + bytes);
    if (!reserve) return dgm_no_memory(err);
    const struct release {
        ~release()
        {
            dgm_free(reserve);
            reserve = nullptr;
        }
    } at_end;
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

constexpr char space_mark[] = "\xE2\x96\x81";
constexpr size_t mark_size = sizeof space_mark - 1;

bool begins_with_mark(absl::string_view piece)
{
    return piece.size() >= mark_size && std::memcmp(piece.data(), space_mark, mark_size) == 0;
}

// The piece with spaces for its marks.
void append_piece(absl::string_view piece, std::string *text)
{
    for (size_t i = 0; i < piece.size();) {
        const bool mark = begins_with_mark(piece.substr(i));
        text->push_back(mark ? ' ' : piece[i]);
        i += mark ? mark_size : 1;
    }
}

// What Decode of the library makes of ordinary pieces; ends[i]: of the text of piece i. False: there are others among
// them (unknown, bytes, a space mark alone at the beginning), or the model writes them in another way.
bool join_pieces(const dgm_spm *spm, const int32_t *pieces, size_t count, std::string *text,
                 std::vector<uint32_t> *ends)
{
    if (!spm->traits.joins) return false;
    ends->reserve(count);
    text->reserve(count * 8);
    for (size_t i = 0; i < count; i++) {
        if (pieces[i] == spm->unk || dgm_spm_is_byte(spm, pieces[i])) return false;
        absl::string_view piece = spm->processor.IdToPiece(pieces[i]);
        if (i == 0 && begins_with_mark(piece)) {
            piece.remove_prefix(mark_size);
            if (piece.empty() || begins_with_mark(piece)) return false;
        }
        append_piece(piece, text);
        ends->push_back(static_cast<uint32_t>(text->size()));
    }
    return true;
}

} // namespace

extern "C" dgm_status dgm_spm_open(dgm_spm **spm, const void *model, size_t size, dgm_error *err)
{
    *spm = nullptr;
    dgm_spm_traits traits;
    DGM_TRY(dgm_spm_check(model, size, &traits, err));
    return guarded(err, "damaged SentencePiece model", model_factor * size, [&]() -> dgm_status {
        sentencepiece::logging::SetMinLogLevel(log_fatal_only);
        std::unique_ptr<dgm_spm> fresh(new dgm_spm);
        const auto status = fresh->processor.LoadFromSerializedProto(
            absl::string_view(static_cast<const char *>(model), size));
        if (!status.ok()) return failed(err, "damaged SentencePiece model", status);
        fresh->size = fresh->processor.GetPieceSize();
        fresh->unk = fresh->processor.unk_id();
        fresh->traits = traits;
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
    return spm->traits.bytes && spm->processor.IsByte(id);
}

extern "C" float dgm_spm_score(const dgm_spm *spm, int32_t id)
{
    return spm->processor.GetScore(id);
}

extern "C" dgm_status dgm_spm_encode(const dgm_spm *spm, const char *text, size_t size,
                                     dgm_spm_token_fn fn, void *arg, dgm_error *err)
{
    return guarded(err, "cannot encode text", text_factor * size, [&]() -> dgm_status {
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
    return guarded(err, "cannot decode tokens", text_factor * count, [&]() -> dgm_status {
        std::string joined;
        std::vector<uint32_t> ends;
        if (join_pieces(spm, pieces, count, &joined, &ends)) {
            DGM_TRY(text_fn(arg, joined.data(), joined.size()));
            for (size_t i = 0; i < count; i++) DGM_TRY(fn(arg, pieces[i], i ? ends[i - 1] : 0, ends[i]));
            return DGM_OK;
        }
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
