// SPDX-License-Identifier: MIT
// Abbreviations by language for sacremoses.h: words behind which a dot does not end a sentence. Titles,
// units, references, names of months and legal forms in common use. Whoever wants the tokens of sacremoses has to know
// what it takes for an abbreviation, so every word here was tried: its dot stays there, too (NOTICE says more).
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
    "dr prof mgr inż doc hab gen płk kpt ks bp św im red dyr adw kard hr Dr Prof Mgr Inż Gen Św Red Al Art "
    "np tzw tzn tj ds pt jw ww zob por cyt ps nb cd cdn dn Np Tzw Pt "
    "godz ul al pl woj pow gm tel ryc rys art poz ub zm ur dł st egz kl kr kat "
    "#str #tab #ust #pkt #par #nr #Nr #r #s "
    "ang niem fr pol łac hiszp wł gr czes austr amer bryt "
    "hist geogr geol chem ekon farm gosp górn katol demokr akad arch ew zał zast";

static const char czech[] =
    "Ing Mgr Bc MgA BcA JUDr MUDr MVDr PhDr RNDr PaedDr PharmDr ThDr ThLic Dr CSc DrSc DiS doc prof "
    "např atd apod atp tj tzn tzv resp popř mj aj zejm zvl cca srov srv pozn "
    "vyd odd obr tab roč sv příl hl ed red přel orig rkp ms fol mld tis sl násl st stol okr hod "
    "angl něm fr franc lat rus čes slov pol it špan port jap maď řec arab čín amer "
    "fam hist geogr geol biol bot chem mat fyz ekon práv lék voj sport hud lit teol univ šk "
    "aut pseud anon zkr zast zal samost spec kr kol gen br sg pl adj adv";

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
