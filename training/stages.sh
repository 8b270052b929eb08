# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What scripts share that make a model in stages, on several machines if need be: sourced.
# They set `here`, this folder. What exists is not made again, and a run that was ended goes on.
export PYTHONPATH=$here
python=${PYTHON:-python3}
dragoman=${DRAGOMAN:-$here/../build/dragoman}
device=${DEVICE:-cuda}
processes=${PROCESSES:-$(nproc)}

d() { "$python" -m dragoman_training "$@"; }

# sets "a.b=value ...": --set options, a line each
sets() { for item in $1; do printf -- '--set\n%s\n' "$item"; done; }

# train_run RECIPE FOLDER SECONDS SETTINGS: trains FOLDER/run as soon as the first part of FOLDER/train.bin is packed
train_run() {
    local options
    [ ! -e "$2/finished" ] || return 0
    mapfile -t options < <(sets "$4")
    until [ -s "$2/train.bin" ]; do sleep 0.5; done
    [ -z "$3" ] || options=(--set "budget.seconds=$3" "${options[@]}")
    d train "$here/recipes/$1.yaml" --work "$2" --out "$2/run" --device "$device" --set "name=$1" "${options[@]}"
    touch "$2/finished"
}
