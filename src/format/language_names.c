// SPDX-License-Identifier: MIT
// Names of languages: does what a user writes mean a model's code?
//
// Models spell the same language "de", "deu", "deu_Latn", "zh-CN". Users should not have to know, as
// long as it is clear what they mean: letters count in any case, "-" is "_", a first part stands for
// the whole code, and two letters of ISO 639-1 stand for the three of ISO 639-3 (for the members of
// macrolanguages that published models use, too: "ar" also means "arb").
#include <stddef.h>

#include "format/languages.h"

// Two letters, then three-letter codes they stand for.
static const char *const same[] = {
    "af afr", "ak aka", "am amh", "ar ara arb", "as asm", "ay aym ayr", "az aze azj", "ba bak",
    "be bel", "bg bul", "bm bam", "bn ben", "bo bod", "bs bos", "ca cat", "cs ces", "cy cym",
    "da dan", "de deu", "dz dzo", "ee ewe", "el ell", "en eng", "eo epo", "es spa", "et est ekk",
    "eu eus", "fa fas pes", "ff ful fuv", "fi fin", "fj fij", "fo fao", "fr fra", "ga gle",
    "gd gla", "gl glg", "gn grn", "gu guj", "ha hau", "he heb", "hi hin", "hr hrv", "ht hat",
    "hu hun", "hy hye", "id ind", "ig ibo", "is isl", "it ita", "ja jpn", "jv jav", "ka kat",
    "kg kon", "ki kik", "kk kaz", "km khm", "kn kan", "ko kor", "kr kau knc", "ks kas",
    "ku kur kmr", "ky kir", "la lat", "lb ltz", "lg lug", "li lim", "ln lin", "lo lao", "lt lit",
    "lv lav lvs", "mg mlg plt", "mi mri", "mk mkd", "ml mal", "mn mon khk", "mr mar",
    "ms msa zsm", "mt mlt", "my mya", "nb nob", "ne nep npi", "nl nld", "nn nno", "no nor nob",
    "ns nso", "ny nya", "oc oci", "om orm gaz", "or ori ory", "pa pan", "pl pol", "ps pus pbt",
    "pt por", "qu que quy", "rn run", "ro ron", "ru rus", "rw kin", "sa san", "sc srd", "sd snd",
    "sg sag", "si sin", "sk slk", "sl slv", "sm smo", "sn sna", "so som", "sq sqi als", "sr srp",
    "ss ssw", "st sot", "su sun", "sv swe", "sw swa swh", "ta tam", "te tel", "tg tgk", "th tha",
    "ti tir", "tk tuk", "tl tgl fil", "tn tsn", "tr tur", "ts tso", "tt tat", "tw twi", "ug uig",
    "uk ukr", "ur urd", "uz uzb uzn", "vi vie", "wo wol", "xh xho", "yi yid ydd", "yo yor",
    "zh zho", "zu zul",
};

static char plain(char c)
{
    if (c >= 'A' && c <= 'Z') return (char)(c - 'A' + 'a');
    return c == '-' ? '_' : c;
}

static bool equal(const char *a, const char *b)
{
    while (*a && plain(*a) == plain(*b)) a++, b++;
    return !*a && !*b;
}

// Length of the part before the first "_".
static size_t first_part(const char *code)
{
    size_t n = 0;
    while (code[n] && plain(code[n]) != '_') n++;
    return n;
}

static bool is_part(const char *name, const char *code, size_t n)
{
    size_t i = 0;
    while (i < n && name[i] && plain(name[i]) == plain(code[i])) i++;
    return i == n && !name[i];
}

// Is the first part of code one of those that the two letters stand for?
static bool is_same(const char *name, const char *code, size_t n)
{
    if (!name[0] || !name[1] || name[2] || n != 3) return false;
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        if (same[i][0] != plain(name[0]) || same[i][1] != plain(name[1])) continue;
        for (const char *at = same[i] + 3;; at += 4) {
            if (plain(code[0]) == at[0] && plain(code[1]) == at[1] && plain(code[2]) == at[2])
                return true;
            if (!at[3]) break;
        }
    }
    return false;
}

int dgm_language_matches(const char *name, const char *code)
{
    if (equal(name, code)) return 2;
    size_t n = first_part(code);
    return is_part(name, code, n) || is_same(name, code, n) ? 1 : 0;
}
