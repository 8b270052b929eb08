#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# training/imamura2020.sh WORK [SECONDS] [NAME...]: the models that bench/imamura2020 compares.
#
# WORK holds pairs.en, pairs.de (and pairs.up, if some are upsampled), newstest2009.en and newstest2009.de; training/README.md
# says how they are made. NAME is one of
#     l2r r2l                          one token a step
#     bidirectional pair-l2r pair-r2l  two tokens a step
#     cmlm                             whole sentences
#     l2r-small r2l-small bidirectional-small cmlm-small   the same with 4,000 pieces, for models/research
# or one of these with -distilled (all of them; needs WORK/made, the output of `distill`). Default: the first six, and with
# WORK/made the six distilled ones instead. Makes vocabularies and packed corpora, trains each for SECONDS (default 900: the
# same GPU minutes for all; with STEPS=N in the environment: N steps instead), exports WORK/imamura-NAME.gguf with i8 weights,
# and where there is a dragoman program translates newstest2009 and prints BLEU. LANGUAGES (default "en de") names the two files of
# each text. SETTINGS holds further NAME=VALUE settings of the recipes. What exists is not made again, so the same command goes on
# after a stop.
# Where WORK/teacher is (what `distill` takes as --teacher, or its model.pt; WORK/vocab16k.spm must then be its vocabulary) the models
# of base shape begin with its encoder and word vectors (warm.py). `vocabularies` as a NAME makes WORK/vocabSIZE.spm for Table 4.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=${1:?usage: training/imamura2020.sh WORK [SECONDS] [NAME...]}
seconds=${2:-900}
shift $(($# < 2 ? $# : 2))
plain=(l2r r2l bidirectional pair-l2r pair-r2l cmlm)
names=("$@")
[ $# -gt 0 ] || names=("${plain[@]}")
[ $# -gt 0 ] || [ ! -d "$work/made" ] || names=("${plain[@]/%/-distilled}")
export PYTHONPATH=$here
python=${PYTHON:-python3}
train="$python -m dragoman_training"
dragoman=${DRAGOMAN:-$here/../dragoman}
read -r source target <<< "${LANGUAGES:-en de}"
passes=()
[ -s "$work/pairs.up" ] && passes=(--passes "$work/pairs.up")

# vocabulary SIZE NAME: WORK/vocabNAME.spm
vocabulary() {
    [ -s "$work/vocab$2.spm" ] && return
    $train vocab "$work/pairs.$source" "$work/pairs.$target" --prefix "$work/vocab$2" --size "$1"
    mv "$work/vocab$2.model" "$work/vocab$2.spm"
}

# corpus SIZE NAME DISTILLED: the vocabulary, and WORK/trainNAME.bin or trainNAME-distilled.bin
corpus() {
    local made=() out=$work/train$2$3.bin
    vocabulary "$1" "$2"
    [ -z "$3" ] || made=(--made "$work/made" --made-workers "${MADE_WORKERS:-1}")
    [ -s "$out" ] || $train pack --vocab "$work/vocab$2.spm" --source "$work/pairs.$source" --target "$work/pairs.$target" \
        "${passes[@]}" "${made[@]}" --processes "$(nproc)" --out "$out"
}

# make NAME RECIPE SIZE VOCABULARY DISTILLED [settings]
make() {
    local name=$1 recipe=$2 size=$3 pieces=$4 distilled=$5 settings=()
    shift 5
    corpus "$size" "$pieces" "$distilled"
    [ "$pieces" != 16k ] || [ ! -e "$work/teacher" ] || settings=(--set warm.model=teacher)
    if [ -n "${STEPS:-}" ]; then # validating and saving are by steps, too
        settings+=(--set budget.seconds=0 --set "budget.steps=$STEPS" --set "valid_every=$((STEPS / 5))" --set "save_every=$((STEPS / 5))")
    else
        settings+=(--set "budget.seconds=$seconds")
    fi
    for setting in "$@" ${SETTINGS:-}; do settings+=(--set "$setting"); done
    [ -s "$work/imamura-$name.gguf" ] && return
    $train train "$here/recipes/$recipe.yaml" --work "$work" --set "name=imamura-$name" \
        --set "data.train=train$pieces$distilled.bin" --set "data.valid_source=newstest2009.$source" \
        --set "data.valid_target=newstest2009.$target" "${settings[@]}"
    $python -m dragoman_training.export "$work/imamura-$name/model.pt" -o "$work/imamura-$name.gguf" --storage i8 \
        --source "$source" --target "$target" --name "Imamura 2020, $name" --decode beam=4 --decode finish=refill
}

for name in "${names[@]}"; do
    kind=${name%-distilled}
    distilled=${name#"$kind"}
    case $kind in
        l2r|r2l) make "$name" imamura-single 16000 16k "$distilled" "model.order=$kind" ;;
        bidirectional) make "$name" imamura-double 16000 16k "$distilled" model.order=bidirectional ;;
        pair-l2r|pair-r2l) make "$name" imamura-double 16000 16k "$distilled" "model.order=${kind#pair-}" ;;
        cmlm) make "$name" imamura-cmlm 16000 16k "$distilled" ;;
        l2r-small|r2l-small) make "$name" imamura-single-small 4000 4k "$distilled" "model.order=${kind%-small}" ;;
        bidirectional-small) make "$name" imamura-double-small 4000 4k "$distilled" ;;
        cmlm-small) make "$name" imamura-cmlm-small 4000 4k "$distilled" ;;
        vocabularies) for size in 4 8 16 32 64; do vocabulary "${size}000" "${size}k"; done; continue ;;
        *) echo "imamura2020.sh: no model '$name'" >&2; exit 2 ;;
    esac
    [ -x "$dragoman" ] || continue
    "$dragoman" translate --raw -m "$work/imamura-$name.gguf" --threads 0 --quiet --input "$work/newstest2009.$source" \
        --output "$work/imamura-$name.newstest2009"
    echo "$name: $("$dragoman" eval "$work/imamura-$name.newstest2009" "$work/newstest2009.$target" --metric bleu)"
done
