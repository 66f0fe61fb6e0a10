// SHA-256, streaming.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <openssl/sha.h>

namespace gantry::cri_helper {

class digester {
public:
    digester();
    void update(const void* bytes, std::size_t size);
    /// "sha256:HEX" of what was fed; ends the stream.
    std::string finish();

private:
    SHA256_CTX context_;
};

std::string digest_of(std::string_view bytes);

} // namespace gantry::cri_helper
