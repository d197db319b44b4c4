#!/bin/sh
# Debian packages that the tests use: a real whole head (ch2), GNU parallel and GNU time for benchmarks, fio, numactl,
# a container registry, strace and small disks for fault campaigns, a network file system with its server, Slurm with
# its accounting, Java, and what git-annex needs to speak HTTP where the system is so bare that it lacks it; Apptainer,
# PySpark, Ray, ADIOS2 and DIPY, below the environment.
# All but the Python packages needs root; elsewhere the tests that miss them are skipped, unless NEUROTIER_REQUIRE_ALL is set.
set -eu
packages=
[ -e /usr/share/mricron/templates/ch2.nii.gz ] || packages="$packages mricron-data"
command -v parallel >/dev/null || packages="$packages parallel"
[ -e /usr/bin/time ] || packages="$packages time"
[ -e /etc/protocols ] || packages="$packages netbase" # git-annex looks up "tcp" there before it speaks HTTP
command -v fio >/dev/null || packages="$packages fio"
command -v numactl >/dev/null || packages="$packages numactl"
command -v docker-registry >/dev/null || packages="$packages docker-registry"
command -v busybox >/dev/null || packages="$packages busybox-static"
command -v strace >/dev/null || packages="$packages strace"
command -v sshfs >/dev/null || packages="$packages sshfs"
command -v bindfs >/dev/null || packages="$packages bindfs"
[ -e /usr/sbin/sshd ] || packages="$packages openssh-server"
command -v tc >/dev/null || packages="$packages iproute2"
[ -e /sbin/mkfs.ext4 ] || packages="$packages e2fsprogs"
[ -e /sbin/mkfs.xfs ] || packages="$packages xfsprogs"
[ -e /sbin/mkfs.btrfs ] || packages="$packages btrfs-progs"
command -v chromium >/dev/null || packages="$packages chromium" # pages are looked at
command -v pdftotext >/dev/null || packages="$packages poppler-utils"
command -v java >/dev/null || packages="$packages default-jre-headless" # 17 in Debian 12, 21 in 13
for name in slurm-wlm munge slurmdbd mariadb-server; do
    dpkg-query -W -f '${Status}' $name 2>/dev/null | grep -q 'ok installed' || packages="$packages $name"
done
if [ -n "$packages" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing for the tests:$packages"
    apt-get update -qq
    policy=/usr/sbin/policy-rc.d # packages ask it whether they may start their daemons: the tests start their own
    if [ ! -e $policy ]; then
        trap 'rm -f $policy' EXIT
        printf '#!/bin/sh\nexit 101\n' >$policy
        chmod 755 $policy
    fi
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends $packages >/dev/null
fi
environment=$(dirname "$0")/../.venv
if ! command -v apptainer >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo 'Installing Apptainer for the tests, below .venv'
    log=$environment/apptainer.log
    sh "$(dirname "$0")/../containers/install_apptainer.sh" "$environment/apptainer" >"$log" 2>&1 || tail -n 5 "$log" >&2
    ln -sfn ../apptainer/usr/bin/apptainer "$environment/bin/apptainer"
fi
install_locked() { # lock's name, what it is called and its size
    lock=$(dirname "$0")/$1
    cmp -s "$lock" "$environment/$1" && return # a copy says what is installed
    echo "Installing $2"
    options="--require-hashes --no-build-isolation --requirement $lock"
    # shellcheck disable=SC2086
    if "$environment/bin/uv" pip install --quiet --python "$environment/bin/python" --compile-bytecode $options ||
        "$environment/bin/pip" install -qq --disable-pip-version-check $options; then
        cp "$lock" "$environment/$1"
    fi
}
install_locked programs.lock "DIPY for the tests, below .venv: a program of a user's own"
install_locked spark.lock 'PySpark for the tests, below .venv: half a GB, a minute or two'
install_locked staging.lock 'Ray and ADIOS2 for the tests, below .venv: 0.3 GB, a minute'
