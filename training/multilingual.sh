#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# training/multilingual.sh DATA WORK [NAME...]: one model for English and German, French, Spanish, Italian, both ways.
#
# DATA holds en-de/, en-fr/, en-es/ and en-it/ with NAME.LANG.xz (training/README.md, "From text to a model file"). NAME is one
# of dense (16k pieces), small (4k, for models/research), moe (16 experts), moe-small (16 experts in the student's shape), en-de and
# de-en (bilingual, of the same size, to compare); default: all. Makes the corpora, trains by the recipes of the same names, and exports WORK/NAME.gguf with i8 weights.
# PAIRS (default "en-de en-fr en-es en-it"), SIZE (pieces of all but small, 16000), SECONDS_EACH (per model, default: the recipe's),
# LIMIT (lines of a pair, default: all) and SET ("a.b=value ...", settings of train) change it: a rehearsal on a CPU is
#     LIMIT=2000 SIZE=1000 SET="budget.seconds=0 budget.steps=20 ..." training/multilingual.sh DATA WORK small
# TEST/PAIR/SET.LANG: where TEST is set and there is a dragoman program, every direction is translated in one mixed run and
# scored. What exists is not made again.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
data=${1:?usage: training/multilingual.sh DATA WORK [NAME...]}
work=${2:?usage: training/multilingual.sh DATA WORK [NAME...]}
shift 2
models=("$@")
[ $# -gt 0 ] || models=(dense small moe moe-small en-de de-en)
read -ra pairs <<< "${PAIRS:-en-de en-fr en-es en-it}"
export PYTHONPATH=$here
python=${PYTHON:-python3}
dragoman=${DRAGOMAN:-$here/../dragoman}
processes=$(nproc)
settings=()
for item in ${SET:-}; do settings+=(--set "$item"); done
[ -z "${SECONDS_EACH:-}" ] || settings+=(--set "budget.seconds=$SECONDS_EACH")

# prepare FOLDER: FOLDER/PAIR/pairs.LANG
prepare() {
    for pair in "${pairs[@]}"; do
        [ -s "$1/$pair/pairs.${pair#*-}" ] && continue
        mkdir -p "$1/$pair"
        "$python" -m dragoman_training prepare "$data/$pair" "${pair%-*}" "${pair#*-}" --out "$1/$pair" \
            --limit "${LIMIT:-0}" > /dev/null
    done
}

# corpus FOLDER SIZE [options of multilingual]: vocab.spm, train.bin, directions.json
corpus() {
    local folder=$1 size=$2
    shift 2
    mkdir -p "$folder"
    for pair in "${pairs[@]}"; do [ -e "$folder/$pair" ] || ln -s "$(cd "$work/text/$pair" && pwd)" "$folder/$pair"; done
    [ -s "$folder/directions.json" ] || "$python" -m dragoman_training.multilingual "$folder" --size "$size" \
        --processes "$processes" "$@"
}

# train_one NAME FOLDER RECIPE DEFAULT
train_one() {
    [ -s "$work/$1.gguf" ] && return
    "$python" -m dragoman_training train "$here/recipes/$3.yaml" --work "$2" --set "name=$1" "${settings[@]}"
    "$python" -m dragoman_training.export "$2/$1/model.pt" -o "$work/$1.gguf" --storage i8 --name "$1" \
        --directions "$2/directions.json" --default "$4"
}

# score NAME: BLEU of every direction of TEST's sets, all directions in one run
score() {
    [ -n "${TEST:-}" ] && [ -x "$dragoman" ] || return 0
    local set=${TEST_SET:-flores-test} pair source target lines
    : > "$work/$1.in"; : > "$work/$1.directions"
    for pair in "${pairs[@]}"; do
        for way in "${pair%-*} ${pair#*-}" "${pair#*-} ${pair%-*}"; do
            source=${way% *}
            cat "$TEST/$pair/$set.$source" >> "$work/$1.in"
            sed "s/.*/$way/" "$TEST/$pair/$set.$source" >> "$work/$1.directions"
        done
    done
    "$dragoman" translate --raw -m "$work/$1.gguf" --threads 0 --quiet --input "$work/$1.in" --directions "$work/$1.directions" \
        --output "$work/$1.out"
    lines=0
    for pair in "${pairs[@]}"; do
        for way in "${pair%-*} ${pair#*-}" "${pair#*-} ${pair%-*}"; do
            target=${way#* }
            local count
            count=$(wc -l < "$TEST/$pair/$set.$target")
            tail -n +$((lines + 1)) "$work/$1.out" | head -n "$count" > "$work/$1.one"
            echo "$1, $way: $("$dragoman" eval "$work/$1.one" "$TEST/$pair/$set.$target" --metric bleu)"
            lines=$((lines + count))
        done
    done
}

mkdir -p "$work/text"
prepare "$work/text"
for name in "${models[@]}"; do
    case $name in
        dense) corpus "$work/large" "${SIZE:-16000}" --pairs "${pairs[@]}"; train_one dense "$work/large" multilingual "en de" ;;
        moe) corpus "$work/large" "${SIZE:-16000}" --pairs "${pairs[@]}"; train_one moe "$work/large" multilingual-moe "en de" ;;
        moe-small) corpus "$work/large" "${SIZE:-16000}" --pairs "${pairs[@]}"
                   train_one moe-small "$work/large" multilingual-moe-small "en de" ;;
        small) corpus "$work/small" "${SMALL_SIZE:-4000}" --pairs "${pairs[@]}"
               train_one small "$work/small" multilingual-small "en de" ;;
        en-de) corpus "$work/en-de" "${SIZE:-16000}" --pairs en-de --one-way; train_one en-de "$work/en-de" multilingual "en de"
               continue ;;
        de-en) mkdir -p "$work/text/de-en"
               for side in de en; do ln -sf "../en-de/pairs.$side" "$work/text/de-en/pairs.$side"; done
               mkdir -p "$work/de-en"; [ -e "$work/de-en/de-en" ] || ln -s "$(cd "$work/text/de-en" && pwd)" "$work/de-en/de-en"
               corpus "$work/de-en" "${SIZE:-16000}" --pairs de-en --one-way
               train_one de-en "$work/de-en" multilingual "de en"; continue ;;
        *) echo "multilingual.sh: no model '$name'" >&2; exit 2 ;;
    esac
    score "$name"
done
