// What the machine has, what of it is for pods, and what is in use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gantry/sdk/result.hpp"
#include "plugins/node-linux/config.hpp"

namespace gantry::node_linux {

struct machine {
    std::int64_t cpu_milli = 0;
    std::int64_t memory = 0;            ///< bytes, MemTotal
    std::int64_t huge_pages = 0;        ///< bytes set aside for huge pages
    std::int64_t ephemeral_storage = 0; ///< bytes, of the file system of the state directory
    std::int64_t pids = 0;              ///< threads that may exist
};

struct capacity {
    std::int64_t cpu_milli = 0;
    std::int64_t memory = 0;
    std::int64_t pods = 0;
    std::int64_t ephemeral_storage = 0;
};

struct memory_info {
    std::int64_t total = 0, free = 0, inactive_file = 0, huge_pages = 0, swap_total = 0, swap_free = 0; ///< bytes
    std::int64_t used() const { return total - free; }
    std::int64_t working_set() const { return used() > inactive_file ? used() - inactive_file : 0; }
};

/// Reads a /proc/meminfo text. Pure. [any]
memory_info parse_meminfo(std::string_view text);

/// From /proc and the file system that holds `state_dir`. [worker]
result<machine> read_machine(const std::string& state_dir);

/// [worker]
result<memory_info> read_memory();

/// Threads of the machine, from /proc/loadavg. [worker]
result<std::int64_t> read_threads();

capacity total(const machine& m, const config& settings);

/// capacity - reserved - hard eviction thresholds (memory also without huge pages), nothing below 0. Pure. [any]
capacity allocatable(const machine& m, const config& settings);

/// What kubepods may use: capacity - reserved; eviction is to strike before this limit does. Pure. [any]
amounts enforced(const machine& m, const config& settings);

} // namespace gantry::node_linux
