#include "tests/cri-native/image.hpp"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "base/files.hpp"

namespace gantry::cri_native::testing {

namespace {

void write(const std::string& path, const std::string& text) {
    if (!base::write_file_atomic(path, text, 0644)) throw std::runtime_error("cannot write " + path);
}

void run(const std::string& command) {
    if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
}

std::string digest_of(const std::string& path) {
    FILE* pipe = ::popen(("sha256sum " + path).c_str(), "r");
    char digest[65] = {};
    const bool complete = pipe != nullptr && std::fread(digest, 1, 64, pipe) == 64;
    if (pipe != nullptr) ::pclose(pipe);
    if (!complete) throw std::runtime_error("cannot hash " + path);
    return digest;
}

} // namespace

std::string make_busybox_archive(const std::string& dir) {
    const std::string work = dir + "/image";
    const std::string root = work + "/root";
    for (const auto* name : {"/bin", "/etc", "/home/app", "/tmp", "/root"})
        if (!base::make_dirs(root + name, 0755)) throw std::runtime_error("cannot make " + root);
    run("cp $(command -v busybox) " + root + "/bin/busybox && chroot " + root + " /bin/busybox --install -s /bin");
    run("chmod 1777 " + root + "/tmp && chown 1000:1000 " + root + "/home/app");
    write(root + "/etc/passwd", "root:x:0:0:root:/root:/bin/sh\napp:x:1000:1000:app:/home/app:/bin/sh\n");
    write(root + "/etc/group", "root:x:0:\napp:x:1000:\nextra:x:2000:app\n");
    run("tar -C " + root + " -cf " + work + "/layer.tar .");
    const std::string layer = digest_of(work + "/layer.tar");
    write(work + "/config.json",
          R"({"architecture":"amd64","os":"linux","config":{"Env":["IMAGE=yes"],"Cmd":["sh"],"StopSignal":"SIGTERM"},)"
          R"("rootfs":{"type":"layers","diff_ids":["sha256:)" +
              layer + R"("]}})");
    write(work + "/manifest.json",
          std::string(R"([{"Config":"config.json","RepoTags":[")") + image_name + R"("],"Layers":["layer.tar"]}])");
    run("tar -C " + work + " -cf " + dir + "/busybox.tar manifest.json config.json layer.tar");
    if (!base::remove_tree(work)) throw std::runtime_error("cannot remove " + work);
    return dir + "/busybox.tar";
}

} // namespace gantry::cri_native::testing
