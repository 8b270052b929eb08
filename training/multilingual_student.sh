#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# training/multilingual_student.sh DATA WORK [STAGE...]: one small model for English and French, Spanish, Italian, both ways.
#
# DATA holds en-fr/, en-es/ and en-it/ with NAME.LANG.xz, and test sets as test/PAIR/SET.LANG; of other pairs (en-de/) English text
# alone is taken. Stages, in this order: text (clean, vocabularies, mix), teacher, distil, student, export; both: distil beside student,
# which begins with real targets. What exists is not made again, and a run that was ended goes on, so that stages can run on different
# machines: text on any, the others need a GPU. mix and pack_teacher are the parts of text and teacher that move most data.
# TEACHER_SECONDS, DISTIL_SECONDS and STUDENT_SECONDS are budgets (480, 120, 400); SET_TEACHER and SET_STUDENT settings of train
# ("a.b=value ..."). DRAGOMAN: the program; with ENGINE=dragoman (default: pytorch) it distils. SPLIT: lines of the first parts of text
# (400000,1200000). BEAM: of distillation (1). A rehearsal on a CPU:
#     DEVICE=cpu LIMIT=2000 SPLIT=500,1000 TEACHER_SIZE=2000 STUDENT_SIZE=1500 SET_TEACHER="model.d_model=64 ..." ...
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
data=${1:?usage: training/multilingual_student.sh DATA WORK [STAGE...]}
work=${2:?usage: training/multilingual_student.sh DATA WORK [STAGE...]}
shift 2
stages=("$@")
[ $# -gt 0 ] || stages=(text teacher distil student export)
read -ra pairs <<< "${PAIRS:-en-fr en-es en-it}"
. "$here/stages.sh"
tokens=("<2en>")
for pair in "${pairs[@]}"; do tokens+=("<2${pair#*-}>"); done
text() {
    local pair other name extra files=() weigh=()
    for name in tatoeba=3 multi30k=2 everyday=3 wwwl10n=2; do weigh+=(--upsample "$name"); done   # against Europarl and catalogues
    for name in kde=40000 gnome=40000 apps=40000 qt-apps=15000 descriptions=50000; do weigh+=(--take "$name"); done
    mkdir -p "$work/teacher" "$work/student" "$work/even"
    for pair in "${pairs[@]}"; do
        name=${pair#*-}
        extra=()
        for other in ${EXTRA:-en-fr:tatoeba,multi30k en-es:tatoeba en-de:tatoeba}; do
            [ "${other%%:*}" = "$pair" ] || [ ! -d "$data/${other%%:*}" ] || extra+=(--extra "$data/$other")
        done
        [ -s "$work/$pair/pairs.$name" ] || d prepare "$data/$pair" en "$name" --out "$work/$pair" --limit "${LIMIT:-0}" "${extra[@]}" \
            "${weigh[@]}" > "$work/$pair.json"
        [ -s "$work/even/$pair/pairs.$name" ] || d prepare "$data/$pair" en "$name" --out "$work/even/$pair" --limit "${LIMIT:-0}" \
            --take europarl=30000 --take libreoffice-help=15000 --take descriptions=15000 --take gnome=10000 --take kde=10000 \
            --take apps=10000 --take qt-apps=5000 --take freedict=5000 > /dev/null
        awk -v n="${#pairs[@]}" 'NR % n == 0' "$work/even/$pair/pairs.en" > "$work/even/$pair.en"   # English is in every pair
        files+=("$work/even/$pair/pairs.$name" "$work/even/$pair.en")
    done
    for name in teacher student; do
        local size=${TEACHER_SIZE:-16000}
        [ $name = teacher ] || size=${STUDENT_SIZE:-6000}
        [ -s "$work/$name/vocab.spm" ] && continue
        d vocab "${files[@]}" --prefix "$work/$name/vocab" --size "$size" --sentences "${SENTENCES:-450000}" --control "${tokens[@]}"
        mv "$work/$name/vocab.model" "$work/$name/vocab.spm"
    done
    local side language
    for side in src tgt dir; do : > "$work/valid.$side"; done
    for pair in "${pairs[@]}"; do
        for language in en "${pair#*-}"; do
            other=en
            [ $language != en ] || other=${pair#*-}
            head -150 "$data/test/$pair/flores-dev.$language" >> "$work/valid.src"
            head -150 "$data/test/$pair/flores-dev.$other" >> "$work/valid.tgt"
            yes "$language $other" | head -150 >> "$work/valid.dir" || true
        done
    done
    for name in teacher student; do
        for side in src tgt dir; do ln -sf "../valid.$side" "$work/$name/valid.$side"; done
    done
}

mix() {
    [ -s "$work/mixed.0.src" ] || "$python" -m dragoman_training.multilingual "$work" --pairs "${pairs[@]}" --mixed "${SPLIT:-400000,1200000}"
}

# parts SUFFIX [NUMBERS]: names of the parts' files
parts() {
    local n
    for n in ${2:-$(cd "$work" && ls mixed.*.src | cut -d. -f2 | grep -v turned | sort -n)}; do echo "$work/mixed.$n.$1"; done
}

pack_teacher() (                                                        # a second one waits for the first
    exec 9> "$work/teacher/lock"
    flock 9
    [ ! -e "$work/teacher/packed" ] || return 0
    # shellcheck disable=SC2046
    d pack --vocab "$work/teacher/vocab.spm" --source $(parts src) --target $(parts tgt) --passes $(parts up) --directions $(parts dir) \
        --no-augment --processes "$processes" --out "$work/teacher/train.bin"
    touch "$work/teacher/packed"
)

teacher() {
    [ ! -e "$work/teacher/finished" ] || return 0
    pack_teacher &
    train_run multilingual-teacher "$work/teacher" "${TEACHER_SECONDS:-480}" "${SET_TEACHER:-}"
    wait
}

distil() {
    local made=$work/made teacher=$work/teacher/run
    mkdir -p "$made"
    : > "$made/mixed.0.src.made.0"                                  # the first part keeps its real targets
    ln -sf ../vocab.spm "$teacher/vocab.spm"
    [ -s "$work/teacher.gguf" ] || "$python" -m dragoman_training.export "$teacher/model.pt" -o "$work/teacher.gguf" --storage f16 \
        --name multilingual-teacher --directions "$work/teacher/directions.json" --default "en fr"
    [ "${ENGINE:-pytorch}" = pytorch ] || teacher=$work/teacher.gguf
    local later
    later=$(cd "$work" && ls mixed.*.src | cut -d. -f2 | grep -vx "0\|turned" | sort -n)
    local missing=() n
    for n in $later; do [ -e "$made/mixed.$n.src.made.0" ] || missing+=("$n"); done
    # shellcheck disable=SC2046
    [ ${#missing[@]} = 0 ] || d distill $(parts src "${missing[*]}") --directions $(parts dir "${missing[*]}") --teacher "$teacher" --out "$made" \
        --beam "${BEAM:-1}" --budget "${DISTIL_SECONDS:-120}" --workers 1 --rows "${ROWS:-4096}" --memory 0.5 --device "$device" \
        --engine "${ENGINE:-pytorch}" --dragoman "$dragoman" --chunk "${CHUNK:-250000}"
    # shellcheck disable=SC2086
    [ -e "$work/mixed.turned.src" ] || "$python" -m dragoman_training.multilingual "$work" --turned $later --made "$made"
    : > "$made/mixed.turned.src.made.0"
}

pack_student() {
    local list=() n
    for n in $(cd "$work" && ls mixed.*.src | cut -d. -f2 | grep -v turned | sort -n) turned; do list+=("$n"); done
    until [ -d "$work/made" ]; do sleep 0.5; done
    # shellcheck disable=SC2046
    nice "$python" -m dragoman_training pack --vocab "$work/student/vocab.spm" --source $(parts src "${list[*]}") --target $(parts tgt "${list[*]}") \
        --passes $(parts up "${list[*]}") --directions $(parts dir "${list[*]}") --made "$work/made" --made-workers 1 \
        --processes "$processes" --out "$work/student/train.bin" && touch "$work/student/packed"
}

student() {
    [ ! -e "$work/student/finished" ] || return 0
    [ -e "$work/student/packed" ] || pack_student &
    train_run multilingual-student "$work/student" "${STUDENT_SECONDS:-400}" "${SET_STUDENT:-}"
    wait
}

# both: distils beside the start of the student's training, which begins with real targets and takes the rest as it comes
both() {
    distil &
    student
    wait
}

export_student() {
    local storage
    for storage in f32 i8; do
        "$python" -m dragoman_training.export "$work/student/run/model.pt" -o "$work/en-fr-es-it.$storage.gguf" --storage $storage \
            --name en-fr-es-it --directions "$work/student/directions.json" --default "en fr" --card "$here/recipes/multilingual-student.card.md"
    done
}

for stage in "${stages[@]}"; do
    case $stage in
        text) text; mix ;;
        mix | pack_teacher | teacher | distil | student | both) $stage ;;
        export) export_student ;;
        *) echo "multilingual_student.sh: no stage '$stage'" >&2; exit 2 ;;
    esac
done
