#!/bin/sh
# SPDX-License-Identifier: MIT
# Trains a toy model on the CPU, checks resuming, and compares the exported model and
# distillation with the C program if it is there.
# Needs Debian's python3-torch, python3-sentencepiece, python3-yaml. Usage: training/smoke.sh [WORK_FOLDER]
set -e
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-/usr/bin/python3}
if [ -n "$1" ]; then
    work=$1
else
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
fi
program=""
[ -x "$here/../dragoman" ] && program="$here/../dragoman"
PYTHONPATH=$here "$python" -m dragoman_training smoke --out "$work/smoke" --dragoman "$program"
