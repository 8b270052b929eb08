// SPDX-License-Identifier: MIT
// See headlines.h. A text's first words are read into a fixed table; nothing is allocated.
#include "text/headlines.h"

#include <string.h>

#include "text/headline_points_private.h"
#include "text/sentence_words.h"

enum {
    LONGEST_HEADLINE = DGM_HEADLINE_PLACES_MAX, // words
    SHORTEST_REST = 4,
    REST_READ = 16, // words behind a headline that are looked at
    WORDS_MAX = LONGEST_HEADLINE + REST_READ,
    WORD_BYTES = 24,
};

typedef struct vocabulary {
    const char *articles;
    const char
        *function; // words that do not end a headline: a name follows, or the sentence goes on
    const char *
        verbs; // frequent ones, which headlines leave out and which follow what a sentence is about
    const char *more; // words that begin sentences, beside those of dgm_opens_sentence
    const char
        *weak; // of both, words that are parts of names, titles and labels, or other words as well
    const char *capital; // words with a capital everywhere
    const char *endings; // of words that are no names
} vocabulary;

static const vocabulary languages[] = {
    [DGM_LANG_EN] = {" the a an ",
                     " the a an and or but nor of in on at by for from with to into onto as than "
                     "that which who whom "
                     "whose is are was were be been being am do does did has have had can could "
                     "will would shall should "
                     "may might must not no it he she they we i you his her its their our my your "
                     "this these those there "
                     "said says told tells asked called named entitled titled wrote writes read "
                     "reads if when while "
                     "because since though although until under over between among against about "
                     "after before during "
                     "per via without within across behind beyond like near toward towards upon vs "
                     "also so such only "
                     "even just both either neither each every any some all one two three mr mrs "
                     "ms dr sir lord lady st ",
                     " is are was were has have had will would can could may might must should "
                     "said says does did do be "
                     "been ",
                     " Hundreds Thousands Tens Following Almost Nearly "
                     "Behind Alongside Given Neither Either Currently Due Nevertheless Nonetheless "
                     "Through Throughout "
                     "Across Around Whether Whatever Whenever Apart Besides Similarly Additionally "
                     "Furthermore Earlier "
                     "Recently Altogether Last ",
                     " No Yes All My Will You Then Once Much Such More Most Other Others Another "
                     "Nothing Do Does "
                     "Did Has Have Had Can Could Would Should Must Let Please Today Is Are Was "
                     "Were Or Nor Yet Over "
                     "Above Of Not Now Again Never Only Just About From To So What Who Whom Whose "
                     "Which Where Why And "
                     "Two Three Four Five Six Seven Eight Nine Ten Your Our Her Their Everything "
                     "Later Soon Still Into None Without Instead Even Also ",
                     " I May ", " ing ly ers ists ions ies ments "},
    [DGM_LANG_DE] =
        {" der die das den dem des ein eine einen einem einer eines ",
         " der die das den dem des ein eine einen einem einer eines und oder aber sondern denn in "
         "im ins an "
         "am ans auf aus bei beim bis durch für gegen mit nach ohne seit über um unter vom von vor "
         "während "
         "wegen zu zum zur zwischen ab als wie wenn weil dass ob daß er sie es wir ich ihr du man "
         "sich mich "
         "dich uns euch ihm ihn ihnen mir dir "
         "seine seinem seinen seiner ihre ihrem ihren ihrer unser unsere mein meine "
         "kein keine keinen nicht auch nur noch schon sehr so dieser diese dieses diesem diesen "
         "jeder jede "
         "jedes jedem jeden heißt hieß genannt namens herr herrn frau dr ",
         " ist sind war waren hat haben hatte hatten wird werden wurde wurden kann können soll "
         "sollen muss "
         "müssen will wollen sagte sagt gibt gab darf ",
         " Nachdem Trotz Laut Gemäß Angesichts Immer "
         "Gleichzeitig Dies Bevor Anlässlich Rund Stattdessen Zusätzlich Neben Jeden Solche "
         "Obgleich "
         "Währenddessen Andererseits Einerseits Manchmal Wahrscheinlich Zwar Ursprünglich Infolge "
         "Mittlerweile Inzwischen Zunächst Zuletzt Schließlich Leider Oft Sogar Unterdessen "
         "Dadurch Weder "
         "Entweder Sofern Indem Aufgrund Anhand Anstatt Statt Innerhalb Außerhalb Entlang Hinter "
         "Einst "
         "Bislang Bisher Anschließend Ebenso Fast Knapp Früher Tatsächlich Plötzlich Eigentlich "
         "Angeblich ",
         " Nicht Ja Nein Alle Waren Wegen Morgen Bitte Nichts "
         "Soll Falls Weil Man Sein Seine Wohl Selbst Ist Sind War Hat Haben Hatte Kann Wird Werden "
         "Wurde "
         "Zwei Drei Vier Fünf Sechs Sieben Neun Zehn Mehr Und Oder Den Andere Mein Meine Jetzt "
         "Etwa Niemand Keine Kein Alles Wie Wo Sonst ",
         " Sie Ihr Ihre Ihrer Ihren Ihrem Ihres Ihnen Du Dich Dir Dein Deine Deiner Deinen Deinem ",
         " lich liche licher liches lichen ig ige iger iges igen isch ische ischer isches ischen "
         "weise "},
    [DGM_LANG_FR] = {" le la les un une des l' du ",
                     " le la les un une des de du d' l' et ou mais donc ni car à au aux en dans "
                     "par pour sur sous avec "
                     "sans chez vers entre contre selon depuis pendant après avant dès comme que "
                     "qu' qui dont où ce cet "
                     "cette ces son sa ses leur leurs mon ma mes notre nos votre vos il elle ils "
                     "elles on nous vous je "
                     "tu se s' ne n' pas est sont était a ont avait été être avoir plus très si "
                     "quand lorsque aussi "
                     "même tout tous toute toutes deux trois dit nommé appelé intitulé ",
                     " est sont était étaient a ont avait avaient sera seront peut peuvent doit "
                     "doivent va vont fait ",
                     " Face Suite Grâce Afin Lors Outre Parmi Quant "
                     "Plus Environ Près Quelque Quelques Actuellement Récemment Désormais ",
                     " Deux Trois Quatre Cinq Six Sept Huit Neuf Dix En À Au Aux De D' Du Des Et "
                     "Ou Or Ni Sur Sous Par Non Oui Que Qu' Qui Quoi Où Est Sont Peut Rien "
                     "Personne Moi Notre Nos Votre Vos Mon Ma Mes Tout Tous Toute Toutes Là Ici S' "
                     "N' Ne Pas Même ",
                     " ", " ment ions eurs "},
    [DGM_LANG_ES] = {" el la los las un una unos unas lo del al ",
                     " el la los las lo un una unos unas de del a al y e o u pero sino ni en con "
                     "sin por para sobre "
                     "entre hasta desde hacia según tras durante contra ante bajo como que quien "
                     "cuyo cuya donde cuando "
                     "si su sus mi mis tu tus nuestro nuestra este esta estos estas ese esa esos "
                     "esas se le les me te "
                     "nos no es son era fue ha han hay está están ser más menos muy también ya "
                     "todo todos toda todas "
                     "dos tres dijo llamado llamada titulado ",
                     " es son era eran fue fueron ha han había hay está están será serán puede "
                     "pueden debe deben va van "
                     "dijo ",
                     " Tras Mediante Gracias Frente Cerca Casi "
                     "Actualmente Recientemente Varios Varias Ningún Ninguna Cualquier Apenas ",
                     " Dos Tres Cuatro Cinco Seis Siete Ocho Nueve Diez De Del A Al Y E O U Ni Que "
                     "Qué Es Son Era Fue Ha Han Hay No Sí Mi Mis Tu Tus Nuestro Nuestra Lo Me "
                     "Te Nos Todo Todos Toda Todas Yo Tú Nada Nunca ",
                     " Usted Ustedes ", " mente ciones ores "},
    [DGM_LANG_IT] =
        {" il lo la i gli le l' un uno una un' del della dei degli delle al alla nel nella ",
         " il lo la i gli le l' un uno una un' di del della dei degli delle dell' d' da dal dalla "
         "dai dalle "
         "a al alla ai agli alle all' in nel nella nei nelle nell' con su sul sulla sui per tra "
         "fra e ed o "
         "ma né che chi cui come dove quando se non si ci mi ti vi suo sua suoi sue loro mio mia "
         "nostro "
         "nostra questo questa questi queste quel quello quella è sono era ha hanno aveva essere "
         "più meno "
         "molto anche già tutto tutti tutta tutte due tre disse chiamato intitolato ",
         " è sono era erano ha hanno aveva avevano sarà saranno può possono deve devono va vanno "
         "fu ",
         " Grazie Circa Quasi Oltre Nonostante Attualmente "
         "Recentemente Diversi Diverse Nessun Qualsiasi Appena Presso Verso Contro Sotto Sopra "
         "Senza ",
         " Due Tre Quattro Cinque Sei Sette Otto Nove Dieci Di Del Della Dei Degli Delle Dell' D' "
         "A Al Alla Ai "
         "Alle All' E Ed O Né Che Chi È Sono Era Fu Ha "
         "Hanno Non No Sì Mio Mia Tuo Nostro Nostra Tutto Tutti Tutta Tutte Io Tu Voi Niente Nulla "
         "Mai Mi Ti "
         "Vi ",
         " Lei Suo Sua Suoi Sue ", " mente zioni tori "},
};

// ---- words ---------------------------------------------------------------------------------

typedef enum shape { SHAPE_LOWER, SHAPE_UPPER, SHAPE_OTHER, SHAPE_NUMBER } shape;

typedef struct word {
    dgm_text all; // between white space
    dgm_text
        bare; // its letters, as far as an apostrophe, which counts in elided words: "L'" of "L'eau"
    shape shape;          // of its first letter or digit
    uint32_t first, last; // characters
    uint32_t stem;        // of its first letters in lower case; 0 for short and for function words
    bool function;
} word;

typedef struct reader {
    dgm_language lang;
    const vocabulary *words;
    word list[WORDS_MAX];
    int count;
} reader;

static bool is_apostrophe(uint32_t code)
{
    return code == '\'' || code == 0x2019;
}

static bool is_quote(uint32_t code)
{
    return code == '"' || code == 0xAB || code == 0xBB || (code >= 0x201C && code <= 0x201F);
}

static bool is_inside(uint32_t code)
{
    return dgm_char_class(code) & (DGM_CHAR_LETTER | DGM_CHAR_MARK | DGM_CHAR_NUMBER);
}

static shape shape_of(uint32_t code)
{
    const unsigned class = dgm_char_class(code);
    if (class & DGM_CHAR_NUMBER) return SHAPE_NUMBER;
    return class & DGM_CHAR_UPPER   ? SHAPE_UPPER
           : class & DGM_CHAR_LOWER ? SHAPE_LOWER
                                    : SHAPE_OTHER;
}

// The letters as lists have them: a straight apostrophe, the first letter as it is or in lower case, of a
// word in capitals the others in lower case.
static dgm_text listed(dgm_text bare, bool lower_first, char out[WORD_BYTES])
{
    size_t size = 0, n, uppers = 0, letters = 0;
    if (bare.size >= WORD_BYTES - 4) return (dgm_text){out, 0};
    for (size_t pos = 0; pos < bare.size; pos += n, letters++) {
        uint32_t code;
        n = dgm_utf8_next(bare.data + pos, bare.size - pos, &code);
        uppers += (dgm_char_class(code) & DGM_CHAR_UPPER) != 0;
    }
    const bool capitals = uppers == letters && letters > 2; // "IT", "US" are names
    for (size_t pos = 0; pos < bare.size; pos += n) {
        uint32_t code;
        n = dgm_utf8_next(bare.data + pos, bare.size - pos, &code);
        if (is_apostrophe(code)) code = '\'';
        if (pos ? capitals : lower_first) code = dgm_char_lower(code);
        if (size + 4 >= WORD_BYTES) return (dgm_text){out, 0};
        size += dgm_utf8_put(code, out + size);
    }
    return (dgm_text){out, size};
}

static bool is_listed(const char *list, const word *w)
{
    char text[WORD_BYTES];
    return dgm_in_words(list, listed(w->bare, true, text));
}

// A number that words with the same beginning share: "arrest" of "arrested" and "Arrests".
static uint32_t stem_of(dgm_text bare)
{
    enum { LETTERS = 5, SHORTEST = 4 };
    uint32_t hash = 2166136261u;
    size_t n, letters = 0;
    for (size_t pos = 0; pos < bare.size && letters < LETTERS; pos += n, letters++) {
        uint32_t code;
        n = dgm_utf8_next(bare.data + pos, bare.size - pos, &code);
        hash = (hash ^ dgm_char_lower(code)) * 16777619u;
    }
    return letters < SHORTEST ? 0 : hash | 1;
}

static word word_of(const reader *r, dgm_text all)
{
    word w = {.all = all, .bare = {all.data, 0}, .shape = SHAPE_OTHER};
    size_t n;
    for (size_t pos = 0; pos < all.size; pos += n) {
        uint32_t code;
        n = dgm_utf8_next(all.data + pos, all.size - pos, &code);
        if (pos == 0) w.first = code;
        w.last = code;
    }
    for (size_t pos = 0; pos < all.size; pos += n) {
        uint32_t code;
        n = dgm_utf8_next(all.data + pos, all.size - pos, &code);
        const bool elided = is_apostrophe(code) && w.bare.size && w.bare.size <= 3;
        if (w.bare.size == 0 && is_inside(code)) {
            w.bare.data = all.data + pos;
            w.shape = shape_of(code);
        }
        if (w.bare.size && !is_inside(code) && code != '-') {
            if (elided && r->lang != DGM_LANG_EN && r->lang != DGM_LANG_DE && pos + n < all.size)
                w.bare.size += n;
            break;
        }
        if (w.bare.size || is_inside(code)) w.bare.size += n;
    }
    w.function = is_listed(r->words->function, &w);
    w.stem = w.function ? 0 : stem_of(w.bare);
    return w;
}

static void read_words(reader *r, dgm_text text)
{
    size_t pos = 0, n = 0;
    while (pos < text.size && r->count < WORDS_MAX) {
        uint32_t code;
        const size_t begin = pos;
        for (; pos < text.size; pos += n) {
            n = dgm_utf8_next(text.data + pos, text.size - pos, &code);
            if (dgm_char_is_space(code)) break;
        }
        if (pos > begin)
            r->list[r->count++] = word_of(r, (dgm_text){text.data + begin, pos - begin});
        if (pos < text.size) pos += n;
    }
}

static bool has_two_capitals(const word *w)
{
    uint32_t code = 0;
    if (w->shape != SHAPE_UPPER) return false;
    const size_t n = dgm_utf8_next(w->bare.data, w->bare.size, &code);
    if (n == w->bare.size) return false;
    dgm_utf8_next(w->bare.data + n, w->bare.size - n, &code);
    return dgm_char_class(code) & DGM_CHAR_UPPER;
}

static bool has_ending(const char *list, dgm_text bare)
{
    for (const char *at = list; at[1];) {
        const size_t size = strcspn(at + 1, " ");
        if (bare.size > size + 2 && memcmp(bare.data + bare.size - size, at + 1, size) == 0)
            return true;
        at += size + 1;
    }
    return false;
}

typedef enum kind { KIND_ARTICLE, KIND_OPENER, KIND_WEAK, KIND_CAPITALS, KIND_NAME, KINDS } kind;

static kind kind_of(const reader *r, const word *w)
{
    char text[WORD_BYTES];
    const dgm_text as = listed(w->bare, false, text);
    if (has_two_capitals(w)) return KIND_CAPITALS;
    if (dgm_in_words(r->words->weak, as)) return KIND_WEAK;
    if (is_listed(r->words->articles, w)) return KIND_ARTICLE;
    if (dgm_in_words(r->words->more, as)) return KIND_OPENER;
    return dgm_opens_sentence(r->lang, as, true) ? KIND_OPENER : KIND_NAME;
}

// ---- signs ---------------------------------------------------------------------------------

// What is known of the words before a place; grows from word to word.
typedef struct headline {
    bool article, verb, colon, comma, opener, lower,
        plain; // plain: a lower-case word of some length
    int quotes, brackets;
} headline;

static void add_word(const reader *r, int i, headline *h)
{
    const word *w = &r->list[i];
    if (i == 0) {
        const kind k = kind_of(r, w);
        h->opener = w->shape == SHAPE_UPPER && k <= KIND_WEAK;
        h->lower = w->shape == SHAPE_LOWER;
    }
    h->article |= is_listed(r->words->articles, w);
    h->verb |= is_listed(r->words->verbs, w);
    h->colon |= w->last == ':';
    h->comma |= w->last == ',';
    h->plain |= w->shape == SHAPE_LOWER && w->bare.size > 3 && !w->function;
    size_t n;
    for (size_t pos = 0; pos < w->all.size; pos += n) {
        uint32_t code;
        n = dgm_utf8_next(w->all.data + pos, w->all.size - pos, &code);
        h->quotes += is_quote(code);
        h->brackets += (code == '(') - (code == ')');
    }
}

// "Class A", "hepatitis A and B": the name of a thing.
static bool is_letter_of_name(const word *before, const word *w, const word *next)
{
    return w->bare.size == 1 && (before->shape == SHAPE_UPPER || next->function);
}

// May a headline end in front of word i? Not behind a mark or a word that goes on, nor in front of a quote or
// bracket, which stand inside sentences far more often, nor inside brackets.
static bool may_end(const reader *r, const headline *h, int i)
{
    const word *before = &r->list[i - 1], *w = &r->list[i];
    const uint32_t last = before->last;
    const bool goes_on =
        before->function || (!is_inside(last) && !is_quote(last) && !is_apostrophe(last) &&
                             last != ')' && last != '%' && last != 0x20AC);
    const bool whole = is_inside(w->first) && (is_inside(w->last) || w->last == ','); // not "As..."
    return !goes_on && whole && h->brackets <= 0 && w->shape == SHAPE_UPPER &&
           !is_letter_of_name(before, w, w + 1) && !dgm_in_words(r->words->capital, w->bare);
}

static void add_sign(dgm_headline_place *p, int sign, bool present)
{
    if (present && p->count < DGM_HEADLINE_SIGNS_MAX) p->signs[p->count++] = (unsigned char)sign;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int shape_behind(const reader *r, int i)
{
    return i < r->count ? (int)least(r->list[i].shape, SHAPE_OTHER) : SHAPE_OTHER;
}

static void add_repeats(const reader *r, int i, dgm_headline_place *p)
{
    const word *w = &r->list[i];
    bool any = false, pair = false;
    for (int j = 0; j < i; j++) {
        if (!dgm_text_equal(r->list[j].bare, w->bare)) continue;
        any = true;
        pair |= j + 1 < i && i + 1 < r->count &&
                dgm_text_equal(r->list[j + 1].bare, r->list[i + 1].bare);
    }
    add_sign(p, SIGN_REPEATS_FIRST, dgm_text_equal(r->list[0].bare, w->bare));
    add_sign(p, SIGN_REPEATS, any && w->bare.size > 2);
    add_sign(p, SIGN_REPEATS_TWO, pair);
    add_sign(p, SIGN_REPEATS_IN_NAME,
             any && r->list[i - 1].shape == SHAPE_UPPER); // "Nico | Rosberg"
}

// How many words so far come again behind the place: a report takes up the words of its headline.
static int shared_words(const reader *r, int i)
{
    int found = 0;
    for (int j = 0; j < i; j++) {
        bool again = false;
        for (int k = i; k < r->count && !again; k++) again = r->list[j].stem == r->list[k].stem;
        found += again && r->list[j].stem != 0;
    }
    return found;
}

// All signs at word i, in front of which a headline may end.
static void find_signs(const reader *r, int i, const headline *h, dgm_headline_place *p)
{
    const word *w = &r->list[i], *before = &r->list[i - 1];
    const kind k = kind_of(r, w);
    const int next = shape_behind(r, i + 1), second = shape_behind(r, i + 2);
    const int came = (int)before->shape;
    p->count = 0;
    add_sign(p, SIGN_ALWAYS, true);
    add_sign(p, SIGN_WORD + ((int)k * 3 + next) * 3 + second, true);
    add_sign(p, SIGN_BEFORE + (int)k * 4 + came, true);
    add_sign(p, SIGN_LETTER_BEFORE, before->bare.size == 1);
    add_sign(p, SIGN_QUOTE_BEFORE, is_quote(before->last) || is_apostrophe(before->last));
    add_sign(p, SIGN_BRACKET_BEFORE, before->last == ')');
    add_sign(p, SIGN_COMMA, w->last == ',');
    add_sign(p, SIGN_ENDING, k == KIND_NAME && has_ending(r->words->endings, w->bare));
    const bool verb = i + 1 < r->count && is_listed(r->words->verbs, &r->list[i + 1]);
    add_sign(p, k >= KIND_CAPITALS ? SIGN_VERB_BEHIND_NAME : SIGN_VERB_BEHIND, verb);
    add_sign(p, SIGN_LENGTH + least(i, LONGEST_HEADLINE - 1) / 4, true);
    add_sign(p, SIGN_REST + least(r->count - i, REST_READ - 1) / 4 - 1, true);
    add_sign(p, SIGN_HAS_ARTICLE, h->article);
    add_sign(p, SIGN_HAS_VERB, h->verb);
    add_sign(p, SIGN_HAS_COLON, h->colon);
    add_sign(p, SIGN_HAS_COMMA, h->comma);
    add_sign(p, SIGN_OPENED, h->opener);
    add_sign(p, SIGN_LOWER, h->lower);
    add_sign(p, SIGN_TITLE, !h->plain);
    add_sign(p, SIGN_IN_QUOTES, h->quotes % 2 != 0);
    add_repeats(r, i, p);
    add_sign(p, SIGN_SHARES + least(shared_words(r, i), 3), true);
    p->points = 0;
    for (int s = 0; s < p->count; s++)
        p->points += sign_points[r->lang == DGM_LANG_DE ? NOUNS_HAVE_CAPITALS : NAMES_HAVE_CAPITALS]
                                [p->signs[s]];
}

// "Wählen Sie im Feld Von Datum einen Tag.": no headline, but labels that begin like sentences.
static bool addresses_reader(const reader *r)
{
    return r->lang == DGM_LANG_DE && r->count > 1 &&
           dgm_text_equal(r->list[1].bare, dgm_text_of("Sie"));
}

int dgm_headline_places(dgm_text text, dgm_language lang, dgm_headline_place places[])
{
    if (lang == DGM_LANG_OTHER || (size_t)lang >= sizeof languages / sizeof *languages) return 0;
    reader r = {.lang = lang, .words = &languages[lang]};
    headline h = {0};
    int found = 0;
    read_words(&r, text);
    if (addresses_reader(&r)) return 0;
    for (int i = 0; i <= LONGEST_HEADLINE && i + SHORTEST_REST <= r.count; i++) {
        if (i > 0 && may_end(&r, &h, i)) {
            places[found].at = (size_t)(r.list[i].all.data - text.data);
            find_signs(&r, i, &h, &places[found++]);
        }
        add_word(&r, i, &h);
    }
    return found;
}

size_t dgm_headline_end(dgm_text text, dgm_language lang)
{
    dgm_headline_place places[DGM_HEADLINE_PLACES_MAX];
    const int count = dgm_headline_places(text, lang, places);
    size_t best = 0;
    for (int i = 0, most = 0; i < count; i++) {
        if (places[i].points <= most) continue;
        most = places[i].points;
        best = places[i].at;
    }
    return best;
}
