#!/bin/sh
# Debian packages that the tests use: a real whole head (ch2), GNU parallel for a benchmark, and what git-annex
# needs to speak HTTP where the system is so bare that it lacks it.
# Needs root; elsewhere the tests that miss them are skipped, unless NEUROTIER_REQUIRE_ALL is set.
set -eu
packages=
[ -e /usr/share/mricron/templates/ch2.nii.gz ] || packages="$packages mricron-data"
command -v parallel >/dev/null || packages="$packages parallel"
[ -e /etc/protocols ] || packages="$packages netbase" # git-annex looks up "tcp" there before it speaks HTTP
if [ -n "$packages" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing for the tests:$packages"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null
fi
