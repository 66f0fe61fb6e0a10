// Short ways to write pods and runtime views in tests.
#pragma once

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "core/pod/names.hpp"
#include "core/pod/runtime_view.hpp"
#include "gantry/model/defaults.hpp"

namespace gantry::core::testing {

inline base::wall_time at(int seconds) { return base::wall_time(std::chrono::seconds(1'700'000'000 + seconds)); }

/// A Pod from the JSON of its spec, with defaults.
inline model::pod pod_of(const std::string& spec, const std::string& name = "p") {
    auto pod = model::admit_pod(R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": ")" + name +
                                    R"(", "namespace": "oracle", "uid": "u-1"}, "spec": )" + spec + "}",
                                "test");
    EXPECT_TRUE(pod) << (pod ? "" : pod.error().message);
    return pod ? *std::move(pod) : model::pod{};
}

/// One container per name, all with this restart policy.
inline model::pod pod_with(const std::string& policy, std::initializer_list<const char*> containers,
                           std::initializer_list<const char*> init = {}) {
    const auto list = [](std::initializer_list<const char*> names) {
        std::string out;
        for (const auto* name : names)
            out += std::string(out.empty() ? "" : ", ") + R"({"name": ")" + name + R"(", "image": "busybox:1"})";
        return "[" + out + "]";
    };
    return pod_of(R"({"restartPolicy": ")" + policy + R"(", "containers": )" + list(containers) +
                  R"(, "initContainers": )" + list(init) + "}");
}

/// What the runtime has, put together step by step.
class world {
public:
    runtime_view view;

    world& sandbox(bool ready = true, std::uint32_t attempt = 0) {
        sandbox_view s;
        s.id = "s" + std::to_string(attempt);
        s.attempt = attempt;
        s.ready = ready;
        s.ips = {"10.88.0.2"};
        view.merge(std::move(s));
        current_ = "s" + std::to_string(attempt);
        return *this;
    }
    world& running(const std::string& name, std::uint32_t attempt = 0) {
        auto c = make(name, attempt);
        c.phase = container_phase::running;
        return add(std::move(c));
    }
    world& created(const std::string& name, std::uint32_t attempt = 0) {
        auto c = make(name, attempt);
        c.phase = container_phase::created;
        return add(std::move(c));
    }
    world& exited(const std::string& name, int code, std::uint32_t attempt = 0, const std::string& reason = {}) {
        auto c = make(name, attempt);
        c.phase = container_phase::exited;
        c.exit_code = code;
        c.reason = !reason.empty() ? reason : code == 0 ? "Completed" : "Error";
        c.finished_at = at(20);
        return add(std::move(c));
    }

private:
    container_view make(const std::string& name, std::uint32_t attempt) const {
        container_view c;
        c.id = name + "-" + std::to_string(attempt);
        c.sandbox_id = current_;
        c.name = name;
        c.image = "busybox:1";
        c.image_ref = "busybox@sha256:1";
        c.attempt = attempt;
        c.created_at = at(1);
        c.started_at = at(2);
        return c;
    }
    world& add(container_view c) {
        view.merge(std::move(c));
        return *this;
    }

    std::string current_ = "s0";
};

} // namespace gantry::core::testing
