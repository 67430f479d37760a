#!/bin/bash
# Builds dlockfs and runs its tests.
#
#     tests/run.sh                 all but the heavy ones: unit tests, simulation and system tests
#     tests/run.sh --heavy         the heavy ones, which look at the sources, take other compilers, or a machine of their own
#     tests/run.sh --all           both, but for the package's service on one of two releases (package-bookworm)
#     tests/run.sh NAME...         only these: a unit test ("engine/delay"), "unit", "sim", or a system test ("flock-tool"),
#                                  or those of a folder of tests/system ("records/")
#     tests/run.sh --list          runs none, and prints the system tests by folder, with what each is about
#     tests/run.sh --sanitize ...  the same with a build that has AddressSanitizer and UndefinedBehaviorSanitizer; without
#                                  names it leaves out those that it would tell nothing new of
#
# Installs Debian packages that are missing. Builds in build/ or build-sanitize/; what the system tests wrote is in
# system-logs/ there. Prints a line for each test, then those that failed once more, each with its reason, and at the end
# "N passed, N failed".
#
# Without names, up to three tests that failed are run once more, each alone, when all others are over. What passes then is
# said to be flaky, with the reason that it gave first; its first log is in first-logs/ of the build folder. What tells of a
# violation (of exclusion, or of what a test double or a model says; a crash; a report of a sanitizer) is never run again.
#
# From the environment: JOBS, how many system tests run at a time (2), without those that are busy; LIMIT, how many seconds
# one of them may take (300; one that is busy four times that); DLOCKFS_BUILD, another build folder; DAEMON_USER, as whom daemons of
# root go on: dlockfs, whom only the tests see if this machine has no such user, or, as with --sanitize, root.

set -euo pipefail

tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source_dir=$(dirname "$tests")
jobs=${JOBS:-2}
build=${DLOCKFS_BUILD:-$source_dir/build}
setup=()
limit=${LIMIT:-300}
sanitize=
heavy=
other_libraries=(store-tls)   # only by name: what Debian's libraries cannot do
one_of_two=(package-bookworm) # only by name and with --heavy: what the other release tells as well
built_again=(container-image) # only by name: it makes the package once more, as package-files and package-trixie do
heavy_tests=(serve-browser package-bookworm package-trixie package-files jobs-systemd etcd-newer requirements valgrind clang threads shellcheck fuzz static-checks)

# shellcheck source=processes.sh
. "$tests/processes.sh"
# shellcheck source=packages.sh
. "$tests/packages.sh"
# shellcheck source=list.sh
. "$tests/list.sh"

[ "${CI:-}" != true ] || setup+=(--werror)

names=()
for argument; do
    case $argument in
        --sanitize)
            build=${DLOCKFS_BUILD:-$source_dir/build-sanitize}
            # With the usual optimization and debug information it takes twice as long to build. With less the compiler
            # no longer sees what fits into a text.
            setup+=("-Db_sanitize=address,undefined" -Db_lundef=false -Doptimization=1 -Ddebug=false
                "-Dc_args=-g1 -Wno-format-truncation")
            sanitize=yes
            export DAEMON_USER=${DAEMON_USER:-root} # so that CI tests both; and reports are written by root
            export LSAN_OPTIONS="suppressions=$tests/lsan.supp:print_suppressions=0"
            ;;
        --heavy) names+=("${heavy_tests[@]}") ;;
        --all) heavy=yes ;;
        --list)
            system_tests_index
            exit 0
            ;;
        -h | --help)
            sed -n '2,/^$/s/^# \{0,1\}//p' "$0"
            exit 0
            ;;
        -*)
            echo "$0: no such option: $argument" >&2
            exit 2
            ;;
        */) mapfile -t -O ${#names[@]} names < <(system_tests "$argument") ;;
        *) names+=("$argument") ;;
    esac
done

# System tests that a sanitized run leaves out: those that run nothing of the build, those that measure or need its speed, and
# those that take their time for what the servers and clocks do, with faults that chaos and record-faults inject as well.
plain_only="layers modules models completion mutants quickstart manual documents unit-file bench idle-cost flat-cost many-watches many-locks many-waiters long-queue
    lease-cut lease-follower lease-idle lease-leader lease-leader-stalled lease-quorum lease-stopped lease-heartbeat
    hang hang-stop guard-busy guard-late guard-stopped stopped-grant disk-stall wall-clock skewed-clock hang-kernel rolling-restart restart-chaos
    kill-chaos other-servers ensemble-failover zookeeper-restart zookeeper-pause store-wiped record-programs
    record-fairness record-model record-model-hosts flock-n-hosts even-servers etcd-servers etcd-lease
    etcd-revoked etcd-revoked-late etcd-left-behind etcd-clocks zookeeper-clocks long-election stat-race background status-pause
    chaos-check programs-data run-again etcd-auth etcd-move-leader ipv6 hardening told-first store-back etcd-back
    outages etcd-grpc-proxy exclusive-open-flock small-packets large-data local-sessions store-space both-vanish user-upgrade
     program-texts files-suites package-version ansible-role kubernetes redis-redlock redis-restart redis-limits faults faults-check faults-seeds"
plain_only=${plain_only//$'\n'/ }

# System tests that use the processors all the time. Two of them run besides those that wait most of theirs, for servers and
# clocks, and take what these leave. etcd-newer waits as well.
busy_tests="mutants models record-model record-model-hosts ${heavy_tests[*]/etcd-newer/}"
busy_at_once=2

# Tests whose calls are random, and whose answers are compared with a model's: what is wrong there is a violation.
model_tests="sim sim-etcd sim-redis sim-drift-zookeeper sim-drift-etcd sim-drift-redis sim-peers-zookeeper sim-peers-etcd record-random record-model record-model-hosts files-random"

packages=(meson ninja-build gcc libc6-dev pkgconf libfuse3-dev fuse3 libzookeeper-mt-dev libinih-dev uthash-dev
    libjansson-dev libncurses-dev libsystemd-dev libxxhash-dev libseccomp-dev libcmocka-dev libssl-dev libsasl2-dev
    libnghttp2-dev libprotobuf-c-dev protobuf-c-compiler libc-ares-dev libhiredis-dev libmicrohttpd-dev curl openssl etcd-server etcd-client
    redis-server redis-tools
    zookeeper libcurator-recipes-java openjdk-17-jdk-headless patch spin python3 python3-kazoo python3-redis python3-jsonschema python3-jinja2 python3-yaml perl-base util-linux procps mount iproute2 iptables strace jq tmux
    ctdb e2fsprogs stress-ng mandoc systemd zsh fish
    lockfile-progs procmail liblockfile-bin mutt emacs-nox gpg gpg-agent git nq libfile-nfslock-perl python3-filelock libpython3.11-testsuite passwd dash logrotate cvs)
heavy_packages=(shellcheck build-essential debhelper lintian systemd-container mmdebstrap musl-tools
    chromium chromium-driver pngquant clang-14 libclang-rt-14-dev clang-tidy-14 clang-format-14 cppcheck valgrind)
for name in "${names[@]}" ${heavy:+"${heavy_tests[@]}"}; do
    [[ " ${heavy_tests[*]} " == *" $name "* ]] || continue
    packages+=("${heavy_packages[@]}")
    break
done

install_packages() {
    local missing
    packages_find_missing "to be installed first" "${packages[@]}" || exit 1
    [ ${#missing[@]} -eq 0 ] || packages_install "${missing[@]}" >/dev/null 2>&1 ||
        { apt-get -qq update && packages_install "${missing[@]}" >/dev/null; }
}

passed=0
skipped=0
failures=() # a line each
flaky=()    # a line each

again=()             # tests that are to be run once more
again_max=3          # with more of them the run has failed
again_over=          # not empty: nothing is run once more
declare -A reason_of # by name: of their failure

# report PASS|FAIL|SKIP NAME SECONDS [REASON]
report() {
    local line
    line=$(printf '%s %-24s %6.1f s%s' "$1" "$2" "$3" "${4:+  $4}")
    echo "$line"
    case $1 in
        PASS) passed=$((passed + 1)) ;;
        FAIL) failures+=("$line") ;;
        SKIP) skipped=$((skipped + 1)) ;;
    esac
}

# is_violation NAME LOG
is_violation() {
    [[ " $model_tests " == *" $1 "* ]] ||
        grep -qE 'violation: |VIOLATION: |[a-zA-Z]Sanitizer|sanitizer report:|runtime error: |the daemon of [^ ]+ ended with status|crashed by signal|core dumped|Segmentation fault|\bAborted\b' "$2"
}

# failed NAME SECONDS REASON LOG: a test has failed, and may be run once more.
failed() {
    local first=$build/first-logs/${1//\//_}.log
    if [ -n "$again_over" ] || is_violation "$1" "$4"; then
        report FAIL "$1" "$2" "$3"
    else
        printf 'fail %-24s %6.1f s  %s\n' "$1" "$2" "$3"
        mkdir -p "${first%/*}"
        cp "$4" "$first"
        again+=("$1")
        reason_of[$1]=$3
    fi
    tail -n 60 "$4" | sed 's/^/     /'
}

finish() {
    local failed=${#failures[@]}
    [ ${#flaky[@]} -eq 0 ] || printf '%s\n' "" "${flaky[@]}"
    [ "$failed" -eq 0 ] || printf '%s\n' "" "${failures[@]}"
    times >"$build/times"
    echo "$SECONDS s, $(tail -n 1 "$build/times" | tr ms '  ' | awk '{ printf "%.0f", 60 * ($1 + $3) + $2 + $4 }') s of CPU"
    echo "$passed passed, $failed failed$([ "$skipped" -eq 0 ] || echo ", $skipped skipped")"
    [ "$failed" -eq 0 ] || exit 1
    exit 0
}

build_all() {
    local begin=$SECONDS log
    mkdir -p "$build"
    log=$build/build.log
    # A folder that the quick start made knows nothing of tests yet.
    if { [ ! -e "$build/build.ninja" ] || setup+=(--reconfigure); } &&
        meson setup "$build" "$source_dir" -Dtests=enabled -Dunknown_calls=trapped "${setup[@]}" >"$log" 2>&1 &&
        meson compile -C "$build" >>"$log" 2>&1; then
        if grep -q 'warning:' "$log"; then
            grep 'warning:' "$log" | sort -u | sed 's/^/     /'
        fi
        return
    fi
    tail -n 40 "$log" | sed 's/^/     /'
    report FAIL build $((SECONDS - begin))
    finish
}

# The unit tests and simulations that were asked for, one name a line.
meson_tests() {
    meson introspect --tests "$build" | /usr/bin/python3 -c '
import json, sys
wanted = sys.argv[1:]
for test in json.load(sys.stdin):
    suites = [suite.rpartition(":")[2] for suite in test["suite"]]
    if not wanted or test["name"] in wanted or set(suites) & set(wanted):
        print(test["name"])
' "$@"
}

run_meson_tests() {
    local result name seconds reason
    rm -f "$build/meson-logs/testlog.json"
    meson test -C "$build" --no-rebuild --timeout-multiplier 5 "$@" >"$build/meson-test.log" 2>&1 || true
    [ -e "$build/meson-logs/testlog.json" ] || tail "$build/meson-test.log"
    while IFS=$'\t' read -r result name seconds reason; do
        if [ "$result" = FAIL ] && [ "$name" != meson ]; then
            failed "$name" "$seconds" "$reason" "$build/meson-logs/failed-${name//\//_}.log"
        else
            report "$result" "$name" "$seconds" "$reason"
        fi
    done < <(/usr/bin/python3 - "$build/meson-logs" "$#" <<'END'
import json, sys
folder, expected = sys.argv[1], int(sys.argv[2])

def why(said):
    """The property that does not hold, or what a sanitizer says, behind the input of a fuzz target."""
    name = ""
    for line in said.splitlines():
        if "/corpus/" in line:
            name = " " + line.rpartition("/corpus/")[2] + ":"
        if any(mark in line for mark in ("does not hold: ", "runtime error: ", "SUMMARY: ")):
            return name + " " + line
    return name

results = {"OK": "PASS", "EXPECTEDFAIL": "PASS", "SKIP": "SKIP"}
seen = 0
try:
    with open(folder + "/testlog.json") as log:
        for test in map(json.loads, log):
            name = test["name"].rpartition(" / ")[2]
            result = results.get(test["result"], "FAIL")
            if result == "FAIL":
                with open(f"{folder}/failed-{name.replace('/', '_')}.log", "w") as out:
                    print(test.get("stdout") or "", test.get("stderr") or "", file=out)
                    if test["returncode"] < 0:
                        print("crashed by signal", -test["returncode"], file=out)
            reason = "" if result == "PASS" else test["result"].lower()
            if result == "FAIL":
                reason += why(test.get("stderr") or "")
            if name.startswith("sim"): # tells how much it has simulated
                reason += (test.get("stdout") or "").strip().rpartition("sim: ")[2].partition("\n")[0]
            print(result, name, test["duration"], reason, sep="\t")
            seen += 1
except FileNotFoundError:
    pass
if seen != expected:
    print("FAIL", "meson", 0, f"{seen} of {expected} tests were run", sep="\t")
END
)
}

folder=           # holds the folders of the tests that run
running=()        # process ids of the tests that run
busy=0            # how many of them are busy
declare -A name_of # by process id
declare -A begin_of

# Ends what a test may have left, by what it wrote down in its folder, and in those of its scenes, and of tests that it runs itself
# (etcd-newer). What is mounted in one folder is not looked into before its daemon has ended.
sweep() {
    local below pids
    for below in "" "/*" "/*/*"; do
        # shellcheck disable=SC2086
        for pids in "$folder/$1"$below/pids; do
            processes_end "${pids%/pids}"
        done
    done
    mounts_end "$folder/$1"
    [ ! -e "$folder/$1" ] || folder_remove "$folder/$1"
}

# left_of NAME: the processes of a test that run, by the folder in their environment.
left_of() {
    grep -lsxzF "DLOCKFS_TEST_DIR=$folder/$1" /proc/[0-9]*/environ | tr -cd '0-9\n'
}

# end_left NAME: ends the processes that a test left behind; fails if there are any that do not end by themselves in 20 s.
end_left() {
    local attempt process left
    for ((attempt = 0; attempt < 200; attempt++)); do
        mapfile -t left < <(left_of "$1")
        [ ${#left[@]} -gt 0 ] || return 0
        sleep 0.1
    done
    for process in "${left[@]}"; do
        echo "failed: left behind: process $process, $(tr '\0' ' ' <"/proc/$process/cmdline")"
        kill -KILL "$process" 2>/dev/null || true
    done
    return 1
}

# shellcheck disable=SC2317
on_exit() {
    local process
    trap - EXIT
    for process in "${running[@]}"; do
        kill "$process" 2>/dev/null || true
    done
    for process in "${running[@]}"; do
        wait "$process" 2>/dev/null || true
        sweep "${name_of[$process]}"
    done
    [ -z "$folder" ] || rmdir "$folder"
}

# What a system test took of the processors, with its children.
cpu_seconds() {
    [ ! -e "$logs/$1.times" ] ||
        tr ms '  ' <"$logs/$1.times" | awk '{ sum += 60 * ($1 + $3) + $2 + $4 } END { printf "%.1f s of CPU", sum }'
}

# start_system_test NAME LIMIT [COMMAND...]: by the command.
start_system_test() {
    mkdir "$folder/$1"
    rm -f "$logs/$1.times"
    DLOCKFS_BUILD=$build DLOCKFS_TEST_DIR=$folder/$1 DLOCKFS_TEST_TIMES=$logs/$1.times \
        "${@:3}" timeout --kill-after=30 "$2" bash "$(system_test "$1")" >"$logs/$1.log" 2>&1 </dev/null &
    running+=($!)
    name_of[$!]=$1
    begin_of[$!]=$EPOCHREALTIME
}

end_system_test() {
    local process status=0 name seconds other left=()
    wait -n -p process "${running[@]}" 2>/dev/null || status=$?
    name=${name_of[$process]}
    seconds=$(awk "BEGIN { print $EPOCHREALTIME - ${begin_of[$process]} }")
    for other in "${running[@]}"; do
        [ "$other" = "$process" ] || left+=("$other")
    done
    running=("${left[@]}")
    [[ " $busy_tests " != *" $name "* ]] || busy=$((busy - 1))
    end_left "$name" >>"$logs/$name.log" || status=1
    sweep "$name" >>"$logs/$name.log" 2>&1 || status=1
    case $status in
        0) report PASS "$name" "$seconds" "$(cpu_seconds "$name")" ;;
        77) report SKIP "$name" "$seconds" "$(tail -n 1 "$logs/$name.log")" ;;
        124 | 137) failed "$name" "$seconds" "took too long" "$logs/$name.log" ;;
        *) failed "$name" "$seconds" "$(grep -m 1 'failed: ' "$logs/$name.log")" "$logs/$name.log" ;;
    esac
}

run_system_tests() {
    local name names=() busy_names=()
    logs=$build/system-logs
    mkdir -p "$logs"
    folder=$(mktemp -d "${TMPDIR:-/tmp}/dlockfs-tests.XXXXXX")
    chmod 755 "$folder"
    trap on_exit EXIT
    trap 'exit 1' INT TERM HUP
    if ! setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$folder"; then
        report FAIL system 0 "other users cannot enter ${folder%/*}: set TMPDIR to a folder that they can"
        finish
    fi
    for name; do
        [[ " $busy_tests " == *" $name "* ]] && busy_names+=("$name") || names+=("$name")
    done
    while true; do
        while [ ${#names[@]} -gt 0 ] && [ $((${#running[@]} - busy)) -lt "$jobs" ]; do
            start_system_test "${names[0]}" "$limit"
            names=("${names[@]:1}")
        done
        while [ ${#busy_names[@]} -gt 0 ] && [ "$busy" -lt "$busy_at_once" ]; do
            start_system_test "${busy_names[0]}" $((4 * limit)) nice
            busy=$((busy + 1))
            busy_names=("${busy_names[@]:1}")
        done
        [ ${#running[@]} -gt 0 ] || break
        end_system_test
    done
    rmdir "$folder"
    folder=
}

install_packages
build_all
rm -rf "$build/first-logs"
[ ${#names[@]} -eq 0 ] || again_over=yes # who asks for a test looks at it

# Sets meson_names and system_names by the names of tests.
sort_names() {
    local name system found
    meson_names=()
    system_names=()
    for name; do
        mapfile -t found < <(meson_tests "$name")
        meson_names+=("${found[@]}")
        system=${name##*/}
        system=${system#test-}
        system=${system%.sh}
        if system_test "$system" >/dev/null && { [ ${#found[@]} -eq 0 ] || [ "$system" = "$name" ]; }; then
            system_names+=("$system")
        elif [ ${#found[@]} -eq 0 ]; then
            report FAIL "$name" 0 "no such test"
        fi
    done
}

run_tests() {
    [ ${#meson_names[@]} -eq 0 ] || run_meson_tests "${meson_names[@]}"
    [ ${#system_names[@]} -gt 0 ] || return 0
    if [ "$(id -u)" -ne 0 ] || [ ! -c /dev/fuse ]; then
        echo "system tests need root and /dev/fuse" >&2
        report FAIL system 0 "needs root and /dev/fuse"
    else
        run_system_tests "${system_names[@]}"
    fi
}

# Those that failed, one after the other.
run_again() {
    local name failed
    again_over=yes
    for name in "${again[@]}"; do
        if [ ${#again[@]} -gt "$again_max" ]; then
            report FAIL "$name" 0 "${reason_of[$name]}"
            continue
        fi
        failed=${#failures[@]}
        sort_names "$name"
        run_tests
        [ ${#failures[@]} -gt "$failed" ] || flaky+=("flaky: $name  ${reason_of[$name]}")
    done
}

sort_names "${names[@]}"
if [ ${#names[@]} -eq 0 ]; then
    mapfile -t meson_names < <(meson_tests)
    for name in $(system_tests); do
        [ -n "$heavy" ] || [[ " ${heavy_tests[*]} " != *" $name "* ]] || continue
        [[ " ${other_libraries[*]} ${one_of_two[*]} ${built_again[*]} " != *" $name "* ]] || continue
        [ -n "$sanitize" ] && [[ " $plain_only " == *" $name "* ]] || system_names+=("$name")
    done
fi
run_tests
run_again
finish
