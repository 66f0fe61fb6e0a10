# Runs in the test machine: has it what a node needs?
set -eu
for controller in cpu cpuset memory pids io; do
    grep -qw "$controller" /sys/fs/cgroup/cgroup.controllers || { echo "no controller $controller"; exit 1; }
done
! grep -q '^cgroup ' /proc/mounts || { echo 'cgroup v1 is mounted'; exit 1; }
mkdir -p /tmp/o/lower /tmp/o/upper /tmp/o/work /tmp/o/merged
mount -t overlay overlay -o lowerdir=/tmp/o/lower,upperdir=/tmp/o/upper,workdir=/tmp/o/work /tmp/o/merged
touch /tmp/o/merged/x && [ -e /tmp/o/upper/x ]
umount /tmp/o/merged
ip link add br0 type bridge
ip link add v0 type veth peer name v1
ip link del v0
ip link del br0
for module in nf_tables nft_chain_nat nft_masq nf_conntrack ip_vs; do modprobe "$module"; done
unshare -m sh -c 'mount --make-rprivate / && mkdir -p /tmp/root/old && mount --bind /tmp/root /tmp/root && pivot_root /tmp/root /tmp/root/old'
[ "$(grep -c '^processor' /proc/cpuinfo)" -ge 2 ]
echo "smoke: ok, up $(cut -d ' ' -f 1 /proc/uptime) s"
