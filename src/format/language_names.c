// SPDX-License-Identifier: MIT
// Names of languages: does what a user writes mean a model's code?
//
// Models spell the same language "de", "deu", "deu_Latn", "zh-CN". Users should not have to know, as
// long as it is clear what they mean: letters count in any case, "-" and a space are "_", a first part
// stands for the whole code, codes of two and three letters stand for each other (also for the members of
// macrolanguages that published models use: "ar" also means "arb"), a region may say more than the model
// does ("en-US" for "en"), and English and native names mean their language.
#include <stddef.h>
#include <string.h>

#include "format/languages.h"

// Two letters, then three-letter codes they stand for: of ISO 639-3, of its members, of ISO 639-2/B.
static const char *const same[] = {
    "ab abk", "ae ave", "af afr", "ak aka", "am amh", "an arg", "ar ara arb", "as asm", "av ava",
    "ay aym ayr", "az aze azj", "ba bak", "be bel", "bg bul", "bh bih", "bi bis", "bm bam",
    "bn ben", "bo bod tib", "br bre", "bs bos", "ca cat", "ce che", "ch cha", "co cos", "cr cre",
    "cs ces cze", "cu chu", "cv chv", "cy cym wel", "da dan", "de deu ger", "dv div", "dz dzo",
    "ee ewe", "el ell gre", "en eng", "eo epo", "es spa", "et est ekk", "eu eus baq",
    "fa fas pes per", "ff ful fuv", "fi fin", "fj fij", "fo fao", "fr fra fre", "fy fry", "ga gle",
    "gd gla", "gl glg", "gn grn", "gu guj", "gv glv", "ha hau", "he heb iw", "hi hin", "ho hmo",
    "hr hrv", "ht hat", "hu hun", "hy hye arm", "hz her", "ia ina", "id ind in", "ie ile", "ig ibo",
    "ii iii", "io ido", "is isl ice", "it ita", "iu iku", "ja jpn",
    "jv jav", "ka kat geo", "kg kon", "ki kik", "kk kaz", "kl kal", "km khm", "kn kan", "ko kor",
    "kr kau knc", "ks kas", "ku kur kmr", "kv kom", "kw cor", "ky kir", "la lat", "lb ltz",
    "lg lug", "li lim", "ln lin", "lo lao", "lt lit", "lu lub", "lv lav lvs", "mg mlg plt",
    "mh mah", "mi mri mao", "mk mkd mac", "ml mal", "mn mon khk", "mo mol ron", "mr mar",
    "ms msa zsm may", "mt mlt", "my mya bur", "na nau", "nb nob", "nd nde", "ne nep npi", "ng ndo",
    "nl nld dut", "nn nno", "no nor nob", "nr nbl", "ns nso", "nv nav", "ny nya", "oc oci",
    "oj oji", "om orm gaz", "or ori ory", "os oss", "pa pan", "pi pli", "pl pol", "ps pus pbt",
    "pt por", "qu que quy", "rm roh", "rn run", "ro ron rum", "ru rus", "rw kin", "sa san",
    "sc srd", "sd snd", "se sme", "sg sag", "sh hbs", "si sin", "sk slk slo", "sl slv", "sm smo",
    "sn sna", "so som", "sq sqi als alb", "sr srp", "ss ssw", "st sot", "su sun", "sv swe",
    "sw swa swh", "ta tam", "te tel", "tg tgk", "th tha", "ti tir", "tk tuk", "tl tgl fil",
    "tn tsn", "to ton", "tr tur", "ts tso", "tt tat", "tw twi", "ty tah", "ug uig", "uk ukr",
    "ur urd", "uz uzb uzn", "ve ven", "vi vie", "vo vol", "wa wln", "wo wol", "xh xho",
    "yi yid ydd ji", "yo yor", "za zha", "zh zho chi cmn", "zu zul",
};

// A code, then English and native names.
static const char *const named[] = {
    "af|Afrikaans", "am|Amharic|አማርኛ", "ar|Arabic|العربية|عربي", "ast|Asturian|asturianu",
    "az|Azerbaijani|azərbaycan|azərbaycanca|azərbaycan dili", "ba|Bashkir|башҡортса|башҡорт теле",
    "be|Belarusian|беларуская", "bg|Bulgarian|български", "bn|Bengali|Bangla|বাংলা",
    "br|Breton|brezhoneg", "bs|Bosnian|bosanski", "ca|Catalan|Valencian|català",
    "ceb|Cebuano|Sinugboanon", "cs|Czech|čeština|česky", "cy|Welsh|Cymraeg", "da|Danish|dansk",
    "de|German|Deutsch", "el|Greek|ελληνικά", "en|English", "eo|Esperanto",
    "es|Spanish|Castilian|español|castellano", "et|Estonian|eesti|eesti keel", "eu|Basque|euskara",
    "fa|Persian|Farsi|فارسی", "ff|Fulah|Fula|Pulaar|Fulfulde", "fi|Finnish|suomi",
    "fo|Faroese|føroyskt", "fr|French|français", "fy|Western Frisian|Frisian|Frysk",
    "ga|Irish|Gaeilge", "gd|Scottish Gaelic|Gaelic|Gàidhlig", "gl|Galician|galego",
    "gu|Gujarati|ગુજરાતી", "ha|Hausa", "he|Hebrew|עברית", "hi|Hindi|हिन्दी|हिंदी",
    "hr|Croatian|hrvatski", "ht|Haitian Creole|Haitian|kreyòl ayisyen", "hu|Hungarian|magyar",
    "hy|Armenian|հայերեն", "id|Indonesian|bahasa Indonesia", "ig|Igbo", "ilo|Iloko|Ilocano",
    "is|Icelandic|íslenska", "it|Italian|italiano", "ja|Japanese|日本語", "jv|Javanese|basa Jawa",
    "ka|Georgian|ქართული", "kk|Kazakh|қазақша|қазақ тілі", "km|Khmer|Central Khmer|ខ្មែរ|ភាសាខ្មែរ",
    "kn|Kannada|ಕನ್ನಡ", "ko|Korean|한국어", "ku|Kurdish|kurdî", "ky|Kyrgyz|кыргызча",
    "la|Latin|latina", "lb|Luxembourgish|Lëtzebuergesch", "lg|Ganda|Luganda", "ln|Lingala|lingála",
    "lo|Lao|ລາວ|ພາສາລາວ", "lt|Lithuanian|lietuvių", "lv|Latvian|latviešu", "mg|Malagasy",
    "mi|Maori|māori", "mk|Macedonian|македонски", "ml|Malayalam|മലയാളം", "mn|Mongolian|монгол",
    "mr|Marathi|मराठी", "ms|Malay|bahasa Melayu", "mt|Maltese|Malti",
    "my|Burmese|မြန်မာ|မြန်မာဘာသာ", "nb|Norwegian Bokmål|Bokmål|norsk bokmål", "ne|Nepali|नेपाली",
    "nl|Dutch|Flemish|Nederlands|Vlaams", "nn|Norwegian Nynorsk|Nynorsk|norsk nynorsk",
    "no|Norwegian|norsk", "ns|Northern Sotho|Sepedi|Sesotho sa Leboa", "oc|Occitan|occitan",
    "or|Odia|Oriya|ଓଡ଼ିଆ", "pa|Punjabi|Panjabi|ਪੰਜਾਬੀ", "pl|Polish|polski", "ps|Pashto|پښتو",
    "pt|Portuguese|português", "ro|Romanian|română", "ru|Russian|русский",
    "rw|Kinyarwanda|Ikinyarwanda", "sa|Sanskrit|संस्कृतम्", "sd|Sindhi|سنڌي",
    "si|Sinhala|Sinhalese|සිංහල", "sk|Slovak|slovenčina", "sl|Slovenian|Slovene|slovenščina",
    "sn|Shona|chiShona", "so|Somali|Soomaali", "sq|Albanian|shqip", "sr|Serbian|српски|srpski",
    "ss|Swati|Swazi|siSwati", "su|Sundanese|basa Sunda", "sv|Swedish|svenska",
    "sw|Swahili|Kiswahili", "ta|Tamil|தமிழ்", "te|Telugu|తెలుగు", "tg|Tajik|тоҷикӣ",
    "th|Thai|ไทย|ภาษาไทย", "tk|Turkmen|türkmençe", "tl|Tagalog|Filipino|Pilipino",
    "tn|Tswana|Setswana", "tr|Turkish|Türkçe", "tt|Tatar|татарча", "ug|Uyghur|ئۇيغۇرچە",
    "uk|Ukrainian|українська", "ur|Urdu|اردو", "uz|Uzbek|oʻzbekcha|o'zbekcha|oʻzbek tili",
    "vi|Vietnamese|tiếng Việt", "wo|Wolof", "xh|Xhosa|isiXhosa", "yi|Yiddish|ייִדיש|יידיש",
    "yo|Yoruba|Yorùbá", "zh|Chinese|Mandarin|中文|汉语|漢語|普通话",
    "zh_Hans|Simplified Chinese|Chinese Simplified|简体中文",
    "zh_Hant|Traditional Chinese|Chinese Traditional|繁體中文", "zu|Zulu|isiZulu",
};

// Letters in lower case: of ASCII, and the capitals of two bytes of Latin-1, Greek and Cyrillic. "-" and a
// space are "_". Returns the bytes read; *fold holds as many.
static size_t plain(const char *at, char fold[2])
{
    const unsigned char a = (unsigned char)at[0], b = a >= 0xC2 && a < 0xE0 ? (unsigned char)at[1] : 0;
    fold[0] = at[0];
    fold[1] = (char)b;
    if (a >= 'A' && a <= 'Z') fold[0] = (char)(a + 32);
    if (a == '-' || a == ' ') fold[0] = '_';
    if (!b) return 1;
    const unsigned code = (a & 31u) << 6 | (b & 63u);
    unsigned small = code;
    if ((code >= 0xC0 && code <= 0xDE && code != 0xD7) || (code >= 0x391 && code <= 0x3A9) ||
        (code >= 0x410 && code <= 0x42F))
        small = code + 32;
    else if (code >= 0x400 && code <= 0x40F)
        small = code + 80;
    else if (code >= 0x100 && code <= 0x137) // pairs
        small = code | 1;
    else if (code == 0x160 || code == 0x17D)
        small = code + 1;
    fold[0] = (char)(0xC0 | small >> 6);
    fold[1] = (char)(0x80 | (small & 63));
    return 2;
}

// Are the first n bytes of a what the first m of b are, but for their spelling?
static bool alike(const char *a, size_t n, const char *b, size_t m)
{
    size_t i = 0, k = 0;
    while (i < n && k < m) {
        char x[2], y[2];
        const size_t s = plain(a + i, x), t = plain(b + k, y);
        if (s != t || memcmp(x, y, s) != 0) return false;
        i += s;
        k += t;
    }
    return i == n && k == m;
}

// Length of the part before the first "_"; a space is only part of a name.
static size_t first_part(const char *code)
{
    return strcspn(code, "-_");
}

// Do two codes without further parts stand in one row of the table?
static bool is_same(const char *a, size_t n, const char *b, size_t m)
{
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        bool first = false, second = false;
        for (const char *at = same[i]; *at;) {
            const size_t size = strcspn(at, " ");
            first = first || alike(a, n, at, size);
            second = second || alike(b, m, at, size);
            at += size + (at[size] == ' ');
        }
        if (first && second) return true;
    }
    return false;
}

static const char *script_of_chinese(const char *region)
{
    static const char *const table[][2] = {{"CN", "Hans"}, {"SG", "Hans"}, {"TW", "Hant"},
                                           {"HK", "Hant"}, {"MO", "Hant"}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (alike(region, strlen(region), table[i][0], 2)) return table[i][1];
    return region;
}

// What the name says beside the language, against what the code says. Nothing said fits, and a region fits
// a script, but for Chinese, where it says which.
static bool rest_fits(const char *name, const char *code, bool chinese)
{
    const size_t n = strlen(name), m = strlen(code);
    if (n == 0 || m == 0 || alike(name, n, code, m)) return true;
    if (alike(code, m, "XX", 2)) return true; // a place that mBART leaves open
    if (chinese) {
        const char *a = script_of_chinese(name), *b = script_of_chinese(code);
        return alike(a, strlen(a), b, strlen(b));
    }
    return n < 4 && m == 4;
}

// The code of a language by its name; NULL: there is none.
static const char *code_of_name(const char *name, char code[16])
{
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        const size_t size = strcspn(named[i], "|");
        for (const char *at = named[i] + size; *at == '|';) {
            const size_t n = strcspn(++at, "|");
            if (alike(name, strlen(name), at, n)) {
                memcpy(code, named[i], size);
                code[size] = 0;
                return code;
            }
            at += n;
        }
    }
    return NULL;
}

static bool codes_match(const char *name, const char *code)
{
    const size_t n = first_part(name), m = first_part(code);
    if (n == 0 || (!alike(name, n, code, m) && !is_same(name, n, code, m))) return false;
    return rest_fits(name + n + (name[n] != 0), code + m + (code[m] != 0), is_same(name, n, "zho", 3));
}

int dgm_language_matches(const char *name, const char *code)
{
    char of_name[16];
    if (alike(name, strlen(name), code, strlen(code))) return 2;
    if (codes_match(name, code)) return 1;
    return code_of_name(name, of_name) && codes_match(of_name, code);
}

const char *dgm_language_english(const char *code, size_t *size)
{
    const char *found = NULL;
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        char own[16];
        const size_t n = strcspn(named[i], "|");
        memcpy(own, named[i], n);
        own[n] = 0;
        const bool exact = alike(code, strlen(code), own, n);
        if (!exact && (found || !codes_match(code, own))) continue;
        found = named[i] + n + 1;
        *size = strcspn(found, "|");
        if (exact) break;
    }
    return found;
}
