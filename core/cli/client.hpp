// The CLI's side of the admin socket. Blocking; one client per command.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "base/unique_fd.hpp"
#include "gantry/sdk/result.hpp"

namespace gantry::core::cli {

class admin_client {
public:
    explicit admin_client(std::string socket_path);

    /// The body of a 2xx answer; any other answer becomes an error with the server's code and message.
    result<std::string> call(std::string_view method, std::string_view target, std::string_view body = {});
    /// The same, parsed as JSON.
    result<base::json::value> call_json(std::string_view method, std::string_view target, std::string_view body = {});
    /// Hands each piece of the body to on_bytes as it arrives, until the end or until on_bytes returns false.
    result<void> stream(std::string_view method, std::string_view target, std::string_view body,
                        const std::function<bool(std::string_view)>& on_bytes);
    /// stream() cut into lines, each parsed as JSON.
    result<void> stream_json(std::string_view method, std::string_view target, std::string_view body,
                             const std::function<bool(const base::json::value&)>& on_item);
    /// Upgrades to gantry-stream (core/admin/frames.hpp) and gives the raw connection.
    result<base::unique_fd> upgrade(std::string_view method, std::string_view target, std::string_view body);

private:
    std::string socket_path_;
};

/// Percent-encodes one path segment or query value.
std::string url_encode(std::string_view text);

} // namespace gantry::core::cli
