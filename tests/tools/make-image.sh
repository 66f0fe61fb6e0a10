#!/bin/sh
# Makes the images of the demo and the tests from programs of this machine: no registry, no network, the same bytes each time.
# usage: make-image.sh OUTDIR        (Debian: busybox-static nginx-light jq zstd)
# Leaves in OUTDIR, for both images, a docker-archive and an OCI layout:
#   busybox.docker.tar busybox.oci.tar   busybox:demo  a shell and the usual tools; Cmd sh
#   web.docker.tar     web.oci.tar       web:demo      nginx in the foreground, logs on stdout and stderr; the page on port
#                                                      $PORT (80), its text from $MESSAGE; stops on SIGQUIT
# Layers: plain in the docker-archives, gzip in busybox.oci.tar, gzip and zstd in web.oci.tar.
set -eu
umask 022
mkdir -p "$1"
out=$(cd "$1" && pwd)
self=$(readlink -f "$0")
busybox=$(command -v busybox)
nginx=$(command -v nginx || echo /usr/sbin/nginx)

libraries=$(ldd "$nginx" | grep -o '/[^ ]*' | sort -u)
# shellcheck disable=SC2086 # a list
key=$(stat -L -c '%n %s %Y' "$self" "$busybox" "$nginx" $libraries | sha256sum)
if [ "$(cat "$out/key" 2>/dev/null)" = "$key" ]; then exit 0; fi

exec 9>"$out/lock"
flock 9 # several tests may start at once
if [ "$(cat "$out/key" 2>/dev/null)" = "$key" ]; then exit 0; fi
work=$(mktemp -d "$out/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"

pack() { tar --sort=name --mtime=@1700000000 --owner=0 --group=0 --numeric-owner --format=posix \
    --pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime -C "$1" -cf "$2" .; }
digest() { sha256sum "$1" | cut -d' ' -f1; }

# ---- layer 1: busybox
mkdir -p base/bin base/etc base/tmp base/root base/proc base/sys base/dev base/run base/var/log base/home
chmod 1777 base/tmp
chmod 700 base/root
cp "$busybox" base/bin/busybox
(cd base/bin && busybox --list | grep -vx busybox | xargs -I{} ln -s busybox {})
cat > base/etc/passwd <<'EOF'
root:x:0:0:root:/root:/bin/sh
daemon:x:1:1:daemon:/:/bin/false
www-data:x:33:33:www-data:/var/www:/bin/false
app:x:1000:1000:app:/home:/bin/sh
nobody:x:65534:65534:nobody:/:/bin/false
EOF
cat > base/etc/group <<'EOF'
root:x:0:
daemon:x:1:
www-data:x:33:
app:x:1000:
extra:x:2000:app
nogroup:x:65534:
EOF
pack base base.tar

# ---- layer 2: nginx
mkdir -p web/usr/sbin web/etc/nginx web/usr/share/web web/var/lib/nginx
cp "$nginx" web/usr/sbin/nginx
for library in $libraries; do
    mkdir -p "web$(dirname "$library")"
    cp -L "$library" "web$library"
done
cat > web/etc/nginx/nginx.conf.in <<'EOF'
user www-data;
worker_processes 1;
pid /tmp/nginx.pid;
error_log stderr;
events { worker_connections 256; }
http {
    access_log /dev/stdout;
    default_type text/html;
    client_body_temp_path /tmp/nginx-body;
    proxy_temp_path /tmp/nginx-proxy;
    fastcgi_temp_path /tmp/nginx-fastcgi;
    uwsgi_temp_path /tmp/nginx-uwsgi;
    scgi_temp_path /tmp/nginx-scgi;
    server { listen @PORT@; root /tmp/web; }
}
EOF
cat > web/usr/sbin/serve <<'EOF'
#!/bin/sh
set -e
mkdir -p /tmp/web
printf '<!doctype html><title>gantry</title><h1>%s</h1>\n' "${MESSAGE:-Hello from gantry}" > /tmp/web/index.html
sed "s/@PORT@/${PORT:-80}/" /etc/nginx/nginx.conf.in > /tmp/nginx.conf
exec /usr/sbin/nginx -c /tmp/nginx.conf -g 'daemon off;'
EOF
chmod 755 web/usr/sbin/serve
pack web web.tar

# ---- configs
path=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
architecture=$(dpkg --print-architecture)
config() { # config RUN_JSON LAYER_TAR...
    run=$1; shift
    diffs=$(for layer; do echo "sha256:$(digest "$layer")"; done | jq -R . | jq -sc .)
    jq -Scn --argjson run "$run" --argjson diffs "$diffs" --arg arch "$architecture" \
        '{architecture: $arch, os: "linux", created: "2023-11-14T22:13:20Z", config: $run, rootfs: {type: "layers", diff_ids: $diffs}}'
}
config "{\"Env\":[\"$path\"],\"Cmd\":[\"sh\"]}" base.tar > busybox.json
config "{\"Env\":[\"$path\",\"PORT=80\"],\"Entrypoint\":[\"/usr/sbin/serve\"],\"ExposedPorts\":{\"80/tcp\":{}},
    \"StopSignal\":\"SIGQUIT\",\"Labels\":{\"dev.gantry.demo\":\"web\"}}" base.tar web.tar > web.json

# ---- docker-archive: manifest.json, configs, layers
docker() { # docker NAME LAYER...
    name=$1; shift
    rm -rf docker && mkdir docker
    id=$(digest "$name.json")
    cp "$name.json" "docker/$id.json"
    paths=
    for layer; do
        sum=$(digest "$layer")
        mkdir -p "docker/$sum" && ln "$layer" "docker/$sum/layer.tar"
        paths="$paths$sum/layer.tar "
    done
    jq -Scn --arg config "$id.json" --arg tag "$name:demo" --arg layers "$paths" \
        '[{Config: $config, RepoTags: [$tag], Layers: ($layers | split(" ") | map(select(. != "")))}]' > docker/manifest.json
    pack docker "$out/$name.docker.tar"
}
docker busybox base.tar
docker web base.tar web.tar

# ---- OCI layout: oci-layout, index.json, blobs
gzip -n -6 < base.tar > base.tar.gz
zstd -q -9 -T1 < web.tar > web.tar.zst
oci() { # oci NAME PACKED_LAYER...
    name=$1; shift
    rm -rf oci && mkdir -p oci/blobs/sha256
    blob() { sum=$(digest "$1"); ln "$1" "oci/blobs/sha256/$sum" 2>/dev/null || true
        jq -Scn --arg type "$2" --arg digest "sha256:$sum" --argjson size "$(stat -c %s "$1")" '{mediaType: $type, digest: $digest, size: $size}'; }
    layers=$(for layer; do
        case $layer in *.gz) kind=gzip ;; *) kind=zstd ;; esac
        blob "$layer" "application/vnd.oci.image.layer.v1.tar+$kind"
    done | jq -sc .)
    config=$(blob "$name.json" application/vnd.oci.image.config.v1+json)
    jq -Scn --argjson config "$config" --argjson layers "$layers" \
        '{schemaVersion: 2, mediaType: "application/vnd.oci.image.manifest.v1+json", config: $config, layers: $layers}' > "$name.manifest"
    manifest=$(blob "$name.manifest" application/vnd.oci.image.manifest.v1+json)
    jq -Scn --argjson manifest "$manifest" --arg ref "$name:demo" \
        '{schemaVersion: 2, manifests: [$manifest + {annotations: {"org.opencontainers.image.ref.name": $ref}}]}' > oci/index.json
    echo '{"imageLayoutVersion":"1.0.0"}' > oci/oci-layout
    pack oci "$out/$name.oci.tar"
}
oci busybox base.tar.gz
oci web base.tar.gz web.tar.zst
echo "$key" > "$out/key"
