#!/bin/sh
# Apptainer on Debian 12, which has no package of it: unstable's, with the libraries it wants, in a folder of its own.
# The system's libraries stay as they are. Usage: install_apptainer.sh FOLDER (as root; 90 MB, half a minute)
set -eu
prefix=$(realpath -m "${1:?usage: install_apptainer.sh FOLDER}")
[ "$(id -u)" = 0 ] || { echo 'install_apptainer.sh: run this as root' >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends \
    ca-certificates debootstrap fakeroot fuse2fs fuse3 patchelf squashfs-tools squashfuse uidmap >/dev/null
mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -m1 -E '/debian/?$')

# Packages of another release, fetched with lists and a state of their own: the system never hears of them.
fetch() {
    release=$1
    shift
    mkdir -p "$work/$release/lists/partial" "$work/$release/cache/archives/partial"
    printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' \
        "$mirror" "$release" /usr/share/keyrings/debian-archive-keyring.gpg >"$work/$release.sources"
    options="-qq -o Dir::Etc::sourcelist=$work/$release.sources -o Dir::Etc::sourceparts=-
        -o Dir::State::lists=$work/$release/lists -o Dir::Cache=$work/$release/cache
        -o Dir::State::status=/dev/null -o APT::Sandbox::User=root"
    # shellcheck disable=SC2086  # the options are words
    apt-get $options update
    # shellcheck disable=SC2086
    (cd "$work" && apt-get $options download "$@")
}
fetch sid apptainer
fetch trixie libc6 libseccomp2 libsqlite3-0

partial=$prefix.partial
rm -rf "$partial"
mkdir -p "$partial"
for package in "$work"/*.deb; do dpkg-deb -x "$package" "$partial"; done
# The command takes its own ../.. as its root, the starter another one: both find the same tree.
ln -s ../etc "$partial/usr/etc"
ln -s ../var "$partial/usr/var"
ln -s ../../etc "$partial/usr/lib/etc"
ln -s ../../var "$partial/usr/lib/var"
ln -s ../bin "$partial/usr/lib/bin"
ln -s . "$partial/usr/lib/lib"
libraries=$prefix/usr/lib/$(uname -m)-linux-gnu
loader=$(basename "$(ls "$partial/usr/lib/$(uname -m)-linux-gnu"/ld-linux*.so.* | head -n 1)")
for program in usr/bin/apptainer "usr/lib/$(uname -m)-linux-gnu/apptainer/bin/starter"; do
    patchelf --set-interpreter "$libraries/$loader" --force-rpath --set-rpath "$libraries" "$partial/$program"
done
# Where root itself lacks a capability (some virtual machines), containers of root with all of them cannot start.
sed -i 's/^root default capabilities = .*/root default capabilities = no/' "$partial/etc/apptainer/apptainer.conf"
rm -rf "$prefix"
mv "$partial" "$prefix"
# Builds by root use a range of user numbers.
for file in /etc/subuid /etc/subgid; do grep -qs '^root:' $file || echo root:100000:65536 >>$file; done
"$prefix/usr/bin/apptainer" --version
