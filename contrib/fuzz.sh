#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Runs libFuzzer on the parsers of policies, traces, samples, training files, tickets, frames and ssh's configuration, in parallel, starting from
# valid files. Failing inputs are stored in build/fuzz/found and tried first the next time; the corpus is in build/fuzz/corpus.
# usage: contrib/fuzz.sh [SECONDS]     for each target (default: 60)
set -Eeuo pipefail
cd "$(dirname "$0")/.."
. contrib/common.sh
seconds=${1:-60}
case $seconds in '' | *[!0-9]*) fail "usage: contrib/fuzz.sh [SECONDS]" ;; esac

step "building the fuzz targets"
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --parallel "$(nproc)"

here=build/fuzz
mkdir -p $here/corpus/{policy,trace,samples,tfevents,training,ccache,remote,ssh_facts} $here/found/{policy,trace,samples,tfevents,training,ccache,remote,ssh_facts}
cp policies/*.yaml tests/fuzz/seeds-policy/* $here/corpus/policy/
zcat contrib/traces/*.csv.gz | sed -n 1,20p >$here/corpus/trace/philly.csv
cp tests/fuzz/seeds-trace/* $here/corpus/trace/
cp tests/fuzz/seeds-tfevents/* $here/corpus/tfevents/
cp tests/fuzz/seeds-training/* $here/corpus/training/
cp tests/fuzz/seeds-ccache/* $here/corpus/ccache/
cp tests/fuzz/seeds-remote/* $here/corpus/remote/
cp tests/fuzz/seeds-ssh_facts/* $here/corpus/ssh_facts/

# Dictionaries with names of keys and columns, which random inputs rarely contain.
words() {
    grep -oE '[a-z_]{3,}' "$@" | sort -u | sed 's/.*/"&"/'
}
words -h policies/*.yaml >$here/policy.dict
words -h $here/corpus/trace/* >$here/trace.dict
echo '"GPU-"' >$here/samples.dict
echo '"scalars"' >$here/tfevents.dict
echo '"krbtgt"' >$here/ccache.dict
words -h $here/corpus/training/* >$here/training.dict
echo '"gpuq-serve"' >$here/remote.dict
words -h $here/corpus/ssh_facts/* >$here/ssh_facts.dict

pids=()
for target in policy trace samples tfevents training ccache remote ssh_facts; do
    step "fuzzing: $target, $seconds s"
    $here/bin/fuzz_$target -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
        -dict=$here/$target.dict -artifact_prefix=$here/found/$target/ -print_final_stats=1 -verbosity=0 \
        $here/corpus/$target $here/found/$target >$here/$target.log 2>&1 &
    pids+=($!)
done
status=0
for target in policy trace samples tfevents training ccache remote ssh_facts; do
    if wait "${pids[0]}"; then
        step "$target: $(sed -n 's/stat::number_of_executed_units: *//p' $here/$target.log) texts, nothing found"
    else
        status=1
        tail -40 $here/$target.log >&2
        step "$target: found something, in $here/found/$target"
    fi
    pids=("${pids[@]:1}")
done
exit $status
