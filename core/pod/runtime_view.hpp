// What the runtime says of one pod, without the runtime's encoding: the input of every decision.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"

namespace gantry::core {

enum class container_phase : std::uint8_t { created, running, exited, unknown };

struct container_view {
    std::string id;
    std::string sandbox_id;
    std::string name;
    std::string image;     ///< as the runtime resolved it
    std::string image_ref; ///< for status.imageID
    std::string log_path;
    std::string reason;  ///< of the exit: Completed, Error, OOMKilled, StartError, SupervisorLost
    std::string message; ///< of the exit
    base::wall_time created_at{};
    base::wall_time started_at{};  ///< epoch: never started
    base::wall_time finished_at{}; ///< epoch: not known
    std::uint64_t hash = 0;        ///< of name and image when it was made; 0: not known
    std::uint32_t attempt = 0;
    std::int32_t exit_code = 0;
    container_phase phase = container_phase::unknown;
};

struct sandbox_view {
    std::string id;
    std::vector<std::string> ips;
    base::wall_time created_at{};
    std::uint32_t attempt = 0;
    bool ready = false;
    std::optional<bool> host_network{}; ///< nothing: the runtime does not say
};

struct runtime_view {
    std::vector<sandbox_view> sandboxes;     ///< newest first
    std::vector<container_view> containers;  ///< newest first

    /// Puts newest first again after elements were added.
    void sort();
    /// Takes a report of a container; one that is older than what is known (exited -> running) changes nothing.
    void merge(container_view report);
    void merge(sandbox_view report);

    const sandbox_view* sandbox() const { return sandboxes.empty() ? nullptr : &sandboxes.front(); }
    const sandbox_view* find_sandbox(std::string_view id) const;
    const container_view* find(std::string_view id) const;
    const container_view* newest(std::string_view name) const;
    /// The instance before the newest one.
    const container_view* previous(std::string_view name) const;
    void erase(std::string_view id);
    /// With the containers in it.
    void erase_sandbox(std::string_view id);

    bool any_running() const;
};

/// The exit reason of containers whose supervisor was killed: their sandbox cannot be trusted any more.
inline constexpr std::string_view supervisor_lost = "SupervisorLost";

} // namespace gantry::core
