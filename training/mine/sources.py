# SPDX-License-Identifier: MIT
"""The table of sources: which packages, which of their files, how they are read.

A package is written `s:NAME` (a source package; `s:NAME@REGEX` takes only its archives that match) or `b:NAME` (a binary
package) or `mo:GROUP` (the packages that catalogues.py finds). `reader` names a function of READERS in pipeline.py; `members` picks the files by their path; `markup` names a
function of MARKUP in text.py. `weigh` says how the short lines of a source count towards the everyday list.
"""
import re
from dataclasses import dataclass

LANGUAGES = ("de", "fr", "es", "it")
PO = r"\.(po|mo|gmo)$"


@dataclass
class Source:
    name: str
    reader: str
    packages: str
    members: str = PO
    markup: str = "plain"
    split: bool = True    # longer messages become sentences
    weigh: bool = False   # short lines are what users type or read first: they may go to the everyday list
    scored: bool = False  # aligned by length, not by ids alone: the model has the last word where there is one
    free: bool = False    # its translations are free: only pairs with a score are taken
    names: bool = False   # a line that is the same in both languages is right

    def package_list(self):
        """[(kind, name, archive regex or None)]"""
        found = []
        for word in self.packages.split():
            kind, _, rest = word.partition(":")
            name, _, archive = rest.partition("@")
            if kind not in ("s", "b", "mo", "apt"):
                raise ValueError(f"{self.name}: {word} is neither s:NAME nor b:NAME nor mo:GROUP")
            found.append((kind, name, archive or None))
        return found

    def wants(self, path):
        return re.search(self.members, path) is not None


def s(names):
    return " ".join("s:" + n for n in names.split())


def b(names):
    return " ".join("b:" + n for n in names.split())


# The packages that have two or more of the English pages of manpages-de and manpages-de-dev.
MAN = ("manpages-de manpages-de-dev manpages-fr manpages-fr-dev manpages-es manpages-es-dev manpages-it manpages-it-dev "
       "manpages-dev manpages systemd coreutils libsane-common util-linux mtools grub-common gettext kbd openssh-client gzip bzip2 "
       "uuid-dev systemd-journal-remote psutils udev dosfstools bsdextrautils recutils systemd-container systemd-boot texinfo "
       "vorbis-tools nfs-common bsdgames systemd-coredump systemd-homed bsdutils mutt systemd-resolved mount hostname less systemd-oomd "
       "e2fsprogs runit-init init-system-helpers glibc-doc netpbm sysstat diffutils grep util-linux-extra sane-utils libcrypt-dev "
       "openssh-server systemd-timesyncd iptables wodim gettext-base nano x11-xserver-utils thinkfan systemd-userdbd "
       "uuid-runtime vlock fdisk grub-legacy talkd kmod bash ncal icedax ncurses-bin cpio bcron ed install-info make groff-base info "
       "systemd-sysv ghostscript tar usbutils zstd anacron at nfs-kernel-server binkd libnss-myhostname libnss-mymachines "
       "libnss-resolve libnss-systemd parted locales procps psmisc findutils sed login passwd xz-utils man-db")

SOURCES = [
    # Sentences.
    Source("descriptions", "descriptions", "apt:lists", markup="none", scored=True),
    Source("libreoffice-help", "messages", r"s:libreoffice@orig-translations", r"/(de|fr|es|it)/helpcontent2/.*\.po$", "tags"),
    Source("libreoffice-ui", "messages", r"s:libreoffice@orig-translations", r"/(de|fr|es|it)/(?!helpcontent2/|dictionaries/)\w.*\.po$",
           "tags", weigh=True),
    Source("manpages", "man", b(MAN), r"/usr/share/man/((de|fr|es|it)/)?man\d\w*/[^/]+$|^usr/share/man/((de|fr|es|it)/)?man\d", "none",
           scored=True),
    Source("debian-man", "messages", s("apt dpkg"), r"(^|/)(man|doc)/po/.*\.po$", "pod"),
    Source("debian-docs", "html", b("debian-reference-common debian-reference developers-reference maint-guide debian-faq "
                                    "aptitude-doc-en aptitude-doc-es aptitude-doc-fr aptitude-doc-it "
                                    "debian-reference-de debian-reference-fr debian-reference-es debian-reference-it "
                                    "developers-reference-de developers-reference-fr developers-reference-it "
                                    "maint-guide-de maint-guide-fr maint-guide-es maint-guide-it debian-faq-de debian-faq-fr debian-faq-it "
                                    "debian-handbook debmake-doc debian-history live-manual-html"),
           r"\.html?$", "none", scored=True),
    Source("installation-guide", "messages", "s:installation-guide", PO, "tags"),
    Source("debian-edu", "messages", "s:debian-edu-doc", PO, "tags"),
    Source("kde-docs", "docbook", s("okular konsole kmail kio kaddressbook kstars marble kdevelop calligra") + " mo:kde",
           r"(^|/)(po/(de|fr|es|it)/docs?/.*|docs?/.*|HTML/(en|de|fr|es|it)/.*)\.docbook$", "none", scored=True),
    # Stories and games: dialogue, plain description.
    Source("wesnoth", "messages", b("wesnoth-1.16-data wesnoth-1.16-httt wesnoth-1.16-sota wesnoth-1.16-thot wesnoth-1.16-l "
                                      "wesnoth-1.16-trow wesnoth-1.16-utbs wesnoth-1.16-did wesnoth-1.16-low wesnoth-1.16-dm "
                                      "wesnoth-1.16-dw wesnoth-1.16-ei wesnoth-1.16-nr wesnoth-1.16-sof wesnoth-1.16-tsg "
                                      "wesnoth-1.16-ttb wesnoth-1.16-sotbe"), PO, "tags", scored=True, free=True),
    Source("games", "messages", s("freeciv 0ad gnubg") + " mo:games", PO, "tags"),
    Source("freecol", "properties", "b:freecol", r"/strings/FreeColMessages(_(de|fr|es|it))?\.properties$", "tags"),
    # Words of user interfaces.
    Source("mozilla", "mozilla", r"s:firefox-esr@l10n-(de|fr|es-ES|it|en-GB)\.tar s:thunderbird@thunderbird-l10n",
           r"(^|/)(l10n-)?(de|fr|es-ES|it|en-GB)/.*\.(ftl|properties|dtd)$", "tags", weigh=True),
    Source("mediawiki", "wiki_json", "b:mediawiki", r"/i18n/.*(?<=/)(en|de|fr|es|it)\.json$", "wiki"),
    Source("web", "messages", "b:wordpress-l10n " + s("phpmyadmin python-django request-tracker5 freedombox zabbix"), PO, "tags", weigh=True),
    Source("redmine", "rails", "s:redmine b:ruby-rails-i18n", r"/locales?/(en|de|fr|es|it)\.yml$", "tags", weigh=True),
    Source("roundcube", "roundcube", "s:roundcube", r"/(en_US|de_DE|fr_FR|es_ES|it_IT)/\w+\.inc$", "tags", weigh=True),
    Source("gnome", "messages", s("evolution-data-server gtk+3.0 gtk4 gnome-control-center nautilus glib2.0 gnumeric gnome-shell "
              "network-manager gvfs epiphany-browser gnome-settings-daemon thunar") + " mo:gnome", PO, "gtk", weigh=True),
    Source("kde", "messages", s("okular konsole kmail kio kaddressbook kstars marble kdevelop kwin calligra kexi krita kalarm") + " mo:kde",
           r"(^|/)po/.*\.po$|\.mo$", "kde", weigh=True),
    Source("apps", "messages", s("gnucash calibre@translations audacity blender inkscape gimp abiword amule filezilla sylpheed "
              "synaptic onionshare cups kicad mercurial josm gimp tryton-server tasksel debconf unattended-upgrades "
              "packagekit backintime hexchat quodlibet scite"), PO, "gtk", weigh=True),
    Source("programs", "messages", "mo:programs", PO, "gtk", weigh=True),
    Source("gnu", "messages", s("git subversion gcc-12 binutils coreutils bash wget gnupg2 util-linux systemd postgresql-15 "
              "gettext findutils diffutils grep sed tar gzip make-dfsg gawk bison flex m4 parted e2fsprogs "
              "glibc shadow psmisc cpio texinfo mutt gdb gettext nano less screen vim cryptsetup lvm2 man-db "
              "dpkg apt rpm libvirt"),
           PO, "gnu"),
    Source("qt-apps", "qt_ts", s("qbittorrent keepassxc qgis freecad nextcloud-desktop lmms mixxx psi psi-plus speedcrunch texmaker "
                                 "librecad pokerth musescore2 musescore3"),
           r"[_/-](de|fr|es|it)(_(DE|FR|ES|IT))?\.ts$", "qt", weigh=True),
    # Words and names.
    Source("ding-sentences", "ding_sentences", "b:trans-de-en", r"/trans/de-en$", "none", split=False),
    Source("ding-words", "ding_words", "b:trans-de-en", r"/trans/de-en$", "none", split=False),
    Source("freedict", "freedict", "s:freedict", r"/(eng-(fra|spa|ita)|(fra|spa|ita)-eng)\.tei$", "none", split=False),  # eng-deu is made of Ding
    Source("iso-codes", "messages", "s:iso-codes", r"/iso_(3166-1|639-2|639-3|4217|3166-2|15924)/(de|fr|es|it)\.po$", "none", split=False),
    Source("cldr", "cldr", "b:unicode-cldr-core", r"/common/main/(en|de|fr|es|it)\.xml$", "none", split=False, weigh=True, names=True),
    Source("tzdata", "messages", "s:tzdata", r"debian/po/(de|fr|es|it)\.po$", "places", split=False),
]


def named_packages():
    return {name for source in SOURCES for kind, name, _ in source.package_list() if kind in ("s", "b")}


def by_name(names=None):
    if not names:
        return list(SOURCES)
    table = {x.name: x for x in SOURCES}
    unknown = [n for n in names if n not in table]
    if unknown:
        raise ValueError(f"no such source: {', '.join(unknown)}; there are {', '.join(table)}")
    return [table[n] for n in names]
