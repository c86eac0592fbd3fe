#!/usr/bin/env bash
# What the program decides and says, as digests: equal before and after a change that is to keep
# behaviour.
#
#   tests/digests.sh FOLDER [FROM..TO]
#
# FOLDER keeps what is made once and read again after the change: three recorded demos and a
# generated month of jobs. FROM..TO are the seeds of the fault worlds, 2,000 unless told otherwise.
# Each line is a name and a digest. Lines about fault worlds, replays and simulations tell of
# decisions; `plan` and `explain` tell of every byte that is printed. Traces are read where
# GPU_BATCH_TRACES says, else beside the repository.
set -euo pipefail
folder=$(mkdir -p "$1" && cd "$1" && pwd)
seeds=${2:-0..2000}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
traces=${GPU_BATCH_TRACES:-$PWD/../shared/traces}
cargo build --quiet --release --locked --workspace
bin=$(cargo metadata --format-version 1 --no-deps --offline | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/release
export GPU_BATCH_NOW=2026-11-21T10:00:00Z

digest() { printf '%-40s %s\n' "$1" "$(sha256sum | cut -c 1-16)"; }

printf '%-40s ' "fault worlds"
"$bin/chaos" --digest "$seeds" || true
printf '%-40s ' "calm worlds"
"$bin/chaos" --digest "$seeds" --without-faults || true

for command in plan explain; do
    for case in tests/data/"$command"/*/; do
        [ -e "$case/input.yaml" ] || continue
        asked=()
        if [ -e "$case/arguments" ]; then read -ra asked < <(tr '\n' ' ' <"$case/arguments") || true; fi
        if [ "$command" = plan ]; then asked=(-f input.yaml "${asked[@]}"); else asked+=(-f input.yaml); fi
        for form in "" "-o json"; do
            # shellcheck disable=SC2086
            (cd "$case" && "$bin/gpu-batch" "$command" "${asked[@]}" $form 2>&1 || true)
        done
    done | digest "$command of the stored cases"
done

for seed in 1 2 3; do
    journal=$folder/demo-$seed.journal
    if [ ! -e "$journal" ]; then
        "$bin/gpu-batch" demo --embedded --chaos --seed $seed --speed 1000 --record "$journal" >/dev/null
    fi
    # The first line says when it was recorded; the time that it took differs.
    { "$bin/gpu-batch" replay "$journal" 2>&1 || true; } | sed 's/ in [0-9.]* s:/:/' | digest "replay of demo $seed"
done

simulate() { rm -rf "$folder/out" && "$bin/gpu-batch" simulate "$@" --out "$folder/out" >/dev/null; }
tables() { (cd "$folder/out" && cat -- *.csv) | digest "$1"; }
if [ ! -e "$folder/month" ]; then
    "$bin/gpu-batch" simulate generate --like philly --seed 1 --out "$folder/month" >/dev/null
fi
simulate jobs --trace "$folder/month/trace.csv" --queues "$folder/month/queues.csv" --policy fifo,sjf,first-fit,drf
tables "generated month"
simulate jobs --trace "$traces/philly/philly_jobs_sep_oct.csv.gz" --queues "$traces/philly/philly_vc_nodes.csv" --policy fifo,sjf,first-fit,drf
tables "philly"
simulate openb --nodes "$traces/openb/openb_node_list_gpu_node.csv" --pods "$traces/openb/openb_pod_list_default.csv.gz" \
    --order "$traces/openb/order_default.csv.gz" --policy fgd,bestfit,random --seeds 42-43
tables "openb"
