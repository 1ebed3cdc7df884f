#!/bin/bash
# A scaling experiment under Slurm, from a clone to plots: submits the jobs of this folder, each after those that it needs.
#
#   bench/scaling/slurm/submit.sh NODES [RANKS_PER_NODE]
#
# Say it in the clone, which all nodes must see. Environment: what scaling.py takes (SUITES, SCALE, ROWS, THREADS, DEVICE,
# RUNS, ROUNDS), and
#
#     RANKS=                 default: powers of two up to NODES * RANKS_PER_NODE
#     MODES="strong weak"
#     SBATCH=                options of sbatch for all jobs: "--partition=p --account=a --time=2:00:00"
#     RUN_SBATCH=            more of them for those that measure: "--gpus-per-task=1"
#     SRUN="srun --mpi=pmix --cpu-bind=none"
#     BUILD=build
#     LOGS=BUILD/bench/slurm
#
# Plots and CSV files are in BUILD/bench/scaling-strong and -weak.
set -euo pipefail
if (($# < 1 || $# > 2)); then
  sed -nE '2,/^set/s/^# ?//p' "$0" >&2
  exit 2
fi
cd "$(dirname "$0")/../../.."
nodes=$1
per_node=${2:-1}
export BUILD=${BUILD:-build} MODES=${MODES:-strong weak} SRUN=${SRUN:-srun --mpi=pmix --cpu-bind=none}
if [[ -z ${RANKS:-} ]]; then
  RANKS=1
  for ((n = 2; n <= nodes * per_node; n *= 2)); do RANKS+=" $n"; done
fi
export RANKS SLOTS=${SLOTS:-$((nodes * per_node))}
LOGS=${LOGS:-$BUILD/bench/slurm}
mkdir -p "$LOGS"

job() {  # job AFTER OPTION... FILE: prints its number
  local after=() options
  [[ -n $1 ]] && after=("--dependency=afterok:$1")
  read -ra options <<<"${SBATCH:-}"
  sbatch --parsable --export=ALL --output="$LOGS/%x-%j.out" "${after[@]}" "${options[@]}" "${@:2}" | cut -d ';' -f 1
}

here=bench/scaling/slurm
read -ra more <<<"${RUN_SBATCH:-}"
build=$(job "" $here/build.sbatch)
load=$(job "$build" $here/load.sbatch)
runs=
for mode in $MODES; do
  # One after the other: a run beside another one would measure that, too.
  run=$(MODE=$mode job "$load${runs:+:${runs##*:}}" --nodes="$nodes" --ntasks-per-node="$per_node" \
    --cpus-per-task="${THREADS:-1}" "${more[@]}" $here/run.sbatch)
  runs+=${runs:+:}$run
done
plot=$(job "$runs" $here/plot.sbatch)
echo "build $build, load $load, runs ${runs//:/ }, plot $plot; logs are in $LOGS"
echo "$plot" >"$LOGS/last_job"
