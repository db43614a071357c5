# shellcheck shell=bash
# Shared by the scripts: go to the root of the tree, run named steps quietly, say one line about each.
# The output of a step goes to .cache/logs/STEP.log and is shown (its end) only when the step fails.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1
logs=$root/.cache/logs
mkdir -p "$logs"
export PATH="$root/.venv/bin:$PATH"

say() { printf '%s\n' "$*"; }

fail() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# Shows the last line of a growing file while `pid` runs; only on a terminal.
watch_log() {
  local name=$1 log=$2 pid=$3 last
  while kill -0 "$pid" 2>/dev/null; do
    last=$(tail -n 1 "$log" 2>/dev/null | tr -d '\r' | cut -c1-70)
    printf '\r\033[K%-12s %s' "$name" "$last"
    sleep 0.5
  done
  printf '\r\033[K'
}

# step NAME COMMAND...: one line, "NAME OK 12 s"; returns the command's failure after showing its last lines.
# A function as COMMAND stops at its first error only where `step` itself stands in no condition.
step() {
  local name=$1 log=$logs/$1.log start=$SECONDS status=0
  shift
  "$@" >"$log" 2>&1 </dev/null &
  local pid=$!
  if [ -t 1 ]; then watch_log "$name" "$log" "$pid"; fi
  wait "$pid" || status=$?
  if [ "$status" -eq 0 ]; then
    printf '%-12s OK      %4d s\n' "$name" $((SECONDS - start))
  else
    printf '%-12s FAILED  %4d s  (the end of %s follows)\n' "$name" $((SECONDS - start)) "${log#"$root"/}"
    tail -n "${STEP_TAIL:-40}" "$log" | sed 's/^/    /'
  fi
  return "$status"
}

# missing_packages LIST: the packages of scripts/packages/LIST.txt that are not installed.
missing_packages() {
  local wanted installed
  wanted=$(sed 's/#.*//' "scripts/packages/$1.txt" | tr -s ' \n' '\n' | sort -u)
  # dpkg-query fails where it does not know a package: that one is missing.
  # shellcheck disable=SC2086  # one word a package
  installed=$({ dpkg-query -W -f='${db:Status-Status} ${Package}\n' $wanted 2>/dev/null || true; } |
    sed -n 's/^installed //p' | sort -u)
  comm -23 <(printf '%s\n' "$wanted" | sed '/^$/d') <(printf '%s\n' "$installed")
}

apt_install() {
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then as_root=(sudo -n); fi
  "${as_root[@]}" apt-get update -q -o Acquire::Retries=3
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
    -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 "$@"
}

# need_packages LIST: installs what is missing; says which command to run where it may not.
need_packages() {
  local missing
  if ! command -v dpkg-query >/dev/null; then
    say "packages     not a Debian system: please see to the packages of scripts/packages/$1.txt yourself"
    return 0
  fi
  mapfile -t missing < <(missing_packages "$1")
  if [ "${#missing[@]}" -eq 0 ]; then return 0; fi
  if [ "$(id -u)" -ne 0 ] && ! sudo -n true 2>/dev/null; then
    fail "packages are missing; please run: sudo apt-get install ${missing[*]}"
  fi
  say "packages     installing ${missing[*]}"
  step "packages" apt_install "${missing[@]}"
}
