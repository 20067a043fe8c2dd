#!/usr/bin/env bash
# Baseline of ActiveMQ 5.17 with Spring JMS 4.3, both from Debian packages: in one process (vm-*), or over OpenWire (tcp-*).
#
#   ./run.sh [--run K] [--seconds S] [--warmup S] [--url URL --peer NAME] SCENARIO
#
# Prints one JSON line. With --url the same client measures the broker that listens there. The broker's data goes to a new folder under ${BENCH_DIR:-${TMPDIR:-/tmp}}, which is removed at
# the end; BENCH_DIR must lie on the disk to be measured. Missing packages are installed when this is run as root.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
run=1 seconds=5 warmup=3 url= peer=activemq scenario=
while [ $# -gt 0 ]; do
  case $1 in
    --run) run=$2; shift;;
    --seconds) seconds=$2; shift;;
    --warmup) warmup=$2; shift;;
    --url) url=$2; shift;;
    --peer) peer=$2; shift;;
    -h|--help) sed -n '2,8p' "$0"; exit 0;;
    *) scenario=$1;;
  esac; shift
done
options= persistent=true
case $scenario in
  vm-persistent-sync-p1) options="--producers 1";;
  vm-persistent-sync-p64) options="--producers 64";;
  vm-transacted-100-sync) options="--batch 100";;
  tcp-nonpersistent-*|tcp-persistent-sync-*)
    [[ $scenario =~ ^tcp-(nonpersistent|persistent-sync)-(1|4)k-p(1|8|64)(-c(8|64))?$ ]] || unknown=1
    [ "${BASH_REMATCH[1]:-}" = nonpersistent ] && persistent=false
    options="--payload $((${BASH_REMATCH[2]:-1} * 1024)) --producers ${BASH_REMATCH[3]:-1} --connections ${BASH_REMATCH[5]:-1}";;
  *) unknown=1;;
esac
if [ -n "${unknown:-}" ]; then
  echo "there is no scenario \`$scenario\`: vm-persistent-sync-p1, vm-persistent-sync-p64, vm-transacted-100-sync," \
    "tcp-nonpersistent-1k-p64 and the like (1k, 4k; p1, p8, p64), tcp-persistent-sync-1k-p64-c64 and the like (with -c8, -c64 or without)" >&2
  exit 2
fi

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
broker=
cleanup() {
  if [ -n "$broker" ]; then kill "$broker" 2>/dev/null || true; wait "$broker" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap cleanup EXIT
mkdir "$work/classes"
javac -nowarn -d "$work/classes" -cp "$classpath" "$here/Bench.java"
java="java -Xms256m -Xmx1g -cp $work/classes$classpath Bench --persistent $persistent"
if [[ $scenario == tcp-* ]]; then
  if [ -z "$url" ]; then
    $java --serve true --data "$work/data" </dev/null >"$work/broker.log" 2>&1 &
    broker=$!
    for _ in $(seq 600); do
      grep -q '^READY ' "$work/broker.log" && break
      kill -0 "$broker" 2>/dev/null || { cat "$work/broker.log" >&2; exit 1; }
      sleep 0.1
    done
    url=$(sed -n 's/^READY //p' "$work/broker.log")
    [ -n "$url" ] || { echo "the broker did not come up within a minute" >&2; cat "$work/broker.log" >&2; exit 1; }
  fi
  options="$options --url $url --peer $peer"
fi
$java --name "$scenario" --data "$work/data" --seconds "$seconds" --warmup "$warmup" --run "$run" $options </dev/null
