#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# training/models_en_de.sh DATA WORK [STAGE...]: the models that ship, English to German and back, from text to scored files.
#
# DATA holds en-de/NAME.LANG.xz (mined text, too: mine/README.md), other pairs for their English text, and test sets as
# test/en-de/SET.LANG. Stages, in this order: text (clean, sample, vocabularies), back (the other direction's model translates the
# targets, which become synthetic sources), teacher, distil, student, export (shortlist and i8 file), tune, score; both: distil
# beside student, which begins with real targets. Stages can run on different machines: text, export, tune and score need
# no GPU.
# DIRECTIONS ("en-de de-en"): one of them alone. TEACHER: a Hugging Face folder or model file of that one direction, instead of
# the stages back and teacher. BACK: the model that translates back (models/ of the other direction). WARM: a model file that
# the student begins with, as a rule the one that ships; then its vocabulary is taken, too.
# BACK_SECONDS, TEACHER_SECONDS, DISTIL_SECONDS, STUDENT_SECONDS: budgets (120, the recipe's, 240, the recipe's); SET_TEACHER and
# SET_STUDENT: settings of train ("a.b=value ..."); BEAM, NBEST: of distillation (4, 4); TUNE_TIME, TUNE_BUDGET (20m, 0.1).
# DRAGOMAN: the program, which translates (with its cuda plug-in on a GPU); ENGINE=pytorch distils without it.
# tests/system/models_pipeline is a rehearsal on a CPU.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
data=${1:?usage: training/models_en_de.sh DATA WORK [STAGE...]}
work=${2:?usage: training/models_en_de.sh DATA WORK [STAGE...]}
shift 2
stages=("$@")
[ $# -gt 0 ] || stages=(text back teacher distil student export tune score)
read -ra directions <<< "${DIRECTIONS:-en-de de-en}"
engine=${ENGINE:-dragoman}
. "$here/stages.sh"
if [ -n "${TEACHER:-}${WARM:-}" ] && [ ${#directions[@]} != 1 ]; then
    echo "models_en_de.sh: TEACHER and WARM are of one of DIRECTIONS" >&2
    exit 2
fi

text() {
    local name direction weigh=() extra=()
    for name in tatoeba=3 multi30k=2 everyday=3 wwwl10n=2; do weigh+=(--upsample "$name"); done     # against Europarl
    for name in kde=40000 gnome=40000 gnu=20000 apps=40000 qt-apps=15000 descriptions=50000 ding-words=60000; do
        weigh+=(--take "$name")
    done
    for name in ${EXTRA:-en-fr:europarl,tatoeba en-es:europarl,tatoeba}; do
        [ ! -d "$data/${name%%:*}" ] || extra+=(--extra "$data/$name")
    done
    [ -s "$work/text/pairs.up" ] ||
        d prepare "$data/en-de" en de --out "$work/text" --limit "${LIMIT:-0}" "${weigh[@]}" "${extra[@]}"
    [ -s "$work/even/pairs.up" ] || d prepare "$data/en-de" en de --out "$work/even" --limit "${LIMIT:-0}" --take europarl=200000 \
        --take msd365=40000 --take mssmb=20000 --take phpdocs=5000 --take gimphelp=4000 --take descriptions=30000 --take kde=20000 \
        --take gnome=20000 --take gnu=10000 --take apps=20000 --take manpages=20000 --take ding-words=20000 > /dev/null
    [ -s "$work/text/templates.de" ] || d templates --out "$work/text/templates" --count "${TEMPLATES:-6000}"
    pieces teacher "${TEACHER_SIZE:-16000}"
    pieces student "${STUDENT_SIZE:-8000}"
    for direction in "${directions[@]}"; do
        for name in teacher student; do
            folder $name
        done
    done
}

# pieces NAME SIZE: a joint vocabulary, of a sample that Europarl does not shape
pieces() {
    [ ! -s "$work/$1.spm" ] || return 0
    d vocab "$work/even/pairs.en" "$work/even/pairs.de" --prefix "$work/$1" --size "$2" --sentences "${SENTENCES:-2000000}"
    mv "$work/$1.model" "$work/$1.spm"
}

# folder NAME: vocabulary and validation text of teacher or student
folder() {
    local there=$work/$direction/$1 language
    [ ! -s "$there/vocab.spm" ] || return 0
    mkdir -p "$there"
    for language in en de; do
        head -n "${VALID_LINES:-3000}" "$data/test/en-de/newstest2013.$language" > "$there/newstest2013.$language"
    done
    if [ "$1" = student ] && [ -n "${WARM:-}" ]; then
        "$python" -m dragoman_training.model_file "$WARM" "$there/vocab.spm"
    else
        cp "$work/$1.spm" "$there/vocab.spm"
    fi
}

# texts LANG: what there is in a language
texts() { for part in pairs extra; do [ ! -s "$work/text/$part.$1" ] || echo "$work/text/$part.$1"; done; }

# translate MODEL FOLDER SECONDS BEAM FILE...
translate() {
    local model=$1 out=$2 seconds=$3 beam=$4 nbest=${NBEST:-4}
    shift 4
    [ "$beam" != 1 ] || nbest=1
    d distill "$@" --teacher "$model" --out "$out" --engine "$engine" --dragoman "$dragoman" --device "$device" \
        --budget "$seconds" --beam "$beam" --nbest "$nbest" --workers 1 --rows "${ROWS:-4096}" --chunk "${CHUNK:-250000}"
}

back() {
    [ -z "${TEACHER:-}" ] || return 0
    local file name known made=$there/back model=${BACK:-$here/../models/$target-$source.gguf}
    mkdir -p "$made"
    for file in $(texts "$target"); do
        name=$(basename "$file" ".$target")
        [ -e "$made/$name.$source" ] && continue
        [ -e "$made/$name.$target.made.0" ] || engine=dragoman translate "$model" "$made" "${BACK_SECONDS:-120}" 1 "$file"
        known=()
        [ ! -s "$work/text/$name.$source" ] || known=(--real "$work/text/$name.$source")
        d turn "$file" "$made" "${known[@]}" --out "$made/$name.$source.tmp" "$made/$name.$target"
        mv "$made/$name.$source.tmp" "$made/$name.$source"
    done
}

# turned LANG: sources or targets of what was translated back
turned() { for part in pairs extra; do [ ! -s "$there/back/$part.$source" ] || echo "$there/back/$part.$1"; done; }

# dashes LIST: a dash for each
dashes() { for _ in $1; do echo -; done; }

teacher() {
    [ -z "${TEACHER:-}" ] && [ ! -e "$there/teacher/finished" ] || return 0
    local sources targets
    sources=$(turned "$source") targets=$(turned "$target")
    # shellcheck disable=SC2046,SC2086
    [ -s "$there/teacher/train.bin" ] || d pack --vocab "$there/teacher/vocab.spm" --source "$work/text/pairs.$source" $sources \
        --target "$work/text/pairs.$target" $targets --passes "$work/text/pairs.up" $(dashes "$sources") --no-augment \
        --processes "$processes" --out "$there/teacher/train.bin"
    train_run "$direction-teacher" "$there/teacher" "${TEACHER_SECONDS:-}" "${SET_TEACHER:-}"
}

distil() {
    local teacher=${TEACHER:-$there/teacher/run} file missing=()
    mkdir -p "$there/made"
    [ -n "${TEACHER:-}" ] || ln -sf ../vocab.spm "$teacher/vocab.spm"
    for file in $(texts "$source"); do
        [ -e "$there/made/$(basename "$file").made.0" ] || missing+=("$file")
    done
    [ ${#missing[@]} = 0 ] || translate "$teacher" "$there/made" "${DISTIL_SECONDS:-240}" "${BEAM:-4}" "${missing[@]}"
}

# The first part needs no teacher: what was translated back, or else the templates. Translations of the others are waited for.
pack_student() {
    local sources=() targets=() passes=() file name
    mkdir -p "$there/made"
    for file in $(turned "$source"); do
        name=turned-$(basename "$file")
        ln -sf "../back/$(basename "$file")" "$there/made/$name"
        sources+=("$there/made/$name") targets+=("${file%."$source"}.$target") passes+=(-)
        : > "$there/made/$name.made.0"
    done
    sources+=("$work/text/templates.$source") targets+=("$work/text/templates.$target") passes+=(-)
    : > "$there/made/templates.$source.made.0"
    for file in $(texts "$source"); do
        sources+=("$file")
        name=${file%."$source"}
        targets+=("$([ -s "$name.$target" ] && echo "$name.$target" || echo -)")
        passes+=("$([ "$name" = "$work/text/pairs" ] && echo "$name.up" || echo -)")
    done
    nice "$python" -m dragoman_training pack --vocab "$there/student/vocab.spm" --source "${sources[@]}" --target "${targets[@]}" \
        --passes "${passes[@]}" --made "$there/made" --made-workers 1 --processes "$processes" --out "$there/student/train.bin"
    touch "$there/student/packed"
}

student() {
    [ ! -e "$there/student/finished" ] || return 0
    local packing="" warm=${WARM:-}
    if [ ! -e "$there/student/packed" ]; then
        rm -f "$there/student/train.bin"
        pack_student &
        packing=$!
    fi
    [ -z "$warm" ] || warm="warm.model=$(realpath "$warm") warm.whole=true"
    train_run "$direction-student" "$there/student" "${STUDENT_SECONDS:-}" "$warm ${SET_STUDENT:-}"
    [ -z "$packing" ] || wait "$packing"
}

both() {
    distil &
    student
    wait
}

export_student() {
    local run=$there/student/run made=$work/$direction.gguf folder=$there/lists
    [ ! -e "$there/exported" ] || return 0
    mkdir -p "$folder"
    "$python" -m dragoman_training.export "$run/model.pt" -o "$made" --storage i8 --source "$source" --target "$target" \
        --name "$direction-student" --card "$here/recipes/$direction-student.card.md"
    paste -d '\t' "$work/text/pairs.$source" "$there/made/pairs.$source.made" | awk -F '\t' '$2 != ""' > "$folder/both"
    cut -f 1 "$folder/both" > "$folder/source"
    cut -f 2 "$folder/both" > "$folder/target"
    "$dragoman" shortlist -q -m "$made" -o "$folder/draft.gguf" --best 100 --threshold 0.0001 --write-lexicon "$folder/hard.lex" \
        "$folder/source" "$folder/target"
    d lexicon "$run/lexicon.npz" --vocab "$there/student/vocab.spm" --join "$folder/hard.lex" --out "$folder/both.lex"
    "$dragoman" shortlist -q -m "$made" -o "$made" --lexicon "$folder/both.lex" --best 100 --threshold 0.0005 \
        --frequent-text "$folder/target"
    touch "$there/exported"
}

# Defaults of the file: the fastest settings that lose next to nothing.
tune() {
    [ ! -e "$there/tuned.json" ] || return 0
    local text=$there/student/newstest2013
    "$dragoman" tune -q -m "$work/$direction.gguf" -i "$text.$source" -r "$text.$target" --budget "${TUNE_BUDGET:-0.1}" \
        --time "${TUNE_TIME:-20m}" --threads 1 -o "$work/$direction.tuned.gguf" --json "$there/tuned.json.tmp"
    mv "$there/tuned.json.tmp" "$there/tuned.json"
}

# bleu SET NAME OPTION...: translates once, prints BLEU and chrF and how likely the difference from the file that ships is chance
bleu() {
    local set=$1 name=$2 out=$there/scores reference=$data/test/en-de/$1.$target against=()
    [ "$name" = ships ] || against=(--compare "$there/scores/$set.ships")
    shift 2
    [ -s "$out/$set.$name" ] || { "$dragoman" translate -q "$@" < "$data/test/en-de/$set.$source" > "$out/$set.$name.tmp" &&
        mv "$out/$set.$name.tmp" "$out/$set.$name"; }
    "$dragoman" eval "$out/$set.$name" "$reference" "${against[@]}"
}

score() {
    local set file=$work/$direction.gguf lines=$here/../tests/data/everyday
    mkdir -p "$there/scores"
    {
        for set in ${SETS:-newstest2014 newstest2017 newstest2019 flores-test iwslt17}; do
            echo "## $set, $direction: what ships; the new one as it is, at beam 1, at beam 4 with the whole vocabulary, tuned"
            bleu "$set" ships -m "$here/../models/$direction.gguf"
            bleu "$set" new -m "$file"
            bleu "$set" beam1 -m "$file" --beam 1
            bleu "$set" all -m "$file" --beam 4 --shortlist all
            [ ! -s "$work/$direction.tuned.gguf" ] || bleu "$set" tuned -m "$work/$direction.tuned.gguf"
        done
        "$here/../tests/system/everyday" "$dragoman" "$file" "$lines/$direction.tsv"
        for set in protected faults; do
            "$here/../tests/system/everyday" "$dragoman" "$file" "$lines/$set.tsv" --direction "$direction"
        done
    } | tee "$work/$direction.scores.txt"
}

for stage in "${stages[@]}"; do
    if [ "$stage" = text ]; then
        text
        continue
    fi
    for direction in "${directions[@]}"; do
        source=${direction%-*} target=${direction#*-} there=$work/$direction
        case $stage in
            back | teacher | distil | student | both | tune | score) $stage ;;
            export) export_student ;;
            *) echo "models_en_de.sh: no stage '$stage'" >&2; exit 2 ;;
        esac
    done
done
