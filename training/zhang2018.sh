#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# training/zhang2018.sh WORK [SECONDS] [ALPHA...]: the models that bench/zhang2018 compares.
#
# WORK holds pairs.en, pairs.de (and pairs.up, if some are upsampled), newstest2013.en and newstest2013.de;
# training/README.md says how they are made. Makes the vocabulary of 30,000 and the packed corpus, trains the RNNsearch
# of the paper for SECONDS (default 600) with every ALPHA (default 0 0.5 0.1 1 0.01 10; 0: no self-normalisation),
# exports WORK/rnnsearch-ALPHA.gguf and, where there is a dragoman program, prints log Z and BLEU of each. What exists
# is not made again, so the same command goes on after a stop.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=${1:?usage: training/zhang2018.sh WORK [SECONDS] [ALPHA...]}
seconds=${2:-600}
shift $(($# < 2 ? $# : 2))
alphas=("$@")
[ $# -gt 0 ] || alphas=(0 0.5 0.1 1 0.01 10)
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
for alpha in "${alphas[@]}"; do
    name=rnnsearch-$alpha
    if [ ! -s "$work/$name.gguf" ]; then
        $train train "$here/recipes/en-de-rnnsearch.yaml" --work "$work" --set "name=$name" \
            --set "loss.self_norm=$alpha" --set "budget.seconds=$seconds"
        python3 -m dragoman_training.export "$work/$name/model.pt" -o "$work/$name.gguf" --storage f16 \
            --source en --target de --name "RNNsearch, alpha $alpha"
    fi
    [ -x "$dragoman" ] || continue
    echo "== alpha $alpha"
    "$dragoman" inspect "$work/$name.gguf" --log-z "$work/newstest2013.en" --references "$work/newstest2013.de"
    "$dragoman" translate --raw -m "$work/$name.gguf" --beam 10 --finish shrink --threads 0 --quiet \
        --input "$work/newstest2013.en" --output "$work/$name.newstest2013"
    "$dragoman" eval "$work/$name.newstest2013" "$work/newstest2013.de" --metric bleu --lowercase
done
