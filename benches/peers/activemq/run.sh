#!/usr/bin/env bash
# Baseline of ActiveMQ 5.17 with Spring JMS 4.3, both from Debian packages, in one process (vm://).
#
#   ./run.sh [--run K] [--seconds S] [--warmup S] SCENARIO
#
# Prints one JSON line. The broker's data goes to a new folder under ${BENCH_DIR:-${TMPDIR:-/tmp}}, which is removed at
# the end; BENCH_DIR must lie on the disk to be measured. Missing packages are installed when this is run as root.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
run=1 seconds=5 warmup=3 scenario=
while [ $# -gt 0 ]; do
  case $1 in
    --run) run=$2; shift;;
    --seconds) seconds=$2; shift;;
    --warmup) warmup=$2; shift;;
    -h|--help) sed -n '2,7p' "$0"; exit 0;;
    *) scenario=$1;;
  esac; shift
done
case $scenario in
  vm-persistent-sync-p1) options="--producers 1";;
  vm-persistent-sync-p64) options="--producers 64";;
  vm-transacted-100-sync) options="--batch 100";;
  *) echo "there is no scenario \`$scenario\`: vm-persistent-sync-p1, vm-persistent-sync-p64, vm-transacted-100-sync" >&2; exit 2;;
esac

need=
for package in activemq libactivemq-java libspring-jms-java libspring-context-java libspring-messaging-java libslf4j-java; do
  dpkg -s "$package" >/dev/null 2>&1 || need="$need $package"
done
command -v javac >/dev/null || need="$need default-jdk-headless"
if [ -n "$need" ]; then
  command -v apt-get >/dev/null || { echo "ActiveMQ is measured from Debian's packages, and there is no apt-get here" >&2; exit 3; }
  [ "$(id -u)" = 0 ] || { echo "missing packages (installed only by root):$need" >&2; exit 3; }
  { apt-get -o DPkg::Lock::Timeout=120 update -qq &&
    apt-get -o DPkg::Lock::Timeout=120 install -y -qq --no-install-recommends $need; } >&2 ||
    { echo "packages that could not be installed:$need" >&2; exit 3; }
fi

classpath=
for jar in activemq-broker activemq-client activemq-kahadb-store activemq-openwire-legacy activemq-protobuf \
  activemq-jaas hawtbuf hawtbuf-proto geronimo-jms_1.1_spec geronimo-jta-1.2-spec geronimo-j2ee-management-1.1-spec \
  slf4j-api slf4j-nop jcl-over-slf4j commons-net jackson-core jackson-databind jackson-annotations spring3-core \
  spring3-beans spring3-context spring3-aop spring3-expression spring3-transaction spring3-messaging spring3-jms; do
  if [ -e "/usr/share/java/$jar.jar" ]; then classpath="$classpath:/usr/share/java/$jar.jar"; fi
done
work=$(mktemp -d "${BENCH_DIR:-${TMPDIR:-/tmp}}/activemq.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/classes"
javac -nowarn -d "$work/classes" -cp "$classpath" "$here/Bench.java"
java -Xms256m -Xmx1g -cp "$work/classes$classpath" Bench --name "$scenario" --data "$work/data" \
  --seconds "$seconds" --warmup "$warmup" --run "$run" $options </dev/null
