#include "plugins/common/cgroup/limits.hpp"

#include <algorithm>

#include "plugins/common/cgroup/units.hpp"

namespace gantry::cgroup {

namespace {

std::string number_or(std::int64_t value, const char* none) { return value < 0 ? none : std::to_string(value); }

class planner {
public:
    planner(version v, const limits& wanted) : v2_(v == version::v2), wanted_(wanted) {}

    result<std::vector<control_write>> run() {
        cpu();
        cpuset();
        memory();
        if (wanted_.pids_max) add("pids", "pids.max", number_or(*wanted_.pids_max, "max"));
        hugetlb();
        GANTRY_CHECK(unified());
        return std::move(writes_);
    }

private:
    void add(const char* controller, std::string file, std::string value, bool optional = false) {
        writes_.push_back({controller, std::move(file), std::move(value), optional});
    }

    void cpu() {
        if (wanted_.cpu_shares) {
            if (v2_)
                add("cpu", "cpu.weight", std::to_string(weight_of_shares(*wanted_.cpu_shares)));
            else
                add("cpu", "cpu.shares", std::to_string(*wanted_.cpu_shares));
        }
        if (!wanted_.cpu_quota_us) return;
        const std::string period = std::to_string(wanted_.cpu_period_us.value_or(default_period_us));
        if (v2_) {
            add("cpu", "cpu.max", number_or(*wanted_.cpu_quota_us, "max") + " " + period);
        } else {
            add("cpu", "cpu.cfs_period_us", period);
            add("cpu", "cpu.cfs_quota_us", number_or(*wanted_.cpu_quota_us, "-1"));
        }
    }

    void cpuset() {
        if (wanted_.cpuset_cpus) add("cpuset", "cpuset.cpus", *wanted_.cpuset_cpus);
        if (wanted_.cpuset_mems) add("cpuset", "cpuset.mems", *wanted_.cpuset_mems);
    }

    void memory() {
        const auto bytes = [&](const char* file, const std::optional<std::int64_t>& value, bool optional = false) {
            if (value) add("memory", file, number_or(*value, v2_ ? "max" : "-1"), optional);
        };
        if (!v2_) {
            bytes("memory.limit_in_bytes", wanted_.memory_max);
            bytes("memory.soft_limit_in_bytes", wanted_.memory_low);
            if (wanted_.swap_max && wanted_.memory_max) {
                const bool bounded = *wanted_.swap_max >= 0 && *wanted_.memory_max >= 0;
                bytes("memory.memsw.limit_in_bytes", bounded ? *wanted_.memory_max + *wanted_.swap_max : unlimited,
                      true);
            }
            return;
        }
        bytes("memory.min", wanted_.memory_min);
        bytes("memory.low", wanted_.memory_low);
        bytes("memory.high", wanted_.memory_high);
        bytes("memory.max", wanted_.memory_max);
        bytes("memory.swap.max", wanted_.swap_max, true);
        if (wanted_.oom_group) add("memory", "memory.oom.group", *wanted_.oom_group ? "1" : "0", true);
    }

    void hugetlb() {
        for (const auto& [size, value] : wanted_.hugetlb) {
            const std::string file = "hugetlb." + size;
            const std::string text = number_or(value, v2_ ? "max" : "-1");
            add("hugetlb", file + (v2_ ? ".max" : ".limit_in_bytes"), text, value == 0); // no such pages: none to give
            add("hugetlb", file + (v2_ ? ".rsvd.max" : ".rsvd.limit_in_bytes"), text, true);
        }
    }

    result<void> unified() {
        for (const auto& [file, value] : wanted_.unified) {
            const auto refuse = [&file = file](const char* why) {
                return error{.code = code::invalid, .message = "unified cgroup file \"" + file + "\": " + why};
            };
            if (!v2_) return refuse("this machine runs cgroup v1, which has no such file");
            const bool plain = std::all_of(file.begin(), file.end(), [](char c) {
                return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
                       c == '_';
            });
            const auto dot = file.find('.');
            if (!plain || dot == 0 || dot == std::string::npos) return refuse("not a file name CONTROLLER.NAME");
            if (file.starts_with("cgroup.")) return refuse("core files are not resources");
            writes_.push_back({file.substr(0, dot), file, value, false});
        }
        return {};
    }

    bool v2_;
    const limits& wanted_;
    std::vector<control_write> writes_;
};

} // namespace

result<std::vector<control_write>> plan_writes(version v, const limits& wanted) { return planner(v, wanted).run(); }

} // namespace gantry::cgroup
