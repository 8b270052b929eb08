#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# training/iglesias2018.sh WORK [SECONDS] [SIZE...]: the recurrent models that bench/iglesias2018 compares.
#
# WORK holds pairs.en, pairs.de (and pairs.up, if some are upsampled), newstest2013.en and newstest2013.de;
# training/README.md says how they are made. Makes the vocabulary of 30,000 and the packed corpus (those of zhang2018.sh),
# trains three plain attentional GRU models (seeds 1, 2, 3) for SECONDS each (default 600) and exports
# WORK/bahdanau-1.gguf to -3. Where there is a dragoman program, it scores each of them and the ensemble, unfolds the
# ensemble into one network (WORK/bahdanau-unfolded.gguf) and shrinks it to every SIZE (a share of the members' summed size;
# default 0.78 0.5 0.33). What exists is not made again, so the same command goes on after a stop.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=${1:?usage: training/iglesias2018.sh WORK [SECONDS] [SIZE...]}
seconds=${2:-600}
shift $(($# < 2 ? $# : 2))
sizes=("$@")
[ $# -gt 0 ] || sizes=(0.78 0.5 0.33)
export PYTHONPATH=$here
train="python3 -m dragoman_training"
dragoman=${DRAGOMAN:-$here/../dragoman}

if [ ! -s "$work/vocab30k.spm" ]; then
    $train vocab "$work/pairs.en" "$work/pairs.de" --prefix "$work/vocab30k" --size 30000
    mv "$work/vocab30k.model" "$work/vocab30k.spm"
fi
if [ ! -s "$work/train30k.bin" ]; then
    passes=()
    [ -s "$work/pairs.up" ] && passes=(--passes "$work/pairs.up")
    $train pack --vocab "$work/vocab30k.spm" --source "$work/pairs.en" --target "$work/pairs.de" "${passes[@]}" \
        --processes "$(nproc)" --out "$work/train30k.bin"
fi

# score NAME MODEL...: newstest2013 at beam 5
score() {
    local name=$1 models=()
    shift
    for model in "$@"; do models+=(-m "$model"); done
    [ -s "$work/$name.newstest2013" ] || "$dragoman" translate --raw "${models[@]}" --beam 5 --threads 0 --quiet \
        --input "$work/newstest2013.en" --output "$work/$name.newstest2013"
    echo "$name: $("$dragoman" eval "$work/$name.newstest2013" "$work/newstest2013.de" --metric bleu)"
}

members=()
for seed in 1 2 3; do
    name=bahdanau-$seed
    members+=("$work/$name.gguf")
    if [ ! -s "$work/$name.gguf" ]; then
        $train train "$here/recipes/en-de-bahdanau.yaml" --work "$work" --set "name=$name" --set "seed=$seed" \
            --set "budget.seconds=$seconds"
        python3 -m dragoman_training.export "$work/$name/model.pt" -o "$work/$name.gguf" --storage f32 \
            --source en --target de --name "Bahdanau GRU, seed $seed"
    fi
    if [ -x "$dragoman" ]; then score "$name" "$work/$name.gguf"; fi
done
[ -x "$dragoman" ] || exit 0
score bahdanau-ensemble "${members[@]}"
[ -s "$work/bahdanau-unfolded.gguf" ] || "$dragoman" shrink "${members[@]}" -o "$work/bahdanau-unfolded.gguf"
for size in "${sizes[@]}"; do
    small=$work/bahdanau-$size.gguf
    [ -s "$small" ] || "$dragoman" shrink "${members[@]}" --size "$size" -o "$small"
    score "bahdanau-$size" "$small"
done
