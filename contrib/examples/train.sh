#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Example of a program with checkpoints, as a shell loop. Its work is counting; its checkpoint is a file with the number.
#
#     gpuq run -t 2h contrib/examples/train.sh
#     STEPS=100 SECONDS_PER_STEP=0.5 ./train.sh                 the same without gpuq
#
# It does not know the deadline: gpuq creates the stop file early enough for a step and a save, as measured so far.
set -eu
steps=${STEPS:-60}
folder=${GPUQ_CHECKPOINT_DIR:-checkpoints}
mkdir -p "$folder"

checkpoint_of() {
    printf '%s/step-%06d.count' "$folder" "$1"
}

# Saves atomically: writes and syncs the data first, then renames the file.
save() {
    unfinished=$folder/.tmp-$$
    echo "$1" >"$unfinished"
    sync "$unfinished"
    mv "$unfinished" "$(checkpoint_of "$1")"
    sync "$folder"
    rm -f "$(checkpoint_of $(($1 - 3)))" # keep the last three
}

step=0
if [ -n "${GPUQ_RESUME_FROM-}" ]; then
    read -r step <"$GPUQ_RESUME_FROM"
    echo "continuing after step $step from $GPUQ_RESUME_FROM"
fi

while [ "$step" -lt "$steps" ]; do
    sleep "${SECONDS_PER_STEP:-1}"
    step=$((step + 1))
    save "$step"
    echo "step $step/$steps"
    rm -f "${GPUQ_SAVE_FILE-}" # a requested save is done now
    if [ -e "${GPUQ_STOP_FILE-}" ] && [ "$step" -lt "$steps" ]; then
        echo "saved; leaving as asked"
        exit 85
    fi
done
