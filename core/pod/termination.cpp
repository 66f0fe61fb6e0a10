#include "core/pod/termination.hpp"

#include <algorithm>
#include <vector>

namespace gantry::core {

std::size_t message_limit(const model::pod_spec& spec) {
    const auto containers = std::max<std::size_t>(spec.containers.size() + spec.init_containers.size(), 1);
    return std::min(termination_message_limit, termination_messages_limit / containers);
}

std::string log_tail(std::string_view log) {
    std::string out;
    while (!log.empty()) {
        const auto end = std::min(log.find('\n'), log.size());
        auto record = log.substr(0, end);
        log.remove_prefix(std::min(end + 1, log.size()));
        // TIME STREAM TAG TEXT; the tag is P for a piece of a line, F for its end.
        const auto stream = record.find(' ');
        const auto tag = stream == std::string_view::npos ? stream : record.find(' ', stream + 1);
        const auto text = tag == std::string_view::npos ? tag : record.find(' ', tag + 1);
        if (text == std::string_view::npos || record.substr(0, stream).find('T') == std::string_view::npos) continue;
        const auto kind = record.substr(tag + 1, text - tag - 1);
        if (kind != "F" && kind != "P") continue;
        out += record.substr(text + 1);
        if (kind == "F") out += '\n';
    }
    if (out.size() > termination_log_limit) out.erase(0, out.size() - termination_log_limit);
    std::size_t lines = 0;
    for (std::size_t i = out.size(); i-- > 0;)
        if (out[i] == '\n' && i + 1 != out.size() && ++lines == termination_log_lines) return out.substr(i + 1);
    return out;
}

std::string joined_message(std::string_view runtime, std::string_view program) {
    std::string out(runtime);
    if (!runtime.empty() && !program.empty()) out += ": ";
    return out += program;
}

} // namespace gantry::core
