#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# training/devlin2017.sh WORK [SECONDS] [NAME...]: the models that bench/devlin2017 compares.
#
# WORK holds pairs.en, pairs.de (and pairs.up, if some are upsampled), newstest2013.en and newstest2013.de; training/README.md
# says how they are made. NAME is one of s1 s4 s4-2 (the second seed, for E1) s2 s3 s4-small (default: these, in this order),
# s4-source (fully connected layers on the source, too) or words (S1 with 80,000 words a side). Makes the vocabulary and the packed corpus, trains each for SECONDS (default 420) and
# exports WORK/devlin-NAME.gguf with i8 weights, beam 6 and the early stop as defaults. Where there is a dragoman program, a
# shortlist of 20 translations a word is added from the corpus, and newstest2013 is translated and scored. What exists is
# not made again, so the same command goes on after a stop.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=${1:?usage: training/devlin2017.sh WORK [SECONDS] [NAME...]}
seconds=${2:-420}
shift $(($# < 2 ? $# : 2))
names=("$@")
[ $# -gt 0 ] || names=(s1 s4 s4-2 s2 s3 s4-small)
export PYTHONPATH=$here
train="python3 -m dragoman_training"
dragoman=${DRAGOMAN:-$here/../dragoman}
passes=()
[ -s "$work/pairs.up" ] && passes=(--passes "$work/pairs.up")

# pieces SIZE NAME: WORK/vocabNAME.spm and WORK/trainNAME.bin
pieces() {
    if [ ! -s "$work/vocab$2.spm" ]; then
        $train vocab "$work/pairs.en" "$work/pairs.de" --prefix "$work/vocab$2" --size "$1"
        mv "$work/vocab$2.model" "$work/vocab$2.spm"
    fi
    [ -s "$work/train$2.bin" ] || $train pack --vocab "$work/vocab$2.spm" --source "$work/pairs.en" \
        --target "$work/pairs.de" "${passes[@]}" --processes "$(nproc)" --out "$work/train$2.bin"
}

# WORK/source.words, target.words and train80k.bin, from text that the C program tokenises
words() {
    for side in en de; do
        for text in pairs newstest2013; do
            [ -s "$work/$text.tok.$side" ] ||
                "$dragoman" tokenize $side -i "$work/$text.$side" -o "$work/$text.tok.$side"
        done
    done
    [ -s "$work/source.words" ] || $train words "$work/pairs.tok.en" --out "$work/source.words" --size 80000
    [ -s "$work/target.words" ] || $train words "$work/pairs.tok.de" --out "$work/target.words" --size 80000
    [ -s "$work/train80k.bin" ] || $train pack --vocab "$work/target.words" --source-vocab "$work/source.words" \
        --source "$work/pairs.tok.en" --target "$work/pairs.tok.de" "${passes[@]}" --no-augment \
        --processes "$(nproc)" --out "$work/train80k.bin"
}

# make NAME RECIPE CORPUS [settings of train] -- [options of export]
make() {
    local name=$1 recipe=$2 corpus=$3 settings=()
    shift 3
    while [ "$1" != -- ]; do settings+=(--set "$1"); shift; done
    shift
    [ -s "$work/devlin-$name.gguf" ] && return
    $train train "$here/recipes/$recipe.yaml" --work "$work" --set "name=devlin-$name" \
        --set "budget.seconds=$seconds" "${settings[@]}"
    python3 -m dragoman_training.export "$work/devlin-$name/model.pt" -o "$work/devlin-$name.gguf" --storage i8 \
        --source en --target de --name "Devlin 2017, $name" --decode beam=6 --decode finish=margin \
        --decode length_penalty=0 "$@"
    [ -x "$dragoman" ] || return 0
    "$dragoman" shortlist -m "$work/devlin-$name.gguf" -o "$work/devlin-$name.gguf" "$work/$corpus.en" "$work/$corpus.de"
}

for name in "${names[@]}"; do
    case $name in
        s1|s2|s3|s4|s4-source) pieces 30000 30k; make "$name" "devlin-$name" pairs -- --frequencies "$work/train30k.bin" ;;
        s4-2) pieces 30000 30k; make s4-2 devlin-s4 pairs seed=2 -- --frequencies "$work/train30k.bin" ;;
        s4-small) pieces 4000 4k; make s4-small devlin-s4-small pairs -- --frequencies "$work/train4k.bin" ;;
        words) words; make words devlin-s1-words pairs -- --vocab "$work/source.words" \
                   --target-vocab "$work/target.words" --decode allow_unk=true ;;
        *) echo "devlin2017.sh: no system '$name'" >&2; exit 2 ;;
    esac
    [ -x "$dragoman" ] || continue
    "$dragoman" translate --raw -m "$work/devlin-$name.gguf" --threads 0 --quiet --input "$work/newstest2013.en" \
        --output "$work/devlin-$name.newstest2013"
    echo "$name: $("$dragoman" eval "$work/devlin-$name.newstest2013" "$work/newstest2013.de" --metric bleu)"
done
