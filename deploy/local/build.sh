#!/bin/sh
# Builds the programs of a local Kubernetes control plane from source.
#
#   build.sh DEST [NAME...]
#
# Puts each program NAME (all of them when none is named) into the folder DEST,
# unless it is there already, and the stage files that kwok needs into
# DEST/stages. The versions are those in the go.mod beside this file. Every
# file is written under a temporary name and then moved into place, so what is
# in DEST is always whole, also when several builds run at the same time.
set -eu

ALL="etcd kube-apiserver kube-controller-manager kube-scheduler kubectl kwok helm"

# The stage files that come from kwok. kwok's own pod-complete.yaml is left
# out on purpose: it ends every pod of a Job at once. Ours is in stages/.
KWOK_STAGES="node/fast/node-initialize.yaml pod/fast/pod-ready.yaml pod/fast/pod-delete.yaml"

die() {
    echo "build.sh: $*" >&2
    exit 1
}

if [ $# -lt 1 ] || [ "$1" = -h ] || [ "$1" = --help ]; then
    echo "usage: build.sh DEST [NAME...]" >&2
    echo "names: $ALL" >&2
    exit 2
fi

dest=$1
shift
[ $# -gt 0 ] || set -- $ALL
for name in "$@"; do
    case " $ALL " in
    *" $name "*) ;;
    *) die "unknown program '$name'; the names are: $ALL" ;;
    esac
done

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
mkdir -p -- "$dest" || die "cannot make the folder $dest"
dest=$(CDPATH='' cd -- "$dest" && pwd)

# Only these settings decide what comes out, whatever the caller's are.
unset GOOS GOARCH GOEXPERIMENT
export CGO_ENABLED=0 GOFLAGS=-mod=readonly GOTOOLCHAIN=local GOWORK=off

# Number of a version such as 1.26.8, for comparing.
number() {
    echo "$1" | awk -F. '{ printf "%d\n", $1 * 1000000 + $2 * 1000 + $3 }'
}

need=$(awk '$1 == "go" { print $2; exit }' "$here/go.mod")
check_go() {
    command -v go >/dev/null 2>&1 ||
        die "the Go toolchain is missing: 'go' is not on PATH. Install Go $need or newer."
    have=$(cd / && go env GOVERSION) || die "'go env' failed; is the Go installation whole?"
    # "go1.26.8", "go1.27rc1" or "devel go1.27-0123abc"
    have=$(echo "$have" | sed -e 's/^devel //' -e 's/^go//' -e 's/[^0-9.].*$//')
    [ "$(number "$have")" -ge "$(number "$need")" ] ||
        die "Go is too old: found $have at $(command -v go), need $need or newer."
}

tmp=
trap 'if [ -n "$tmp" ]; then rm -f -- "$tmp"; fi' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

package() {
    case $1 in
    etcd) echo go.etcd.io/etcd/server/v3 ;;
    kwok) echo sigs.k8s.io/kwok/cmd/kwok ;;
    helm) echo helm.sh/helm/v4/cmd/helm ;;
    *) echo "k8s.io/kubernetes/cmd/$1" ;;
    esac
}

# The version of a module, as go.mod names it.
version() {
    go list -m -f '{{.Version}}' "$1"
}

# A Kubernetes program takes its version from the linker. Without it the API
# server would call itself v0.0.0-master and refuse its own compatibility
# version. The commit is not known from a published module; the build date
# stays at the fixed one in the source.
linker_flags() {
    flags="-s -w"
    case $1 in
    kube*)
        v=$(version k8s.io/kubernetes) || exit 1
        major=${v#v}
        minor=${major#*.}
        major=${major%%.*}
        minor=${minor%%.*}
        for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
            flags="$flags -X $p.gitVersion=$v -X $p.gitMajor=$major -X $p.gitMinor=$minor"
            flags="$flags -X $p.gitCommit= -X $p.gitTreeState=archive"
        done
        ;;
    helm)
        v=$(version helm.sh/helm/v4) || exit 1
        flags="$flags -X helm.sh/helm/v4/internal/version.version=$v"
        ;;
    esac
    echo "$flags"
}

# put SOURCE TARGET: copies a file into place in one move.
put() {
    tmp=$2.tmp.$$
    cat -- "$1" >"$tmp"
    mv -f -- "$tmp" "$2"
    tmp=
}

cd "$here"
checked=
count=0
for name in "$@"; do
    count=$((count + 1))
    [ ! -x "$dest/$name" ] || continue
    if [ -z "$checked" ]; then
        check_go
        checked=yes
    fi
    echo "building $name ($count of $#)" >&2
    flags=$(linker_flags "$name")
    tmp=$dest/.$name.tmp.$$
    go build -trimpath -buildvcs=false -ldflags "$flags" -o "$tmp" "$(package "$name")" ||
        die "building $name failed (see the lines above)."
    mv -f -- "$tmp" "$dest/$name"
    tmp=
done

case " $* " in
*" kwok "*)
    mkdir -p "$dest/stages"
    for file in "$here"/stages/*.yaml; do
        put "$file" "$dest/stages/${file##*/}"
    done
    missing=
    for file in $KWOK_STAGES; do
        [ -f "$dest/stages/${file##*/}" ] || missing=yes
    done
    if [ -n "$missing" ]; then
        [ -n "$checked" ] || check_go
        go mod download sigs.k8s.io/kwok || die "cannot get the kwok module."
        dir=$(go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)
        for file in $KWOK_STAGES; do
            put "$dir/kustomize/stage/$file" "$dest/stages/${file##*/}"
        done
    fi
    ;;
esac
