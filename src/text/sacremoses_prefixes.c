// SPDX-License-Identifier: MIT
// Abbreviations by language for sacremoses.h: words behind which a dot does not end a sentence. Titles,
// units, references, names of months and legal forms in common use; those of ten languages, compared
// with what sacremoses does on text of them.
//
// A list is words between blanks, without their dot; "#" before one: only before a number ("No. 5").
// Words with a dot inside ("e.g", "z.B") need no entry, callers know them by their shape. Single
// letters stand in a text of their own.
#include <string.h>

#include "text/sacremoses_private.h"
#include "text/unicode.h"

static const char english[] =
    "Adj Adm Adv Apr Asst Aug Bart Bldg Brig Bros Capt Cmdr Col Comdr Con Corp Cpl DR Dec "
    "Dr Drs Ens Feb Gen Gov Hon Hosp Hr Insp Jan Jul Jun Lt MM MR MRS MS Maj Mar Messrs "
    "Mlle Mme Mr Mrs Ms Msgr Nos Nov Nr Oct Op Ord Pfc Ph Prof Pvt Rep Reps Res Rev Rs Rt "
    "Sen Sens Sep Sfc Sgt Sr St Supt Surg rev vs #Art #No #pp";

static const char german[] =
    "Adj Adm Adv Art Asst BSE Bart Bldg Brig Bros Buchst Ca Capt Chr Cmdr Co Col Comdr Con "
    "Corp Cpl DR Dr Ens Gen Gov Hon Hosp II III IV IX Insp Lt Ltd MM MR MRS MS Maj Messrs "
    "Mio Mlle Mme Mr Mrd Mrs Ms Msgr MwSt No Nos Nr Op Ord Pfc Ph Prof Pvt Rep Reps Res Rev "
    "Rt Sen Sens Sfc Sgt Sr St Std Supt Surg VI VII VIII XI XII XIII XIV XIX XV XVI XVII "
    "XVIII XX bzgl bzw ca dgl etc evtl ff ggf iv jun pp sen sog spp usw vgl vs";

static const char french[] =
    "MM al apr art auj av boul ca cf chap dir env etc ex fasc fig fr fém hab ibid id inf "
    "lib masc ms pl pp sec sect sing sq sqq suiv sup suppl tél vol vs éd";

static const char spanish[] =
    "Apdo Av Bco Da Dep Dn Dr Dra Excmo Fil Gral Let Lic Prof Pts Rte Sr Sra Srta Sta Sto "
    "Tel Ud Uds Vd Vds adj afmo apdo av cap cm doc ej etc gr kg km mm núm ptas pág págs vid "
    "vol";

static const char italian[] =
    "Adj Adm Adv Amn Arch Asst Avv Bart Bcc Bldg Brig Bros Capt Cc Cmdr Co Col Comdr Con "
    "Corp Cpl DR Dott Dr Drs Egr Ens Gen Geom Gov Hon Hosp Hr Id Ing Insp Lt MM MR MRS MS "
    "Maj Messrs Mlle Mme Mo Mons Mr Mrs Ms Msgr Nos Nr Op Ord Pfc Ph Prof Pvt RP RSVP Rag "
    "Rep Reps Res Rev Rif Rt Sen Sens Sfc Sgt Sig Sigg Soc Spett Sr St Supt Surg acc all "
    "banc corr dott ecc es fatt gg int lett ogg on post racc rev ric seg sgg ss tel vs #Art "
    "#No #pp";

static const char dutch[] =
    "Fa Lt Mej Mme Vz bacc bc bgen bijv bv dhr dr drs ds eint fa fam gen genm ing ir jhr "
    "jkvr jr kand kol lgen lkol maj mevr mr nrs plv prof ritm tint #Nr #nr";

static const char portuguese[] =
    "Adj Adm Adv Ca Capt Cmdr Col Comdr Con Corp Cpl DR DRA Dr Dra Dras Drs Eng Enga Engas "
    "Engos Ex Exmo Exo Fig Gen Hosp Insp Lda MM MR MRS MS Maj Mrs Ms Msgr Nos Nr Op Ord Pfc "
    "Ph Prof Pvt Rep Reps Res Rev Rt Sen Sens Sfc Sgt Sr Sra Sras Srs Sto Supt Surg adj adm "
    "adv art cit col con corp cpl dr dra dras drs eng enga engas engos ex exmo exo fig op "
    "prof rev sr sra sras srs sto vs #Art #No #p #pp";

static const char polish[] =
    "Al Art Cd Dr Gen Hr Mgr Nb Np Prof Ps Pt Red Ryc Rys Tzw adw afr akad al am amer ang "
    "arch art artyst astr austr bałt bdb bm br bryg bryt bł cd cdn centr ces chem chir chiń "
    "cyg cyt cyw czes czw czyt daw dcn dekl demokr det diec dn doc dol dop dost dosł dot dr "
    "ds dst duszp dypl dł egz ekol ekon elektr em ew fab farm fot fr gastr gat gen geogr "
    "geol gimn gm godz gosp gr gram górn głęb hab hist hiszp hot hr id im in inż iron jn jw "
    "kard kat katol kk kl kol kpc kpt kr krak kryt ks kult laic mgr nb niem np pl pn pol "
    "por pow poz prof ps pt pw płk red ryc rys st tel tj tzn tzw ub ul ur woj zal zast zaw "
    "zm zn zob ćw ćwicz łac Św św #Nr #l #nr #par #pkt #r #s #str #tab #ust";

static const char czech[] =
    "Bc BcA CSc DiS Dr DrSc Ing JUDr MUDr MVDr MgA Mgr PaedDr PhDr PhMr PharmDr RNDr ThDr "
    "ThLic abl absol abt ad adj adv aj ak alch amer anat angl anon ap apod arab arch archit "
    "astr atd atp aut bd biogr biol bot br cca chem cit cizojaz col doc dol dop ed ekon "
    "facs fam fasc fol fot fr franc gen geogr geol gram hist hl hrsg hud ibid ie il ind inf "
    "iron jap jhdt jv kl koed kol korej kr krit lat lit lék mat maď mj mld mp ms např "
    "nepubl než no nr násl něm ob obr odd odp okr opr orig phil pl pokrač pol port pozn "
    "prof práv pseud pt přel přeprac příl red repr resp revid rkp roz rozš roč rus samost "
    "sect sest seš sg sign sl slov spec sport srv st stol sv tab teol tis tj tzn tzv tř "
    "univ uspoř voj vol vs vyd vyobr zal zast zejm zkr zprac zvl zř čes čj čín řec šk špan";

static const char russian[] =
    "вв гг гл гос доп др зам исп кв кг км коп макс мин млн млрд мм нач обл ок пер пл пос пр "
    "просп проф ред руб сб св см соч ср ст стр тел тех тт тыс уд ул уч физ чел шт экз";

static const struct {
    char code[4], code3[4];
    const char *prefixes, *initials; // initials: further letters that stand for words
    bool capitals, numbers;          // A to Z; numbers of one or two digits (German ordinals)
} languages[] = {
    {"en", "eng", english, "v", true, false},
    {"de", "deu", german, "abcdefghijklmnopqrstuvwxyz", true, true},
    {"fr", "fra", french, "bcdefghijklmnopqrstuvwxyz", true, false},
    {"es", "spa", spanish, "cps", true, false},
    {"it", "ita", italian, "v", true, false},
    {"nl", "nld", dutch, "", true, false},
    {"pt", "por", portuguese, "abcdefghijklmnoqrstuvwxyz", true, false},
    {"pl", "pol", polish, "knopĆŚŹŻ", true, false},
    {"cs", "ces", czech, "fmnprsčř", false, false},
    {"ru", "rus", russian, "АБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯвгдеиклмнопрстхчэ", true, false},
    {"zh", "zho", "Nr #No", "", true, false},
    {"ja", "jpn", english, "", true, false},
    {"ko", "kor", english, "", true, false},
    {"ga", "gle", english, "", true, false},
};

// The rules of a language; those of English where there is no list.
void dgm_moses_rules_init(dgm_moses_rules *rules, dgm_text language, unsigned options)
{
    char code[4] = {0};
    size_t n = 0, at = 0;
    while (n < 3 && n < language.size && language.data[n] != '-' && language.data[n] != '_') {
        const char c = language.data[n];
        code[n++] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
    if (n < language.size && language.data[n] != '-' && language.data[n] != '_') code[0] = 0;
    const size_t count = sizeof languages / sizeof *languages;
    while (at < count && strcmp(languages[at].code, code) != 0 && strcmp(languages[at].code3, code) != 0)
        at++;
    const bool known = at < count;
    if (!known) at = 0;
    *rules = (dgm_moses_rules){.prefixes = languages[at].prefixes,
                               .initials = languages[at].initials,
                               .capitals = languages[at].capitals,
                               .numbers = languages[at].numbers,
                               .options = options};
    if (known) memcpy(rules->code, languages[at].code, sizeof rules->code);
    rules->han = strcmp(rules->code, "zh") == 0 || strcmp(rules->code, "ja") == 0;
    rules->kana = strcmp(rules->code, "ja") == 0;
    rules->hangul = strcmp(rules->code, "ko") == 0;
}

static bool is_in(const char *list, dgm_text word)
{
    for (const char *at = list; at[0];) {
        const char *end = strchr(at, ' ');
        const size_t size = end ? (size_t)(end - at) : strlen(at);
        if (size == word.size && memcmp(at, word.data, size) == 0) return true;
        at += size + (end != NULL);
    }
    return false;
}

dgm_moses_prefix dgm_moses_find_prefix(const dgm_moses_rules *rules, dgm_text word)
{
    enum { LONGEST = 30 };
    char numeric[LONGEST + 1] = "#";
    if (word.size == 0 || word.size >= LONGEST) return DGM_MOSES_WORD;
    memcpy(numeric + 1, word.data, word.size);
    if (is_in(rules->prefixes, (dgm_text){numeric, word.size + 1})) return DGM_MOSES_BEFORE_NUMBER;
    uint32_t code;
    if (dgm_utf8_next(word.data, word.size, &code) == word.size) {
        const bool capital = code >= 'A' && code <= 'Z';
        if (capital ? rules->capitals : strstr(rules->initials, numeric + 1) != NULL)
            return DGM_MOSES_ABBREVIATION;
    }
    bool number = rules->numbers && word.size <= 2 && word.data[0] != '0';
    for (size_t i = 0; i < word.size; i++) number &= word.data[i] >= '0' && word.data[i] <= '9';
    return number || is_in(rules->prefixes, word) ? DGM_MOSES_ABBREVIATION : DGM_MOSES_WORD;
}
