// SPDX-License-Identifier: MIT
// libFuzzer target: what a translation must not damage, in any bytes. Checks that what is found is in order, that it is
// kept by a copy where nothing is localised, and that stand-ins for it can be put back. First byte:
// languages; second: where the text ends and a translation begins.
// Parsers: src/text/protect.c src/text/protect_digits.c src/text/protect_forms.c src/text/standin.c
#include <stdlib.h>

#include "base/mem.h"
#include "text/standin.h"

#define REQUIRE(cond)                                                                              \
    do {                                                                                           \
        if (!(cond)) abort();                                                                      \
    } while (0)

static void check_standins(const dgm_protector *p, dgm_text text, const dgm_protected_list *found,
                           const unsigned char *kept, dgm_text translation, int round)
{
    dgm_standins s = {0};
    dgm_writer out = {0};
    REQUIRE(dgm_standins_make(&s, p, text, found->items, found->count, kept, round, NULL) == DGM_OK);
    size_t last = 0;
    for (size_t pos = 0; pos <= s.text.size; pos++) {
        const size_t place = dgm_standins_place(&s, pos);
        REQUIRE(place >= last && place <= text.size);
        last = place;
    }
    dgm_write_bytes(&out, s.text.data, s.text.size);
    dgm_write_bytes(&out, translation.data, translation.size);
    dgm_span spans[2] = {{0, (uint32_t)(out.size / 2)}, {(uint32_t)(out.size / 2), (uint32_t)out.size}};
    dgm_standins_faults(&s, (dgm_text){(const char *)out.data, out.size});
    REQUIRE(dgm_standins_restore(&s, &out, 0, spans, 2, NULL) == DGM_OK);
    for (int i = 0; i < 2; i++) REQUIRE(spans[i].begin <= spans[i].end && spans[i].end <= out.size);
    dgm_writer_free(&out);
    dgm_standins_free(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const codes[] = {"en", "de", "fr", "ja"};
    if (size < 2) return 0;
    const dgm_protector p =
        dgm_protector_for(dgm_text_of(codes[data[0] % 4]), dgm_text_of(codes[data[0] / 4 % 4]));
    const size_t split = 2 + (size - 2) * data[1] / 255;
    const dgm_text text = {(const char *)data + 2, split - 2}, translation = {(const char *)data + split, size - split};
    dgm_protected_list found = {0};
    REQUIRE(dgm_protect_find(&p, text, &found, NULL) == DGM_OK);
    unsigned char *kept = dgm_calloc(found.count + 1, 1);
    REQUIRE(kept);
    size_t at = 0;
    for (size_t i = 0; i < found.count; i++) {
        const dgm_protected *x = &found.items[i];
        REQUIRE(x->begin >= at && x->begin < x->end && x->end <= text.size);
        at = x->end;
        dgm_writer out = {0};
        dgm_protect_write(&p, text, x, &out);
        REQUIRE(out.size > 0);
        dgm_writer_free(&out);
    }
    dgm_standins spelled = {0};
    REQUIRE(dgm_standins_respell(&spelled, &p, text, found.items, found.count, kept, translation, NULL) == DGM_OK);
    dgm_standins_free(&spelled);
    REQUIRE(dgm_protect_check(&p, text, found.items, found.count, translation, kept) <= found.count);
    for (int round = 0; round < DGM_STANDIN_ROUNDS; round++) check_standins(&p, text, &found, kept, translation, round);
    dgm_free(kept);
    dgm_free(found.items);
    return 0;
}
