# SPDX-License-Identifier: MIT
"""LibreTranslate as it is, but for its sentence splitter, whose model it would fetch: a text is one sentence here, as those of
bench/serve-rivals are. That spares it work. Arguments are LibreTranslate's.
"""
import sys

from argostranslate import sbd

sbd.MiniSBDSentencizer.__init__ = lambda self, pkg: setattr(self, "pkg", pkg)
sbd.MiniSBDSentencizer.split_sentences = lambda self, text: [text]

from libretranslate import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
