// Answers that go on: a topic's changes as newline-delimited JSON, until the client leaves.
#pragma once

#include <optional>

#include <boost/asio/experimental/awaitable_operators.hpp>

#include "core/admin/http.hpp"
#include "core/kernel/topic.hpp"

namespace gantry::core::admin {

/// Sends to_line(item) for the present state and every change; an empty line is left out.
template <class T, class ToLine>
boost::asio::awaitable<void> stream_topic(topic<T>& source, responder& to, ToLine to_line) {
    using namespace boost::asio::experimental::awaitable_operators;
    auto changes = source.subscribe();
    co_await to.begin_stream("application/x-ndjson");
    for (;;) {
        auto next = co_await (changes->next() || to.closed());
        if (next.index() != 0) co_return;
        auto& item = std::get<0>(next);
        if (!item) co_return;
        std::string line = to_line(*item);
        if (line.empty()) continue;
        const bool written = co_await to.write(line + "\n");
        if (!written) co_return;
    }
}

} // namespace gantry::core::admin
