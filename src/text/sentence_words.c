// SPDX-License-Identifier: MIT
// Word lists of the sentence splitter; see sentence_words.h. Each is one string of words between
// spaces, in order of no importance: they are asked only at a dot, and are short.
//
// Words are compared as they are written. A word all in capitals is compared as if it had one.
#include "text/sentence_words.h"

#include <string.h>

typedef struct knowledge {
    const char *titles;    // DGM_DOT_TITLE
    const char *may_end;   // DGM_DOT_MAY_END
    const char *lists;     // DGM_DOT_LIST_ENDS
    const char *numbers;   // DGM_DOT_NUMBER
    const char *openers;   // words that begin sentences
    const char *particles; // of these, parts of names
} knowledge;

// Abbreviations behind a number only: "10 in. wide", "5 min. zu Fuß"; without one they are words.
static const char units[] =
    " in ft lb lbs oz yd mi hr hrs min sec s h tbsp tsp c mo yr ch r pl Std Min Sek ";

static const knowledge words[] = {
    [DGM_LANG_OTHER] = {" Dr Prof Mr Mrs Ms ", " St vs Jr Sr Inc Corp Ltd Co al ", " etc ",
                        " No no Nr vol Vol fig Fig p pp P art Art ", " ", " "},
    [DGM_LANG_EN] =
        {" Dr Prof Mr Mrs Ms Mx Messrs Mmes Rev Hon Gen Col Maj Capt Cpt Lt Sgt Cpl Pvt Adm Cmdr "
         "Sen "
         "Sens Rep Reps Gov Pres Supt Det Insp Mt Ft Atty Fr Br cf Cf viz Viz esp approx Approx "
         "Pls ibid cit Mssrs hon Amb Brig Ald Pfc ",
         " St Ave Blvd Rd Inc Corp Co Ltd Bros Assn Dept dept Univ Jr Sr Jan Feb Mar Apr Jun Jul "
         "Aug Sep Sept Oct Nov Dec al vs v est ca govt Govt Assoc Bldg Hwy incl excl ext Ext Tues "
         "Thurs Wed Fri Thur ",
         " etc ",
         " No Nos no nos Art art Sec sec Ch ch Eq eq Nr pg p pp vol Vol Vols fig Fig Figs figs Apt "
         "apt "
         "Mon Sat Sun Max max Min Tel tel Ctrl ref Ref ",
         " The A An He She It We They You I In But And Or So Yet Nor This That There These Those "
         "His Her "
         "Its Their Our My Your If As At For When While Since Because Although Though However "
         "Moreover Then Thus Hence Also On Of To By With From Into After Before During Until "
         "Between Among Under Over About Above Against Without Within Both Each Every Everyone "
         "Everybody Everything Nobody Nothing No Not None Some Someone Something Many Most Much "
         "More Few Several All Any Anyone Other Others Another Such What Who Whom Whose Which "
         "Where Why How Here Now Today Yesterday Tomorrow Later Soon Once Only Just Even Still "
         "Is Are Was Were Do Does Did Has Have Had Can Could Will Would Should May Must Let "
         "Please Yes Perhaps Maybe Meanwhile Instead Despite According Fortunately Unfortunately "
         "Finally Indeed Therefore "
         "Otherwise Usually Often Sometimes Never Again Perhaps ",
         " A "},
    [DGM_LANG_DE] =
        {" Dr Prof Hr Hrn Fr Frl Dipl Ing Mag Univ Mr Mrs Ms St Bzgl bzgl Ggf ggf Evtl evtl Vgl "
         "vgl Gem "
         "gem Lt lt Inkl inkl Exkl exkl Zzgl zzgl bzw Bzw ca Ca sog allg bes entspr jew mind med "
         "phil "
         "jur rer nat mult Abb Abs Abschn Art Bd Kap Nr Tab Gl Anm Ziff Lit Lfd lfd ehem Ehem Fa "
         "Hrsg "
         "einschl Einschl insb Insb mtl röm griech engl dt frz ital span städt zzt Zi geb Geb gest "
         "max Max min Tel tel Ges Best ",
         " Str str Mio Mrd Tsd Jh Jhd Min Std Sek Aufl Ausg Red Reg Bez Jan Feb Mrz Apr Jun Jul "
         "Aug Sept "
         "Sep Okt Nov Dez al vs Co Inc Corp Jr Sr Pol Vers Abt MwSt ff ebd Kfz Anh Bhf Pl ",
         " usw etc usf ", " S Mo Di Mi Do Sa So No no Nos p pp vol Vol fig Fig art ",
         " Der Die Das Den Dem Des Ein Eine Einer Einem Einen Er Sie Es Wir Ich Ihr Du Man Und "
         "Oder Aber "
         "Denn Doch Sondern Auch Nur Noch Schon Nicht Kein Keine Nie Niemand Nichts Jemand Alle "
         "Alles Allerdings Beide Viele Einige Manche Mehr Mehrere Mehreren Dieser Diese Dieses "
         "Diesem Diesen "
         "Jener Jene Jenes Jeder Jede Jedes Sein Seine Seinem Seinen Ihre Ihrem Ihren Unser Unsere "
         "Mein Meine Dein Deine In Im Am An Auf Aus Bei Beim Bis Durch Für Gegen Mit Nach Ohne "
         "Seit "
         "Über Um Unter Vom Von Vor Während Wegen Zu Zum Zur Zwischen Ab Als Wenn Wer Was Wie Wo "
         "Warum Wieso Weshalb Wann Welche Welcher Weil Da Dann Danach Damals Dabei Dagegen Daher "
         "Damit Daraufhin Darum Deshalb Dort Hier Heute Gestern Morgen Jetzt Nun So Später Zuvor "
         "Zudem "
         "Außerdem Dennoch Trotzdem Jedoch Insgesamt Ist Sind War Waren Hat Haben Hatte Kann Soll "
         "Wird Werden "
         "Wurde Ob Obwohl Falls Sobald Sonst Andere Wohl Vielleicht Bitte Ja Nein Wieder Zurzeit "
         "Derzeit Bereits Erst Etwa Selbst Sowohl Andernfalls ",
         " Von Vom Zu Zum Zur Der Den "},
    [DGM_LANG_FR] =
        {" M MM Mr Me Mgr Dr Pr Mme Mmes Mlle Mlles prof Prof gén Gén col Col cap Cap Ste Cf cf "
         "Réf réf dir Dir Vve env Env suiv Trad trad Préf préf éd Éd adj sgt Sgt lt Lt bât Bât dép "
         "Dép ing Ing fig Fig tabl Tabl éq Éq chap Chap art Art esc Ph Th Ch Chr St p ",
         " av apr ap bd Bd boul ex hab janv févr avr juil juill sept oct nov déc al vs Cie "
         "tél Tél déj lun mar mer jeu ven sam dim max Max Qu Rép Jr Sr Inc Corp Co n ",
         " etc ", " no nos No Nos pp vol Vol ",
         " Il Elle Ils Elles On Nous Vous Je J' Tu Le La Les L' Un Une Des De D' Du Ce Cet Cette "
         "Ces C' Cela "
         "Ceci Ça Son Sa Ses Leur Leurs Mon Ma Mes Notre Nos Votre Vos Mais Et Ou Or Donc Car Ni "
         "Dans En Au Aux À Pour Par Sur Sous Avec Sans Si S' Selon Quand Lorsque Lorsqu' Comme "
         "Après "
         "Avant Depuis Pendant Dès Puis Ensuite Enfin Ainsi Alors Aussi Aujourd'hui Hier Demain "
         "Ici "
         "Là Tout Tous Toute Toutes Chaque Certains Certaines Plusieurs Beaucoup Pas Ne N' Non Oui "
         "Que Qu' Qui Quoi Quel Quelle Quels Où Pourquoi Comment Est Sont Était Peut Personne Rien "
         "Chez Entre Vers Contre Malgré Toutefois Cependant Pourtant Jamais Toujours Encore Moi "
         "Deux "
         "Même Celui Celle Ceux Autre D'autres ",
         " Le La Les L' De D' Du Des "},
    [DGM_LANG_ES] =
        {" Sr Sra Srta Sres Sras Dr Dra Dres D Dª Dña Prof Profa prof profa Lic Lcda Ing Arq Gral "
         "Cnel Tte Cap Sgto "
         "Mtro Mtra Mons Excmo Ilmo Excma Ilma Sto Sta St Fco Ma Mª Av Avda Avd Pza Mr Mrs Ms Ud "
         "Uds Vd Vds "
         "fig Fig tab Tab ec Ec cap art Art ref Ref párr Trad Pról aprox Aprox vel máx mín núm Núm "
         "pág Pág págs Cf cf ed Ed prov Prov Fdo Atte dpto Dpto edif Edif Admón Rte Dir ej p cdas "
         "cdta ",
         " Cía ene feb mar abr may jun jul ago sept oct nov dic al vs ss Inc Corp Co Jr S A "
         "lun miérc juev vie UU AA HH OO JJ RR FF CC EE tel Tel Hnos ",
         " etc ", " vol Vol no No n vols R P ",
         " El La Los Las Lo Un Una Unos Unas Él Ella Ellos Ellas Yo Tú Nosotros Usted Ustedes Este "
         "Esta Esto Estos "
         "Estas Ese Esa Eso Esos Esas Aquel Aquella Su Sus Mi Mis Tu Tus Nuestro Nuestra Y E O U "
         "Pero "
         "Sino Ni Que Qué Quien Quién Cuando Cuándo Donde Dónde Como Cómo Por Para En De Del A Al "
         "Con Sin Sobre Entre Hasta Desde Hacia Según Tras Durante Contra Ante Bajo Si Sí No Nadie "
         "Nada Nunca También Tampoco Ya Aún Todavía Ahora Hoy Ayer Mañana Luego Después Antes "
         "Entonces Así Aquí Allí Más Menos Muy Mucho Muchos Muchas Todo Todos Toda Todas Cada "
         "Algunos Algunas Alguien Algo Otro Otra Otros Otras Ambos Es Son Era Fue Ha Han Hay Está "
         "Están Se Le Les "
         "Me Te Nos Sin Además Sin Mientras Aunque Porque Pues Poco Quizá ",
         " El La Los Las De Del "},
    [DGM_LANG_IT] =
        {" Sig Sigg sig Dott dott Dr Prof prof Avv avv Ing ing Arch arch Geom geom Rag rag On on "
         "Sen sen Mons "
         "mons Egr Gent Spett Gen Col col Ten ten Cap Com Rev Ill S SS Mr Mrs Ms St pres Pres "
         "Cfr cfr fig Fig tab Tab eq Eq cap art Art rif Rif v ca es Ad ad Trad Pref ed Ed prov "
         "Prov int Int sc Sc vel cucch pizz cod Cod uff Uff comm sec Cass don ",
         " gen genn gio feb febbr mar apr mag giu lug ag ago sett set ott nov dic al vs segg C Co "
         "Inc Corp Jr Sr "
         "max lun mart merc ven sab dom mld mln Tel tel civ pen ",
         " ecc etc ", " pag Pag pagg n N p pp vol Vol R D no No ",
         " Il Lo La I Gli Le L' Un Uno Una Un' Egli Lui Lei Esso Essa Essi Loro Io Tu Noi Voi "
         "Questo Questa Questi "
         "Queste Quest' Quello Quella Quelli Quelle Ciò Suo Sua Suoi Sue Mio Mia Tuo Nostro Nostra "
         "E Ed O Ma "
         "Però Anzi Né Che Chi Quando Dove Come Perché Per Con Senza Su Sul Sulla Tra Fra Da Dal "
         "Dalla Di Del Della Dei Degli Delle Dell' D' A Al Alla Ai Alle All' In Nel Nella Nei "
         "Negli Nelle Nell' "
         "Se Non Nessuno Niente Nulla Mai Anche Ancora Già Ora Oggi Ieri Domani Poi Dopo Prima "
         "Allora Così Qui Qua Lì Là Più Meno Molto Molti Molte Tutto Tutti Tutta Tutte Ogni Alcuni "
         "Alcune Qualcuno Altri Altre Entrambi È Sono Era Fu Ha Hanno C' Ci Si Mi Ti Vi Secondo "
         "Durante "
         "Mentre Sebbene Poiché Inoltre Infine Tuttavia Quindi Dunque Invece Forse Sì No Poco ",
         " Lo La Le Di De Del Della Da Dal D' Dell' "},
};

bool dgm_in_words(const char *list, dgm_text word)
{
    enum { LONGEST = 60 };
    char between[LONGEST + 3];
    if (word.size == 0 || word.size > LONGEST) return false;
    between[0] = between[word.size + 1] = ' ';
    memcpy(between + 1, word.data, word.size);
    between[word.size + 2] = '\0';
    return strstr(list, between) != NULL;
}

static const knowledge *of(dgm_language lang)
{
    return &words[(unsigned)lang <= DGM_LANG_IT ? lang : DGM_LANG_OTHER];
}

// "lbs", "Hrsg", "tbsp": no vowel, and not all capitals as the names of things are ("BMW").
static bool has_no_vowel(dgm_text word)
{
    size_t letters = 0, capitals = 0;
    for (size_t i = 0; i < word.size; i++) {
        const char c = word.data[i];
        if ((c < 'a' || c > 'z') && (c < 'A' || c > 'Z')) return false;
        if (strchr("aeiouyAEIOUY", c)) return false;
        letters++;
        capitals += c <= 'Z';
    }
    if (dgm_in_words(" cm mm km kg ml Hz kHz Mbps bps ", word)) return false; // symbols have no dot
    return letters > 1 && letters < 6 && (capitals == 0 || (capitals == 1 && word.data[0] <= 'Z'));
}

static bool ends_with(dgm_text word, const char *end)
{
    const size_t size = strlen(end);
    return word.size > size && memcmp(word.data + word.size - size, end, size) == 0;
}

// "Ing" of "Dipl.-Ing", "art" of "L'art".
static dgm_text last_part(dgm_text word)
{
    for (size_t i = word.size; i > 1; i--) {
        const bool after_dot = word.data[i - 1] == '-' && word.data[i - 2] == '.';
        const bool elided = word.data[i - 1] == '\'' ||
                            (i > 2 && memcmp(word.data + i - 3, "\xE2\x80\x99", 3) == 0);
        if (after_dot || elided) return (dgm_text){word.data + i, word.size - i};
    }
    return word;
}

dgm_dot dgm_dot_of(dgm_language lang, dgm_text word)
{
    const knowledge *k = of(lang);
    word = last_part(word);
    if (word.size == 0 || word.size > 16) return DGM_DOT_ENDS;
    if (dgm_in_words(k->titles, word)) return DGM_DOT_TITLE;
    if (dgm_in_words(k->may_end, word)) return DGM_DOT_MAY_END;
    if (dgm_in_words(k->lists, word))
        return lang == DGM_LANG_DE ? DGM_DOT_MAY_END : DGM_DOT_LIST_ENDS;
    if (dgm_in_words(k->numbers, word)) return DGM_DOT_NUMBER;
    bool street = lang == DGM_LANG_DE && ends_with(word, "str"); // "Hauptstr. 5"
    return street || has_no_vowel(word) ? DGM_DOT_MAY_END : DGM_DOT_ENDS;
}

bool dgm_is_unit(dgm_text word)
{
    return dgm_in_words(units, word);
}

bool dgm_opens_sentence(dgm_language lang, dgm_text word, bool particles)
{
    enum { LONGEST = 24 };
    char text[LONGEST + 1];
    const knowledge *k = of(lang);
    size_t size = 0, capitals = 0;
    if (word.size == 0 || word.size > LONGEST) return false;
    for (; size < word.size; size++) {
        text[size] = word.data[size];
        capitals += text[size] >= 'A' && text[size] <= 'Z';
    }
    if (capitals == size && size > 1) // headlines
        for (size_t i = 1; i < size; i++) text[i] = (char)(text[i] + 'a' - 'A');
    const dgm_text as = {text, size};
    return dgm_in_words(k->openers, as) && (particles || !dgm_in_words(k->particles, as));
}

bool dgm_is_caption(dgm_text word)
{
    static const char captions[] = " Chapter Section Figure Fig Table Part Step Appendix Kapitel "
                                   "Abschnitt Abbildung Abb Tabelle Tab Teil "
                                   "Schritt Anhang Chapitre Tableau Partie Étape Annexe Capítulo "
                                   "Sección Figura Tabla Parte Paso Anexo "
                                   "Capitolo Sezione Tabella Passo Allegato ";
    if (word.size && word.data[word.size - 1] == '.') word.size--;
    return dgm_in_words(captions, word);
}
