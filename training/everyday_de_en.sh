#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# training/everyday_de_en.sh DATA MINED WORK [STAGE...]: the German-English student that ships goes on learning, on a CPU: short lines
# and general text (dragoman_training/everyday.py says which).
#
# DATA: corpora and test sets as for models_en_de.sh. MINED: the work folder of `mine` (mine/README.md), which needs these stages:
#     PYTHONPATH=training python3 -m mine --work MINED --languages de --stages fetch,extract,align,filter \
#         --sources ding-sentences,ding-words,mozilla,roundcube,redmine,web,libreoffice-ui,gnome,kde,apps,qt-apps
# Stages, in this order: text, translate (both models that ship), pack, train, export.
# START: the model file that it begins with (models/de-en.gguf; the run of 2026-11-20 began with the one of 2026-11-15), BACK: the other direction's (models/en-de.gguf),
# SECONDS_OF_TRAINING (the recipe's), SET_STUDENT: settings of train ("a.b=value ...").
# The result is WORK/de-en.gguf.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
usage="usage: training/everyday_de_en.sh DATA MINED WORK [STAGE...]"
data=${1:?$usage} mined=${2:?$usage} work=${3:?$usage}
shift 3
stages=("$@")
[ $# -gt 0 ] || stages=(text translate pack train export)
DEVICE=${DEVICE:-cpu}
. "$here/stages.sh"
start=${START:-$here/../models/de-en.gguf} back=${BACK:-$here/../models/en-de.gguf}
export MALLOC_MMAP_THRESHOLD_=8000000000 MALLOC_TRIM_THRESHOLD_=16000000000        # tensors of a step keep their memory: a fifth less time

text() {
    [ -s "$work/real.english" ] || "$python" -m dragoman_training.everyday general "$data" "$work"
    [ -s "$work/dev.tsv" ] || "$python" -m dragoman_training.everyday short "$data" "$work" --mined "$mined"
}

# made MODEL IN OUT OPTION...
made() {
    [ -s "$work/$3" ] || { "$dragoman" translate -q --raw -m "$1" --window 32768 -i "$work/$2" -o "$work/$3.tmp" "${@:4}" &&
        mv "$work/$3.tmp" "$work/$3"; }
}

translate() {
    made "$back" real.english real.german --beam 1
    made "$start" real.de real.nbest --beam 4 --nbest 4
}

pack() {
    [ -s "$work/start.gguf" ] || cp "$start" "$work/start.gguf"
    "$python" -m dragoman_training.model_file "$work/start.gguf" "$work/vocab.spm"
    for language in de en; do cp "$data/test/de-en/newstest2013.$language" "$work/"; done
    [ -s "$work/train.bin" ] || "$python" -m dragoman_training.everyday pack "$data" "$work" --vocab "$work/vocab.spm"
}

train() { train_run de-en-student-everyday "$work" "${SECONDS_OF_TRAINING:-}" "${SET_STUDENT:-}"; }

# The shortlist: links of the new text, the tables of its alignment guide, and the shortlist that was there.
export_student() {
    local made=$work/de-en.gguf lists=$work/lists
    mkdir -p "$lists"
    "$python" -m dragoman_training.export "$work/run/model.pt" -o "$made" --storage i8 --source de --target en --name de-en-student \
        --card "$here/recipes/de-en-student.card.md"
    "$dragoman" shortlist -q -m "$work/start.gguf" -o "$lists/draft.gguf" --write-lexicon "$lists/old.lex"
    "$dragoman" shortlist -q -m "$work/start.gguf" -o "$lists/draft.gguf" --best 100 --threshold 0.0001 --write-lexicon "$lists/hard.lex" \
        "$work/lists.de" "$work/lists.en"
    d lexicon "$work/run/lexicon.npz" --vocab "$work/vocab.spm" --join "$lists/hard.lex" --join "$lists/old.lex" --out "$lists/both.lex"
    "$dragoman" shortlist -q -m "$made" -o "$made" --lexicon "$lists/both.lex" --best 100 --threshold 0.0005 --frequent-text "$work/lists.en"
}

mkdir -p "$work"
for stage in "${stages[@]}"; do
    case $stage in
        text | translate | pack | train) $stage ;;
        export) export_student ;;
        *) echo "everyday_de_en.sh: no stage '$stage'" >&2; exit 2 ;;
    esac
done
