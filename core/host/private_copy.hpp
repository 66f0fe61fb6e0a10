// A file's bytes in memory of our own that goes back to the system as soon as they are not needed: a plugin may have many
// megabytes, and the heap would keep them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "gantry/sdk/result.hpp"

namespace gantry::core {

class private_copy {
public:
    private_copy() = default;
    private_copy(private_copy&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    private_copy& operator=(private_copy&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~private_copy();

    /// Valid as long as this object.
    std::string_view view() const noexcept { return {data_, size_}; }

    /// The bytes from the start of an open regular file. Nobody can change them afterwards, as they could in a mapped file.
    /// `name` is for errors; code::resource past `limit` bytes. [any, blocks]
    static result<private_copy> of(int fd, const std::string& name, std::size_t limit);

private:
    private_copy(char* data, std::size_t size) noexcept : data_(data), size_(size) {}

    char* data_ = nullptr;
    std::size_t size_ = 0;
};

} // namespace gantry::core
