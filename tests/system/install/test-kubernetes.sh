#!/bin/bash
# The manifests in etc/kubernetes are what Kubernetes takes, and dlockfs its part of them: fields, volumes, the configuration, what is run;
# on top of them a kustomization as in containers.md puts in an image, a configuration, a secret, and the metrics.
export own_users=no # no daemon runs
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

requires "$python" -c 'import jsonschema, yaml'
manifests=$source_dir/etc/kubernetes
check() {
    "$python" "$tests/system/install/kubernetes.py" "$@"
}
check "$dir" "$manifests"/*.yaml
"$dlockfs" --check --require-url --config "$dir/dlockfs.ini" "$dir/A"

# What is run has the options that it is given.
"$dlockfs" --help >"$dir/help"
"$dlockctl" --help >>"$dir/help"
while read -r program arguments; do
    for argument in $arguments; do
        [[ $argument != --* ]] || grep -qE -- "(^|[^-a-z])$argument\b" "$dir/help" || fail "$program has no option $argument"
    done
done < <(grep -E '^(dlockfs|dlockctl) ' "$dir/commands")
grep -q '^dlockctl --mount /run/dlockfs/locks doctor$' "$dir/commands"

# A mistake is found.
# wrong SED-COMMAND FILE WHAT-IS-SAID
wrong() {
    sed "$1" "$manifests/$2" >"$dir/wrong.yaml"
    ! cmp -s "$dir/wrong.yaml" "$manifests/$2" || fail "nothing is wrong: $1"
    refused check "$dir" "$dir/wrong.yaml" 2>"$dir/wrong.err"
    grep -q "$3" "$dir/wrong.err" || fail "$1: $(<"$dir/wrong.err")"
}
wrong 's/periodSeconds: 30/periodSecond: 30/' dlockfs.yaml "periodSecond"
wrong 's/name: secret$/name: secrets/' dlockfs.yaml "no volume secrets"
wrong 's/memory: 64Mi/memory: 64MB/' dlockfs.yaml "64MB"
wrong 's/matchLabels: {app: dlockfs}/matchLabels: {app: dlock}/' dlockfs.yaml "matchLabels"

# On top of it, as the page has it, with the real program where that is.
command -v kubectl >/dev/null || exit 0
mkdir "$dir/cluster"
ln -s "$manifests" "$dir/kubernetes"
awk '/^```/ { inside = $0 == "```yaml"; next } inside' "$source_dir/etc/doc/containers.md" |
    sed 's|\.\./dlockfs/etc/kubernetes|../kubernetes|' >"$dir/cluster/kustomization.yaml"
printf '%s\n' '[store]' 'url = zookeeper://zk.internal/dlockfs' 'digest_file = /etc/dlockfs-secret/digest' >"$dir/cluster/dlockfs.ini"
echo user:password >"$dir/cluster/digest"
HOME=$dir kubectl kustomize --load-restrictor LoadRestrictionsNone "$dir/cluster" >"$dir/built.yaml"
check "$dir" "$dir/built.yaml"
grep -q 'url = zookeeper://zk.internal/dlockfs' "$dir/dlockfs.ini"
grep -q '^sh -c' "$dir/commands"
expect_equal "images" "registry.internal/dlockfs:0.1.0" "$(sed -n 's/^ *image: //p' "$dir/built.yaml" | sort -u)"
secret=$(sed -n 's/^ *secretName: //p' "$dir/built.yaml")
grep -q "^  name: ${secret:-none}$" "$dir/built.yaml" || fail "the secret is $secret"
