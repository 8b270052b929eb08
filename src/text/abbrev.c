// SPDX-License-Identifier: MIT
// Abbreviations after which a dot does not end the sentence, and language codes; see tokenize.h.
// Short own lists: frequent titles, units of reference and months. Words with dots inside ("e.g",
// "z.B") need no entry: callers know them by their shape.
//
// An entry is the word without its dot; "#" before it means "only before a number" ("No. 5").
// Lists are searched in order; they are short and asked only for words that end in a dot.
#include <string.h>

#include "text/tokenize.h"

static const char *const any_language[] = {"Dr",   "Prof", "St",   "Mr",   "Mrs", "Ms",  "vs",
                                           "#vol", "#Vol", "#fig", "#Fig", "#p",  "#pp", NULL};
static const char *const english[] = {
    "Messrs", "Sens", "Reps", "v",    "Rev",  "Hon",  "Gen",  "Col", "Maj",  "Capt",
    "Cpt",    "Lt",   "Sgt",  "Cpl",  "Adm",  "Cmdr", "Sen",  "Rep", "Gov",  "Pres",
    "Supt",   "Det",  "Insp", "Mt",   "Ft",   "Ave",  "Blvd", "Rd",  "Inc",  "Corp",
    "Co",     "Ltd",  "Bros", "Assn", "Dept", "Univ", "Jr",   "Sr",  "Jan",  "Feb",
    "Mar",    "Apr",  "Jun",  "Jul",  "Aug",  "Sep",  "Sept", "Oct", "Nov",  "Dec",
    "approx", "esp",  "cf",   "al",   "Ph",   "#No",  "#Nos", "#no", "#nos", "#Art",
    "#art",   "#Sec", "#sec", "#Ch",  "#ch",  "#Eq",  "#eq",  "#Nr", "#pg",  NULL};
static const char *const german[] = {
    "bzw",  "ca",   "Hr",   "Hrn",  "Fr",    "Frl",    "Nr",  "Str",  "Abs",  "Abt",    "Bd",
    "vgl",  "ggf",  "evtl", "inkl", "exkl",  "zzgl",   "Mio", "Mrd",  "Tsd",  "Jh",     "Jhd",
    "geb",  "gest", "sog",  "allg", "bes",   "entspr", "gem", "jew",  "lt",   "max",    "min",
    "mind", "Min",  "Std",  "Sek",  "Tel",   "Dipl",   "Ing", "Hrsg", "Aufl", "Ausg",   "Anm",
    "Kap",  "Red",  "Reg",  "Bez",  "Dez",   "Jan",    "Feb", "Mrz",  "Apr",  "Jun",    "Jul",
    "Aug",  "Sept", "Okt",  "Nov",  "Mag",   "Univ",   "Ges", "ehem", "röm",  "griech", "engl",
    "dt",   "frz",  "ital", "span", "städt", "zzt",    "Zi",  "#Art", "#S",   "#Ziff",  NULL};
static const char *const french[] = {"M",    "MM",   "Mme",  "Mmes", "Mlle", "Mlles", "Me",   "Mgr",
                                     "Pr",   "Ste",  "env",  "cf",   "av",   "apr",   "ap",   "éd",
                                     "ex",   "hab",  "janv", "févr", "avr",  "juil",  "sept", "oct",
                                     "nov",  "déc",  "bd",   "boul", "chap", "dép",   "tél",  "#no",
                                     "#nos", "#art", "#Art", "#n",   "#pag", NULL};
static const char *const spanish[] = {
    "Sr",   "Sra",   "Srta", "Sres",  "Sras",  "Dra",  "Dres", "Ud",  "Uds",  "Vd",
    "Vds",  "Lic",   "Ing",  "Gral",  "Cnel",  "Cap",  "Cía",  "Av",  "Avda", "Pza",
    "Sto",  "Sta",   "Mons", "aprox", "Excmo", "Ilmo", "Fco",  "Ma",  "Mª",   "Dª",
    "ene",  "feb",   "abr",  "ago",   "sept",  "oct",  "nov",  "dic", "#núm", "#Núm",
    "#pág", "#págs", "#art", "#Art",  "#cap",  "#tel", "#Tel", NULL};
static const char *const italian[] = {
    "Sig",   "Sigg", "sig",   "Dott", "dott", "Avv",  "avv",  "Ing",  "ing",   "Arch", "arch",
    "Geom",  "Rag",  "On",    "on",   "Mons", "mons", "Egr",  "Gent", "Spett", "prof", "ca",
    "gen",   "genn", "febbr", "apr",  "lug",  "ag",   "sett", "ott",  "nov",   "dic",  "#pag",
    "#pagg", "#art", "#Art",  "#n",   "#N",   "#cap", "#tel", "#Tel", NULL};

static const char *const *const lists[] = {
    [DGM_LANG_OTHER] = NULL, [DGM_LANG_EN] = english, [DGM_LANG_DE] = german,
    [DGM_LANG_FR] = french,  [DGM_LANG_ES] = spanish, [DGM_LANG_IT] = italian,
};

static int find(const char *const *list, dgm_text word)
{
    for (; list && *list; list++) {
        bool numeric = **list == '#';
        if (dgm_text_equal(dgm_text_of(*list + numeric), word)) return numeric ? 2 : 1;
    }
    return 0;
}

int dgm_abbreviation(dgm_language lang, dgm_text word)
{
    if (word.size == 0 || word.size > 16) return 0;
    uint32_t code;
    if (dgm_utf8_next(word.data, word.size, &code) == word.size &&
        (dgm_char_class(code) & DGM_CHAR_UPPER))
        return 1; // an initial
    int found = find(any_language, word);
    if (found) return found;
    return (unsigned)lang <= DGM_LANG_IT ? find(lists[lang], word) : 0;
}

dgm_language dgm_language_of(dgm_text code)
{
    static const struct {
        const char *code;
        dgm_language lang;
    } codes[] = {
        {"en", DGM_LANG_EN},  {"eng", DGM_LANG_EN}, {"de", DGM_LANG_DE},  {"deu", DGM_LANG_DE},
        {"ger", DGM_LANG_DE}, {"fr", DGM_LANG_FR},  {"fra", DGM_LANG_FR}, {"fre", DGM_LANG_FR},
        {"es", DGM_LANG_ES},  {"spa", DGM_LANG_ES}, {"it", DGM_LANG_IT},  {"ita", DGM_LANG_IT},
    };
    char lower[4] = {0};
    size_t n = 0;
    while (n < code.size && code.data[n] != '-' && code.data[n] != '_') {
        if (n == 3) return DGM_LANG_OTHER;
        lower[n] = (char)dgm_char_lower((unsigned char)code.data[n]);
        n++;
    }
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (strcmp(lower, codes[i].code) == 0) return codes[i].lang;
    return DGM_LANG_OTHER;
}
