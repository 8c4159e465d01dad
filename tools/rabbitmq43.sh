#!/bin/sh
# Makes a directory with a small Debian testing in which RabbitMQ 4.3 is installed, for the runs
# that compare with it: about 500 MB and a minute or two, as root, with the package debootstrap.
# A directory that has it already stays as it is.
#
#   tools/rabbitmq43.sh DIR
#   DUEPOST_TEST_RABBITMQ43=DIR make parity

set -eu
dir=${1:?usage: tools/rabbitmq43.sh DIR}
server=usr/lib/rabbitmq/bin/rabbitmq-server
version='rabbitmq_server-4.3.*'

installed() { [ -x "$1/$server" ] && [ -n "$(find "$1/usr/lib/rabbitmq/lib" -maxdepth 1 -name "$version")" ]; }

if installed "$dir"; then
	echo "RabbitMQ 4.3 is in $dir"
	exit 0
fi
mkdir -p "$(dirname "$dir")"
# Half of it is never taken for all of it: it gets its name at the end.
new=$(mktemp -d "$dir.XXXXXX")
trap 'rm -rf "$new"' EXIT
trap 'exit 1' HUP INT TERM
chmod 755 "$new"
# From where this machine has its packages, too. An older debootstrap has no script of that name;
# that of Debian's unstable fits all.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' | head -n 1)
debootstrap --variant=minbase forky "$new" "$mirror" sid
# A node finds itself by name.
echo '127.0.0.1 localhost' >"$new/etc/hosts"
# Nothing in there may start by itself.
printf '#!/bin/sh\nexit 101\n' >"$new/usr/sbin/policy-rc.d"
chmod 755 "$new/usr/sbin/policy-rc.d"
# In a mount namespace of its own, so that /proc is not left mounted whatever happens.
unshare --mount sh -eu -c '
	mount -t proc proc "$1/proc"
	exec chroot "$1" env DEBIAN_FRONTEND=noninteractive \
		apt-get -q -y --no-install-recommends -o Dpkg::Use-Pty=0 install rabbitmq-server
' sh "$new"
rm -rf "$new"/var/cache/apt/archives/*.deb
installed "$new" || { echo "Debian testing has no RabbitMQ 4.3 any more: $(ls "$new/usr/lib/rabbitmq/lib")"; exit 1; }
rm -rf "$dir"
mv "$new" "$dir"
echo "RabbitMQ 4.3 is in $dir"
