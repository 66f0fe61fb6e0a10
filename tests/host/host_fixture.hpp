// A plugin host with real libraries, in directories and under a node instance of its own.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "base/files.hpp"
#include "core/host/plugin_host.hpp"

namespace gantry::core {

constexpr auto mischief_capability = "com.acme.mischief/1";
constexpr op_ref mischief_run{mischief_capability, "run", 8};
constexpr op_ref mischief_watch{mischief_capability, "watch", 16};

class host_fixture : public testing::Test {
protected:
    void SetUp() override {
        char pattern[] = "/tmp/gantry-host-XXXXXX";
        ASSERT_NE(::mkdtemp(pattern), nullptr);
        dir_ = pattern;
        options_.config.node.name = "host";
        options_.config.node.instance = "t" + std::to_string(::getpid());
        options_.config.node.state_dir = dir_ + "/state";
        options_.config.node.run_dir = dir_ + "/run";
        options_.plugin_dirs = {GANTRY_TEST_PLUGINS};
    }

    void TearDown() override {
        if (host_) wait(host_->stop(std::chrono::seconds(5)));
        host_.reset();
        EXPECT_TRUE(base::remove_tree(dir_));
    }

    /// An instance of mischief; the first one is bound for the capability.
    plugin_settings& add(const std::string& name, base::json::object config = {}) {
        plugin_settings settings;
        settings.name = name;
        settings.use = "mischief";
        settings.config = std::move(config);
        settings.limits.lane_stall = std::chrono::milliseconds(300);
        settings.limits.grace = std::chrono::milliseconds(100);
        options_.config.plugins.push_back(std::move(settings));
        options_.config.bind.capabilities.emplace(mischief_capability, name);
        return options_.config.plugins.back();
    }

    result<void> create() {
        auto made = plugin_host::create(loop_, options_);
        if (!made) return std::move(made).error();
        host_ = *std::move(made);
        return {};
    }

    void start() {
        const auto created = create();
        ASSERT_TRUE(created) << created.error().message;
        const auto started = wait(host_->start());
        ASSERT_TRUE(started) << started.error().message;
    }

    /// co_spawn for outcomes without a default value.
    template <class T>
    static boost::asio::awaitable<void> into(boost::asio::awaitable<T> work, std::function<void(T)> sink) {
        T value = co_await std::move(work);
        sink(std::move(value));
    }

    static constexpr auto ignore_exception = [](const std::exception_ptr&) {};

    void spawn_call(const std::string& bytes, std::function<void(result<op_reply>)> sink) {
        auto call = host_->client(mischief_capability)->call(mischief_run, {.bytes = bytes}, {});
        boost::asio::co_spawn(loop_, into<result<op_reply>>(std::move(call), std::move(sink)), ignore_exception);
    }

    /// Runs the loop until the coroutine is done.
    template <class T>
    T wait(boost::asio::awaitable<T> work) {
        if constexpr (std::is_void_v<T>) {
            bool done = false;
            boost::asio::co_spawn(loop_, std::move(work), [&](const std::exception_ptr&) { done = true; });
            run_until([&] { return done; });
        } else {
            std::optional<T> outcome;
            boost::asio::co_spawn(loop_, into<T>(std::move(work), [&](T value) { outcome = std::move(value); }), ignore_exception);
            run_until([&] { return outcome.has_value(); });
            return *std::move(outcome);
        }
    }

    void run_until(const std::function<bool()>& done) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        loop_.restart();
        while (!done()) {
            ASSERT_LT(std::chrono::steady_clock::now(), end) << "nothing happened for 30 s";
            loop_.run_one_for(std::chrono::milliseconds(20));
            loop_.restart();
        }
    }

    /// The reply's bytes, or "CODE: MESSAGE".
    std::string call(const std::string& bytes, std::chrono::nanoseconds timeout = std::chrono::seconds(20), const std::string& instance = {}) {
        auto* client = instance.empty() ? host_->client(mischief_capability) : host_->client_of(instance, mischief_capability);
        auto outcome = wait(client->call(mischief_run, {.bytes = bytes}, {.timeout = timeout, .pod = "ns/pod", .pod_uid = "uid-1"}));
        return outcome ? outcome->bytes : std::string(to_string(outcome.error().code)) + ": " + outcome.error().message;
    }

    plugin_info info(const std::string& name) {
        for (auto& one : host_->plugins())
            if (one.name == name) return one;
        return {};
    }

    /// Lets the loop and the lanes go on until the condition holds.
    bool eventually(const std::function<bool()>& condition) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (!condition() && std::chrono::steady_clock::now() < end) {
            loop_.run_one_for(std::chrono::milliseconds(5));
            loop_.restart();
        }
        return condition();
    }

    std::string dir_;
    boost::asio::io_context loop_;
    plugin_host_options options_;
    std::unique_ptr<plugin_host> host_;
};

} // namespace gantry::core
