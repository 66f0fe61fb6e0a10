// The low-level SHA256_* calls are deprecated in favour of EVP, which cannot be linked statically without the whole of
// libcrypto; these are the same assembly (SHA-NI where the CPU has it) in a few kilobytes.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "plugins/cri-native/helper/digest.hpp"

namespace gantry::cri_helper {

digester::digester() { SHA256_Init(&context_); }

void digester::update(const void* bytes, std::size_t size) { SHA256_Update(&context_, bytes, size); }

std::string digester::finish() {
    unsigned char raw[SHA256_DIGEST_LENGTH];
    SHA256_Final(raw, &context_);
    std::string text = "sha256:";
    for (const unsigned char byte : raw) {
        text += "0123456789abcdef"[byte >> 4];
        text += "0123456789abcdef"[byte & 15];
    }
    return text;
}

std::string digest_of(std::string_view bytes) {
    digester digest;
    digest.update(bytes.data(), bytes.size());
    return digest.finish();
}

} // namespace gantry::cri_helper
